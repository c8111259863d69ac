//! How many bytes of mail text a second become keys, against the plain way (every token
//! through its dictionary and the sink, no cache)?
//!
//! The text is made from a seed; `GINMILL_BENCH_MAIL=FILE` takes a file of your own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ginmill::Result;
use ginmill::document::Value;
use ginmill::opclass::tsvector::Config;
use ginmill::opclass::{self, KeyId, KeySink};

/// Bytes of text, and of one message in it.
const CORPUS: usize = 8 << 20;
const MESSAGE: usize = 3000;

/// Ordinary words, the most frequent first; the rest of the vocabulary is made up.
const COMMON: &str = "the of to and a in is that it for you was with on as have but be \
    they this not are from we can if would there what which when will all do has more \
    about so no some get them then use patch should index table think could query make \
    see work time lock page just because server memory might build need value other \
    than only running problems";

/// A generator of its own, so that the text is the same everywhere and always.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

fn vocabulary(dice: &mut Dice) -> Vec<String> {
    let onsets =
        ["b", "c", "d", "f", "gr", "l", "m", "n", "pr", "r", "s", "st", "t", "v"];
    let rhymes = ["a", "e", "i", "o", "u", "er", "in", "on", "al", "ect", "and", "or"];
    let ends = ["", "", "s", "ed", "ing", "tion", "ly", "able", "ment", "ness"];
    let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
    while words.len() < 40_000 {
        let mut word = String::new();
        for _ in 0..=dice.below(3) {
            word += dice.pick(&onsets);
            word += dice.pick(&rhymes);
        }
        words.push(word + dice.pick(&ends));
    }
    words
}

/// A word by Zipf's law, now and then something that is not a word.
fn push_word(text: &mut String, dice: &mut Dice, words: &[String]) {
    let rank =
        (words.len() as f64).powf(dice.below(1 << 20) as f64 / f64::from(1 << 20));
    let word = &words[rank as usize - 1];
    let other = &words[dice.below(words.len())];
    match dice.below(60) {
        0 => *text += &format!("{word}-{other}"),
        1 => *text += &format!("{other}.{word}@example.com"),
        2 => *text += &format!("http://www.{other}.org/{word}/{other}.html"),
        3 => {
            *text +=
                &format!("20{:02}-{:02}-11 {}:30", dice.below(30), dice.below(12), 7);
        }
        4 => *text += &dice.below(10_000).to_string(),
        5 => *text += &format!("{word}_{other}"),
        6 => *text += &format!("{word}'t"),
        7..=10 => {
            let mut letters = word.chars();
            text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            text.extend(letters);
        }
        _ => *text += word,
    }
}

fn corpus() -> String {
    if let Some(path) = std::env::var_os("GINMILL_BENCH_MAIL") {
        let bytes = std::fs::read(path).expect("GINMILL_BENCH_MAIL names a file");
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let words = vocabulary(&mut dice);
    let mut text = String::with_capacity(CORPUS + 1000);
    while text.len() < CORPUS {
        if dice.below(4) == 0 {
            text += "> ";
        }
        for _ in 0..12 {
            push_word(&mut text, &mut dice, &words);
            text += dice.pick(&[" ", " ", " ", " ", " ", " ", ", ", ". "]);
        }
        text += dice.pick(&["\n", "\n", "\n", "\n", "\n", "\n\n", "\n-- \n"]);
    }
    text
}

/// Messages of about [`MESSAGE`] bytes, cut behind a line.
fn messages(text: &str) -> Vec<&str> {
    let mut messages = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let after =
            rest.as_bytes().iter().skip(MESSAGE).position(|&byte| byte == b'\n');
        let (message, behind) =
            rest.split_at(after.map_or(rest.len(), |at| MESSAGE + at + 1));
        messages.push(message);
        rest = behind;
    }
    messages
}

/// Keeps the keys and counts what is posted.
#[derive(Default)]
struct Sink {
    ids: HashMap<Vec<u8>, KeyId>,
    posted: u64,
}

impl KeySink for Sink {
    fn key(&mut self, key: &[u8]) -> KeyId {
        let next = KeyId::try_from(self.ids.len()).expect("fewer keys than bytes");
        match self.ids.get(key) {
            Some(&id) => id,
            None => *self.ids.entry(key.to_vec()).or_insert(next),
        }
    }

    fn post(&mut self, ids: &[KeyId]) -> Result<bool> {
        self.posted += ids.len() as u64;
        Ok(false)
    }

    fn post_null(&mut self) -> Result<()> {
        Ok(())
    }
}

fn words(criterion: &mut Criterion) {
    let text = corpus();
    let messages = messages(&text);
    let class = opclass::find("tsvector_ops").expect("a class of the crate");
    let mut group = criterion.benchmark_group("words");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);

    let mut extractor = class.extractor(Some("english")).expect("a configuration");
    let mut sink = Sink::default();
    let values: Vec<Value<'_>> =
        messages.iter().map(|message| Value::Text(Cow::Borrowed(message))).collect();
    group.bench_function("extractor", |bencher| {
        bencher.iter(|| {
            sink.posted = 0;
            for value in &values {
                extractor.extract(value, &mut sink).expect("a text");
            }
            assert!(sink.posted > values.len() as u64);
        });
    });
    group.bench_function("parser alone", |bencher| {
        bencher.iter(|| {
            let tokens: usize = messages
                .iter()
                .map(|message| opclass::tsvector::parser::Parser::new(message).count())
                .sum();
            assert!(tokens > values.len());
        });
    });
    let english = Config::find("english").expect("a configuration");
    group.bench_function("the plain way", |bencher| {
        bencher.iter(|| {
            let mut sink = Sink::default();
            for message in &messages {
                let mut ids = Vec::new();
                english.lexemes(message, &mut |lexeme, _| {
                    ids.push(sink.key(lexeme.as_bytes()));
                });
                ids.sort_unstable();
                ids.dedup();
                sink.post(&ids).expect("a sink that never fails");
            }
            assert!(black_box(&sink).posted > values.len() as u64);
        });
    });
    group.finish();
}

criterion_group!(benches, words);
criterion_main!(benches);
