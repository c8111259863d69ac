//! The leader's side: packs pieces into pages, bottom up, left to right.
//!
//! Leaves of a posting tree come before the entry that points to it, so the tree is
//! complete, and its root known, when the entry's tuple is placed. Nothing is searched
//! and no page is read back; memory is the write buffer and a page per level.
//! Answers to what `gininsert.c` does at the end of a build.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::gin::entry_tree::EntryTree;
use crate::gin::layout::{
    HEADER, INVALID_BLOCK, META, META_BLOCK, META_LEN, PAGE_SIZE, Piece, VERSION,
    take_piece,
};
use crate::gin::page::PageBuf;
use crate::gin::posting_tree::PostingTrees;
use crate::gin::tuple::{COLUMNS_MAX, set_tree};
use crate::gin::write::{BUFFER_PAGES, PageWriter};
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

/// Packs pages from the pieces of entry encoders; see
/// [`EntryEncoder`](crate::gin::EntryEncoder) for an example.
#[derive(Debug)]
pub struct Loader {
    writer: PageWriter,
    entries: EntryTree,
    postings: PostingTrees,
    /// A tuple that is about to get the block of its tree.
    tuple: Vec<u8>,
}

impl Loader {
    /// Memory of a loader, to charge: the write buffer, and pages for sixteen levels,
    /// which no index of 2^32 pages has.
    pub const MEMORY: u64 = (BUFFER_PAGES as u64 + 24) * PAGE_SIZE as u64;

    /// Creates the file; `fillfactor` (50 to 100 percent) holds for entry leaf pages.
    pub fn create(path: &Path, columns: &[KeyType], fillfactor: u8) -> Result<Loader> {
        if columns.is_empty() || columns.len() > COLUMNS_MAX {
            return Err(Error::invalid(format!(
                "an index has 1 to {COLUMNS_MAX} columns, not {}",
                columns.len()
            )));
        }
        if !(50..=100).contains(&fillfactor) {
            return Err(Error::invalid(format!(
                "fillfactor is 50 to 100 percent, not {fillfactor}"
            )));
        }
        Ok(Loader {
            writer: PageWriter::create(path)?,
            entries: EntryTree::new(columns, fillfactor),
            postings: PostingTrees::new(),
            tuple: Vec::new(),
        })
    }

    /// Adds whole pieces, as [`EntryEncoder`](crate::gin::EntryEncoder) made them, in
    /// key order; an entry may be spread over several calls. Fails with
    /// `ErrorKind::OutOfOrder` on a key or TID that does not come after the one before;
    /// the file is then to be thrown away.
    pub fn add(&mut self, pieces: &[u8]) -> Result<()> {
        let mut rest = pieces;
        while let Some(piece) = take_piece(&mut rest)? {
            match piece {
                Piece::Leaf { first, last, segments } => {
                    self.postings.add_leaf(&mut self.writer, first, last, segments)?;
                }
                Piece::Inline(_) if self.postings.is_open() => {
                    return Err(Error::invalid(
                        "a posting tree is not followed by its entry",
                    ));
                }
                Piece::Inline(tuple) => self.entries.add(&mut self.writer, tuple)?,
                Piece::Tree(_) if !self.postings.is_open() => {
                    return Err(Error::invalid(
                        "an entry follows no posting tree of its",
                    ));
                }
                Piece::Tree(tuple) => {
                    let root = self.postings.finish(&mut self.writer)?;
                    self.tuple.clear();
                    self.tuple.extend_from_slice(tuple);
                    set_tree(&mut self.tuple, root);
                    self.entries.add(&mut self.writer, &self.tuple)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the upper levels, the root and the metapage. The caller syncs the file.
    pub fn finish(mut self) -> Result<(File, TreeStats)> {
        if self.postings.is_open() {
            return Err(Error::invalid("a posting tree is not followed by its entry"));
        }
        let entries = self.entries.entries();
        let (entry_pages, height) = self.entries.finish(&mut self.writer)?;
        let stats = TreeStats {
            entries,
            entry_pages,
            data_pages: self.postings.pages(),
            pages: u64::from(self.writer.pages()),
            bytes: u64::from(self.writer.pages()) * PAGE_SIZE as u64,
            height,
        };
        let mut page = PageBuf::new(META);
        page.put_low(HEADER, &metadata(&stats));
        self.writer.write(META_BLOCK, &mut page)?;
        Ok((self.writer.finish()?, stats))
    }
}

fn metadata(stats: &TreeStats) -> [u8; META_LEN] {
    let count = |n: u64| u32::try_from(n).expect("a file has fewer than 2^32 pages");
    let mut meta = [0; META_LEN];
    let mut put = |at: usize, bytes: &[u8]| {
        meta[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(0, &INVALID_BLOCK.to_le_bytes());
    put(4, &INVALID_BLOCK.to_le_bytes());
    put(24, &count(stats.pages).to_le_bytes());
    put(28, &count(stats.entry_pages).to_le_bytes());
    put(32, &count(stats.data_pages).to_le_bytes());
    put(40, &stats.entries.to_le_bytes());
    put(48, &VERSION.to_le_bytes());
    meta
}
