//! Conditions, bound to an archive's fields, and whether a document fulfils them.
//!
//! What an index cannot decide is tested here, on the document itself, with SQL's three
//! values: a condition on a field that the document does not have is unknown, and a
//! search returns only documents for which the whole expression is true.
//!
//! The tree has no NOT above its leaves: denial has been moved down to them
//! ([`Leaf::denied`]), which three-valued logic allows.

use std::cmp::Ordering;

use regex::Regex;

use crate::document::{Document, Json, Value};
use crate::opclass::array;
use crate::opclass::jsonb::{self, JsonPath};
use crate::opclass::trigram::{
    Like, SIMILARITY_THRESHOLD, STRICT_WORD_SIMILARITY_THRESHOLD,
    WORD_SIMILARITY_THRESHOLD, similarity, strict_word_similarity, word_similarity,
};
use crate::opclass::tsvector::tsquery::{Lexemes, TsQuery};
use crate::opclass::tsvector::{Config, TsVector};

/// A bound expression.
#[derive(Debug)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Leaf(Box<Leaf>),
}

/// A condition.
#[derive(Debug)]
pub(super) struct Leaf {
    pub test: Test,
    /// NOT stands before it.
    pub denied: bool,
    /// As `--explain` prints it, without the NOT.
    pub shown: String,
    /// Index columns that can narrow it down.
    pub choices: Vec<super::bind::Choice>,
}

/// What is tested.
#[derive(Debug)]
pub(super) enum Test {
    Search {
        field: usize,
        config: &'static Config,
        query: TsQuery,
    },
    /// `shown` finds what to highlight.
    Like {
        field: usize,
        like: Box<Like>,
        shown: Option<Regex>,
    },
    Regex {
        field: usize,
        regex: Regex,
    },
    Text {
        field: usize,
        comparison: Comparison,
        value: String,
    },
    Similar {
        field: usize,
        kind: Similarity,
        value: String,
    },
    JsonContains {
        field: usize,
        value: Json,
    },
    JsonKeys {
        field: usize,
        keys: Vec<String>,
        all: bool,
    },
    JsonPath {
        field: usize,
        path: JsonPath,
        matches: bool,
    },
    Texts {
        field: usize,
        operator: ArrayOperator,
        value: Vec<Option<String>>,
    },
    Integers {
        field: usize,
        operator: ArrayOperator,
        value: Vec<Option<i64>>,
    },
    /// The document's date against nanoseconds since 1970.
    Date {
        comparison: Comparison,
        value: i128,
    },
    /// `IS NULL` of a field, or of the date.
    Null {
        field: Option<usize>,
    },
    /// Compared with `NULL`.
    Unknown,
}

/// `=`, `<` and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// `%`, `%>`, `%>>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Similarity {
    Whole,
    Word,
    StrictWord,
}

/// Operators of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArrayOperator {
    Contains,
    ContainedBy,
    Overlaps,
    Equal,
}

/// Nanoseconds of a date.
pub(super) fn nanoseconds(date: i64) -> i128 {
    i128::from(date) * 1_000_000_000
}

