//! Words of a text, their windows of three characters, and the key of a window.
//!
//! A word is a run of letters and digits ([`ctype::is_alnum`]), lower-cased character
//! by character, with two blanks before and one behind. A window of three ASCII
//! characters is its own key; any other is reduced to three bytes of a checksum of its
//! UTF-8 form, so that all keys share 24 bits. Two windows may then have the same key;
//! the recheck of every trigram query makes that harmless.

use std::sync::LazyLock;

use crate::opclass::ctype;

/// What stands for "no word character" in a window.
pub const BLANK: char = ' ';

/// A window of a text, in text order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its key.
    pub key: i32,
    /// Whether it is the first one of its word.
    pub first: bool,
    /// Whether it is the last one of its word.
    pub last: bool,
}

/// Of the characters of 16 bits: what [`fold`] makes of them, if that has 16 bits too,
/// else 0. Text outside ASCII folds every character, so one load must do.
static FOLDED: LazyLock<Vec<u16>> = LazyLock::new(|| {
    (0..=u16::MAX)
        .map(|code| {
            char::from_u32(code.into())
                .and_then(|c| u16::try_from(u32::from(fold_by_class(c))).ok())
                .unwrap_or(0)
        })
        .collect()
});

/// The lower-cased word character that `c` is, or [`BLANK`].
pub fn fold(c: char) -> char {
    let folded = FOLDED.get(c as usize).map_or(0, |&code| u32::from(code));
    match char::from_u32(folded) {
        None | Some('\0') => fold_by_class(c),
        Some(folded) => folded,
    }
}

fn fold_by_class(c: char) -> char {
    if ctype::is_alnum(c) { ctype::lower(c) } else { BLANK }
}

/// Calls `each` for every window of the text, repeated ones included.
pub fn each_window(text: &str, mut each: impl FnMut(Window)) {
    let mut before = [BLANK; 2];
    for c in text.chars().map(fold).chain([BLANK]) {
        let [second, first] = before;
        if c != BLANK {
            let key = key_of([second, first, c]);
            each(Window { key, first: first == BLANK, last: false });
            before = [first, c];
        } else if first != BLANK {
            each(Window { key: key_of([second, first, c]), first: false, last: true });
            before = [BLANK; 2];
        }
    }
}

/// The key of three characters, lower-cased and padded already.
pub fn key_of(window: [char; 3]) -> i32 {
    let mut utf8 = [0; 12];
    let mut len = 0;
    for c in window {
        len += c.encode_utf8(&mut utf8[len..]).len();
    }
    match utf8[..len] {
        [a, b, c] => i32::from_be_bytes([0, a, b, c]),
        ref longer => {
            let [a, b, c, _] = checksum(longer).to_le_bytes();
            i32::from_be_bytes([0, a, b, c])
        }
    }
}

/// The table of the reflected CRC-32 with polynomial 0xEDB88320.
const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ (0xEDB8_8320 & (rest & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

/// PostgreSQL's "legacy" CRC-32: a reflected table under the unreflected update, equal
/// to no standard checksum.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        CRC_TABLE[usize::from((crc >> 24) as u8 ^ byte)] ^ (crc << 8)
    })
}

/// A key as `show_trgm` prints it: its three characters, or `0x` and its digits when
/// one of them is no ASCII letter, digit or space.
pub fn text_of(key: i32) -> String {
    let [_, bytes @ ..] = key.to_be_bytes();
    if bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ') {
        bytes.iter().map(|&byte| char::from(byte)).collect()
    } else {
        format!("0x{:06x}", key & 0xFF_FFFF)
    }
}

/// Keys as `show_trgm` lists them: ordered by bytes with sign, unlike in the index.
pub fn show(keys: &[i32]) -> Vec<String> {
    let mut keys = keys.to_vec();
    keys.sort_unstable_by_key(|key| key.to_be_bytes().map(u8::cast_signed));
    keys.dedup();
    keys.into_iter().map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_has_the_known_check_values() {
        assert_eq!(checksum(b"123456789"), 0xC40E_D0B0);
        assert_eq!(checksum("日本語".as_bytes()), 0x0BC0_9481);
        assert_eq!(key_of(['日', '本', '語']), 8_492_224);
        assert_eq!(key_of(['a', 'é', 'b']), 0x18_D4E9);
    }

    #[test]
    fn folding_by_the_table_is_folding_by_class() {
        for c in '\0'..=char::MAX {
            assert_eq!(fold(c), fold_by_class(c), "{c:?}");
        }
    }

    #[test]
    fn windows_know_where_their_word_begins_and_ends() {
        let mut seen = Vec::new();
        each_window("a-Bc", |w| seen.push((text_of(w.key), w.first, w.last)));
        let seen: Vec<_> = seen.iter().map(|(t, f, l)| (t.as_str(), *f, *l)).collect();
        assert_eq!(
            seen,
            [
                ("  a", true, false),
                (" a ", false, true),
                ("  b", true, false),
                (" bc", false, false),
                ("bc ", false, true),
            ]
        );
    }
}
