//! Measurements of one kind, repeated: medians over the rounds.

use serde::Serialize;

/// One measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// Wall clock, seconds.
    pub seconds: f64,
    /// Processor time, seconds, where it was measured.
    pub cpu: Option<f64>,
    /// Most anonymous memory, all processes of the build together, bytes.
    pub peak: u64,
    /// Bytes written to temporary files.
    pub temp: u64,
    /// Bytes of the index or indexes.
    pub index: u64,
    /// Parallel workers that PostgreSQL started.
    pub launched: Option<usize>,
}

/// All rounds of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// What was built: an index, or several.
    pub what: String,
    /// Workers asked for; 0 is the leader alone.
    pub workers: usize,
    /// Memory limit, bytes.
    pub memory: u64,
    /// Bytes of input.
    pub input: u64,
    /// In the order of the rounds.
    pub runs: Vec<Run>,
}

impl Series {
    /// Median wall clock, seconds; not a number without a run.
    pub fn seconds(&self) -> f64 {
        median(self.runs.iter().map(|run| run.seconds))
    }

    /// Median processor time, seconds.
    pub fn cpu(&self) -> f64 {
        median(self.runs.iter().filter_map(|run| run.cpu))
    }

    /// The largest peak of memory.
    pub fn peak(&self) -> u64 {
        self.runs.iter().map(|run| run.peak).max().unwrap_or(0)
    }

    /// Median of temporary bytes.
    pub fn temp(&self) -> u64 {
        median(self.runs.iter().map(|run| run.temp as f64)) as u64
    }

    /// Bytes of the index: the median, though PostgreSQL's parallel builds differ little.
    pub fn index(&self) -> u64 {
        median(self.runs.iter().map(|run| run.index as f64)) as u64
    }

    /// The fewest workers that started in a round.
    pub fn launched(&self) -> Option<usize> {
        self.runs.iter().filter_map(|run| run.launched).min()
    }

    /// Slowest round over fastest, as a percentage beyond it: how restless the machine
    /// was.
    pub fn spread(&self) -> f64 {
        let seconds = || self.runs.iter().map(|run| run.seconds);
        let least = seconds().fold(f64::INFINITY, f64::min);
        (seconds().fold(0.0, f64::max) / least - 1.0) * 100.0
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
