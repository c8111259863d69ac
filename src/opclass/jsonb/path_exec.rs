//! Running a jsonpath on a value: the recheck of `@?` and `@@`.
//!
//! A step gets one value and hands each of its results to the next step at once, so
//! that `@?` in lax mode stops at the first result and never sees an error behind it.
//! Errors are suppressed, not raised: they end the walk ([`Failed`]), and inside a
//! predicate they make it unknown. Recursion is as deep as the path; into the depth of
//! the value only `.**` goes, with a stack of its own.
//!
//! In lax mode an accessor looks into the elements of an array once, `[…]` takes
//! anything else for an array of one, and members that are not there are no error.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::arith;
use super::contain::scalars_equal;
use super::numeric;
use super::path::{Comparison, JsonPath, Op, StepId};
use super::path_item::{Base, Item, Items, number_item};
use super::path_methods as methods;
use super::tree::{Kind, Tree};
use crate::document::Json;

/// `json @? path`
pub(super) fn exists(path: &JsonPath, json: &Json) -> Option<bool> {
    if path.variable().is_some() {
        return None;
    }
    let tree = Tree::of(json);
    // A strict path must not have an error anywhere, so it runs to its end.
    let mut found = Found::new(!path.lax);
    match Walk::new(path, json, &tree).start(&mut found) {
        Ok(any) => Some(if path.lax { any } else { !found.items.is_empty() }),
        Err(Failed) => None,
    }
}

