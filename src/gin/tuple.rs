//! Entry tuples: a key on disk, with what follows it.
//!
//! Written, a tuple is a **head** (header and key area, up to the posting offset) to
//! which the encoder adds a segment, or a block number. Read, [`EntryTuple::parse`]
//! tests everything that the key's type lets it test, and brings the key back into the
//! form whose plain byte order is the tree's order. Keys order by column, then
//! category, then bytes. Answers to `itup.h`, `ginutil.c` and `ginentrypage.c`.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::gin::layout::{
    INLINE_BIT, NULLS_KEY_AT, TREE_MARK, TUPLE_HEADER, TUPLE_MAX, TUPLE_NULLS,
    TUPLE_RESERVED, TUPLE_SIZE_MASK, TUPLE_VARWIDTH, align8, get_u16, get_u32,
    join_block, split_block,
};
use crate::gin::page::Fault;
use crate::gin::pglz;
use crate::opclass::{KeyType, int4_key, int4_of, int8_key, int8_of};
use crate::posting;

/// What an entry stands for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Category {
    /// An ordinary key.
    Key = 0,
    /// A null among an item's keys.
    NullKey = 1,
    /// Items without any key.
    EmptyItem = 2,
    /// Items that are null.
    NullItem = 3,
}

impl TryFrom<u8> for Category {
    type Error = u8;

    fn try_from(byte: u8) -> Result<Category, u8> {
        match byte {
            0 => Ok(Category::Key),
            1 => Ok(Category::NullKey),
            2 => Ok(Category::EmptyItem),
            3 => Ok(Category::NullItem),
            other => Err(other),
        }
    }
}

/// Longest text with a header of one byte.
const SHORT_TEXT_MAX: usize = 126;
/// Bytes of a compressed text before the stream.
const COMPRESSED_HEADER: usize = 8;
/// Bits of a compressed text's raw length; above them the method, 0 for pglz.
const RAW_LENGTH_BITS: u32 = 30;
/// PostgreSQL has 32 columns at most.
pub const COLUMNS_MAX: usize = 32;

/// Writes a head into `out` (emptied first): everything before the posting offset, with
/// size and `t_tid` still zero. Fails with PostgreSQL's reason when the key is too long.
pub fn write_head(
    out: &mut Vec<u8>,
    columns: &[KeyType],
    column: u8,
    category: Category,
    key: &[u8],
) -> Result<()> {
    let Some(key_type) = columns.get(usize::from(column)) else {
        return Err(Error::invalid(format!(
            "column {} of an index with {} columns",
            u32::from(column) + 1,
            columns.len()
        )));
    };
    let multi = columns.len() > 1;
    let mut info = 0;
    out.clear();
    out.resize(TUPLE_HEADER, 0);
    if category != Category::Key {
        info |= TUPLE_NULLS;
        out.resize(NULLS_KEY_AT, 0);
        out[TUPLE_HEADER] = u8::from(multi);
    }
    if multi {
        out.extend_from_slice(&(u16::from(column) + 1).to_le_bytes());
    }
    let bad_key = || {
        Error::invalid(format!(
            "a key of {} bytes for category {category:?} of type {key_type:?}",
            key.len()
        ))
    };
    match (category, key_type) {
        (Category::Key, KeyType::Int4) => {
            let value = int4_of(key.try_into().map_err(|_| bad_key())?);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Category::Key, KeyType::Int8) => {
            let value = int8_of(key.try_into().map_err(|_| bad_key())?);
            out.resize(align8(out.len()), 0);
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Category::Key, KeyType::Text) => {
            info |= TUPLE_VARWIDTH;
            write_text(out, key)?;
        }
        (_, _) if key.is_empty() => {
            // The category byte counts only where the padding does not hold it anyway.
            let base = align8(out.len());
            out.push(category as u8);
            out.resize(base.max(out.len().next_multiple_of(2)), 0);
        }
        _ => return Err(bad_key()),
    }
    if category == Category::Key {
        out.resize(align8(out.len()), 0);
    }
    out[6..8].copy_from_slice(&info.to_le_bytes());
    Ok(())
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) -> Result<()> {
    if text.len() <= SHORT_TEXT_MAX {
        out.push(((text.len() + 1) << 1) as u8 | 1);
        out.extend_from_slice(text);
        return Ok(());
    }
    out.resize(out.len().next_multiple_of(4), 0);
    let room = TUPLE_MAX - out.len();
    if text.len() + 4 <= room {
        let header = u32::try_from((text.len() + 4) << 2).expect("fits a tuple");
        out.extend_from_slice(&header.to_le_bytes());
        out.extend_from_slice(text);
        return Ok(());
    }
    let raw = u32::try_from(text.len()).ok().filter(|raw| raw >> RAW_LENGTH_BITS == 0);
    let packed = pglz::compress(text, room - COMPRESSED_HEADER + 1);
    let (Some(raw), Some(packed)) = (raw, packed) else {
        let size = align8(out.len() + 4 + text.len());
        return Err(Error::value(if size > usize::from(TUPLE_SIZE_MASK) {
            format!(
                "index row requires {size} bytes, maximum size is {TUPLE_SIZE_MASK}"
            )
        } else {
            format!("index row size {size} exceeds maximum {TUPLE_MAX}")
        }));
    };
    let total = u32::try_from(COMPRESSED_HEADER + packed.len()).expect("fits a tuple");
    out.extend_from_slice(&(total << 2 | 2).to_le_bytes());
    out.extend_from_slice(&raw.to_le_bytes());
    out.extend_from_slice(&packed);
    Ok(())
}

