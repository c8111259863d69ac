//! What `catalog.json` promises.

use std::os::unix::ffi::OsStrExt;

use super::*;

/// A catalog with one index `x` and two inputs, one of them not UTF-8.
pub(super) fn a_catalog() -> Catalog {
    let odd = std::ffi::OsStr::from_bytes(b"/mail/\xff");
    Catalog {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        created: "2026-01-02T03:04:05Z".to_owned(),
        input_format: "mbox".to_owned(),
        inputs: vec![
            InputFile { path: "/mail/a \"b\"".into(), size: 7, mtime_ns: -5 },
            InputFile { path: odd.into(), size: u64::MAX, mtime_ns: i64::MAX },
        ],
        fields: vec![FieldEntry::of(&Field::new("body", ValueKind::Text))],
        indexes: vec![IndexEntry {
            definition: "x=tsvector_ops(body, english)".to_owned(),
            key_types: vec!["text".to_owned()],
        }],
        documents: 3,
    }
}

fn write(dir: &Path, text: &[u8]) {
    fs::write(dir.join(CATALOG_FILE), text).unwrap();
    for file in a_catalog().files().unwrap() {
        fs::write(dir.join(file), "").unwrap();
    }
}

#[test]
fn a_catalog_comes_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &a_catalog().to_json());
    let catalog = Catalog::open(dir.path()).unwrap();
    assert_eq!(catalog, a_catalog());
    assert_eq!(catalog.fields().unwrap(), [Field::new("body", ValueKind::Text)]);
    assert_eq!(catalog.key_types(&catalog.indexes[0]).unwrap(), [KeyType::Text]);
    assert_eq!(catalog.definitions().unwrap()[0].name, "x");
}

#[test]
fn every_flipped_byte_of_a_catalog_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let good = a_catalog().to_json();
    for at in 0..good.len() {
        for flip in [1, 0x20] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            write(dir.path(), &bad);
            let opened = Catalog::open(dir.path());
            assert!(opened.is_err(), "byte {at}: {:?}", good[at] as char);
        }
    }
    write(dir.path(), &good[..good.len() / 2]);
    assert!(Catalog::open(dir.path()).is_err());
}

#[test]
fn what_is_no_archive_or_a_newer_one_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Catalog::open(dir.path()).unwrap_err().to_string();
    assert!(open().contains("is not a ginmill archive: it has no catalog.json"));
    write(dir.path(), b"{}");
    assert!(open().contains("expected a ginmill catalog"), "{}", open());
    write(dir.path(), br#"{"ginmill_catalog": 2, "version": "9.0", "surprise": []}"#);
    assert!(open().contains("has format 2, written by ginmill 9.0"), "{}", open());
    write(dir.path(), &a_catalog().to_json());
    fs::remove_file(dir.path().join("x.gin")).unwrap();
    assert!(open().ends_with("this file of the archive, found none"), "{}", open());
    let file = dir.path().join("documents");
    let error = Catalog::open(&file).unwrap_err().to_string();
    assert!(error.contains("it is not a directory"), "{error}");
    let error = Catalog::open(&dir.path().join("none")).unwrap_err().to_string();
    assert!(error.starts_with("cannot open "), "{error}");
}

#[test]
fn words_of_a_catalog_that_nobody_knows_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    type Edit = fn(&mut Catalog);
    let edits: [(Edit, &str); 4] = [
        (|c| c.fields[0].kind = "xml".to_owned(), "unknown kind xml"),
        (|c| c.indexes[0].key_types[0] = "uuid".to_owned(), "unknown key type uuid"),
        (|c| c.indexes[0].key_types.clear(), "expected 1 key types"),
        (|c| c.indexes[0].definition = "../x=y(z)".to_owned(), "is no index name"),
    ];
    for (edit, reason) in edits {
        let mut catalog = a_catalog();
        edit(&mut catalog);
        write(dir.path(), &catalog.to_json());
        let error = Catalog::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn an_original_that_changed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    fs::write(&path, "abc").unwrap();
    let input = InputFile::of(&path).unwrap();
    input.verify().unwrap();
    let other_time = InputFile { mtime_ns: input.mtime_ns - 1, ..input.clone() };
    let error = other_time.verify().unwrap_err().to_string();
    assert!(error.contains("was modified after it was indexed"), "{error}");
    fs::write(&path, "abcd").unwrap();
    let error = input.verify().unwrap_err().to_string();
    assert!(error.contains("it had 3 bytes and has 4"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = input.verify().unwrap_err().to_string();
    assert!(error.contains("not there any more"), "{error}");
}
