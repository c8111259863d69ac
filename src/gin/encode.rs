//! The worker's side: a key and its ascending TIDs become finished pieces.
//!
//! The list is encoded while it comes, first as the one long segment of an inline list,
//! behind the key in the tuple. When a TID no longer fits, the list is cut again from
//! its start into the shorter segments of a posting tree, and from then on every full
//! page of segments leaves at once. So a list of any length takes a page of memory, and
//! the bytes depend on the list alone, not on how it was handed over.
//!
//! Cutting is greedy. A segment ends where the next difference would cross its limit;
//! a page's last segment may be cut shorter by the page's end, so pages are full.
//!
//! Encoding is hot: eight differences of one byte each are tested and stored at once,
//! anything else takes the plain loop. Both stop at a TID that does not fit or is no
//! TID; the caller finds out which.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::gin::layout::{
    DATA_CAPACITY, PIECE_INLINE, PIECE_LEAF, PIECE_TREE, POSTING_SEGMENT_MAX,
    POSTING_SEGMENT_MIN, TUPLE_MAX, align8, put_piece,
};
use crate::gin::tuple::{self, Category};
use crate::opclass::KeyType;
use crate::posting::{self, SEGMENT_HEADER};
use crate::tid::{MAX_OFFSET, OFFSET_BITS, Tid};

/// Bits of a packed TID.
const TID_BITS: u32 = 32 + OFFSET_BITS;
/// Differences tested at once.
const STRIDE: usize = 8;

/// What an encoder has encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncoderStats {
    /// Entries ended.
    pub keys: u64,
    /// TIDs in them.
    pub postings: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Between entries.
    Idle,
    /// The list still fits the tuple.
    Inline,
    /// The list goes to a posting tree.
    Tree,
}

/// Turns (key, ascending TIDs) into finished pieces for [`crate::gin::Loader::add`].
///
/// ```
/// use ginmill::gin::{Category, EntryEncoder, Index, Loader};
/// use ginmill::opclass::KeyType;
/// use ginmill::tid::Tid;
///
/// let columns = [KeyType::Text];
/// let mut encoder = EntryEncoder::new(&columns);
/// let mut pieces = Vec::new();
/// encoder.begin(0, Category::Key, b"hello")?;
/// encoder.push(&[Tid::new(0, 1).pack(), Tid::new(3, 2).pack()], &mut pieces)?;
/// encoder.end(&mut pieces)?;
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("words.gin");
/// let mut loader = Loader::create(&path, &columns, 100)?;
/// loader.add(&pieces)?;
/// let (file, stats) = loader.finish()?;
/// file.sync_all().unwrap();
/// assert_eq!((stats.entries, stats.pages), (1, 2));
///
/// let index = Index::open(&path, Some(&columns))?;
/// let mut postings = index.posting(0, Category::Key, b"hello")?.unwrap();
/// assert_eq!(postings.next()?, Some(Tid::new(0, 1)));
/// # Ok::<(), ginmill::Error>(())
/// ```
pub struct EntryEncoder {
    columns: Vec<KeyType>,
    /// For messages.
    index: String,
    state: State,
    /// Header and key of the entry.
    head: Vec<u8>,
    /// The tuple: head, then the inline segment while it grows.
    tuple: Box<[u8; TUPLE_MAX]>,
    /// The segments of the leaf being filled.
    leaf: Box<[u8; DATA_CAPACITY]>,
    /// First TID of the leaf.
    leaf_first: u64,
    /// Start of the open segment, in `tuple` or `leaf`.
    segment: usize,
    /// First TID of the open segment.
    segment_first: u64,
    /// Where the next varbyte goes.
    at: usize,
    /// Where the open segment must end; 0 when none is open.
    end: usize,
    /// The TID before.
    last: u64,
    /// TIDs in the inline list.
    count: usize,
    /// An inline list that turned out too long.
    recut: Vec<u64>,
    stats: EncoderStats,
}

impl fmt::Debug for EntryEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryEncoder")
            .field("columns", &self.columns)
            .field("state", &self.state)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Encodes differences from `*last` on into `buffer[*at..end]`; stops before the first
