//! What the figures of a build suggest, in plain sentences.

use super::tables::total_spill;
use super::text::{count, percent, size};
use super::{Cell, Report, Table, index_bytes, names};
use crate::build::stats::BuildStats;

/// The account may be exceeded by this much before it is worth a sentence, bytes.
const MEMORY_SLACK: u64 = 16 << 20;
/// A worker's share of memory over what it may have gathered at the end of the scan without
/// writing it to disk; gathered keys and the run made of them must both fit. What one run
/// of several held would have taken no more memory in one.
const RUNS_IN_MEMORY: u64 = 2;
/// Shares below these are not worth a sentence.
const STALLED_SHARE: f64 = 0.10;
const SPILL_SHARE: f64 = 0.20;
const IDLE_SHARE: f64 = 0.25;
const LARGE_INDEX_SHARE: f64 = 0.40;
const UNEVEN_SHARE: f64 = 0.20;
/// Phases shorter than this say nothing about speed, seconds.
const PHASE_MIN: f64 = 1.0;

/// The sentences as a table, for all renderers.
#[derive(Debug)]
pub struct Advice;

impl Report for Advice {
    fn name(&self) -> &'static str {
        "advice"
    }

    fn summary(&self) -> &'static str {
        "What the figures suggest"
    }

    fn table(&self, stats: &BuildStats) -> Table {
        Table {
            columns: names(&["advice"]),
            rows: advice(stats)
                .into_iter()
                .map(|line| vec![Cell::Text(line)])
                .collect(),
            ..Table::default()
        }
    }
}

/// One sentence per thing that is worth knowing; empty when there is none.
pub fn advice(stats: &BuildStats) -> Vec<String> {
    let parts = [memory, temp, workers, indexes, problems];
    parts.into_iter().flat_map(|part| part(stats)).collect()
}

