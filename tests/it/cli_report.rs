//! `ginmill report`, `--report`, completions and the man page.

use std::fs;

use serde_json::Value;

use crate::cli_support::{archive, archived, ask, fixture, refused};
use crate::corpus::{fixture_messages, write_mbox};
use crate::support::{TestDir, program};

/// Whether a value has the shape that a schema asks for; the first place where not.
/// Knows the words that our schema uses and refuses others.
fn validate(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    for (word, wanted) in schema.as_object().unwrap() {
        let fine = match word.as_str() {
            "$schema" | "title" | "description" => true,
            "const" => value == wanted,
            "minimum" => value.as_f64().is_none_or(|v| v >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|v| v <= wanted.as_f64().unwrap()),
            "type" => {
                let types = match wanted {
                    Value::Array(types) => types.as_slice(),
                    one => std::slice::from_ref(one),
                };
                types.iter().any(|name| match name.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    other => panic!("the schema has a type {other}"),
                })
            }
            "required" => wanted
                .as_array()
                .unwrap()
                .iter()
                .all(|name| value.get(name.as_str().unwrap()).is_some()),
            "additionalProperties" => value
                .as_object()
                .unwrap()
                .keys()
                .all(|name| schema["properties"].get(name).is_some()),
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        validate(member, schema, &format!("{place}/{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (at, item) in value.as_array().unwrap().iter().enumerate() {
                    validate(item, wanted, &format!("{place}/{at}"))?;
                }
                true
            }
            "prefixItems" => {
                for (at, schema) in wanted.as_array().unwrap().iter().enumerate() {
                    validate(&value[at], schema, &format!("{place}/{at}"))?;
                }
                true
            }
            "minItems" => {
                value.as_array().unwrap().len() as u64 >= wanted.as_u64().unwrap()
            }
            "maxItems" => {
                value.as_array().unwrap().len() as u64 <= wanted.as_u64().unwrap()
            }
            other => panic!("the schema has a word {other}"),
        };
        if !fine {
            return Err(format!("{place}: {word} {wanted}: {value}"));
        }
    }
    Ok(())
}

