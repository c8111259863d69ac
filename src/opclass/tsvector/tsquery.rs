//! `tsquery`: what a text search asks for, as PostgreSQL 18 reads, prints and tests it.
//!
//! A query is empty or a tree: lexemes (with a mask of weights and a prefix flag) under
//! NOT, AND, OR and PHRASE(distance). [`TsQuery::parse`] reads the text form that
//! `::tsquery` takes; `to_tsquery` and its three sisters send what the user typed through
//! the word parser and the dictionaries first.
//!
//! **The tree is kept flat, in postfix order**: operands before their operator, the left
//! one first. Every algorithm here is a pass over that list, forwards (children before
//! parents) or backwards (parents before children, which is also the order in which
//! PostgreSQL stores a query and numbers its GIN entries), with an explicit stack. So no
//! input, however deeply nested, can exhaust the call stack; PostgreSQL refuses such
//! queries with "stack depth limit exceeded", we answer them.
//!
//! | file | what |
//! |---|---|
//! | `parse.rs` | text → operands and operators, the two notations |
//! | `operand.rs` | an operand's text → a sub-tree; removal of stop words |
//! | `evaluate.rs` | query against a vector, in three values |
//! | `keys.rs` | query → what a GIN index is asked |
//!
//! Answers to PostgreSQL's `tsquery.c`, `to_tsany.c`, `tsquery_cleanup.c`.
//! One difference is deliberate: the distance of a phrase that grows by removed stop words
//! is not cut to 16 bits.

mod evaluate;
mod keys;
mod operand;
mod parse;

use std::fmt;

use super::Config;
use crate::error::{Error, Result};

pub use evaluate::{Lexemes, Ternary, position_word};
pub use keys::key_query;

/// Longest lexeme in a query, bytes.
pub const LEXEME_MAX: usize = 2046;
/// Largest distance that may be written in a phrase operator.
pub const DISTANCE_MAX: u32 = 16_384;
/// All lexemes of a query together stay below this, a terminating zero each included.
const TEXT_MAX: usize = 1 << 20;

/// A text search query; the default is the empty one, which matches nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TsQuery {
    /// Postfix order.
    nodes: Vec<Node>,
    /// Parallel to `nodes`: the node is a PHRASE or lies below one, where positions count.
    in_phrase: Vec<bool>,
    /// The lexemes' bytes, one behind the other.
    text: String,
}

/// A node; operators stand behind their operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    Lexeme(Lexeme),
    Not,
    And,
    Or,
    Phrase(u32),
}

/// An operand; its text is `text[start..start + len]` of the query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lexeme {
    start: u32,
    len: u16,
    /// A=8 B=4 C=2 D=1; 0 is any.
    weights: u8,
    prefix: bool,
}

/// A lexeme that a query asks for; see [`TsQuery::operands`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand<'a> {
    /// The lexeme, or what lexemes must start with.
    pub lexeme: &'a str,
    /// Weights that count: A=8 B=4 C=2 D=1, or 0 for any.
    pub weights: u8,
    /// Every lexeme that starts so counts.
    pub prefix: bool,
    /// Stands in the query, not below a NOT.
    pub positive: bool,
}

impl Node {
    /// Binding strength.
    fn strength(self) -> u8 {
        match self {
            Node::Or => 1,
            Node::And => 2,
            Node::Phrase(_) => 3,
            Node::Not => 4,
            Node::Lexeme(_) => 5,
        }
    }
}

impl TsQuery {
    /// Reads PostgreSQL's text form: what `::tsquery` takes and what `Display` prints.
    ///
    /// ```
    /// use ginmill::opclass::tsvector::tsquery::TsQuery;
    /// let query = TsQuery::parse("fat & (cat:* | !rat)").unwrap();
    /// assert_eq!(query.to_string(), "'fat' & ( 'cat':* | !'rat' )");
    /// ```
    pub fn parse(text: &str) -> Result<TsQuery> {
        parse::standard(text, &mut |builder, word, weights, prefix| {
            builder.push_lexeme(word, weights, prefix)
        })
    }

    /// `to_tsquery`: operators as in the text form, operands through the parser and
    /// dictionaries of `config`; an
    /// operand of several words becomes a phrase.
    pub fn to_tsquery(config: &Config, text: &str) -> Result<TsQuery> {
        parse::standard(text, &mut |builder, word, weights, prefix| {
            operand::push(builder, config, word, weights, prefix, Node::Phrase(1))
        })
    }

    /// `plainto_tsquery`: all words of a text.
    pub fn plainto_tsquery(config: &Config, text: &str) -> Result<TsQuery> {
        let mut builder = operand::Builder::new(text);
        operand::push(&mut builder, config, text, 0, false, Node::And)?;
        Ok(builder.finish())
    }

    /// `phraseto_tsquery`: the words of a text, in this order and at these distances.
    pub fn phraseto_tsquery(config: &Config, text: &str) -> Result<TsQuery> {
        let mut builder = operand::Builder::new(text);
        operand::push(&mut builder, config, text, 0, false, Node::Phrase(1))?;
        Ok(builder.finish())
    }