/// Sets the size in a tuple's header.
pub fn set_size(tuple: &mut [u8], size: usize) {
    let info = get_u16(tuple, 6) & !TUPLE_SIZE_MASK;
    let size = u16::try_from(size).expect("a tuple has at most 2712 bytes");
    tuple[6..8].copy_from_slice(&(info | size).to_le_bytes());
}

/// Makes `t_tid` say: an inline list of `count` TIDs at `at`.
pub fn set_inline(tuple: &mut [u8], at: usize, count: u16) {
    let at = u32::try_from(at).expect("a tuple has at most 2712 bytes");
    tuple[..4].copy_from_slice(&split_block(at | INLINE_BIT));
    tuple[4..6].copy_from_slice(&count.to_le_bytes());
}

/// Makes `t_tid` say: a posting tree with this root.
pub fn set_tree(tuple: &mut [u8], root: u32) {
    tuple[..4].copy_from_slice(&split_block(root));
    tuple[4..6].copy_from_slice(&TREE_MARK.to_le_bytes());
}

/// Writes the downlink to `child` for the leaf or internal tuple `source`, of which
/// `key_end` bytes are header and key.
pub fn write_downlink(out: &mut Vec<u8>, source: &[u8], key_end: usize, child: u32) {
    out.clear();
    out.extend_from_slice(&source[..key_end]);
    out.resize(align8(key_end), 0);
    out[..4].copy_from_slice(&split_block(child));
    out[4..6].fill(0);
    set_size(out, align8(key_end));
}

/// A key in the form whose plain byte order is the tree's.
#[derive(Clone, Debug)]
pub enum KeyBytes<'a> {
    /// Text, plain on the page or decompressed.
    Text(Cow<'a, [u8]>),
    /// As `opclass::int4_key` makes them.
    Int4([u8; 4]),
    /// As `opclass::int8_key` makes them.
    Int8([u8; 8]),
    /// Categories other than `Key`.
    None,
}

impl KeyBytes<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            KeyBytes::Text(text) => text,
            KeyBytes::Int4(bytes) => bytes,
            KeyBytes::Int8(bytes) => bytes,
            KeyBytes::None => &[],
        }
    }
}

