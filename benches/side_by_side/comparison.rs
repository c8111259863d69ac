//! Everything that was measured: as tables, as JSON, against the targets.

use std::fs;

use ginmill::build::stats::BuildStats;
use serde::Serialize;

use crate::model::Model;
use crate::sections::{USUAL, WORKERS};
use crate::series::Series;
use crate::table::{Table, megabytes, ratio, seconds};
use crate::targets::{Bound, Target, table};

/// More time with more workers than this is slower, and not the machine's unrest.
const SLOWER: f64 = 1.03;
/// Wall clock over processor time of a build with one thread from which on others were
/// using the machine.
const RESTLESS: f64 = 1.25;
/// What code, stacks and the allocator may take on top of the memory limit, bytes.
const ALLOWANCE: u64 = 16 << 20;

/// Where it was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Cores this program may use.
    pub cores: usize,
    /// Bytes.
    pub memory: u64,
    /// Kernel release.
    pub kernel: String,
    /// Load average of a minute before the first measurement.
    pub load_at_start: f64,
    /// The same after the last one.
    pub load_at_end: f64,
}

/// What was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Input {
    /// Input files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Only a part of the input given.
    pub part: bool,
    /// Messages indexed.
    pub messages: Option<u64>,
    /// Messages that could not be read.
    pub skipped: Option<u64>,
    /// Texts cut for PostgreSQL, whose tsvectors are limited to 1 MB.
    pub cut: Option<i64>,
    /// Bytes of PostgreSQL's table.
    pub table: Option<i64>,
}

/// One run of this program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Version of this shape.
    pub ginmill_compare: u32,
    /// Where.
    pub machine: Machine,
    /// Of what.
    pub input: Input,
    /// Memory limit, bytes.
    pub memory: u64,
    /// Rounds.
    pub rounds: u32,
    /// PostgreSQL's settings by name.
    pub settings: Vec<(String, String)>,
    /// The targets.
    pub targets: Vec<Target>,
    /// Each default index with workers 0, 1, 2, by PostgreSQL.
    pub postgres: Vec<Series>,
    /// The same by ginmill, in the same order.
    pub alone: Vec<Series>,
    /// All default indexes by ginmill, with workers 0, 1, 2.
    pub together: Vec<Series>,
    /// The same with 2 workers and different memory limits.
    pub limits: Vec<Series>,
    /// The same over parts of the input, up to the whole.
    pub growth: Vec<Series>,
    /// The whole build; keys only made.
    pub extraction: Vec<Series>,
    /// Body words with 1 and 2 workers: ginmill, then tantivy.
    pub words: Vec<Series>,
    /// Body trigrams with 1 worker: ginmill, then Google codesearch.
    pub trigrams: Vec<Series>,
    /// More cores.
    pub model: Option<Model>,
    /// Ginmill's own report of a build of all indexes with 2 workers.
    pub report: Option<BuildStats>,
}

impl Machine {
    /// This machine, now.
    pub fn this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let kilobytes = value(&read("/proc/meminfo"), "MemTotal");
        let kilobytes: u64 = kilobytes.trim_end_matches(" kB").parse().unwrap_or(0);
        Machine {
            processor: value(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kilobytes << 10,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_at_start: Machine::load(),
            load_at_end: 0.0,
        }
    }

    /// Load average of the last minute.
    pub fn load() -> f64 {
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let first = text.split_ascii_whitespace().next();
        first.and_then(|load| load.parse().ok()).unwrap_or(0.0)
    }
}

/// The series with that many workers.
fn with_workers(series: &[Series], workers: usize) -> Option<&Series> {
    series.iter().find(|series| series.workers == workers)
}

/// Median seconds of a series that may not be there.
fn time(series: Option<&Series>) -> f64 {
    series.map_or(f64::NAN, Series::seconds)
}

/// The largest factor by which one worker more makes a build take longer.
fn slower(series: &[Series]) -> f64 {
    let steps = series.windows(2).map(|pair| pair[1].seconds() / pair[0].seconds());
    steps.fold(f64::NAN, f64::max)
}

