//! Google codesearch's `cindex` indexing the trigrams of bodies.
//!
//! It has one thread, and takes files: each body is one, already decoded, in directories
//! of [`FILES`]; ginmill is given the mail. It leaves out without a word what does not
//! look like source text (long lines, too many trigrams, other than UTF-8), and
//! distinguishes case, where pg_trgm's trigrams do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ginmill::document::Value;

use crate::Outcome;
use crate::mail::Mail;
use crate::process;
use crate::series::Run;

/// Bodies in a directory.
const FILES: u64 = 1000;

/// The program of that name in PATH.
pub fn cindex() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found =
        std::env::split_paths(&path).map(|directory| directory.join("cindex"));
    found.find(|program| program.is_file())
}

/// Writes every body into a file of its own.
pub fn write(mail: &Mail, directory: &Path) -> Outcome<()> {
    fs::create_dir(directory)?;
    let mut number = 0;
    mail.each(&["body"], |values| {
        let inner = directory.join(format!("{:06}", number / FILES));
        if number % FILES == 0 {
            fs::create_dir(&inner)?;
        }
        if let [Value::Text(text)] = values {
            fs::write(inner.join(format!("{number:09}.txt")), text.as_bytes())?;
        }
        number += 1;
        Ok(())
    })?;
    Ok(())
}

/// Indexes the files.
pub fn run(program: &Path, bodies: &Path, directory: &Path) -> Outcome<Run> {
    let index = directory.join("csearchindex");
    if index.exists() {
        fs::remove_file(&index)?;
    }
    let mut command = Command::new(program);
    command.arg(bodies).env("CSEARCHINDEX", &index);
    // its temporary files; its garbage collector is not to have a core of its own
    command.env("TMPDIR", directory).env("GOMAXPROCS", "1");
    let used = process::run(&mut command)?;
    Ok(Run {
        seconds: used.wall,
        cpu: Some(used.cpu),
        peak: used.anonymous,
        index: fs::metadata(&index)?.len(),
        ..Run::default()
    })
}
