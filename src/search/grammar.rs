//! The notation of `--where`: conditions as PostgreSQL writes them, combined.
//!
//! ```text
//! expression  conditions with AND, OR, NOT, ( ), binding as in SQL
//! condition   column OPERATOR operand
//!             column [NOT] LIKE | ILIKE | BETWEEN … AND … | IN (…)
//!             column IS [NOT] NULL
//! column      name · "name" · to_tsvector([config,] name)
//! operand     'text' · E'text' · number · NULL · array['a', NULL] · '{a,b}'
//!             [websearch_|plain|phrase]to[_]tsquery([config,] 'text'), with ::type behind
//! ```
//!
//! This file knows the notation only; what a name is and whether an operator suits it is
//! decided in `bind.rs`. Both complain with [`Source::error`], which shows the place.
//! What a condition denies (`NOT LIKE`, `!~`, `<>`) is kept as NOT of what it affirms:
//! with SQL's three-valued logic the two are the same.
//!
//! Parentheses nest at most [`DEPTH_MAX`] deep, chains of AND and OR are flat and
//! repeated NOTs cancel, so whoever walks the tree may recurse.

use std::fmt;

use crate::error::{Error, Result};

/// Parentheses inside parentheses.
pub const DEPTH_MAX: usize = 100;
/// Columns of an expression that an error shows.
const SHOWN: usize = 76;

/// A parsed expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// All of them; two or more.
    And(Vec<Expr>),
    /// One of them; two or more.
    Or(Vec<Expr>),
    /// Not this; never another `Not`.
    Not(Box<Expr>),
    /// A leaf.
    Condition(Condition),
}

/// `column operator operand`.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The left side.
    pub column: Column,
    /// PostgreSQL's spelling; `LIKE`, `ILIKE`, `IS NULL` as words.
    pub operator: &'static str,
    /// Where the operator stands, a byte of the source.
    pub operator_at: usize,
    /// The right side; `Null` with `IS NULL`.
    pub operand: Operand,
    /// Where the operand stands, a byte of the source.
    pub operand_at: usize,
}

/// The left side of a condition.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name of a field or of an index.
    pub name: String,
    /// Where it stands, a byte of the source.
    pub at: usize,
    /// Written as `to_tsvector(…)`.
    pub to_tsvector: bool,
    /// Its configuration, where given.
    pub config: Option<String>,
}

/// The right side of a condition.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// A string, with the type it is cast to.
    Text(String, Option<String>),
    /// A whole number.
    Integer(i64),
    /// `array['a', NULL]`
    Texts(Vec<Option<String>>),
    /// `array[1, NULL]`
    Integers(Vec<Option<i64>>),
    /// A function that makes a tsquery.
    Query {
        /// Which one.
        function: QueryFunction,
        /// Its configuration, where given.
        config: Option<String>,
        /// What is searched for.
        text: String,
    },
    /// `NULL`
    Null,
}

/// The functions that make a tsquery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryFunction {
    /// `to_tsquery`
    Operators,
    /// `plainto_tsquery`
    Plain,
    /// `phraseto_tsquery`
    Phrase,
    /// `websearch_to_tsquery`
    Web,
}

impl QueryFunction {
    const ALL: [QueryFunction; 4] = [
        QueryFunction::Operators,
        QueryFunction::Plain,
        QueryFunction::Phrase,
        QueryFunction::Web,
    ];

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            QueryFunction::Operators => "to_tsquery",
            QueryFunction::Plain => "plainto_tsquery",
            QueryFunction::Phrase => "phraseto_tsquery",
            QueryFunction::Web => "websearch_to_tsquery",
        }
    }
}

/// Operators made of signs: as written, as kept, whether denied.
const OPERATORS: &[(&str, &str, bool)] = &[
    ("@@", "@@", false),
    ("@@@", "@@", false),
    ("@?", "@?", false),
    ("@>", "@>", false),
    ("<@", "<@", false),
    ("&&", "&&", false),
    ("?", "?", false),
    ("?|", "?|", false),
    ("?&", "?&", false),
    ("~", "~", false),
    ("~*", "~*", false),
    ("!~", "~", true),
    ("!~*", "~*", true),
    ("~~", "LIKE", false),
    ("~~*", "ILIKE", false),
    ("!~~", "LIKE", true),
    ("!~~*", "ILIKE", true),
    ("=", "=", false),
    ("<>", "=", true),
    ("!=", "=", true),
    ("<", "<", false),
    ("<=", "<=", false),
    (">", ">", false),
    (">=", ">=", false),
    ("%", "%", false),
    ("%>", "%>", false),
    ("%>>", "%>>", false),
];

