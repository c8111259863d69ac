//! The part of the check that walks posting trees.
//!
//! Tested are: one depth; one chain of right links per level; right bounds equal to the
//! downlink's key, and "plus infinity" on rightmost pages only; items in order;
//! segments that tile the page; TIDs that ascend over segments and pages and lie at or
//! below their page's right bound; differences in their shortest form. A file from a
//! loader must also have right bounds that are the last TID, and no empty leaf.

use crate::gin::check::Checker;
use crate::gin::layout::{
    COMPRESSED, DATA, DATA_AT, INCOMPLETE_SPLIT, LEAF, POSTING_ITEM, POSTING_ITEMS_MAX,
    RIGHT_BOUND_AT, SEGMENTS_MAX, get_u16,
};
use crate::gin::page::{Page, tid_bytes};
use crate::posting::{self, SEGMENT_HEADER, Segment};
use crate::tid::{MAX_OFFSET, Tid};

/// More levels than a tree over 2^43 TIDs can have.
const DEPTH_MAX: usize = 16;

/// What was seen of a posting tree so far.
#[derive(Default)]
struct Walk {
    /// Per level, the page before and its right link.
    levels: Vec<Option<(u32, Option<u32>)>>,
    leaf_depth: Option<usize>,
    /// The last TID, or the right bound of its leaf.
    last: u64,
}

