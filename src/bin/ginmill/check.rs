//! `ginmill check DIR|FILE.gin`.

use std::io::Write;
use std::path::PathBuf;

use ginmill::Error;
use ginmill::catalog::check::{self, DAMAGES_MAX, FileCheck};
use ginmill::report::text::count;

use crate::face::{Face, Failure, Status};

/// Verify an archive or an index file: structure, checksums, and that the files fit together
///
/// Exit status 1 when something is damaged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill check mail.gin
  ginmill check mail.gin/body_tsvector.gin --json")]
pub(crate) struct Args {
    /// An archive directory, or an index file
    #[arg(value_name = "DIR|FILE.gin")]
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let mut damages = 0;
        // The library takes its own errors only; one of the output is kept for later.
        let mut output = Ok(());
        let mut each = |file: FileCheck| {
            damages += file.damage_count;
            output = print(face, &file);
            match output {
                Ok(()) => Ok(()),
                Err(_) => Err(Error::invalid("the result could not be written")),
            }
        };
        let checked = if self.path.is_dir() {
            check::check(&self.path, &mut each)
        } else {
            check::check_index(&self.path).and_then(each)
        };
        output?;
        checked?;
        Ok(if damages == 0 { Status::Done } else { Status::Nothing })
    }
}

fn print(face: &mut Face, file: &FileCheck) -> Result<(), Failure> {
    if face.json {
        let line = serde_json::to_value(file)?;
        face.line(&line)?;
    } else {
        for damage in &file.damages {
            writeln!(face.out, "{}: {damage}", file.file)?;
        }
        let more = file.damage_count - file.damages.len() as u64;
        if more > 0 {
            writeln!(
                face.out,
                "{}: and {} more, after the first {DAMAGES_MAX}",
                file.file,
                count(more)
            )?;
        }
        if file.damage_count == 0 {
            match &file.index {
                None => writeln!(face.out, "{}: sound", file.file)?,
                Some(index) => writeln!(
                    face.out,
                    "{}: sound, {} pages, {} entries, {} postings{}",
                    file.file,
                    count(index.pages),
                    count(index.entries),
                    count(index.postings),
                    if index.checksums { "" } else { ", without checksums" }
                )?,
            }
        }
    }
    face.out.flush()?;
    Ok(())
}