/// Where an entry's TIDs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostingPlace<'a> {
    /// In the tuple.
    Inline {
        /// How many the header promises; 0, with an empty segment, where VACUUM has
        /// removed the last one.
        count: u16,
        /// The segment.
        segment: posting::Segment<'a>,
    },
    /// In the tree with this root.
    Tree(u32),
}

/// An index tuple, its key read.
#[derive(Clone, Debug)]
pub struct EntryTuple<'a> {
    /// The whole tuple.
    pub bytes: &'a [u8],
    /// Column, from 0.
    pub column: u8,
    /// What it stands for.
    pub category: Category,
    /// The key.
    pub key: KeyBytes<'a>,
    /// Where a posting list starts: header, key, padding end here.
    pub key_end: usize,
}

/// Reads a text datum that starts at `at`; gives it and its end.
fn read_text(bytes: &[u8], at: usize) -> Result<(Cow<'_, [u8]>, usize), Fault> {
    let cut = || Fault::new("a text inside the tuple", format!("a cut one at {at}"));
    let first = *bytes.get(at).ok_or_else(cut)?;
    if first & 1 == 1 {
        let length = usize::from(first >> 1);
        if length == 0 {
            return Err(Fault::new(
                "a text in the tuple",
                "a pointer out of the tuple",
            ));
        }
        let text = bytes.get(at + 1..at + length).ok_or_else(cut)?;
        return Ok((Cow::Borrowed(text), at + length));
    }
    let start = at.next_multiple_of(4);
    if start + 4 > bytes.len() {
        return Err(cut());
    }
    let header = get_u32(bytes, start);
    let end = start + (header >> 2) as usize;
    if header & 3 == 0 && header >> 2 >= 4 {
        let text = bytes.get(start + 4..end).ok_or_else(cut)?;
        return Ok((Cow::Borrowed(text), end));
    }
    let stream = bytes.get(start + COMPRESSED_HEADER..end).ok_or_else(cut)?;
    if header & 3 != 2 {
        return Err(Fault::new("a text header", format!("0x{header:08x}")));
    }
    let raw = get_u32(bytes, start + 4);
    let method = raw >> RAW_LENGTH_BITS;
    if method != 0 {
        return Err(Fault::new("a key compressed by pglz", format!("method {method}")));
    }
    match pglz::decompress(stream, raw as usize) {
        Some(text) => Ok((Cow::Owned(text), end)),
        None => Err(Fault::new(
            format!("a compressed key of {raw} bytes"),
            "a broken pglz stream",
        )),
    }
}

