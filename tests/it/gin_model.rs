//! Encoder, loader and reader of `gin` against `BTreeMap<key, BTreeSet<Tid>>`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ginmill::gin::{Category, EntryEncoder, Index, Loader, check};
use ginmill::opclass::{KeyType, int4_key, int8_key};
use ginmill::tid::Tid;

use crate::gin_support::{Model, Numbers, build, read};

const COLUMNS: [KeyType; 3] = [KeyType::Int4, KeyType::Text, KeyType::Int8];

fn some_tids(numbers: &mut Numbers, most: u64) -> BTreeSet<Tid> {
    let count = 1 + numbers.below(most);
    let blocks = 1 + numbers.below(1000);
    (0..count)
        .map(|_| Tid::new(numbers.below(blocks) as u32, 1 + numbers.below(290) as u16))
        .collect()
}

fn some_model(seed: u64, columns: &[KeyType], keys: usize) -> Model {
    let mut numbers = Numbers(seed);
    let mut model = Model::new();
    for (n, key_type) in columns.iter().enumerate() {
        for _ in 0..keys {
            let value = numbers.below(1 << 40).cast_signed() - (1 << 39);
            let key = match key_type {
                KeyType::Int4 => int4_key(value as i32).to_vec(),
                KeyType::Int8 => int8_key(value).to_vec(),
                KeyType::Text => {
                    let length = [3, 8, 126, 127, 600][numbers.below(5) as usize];
                    let mut text = String::new();
                    while text.len() < length {
                        write!(text, "{:x}", numbers.below(1 << 20)).unwrap();
                    }
                    text.truncate(length);
                    text.into_bytes()
                }
            };
            let most = [1, 1, 5, 100, 3000, 9000][numbers.below(6) as usize];
            let tids = some_tids(&mut numbers, most);
            model.insert((n as u8, Category::Key, key), tids);
        }
        for category in [Category::NullKey, Category::EmptyItem, Category::NullItem] {
            let tids = some_tids(&mut numbers, 5000);
            model.insert((n as u8, category, Vec::new()), tids);
        }
    }
    model
}

#[test]
fn what_goes_in_comes_out_in_every_layout_and_fillfactor() {
    let dir = tempfile::tempdir().unwrap();
    for (n, columns) in
        [&COLUMNS[..], &COLUMNS[..1], &COLUMNS[1..2], &COLUMNS[2..], &COLUMNS[..2]]
            .into_iter()
            .enumerate()
    {
        let model = some_model(11 + n as u64, columns, 700);
        let mut sizes = Vec::new();
        for fillfactor in [100, 75, 50] {
            let (path, stats) = build(dir.path(), "model", columns, fillfactor, &model);
            let index = Index::open(&path, Some(columns)).unwrap();
            assert_eq!(read(&index).unwrap(), model);
            assert_eq!(stats.entries, model.len() as u64);
            assert_eq!(stats.pages, 1 + stats.entry_pages + stats.data_pages);
            assert_eq!(stats.bytes, std::fs::metadata(&path).unwrap().len());
            let meta = index.meta().unwrap();
            assert_eq!(u64::from(meta.n_total_pages), stats.pages);
            assert_eq!(u64::from(meta.n_entry_pages), stats.entry_pages);
            assert_eq!(u64::from(meta.n_data_pages), stats.data_pages);
            assert_eq!(meta.n_entries, model.len() as i64);
            assert_eq!((meta.version, meta.pending_head), (2, u32::MAX));
            assert!(index.pending().unwrap().is_empty());
            assert_eq!(Index::open(&path, None).unwrap().columns(), columns);
            sizes.push(stats.entry_pages);
        }
        assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
    }
}

#[test]
fn every_key_is_found_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let model = some_model(5, &COLUMNS, 900);
    let (path, stats) = build(dir.path(), "keys", &COLUMNS, 100, &model);
    assert!(stats.height >= 2);
    let index = Index::open(&path, Some(&COLUMNS)).unwrap();
    let mut block = Vec::new();
    for ((column, category, key), tids) in &model {
        let mut postings = index.posting(*column, *category, key).unwrap().unwrap();
        let mut found = Vec::new();
        while postings.next_block(&mut block).unwrap() {
            found.extend(block.iter().map(|&tid| Tid::unpack(tid)));
        }
        assert!(found.iter().eq(tids));
        let estimate = postings.estimate();
        assert!(estimate as usize >= tids.len() / 2, "{estimate} of {}", tids.len());

        if *category == Category::Key {
            let mut other = key.clone();
            *other.last_mut().unwrap() ^= 1;
            let known = model.contains_key(&(*column, Category::Key, other.clone()));
            let answer = index.posting(*column, Category::Key, &other).unwrap();
            assert_eq!(answer.is_some(), known);
        }
    }
    assert!(index.posting(3, Category::Key, b"x").unwrap().is_none());
}

