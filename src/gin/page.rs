//! A page: made from scratch, and looked at without trust.
//!
//! [`PageBuf`] is a page being filled: line pointers grow upwards, tuples downwards, or
//! segments upwards. [`Page`] is a view of 8192 bytes of somebody else's file whose
//! header has been tested, so that its accessors cannot leave the page. Answers to
//! `bufpage.c`.

use crate::gin::layout::{
    DATA_AT, FLAGS_AT, HEADER, INVALID_BLOCK, LINE_POINTER, LOWER_AT, MAXOFF_AT,
    PAGE_SIZE, PD_FLAGS_AT, PD_FLAGS_KNOWN, RIGHT_BOUND_AT, RIGHTLINK_AT, SIZE_VERSION,
    SIZE_VERSION_AT, SPECIAL, SPECIAL_AT, UPPER_AT, get_u16, get_u32,
};
use crate::tid::Tid;

/// A page in the making.
#[derive(Clone, Debug)]
pub struct PageBuf {
    bytes: Box<[u8; PAGE_SIZE]>,
}

impl PageBuf {
    /// A fresh page with these GIN flags, no right link and nothing on it.
    pub fn new(flags: u16) -> PageBuf {
        let mut page = PageBuf { bytes: Box::new([0; PAGE_SIZE]) };
        page.reset(flags);
        page
    }

    /// Makes the page fresh again.
    pub fn reset(&mut self, flags: u16) {
        self.bytes.fill(0);
        self.set_u16(LOWER_AT, HEADER as u16);
        self.set_u16(UPPER_AT, SPECIAL as u16);
        self.set_u16(SPECIAL_AT, SPECIAL as u16);
        self.set_u16(SIZE_VERSION_AT, SIZE_VERSION);
        self.set_rightlink(INVALID_BLOCK);
        self.set_u16(FLAGS_AT, flags);
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        &self.bytes
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Puts plain bytes at `at` and ends the low area behind them.
    pub fn put_low(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        debug_assert!(end <= SPECIAL);
        self.bytes[at..end].copy_from_slice(bytes);
        self.set_u16(LOWER_AT, end as u16);
    }

    /// Ends the low area at `at`.
    pub fn set_lower(&mut self, at: usize) {
        self.set_u16(LOWER_AT, at as u16);
    }

    /// Puts bytes at `at`, wherever that is.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets the right link.
    pub fn set_rightlink(&mut self, block: u32) {
        self.put(RIGHTLINK_AT, &block.to_le_bytes());
    }

    /// Sets the number of posting items.
    pub fn set_maxoff(&mut self, items: u16) {
        self.set_u16(MAXOFF_AT, items);
    }

    /// Sets the right bound of a page of a posting tree.
    pub fn set_right_bound(&mut self, bound: Tid) {
        self.put(RIGHT_BOUND_AT, &bound.to_bytes());
    }

    /// Adds a tuple behind the ones before; the caller knows that there is room.
    pub fn add_tuple(&mut self, tuple: &[u8]) {
        let lower = usize::from(get_u16(&self.bytes[..], LOWER_AT));
        let upper = usize::from(get_u16(&self.bytes[..], UPPER_AT)) - tuple.len();
        debug_assert!(tuple.len().is_multiple_of(8) && lower + LINE_POINTER <= upper);
        self.put(upper, tuple);
        self.put(lower, &line_pointer(upper, tuple.len()).to_le_bytes());
        self.set_u16(LOWER_AT, (lower + LINE_POINTER) as u16);
        self.set_u16(UPPER_AT, upper as u16);
    }
}

/// A normal line pointer.
pub const fn line_pointer(offset: usize, length: usize) -> u32 {
    offset as u32 | 1 << 15 | (length as u32) << 17
}

/// A line pointer, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePointer {
    /// Offset of the tuple in the page.
    pub offset: usize,
    /// 1 is normal.
    pub flags: u8,
    /// Length of the tuple.
    pub length: usize,
}

/// Why bytes are not a page; whole sentence parts "expected …, found …".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What the format promises.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Fault {
    /// A fault of its two parts.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Fault {
        Fault { expected: expected.into(), found: found.into() }
    }
}

/// A page whose header has been tested.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    bytes: &'a [u8; PAGE_SIZE],
}

impl<'a> Page<'a> {
    /// Tests the header as PostgreSQL does when it reads a block, and that the special
    /// area is GIN's. A page of zeros is a fault too: nothing may refer to it.
    pub fn new(bytes: &'a [u8; PAGE_SIZE]) -> Result<Page<'a>, Fault> {
        let page = Page { bytes };
        let fault = |expected: &str, found: String| Err(Fault::new(expected, found));
        if page.upper() == 0 {
            return fault("a page", "an empty page of zeros".to_owned());
        }
        let version = get_u16(bytes, SIZE_VERSION_AT);
        if version != SIZE_VERSION {
            return fault("page size and version 0x2004", format!("0x{version:04x}"));
        }
        if page.special() != SPECIAL {
            return fault("pd_special 8184", page.special().to_string());
        }
        let (lower, upper) = (page.lower(), page.upper());
        if lower < HEADER || lower > upper || upper > SPECIAL {
            return fault(
                "24 <= pd_lower <= pd_upper <= 8184",
                format!("pd_lower {lower}, pd_upper {upper}"),
            );
        }
        let flags = page.pd_flags();
        if flags & !PD_FLAGS_KNOWN != 0 {
            return fault("no unknown bits in pd_flags", format!("0x{flags:04x}"));
        }
        Ok(page)
    }

    /// The bytes.
    pub fn bytes(&self) -> &'a [u8; PAGE_SIZE] {
        self.bytes
    }

