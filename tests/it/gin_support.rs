//! Builds small and large index files for the tests of `gin`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ginmill::gin::{Category, EntryEncoder, Index, Loader, TreeStats};
use ginmill::opclass::KeyType;
use ginmill::tid::Tid;

/// Column, category, key in memcmp order.
pub type Key = (u8, Category, Vec<u8>);
/// What an index holds.
pub type Model = BTreeMap<Key, BTreeSet<Tid>>;

/// Writes the model to `name` in `dir`.
pub fn build(
    dir: &Path,
    name: &str,
    columns: &[KeyType],
    fillfactor: u8,
    model: &Model,
) -> (PathBuf, TreeStats) {
    let path = dir.join(name);
    let mut encoder = EntryEncoder::new(columns);
    let mut loader = Loader::create(&path, columns, fillfactor).unwrap();
    let mut pieces = Vec::new();
    for ((column, category, key), tids) in model {
        let tids: Vec<u64> = tids.iter().map(|tid| tid.pack()).collect();
        encoder.begin(*column, *category, key).unwrap();
        encoder.push(&tids, &mut pieces).unwrap();
        encoder.end(&mut pieces).unwrap();
        if pieces.len() > 30_000 {
            loader.add(&pieces).unwrap();
            pieces.clear();
        }
    }
    loader.add(&pieces).unwrap();
    let (_, stats) = loader.finish().unwrap();
    (path, stats)
}

/// Reads everything back.
pub fn read(index: &Index) -> ginmill::Result<Model> {
    let mut model = Model::new();
    let mut entries = index.entries();
    while let Some(mut entry) = entries.next()? {
        let mut tids = BTreeSet::new();
        while let Some(tid) = entry.postings.next()? {
            tids.insert(tid);
        }
        model.insert((entry.column, entry.category, entry.key.to_vec()), tids);
    }
    Ok(model)
}

/// A reproducible stream of numbers.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
