//! The checker of `gin`: sound files pass, every flipped byte and every patched field
//! is found, and hostile pages are answered, not obeyed.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::{Path, PathBuf};

use ginmill::gin::layout::{CHECKSUM_AT, PAGE_SIZE, checksum};
use ginmill::gin::{Category, CheckStats, Damage, Index, check};
use ginmill::opclass::{KeyType, int4_key};
use ginmill::tid::Tid;
use proptest::prelude::*;

use crate::gin_support::{Model, Numbers, build, read};

const COLUMNS: [KeyType; 2] = [KeyType::Int4, KeyType::Text];

fn run(path: &Path) -> (CheckStats, Vec<Damage>) {
    let mut damages = Vec::new();
    let stats =
        check(path, Some(&COLUMNS), &mut |damage| damages.push(damage)).unwrap();
    assert_eq!(stats.damages, damages.len() as u64);
    (stats, damages)
}

/// Two columns, two levels of entry pages, a posting tree of two levels, inline lists,
/// all categories.
fn model() -> Model {
    let mut numbers = Numbers(99);
    let mut model = Model::new();
    let mut tids = |count: u64| {
        (0..count)
            .map(|_| {
                Tid::new(numbers.below(5000) as u32, 1 + numbers.below(200) as u16)
            })
            .collect()
    };
    for key in 0..300 {
        model.insert((0, Category::Key, int4_key(key * 7).to_vec()), tids(4));
    }
    model.insert((0, Category::Key, int4_key(-5).to_vec()), tids(12_000));
    for category in [Category::NullKey, Category::EmptyItem, Category::NullItem] {
        model.insert((0, category, Vec::new()), tids(9));
        model.insert((1, category, Vec::new()), tids(3));
    }
    for word in ["", "abc", "abcd", "zebra"] {
        model.insert((1, Category::Key, word.as_bytes().to_vec()), tids(40));
    }
    model.insert((1, Category::Key, vec![b'k'; 500]), tids(1));
    model.insert((1, Category::Key, vec![b'l'; 5000]), tids(2));
    model
}

fn sound() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = build(dir.path(), "sound", &COLUMNS, 100, &model());
    let bytes = std::fs::read(&path).unwrap();
    (dir, path, bytes)
}

