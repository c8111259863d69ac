//! Tokens, lexemes and configurations beside a live PostgreSQL 18.
//!
//! Texts are made from a seed, of pieces at which the word parser begins its attempts,
//! words, and characters of every block. `GINMILL_LONG=1` compares ten times as many.

use std::collections::BTreeSet;

use ginmill::opclass::tsvector::parser::{Parser, TokenType};
use ginmill::opclass::tsvector::{Config, TsVector};

use crate::support;

const BATCH: usize = 1_000;

fn cases() -> usize {
    let long = std::env::var("GINMILL_LONG").is_ok_and(|value| value == "1");
    if long { 200_000 } else { 20_000 }
}

/// Where the parser begins attempts, goes on with them, or gives them up.
const CORNERS: &str = "a ab Foo e E5 x com 1 23 1a a1 - -- . .. ... _ @ : / // :// < > & # \
    ; + ~ ./ ../ ~/ ' \" \\ = ? % ! ( ) , | * ^ <a </a> <!-- --> <script <script> </script> \
    <style </STYLE> &amp; &#1 &#x1f; <?xml <!D http:// a.b@c.de ab.cd /x 1.5 1.2.3 -1.2.3 \
    1e-5 +7 .5 x86-64 foo-bar foo-12b été é ٣ ² ½ 日本 中 한국 привет-мир don't l’été www. \
    user@host.example.org http://example.com:8080/a?b=c#d README.md /usr/local/bin ~user \
    2012-03-04 10:30:00 192.168.0.1 3.14e10 AT&T C++ foo_bar <a\u{20}href=\"x\"> &nbsp; https:";

const WORDS: &str = "the The running runs quickly generously hopping national universities \
    dogs were being archaeologist adding egged a-b well-known-facts über Straße naïve Noël \
    gestaltetes östliga français Ωμέγα ΣΊΣΥΦΟΣ İstanbul ǅ DŽ Ⱥ ẞ быстро العربية नमस्ते";

const ODD: &str = "\u{301}\u{308}\u{200b}\u{200d}\u{ad}\u{feff}\u{a0}\u{2003}\u{2007}\u{2028}\
    \u{3000}\u{85}\u{1680}\u{903}\u{e0001}\u{1}\u{7f}\t\n\r\u{b}ſK😀👩🏽𐐀𠀀𞤀ﬁⅧ①٠９";

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Any character but NUL; the lower blocks more often.
    fn any_char(&mut self) -> char {
        loop {
            let limit = [0x80, 0x250, 0x3000, 0x1_0000, 0x11_0000][self.below(5)];
            let code = u32::try_from(self.below(limit)).unwrap();
            if let Some(c) = char::from_u32(code).filter(|&c| c != '\0') {
                return c;
            }
        }
    }
}

struct Texts {
    random: Random,
    corners: Vec<&'static str>,
    words: Vec<&'static str>,
    odd: Vec<char>,
}

impl Texts {
    fn new(seed: u64) -> Texts {
        Texts {
            random: Random(seed),
            corners: CORNERS.split(' ').filter(|piece| !piece.is_empty()).collect(),
            words: WORDS.split_whitespace().collect(),
            odd: ODD.chars().collect(),
        }
    }

    /// A text of up to `most` pieces.
    fn text(&mut self, most: usize) -> String {
        let mut text = String::new();
        for _ in 0..=self.random.below(most) {
            match self.random.below(20) {
                0..=10 => text += self.random.pick(&self.corners),
                11 | 12 => text.push(' '),
                13 | 14 => text += self.random.pick(&self.words),
                15 => text.push(self.odd[self.random.below(self.odd.len())]),
                16 => text.push(self.random.any_char()),
                17 => {
                    let piece = self.random.pick(&self.corners);
                    text += &piece.repeat(self.random.below(80) + 1);
                }
                _ => text.push_str(&(self.random.below(2_000)).to_string()),
            }
        }
        text
    }

    fn batches(mut self, most: usize) -> impl Iterator<Item = Vec<String>> {
        (0..cases() / BATCH).map(move |_| (0..BATCH).map(|_| self.text(most)).collect())
    }
}

#[test]
fn tokens_are_those_of_ts_parse() {
    let Some(mut client) = support::oracle() else { return };
    let sql = "SELECT coalesce(array_agg(p.tokid ORDER BY p.n) FILTER (WHERE n > 0), '{}'),
                      coalesce(array_agg(p.token ORDER BY p.n) FILTER (WHERE n > 0), '{}')
        FROM unnest($1::text[]) WITH ORDINALITY AS t (x, o)
        LEFT JOIN LATERAL ts_parse('default', x) WITH ORDINALITY AS p (tokid, token, n)
        ON true GROUP BY o ORDER BY o";
    for texts in Texts::new(1).batches(12) {
        let rows = client.query(sql, &[&texts]).unwrap();
        assert_eq!(rows.len(), texts.len());
        for (row, text) in rows.iter().zip(&texts) {
            let kinds: Vec<i32> = row.get(0);
            let tokens: Vec<String> = row.get(1);
            let ours: Vec<(i32, String)> = Parser::new(text)
                .map(|token| (i32::from(token.kind.id()), token.text.to_owned()))
                .collect();
            let theirs: Vec<(i32, String)> = kinds.into_iter().zip(tokens).collect();
            assert_eq!(ours, theirs, "{text:?}");
        }
    }
}

