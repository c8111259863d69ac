//! What is on the pages, as plain structs in the shape of pageinspect's answers.
//!
//! [`page_header`], [`page_opaque`], [`leafpage_items`] and [`Index::meta`] have the
//! fields of `page_header`, `gin_page_opaque_info`, `gin_leafpage_items` and
//! `gin_metapage_info`; [`entry_items`] and [`posting_items`] show the pages for which
//! pageinspect has no function. [`stats`] and [`longest`] read the whole index. All
//! structs serialise with serde.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::error::Result;
use crate::gin::layout::{
    CHECKSUM_AT, COMPRESSED, DATA, DATA_AT, DELETED, ENTRY_CAPACITY, FLAG_NAMES,
    INVALID_BLOCK, LEAF, LINE_POINTER, LIST, META, POSTING_ITEM, PRUNE_AT, SPECIAL,
    get_u16, get_u32,
};
use crate::gin::page::{Fault, Page, tid_bytes};
use crate::gin::read::Index;
use crate::gin::tuple::{Category, EntryTuple, KeyBytes, PostingPlace};
use crate::opclass::{int4_of, int8_of};
use crate::posting;
use crate::tid::Tid;

/// As `page_header` answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PageHeader {
    /// Position in the write-ahead log.
    pub lsn: String,
    /// Checksum as stored; PostgreSQL shows it signed.
    pub checksum: i16,
    /// `pd_flags`.
    pub flags: u16,
    /// End of the low area.
    pub lower: u16,
    /// Start of the tuples.
    pub upper: u16,
    /// Start of the special area.
    pub special: u16,
    /// Bytes of a page.
    pub pagesize: u16,
    /// Layout version.
    pub version: u8,
    /// Transaction that deleted the page.
    pub prune_xid: u32,
}

/// As `gin_page_opaque_info` answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PageOpaque {
    /// Right sibling; 2^32 - 1 is none.
    pub rightlink: u32,
    /// Items on an internal page of a posting tree.
    pub maxoff: u16,
    /// Names of the flags, unknown bits in hex.
    pub flags: Vec<String>,
}

/// As `gin_leafpage_items` answers: one segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeafpageItem {
    /// First TID, `(block,offset)`.
    pub first_tid: String,
    /// Bytes of varbytes.
    pub nbytes: u16,
    /// All TIDs.
    pub tids: Vec<String>,
}

/// A key as people read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum KeyValue {
    /// `int4` or `int8`.
    Integer(i64),
    /// `text`; bytes that are no UTF-8 are replaced.
    Text(String),
    /// A category without a key.
    None,
}

/// An item of an entry page or pending list page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EntryItem {
    /// Item number, from 1.
    pub itemoffset: u16,
    /// Offset of the tuple in the page.
    pub offset: u16,
    /// Bytes of the tuple.
    pub itemlen: u16,
    /// Column, from 1 as in PostgreSQL.
    pub column: u8,
    /// What it stands for.
    pub category: Category,
    /// The key.
    pub key: KeyValue,
    /// On an internal page: the child.
    pub child: Option<u32>,
    /// On a leaf: root of the posting tree.
    pub posting_tree: Option<u32>,
    /// On a leaf: TIDs of the inline list.
    pub tids: Option<Vec<String>>,
    /// On a page of the pending list: the row.
    pub heap_tid: Option<String>,
}

/// An item of an internal page of a posting tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PostingItem {
    /// Item number, from 1.
    pub itemoffset: u16,
    /// Child page.
    pub child: u32,
    /// Its right bound; (0,0) is "plus infinity".
    pub key: String,
}

/// Kinds of pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// Block 0.
    Meta,
    /// Leaf of the entry tree.
    EntryLeaf,
    /// Internal page of the entry tree.
    EntryInternal,
    /// Leaf of a posting tree.
    PostingLeaf,
    /// Internal page of a posting tree.
    PostingInternal,
    /// Page of the pending list.
    Pending,
    /// Removed by VACUUM.
    Deleted,
    /// All zeros.
    Empty,
}

/// What a page holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Items {
    /// Nothing to list.
    None,
    /// Entries or pending keys.
    Entries(Vec<EntryItem>),
    /// Children in a posting tree.
    Postings(Vec<PostingItem>),
    /// Segments.
    Segments(Vec<LeafpageItem>),
}

