//! Entries of the documents file: how one is coded, and those of a block range.
//!
//! An entry is a byte of flags, then what they ask for, then the length. Numbers are
//! varbytes (7 bits per byte, least significant first, top bit: more follow), signed
//! ones zigzag; "before" is the entry before in the TID block, or zeros:
//!
//! ```text
//! flag 1    offset in the TID block is not the one before + 1: by how much it is more
//! flag 2    another input file: signed difference to the one before; the byte offset
//!           is then expected to be 0
//! flag 4    byte offset is not where the document before ended: signed difference
//! flag 8    a date: signed difference to the last date in the block, seconds
//! always    length, bytes
//! ```
//!
//! Worked example, block 7: file 0, byte 0, 300 bytes, no date, then byte 300, 5 bytes,
//! date 3: `00 ac 02`, `08 06 05`.

use crate::tid::{DOCUMENTS_PER_BLOCK, MAX_OFFSET, Tid};

const TID_GAP: u8 = 1;
const OTHER_FILE: u8 = 2;
const BYTE_GAP: u8 = 4;
const DATED: u8 = 8;

/// Where a document lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DocumentEntry {
    /// Number of the input file in the catalog.
    pub file: u32,
    /// Where it begins in that file, bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub len: u64,
    /// Seconds since 1970 UTC, if it says.
    pub date: Option<i64>,
}

/// What entries are encoded against; both sides keep one per block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    tid_offset: u16,
    file: u32,
    end: u64,
    date: i64,
}

impl Before {
    /// Appends an entry; `tid_offset` is above the one before.
    pub(super) fn encode(
        &mut self,
        tid_offset: u16,
        entry: &DocumentEntry,
        out: &mut Vec<u8>,
    ) {
        let flags_at = out.len();
        let mut flags = 0;
        out.push(0);
        let gap = tid_offset - self.tid_offset - 1;
        if gap != 0 {
            flags |= TID_GAP;
            push_number(out, u64::from(gap));
        }
        if entry.file != self.file {
            flags |= OTHER_FILE;
            push_signed(out, i64::from(entry.file) - i64::from(self.file));
            self.end = 0;
        }
        if entry.offset != self.end {
            flags |= BYTE_GAP;
            push_signed(out, entry.offset.wrapping_sub(self.end).cast_signed());
        }
        if let Some(date) = entry.date {
            flags |= DATED;
            push_signed(out, date.wrapping_sub(self.date));
            self.date = date;
        }
        push_number(out, entry.len);
        out[flags_at] = flags;
        self.tid_offset = tid_offset;
        self.file = entry.file;
        self.end = entry.offset.wrapping_add(entry.len);
    }

    /// The entry at `*at`; `None` where the bytes break the rules.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
    ) -> Option<(u16, DocumentEntry)> {
        let flags = *bytes.get(*at)?;
        *at += 1;
        if flags & !(TID_GAP | OTHER_FILE | BYTE_GAP | DATED) != 0 {
            return None;
        }
        let mut gap = 0;
        if flags & TID_GAP != 0 {
            gap = read_number(bytes, at)?;
        }
        let tid_offset = gap.checked_add(u64::from(self.tid_offset) + 1)?;
        let tid_offset = u16::try_from(tid_offset).ok().filter(|o| *o <= MAX_OFFSET)?;
        let mut file = self.file;
        if flags & OTHER_FILE != 0 {
            let file_at = i64::from(file).checked_add(read_signed(bytes, at)?)?;
            file = u32::try_from(file_at).ok()?;
            self.end = 0;
        }
        let mut offset = self.end;
        if flags & BYTE_GAP != 0 {
            offset = offset.wrapping_add(read_signed(bytes, at)?.cast_unsigned());
        }
        let mut date = None;
        if flags & DATED != 0 {
            self.date = self.date.wrapping_add(read_signed(bytes, at)?);
            date = Some(self.date);
        }
        let len = read_number(bytes, at)?;
        self.tid_offset = tid_offset;
        self.file = file;
        self.end = offset.checked_add(len)?;
        Some((tid_offset, DocumentEntry { file, offset, len, date }))
    }
}

fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn push_signed(out: &mut Vec<u8>, value: i64) {
    push_number(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// All 64 bits, unlike the varbytes of posting lists.
fn read_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn read_signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let value = read_number(bytes, at)?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}

/// The documents of one block range, encoded by the worker that scans it; documents are
/// numbered as [`Tid::numbered`] does.
///
/// The bytes are, per TID block: its number u32, entries u32, length u32, entries.
#[derive(Clone, Debug)]
pub struct RangeDocuments {
    first_block: u32,
    documents: u64,
    bytes: Vec<u8>,
    /// The block that is being filled: its number, where it begins, its entries.
    open: Option<(u32, usize, u32)>,
    before: Before,
}

/// Bytes before the entries of a block in a range.
pub(super) const RANGE_BLOCK_HEADER: usize = 12;

impl RangeDocuments {
    /// The documents of a range whose first TID block is `first_block`; 0 when that is
    /// not known yet (see [`super::DocumentsWriter::add_range_at`]).
    pub fn new(first_block: u32) -> RangeDocuments {
        RangeDocuments {
            first_block,
            documents: 0,
            bytes: Vec::new(),
            open: None,
            before: Before::default(),
        }
    }

    /// Appends the range's next document and returns its TID.
    pub fn push(&mut self, entry: &DocumentEntry) -> Tid {
        let tid = Tid::numbered(self.first_block, self.documents);
        if self.open.is_none_or(|(block, ..)| block != tid.block) {
            self.seal();
            self.open = Some((tid.block, self.bytes.len(), 0));
            self.bytes.extend_from_slice(&tid.block.to_le_bytes());
            self.bytes.extend_from_slice(&[0; 8]);
            self.before = Before::default();
        }
        if let Some((.., entries)) = &mut self.open {
            *entries += 1;
        }
        self.before.encode(tid.offset, entry, &mut self.bytes);
        self.documents += 1;
        tid
    }

    /// Leaves the TID of the range's next document unused: it could not be indexed.
    pub fn skip(&mut self) {
        self.documents += 1;
    }

    /// Writes count and length into the header of the block that is being filled.
    fn seal(&mut self) {
        let Some((_, start, entries)) = self.open else { return };
        let len = self.bytes.len() - start - RANGE_BLOCK_HEADER;
        let len = u32::try_from(len).expect("an entry takes less than 64 bytes");
        let at = start + 4;
        self.bytes[at..at + 4].copy_from_slice(&entries.to_le_bytes());
        self.bytes[at + 4..at + 8].copy_from_slice(&len.to_le_bytes());
    }

    /// Documents so far.
    pub fn len(&self) -> u64 {
        self.documents
    }

    /// True before the first document.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// TID blocks that the range takes.
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.documents.div_ceil(DOCUMENTS_PER_BLOCK))
            .expect("TIDs were made for all of them")
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// What [`super::DocumentsWriter::add_range`] takes.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.seal();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_is_these_bytes() {
        let mut range = RangeDocuments::new(7);
        range.push(&DocumentEntry { file: 0, offset: 0, len: 300, date: None });
        range.push(&DocumentEntry { file: 0, offset: 300, len: 5, date: Some(3) });
        let bytes = range.into_bytes();
        assert_eq!(bytes[..12], [7, 0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0]);
        assert_eq!(bytes[12..], [0, 0xac, 2, 8, 6, 5]);
    }

    #[test]
    fn arbitrary_entries_give_an_error_or_a_value() {
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut bytes = [0u8; 24];
            for byte in &mut bytes {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte =
                    (seed >> 56) as u8 & if seed & 1 << 20 == 0 { 0xff } else { 0x0f };
            }
            let (mut before, mut at) = (Before::default(), 0);
            while at < bytes.len() {
                let Some((offset, entry)) = before.decode(&bytes, &mut at) else {
                    break;
                };
                assert!(
                    offset <= MAX_OFFSET
                        && entry.offset.checked_add(entry.len).is_some()
                );
            }
        }
    }
}
