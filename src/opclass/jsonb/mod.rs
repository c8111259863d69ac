//! `jsonb_ops` and `jsonb_path_ops`: JSON values as PostgreSQL's `jsonb` sees them.
//!
//! ```text
//! text ── value ──▶ tape ──┬── ops ───────▶ keys: flag and payload
//!                          ├── path_ops ──▶ keys: hash of path and value
//!                          └── tree ──▶ contain, path_exec: recheck
//! jsonpath ── path_scan, path_parse ──▶ path ── path_keys ──▶ tree of keys
//! ```
//!
//! Depth is data: nothing here recurses over the depth of a value, and a jsonpath's own
//! depth is bounded where it is parsed.

mod arith;
mod contain;
mod hash;
mod json_lexer;
mod like_regex;
mod limits;
mod numeric;
pub mod ops;
mod path;
mod path_call;
mod path_exec;
mod path_item;
mod path_keys;
mod path_methods;
mod path_ops;
mod path_parse;
mod path_scan;
mod print;
mod tree;
mod value;

use std::fmt::Debug;

use super::{
    Argument, Extractor, KeyExpr, KeyId, KeyQuery, KeySink, KeyType, OpClass,
    POST_AT_MOST, SearchMode, int4_key,
};
use crate::document::{Json, Value, ValueKind};
use crate::error::{Error, Result};

pub use contain::{contains, exists, exists_all, exists_any};
pub use path::JsonPath;
pub use print::to_text;
pub use value::{DEPTH_MAX, Parser, TEXT_MAX, parse};

/// `jsonb_ops`: keys and values of a JSON value.
#[derive(Debug)]
pub struct JsonbOps;

/// `jsonb_path_ops`: hashed paths with values of a JSON value.
#[derive(Debug)]
pub struct JsonbPathOps;

impl OpClass for JsonbOps {
    fn name(&self) -> &'static str {
        "jsonb_ops"
    }

    fn summary(&self) -> &'static str {
        "keys and values of a JSON value"
    }

    fn key_type(&self, _kind: ValueKind, _config: Option<&str>) -> KeyType {
        KeyType::Text
    }

    fn accepts(&self, kind: ValueKind) -> bool {
        kind == ValueKind::Json
    }

    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>> {
        no_config(self.name(), config)?;
        Ok(Box::new(JsonExtractor::<Names>::new()))
    }

    fn operators(&self) -> &'static [&'static str] {
        &["@>", "?", "?|", "?&", "@?", "@@"]
    }

    fn query(
        &self,
        config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery> {
        no_config(self.name(), config)?;
        let mut writer = ops::KeyWriter::new();
        let mut name = |name: &str| KeyExpr::Key(writer.name(name).to_vec());
        match (operator, argument) {
            ("?", Argument::Text(key)) => Ok(query(Some(name(key)))),
            ("?|", Argument::Texts(keys)) => {
                let keys = keys.iter().flatten().map(|key| name(key)).collect();
                Ok(query(Some(KeyExpr::Or(keys))))
            }
            ("?&", Argument::Texts(keys)) => {
                Ok(query(all(keys.iter().flatten().map(|key| name(key)).collect())))
            }
            _ => query_by_value::<Names>(self, operator, argument),
        }
    }
}

impl OpClass for JsonbPathOps {
    fn name(&self) -> &'static str {
        "jsonb_path_ops"
    }

    fn summary(&self) -> &'static str {
        "hashed paths with values of a JSON value"
    }

    fn key_type(&self, _kind: ValueKind, _config: Option<&str>) -> KeyType {
        KeyType::Int4
    }

    fn accepts(&self, kind: ValueKind) -> bool {
        kind == ValueKind::Json
    }

    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>> {
        no_config(self.name(), config)?;
        Ok(Box::new(JsonExtractor::<Paths>::new()))
    }

    fn operators(&self) -> &'static [&'static str] {
        &["@>", "@?", "@@"]
    }

    fn query(
        &self,
        config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery> {
        no_config(self.name(), config)?;
        query_by_value::<Paths>(self, operator, argument)
    }
}

