//! LIKE and ILIKE: the trigrams a pattern requires, and the matcher of the recheck.
//!
//! In a pattern `%` stands for any run of characters, `_` for one character, and `\`
//! makes the next character stand for itself. The matcher compares characters, as
//! PostgreSQL does in UTF-8; ILIKE lower-cases pattern and text first.

use memchr::memmem::Finder;

use super::window::{self, BLANK};
use crate::error::{Error, Result};
use crate::opclass::ctype;

/// The keys of all trigrams that a text must have to match the pattern, in index order.
/// Empty when the pattern says too little; the same for LIKE and ILIKE.
///
/// A run of word characters of the pattern is padded like a word, but not on a side
/// where a wildcard touches it.
pub fn like_keys(pattern: &str) -> Vec<i32> {
    let mut scan = Scan { rest: pattern, quoted: None };
    let mut keys = Vec::new();
    let mut part = Vec::new();
    while let Some(wildcard_before) = scan.skip_to_word() {
        part.clear();
        if !wildcard_before {
            part.extend([BLANK; 2]);
        }
        if !scan.take_word(&mut part) {
            part.push(BLANK);
        }
        keys.extend(part.windows(3).map(|w| window::key_of([w[0], w[1], w[2]])));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A place in a pattern.
struct Scan<'a> {
    rest: &'a str,
    /// `rest` as it was at the `\` just read, if the next character is quoted by it.
    quoted: Option<&'a str>,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Goes to the next word character and says whether a wildcard comes right before
    /// it; `None` at the end of the pattern.
    fn skip_to_word(&mut self) -> Option<bool> {
        let mut wildcard = false;
        loop {
            let before = self.rest;
            let c = self.next()?;
            if ctype::is_alnum(c) {
                self.rest = before;
                return Some(wildcard);
            }
            if self.quoted.take().is_some() {
                wildcard = false;
            } else if c == '\\' {
                self.quoted = Some(before);
            } else {
                wildcard = matches!(c, '%' | '_');
            }
        }
    }

    /// Appends word characters, lower-cased, up to what ends the word; says whether
    /// that is a wildcard. What ended it is left to be read again.
    fn take_word(&mut self, part: &mut Vec<char>) -> bool {
        loop {
            let before = self.rest;
            let Some(c) = self.next() else { return false };
            if ctype::is_alnum(c) {
                self.quoted = None;
                part.push(ctype::lower(c));
            } else if let Some(backslash) = self.quoted.take() {
                self.rest = backslash;
                return false;
            } else if c == '\\' {
                self.quoted = Some(before);
            } else {
                self.rest = before;
                return matches!(c, '%' | '_');
            }
        }
    }
}

/// A compiled LIKE or ILIKE pattern.
///
/// The pattern is cut at its `%`; each piece is looked for behind the one before it,
/// leftmost first, which needs no way back, whatever the pattern.
///
/// ```
/// use ginmill::opclass::trigram::Like;
///
/// let like = Like::new("re:%p_tch%", true)?;
/// assert!(like.matches("Re: [PATCH] parallel GIN builds"));
/// # Ok::<(), ginmill::Error>(())
/// ```
#[derive(Debug)]
pub struct Like {
    /// Lower-case the text first.
    fold: bool,
    /// What the text begins with.
    head: Piece,
    /// What comes then, in this order, with anything between; `None` without any `%`.
    tail: Option<(Vec<Piece>, Piece)>,
}

/// What stands between two `%`.
#[derive(Debug, Default)]
struct Piece {
    /// Literal texts with one character of any kind between them.
    literals: Vec<String>,
    /// Finds the longest of them; its number.
    finder: Option<(usize, Finder<'static>)>,
}

impl Like {
    /// Fails when the pattern ends in an unpaired `\` (PostgreSQL's 22025, which it
    /// raises only when a text matches that far).
    pub fn new(pattern: &str, case_insensitive: bool) -> Result<Like> {
        let folded = case_insensitive.then(|| lower(pattern));
        let mut characters = folded.as_deref().unwrap_or(pattern).chars();
        let mut pieces = Vec::new();
        let mut literals = vec![String::new()];
        while let Some(c) = characters.next() {
            let c = match c {
                '%' => {
                    let full = std::mem::replace(&mut literals, vec![String::new()]);
                    pieces.push(Piece::new(full));
                    continue;
                }
                '_' => {
                    literals.push(String::new());
                    continue;
                }
                '\\' => characters.next().ok_or_else(|| {
                    Error::invalid(format!(
                        "LIKE pattern \"{pattern}\" must not end with the escape \
                         character \"\\\""
                    ))
                })?,
                c => c,
            };
            literals.last_mut().expect("never empty").push(c);
        }
        let last = Piece::new(literals);
        Ok(if pieces.is_empty() {
            Like { fold: case_insensitive, head: last, tail: None }
        } else {
            let head = pieces.remove(0);
            pieces.retain(|piece| !piece.is_empty());
            Like { fold: case_insensitive, head, tail: Some((pieces, last)) }
        })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        if self.fold {
            self.matches_folded(&lower(text))
        } else {
            self.matches_folded(text)
        }
    }

    fn matches_folded(&self, text: &str) -> bool {
        let Some(mut rest) = self.head.strip(text) else { return false };
        let Some((middle, last)) = &self.tail else { return rest.is_empty() };
        for piece in middle {
            match piece.find(rest) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        last.ends(rest)
    }
}

impl Piece {
    fn new(literals: Vec<String>) -> Piece {
        let longest = (0..literals.len()).max_by_key(|&n| literals[n].len());
        let finder = longest
            .filter(|&n| !literals[n].is_empty())
            .map(|n| (n, Finder::new(literals[n].as_bytes()).into_owned()));
        Piece { literals, finder }
    }

    fn is_empty(&self) -> bool {
        self.literals.iter().all(String::is_empty) && self.literals.len() <= 1
    }

    /// What is left of the text behind the piece, if the text begins with it.
    fn strip<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut rest = text;
        for (n, literal) in self.literals.iter().enumerate() {
            if n > 0 {
                rest = skip_one(rest)?;
            }
            rest = rest.strip_prefix(literal.as_str())?;
        }
        Some(rest)
    }

    /// What is left of the text behind the first place where the piece is.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let Some((longest, finder)) = &self.finder else { return self.strip(text) };
        let mut from = 0;
        loop {
            let at = from + finder.find(&text.as_bytes()[from..])?;
            let start = self.start_of(&text[..at], *longest);
            if let Some(rest) = start.and_then(|start| self.strip(&text[start..])) {
                return Some(rest);
            }
            from = at + 1;
        }
    }

    /// Where the piece would start for its literal number `longest` to start at the
    /// end of `before`.
    fn start_of(&self, before: &str, longest: usize) -> Option<usize> {
        let mut rest = before;
        for literal in self.literals[..longest].iter().rev() {
            let (at, _) = rest.char_indices().next_back()?;
            rest = rest[..at].strip_suffix(literal.as_str())?;
        }
        Some(rest.len())
    }

    /// Whether the text ends with the piece.
    fn ends(&self, text: &str) -> bool {
        let mut rest = text;
        for (n, literal) in self.literals.iter().rev().enumerate() {
            if n > 0 {
                match rest.char_indices().next_back() {
                    Some((at, _)) => rest = &rest[..at],
                    None => return false,
                }
            }
            match rest.strip_suffix(literal.as_str()) {
                Some(before) => rest = before,
                None => return false,
            }
        }
        true
    }
}

fn skip_one(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next()?;
    Some(characters.as_str())
}

fn lower(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().map(ctype::lower).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_require_the_trigrams_postgresql_looks_for() {
        let vectors = include_str!("../../../fixtures/keys/like_trgm.jsonl");
        let mut count = 0;
        for line in vectors.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let pattern = vector["like"].as_str().unwrap();
            let expected: Vec<i32> =
                serde_json::from_value(vector["keys"].clone()).unwrap();
            assert_eq!(like_keys(pattern), expected, "{pattern:?}");
            count += 1;
        }
        assert_eq!(count, 107);
    }

    /// The definition, character by character, exponential as it is.
    fn plain(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|n| plain(rest, &text[n..])),
            ['_', rest @ ..] => !text.is_empty() && plain(rest, &text[1..]),
            ['\\', c, rest @ ..] | [c, rest @ ..] => {
                text.first() == Some(c) && plain(rest, &text[1..])
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_matcher_agrees_with_the_definition(
            pattern in r"([ab%_éß]|\\[ab%_\\é]){0,9}",
            text in "[abABé%_\\\\É]{0,9}",
            fold in proptest::bool::ANY,
        ) {
            let characters = |s: &str| -> Vec<char> {
                s.chars().map(|c| if fold { ctype::lower(c) } else { c }).collect()
            };
            let like = Like::new(&pattern, fold).unwrap();
            proptest::prop_assert_eq!(
                like.matches(&text),
                plain(&characters(&pattern), &characters(&text))
            );
        }
    }

    #[test]
    fn a_pattern_of_many_wildcards_takes_linear_time() {
        let like = Like::new(&format!("{}b", "%a".repeat(2_000)), false).unwrap();
        assert!(!like.matches(&"a".repeat(1_000_000)));
        assert!(like.matches(&format!("{}b", "a".repeat(1_000_000))));
    }

    #[test]
    fn an_unpaired_backslash_at_the_end_is_refused() {
        let error = Like::new("abc\\", false).unwrap_err().to_string();
        assert!(error.contains("must not end with the escape character"), "{error}");
        assert!(Like::new("abc\\\\", false).unwrap().matches("abc\\"));
    }
}
