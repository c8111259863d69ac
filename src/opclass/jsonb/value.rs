//! JSON text → tape, by the rules of PostgreSQL's `jsonb` input, and back to text.
//!
//! One pass over the text, with a stack of its own for open containers, never the
//! machine's. Strings without escapes are copied once, straight into the tape. Errors
//! are met in the order in which the server meets them: it looks at the token behind a
//! number before it judges the number.
//!
//! jsonb keeps an object's keys ordered by length, then bytes, and of equal keys the
//! last one given. Most objects of real data need sorting, and sorting a tape in place
//! would move the contents of nested objects once per level; so the tape is first
//! written in the order of the text, disordered objects are noted ([`Disordered`]), and
//! if there are any, one further pass copies the tape in the right order ([`reorder`]).
//! Both passes are linear but for the sorting of keys.
//!
//! Limits: [`DEPTH_MAX`] open containers (the server's limit depends on its stack),
//! [`TEXT_MAX`] bytes of text, and those of the stored form, see `limits`.

use std::ops::Range;

use super::limits;
use super::numeric;
use crate::document::{Json, JsonEvent};
use crate::error::{Error, Result};

/// Most containers open at one time.
pub const DEPTH_MAX: usize = 10_000;
/// Most bytes of a text; PostgreSQL has no longer ones.
pub const TEXT_MAX: usize = 0x3FFF_FFFF;

/// Reads a JSON text as `jsonb` does.
///
/// ```
/// let json = ginmill::opclass::jsonb::parse(r#"{"b": 1.50, "a": [], "b": 2}"#)?;
/// assert_eq!(ginmill::opclass::jsonb::to_text(&json), r#"{"a": [], "b": 2}"#);
/// # Ok::<(), ginmill::error::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Json> {
    let mut json = Json::new();
    Parser::default().parse_into(text, &mut json)?;
    Ok(json)
}

/// A reader that keeps its memory from text to text.
#[derive(Debug, Default)]
pub struct Parser {
    /// Containers not yet closed.
    open: Vec<Open>,
    /// Places of the keys of all open objects.
    keys: Vec<usize>,
    /// The string being read, when it has escapes.
    unescaped: String,
    /// Closed objects that `reorder` must put in order.
    disordered: Vec<Disordered>,
    /// Members of these, as parts of the tape, in the right order.
    members: Vec<Range<usize>>,
    /// The tape in the order of the text, when another one is made of it.
    raw: Json,
}

/// A container not yet closed.
#[derive(Debug)]
enum Open {
    Array {
        elements: usize,
    },
    Object {
        /// Place of its `{`.
        place: usize,
        /// Number of its first key in `Parser::keys`.
        first: usize,
        /// Whether its keys have come in order so far.
        ordered: bool,
    },
}

/// A closed object whose members must be moved, or dropped.
#[derive(Debug)]
struct Disordered {
    /// Its part of the tape, brackets included.
    part: Range<usize>,
    /// Its part of `Parser::members`.
    members: Range<usize>,
}

impl Parser {
    /// Reads `text` into `json`, whose former contents are lost. After an error `json`
    /// holds no value.
    pub fn parse_into(&mut self, text: &str, json: &mut Json) -> Result<()> {
        if text.len() > TEXT_MAX {
            return Err(Error::value(format!(
                "a text of {} bytes exceeds the maximum of {TEXT_MAX} bytes",
                text.len()
            )));
        }
        json.clear();
        self.open.clear();
        self.keys.clear();
        self.disordered.clear();
        self.members.clear();
        self.read(&mut Lexer { text, at: 0 }, json)?;
        if !self.disordered.is_empty() {
            std::mem::swap(json, &mut self.raw);
            reorder(&self.raw, &mut self.disordered, &self.members, json);
            // A single giant must not be kept for all times.
            self.raw.clear();
        }
        limits::check(text.len(), json)
    }

    /// Bytes of memory held between texts.
    pub fn memory(&self) -> usize {
        self.open.capacity() * size_of::<Open>()
            + self.keys.capacity() * size_of::<usize>()
            + self.unescaped.capacity()
            + self.disordered.capacity() * size_of::<Disordered>()
            + self.members.capacity() * size_of::<Range<usize>>()
            + self.raw.capacity()
    }