impl<'a> EntryTuple<'a> {
    /// Reads the tuple's header and key for an index of these columns.
    pub fn parse(
        bytes: &'a [u8],
        columns: &[KeyType],
    ) -> Result<EntryTuple<'a>, Fault> {
        let cut =
            || Fault::new("a whole index tuple", format!("{} bytes", bytes.len()));
        if bytes.len() < 2 * TUPLE_HEADER {
            return Err(cut());
        }
        let info = get_u16(bytes, 6);
        let size = usize::from(info & TUPLE_SIZE_MASK);
        if size != bytes.len() {
            return Err(Fault::new(
                format!("a tuple of {} bytes as its line pointer says", bytes.len()),
                format!("{size} bytes in its header"),
            ));
        }
        let multi = columns.len() > 1;
        let null = info & TUPLE_NULLS != 0;
        let mut at = if null { NULLS_KEY_AT } else { TUPLE_HEADER };
        if bytes.len() < at + 4 {
            return Err(cut());
        }
        let mut column = 0;
        if multi {
            let number = usize::from(get_u16(bytes, at));
            if number == 0 || number > columns.len() {
                return Err(Fault::new(
                    format!("column 1 to {}", columns.len()),
                    format!("column {number}"),
                ));
            }
            column = number - 1;
            at += 2;
        }
        let key_type = columns.get(column).copied().unwrap_or(KeyType::Text);
        let text = key_type == KeyType::Text && !null;
        if info & TUPLE_RESERVED != 0 || (info & TUPLE_VARWIDTH != 0) != text {
            return Err(Fault::new(
                format!("the header of a tuple with a {key_type:?} key"),
                format!("t_info 0x{info:04x}"),
            ));
        }
        let (category, key, end) = if null {
            let bitmap = get_u32(bytes, TUPLE_HEADER);
            if bitmap != u32::from(multi) {
                return Err(Fault::new(
                    format!("null bitmap {}", u8::from(multi)),
                    format!("0x{bitmap:x}"),
                ));
            }
            match Category::try_from(bytes[at]) {
                Ok(category) if category != Category::Key => {}
                _ => {
                    let found = bytes[at].to_string();
                    return Err(Fault::new("null category 1 to 3", found));
                }
            }
            let category = Category::try_from(bytes[at]).expect("tested above");
            let end = align8(at).max((at + 1).next_multiple_of(2));
            (category, KeyBytes::None, end)
        } else {
            let (key, end) = match key_type {
                KeyType::Text => {
                    let (text, end) = read_text(bytes, at)?;
                    (KeyBytes::Text(text), end)
                }
                KeyType::Int4 => {
                    let at = at.next_multiple_of(4);
                    let value = get_u32(bytes, at).cast_signed();
                    (KeyBytes::Int4(int4_key(value)), at + 4)
                }
                KeyType::Int8 => {
                    let at = align8(at);
                    let value = bytes.get(at..at + 8).ok_or_else(cut)?;
                    let value = i64::from_le_bytes(value.try_into().expect("8 bytes"));
                    (KeyBytes::Int8(int8_key(value)), at + 8)
                }
            };
            (Category::Key, key, align8(end))
        };
        if end > bytes.len() {
            return Err(cut());
        }
        let column = u8::try_from(column).map_err(|_| cut())?;
        Ok(EntryTuple { bytes, column, category, key, key_end: end })
    }

    /// `t_tid`, block part.
    pub fn block(&self) -> u32 {
        join_block([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]])
    }

    /// `t_tid`, offset part.
    pub fn offset(&self) -> u16 {
        get_u16(self.bytes, 4)
    }

    /// Of a leaf tuple: where its TIDs are.
    pub fn postings(&self) -> Result<PostingPlace<'a>, Fault> {
        let (block, count) = (self.block(), self.offset());
        if count == TREE_MARK {
            let size = align8(self.key_end);
            return if size == self.bytes.len() {
                Ok(PostingPlace::Tree(block))
            } else {
                let found = format!("{} bytes", self.bytes.len());
                Err(Fault::new(format!("{size} bytes before a tree"), found))
            };
        }
        let at = (block & !INLINE_BIT) as usize;
        if block & INLINE_BIT == 0 || at != self.key_end {
            return Err(Fault::new(
                format!("an inline list at {}, or a tree", self.key_end),
                format!("t_tid ({block},{count})"),
            ));
        }
        if count == 0 {
            let segment = posting::Segment { first: 0, deltas: &[], stored: 0 };
            return Ok(PostingPlace::Inline { count, segment });
        }
        match posting::read_segment(&self.bytes[at..]) {
            Some(segment) => Ok(PostingPlace::Inline { count, segment }),
            None => Err(Fault::new("a whole posting list", "one cut by the tuple")),
        }
    }

    /// The order of the tree.
    pub fn cmp_key(&self, column: u8, category: Category, key: &[u8]) -> Ordering {
        self.column
            .cmp(&column)
            .then(self.category.cmp(&category))
            .then_with(|| self.key.as_slice().cmp(key))
    }

    /// The order of the tree between two tuples.
    pub fn cmp_tuple(&self, other: &EntryTuple<'_>) -> Ordering {
        self.cmp_key(other.column, other.category, other.key.as_slice())
    }

    /// The key for a message.
    pub fn describe(&self) -> String {
        describe_key(self.column, self.category, self.key.as_slice())
    }
}

