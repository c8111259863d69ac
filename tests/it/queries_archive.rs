//! Searches of an archive: the answer by indexes is the answer of testing every document,
//! and that of a live PostgreSQL 18 on the same rows.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use ginmill::Builder;
use ginmill::document::Value;
use ginmill::opclass::jsonb;
use ginmill::search::{Answer, SearchOptions, Searcher, Sort};

use crate::support::{self, TestDir};

/// A small generator, so that every run tests the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const WORDS: &[&str] = &[
    "cat",
    "cats",
    "dog",
    "the",
    "running",
    "runs",
    "foo-bar",
    "budget",
    "Budget",
    "of",
    "postgres",
    "index",
    "indexes",
    "don't",
    "www.example.com/x",
    "naïve",
    "fat",
    "rat",
    "meeting",
    "and",
    "quick",
    "2020",
    "x1",
    "trigram",
    "%odd_\\",
    "'quoted'",
    "zebra",
];
const NAMES: &[&str] =
    &["Ann <ann@example.org>", "Bob B. <bob@example.com>", "eve@x.y"];

fn words(random: &mut Random, most: usize) -> String {
    let count = 1 + random.below(most);
    let words: Vec<_> = (0..count).map(|_| random.pick(WORDS)).collect();
    words.join(" ")
}

/// An mbox of such messages.
fn mailbox(messages: usize) -> String {
    let mut random = Random(0x5eed_0010);
    let mut text = String::new();
    for n in 0..messages {
        writeln!(text, "From x@example.org Thu Jan  2 03:04:05 2020").unwrap();
        writeln!(text, "Message-ID: <m{n}@example.org>").unwrap();
        writeln!(text, "From: {}", random.pick(NAMES)).unwrap();
        if !random.one_in(8) {
            writeln!(text, "Subject: {}", words(&mut random, 5)).unwrap();
        }
        if !random.one_in(3) {
            writeln!(text, "To: {}, {}", random.pick(NAMES), random.pick(NAMES))
                .unwrap();
        }
        if random.one_in(2) {
            writeln!(text, "List-Id: <{}.example.org>", random.pick(&["a", "b"]))
                .unwrap();
        }
        if n > 0 && random.one_in(2) {
            let to = random.below(n);
            writeln!(text, "In-Reply-To: <m{to}@example.org>").unwrap();
        }
        let (year, month) = (2018 + random.below(4), 1 + random.below(12));
        let day = 1 + random.below(28);
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
            "Nov", "Dec",
        ];
        let month = months[month - 1];
        writeln!(text, "Date: {day} {month} {year} 12:00:00 +0000").unwrap();
        writeln!(text, "Content-Type: text/plain; charset=utf-8\n").unwrap();
        if !random.one_in(20) {
            for _ in 0..random.below(6) {
                writeln!(text, "{}", words(&mut random, 9)).unwrap();
            }
        }
        text.push('\n');
    }
    text
}

const ALL_INDEXES: &[&str] = &[
    "headers_jsonb_path=jsonb_path_ops(headers)",
    "headers_jsonb=jsonb_ops(headers)",
    "subject_trgm=gin_trgm_ops(subject)",
    "body_trgm=gin_trgm_ops(body)",
    "from_trgm=gin_trgm_ops(from)",
    "body_tsvector=tsvector_ops(body, english)",
    "body_simple=tsvector_ops(body, simple)",
    "subject_tsvector=tsvector_ops(subject, english)",
];

fn build(input: &Path, output: &Path, indexes: &[&str]) -> Searcher {
    let mut builder = Builder::new([input]).workers(2);
    for definition in indexes {
        builder = builder.index(definition.parse().unwrap());
    }
    builder.build(output).unwrap();
    Searcher::open(output).unwrap()
}

fn find(archive: &Searcher, filter: &str) -> (BTreeSet<u64>, Answer) {
    let query = archive
        .query(None, Some(filter))
        .unwrap_or_else(|error| panic!("{filter}: {error}"));
    let options = SearchOptions { ids_only: true, ..SearchOptions::default() };
    let answer = archive.search(&query, &options).unwrap();
    (answer.hits.iter().map(|hit| hit.tid.pack()).collect(), answer)
}

