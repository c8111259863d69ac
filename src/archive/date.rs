//! Dates of messages: in `From ` lines, in header fields.
//!
//! mail-parser reads the dates of RFC 5322 and its obsolete forms; what it does not
//! take (asctime order, a missing zone) is read here, token by token from the end, in
//! any order. A `From ` line counts as a separator only with such a date at its end.
//! Without a zone a date is taken as UTC.

use mail_parser::parsers::MessageStream;

/// Bytes of a header field that are looked at for a date.
const LOOK_AT: usize = 1000;
/// Tokens at the end of a line among which a date is looked for.
const TOKENS_MAX: usize = 10;

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct",
    b"nov", b"dec",
];
const WEEKDAYS: [&[u8; 3]; 7] =
    [b"sun", b"mon", b"tue", b"wed", b"thu", b"fri", b"sat"];
/// Zones that mail programs write by name, with their hours; any other is taken as UTC.
const ZONES: [(&[u8], i64); 12] = [
    (b"EST", -5),
    (b"EDT", -4),
    (b"CST", -6),
    (b"CDT", -5),
    (b"MST", -7),
    (b"MDT", -6),
    (b"PST", -8),
    (b"PDT", -7),
    (b"BST", 1),
    (b"MET", 1),
    (b"CET", 1),
    (b"CEST", 2),
];

/// The date of a `Date` or `Received` field, seconds since 1970 UTC.
pub(super) fn of_field(value: &[u8]) -> Option<i64> {
    // Received has its date behind the last semicolon.
    let value = &value[memchr::memrchr(b';', value).map_or(0, |at| at + 1)..];
    let value = &value[..value.len().min(LOOK_AT)];
    let date = MessageStream::new(value).parse_date().into_datetime();
    match date {
        Some(mut date) => {
            date.second = date.second.min(59); // a leap second
            date.is_valid().then(|| date.to_timestamp())
        }
        None => None,
    }
    .or_else(|| at_end(value))
}

/// The date at the end of a line, seconds since 1970 UTC: asctime's, or that order with
/// a zone before or after the year, or RFC 5322's.
pub(super) fn at_end(line: &[u8]) -> Option<i64> {
    let line = &line[line.len().saturating_sub(LOOK_AT)..];
    let line = without_remote(line);
    let mut parts = Parts::default();
    let tokens = line.rsplit(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
    for token in tokens.take(TOKENS_MAX) {
        if !parts.take(token) {
            break;
        }
    }
    parts.seconds()
}

/// Cuts ` remote from HOST`, which UUCP put behind the date.
fn without_remote(line: &[u8]) -> &[u8] {
    memchr::memmem::rfind(line, b" remote from ").map_or(line, |at| &line[..at])
}

/// What has been found of a date.
#[derive(Default)]
struct Parts {
    time: Option<i64>,
    day: Option<i64>,
    month: Option<i64>,
    year: Option<i64>,
    /// Seconds east of Greenwich, by an offset in digits.
    zone: Option<i64>,
    /// The same by name; many names mean several zones, so digits go before.
    named_zone: Option<i64>,
    weekday: bool,
}

impl Parts {
    /// Takes a token; `false` when it belongs to no date, or to none that lacks it.
    fn take(&mut self, token: &[u8]) -> bool {
        let token = token.strip_suffix(b",").unwrap_or(token);
        if self.weekday {
            return false;
        }
        if let Some(number) = digits(token) {
            match token.len() {
                4 if self.year.is_none() && (1970..2100).contains(&number) => {
                    self.year = Some(number);
                }
                1 | 2 if self.day.is_none() && (1..=31).contains(&number) => {
                    self.day = Some(number);
                }
                _ => return false,
            }
            return true;
        }
        if memchr::memchr(b':', token).is_some() {
            let time = clock(token);
            let new = self.time.is_none() && time.is_some();
            self.time = self.time.or(time);
            return new;
        }
        if let [sign @ (b'+' | b'-'), offset @ ..] = token {
            let offset = digits(offset).filter(|_| offset.len() == 4);
            let Some(offset) = offset.filter(|_| self.zone.is_none()) else {
                return false;
            };
            let seconds = offset / 100 * 3600 + offset % 100 * 60;
            self.zone = Some(if *sign == b'-' { -seconds } else { seconds });
            return true;
        }
        let name = |names: &[&[u8; 3]]| {
            names.iter().position(|name| token.eq_ignore_ascii_case(&name[..]))
        };
        if let Some(month) = name(&MONTHS).filter(|_| self.month.is_none()) {
            self.month = Some(month as i64 + 1);
            return true;
        }
        if name(&WEEKDAYS).is_some() {
            self.weekday = true;
            return true;
        }
        // A zone's name, "DST" beside it, or one in parentheses beside its offset; it
        // stands to the right of the month in every order known.
        let inner = token
            .strip_prefix(b"(")
            .map_or(token, |token| token.strip_suffix(b")").unwrap_or(token));
        let zone = inner.len() <= 5 && inner.iter().all(u8::is_ascii_uppercase);
        if zone && self.month.is_none() {
            let hours = ZONES.iter().find(|(name, _)| *name == inner);
            self.named_zone = self.named_zone.or(hours.map(|(_, hours)| hours * 3600));
            return true;
        }
        false
    }

    fn seconds(&self) -> Option<i64> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        let days = days_since_1970(year, month, day);
        Some(days * 86_400 + self.time? - self.zone.or(self.named_zone).unwrap_or(0))
    }
}

