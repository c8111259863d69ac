//! Tape → text, in PostgreSQL's form.

use super::numeric;
use crate::document::{Json, JsonEvent};

/// How many bytes at the front are neither a quote nor a backslash nor a control.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
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
