//! The shared tuplesort: many participants put, one result comes out.
//!
//! A tuple is a byte key and a payload; the order is (key, first `tie` bytes of the
//! payload), all by `memcmp`. For GIN the key is index, column, category and key, and the
//! payload a piece of a TID list that begins with its first TID, so `tie` covers that.
//!
//! Each participant owns one tape, on which its sorted runs lie one behind the other:
//! [`Participant::put`] collects single tuples and sorts them when its share of the
//! memory is used up; [`Participant::put_run`] takes runs that the caller has formed. A
//! participant's last run may stay in memory. [`Tuplesort::perform`] seals all runs and
//! gives [`SortedRuns`], which can be merged from any key to any other, by several
//! workers at a time.
//!
//! Temporary data is written once, unless there are more runs than the memory has room
//! for read buffers of at least [`WINDOW_MIN`] bytes: then [`SortedRuns::reduce`] merges
//! runs into fewer first. Answers to `tuplesort.c` and `logtape.c`.

pub mod codec;
pub mod merge;
pub mod run;
pub mod splitters;
pub mod tape;
mod tuples;

use std::sync::{Arc, Mutex};

use crate::budget::{Charge, MemoryBudget};
use crate::error::Result;
use crate::tempspace::TempSpace;
use codec::Codec;
use merge::Merge;
use run::{Run, RunCursor, RunWriter};
use tape::Tape;
use tuples::Tuples;

/// Smallest useful read buffer per tape.
pub const WINDOW_MIN: usize = 32 << 10;
/// Largest read buffer per tape: more does not read faster.
pub const WINDOW_MAX: usize = 1 << 20;

/// The part of its share that a participant's runs may take: one in so many.
const SAMPLES_PART: usize = 8;

/// How a sort works; the same for all its participants.
#[derive(Clone, Copy, Debug)]
pub struct SortOptions {
    /// How spilled blocks are stored.
    pub codec: &'static dyn Codec,
    /// Bytes of a raw block, about.
    pub block: usize,
    /// Bytes of the payload that decide between equal keys.
    pub tie: usize,
}

impl SortOptions {
    /// LZ4, and blocks that suit the memory limit: 64 kB, less when memory is scarce.
    pub fn for_memory(limit: u64) -> SortOptions {
        let block = usize::try_from(limit / 1024).unwrap_or(usize::MAX);
        SortOptions {
            codec: &codec::Lz4,
            block: block.clamp(16 << 10, 64 << 10),
            tie: 0,
        }
    }
}

/// A sort in progress.
#[derive(Debug)]
pub struct Tuplesort {
    options: SortOptions,
    budget: Arc<MemoryBudget>,
    space: Arc<TempSpace>,
    sealed: Mutex<Sealed>,
}

#[derive(Debug, Default)]
struct Sealed {
    runs: Vec<(Arc<Tape>, Arc<Run>)>,
    charges: Vec<Charge>,
}

impl Tuplesort {
    /// A sort whose memory is charged to `budget` and whose tapes lie in `space`.
    pub fn begin(
        options: SortOptions,
        budget: &Arc<MemoryBudget>,
        space: &Arc<TempSpace>,
    ) -> Tuplesort {
        Tuplesort {
            options,
            budget: Arc::clone(budget),
            space: Arc::clone(space),
            sealed: Mutex::default(),
        }
    }

    /// A new participant; `share` bytes are what [`Participant::put`] may collect before
    /// it sorts and spills.
    pub fn participant(&self, share: usize) -> Participant<'_> {
        Participant {
            sort: self,
            tape: None,
            runs: Vec::new(),
            runs_memory: 0,
            tuples: Tuples::new(self.options.tie),
            share,
            charge: self.budget.charge(0),
        }
    }

    /// Seals the sort once every participant has finished.
    pub fn perform(self) -> SortedRuns {
        let sealed = self.sealed.into_inner().expect("no participant panicked");
        SortedRuns {
            options: self.options,
            budget: self.budget,
            space: self.space,
            runs: sealed.runs,
            charges: sealed.charges,
            passes: 0,
        }
    }

    fn seal(&self, tape: Tape, runs: Vec<Run>) {
        let mut sealed = self.sealed.lock().expect("no participant panicked");
        let memory = tape.memory() + runs.iter().map(Run::memory).sum::<usize>();
        sealed.charges.push(self.budget.charge(memory));
        let tape = Arc::new(tape);
        let runs = runs.into_iter().map(|run| (Arc::clone(&tape), Arc::new(run)));
        sealed.runs.extend(runs);
    }
}

