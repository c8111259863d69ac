//! Dates of messages, in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

fn formatted(seconds: i64, format: &str) -> Option<String> {
    let zoned = Timestamp::from_second(seconds).ok()?.to_zoned_datetime(TimeZone::UTC);
    Some(zoned.strftime(format).to_string())
}

/// `2004-05-12 14:03`, for lists.
pub(crate) fn minute(seconds: i64) -> String {
    formatted(seconds, "%Y-%m-%d %H:%M")
        .unwrap_or_else(|| "date unknown    ".to_owned())
}

/// `2004-05-12T14:03:09Z`; a number of seconds when there is no such year.
pub(crate) fn rfc3339(seconds: i64) -> String {
    formatted(seconds, "%Y-%m-%dT%H:%M:%SZ").unwrap_or_else(|| seconds.to_string())
}

/// `Wed May 12 14:03:09 2004`, as separator lines of an mbox have it.
pub(crate) fn asctime(seconds: i64) -> String {
    formatted(seconds, "%a %b %e %H:%M:%S %Y")
        .unwrap_or_else(|| "Thu Jan  1 00:00:00 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_in_three_ways() {
        let seconds = 1_084_370_589;
        assert_eq!(minute(seconds), "2004-05-12 14:03");
        assert_eq!(rfc3339(seconds), "2004-05-12T14:03:09Z");
        assert_eq!(asctime(seconds), "Wed May 12 14:03:09 2004");
        assert_eq!(asctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(rfc3339(i64::MAX), i64::MAX.to_string());
    }
}
