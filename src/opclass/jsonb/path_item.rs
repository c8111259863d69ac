//! The values that pass through a jsonpath: places in the document, what the path
//! computes, and the objects that `.keyvalue()` makes.
//!
//! An object of `.keyvalue()` has an `id`: where the original object begins in
//! PostgreSQL's stored form, counted from the value that it belongs to. Paths that
//! compare ids see the server's, computed from stored lengths (`limits`).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use super::limits;
use super::tree::{Kind, NodeId, Tree};
use crate::document::Json;

/// A value on its way through a path.
#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    /// A part of the document.
    Node(NodeId),
    Null,
    Bool(bool),
    /// In the form of a tape.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    /// An object that `.keyvalue()` made.
    Pair(Rc<Pair<'a>>),
}

/// `{"id": …, "key": …, "value": …}`
#[derive(Debug)]
pub(super) struct Pair<'a> {
    id: u64,
    key: Cow<'a, str>,
    value: Item<'a>,
}

/// Names of a pair's members, in jsonb's order.
const PAIR_KEYS: [&str; 3] = ["id", "key", "value"];

impl<'a> Item<'a> {
    /// The whole document.
    pub(super) fn root() -> Item<'a> {
        Item::Node(Tree::ROOT)
    }

    pub(super) fn pair(id: u64, key: Cow<'a, str>, value: Item<'a>) -> Item<'a> {
        Item::Pair(Rc::new(Pair { id, key, value }))
    }
}

/// An integer as an item.
pub(super) fn number_item<'a>(number: i64) -> Item<'a> {
    Item::Number(Cow::Owned(number.to_string()))
}

/// What ids count from.
#[derive(Clone, Debug)]
pub(super) struct Base<'a> {
    /// An object of `.keyvalue()`; else the document.
    pair: Option<Rc<Pair<'a>>>,
    number: u64,
}

impl<'a> Base<'a> {
    pub(super) fn document() -> Base<'a> {
        Base { pair: None, number: 0 }
    }

    pub(super) fn of(pair: &Item<'a>, number: u64) -> Base<'a> {
        match pair {
            Item::Pair(pair) => Base { pair: Some(Rc::clone(pair)), number },
            _ => Base { pair: None, number },
        }
    }
}

/// Looks into items.
#[derive(Debug)]
pub(super) struct Items<'a> {
    json: &'a Json,
    tree: &'a Tree<'a>,
    /// Where containers begin in the stored form, by node; made when first needed.
    offsets: OnceCell<Vec<u64>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(json: &'a Json, tree: &'a Tree<'a>) -> Items<'a> {
        Items { json, tree, offsets: OnceCell::new() }
    }

    pub(super) fn kind<'b>(&self, item: &'b Item<'a>) -> Kind<'b>
    where
        'a: 'b,
    {
        match item {
            Item::Node(node) => self.tree.kind(*node),
            Item::Null => Kind::Null,
            Item::Bool(value) => Kind::Bool(*value),
            Item::Number(number) => Kind::Number(number),
            Item::String(string) => Kind::String(string),
            Item::Pair(_) => Kind::Object,
        }
    }

    /// Elements or members of a container.
    pub(super) fn len(&self, item: &Item<'a>) -> usize {
        match item {
            Item::Node(node) => self.tree.children(*node).len(),
            Item::Pair(_) => PAIR_KEYS.len(),
            _ => 0,
        }
    }

    /// An element of an array, the value of a member of an object.
    pub(super) fn child(&self, item: &Item<'a>, at: usize) -> Option<Item<'a>> {
        match (item, at) {
            (Item::Node(node), _) => {
                self.tree.children(*node).get(at).copied().map(Item::Node)
            }
            (Item::Pair(pair), 0) => {
                Some(Item::Number(Cow::Owned(pair.id.to_string())))
            }
            (Item::Pair(pair), 1) => Some(Item::String(pair.key.clone())),
            (Item::Pair(pair), 2) => Some(pair.value.clone()),
            _ => None,
        }
    }

    /// The key of a member of an object, which is there.
    pub(super) fn key(&self, item: &Item<'a>, at: usize) -> Cow<'a, str> {
        match item {
            Item::Node(node) => {
                let member = self.tree.children(*node).get(at);
                Cow::Borrowed(member.map_or("", |member| self.tree.key(*member)))
            }
            _ => Cow::Borrowed(PAIR_KEYS.get(at).copied().unwrap_or("")),
        }
    }

    /// The member of this key; none if there is none, or the item is no object.
    pub(super) fn member(&self, item: &Item<'a>, key: &str) -> Option<Item<'a>> {
        match item {
            Item::Node(node) if self.tree.kind(*node) == Kind::Object => {
                self.tree.member(*node, key).map(Item::Node)
            }
            Item::Pair(_) => {
                let at = PAIR_KEYS.iter().position(|name| *name == key)?;
                self.child(item, at)
            }
            _ => None,
        }
    }

    /// The id of an object.
    pub(super) fn id(&self, object: &Item<'a>, base: &Base<'a>) -> u64 {
        // Room for the offsets of one value.
        const NUMBERS: u64 = 10_000_000_000;
        let offset = match (object, &base.pair) {
            (Item::Node(node), None) => self.offset(*node),
            (Item::Node(node), Some(pair)) => match &pair.value {
                Item::Node(value) => {
                    let inside = self.offset(*node).wrapping_sub(self.offset(*value));
                    let key = pair.key.len();
                    inside.wrapping_add(limits::pair_value_offset(pair.id, key))
                }
                _ => 0,
            },
            _ => 0,
        };
        offset.wrapping_add(base.number.wrapping_mul(NUMBERS))
    }

    fn offset(&self, node: NodeId) -> u64 {
        let offsets = self.offsets.get_or_init(|| {
            let mut containers = limits::container_offsets(self.json).into_iter();
            (0..self.tree.len())
                .map(|node| match self.tree.kind(node).is_container() {
                    true => containers.next().unwrap_or(0),
                    false => 0,
                })
                .collect()
        });
        offsets.get(node as usize).copied().unwrap_or(0)
    }
}
