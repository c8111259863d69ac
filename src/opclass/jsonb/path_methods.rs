//! Conversions behind the methods of jsonpath: strings and numbers to numbers, integers
//! and booleans, by the rules of PostgreSQL's input functions for these types.

use super::arith::{self, Rounding};
use super::numeric::{self, Decimal};
use crate::error::{Error, Result};

/// White space that input functions pass over.
fn trimmed(text: &str) -> &str {
    let is_space = |c: char| matches!(c, ' ' | '\t'..='\r');
    text.trim_matches(is_space)
}

/// The sign in front, and the rest.
fn signed(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Base and digits of an integer with a prefix such as `0x`.
fn based(text: &str) -> Option<(u32, &str)> {
    let base = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => return None,
    };
    Some((base, &text[2..]))
}

/// The digits without the underscores between them; none if they are not placed right.
/// Behind a base prefix an underscore may come first.
fn plain_digits(text: &str, base: u32, may_begin: bool) -> Option<String> {
    let mut digits = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut may_have = may_begin;
    while let Some(c) = chars.next() {
        if c == '_' {
            if !may_have || !chars.peek().is_some_and(|next| next.is_digit(base)) {
                return None;
            }
            may_have = false;
        } else if c.is_digit(base) {
            digits.push(c);
            may_have = true;
        } else {
            return None;
        }
    }
    (!digits.is_empty()).then_some(digits)
}

