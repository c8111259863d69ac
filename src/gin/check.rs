//! Verifies a whole index file, more strictly than amcheck's `gin_index_check`.
//!
//! Two passes. The first reads every page in file order and tests what a page tells by
//! itself: checksum, header, flags, line pointers. The second walks the trees from the
//! root (posting trees are in `check_postings.rs`) and tests what
//! pages promise about each other: key order on and across pages, downlinks equal to the
//! last key of the child, one depth, one chain of right links per level, every page with
//! exactly one parent. What is then left over must be empty or deleted.
//!
//! PostgreSQL's own files pass, also after inserts and VACUUM, which leave lists without
//! TIDs, stale bytes between tuples and line pointers, and old counts on the metapage.
//! A file that a [`Loader`](crate::gin::Loader) wrote shows none of this, and is held
//! to it. It is known by its LSNs, all zero, and its right links, all of which point
//! forward: a page split by PostgreSQL leaves one that points back.
//!
//! A damage is reported where it shows. Where a page cannot be read or a link followed,
//! what is below it stays unknown, and then counts and pages that nothing refers to are
//! not held against the file. Text is expected in byte order.

use std::path::Path;

use crate::error::Result;
use crate::gin::layout::{
    CHECKSUM_AT, COMPRESSED, DATA, DATA_LEAF, DELETED, HEADER, INCOMPLETE_SPLIT,
    INVALID_BLOCK, ITEMS_MAX, LEAF, LINE_POINTER, LIST, LIST_FULLROW, META, META_BLOCK,
    META_LEN, PRUNE_AT, ROOT_BLOCK, SPECIAL, TUPLE_HEADER, TUPLE_MAX, UPPER_AT,
    VERSION, align8, checksum, get_u16, get_u32,
};
use crate::gin::page::{Fault, Page};
use crate::gin::read::{Index, Meta};
use crate::gin::tuple::{EntryTuple, KeyBytes, PostingPlace, write_head};
use crate::opclass::KeyType;

/// More levels than an entry tree can have.
const DEPTH_MAX: usize = 32;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Damage {
    /// Block with the damage.
    pub block: u32,
    /// Item on it, from 1.
    pub item: Option<u16>,
    /// What was expected and what was found.
    pub what: String,
}

/// What a check has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct CheckStats {
    /// Pages of the file.
    pub pages: u64,
    /// Pages of the entry tree.
    pub entry_pages: u64,
    /// Pages of posting trees.
    pub data_pages: u64,
    /// Pages of the pending list.
    pub pending_pages: u64,
    /// Deleted and empty pages.
    pub unused_pages: u64,
    /// Leaf entries.
    pub entries: u64,
    /// TIDs.
    pub postings: u64,
    /// Whether the pages have checksums.
    pub checksums: bool,
    /// Whether a loader wrote the file, which is then held to stricter rules.
    pub built: bool,
    /// Damages reported.
    pub damages: u64,
}

/// Verifies everything and reports every broken rule to `on_damage`; without `columns`
/// they are guessed. An error is returned only when the file cannot be read.
pub fn check(
    path: &Path,
    columns: Option<&[KeyType]>,
    on_damage: &mut dyn FnMut(Damage),
) -> Result<CheckStats> {
    let index = Index::map(path, columns)?;
    let mut checker = Checker {
        pages: vec![State::Unseen; index.pages() as usize],
        index: &index,
        on_damage,
        incomplete: false,
        stats: CheckStats { pages: u64::from(index.pages()), ..CheckStats::default() },
    };
    checker.run();
    Ok(checker.stats)
}

/// What is known of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not yet read.
    Unseen,
    /// Cannot be used; reported.
    Bad,
    /// All zeros: legal as long as nothing refers to it.
    Zero,
    /// Readable, and nothing has referred to it so far.
    Free,
    /// Part of a tree or list.
    Taken,
}

pub(super) struct Checker<'c> {
    pub(super) index: &'c Index,
    on_damage: &'c mut dyn FnMut(Damage),
    pages: Vec<State>,
    /// Something of a tree could not be reached.
    pub(super) incomplete: bool,
    pub(super) stats: CheckStats,
}

/// What a level of the entry tree was like so far.
#[derive(Default)]
struct Level<'c> {
    /// The page before, and its right link.
    page: Option<(u32, Option<u32>)>,
    /// The key before, on this page or the one before.
    key: Option<EntryTuple<'c>>,
}

#[derive(Default)]
struct EntryWalk<'c> {
    levels: Vec<Level<'c>>,
    leaf_depth: Option<usize>,
}