/// Everything about a page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PageInfo {
    /// Its number.
    pub block: u32,
    /// Its kind.
    pub kind: PageKind,
    /// Header.
    pub header: PageHeader,
    /// Special area.
    pub opaque: PageOpaque,
    /// Right bound, on pages of posting trees.
    pub right_bound: Option<String>,
    /// What it holds.
    pub items: Items,
}

/// The pages of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindStats {
    /// Kind.
    pub kind: PageKind,
    /// How many.
    pub pages: u64,
    /// Bytes of room used on them, of what can be used: line pointers and tuples, or
    /// segments or posting items.
    pub used: u64,
    /// `used` in percent of the room.
    pub fill: f64,
}

/// Lists whose lengths share a power of two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LengthClass {
    /// Shortest length of the class.
    pub from: u64,
    /// Longest length of the class.
    pub to: u64,
    /// Entries.
    pub entries: u64,
    /// TIDs in their lists.
    pub tids: u64,
}

/// A whole index.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IndexStats {
    /// File size.
    pub bytes: u64,
    /// Pages.
    pub pages: u64,
    /// Levels of the entry tree.
    pub height: u32,
    /// Leaf entries.
    pub entries: u64,
    /// Of these, with a posting tree.
    pub posting_trees: u64,
    /// TIDs.
    pub postings: u64,
    /// Bits per TID in segments, headers included.
    pub bits_per_posting: f64,
    /// By kind of page.
    pub kinds: Vec<KindStats>,
    /// By length of the list.
    pub lengths: Vec<LengthClass>,
}

/// An entry with a long list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LongEntry {
    /// Column, from 1 as in PostgreSQL.
    pub column: u8,
    /// What it stands for.
    pub category: Category,
    /// The key.
    pub key: KeyValue,
    /// TIDs in its list.
    pub tids: u64,
    /// Root of its posting tree.
    pub posting_tree: Option<u32>,
}

/// The header of a page.
pub fn page_header(page: Page<'_>) -> PageHeader {
    let bytes = page.bytes();
    let size_version = get_u16(bytes, crate::gin::layout::SIZE_VERSION_AT);
    PageHeader {
        lsn: format!("{:X}/{:X}", get_u32(bytes, 0), get_u32(bytes, 4)),
        checksum: get_u16(bytes, CHECKSUM_AT).cast_signed(),
        flags: page.pd_flags(),
        lower: page.lower() as u16,
        upper: page.upper() as u16,
        special: page.special() as u16,
        pagesize: size_version & 0xff00,
        version: (size_version & 0xff) as u8,
        prune_xid: get_u32(bytes, PRUNE_AT),
    }
}

/// The special area of a page.
pub fn page_opaque(page: Page<'_>) -> PageOpaque {
    let flags = page.flags();
    let mut names: Vec<String> = FLAG_NAMES
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|&(_, name)| name.to_owned())
        .collect();
    let unknown = FLAG_NAMES.iter().fold(flags, |rest, (bit, _)| rest & !bit);
    if unknown != 0 {
        names.push(format!("{unknown:x}"));
    }
    PageOpaque {
        rightlink: page.rightlink().unwrap_or(INVALID_BLOCK),
        maxoff: page.maxoff() as u16,
        flags: names,
    }
}

/// Kind of a page.
pub fn page_kind(page: Page<'_>) -> PageKind {
    let flags = page.flags();
    match (flags & DATA != 0, flags & LEAF != 0) {
        _ if flags & DELETED != 0 => PageKind::Deleted,
        _ if flags & META != 0 => PageKind::Meta,
        _ if flags & LIST != 0 => PageKind::Pending,
        (true, true) => PageKind::PostingLeaf,
        (true, false) => PageKind::PostingInternal,
        (false, true) => PageKind::EntryLeaf,
        (false, false) => PageKind::EntryInternal,
    }
}

fn texts(tids: &[u64]) -> Vec<String> {
    tids.iter().map(|&tid| Tid::unpack(tid).to_string()).collect()
}

fn key_value(key: &KeyBytes<'_>) -> KeyValue {
    match key {
        KeyBytes::Text(text) => KeyValue::Text(String::from_utf8_lossy(text).into()),
        KeyBytes::Int4(bytes) => KeyValue::Integer(i64::from(int4_of(*bytes))),
        KeyBytes::Int8(bytes) => KeyValue::Integer(int8_of(*bytes)),
        KeyBytes::None => KeyValue::None,
    }
}

fn decode(segment: &posting::Segment<'_>) -> Result<Vec<u64>, Fault> {
    let mut tids = Vec::new();
    posting::decode_into(segment.first, segment.deltas, &mut tids)
        .map(|()| tids)
        .ok_or_else(|| Fault::new("differences of ascending TIDs", "others"))
}

