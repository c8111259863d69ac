//! Gathers what the parts of a build counted into its catalog and its statistics.

use super::merge::{Loaded, Merged};
use super::plan::Plan;
use super::stats::{BuildStats, IndexStats, InputStats, Problems, Settings, SortStats};
use super::worker::Scanned;
use super::{Builder, PROBLEMS_MAX};
use crate::archive::{BlockRanges, Inputs};
use crate::catalog::{Catalog, InputFile};
use crate::document::Field;

/// The parts.
#[derive(Debug)]
pub struct Report<'a> {
    /// What was asked for.
    pub builder: &'a Builder,
    /// What was made of it.
    pub plan: &'a Plan,
    /// What was read.
    pub inputs: &'a Inputs,
    /// From the scan.
    pub scanned: Scanned,
    /// From the merge.
    pub merged: Merged,
    /// From the loaders.
    pub loaded: &'a Loaded,
    /// Documents in the archive.
    pub documents: u64,
    /// With the problems found while claiming.
    pub ranges: &'a BlockRanges,
    /// From the sort.
    pub sort: SortStats,
}

impl Report<'_> {
    /// The archive's catalog.
    pub fn catalog(&self) -> Catalog {
        let inputs = self.inputs.files().iter().map(|file| InputFile {
            // Searching must find the file from any working directory.
            path: std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone()),
            size: file.size,
            mtime_ns: file.mtime,
        });
        let fields: &[Field] = self.inputs.fields();
        let indexes: Vec<_> = self
            .plan
            .definitions
            .iter()
            .cloned()
            .zip(self.plan.indexes.iter().cloned())
            .collect();
        let format = self.inputs.format_name();
        Catalog::new(format, inputs.collect(), fields, &indexes, self.documents)
    }

    /// The statistics, but for temporary space, phases and memory.
    pub fn stats(self) -> BuildStats {
        let Report { builder, plan, inputs, scanned, merged, loaded, .. } = self;
        let indexes = plan.definitions.iter().zip(loaded.trees()).enumerate();
        let indexes = indexes.map(|(n, (definition, tree))| IndexStats {
            name: definition.name.clone(),
            definition: definition.body(),
            documents: self.documents,
            keys: merged.encoded[n].keys,
            postings: merged.encoded[n].postings,
            entry_pages: tree.entry_pages,
            data_pages: tree.data_pages,
            bytes: tree.bytes,
            skipped_tokens: scanned.skipped_tokens.get(n).copied().unwrap_or(0),
            spill: scanned.spill.get(n).cloned().unwrap_or_default(),
        });
        let indexes = indexes.collect();
        let mut list: Vec<_> = inputs.problems().to_vec();
        list.extend(self.ranges.problems());
        let skipped = list.len() as u64 + scanned.skipped;
        list.extend(scanned.problems.into_iter().map(|(_, _, problem)| problem));
        list.truncate(PROBLEMS_MAX);
        BuildStats {
            ginmill_report: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            input: InputStats {
                files: inputs.files().len() as u64,
                bytes: inputs.total_bytes(),
                documents: self.documents,
                ranges: scanned.ranges,
            },
            settings: Settings {
                workers_asked: builder.workers,
                workers: plan.workers,
                workers_note: plan.workers_note.clone(),
                memory: builder.memory.0,
                temp_limit: builder.temp_limit.map(|limit| limit.0),
                codec: plan.sort.codec.name().to_owned(),
                fillfactor: builder.fillfactor,
                format: inputs.format_name().to_owned(),
            },
            indexes,
            workers: scanned.workers,
            problems: Problems { skipped, damaged: scanned.damaged, list },
            sort: self.sort,
            ..BuildStats::default()
        }
    }
}