impl Comparison {
    /// PostgreSQL's and ginmill's series, index by index.
    fn pairs(&self) -> impl Iterator<Item = (&[Series], &[Series])> {
        let step = WORKERS.len();
        self.postgres.chunks(step).zip(self.alone.chunks(step))
    }

    /// PostgreSQL's least, of all numbers of workers.
    fn best(series: &[Series]) -> f64 {
        series.iter().map(Series::seconds).fold(f64::NAN, f64::min)
    }

    /// PostgreSQL's sum over the indexes; of parallel builds only, each the least.
    fn parallel_sum(&self, value: fn(&Series) -> u64) -> f64 {
        let least = |theirs: &[Series]| theirs[1..].iter().map(value).min();
        match self.postgres.is_empty() {
            true => f64::NAN,
            false => {
                self.pairs().filter_map(|(theirs, _)| least(theirs)).sum::<u64>() as f64
            }
        }
    }

    fn best_sum(&self) -> f64 {
        match self.postgres.is_empty() {
            true => f64::NAN,
            false => self.pairs().map(|(theirs, _)| Self::best(theirs)).sum(),
        }
    }

    fn limit(&self, megabytes: u64) -> f64 {
        time(self.limits.iter().find(|series| series.memory == megabytes << 20))
    }

    fn growth_ratio(&self) -> f64 {
        let per_byte = |series: &Series| series.seconds() / series.input as f64;
        match &self.growth[..] {
            [first, .., last] => per_byte(last) / per_byte(first),
            _ => f64::NAN,
        }
    }

    /// Holds everything against the targets.
    pub fn judge(&mut self) {
        use Bound::{AtLeast, AtMost};
        let usual = with_workers(&self.together, USUAL);
        let of = |value: fn(&Series) -> u64| {
            usual.map_or(f64::NAN, |series| value(series) as f64)
        };
        let mut targets = vec![Target::new(
            "all indexes, 2 workers: sum of PostgreSQL's best / ginmill",
            AtLeast(10.0),
            self.best_sum() / time(usual),
        )];
        for (theirs, ours) in self.pairs() {
            let name = &theirs[0].what;
            targets.push(Target::new(
                format!("{name} alone: PostgreSQL's best / ginmill, 2 workers"),
                AtLeast(4.0),
                Self::best(theirs) / time(with_workers(ours, USUAL)),
            ));
            targets.push(Target::new(
                format!("{name} alone: most time for one worker more"),
                AtMost(SLOWER),
                slower(ours),
            ));
        }
        let together = |workers| time(with_workers(&self.together, workers));
        let whole = time(self.extraction.first());
        let words = |n: usize| time(self.words.get(n));
        // a series over its limit by more than the allowance
        let all = self.together.iter().chain(&self.alone).chain(&self.limits);
        let over = all.chain(&self.growth).map(|series| {
            (series.peak() as f64 - series.memory as f64) / ALLOWANCE as f64
        });
        targets.extend([
            Target::new(
                "all indexes: leader alone / 2 workers",
                AtLeast(1.8),
                together(0) / together(2),
            ),
            Target::new(
                "32MB / 1GB of memory, time",
                AtMost(1.4),
                self.limit(32) / self.limit(1024),
            ),
            Target::new(
                "temporary bytes: ginmill / PostgreSQL, parallel, least",
                AtMost(0.5),
                of(Series::temp) / self.parallel_sum(Series::temp),
            ),
            Target::new(
                "index bytes: ginmill / PostgreSQL, parallel, least",
                AtMost(0.65),
                of(Series::index) / self.parallel_sum(Series::index),
            ),
            Target::new(
                "whole build / extraction alone, time",
                AtMost(2.0),
                whole / time(self.extraction.get(1)),
            ),
            Target::new(
                "body words, 1 worker: tantivy / ginmill",
                AtLeast(2.0),
                words(2) / words(0),
            ),
            Target::new(
                "body words, 2 workers: tantivy / ginmill",
                AtLeast(2.0),
                words(3) / words(1),
            ),
            Target::new(
                "body trigrams, 1 worker: codesearch / ginmill",
                AtLeast(3.0),
                time(self.trigrams.get(1)) / time(self.trigrams.first()),
            ),
            Target::new(
                "time per byte: whole input / smallest part",
                AtMost(1.15),
                self.growth_ratio(),
            ),
            Target::new(
                "anonymous memory over the limit / 16 MB, worst",
                AtMost(1.0),
                over.fold(f64::NAN, f64::max),
            ),
        ]);
        self.targets = targets;
    }