/// A document under test; vectors are made once per field and configuration.
pub(super) struct Candidate<'a> {
    document: &'a Document<'a>,
    vectors: Vec<(usize, &'static Config, TsVector)>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(document: &'a Document<'a>) -> Candidate<'a> {
        Candidate { document, vectors: Vec::new() }
    }

    fn value(&self, field: usize) -> &'a Value<'a> {
        self.document.values.get(field).unwrap_or(&Value::Null)
    }

    fn text(&self, field: usize) -> Option<&'a str> {
        match self.value(field) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn json(&self, field: usize) -> Option<&'a Json> {
        match self.value(field) {
            Value::Json(json) => Some(json),
            _ => None,
        }
    }

    /// The vector of a text field.
    fn vector(&mut self, field: usize, config: &'static Config) -> Option<&TsVector> {
        let known = self
            .vectors
            .iter()
            .position(|(at, with, _)| *at == field && std::ptr::eq(*with, config));
        let at = match known {
            Some(at) => at,
            None => {
                let vector = TsVector::of(config, self.text(field)?);
                self.vectors.push((field, config, vector));
                self.vectors.len() - 1
            }
        };
        Some(&self.vectors[at].2)
    }

    /// Whether the expression is true; `None` is SQL's unknown.
    pub(super) fn truth(&mut self, node: &Node) -> Option<bool> {
        match node {
            Node::And(parts) => {
                let mut all = Some(true);
                for part in parts {
                    match self.truth(part) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => all = None,
                    }
                }
                all
            }
            Node::Or(parts) => {
                let mut any = Some(false);
                for part in parts {
                    match self.truth(part) {
                        Some(false) => {}
                        Some(true) => return Some(true),
                        None => any = None,
                    }
                }
                any
            }
            Node::Leaf(leaf) => self.test(&leaf.test).map(|truth| truth != leaf.denied),
        }
    }

    fn test(&mut self, test: &Test) -> Option<bool> {
        Some(match test {
            Test::Search { field, config, query } => match self.value(*field) {
                Value::Text(_) => query.matches(self.vector(*field, config)?),
                Value::Lexemes(lexemes) => query.matches(&Bare(lexemes)),
                _ => return None,
            },
            Test::Like { field, like, .. } => like.matches(self.text(*field)?),
            Test::Regex { field, regex } => regex.is_match(self.text(*field)?),
            Test::Text { field, comparison, value } => {
                comparison.holds(self.text(*field)?.cmp(value))
            }
            Test::Similar { field, kind, value } => {
                similar(*kind, self.text(*field)?, value)
            }
            Test::JsonContains { field, value } => {
                jsonb::contains(self.json(*field)?, value)
            }
            Test::JsonKeys { field, keys, all: true } => {
                jsonb::exists_all(self.json(*field)?, keys)
            }
            Test::JsonKeys { field, keys, all: false } => {
                jsonb::exists_any(self.json(*field)?, keys)
            }
            Test::JsonPath { field, path, matches: true } => {
                return path.matches(self.json(*field)?);
            }
            Test::JsonPath { field, path, matches: false } => {
                return path.exists(self.json(*field)?);
            }
            Test::Texts { field, operator, value } => match self.value(*field) {
                Value::Texts(elements) => operator.holds(elements, value),
                _ => return None,
            },
            Test::Integers { field, operator, value } => match self.value(*field) {
                Value::Integers(elements) => operator.holds(elements, value),
                _ => return None,
            },
            Test::Date { comparison, value } => {
                comparison.holds(nanoseconds(self.document.date?).cmp(value))
            }
            Test::Null { field: Some(field) } => {
                matches!(self.value(*field), Value::Null)
            }
            Test::Null { field: None } => self.document.date.is_none(),
            Test::Unknown => return None,
        })
    }
}

impl ArrayOperator {
    fn holds<T: Eq + std::hash::Hash>(
        self,
        elements: &[Option<T>],
        value: &[Option<T>],
    ) -> bool {
        match self {
            ArrayOperator::Contains => array::contains(elements, value),
            ArrayOperator::ContainedBy => array::contained(elements, value),
            ArrayOperator::Overlaps => array::overlaps(elements, value),
            ArrayOperator::Equal => array::equal(elements, value),
        }
    }
}

/// `text % value`, `text %> value`, `text %>> value` at PostgreSQL's default thresholds.
fn similar(kind: Similarity, text: &str, value: &str) -> bool {
    let (found, threshold) = match kind {
        Similarity::Whole => (similarity(text, value), SIMILARITY_THRESHOLD),
        Similarity::Word => (word_similarity(value, text), WORD_SIMILARITY_THRESHOLD),
        Similarity::StrictWord => {
            (strict_word_similarity(value, text), STRICT_WORD_SIMILARITY_THRESHOLD)
        }
    };
    // The server compares its 32-bit result with the decimal threshold in 64 bits.
    f64::from(found) >= decimal(threshold)
}

/// The 64-bit number that a 32-bit constant was written as.
fn decimal(threshold: f32) -> f64 {
    threshold.to_string().parse().unwrap_or(f64::from(threshold))
}

/// Lexemes made elsewhere, which have no positions.
struct Bare<'a>(&'a [String]);

impl Lexemes for Bare<'_> {
    fn find(
        &self,
        lexeme: &str,
        prefix: bool,
        see: &mut dyn FnMut(&str, &[u16]) -> bool,
    ) {
        let found = |known: &&String| match prefix {
            true => known.starts_with(lexeme),
            false => *known == lexeme,
        };
        for known in self.0.iter().filter(found) {
            if !see(known, &[]) {
                break;
            }
        }
    }
}
