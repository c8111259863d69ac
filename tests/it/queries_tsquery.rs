//! Text search queries beside a live PostgreSQL 18: text form or error of the functions
//! that make one, and the truth of `@@`, on generated input.

use std::fmt::Write;

use ginmill::Error;
use ginmill::opclass::tsvector::tsquery::TsQuery;
use ginmill::opclass::tsvector::{Config, TsVector};
use ginmill::search::rank::rank_cd;

use crate::support;

/// A small generator, so that every run tests the same input.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Pieces that have a meaning somewhere.
const PIECES: &[&str] = &[
    "cat",
    "cats",
    "Dog",
    "the",
    "of",
    "a",
    "running",
    "foo-bar",
    "a-foo",
    "don't",
    "or",
    "OR",
    "-",
    "!",
    "&",
    "|",
    "(",
    ")",
    "<->",
    "<2>",
    "<0>",
    "<16384>",
    "<16385>",
    "<-",
    "<",
    ">",
    ":",
    ":*",
    ":A",
    ":bD*",
    "'",
    "''",
    "\"",
    "\\",
    "\\\\",
    " ",
    " ",
    " ",
    "\t",
    "\u{3000}",
    "\u{a0}",
    "é",
    "ß",
    "www.example.com/x",
    "a@b.org",
    "-5",
    "1.5e3",
    "<b>",
    "&amp;",
    "_",
    "x_y",
    "日本",
    "\u{301}",
    "²",
    "/usr/lib",
    "or\u{301}",
    "!!",
    "'fat cat'",
    "\"sat on\"",
    "\"the mat",
    ":",
    ",",
    ".",
    "http://x",
    "fat&rat",
    "(a|b)",
];

fn soup(random: &mut Random) -> String {
    let count = random.below(9);
    (0..count).map(|_| random.pick(PIECES)).collect()
}

/// A query that is well formed more often than not.
fn well_formed(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(3) == 0 {
        let word = random.pick(&["cat", "dog", "the", "bird", "ca", "fish", "of", "x"]);
        let mark = random.pick(&["", "", "", ":*", ":A", ":BC", ":D*"]);
        return format!("{word}{mark}");
    }
    let left = well_formed(random, depth - 1);
    let operator =
        random.pick(&["&", "|", "<->", "<->", "<2>", "<0>", "<3>", "!", "&", "|"]);
    if operator == "!" {
        return format!("!({left})");
    }
    let right = well_formed(random, depth - 1);
    format!("({left}) {operator} ({right})")
}

fn shown(result: Result<TsQuery, Error>) -> String {
    match result {
        Ok(query) => {
            format!("{query} / {} / {}", query.numnode(), query.querytree())
        }
        Err(error) => error.to_string(),
    }
}

type Function = fn(&Config, &str) -> ginmill::Result<TsQuery>;

const FUNCTIONS: [(&str, Function); 5] = [
    ("tsquery", |_, text| TsQuery::parse(text)),
    ("to_tsquery", TsQuery::to_tsquery),
    ("plainto_tsquery", TsQuery::plainto_tsquery),
    ("phraseto_tsquery", TsQuery::phraseto_tsquery),
    ("websearch_to_tsquery", TsQuery::websearch_to_tsquery),
];

/// How many inputs are tested: more with `GINMILL_LONG=1`.
fn rounds(usually: usize) -> usize {
    let long = std::env::var("GINMILL_LONG").is_ok_and(|long| long == "1");
    if long { usually * 10 } else { usually }
}

#[test]
fn every_function_gives_the_servers_text_or_error() {
    let Some(mut server) = support::oracle() else { return };
    server
        .batch_execute(
            "CREATE FUNCTION pg_temp.try(f text, c regconfig, t text) RETURNS text
             LANGUAGE plpgsql AS $$
             DECLARE q tsquery;
             BEGIN
               CASE f
                 WHEN 'tsquery' THEN q := t::tsquery;
                 WHEN 'to_tsquery' THEN q := to_tsquery(c, t);
                 WHEN 'plainto_tsquery' THEN q := plainto_tsquery(c, t);
                 WHEN 'phraseto_tsquery' THEN q := phraseto_tsquery(c, t);
                 WHEN 'websearch_to_tsquery' THEN q := websearch_to_tsquery(c, t);
               END CASE;
               RETURN q::text || ' / ' || numnode(q) || ' / ' || querytree(q);
             EXCEPTION WHEN others THEN RETURN SQLERRM;
             END $$;
             SET client_min_messages = error",
        )
        .unwrap();
    let ask = server
        .prepare(
            "SELECT pg_temp.try(f, c::regconfig, t)
             FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
                  AS u(f, c, t, n) ORDER BY n",
        )
        .unwrap();
    let mut random = Random(0x5eed_0001);
    let mut left = rounds(20_000);
    let mut queries = 0;
    while left > 0 {
        let batch = left.min(2_000);
        left -= batch;
        let (mut functions, mut configs, mut texts) = (vec![], vec![], vec![]);
        let mut ours = Vec::new();
        for _ in 0..batch {
            let text = if random.below(3) == 0 {
                well_formed(&mut random, 3)
            } else {
                soup(&mut random)
            };
            let config = random.pick(&["english", "simple"]);
            let (name, function) = FUNCTIONS[random.below(FUNCTIONS.len())];
            ours.push(shown(function(Config::find(config).unwrap(), &text)));
            functions.push(name);
            configs.push(config);
            texts.push(text);
        }
        let theirs = server.query(&ask, &[&functions, &configs, &texts]).unwrap();
        assert_eq!(theirs.len(), batch);
        for (n, row) in theirs.iter().enumerate() {
            let theirs: &str = row.get(0);
            queries += usize::from(theirs.starts_with('\''));
            let call = format!("{}({}, {:?})", functions[n], configs[n], texts[n]);
            assert_eq!(ours[n], theirs, "{call}");
        }
    }
    assert!(queries > rounds(20_000) / 4, "only {queries} made a query");
}

