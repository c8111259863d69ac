//! Sorted runs: written once in key order, read from any key on.
//!
//! A run keeps a sparse index of the first keys of some of its blocks ([`SAMPLES_MAX`]
//! at most; every second one is dropped when there are more), from which a reader finds
//! the block to start at and the merge takes its splitters.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::codec::Codec;
use super::tape::{BlockReader, Tape, encode_block};
use crate::error::{Error, Result};
use crate::posting::{push_varbyte, read_varbyte};

/// Most first keys that a run remembers.
pub const SAMPLES_MAX: usize = 128;
/// Bytes of a first key that are remembered: long keys must not make the index of a run
/// grow with them.
const SAMPLE_KEY_MAX: usize = 64;
/// Encoded blocks are handed to the file in pieces of about this many bytes.
const WRITE_BUFFER: usize = 256 << 10;

/// Where a run lies on its tape.
#[derive(Debug)]
pub struct Run {
    /// Positions on the tape, as `Tape::end` gives them.
    pub extent: Range<u64>,
    /// First keys of some blocks, ascending, with the blocks' positions.
    pub samples: Vec<(Box<[u8]>, u64)>,
    /// Blocks that each sample stands for.
    pub stride: u64,
    /// Bytes of raw blocks.
    pub raw_bytes: u64,
    /// Bytes on the tape.
    pub stored_bytes: u64,
    /// Tuples.
    pub tuples: u64,
}

impl Run {
    /// Bytes of memory that the sparse index holds.
    pub fn memory(&self) -> usize {
        let keys: usize = self.samples.iter().map(|(key, _)| key.len() + 16).sum();
        keys + self.samples.capacity() * size_of::<(Box<[u8]>, u64)>()
    }

    /// Forgets every second sample, but never the first.
    pub fn thin(&mut self) {
        let mut nth = 0;
        self.samples.retain(|_| {
            nth += 1;
            nth % 2 == 1
        });
        self.samples.shrink_to_fit();
        self.stride *= 2;
    }

    /// The blocks among which every tuple with `from` ≤ key < `until` lies.
    fn blocks_for(&self, from: &[u8], until: Option<&[u8]>) -> Range<u64> {
        // What is remembered of a first key may be cut, and then orders before it. Below a
        // cut `from` it still belongs to a key below `from`.
        let cut = cut(from);
        let before = self.samples.partition_point(|(first, _)| &**first < cut);
        let start = match before {
            0 => self.extent.start,
            n => self.samples[n - 1].1,
        };
        let behind = until.and_then(|until| {
            self.samples
                .get(self.samples.partition_point(|(first, _)| &**first < until))
        });
        start..behind.map_or(self.extent.end, |(_, position)| *position)
    }
}

/// Writes one run; tuples must come in key order.
#[derive(Debug)]
pub struct RunWriter<'a> {
    tape: &'a mut Tape,
    codec: &'static dyn Codec,
    block_size: usize,
    raw: Vec<u8>,
    first_key: Vec<u8>,
    key: Vec<u8>,
    encoded: Vec<u8>,
    blocks: u64,
    run: Run,
}

