//! tantivy indexing the words of bodies: identifiers only, English stems, nothing
//! stored. Compiled with the feature `bench-tantivy`.
//!
//! It runs in a process of its own, so that its memory and processor time are seen like
//! ginmill's. It is given the bodies already decoded, one after the other in a file;
//! ginmill is given the mail. The thread that reads them comes on top of the indexing
//! threads, and segments are left as its merge policy leaves them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::process;
use crate::series::Run;

/// Whether tantivy is compiled in.
pub const COMPILED: bool = cfg!(feature = "bench-tantivy");

/// Indexes a file of bodies in a new process.
pub fn run(
    bodies: &Path,
    directory: &Path,
    threads: usize,
    memory: u64,
) -> Outcome<Run> {
    let index = directory.join("tantivy");
    if index.exists() {
        fs::remove_dir_all(&index)?;
    }
    fs::create_dir(&index)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--tantivy-run").args([bodies, &index]);
    command.args([threads.to_string(), memory.to_string()]);
    let used = process::run(&mut command)?;
    let mut bytes = 0;
    for entry in fs::read_dir(&index)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(Run {
        seconds: used.wall,
        cpu: Some(used.cpu),
        peak: used.anonymous,
        index: bytes,
        ..Run::default()
    })
}

/// What the new process does.
#[cfg(feature = "bench-tantivy")]
pub fn index(bodies: &Path, output: &Path, threads: &str, memory: &str) -> Outcome<()> {
    use std::io::{BufReader, Read};

    use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};

    let words = TextFieldIndexing::default()
        .set_tokenizer("en_stem")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    let mut schema = Schema::builder();
    let options = TextOptions::default().set_indexing_options(words);
    let body = schema.add_text_field("body", options);
    let index = tantivy::Index::create_in_dir(output, schema.build())?;
    let mut writer: tantivy::IndexWriter =
        index.writer_with_num_threads(threads.parse()?, memory.parse()?)?;
    let file = fs::File::open(bodies)?;
    let mut left = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 20, file);
    while left > 0 {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        file.read_exact(&mut text)?;
        left = left.saturating_sub(4 + text.len() as u64);
        writer.add_document(tantivy::doc!(body => String::from_utf8(text)?))?;
    }
    writer.commit()?;
    Ok(writer.wait_merging_threads()?)
}

/// What the new process would do.
#[cfg(not(feature = "bench-tantivy"))]
pub fn index(_: &Path, _: &Path, _: &str, _: &str) -> Outcome<()> {
    Err("tantivy is not compiled in: call benches/compare --tantivy".into())
}
