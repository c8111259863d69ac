//! A query against a vector, in three values.
//!
//! Above any PHRASE only the presence of lexemes counts. From a PHRASE downwards a node
//! yields a set of positions, where its matches *end*, with the width of a match, so
//! that an outer PHRASE can measure from there; a NOT yields a complement: "everywhere
//! but at these positions". A lexeme without positions gives *maybe*, which makes the
//! PHRASE false on a vector and "look at the document" in an index.
//!
//! One pass over the postfix list. Answers to PostgreSQL's `tsvector_op.c`, whose results
//! it must give also where they are curious (the width of a phrase that was not found).

use super::{Node, Operand, TsQuery, pop};
use crate::opclass::tsvector::TsVector;

/// False, don't know, true: in that order, so AND is `min` and OR is `max`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ternary {
    /// No.
    False,
    /// The document must be looked at.
    Maybe,
    /// Yes.
    True,
}

/// Bits of a position word that hold the position; the weight stands above.
const POSITION_BITS: u32 = 14;
const POSITION_MASK: u16 = (1 << POSITION_BITS) - 1;

/// A position with its weight (D=0 C=1 B=2 A=3) as vectors store it.
pub const fn position_word(position: u16, weight: u8) -> u16 {
    (weight as u16) << POSITION_BITS | (position & POSITION_MASK)
}

/// What a query is tested on: lexemes with their position words.
pub trait Lexemes {
    /// Calls `see` with `lexeme` and its position words (ascending; none if it has no
    /// positions) if it is there, or of every lexeme that starts with it,
    /// until `see` returns `false`.
    fn find(
        &self,
        lexeme: &str,
        prefix: bool,
        see: &mut dyn FnMut(&str, &[u16]) -> bool,
    );
}

impl Lexemes for TsVector {
    fn find(
        &self,
        lexeme: &str,
        prefix: bool,
        see: &mut dyn FnMut(&str, &[u16]) -> bool,
    ) {
        if prefix {
            for (found, words) in self.with_prefix(lexeme) {
                if !see(found, words) {
                    break;
                }
            }
        } else if let Some(words) = self.get(lexeme) {
            see(lexeme, words);
        }
    }
}

/// A node's result.
struct Value {
    is: Ternary,
    /// In a phrase: ends of matches, or where there is none if `neg`.
    positions: Vec<u16>,
    neg: bool,
    width: u32,
}

impl Value {
    fn plain(is: Ternary) -> Value {
        Value { is, positions: Vec::new(), neg: false, width: 0 }
    }
}

/// Where lexeme results come from.
trait Source {
    /// `number`: which lexeme of the query, from the left; `positions`: it lies in a
    /// phrase.
    fn lexeme(&self, number: usize, operand: &Operand<'_>, positions: bool) -> Value;

    /// What counts for an undecided operand above all phrases.
    const UNDECIDED: Ternary;
}

impl TsQuery {
    /// `vector @@ query`. The empty query matches nothing.
    pub fn matches(&self, vector: &dyn Lexemes) -> bool {
        self.evaluate(&Vector(vector)) == Ternary::True
    }

    /// What an index says about an item of which only the presence of lexemes is known:
    /// `present(lexeme, prefix)`. GIN's ternary consistent function.
    pub fn consistent(&self, present: &dyn Fn(&str, bool) -> bool) -> Ternary {
        self.evaluate(&Presence(present))
    }

    /// Whether the query is true where its lexemes, numbered from the left, are at these
    /// positions; those without any are not there. For ranking.
    pub fn matches_at(&self, positions: &[Vec<u16>]) -> bool {
        self.evaluate(&Numbered(positions)) == Ternary::True
    }

