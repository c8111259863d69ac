//! The accumulator: key → compressed ascending TID list, for all indexes of one worker.
//!
//! Per key there is a *hot* part (last TID, where its list goes on), touched by every
//! posting, and a *cold* part (first TID, key, list's beginning), touched when the key
//! is made or written. The first TID lies in the cold part, so the many keys with one
//! posting have no list at all. Lists are varbyte differences in **slices** of growing
//! size, each ended by the address of the next; all slices and keys of all indexes share
//! one arena and one limit.
//!
//! ```text
//! cold.first ─ first TID          slice n: ┌ varbytes … ┬ next u32 ┐
//! cold.head ─→ slice 0 ─→ slice 1 ─→ …     └────────────┴──────────┘
//! hot.tail ───────────────────────┘ next free byte, up to hot.end
//! ```
//!
//! When the share is used up, [`Accumulator::spill`] sorts each column's keys and writes
//! one run: tuples (index, column, category, key) → piece of the list. A piece is its
//! first TID (packed, six bytes, big-endian, so that pieces of a key sort by it) and
//! differences, cut at [`PIECE_MAX`] bytes so that a merge can hold pieces of all runs.
//!
//! TIDs that do not ascend (inputs with TIDs of their own) are taken as differences
//! modulo 2^43; lists are then sorted when they are written. Answers to `ginbulk.c`.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::arena::{Arena, CHUNK, Chunked};
use super::stats::SpillStats;
use crate::error::{Error, Result};
use crate::gin::Category;
use crate::opclass::{KeyId, KeySink};
use crate::posting::{push_varbyte, read_varbyte};
use crate::tuplesort::run::{RunWriter, head_of};
use crate::tuplesort::{Participant, Place};

/// Bytes of a piece's first TID.
pub const PIECE_FIRST: usize = 6;
/// Most bytes of differences in one piece.
pub const PIECE_MAX: usize = 4 << 10;
/// Bytes in front of a key in a tuple of the sort: index, column, category.
pub const KEY_PREFIX: usize = 3;
/// Longest key; longer ones cannot be index entries anyway.
const KEY_MAX: usize = CHUNK - 2;
/// Bytes of slices, link included; the last one repeats.
const SLICES: [u16; 18] = [
    12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
    4096,
];
const LINK: u32 = 4;
const NO_TID: u64 = u64::MAX;
const TID_MASK: u64 = (1 << 43) - 1;
/// What the writer of a run holds, beside what it writes.
const WRITER_MEMORY: usize = 512 << 10;
/// Addresses of the arena are 32 bits wide.
const ARENA_MAX: usize = u32::MAX as usize - (4 << 20);

#[derive(Clone, Copy, Debug, Default)]
struct Hot {
    last: u64,
    tail: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cold {
    first: u64,
    /// Address of the key: length (u16), bytes.
    key: u32,
    head: u32,
    hash: u32,
}

/// Keys and lists of one index column.
#[derive(Debug)]
struct Column {
    index: u8,
    column: u8,
    table: HashTable<KeyId>,
    hot: Chunked<Hot>,
    cold: Chunked<Cold>,
    /// Lists of the null categories, by category number.
    special: [Option<KeyId>; 4],
}

impl Column {
    fn memory(&self) -> usize {
        // Growing holds the old and the new table at a time: count that before it comes.
        let table = self.table.allocation_size();
        let grows = self.table.len() + 512 > self.table.capacity();
        self.hot.memory() + self.cold.memory() + table * if grows { 3 } else { 1 }
    }
}

/// Accumulates the postings of one worker and spills them as sorted runs.
#[derive(Debug)]
pub struct Accumulator<'s> {
    columns: Vec<Column>,
    arena: Arena,
    participant: Participant<'s>,
    share: usize,
    /// Memory of the extractors, as last told.
    extractors: usize,
    unordered: bool,
    oversize: Option<usize>,
    spill: Vec<SpillStats>,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    key: Vec<u8>,
    payload: Vec<u8>,
    list: Vec<u8>,
}

