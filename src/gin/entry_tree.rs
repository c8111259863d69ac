//! Builds the entry tree from leaf tuples in key order, left to right.
//!
//! One page per level is in memory. When a tuple does not fit, the page is written, its
//! last key goes to the level above as its downlink, and a fresh page is begun, whose
//! block the old page's right link needs. A level's first page gets its block only
//! then: should the level never get a second page, that page is the root and belongs in
//! block 1. Answers to `ginentrypage.c`.

use crate::error::{Error, ErrorKind, Result};
use crate::gin::layout::{ENTRY_CAPACITY, LEAF, LINE_POINTER, ROOT_BLOCK};
use crate::gin::page::PageBuf;
use crate::gin::tuple::{self, EntryTuple};
use crate::gin::write::PageWriter;
use crate::opclass::KeyType;

#[derive(Debug)]
struct Level {
    page: PageBuf,
    /// Known once the level has got a second page.
    block: Option<u32>,
    /// Bytes of tuples and line pointers on the page.
    used: usize,
    /// The last tuple, also when its page has been left.
    last: Vec<u8>,
    /// Bytes of header and key in it.
    last_key_end: usize,
}

/// Builds the entry tree of one index.
#[derive(Debug)]
pub struct EntryTree {
    columns: Vec<KeyType>,
    /// Room used of a leaf page.
    leaf_room: usize,
    /// From the leaves upwards.
    levels: Vec<Level>,
    /// A downlink on its way up.
    downlink: Vec<u8>,
    entries: u64,
    pages: u64,
}

fn level(flags: u16) -> Level {
    let page = PageBuf::new(flags);
    Level { page, block: None, used: 0, last: Vec::new(), last_key_end: 0 }
}

impl EntryTree {
    /// An empty tree whose leaf pages are filled to `fillfactor` percent.
    pub fn new(columns: &[KeyType], fillfactor: u8) -> EntryTree {
        EntryTree {
            columns: columns.to_vec(),
            leaf_room: ENTRY_CAPACITY * usize::from(fillfactor) / 100,
            levels: vec![level(LEAF)],
            downlink: Vec::new(),
            entries: 0,
            pages: 0,
        }
    }

    /// Leaf entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds a leaf tuple; its key must be greater than all before.
    pub fn add(&mut self, writer: &mut PageWriter, tuple: &[u8]) -> Result<()> {
        let parse = |bytes| {
            EntryTuple::parse(bytes, &self.columns).map_err(|fault| {
                Error::invalid(format!(
                    "a piece for {} is not an entry tuple: expected {}, found {}",
                    writer.path().display(),
                    fault.expected,
                    fault.found
                ))
            })
        };
        let entry = parse(tuple)?;
        if !tuple.len().is_multiple_of(8) {
            let message = format!("a piece of {} bytes is no entry tuple", tuple.len());
            return Err(Error::invalid(message));
        }
        let last = &self.levels[0].last;
        if !last.is_empty() {
            let previous = parse(last)?;
            if previous.cmp_tuple(&entry).is_ge() {
                return Err(ErrorKind::OutOfOrder {
                    previous: previous.describe(),
                    got: entry.describe(),
                }
                .into());
            }
        }
        let key_end = entry.key_end;
        self.place(writer, 0, tuple, key_end)?;
        self.entries += 1;
        Ok(())
    }

    /// Puts a tuple on a level's page; a full page goes out and its downlink up.
    fn place(
        &mut self,
        writer: &mut PageWriter,
        n: usize,
        tuple: &[u8],
        key_end: usize,
    ) -> Result<()> {
        if n == self.levels.len() {
            self.levels.push(level(0));
        }
        let room = if n == 0 { self.leaf_room } else { ENTRY_CAPACITY };
        let level = &mut self.levels[n];
        if level.used > 0 && level.used + tuple.len() + LINE_POINTER > room {
            let block = match level.block {
                Some(block) => block,
                None => writer.allocate()?,
            };
            let next = writer.allocate()?;
            level.page.set_rightlink(next);
            self.leave(writer, n, block)?;
            self.levels[n].block = Some(next);
        }
        let level = &mut self.levels[n];
        level.page.add_tuple(tuple);
        level.used += tuple.len() + LINE_POINTER;
        level.last.clear();
        level.last.extend_from_slice(tuple);
        level.last_key_end = key_end;
        Ok(())
    }

    /// Writes a level's page to `block`, puts its downlink on the level above, and makes
    /// the page fresh.
    fn leave(&mut self, writer: &mut PageWriter, n: usize, block: u32) -> Result<()> {
        self.write_level(writer, n, block)?;
        let level = &mut self.levels[n];
        level.page.reset(if n == 0 { LEAF } else { 0 });
        level.used = 0;
        let key_end = level.last_key_end;
        let mut downlink = std::mem::take(&mut self.downlink);
        tuple::write_downlink(&mut downlink, &level.last, key_end, block);
        // One call per level, and every level is at least three times as wide.
        self.place(writer, n + 1, &downlink, key_end)?;
        self.downlink = downlink;
        Ok(())
    }

    fn write_level(
        &mut self,
        writer: &mut PageWriter,
        n: usize,
        to: u32,
    ) -> Result<()> {
        self.pages += 1;
        writer.write(to, &mut self.levels[n].page)
    }

    /// Writes the rightmost page of every level, the root to its block. Gives the pages
    /// and levels of the tree.
    pub fn finish(mut self, writer: &mut PageWriter) -> Result<(u64, u32)> {
        let mut n = 0;
        while let Some(block) = self.levels[n].block {
            self.leave(writer, n, block)?;
            n += 1;
        }
        self.write_level(writer, n, ROOT_BLOCK)?;
        Ok((self.pages, n as u32 + 1))
    }
}
