//! What does ginmill cost beside PostgreSQL 18 and others, with more workers, less
//! memory, more input? Side by side in one run, as medians and ratios.
//!
//! `benches/compare` starts the server and runs this program. [`mail`] reads the input
//! with ginmill's own library, [`server`] has PostgreSQL build the default indexes,
//! [`program`] runs `ginmill index`, [`words`] tantivy, [`trigrams`] codesearch; each
//! build is watched from outside by [`process`]. [`sections`] says what is measured in which order: whatever
//! is compared alternates, round by round, so that a machine that becomes slower
//! becomes slower for all. [`model`] predicts more cores than there are, [`targets`]
//! holds the outcome against what must be reached, [`table`] prints.
//!
//! Times alone mean nothing on another machine: every table has ratios beside them.

mod comparison;
mod mail;
mod model;
mod process;
mod program;
mod sections;
mod series;
mod server;
mod table;
mod targets;
mod trigrams;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use ginmill::budget::Bytes;

/// Any error; what failed is in its sentence.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Measure ginmill beside PostgreSQL 18, tantivy and codesearch, in one run
#[derive(Parser, Debug)]
#[command(name = "benches/compare", max_term_width = 100)]
struct Args {
    /// Files and directories with mail
    #[arg(long, num_args = 1.., value_name = "PATH")]
    input: Vec<PathBuf>,
    /// Memory of ginmill, maintenance_work_mem of PostgreSQL, heap of tantivy
    #[arg(long, value_name = "SIZE", default_value = "256MB")]
    memory: Bytes,
    /// Measurements of each kind; medians are shown
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// A small part of the input, one round: to try this program out
    #[arg(long)]
    quick: bool,
    /// Sections to measure [default: all that can be]
    #[arg(long, value_enum, value_delimiter = ',', num_args = 1..)]
    only: Vec<Section>,
    /// Write everything measured to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables to a file too
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Compile tantivy and compare with it (an option of the script)
    #[arg(long)]
    tantivy: bool,
    /// What `cargo bench` adds
    #[arg(long, hide = true)]
    bench: bool,
    /// Bodies to index with tantivy in this process, for the run that started it
    #[arg(long, hide = true, num_args = 4)]
    tantivy_run: Vec<String>,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Section {
    /// Each index alone and all together, against CREATE INDEX
    Postgres,
    /// Workers 0, 1, 2, and a model of more cores
    Workers,
    /// Memory from 16MB to 1GB
    Memory,
    /// A small part of the input up to all of it
    Growth,
    /// Keys made and dropped, against the whole build
    Extraction,
    /// Body words, against tantivy
    Tantivy,
    /// Body trigrams, against Google codesearch (cindex in PATH: Debian package codesearch)
    Codesearch,
}

impl Args {
    /// Paths of the command line are meant from where the script was called.
    fn resolve(&mut self) {
        let Some(from) = std::env::var_os("GINMILL_COMPARE_FROM") else { return };
        let from = Path::new(&from);
        let paths = self.input.iter_mut().chain(&mut self.json).chain(&mut self.text);
        for path in paths {
            *path = from.join(&*path);
        }
    }

    fn wants(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }
}

/// Prints to stdout.
fn print(text: &str) -> Outcome<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// Says on stderr what is going on.
fn note(text: &str) {
    // that it cannot be written is nobody's business
    let _ = writeln!(std::io::stderr().lock(), "compare: {text}");
}

fn run() -> Outcome<()> {
    let mut args = Args::parse();
    if let [bodies, output, threads, memory] = &args.tantivy_run[..] {
        return words::index(bodies.as_ref(), output.as_ref(), threads, memory);
    }
    if args.input.is_empty() {
        // a plain `cargo bench` runs every bench there is
        note("nothing to measure without --input; see benches/compare --help");
        return Ok(());
    }
    if args.tantivy && !words::COMPILED {
        return Err("tantivy is not compiled in: call benches/compare".into());
    }
    args.resolve();
    let comparison = sections::measure(&args)?;
    let text = comparison.text();
    print(&text)?;
    if let Some(path) = &args.text {
        std::fs::write(path, &text)?;
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&comparison)?;
        std::fs::write(path, json + "\n")?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
