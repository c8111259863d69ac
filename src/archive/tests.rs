//! The module as a whole: on `fixtures/mail`, on generated trees, on hostile bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::document::{Json, JsonEvent, Value};
use crate::tid::Tid;

const ALL_FIELDS: [bool; 7] = [true; 7];

/// What became of a message.
type Parsed = std::result::Result<Document<'static>, String>;

fn open(path: &Path) -> Arc<Inputs> {
    Arc::new(Inputs::open(&[path.to_path_buf()], None).unwrap())
}

/// Every message of the inputs by file, in order, and the problems.
fn read_all(inputs: &Arc<Inputs>) -> (BTreeMap<PathBuf, Vec<Parsed>>, Vec<String>) {
    let ranges = BlockRanges::new(Arc::clone(inputs));
    let mut reader = inputs.reader();
    let mut found: BTreeMap<PathBuf, Vec<Parsed>> = BTreeMap::new();
    while let Some(range) = ranges.claim().unwrap() {
        for item in &range.items {
            let mut document = Document::default();
            let raw = reader.bytes(item).unwrap();
            let parsed = inputs
                .parse(item, raw, &ALL_FIELDS, &mut document)
                .map(|()| message::into_owned(document))
                .map_err(|error| error.to_string());
            let path = inputs.files()[item.file as usize].path.clone();
            found.entry(path).or_default().push(parsed);
        }
    }
    let problems = inputs.problems().iter().cloned().chain(ranges.problems());
    (
        found,
        problems
            .map(|problem| format!("{}: {}", problem.file, problem.reason))
            .collect(),
    )
}

fn text<'a>(document: &'a Document<'_>, at: usize) -> Option<&'a str> {
    match &document.values[at] {
        Value::Text(text) => Some(text),
        Value::Null => None,
        other => panic!("field {at} is {other:?}"),
    }
}

/// A tape as serde_json's value; numbers do not occur in headers.
fn json(tape: &Json) -> serde_json::Value {
    fn value<'a>(
        events: &mut impl Iterator<Item = JsonEvent<'a>>,
    ) -> Option<serde_json::Value> {
        Some(match events.next()? {
            JsonEvent::Null => serde_json::Value::Null,
            JsonEvent::String(text) => text.into(),
            JsonEvent::BeginArray => {
                let mut list = Vec::new();
                while let Some(item) = value(events) {
                    list.push(item);
                }
                list.into()
            }
            JsonEvent::BeginObject => {
                let mut map = serde_json::Map::new();
                let mut last = None;
                while let Some(JsonEvent::Key(key)) = events.next() {
                    assert!(last < Some((key.len(), key)), "keys out of jsonb's order");
                    last = Some((key.len(), key));
                    let new = map.insert(key.to_owned(), value(events).unwrap());
                    assert!(new.is_none(), "key {key} twice");
                }
                map.into()
            }
            _ => return None,
        })
    }
    value(&mut tape.events()).unwrap()
}

