//! Merging runs: a loser tree over cursors.
//!
//! The tree holds, at each inner node, the loser of the match between its subtrees; the
//! winner of all stands on top. Taking the next tuple advances the winner's cursor and
//! replays only the matches on its way up: one comparison per level.

use std::cmp::Ordering;

use super::run::RunCursor;
use crate::error::Result;

/// Merges cursors; lends one tuple at a time, in order (key, first bytes of payload).
#[derive(Debug)]
pub struct Merge {
    cursors: Vec<Option<RunCursor>>,
    /// `tree[0]` is the winner, `tree[1..]` the losers of the inner nodes.
    tree: Vec<usize>,
    tie: usize,
    until: Option<Box<[u8]>>,
    started: bool,
}

impl Merge {
    /// A merge of these cursors that ends before key `until`.
    pub fn new(cursors: Vec<RunCursor>, tie: usize, until: Option<&[u8]>) -> Merge {
        let cursors: Vec<_> = cursors.into_iter().map(Some).collect();
        let mut merge = Merge {
            tree: vec![usize::MAX; cursors.len().max(1)],
            cursors,
            tie,
            until: until.map(Into::into),
            started: false,
        };
        for leaf in (0..merge.cursors.len()).rev() {
            merge.replay(leaf);
        }
        merge
    }

    /// The next tuple, key and payload.
    #[expect(clippy::should_implement_trait, reason = "it lends")]
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.cursors.is_empty() {
            return Ok(None);
        }
        if self.started {
            let winner = self.tree[0];
            if let Some(cursor) = &mut self.cursors[winner]
                && !cursor.advance()?
            {
                // An ended cursor gives its buffers back at once.
                self.cursors[winner] = None;
            }
            self.replay(winner);
        }
        self.started = true;
        let Some(cursor) = &self.cursors[self.tree[0]] else { return Ok(None) };
        if self.until.as_deref().is_some_and(|until| cursor.key() >= until) {
            return Ok(None);
        }
        Ok(Some((cursor.key(), cursor.payload())))
    }

    /// Plays `leaf`'s matches up to the top. During construction a node that is still
    /// empty keeps the first who comes.
    fn replay(&mut self, leaf: usize) {
        let mut winner = leaf;
        let mut node = (leaf + self.cursors.len()) / 2;
        while node > 0 {
            let other = self.tree[node];
            if other == usize::MAX {
                self.tree[node] = winner;
                return;
            }
            if self.beats(other, winner) {
                self.tree[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    fn beats(&self, a: usize, b: usize) -> bool {
        match (&self.cursors[a], &self.cursors[b]) {
            (None, _) => false,
            (_, None) => true,
            (Some(x), Some(y)) => {
                x.compare(y, self.tie).then(a.cmp(&b)) == Ordering::Less
            }
        }
    }
}
