//! Files that are one message each: Maildirs and single `.eml` files.

use std::path::Path;

use super::{Format, date, headers, message};
use crate::document::{Document, Field};
use crate::error::Result;

/// A message of a Maildir's `cur` or `new`.
#[derive(Debug)]
pub struct Maildir;

/// A message in a file of its own.
#[derive(Debug)]
pub struct Eml;

impl Format for Maildir {
    fn name(&self) -> &'static str {
        "maildir"
    }

    fn summary(&self) -> &'static str {
        "Maildir: a message per file of its cur and new directories"
    }

    fn fields(&self) -> Vec<Field> {
        message::fields()
    }

    fn default_indexes(&self) -> &'static [&'static str] {
        message::DEFAULT_INDEXES
    }

    /// Its place says it, not its content; with a file alone nothing does.
    fn sniff(&self, _path: &Path, _head: &[u8]) -> bool {
        false
    }

    fn whole_files(&self) -> bool {
        true
    }

    fn split(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        (at == 0 && !text.is_empty()).then_some((0, text.len()))
    }

    fn parse<'a>(
        &self,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()> {
        parse(raw, wanted, document)
    }
}

impl Format for Eml {
    fn name(&self) -> &'static str {
        "eml"
    }

    fn summary(&self) -> &'static str {
        "one message per file"
    }

    fn fields(&self) -> Vec<Field> {
        message::fields()
    }

    fn default_indexes(&self) -> &'static [&'static str] {
        message::DEFAULT_INDEXES
    }

    fn sniff(&self, path: &Path, head: &[u8]) -> bool {
        let named = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("eml"));
        named || begins_as_mail(head)
    }

    fn whole_files(&self) -> bool {
        true
    }

    fn split(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        (at == 0 && !text.is_empty()).then_some((0, text.len()))
    }

    fn parse<'a>(
        &self,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()> {
        parse(raw, wanted, document)
    }
}

/// A file's message; a `From ` line that some program left at its start is no header,
/// but may give its date.
fn parse<'a>(
    raw: &'a [u8],
    wanted: &[bool],
    document: &mut Document<'a>,
) -> Result<()> {
    let first = raw.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let date = first.strip_prefix(b"From ").and_then(date::at_end);
    message::parse(raw, date, wanted, document)
}

/// Whether the bytes begin with a header of mail: two fields at least, one of them a
/// field that mail has. Any text with a colon in its first line would do otherwise.
fn begins_as_mail(head: &[u8]) -> bool {
    const KNOWN: [&[u8]; 10] = [
        b"from",
        b"to",
        b"date",
        b"subject",
        b"received",
        b"return-path",
        b"message-id",
        b"delivered-to",
        b"mime-version",
        b"content-type",
    ];
    let mut fields = 0;
    let mut known = 0;
    for line in head.split(|&byte| byte == b'\n') {
        let blank = line.trim_ascii().is_empty();
        if blank {
            break;
        }
        if line.starts_with(b"From ") || (fields > 0 && matches!(line[0], b' ' | b'\t'))
        {
            continue;
        }
        let Some(name) = headers::field_name(line) else { break };
        fields += 1;
        known += usize::from(KNOWN.iter().any(|it| it.eq_ignore_ascii_case(name)));
    }
    fields >= 2 && known >= 1
}
