//! From an operand's text to a sub-tree, and away with the stop words.
//!
//! [`Builder`] collects a query in postfix order while it is parsed. A word that the
//! dictionaries drop leaves a *stop placeholder* behind; when the query is complete,
//! [`Builder::finish`] removes the placeholders and widens the phrases around them, so
//! that `cat of the hat` as a phrase is `'cat' <3> 'hat'`.

use super::{LEXEME_MAX, Lexeme, Node, TEXT_MAX, TsQuery, pop, refused};
use crate::error::Result;
use crate::opclass::tsvector::Config;

/// A query in the making.
pub(super) struct Builder<'a> {
    /// As the user wrote it; for messages.
    source: &'a str,
    /// Postfix order; `None` is a stop placeholder.
    nodes: Vec<Option<Node>>,
    text: String,
    lexemes: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(source: &'a str) -> Builder<'a> {
        Builder { source, nodes: Vec::new(), text: String::new(), lexemes: 0 }
    }

    pub(super) fn push_lexeme(
        &mut self,
        lexeme: &str,
        weights: u8,
        prefix: bool,
    ) -> Result<()> {
        if lexeme.len() > LEXEME_MAX {
            return Err(refused("word is too long in tsquery", self.source));
        }
        if self.text.len() + self.lexemes >= TEXT_MAX {
            return Err(refused("value is too big in tsquery", self.source));
        }
        let start = u32::try_from(self.text.len()).expect("TEXT_MAX fits");
        let len = u16::try_from(lexeme.len()).expect("LEXEME_MAX fits");
        self.text.push_str(lexeme);
        self.lexemes += 1;
        self.nodes.push(Some(Node::Lexeme(Lexeme { start, len, weights, prefix })));
        Ok(())
    }

    pub(super) fn push_stop(&mut self) {
        self.nodes.push(None);
    }

    pub(super) fn push_operator(&mut self, operator: Node) {
        self.nodes.push(Some(operator));
    }

    /// The query without its placeholders.
    pub(super) fn finish(self) -> TsQuery {
        let mut kept: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut stack: Vec<Rest> = Vec::new();
        for node in self.nodes {
            let rest = match node {
                None => Rest { some: false, left: 0, right: 0 },
                Some(Node::Lexeme(_)) => {
                    kept.extend(node);
                    Rest { some: true, left: 0, right: 0 }
                }
                Some(Node::Not) => {
                    let operand = pop(&mut stack);
                    kept.extend(node.filter(|_| operand.some));
                    operand
                }
                Some(operator @ (Node::And | Node::Or | Node::Phrase(_))) => {
                    let (y, x) = (pop(&mut stack), pop(&mut stack));
                    let (operator, rest) = join(operator, x, y);
                    kept.extend(operator);
                    rest
                }
            };
            stack.push(rest);
        }
        TsQuery::new(kept, self.text)
    }
}

/// What is left of an operand: something or nothing, and by how much a phrase operator
/// to its left and to its right must grow.
#[derive(Clone, Copy)]
struct Rest {
    some: bool,
    left: u32,
    right: u32,
}

/// A binary operator over what is left of its operands; the operator, if it stays. The
/// operands' nodes need no touch: where one side is nothing, the other stands alone.
fn join(operator: Node, x: Rest, y: Rest) -> (Option<Node>, Rest) {
    let Node::Phrase(distance) = operator else {
        return match (x.some, y.some) {
            (true, true) => (Some(operator), Rest { some: true, left: 0, right: 0 }),
            (true, false) => (None, x),
            (false, true) => (None, y),
            (false, false) => {
                let gap = x.left.max(y.left);
                (None, Rest { some: false, left: gap, right: gap })
            }
        };
    };
    // Every summand is a written distance, so a sum is bounded by the query's length
    // times DISTANCE_MAX; saturation only guards against absurd lengths.
    let gap = |a: u32, b: u32| a.saturating_add(distance).saturating_add(b);
    match (x.some, y.some) {
        (true, true) => (
            Some(Node::Phrase(gap(x.right, y.left))),
            Rest { some: true, left: x.left, right: y.right },
        ),
        (true, false) => (None, Rest { right: gap(x.right, y.right), ..x }),
        (false, true) => (None, Rest { left: gap(x.left, y.left), ..y }),
        (false, false) => {
            let gap = gap(x.left, y.left);
            (None, Rest { some: false, left: gap, right: gap })
        }
    }
}

/// Appends the sub-tree of one operand: its lexemes joined by `joiner`, with a stop
/// placeholder for each position that is missing between two of them; one placeholder
/// when it has no lexeme at all. Lexemes at one position are joined by AND.
pub(super) fn push(
    builder: &mut Builder<'_>,
    config: &Config,
    operand: &str,
    weights: u8,
    prefix: bool,
    joiner: Node,
) -> Result<()> {
    let mut joined = 0_usize;
    let mut last = 0_u16;
    let mut result = Ok(());
    // The lexemes at `last` are out; joins them to what stands before them.
    let close = |builder: &mut Builder<'_>, joined: &mut usize| {
        if *joined > 0 {
            builder.push_operator(joiner);
        }
        *joined += 1;
    };
    config.lexemes(operand, &mut |lexeme, position| {
        if result.is_err() {
            return;
        }
        let again = last > 0 && position == last;
        if last > 0 && !again {
            close(builder, &mut joined);
            for _ in last + 1..position {
                builder.push_stop();
                close(builder, &mut joined);
            }
        }
        last = position;
        result = builder.push_lexeme(lexeme, weights, prefix);
        if again {
            builder.push_operator(Node::And);
        }
    });
    result?;
    if last > 0 {
        close(builder, &mut joined);
    } else {
        builder.push_stop();
    }
    Ok(())
}