/// A key for a message, shortened.
pub fn describe_key(column: u8, category: Category, key: &[u8]) -> String {
    const SHOWN: usize = 40;
    let column = u32::from(column) + 1;
    if category != Category::Key {
        return format!("{category:?} of column {column}");
    }
    let shown = &key[..key.len().min(SHOWN)];
    let dots = if key.len() > SHOWN { "…" } else { "" };
    format!("key \"{}\"{dots} of column {column}", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[KeyType] = &[KeyType::Int4, KeyType::Text, KeyType::Int8];

    fn tuple(
        columns: &[KeyType],
        column: u8,
        category: Category,
        key: &[u8],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        write_head(&mut out, columns, column, category, key).unwrap();
        let size = align8(out.len());
        out.resize(size, 0);
        set_size(&mut out, size);
        set_tree(&mut out, 7);
        out
    }

    #[test]
    fn every_key_type_and_category_comes_back_in_both_layouts() {
        let long = vec![b'k'; 130];
        let longer = vec![b'k'; 5000];
        let texts: [&[u8]; 6] =
            [b"", b"abc", &[b'x'; 126], &[b'x'; 127], &long, &longer];
        let mut cases: Vec<(usize, Category, Vec<u8>)> = Vec::new();
        cases.extend(texts.map(|text| (1, Category::Key, text.to_vec())));
        for value in [i32::MIN, -1, 0, 1, i32::MAX] {
            cases.push((0, Category::Key, int4_key(value).to_vec()));
            cases.push((2, Category::Key, int8_key(i64::from(value) << 20).to_vec()));
        }
        for category in [Category::NullKey, Category::EmptyItem, Category::NullItem] {
            cases.extend((0..3).map(|column| (column, category, Vec::new())));
        }
        for (column, category, key) in &cases {
            for single in [false, true] {
                let (columns, column) = if single {
                    (&COLUMNS[*column..=*column], 0)
                } else {
                    (COLUMNS, *column as u8)
                };
                let bytes = tuple(columns, column, *category, key);
                let read = EntryTuple::parse(&bytes, columns).unwrap();
                assert_eq!(read.cmp_key(column, *category, key), Ordering::Equal);
                assert_eq!(align8(read.key_end), bytes.len());
                assert_eq!(read.postings(), Ok(PostingPlace::Tree(7)));
            }
        }
    }

    #[test]
    fn the_longest_plain_text_key_has_2700_bytes() {
        let mut state = 7u64;
        let mut noise = |length: usize| -> Vec<u8> {
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            };
            (0..length).map(|_| byte()).collect()
        };
        let mut out = Vec::new();
        let mut write = |key: &[u8]| {
            let done = write_head(&mut out, &[KeyType::Text], 0, Category::Key, key);
            done.map(|()| out.len()).map_err(|e| e.to_string())
        };
        assert_eq!(write(&noise(2700)), Ok(2712));
        assert_eq!(
            write(&noise(2701)),
            Err("index row size 2720 exceeds maximum 2712".to_owned())
        );
        assert_eq!(
            write(&noise(9000)),
            Err("index row requires 9016 bytes, maximum size is 8191".to_owned())
        );
        assert!(write(&vec![b'a'; 100_000]).unwrap() < 1300);
    }

    #[test]
    fn no_cut_or_flipped_tuple_leaves_its_bytes() {
        let whole = tuple(&[KeyType::Text], 0, Category::Key, &[b'a'; 3000]);
        for cut in 0..whole.len() {
            assert!(EntryTuple::parse(&whole[..cut], &[KeyType::Text]).is_err());
        }
        for at in 6..20 {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(read) = EntryTuple::parse(&bytes, &[KeyType::Text]) {
                    assert!(read.key_end <= bytes.len());
                }
            }
        }
    }
}
