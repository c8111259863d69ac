//! The read side: a mapped index file.

use std::marker::PhantomData;
use std::path::Path;

use crate::error::{Error, Result};
use crate::gin::tuple::Category;
use crate::opclass::KeyType;
use crate::tid::Tid;

/// The metapage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Meta {
    /// First page of the pending list.
    pub pending_head: u32,
    /// Its last page.
    pub pending_tail: u32,
    /// Free bytes on the last page.
    pub tail_free_size: u32,
    /// Pages of the pending list.
    pub n_pending_pages: u32,
    /// Heap tuples in it.
    pub n_pending_tuples: i64,
    /// All pages.
    pub n_total_pages: u32,
    /// Pages of the entry tree.
    pub n_entry_pages: u32,
    /// Pages of posting trees.
    pub n_data_pages: u32,
    /// Leaf entries.
    pub n_entries: i64,
    /// Format version.
    pub version: i32,
}

/// An open index file.
#[derive(Debug)]
pub struct Index {}

/// One entry of the index; lent by [`EntryIter::next`].
#[derive(Debug)]
pub struct Entry<'a> {
    /// Column, from 0.
    pub column: u8,
    /// What the entry stands for.
    pub category: Category,
    /// The key in memcmp order; empty unless the category is `Key`.
    pub key: &'a [u8],
    /// Its TIDs.
    pub postings: Postings<'a>,
}

/// Walks entries in key order.
#[derive(Debug)]
pub struct EntryIter<'a> {
    index: PhantomData<&'a Index>,
}

/// The TIDs of one entry, ascending.
#[derive(Clone, Debug)]
pub struct Postings<'a> {
    index: PhantomData<&'a Index>,
}

/// One key of one row that waits in the pending list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Column, from 0.
    pub column: u8,
    /// What the key stands for.
    pub category: Category,
    /// The key in memcmp order.
    pub key: Vec<u8>,
    /// The row.
    pub tid: Tid,
}

impl Index {
    /// Opens and maps the file; without `columns` they are guessed from the tuples.
    pub fn open(path: &Path, columns: Option<&[KeyType]>) -> Result<Index> {
        let _ = (path, columns);
        Err(Error::invalid("not written yet"))
    }

    /// The columns' key types, given or guessed.
    pub fn columns(&self) -> &[KeyType] {
        &[]
    }

    /// The metapage.
    pub fn meta(&self) -> Result<Meta> {
        Err(Error::invalid("not written yet"))
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        0
    }

    /// The TIDs of one key, if it is there.
    pub fn posting(
        &self,
        column: u8,
        category: Category,
        key: &[u8],
    ) -> Result<Option<Postings<'_>>> {
        let _ = (column, category, key);
        Err(Error::invalid("not written yet"))
    }

    /// All entries of a text column whose key starts with `prefix`.
    pub fn prefix(&self, column: u8, prefix: &[u8]) -> Result<EntryIter<'_>> {
        let _ = (column, prefix);
        Err(Error::invalid("not written yet"))
    }

    /// All entries in key order.
    pub fn entries(&self) -> EntryIter<'_> {
        EntryIter { index: PhantomData }
    }

    /// What waits in the pending list; empty in files that ginmill wrote.
    pub fn pending(&self) -> Result<Vec<Pending>> {
        Err(Error::invalid("not written yet"))
    }
}

impl EntryIter<'_> {
    /// The next entry.
    #[expect(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        Err(Error::invalid("not written yet"))
    }
}

impl Postings<'_> {
    /// The next TID.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Tid>> {
        Err(Error::invalid("not written yet"))
    }

    /// Replaces `out` by the packed TIDs of the next segment (what is left of it);
    /// `false`, with `out` empty, at the end.
    pub fn next_block(&mut self, out: &mut Vec<u64>) -> Result<bool> {
        let _ = out;
        Err(Error::invalid("not written yet"))
    }

    /// Moves forward so that the next TID is the first one not below `tid`.
    pub fn seek(&mut self, tid: Tid) -> Result<()> {
        let _ = tid;
        Err(Error::invalid("not written yet"))
    }

    /// About how many TIDs there are in all; exact for inline lists.
    pub fn estimate(&self) -> u64 {
        0
    }
}