/// TID that does not fit there or is not a valid successor. Gives the TIDs taken.
fn encode_run(
    buffer: &mut [u8],
    at: &mut usize,
    end: usize,
    last: &mut u64,
    tids: &[u64],
) -> usize {
    let buffer = &mut buffer[..end];
    let (mut to, mut previous) = (*at, *last);
    let mut taken = 0;
    'runs: loop {
        while let Some(run) = tids[taken..].first_chunk::<STRIDE>()
            && to + STRIDE <= end
        {
            let mut narrow = [0; STRIDE];
            let (mut seen, mut offsets) = (run[STRIDE - 1] >> TID_BITS, 0);
            let mut before = previous;
            for (byte, &tid) in narrow.iter_mut().zip(run) {
                let delta = tid.wrapping_sub(before);
                // Also catches zero and below: all bits of `delta - 1`, or of `delta`.
                seen |= delta | delta.wrapping_sub(1);
                offsets |= (tid & u64::from(MAX_OFFSET)).wrapping_sub(1);
                *byte = delta as u8;
                before = tid;
            }
            if seen >> 7 != 0 || offsets >> OFFSET_BITS != 0 {
                break;
            }
            buffer[to..to + STRIDE].copy_from_slice(&narrow);
            to += STRIDE;
            taken += STRIDE;
            previous = before;
        }
        let until = tids.len().min(taken + STRIDE);
        for &tid in &tids[taken..until] {
            if tid <= previous || !is_tid(tid) {
                break 'runs;
            }
            let mut delta = tid - previous;
            let length = posting::varbyte_len(delta);
            if to + length > end {
                break 'runs;
            }
            for byte in &mut buffer[to..to + length - 1] {
                *byte = delta as u8 | 0x80;
                delta >>= 7;
            }
            to += length;
            buffer[to - 1] = delta as u8;
            previous = tid;
            taken += 1;
        }
        if taken == tids.len() {
            break;
        }
    }
    (*at, *last) = (to, previous);
    taken
}

fn is_tid(packed: u64) -> bool {
    packed >> TID_BITS == 0 && packed & u64::from(MAX_OFFSET) != 0
}

/// Writes a segment's header and pad; gives its end.
fn close_segment(buffer: &mut [u8], start: usize, first: u64, at: usize) -> usize {
    let nbytes = at - start - SEGMENT_HEADER;
    buffer[start..start + 6].copy_from_slice(&Tid::unpack(first).to_bytes());
    let length = u16::try_from(nbytes).expect("a segment fits a page");
    buffer[start + 6..start + SEGMENT_HEADER].copy_from_slice(&length.to_le_bytes());
    if nbytes % 2 == 1 {
        buffer[at] = 0;
    }
    at + nbytes % 2
}

impl EntryEncoder {
    /// For an index of these columns: one makes the single-column layout.
    pub fn new(columns: &[KeyType]) -> EntryEncoder {
        EntryEncoder {
            columns: columns.to_vec(),
            index: String::new(),
            state: State::Idle,
            head: Vec::with_capacity(TUPLE_MAX),
            tuple: Box::new([0; TUPLE_MAX]),
            leaf: Box::new([0; DATA_CAPACITY]),
            leaf_first: 0,
            segment: 0,
            segment_first: 0,
            at: 0,
            end: 0,
            last: 0,
            count: 0,
            recut: Vec::new(),
            stats: EncoderStats::default(),
        }
    }

    /// Names the index in messages.
    #[must_use]
    pub fn for_index(mut self, name: &str) -> EntryEncoder {
        name.clone_into(&mut self.index);
        self
    }

    /// Begins an entry; `column` counts from 0, `key` is in memcmp order and empty for
    /// categories other than `Key`. Fails with PostgreSQL's reason
    /// (`ErrorKind::Value`) when the key is too long for an index tuple; the encoder is
    /// then ready for another entry.
    pub fn begin(&mut self, column: u8, category: Category, key: &[u8]) -> Result<()> {
        if self.state != State::Idle {
            return Err(Error::invalid(
                "an entry begins before the one before has ended",
            ));
        }
        tuple::write_head(&mut self.head, &self.columns, column, category, key)
            .map_err(|error| match error.kind() {
                ErrorKind::Value(reason) if self.index.is_empty() => Error::value(
                    format!("{reason} for column {}", u32::from(column) + 1),
                ),
                ErrorKind::Value(reason) => {
                    Error::value(format!("{reason} for index \"{}\"", self.index))
                }
                _ => error,
            })?;
        self.tuple[..self.head.len()].copy_from_slice(&self.head);
        (self.count, self.last) = (0, 0);
        self.state = State::Inline;
        if self.inline_room() == 0 {
            self.start_tree();
        }
        Ok(())
    }

