//! `jsonb_ops` and `jsonb_path_ops`.

use super::{Argument, Extractor, KeyQuery, KeyType, OpClass};
use crate::document::ValueKind;
use crate::error::{Error, Result};

/// `jsonb_ops`: keys and values of a JSON value.
#[derive(Debug)]
pub struct JsonbOps;

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
        matches!(kind, ValueKind::Json)
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

/// `jsonb_path_ops`: hashed paths with values of a JSON value.
#[derive(Debug)]
pub struct JsonbPathOps;

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
        matches!(kind, ValueKind::Json)
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