impl Checker<'_> {
    /// Walks the tree with this root, which a leaf entry refers to.
    pub(super) fn posting_tree(&mut self, root: u32, entry: (u32, usize)) {
        let mut walk = Walk::default();
        self.data_page(&mut walk, root, 0, (entry.0, Some(entry.1)), None);
        for level in walk.levels {
            if let Some((block, Some(right))) = level {
                let expected = "no right link on the last page of a level";
                self.damage(block, None, expected, right.to_string());
            }
        }
    }

    /// Walks a page and what is below it; `upper` is its downlink's key, none for "plus
    /// infinity".
    fn data_page(
        &mut self,
        walk: &mut Walk,
        block: u32,
        depth: usize,
        referrer: (u32, Option<usize>),
        upper: Option<Tid>,
    ) {
        if depth == DEPTH_MAX {
            self.incomplete = true;
            let expected = format!("a posting tree of {DEPTH_MAX} levels");
            self.damage(block, None, expected, "a deeper one");
            return;
        }
        if walk.levels.len() == depth {
            walk.levels.push(None);
        }
        let page = self.take(block, referrer).filter(|page| {
            let flags = page.flags() & !INCOMPLETE_SPLIT;
            let right = flags == DATA || flags == DATA | LEAF | COMPRESSED;
            if !right {
                let found = format!("flags 0x{flags:04x}");
                self.damage(block, None, "a page of a posting tree", found);
                self.incomplete = true;
            }
            right
        });
        let Some(page) = page else {
            walk.levels.iter_mut().skip(depth).for_each(|level| *level = None);
            return;
        };
        self.stats.data_pages += 1;
        let before = walk.levels[depth].replace((block, page.rightlink()));
        if let Some((left, right)) = before
            && right != Some(block)
        {
            let expected = format!("right link {block}");
            self.damage(left, None, expected, format!("{right:?}"));
        }
        self.right_bound(block, page, upper);
        if page.has(LEAF) {
            let expected = *walk.leaf_depth.get_or_insert(depth);
            if expected != depth {
                let expected = format!("all leaves at depth {expected}");
                self.damage(block, None, expected, format!("one at {depth}"));
            }
            self.leaf(walk, block, page);
        } else {
            self.internal(walk, block, page, depth);
        }
    }

    fn right_bound(&mut self, block: u32, page: Page<'_>, upper: Option<Tid>) {
        let bound = page.right_bound();
        let padding = get_u16(page.bytes(), RIGHT_BOUND_AT + 6);
        if padding != 0 {
            let found = format!("0x{padding:04x}");
            self.damage(block, None, "zeros behind the right bound", found);
        }
        let expected = match (page.rightlink(), upper) {
            (None, _) => Tid::default(),
            (Some(_), Some(upper)) => upper,
            // The right link that should not be there is reported with its chain.
            (Some(_), None) => return,
        };
        if bound != expected {
            let expected = format!("right bound {expected}");
            self.damage(block, None, expected, bound.to_string());
        }
    }

    fn internal(&mut self, walk: &mut Walk, block: u32, page: Page<'_>, depth: usize) {
        let items = page.maxoff();
        if items == 0 || items > POSTING_ITEMS_MAX {
            let expected = format!("1 to {POSTING_ITEMS_MAX} posting items");
            self.damage(block, None, expected, items.to_string());
            self.incomplete = true;
            return;
        }
        let lower = DATA_AT + items * POSTING_ITEM;
        if page.lower() != lower {
            let expected = format!("pd_lower {lower} behind {items} posting items");
            self.damage(block, None, expected, page.lower().to_string());
        }
        let mut before = 0;
        for item in 1..=items {
            let (child, key) = page.posting_item(item - 1);
            let infinite = item == items && page.rightlink().is_none();
            let good = if infinite {
                key == Tid::default()
            } else {
                key.pack() > before && (1..=MAX_OFFSET).contains(&key.offset)
            };
            if !good {
                let expected = if infinite {
                    "key (0,0) at the end of a level".to_owned()
                } else {
                    format!("a key above {}", Tid::unpack(before))
                };
                self.damage(block, Some(item), expected, key.to_string());
            }
            before = key.pack();
            let upper = (!infinite).then_some(key);
            self.data_page(walk, child, depth + 1, (block, Some(item)), upper);
        }
        let bound = page.right_bound();
        // VACUUM removes items: the last key may then be below the right bound.
        let low = Tid::unpack(before);
        if page.rightlink().is_some()
            && (low > bound || self.stats.built && low != bound)
        {
            self.damage(
                block,
                Some(items),
                format!("the right bound {bound} as last key"),
                low.to_string(),
            );
        }
    }

    fn leaf(&mut self, walk: &mut Walk, block: u32, page: Page<'_>) {
        let Ok(mut rest) = page.segments() else {
            let found = page.lower().to_string();
            self.damage(block, None, "pd_lower of at least 32", found);
            return;
        };
        if rest.is_empty() && self.stats.built {
            self.damage(block, None, "at least one segment", "none");
        }
        let mut segments = 0;
        while !rest.is_empty() {
            segments += 1;
            let Some(segment) = posting::read_segment(rest) else {
                let found = format!("{} bytes at the end", rest.len());
                self.damage(block, Some(segments), "whole segments", found);
                return;
            };
            let bytes = &rest[..segment.stored];
            self.segment(block, Some(segments), bytes, &segment, &mut walk.last);
            rest = &rest[segment.stored..];
        }
        if segments > SEGMENTS_MAX {
            let expected = format!("at most {SEGMENTS_MAX} segments");
            self.damage(block, None, expected, segments.to_string());
        }
        if page.rightlink().is_some() {
            let bound = page.right_bound().pack();
            let good = walk.last <= bound && (walk.last == bound || !self.stats.built);
            if !good {
                let expected = format!("last TID {}", page.right_bound());
                let found = Tid::unpack(walk.last).to_string();
                self.damage(block, None, expected, found);
            }
            walk.last = walk.last.max(bound);
        }
    }

    /// Tests a segment against the TID before it; gives the number of its TIDs.
    pub(super) fn segment(
        &mut self,
        block: u32,
        item: Option<usize>,
        bytes: &[u8],
        segment: &Segment<'_>,
        last: &mut u64,
    ) -> u64 {
        let first = Tid::from_bytes(tid_bytes(bytes, 0));
        let before = Tid::unpack(*last);
        if first <= before || !(1..=MAX_OFFSET).contains(&first.offset) {
            let expected = format!("a TID above {before} with an offset of 1 to 2047");
            self.damage(block, item, expected, first.to_string());
            return 0;
        }
        if bytes[SEGMENT_HEADER + segment.deltas.len()..].iter().any(|&pad| pad != 0) {
            self.damage(block, item, "a zero as pad byte", "another one");
        }
        let mut tid = first.pack();
        let (mut at, mut count) = (0, 1);
        while at < segment.deltas.len() {
            let start = at;
            let delta = posting::read_varbyte(segment.deltas, &mut at);
            let delta = delta.filter(|&delta| {
                delta > 0 && at - start == posting::varbyte_len(delta)
            });
            let Some(delta) = delta else {
                let found =
                    format!("other bytes at {start} behind {}", Tid::unpack(tid));
                self.damage(block, item, "differences in their shortest form", found);
                break;
            };
            let next = tid
                .checked_add(delta)
                .filter(|next| next >> 43 == 0 && next & u64::from(MAX_OFFSET) != 0);
            let Some(next) = next else {
                let found = format!("{delta} behind {}", Tid::unpack(tid));
                self.damage(block, item, "differences that lead to TIDs", found);
                break;
            };
            tid = next;
            count += 1;
        }
        *last = tid;
        self.stats.postings += count;
        count
    }
}
