//! Recheck of `@>`, `?`, `?|`, `?&`.
//!
//! Containment compares pairs of nodes of the same depth. A pair of objects needs every
//! member of the right one, a pair of arrays needs for every element of the right one
//! some element of the left one; so a search goes down, and its answer comes up to a
//! [`Frame`] that either goes on or answers itself. A pair is met at most once: the
//! time is bounded by the product of the two sizes, the depth by memory.

use super::numeric;
use super::tree::{Kind, NodeId, Tree};
use crate::document::{Json, JsonEvent};

/// `left @> right`
pub fn contains(left: &Json, right: &Json) -> bool {
    let (left, right) = (&Tree::of(left), &Tree::of(right));
    let (root, wanted) = (left.kind(Tree::ROOT), right.kind(Tree::ROOT));
    match (root.is_container(), wanted.is_container()) {
        (true, true) => contains_container(left, right),
        // A scalar is an array of one, to arrays and to scalars.
        (true, false) => {
            root == Kind::Array
                && left
                    .children(Tree::ROOT)
                    .iter()
                    .any(|&element| scalars_equal(left.kind(element), wanted))
        }
        (false, false) => scalars_equal(root, wanted),
        (false, true) => false,
    }
}

/// `json ? key`
pub fn exists(json: &Json, key: &str) -> bool {
    let mut depth = 0_usize;
    json.events().any(|event| match event {
        JsonEvent::BeginArray | JsonEvent::BeginObject => {
            depth += 1;
            false
        }
        JsonEvent::EndArray | JsonEvent::EndObject => {
            depth -= 1;
            false
        }
        JsonEvent::Key(name) => depth == 1 && name == key,
        // A string at the root counts as an element. One behind a key at depth 1 is a
        // value of the root object, and that is found by its container's kind.
        JsonEvent::String(string) => depth <= 1 && string == key && !is_object(json),
        JsonEvent::Null | JsonEvent::Bool(_) | JsonEvent::Number(_) => false,
    })
}

fn is_object(json: &Json) -> bool {
    json.events().next() == Some(JsonEvent::BeginObject)
}

/// `json ?| keys`; null elements have been left out.
pub fn exists_any<S: AsRef<str>>(json: &Json, keys: &[S]) -> bool {
    keys.iter().any(|key| exists(json, key.as_ref()))
}

/// `json ?& keys`; null elements have been left out.
pub fn exists_all<S: AsRef<str>>(json: &Json, keys: &[S]) -> bool {
    keys.iter().all(|key| exists(json, key.as_ref()))
}

/// Whether two scalars are one value; containers never are.
pub(crate) fn scalars_equal(a: Kind<'_>, b: Kind<'_>) -> bool {
    match (a, b) {
        (Kind::Number(a), Kind::Number(b)) => a == b || numeric::compare(a, b).is_eq(),
        (a, b) => a == b && !a.is_container(),
    }
}

/// A pair of containers under comparison.
struct Frame {
    left: NodeId,
    right: NodeId,
    /// Child of `right` in hand.
    wanted: usize,
    /// Next child of `left` to try for it (arrays), or to pass by (objects).
    candidate: usize,
}

fn contains_container(left: &Tree<'_>, right: &Tree<'_>) -> bool {
    let mut frames: Vec<Frame> = Vec::new();
    let frame = |left, right| Frame { left, right, wanted: 0, candidate: 0 };
    if left.kind(Tree::ROOT) != right.kind(Tree::ROOT) {
        return false;
    }
    frames.push(frame(Tree::ROOT, Tree::ROOT));
    // What the pair below the top frame answered, when it has.
    let mut answer: Option<bool> = None;
    while let Some(top) = frames.last_mut() {
        let is_array = left.kind(top.left) == Kind::Array;
        match answer.take() {
            Some(true) => {
                top.wanted += 1;
                if is_array {
                    top.candidate = 0;
                }
            }
            // An array tries its next element; an object has only one member.
            Some(false) if !is_array => {
                frames.pop();
                answer = Some(false);
                continue;
            }
            Some(false) | None => {}
        }
        let step = if is_array {
            next_element(left, right, top)
        } else {
            next_member(left, right, top)
        };
        match step {
            Step::Below(below_left, below_right) => {
                frames.push(frame(below_left, below_right));
            }
            Step::Answer(value) => {
                frames.pop();
                answer = Some(value);
            }
        }
    }
    answer.unwrap_or(false)
}

