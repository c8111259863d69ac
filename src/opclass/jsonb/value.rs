//! JSON text → tape, by the rules of PostgreSQL's `jsonb` input.
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

use super::json_lexer::{Kind, Lexer, Token};
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
        self.read(&mut Lexer::new(text), json)?;
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
