use serde_json::Value as Json;

use super::*;
use crate::opclass::tsvector::{Config, TsVector};
use crate::opclass::{KeyExpr, SearchMode};

fn vector(text: &str) -> TsVector {
    TsVector::parse(text).unwrap()
}

fn has(vector: &TsVector, lexeme: &str, prefix: bool) -> bool {
    let mut found = false;
    vector.find(lexeme, prefix, &mut |_, _| {
        found = true;
        false
    });
    found
}

/// Brute force over a tree of keys, for one document.
fn holds(expr: &KeyExpr, vector: &TsVector) -> bool {
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    match expr {
        KeyExpr::Key(key) => has(vector, &text(key), false),
        KeyExpr::Prefix(key) => has(vector, &text(key), true),
        KeyExpr::And(parts) => parts.iter().all(|part| holds(part, vector)),
        KeyExpr::Or(parts) => parts.iter().any(|part| holds(part, vector)),
        KeyExpr::Not(part) => !holds(part, vector),
        KeyExpr::Maybe => true,
        KeyExpr::NullKey | KeyExpr::AtLeast(..) => panic!("not for tsquery"),
    }
}

fn english() -> &'static Config {
    Config::find("english").unwrap()
}

fn to_tsquery(text: &str) -> String {
    TsQuery::to_tsquery(english(), text).unwrap().to_string()
}

fn websearch(text: &str) -> String {
    let simple = Config::find("simple").unwrap();
    TsQuery::websearch_to_tsquery(simple, text).unwrap().to_string()
}