/// A condition that SQL and `--where` write the same way.
fn condition(random: &mut Random) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let word = |random: &mut Random| random.pick(WORDS);
    match random.below(14) {
        0 | 1 => {
            let field = random.pick(&["body", "subject"]);
            let function = random.pick(&[
                "plainto_tsquery",
                "phraseto_tsquery",
                "websearch_to_tsquery",
            ]);
            let config = random.pick(&["english", "english", "simple"]);
            let mut text = words(random, 3);
            if random.one_in(3) {
                text = format!("{text} -{}", word(random));
            }
            let text = quoted(&text);
            format!(
                "to_tsvector('{config}', {field}) @@ {function}('{config}', {text})"
            )
        }
        2 | 3 => {
            let operators = ["&", "|", "<->", "<2>", "& !", "| !"];
            let pieces =
                ["cat:*", "run", "dog", "budget", "fat", "rat", "ca:*", "index"];
            let query = format!(
                "{} {} ({} {} {})",
                random.pick(&pieces),
                random.pick(&operators),
                random.pick(&pieces),
                random.pick(&operators[..4]),
                random.pick(&pieces)
            );
            let field = random.pick(&["body", "subject"]);
            format!("to_tsvector('english', {field}) @@ '{query}'::tsquery")
        }
        4 | 5 => {
            let field = random.pick(&["body", "subject", "\"from\""]);
            let operator = random.pick(&["LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"]);
            let patterns = [
                "%budget%",
                "%ca%",
                "fat%",
                "%rat",
                "%fat _at%",
                "%",
                "c_t%",
                "%\\%odd%",
                "%dog%cat%",
                "%example%",
                "%ÏVE%",
                "",
            ];
            format!("{field} {operator} '{}'", random.pick(&patterns))
        }
        6 => {
            let field = random.pick(&["body", "subject", "\"from\""]);
            let operator = random.pick(&["~", "~*", "!~", "!~*"]);
            let patterns = [
                "budget",
                "^fat",
                "(cat|dog)s",
                "rat$",
                "x[0-9]",
                "q.*k",
                "run(s|ning)",
                "a",
                "foo-?bar",
                "cat.dog",
            ];
            format!("{field} {operator} '{}'", random.pick(&patterns))
        }
        7 => {
            let values = [
                r#"{"from": "eve@x.y"}"#,
                r#"{"to": ["eve@x.y"]}"#,
                r#"{"message-id": "<m7@example.org>"}"#,
                "{}",
                r#"{"nothing": 1}"#,
                r#"{"list-id": "<a.example.org>", "from": "eve@x.y"}"#,
            ];
            format!("headers @> '{}'", random.pick(&values))
        }
        8 => {
            let keys = ["'{to,list-id}'", "array['in-reply-to']", "array[]::text[]"];
            match random.below(3) {
                0 => format!("headers ? '{}'", random.pick(&["to", "subject", "zip"])),
                1 => format!("headers ?| {}", random.pick(&keys)),
                _ => format!("headers ?& {}", random.pick(&keys)),
            }
        }
        9 => {
            let dates =
                ["2019-06-01", "2020-01-01 13:00+01", "2018-01-15", "2021-12-01"];
            let operator = random.pick(&["<", "<=", ">", ">=", "=", "<>"]);
            match random.below(3) {
                0 => format!("date between '{}' and '2020-08-01'", random.pick(&dates)),
                _ => format!("date {operator} '{}'", random.pick(&dates)),
            }
        }
        10 | 11 => {
            let (operator, paths): (_, &[&str]) = match random.below(2) {
                0 => (
                    "@?",
                    &[
                        "$.to",
                        "$.to[*] ? (@ == \"eve@x.y\")",
                        "$.* ? (@ starts with \"Bob\")",
                        "strict $.to[5]",
                        "$.subject ? (@ like_regex \"budget\" flag \"i\")",
                        "$.nothing",
                        "$.to ? (@.size() == 2)",
                    ],
                ),
                _ => (
                    "@@",
                    &[
                        "$.from == \"eve@x.y\"",
                        "$.to[*] == \"eve@x.y\" || $.\"list-id\" == \"<a.example.org>\"",
                        "$.to[*] == \"eve@x.y\" && exists($.\"in-reply-to\")",
                        "!($.from == \"eve@x.y\")",
                        "$.from",
                        "strict $.subject == \"cat\"",
                        "$.from != \"eve@x.y\"",
                    ],
                ),
            };
            format!("headers {operator} '{}'", random.pick(paths))
        }
        12 => {
            let field = random.pick(&["subject", "\"to\"", "list", "body", "date"]);
            format!("{field} IS {}NULL", random.pick(&["", "NOT "]))
        }
        _ => {
            let operator = random.pick(&["=", "<>", "<", ">=", "%", "%>", "%>>"]);
            let text = quoted(&words(random, 2));
            format!("subject {operator} {text}")
        }
    }
}

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.one_in(3) {
        let not = if random.one_in(4) { "NOT " } else { "" };
        return format!("{not}{}", condition(random));
    }
    let word = random.pick(&["AND", "OR", "AND NOT", "OR NOT", "AND"]);
    let (one, two) = (expression(random, depth - 1), expression(random, depth - 1));
    if random.one_in(3) {
        format!("({one}) {word} ({two} AND {})", condition(random))
    } else {
        format!("({one}) {word} ({two})")
    }
}

