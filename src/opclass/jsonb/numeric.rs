//! Exact decimal numbers as they travel on a tape.
//!
//! A JSON number is an exact decimal with a scale: `1.50` prints as `1.50`, equals
//! `1.5`, and has the keys of `1.5`. On the tape it stands as PostgreSQL prints it, in
//! plain notation. One exception bounds memory: a handful of bytes such as `1e131071`
//! would print as 131,072 digits, so where plain notation is much longer than what was
//! written, the tape keeps `DIGITSeEXPONENT` ([`PLAIN_MAX`]): all digits as an integer
//! without leading zeros, and the power of ten; a negative power is the scale.
//!
//! Everything here reads both forms through [`Decimal`] and never writes the long form
//! out, except [`print`] and [`canonical`], which must.
//!
//! Limits are those of PostgreSQL's `numeric`: [`INTEGER_DIGITS_MAX`] digits before the
//! point, [`SCALE_MAX`] behind it.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::hash::hash_bytes;
use crate::error::{Error, Result};

/// Most digits before the decimal point.
pub(crate) const INTEGER_DIGITS_MAX: i64 = 131_072;
/// Most digits behind the decimal point.
pub(crate) const SCALE_MAX: i64 = 16_383;
/// Largest exponent that can be written, whatever the digits.
const EXPONENT_MAX: i64 = (i32::MAX / 2) as i64;
/// Plain notation up to so many bytes is always used; beyond, up to twice the length of
/// what was written.
const PLAIN_MAX: usize = 24;

/// The error for a number beyond the limits.
pub(crate) fn overflow() -> Error {
    Error::value("value overflows numeric format")
}

/// A number of a tape, taken apart: digits `integer` and `fraction`, then a power of
/// ten on top (0 in plain notation).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Takes a number apart; `text` is one of the two forms of a tape, or JSON's.
    pub(crate) fn of(text: &'a str) -> Decimal<'a> {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (digits, exponent) =
            match bytes.iter().rposition(|&byte| byte == b'e' || byte == b'E') {
                Some(at) => (&bytes[..at], exponent_of(&bytes[at + 1..])),
                None => (bytes, 0),
            };
        let (integer, fraction) = match memchr::memchr(b'.', digits) {
            Some(at) => (&digits[..at], &digits[at + 1..]),
            None => (digits, &digits[..0]),
        };
        Decimal { negative, integer, fraction, exponent }
    }

    /// The value is [`Decimal::digits`] × 10^-places.
    pub(crate) fn places(&self) -> i64 {
        self.fraction.len() as i64 - self.exponent
    }

    /// Digits behind the point that printing shows.
    pub(crate) fn scale(&self) -> i64 {
        self.places().max(0)
    }

    /// All digits as they are written, zeros included.
    pub(crate) fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.integer.iter().chain(self.fraction).copied()
    }

    /// Value without what does not matter to it.
    pub(crate) fn normal(&self) -> Normal<'a> {
        let (mut integer, mut fraction) = (self.integer, self.fraction);
        let mut point = integer.len() as i64 + self.exponent;
        let zeros = integer.iter().take_while(|&&digit| digit == b'0').count();
        integer = &integer[zeros..];
        point -= zeros as i64;
        if integer.is_empty() {
            let zeros = fraction.iter().take_while(|&&digit| digit == b'0').count();
            fraction = &fraction[zeros..];
            point -= zeros as i64;
        }
        let kept =
            fraction.iter().rposition(|&digit| digit != b'0').map_or(0, |i| i + 1);
        fraction = &fraction[..kept];
        if fraction.is_empty() {
            let kept =
                integer.iter().rposition(|&digit| digit != b'0').map_or(0, |i| i + 1);
            integer = &integer[..kept];
        }
        let zero = integer.is_empty() && fraction.is_empty();
        Normal {
            negative: self.negative && !zero,
            integer,
            fraction,
            point: if zero { 0 } else { point },
        }
    }
}

/// Exponent digits with an optional sign, saturating far outside all limits.
fn exponent_of(bytes: &[u8]) -> i64 {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude = digits.iter().fold(0_i64, |sum, digit| {
        (sum * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX + 1)
    });
    if negative { -magnitude } else { magnitude }
}

/// A value 0.D × 10^`point`, where D is `integer` then `fraction`, without zeros at
/// either end; zero has no digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal<'a> {
    pub(crate) negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    pub(crate) point: i64,
}

