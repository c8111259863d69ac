//! What `jsonb` cannot store though it is valid JSON: strings, containers and counts
//! beyond the widths of the stored form. Nothing here matters below 30 MB of text.
//!
//! The stored form of a container is a header word, a word per element (two per pair),
//! then the elements' bytes; numbers and containers begin at multiples of four, keys
//! stand before values. Its length and the sum of its elements' lengths must fit in 28
//! bits. [`check`] adds the lengths up without making the bytes.

use super::numeric::Decimal;
use crate::document::{Json, JsonEvent};
use crate::error::{Error, Result};

/// Most bytes of a string and of a container in stored form.
const LENGTH_MAX: usize = 0x0FFF_FFFF;
/// Most elements of an array: beyond, the server asks for more memory than it may.
const ELEMENTS_MAX: usize = 1 << 24;
/// Most pairs of an object, equal keys counted, for the same reason.
const PAIRS_MAX: usize = 1 << 23;
/// No byte of text takes more bytes of stored form.
const GROWTH_MAX: usize = 8;

/// Refuses a string that is too long.
pub(super) fn string(bytes: usize) -> Result<()> {
    if bytes > LENGTH_MAX {
        return Err(Error::value(format!(
            "string too long to represent as jsonb string: {bytes} bytes, at most \
             {LENGTH_MAX}"
        )));
    }
    Ok(())
}

/// Counts an element of an array.
pub(super) fn element(elements: &mut usize) -> Result<()> {
    *elements += 1;
    if *elements > ELEMENTS_MAX {
        return Err(Error::value(format!(
            "number of jsonb array elements exceeds the maximum of {ELEMENTS_MAX}"
        )));
    }
    Ok(())
}

/// Refuses an object with too many pairs.
pub(super) fn pairs(pairs: usize) -> Result<()> {
    if pairs > PAIRS_MAX {
        return Err(Error::value(format!(
            "number of jsonb object pairs exceeds the maximum of {PAIRS_MAX}"
        )));
    }
    Ok(())
}

/// Refuses a value, read from `text_len` bytes, whose stored form would be too long.
pub(super) fn check(text_len: usize, json: &Json) -> Result<()> {
    if text_len <= LENGTH_MAX / GROWTH_MAX {
        return Ok(());
    }
    let length = Lengths::of(json).largest;
    if length > LENGTH_MAX {
        return Err(Error::value(format!(
            "total size of jsonb elements exceeds the maximum of {LENGTH_MAX} bytes: \
             a container takes {length} bytes"
        )));
    }
    Ok(())
}

/// Where each container begins in the stored form, counted from where the outermost one
/// begins; in the order of the tape.
pub(super) fn container_offsets(json: &Json) -> Vec<u64> {
    Lengths::of(json).begins.into_iter().map(|begin| begin as u64).collect()
}

/// Where a container begins that is the value of `{"id": …, "key": …, "value": …}`.
pub(super) fn pair_value_offset(id: u64, key_bytes: usize) -> u64 {
    // A header word, three pairs of words, the keys.
    let front = (4 + 3 * 8 + "idkeyvalue".len()).next_multiple_of(4);
    let id = stored_number(&id.to_string());
    (front + id + key_bytes).next_multiple_of(4) as u64
}

/// A walk over a tape that adds up stored lengths.
struct Lengths {
    /// Words and key bytes of each container, in the order in which they begin.
    fronts: Vec<(usize, usize)>,
    /// Where each container begins, padding not counted.
    begins: Vec<usize>,
    /// Bytes of stored form so far.
    at: usize,
    /// Length of the longest container.
    largest: usize,
}

