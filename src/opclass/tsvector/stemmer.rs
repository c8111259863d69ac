//! Stemmers: a lower-cased word becomes its stem, as PostgreSQL's Snowball does it.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// A function from a word to its stem.
pub(super) type Stem = fn(&str) -> Cow<'_, str>;

/// Porter 2.
pub(super) fn english(word: &str) -> Cow<'_, str> {
    let stem = Stemmer::create(Algorithm::English).stem(word);
    match short_double(word, &stem) {
        Some(repaired) => Cow::Borrowed(repaired),
        None => stem,
    }
}

/// The crate takes one letter of the double consonant in `adding`, `egged`, `offing`,
/// where Snowball's newer rule keeps both.
fn short_double<'w>(word: &'w str, stem: &str) -> Option<&'w str> {
    let &[vowel, consonant] = stem.as_bytes() else { return None };
    if !(b"aeo".contains(&vowel) && b"bdfgmnprt".contains(&consonant)) {
        return None;
    }
    let letters = word.trim_start_matches('\'');
    letters
        .as_bytes()
        .starts_with(&[vowel, consonant, consonant])
        .then(|| &letters[..3])
}
