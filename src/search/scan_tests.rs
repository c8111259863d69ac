use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Postings by category and key; every document in `documents` without a null item has
/// a value.
#[derive(Clone, Debug, Default)]
struct Model {
    postings: BTreeMap<(Category, Vec<u8>), Vec<u64>>,
    documents: u64,
}

struct List<'a> {
    tids: &'a [u64],
    at: usize,
}

impl KeyStream for List<'_> {
    fn estimate(&self) -> u64 {
        self.tids.len() as u64
    }

    fn next_block(&mut self, out: &mut Vec<u64>) -> Result<bool> {
        out.clear();
        let end = (self.at + 7).min(self.tids.len());
        out.extend_from_slice(&self.tids[self.at..end]);
        self.at = end;
        Ok(!out.is_empty())
    }

    fn seek(&mut self, tid: u64) -> Result<Option<u64>> {
        self.at += self.tids[self.at..].partition_point(|&known| known < tid);
        let found = self.tids.get(self.at).copied();
        self.at += usize::from(found.is_some());
        Ok(found)
    }
}

impl KeySource for Model {
    fn open(
        &self,
        category: Category,
        key: &[u8],
    ) -> Result<Option<Box<dyn KeyStream + '_>>> {
        let tids = self.postings.get(&(category, key.to_vec()));
        Ok(tids.map(|tids| Box::new(List { tids, at: 0 }) as Box<dyn KeyStream>))
    }

    fn prefix(
        &self,
        prefix: &[u8],
        each: &mut dyn FnMut(&mut dyn KeyStream) -> Result<()>,
    ) -> Result<()> {
        for ((category, key), tids) in &self.postings {
            if *category == Category::Key && key.starts_with(prefix) {
                each(&mut List { tids, at: 0 })?;
            }
        }
        Ok(())
    }
}

impl Model {
    /// From documents: each its keys, or `None` for a null.
    fn new(documents: &[Option<BTreeSet<u8>>]) -> Model {
        let mut model = Model { documents: documents.len() as u64, ..Model::default() };
        for (tid, keys) in (0..).zip(documents) {
            let mut post = |category, key: &[u8]| {
                model.postings.entry((category, key.to_vec())).or_default().push(tid);
            };
            match keys {
                None => post(Category::NullItem, &[]),
                Some(keys) if keys.is_empty() => post(Category::EmptyItem, &[]),
                // Key 0 stands for the null key.
                Some(keys) => keys.iter().for_each(|&key| match key {
                    0 => post(Category::NullKey, &[]),
                    key => post(Category::Key, &bytes(key)),
                }),
            }
        }
        model
    }

    fn not_null(&self) -> TidSet {
        let null = self.postings.get(&(Category::NullItem, Vec::new()));
        let mut all: TidSet = (0..self.documents).collect();
        for tid in null.into_iter().flatten() {
            all.remove(*tid);
        }
        all
    }
}

/// Keys of two letters, so that prefixes of one letter have several.
fn bytes(key: u8) -> Vec<u8> {
    vec![b'a' + key % 3, b'a' + key / 3]
}

/// Whether a document may (`true`) or certainly does match, tested one by one.
fn holds(expr: &KeyExpr, keys: &BTreeSet<u8>, maybe: bool) -> bool {
    let has = |test: &dyn Fn(&[u8]) -> bool| {
        keys.iter().any(|&key| key != 0 && test(&bytes(key)))
    };
    match expr {
        KeyExpr::Key(key) => has(&|other| other == key),
        KeyExpr::Prefix(prefix) => has(&|other| other.starts_with(prefix)),
        KeyExpr::NullKey => keys.contains(&0),
        KeyExpr::And(parts) => parts.iter().all(|part| holds(part, keys, maybe)),
        KeyExpr::Or(parts) => parts.iter().any(|part| holds(part, keys, maybe)),
        KeyExpr::Not(part) => !holds(part, keys, !maybe),
        KeyExpr::AtLeast(least, parts) => {
            let count = parts.iter().filter(|part| holds(part, keys, maybe)).count();
            count >= *least as usize
        }
        KeyExpr::Maybe => maybe,
    }
}

