//! What a worker does while the inputs are scanned: claim a range, read its documents,
//! turn fields into keys, accumulate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use super::accumulate::Accumulator;
use super::plan::Plan;
use super::stats::{BuildStats, InputStats, Problem, SpillStats, WorkerStats};
use super::watch::Watch;
use super::{OnError, PROBLEMS_MAX};
use crate::archive::{BlockRange, BlockRanges, Inputs, Item, ItemReader};
use crate::budget::{Charge, MemoryBudget};
use crate::catalog::{DocumentEntry, DocumentsWriter, RangeDocuments};
use crate::document::{Document, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::gin::Category;
use crate::opclass::{Extractor, KeyId, KeySink};
use crate::tid::Tid;
use crate::tuplesort::{Place, Tuplesort};

/// What all workers of a scan share.
#[derive(Debug)]
pub struct Scan<'a> {
    /// What to build.
    pub plan: &'a Plan,
    /// What to read.
    pub inputs: &'a Arc<Inputs>,
    /// Its parts.
    pub ranges: &'a BlockRanges,
    /// Where postings go.
    pub sort: &'a Tuplesort,
    /// Where the documents' places go.
    pub documents: &'a InOrder,
    /// The account.
    pub budget: &'a Arc<MemoryBudget>,
    /// Progress and cancellation.
    pub watch: &'a Watch,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// By worker.
    pub workers: Vec<WorkerStats>,
    /// By index.
    pub spill: Vec<SpillStats>,
    /// By index: tokens left out.
    pub skipped_tokens: Vec<u64>,
    /// Block ranges.
    pub ranges: u64,
    /// Documents left out.
    pub skipped: u64,
    /// Documents indexed with something missing.
    pub damaged: u64,
    /// The first problems, in input order.
    pub problems: Vec<(u32, u64, Problem)>,
}

impl Scanned {
    /// What a scan without a build has to tell.
    pub fn into_stats(self, documents: u64) -> BuildStats {
        BuildStats {
            ginmill_report: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            input: InputStats {
                documents,
                bytes: self.workers.iter().map(|worker| worker.bytes).sum(),
                ranges: self.ranges,
                ..InputStats::default()
            },
            workers: self.workers,
            ..BuildStats::default()
        }
    }

    fn add(&mut self, other: Scanned) {
        self.workers.extend(other.workers);
        self.spill
            .resize(other.spill.len().max(self.spill.len()), SpillStats::default());
        for (mine, theirs) in self.spill.iter_mut().zip(&other.spill) {
            mine.runs += theirs.runs;
            mine.tuples += theirs.tuples;
            mine.tids += theirs.tids;
            mine.plain += theirs.plain;
            mine.varbyte += theirs.varbyte;
            mine.keys += theirs.keys;
            mine.written += theirs.written;
        }
        let tokens = other.skipped_tokens.len().max(self.skipped_tokens.len());
        self.skipped_tokens.resize(tokens, 0);
        for (mine, theirs) in self.skipped_tokens.iter_mut().zip(&other.skipped_tokens)
        {
            *mine += theirs;
        }
        self.ranges += other.ranges;
        self.skipped += other.skipped;
        self.damaged += other.damaged;
        self.problems.extend(other.problems);
        self.problems.sort();
        self.problems.truncate(PROBLEMS_MAX);
    }
}

/// Scans all ranges with the workers of `pool`, or in this thread without one.
pub fn scan(scan: &Scan<'_>, pool: Option<&ThreadPool>) -> Result<Scanned> {
    let results = match pool {
        None => vec![Worker::new(scan, 0)?.run()],
        Some(pool) => pool.broadcast(|context| {
            let result = Worker::new(scan, context.index()).and_then(Worker::run);
            if result.is_err() {
                scan.watch.fail();
            }
            result
        }),
    };
    let mut all = Scanned::default();
    first_failure(results)?.into_iter().for_each(|one| all.add(one));
    Ok(all)
}

/// All results, or the error that made the others stop.
pub fn first_failure<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let cancelled = |error: &Error| matches!(error.kind(), ErrorKind::Cancelled);
    let mut stopped = None;
    let mut values = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) if cancelled(&error) => stopped = Some(error),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(values), Err)
}

struct Worker<'a> {
    scan: &'a Scan<'a>,
    accumulator: Accumulator<'a>,
    /// Per column, in the order of the plan's columns.
    extractors: Vec<Box<dyn Extractor>>,
    stats: WorkerStats,
    spilling: Duration,
    found: Scanned,
    charge: Charge,
    share: usize,
    dropped: Dropped,
}

