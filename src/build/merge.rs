//! From sorted runs to loaded indexes: parts of the key space merged by workers, finished
//! entries loaded by the leader in key order.
//!
//! Splitter keys cut the runs into parts. A worker takes the next part, merges its
//! tuples, joins the pieces of each key's list ([`Combine`]) and encodes finished pieces
//! of the index file, which go to the leader through the worker's queue. The leader takes
//! part after part from whichever worker has it, so it sees all keys in order; a worker
//! that is ahead goes on until its queue and overflow are full. What reaches the loader is
//! the same for any number of workers and parts, since a key is never cut.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use rayon::ThreadPool;

use super::accumulate::{KEY_PREFIX, PIECE_FIRST, read_first};
use super::plan::{PARTICIPANT_MEMORY, Plan};
use super::stats::SortStats;
use super::watch::Watch;
use super::worker::first_failure;
use crate::budget::MemoryBudget;
use crate::catalog::ArchiveWriter;
use crate::error::{Error, ErrorKind, Result};
use crate::gin::{Category, EncoderStats, EntryEncoder, Loader, TreeStats};
use crate::opclass::KeyType;
use crate::posting::decode_into;
use crate::queue::{Consumer, Producer, QueueOptions, queue};
use crate::tuplesort::{SortedRuns, WINDOW_MIN};

/// Encoded pieces travel in chunks of about this many bytes.
const CHUNK: usize = 64 << 10;
/// Decoded TIDs that wait for the next piece of their key, about.
const PENDING: usize = 4 << 10;
/// What is kept free for the leader: its loader, the chunk in hand, and room to spare.
const LEADER_MEMORY: usize = 2 << 20;
const _: () = assert!(Loader::MEMORY as usize + CHUNK < LEADER_MEMORY);
/// What a worker holds beside its tapes and its queue: the pieces it joins and a chunk,
/// and what is not charged, such as its stack and what the allocator rounds up.
const COMBINE_MEMORY: usize = (256 << 10) + PARTICIPANT_MEMORY;
/// Bounds of the shared part of a queue, and of its overflow.
const QUEUE_MIN: usize = 2 * CHUNK;
const QUEUE_MAX: usize = 4 << 20;
const PARTS_MAX: u64 = 512;

/// How the merge will go.
#[derive(Debug)]
pub struct Merging<'a> {
    columns: Vec<Vec<KeyType>>,
    workers: usize,
    window: usize,
    queue: QueueOptions,
    parts: usize,
    watch: &'a Watch,
    budget: &'a Arc<MemoryBudget>,
}

/// What a merge did.
#[derive(Debug, Default)]
pub struct Merged {
    /// By worker.
    pub workers: Vec<MergeStats>,
    /// By index.
    pub encoded: Vec<EncoderStats>,
}

/// What one worker did.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeStats {
    /// It merged so long, waiting included.
    pub seconds: f64,
    /// It waited so long for the leader.
    pub stalled: f64,
}

enum Message {
    /// Pieces of one index.
    Chunk(u8, Vec<u8>),
    /// The part is done.
    End,
}

