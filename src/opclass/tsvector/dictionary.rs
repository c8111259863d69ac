//! Dictionaries: a token becomes a lexeme or turns out to be a stop word.
//!
//! Two kinds, as in PostgreSQL: `simple` lower-cases; a Snowball dictionary lower-cases,
//! drops the stop words of its language, then stems. Lower-casing is the simple mapping
//! of [`ctype::lower`].

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use super::stemmer::Stem;
use crate::opclass::ctype;

/// Words longer than this are not stemmed, and are no stop words either; bytes.
const STEM_MAX: usize = 1000;

/// Turns tokens into lexemes.
pub(super) struct Dictionary {
    /// PostgreSQL's name.
    pub(super) name: &'static str,
    /// `None` for `simple`.
    pub(super) stem: Option<Stem>,
    /// The stop word file, a word a line.
    pub(super) stop_words: &'static str,
    pub(super) stops: OnceLock<HashSet<String>>,
}

impl Dictionary {
    pub(super) const fn simple() -> Dictionary {
        Dictionary {
            name: "simple",
            stem: None,
            stop_words: "",
            stops: OnceLock::new(),
        }
    }

    pub(super) const fn stemming(
        name: &'static str,
        stem: Stem,
        stop_words: &'static str,
    ) -> Dictionary {
        Dictionary { name, stem: Some(stem), stop_words, stops: OnceLock::new() }
    }

    /// The lexeme of a token; `None` for a stop word.
    pub(super) fn lexize<'t>(&self, token: &'t str) -> Option<Cow<'t, str>> {
        let word = lower(token);
        let Some(stem) = self.stem else {
            return Some(word);
        };
        if token.len() > STEM_MAX {
            return Some(word);
        }
        if self.is_stop_word(&word) {
            return None;
        }
        match word {
            Cow::Borrowed(word) => Some(or_whole(stem(word), word)),
            Cow::Owned(word) => {
                Some(Cow::Owned(or_whole(stem(&word), &word).into_owned()))
            }
        }
    }

    fn is_stop_word(&self, word: &str) -> bool {
        let stops = self.stops.get_or_init(|| {
            let words = self
                .stop_words
                .lines()
                .filter_map(|line| line.split_whitespace().next());
            words.map(|word| lower(word).into_owned()).collect()
        });
        stops.contains(word)
    }
}

/// A stemmer that leaves nothing leaves the word.
fn or_whole<'w>(stem: Cow<'w, str>, word: &'w str) -> Cow<'w, str> {
    if stem.is_empty() { Cow::Borrowed(word) } else { stem }
}

/// The lower case of a text; borrowed if it is lower case already.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| ctype::lower(c) == c) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().map(ctype::lower).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::tsvector::{Config, fixtures};

    #[test]
    fn english_stems_are_postgresqls() {
        let english = Config::find("english").unwrap().word_dictionary();
        let stem = english.stem.unwrap();
        let mut words = 0;
        for line in fixtures::text("stem_english.tsv").lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [word, expected, stop] = columns[..] else { panic!("{line}") };
            assert_eq!(or_whole(stem(word), word), expected, "{word}");
            assert_eq!(english.is_stop_word(word), stop == "1", "{word}");
            words += 1;
        }
        assert_eq!(words, 22_545);
    }

    #[test]
    fn stems_of_every_language_are_postgresqls() {
        let mut languages = HashSet::new();
        for line in fixtures::text("stems.tsv").lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [language, word, expected] = columns[..] else { panic!("{line}") };
            let stem = Config::find(language).unwrap().word_dictionary().stem.unwrap();
            assert_eq!(or_whole(stem(word), word), expected, "{language} {word}");
            languages.insert(language.to_owned());
        }
        languages.insert("simple".to_owned());
        assert_eq!(languages, Config::names().map(str::to_owned).collect());
    }

    #[test]
    fn a_word_over_1000_bytes_is_neither_stemmed_nor_a_stop_word() {
        let english = Config::find("english").unwrap().word_dictionary();
        let long = "running".repeat(143);
        assert_eq!(english.lexize(&long).unwrap(), long);
        assert_eq!(english.lexize("Running").unwrap(), "run");
        assert_eq!(english.lexize("The"), None);
        assert_eq!(english.lexize("''s").unwrap(), "''s");
    }
}
