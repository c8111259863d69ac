//! The hot path: a text's trigrams as key ids, each once.
//!
//! Nearly all text is ASCII, where a word character is one of 36 once its case is
//! folded, and a window with its blanks one of 37³: few enough for a table that is
//! indexed by the window itself. A [`Slot`] has the key's id and the number of the item
//! that was last posted under it, so a window costs one load and one comparison, and a
//! repeat within an item nothing more. The loop has no branch that depends on the text:
//! "blank or not" and "new or not" are arithmetic, since either would be mispredicted
//! about once a word.
//!
//! A word character outside ASCII leaves the loop for as long as it takes part in
//! windows. These have hashed keys, kept in a second, direct-mapped cache; what falls
//! out of it is interned again. An ASCII window and a hashed one that share a key get
//! the same id from the sink, which also drops the duplicates.
//!
//! Both tables are made when first needed, and are void with the ids in them.

use super::window::{self, BLANK};
use crate::document::Value;
use crate::error::{Error, Result};
use crate::opclass::{Extractor, KeyId, KeySink, POST_AT_MOST, int4_key};

/// Word characters of ASCII with their case folded, and the blank.
const SYMBOLS: usize = 37;
const WINDOWS: usize = SYMBOLS * SYMBOLS * SYMBOLS;

/// Three blanks: no trigram, though the loop passes it; seems to be known and posted.
const NO_WINDOW: usize = 0;

/// Entries of the cache of hashed keys; a power of two.
const HASHED: usize = 1 << 15;

/// Bytes between two looks at how full the buffer is; each adds one id at most.
const CHUNK: usize = POST_AT_MOST / 2;

/// The class of every byte that begins or goes on with a character outside ASCII.
const NOT_ASCII: u8 = 0xFF;

/// The id of a key that has not been interned.
const UNKNOWN: KeyId = KeyId::MAX;

/// By byte: 0 for a blank, 1 to 26 for a letter, 27 to 36 for a digit, or `NOT_ASCII`.
const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            lower @ b'a'..=b'z' => lower - b'a' + 1,
            upper @ b'A'..=b'Z' => upper - b'A' + 1,
            digit @ b'0'..=b'9' => digit - b'0' + 27,
            0x80.. => NOT_ASCII,
            _ => 0,
        };
        byte += 1;
    }
    class
};

/// By class: the character.
const CHARACTER: &[u8; SYMBOLS] = b" abcdefghijklmnopqrstuvwxyz0123456789";

/// What is known of a window's key.
#[derive(Clone, Copy)]
struct Slot {
    id: KeyId,
    /// The item last posted under it.
    item: u32,
}

const EMPTY: Slot = Slot { id: UNKNOWN, item: 0 };

/// An entry of the cache of hashed keys.
#[derive(Clone, Copy)]
struct Hashed {
    key: i32,
    slot: Slot,
}

/// Finds the trigrams of texts.
pub struct TrigramExtractor {
    /// By window of classes.
    ascii: Vec<Slot>,
    hashed: Vec<Hashed>,
    /// The number of the item in hand, from 1.
    item: u32,
    buffer: Box<[KeyId; POST_AT_MOST]>,
    /// Ids in the buffer.
    full: usize,
}

impl TrigramExtractor {
    /// An extractor without tables yet.
    pub fn new() -> TrigramExtractor {
        TrigramExtractor {
            ascii: Vec::new(),
            hashed: Vec::new(),
            item: 0,
            buffer: Box::new([0; POST_AT_MOST]),
            full: 0,
        }
    }

    fn begin_item(&mut self) {
        if self.ascii.is_empty() {
            self.ascii = vec![EMPTY; WINDOWS];
        }
        if self.item == u32::MAX {
            self.item = 0;
            self.ascii.iter_mut().for_each(|slot| slot.item = 0);
            self.hashed.iter_mut().for_each(|entry| entry.slot.item = 0);
        }
        self.item += 1;
        self.full = 0;
        self.ascii[NO_WINDOW] = Slot { id: 0, item: self.item };
    }

    fn text(&mut self, text: &str, sink: &mut dyn KeySink) -> Result<()> {
        let bytes = text.as_bytes();
        let mut context = Context::default();
        let mut at = 0;
        while at < bytes.len() {
            self.make_room(sink)?;
            let end = bytes.len().min(at + CHUNK);
            at += self.ascii_run(&bytes[at..end], &mut context, sink);
            if at < end {
                at = self.hashed_run(text, at, &mut context, sink)?;
            }
        }
        self.make_room(sink)?;
        self.ascii_run(b" ", &mut context, sink);
        self.post(sink)
    }