/// Two archives of the same mail: with all indexes, and with none that helps.
fn archives(dir: &TestDir) -> (Searcher, Searcher) {
    let input = dir.write("mail.mbox", mailbox(400));
    let with = build(&input, &dir.path("with.gin"), ALL_INDEXES);
    let without = build(&input, &dir.path("without.gin"), &["l=gin_trgm_ops(list)"]);
    (with, without)
}

#[test]
fn indexes_never_change_an_answer() {
    let dir = TestDir::new();
    let (with, without) = archives(&dir);
    let mut random = Random(0x5eed_0011);
    let (mut found, mut by_index) = (0, 0);
    for _ in 0..600 {
        let filter = expression(&mut random, 2);
        let (ours, answer) = find(&with, &filter);
        let (theirs, _) = find(&without, &filter);
        assert_eq!(ours, theirs, "{filter}\n{}", answer.plan);
        found += usize::from(!ours.is_empty());
        by_index += usize::from(answer.plan.rechecked < 400);
    }
    assert!(found > 300 && by_index > 300, "{found} found, {by_index} by index");
}

#[test]
fn answers_are_the_servers_on_the_same_rows() {
    let Some(mut server) = support::oracle() else { return };
    let dir = TestDir::new();
    let (with, _) = archives(&dir);
    server
        .batch_execute(
            "SET client_min_messages = error; SET timezone = 'UTC';
             CREATE TEMPORARY TABLE mail (n bigint, headers jsonb, subject text,
                 body text, \"from\" text, \"to\" text, list text, message_id text,
                 date timestamptz)",
        )
        .unwrap();
    let insert = server
        .prepare(
            "INSERT INTO mail VALUES ($1, $2::text::jsonb, $3, $4, $5, $6, $7, $8,
                 to_timestamp($9))",
        )
        .unwrap();
    let (all, _) = find(&with, "date IS NULL OR date IS NOT NULL");
    assert_eq!(all.len(), 400);
    for tid in all {
        let id = ginmill::tid::Tid::unpack(tid).to_string();
        let message = with.show(&id).unwrap().unwrap();
        let text = |name: &str| {
            let field = message.fields.iter().find(|(known, _)| known == name);
            match &field.unwrap().1 {
                Value::Text(text) => Some(text.to_string()),
                Value::Json(json) => Some(jsonb::to_text(json)),
                _ => None,
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "dates of mail are far below")]
        let date = message.entry.date.map(|date| date as f64);
        server
            .execute(
                &insert,
                &[
                    &i64::try_from(tid).unwrap(),
                    &text("headers"),
                    &text("subject"),
                    &text("body"),
                    &text("from"),
                    &text("to"),
                    &text("list"),
                    &text("message_id"),
                    &date,
                ],
            )
            .unwrap();
    }
    let mut random = Random(0x5eed_0012);
    let long = std::env::var("GINMILL_LONG").is_ok_and(|long| long == "1");
    for _ in 0..if long { 20_000 } else { 2_000 } {
        let filter = expression(&mut random, 2);
        let (ours, answer) = find(&with, &filter);
        let theirs: BTreeSet<u64> = server
            .query(&format!("SELECT n FROM mail WHERE {filter}"), &[])
            .unwrap_or_else(|error| panic!("{filter}: {error:?}"))
            .iter()
            .map(|row| u64::try_from(row.get::<_, i64>(0)).unwrap())
            .collect();
        assert_eq!(ours, theirs, "{filter}\n{}", answer.plan);
    }
}