/// The segments of a leaf of a posting tree.
pub fn leafpage_items(page: Page<'_>) -> Result<Vec<LeafpageItem>, Fault> {
    if page.flags() & COMPRESSED == 0 {
        return Err(Fault::new("a leaf in the format since 9.4", "an older one"));
    }
    let mut rest = page.segments()?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let segment = posting::read_segment(rest)
            .ok_or_else(|| Fault::new("whole segments", "a cut one"))?;
        items.push(LeafpageItem {
            first_tid: Tid::from_bytes(tid_bytes(rest, 0)).to_string(),
            nbytes: segment.deltas.len() as u16,
            tids: texts(&decode(&segment)?),
        });
        rest = &rest[segment.stored..];
    }
    Ok(items)
}

/// The items of an internal page of a posting tree.
pub fn posting_items(page: Page<'_>) -> Result<Vec<PostingItem>, Fault> {
    let items = page.maxoff();
    if DATA_AT + items * POSTING_ITEM > SPECIAL {
        return Err(Fault::new("at most 815 posting items", items.to_string()));
    }
    let item = |n: usize| {
        let (child, key) = page.posting_item(n);
        PostingItem { itemoffset: n as u16 + 1, child, key: key.to_string() }
    };
    Ok((0..items).map(item).collect())
}

/// The items of an entry page or a page of the pending list.
pub fn entry_items(index: &Index, page: Page<'_>) -> Result<Vec<EntryItem>, Fault> {
    let kind = page_kind(page);
    let item = |n: usize| {
        let bytes = page.tuple(n)?;
        let tuple = EntryTuple::parse(bytes, index.columns())?;
        let mut item = EntryItem {
            itemoffset: n as u16,
            offset: page.line_pointer(n).map_or(0, |line| line.offset) as u16,
            itemlen: bytes.len() as u16,
            column: tuple.column + 1,
            category: tuple.category,
            key: key_value(&tuple.key),
            child: None,
            posting_tree: None,
            tids: None,
            heap_tid: None,
        };
        match kind {
            PageKind::EntryLeaf => match tuple.postings()? {
                PostingPlace::Tree(root) => item.posting_tree = Some(root),
                PostingPlace::Inline { count: 0, .. } => item.tids = Some(Vec::new()),
                PostingPlace::Inline { segment, .. } => {
                    item.tids = Some(texts(&decode(&segment)?));
                }
            },
            PageKind::EntryInternal => item.child = Some(tuple.block()),
            _ => {
                let tid = Tid::new(tuple.block(), tuple.offset());
                item.heap_tid = Some(tid.to_string());
            }
        }
        Ok(item)
    };
    (1..=page.items()).map(item).collect()
}

/// Everything about a page.
pub fn page(index: &Index, block: u32) -> Result<PageInfo> {
    let page = index.page(block)?;
    let kind = page_kind(page);
    let items = match kind {
        PageKind::Meta | PageKind::Deleted | PageKind::Empty => Ok(Items::None),
        PageKind::PostingLeaf => leafpage_items(page).map(Items::Segments),
        PageKind::PostingInternal => posting_items(page).map(Items::Postings),
        PageKind::EntryLeaf | PageKind::EntryInternal | PageKind::Pending => {
            entry_items(index, page).map(Items::Entries)
        }
    };
    let posting = matches!(kind, PageKind::PostingLeaf | PageKind::PostingInternal);
    Ok(PageInfo {
        block,
        kind,
        header: page_header(page),
        opaque: page_opaque(page),
        right_bound: posting.then(|| page.right_bound().to_string()),
        items: items.map_err(|fault| index.corrupt(block, None, fault))?,
    })
}