impl EntryWalk<'_> {
    /// What comes next from this level down is not held against what is missing.
    fn forget(&mut self, depth: usize) {
        self.levels.iter_mut().skip(depth).for_each(|level| *level = Level::default());
    }
}

impl<'c> Checker<'c> {
    /// Reports a broken rule.
    pub(super) fn damage(
        &mut self,
        block: u32,
        item: Option<usize>,
        expected: impl AsRef<str>,
        found: impl AsRef<str>,
    ) {
        self.stats.damages += 1;
        (self.on_damage)(Damage {
            block,
            item: item.and_then(|item| u16::try_from(item).ok()),
            what: format!("expected {}, found {}", expected.as_ref(), found.as_ref()),
        });
    }

    fn fault(&mut self, block: u32, item: Option<usize>, fault: &Fault) {
        self.damage(block, item, &fault.expected, &fault.found);
    }

    fn run(&mut self) {
        let length = self.index.bytes_in_order();
        let whole =
            u64::from(self.index.pages()) * crate::gin::layout::PAGE_SIZE as u64;
        if length != whole {
            let found = format!("{} bytes more", length - whole);
            self.damage(self.index.pages(), None, "whole pages of 8192 bytes", found);
        }
        if self.index.pages() < 2 {
            let found = format!("a file of {length} bytes");
            self.damage(META_BLOCK, None, "a metapage and a root", found);
            return;
        }
        self.look_at_all();
        for block in 0..self.index.pages() {
            self.pages[block as usize] = self.single_page(block);
        }
        let mut walk = EntryWalk::default();
        self.entry_page(&mut walk, ROOT_BLOCK, 0, None);
        for level in walk.levels {
            if let Some((block, Some(right))) = level.page {
                self.damage(
                    block,
                    None,
                    "no right link on the last page of a level",
                    format!("{right}"),
                );
            }
        }
        self.metapage();
        self.left_over();
    }

    /// Finds out whether there are checksums and whether a loader wrote the file.
    fn look_at_all(&mut self) {
        self.stats.built = true;
        for block in 0..self.index.pages() {
            let Some(bytes) = self.index.block(block) else { continue };
            if get_u16(bytes, UPPER_AT) == 0 {
                continue;
            }
            self.stats.checksums |= get_u16(bytes, CHECKSUM_AT) != 0;
            let right = get_u32(bytes, SPECIAL);
            let lsn = get_u32(bytes, 0) | get_u32(bytes, 4);
            self.stats.built &= lsn == 0 && (right == INVALID_BLOCK || right > block);
        }
    }

    /// Tests what a page tells by itself.
    fn single_page(&mut self, block: u32) -> State {
        let Some(bytes) = self.index.block(block) else { return State::Bad };
        if bytes.iter().all(|&byte| byte == 0) {
            return State::Zero;
        }
        if self.stats.checksums {
            let (stored, computed) =
                (get_u16(bytes, CHECKSUM_AT), checksum(bytes, block));
            if stored != computed {
                let expected = format!("checksum {computed:04x}");
                self.damage(block, None, expected, format!("{stored:04x}"));
            }
        }
        let page = match Page::new(bytes) {
            Ok(page) => page,
            Err(fault) => {
                self.fault(block, None, &fault);
                return State::Bad;
            }
        };
        let flags = page.flags();
        let legal = match flags {
            META => block == META_BLOCK,
            0 | LEAF | DATA | DATA_LEAF => block != META_BLOCK,
            LIST | DELETED => block > ROOT_BLOCK,
            _ => {
                block > ROOT_BLOCK
                    && (flags == LIST | LIST_FULLROW
                        || flags & !(LEAF | COMPRESSED) == DATA | DELETED)
            }
        };
        if flags & INCOMPLETE_SPLIT != 0 {
            self.damage(block, None, "a finished split", "an incomplete one");
        } else if !legal {
            let found = format!("0x{flags:04x}");
            self.damage(block, None, "page flags that GIN uses here", found);
            return State::Bad;
        }
        if flags & DELETED != 0 {
            return State::Free;
        }
        if flags & (LIST | DATA) == 0 || flags & LEAF != 0 {
            let maxoff = page.maxoff();
            if maxoff != 0 {
                self.damage(block, None, "maxoff 0", maxoff.to_string());
            }
        }
        let prune = get_u32(bytes, PRUNE_AT);
        if prune != 0 {
            self.damage(block, None, "pd_prune_xid 0", prune.to_string());
        }
        if flags & (META | DATA) != 0 {
            if page.upper() != SPECIAL {
                self.damage(block, None, "pd_upper 8184", page.upper().to_string());
            }
        } else {
            self.line_pointers(block, page);
        }
        let hole = &bytes[page.lower()..page.upper()];
        if self.stats.built
            && let Some(at) = hole.iter().position(|&byte| byte != 0)
        {
            let at = page.lower() + at;
            let found = format!("0x{:02x} at byte {at}", bytes[at]);
            self.damage(block, None, "zeros between pd_lower and pd_upper", found);
        }
        State::Free
    }

