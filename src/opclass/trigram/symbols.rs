//! Strings of symbols, of which `regex` builds what a pattern can match.
//!
//! A symbol is a lower-cased word character, [`BLANK`] or [`EDGE`]. No blank follows
//! another, and an edge is only ever alone.

use std::collections::BTreeSet;

use super::window::{self, BLANK};

/// `\b`, as long as it is not known on which side the blank is; only ever alone.
pub const EDGE: char = '\u{1}';

/// A text as symbols.
pub fn symbols(text: &str) -> String {
    let mut symbols = String::with_capacity(text.len());
    for symbol in text.chars().map(window::fold) {
        if symbol != BLANK || !symbols.ends_with(BLANK) {
            symbols.push(symbol);
        }
    }
    symbols
}

/// Two strings one behind the other.
pub fn join(a: &str, b: &str) -> String {
    let edge = |s: &str| s.starts_with(EDGE);
    match (a.chars().next_back(), b.chars().next()) {
        (None, _) => b.into(),
        (_, None) => a.into(),
        (_, Some(EDGE)) if edge(a) => a.into(),
        (Some(EDGE), Some(BLANK)) => b.into(),
        (Some(EDGE), _) => format!("{BLANK}{b}"),
        (Some(BLANK), Some(EDGE)) => a.into(),
        (_, Some(EDGE)) => format!("{a}{BLANK}"),
        (Some(BLANK), Some(BLANK)) => format!("{a}{}", &b[BLANK.len_utf8()..]),
        _ => format!("{a}{b}"),
    }
}

/// The first symbols of a string, one at least.
pub fn head(string: &str, symbols: usize) -> &str {
    match string.char_indices().nth(symbols) {
        Some((at, _)) => &string[..at],
        None => string,
    }
}

/// The last symbols of a string, one at least.
pub fn tail(string: &str, symbols: usize) -> &str {
    match string.char_indices().rev().nth(symbols - 1) {
        Some((at, _)) => &string[at..],
        None => string,
    }
}

/// The keys of the windows that end in a string's symbols and are known.
pub fn windows(string: &str) -> BTreeSet<i32> {
    let mut keys = BTreeSet::new();
    let mut before: [Option<char>; 2] = [None; 2];
    for symbol in string.chars() {
        let window = match (before, symbol) {
            ([_, Some(BLANK) | None], BLANK) => None,
            ([_, Some(BLANK)], _) => Some([BLANK, BLANK, symbol]),
            ([Some(second), Some(first)], _) => Some([second, first, symbol]),
            _ => None,
        };
        keys.extend(window.map(window::key_of));
        before = [before[1], Some(symbol)];
    }
    keys
}