#[test]
fn a_prefix_gives_its_keys_in_order_and_stops() {
    let dir = tempfile::tempdir().unwrap();
    let model = some_model(3, &COLUMNS, 2000);
    let (path, _) = build(dir.path(), "prefix", &COLUMNS, 60, &model);
    let index = Index::open(&path, Some(&COLUMNS)).unwrap();
    for prefix in ["", "a", "ab", "0", "fff", "zz"] {
        let expected: Vec<&[u8]> = model
            .keys()
            .filter(|key| key.0 == 1 && key.1 == Category::Key)
            .map(|key| key.2.as_slice())
            .filter(|key| key.starts_with(prefix.as_bytes()))
            .collect();
        let mut entries = index.prefix(1, prefix.as_bytes()).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = entries.next().unwrap() {
            assert_eq!((entry.column, entry.category), (1, Category::Key));
            found.push(entry.key.to_vec());
        }
        assert_eq!(found, expected, "{prefix}");
    }
    assert!(index.prefix(0, b"").is_err());
}

#[test]
fn seeking_gives_the_first_tid_not_below() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = Model::new();
    let mut numbers = Numbers(77);
    for (key, count) in [(1, 5u64), (2, 2000), (3, 60_000), (4, 400_000)] {
        let tids = (0..count)
            .map(|_| {
                Tid::new(numbers.below(20_000) as u32, 1 + numbers.below(290) as u16)
            })
            .collect();
        model.insert((0, Category::Key, int4_key(key).to_vec()), tids);
    }
    let (path, _) = build(dir.path(), "seek", &[KeyType::Int4], 100, &model);
    let index = Index::open(&path, None).unwrap();
    for ((column, category, key), tids) in &model {
        for stride in [1u64, 40, 3000, 300_000, 3_000_000, 60_000_000] {
            let mut postings = index.posting(*column, *category, key).unwrap().unwrap();
            let mut given = Tid::default();
            for step in 0..400 {
                let target = match step % 5 {
                    // Sometimes back, which must not move.
                    4 => Tid::unpack(given.pack() / 2),
                    _ => Tid::unpack(given.pack() + 1 + numbers.below(stride)),
                };
                postings.seek(target).unwrap();
                let after = target.max(Tid::unpack(given.pack() + 1));
                let expected = tids.range(after..).next().copied();
                assert_eq!(postings.next().unwrap(), expected, "{target} {given}");
                match expected {
                    Some(tid) => given = tid,
                    None => break,
                }
            }
        }
    }
}

/// An index with one entry per key of `keys`, each with one TID, and `big` TIDs under
/// one key more; both trees get three levels.
#[test]
fn three_level_trees_of_both_kinds_come_back() {
    const KEYS: i32 = 400_000;
    const TIDS: u64 = 7_000_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("levels");
    let columns = [KeyType::Int4];
    let mut encoder = EntryEncoder::new(&columns);
    let mut loader = Loader::create(&path, &columns, 100).unwrap();
    let mut pieces = Vec::new();
    let tid = |n: u64| Tid::new((n / 100) as u32, (n % 100) as u16 + 1).pack();
    for key in 0..KEYS {
        encoder.begin(0, Category::Key, &int4_key(key)).unwrap();
        if key == 12_345 {
            let mut next = 0;
            while next < TIDS {
                let end = TIDS.min(next + 100_003);
                let chunk: Vec<u64> = (next..end).map(|n| tid(n * 3)).collect();
                encoder.push(&chunk, &mut pieces).unwrap();
                loader.add(&pieces).unwrap();
                pieces.clear();
                next = end;
            }
        } else {
            encoder.push(&[tid(key as u64)], &mut pieces).unwrap();
        }
        encoder.end(&mut pieces).unwrap();
        if pieces.len() > 1 << 20 {
            loader.add(&pieces).unwrap();
            pieces.clear();
        }
    }
    loader.add(&pieces).unwrap();
    let (_, stats) = loader.finish().unwrap();
    assert_eq!((stats.entries, stats.height), (KEYS as u64, 3));
    assert!(stats.data_pages > 816, "{}", stats.data_pages);
    let mut damages = Vec::new();
    let seen = check(&path, None, &mut |damage| damages.push(damage)).unwrap();
    assert_eq!(damages, []);
    assert!(seen.built);
    assert_eq!(seen.postings, TIDS + KEYS as u64 - 1);

    let index = Index::open(&path, Some(&columns)).unwrap();
    let mut big = index.posting(0, Category::Key, &int4_key(12_345)).unwrap().unwrap();
    let estimate = big.estimate();
    assert!((TIDS / 2..TIDS * 2).contains(&estimate), "{estimate}");
    let mut block = Vec::new();
    let mut n = 0;
    while big.next_block(&mut block).unwrap() {
        for &got in &block {
            assert_eq!(got, tid(n * 3));
            n += 1;
        }
    }
    assert_eq!(n, TIDS);
    let mut big = index.posting(0, Category::Key, &int4_key(12_345)).unwrap().unwrap();
    for n in [1, 500_000, 500_001, 6_000_000, 6_999_999] {
        big.seek(Tid::unpack(tid(n * 3 - 1))).unwrap();
        assert_eq!(big.next().unwrap().map(Tid::pack), Some(tid(n * 3)));
    }
    big.seek(Tid::unpack(tid(TIDS * 3))).unwrap();
    assert_eq!(big.next().unwrap(), None);

    let mut entries = index.entries();
    let mut key = 0;
    while let Some(mut entry) = entries.next().unwrap() {
        assert_eq!(entry.key, int4_key(key));
        if key != 12_345 {
            let got = entry.postings.next().unwrap().map(Tid::pack);
            assert_eq!(got, Some(tid(key as u64)));
        }
        key += 1;
    }
    assert_eq!(key, KEYS);
}

