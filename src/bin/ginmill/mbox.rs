//! Messages written as an mbox again.

use std::io::{self, Write};

use crate::dates;

/// Writes a message with its separator line and a blank line at its end.
///
/// A message that came from an mbox has its own separator line and is quoted already;
/// one that did not gets a separator line, and the quoting of mboxrd.
pub(crate) fn write(
    out: &mut impl Write,
    raw: &[u8],
    date: Option<i64>,
) -> io::Result<()> {
    if raw.starts_with(b"From ") {
        out.write_all(raw)?;
    } else {
        writeln!(out, "From MAILER-DAEMON {}", dates::asctime(date.unwrap_or(0)))?;
        for line in raw.split_inclusive(|byte| *byte == b'\n') {
            let quotes = line.iter().take_while(|byte| **byte == b'>').count();
            if line[quotes..].starts_with(b"From ") {
                out.write_all(b">")?;
            }
            out.write_all(line)?;
        }
    }
    if !raw.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    if !raw.ends_with(b"\n\n") && !raw.ends_with(b"\n\r\n") {
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(raw: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, raw.as_bytes(), Some(0)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_message_gets_what_an_mbox_needs_and_no_more() {
        let line = "From MAILER-DAEMON Thu Jan  1 00:00:00 1970\n";
        let quoted = written("A: b\n\nFrom here\n>>From there\nFromage");
        let body = "A: b\n\n>From here\n>>>From there\nFromage\n\n";
        assert_eq!(quoted, format!("{line}{body}"));
        let own = "From a@b Thu Jan  1 00:00:01 1970\nA: b\n\n>From c\n";
        assert_eq!(written(own), format!("{own}\n"));
        assert_eq!(written(&format!("{own}\n")), format!("{own}\n"));
    }
}