/// Where a run that the caller forms is to lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the participant's tape in the temporary space.
    Disk,
    /// In memory, for a last run that fits.
    Memory,
}

/// One participant; owned by one worker.
#[derive(Debug)]
pub struct Participant<'s> {
    sort: &'s Tuplesort,
    tape: Option<Tape>,
    runs: Vec<Run>,
    runs_memory: usize,
    tuples: Tuples,
    share: usize,
    charge: Charge,
}

impl Participant<'_> {
    /// Puts a single tuple.
    pub fn put(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.tuples.push(key, payload);
        self.charge.set(self.tuples.memory());
        if self.tuples.memory() < self.share {
            return Ok(());
        }
        self.spill_tuples(Place::Disk)
    }

    fn spill_tuples(&mut self, place: Place) -> Result<()> {
        let mut tuples = std::mem::replace(&mut self.tuples, Tuples::new(0));
        tuples.sort();
        self.put_run(place, |run| {
            tuples
                .sorted()
                .try_for_each(|(key, payload)| run.add(key, payload).map(drop))
        })?;
        tuples.clear();
        self.tuples = tuples;
        self.charge.set(self.tuples.memory());
        Ok(())
    }

    /// Puts a run of tuples that `write` adds in order; an empty one leaves no trace.
    pub fn put_run(
        &mut self,
        place: Place,
        write: impl FnOnce(&mut RunWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let options = self.sort.options;
        let written = |tape: &mut Tape| {
            let mut writer = RunWriter::new(tape, options.codec, options.block);
            write(&mut writer)?;
            writer.finish()
        };
        match place {
            Place::Memory => {
                let mut tape = Tape::Memory(Vec::new());
                let run = written(&mut tape)?;
                if run.tuples > 0 {
                    self.sort.seal(tape, vec![run]);
                }
            }
            Place::Disk => {
                let tape = match &mut self.tape {
                    Some(tape) => tape,
                    none => none.insert(Tape::File(self.sort.space.file()?)),
                };
                let run = written(tape)?;
                if run.tuples > 0 {
                    self.runs.push(run);
                    self.bound_samples();
                }
            }
        }
        Ok(())
    }

    /// Keeps what all runs remember below a part of the share, so that a long input under
    /// a small limit, with its many runs, does not cross the limit by that alone.
    fn bound_samples(&mut self) {
        let memory = |runs: &[Run]| {
            runs.iter().map(|run| run.memory() + size_of::<Run>()).sum::<usize>()
        };
        self.runs_memory = memory(&self.runs);
        while self.runs_memory > self.share / SAMPLES_PART
            && self.runs.iter().any(|run| run.samples.len() > 1)
        {
            self.runs.iter_mut().for_each(Run::thin);
            self.runs_memory = memory(&self.runs);
        }
    }

    /// Bytes of memory that the runs on the tape hold.
    pub fn runs_memory(&self) -> usize {
        self.runs_memory
    }

    /// Runs put so far on the participant's tape.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Ends the participation: what `put` still holds becomes a last run, in memory if it
    /// is the only one.
    pub fn finish(mut self) -> Result<()> {
        if !self.tuples.is_empty() {
            let place = if self.runs.is_empty() { Place::Memory } else { Place::Disk };
            self.spill_tuples(place)?;
        }
        if let Some(tape) = self.tape.take() {
            self.sort.seal(tape, std::mem::take(&mut self.runs));
        }
        Ok(())
    }
}

/// The runs of a performed sort.
#[derive(Debug)]
pub struct SortedRuns {
    options: SortOptions,
    budget: Arc<MemoryBudget>,
    space: Arc<TempSpace>,
    runs: Vec<(Arc<Tape>, Arc<Run>)>,
    charges: Vec<Charge>,
    passes: u32,
}