impl std::fmt::Debug for dyn Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl<'a> RunWriter<'a> {
    /// A writer that appends to `tape` in raw blocks of about `block_size` bytes.
    pub fn new(
        tape: &'a mut Tape,
        codec: &'static dyn Codec,
        block_size: usize,
    ) -> RunWriter<'a> {
        let start = tape.end();
        RunWriter {
            tape,
            codec,
            block_size,
            raw: Vec::with_capacity(block_size),
            first_key: Vec::new(),
            key: Vec::new(),
            encoded: Vec::new(),
            blocks: 0,
            run: Run {
                extent: start..start,
                samples: Vec::new(),
                stride: 1,
                raw_bytes: 0,
                stored_bytes: 0,
                tuples: 0,
            },
        }
    }

    /// Appends a tuple; returns the bytes it takes in the raw block beside its payload.
    pub fn add(&mut self, key: &[u8], payload: &[u8]) -> Result<usize> {
        if self.run.tuples > 0 && key < self.key.as_slice() {
            let text = |key: &[u8]| key.escape_ascii().to_string();
            let (previous, got) = (text(&self.key), text(key));
            return Err(crate::error::ErrorKind::OutOfOrder { previous, got }.into());
        }
        if !self.raw.is_empty()
            && self.raw.len() + key.len() + payload.len() > self.block_size
        {
            self.end_block()?;
        }
        let shared = if self.raw.is_empty() {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
            0
        } else {
            common_prefix(&self.key, key)
        };
        let before = self.raw.len();
        push_varbyte(&mut self.raw, shared as u64);
        push_varbyte(&mut self.raw, (key.len() - shared) as u64);
        self.raw.extend_from_slice(&key[shared..]);
        push_varbyte(&mut self.raw, payload.len() as u64);
        let overhead = self.raw.len() - before;
        self.raw.extend_from_slice(payload);
        self.key.truncate(shared);
        self.key.extend_from_slice(&key[shared..]);
        self.run.tuples += 1;
        Ok(overhead)
    }

    /// Ends the block in hand, so that what follows does not share it; returns the bytes
    /// on the tape so far.
    pub fn end_block(&mut self) -> Result<u64> {
        if self.raw.is_empty() {
            return Ok(self.run.stored_bytes);
        }
        let before = self.encoded.len();
        let position = match self.tape {
            Tape::File(_) => {
                encode_block(&self.raw, self.codec, &mut self.encoded);
                self.tape.end() + before as u64
            }
            Tape::Memory(blocks) => {
                blocks.push(self.raw.as_slice().into());
                blocks.len() as u64 - 1
            }
        };
        if self.blocks.is_multiple_of(self.run.stride) {
            self.run.samples.push((cut(&self.first_key).into(), position));
            if self.run.samples.len() > SAMPLES_MAX {
                self.run.thin();
            }
        }
        self.blocks += 1;
        self.run.raw_bytes += self.raw.len() as u64;
        self.run.stored_bytes += match self.tape {
            Tape::File(_) => self.encoded.len() - before,
            Tape::Memory(_) => self.raw.len(),
        } as u64;
        self.raw.clear();
        if self.encoded.len() >= WRITE_BUFFER {
            self.flush()?;
        }
        Ok(self.run.stored_bytes)
    }

    fn flush(&mut self) -> Result<()> {
        if let Tape::File(file) = self.tape {
            file.append(&self.encoded)?;
            self.encoded.clear();
        }
        Ok(())
    }

    /// Ends the run.
    pub fn finish(mut self) -> Result<Run> {
        self.end_block()?;
        self.flush()?;
        self.run.extent.end = self.tape.end();
        Ok(self.run)
    }
}

