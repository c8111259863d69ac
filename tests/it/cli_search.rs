//! `ginmill search` and `ginmill show`: what they print and how they end.

use std::fs;

use serde_json::Value;

use crate::cli_support::{Said, archive, ask, fixture, refused};
use crate::support::{TestDir, program};

fn search(arguments: &[&str]) -> Said {
    ask(&[&["search", archive().to_str().unwrap()], arguments].concat())
}

fn show(arguments: &[&str]) -> Said {
    ask(&[&["show", archive().to_str().unwrap()], arguments].concat())
}

#[test]
fn a_hit_has_date_sender_subject_text_and_place() {
    let said = search(&["subject:\"folded end\"", "patch", "--limit", "1"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!((said.code, lines.len()), (Some(0), 4), "{said:?}");
    assert!(lines[0].starts_with("2004-0"), "{}", said.out);
    assert!(lines[0].contains("@") && lines[0].contains("  ("), "{}", said.out);
    assert!(lines[1].contains("folded end"), "{}", said.out);
    assert!(lines[2].contains("patch"), "{}", said.out);
    assert!(lines[3].contains("crlf.mbox:"), "{}", said.out);
    assert!(!said.out.contains('\u{1b}'), "no terminal, no colours: {}", said.out);
    let said = search(&["patch", "--limit", "1", "--color", "always"]);
    assert!(said.out.contains("\u{1b}[1;31mpatch\u{1b}[0m"), "{}", said.out);
    assert!(said.err.contains("--limit shows more"), "{}", said.err);
}

#[test]
fn every_form_of_output_has_the_same_hits() {
    let json = search(&["patch", "--output", "json"]);
    assert_eq!(json.code, Some(0));
    let hits = json.lines();
    assert!(hits.len() > 10, "{}", json.out);
    let tids: Vec<&str> = hits.iter().map(|hit| hit["tid"].as_str().unwrap()).collect();
    assert_eq!(search(&["patch", "--json"]).out, json.out);
    assert_eq!(search(&["patch", "--ids"]).done().lines().collect::<Vec<_>>(), tids);
    assert_eq!(search(&["patch", "--count"]).done(), format!("{}\n", tids.len()));
    assert_eq!(search(&["patch", "--count", "--json"]).lines()[0]["count"], tids.len());
    let page = search(&["patch", "--ids", "--offset", "3", "--limit", "4"]).done();
    assert_eq!(page.lines().collect::<Vec<_>>(), tids[3..7]);
    let newest = search(&["patch", "--sort", "-date", "--json"]).lines();
    let dates: Vec<&str> =
        newest.iter().filter_map(|hit| hit["date"].as_str()).collect();
    assert!(dates.len() > 10 && dates.iter().rev().is_sorted(), "{dates:?}");
    let words = search(&["--where", "body @@ 'patch'", "--ids"]).done();
    assert!(words.lines().count() > 10, "{words}");
}

#[test]
fn an_mbox_of_hits_is_an_archive_of_its_own() {
    let dir = TestDir::new();
    let ids = |archive: &str| {
        let said =
            ask(&["search", archive, "--where", "date >= '1970-01-01'", "--json"]);
        let ids = said.lines().into_iter().map(|hit| hit["message_id"].to_string());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    };
    let mut command = program();
    command.arg("search").arg(archive()).args(["--where", "date >= '1970-01-01'"]);
    // bytes as they are: not all of this mail is UTF-8
    let mbox = command.args(["--output", "mbox"]).output().unwrap().stdout;
    let path = dir.write("hits.mbox", mbox);
    let again = dir.path("again.gin");
    let (path, again) = (path.to_str().unwrap(), again.to_str().unwrap());
    ask(&["index", path, "-o", again]).done();
    let (before, after) = (ids(archive().to_str().unwrap()), ids(again));
    assert!(before.len() > 200);
    assert_eq!(before, after);
}

#[test]
fn threads_show_answers_below_what_they_answer() {
    let hits =
        search(&["--where", "date >= '1970-01-01'", "--threads", "--json"]).lines();
    let plain = search(&["--where", "date >= '1970-01-01'", "--json"]).lines();
    assert_eq!(hits.len(), plain.len());
    assert!(hits.iter().any(|hit| hit["depth"].as_u64() > Some(0)));
    let mut above: Vec<&Value> = Vec::new();
    let mut checked = 0;
    for hit in &hits {
        above.truncate(hit["depth"].as_u64().unwrap() as usize);
        let references = hit["references"].as_array().unwrap();
        if let Some(parent) = above.last()
            && !references.is_empty()
        {
            assert!(references.contains(&parent["message_id"]), "{hit} below {parent}");
            checked += 1;
        }
        above.push(hit);
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn nothing_found_is_status_one_and_a_wrong_question_two() {
    for arguments in
        [&["xyzzyplugh"][..], &["xyzzyplugh", "--count"], &["--ids", "xyzzyplugh"]]
    {
        assert_eq!(search(arguments).code, Some(1), "{arguments:?}");
    }
    let dir = archive().to_str().unwrap();
    let mail = fixture("mail");
    for (arguments, words) in [
        (&[dir][..], "nothing is asked for"),
        (&[dir, "--where", "body @@"], "body @@"),
        (&[dir, "--where", "nofield LIKE 'x'"], "nofield"),
        (&[dir, "x", "--sort", "size"], "-date"),
        (&[dir, "x", "--count", "--ids"], "--ids"),
        (&[mail.to_str().unwrap(), "x"], "is not a ginmill archive"),
    ] {
        let sentence = refused(&[&["search"], arguments].concat());
        assert!(sentence.contains(words), "{arguments:?}: {sentence}");
    }
}

#[test]
fn explain_says_what_was_read() {
    let plan = search(&["--where", "subject ILIKE '%index%'", "--explain"]).done();
    assert!(plan.contains("subject_trgm") && plan.contains("recheck"), "{plan}");
    let plan = search(&["patch", "--explain", "--json"]).lines();
    assert!(plan[0]["plan"]["children"].is_array(), "{plan:?}");
}

#[test]
fn a_message_is_shown_by_tid_and_by_message_id() {
    let hit = &search(&["patch", "--limit", "1", "--json"]).lines()[0];
    let (tid, id) = (hit["tid"].as_str().unwrap(), hit["message_id"].as_str().unwrap());
    let text = show(&[tid]).done();
    assert!(text.contains("patch") && text.starts_with("date:    "), "{text}");
    assert_eq!(show(&[id]).done(), text);
    assert_eq!(show(&[id.trim_matches(['<', '>'])]).done(), text);
    let json = &show(&[tid, "--json"]).lines()[0];
    assert_eq!(json["fields"]["message_id"], id);
    assert_eq!(json["fields"]["headers"]["message-id"], id);
    let raw = show(&[tid, "--raw"]).done();
    let file = fs::read(hit["file"].as_str().unwrap()).unwrap();
    let at = hit["offset"].as_u64().unwrap() as usize;
    let length = hit["length"].as_u64().unwrap() as usize;
    assert_eq!(raw.as_bytes(), &file[at..at + length]);

    for nobody in ["(4000,1)", "<nobody@nowhere.example>"] {
        let said = show(&[nobody]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert!(said.err.contains("there is no message"), "{said:?}");
    }
}

#[test]
fn a_changed_original_is_named() {
    let dir = TestDir::new();
    let mbox = dir.write("in.mbox", fs::read(fixture("mail/mboxo.mbox")).unwrap());
    let out = dir.path("out.gin");
    let out = out.to_str().unwrap();
    ask(&["index", mbox.to_str().unwrap(), "-o", out]).done();
    ask(&["show", out, "(0,1)"]).done();
    fs::write(&mbox, "From nobody\n").unwrap();
    let sentence = refused(&["show", out, "(0,1)"]);
    assert!(sentence.contains("in.mbox"), "{sentence}");
}
