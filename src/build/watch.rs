//! A build seen from outside: progress, cancellation, memory over time.
//!
//! Workers add to counters; one ticker thread reads them some times a second, samples
//! the process's anonymous memory and calls the progress callback.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stats::{MemoryStats, Phase};
use super::{Progress, ProgressFn};
use crate::budget::MemoryBudget;
use crate::error::{ErrorKind, Result};
use crate::tempspace::TempSpace;

/// Phases, in the words of `pg_stat_progress_create_index`.
pub const PHASES: [&str; 4] = ["scanning", "sorting", "merging and loading", "syncing"];
const TICK: Duration = Duration::from_millis(20);
/// Ticks from one call of the progress callback to the next.
const TICKS_PER_CALL: u32 = 5;
/// Samples of memory that are kept; beyond that every second one is dropped.
const SAMPLES_MAX: usize = 1000;

/// What the threads of a build share to be watched and stopped.
#[derive(Debug)]
pub struct Watch {
    cancel: Arc<AtomicBool>,
    failed: AtomicBool,
    phase: AtomicUsize,
    done: AtomicU64,
    total: AtomicU64,
    documents: AtomicU64,
    budget: Arc<MemoryBudget>,
    space: Arc<TempSpace>,
    began: Instant,
    phases: Mutex<Vec<(Instant, f64)>>,
    memory: Mutex<Samples>,
}

#[derive(Debug, Default)]
struct Samples {
    peak: u64,
    kept: Vec<(f64, u64, u64)>,
    stride: u64,
    seen: u64,
}

impl Watch {
    /// A watch over a build that begins now, with its first phase.
    pub fn new(
        cancel: &Arc<AtomicBool>,
        budget: &Arc<MemoryBudget>,
        space: &Arc<TempSpace>,
    ) -> Arc<Watch> {
        Arc::new(Watch {
            cancel: Arc::clone(cancel),
            failed: AtomicBool::new(false),
            phase: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            documents: AtomicU64::new(0),
            budget: Arc::clone(budget),
            space: Arc::clone(space),
            began: Instant::now(),
            phases: Mutex::default(),
            memory: Mutex::default(),
        })
    }

    /// Begins phase number `phase` with `total` units of work.
    pub fn begin(&self, phase: usize, total: u64) {
        let mut phases = self.phases.lock().unwrap_or_else(PoisonError::into_inner);
        phases.push((Instant::now(), cpu_seconds()));
        self.phase.store(phase, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Units of work done.
    pub fn add(&self, done: u64, documents: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
        self.documents.fetch_add(documents, Ordering::Relaxed);
    }

    /// Fails when the caller wants to stop or another thread has failed.
    pub fn check(&self) -> Result<()> {
        let stop =
            self.cancel.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        if stop { Err(ErrorKind::Cancelled.into()) } else { Ok(()) }
    }

    /// Tells all threads that one has failed.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Progress {
            phase: PHASES[self.phase.load(Ordering::Relaxed).min(PHASES.len() - 1)],
            done: load(&self.done),
            total: load(&self.total),
            documents: load(&self.documents),
            temp: self.space.on_disk(),
            temp_peak: self.space.usage().peak,
            memory: self.budget.charged(),
            memory_limit: self.budget.limit(),
        }
    }

    fn sample(&self) {
        let resident = anonymous_memory();
        let at = self.began.elapsed().as_secs_f64();
        let mut samples = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        samples.peak = samples.peak.max(resident);
        if samples.seen.is_multiple_of(samples.stride.max(1)) {
            samples.kept.push((at, self.budget.charged(), resident));
        }
        samples.seen += 1;
        if samples.kept.len() > SAMPLES_MAX {
            let mut nth = 0;
            samples.kept.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            samples.stride = samples.stride.max(1) * 2;
        }
    }

    /// What the phases took; the last one ends now.
    pub fn phases(&self) -> Vec<Phase> {
        let began = self.phases.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ends =
            began.iter().copied().skip(1).chain([(Instant::now(), cpu_seconds())]);
        let named = began.iter().zip(ends).zip(PHASES);
        named
            .map(|((from, to), name)| Phase {
                name: name.to_owned(),
                wall: (to.0 - from.0).as_secs_f64(),
                cpu: to.1 - from.1,
            })
            .collect()
    }

    /// What the samples showed.
    pub fn memory(&self) -> MemoryStats {
        self.sample();
        let samples = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        MemoryStats {
            limit: self.budget.limit(),
            peak_charged: self.budget.peak(),
            peak_resident: samples.peak,
            samples: samples.kept.clone(),
        }
    }
}

/// The thread that samples and calls back, until it is dropped.
#[derive(Debug)]
pub struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread.
    pub fn start(watch: &Arc<Watch>, callback: Option<ProgressFn>) -> Ticker {
        let watch = Arc::clone(watch);
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            for tick in 0.. {
                watch.sample();
                if tick % TICKS_PER_CALL == 0
                    && let Some(callback) = &callback
                {
                    callback(&watch.progress());
                }
                if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Ticker { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A callback that panicked has printed its message; the build is not hurt.
            let _ = thread.join();
        }
    }
}

/// Anonymous resident memory of this process, bytes; 0 where the system does not tell.
fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// CPU seconds of all threads of this process so far; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    // Fields 14 and 15 of proc_pid_stat(5), counted behind the command's name, in ticks
    // of a hundredth of a second, which Linux fixes for user space.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0.0 };
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