#[test]
fn every_message_of_the_fixtures_is_read_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mail");
    let expected = fs::read_to_string(root.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let (found, problems) = read_all(&open(&root));

    let counts: BTreeMap<String, u64> = found
        .iter()
        .map(|(path, list)| (relative(path, &root), list.len() as u64))
        .collect();
    let wanted: BTreeMap<String, u64> =
        serde_json::from_value(expected["files"].clone()).unwrap();
    assert_eq!(counts, wanted);

    let mut problems: Vec<String> = problems
        .iter()
        .map(|line| line.replace(&format!("{}/", root.display()), ""))
        .collect();
    problems.sort();
    let listed = expected["problems"].as_object().unwrap();
    let mut wanted: Vec<String> = listed
        .iter()
        .map(|(file, why)| format!("{file}: {}", why.as_str().unwrap()))
        .collect();
    wanted.sort();
    assert_eq!(problems, wanted);

    let cases = expected["messages"].as_array().unwrap();
    assert!(cases.len() > 80);
    let mut failed = Vec::new();
    for case in cases {
        let file = case["file"].as_str().unwrap();
        let index = case["index"].as_u64().unwrap() as usize;
        let message = &found[&root.join(file)][index];
        for (what, wanted) in case.as_object().unwrap() {
            if let Some(found) = differs(message, what, wanted) {
                failed.push(format!("{file} {index} {what}: {wanted} <> {found}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What a message has instead of what is wanted of it.
fn differs(message: &Parsed, what: &str, wanted: &serde_json::Value) -> Option<String> {
    if let ("file" | "index", _) = (what, wanted) {
        return None;
    }
    let document = match message {
        Ok(document) => document,
        Err(error) if what == "error" && wanted == error => return None,
        Err(error) => return Some(format!("error {error}")),
    };
    let fields = message::fields();
    let field = |name: &str| fields.iter().position(|field| field.name == name);
    let body = text(document, 2).unwrap();
    let found = match what {
        "date" => document.date.into(),
        "warnings" => document.warnings.clone().into(),
        "body" | "text" => body.into(),
        "headers" => match &document.values[0] {
            Value::Json(tape) => json(tape),
            other => return Some(format!("{other:?}")),
        },
        "has" => {
            let list = wanted.as_array().unwrap();
            return (!list.iter().all(|part| body.contains(part.as_str().unwrap())))
                .then(|| body.to_owned());
        }
        "subjectends" => {
            let subject = text(document, 1).unwrap();
            return (!subject.ends_with(wanted.as_str().unwrap()))
                .then(|| subject.to_owned());
        }
        name => text(document, field(name).unwrap()).into(),
    };
    let same = match what {
        "body" => body.starts_with(wanted.as_str().unwrap()),
        _ => found == *wanted,
    };
    (!same).then(|| found.to_string())
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn real_mail_is_the_same_from_a_mailbox_and_from_a_maildir() {
    let Some(mail) = std::env::var_os("GINMILL_MAIL").filter(|mail| !mail.is_empty())
    else {
        eprintln!("left out: real mail: no GINMILL_MAIL, needs ./tests/run");
        return;
    };
    let mail = Path::new(&mail);
    let all = |name: &str| {
        let (found, problems) = read_all(&open(&mail.join(name)));
        assert_eq!(problems, [""; 0]);
        let mut list: Vec<Parsed> = found.into_values().flatten().collect();
        for document in list.iter_mut().flatten() {
            // Without a date of its own a message has that of its From line.
            document.date = None;
        }
        list
    };
    let (mbox, maildir) = (all("spam.mbox"), all("spam-maildir"));
    assert_eq!((mbox.len(), maildir.len()), (6046, 6046));
    let unread: Vec<&String> =
        mbox.iter().filter_map(|one| one.as_ref().err()).collect();
    assert_eq!(unread, [""; 0]);
    for (n, pair) in mbox.iter().zip(&maildir).enumerate() {
        assert_eq!(pair.0, pair.1, "message {n}");
    }
}

/// An mbox of `count` messages of about `bytes` each.
fn mailbox(count: usize, bytes: usize) -> String {
    let one = |n: usize| {
        let body = format!("line {n}\n").repeat(bytes / 8);
        format!("From a@b Sat May  1 10:20:30 2004\nSubject: {n}\n\n{body}\n")
    };
    (0..count).map(one).collect()
}

#[test]
fn ranges_number_every_message_once_whoever_claims_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.mbox"), mailbox(900, 50)).unwrap();
    fs::write(dir.path().join("b.mbox"), mailbox(30, 400_000)).unwrap();
    fs::create_dir_all(dir.path().join("c/cur")).unwrap();
    for n in 0..40 {
        let path = dir.path().join(format!("c/cur/{n:02}"));
        fs::write(path, format!("Subject: {n}\n\ntext\n")).unwrap();
    }
    let inputs = open(dir.path());
    let all = |threads: usize| {
        let ranges = BlockRanges::new(Arc::clone(&inputs));
        let mut claimed: Vec<BlockRange> = std::thread::scope(|scope| {
            let claim = || {
                let mut mine = Vec::new();
                while let Some(range) = ranges.claim().unwrap() {
                    mine.push(range);
                }
                mine
            };
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(claim)).collect();
            started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        claimed.sort_by_key(|range| range.number);
        claimed
    };
    let ranges = all(1);
    let mut documents = 0;
    let mut next_block = 0;
    let mut last = None;
    for (number, range) in ranges.iter().enumerate() {
        assert_eq!((range.number as usize, range.first_block), (number, next_block));
        assert!(!range.items.is_empty());
        assert_eq!(range.bytes, range.items.iter().map(|item| item.len).sum::<u64>());
        next_block += range.items.len().div_ceil(256) as u32;
        documents += range.items.len();
        for (n, item) in range.items.iter().enumerate() {
            let place =
                (Tid::numbered(range.first_block, n as u64), item.file, item.offset);
            assert!(last.is_none_or(|last| last < place), "{last:?} {place:?}");
            last = Some(place);
        }
    }
    assert_eq!(documents, 970);
    let flat = |ranges: &[BlockRange]| -> Vec<(u32, u32, Vec<Item>)> {
        ranges.iter().map(|r| (r.number, r.first_block, r.items.clone())).collect()
    };
    assert_eq!(flat(&all(4)), flat(&ranges));
    assert_eq!(inputs.format_name(), "mbox, maildir");
}

#[test]
fn what_cannot_be_read_is_a_problem_and_nothing_left_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |paths: &[PathBuf], format: Option<&str>| {
        Inputs::open(paths, format).unwrap_err().to_string()
    };
    let path = dir.path().to_path_buf();
    let here = path.display();
    assert_eq!(
        fails(std::slice::from_ref(&path), None),
        format!("nothing to index in {here}")
    );
    fs::write(path.join("a"), "").unwrap();
    let reason = format!("nothing to index in {here}/a: the file is empty");
    assert_eq!(fails(std::slice::from_ref(&path), None), reason);
    fs::write(path.join("b"), "no mail").unwrap();
    let error = fails(std::slice::from_ref(&path), None);
    let reason =
        format!("nothing to index: {here}/a: the file is empty (1 more such problems)");
    assert_eq!(error, reason);
    let error = fails(&[path.join("none")], None);
    let reason = format!("nothing to index in {here}/none: cannot be read: ");
    assert!(error.starts_with(&reason), "{error}");
    let error = fails(std::slice::from_ref(&path), Some("rtf"));
    assert!(error.starts_with("unknown input format \"rtf\"; known are auto, mbox, "));
    assert_eq!(fails(&[], None), "no input given");

    // Blank lines only: of the format by name, and without any message.
    fs::write(path.join("b"), "\n\n\n").unwrap();
    let inputs = Arc::new(Inputs::open(&[path.join("b")], Some("mbox")).unwrap());
    let (found, problems) = read_all(&inputs);
    assert!(found.is_empty());
    assert_eq!(problems, [format!("{here}/b: no document in it (mbox)")]);

    // A file that is gone when it is reached.
    fs::write(path.join("b"), mailbox(1, 10)).unwrap();
    let inputs = open(&path.join("b"));
    fs::remove_file(path.join("b")).unwrap();
    let (_, problems) = read_all(&inputs);
    assert!(problems[0].starts_with(&format!("{here}/b: cannot open {here}/b: ")));
}

#[test]
fn an_item_of_a_file_that_has_shrunk_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.mbox");
    fs::write(&path, mailbox(3, 100)).unwrap();
    let inputs = open(&path);
    let ranges = BlockRanges::new(Arc::clone(&inputs));
    let range = ranges.claim().unwrap().unwrap();
    fs::write(&path, mailbox(1, 100)).unwrap();
    let mut reader = inputs.reader();
    assert!(reader.bytes(&range.items[0]).is_ok());
    let error = reader.bytes(&range.items[2]).unwrap_err().to_string();
    assert!(error.contains("found a file that has become"), "{error}");
}

fn parse_eml(text: &[u8]) -> Parsed {
    let mut document = Document::default();
    match maildir::Eml.parse(text, &ALL_FIELDS, &mut document) {
        Ok(()) => Ok(message::into_owned(document)),
        Err(error) => Err(error.to_string()),
    }
}

/// Time that this thread has had a processor, so that a busy machine is no slow code;
/// where the system does not tell, time.
fn time_spent() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|line| line.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| Instant::now().duration_since(*START), Duration::from_nanos)
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Time that a message takes must grow about as its size does: eight times the size may
/// take at most some 24 times as long, where quadratic work takes 64 times as long.
fn assert_linear(name: &str, make: impl Fn(usize) -> Vec<u8>, n: usize) {
    let time = |n: usize| {
        let text = make(n);
        let best = (0..3).map(|_| {
            let start = time_spent();
            let _ = parse_eml(&text);
            let mut at = 0;
            while let Some((_, end)) = mbox::Mbox.split(&text, at) {
                at = end;
            }
            time_spent() - start
        });
        best.min().unwrap()
    };
    let (small, large) = (time(n), time(8 * n));
    let bound = small.max(Duration::from_millis(2)) * 24;
    assert!(large < bound, "{name}: {small:?}, then {large:?}");
}

#[test]
fn crafted_messages_take_time_in_proportion_to_their_size() {
    let multi = "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n";
    let repeated = |head: &'static str, piece: &'static str| {
        move |n: usize| [head.as_bytes(), &piece.as_bytes().repeat(n)].concat()
    };
    let nested = |n: usize| {
        let level = |n: usize| {
            format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n")
        };
        (0..n).map(level).collect::<String>().into_bytes()
    };
    let n = 5000;
    assert_linear("nested multiparts", nested, n);
    assert_linear(
        "nested messages",
        repeated("", "Content-Type: message/rfc822\n\n"),
        n,
    );
    assert_linear("equal headers", repeated("", "Received: a\n"), n);
    let distinct = |n: usize| {
        (0..n).map(|n| format!("X-{n}: {n}\n")).collect::<String>().into_bytes()
    };
    assert_linear("distinct headers", distinct, n);
    for (name, head, piece) in [
        ("dashes", multi, "--\n--"),
        ("boundaries", multi, "--b\n"),
        ("unclosed parts", multi, "--b\nContent-Type: multipart/mixed; boundary=c\n\n"),
        ("boundary prefixes", multi, "--bb\n\n"),
        ("bad base64 parts", multi, "--b\nContent-Transfer-Encoding: base64\n\n!!\n"),
        ("no boundary", "Content-Type: multipart/mixed\n\n", "--a\n--b c\n"),
        ("encoded words", "Subject: ", "=?utf-8?Q?a?= "),
        ("half encoded words", "Subject: ", "=?utf-8?B?"),
        ("marks", "Subject: ", "=?"),
        ("folds", "Subject: x", "\n x"),
        ("one line", "Subject: x", "y"),
        ("addresses", "To: ", "a@b,"),
        ("quotes", "To: ", "\"\\("),
        ("ids", "References: ", "<"),
        ("ids without ends", "References: x ", "<a "),
        ("parameters", "Content-Type: text/plain; ", "a*0*=x; "),
        ("from lines", "", "From a@b Sat May  1 10:20:30 2004\n"),
        ("from messages", "", "From a@b Sat May  1 10:20:30 2004\n\n"),
        ("quoted from lines", "Subject: x\n\n", ">From >"),
        ("lengths", "", "From a@b Sat May  1 10:20:30 2004\nContent-Length: 9\n\n"),
        ("no lines at all", "", "From "),
        ("NULs", "Subject: x\n\n", "\0\0\0\0"),
    ] {
        assert_linear(name, repeated(head, piece), 4 * n);
    }
}

#[test]
fn parts_nested_too_deeply_are_left_out_and_said() {
    let mut text = String::new();
    for n in 0..100_000 {
        text += &format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n");
    }
    text += "\ntoo deep\n";
    let document = parse_eml(text.as_bytes()).unwrap();
    assert_eq!(self::text(&document, 2), Some(""));
    assert_eq!(
        document.warnings,
        ["multipart not closed", "1 part left out, too many or too deep"]
    );
}

#[test]
fn headers_and_parts_beyond_all_reason_are_left_out_and_said() {
    let text = b"A: b\n c\n".repeat(50_001);
    let document = parse_eml(&text).unwrap();
    assert_eq!(document.warnings, ["1 header left out"]);
    let mut text = b"Content-Type: multipart/mixed; boundary=b\n\n".to_vec();
    text.extend(b"--b\n\nx\n".repeat(100_001));
    text.extend(b"--b--\n");
    let document = parse_eml(&text).unwrap();
    assert_eq!(self::text(&document, 2).map(str::len), Some(200_000 - 1));
    assert_eq!(document.warnings, ["1 part left out, too many or too deep"]);
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_are_not_followed_and_nothing_in_a_maildir_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    for name in ["box/cur", "box/tmp", "box/.Sent/new", "box/.Sent/tmp", "other/new"] {
        fs::create_dir_all(path.join(name)).unwrap();
        fs::write(path.join(name).join("1"), "Subject: x\nTo: y\n\nx\n").unwrap();
    }
    fs::write(path.join("box/dovecot.index"), "x").unwrap();
    fs::write(path.join("box/more.mbox"), mailbox(1, 10)).unwrap();
    std::os::unix::fs::symlink(path, path.join("other/loop")).unwrap();
    let inputs = open(path);
    let found: Vec<String> =
        inputs.files().iter().map(|file| relative(&file.path, path)).collect();
    assert_eq!(found, ["box/cur/1", "box/.Sent/new/1", "other/new/1"]);
    assert_eq!(inputs.format_name(), "maildir, eml");
    let problems: Vec<_> = inputs
        .problems()
        .iter()
        .map(|problem| (relative(Path::new(&problem.file), path), &problem.reason[..]))
        .collect();
    assert_eq!(
        problems,
        [
            ("box/more.mbox".to_owned(), "a file beside the messages of a Maildir"),
            ("other/loop".to_owned(), "a link to a directory that it is in"),
        ]
    );
}

#[test]
fn a_character_reference_to_nul_leaves_no_nul() {
    let document = parse_eml(b"Content-Type: text/html\n\na&#0;b").unwrap();
    assert_eq!(text(&document, 2), Some("a\u{fffd}b"));
    assert_eq!(document.warnings, ["1 NUL byte replaced"]);
}

/// Bytes that look like mail in pieces.
fn mailish() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        proptest::sample::select(vec![
            &b"\n"[..],
            b"\r\n",
            b"\n\n",
            b" ",
            b"From a@b Sat May  1 10:20:30 2004\n",
            b">From ",
            b"Subject: ",
            b"To: \"a, b\" <c@d>, (e",
            b"References: <a> b <",
            b"Content-Type: multipart/alternative; boundary=\"b\"\n",
            b"Content-Type: multipart/mixed; boundary=b",
            b"Content-Type: text/html; charset=utf-7\n",
            b"Content-Type: text/plain; charset*0*=iso-2022-jp''x; charset=utf-16\n",
            b"Content-Type: message/rfc822\n",
            b"Content-Transfer-Encoding: base64\n",
            b"Content-Transfer-Encoding: quoted-printable\n",
            b"Content-Length: 20\n",
            b"Date: Sat, 1 May 2004 10:20:30 +0000",
            b"--b\n",
            b"--b--\n",
            b"=?utf-8?B?w7w=?=",
            b"=?gb2312?Q?=C4=E3",
            b"<td>&eacute;&#0;<!--",
            b"<script>",
            b"=3D=",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_give_a_document_or_an_error(bytes in mailish()) {
        if let Ok(document) = parse_eml(&bytes) {
            if let Value::Json(tape) = &document.values[0] {
                prop_assert!(json(tape).is_object());
            }
            for value in &document.values {
                if let Value::Text(text) = value {
                    prop_assert!(!text.contains('\0'));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_split_into_items_that_ascend_and_lose_nothing(bytes in mailish()) {
        let mut at = 0;
        let blank = |bytes: &[u8]| bytes.iter().all(|byte| b"\r\n".contains(byte));
        while let Some((begin, end)) = mbox::Mbox.split(&bytes, at) {
            prop_assert!(at <= begin && begin < end && end <= bytes.len());
            prop_assert!(blank(&bytes[at..begin]));
            let mut document = Document::default();
            let _ = mbox::Mbox.parse(&bytes[begin..end], &ALL_FIELDS, &mut document);
            at = end;
        }
        prop_assert!(blank(&bytes[at..]));
    }
}
