//! Processes watched from outside: wall clock, processor time, anonymous memory.
//!
//! All figures are the kernel's (`/proc`), so they are the same kind of figure for every
//! program. Memory is looked at every [`TICK`]; a peak shorter than that may be missed.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(4);
/// Clock ticks a second in `/proc/PID/stat`: 100 on every Linux, whatever the kernel's
/// own timer.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a child process took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Wall clock, seconds.
    pub wall: f64,
    /// Processor time of all its threads, seconds.
    pub cpu: f64,
    /// Most anonymous resident memory seen, bytes.
    pub anonymous: u64,
}

/// Runs a command to its end; an error, with what it said, if it fails.
pub fn run(command: &mut Command) -> Outcome<Used> {
    // not a pipe: nobody reads while the child runs
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let began = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let mut used = Used::default();
    loop {
        let looked = look(child.id())?;
        used.cpu = looked.cpu;
        used.anonymous = used.anonymous.max(looked.anonymous);
        if looked.ended {
            break;
        }
        std::thread::sleep(TICK);
    }
    used.wall = began.elapsed().as_secs_f64();
    let status = child.wait()?;
    if !status.success() {
        said.rewind()?;
        let mut text = String::new();
        said.read_to_string(&mut text)?;
        return Err(format!("{command:?}: {status}\n{text}").into());
    }
    Ok(used)
}

struct Look {
    /// It is a zombie: its account is closed but can still be read.
    ended: bool,
    cpu: f64,
    anonymous: u64,
}

fn look(pid: u32) -> Outcome<Look> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // the name before the last parenthesis may contain anything
    let fields: Vec<&str> = match stat.rsplit_once(')') {
        Some((_, fields)) => fields.split_ascii_whitespace().collect(),
        None => Vec::new(),
    };
    let (Some(&state), Some(user), Some(system)) =
        (fields.first(), fields.get(11), fields.get(12))
    else {
        return Err(
            format!("/proc/{pid}/stat: expected 13 fields, found {stat}").into()
        );
    };
    let ticks = user.parse::<f64>()? + system.parse::<f64>()?;
    Ok(Look {
        ended: state == "Z" || state == "X",
        cpu: ticks / TICKS_PER_SECOND,
        anonymous: anonymous(pid),
    })
}

/// Anonymous resident bytes of a process; 0 when it is gone.
fn anonymous(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    number.unwrap_or(0_u64) << 10
}

/// What a backend and its parallel workers took together.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Most anonymous resident memory at a time, bytes.
    pub anonymous: u64,
    /// Parallel workers that were there.
    pub launched: usize,
}

/// Watches a server's backend and the parallel workers that its postmaster starts.
pub struct Backend {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Backend {
    /// Begins to watch; nobody else may use parallel workers of this server.
    pub fn watch(backend: u32) -> Outcome<Backend> {
        let stat = fs::read_to_string(format!("/proc/{backend}/stat"))?;
        let parent = stat.rsplit_once(')').and_then(|(_, fields)| {
            fields.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
        });
        let postmaster = parent.ok_or("the backend's process has no parent")?;
        let children = format!("/proc/{postmaster}/task/{postmaster}/children");
        fs::read_to_string(&children)
            .map_err(|error| format!("{children}: {error}"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut watch = Family { backend, children, ..Family::default() };
            while !flag.load(Ordering::Relaxed) {
                watch.look();
                std::thread::sleep(TICK);
            }
            watch.look();
            Seen { anonymous: watch.most, launched: watch.workers.len() }
        });
        Ok(Backend { stop, thread })
    }

    /// Ends watching.
    pub fn seen(self) -> Outcome<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watching thread panicked".into())
    }
}

#[derive(Default)]
struct Family {
    backend: u32,
    children: String,
    workers: HashSet<u32>,
    others: HashSet<u32>,
    most: u64,
}

impl Family {
    fn look(&mut self) {
        let children = fs::read_to_string(&self.children).unwrap_or_default();
        let mut sum = anonymous(self.backend);
        for pid in children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
        {
            if self.others.contains(&pid) {
                continue;
            }
            if !self.workers.contains(&pid) {
                let name = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let name = String::from_utf8_lossy(&name).into_owned();
                if name.starts_with("postgres: parallel worker") {
                    self.workers.insert(pid);
                } else if name.starts_with("postgres: ") {
                    // settled; a process that has just been forked has no name yet
                    self.others.insert(pid);
                }
            }
            if self.workers.contains(&pid) {
                sum += anonymous(pid);
            }
        }
        self.most = self.most.max(sum);
    }
}