    /// TIDs that an inline list of this entry can hold at the very most.
    fn inline_room(&self) -> usize {
        (TUPLE_MAX + 1).saturating_sub(self.head.len() + SEGMENT_HEADER)
    }

    fn start_tree(&mut self) {
        self.state = State::Tree;
        (self.at, self.end) = (0, 0);
    }

    fn refused(&self, tid: u64) -> Error {
        if !is_tid(tid) {
            return Error::invalid(format!("0x{tid:x} is not a packed TID"));
        }
        ErrorKind::OutOfOrder {
            previous: format!("TID {}", Tid::unpack(self.last)),
            got: format!("TID {}", Tid::unpack(tid)),
        }
        .into()
    }

    /// Adds packed TIDs, ascending and after all before; appends pieces that are full.
    /// After an error the encoder is not to be used any more.
    pub fn push(&mut self, tids: &[u64], out: &mut Vec<u8>) -> Result<()> {
        let mut rest = tids;
        if self.state == State::Idle {
            return Err(Error::invalid("TIDs come before their entry has begun"));
        }
        if self.state == State::Inline {
            if self.count == 0 && rest.len() > self.inline_room() {
                self.start_tree();
            } else {
                let taken = self.push_inline(rest)?;
                rest = &rest[taken..];
                if !rest.is_empty() {
                    self.recut(out)?;
                }
            }
        }
        if self.state == State::Tree {
            self.push_tree(rest, out)?;
        }
        self.stats.postings += tids.len() as u64;
        Ok(())
    }

    /// Takes what fits into the tuple; an error when it stops at something else.
    fn push_inline(&mut self, tids: &[u64]) -> Result<usize> {
        let Some(&first) = tids.first() else { return Ok(0) };
        let mut taken = 0;
        if self.count == 0 {
            if !is_tid(first) {
                return Err(self.refused(first));
            }
            self.segment = self.head.len();
            self.segment_first = first;
            self.at = self.segment + SEGMENT_HEADER;
            self.last = first;
            taken = 1;
        }
        taken += encode_run(
            &mut self.tuple[..],
            &mut self.at,
            TUPLE_MAX,
            &mut self.last,
            &tids[taken..],
        );
        self.count += taken;
        match tids.get(taken) {
            Some(&tid) if tid <= self.last || !is_tid(tid) => Err(self.refused(tid)),
            _ => Ok(taken),
        }
    }

    /// Moves the inline list to a posting tree.
    fn recut(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut list = std::mem::take(&mut self.recut);
        list.clear();
        let deltas = &self.tuple[self.segment + SEGMENT_HEADER..self.at];
        posting::decode_into(self.segment_first, deltas, &mut list)
            .expect("what was just encoded decodes");
        self.last = 0;
        self.start_tree();
        let done = self.push_tree(&list, out);
        self.recut = list;
        done
    }

    fn push_tree(&mut self, tids: &[u64], out: &mut Vec<u8>) -> Result<()> {
        let mut rest = tids;
        while !rest.is_empty() {
            if self.end != 0 {
                let taken = encode_run(
                    &mut self.leaf[..],
                    &mut self.at,
                    self.end,
                    &mut self.last,
                    rest,
                );
                rest = &rest[taken..];
            }
            let Some((&tid, after)) = rest.split_first() else { break };
            if tid <= self.last || !is_tid(tid) {
                return Err(self.refused(tid));
            }
            self.close_in_leaf();
            if DATA_CAPACITY - self.at < POSTING_SEGMENT_MIN {
                self.put_leaf(out);
            }
            if self.at == 0 {
                self.leaf_first = tid;
            }
            self.segment = self.at;
            self.segment_first = tid;
            self.end = DATA_CAPACITY.min(self.at + POSTING_SEGMENT_MAX);
            self.at += SEGMENT_HEADER;
            self.last = tid;
            rest = after;
        }
        Ok(())
    }

    fn close_in_leaf(&mut self) {
        if self.end != 0 {
            let leaf = &mut self.leaf[..];
            self.at = close_segment(leaf, self.segment, self.segment_first, self.at);
            self.end = 0;
        }
    }

