//! `ginmill keys` and `ginmill query`: PostgreSQL's own answers, and the form of ours.

use std::fs;

use serde_json::{Value, json};

use crate::cli_support::{ask, ask_with, fixture, refused};

/// The lines of a file of `fixtures/keys` with the text that each is about.
fn vectors(name: &str) -> Vec<(String, Value)> {
    let text = fs::read_to_string(fixture("keys").join(name)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let vectors: Vec<_> = lines
        .map(|line| {
            let given = match (&line["in"], &line["gen"]) {
                (Value::String(text), _) => text.clone(),
                (_, made) => {
                    let part = |name: &str| made[name].as_str().unwrap_or_default();
                    let count = made["count"].as_u64().unwrap() as usize;
                    part("prefix").to_owned()
                        + &part("unit").repeat(count)
                        + part("suffix")
                }
            };
            (given, line)
        })
        .collect();
    assert!(vectors.len() > 50, "{name} has only {} lines", vectors.len());
    vectors
}

/// The answers for the texts of vectors, one each.
fn answers(arguments: &[&str], vectors: &[(String, Value)]) -> Vec<Value> {
    let lines = vectors.iter().map(|(given, _)| json!(given).to_string() + "\n");
    let input: String = lines.collect();
    let said = ask_with(arguments, input.as_bytes());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}");
    let answers = said.lines();
    assert_eq!(answers.len(), vectors.len());
    answers
}

/// Compares answers with what PostgreSQL has for the same line.
fn compare(arguments: &[&str], file: &str, same: impl Fn(&Value, &Value) -> bool) {
    let vectors = vectors(file);
    let answers = answers(arguments, &vectors);
    for ((given, expected), answer) in vectors.iter().zip(&answers) {
        let refused = answer.get("error").is_some();
        assert_eq!(refused, expected.get("sqlstate").is_some(), "{given:?}: {answer}");
        assert!(
            refused || same(expected, answer),
            "{given:?}: {answer}, not {expected}"
        );
    }
}

/// Whether the category of an item without keys is told.
fn category_is_told(expected: &Value, answer: &Value) -> bool {
    let wanted = expected["placeholder"].as_str().map(|name| name.replace("_item", ""));
    answer["category"].as_str() == wanted.as_deref()
}

#[test]
fn lexemes_are_those_of_to_tsvector() {
    for config in ["english", "simple"] {
        let arguments = ["keys", "tsvector_ops", "--config", config, "--json-lines"];
        compare(
            &arguments,
            &format!("to_tsvector_{config}.jsonl"),
            |expected, answer| {
                let lexemes = expected["lexemes"].as_array().unwrap();
                let mut lexemes: Vec<&str> =
                    lexemes.iter().map(|lexeme| lexeme[0].as_str().unwrap()).collect();
                // a tsvector is ordered by length first, an index is not
                lexemes.sort_unstable();
                answer["keys"] == json!(lexemes)
            },
        );
    }
}

#[test]
fn tokens_are_those_of_ts_parse() {
    let arguments = ["keys", "tsvector_ops", "--debug", "--json-lines"];
    compare(&arguments, "ts_parse.jsonl", |expected, answer| {
        let tokens = answer["tokens"].as_array().unwrap();
        let shown =
            |token: &Value, expected: &Value| match expected["len_bytes"].as_u64() {
                Some(len) => token["token"].as_str().unwrap().len() as u64 == len,
                None => token["token"] == *expected,
            };
        let given = match (&expected["tokens"], &expected["tokens_head"]) {
            (Value::Array(all), _) if all.len() != tokens.len() => return false,
            (Value::Array(all), _) => all,
            (_, head) => head.as_array().unwrap(),
        };
        given.iter().zip(tokens).all(|(expected, token)| {
            token["id"] == expected[0]
                && token["type"] == expected[1]
                && shown(token, &expected[2])
        })
    });
}

#[test]
fn trigrams_are_those_of_show_trgm() {
    let arguments = ["keys", "gin_trgm_ops", "--json-lines"];
    compare(&arguments, "show_trgm.jsonl", |expected, answer| {
        // show_trgm sorts by another rule than the index
        let sorted = |list: &Value| {
            let mut list = list.as_array().unwrap().clone();
            list.sort_by_key(Value::to_string);
            list
        };
        answer["keys"] == expected["keys"]
            && sorted(&answer["trigrams"]) == sorted(&expected["show_trgm"])
            && category_is_told(expected, answer)
    });
}

