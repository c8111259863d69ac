//! jsonpath → tree of keys: what a document must have for the path to hold.
//!
//! Only equality with a literal, and paths that filters hang on, lead to keys; whatever
//! else a path asks leads to nothing, which means every document. Nothing on one side
//! of `&&` leaves the other side; on one side of `||` it leaves nothing. Negation turns
//! the two around, but no comparison can be negated into keys, so it survives in pairs
//! only.
//!
//! Some rules differ from PostgreSQL's, whose index scan loses rows there: a negated
//! `&&` with nothing on one side gives nothing; a literal with methods behind it
//! (`$.a == (1).type()`) is no literal, a predicate with methods behind it
//! (`($.a == 1).size().boolean()`) no predicate; and `strict $ == "x"` asks for the key that a
//! string at the root has, which is an array element's.

use super::ops::KeyWriter;
use super::path::{Comparison, JsonPath, Op, StepId};
use super::path_ops::{self, step};
use super::{hash, numeric};
use crate::opclass::{KeyExpr, int4_key};

/// What a class knows of the place that accessors have led to.
pub(super) trait Place: Clone {
    /// The place of `$`.
    fn root() -> Self;

    /// Goes one accessor on; false if the class can say nothing from here on.
    fn go(&mut self, accessor: &Op) -> bool;

    /// Adds what a document needs that has this literal at this place.
    fn needs(&self, literal: &Op, lax: bool, needs: &mut Vec<KeyExpr>);
}

/// The keys that `json @? path` needs.
pub(super) fn exists_keys<P: Place>(path: &JsonPath) -> Option<KeyExpr> {
    chain(path, path.root, None, &P::root())
}

/// The keys that `json @@ path` needs.
pub(super) fn match_keys<P: Place>(path: &JsonPath) -> Option<KeyExpr> {
    // What stands behind a predicate may turn false into true.
    if path.next(path.root).is_some() {
        return None;
    }
    predicate(path, path.root, false, &P::root())
}

fn predicate<P: Place>(
    path: &JsonPath,
    at: StepId,
    negated: bool,
    place: &P,
) -> Option<KeyExpr> {
    match path.op(at) {
        Op::And(left, right) | Op::Or(left, right) => {
            let is_and = matches!(path.op(at), Op::And(..)) != negated;
            let left = predicate(path, *left, negated, place);
            let right = predicate(path, *right, negated, place);
            match (left, right) {
                (Some(left), Some(right)) if is_and => {
                    Some(KeyExpr::And(vec![left, right]))
                }
                (Some(left), Some(right)) => Some(KeyExpr::Or(vec![left, right])),
                (one, other) if is_and => one.or(other),
                _ => None,
            }
        }
        Op::Not(inner) => predicate(path, *inner, !negated, place),
        Op::Exists(inner) if !negated => chain(path, *inner, None, place),
        Op::Compare(Comparison::Equal, left, right) if !negated => {
            let (literal, other) =
                match (is_literal(path, *left), is_literal(path, *right)) {
                    (true, _) => (*left, *right),
                    (_, true) => (*right, *left),
                    _ => return None,
                };
            chain(path, other, Some(path.op(literal)), place)
        }
        _ => None,
    }
}

fn is_literal(path: &JsonPath, at: StepId) -> bool {
    path.next(at).is_none()
        && matches!(path.op(at), Op::Null | Op::Bool(_) | Op::Number(_) | Op::String(_))
}

fn chain<P: Place>(
    path: &JsonPath,
    start: StepId,
    literal: Option<&Op>,
    place: &P,
) -> Option<KeyExpr> {
    let mut place = place.clone();
    let mut needs = Vec::new();
    let mut next = Some(start);
    let mut known = true;
    while let Some(at) = next {
        match path.op(at) {
            Op::Current => {}
            Op::Root => place = P::root(),
            Op::Filter(inner) => needs.extend(predicate(path, *inner, false, &place)),
            op => known = place.go(op),
        }
        if !known {
            break;
        }
        next = path.next(at);
    }
    if let (true, Some(literal)) = (known, literal) {
        place.needs(literal, path.lax, &mut needs);
    }
    if needs.len() > 1 { Some(KeyExpr::And(needs)) } else { needs.pop() }
}

