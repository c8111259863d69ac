//! The tables: input and settings, phases, indexes, temporary files, sort, workers,
//! memory, problems.

use super::{Cell, Report, Table, index_bytes, names, text, wall};
use crate::build::stats::{BuildStats, IndexStats, SpillStats};

/// A table of names with values.
fn pairs(rows: Vec<(&str, Cell)>) -> Table {
    Table {
        columns: names(&["what", "value"]),
        rows: rows.into_iter().map(|(name, cell)| vec![name.into(), cell]).collect(),
        ..Table::default()
    }
}

pub(super) struct Build;

impl Report for Build {
    fn name(&self) -> &'static str {
        "build"
    }

    fn summary(&self) -> &'static str {
        "Build"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let (input, settings) = (&stats.input, &stats.settings);
        let seconds = wall(stats);
        let per_second = |amount: u64| {
            if seconds > 0.0 { Some(amount as f64 / seconds) } else { None }
        };
        let workers = match (settings.workers, settings.workers_asked) {
            (0, 0) => "the leader alone".to_owned(),
            (started, asked) if started == asked => started.to_string(),
            (started, asked) => {
                let why = settings.workers_note.as_deref().unwrap_or("no reason given");
                format!("{started} of {asked} asked for: {why}")
            }
        };
        let rate = match (per_second(input.documents), per_second(input.bytes)) {
            (Some(documents), Some(bytes)) => Cell::Text(format!(
                "{} messages/s, {}/s",
                text::count(documents as u64),
                text::size(bytes as u64)
            )),
            _ => Cell::None,
        };
        pairs(vec![
            ("built by", Cell::Text(format!("ginmill {}", stats.version))),
            ("input format", settings.format.as_str().into()),
            ("input files", Cell::Count(input.files)),
            ("input size", Cell::Bytes(input.bytes)),
            ("messages indexed", Cell::Count(input.documents)),
            ("messages left out", Cell::Count(stats.problems.skipped)),
            ("messages damaged", Cell::Count(stats.problems.damaged)),
            ("block ranges", Cell::Count(input.ranges)),
            ("workers", Cell::Text(workers)),
            ("memory limit", Cell::Bytes(settings.memory)),
            (
                "temporary files limit",
                settings.temp_limit.map_or("none".into(), Cell::Bytes),
            ),
            ("spill codec", settings.codec.as_str().into()),
            ("fillfactor", Cell::Text(format!("{} %", settings.fillfactor))),
            ("size of the indexes", Cell::Bytes(index_bytes(stats))),
            (
                "of the input",
                Cell::share(index_bytes(stats) as f64, input.bytes as f64),
            ),
            ("time", Cell::Seconds(seconds)),
            ("speed", rate),
        ])
    }
}

pub(super) struct Phases;

impl Report for Phases {
    fn name(&self) -> &'static str {
        "phases"
    }

    fn summary(&self) -> &'static str {
        "Time per phase"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let whole = wall(stats);
        let row = |name: &str, wall: f64, cpu: f64| {
            let busy = if wall > 0.0 { Cell::Number(cpu / wall) } else { Cell::None };
            let share = Cell::share(wall, whole);
            vec![name.into(), Cell::Seconds(wall), share, Cell::Seconds(cpu), busy]
        };
        let phases = stats.phases.iter();
        let mut rows: Vec<_> =
            phases.map(|phase| row(&phase.name, phase.wall, phase.cpu)).collect();
        rows.push(row(
            "total",
            whole,
            stats.phases.iter().map(|phase| phase.cpu).sum(),
        ));
        Table {
            columns: names(&["phase", "time", "share", "CPU time", "processors used"]),
            rows,
            total: true,
            notes: Vec::new(),
        }
    }
}

pub(super) struct Indexes;