enum Step {
    /// The frame answers.
    Answer(bool),
    /// These two must be compared first.
    Below(NodeId, NodeId),
}

fn next_member(left: &Tree<'_>, right: &Tree<'_>, frame: &mut Frame) -> Step {
    let members = left.children(frame.left);
    while let Some(&wanted) = right.children(frame.right).get(frame.wanted) {
        let key = right.key(wanted);
        // Both sides are in order of keys: members passed by are never wanted again.
        let order = (key.len(), key);
        while let Some(&member) = members.get(frame.candidate)
            && (left.key(member).len(), left.key(member)) < order
        {
            frame.candidate += 1;
        }
        let member = match members.get(frame.candidate) {
            Some(&member) if left.key(member) == key => member,
            _ => return Step::Answer(false),
        };
        let (have, want) = (left.kind(member), right.kind(wanted));
        if want.is_container() {
            return if have == want {
                Step::Below(member, wanted)
            } else {
                Step::Answer(false)
            };
        }
        if !scalars_equal(have, want) {
            return Step::Answer(false);
        }
        frame.wanted += 1;
    }
    Step::Answer(true)
}

fn next_element(left: &Tree<'_>, right: &Tree<'_>, frame: &mut Frame) -> Step {
    let elements = left.children(frame.left);
    while let Some(&wanted) = right.children(frame.right).get(frame.wanted) {
        let want = right.kind(wanted);
        while let Some(&element) = elements.get(frame.candidate) {
            frame.candidate += 1;
            if want.is_container() && left.kind(element) == want {
                return Step::Below(element, wanted);
            }
            if scalars_equal(left.kind(element), want) {
                // The next wanted element is searched for from the start.
                frame.candidate = usize::MAX;
                break;
            }
        }
        if frame.candidate != usize::MAX {
            return Step::Answer(false);
        }
        frame.candidate = 0;
        frame.wanted += 1;
    }
    Step::Answer(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::parse;

    #[test]
    fn containment_is_that_of_the_server() {
        for (left, right, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2.0}"#, true),
            (r#"{"a":{"b":[1,{"c":2}]}}"#, r#"{"a":{"b":[{"c":2}]}}"#, true),
            (r#"{"a":{"b":[1,{"c":2}]}}"#, r#"{"a":{"b":[{"c":3}]}}"#, false),
            (r#"{"a":[1]}"#, r#"{"a":1}"#, false),
            (r#"{"a":[]}"#, r#"{"a":{}}"#, false),
            ("[1,1]", "[1,1,1]", true),
            ("[1,[2,3]]", "[[3]]", true),
            ("[[1,2],[3]]", "[[1,3]]", false),
            ("[[1],[2],[1,2]]", "[[1,2]]", true),
            ("[1]", "1", true),
            ("1", "[1]", false),
            ("1", "1.0", true),
            ("[[1]]", "1", false),
            ("{}", "[]", false),
            ("[]", "{}", false),
            ("{\"a\":1}", "{}", true),
            ("[]", "[]", true),
            ("\"a\"", "{}", false),
        ] {
            let contained = contains(&parse(left).unwrap(), &parse(right).unwrap());
            assert_eq!(contained, expected, "{left} @> {right}");
        }
    }

    #[test]
    fn only_the_outermost_level_is_asked_for_names() {
        for (text, expected) in [
            (r#"{"a":1}"#, true),
            (r#"{"b":"a"}"#, false),
            (r#"{"b":{"a":1}}"#, false),
            (r#"["a"]"#, true),
            (r#"[["a"]]"#, false),
            (r#"[{"a":1}]"#, false),
            (r#""a""#, true),
        ] {
            assert_eq!(exists(&parse(text).unwrap(), "a"), expected, "{text}");
        }
        let json = parse(r#"["a","b"]"#).unwrap();
        assert!(exists_any(&json, &["x", "b"]) && !exists_all(&json, &["x", "b"]));
        assert!(!exists_any(&json, &[""; 0]) && exists_all(&json, &[""; 0]));
    }
}
