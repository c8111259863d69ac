//! Block ranges: how the inputs are shared out among workers.
//!
//! The files, one after the other, are a space of bytes that is cut into ranges of a
//! power of two of 8 kB blocks, as PostgreSQL's parallel sequential scan does: about
//! [`RANGES`] of them, and over the last [`RAMP_DOWN`] ranges smaller and smaller, so
//! that workers end together. A range begins with an item and has the items that begin
//! in it; the last one may extend over its end.
//!
//! Whoever claims a range finds its items, under the one lock. That is sequential, and
//! meant to be: finding items is a search at the speed of memory, their TIDs are final at
//! once (no range needs to know how many items the ranges before it will turn out to
//! have), and which items a range has depends on the inputs alone, never on the number
//! of workers.

use std::sync::{Arc, Mutex, PoisonError};

use super::inputs::{Inputs, Item, MAP_FROM};

use crate::document::Problem;
use crate::error::{Error, Result};
use crate::mapped::Mapped;
use crate::tid::DOCUMENTS_PER_BLOCK;

/// Bytes of a block of input.
const BLOCK: u64 = 8192;
/// Ranges that an input is cut into, about.
const RANGES: u64 = 2048;
/// Fewest blocks of a range. Every range begins a new TID block, so smaller ones would
/// leave most TIDs unused and make the differences between those in use longer.
const BLOCKS_MIN: u64 = 64;
/// Most blocks of a range.
const BLOCKS_MAX: u64 = 8192;
/// Ranges before the end from which they become smaller.
const RAMP_DOWN: u64 = 64;
/// Most items of a range.
const ITEMS_MAX: usize = 32_768;

/// A run of consecutive items for one worker.
#[derive(Debug)]
pub struct BlockRange {
    /// From 0, in input order.
    pub number: u32,
    /// TID block of its first document; the n-th item's TID is
    /// `Tid::numbered(first_block, n)`.
    pub first_block: u32,
    /// Bytes of its items.
    pub bytes: u64,
    /// Its documents, in input order; at least one.
    pub items: Vec<Item>,
    /// Keeps the files of the items mapped until the range is done.
    _maps: Vec<Arc<Mapped>>,
}

/// The ranges of the inputs, claimed one by one by any number of workers.
#[derive(Debug)]
pub struct BlockRanges {
    inputs: Arc<Inputs>,
    walk: Mutex<Walk>,
}

/// How far the inputs have been handed out.
#[derive(Debug, Default)]
struct Walk {
    /// File in which the next item is looked for.
    file: u32,
    /// Where that file begins in the space of all bytes.
    base: u64,
    /// Where in that file; `None` before it has been opened.
    at: Option<usize>,
    text: Text,
    /// The first item after the last range.
    ahead: Option<Found>,
    ranges: u32,
    /// TID block of the next range.
    block: u32,
    problems: Vec<Problem>,
}

/// The file that is being split. The buffer stays from one small file to the next.
#[derive(Debug, Default)]
struct Text {
    buffer: Vec<u8>,
    map: Option<Arc<Mapped>>,
}

#[derive(Debug)]
struct Found {
    item: Item,
    /// Where it begins in the space of all bytes.
    start: u64,
    map: Option<Arc<Mapped>>,
}

impl BlockRanges {
    /// All ranges of these inputs, none claimed yet.
    pub fn new(inputs: Arc<Inputs>) -> BlockRanges {
        BlockRanges { inputs, walk: Mutex::default() }
    }

    /// The next range, or `None` when all are claimed.
    pub fn claim(&self) -> Result<Option<BlockRange>> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = walk.ahead.take().or_else(|| walk.next(&self.inputs)) else {
            return Ok(None);
        };
        let end = first.start + range_bytes(self.inputs.total_bytes(), first.start);
        let mut range = BlockRange {
            number: walk.ranges,
            first_block: walk.block,
            bytes: 0,
            items: Vec::new(),
            _maps: Vec::new(),
        };
        let mut next = Some(first);
        while let Some(found) = next {
            if found.start >= end || range.items.len() == ITEMS_MAX {
                walk.ahead = Some(found);
                break;
            }
            let new_file =
                range.items.last().is_none_or(|last| last.file != found.item.file);
            range._maps.extend(found.map.filter(|_| new_file));
            range.bytes += found.item.len;
            range.items.push(found.item);
            next = walk.next(&self.inputs);
        }
        let blocks = (range.items.len() as u64).div_ceil(DOCUMENTS_PER_BLOCK);
        let block = u32::try_from(u64::from(walk.block) + blocks).map_err(|_| {
            Error::invalid("the inputs have more documents than TIDs can name")
        })?;
        walk.block = block;
        walk.ranges += 1;
        Ok(Some(range))
    }

    /// Files that turned out to be unreadable or without any document while ranges were
    /// claimed; complete once [`BlockRanges::claim`] has given `None`.
    pub fn problems(&self) -> Vec<Problem> {
        self.walk.lock().unwrap_or_else(PoisonError::into_inner).problems.clone()
    }
}

/// Length of the range that begins at `start` of `total` bytes.
fn range_bytes(total: u64, start: u64) -> u64 {
    let blocks = total.div_ceil(BLOCK);
    let left = blocks.saturating_sub(start / BLOCK);
    let mut size = (blocks / RANGES).next_power_of_two().clamp(BLOCKS_MIN, BLOCKS_MAX);
    while size > BLOCKS_MIN && left < size * RAMP_DOWN {
        size /= 2;
    }
    size * BLOCK
}

impl Walk {
    /// The next item of the inputs.
    fn next(&mut self, inputs: &Inputs) -> Option<Found> {
        loop {
            let file = inputs.files().get(self.file as usize)?;
            if file.format.whole_files() {
                let item = Item { file: self.file, offset: 0, len: file.size };
                let start = self.base;
                self.leave(file.size);
                return Some(Found { item, start, map: None });
            }
            let at = match self.at {
                Some(at) => at,
                None => match self.text.open(inputs, self.file, file.size) {
                    Ok(()) => 0,
                    Err(error) => {
                        self.problem(inputs, error.to_string());
                        self.leave(file.size);
                        continue;
                    }
                },
            };
            if let Some((begin, end)) = file.format.split(self.text.get(file.size), at)
            {
                debug_assert!(at <= begin && begin < end, "items ascend");
                self.at = Some(end);
                let (offset, len) = (begin as u64, (end - begin) as u64);
                return Some(Found {
                    item: Item { file: self.file, offset, len },
                    start: self.base + offset,
                    map: self.text.map.clone(),
                });
            }
            if at == 0 {
                let name = file.format.name();
                self.problem(inputs, format!("no document in it ({name})"));
            }
            self.leave(file.size);
        }
    }

    fn problem(&mut self, inputs: &Inputs, reason: String) {
        let file = inputs.files()[self.file as usize].path.display().to_string();
        self.problems.push(Problem { file, offset: 0, reason, skipped: true });
    }

    /// Goes on to the next file.
    fn leave(&mut self, size: u64) {
        self.file += 1;
        self.base += size;
        self.at = None;
        self.text.map = None;
    }
}

impl Text {
    fn open(&mut self, inputs: &Inputs, file: u32, size: u64) -> Result<()> {
        if size < MAP_FROM {
            return inputs.read(file, &mut self.buffer);
        }
        self.map = Some(inputs.map(file)?);
        Ok(())
    }

    fn get(&self, size: u64) -> &[u8] {
        let text = self.map.as_deref().map_or(&self.buffer[..], |map| &map[..]);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        &text[..text.len().min(size)]
    }
}
