//! `ginmill query OPCLASS`: what an index is asked for a query, for looking and for
//! comparing.

use std::collections::BTreeSet;

use clap::builder::PossibleValuesParser;
use ginmill::document::{Value, ValueKind};
use ginmill::opclass::tsvector::Config;
use ginmill::opclass::tsvector::tsquery::TsQuery;
use ginmill::opclass::{Argument, KeyExpr, SearchMode};
use ginmill::{Error, Result};
use serde_json::{Value as Json, json};

use crate::face::{Face, Failure, Status};
use crate::keys::{Chosen, Element, shown};
use crate::lines::{self, Line};

/// Print what an index is asked for queries on stdin, one query a line
///
/// One JSON object a line comes out, in the same order: {"keys": [...], "mode": ...,
/// "recheck": ..., "expr": ...}: the keys in index order without duplicates ("prefixes"
/// where all keys with a prefix are asked for), GIN's search mode, whether the documents
/// found must be tested, and how the keys are combined. For tsvector_ops also "tsquery",
/// in PostgreSQL's text form. {"error": ...} for a query that PostgreSQL refuses.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  echo 'cats & dogs' | ginmill query tsvector_ops --function to_tsquery
  echo '%foo%' | ginmill query gin_trgm_ops --operator LIKE")]
pub(crate) struct Args {
    /// The operator class
    opclass: String,
    /// A line is a JSON string with the query (for arrays: a JSON array)
    #[arg(long)]
    json_lines: bool,
    /// For tsvector_ops: the function that reads the query [default: websearch_to_tsquery]
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(FUNCTIONS.iter().map(|f| f.0)))]
    function: Option<String>,
    /// The operator between column and query [default: the first of the class]
    #[arg(long, value_name = "OPERATOR", allow_hyphen_values = true)]
    operator: Option<String>,
    /// Text search configuration, for tsvector_ops
    #[arg(long)]
    config: Option<String>,
    /// Type of the elements, for array_ops
    #[arg(long = "type", value_enum, default_value_t = Element::Text)]
    element: Element,
}

type Read = fn(&Config, &str) -> Result<TsQuery>;

/// PostgreSQL's functions that read a text search query; `tsquery` is the cast.
static FUNCTIONS: &[(&str, Read)] = &[
    ("websearch_to_tsquery", TsQuery::websearch_to_tsquery),
    ("to_tsquery", TsQuery::to_tsquery),
    ("plainto_tsquery", TsQuery::plainto_tsquery),
    ("phraseto_tsquery", TsQuery::phraseto_tsquery),
    ("tsquery", |_, text| TsQuery::parse(text)),
];