impl<'s> Accumulator<'s> {
    /// An accumulator for columns given as (index, column), in sort order; it spills when
    /// it holds `share` bytes.
    pub fn new(
        columns: impl IntoIterator<Item = (u8, u8)>,
        participant: Participant<'s>,
        share: usize,
    ) -> Accumulator<'s> {
        let columns: Vec<_> = columns
            .into_iter()
            .map(|(index, column)| Column {
                index,
                column,
                table: HashTable::new(),
                hot: Chunked::new(),
                cold: Chunked::new(),
                special: [None; 4],
            })
            .collect();
        let indexes = columns.iter().map(|column| usize::from(column.index) + 1).max();
        Accumulator {
            columns,
            arena: Arena::default(),
            participant,
            share,
            extractors: 0,
            unordered: false,
            oversize: None,
            spill: vec![SpillStats::default(); indexes.unwrap_or(0)],
            scratch: Scratch::default(),
        }
    }

    /// Bytes held, with what writing a run will take on top.
    pub fn memory(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::memory).sum();
        let keys =
            self.columns.iter().map(|column| column.hot.len()).max().unwrap_or(0);
        let sort = keys * size_of::<(u64, KeyId)>();
        // Lists that are not in order are decoded and sorted one by one.
        let lists = self.arena.memory() * if self.unordered { 2 } else { 1 };
        let runs = self.participant.runs_memory();
        columns + lists + sort + self.extractors + runs + WRITER_MEMORY
    }

    /// Tells what the extractors hold, which counts against the same share.
    pub fn set_extractors(&mut self, bytes: usize) {
        self.extractors = bytes;
    }

    /// Sets the share from now on.
    pub fn set_share(&mut self, share: usize) {
        self.share = share;
    }

    /// True when the share is used up.
    pub fn is_full(&self) -> bool {
        self.memory() > self.share || self.arena.memory() > ARENA_MAX
    }

    /// True when nothing has been posted since the last spill.
    pub fn is_empty(&self) -> bool {
        self.columns.iter().all(|column| column.hot.len() == 0)
    }

    /// Where the keys of column number `column` (in the order given to `new`) of the item
    /// `tid` go.
    pub fn sink(&mut self, column: usize, tid: u64) -> ItemSink<'_, 's> {
        let others = self.extractors;
        ItemSink {
            accumulator: self,
            column,
            tid,
            others,
            posted: false,
            spilled: false,
        }
    }

    /// Writes all lists as a run and begins anew; all key ids are void.
    pub fn spill(&mut self, place: Place) -> Result<()> {
        let Accumulator {
            columns, arena, participant, spill, scratch, unordered, ..
        } = self;
        participant.put_run(place, |run| {
            let mut written = 0;
            for (n, column) in columns.iter_mut().enumerate() {
                let stats = &mut spill[usize::from(column.index)];
                let list = ListWriter { arena, scratch, unordered: *unordered };
                if column.hot.len() > 0 && place == Place::Disk {
                    let first = column.column == 0 || n == 0;
                    stats.runs += u64::from(first);
                }
                write_column(column, list, run, stats)?;
                let so_far = run.end_block()?;
                if place == Place::Disk {
                    stats.written += so_far - written;
                }
                written = so_far;
            }
            Ok(())
        })?;
        self.arena.clear();
        self.unordered = false;
        for column in &mut self.columns {
            column.table = HashTable::new();
            column.hot.clear();
            column.cold.clear();
            column.special = [None; 4];
        }
        Ok(())
    }

    /// Ends the participation; what was not spilled is lost, so spill first.
    pub fn finish(self) -> Result<(Vec<SpillStats>, u64, u64)> {
        let runs = self.participant.runs();
        let count = runs.len() as u64;
        let bytes = runs.iter().map(|run| run.stored_bytes).sum();
        self.participant.finish()?;
        Ok((self.spill, count, bytes))
    }
}

/// Makes a new key's state; its list is empty until the first posting.
fn new_state(column: &mut Column, key: u32, hash: u32) -> KeyId {
    let id =
        u32::try_from(column.hot.len()).expect("accumulators spill before 2^32 keys");
    column.hot.push(Hot { last: NO_TID, tail: 0, end: 0 });
    column.cold.push(Cold { first: 0, key, head: 0, hash });
    id
}

/// The 64 bits that the table wants, from the 32 that a key keeps.
fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn key_at(arena: &Arena, address: u32) -> &[u8] {
    let bytes = arena.bytes(address);
    let len = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    &bytes[2..2 + len]
}

/// Posts `tid` under a key; a TID equal to the key's last one is dropped.
fn append(column: &mut Column, arena: &mut Arena, id: KeyId, tid: u64) -> bool {
    let hot = column.hot.get_mut(id);
    let last = hot.last;
    if last == tid {
        return true;
    }
    hot.last = tid;
    if last == NO_TID {
        column.cold.get_mut(id).first = tid;
        return true;
    }
    let ordered = last < tid;
    let mut delta = tid.wrapping_sub(last) & TID_MASK;
    loop {
        if hot.tail == hot.end {
            grow(hot, column.cold.get_mut(id), arena);
        }
        let byte = arena.byte_mut(hot.tail);
        hot.tail += 1;
        if delta < 0x80 {
            *byte = delta as u8;
            return ordered;
        }
        *byte = (delta & 0x7f) as u8 | 0x80;
        delta >>= 7;
    }
}

