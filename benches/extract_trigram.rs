//! How many MB of text a second one thread turns into trigram ids, against the plain
//! way: all trigrams of a text in a vector, sorted, equal ones removed.
//!
//! The sink numbers keys and counts postings; appending to posting lists is not part of
//! the measure. Texts are made from a seed, of the size of a mail's body: English-like
//! words of Zipf's frequencies, and the same with accents and with Cyrillic letters.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ginmill::document::Value;
use ginmill::error::Result;
use ginmill::opclass::trigram::{TrigramOps, trigrams};
use ginmill::opclass::{KeyId, KeySink, OpClass};

const TEXTS: usize = 500;
const TEXT_LEN: usize = 4_000;

/// Numbers keys, counts postings.
#[derive(Default)]
struct Count {
    known: HashMap<Vec<u8>, KeyId>,
    postings: usize,
}

impl KeySink for Count {
    fn key(&mut self, key: &[u8]) -> KeyId {
        let next = KeyId::try_from(self.known.len()).expect("fewer keys than 2^32");
        *self.known.entry(key.to_vec()).or_insert(next)
    }

    fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
        self.postings += black_box(ids).len();
        Ok(false)
    }

    fn post_null(&mut self) -> Result<()> {
        unreachable!("a text has no null keys")
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % limit as u64).expect("below a usize")
    }
}

/// Texts of words made from these syllables; the n-th word is as frequent as 1/n.
fn texts(syllables: &[&str]) -> Vec<String> {
    let mut random = Random(1);
    let words: Vec<String> = (0..20_000)
        .map(|n: usize| {
            let many = 1 + random.below(1 + (n + 1).ilog2().min(8) as usize / 2);
            (0..many).map(|_| syllables[random.below(syllables.len())]).collect()
        })
        .collect();
    let text = |random: &mut Random| {
        let mut text = String::new();
        while text.len() < TEXT_LEN {
            let range = 1 << random.below(15);
            let word = &words[random.below(range).min(words.len() - 1)];
            if random.below(12) == 0 {
                let mut letters = word.chars();
                text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                text.push_str(letters.as_str());
            } else {
                text.push_str(word);
            }
            text.push_str(
                [" ", " ", " ", " ", " ", " ", ", ", ".\n", "\n> "][random.below(9)],
            );
        }
        text
    };
    (0..TEXTS).map(|_| text(&mut random)).collect()
}

fn extraction(criterion: &mut Criterion) {
    let english = [
        "the", "ing", "and", "er", "on", "re", "in", "ed", "st", "con", "ver", "is",
        "a", "e", "tion", "pro", "com", "s", "or", "al", "ly", "de", "un", "able",
        "to", "for", "be", "at", "quer", "patch", "ind", "ex", "tab", "le", "mit",
        "com", "y",
    ];
    let accents = [
        "über", "é", "tion", "ment", "que", "le", "les", "ä", "sch", "ei", "en", "ge",
        "ung", "ç", "de", "la", "est", "dans", "von", "und", "der", "on", "er", "ré",
    ];
    let cyrillic = [
        "при", "вет", "ста", "ни", "е", "по", "на", "про", "ра", "бо", "та", "ко",
        "то", "рый", "ост", "ть", "и", "не", "за", "пись", "дан", "ных",
    ];
    for (name, syllables) in
        [("english", &english[..]), ("accents", &accents), ("cyrillic", &cyrillic)]
    {
        let texts = texts(syllables);
        let bytes: usize = texts.iter().map(String::len).sum();
        let expected: usize = texts.iter().map(|text| trigrams(text).len()).sum();
        let values: Vec<Value<'_>> =
            texts.iter().map(|text| Value::Text(Cow::Borrowed(text))).collect();
        let mut group = criterion.benchmark_group(format!("extract_trigram/{name}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("ids", |bencher| {
            let mut extractor = TrigramOps.extractor(None).expect("no configuration");
            let mut sink = Count::default();
            bencher.iter(|| {
                sink.postings = 0;
                for value in &values {
                    extractor.extract(value, &mut sink).expect("texts are accepted");
                }
                assert!(sink.postings >= expected, "a cached key may be posted twice");
            });
        });
        group.bench_function("plain", |bencher| {
            bencher.iter(|| {
                let postings: usize =
                    texts.iter().map(|text| black_box(trigrams(text)).len()).sum();
                assert_eq!(postings, expected);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, extraction);
criterion_main!(benches);
