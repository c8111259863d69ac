//! The program `ginmill`: arguments, dispatch, exit status.
//!
//! Each verb is a file with its arguments and a `run`. What a verb finds goes to stdout
//! through [`Face`], everything else to stderr. Exit status: 0 done or found, 1 nothing
//! found or damage found, 2 error, 130 stopped on request; a reader of stdout that went
//! away is no error.

mod allocator;
mod check;
mod completions;
mod dates;
mod face;
mod index;
mod inspect;
mod keys;
mod lines;
mod man;
mod mbox;
mod progress;
mod query;
mod report;
mod search;
mod show;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use face::{Face, Failure, Status};

/// Builds GIN inverted indexes in PostgreSQL 18's own page format, from mail archives and
/// other documents, in parallel, under a hard memory limit, and searches them.
#[derive(Parser)]
#[command(name = "ginmill", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    Index(index::Args),
    Search(search::Args),
    Show(show::Args),
    Report(report::Args),
    Check(check::Args),
    Inspect(inspect::Args),
    Keys(keys::Args),
    Query(query::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The whole command line, with what the library lists added to the help texts.
fn command() -> clap::Command {
    Cli::command()
        .mut_subcommand("index", index::with_lists)
        .mut_subcommand("keys", keys::with_lists)
        .mut_subcommand("query", keys::with_lists)
}

fn run(cli: Cli, face: &mut Face) -> Result<Status, Failure> {
    let status = match cli.verb {
        Verb::Index(args) => args.run(face),
        Verb::Search(args) => args.run(face),
        Verb::Show(args) => args.run(face),
        Verb::Report(args) => args.run(face),
        Verb::Check(args) => args.run(face),
        Verb::Inspect(args) => args.run(face),
        Verb::Keys(args) => args.run(face),
        Verb::Query(args) => args.run(face),
        Verb::Completions(args) => args.run(face),
        Verb::Man(args) => args.run(face),
    }?;
    face.out.flush()?;
    Ok(status)
}

fn main() -> ExitCode {
    allocator::settle();
    let parsed =
        command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return face::usage(&error),
    };
    let mut face = Face::new(cli.json);
    let outcome = run(cli, &mut face);
    face.exit(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
