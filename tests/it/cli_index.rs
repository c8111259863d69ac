//! `ginmill index` when something is wrong: bad input and arguments, broken messages, a
//! kill at any moment, Ctrl-C.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ginmill::build::stats::BuildStats;

use crate::corpus::{fixture_messages, write_mbox};
use crate::matrix::{ARCHIVE, lasting_files};
use crate::support::{TestDir, names_in, program};

/// Two messages that index without problems.
const MAIL: &str = "From a@example.org Thu Jan  1 00:00:00 2015\n\
    From: A <a@example.org>\nSubject: one\nMessage-ID: <1@example.org>\n\n\
    first text\n\n\
    From b@example.org Thu Jan  1 00:00:01 2015\n\
    From: B <b@example.org>\nSubject: two\nMessage-ID: <2@example.org>\n\n\
    second text\n\n";

/// Runs `ginmill index ARGUMENT…` in the directory.
fn index(dir: &TestDir, arguments: &[&str]) -> Output {
    let mut command = program();
    command.current_dir(dir.path("")).arg("index").args(arguments);
    command.output().unwrap()
}

/// The one sentence on stderr of a run that ended with status 2 and left nothing behind.
fn refused(dir: &TestDir, arguments: &[&str]) -> String {
    let before = contents(&dir.path(""));
    let output = index(dir, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    assert!(contents(&dir.path("")) == before, "{arguments:?}: {:?}", dir.names());
    said
}

/// Every file below a directory with its bytes, and every directory.
fn contents(directory: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for name in names_in(directory) {
        let path = directory.join(&name);
        if path.is_dir() {
            let inner = contents(&path);
            found.push((name.clone(), None));
            found.extend(inner.into_iter().map(|(n, b)| (format!("{name}/{n}"), b)));
        } else {
            found.push((name, Some(fs::read(path).unwrap())));
        }
    }
    found
}

fn says(sentence: &str, words: &[&str]) {
    for word in words {
        assert!(sentence.contains(word), "no {word:?} in: {sentence}");
    }
}

#[test]
fn inputs_without_a_message_are_refused_by_name() {
    let dir = TestDir::new();
    dir.write("notes.txt", "Just some notes,\nnot a message among them.\n");
    dir.write("empty.mbox", "");
    let binary: Vec<u8> = (0..40_000_u32).map(|i| (i * i % 251) as u8).collect();
    dir.write("program.bin", &binary);
    dir.write("folder/readme", "Nothing to see here.\n");
    fs::create_dir(dir.path("nothing")).unwrap();
    let inputs = ["notes.txt", "empty.mbox", "program.bin", "folder", "nothing"];
    for input in inputs.into_iter().chain(["missing.mbox"]) {
        says(&refused(&dir, &[input, "-o", "out.gin"]), &[input]);
    }
    says(&refused(&dir, &["empty.mbox", "-o", "out.gin"]), &["empty"]);
    says(&refused(&dir, &["missing.mbox", "-o", "out.gin"]), &["No such file"]);
}

#[test]
fn arguments_that_cannot_be_used_are_refused_by_name() {
    let dir = TestDir::new();
    dir.write("in.mbox", MAIL);
    dir.write("a_file", "");
    let refuse = |arguments: &[&str], words: &[&str]| {
        let all = [&["in.mbox", "-o", "out.gin"], arguments].concat();
        says(&refused(&dir, &all), words);
    };
    refuse(&["--index", "x=btree_ops(body)"], &["btree_ops", "gin_trgm_ops"]);
    refuse(&["--index", "x=gin_trgm_ops(text)"], &["text", "body"]);
    refuse(&["--index", "x=tsvector_ops(body, klingon)"], &["klingon"]);
    refuse(&["--index", "x=jsonb_ops(body)"], &["jsonb_ops", "body"]);
    refuse(&["--index", "x=gin_trgm_ops(body"], &["x=gin_trgm_ops(body"]);
    refuse(&["--index", "a/b=gin_trgm_ops(body)"], &["a/b"]);
    let twice =
        ["--index", "x=gin_trgm_ops(body)", "--index", "x=gin_trgm_ops(subject)"];
    refuse(&twice, &["x"]);
    refuse(&["--memory", "15MB"], &["16MB"]);
    refuse(&["--memory", "1kB"], &["16MB"]);
    refuse(&["--temp-dir", "no_such_directory"], &["no_such_directory"]);
    refuse(&["--temp-dir", "a_file"], &["a_file"]);
    refuse(&["--format", "pst"], &["pst", "mbox"]);
}

#[test]
fn a_read_only_temp_dir_is_refused_before_the_work() {
    let dir = TestDir::new();
    dir.write("in.mbox", MAIL);
    fs::create_dir(dir.path("locked")).unwrap();
    let mut permissions = fs::metadata(dir.path("locked")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(dir.path("locked"), permissions).unwrap();
    if fs::write(dir.path("locked/try"), "").is_ok() {
        // root may write anywhere but there
        fs::remove_file(dir.path("locked/try")).unwrap();
        let arguments = ["in.mbox", "-o", "out.gin", "--temp-dir", "/proc"];
        says(&refused(&dir, &arguments), &["/proc"]);
    } else {
        let arguments = ["in.mbox", "-o", "out.gin", "--temp-dir", "locked"];
        says(&refused(&dir, &arguments), &["locked"]);
    }
}

#[test]
fn an_output_that_exists_stays_as_it_is_unless_forced() {
    let dir = TestDir::new();
    dir.write("in.mbox", MAIL);
    assert!(index(&dir, &["in.mbox", "-o", "out.gin"]).status.success());
    assert_eq!(names_in(&dir.path("out.gin")), ARCHIVE);
    says(&refused(&dir, &["in.mbox", "-o", "out.gin"]), &["out.gin", "--force"]);

    let words = fs::read(dir.path("out.gin/body_tsvector.gin")).unwrap();
    dir.write("in.mbox", MAIL.replace("second text", "third word"));
    let forced = index(&dir, &["in.mbox", "-o", "out.gin", "--force"]);
    assert!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    assert_ne!(words, fs::read(dir.path("out.gin/body_tsvector.gin")).unwrap());
    assert_eq!(dir.names(), ["in.mbox", "out.gin"]);

    // a directory that is no archive is nothing to replace
    dir.write("mine/letter.txt", "precious");
    refused(&dir, &["in.mbox", "-o", "mine", "--force"]);
    refused(&dir, &["in.mbox", "-o", "in.mbox", "--force"]);
    says(&refused(&dir, &["in.mbox", "-o", "no/where/out.gin"]), &["no/where"]);
}

#[test]
fn a_broken_message_is_listed_and_the_rest_is_indexed() {
    let dir = TestDir::new();
    let broken = b"From c@example.org Thu Jan  1 00:00:02 2015\n\
        From: C <c@example.org>\nSubject: three\n\
        Content-Type: text/plain; charset=utf-8\n\nnul \0 and \xff\xfe bytes\n\n";
    let mbox = [MAIL.as_bytes(), broken, MAIL.as_bytes()].concat();
    dir.write("in.mbox", &mbox);
    let output = index(&dir, &["in.mbox", "-o", "out.gin"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = fs::read(dir.path("out.gin/report.json")).unwrap();
    let report: BuildStats = serde_json::from_slice(&report).unwrap();
    let problems = report.problems;
    assert_eq!(report.input.documents, 5);
    assert_eq!((problems.skipped, problems.damaged), (0, 1), "{problems:?}");
    assert_eq!(problems.list.iter().filter(|problem| !problem.skipped).count(), 1);
    let problem = &problems.list[0];
    assert!(problem.file.ends_with("in.mbox"), "{problem:?}");
    // the separator line or the header behind it
    let line = broken.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let begins = MAIL.len() as u64;
    let offsets = [begins, begins + line as u64];
    assert!(offsets.contains(&problem.offset), "{problem:?}, not at {offsets:?}");
    assert!(problem.reason.len() > 10, "{problem:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    says(&said, &["1"]);
}

/// Bytes in everything beside the named entries of a directory.
fn bytes_beside(dir: &TestDir, known: &[&str]) -> u64 {
    fn bytes(path: &Path) -> u64 {
        // what is being renamed or removed at this moment counts as nothing
        let Ok(metadata) = fs::metadata(path) else { return 0 };
        if !metadata.is_dir() {
            return metadata.len() + 1;
        }
        let entries = fs::read_dir(path).into_iter().flatten();
        1 + entries.map(|entry| bytes(&entry.unwrap().path())).sum::<u64>()
    }
    let unknown = dir.names().into_iter().filter(|name| !known.contains(&&**name));
    unknown.map(|name| bytes(&dir.path(&name))).sum()
}

/// Waits until the bytes aside reach `wanted`; `false` when the build was faster.
fn wait_for_bytes(child: &mut Child, dir: &TestDir, wanted: u64) -> bool {
    loop {
        if bytes_beside(dir, &["in.mbox", "out.gin"]) >= wanted {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start_forced(dir: &TestDir) -> Child {
    let mut command = program();
    command.current_dir(dir.path("")).args(["index", "in.mbox", "-o", "out.gin"]);
    command.args(["--force", "--workers", "2", "--memory", "16MB"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_kill_leaves_the_previous_archive_and_the_next_start_no_leftovers() {
    let dir = TestDir::new();
    write_mbox(&fixture_messages(), 16 << 20, 5, &dir.path("in.mbox"));
    assert!(start_forced(&dir).wait().unwrap().success());
    let archive = dir.path("out.gin");
    let previous = lasting_files(&archive);
    let size: usize = previous.iter().map(|(_, bytes)| bytes.len()).sum();
    let mut killed = 0;
    for percent in [0, 5, 30, 60, 90] {
        let mut child = start_forced(&dir);
        let wanted = 1 + size as u64 * percent / 100;
        let in_time = wait_for_bytes(&mut child, &dir, wanted);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if !in_time || status.success() {
            continue;
        }
        killed += 1;
        // the previous archive or, killed behind the renaming, the new one, which is the
        // same but for times; never a part of one
        assert_eq!(names_in(&archive), ARCHIVE, "killed at {percent} %");
        assert!(lasting_files(&archive) == previous, "killed at {percent} %");
        let check = program().arg("check").arg(&archive).output().unwrap();
        assert_eq!(check.status.code(), Some(0), "killed at {percent} %: {check:?}");
    }
    assert!(killed >= 3, "only {killed} of the kills came in time");
    assert!(start_forced(&dir).wait().unwrap().success());
    assert_eq!(dir.names(), ["in.mbox", "out.gin"]);
    assert_eq!(names_in(&archive), ARCHIVE);
}

#[test]
fn the_first_interrupt_stops_cleanly() {
    let dir = TestDir::new();
    write_mbox(&fixture_messages(), 16 << 20, 5, &dir.path("in.mbox"));
    let mut child = start_forced(&dir);
    assert!(wait_for_bytes(&mut child, &dir, 1), "the build was faster");
    let mut kill = Command::new("kill");
    assert!(kill.args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(dir.names(), ["in.mbox"]);
}