/// Links a further slice to a list whose last one is full. The link of a last slice holds
/// the slice's level until it is needed.
fn grow(hot: &mut Hot, cold: &mut Cold, arena: &mut Arena) {
    let level = if hot.end == 0 { 0 } else { arena.word(hot.end) + 1 };
    let size = u32::from(SLICES[(level as usize).min(SLICES.len() - 1)]);
    let start = arena.alloc(size as usize);
    if level == 0 {
        cold.head = start;
    } else {
        arena.set_word(hot.end, start);
    }
    hot.tail = start;
    hot.end = start + size - LINK;
    arena.set_word(hot.end, level);
}

fn write_column(
    column: &Column,
    mut list: ListWriter<'_>,
    run: &mut RunWriter<'_>,
    stats: &mut SpillStats,
) -> Result<()> {
    let special = |id: KeyId| column.special.contains(&Some(id));
    let count = column.hot.len() as u32;
    let mut ids: Vec<(u64, KeyId)> = Vec::with_capacity(count as usize);
    for id in (0..count).filter(|&id| !special(id)) {
        let key = key_at(list.arena, column.cold.get(id).key);
        ids.push(((head_of(key) >> 64) as u64, id));
    }
    let key = |id: KeyId| key_at(list.arena, column.cold.get(id).key);
    ids.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1))));
    for (_, id) in ids {
        list.begin_key(
            column,
            Category::Key,
            key_at(list.arena, column.cold.get(id).key),
        );
        list.write(column, id, run, stats)?;
    }
    for category in [Category::NullKey, Category::EmptyItem, Category::NullItem] {
        if let Some(id) = column.special[category as usize] {
            list.begin_key(column, category, &[]);
            list.write(column, id, run, stats)?;
        }
    }
    Ok(())
}

/// Writes lists of an arena as pieces.
struct ListWriter<'a> {
    arena: &'a Arena,
    scratch: &'a mut Scratch,
    unordered: bool,
}

impl ListWriter<'_> {
    fn begin_key(&mut self, column: &Column, category: Category, key: &[u8]) {
        let composed = &mut self.scratch.key;
        composed.clear();
        composed.extend_from_slice(&[column.index, column.column, category as u8]);
        composed.extend_from_slice(key);
    }

    fn write(
        &mut self,
        column: &Column,
        id: KeyId,
        run: &mut RunWriter<'_>,
        stats: &mut SpillStats,
    ) -> Result<()> {
        let (hot, cold) = (column.hot.get(id), column.cold.get(id));
        if hot.last == NO_TID {
            return Ok(());
        }
        self.gather(hot, cold);
        if self.unordered {
            self.reorder(cold.first);
        }
        let first =
            if self.unordered { read_first(&self.scratch.payload) } else { cold.first };
        let mut rest = self.scratch.list.as_slice();
        let mut tid = first;
        loop {
            let (piece, next) = cut_piece(rest, &mut tid);
            let payload = &mut self.scratch.payload;
            payload.clear();
            payload.extend_from_slice(&piece.0.to_be_bytes()[2..]);
            payload.extend_from_slice(piece.1);
            let tids = 1 + piece.1.iter().filter(|&&byte| byte < 0x80).count() as u64;
            stats.tuples += 1;
            stats.tids += tids;
            stats.plain += tids * 6;
            stats.varbyte += payload.len() as u64;
            stats.keys += run.add(&self.scratch.key, payload)? as u64;
            match next {
                Some(after) => rest = after,
                None => return Ok(()),
            }
        }
    }

    /// Copies a list's slices into `scratch.list`.
    fn gather(&mut self, hot: &Hot, cold: &Cold) {
        let list = &mut self.scratch.list;
        list.clear();
        if hot.end == 0 {
            return;
        }
        let mut at = cold.head;
        for level in 0.. {
            let size = u32::from(SLICES[level.min(SLICES.len() - 1)]) - LINK;
            let last = at + size == hot.end;
            let len = if last { hot.tail - at } else { size };
            list.extend_from_slice(&self.arena.bytes(at)[..len as usize]);
            if last {
                return;
            }
            at = self.arena.word(at + size);
        }
    }

    /// Sorts the gathered list, whose differences wrap; leaves its first TID in
    /// `scratch.payload`.
    fn reorder(&mut self, first: u64) {
        let list = &mut self.scratch.list;
        let mut tids = vec![first];
        let (mut tid, mut at) = (first, 0);
        while let Some(delta) = read_varbyte(list, &mut at) {
            tid = tid.wrapping_add(delta) & TID_MASK;
            tids.push(tid);
        }
        tids.sort_unstable();
        tids.dedup();
        list.clear();
        tids.windows(2).for_each(|pair| push_varbyte(list, pair[1] - pair[0]));
        let payload = &mut self.scratch.payload;
        payload.clear();
        payload.extend_from_slice(&tids[0].to_be_bytes()[2..]);
    }
}

