//! Plain text, a document per line.

use std::borrow::Cow;
use std::path::Path;

use memchr::memchr;

use super::Format;
use super::decode::{self, Notes};
use crate::document::{Document, Field, Value, ValueKind};
use crate::error::Result;

/// Text files whose lines are the documents; blank lines are none. UTF-8, and where a
/// line is not, windows-1252, with a warning.
#[derive(Debug)]
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn summary(&self) -> &'static str {
        "plain text, a document per line"
    }

    fn fields(&self) -> Vec<Field> {
        vec![Field::new("body", ValueKind::Text)]
    }

    fn default_indexes(&self) -> &'static [&'static str] {
        &["body_trgm=gin_trgm_ops(body)", "body_tsvector=tsvector_ops(body, english)"]
    }

    /// Any file could be text; it must be asked for by name.
    fn sniff(&self, _path: &Path, _head: &[u8]) -> bool {
        false
    }

    fn split(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let is_blank = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let begin = at + text[at..].iter().position(|byte| !is_blank(byte))?;
        let end = memchr(b'\n', &text[begin..]).map_or(text.len(), |end| begin + end);
        let line = &text[begin..end];
        Some((begin, begin + line.strip_suffix(b"\r").unwrap_or(line).len()))
    }

    fn parse<'a>(
        &self,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()> {
        let mut notes = Notes::default();
        *document = Document { values: vec![Value::Null], ..Document::default() };
        if wanted.first().copied().unwrap_or(false) {
            let text = decode::text(Cow::Borrowed(raw), None, &mut notes);
            document.values[0] = Value::Text(text);
        }
        document.warnings = notes.into_warnings();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_not_blank_is_a_document() {
        let text = b"\n\r\none\r\ntwo \n\n\x80 3\nend\r";
        let mut lines = Vec::new();
        let mut warned = 0;
        let mut at = 0;
        while let Some((begin, end)) = Text.split(text, at) {
            let mut document = Document::default();
            Text.parse(&text[begin..end], &[true], &mut document).unwrap();
            lines.extend(document.values);
            warned += document.warnings.len();
            at = end;
        }
        let texts = ["one", "two ", "€ 3", "end"];
        assert_eq!(lines, texts.map(|text| Value::Text(Cow::Borrowed(text))));
        assert_eq!(warned, 1);
    }
}