fn a_vector(random: &mut Random) -> String {
    let mut text = String::new();
    for word in ["bird", "cat", "catalog", "dog", "fish", "x"] {
        if random.below(2) == 0 {
            continue;
        }
        write!(text, "{word}").unwrap();
        let positions = random.below(4);
        for n in 0..positions {
            let sign = if n == 0 { ':' } else { ',' };
            let position = 1 + random.below(7);
            let weight = random.pick(&["", "", "A", "B", "C"]);
            write!(text, "{sign}{position}{weight}").unwrap();
        }
        text.push(' ');
    }
    text
}

#[test]
fn a_vector_matches_a_query_where_the_server_says_so() {
    let Some(mut server) = support::oracle() else { return };
    let mut random = Random(0x5eed_0002);
    let vectors: Vec<String> = (0..300).map(|_| a_vector(&mut random)).collect();
    let parsed: Vec<TsVector> =
        vectors.iter().map(|text| TsVector::parse(text).unwrap()).collect();
    let ask = server
        .prepare(
            "SELECT q, array_agg(v::tsvector @@ q::tsquery ORDER BY m)
             FROM unnest($1::text[]) WITH ORDINALITY AS a(q, n),
                  unnest($2::text[]) WITH ORDINALITY AS b(v, m)
             GROUP BY q, n ORDER BY n",
        )
        .unwrap();
    let mut left = rounds(1_500);
    let mut matches = 0;
    while left > 0 {
        let batch = left.min(300);
        left -= batch;
        let queries: Vec<String> =
            (0..batch).map(|_| well_formed(&mut random, 4)).collect();
        let rows = server.query(&ask, &[&queries, &vectors]).unwrap();
        assert_eq!(rows.len(), batch);
        for (text, row) in queries.iter().zip(&rows) {
            let query = TsQuery::parse(text).unwrap();
            let theirs: Vec<bool> = row.get(1);
            assert_eq!(theirs.len(), parsed.len());
            for (n, theirs) in theirs.into_iter().enumerate() {
                matches += usize::from(theirs);
                let call = format!("'{}'::tsvector @@ '{text}'", vectors[n]);
                assert_eq!(query.matches(&parsed[n]), theirs, "{call}");
            }
        }
    }
    assert!(matches > 10_000, "only {matches} matches");
}

#[test]
fn ranks_are_the_servers() {
    let Some(mut server) = support::oracle() else { return };
    let mut random = Random(0x5eed_0003);
    let vectors: Vec<String> = (0..300).map(|_| a_vector(&mut random)).collect();
    let parsed: Vec<TsVector> =
        vectors.iter().map(|text| TsVector::parse(text).unwrap()).collect();
    let ask = server
        .prepare(
            "SELECT q, array_agg(ts_rank_cd(v::tsvector, q::tsquery) ORDER BY m)
             FROM unnest($1::text[]) WITH ORDINALITY AS a(q, n),
                  unnest($2::text[]) WITH ORDINALITY AS b(v, m)
             GROUP BY q, n ORDER BY n",
        )
        .unwrap();
    let queries: Vec<String> =
        (0..rounds(300)).map(|_| well_formed(&mut random, 3)).collect();
    let rows = server.query(&ask, &[&queries, &vectors]).unwrap();
    assert_eq!(rows.len(), queries.len());
    let mut ranked = 0;
    for (text, row) in queries.iter().zip(&rows) {
        let query = TsQuery::parse(text).unwrap();
        let theirs: Vec<f32> = row.get(1);
        for (n, theirs) in theirs.into_iter().enumerate() {
            ranked += usize::from(theirs > 0.0);
            let call = format!("ts_rank_cd('{}', '{text}')", vectors[n]);
            let ours = rank_cd(&parsed[n], &query);
            assert!((ours - theirs).abs() <= theirs * 1e-6, "{call}: {ours} {theirs}");
        }
    }
    assert!(ranked > 1_000, "only {ranked} ranks");
}
