//! The state machine of the word parser: the truth about where a token ends.
//!
//! PostgreSQL's default parser is a machine with backtracking; `table.rs` has its states
//! and rules. An attempt that gives up restores the character and state where it began,
//! and the rule *behind* the one that began it is next: the first attempt to succeed
//! wins, not the longest.
//!
//! Three things keep hostile input from costing quadratic time or unbounded memory, none
//! of which changes a token:
//!
//! * an attempt that could only be followed by giving up needs no place to return to;
//! * in a state that cannot give up at this character, older places to return to are
//!   dropped;
//! * places from which a long attempt is known to fail are remembered ([`Failures`]).
//!
//! The unguarded machine, which tests compare with, does without all three.

use super::failures::Failures;
use super::parser::TokenType;
use super::table::{
    BASE, Ctype, Guard, PARTS, STAYS, Special, Stack, TABLE, Table, is_url,
};

/// The longest text that [`Special::Script`] looks for; behind it failures are pure.
const SCRIPT_LONGEST: usize = "</script".len();

/// A machine's place between tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) at: usize,
    state: u8,
    /// Inside `<script>` or `<style>`: everything is blank but tags.
    ignore: bool,
    /// A URL was emitted: its host and path come next.
    want_host: bool,
}

impl Place {
    /// True where a token starts with no memory of the ones before.
    pub(super) fn is_plain(&self) -> bool {
        self.state == BASE && !self.ignore && !self.want_host
    }

    /// True behind a compound, whose parts are read again.
    pub(super) fn is_in_parts(&self) -> bool {
        self.state == PARTS
    }

    /// The compound is over.
    pub(super) fn leave_parts(&mut self) {
        self.state = BASE;
    }
}

/// A token: its type and its bytes `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) kind: TokenType,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Where to return to when an attempt gives up.
#[derive(Clone, Copy, Debug)]
struct Frame {
    at: usize,
    len: usize,
    state: u8,
    resume: u8,
    /// Length of the trail of visited places when the attempt began.
    trail: usize,
}

/// The machine over one text.
pub(super) struct Machine<'a> {
    text: &'a str,
    table: &'static Table,
    ctype: Ctype,
    guarded: bool,
    frames: Vec<Frame>,
    failures: Failures,
    pub(super) place: Place,
    /// Characters looked at, attempts included.
    #[cfg(test)]
    looks: usize,
}

