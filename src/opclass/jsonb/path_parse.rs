//! Tokens → jsonpath.
//!
//! The grammar keeps expressions (which give values) and predicates (which give true,
//! false or unknown) apart: `!` and `is unknown` take a predicate in parentheses, a
//! comparison takes expressions, and only accessors behind parentheses turn a predicate
//! into an expression. Which one a parenthesis holds is known when it has been read, so
//! one descent parses both and carries a [`Sort`] along.

use super::like_regex::LikeRegex;
use super::numeric;
use super::path::{
    Arithmetic, Comparison, DEPTH_MAX, JsonPath, Method, Op, Step, StepId,
};
use super::path_methods;
use super::path_scan::{Scanner, Token};
use crate::error::{Error, Result};

/// What has been parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Expression,
    Predicate,
    /// A predicate in parentheses, which may go on with `is unknown`.
    Parenthesized,
}

/// Names of methods on dates and times, known but not offered.
const TIME_METHODS: [&str; 6] =
    ["date", "datetime", "time", "time_tz", "timestamp", "timestamp_tz"];

/// Parentheses, brackets and signs within each other.
const NESTING_MAX: usize = 200;

pub(super) fn parse(text: &str) -> Result<JsonPath> {
    if text.is_empty() {
        return Err(Error::value("invalid jsonpath: it is empty"));
    }
    let mut scanner = Scanner::new(text);
    let token = scanner.next()?;
    let mut parser = Parser { scanner, token, steps: Vec::new(), nesting: 0 };
    let lax = match parser.keyword() {
        Some(word @ ("strict" | "lax")) => {
            let lax = word == "lax";
            parser.advance()?;
            lax
        }
        _ => true,
    };
    let (root, _) = parser.or()?;
    if parser.token != Token::End {
        return Err(parser.unexpected());
    }
    let path = JsonPath { steps: parser.steps, root, lax };
    check(&path)?;
    Ok(path)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    /// The token in hand.
    token: Token,
    steps: Vec<Step>,
    nesting: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token> {
        let next = self.scanner.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn unexpected(&self) -> Error {
        self.scanner.error("syntax error")
    }

    fn is(&self, mark: &str) -> bool {
        matches!(&self.token, Token::Mark(token) if *token == mark)
    }

    /// Passes over a mark if it is the token in hand.
    fn accept(&mut self, mark: &str) -> Result<bool> {
        let found = self.is(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if self.accept(mark)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The keyword in hand, in lower case. `true`, `false` and `null` are keywords in
    /// lower case only.
    fn keyword(&self) -> Option<&'static str> {
        const WORDS: [&str; 11] = [
            "strict",
            "lax",
            "is",
            "unknown",
            "exists",
            "starts",
            "with",
            "like_regex",
            "flag",
            "last",
            "to",
        ];
        let Token::Name(name) = &self.token else { return None };
        let exact = ["true", "false", "null"].into_iter().find(|word| word == name);
        exact.or_else(|| WORDS.into_iter().find(|word| word.eq_ignore_ascii_case(name)))
    }

    fn accept_word(&mut self, word: &str) -> Result<bool> {
        let found = self.keyword() == Some(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn push(&mut self, op: Op) -> StepId {
        self.steps.push(Step { op, next: None });
        self.steps.len() - 1
    }

    /// Runs a rule that may come back to itself.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == NESTING_MAX {
            return Err(too_deep());
        }
        self.nesting += 1;
        let result = rule(self);
        self.nesting -= 1;
        result
    }

    fn predicate(&self, (step, sort): (StepId, Sort)) -> Result<StepId> {
        if sort == Sort::Expression { Err(self.unexpected()) } else { Ok(step) }
    }

    fn expression(&self, (step, sort): (StepId, Sort)) -> Result<StepId> {
        if sort == Sort::Expression { Ok(step) } else { Err(self.unexpected()) }
    }

    /// An expression or a predicate.
    fn or(&mut self) -> Result<(StepId, Sort)> {
        let mut left = self.and()?;
        while self.is("||") {
            let first = self.predicate(left)?;
            self.advance()?;
            let right = self.and()?;
            let second = self.predicate(right)?;
            left = (self.push(Op::Or(first, second)), Sort::Predicate);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<(StepId, Sort)> {
        let mut left = self.term()?;
        while self.is("&&") {
            let first = self.predicate(left)?;
            self.advance()?;
            let right = self.term()?;
            let second = self.predicate(right)?;
            left = (self.push(Op::And(first, second)), Sort::Predicate);
        }
        Ok(left)
    }

    /// A negation, a comparison and its like, or an expression.
    fn term(&mut self) -> Result<(StepId, Sort)> {
        if self.accept("!")? {
            let inner = match self.keyword() {
                Some("exists") => self.exists()?,
                _ => {
                    self.expect("(")?;
                    let inner = self.nested(Self::or)?;
                    let inner = self.predicate(inner)?;
                    self.expect(")")?;
                    inner
                }
            };
            return Ok((self.push(Op::Not(inner)), Sort::Predicate));
        }
        if self.keyword() == Some("exists") {
            return Ok((self.exists()?, Sort::Predicate));
        }
        let left = self.sum()?;
        if left.1 == Sort::Parenthesized && self.accept_word("is")? {
            if !self.accept_word("unknown")? {
                return Err(self.unexpected());
            }
            return Ok((self.push(Op::IsUnknown(left.0)), Sort::Predicate));
        }
        let comparison = match &self.token {
            Token::Mark("==") => Some(Comparison::Equal),
            Token::Mark("!=" | "<>") => Some(Comparison::NotEqual),
            Token::Mark("<") => Some(Comparison::Less),
            Token::Mark(">") => Some(Comparison::Greater),
            Token::Mark("<=") => Some(Comparison::LessOrEqual),
            Token::Mark(">=") => Some(Comparison::GreaterOrEqual),
            _ => None,
        };
        let op = if let Some(comparison) = comparison {
            let left = self.expression(left)?;
            self.advance()?;
            let right = self.sum()?;
            Op::Compare(comparison, left, self.expression(right)?)
        } else if self.keyword() == Some("starts") {
            let left = self.expression(left)?;
            self.advance()?;
            if !self.accept_word("with")? {
                return Err(self.unexpected());
            }
            let initial = match self.advance()? {
                Token::String(string) => Op::String(string),
                Token::Variable(name) => Op::Variable(name),
                _ => return Err(self.unexpected()),
            };
            Op::StartsWith(left, self.push(initial))
        } else if self.keyword() == Some("like_regex") {
            let left = self.expression(left)?;
            self.advance()?;
            let pattern = self.string()?;
            let flags =
                if self.accept_word("flag")? { self.string()? } else { String::new() };
            Op::LikeRegex(left, Box::new(LikeRegex::new(&pattern, &flags)?))
        } else {
            return Ok(left);
        };
        Ok((self.push(op), Sort::Predicate))
    }

    fn string(&mut self) -> Result<String> {
        match self.advance()? {
            Token::String(string) => Ok(string),
            _ => Err(self.unexpected()),
        }
    }

    fn exists(&mut self) -> Result<StepId> {
        self.advance()?;
        self.expect("(")?;
        let operand = self.nested(Self::or)?;
        let operand = self.expression(operand)?;
        self.expect(")")?;
        Ok(self.push(Op::Exists(operand)))
    }

    fn sum(&mut self) -> Result<(StepId, Sort)> {
        let mut left = self.product()?;
        loop {
            let arithmetic = match self.token {
                Token::Mark("+") => Arithmetic::Add,
                Token::Mark("-") => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            left = self.binary(arithmetic, left, Self::product)?;
        }
    }

    fn product(&mut self) -> Result<(StepId, Sort)> {
        let mut left = self.unary()?;
        loop {
            let arithmetic = match self.token {
                Token::Mark("*") => Arithmetic::Multiply,
                Token::Mark("/") => Arithmetic::Divide,
                Token::Mark("%") => Arithmetic::Modulo,
                _ => return Ok(left),
            };
            left = self.binary(arithmetic, left, Self::unary)?;
        }
    }

    fn binary(
        &mut self,
        arithmetic: Arithmetic,
        left: (StepId, Sort),
        operand: fn(&mut Self) -> Result<(StepId, Sort)>,
    ) -> Result<(StepId, Sort)> {
        let left = self.expression(left)?;
        self.advance()?;
        let right = operand(self)?;
        let right = self.expression(right)?;
        Ok((self.push(Op::Arithmetic(arithmetic, left, right)), Sort::Expression))
    }

    fn unary(&mut self) -> Result<(StepId, Sort)> {
        let negative = self.is("-");
        if !negative && !self.is("+") {
            return self.primary();
        }
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        let operand = self.expression(operand)?;
        // A sign before a plain number belongs to the number.
        if self.steps[operand].next.is_none()
            && let Op::Number(number) = &mut self.steps[operand].op
        {
            if negative {
                *number = negated(number);
            }
            return Ok((operand, Sort::Expression));
        }
        let op = if negative { Op::Minus(operand) } else { Op::Plus(operand) };
        Ok((self.push(op), Sort::Expression))
    }

    fn primary(&mut self) -> Result<(StepId, Sort)> {
        if self.accept("(")? {
            let (inner, sort) = self.nested(Self::or)?;
            self.expect(")")?;
            if self.is(".") || self.is("[") || self.is("?") {
                self.accessors(inner)?;
                return Ok((inner, Sort::Expression));
            }
            let sort = match sort {
                Sort::Expression => Sort::Expression,
                _ => Sort::Parenthesized,
            };
            return Ok((inner, sort));
        }
        let op = match self.keyword() {
            Some("true") => Op::Bool(true),
            Some("false") => Op::Bool(false),
            Some("null") => Op::Null,
            Some("last") => Op::Last,
            Some(_) => return Err(self.unexpected()),
            None => match &self.token {
                Token::Mark("$") => Op::Root,
                Token::Mark("@") => Op::Current,
                Token::String(string) => Op::String(string.clone()),
                Token::Variable(name) => Op::Variable(name.clone()),
                Token::Integer(text) | Token::Number(text) => {
                    Op::Number(path_methods::number_of(text)?)
                }
                _ => return Err(self.unexpected()),
            },
        };
        self.advance()?;
        let start = self.push(op);
        self.accessors(start)?;
        Ok((start, Sort::Expression))
    }

    /// Accessors, filters and methods behind the chain that begins with `start`.
    fn accessors(&mut self, start: StepId) -> Result<()> {
        let mut end = start;
        while let Some(next) = self.steps[end].next {
            end = next;
        }
        loop {
            let op = if self.accept(".")? {
                self.member()?
            } else if self.accept("[")? {
                self.nested(Self::subscripts)?
            } else if self.accept("?")? {
                self.expect("(")?;
                let inner = self.nested(Self::or)?;
                let inner = self.predicate(inner)?;
                self.expect(")")?;
                Op::Filter(inner)
            } else {
                return Ok(());
            };
            let next = self.push(op);
            self.steps[end].next = Some(next);
            end = next;
        }
    }

    fn subscripts(&mut self) -> Result<Op> {
        if self.accept("*")? {
            self.expect("]")?;
            return Ok(Op::AnyArray);
        }
        let mut subscripts = Vec::new();
        loop {
            let from = self.sum()?;
            let from = self.expression(from)?;
            let mut to = None;
            if self.accept_word("to")? {
                let end = self.sum()?;
                to = Some(self.expression(end)?);
            }
            subscripts.push((from, to));
            if !self.accept(",")? {
                break;
            }
        }
        self.expect("]")?;
        Ok(Op::Index(subscripts))
    }

    /// What stands behind a point.
    fn member(&mut self) -> Result<Op> {
        match self.advance()? {
            Token::Mark("*") => Ok(Op::AnyKey),
            Token::Mark("**") => self.levels(),
            Token::String(key) => Ok(Op::Key(key)),
            Token::Name(name) => {
                if !self.is("(") {
                    return Ok(Op::Key(name));
                }
                self.method(&name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn levels(&mut self) -> Result<Op> {
        if !self.accept("{")? {
            return Ok(Op::Any { first: 0, last: u32::MAX });
        }
        let first = self.level()?;
        let last = if self.accept_word("to")? { self.level()? } else { first };
        self.expect("}")?;
        Ok(Op::Any { first, last })
    }

    fn level(&mut self) -> Result<u32> {
        if self.accept_word("last")? {
            return Ok(u32::MAX);
        }
        let Token::Integer(text) = self.advance()? else {
            return Err(self.unexpected());
        };
        let level = path_methods::parse_integer(&text);
        level
            .and_then(|level| i32::try_from(level).ok())
            .map(i32::cast_unsigned)
            .ok_or_else(|| {
                Error::value(format!(
                    "invalid jsonpath: level {text} is out of range for type integer"
                ))
            })
    }

    fn method(&mut self, name: &str) -> Result<Op> {
        let lower = name.to_ascii_lowercase();
        if TIME_METHODS.contains(&lower.as_str()) {
            return Err(Error::invalid(format!(
                "jsonpath method .{lower}() is not supported: there are no dates and \
                 times here"
            )));
        }
        let op = if lower == "decimal" {
            self.advance()?;
            self.decimal()?
        } else {
            let method = Method::ALL.into_iter().find(|(known, _)| *known == lower);
            let Some((_, method)) = method else { return Err(self.unexpected()) };
            self.advance()?;
            Op::Method(method)
        };
        self.expect(")")?;
        Ok(op)
    }

    fn decimal(&mut self) -> Result<Op> {
        let mut arguments = Vec::new();
        while !self.is(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            let negative = self.is("-");
            if negative || self.is("+") {
                self.advance()?;
            }
            let Token::Integer(text) = self.advance()? else {
                return Err(self.unexpected());
            };
            let number = path_methods::number_of(&text)?;
            arguments.push(if negative { negated(&number) } else { number });
        }
        if arguments.len() > 2 {
            return Err(Error::value(
                "invalid jsonpath: .decimal() takes a precision and a scale at most",
            ));
        }
        let mut arguments = arguments.into_iter();
        Ok(Op::Decimal(arguments.next(), arguments.next()))
    }
}

/// A number of a tape with its sign changed; zero has none.
fn negated(number: &str) -> String {
    match number.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None if numeric::is_zero(number) => number.to_owned(),
        None => format!("-{number}"),
    }
}

fn too_deep() -> Error {
    Error::value(format!(
        "invalid jsonpath: stack depth limit exceeded: at most {NESTING_MAX} levels of \
         parentheses and {DEPTH_MAX} steps"
    ))
}

/// Refuses `@` outside filters, `last` outside subscripts, and too deep paths.
fn check(path: &JsonPath) -> Result<()> {
    // Chains to look at: first step, depth, inside a filter, inside a subscript.
    let mut chains = vec![(path.root, 0, false, false)];
    while let Some((start, mut depth, in_filter, in_subscript)) = chains.pop() {
        let mut step = Some(start);
        while let Some(at) = step {
            depth += 1;
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            let mut chain = |start: StepId, in_filter, in_subscript| {
                chains.push((start, depth, in_filter, in_subscript));
            };
            match path.op(at) {
                Op::Current if !in_filter => {
                    return Err(Error::value(
                        "invalid jsonpath: @ is not allowed in root expressions",
                    ));
                }
                Op::Last if !in_subscript => {
                    return Err(Error::value(
                        "invalid jsonpath: last is allowed only in array subscripts",
                    ));
                }
                Op::Filter(inner) => chain(*inner, true, in_subscript),
                Op::Plus(inner)
                | Op::Minus(inner)
                | Op::Not(inner)
                | Op::IsUnknown(inner)
                | Op::Exists(inner)
                | Op::LikeRegex(inner, _) => chain(*inner, in_filter, in_subscript),
                Op::Arithmetic(_, left, right)
                | Op::And(left, right)
                | Op::Or(left, right)
                | Op::Compare(_, left, right)
                | Op::StartsWith(left, right) => {
                    chain(*left, in_filter, in_subscript);
                    chain(*right, in_filter, in_subscript);
                }
                Op::Index(subscripts) => {
                    for (from, to) in subscripts {
                        chain(*from, in_filter, true);
                        if let Some(to) = to {
                            chain(*to, in_filter, true);
                        }
                    }
                }
                _ => {}
            }
            step = path.next(at);
        }
    }
    Ok(())
}