#[test]
fn json_keys_are_those_on_postgresqls_pages() {
    compare(
        &["keys", "jsonb_ops", "--json-lines"],
        "jsonb_ops_keys.jsonl",
        |expected, answer| {
            let keys = answer["keys"].as_array().unwrap();
            let hex: Vec<&str> =
                keys.iter().map(|key| key["hex"].as_str().unwrap()).collect();
            json!(hex) == expected["keys_hex"] && category_is_told(expected, answer)
        },
    );
    let arguments = ["keys", "jsonb_path_ops", "--json-lines"];
    compare(&arguments, "jsonb_path_ops_keys.jsonl", |expected, answer| {
        let unsigned = expected["keys_u32"].as_array().unwrap().iter();
        let signed: Vec<i32> =
            unsigned.map(|key| (key.as_u64().unwrap() as u32).cast_signed()).collect();
        answer["keys"] == json!(signed) && category_is_told(expected, answer)
    });
}

#[test]
fn patterns_ask_for_the_trigrams_that_postgresql_asks_for() {
    let text = fs::read_to_string(fixture("keys/like_trgm.jsonl")).unwrap();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let input: String =
        lines.iter().map(|line| format!("{}\n", line["like"])).collect();
    let arguments = ["query", "gin_trgm_ops", "--operator", "LIKE", "--json-lines"];
    let answers = ask_with(&arguments, input.as_bytes()).lines();
    assert_eq!(answers.len(), lines.len());
    for (line, answer) in lines.iter().zip(&answers) {
        assert_eq!(answer["keys"], line["keys"], "{line}");
        let all = line["keys"].as_array().unwrap().is_empty();
        assert_eq!(answer["mode"], if all { "all" } else { "default" }, "{line}");
        assert_eq!(answer["recheck"], json!(true));
    }
}

