//! Places of the word parser's machine from which it is known to give up.
//!
//! An attempt is a deterministic walk through (position, state) pairs that ends in
//! success or in giving up. If it gives up, so does every later attempt that comes to a
//! pair it visited. Remembering these pairs keeps the parser linear on texts such as
//! `a_a_a_…` or `<!-- <!-- …`, where otherwise each token looks ahead to the end.
//!
//! Only pairs at checkpoints, every [`STEP`] bytes, are noted, so that ordinary short
//! attempts cost nothing, and a longer walk keeps at most [`TRAIL_MAX`] of them, evenly
//! spread: a later attempt that falls into a gap notes finer ones on its way. What lies
//! behind the parser is dropped, so memory stays at some ten thousand pairs.

use std::collections::HashSet;

/// Distance of checkpoints, bytes; a power of two.
const STEP: usize = 64;
/// Pairs a walk keeps; a power of two.
const TRAIL_MAX: usize = 1024;
/// Known pairs from which on those behind the parser are dropped.
const KNOWN_MAX: usize = 8 * TRAIL_MAX;

/// A position and a state.
type Pair = (usize, u8);

/// See the head of this file.
#[derive(Default)]
pub(super) struct Failures {
    known: HashSet<Pair, foldhash::fast::RandomState>,
    /// Visited by the attempts under way.
    trail: Vec<Pair>,
    /// Checkpoints to pass over between two pairs of the trail.
    gap: usize,
    passed: usize,
    /// Size of `known` that makes it worth looking for old pairs.
    prune_at: usize,
}

impl Failures {
    /// True when a step from `before` to `at` crosses a checkpoint.
    pub(super) fn is_checkpoint(before: usize, at: usize) -> bool {
        before / STEP != at / STEP
    }

    /// Comes to a pair at a checkpoint; true if it is known to fail.
    pub(super) fn visit(&mut self, at: usize, state: u8) -> bool {
        if !self.known.is_empty() && self.known.contains(&(at, state)) {
            return true;
        }
        if self.passed < self.gap {
            self.passed += 1;
            return false;
        }
        self.passed = 0;
        if self.trail.len() == TRAIL_MAX {
            // Keep every second pair; marks of frames into the trail stay valid because
            // a shorter trail only means that fewer pairs are learnt from a failure.
            let mut number = 0;
            self.trail.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.gap = self.gap * 2 + 1;
        }
        self.trail.push((at, state));
        false
    }

    /// Pairs held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len() + self.trail.len()
    }

    /// Pairs on the trail, to be remembered where an attempt begins.
    pub(super) fn trail_len(&self) -> usize {
        self.trail.len()
    }

    /// The attempt that began with the trail at that length gave up; the parser itself
    /// stands at `at`.
    pub(super) fn failed_since(&mut self, trail_len: usize, at: usize) {
        if self.trail.len() <= trail_len {
            return;
        }
        if self.known.len() >= self.prune_at.max(KNOWN_MAX) {
            self.known.retain(|&(known, _)| known > at);
            self.prune_at = 2 * self.known.len();
        }
        self.known.extend(self.trail.drain(trail_len..));
        if self.trail.is_empty() {
            self.forget_trail();
        }
    }

    /// The attempts succeeded.
    pub(super) fn forget_trail(&mut self) {
        self.trail.clear();
        (self.gap, self.passed) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_walk_is_known_and_an_abandoned_one_is_not() {
        let mut failures = Failures::default();
        assert!(!failures.visit(64, 1));
        failures.failed_since(0, 0);
        assert!(failures.visit(64, 1));
        assert!(!failures.visit(64, 2));
        failures.forget_trail();
        assert!(!failures.visit(64, 2));
    }

    #[test]
    fn a_long_walk_keeps_few_pairs_spread_over_its_length() {
        let mut failures = Failures::default();
        let walk = 1..1_000_000;
        walk.clone().for_each(|step| assert!(!failures.visit(step * STEP, 0)));
        failures.failed_since(0, 0);
        assert!(failures.known.len() <= TRAIL_MAX);
        let mut known: Vec<_> =
            failures.known.iter().map(|pair| pair.0 / STEP).collect();
        known.sort_unstable();
        let widest = known.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest <= 4 * walk.len() / TRAIL_MAX, "{widest}");
    }
}
