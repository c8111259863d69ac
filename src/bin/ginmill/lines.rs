//! Values on stdin, one a line, for `keys` and `query`.
//!
//! A line is the value as it is, or with `--json-lines` a JSON string that holds it. The
//! output is flushed whenever no further line is waiting, so that another program can
//! ask and wait for the answer.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use ginmill::{Error, ErrorKind};
use serde_json::{Value as Json, json};

use crate::face::{Face, Failure, Status};

const BUFFER: usize = 1 << 16;

/// A value read from a line.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Line {
    /// SQL's NULL: the JSON value `null`.
    Null,
    /// A string.
    Text(String),
    /// Another JSON value.
    Json(Json),
}

/// The value of a line without its newline.
pub(crate) fn read(line: &[u8], json_lines: bool) -> Result<Line, Error> {
    if json_lines {
        return match serde_json::from_slice(line) {
            Ok(Json::Null) => Ok(Line::Null),
            Ok(Json::String(text)) => Ok(Line::Text(text)),
            Ok(other) => Ok(Line::Json(other)),
            Err(error) => Err(Error::value(format!("the line is not JSON: {error}"))),
        };
    }
    match std::str::from_utf8(line) {
        Ok(text) => Ok(Line::Text(text.to_owned())),
        Err(error) => Err(Error::value(format!(
            "the line is not UTF-8 from byte {} on",
            error.valid_up_to()
        ))),
    }
}

/// Answers every line of stdin with one line of JSON. A value that is refused becomes
/// `{"error": …}` and the next line goes on; every other failure ends.
pub(crate) fn answer_each(
    face: &mut Face,
    mut answer: impl FnMut(&[u8]) -> Result<Json, Error>,
) -> Result<Status, Failure> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(Error::io("read", Path::new("stdin")))? == 0 {
            return Ok(Status::Done);
        }
        let value = match answer(line.strip_suffix(b"\n").unwrap_or(&line)) {
            Ok(value) => value,
            Err(error) => match error.kind() {
                ErrorKind::Value(reason) | ErrorKind::Invalid(reason) => {
                    json!({ "error": reason })
                }
                _ => return Err(error.into()),
            },
        };
        face.line(&value)?;
        if !input.buffer().contains(&b'\n') {
            face.out.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_plain_value_or_a_json_string() {
        assert_eq!(read(b"\"a\"", false).unwrap(), Line::Text("\"a\"".to_owned()));
        assert_eq!(read(b"\"a\\n\"", true).unwrap(), Line::Text("a\n".to_owned()));
        assert_eq!(read(b" null ", true).unwrap(), Line::Null);
        assert_eq!(read(b"[1]", true).unwrap(), Line::Json(json!([1])));
        for (line, json_lines) in
            [(&b"\xff"[..], false), (b"\"\\ud800\"", true), (b"", true)]
        {
            assert!(read(line, json_lines).is_err(), "{line:?}");
        }
    }
}
