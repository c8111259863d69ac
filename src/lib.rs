//! Builds GIN inverted indexes in PostgreSQL 18's own page format.

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
