//! Bytes of a message to text: transfer encodings, character sets, NULs.
//!
//! Nothing here fails: what cannot be read as declared is read as well as can be, and
//! [`Notes`] says so, one sentence per kind of damage and document. Character sets are
//! mail-parser's; the transfer encodings are decoded here because mail-parser gives up
//! on a part with a single wrong byte in it.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;
use memchr::memchr;

/// What is read when no character set is declared and the bytes are not UTF-8.
const UNDECLARED: &[u8] = b"windows-1252";
/// Longest name of a character set that a sentence repeats.
const LABEL_MAX: usize = 40;

/// What could not be read as written in one document.
#[derive(Debug, Default)]
pub(super) struct Notes {
    nuls: usize,
    undecodable: usize,
    undeclared: bool,
    unknown_charset: Option<String>,
    /// Damaged base64 in a part.
    pub base64: bool,
    /// Damaged quoted-printable in a part.
    pub quoted_printable: bool,
    /// A multipart whose boundary is missing or that is not closed.
    pub multipart: Option<&'static str>,
    /// Lines in the header that are no header fields.
    pub header_lines: usize,
    /// Headers left out because there were too many.
    pub headers_left_out: usize,
    /// Parts left out because they were nested too deeply or too many.
    pub parts_left_out: usize,
}

impl Notes {
    /// The sentences.
    pub fn into_warnings(self) -> Vec<String> {
        let mut out = Vec::new();
        let mut say =
            |when: bool, sentence: String| out.extend(when.then_some(sentence));
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (nuls, marks) = (self.nuls, self.undecodable);
        say(nuls > 0, format!("{nuls} NUL byte{} replaced", plural(nuls)));
        say(
            marks > 0,
            format!("{marks} undecodable character{} replaced", plural(marks)),
        );
        say(
            self.undeclared,
            "8-bit text without a charset read as windows-1252".into(),
        );
        if let Some(label) = self.unknown_charset {
            say(true, format!("unknown charset {label:?}"));
        }
        say(self.base64, "damaged base64".into());
        say(self.quoted_printable, "damaged quoted-printable".into());
        say(self.multipart.is_some(), self.multipart.unwrap_or_default().into());
        let lines = self.header_lines;
        say(
            lines > 0,
            format!("{lines} line{} in the header not understood", plural(lines)),
        );
        let headers = self.headers_left_out;
        say(headers > 0, format!("{headers} header{} left out", plural(headers)));
        let parts = self.parts_left_out;
        say(
            parts > 0,
            format!("{parts} part{} left out, too many or too deep", plural(parts)),
        );
        out
    }
}

/// Text of bytes in a declared character set, or an undeclared one.
pub(super) fn text<'a>(
    bytes: Cow<'a, [u8]>,
    label: Option<&str>,
    notes: &mut Notes,
) -> Cow<'a, str> {
    let text = match label.map(str::trim).filter(|label| !label.is_empty()) {
        None => undeclared(bytes, notes),
        Some(label) if is_label(label, &["us-ascii", "ascii", "ansi_x3.4-1968"]) => {
            undeclared(bytes, notes)
        }
        Some(label) if is_label(label, &["utf-8", "utf8", "unicode-1-1-utf-8"]) => {
            match utf8(bytes) {
                Ok(text) => text,
                Err(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    notes.undecodable += marks(&text);
                    Cow::Owned(text)
                }
            }
        }
        Some(label) if bytes.is_ascii() && extends_ascii(label) => {
            undeclared(bytes, notes)
        }
        Some(label) => match charset_decoder(label.as_bytes()) {
            Some(decode) => {
                let text = decode(&bytes);
                notes.undecodable += marks(&text);
                Cow::Owned(text)
            }
            None => {
                let label = label.chars().take(LABEL_MAX).collect();
                notes.unknown_charset.get_or_insert(label);
                undeclared(bytes, notes)
            }
        },
    };
    without_nuls(text, notes)
}

/// Text of 8-bit bytes that nobody says anything about: UTF-8 if they can be, else
/// Western European.
fn undeclared<'a>(bytes: Cow<'a, [u8]>, notes: &mut Notes) -> Cow<'a, str> {
    utf8(bytes).unwrap_or_else(|bytes| {
        notes.undeclared = true;
        let decode = charset_decoder(UNDECLARED).expect("a character set it has");
        Cow::Owned(decode(&bytes))
    })
}

fn utf8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, Cow<'_, [u8]>> {
    match bytes {
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) => Err(Cow::Borrowed(bytes)),
        },
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(error) => Err(Cow::Owned(error.into_bytes())),
        },
    }
}

/// The text with a mark for each NUL, which PostgreSQL's text cannot have.
pub(super) fn without_nuls<'a>(text: Cow<'a, str>, notes: &mut Notes) -> Cow<'a, str> {
    if memchr(0, text.as_bytes()).is_none() {
        return text;
    }
    notes.nuls += memchr::memchr_iter(0, text.as_bytes()).count();
    Cow::Owned(text.replace('\0', "\u{fffd}"))
}

fn marks(text: &str) -> usize {
    text.matches('\u{fffd}').count()
}

fn is_label(label: &str, names: &[&str]) -> bool {
    names.iter().any(|name| label.eq_ignore_ascii_case(name))
}

