//! Trigram and array keys, operators and index queries against a live PostgreSQL 18.
//!
//! `GINMILL_PG` names the server (`host=… user=… dbname=…`); without it these tests say
//! that they were left out. Texts are made from a seed: all blocks of Unicode, combining
//! marks, characters of four bytes, letters with odd cases. `GINMILL_LONG=1` compares
//! ten times as many.

use ginmill::opclass::array::{self, ArrayOps};
use ginmill::opclass::trigram::{self, Like, TrigramOps};
use ginmill::opclass::{
    Argument, KeyExpr, KeyQuery, OpClass, SearchMode, int4_key, int8_key,
};
use postgres::{Client, NoTls};

const BATCH: usize = 1_000;

#[expect(clippy::print_stdout, reason = "says which tests were left out")]
fn connect() -> Option<Client> {
    let Ok(server) = std::env::var("GINMILL_PG") else {
        println!("left out: GINMILL_PG names no server");
        return None;
    };
    let mut client = Client::connect(&server, NoTls).expect("GINMILL_PG is reachable");
    // Tests run side by side and CREATE EXTENSION is not safe against itself.
    let extension = "SELECT pg_advisory_lock(7121);
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
        SELECT pg_advisory_unlock(7121);";
    client.batch_execute(extension).expect("pg_trgm is installed");
    Some(client)
}

fn cases() -> usize {
    let long = std::env::var("GINMILL_LONG").is_ok_and(|value| value == "1");
    if long { 200_000 } else { 20_000 }
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

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick(&mut self, from: &str) -> char {
        from.chars().nth(self.below(from.chars().count())).expect("in range")
    }

    /// Any character but NUL, every plane and every block about as often as its size.
    fn any_char(&mut self) -> char {
        loop {
            let limit = [0x250, 0x3000, 0x1_0000, 0x11_0000][self.below(4)];
            let code = u32::try_from(self.below(limit)).expect("a small number");
            if let Some(c) = char::from_u32(code).filter(|&c| c != '\0') {
                return c;
            }
        }
    }

    fn char(&mut self) -> char {
        match self.below(12) {
            0..=4 => self.pick("aabbcdeABCDE01"),
            5 | 6 => self.pick("  \t\n.,-_%\\'/"),
            7 => self.pick("éÉßẞİıKſΣςσǅǆȺⱥÅåﬁŉᾳᾼ"),
            8 => self.pick("\u{301}\u{308}\u{200d}\u{ad}\u{feff}\u{a0}²½٠९３Ⅷ①"),
            9 => self.pick("中文日本語한국어עבריתالعربيةกขไทย"),
            10 => self.pick("𝐀𝕏𐐀𐐨😀👩🏽𠀀𞤀𞤢"),
            _ => self.any_char(),
        }
    }

    fn text(&mut self, most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.char()).collect()
    }

    /// Texts of a small alphabet, so that two of them have something in common.
    fn words(&mut self, most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.pick("aaabbcé  -Aİ中")).collect()
    }
}

/// Whether the index would hand on an item with these keys, as candidate or match.
fn found(query: &KeyQuery, keys: &[Vec<u8>], has_null: bool) -> bool {
    fn holds(expr: &KeyExpr, keys: &[Vec<u8>], has_null: bool) -> bool {
        let holds = |expr: &KeyExpr| holds(expr, keys, has_null);
        match expr {
            KeyExpr::Key(key) => keys.contains(key),
            KeyExpr::Prefix(prefix) => keys.iter().any(|key| key.starts_with(prefix)),
            KeyExpr::NullKey => has_null,
            KeyExpr::And(parts) => parts.iter().all(holds),
            KeyExpr::Or(parts) => parts.iter().any(holds),
            KeyExpr::Not(part) => !holds(part),
            KeyExpr::AtLeast(least, parts) => {
                parts.iter().filter(|part| holds(part)).count() >= *least as usize
            }
            KeyExpr::Maybe => true,
        }
    }
    let empty = keys.is_empty() && !has_null;
    match query.mode {
        SearchMode::Default => !empty && holds(&query.expr, keys, has_null),
        SearchMode::IncludeEmpty => empty || holds(&query.expr, keys, has_null),
        SearchMode::All => holds(&query.expr, keys, has_null),
    }
}

fn trigram_keys(text: &str) -> Vec<Vec<u8>> {
    trigram::trigrams(text).into_iter().map(|key| int4_key(key).to_vec()).collect()
}