/// `json @@ path`
pub(super) fn matches(path: &JsonPath, json: &Json) -> Option<bool> {
    if path.variable().is_some() {
        return None;
    }
    let tree = Tree::of(json);
    let mut found = Found::new(true);
    let mut walk = Walk::new(path, json, &tree);
    // What was found before an error counts, as it does on the server.
    let (Ok(_) | Err(Failed)) = walk.start(&mut found);
    match found.items.as_slice() {
        [item] => match walk.items.kind(item) {
            Kind::Bool(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// A suppressed error.
#[derive(Debug)]
pub(super) struct Failed;

/// Whether a step led to a result, or that the walk is over.
pub(super) type Outcome = Result<bool, Failed>;

/// Where results go.
pub(super) struct Found<'a> {
    /// Whether they are kept; if not, the first one ends the walk.
    collecting: bool,
    items: Vec<Item<'a>>,
}

impl<'a> Found<'a> {
    fn new(collecting: bool) -> Found<'a> {
        Found { collecting, items: Vec::new() }
    }

    /// Takes a result.
    fn put(&mut self, item: &Item<'a>) {
        if self.collecting {
            self.items.push(item.clone());
        }
    }

    /// Whether a step with this outcome was all that is asked for.
    pub(super) fn is_enough(&self, outcome: bool) -> bool {
        outcome && !self.collecting
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Truth {
    False,
    True,
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }
}

pub(super) struct Walk<'a> {
    pub(super) path: &'a JsonPath,
    pub(super) items: Items<'a>,
    /// What `@` stands for.
    current: Item<'a>,
    /// What ids of `.keyvalue()` count from.
    pub(super) base: Base<'a>,
    /// Objects that `.keyvalue()` has made, and the document.
    pub(super) bases: u64,
    /// Length of the innermost array under a subscript.
    array_len: i64,
    /// Whether members that are not there, and the like, are no errors.
    forgiving: bool,
}

impl<'a> Walk<'a> {
    fn new(path: &'a JsonPath, json: &'a Json, tree: &'a Tree<'a>) -> Walk<'a> {
        Walk {
            path,
            items: Items::new(json, tree),
            current: Item::root(),
            base: Base::document(),
            bases: 1,
            array_len: 0,
            forgiving: path.lax,
        }
    }

    fn start(&mut self, found: &mut Found<'a>) -> Outcome {
        self.step(self.path.root, &Item::root(), found, self.path.lax)
    }

    /// Hands a result of a step to the next one.
    pub(super) fn next(
        &mut self,
        step: StepId,
        item: &Item<'a>,
        found: &mut Found<'a>,
    ) -> Outcome {
        match self.path.next(step) {
            Some(next) => self.step(next, item, found, self.path.lax),
            None => {
                found.put(item);
                Ok(true)
            }
        }
    }

    /// An error of structure, unless these are forgiven.
    pub(super) fn structural(&self) -> Outcome {
        if self.forgiving { Ok(false) } else { Err(Failed) }
    }

    /// Runs a step, and through it all that follow. With `unwrap` a step that is not
    /// meant for arrays runs on the elements of an array instead.
    fn step(
        &mut self,
        step: StepId,
        item: &Item<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Outcome {
        let path = self.path;
        let op = path.op(step);
        let kind = self.items.kind(item);
        if unwrap
            && kind == Kind::Array
            && matches!(op, Op::Key(_) | Op::AnyKey | Op::Filter(_) | Op::Decimal(..))
        {
            return self.unwrapped(step, item, found);
        }
        match op {
            Op::Null => self.next(step, &Item::Null, found),
            Op::Bool(value) => self.next(step, &Item::Bool(*value), found),
            Op::Number(number) => {
                self.next(step, &Item::Number(Cow::Borrowed(number)), found)
            }
            Op::String(string) => {
                self.next(step, &Item::String(Cow::Borrowed(string)), found)
            }
            // Callers look for variables first.
            Op::Variable(_) => Err(Failed),
            Op::Root => {
                let base = std::mem::replace(&mut self.base, Base::document());
                let outcome = self.next(step, &Item::root(), found);
                self.base = base;
                outcome
            }
            Op::Current => {
                let current = self.current.clone();
                self.next(step, &current, found)
            }
            Op::Last => {
                let last = number_item(self.array_len - 1);
                self.next(step, &last, found)
            }
            op if op.is_predicate() => {
                let result = match self.predicate(step, item) {
                    Truth::True => Item::Bool(true),
                    Truth::False => Item::Bool(false),
                    Truth::Unknown => Item::Null,
                };
                self.next(step, &result, found)
            }
            Op::Arithmetic(operator, left, right) => {
                let left = self.operand(*left, item, true)?;
                let right = self.operand(*right, item, true)?;
                let (left, right) =
                    (self.single_number(&left)?, self.single_number(&right)?);
                let result =
                    arith::calculate(*operator, left, right).map_err(|_| Failed)?;
                self.next(step, &Item::Number(Cow::Owned(result)), found)
            }
            Op::Plus(operand) | Op::Minus(operand) => {
                let negate = matches!(op, Op::Minus(_));
                self.signed(step, *operand, negate, item, found)
            }
            Op::Key(key) => match self.items.member(item, key) {
                Some(member) => self.next(step, &member, found),
                None => self.structural(),
            },
            Op::AnyKey if kind == Kind::Object => {
                self.below(path.next(step), item, found, Below::children(path.lax))
            }
            Op::AnyKey => self.structural(),
            Op::AnyArray if kind == Kind::Array => {
                self.below(path.next(step), item, found, Below::children(path.lax))
            }
            Op::AnyArray if path.lax => self.next(step, item, found),
            Op::AnyArray => self.structural(),
            Op::Any { first, last } => self.any(step, item, found, (*first, *last)),
            Op::Index(subscripts) => self.index(step, subscripts, item, found),
            Op::Filter(inner) => {
                let outer = std::mem::replace(&mut self.current, item.clone());
                let truth = self.predicate(*inner, item);
                self.current = outer;
                if truth == Truth::True {
                    self.next(step, item, found)
                } else {
                    Ok(false)
                }
            }
            Op::Method(method) => self.method(step, *method, item, found, unwrap),
            Op::Decimal(precision, scale) => {
                let number = self.number(item).ok_or(Failed)?;
                let number = match precision {
                    None => number,
                    Some(precision) => {
                        let (precision, scale) =
                            methods::precision_and_scale(precision, scale.as_deref())
                                .ok_or(Failed)?;
                        let number = methods::with_precision(&number, precision, scale);
                        Cow::Owned(number.ok_or(Failed)?)
                    }
                };
                self.next(step, &Item::Number(number), found)
            }
            Op::And(..)
            | Op::Or(..)
            | Op::Not(_)
            | Op::IsUnknown(_)
            | Op::Exists(_)
            | Op::Compare(..)
            | Op::StartsWith(..)
            | Op::LikeRegex(..) => unreachable!("predicates have been seen to"),
        }
    }

    /// Runs a step on each element of an array.
    pub(super) fn unwrapped(
        &mut self,
        step: StepId,
        array: &Item<'a>,
        found: &mut Found<'a>,
    ) -> Outcome {
        self.below(Some(step), array, found, Below::children(false))
    }

    /// Runs a step, or takes as results, what is inside a container.
    fn below(
        &mut self,
        step: Option<StepId>,
        container: &Item<'a>,
        found: &mut Found<'a>,
        below: Below,
    ) -> Outcome {
        if below.last == 0 {
            return Ok(false);
        }
        // Open containers with the number of their next child.
        let mut open = vec![(container.clone(), 0)];
        let mut any = false;
        while let Some((container, next)) = open.last_mut() {
            let Some(child) = self.items.child(container, *next) else {
                open.pop();
                continue;
            };
            *next += 1;
            let level = u32::try_from(open.len()).unwrap_or(u32::MAX - 1);
            let is_container = self.items.kind(&child).is_container();
            let leaves = (below.first, below.last) == (u32::MAX, u32::MAX);
            if level >= below.first || leaves && !is_container {
                let outcome = match step {
                    Some(step) => {
                        let forgiving = self.forgiving;
                        self.forgiving |= below.forgiving;
                        let outcome = self.step(step, &child, found, below.unwrap);
                        self.forgiving = forgiving;
                        outcome?
                    }
                    None => {
                        found.put(&child);
                        true
                    }
                };
                any |= outcome;
                if found.is_enough(outcome) {
                    return Ok(true);
                }
            }
            if is_container && level < below.last {
                open.push((child, 0));
            }
        }
        Ok(any)
    }

    fn any(
        &mut self,
        step: StepId,
        item: &Item<'a>,
        found: &mut Found<'a>,
        (first, last): (u32, u32),
    ) -> Outcome {
        let mut outcome = Ok(false);
        if first == 0 {
            let forgiving = std::mem::replace(&mut self.forgiving, true);
            outcome = self.next(step, item, found);
            self.forgiving = forgiving;
            if let Ok(outcome) = outcome
                && found.is_enough(outcome)
            {
                return Ok(true);
            }
        }
        // An error on the value itself is forgotten if there is something inside.
        if self.items.kind(item).is_container() {
            let below = Below { first, last, forgiving: true, unwrap: self.path.lax };
            outcome = self.below(self.path.next(step), item, found, below);
        }
        outcome
    }

    fn index(
        &mut self,
        step: StepId,
        subscripts: &[(StepId, Option<StepId>)],
        item: &Item<'a>,
        found: &mut Found<'a>,
    ) -> Outcome {
        let is_array = self.items.kind(item) == Kind::Array;
        if !is_array && !self.path.lax {
            return self.structural();
        }
        let len = if is_array { self.items.len(item) as i64 } else { 1 };
        let outer = std::mem::replace(&mut self.array_len, len);
        let outcome = subscripts.iter().try_fold(false, |any, (from, to)| {
            let from = self.subscript(*from, item)?;
            let to = match to {
                Some(to) => self.subscript(*to, item)?,
                None => from,
            };
            if !self.forgiving && (from < 0 || from > to || to >= len) {
                return Err(Failed);
            }
            let mut any = any;
            for at in from.max(0)..=to.min(len - 1) {
                if found.is_enough(any) {
                    break;
                }
                let element = match is_array {
                    true => self.items.child(item, usize::try_from(at).unwrap_or(0)),
                    false => Some(item.clone()),
                };
                let Some(element) = element else { continue };
                any |= self.next(step, &element, found)?;
                // A subscript further in has set its own length.
                self.array_len = len;
            }
            Ok(any)
        });
        self.array_len = outer;
        outcome
    }

    /// The value of a subscript: one number, without its fraction, of 32 bits.
    fn subscript(&mut self, step: StepId, item: &Item<'a>) -> Result<i64, Failed> {
        let mut found = Found::new(true);
        self.step(step, item, &mut found, self.path.lax)?;
        let number = arith::truncated(self.single_number(&found.items)?);
        number.filter(|number| i32::try_from(*number).is_ok()).ok_or(Failed)
    }

    fn single_number<'b>(&self, items: &'b [Item<'a>]) -> Result<&'b str, Failed>
    where
        'a: 'b,
    {
        match items {
            [item] => match self.items.kind(item) {
                Kind::Number(number) => Ok(number),
                _ => Err(Failed),
            },
            _ => Err(Failed),
        }
    }

    /// All results of a chain, arrays among them unwrapped in lax mode if wanted.
    fn operand(
        &mut self,
        step: StepId,
        item: &Item<'a>,
        unwrap: bool,
    ) -> Result<Vec<Item<'a>>, Failed> {
        let mut found = Found::new(true);
        self.step(step, item, &mut found, self.path.lax)?;
        if !(unwrap && self.path.lax) {
            return Ok(found.items);
        }
        let mut flat = Found::new(true);
        for item in &found.items {
            if self.items.kind(item) == Kind::Array {
                self.below(None, item, &mut flat, Below::children(false))?;
            } else {
                flat.put(item);
            }
        }
        Ok(flat.items)
    }

    fn signed(
        &mut self,
        step: StepId,
        operand: StepId,
        negate: bool,
        item: &Item<'a>,
        found: &mut Found<'a>,
    ) -> Outcome {
        let only_asked = self.path.next(step).is_none() && !found.collecting;
        let mut any = false;
        for operand in self.operand(operand, item, true)? {
            let Kind::Number(number) = self.items.kind(&operand) else {
                // When nothing is kept, what is no number is passed over.
                if only_asked {
                    continue;
                }
                return Err(Failed);
            };
            let number = match number.strip_prefix('-') {
                Some(positive) if negate => Cow::Owned(positive.to_owned()),
                None if negate && !numeric::is_zero(number) => {
                    Cow::Owned(format!("-{number}"))
                }
                _ => Cow::Owned(number.to_owned()),
            };
            any |= self.next(step, &Item::Number(number), found)?;
            if found.is_enough(any) {
                break;
            }
        }
        Ok(any)
    }

    fn predicate(&mut self, step: StepId, item: &Item<'a>) -> Truth {
        let path = self.path;
        match path.op(step) {
            Op::And(left, right) => match self.predicate(*left, item) {
                Truth::False => Truth::False,
                left => match self.predicate(*right, item) {
                    Truth::True => left,
                    right => right,
                },
            },
            Op::Or(left, right) => match self.predicate(*left, item) {
                Truth::True => Truth::True,
                left => match self.predicate(*right, item) {
                    Truth::False => left,
                    right => right,
                },
            },
            Op::Not(inner) => match self.predicate(*inner, item) {
                Truth::True => Truth::False,
                Truth::False => Truth::True,
                Truth::Unknown => Truth::Unknown,
            },
            Op::IsUnknown(inner) => {
                Truth::from(self.predicate(*inner, item) == Truth::Unknown)
            }
            Op::Exists(inner) => {
                let mut found = Found::new(!path.lax);
                match self.step(*inner, item, &mut found, path.lax) {
                    Ok(any) if path.lax => Truth::from(any),
                    Ok(_) => Truth::from(!found.items.is_empty()),
                    Err(Failed) => Truth::Unknown,
                }
            }
            Op::Compare(comparison, left, right) => {
                self.pairs(*left, Some((*right, true)), item, |left, right| {
                    compare(*comparison, left, right)
                })
            }
            Op::StartsWith(left, right) => {
                self.pairs(*left, Some((*right, false)), item, |left, right| {
                    match (left, right) {
                        (Kind::String(whole), Kind::String(start)) => {
                            Truth::from(whole.starts_with(start))
                        }
                        _ => Truth::Unknown,
                    }
                })
            }
            Op::LikeRegex(operand, like_regex) => {
                self.pairs(*operand, None, item, |operand, _| match operand {
                    Kind::String(string) => Truth::from(like_regex.is_match(string)),
                    _ => Truth::Unknown,
                })
            }
            // The parser lets nothing else stand for a predicate.
            _ => Truth::Unknown,
        }
    }

    /// Tests all pairs of results of two chains; `right` is a chain, and whether arrays
    /// among its results are unwrapped. Without it `test` gets nulls.
    fn pairs(
        &mut self,
        left: StepId,
        right: Option<(StepId, bool)>,
        item: &Item<'a>,
        test: impl Fn(Kind<'_>, Kind<'_>) -> Truth,
    ) -> Truth {
        let Ok(lefts) = self.operand(left, item, true) else { return Truth::Unknown };
        let rights = match right {
            Some((right, unwrap)) => match self.operand(right, item, unwrap) {
                Ok(rights) => rights,
                Err(Failed) => return Truth::Unknown,
            },
            None => vec![Item::Null],
        };
        let (mut any_true, mut any_unknown) = (false, false);
        for left in &lefts {
            for right in &rights {
                match test(self.items.kind(left), self.items.kind(right)) {
                    Truth::False => {}
                    Truth::True if self.path.lax => return Truth::True,
                    Truth::True => any_true = true,
                    Truth::Unknown if self.path.lax => any_unknown = true,
                    Truth::Unknown => return Truth::Unknown,
                }
            }
        }
        if any_true {
            Truth::True
        } else if any_unknown {
            Truth::Unknown
        } else {
            Truth::False
        }
    }
}

/// How far down [`Walk::below`] goes.
#[derive(Clone, Copy, Debug)]
struct Below {
    /// First and last level, the children's being 1; `u32::MAX` is the deepest one, and
    /// both being that means scalars at any level.
    first: u32,
    last: u32,
    /// Errors of structure are forgiven.
    forgiving: bool,
    /// What is found is unwrapped by the step that gets it.
    unwrap: bool,
}

impl Below {
    fn children(unwrap: bool) -> Below {
        Below { first: 1, last: 1, forgiving: false, unwrap }
    }
}

/// Compares two values; only scalars of one type have an order, but nulls are unequal
/// to everything else.
fn compare(comparison: Comparison, left: Kind<'_>, right: Kind<'_>) -> Truth {
    let order = match (left, right) {
        (Kind::Null, Kind::Null) => Ordering::Equal,
        (Kind::Null, _) | (_, Kind::Null) => {
            return Truth::from(comparison == Comparison::NotEqual);
        }
        (Kind::Bool(left), Kind::Bool(right)) => left.cmp(&right),
        (Kind::Number(_), Kind::Number(_)) if scalars_equal(left, right) => {
            Ordering::Equal
        }
        (Kind::Number(left), Kind::Number(right)) => numeric::compare(left, right),
        (Kind::String(left), Kind::String(right)) => left.cmp(right),
        _ => return Truth::Unknown,
    };
    Truth::from(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::Greater => order.is_gt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::GreaterOrEqual => order.is_ge(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::parse;

    const DOCUMENT: &str =
        r#"{"a": [1, 2.50, "x", null, [3]], "b": {"c": true, "a": "1"}}"#;

    fn run(path: &str) -> (Option<bool>, Option<bool>) {
        let (path, json) = (JsonPath::parse(path).unwrap(), parse(DOCUMENT).unwrap());
        (path.exists(&json), path.matches(&json))
    }

    #[test]
    fn paths_find_what_they_find_on_the_server() {
        let (yes, no, null) = (Some(true), Some(false), None);
        for (path, exists, matches) in [
            ("$.a", yes, null),
            ("$.x", no, null),
            ("strict $.x", null, null),
            ("$.a[*] == 2.5", yes, yes),
            ("$.a[4] == 3", yes, yes),
            ("$.a[*] == 3", yes, yes),
            ("$.b.c", yes, yes),
            ("$.b.c.c", no, null),
            ("$.** ? (@ == \"1\")", yes, null),
            ("$.a[last]", yes, null),
            ("strict $.a[5]", null, null),
            ("$.a[5 to 9]", no, null),
            ("$.a.size() == 5", yes, yes),
            ("$.a.double()", yes, null),
            ("strict $.a[*].double()", null, null),
            ("($.a[2].double() > 0) is unknown", yes, yes),
            ("$.a[3] == null", yes, yes),
            ("$.a[3] != 1", yes, yes),
            ("$.a[3] < 1", yes, no),
            ("$.a[0] == \"1\"", yes, null),
            ("$.a[1] + $.b.a.number() == 3.5", yes, yes),
            ("$.a + 1", null, null),
            ("-$.a[0] == -1", yes, yes),
            ("$.b.keyvalue().key", yes, null),
            ("exists($.b.keyvalue() ? (@.value == true))", yes, yes),
            ("$.b.keyvalue().id == 84", yes, yes),
            ("$.a[2] starts with \"x\"", yes, yes),
            ("$.a[2] like_regex \"^X$\" flag \"i\"", yes, yes),
            ("!exists($.b.c)", yes, no),
            // What was found before an error counts.
            ("$.a[*].boolean()", yes, yes),
            ("$.a[0].boolean()", yes, yes),
            ("$v == 1", null, null),
        ] {
            assert_eq!(run(path), (exists, matches), "{path}");
        }
    }
}