impl<'a> Merging<'a> {
    /// Divides the memory: fewer workers when they would have too little for a read buffer
    /// per tape, and fewer runs when even one worker would.
    pub fn plan(
        plan: &Plan,
        runs: &mut SortedRuns,
        budget: &'a Arc<MemoryBudget>,
        watch: &'a Watch,
    ) -> Result<Merging<'a>> {
        let limit = usize::try_from(budget.limit()).unwrap_or(usize::MAX);
        let free = || {
            let held = usize::try_from(budget.charged()).unwrap_or(usize::MAX);
            limit.saturating_sub(held).saturating_sub(LEADER_MEMORY).max(2 << 20)
        };
        let queue_bytes =
            |workers: usize| (free() / 16 / workers.max(1)).clamp(QUEUE_MIN, QUEUE_MAX);
        let for_tapes = |workers: usize| {
            let each = COMBINE_MEMORY + 2 * queue_bytes(workers);
            free().saturating_sub(workers.max(1) * each)
        };
        let mut workers = plan.workers;
        while workers > 1 && runs.window(for_tapes(workers), workers).is_none() {
            workers -= 1;
        }
        // What a reduced run holds is charged on the way, so ask again afterwards.
        while runs.window(for_tapes(workers), 1).is_none() && runs.len() > 2 {
            runs.reduce(for_tapes(workers), &|| watch.check())?;
        }
        let window = runs.window(for_tapes(workers), workers).unwrap_or(WINDOW_MIN);
        let shared = queue_bytes(workers);
        let queue = QueueOptions { shared, overflow: shared, flush: shared / 8 };
        let part = (shared + shared / 2) as u64;
        let parts =
            if workers < 2 { 1 } else { (runs.raw_bytes() / part).clamp(1, PARTS_MAX) };
        Ok(Merging {
            columns: (0..plan.indexes.len()).map(|n| plan.key_types(n as u8)).collect(),
            workers,
            window,
            queue,
            parts: parts as usize,
            watch,
            budget,
        })
    }

    /// How the sort went, for the report.
    pub fn stats(&self, runs: &SortedRuns) -> SortStats {
        SortStats {
            runs: runs.len() as u64,
            extra_passes: runs.extra_passes(),
            window: self.window as u64,
            merge_workers: self.workers,
            parts: self.parts as u64,
        }
    }

    /// Merges all runs into `loading`.
    pub fn run(
        &self,
        runs: &SortedRuns,
        pool: Option<&ThreadPool>,
        loading: &mut Loading<'_>,
    ) -> Result<Merged> {
        let tapes = self.workers.max(1) * runs.len() * runs.cursor_memory(self.window);
        let queues = self.workers * 2 * self.queue.shared;
        let each = self.workers.max(1) * COMBINE_MEMORY;
        let _charge = self.budget.charge(tapes + queues + each + LEADER_MEMORY);
        let splitters = runs.splitters(self.parts);
        match pool {
            Some(pool) => self.run_in(pool, runs, &splitters, loading),
            None => {
                let began = Instant::now();
                let mut combine = Combine::new(&self.columns);
                self.part(runs, &[], None, &mut combine, &mut |index, pieces| {
                    loading.add(index, pieces)
                })?;
                let seconds = began.elapsed().as_secs_f64();
                let workers = vec![MergeStats { seconds, stalled: 0.0 }];
                Ok(Merged { workers, encoded: combine.stats })
            }
        }
    }

    fn run_in(
        &self,
        pool: &ThreadPool,
        runs: &SortedRuns,
        splitters: &[Box<[u8]>],
        loading: &mut Loading<'_>,
    ) -> Result<Merged> {
        let owners = Owners::new(splitters.len() + 1);
        let results = Mutex::new(Vec::new());
        let (mut producers, mut consumers) = (Vec::new(), Vec::new());
        for _ in 0..self.workers {
            let (producer, consumer) = queue(self.queue);
            producers.push(producer);
            consumers.push(consumer);
        }
        let loaded = pool.in_place_scope(|scope| {
            for (number, producer) in producers.into_iter().enumerate() {
                let (owners, results) = (&owners, &results);
                scope.spawn(move |_| {
                    // Dropped when the worker returns or panics: the leader must not wait
                    // for a worker that is gone.
                    let _alive = Alive(owners);
                    let result = self.worker(number, runs, splitters, owners, producer);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                });
            }
            let loaded = self.load(&owners, &consumers, loading);
            owners.stop();
            drop(consumers);
            loaded
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = outcome(loaded, results)?;
        let mut merged = Merged {
            workers: vec![MergeStats::default(); self.workers],
            encoded: vec![EncoderStats::default(); self.columns.len()],
        };
        for (number, stats, encoded) in done {
            merged.workers[number] = stats;
            for (all, one) in merged.encoded.iter_mut().zip(encoded) {
                all.keys += one.keys;
                all.postings += one.postings;
            }
        }
        Ok(merged)
    }

    /// One worker: part after part, until none is left.
    fn worker(
        &self,
        number: usize,
        runs: &SortedRuns,
        splitters: &[Box<[u8]>],
        owners: &Owners,
        mut producer: Producer<Message>,
    ) -> Result<(usize, MergeStats, Vec<EncoderStats>)> {
        let began = Instant::now();
        let mut combine = Combine::new(&self.columns);
        while let Some(part) = owners.claim(number) {
            let from: &[u8] = if part == 0 { &[] } else { &splitters[part - 1] };
            let until = splitters.get(part).map(|key| &**key);
            let send = |producer: &mut Producer<Message>, message, bytes| {
                let sent = producer.send(message, bytes);
                if sent { Ok(()) } else { Err(Error::from(ErrorKind::Cancelled)) }
            };
            self.part(runs, from, until, &mut combine, &mut |index, pieces| {
                let pieces = std::mem::replace(pieces, Vec::with_capacity(CHUNK));
                let bytes = pieces.len();
                send(&mut producer, Message::Chunk(index, pieces), bytes)
            })?;
            // The mark counts a byte so that it takes its turn in the overflow.
            send(&mut producer, Message::End, 1)?;
        }
        let queued = producer.finish();
        let stats = MergeStats {
            seconds: began.elapsed().as_secs_f64(),
            stalled: queued.stalled.as_secs_f64(),
        };
        Ok((number, stats, combine.stats))
    }

    /// The leader: all parts in order.
    fn load(
        &self,
        owners: &Owners,
        consumers: &[Consumer<Message>],
        loading: &mut Loading<'_>,
    ) -> Result<()> {
        for part in 0..owners.parts {
            let Some(owner) = owners.wait(part) else {
                return Err(ErrorKind::Cancelled.into());
            };
            loop {
                match consumers[owner].receive() {
                    Some(Message::Chunk(index, mut pieces)) => {
                        loading.add(index, &mut pieces)?;
                    }
                    Some(Message::End) => break,
                    None => return Err(ErrorKind::Cancelled.into()),
                }
            }
        }
        Ok(())
    }

    fn part(
        &self,
        runs: &SortedRuns,
        from: &[u8],
        until: Option<&[u8]>,
        combine: &mut Combine,
        emit: &mut Emit<'_>,
    ) -> Result<()> {
        let mut merge = runs.merge(from, until, self.window)?;
        let mut bytes = 0;
        while let Some((key, payload)) = merge.next()? {
            bytes += (key.len() + payload.len()) as u64;
            if bytes > CHUNK as u64 {
                self.watch.check()?;
                self.watch.add(std::mem::take(&mut bytes), 0);
            }
            combine.tuple(key, payload, emit)?;
        }
        combine.end(emit)
    }
}

/// What the workers did, or the failure that stopped the merge. One that fails stops the
/// others, who then only know that they were to stop, be it a worker or the leader.
fn outcome<T>(leader: Result<()>, workers: Vec<Result<T>>) -> Result<Vec<T>> {
    match leader {
        Err(error) if !matches!(error.kind(), ErrorKind::Cancelled) => Err(error),
        stopped_or_done => {
            let done = first_failure(workers)?;
            stopped_or_done.map(|()| done)
        }
    }
}

/// Which worker has which part.
#[derive(Debug)]
struct Owners {
    parts: usize,
    next: AtomicUsize,
    /// By part; the flag says that some worker is gone.
    claimed: Mutex<(Vec<Option<usize>>, bool)>,
    changed: Condvar,
}

impl Owners {
    fn new(parts: usize) -> Owners {
        Owners {
            parts,
            next: AtomicUsize::new(0),
            claimed: Mutex::new((vec![None; parts], false)),
            changed: Condvar::new(),
        }
    }

    fn claim(&self, worker: usize) -> Option<usize> {
        let part = self.next.fetch_add(1, Ordering::Relaxed);
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        *claimed.0.get_mut(part)? = Some(worker);
        self.changed.notify_all();
        Some(part)
    }

    /// The owner of a part, waited for; `None` when nobody will take it any more.
    fn wait(&self, part: usize) -> Option<usize> {
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if claimed.0[part].is_some() || claimed.1 {
                return claimed.0[part];
            }
            claimed =
                self.changed.wait(claimed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self) {
        self.next.fetch_add(self.parts, Ordering::Relaxed);
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}

/// A worker that may still claim parts. Workers end when no part is left or one failed;
/// then none is waited for.
struct Alive<'a>(&'a Owners);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        let all_claimed = self.0.next.load(Ordering::Relaxed) >= self.0.parts;
        if !all_claimed || std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Takes finished pieces of an index; may take the buffer away or leave it to be cleared.
type Emit<'a> = dyn FnMut(u8, &mut Vec<u8>) -> Result<()> + 'a;

/// Joins the pieces of each key's list and encodes the entries.
///
/// Pieces of a key come by first TID. Those of one worker follow each other; those of
/// different workers interleave. What is below the next piece's first TID is final, so
/// only the overlap is ever merged, and at most the pieces that overlap are held.
struct Combine {
    columns: Vec<Vec<KeyType>>,
    stats: Vec<EncoderStats>,
    encoder: Option<(u8, EntryEncoder)>,
    key: Vec<u8>,
    /// Ascending TIDs of the key in hand that are not encoded yet, from `done` on.
    pending: Vec<u64>,
    done: usize,
    piece: Vec<u64>,
    merged: Vec<u64>,
    out: Vec<u8>,
}

impl Combine {
    fn new(columns: &[Vec<KeyType>]) -> Combine {
        Combine {
            columns: columns.to_vec(),
            stats: vec![EncoderStats::default(); columns.len()],
            encoder: None,
            key: Vec::new(),
            pending: Vec::new(),
            done: 0,
            piece: Vec::new(),
            merged: Vec::new(),
            out: Vec::with_capacity(CHUNK),
        }
    }

    fn tuple(&mut self, key: &[u8], payload: &[u8], emit: &mut Emit<'_>) -> Result<()> {
        let damaged = || damage(key, "a piece of a TID list", "other bytes");
        if key.len() < KEY_PREFIX || payload.len() < PIECE_FIRST {
            return Err(damaged());
        }
        let first = read_first(payload);
        let deltas = &payload[PIECE_FIRST..];
        if key != self.key.as_slice() {
            self.end_entry(emit)?;
            self.begin_entry(key, emit)?;
            return decode_into(first, deltas, &mut self.pending).ok_or_else(damaged);
        }
        let last = self.pending.last().copied().expect("an entry has a piece");
        if first > last {
            if self.pending.len() >= PENDING {
                self.encode(self.pending.len())?;
                self.flush(CHUNK, emit)?;
            }
            return decode_into(first, deltas, &mut self.pending).ok_or_else(damaged);
        }
        let open = &self.pending[self.done..];
        let below = open.partition_point(|&tid| tid < first);
        self.encode(self.done + below)?;
        self.flush(CHUNK, emit)?;
        self.piece.clear();
        decode_into(first, deltas, &mut self.piece).ok_or_else(damaged)?;
        union(&self.pending[self.done..], &self.piece, &mut self.merged);
        std::mem::swap(&mut self.pending, &mut self.merged);
        self.done = 0;
        Ok(())
    }

    /// Encodes pending TIDs up to position `until`.
    fn encode(&mut self, until: usize) -> Result<()> {
        if let Some((_, encoder)) = &mut self.encoder
            && until > self.done
        {
            encoder.push(&self.pending[self.done..until], &mut self.out)?;
        }
        self.done = until;
        if self.done == self.pending.len() {
            // The last TID stays for the comparison with the next piece's first.
            let last = self.pending.last().copied();
            self.pending.clear();
            self.pending.extend(last);
            self.done = self.pending.len();
        }
        Ok(())
    }

    fn begin_entry(&mut self, key: &[u8], emit: &mut Emit<'_>) -> Result<()> {
        let (index, column) = (key[0], key[1]);
        if self.encoder.as_ref().is_none_or(|(now, _)| *now != index) {
            self.end_index(emit)?;
            let Some(columns) = self.columns.get(usize::from(index)) else {
                let expected = format!("one of {} indexes", self.columns.len());
                return Err(damage(key, &expected, &index.to_string()));
            };
            self.encoder = Some((index, EntryEncoder::new(columns)));
        }
        let category = Category::try_from(key[2])
            .map_err(|byte| damage(key, "a category below 4", &byte.to_string()))?;
        self.key.clear();
        self.key.extend_from_slice(key);
        let (_, encoder) = self.encoder.as_mut().expect("set above");
        encoder.begin(column, category, &key[KEY_PREFIX..])
    }

    fn end_entry(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        if self.key.is_empty() {
            return Ok(());
        }
        self.encode(self.pending.len())?;
        if let Some((_, encoder)) = &mut self.encoder {
            encoder.end(&mut self.out)?;
        }
        self.key.clear();
        self.pending.clear();
        self.done = 0;
        self.flush(CHUNK, emit)
    }

    fn end_index(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.flush(0, emit)?;
        if let Some((index, encoder)) = self.encoder.take() {
            let stats = encoder.stats();
            let all = &mut self.stats[usize::from(index)];
            all.keys += stats.keys;
            all.postings += stats.postings;
        }
        Ok(())
    }

    /// Emits what is encoded if it is more than `above` bytes.
    fn flush(&mut self, above: usize, emit: &mut Emit<'_>) -> Result<()> {
        if self.out.len() <= above {
            return Ok(());
        }
        if let Some((index, _)) = self.encoder {
            emit(index, &mut self.out)?;
        }
        self.out.clear();
        Ok(())
    }

    /// Ends a part.
    fn end(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        self.end_entry(emit)?;
        self.end_index(emit)
    }
}

/// A tuple of the runs that no accumulator writes.
fn damage(key: &[u8], expected: &str, found: &str) -> Error {
    let place = format!("key {}", key.escape_ascii());
    Error::corrupt("sorted runs".as_ref(), place, expected, found)
}

/// Replaces `out` by the union of two ascending lists.
fn union(a: &[u64], b: &[u64], out: &mut Vec<u64>) {
    out.clear();
    out.reserve(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        out.push(a[i].min(b[j]));
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
}

/// Loads the indexes one after the other; the sort's order begins with the index.
#[derive(Debug)]
pub struct Loading<'a> {
    plan: &'a Plan,
    archive: &'a ArchiveWriter,
    fillfactor: u8,
    current: Option<Loader>,
    finished: Vec<(File, TreeStats)>,
}

impl<'a> Loading<'a> {
    /// Into the archive's index files.
    pub fn new(
        plan: &'a Plan,
        archive: &'a ArchiveWriter,
        fillfactor: u8,
    ) -> Loading<'a> {
        Loading { plan, archive, fillfactor, current: None, finished: Vec::new() }
    }

    fn add(&mut self, index: u8, pieces: &mut Vec<u8>) -> Result<()> {
        self.advance(usize::from(index))?;
        self.current.as_mut().expect("advanced to it").add(pieces)?;
        pieces.clear();
        Ok(())
    }

    /// Finishes the loaders before number `index` and begins that one.
    fn advance(&mut self, index: usize) -> Result<()> {
        loop {
            let current = self.finished.len();
            if self.current.is_none() {
                let path = self.archive.index_path(&self.plan.indexes[current].name);
                let columns = self.plan.key_types(current as u8);
                self.current = Some(Loader::create(&path, &columns, self.fillfactor)?);
            }
            if current >= index {
                return Ok(());
            }
            self.finished.extend(self.current.take().map(Loader::finish).transpose()?);
        }
    }

    /// Ends all loaders.
    pub fn finish(mut self) -> Result<Loaded> {
        self.advance(self.plan.indexes.len() - 1)?;
        self.finished.extend(self.current.take().map(Loader::finish).transpose()?);
        let paths = self.plan.indexes.iter();
        let paths = paths.map(|index| self.archive.index_path(&index.name)).collect();
        Ok(Loaded { files: self.finished, paths })
    }
}

/// Index files that are written but not yet on disk.
#[derive(Debug)]
pub struct Loaded {
    files: Vec<(File, TreeStats)>,
    paths: Vec<std::path::PathBuf>,
}

impl Loaded {
    /// Sees to it that every file is on disk.
    pub fn sync(&self, watch: &Watch) -> Result<()> {
        for ((file, _), path) in self.files.iter().zip(&self.paths) {
            watch.check()?;
            file.sync_all().map_err(Error::io("sync", path))?;
        }
        Ok(())
    }

    /// By index.
    pub fn trees(&self) -> impl Iterator<Item = TreeStats> {
        self.files.iter().map(|(_, stats)| *stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_that_stopped_the_others_is_the_one_reported() {
        let stopped = || Error::from(ErrorKind::Cancelled);
        let broken = |what: &str| Error::invalid(what);
        let said =
            |leader, workers| outcome::<()>(leader, workers).unwrap_err().to_string();
        assert_eq!(
            said(Err(broken("disk full")), vec![Err(stopped()), Ok(())]),
            "disk full"
        );
        assert_eq!(
            said(Err(stopped()), vec![Err(stopped()), Err(broken("a run"))]),
            "a run"
        );
        assert_eq!(said(Err(stopped()), vec![Ok(())]), stopped().to_string());
        assert_eq!(outcome(Ok(()), vec![Ok(1), Ok(2)]).unwrap(), [1, 2]);
    }
}
