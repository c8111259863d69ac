//! How every verb meets the user: stdout, stderr, interruption, exit status.

use std::io::{self, BufWriter, ErrorKind as IoErrorKind, Stdout, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ginmill::{Error, ErrorKind};
use serde_json::json;

/// How a verb that did not fail ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Done, or something was found: exit 0.
    Done,
    /// Nothing was found, or damage was: exit 1.
    Nothing,
}

/// Why a verb failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What it was asked to do cannot be done.
    Error(Error),
    /// Its results could not be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Output(error.into())
    }
}

const EXIT_ERROR: u8 = 2;
const EXIT_STOPPED: u8 = 130;

/// What every verb is given.
pub(crate) struct Face {
    /// Whether results are for programs.
    pub json: bool,
    /// Results.
    pub out: BufWriter<Stdout>,
    /// Becomes true when the user asks to stop; set up by [`Face::interruptible`].
    pub cancel: Arc<AtomicBool>,
}

impl Face {
    pub(crate) fn new(json: bool) -> Face {
        Face { json, out: BufWriter::new(io::stdout()), cancel: Arc::default() }
    }

    /// From now on the first Ctrl-C, SIGTERM or SIGHUP asks to stop, a second one ends
    /// the program at once.
    pub(crate) fn interruptible(&self) -> Result<(), Failure> {
        let cancel = Arc::clone(&self.cancel);
        ctrlc::set_handler(move || {
            if cancel.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(EXIT_STOPPED));
            }
            note("stopping; once more to stop at once");
        })
        .map_err(|error| {
            Error::invalid(format!("cannot watch for Ctrl-C: {error}")).into()
        })
    }

    /// A value as one line of JSON.
    pub(crate) fn line(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Says why, if a verb failed, and makes the exit status.
    pub(crate) fn exit(&mut self, outcome: Result<Status, Failure>) -> ExitCode {
        let error = match outcome {
            Ok(Status::Done) => return ExitCode::SUCCESS,
            Ok(Status::Nothing) => return ExitCode::from(1),
            Err(Failure::Output(error)) if error.kind() == IoErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Err(Failure::Output(error)) => {
                Error::invalid(format!("cannot write to stdout: {error}"))
            }
            Err(Failure::Error(error)) => error,
        };
        // What was found before the failure belongs to the user; a second failure to
        // write it adds nothing.
        let _ = self.out.flush();
        let hint = hint(&error);
        if self.json {
            let mut object = json!({ "error": error.to_string() });
            if let Some(hint) = hint {
                object["hint"] = hint.into();
            }
            stderr_line(&object.to_string());
        } else {
            match hint {
                Some(hint) => note(&format!("{error}; {hint}")),
                None => note(&error.to_string()),
            }
        }
        match error.kind() {
            ErrorKind::Cancelled => ExitCode::from(EXIT_STOPPED),
            _ => ExitCode::from(EXIT_ERROR),
        }
    }
}

/// What the user can do about an error, where that is not in its sentence.
fn hint(error: &Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::MemoryLimit { .. } => Some("set a larger limit with --memory"),
        ErrorKind::TempLimit { .. } => {
            Some("raise --temp-limit, or set a larger --memory so that less is spilled")
        }
        ErrorKind::Io { source, .. } => match source.kind() {
            IoErrorKind::StorageFull | IoErrorKind::QuotaExceeded => {
                Some("make space, or put temporary files elsewhere with --temp-dir")
            }
            _ => None,
        },
        ErrorKind::Corrupt { .. } => {
            Some("the file is damaged; an archive is repaired by building it again")
        }
        _ => None,
    }
}

/// `ginmill: …` on stderr.
pub(crate) fn note(message: &str) {
    stderr_line(&format!("ginmill: {message}"));
}

/// A line on stderr; that it cannot be written is nobody's business.
pub(crate) fn stderr_line(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints what clap has to say: help and version on stdout, mistakes on stderr.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A reader that went away is no error.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    note(&one_sentence(&error.render().to_string()));
    ExitCode::from(EXIT_ERROR)
}

/// What clap says of a mistake, on one line and without the usage.
fn one_sentence(text: &str) -> String {
    let lines = text.strip_prefix("error: ").unwrap_or(text).lines().map(str::trim);
    let lines = lines.take_while(|line| {
        !line.starts_with("Usage:") && !line.starts_with("For more ")
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_one_sentence() {
        let said = "error: invalid value 'pdf' for '--format'\n  [possible values: text]\n\n\
                    \x20 tip: a similar value\n\nUsage: ginmill x\n\nFor more information";
        let sentence = "invalid value 'pdf' for '--format' [possible values: text] tip: a similar value";
        assert_eq!(one_sentence(said), sentence);
    }
}
