//! Raw token → key id, so that the work on a word is done once per distinct word.
//!
//! One flat table with open addressing. A slot holds the token itself where it is short,
//! which nearly all are, so that a hit is one comparison of 16 bytes in one cache line;
//! of a longer token it holds the hash and its place in an arena:
//!
//! ```text
//! short  byte 0 … 14: the token, padded with zeros    byte 15: class << 4 | length
//! long   byte 0 … 7: hash   8 … 11: offset   12 … 13: length   byte 15: 0x80 | class << 4
//! ```
//!
//! A slot also has the number of the last item it was posted for, so that a word's
//! repetition inside an item costs the probe and nothing else.

use std::hash::BuildHasher;

use super::config::DictionaryClass;
use crate::opclass::{KeyId, POST_AT_MOST};

/// The id of tokens that have no key: stop words.
pub(super) const NO_KEY: KeyId = KeyId::MAX;

/// The longest token kept in its slot.
const SHORT_MAX: usize = 15;
const LONG: u64 = 0x80;
/// Slots of a fresh table; a power of two.
const SLOTS_AT_FIRST: usize = 256;

/// A token as a slot holds it; all zero in an empty slot.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Key {
    low: u64,
    high: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: Key,
    id: KeyId,
    item: u32,
}

/// See the head of this file.
pub(super) struct TokenCache {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    used: usize,
    /// The bytes of long tokens.
    arena: Vec<u8>,
    /// Number of the item in hand, from 1.
    item: u32,
    seed: [u64; 2],
}

/// What the cache knows of a token.
pub(super) enum Found {
    /// Posted already for this item, or without a key.
    Nothing,
    /// To be posted; will be `Nothing` from now on.
    Post(KeyId),
    /// Unknown: [`TokenCache::insert`] it there.
    Vacant(Vacant),
}

/// Where an unknown token belongs.
#[derive(Clone, Copy)]
pub(super) struct Vacant {
    slot: usize,
    key: Key,
    hash: u64,
}

impl TokenCache {
    pub(super) fn new() -> TokenCache {
        // Colliding tokens must not be for a sender of mail to choose.
        let random = foldhash::quality::RandomState::default();
        TokenCache {
            slots: Vec::new(),
            used: 0,
            arena: Vec::new(),
            item: 0,
            seed: [random.hash_one(0) | 1, random.hash_one(1) | 1],
        }
    }

    /// A new item is in hand: every token is to be posted again.
    pub(super) fn next_item(&mut self) {
        self.item = self.item.wrapping_add(1);
        if self.item == 0 {
            self.slots.iter_mut().for_each(|slot| slot.item = 0);
            self.item = 1;
        }
    }

    /// Looks up the token `text[start..end]`.
    #[inline]
    pub(super) fn find(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        class: DictionaryClass,
    ) -> Found {
        let len = end - start;
        let long = len > SHORT_MAX;
        let (key, hash) = if long {
            self.long_key(&text[start..end], class)
        } else {
            let key = short_key(text, start, len, class);
            (key, self.hash(key))
        };
        if self.slots.is_empty() {
            return Found::Vacant(Vacant { slot: 0, key, hash });
        }
        let mask = self.slots.len() - 1;
        let mut number = hash as usize & mask;
        loop {
            let slot = &self.slots[number];
            let equal = if long {
                slot.key.low == key.low
                    && slot.key.high >> 32 == key.high >> 32
                    && self.long_token(slot.key) == &text[start..end]
            } else {
                slot.key == key
            };
            if equal {
                let (id, posted) = (slot.id, slot.item == self.item);
                if posted || id == NO_KEY {
                    return Found::Nothing;
                }
                self.slots[number].item = self.item;
                return Found::Post(id);
            }
            if slot.key == Key::default() {
                return Found::Vacant(Vacant { slot: number, key, hash });
            }
            number = (number + 1) & mask;
        }
    }

