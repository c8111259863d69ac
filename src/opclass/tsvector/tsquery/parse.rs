//! The two notations: operators (`::tsquery`, `to_tsquery`) and web search.
//!
//! Both are read by a machine of two states, *operand expected* and *operator expected*,
//! that feeds an operator stack with one floor per open parenthesis. White space is ASCII
//! only; wider spaces are ordinary characters of a word. Everything special is ASCII, so
//! the machine works on bytes and cuts at character boundaries only.

use super::operand::Builder;
use super::{DISTANCE_MAX, Node, TsQuery, refused};
use crate::error::{Error, Result};
use crate::opclass::ctype;

/// Operators that may wait on one level of parentheses, as in PostgreSQL.
const PENDING_MAX: usize = 32;

/// Appends an operand: builder, its text, mask of weights, prefix flag.
pub(super) type PushOperand<'a> =
    dyn FnMut(&mut Builder<'_>, &str, u8, bool) -> Result<()> + 'a;

/// Operators that wait for their right operand.
#[derive(Default)]
struct Pending {
    operators: Vec<Node>,
    /// How many operators waited when each parenthesis still open was opened.
    floors: Vec<usize>,
}

impl Pending {
    fn floor(&self) -> usize {
        self.floors.last().copied().unwrap_or(0)
    }

    /// Moves out what binds at least as strongly as `strength`.
    fn settle(&mut self, builder: &mut Builder<'_>, strength: u8) {
        while self.operators.len() > self.floor() {
            match self.operators.last() {
                Some(&top) if top.strength() >= strength => {
                    builder.push_operator(top);
                    self.operators.pop();
                }
                _ => break,
            }
        }
    }

    fn push(&mut self, builder: &mut Builder<'_>, operator: Node) -> Result<()> {
        // NOT stands before its operand, so nothing that waits is complete yet.
        if operator != Node::Not {
            self.settle(builder, operator.strength());
        }
        if self.operators.len() - self.floor() == PENDING_MAX {
            return Err(Error::invalid("tsquery stack too small"));
        }
        self.operators.push(operator);
        Ok(())
    }

    fn open(&mut self) {
        self.floors.push(self.operators.len());
    }

    /// Closes a parenthesis; `false` when none is open.
    fn close(&mut self, builder: &mut Builder<'_>) -> bool {
        self.settle(builder, 0);
        self.floors.pop().is_some()
    }
}

/// Where we are in the text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The word read last, without quotes and escapes.
    word: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0, word: Vec::new() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn syntax_error(&self) -> Error {
        refused("syntax error in tsquery", self.text)
    }

    /// The word just read.
    fn word(&self) -> &str {
        std::str::from_utf8(&self.word).expect("words are cut at ASCII characters")
    }

    /// Reads a word of the operator notation at a byte that is no white space.
    fn read_word(&mut self) -> Result<()> {
        self.word.clear();
        let quoted = self.peek() == Some(b'\'');
        if quoted {
            self.at += 1;
        }
        loop {
            let byte = self.peek();
            match byte {
                Some(b'\\') => {
                    let Some(&next) = self.text.as_bytes().get(self.at + 1) else {
                        return Err(refused(
                            "there is no escaped character",
                            self.text,
                        ));
                    };
                    self.word.push(next);
                    self.at += 2;
                    continue;
                }
                Some(b'\'') if quoted => {
                    self.at += 1;
                    if self.peek() != Some(b'\'') {
                        break;
                    }
                }
                None if quoted => return Err(self.syntax_error()),
                Some(_) if quoted => {}
                None | Some(b':') => break,
                Some(byte) if is_space(byte) || is_operator(byte) => break,
                Some(_) => {}
            }
            self.word.extend(self.peek());
            self.at += 1;
        }
        if self.word.is_empty() { Err(self.syntax_error()) } else { Ok(()) }
    }

    /// Reads `:*AB…` behind a word: mask and prefix flag.
    fn read_modifiers(&mut self) -> (u8, bool) {
        let (mut weights, mut prefix) = (0, false);
        if self.peek() == Some(b':') {
            self.at += 1;
            while let Some(byte) = self.peek() {
                match byte {
                    b'a' | b'A' => weights |= 8,
                    b'b' | b'B' => weights |= 4,
                    b'c' | b'C' => weights |= 2,
                    b'd' | b'D' => weights |= 1,
                    b'*' => prefix = true,
                    _ => break,
                }
                self.at += 1;
            }
        }
        (weights, prefix)
    }

    /// Reads `<->` or `<digits>`; `None`, and nothing read, if there is no such thing or
    /// nothing at all behind it (PostgreSQL does not take it for an operator then).
    fn read_phrase_operator(&mut self) -> Result<Option<Node>> {
        let rest = &self.text[self.at..];
        let Some(rest) = rest.strip_prefix('<') else { return Ok(None) };
        let (distance, rest) = match rest.strip_prefix('-') {
            Some(rest) => (1, rest),
            None => {
                let end =
                    rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                if end == 0 {
                    return Ok(None);
                }
                let distance = rest[..end].parse::<u32>().ok();
                let Some(distance) = distance.filter(|&d| d <= DISTANCE_MAX) else {
                    return Err(Error::invalid(format!(
                        "distance in phrase operator must be an integer value \
                         between zero and {DISTANCE_MAX} inclusive"
                    )));
                };
                (distance, &rest[end..])
            }
        };
        match rest.strip_prefix('>') {
            Some(rest) if !rest.is_empty() => {
                self.at = self.text.len() - rest.len();
                Ok(Some(Node::Phrase(distance)))
            }
            _ => Ok(None),
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Ends an unquoted word.
fn is_operator(byte: u8) -> bool {
    matches!(byte, b'!' | b'&' | b'|' | b'(' | b')' | b'<')
}

/// Reads the operator notation.
pub(super) fn standard(text: &str, push: &mut PushOperand<'_>) -> Result<TsQuery> {
    let mut builder = Builder::new(text);
    let mut pending = Pending::default();
    let mut reader = Reader::new(text);
    reader.skip_space();
    if reader.peek().is_none() {
        return Ok(TsQuery::default());
    }
    loop {
        // operand expected
        reader.skip_space();
        match reader.peek() {
            None => return Err(refused("no operand in tsquery", text)),
            Some(b'!') => {
                pending.push(&mut builder, Node::Not)?;
                reader.at += 1;
                continue;
            }
            Some(b'(') => {
                pending.open();
                reader.at += 1;
                continue;
            }
            Some(_) => {
                reader.read_word()?;
                let (weights, prefix) = reader.read_modifiers();
                push(&mut builder, reader.word(), weights, prefix)?;
            }
        }
        // operator expected; only a closing parenthesis keeps expecting one
        let operator = loop {
            reader.skip_space();
            match reader.peek() {
                None if pending.floors.is_empty() => {
                    pending.settle(&mut builder, 0);
                    return Ok(builder.finish());
                }
                None => return Err(reader.syntax_error()),
                Some(b')') if pending.close(&mut builder) => reader.at += 1,
                Some(b'&') => {
                    reader.at += 1;
                    break Node::And;
                }
                Some(b'|') => {
                    reader.at += 1;
                    break Node::Or;
                }
                Some(_) => match reader.read_phrase_operator()? {
                    Some(operator) => break operator,
                    None => return Err(reader.syntax_error()),
                },
            }
        };
        pending.push(&mut builder, operator)?;
    }
}

/// Reads the web notation.
pub(super) fn web(text: &str, push: &mut PushOperand<'_>) -> Result<TsQuery> {
    let mut builder = Builder::new(text);
    let mut pending = Pending::default();
    let mut reader = Reader::new(text);
    let mut first = true;
    loop {
        // operand expected
        match reader.peek() {
            None => {
                if !first {
                    builder.push_stop();
                }
                break;
            }
            Some(b'-') => {
                pending.push(&mut builder, Node::Not)?;
                reader.at += 1;
                first = false;
                continue;
            }
            Some(byte) if is_space(byte) || is_operator(byte) => {
                reader.at += 1;
                continue;
            }
            Some(b'"') => {
                let rest = &text[reader.at + 1..];
                let end = rest.find('"').unwrap_or(rest.len());
                push(&mut builder, &rest[..end], 0, false)?;
                reader.at = (reader.at + 1 + end + 1).min(text.len());
            }
            Some(_) => {
                // A colon ends a word but may begin one.
                let rest = &text[reader.at..];
                let end = rest
                    .bytes()
                    .enumerate()
                    .position(|(at, byte)| {
                        is_space(byte)
                            || is_operator(byte)
                            || byte == b'"'
                            || (byte == b':' && at > 0)
                    })
                    .unwrap_or(rest.len());
                push(&mut builder, &rest[..end], 0, false)?;
                reader.at += end;
            }
        }
        first = false;
        // operator expected
        let operator = loop {
            match reader.peek() {
                None => break None,
                Some(b'o' | b'O') if is_or(&text[reader.at..]) => {
                    reader.at += 2;
                    break Some(Node::Or);
                }
                Some(byte) if is_space(byte) || is_operator(byte) => reader.at += 1,
                Some(_) => break Some(Node::And),
            }
        };
        match operator {
            Some(operator) => pending.push(&mut builder, operator)?,
            None => break,
        }
    }
    pending.settle(&mut builder, 0);
    Ok(builder.finish())
}

/// Whether `rest` begins with the word `or` and something that could be its operand
/// follows later.
fn is_or(rest: &str) -> bool {
    let Some(word) = rest.get(..2) else { return false };
    if !word.eq_ignore_ascii_case("or") {
        return false;
    }
    let mut rest = rest[2..].chars();
    match rest.next() {
        None | Some('-' | '_') => false,
        Some(next) if ctype::is_alnum(next) => false,
        Some(_) => rest.any(|c| !c.is_ascii() || !is_space(c as u8)),
    }
}
