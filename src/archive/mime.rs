//! The text of a message: a walk over its MIME parts.
//!
//! Which parts: every inline text part, in order. Of a multipart/alternative the child
//! with plain text, else the one with HTML, else the first with any text. The text of an
//! enclosed message/rfc822 is taken like that of any part. Parts that are attachments,
//! and parts that are not text, are left out. HTML becomes plain text (`html`).
//!
//! The walk works on slices: a multipart is cut at its own boundary lines inside what its
//! parent gave it, so that an unclosed part ends where the parent's does and the work is
//! one pass per level of nesting, of which there are [`DEPTH_MAX`] at most, as there are
//! [`PIECES_MAX`] text parts. Text is
//! decoded only when it is known to be wanted. Content types are parsed by mail-parser.

use std::borrow::Cow;
use std::sync::LazyLock;

use mail_parser::ContentType;
use mail_parser::parsers::MessageStream;
use memchr::memchr;
use memchr::memmem::Finder;

use super::decode::{self, Notes};
use super::headers::{Headers, unfolded};
use super::html;

/// Levels of parts inside parts.
const DEPTH_MAX: usize = 32;
/// Text parts of a message.
const PIECES_MAX: usize = 100_000;
/// Bytes of a content type that are looked at.
const CONTENT_TYPE_MAX: usize = 16 << 10;

static NEWLINE_DASHES: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\n--"));

/// The text of a message or part.
pub(super) fn body<'a>(headers: &Headers<'a>, notes: &mut Notes) -> Cow<'a, str> {
    let mut walk = Walk { pieces: Vec::new(), notes };
    walk.part(headers, Kind::Plain, 0);
    let Walk { mut pieces, notes } = walk;
    if pieces.len() == 1 {
        return pieces.pop().expect("one piece").text(notes);
    }
    let mut out = String::new();
    for piece in pieces {
        let text = piece.text(notes);
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&text);
    }
    Cow::Owned(out)
}

/// What a part is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Other,
    Message,
    Multipart,
    /// Text of another kind.
    Text,
    Html,
    Plain,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    Identity,
    Base64,
    QuotedPrintable,
}

/// A text part that is to be indexed.
enum Piece<'a> {
    Encoded { bytes: &'a [u8], encoding: Encoding, charset: Option<String>, kind: Kind },
    Text(String, Kind),
}

impl<'a> Piece<'a> {
    /// How much an alternative wants it.
    fn worth(&self) -> Kind {
        match self {
            Piece::Encoded { bytes, kind, .. } => {
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    Kind::Other
                } else {
                    *kind
                }
            }
            Piece::Text(_, kind) => *kind,
        }
    }

    fn text(self, notes: &mut Notes) -> Cow<'a, str> {
        let (bytes, encoding, charset, kind) = match self {
            Piece::Text(text, _) => return Cow::Owned(text),
            Piece::Encoded { bytes, encoding, charset, kind } => {
                (bytes, encoding, charset, kind)
            }
        };
        let bytes = encoding.decode(bytes, notes);
        let text = decode::text(bytes, charset.as_deref(), notes);
        if kind != Kind::Html {
            return text;
        }
        // A character reference may stand for a NUL.
        decode::without_nuls(Cow::Owned(html::to_text(&text)), notes)
    }
}

impl Encoding {
    fn of(headers: &Headers<'_>) -> Encoding {
        let Some(value) = headers.raw("content-transfer-encoding") else {
            return Encoding::Identity;
        };
        let is = |name: &[u8]| {
            let value = value.trim_ascii();
            let value = &value[..value.len().min(name.len())];
            value.eq_ignore_ascii_case(name)
        };
        if is(b"base64") {
            Encoding::Base64
        } else if is(b"quoted-printable") {
            Encoding::QuotedPrintable
        } else {
            Encoding::Identity
        }
    }

