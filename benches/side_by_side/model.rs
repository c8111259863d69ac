//! More cores than there are: predicted from the work that one worker was measured to
//! do, and checked against two workers.
//!
//! A phase takes as long as the longest of what limits it:
//!
//! ```text
//! scanning             S / n             the worker's seconds, shared by n workers
//!                      C                 cutting the input into messages, under a lock
//! merging and loading  M / n             the worker's seconds without waiting
//!                      L                 the leader's: it packs pages alone
//!                      (M + L) / cores   n workers and the leader share the cores
//! sorting, syncing, start and end        as measured: nothing shares them
//! ```
//!
//! `S`, `M`, `L` come from the report of a build with one worker, `C` from cutting the
//! input without doing anything else. Merging is scaled by what one worker took against
//! what this says of one worker (waiting for queues). The model knows nothing of caches,
//! memory bandwidth and disks; so there is a second prediction, which takes the loss
//! measured from one worker to two as happening again at every doubling.

use ginmill::build::stats::BuildStats;
use serde::Serialize;

use crate::table::{Table, ratio, seconds};

/// Numbers of cores that are predicted, with as many workers each.
const CORES: [usize; 4] = [4, 8, 16, 32];

/// What one worker and the leader had to do, seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Work {
    scan: f64,
    claim: f64,
    merge: f64,
    lead: f64,
    waiting: f64,
    alone: f64,
}

/// A prediction, seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Predicted {
    /// Cores, and workers.
    pub cores: usize,
    /// Scanning.
    pub scan: f64,
    /// Merging and loading.
    pub merge: f64,
    /// Everything that is not shared.
    pub alone: f64,
    /// All of it.
    pub total: f64,
    /// Share of the total in which only one thread has work.
    pub serial: f64,
    /// All of it, if every doubling loses what the first one lost.
    pub total_with_loss: f64,
}

/// The whole model.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// From the build with one worker.
    pub work: Work,
    /// Seconds of the leader alone, the base of speed-ups.
    pub leader_alone: f64,
    /// Two workers, as measured.
    pub measured: f64,
    /// Two workers on this machine's cores, as predicted.
    pub checked: f64,
    /// Measured against predicted for two workers; at least 1.
    pub loss: f64,
    /// Share of workers' merge time spent waiting for a full queue, with two workers.
    pub stalled: f64,
    /// More cores.
    pub predicted: Vec<Predicted>,
}

impl Work {
    fn of(stats: &BuildStats, wall: f64, claim: f64, cores: usize) -> Work {
        let phase = |name: &str| {
            let found = stats.phases.iter().find(|phase| phase.name == name);
            found.map_or((0.0, 0.0), |phase| (phase.wall, phase.cpu))
        };
        let (scan, _) = phase("scanning");
        let (merge_wall, merge_cpu) = phase("merging and loading");
        let merge: f64 = stats.workers.iter().map(|w| w.merge - w.stalled).sum();
        let merge = merge.clamp(0.0, merge_wall.max(merge_cpu));
        let lead = (merge_cpu - merge).max(0.0);
        let mut work = Work { scan, claim, merge, lead, waiting: 1.0, alone: 0.0 };
        let said = work.merging(1, cores);
        if said > 0.0 {
            work.waiting = (merge_wall / said).max(1.0);
        }
        work.alone = (wall - scan - merge_wall).max(0.0);
        work
    }

    fn merging(&self, workers: usize, cores: usize) -> f64 {
        let shared = self.merge / workers as f64;
        let cores = (self.merge + self.lead) / cores as f64;
        shared.max(self.lead).max(cores) * self.waiting
    }

    fn predict(&self, workers: usize, cores: usize, loss: f64) -> Predicted {
        let scan = (self.scan / workers as f64).max(self.claim);
        let merge = self.merging(workers, cores);
        let total = scan + merge + self.alone;
        let mut serial = self.alone;
        if self.claim >= scan {
            serial += scan;
        }
        if self.lead * self.waiting >= merge {
            serial += merge;
        }
        let doublings = (workers as f64).log2();
        let total_with_loss = (scan + merge) * loss.powf(doublings) + self.alone;
        let serial = serial / total;
        let alone = self.alone;
        Predicted { cores, scan, merge, alone, total, serial, total_with_loss }
    }
}

impl Model {
    /// A model from builds by the leader alone (its seconds), by one worker and by two
    /// workers (report and seconds), and the seconds that cutting the input takes.
    pub fn new(
        leader_alone: f64,
        (one, one_wall): (&BuildStats, f64),
        (two, measured): (&BuildStats, f64),
        claim: f64,
        cores: usize,
    ) -> Model {
        let work = Work::of(one, one_wall, claim, cores);
        let checked = work.predict(2, cores, 1.0);
        let shared = checked.scan + checked.merge;
        let loss = ((measured - checked.alone) / shared).max(1.0);
        let sum = |value: fn(&ginmill::build::stats::WorkerStats) -> f64| -> f64 {
            two.workers.iter().map(value).sum()
        };
        let merging = sum(|worker| worker.merge);
        Model {
            work,
            leader_alone,
            measured,
            checked: checked.total,
            loss,
            stalled: if merging > 0.0 { sum(|w| w.stalled) / merging } else { 0.0 },
            predicted: CORES.map(|cores| work.predict(cores, cores, loss)).into(),
        }
    }

    /// The table.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "More cores, predicted from one worker (all default indexes)",
            &[
                "cores = workers",
                "scan s",
                "merge s",
                "other s",
                "total s",
                "x leader alone",
                "serial %",
                "x with loss",
            ],
        );
        for predicted in &self.predicted {
            table.row([
                predicted.cores.to_string(),
                seconds(predicted.scan),
                seconds(predicted.merge),
                seconds(predicted.alone),
                seconds(predicted.total),
                ratio(self.leader_alone / predicted.total),
                format!("{:.0}", predicted.serial * 100.0),
                ratio(self.leader_alone / predicted.total_with_loss),
            ]);
        }
        let Work { scan, claim, merge, lead, waiting, .. } = self.work;
        table.note(format!(
            "From one worker: scan {} s (cutting the input: {} s), merge {} s, leader's \
             load {} s, waiting x {}.",
            seconds(scan),
            seconds(claim),
            seconds(merge),
            seconds(lead),
            ratio(waiting)
        ));
        table.note(format!(
            "Checked with two workers: predicted {} s, measured {} s ({:+.0} %); two \
             workers waited {:.0} % of their merge for a full queue.",
            seconds(self.checked),
            seconds(self.measured),
            (self.measured / self.checked - 1.0) * 100.0,
            self.stalled * 100.0
        ));
        table.note(format!(
            "\"with loss\": every doubling of workers takes x {} of the shared time, as the \
             first one did. Disks and memory bandwidth are not in the model.",
            ratio(self.loss)
        ));
        table
    }
}
