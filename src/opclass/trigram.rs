//! `gin_trgm_ops`: trigrams.

use super::{Argument, Extractor, KeyQuery, KeyType, OpClass};
use crate::document::ValueKind;
use crate::error::{Error, Result};

/// `gin_trgm_ops`: trigrams of a text.
#[derive(Debug)]
pub struct TrigramOps;

impl OpClass for TrigramOps {
    fn name(&self) -> &'static str {
        "gin_trgm_ops"
    }
    fn summary(&self) -> &'static str {
        "trigrams of a text"
    }
    fn key_type(&self, _kind: ValueKind) -> KeyType {
        KeyType::Int4
    }
    fn accepts(&self, kind: ValueKind) -> bool {
        matches!(kind, ValueKind::Text)
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
