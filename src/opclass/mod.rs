//! Operator classes: how a value becomes keys, and how a query becomes a tree of keys.
//!
//! A key is handed on as bytes whose plain byte order is the order PostgreSQL uses for
//! that class: text as it is, integers big-endian with the sign bit flipped
//! ([`int4_key`], [`int8_key`]). Everything below sorts with `memcmp`; only the GIN
//! writer turns a key back into the datum on disk ([`KeyType`]).
//!
//! **Extraction is the hot path.** A worker owns one [`Extractor`] per index column. It
//! interns each key once with [`KeySink::key`], which gives a small number, the
//! [`KeyId`], and reports the numbers of an item's keys with [`KeySink::post`]. It may
//! cache what leads to a number (raw token → key id) for as long as the ids live: until
//! `post` says that they are void, or [`Extractor::forget`] is called, because the
//! accumulator behind the sink wrote its lists out and began anew.
//!
//! An item that posts nothing gets GIN's "empty item" category from the caller; a null
//! value never reaches an extractor.
//!
//! To add a class: one file with a type that implements [`OpClass`], one line in [`ALL`].

use crate::document::{Value, ValueKind};
use crate::error::Result;

pub mod array;
pub mod ctype;
pub mod jsonb;
pub mod trigram;
pub mod tsvector;

/// Every operator class; drives arguments, help texts and contract tests.
pub static ALL: &[&dyn OpClass] = &[
    &tsvector::TsvectorOps,
    &trigram::TrigramOps,
    &jsonb::JsonbOps,
    &jsonb::JsonbPathOps,
    &array::ArrayOps,
];

/// The class of that name.
pub fn find(name: &str) -> Option<&'static dyn OpClass> {
    ALL.iter().copied().find(|class| class.name() == name)
}

/// What a key is on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyType {
    /// PostgreSQL `text`: the key bytes themselves.
    Text,
    /// `int4`: key bytes as [`int4_key`] makes them.
    Int4,
    /// `int8`: key bytes as [`int8_key`] makes them.
    Int8,
}

/// Number of an interned key, dense from 0, valid until the sink voids it.
pub type KeyId = u32;

/// Ids an extractor may hold back before it must [`KeySink::post`] them.
pub const POST_AT_MOST: usize = 256;

/// Where an extractor puts an item's keys.
pub trait KeySink {
    /// The number of a key (ordinary category); does not yet post it.
    fn key(&mut self, key: &[u8]) -> KeyId;

    /// Posts the current item under each of these keys; duplicates are dropped here.
    /// Call it at least every [`POST_AT_MOST`] ids and once at the item's end. `true`
    /// means that all ids given out so far are void: forget every cached one.
    fn post(&mut self, ids: &[KeyId]) -> Result<bool>;

    /// Tells what the extractor holds now, where that grows with one item; it counts
    /// against the memory that the keys may take. Call it in front of a post.
    fn holds(&mut self, _bytes: usize) {}

    /// Posts the current item under the "null key" category (arrays with null elements).
    fn post_null(&mut self) -> Result<()>;
}

/// Turns the values of one index column into keys; owned by one worker.
pub trait Extractor: Send {
    /// Posts all keys of one value. Fails with `ErrorKind::Value` where PostgreSQL
    /// refuses the value; what was posted before then stays posted.
    fn extract(&mut self, value: &Value<'_>, sink: &mut dyn KeySink) -> Result<()>;

    /// All ids are void: empty the caches, give their memory back.
    fn forget(&mut self);

    /// Bytes of memory held by caches and buffers now.
    fn memory(&self) -> usize;

    /// Tokens left out since the last call because PostgreSQL leaves them out (lexemes
    /// over its length limit); counted in the report.
    fn take_skipped(&mut self) -> u64 {
        0
    }
}

/// An operator class: value → keys, query → tree of keys.
pub trait OpClass: Send + Sync {
    /// PostgreSQL's name, as in `CREATE INDEX … USING gin (column name)`.
    fn name(&self) -> &'static str;

    /// One line for help texts.
    fn summary(&self) -> &'static str;

    /// The keys' type on disk, for values of this kind; `config` as in
    /// [`OpClass::extractor`].
    fn key_type(&self, kind: ValueKind, config: Option<&str>) -> KeyType;

    /// Whether values of this kind can be indexed.
    fn accepts(&self, kind: ValueKind) -> bool;

    /// A fresh extractor; `config` is the text search configuration where one is named.
    /// Fails for an unknown configuration, or one where none is taken.
    fn extractor(&self, config: Option<&str>) -> Result<Box<dyn Extractor>>;

    /// The operators that [`OpClass::query`] takes, as PostgreSQL spells them.
    fn operators(&self) -> &'static [&'static str];

    /// The keys that `column operator argument` needs. For `@@` on a tsvector the
    /// argument is a tsquery in PostgreSQL's text form.
    fn query(
        &self,
        config: Option<&str>,
        operator: &str,
        argument: &Argument,
    ) -> Result<KeyQuery>;
}

/// The right-hand side of an operator.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A string: pattern, JSON text, jsonpath, tsquery.
    Text(String),
    /// `text[]`, with nulls.
    Texts(Vec<Option<String>>),
    /// `int[]` or `bigint[]`, with nulls.
    Integers(Vec<Option<i64>>),
}

/// What an index must be asked.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyQuery {
    /// Which keys, combined how.
    pub expr: KeyExpr,
    /// GIN's search mode.
    pub mode: SearchMode,
    /// Whether a match of `expr` must still be tested on the document itself.
    pub recheck: bool,
}

/// GIN's search modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchMode {
    /// Only items that have at least one of the keys.
    Default,
    /// These, and items without keys.
    IncludeEmpty,
    /// Every item whose value is not null.
    All,
}

/// A tree over keys; `Maybe` marks a part that the keys alone cannot decide.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyExpr {
    /// Items with this key.
    Key(Vec<u8>),
    /// Items with any key that starts with these bytes.
    Prefix(Vec<u8>),
    /// Items under the "null key" category.
    NullKey,
    /// Items with every one; of nothing: all items.
    And(Vec<KeyExpr>),
    /// Items with any one; of nothing: no item.
    Or(Vec<KeyExpr>),
    /// Items without.
    Not(Box<KeyExpr>),
    /// Items with at least so many of the parts (similarity of trigrams).
    AtLeast(u32, Vec<KeyExpr>),
    /// Everything; the recheck decides.
    Maybe,
}

/// The key of an `int4`: big-endian with the sign bit flipped.
pub const fn int4_key(value: i32) -> [u8; 4] {
    (value.cast_unsigned() ^ 0x8000_0000).to_be_bytes()
}

/// Reverses [`int4_key`].
pub const fn int4_of(key: [u8; 4]) -> i32 {
    (u32::from_be_bytes(key) ^ 0x8000_0000).cast_signed()
}

/// The key of an `int8`.
pub const fn int8_key(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// Reverses [`int8_key`].
pub const fn int8_of(key: [u8; 8]) -> i64 {
    (u64::from_be_bytes(key) ^ (1 << 63)).cast_signed()
}
