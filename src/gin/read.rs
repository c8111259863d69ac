//! The read side: a mapped index file, looked up, walked and listed.
//!
//! It moves through the trees as PostgreSQL's scans do, and so reads what PostgreSQL
//! wrote: half-full pages, the stale key that stands for "plus infinity" at the end of
//! a rightmost page, the right step after a split whose downlink is missing, lists that
//! VACUUM has emptied. Text must be in byte order, as in collation C.
//!
//! Nothing read is trusted. A page's checksum is verified when the page is first looked
//! at (a page that has none, from a cluster without checksums, is taken; one that has an
//! old one, from a cluster whose checksums were switched off, is refused), its header
//! and every line pointer before they are used; walks are bounded by the number of
//! pages. The file must not be shortened while it is open.
//!
//! Answers to `ginget.c` and `ginbtree.c`.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use crate::error::{Error, Result};
use crate::gin::guess;
use crate::gin::layout::{
    CHECKSUM_AT, DATA, DELETED, HEADER, INVALID_BLOCK, LEAF, LIST, META, META_BLOCK,
    META_LEN, PAGE_SIZE, ROOT_BLOCK, checksum, get_u16, get_u32,
};
use crate::gin::page::{Fault, Page};
pub use crate::gin::postings::Postings;
use crate::gin::tuple::{COLUMNS_MAX, Category, EntryTuple, PostingPlace};
use crate::mapped::Mapped;
use crate::opclass::KeyType;
use crate::tid::Tid;

/// The metapage; named as pageinspect's `gin_metapage_info` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Meta {
    /// First page of the pending list; 2^32 - 1 is none.
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

