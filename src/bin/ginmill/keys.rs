//! `ginmill keys OPCLASS`: the keys of values, for looking and for comparing.

use std::collections::{BTreeSet, HashMap};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use ginmill::document::{Value, ValueKind};
use ginmill::opclass::tsvector::parser::Parser;
use ginmill::opclass::tsvector::{Config, Lexized};
use ginmill::opclass::{self, KeyId, KeySink, KeyType, OpClass, jsonb, trigram};
use ginmill::{Error, Result};
use serde_json::{Value as Json, json};

use crate::face::{Face, Failure, Status};
use crate::lines::{self, Line};

/// Interned keys beyond which the caches of an extractor are emptied, bytes.
const INTERNED_MAX: usize = 64 << 20;

/// Print the keys of values on stdin, one value a line
///
/// One JSON object a line comes out, in the same order: {"keys": [...]} in index order
/// without duplicates; {"keys": [], "category": "empty"} for a value without keys, "null"
/// for null; {"error": ...} for a value that PostgreSQL refuses.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  echo 'the cats' | ginmill keys tsvector_ops --config english --debug
  echo '[3,1,2]' | ginmill keys array_ops --type int")]
pub(crate) struct Args {
    /// The operator class
    opclass: String,
    /// Text search configuration, for tsvector_ops
    #[arg(long)]
    config: Option<String>,
    /// A line is a JSON string with the value (for array_ops: a JSON array)
    #[arg(long)]
    json_lines: bool,
    /// Type of the elements, for array_ops
    #[arg(long = "type", value_enum, default_value_t = Element::Text)]
    element: Element,
    /// Also print the tokens of the parser, as ts_debug does; for tsvector_ops
    #[arg(long)]
    debug: bool,
}

/// Types of array elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Element {
    /// text
    Text,
    /// int, 32 bits
    Int,
    /// bigint, 64 bits
    Bigint,
}

/// Adds the operator classes that there are.
pub(crate) fn with_lists(command: clap::Command) -> clap::Command {
    let names = opclass::ALL.iter().map(|class| class.name()).collect::<Vec<_>>();
    let mut help = String::from("Operator classes:\n");
    for class in opclass::ALL {
        help.push_str(&format!("  {:<16}{}\n", class.name(), class.summary()));
    }
    command
        .mut_arg("opclass", |arg| arg.value_parser(PossibleValuesParser::new(names)))
        .after_long_help(help)
}

/// An operator class with what it is told about its values.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub class: &'static dyn OpClass,
    pub config: Option<String>,
    pub kind: ValueKind,
    pub element: Element,
}

impl Chosen {
    /// The class of that name, of the configuration that is given or that the type of
    /// elements asks for.
    pub(crate) fn new(
        name: &str,
        config: Option<String>,
        element: Element,
    ) -> Result<Chosen> {
        let class = opclass::find(name).ok_or_else(|| {
            Error::invalid(format!("there is no operator class {name}"))
        })?;
        let arrays = match element {
            Element::Text => ValueKind::Texts,
            Element::Int | Element::Bigint => ValueKind::Integers,
        };
        let kinds = [ValueKind::Text, ValueKind::Json, arrays];
        let kind =
            kinds.into_iter().find(|kind| class.accepts(*kind)).ok_or_else(|| {
                Error::invalid(format!(
                    "{name} has no values that can be written as a line"
                ))
            })?;
        let config = match (kind, element) {
            (ValueKind::Integers, Element::Int) => config.or(Some("int".to_owned())),
            (ValueKind::Integers, _) => config.or(Some("bigint".to_owned())),
            _ => config,
        };
        Ok(Chosen { class, config, kind, element })
    }

    /// What the keys are on disk.
    pub(crate) fn key_type(&self) -> KeyType {
        self.class.key_type(self.kind, self.config.as_deref())
    }

    /// A line as a value of the class.
    fn value(&self, line: Line) -> Result<Value<'static>> {
        let text = match (line, self.kind) {
            (Line::Null, _) => return Ok(Value::Null),
            (Line::Text(text), ValueKind::Text) => return Ok(Value::Text(text.into())),
            (Line::Text(text), ValueKind::Json) => {
                return Ok(Value::Json(jsonb::parse(&text)?));
            }
            (Line::Json(array), ValueKind::Texts | ValueKind::Integers) => {
                return self.element.array(&array);
            }
            (Line::Text(text), _) => text,
            (Line::Json(other), _) => {
                return Err(Error::value(format!(
                    "expected a JSON string, found {}",
                    kind_of(&other)
                )));
            }
        };
        let array: Json = serde_json::from_str(&text)
            .map_err(|error| Error::value(format!("expected a JSON array: {error}")))?;
        self.element.array(&array)
    }
}

impl Element {
    /// A JSON array, nested or not, as an array value: its elements in order.
    pub(crate) fn array(self, array: &Json) -> Result<Value<'static>> {
        let Json::Array(elements) = array else {
            return Err(Error::value(format!(
                "expected a JSON array, found {}",
                kind_of(array)
            )));
        };
        let mut flat = Vec::new();
        flatten(elements, &mut flat);
        if self == Element::Text {
            let texts = flat.into_iter().map(|element| match element {
                Json::Null => Ok(None),
                Json::String(text) => Ok(Some(text.clone())),
                other => Err(Error::value(format!(
                    "expected a string or null, found {}",
                    kind_of(other)
                ))),
            });
            return Ok(Value::Texts(texts.collect::<Result<_>>()?));
        }
        let (name, least, most) = match self {
            Element::Int => ("integer", i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => ("bigint", i64::MIN, i64::MAX),
        };
        let numbers = flat.into_iter().map(|element| match element {
            Json::Null => Ok(None),
            Json::Number(number) => number
                .as_i64()
                .filter(|number| (least..=most).contains(number))
                .map(Some)
                .ok_or_else(|| {
                    let what = if number.is_f64() {
                        format!("invalid input syntax for type {name}: \"{number}\"")
                    } else {
                        format!("value \"{number}\" is out of range for type {name}")
                    };
                    Error::value(what)
                }),
            other => Err(Error::value(format!(
                "expected a number or null, found {}",
                kind_of(other)
            ))),
        });
        Ok(Value::Integers(numbers.collect::<Result<_>>()?))
    }
}