impl<'a> Normal<'a> {
    /// D, most significant digit first.
    pub(crate) fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.integer.iter().chain(self.fraction).copied()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.integer.is_empty() && self.fraction.is_empty()
    }

    /// Groups of four digits aligned at the decimal point, most significant first, and
    /// the weight of the first one: 0 for the group just before the point.
    pub(crate) fn groups(&self) -> (i64, impl Iterator<Item = u16> + use<'a>) {
        let weight = (self.point - 1).div_euclid(4);
        let mut missing = 3 - (self.point - 1).rem_euclid(4);
        let mut digits = self.digits().peekable();
        let groups = std::iter::from_fn(move || {
            digits.peek()?;
            let mut group = 0;
            for _ in 0..4 {
                let digit = if missing > 0 {
                    missing -= 1;
                    b'0'
                } else {
                    digits.next().unwrap_or(b'0')
                };
                group = group * 10 + u16::from(digit - b'0');
            }
            Some(group)
        });
        (weight, groups)
    }
}

/// Order by value; the scale does not matter.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Decimal::of(a).normal(), Decimal::of(b).normal());
    let by_magnitude = || match (a.is_zero(), b.is_zero()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => a.point.cmp(&b.point).then_with(|| a.digits().cmp(b.digits())),
    };
    match (a.negative, b.negative) {
        (false, false) => by_magnitude(),
        (true, true) => by_magnitude().reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// Whether the value is zero.
pub(crate) fn is_zero(text: &str) -> bool {
    Decimal::of(text).normal().is_zero()
}

/// What a tape holds for a number token of JSON; fails beyond the limits.
pub(crate) fn to_tape(token: &str) -> Result<Cow<'_, str>> {
    let decimal = Decimal::of(token);
    if decimal.exponent.abs() > EXPONENT_MAX {
        return Err(overflow());
    }
    let normal = decimal.normal();
    let scale = decimal.scale();
    if normal.point > INTEGER_DIGITS_MAX || scale > SCALE_MAX {
        return Err(overflow());
    }
    if memchr::memchr2(b'e', b'E', token.as_bytes()).is_none() {
        let negative_zero = normal.is_zero() && decimal.negative;
        return Ok(Cow::Borrowed(if negative_zero { &token[1..] } else { token }));
    }
    let plain = usize::from(normal.negative)
        + normal.point.max(1) as usize
        + if scale > 0 { 1 + scale as usize } else { 0 };
    let mut compact = String::with_capacity(token.len() + 8);
    if normal.negative {
        compact.push('-');
    }
    let digits: Vec<u8> = decimal.digits().skip_while(|&digit| digit == b'0').collect();
    let exponent = decimal.exponent - decimal.fraction.len() as i64;
    compact.extend(digits.iter().map(|&digit| char::from(digit)));
    if digits.is_empty() {
        compact.push('0');
    }
    // A zero has no use for a positive power of ten.
    if !(exponent == 0 || normal.is_zero() && exponent > 0) {
        compact.push_str(&format!("e{exponent}"));
    }
    if plain > PLAIN_MAX.max(token.len() * 2) {
        return Ok(Cow::Owned(compact));
    }
    let mut text = String::with_capacity(plain);
    print(&compact, &mut text);
    Ok(Cow::Owned(text))
}

/// Appends a number of a tape in plain notation.
pub(crate) fn print(text: &str, out: &mut String) {
    let decimal = Decimal::of(text);
    if decimal.exponent == 0 {
        out.push_str(text);
        return;
    }
    if decimal.negative {
        out.push('-');
    }
    // A compact form has an integer only.
    let digits = decimal.integer.len() as i64;
    let before = (digits + decimal.exponent).max(0);
    let scale = decimal.scale();
    let mut integer = decimal.digits().map(char::from);
    if before == 0 {
        out.push('0');
    } else {
        out.extend(integer.by_ref().take(before as usize));
        out.extend(std::iter::repeat_n('0', (before - digits).max(0) as usize));
    }
    if scale > 0 {
        out.push('.');
        let zeros = (scale - digits).max(0);
        out.extend(std::iter::repeat_n('0', zeros as usize));
        out.extend(integer);
    }
}

/// The one text that all numbers of this value share: plain notation, no zeros at the
/// end of the fraction. `scratch` is used where that is not a part of `text`.
pub(crate) fn canonical<'a>(text: &'a str, scratch: &'a mut String) -> &'a str {
    let plain = if Decimal::of(text).exponent == 0 {
        text
    } else {
        scratch.clear();
        print(text, scratch);
        scratch.as_str()
    };
    if memchr::memchr(b'.', plain.as_bytes()).is_none() {
        return plain;
    }
    plain.trim_end_matches('0').trim_end_matches('.')
}