    /// All tables.
    pub fn text(&self) -> String {
        let mut text = self.head();
        let mut tables = Vec::new();
        if !self.postgres.is_empty() {
            tables.extend([self.alone_table(), self.sizes_table()]);
        }
        if !self.together.is_empty() {
            tables.push(self.together_table());
        }
        tables.extend(self.model.as_ref().map(Model::table));
        for (title, series) in [
            ("All default indexes, 2 workers, by memory limit", &self.limits),
            ("All default indexes, 2 workers, by input", &self.growth),
            ("Extraction alone, 2 workers", &self.extraction),
            ("Body words, against tantivy (ids only, English stems)", &self.words),
            ("Body trigrams, against Google codesearch", &self.trigrams),
        ] {
            if !series.is_empty() {
                tables.push(series_table(title, series));
            }
        }
        tables.push(table(&self.targets));
        tables.iter().for_each(|table| text.push_str(&table.text()));
        text
    }

    fn head(&self) -> String {
        let Machine { processor, cores, memory, kernel, .. } = &self.machine;
        let Input { files, bytes, messages, .. } = &self.input;
        let mut lines = vec![
            format!(
                "{processor}, {cores} cores, {} MB of memory, Linux {kernel}, load {} \
                 before and {} after",
                megabytes(*memory),
                self.machine.load_at_start,
                self.machine.load_at_end
            ),
            format!(
                "{} MB of mail in {files} files{}{}; limit {} MB; medians of {} round{}",
                megabytes(*bytes),
                messages.map_or(String::new(), |count| format!(", {count} messages")),
                if self.input.part { " (a part of the input)" } else { "" },
                megabytes(self.memory),
                self.rounds,
                if self.rounds == 1 { "" } else { "s" }
            ),
        ];
        if !self.settings.is_empty() {
            let settings =
                self.settings.iter().map(|(name, value)| format!("{name} {value}"));
            let settings: Vec<String> = settings.collect();
            lines.push(format!("PostgreSQL: {}", settings.join(", ")));
        }
        if let Some(cut) = self.input.cut {
            lines.push(format!(
                "{cut} texts are cut for PostgreSQL to fit its tsvectors, limited to 1 MB"
            ));
        }
        let waited = self.together.first().map(|alone| alone.seconds() / alone.cpu());
        if waited.is_some_and(|waited| waited > RESTLESS) {
            lines.push(
                "The leader alone waited for a core: this machine is not quiet.".into(),
            );
        }
        if self.input.part {
            lines.push(
                "So small an input is for trying out; its ratios say little.".into(),
            );
        }
        lines.join("\n") + "\n"
    }

    fn alone_table(&self) -> Table {
        let mut table = Table::new(
            "Each index alone: seconds with workers 0 / 1 / 2, and PostgreSQL's best over \
             ginmill's",
            &[
                "index",
                "PostgreSQL s",
                "started",
                "ginmill s",
                "x 0",
                "x 1",
                "x 2",
                "spread %",
            ],
        );
        let three = |series: &[Series]| {
            let times: Vec<String> =
                series.iter().map(|series| seconds(series.seconds())).collect();
            times.join(" / ")
        };
        for (theirs, ours) in self.pairs() {
            let best = Self::best(theirs);
            let started = theirs.iter().map(|series| {
                series.launched().map_or("-".to_owned(), |count| count.to_string())
            });
            let started: Vec<String> = started.collect();
            let mut row = vec![
                theirs[0].what.clone(),
                three(theirs),
                started.join(" / "),
                three(ours),
            ];
            row.extend(ours.iter().map(|series| ratio(best / series.seconds())));
            let spread = theirs.iter().chain(ours).map(Series::spread);
            row.push(format!("{:.0}", spread.fold(0.0, f64::max)));
            table.row(row);
        }
        table.note(
            "started: parallel workers that PostgreSQL started, fewest of the rounds",
        );
        table.note("spread: slowest round over fastest, the most restless of the row");
        table
    }

