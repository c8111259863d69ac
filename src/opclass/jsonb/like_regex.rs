//! `like_regex`: PostgreSQL's advanced regular expressions, run by the `regex` crate.
//!
//! The two dialects agree on the basics and differ in what escapes, brackets and flags
//! mean, so a pattern is taken apart and written anew ([`Translator`]). What only a
//! backtracking engine can do (lookaround, back references), the crate refuses by
//! design; such a pattern is an error that says so. Character classes are those of the
//! builtin locale `C.UTF-8`: Unicode's letters, ASCII's digits. One difference is left:
//! at `\m`, `\M`, `\y` the crate's own words count, with marks and digits of any script.

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// Memory that a compiled pattern may take.
const SIZE_MAX: usize = 4 << 20;
/// Parentheses within each other.
const NESTING_MAX: u32 = 200;
/// Largest count of a repetition.
const REPEAT_MAX: u32 = 255;

/// The flags of a `like_regex`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Flags {
    ignore_case: bool,
    dot_all: bool,
    multi_line: bool,
    literal: bool,
    white_space: bool,
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (set, letter) in [
            (self.ignore_case, "i"),
            (self.dot_all, "s"),
            (self.multi_line, "m"),
            (self.white_space, "x"),
            (self.literal, "q"),
        ] {
            if set {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// A pattern, ready to run.
#[derive(Clone, Debug)]
pub(super) struct LikeRegex {
    pattern: String,
    flags: Flags,
    regex: Regex,
}

impl LikeRegex {
    /// Compiles a pattern with flags from `ismxq`.
    pub(super) fn new(pattern: &str, flags: &str) -> Result<LikeRegex> {
        let mut set = Flags::default();
        for letter in flags.chars() {
            *match letter {
                'i' => &mut set.ignore_case,
                's' => &mut set.dot_all,
                'm' => &mut set.multi_line,
                'x' => &mut set.white_space,
                'q' => &mut set.literal,
                _ => {
                    return Err(Error::value(format!(
                        "invalid jsonpath: unrecognized flag {letter:?} of like_regex"
                    )));
                }
            } = true;
        }
        if set.white_space && !set.literal {
            return Err(Error::value(
                "invalid jsonpath: flag \"x\" of like_regex is not implemented by \
                 PostgreSQL",
            ));
        }
        let translated =
            if set.literal { regex::escape(pattern) } else { translate(pattern, set)? };
        let regex = RegexBuilder::new(&translated)
            .case_insensitive(set.ignore_case)
            .size_limit(SIZE_MAX)
            .nest_limit(NESTING_MAX + 20)
            .build()
            .map_err(|error| {
                let reason = match error {
                    regex::Error::CompiledTooBig(_) => {
                        "it takes too much memory".to_owned()
                    }
                    error => error.to_string(),
                };
                refused(pattern, &reason)
            })?;
        Ok(LikeRegex { pattern: pattern.to_owned(), flags: set, regex })
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    pub(super) fn flags(&self) -> Flags {
        self.flags
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

fn refused(pattern: &str, reason: &str) -> Error {
    const SHOWN: usize = 80;
    let mut shown: String = pattern.chars().take(SHOWN).collect();
    if shown.len() < pattern.len() {
        shown.push('…');
    }
    Error::value(format!("invalid regular expression {shown:?}: {reason}"))
}

fn translate(pattern: &str, flags: Flags) -> Result<String> {
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        line_dots: !flags.dot_all,
        line_anchors: flags.multi_line,
        ignore_case: flags.ignore_case,
        nesting: 0,
    };
    translator.run().map_err(|reason| refused(pattern, &reason))?;
    Ok(translator.out)
}

/// Why a pattern is refused.
type Refusal<T> = std::result::Result<T, String>;

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// Newlines are met neither by `.` nor by a negated bracket.
    line_dots: bool,
    /// `^` and `$` stand at lines, too.
    line_anchors: bool,
    /// Upper and lower case are one.
    ignore_case: bool,
    nesting: u32,
}

impl Translator<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn accept(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn run(&mut self) -> Refusal<()> {
        if self.options()? {
            return Ok(());
        }
        // Whether a quantifier may follow.
        let mut quantifiable = false;
        while let Some(c) = self.advance() {
            match c {
                '|' => {
                    self.out.push('|');
                    quantifiable = false;
                }
                '(' => {
                    self.open()?;
                    quantifiable = false;
                }
                ')' => {
                    if self.nesting == 0 {
                        return Err("parentheses () not balanced".to_owned());
                    }
                    self.nesting -= 1;
                    self.out.push(')');
                    quantifiable = true;
                }
                '*' | '+' | '?' => {
                    self.quantifiable(quantifiable)?;
                    self.out.push(c);
                    quantifiable = self.after_quantifier();
                }
                '{' if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                    self.quantifiable(quantifiable)?;
                    self.counts()?;
                    quantifiable = self.after_quantifier();
                }
                '^' => {
                    self.out.push_str(if self.line_anchors { "(?m:^)" } else { "\\A" });
                    quantifiable = false;
                }
                '$' => {
                    self.out.push_str(if self.line_anchors { "(?m:$)" } else { "\\z" });
                    quantifiable = false;
                }
                '.' => {
                    self.out.push_str(if self.line_dots { "[^\\n]" } else { "(?s:.)" });
                    quantifiable = true;
                }
                '[' => quantifiable = self.bracket()?,
                '\\' => quantifiable = self.escape()?,
                c => {
                    self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
                    quantifiable = true;
                }
            }
        }
        if self.nesting > 0 {
            return Err("parentheses () not balanced".to_owned());
        }
        Ok(())
    }

    /// Reads `***` directors and `(?letters)` at the front; whether the rest was literal
    /// and has been taken as such.
    fn options(&mut self) -> Refusal<bool> {
        if self.rest.starts_with("***") {
            if self.accept("***=") {
                self.out.push_str(&regex::escape(self.rest));
                return Ok(true);
            }
            if !self.accept("***:") {
                return Err("quantifier operand invalid".to_owned());
            }
        }
        let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase());
        let Some((options, rest)) =
            self.rest.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        else {
            return Ok(false);
        };
        if options.is_empty() || !letters(options) {
            return Ok(false);
        }
        self.rest = rest;
        let mut literal = false;
        for option in options.chars() {
            match option {
                'i' | 'c' => {
                    self.ignore_case = option == 'i';
                    self.out.push_str(if self.ignore_case { "(?i)" } else { "(?-i)" });
                }
                's' => (self.line_dots, self.line_anchors) = (false, false),
                'm' | 'n' => (self.line_dots, self.line_anchors) = (true, true),
                'p' => (self.line_dots, self.line_anchors) = (true, false),
                'w' => (self.line_dots, self.line_anchors) = (false, true),
                'q' => literal = true,
                't' => {}
                _ => return Err(format!("option {option:?} is not supported")),
            }
        }
        if literal {
            self.out.push_str(&regex::escape(self.rest));
        }
        Ok(literal)
    }

    /// Reads on behind an opening parenthesis.
    fn open(&mut self) -> Refusal<()> {
        if self.rest.starts_with('?') && !self.rest.starts_with("?:") {
            let around = ["?=", "?!", "?<=", "?<!"];
            let known = around.iter().any(|start| self.rest.starts_with(start));
            return Err(if known {
                "lookahead and lookbehind are not supported".to_owned()
            } else {
                "quantifier operand invalid".to_owned()
            });
        }
        self.accept("?:");
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(format!("more than {NESTING_MAX} nested parentheses"));
        }
        self.out.push_str("(?:");
        Ok(())
    }

    fn quantifiable(&self, quantifiable: bool) -> Refusal<()> {
        if quantifiable { Ok(()) } else { Err("quantifier operand invalid".to_owned()) }
    }

    /// Passes over the mark of a shy quantifier: to match or not does not depend on it.
    fn after_quantifier(&mut self) -> bool {
        self.accept("?");
        false
    }

    /// Reads `{m}`, `{m,}` or `{m,n}` behind its brace.
    fn counts(&mut self) -> Refusal<()> {
        let invalid = || "invalid repetition count(s)".to_owned();
        let least = self.count().ok_or_else(invalid)?;
        let mut most = Some(least);
        if self.accept(",") {
            most = match self.peek() {
                Some('}') => None,
                _ => Some(self.count().ok_or_else(invalid)?),
            };
        }
        if !self.accept("}") || most.is_some_and(|most| most < least) {
            return Err(invalid());
        }
        self.out.push_str(&match most {
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        });
        Ok(())
    }

    fn count(&mut self) -> Option<u32> {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let count = self.rest[..len].parse().ok().filter(|count| *count <= REPEAT_MAX);
        self.rest = &self.rest[len..];
        count
    }

    /// Reads an escape outside brackets; whether a quantifier may follow.
    fn escape(&mut self) -> Refusal<bool> {
        let Some(c) = self.peek() else {
            return Err("invalid escape \\ sequence".to_owned());
        };
        let constraint = match c {
            'A' => Some("\\A"),
            'Z' => Some("\\z"),
            'm' => Some("\\b{start}"),
            'M' => Some("\\b{end}"),
            'y' => Some("\\b"),
            'Y' => Some("\\B"),
            _ => None,
        };
        if let Some(constraint) = constraint {
            self.advance();
            self.out.push_str(constraint);
            return Ok(false);
        }
        if let Some(class) = self.class_escape() {
            self.out.push_str(&class);
            return Ok(true);
        }
        let c = self.character_escape()?;
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        Ok(true)
    }

    /// A class such as `\d`, as a bracket.
    fn class_escape(&mut self) -> Option<String> {
        let class = match self.peek()? {
            'd' => format!("[{}]", class("digit")?),
            's' => format!("[{}]", class("space")?),
            'w' => format!("[{}]", class("word")?),
            'D' => format!("[^{}]", class("digit")?),
            'S' => format!("[^{}]", class("space")?),
            'W' => format!("[^{}]", class("word")?),
            _ => return None,
        };
        self.advance();
        Some(class)
    }

    /// A character written as an escape, behind the backslash.
    fn character_escape(&mut self) -> Refusal<char> {
        let invalid = || "invalid escape \\ sequence".to_owned();
        let c = self.advance().ok_or_else(invalid)?;
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'c' => {
                let code = u32::from(self.advance().ok_or_else(invalid)?) & 0x1F;
                char::from_u32(code).ok_or_else(invalid)?
            }
            'u' => self.code(4, 4)?,
            'U' => self.code(8, 8)?,
            'x' => self.code(1, 255)?,
            '0' => {
                let len = self
                    .rest
                    .bytes()
                    .take(2)
                    .take_while(|byte| (b'0'..=b'7').contains(byte))
                    .count();
                let code = u32::from_str_radix(&format!("0{}", &self.rest[..len]), 8);
                self.rest = &self.rest[len..];
                code.ok().and_then(char::from_u32).ok_or_else(invalid)?
            }
            '1'..='9' => return Err("back references are not supported".to_owned()),
            c if c.is_ascii_alphanumeric() => return Err(invalid()),
            c => c,
        })
    }

    /// A code point in so many hexadecimal digits.
    fn code(&mut self, least: usize, most: usize) -> Refusal<char> {
        let digits =
            self.rest.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let code = u32::from_str_radix(&self.rest[..digits], 16).ok();
        self.rest = &self.rest[digits..];
        code.filter(|_| digits >= least)
            .and_then(char::from_u32)
            .ok_or_else(|| "invalid escape \\ sequence".to_owned())
    }

    /// Reads a bracket expression behind its `[`; whether a quantifier may follow.
    fn bracket(&mut self) -> Refusal<bool> {
        // Two constraints in disguise.
        for (text, constraint) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            if self.accept(text) {
                self.out.push_str(constraint);
                return Ok(false);
            }
        }
        let negated = self.accept("^");
        let mut set = String::new();
        let mut first = true;
        loop {
            if !first && self.accept("]") {
                break;
            }
            first = false;
            match self.element()? {
                Element::Class(class) => set.push_str(&class),
                Element::Character(from) => {
                    let is_range = self.rest.starts_with('-')
                        && !self.rest.starts_with("-]")
                        && self.accept("-");
                    let to = match is_range {
                        false => from,
                        true => match self.element()? {
                            Element::Character(to) => to,
                            Element::Class(_) => {
                                return Err("invalid character range".to_owned());
                            }
                        },
                    };
                    if to < from {
                        return Err("invalid character range".to_owned());
                    }
                    set.push_str(&format!(
                        "\\x{{{:X}}}-\\x{{{:X}}}",
                        u32::from(from),
                        u32::from(to)
                    ));
                }
            }
        }
        if negated && self.line_dots {
            set.push_str("\\n");
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(&set);
        self.out.push(']');
        Ok(true)
    }

    fn element(&mut self) -> Refusal<Element> {
        let unbalanced = || "brackets [] not balanced".to_owned();
        if self.accept("[:") {
            let (name, rest) = self.rest.split_once(":]").ok_or_else(unbalanced)?;
            self.rest = rest;
            let name = match name {
                "upper" | "lower" if self.ignore_case => "alpha",
                name => name,
            };
            let class = class(name).ok_or("invalid character class")?;
            return Ok(Element::Class(class.to_owned()));
        }
        for (open, close) in [("[.", ".]"), ("[=", "=]")] {
            if self.accept(open) {
                let (name, rest) =
                    self.rest.split_once(close).ok_or_else(unbalanced)?;
                self.rest = rest;
                let mut chars = name.chars();
                return match (chars.next(), chars.next()) {
                    (Some(c), None) => Ok(Element::Character(c)),
                    _ => Err("invalid collating element".to_owned()),
                };
            }
        }
        match self.advance() {
            Some('\\') => match self.class_escape() {
                Some(class) => Ok(Element::Class(class)),
                None => Ok(Element::Character(self.character_escape()?)),
            },
            Some(c) => Ok(Element::Character(c)),
            None => Err(unbalanced()),
        }
    }
}

