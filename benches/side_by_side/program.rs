//! `ginmill index`, the program itself, as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ginmill::budget::Bytes;
use ginmill::build::stats::BuildStats;

use crate::Outcome;
use crate::process;
use crate::series::Run;

/// A build to run.
#[derive(Clone, Debug)]
pub struct Build<'a> {
    /// Files and directories.
    pub input: &'a [PathBuf],
    /// Definitions; empty: the default indexes.
    pub indexes: Vec<&'static str>,
    /// 0 is the leader alone.
    pub workers: usize,
    /// Limit, bytes.
    pub memory: u64,
    /// Keys are made and dropped.
    pub extract_only: bool,
}

/// The program, and where it may write.
pub struct Program {
    directory: PathBuf,
    /// Whether it has `index --extract-only`.
    pub extracts: bool,
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_ginmill");

impl Program {
    /// Looks at the program; archives and temporary files go into `directory`.
    pub fn new(directory: &Path) -> Outcome<Program> {
        // an option that help does not list is found by asking for it
        let asked = Command::new(PROGRAM)
            .args(["index", "--extract-only", "--help"])
            .output()
            .map_err(|error| format!("{PROGRAM}: {error}"))?;
        let directory = directory.to_path_buf();
        Ok(Program { directory, extracts: asked.status.success() })
    }

    /// Runs a build; its archive is removed again.
    pub fn run(&self, build: &Build<'_>) -> Outcome<(Run, BuildStats)> {
        let archive = self.directory.join("archive.gin");
        let report = self.directory.join("report.json");
        for path in [&archive, &report] {
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else if path.exists() {
                fs::remove_file(path)?;
            }
        }
        let mut command = Command::new(PROGRAM);
        command.arg("index").args(build.input).arg("-o").arg(&archive);
        command.arg("--workers").arg(build.workers.to_string());
        command.arg("--memory").arg(Bytes(build.memory).to_string());
        command.arg("--report").arg(&report);
        command.args(["--progress", "none"]);
        for index in &build.indexes {
            command.args(["--index", index]);
        }
        if build.extract_only {
            command.arg("--extract-only");
        }
        let used = process::run(&mut command)?;
        let stats: BuildStats = match build.extract_only {
            // nothing was built, there is nothing to report but time
            true => BuildStats::default(),
            false => serde_json::from_slice(&fs::read(&report)?)
                .map_err(|error| format!("{}: {error}", report.display()))?,
        };
        let run = Run {
            seconds: used.wall,
            cpu: Some(used.cpu),
            // sampled from outside and by itself: whichever saw more
            peak: used.anonymous.max(stats.memory.peak_resident),
            temp: stats.temp.written,
            index: stats.indexes.iter().map(|index| index.bytes).sum(),
            launched: None,
        };
        Ok((run, stats))
    }
}
