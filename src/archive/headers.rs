//! The header of a message or part: its fields, unfolded and decoded.
//!
//! [`Headers::scan`] only finds the fields; nothing is decoded that nobody asks for. A
//! value is unfolded by putting one space where a line was folded, and encoded words
//! (RFC 2047) are decoded wherever they stand, neighbours of one character set
//! together, so that a character cut in two by a careless sender is whole again.
//! Undeclared 8-bit bytes are UTF-8 if they can be, else windows-1252.
//!
//! Lines that are no fields: a `From ` line is skipped (a mailbox in a mailbox); a line
//! before another field is damage and skipped; otherwise the blank line is missing and
//! the body begins here.

use std::borrow::Cow;
use std::cmp::Ordering;

use memchr::memchr;

use super::decode::{self, Notes};
use crate::document::{Json, JsonEvent};

/// Fields of a header that are read. What a field costs here is more than its bytes in
/// the message, so a message of nothing but the shortest fields must not decide.
const FIELDS_MAX: usize = 50_000;
/// Longest name of a field.
const NAME_MAX: usize = 1000;
/// Longest name of a character set in an encoded word.
const LABEL_MAX: usize = 64;
/// Bytes of headers, decoded, that go into a document's JSON value.
const JSON_MAX: usize = 64 << 20;

/// Fields whose values are lists of message ids: arrays, each id as written, with its
/// angle brackets.
const IDS: [&str; 2] = ["references", "in-reply-to"];
/// Fields whose values are lists of addresses: arrays, each address as written.
const ADDRESSES: [&str; 7] =
    ["to", "cc", "bcc", "reply-to", "resent-to", "resent-cc", "resent-bcc"];

/// One field, as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    name: &'a [u8],
    /// Behind the colon, folds included.
    value: &'a [u8],
}

/// A header and the body below it.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    list: Vec<Header<'a>>,
    /// All bytes after the blank line.
    pub body: &'a [u8],
}