/// Input of `bigint` (and, with a further check, of `integer`).
pub(super) fn parse_integer(text: &str) -> Option<i64> {
    let (negative, rest) = signed(trimmed(text));
    let magnitude = match based(rest) {
        Some((base, digits)) => {
            let digits = plain_digits(digits, base, true)?;
            i128::from_str_radix(&digits, base).ok()?
        }
        None => plain_digits(rest, 10, false)?.parse().ok()?,
    };
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Input of `numeric`, in the form of a tape; not-a-number and infinities are refused.
pub(super) fn number_of(text: &str) -> Result<String> {
    let invalid =
        || Error::value(format!("invalid input syntax for type numeric: {text:?}"));
    let (negative, rest) = signed(trimmed(text));
    let number = match based(rest) {
        Some((base, digits)) => {
            let digits = plain_digits(digits, base, true).ok_or_else(invalid)?;
            from_base(&digits, base)?
        }
        None => {
            let number = decimal_digits(rest).ok_or_else(invalid)?;
            numeric::to_tape(&number)?.into_owned()
        }
    };
    if negative && !numeric::is_zero(&number) {
        return Ok(format!("-{number}"));
    }
    Ok(number)
}

/// A decimal number without its underscores, as JSON would write it.
fn decimal_digits(text: &str) -> Option<String> {
    let (digits, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let (integer, fraction) = match digits.split_once('.') {
        Some((integer, fraction)) => (integer, fraction),
        None => (digits, ""),
    };
    let part = |part: &str| match part {
        "" => Some(String::new()),
        part => plain_digits(part, 10, false),
    };
    let mut number = part(integer)?;
    if let Some(start) = number.find(|digit| digit != '0') {
        number.drain(..start);
    } else if !number.is_empty() {
        number.truncate(1);
    }
    let fraction = part(fraction)?;
    if number.is_empty() && fraction.is_empty() {
        return None;
    }
    if number.is_empty() {
        number.push('0');
    }
    if !fraction.is_empty() {
        number.push('.');
        number.push_str(&fraction);
    }
    if let Some(exponent) = exponent {
        let (negative, digits) = signed(exponent);
        number.push_str(if negative { "e-" } else { "e" });
        number.push_str(&plain_digits(digits, 10, false)?);
    }
    Some(number)
}

/// Digits of another base as a decimal number; as many as are within the limits.
fn from_base(digits: &str, base: u32) -> Result<String> {
    // More digits than any number within the limits has, in any base.
    const DIGITS_MAX: usize = 440_000;
    let digits = digits.trim_start_matches('0');
    if digits.len() > DIGITS_MAX {
        return Err(numeric::overflow());
    }
    // Limbs to the base 10⁹, least significant first.
    let mut limbs = vec![0_u32];
    for chunk in digits.as_bytes().chunks(7) {
        let (mut carry, mut factor) = (0_u64, 1_u64);
        for &digit in chunk {
            let digit = char::from(digit).to_digit(base).unwrap_or(0);
            carry = carry * u64::from(base) + u64::from(digit);
            factor *= u64::from(base);
        }
        for limb in &mut limbs {
            carry += u64::from(*limb) * factor;
            *limb = (carry % 1_000_000_000) as u32;
            carry /= 1_000_000_000;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
    }
    let mut text = String::new();
    for limb in limbs.iter().rev() {
        text.push_str(&format!("{limb:09}"));
    }
    let text = match text.trim_start_matches('0') {
        "" => "0",
        text => text,
    };
    Ok(numeric::to_tape(text)?.into_owned())
}

/// A number whose text form is one of an integer of 64 bits, with no point.
pub(super) fn integer_text(number: &str) -> Option<i64> {
    if Decimal::of(number).scale() > 0 { None } else { arith::to_integer(number) }
}

/// Input of `boolean`: unique beginnings of the words, in any case.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    let begins = |word: &str, least: usize| {
        (least..=word.len()).contains(&text.len())
            && word[..text.len()].eq_ignore_ascii_case(text)
    };
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || text == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

/// Whether a number has a value of type `double precision`.
pub(super) fn fits_double(number: &str) -> bool {
    let is_zero = numeric::is_zero(number);
    // A value that is not zero must not become zero, either.
    number
        .parse()
        .is_ok_and(|value: f64| value.is_finite() && (value == 0.0) == is_zero)
}

/// A string as `double precision`, then as a number: 15 significant digits.
pub(super) fn double_of(text: &str) -> Option<String> {
    let text = trimmed(text);
    let value = match signed(text) {
        (negative, rest) if based(rest).is_some_and(|(base, _)| base == 16) => {
            let magnitude = hexadecimal_double(&rest[2..])?;
            if negative { -magnitude } else { magnitude }
        }
        (_, rest) => {
            // Words for infinity and not-a-number are no numbers of JSON.
            rest.bytes()
                .next()
                .filter(|byte| byte.is_ascii_digit() || *byte == b'.')?;
            let value: f64 = text.parse().ok()?;
            let mantissa = rest.split(['e', 'E']).next().unwrap_or("");
            let is_zero = !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
            if (value == 0.0) != is_zero {
                return None;
            }
            value
        }
    };
    if !value.is_finite() {
        return None;
    }
    let written = format!("{value:.14e}");
    let (mantissa, exponent) = written.split_once('e')?;
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let number = number_of(&format!("{mantissa}e{exponent}"));
    number.ok()
}

/// C's hexadecimal notation behind `0x`: digits with a point, then `p` and a power of
/// two.
fn hexadecimal_double(text: &str) -> Option<f64> {
    let (digits, power) = match text.find(['p', 'P']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [integer, fraction].concat();
    // Sixteen digits are exact, more would need rounding.
    if all.is_empty()
        || all.len() > 13
        || !all.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return None;
    }
    let mantissa = u64::from_str_radix(&all, 16).ok()?;
    let shift = 4 * i32::try_from(fraction.len()).ok()?;
    let value = mantissa as f64 * 2_f64.powi(power.checked_sub(shift)?);
    (value.is_finite() && (value == 0.0) == (mantissa == 0)).then_some(value)
}

/// Precision and scale of `.decimal()`, if they are allowed.
pub(super) fn precision_and_scale(
    precision: &str,
    scale: Option<&str>,
) -> Option<(i64, i64)> {
    let precision = arith::to_integer(precision)?;
    let scale = match scale {
        Some(scale) => arith::to_integer(scale)?,
        None => 0,
    };
    ((1..=1000).contains(&precision) && (-1000..=1000).contains(&scale))
        .then_some((precision, scale))
}

/// The number rounded to `scale`, if no more than `precision` digits are left.
pub(super) fn with_precision(
    number: &str,
    precision: i64,
    scale: i64,
) -> Option<String> {
    let rounded = arith::round(number, scale, Rounding::Half).ok()?;
    let normal = Decimal::of(&rounded).normal();
    (normal.is_zero() || normal.point <= precision - scale).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_like_bigint() {
        for (text, value) in [
            (" 12 ", Some(12)),
            ("-0x1F", Some(-31)),
            ("0o17", Some(15)),
            ("0b1_01", Some(5)),
            ("0x_1", Some(1)),
            ("1_000", Some(1000)),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("1.0", None),
            ("", None),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
        ] {
            assert_eq!(parse_integer(text), value, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_read_like_numeric() {
        for (text, value) in [
            (" -1_0.5_0e1 ", Some("-105.0")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("0x1FFFFFFFFFFFFFFFFF", Some("590295810358705651711")),
            ("-0b0", Some("0")),
            ("007", Some("7")),
            ("00.10", Some("0.10")),
            (".", None),
            ("e5", None),
            ("1e", None),
            ("NaN", None),
            ("1 2", None),
        ] {
            assert_eq!(number_of(text).ok().as_deref(), value, "{text:?}");
        }
    }

    #[test]
    fn doubles_keep_fifteen_digits() {
        for (text, value) in [
            ("0.1", Some("0.1")),
            (" 1e3 ", Some("1000")),
            ("123456789.123456789", Some("123456789.123457")),
            ("1e-400", None),
            ("1e400", None),
            ("inf", None),
            ("nan", None),
            ("0e400", Some("0")),
            ("0x1p4", Some("16")),
            ("1x", None),
            ("", None),
        ] {
            assert_eq!(double_of(text).as_deref(), value, "{text:?}");
        }
        assert!(fits_double("0.00") && !fits_double("1e309"));
    }

    #[test]
    fn booleans_are_read_by_unique_beginnings() {
        for text in ["t", "TRUE", "y", "ye", "on", "1"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["f", "false", "n", "of", "OFF", "0"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "o", "truee", " t", "2", "é"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }
}