#[test]
fn show_trgm_lists_the_same_trigrams() {
    let Some(mut client) = connect() else { return };
    let mut random = Random(1);
    let statement = client
        .prepare(
            "SELECT show_trgm(t) FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n)
             ORDER BY n",
        )
        .unwrap();
    for _ in 0..cases() / BATCH {
        let texts: Vec<String> = (0..BATCH).map(|_| random.text(40)).collect();
        let rows = client.query(&statement, &[&texts]).unwrap();
        assert_eq!(rows.len(), texts.len());
        for (row, text) in rows.iter().zip(&texts) {
            let shown = trigram::show(&trigram::trigrams(text));
            assert_eq!(shown, row.get::<_, Vec<String>>(0), "{text:?}");
        }
    }
}

#[test]
fn every_character_folds_and_separates_alike() {
    let Some(mut client) = connect() else { return };
    let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
    let statement = client
        .prepare(
            "SELECT show_trgm(t) FROM unnest($1::text[]) WITH ORDINALITY AS x(t, n)
             ORDER BY n",
        )
        .unwrap();
    let some = if cases() < all.len() / 10 { 50 } else { 1 };
    for chunk in all.chunks(BATCH).step_by(some) {
        let texts: Vec<String> = chunk.iter().map(|c| format!("a{c}B")).collect();
        let rows = client.query(&statement, &[&texts]).unwrap();
        assert_eq!(rows.len(), texts.len());
        for (row, text) in rows.iter().zip(&texts) {
            let shown = trigram::show(&trigram::trigrams(text));
            assert_eq!(shown, row.get::<_, Vec<String>>(0), "{text:?}");
        }
    }
}

#[test]
fn similarities_are_equal_to_the_bit() {
    let Some(mut client) = connect() else { return };
    let mut random = Random(2);
    let statement = client
        .prepare(
            "SELECT similarity(a, b), word_similarity(a, b),
                    strict_word_similarity(a, b), b % a, b %> a, b %>> a, b = a
             FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(a, b, n)
             ORDER BY n",
        )
        .unwrap();
    let mut similar = [0; 3];
    for _ in 0..cases() / BATCH {
        let pairs: (Vec<String>, Vec<String>) = (0..BATCH)
            .map(|_| match random.below(16) {
                0 => (random.words(30), random.words(400)),
                1..=4 => (random.text(20), random.text(40)),
                5..=8 => {
                    let a = random.words(15);
                    (a.clone(), random.words(10) + &a + &random.words(10))
                }
                _ => (random.words(12), random.words(40)),
            })
            .unzip();
        let rows = client.query(&statement, &[&pairs.0, &pairs.1]).unwrap();
        assert_eq!(rows.len(), BATCH);
        for (row, (a, b)) in rows.iter().zip(pairs.0.iter().zip(&pairs.1)) {
            let ours = [
                trigram::similarity(a, b),
                trigram::word_similarity(a, b),
                trigram::strict_word_similarity(a, b),
            ];
            let theirs = [0, 1, 2].map(|column| row.get::<_, f32>(column));
            assert_eq!(ours.map(f32::to_bits), theirs.map(f32::to_bits), "{a:?} {b:?}");
            let thresholds = [
                trigram::SIMILARITY_THRESHOLD,
                trigram::WORD_SIMILARITY_THRESHOLD,
                trigram::STRICT_WORD_SIMILARITY_THRESHOLD,
            ];
            let keys = trigram_keys(b);
            for (n, operator) in ["%", "%>", "%>>"].into_iter().enumerate() {
                let matches: bool = row.get(3 + n);
                assert_eq!(ours[n] >= thresholds[n], matches, "{b:?} {operator} {a:?}");
                let argument = Argument::Text(a.clone());
                let query = TrigramOps.query(None, operator, &argument).unwrap();
                assert!(
                    !matches || found(&query, &keys, false),
                    "{b:?} {operator} {a:?}"
                );
                similar[n] += usize::from(matches);
            }
            let query =
                TrigramOps.query(None, "=", &Argument::Text(a.clone())).unwrap();
            assert!(!row.get::<_, bool>(6) || found(&query, &keys, false), "{a:?}");
        }
    }
    assert!(similar.iter().all(|&count| count > cases() / 20), "{similar:?}");
}

