//! Runs the program and keeps what it said.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program;

/// What a run of the program said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Each line of stdout as JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was said, after a run that did or found something.
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }
}

/// Runs the program with arguments and input.
pub fn ask_with(arguments: &[&str], input: &[u8]) -> Said {
    let mut command = program();
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // in a thread, as the program answers while it reads
    let writer = std::thread::spawn(move || {
        // one that ends early closes its end
        drop(stdin.write_all(&input));
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the program with arguments.
pub fn ask(arguments: &[&str]) -> Said {
    ask_with(arguments, b"")
}

/// The one sentence of a run that ended with status 2.
pub fn refused(arguments: &[&str]) -> String {
    let said = ask(arguments);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(2), ""),
        "{arguments:?}: {said:?}"
    );
    assert!(said.err.starts_with("ginmill: "), "{arguments:?}: {said:?}");
    said.err
}

/// A file or directory of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// An archive of `fixtures/mail`, made once; do not change it.
pub fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = ARCHIVE.get_or_init(|| {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = dir.path().join("mail.gin");
        let mail = fixture("mail");
        let said =
            ask(&["index", mail.to_str().unwrap(), "-o", path.to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{said:?}");
        (dir, path)
    });
    path
}

/// The path of a file of that archive.
pub fn archived(file: &str) -> String {
    archive().join(file).to_str().unwrap().to_owned()
}
