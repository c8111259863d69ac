//! The TIDs of one entry, read a segment at a time.
//!
//! A tree is opened when its first TID is asked for, at its leftmost leaf, or where a
//! [`Postings::seek`] lands: that goes down by the keys of internal pages, and inside a
//! leaf from segment to segment by their first TIDs without decoding what it skips. TIDs
//! must ascend over everything that is read, which also bounds the walk over leaves.
//! Answers to `ginget.c` and `gindatapage.c`.

use crate::error::Result;
use crate::gin::layout::{
    COMPRESSED, DATA, DATA_AT, DELETED, LEAF, POSTING_ITEM, SPECIAL,
};
use crate::gin::page::{Fault, Page};
use crate::gin::read::Index;
use crate::posting;
use crate::tid::Tid;

/// More levels than a tree over 2^43 TIDs can have.
const DEPTH_MAX: usize = 16;

/// The TIDs of one entry, ascending; made by [`Index::posting`] and
/// [`EntryIter`](crate::gin::EntryIter).
#[derive(Clone, Debug)]
pub struct Postings<'a> {
    index: &'a Index,
    source: Source,
    /// Block and item where `segments` lie, for messages.
    place: (u32, Option<usize>),
    /// Segments not yet decoded of the page or tuple.
    segments: &'a [u8],
    /// Right sibling of the leaf, and its right bound.
    right: Option<(u32, u64)>,
    /// The segment that [`Postings::next`] gives TIDs from, and the next one in it.
    decoded: Vec<u64>,
    at: usize,
    /// Last TID decoded.
    last: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// A list of so many TIDs.
    Inline(u16),
    /// A tree that is not yet open.
    Closed(u32),
    /// A tree with a leaf open.
    Open(u32),
}

