//! GIN index files.

pub mod check;
pub mod encode;
pub mod load;
pub mod read;
pub mod tuple;

pub use check::{CheckStats, Damage, check};
pub use encode::{EncoderStats, EntryEncoder};
pub use load::{Loader, TreeStats};
pub use read::{Entry, EntryIter, Index, Meta, Pending, Postings};
pub use tuple::Category;