impl<'a> Machine<'a> {
    pub(super) fn new(text: &'a str, ctype: Ctype) -> Machine<'a> {
        Machine {
            text,
            table: &TABLE,
            ctype,
            guarded: true,
            frames: Vec::new(),
            failures: Failures::default(),
            place: Place { at: 0, state: BASE, ignore: false, want_host: false },
            #[cfg(test)]
            looks: 0,
        }
    }

    /// The machine as the table says and nothing else.
    #[cfg(test)]
    pub(super) fn unguarded(text: &'a str, ctype: Ctype) -> Machine<'a> {
        Machine { guarded: false, ..Machine::new(text, ctype) }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The next token by the table.
    pub(super) fn next(&mut self) -> Option<Span> {
        let mut place = self.place;
        let span = self.run(&mut place, false);
        self.place = place;
        self.frames.clear();
        span
    }

    /// One token from `place` on. `nested` marks the look-ahead of `subhost`, whose
    /// caller only asks whether the first token is a host.
    fn run(&mut self, place: &mut Place, nested: bool) -> Option<Span> {
        let start = place.at;
        let bottom = self.frames.len();
        let end_of_text = self.text.len();
        if start >= end_of_text {
            return None;
        }
        let bytes = self.text.as_bytes();
        let (mut at, mut len, mut state, mut resume) = (start, 0, place.state, 0);
        loop {
            let row = usize::from(state) * self.table.classes;
            #[cfg(test)]
            let before_run = at;
            if resume == 0 {
                while let Some(&byte) = bytes.get(at)
                    && byte < 0x80
                    && !Failures::is_checkpoint(at, at + 1)
                    && self.table.stays(row, byte)
                {
                    at += 1;
                    len += 1;
                }
            }
            #[cfg(test)]
            {
                self.looks += 1 + at - before_run;
            }
            let (class, char_len) = self.table.look(self.text, at, self.ctype);
            let mut number = usize::from(self.table.first[row + class] & !STAYS);
            let rule = loop {
                let rule = self.table.rules[number];
                if rule.order > resume {
                    let holds = match rule.guard {
                        Guard::None => true,
                        Guard::Ignore => place.ignore,
                        Guard::HostStop => std::mem::take(&mut place.want_host),
                        Guard::SubHost => match self.host_from(at, nested) {
                            0 => false,
                            host => {
                                at += host;
                                len += host;
                                true
                            }
                        },
                        Guard::SubPath => match self.path_from(at) {
                            0 => false,
                            path => {
                                at += path;
                                len += path;
                                true
                            }
                        },
                    };
                    if holds {
                        break rule;
                    }
                }
                number += 1;
            };
            resume = 0;
            match rule.special {
                Special::None => {}
                Special::Rewind => {
                    at -= len;
                    len = 0;
                }
                Special::Back => at -= len,
                Special::FullUrl => {
                    place.want_host = true;
                    at -= len;
                }
                Special::Script => {
                    let token = &self.text.as_bytes()[start..start + len];
                    let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
                    if is("</script") || is("</style") {
                        place.ignore = false;
                    } else if is("<script") || is("<style") {
                        place.ignore = true;
                    }
                }
            }
            if let Some(kind) = rule.emit {
                self.frames.truncate(bottom);
                self.failures.forget_trail();
                place.at = at;
                place.state = rule.next.unwrap_or(BASE);
                return Some(Span { kind, start, end: start + len });
            }
            match rule.stack {
                Stack::Keep => {}
                Stack::Try => {
                    if self.guarded && rule.sure {
                        self.frames.truncate(bottom);
                        self.failures.forget_trail();
                    }
                    if !(self.guarded && rule.tail) {
                        let trail = self.failures.trail_len();
                        self.frames.push(Frame {
                            at,
                            len,
                            state,
                            resume: rule.order,
                            trail,
                        });
                    }
                }
                Stack::GiveUp => {
                    (at, len, state, resume) = self.give_up(bottom)?;
                    continue;
                }
                Stack::DropNewest => {
                    if self.frames.len() > bottom {
                        self.frames.pop();
                    }
                }
                Stack::DropAll => self.frames.truncate(bottom),
                Stack::Merge => {
                    if self.frames.len() > bottom
                        && let Some(below) = self.frames.pop()
                    {
                        (state, resume) = (below.state, below.resume);
                    }
                }
            }
            state = rule.next.unwrap_or(state);
            if rule.rerun {
                continue;
            }
            if at >= end_of_text {
                place.at = end_of_text;
                return None;
            }
            let before = at;
            at += char_len;
            len += char_len;
            if self.guarded
                && self.frames.len() > bottom
                && Failures::is_checkpoint(before, at)
                && len > SCRIPT_LONGEST
                && !(nested || place.want_host || resume != 0)
                && self.failures.visit(at, state)
            {
                (at, len, state, resume) = self.give_up(bottom)?;
            }
        }
    }

    /// Back to the newest place: all that was visited since then is known to fail.
    fn give_up(&mut self, bottom: usize) -> Option<(usize, usize, u8, u8)> {
        if self.frames.len() <= bottom {
            return None; // no state reachable without an attempt gives up
        }
        let frame = self.frames.pop()?;
        self.failures.failed_since(frame.trail, self.place.at);
        Some((frame.at, frame.len, frame.state, frame.resume))
    }

    /// Bytes of the host that a fresh parser finds first at `at`; 0: it finds another
    /// token. In a nested look-ahead the answer cannot matter: a second `@` is only
    /// tried as part of a number-word, and what follows then is no host either way.
    fn host_from(&mut self, at: usize, nested: bool) -> usize {
        if self.guarded
            && (nested
                || !self.text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric))
        {
            return 0; // only a word or a number can turn out to be a host
        }
        let mut place = Place { at, state: BASE, ignore: false, want_host: true };
        match self.run(&mut place, true) {
            Some(span) if span.kind == TokenType::Host => span.end - span.start,
            _ => 0,
        }
    }

    /// Bytes of the run of URL characters at `at`.
    fn path_from(&self, at: usize) -> usize {
        self.text.as_bytes()[at..].iter().take_while(|&&byte| is_url(byte)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the machine looks at each character of a text, on average, and the
    /// places to return to and failures it holds at most.
    fn cost(machine: &mut Machine<'_>) -> (usize, usize, usize) {
        let (mut frames, mut failures) = (0, 0);
        while machine.next().is_some() {
            frames = frames.max(machine.frames.capacity());
            failures = failures.max(machine.failures.len());
        }
        (machine.looks / machine.text.len(), frames, failures)
    }

    #[test]
    fn no_repetition_costs_quadratic_time_or_much_memory() {
        let units = [
            "a_",
            "a@",
            "a-",
            "a.",
            "a-1-",
            "1_",
            "1-",
            "1a@",
            "1a_",
            "1a-",
            "ab.cd-",
            "ab.cd@",
            "<",
            "<!--",
            "<!-- ",
            "<a ",
            "<a '",
            "<a \"",
            "<a '<a \"",
            "<?x ",
            "<!d ",
            "/.",
            "./",
            "../",
            "~/.",
            "/~",
            "&a",
            "&#1",
            "&#x1",
            "1e1",
            "1.1",
            "-1.1.",
            "+1-",
            "é-",
            "é-1-",
            "a-é-",
            "a/",
            "a:",
            "a://",
            "ab.cd/",
            "ab.cd:1",
            "ab.cd:1/x@",
            "a_b@c.",
            "a_@<!-- ",
            "<script ",
            "</style",
            "x_\u{301}",
            "a@b_",
        ];
        for unit in units {
            for tail in ["", "!", "@", "-1", "ab.cd", "<x", ">"] {
                let text = unit.repeat(200_000 / unit.len()) + tail;
                let (looks, frames, failures) =
                    cost(&mut Machine::new(&text, Ctype::Utf8));
                assert!(looks < 300, "{unit:?} {tail:?}: {looks} looks at a character");
                assert!(frames <= 16, "{unit:?} {tail:?}: {frames} frames");
                assert!(failures <= 20_000, "{unit:?} {tail:?}: {failures} failures");
            }
        }
    }

    #[test]
    fn without_its_guards_the_machine_does_cost_quadratic_time() {
        let text = "a_".repeat(5_000);
        assert!(cost(&mut Machine::unguarded(&text, Ctype::Utf8)).0 > 2_000);
    }
}