/// Where keys go that nobody wants.
#[derive(Debug, Default)]
struct Dropped {
    keys: KeyId,
}

impl KeySink for Dropped {
    fn key(&mut self, _key: &[u8]) -> KeyId {
        self.keys = self.keys.wrapping_add(1);
        self.keys
    }

    fn post(&mut self, _ids: &[KeyId]) -> Result<bool> {
        Ok(false)
    }

    fn post_null(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<'a> Worker<'a> {
    fn new(scan: &'a Scan<'a>, number: usize) -> Result<Worker<'a>> {
        let plan = scan.plan;
        let columns = plan.columns.iter().map(|column| (column.index, column.number));
        // The first runs end at staggered points, so that the workers do not all come
        // to the disk together ever after.
        let workers = plan.participants();
        let first_share = plan.share / 2 + plan.share / 2 * (number + 1) / workers;
        let accumulator =
            Accumulator::new(columns, scan.sort.participant(plan.share), first_share);
        let extractors = plan
            .columns
            .iter()
            .map(|column| column.class.extractor(column.config.as_deref()))
            .collect::<Result<_>>()?;
        Ok(Worker {
            scan,
            accumulator,
            extractors,
            stats: WorkerStats::default(),
            spilling: Duration::ZERO,
            found: Scanned {
                skipped_tokens: vec![0; plan.indexes.len()],
                ..Scanned::default()
            },
            charge: scan.budget.charge(0),
            share: plan.share,
            dropped: Dropped::default(),
        })
    }

    fn run(mut self) -> Result<Scanned> {
        let began = Instant::now();
        let mut reader = self.scan.inputs.reader();
        while let Some(range) = self.scan.ranges.claim()? {
            self.range(&range, &mut reader)?;
        }
        for (column, extractor) in
            self.scan.plan.columns.iter().zip(&mut self.extractors)
        {
            self.found.skipped_tokens[usize::from(column.index)] +=
                extractor.take_skipped();
        }
        self.extractors.clear();
        if !self.accumulator.is_empty() {
            // The last run may stay in memory where the accumulator and the run fit both.
            let fits = self.accumulator.memory() <= self.share / 2;
            let place = if fits { Place::Memory } else { Place::Disk };
            self.spill(place)?;
        }
        let (spill, runs, spilled) = self.accumulator.finish()?;
        self.found.spill = spill;
        self.stats.runs = runs;
        self.stats.spilled = spilled;
        self.stats.scan = began.elapsed().as_secs_f64();
        self.stats.spill = self.spilling.as_secs_f64();
        self.found.workers.push(self.stats);
        Ok(self.found)
    }

    fn range(&mut self, range: &BlockRange, reader: &mut ItemReader) -> Result<()> {
        let mut documents = RangeDocuments::new(range.first_block);
        for (n, item) in range.items.iter().enumerate() {
            self.scan.watch.check()?;
            let tid = Tid::numbered(range.first_block, n as u64);
            match self.item(item, tid, reader)? {
                Some(entry) => {
                    documents.push(&entry);
                }
                None => documents.skip(),
            }
            self.scan.watch.add(item.len, 1);
        }
        self.found.ranges += 1;
        self.stats.documents += documents.len();
        self.stats.bytes += range.bytes;
        self.scan.documents.submit(range.number, documents.into_bytes())
    }

    /// Indexes one item; `None` when it had to be left out.
    fn item(
        &mut self,
        item: &Item,
        tid: Tid,
        reader: &mut ItemReader,
    ) -> Result<Option<DocumentEntry>> {
        let plan = self.scan.plan;
        let mut document = Document::default();
        let parsed = reader.bytes(item).and_then(|raw| {
            self.scan.inputs.parse(item, raw, &plan.wanted, &mut document)
        });
        if let Err(error) = parsed {
            if plan.on_error == OnError::Fail {
                let file = &self.scan.inputs.files()[item.file as usize].path;
                return Err(Error::corrupt(
                    file,
                    format!("byte {}", item.offset),
                    "a message that can be indexed",
                    error.to_string(),
                ));
            }
            self.found.skipped += 1;
            self.problem(item, tid, error.to_string(), true);
            return Ok(None);
        }
        let mut warnings = std::mem::take(&mut document.warnings);
        let packed = document.tid.unwrap_or(tid).pack();
        for n in 0..plan.columns.len() {
            let value = document.values.get(plan.columns[n].field);
            if let Err(error) = self.column(n, packed, value.unwrap_or(&Value::Null)) {
                match error.kind() {
                    ErrorKind::Value(reason) => {
                        warnings.push(format!("{}: {reason}", plan.columns[n].name));
                    }
                    _ => return Err(error),
                }
            }
        }
        if !warnings.is_empty() {
            self.found.damaged += 1;
            self.problem(item, tid, warnings.join("; "), false);
        }
        if self.accumulator.is_full() {
            self.spill(Place::Disk)?;
            self.forget();
        }
        self.charge.set(self.accumulator.memory());
        Ok(Some(DocumentEntry {
            file: item.file,
            offset: item.offset,
            len: item.len,
            date: document.date,
        }))
    }

    fn column(&mut self, n: usize, tid: u64, value: &Value<'_>) -> Result<()> {
        if self.scan.plan.extract_only {
            return self.drop_keys(n, value);
        }
        let began = Instant::now();
        let mut sink = self.accumulator.sink(n, tid);
        sink.extractor_holds(self.extractors[n].memory());
        let done = if matches!(value, Value::Null) {
            sink.post_category(Category::NullItem)
        } else {
            let done = self.extractors[n].extract(value, &mut sink);
            if sink.posted() {
                done
            } else {
                sink.post_category(Category::EmptyItem).and(done)
            }
        };
        if sink.spilled() {
            self.forget();
            self.spilling += began.elapsed();
            self.accumulator.set_share(self.share);
        }
        self.accumulator.set_extractors(self.extractors_memory());
        done
    }

    /// Makes a value's keys for their own sake.
    fn drop_keys(&mut self, n: usize, value: &Value<'_>) -> Result<()> {
        if !matches!(value, Value::Null) {
            self.extractors[n].extract(value, &mut self.dropped)?;
        }
        if self.extractors_memory() > self.share {
            self.forget();
        }
        Ok(())
    }

    fn spill(&mut self, place: Place) -> Result<()> {
        let began = Instant::now();
        self.accumulator.spill(place)?;
        self.accumulator.set_share(self.share);
        self.spilling += began.elapsed();
        Ok(())
    }

    fn forget(&mut self) {
        self.extractors.iter_mut().for_each(|extractor| extractor.forget());
        self.accumulator.set_extractors(self.extractors_memory());
    }

    fn extractors_memory(&self) -> usize {
        self.extractors.iter().map(|extractor| extractor.memory()).sum()
    }

    fn problem(&mut self, item: &Item, tid: Tid, reason: String, skipped: bool) {
        let problems = &mut self.found.problems;
        if problems.len() == 2 * PROBLEMS_MAX {
            problems.sort();
            problems.truncate(PROBLEMS_MAX);
        }
        let file =
            self.scan.inputs.files()[item.file as usize].path.display().to_string();
        let problem = Problem { file, offset: item.offset, reason, skipped };
        problems.push((tid.block, u64::from(tid.offset), problem));
    }
}

/// Takes the ranges' documents as they are finished and writes them in input order.
#[derive(Debug)]
pub struct InOrder {
    state: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    writer: DocumentsWriter,
    next: u32,
    early: BTreeMap<u32, Vec<u8>>,
    charge: Charge,
}

impl InOrder {
    /// In front of this writer.
    pub fn new(writer: DocumentsWriter, budget: &Arc<MemoryBudget>) -> InOrder {
        let charge = budget.charge(writer.memory());
        InOrder {
            state: Mutex::new(Waiting {
                writer,
                next: 0,
                early: BTreeMap::new(),
                charge,
            }),
        }
    }

    /// Takes what [`RangeDocuments::into_bytes`] gave for range number `range`.
    fn submit(&self, range: u32, documents: Vec<u8>) -> Result<()> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.early.insert(range, documents);
        while let Some(documents) = state.early.remove(&state.next) {
            state.writer.add_range(&documents)?;
            state.next += 1;
        }
        let waiting: usize = state.early.values().map(Vec::len).sum();
        state.charge.set(state.writer.memory() + waiting);
        Ok(())
    }

    /// Ends the file; the number of documents in it.
    pub fn finish(self) -> Result<u64> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let documents = state.writer.len();
        state.writer.finish()?;
        Ok(documents)
    }
}
