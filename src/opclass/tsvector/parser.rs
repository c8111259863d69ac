//! The word parser: a text becomes typed tokens that cover it.
//!
//! Answers token for token to PostgreSQL's default text search parser (`wparser_def.c`).
//! The parts of a compound (`foo-bar`) and of a URL come again as tokens of their own
//! behind the whole; apart from these the tokens put together are the text. As there, a
//! text that ends inside a tag's quoted value with `\x`, an escaped character, yields
//! nothing from that tag on.
//!
//! Nearly all tokens of ordinary text are runs of letters, digits or blanks whose end
//! the next character or two prove. `Scanner` takes these straight from the bytes.
//! Wherever the machine of `machine.rs` could begin an attempt that may succeed, the
//! token is the machine's.

use super::machine::{Machine, Span};

pub use super::table::Ctype;

/// What a token is; the numbers and names are PostgreSQL's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum TokenType {
    /// Word of ASCII letters.
    AsciiWord = 1,
    /// Word with other letters.
    Word,
    /// Word with digits.
    NumWord,
    /// E-mail address.
    Email,
    /// Host with a path.
    Url,
    /// Host name.
    Host,
    /// Number in scientific notation.
    SFloat,
    /// Version number.
    Version,
    /// Part of a compound, with digits.
    HwordNumPart,
    /// Part of a compound, with letters beyond ASCII.
    HwordPart,
    /// Part of a compound, all ASCII letters.
    HwordAsciiPart,
    /// White space, punctuation.
    Blank,
    /// XML tag or comment.
    Tag,
    /// What stands before a URL.
    Protocol,
    /// Compound with digits.
    NumHword,
    /// Compound, all ASCII letters.
    AsciiHword,
    /// Compound with letters beyond ASCII.
    Hword,
    /// Path of a URL.
    UrlPath,
    /// File or path name.
    File,
    /// Decimal number.
    Float,
    /// Signed integer.
    Int,
    /// Unsigned integer.
    Uint,
    /// XML entity.
    Entity,
}

impl TokenType {
    /// Every type, by number from 1.
    pub const ALL: [TokenType; 23] = {
        use TokenType::*;
        [
            AsciiWord,
            Word,
            NumWord,
            Email,
            Url,
            Host,
            SFloat,
            Version,
            HwordNumPart,
            HwordPart,
            HwordAsciiPart,
            Blank,
            Tag,
            Protocol,
            NumHword,
            AsciiHword,
            Hword,
            UrlPath,
            File,
            Float,
            Int,
            Uint,
            Entity,
        ]
    };

    /// PostgreSQL's number, from 1.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// PostgreSQL's name.
    pub fn alias(self) -> &'static str {
        match self {
            TokenType::AsciiWord => "asciiword",
            TokenType::Word => "word",
            TokenType::NumWord => "numword",
            TokenType::Email => "email",
            TokenType::Url => "url",
            TokenType::Host => "host",
            TokenType::SFloat => "sfloat",
            TokenType::Version => "version",
            TokenType::HwordNumPart => "hword_numpart",
            TokenType::HwordPart => "hword_part",
            TokenType::HwordAsciiPart => "hword_asciipart",
            TokenType::Blank => "blank",
            TokenType::Tag => "tag",
            TokenType::Protocol => "protocol",
            TokenType::NumHword => "numhword",
            TokenType::AsciiHword => "asciihword",
            TokenType::Hword => "hword",
            TokenType::UrlPath => "url_path",
            TokenType::File => "file",
            TokenType::Float => "float",
            TokenType::Int => "int",
            TokenType::Uint => "uint",
            TokenType::Entity => "entity",
        }
    }

    /// The type of that name.
    pub fn from_alias(alias: &str) -> Option<TokenType> {
        TokenType::ALL.into_iter().find(|kind| kind.alias() == alias)
    }
}

/// A piece of the text, in its original case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenType,
    /// Its characters.
    pub text: &'a str,
}

/// The tokens of a text, blanks included.
///
/// ```
/// use ginmill::opclass::tsvector::parser::Parser;
///
/// let tokens: Vec<_> = Parser::new("see README.md")
///     .map(|token| (token.kind.alias(), token.text))
///     .collect();
/// assert_eq!(tokens, [("asciiword", "see"), ("blank", " "), ("host", "README.md")]);
/// ```
pub struct Parser<'a> {
    scanner: Scanner<'a>,
}

