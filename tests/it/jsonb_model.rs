//! jsonb beside a naive model of it, and on texts made to hurt.
//!
//! The model is a tree with recursive functions a line or two long: objects are maps,
//! numbers are fractions of a power of ten, keys are sets.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ginmill::document::Value;
use ginmill::opclass::jsonb::{self, JsonPath, JsonbOps, JsonbPathOps};
use ginmill::opclass::{KeyId, KeySink, OpClass};
use proptest::prelude::*;

/// A JSON value as it is written: keys may repeat, in any order.
#[derive(Clone, Debug)]
enum Model {
    Null,
    Bool(bool),
    /// A number of hundredths, and how it is written.
    Number(i64, Notation),
    String(String),
    Array(Vec<Model>),
    Object(Vec<(String, Model)>),
}

#[derive(Clone, Copy, Debug)]
enum Notation {
    /// Two digits behind the point.
    Plain,
    /// An integer with the exponent -2.
    Exponent,
    /// As `Plain`, with zeros behind it.
    Zeros,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[abc]{0,2}",
        1 => "[a-z\"\\\\\n\u{1}é中😀]{0,4}",
        1 => "[kl]{124,127}",
    ]
}

fn model() -> impl Strategy<Value = Model> {
    let notation = prop_oneof![
        Just(Notation::Plain),
        Just(Notation::Exponent),
        Just(Notation::Zeros)
    ];
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        (-300_i64..300, notation).prop_map(|(n, notation)| Model::Number(n, notation)),
        name().prop_map(Model::String),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Model::Array),
            prop::collection::vec((name(), inner), 0..6).prop_map(Model::Object),
        ]
    })
}

/// Text as somebody might write it.
fn written(model: &Model) -> String {
    let quoted = |text: &String| serde_json::to_string(text).unwrap();
    let list = |parts: Vec<String>| parts.join(" ,\n");
    match model {
        Model::Null => "null".to_owned(),
        Model::Bool(value) => value.to_string(),
        Model::Number(n, Notation::Exponent) => format!("{n}E-2"),
        Model::Number(n, Notation::Plain) => plain(*n),
        Model::Number(n, Notation::Zeros) => plain(*n) + "000",
        Model::String(text) => quoted(text),
        Model::Array(elements) => {
            format!("[{}]", list(elements.iter().map(written).collect()))
        }
        Model::Object(members) => {
            let member = |(key, value): &(String, Model)| {
                format!("{}\t:{}", quoted(key), written(value))
            };
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
    }
}

fn plain(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", n.abs() / 100, n.abs() % 100)
}

/// Members that count, in jsonb's order.
fn members(members: &[(String, Model)]) -> Vec<(&String, &Model)> {
    let mut kept: Vec<(&String, &Model)> = Vec::new();
    for (key, value) in members {
        kept.retain(|(name, _)| *name != key);
        kept.push((key, value));
    }
    kept.sort_by_key(|(key, _)| (key.len(), *key));
    kept
}

fn printed(model: &Model) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match model {
        Model::Number(n, Notation::Zeros) => plain(*n) + "000",
        Model::Number(n, _) => plain(*n),
        Model::Array(elements) => {
            format!("[{}]", list(elements.iter().map(printed).collect()))
        }
        Model::Object(all) => {
            let member = |(key, value): (&String, &Model)| {
                format!("{}: {}", serde_json::to_string(key).unwrap(), printed(value))
            };
            format!("{{{}}}", list(members(all).into_iter().map(member).collect()))
        }
        scalar => written(scalar),
    }
}

/// A scalar as a text that equal ones share; a container has none.
fn scalar(model: &Model) -> Option<String> {
    Some(match model {
        Model::Null => "n".to_owned(),
        Model::Bool(value) => format!("b{value}"),
        Model::Number(n, _) => format!("#{n}"),
        Model::String(text) => format!("s{text}"),
        Model::Array(_) | Model::Object(_) => return None,
    })
}

/// What `jsonb_ops` tells apart: each name and scalar.
fn names(model: &Model, found: &mut BTreeSet<String>, is_member: bool) {
    match model {
        Model::Array(elements) => {
            elements.iter().for_each(|element| names(element, found, false));
        }
        Model::Object(all) => {
            for (key, value) in members(all) {
                found.insert(format!("k{key}"));
                names(value, found, true);
            }
        }
        Model::String(text) if !is_member => {
            found.insert(format!("k{text}"));
        }
        scalar_model => found.extend(scalar(scalar_model)),
    }
}

/// What `jsonb_path_ops` tells apart: each path of names with its scalar. The sign of a
/// number does not count.
fn paths(model: &Model, path: &[String], found: &mut BTreeSet<(Vec<String>, String)>) {
    match model {
        Model::Array(elements) => {
            elements.iter().for_each(|element| paths(element, path, found));
        }
        Model::Object(all) => {
            for (key, value) in members(all) {
                let path = [path, std::slice::from_ref(key)].concat();
                paths(value, &path, found);
            }
        }
        Model::Number(n, _) => {
            found.insert((path.to_vec(), format!("#{}", n.abs())));
        }
        other => {
            found.extend(scalar(other).map(|scalar| (path.to_vec(), scalar)));
        }
    }
}

