//! `ginmill query OPCLASS`: what an index must be asked, for looking and for comparing.

use clap::builder::PossibleValuesParser;
use ginmill::opclass::tsvector::Config;
use ginmill::opclass::tsvector::tsquery::TsQuery;
use ginmill::opclass::{
    Argument, KeyExpr, KeyQuery, KeyType, SearchMode, int4_of, int8_of,
};
use ginmill::{Error, Result};
use serde_json::{Value as Json, json};

use crate::face::{Face, Failure, Status};
use crate::keys::{Chosen, Element, with_lists as class_list};
use crate::lines::{self, Line};

/// A function from text to a query.
type Function = fn(&Config, &str) -> Result<TsQuery>;

/// Functions that turn text into a tsquery.
const FUNCTIONS: [(&str, Function); 5] = [
    ("to_tsquery", TsQuery::to_tsquery),
    ("plainto_tsquery", TsQuery::plainto_tsquery),
    ("phraseto_tsquery", TsQuery::phraseto_tsquery),
    ("websearch_to_tsquery", TsQuery::websearch_to_tsquery),
    ("tsquery", |_, text| TsQuery::parse(text)),
];

/// Print what queries on stdin ask an index for, one query a line
///
/// One JSON object a line comes out: for tsvector_ops {"tsquery": ...} in PostgreSQL's text
/// form, and for every class {"keys": [...], "expr": ..., "mode": "default",
/// "include_empty" or "all", "recheck": ...}, or {"error": ...}.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  echo 'cats & dogs' | ginmill query tsvector_ops --function to_tsquery
  echo '%foo%' | ginmill query gin_trgm_ops --operator LIKE")]
pub(crate) struct Args {
    /// The operator class
    opclass: String,
    /// Text search configuration, for tsvector_ops
    #[arg(long)]
    config: Option<String>,
    /// A line is a JSON string with the query (for lists of keys: a JSON array)
    #[arg(long)]
    json_lines: bool,
    /// Makes a tsquery of a text, for tsvector_ops
    #[arg(long, default_value = "websearch_to_tsquery",
          value_parser = PossibleValuesParser::new(FUNCTIONS.map(|(name, _)| name)))]
    function: String,
    /// The operator; default: the first one the class has
    #[arg(long, allow_hyphen_values = true)]
    operator: Option<String>,
    /// Type of the elements, for array_ops
    #[arg(long = "type", value_enum, default_value_t = Element::Text)]
    element: Element,
}

/// Adds the operator classes that there are.
pub(crate) fn with_lists(command: clap::Command) -> clap::Command {
    class_list(command)
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let chosen = Chosen::new(&self.opclass, self.config.clone(), self.element)?;
        let operators = chosen.class.operators();
        let operator = match self.operator.as_deref() {
            None => operators.first().copied().unwrap_or_default(),
            Some(wanted) => {
                let mut known = operators.iter();
                known.find(|known| known.eq_ignore_ascii_case(wanted)).ok_or_else(
                    || {
                        Error::invalid(format!(
                            "{} has no operator {wanted}; it has {}",
                            self.opclass,
                            operators.join(", ")
                        ))
                    },
                )?
            }
        };
        let words = self.opclass == "tsvector_ops";
        let config = Config::find(self.config.as_deref().unwrap_or("english"))?;
        let mut functions = FUNCTIONS.iter();
        let function = functions.find(|(name, _)| *name == self.function);
        lines::answer_each(face, |line| {
            let line = lines::read(line, self.json_lines)?;
            if words && let (Line::Text(text), Some((_, function))) = (&line, function)
            {
                let query = function(config, text)?;
                let shown = query.to_string();
                let asked = ask(&chosen, operator, &Argument::Text(shown.clone()))?;
                let mut value = json!({ "tsquery": shown });
                merge(&mut value, asked);
                return Ok(value);
            }
            ask(&chosen, operator, &argument(line, operator)?)
        })
    }
}

fn merge(into: &mut Json, from: Json) {
    if let (Json::Object(into), Json::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// The right-hand side that a line stands for.
fn argument(line: Line, operator: &str) -> Result<Argument> {
    let list = matches!(operator, "?|" | "?&");
    match line {
        Line::Text(text) if list => Ok(Argument::Texts(vec![Some(text)])),
        Line::Text(text) => Ok(Argument::Text(text)),
        Line::Json(Json::Array(items)) => {
            if items.iter().any(Json::is_i64) {
                let numbers = items.iter().map(|item| match item {
                    Json::Null => Ok(None),
                    item => item.as_i64().map(Some).ok_or_else(|| mixed(item)),
                });
                return Ok(Argument::Integers(numbers.collect::<Result<_>>()?));
            }
            let texts = items.into_iter().map(|item| match item {
                Json::Null => Ok(None),
                Json::String(text) => Ok(Some(text)),
                item => Err(mixed(&item)),
            });
            Ok(Argument::Texts(texts.collect::<Result<_>>()?))
        }
        Line::Null => Err(Error::value("a null query finds nothing")),
        Line::Json(other) => Err(mixed(&other)),
    }
}

fn mixed(item: &Json) -> Error {
    Error::value(format!(
        "expected a string, or an array of strings or integers, found {item}"
    ))
}

fn ask(chosen: &Chosen, operator: &str, argument: &Argument) -> Result<Json> {
    let query = chosen.class.query(chosen.config.as_deref(), operator, argument)?;
    let KeyQuery { expr, mode, recheck } = &query;
    let mut keys = Vec::new();
    let shown = tree(expr, chosen.key_type(), &mut keys);
    let mode = match mode {
        SearchMode::Default => "default",
        SearchMode::IncludeEmpty => "include_empty",
        SearchMode::All => "all",
    };
    Ok(json!({ "keys": keys, "expr": shown, "mode": mode, "recheck": recheck }))
}

/// The tree as JSON; its keys are also put into `keys`, in the tree's order.
fn tree(expr: &KeyExpr, key_type: KeyType, keys: &mut Vec<Json>) -> Json {
    let many = |parts: &[KeyExpr], keys: &mut Vec<Json>| {
        parts.iter().map(|part| tree(part, key_type, keys)).collect::<Vec<_>>()
    };
    match expr {
        KeyExpr::Key(key) => {
            let key = key_json(key, key_type);
            keys.push(key.clone());
            key
        }
        KeyExpr::Prefix(key) => {
            let key = key_json(key, key_type);
            keys.push(key.clone());
            json!({ "prefix": key })
        }
        KeyExpr::NullKey => json!({ "null_key": true }),
        KeyExpr::And(parts) => json!({ "and": many(parts, keys) }),
        KeyExpr::Or(parts) => json!({ "or": many(parts, keys) }),
        KeyExpr::Not(part) => json!({ "not": tree(part, key_type, keys) }),
        KeyExpr::AtLeast(n, parts) => json!({ "at_least": n, "of": many(parts, keys) }),
        KeyExpr::Maybe => json!({ "maybe": true }),
    }
}

fn key_json(key: &[u8], key_type: KeyType) -> Json {
    match (key_type, <[u8; 4]>::try_from(key), <[u8; 8]>::try_from(key)) {
        (KeyType::Int4, Ok(bytes), _) => json!(int4_of(bytes)),
        (KeyType::Int8, _, Ok(bytes)) => json!(int8_of(bytes)),
        _ => json!(String::from_utf8_lossy(key)),
    }
}