/// An expression's text, for messages that show a place in it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(pub &'a str);

impl Source<'_> {
    /// `message`, with the place (a byte of the text) named and shown.
    pub fn error(self, at: usize, message: impl fmt::Display) -> Error {
        let text = self.0;
        let at = at.min(text.len());
        let before = text[..at].chars().count();
        // A window of the text around the place, on one line.
        let skipped = before.saturating_sub(SHOWN / 2);
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let mut shown: String =
            text.chars().skip(skipped).take(SHOWN).map(plain).collect();
        let mut caret = before - skipped;
        if skipped > 0 {
            shown.insert(0, '…');
            caret += 1;
        }
        if text.chars().count() > skipped + SHOWN {
            shown.push('…');
        }
        Error::invalid(format!(
            "column {}: {message}\n  {shown}\n  {:>width$}",
            before + 1,
            '^',
            width = caret + 1
        ))
    }
}

/// Parses an expression.
pub fn parse(text: &str) -> Result<Expr> {
    let mut parser = Parser { source: Source(text), at: 0, depth: 0 };
    let expr = parser.or()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(expr),
        Some(')') => Err(parser.error("a closing parenthesis that nothing opened")),
        Some(_) => Err(parser.error("expected AND, OR or the end")),
    }
}

struct Parser<'a> {
    source: Source<'a>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.source.0[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, message: impl fmt::Display) -> Error {
        self.source.error(self.at, message)
    }

    /// Reads a sign, if it is next.
    fn sign(&mut self, sign: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    fn expect(&mut self, sign: char, behind: &str) -> Result<()> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(self.error(format_args!("expected '{sign}' {behind}")))
    }

    /// The length of the word that is next.
    fn word_len(&self) -> usize {
        let rest = self.rest();
        let starts = rest.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let goes_on = |c: char| c.is_alphanumeric() || c == '_';
        if starts { rest.find(|c| !goes_on(c)).unwrap_or(rest.len()) } else { 0 }
    }

    /// The word that is next, read.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_space();
        let word = &self.rest()[..self.word_len()];
        self.at += word.len();
        (!word.is_empty()).then_some(word)
    }

    /// Reads a keyword, if it is next.
    fn keyword(&mut self, keyword: &str) -> bool {
        self.skip_space();
        let len = self.word_len();
        let found = self.rest()[..len].eq_ignore_ascii_case(keyword);
        if found {
            self.at += len;
        }
        found
    }

    fn or(&mut self) -> Result<Expr> {
        let mut parts = vec![self.and()?];
        while self.keyword("or") {
            parts.push(self.and()?);
        }
        Ok(single_or(parts, Expr::Or))
    }

    fn and(&mut self) -> Result<Expr> {
        let mut parts = vec![self.not()?];
        while self.keyword("and") {
            parts.push(self.not()?);
        }
        Ok(single_or(parts, Expr::And))
    }

    fn not(&mut self) -> Result<Expr> {
        let mut denied = false;
        while self.keyword("not") {
            denied = !denied;
        }
        let opened = self.at;
        let expr = if self.sign('(') {
            if self.depth == DEPTH_MAX {
                return Err(self.source.error(
                    opened,
                    format_args!("parentheses nest more than {DEPTH_MAX} deep"),
                ));
            }
            self.depth += 1;
            let expr = self.or()?;
            self.depth -= 1;
            self.expect(')', "to close the parenthesis")?;
            expr
        } else {
            self.condition()?
        };
        Ok(if denied { negation(expr) } else { expr })
    }

    fn condition(&mut self) -> Result<Expr> {
        let column = self.column()?;
        self.skip_space();
        let operator_at = self.at;
        if self.keyword("is") {
            let denied = self.keyword("not");
            if !self.keyword("null") {
                return Err(self.error("expected NULL or NOT NULL"));
            }
            let condition = Condition {
                column,
                operator: "IS NULL",
                operator_at,
                operand: Operand::Null,
                operand_at: operator_at,
            };
            return Ok(affirmed_or_denied(Expr::Condition(condition), denied));
        }
        let mut denied = self.keyword("not");
        if self.keyword("between") {
            let low = self.comparison(column.clone(), ">=", operator_at)?;
            if !self.keyword("and") {
                return Err(self.error("expected AND and the upper bound of BETWEEN"));
            }
            let high = self.comparison(column, "<=", operator_at)?;
            return Ok(affirmed_or_denied(Expr::And(vec![low, high]), denied));
        }
        if self.keyword("in") {
            self.expect('(', "behind IN")?;
            let mut parts = Vec::new();
            loop {
                parts.push(self.comparison(column.clone(), "=", operator_at)?);
                if !self.sign(',') {
                    break;
                }
            }
            self.expect(')', "behind the list of IN")?;
            return Ok(affirmed_or_denied(single_or(parts, Expr::Or), denied));
        }
        let operator = if self.keyword("like") {
            "LIKE"
        } else if self.keyword("ilike") {
            "ILIKE"
        } else if denied {
            return Err(self.error("expected LIKE, ILIKE, BETWEEN or IN behind NOT"));
        } else {
            let (operator, negative) = self.operator()?;
            denied = negative;
            operator
        };
        let condition = self.comparison(column, operator, operator_at)?;
        Ok(affirmed_or_denied(condition, denied))
    }

    fn comparison(
        &mut self,
        column: Column,
        operator: &'static str,
        operator_at: usize,
    ) -> Result<Expr> {
        self.skip_space();
        let operand_at = self.at;
        let operand = self.operand()?;
        Ok(Expr::Condition(Condition {
            column,
            operator,
            operator_at,
            operand,
            operand_at,
        }))
    }

    /// A name, quoted or not; keywords must be quoted.
    fn name(&mut self) -> Result<(String, usize)> {
        self.skip_space();
        let at = self.at;
        if self.sign('"') {
            let mut name = String::new();
            loop {
                let rest = self.rest();
                let Some(end) = rest.find('"') else {
                    return Err(self
                        .source
                        .error(at, "a quoted name that does not end"));
                };
                name.push_str(&rest[..end]);
                self.at += end + 1;
                if !self.rest().starts_with('"') {
                    return Ok((name, at));
                }
                name.push('"');
                self.at += 1;
            }
        }
        const KEYWORDS: [&str; 8] =
            ["and", "or", "not", "like", "ilike", "between", "is", "in"];
        match self.word() {
            Some(word)
                if !KEYWORDS.iter().any(|key| word.eq_ignore_ascii_case(key)) =>
            {
                Ok((word.to_owned(), at))
            }
            _ => Err(self.source.error(at, "expected the name of a field or an index")),
        }
    }

    fn column(&mut self) -> Result<Column> {
        let (name, at) = self.name()?;
        if !name.eq_ignore_ascii_case("to_tsvector") || !self.sign('(') {
            return Ok(Column { name, at, to_tsvector: false, config: None });
        }
        let config = self.leading_config()?;
        let (name, at) = self.name()?;
        self.expect(')', "behind the field of to_tsvector")?;
        Ok(Column { name, at, to_tsvector: true, config })
    }

    /// `'config',` of a function's arguments, if it is next.
    fn leading_config(&mut self) -> Result<Option<String>> {
        self.skip_space();
        let start = self.at;
        if let Some(config) = self.string()? {
            self.casts()?;
            if self.sign(',') {
                return Ok(Some(config));
            }
        }
        self.at = start;
        Ok(None)
    }

    fn operator(&mut self) -> Result<(&'static str, bool)> {
        let rest = self.rest();
        let end = rest.find(|c| !"@<>=!~*?|&%".contains(c)).unwrap_or(rest.len());
        let written = &rest[..end];
        if written.is_empty() {
            return Err(self.error("expected an operator, such as @@, LIKE, @> or ="));
        }
        match OPERATORS.iter().find(|(sign, ..)| *sign == written) {
            Some(&(_, operator, denied)) => {
                self.at += end;
                Ok((operator, denied))
            }
            None => Err(self.error(format_args!("unknown operator {written}"))),
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        self.skip_space();
        let at = self.at;
        if let Some(text) = self.string()? {
            return Ok(Operand::Text(text, self.casts()?));
        }
        if let Some(number) = self.integer()? {
            return Ok(Operand::Integer(number));
        }
        let Some(word) = self.word() else {
            return Err(self.error(
                "expected a value: 'text' in single quotes, a number, array[…] or a \
                 function such as websearch_to_tsquery('…')",
            ));
        };
        if word.eq_ignore_ascii_case("null") {
            self.casts()?;
            return Ok(Operand::Null);
        }
        if word.eq_ignore_ascii_case("array") {
            let array = self.array()?;
            self.casts()?;
            return Ok(array);
        }
        let known =
            |function: &QueryFunction| word.eq_ignore_ascii_case(function.name());
        let Some(function) = QueryFunction::ALL.into_iter().find(known) else {
            return Err(self.source.error(
                at,
                format_args!(
                    "unknown function or missing quotes: {word}; text is written in \
                     single quotes, and the functions are to_tsquery, plainto_tsquery, \
                     phraseto_tsquery and websearch_to_tsquery"
                ),
            ));
        };
        self.expect('(', "behind the function's name")?;
        let config = self.leading_config()?;
        self.skip_space();
        let Some(text) = self.string()? else {
            return Err(self.error("expected what to search for, in single quotes"));
        };
        self.casts()?;
        self.expect(')', "behind the function's argument")?;
        Ok(Operand::Query { function, config, text })
    }

    fn integer(&mut self) -> Result<Option<i64>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Ok(None);
        }
        let written = &rest[..sign + digits];
        let number = written
            .parse()
            .map_err(|_| self.error(format_args!("{written} is out of range")))?;
        self.at += written.len();
        Ok(Some(number))
    }

    fn array(&mut self) -> Result<Operand> {
        self.expect('[', "behind array")?;
        let (mut texts, mut integers) = (Vec::new(), Vec::new());
        let (mut any_text, mut any_integer) = (false, false);
        if !self.sign(']') {
            loop {
                self.skip_space();
                if let Some(text) = self.string()? {
                    texts.push(Some(text));
                    integers.push(None);
                    any_text = true;
                } else if let Some(number) = self.integer()? {
                    texts.push(None);
                    integers.push(Some(number));
                    any_integer = true;
                } else if self.keyword("null") {
                    texts.push(None);
                    integers.push(None);
                } else {
                    return Err(self.error("expected an element: 'text' or a number"));
                }
                if any_text && any_integer {
                    return Err(self.error("an array of texts and numbers"));
                }
                if !self.sign(',') {
                    break;
                }
            }
            self.expect(']', "at the end of the array")?;
        }
        Ok(if any_integer {
            Operand::Integers(integers)
        } else {
            Operand::Texts(texts)
        })
    }

    /// Type behind a value: `::name`, `::name[]`; the last one counts.
    fn casts(&mut self) -> Result<Option<String>> {
        let mut last = None;
        loop {
            self.skip_space();
            if !self.rest().starts_with("::") {
                return Ok(last);
            }
            self.at += 2;
            let Some(word) = self.word() else {
                return Err(self.error("expected the name of a type"));
            };
            let mut name = word.to_ascii_lowercase();
            if self.rest().starts_with("[]") {
                self.at += 2;
                name.push_str("[]");
            }
            last = Some(name);
        }
    }

    /// A string, if one is next: `'…'` with `''` for a quote, `E'…'` with escapes.
    fn string(&mut self) -> Result<Option<String>> {
        let start = self.at;
        let rest = self.rest();
        let escapes = rest.starts_with("E'") || rest.starts_with("e'");
        if !escapes && !rest.starts_with('\'') {
            return Ok(None);
        }
        self.at += 1 + usize::from(escapes);
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let special = |c| c == '\'' || (escapes && c == '\\');
            let Some(end) = rest.find(special) else {
                return Err(self.source.error(start, "a string that does not end"));
            };
            text.push_str(&rest[..end]);
            self.at += end + 1;
            if rest[end..].starts_with('\\') {
                text.push(self.escape()?);
            } else if self.rest().starts_with('\'') {
                text.push('\'');
                self.at += 1;
            } else {
                return Ok(Some(text));
            }
        }
    }

    /// What follows a backslash in `E'…'`.
    fn escape(&mut self) -> Result<char> {
        let Some(c) = self.peek() else {
            return Err(self.error("a string that does not end"));
        };
        let from = self.at;
        self.at += c.len_utf8();
        let digits = match c {
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'u' => 4,
            'U' => 8,
            'x' | '0'..='7' => {
                let message = "bytes by number are not taken; write \\uXXXX";
                return Err(self.source.error(from, message));
            }
            other => return Ok(other),
        };
        let code = self.rest().get(..digits).and_then(|digits| {
            let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            all_hex.then(|| u32::from_str_radix(digits, 16).ok())?
        });
        let c = code.and_then(char::from_u32).filter(|&c| c != '\0');
        let Some(c) = c else {
            let message =
                format!("expected {digits} hexadecimal digits of a character");
            return Err(self.source.error(from, message));
        };
        self.at += digits;
        Ok(c)
    }
}

/// The one part, or all under `join`; chains of one operator stay flat.
fn single_or(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    if parts.len() == 1 { parts.remove(0) } else { join(parts) }
}

fn negation(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => *inner,
        expr => Expr::Not(Box::new(expr)),
    }
}

fn affirmed_or_denied(expr: Expr, denied: bool) -> Expr {
    if denied { negation(expr) } else { expr }
}

#[cfg(test)]
#[path = "grammar_tests.rs"]
mod tests;