impl Lengths {
    fn of(json: &Json) -> Lengths {
        let mut lengths =
            Lengths { fronts: fronts(json), begins: Vec::new(), at: 0, largest: 0 };
        let mut open = Vec::new();
        for event in json.events() {
            match event {
                JsonEvent::BeginArray | JsonEvent::BeginObject => {
                    open.push(lengths.at);
                    let (words, keys) = lengths.fronts[lengths.begins.len()];
                    let begin = lengths.at.next_multiple_of(4);
                    lengths.begins.push(begin);
                    lengths.at = begin + 4 + 4 * words + keys;
                }
                JsonEvent::EndArray | JsonEvent::EndObject => {
                    let begin = open.pop().unwrap_or_default();
                    lengths.largest = lengths.largest.max(lengths.at - begin);
                }
                JsonEvent::Number(number) => {
                    lengths.at = lengths.at.next_multiple_of(4) + stored_number(number);
                }
                JsonEvent::String(string) => lengths.at += string.len(),
                JsonEvent::Key(_) | JsonEvent::Null | JsonEvent::Bool(_) => {}
            }
        }
        lengths
    }
}

/// Words behind the header, and bytes of keys, of each container.
fn fronts(json: &Json) -> Vec<(usize, usize)> {
    let mut fronts = Vec::new();
    let mut open: Vec<(usize, bool)> = Vec::new();
    for event in json.events() {
        if let (Some(&(number, is_object)), false) = (open.last(), is_end(&event)) {
            let (words, keys): &mut (usize, usize) = &mut fronts[number];
            if let JsonEvent::Key(key) = event {
                *words += 2;
                *keys += key.len();
            } else if !is_object {
                *words += 1;
            }
        }
        match event {
            JsonEvent::BeginArray | JsonEvent::BeginObject => {
                open.push((fronts.len(), event == JsonEvent::BeginObject));
                fronts.push((0, 0));
            }
            _ if is_end(&event) => {
                open.pop();
            }
            _ => {}
        }
    }
    fronts
}

fn is_end(event: &JsonEvent<'_>) -> bool {
    matches!(event, JsonEvent::EndArray | JsonEvent::EndObject)
}

/// Bytes of a number: a length word, a header of two bytes, or four for a large scale
/// or weight, and two bytes per group of four digits.
fn stored_number(text: &str) -> usize {
    const SHORT_SCALE: i64 = 63;
    const SHORT_WEIGHT: std::ops::RangeInclusive<i64> = -64..=63;
    let decimal = Decimal::of(text);
    let normal = decimal.normal();
    let (weight, groups) = normal.groups();
    let short = decimal.scale() <= SHORT_SCALE
        && (normal.is_zero() || SHORT_WEIGHT.contains(&weight));
    4 + if short { 2 } else { 4 } + 2 * groups.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::parse;

    #[test]
    fn stored_lengths_are_those_of_pg_column_size() {
        // pg_column_size counts the length word of the whole value, 4 bytes.
        for (text, size) in [
            ("{}", 8),
            ("[]", 8),
            ("[1]", 20),
            ("[\"abc\", 1]", 28),
            (r#"{"a": 1}"#, 28),
            (r#"{"a": "xyz", "bc": [1, 2.5, {"d": null}]}"#, 81),
            ("[0]", 18),
            ("[1e70, -12345678.5]", 36),
            ("[1e-70]", 22),
            (r#"[[],[1],"a",[2]]"#, 64),
        ] {
            let json = parse(text).unwrap();
            assert_eq!(Lengths::of(&json).largest + 4, size, "{text}");
        }
    }

    #[test]
    fn a_container_fits_up_to_the_last_byte() {
        let twice = |numbers: usize| {
            let inner = format!("[{}1]", "1,".repeat(numbers));
            parse(&format!("[{inner},{inner}]"))
        };
        // Tried on a server: 12 bytes a number, one more pair of them is too much.
        assert!(twice(11_184_808).is_ok());
        let error = twice(11_184_809).unwrap_err();
        assert!(error.to_string().starts_with("total size of jsonb"), "{error}");
    }

    #[test]
    fn an_array_has_a_largest_number_of_elements() {
        let array =
            |elements: usize| parse(&format!("[{}1]", "1,".repeat(elements - 1)));
        assert!(array(ELEMENTS_MAX).is_ok());
        let error = array(ELEMENTS_MAX + 1).unwrap_err();
        assert!(
            error.to_string().starts_with("number of jsonb array elements"),
            "{error}"
        );
    }
}