fn contains(left: &Model, right: &Model) -> bool {
    match (left, right) {
        (Model::Object(left), Model::Object(right)) => {
            let left = members(left);
            members(right).into_iter().all(|(key, wanted)| {
                left.iter().any(|(name, value)| *name == key && inside(value, wanted))
            })
        }
        (Model::Array(left), Model::Array(right)) => right
            .iter()
            .all(|wanted| left.iter().any(|element| inside(element, wanted))),
        (Model::Array(left), right) if scalar(right).is_some() => {
            left.iter().any(|element| scalar(element) == scalar(right))
        }
        (left, right) => scalar(left).is_some() && scalar(left) == scalar(right),
    }
}

/// The same below the outermost level, where a scalar is no array.
fn inside(left: &Model, right: &Model) -> bool {
    match (scalar(left), scalar(right)) {
        (None, None) => contains(left, right),
        (left, right) => left == right,
    }
}

#[derive(Default)]
struct Keys {
    interned: Vec<Vec<u8>>,
    posted: BTreeSet<Vec<u8>>,
}

impl KeySink for Keys {
    fn key(&mut self, key: &[u8]) -> KeyId {
        self.interned.push(key.to_vec());
        KeyId::try_from(self.interned.len() - 1).unwrap()
    }

    fn post(&mut self, ids: &[KeyId]) -> ginmill::error::Result<bool> {
        self.posted.extend(ids.iter().map(|&id| self.interned[id as usize].clone()));
        self.interned.clear();
        Ok(true)
    }

    fn post_null(&mut self) -> ginmill::error::Result<()> {
        panic!("no jsonb value has a null key");
    }
}

fn keys(class: &dyn OpClass, text: &str) -> BTreeSet<Vec<u8>> {
    let mut keys = Keys::default();
    let value = Value::Json(jsonb::parse(text).unwrap());
    class.extractor(None).unwrap().extract(&value, &mut keys).unwrap();
    keys.posted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn text_and_keys_are_those_of_the_model(model in model()) {
        let text = written(&model);
        let json = jsonb::parse(&text).unwrap();
        prop_assert_eq!(jsonb::to_text(&json), printed(&model));
        let again = jsonb::parse(&jsonb::to_text(&json)).unwrap();
        prop_assert_eq!(again, json);

        let mut found = BTreeSet::new();
        names(&model, &mut found, false);
        prop_assert_eq!(keys(&JsonbOps, &text).len(), found.len());
        let mut found = BTreeSet::new();
        paths(&model, &[], &mut found);
        prop_assert_eq!(keys(&JsonbPathOps, &text).len(), found.len());
    }

    #[test]
    fn containment_is_that_of_the_model(left in model(), right in model()) {
        let json = |model: &Model| jsonb::parse(&written(model)).unwrap();
        let (a, b) = (json(&left), json(&right));
        prop_assert_eq!(jsonb::contains(&a, &b), contains(&left, &right));
        prop_assert!(jsonb::contains(&a, &a) && contains(&left, &left));
        // What is contained has no key that the whole lacks.
        if contains(&left, &right) {
            for class in [&JsonbOps as &dyn OpClass, &JsonbPathOps] {
                let (all, part) = (keys(class, &written(&left)), keys(class, &written(&right)));
                prop_assert!(part.is_subset(&all));
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}", cut in 0_usize..60) {
        let _ = jsonb::parse(&text).map(|json| jsonb::to_text(&json));
        let _ = JsonPath::parse(&text).map(|path| path.to_string());
        let whole = r#"{"a\ud83d\ude00\n": [1.5e-3, true, null, {"b": "\u00e9"}], "a": {}}"#;
        if let Some(text) = whole.get(..cut) {
            prop_assert_eq!(jsonb::parse(text).is_ok(), cut == whole.len());
        }
    }
}

/// Runs something that must not take more than a moment, on a small stack.
fn quickly<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    const STACK: usize = 1 << 20;
    let start = Instant::now();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
    let result = thread.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    result
}

fn refusal(text: String) -> String {
    quickly(move || jsonb::parse(&text).unwrap_err().to_string())
}

#[test]
fn too_deep_texts_are_refused() {
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let error = refusal(open.repeat(1_000_000));
        assert!(error.starts_with("stack depth limit exceeded"), "{error}");
    }
    let deepest =
        format!("{}1{}", "[".repeat(jsonb::DEPTH_MAX), "]".repeat(jsonb::DEPTH_MAX));
    assert!(jsonb::parse(&deepest).is_ok());
    assert!(refusal(format!("[{deepest}]")).starts_with("stack depth"));
}