/// A memory size that a person would write, at or above `bytes`.
fn round_up(bytes: u64) -> u64 {
    let step = if bytes > 1 << 30 { 256 << 20 } else { 16 << 20 };
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

fn memory(stats: &BuildStats) -> Vec<String> {
    let memory = &stats.memory;
    let mut lines = Vec::new();
    let allowed = memory.limit.saturating_add(MEMORY_SLACK);
    if memory.limit > 0 && memory.peak_resident > allowed {
        lines.push(format!(
            "Memory went {} over the limit of {}; please report this as a bug.",
            size(memory.peak_resident - memory.limit),
            size(memory.limit)
        ));
    }
    if stats.temp.written > 0 {
        let runs = stats.workers.iter().fold(0u64, |sum, w| sum.saturating_add(w.runs));
        let share = memory.limit / stats.workers.len().max(1) as u64;
        let needed = runs.saturating_mul(share).saturating_mul(RUNS_IN_MEMORY);
        if needed > memory.limit {
            lines.push(format!(
                "A memory limit of {} or less would have made temporary files unnecessary.",
                size(round_up(needed))
            ));
        }
    } else {
        let needed = memory.peak_charged.saturating_mul(RUNS_IN_MEMORY);
        let enough = round_up(needed.saturating_add(memory.peak_charged / 4));
        if enough < memory.limit {
            lines.push(format!(
                "Everything fitted into memory; about {} would have been enough.",
                size(enough)
            ));
        }
    }
    lines
}

fn temp(stats: &BuildStats) -> Vec<String> {
    let mut lines = Vec::new();
    let spill = total_spill(stats);
    if spill.plain > 0 && spill.written > 0 {
        lines.push(format!(
            "Temporary files took {}, {} of the {} that plain TIDs alone would take.",
            size(spill.written),
            percent(spill.written as f64 / spill.plain as f64),
            size(spill.plain)
        ));
    }
    let sort = &stats.sort;
    if sort.extra_passes > 0 {
        let passes = match sort.extra_passes {
            1 => "a merge pass came before the last one; more memory avoids it"
                .to_owned(),
            n => format!(
                "{n} merge passes came before the last one; more memory avoids them"
            ),
        };
        lines.push(format!(
            "{} sorted runs were too many for the read buffers that fit into memory: {passes}.",
            count(sort.runs)
        ));
    }
    if let Some(limit) = stats.temp.limit.filter(|limit| *limit > 0) {
        let share = stats.temp.peak as f64 / limit as f64;
        if share > 0.8 {
            lines.push(format!(
                "Temporary files reached {} of their limit of {}.",
                percent(share),
                size(limit)
            ));
        }
    }
    lines
}

fn workers(stats: &BuildStats) -> Vec<String> {
    let mut lines = Vec::new();
    let settings = &stats.settings;
    if settings.workers < settings.workers_asked {
        let why = settings.workers_note.as_deref().unwrap_or("memory was short");
        lines.push(format!(
            "{} of {} workers were started: {why}.",
            settings.workers, settings.workers_asked
        ));
    }
    let sum = |of: fn(&crate::build::stats::WorkerStats) -> f64| -> f64 {
        stats.workers.iter().map(of).sum()
    };
    let (scan, spill) = (sum(|w| w.scan), sum(|w| w.spill));
    let (merge, stalled) = (sum(|w| w.merge), sum(|w| w.stalled));
    let number = stats.workers.len();
    if scan > PHASE_MIN && spill / scan > SPILL_SHARE {
        lines.push(format!(
            "{} spent {} of the scan on sorting and writing runs; more memory makes runs \
             fewer and longer.",
            plural(number, "worker"),
            percent(spill / scan)
        ));
    }
    if merge > PHASE_MIN && stalled / merge > STALLED_SHARE {
        lines.push(format!(
            "{} waited {} of the merge for the leader to load pages; fewer workers would \
             merge as fast.",
            plural(number, "worker"),
            percent(stalled / merge)
        ));
    }
    let longest = stats.workers.iter().map(|w| w.scan).fold(0.0, f64::max);
    let mean = scan / number.max(1) as f64;
    if number > 1 && mean > PHASE_MIN && longest / mean - 1.0 > UNEVEN_SHARE {
        lines.push(format!(
            "One worker scanned {} longer than the average; the input has few, large \
             pieces.",
            percent(longest / mean - 1.0)
        ));
    }
    let threads = settings.workers.max(1) as f64;
    for phase in stats.phases.iter().filter(|phase| phase.wall > PHASE_MIN) {
        let idle = 1.0 - phase.cpu / (phase.wall * threads);
        if phase.name == "scanning" && idle > IDLE_SHARE {
            lines.push(format!(
                "While scanning, {} of the workers' time was not spent computing: they \
                 waited for the disk, for each other, or for a processor.",
                percent(idle)
            ));
        }
    }
    lines
}

fn indexes(stats: &BuildStats) -> Vec<String> {
    let mut lines = Vec::new();
    let whole = index_bytes(stats);
    let largest = stats.indexes.iter().max_by_key(|index| index.bytes);
    if let Some(index) = largest.filter(|_| stats.indexes.len() > 1 && whole > 0) {
        let share = index.bytes as f64 / whole as f64;
        if share > LARGE_INDEX_SHARE {
            lines.push(format!(
                "{} is {} of the index bytes.",
                index.name,
                percent(share)
            ));
        }
    }
    for index in stats.indexes.iter().filter(|index| index.skipped_tokens > 0) {
        lines.push(format!(
            "{} leaves out {}, too long for PostgreSQL too.",
            index.name,
            plural_count(index.skipped_tokens, "token")
        ));
    }
    lines
}

fn problems(stats: &BuildStats) -> Vec<String> {
    let problems = &stats.problems;
    let mut lines = Vec::new();
    if problems.skipped > 0 {
        lines.push(format!(
            "{} could not be indexed; the list of problems has file, byte and reason.",
            plural_count(problems.skipped, "message")
        ));
    }
    if problems.damaged > 0 {
        lines.push(format!(
            "{} could not be read exactly as written and were indexed with replacement \
             characters or without the broken part.",
            plural_count(problems.damaged, "message")
        ));
    }
    lines
}

fn plural(number: usize, word: &str) -> String {
    plural_count(number as u64, word)
}

fn plural_count(number: u64, word: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {word}{s}", count(number))
}
