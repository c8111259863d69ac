//! jsonpath text → tokens.
//!
//! The words of a path are looser than JSON's: names without quotes take escapes and
//! any character that is not an operator, a blank, a quote or a backslash; numbers may
//! have underscores, a base prefix, no digits on one side of the point. A number that
//! runs into a letter is an error, never two tokens. As on the server, a comment that
//! touches a name swallows the name.

use crate::error::{Error, Result};

/// A token of a path.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// An operator or bracket.
    Mark(&'static str),
    /// A name without quotes; possibly a keyword.
    Name(String),
    /// `"…"`
    String(String),
    /// `$name`, `$"name"`
    Variable(String),
    /// A number without point and exponent, as an input of `numeric`.
    Integer(String),
    /// Any other number.
    Number(String),
    /// The end of the text.
    End,
}

/// Operators, longer ones before their beginnings.
const MARKS: [&str; 27] = [
    "&&", "||", "**", "<=", "<>", "==", "!=", ">=", "!", "<", ">", "?", "%", "$", ".",
    "[", "]", "{", "}", "(", ")", "@", ",", "*", "+", "-", "/",
];

/// Characters that end a name.
fn is_special(c: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/".contains(c)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// What a name goes on with: neither special, blank, quote nor backslash.
fn is_other(c: char) -> bool {
    !is_special(c) && !is_blank(c) && c != '"' && c != '\\'
}

/// Cuts a path into tokens.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Where the last token began.
    start: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, start: 0 }
    }

    /// An error at the last token.
    pub(super) fn error(&self, what: &str) -> Error {
        let near: String = self.text[self.start..].chars().take(20).collect();
        Error::value(if near.is_empty() {
            format!("invalid jsonpath: {what} at its end")
        } else {
            format!("invalid jsonpath: {what} at byte {}, near {near:?}", self.start)
        })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves over the characters that pass `test`.
    fn skip(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token> {
        loop {
            if let Some(token) = self.try_next()? {
                return Ok(token);
            }
        }
    }

    /// The next token; none if a comment swallowed it.
    fn try_next(&mut self) -> Result<Option<Token>> {
        loop {
            self.skip(is_blank);
            self.start = self.at;
            if !self.rest().starts_with("/*") {
                break;
            }
            self.comment()?;
        }
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Some(Token::End)) };
        if let Some(number) = self.number()? {
            return Ok(Some(number));
        }
        if first == '"' {
            self.at += 1;
            return Ok(Some(Token::String(self.quoted()?)));
        }
        if first == '$' {
            self.at += 1;
            if self.peek() == Some('"') {
                self.at += 1;
                return Ok(Some(Token::Variable(self.quoted()?)));
            }
            let name = self.skip(is_other);
            return Ok(Some(if name.is_empty() {
                Token::Mark("$")
            } else {
                Token::Variable(name.to_owned())
            }));
        }
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.at += mark.len();
            return Ok(Some(Token::Mark(mark)));
        }
        if is_special(first) {
            return Err(self.error("syntax error"));
        }
        Ok(self.name()?.map(Token::Name))
    }

    fn comment(&mut self) -> Result<()> {
        // The star of the opening does not serve for the closing, too.
        let Some(end) = self.rest()[2..].find("*/") else {
            return Err(self.error("unterminated comment"));
        };
        self.at += end + 4;
        Ok(())
    }

    /// A name; none if a comment swallowed it.
    fn name(&mut self) -> Result<Option<String>> {
        let mut name = String::new();
        loop {
            name.push_str(self.skip(is_other));
            match self.peek() {
                Some('\\') => self.escape(&mut name)?,
                Some('/') if self.rest().starts_with("/*") => {
                    self.comment()?;
                    return Ok(None);
                }
                _ => return Ok(Some(name)),
            }
        }
    }

    /// The contents of a string behind its opening quote.
    fn quoted(&mut self) -> Result<String> {
        let mut string = String::new();
        loop {
            string.push_str(self.skip(|c| c != '"' && c != '\\'));
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(_) => self.escape(&mut string)?,
                None => return Err(self.error("unterminated quoted string")),
            }
        }
    }

    /// Reads an escape at its backslash.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        self.at += 1;
        let Some(c) = self.peek().filter(|&c| c != '\n') else {
            return Err(self.error("unexpected end after a backslash"));
        };
        match c {
            'u' => {
                self.at -= 1;
                return self.unicode(out);
            }
            'x' => {
                let digits = self.rest().get(1..3).filter(|digits| is_hex(digits));
                let code =
                    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let Some(code) = code else {
                    return Err(self.error("invalid hexadecimal character"));
                };
                out.push(self.character(code)?);
                self.at += 3;
                return Ok(());
            }
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'v' => out.push('\u{b}'),
            c => out.push(c),
        }
        self.at += c.len_utf8();
        Ok(())
    }

    /// Reads a run of `\uXXXX` and `\u{X…}`; surrogates pair up inside a run only.
    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let mut high: Option<u32> = None;
        while let Some(rest) = self.rest().strip_prefix("\\u") {
            let (digits, len) = match rest.strip_prefix('{') {
                Some(braced) => {
                    let end = braced.find('}').unwrap_or(0);
                    (&braced[..end], end + 2)
                }
                None => (rest.get(..4).unwrap_or(""), 4),
            };
            if !(1..=6).contains(&digits.len()) || !is_hex(digits) {
                return Err(self.error("invalid Unicode escape sequence"));
            }
            let code = u32::from_str_radix(digits, 16).unwrap_or(u32::MAX);
            self.at += 2 + len;
            match (code, high.take()) {
                (0xD800..=0xDBFF, None) => high = Some(code),
                (0xDC00..=0xDFFF, Some(high)) => {
                    let code = 0x1_0000 + ((high & 0x3FF) << 10) + (code & 0x3FF);
                    out.push(self.character(code)?);
                }
                (0xD800..=0xDFFF, _) | (_, Some(_)) => {
                    return Err(self.error("unpaired surrogate"));
                }
                (code, None) => out.push(self.character(code)?),
            }
        }
        if high.is_some() {
            return Err(self.error("unpaired surrogate"));
        }
        Ok(())
    }

    fn character(&self, code: u32) -> Result<char> {
        match char::from_u32(code) {
            Some('\0') | None => Err(self.error("unsupported Unicode escape sequence")),
            Some(c) => Ok(c),
        }
    }

    /// A number, if one begins here.
    fn number(&mut self) -> Result<Option<Token>> {
        let bytes = self.rest().as_bytes();
        let with_base = |digit: fn(&u8) -> bool| digits(&bytes[2..], digit);
        let based = match bytes {
            [b'0', b'x' | b'X', ..] => with_base(u8::is_ascii_hexdigit),
            [b'0', b'o' | b'O', ..] => with_base(|byte| (b'0'..=b'7').contains(byte)),
            [b'0', b'b' | b'B', ..] => with_base(|byte| (b'0'..=b'1').contains(byte)),
            _ => 0,
        };
        let (len, is_integer) = if based > 0 {
            (2 + based, true)
        } else {
            let before = match bytes {
                [b'0', ..] => 1,
                _ => digits(bytes, u8::is_ascii_digit),
            };
            let mut len = before;
            if bytes.get(before) == Some(&b'.') {
                let after = digits(&bytes[before + 1..], u8::is_ascii_digit);
                if before + after > 0 {
                    len = before + 1 + after;
                }
            }
            if len == 0 {
                return Ok(None);
            }
            let mut is_integer = len == before;
            if let Some(b'e' | b'E') = bytes.get(len) {
                let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
                let after = digits(&bytes[len + 1 + sign..], u8::is_ascii_digit);
                if after > 0 {
                    len += 1 + sign + after;
                    is_integer = false;
                } else if sign > 0 {
                    return Err(self.error("invalid numeric literal"));
                }
            }
            (len, is_integer)
        };
        let rest = self.rest();
        if rest[len..].starts_with(is_other) {
            // The longer token wins, as scanners have it: with one more byte this is a
            // number with junk behind it, with more still it is a name like any other.
            let name = rest.find(|c| !is_other(c)).unwrap_or(rest.len());
            return if name > len + 1 || based > 0 {
                Ok(None)
            } else {
                Err(self.error("trailing junk after numeric literal"))
            };
        }
        let text = rest[..len].to_owned();
        self.at += len;
        Ok(Some(if is_integer { Token::Integer(text) } else { Token::Number(text) }))
    }
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Length of digits at the front, with single underscores between them.
fn digits(bytes: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    let mut len = 0;
    loop {
        match &bytes[len..] {
            [digit, ..] if is_digit(digit) => len += 1,
            [b'_', digit, ..] if len > 0 && is_digit(digit) => len += 2,
            _ => return len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Token>> {
        let mut scanner = Scanner::new(text);
        let mut tokens = Vec::new();
        loop {
            match scanner.next()? {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn names_strings_and_numbers_are_told_apart() {
        let name = |text: &str| Token::Name(text.to_owned());
        assert_eq!(
            tokens(r#"$.a\u0041'b ? "x\x41\q" /**/ $v"#).unwrap(),
            [
                Token::Mark("$"),
                Token::Mark("."),
                name("aA'b"),
                Token::Mark("?"),
                Token::String("xAq".to_owned()),
                Token::Variable("v".to_owned()),
            ]
        );
        let number = |text: &str| Token::Number(text.to_owned());
        assert_eq!(
            tokens("1_0 .5 1. 1.e2 0x1F 0").unwrap(),
            [
                Token::Integer("1_0".to_owned()),
                number(".5"),
                number("1."),
                number("1.e2"),
                Token::Integer("0x1F".to_owned()),
                Token::Integer("0".to_owned()),
            ]
        );
        assert_eq!(tokens("a/*x*/b").unwrap(), [name("b")]);
        for text in ["1elax", "007", "1__0", "0x1G", "1é", "0xgg"] {
            assert_eq!(tokens(text).unwrap(), [name(text)]);
        }
    }

    #[test]
    fn broken_tokens_are_refused() {
        for text in [
            "1a",
            "00",
            "1_",
            "1.5ab",
            "1e5a",
            "0x",
            "1e",
            "1e+",
            "1.a",
            "\"a",
            "\"\\",
            "\\",
            "\"\\u12\"",
            "\"\\u{1234567}\"",
            "\"\\u{110000}\"",
            "\"\\ud800\"",
            "\"\\x1\"",
            "\"\\u0000\"",
            "/*",
            "/*/",
            "a/*",
            "#",
            ":",
            "=",
            "&",
            "|",
        ] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
