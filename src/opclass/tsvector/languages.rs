//! The configurations and their dictionaries.

use super::config::Config;
use super::dictionary::Dictionary;
use super::stemmer;

/// The dictionary of everything that is not a word.
pub(super) static SIMPLE: Dictionary = Dictionary::simple();

static ENGLISH: Dictionary = Dictionary::stemming(
    "english_stem",
    stemmer::english,
    include_str!("stopwords/english.stop"),
);

/// Every configuration, by name.
pub(super) static CONFIGS: &[Config] = &[
    Config { name: "simple", ascii_words: &SIMPLE, words: &SIMPLE },
    Config { name: "english", ascii_words: &ENGLISH, words: &ENGLISH },
];