#[test]
fn the_deepest_values_are_worked_on_without_a_stack() {
    let depth = jsonb::DEPTH_MAX;
    for (open, close) in [("[", "]"), ("{\"b\":", ",\"a\":1}")] {
        let text = format!("{}2{}", open.repeat(depth), close.repeat(depth));
        quickly(move || {
            let json = jsonb::parse(&text).unwrap();
            assert!(jsonb::contains(&json, &json));
            assert_eq!(jsonb::parse(&jsonb::to_text(&json)).unwrap(), json);
            assert!(!keys(&JsonbOps, &text).is_empty());
            assert!(!keys(&JsonbPathOps, &text).is_empty());
            let path = JsonPath::parse("$.** ? (@ == 2)").unwrap();
            assert_eq!(path.exists(&json), Some(true));
            let path = JsonPath::parse("$.**{last}.string() == \"3\"").unwrap();
            assert_eq!(path.matches(&json), Some(false));
        });
    }
}

#[test]
fn disordered_objects_within_each_other_take_linear_time() {
    // Every level has to be put in order, around a large string.
    let depth = jsonb::DEPTH_MAX;
    let inner = "x".repeat(1_000_000);
    let text =
        format!("{}\"{inner}\"{}", "{\"bb\":".repeat(depth), ",\"a\":1}".repeat(depth));
    let printed = quickly(move || jsonb::to_text(&jsonb::parse(&text).unwrap()));
    assert!(printed.starts_with("{\"a\": 1, \"bb\": {\"a\": 1,"));
    // Many equal keys.
    let text = format!("{{{}\"a\":1}}", "\"a\":0,".repeat(1_000_000));
    let printed = quickly(move || jsonb::to_text(&jsonb::parse(&text).unwrap()));
    assert_eq!(printed, "{\"a\": 1}");
}

#[test]
fn huge_numbers_take_little() {
    for number in ["1e999999999", "1e-999999999", "-1E+2147483648"] {
        assert_eq!(refusal(number.to_owned()), "value overflows numeric format");
    }
    assert!(refusal("9".repeat(200_000)).starts_with("value overflows"));
    // A few bytes that stand for 131,072 digits each.
    let text = format!("[{}0]", "1e131071,-1e-16383,".repeat(100_000));
    quickly(move || {
        let json = jsonb::parse(&text).unwrap();
        assert!(json.len() < 2 * text.len());
        let half = jsonb::parse("[1e131071]").unwrap();
        assert!(jsonb::contains(&json, &half));
        assert_eq!(keys(&JsonbPathOps, &text).len(), 3);
    });
    let quotient = "$ / 3 > 1 && $ % 7 >= 0 && $ * $ > 1 && $.string().number() == $";
    quickly(move || {
        let json = jsonb::parse(&"7".repeat(131_072)).unwrap();
        let path = JsonPath::parse(quotient).unwrap();
        // The product has too many digits, which is an error and so unknown.
        assert_eq!(path.matches(&json), None);
    });
}

#[test]
fn deep_and_long_paths_are_refused_or_run() {
    let refused = |text: String| {
        quickly(move || {
            JsonPath::parse(&text).map(|path| path.to_string()).unwrap_err()
        })
        .to_string()
    };
    for text in [
        "(".repeat(1_000_000),
        format!("$ ? {}", "(@ ? ".repeat(100_000)),
        "-".repeat(1_000_000),
        format!("${}", "[$".repeat(100_000)),
        format!("${}", ".a".repeat(100_000)),
        format!("1{}", "+1".repeat(100_000)),
        format!("1 == 1{}", " || 1 == 1".repeat(100_000)),
        format!("{}1 == 1", "!(".repeat(100_000)),
        "a/**/".repeat(1_000_000),
    ] {
        let error = refused(text);
        assert!(error.starts_with("invalid jsonpath"), "{error}");
    }
    for text in [
        format!("${}", ".a".repeat(900)),
        format!("1{} == 901", "+1".repeat(900)),
        format!("1 == 2{}", " || 1 == 2".repeat(900)),
        format!("{}1 == 1{}", "!(".repeat(190), ")".repeat(190)),
        format!("${}", " ? (@.a > 0)".repeat(400)),
        format!("{}${}", "$ ? (exists(".repeat(90), "))".repeat(90)),
    ] {
        quickly(move || {
            let path = JsonPath::parse(&text).unwrap();
            let json = jsonb::parse(r#"[{"a": 1}, [{"a": 1}]]"#).unwrap();
            let _ = path.exists(&json);
            let _ = path.matches(&json);
            // A long sum or alternative prints with as many parentheses, which is more
            // than can be read.
            let again = JsonPath::parse(&path.to_string()).map(|path| path.to_string());
            let flat = text.contains('+') || text.contains('|');
            assert_eq!(again.ok(), (!flat).then(|| path.to_string()));
            let argument = ginmill::opclass::Argument::Text(text);
            for operator in ["@?", "@@"] {
                assert!(JsonbOps.query(None, operator, &argument).is_ok());
                assert!(JsonbPathOps.query(None, operator, &argument).is_ok());
            }
        });
    }
}