#[test]
fn a_limit_gives_the_beginning_of_the_whole_answer_in_every_order() {
    let dir = TestDir::new();
    let (archive, _) = archives(&dir);
    let query =
        archive.query(Some("cat or \"fat rat\""), Some("body LIKE '%a%'")).unwrap();
    for (name, sort) in Sort::NAMES {
        let all = SearchOptions { sort, ..SearchOptions::default() };
        let whole = archive.search(&query, &all).unwrap();
        assert_eq!(whole.total, Some(whole.hits.len() as u64));
        assert!(whole.hits.len() > 100, "{}", whole.hits.len());
        let page = SearchOptions { limit: Some(7), offset: 5, ..all };
        let part = archive.search(&query, &page).unwrap();
        assert_eq!(part.hits, whole.hits[5..12], "{name}");
        if sort == Sort::Rank {
            assert_eq!(part.total, whole.total);
            assert!(whole.hits.is_sorted_by(|a, b| a.rank >= b.rank));
        } else {
            assert!(part.plan.rechecked < whole.plan.rechecked, "{}", part.plan);
        }
        let count = SearchOptions { count_only: true, ..page };
        let count = archive.search(&query, &count).unwrap();
        assert_eq!((count.total, count.hits.len()), (whole.total, 0));
    }
    let newest = SearchOptions { sort: Sort::DateDescending, ..Default::default() };
    let hits = archive.search(&query, &newest).unwrap().hits;
    assert!(hits.is_sorted_by(|a, b| a.date >= b.date));
}

