//! Arithmetic of jsonpath, exact like that of `numeric`.
//!
//! Numbers come and go in the form of a tape. Between, a value is an integer of limbs
//! to the base 10⁹ and a scale. What a result's scale is, PostgreSQL fixes: of a sum
//! the larger one, of a product the sum, of a quotient enough for
//! [`QUOTIENT_DIGITS`] significant digits; and what is cut off is rounded half away
//! from zero.

use std::cmp::Ordering;

use super::numeric::{Decimal, SCALE_MAX, to_tape};
use super::path::Arithmetic;
use crate::error::{Error, Result};

const BASE: u64 = 1_000_000_000;
const BASE_DIGITS: usize = 9;
/// Significant digits that a quotient has at least.
const QUOTIENT_DIGITS: i64 = 16;
/// Largest scale chosen for a quotient.
const QUOTIENT_SCALE_MAX: i64 = 1_000;

/// `left` `operator` `right`.
pub(super) fn calculate(
    operator: Arithmetic,
    left: &str,
    right: &str,
) -> Result<String> {
    let (a, b) = (Number::of(left), Number::of(right));
    match operator {
        Arithmetic::Add => a.plus(&b).into_tape(),
        Arithmetic::Subtract => {
            a.plus(&Number { negative: !b.negative, ..b }).into_tape()
        }
        Arithmetic::Multiply => {
            let product = Number {
                negative: a.negative != b.negative,
                limbs: multiply(&a.limbs, &b.limbs),
                scale: a.scale + b.scale,
            };
            let text = product.to_text();
            if product.scale > SCALE_MAX {
                return round(&text, SCALE_MAX, Rounding::Half);
            }
            Ok(to_tape(&text)?.into_owned())
        }
        Arithmetic::Divide | Arithmetic::Modulo if b.limbs.is_empty() => {
            Err(Error::value("division by zero"))
        }
        Arithmetic::Divide => {
            let scale = quotient_scale(left, right);
            // One digit more than wanted, for rounding; half is decided by that digit.
            let quotient = a.divided(&b, scale + 1);
            round(&quotient.to_text(), scale, Rounding::Half)
        }
        Arithmetic::Modulo => {
            let whole = a.divided(&b, 0);
            let back = Number {
                negative: a.negative,
                limbs: multiply(&whole.limbs, &b.limbs),
                scale: b.scale,
            };
            a.plus(&Number { negative: !back.negative, ..back }).into_tape()
        }
    }
}

/// The scale of a quotient: for enough significant digits, judged by the first groups
/// of four digits, and no less than either operand's.
fn quotient_scale(left: &str, right: &str) -> i64 {
    let front = |text: &str| {
        let normal = Decimal::of(text).normal();
        let (weight, mut groups) = normal.groups();
        match groups.next() {
            Some(first) => (weight, first),
            None => (0, 0),
        }
    };
    let (left_weight, left_first) = front(left);
    let (right_weight, right_first) = front(right);
    let mut weight = left_weight - right_weight;
    if left_first <= right_first {
        weight -= 1;
    }
    (QUOTIENT_DIGITS - weight * 4)
        .max(Decimal::of(left).scale())
        .max(Decimal::of(right).scale())
        .clamp(0, QUOTIENT_SCALE_MAX)
}

/// What happens to digits that are cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    /// To the nearest, half away from zero.
    Half,
    /// Dropped.
    Truncate,
    Floor,
    Ceiling,
}