impl Report for Indexes {
    fn name(&self) -> &'static str {
        "indexes"
    }

    fn summary(&self) -> &'static str {
        "Indexes"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let whole = index_bytes(stats) as f64;
        let row = |index: &IndexStats| {
            vec![
                index.name.as_str().into(),
                index.definition.as_str().into(),
                Cell::Count(index.documents),
                Cell::Count(index.keys),
                Cell::Count(index.postings),
                Cell::Count(index.entry_pages),
                Cell::Count(index.data_pages),
                Cell::Bytes(index.bytes),
                Cell::share(index.bytes as f64, whole),
            ]
        };
        let mut rows: Vec<_> = stats.indexes.iter().map(row).collect();
        let sum = |of: fn(&IndexStats) -> u64| {
            stats.indexes.iter().fold(0u64, |sum, index| sum.saturating_add(of(index)))
        };
        rows.push(vec![
            "total".into(),
            Cell::None,
            Cell::None,
            Cell::Count(sum(|index| index.keys)),
            Cell::Count(sum(|index| index.postings)),
            Cell::Count(sum(|index| index.entry_pages)),
            Cell::Count(sum(|index| index.data_pages)),
            Cell::Bytes(sum(|index| index.bytes)),
            Cell::share(whole, whole),
        ]);
        let skipped = stats.indexes.iter().filter(|index| index.skipped_tokens > 0);
        let notes = skipped.map(|index| {
            format!(
                "{}: {} tokens are longer than PostgreSQL indexes and were left out, as \
                 PostgreSQL does",
                index.name,
                text::count(index.skipped_tokens)
            )
        });
        Table {
            columns: names(&[
                "index",
                "definition",
                "messages",
                "keys",
                "postings",
                "entry pages",
                "tree pages",
                "size",
                "share",
            ]),
            rows,
            total: true,
            notes: notes.collect(),
        }
    }
}

pub(super) struct Temp;

impl Report for Temp {
    fn name(&self) -> &'static str {
        "temp"
    }

    fn summary(&self) -> &'static str {
        "Temporary bytes per index"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let row = |name: &str, spill: &SpillStats| {
            vec![
                name.into(),
                Cell::Count(spill.runs),
                Cell::Count(spill.tuples),
                Cell::Count(spill.tids),
                Cell::Bytes(spill.plain),
                Cell::Bytes(spill.varbyte),
                Cell::Bytes(spill.keys),
                Cell::Bytes(spill.written),
                Cell::share(spill.written as f64, spill.plain as f64),
            ]
        };
        let mut rows: Vec<_> =
            stats.indexes.iter().map(|index| row(&index.name, &index.spill)).collect();
        let mut sum = total_spill(stats);
        // A run holds entries of several indexes; theirs do not add up.
        sum.runs = stats.workers.iter().fold(0, |sum, w| sum.saturating_add(w.runs));
        rows.push(row("total", &sum));
        Table {
            columns: names(&[
                "index",
                "runs",
                "tuples",
                "TIDs",
                "plain TIDs",
                "varbyte",
                "keys",
                "written",
                "of plain",
            ]),
            rows,
            total: true,
            notes: vec![
                "plain: these TIDs at six bytes each; written: TIDs and keys on disk, \
                 compressed, without headers and indexes of the runs' blocks"
                    .to_owned(),
            ],
        }
    }
}

/// The sum of what all indexes put into temporary files.
pub(super) fn total_spill(stats: &BuildStats) -> SpillStats {
    let mut sum = SpillStats::default();
    for SpillStats { runs, tuples, tids, plain, varbyte, keys, written } in
        stats.indexes.iter().map(|index| &index.spill)
    {
        sum.runs = sum.runs.saturating_add(*runs);
        sum.tuples = sum.tuples.saturating_add(*tuples);
        sum.tids = sum.tids.saturating_add(*tids);
        sum.plain = sum.plain.saturating_add(*plain);
        sum.varbyte = sum.varbyte.saturating_add(*varbyte);
        sum.keys = sum.keys.saturating_add(*keys);
        sum.written = sum.written.saturating_add(*written);
    }
    sum
}

