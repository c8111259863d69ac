//! The one error type: what was being done, where, what was expected, what was found.
//!
//! Messages are lower case without a full stop, so that callers can chain them. The
//! program maps every error to exit status 2; `ErrorKind` lets a caller tell them apart.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its kind; one pointer wide.
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused: what was being done, to which file.
    Io {
        /// The attempt, as in "cannot {doing} {path}".
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file does not hold what its format promises.
    Corrupt {
        /// The file, or what was read when there is no file.
        path: PathBuf,
        /// Place in it, such as "block 7, item 3" or "byte 1024".
        place: String,
        /// What the format promises there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A writer was given its input out of order.
    OutOfOrder {
        /// What came before.
        previous: String,
        /// What came then.
        got: String,
    },
    /// An argument, a definition or a query cannot be used; the whole sentence.
    Invalid(String),
    /// PostgreSQL refuses this value, for this reason; the item has no keys.
    Value(String),
    /// The memory limit does not suffice.
    MemoryLimit {
        /// For what memory was needed.
        purpose: String,
        /// The limit, bytes.
        limit: u64,
        /// What would have been needed, bytes.
        needed: u64,
    },
    /// The limit on temporary space would have been crossed.
    TempLimit {
        /// The limit, bytes.
        limit: u64,
        /// Already on disk, bytes.
        used: u64,
        /// The write that would have crossed it, bytes.
        wanted: u64,
    },
    /// The caller asked to stop.
    Cancelled,
}

impl Error {
    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// An argument that cannot be used, as one sentence.
    pub fn invalid(message: impl Into<String>) -> Error {
        ErrorKind::Invalid(message.into()).into()
    }

    /// A value that PostgreSQL refuses, with its reason.
    pub fn value(reason: impl Into<String>) -> Error {
        ErrorKind::Value(reason.into()).into()
    }

    /// For `map_err` behind a system call on `path`.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| ErrorKind::Io { doing, path: path.to_path_buf(), source }.into()
    }

    /// A file that breaks its format's promise.
    pub fn corrupt(
        path: &Path,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        ErrorKind::Corrupt {
            path: path.to_path_buf(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
        .into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error(Box::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ErrorKind::Io { doing, path, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            ErrorKind::Corrupt { path, place, expected, found } => write!(
                f,
                "{}: {place}: expected {expected}, found {found}",
                path.display()
            ),
            ErrorKind::OutOfOrder { previous, got } => {
                write!(f, "input out of order: {got} after {previous}")
            }
            ErrorKind::Invalid(message) | ErrorKind::Value(message) => {
                f.write_str(message)
            }
            ErrorKind::MemoryLimit { purpose, limit, needed } => write!(
                f,
                "the memory limit of {} is too small: {purpose} needs {}",
                size(*limit),
                size(*needed)
            ),
            ErrorKind::TempLimit { limit, used, wanted } => write!(
                f,
                "temporary files would exceed the limit of {}: {} are on disk and {} more \
                 are needed",
                size(*limit),
                size(*used),
                size(*wanted)
            ),
            ErrorKind::Cancelled => f.write_str("stopped on request"),
        }
    }
}

const UNITS: [(&str, u64); 4] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)];

/// A size as PostgreSQL writes it: in the largest unit that it is a whole number of.
pub(crate) fn size(bytes: u64) -> String {
    let whole = |unit: &&(&str, u64)| bytes != 0 && bytes.is_multiple_of(unit.1);
    match UNITS.iter().find(whole) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}B"),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
