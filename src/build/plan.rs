//! What a build is going to do: definitions looked up, memory divided.

use rayon::ThreadPool;

use super::{Builder, MEMORY_MIN, OnError};
use crate::archive::Inputs;
use crate::budget::Bytes;
use crate::catalog::{IndexDefinition, ResolvedIndex, resolve_all};
use crate::error::{Error, ErrorKind, Result};
use crate::opclass::{KeyType, OpClass};
use crate::tuplesort::SortOptions;
use crate::tuplesort::codec;

/// Less memory per participant is not worth a participant.
const SHARE_MIN: u64 = 4 << 20;
/// What a build needs beside its participants' shares: the documents' places, the sparse
/// indexes of runs, the leader.
const RESERVE: u64 = 2 << 20;
/// What a participant takes that is not charged: its stack, the parser's structures, the
/// items of its range, what the allocator rounds up.
pub const PARTICIPANT_MEMORY: usize = 1 << 20;
const INDEXES_MAX: usize = 250;

/// A column of an index, in the order of the sort.
pub struct PlanColumn {
    /// Its index, by position among the definitions.
    pub index: u8,
    /// Its position in the index, from 0.
    pub number: u8,
    /// Position of its field in a document.
    pub field: usize,
    /// The field's name, for messages.
    pub name: String,
    /// What makes its keys.
    pub class: &'static dyn OpClass,
    /// The class's configuration.
    pub config: Option<String>,
}

/// See the module.
pub struct Plan {
    /// As given, or the format's default.
    pub definitions: Vec<IndexDefinition>,
    /// The same, looked up.
    pub indexes: Vec<ResolvedIndex>,
    /// All columns of all indexes.
    pub columns: Vec<PlanColumn>,
    /// By field: whether any column needs it.
    pub wanted: Vec<bool>,
    /// Workers that will be started; 0 is the leader alone.
    pub workers: usize,
    /// Why fewer than were asked for.
    pub workers_note: Option<String>,
    /// Bytes of memory per participant of the scan.
    pub share: usize,
    /// How the sort works.
    pub sort: SortOptions,
    /// What happens with a message that cannot be indexed.
    pub on_error: OnError,
    /// Whether keys are dropped as soon as they are made.
    pub extract_only: bool,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("definitions", &self.definitions)
            .field("workers", &self.workers)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Looks up and divides; fails for whatever cannot be built.
    pub fn new(builder: &Builder, inputs: &Inputs) -> Result<Plan> {
        if builder.memory < MEMORY_MIN {
            return Err(ErrorKind::MemoryLimit {
                purpose: "a build".to_owned(),
                limit: builder.memory.0,
                needed: MEMORY_MIN.0,
            }
            .into());
        }
        if !(50..=100).contains(&builder.fillfactor) {
            return Err(Error::invalid(format!(
                "fillfactor {} is outside 50 to 100",
                builder.fillfactor
            )));
        }
        let codec = codec::find(&builder.codec).ok_or_else(|| {
            let known: Vec<_> =
                codec::CODECS.iter().map(|codec| codec.name()).collect();
            Error::invalid(format!(
                "unknown codec {:?}; known are {}",
                builder.codec,
                known.join(", ")
            ))
        })?;
        let definitions = if builder.indexes.is_empty() {
            let defaults = inputs.default_indexes().iter();
            defaults.map(|text| text.parse()).collect::<Result<Vec<_>>>()?
        } else {
            builder.indexes.clone()
        };
        if definitions.is_empty() || definitions.len() > INDEXES_MAX {
            return Err(Error::invalid(format!(
                "expected 1 to {INDEXES_MAX} index definitions, found {}",
                definitions.len()
            )));
        }
        let indexes = resolve_all(&definitions, inputs.fields())?;
        let mut columns = Vec::new();
        let mut wanted = vec![false; inputs.fields().len()];
        for (index, resolved) in indexes.iter().enumerate() {
            for (number, column) in resolved.columns.iter().enumerate() {
                wanted[column.field] = true;
                columns.push(PlanColumn {
                    index: u8::try_from(index).expect("checked above"),
                    number: u8::try_from(number).expect("definitions have few columns"),
                    field: column.field,
                    name: inputs.fields()[column.field].name.clone(),
                    class: column.class,
                    config: column.config.clone(),
                });
            }
        }
        let memory = builder.memory.0 - RESERVE;
        let most = usize::try_from(memory / SHARE_MIN).unwrap_or(usize::MAX).max(1);
        let workers = builder.workers.min(most);
        let workers_note = (workers < builder.workers).then(|| {
            format!(
                "{} of memory is enough for {workers} of {} workers at {} each",
                builder.memory,
                builder.workers,
                Bytes(SHARE_MIN)
            )
        });
        let share = usize::try_from(memory).unwrap_or(usize::MAX) / workers.max(1)
            - PARTICIPANT_MEMORY;
        let sort = SortOptions {
            codec,
            tie: super::accumulate::PIECE_FIRST,
            ..SortOptions::for_memory(builder.memory.0)
        };
        Ok(Plan {
            definitions,
            indexes,
            columns,
            wanted,
            workers,
            workers_note,
            share,
            sort,
            on_error: builder.on_error,
            extract_only: builder.extract_only,
        })
    }

    /// Threads that scan: the workers, or the leader alone.
    pub fn participants(&self) -> usize {
        self.workers.max(1)
    }

    /// The workers' threads; none when the leader is alone.
    pub fn pool(&self) -> Result<Option<ThreadPool>> {
        if self.workers == 0 {
            return Ok(None);
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.workers)
            .thread_name(|n| format!("ginmill-{n}"))
            .build()
            .map(Some)
            .map_err(|error| Error::invalid(format!("cannot start workers: {error}")))
    }

    /// Key types of an index's columns.
    pub fn key_types(&self, index: u8) -> Vec<KeyType> {
        let columns = &self.indexes[usize::from(index)].columns;
        columns.iter().map(|column| column.key_type).collect()
    }
}