fn exprs() -> impl Strategy<Value = KeyExpr> {
    let leaf = prop_oneof![
        8 => (1_u8..9).prop_map(|key| KeyExpr::Key(bytes(key))),
        2 => (0_u8..4).prop_map(|letter| KeyExpr::Prefix(vec![b'a' + letter])),
        1 => Just(KeyExpr::NullKey),
        1 => Just(KeyExpr::Maybe),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let parts = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            parts.clone().prop_map(KeyExpr::And),
            parts.clone().prop_map(KeyExpr::Or),
            inner.prop_map(|part| KeyExpr::Not(Box::new(part))),
            (0_u32..5, parts).prop_map(|(least, parts)| KeyExpr::AtLeast(least, parts)),
        ]
    })
}

fn documents() -> impl Strategy<Value = Vec<Option<BTreeSet<u8>>>> {
    let keys = prop::collection::btree_set(0_u8..9, 0..6);
    prop::collection::vec(prop::option::weighted(0.9, keys), 0..60)
}

proptest! {
    #[test]
    fn an_evaluation_finds_what_testing_each_document_finds(
        documents in documents(),
        expr in exprs(),
        within in prop::option::of(prop::collection::btree_set(0_u64..60, 0..40)),
        include_empty: bool,
    ) {
        let model = Model::new(&documents);
        let all = || Ok(model.not_null());
        let within: Option<TidSet> = within
            .map(|tids| tids.into_iter().filter(|&tid| tid < model.documents).collect());
        let mode =
            if include_empty { SearchMode::IncludeEmpty } else { SearchMode::All };
        let query = KeyQuery { expr, mode, recheck: true };
        let expected = |maybe: bool, empty: bool| -> Vec<u64> {
            (0..)
                .zip(&documents)
                .filter(|(tid, keys)| {
                    within.as_ref().is_none_or(|within| within.contains(*tid))
                        && keys.as_ref().is_some_and(|keys| {
                            holds(&query.expr, keys, maybe)
                                || (empty && keys.is_empty())
                        })
                })
                .map(|(tid, _)| tid)
                .collect()
        };
        let mut scan = Scan::new(&model, &all);
        let possible = scan.possible(&query, within.as_ref()).unwrap();
        prop_assert_eq!(
            possible.iter().collect::<Vec<_>>(),
            expected(true, include_empty)
        );
        let certain = scan.certain(&query.expr, within.as_ref()).unwrap();
        prop_assert_eq!(certain.iter().collect::<Vec<_>>(), expected(false, false));
    }
}

#[test]
fn a_frequent_key_is_searched_for_few_candidates_and_not_read() {
    let mut model = Model { documents: 100_000, ..Model::default() };
    let mut post = |key: &[u8], tids: Vec<u64>| {
        model.postings.insert((Category::Key, key.to_vec()), tids);
    };
    post(b"rare", vec![10, 501, 70_001, 99_998]);
    post(b"frequent", (0..100_000).filter(|tid| tid % 2 == 0).collect());
    let all = || panic!("no need to know all documents");
    let query = KeyQuery {
        expr: KeyExpr::And(
            [&b"frequent"[..], b"rare"].map(|key| KeyExpr::Key(key.to_vec())).to_vec(),
        ),
        mode: SearchMode::Default,
        recheck: false,
    };
    let mut scan = Scan::new(&model, &all);
    assert_eq!(scan.estimate(&query, 100_000).unwrap(), 4);
    let found = scan.possible(&query, None).unwrap();
    assert_eq!(found.iter().collect::<Vec<_>>(), [10, 99_998]);
    let stats = ScanStats { keys: 2, entries: 2, tids: 4, seeks: 4 };
    assert_eq!(scan.stats(), stats);
}

#[test]
fn a_missing_key_ends_an_and_at_once() {
    let mut model = Model { documents: 10, ..Model::default() };
    model.postings.insert((Category::Key, b"a".to_vec()), (0..10).collect());
    let all = || Ok(model.not_null());
    let keys = [&b"a"[..], b"missing"].map(|key| KeyExpr::Key(key.to_vec()));
    let query = KeyQuery {
        expr: KeyExpr::And(keys.to_vec()),
        mode: SearchMode::Default,
        recheck: false,
    };
    let mut scan = Scan::new(&model, &all);
    assert!(scan.possible(&query, None).unwrap().is_empty());
    assert_eq!(scan.stats(), ScanStats { keys: 1, ..ScanStats::default() });
}
