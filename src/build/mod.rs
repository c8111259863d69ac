//! The build: from input files to an archive directory.

mod accumulate;
mod arena;
mod merge;
mod plan;
mod report;
pub mod stats;
mod watch;
mod worker;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::archive::{BlockRanges, Inputs};
use crate::budget::{Bytes, MemoryBudget};
use crate::catalog::{ArchiveWriter, IndexDefinition};
use crate::error::Result;
use crate::tempspace::TempSpace;
use crate::tuplesort::Tuplesort;
use merge::{Loading, Merging};
use plan::Plan;
use stats::BuildStats;
use watch::{Ticker, Watch};
use worker::{InOrder, Scan};

/// Smallest memory limit of a build.
pub const MEMORY_MIN: Bytes = Bytes(16 << 20);
/// Memory limit unless another is set.
pub const MEMORY_DEFAULT: Bytes = Bytes(256 << 20);

/// Problems that the report lists one by one; further ones are only counted.
pub const PROBLEMS_MAX: usize = 1000;

/// What happens with a message that cannot be indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnError {
    /// It is listed among the problems and left out.
    #[default]
    Skip,
    /// The build fails with its reason.
    Fail,
}

/// How far a build has come; handed to [`Builder::progress`] some times a second.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Progress {
    /// Phase, named as `pg_stat_progress_create_index` does.
    pub phase: &'static str,
    /// Work of this phase done and in all: bytes of input, or of runs to merge.
    pub done: u64,
    /// See `done`; 0 when not known.
    pub total: u64,
    /// Documents read so far.
    pub documents: u64,
    /// Bytes of temporary files on disk now.
    pub temp: u64,
    /// Most bytes of temporary files so far.
    pub temp_peak: u64,
    /// Bytes charged to the memory budget now.
    pub memory: u64,
    /// The memory limit, bytes.
    pub memory_limit: u64,
}

/// Called with the progress from a thread of the build.
pub type ProgressFn = Arc<dyn Fn(&Progress) + Send + Sync>;

/// A build to be run; set what differs from the defaults, then [`Builder::build`].
#[derive(Clone)]
pub struct Builder {
    inputs: Vec<PathBuf>,
    format: Option<String>,
    indexes: Vec<IndexDefinition>,
    workers: usize,
    memory: Bytes,
    temp_dir: Option<PathBuf>,
    temp_limit: Option<Bytes>,
    codec: String,
    fillfactor: u8,
    on_error: OnError,
    force: bool,
    extract_only: bool,
    progress: Option<ProgressFn>,
    cancel: Arc<AtomicBool>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("inputs", &self.inputs)
            .field("indexes", &self.indexes)
            .field("workers", &self.workers)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// A build of these files and directories, with everything else at its default: the
    /// format sniffed, its default indexes, a worker per core, 256 MB of memory.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Builder {
        Builder {
            inputs: inputs.into_iter().map(Into::into).collect(),
            format: None,
            indexes: Vec::new(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            memory: MEMORY_DEFAULT,
            temp_dir: None,
            temp_limit: None,
            codec: "lz4".to_owned(),
            fillfactor: 100,
            on_error: OnError::default(),
            force: false,
            extract_only: false,
            progress: None,
            cancel: Arc::default(),
        }
    }

    /// The input format by name instead of sniffing it.
    pub fn format(mut self, name: impl Into<String>) -> Builder {
        self.format = Some(name.into());
        self
    }

    /// Adds an index; with none, the format's default indexes are built.
    pub fn index(mut self, definition: IndexDefinition) -> Builder {
        self.indexes.push(definition);
        self
    }

