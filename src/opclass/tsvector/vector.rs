//! `tsvector`: the distinct lexemes of a text, each with its positions.
//!
//! Answers to PostgreSQL's `tsvector.c` and `to_tsany.c`: the order, the limits and the
//! text form are those.

use std::fmt;
use std::ops::Range;

use super::config::{Config, POSITION_MAX};
use crate::error::{Error, Result};

/// Positions that `to_tsvector` keeps of a lexeme.
const POSITIONS_OF_TEXT: usize = 255;
/// Positions that the text form may have of a lexeme.
const POSITIONS_OF_INPUT: usize = 256;
/// The longest lexeme, bytes.
const LEXEME_MAX: usize = (1 << 11) - 2;
/// The largest data area, bytes.
const DATA_MAX: usize = (1 << 20) - 1;

/// Place of a lexeme in a vector's strings and positions.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    lexeme: Range<u32>,
    positions: Range<u32>,
}

/// Distinct lexemes in byte order, each with ascending positions.
///
/// A position is a `u16` as in PostgreSQL: the low 14 bits count words from 1, the top
/// two are the weight, D = 0 to A = 3 ([`position_of`], [`weight_of`]).
///
/// ```
/// use ginmill::opclass::tsvector::{Config, TsVector};
///
/// let vector = TsVector::to_tsvector(Config::find("english")?, "The cats' cat")?;
/// assert_eq!(vector.to_string(), "'cat':2,3");
/// assert_eq!(vector.get("cat"), Some(&[2, 3][..]));
/// # Ok::<(), ginmill::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TsVector {
    text: String,
    positions: Vec<u16>,
    entries: Vec<Entry>,
}

/// The place in the document, 1 to 16,383.
pub fn position_of(word: u16) -> u16 {
    word & POSITION_MAX
}

/// The weight: D = 0, C = 1, B = 2, A = 3.
pub fn weight_of(word: u16) -> u16 {
    word >> 14
}

impl TsVector {
    /// The vector of a text. Fails with `ErrorKind::Value` where it would be larger than
    /// PostgreSQL allows.
    pub fn to_tsvector(config: &Config, text: &str) -> Result<TsVector> {
        let vector = TsVector::of(config, text);
        vector.check_size()?;
        Ok(vector)
    }

    /// The vector of a text, however large: for rechecks on documents that PostgreSQL
    /// would refuse and we index all the same.
    pub fn of(config: &Config, text: &str) -> TsVector {
        let mut words = Words::default();
        config.lexemes(text, &mut |lexeme, position| words.push(lexeme, position));
        words.into_vector(POSITIONS_OF_TEXT, |_, _| false)
    }

    /// Reads the text form, as `'cat':2,3A 'dog'`.
    pub fn parse(input: &str) -> Result<TsVector> {
        let mut words = Words::default();
        let mut reader = Reader { input, at: 0 };
        let mut raw = 0;
        let mut lexeme = String::new();
        while reader.word(&mut lexeme)? {
            if lexeme.len() > LEXEME_MAX {
                return Err(Error::value(format!(
                    "word is too long ({} bytes, max {LEXEME_MAX} bytes)",
                    lexeme.len()
                )));
            }
            raw += lexeme.len();
            if raw > DATA_MAX {
                return Err(too_large(raw));
            }
            let before = words.pairs.len();
            reader.positions(&mut |position| words.push(&lexeme, position))?;
            if words.pairs.len() == before {
                words.push(&lexeme, 0);
            }
        }
        // of equal positions the higher weight stays
        let vector = words.into_vector(POSITIONS_OF_INPUT, |kept, other| {
            *kept = other.max(*kept);
            true
        });
        vector.check_size()?;
        Ok(vector)
    }

