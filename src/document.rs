//! Documents as the build sees them: fields by position, each with a value.
//!
//! A format of `archive` fills a [`Document`]; operator classes of `opclass` turn its
//! values into keys. Texts borrow from the input where they can. JSON travels as a
//! flat tape of events, so that a document costs no allocation per value.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::tid::Tid;

/// What a field holds; an operator class says which kinds it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// UTF-8 text.
    Text,
    /// A JSON value.
    Json,
    /// A tsvector: lexemes made elsewhere.
    Lexemes,
    /// `text[]`.
    Texts,
    /// `int[]` or `bigint[]`.
    Integers,
}

/// A field's value in one document.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Value<'a> {
    /// SQL's NULL: the document has no such field.
    #[default]
    Null,
    /// UTF-8 text.
    Text(Cow<'a, str>),
    /// A JSON value.
    Json(Json),
    /// Distinct lexemes, in any order.
    Lexemes(Vec<String>),
    /// Elements of a `text[]`, flattened; `None` is a null element.
    Texts(Vec<Option<String>>),
    /// Elements of an `int[]` or `bigint[]`, flattened.
    Integers(Vec<Option<i64>>),
}

/// One document in hand.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Document<'a> {
    /// By position of the format's fields; fields nobody wants stay `Null`.
    pub values: Vec<Value<'a>>,
    /// Own TID, for inputs that bring one; else the build numbers the document.
    pub tid: Option<Tid>,
    /// Seconds since 1970 UTC, for sorting and `date` conditions.
    pub date: Option<i64>,
    /// What could not be read as written (charset, base64 …) though the document is
    /// indexed; one sentence each, for the report.
    pub warnings: Vec<String>,
}

/// One message's problem.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Input file.
    pub file: String,
    /// Byte offset of the message in it.
    pub offset: u64,
    /// What is wrong, one sentence.
    pub reason: String,
    /// Whether the message was left out.
    pub skipped: bool,
}

/// A field a format offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// As named in index definitions and queries.
    pub name: String,
    /// What it holds.
    pub kind: ValueKind,
}

impl Field {
    /// A field by name and kind.
    pub fn new(name: &str, kind: ValueKind) -> Field {
        Field { name: name.to_owned(), kind }
    }
}

/// An event of a JSON value, in document order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum JsonEvent<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number in plain decimal notation, scale kept, as PostgreSQL prints it; where an
    /// exponent would make that long, an integer and an exponent (`15e-1000`).
    Number(&'a str),
    /// A string value, unescaped.
    String(&'a str),
    /// An object key, unescaped; its value's events follow.
    Key(&'a str),
    /// `[`
    BeginArray,
    /// `]`
    EndArray,
    /// `{`
    BeginObject,
    /// `}`
    EndObject,
}

/// A JSON value as a tape of events; equal keys of one object appear once (the last
/// one given stays, as in jsonb), which is the duty of whoever pushes them.
///
/// A tape is bytes: a tag per event (`ntf#"k[]{}`), strings and numbers followed by
/// their length (u32, little-endian) and bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Json {
    tape: Vec<u8>,
}

impl Json {
    /// An empty tape; not a value until something is pushed.
    pub fn new() -> Json {
        Json::default()
    }

    /// Forgets all events, keeps the memory.
    pub fn clear(&mut self) {
        self.tape.clear();
    }

    /// Bytes of the tape.
    pub fn len(&self) -> usize {
        self.tape.len()
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.tape.capacity()
    }

    /// True when nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.tape.is_empty()
    }

    /// Cuts the tape back to `len` bytes, a length that [`Json::len`] gave earlier.
    pub fn truncate(&mut self, len: usize) {
        self.tape.truncate(len);
    }

    /// Appends an event.
    pub fn push(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Null => self.tape.push(b'n'),
            JsonEvent::Bool(true) => self.tape.push(b't'),
            JsonEvent::Bool(false) => self.tape.push(b'f'),
            JsonEvent::Number(text) => self.push_text(b'#', text),
            JsonEvent::String(text) => self.push_text(b'"', text),
            JsonEvent::Key(text) => self.push_text(b'k', text),
            JsonEvent::BeginArray => self.tape.push(b'['),
            JsonEvent::EndArray => self.tape.push(b']'),
            JsonEvent::BeginObject => self.tape.push(b'{'),
            JsonEvent::EndObject => self.tape.push(b'}'),
        }
    }

    /// Appends all events of another tape.
    pub fn append(&mut self, other: &Json) {
        self.tape.extend_from_slice(&other.tape);
    }

    /// Appends a part of another tape, cut between events.
    pub fn append_part(&mut self, other: &Json, part: Range<usize>) {
        self.tape.extend_from_slice(&other.tape[part]);
    }

    fn push_text(&mut self, tag: u8, text: &str) {
        let len = u32::try_from(text.len()).expect("JSON strings stay below 4 GB");
        self.tape.push(tag);
        self.tape.extend_from_slice(&len.to_le_bytes());
        self.tape.extend_from_slice(text.as_bytes());
    }

    /// The events, in order.
    pub fn events(&self) -> JsonEvents<'_> {
        self.events_from(0)
    }

    /// The events from a place between two events on.
    pub fn events_from(&self, place: usize) -> JsonEvents<'_> {
        JsonEvents { tape: &self.tape, at: place }
    }
}

/// Iterator over a tape; see [`Json::events`].
#[derive(Clone, Debug)]
pub struct JsonEvents<'a> {
    tape: &'a [u8],
    at: usize,
}

impl JsonEvents<'_> {
    /// Bytes of the tape already read; with [`Json::truncate`] a place to cut.
    pub fn position(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for JsonEvents<'a> {
    type Item = JsonEvent<'a>;

    fn next(&mut self) -> Option<JsonEvent<'a>> {
        let tag = *self.tape.get(self.at)?;
        self.at += 1;
        Some(match tag {
            b'n' => JsonEvent::Null,
            b't' => JsonEvent::Bool(true),
            b'f' => JsonEvent::Bool(false),
            b'[' => JsonEvent::BeginArray,
            b']' => JsonEvent::EndArray,
            b'{' => JsonEvent::BeginObject,
            b'}' => JsonEvent::EndObject,
            tag => {
                let len = self.tape[self.at..self.at + 4].try_into().expect("4 bytes");
                let start = self.at + 4;
                self.at = start + u32::from_le_bytes(len) as usize;
                let text = std::str::from_utf8(&self.tape[start..self.at])
                    .expect("a tape holds what `push` was given");
                match tag {
                    b'#' => JsonEvent::Number(text),
                    b'"' => JsonEvent::String(text),
                    _ => JsonEvent::Key(text),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_gives_back_its_events() {
        let events = [
            JsonEvent::BeginObject,
            JsonEvent::Key("é"),
            JsonEvent::BeginArray,
            JsonEvent::Number("1.50"),
            JsonEvent::String(""),
            JsonEvent::Null,
            JsonEvent::Bool(true),
            JsonEvent::EndArray,
            JsonEvent::EndObject,
        ];
        let mut json = Json::new();
        events.iter().for_each(|&event| json.push(event));
        assert_eq!(json.events().collect::<Vec<_>>(), events);
    }
}