    /// Workers; 0 is the leader alone.
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = workers;
        self
    }

    /// Memory limit, at least [`MEMORY_MIN`].
    pub fn memory(mut self, limit: Bytes) -> Builder {
        self.memory = limit;
        self
    }

    /// Where temporary files go; default: the directory of the output.
    pub fn temp_dir(mut self, directory: impl Into<PathBuf>) -> Builder {
        self.temp_dir = Some(directory.into());
        self
    }

    /// Limit on the bytes of temporary files on disk.
    pub fn temp_limit(mut self, limit: Bytes) -> Builder {
        self.temp_limit = Some(limit);
        self
    }

    /// Codec of spilled blocks, by name.
    pub fn codec(mut self, name: impl Into<String>) -> Builder {
        self.codec = name.into();
        self
    }

    /// Percent of an entry page that is filled, 50 to 100.
    pub fn fillfactor(mut self, percent: u8) -> Builder {
        self.fillfactor = percent;
        self
    }

    /// Problems that the report lists one by one; further ones are only counted.
    pub const PROBLEMS_MAX: usize = 1000;

    /// What happens with a message that cannot be indexed.
    pub fn on_error(mut self, on_error: OnError) -> Builder {
        self.on_error = on_error;
        self
    }

    /// Replaces an archive that exists.
    pub fn force(mut self, force: bool) -> Builder {
        self.force = force;
        self
    }

    /// Only scans: keys are made and dropped, and no archive appears. For measuring what
    /// the rest of a build costs.
    pub fn extract_only(mut self, only: bool) -> Builder {
        self.extract_only = only;
        self
    }

    /// Calls back with the progress.
    pub fn progress(mut self, progress: ProgressFn) -> Builder {
        self.progress = Some(progress);
        self
    }

    /// A flag that stops the build (with `ErrorKind::Cancelled`) when it becomes true.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Builder {
        self.cancel = flag;
        self
    }

    /// Builds the archive directory `output`; it appears complete or not at all.
    pub fn build(&self, output: &Path) -> Result<BuildStats> {
        let inputs = Arc::new(Inputs::open(&self.inputs, self.format.as_deref())?);
        let plan = Plan::new(self, &inputs)?;
        let budget = MemoryBudget::new(self.memory);
        let beside = output.parent().filter(|parent| !parent.as_os_str().is_empty());
        let temp = self.temp_dir.as_deref().or(beside).unwrap_or(Path::new("."));
        let space = TempSpace::create(temp, self.temp_limit.map(|limit| limit.0))?;
        let archive = ArchiveWriter::create(output, self.force)?;
        let pool = plan.pool()?;
        let watch = Watch::new(&self.cancel, &budget, &space);
        let ticker = Ticker::start(&watch, self.progress.clone());

        // 1. Split, decode, extract, accumulate, spill.
        watch.begin(0, inputs.total_bytes());
        let ranges = BlockRanges::new(Arc::clone(&inputs));
        let documents = InOrder::new(archive.documents()?, &budget);
        let sort = Tuplesort::begin(plan.sort, &budget, &space);
        let scan = Scan {
            plan: &plan,
            inputs: &inputs,
            ranges: &ranges,
            sort: &sort,
            documents: &documents,
            budget: &budget,
            watch: &watch,
        };
        let mut scanned = worker::scan(&scan, pool.as_ref())?;
        let documents = documents.finish()?;
        if self.extract_only {
            return Ok(BuildStats {
                phases: watch.phases(),
                ..scanned.into_stats(documents)
            });
        }

        // 2. Every run is sealed, in memory or on tape, and there are few enough of them.
        let mut runs = sort.perform();
        watch.begin(1, runs.raw_bytes());
        let merging = Merging::plan(&plan, &mut runs, &budget, &watch)?;

        // 3. Parts of the key space are merged by workers and loaded in order.
        watch.begin(2, runs.raw_bytes());
        let mut loading = Loading::new(&plan, &archive, self.fillfactor);
        let merged = merging.run(&runs, pool.as_ref(), &mut loading)?;
        let sort = merging.stats(&runs);
        drop(runs);
        let loaded = loading.finish()?;

        // 4. Everything reaches the disk, then the directory its place.
        watch.begin(3, 0);
        loaded.sync(&watch)?;
        for (worker, merged) in scanned.workers.iter_mut().zip(&merged.workers) {
            worker.merge = merged.seconds;
            worker.stalled = merged.stalled;
        }
        let report = report::Report {
            builder: self,
            plan: &plan,
            inputs: &inputs,
            scanned,
            merged,
            loaded: &loaded,
            documents,
            ranges: &ranges,
            sort,
        };
        let catalog = report.catalog();
        let mut stats = report.stats();
        stats.temp = space.usage();
        stats.phases = watch.phases();
        stats.memory = watch.memory();
        watch.check()?;
        archive.publish(&catalog, &stats)?;
        drop(ticker);
        Ok(stats)
    }
}