#[test]
fn a_hit_says_what_it_is_and_why_it_was_found() {
    let dir = TestDir::new();
    let mail = "From a Thu Jan  2 03:04:05 2020\nMessage-ID: <1@x>\n\
                From: Ann <ann@x.org>\nSubject: The budget\nList-Id: <l.x.org>\n\
                References: <8@x> <9@x>\nDate: 2 Jan 2020 03:04:05 +0000\n\n\
                We were\nrunning late.\n\n\
                From a Thu Jan  2 03:04:05 2020\nMessage-ID: <2@x>\n\nNothing.\n";
    let input = dir.write("mail.mbox", mail);
    let archive = build(&input, &dir.path("a.gin"), &ALL_INDEXES[..6]);
    let query = archive.query(Some("budget run"), None).unwrap();
    let answer = archive.search(&query, &SearchOptions::default()).unwrap();
    let [hit] = &answer.hits[..] else { panic!("{:?}", answer.hits) };
    assert_eq!((hit.tid.block, hit.tid.offset), (0, 1));
    assert_eq!(hit.date, Some(1_577_934_245));
    assert_eq!(hit.message_id.as_deref(), Some("<1@x>"));
    assert_eq!(hit.list.as_deref(), Some("<l.x.org>"));
    assert_eq!(hit.references, ["<8@x>", "<9@x>"]);
    let lit = |snippet: &Option<ginmill::search::Snippet>| {
        let snippet = snippet.as_ref().unwrap();
        let parts = snippet.highlights.iter().map(|range| &snippet.text[range.clone()]);
        (snippet.text.clone(), parts.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(lit(&hit.subject), ("The budget".into(), vec!["budget".to_owned()]));
    let body = "We were running late.".to_owned();
    assert_eq!(lit(&hit.snippet), (body, vec!["running".to_owned()]));
    assert_eq!(lit(&hit.from).0, "Ann <ann@x.org>");
    // The subject has no index here, so the one document that has the other word was read.
    assert_eq!(answer.plan.rechecked, 1, "{}", answer.plan);
    for id in ["<1@x>", "1@x", "(0,1)", "0,1"] {
        let message = archive.show(id).unwrap().unwrap();
        assert!(mail.as_bytes().starts_with(&message.raw), "{id}");
        assert_eq!(message.fields[1].1, Value::Text("The budget".into()));
    }
    assert_eq!(archive.show("<3@x>").unwrap(), None);
    assert_eq!(archive.show("(9,9)").unwrap(), None);
}

#[test]
fn the_plan_tells_what_was_done() {
    let dir = TestDir::new();
    let (archive, without) = archives(&dir);
    let plan = |archive: &Searcher, filter: &str| {
        let text = find(archive, filter).1.plan.to_string();
        // Figures of time differ from run to run.
        let lines = text.lines().map(|line| match line.split_once(" time=") {
            Some((before, _)) => format!("{before})"),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let of = |text: &str, start: &str| {
        text.lines().any(|line| line.trim_start().starts_with(start))
    };
    let indexed =
        plan(&archive, "body_tsvector @@ 'cat & dog' AND subject LIKE '%bud%'");
    for start in [
        "Document Scan",
        "->  BitmapAnd",
        "->  Bitmap Index Scan on body_tsvector",
        "Index Cond: body_tsvector @@ '''cat'' & ''dog'''",
        "->  Bitmap Index Scan on subject_trgm",
        "Documents read and tested: ",
        "Keys: 2, entries read: 2, TIDs read: ",
    ] {
        assert!(of(&indexed, start), "{start}\n{indexed}");
    }
    let scanned = plan(&archive, "subject LIKE '%bu%'");
    assert!(of(&scanned, "->  Seq Scan"), "{scanned}");
    let note = "Note: scans its candidates: the pattern says too little for the index";
    assert!(of(&scanned, note), "{scanned}");
    let scanned = plan(&without, "subject LIKE '%budget%'");
    let note = "Note: scans its candidates: no index supports this condition";
    assert!(of(&scanned, note), "{scanned}");
    assert!(of(&scanned, "Documents read and tested: 400, removed by recheck: "));
}

#[test]
fn a_changed_or_missing_original_is_named() {
    let dir = TestDir::new();
    let input = dir.write("mail.mbox", mailbox(20));
    let archive = build(&input, &dir.path("a.gin"), ALL_INDEXES);
    let failure = |archive: &Searcher| {
        let query = archive.query(None, Some("body LIKE '%a%'")).unwrap();
        archive.search(&query, &SearchOptions::default()).unwrap_err().to_string()
    };
    let mut changed = fs::read(&input).unwrap();
    changed.extend_from_slice(b"more\n");
    fs::write(&input, changed).unwrap();
    let message = failure(&archive);
    assert!(
        message.contains("mail.mbox has changed since it was indexed"),
        "{message}"
    );
    fs::remove_file(&input).unwrap();
    let message = failure(&Searcher::open(&dir.path("a.gin")).unwrap());
    assert!(message.contains("mail.mbox"), "{message}");
    // The index alone still answers what needs no document.
    let query = archive.query(None, Some("body_tsvector @@ 'cat'")).unwrap();
    let count = SearchOptions { count_only: true, ..SearchOptions::default() };
    assert!(archive.search(&query, &count).unwrap().total > Some(0));
}

#[test]
fn a_query_that_does_not_suit_the_archive_is_refused_with_its_place() {
    let dir = TestDir::new();
    let (archive, _) = archives(&dir);
    for (filter, start) in [
        (
            "bdy LIKE 'x'",
            "column 1: no field or index is named bdy; the fields are headers",
        ),
        ("body @> '{}'", "column 6: operator @> does not suit body, which is text"),
        (
            "headers LIKE 'x'",
            "column 9: operator LIKE does not suit headers, which is json",
        ),
        ("headers @> '{'", "column 12: "),
        ("headers @> 7", "column 12: operator @> takes a JSON value"),
        ("body ~ '(a'", "column 8: cannot use this regular expression: unclosed group"),
        ("body ~ '(?=a)'", "column 8: cannot use this regular expression: look-around"),
        ("date > 'soon'", "column 8: operator > takes a date"),
        ("date LIKE 'x'", "column 6: operator LIKE does not suit date"),
        ("body @@ to_tsquery('a &')", "column 9: no operand in tsquery"),
        (
            "body @@ to_tsquery('klingon', 'a')",
            "column 9: no text search configuration",
        ),
        (
            "to_tsvector('klingon', body) @@ 'a'",
            "column 24: no text search configuration",
        ),
        ("body LIKE '%\\'", "column 11: LIKE pattern"),
        ("headers @? '$.'", "column 12: "),
        ("headers @@ '$x == 1'", "column 12: could not find jsonpath variable \"x\""),
        ("headers ?| 'a'", "column 12: operator ?| takes array"),
        ("subject = 7", "column 11: operator = takes a 'text'"),
    ] {
        let error = archive.query(None, Some(filter)).unwrap_err().to_string();
        assert!(error.starts_with(start), "{filter}: {error}");
        assert_eq!(error.lines().count(), 3, "{error}");
    }
}