    /// Buffers the ids of the windows that end in these bytes, up to the first one
    /// outside ASCII; says how many bytes that was, [`CHUNK`] at most.
    fn ascii_run(
        &mut self,
        bytes: &[u8],
        context: &mut Context,
        sink: &mut dyn KeySink,
    ) -> usize {
        let TrigramExtractor { ascii, buffer, item, .. } = self;
        let (item, mut full) = (*item, self.full);
        let Context { mut second, mut first } = *context;
        let mut done = bytes.len();
        for (at, &byte) in bytes.iter().enumerate() {
            let class = CLASS[usize::from(byte)];
            if class == NOT_ASCII {
                done = at;
                break;
            }
            let class = usize::from(class);
            let window = (second * SYMBOLS + first) * SYMBOLS + class;
            let slot = &mut ascii[window];
            if slot.id == UNKNOWN {
                intern(slot, window, item, sink);
            }
            buffer[full % POST_AT_MOST] = slot.id;
            full += usize::from(slot.item != item);
            slot.item = item;
            second = if class == 0 { 0 } else { first };
            first = class;
        }
        self.full = full;
        *context = Context { second, first };
        done
    }

    /// Goes on in front of a character outside ASCII: buffers the ids of windows for as
    /// long as one of their characters is outside; says where it stopped.
    fn hashed_run(
        &mut self,
        text: &str,
        start: usize,
        context: &mut Context,
        sink: &mut dyn KeySink,
    ) -> Result<usize> {
        let mut at = start;
        let mut before = context.characters();
        for c in text[start..].chars().chain([BLANK]) {
            self.make_room(sink)?;
            let folded = window::fold(c);
            let window = [before[0], before[1], folded];
            if let [Some(second), Some(first), Some(byte)] = window.map(ascii_byte) {
                *context = Context { second: class(second), first: class(first) };
                if !c.is_ascii() {
                    self.ascii_run(&[byte], context, sink);
                    at += c.len_utf8();
                }
                return Ok(at);
            }
            self.hashed_key(window::key_of(window), sink);
            before = if folded == BLANK { [BLANK; 2] } else { [before[1], folded] };
            at += c.len_utf8();
        }
        *context = Context::default();
        Ok(text.len())
    }

    /// Buffers the id of a hashed key.
    fn hashed_key(&mut self, key: i32, sink: &mut dyn KeySink) {
        if self.hashed.is_empty() {
            self.hashed = vec![Hashed { key: -1, slot: EMPTY }; HASHED];
        }
        let entry = &mut self.hashed[key.cast_unsigned() as usize % HASHED];
        if entry.key != key {
            *entry = Hashed { key, slot: EMPTY };
        }
        if entry.slot.item != self.item {
            if entry.slot.id == UNKNOWN {
                entry.slot.id = sink.key(&int4_key(key));
            }
            entry.slot.item = self.item;
            self.buffer[self.full] = entry.slot.id;
            self.full += 1;
        }
    }

    /// Posts when less than [`CHUNK`] ids fit.
    fn make_room(&mut self, sink: &mut dyn KeySink) -> Result<()> {
        if self.full > POST_AT_MOST - CHUNK { self.post(sink) } else { Ok(()) }
    }

    fn post(&mut self, sink: &mut dyn KeySink) -> Result<()> {
        let full = std::mem::take(&mut self.full);
        if full > 0 && sink.post(&self.buffer[..full])? {
            // What this item has been posted under stays marked: no need to do so again.
            self.ascii.iter_mut().for_each(|slot| slot.id = UNKNOWN);
            self.ascii[NO_WINDOW].id = 0;
            self.hashed.iter_mut().for_each(|entry| entry.slot.id = UNKNOWN);
        }
        Ok(())
    }
}

/// The two characters before the one in hand, as classes.
#[derive(Clone, Copy, Default)]
struct Context {
    second: usize,
    first: usize,
}

impl Context {
    fn characters(self) -> [char; 2] {
        [self.second, self.first].map(|class| char::from(CHARACTER[class]))
    }
}

fn ascii_byte(c: char) -> Option<u8> {
    u8::try_from(c).ok().filter(u8::is_ascii)
}

fn class(byte: u8) -> usize {
    usize::from(CLASS[usize::from(byte)])
}

/// The id of a window not seen before, unless the item in hand already has its key.
#[cold]
fn intern(slot: &mut Slot, window: usize, item: u32, sink: &mut dyn KeySink) {
    if slot.item != item {
        let [a, b, c] = [window / SYMBOLS / SYMBOLS, window / SYMBOLS, window]
            .map(|rest| CHARACTER[rest % SYMBOLS]);
        slot.id = sink.key(&int4_key(i32::from_be_bytes([0, a, b, c])));
    }
}

impl Extractor for TrigramExtractor {
    fn extract(&mut self, value: &Value<'_>, sink: &mut dyn KeySink) -> Result<()> {
        let Value::Text(text) = value else {
            return Err(Error::invalid("gin_trgm_ops takes texts only"));
        };
        self.begin_item();
        self.text(text, sink)
    }

