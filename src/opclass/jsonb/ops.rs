//! `jsonb_ops`: keys and scalars, each on its own.
//!
//! A key is a flag byte and a payload: every object key, every scalar at any depth;
//! containers add nothing. A string that is an array's element (or the root) counts as
//! a key, so that `?` finds it. A payload beyond [`PAYLOAD_MAX`] bytes is replaced by
//! its hash in hexadecimal, marked in the flag.

use super::hash::hash_bytes;
use super::numeric;
use crate::document::{Json, JsonEvent};
use crate::error::Result;

/// Flag of an object key and of a string that is an array's element.
const KEY: u8 = 0x01;
const NULL: u8 = 0x02;
const BOOL: u8 = 0x03;
const NUMBER: u8 = 0x04;
/// Flag of a string that is an object's value.
const STRING: u8 = 0x05;
/// Added to a flag when the payload is a hash.
const HASHED: u8 = 0x10;

/// Longest payload that stands for itself.
pub const PAYLOAD_MAX: usize = 125;

/// Longest key: the flag and the payload.
const KEY_MAX: usize = 1 + PAYLOAD_MAX;

/// Makes keys in a place that it keeps.
#[derive(Clone, Debug)]
pub(crate) struct KeyWriter {
    key: [u8; KEY_MAX],
    /// Plain notation of numbers that the tape holds with an exponent.
    number: String,
}

impl KeyWriter {
    pub(crate) fn new() -> KeyWriter {
        KeyWriter { key: [0; KEY_MAX], number: String::new() }
    }

    fn put(&mut self, flag: u8, payload: &[u8]) -> &[u8] {
        make(&mut self.key, flag, payload)
    }

    /// The key of an object key, and of a string as an array's element.
    pub(crate) fn name(&mut self, name: &str) -> &[u8] {
        self.put(KEY, name.as_bytes())
    }

    /// The key of a string as an object's value.
    pub(crate) fn string(&mut self, string: &str) -> &[u8] {
        self.put(STRING, string.as_bytes())
    }

    pub(crate) fn null(&mut self) -> &[u8] {
        self.put(NULL, b"")
    }

    pub(crate) fn bool(&mut self, value: bool) -> &[u8] {
        self.put(BOOL, if value { b"t" } else { b"f" })
    }

    pub(crate) fn number(&mut self, number: &str) -> &[u8] {
        let payload = numeric::canonical(number, &mut self.number);
        make(&mut self.key, NUMBER, payload.as_bytes())
    }

    /// Bytes of memory held on the heap.
    pub(crate) fn memory(&self) -> usize {
        self.number.capacity()
    }
}

fn make<'a>(key: &'a mut [u8; KEY_MAX], flag: u8, payload: &[u8]) -> &'a [u8] {
    if payload.len() <= PAYLOAD_MAX {
        key[0] = flag;
        key[1..=payload.len()].copy_from_slice(payload);
        return &key[..=payload.len()];
    }
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let hash = hash_bytes(payload);
    key[0] = flag | HASHED;
    for (at, digit) in key[1..=8].iter_mut().enumerate() {
        *digit = DIGITS[(hash >> (28 - 4 * at) & 0xF) as usize];
    }
    &key[..=8]
}

/// Calls `found` with every key of a value, in document order, equal ones as often as
/// they occur.
pub(crate) fn keys_of(
    json: &Json,
    writer: &mut KeyWriter,
    mut found: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut is_member = false;
    for event in json.events() {
        let key = match event {
            JsonEvent::Key(name) => {
                found(writer.name(name))?;
                is_member = true;
                continue;
            }
            JsonEvent::String(string) if is_member => writer.string(string),
            JsonEvent::String(string) => writer.name(string),
            JsonEvent::Number(number) => writer.number(number),
            JsonEvent::Bool(value) => writer.bool(value),
            JsonEvent::Null => writer.null(),
            JsonEvent::BeginArray
            | JsonEvent::EndArray
            | JsonEvent::BeginObject
            | JsonEvent::EndObject => {
                is_member = false;
                continue;
            }
        };
        is_member = false;
        found(key)?;
    }
    Ok(())
}

/// What a key stands for: its kind (`key`, `string`, `number`, `bool`, `null`), its
/// text, and whether that text is a hash.
pub fn describe(key: &[u8]) -> (&'static str, String, bool) {
    let (flag, payload) =
        key.split_first().map_or((0, key), |(&flag, rest)| (flag, rest));
    let text = String::from_utf8_lossy(payload).into_owned();
    let (kind, text) = match flag & !HASHED {
        KEY => ("key", text),
        NULL => ("null", "null".to_owned()),
        BOOL if payload == b"t" => ("bool", "true".to_owned()),
        BOOL => ("bool", "false".to_owned()),
        NUMBER => ("number", text),
        STRING => ("string", text),
        _ => ("unknown", text),
    };
    (kind, text, flag & HASHED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::parse;

    fn keys(text: &str) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let json = parse(text).unwrap();
        keys_of(&json, &mut KeyWriter::new(), |key| {
            keys.push(key.to_vec());
            Ok(())
        })
        .unwrap();
        keys
    }

    #[test]
    fn every_key_and_scalar_is_a_key() {
        let found = keys(r#"{"a":[1,"x",null,true,{"b":"str"}],"c":"y"}"#);
        let expected: [&[u8]; 9] = [
            b"\x01a", b"\x041", b"\x01x", b"\x02", b"\x03t", b"\x01b", b"\x05str",
            b"\x01c", b"\x05y",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn long_payloads_are_hashed() {
        assert_eq!(keys(&format!("\"{}\"", "z".repeat(125)))[0].len(), 126);
        let found = keys(&format!(r#"{{"a":"{}"}}"#, "z".repeat(126)));
        assert_eq!(found[1], b"\x15f74f0224");
        assert_eq!(keys("1e125")[0][0], NUMBER | HASHED);
        assert_eq!(describe(&found[1]), ("string", "f74f0224".to_owned(), true));
        assert_eq!(describe(b"\x03f"), ("bool", "false".to_owned(), false));
        assert_eq!(describe(b""), ("unknown", String::new(), false));
    }
}