/// The accessors so far, as `jsonb_ops` sees them.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// Names of members, outermost first.
    keys: Vec<String>,
    last: LastStep,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LastStep {
    Member,
    Element,
    Anything,
}

impl Place for Names {
    fn root() -> Names {
        // The root is stored as the one element of an array.
        Names { keys: Vec::new(), last: LastStep::Element }
    }

    fn go(&mut self, accessor: &Op) -> bool {
        self.last = match accessor {
            Op::Key(key) => {
                self.keys.push(key.clone());
                LastStep::Member
            }
            Op::AnyKey => LastStep::Member,
            Op::AnyArray | Op::Index(_) => LastStep::Element,
            Op::Any { .. } => LastStep::Anything,
            _ => return false,
        };
        true
    }

    fn needs(&self, literal: &Op, lax: bool, needs: &mut Vec<KeyExpr>) {
        let mut writer = KeyWriter::new();
        for key in self.keys.iter().rev() {
            needs.push(KeyExpr::Key(writer.name(key).to_vec()));
        }
        let key = match literal {
            Op::Null => writer.null(),
            Op::Bool(value) => writer.bool(*value),
            Op::Number(number) => writer.number(number),
            Op::String(string) => {
                let element = KeyExpr::Key(writer.name(string).to_vec());
                let member = KeyExpr::Key(writer.string(string).to_vec());
                needs.push(match self.last {
                    // A lax path goes through arrays on its own account.
                    _ if lax => KeyExpr::Or(vec![element, member]),
                    LastStep::Anything => KeyExpr::Or(vec![element, member]),
                    LastStep::Element => element,
                    LastStep::Member => member,
                });
                return;
            }
            _ => return,
        };
        needs.push(KeyExpr::Key(key.to_vec()));
    }
}

/// The running hash of `jsonb_path_ops`.
#[derive(Clone, Debug)]
pub(super) struct Hash(u32);

impl Place for Hash {
    fn root() -> Hash {
        Hash(0)
    }

    fn go(&mut self, accessor: &Op) -> bool {
        match accessor {
            Op::Key(key) => self.0 = step(self.0, hash::hash_bytes(key.as_bytes())),
            Op::AnyArray | Op::Index(_) => {}
            _ => return false,
        }
        true
    }