    /// Number of lexemes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without lexemes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The lexemes in byte order, with their positions (none for a stripped lexeme).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u16])> {
        self.entries.iter().map(|entry| self.entry(entry))
    }

    /// The positions of a lexeme, `None` where the vector does not have it.
    pub fn get(&self, lexeme: &str) -> Option<&[u16]> {
        let found =
            self.entries.binary_search_by(|entry| self.lexeme(entry).cmp(lexeme));
        Some(self.entry(&self.entries[found.ok()?]).1)
    }

    /// The lexemes that begin with `prefix`, in byte order.
    pub fn with_prefix<'v>(
        &'v self,
        prefix: &'v str,
    ) -> impl Iterator<Item = (&'v str, &'v [u16])> {
        let first = self.entries.partition_point(|entry| self.lexeme(entry) < prefix);
        self.entries[first..]
            .iter()
            .map(|entry| self.entry(entry))
            .take_while(move |(lexeme, _)| lexeme.starts_with(prefix))
    }

    fn lexeme(&self, entry: &Entry) -> &str {
        &self.text[entry.lexeme.start as usize..entry.lexeme.end as usize]
    }

    fn entry(&self, entry: &Entry) -> (&str, &[u16]) {
        let positions = entry.positions.start as usize..entry.positions.end as usize;
        (self.lexeme(entry), &self.positions[positions])
    }

    /// Bytes of PostgreSQL's data area: lexemes, each list of positions at an even
    /// offset behind its count.
    fn data_size(&self) -> usize {
        self.iter().fold(0, |size, (lexeme, positions)| {
            let size = size + lexeme.len();
            if positions.is_empty() {
                size
            } else {
                size.next_multiple_of(2) + 2 + 2 * positions.len()
            }
        })
    }

    fn check_size(&self) -> Result<()> {
        let size = self.data_size();
        if size > DATA_MAX { Err(too_large(size)) } else { Ok(()) }
    }
}

fn too_large(size: usize) -> Error {
    Error::value(format!(
        "string is too long for tsvector ({size} bytes, max {DATA_MAX} bytes)"
    ))
}

impl fmt::Display for TsVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (lexeme, positions)) in self.iter().enumerate() {
            f.write_str(if number == 0 { "'" } else { " '" })?;
            for part in lexeme.split_inclusive(['\'', '\\']) {
                f.write_str(part)?;
                if let Some(doubled) =
                    part.chars().last().filter(|c| matches!(c, '\'' | '\\'))
                {
                    write!(f, "{doubled}")?;
                }
            }
            f.write_str("'")?;
            for (number, &word) in positions.iter().enumerate() {
                let weight = ["", "C", "B", "A"][usize::from(weight_of(word))];
                let sign = if number == 0 { ':' } else { ',' };
                write!(f, "{sign}{}{weight}", position_of(word))?;
            }
        }
        Ok(())
    }
}

/// Lexemes as they come, before they are sorted; position word 0 stands for none.
#[derive(Default)]
struct Words {
    text: String,
    pairs: Vec<(Range<u32>, u16)>,
}

impl Words {
    fn push(&mut self, lexeme: &str, position: u16) {
        let offset =
            |len: usize| u32::try_from(len).expect("a text's lexemes fit in 4 GB");
        let start = offset(self.text.len());
        self.text.push_str(lexeme);
        self.pairs.push((start..offset(self.text.len()), position));
    }