/// The name of the field that a line begins, if it begins one.
pub(super) fn field_name(line: &[u8]) -> Option<&[u8]> {
    let colon = memchr(b':', &line[..line.len().min(NAME_MAX)])?;
    let name = line[..colon].trim_ascii_end();
    (!name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some(name)
}

/// Whether the text begins with a header field.
pub(super) fn begins(text: &[u8]) -> bool {
    field_name(first_line(text)).is_some()
}

fn first_line(text: &[u8]) -> &[u8] {
    &text[..memchr(b'\n', text).unwrap_or(text.len())]
}

impl<'a> Headers<'a> {
    /// Finds the fields of a message or part.
    pub fn scan(text: &'a [u8], notes: &mut Notes) -> Headers<'a> {
        let mut list: Vec<Header<'a>> = Vec::with_capacity(16);
        let mut at = 0;
        // Where the value of the last field begins; the field is as long as lines follow
        // that continue it.
        let mut value_start = 0;
        let mut full = false;
        while at < text.len() {
            let line = first_line(&text[at..]);
            let next = (at + line.len() + 1).min(text.len());
            let content = line.strip_suffix(b"\r").unwrap_or(line);
            if content.is_empty() {
                return Headers { list, body: &text[next..] };
            }
            if matches!(content[0], b' ' | b'\t') && !list.is_empty() {
                if let Some(last) = list.last_mut().filter(|_| !full) {
                    last.value = &text[value_start..at + line.len()];
                }
            } else if list.len() == FIELDS_MAX && field_name(content).is_some() {
                full = true;
                notes.headers_left_out += 1;
            } else if let Some(name) = field_name(content) {
                let colon = memchr(b':', line).expect("field_name found it");
                value_start = at + colon + 1;
                list.push(Header { name, value: &line[colon + 1..] });
            } else if content.starts_with(b"From ") || content.starts_with(b">From ") {
                // Of a mailbox around this one.
            } else if begins(&text[next..]) {
                notes.header_lines += 1;
            } else {
                if !list.is_empty() {
                    notes.header_lines += 1;
                }
                return Headers { list, body: &text[at..] };
            }
            at = next;
        }
        Headers { list, body: &[] }
    }

    /// Whether there is no field at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first field of that name, as written behind the colon.
    pub fn raw(&self, name: &str) -> Option<&'a [u8]> {
        let wanted = name.as_bytes();
        let is_it = |header: &&Header<'_>| {
            header.name.len() == wanted.len()
                && header.name.eq_ignore_ascii_case(wanted)
        };
        self.list.iter().find(is_it).map(|header| header.value)
    }

    /// The first field of that name as text.
    pub fn text(&self, name: &str, notes: &mut Notes) -> Option<Cow<'a, str>> {
        let raw = self.raw(name)?;
        Some(match unfolded(raw) {
            Cow::Borrowed(line) if find_word(line).is_none() => {
                decode::text(Cow::Borrowed(line), None, notes)
            }
            line => {
                let mut text = String::new();
                push_decoded(&line, &mut text, notes);
                Cow::Owned(text)
            }
        })
    }

    /// All fields as a JSON object: lower-case names, decoded values; an array where
    /// the field is a list ([`IDS`], [`ADDRESSES`]) or appears more than once.
    pub fn json(&self, json: &mut Json, notes: &mut Notes) {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        let name = |at: u32| self.list[at as usize].name;
        order.sort_by(|&a, &b| by_lower_case(name(a), name(b)));
        let mut lower = String::new();
        let mut text = String::new();
        let same = |a: &u32, b: &u32| name(*a).eq_ignore_ascii_case(name(*b));
        json.push(JsonEvent::BeginObject);
        for group in order.chunk_by(same) {
            if json.len() > JSON_MAX {
                notes.headers_left_out += group.len();
                continue;
            }
            lower.clear();
            lower.extend(
                name(group[0]).iter().map(|b| char::from(b.to_ascii_lowercase())),
            );
            json.push(JsonEvent::Key(&lower));
            let (ids, addresses) =
                (IDS.contains(&&lower[..]), ADDRESSES.contains(&&lower[..]));
            let array = ids || addresses || group.len() > 1;
            if array {
                json.push(JsonEvent::BeginArray);
            }
            for &at in group {
                let line = unfolded(self.list[at as usize].value);
                if json.len() + line.len() > JSON_MAX {
                    notes.headers_left_out += 1;
                    if !array {
                        json.push(JsonEvent::Null);
                    }
                    continue;
                }
                let mut push = |value: &[u8]| {
                    if value.is_ascii()
                        && memchr(0, value).is_none()
                        && find_word(value).is_none()
                        && let Ok(plain) = std::str::from_utf8(value)
                    {
                        return json.push(JsonEvent::String(plain));
                    }
                    text.clear();
                    push_decoded(value, &mut text, notes);
                    json.push(JsonEvent::String(&text));
                };
                if ids {
                    message_ids(&line).for_each(&mut push);
                } else if addresses {
                    split_addresses(&line).for_each(&mut push);
                } else {
                    push(&line);
                }
            }
            if array {
                json.push(JsonEvent::EndArray);
            }
        }
        json.push(JsonEvent::EndObject);
    }
}

/// jsonb's order of keys, by length, then bytes; whoever reads the value need not sort.
fn by_lower_case(a: &[u8], b: &[u8]) -> Ordering {
    let lower = u8::to_ascii_lowercase;
    a.len().cmp(&b.len()).then_with(|| a.iter().map(lower).cmp(b.iter().map(lower)))
}

/// A value on one line: white space around a fold becomes one space.
pub(super) fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    let value = value.trim_ascii();
    if memchr(b'\n', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    for line in value.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        if !out.is_empty() && !line.is_empty() {
            out.push(b' ');
        }
        out.extend_from_slice(line);
    }
    Cow::Owned(out)
}

/// Where an encoded word may begin.
fn find_word(value: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'=', value).find(|&at| value.get(at + 1) == Some(&b'?'))
}

/// Appends a value, already on one line, with its encoded words decoded.
fn push_decoded(value: &[u8], out: &mut String, notes: &mut Notes) {
    let mut rest = value;
    // Bytes of encoded words of one character set that have not been turned into text.
    let mut pending: Option<(&[u8], Vec<u8>)> = None;
    loop {
        let start = find_word(rest);
        let before = &rest[..start.unwrap_or(rest.len())];
        let word = start.and_then(|start| encoded_word(&rest[start..], notes));
        // White space between encoded words belongs to their encoding.
        if !(word.is_some() && pending.is_some() && before.trim_ascii().is_empty()) {
            flush(&mut pending, out, notes);
            out.push_str(&decode::text(Cow::Borrowed(before), None, notes));
        }
        let Some(start) = start else { break };
        rest = &rest[start..];
        let Some(word) = word else {
            flush(&mut pending, out, notes);
            out.push_str("=?");
            rest = &rest[2..];
            continue;
        };
        rest = &rest[word.len..];
        match &mut pending {
            Some((label, bytes)) if label.eq_ignore_ascii_case(word.label) => {
                bytes.extend_from_slice(&word.bytes);
            }
            _ => {
                flush(&mut pending, out, notes);
                pending = Some((word.label, word.bytes));
            }
        }
    }
    flush(&mut pending, out, notes);
}