#[test]
fn like_and_ilike_match_the_same_texts() {
    let Some(mut client) = connect() else { return };
    let mut random = Random(3);
    let statement = client
        .prepare(
            "SELECT t LIKE p, t ILIKE p
             FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(t, p, n)
             ORDER BY n",
        )
        .unwrap();
    let mut matched = [0; 2];
    for _ in 0..cases() / BATCH {
        let pairs: (Vec<String>, Vec<String>) =
            (0..BATCH).map(|_| text_and_pattern(&mut random)).unzip();
        let rows = client.query(&statement, &[&pairs.0, &pairs.1]).unwrap();
        assert_eq!(rows.len(), BATCH);
        for (row, (text, pattern)) in rows.iter().zip(pairs.0.iter().zip(&pairs.1)) {
            let keys = trigram_keys(text);
            for (n, operator) in ["LIKE", "ILIKE"].into_iter().enumerate() {
                let like = Like::new(pattern, operator == "ILIKE").unwrap();
                let matches: bool = row.get(n);
                assert_eq!(
                    like.matches(text),
                    matches,
                    "{text:?} {operator} {pattern:?}"
                );
                let argument = Argument::Text(pattern.clone());
                let query = TrigramOps.query(None, operator, &argument).unwrap();
                let candidate = found(&query, &keys, false);
                assert!(!matches || candidate, "{text:?} {operator} {pattern:?}");
                matched[n] += usize::from(matches);
            }
        }
    }
    assert!(matched.iter().all(|&count| count > cases() / 10), "{matched:?}");
}

/// A text, and a pattern made from it by putting wildcards for parts of it, quoting
/// characters and, at times, changing one.
fn text_and_pattern(random: &mut Random) -> (String, String) {
    let text = random.text(15);
    let mut pattern = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match random.below(14) {
            0 | 1 => pattern.push('_'),
            2 | 3 => {
                pattern.push('%');
                for _ in 0..random.below(4) {
                    rest.next();
                }
            }
            4 => pattern.extend(['\\', c]),
            5 if random.one_in(4) => pattern.push(random.char()),
            6 => pattern.extend(c.to_lowercase()),
            _ if matches!(c, '%' | '_' | '\\') => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    if random.one_in(3) {
        pattern.push('%');
    }
    // A backslash at the end is an error, or not, by what the text is.
    let backslashes = pattern.len() - pattern.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        pattern.push('\\');
    }
    (text, pattern)
}

#[test]
fn regular_expressions_match_the_same_texts_and_miss_none() {
    let Some(mut client) = connect() else { return };
    let mut random = Random(4);
    let statement = client
        .prepare("SELECT t ~ $2, t ~* $2 FROM unnest($1::text[]) AS x(t)")
        .unwrap();
    let (mut matched, mut refused, mut selective) = (0, 0, 0);
    let patterns = cases() / 20;
    for _ in 0..patterns {
        let mut texts = Vec::new();
        let pattern = shared_regex(&mut random, 3, &mut texts);
        let texts: Vec<String> = (0..20)
            .map(|_| {
                let middle = match texts.is_empty() {
                    true => String::new(),
                    false => texts[random.below(texts.len())].clone(),
                };
                let around = |random: &mut Random| -> String {
                    (0..random.below(3)).map(|_| random.pick("abc é")).collect()
                };
                around(&mut random) + &middle + &around(&mut random)
            })
            .collect();
        let Ok(rows) = client.query(&statement, &[&texts, &pattern]) else {
            refused += 1;
            continue;
        };
        assert_eq!(rows.len(), texts.len());
        for (column, operator) in ["~", "~*"].into_iter().enumerate() {
            let regex = regex::RegexBuilder::new(&pattern)
                .case_insensitive(operator == "~*")
                .build()
                .unwrap();
            let argument = Argument::Text(pattern.clone());
            let query = TrigramOps.query(None, operator, &argument).unwrap();
            selective += usize::from(query.expr != KeyExpr::Maybe);
            for (row, text) in rows.iter().zip(&texts) {
                let matches: bool = row.get(column);
                assert_eq!(
                    regex.is_match(text),
                    matches,
                    "{text:?} {operator} {pattern:?}"
                );
                let candidate = found(&query, &trigram_keys(text), false);
                assert!(!matches || candidate, "{text:?} {operator} {pattern:?}");
                matched += usize::from(matches);
            }
        }
    }
    assert!(matched > patterns * 8, "{matched} matches of {patterns} patterns");
    assert!(selective > patterns / 2, "{selective} of {patterns} patterns");
    assert!(refused < patterns / 20, "{refused} of {patterns} patterns");
}