/// First TID of a piece, packed.
pub fn read_first(payload: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&payload[..PIECE_FIRST]);
    u64::from_be_bytes(bytes)
}

/// The next piece of a list that goes on at `*tid` with the differences `rest`, and what
/// is left behind it: the first difference there leads to the next piece's first TID.
fn cut_piece<'a>(rest: &'a [u8], tid: &mut u64) -> ((u64, &'a [u8]), Option<&'a [u8]>) {
    let first = *tid;
    if rest.len() <= PIECE_MAX {
        return ((first, rest), None);
    }
    let mut at = 0;
    loop {
        let before = at;
        let delta = read_varbyte(rest, &mut at).expect("lists are whole varbytes");
        *tid += delta;
        if at > PIECE_MAX {
            return ((first, &rest[..before]), Some(&rest[at..]));
        }
    }
}

/// Where one item's keys of one column go.
#[derive(Debug)]
pub struct ItemSink<'a, 's> {
    accumulator: &'a mut Accumulator<'s>,
    column: usize,
    tid: u64,
    /// Memory of the extractors that are not at work.
    others: usize,
    posted: bool,
    spilled: bool,
}

impl ItemSink<'_, '_> {
    /// Whether the item has been posted under any key.
    pub fn posted(&self) -> bool {
        self.posted
    }

    /// Whether key ids became void meanwhile.
    pub fn spilled(&self) -> bool {
        self.spilled
    }

    /// Says how much of what the extractors hold, as last told, is held by the one that
    /// is going to use this sink.
    pub fn extractor_holds(&mut self, bytes: usize) {
        self.others = self.accumulator.extractors.saturating_sub(bytes);
    }

    /// Posts the item under a null category.
    pub fn post_category(&mut self, category: Category) -> Result<()> {
        let column = &mut self.accumulator.columns[self.column];
        let id = match column.special[category as usize] {
            Some(id) => id,
            None => {
                let id = new_state(column, 0, 0);
                column.special[category as usize] = Some(id);
                id
            }
        };
        self.post(&[id]).map(drop)
    }
}

impl KeySink for ItemSink<'_, '_> {
    fn key(&mut self, key: &[u8]) -> KeyId {
        let accumulator = &mut *self.accumulator;
        if key.len() > KEY_MAX {
            accumulator.oversize = Some(key.len());
        }
        let key = &key[..key.len().min(KEY_MAX)];
        let column = &mut accumulator.columns[self.column];
        let arena = &mut accumulator.arena;
        let hash = (FixedState::with_seed(0).hash_one(key) >> 32) as u32;
        let found = column.table.find(widen(hash), |&id| {
            let cold = column.cold.get(id);
            cold.hash == hash && key_at(arena, cold.key) == key
        });
        if let Some(&id) = found {
            return id;
        }
        let address = arena.alloc(2 + key.len());
        let bytes = arena.bytes_mut(address);
        bytes[..2].copy_from_slice(&(key.len() as u16).to_le_bytes());
        bytes[2..2 + key.len()].copy_from_slice(key);
        let id = new_state(column, address, hash);
        let cold = &column.cold;
        column.table.insert_unique(widen(hash), id, |&id| widen(cold.get(id).hash));
        id
    }

    fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
        let accumulator = &mut *self.accumulator;
        if let Some(len) = accumulator.oversize.take() {
            return Err(Error::value(format!(
                "key of {len} bytes exceeds the largest index row size 2712"
            )));
        }
        self.posted |= !ids.is_empty();
        let column = &mut accumulator.columns[self.column];
        let mut ordered = true;
        for &id in ids {
            ordered &= append(column, &mut accumulator.arena, id, self.tid);
        }
        accumulator.unordered |= !ordered;
        if accumulator.is_full() {
            accumulator.spill(Place::Disk)?;
            accumulator.extractors = self.others;
            self.spilled = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn holds(&mut self, bytes: usize) {
        self.accumulator.extractors = self.others + bytes;
    }

    fn post_null(&mut self) -> Result<()> {
        self.post_category(Category::NullKey)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::budget::{Bytes, MemoryBudget};
    use crate::posting::decode_into;
    use crate::tempspace::TempSpace;
    use crate::tuplesort::{SortOptions, Tuplesort};

    type Model = BTreeMap<Vec<u8>, BTreeSet<u64>>;

    struct Case {
        share: usize,
        documents: u64,
        scatter: u64,
        place: Place,
    }

    /// Posts documents into two columns and reads all pieces back; the runs too.
    fn accumulated(case: &Case) -> (Model, Model, usize) {
        let dir = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(Bytes(64 << 20));
        let space = TempSpace::create(dir.path(), None).unwrap();
        let options =
            SortOptions { tie: PIECE_FIRST, ..SortOptions::for_memory(16 << 20) };
        let sort = Tuplesort::begin(options, &budget, &space);
        let mut accumulator =
            Accumulator::new([(0, 0), (1, 0)], sort.participant(0), case.share);
        let mut model = Model::new();
        for n in 0..case.documents {
            let tid = 2049 + n * case.scatter % 1_000_003;
            for column in 0..2 {
                let mut sink = accumulator.sink(column, tid);
                let keys = [n % 7, n % 1000, 5000 + n].map(|key| format!("key {key}"));
                let ids =
                    keys.iter().map(|key| sink.key(key.as_bytes())).collect::<Vec<_>>();
                sink.post(&ids).unwrap();
                if n % 3 == 0 {
                    sink.post_category(Category::EmptyItem).unwrap();
                    model.entry(vec![column as u8, 0, 2]).or_default().insert(tid);
                }
                for key in keys {
                    let key = [&[column as u8, 0, 0], key.as_bytes()].concat();
                    model.entry(key).or_default().insert(tid);
                }
            }
        }
        accumulator.spill(case.place).unwrap();
        let (spill, ..) = accumulator.finish().unwrap();
        let runs = sort.perform();
        if runs.len() == 1 && case.scatter == 1 {
            let postings: usize = model.values().map(BTreeSet::len).sum();
            assert_eq!(spill.iter().map(|s| s.tids).sum::<u64>(), postings as u64);
        }
        let mut merge = runs.merge(&[], None, 64 << 10).unwrap();
        let mut read = Model::new();
        let mut before = (Vec::new(), 0);
        while let Some((key, payload)) = merge.next().unwrap() {
            assert!(payload.len() <= PIECE_FIRST + PIECE_MAX);
            let first = read_first(payload);
            assert!(
                before <= (key.to_vec(), first),
                "pieces come by key, then first TID"
            );
            before = (key.to_vec(), first);
            let mut tids = Vec::new();
            decode_into(first, &payload[PIECE_FIRST..], &mut tids).unwrap();
            assert!(tids.is_sorted());
            read.entry(key.to_vec()).or_default().extend(tids);
        }
        (model, read, runs.len())
    }

    #[test]
    fn every_posting_comes_back_from_one_run_in_memory() {
        let case = Case {
            share: 1 << 30,
            documents: 40_000,
            scatter: 1,
            place: Place::Memory,
        };
        let (model, read, runs) = accumulated(&case);
        assert_eq!(runs, 1);
        assert!(model == read);
    }

    #[test]
    fn every_posting_comes_back_from_many_runs() {
        let case =
            Case { share: 2 << 20, documents: 40_000, scatter: 1, place: Place::Disk };
        let (model, read, runs) = accumulated(&case);
        assert!(runs > 3, "{runs} runs");
        assert!(model == read);
    }

    #[test]
    fn tids_in_any_order_come_back_in_order() {
        for share in [2 << 20, 1 << 30] {
            let case =
                Case { share, documents: 40_000, scatter: 7919, place: Place::Disk };
            let (model, read, _) = accumulated(&case);
            assert!(model == read);
        }
    }

    #[test]
    fn a_key_that_no_index_can_hold_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(Bytes(64 << 20));
        let space = TempSpace::create(dir.path(), None).unwrap();
        let sort = Tuplesort::begin(SortOptions::for_memory(0), &budget, &space);
        let mut accumulator = Accumulator::new([(0, 0)], sort.participant(0), 1 << 20);
        let mut sink = accumulator.sink(0, 1);
        let id = sink.key(&vec![b'x'; CHUNK]);
        let error = sink.post(&[id]).unwrap_err();
        assert!(error.to_string().contains("65536 bytes"), "{error}");
    }
}