fn reseal(bytes: &mut [u8]) {
    for (block, page) in bytes.chunks_exact_mut(PAGE_SIZE).enumerate() {
        let sum = checksum((&*page).try_into().unwrap(), block as u32);
        page[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn a_sound_file_passes_and_is_counted() {
    let (_dir, path, _) = sound();
    let (stats, damages) = run(&path);
    assert_eq!(damages, []);
    let model = model();
    assert_eq!(stats.entries, model.len() as u64);
    assert_eq!(
        stats.postings,
        model.values().map(|tids| tids.len() as u64).sum::<u64>()
    );
    assert!(stats.built && stats.checksums);
    assert!(stats.entry_pages >= 3 && stats.data_pages >= 3, "{stats:?}");
    assert_eq!(stats.pages, 1 + stats.entry_pages + stats.data_pages);

    let dir = tempfile::tempdir().unwrap();
    let (path, _) = build(dir.path(), "empty", &COLUMNS, 100, &Model::new());
    let (stats, damages) = run(&path);
    assert_eq!((damages, stats.pages, stats.entries), (vec![], 2, 0));
    assert_eq!(read(&Index::open(&path, None).unwrap()).unwrap(), Model::new());
}

#[test]
fn every_flipped_byte_is_found() {
    let (_dir, path, mut bytes) = sound();
    let mut numbers = Numbers(4);
    for at in 0..bytes.len() {
        // Every byte of the first page of each kind would take long: every eleventh.
        let in_page = at % PAGE_SIZE;
        if at % 11 != 0 && (40..=PAGE_SIZE - 16).contains(&in_page) {
            continue;
        }
        let before = bytes[at];
        bytes[at] ^= 1 + numbers.below(255) as u8;
        std::fs::write(&path, &bytes).unwrap();
        let (_, damages) = run(&path);
        let block = (at / PAGE_SIZE) as u32;
        assert!(damages.iter().any(|damage| damage.block == block), "byte {at}");
        bytes[at] = before;
    }
}

#[test]
fn a_cut_or_longer_file_and_a_page_of_zeros_are_found() {
    let (_dir, path, bytes) = sound();
    for length in [0, 1, PAGE_SIZE, PAGE_SIZE + 1, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert_ne!(run(&path).1, [], "{length}");
    }
    let mut longer = bytes.clone();
    longer.resize(bytes.len() + PAGE_SIZE, 0);
    std::fs::write(&path, &longer).unwrap();
    let found = run(&path).1;
    assert!(
        found
            .iter()
            .all(|d| d.block as usize == bytes.len() / PAGE_SIZE || d.block == 0)
    );
    assert_ne!(found, []);
    for block in 0..bytes.len() / PAGE_SIZE {
        let mut zeroed = bytes.clone();
        zeroed[block * PAGE_SIZE..(block + 1) * PAGE_SIZE].fill(0);
        std::fs::write(&path, &zeroed).unwrap();
        assert_ne!(run(&path).1, [], "{block}");
    }
}

/// Blocks of the sound file by their flags.
fn blocks(bytes: &[u8], flags: u16) -> Vec<usize> {
    let of = |page: &[u8]| u16::from_le_bytes([page[8190], page[8191]]);
    let pages = bytes.chunks_exact(PAGE_SIZE).enumerate();
    pages.filter(|(_, page)| of(page) == flags).map(|(block, _)| block).collect()
}

#[test]
fn a_patched_field_is_named_even_when_the_checksum_is_made_to_fit() {
    let (_dir, path, bytes) = sound();
    let leaves = blocks(&bytes, 2);
    let data = blocks(&bytes, 0x83);
    let (root, tree) = (1, blocks(&bytes, 1)[0]);
    let (first, last) = (leaves[0], leaves[leaves.len() - 1]);
    let tuple = |page: usize, item: usize| {
        let at = page * PAGE_SIZE + 24 + (item - 1) * 4;
        let word = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        (word & 0x7fff) as usize
    };
    // Item 1 of the first leaf is the key -5 with the posting tree, then come 0, 7, …
    let key_of = |item| tuple(first, item) + 12;
    let cases: &[(&str, usize, usize, &[u8])] = &[
        ("no right link on the last page of a level", last, 8184, &[9, 0, 0, 0]),
        ("right link", first, 8184, &[255; 4]),
        ("pd_upper 8184", data[data.len() - 1], 14, &[0, 31]),
        ("page flags that GIN uses here", data[0], 8190, &[3]),
        ("page flags that GIN uses here", first, 8190, &[6]),
        ("a finished split", first, 8190, &[0x42]),
        ("maxoff 0", data[0], 8188, &[1]),
        ("pd_prune_xid 0", first, 20, &[1]),
        ("a normal line pointer", first, 24, &[0; 4]),
        ("whole line pointers", last, 12, &[bytes[last * PAGE_SIZE + 12] + 1]),
        ("the next tuple at", first, 28, &bytes[first * PAGE_SIZE + 24..][..4]),
        ("a key above", first, key_of(2), &100_000i32.to_le_bytes()),
        ("column 1 to 2", first, tuple(first, 2) + 8, &[3]),
        ("with zeros as padding", first, tuple(first, 2) + 10, &[1]),
        ("TIDs as the tuple's header says", first, tuple(first, 2) + 4, &[5]),
        ("an inline list at 16", first, tuple(first, 2), &[1]),
        ("an inline list at 16", first, tuple(first, 2) + 2, &[24]),
        ("a TID above (0,0)", first, tuple(first, 2) + 20, &[0, 0]),
        ("last key", root, tuple(root, 1) + 12, &[1, 2, 0, 0]),
        ("a downlink of 16 bytes with offset 0", root, tuple(root, 1) + 4, &[1]),
        ("a link to a page of its own", root, tuple(root, 1) + 2, &[99]),
        ("a link to a page of its own", root, tuple(root, 1) + 2, &[1]),
        ("a page of the entry tree", root, tuple(root, 1) + 2, &[data[0] as u8]),
        ("a link to a page of its own", first, tuple(first, 1) + 2, &[first as u8]),
        ("right bound", data[0], 24, &[0, 0, 1]),
        ("right bound (0,0)", data[data.len() - 1], 28, &[1]),
        ("zeros behind the right bound", data[0], 30, &[1]),
        ("a TID above", data[1], 32, &[0; 6]),
        ("whole segments", data[0], 12, &[41]),
        ("shortest form", data[0], 40, &[0]),
        ("pd_lower", tree, 12, &[33]),
        ("posting items", tree, 8188, &[0]),
        ("key (0,0) at the end of a level", tree, 32 + 10 * data.len() - 2, &[1]),
        ("right bound", tree, 32 + 10 - 2, &[7]),
        ("bytes of metadata", 0, 12, &[96]),
        ("pages on the metapage", 0, 48, &[200]),
        ("entry pages on the metapage", 0, 52, &[200]),
        ("data pages on the metapage", 0, 56, &[200]),
        ("entries on the metapage", 0, 64, &[1]),
        ("version 0 to 2", 0, 72, &[3]),
        ("in the padding", 0, 76, &[3]),
        ("pending tail", 0, 28, &[1]),
        ("pending pages", 0, 36, &[1]),
        ("no free bytes and no tuples", 0, 32, &[1]),
        ("a link to a page of its own", 0, 24, &[1, 0, 0, 0]),
        ("zeros between pd_lower and pd_upper", 0, 4000, &[1]),
    ];
    for (n, (expected, block, at, patch)) in cases.iter().enumerate() {
        let mut patched = bytes.clone();
        let start = block * PAGE_SIZE + at;
        patched[start..start + patch.len()].copy_from_slice(patch);
        assert!(patched != bytes, "case {n} changes something");
        reseal(&mut patched);
        std::fs::write(&path, &patched).unwrap();
        let (_, damages) = run(&path);
        let named = |damage: &Damage| {
            damage.what.contains(expected) && damage.what.starts_with("expected ")
        };
        assert!(
            damages.iter().any(named),
            "case {n}, block {block}, byte {at}: {expected}, got {damages:?}"
        );
    }
}

/// Everything that reads, on one file; the answers do not matter, coming back does.
fn read_everything(path: &Path) {
    for columns in [Some(&COLUMNS[..]), Some(&COLUMNS[..1]), None] {
        let stats = check(path, columns, &mut |_| ());
        assert!(stats.is_ok());
        let Ok(index) = Index::open(path, columns) else { continue };
        let _ = index.pending();
        let _ = read(&index);
        for (column, category, key) in model().keys().step_by(40) {
            if let Ok(Some(mut postings)) = index.posting(*column, *category, key) {
                let _ = postings.estimate();
                let _ = postings.seek(Tid::new(2000, 1));
                let mut block = Vec::new();
                while let Ok(true) = postings.next_block(&mut block) {}
            }
        }
        if let Ok(mut entries) = index.prefix(1, b"a") {
            while let Ok(Some(_)) = entries.next() {}
        }
        for block in 0..index.pages() {
            let _ = index.page(block);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_give_errors_or_values(
        seed in any::<u64>(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), 0..3u8),
            1..12,
        ),
        sealed in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = build(dir.path(), "hostile", &COLUMNS, 100, &model());
        let mut bytes = std::fs::read(&path).unwrap();
        let mut numbers = Numbers(seed | 1);
        for (place, value, kind) in edits {
            let page = place.index(bytes.len() / PAGE_SIZE) * PAGE_SIZE;
            // Headers, the first line pointers and items, the special area; or anywhere.
            let at = match kind {
                0 => numbers.below(80),
                1 => 8184 + numbers.below(8),
                _ => numbers.below(PAGE_SIZE as u64),
            } as usize;
            bytes[page + at] = value;
        }
        if sealed {
            reseal(&mut bytes);
        } else {
            for page in bytes.chunks_exact_mut(PAGE_SIZE) {
                page[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        read_everything(&path);
    }

    #[test]
    fn arbitrary_pages_give_errors_or_values(
        pages in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 200), any::<u16>(), 0..6u32),
            1..6,
        ),
        small in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arbitrary");
        let mut bytes = Vec::new();
        for (n, (filling, flags, right)) in pages.iter().enumerate() {
            let mut page = vec![0; PAGE_SIZE];
            for (at, byte) in page.iter_mut().enumerate() {
                let byte_at = filling[at % filling.len()];
                *byte = if small { byte_at % 8 } else { byte_at };
            }
            // A header and special area that lets the reader in.
            page[8..24].copy_from_slice(&[
                0, 0, 0, 0, 24 + 4 * (filling[0] % 56), 0, filling[1], 16 + filling[2] % 16,
                0xf8, 0x1f, 4, 0x20, 0, 0, 0, 0,
            ]);
            page[8184..8188].copy_from_slice(&right.to_le_bytes());
            let kind = [2, 0, 0x83, 1, 0x10][usize::from(*flags) % 5];
            let kind: u16 = if n == 0 { 8 } else { kind };
            page[8190..8192].copy_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&page);
        }
        std::fs::write(&path, &bytes).unwrap();
        read_everything(&path);
    }
}
