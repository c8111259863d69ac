//! Regular expressions: the trigrams that a matching text must have.

use regex_syntax::hir::Hir;

use super::KeyExpr;
use crate::error::{Error, Result};

/// The trigrams that every text matched by the pattern has, as a tree that is true for
/// all of these texts; [`KeyExpr::Maybe`] when the pattern says too little.
pub fn regex_keys(pattern: &str, case_insensitive: bool) -> Result<KeyExpr> {
    let _ = parse(pattern, case_insensitive)?;
    Ok(KeyExpr::Maybe)
}

/// Reads a pattern in the dialect of the `regex` crate, which does the recheck.
fn parse(pattern: &str, case_insensitive: bool) -> Result<Hir> {
    regex_syntax::ParserBuilder::new()
        .case_insensitive(case_insensitive)
        .build()
        .parse(pattern)
        .map_err(|error| {
            let (reason, at) = match &error {
                regex_syntax::Error::Parse(error) => {
                    (error.kind().to_string(), error.span().start.offset)
                }
                regex_syntax::Error::Translate(error) => {
                    (error.kind().to_string(), error.span().start.offset)
                }
                _ => (error.to_string(), 0),
            };
            Error::invalid(format!(
                "cannot use the regular expression \"{pattern}\": at byte {at}: {reason}"
            ))
        })
}