/// Reads the whole index and counts.
pub fn stats(index: &Index) -> Result<IndexStats> {
    let mut kinds: Vec<KindStats> = Vec::new();
    let mut segment_bytes = 0;
    for block in 0..index.pages() {
        let zero = index.block(block).is_some_and(|b| b.iter().all(|&byte| byte == 0));
        let (kind, used) = if zero {
            (PageKind::Empty, 0)
        } else {
            let page = index.page(block)?;
            let kind = page_kind(page);
            let used = match kind {
                PageKind::PostingLeaf | PageKind::PostingInternal => {
                    page.lower().saturating_sub(DATA_AT)
                }
                PageKind::EntryLeaf | PageKind::EntryInternal | PageKind::Pending => {
                    page.items() * LINE_POINTER + SPECIAL - page.upper()
                }
                PageKind::Meta | PageKind::Deleted | PageKind::Empty => 0,
            };
            if kind == PageKind::PostingLeaf {
                segment_bytes += used as u64;
            }
            (kind, used)
        };
        let at = kinds.iter().position(|known| known.kind == kind);
        let known = at.unwrap_or_else(|| {
            kinds.push(KindStats { kind, pages: 0, used: 0, fill: 0.0 });
            kinds.len() - 1
        });
        kinds[known].pages += 1;
        kinds[known].used += used as u64;
    }
    kinds.sort_by_key(|known| known.kind);
    for known in &mut kinds {
        let room = match known.kind {
            PageKind::PostingLeaf | PageKind::PostingInternal => SPECIAL - DATA_AT,
            _ => ENTRY_CAPACITY,
        };
        known.fill = known.used as f64 * 100.0 / (known.pages * room as u64) as f64;
    }

    let mut lengths: Vec<LengthClass> = Vec::new();
    let (mut count, mut postings, mut trees) = (0, 0, 0);
    let mut entries = index.entries();
    while let Some(mut entry) = entries.next()? {
        segment_bytes += entry.postings.bytes_at_hand() as u64;
        let tids = entry.postings.count()?;
        count += 1;
        postings += tids;
        trees += u64::from(entry.postings.tree_root().is_some());
        // Class 0 is the empty list, class n the lengths of n bits.
        let class = (u64::BITS - tids.leading_zeros()) as usize;
        while lengths.len() <= class {
            let n = lengths.len() as u32;
            let from = if n == 0 { 0 } else { 1 << (n - 1) };
            let to = if n == 0 { 0 } else { from * 2 - 1 };
            lengths.push(LengthClass { from, to, entries: 0, tids: 0 });
        }
        lengths[class].entries += 1;
        lengths[class].tids += tids;
    }
    if lengths.first().is_some_and(|empty| empty.entries == 0) {
        lengths.remove(0);
    }
    Ok(IndexStats {
        bytes: u64::from(index.pages()) * crate::gin::layout::PAGE_SIZE as u64,
        pages: u64::from(index.pages()),
        height: index.height()?,
        entries: count,
        posting_trees: trees,
        postings,
        bits_per_posting: (segment_bytes * 8) as f64 / postings.max(1) as f64,
        kinds,
        lengths,
    })
}

/// The `most` entries with the longest lists, longest first.
pub fn longest(index: &Index, most: usize) -> Result<Vec<LongEntry>> {
    // Ordered by length; entries of one length keep the order of the tree.
    let mut heap: BinaryHeap<Reverse<(u64, Reverse<u64>)>> = BinaryHeap::new();
    let mut entries = index.entries();
    let mut number = 0;
    while let Some(mut entry) = entries.next()? {
        heap.push(Reverse((entry.postings.count()?, Reverse(number))));
        number += 1;
        if heap.len() > most {
            heap.pop();
        }
    }
    let mut chosen: Vec<(u64, u64)> = heap
        .into_iter()
        .map(|Reverse((tids, Reverse(number)))| (number, tids))
        .collect();
    chosen.sort_unstable();
    let mut out = Vec::with_capacity(chosen.len());
    let mut entries = index.entries();
    let mut at = 0;
    for (number, tids) in chosen {
        while let Some(entry) = entries.next()? {
            at += 1;
            if at > number {
                out.push(LongEntry {
                    column: entry.column + 1,
                    category: entry.category,
                    key: index.key_value(entry.column, entry.category, entry.key),
                    tids,
                    posting_tree: entry.postings.tree_root(),
                });
                break;
            }
        }
    }
    out.sort_by_key(|entry| Reverse(entry.tids));
    Ok(out)
}

impl Index {
    /// A key in memcmp order as people read it.
    pub fn key_value(&self, column: u8, category: Category, key: &[u8]) -> KeyValue {
        if category != Category::Key {
            return KeyValue::None;
        }
        let key_type = self.columns().get(usize::from(column));
        match (key_type, key.try_into(), key.try_into()) {
            (Some(crate::opclass::KeyType::Int4), Ok(bytes), _) => {
                KeyValue::Integer(i64::from(int4_of(bytes)))
            }
            (Some(crate::opclass::KeyType::Int8), _, Ok(bytes)) => {
                KeyValue::Integer(int8_of(bytes))
            }
            _ => KeyValue::Text(String::from_utf8_lossy(key).into_owned()),
        }
    }
}