fn flush(pending: &mut Option<(&[u8], Vec<u8>)>, out: &mut String, notes: &mut Notes) {
    if let Some((label, bytes)) = pending.take() {
        let label = String::from_utf8_lossy(label);
        out.push_str(&decode::text(Cow::Owned(bytes), Some(&label), notes));
    }
}

struct Word<'a> {
    /// Its character set.
    label: &'a [u8],
    bytes: Vec<u8>,
    /// Bytes that it takes in the value.
    len: usize,
}

/// The encoded word `=?label?encoding?text?=` that `value` begins with.
fn encoded_word<'a>(value: &'a [u8], notes: &mut Notes) -> Option<Word<'a>> {
    let label_end =
        2 + memchr(b'?', value[2..].get(..LABEL_MAX).unwrap_or(&value[2..]))?;
    let label = &value[2..label_end];
    if label.is_empty() || !label.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    // A language may follow the character set (RFC 2231).
    let label = label.split(|&byte| byte == b'*').next().unwrap_or(label);
    let [encoding, b'?', text @ ..] = &value[label_end + 1..] else { return None };
    let end = memchr(b'?', text).filter(|&end| text.get(end + 1) == Some(&b'='))?;
    let text = &text[..end];
    let bytes = match encoding {
        b'B' | b'b' => decode::base64(text, &mut notes.base64),
        b'Q' | b'q' => {
            let spaced: Vec<u8> = text
                .iter()
                .map(|&byte| if byte == b'_' { b' ' } else { byte })
                .collect();
            decode::quoted_printable(&spaced, &mut notes.quoted_printable)
        }
        _ => return None,
    };
    Some(Word { label, bytes, len: label_end + 3 + end + 2 })
}

/// The ids of a value such as `<a@b> <c@d>`, with their brackets; its words when it has
/// no brackets.
fn message_ids(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bracketed = memchr(b'<', value).is_some();
    let mut rest = value;
    std::iter::from_fn(move || {
        let start = if bracketed { memchr(b'<', rest)? } else { 0 };
        let id = rest[start..].trim_ascii_start();
        let len = if bracketed {
            memchr(b'>', id).map_or(id.len(), |end| end + 1)
        } else {
            id.iter().position(u8::is_ascii_whitespace).unwrap_or(id.len())
        };
        rest = &id[len..];
        (len > 0).then(|| id[..len].trim_ascii_end())
    })
}

/// The addresses of a value such as `A <a@b>, "B, C" <c@d>`: cut at commas outside
/// quotes, comments, brackets and groups.
fn split_addresses(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = address_end(rest);
            let address = rest[..end].trim_ascii();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !address.is_empty() {
                return Some(address);
            }
        }
        None
    })
}

/// Where the comma after the first address stands.
fn address_end(value: &[u8]) -> usize {
    let (mut quoted, mut comment, mut angle, mut group) =
        (false, 0_usize, false, false);
    let mut at = 0;
    while at < value.len() {
        match value[at] {
            b'\\' => at += 1,
            b'"' if comment == 0 => quoted = !quoted,
            _ if quoted => {}
            b'(' => comment += 1,
            b')' => comment = comment.saturating_sub(1),
            _ if comment > 0 => {}
            b'<' => angle = true,
            b'>' => angle = false,
            b':' if !angle => group = true,
            b';' => group = false,
            b',' if !angle && !group => return at,
            _ => {}
        }
        at += 1;
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_nothing_but_short_fields_is_read_up_to_a_bound() {
        let mut notes = Notes::default();
        let text = "a:\n".repeat(FIELDS_MAX + 5) + "\nbody";
        let headers = Headers::scan(text.as_bytes(), &mut notes);
        assert_eq!(headers.body, b"body");
        assert_eq!((headers.list.len(), notes.headers_left_out), (FIELDS_MAX, 5));
        assert!(headers.list.capacity() * size_of::<Header<'_>>() <= 4 << 20);
    }
}
