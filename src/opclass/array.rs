//! `array_ops`: the elements of `text[]`, `int[]` and `bigint[]`.
//!
//! Every element is a key, all dimensions flattened; null elements share GIN's "null
//! key" category. Texts order bytewise, as under the collation `C.UTF-8`. The elements
//! of a [`Value::Integers`] are stored as `bigint` unless the configuration is `int`.
//!
//! The functions at the end are the operators themselves, for the recheck: elements
//! compare by equality and a null equals nothing, except in [`equal`].

use std::collections::HashSet;
use std::hash::Hash;

use super::{
    Argument, Extractor, KeyExpr, KeyId, KeyQuery, KeySink, KeyType, OpClass,
    POST_AT_MOST, SearchMode, int4_key, int8_key,
};
use crate::document::{Value, ValueKind};
use crate::error::{Error, Result};

/// Bytes of the longest text that fits into an index entry.
pub const ELEMENT_MAX: usize = 2_700;

/// `array_ops`: elements of an array.
#[derive(Debug)]
pub struct ArrayOps;

impl OpClass for ArrayOps {
    fn name(&self) -> &'static str {
        "array_ops"
    }

    fn summary(&self) -> &'static str {
        "elements of an array (configuration of integer arrays: int or bigint)"
    }

    fn key_type(&self, kind: ValueKind, config: Option<&str>) -> KeyType {
        match (kind, Width::of(config)) {
            (ValueKind::Integers, Ok(Width::Int)) => KeyType::Int4,
            (ValueKind::Integers, _) => KeyType::Int8,
            _ => KeyType::Text,
        }
    }

    fn accepts(&self, kind: ValueKind) -> bool {
        matches!(kind, ValueKind::Texts | ValueKind::Integers)
    }

    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>> {
        Ok(Box::new(ArrayExtractor { width: Width::of(config)?, ids: Vec::new() }))
    }

    fn operators(&self) -> &'static [&'static str] {
        &["&&", "@>", "<@", "="]
    }

    fn query(
        &self,
        config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery> {
        let width = Width::of(config)?;
        let (keys, has_null) = match argument {
            Argument::Texts(elements) => {
                // A longer text is in no index, so it is a key that no item has.
                query_keys(elements, |text| Ok(text.as_bytes().to_vec()))?
            }
            Argument::Integers(elements) => {
                query_keys(elements, |&number| width.key(number, <[u8]>::to_vec))?
            }
            Argument::Text(_) => {
                return Err(Error::invalid(format!(
                    "the right side of {operator} on an array index must be an array"
                )));
            }
        };
        let empty = keys.is_empty() && !has_null;
        let with_null = |mut keys: Vec<KeyExpr>| {
            keys.extend(has_null.then_some(KeyExpr::NullKey));
            keys
        };
        let (expr, mode, recheck) = match operator {
            "&&" => (KeyExpr::Or(keys), SearchMode::Default, false),
            "@>" if has_null => (KeyExpr::Or(Vec::new()), SearchMode::Default, false),
            "@>" if empty => (KeyExpr::And(Vec::new()), SearchMode::All, false),
            "@>" => (KeyExpr::And(keys), SearchMode::Default, false),
            "<@" => (KeyExpr::Or(with_null(keys)), SearchMode::IncludeEmpty, true),
            "=" if empty => (KeyExpr::Or(keys), SearchMode::IncludeEmpty, true),
            "=" => (KeyExpr::And(with_null(keys)), SearchMode::Default, true),
            _ => {
                return Err(Error::invalid(format!(
                    "an array index does not support the operator {operator}, only {}",
                    self.operators().join(" ")
                )));
            }
        };
        Ok(KeyQuery { expr, mode, recheck })
    }
}

/// How integers are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Width {
    Int,
    BigInt,
}

impl Width {
    fn of(config: Option<&str>) -> Result<Width> {
        match config {
            Some("int") => Ok(Width::Int),
            None | Some("bigint") => Ok(Width::BigInt),
            Some(other) => Err(Error::invalid(format!(
                "array_ops takes the configuration int or bigint, not \"{other}\""
            ))),
        }
    }

    /// Calls `with` with the key of a number.
    fn key<T>(self, number: i64, with: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Width::BigInt => Ok(with(&int8_key(number))),
            Width::Int => match i32::try_from(number) {
                Ok(number) => Ok(with(&int4_key(number))),
                Err(_) => {
                    Err(Error::value(format!("{number} is out of range for int")))
                }
            },
        }
    }
}

