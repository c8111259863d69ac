//! `ginmill check` and `ginmill inspect` on an archive, a damaged one, and no archive.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli_support::{archive, archived, ask, fixture, refused};
use crate::support::{PAGE, TestDir, names_in};

/// A copy of the archive.
fn copy(dir: &TestDir) -> String {
    let copy = dir.path("copy.gin");
    fs::create_dir(&copy).unwrap();
    for name in names_in(archive()) {
        fs::copy(archive().join(&name), copy.join(&name)).unwrap();
    }
    copy.to_str().unwrap().to_owned()
}

/// Flips bits of one byte of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x15;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_archive_is_said_to_be_sound() {
    let said = ask(&["check", archive().to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert_eq!(said.out.lines().count(), 9, "{}", said.out);
    assert!(said.out.lines().all(|line| line.contains(": sound")), "{}", said.out);
    let said = ask(&["check", "--json", &archived("body_trgm.gin")]);
    assert_eq!(said.lines()[0]["damages"], json!([]));
    assert_eq!(said.lines()[0]["index"]["built"], json!(true));
}

#[test]
fn every_file_with_a_flipped_byte_is_named() {
    let dir = TestDir::new();
    let copied = copy(&dir);
    for name in names_in(archive()) {
        let path = Path::new(&copied).join(&name);
        let good = fs::read(&path).unwrap();
        // figures of a report are plain text; what breaks its form is found
        let at = if name == "report.json" { 0 } else { good.len() / 2 };
        flip(&path, at);
        let said = ask(&["check", &copied]);
        assert_eq!(said.code, Some(1), "{name}: {said:?}");
        let damaged: Vec<&str> =
            said.out.lines().filter(|line| !line.contains(": sound")).collect();
        assert!(damaged.iter().all(|line| line.starts_with(&name)), "{}", said.out);
        assert!(!damaged.is_empty());
        let said = ask(&["check", &copied, "--json"]);
        let damages = |line: &Value| line["damage_count"].as_u64().unwrap();
        assert!(said.lines().iter().map(damages).sum::<u64>() > 0, "{}", said.out);
        fs::write(&path, good).unwrap();
    }
    assert_eq!(ask(&["check", &copied]).code, Some(0));
}

#[test]
fn an_index_of_other_documents_is_found_though_sound_by_itself() {
    let dir = TestDir::new();
    let copied = copy(&dir);
    let other = dir.path("other.gin");
    let mail = fixture("mail/mboxo.mbox");
    ask(&["index", mail.to_str().unwrap(), "-o", other.to_str().unwrap()]).done();
    let name = "subject_trgm.gin";
    fs::copy(other.join(name), Path::new(&copied).join(name)).unwrap();
    let said = ask(&["check", &copied]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("subject_trgm.gin: column 1: expected an entry for each of")
    );

    fs::remove_file(Path::new(&copied).join(name)).unwrap();
    let said = ask(&["check", &copied]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains(name), "{}", said.out);
}

#[test]
fn what_is_no_archive_and_no_index_is_refused() {
    let mail = fixture("mail");
    let sentence = refused(&["check", mail.to_str().unwrap()]);
    assert!(sentence.contains("is not a ginmill archive"), "{sentence}");
    assert!(refused(&["check", "no/such/file.gin"]).contains("no/such/file.gin"));
    assert!(refused(&["inspect", "no/such/file.gin", "meta"]).contains("cannot open"));
    let mbox = fixture("mail/mboxo.mbox");
    let sentence = refused(&["inspect", mbox.to_str().unwrap(), "meta"]);
    assert!(sentence.contains("mboxo.mbox"), "{sentence}");
}

#[test]
fn the_metapage_is_shown_as_pageinspect_shows_it() {
    let index = archived("body_trgm.gin");
    let meta: Value =
        serde_json::from_str(&ask(&["inspect", &index, "meta", "--json"]).done())
            .unwrap();
    let pages = fs::metadata(&index).unwrap().len() / PAGE;
    assert_eq!(meta["n_total_pages"], pages);
    assert_eq!(
        (&meta["version"], &meta["pending_head"]),
        (&json!(2), &json!(u32::MAX))
    );
    let counted = meta["n_entry_pages"].as_u64().unwrap()
        + meta["n_data_pages"].as_u64().unwrap();
    assert_eq!(counted + 1, pages);
    let text = ask(&["inspect", &index, "meta"]).done();
    assert!(text.contains(&format!("n_total_pages     {pages}\n")), "{text}");
}

#[test]
fn every_page_can_be_shown() {
    for name in names_in(archive()).iter().filter(|name| name.ends_with(".gin")) {
        let index = archived(name);
        let pages = fs::metadata(&index).unwrap().len() / PAGE;
        for page in 0..pages {
            let page = page.to_string();
            let text = ask(&["inspect", &index, "page", &page]).done();
            assert!(text.contains(&format!("block        {page}\n")), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
        let said = refused(&["inspect", &index, "page", &pages.to_string()]);
        assert!(said.contains(&format!("its last one is {}", pages - 1)), "{said}");
    }
}

#[test]
fn entries_and_their_lists_agree() {
    let index = archived("body_tsvector.gin");
    let all = ask(&["inspect", &index, "entries", "--json"]).lines();
    let top = ask(&["inspect", &index, "entries", "--top", "3", "--json"]).done();
    let top: Value = serde_json::from_str(&top).unwrap();
    let longest =
        all.iter().map(|entry| entry["tids"].as_u64().unwrap()).max().unwrap();
    assert_eq!(top[0]["tids"], longest);
    assert_eq!(top.as_array().unwrap().len(), 3);
    let stats = ask(&["inspect", &index, "stats", "--json"]).done();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["entries"], all.len());
    let sum: u64 = all.iter().map(|entry| entry["tids"].as_u64().unwrap()).sum();
    assert_eq!(stats["postings"], sum);
    let words: Vec<&Value> = all.iter().map(|entry| &entry["key"]).collect();
    let sorted = words.iter().filter_map(|word| word.as_str()).is_sorted();
    assert!(sorted, "{words:?}");

    let word = top[0]["key"].as_str().unwrap();
    let tids = ask(&["inspect", &index, "posting", word]).done();
    assert_eq!(tids.lines().count() as u64, longest);
    let said = ask(&["inspect", &index, "posting", word, "--json"]);
    let list: Vec<&str> = tids.lines().collect();
    assert_eq!(said.lines()[0]["tids"], json!(list));
    let hex: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let hex = ask(&["inspect", &index, "posting", &format!("\\x{hex}")]).done();
    assert_eq!(hex, tids);
    let empty = all.iter().find(|entry| entry["category"] == "empty_item").unwrap();
    let said = ask(&["inspect", &index, "posting", "--category", "empty_item"]).done();
    assert_eq!(said.lines().count() as u64, empty["tids"].as_u64().unwrap());
}

#[test]
fn a_key_that_is_not_there_is_status_one_and_a_wrong_one_two() {
    let words = archived("body_tsvector.gin");
    assert_eq!(ask(&["inspect", &words, "posting", "no such lexeme"]).code, Some(1));
    let trigrams = archived("body_trgm.gin");
    assert_eq!(ask(&["inspect", &trigrams, "posting", "-1"]).code, Some(1));
    for (index, arguments, words) in [
        (&trigrams, ["abc", "--column=1"], "are numbers from -2147483648"),
        (&words, ["abc", "--column=2"], "its columns are 1 to 1"),
        (&words, ["abc", "--column=0"], "its columns are 1 to 1"),
        (&words, ["\\xfg", "--column=1"], "hexadecimal"),
    ] {
        let arguments = [&["inspect", index, "posting"], &arguments[..]].concat();
        let sentence = refused(&arguments);
        assert!(sentence.contains(words), "{sentence}");
    }
}
