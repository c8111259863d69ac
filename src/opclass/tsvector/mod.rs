//! `tsvector_ops`: words.
//!
//! A text goes through the word [`parser`], whose tokens a text search [`Config`] sends
//! to dictionaries; what comes back are the lexemes, which are the keys. [`TsVector`] is
//! the lexemes with their positions, for phrases, weights and rechecks.

pub mod tsquery;

use super::{Argument, Extractor, KeyQuery, KeyType, OpClass};
use crate::document::ValueKind;
use crate::error::{Error, Result};

mod cache;
mod config;
mod dictionary;
mod extract;
mod failures;
#[cfg(test)]
mod fixtures;
mod languages;
mod machine;
pub mod parser;
mod stemmer;
mod table;
mod vector;

use extract::TsvectorExtractor;

pub use config::{Config, Lexized};
pub use vector::{TsVector, position_of, weight_of};

/// What is taken where no configuration is named, as PostgreSQL does for an English
/// locale.
const DEFAULT_CONFIG: &str = "english";

/// `tsvector_ops`: lexemes of a text.
#[derive(Debug)]
pub struct TsvectorOps;

impl OpClass for TsvectorOps {
    fn name(&self) -> &'static str {
        "tsvector_ops"
    }
    fn summary(&self) -> &'static str {
        "lexemes of a text"
    }
    fn key_type(&self, _kind: ValueKind, _config: Option<&str>) -> KeyType {
        KeyType::Text
    }
    fn accepts(&self, kind: ValueKind) -> bool {
        matches!(kind, ValueKind::Text | ValueKind::Lexemes)
    }
    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>> {
        let config = Config::find(config.unwrap_or(DEFAULT_CONFIG))?;
        Ok(Box::new(TsvectorExtractor::new(config)))
    }
    fn operators(&self) -> &'static [&'static str] {
        &["@@", "@@@"]
    }
    fn query(
        &self,
        _config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery> {
        match (operator, argument) {
            ("@@" | "@@@", Argument::Text(query)) => tsquery::key_query(query),
            _ => Err(Error::invalid(format!(
                "tsvector_ops takes `@@` with a tsquery, found `{operator}` with {argument:?}"
            ))),
        }
    }
}
