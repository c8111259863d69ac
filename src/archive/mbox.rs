//! mbox in all its dialects, and the monthly text files of pipermail.
//!
//! A message begins with a `From ` line and ends before the next one. What counts as
//! one, and not as a sentence that begins with "From":
//!
//! * it ends in a date (`date::at_end`), and
//! * it is the file's first line, or a blank line stands before it; or it is of
//!   pipermail's shape (`From a at b  DATE`, then `From: a at b (Name)`), for pipermail
//!   leaves the blank line out where it has put a link in place of an attachment.
//!
//! mboxcl and mboxcl2 say in `Content-Length` how long a body is. That is believed when
//! a `From ` line with a date, or the end of the file, stands exactly there.
//!
//! An item is a message with its `From ` line and without the blank line that separates
//! it from the next. Lines that mboxo or mboxrd has quoted (`>From `, `>>From `) lose one
//! `>` before they are read. Bytes before the first `From ` line are an item of their
//! own, which is read as a message without one.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

use super::{Format, date, headers, message};
use crate::document::{Document, Field};
use crate::error::{Error, Result};

/// Longest `From ` line.
const FROM_LINE_MAX: usize = 1000;

static NEWLINE_FROM: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\nFrom "));
static QUOTED_FROM: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b">From "));

/// Unix mailboxes; see the module.
#[derive(Debug)]
pub struct Mbox;

impl Format for Mbox {
    fn name(&self) -> &'static str {
        "mbox"
    }

    fn summary(&self) -> &'static str {
        "mbox (mboxo, mboxrd, mboxcl, mboxcl2) and pipermail's monthly text files"
    }

    fn fields(&self) -> Vec<Field> {
        message::fields()
    }

    fn default_indexes(&self) -> &'static [&'static str] {
        message::DEFAULT_INDEXES
    }

    fn sniff(&self, _path: &Path, head: &[u8]) -> bool {
        let head = &head[blank_bytes(head)..];
        from_line(head).is_some_and(|line| date::at_end(line).is_some())
    }

    fn split(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let begin = at + blank_bytes(&text[at..]);
        if begin == text.len() {
            return None;
        }
        let end = next_separator(text, begin);
        let end = match content_end(text, begin, end) {
            Some(exact) => exact,
            None => without_blank_line(&text[..end]),
        };
        Some((begin, end))
    }

    fn parse<'a>(
        &self,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()> {
        let line = from_line(raw);
        let text = match line {
            Some(line) => &raw[(line.len() + 1).min(raw.len())..],
            None if headers::begins(raw) => raw,
            None => {
                let start = String::from_utf8_lossy(&raw[..raw.len().min(20)]);
                return Err(Error::invalid(format!(
                    "expected a From line or a header, found {start:?}"
                )));
            }
        };
        let date = line.and_then(date::at_end);
        match unquoted(text) {
            Cow::Borrowed(text) => message::parse(text, date, wanted, document),
            Cow::Owned(text) => {
                let mut own = Document::default();
                message::parse(&text, date, wanted, &mut own)?;
                *document = message::into_owned(own);
                Ok(())
            }
        }
    }
}

/// The `From ` line that `text` begins with, if it does, without its newline.
fn from_line(text: &[u8]) -> Option<&[u8]> {
    if !text.starts_with(b"From ") {
        return None;
    }
    let text = &text[..text.len().min(FROM_LINE_MAX)];
    match memchr(b'\n', text) {
        Some(end) => Some(&text[..end]),
        None => (text.len() < FROM_LINE_MAX).then_some(text),
    }
}

/// Where the first separator after `begin` stands; the end of the text without one.
fn next_separator(text: &[u8], begin: usize) -> usize {
    NEWLINE_FROM
        .find_iter(&text[begin..])
        .map(|newline| begin + newline + 1)
        .find(|&at| is_separator(text, at))
        .unwrap_or(text.len())
}

/// Whether the `From ` at `at`, not at the start of the text, separates messages.
fn is_separator(text: &[u8], at: usize) -> bool {
    let Some(line) = from_line(&text[at..]) else { return false };
    if date::at_end(line).is_none() {
        return false;
    }
    let before = &text[..at];
    if before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n") || at == 1 {
        return true;
    }
    // Pipermail's shape: the header repeats the address of the line.
    let after = &text[(at + line.len() + 1).min(text.len())..];
    let after = &after[..after.len().min(FROM_LINE_MAX)];
    let sender = sender(&line[b"From ".len()..]);
    let repeated = after
        .strip_prefix(b"From: ")
        .and_then(|after| after.strip_prefix(sender))
        .and_then(<[u8]>::first);
    !sender.is_empty() && repeated.is_some_and(u8::is_ascii_whitespace)
}

/// The address, `a@b` or `a at b`, that a line begins with.
fn sender(line: &[u8]) -> &[u8] {
    let mut spaces = memchr::memchr_iter(b' ', line);
    let Some(first) = spaces.next() else { return line };
    if !line[first..].starts_with(b" at ") {
        return &line[..first];
    }
    &line[..spaces.nth(1).unwrap_or(line.len())]
}

