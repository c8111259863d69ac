//! JSON text → tokens, with the errors of PostgreSQL's scanner.
//!
//! A string's contents are checked and, only if it has escapes, unescaped here, into a
//! buffer of the caller's; a number is checked for its form, not yet for its size.

use std::ops::Range;

use super::print::plain_bytes;
use crate::error::{Error, Result};

/// What a token is.
#[derive(Debug)]
pub(super) enum Kind {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Colon,
    Comma,
    String,
    Number,
    Bool(bool),
    Null,
    /// The end of the text.
    End,
    /// Not in the text: an empty container that was read as a whole.
    Closed,
}

/// A token and its place in the text; a string's place is inside its quotes.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
}

/// Cuts a text into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next token. A string with escapes is left in `unescaped`, which is empty
    /// after a string without: an escape gives a character, never nothing.
    pub(super) fn next(&mut self, unescaped: &mut String) -> Result<Token> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        let start = self.at;
        let Some(byte) = self.peek() else {
            return Ok(Token { kind: Kind::End, place: start..start });
        };
        self.at += 1;
        let kind = match byte {
            b'{' => Kind::BeginObject,
            b'}' => Kind::EndObject,
            b'[' => Kind::BeginArray,
            b']' => Kind::EndArray,
            b':' => Kind::Colon,
            b',' => Kind::Comma,
            b'"' => {
                let place = self.quoted(start, unescaped)?;
                return Ok(Token { kind: Kind::String, place });
            }
            b'-' | b'0'..=b'9' => {
                self.number(start)?;
                Kind::Number
            }
            _ => {
                self.at = start;
                self.skip_word();
                match &self.text[start..self.at] {
                    "true" => Kind::Bool(true),
                    "false" => Kind::Bool(false),
                    "null" => Kind::Null,
                    _ => return Err(self.invalid(start)),
                }
            }
        };
        Ok(Token { kind, place: start..self.at })
    }

    /// The contents of a string token.
    pub(super) fn string<'b>(&self, token: &Token, unescaped: &'b str) -> &'b str
    where
        'a: 'b,
    {
        if unescaped.is_empty() { &self.text[token.place.clone()] } else { unescaped }
    }

    /// Letters, digits and the like: what would be one word to a reader.
    fn skip_word(&mut self) {
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80)
        {
            self.at += 1;
        }
    }

    fn skip_digits(&mut self) -> bool {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at > start
    }

    /// Reads on behind the first byte of a number.
    fn number(&mut self, start: usize) -> Result<()> {
        self.at = start;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let mut valid = true;
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            valid = self.skip_digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            valid &= self.skip_digits();
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            valid &= self.skip_digits();
        }
        let end = self.at;
        self.skip_word();
        if valid && self.at == end { Ok(()) } else { Err(self.invalid(start)) }
    }

    /// Reads a string behind its opening quote; gives the place of its contents.
    fn quoted(&mut self, quote: usize, unescaped: &mut String) -> Result<Range<usize>> {
        unescaped.clear();
        let start = self.at;
        // A high surrogate that waits for its other half.
        let mut high: Option<u32> = None;
        let mut escaped = false;
        loop {
            let run = self.at;
            self.at += plain_bytes(&self.text.as_bytes()[run..]);
            if self.at > run {
                if high.is_some() {
                    return Err(self.surrogate(run));
                }
                // Copied only when an escape came before; else once, at the first one.
                if escaped {
                    unescaped.push_str(&self.text[run..self.at]);
                }
            }
            let place = self.at;
            match self.peek() {
                None => {
                    return Err(Error::value(format!(
                        "invalid input syntax for type json: the string that begins \
                         at byte {quote} does not end"
                    )));
                }
                Some(b'"') if high.is_some() => return Err(self.surrogate(place)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(start..place);
                }
                Some(b'\\') => {
                    if !escaped {
                        unescaped.push_str(&self.text[start..place]);
                        escaped = true;
                    }
                    self.at += 1;
                    let c = self.escape(place, &mut high)?;
                    unescaped.extend(c);
                }
                Some(byte) => {
                    return Err(Error::value(format!(
                        "invalid input syntax for type json: control character \
                         0x{byte:02x} at byte {place} must be escaped"
                    )));
                }
            }
        }
    }

    /// Reads an escape behind its backslash; a high surrogate gives nothing yet.
    fn escape(&mut self, place: usize, high: &mut Option<u32>) -> Result<Option<char>> {
        let byte = self.peek();
        self.at += 1;
        if byte == Some(b'u') {
            return self.unicode(place, high);
        }
        if byte.is_some() && high.is_some() {
            return Err(self.surrogate(place));
        }
        Ok(Some(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => {
                return Err(Error::value(format!(
                    "invalid input syntax for type json: invalid escape sequence at \
                     byte {place}"
                )));
            }
        }))
    }

    /// Reads the four digits of `\uXXXX`.
    fn unicode(
        &mut self,
        place: usize,
        high: &mut Option<u32>,
    ) -> Result<Option<char>> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(Error::value(format!(
                    "invalid input syntax for type json: \\u at byte {place} needs four \
                     hexadecimal digits"
                )));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        let code = match (code, high.take()) {
            (0xD800..=0xDBFF, None) => {
                *high = Some(code);
                return Ok(None);
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                0x1_0000 + ((high & 0x3FF) << 10) + (code & 0x3FF)
            }
            (0xD800..=0xDFFF, _) | (_, Some(_)) => return Err(self.surrogate(place)),
            (0, None) => {
                return Err(Error::value(format!(
                    "unsupported Unicode escape sequence: \\u0000 at byte {place} \
                     cannot be stored as text"
                )));
            }
            (code, None) => code,
        };
        Ok(char::from_u32(code))
    }

    fn surrogate(&self, place: usize) -> Error {
        Error::value(format!(
            "invalid input syntax for type json: high and low surrogates must come in \
             pairs, which they do not at byte {place}"
        ))
    }

    /// The error for a token that is none.
    fn invalid(&self, start: usize) -> Error {
        Error::value(format!(
            "invalid input syntax for type json: {} at byte {start} is no token",
            self.excerpt(start)
        ))
    }

    /// The error for a token that must not stand here.
    pub(super) fn unexpected(&self, token: &Token, expected: &str) -> Error {
        let start = token.place.start;
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::String => self.excerpt(start - 1),
            _ => self.excerpt(start),
        };
        Error::value(format!(
            "invalid input syntax for type json: expected {expected} at byte {start}, \
             found {found}"
        ))
    }

    /// Some characters of the text from a place on, for messages.
    fn excerpt(&self, start: usize) -> String {
        const SHOWN: usize = 20;
        let end = self.at.max(start + 1);
        let mut shown: String = self.text[start..]
            .char_indices()
            .take_while(|(at, _)| start + at < end)
            .map(|(_, c)| c)
            .take(SHOWN)
            .collect();
        if start + shown.len() < end {
            shown.push('…');
        }
        format!("{shown:?}")
    }
}
