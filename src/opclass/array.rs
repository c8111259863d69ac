//! `array_ops`: elements of arrays.

use super::{Argument, Extractor, KeyQuery, KeyType, OpClass};
use crate::document::ValueKind;
use crate::error::{Error, Result};

/// `array_ops`: elements of an array.
#[derive(Debug)]
pub struct ArrayOps;

impl OpClass for ArrayOps {
    fn name(&self) -> &'static str {
        "array_ops"
    }
    fn summary(&self) -> &'static str {
        "elements of an array"
    }
    fn key_type(&self, _kind: ValueKind, _config: Option<&str>) -> KeyType {
        KeyType::Text
    }
    fn accepts(&self, kind: ValueKind) -> bool {
        matches!(kind, ValueKind::Texts | ValueKind::Integers)
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