/// An open index file; see [`EntryEncoder`](crate::gin::EntryEncoder) for an example.
#[derive(Debug)]
pub struct Index {
    map: Mapped,
    columns: Vec<KeyType>,
    pages: u32,
    /// A bit per page whose checksum has been verified.
    verified: Box<[AtomicU64]>,
}

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
    index: &'a Index,
    /// Where to start, before the first step.
    start: Option<(u8, Category, Vec<u8>)>,
    /// Only keys of the start's column that begin with this.
    prefix: Option<(u8, Vec<u8>)>,
    /// The leaf, and the next item on it; `None` before the first step and at the end.
    leaf: Option<(u32, Page<'a>, usize)>,
    /// Leaves yet to be visited at most.
    steps: u32,
    /// The entry that is lent.
    tuple: Option<EntryTuple<'a>>,
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

impl Meta {
    pub(crate) fn of(page: Page<'_>) -> Meta {
        let meta = &page.bytes()[HEADER..HEADER + META_LEN];
        let count = |at: usize| {
            let (low, high) = (get_u32(meta, at), get_u32(meta, at + 4));
            (u64::from(high) << 32 | u64::from(low)).cast_signed()
        };
        Meta {
            pending_head: get_u32(meta, 0),
            pending_tail: get_u32(meta, 4),
            tail_free_size: get_u32(meta, 8),
            n_pending_pages: get_u32(meta, 12),
            n_pending_tuples: count(16),
            n_total_pages: get_u32(meta, 24),
            n_entry_pages: get_u32(meta, 28),
            n_data_pages: get_u32(meta, 32),
            n_entries: count(40),
            version: get_u32(meta, 48).cast_signed(),
        }
    }
}

impl Index {
    /// Opens and maps the file; without `columns` they are guessed from the tuples: an
    /// `int8` column whose keys all fit `int4` is then taken for one.
    pub fn open(path: &Path, columns: Option<&[KeyType]>) -> Result<Index> {
        let index = Index::map(path, columns)?;
        let length = index.map.len();
        if index.pages < 2 || !length.is_multiple_of(PAGE_SIZE) {
            return Err(Error::corrupt(
                path,
                "the file's length",
                "two or more pages of 8192 bytes",
                format!("{length} bytes"),
            ));
        }
        index.meta()?;
        Ok(index)
    }

    /// Maps the file, whatever is in it.
    pub(crate) fn map(path: &Path, columns: Option<&[KeyType]>) -> Result<Index> {
        let map = Mapped::open(path)?;
        let pages = u32::try_from(map.len() / PAGE_SIZE).ok();
        let pages = pages.filter(|&pages| pages < INVALID_BLOCK).ok_or_else(|| {
            let found = format!("{} bytes", map.len());
            Error::corrupt(path, "the file's length", "fewer than 2^32 pages", found)
        })?;
        let words = (pages as usize).div_ceil(64);
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        let mut index = Index { map, columns: Vec::new(), pages, verified };
        index.columns = match columns {
            Some(columns) if columns.is_empty() || columns.len() > COLUMNS_MAX => {
                return Err(Error::invalid(format!(
                    "an index has 1 to {COLUMNS_MAX} columns, not {}",
                    columns.len()
                )));
            }
            Some(columns) => columns.to_vec(),
            None => guess::columns(&index),
        };
        Ok(index)
    }

    /// Bytes of the file, and a hint that they will be read in order.
    pub(crate) fn bytes_in_order(&self) -> u64 {
        self.map.sequential();
        self.map.len() as u64
    }

    /// The columns' key types, given or guessed.
    pub fn columns(&self) -> &[KeyType] {
        &self.columns
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The error for a fault in a block.
    pub(crate) fn corrupt(&self, block: u32, item: Option<usize>, at: Fault) -> Error {
        let place = match item {
            Some(item) => format!("block {block}, item {item}"),
            None => format!("block {block}"),
        };
        Error::corrupt(self.path(), place, at.expected, at.found)
    }

    /// The bytes of a block, unverified.
    pub fn block(&self, block: u32) -> Option<&[u8; PAGE_SIZE]> {
        if block >= self.pages {
            return None;
        }
        self.map[block as usize * PAGE_SIZE..].first_chunk()
    }

    /// A page with its checksum and header tested.
    pub fn page(&self, block: u32) -> Result<Page<'_>> {
        let bytes = self.block(block).ok_or_else(|| {
            let expected = format!("a block below {}", self.pages);
            self.corrupt(block, None, Fault::new(expected, "a link to it"))
        })?;
        let (word, bit) = (&self.verified[block as usize / 64], 1 << (block % 64));
        if word.load(Memory::Relaxed) & bit == 0 {
            let stored = get_u16(bytes, CHECKSUM_AT);
            if stored != 0 {
                let computed = checksum(bytes, block);
                if stored != computed {
                    let fault = Fault::new(
                        format!("checksum {computed:04x}"),
                        format!("{stored:04x}"),
                    );
                    return Err(self.corrupt(block, None, fault));
                }
            }
            word.fetch_or(bit, Memory::Relaxed);
        }
        Page::new(bytes).map_err(|fault| self.corrupt(block, None, fault))
    }

    /// The metapage.
    pub fn meta(&self) -> Result<Meta> {
        let page = self.page(META_BLOCK)?;
        if page.flags() != META {
            let fault = Fault::new(
                "the flags of a metapage, 0x0008",
                format!("0x{:04x}", page.flags()),
            );
            return Err(self.corrupt(META_BLOCK, None, fault));
        }
        Ok(Meta::of(page))
    }

    /// A page of the entry tree.
    fn entry_page(&self, block: u32) -> Result<Page<'_>> {
        let page = self.page(block)?;
        if page.flags() & (DATA | DELETED | META | LIST) != 0 {
            let fault = Fault::new(
                "a page of the entry tree",
                format!("flags 0x{:04x}", page.flags()),
            );
            return Err(self.corrupt(block, None, fault));
        }
        Ok(page)
    }

    fn tuple<'a>(
        &'a self,
        block: u32,
        page: Page<'a>,
        item: usize,
    ) -> Result<EntryTuple<'a>> {
        page.tuple(item)
            .and_then(|bytes| EntryTuple::parse(bytes, &self.columns))
            .map_err(|fault| self.corrupt(block, Some(item), fault))
    }

    /// The first item from 1 to `until` (exclusive) whose key is not below the given
    /// one; `until` when all are.
    fn lower_bound(
        &self,
        block: u32,
        page: Page<'_>,
        until: usize,
        key: (u8, Category, &[u8]),
    ) -> Result<usize> {
        let (mut low, mut high) = (1, until);
        while low < high {
            let middle = low.midpoint(high);
            let tuple = self.tuple(block, page, middle)?;
            if tuple.cmp_key(key.0, key.1, key.2) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The leaf that has, or would have, the key, and the first item not below it
    /// (one after the last when the leaf is the rightmost and all are below).
    fn find(
        &self,
        column: u8,
        category: Category,
        key: &[u8],
    ) -> Result<(u32, Page<'_>, usize)> {
        let mut block = ROOT_BLOCK;
        for _ in 0..self.pages {
            let page = self.entry_page(block)?;
            let items = page.items();
            let rightlink = page.rightlink();
            let leaf = page.has(LEAF);
            if items == 0 && !leaf {
                let fault = Fault::new("items on an internal page", "none");
                return Err(self.corrupt(block, None, fault));
            }
            // The last key of a rightmost internal page means "plus infinity".
            let until = if leaf || rightlink.is_some() { items + 1 } else { items };
            let item = self.lower_bound(block, page, until, (column, category, key))?;
            block = match rightlink {
                Some(right) if item > items => right,
                _ if leaf => return Ok((block, page, item)),
                _ => self.tuple(block, page, item)?.block(),
            };
        }
        Err(self.runs_in_circles(block))
    }

    /// Levels of the entry tree.
    pub fn height(&self) -> Result<u32> {
        let mut block = ROOT_BLOCK;
        for height in 1..=self.pages {
            let page = self.entry_page(block)?;
            if page.has(LEAF) {
                return Ok(height);
            }
            block = self.tuple(block, page, 1)?.block();
        }
        Err(self.runs_in_circles(block))
    }

    pub(crate) fn runs_in_circles(&self, block: u32) -> Error {
        let fault = Fault::new("a tree", "links that run in a circle");
        self.corrupt(block, None, fault)
    }

    /// The TIDs of one key (in memcmp order; empty for other categories), if it is in
    /// the index. The pending list is not looked at.
    pub fn posting(
        &self,
        column: u8,
        category: Category,
        key: &[u8],
    ) -> Result<Option<Postings<'_>>> {
        let (block, page, item) = self.find(column, category, key)?;
        if item > page.items() {
            return Ok(None);
        }
        let tuple = self.tuple(block, page, item)?;
        if tuple.cmp_key(column, category, key) != Ordering::Equal {
            return Ok(None);
        }
        self.postings_of(block, item, &tuple).map(Some)
    }

    fn postings_of<'a>(
        &'a self,
        block: u32,
        item: usize,
        tuple: &EntryTuple<'a>,
    ) -> Result<Postings<'a>> {
        let place =
            tuple.postings().map_err(|fault| self.corrupt(block, Some(item), fault))?;
        Ok(match place {
            PostingPlace::Inline { count, segment } => {
                let start = tuple.key_end;
                let bytes = &tuple.bytes[start..start + segment.stored];
                Postings::inline(self, block, item, count, bytes)
            }
            PostingPlace::Tree(root) => Postings::tree(self, root),
        })
    }

    /// All entries of a text column whose key starts with `prefix`, in key order.
    pub fn prefix(&self, column: u8, prefix: &[u8]) -> Result<EntryIter<'_>> {
        if self.columns.get(usize::from(column)) != Some(&KeyType::Text) {
            return Err(Error::invalid(format!(
                "column {} of {} has no text keys, so there are no prefixes",
                u32::from(column) + 1,
                self.path().display()
            )));
        }
        let mut entries = self.entries();
        entries.start = Some((column, Category::Key, prefix.to_vec()));
        entries.prefix = Some((column, prefix.to_vec()));
        Ok(entries)
    }

    /// All entries in key order.
    pub fn entries(&self) -> EntryIter<'_> {
        EntryIter {
            index: self,
            start: Some((0, Category::Key, Vec::new())),
            prefix: None,
            leaf: None,
            steps: self.pages,
            tuple: None,
        }
    }

    /// What waits in the pending list; empty in files that ginmill wrote.
    pub fn pending(&self) -> Result<Vec<Pending>> {
        let meta = self.meta()?;
        let mut out = Vec::new();
        let mut block = meta.pending_head;
        for _ in 0..self.pages {
            if block == INVALID_BLOCK {
                return Ok(out);
            }
            let page = self.page(block)?;
            if !page.has(LIST) {
                let fault = Fault::new(
                    "a page of the pending list",
                    format!("flags 0x{:04x}", page.flags()),
                );
                return Err(self.corrupt(block, None, fault));
            }
            for item in 1..=page.items() {
                let tuple = self.tuple(block, page, item)?;
                out.push(Pending {
                    column: tuple.column,
                    category: tuple.category,
                    tid: Tid::new(tuple.block(), tuple.offset()),
                    key: tuple.key.as_slice().to_vec(),
                });
            }
            block = page.rightlink().unwrap_or(INVALID_BLOCK);
        }
        Err(self.runs_in_circles(block))
    }
}

