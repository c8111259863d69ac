//! What a build did, in plain numbers; `report` turns them into tables.
//!
//! Sizes are bytes, times are seconds. The same structs are written to `report.json`
//! (`"ginmill_report": 1`) and read back from it.

use serde::{Deserialize, Serialize};

pub use crate::document::Problem;
use crate::tempspace::TempUsage;

/// A whole build.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BuildStats {
    /// Version of this shape: 1.
    pub ginmill_report: u32,
    /// Version of ginmill that built.
    pub version: String,
    /// What was read.
    pub input: InputStats,
    /// How it was built.
    pub settings: Settings,
    /// In the order they ran: scanning, sorting, merging and loading.
    pub phases: Vec<Phase>,
    /// In definition order.
    pub indexes: Vec<IndexStats>,
    /// By number; one for the leader when there are no workers.
    pub workers: Vec<WorkerStats>,
    /// The shared tuplesort.
    #[serde(default)]
    pub sort: SortStats,
    /// All temporary files together.
    pub temp: TempUsage,
    /// The account and the operating system's figure.
    pub memory: MemoryStats,
    /// Messages that were left out, and messages indexed with something missing.
    pub problems: Problems,
}

/// The shared tuplesort.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SortStats {
    /// Sorted runs, on disk and in memory.
    pub runs: u64,
    /// Merge passes before the last one, because there were more runs than the memory
    /// has read buffers for.
    pub extra_passes: u32,
    /// Read buffer per tape in the last pass.
    pub window: u64,
    /// Workers that merged at a time.
    pub merge_workers: usize,
    /// Parts of the key space.
    pub parts: u64,
}

/// What was read.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InputStats {
    /// Input files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Documents in the indexes.
    pub documents: u64,
    /// Block ranges handed out.
    pub ranges: u64,
}

/// How it was built.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Workers asked for; 0 is the leader alone.
    pub workers_asked: usize,
    /// Workers started.
    pub workers: usize,
    /// Why fewer than asked, if so.
    pub workers_note: Option<String>,
    /// Memory limit.
    pub memory: u64,
    /// Limit on temporary space.
    pub temp_limit: Option<u64>,
    /// Spill codec.
    pub codec: String,
    /// Percent of an entry page that is filled.
    pub fillfactor: u8,
    /// Input format.
    pub format: String,
}

/// One phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// `scanning`, `sorting`, `merging and loading`, `syncing`.
    pub name: String,
    /// Wall clock.
    pub wall: f64,
    /// All threads of the process.
    pub cpu: f64,
}

/// One index.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct IndexStats {
    /// File name without `.gin`.
    pub name: String,
    /// As given: `tsvector_ops(body, english)`.
    pub definition: String,
    /// Documents with at least one posting or placeholder.
    pub documents: u64,
    /// Distinct keys, placeholders included.
    pub keys: u64,
    /// (key, TID) pairs.
    pub postings: u64,
    /// Pages of the entry tree.
    pub entry_pages: u64,
    /// Pages of posting trees.
    pub data_pages: u64,
    /// File size.
    pub bytes: u64,
    /// Tokens left out as PostgreSQL leaves them out (over its length limit).
    pub skipped_tokens: u64,
    /// Its share of the temporary files.
    pub spill: SpillStats,
}

/// What an index put into temporary files.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SpillStats {
    /// Sorted runs with entries of this index.
    pub runs: u64,
    /// Tuples: (key, piece of its TID list).
    pub tuples: u64,
    /// TIDs in them.
    pub tids: u64,
    /// Bytes these TIDs would take at six bytes each.
    pub plain: u64,
    /// Bytes they take as varbyte differences.
    pub varbyte: u64,
    /// Bytes of keys and tuple headers after cutting shared prefixes.
    pub keys: u64,
    /// Bytes on disk, compressed (its share of blocks that indexes share).
    pub written: u64,
}

/// One worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Documents it read.
    pub documents: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Sorted runs it wrote.
    pub runs: u64,
    /// Bytes of temporary files it wrote.
    pub spilled: u64,
    /// Seconds it scanned.
    pub scan: f64,
    /// Seconds it sorted and wrote runs (part of `scan`).
    pub spill: f64,
    /// Seconds it merged.
    pub merge: f64,
    /// Seconds it waited for a full queue to the leader (part of `merge`).
    pub stalled: f64,
}

/// Memory.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryStats {
    /// The limit.
    pub limit: u64,
    /// Most ever charged to the account.
    pub peak_charged: u64,
    /// Most anonymous resident memory of the process that sampling saw.
    pub peak_resident: u64,
    /// Samples during the build: seconds since its start, charged, resident.
    pub samples: Vec<(f64, u64, u64)>,
}

/// What went wrong with single messages.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Problems {
    /// Messages left out.
    pub skipped: u64,
    /// Messages indexed although something in them could not be read as written.
    pub damaged: u64,
    /// The first of them, in input order, up to a bound.
    pub list: Vec<Problem>,
}
