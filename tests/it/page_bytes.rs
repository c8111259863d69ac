//! Tiny index files, spelled out byte by byte.
//!
//! Every byte that is not listed is zero. Checksums are listed where PostgreSQL's own
//! `page_checksum()` has given them; elsewhere they are computed.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;

use ginmill::gin::Category;
use ginmill::gin::layout::{CHECKSUM_AT, PAGE_SIZE, checksum};
use ginmill::opclass::{KeyType, int4_key};
use ginmill::tid::Tid;

use crate::gin_support::{Model, build};

use Category::{EmptyItem, Key, NullItem, NullKey};
use KeyType::{Int4, Int8, Text};

/// Column, category, key, TIDs.
type Line<'a> = (u8, Category, &'a [u8], &'a [(u32, u16)]);

fn file(columns: &[KeyType], entries: &[Line<'_>]) -> Vec<u8> {
    let mut model = Model::new();
    for (column, category, key, tids) in entries {
        let tids =
            tids.iter().map(|&(block, offset)| Tid::new(block, offset)).collect();
        model.insert((*column, *category, key.to_vec()), tids);
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = build(dir.path(), "tiny", columns, 100, &model);
    std::fs::read(path).unwrap()
}

/// The page must have these bytes, a fitting checksum, and zeros everywhere else.
fn assert_page(file: &[u8], block: usize, parts: &[(usize, &[u8])]) {
    let page = &file[block * PAGE_SIZE..(block + 1) * PAGE_SIZE];
    let mut expected = vec![0; PAGE_SIZE];
    for (at, bytes) in parts {
        expected[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let sum = checksum(page.try_into().unwrap(), block as u32);
    expected[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_le_bytes());
    for (at, (got, expected)) in page.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "block {block}, byte {at}");
    }
}

/// Header bytes 16 to 23: special 8184, 8192 bytes of version 4, no prune xid.
const SPECIAL: [u8; 8] = [0xf8, 0x1f, 0x04, 0x20, 0, 0, 0, 0];
/// Right link none, maxoff 0, flags LEAF.
const LEAF: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0];

#[test]
fn an_empty_index_is_two_pages_with_postgresqls_checksums() {
    let file = file(&[Int4], &[]);
    assert_eq!(file.len(), 2 * PAGE_SIZE);
    assert_page(
        &file,
        0,
        &[
            (8, &29982u16.to_le_bytes()),
            (12, &[80, 0, 0xf8, 0x1f]), // lower 80, upper 8184
            (16, &SPECIAL),
            (24, &[0xff; 8]),                // no pending list
            (48, &[2, 0, 0, 0, 1, 0, 0, 0]), // two pages, one of them an entry page
            (72, &[2]),                      // version
            (8184, &[0xff, 0xff, 0xff, 0xff, 0, 0, 8, 0]), // META
        ],
    );
    assert_eq!(file[CHECKSUM_AT..CHECKSUM_AT + 2], 29982u16.to_le_bytes());
    let root = &file[PAGE_SIZE..];
    assert_page(&file, 1, &[(12, &[24, 0, 0xf8, 0x1f]), (16, &SPECIAL), (8184, &LEAF)]);
    assert_eq!(root[CHECKSUM_AT..CHECKSUM_AT + 2], 27255u16.to_le_bytes());
}

#[test]
fn int4_keys_and_the_null_categories_of_a_single_column() {
    let file = file(
        &[Int4],
        &[
            (0, Key, &int4_key(2), &[(0, 1), (0, 2), (0, 5)]),
            (0, NullKey, b"", &[(0, 5)]),
        ],
    );
    assert_page(
        &file,
        1,
        &[
            (12, &[32, 0, 0xb8, 0x1f]), // two line pointers; upper 8120
            (16, &SPECIAL),
            (24, &[0xd8, 0x9f, 0x40, 0]), // item 1: offset 8152, length 32
            (28, &[0xb8, 0x9f, 0x40, 0]), // item 2: offset 8120, length 32
            // Null key: list at 18, one TID, size 32, has nulls; bitmap; category 1.
            (8120, &[0, 0x80, 18, 0, 1, 0, 0x20, 0x80]),
            (8136, &[1, 0, 0, 0, 0, 0, 5, 0, 0, 0]), // category, (0,5), no differences
            // Key 2: list at 16, three TIDs, size 32.
            (8152, &[0, 0x80, 16, 0, 3, 0, 0x20, 0]),
            (8160, &[2, 0, 0, 0, 0, 0, 0, 0]),
            (8168, &[0, 0, 0, 0, 1, 0, 2, 0, 1, 3]), // (0,1), two bytes: 1, 3
            (8184, &LEAF),
        ],
    );
}

#[test]
fn short_and_long_text_keys() {
    let long = vec![b'k'; 130];
    let file =
        file(&[Text], &[(0, Key, b"abc", &[(0, 1)]), (0, Key, &long, &[(7, 9)])]);
    assert_page(
        &file,
        1,
        &[
            (12, &[32, 0, 0x48, 0x1f]), // upper 8008
            (16, &SPECIAL),
            (24, &[0xe0, 0x9f, 0x30, 0]), // item 1: offset 8160, length 24
            (28, &[0x48, 0x9f, 0x30, 1]), // item 2: offset 8008, length 152
            // 130 times k: list at 144, one TID, size 152, variable width.
            (8008, &[0, 0x80, 144, 0, 1, 0, 152, 0x40]),
            (8016, &[0x18, 2, 0, 0]), // 134 << 2
            (8020, &long),
            (8152, &[0, 0, 7, 0, 9, 0, 0, 0]),
            // abc: list at 16, one TID, size 24; header (3 + 1) << 1 | 1.
            (8160, &[0, 0x80, 16, 0, 1, 0, 24, 0x40, 9, b'a', b'b', b'c', 0, 0, 0, 0]),
            (8176, &[0, 0, 0, 0, 1, 0, 0, 0]),
            (8184, &LEAF),
        ],
    );
}

#[test]
fn several_columns_put_a_column_number_before_the_key() {
    let int8 = ginmill::opclass::int8_key(-2);
    let file = file(
        &[Int4, Text, Int8],
        &[
            (0, Key, &int4_key(7), &[(0, 1)]),
            (0, NullItem, b"", &[(0, 2)]),
            (1, Key, b"abc", &[(0, 1)]),
            (2, Key, &int8, &[(0, 1)]),
            (2, EmptyItem, b"", &[(70_000, 2)]),
        ],
    );
    assert_page(
        &file,
        1,
        &[
            (12, &[44, 0, 0x68, 0x1f]), // five line pointers; upper 8040
            (16, &SPECIAL),
            (24, &[0xe0, 0x9f, 0x30, 0]), // offset 8160, length 24
            (28, &[0xc0, 0x9f, 0x40, 0]), // offset 8128, length 32
            (32, &[0xa8, 0x9f, 0x30, 0]), // offset 8104, length 24
            (36, &[0x88, 0x9f, 0x40, 0]), // offset 8072, length 32
            (40, &[0x68, 0x9f, 0x40, 0]), // offset 8040, length 32
            // Empty item of column 3, TID (70000,2).
            (8040, &[0, 0x80, 24, 0, 1, 0, 0x20, 0x80, 1, 0, 0, 0, 0, 0, 0, 0]),
            (8056, &[3, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0x70, 0x11, 2, 0, 0, 0]),
            // int8 key -2 of column 3, aligned to 16.
            (8072, &[0, 0x80, 24, 0, 1, 0, 0x20, 0, 3, 0, 0, 0, 0, 0, 0, 0]),
            (8088, &[0xfe, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 1, 0, 0, 0]),
            // Text key of column 2.
            (8104, &[0, 0x80, 16, 0, 1, 0, 24, 0x40, 2, 0, 9, b'a', b'b', b'c', 0, 0]),
            (8120, &[0, 0, 0, 0, 1, 0, 0, 0]),
            // Null item of column 1.
            (8128, &[0, 0x80, 24, 0, 1, 0, 0x20, 0x80, 1, 0, 0, 0, 0, 0, 0, 0]),
            (8144, &[1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]),
            // int4 key 7 of column 1.
            (8160, &[0, 0x80, 16, 0, 1, 0, 24, 0, 1, 0, 0, 0, 7, 0, 0, 0]),
            (8176, &[0, 0, 0, 0, 1, 0, 0, 0]),
            (8184, &LEAF),
        ],
    );
}

/// One key with 20,000 TIDs (n / 100, n % 100 + 1): leaves in blocks 2 to 4, their
/// parent in block 5.
#[test]
fn a_posting_tree_has_leaves_with_right_bounds_and_a_root_of_items() {
    let tids: BTreeSet<Tid> =
        (0..20_000).map(|n| Tid::new(n / 100, (n % 100) as u16 + 1)).collect();
    let model = Model::from([((0, Key, int4_key(1).to_vec()), tids)]);
    let dir = tempfile::tempdir().unwrap();
    let (path, stats) = build(dir.path(), "tree", &[Int4], 100, &model);
    assert_eq!((stats.data_pages, stats.pages), (4, 6));
    let file = std::fs::read(path).unwrap();
    assert_page(
        &file,
        1,
        &[
            (12, &[28, 0, 0xe8, 0x1f]),
            (16, &SPECIAL),
            (24, &[0xe8, 0x9f, 0x20, 0]), // offset 8168, length 16
            // Tree at block 5, size 16; key 1.
            (8168, &[0, 0, 5, 0, 0xff, 0xff, 16, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
            (8184, &LEAF),
        ],
    );
    // Steps inside a block are 1; to the next block it is 1949, `9d 0f`. 21 segments of
    // 384 bytes and one of 88 fill a page.
    let page = |block: usize| &file[block * PAGE_SIZE..(block + 1) * PAGE_SIZE];
    let leaf = page(2);
    assert_eq!(leaf[12..16], [0xf8, 0x1f, 0xf8, 0x1f], "full up to the special area");
    assert_eq!(leaf[32..40], [0, 0, 0, 0, 1, 0, 0x78, 1], "(0,1), 376 bytes");
    assert_eq!(leaf[40..139], [1; 99]);
    assert_eq!(leaf[139..142], [0x9d, 0x0f, 1], "to the next block");
    assert_eq!(leaf[8184..], [3, 0, 0, 0, 0, 0, 0x83, 0], "right link, flags");
    assert_eq!(page(3)[8184..], [4, 0, 0, 0, 0, 0, 0x83, 0]);
    assert_eq!(page(4)[8184..], [0xff, 0xff, 0xff, 0xff, 0, 0, 0x83, 0]);
    assert_eq!(page(4)[24..32], [0; 8], "no right bound on the rightmost leaf");
    // Bounds of the leaves are the keys of the root's items; the last is (0,0).
    let bound = |block: usize| &page(block)[24..30];
    assert_page(
        &file,
        5,
        &[
            (12, &[62, 0, 0xf8, 0x1f]), // 32 + 3 * 10
            (16, &SPECIAL),
            (32, &[0, 0, 2, 0]),
            (36, bound(2)),
            (42, &[0, 0, 3, 0]),
            (46, bound(3)),
            (52, &[0, 0, 4, 0]),
            (8184, &[0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0]), // three items, DATA
        ],
    );
    assert_eq!(bound(2), [0, 0, 79, 0, 20, 0], "(79,20)");
    assert_eq!(page(3)[32..38], [0, 0, 79, 0, 21, 0], "the next one, (79,21)");
}

/// The example in the description of the format is what the code writes.
#[test]
fn the_worked_example_of_the_format_is_exact() {
    let readme = include_str!("../../src/gin/README.md");
    let file = file(
        &[Text],
        &[
            (0, Key, b"gin", &[(0, 1), (0, 2), (3, 1)]),
            (0, Key, b"mill", &[(0, 2)]),
            (0, EmptyItem, b"", &[(1, 7)]),
        ],
    );
    let mut expected = vec![0; 2 * PAGE_SIZE];
    let mut lines = 0;
    for line in readme.lines() {
        // `2000: 00 01 …  what it is`
        let Some((at, rest)) = line.split_once(": ") else { continue };
        let Ok(mut at) = usize::from_str_radix(at, 16) else { continue };
        let (bytes, _) = rest.split_once("  ").unwrap_or((rest, ""));
        for byte in bytes.split(' ').filter(|byte| !byte.is_empty()) {
            expected[at] = u8::from_str_radix(byte, 16).unwrap();
            at += 1;
        }
        lines += 1;
    }
    assert!(lines > 10, "{lines} lines of the dump are found");
    for (at, (got, expected)) in file.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "byte 0x{at:x}");
    }
    assert_eq!(file.len(), expected.len());
}