    /// Sorts and merges; of each lexeme at most `keep` positions. `equal` says whether
    /// it dealt with a position equal to the last one kept; otherwise that is dropped.
    fn into_vector(
        mut self,
        keep: usize,
        mut equal: impl FnMut(&mut u16, u16) -> bool,
    ) -> TsVector {
        let text = &self.text;
        let lexeme =
            |range: &Range<u32>| &text[range.start as usize..range.end as usize];
        self.pairs.sort_by(|(one, at), (other, other_at)| {
            lexeme(one)
                .cmp(lexeme(other))
                .then(position_of(*at).cmp(&position_of(*other_at)))
        });
        let mut vector = TsVector::default();
        for (range, word) in &self.pairs {
            let lexeme = lexeme(range);
            let known = vector.entries.last().map(|last| vector.lexeme(last));
            if known != Some(lexeme) {
                let start =
                    u32::try_from(vector.text.len()).expect("no more than before");
                vector.text.push_str(lexeme);
                let end =
                    u32::try_from(vector.text.len()).expect("no more than before");
                let none =
                    u32::try_from(vector.positions.len()).expect("one per lexeme");
                vector
                    .entries
                    .push(Entry { lexeme: start..end, positions: none..none });
            }
            if *word == 0 {
                continue;
            }
            let entry = vector.entries.last_mut().expect("pushed above");
            let kept = (entry.positions.end - entry.positions.start) as usize;
            if kept > 0 {
                let last = vector.positions.last_mut().expect("one is kept");
                if position_of(*last) == position_of(*word) {
                    equal(last, *word);
                    continue;
                }
                if kept >= keep || position_of(*last) == POSITION_MAX {
                    continue;
                }
            }
            vector.positions.push(*word);
            entry.positions.end += 1;
        }
        vector
    }
}

/// Reads the text form.
struct Reader<'a> {
    input: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.input[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn syntax(&self) -> Error {
        Error::invalid(format!("syntax error in tsvector: \"{}\"", self.input))
    }

    fn escaped(&mut self) -> Result<char> {
        self.take().ok_or_else(|| {
            Error::invalid(format!("there is no escaped character: \"{}\"", self.input))
        })
    }

    /// The next lexeme; false at the end.
    fn word(&mut self, lexeme: &mut String) -> Result<bool> {
        lexeme.clear();
        while self.peek().is_some_and(is_blank) {
            self.take();
        }
        let Some(first) = self.take() else {
            return Ok(false);
        };
        match first {
            '\'' => {
                loop {
                    match self.take().ok_or_else(|| self.syntax())? {
                        '\\' => lexeme.push(self.escaped()?),
                        '\'' if self.peek() == Some('\'') => lexeme.extend(self.take()),
                        '\'' => break,
                        c => lexeme.push(c),
                    }
                }
                if lexeme.is_empty() {
                    return Err(self.syntax());
                }
            }
            first => {
                match first {
                    '\\' => lexeme.push(self.escaped()?),
                    c => lexeme.push(c),
                }
                while let Some(c) = self.peek().filter(|&c| !is_blank(c) && c != ':') {
                    self.take();
                    match c {
                        '\\' => lexeme.push(self.escaped()?),
                        c => lexeme.push(c),
                    }
                }
            }
        }
        Ok(true)
    }

    /// The positions behind a lexeme, if there are any.
    fn positions(&mut self, push: &mut dyn FnMut(u16)) -> Result<()> {
        if self.peek() != Some(':') {
            return Ok(());
        }
        self.take();
        loop {
            let mut number: Option<i64> = None;
            while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
                self.take();
                let tens = number.unwrap_or(0).saturating_mul(10);
                number = Some(tens.saturating_add(i64::from(digit)));
            }
            // the server reads a C int, which wraps, and caps what is positive
            let number = number.ok_or_else(|| self.syntax())? as i32;
            let position = number.min(i32::from(POSITION_MAX)).cast_unsigned() as u16;
            let position = position & POSITION_MAX;
            if position == 0 {
                return Err(Error::invalid(format!(
                    "wrong position info in tsvector: \"{}\"",
                    self.input
                )));
            }
            let mut weight = 0;
            loop {
                match self.peek() {
                    Some('a' | 'A' | '*') if weight == 0 => weight = 3,
                    Some('b' | 'B') if weight == 0 => weight = 2,
                    Some('c' | 'C') if weight == 0 => weight = 1,
                    Some('d' | 'D') if weight == 0 => {}
                    Some('0'..='9') => {} // means nothing, and is no error
                    _ => break,
                }
                self.take();
            }
            push(position | weight << 14);
            match self.peek() {
                Some(',') => {
                    self.take();
                }
                Some(c) if !is_blank(c) => return Err(self.syntax()),
                _ => return Ok(()),
            }
        }
    }
}

