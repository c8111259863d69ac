//! `tsvector_ops`: words.

pub mod tsquery;

use super::{Argument, Extractor, KeyQuery, KeyType, OpClass};
use crate::document::ValueKind;
use crate::error::{Error, Result};

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
    fn extractor(&self, _config: Option<&str>) -> Result<Box<dyn Extractor>> {
        Err(Error::invalid("not built yet"))
    }
    fn operators(&self) -> &'static [&'static str] {
        &[]
    }
    fn query(
        &self,
        _config: Option<&str>,
        _operator: &str,
        _argument: &Argument,
    ) -> Result<KeyQuery> {
        Err(Error::invalid("not built yet"))
    }
}
