//! Builds GIN inverted indexes in PostgreSQL 18's own page format.

pub mod archive;
pub mod budget;
pub mod build;
pub mod document;
pub mod error;
pub mod gin;
pub mod opclass;
pub mod posting;
pub mod tempspace;
pub mod tid;

pub use error::{Error, ErrorKind, Result};
