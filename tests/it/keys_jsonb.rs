//! jsonb beside a live PostgreSQL 18: what is accepted and how it prints, keys read back
//! from the pages of real indexes, containment.
//!
//! Everything is made from a seed, in batches. `GINMILL_LONG=1` compares ten times as
//! many.

use std::collections::{BTreeMap, BTreeSet};

use ginmill::document::Value;
use ginmill::opclass::jsonb::{self, JsonbOps, JsonbPathOps};
use ginmill::opclass::{KeyId, KeySink, OpClass, int4_key};
use postgres::Client;

use crate::jsonb_random::Random;
use crate::support;

pub const BATCH: usize = 500;

/// How many batches a test of so many cases takes.
pub fn batches(cases: usize) -> usize {
    let long = std::env::var("GINMILL_LONG").is_ok_and(|value| value == "1");
    cases * if long { 10 } else { 1 } / BATCH
}

/// Rows of a query over a batch of texts, in their order.
pub fn ask(
    client: &mut Client,
    query: &str,
    texts: &[&[String]],
) -> Vec<postgres::Row> {
    let parameters: Vec<&(dyn postgres::types::ToSql + Sync)> = texts
        .iter()
        .map(|texts| texts as &(dyn postgres::types::ToSql + Sync))
        .collect();
    let rows = client.query(query, &parameters).unwrap();
    assert_eq!(rows.len(), texts[0].len());
    rows
}

fn sqlstate(message: &str) -> &'static str {
    for (start, state) in [
        ("invalid input syntax for type json", "22P02"),
        ("unsupported Unicode escape sequence", "22P05"),
        ("value overflows numeric format", "22003"),
    ] {
        if message.starts_with(start) {
            return state;
        }
    }
    panic!("no SQLSTATE is known for {message:?}");
}

#[test]
fn the_same_texts_are_json_and_print_alike() {
    let Some(mut client) = support::oracle() else { return };
    let mut random = Random::new(1);
    let mut refused = 0;
    for _ in 0..batches(20_000) {
        let texts: Vec<String> = (0..BATCH).map(|_| random.json_or_not()).collect();
        let rows = ask(
            &mut client,
            "SELECT (pg_input_error_info(t, 'jsonb')).sql_error_code,
                    CASE WHEN pg_input_is_valid(t, 'jsonb') THEN t::jsonb::text END
             FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n) ORDER BY n",
            &[&texts],
        );
        for (row, text) in rows.iter().zip(&texts) {
            let theirs = match row.get::<_, Option<String>>(0) {
                Some(state) => Err(state),
                None => Ok(row.get::<_, String>(1)),
            };
            let ours = match jsonb::parse(text) {
                Ok(json) => Ok(jsonb::to_text(&json)),
                Err(error) => Err(sqlstate(&error.to_string()).to_owned()),
            };
            assert_eq!(ours, theirs, "{text:?}");
            refused += usize::from(ours.is_err());
        }
    }
    assert!(refused > 1_000);
}

/// Collects the keys of one item.
#[derive(Default)]
struct Keys {
    interned: Vec<Vec<u8>>,
    posted: BTreeSet<Vec<u8>>,
}

impl KeySink for Keys {
    fn key(&mut self, key: &[u8]) -> KeyId {
        self.interned.push(key.to_vec());
        KeyId::try_from(self.interned.len() - 1).unwrap()
    }

    fn post(&mut self, ids: &[KeyId]) -> ginmill::error::Result<bool> {
        self.posted.extend(ids.iter().map(|&id| self.interned[id as usize].clone()));
        Ok(false)
    }

    fn post_null(&mut self) -> ginmill::error::Result<()> {
        panic!("no jsonb value has a null key");
    }
}

/// The keys of a document.
pub fn keys(class: &dyn OpClass, text: &str) -> BTreeSet<Vec<u8>> {
    let mut keys = Keys::default();
    let value = Value::Json(jsonb::parse(text).unwrap());
    class.extractor(None).unwrap().extract(&value, &mut keys).unwrap();
    keys.posted
}

/// The entries of an index, from its pages: key (none for "empty item") and rows.
type Entries = BTreeMap<Option<Vec<u8>>, Vec<(u32, u16)>>;

fn entries(client: &mut Client, index: &str, is_text: bool) -> Entries {
    let u16_at = |bytes: &[u8], at: usize| {
        u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
    };
    let u32_at = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    };
    let query = format!(
        "SELECT get_raw_page('{index}', b::int) FROM generate_series(1,
         pg_relation_size('{index}') / 8192 - 1) b"
    );
    let mut entries = Entries::new();
    for row in client.query(&query, &[]).unwrap() {
        let page: Vec<u8> = row.get(0);
        const LEAF: u16 = 2;
        if u16_at(&page, 8190) != LEAF {
            continue;
        }
        for pointer in (24..usize::from(u16_at(&page, 12))).step_by(4) {
            let word = u32_at(&page, pointer);
            let start = (word & 0x7FFF) as usize;
            let tuple = &page[start..start + (word >> 17) as usize];
            let key = match (u16_at(tuple, 6) & 0x8000 != 0, is_text) {
                (true, _) => {
                    assert_eq!(tuple[16], 2, "only empty items are expected");
                    None
                }
                (false, false) => {
                    Some(int4_key(u32_at(tuple, 8).cast_signed()).to_vec())
                }
                (false, true) if tuple[8] & 1 == 1 => {
                    Some(tuple[9..8 + usize::from(tuple[8] >> 1)].to_vec())
                }
                (false, true) => {
                    Some(tuple[12..8 + (u32_at(tuple, 8) >> 2) as usize].to_vec())
                }
            };
            let word = u32::from(u16_at(tuple, 0)) << 16 | u32::from(u16_at(tuple, 2));
            assert!(word >> 31 == 1, "posting lists are inline");
            let list = &tuple[(word & 0x7FFF_FFFF) as usize..];
            let mut block =
                u32::from(u16_at(list, 0)) << 16 | u32::from(u16_at(list, 2));
            let mut offset = u16_at(list, 4);
            let mut rows = vec![(block, offset)];
            let (mut delta, mut shift) = (0_u64, 0);
            for &byte in &list[8..8 + usize::from(u16_at(list, 6))] {
                delta |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte < 0x80 {
                    let packed = (u64::from(block) << 11 | u64::from(offset)) + delta;
                    block = u32::try_from(packed >> 11).unwrap();
                    offset = u16::try_from(packed & 0x7FF).unwrap();
                    rows.push((block, offset));
                    (delta, shift) = (0, 0);
                }
            }
            assert_eq!(rows.len(), usize::from(u16_at(tuple, 4)));
            assert!(entries.insert(key, rows).is_none(), "keys are distinct");
        }
    }
    entries
}

