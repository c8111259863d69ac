//! A tape with places to jump to: what recheck needs, and extraction does not.
//!
//! Nodes stand in document order; every container knows its children, those of an
//! object in jsonb's order of keys, so that an element is found by its number and a
//! member by halving. The texts stay in the tape.

use std::ops::Range;

use crate::document::{Json, JsonEvent};

/// Number of a node.
pub(crate) type NodeId = u32;

/// A value without its contents.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    /// As on the tape, see `numeric`.
    Number(&'a str),
    String(&'a str),
    Array,
    Object,
}

impl Kind<'_> {
    pub(crate) fn is_container(&self) -> bool {
        matches!(self, Kind::Array | Kind::Object)
    }
}

#[derive(Clone, Debug)]
struct Node<'a> {
    kind: Kind<'a>,
    /// The key under which it stands in an object; else empty.
    key: &'a str,
    /// Its part of `Tree::children`.
    children: Range<u32>,
}

/// A value to walk about in.
#[derive(Clone, Debug)]
pub(crate) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    children: Vec<NodeId>,
}

impl<'a> Tree<'a> {
    /// The root's number.
    pub(crate) const ROOT: NodeId = 0;

    /// The tree of a tape that holds one value; of an empty tape, null.
    pub(crate) fn of(json: &'a Json) -> Tree<'a> {
        let mut tree = Tree { nodes: Vec::new(), children: Vec::new() };
        // Open containers with the number of their first child in `pending`.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        let mut pending: Vec<NodeId> = Vec::new();
        let mut key = "";
        for event in json.events() {
            let kind = match event {
                JsonEvent::Null => Kind::Null,
                JsonEvent::Bool(value) => Kind::Bool(value),
                JsonEvent::Number(number) => Kind::Number(number),
                JsonEvent::String(string) => Kind::String(string),
                JsonEvent::BeginArray => Kind::Array,
                JsonEvent::BeginObject => Kind::Object,
                JsonEvent::Key(name) => {
                    key = name;
                    continue;
                }
                JsonEvent::EndArray | JsonEvent::EndObject => {
                    if let Some((node, first)) = open.pop() {
                        tree.close(node, &mut pending, first);
                    }
                    continue;
                }
            };
            let node = node_id(tree.nodes.len());
            tree.nodes.push(Node { kind, key, children: 0..0 });
            key = "";
            pending.push(node);
            if kind.is_container() {
                open.push((node, pending.len()));
            }
        }
        if tree.nodes.is_empty() {
            tree.nodes.push(Node { kind: Kind::Null, key: "", children: 0..0 });
        }
        tree
    }

    /// Gives a container its children, which are `pending` from `first` on.
    fn close(&mut self, node: NodeId, pending: &mut Vec<NodeId>, first: usize) {
        let children = &mut pending[first..];
        if self.kind(node) == Kind::Object {
            let order = |node: NodeId| (self.key(node).len(), self.key(node));
            // Tapes made by `parse` are in order; others may not be.
            if !children.is_sorted_by_key(|&child| order(child)) {
                children.sort_by_key(|&child| order(child));
            }
        }
        let begin = node_id(self.children.len());
        self.children.extend(pending.drain(first..));
        self.nodes[node as usize].children = begin..node_id(self.children.len());
    }

    /// How many nodes there are: all numbers below are nodes.
    pub(crate) fn len(&self) -> NodeId {
        node_id(self.nodes.len())
    }

    pub(crate) fn kind(&self, node: NodeId) -> Kind<'a> {
        self.nodes[node as usize].kind
    }

    /// The key under which a node stands in an object.
    pub(crate) fn key(&self, node: NodeId) -> &'a str {
        self.nodes[node as usize].key
    }

    /// Elements of an array, members of an object; of a scalar none.
    pub(crate) fn children(&self, node: NodeId) -> &[NodeId] {
        let Range { start, end } = self.nodes[node as usize].children;
        &self.children[start as usize..end as usize]
    }

    /// The member of an object with this key.
    pub(crate) fn member(&self, object: NodeId, key: &str) -> Option<NodeId> {
        let members = self.children(object);
        let at = members.binary_search_by(|&member| {
            let name = self.key(member);
            (name.len(), name).cmp(&(key.len(), key))
        });
        at.ok().map(|at| members[at])
    }
}

fn node_id(number: usize) -> NodeId {
    NodeId::try_from(number).expect("a tape of a text of 1 GB has fewer values")
}