    fn needs(&self, literal: &Op, _lax: bool, needs: &mut Vec<KeyExpr>) {
        let component = match literal {
            Op::Null => path_ops::HASH_NULL,
            Op::Bool(value) => path_ops::hash_bool(*value),
            Op::Number(number) => numeric::hash(number, &mut Vec::new()),
            Op::String(string) => path_ops::hash_string(string),
            _ => return,
        };
        let key = int4_key(step(self.0, component).cast_signed());
        needs.push(KeyExpr::Key(key.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::{ops, parse, path_ops::PathHasher};

    /// A tree in the notation of a test: keys of `jsonb_ops` by their text, `'…'`
    /// around strings that are values.
    fn names(tree: &KeyExpr) -> String {
        shown(tree, &|key| {
            let (kind, text, _) = ops::describe(key);
            if kind == "string" { format!("'{text}'") } else { text }
        })
    }

    fn shown(tree: &KeyExpr, name: &dyn Fn(&[u8]) -> String) -> String {
        let join = |parts: &[KeyExpr], between: &str| {
            let parts: Vec<_> = parts.iter().map(|part| shown(part, name)).collect();
            format!("({})", parts.join(between))
        };
        match tree {
            KeyExpr::Key(key) => name(key),
            KeyExpr::And(parts) => join(parts, " & "),
            KeyExpr::Or(parts) => join(parts, " | "),
            other => panic!("no jsonpath leads to {other:?}"),
        }
    }

    /// A hash by the document that has only this one.
    fn hashes(tree: &KeyExpr, documents: &[&str]) -> String {
        shown(tree, &|key| {
            let found = documents.iter().find(|document| {
                let mut keys = Vec::new();
                let json = parse(document).unwrap();
                PathHasher::default()
                    .keys_of(&json, |hash| {
                        keys.push(int4_key(hash.cast_signed()));
                        Ok(())
                    })
                    .unwrap();
                keys == [key]
            });
            (*found.expect("the hash of one of the documents")).to_owned()
        })
    }

    #[test]
    fn paths_lead_to_the_keys_of_the_server() {
        let [x, one, b, c, top] = [
            r#"{"a":"x"}"#,
            r#"{"a":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{"c":2}}"#,
            r#"{"b":1}"#,
        ];
        let documents = [x, one, b, c, top, "null", r#""x""#];
        let both = &format!("({one} & {top})");
        let either = &format!("({one} | {top})");
        let nested = &format!("({b} & {c})");
        for (operator, path, by_name, by_hash) in [
            ("@@", r#"$.a == "x""#, "(a & (x | 'x'))", x),
            ("@@", r#""x" == $.a"#, "(a & (x | 'x'))", x),
            ("@@", r#"strict $.a[*] == "x""#, "(a & x)", x),
            ("@@", r#"strict $.a == "x""#, "(a & 'x')", x),
            ("@@", r#"strict $.a.** == "x""#, "(a & (x | 'x'))", ""),
            ("@@", "$.a == 1 && $.b > 2", "(a & 1)", one),
            ("@@", "$.a == 1 || $.b > 2", "", ""),
            ("@@", "$.a == 1 || $.b == 1", "((a & 1) | (b & 1))", either),
            ("@@", "!(!($.a == 1))", "(a & 1)", one),
            ("@@", "!($.a == 1)", "", ""),
            ("@@", "!(!($.a == 1) || !($.b == 1))", "((a & 1) & (b & 1))", both),
            ("@@", "!(!($.a == 1) && !($.b == 1))", "((a & 1) | (b & 1))", either),
            // The server asks for a and 1 here and loses {"a": 2, "b": 0}.
            ("@@", "!(!($.a == 1) && $.b > 2)", "", ""),
            ("@@", "$.a == (1).type()", "", ""),
            ("@@", "($.a == 1).size().boolean()", "", ""),
            (
                "@?",
                "$.a ? (@.b == 1) ? (@.c == 2)",
                "((b & a & 1) & (c & a & 2))",
                nested,
            ),
            ("@?", "$.a ? ($.b == 1)", "(b & 1)", top),
            ("@?", "$.* ? (@.a == 1)", "(a & 1)", ""),
            ("@?", "$.a", "", ""),
            ("@@", "exists($.a)", "", ""),
            ("@@", "exists($ ? (@.a == 1))", "(a & 1)", one),
            ("@@", "$.a != 1", "", ""),
            ("@?", "$.a.size() ? (@ == 1)", "", ""),
            ("@@", "$ == null", "null", "null"),
            // The server asks for the other one here and loses "x".
            ("@@", r#"strict $ == "x""#, "x", r#""x""#),
        ] {
            let parsed = JsonPath::parse(path).unwrap();
            let (by_names, by_hashes) = if operator == "@?" {
                (exists_keys::<Names>(&parsed), exists_keys::<Hash>(&parsed))
            } else {
                (match_keys::<Names>(&parsed), match_keys::<Hash>(&parsed))
            };
            let found = by_names.as_ref().map(names).unwrap_or_default();
            assert_eq!(found, by_name, "{path}");
            let found = by_hashes.map(|tree| hashes(&tree, &documents));
            assert_eq!(found.unwrap_or_default(), by_hash, "{path}");
        }
    }
}
