//! Every index file of an archive in the place of a PostgreSQL index of the same
//! definition: amcheck passes, pageinspect reads every page. Structure only: an archive's
//! TIDs are denser than heap rows can be, so PostgreSQL cannot answer queries with it.

use std::fs;
use std::path::Path;

use crate::corpus::{fixture_mail, fixture_messages, write_mbox};
use crate::support::{
    Cluster, Inspected, PAGE, TestDir, check_index, names_in, pageinspect_all, program,
};

/// The default indexes of mail: name, column, its type, operator class.
const DEFINITIONS: [(&str, &str, &str, &str); 6] = [
    ("body_trgm", "body", "text", "gin_trgm_ops"),
    ("body_tsvector", "body_words", "tsvector", "tsvector_ops"),
    ("headers_jsonb", "headers", "jsonb", "jsonb_ops"),
    ("headers_jsonb_path", "headers", "jsonb", "jsonb_path_ops"),
    ("subject_trgm", "subject", "text", "gin_trgm_ops"),
    ("subject_tsvector", "subject_words", "tsvector", "tsvector_ops"),
];

/// The only flags of pages that a build leaves behind.
const FLAGS: [&str; 5] = ["", "data", "data,leaf,compressed", "leaf", "meta"];

/// Installs the archive's indexes and returns what pageinspect says of each.
fn installed_and_inspected(
    cluster: &mut Cluster,
    input: &Path,
    dir: &TestDir,
) -> Vec<Inspected> {
    let archive = dir.path("archive.gin");
    let built = program().arg("index").arg(input).arg("-o").arg(&archive).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let files: Vec<String> =
        names_in(&archive).into_iter().filter(|name| name.ends_with(".gin")).collect();
    assert_eq!(files, DEFINITIONS.map(|(name, ..)| format!("{name}.gin")));

    let mut client = cluster.client();
    client
        .batch_execute(
            "create table mail (headers jsonb, subject text, body text,
                 subject_words tsvector, body_words tsvector)",
        )
        .unwrap();
    for (name, column, _, opclass) in DEFINITIONS {
        let index =
            format!("create index {name} on mail using gin ({column} {opclass})");
        client.batch_execute(&index).unwrap();
    }
    drop(client);
    let paths = DEFINITIONS.map(|(name, ..)| archive.join(format!("{name}.gin")));
    let installed: Vec<(&str, &Path)> = DEFINITIONS
        .iter()
        .zip(&paths)
        .map(|((name, ..), path)| (*name, path.as_path()))
        .collect();
    cluster.install(&installed);

    let mut client = cluster.client();
    let mut all = Vec::new();
    for (name, path) in installed {
        check_index(&mut client, name)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let inspected = pageinspect_all(&mut client, name, true);
        let bytes = i64::try_from(fs::metadata(path).unwrap().len()).unwrap();
        let [pending_pages, pending_tuples, total, entry, data, entries, version] =
            inspected.meta;
        assert_eq!((pending_pages, pending_tuples, version), (0, 0, 2), "{name}");
        assert_eq!(total, bytes / i64::try_from(PAGE).unwrap(), "{name}");
        assert_eq!(entry + data + 1, total, "{name}");
        assert!(entries > 0, "{name}");
        let count = |wanted: fn(&str) -> bool| -> i64 {
            let pages = inspected.pages.iter().filter(|(flags, _)| wanted(flags));
            pages.map(|(_, count)| count).sum()
        };
        assert_eq!(count(|flags| !FLAGS.contains(&flags)), 0, "{:?}", inspected.pages);
        assert_eq!(count(|flags| flags == "meta"), 1, "{name}");
        assert_eq!(count(|flags| flags.starts_with("data")), data, "{name}");
        assert_eq!(count(|flags| flags == "leaf" || flags.is_empty()), entry, "{name}");
        all.push(inspected);
    }
    all
}

#[test]
fn postgres_accepts_the_index_files_of_the_fixtures() {
    let Some(mut cluster) = Cluster::start_new(&[]) else { return };
    installed_and_inspected(&mut cluster, &fixture_mail(), &TestDir::new());
}

#[test]
fn postgres_accepts_index_files_with_posting_trees_and_upper_levels() {
    let Some(mut cluster) = Cluster::start_new(&[]) else { return };
    let dir = TestDir::new();
    let input = dir.path("input.mbox");
    write_mbox(&fixture_messages(), 24 << 20, 3, &input);
    let all = installed_and_inspected(&mut cluster, &input, &dir);
    for ((name, ..), inspected) in DEFINITIONS.iter().zip(&all) {
        let has = |flags: &str| inspected.pages.iter().any(|(name, _)| name == flags);
        assert!(has(""), "{name} has a single entry page: {:?}", inspected.pages);
    }
    let trees =
        all.iter().filter(|inspected| inspected.segments > 1 && inspected.tids > 0);
    assert!(trees.count() >= 3, "{all:?}");
}