fn no_config(class: &str, config: Option<&str>) -> Result<()> {
    match config {
        None => Ok(()),
        Some(config) => Err(Error::invalid(format!(
            "{class} takes no configuration, but \"{config}\" is given"
        ))),
    }
}

/// How a class turns a value into keys.
trait Keys: Debug + Send + Default {
    /// What the class knows of a place in a jsonpath.
    type Place: path_keys::Place;

    /// Calls `found` with every key.
    fn keys_of(
        &mut self,
        json: &Json,
        found: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;
    fn memory(&self) -> usize;
}

/// Keys of `jsonb_ops`.
#[derive(Debug)]
struct Names(ops::KeyWriter);

impl Default for Names {
    fn default() -> Names {
        Names(ops::KeyWriter::new())
    }
}

impl Keys for Names {
    type Place = path_keys::Names;

    fn keys_of(
        &mut self,
        json: &Json,
        found: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        ops::keys_of(json, &mut self.0, found)
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// Keys of `jsonb_path_ops`.
#[derive(Debug, Default)]
struct Paths(path_ops::PathHasher);

impl Keys for Paths {
    type Place = path_keys::Hash;

    fn keys_of(
        &mut self,
        json: &Json,
        found: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.0.keys_of(json, |hash| found(&int4_key(hash.cast_signed())))
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}

/// The extractor of both classes. It caches no ids: a key's bytes are at hand in the
/// tape, and looking them up here would cost what looking them up in the sink costs.
#[derive(Debug)]
struct JsonExtractor<K> {
    keys: K,
    ids: Vec<KeyId>,
}

impl<K: Keys> JsonExtractor<K> {
    fn new() -> JsonExtractor<K> {
        JsonExtractor { keys: K::default(), ids: Vec::with_capacity(POST_AT_MOST) }
    }
}

impl<K: Keys> Extractor for JsonExtractor<K> {
    fn extract(&mut self, value: &Value<'_>, sink: &mut dyn KeySink) -> Result<()> {
        let json = match value {
            Value::Json(json) => json,
            Value::Null => return Ok(()),
            _ => return Err(Error::invalid("only a JSON value has jsonb keys")),
        };
        let ids = &mut self.ids;
        ids.clear();
        self.keys.keys_of(json, &mut |key| {
            ids.push(sink.key(key));
            if ids.len() == POST_AT_MOST {
                // Whether the ids are void now does not matter: none is kept.
                sink.post(ids)?;
                ids.clear();
            }
            Ok(())
        })?;
        if !ids.is_empty() {
            sink.post(ids)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.keys = K::default();
    }

    fn memory(&self) -> usize {
        self.keys.memory() + self.ids.capacity() * size_of::<KeyId>()
    }
}

/// The operators that both classes have.
fn query_by_value<K: Keys>(
    class: &dyn OpClass,
    operator: &str,
    argument: &Argument,
) -> Result<KeyQuery> {
    match (operator, argument) {
        ("@>", Argument::Text(text)) => {
            let mut keys = Vec::new();
            K::default().keys_of(&parse(text)?, &mut |key| {
                keys.push(KeyExpr::Key(key.to_vec()));
                Ok(())
            })?;
            Ok(query(all(keys)))
        }
        ("@?" | "@@", Argument::Text(text)) => {
            let path = JsonPath::parse(text)?;
            if let Some(name) = path.variable() {
                return Err(Error::invalid(format!(
                    "jsonpath variable \"${name}\" has no value in a search"
                )));
            }
            Ok(query(match operator {
                "@?" => path_keys::exists_keys::<K::Place>(&path),
                _ => path_keys::match_keys::<K::Place>(&path),
            }))
        }
        (operator, argument) => {
            let name = class.name();
            if class.operators().contains(&operator) {
                let wanted = match argument {
                    Argument::Text(_) => "a text array",
                    _ => "a text",
                };
                return Err(Error::invalid(format!(
                    "operator {operator} of {name} takes {wanted} on its right-hand side"
                )));
            }
            Err(Error::invalid(format!(
                "{name} has no operator {operator}; it has {}",
                class.operators().join(" ")
            )))
        }
    }
}

/// All of these keys, each once; nothing when there are none.
fn all(keys: Vec<KeyExpr>) -> Option<KeyExpr> {
    let mut distinct: Vec<KeyExpr> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for key in keys {
        if let KeyExpr::Key(bytes) = &key
            && seen.insert(bytes.clone())
        {
            distinct.push(key);
        }
    }
    (!distinct.is_empty()).then_some(KeyExpr::And(distinct))
}

/// A query for these keys, or without any for every item that is not null; all jsonb
/// queries are rechecked.
fn query(expr: Option<KeyExpr>) -> KeyQuery {
    match expr {
        Some(expr) => KeyQuery { expr, mode: SearchMode::Default, recheck: true },
        None => KeyQuery { expr: KeyExpr::Maybe, mode: SearchMode::All, recheck: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is posted, by key.
    #[derive(Default)]
    struct Posted {
        interned: Vec<Vec<u8>>,
        posted: Vec<Vec<u8>>,
    }

    impl KeySink for Posted {
        fn key(&mut self, key: &[u8]) -> KeyId {
            self.interned.push(key.to_vec());
            KeyId::try_from(self.interned.len() - 1).unwrap()
        }

        fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
            assert!(!ids.is_empty() && ids.len() <= POST_AT_MOST);
            self.posted
                .extend(ids.iter().map(|&id| self.interned[id as usize].clone()));
            // All ids are void from here on.
            self.interned.clear();
            Ok(true)
        }

        fn post_null(&mut self) -> Result<()> {
            panic!("no jsonb value has a null key");
        }
    }

    fn keys(class: &dyn OpClass, text: &str) -> Result<Vec<Vec<u8>>> {
        let mut sink = Posted::default();
        let value = Value::Json(parse(text)?);
        class.extractor(None)?.extract(&value, &mut sink)?;
        sink.posted.sort();
        sink.posted.dedup();
        Ok(sink.posted)
    }

    /// Holds a class against a file of keys that a server made.
    fn check_vectors(class: &dyn OpClass, vectors: &str, key_of: fn(&str) -> Vec<u8>) {
        let mut checked = 0;
        for line in vectors.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = vector["in"].as_str().unwrap();
            if let Some(state) = vector["sqlstate"].as_str() {
                let error = keys(class, text).unwrap_err().to_string();
                let start = match state {
                    "22P02" => "invalid input syntax for type json",
                    "22P05" => "unsupported Unicode escape sequence",
                    "22003" => "value overflows numeric format",
                    state => panic!("no vector has SQLSTATE {state}"),
                };
                assert!(error.starts_with(start), "{text:?}: {error}");
            } else {
                let listed = vector["keys_hex"].as_array();
                let listed = listed.or(vector["keys_u32"].as_array()).unwrap();
                let expected: Vec<_> =
                    listed.iter().map(|key| key_of(&key.to_string())).collect();
                assert_eq!(keys(class, text).unwrap(), expected, "{text:?}");
                let placeholder =
                    if expected.is_empty() { "\"empty_item\"" } else { "null" };
                assert_eq!(vector["placeholder"].to_string(), placeholder, "{text:?}");
                if let Some(printed) = vector["jsonb_text"].as_str() {
                    assert_eq!(to_text(&parse(text).unwrap()), printed);
                }
            }
            checked += 1;
        }
        assert_eq!(checked, 235);
    }

    #[test]
    fn keys_of_jsonb_ops_are_those_of_the_server() {
        let vectors = include_str!("../../../fixtures/keys/jsonb_ops_keys.jsonl");
        check_vectors(&JsonbOps, vectors, |hex| {
            let hex = hex.trim_matches('"').as_bytes();
            let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
            hex.chunks(2).map(|pair| digit(pair[0]) * 16 + digit(pair[1])).collect()
        });
    }

    #[test]
    fn keys_of_jsonb_path_ops_are_those_of_the_server() {
        let vectors = include_str!("../../../fixtures/keys/jsonb_path_ops_keys.jsonl");
        check_vectors(&JsonbPathOps, vectors, |number| {
            let hash: u32 = number.parse().unwrap();
            int4_key(hash.cast_signed()).to_vec()
        });
    }

    #[test]
    fn values_with_many_keys_are_posted_in_parts() {
        let text =
            format!("[{}0]", (1..1000).map(|n| format!("{n},")).collect::<String>());
        assert_eq!(keys(&JsonbOps, &text).unwrap().len(), 1000);
        assert_eq!(keys(&JsonbPathOps, &text).unwrap().len(), 1000);
    }

    fn text_query(class: &dyn OpClass, operator: &str, argument: &str) -> KeyQuery {
        class.query(None, operator, &Argument::Text(argument.to_owned())).unwrap()
    }

    #[test]
    fn contains_needs_all_keys_of_its_argument() {
        let query = text_query(&JsonbOps, "@>", r#"{"a": {"a": 1.0}}"#);
        let key = |bytes: &[u8]| KeyExpr::Key(bytes.to_vec());
        assert_eq!(query.expr, KeyExpr::And(vec![key(b"\x01a"), key(b"\x041")]));
        assert_eq!((query.mode, query.recheck), (SearchMode::Default, true));
        let query = text_query(&JsonbPathOps, "@>", r#"{"a": 1}"#);
        assert_eq!(query.expr, KeyExpr::And(vec![key(&int4_key(-825_163_222))]));
        for class in [&JsonbOps as &dyn OpClass, &JsonbPathOps] {
            let query = text_query(class, "@>", "[{}]");
            assert_eq!((query.expr, query.mode), (KeyExpr::Maybe, SearchMode::All));
        }
        let query = text_query(&JsonbPathOps, "@>", r#"{"a": {}}"#);
        assert_eq!(query.mode, SearchMode::All);
    }

    #[test]
    fn exists_needs_the_names() {
        let names = |names: &[Option<&str>]| {
            Argument::Texts(names.iter().map(|name| name.map(str::to_owned)).collect())
        };
        let long = "k".repeat(126);
        let query = text_query(&JsonbOps, "?", &long);
        let KeyExpr::Key(key) = query.expr else { panic!("{query:?}") };
        assert_eq!((key[0], key.len()), (0x11, 9));
        let ask =
            |operator, argument| JsonbOps.query(None, operator, &argument).unwrap();
        let a = KeyExpr::Key(b"\x01a".to_vec());
        assert_eq!(
            ask("?|", names(&[Some("a"), None])).expr,
            KeyExpr::Or(vec![a.clone()])
        );
        assert_eq!(ask("?|", names(&[None])).expr, KeyExpr::Or(vec![]));
        assert_eq!(ask("?&", names(&[Some("a"), None])).expr, KeyExpr::And(vec![a]));
        assert_eq!(ask("?&", names(&[])).mode, SearchMode::All);
    }

    #[test]
    fn wrong_queries_are_refused_with_what_would_be_right() {
        let error = |class: &dyn OpClass, operator: &str, argument| {
            class.query(None, operator, &argument).unwrap_err().to_string()
        };
        let text = || Argument::Text("a".to_owned());
        assert_eq!(
            error(&JsonbPathOps, "?", text()),
            "jsonb_path_ops has no operator ?; it has @> @? @@"
        );
        assert_eq!(
            error(&JsonbOps, "?|", text()),
            "operator ?| of jsonb_ops takes a text array on its right-hand side"
        );
        assert!(error(&JsonbOps, "@>", text()).starts_with("invalid input syntax"));
        assert!(JsonbOps.extractor(Some("english")).is_err());
    }
}
