//! jsonpath as a tree, and its text form.
//!
//! A path is a chain of steps: where it starts (`$`, `@`, a literal, an operator with
//! its operands), then accessors, filters and methods, each applied to every value that
//! the step before gave. Steps lie in one vector and name each other by number, so that
//! a long path is neither copied nor dropped recursively. Operands and filters are
//! chains of their own. The length of a chain and the nesting of chains together are
//! bounded ([`DEPTH_MAX`]), so walks over a path may recurse.

use std::fmt::{self, Write as _};

use super::like_regex::LikeRegex;
use super::numeric;
use super::path_exec;
use super::path_parse;
use super::print::quote;
use crate::document::Json;
use crate::error::Result;

/// Most steps behind each other or inside each other.
pub(super) const DEPTH_MAX: usize = 1_000;

/// Number of a step.
pub(super) type StepId = usize;

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

/// An arithmetic operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A method without arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Abs,
    Bigint,
    Boolean,
    Ceiling,
    Double,
    Floor,
    Integer,
    KeyValue,
    Number,
    Size,
    String,
    Type,
}

impl Method {
    pub(super) const ALL: [(&'static str, Method); 12] = [
        ("abs", Method::Abs),
        ("bigint", Method::Bigint),
        ("boolean", Method::Boolean),
        ("ceiling", Method::Ceiling),
        ("double", Method::Double),
        ("floor", Method::Floor),
        ("integer", Method::Integer),
        ("keyvalue", Method::KeyValue),
        ("number", Method::Number),
        ("size", Method::Size),
        ("string", Method::String),
        ("type", Method::Type),
    ];
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum Op {
    // Starts of a chain.
    Null,
    Bool(bool),
    /// In the form of a tape.
    Number(String),
    String(String),
    Variable(String),
    Root,
    Current,
    Last,
    Plus(StepId),
    Minus(StepId),
    Arithmetic(Arithmetic, StepId, StepId),
    // Starts of a chain that are predicates.
    And(StepId, StepId),
    Or(StepId, StepId),
    Not(StepId),
    IsUnknown(StepId),
    Exists(StepId),
    Compare(Comparison, StepId, StepId),
    StartsWith(StepId, StepId),
    LikeRegex(StepId, Box<LikeRegex>),
    // What follows.
    Key(String),
    AnyKey,
    AnyArray,
    /// `.**{first to last}`; `u32::MAX` is the last level.
    Any {
        first: u32,
        last: u32,
    },
    Index(Vec<(StepId, Option<StepId>)>),
    Filter(StepId),
    Method(Method),
    /// `.decimal(precision, scale)`
    Decimal(Option<String>, Option<String>),
}

impl Op {
    /// Whether it answers true, false or unknown.
    pub(super) fn is_predicate(&self) -> bool {
        matches!(
            self,
            Op::And(..)
                | Op::Or(..)
                | Op::Not(_)
                | Op::IsUnknown(_)
                | Op::Exists(_)
                | Op::Compare(..)
                | Op::StartsWith(..)
                | Op::LikeRegex(..)
        )
    }

    /// How tight it binds in the text form.
    fn priority(&self) -> u8 {
        match self {
            Op::Or(..) => 0,
            Op::And(..) => 1,
            Op::Compare(..) | Op::StartsWith(..) => 2,
            Op::Arithmetic(Arithmetic::Add | Arithmetic::Subtract, ..) => 3,
            Op::Arithmetic(..) => 4,
            Op::Plus(_) | Op::Minus(_) => 5,
            _ => 6,
        }
    }
}

/// A step and the one behind it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) next: Option<StepId>,
}

/// A jsonpath, as the operators `@?` and `@@` take it.
///
/// ```
/// use ginmill::opclass::jsonb::{JsonPath, parse};
/// let path = JsonPath::parse("$.a[*] ? (@ > 1)")?;
/// assert_eq!(path.exists(&parse(r#"{"a": [1, 2]}"#)?), Some(true));
/// assert_eq!(path.to_string(), r#"$."a"[*]?(@ > 1)"#);
/// # Ok::<(), ginmill::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonPath {
    pub(super) steps: Vec<Step>,
    pub(super) root: StepId,
    pub(super) lax: bool,
}

impl JsonPath {
    /// Reads a path. Fails where PostgreSQL refuses it, and for what is not offered
    /// here: methods on dates and times, regular expressions with lookaround or back
    /// references, more than some hundred steps in a row.
    pub fn parse(text: &str) -> Result<JsonPath> {
        path_parse::parse(text)
    }

    /// `json @? path`: whether the path finds something; none (null) after an error.
    pub fn exists(&self, json: &Json) -> Option<bool> {
        path_exec::exists(self, json)
    }

    /// `json @@ path`: the one boolean that the path gives; none (null) if it gives
    /// anything else.
    pub fn matches(&self, json: &Json) -> Option<bool> {
        path_exec::matches(self, json)
    }