#[test]
fn queries_are_those_of_to_tsquery_and_its_sisters() {
    let text = fs::read_to_string(fixture("keys/tsquery.jsonl")).unwrap();
    let lines: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut compared = 0;
    for function in
        ["to_tsquery", "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery"]
    {
        for config in ["english", "simple"] {
            let of = |line: &&Value| {
                line["fn"] == function
                    && line["config"] == config
                    && line["in"].is_string()
            };
            let lines: Vec<&Value> = lines.iter().filter(of).collect();
            let input: String =
                lines.iter().map(|line| format!("{}\n", line["in"])).collect();
            let arguments = [
                "query",
                "tsvector_ops",
                "--json-lines",
                "--function",
                function,
                "--config",
                config,
            ];
            let answers = ask_with(&arguments, input.as_bytes()).lines();
            assert_eq!(answers.len(), lines.len());
            for (line, answer) in lines.iter().zip(&answers) {
                let refused = line.get("sqlstate").is_some();
                assert_eq!(answer.get("error").is_some(), refused, "{line}: {answer}");
                assert!(
                    refused || answer["tsquery"] == line["out"],
                    "{line}: {answer}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "only {compared}");
}

#[test]
fn answers_look_like_this() {
    for (arguments, line, answer) in [
        (
            "keys jsonb_ops --json-lines",
            r#""{\"a\": [1.50, true, null]}""#,
            r#"{"keys":[{"kind":"key","text":"a","hashed":false,"hex":"0161"},{"kind":"null","text":"null","hashed":false,"hex":"02"},{"kind":"bool","text":"true","hashed":false,"hex":"0374"},{"kind":"number","text":"1.5","hashed":false,"hex":"04312e35"}]}"#,
        ),
        (
            "keys gin_trgm_ops",
            "Fo é",
            r#"{"keys":[2105446,2123375,6713120,15113044,15215688],"trigrams":["0xe69b54","0xe82c48","  f"," fo","fo "]}"#,
        ),
        ("keys tsvector_ops --json-lines", "null", r#"{"keys":[],"category":"null"}"#),
        ("keys tsvector_ops", "the", r#"{"keys":[],"category":"empty"}"#),
        (
            "keys tsvector_ops --debug",
            "of x",
            r#"{"keys":["x"],"tokens":[{"type":"asciiword","id":1,"token":"of","dictionary":"english_stem","lexemes":[]},{"type":"blank","id":12,"token":" ","dictionary":null,"lexemes":[]},{"type":"asciiword","id":1,"token":"x","dictionary":"english_stem","lexemes":["x"]}]}"#,
        ),
        (
            "keys array_ops --json-lines",
            r#"["b",["a","b"],null]"#,
            r#"{"keys":["a","b",null]}"#,
        ),
        ("keys array_ops --type int", "[2,-1]", r#"{"keys":[-1,2]}"#),
        (
            "keys array_ops --type int",
            "[2147483648]",
            r#"{"error":"value \"2147483648\" is out of range for type integer"}"#,
        ),
        ("keys array_ops --type bigint", "[2147483648]", r#"{"keys":[2147483648]}"#),
        (
            "keys array_ops --json-lines",
            "\"[1]\"",
            r#"{"error":"expected a string or null, found a number"}"#,
        ),
        (
            "keys array_ops --json-lines",
            "{}",
            r#"{"error":"expected a JSON array, found an object"}"#,
        ),
        (
            "keys tsvector_ops --json-lines",
            "[1]",
            r#"{"error":"expected a JSON string, found an array"}"#,
        ),
        (
            "query tsvector_ops --function to_tsquery",
            "Cats & !dog:*",
            r#"{"tsquery":"'cat' & !'dog':*","keys":["cat"],"prefixes":["dog"],"mode":"default","recheck":false,"expr":{"and":[{"key":"cat"},{"not":{"prefix":"dog"}}]}}"#,
        ),
        (
            "query array_ops --type int --operator <@ --json-lines",
            "[2,1]",
            r#"{"keys":[1,2],"mode":"include_empty","recheck":true,"expr":{"or":[{"key":2},{"key":1}]}}"#,
        ),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let said = ask_with(&arguments, format!("{line}\n").as_bytes());
        assert_eq!(
            (said.code, said.out.trim_end()),
            (Some(0), answer),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_refused_value_does_not_stop_the_next_one() {
    let input = b"\"{\"\n\"{}\"\nno json\n\xff\n\"\\\"\\\\u0000\\\"\"\n\"[1e400000]\"\n\"\\\"a\\\"\"";
    let said = ask_with(&["keys", "jsonb_ops", "--json-lines"], input);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let refused: Vec<bool> =
        said.lines().iter().map(|answer| answer.get("error").is_some()).collect();
    assert_eq!(refused, [true, false, true, true, true, true, false], "{}", said.out);
    let deep = "[".repeat(1_000_000);
    let said = ask_with(&["keys", "jsonb_ops"], deep.as_bytes());
    assert_eq!(said.code, Some(0));
    assert!(said.out.starts_with("{\"error\":"), "{}", said.out);
}

#[test]
fn an_answer_comes_before_the_next_question() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let mut command = crate::support::program();
    command.args(["keys", "tsvector_ops"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert_eq!(answer, format!("{{\"keys\":[\"{word}\"]}}"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn words_that_nobody_knows_are_refused_with_a_list() {
    for (arguments, words) in [
        ("keys hash_ops", "jsonb_path_ops"),
        ("keys tsvector_ops --config klingon", "english"),
        ("keys gin_trgm_ops --config english", "english"),
        ("keys gin_trgm_ops --debug", "--debug shows the tokens of tsvector_ops"),
        ("keys array_ops --type float", "bigint"),
        ("query gin_trgm_ops --operator @>", "ILIKE"),
        ("query jsonb_ops --function to_tsquery", "tsvector_ops"),
        ("query tsvector_ops --function tsquery_of", "phraseto_tsquery"),
        ("query tsvector_ops --config klingon", "english"),
        ("keys", "<OPCLASS>"),
        ("frobnicate", "frobnicate"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let sentence = refused(&arguments);
        assert!(sentence.contains(words), "{arguments:?}: {sentence}");
    }
    let said = ask(&["--json", "keys", "gin_trgm_ops", "--debug"]);
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(said.code, Some(2));
    assert!(error["error"].as_str().unwrap().starts_with("--debug shows"), "{error}");
}