    fn forget(&mut self) {
        self.ascii = Vec::new();
        self.hashed = Vec::new();
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.buffer)
            + self.ascii.capacity() * size_of::<Slot>()
            + self.hashed.capacity() * size_of::<Hashed>()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::{BTreeSet, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::opclass::int4_of;
    use crate::opclass::trigram::trigrams;

    /// Gives out ids and voids them after every `void_after`-th post; ids given out
    /// after that are different ones.
    #[derive(Default)]
    struct Sink {
        void_after: Option<usize>,
        posts: usize,
        first_id: KeyId,
        keys: Vec<i32>,
        known: HashMap<i32, KeyId>,
        posted: BTreeSet<i32>,
        times: usize,
    }

    impl KeySink for Sink {
        fn key(&mut self, key: &[u8]) -> KeyId {
            let key = int4_of(key.try_into().unwrap());
            *self.known.entry(key).or_insert_with(|| {
                self.keys.push(key);
                self.first_id + KeyId::try_from(self.keys.len()).unwrap() - 1
            })
        }

        fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
            assert!(ids.len() <= POST_AT_MOST);
            for &id in ids {
                let id = id.checked_sub(self.first_id).expect("an id that is not void");
                self.posted.insert(self.keys[id as usize]);
                self.times += 1;
            }
            self.posts += 1;
            let void = self.void_after.is_some_and(|n| self.posts.is_multiple_of(n));
            if void {
                self.first_id += 1_000_000;
                self.keys.clear();
                self.known.clear();
            }
            Ok(void)
        }

        fn post_null(&mut self) -> Result<()> {
            unreachable!("a text has no null keys")
        }
    }

    fn extract(
        extractor: &mut TrigramExtractor,
        text: &str,
        sink: &mut Sink,
    ) -> Vec<i32> {
        sink.posted.clear();
        extractor.extract(&Value::Text(Cow::Borrowed(text)), sink).unwrap();
        sink.posted.iter().copied().collect()
    }

    #[test]
    fn texts_have_the_keys_that_postgresql_stores() {
        let vectors = include_str!("../../../fixtures/keys/show_trgm.jsonl");
        let (mut extractor, mut sink) = (TrigramExtractor::new(), Sink::default());
        let mut count = 0;
        for line in vectors.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = vector["in"].as_str().unwrap();
            let keys: Vec<i32> =
                serde_json::from_value(vector["keys"].clone()).unwrap();
            let shown: Vec<String> =
                serde_json::from_value(vector["show_trgm"].clone()).unwrap();
            assert_eq!(extract(&mut extractor, text, &mut sink), keys, "{text:?}");
            assert_eq!(trigrams(text), keys, "{text:?}");
            assert_eq!(crate::opclass::trigram::show(&keys), shown, "{text:?}");
            count += 1;
        }
        assert_eq!(count, 190);
    }

    #[test]
    fn a_repeated_trigram_is_posted_once() {
        let (mut extractor, mut sink) = (TrigramExtractor::new(), Sink::default());
        for item in 1..=3 {
            let text = "Foo bär, foo. ".repeat(1_000);
            let keys = extract(&mut extractor, &text, &mut sink);
            assert_eq!(sink.times, item * keys.len());
        }
        sink.void_after = Some(1);
        let text: String = (0..40_000).map(|n| format!("{:x} ", n * 7919)).collect();
        let before = sink.times;
        let keys = extract(&mut extractor, &text, &mut sink);
        assert_eq!(sink.times - before, keys.len(), "though ids became void meanwhile");
    }

    #[test]
    fn tables_are_made_when_needed_and_given_back() {
        let (mut extractor, mut sink) = (TrigramExtractor::new(), Sink::default());
        let idle = extractor.memory();
        extract(&mut extractor, "plain", &mut sink);
        let ascii = extractor.memory();
        assert_eq!(ascii, idle + WINDOWS * size_of::<Slot>());
        extract(&mut extractor, "é", &mut sink);
        assert_eq!(extractor.memory(), ascii + HASHED * size_of::<Hashed>());
        extractor.forget();
        assert_eq!(extractor.memory(), idle);
    }

    #[test]
    fn item_numbers_start_over_without_losing_a_key() {
        let (mut extractor, mut sink) = (TrigramExtractor::new(), Sink::default());
        extract(&mut extractor, "one é", &mut sink);
        extractor.item = u32::MAX;
        assert_eq!(extract(&mut extractor, "one é", &mut sink), trigrams("one é"));
        assert_eq!(extractor.item, 1);
    }

    #[test]
    fn more_hashed_keys_than_the_cache_holds_are_all_found() {
        let text: String = ('\u{4e00}'..'\u{9fff}').collect();
        let text = text.clone() + &text.chars().rev().collect::<String>();
        let (mut extractor, mut sink) = (TrigramExtractor::new(), Sink::default());
        assert_eq!(extract(&mut extractor, &text, &mut sink), trigrams(&text));
    }

    proptest! {
        #[test]
        fn the_fast_way_finds_what_the_plain_way_finds(
            texts in prop::collection::vec(
                r"([a-zA-Z0-9]{1,6}|[ _.\-]{1,2}|[éßİſKΣ中文٠ñ]|\PC){0,200}",
                1..6,
            ),
            void_after in prop::option::of(1_usize..4),
        ) {
            let mut extractor = TrigramExtractor::new();
            let mut sink = Sink { void_after, ..Sink::default() };
            for text in &texts {
                prop_assert_eq!(
                    extract(&mut extractor, text, &mut sink),
                    trigrams(text),
                    "{:?}", text
                );
            }
        }
    }
}