    /// The name of a variable in it, which has no value anywhere here.
    pub fn variable(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match &step.op {
            Op::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub(super) fn op(&self, step: StepId) -> &Op {
        &self.steps[step].op
    }

    pub(super) fn next(&self, step: StepId) -> Option<StepId> {
        self.steps[step].next
    }

    /// Writes a chain; `brackets` around its first step if that is an operator.
    fn write(&self, out: &mut String, step: StepId, brackets: bool) -> fmt::Result {
        self.write_step(out, step, brackets)?;
        let mut step = step;
        while let Some(next) = self.next(step) {
            step = next;
            match self.op(step) {
                Op::Key(_) | Op::AnyKey | Op::Any { .. } => out.push('.'),
                _ => {}
            }
            self.write_step(out, step, true)?;
        }
        Ok(())
    }

    /// Writes an operand of `parent`.
    fn write_operand(
        &self,
        out: &mut String,
        step: StepId,
        parent: &Op,
    ) -> fmt::Result {
        self.write(out, step, self.op(step).priority() <= parent.priority())
    }

    fn write_binary(
        &self,
        out: &mut String,
        parent: &Op,
        operator: &str,
        (left, right): (StepId, StepId),
    ) -> fmt::Result {
        self.write_operand(out, left, parent)?;
        write!(out, " {operator} ")?;
        self.write_operand(out, right, parent)
    }

    fn write_step(
        &self,
        out: &mut String,
        step: StepId,
        brackets: bool,
    ) -> fmt::Result {
        let op = self.op(step);
        let brackets = brackets
            && matches!(
                op,
                Op::And(..)
                    | Op::Or(..)
                    | Op::Compare(..)
                    | Op::StartsWith(..)
                    | Op::LikeRegex(..)
                    | Op::Arithmetic(..)
                    | Op::Plus(_)
                    | Op::Minus(_)
            )
            || matches!(op, Op::Number(_)) && self.next(step).is_some();
        if brackets {
            out.push('(');
        }
        match op {
            Op::Null => out.push_str("null"),
            Op::Bool(value) => write!(out, "{value}")?,
            Op::Number(number) => numeric::print(number, out),
            Op::String(string) | Op::Key(string) => quote(string, out),
            Op::Variable(name) => {
                out.push('$');
                quote(name, out);
            }
            Op::Root => out.push('$'),
            Op::Current => out.push('@'),
            Op::Last => out.push_str("last"),
            Op::Plus(operand) => {
                out.push('+');
                self.write_operand(out, *operand, op)?;
            }
            Op::Minus(operand) => {
                out.push('-');
                self.write_operand(out, *operand, op)?;
            }
            Op::Arithmetic(arithmetic, left, right) => {
                let operator = match arithmetic {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::Modulo => "%",
                };
                self.write_binary(out, op, operator, (*left, *right))?;
            }
            Op::And(left, right) => {
                self.write_binary(out, op, "&&", (*left, *right))?;
            }
            Op::Or(left, right) => {
                self.write_binary(out, op, "||", (*left, *right))?;
            }
            Op::Compare(comparison, left, right) => {
                let operator = match comparison {
                    Comparison::Equal => "==",
                    Comparison::NotEqual => "!=",
                    Comparison::Less => "<",
                    Comparison::Greater => ">",
                    Comparison::LessOrEqual => "<=",
                    Comparison::GreaterOrEqual => ">=",
                };
                self.write_binary(out, op, operator, (*left, *right))?;
            }
            Op::StartsWith(left, right) => {
                self.write_binary(out, op, "starts with", (*left, *right))?;
            }
            Op::LikeRegex(operand, like_regex) => {
                self.write_operand(out, *operand, op)?;
                out.push_str(" like_regex ");
                quote(like_regex.pattern(), out);
                let flags = like_regex.flags().to_string();
                if !flags.is_empty() {
                    write!(out, " flag \"{flags}\"")?;
                }
            }
            Op::Not(operand) => self.write_inside(out, "!(", *operand, ")")?,
            Op::IsUnknown(operand) => {
                self.write_inside(out, "(", *operand, ") is unknown")?;
            }
            Op::Exists(operand) => self.write_inside(out, "exists (", *operand, ")")?,
            Op::Filter(operand) => self.write_inside(out, "?(", *operand, ")")?,
            Op::AnyKey => out.push('*'),
            Op::AnyArray => out.push_str("[*]"),
            Op::Any { first, last } => write_levels(out, *first, *last)?,
            Op::Index(subscripts) => {
                out.push('[');
                for (at, (from, to)) in subscripts.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.write(out, *from, false)?;
                    if let Some(to) = to {
                        out.push_str(" to ");
                        self.write(out, *to, false)?;
                    }
                }
                out.push(']');
            }
            Op::Method(method) => {
                let name = Method::ALL.iter().find(|(_, known)| known == method);
                write!(out, ".{}()", name.map_or("", |(name, _)| name))?;
            }
            Op::Decimal(precision, scale) => {
                let arguments: Vec<&str> = [precision, scale]
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    .collect();
                write!(out, ".decimal({})", arguments.join(","))?;
            }
        }
        if brackets {
            out.push(')');
        }
        Ok(())
    }

    fn write_inside(
        &self,
        out: &mut String,
        before: &str,
        operand: StepId,
        behind: &str,
    ) -> fmt::Result {
        out.push_str(before);
        self.write(out, operand, false)?;
        out.push_str(behind);
        Ok(())
    }
}

/// Writes `**` with its levels.
fn write_levels(out: &mut String, first: u32, last: u32) -> fmt::Result {
    let level = |level: u32| match level {
        u32::MAX => "last".to_owned(),
        level => level.to_string(),
    };
    match (first, last) {
        (0, u32::MAX) => out.write_str("**"),
        _ if first == last => write!(out, "**{{{}}}", level(first)),
        _ => write!(out, "**{{{} to {}}}", level(first), level(last)),
    }
}

/// PostgreSQL's text form.
impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        if !self.lax {
            out.push_str("strict ");
        }
        self.write(&mut out, self.root, true)?;
        f.write_str(&out)
    }
}