    /// `pd_flags`.
    pub fn pd_flags(&self) -> u16 {
        get_u16(self.bytes, PD_FLAGS_AT)
    }

    /// `pd_lower`.
    pub fn lower(&self) -> usize {
        usize::from(get_u16(self.bytes, LOWER_AT))
    }

    /// `pd_upper`.
    pub fn upper(&self) -> usize {
        usize::from(get_u16(self.bytes, UPPER_AT))
    }

    /// `pd_special`.
    pub fn special(&self) -> usize {
        usize::from(get_u16(self.bytes, SPECIAL_AT))
    }

    /// GIN's flags.
    pub fn flags(&self) -> u16 {
        get_u16(self.bytes, FLAGS_AT)
    }

    /// Whether all of these flags are set.
    pub fn has(&self, flags: u16) -> bool {
        self.flags() & flags == flags
    }

    /// Block of the right sibling.
    pub fn rightlink(&self) -> Option<u32> {
        let block = get_u32(self.bytes, RIGHTLINK_AT);
        (block != INVALID_BLOCK).then_some(block)
    }

    /// `maxoff` of the special area.
    pub fn maxoff(&self) -> usize {
        usize::from(get_u16(self.bytes, MAXOFF_AT))
    }

    /// Tuples on an entry page.
    pub fn items(&self) -> usize {
        (self.lower() - HEADER) / LINE_POINTER
    }

    /// The line pointer of an item, from 1.
    pub fn line_pointer(&self, item: usize) -> Option<LinePointer> {
        if item == 0 || item > self.items() {
            return None;
        }
        let word = get_u32(self.bytes, HEADER + (item - 1) * LINE_POINTER);
        Some(LinePointer {
            offset: (word & 0x7fff) as usize,
            flags: (word >> 15 & 3) as u8,
            length: (word >> 17) as usize,
        })
    }

    /// The bytes of an item, from 1.
    pub fn tuple(&self, item: usize) -> Result<&'a [u8], Fault> {
        let line = self.line_pointer(item).ok_or_else(|| {
            Fault::new(
                format!("at most {} items", self.items()),
                format!("item {item}"),
            )
        })?;
        let good = line.flags == 1
            && line.offset >= self.upper()
            && line.offset.is_multiple_of(8)
            && line.length > 0
            && line.offset + line.length <= SPECIAL;
        if !good {
            return Err(Fault::new(
                format!("a normal line pointer into {} to 8184", self.upper()),
                format!(
                    "offset {}, length {}, flags {}",
                    line.offset, line.length, line.flags
                ),
            ));
        }
        Ok(&self.bytes[line.offset..line.offset + line.length])
    }

    /// Right bound of a page of a posting tree; (0,0) on the rightmost.
    pub fn right_bound(&self) -> Tid {
        Tid::from_bytes(tid_bytes(self.bytes, RIGHT_BOUND_AT))
    }

    /// The segments of a leaf of a posting tree.
    pub fn segments(&self) -> Result<&'a [u8], Fault> {
        self.bytes.get(DATA_AT..self.lower()).ok_or_else(|| {
            Fault::new("pd_lower of at least 32", self.lower().to_string())
        })
    }

    /// Child and key of a posting item, from 0; the caller has tested `maxoff`.
    pub fn posting_item(&self, item: usize) -> (u32, Tid) {
        let at = DATA_AT + item * crate::gin::layout::POSTING_ITEM;
        let b = self.bytes;
        let child =
            crate::gin::layout::join_block([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        (child, Tid::from_bytes(tid_bytes(b, at + 4)))
    }
}

/// The six bytes of a TID; the caller knows that they are there.
pub fn tid_bytes(bytes: &[u8], at: usize) -> [u8; 6] {
    let mut out = [0; 6];
    out.copy_from_slice(&bytes[at..at + 6]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_pointer_is_postgresqls_word() {
        assert_eq!(line_pointer(8160, 24), 0x0030_9fe0);
    }

    #[test]
    fn a_tuple_comes_back_and_a_bad_header_or_line_pointer_is_named() {
        let mut page = PageBuf::new(2);
        page.add_tuple(&[7; 24]);
        let view = Page::new(page.bytes()).unwrap();
        assert_eq!((view.items(), view.flags(), view.rightlink()), (1, 2, None));
        assert_eq!(view.tuple(1).unwrap(), [7; 24]);
        assert_eq!(view.tuple(2).unwrap_err().found, "item 2");

        let mut bad = page.clone();
        bad.put(HEADER, &line_pointer(8168, 24).to_le_bytes());
        let fault = Page::new(bad.bytes()).unwrap().tuple(1).unwrap_err();
        assert_eq!(fault.found, "offset 8168, length 24, flags 1");
        for (at, byte) in [(12, 0), (15, 0xff), (16, 0), (18, 0), (10, 8)] {
            let mut bad = page.clone();
            bad.put(at, &[byte]);
            assert!(Page::new(bad.bytes()).is_err(), "byte {at}");
        }
    }
}
