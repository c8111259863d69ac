//! The extractor of `tsvector_ops`: a text's lexemes, without their positions.
//!
//! Lower-casing, stop words and stemming are done once per distinct token and epoch of
//! key ids; everything after that is a probe of the [`TokenCache`].
//!
//! PostgreSQL refuses a text whose vector would be over a megabyte. Without positions
//! there is no such vector here: the text is indexed.

use super::cache::{Found, NO_KEY, TokenCache};
use super::config::{Config, DictionaryClass, TOKEN_TOO_LONG};
use super::parser::{Ctype, Scanner, TokenType};
use crate::document::Value;
use crate::error::{Error, Result};
use crate::opclass::{Extractor, KeyId, KeySink, POST_AT_MOST};

/// See the head of this file.
pub(super) struct TsvectorExtractor {
    config: &'static Config,
    /// By number of the token type.
    class_of: [Option<DictionaryClass>; TokenType::ALL.len() + 1],
    cache: TokenCache,
    /// Ids not yet posted, fewer than [`POST_AT_MOST`].
    pending: Vec<KeyId>,
    skipped: u64,
}

impl TsvectorExtractor {
    pub(super) fn new(config: &'static Config) -> TsvectorExtractor {
        let mut class_of = [None; TokenType::ALL.len() + 1];
        for kind in TokenType::ALL {
            class_of[usize::from(kind.id())] = config.class(kind);
        }
        TsvectorExtractor {
            config,
            class_of,
            cache: TokenCache::new(),
            pending: Vec::with_capacity(POST_AT_MOST),
            skipped: 0,
        }
    }

    fn text(&mut self, text: &str, sink: &mut dyn KeySink) -> Result<()> {
        let mut scanner = Scanner::new(text, Ctype::Utf8);
        while let Some(span) = scanner.next() {
            let Some(class) = self.class_of[usize::from(span.kind.id())] else {
                continue;
            };
            if span.end - span.start >= TOKEN_TOO_LONG {
                self.skipped += 1;
                continue;
            }
            match self.cache.find(text.as_bytes(), span.start, span.end, class) {
                Found::Nothing => {}
                Found::Post(id) => self.post(id, sink)?,
                Found::Vacant(vacant) => {
                    let token = &text[span.start..span.end];
                    let id = self.intern(token, class, sink);
                    self.cache.insert(vacant, token.as_bytes(), id);
                    if id != NO_KEY {
                        self.post(id, sink)?;
                    }
                }
            }
        }
        self.flush(sink)
    }

    #[cold]
    fn intern(
        &mut self,
        token: &str,
        class: DictionaryClass,
        sink: &mut dyn KeySink,
    ) -> KeyId {
        match self.config.dictionary(class).lexize(token) {
            None => NO_KEY,
            Some(lexeme) if lexeme.len() >= TOKEN_TOO_LONG => {
                self.skipped += 1;
                NO_KEY
            }
            Some(lexeme) => sink.key(lexeme.as_bytes()),
        }
    }

    fn lexemes(&mut self, lexemes: &[String], sink: &mut dyn KeySink) -> Result<()> {
        for lexeme in lexemes {
            if lexeme.is_empty() || lexeme.len() >= TOKEN_TOO_LONG {
                self.flush(sink)?;
                return Err(Error::value(format!(
                    "a lexeme has {} bytes; it must have 1 to {}",
                    lexeme.len(),
                    TOKEN_TOO_LONG - 1
                )));
            }
            let id = sink.key(lexeme.as_bytes());
            self.post(id, sink)?;
        }
        self.flush(sink)
    }

    #[inline]
    fn post(&mut self, id: KeyId, sink: &mut dyn KeySink) -> Result<()> {
        self.pending.push(id);
        if self.pending.len() < POST_AT_MOST { Ok(()) } else { self.flush(sink) }
    }

    fn flush(&mut self, sink: &mut dyn KeySink) -> Result<()> {
        sink.holds(self.memory());
        let void = sink.post(&self.pending);
        self.pending.clear();
        if void? {
            self.forget();
        }
        Ok(())
    }
}

impl Extractor for TsvectorExtractor {
    fn extract(&mut self, value: &Value<'_>, sink: &mut dyn KeySink) -> Result<()> {
        self.cache.next_item();
        self.pending.clear();
        match value {
            Value::Text(text) => self.text(text, sink),
            Value::Lexemes(lexemes) => self.lexemes(lexemes, sink),
            _ => Err(Error::invalid(
                "tsvector_ops takes a text or a tsvector, found a value of another kind",
            )),
        }
    }

    fn forget(&mut self) {
        self.cache.clear();
    }

    fn memory(&self) -> usize {
        self.cache.memory() + self.pending.capacity() * size_of::<KeyId>()
    }

    fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::{BTreeSet, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::opclass::tsvector::{TsVector, fixtures};

    /// Collects an item's keys, and voids all ids after every `void_after` posts.
    #[derive(Default)]
    struct Sink {
        ids: HashMap<Vec<u8>, KeyId>,
        keys: Vec<Vec<u8>>,
        item: BTreeSet<String>,
        posts: usize,
        posted: usize,
        void_after: usize,
        /// Most that the extractor said it holds.
        held: usize,
    }

    impl KeySink for Sink {
        fn key(&mut self, key: &[u8]) -> KeyId {
            *self.ids.entry(key.to_vec()).or_insert_with(|| {
                self.keys.push(key.to_vec());
                KeyId::try_from(self.keys.len() - 1).unwrap()
            })
        }

        fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
            assert!(ids.len() <= POST_AT_MOST);
            self.posts += 1;
            self.posted += ids.len();
            for &id in ids {
                let key = &self.keys[id as usize];
                self.item.insert(String::from_utf8(key.clone()).unwrap());
            }
            let void =
                self.void_after > 0 && self.posts.is_multiple_of(self.void_after);
            if void {
                self.ids.clear();
                self.keys.clear();
            }
            Ok(void)
        }

        fn holds(&mut self, bytes: usize) {
            self.held = self.held.max(bytes);
        }

        fn post_null(&mut self) -> Result<()> {
            panic!("a tsvector has no null keys");
        }
    }

    fn lexemes_of(config: &Config, text: &str) -> BTreeSet<String> {
        TsVector::of(config, text).iter().map(|(lexeme, _)| lexeme.to_owned()).collect()
    }

    #[test]
    fn the_keys_are_the_lexemes_of_the_vector_whenever_ids_become_void() {
        let texts: Vec<String> = fixtures::lines("to_tsvector_english.jsonl")
            .iter()
            .map(fixtures::input)
            .collect();
        let config = Config::find("english").unwrap();
        for void_after in [0, 1, 2, 7] {
            let mut extractor = TsvectorExtractor::new(config);
            let mut sink = Sink { void_after, ..Sink::default() };
            for text in &texts {
                sink.item.clear();
                extractor
                    .extract(&Value::Text(Cow::Borrowed(text)), &mut sink)
                    .unwrap();
                assert_eq!(sink.item, lexemes_of(config, text), "{text:.200}");
            }
        }
    }

    #[test]
    fn an_item_with_many_words_is_posted_in_parts_and_each_word_once() {
        let words: Vec<String> =
            (0..1000).map(|number| format!("w{number} w{number}")).collect();
        let mut extractor = TsvectorExtractor::new(Config::find("simple").unwrap());
        let mut sink = Sink::default();
        for items in 1..=3 {
            let text = Value::Text(Cow::Owned(words.join(" ")));
            extractor.extract(&text, &mut sink).unwrap();
            assert_eq!((sink.item.len(), sink.posted), (1000, items * 1000));
        }
        assert!(extractor.memory() > 1000 * 24);
        extractor.forget();
        assert!(extractor.memory() <= 4 * POST_AT_MOST);
    }

    #[test]
    fn what_the_words_of_one_item_take_is_told_while_it_is_in_hand() {
        let words: Vec<String> = (0..50_000).map(|n| format!("w{n}")).collect();
        let mut extractor = TsvectorExtractor::new(Config::find("simple").unwrap());
        let mut sink = Sink::default();
        extractor.extract(&Value::Text(words.join(" ").into()), &mut sink).unwrap();
        assert!(sink.held >= 50_000 * 24, "{}", sink.held);
    }

    #[test]
    fn tokens_over_the_limit_are_counted_and_left_out() {
        let mut extractor = TsvectorExtractor::new(Config::find("english").unwrap());
        let mut sink = Sink::default();
        let text = format!("ok {} {} fine", "a".repeat(2046), "b".repeat(2047));
        extractor.extract(&Value::Text(text.into()), &mut sink).unwrap();
        assert_eq!(sink.item.len(), 3);
        assert_eq!((extractor.take_skipped(), extractor.take_skipped()), (1, 0));
    }

    #[test]
    fn lexemes_made_elsewhere_are_keys_as_they_are() {
        let mut extractor = TsvectorExtractor::new(Config::find("english").unwrap());
        let mut sink = Sink::default();
        let lexemes = ["Running".to_owned(), "the".to_owned()];
        extractor.extract(&Value::Lexemes(lexemes.to_vec()), &mut sink).unwrap();
        assert_eq!(sink.item, lexemes.into());
        let error = extractor.extract(&Value::Lexemes(vec![String::new()]), &mut sink);
        assert!(error.unwrap_err().to_string().contains("has 0 bytes"));
        assert!(extractor.extract(&Value::Null, &mut sink).is_err());
    }

    proptest! {
        #[test]
        fn any_text_gives_the_lexemes_of_its_vector(text: String, again in "[a-c .@-]{0,40}") {
            for name in Config::names() {
                let config = Config::find(name).unwrap();
                let mut extractor = TsvectorExtractor::new(config);
                for text in [&text, &again, &text] {
                    let mut sink = Sink::default();
                    extractor.forget();
                    extractor
                        .extract(&Value::Text(Cow::Borrowed(text)), &mut sink)
                        .unwrap();
                    prop_assert_eq!(&sink.item, &lexemes_of(config, text));
                }
            }
        }
    }
}