/// The distinct keys of a query's elements, and whether one is null.
fn query_keys<T: Eq + Hash>(
    elements: &[Option<T>],
    key: impl Fn(&T) -> Result<Vec<u8>>,
) -> Result<(Vec<KeyExpr>, bool)> {
    let mut seen = HashSet::new();
    let mut keys = Vec::new();
    for element in elements.iter().flatten() {
        if seen.insert(element) {
            keys.push(KeyExpr::Key(key(element)?));
        }
    }
    Ok((keys, elements.iter().any(Option::is_none)))
}

/// Posts an array's elements; the sink drops duplicates.
struct ArrayExtractor {
    width: Width,
    ids: Vec<KeyId>,
}

impl ArrayExtractor {
    fn elements<T>(
        &mut self,
        elements: &[Option<T>],
        sink: &mut dyn KeySink,
        id: impl Fn(&T, &mut dyn KeySink) -> Result<KeyId>,
    ) -> Result<()> {
        self.ids.clear();
        for element in elements.iter().flatten() {
            self.ids.push(id(element, sink)?);
            if self.ids.len() == POST_AT_MOST {
                sink.post(&self.ids)?;
                self.ids.clear();
            }
        }
        if !self.ids.is_empty() {
            sink.post(&self.ids)?;
        }
        if elements.iter().any(Option::is_none) {
            sink.post_null()?;
        }
        Ok(())
    }
}

impl Extractor for ArrayExtractor {
    fn extract(&mut self, value: &Value<'_>, sink: &mut dyn KeySink) -> Result<()> {
        let width = self.width;
        match value {
            Value::Texts(elements) => self.elements(elements, sink, |text, sink| {
                if text.len() > ELEMENT_MAX {
                    return Err(Error::value(format!(
                        "an array element of {} bytes is too long for an index entry \
                         (at most {ELEMENT_MAX})",
                        text.len()
                    )));
                }
                Ok(sink.key(text.as_bytes()))
            }),
            Value::Integers(elements) => {
                self.elements(elements, sink, |&number, sink| {
                    width.key(number, |key| sink.key(key))
                })
            }
            _ => Err(Error::invalid("array_ops takes arrays only")),
        }
    }

    fn forget(&mut self) {
        self.ids = Vec::new();
    }

    fn memory(&self) -> usize {
        self.ids.capacity() * size_of::<KeyId>()
    }
}

/// `a @> b`: every element of `b` is in `a`.
pub fn contains<T: Eq + Hash>(a: &[Option<T>], b: &[Option<T>]) -> bool {
    let known: HashSet<&T> = a.iter().flatten().collect();
    b.iter().all(|element| element.as_ref().is_some_and(|e| known.contains(e)))
}

/// `a <@ b`: every element of `a` is in `b`.
pub fn contained<T: Eq + Hash>(a: &[Option<T>], b: &[Option<T>]) -> bool {
    contains(b, a)
}

/// `a && b`: the two have an element in common.
pub fn overlaps<T: Eq + Hash>(a: &[Option<T>], b: &[Option<T>]) -> bool {
    let known: HashSet<&T> = a.iter().flatten().collect();
    b.iter().flatten().any(|element| known.contains(element))
}