    /// `websearch_to_tsquery`: what people type into search boxes: words, `"a phrase"`,
    /// `or`, `-without`. There are no syntax errors.
    pub fn websearch_to_tsquery(config: &Config, text: &str) -> Result<TsQuery> {
        parse::web(text, &mut |builder, word, weights, prefix| {
            operand::push(builder, config, word, weights, prefix, Node::Phrase(1))
        })
    }

    fn new(nodes: Vec<Node>, text: String) -> TsQuery {
        let mut in_phrase = vec![false; nodes.len()];
        // Backwards, a parent comes before its children and leaves its mark for each.
        let mut marks = vec![false];
        for (node, mark) in nodes.iter().zip(&mut in_phrase).rev() {
            let inherited = marks.pop().expect("a mark for every operand");
            *mark = inherited || matches!(node, Node::Phrase(_));
            marks.extend(std::iter::repeat_n(*mark, node.operands()));
        }
        TsQuery { nodes, in_phrase, text }
    }

    /// Whether the query is empty: nothing was asked, or stop words only.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Lexemes and operators, as PostgreSQL's function of that name counts them.
    pub fn numnode(&self) -> usize {
        self.nodes.len()
    }

    /// What must be there for a match, as PostgreSQL's function of that name prints it:
    /// `T` when everything may match.
    pub fn querytree(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut kept: Vec<Node> = Vec::new();
        // Per operand: where its nodes begin in `kept`, if any are left.
        let mut stack: Vec<Option<usize>> = Vec::new();
        for &node in &self.nodes {
            let result = match node {
                Node::Lexeme(_) => {
                    kept.push(node);
                    Some(kept.len() - 1)
                }
                Node::Not => {
                    if let Some(start) = pop(&mut stack) {
                        kept.truncate(start);
                    }
                    None
                }
                Node::And | Node::Or | Node::Phrase(_) => {
                    let (right, left) = (pop(&mut stack), pop(&mut stack));
                    match (left, right) {
                        (Some(start), Some(_)) => {
                            kept.push(node);
                            Some(start)
                        }
                        (Some(start), None) | (None, Some(start))
                            if node == Node::Or =>
                        {
                            kept.truncate(start);
                            None
                        }
                        (one, other) => one.or(other),
                    }
                }
            };
            stack.push(result);
        }
        if kept.is_empty() {
            return "T".to_owned();
        }
        TsQuery::new(kept, self.text.clone()).to_string()
    }

    /// The lexemes asked for, from left to right.
    pub fn operands(&self) -> Vec<Operand<'_>> {
        let mut operands = Vec::new();
        let mut marks = vec![true];
        for &node in self.nodes.iter().rev() {
            let positive = marks.pop().expect("a mark for every operand");
            match node {
                Node::Lexeme(lexeme) => operands.push(Operand {
                    lexeme: self.lexeme(lexeme),
                    weights: lexeme.weights,
                    prefix: lexeme.prefix,
                    positive,
                }),
                Node::Not => marks.push(!positive),
                _ => marks.extend([positive; 2]),
            }
        }
        operands.reverse();
        operands
    }

    /// The query as conditions on single words and phrases. As deep as the query: for
    /// web searches, which have no parentheses.
    pub(crate) fn terms(&self) -> Terms {
        let mut stack: Vec<(usize, Terms)> = Vec::new();
        for (at, &node) in self.nodes.iter().enumerate() {
            let in_phrase = self.in_phrase[at];
            let (start, terms) = match node {
                Node::Lexeme(_) => (at, None),
                Node::Not => {
                    let (start, operand) = pop(&mut stack);
                    (start, (!in_phrase).then(|| Terms::Not(Box::new(operand))))
                }
                Node::And | Node::Or | Node::Phrase(_) => {
                    let ((_, right), (start, left)) =
                        (pop(&mut stack), pop(&mut stack));
                    let any = node == Node::Or;
                    (start, (!in_phrase).then(|| left.join(any, right)))
                }
            };
            // A part of a phrase is cut out again with the phrase; what it is by itself
            // is not needed.
            let terms = terms.unwrap_or_else(|| {
                let whole = !self.in_phrase[at] || matches!(node, Node::Phrase(_));
                Terms::Term(if whole {
                    self.part(start, at)
                } else {
                    TsQuery::default()
                })
            });
            stack.push((start, terms));
        }
        stack.pop().map_or(Terms::Or(Vec::new()), |(_, terms)| terms)
    }

    /// The sub-tree in these nodes as a query of its own.
    fn part(&self, first: usize, last: usize) -> TsQuery {
        let mut text = String::new();
        let nodes = self.nodes[first..=last].iter().map(|&node| match node {
            Node::Lexeme(lexeme) => {
                let start = u32::try_from(text.len()).expect("no more than the whole");
                text.push_str(self.lexeme(lexeme));
                Node::Lexeme(Lexeme { start, ..lexeme })
            }
            node => node,
        });
        let nodes = nodes.collect();
        TsQuery::new(nodes, text)
    }

    fn lexeme(&self, lexeme: Lexeme) -> &str {
        let start = lexeme.start as usize;
        &self.text[start..start + usize::from(lexeme.len)]
    }
}

