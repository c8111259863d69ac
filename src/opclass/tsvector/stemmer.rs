//! Stemmers: a lower-cased word becomes its stem, as PostgreSQL 18's Snowball does it.
//!
//! PostgreSQL has a development state of Snowball from between 2.2 and 3.0. No crate is
//! generated from that state: `rust-stemmers` is older, `waken_snowball` is 3.0. For each
//! language the one that agrees is taken; English, French, German and Swedish agree with
//! neither and are repaired here. The repairs were found, and the rest was confirmed, by
//! comparing some 200,000 words of each language with the server; no word of letters
//! was left that differs.

use std::borrow::Cow;

use rust_stemmers::{Algorithm as Older, Stemmer};
use waken_snowball::Algorithm as Newer;

/// A function from a word to its stem.
pub(super) type Stem = fn(&str) -> Cow<'_, str>;

/// Stemmers that agree as they are.
macro_rules! as_they_are {
    ($of:ident: $($name:ident = $algorithm:ident),+ $(,)?) => {$(
        pub(super) fn $name(word: &str) -> Cow<'_, str> {
            $of(word, as_they_are!(@ $of $algorithm))
        }
    )+};
    (@ older $algorithm:ident) => { Older::$algorithm };
    (@ newer $algorithm:ident) => { Newer::$algorithm };
}

as_they_are!(older: norwegian = Norwegian, spanish = Spanish);
as_they_are!(newer:
    arabic = Arabic, armenian = Armenian, basque = Basque, catalan = Catalan,
    danish = Danish, dutch = DutchPorter, estonian = Estonian, finnish = Finnish,
    greek = Greek, hindi = Hindi, hungarian = Hungarian, indonesian = Indonesian,
    irish = Irish, italian = Italian, lithuanian = Lithuanian, nepali = Nepali,
    portuguese = Portuguese, romanian = Romanian, russian = Russian, serbian = Serbian,
    tamil = Tamil, turkish = Turkish, yiddish = Yiddish,
);

fn older(word: &str, algorithm: Older) -> Cow<'_, str> {
    Stemmer::create(algorithm).stem(word)
}

fn newer(word: &str, algorithm: Newer) -> Cow<'_, str> {
    waken_snowball::stem(algorithm, word)
}

/// Porter 2. The older state takes one letter of the double consonant in `adding`,
/// `egged`, `offing`, where it is all that the word has beside a vowel.
pub(super) fn english(word: &str) -> Cow<'_, str> {
    let stem = older(word, Older::English);
    let &[vowel, consonant] = stem.as_bytes() else { return stem };
    let letters = word.trim_start_matches('\'');
    if b"aeo".contains(&vowel)
        && b"bdfgmnprt".contains(&consonant)
        && letters.as_bytes().starts_with(&[vowel, consonant, consonant])
    {
        return Cow::Borrowed(&letters[..3]);
    }
    stem
}

/// The older state does not yet take `ë` and `ï` for an `e` and `i` that begin a
/// syllable. A consonant before the plain letter has that effect, but for one thing: a
/// verb's ending may follow any consonant, and not this one. So where an ending was taken
/// off from there on, that `i` is disguised.
pub(super) fn french(word: &str) -> Cow<'_, str> {
    const ENDINGS: [&str; 32] = [
        "i", "ie", "ies", "ir", "ira", "irai", "iraIent", "irais", "irait", "iras",
        "irent", "irez", "iriez", "irions", "irons", "iront", "is", "issaIent",
        "issais", "issait", "issant", "issante", "issantes", "issants", "isse",
        "issent", "isses", "issez", "issiez", "issions", "issons", "it",
    ];
    if !word.contains(['ë', 'ï']) {
        return older(word, Older::French);
    }
    let mut marked = mark_french(word);
    let mut stem = older(&marked, Older::French).into_owned();
    if stem.ends_with('H') {
        let mark = marked.match_indices('H').nth(stem.matches('H').count() - 1);
        let ending = mark.map_or(marked.len(), |(at, _)| at + 1);
        let whole = &marked[ending..];
        let verb = whole.trim_end_matches('s').strip_suffix("ment").unwrap_or(whole);
        if ENDINGS.contains(&verb) && !whole.starts_with("issement") {
            marked.replace_range(ending..=ending, "ô");
            stem = older(&marked, Older::French).into_owned();
        }
    }
    if stem.ends_with("His") && marked.ends_with("His") {
        stem.pop(); // an `s` behind a plain `i` would stay
    }
    let unmarked = stem.replace("He", "ë").replace("Hi", "ï").replace("Hô", "ï");
    Cow::Owned(unmarked.replace('H', ""))
}

