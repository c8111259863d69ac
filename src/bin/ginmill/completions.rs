//! `ginmill completions SHELL`.

use clap_complete::Shell;

use crate::face::{Face, Failure, Status};

/// Print a completion script for a shell
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        // Generated in memory: the generator panics when its writer fails.
        let mut text = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut crate::command(),
            "ginmill",
            &mut text,
        );
        std::io::Write::write_all(&mut face.out, &text)?;
        Ok(Status::Done)
    }
}
