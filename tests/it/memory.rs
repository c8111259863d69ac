//! The memory limit, by the operating system's own figures: the real program on real
//! mail takes no more anonymous memory than its limit and an allowance for code, stacks
//! and the allocator.

use std::fs;

use ginmill::build::stats::BuildStats;

use crate::corpus::{real_messages, write_mbox};
use crate::support::{TestDir, peak_anonymous, program};

/// What may come on top of the limit.
const ALLOWANCE: u64 = 16 << 20;

#[test]
fn anonymous_memory_stays_below_the_limit_on_200_mb_of_mail() {
    let Some(messages) = real_messages() else { return };
    let dir = TestDir::new();
    let input = dir.path("input.mbox");
    let mbox = write_mbox(&messages, 200 << 20, 11, &input);
    drop(messages);
    let mut over = Vec::new();
    for limit in [16_u64, 64, 256] {
        for workers in ["0", "2", "8"] {
            let archive = dir.path("archive.gin");
            let mut command = program();
            command.arg("index").arg(&input).arg("-o").arg(&archive);
            command.args(["--workers", workers, "--memory", &format!("{limit}MB")]);
            let measured = peak_anonymous(&mut command);
            let said = String::from_utf8_lossy(&measured.output.stderr);
            assert!(measured.output.status.success(), "{limit} MB, {workers}: {said}");
            assert!(measured.samples > 100, "{} samples", measured.samples);

            let report = fs::read(archive.join("report.json")).unwrap();
            let report: BuildStats = serde_json::from_slice(&report).unwrap();
            let found = report.input.documents + report.problems.skipped;
            assert_eq!(found, mbox.messages);
            let limit = limit << 20;
            assert_eq!(report.memory.limit, limit);
            let charged = report.memory.peak_charged;
            assert!(charged <= limit, "{charged} bytes charged of {limit}");
            if measured.anonymous > limit + ALLOWANCE {
                over.push(format!(
                    "limit {} MB, {workers} workers: {:.1} MB over it",
                    limit >> 20,
                    (measured.anonymous - limit) as f64 / f64::from(1 << 20)
                ));
            }
            fs::remove_dir_all(archive).unwrap();
        }
    }
    assert_eq!(over, Vec::<String>::new());
}