/// White space of the text form: ASCII only.
fn is_blank(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::tsvector::fixtures;

    fn parse(text: &str) -> String {
        match TsVector::parse(text) {
            Ok(vector) => vector.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn vectors_of_texts_are_postgresqls() {
        for (config, file) in [
            ("english", "to_tsvector_english.jsonl"),
            ("simple", "to_tsvector_simple.jsonl"),
        ] {
            let config = Config::find(config).unwrap();
            let lines = fixtures::lines(file);
            assert_eq!(lines.len(), 376);
            for line in &lines {
                let text = fixtures::input(line);
                let vector = TsVector::to_tsvector(config, &text).unwrap();
                let got: serde_json::Value = vector
                    .iter()
                    .map(|(lexeme, positions)| serde_json::json!([lexeme, positions]))
                    .collect();
                assert_eq!(got, line["lexemes"], "{text:.200}");
                if let Some(out) = line.get("out") {
                    assert_eq!(vector.to_string(), out.as_str().unwrap());
                    assert_eq!(TsVector::parse(&vector.to_string()).unwrap(), vector);
                }
            }
        }
    }

    #[test]
    fn the_text_form_is_read_like_postgresqls() {
        for (input, output) in [
            ("", ""),
            ("  b a\u{3000}c\ta ", "'a' 'a\u{3000}c' 'b'"),
            (":1 a:1", "':1' 'a':1"),
            ("a:3,1B,1c,20000 a", "'a':1B,3,16383"),
            ("a:1* b:2d", "'a':1A 'b':2"),
            ("a:316383016383 b:99999999999999999999", "'a':13759 'b':16383"),
            ("a:4294967296", "wrong position info in tsvector: \"a:4294967296\""),
            ("a:3a2 b:1d7B", "'a':3A 'b':1B"),
            (r"'it''s' \'x a\\b 'q\'r'", r"'''x' 'a\\b' 'it''s' 'q''r'"),
            ("''", "syntax error in tsvector: \"''\""),
            ("a:", "syntax error in tsvector: \"a:\""),
            ("a:1,", "syntax error in tsvector: \"a:1,\""),
            ("a:1AB", "syntax error in tsvector: \"a:1AB\""),
            ("a:0", "wrong position info in tsvector: \"a:0\""),
            (r"a\", r#"there is no escaped character: "a\""#),
        ] {
            assert_eq!(parse(input), output, "{input}");
        }
    }

    #[test]
    fn lexemes_are_found_by_name_and_by_prefix() {
        let vector = TsVector::parse("b:4 ab:2,3 abc a\u{10ffff}:9 ac:1A").unwrap();
        assert_eq!(vector.get("ab"), Some(&[2, 3][..]));
        assert_eq!(vector.get("abc"), Some(&[][..]));
        assert_eq!(vector.get("aa"), None);
        let prefixed: Vec<_> =
            vector.with_prefix("ab").map(|(lexeme, _)| lexeme).collect();
        assert_eq!(prefixed, ["ab", "abc"]);
        assert_eq!(vector.with_prefix("").count(), 5);
        let word = vector.get("ac").unwrap()[0];
        assert_eq!((position_of(word), weight_of(word)), (1, 3));
    }

    #[test]
    fn the_data_area_has_postgresqls_limit() {
        let text = |words: usize| -> String {
            (0..words).map(|number| format!("{number:0>33}a ")).collect()
        };
        let simple = Config::find("simple").unwrap();
        assert_eq!(TsVector::to_tsvector(simple, &text(27_594)).unwrap().len(), 27_594);
        let error =
            TsVector::to_tsvector(simple, &text(27_595)).unwrap_err().to_string();
        assert_eq!(
            error,
            "string is too long for tsvector (1048610 bytes, max 1048575 bytes)"
        );
        assert_eq!(TsVector::of(simple, &text(27_595)).len(), 27_595);
    }
}