    /// Adds a token that was not found, as posted for the item in hand. Nothing may have
    /// been inserted since it was looked for.
    pub(super) fn insert(&mut self, vacant: Vacant, token: &[u8], id: KeyId) {
        let Vacant { mut slot, mut key, hash } = vacant;
        if token.len() > SHORT_MAX {
            let Ok(offset) = u32::try_from(self.arena.len()) else {
                return; // 4 GB of long words: the rest is looked up each time
            };
            key.high |= u64::from(offset);
            self.arena.extend_from_slice(token);
        }
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
            slot = self.vacant_from(hash);
        }
        self.slots[slot] = Slot { key, id, item: self.item };
        self.used += 1;
    }

    /// Forgets every token and gives the memory back.
    pub(super) fn clear(&mut self) {
        self.slots = Vec::new();
        self.arena = Vec::new();
        self.used = 0;
    }

    /// Bytes held. Growing holds the old and the new table at a time: that is counted
    /// before it comes.
    pub(super) fn memory(&self) -> usize {
        let grows = (self.used + POST_AT_MOST) * 4 >= self.slots.len() * 3;
        let tables = if grows { 3 } else { 1 };
        tables * self.slots.capacity() * size_of::<Slot>() + self.arena.capacity()
    }

    fn grow(&mut self) {
        let len = (2 * self.slots.len()).max(SLOTS_AT_FIRST);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); len]);
        for slot in old {
            if slot.key != Key::default() {
                let hash = if slot.key.high >> 56 & LONG != 0 {
                    slot.key.low
                } else {
                    self.hash(slot.key)
                };
                let number = self.vacant_from(hash);
                self.slots[number] = slot;
            }
        }
    }

    fn vacant_from(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut number = hash as usize & mask;
        while self.slots[number].key != Key::default() {
            number = (number + 1) & mask;
        }
        number
    }

    #[inline]
    fn hash(&self, key: Key) -> u64 {
        fold(key.low ^ self.seed[0], key.high ^ self.seed[1])
    }

    #[cold]
    fn long_key(&self, token: &[u8], class: DictionaryClass) -> (Key, u64) {
        let mut hash = token.len() as u64 ^ self.seed[0];
        for chunk in token.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = fold(hash ^ u64::from_le_bytes(word), self.seed[1]);
        }
        let high = (LONG | (class as u64) << 4) << 56 | (token.len() as u64) << 32;
        (Key { low: hash, high }, hash)
    }

    fn long_token(&self, key: Key) -> &[u8] {
        let offset = key.high as u32 as usize;
        let len = usize::from((key.high >> 32) as u16);
        &self.arena[offset..offset + len]
    }
}

/// Multiplies and folds the halves of the product together.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn short_key(text: &[u8], start: usize, len: usize, class: DictionaryClass) -> Key {
    let bytes: [u8; 16] = match text.get(start..start + 16) {
        Some(bytes) => bytes.try_into().expect("16 bytes"),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..start + len]);
            bytes
        }
    };
    let token = u128::from_le_bytes(bytes) & ((1 << (8 * len)) - 1);
    let tag = (class as u64) << 4 | len as u64;
    Key { low: token as u64, high: (token >> 64) as u64 | tag << 56 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key id of a token, looked up and inserted as `next` if unknown.
    fn id(
        cache: &mut TokenCache,
        token: &str,
        class: DictionaryClass,
        next: KeyId,
    ) -> KeyId {
        cache.next_item();
        match cache.find(token.as_bytes(), 0, token.len(), class) {
            Found::Nothing => NO_KEY,
            Found::Post(id) => id,
            Found::Vacant(vacant) => {
                cache.insert(vacant, token.as_bytes(), next);
                next
            }
        }
    }

    #[test]
    fn tokens_of_every_length_are_found_again_and_kept_apart() {
        let mut cache = TokenCache::new();
        let tokens: Vec<String> = (1..100)
            .flat_map(|len| {
                (0..20).map(move |last| format!("{}{last:02}", "x".repeat(len)))
            })
            .collect();
        for round in 0..2 {
            for (number, token) in tokens.iter().enumerate() {
                let number = KeyId::try_from(number).unwrap();
                let next = if round == 0 { number } else { 9999 };
                assert_eq!(
                    id(&mut cache, token, DictionaryClass::Simple, next),
                    number
                );
            }
        }
        let (short, long) = ("x00", &"x".repeat(30));
        assert_eq!(id(&mut cache, short, DictionaryClass::Word, 5000), 5000);
        assert_eq!(id(&mut cache, long, DictionaryClass::Word, 5001), 5001);
        assert_eq!(id(&mut cache, long, DictionaryClass::AsciiWord, 5002), 5002);
        assert_eq!(id(&mut cache, long, DictionaryClass::Word, 0), 5001);
        let memory = cache.memory();
        assert!(memory >= 2000 * 24, "{memory}");
        cache.clear();
        assert_eq!(cache.memory(), 0);
        assert_eq!(id(&mut cache, "x00", DictionaryClass::Simple, 7), 7);
    }

    #[test]
    fn a_token_is_posted_once_per_item_and_a_stop_word_never() {
        let mut cache = TokenCache::new();
        let find = |cache: &mut TokenCache| match cache.find(
            b"a b",
            2,
            3,
            DictionaryClass::Word,
        ) {
            Found::Nothing => "nothing",
            Found::Post(_) => "post",
            Found::Vacant(vacant) => {
                cache.insert(vacant, b"b", 3);
                "vacant"
            }
        };
        cache.next_item();
        assert_eq!([find(&mut cache), find(&mut cache)], ["vacant", "nothing"]);
        cache.next_item();
        assert_eq!([find(&mut cache), find(&mut cache)], ["post", "nothing"]);
        cache.item = u32::MAX;
        cache.next_item();
        assert_eq!([find(&mut cache), find(&mut cache)], ["post", "nothing"]);
        assert_eq!(id(&mut cache, "the", DictionaryClass::Word, NO_KEY), NO_KEY);
        assert_eq!(id(&mut cache, "the", DictionaryClass::Word, 1), NO_KEY);
    }

    #[test]
    fn a_slot_has_24_bytes() {
        assert_eq!(size_of::<Slot>(), 24);
    }
}
