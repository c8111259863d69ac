//! Thousands of real mails: all of them indexed or listed, from a mailbox as from a
//! Maildir, with the keys that PostgreSQL makes of their texts.

use std::path::Path;
use std::sync::Arc;

use ginmill::Builder;
use ginmill::archive::{BlockRanges, Inputs};
use ginmill::document::{Document, Value};
use ginmill::gin;
use ginmill::opclass::trigram;
use ginmill::opclass::tsvector::{Config, TsVector};

use crate::support::{TestDir, given, oracle};

/// Mails of the collection.
const MAILS: u64 = 6046;
/// Texts per round trip.
const BATCH: usize = 200;

#[test]
fn every_real_mail_is_indexed_from_a_mailbox_as_from_a_maildir() {
    let Some(mail) = given("GINMILL_MAIL") else { return };
    let dir = TestDir::new();
    for input in ["spam.mbox", "spam-maildir"] {
        let output = dir.path(input);
        let stats = Builder::new([Path::new(&mail).join(input)])
            .workers(2)
            .memory("32MB".parse().unwrap())
            .build(&output)
            .unwrap();
        assert_eq!(stats.input.documents + stats.problems.skipped, MAILS, "{input}");
        assert_eq!(stats.input.documents, MAILS, "{input}: {:?}", stats.problems.list);
        assert_eq!(stats.indexes.len(), 6, "{input}");
        for index in &stats.indexes {
            let path = output.join(format!("{}.gin", index.name));
            let mut damages = Vec::new();
            let seen =
                gin::check(&path, None, &mut |damage| damages.push(damage)).unwrap();
            assert_eq!(damages, [], "{}", index.name);
            assert_eq!(seen.postings, index.postings, "{}", index.name);
        }
    }
}

/// Subjects and bodies of the mailbox.
fn texts(mailbox: &Path) -> Vec<String> {
    let inputs = Arc::new(Inputs::open(&[mailbox.to_path_buf()], None).unwrap());
    let wanted: Vec<bool> = inputs
        .fields()
        .iter()
        .map(|field| ["subject", "body"].contains(&field.name.as_str()))
        .collect();
    let ranges = BlockRanges::new(Arc::clone(&inputs));
    let mut reader = inputs.reader();
    let mut texts = Vec::new();
    while let Some(range) = ranges.claim().unwrap() {
        for item in &range.items {
            let raw = reader.bytes(item).unwrap();
            let mut document = Document::default();
            inputs.parse(item, raw, &wanted, &mut document).unwrap();
            texts.extend(document.values.into_iter().filter_map(|value| match value {
                Value::Text(text) => Some(text.into_owned()),
                _ => None,
            }));
        }
    }
    texts
}

#[test]
fn lexemes_and_trigrams_of_real_mail_are_the_servers() {
    let (Some(mail), Some(mut client)) = (given("GINMILL_MAIL"), oracle()) else {
        return;
    };
    let texts = texts(&Path::new(&mail).join("spam.mbox"));
    assert!(texts.len() as u64 > MAILS, "{} texts", texts.len());
    let query = "SELECT to_tsvector('english', t)::text, to_tsvector('simple', t)::text, \
                 show_trgm(t) FROM unnest($1::text[]) WITH ORDINALITY AS u(t, n) ORDER BY n";
    let configs = ["english", "simple"].map(|name| Config::find(name).unwrap());
    for batch in texts.chunks(BATCH) {
        let rows = client.query(query, &[&batch]).unwrap();
        assert_eq!(rows.len(), batch.len());
        for (text, row) in batch.iter().zip(rows) {
            let start: String = text.chars().take(80).collect();
            for (column, config) in configs.into_iter().enumerate() {
                let ours = TsVector::to_tsvector(config, text).unwrap().to_string();
                assert!(
                    ours == row.get::<_, &str>(column),
                    "{}: {start:?}",
                    config.name()
                );
            }
            let ours = trigram::show(&trigram::trigrams(text));
            assert!(ours == row.get::<_, Vec<String>>(2), "trigrams: {start:?}");
        }
    }
}