fn schema() -> Value {
    let text = fs::read_to_string(fixture("report.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn json_of(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn reports_of_builds_have_the_documented_shape() {
    let schema = schema();
    validate(&json_of(&archived("report.json")), &schema, "").unwrap();

    // A build that spills, in a limited space, with the leader alone.
    let dir = TestDir::new();
    write_mbox(&fixture_messages(), 24 << 20, 7, &dir.path("in.mbox"));
    let mut command = program();
    command.current_dir(dir.path("")).args(["index", "in.mbox", "-o", "out.gin"]);
    command.args(["-j", "0", "-m", "16MB", "--temp-limit", "1GB"]);
    assert!(command.status().unwrap().success());
    let report = json_of(dir.path("out.gin/report.json").to_str().unwrap());
    assert_ne!(report["temp"]["written"], 0);
    assert_eq!(report["temp"]["limit"], 1 << 30);
    validate(&report, &schema, "").unwrap();

    let mut wrong = report.clone();
    wrong["temp"]["files"] = "many".into();
    assert!(
        validate(&wrong, &schema, "").unwrap_err().starts_with("/temp/files: type")
    );
    let mut wrong = report;
    wrong["surprise"] = 1.into();
    assert!(
        validate(&wrong, &schema, "").unwrap_err().contains("additionalProperties")
    );
}

#[test]
fn a_report_is_printed_in_every_form() {
    let dir = archive().to_str().unwrap();
    let text = ask(&["report", dir]).done();
    assert!(text.starts_with("Build\n\nwhat "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for index in ["headers_jsonb_path", "body_tsvector"] {
        assert!(text.contains(index), "{text}");
    }
    let json = fs::read_to_string(archived("report.json")).unwrap();
    assert_eq!(ask(&["report", dir, "--format", "json"]).done(), json);
    assert_eq!(ask(&["report", dir, "--json"]).done(), json);
    assert_eq!(ask(&["report", &archived("report.json"), "--json"]).done(), json);
    let html = ask(&["report", dir, "--format", "html"]).done();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("body_trgm"));
    let csv = ask(&["report", dir, "--format", "csv"]).done();
    assert!(
        csv.starts_with("report,row,what,value,unit\r\nbuild,1,built by,"),
        "{csv}"
    );
    let one = ask(&["report", dir, "--format", "csv", "--table", "phases"]).done();
    assert!(one.lines().skip(1).all(|line| line.starts_with("phases,")), "{one}");
    let one = ask(&["report", dir, "--table", "memory"]).done();
    assert!(one.starts_with("Memory\n"), "{one}");
}

#[test]
fn what_is_no_report_is_refused() {
    let mail = fixture("mail");
    let mail = mail.to_str().unwrap();
    for (arguments, words) in [
        (vec!["report", mail], "cannot read the report"),
        (vec!["report", &archived("documents")], "expected a ginmill report"),
        (vec!["report", mail, "--format", "pdf"], "html"),
        (vec!["report", mail, "--table", "x"], "phases"),
    ] {
        let sentence = refused(&arguments);
        assert!(sentence.contains(words), "{sentence}");
    }
    let archive = archive().to_str().unwrap();
    let sentence =
        refused(&["report", archive, "--table", "memory", "--format", "html"]);
    assert!(sentence.contains("--table works with text and csv"), "{sentence}");
}

#[test]
fn index_writes_reports_by_extension_and_refuses_others_before_the_work() {
    let dir = TestDir::new();
    let mail = fixture("mail/mboxo.mbox");
    let index = |reports: &[&str]| {
        let mut command = program();
        command.current_dir(dir.path("")).arg("index").arg(&mail);
        command.args(["-o", "out.gin", "--force", "--json"]);
        reports.iter().for_each(|report| {
            command.args(["--report", report]);
        });
        command.output().unwrap()
    };
    let output = index(&["r.html", "r.csv", "r.txt", "r.json"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(dir.path("r.json")).unwrap(), output.stdout);
    assert!(fs::read_to_string(dir.path("r.html")).unwrap().starts_with("<!DOCTYPE"));
    assert!(fs::read_to_string(dir.path("r.csv")).unwrap().starts_with("report,"));
    assert!(fs::read_to_string(dir.path("r.txt")).unwrap().starts_with("Build\n"));
    fs::remove_dir_all(dir.path("out.gin")).unwrap();
    for (report, words) in [("r.pdf", ".html"), ("no/r.html", "no directory no")] {
        let output = index(&[report]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!dir.path("out.gin").exists());
    }
}

#[test]
fn progress_is_json_lines_on_stderr_when_asked_for() {
    let dir = TestDir::new();
    write_mbox(&fixture_messages(), 8 << 20, 7, &dir.path("in.mbox"));
    let mut command = program();
    command.current_dir(dir.path("")).args(["index", "in.mbox", "-o", "out.gin"]);
    command.args(["--progress", "json"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    // the last line is about messages with problems
    let lines: Vec<Value> = said
        .lines()
        .filter(|line| !line.starts_with("ginmill: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().any(|line| line["phase"] == "scanning"), "{said}");
    for line in &lines {
        assert_eq!(line["memory_limit"], 256 << 20, "{line}");
        assert!(line["done"].as_u64() <= line["total"].as_u64(), "{line}");
    }
}

#[test]
fn completions_and_man_pages_name_every_verb() {
    let verbs =
        ["index", "search", "show", "report", "check", "inspect", "keys", "query"];
    for shell in ["bash", "zsh", "fish"] {
        let script = ask(&["completions", shell]).done();
        assert!(verbs.iter().all(|verb| script.contains(verb)), "{shell}");
    }
    let page = ask(&["man"]).done();
    assert!(page.contains(".TH ginmill 1"), "{page}");
    assert!(verbs.iter().all(|verb| page.contains(verb)), "{page}");
    assert!(ask(&["man", "search"]).done().contains("ginmill-search"));
    assert!(refused(&["man", "fly"]).contains("there is no command fly"));
    let help = ask(&["index", "--help"]).done();
    for words in ["gin_trgm_ops", "maildir", "body_trgm=gin_trgm_ops(body)", "16MB"] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(ask(&["--version"]).done().starts_with("ginmill "));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = program();
    command.args(["inspect", &archived("body_trgm.gin"), "entries"]);
    // a pipe whose other end is closed at once
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(std::process::Stdio::piped());
    let output = output.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"");
}