/// The number with `scale` digits behind the point; a negative scale makes digits
/// before the point zero.
pub(super) fn round(text: &str, scale: i64, rounding: Rounding) -> Result<String> {
    let decimal = Decimal::of(text);
    let negative = decimal.normal().negative;
    let mut digits: Vec<u8> = decimal.digits().collect();
    // The last digit's place: the value is digits × 10^-places.
    let places = decimal.places();
    let cut = places - scale;
    if cut > 0 {
        let kept = usize::try_from(digits.len() as i64 - cut).unwrap_or(0);
        // Digits that are cut off but not written are zeros in front.
        let first = match digits.len() as i64 - cut {
            before if before >= 0 => digits.get(kept).copied().unwrap_or(b'0'),
            _ => b'0',
        };
        let any = digits[kept..].iter().any(|&digit| digit != b'0');
        let up = match rounding {
            Rounding::Half => first >= b'5',
            Rounding::Truncate => false,
            Rounding::Floor => any && negative,
            Rounding::Ceiling => any && !negative,
        };
        digits.truncate(kept);
        if up {
            increment(&mut digits);
        }
    } else if places >= 0 {
        digits.extend(std::iter::repeat_n(b'0', usize::try_from(-cut).unwrap_or(0)));
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    let exponent = if cut > 0 || places >= 0 { -scale } else { -places };
    let mut out = String::with_capacity(digits.len() + 8);
    if negative {
        out.push('-');
    }
    out.extend(digits.iter().map(|&digit| char::from(digit)));
    out.push_str(&format!("e{exponent}"));
    let rounded = to_tape(&out)?.into_owned();
    // More zeros behind the point than the number had: 1e5 with a scale of 2.
    if cut <= 0 && places < 0 && scale > 0 {
        return calculate(Arithmetic::Add, &rounded, &to_tape(&format!("0e-{scale}"))?);
    }
    Ok(rounded)
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// The nearest integer, half away from zero, if it fits.
pub(super) fn to_integer(text: &str) -> Option<i64> {
    let rounded = round(text, 0, Rounding::Half).ok()?;
    integer_of(&rounded)
}

/// The integer without what is behind the point, if it fits.
pub(super) fn truncated(text: &str) -> Option<i64> {
    let truncated = round(text, 0, Rounding::Truncate).ok()?;
    integer_of(&truncated)
}

fn integer_of(text: &str) -> Option<i64> {
    if Decimal::of(text).normal().point > 19 {
        return None;
    }
    let mut plain = String::new();
    super::numeric::print(text, &mut plain);
    plain.parse().ok()
}

/// ± limbs × 10^-scale; limbs least significant first, without zeros at the end.
#[derive(Clone, Debug)]
struct Number {
    negative: bool,
    limbs: Vec<u32>,
    scale: i64,
}

impl Number {
    fn of(text: &str) -> Number {
        let decimal = Decimal::of(text);
        let mut digits: Vec<u8> = decimal.digits().collect();
        let places = decimal.places();
        if places < 0 {
            digits.extend(std::iter::repeat_n(
                b'0',
                usize::try_from(-places).unwrap_or(0),
            ));
        }
        let limbs = digits.rchunks(BASE_DIGITS).map(|chunk| {
            chunk.iter().fold(0, |limb, digit| limb * 10 + u32::from(digit - b'0'))
        });
        let limbs = trimmed(limbs.collect());
        Number { negative: decimal.normal().negative, limbs, scale: places.max(0) }
    }

    fn to_text(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::with_capacity(self.limbs.len() * BASE_DIGITS + 8);
        if self.negative && !self.limbs.is_empty() {
            out.push('-');
        }
        let mut limbs = self.limbs.iter().rev();
        let written = write!(out, "{}", limbs.next().unwrap_or(&0))
            .and_then(|()| limbs.try_for_each(|limb| write!(out, "{limb:09}")))
            .and_then(|()| write!(out, "e-{}", self.scale));
        written.expect("writing to a string does not fail");
        out
    }

    fn into_tape(self) -> Result<String> {
        Ok(to_tape(&self.to_text())?.into_owned())
    }

    /// Limbs of the value with a larger scale.
    fn at_scale(&self, scale: i64) -> Vec<u32> {
        scaled(&self.limbs, scale - self.scale)
    }

    fn plus(&self, other: &Number) -> Number {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.at_scale(scale), other.at_scale(scale));
        if self.negative == other.negative {
            return Number { negative: self.negative, limbs: add(&a, &b), scale };
        }
        match compare(&a, &b) {
            Ordering::Less => {
                Number { negative: other.negative, limbs: subtract(&b, &a), scale }
            }
            _ => Number { negative: self.negative, limbs: subtract(&a, &b), scale },
        }
    }

    /// The quotient, cut off behind `scale` digits; `other` is not zero.
    fn divided(&self, other: &Number, scale: i64) -> Number {
        let shift = scale + other.scale - self.scale;
        let (dividend, divisor) = if shift >= 0 {
            (scaled(&self.limbs, shift), other.limbs.clone())
        } else {
            (self.limbs.clone(), scaled(&other.limbs, -shift))
        };
        Number {
            negative: self.negative != other.negative,
            limbs: divide(&dividend, &divisor),
            scale,
        }
    }
}

fn trimmed(mut limbs: Vec<u32>) -> Vec<u32> {
    let len = limbs.iter().rposition(|&limb| limb != 0).map_or(0, |at| at + 1);
    limbs.truncate(len);
    limbs
}

/// `limbs` × 10^`power`.
fn scaled(limbs: &[u32], power: i64) -> Vec<u32> {
    let power = usize::try_from(power).unwrap_or(0);
    if limbs.is_empty() {
        return Vec::new();
    }
    let mut out = vec![0; power / BASE_DIGITS];
    let factor = 10_u64.pow((power % BASE_DIGITS) as u32);
    let mut carry = 0;
    for &limb in limbs {
        carry += u64::from(limb) * factor;
        out.push((carry % BASE) as u32);
        carry /= BASE;
    }
    out.push(carry as u32);
    trimmed(out)
}

fn compare(a: &[u32], b: &[u32]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn add(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut carry = 0;
    let mut out: Vec<u32> = Vec::with_capacity(long.len() + 1);
    for (at, &limb) in long.iter().enumerate() {
        carry += u64::from(limb) + u64::from(short.get(at).copied().unwrap_or(0));
        out.push((carry % BASE) as u32);
        carry /= BASE;
    }
    out.push(carry as u32);
    trimmed(out)
}

/// `a` - `b`, which is not larger.
fn subtract(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut borrow = 0;
    let out = a.iter().enumerate().map(|(at, &limb)| {
        let less = u64::from(b.get(at).copied().unwrap_or(0)) + borrow;
        borrow = u64::from(u64::from(limb) < less);
        (u64::from(limb) + borrow * BASE - less) as u32
    });
    trimmed(out.collect())
}

fn multiply(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut out = vec![0_u32; a.len() + b.len()];
    for (at, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (slot, &y) in out[at..].iter_mut().zip(b) {
            carry += u64::from(*slot) + u64::from(x) * u64::from(y);
            *slot = (carry % BASE) as u32;
            carry /= BASE;
        }
        // Nothing has been added here yet.
        out[at + b.len()] = carry as u32;
    }
    trimmed(out)
}

/// The whole quotient: long division, each limb guessed from the leading ones.
fn divide(dividend: &[u32], divisor: &[u32]) -> Vec<u32> {
    if compare(dividend, divisor) == Ordering::Less {
        return Vec::new();
    }
    if let [divisor] = divisor {
        let mut rest = 0;
        let mut out = vec![0; dividend.len()];
        for (slot, &limb) in out.iter_mut().zip(dividend).rev() {
            rest = rest * BASE + u64::from(limb);
            *slot = (rest / u64::from(*divisor)) as u32;
            rest %= u64::from(*divisor);
        }
        return trimmed(out);
    }
    // With a leading limb of at least half the base a guess is at most 2 too large.
    let len = divisor.len();
    let factor = [(BASE / (u64::from(divisor[len - 1]) + 1)) as u32];
    let divisor = multiply(divisor, &factor);
    let mut rest = multiply(dividend, &factor);
    rest.resize(dividend.len() + 1, 0);
    let first = u64::from(divisor[len - 1]);
    let second = u64::from(divisor[len - 2]);
    let mut out = vec![0; dividend.len() + 1 - len];
    for at in (0..out.len()).rev() {
        let front = u64::from(rest[at + len]) * BASE + u64::from(rest[at + len - 1]);
        let mut guess = (front / first).min(BASE - 1);
        let mut left = front - guess * first;
        while left < BASE
            && guess * second > left * BASE + u64::from(rest[at + len - 2])
        {
            guess -= 1;
            left += first;
        }
        if take_away(&mut rest[at..=at + len], &divisor, guess) {
            // One too large after all: put the divisor back once.
            guess -= 1;
            let mut carry = 0;
            for (slot, limb) in
                rest[at..=at + len].iter_mut().zip(divisor.iter().chain([&0]))
            {
                carry += u64::from(*slot) + u64::from(*limb);
                *slot = (carry % BASE) as u32;
                carry /= BASE;
            }
        }
        out[at] = guess as u32;
    }
    trimmed(out)
}

/// `rest` -= `divisor` × `guess`, modulo its width; whether that went below zero.
fn take_away(rest: &mut [u32], divisor: &[u32], guess: u64) -> bool {
    let mut borrow = 0;
    for (slot, limb) in rest.iter_mut().zip(divisor.iter().chain([&0])) {
        let less = guess * u64::from(*limb) + borrow;
        let low = less % BASE;
        borrow = less / BASE;
        let have = u64::from(*slot);
        if have < low {
            borrow += 1;
            *slot = (have + BASE - low) as u32;
        } else {
            *slot = (have - low) as u32;
        }
    }
    borrow > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calculated(left: &str, operator: Arithmetic, right: &str) -> String {
        let mut out = String::new();
        let result = calculate(operator, left, right).unwrap();
        super::super::numeric::print(&result, &mut out);
        out
    }

    #[test]
    fn results_and_their_scales_are_those_of_numeric() {
        use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
        for (left, operator, right, result) in [
            ("1.50", Add, "1.5", "3.00"),
            ("1", Subtract, "1.00", "0.00"),
            ("-1", Subtract, "999999999", "-1000000000"),
            ("1.20", Multiply, "-3.0", "-3.600"),
            ("1", Divide, "3", "0.33333333333333333333"),
            ("2", Divide, "3", "0.66666666666666666667"),
            ("10", Divide, "4", "2.5000000000000000"),
            ("1", Divide, "10000", "0.000100000000000000000000"),
            ("0", Divide, "7", "0.00000000000000000000"),
            ("7.5", Modulo, "2", "1.5"),
            ("-7.5", Modulo, "2.00", "-1.50"),
            ("1e30", Add, "1e-3", "1000000000000000000000000000000.001"),
            ("1e30", Modulo, "7", "1"),
        ] {
            assert_eq!(calculated(left, operator, right), result, "{left} {right}");
        }
        assert!(calculate(Divide, "1", "0.00").is_err());
        assert!(calculate(Modulo, "1", "0").is_err());
        assert!(calculate(Multiply, "1e100000", "1e100000").is_err());
    }

    #[test]
    fn division_reverses_multiplication() {
        // Leading limbs that make a first guess too large.
        let numbers = [
            "999999999999999999999999999",
            "500000000000000000000000001",
            "1000000000000000000",
            "999999999000000000999999999",
            "123456789012345678901234567890123456789",
            "500000000499999999",
        ];
        for a in numbers {
            for b in numbers {
                let product = calculate(Arithmetic::Multiply, a, b).unwrap();
                let less = calculate(Arithmetic::Subtract, &product, "1").unwrap();
                let divide = |dividend: &str| {
                    let quotient =
                        divide(&Number::of(dividend).limbs, &Number::of(b).limbs);
                    Number { negative: false, limbs: quotient, scale: 0 }
                };
                assert_eq!(divide(&product).into_tape().unwrap(), a);
                let plus = divide(&less).plus(&Number::of("1"));
                assert_eq!(plus.into_tape().unwrap(), a, "{product} / {b}");
            }
        }
    }

    #[test]
    fn rounding_goes_where_it_is_told() {
        for (text, scale, rounding, result) in [
            ("1.25", 1, Rounding::Half, "1.3"),
            ("-1.25", 1, Rounding::Half, "-1.3"),
            ("0.05", 0, Rounding::Half, "0"),
            ("0.5", 0, Rounding::Half, "1"),
            ("9.99", 1, Rounding::Half, "10.0"),
            ("150", -2, Rounding::Half, "200"),
            ("49", -2, Rounding::Half, "0"),
            ("1", 2, Rounding::Half, "1.00"),
            ("-1.5", 0, Rounding::Floor, "-2"),
            ("-1.5", 0, Rounding::Ceiling, "-1"),
            ("1.5", 0, Rounding::Ceiling, "2"),
            ("1.0", 0, Rounding::Ceiling, "1"),
            ("-0.5", 0, Rounding::Ceiling, "0"),
            ("1e30", 2, Rounding::Half, "1000000000000000000000000000000.00"),
            ("12e-40", 0, Rounding::Half, "0"),
            ("12e-40", 0, Rounding::Ceiling, "1"),
        ] {
            let mut out = String::new();
            let rounded = round(text, scale, rounding).unwrap();
            super::super::numeric::print(&rounded, &mut out);
            assert_eq!(out, result, "{text} {scale}");
        }
        assert_eq!(to_integer("2.5"), Some(3));
        assert_eq!(to_integer("1e30"), None);
        assert_eq!(to_integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(truncated("-2.9"), Some(-2));
    }
}
