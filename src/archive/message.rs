//! A mail message as a document: the fields of every mail format.
//!
//! | field | what |
//! |---|---|
//! | `headers` | JSON object, see below |
//! | `subject` | decoded; null without one |
//! | `body` | the text that `mime` chooses; empty when there is none |
//! | `from` `to` | that header, decoded, as written |
//! | `list` | `List-Id` |
//! | `message_id` | `Message-ID` as written, with its angle brackets |
//!
//! In `headers` names are lower case and values decoded strings on one line, addresses
//! as written: `"from": "Ann Á. <ann@example.org>"`. Arrays of strings are `to`, `cc`,
//! `bcc`, `reply-to` and their `resent-` forms (an address each), `references` and
//! `in-reply-to` (an id each, angle brackets kept as in `message-id`), always, and any
//! other header that appears more than once. Pipermail's ` at ` addresses stay as they
//! are.
//!
//! The date is that of `Date`, else of the first `Received` with one, else of the mbox
//! `From ` line.

use std::borrow::Cow;

use super::decode::Notes;
use super::headers::Headers;
use super::{date, mime};
use crate::document::{Document, Field, Json, Value, ValueKind};
use crate::error::{Error, Result};

/// Text fields that are a header's decoded value, after the first three fields.
const HEADER_FIELDS: [(&str, &str); 4] =
    [("from", "from"), ("to", "to"), ("list", "list-id"), ("message_id", "message-id")];

/// Index definitions for mail when the user names none.
pub(super) const DEFAULT_INDEXES: &[&str] = &[
    "headers_jsonb_path=jsonb_path_ops(headers)",
    "headers_jsonb=jsonb_ops(headers)",
    "subject_trgm=gin_trgm_ops(subject)",
    "body_trgm=gin_trgm_ops(body)",
    "body_tsvector=tsvector_ops(body, english)",
    "subject_tsvector=tsvector_ops(subject, english)",
];

/// The fields of mail.
pub(super) fn fields() -> Vec<Field> {
    let mut fields = vec![
        Field::new("headers", ValueKind::Json),
        Field::new("subject", ValueKind::Text),
        Field::new("body", ValueKind::Text),
    ];
    fields.extend(HEADER_FIELDS.map(|(name, _)| Field::new(name, ValueKind::Text)));
    fields
}

/// Fills the document from a message without its mbox `From ` line, whose date is
/// `envelope`.
pub(super) fn parse<'a>(
    text: &'a [u8],
    envelope: Option<i64>,
    wanted: &[bool],
    document: &mut Document<'a>,
) -> Result<()> {
    let mut notes = Notes::default();
    let headers = Headers::scan(text, &mut notes);
    if headers.is_empty() && headers.body.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::invalid(
            "expected a message, found neither headers nor a body",
        ));
    }
    let wants = |at: usize| wanted.get(at).copied().unwrap_or(false);
    let values = &mut document.values;
    values.clear();
    values.resize(3 + HEADER_FIELDS.len(), Value::Null);
    if wants(0) {
        let mut json = Json::new();
        headers.json(&mut json, &mut notes);
        values[0] = Value::Json(json);
    }
    let text_of = |value: Option<Cow<'a, str>>| value.map_or(Value::Null, Value::Text);
    if wants(1) {
        values[1] = text_of(headers.text("subject", &mut notes));
    }
    if wants(2) {
        values[2] = Value::Text(mime::body(&headers, &mut notes));
    }
    for (at, (_, header)) in HEADER_FIELDS.iter().enumerate() {
        if wants(3 + at) {
            values[3 + at] = text_of(headers.text(header, &mut notes));
        }
    }
    document.tid = None;
    document.date = ["date", "received"]
        .iter()
        .find_map(|name| headers.raw(name).and_then(date::of_field))
        .or(envelope);
    document.warnings = notes.into_warnings();
    Ok(())
}

/// The document with texts of its own.
pub(super) fn into_owned(document: Document<'_>) -> Document<'static> {
    let own = |value: Value<'_>| match value {
        Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        Value::Null => Value::Null,
        Value::Json(json) => Value::Json(json),
        Value::Lexemes(list) => Value::Lexemes(list),
        Value::Texts(list) => Value::Texts(list),
        Value::Integers(list) => Value::Integers(list),
    };
    Document {
        values: document.values.into_iter().map(own).collect(),
        tid: document.tid,
        date: document.date,
        warnings: document.warnings,
    }
}
