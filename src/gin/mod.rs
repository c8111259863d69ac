//! GIN index files in PostgreSQL 18's own page format: written, read, checked.
//!
//! The format is described in this folder's `README.md`, its constants are in
//! [`layout`]. Two sides write. Workers turn a key and its TIDs into finished
//! [pieces](layout), with an [`EntryEncoder`] each; the leader's [`Loader`] packs the
//! pieces, in key order, into pages. [`Index`] reads a mapped file, PostgreSQL's own
//! files too; [`check()`] verifies every rule of the format; [`inspect`] answers as
//! pageinspect does.
//!
//! The reading side trusts nothing: whatever the bytes, it ends with values or an error
//! that names block and item.

pub mod check;
mod check_postings;
pub mod encode;
mod entry_tree;
mod guess;
pub mod inspect;
pub mod layout;
pub mod load;
pub mod page;
pub mod pglz;
mod posting_tree;
mod postings;
pub mod read;
pub mod tuple;
mod write;

pub use check::{CheckStats, Damage, check};
pub use encode::{EncoderStats, EntryEncoder};
pub use load::{Loader, TreeStats};
pub use read::{Entry, EntryIter, Index, Meta, Pending, Postings};
pub use tuple::Category;
