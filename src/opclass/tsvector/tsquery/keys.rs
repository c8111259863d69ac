//! What a GIN index is asked for a query.
//!
//! An index knows which lexemes an item has, not where nor with which weights. So a
//! lexeme that is there is only *maybe* what a phrase or a weight asks for, while one
//! that is missing is certainly missing. From the query two trees over keys follow: the
//! items that *may* match, which is what the index is asked, and the items that
//! *certainly* do, which need no look at the document. Under a NOT the two change places.

use super::{Node, TsQuery, pop};
use crate::error::Result;
use crate::opclass::{KeyExpr, KeyQuery, SearchMode};

/// Deeper trees are cut: what lies below is left to the recheck. Bounds the depth that
/// recursive readers of a [`KeyExpr`] meet.
const DEPTH_MAX: usize = 64;

/// The keys that `tsvector @@ query` needs; the query in PostgreSQL's text form.
pub fn key_query(tsquery: &str) -> Result<KeyQuery> {
    Ok(TsQuery::parse(tsquery)?.key_query())
}

/// Which items a tree over keys is to describe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    /// At least those that match.
    Possible,
    /// At most those that match.
    Certain,
}

/// A tree with its depth.
struct Part {
    expr: KeyExpr,
    depth: usize,
}

impl TsQuery {
    /// The keys that an index needs for this query: GIN's search mode, a tree that gives
    /// every item that may match, and whether these must be looked at.
    pub fn key_query(&self) -> KeyQuery {
        let (expr, cut) = self.key_expr(Want::Possible);
        let undecided = self.nodes.iter().any(|node| match node {
            Node::Lexeme(lexeme) => lexeme.weights != 0,
            Node::Phrase(_) => true,
            _ => false,
        });
        let mode = if self.is_empty() || self.requires_match() {
            SearchMode::Default
        } else {
            SearchMode::All
        };
        KeyQuery { expr, mode, recheck: undecided || cut }
    }

    /// A tree over keys whose items certainly match, so that of the items of
    /// [`TsQuery::key_query`] only the others need a look at the document.
    pub fn certain_keys(&self) -> KeyExpr {
        self.key_expr(Want::Certain).0
    }

    /// Whether only items with at least one of the lexemes can match.
    fn requires_match(&self) -> bool {
        let mut stack = Vec::new();
        for node in &self.nodes {
            let requires = match node {
                Node::Lexeme(_) => true,
                Node::Not => {
                    stack.pop();
                    false
                }
                Node::And | Node::Phrase(_) => pop(&mut stack) | pop(&mut stack),
                Node::Or => pop(&mut stack) & pop(&mut stack),
            };
            stack.push(requires);
        }
        stack.pop().unwrap_or(false)
    }

    /// The tree, and whether something was cut off.
    fn key_expr(&self, want: Want) -> (KeyExpr, bool) {
        // Backwards, from the root down: what each node is wanted for.
        let mut wants = vec![want; self.nodes.len()];
        let mut marks = vec![want];
        for (node, mark) in self.nodes.iter().zip(&mut wants).rev() {
            *mark = pop(&mut marks);
            match node {
                Node::Lexeme(_) => {}
                Node::Not => marks.push(match *mark {
                    Want::Possible => Want::Certain,
                    Want::Certain => Want::Possible,
                }),
                _ => marks.extend([*mark; 2]),
            }
        }
        let mut cut = false;
        let mut stack: Vec<Part> = Vec::new();
        for ((node, &want), &in_phrase) in
            self.nodes.iter().zip(&wants).zip(&self.in_phrase)
        {
            let part = match node {
                Node::Lexeme(lexeme) => {
                    let decided = lexeme.weights == 0 && !in_phrase;
                    let key = self.lexeme(*lexeme).as_bytes().to_vec();
                    let expr = match want {
                        Want::Certain if !decided => KeyExpr::Or(Vec::new()),
                        _ if lexeme.prefix => KeyExpr::Prefix(key),
                        _ => KeyExpr::Key(key),
                    };
                    Part { expr, depth: 1 }
                }
                Node::Not => {
                    let Part { expr, depth } = pop(&mut stack);
                    Part { expr: KeyExpr::Not(Box::new(expr)), depth: depth + 1 }
                }
                Node::And | Node::Or | Node::Phrase(_) => {
                    let (right, left) = (pop(&mut stack), pop(&mut stack));
                    // In a phrase an undecided side leaves even an OR undecided, so
                    // both sides must be certain.
                    let any =
                        *node == Node::Or && !(in_phrase && want == Want::Certain);
                    join(any, left, right)
                }
            };
            stack.push(if part.depth > DEPTH_MAX {
                cut = true;
                let expr = match want {
                    Want::Possible => KeyExpr::Maybe,
                    Want::Certain => KeyExpr::Or(Vec::new()),
                };
                Part { expr, depth: 1 }
            } else {
                part
            });
        }
        match stack.pop() {
            Some(part) => (part.expr, cut),
            None => (KeyExpr::Or(Vec::new()), false),
        }
    }
}

/// `left OR right` if `any`, else `left AND right`; chains of one operator stay flat.
fn join(any: bool, left: Part, right: Part) -> Part {
    let mut depth = 1;
    let mut parts = Vec::new();
    for part in [left, right] {
        match part.expr {
            KeyExpr::Or(inner) if any => {
                depth = depth.max(part.depth);
                append(&mut parts, inner);
            }
            KeyExpr::And(inner) if !any => {
                depth = depth.max(part.depth);
                append(&mut parts, inner);
            }
            expr => {
                depth = depth.max(part.depth + 1);
                parts.push(expr);
            }
        }
    }
    let expr = if any { KeyExpr::Or(parts) } else { KeyExpr::And(parts) };
    Part { expr, depth }
}

/// Appends `more`; a left-deep chain must not copy its long left side every time.
fn append(parts: &mut Vec<KeyExpr>, mut more: Vec<KeyExpr>) {
    if parts.is_empty() {
        *parts = more;
    } else {
        parts.append(&mut more);
    }
}
