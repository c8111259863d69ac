//! Similarity of texts by their trigrams, as pg_trgm computes it.
//!
//! All arithmetic is in 32-bit floats, as in PostgreSQL, so that a value compares with
//! a threshold as it does there. [`word_similarity`] looks for the extent of the second
//! text that is most similar to the first, by PostgreSQL's greedy search: it may miss
//! the true maximum, and must miss it in the same cases. PostgreSQL looks at every
//! trigram of the extent at each step; here only at the distinct ones, which are few
//! where an extent is similar at all.

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

/// The second text as a sequence of trigrams.
struct Extents {
    /// Distinct trigrams of the first text.
    wanted: usize,
    /// Numbers of the trigrams in text order, [`LAST_OF_WORD`] added where it is so.
    steps: Vec<u32>,
    /// Where words start among them.
    words: Vec<usize>,
    /// By trigram number: whether the first text has it.
    found: Vec<bool>,
}

/// Added to a trigram's number; there are no more than 2²⁴ trigrams.
const LAST_OF_WORD: u32 = 1 << 31;

impl Extents {
    fn new(a: &str, b: &str) -> Extents {
        let a = trigrams(a);
        let mut numbers: HashMap<i32, u32, foldhash::fast::RandomState> =
            HashMap::default();
        let (mut steps, mut words, mut found) = (Vec::new(), Vec::new(), Vec::new());
        each_window(b, |window| {
            let next = u32::try_from(found.len()).expect("keys have 24 bits");
            let number = *numbers.entry(window.key).or_insert_with(|| {
                found.push(a.binary_search(&window.key).is_ok());
                next
            });
            if window.first {
                words.push(steps.len());
            }
            steps.push(number | if window.last { LAST_OF_WORD } else { 0 });
        });
        Extents { wanted: a.len(), steps, words, found }
    }

    /// Lets the upper end of an extent run through the text; wherever it stands on a
    /// common trigram (or at the end of a word), moves the lower end to where the
    /// extent is most similar.
    fn search(&self, whole_words: bool) -> f32 {
        if self.wanted == 0 {
            return 0.0;
        }
        let mut extent = Extent::new(self.found.len());
        let mut open = whole_words;
        let (mut distinct, mut common) = (0, 0);
        let mut best = 0.0_f32;
        for (at, step) in self.steps.iter().enumerate() {
            let trigram = (step & !LAST_OF_WORD) as usize;
            let found = self.found[trigram];
            open |= found;
            if open && extent.see(trigram, at) {
                distinct += 1;
                common += usize::from(found);
            }
            if !(if whole_words { step & LAST_OF_WORD != 0 } else { found }) {
                continue;
            }
            let mut current = share(common, self.wanted, distinct);
            let mut lower = None;
            let (mut distinct_left, mut common_left) = (distinct, common);
            let mut rest = extent.oldest;
            // What moving the lower end changes is that trigrams go whose last
            // occurrence it passes.
            while let Some(passed) = rest {
                distinct_left -= 1;
                common_left -= usize::from(self.found[passed]);
                let mut from = extent.seen[passed].at + 1;
                if whole_words {
                    let word = self.words.partition_point(|&start| start < from);
                    from = self.words.get(word).copied().unwrap_or(usize::MAX);
                }
                rest = extent.seen[passed].newer;
                if from > rest.map_or(at, |next| extent.seen[next].at) {
                    continue;
                }
                let candidate = share(common_left, self.wanted, distinct_left);
                if candidate > current {
                    current = candidate;
                    (distinct, common) = (distinct_left, common_left);
                    lower = Some(from);
                }
            }
            best = best.max(current);
            if let Some(lower) = lower {
                extent.forget_before(lower);
            }
        }
        best
    }
}

/// The distinct trigrams of an extent, in the order of their last occurrences.
struct Extent {
    seen: Vec<Seen>,
    oldest: Option<usize>,
    newest: Option<usize>,
}

/// One trigram's place in that order.
#[derive(Clone, Copy)]
struct Seen {
    /// Last occurrence, or `NOT_SEEN`.
    at: usize,
    older: Option<usize>,
    newer: Option<usize>,
}

const NOT_SEEN: usize = usize::MAX;

impl Extent {
    fn new(trigrams: usize) -> Extent {
        let unseen = Seen { at: NOT_SEEN, older: None, newer: None };
        Extent { seen: vec![unseen; trigrams], oldest: None, newest: None }
    }

    /// Notes an occurrence; says whether the trigram was not in the extent before.
    fn see(&mut self, trigram: usize, at: usize) -> bool {
        let new = self.seen[trigram].at == NOT_SEEN;
        if !new {
            self.unlink(trigram);
        }
        self.seen[trigram] = Seen { at, older: self.newest, newer: None };
        match self.newest {
            Some(newest) => self.seen[newest].newer = Some(trigram),
            None => self.oldest = Some(trigram),
        }
        self.newest = Some(trigram);
        new
    }

    fn unlink(&mut self, trigram: usize) {
        let Seen { older, newer, .. } = self.seen[trigram];
        match older {
            Some(older) => self.seen[older].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.seen[newer].older = older,
            None => self.newest = older,
        }
    }

    /// Drops the trigrams that occur before `lower` only.
    fn forget_before(&mut self, lower: usize) {
        while let Some(oldest) = self.oldest
            && self.seen[oldest].at < lower
        {
            self.unlink(oldest);
            self.seen[oldest].at = NOT_SEEN;
        }
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

    #[test]
    fn a_long_text_of_repeated_words_takes_linear_time() {
        let text = "the cat ".repeat(200_000);
        assert_eq!(word_similarity("cat", &text), 1.0);
        assert_eq!(strict_word_similarity("the dog", &text), 0.5);
    }
}
