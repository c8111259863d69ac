//! The leader's side: packs pieces into pages, bottom up, left to right.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::opclass::KeyType;

/// A finished index in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Leaf entries: distinct keys, placeholders included.
    pub entries: u64,
    /// Pages of the entry tree.
    pub entry_pages: u64,
    /// Pages of posting trees.
    pub data_pages: u64,
    /// All pages, metapage included.
    pub pages: u64,
    /// File size.
    pub bytes: u64,
    /// Levels of the entry tree.
    pub height: u32,
}

/// Packs pages from the pieces of entry encoders.
#[derive(Debug)]
pub struct Loader {}

impl Loader {
    /// Creates the file; `fillfactor` (50 to 100 percent) holds for entry leaf pages.
    pub fn create(path: &Path, columns: &[KeyType], fillfactor: u8) -> Result<Loader> {
        let _ = (path, columns, fillfactor);
        Err(Error::invalid("not written yet"))
    }

    /// Adds whole pieces in key order.
    pub fn add(&mut self, pieces: &[u8]) -> Result<()> {
        let _ = pieces;
        Err(Error::invalid("not written yet"))
    }

    /// Writes the upper levels, the root and the metapage; the caller syncs the file.
    pub fn finish(self) -> Result<(File, TreeStats)> {
        Err(Error::invalid("not written yet"))
    }
}
