//! `gin_trgm_ops`: trigrams of a text, for LIKE, regular expressions and similarity.
//!
//! `window` says what the trigrams of a text are, `extractor` finds them fast,
//! `similarity` compares texts by them, `pattern` and `regex` turn patterns into the
//! trigrams that a matching text must have. Answers to PostgreSQL's pg_trgm 1.6.
//!
//! Every query needs the recheck: trigrams say nothing about order and place, and
//! different ones outside ASCII can have the same key. A query that requires no trigram
//! at all is a scan of everything ([`SearchMode::All`]).

use super::{
    Argument, Extractor, KeyExpr, KeyQuery, KeyType, OpClass, SearchMode, int4_key,
};
use crate::document::ValueKind;
use crate::error::{Error, Result};

mod extractor;
mod need;
mod pattern;
mod regex;
mod similarity;
mod symbols;
mod window;

pub use pattern::{Like, like_keys};
pub use regex::regex_keys;
pub use similarity::{
    SIMILARITY_THRESHOLD, STRICT_WORD_SIMILARITY_THRESHOLD, WORD_SIMILARITY_THRESHOLD,
    similarity, strict_word_similarity, word_similarity,
};
pub use window::{show, text_of};

/// The distinct trigrams of a text, in index order.
///
/// ```
/// use ginmill::opclass::trigram::{show, trigrams};
///
/// assert_eq!(show(&trigrams("Foo!")), ["  f", " fo", "foo", "oo "]);
/// ```
pub fn trigrams(text: &str) -> Vec<i32> {
    let mut keys = Vec::new();
    window::each_window(text, |window| keys.push(window.key));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// `gin_trgm_ops`: trigrams of a text.
#[derive(Debug)]
pub struct TrigramOps;

impl OpClass for TrigramOps {
    fn name(&self) -> &'static str {
        "gin_trgm_ops"
    }

    fn summary(&self) -> &'static str {
        "trigrams of a text, for LIKE, regular expressions and similarity"
    }

    fn key_type(&self, _kind: ValueKind, _config: Option<&str>) -> KeyType {
        KeyType::Int4
    }

    fn accepts(&self, kind: ValueKind) -> bool {
        kind == ValueKind::Text
    }

    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>> {
        no_config(config)?;
        Ok(Box::new(extractor::TrigramExtractor::new()))
    }

    fn operators(&self) -> &'static [&'static str] {
        &["LIKE", "ILIKE", "~~", "~~*", "~", "~*", "=", "%", "%>", "%>>"]
    }

    fn query(
        &self,
        config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery> {
        no_config(config)?;
        let Argument::Text(text) = argument else {
            return Err(Error::invalid(format!(
                "the right side of {operator} on a trigram index must be a string"
            )));
        };
        let expr = match operator {
            "LIKE" | "ILIKE" | "~~" | "~~*" => all_of(&like_keys(text)),
            "~" | "~*" => regex_keys(text, operator == "~*")?,
            "=" => all_of(&trigrams(text)),
            "%" => similar(text, SIMILARITY_THRESHOLD),
            "%>" => similar(text, WORD_SIMILARITY_THRESHOLD),
            "%>>" => similar(text, STRICT_WORD_SIMILARITY_THRESHOLD),
            _ => {
                return Err(Error::invalid(format!(
                    "a trigram index does not support the operator {operator}, only {}",
                    self.operators().join(" ")
                )));
            }
        };
        let mode = match expr {
            KeyExpr::Maybe => SearchMode::All,
            _ => SearchMode::Default,
        };
        Ok(KeyQuery { expr, mode, recheck: true })
    }
}

fn no_config(config: Option<&str>) -> Result<()> {
    match config {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "gin_trgm_ops takes no configuration, but \"{name}\" was given"
        ))),
    }
}

fn key(key: i32) -> KeyExpr {
    KeyExpr::Key(int4_key(key).to_vec())
}

fn all_of(keys: &[i32]) -> KeyExpr {
    match keys {
        [] => KeyExpr::Maybe,
        _ => KeyExpr::And(keys.iter().copied().map(key).collect()),
    }
}

/// At least the share `threshold` of the text's trigrams; nothing is similar to a text
/// that has none.
#[expect(clippy::cast_precision_loss, reason = "PostgreSQL divides 32-bit floats")]
fn similar(text: &str, threshold: f32) -> KeyExpr {
    let keys = trigrams(text);
    let all = keys.len() as f32;
    let enough = (1..=keys.len()).find(|&some| some as f32 / all >= threshold);
    match enough.and_then(|least| u32::try_from(least).ok()) {
        Some(least) => KeyExpr::AtLeast(least, keys.into_iter().map(key).collect()),
        None => KeyExpr::Or(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(operator: &str, text: &str) -> KeyQuery {
        TrigramOps.query(None, operator, &Argument::Text(text.into())).unwrap()
    }

    #[test]
    fn a_query_without_trigrams_is_a_scan_of_everything_unless_it_is_for_similar_texts()
    {
        for (operator, text) in
            [("LIKE", "%ab%"), ("~~*", ""), ("=", "-"), ("~", "a.c"), ("~*", "ab")]
        {
            let got = query(operator, text);
            assert_eq!(got.expr, KeyExpr::Maybe, "{operator}");
            assert_eq!((got.mode, got.recheck), (SearchMode::All, true), "{operator}");
        }
        for operator in ["%", "%>", "%>>"] {
            let got = query(operator, "-");
            assert_eq!(got.expr, KeyExpr::Or(vec![]), "{operator}");
            assert_eq!((got.mode, got.recheck), (SearchMode::Default, true));
        }
    }

    #[test]
    fn similar_texts_have_a_share_of_the_trigrams() {
        // Ten trigrams; 6/10 is 0.6 also in 32 bits.
        for (operator, expected) in [("%", 3), ("%>", 6), ("%>>", 5)] {
            match query(operator, "abcdefghi").expr {
                KeyExpr::AtLeast(least, keys) => {
                    assert_eq!((least, keys.len()), (expected, 10), "{operator}");
                }
                other => panic!("{operator}: {other:?}"),
            }
        }
    }

    #[test]
    fn every_operator_listed_is_taken_and_no_other() {
        for operator in TrigramOps.operators() {
            let got = query(operator, "abcd");
            assert_eq!((got.mode, got.recheck), (SearchMode::Default, true));
        }
        let text = Argument::Text("abcd".into());
        let error = TrigramOps.query(None, "@@", &text).unwrap_err().to_string();
        assert!(error.contains("does not support the operator @@"), "{error}");
        let array = Argument::Texts(vec![]);
        let error = TrigramOps.query(None, "~", &array).unwrap_err().to_string();
        assert!(error.contains("must be a string"), "{error}");
        let error = TrigramOps.extractor(Some("english")).err().unwrap().to_string();
        assert!(error.contains("takes no configuration"), "{error}");
    }
}