    fn evaluate<S: Source>(&self, source: &S) -> Ternary {
        let mut stack: Vec<Value> = Vec::new();
        let mut number = 0;
        for (&node, &in_phrase) in self.nodes.iter().zip(&self.in_phrase) {
            let value = match node {
                Node::Lexeme(lexeme) => {
                    let operand = Operand {
                        lexeme: self.lexeme(lexeme),
                        weights: lexeme.weights,
                        prefix: lexeme.prefix,
                        positive: true,
                    };
                    number += 1;
                    source.lexeme(number - 1, &operand, in_phrase)
                }
                Node::Not if in_phrase => not_in_phrase(pop(&mut stack)),
                Node::Not => Value::plain(match settled::<S>(&pop(&mut stack)) {
                    Ternary::False => Ternary::True,
                    Ternary::Maybe => Ternary::Maybe,
                    Ternary::True => Ternary::False,
                }),
                Node::And | Node::Or | Node::Phrase(_) => {
                    let (right, left) = (pop(&mut stack), pop(&mut stack));
                    match node {
                        Node::Or if in_phrase => or_in_phrase(left, right),
                        _ if in_phrase => and_in_phrase(node, &left, &right),
                        _ => {
                            let left = settled::<S>(&left);
                            let right = settled::<S>(&right);
                            Value::plain(match node {
                                Node::Or => left.max(right),
                                _ => left.min(right),
                            })
                        }
                    }
                }
            };
            stack.push(value);
        }
        stack.pop().map_or(Ternary::False, |value| settled::<S>(&value))
    }
}

/// A result as it counts above a phrase.
fn settled<S: Source>(value: &Value) -> Ternary {
    if value.is == Ternary::Maybe { S::UNDECIDED } else { value.is }
}

fn not_in_phrase(value: Value) -> Value {
    match value.is {
        Ternary::False => Value {
            is: Ternary::True,
            positions: Vec::new(),
            neg: true,
            width: value.width,
        },
        Ternary::True if value.positions.is_empty() && value.neg => {
            Value { is: Ternary::False, neg: false, ..value }
        }
        Ternary::True => Value { neg: !value.neg, ..value },
        Ternary::Maybe => value,
    }
}

fn and_in_phrase(node: Node, left: &Value, right: &Value) -> Value {
    if left.is == Ternary::False || right.is == Ternary::False {
        return Value::plain(Ternary::False);
    }
    if left.is == Ternary::Maybe || right.is == Ternary::Maybe {
        return Value::plain(Ternary::Maybe);
    }
    let (shift_left, shift_right, width) = match node {
        Node::Phrase(distance) => (
            distance.saturating_add(right.width),
            0,
            distance.saturating_add(left.width).saturating_add(right.width),
        ),
        _ => {
            let width = left.width.max(right.width);
            (width - left.width, width - right.width, width)
        }
    };
    let (keep, neg) = match (left.neg, right.neg) {
        (false, false) => (Keep { left: false, both: true, right: false }, false),
        (true, false) => (Keep { left: false, both: false, right: true }, false),
        (false, true) => (Keep { left: true, both: false, right: false }, false),
        (true, true) => (Keep { left: true, both: true, right: true }, true),
    };
    combine((left, shift_left), (right, shift_right), keep, neg, width)
}

fn or_in_phrase(mut left: Value, mut right: Value) -> Value {
    if left.is == Ternary::False && right.is == Ternary::False {
        return Value::plain(Ternary::False);
    }
    if left.is == Ternary::Maybe || right.is == Ternary::Maybe {
        return Value::plain(Ternary::Maybe);
    }
    for side in [&mut left, &mut right] {
        if side.is == Ternary::False {
            *side = Value::plain(Ternary::False);
        }
    }
    let width = left.width.max(right.width);
    let (keep, neg) = match (left.neg, right.neg) {
        (false, false) => (Keep { left: true, both: true, right: true }, false),
        (true, false) => (Keep { left: true, both: false, right: false }, true),
        (false, true) => (Keep { left: false, both: false, right: true }, true),
        (true, true) => (Keep { left: false, both: true, right: false }, true),
    };
    let shifts = (width - left.width, width - right.width);
    combine((&left, shifts.0), (&right, shifts.1), keep, neg, width)
}

/// Which positions of two sets go on: those of the left one only, of both, of the right
/// one only.
#[derive(Clone, Copy)]
struct Keep {
    left: bool,
    both: bool,
    right: bool,
}

/// Merges two sets of positions, each shifted.
fn combine(
    (left, shift_left): (&Value, u32),
    (right, shift_right): (&Value, u32),
    keep: Keep,
    neg: bool,
    width: u32,
) -> Value {
    let at = |value: &Value, index: usize, shift: u32| {
        let word = value.positions.get(index)?;
        Some(u32::from(word & POSITION_MASK).saturating_add(shift))
    };
    let mut positions = Vec::new();
    let (mut l, mut r) = (0, 0);
    loop {
        let (a, b) = (at(left, l, shift_left), at(right, r, shift_right));
        let position = match (a, b) {
            (None, None) => break,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(a), Some(b)) => a.min(b),
        };
        let (of_left, of_right) = (a == Some(position), b == Some(position));
        l += usize::from(of_left);
        r += usize::from(of_right);
        let wanted = match (of_left, of_right) {
            (true, true) => keep.both,
            (true, false) => keep.left,
            _ => keep.right,
        };
        if wanted {
            // Kept in 16 bits, of which an outer operator reads the low 14: beyond the
            // end of a very long document positions wrap, as they do in PostgreSQL.
            positions.push((position & u32::from(u16::MAX)) as u16);
        }
    }
    let found = neg || !positions.is_empty();
    let is = if found { Ternary::True } else { Ternary::False };
    Value { is, positions, neg, width }
}