enum Element {
    Character(char),
    /// In the crate's notation, to stand inside a bracket.
    Class(String),
}

/// A named class in the crate's notation.
fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alnum" => "\\p{Alphabetic}0-9",
        "alpha" => "\\p{Alphabetic}",
        "ascii" => "\\x00-\\x7F",
        "blank" => "\\p{Zs}\\t",
        "cntrl" => "\\p{Cc}",
        "digit" => "0-9",
        "graph" => "[^\\p{Cc}\\p{Cn}\\p{White_Space}]",
        "lower" => "\\p{Lowercase}",
        "print" => "[^\\p{Cc}\\p{Cn}\\p{Zl}\\p{Zp}]",
        "punct" => "[\\p{P}\\p{S}&&[^\\p{Alphabetic}]]",
        "space" => "\\p{White_Space}",
        "upper" => "\\p{Uppercase}",
        "word" => "\\p{Alphabetic}0-9_",
        "xdigit" => "0-9A-Fa-f",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, flags: &str, text: &str) -> bool {
        LikeRegex::new(pattern, flags).unwrap().is_match(text)
    }

    #[test]
    fn patterns_mean_what_they_mean_to_postgresql() {
        for (pattern, flags, text, matches) in [
            ("a.c", "", "a\nc", false),
            ("a.c", "s", "a\nc", true),
            ("a[^x]c", "", "a\nc", false),
            ("a[^x]c", "s", "a\nc", true),
            ("^b", "", "a\nb", false),
            ("^b", "m", "a\nb", true),
            ("a$", "m", "a\nb", true),
            ("a$", "", "a\n", false),
            ("ABC", "i", "xabcx", true),
            ("a.c", "q", "abc", false),
            ("a.c", "xq", "a.c", true),
            ("[]a]", "", "]", true),
            ("[a\\]x]", "", "]", true),
            ("[[:digit:]_-]+$", "", "1_-", true),
            ("\\d", "", "٣", false),
            ("\\w", "", "é", true),
            ("\\mfoo\\M", "", "a foo b", true),
            ("\\u00e9{2}", "", "éé", true),
            ("a{,2}", "", "a{,2}", true),
            ("(?i)A", "", "a", true),
            ("***=a.c", "", "abc", false),
            ("a|", "", "x", true),
            ("()", "", "", true),
            ("a\\&b", "", "a&b", true),
            ("[&&a]", "", "&", true),
            ("[a~~b]", "", "~", true),
        ] {
            assert_eq!(is_match(pattern, flags, text), matches, "{pattern} {text:?}");
        }
    }

    #[test]
    fn broken_and_foreign_patterns_are_refused() {
        for pattern in [
            "(",
            ")",
            "[",
            "[a",
            "*",
            "a**",
            "^*",
            "a|*",
            "(*a)",
            "a{2,1}",
            "a{256}",
            "a{1",
            "\\",
            "\\q",
            "[b-a]",
            "[[:nope:]]",
            "[a-\\d]",
            "(?=a)",
            "(a)\\1",
            "\\x",
        ] {
            assert!(LikeRegex::new(pattern, "").is_err(), "{pattern}");
        }
        assert!(LikeRegex::new("a", "x").is_err());
        assert!(LikeRegex::new("a", "g").is_err());
        assert!(LikeRegex::new(&"(".repeat(1_000_000), "").is_err());
        assert!(LikeRegex::new("((\\w{255}){255}){255}", "").is_err());
    }
}