pub(super) struct Sort;

impl Report for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn summary(&self) -> &'static str {
        "Shared sort and merge"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let sort = &stats.sort;
        pairs(vec![
            ("sorted runs", Cell::Count(sort.runs)),
            ("merge passes before the last", Cell::Count(sort.extra_passes.into())),
            ("read buffer per tape", Cell::Bytes(sort.window)),
            ("workers merging at a time", Cell::Count(sort.merge_workers as u64)),
            ("parts of the key space", Cell::Count(sort.parts)),
        ])
    }
}

pub(super) struct Workers;

impl Report for Workers {
    fn name(&self) -> &'static str {
        "workers"
    }

    fn summary(&self) -> &'static str {
        "Workers"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let alone = stats.settings.workers == 0;
        let rows = stats.workers.iter().enumerate().map(|(number, worker)| {
            let name =
                if alone { "leader".to_owned() } else { (number + 1).to_string() };
            vec![
                Cell::Text(name),
                Cell::Count(worker.documents),
                Cell::Bytes(worker.bytes),
                Cell::Count(worker.runs),
                Cell::Bytes(worker.spilled),
                Cell::Seconds(worker.scan),
                Cell::Seconds(worker.spill),
                Cell::Seconds(worker.merge),
                Cell::Seconds(worker.stalled),
            ]
        });
        Table {
            columns: names(&[
                "worker", "messages", "input", "runs", "spilled", "scan", "of it spill",
                "merge", "of it stalled",
            ]),
            rows: rows.collect(),
            total: false,
            notes: vec![
                "spill: sorting and writing runs; stalled: waiting for a full queue to the \
                 leader"
                    .to_owned(),
            ],
        }
    }
}

pub(super) struct Files;

impl Report for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn summary(&self) -> &'static str {
        "Temporary files"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let temp = &stats.temp;
        pairs(vec![
            ("files", Cell::Count(temp.files)),
            ("written", Cell::Bytes(temp.written)),
            ("read back", Cell::Bytes(temp.read)),
            ("most on disk at a time", Cell::Bytes(temp.peak)),
            ("limit", temp.limit.map_or("none".into(), Cell::Bytes)),
        ])
    }
}

pub(super) struct Memory;

impl Report for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn summary(&self) -> &'static str {
        "Memory"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let memory = &stats.memory;
        let mut table = pairs(vec![
            ("limit", Cell::Bytes(memory.limit)),
            ("peak, as charged", Cell::Bytes(memory.peak_charged)),
            ("peak, as the system saw it", Cell::Bytes(memory.peak_resident)),
            ("samples", Cell::Count(memory.samples.len() as u64)),
        ]);
        table.notes.push(
            "as the system saw it: resident memory without mapped files, sampled; input \
             and index files are page cache and not included"
                .to_owned(),
        );
        table
    }
}

pub(super) struct Problems;

impl Report for Problems {
    fn name(&self) -> &'static str {
        "problems"
    }

    fn summary(&self) -> &'static str {
        "Problems with single messages"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        let problems = &stats.problems;
        let rows = problems.list.iter().map(|problem| {
            let outcome = if problem.skipped { "left out" } else { "indexed" };
            vec![
                problem.file.as_str().into(),
                Cell::Count(problem.offset),
                outcome.into(),
                problem.reason.as_str().into(),
            ]
        });
        let mut notes = Vec::new();
        let all = problems.skipped.saturating_add(problems.damaged);
        if all > problems.list.len() as u64 {
            notes.push(format!(
                "the first {} of {}",
                text::count(problems.list.len() as u64),
                text::count(all)
            ));
        }
        Table {
            columns: names(&["file", "byte", "message", "reason"]),
            rows: rows.collect(),
            total: false,
            notes,
        }
    }
}
