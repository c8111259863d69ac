//! Builds one posting tree after the other from finished leaves, left to right.
//!
//! A leaf is held back until the next one has its block, its right link. The same holds
//! on every level above: one page per level is in memory, and it is written when it is
//! full and its successor's block is known, which then also gives its parent the item
//! for it. A level's first page gets its block only when it is written, so that trees
//! of two levels lie in the file in one piece, root last. Answers to `gindatapage.c`.

use crate::error::{ErrorKind, Result};
use crate::gin::layout::{
    DATA, DATA_AT, DATA_LEAF, POSTING_ITEM, POSTING_ITEMS_MAX, split_block,
};
use crate::gin::page::PageBuf;
use crate::gin::write::PageWriter;
use crate::tid::Tid;

/// One page under construction on an internal level.
#[derive(Debug)]
struct Level {
    page: PageBuf,
    /// Known once the level has got a second page.
    block: Option<u32>,
    /// Items on the page; 0 when the level is not in use.
    items: usize,
    /// Key of the last item.
    last: Tid,
}

/// Builds posting trees; its pages are used again for every tree.
#[derive(Debug)]
pub struct PostingTrees {
    leaf: PageBuf,
    /// Block and last TID of the leaf held back.
    held: Option<(u32, u64)>,
    /// Internal levels, from the leaves upwards.
    levels: Vec<Level>,
    pages: u64,
}

impl PostingTrees {
    /// No tree yet.
    pub fn new() -> PostingTrees {
        PostingTrees {
            leaf: PageBuf::new(DATA_LEAF),
            held: None,
            levels: Vec::new(),
            pages: 0,
        }
    }

    /// Whether a tree has been begun.
    pub fn is_open(&self) -> bool {
        self.held.is_some()
    }

    /// Pages of all trees so far.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Adds a leaf with these segments, from `first` to `last`.
    pub fn add_leaf(
        &mut self,
        writer: &mut PageWriter,
        first: u64,
        last: u64,
        segments: &[u8],
    ) -> Result<()> {
        let previous = self.held.map_or(0, |(_, last)| last);
        if first <= previous || last < first {
            return Err(ErrorKind::OutOfOrder {
                previous: format!("TID {}", Tid::unpack(previous)),
                got: format!(
                    "a posting page with TIDs {} to {}",
                    Tid::unpack(first),
                    Tid::unpack(last)
                ),
            }
            .into());
        }
        let block = writer.allocate()?;
        if let Some((held, bound)) = self.held {
            let bound = Tid::unpack(bound);
            self.leaf.set_rightlink(block);
            self.leaf.set_right_bound(bound);
            self.write_leaf(writer, held)?;
            self.add_item(writer, 0, held, bound)?;
        }
        self.leaf.reset(DATA_LEAF);
        self.leaf.put_low(DATA_AT, segments);
        self.held = Some((block, last));
        Ok(())
    }

    fn write_leaf(&mut self, writer: &mut PageWriter, block: u32) -> Result<()> {
        self.pages += 1;
        writer.write(block, &mut self.leaf)
    }

    /// Writes the page of a level and makes it fresh for the next.
    fn write_level(
        &mut self,
        writer: &mut PageWriter,
        level: usize,
        block: u32,
    ) -> Result<()> {
        let level = &mut self.levels[level];
        level.page.set_maxoff(level.items as u16);
        level.page.set_lower(DATA_AT + level.items * POSTING_ITEM);
        writer.write(block, &mut level.page)?;
        level.page.reset(DATA);
        level.items = 0;
        level.block = None;
        self.pages += 1;
        Ok(())
    }

    /// Adds a child with its key to a level, and full pages to the levels above.
    fn add_item(
        &mut self,
        writer: &mut PageWriter,
        level: usize,
        child: u32,
        key: Tid,
    ) -> Result<()> {
        let (mut child, mut key) = (child, key);
        for n in level.. {
            if n == self.levels.len() {
                self.levels.push(Level {
                    page: PageBuf::new(DATA),
                    block: None,
                    items: 0,
                    last: Tid::default(),
                });
            }
            let level = &mut self.levels[n];
            let mut full = None;
            if level.items == POSTING_ITEMS_MAX {
                let block = match level.block {
                    Some(block) => block,
                    None => writer.allocate()?,
                };
                let next = writer.allocate()?;
                let bound = level.last;
                level.page.set_rightlink(next);
                level.page.set_right_bound(bound);
                self.write_level(writer, n, block)?;
                self.levels[n].block = Some(next);
                full = Some((block, bound));
            }
            let level = &mut self.levels[n];
            let at = DATA_AT + level.items * POSTING_ITEM;
            level.page.put(at, &split_block(child));
            level.page.put(at + 4, &key.to_bytes());
            level.items += 1;
            level.last = key;
            match full {
                Some(above) => (child, key) = above,
                None => break,
            }
        }
        Ok(())
    }

    /// Ends the tree; gives its root. There must be a leaf.
    pub fn finish(&mut self, writer: &mut PageWriter) -> Result<u32> {
        let (mut child, _) = self.held.take().expect("a tree has a leaf");
        self.write_leaf(writer, child)?;
        let mut level = 0;
        // The rightmost pages: no right link, no right bound, "plus infinity" as key.
        while self.levels.get(level).is_some_and(|level| level.items > 0) {
            self.add_item(writer, level, child, Tid::default())?;
            child = match self.levels[level].block {
                Some(block) => block,
                None => writer.allocate()?,
            };
            self.write_level(writer, level, child)?;
            level += 1;
        }
        Ok(child)
    }
}
