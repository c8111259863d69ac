//! Similarity of texts by their trigrams, as pg_trgm computes it.
//!
//! All arithmetic is in 32-bit floats, as in PostgreSQL, so that a value compares with
//! a threshold as it does there. [`word_similarity`] looks for the extent of the second
//! text that is most similar to the first, by PostgreSQL's greedy search: it may miss
//! the true maximum, and must miss it in the same cases.

use std::collections::HashMap;

use super::trigrams;
use super::window::each_window;

/// Default threshold of `%`.
pub const SIMILARITY_THRESHOLD: f32 = 0.3;
/// Default threshold of `<%` and `%>`.
pub const WORD_SIMILARITY_THRESHOLD: f32 = 0.6;
/// Default threshold of `<<%` and `%>>`.
pub const STRICT_WORD_SIMILARITY_THRESHOLD: f32 = 0.5;

/// The share of common trigrams, from 0 to 1.
pub fn similarity(a: &str, b: &str) -> f32 {
    let (a, b) = (trigrams(a), trigrams(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let common = a.iter().filter(|key| b.binary_search(key).is_ok()).count();
    share(common, a.len(), b.len())
}

/// The greatest similarity of `a` to any extent of consecutive trigrams of `b`.
pub fn word_similarity(a: &str, b: &str) -> f32 {
    Extents::new(a, b).search(false)
}

/// The same, for extents of whole words only.
pub fn strict_word_similarity(a: &str, b: &str) -> f32 {
    Extents::new(a, b).search(true)
}

#[expect(clippy::cast_precision_loss, reason = "PostgreSQL divides 32-bit floats")]
fn share(common: usize, a: usize, b: usize) -> f32 {
    common as f32 / (a + b - common) as f32
}

/// One trigram of the second text.
struct Step {
    /// Number of the trigram among the distinct ones.
    trigram: usize,
    first_of_word: bool,
    last_of_word: bool,
}

/// The second text as a sequence of trigrams.
struct Extents {
    /// Distinct trigrams of the first text.
    wanted: usize,
    steps: Vec<Step>,
    /// By trigram number: whether the first text has it.
    found: Vec<bool>,
}

impl Extents {
    fn new(a: &str, b: &str) -> Extents {
        let a = trigrams(a);
        let mut numbers: HashMap<i32, usize, foldhash::fast::RandomState> =
            HashMap::default();
        let mut found = Vec::new();
        let mut steps = Vec::new();
        each_window(b, |window| {
            let trigram = *numbers.entry(window.key).or_insert_with(|| {
                found.push(a.binary_search(&window.key).is_ok());
                found.len() - 1
            });
            steps.push(Step {
                trigram,
                first_of_word: window.first,
                last_of_word: window.last,
            });
        });
        Extents { wanted: a.len(), steps, found }
    }

    fn search(&self, whole_words: bool) -> f32 {
        if self.wanted == 0 {
            return 0.0;
        }
        // Where in the current extent a trigram was seen last.
        let mut last: Vec<Option<usize>> = vec![None; self.found.len()];
        let mut lower = whole_words.then_some(0);
        let (mut distinct, mut common) = (0, 0);
        let mut best = 0.0_f32;
        for (at, step) in self.steps.iter().enumerate() {
            let found = self.found[step.trigram];
            if lower.is_some() || found {
                if last[step.trigram].is_none() {
                    distinct += 1;
                    common += usize::from(found);
                }
                last[step.trigram] = Some(at);
            }
            if !(if whole_words { step.last_of_word } else { found }) {
                continue;
            }
            let start = *lower.get_or_insert_with(|| {
                distinct = 1;
                at
            });
            let mut current = share(common, self.wanted, distinct);
            let mut cut = start;
            let (mut distinct_left, mut common_left) = (distinct, common);
            for (from, step) in self.steps[..=at].iter().enumerate().skip(start) {
                if !whole_words || step.first_of_word {
                    let candidate = share(common_left, self.wanted, distinct_left);
                    if candidate > current {
                        current = candidate;
                        (distinct, common) = (distinct_left, common_left);
                        cut = from;
                    }
                }
                if last[step.trigram] == Some(from) {
                    distinct_left -= 1;
                    common_left -= usize::from(self.found[step.trigram]);
                }
            }
            best = best.max(current);
            for (from, step) in self.steps[..cut].iter().enumerate().skip(start) {
                if last[step.trigram] == Some(from) {
                    last[step.trigram] = None;
                }
            }
            lower = Some(cut);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarities_are_those_of_postgresql_bit_for_bit() {
        let vectors = include_str!("../../../fixtures/keys/trgm_similarity.jsonl");
        let mut count = 0;
        for line in vectors.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| vector[name].as_str().unwrap();
            let (a, b) = (text("a"), text("b"));
            for (name, got) in [
                ("similarity", similarity(a, b)),
                ("word_similarity", word_similarity(a, b)),
                ("strict_word_similarity", strict_word_similarity(a, b)),
            ] {
                let expected: f32 = vector[name].to_string().parse().unwrap();
                assert_eq!(got.to_bits(), expected.to_bits(), "{name} of {a:?}, {b:?}");
            }
            count += 1;
        }
        assert_eq!(count, 130);
    }
}
