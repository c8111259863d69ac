//! Dates in queries: what people type, as nanoseconds since 1970.
//!
//! `2020-01-31`, with a time behind a blank or a `T` (`12:30`, `12:30:05.25`) and an
//! offset behind that (`Z`, `+02`, `-0530`, `+05:30`); without one, UTC. In shortcuts
//! also a year (`2020`) or a month (`2020-01`), which stand for their first moment.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

/// A date, or a date and a time.
pub(super) fn parse(text: &str) -> Option<i128> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let date: Date = date.parse().ok()?;
    let time = match rest.strip_prefix(['T', 't', ' ']) {
        Some(time) => time.trim_start(),
        None if rest.is_empty() => "",
        None => return None,
    };
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (time[..at].trim_end(), offset(&time[at..])?),
        None => (time, Offset::UTC),
    };
    let time = match time {
        "" if rest.is_empty() => Time::midnight(),
        time => time.parse().ok()?,
    };
    let moment = DateTime::from_parts(date, time);
    let timestamp = TimeZone::fixed(offset).to_timestamp(moment).ok()?;
    Some(timestamp.as_nanosecond())
}

/// What [`parse`] takes, a year, or a month.
pub(super) fn parse_period(text: &str) -> Option<i128> {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    match text.split_once('-') {
        None if digits(text, 4) => parse(&format!("{text}-01-01")),
        Some((year, month)) if digits(year, 4) && digits(month, 2) => {
            parse(&format!("{text}-01"))
        }
        _ => parse(text),
    }
}

/// `Z`, `±hh`, `±hhmm`, `±hh:mm`.
fn offset(text: &str) -> Option<Offset> {
    if text.eq_ignore_ascii_case("z") {
        return Some(Offset::UTC);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text[1..].split(':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = |part: &str| part.parse::<i32>().ok();
    let hours = number(&digits[..2])?;
    let minutes = if digits.len() == 4 { number(&digits[2..])? } else { 0 };
    if minutes >= 60 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i128> {
        parse(text).map(|nanoseconds| nanoseconds / 1_000_000_000)
    }

    #[test]
    fn dates_times_and_offsets_are_read() {
        assert_eq!(seconds("1970-01-02"), Some(86_400));
        assert_eq!(seconds("2020-01-01"), Some(1_577_836_800));
        assert_eq!(seconds(" 2020-01-01T00:00:10Z "), Some(1_577_836_810));
        assert_eq!(seconds("2020-01-01 02:30 +02:30"), Some(1_577_836_800));
        assert_eq!(seconds("2020-01-01 00:00-05"), Some(1_577_854_800));
        assert_eq!(parse("1970-01-01 00:00:00.5"), Some(500_000_000));
        for bad in [
            "",
            "2020",
            "2020-13-01",
            "2020-01-01x",
            "2020-01-01 ",
            "2020-01-01 25:00",
            "2020-01-01 00:00+1",
            "2020-01-01 00:00+99",
            "é020-01-011",
            "today",
            "2020-01-01 00:00+00:99",
        ] {
            // A trailing blank is trimmed, so that one is a date.
            assert_eq!(parse(bad).is_some(), bad == "2020-01-01 ", "{bad}");
        }
    }

    #[test]
    fn a_year_or_a_month_is_its_first_moment() {
        assert_eq!(parse_period("2020"), parse("2020-01-01"));
        assert_eq!(parse_period("2020-03"), parse("2020-03-01"));
        assert_eq!(parse_period("2020-03-04"), parse("2020-03-04"));
        assert_eq!(parse_period("20"), None);
        assert_eq!(parse_period("2020-3"), None);
    }
}
