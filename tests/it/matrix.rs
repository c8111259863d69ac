//! Workers × memory × spill codec: the same bytes in every index file, spills where the
//! memory is small and none where it is not, nothing left behind.

use std::fs;
use std::path::{Path, PathBuf};

use ginmill::Builder;
use ginmill::budget::Bytes;
use ginmill::build::stats::BuildStats;

use crate::corpus::{Mbox, fixture_messages, write_mbox};
use crate::support::{TestDir, names_in};

const WORKERS: [usize; 5] = [0, 1, 2, 4, 7];
const CODECS: [&str; 2] = ["plain", "lz4"];
/// At these every build spills.
const SMALL: [u64; 3] = [16 << 20, 24 << 20, 64 << 20];
/// At this none does.
const LARGE: u64 = 1 << 30;
/// A participant that would get less does not start.
const PARTICIPANT_MIN: u64 = 4 << 20;

/// What a complete archive of mail consists of.
pub const ARCHIVE: [&str; 9] = [
    "body_trgm.gin",
    "body_tsvector.gin",
    "catalog.json",
    "documents",
    "headers_jsonb.gin",
    "headers_jsonb_path.gin",
    "report.json",
    "subject_trgm.gin",
    "subject_tsvector.gin",
];

/// The files that may not depend on how they were built.
pub fn lasting_files(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let lasting = |name: &String| name.ends_with(".gin") || name == "documents";
    let read = |name: String| {
        let bytes = fs::read(archive.join(&name)).unwrap();
        (name, bytes)
    };
    names_in(archive).into_iter().filter(lasting).map(read).collect()
}

struct Matrix {
    dir: TestDir,
    input: PathBuf,
    mbox: Mbox,
}

impl Matrix {
    fn new(bytes: u64) -> Matrix {
        let dir = TestDir::new();
        let input = dir.path("input.mbox");
        let mbox = write_mbox(&fixture_messages(), bytes, 7, &input);
        fs::create_dir(dir.path("temp")).unwrap();
        Matrix { dir, input, mbox }
    }

    /// Builds, and checks everything that holds at any setting.
    fn build(
        &self,
        workers: usize,
        memory: u64,
        codec: &str,
    ) -> (BuildStats, Vec<(String, Vec<u8>)>) {
        let setting = format!("{workers} workers, {memory} bytes, {codec}");
        let archive = self.dir.path("archive");
        let stats = Builder::new([&self.input])
            .workers(workers)
            .memory(Bytes(memory))
            .codec(codec)
            .temp_dir(self.dir.path("temp"))
            .build(&archive)
            .unwrap_or_else(|error| panic!("{setting}: {error}"));
        assert_eq!(names_in(&archive), ARCHIVE, "{setting}");
        assert_eq!(self.dir.names(), ["archive", "input.mbox", "temp"], "{setting}");
        assert_eq!(names_in(&self.dir.path("temp")), Vec::<String>::new(), "{setting}");
        assert_eq!(
            stats.input.documents + stats.problems.skipped,
            self.mbox.messages,
            "{setting}"
        );
        assert_eq!(
            (stats.settings.workers_asked, stats.settings.memory),
            (workers, memory)
        );
        assert_eq!(stats.settings.codec, codec);
        assert!(stats.memory.peak_charged <= memory, "{setting}: {:?}", stats.memory);
        let files = lasting_files(&archive);
        fs::remove_dir_all(archive).unwrap();
        (stats, files)
    }
}

#[test]
fn index_files_do_not_depend_on_workers_memory_or_codec() {
    let matrix = Matrix::new(64 << 20);
    let (stats, reference) = matrix.build(0, LARGE, "plain");
    assert_eq!(reference.len(), 7);
    assert_eq!((stats.temp.files, stats.temp.written), (0, 0));
    let same = |files: &[(String, Vec<u8>)], setting: &str| {
        // names and bytes apart: a failed assertion must not print the files
        for ((name, bytes), (expected_name, expected)) in files.iter().zip(&reference) {
            assert_eq!(name, expected_name);
            assert!(bytes == expected, "{name} differs: {setting}");
        }
        assert_eq!(files.len(), reference.len());
    };
    for workers in WORKERS {
        for memory in SMALL {
            for codec in CODECS {
                let setting = format!("{workers} workers, {memory} bytes, {codec}");
                let (stats, files) = matrix.build(workers, memory, codec);
                same(&files, &setting);
                assert!(stats.temp.files > 0, "{setting}: no temporary file");
                let spilled: u64 = stats.indexes.iter().map(|i| i.spill.written).sum();
                let by_worker: u64 = stats.workers.iter().map(|w| w.spilled).sum();
                assert!(spilled > 0, "{setting}: nothing spilled");
                assert!(by_worker > 0 && by_worker <= stats.temp.written, "{setting}");
                assert!(stats.temp.read >= by_worker, "{setting}: {:?}", stats.temp);
            }
        }
        let setting = format!("{workers} workers, 1 GB");
        let (stats, files) = matrix.build(workers, LARGE, "lz4");
        same(&files, &setting);
        assert_eq!((stats.temp.files, stats.temp.written), (0, 0), "{setting}");
        assert_eq!(stats.settings.workers, workers);
        assert_eq!(stats.settings.workers_note, None);
    }
}

#[test]
fn fewer_workers_start_when_each_would_get_too_little() {
    let matrix = Matrix::new(1 << 20);
    let (stats, _) = matrix.build(7, SMALL[0], "lz4");
    let settings = stats.settings;
    assert!((1..7).contains(&settings.workers), "{settings:?}");
    assert!(settings.memory / settings.workers as u64 >= PARTICIPANT_MIN);
    let note = settings.workers_note.unwrap();
    assert!(note.contains('7') && note.contains("memory"), "{note}");
}