impl<'a> Parser<'a> {
    /// Starts on a text.
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser::with_ctype(text, Ctype::Utf8)
    }

    /// Starts on a text of a database with that `LC_CTYPE`.
    pub fn with_ctype(text: &'a str, ctype: Ctype) -> Parser<'a> {
        Parser { scanner: Scanner::new(text, ctype) }
    }
}

impl<'a> Iterator for Parser<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let span = self.scanner.next()?;
        let text = &self.scanner.machine.text()[span.start..span.end];
        Some(Token { kind: span.kind, text })
    }
}

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const ALNUM: u8 = LETTER | DIGIT;
/// Ends a run of blanks.
const BREAKS: u8 = 4;
/// Behind a letter word: can begin an attempt, or goes on with the word.
const AFTER_WORD: u8 = 8;
/// The same behind digits.
const AFTER_DIGITS: u8 = 16;
/// At a blank's start: can begin an attempt.
const BEFORE_BLANK: u8 = 32;
/// Not ASCII.
const WIDE: u8 = 64;
/// `_`
const UNDERSCORE: u8 = 128;

static BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut bits = 0;
        if b.is_ascii_alphabetic() {
            bits |= LETTER | BREAKS | AFTER_DIGITS;
        }
        if b.is_ascii_digit() {
            bits |= DIGIT | BREAKS | AFTER_WORD;
        }
        if matches!(b, b'<' | b'-' | b'+' | b'&' | b'/') {
            bits |= BREAKS;
        }
        if matches!(b, b'.' | b'-' | b'_' | b'@' | b':' | b'/') {
            bits |= AFTER_WORD;
        }
        if matches!(b, b'.' | b'-' | b'_' | b'@' | b'/') {
            bits |= AFTER_DIGITS;
        }
        if matches!(b, b'<' | b'-' | b'+' | b'&' | b'~' | b'/' | b'.') {
            bits |= BEFORE_BLANK;
        }
        if b >= 0x80 {
            bits |= WIDE | BREAKS | AFTER_WORD | AFTER_DIGITS;
        }
        if b == b'_' {
            bits |= UNDERSCORE;
        }
        table[byte] = bits;
        byte += 1;
    }
    table
};

/// The parser on byte positions.
pub(super) struct Scanner<'a> {
    machine: Machine<'a>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, ctype: Ctype) -> Scanner<'a> {
        Scanner { machine: Machine::new(text, ctype) }
    }

    /// The next token.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Span> {
        let start = self.machine.place.at;
        if self.machine.place.is_in_parts() {
            match part(self.machine.text().as_bytes(), start) {
                Part::Token(kind, end) => {
                    self.machine.place.at = end;
                    return Some(Span { kind, start, end });
                }
                Part::Over => self.machine.place.leave_parts(),
                Part::Unproven => return self.machine.next(),
            }
        }
        if self.machine.place.is_plain()
            && let Some((kind, end)) = plain(self.machine.text().as_bytes(), start)
        {
            self.machine.place.at = end;
            return Some(Span { kind, start, end });
        }
        self.machine.next()
    }
}