/// Lexemes of a vector.
struct Vector<'a>(&'a dyn Lexemes);

impl Source for Vector<'_> {
    const UNDECIDED: Ternary = Ternary::False;

    fn lexeme(&self, _: usize, operand: &Operand<'_>, positions: bool) -> Value {
        let passes = |word: u16| {
            operand.weights == 0
                || operand.weights & (1 << (word >> POSITION_BITS)) != 0
        };
        let mut value = Value::plain(Ternary::False);
        let mut found = 0;
        self.0.find(operand.lexeme, operand.prefix, &mut |_, words| {
            if !positions {
                // A lexeme without positions satisfies any mask.
                if words.is_empty() || words.iter().any(|&word| passes(word)) {
                    value.is = Ternary::True;
                }
                return value.is != Ternary::True;
            }
            if words.is_empty() {
                value = Value::plain(Ternary::Maybe);
                return false;
            }
            let before = value.positions.len();
            value.positions.extend(words.iter().copied().filter(|&word| passes(word)));
            found += usize::from(value.positions.len() > before);
            true
        });
        if positions && value.is == Ternary::False && !value.positions.is_empty() {
            value.is = Ternary::True;
        }
        if found > 1 {
            for word in &mut value.positions {
                *word &= POSITION_MASK;
            }
            value.positions.sort_unstable();
            value.positions.dedup();
        }
        value
    }
}

/// Presence of lexemes in an index.
struct Presence<'a>(&'a dyn Fn(&str, bool) -> bool);

impl Source for Presence<'_> {
    const UNDECIDED: Ternary = Ternary::Maybe;

    fn lexeme(&self, _: usize, operand: &Operand<'_>, positions: bool) -> Value {
        let is = if !(self.0)(operand.lexeme, operand.prefix) {
            Ternary::False
        } else if positions || operand.weights != 0 {
            Ternary::Maybe
        } else {
            Ternary::True
        };
        Value::plain(is)
    }
}

/// Lexemes by number.
struct Numbered<'a>(&'a [Vec<u16>]);

impl Source for Numbered<'_> {
    const UNDECIDED: Ternary = Ternary::False;

    fn lexeme(&self, number: usize, _: &Operand<'_>, positions: bool) -> Value {
        match self.0.get(number) {
            Some(words) if !words.is_empty() => Value {
                is: Ternary::True,
                positions: if positions { words.clone() } else { Vec::new() },
                neg: false,
                width: 0,
            },
            _ => Value::plain(Ternary::False),
        }
    }
}
