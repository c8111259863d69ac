//! Guesses an index's columns from its tuples, for files that come without a catalog.
//!
//! A tuple shows whether its key has variable width, and where its list starts; what it
//! does not show is whether a column number precedes the key. So every layout that the
//! tuples can have is tried on a sample of leaf pages, leftmost and rightmost among
//! them, and the first one is taken under which all tuples parse, their padding is zero
//! and their keys ascend. An `int8` column whose keys all fit `int4` cannot be told from
//! one: the values are the same.

use std::borrow::Cow;

use crate::gin::layout::{
    DATA, LEAF, LIST, META, NULLS_KEY_AT, ROOT_BLOCK, TUPLE_HEADER, TUPLE_NULLS,
    TUPLE_VARWIDTH, get_u16, join_block,
};
use crate::gin::page::Page;
use crate::gin::read::Index;
use crate::gin::tuple::{COLUMNS_MAX, EntryTuple, KeyBytes, write_head};
use crate::opclass::KeyType;

/// Leaf pages looked at.
const SAMPLE: usize = 64;
/// More levels than an entry tree can have.
const DEPTH_MAX: usize = 32;

/// The columns of an index; one text column when there is nothing to tell.
pub fn columns(index: &Index) -> Vec<KeyType> {
    let leaves = sample(index);
    let several = several_columns(index);
    [vec![KeyType::Int4], vec![KeyType::Text]]
        .into_iter()
        .chain(several)
        .chain([vec![KeyType::Int8]])
        .find(|columns| leaves.iter().all(|page| ascends(page, columns)))
        .unwrap_or_else(|| vec![KeyType::Text])
}

fn entry_page(index: &Index, block: u32) -> Option<Page<'_>> {
    let page = Page::new(index.block(block)?).ok()?;
    (page.flags() & (DATA | META | LIST) == 0 && page.items() > 0).then_some(page)
}

fn child(page: &Page<'_>, item: usize) -> Option<u32> {
    let tuple = page.tuple(item).ok()?.first_chunk::<4>()?;
    Some(join_block(*tuple))
}

/// Leaf pages spread over the tree.
fn sample(index: &Index) -> Vec<Page<'_>> {
    let descend = |item: usize| {
        let mut page = entry_page(index, ROOT_BLOCK)?;
        let last = item == page.items();
        let mut item = item;
        for _ in 0..DEPTH_MAX {
            if page.has(LEAF) {
                return Some(page);
            }
            page = entry_page(index, child(&page, item)?)?;
            item = if last { page.items() } else { 1 };
        }
        None
    };
    let items = entry_page(index, ROOT_BLOCK).map_or(0, |root| root.items());
    let step = items.div_ceil(SAMPLE).max(1);
    let chosen = (1..items).step_by(step).chain((items > 0).then_some(items));
    chosen.filter_map(descend).collect()
}

/// The column number that a tuple of a multi-column index starts with.
fn column_number(tuple: &[u8]) -> Option<usize> {
    let info = tuple.get(6..TUPLE_HEADER).map(|info| get_u16(info, 0))?;
    let at = if info & TUPLE_NULLS != 0 { NULLS_KEY_AT } else { TUPLE_HEADER };
    let number = usize::from(get_u16(tuple.get(at..at + 2)?, 0));
    (1..=COLUMNS_MAX).contains(&number).then_some(number)
}

/// The first leaf tuple of a column not below `number`; the outer `None` when the
/// tuples do not start with column numbers.
fn first_of_column(index: &Index, number: usize) -> Option<Option<&[u8]>> {
    let mut block = ROOT_BLOCK;
    for _ in 0..DEPTH_MAX {
        let page = entry_page(index, block)?;
        let mut found = None;
        for item in 1..=page.items() {
            let tuple = page.tuple(item).ok()?;
            if column_number(tuple)? >= number {
                found = Some((item, tuple));
                break;
            }
        }
        match (page.has(LEAF), found) {
            (true, found) => return Some(found.map(|(_, tuple)| tuple)),
            // The last key of a rightmost page means nothing.
            (false, found) => {
                let item = found.map_or(page.items(), |(item, _)| item);
                block = child(&page, item)?;
            }
        }
    }
    None
}

/// Column types when every tuple starts with a column number.
fn several_columns(index: &Index) -> Option<Vec<KeyType>> {
    let mut columns = vec![KeyType::Text; 2];
    let mut number = 1;
    while let Some(tuple) = first_of_column(index, number)? {
        number = column_number(tuple)?;
        columns.resize(columns.len().max(number), KeyType::Text);
        let info = get_u16(tuple, 6);
        // Keys come before the null categories: a column without keys has any type.
        if info & (TUPLE_NULLS | TUPLE_VARWIDTH) == 0 {
            // An int8 behind a column number moves the list to 24: parsing tells.
            let fits = |key| {
                let mut trial = columns.clone();
                trial[number - 1] = key;
                EntryTuple::parse(tuple, &trial).is_ok_and(|t| t.postings().is_ok())
            };
            let key = [KeyType::Int8, KeyType::Int4].into_iter().find(|&key| fits(key));
            columns[number - 1] = key?;
        }
        number += 1;
    }
    Some(columns)
}

/// Whether our writer would have made the same key area; compressed text may differ.
fn is_written(tuple: &EntryTuple<'_>, columns: &[KeyType]) -> bool {
    let mut head = Vec::new();
    let key = tuple.key.as_slice();
    matches!(tuple.key, KeyBytes::Text(Cow::Owned(_)))
        || write_head(&mut head, columns, tuple.column, tuple.category, key).is_ok()
            && head[TUPLE_HEADER..] == tuple.bytes[TUPLE_HEADER..tuple.key_end]
}

fn ascends(page: &Page<'_>, columns: &[KeyType]) -> bool {
    let mut before: Option<EntryTuple<'_>> = None;
    (1..=page.items()).all(|item| {
        let Ok(tuple) = page.tuple(item) else { return false };
        let Ok(tuple) = EntryTuple::parse(tuple, columns) else { return false };
        let good = tuple.postings().is_ok()
            && is_written(&tuple, columns)
            && before.as_ref().is_none_or(|before| before.cmp_tuple(&tuple).is_lt());
        before = Some(tuple);
        good
    })
}