/// Elements of an array and of the arrays in it; as deep as the JSON reader allows.
fn flatten<'a>(elements: &'a [Json], out: &mut Vec<&'a Json>) {
    for element in elements {
        match element {
            Json::Array(inner) => flatten(inner, out),
            other => out.push(other),
        }
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// Collects the keys of one value after the other.
#[derive(Default)]
struct Collected {
    keys: Vec<Vec<u8>>,
    ids: HashMap<Vec<u8>, KeyId>,
    interned: usize,
    posted: BTreeSet<KeyId>,
    null: bool,
}

impl Collected {
    /// Forgets the value, keeps interned keys.
    fn next(&mut self) {
        self.posted.clear();
        self.null = false;
    }

    /// The value's keys in index order.
    fn sorted(&self) -> Vec<&[u8]> {
        let keys = self.posted.iter().map(|id| self.keys[*id as usize].as_slice());
        let mut keys: Vec<&[u8]> = keys.collect();
        keys.sort_unstable();
        keys
    }
}

impl KeySink for Collected {
    fn key(&mut self, key: &[u8]) -> KeyId {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        let id = KeyId::try_from(self.keys.len()).expect("emptied long before");
        self.interned += 2 * key.len() + 64;
        self.keys.push(key.to_vec());
        self.ids.insert(key.to_vec(), id);
        id
    }

    fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
        self.posted.extend(ids);
        Ok(false)
    }

    fn post_null(&mut self) -> Result<()> {
        self.null = true;
        Ok(())
    }
}

/// A key as JSON: by the class that made it, else by its type.
pub(crate) fn shown(chosen: &Chosen, key: &[u8]) -> Json {
    if chosen.class.name() == "jsonb_ops" {
        let (kind, text, hashed) = jsonb::ops::describe(key);
        return json!({ "kind": kind, "text": text, "hashed": hashed, "hex": hex(key) });
    }
    let broken = "a class keeps to its key type";
    match chosen.key_type() {
        KeyType::Text => String::from_utf8_lossy(key).into_owned().into(),
        KeyType::Int4 => opclass::int4_of(key.try_into().expect(broken)).into(),
        KeyType::Int8 => opclass::int8_of(key.try_into().expect(broken)).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tokens of a text with what becomes of them, as `ts_debug` answers.
fn tokens(config: &Config, text: &str) -> Json {
    let token = |token: opclass::tsvector::parser::Token<'_>| {
        let lexemes = match config.lexize(token.kind, token.text) {
            Lexized::Lexeme(lexeme) => vec![lexeme.into_owned()],
            Lexized::Unmapped | Lexized::TooLong | Lexized::StopWord => vec![],
        };
        json!({
            "type": token.kind.alias(),
            "id": token.kind.id(),
            "token": token.text,
            "dictionary": config.dictionary_name(token.kind),
            "lexemes": lexemes,
        })
    };
    Parser::new(text).map(token).collect()
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let chosen = Chosen::new(&self.opclass, self.config.clone(), self.element)?;
        let mut extractor = chosen.class.extractor(chosen.config.as_deref())?;
        let mut collected = Collected::default();
        let debug = self.debug_config()?;
        lines::answer_each(face, |line| {
            collected.next();
            if collected.interned > INTERNED_MAX {
                extractor.forget();
                collected = Collected::default();
            }
            let value = chosen.value(lines::read(line, self.json_lines)?)?;
            if value == Value::Null {
                return Ok(json!({ "keys": [], "category": "null" }));
            }
            extractor.extract(&value, &mut collected)?;
            let keys = collected.sorted();
            let mut list: Vec<Json> =
                keys.iter().map(|key| shown(&chosen, key)).collect();
            if collected.null {
                // In index order the null key comes after all others.
                list.push(Json::Null);
            }
            let empty = list.is_empty();
            let mut answer = json!({ "keys": list });
            if empty {
                answer["category"] = "empty".into();
            }
            if chosen.class.name() == "gin_trgm_ops" {
                let keys = keys.iter().filter_map(|key| (*key).try_into().ok());
                let keys: Vec<i32> = keys.map(opclass::int4_of).collect();
                answer["trigrams"] = trigram::show(&keys).into();
            }
            if let (Some(config), Value::Text(text)) = (debug, &value) {
                answer["tokens"] = tokens(config, text);
            }
            Ok(answer)
        })
    }

    /// The configuration whose tokens are to be shown.
    fn debug_config(&self) -> Result<Option<&'static Config>> {
        if !self.debug {
            return Ok(None);
        }
        if self.opclass != "tsvector_ops" {
            return Err(Error::invalid(format!(
                "--debug shows the tokens of tsvector_ops; {} has none",
                self.opclass
            )));
        }
        Config::find(self.config.as_deref().unwrap_or("english")).map(Some)
    }
}