    fn decode<'a>(self, bytes: &'a [u8], notes: &mut Notes) -> Cow<'a, [u8]> {
        match self {
            Encoding::Identity => Cow::Borrowed(bytes),
            Encoding::Base64 => Cow::Owned(decode::base64(bytes, &mut notes.base64)),
            Encoding::QuotedPrintable => {
                Cow::Owned(decode::quoted_printable(bytes, &mut notes.quoted_printable))
            }
        }
    }
}

struct Walk<'a, 'n> {
    pieces: Vec<Piece<'a>>,
    notes: &'n mut Notes,
}

impl<'a> Walk<'a, '_> {
    /// Adds the pieces of a part. `default` is what a part without a content type is.
    fn part(&mut self, headers: &Headers<'a>, default: Kind, depth: usize) {
        if depth > DEPTH_MAX || self.pieces.len() == PIECES_MAX {
            self.notes.parts_left_out += 1;
            return;
        }
        let content_type = content_type(headers, "content-type");
        let kind = content_type.as_ref().map_or(default, kind_of);
        let body = headers.body;
        match kind {
            Kind::Multipart => {
                let content_type = content_type.expect("a multipart says so");
                self.multipart(&content_type, body, depth);
            }
            Kind::Message => {
                let encoding = Encoding::of(headers);
                match encoding.decode(body, self.notes) {
                    Cow::Borrowed(body) => {
                        let inner = Headers::scan(body, self.notes);
                        self.part(&inner, Kind::Plain, depth + 1);
                    }
                    Cow::Owned(body) => self.encoded_message(&body, depth),
                }
            }
            Kind::Other => {}
            Kind::Text | Kind::Html | Kind::Plain => {
                let disposition = self::content_type(headers, "content-disposition");
                if disposition.is_some_and(|disposition| disposition.is_attachment()) {
                    return;
                }
                let charset = content_type
                    .as_ref()
                    .and_then(|content_type| content_type.attribute("charset"))
                    .map(str::to_owned);
                let encoding = Encoding::of(headers);
                self.pieces.push(Piece::Encoded {
                    bytes: body,
                    encoding,
                    charset,
                    kind,
                });
            }
        }
    }

    /// Adds the text of an enclosed message that had to be decoded first, at once.
    fn encoded_message(&mut self, text: &[u8], depth: usize) {
        let mut inner = Walk { pieces: Vec::new(), notes: self.notes };
        let headers = Headers::scan(text, inner.notes);
        inner.part(&headers, Kind::Plain, depth + 1);
        let Walk { pieces, notes } = inner;
        for piece in pieces {
            let kind = piece.worth();
            self.pieces.push(Piece::Text(piece.text(notes).into_owned(), kind));
        }
    }

    fn multipart(
        &mut self,
        content_type: &ContentType<'_>,
        body: &'a [u8],
        depth: usize,
    ) {
        let subtype = content_type.subtype().unwrap_or_default();
        let alternative = subtype == "alternative";
        let default = if subtype == "digest" { Kind::Message } else { Kind::Plain };
        let named =
            content_type.attribute("boundary").map(|name| name.trim_end().as_bytes());
        let named = named.filter(|name| !name.is_empty());
        let boundary = match named {
            Some(name) if next_boundary(body, 0, name).is_some() => Some(name),
            _ => {
                self.notes.multipart = Some("multipart without its boundary");
                guessed_boundary(body)
            }
        };
        let Some(boundary) = boundary else {
            let (encoding, charset) = (Encoding::Identity, None);
            let kind = Kind::Plain;
            self.pieces.push(Piece::Encoded { bytes: body, encoding, charset, kind });
            return;
        };
        // The best alternative so far: where its pieces begin, and what they are worth.
        let first = self.pieces.len();
        let mut best = Kind::Other;
        let mut line = next_boundary(body, 0, boundary);
        while let Some(Boundary { after, last: false, .. }) = line {
            line = next_boundary(body, after, boundary);
            let end = line.map_or(body.len(), |line| line.start);
            if line.is_none() {
                self.notes.multipart = Some("multipart not closed");
            }
            let start = self.pieces.len();
            let headers = Headers::scan(&body[after.min(end)..end], self.notes);
            self.part(&headers, default, depth + 1);
            if alternative {
                let worth = self.pieces[start..].iter().map(Piece::worth).max();
                let worth = worth.unwrap_or(Kind::Other);
                if worth > best {
                    best = worth;
                    self.pieces.drain(first..start);
                } else {
                    self.pieces.truncate(start);
                }
            }
        }
    }
}

