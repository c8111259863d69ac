//! Builds GIN inverted indexes in PostgreSQL 18's own page format, in parallel, outside
//! the server, under a hard memory limit, and searches them.
//!
//! ```text
//!  input files      archive     block ranges handed out to workers
//!      │
//!  documents        document    split → MIME → fields
//!      │
//!  keys             opclass     tsvector · trigram · jsonb · jsonb path · array
//!      │
//!  accumulate       build       key → compressed TID list, one memory budget
//!      │  share used up → a sorted run, written once
//!  sort             tuplesort   all workers' runs, on disk or in memory
//!      │
//!  merge            build       parts of the key space, merged by workers
//!      │  finished entries in key order    (queue)
//!  load             gin         pages packed left to right, bottom up → NAME.gin
//!      │
//!  archive          catalog     directory of indexes, synced, renamed
//!      │
//!  search           search      conditions → key trees → TIDs → recheck
//! ```
//!
//! [`Builder`] runs the whole pipeline; `build/mod.rs` is its one readable function.
//! [`gin`] alone writes, reads and checks index files, [`tuplesort`] alone sorts, and an
//! [`opclass`] alone turns values into keys.
//!
//! # Example
//!
//! A directory of notes, one per line, searched by word:
//!
//! ```
//! use ginmill::Builder;
//! use ginmill::gin::{Category, Index};
//!
//! # fn main() -> ginmill::Result<()> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! let notes = dir.path().join("notes.txt");
//! std::fs::write(&notes, "Buy milk\nMilking robots, a survey\nCall home\n").expect("notes");
//!
//! let archive = dir.path().join("notes.gin");
//! let stats = Builder::new([&notes])
//!     .format("text")
//!     .index("words=tsvector_ops(body, english)".parse()?)
//!     .workers(2)
//!     .build(&archive)?;
//! assert_eq!(stats.input.documents, 3);
//!
//! // Both forms of the word have the lexeme "milk".
//! let index = Index::open(&archive.join("words.gin"), None)?;
//! let mut postings = index.posting(0, Category::Key, b"milk")?.expect("an entry");
//! let first = postings.next()?.expect("a TID");
//! let second = postings.next()?.expect("a TID");
//! assert!(first < second && postings.next()?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//!
//! Input files are mapped: one that is shortened while it is read can end the process.
//! A document may be of any length (PostgreSQL's tsvector ends at 1 MB); lexemes over
//! 2,046 bytes are left out, as PostgreSQL does, and counted.

pub mod archive;
pub mod budget;
pub mod build;
pub mod catalog;
pub mod document;
pub mod error;
pub mod gin;
mod mapped;
pub mod opclass;
pub mod posting;
pub mod queue;
pub mod report;
pub mod search;
pub mod tempspace;
pub mod tid;
pub mod tuplesort;

pub use build::Builder;
pub use error::{Error, ErrorKind, Result};
