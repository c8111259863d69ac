//! What `gin::inspect` shows: the shape of pageinspect, and sums that agree.

use std::collections::BTreeSet;

use ginmill::gin::inspect::{self, Items, KeyValue, PageKind};
use ginmill::gin::{Category, Index};
use ginmill::opclass::{KeyType, int4_key};
use ginmill::tid::Tid;

use crate::gin_support::{Model, build};

fn tids(count: u32) -> BTreeSet<Tid> {
    (0..count).map(|n| Tid::new(n / 50, (n % 50) as u16 + 1)).collect()
}

fn model() -> Model {
    let mut model = Model::new();
    for key in 0..3000i32 {
        let count = 1 + key.cast_unsigned() % 4;
        model.insert((0, Category::Key, int4_key(key).to_vec()), tids(count));
    }
    model.insert((0, Category::Key, int4_key(-7).to_vec()), tids(30_000));
    model.insert((0, Category::NullItem, Vec::new()), tids(100));
    model.insert((1, Category::Key, b"w\xffrd".to_vec()), tids(5000));
    model
}

#[test]
fn sums_agree_with_what_was_written() {
    let columns = [KeyType::Int4, KeyType::Text];
    let dir = tempfile::tempdir().unwrap();
    let model = model();
    let (path, written) = build(dir.path(), "stats", &columns, 100, &model);
    let index = Index::open(&path, None).unwrap();
    let stats = inspect::stats(&index).unwrap();
    let postings: usize = model.values().map(BTreeSet::len).sum();
    assert_eq!(stats.postings, postings as u64);
    assert_eq!(stats.entries, model.len() as u64);
    assert_eq!(stats.posting_trees, 2);
    assert_eq!((stats.pages, stats.bytes), (written.pages, written.bytes));
    assert_eq!(stats.height, written.height);
    assert_eq!(stats.kinds.iter().map(|kind| kind.pages).sum::<u64>(), stats.pages);
    assert!(stats.kinds.iter().all(|kind| kind.fill <= 100.0));
    let leaves = stats.kinds.iter().find(|k| k.kind == PageKind::EntryLeaf).unwrap();
    assert!(leaves.fill > 90.0, "{leaves:?}");
    let classes: Vec<(u64, u64, u64)> = stats
        .lengths
        .iter()
        .filter(|class| class.entries > 0)
        .map(|class| (class.from, class.to, class.entries))
        .collect();
    assert_eq!(
        classes,
        [
            (1, 1, 750),
            (2, 3, 1500),
            (4, 7, 750),
            (64, 127, 1),
            (4096, 8191, 1),
            (16384, 32767, 1)
        ]
    );
    assert_eq!(
        stats.lengths.iter().map(|class| class.tids).sum::<u64>(),
        stats.postings
    );
}

#[test]
fn the_longest_lists_come_first_and_ties_in_key_order() {
    let columns = [KeyType::Int4, KeyType::Text];
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = build(dir.path(), "longest", &columns, 100, &model());
    let index = Index::open(&path, Some(&columns)).unwrap();
    let longest = inspect::longest(&index, 5).unwrap();
    let shown: Vec<(u8, &KeyValue, u64)> =
        longest.iter().map(|entry| (entry.column, &entry.key, entry.tids)).collect();
    assert_eq!(
        shown,
        [
            (1, &KeyValue::Integer(-7), 30_000),
            (2, &KeyValue::Text("w\u{fffd}rd".to_owned()), 5000),
            (1, &KeyValue::None, 100),
            (1, &KeyValue::Integer(3), 4),
            (1, &KeyValue::Integer(7), 4),
        ]
    );
    assert!(longest[0].posting_tree.is_some() && longest[2].posting_tree.is_none());
    assert_eq!(inspect::longest(&index, 0).unwrap(), []);
}

#[test]
fn pages_show_their_items_and_serialise() {
    let columns = [KeyType::Int4, KeyType::Text];
    let dir = tempfile::tempdir().unwrap();
    let model = model();
    let (path, _) = build(dir.path(), "pages", &columns, 100, &model);
    let index = Index::open(&path, Some(&columns)).unwrap();
    let (mut entries, mut in_segments, mut children) = (0, 0, 0);
    for block in 0..index.pages() {
        let page = inspect::page(&index, block).unwrap();
        assert_eq!(page.block, block);
        match (&page.items, page.kind) {
            (Items::Entries(items), PageKind::EntryLeaf) => {
                entries += items.len();
                let inline = items.iter().filter_map(|item| item.tids.as_ref());
                in_segments += inline.map(Vec::len).sum::<usize>();
            }
            (Items::Entries(items), PageKind::EntryInternal) => {
                children += items.iter().filter(|item| item.child.is_some()).count();
            }
            (Items::Segments(items), PageKind::PostingLeaf) => {
                in_segments += items.iter().map(|item| item.tids.len()).sum::<usize>();
            }
            (Items::Postings(items), PageKind::PostingInternal) => {
                children += items.len();
                assert_eq!(items.last().unwrap().key, "(0,0)");
                assert_eq!(page.right_bound.as_deref(), Some("(0,0)"));
            }
            (Items::None, PageKind::Meta) => {
                let json = serde_json::to_value(&page).unwrap();
                assert_eq!(json["kind"], "meta");
                assert_eq!(json["header"]["lower"], 80);
                assert_eq!(json["header"]["lsn"], "0/0");
                assert_eq!(json["opaque"]["flags"][0], "meta");
                assert_eq!(json["opaque"]["rightlink"], u32::MAX);
            }
            other => panic!("block {block}: {other:?}"),
        }
    }
    assert_eq!(entries, model.len());
    assert_eq!(in_segments, model.values().map(BTreeSet::len).sum::<usize>());
    // Every page but the metapage and the roots of three trees has one parent; the tree
    // of 5000 TIDs is a single leaf.
    assert_eq!(children, index.pages() as usize - 4);
    let meta = serde_json::to_value(index.meta().unwrap()).unwrap();
    assert_eq!(meta["n_entries"], model.len());
    assert_eq!(meta["pending_head"], u32::MAX);
}

#[test]
fn an_index_can_be_read_from_many_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Index>();
    moved::<ginmill::gin::Postings<'_>>();
    moved::<ginmill::gin::EntryEncoder>();
    moved::<ginmill::gin::Loader>();
}