/// Hash of the value: equal for `1.5`, `1.50` and, as PostgreSQL has it, `-1.5`.
pub(crate) fn hash(text: &str, scratch: &mut Vec<u8>) -> u32 {
    let normal = Decimal::of(text).normal();
    if normal.is_zero() {
        return u32::MAX;
    }
    let (weight, groups) = normal.groups();
    scratch.clear();
    scratch.extend(groups.flat_map(u16::to_le_bytes));
    hash_bytes(scratch) ^ (weight as i32).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(token: &str) -> String {
        let mut out = String::new();
        print(&to_tape(token).unwrap(), &mut out);
        out
    }

    #[test]
    fn numbers_print_plainly_with_their_scale() {
        for (token, text) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("1.50", "1.50"),
            ("1e2", "100"),
            ("1.5e2", "150"),
            ("1.234e2", "123.4"),
            ("1.50e1", "15.0"),
            ("12e-3", "0.012"),
            ("0.001e3", "1"),
            ("0.0010e3", "1.0"),
            ("0e5", "0"),
            ("1e0", "1"),
            ("1.20E-0", "1.20"),
            ("-0e-3", "0.000"),
            ("0e1073741823", "0"),
            ("-1E+3", "-1000"),
        ] {
            assert_eq!(printed(token), text, "{token}");
        }
        assert_eq!(printed("1e40"), format!("1{}", "0".repeat(40)));
        assert_eq!(printed("-12e-40"), format!("-0.{}12", "0".repeat(38)));
        assert_eq!(printed("0e-100"), format!("0.{}", "0".repeat(100)));
    }

    #[test]
    fn a_long_plain_form_is_not_kept() {
        assert_eq!(to_tape("1e131071").unwrap(), "1e131071");
        assert_eq!(to_tape("-1.50e1000").unwrap(), "-150e998");
        assert_eq!(to_tape("0.015e-999").unwrap(), "15e-1002");
        assert_eq!(to_tape("1e23").unwrap(), format!("1{}", "0".repeat(23)));
    }

    #[test]
    fn numbers_beyond_the_limits_are_refused() {
        let zeros = |count| "0".repeat(count);
        for token in [
            "1e131072",
            "1e-16384",
            "0e-16384",
            "0e1073741824",
            "1e999999999999999999999999",
            "1e-999999999999999999999999",
            &format!("1{}", zeros(131_072)),
            &format!("0.{}1", zeros(16_383)),
            &format!("0.{}", zeros(16_384)),
        ] {
            let error = to_tape(token).unwrap_err();
            assert_eq!(error.to_string(), "value overflows numeric format", "{token}");
        }
        for token in [
            "9.99e131071",
            "1e-16383",
            &format!("1{}", zeros(131_071)),
            &format!("0.{}1e20000", zeros(20_000)),
            &format!("1.{}e20000", zeros(20_000)),
        ] {
            assert!(to_tape(token).is_ok(), "{token}");
        }
    }

    #[test]
    fn values_compare_without_regard_to_scale() {
        for (a, b, order) in [
            ("1", "1.00", Ordering::Equal),
            ("0", "0.00", Ordering::Equal),
            ("1e1000", "9e999", Ordering::Greater),
            ("-2", "1", Ordering::Less),
            ("-2", "-1", Ordering::Less),
            ("0", "-0.5", Ordering::Greater),
            ("0.09", "0.1", Ordering::Less),
            ("12", "123", Ordering::Less),
            ("100", "1e2", Ordering::Equal),
            ("0.012", "12e-3", Ordering::Equal),
        ] {
            assert_eq!(compare(a, b), order, "{a} {b}");
            assert_eq!(compare(b, a), order.reverse(), "{b} {a}");
        }
    }

    #[test]
    fn canonical_text_has_no_trailing_zeros_of_a_fraction() {
        let mut scratch = String::new();
        for (text, expected) in [
            ("100", "100"),
            ("1.50", "1.5"),
            ("1.00", "1"),
            ("0.00", "0"),
            ("-10.0", "-10"),
            ("5e3", "5000"),
            ("50e-3", "0.05"),
        ] {
            assert_eq!(canonical(text, &mut scratch), expected);
        }
    }

    #[test]
    fn numbers_hash_as_on_the_server() {
        let mut scratch = Vec::new();
        for (text, expected) in [
            ("0", 0xFFFF_FFFF),
            ("0.00", 0xFFFF_FFFF),
            ("1", 0x4EF7_E348),
            ("-1.0", 0x4EF7_E348),
            ("10", 0xBBD1_037E),
            ("0.5", 0x8AB0_330B),
            ("10000", 0x4EF7_E349),
            ("1e4", 0x4EF7_E349),
            ("12345678", 0x5660_E898),
            ("0.00001", 0x7458_B6DC),
            ("1.5", 0x294D_D9D6),
            ("12340000", 0xB4B0_C399),
        ] {
            assert_eq!(hash(text, &mut scratch), expected, "{text}");
        }
    }
}
