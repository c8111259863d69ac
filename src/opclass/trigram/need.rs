//! What a text needs to match a regular expression: trigrams under AND and OR.
//!
//! A [`Need`] is kept small while it is built: keys that all alternatives share are
//! drawn in front of them, alternatives that add nothing go, and what grows beyond
//! [`KEYS_MAX`] is left out, which makes the need weaker and never wrong.

use std::collections::BTreeSet;

use super::{KeyExpr, key};

/// Keys in a need, repeated ones counted.
const KEYS_MAX: usize = 512;

/// All keys, and of each list of alternatives at least one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Need {
    keys: BTreeSet<i32>,
    /// An empty list can never be satisfied.
    alternatives: Vec<Vec<Need>>,
}

impl Need {
    /// What every text satisfies.
    pub fn nothing() -> Need {
        Need::keys(BTreeSet::new())
    }

    /// What needs all these keys.
    pub fn keys(keys: BTreeSet<i32>) -> Need {
        Need { keys, alternatives: Vec::new() }.bounded()
    }

    /// What satisfies all parts.
    pub fn all(parts: Vec<Need>) -> Need {
        let mut need = Need::nothing();
        for part in parts {
            need.keys.extend(part.keys);
            need.alternatives.extend(part.alternatives);
        }
        need.alternatives.sort_unstable();
        need.alternatives.dedup();
        let Need { keys, alternatives } = &mut need;
        alternatives.retain(|list| !list.iter().any(|part| part.follows_from(keys)));
        need.bounded()
    }

    /// What satisfies any of the parts.
    pub fn any(mut parts: Vec<Need>) -> Need {
        parts.retain(|part| !part.is_impossible());
        parts.sort_unstable();
        parts.dedup();
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let mut shared = BTreeSet::new();
        if let [first, rest @ ..] = &parts[..] {
            let in_all = |key: &&i32| rest.iter().all(|part| part.keys.contains(key));
            shared = first.keys.iter().filter(in_all).copied().collect();
        }
        for part in &mut parts {
            part.keys.retain(|key| !shared.contains(key));
        }
        let alternatives =
            if parts.iter().any(Need::is_nothing) { Vec::new() } else { vec![parts] };
        Need { keys: shared, alternatives }.bounded()
    }

    fn is_nothing(&self) -> bool {
        self.keys.is_empty() && self.alternatives.is_empty()
    }

    fn is_impossible(&self) -> bool {
        self.alternatives.iter().any(Vec::is_empty)
    }

    fn follows_from(&self, keys: &BTreeSet<i32>) -> bool {
        self.alternatives.is_empty() && self.keys.is_subset(keys)
    }

    fn size(&self) -> usize {
        self.keys.len() + self.alternatives.iter().map(|list| size(list)).sum::<usize>()
    }

    /// Leaves out the longest alternatives first, then keys.
    fn bounded(mut self) -> Need {
        while self.size() > KEYS_MAX {
            match (0..self.alternatives.len())
                .max_by_key(|&n| size(&self.alternatives[n]))
            {
                Some(longest) => {
                    self.alternatives.remove(longest);
                }
                None => {
                    self.keys = self.keys.into_iter().take(KEYS_MAX).collect();
                }
            }
        }
        self
    }

    /// As a tree of keys.
    pub fn into_expr(self) -> KeyExpr {
        let mut parts: Vec<_> = self.keys.into_iter().map(key).collect();
        for list in self.alternatives {
            parts.push(KeyExpr::Or(list.into_iter().map(Need::into_expr).collect()));
        }
        match parts.len() {
            0 => KeyExpr::Maybe,
            1 => parts.remove(0),
            _ => KeyExpr::And(parts),
        }
    }
}

fn size(list: &[Need]) -> usize {
    list.iter().map(Need::size).sum()
}