    fn sizes_table(&self) -> Table {
        let mut table = Table::new(
            "Each index alone: MB with workers 0 / 1 / 2, and ginmill's over PostgreSQL's \
             with 2",
            &[
                "index",
                "PostgreSQL temp",
                "ginmill temp",
                "x",
                "PostgreSQL index",
                "ginmill",
                "x",
                "PostgreSQL peak",
                "ginmill peak",
                "x",
            ],
        );
        let three = |series: &[Series], value: fn(&Series) -> u64| {
            let sizes: Vec<String> =
                series.iter().map(|series| megabytes(value(series))).collect();
            match sizes.iter().all(|size| *size == sizes[0]) {
                true => sizes[0].clone(),
                false => sizes.join(" / "),
            }
        };
        let last = |series: &[Series], value: fn(&Series) -> u64| {
            series.last().map_or(f64::NAN, |series| value(series) as f64)
        };
        for (theirs, ours) in self.pairs() {
            let mut row = vec![theirs[0].what.clone()];
            for value in [Series::temp, Series::index, Series::peak] {
                row.push(three(theirs, value));
                row.push(three(ours, value));
                row.push(ratio(last(ours, value) / last(theirs, value)));
            }
            table.row(row);
        }
        table.note(
            "temp: bytes written to temporary files; peak: anonymous memory of all \
                    processes of a build",
        );
        table
    }

    fn together_table(&self) -> Table {
        let mut table = Table::new(
            "All default indexes at once",
            &[
                "workers",
                "s",
                "x leader alone",
                "x PostgreSQL's best",
                "cpu s",
                "MB/s",
                "temp MB",
                "index MB",
                "peak MB",
                "spread %",
            ],
        );
        let (alone, theirs) = (time(self.together.first()), self.best_sum());
        for series in &self.together {
            table.row([
                series.workers.to_string(),
                seconds(series.seconds()),
                ratio(alone / series.seconds()),
                ratio(theirs / series.seconds()),
                seconds(series.cpu()),
                ratio(series.input as f64 / f64::from(1 << 20) / series.seconds()),
                megabytes(series.temp()),
                megabytes(series.index()),
                megabytes(series.peak()),
                format!("{:.0}", series.spread()),
            ]);
        }
        if theirs.is_finite() {
            table.note(format!(
                "PostgreSQL's best, summed over the indexes: {} s, {} MB temp, {} MB index",
                seconds(theirs),
                megabytes(self.parallel_sum(Series::temp) as u64),
                megabytes(self.parallel_sum(Series::index) as u64),
            ));
        }
        table
    }
}

/// Series as rows; ratios are to the first one.
fn series_table(title: &str, all: &[Series]) -> Table {
    let mut table = Table::new(
        title,
        &[
            "what",
            "workers",
            "limit MB",
            "input MB",
            "s",
            "cpu s",
            "x first",
            "per MB, x first",
            "temp MB",
            "index MB",
            "peak MB",
            "spread %",
        ],
    );
    let first = time(all.first());
    let input = all.first().map_or(f64::NAN, |series| series.input as f64);
    for series in all {
        let times = series.seconds() / first;
        table.row([
            series.what.clone(),
            series.workers.to_string(),
            megabytes(series.memory),
            megabytes(series.input),
            seconds(series.seconds()),
            seconds(series.cpu()),
            ratio(times),
            ratio(times * input / series.input as f64),
            megabytes(series.temp()),
            megabytes(series.index()),
            megabytes(series.peak()),
            format!("{:.0}", series.spread()),
        ]);
    }
    table
}