impl SortedRuns {
    /// Number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// True when nothing was put.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes of all raw blocks.
    pub fn raw_bytes(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run.raw_bytes).sum()
    }

    /// Merge passes made before the last one.
    pub fn extra_passes(&self) -> u32 {
        self.passes
    }

    /// Keys that cut all tuples into up to `parts` parts of about equal size.
    pub fn splitters(&self, parts: usize) -> Vec<Box<[u8]>> {
        let runs: Vec<_> = self.runs.iter().map(|(_, run)| Arc::clone(run)).collect();
        splitters::splitters(&runs, parts)
    }

    /// Memory that a merge of one tape takes with a window of `window` bytes.
    pub fn cursor_memory(&self, window: usize) -> usize {
        // The window, the raw block, the key and the cursor itself.
        window + self.options.block + (4 << 10)
    }

    /// The window per tape when `merges` merges share `memory` bytes, or `None` when that
    /// would be less than [`WINDOW_MIN`].
    pub fn window(&self, memory: usize, merges: usize) -> Option<usize> {
        let tapes = self.runs.len().max(1) * merges.max(1);
        let window = (memory / tapes).checked_sub(self.cursor_memory(0))?;
        (window >= WINDOW_MIN).then_some(window.min(WINDOW_MAX))
    }

    /// Merges the tuples with `from` ≤ key < `until`, with `window` bytes per tape.
    pub fn merge(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        window: usize,
    ) -> Result<Merge> {
        self.merge_of(&self.runs, from, until, window)
    }

    fn merge_of(
        &self,
        runs: &[(Arc<Tape>, Arc<Run>)],
        from: &[u8],
        until: Option<&[u8]>,
        window: usize,
    ) -> Result<Merge> {
        let mut cursors = Vec::with_capacity(runs.len());
        for (tape, run) in runs {
            let cursor = RunCursor::open(Arc::clone(tape), run, from, until, window)?;
            cursors.extend(cursor);
        }
        Ok(Merge::new(cursors, self.options.tie, until))
    }

    /// Merges runs into fewer until a merge of all of them fits into `memory` bytes.
    /// `cancelled` is asked now and then.
    pub fn reduce(
        &mut self,
        memory: usize,
        cancelled: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let at_once = (memory / self.cursor_memory(WINDOW_MIN)).max(2);
        while self.runs.len() > at_once {
            self.passes += 1;
            // As few tuples as possible are written again: the last pass takes all that
            // fit, so only the surplus must go, smallest runs first.
            let surplus = self.runs.len() - at_once + 1;
            let take = surplus.min(at_once).max(2);
            self.runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.stored_bytes));
            let group = self.runs.split_off(self.runs.len() - take);
            let charge = self.budget.charge(take * self.cursor_memory(WINDOW_MIN));
            let mut tape = Tape::File(self.space.file()?);
            let mut writer =
                RunWriter::new(&mut tape, self.options.codec, self.options.block);
            let mut merge = self.merge_of(&group, &[], None, WINDOW_MIN)?;
            while let Some((key, payload)) = merge.next()? {
                writer.add(key, payload)?;
                cancelled()?;
            }
            drop(merge);
            drop(charge);
            let run = writer.finish()?;
            self.charges.push(self.budget.charge(run.memory()));
            self.runs.push((Arc::new(tape), Arc::new(run)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Bytes;

    type Tuple = (Vec<u8>, Vec<u8>);

    /// Tuples with keys that share prefixes, some of them equal.
    fn tuples(seed: u64, n: u64) -> Vec<Tuple> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        (0..n)
            .map(|_| {
                let key =
                    format!("key{:05}/{}", next() % 5000, next() % 3).into_bytes();
                (key, next().to_be_bytes().to_vec())
            })
            .collect()
    }

    fn drained(mut merge: Merge) -> Vec<Tuple> {
        let mut all = Vec::new();
        while let Some((key, payload)) = merge.next().unwrap() {
            all.push((key.to_vec(), payload.to_vec()));
        }
        all
    }

    fn sorted_runs(
        participants: u64,
        share: usize,
        dir: &std::path::Path,
    ) -> SortedRuns {
        let budget = MemoryBudget::new(Bytes(1 << 20));
        let space = TempSpace::create(dir, None).unwrap();
        let options = SortOptions { tie: 8, block: 500, ..SortOptions::for_memory(0) };
        let sort = Tuplesort::begin(options, &budget, &space);
        for seed in 0..participants {
            let mut participant = sort.participant(share);
            for (key, payload) in tuples(seed, 4000) {
                participant.put(&key, &payload).unwrap();
            }
            participant.finish().unwrap();
        }
        sort.perform()
    }

    fn expected(participants: u64) -> Vec<Tuple> {
        let mut all: Vec<_> =
            (0..participants).flat_map(|seed| tuples(seed, 4000)).collect();
        all.sort();
        all
    }

    #[test]
    fn what_is_put_comes_out_in_order_from_disk_and_from_memory() {
        let dir = tempfile::tempdir().unwrap();
        for (share, spilled) in [(20_000, true), (1 << 20, false)] {
            let runs = sorted_runs(3, share, dir.path());
            assert_eq!(runs.len() > 3, spilled);
            assert_eq!(drained(runs.merge(&[], None, 600).unwrap()), expected(3));
        }
    }

    #[test]
    fn parts_between_splitters_make_up_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let runs = sorted_runs(3, 20_000, dir.path());
        let splitters = runs.splitters(7);
        assert_eq!(splitters.len(), 6);
        let mut all = Vec::new();
        let mut from: &[u8] = &[];
        for until in splitters.iter().map(|key| Some(&**key)).chain([None]) {
            all.extend(drained(runs.merge(from, until, 600).unwrap()));
            from = until.unwrap_or(&[]);
        }
        assert_eq!(all, expected(3));
    }

    #[test]
    fn too_many_runs_are_reduced_without_a_change_of_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let mut runs = sorted_runs(3, 10_000, dir.path());
        let before = runs.len();
        let memory = 4 * runs.cursor_memory(WINDOW_MIN);
        runs.reduce(memory, &|| Ok(())).unwrap();
        assert!(before > 4 && runs.len() <= 4, "{before} runs, then {}", runs.len());
        assert!(runs.extra_passes() > 0);
        assert_eq!(drained(runs.merge(&[], None, 600).unwrap()), expected(3));
    }

    #[test]
    fn presorted_tuples_keep_their_order_without_a_sort() {
        let mut tuples = Tuples::new(0);
        for n in 0..100u32 {
            tuples.push(&(n / 10).to_be_bytes(), &n.to_be_bytes());
        }
        tuples.sort();
        let payloads: Vec<u32> = tuples
            .sorted()
            .map(|(_, payload)| u32::from_be_bytes(payload.try_into().unwrap()))
            .collect();
        assert_eq!(payloads, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn long_keys_and_many_runs_leave_the_memory_alone_and_every_key_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(Bytes(16 << 20));
        let space = TempSpace::create(dir.path(), None).unwrap();
        let sort = Tuplesort::begin(SortOptions::for_memory(16 << 20), &budget, &space);
        let share = 256 << 10;
        let mut participant = sort.participant(share);
        // Keys that differ in their first bytes, and behind more than is remembered.
        let key = |run: usize, n: usize| {
            [
                format!("{n:04}").as_bytes(),
                &[b'x'; 2000],
                format!("{run:03}").as_bytes(),
            ]
            .concat()
        };
        let same = |n: usize| [&[b'y'; 2000], format!("{n:04}").as_bytes()].concat();
        for run in 0..40 {
            let write = |writer: &mut RunWriter<'_>| {
                (0..400).try_for_each(|n| writer.add(&key(run, n), b"").map(drop))?;
                (0..100).try_for_each(|n| writer.add(&same(n), b"").map(drop))
            };
            participant.put_run(Place::Disk, write).unwrap();
            assert!(participant.runs_memory() <= share / SAMPLES_PART);
        }
        participant.finish().unwrap();
        let runs = sort.perform();
        let count = |from: &[u8], until: Option<&[u8]>| {
            let mut merge = runs.merge(from, until, WINDOW_MIN).unwrap();
            std::iter::from_fn(|| merge.next().unwrap().map(drop)).count()
        };
        assert_eq!(count(&[], None), 40 * 500);
        assert_eq!(count(&key(7, 200), Some(&key(7, 300))), 40 * 100);
        assert_eq!(count(&same(31), Some(&same(77))), 40 * 46);
        assert_eq!(count(&same(99), None), 40);
    }
}