#[test]
fn the_file_does_not_depend_on_how_pieces_are_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let model = some_model(8, &COLUMNS, 300);
    let mut encoder = EntryEncoder::new(&COLUMNS);
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for ((column, category, key), tids) in &model {
        encoder.begin(*column, *category, key).unwrap();
        for tid in tids {
            let mut out = Vec::new();
            encoder.push(&[tid.pack()], &mut out).unwrap();
            pieces.push(out);
        }
        let mut out = Vec::new();
        encoder.end(&mut out).unwrap();
        pieces.push(out);
    }
    let path = dir.path().join("single");
    let mut loader = Loader::create(&path, &COLUMNS, 100).unwrap();
    pieces.iter().for_each(|piece| loader.add(piece).unwrap());
    loader.finish().unwrap();
    let (other, _) = build(dir.path(), "whole", &COLUMNS, 100, &model);
    assert!(std::fs::read(path).unwrap() == std::fs::read(other).unwrap());
}

#[test]
fn keys_out_of_order_and_lists_without_an_entry_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [KeyType::Text, KeyType::Text];
    let entry = |column: u8, category, key: &[u8], tids: std::ops::Range<u64>| {
        let mut encoder = EntryEncoder::new(&columns);
        let mut pieces = Vec::new();
        let tids: Vec<u64> = tids.collect();
        encoder.begin(column, category, key).unwrap();
        encoder.push(&tids, &mut pieces).unwrap();
        encoder.end(&mut pieces).unwrap();
        pieces
    };
    let text = |column, key: &str| entry(column, Category::Key, key.as_bytes(), 1..3);
    let null = |column| entry(column, Category::NullItem, b"", 1..3);
    let mut cases = vec![
        (text(0, "b"), text(0, "a")),
        (text(0, "b"), text(0, "b")),
        (text(1, "a"), text(0, "b")),
        (null(0), text(0, "b")),
        (null(0), null(0)),
    ];
    let path = dir.path().join("order");
    for (first, second) in cases.drain(..) {
        let mut loader = Loader::create(&path, &columns, 100).unwrap();
        loader.add(&first).unwrap();
        let error = loader.add(&second).unwrap_err().to_string();
        assert!(error.starts_with("input out of order: "), "{error}");
    }
    let tree = entry(0, Category::Key, b"x", 2049..4090);
    let tree = [&tree[..], &entry(0, Category::Key, b"x", 1..2048)].concat();
    let mut loader = Loader::create(&path, &columns, 100).unwrap();
    assert!(loader.add(&tree[..tree.len() - 1]).is_err());

    let big: Vec<u64> = (1..2000).chain(2049..4000).collect();
    let mut encoder = EntryEncoder::new(&columns);
    let mut pieces = Vec::new();
    encoder.begin(0, Category::Key, b"k").unwrap();
    encoder.push(&big, &mut pieces).unwrap();
    encoder.end(&mut pieces).unwrap();
    // The entry alone, the leaf alone, the leaf twice.
    let leaf = pieces.len() - 4 - 16;
    let mut loader = Loader::create(&path, &columns, 100).unwrap();
    assert!(loader.add(&pieces[leaf..]).is_err());
    let mut loader = Loader::create(&path, &columns, 100).unwrap();
    loader.add(&pieces[..leaf]).unwrap();
    assert!(loader.finish().is_err());
    let mut loader = Loader::create(&path, &columns, 100).unwrap();
    loader.add(&pieces[..leaf]).unwrap();
    assert!(loader.add(&pieces[..leaf]).is_err());
}