#[test]
fn vectors_are_those_of_to_tsvector_in_every_configuration() {
    let Some(mut client) = support::oracle() else { return };
    let sql = "SELECT to_tsvector($2::text::regconfig, x)::text
        FROM unnest($1::text[]) WITH ORDINALITY AS t (x, o) ORDER BY o";
    let names: Vec<&str> = Config::names().collect();
    for (number, texts) in Texts::new(2).batches(30).enumerate() {
        // english and simple in every second batch, the others in turn
        let name = match number % 4 {
            0 => "english",
            2 => "simple",
            _ => names[number / 2 % names.len()],
        };
        let config = Config::find(name).unwrap();
        let rows = client.query(sql, &[&texts, &name]).unwrap();
        assert_eq!(rows.len(), texts.len());
        for (row, text) in rows.iter().zip(&texts) {
            let ours = TsVector::to_tsvector(config, text).unwrap();
            assert_eq!(ours.to_string(), row.get::<_, &str>(0), "{name} {text:?}");
            assert_eq!(TsVector::parse(row.get(0)).unwrap(), ours);
        }
    }
}

#[test]
fn the_text_form_of_a_vector_is_read_and_printed_as_the_server_does() {
    let Some(mut client) = support::oracle() else { return };
    let pieces = [
        "a", "b", "'", "''", "\\", ":", "1", "2", "16383", "70000", ",", "A", "b", "d",
        "*", " ", "\t", "\u{3000}", "é", "0", "'x y'", ":3",
    ];
    let sql = "SELECT pg_input_is_valid(x, 'tsvector'),
            CASE WHEN pg_input_is_valid(x, 'tsvector') THEN x::tsvector::text END
        FROM unnest($1::text[]) WITH ORDINALITY AS t (x, o) ORDER BY o";
    let mut random = Random(3);
    let mut valid = 0;
    for _ in 0..cases() / BATCH {
        let texts: Vec<String> = (0..BATCH)
            .map(|_| (0..random.below(9)).map(|_| random.pick(&pieces)).collect())
            .collect();
        for (row, text) in client.query(sql, &[&texts]).unwrap().iter().zip(&texts) {
            let ours = TsVector::parse(text).ok().map(|vector| vector.to_string());
            assert_eq!(ours.as_deref(), row.get::<_, Option<&str>>(1), "{text:?}");
            valid += usize::from(row.get::<_, bool>(0));
        }
    }
    assert!(valid > cases() / 10);
}

#[test]
fn stop_words_of_every_language_are_dropped_as_the_server_does() {
    let Some(mut client) = support::oracle() else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/opclass/tsvector/stopwords");
    for file in support::names_in(folder.as_ref()) {
        let Some(name) = file.strip_suffix(".stop") else { continue };
        let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
        let text = format!("{text} {}", text.to_uppercase());
        let sql = "SELECT to_tsvector($1::text::regconfig, $2)::text";
        let theirs = client.query_one(sql, &[&name, &text]).unwrap();
        let ours = TsVector::to_tsvector(Config::find(name).unwrap(), &text).unwrap();
        assert_eq!(ours.to_string(), theirs.get::<_, &str>(0), "{name}");
    }
}

#[test]
fn every_configuration_of_the_server_is_here_and_maps_the_same_types() {
    let Some(mut client) = support::oracle() else { return };
    let sql = "SELECT c.cfgname, t.alias, d.dictname FROM pg_ts_config AS c
        JOIN pg_ts_config_map AS m ON m.mapcfg = c.oid
        JOIN ts_token_type('default') AS t ON t.tokid = m.maptokentype
        JOIN pg_ts_dict AS d ON d.oid = m.mapdict
        WHERE c.cfgnamespace = 'pg_catalog'::regnamespace";
    let theirs: BTreeSet<[String; 3]> = client
        .query(sql, &[])
        .unwrap()
        .iter()
        .map(|row| [row.get(0), row.get(1), row.get(2)])
        .collect();
    let ours: BTreeSet<[String; 3]> = Config::names()
        .flat_map(|name| TokenType::ALL.map(|kind| (name, kind)))
        .filter_map(|(name, kind)| {
            let dictionary = Config::find(name).unwrap().dictionary_name(kind)?;
            Some([name, kind.alias(), dictionary].map(str::to_owned))
        })
        .collect();
    assert_eq!(ours, theirs);
}