/// The token at `start`, where the bytes prove it without the machine.
#[inline]
fn plain(text: &[u8], start: usize) -> Option<(TokenType, usize)> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let first = *text.get(start)?;
    let bits = BYTES[usize::from(first)];
    if bits & LETTER != 0 {
        let end = letters_end(text, start);
        let next = byte(end);
        if BYTES[usize::from(next)] & AFTER_WORD == 0 {
            return Some((TokenType::AsciiWord, end));
        }
        let behind = BYTES[usize::from(byte(end + 1))];
        let ends = match next {
            // a host needs a letter or digit behind each of these, a compound any letter
            b'.' => behind & (ALNUM | UNDERSCORE) == 0,
            b'-' => behind & (ALNUM | WIDE) == 0,
            b'_' | b'@' => behind & ALNUM == 0,
            b':' => byte(end + 1) != b'/',
            b'/' => !may_begin_file(byte(end + 1)),
            _ => false,
        };
        return ends.then_some((TokenType::AsciiWord, end));
    }
    if bits & DIGIT != 0 {
        let end = run_of(text, start, DIGIT);
        let next = byte(end);
        if BYTES[usize::from(next)] & AFTER_DIGITS == 0 {
            return Some((TokenType::Uint, end));
        }
        let behind = BYTES[usize::from(byte(end + 1))];
        if next == b'.' && behind & DIGIT != 0 {
            let end = run_of(text, end + 2, DIGIT);
            let next = byte(end);
            // no host, no version, no exponent
            let ends = BYTES[usize::from(next)] & AFTER_DIGITS == 0
                || next == b'/'
                || b".-_@".contains(&next)
                    && BYTES[usize::from(byte(end + 1))] & ALNUM == 0;
            return ends.then_some((TokenType::Float, end));
        }
        let ends = match next {
            b'.' | b'-' | b'_' | b'@' => behind & ALNUM == 0,
            b'/' => !may_begin_file(byte(end + 1)),
            _ => false,
        };
        return ends.then_some((TokenType::Uint, end));
    }
    if bits & WIDE != 0 {
        return None;
    }
    if bits & BEFORE_BLANK != 0 {
        let next = byte(start + 1);
        let attempt = match first {
            b'<' => next.is_ascii_alphabetic() || b"/!?:_".contains(&next),
            b'-' | b'+' => next.is_ascii_digit(),
            b'&' => next.is_ascii_alphabetic() || b"#:_".contains(&next),
            b'~' => next.is_ascii_alphanumeric() || b"_/".contains(&next),
            b'/' => may_begin_file(next),
            _ => b"./".contains(&next),
        };
        if attempt {
            return None;
        }
    }
    let mut end = start + 1;
    while let Some(&byte) = text.get(end) {
        let bits = BYTES[usize::from(byte)];
        if bits & BREAKS != 0 {
            if bits & WIDE != 0 {
                return None;
            }
            break;
        }
        end += 1;
    }
    Some((TokenType::Blank, end))
}

/// What stands where the parts of a compound are read again.
enum Part {
    Token(TokenType, usize),
    Over,
    Unproven,
}

/// The part of a compound, or the hyphen behind one, at `start`.
#[inline]
fn part(text: &[u8], start: usize) -> Part {
    let bits = |at: usize| text.get(at).map_or(0, |&byte| BYTES[usize::from(byte)]);
    if bits(start) & LETTER != 0 {
        let end = letters_end(text, start);
        if bits(end) & (DIGIT | WIDE) == 0 {
            return Part::Token(TokenType::HwordAsciiPart, end);
        }
    } else if text.get(start) == Some(&b'-') {
        if bits(start + 1) & ALNUM != 0 {
            return Part::Token(TokenType::Blank, start + 1);
        }
    } else if bits(start) & (DIGIT | WIDE) == 0 {
        return Part::Over;
    }
    Part::Unproven
}

/// Whether a file name can go on with this byte behind a `/`.
fn may_begin_file(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~".contains(&byte)
}

/// End of the run of ASCII letters, eight bytes at a time: word lengths are hard to
/// predict, so a step per byte costs a mispredicted branch per word.
#[inline]
fn letters_end(text: &[u8], start: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * ONES;
    let mut end = start;
    while let Some(bytes) = text.get(end..end + 8) {
        let bytes = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let lower = (bytes | (0x20 * ONES)) & !TOP;
        let from_a = lower + (0x80 - u64::from(b'a')) * ONES;
        let above_z = lower + (0x80 - u64::from(b'z') - 1) * ONES;
        let others = (!from_a | above_z | bytes) & TOP;
        if others != 0 {
            return end + others.trailing_zeros() as usize / 8;
        }
        end += 8;
    }
    run_of(text, end, LETTER)
}