fn cut(key: &[u8]) -> &[u8] {
    &key[..key.len().min(SAMPLE_KEY_MAX)]
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Reads a run's tuples in order, from a key on; lends one at a time.
#[derive(Debug)]
pub struct RunCursor {
    tape: Arc<Tape>,
    reader: BlockReader,
    raw: Vec<u8>,
    /// The block in hand, when the tape is in memory, and the block behind the run.
    memory_block: u64,
    memory_end: u64,
    at: usize,
    key: Vec<u8>,
    payload: Range<usize>,
    /// First bytes of the key, as a number that orders as they do.
    head: u128,
}

impl RunCursor {
    /// A cursor at the first tuple with a key ≥ `from`, which ends somewhere behind the
    /// last one with a key below `until`; `None` when there is none.
    pub fn open(
        tape: Arc<Tape>,
        run: &Run,
        from: &[u8],
        until: Option<&[u8]>,
        window: usize,
    ) -> Result<Option<RunCursor>> {
        let blocks = run.blocks_for(from, until);
        let mut cursor = RunCursor {
            tape,
            reader: BlockReader::new(blocks.start, blocks.end, window),
            raw: Vec::new(),
            memory_block: blocks.start,
            memory_end: blocks.end,
            at: 0,
            key: Vec::new(),
            payload: 0..0,
            head: 0,
        };
        if !cursor.load()? {
            return Ok(None);
        }
        while cursor.advance()? {
            if cursor.key.as_slice() >= from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    /// Moves to the next tuple; `false` at the run's end.
    pub fn advance(&mut self) -> Result<bool> {
        if self.at == self.block().len() && !self.next_block()? {
            return Ok(false);
        }
        let mut at = self.at;
        let block = self.block();
        let parts = read_tuple(block, &mut at, self.key.len());
        let Some((shared, suffix, payload)) = parts else {
            return Err(self.damage());
        };
        self.key.truncate(shared);
        // Borrowing by field: `block()` would borrow all of `self`.
        let block = match &*self.tape {
            Tape::File(_) => self.raw.as_slice(),
            Tape::Memory(blocks) => &blocks[self.memory_block as usize],
        };
        self.key.extend_from_slice(&block[suffix]);
        self.payload = payload;
        self.at = at;
        self.head = head_of(&self.key);
        Ok(true)
    }

    fn block(&self) -> &[u8] {
        match &*self.tape {
            Tape::File(_) => &self.raw,
            Tape::Memory(blocks) => &blocks[self.memory_block as usize],
        }
    }

    fn next_block(&mut self) -> Result<bool> {
        self.at = 0;
        self.key.clear();
        self.memory_block += 1;
        self.load()
    }

    fn load(&mut self) -> Result<bool> {
        match &*self.tape {
            Tape::File(file) => self.reader.read(file, &mut self.raw),
            Tape::Memory(_) => Ok(self.memory_block < self.memory_end),
        }
    }

    fn damage(&self) -> Error {
        let directory = match &*self.tape {
            Tape::File(file) => file.directory().to_path_buf(),
            Tape::Memory(_) => "memory".into(),
        };
        let place = format!("temporary file, byte {} of a block", self.at);
        Error::corrupt(
            &directory,
            place,
            "a tuple",
            "lengths that cross the block's end",
        )
    }

    /// The key of the tuple in hand.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The payload of the tuple in hand.
    pub fn payload(&self) -> &[u8] {
        &self.block()[self.payload.clone()]
    }

    /// Orders two cursors by key, then by the first `tie` bytes of the payload.
    pub fn compare(&self, other: &RunCursor, tie: usize) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(&other.key)).then_with(
            || {
                let cut = |payload: &[u8]| payload.len().min(tie);
                let (mine, theirs) = (self.payload(), other.payload());
                mine[..cut(mine)].cmp(&theirs[..cut(theirs)])
            },
        )
    }
}

/// The first 16 bytes as a number; shorter keys are filled up with zeros, so equal heads
/// leave the order open. The upper half alone orders by the first eight.
pub fn head_of(key: &[u8]) -> u128 {
    let mut head = [0; 16];
    let len = key.len().min(16);
    head[..len].copy_from_slice(&key[..len]);
    u128::from_be_bytes(head)
}

/// Shared length, suffix and payload of the tuple at `*at`; `None` when it does not fit
/// into the block or shares more than the key before has.
fn read_tuple(
    block: &[u8],
    at: &mut usize,
    key_len: usize,
) -> Option<(usize, Range<usize>, Range<usize>)> {
    let length = |at: &mut usize| usize::try_from(read_varbyte(block, at)?).ok();
    let shared = length(at)?;
    let suffix_len = length(at)?;
    let suffix = *at..at.checked_add(suffix_len)?;
    *at = suffix.end;
    let payload_len = length(at)?;
    let payload = *at..at.checked_add(payload_len)?;
    *at = payload.end;
    (shared <= key_len && *at <= block.len()).then_some((shared, suffix, payload))
}
