//! Character classes and lower-casing, as a PostgreSQL 18 database with encoding UTF-8
//! and the builtin locale `C.UTF-8` has them.
//!
//! The classes are those of the C library's `C.UTF-8` tables and the lower-case map is
//! Unicode's simple one; neither equals the methods of `char`, so the measured tables
//! beside this file (`ctype_utf8.tsv`, `lower_simple.tsv`) are compiled in. They are
//! looked up through 256-character pages, equal pages stored once.

use std::collections::HashMap;
use std::sync::LazyLock;

const ALPHA: u8 = 1;
const SPECIAL: u8 = 2;
const SPACE: u8 = 4;
const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

struct Classes {
    page_of: Vec<u16>,
    pages: Vec<[u8; PAGE]>,
}

static CLASSES: LazyLock<Classes> = LazyLock::new(|| {
    let mut flat: HashMap<usize, [u8; PAGE]> = HashMap::new();
    for line in include_str!("ctype_utf8.tsv").lines() {
        let mut columns = line.split('\t');
        let bit = match columns.next() {
            Some("alpha") => ALPHA,
            Some("special") => SPECIAL,
            Some("space") => SPACE,
            _ => continue,
        };
        let mut bound = || {
            let text = columns.next().expect("class, first, last");
            usize::from_str_radix(text, 16).expect("a hexadecimal code point")
        };
        for code in bound()..=bound() {
            flat.entry(code / PAGE).or_insert([0; PAGE])[code % PAGE] |= bit;
        }
    }
    let mut pages = vec![[0; PAGE]];
    let page_of = (0..PAGES)
        .map(|number| {
            let Some(page) = flat.get(&number) else { return 0 };
            let at =
                pages.iter().position(|known| known == page).unwrap_or_else(|| {
                    pages.push(*page);
                    pages.len() - 1
                });
            u16::try_from(at).expect("fewer pages than 65,536")
        })
        .collect();
    Classes { page_of, pages }
});

static LOWER: LazyLock<HashMap<char, char, foldhash::fast::FixedState>> =
    LazyLock::new(|| {
        let code =
            |text: &str| u32::from_str_radix(text, 16).ok().and_then(char::from_u32);
        include_str!("lower_simple.tsv")
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(from, to)| Some((code(from)?, code(to)?)))
            .collect()
    });

fn class(c: char) -> u8 {
    let code = c as usize;
    CLASSES.pages[usize::from(CLASSES.page_of[code / PAGE])][code % PAGE]
}

/// Letters, and all decimal digits outside ASCII.
pub fn is_alpha(c: char) -> bool {
    class(c) & ALPHA != 0
}

/// Letters and digits: what makes up a word, for the word parser and for trigrams.
pub fn is_alnum(c: char) -> bool {
    c.is_ascii_digit() || is_alpha(c)
}

/// Characters that are no letters but go on with a word: mostly those of no width.
pub fn is_special(c: char) -> bool {
    class(c) & SPECIAL != 0
}

/// White space for the word parser.
pub fn is_space(c: char) -> bool {
    class(c) & SPACE != 0
}

/// The lower case of one character, which is always one character.
pub fn lower(c: char) -> char {
    if c.is_ascii() {
        c.to_ascii_lowercase()
    } else {
        LOWER.get(&c).copied().unwrap_or(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_measured_sizes() {
        let count = |test: fn(char) -> bool| {
            (0..=0x10FFFF).filter_map(char::from_u32).filter(|&c| test(c)).count()
        };
        assert_eq!(count(is_alpha), 134_046);
        assert_eq!(count(is_special), 1_637);
        assert_eq!(count(is_space), 21);
        assert_eq!(count(|c| lower(c) != c), 1_460);
    }

    #[test]
    fn lower_case_is_the_simple_mapping() {
        assert_eq!(lower('\u{130}'), 'i');
        assert_eq!(lower('Σ'), 'σ');
        assert_eq!(lower('Ⱥ'), 'ⱥ');
    }
}