/// Operators whose right side is an array of texts, whatever the class.
const TAKE_TEXTS: [&str; 2] = ["?|", "?&"];

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let chosen = Chosen::new(&self.opclass, self.config.clone(), self.element)?;
        // Also says so when there is no such configuration.
        chosen.class.extractor(chosen.config.as_deref())?;
        let operators = chosen.class.operators();
        let operator = match &self.operator {
            None => operators.first().copied().unwrap_or_default(),
            Some(name) => operators
                .iter()
                .copied()
                .find(|o| o.eq_ignore_ascii_case(name))
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "{} has no operator {name}; it has {}",
                        self.opclass,
                        operators.join(" ")
                    ))
                })?,
        };
        let search = self.search()?;
        lines::answer_each(face, |line| {
            let line = lines::read(line, self.json_lines)?;
            let mut answer = json!({});
            let argument = match &search {
                Some((read, config)) => {
                    let query = read(config, &text_of(line)?)?.to_string();
                    answer["tsquery"] = query.as_str().into();
                    Argument::Text(query)
                }
                None => argument(&chosen, operator, line)?,
            };
            let query =
                chosen.class.query(chosen.config.as_deref(), operator, &argument)?;
            let mut asked = Asked::default();
            let expr = asked.expr(&chosen, &query.expr);
            let show = |keys: BTreeSet<Vec<u8>>| -> Json {
                keys.iter().map(|key| shown(&chosen, key)).collect()
            };
            answer["keys"] = show(asked.keys);
            if asked.null {
                // In index order the null key comes after all others.
                answer["keys"].as_array_mut().expect("just made").push(Json::Null);
            }
            if !asked.prefixes.is_empty() {
                answer["prefixes"] = show(asked.prefixes);
            }
            answer["mode"] = match query.mode {
                SearchMode::Default => "default",
                SearchMode::IncludeEmpty => "include_empty",
                SearchMode::All => "all",
            }
            .into();
            answer["recheck"] = query.recheck.into();
            answer["expr"] = expr;
            Ok(answer)
        })
    }

    /// The function that reads a text search query, and its configuration, for the class
    /// that takes such queries.
    fn search(&self) -> Result<Option<(Read, &'static Config)>> {
        if self.opclass != "tsvector_ops" {
            return match &self.function {
                None => Ok(None),
                Some(name) => Err(Error::invalid(format!(
                    "{name} makes queries for tsvector_ops, not for {}",
                    self.opclass
                ))),
            };
        }
        let read = match &self.function {
            None => FUNCTIONS[0].1,
            Some(name) => {
                let named = FUNCTIONS.iter().find(|(known, _)| known == name);
                named.expect("the parser takes names of the list only").1
            }
        };
        let config = Config::find(self.config.as_deref().unwrap_or("english"))?;
        Ok(Some((read, config)))
    }
}

fn text_of(line: Line) -> Result<String> {
    match line {
        Line::Text(text) => Ok(text),
        Line::Null | Line::Json(_) => {
            Err(Error::value("expected the query as a JSON string"))
        }
    }
}

/// The right side of an operator.
fn argument(chosen: &Chosen, operator: &str, line: Line) -> Result<Argument> {
    let arrays = matches!(chosen.kind, ValueKind::Texts | ValueKind::Integers);
    if !arrays && !TAKE_TEXTS.contains(&operator) {
        return Ok(Argument::Text(text_of(line)?));
    }
    let array = match line {
        Line::Json(array) => array,
        Line::Null => Json::Null,
        Line::Text(text) => serde_json::from_str(&text)
            .map_err(|error| Error::value(format!("expected a JSON array: {error}")))?,
    };
    let element = if arrays { chosen.element } else { Element::Text };
    match element.array(&array)? {
        Value::Texts(texts) => Ok(Argument::Texts(texts)),
        Value::Integers(integers) => Ok(Argument::Integers(integers)),
        _ => unreachable!("an array of elements is one of both"),
    }
}

/// Gathers the keys of an expression.
#[derive(Default)]
struct Asked {
    keys: BTreeSet<Vec<u8>>,
    prefixes: BTreeSet<Vec<u8>>,
    null: bool,
}

impl Asked {
    /// The expression as JSON; as deep as the class made it, which bounds it.
    fn expr(&mut self, chosen: &Chosen, expr: &KeyExpr) -> Json {
        let mut all = |parts: &[KeyExpr]| -> Json {
            parts.iter().map(|p| self.expr(chosen, p)).collect()
        };
        match expr {
            KeyExpr::And(parts) => json!({ "and": all(parts) }),
            KeyExpr::Or(parts) => json!({ "or": all(parts) }),
            KeyExpr::Not(part) => json!({ "not": self.expr(chosen, part) }),
            KeyExpr::AtLeast(least, parts) => {
                json!({ "at_least": least, "of": all(parts) })
            }
            KeyExpr::Key(key) => {
                self.keys.insert(key.clone());
                json!({ "key": shown(chosen, key) })
            }
            KeyExpr::Prefix(prefix) => {
                self.prefixes.insert(prefix.clone());
                json!({ "prefix": shown(chosen, prefix) })
            }
            KeyExpr::NullKey => {
                self.null = true;
                json!("null_key")
            }
            KeyExpr::Maybe => json!("maybe"),
        }
    }
}
