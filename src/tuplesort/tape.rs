//! Tapes: what sorted runs are written on, in a temporary file or in memory.
//!
//! A participant has one tape; its runs lie on it one behind the other. A run is a row
//! of blocks, each on its own:
//!
//! ```text
//! off  size  field                        raw block: tuples back to back
//! 0    4     raw length                   varbyte  bytes of the key shared with the
//! 4    4     stored length                         tuple before (0 for the first)
//! 8    1     codec id                     varbyte  bytes of the key that follow
//! 9    3     zero                         …        these bytes
//! 12   8     XXH3 over bytes 0..12        varbyte  length of the payload
//!            and the stored bytes         …        payload
//! 20   …     stored bytes
//! ```
//!
//! Integers are little-endian. The checksum covers what was written; every byte read
//! back is checked before it is believed. Tapes in memory hold raw blocks without
//! header or codec: nothing can happen to them on the way.

use xxhash_rust::xxh3::Xxh3;

use super::codec::{self, Codec};
use crate::error::{Error, Result};
use crate::tempspace::TempFile;

/// Bytes of a block before its stored bytes.
pub const BLOCK_HEADER: usize = 20;
const CHECKSUM_AT: usize = 12;
/// A stored block larger than this is damage, not data.
const STORED_MAX: usize = 1 << 30;

/// Something to append blocks to.
#[derive(Debug)]
pub enum Tape {
    /// On disk; positions are byte offsets.
    File(TempFile),
    /// In memory; positions are block numbers.
    Memory(Vec<Box<[u8]>>),
}

impl Tape {
    /// Where the next block will be appended.
    pub fn end(&self) -> u64 {
        match self {
            Tape::File(file) => file.len(),
            Tape::Memory(blocks) => blocks.len() as u64,
        }
    }

    /// Bytes of memory that the tape itself holds.
    pub fn memory(&self) -> usize {
        match self {
            Tape::File(_) => 0,
            Tape::Memory(blocks) => blocks.iter().map(|block| block.len() + 16).sum(),
        }
    }
}

/// Appends the header and the stored form of a raw block.
pub fn encode_block(raw: &[u8], codec: &dyn Codec, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + BLOCK_HEADER, 0);
    let mut id = codec.id();
    codec.encode(raw, out);
    if out.len() - start - BLOCK_HEADER >= raw.len() {
        out.truncate(start + BLOCK_HEADER);
        codec::Plain.encode(raw, out);
        id = codec::Plain.id();
    }
    let length = |len: usize| u32::try_from(len).expect("blocks stay below 4 GB");
    let stored = length(out.len() - start - BLOCK_HEADER);
    let header = &mut out[start..start + BLOCK_HEADER];
    header[..4].copy_from_slice(&length(raw.len()).to_le_bytes());
    header[4..8].copy_from_slice(&stored.to_le_bytes());
    header[8] = id;
    let sum = checksum(&out[start..start + CHECKSUM_AT], &out[start + BLOCK_HEADER..]);
    out[start + CHECKSUM_AT..start + BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(header: &[u8], stored: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(header);
    hash.update(stored);
    hash.digest()
}

/// Reads the blocks of a run that lies in a temporary file, through one window.
#[derive(Debug)]
pub struct BlockReader {
    window: Vec<u8>,
    at: usize,
    /// File offset behind the window's last byte, and the run's end.
    next: u64,
    end: u64,
    size: usize,
}

impl BlockReader {
    /// Reads from `start` to `end` with a window of `size` bytes (or one block).
    pub fn new(start: u64, end: u64, size: usize) -> BlockReader {
        BlockReader { window: Vec::new(), at: 0, next: start, end, size }
    }

    /// Puts the next block's raw bytes into `raw`; `false` at the run's end.
    pub fn read(&mut self, file: &TempFile, raw: &mut Vec<u8>) -> Result<bool> {
        if self.at == self.window.len() && self.next == self.end {
            return Ok(false);
        }
        self.fill(file, BLOCK_HEADER)?;
        let header = &self.window[self.at..self.at + BLOCK_HEADER];
        let raw_len = le32(&header[..4]);
        let stored_len = le32(&header[4..8]);
        if stored_len > STORED_MAX || raw_len > STORED_MAX {
            return Err(self.damage(file, "a block below 1 GB", "a longer one"));
        }
        self.fill(file, BLOCK_HEADER + stored_len)?;
        let block = &self.window[self.at..self.at + BLOCK_HEADER + stored_len];
        let (header, stored) = block.split_at(BLOCK_HEADER);
        let (header, sum) = header.split_at(CHECKSUM_AT);
        if checksum(header, stored).to_le_bytes() != sum {
            return Err(self.damage(file, "the block as written", "another checksum"));
        }
        let decoded = codec::with_id(header[8])
            .is_some_and(|codec| codec.decode(stored, raw_len, raw));
        if !decoded {
            return Err(self.damage(file, "an encoded block", "undecodable bytes"));
        }
        self.at += BLOCK_HEADER + stored_len;
        Ok(true)
    }

    /// Bytes of memory the window holds.
    pub fn memory(&self) -> usize {
        self.window.capacity()
    }

    fn fill(&mut self, file: &TempFile, need: usize) -> Result<()> {
        let have = self.window.len() - self.at;
        if have >= need {
            return Ok(());
        }
        let left = self.end - self.next;
        let more =
            (self.size.max(need) - have).min(left.try_into().unwrap_or(usize::MAX));
        if have + more < need {
            return Err(self.damage(file, "a whole block", "the end of the run"));
        }
        self.window.drain(..self.at);
        self.at = 0;
        if self.window.capacity() < have + more {
            self.window.reserve_exact(more);
        }
        self.window.resize(have + more, 0);
        file.read_at(&mut self.window[have..], self.next)?;
        self.next += more as u64;
        Ok(())
    }

    fn damage(&self, file: &TempFile, expected: &str, found: &str) -> Error {
        let offset = self.next - (self.window.len() - self.at) as u64;
        let place = format!("temporary file, byte {offset}");
        Error::corrupt(file.directory(), place, expected, found)
    }
}

fn le32(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempspace::TempSpace;

    fn written(blocks: &[&[u8]], flip: Option<usize>) -> Result<Vec<Vec<u8>>> {
        let dir = tempfile::tempdir().unwrap();
        let space = TempSpace::create(dir.path(), None)?;
        let mut bytes = Vec::new();
        blocks.iter().for_each(|raw| encode_block(raw, &codec::Lz4, &mut bytes));
        if let Some(at) = flip {
            bytes[at] ^= 1;
        }
        let mut file = space.file()?;
        file.append(&bytes)?;
        let mut reader = BlockReader::new(0, file.len(), 64);
        let (mut raw, mut all) = (Vec::new(), Vec::new());
        while reader.read(&file, &mut raw)? {
            all.push(raw.clone());
        }
        Ok(all)
    }

    #[test]
    fn blocks_come_back_whatever_the_window() {
        let long = vec![7; 1000];
        let blocks: [&[u8]; 3] = [b"abc", &long, b""];
        assert_eq!(written(&blocks, None).unwrap(), blocks);
    }

    #[test]
    fn every_flipped_byte_of_a_block_is_found() {
        let raw: Vec<u8> = (0..60).collect();
        for at in 0..BLOCK_HEADER + raw.len() {
            let error = written(&[&raw], Some(at)).expect_err("a flipped byte");
            assert!(
                error.to_string().contains("temporary file, byte 0"),
                "{at}: {error}"
            );
        }
    }
}