/// Whether ASCII bytes mean ASCII in this character set.
fn extends_ascii(label: &str) -> bool {
    let not = ["iso-2022", "csiso2022", "utf-7", "unicode", "utf-16", "utf-32", "hz"];
    let starts = |prefix: &str| {
        label
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    !not.iter().any(|prefix| starts(prefix))
        && charset_decoder(label.as_bytes()).is_some()
}

/// Decodes base64. White space is skipped, padding ends a group and not the text; other
/// bytes, and a lone digit at the end, are damage that is skipped.
pub(super) fn base64(text: &[u8], damaged: &mut bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut group, mut digits) = (0_u32, 0);
    let finish = |out: &mut Vec<u8>, group: u32, digits: u32, damaged: &mut bool| {
        let bytes = (group << (6 * (4 - digits))).to_be_bytes();
        match digits {
            0 => {}
            1 => *damaged = true,
            digits => out.extend_from_slice(&bytes[1..digits as usize]),
        }
    };
    for &byte in text {
        let digit = BASE64[usize::from(byte)];
        if digit < 64 {
            group = group << 6 | u32::from(digit);
            digits += 1;
            if digits == 4 {
                out.extend_from_slice(&group.to_be_bytes()[1..]);
                (group, digits) = (0, 0);
            }
        } else if byte == b'=' {
            finish(&mut out, group, digits, damaged);
            (group, digits) = (0, 0);
        } else if !byte.is_ascii_whitespace() {
            *damaged = true;
        }
    }
    finish(&mut out, group, digits, damaged);
    out
}

/// Value of each base64 digit, 255 for other bytes.
static BASE64: [u8; 256] = {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [255; 256];
    let mut value = 0;
    while value < digits.len() {
        table[digits[value] as usize] = value as u8;
        value += 1;
    }
    table
};

/// Decodes quoted-printable. An `=` that begins neither an escape nor a soft line break
/// is damage, and stays.
pub(super) fn quoted_printable(text: &[u8], damaged: &mut bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'=', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let [high, low, after @ ..] = rest
            && let Some(byte) =
                hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low)
        {
            out.push(byte);
            rest = after;
            continue;
        }
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        let after = &rest[blank.count()..];
        match after {
            [b'\n', after @ ..] => rest = after,
            [] => rest = after,
            _ => {
                *damaged = true;
                out.push(b'=');
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8], label: Option<&str>) -> (String, Vec<String>) {
        let mut notes = Notes::default();
        let text = text(Cow::Borrowed(bytes), label, &mut notes).into_owned();
        (text, notes.into_warnings())
    }

    #[test]
    fn base64_is_read_around_its_damage() {
        for (encoded, bytes, hurt) in [
            ("", "", false),
            ("YQ==", "a", false),
            ("YWI=\r\n", "ab", false),
            ("YWJj\n ZGVm", "abcdef", false),
            ("YQ==YWI=", "aab", false),
            ("YWJjZ", "abc", true),
            ("YWJj!ZGVm", "abcdef", true),
            ("YWJjZGU", "abcde", false),
        ] {
            let mut damaged = false;
            let decoded = base64(encoded.as_bytes(), &mut damaged);
            assert_eq!((&decoded[..], damaged), (bytes.as_bytes(), hurt), "{encoded}");
        }
    }

    #[test]
    fn quoted_printable_is_read_around_its_damage() {
        for (encoded, bytes, hurt) in [
            ("a=20b=3d", "a b=", false),
            ("soft =\nbreak=  \r\nend=", "soft breakend", false),
            ("a=b and ==20", "a=b and = ", true),
            ("=4", "=4", true),
        ] {
            let mut damaged = false;
            let decoded = quoted_printable(encoded.as_bytes(), &mut damaged);
            assert_eq!((&decoded[..], damaged), (bytes.as_bytes(), hurt), "{encoded}");
        }
    }

    #[test]
    fn charsets_are_read_as_declared_or_as_well_as_can_be() {
        let none: [&str; 0] = [];
        for (bytes, label, text, warnings) in [
            (&b"plain"[..], None, "plain", &none[..]),
            ("é".as_bytes(), None, "é", &none),
            (b"caf\xe9", Some("ISO-8859-1"), "café", &none),
            (b"\xf0\xd2\xc9", Some("koi8-r"), "При", &none),
            (b"\x1b$B%O%m\x1b(B", Some("iso-2022-jp"), "ハロ", &none),
            (b"\xc4\xe3\xba\xc3", Some("GB2312"), "你好", &none),
            (
                b"caf\xe9",
                Some("us-ascii"),
                "café",
                &["8-bit text without a charset read as windows-1252"],
            ),
            (
                b"caf\xe9",
                Some("x-none"),
                "café",
                &[
                    "8-bit text without a charset read as windows-1252",
                    "unknown charset \"x-none\"",
                ],
            ),
            (b"a", Some("x-none"), "a", &["unknown charset \"x-none\""]),
            (
                b"caf\xe9!",
                Some("utf-8"),
                "caf\u{fffd}!",
                &["1 undecodable character replaced"],
            ),
            (b"a\0\0", None, "a\u{fffd}\u{fffd}", &["2 NUL bytes replaced"]),
        ] {
            let (found, said) = plain(bytes, label);
            assert_eq!(
                (&found[..], &said[..]),
                (
                    text,
                    &warnings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]
                )
            );
        }
    }
}