impl<'a> EntryIter<'a> {
    /// The next entry.
    #[expect(clippy::should_implement_trait, reason = "it lends, and can fail")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        if let Some((column, category, key)) = self.start.take() {
            self.leaf = Some(self.index.find(column, category, &key)?);
        }
        let index = self.index;
        let (block, page, item) = loop {
            let Some((block, page, item)) = self.leaf else { return Ok(None) };
            if item <= page.items() {
                self.leaf = Some((block, page, item + 1));
                break (block, page, item);
            }
            self.leaf = None;
            let Some(right) = page.rightlink() else { return Ok(None) };
            if self.steps == 0 {
                return Err(index.runs_in_circles(right));
            }
            self.steps -= 1;
            let page = index.entry_page(right)?;
            if !page.has(LEAF) {
                let fault = Fault::new("a leaf right of a leaf", "an internal page");
                return Err(index.corrupt(right, None, fault));
            }
            self.leaf = Some((right, page, 1));
        };
        let tuple: &EntryTuple<'a> = self.tuple.insert(index.tuple(block, page, item)?);
        if let Some((column, prefix)) = &self.prefix
            && (tuple.column != *column
                || tuple.category != Category::Key
                || !tuple.key.as_slice().starts_with(prefix))
        {
            self.leaf = None;
            return Ok(None);
        }
        Ok(Some(Entry {
            column: tuple.column,
            category: tuple.category,
            postings: index.postings_of(block, item, tuple)?,
            key: tuple.key.as_slice(),
        }))
    }
}