/// A query cut into words and phrases; see [`TsQuery::terms`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Terms {
    /// One word or one phrase.
    Term(TsQuery),
    /// Not this.
    Not(Box<Terms>),
    /// All of them.
    And(Vec<Terms>),
    /// One of them; of none: nothing matches.
    Or(Vec<Terms>),
}

impl Terms {
    /// `self OR right` if `any`, else `self AND right`; chains stay flat.
    fn join(self, any: bool, right: Terms) -> Terms {
        let mut parts = match self {
            Terms::Or(parts) if any => parts,
            Terms::And(parts) if !any => parts,
            other => vec![other],
        };
        match right {
            Terms::Or(more) if any => parts.extend(more),
            Terms::And(more) if !any => parts.extend(more),
            other => parts.push(other),
        }
        if any { Terms::Or(parts) } else { Terms::And(parts) }
    }
}

impl Node {
    fn operands(self) -> usize {
        match self {
            Node::Lexeme(_) => 0,
            Node::Not => 1,
            _ => 2,
        }
    }
}

/// The operand on top of a stack that runs along with the postfix order.
fn pop<T>(stack: &mut Vec<T>) -> T {
    stack.pop().expect("operands come before their operator")
}

/// What is still to be printed.
enum Print {
    /// The tree whose root this node is.
    Tree { root: usize, parent: u8, right_of_phrase: bool },
    /// A binary operator.
    Operator(Node),
    /// A closing parenthesis.
    Close,
}

impl fmt::Display for TsQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // sizes[i]: nodes of the tree whose root is i; it ends at i, so the right operand
        // of i has its root at i - 1 and the left one just before the right one's nodes.
        let mut sizes: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            sizes.push(match node.operands() {
                0 => 1,
                1 => 1 + sizes[at - 1],
                _ => 1 + sizes[at - 1] + sizes[at - 1 - sizes[at - 1]],
            });
        }
        let mut todo = Vec::new();
        if let Some(root) = self.nodes.len().checked_sub(1) {
            todo.push(Print::Tree { root, parent: 0, right_of_phrase: false });
        }
        while let Some(print) = todo.pop() {
            let (root, parent, right_of_phrase) = match print {
                Print::Tree { root, parent, right_of_phrase } => {
                    (root, parent, right_of_phrase)
                }
                Print::Operator(Node::Or) => {
                    f.write_str(" | ")?;
                    continue;
                }
                Print::Operator(Node::Phrase(1)) => {
                    f.write_str(" <-> ")?;
                    continue;
                }
                Print::Operator(Node::Phrase(distance)) => {
                    write!(f, " <{distance}> ")?;
                    continue;
                }
                Print::Operator(_) => {
                    f.write_str(" & ")?;
                    continue;
                }
                Print::Close => {
                    f.write_str(" )")?;
                    continue;
                }
            };
            let node = self.nodes[root];
            let strength = node.strength();
            let is_phrase = matches!(node, Node::Phrase(_));
            if strength < parent || (is_phrase && right_of_phrase) {
                f.write_str("( ")?;
                todo.push(Print::Close);
            }
            match node {
                Node::Lexeme(lexeme) => self.write_lexeme(f, lexeme)?,
                Node::Not => {
                    f.write_str("!")?;
                    todo.push(Print::Tree {
                        root: root - 1,
                        parent: strength,
                        right_of_phrase: false,
                    });
                }
                Node::And | Node::Or | Node::Phrase(_) => {
                    todo.push(Print::Tree {
                        root: root - 1,
                        parent: strength,
                        right_of_phrase: is_phrase,
                    });
                    todo.push(Print::Operator(node));
                    todo.push(Print::Tree {
                        root: root - 1 - sizes[root - 1],
                        parent: strength,
                        right_of_phrase: false,
                    });
                }
            }
        }
        Ok(())
    }
}

impl TsQuery {
    fn write_lexeme(&self, f: &mut fmt::Formatter<'_>, lexeme: Lexeme) -> fmt::Result {
        f.write_str("'")?;
        let mut rest = self.lexeme(lexeme);
        while let Some(at) = rest.find(['\'', '\\']) {
            // ASCII, so one byte: written once with what precedes it, then again.
            f.write_str(&rest[..=at])?;
            f.write_str(&rest[at..=at])?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_str("'")?;
        if lexeme.prefix || lexeme.weights != 0 {
            f.write_str(":")?;
        }
        if lexeme.prefix {
            f.write_str("*")?;
        }
        for (bit, letter) in [(8, "A"), (4, "B"), (2, "C"), (1, "D")] {
            if lexeme.weights & bit != 0 {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

/// An error in PostgreSQL's words, about this query; a long one is cut.
fn refused(what: &str, query: &str) -> Error {
    const SHOWN: usize = 1000;
    if query.len() <= SHOWN {
        return Error::invalid(format!("{what}: \"{query}\""));
    }
    let end = (0..=SHOWN).rev().find(|&at| query.is_char_boundary(at)).unwrap_or(0);
    Error::invalid(format!("{what}: \"{}…\"", &query[..end]))
}

#[cfg(test)]
mod tests;