/// Where the message that begins at `begin` ends by its own account, `Content-Length`,
/// if a separator or the end of the text stands exactly there. `next` is where the next
/// separator seems to be; only the text before it is searched for the header.
fn content_end(text: &[u8], begin: usize, next: usize) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let mut at = begin;
    let mut length = None;
    loop {
        let newline = at + memchr(b'\n', &text[at..next])?;
        let line = text[at..newline].trim_ascii_end();
        at = newline + 1;
        if line.is_empty() {
            break;
        }
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let digits = line[NAME.len()..].trim_ascii();
            length =
                std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok());
        }
    }
    let end = at.checked_add(length?).filter(|&end| end <= text.len())?;
    let rest = &text[end..];
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let there = rest.is_empty()
        || from_line(rest).is_some_and(|line| date::at_end(line).is_some());
    let at_line_start = rest.len() < text.len() - end || text[..end].ends_with(b"\n");
    (there && at_line_start).then_some(end)
}

/// The end of `text` without the blank line that it may end in.
fn without_blank_line(text: &[u8]) -> usize {
    let blank = if text.ends_with(b"\n\r\n") {
        2
    } else {
        usize::from(text.ends_with(b"\n\n"))
    };
    text.len() - blank
}

/// Line ends at the start of `text`.
fn blank_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

/// The text with one `>` taken from each quoted `From ` line.
fn unquoted(text: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let mut copied = 0;
    for found in QUOTED_FROM.find_iter(text) {
        let quotes =
            text[..found].iter().rev().take_while(|&&byte| byte == b'>').count();
        let start = found - quotes;
        if start == 0 || text[start - 1] == b'\n' {
            out.extend_from_slice(&text[copied..start]);
            copied = start + 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &[u8]) -> Vec<&str> {
        let mut items = Vec::new();
        let mut at = 0;
        while let Some((begin, end)) = Mbox.split(text, at) {
            assert!(
                at <= begin && begin < end && end <= text.len(),
                "{at} {begin} {end}"
            );
            items.push(std::str::from_utf8(&text[begin..end]).unwrap());
            at = end;
        }
        items
    }

    #[test]
    fn a_separator_needs_a_blank_line_before_and_a_date_at_its_end() {
        let text = "From a@b Sat May  1 10:20:30 2004\nSubject: x\n\n\
                    From here on it is prose\n\
                    text\nFrom c@d Sat May  1 10:20:30 2004\n\n\
                    From c@d Sat May  1 10:20:31 2004\n\nbody\n\n\n";
        let items = items(text.as_bytes());
        assert_eq!(items.len(), 2, "{items:?}");
        assert!(items[0].ends_with("30 2004\n"), "{items:?}");
        assert_eq!(items[1], "From c@d Sat May  1 10:20:31 2004\n\nbody\n\n");
    }

    #[test]
    fn pipermail_may_leave_the_blank_line_out() {
        let text = "From a at b.c  Sat May  1 10:20:30 2004\nFrom: a at b.c (A)\n\n\
                    URL: <http://x/attachment.bin>\n\
                    From d at e.f  Sat May  1 10:20:31 2004\nFrom: d at e.f (D)\n\n\
                    From g@h.i  Sat May  1 10:20:31 2004\nFrom: g@h.i (G)\n\ntext\n\
                    From j at k.l  Sat May  1 10:20:31 2004\nFrom: j at k.lm (G)\n";
        assert_eq!(items(text.as_bytes()).len(), 3);
        let quoted = text.replace("From: d at", "From: x at");
        assert_eq!(items(quoted.as_bytes()).len(), 2);
    }

    #[test]
    fn content_length_counts_where_a_separator_stands_exactly_there() {
        let body = "one\n\nFrom x@y Sat May  1 10:20:30 2004\ntwo\n";
        let message = |length: usize| {
            format!(
                "From a@b Sat May  1 10:20:30 2004\ncontent-Length: {length}\n\n{body}\n"
            )
        };
        let (exact, wrong) = (message(body.len()), message(body.len() + 7));
        let (huge, after) = (message(usize::MAX), message(body.len() + 1));
        assert_eq!(items(exact.as_bytes()).len(), 1);
        assert_eq!(items((exact.clone() + &exact).as_bytes()).len(), 2);
        assert_eq!(items((wrong.clone() + &exact).as_bytes()).len(), 3);
        assert_eq!(items((huge + &exact).as_bytes()).len(), 3);
        assert_eq!(items((after + &exact).as_bytes()).len(), 2);
    }

    #[test]
    fn carriage_returns_change_nothing() {
        let text = "From a@b Sat May  1 10:20:30 2004\nContent-Length: 5\n\none\n\n\
                    From a@b Sat May  1 10:20:30 2004\n\n>From x\n";
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(items(crlf.as_bytes()).len(), 2);
        assert_eq!(items(text.as_bytes())[0].len(), 58);
    }

    #[test]
    fn bytes_before_the_first_from_line_are_an_item() {
        let text = "\n\nwhat\n\nFrom a@b Sat May  1 10:20:30 2004\n\nbody";
        assert_eq!(items(text.as_bytes())[0], "what\n");
        let mut document = Document::default();
        let error = Mbox.parse(b"what\n", &[true; 7], &mut document).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a From line or a header, found \"what\\n\""
        );
        assert!(Mbox.parse(b"Subject: x\n", &[true; 7], &mut document).is_ok());
    }

    #[test]
    fn quoted_from_lines_lose_one_mark() {
        for (quoted, plain) in [
            (">From a\n", "From a\n"),
            ("x\n>>From a\n> >From b\n", "x\n>From a\n> >From b\n"),
            ("x>From a\n>>>From >From", "x>From a\n>>From >From"),
            (">Fromage", ">Fromage"),
        ] {
            assert_eq!(unquoted(quoted.as_bytes()), plain.as_bytes());
        }
    }
}
