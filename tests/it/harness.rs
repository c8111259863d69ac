//! The other tests believe `support`; these show that it can be believed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    Cluster, Inspected, TestDir, check_index, oracle, pageinspect_all, peak_anonymous,
    program,
};

/// A table of 3,000 rows with a GIN index on words: one in every row, some in many.
const TABLE: &str = "create table t (words text[]);
     insert into t select array['all', 'w' || i % 7, 'u' || i]
         from generate_series(1, 3000) i;
     create index t_words on t using gin (words)";

#[test]
fn postgres_is_18_with_the_locale_and_extensions_of_the_vectors() {
    let Some(mut client) = oracle() else { return };
    let row = client.query_one(
        "select current_setting('server_version'), datlocprovider::text, datcollate,
             datctype, datlocale, pg_encoding_to_char(encoding),
             (select string_agg(extname, ' ' order by extname) from pg_extension)
         from pg_database where datname = 'postgres'",
        &[],
    );
    let row = row.unwrap();
    let told: Vec<String> = (0..row.len()).map(|column| row.get(column)).collect();
    assert_eq!(
        told,
        [
            "18.4",
            "b",
            "C.UTF-8",
            "C.UTF-8",
            "C.UTF-8",
            "UTF8",
            "amcheck btree_gin hstore pageinspect pg_trgm plpgsql"
        ]
    );
}

#[test]
fn postgres_takes_an_installed_file_and_amcheck_sees_a_damaged_one() {
    let Some(mut cluster) = Cluster::start_new(&[]) else { return };
    let mut client = cluster.client();
    client.batch_execute(TABLE).unwrap();
    client
        .batch_execute("create index empty on t using gin (words) where false")
        .unwrap();
    drop(client);
    let index = cluster.relation_path("t_words");
    cluster.stop();
    let dir = TestDir::new();
    let saved = dir.write("t_words", fs::read(&index).unwrap());
    cluster.start();

    // surplus and stale files go, the index is the saved one
    let empty = cluster.relation_path("empty");
    let stale = |suffix| format!("{}{suffix}", empty.display());
    fs::write(stale(".1"), [0; 8192]).unwrap();
    fs::write(stale("_fsm"), [0; 8192]).unwrap();
    cluster.install(&[("empty", &saved)]);
    assert_eq!(cluster.relation_path("empty"), empty);
    assert_eq!(fs::read(&empty).unwrap(), fs::read(&saved).unwrap());
    assert_eq!(
        (fs::exists(stale(".1")).unwrap(), fs::exists(stale("_fsm")).unwrap()),
        (false, false)
    );
    let mut client = cluster.client();
    check_index(&mut client, "empty").unwrap();
    let Inspected { meta, pages, segments, tids } =
        pageinspect_all(&mut client, "empty", true);
    let blocks = fs::metadata(&saved).unwrap().len() / 8192;
    assert_eq!(meta[2], i64::try_from(blocks).unwrap());
    assert_eq!(meta[5], 3000 + 7 + 1, "distinct words");
    assert_eq!(pages.iter().map(|(_, count)| count).sum::<i64>(), meta[2]);
    let of = |flags: &str| pages.iter().find(|(name, _)| name == flags).unwrap().1;
    assert_eq!((of("meta"), of("data,leaf,compressed")), (1, meta[4]));
    assert!(segments >= meta[4]);
    assert_eq!(tids, 3000, "only the word of every row has a posting tree");
    drop(client);

    let damaged = dir.write("damaged", with_two_items_exchanged(&saved));
    let message = refusal(&mut cluster, "empty", &damaged);
    assert!(message.contains("invalid page in block"), "{message}");
}

#[test]
fn postgres_that_overlooks_checksums_has_amcheck_find_keys_out_of_order() {
    let overlook = "ignore_checksum_failure = on";
    let Some(mut cluster) = Cluster::start_new(&[overlook]) else { return };
    cluster.client().batch_execute(TABLE).unwrap();
    let index = cluster.relation_path("t_words");
    cluster.stop();
    let dir = TestDir::new();
    let damaged = dir.write("damaged", with_two_items_exchanged(&index));
    cluster.start();
    let message = refusal(&mut cluster, "t_words", &damaged);
    assert!(message.contains("wrong tuple order"), "{message}");
}

/// The bytes of an index file after its first leaf's first two items changed places.
fn with_two_items_exchanged(index: &Path) -> Vec<u8> {
    let mut bytes = fs::read(index).unwrap();
    let is_leaf = |page: &[u8]| page[8190..] == [2, 0] && page[24..32] != [0; 8];
    let leaf = bytes.chunks(8192).position(is_leaf).unwrap();
    let pointers = leaf * 8192 + 24;
    let (first, second) = bytes[pointers..pointers + 8].split_at_mut(4);
    first.swap_with_slice(second);
    bytes
}

fn refusal(cluster: &mut Cluster, index: &str, file: &Path) -> String {
    cluster.install(&[(index, file)]);
    let error = check_index(&mut cluster.client(), index).unwrap_err();
    error.as_db_error().unwrap().message().to_owned()
}

#[test]
fn the_sampler_sees_a_childs_buffer() {
    // dd holds one block in memory; reading zeros touches all of it
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "of=/dev/null", "bs=64M", "count=40"]);
    let measured = peak_anonymous(&mut dd);
    assert!(measured.output.status.success());
    assert!(measured.samples > 10, "{measured:?}");
    let (low, high) = (64 << 20, 70 << 20);
    assert!((low..high).contains(&measured.anonymous), "{measured:?}");
    assert!(measured.resident >= measured.anonymous, "{measured:?}");
}

#[test]
fn the_program_gives_its_version() {
    let output = program().arg("--version").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("ginmill {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_test_directory_is_gone_at_its_end() {
    let dir = TestDir::new();
    let file = dir.write("a/b", b"c");
    assert_eq!(dir.names(), ["a"]);
    drop(dir);
    assert!(!fs::exists(file).unwrap());
}
