//! `ginmill man [VERB]`.

use std::io::Write;

use clap_mangen::Man;
use ginmill::Error;

use crate::face::{Face, Failure, Status};

/// Print the man page, of the program or of one command
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A command
    command: Option<String>,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let mut program = crate::command();
        program.build();
        let command = match self.command {
            None => program,
            Some(name) => {
                let found = program.find_subcommand(&name).cloned();
                let command = found.ok_or_else(|| {
                    let names = program.get_subcommands().map(clap::Command::get_name);
                    let names = names.collect::<Vec<_>>().join(", ");
                    Error::invalid(format!(
                        "there is no command {name}; there are {names}"
                    ))
                })?;
                let full = format!("ginmill-{name}");
                command.name(full)
            }
        };
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        face.out.write_all(&text)?;
        Ok(Status::Done)
    }
}