/// Puts the consonant before each `ë` and `ï`, and marks `y`, `u` and `i` beside vowels
/// by capitals as the stemmer does itself, which would not take these two for vowels.
fn mark_french(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    letters.extend(['.', '.']);
    let is_vowel = |c: char| "aeiouyâàëéêèïîôûù".contains(c);
    let mut marked = String::with_capacity(word.len() + 2);
    for at in 0..letters.len() - 2 {
        let [c, next, third] = [letters[at], letters[at + 1], letters[at + 2]];
        let mark_next = match next {
            'u' if c == 'q' => true,
            'u' | 'i' => is_vowel(c) && is_vowel(third),
            'y' => is_vowel(c),
            _ => false,
        };
        if mark_next {
            letters[at + 1] = next.to_ascii_uppercase();
        }
        match c {
            'ë' => marked.push_str("He"),
            'ï' => marked.push_str("Hi"),
            'y' if is_vowel(letters[at + 1]) => marked.push('Y'),
            c => marked.push(c),
        }
    }
    marked
}

/// The newer state takes off a verb's `et`, and then perhaps more. The same word with
/// `at` keeps it, and loses what stood behind it all the same.
pub(super) fn german(word: &str) -> Cow<'_, str> {
    let stem = newer(word, Newer::German);
    let endings = ["", "e", "em", "en", "er", "ern", "erin", "erinnen", "es", "s"];
    let Some((before, ending)) = endings.iter().find_map(|ending| {
        Some((word.strip_suffix(ending)?.strip_suffix("et")?, ending))
    }) else {
        return stem;
    };
    let taken_off = before
        .ends_with(['d', 'f', 'g', 'k', 'l', 'm', 'n', 'r', 's', 't', 'z', 'ä', 'ß'])
        || before.ends_with("ae")
        || before.ends_with('u') && stem.ends_with('u');
    if taken_off
        && let kept = newer(&format!("{before}at{ending}"), Newer::German)
        && let Some(kept) = kept.strip_suffix("at")
    {
        return Cow::Owned(format!("{kept}et"));
    }
    stem
}

/// The older state shortens `öst` to `ös` behind `l` only. Where it took `ig` or `lig`
/// off instead, that was its last step.
pub(super) fn swedish(word: &str) -> Cow<'_, str> {
    let stem = older(word, Older::Swedish);
    let shortened = stem.strip_suffix("öst").is_some_and(|before| {
        before.ends_with(['i', 'k', 'l', 'n', 'p', 'r', 't', 'u', 'v'])
            && swedish_region(word) <= before.len()
            && !word[stem.len()..].starts_with("ig")
            && !word[stem.len()..].starts_with("lig")
    });
    if shortened { Cow::Owned(stem[..stem.len() - 1].to_owned()) } else { stem }
}

/// Where suffixes may begin: behind the first consonant that follows a vowel, and behind
/// three letters.
fn swedish_region(word: &str) -> usize {
    let is_vowel = |c: char| "aeiouyäåö".contains(c);
    let mut letters = word.char_indices().map(|(at, c)| (at + c.len_utf8(), c));
    let behind_three = letters.clone().nth(2).map_or(word.len(), |(end, _)| end);
    let vowel = letters.find(|&(_, c)| is_vowel(c));
    let consonant = vowel.and_then(|_| letters.find(|&(_, c)| !is_vowel(c)));
    consonant.map_or(word.len(), |(end, _)| end.max(behind_three))
}