/// A pattern that means the same to both, and into `texts` what it may match.
fn shared_regex(random: &mut Random, depth: usize, texts: &mut Vec<String>) -> String {
    let kind = if depth == 0 { random.below(6) } else { random.below(14) };
    let (pattern, text) = match kind {
        0..=2 => {
            let text: String =
                (0..=random.below(4)).map(|_| random.pick("abcdeABéÉ0 -,中")).collect();
            (text.clone(), text)
        }
        3 if random.one_in(2) => ("[,ab -]".into(), random.pick(",ab -").into()),
        3 => ("[abé]".into(), random.pick("abé").into()),
        4 => ("[^a-c]".into(), random.pick("dé ").into()),
        5 => match random.below(3) {
            0 => (".".into(), random.pick("a é中").into()),
            1 => ("^".into(), String::new()),
            _ => ("$".into(), String::new()),
        },
        6..=9 => {
            let (mut pattern, mut text) = (String::new(), String::new());
            for _ in 0..=random.below(3) {
                let mut inner = Vec::new();
                pattern += &shared_regex(random, depth - 1, &mut inner);
                text += &inner[random.below(inner.len())];
            }
            (pattern, text)
        }
        10 | 11 => {
            let mut inner = Vec::new();
            let parts: Vec<String> = (0..=random.below(3))
                .map(|_| shared_regex(random, depth - 1, &mut inner))
                .collect();
            texts.append(&mut inner);
            (format!("({})", parts.join("|")), String::new())
        }
        _ => {
            let mut inner = Vec::new();
            let pattern = shared_regex(random, depth - 1, &mut inner);
            let (times, n) =
                [("*", 0), ("*", 2), ("+", 2), ("?", 0), ("{2}", 2), ("{1,3}", 3)]
                    [random.below(6)];
            let text = inner[random.below(inner.len())].repeat(n);
            (format!("(?:{pattern}){times}"), text)
        }
    };
    texts.push(text);
    pattern
}

#[test]
fn array_operators_and_index_queries_agree() {
    let Some(mut client) = connect() else { return };
    let mut random = Random(5);
    let statement = client
        .prepare(
            "SELECT a && b, a @> b, a <@ b, a = b,
                    c && d, c @> d, c <@ d, c = d
             FROM (SELECT $1::text[] AS a, $2::text[] AS b,
                          $3::bigint[] AS c, $4::bigint[] AS d) AS x",
        )
        .unwrap();
    let mut matched = [0; 4];
    for _ in 0..cases() / 4 {
        let mut elements = || -> Vec<Option<i64>> {
            (0..random.below(4))
                .map(|_| (!random.one_in(5)).then(|| random.below(4) as i64 - 1))
                .collect()
        };
        let (c, d) = (elements(), elements());
        let names = ["", "b", "é", "a\u{1}"];
        let text = |elements: &[Option<i64>]| -> Vec<Option<String>> {
            let name = |n: i64| names[usize::try_from(n + 1).unwrap()].to_owned();
            elements.iter().map(|element| element.map(name)).collect()
        };
        let (a, b) = (text(&c), text(&d));
        let row = client.query_one(&statement, &[&a, &b, &c, &d]).unwrap();
        let texts: Vec<Vec<u8>> =
            a.iter().flatten().map(|text| text.as_bytes().to_vec()).collect();
        let numbers: Vec<Vec<u8>> =
            c.iter().flatten().map(|&number| int8_key(number).to_vec()).collect();
        let has_null = a.contains(&None);
        let ours = [
            [array::overlaps(&a, &b), array::overlaps(&c, &d)],
            [array::contains(&a, &b), array::contains(&c, &d)],
            [array::contained(&a, &b), array::contained(&c, &d)],
            [array::equal(&a, &b), array::equal(&c, &d)],
        ];
        for (n, operator) in ["&&", "@>", "<@", "="].into_iter().enumerate() {
            let theirs = [row.get::<_, bool>(n), row.get::<_, bool>(n + 4)];
            assert_eq!(ours[n], theirs, "{a:?} {operator} {b:?}");
            matched[n] += usize::from(theirs[0]);
            let arguments = [Argument::Texts(b.clone()), Argument::Integers(d.clone())];
            for ((argument, keys), matches) in
                arguments.iter().zip([&texts, &numbers]).zip(theirs)
            {
                let query = ArrayOps.query(None, operator, argument).unwrap();
                let candidate = found(&query, keys, has_null);
                assert!(candidate >= matches, "{a:?} {operator} {b:?}");
                assert!(
                    query.recheck || candidate == matches,
                    "{a:?} {operator} {b:?}"
                );
            }
        }
    }
    assert!(matched.iter().all(|&count| count > cases() / 100), "{matched:?}");
}
