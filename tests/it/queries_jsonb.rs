//! jsonpath beside a live PostgreSQL 18: what is accepted and how it prints, what it
//! finds, its regular expressions, and how many rows an index hands on for a query.
//!
//! Everything is made from a seed, in batches. `GINMILL_LONG=1` compares ten times as
//! many.

use std::collections::BTreeSet;

use ginmill::opclass::jsonb::{self, JsonPath, JsonbOps, JsonbPathOps};
use ginmill::opclass::{Argument, KeyExpr, KeyQuery, OpClass, SearchMode};

use crate::jsonb_random::Random;
use crate::keys_jsonb::{BATCH, ask, batches, keys};
use crate::support;

#[test]
fn the_same_texts_are_jsonpaths_and_print_alike() {
    let Some(mut client) = support::oracle() else { return };
    let mut random = Random::new(4);
    let mut accepted = 0;
    for _ in 0..batches(20_000) {
        let texts: Vec<String> = (0..BATCH).map(|_| random.path_or_not()).collect();
        // An input function that fails hard needs a block of its own.
        let rows = ask(
            &mut client,
            "SELECT CASE WHEN pg_input_is_valid(t, 'jsonpath') THEN t::jsonpath::text END
             FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n) ORDER BY n",
            &[&texts],
        );
        for (row, text) in rows.iter().zip(&texts) {
            let theirs: Option<String> = row.get(0);
            let ours = JsonPath::parse(text);
            let shown = ours.as_ref().ok().map(ToString::to_string);
            assert_eq!(shown, theirs, "{text:?}: {ours:?}");
            accepted += usize::from(theirs.is_some());
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

/// Whether the index would hand on an item with these keys.
fn is_candidate(query: &KeyQuery, keys: &BTreeSet<Vec<u8>>) -> bool {
    fn holds(expr: &KeyExpr, keys: &BTreeSet<Vec<u8>>) -> bool {
        match expr {
            KeyExpr::Key(key) => keys.contains(key),
            KeyExpr::And(parts) => parts.iter().all(|part| holds(part, keys)),
            KeyExpr::Or(parts) => parts.iter().any(|part| holds(part, keys)),
            KeyExpr::Maybe => true,
            other => panic!("no jsonb query has {other:?}"),
        }
    }
    query.mode == SearchMode::All || holds(&query.expr, keys)
}

const CLASSES: [&dyn OpClass; 2] = [&JsonbOps, &JsonbPathOps];

fn ours(class: &dyn OpClass, operator: &str, argument: &str) -> KeyQuery {
    class.query(None, operator, &Argument::Text(argument.to_owned())).unwrap()
}

#[test]
fn jsonpaths_find_the_same_and_their_keys_lose_nothing() {
    let Some(mut client) = support::oracle() else { return };
    // Some errors in a path are raised, not suppressed.
    let function =
        "CREATE FUNCTION pg_temp.run(doc jsonb, path jsonpath) RETURNS text AS $$
            BEGIN
                RETURN coalesce((doc @? path)::text, '-') || ' '
                    || coalesce((doc @@ path)::text, '-');
            EXCEPTION WHEN OTHERS THEN RETURN 'error ' || sqlstate;
            END $$ LANGUAGE plpgsql";
    client.batch_execute(function).unwrap();
    let mut random = Random::new(5);
    let mut true_ones = 0;
    for _ in 0..batches(20_000) {
        let mut pairs = [Vec::new(), Vec::new()];
        for _ in 0..BATCH {
            pairs[0].push(random.small_document());
            pairs[1].push(random.path());
        }
        let rows = ask(
            &mut client,
            "SELECT pg_temp.run(d::jsonb, p::jsonpath)
             FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(d, p, n)
             ORDER BY n",
            &[&pairs[0], &pairs[1]],
        );
        for (at, row) in rows.iter().enumerate() {
            let (text, path_text) = (&pairs[0][at], &pairs[1][at]);
            let theirs: String = row.get(0);
            let json = jsonb::parse(text).unwrap();
            let path = JsonPath::parse(path_text).unwrap();
            let (exists, matches) = (path.exists(&json), path.matches(&json));
            if theirs.starts_with("error") {
                continue;
            }
            let shown = |value: Option<bool>| {
                value.map_or("-".to_owned(), |value| value.to_string())
            };
            let found = format!("{} {}", shown(exists), shown(matches));
            assert_eq!(found, theirs, "{text} | {path_text}");
            for class in CLASSES {
                let keys = keys(class, text);
                for (operator, result) in [("@?", exists), ("@@", matches)] {
                    if result == Some(true) {
                        let query = ours(class, operator, path_text);
                        assert!(is_candidate(&query, &keys), "{text} | {path_text}");
                        true_ones += 1;
                    }
                }
            }
        }
    }
    assert!(true_ones > 5_000, "{true_ones}");
}

#[test]
fn queries_ask_an_index_for_as_many_rows_as_the_server_does() {
    let Some(mut client) = support::oracle() else { return };
    let mut random = Random::new(6);
    let table = "CREATE TEMP TABLE candidates_jsonb (n int, doc jsonb);
         SET enable_seqscan = off";
    client.batch_execute(table).unwrap();
    let texts: Vec<String> = (0..BATCH).map(|_| random.small_document()).collect();
    client
        .execute(
            "INSERT INTO candidates_jsonb SELECT n, t::jsonb
             FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n)",
            &[&texts],
        )
        .unwrap();
    let mut by_keys = 0;
    for class in CLASSES {
        let create = format!(
            "DROP INDEX IF EXISTS candidates; CREATE INDEX candidates ON candidates_jsonb
             USING gin (doc {})",
            class.name()
        );
        client.batch_execute(&create).unwrap();
        let keys: Vec<_> = texts.iter().map(|text| keys(class, text)).collect();
        for _ in 0..batches(2_000) * 100 {
            let (operator, kind, argument) = match random.below(4) {
                0 => ("@>", "jsonb", random.small_document()),
                1 => ("@?", "jsonpath", random.path()),
                _ => ("@@", "jsonpath", random.predicate_path()),
            };
            // Where the server's index scan loses rows, ours asks for others: negation,
            // literals with something behind them, strict paths to the root itself.
            let loses = ["!", ").", ")[", ") ?", "$ ==", "@ ==", "== $", "== @"];
            let filtered = ["$ ?", "@ ?"].iter().any(|part| argument.contains(part));
            if filtered && argument.starts_with("strict") {
                continue;
            }
            if loses.iter().any(|part| argument.contains(part)) {
                continue;
            }
            let query = ours(class, operator, &argument);
            let candidates =
                keys.iter().filter(|keys| is_candidate(&query, keys)).count();
            let explain = format!(
                "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM
                 candidates_jsonb WHERE doc {operator} $q${argument}$q$::{kind}"
            );
            let Ok(plan) = client.query(&explain, &[]) else {
                continue; // an error that is raised, not suppressed
            };
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            let number = |before: &str| -> usize {
                let line = plan.iter().find_map(|line| line.split_once(before));
                let digits = line.map_or("0", |(_, rest)| {
                    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap()
                });
                digits.parse().unwrap()
            };
            assert!(
                plan.iter().any(|line| line.contains("Bitmap Index Scan")),
                "{plan:?}"
            );
            let theirs =
                number("actual rows=") + number("Rows Removed by Index Recheck: ");
            assert_eq!(candidates, theirs, "{} {operator} {argument}", class.name());
            by_keys += usize::from(query.mode == SearchMode::Default);
        }
    }
    assert!(by_keys > 100, "{by_keys}");
}

#[test]
fn regular_expressions_match_the_same() {
    let Some(mut client) = support::oracle() else { return };
    // A pattern that is refused is refused as an error of the path.
    let function = "CREATE FUNCTION pg_temp.likes(t text, path text) RETURNS text AS $$
            BEGIN
                RETURN to_jsonb(t) @@ path::jsonpath;
            EXCEPTION WHEN OTHERS THEN RETURN 'refused';
            END $$ LANGUAGE plpgsql";
    client.batch_execute(function).unwrap();
    let mut random = Random::new(7);
    let (mut matching, mut refused) = (0, 0);
    for _ in 0..batches(20_000) {
        let mut pairs = [Vec::new(), Vec::new()];
        for _ in 0..BATCH {
            pairs[0].push(random.line());
            pairs[1].push(random.like_regex());
        }
        let rows = ask(
            &mut client,
            "SELECT pg_temp.likes(t, p)
             FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(t, p, n)
             ORDER BY n",
            &[&pairs[0], &pairs[1]],
        );
        for (at, row) in rows.iter().enumerate() {
            let (text, path) = (&pairs[0][at], &pairs[1][at]);
            let theirs: String = row.get(0);
            // The one difference: digits of other scripts are part of words here.
            let words = ["\\\\y", "\\\\m", "\\\\M", "[[:<:]]"];
            if text.contains('٣') && words.iter().any(|word| path.contains(word)) {
                continue;
            }
            let ours = match JsonPath::parse(path) {
                Ok(path) => {
                    let quoted = serde_json::to_string(text).unwrap();
                    let json = jsonb::parse(&quoted).unwrap();
                    path.matches(&json).unwrap().to_string()
                }
                // What only a backtracking engine can do.
                Err(error) if error.to_string().contains("not supported") => continue,
                Err(_) => "refused".to_owned(),
            };
            assert_eq!(ours, theirs, "{text:?} {path}");
            matching += usize::from(ours == "true");
            refused += usize::from(ours == "refused");
        }
    }
    assert!(matching > 1_000 && refused > 1_000, "{matching} {refused}");
}