    /// The grammar: a value, then the end of the text.
    fn read(&mut self, lexer: &mut Lexer<'_>, json: &mut Json) -> Result<()> {
        let mut token = lexer.next(&mut self.unescaped)?;
        loop {
            // A value begins at `token`.
            match token.kind {
                Kind::BeginArray | Kind::BeginObject => {
                    token = self.enter(&token, lexer, json)?;
                    // A container with contents goes on with a value; an empty one has
                    // been closed.
                    if !matches!(token.kind, Kind::Closed) {
                        continue;
                    }
                    token = lexer.next(&mut self.unescaped)?;
                }
                Kind::Number => {
                    let number = &lexer.text[token.place.clone()];
                    token = lexer.next(&mut self.unescaped)?;
                    json.push(JsonEvent::Number(&numeric::to_tape(number)?));
                }
                Kind::String => {
                    let string = lexer.string(&token, &self.unescaped);
                    json.push(JsonEvent::String(string));
                    let bytes = string.len();
                    token = lexer.next(&mut self.unescaped)?;
                    limits::string(bytes)?;
                }
                Kind::Null => {
                    json.push(JsonEvent::Null);
                    token = lexer.next(&mut self.unescaped)?;
                }
                Kind::Bool(value) => {
                    json.push(JsonEvent::Bool(value));
                    token = lexer.next(&mut self.unescaped)?;
                }
                _ => return Err(lexer.unexpected(&token, "a value")),
            }
            // A value ended before `token`.
            loop {
                match (self.open.last_mut(), &token.kind) {
                    (None, Kind::End) => return Ok(()),
                    (None, _) => {
                        return Err(lexer.unexpected(&token, "the end of the text"));
                    }
                    (Some(Open::Array { elements }), Kind::Comma) => {
                        limits::element(elements)?;
                        token = lexer.next(&mut self.unescaped)?;
                        break;
                    }
                    (Some(Open::Object { .. }), Kind::Comma) => {
                        token = lexer.next(&mut self.unescaped)?;
                        token = self.key(&token, lexer, json, "a string")?;
                        break;
                    }
                    (Some(Open::Array { elements }), Kind::EndArray) => {
                        limits::element(elements)?;
                        self.open.pop();
                        json.push(JsonEvent::EndArray);
                    }
                    (Some(Open::Object { .. }), Kind::EndObject) => {
                        json.push(JsonEvent::EndObject);
                        self.close_object(json);
                    }
                    (Some(Open::Array { .. }), _) => {
                        return Err(lexer.unexpected(&token, "\",\" or \"]\""));
                    }
                    (Some(Open::Object { .. }), _) => {
                        return Err(lexer.unexpected(&token, "\",\" or \"}\""));
                    }
                }
                token = lexer.next(&mut self.unescaped)?;
            }
        }
    }

    /// Opens a container; gives the token at which its first value begins, or `Closed`.
    fn enter(
        &mut self,
        begin: &Token,
        lexer: &mut Lexer<'_>,
        json: &mut Json,
    ) -> Result<Token> {
        if self.open.len() == DEPTH_MAX {
            return Err(Error::value(format!(
                "stack depth limit exceeded: more than {DEPTH_MAX} nested containers \
                 at byte {}",
                begin.place.start
            )));
        }
        let place = json.len();
        if matches!(begin.kind, Kind::BeginArray) {
            json.push(JsonEvent::BeginArray);
            let token = lexer.next(&mut self.unescaped)?;
            if matches!(token.kind, Kind::EndArray) {
                json.push(JsonEvent::EndArray);
                return Ok(Token { kind: Kind::Closed, ..token });
            }
            self.open.push(Open::Array { elements: 0 });
            return Ok(token);
        }
        json.push(JsonEvent::BeginObject);
        let token = lexer.next(&mut self.unescaped)?;
        if matches!(token.kind, Kind::EndObject) {
            json.push(JsonEvent::EndObject);
            return Ok(Token { kind: Kind::Closed, ..token });
        }
        self.open.push(Open::Object { place, first: self.keys.len(), ordered: true });
        self.key(&token, lexer, json, "a string or \"}\"")
    }

    /// Reads `"key" :`; gives the token at which the value begins.
    fn key(
        &mut self,
        token: &Token,
        lexer: &mut Lexer<'_>,
        json: &mut Json,
        expected: &str,
    ) -> Result<Token> {
        let Kind::String = token.kind else {
            return Err(lexer.unexpected(token, expected));
        };
        let Some(Open::Object { first, ordered, .. }) = self.open.last_mut() else {
            unreachable!("keys are read in objects only");
        };
        let key = lexer.string(token, &self.unescaped);
        if let Some(&previous) = self.keys[*first..].last() {
            let previous = key_at(json, previous);
            *ordered &= (previous.len(), previous) < (key.len(), key);
        }
        self.keys.push(json.len());
        let pairs = self.keys.len() - *first;
        json.push(JsonEvent::Key(key));
        let key_bytes = key.len();
        let colon = lexer.next(&mut self.unescaped)?;
        let Kind::Colon = colon.kind else {
            return Err(lexer.unexpected(&colon, "\":\""));
        };
        let value = lexer.next(&mut self.unescaped)?;
        limits::string(key_bytes)?;
        limits::pairs(pairs)?;
        Ok(value)
    }