/// End of the run of bytes of a class.
#[inline]
fn run_of(text: &[u8], start: usize, class: u8) -> usize {
    let run =
        text[start..].iter().take_while(|&&byte| BYTES[usize::from(byte)] & class != 0);
    start + run.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::opclass::tsvector::fixtures;

    fn spans(next: impl FnMut() -> Option<Span>) -> Vec<Span> {
        std::iter::from_fn(next).collect()
    }

    fn agrees_with_the_bare_machine(text: &str, ctype: Ctype) {
        let mut fast = Scanner::new(text, ctype);
        let mut bare = Machine::unguarded(text, ctype);
        let (fast, bare) = (spans(|| fast.next()), spans(|| bare.next()));
        assert_eq!(fast, bare, "{text:?}");
    }

    #[test]
    fn tokens_are_postgresqls() {
        let mut lines = 0;
        for line in fixtures::lines("ts_parse.jsonl") {
            check_line(&line, Ctype::Utf8);
            lines += 1;
        }
        assert_eq!(lines, 376);
        for line in fixtures::lines("ctype_c_parse_trgm.jsonl") {
            check_line(&line, Ctype::C);
            lines += 1;
        }
        assert_eq!(lines, 376 + 65);
    }

    fn check_line(line: &serde_json::Value, ctype: Ctype) {
        let text = fixtures::input(line);
        let tokens: Vec<Token<'_>> = Parser::with_ctype(&text, ctype).collect();
        let head = line.get("tokens_head").is_some();
        let expected = line.get("tokens").or(line.get("tokens_head")).unwrap();
        let expected = expected.as_array().unwrap();
        if head {
            assert!(tokens.len() > expected.len());
        } else {
            assert_eq!(tokens.len(), expected.len(), "{line}");
        }
        if let Some(count) = line.get("count") {
            assert_eq!(tokens.len() as u64, count.as_u64().unwrap(), "{line}");
        }
        for (token, expected) in tokens.iter().zip(expected) {
            assert_eq!(
                u64::from(token.kind.id()),
                expected[0].as_u64().unwrap(),
                "{line}"
            );
            assert_eq!(token.kind.alias(), expected[1].as_str().unwrap());
            match expected[2].as_str() {
                Some(text) => assert_eq!(token.text, text, "{line}"),
                None => assert_eq!(
                    token.text.len() as u64,
                    expected[2]["len_bytes"].as_u64().unwrap()
                ),
            }
        }
    }

    #[test]
    fn a_text_that_ends_with_an_escape_in_a_tag_ends_before_the_tag() {
        for (text, tokens) in [
            ("x <a \"\\c", vec!["x", " "]),
            ("x <a '\\\\", vec!["x", " "]),
            ("x <a \"\\", vec!["x", " ", "<", "a", " \"\\"]),
            ("x <a \"\\c\\\\", vec!["x", " ", "<", "a", " \"\\", "c", "\\\\"]),
        ] {
            let got: Vec<_> = Parser::new(text).map(|token| token.text).collect();
            assert_eq!(got, tokens, "{text}");
        }
    }

    /// Strings of pieces at which the machine begins its attempts.
    fn nasty() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            8 => prop::sample::select(vec![
                "a", "ab", "Foo", "e", "E5", "x", "com", "1", "23", "1a", "a1", "-", "-", ".",
                ".", "_", "@", "@", ":", "/", "//", "://", "<", ">", "&", "#", ";", "+", "~",
                "..", "./", "../", "~/", "'", "\"", "\\", "=", "?", "%", "!", " ", "\n", "\t",
                "<a ", "</a>", "<!--", "-->", "<script", "<script>", "</script>", "<style ",
                "</STYLE>", "&amp;", "&#1", "&#x1f;", "<?xml", "<!D", "http://", "a.b@c.de",
                "ab.cd", "/x", "1.5", "1.2.3", "-1.2.3", "1e-5", "été", "é", "٣", "\u{301}",
                "\u{200b}", "\u{ad}", "日本", "\u{3000}", "\u{a0}", "½", "😀", "\u{2028}",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
            1 => (0..128_u8).prop_map(|byte| char::from(byte).to_string()),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn the_fast_path_and_the_guards_change_no_token(text in nasty(), c: bool) {
            agrees_with_the_bare_machine(&text, if c { Ctype::C } else { Ctype::Utf8 });
        }

        #[test]
        fn long_repetitions_come_out_the_same(
            unit in nasty(), times in 1..60_usize, tail in nasty()
        ) {
            let text = unit.repeat(times) + &tail;
            agrees_with_the_bare_machine(&text[..text.floor_char_boundary(1500)], Ctype::Utf8);
        }
    }
}