    /// Tuples must tile the upper area.
    fn line_pointers(&mut self, block: u32, page: Page<'_>) {
        if !(page.lower() - HEADER).is_multiple_of(LINE_POINTER) {
            self.damage(block, None, "whole line pointers", page.lower().to_string());
        }
        let items = page.items();
        if items > ITEMS_MAX {
            let expected = format!("at most {ITEMS_MAX} items");
            self.damage(block, None, expected, items.to_string());
        }
        let mut tuples = Vec::with_capacity(items);
        for item in 1..=items {
            match page.tuple(item) {
                Ok(tuple) => {
                    let offset = page.line_pointer(item).map_or(0, |line| line.offset);
                    tuples.push((offset, tuple.len(), item));
                }
                Err(fault) => self.fault(block, Some(item), &fault),
            }
        }
        if tuples.len() < items {
            return;
        }
        tuples.sort_unstable();
        let mut at = page.upper();
        for (offset, length, item) in tuples {
            if offset != at {
                let expected = format!("the next tuple at {at}");
                self.damage(block, Some(item), expected, offset.to_string());
                return;
            }
            at += length;
        }
        if at != SPECIAL {
            self.damage(block, None, "tuples up to byte 8184", at.to_string());
        }
    }

    /// Takes the page that `referrer` refers to, if it can be used and is still free.
    pub(super) fn take(
        &mut self,
        block: u32,
        referrer: (u32, Option<usize>),
    ) -> Option<Page<'c>> {
        let (from, item) = referrer;
        let state = self.pages.get(block as usize).copied();
        let problem = match state {
            None => Some(format!("a link to block {block}, past the end of the file")),
            Some(State::Zero) => Some(format!("a link to block {block}, all zeros")),
            Some(State::Taken) => {
                Some(format!("a link to block {block}, which has its place already"))
            }
            Some(State::Unseen | State::Bad | State::Free) => None,
        };
        if let Some(found) = problem {
            self.damage(from, item, "a link to a page of its own", found);
            self.incomplete = true;
            return None;
        }
        self.pages[block as usize] = State::Taken;
        if state == Some(State::Bad) {
            self.incomplete = true;
            return None;
        }
        Page::new(self.index.block(block)?).ok()
    }

    /// Walks a page of the entry tree and what is below it. `upper` is the key of its
    /// downlink; none for "plus infinity".
    fn entry_page(
        &mut self,
        walk: &mut EntryWalk<'c>,
        block: u32,
        depth: usize,
        link: Option<(u32, usize, Option<EntryTuple<'c>>)>,
    ) {
        let referrer =
            link.as_ref().map_or((META_BLOCK, None), |(b, item, _)| (*b, Some(*item)));
        if depth == DEPTH_MAX {
            self.incomplete = true;
            let found = "a deeper one".to_owned();
            self.damage(block, None, format!("a tree of {DEPTH_MAX} levels"), found);
            return;
        }
        if walk.levels.len() == depth {
            walk.levels.push(Level::default());
        }
        let page = self.take(block, referrer);
        let page = page.filter(|page| {
            let right = page.flags() & !(LEAF | INCOMPLETE_SPLIT) == 0;
            if !right {
                let found = format!("flags 0x{:04x}", page.flags());
                self.damage(block, None, "a page of the entry tree", found);
                self.incomplete = true;
            }
            right
        });
        let Some(page) = page else {
            walk.forget(depth);
            return;
        };
        self.stats.entry_pages += 1;
        let before = walk.levels[depth].page.replace((block, page.rightlink()));
        if let Some((left, right)) = before
            && right != Some(block)
        {
            let expected = format!("right link {block}");
            self.damage(left, None, expected, format!("{right:?}"));
        }
        if page.has(LEAF) {
            let expected = *walk.leaf_depth.get_or_insert(depth);
            if expected != depth {
                let expected = format!("all leaves at depth {expected}");
                self.damage(block, None, expected, format!("one at {depth}"));
            }
        }
        let items = page.items();
        if items == 0 && !(block == ROOT_BLOCK && page.has(LEAF)) {
            self.damage(block, None, "items on the page", "none");
        }
        for item in 1..=items {
            self.entry(walk, block, page, depth, item);
        }
        if let Some((.., Some(upper))) = link
            && let Some(last) = &walk.levels[depth].key
            && items > 0
            && last.cmp_tuple(&upper).is_ne()
        {
            let expected = format!("the downlink's {} as last key", upper.describe());
            let found = last.describe();
            self.damage(block, Some(items), expected, found);
        }
    }

    /// Tests one item of the entry tree and what it points to.
    fn entry(
        &mut self,
        walk: &mut EntryWalk<'c>,
        block: u32,
        page: Page<'c>,
        depth: usize,
        item: usize,
    ) {
        let bytes = page.tuple(item);
        let tuple = bytes.and_then(|b| EntryTuple::parse(b, self.index.columns()));
        let tuple = match tuple {
            Ok(tuple) => tuple,
            Err(fault) => {
                // A tuple out of its page was reported with the line pointers.
                if page.tuple(item).is_ok() {
                    self.fault(block, Some(item), &fault);
                }
                self.incomplete = true;
                return walk.forget(depth + 1);
            }
        };
        let bytes = tuple.bytes;
        if bytes.len() > TUPLE_MAX {
            let expected = format!("a tuple of at most {TUPLE_MAX} bytes");
            self.damage(block, Some(item), expected, bytes.len().to_string());
        }
        self.key_area(block, item, &tuple);
        let leaf = page.has(LEAF);
        let infinite = !leaf && item == page.items() && page.rightlink().is_none();
        let level = &mut walk.levels[depth];
        if !infinite || self.stats.built {
            if let Some(before) = &level.key
                && before.cmp_tuple(&tuple).is_ge()
            {
                let expected = format!("a key above {}", before.describe());
                self.damage(block, Some(item), expected, tuple.describe());
            }
            level.key = Some(tuple.clone());
        } else {
            level.key = None;
        }
        if leaf {
            self.stats.entries += 1;
            self.leaf_entry(block, item, &tuple);
            return;
        }
        let child = tuple.block();
        let size = align8(tuple.key_end);
        if tuple.offset() != 0 || bytes.len() != size {
            let expected = format!("a downlink of {size} bytes with offset 0");
            let found = format!("{} bytes, offset {}", bytes.len(), tuple.offset());
            self.damage(block, Some(item), expected, found);
        }
        if self.stats.built && bytes[tuple.key_end..].iter().any(|&byte| byte != 0) {
            self.damage(block, Some(item), "zeros behind the downlink's key", "others");
        }
        let upper = (!infinite || self.stats.built).then_some(tuple);
        self.entry_page(walk, child, depth + 1, Some((block, item, upper)));
    }

    /// The bytes before the list must be those that a writer makes.
    fn key_area(&mut self, block: u32, item: usize, tuple: &EntryTuple<'_>) {
        if matches!(tuple.key, KeyBytes::Text(std::borrow::Cow::Owned(_))) {
            // Compressed text can be compressed in many ways.
            return;
        }
        let mut head = Vec::new();
        let key = tuple.key.as_slice();
        let columns = self.index.columns();
        let same = write_head(&mut head, columns, tuple.column, tuple.category, key)
            .is_ok()
            && head[TUPLE_HEADER..] == tuple.bytes[TUPLE_HEADER..tuple.key_end];
        if !same {
            self.damage(
                block,
                Some(item),
                format!("{} with zeros as padding", tuple.describe()),
                "other bytes around it",
            );
        }
    }

    fn leaf_entry(&mut self, block: u32, item: usize, tuple: &EntryTuple<'c>) {
        let place = match tuple.postings() {
            Ok(place) => place,
            Err(fault) => {
                self.incomplete = true;
                return self.fault(block, Some(item), &fault);
            }
        };
        match place {
            PostingPlace::Tree(root) => self.posting_tree(root, (block, item)),
            PostingPlace::Inline { count, segment } => {
                let end = tuple.key_end + segment.stored;
                let rest = &tuple.bytes[end..];
                if tuple.bytes.len() != align8(end) || rest.iter().any(|&b| b != 0) {
                    let expected = format!("zeros up to byte {}", align8(end));
                    let found = format!("other bytes up to {}", tuple.bytes.len());
                    self.damage(block, Some(item), expected, found);
                }
                let mut found = 0;
                if count > 0 {
                    let bytes = &tuple.bytes[tuple.key_end..end];
                    found = self.segment(block, Some(item), bytes, &segment, &mut 0);
                } else if self.stats.built {
                    self.damage(block, Some(item), "at least one TID", "none");
                }
                if found != u64::from(count) {
                    let expected = format!("{count} TIDs as the tuple's header says");
                    self.damage(block, Some(item), expected, found.to_string());
                }
            }
        }
    }

    fn metapage(&mut self) {
        if self.pages[META_BLOCK as usize] != State::Free {
            if self.pages[META_BLOCK as usize] == State::Zero {
                self.damage(META_BLOCK, None, "a metapage", "zeros");
            }
            return;
        }
        self.pages[META_BLOCK as usize] = State::Taken;
        let Some(page) = self.index.block(META_BLOCK).and_then(|b| Page::new(b).ok())
        else {
            return;
        };
        let meta = Meta::of(page);
        if page.rightlink().is_some() {
            self.damage(META_BLOCK, None, "no right link", "one");
        }
        if !(0..=VERSION).contains(&meta.version) {
            let found = meta.version.to_string();
            self.damage(META_BLOCK, None, "version 0 to 2", found);
        }
        self.pending_list(&meta);
        if !self.stats.built || self.incomplete {
            return;
        }
        let meta_bytes = &page.bytes()[HEADER..HEADER + META_LEN];
        let padding = get_u32(meta_bytes, 36) | get_u32(meta_bytes, 52);
        let stats = self.stats;
        let seen = |what: &str, n: u64, found: i64| {
            let good = u64::try_from(found) == Ok(n);
            (good, format!("{n} {what} on the metapage"), found)
        };
        for (good, expected, found) in [
            seen("bytes of metadata", META_LEN as u64, page.lower() as i64 - 24),
            seen("in the padding", 0, i64::from(padding)),
            seen("as version", VERSION as u64, i64::from(meta.version)),
            seen("pages", stats.pages, i64::from(meta.n_total_pages)),
            seen("entry pages", stats.entry_pages, i64::from(meta.n_entry_pages)),
            seen("data pages", stats.data_pages, i64::from(meta.n_data_pages)),
            seen("entries", stats.entries, meta.n_entries),
        ] {
            if !good {
                self.damage(META_BLOCK, None, expected, found.to_string());
            }
        }
    }

    fn pending_list(&mut self, meta: &Meta) {
        let (mut from, mut block) = (META_BLOCK, meta.pending_head);
        let mut complete = true;
        while block != INVALID_BLOCK {
            let Some(page) = self.take(block, (from, None)) else {
                complete = false;
                break;
            };
            if !page.has(LIST) {
                let found = format!("flags 0x{:04x}", page.flags());
                self.damage(block, None, "a page of the pending list", found);
                complete = false;
                break;
            }
            self.stats.pending_pages += 1;
            for item in 1..=page.items() {
                let Ok(bytes) = page.tuple(item) else { continue };
                match EntryTuple::parse(bytes, self.index.columns()) {
                    Ok(tuple) => self.key_area(block, item, &tuple),
                    Err(fault) => self.fault(block, Some(item), &fault),
                }
            }
            from = block;
            block = page.rightlink().unwrap_or(INVALID_BLOCK);
        }
        if !complete {
            return;
        }
        let tail = if from == META_BLOCK { INVALID_BLOCK } else { from };
        if meta.pending_tail != tail {
            let expected = format!("pending tail {tail}");
            self.damage(META_BLOCK, None, expected, meta.pending_tail.to_string());
        }
        if u64::from(meta.n_pending_pages) != self.stats.pending_pages {
            let expected = format!("{} pending pages", self.stats.pending_pages);
            self.damage(META_BLOCK, None, expected, meta.n_pending_pages.to_string());
        }
        if tail == INVALID_BLOCK
            && (meta.tail_free_size, meta.n_pending_tuples) != (0, 0)
        {
            let found =
                format!("{} and {}", meta.tail_free_size, meta.n_pending_tuples);
            let expected = "no free bytes and no tuples in an empty pending list";
            self.damage(META_BLOCK, None, expected, found);
        }
    }

    /// Pages that nothing refers to must be empty or deleted.
    fn left_over(&mut self) {
        if self.incomplete {
            return;
        }
        for block in 0..self.index.pages() {
            let deleted = self
                .index
                .block(block)
                .and_then(|bytes| Page::new(bytes).ok())
                .is_some_and(|page| page.has(DELETED));
            match self.pages[block as usize] {
                State::Zero if !self.stats.built => self.stats.unused_pages += 1,
                State::Free if deleted && !self.stats.built => {
                    self.stats.unused_pages += 1;
                }
                State::Zero | State::Free => {
                    self.damage(
                        block,
                        None,
                        "something that refers to the page",
                        "none",
                    );
                }
                State::Unseen | State::Bad | State::Taken => {}
            }
        }
    }
}