fn kind_of(content_type: &ContentType<'_>) -> Kind {
    match (content_type.ctype(), content_type.subtype().unwrap_or_default()) {
        ("multipart", _) => Kind::Multipart,
        ("message", "rfc822" | "global") => Kind::Message,
        ("text", "html") => Kind::Html,
        ("text", "plain" | "") => Kind::Plain,
        ("text", _) => Kind::Text,
        _ => Kind::Other,
    }
}

/// The content type, or another field of its syntax.
fn content_type<'a>(headers: &Headers<'a>, name: &str) -> Option<ContentType<'static>> {
    let value = unfolded(headers.raw(name)?);
    let mut line = value[..value.len().min(CONTENT_TYPE_MAX)].to_vec();
    line.push(b'\n');
    MessageStream::new(&line).parse_content_type().into_content_type().map(|parsed| {
        ContentType {
            c_type: Cow::Owned(parsed.c_type.to_ascii_lowercase()),
            c_subtype: parsed
                .c_subtype
                .map(|name| Cow::Owned(name.to_ascii_lowercase())),
            attributes: parsed.attributes.map(|list| {
                list.into_iter()
                    .map(|attribute| mail_parser::Attribute {
                        name: Cow::Owned(attribute.name.into_owned()),
                        value: Cow::Owned(attribute.value.into_owned()),
                    })
                    .collect()
            }),
        }
    })
}

/// A boundary line of a multipart.
#[derive(Clone, Copy)]
struct Boundary {
    /// Where the part before it ends: before the line end that belongs to the boundary.
    start: usize,
    /// Where the part after it begins.
    after: usize,
    /// Whether it closes the multipart.
    last: bool,
}

/// The first boundary line of that name at or after `at`, which is a line's start.
fn next_boundary(body: &[u8], at: usize, name: &[u8]) -> Option<Boundary> {
    let mut from = at;
    loop {
        let dashes = if body[from..].starts_with(b"--") {
            from
        } else {
            from + NEWLINE_DASHES.find(&body[from..])? + 1
        };
        let line_end =
            memchr(b'\n', &body[dashes..]).map_or(body.len(), |end| dashes + end);
        let line = &body[dashes + 2..line_end];
        if let Some(rest) = line.strip_prefix(name) {
            let rest = rest.trim_ascii_end();
            if rest.is_empty() || rest == b"--" {
                let start = dashes.saturating_sub(1).max(at);
                let start = start - usize::from(body[at..start].ends_with(b"\r"));
                let after = (line_end + 1).min(body.len());
                return Some(Boundary { start, after, last: !rest.is_empty() });
            }
        }
        if line_end == body.len() {
            return None;
        }
        // The line's own newline may be the one before the next boundary line.
        from = line_end;
    }
}

/// The boundary that a multipart seems to have: the first line of two dashes and a word
/// with a content field on the next line.
fn guessed_boundary(body: &[u8]) -> Option<&[u8]> {
    let mut from = 0;
    loop {
        let dashes = if from == 0 && body.starts_with(b"--") {
            0
        } else {
            from + NEWLINE_DASHES.find(&body[from..])? + 1
        };
        let end = dashes + memchr(b'\n', &body[dashes..])?;
        let name = body[dashes + 2..end].trim_ascii_end();
        let next = body[end + 1..].get(..8).unwrap_or_default();
        if !name.is_empty()
            && !name.contains(&b' ')
            && next.eq_ignore_ascii_case(b"content-")
        {
            return Some(name);
        }
        from = end;
    }
}