/// The value of a short run of digits.
fn digits(token: &[u8]) -> Option<i64> {
    if token.is_empty() || token.len() > 4 || !token.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(token.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Seconds of `h:mm` or `h:mm:ss`.
fn clock(token: &[u8]) -> Option<i64> {
    let mut parts = token.split(|&byte| byte == b':');
    let mut part = |limit| digits(parts.next()?).filter(|&number| number < limit);
    let (hour, minute) = (part(24)?, part(60)?);
    let second = match parts.next() {
        None => 0,
        Some(second) => digits(second).filter(|&second| second <= 60)?.min(59),
    };
    parts.next().is_none().then_some(hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 in the Gregorian calendar, years from 1970 on: a year begins in
/// March, so that the leap day is its last and every month's start is a linear function.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = year / 4 - year / 100 + year / 400;
    year * 365 + leap + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2004-05-01 10:20:30 UTC.
    const MAY: i64 = 1_083_406_830;

    #[test]
    fn dates_of_from_lines_are_read_in_every_order() {
        for (line, expected) in [
            ("a@b Sat May  1 10:20:30 2004", MAY),
            ("a at b  Sat May  1 10:20:30 2004\r", MAY),
            ("a at b  May  1 10:20:30 2004", MAY),
            ("a@b Sat May 1 10:20 2004", MAY - 30),
            ("a@b Sat May  1 10:20:30 EST 2004", MAY + 5 * 3600),
            ("a@b Sat May  1 10:20:30 2004 +0200", MAY - 2 * 3600),
            ("a@b Sat May  1 10:20:30 2004 -0700 (PDT)", MAY + 7 * 3600),
            ("a@b Sat May  1 10:20:30 MET DST 2004", MAY - 3600),
            ("- Sat, 01 May 2004 10:20:30 GMT", MAY),
            ("a!b Sat May  1 10:20:30 2004 remote from c", MAY),
            ("a@b Thu Jan  1 00:00:00 1970", 0),
            ("a@b Tue Feb 29 23:59:60 2000", 951_868_799),
        ] {
            assert_eq!(at_end(line.as_bytes()), Some(expected), "{line}");
        }
        for line in [
            "",
            "here to eternity",
            "the year 2004",
            "1 May 2004",
            "a@b Sat May  1 10:20:30 2004 and more",
            "a@b Sat May 1 25:20:30 2004",
            "a@b Sat May 41 10:20:30 2004",
            "a@b Sat May  1 10:20:30:40 2004",
            "a@b Sat Mai  1 10:20:30 2004",
            "a@b Sat May  1 10:20:30 20044",
        ] {
            assert_eq!(at_end(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn dates_of_fields_are_read_in_new_and_obsolete_forms() {
        for (field, expected) in [
            ("Sat, 1 May 2004 12:20:30 +0200 (CEST)", MAY),
            ("1 May 2004 05:20:30 EST", MAY),
            ("Sat, 1 May 04 10:20:30 GMT", MAY),
            ("Sat May  1 10:20:30 2004", MAY),
            ("Sat, 1 May 2004 10:20:30", MAY),
            ("from a by b (c; d) with SMTP;\r\n\tSat, 1 May 2004 10:20:30 +0000", MAY),
        ] {
            assert_eq!(of_field(field.as_bytes()), Some(expected), "{field}");
        }
        for field in ["", "yesterday", "Sat, 41 May 2004 10:20:30 +0000", ";;;"] {
            assert_eq!(of_field(field.as_bytes()), None, "{field}");
        }
    }
}
