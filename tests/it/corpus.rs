//! Mail in any amount: messages repeated with changed words and Message-IDs, seeded, so
//! that a corpus of a given seed and size is always the same bytes.
//!
//! Repeating alone would only make posting lists longer; changed words keep the number
//! of distinct keys growing as it does in real archives.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::support::given;

/// One word in so many is changed.
const CHANGE_ONE_IN: u64 = 12;
/// Shorter words stay.
const WORD_MIN: usize = 5;

/// An mbox that was written.
pub struct Mbox {
    /// Messages in it.
    pub messages: u64,
    /// Where each begins: its "From " line.
    pub offsets: Vec<u64>,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The messages of `fixtures/mail`, whatever the format of their files.
pub fn fixture_messages() -> Vec<Vec<u8>> {
    messages_below(&fixture_mail(), |_| true)
}

/// Where the project's own mail lies.
pub fn fixture_mail() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mail")
}

/// The real mail that `tests/run` brings.
pub fn real_messages() -> Option<Vec<Vec<u8>>> {
    let mail = given("GINMILL_MAIL")?;
    let is_mbox = |path: &Path| path.extension().is_some_and(|ext| ext == "mbox");
    let messages = messages_below(Path::new(&mail), is_mbox);
    assert!(messages.len() > 1000, "{mail} has no real mail");
    Some(messages)
}

/// Cut at every line that looks like a separator: good enough to enlarge, where a wrong
/// cut makes two odd messages of one.
fn messages_below(directory: &Path, wanted: fn(&Path) -> bool) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    files_below(directory, &mut files);
    files.sort();
    let mut messages = Vec::new();
    for file in files.into_iter().filter(|file| wanted(file)) {
        let text = fs::read(&file).unwrap();
        let mut message = Vec::new();
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            let blank_before = message.ends_with(b"\n\n") || message.is_empty();
            if line.starts_with(b"From ") && blank_before {
                messages.push(std::mem::take(&mut message));
            } else {
                message.extend_from_slice(line);
            }
        }
        messages.push(message);
    }
    messages.retain(|message| message.contains(&b':'));
    assert!(!messages.is_empty(), "{} has no mail", directory.display());
    messages
}

fn files_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Writes an mbox of at least so many bytes: the messages as they are, then changed
/// copies of them all, again and again.
pub fn write_mbox(messages: &[Vec<u8>], bytes: u64, seed: u64, path: &Path) -> Mbox {
    let mut random = Random(seed);
    let mut out = BufWriter::new(fs::File::create(path).unwrap());
    let mut mbox = Mbox { messages: 0, offsets: Vec::new(), bytes: 0 };
    let mut text = Vec::new();
    for (copy, message) in
        (0..).flat_map(|copy| messages.iter().map(move |m| (copy, m)))
    {
        if mbox.bytes >= bytes {
            break;
        }
        text.clear();
        text.extend_from_slice(b"From writer@example.org Thu Jan  1 00:00:00 2015\n");
        match copy {
            0 => quote_separators(message, &mut text),
            _ => quote_separators(&changed(message, copy, &mut random), &mut text),
        }
        text.extend_from_slice(b"\n\n");
        out.write_all(&text).unwrap();
        mbox.offsets.push(mbox.bytes);
        mbox.messages += 1;
        mbox.bytes += text.len() as u64;
    }
    out.into_inner().unwrap();
    mbox
}

fn quote_separators(message: &[u8], out: &mut Vec<u8>) {
    for line in message.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b"From ") {
            out.push(b'>');
        }
        out.extend_from_slice(line);
    }
}

/// A copy with another Message-ID and, in bodies that are not encoded, other words.
fn changed(message: &[u8], copy: u64, random: &mut Random) -> Vec<u8> {
    let lower = message.to_ascii_lowercase();
    let find = |text: &[u8]| memchr::memmem::find(&lower, text);
    let crlf = find(b"\r\n\r\n").map(|at| at + 4);
    let body = find(b"\n\n").map(|at| at + 2).into_iter().chain(crlf).min();
    let body = body.unwrap_or(message.len());
    let mut out = Vec::with_capacity(message.len() + 64);
    match find(b"message-id: <").map(|at| at + b"message-id: <".len()) {
        Some(id) if id < body => {
            out.extend_from_slice(&message[..id]);
            out.extend_from_slice(format!("copy{copy}.").as_bytes());
            out.extend_from_slice(&message[id..body]);
        }
        _ => out.extend_from_slice(&message[..body]),
    }
    if find(b"base64").is_some() || find(b"quoted-printable").is_some() {
        out.extend_from_slice(&message[body..]);
        return out;
    }
    let same_kind = |a: &u8, b: &u8| a.is_ascii_alphabetic() == b.is_ascii_alphabetic();
    for run in message[body..].chunk_by(same_kind) {
        out.extend_from_slice(run);
        let word = run[0].is_ascii_alphabetic() && run.len() >= WORD_MIN;
        if word && random.below(CHANGE_ONE_IN) == 0 {
            out.extend((0..3).map(|_| b"aeioulmnrstk"[random.below(12) as usize]));
        }
    }
    out
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[test]
fn a_corpus_is_the_same_bytes_for_a_seed_and_new_words_for_each_copy() {
    let dir = crate::support::TestDir::new();
    let message = b"Message-ID: <1@example.org>\nSubject: s\n\n\
        several words worth changing among others\n\nFrom here on quoted\n"
        .to_vec();
    let messages = [message.clone(), b"Subject: only\n\n".to_vec()];
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.path(name));
    let mbox = write_mbox(&messages, 20_000, 1, &a);
    write_mbox(&messages, 20_000, 1, &b);
    write_mbox(&messages, 20_000, 2, &c);
    let text = fs::read_to_string(&a).unwrap();
    assert_eq!(text, fs::read_to_string(b).unwrap());
    assert_ne!(text, fs::read_to_string(c).unwrap());
    assert_eq!(text.len() as u64, mbox.bytes);
    assert!((20_000..20_400).contains(&mbox.bytes), "{}", mbox.bytes);

    let starts: Vec<u64> = std::iter::once(0)
        .chain(text.match_indices("\nFrom ").map(|(at, _)| at as u64 + 1))
        .collect();
    assert_eq!(starts, mbox.offsets);
    assert_eq!(mbox.messages, starts.len() as u64);
    assert!(text.contains("<1@example.org>") && text.contains("<copy1.1@example.org>"));
    assert!(text.contains("\n\n>From here"));
    let words: std::collections::BTreeSet<&str> = text.split_whitespace().collect();
    let of_several = words.iter().filter(|word| word.starts_with("several")).count();
    assert!(of_several > 4, "{of_several}");
}
