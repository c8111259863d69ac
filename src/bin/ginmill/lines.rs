//! Values on stdin, one a line, for `keys` and `query`.
//!
//! A line is the value as it is, or with `--json-lines` a JSON string that holds it. The
//! output is flushed whenever no further line is waiting, so that another program can
//! ask and wait for the answer.

use std::io::{self, BufRead, Write};

use serde_json::Value as JsonValue;

use crate::face::{Face, Failure, Status};

/// A value read from a line.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Line {
    /// SQL's NULL: the JSON value `null`.
    Null,
    /// A string.
    Text(String),
    /// Another JSON value.
    Json(JsonValue),
}

/// The value of a line without its newline; the error is for the answer.
pub(crate) fn read(line: &[u8], json_lines: bool) -> Result<Line, String> {
    if json_lines {
        return match serde_json::from_slice(line) {
            Ok(JsonValue::Null) => Ok(Line::Null),
            Ok(JsonValue::String(text)) => Ok(Line::Text(text)),
            Ok(other) => Ok(Line::Json(other)),
            Err(error) => Err(format!("the line is not JSON: {error}")),
        };
    }
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Line::Text(text.to_owned())),
        Err(error) => Err(format!(
            "the line is not UTF-8 from byte {} on",
            error.valid_up_to()
        )),
    }
}

/// Answers every line of stdin with one line of JSON.
pub(crate) fn answer_each(
    face: &mut Face,
    mut answer: impl FnMut(&[u8]) -> Result<JsonValue, Failure>,
) -> Result<Status, Failure> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        let read = read.map_err(ginmill::Error::io("read", "stdin".as_ref()))?;
        if read == 0 {
            return Ok(Status::Done);
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let value = answer(text)?;
        face.line(&value)?;
        if !has_line(&mut input) {
            face.out.flush()?;
        }
    }
}

/// Whether a line is already in the buffer.
fn has_line(input: &mut io::StdinLock<'_>) -> bool {
    // `fill_buf` would wait for input when the buffer is empty; reading nothing does not.
    let _ = input;
    false
}