    fn put_leaf(&mut self, out: &mut Vec<u8>) {
        let (first, last) = (self.leaf_first.to_le_bytes(), self.last.to_le_bytes());
        put_piece(out, PIECE_LEAF, &[&first, &last, &self.leaf[..self.at]]);
        self.at = 0;
    }

    /// Ends the entry; appends the rest of its pieces.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self.state {
            State::Idle => {
                return Err(Error::invalid("an entry ends that has not begun"));
            }
            _ if self.last == 0 => {
                return Err(Error::invalid("an entry ends without a TID"));
            }
            State::Inline => {
                let count =
                    u16::try_from(self.count).expect("a tuple's room bounds it");
                let (tuple, segment) = (&mut self.tuple[..], self.segment);
                let end = close_segment(tuple, segment, self.segment_first, self.at);
                let size = align8(end);
                tuple[end..size].fill(0);
                tuple::set_size(tuple, size);
                tuple::set_inline(tuple, segment, count);
                put_piece(out, PIECE_INLINE, &[&tuple[..size]]);
            }
            State::Tree => {
                self.close_in_leaf();
                self.put_leaf(out);
                let size = align8(self.head.len());
                self.head.resize(size, 0);
                tuple::set_size(&mut self.head, size);
                tuple::set_tree(&mut self.head, 0);
                put_piece(out, PIECE_TREE, &[&self.head]);
            }
        }
        self.state = State::Idle;
        self.stats.keys += 1;
        Ok(())
    }

    /// What was encoded so far.
    pub fn stats(&self) -> EncoderStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gin::layout::{Piece, take_piece};

    fn encode(tids: &[u64], chunks: impl Iterator<Item = usize>) -> Vec<u8> {
        let mut encoder = EntryEncoder::new(&[KeyType::Int4]);
        let mut out = Vec::new();
        encoder.begin(0, Category::Key, &crate::opclass::int4_key(5)).unwrap();
        let mut rest = tids;
        for chunk in chunks {
            let (now, later) = rest.split_at(chunk.min(rest.len()));
            encoder.push(now, &mut out).unwrap();
            rest = later;
        }
        encoder.push(rest, &mut out).unwrap();
        encoder.end(&mut out).unwrap();
        assert_eq!(encoder.stats().postings, tids.len() as u64);
        out
    }

    fn decode(pieces: &[u8]) -> Vec<u64> {
        let mut rest = pieces;
        let mut out = Vec::new();
        while let Some(piece) = take_piece(&mut rest).unwrap() {
            let mut segments = match piece {
                Piece::Inline(tuple) => &tuple[16..],
                Piece::Leaf { segments, .. } => segments,
                Piece::Tree(_) => &[],
            };
            while segments.len() >= SEGMENT_HEADER {
                let segment = posting::read_segment(segments).unwrap();
                posting::decode_into(segment.first, segment.deltas, &mut out).unwrap();
                segments = &segments[segment.stored..];
            }
        }
        out
    }

    /// TIDs with steps of all widths.
    fn list(seed: u64, length: usize) -> Vec<u64> {
        let mut state = seed | 1;
        let mut tid = 0u64;
        let mut out = Vec::new();
        while out.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let wide =
                [1, 1, 3, 100, 130, 20_000, 3_000_000][(state >> 40) as usize % 7];
            let wide = if seed.is_multiple_of(2) { 1 + wide % 3 } else { wide };
            tid += 1 + (state >> 20) % wide;
            if is_tid(tid) {
                out.push(tid);
            }
        }
        out
    }

    #[test]
    fn bytes_do_not_depend_on_how_the_list_is_handed_over() {
        for seed in 0..40 {
            let length = [1, 2, 9, 700, 2600, 2689, 2690, 9000][seed as usize % 8];
            let tids = list(seed, length);
            let whole = encode(&tids, std::iter::empty());
            assert_eq!(decode(&whole), tids);
            assert_eq!(encode(&tids, std::iter::repeat_n(1, length)), whole);
            assert_eq!(encode(&tids, [2689, 1].into_iter()), whole);
            assert_eq!(encode(&tids, (0..200).map(|n| n * 7 % 61)), whole);
        }
    }

    #[test]
    fn an_int4_entry_holds_2689_one_byte_steps_and_then_becomes_a_tree() {
        let tids: Vec<u64> = (1..2047).chain(2049..4000).collect();
        let kind = |n: usize| encode(&tids[1000..1000 + n], std::iter::empty())[0];
        // One of the steps crosses a block and still has one byte.
        assert_eq!(kind(2689), PIECE_INLINE);
        assert_eq!(kind(2690), PIECE_LEAF);
    }

    #[test]
    fn calls_out_of_place_and_keys_too_long_are_refused_and_the_encoder_goes_on() {
        let mut encoder = EntryEncoder::new(&[KeyType::Text]).for_index("words");
        let mut out = Vec::new();
        assert!(encoder.push(&[1], &mut out).is_err());
        assert!(encoder.end(&mut out).is_err());
        let mut noise = Vec::new();
        let mut state = 3u64;
        for _ in 0..5000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.push((state >> 56) as u8);
        }
        let error = encoder.begin(0, Category::Key, &noise).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Value(_)));
        assert_eq!(
            error.to_string(),
            "index row size 5016 exceeds maximum 2712 for index \"words\""
        );
        assert!(encoder.begin(1, Category::Key, b"x").is_err());
        assert!(encoder.begin(0, Category::NullItem, b"x").is_err());
        encoder.begin(0, Category::Key, b"x").unwrap();
        assert!(encoder.begin(0, Category::Key, b"y").is_err());
        assert!(encoder.end(&mut out).is_err());
        encoder.push(&[1], &mut out).unwrap();
        encoder.end(&mut out).unwrap();
        assert!(encoder.end(&mut out).is_err());
        assert_eq!(encoder.stats(), EncoderStats { keys: 1, postings: 1 });
        assert_eq!(out.len(), 4 + 24);
    }

    #[test]
    fn a_key_that_leaves_no_room_gets_a_tree_for_a_single_tid() {
        // Uncompressed text: 2692 bytes leave room for one TID, 2693 for none.
        for (length, pieces) in
            [(2692, vec![PIECE_INLINE]), (2693, vec![PIECE_LEAF, PIECE_TREE])]
        {
            let key: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let mut encoder = EntryEncoder::new(&[KeyType::Text]);
            let mut out = Vec::new();
            encoder.begin(0, Category::Key, &key).unwrap();
            encoder.push(&[9], &mut out).unwrap();
            encoder.end(&mut out).unwrap();
            let mut rest = &out[..];
            let mut kinds = Vec::new();
            while let [kind, ..] = *rest {
                take_piece(&mut rest).unwrap();
                kinds.push(kind);
            }
            assert_eq!(kinds, pieces, "{length}");
        }
    }

    #[test]
    fn segments_are_those_of_the_plain_encoder() {
        let tids = list(7, 30_000);
        let pieces = encode(&tids, std::iter::empty());
        let mut rest = &pieces[..];
        let mut left = &tids[..];
        let mut leaves = 0;
        while let Some(piece) = take_piece(&mut rest).unwrap() {
            let Piece::Leaf { first, last, segments } = piece else { continue };
            leaves += 1;
            let mut expected = Vec::new();
            let before = left;
            while DATA_CAPACITY - expected.len() >= POSTING_SEGMENT_MIN
                && !left.is_empty()
            {
                let limit = POSTING_SEGMENT_MAX.min(DATA_CAPACITY - expected.len());
                let taken = posting::encode_segment(left, limit, &mut expected);
                left = &left[taken..];
            }
            assert_eq!(segments, expected);
            assert_eq!(first, before[0]);
            assert_eq!(last, before[before.len() - left.len() - 1]);
        }
        assert!(left.is_empty() && leaves > 2);
    }

    #[test]
    fn what_is_not_an_ascending_tid_is_refused_wherever_it_comes() {
        let good: Vec<u64> = (1..2000).chain(2049..4000).collect();
        for (length, at) in [(20, 0), (20, 10), (1000, 8), (3900, 3000), (3900, 100)] {
            for bad in [0, 2048, 1 << 43, u64::MAX, 1] {
                let mut tids = good[..length].to_vec();
                if at == 0 && bad == 1 {
                    continue;
                }
                tids[at] = bad;
                let mut encoder = EntryEncoder::new(&[KeyType::Text]);
                encoder.begin(0, Category::Key, b"x").unwrap();
                let mut out = Vec::new();
                let pushed = tids
                    .chunks(1 + length / 3)
                    .try_for_each(|chunk| encoder.push(chunk, &mut out));
                assert!(pushed.is_err(), "{bad} at {at} of {length}");
            }
        }
    }
}
