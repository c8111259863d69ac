//! The worker's side: a key and its ascending TIDs become finished pieces.

use crate::error::{Error, Result};
use crate::gin::tuple::Category;
use crate::opclass::KeyType;

/// What an encoder has encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncoderStats {
    /// Entries ended.
    pub keys: u64,
    /// TIDs in them.
    pub postings: u64,
}

/// Turns (key, ascending TIDs) into finished pieces for [`crate::gin::Loader::add`].
#[derive(Debug)]
pub struct EntryEncoder {
    columns: Vec<KeyType>,
    stats: EncoderStats,
}

impl EntryEncoder {
    /// For an index of these columns: one makes the single-column layout.
    pub fn new(columns: &[KeyType]) -> EntryEncoder {
        EntryEncoder { columns: columns.to_vec(), stats: EncoderStats::default() }
    }

    /// Begins an entry; `column` counts from 0, `key` is in memcmp order.
    pub fn begin(&mut self, column: u8, category: Category, key: &[u8]) -> Result<()> {
        let _ = (&self.columns, column, category, key);
        Err(Error::invalid("not written yet"))
    }

    /// Adds packed TIDs, ascending and after all before; appends pieces that are full.
    pub fn push(&mut self, tids: &[u64], out: &mut Vec<u8>) -> Result<()> {
        let _ = (tids, out);
        Err(Error::invalid("not written yet"))
    }

    /// Ends the entry; appends the rest of its pieces.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let _ = out;
        Err(Error::invalid("not written yet"))
    }

    /// What was encoded so far.
    pub fn stats(&self) -> EncoderStats {
        self.stats
    }
}