/// `a = b` of one-dimensional arrays: the same elements in the same order, null equal
/// to null.
pub fn equal<T: Eq>(a: &[Option<T>], b: &[Option<T>]) -> bool {
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::{int4_of, int8_of};

    /// Collects keys as the accumulator would.
    #[derive(Default)]
    struct Sink {
        keys: Vec<Vec<u8>>,
        posted: Vec<Vec<u8>>,
        null: bool,
    }

    impl KeySink for Sink {
        fn key(&mut self, key: &[u8]) -> KeyId {
            self.keys.push(key.to_vec());
            KeyId::try_from(self.keys.len() - 1).unwrap()
        }

        fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
            assert!(ids.len() <= POST_AT_MOST);
            self.posted.extend(ids.iter().map(|&id| self.keys[id as usize].clone()));
            Ok(false)
        }

        fn post_null(&mut self) -> Result<()> {
            self.null = true;
            Ok(())
        }
    }

    fn extract(config: Option<&str>, value: &Value<'_>) -> Result<Sink> {
        let mut sink = Sink::default();
        ArrayOps.extractor(config)?.extract(value, &mut sink)?;
        Ok(sink)
    }

    fn texts(elements: &[Option<&str>]) -> Vec<Option<String>> {
        elements.iter().map(|element| element.map(str::to_owned)).collect()
    }

    fn query(operator: &str, elements: &[Option<&str>]) -> KeyQuery {
        ArrayOps.query(None, operator, &Argument::Texts(texts(elements))).unwrap()
    }

    #[test]
    fn elements_are_keys_and_nulls_are_posted_apart() {
        let value = Value::Texts(texts(&[Some("b"), None, Some(""), Some("b")]));
        let sink = extract(None, &value).unwrap();
        assert_eq!(sink.posted, [&b"b"[..], b"", b"b"]);
        assert!(sink.null);
        let numbers: Vec<_> = (-400..400).map(Some).collect();
        let sink = extract(None, &Value::Integers(numbers)).unwrap();
        assert_eq!(sink.posted.len(), 800);
        assert_eq!(int8_of(sink.posted[0][..].try_into().unwrap()), -400);
        assert!(sink.posted.is_sorted());
        assert!(!sink.null);
    }

    #[test]
    fn the_configuration_decides_how_wide_integers_are() {
        let class = &ArrayOps;
        assert_eq!(class.key_type(ValueKind::Integers, Some("int")), KeyType::Int4);
        assert_eq!(class.key_type(ValueKind::Integers, None), KeyType::Int8);
        assert_eq!(class.key_type(ValueKind::Texts, None), KeyType::Text);
        let sink = extract(Some("int"), &Value::Integers(vec![Some(-7)])).unwrap();
        assert_eq!(int4_of(sink.posted[0][..].try_into().unwrap()), -7);
        let wide = Value::Integers(vec![Some(1 << 31)]);
        let error = extract(Some("int"), &wide).err().unwrap().to_string();
        assert_eq!(error, "2147483648 is out of range for int");
        let error = class.extractor(Some("float")).err().unwrap().to_string();
        assert!(error.contains("int or bigint, not \"float\""), "{error}");
    }

    #[test]
    fn an_element_too_long_for_an_entry_is_refused() {
        let value = |len| Value::Texts(vec![Some("x".repeat(len))]);
        assert!(extract(None, &value(ELEMENT_MAX)).is_ok());
        let error = extract(None, &value(ELEMENT_MAX + 1)).err().unwrap();
        assert!(error.to_string().contains("element of 2701 bytes"), "{error}");
    }

    #[test]
    fn operators_ask_for_keys_as_postgresql_does() {
        use SearchMode::{All, Default, IncludeEmpty};
        let key = |text: &str| KeyExpr::Key(text.into());
        let (a, b) = (Some("a"), Some("b"));
        let cases = [
            ("&&", vec![a, None, b, a], KeyExpr::Or(vec![key("a"), key("b")]), Default),
            ("&&", vec![], KeyExpr::Or(vec![]), Default),
            ("@>", vec![a, b], KeyExpr::And(vec![key("a"), key("b")]), Default),
            ("@>", vec![a, None], KeyExpr::Or(vec![]), Default),
            ("@>", vec![], KeyExpr::And(vec![]), All),
            (
                "<@",
                vec![a, None],
                KeyExpr::Or(vec![key("a"), KeyExpr::NullKey]),
                IncludeEmpty,
            ),
            (
                "=",
                vec![a, None],
                KeyExpr::And(vec![key("a"), KeyExpr::NullKey]),
                Default,
            ),
            ("=", vec![], KeyExpr::Or(vec![]), IncludeEmpty),
        ];
        for (operator, elements, expr, mode) in cases {
            let got = query(operator, &elements);
            let recheck = matches!(operator, "<@" | "=");
            assert_eq!(
                got,
                KeyQuery { expr, mode, recheck },
                "{operator} {elements:?}"
            );
        }
        let error = ArrayOps.query(None, "@@", &Argument::Texts(vec![])).unwrap_err();
        assert!(error.to_string().contains("operator @@, only && @> <@ ="), "{error}");
    }

    #[test]
    fn a_null_equals_nothing_but_itself_in_equality() {
        let null: &[Option<i64>] = &[None];
        assert!(!contained(null, null));
        assert!(!overlaps(null, null));
        assert!(contains(null, &[]));
        assert!(equal(null, null));
        assert!(contains(&[Some(1), None, Some(2)], &[Some(2), Some(2)]));
        assert!(!equal(&[Some(1), Some(2)], &[Some(2), Some(1)]));
        assert!(overlaps(&[Some(1), None], &[Some(3), Some(1)]));
    }
}