/// The server's own answers.
fn recorded() -> Vec<Json> {
    let text = include_str!("../../../../fixtures/keys/tsquery.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn text_counts_and_tree_of_every_recorded_query_come_back_from_its_text_form() {
    let recorded = recorded();
    let mut seen = 0;
    for case in &recorded[1..] {
        let Some(out) = case["out"].as_str() else { continue };
        let query = TsQuery::parse(out).unwrap();
        assert_eq!(query.to_string(), out, "{case}");
        assert_eq!(Some(query.numnode() as u64), case["numnode"].as_u64(), "{case}");
        assert_eq!(Some(query.querytree().as_str()), case["querytree"].as_str());
        seen += 1;
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn every_function_gives_the_recorded_text_or_error() {
    let recorded = recorded();
    for case in &recorded[1..] {
        let input = case["in"].as_str().unwrap();
        let config = || Config::find(case["config"].as_str().unwrap()).unwrap();
        let result = match case["fn"].as_str().unwrap() {
            "tsquery" => TsQuery::parse(input),
            "to_tsquery" => TsQuery::to_tsquery(config(), input),
            "plainto_tsquery" => TsQuery::plainto_tsquery(config(), input),
            "phraseto_tsquery" => TsQuery::phraseto_tsquery(config(), input),
            "websearch_to_tsquery" => TsQuery::websearch_to_tsquery(config(), input),
            other => panic!("{other}"),
        };
        match result {
            Ok(query) => assert_eq!(Some(&*query.to_string()), case["out"].as_str()),
            Err(error) => {
                assert_eq!(Some(&*error.to_string()), case["error"].as_str());
            }
        }
    }
    assert_eq!(recorded.len(), 337);
}

#[test]
fn recorded_queries_match_the_recorded_vectors_and_ask_the_recorded_keys() {
    let recorded = recorded();
    let vectors: Vec<TsVector> = recorded[0]["docs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| vector(text.as_str().unwrap()))
        .collect();
    let mut seen = 0;
    for case in &recorded[1..] {
        let Some(out) = case["out"].as_str() else { continue };
        let query = TsQuery::parse(out).unwrap();
        let matches: Vec<usize> =
            (0..vectors.len()).filter(|&at| query.matches(&vectors[at])).collect();
        assert_eq!(serde_json::json!(matches), case["matches"], "{case}");
        let Some(gin) = case.get("gin") else { continue };
        let entries: Vec<Json> = query
            .operands()
            .iter()
            .rev()
            .map(|operand| serde_json::json!([operand.lexeme, operand.prefix]))
            .collect();
        assert_eq!(Json::from(entries), gin["entries"], "{case}");
        let asked = query.key_query();
        let mode = if asked.mode == SearchMode::All { "all" } else { "default" };
        assert_eq!(Some(mode), gin["mode"].as_str(), "{case}");
        let certain = query.certain_keys();
        for (vector, expected) in
            vectors.iter().zip(gin["ternary"].as_str().unwrap().chars())
        {
            let ternary =
                query.consistent(&|lexeme, prefix| has(vector, lexeme, prefix));
            let letter = match ternary {
                Ternary::False => 'F',
                Ternary::Maybe => 'M',
                Ternary::True => 'T',
            };
            assert_eq!(letter, expected, "{case}");
            assert_eq!(holds(&asked.expr, vector), ternary != Ternary::False);
            assert_eq!(holds(&certain, vector), ternary == Ternary::True, "{case}");
            assert!(asked.recheck || ternary != Ternary::Maybe, "{case}");
        }
        seen += 1;
    }
    assert!(seen > 280, "{seen}");
}

#[test]
fn an_operand_of_several_words_is_a_phrase_with_gaps_for_stop_words() {
    assert_eq!(to_tsquery("'fat cat' & dog"), "'fat' <-> 'cat' & 'dog'");
    assert_eq!(to_tsquery("'cat of the hat':*A"), "'cat':*A <3> 'hat':*A");
    assert_eq!(to_tsquery("the <-> cat"), "'cat'");
    assert_eq!(to_tsquery("(b <-> a) <-> c"), "'b' <2> 'c'");
    assert_eq!(to_tsquery("!the"), "");
    let plain = TsQuery::plainto_tsquery(english(), "the cat of hats").unwrap();
    assert_eq!(plain.to_string(), "'cat' & 'hat'");
    let phrase = TsQuery::phraseto_tsquery(english(), "the cat of hats").unwrap();
    assert_eq!(phrase.to_string(), "'cat' <2> 'hat'");
}

#[test]
fn a_grown_distance_keeps_its_value() {
    assert_eq!(
        to_tsquery("b <16384> the <16384> c"),
        "'b' <32768> 'c'",
        "PostgreSQL prints <-32768> here"
    );
}

#[test]
fn web_search_never_fails_on_what_people_type() {
    for (input, output) in [
        (r#"fat "sat on" mat"#, "'fat' & 'sat' <-> 'on' & 'mat'"),
        ("cat or dog -bird", "'cat' | 'dog' & !'bird'"),
        ("cat or", "'cat' & 'or'"),
        ("cat or ", "'cat' & 'or'"),
        ("cat or &", "'cat'"),
        ("cat or\u{3000} ", "'cat' & 'or'"),
        ("-\"fat rat\"", "!( 'fat' <-> 'rat' )"),
        (":cat", "'cat'"),
        ("cat:dog", "'cat' & 'dog'"),
        ("&", ""),
        ("-", ""),
        ("\"", ""),
        ("cat \"dog", "'cat' & 'dog'"),
        ("(cat | dog)", "'cat' & 'dog'"),
    ] {
        assert_eq!(websearch(input), output, "{input}");
    }
}

#[test]
fn depth_is_no_danger() {
    let depth = 1_000_000;
    let parens = "(".repeat(depth) + "x" + &")".repeat(depth);
    assert_eq!(TsQuery::parse(&parens).unwrap().to_string(), "'x'");
    let alternating = "!(y&".repeat(100_000) + "x" + &")".repeat(100_000);
    let query = TsQuery::parse(&alternating).unwrap();
    assert_eq!(query.numnode(), 300_001);
    let text = query.to_string();
    assert_eq!(TsQuery::parse(&text).unwrap(), query);
    assert_eq!(query.querytree(), "T");
    assert!(query.key_query().recheck, "cut at the deepest level");
    let both = vector("y:1 x:2");
    assert!(query.matches(&both), "an even number of NOTs");
    let right_deep = "x<->(".repeat(100_000) + "x" + &")".repeat(100_000);
    let query = TsQuery::parse(&right_deep).unwrap();
    assert!(!query.matches(&both));
    let chain = "x & ".repeat(200_000) + "x";
    let query = TsQuery::parse(&chain).unwrap();
    match query.key_query().expr {
        KeyExpr::And(parts) => assert_eq!(parts.len(), 200_001),
        other => panic!("{other:?}"),
    }
    let open = "(".repeat(depth);
    let error = TsQuery::parse(&open).unwrap_err().to_string();
    assert!(error.starts_with("no operand in tsquery: \"((("), "{error}");
    assert!(error.len() < 2000);
}

#[test]
fn limits_are_postgresqls() {
    let error = |text: &str| TsQuery::parse(text).unwrap_err().to_string();
    assert!(TsQuery::parse(&("!".repeat(32) + "x")).is_ok());
    assert_eq!(error(&("!".repeat(33) + "x")), "tsquery stack too small");
    assert!(TsQuery::parse(&"x".repeat(2046)).is_ok());
    assert!(error(&"x".repeat(2047)).starts_with("word is too long in tsquery"));
    let thousand = "x".repeat(1000);
    let many = |count| vec![thousand.as_str(); count].join("&");
    assert!(TsQuery::parse(&many(1048)).is_ok());
    assert!(error(&many(1049)).starts_with("value is too big in tsquery"));
    assert_eq!(error("a <5>"), "syntax error in tsquery: \"a <5>\"");
    assert_eq!(error("a <-> "), "no operand in tsquery: \"a <-> \"");
    assert!(error("a <16385x").starts_with("distance in phrase operator"));
    assert_eq!(error("a\\"), "there is no escaped character: \"a\\\"");
}

#[test]
fn a_stripped_lexeme_satisfies_any_weight_but_no_phrase() {
    let stripped = vector("a b:1A");
    let matches = |text: &str| TsQuery::parse(text).unwrap().matches(&stripped);
    assert!(matches("a:C"));
    assert!(!matches("b:C"));
    assert!(!matches("b <-> a"));
    assert!(matches("!(b <-> a)"));
    assert!(!matches(""));
}