#[test]
fn keys_are_those_on_the_pages_of_the_servers_indexes() {
    let Some(mut client) = support::oracle() else { return };
    let mut random = Random::new(2);
    let table = "CREATE TEMP TABLE keys_jsonb (n int, doc jsonb);
         CREATE INDEX keys_names ON keys_jsonb USING gin (doc) WITH (fastupdate = off);
         CREATE INDEX keys_paths ON keys_jsonb USING gin (doc jsonb_path_ops)
             WITH (fastupdate = off)";
    client.batch_execute(table).unwrap();
    for _ in 0..batches(20_000) {
        let texts: Vec<String> = (0..BATCH).map(|_| random.document()).collect();
        client.batch_execute("TRUNCATE keys_jsonb").unwrap();
        client
            .execute(
                "INSERT INTO keys_jsonb SELECT n, t::jsonb
                 FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n) ORDER BY n",
                &[&texts],
            )
            .unwrap();
        let places = client
            .query("SELECT ctid::text, n FROM keys_jsonb ORDER BY n", &[])
            .unwrap()
            .iter()
            .map(|row| {
                let place: String = row.get(0);
                let (block, offset) =
                    place.trim_matches(['(', ')']).split_once(',').unwrap();
                (block.parse().unwrap(), offset.parse().unwrap())
            })
            .collect::<Vec<(u32, u16)>>();
        for (class, index) in
            [(&JsonbOps as &dyn OpClass, "keys_names"), (&JsonbPathOps, "keys_paths")]
        {
            let mut ours = Entries::new();
            for (text, place) in texts.iter().zip(&places) {
                let keys = keys(class, text);
                if keys.is_empty() {
                    ours.entry(None).or_default().push(*place);
                }
                for key in keys {
                    ours.entry(Some(key)).or_default().push(*place);
                }
            }
            // Rows of different sizes do not lie in the order of their insertion.
            ours.values_mut().for_each(|rows| rows.sort_unstable());
            let theirs = entries(&mut client, index, index == "keys_names");
            for (place, text) in places.iter().zip(&texts) {
                let of = |entries: &Entries| -> Vec<Option<Vec<u8>>> {
                    let has = |(_, rows): &(&_, &Vec<(u32, u16)>)| rows.contains(place);
                    entries.iter().filter(has).map(|(key, _)| key.clone()).collect()
                };
                // Said per document first, because that is what one can read.
                if ours != theirs {
                    assert_eq!(of(&ours), of(&theirs), "{index}: {text}");
                }
            }
            assert_eq!(ours, theirs);
        }
    }
}

#[test]
fn containment_and_existence_agree() {
    let Some(mut client) = support::oracle() else { return };
    let mut random = Random::new(3);
    let (mut contained, mut existing) = (0, 0);
    for _ in 0..batches(20_000) {
        let mut pairs = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..BATCH {
            let (left, right) = random.pair();
            pairs[0].push(left);
            pairs[1].push(right);
            pairs[2].push(random.name());
        }
        let rows = ask(
            &mut client,
            "SELECT a::jsonb @> b::jsonb, a::jsonb ? k, a::jsonb ?| ARRAY[k, 'a'],
                    a::jsonb ?& ARRAY[k, 'a']
             FROM unnest($1::text[], $2::text[], $3::text[])
                  WITH ORDINALITY AS x(a, b, k, n) ORDER BY n",
            &[&pairs[0], &pairs[1], &pairs[2]],
        );
        for (at, row) in rows.iter().enumerate() {
            let [left, right, key] = [0, 1, 2].map(|side| &pairs[side][at]);
            let json = jsonb::parse(left).unwrap();
            let contains = jsonb::contains(&json, &jsonb::parse(right).unwrap());
            assert_eq!(contains, row.get::<_, bool>(0), "{left} @> {right}");
            let exists = jsonb::exists(&json, key);
            assert_eq!(exists, row.get::<_, bool>(1), "{left} ? {key}");
            let keys = [key.as_str(), "a"];
            assert_eq!(
                jsonb::exists_any(&json, &keys),
                row.get::<_, bool>(2),
                "{left}"
            );
            assert_eq!(
                jsonb::exists_all(&json, &keys),
                row.get::<_, bool>(3),
                "{left}"
            );
            contained += usize::from(contains);
            existing += usize::from(exists);
        }
    }
    assert!(contained > 1_000 && existing > 1_000, "{contained} {existing}");
}