    /// Takes the innermost object, whose `}` has been pushed, from the stack.
    fn close_object(&mut self, json: &Json) {
        let Some(Open::Object { place, first, ordered }) = self.open.pop() else {
            unreachable!("the caller saw an object");
        };
        if !ordered {
            let end = json.len() - 1;
            let keys = &self.keys[first..];
            let ends = keys[1..].iter().copied().chain([end]);
            let mut pairs: Vec<(&str, Range<usize>)> = keys
                .iter()
                .zip(ends)
                .map(|(&key, end)| (key_at(json, key), key..end))
                .collect();
            pairs.sort_unstable_by(|(a, part_a), (b, part_b)| {
                (a.len(), a, part_a.start).cmp(&(b.len(), b, part_b.start))
            });
            let members = self.members.len();
            for (at, (key, part)) in pairs.iter().enumerate() {
                // Of equal keys the last one stays.
                if pairs.get(at + 1).is_none_or(|(next, _)| next != key) {
                    self.members.push(part.clone());
                }
            }
            let members = members..self.members.len();
            self.disordered.push(Disordered { part: place..json.len(), members });
        }
        self.keys.truncate(first);
    }
}

/// The key whose event is at `place`.
fn key_at(json: &Json, place: usize) -> &str {
    match json.events_from(place).next() {
        Some(JsonEvent::Key(key)) => key,
        _ => unreachable!("only places of keys are noted"),
    }
}

/// Copies `raw` to `json` with the members of disordered objects put in order.
fn reorder(
    raw: &Json,
    disordered: &mut [Disordered],
    members: &[Range<usize>],
    json: &mut Json,
) {
    // They were noted when they ended; what is needed is the next one to begin.
    disordered.sort_unstable_by_key(|object| object.part.start);
    json.clear();
    // Parts still to be copied, the next one last; `None` closes an object.
    let mut parts = vec![Some(0..raw.len())];
    while let Some(part) = parts.pop() {
        let Some(part) = part else {
            json.push(JsonEvent::EndObject);
            continue;
        };
        let next = disordered.partition_point(|object| object.part.start < part.start);
        match disordered.get(next) {
            Some(object) if object.part.start < part.end => {
                json.append_part(raw, part.start..object.part.start + 1);
                parts.push(Some(object.part.end..part.end));
                parts.push(None);
                let members = &members[object.members.clone()];
                parts.extend(members.iter().rev().cloned().map(Some));
            }
            _ => json.append_part(raw, part),
        }
    }
}

/// What a token is.
#[derive(Debug)]
enum Kind {
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
struct Token {
    kind: Kind,
    place: Range<usize>,
}

/// Cuts a text into tokens.
#[derive(Debug)]
struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next token. A string with escapes is left in `unescaped`, which is empty
    /// after a string without: an escape gives a character, never nothing.
    fn next(&mut self, unescaped: &mut String) -> Result<Token> {
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
    fn string<'b>(&self, token: &Token, unescaped: &'b str) -> &'b str
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
    fn unexpected(&self, token: &Token, expected: &str) -> Error {
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

/// How many bytes at the front are neither a quote nor a backslash nor a control.
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is less than `n` (n ≤ 128), with errors only above
    // the first such byte; which is why words are read little-endian.
    let less = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
    let (words, _) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = less(word, 0x20)
            | less(word ^ (ONES * u64::from(b'"')), 1)
            | less(word ^ (ONES * u64::from(b'\\')), 1);
        if found != 0 {
            return at * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let start = words.len() * 8;
    let rest = &bytes[start..];
    start
        + rest
            .iter()
            .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
            .unwrap_or(rest.len())
}

/// PostgreSQL's text form of a value: `{"a": [1, 2.50]}`.
pub fn to_text(json: &Json) -> String {
    let mut out = String::with_capacity(json.len());
    let mut comma = false;
    for event in json.events() {
        if comma && !matches!(event, JsonEvent::EndArray | JsonEvent::EndObject) {
            out.push_str(", ");
        }
        comma = true;
        match event {
            JsonEvent::Null => out.push_str("null"),
            JsonEvent::Bool(true) => out.push_str("true"),
            JsonEvent::Bool(false) => out.push_str("false"),
            JsonEvent::Number(number) => numeric::print(number, &mut out),
            JsonEvent::String(string) => quote(string, &mut out),
            JsonEvent::Key(key) => {
                quote(key, &mut out);
                out.push_str(": ");
                comma = false;
            }
            JsonEvent::BeginArray => {
                out.push('[');
                comma = false;
            }
            JsonEvent::EndArray => out.push(']'),
            JsonEvent::BeginObject => {
                out.push('{');
                comma = false;
            }
            JsonEvent::EndObject => out.push('}'),
        }
    }
    out
}

/// Appends a string in quotes, escaped where JSON demands it.
pub(crate) fn quote(string: &str, out: &mut String) {
    out.push('"');
    let mut rest = string;
    loop {
        let plain = plain_bytes(rest.as_bytes());
        out.push_str(&rest[..plain]);
        let Some(&byte) = rest.as_bytes().get(plain) else { break };
        match byte {
            b'\x08' => out.push_str("\\b"),
            b'\x0c' => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            byte => out.push_str(&format!("\\u{byte:04x}")),
        }
        rest = &rest[plain + 1..];
    }
    out.push('"');
}