impl<'a> Postings<'a> {
    pub(crate) fn inline(
        index: &'a Index,
        block: u32,
        item: usize,
        count: u16,
        segment: &'a [u8],
    ) -> Postings<'a> {
        Postings {
            index,
            source: Source::Inline(count),
            place: (block, Some(item)),
            segments: segment,
            right: None,
            decoded: Vec::new(),
            at: 0,
            last: 0,
        }
    }

    pub(crate) fn tree(index: &'a Index, root: u32) -> Postings<'a> {
        Postings {
            source: Source::Closed(root),
            ..Postings::inline(index, root, 0, 0, &[])
        }
    }

    /// Root of the posting tree; `None` for an inline list.
    pub fn tree_root(&self) -> Option<u32> {
        match self.source {
            Source::Inline(_) => None,
            Source::Closed(root) | Source::Open(root) => Some(root),
        }
    }

    /// A page of a posting tree.
    fn data_page(&self, block: u32) -> Result<Page<'a>> {
        let page = self.index.page(block)?;
        let flags = page.flags();
        if flags & DATA == 0 || (flags & LEAF != 0 && flags & COMPRESSED == 0) {
            let fault = Fault::new(
                "a page of a posting tree in the format since 9.4",
                format!("flags 0x{flags:04x}"),
            );
            return Err(self.index.corrupt(block, None, fault));
        }
        Ok(page)
    }

    /// Goes down to the leaf that would have `tid`: the leftmost one for 0.
    fn descend(&self, root: u32, tid: u64) -> Result<u32> {
        let mut block = root;
        for _ in 0..DEPTH_MAX {
            let page = self.data_page(block)?;
            if page.has(LEAF) {
                return Ok(block);
            }
            let items = page.maxoff();
            if items == 0 || DATA_AT + items * POSTING_ITEM > SPECIAL {
                let fault = Fault::new("1 to 815 posting items", items.to_string());
                return Err(self.index.corrupt(block, None, fault));
            }
            let (mut low, mut high) = (0, items - 1);
            while low < high {
                let middle = low.midpoint(high);
                if page.posting_item(middle).1.pack() < tid {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            block = page.posting_item(low).0;
        }
        let fault = Fault::new(format!("at most {DEPTH_MAX} levels"), "more");
        Err(self.index.corrupt(block, None, fault))
    }

    /// Opens the leaf with the first TID not below `tid`.
    fn open(&mut self, root: u32, tid: u64) -> Result<()> {
        let leaf = self.descend(root, tid)?;
        self.source = Source::Open(root);
        self.right = Some((leaf, 0));
        self.segments = &[];
        for _ in 0..=self.index.pages() {
            match self.right {
                Some((right, bound)) if bound < tid || self.segments.is_empty() => {
                    self.open_leaf(right)?;
                }
                _ => return Ok(()),
            }
        }
        Err(self.index.runs_in_circles(self.place.0))
    }

    fn open_leaf(&mut self, block: u32) -> Result<()> {
        let page = self.data_page(block)?;
        if !page.has(LEAF) {
            let fault = Fault::new("a leaf right of a leaf", "an internal page");
            return Err(self.index.corrupt(block, None, fault));
        }
        self.place = (block, None);
        self.right = page.rightlink().map(|right| (right, page.right_bound().pack()));
        // A scan may step onto a page that VACUUM has taken out of the tree.
        self.segments = if page.has(DELETED) {
            self.right = self.right.map(|(right, _)| (right, 0));
            &[]
        } else {
            page.segments().map_err(|fault| self.index.corrupt(block, None, fault))?
        };
        Ok(())
    }

    fn fault(&self, expected: &str, found: String) -> crate::error::Error {
        let (block, item) = self.place;
        self.index.corrupt(block, item, Fault::new(expected, found))
    }

    /// Appends the next segment's TIDs to `out`; `false` at the end.
    fn decode(&mut self, out: &mut Vec<u64>) -> Result<bool> {
        if let Source::Closed(root) = self.source {
            self.open(root, 0)?;
        }
        let mut steps = self.index.pages();
        while self.segments.is_empty() {
            let Some((right, _)) = self.right else { return Ok(false) };
            if steps == 0 {
                return Err(self.index.runs_in_circles(right));
            }
            steps -= 1;
            self.open_leaf(right)?;
        }
        let before = out.len();
        let segment = posting::read_segment(self.segments);
        let Some(segment) = segment else {
            let left = format!("{} bytes", self.segments.len());
            return Err(self.fault("whole segments", left));
        };
        if segment.first <= self.last {
            let (last, first) = (Tid::unpack(self.last), Tid::unpack(segment.first));
            return Err(self.fault("ascending TIDs", format!("{first} after {last}")));
        }
        if posting::decode_into(segment.first, segment.deltas, out).is_none() {
            return Err(self.fault("whole differences above zero", "others".to_owned()));
        }
        if let Source::Inline(count) = self.source
            && out.len() - before != usize::from(count)
        {
            let found = format!("{} in its list", out.len() - before);
            return Err(
                self.fault(&format!("{count} TIDs as the tuple's header says"), found)
            );
        }
        self.segments = &self.segments[segment.stored..];
        self.last = out.last().copied().unwrap_or(self.last);
        Ok(true)
    }

    /// The next TID.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Tid>> {
        if self.at == self.decoded.len() && !self.refill()? {
            return Ok(None);
        }
        self.at += 1;
        Ok(Some(Tid::unpack(self.decoded[self.at - 1])))
    }

    fn refill(&mut self) -> Result<bool> {
        let mut decoded = std::mem::take(&mut self.decoded);
        decoded.clear();
        self.at = 0;
        let more = self.decode(&mut decoded);
        if let Ok(true) = more {
            self.decoded = decoded;
        }
        more
    }

    /// Replaces `out` by the packed TIDs of the next segment (what is left of it);
    /// `false`, with `out` empty, at the end. Faster than [`Postings::next`]; both may
    /// be mixed.
    pub fn next_block(&mut self, out: &mut Vec<u64>) -> Result<bool> {
        out.clear();
        if self.at < self.decoded.len() {
            out.extend_from_slice(&self.decoded[self.at..]);
            self.at = self.decoded.len();
            return Ok(true);
        }
        self.decode(out)
    }

    /// Moves forward, never back: the next TID will be the first one, of those not yet
    /// given, that is not below `tid`.
    pub fn seek(&mut self, tid: Tid) -> Result<()> {
        let tid = tid.pack();
        if tid <= self.last {
            self.at += self.decoded[self.at..].partition_point(|&given| given < tid);
            return Ok(());
        }
        self.decoded.clear();
        self.at = 0;
        match (self.source, self.right) {
            (Source::Closed(root), _) => self.open(root, tid)?,
            (Source::Open(root), Some((_, bound))) if bound < tid => {
                self.open(root, tid)?;
            }
            _ => {}
        }
        // Past every segment whose successor still starts at or below the TID.
        while let Some(segment) = posting::read_segment(self.segments)
            && let Some(next) = posting::read_segment(&self.segments[segment.stored..])
            && next.first <= tid
        {
            self.segments = &self.segments[segment.stored..];
        }
        if !self.segments.is_empty() && self.refill()? {
            self.at = self.decoded.partition_point(|&given| given < tid);
        }
        Ok(())
    }

    /// TIDs that are left, read to the end but not decoded.
    pub fn count(&mut self) -> Result<u64> {
        let mut count = (self.decoded.len() - self.at) as u64;
        self.at = self.decoded.len();
        if let Source::Closed(root) = self.source {
            self.open(root, 0)?;
        }
        let mut steps = self.index.pages();
        loop {
            count += count_tids(self.segments);
            self.segments = &[];
            let (Some((right, _)), Source::Open(_)) = (self.right, self.source) else {
                return Ok(count);
            };
            if steps == 0 {
                return Err(self.index.runs_in_circles(right));
            }
            steps -= 1;
            self.open_leaf(right)?;
        }
    }

    /// Bytes of segments at hand: of a list just opened that is inline, all of it.
    pub(crate) fn bytes_at_hand(&self) -> usize {
        self.segments.len()
    }

    /// About how many TIDs there are in all: exact for an inline list, for a tree the
    /// number on its first leaf times the number of leaves that its upper levels let
    /// expect.
    pub fn estimate(&self) -> u64 {
        match self.source {
            Source::Inline(count) => u64::from(count),
            Source::Closed(root) | Source::Open(root) => {
                // A tree that cannot be read gives its error to whoever reads it.
                self.estimate_tree(root).unwrap_or(1)
            }
        }
    }

    fn estimate_tree(&self, root: u32) -> Result<u64> {
        let (mut block, mut leaves) = (root, 1u64);
        for _ in 0..DEPTH_MAX {
            let page = self.data_page(block)?;
            if page.has(LEAF) {
                return Ok(leaves.saturating_mul(
                    count_tids(page.segments().unwrap_or(&[])).max(1),
                ));
            }
            let items = page.maxoff();
            if items == 0 {
                break;
            }
            leaves = leaves.saturating_mul(items as u64);
            block = page.posting_item(0).0;
        }
        Ok(leaves)
    }
}

/// TIDs in segments, without decoding them.
fn count_tids(segments: &[u8]) -> u64 {
    let mut rest = segments;
    let mut count = 0;
    while let Some(segment) = posting::read_segment(rest) {
        let ends = segment.deltas.iter().filter(|&&byte| byte < 0x80).count();
        count += 1 + ends as u64;
        rest = &rest[segment.stored..];
    }
    count
}
