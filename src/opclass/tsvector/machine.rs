//! The state machine of the word parser: the truth about where a token ends.
//!
//! PostgreSQL's default parser is a machine with backtracking. `parser_table.txt`, beside
//! this file, spells it out: a line per state, then `test:action` items, the first whose
//! test holds for the current character applies.
//!
//! | test | holds for | | action | does |
//! |---|---|---|---|---|
//! | `$` `*` | the end; anything | | `=S` `=.` | consume, go to S; stay |
//! | `'x` | the character x | | `+S` | try S, which consumes |
//! | `A` `L` `D` | ASCII letter, letter, digit | | `^` | give up the attempt |
//! | `N` `n` | letter or digit; neither | | `!type` | a token ends here |
//! | `S` `X` | space, special | | `!type@S` | and the next one starts in S |
//! | `H` `U` | hex digit, URL character | | `~` `~~` | forget the newest, every attempt |
//! | `ign` `hoststop` | a flag is set (the latter is reset) | | `,r` `,m` | do not consume; merge |
//! | `subhost` `subpath` | a host, a path follows; takes it | | `,name` | a special action |
//!
//! An attempt that gives up restores the character and state where it began, and the
//! rule *behind* the one that began it is next: the first attempt to succeed wins, not
//! the longest.
//!
//! The text is compiled once into dense tables: for each state and class of characters
//! the rules that can apply. Three things keep hostile input from costing quadratic time
//! or unbounded memory, none of which changes a token:
//!
//! * an attempt that could only be followed by giving up needs no place to return to;
//! * in a state that cannot give up at this character, older places to return to are
//!   dropped;
//! * places from which a long attempt is known to fail are remembered ([`Failures`]).
//!
//! The unguarded machine, which tests compare with, does without all three.

use std::sync::LazyLock;

use super::failures::Failures;
use super::parser::TokenType;
use crate::opclass::ctype;

/// Classes of characters: ASCII, then all others by [`WIDE`] bits, then the end.
const KINDS: usize = 128 + 8 + 1;
const WIDE: usize = 128;
const END: usize = KINDS - 1;
const WIDE_ALPHA: usize = 1;
const WIDE_SPECIAL: usize = 2;
const WIDE_SPACE: usize = 4;

/// The longest text that [`Special::Script`] looks for; behind it failures are pure.
const SCRIPT_LONGEST: usize = "</script".len();

/// Character classes beyond ASCII, by the database's `LC_CTYPE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ctype {
    /// `C.UTF-8`, `en_US.UTF-8` and their like: the tables of [`ctype`].
    #[default]
    Utf8,
    /// `C`: every character beyond ASCII is a letter.
    C,
}

/// What a rule asks beyond the character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Guard {
    None,
    Ignore,
    HostStop,
    SubHost,
    SubPath,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Special {
    None,
    Rewind,
    Back,
    FullUrl,
    Script,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stack {
    Keep,
    GiveUp,
    Try,
    DropNewest,
    DropAll,
    Merge,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Place in its state, from 1; a frame remembers it to go on behind it.
    order: u8,
    guard: Guard,
    special: Special,
    stack: Stack,
    emit: Option<TokenType>,
    next: Option<u8>,
    rerun: bool,
    /// A try behind which only giving up is left.
    tail: bool,
    /// A try in a state that cannot give up at this character.
    sure: bool,
}

impl Rule {
    /// No rule behind this one applies, unless a mark points behind it.
    fn is_last(&self) -> bool {
        self.guard == Guard::None && self.stack != Stack::Try
    }

    fn only_consumes(&self) -> bool {
        self.guard == Guard::None
            && self.special == Special::None
            && self.stack == Stack::Keep
            && self.emit.is_none()
            && self.next.is_none()
            && !self.rerun
    }
}

/// Marks the entry of a state that takes the character and stays.
const STAYS: u16 = 1 << 15;

struct Table {
    /// By state × class: first rule in `rules`, with [`STAYS`] where that only consumes.
    first: Vec<u16>,
    rules: Vec<Rule>,
    class_of: [u8; KINDS],
    classes: usize,
    #[cfg(test)]
    names: Vec<&'static str>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::compile(include_str!("parser_table.txt")));

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

/// The table's first state.
const BASE: u8 = 0;
/// The state in which a compound's parts are read.
const PARTS: u8 = 70;

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

    /// The machine as the table says and nothing else, which tests compare with.
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

    /// Class and length of the character at `at`.
    fn look(&self, at: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let (kind, len) = match bytes.get(at) {
            None => (END, 0),
            Some(&byte) if byte < 0x80 => (usize::from(byte), 1),
            Some(_) => {
                let c =
                    self.text[at..].chars().next().expect("a character starts here");
                (WIDE + wide_bits(c, self.ctype), c.len_utf8())
            }
        };
        (usize::from(self.table.class_of[kind]), len)
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
                {
                    let class = self.table.class_of[usize::from(byte)];
                    if self.table.first[row + usize::from(class)] & STAYS == 0 {
                        break;
                    }
                    at += 1;
                    len += 1;
                }
            }
            #[cfg(test)]
            {
                self.looks += 1 + at - before_run;
            }
            let (class, char_len) = self.look(at);
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

fn wide_bits(c: char, ctype: Ctype) -> usize {
    let bit = |set: bool, bit: usize| if set { bit } else { 0 };
    match ctype {
        Ctype::C => WIDE_ALPHA,
        Ctype::Utf8 => {
            bit(ctype::is_alpha(c), WIDE_ALPHA)
                | bit(ctype::is_special(c), WIDE_SPECIAL)
                | bit(ctype::is_space(c), WIDE_SPACE)
        }
    }
}

fn is_url(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)
}

/// Whether the test of a rule holds for a kind of character; guards hold for all.
fn holds(test: &str, kind: usize) -> bool {
    let ascii = u8::try_from(kind).ok().filter(u8::is_ascii);
    let is = |test: fn(&u8) -> bool| ascii.is_some_and(|byte| test(&byte));
    let wide = |bit: usize| (WIDE..END).contains(&kind) && (kind - WIDE) & bit != 0;
    let alnum = is(u8::is_ascii_alphanumeric) || wide(WIDE_ALPHA);
    match test.as_bytes() {
        b"$" => kind == END,
        b"*" => true,
        [b'\'', byte] => ascii == Some(*byte),
        b"A" => is(u8::is_ascii_alphabetic),
        b"L" => is(u8::is_ascii_alphabetic) || wide(WIDE_ALPHA),
        b"D" => is(u8::is_ascii_digit),
        b"N" => alnum,
        b"n" => kind != END && !alnum,
        b"S" => is(|byte| matches!(byte, b'\t'..=b'\r' | b' ')) || wide(WIDE_SPACE),
        b"X" => wide(WIDE_SPECIAL),
        b"H" => is(u8::is_ascii_hexdigit),
        b"U" => is(|&byte| is_url(byte)),
        _ => true,
    }
}

impl Table {
    fn compile(text: &'static str) -> Table {
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| !words.is_empty())
            .collect();
        let names: Vec<&str> = lines.iter().map(|words| words[0]).collect();
        let states: Vec<Vec<(&str, Rule)>> = lines
            .iter()
            .map(|words| {
                let rules = words[1..].iter().zip(1..);
                rules.map(|(word, order)| parse_rule(word, order, &names)).collect()
            })
            .collect();

        // The rules that can apply, by state and kind of character.
        let mut lists: Vec<Vec<Vec<Rule>>> = states
            .iter()
            .map(|rules| {
                // A merge comes back to a state with a mark at another character than
                // the one it was set at: no rule there may be left out as unreachable.
                let merges = |state: u8| {
                    states[usize::from(state)]
                        .iter()
                        .any(|(_, rule)| rule.stack == Stack::Merge)
                };
                let marked = rules.iter().any(|(_, rule)| {
                    rule.stack == Stack::Try && rule.next.is_some_and(merges)
                });
                let list = |kind| {
                    let mut list = Vec::new();
                    for (_, rule) in rules.iter().filter(|(test, _)| holds(test, kind))
                    {
                        list.push(*rule);
                        if rule.is_last() && !marked {
                            break;
                        }
                    }
                    list
                };
                (0..KINDS).map(list).collect()
            })
            .collect();
        mark_sure(&mut lists);
        mark_tails(&mut lists);

        // Kinds with equal columns are one class.
        let mut class_of = [0; KINDS];
        let mut samples: Vec<usize> = Vec::new();
        let key = |kind: usize| -> Vec<Vec<u8>> {
            lists
                .iter()
                .map(|state| state[kind].iter().map(|rule| rule.order).collect())
                .collect()
        };
        for (kind, class_of_kind) in class_of.iter_mut().enumerate() {
            let class = samples
                .iter()
                .position(|&sample| key(sample) == key(kind))
                .unwrap_or_else(|| {
                    samples.push(kind);
                    samples.len() - 1
                });
            *class_of_kind = u8::try_from(class).expect("fewer classes than kinds");
        }
        let mut first = Vec::new();
        let mut rules = Vec::new();
        for state in &lists {
            for &sample in &samples {
                let stays = if state[sample][0].only_consumes() { STAYS } else { 0 };
                let number = u16::try_from(rules.len()).expect("some thousand rules");
                first.push(number | stays);
                rules.extend_from_slice(&state[sample]);
            }
        }
        Table {
            first,
            rules,
            class_of,
            classes: samples.len(),
            #[cfg(test)]
            names,
        }
    }
}

/// A state is sure at a character when no path from there gives up: its attempts may,
/// but a rule that does not is left behind each of them.
fn mark_sure(lists: &mut [Vec<Vec<Rule>>]) {
    let mut sure = vec![[true; KINDS]; lists.len()];
    loop {
        let mut changed = false;
        for (state, by_kind) in lists.iter().enumerate() {
            for (kind, list) in by_kind.iter().enumerate() {
                let reached =
                    list.iter().take_while(|rule| !rule.is_last()).count() + 1;
                let holds = list.iter().take(reached).all(|rule| match rule.stack {
                    Stack::GiveUp | Stack::Merge => false,
                    Stack::Try => true,
                    _ => {
                        rule.emit.is_some() || {
                            let next = rule.next.map_or(state, usize::from);
                            sure[next].iter().all(|&sure| sure)
                        }
                    }
                });
                changed |= sure[state][kind] && !holds;
                sure[state][kind] &= holds;
            }
        }
        if !changed {
            break;
        }
    }
    for (state, by_kind) in lists.iter_mut().enumerate() {
        for (kind, list) in by_kind.iter_mut().enumerate() {
            for rule in list.iter_mut().filter(|rule| rule.stack == Stack::Try) {
                rule.sure = sure[state][kind];
            }
        }
    }
}

fn mark_tails(lists: &mut [Vec<Vec<Rule>>]) {
    for list in lists.iter_mut().flatten() {
        for number in 1..list.len() {
            let behind = list[number];
            list[number - 1].tail = list[number - 1].stack == Stack::Try
                && behind.guard == Guard::None
                && behind.stack == Stack::GiveUp;
        }
    }
}

fn parse_rule<'t>(word: &'t str, order: u8, names: &[&str]) -> (&'t str, Rule) {
    let cut =
        if word.starts_with('\'') { 2 } else { word.find(':').expect("test:action") };
    let (test, action) = (&word[..cut], &word[cut + 1..]);
    let state = |name: &str| -> Option<u8> {
        let number = names.iter().position(|&known| known == name);
        Some(u8::try_from(number.expect("a state of the table")).expect("76 states"))
    };
    let mut rule = Rule {
        order,
        guard: match test {
            "ign" => Guard::Ignore,
            "hoststop" => Guard::HostStop,
            "subhost" => Guard::SubHost,
            "subpath" => Guard::SubPath,
            _ => Guard::None,
        },
        special: Special::None,
        stack: Stack::Keep,
        emit: None,
        next: None,
        rerun: false,
        tail: false,
        sure: false,
    };
    let mut suffixes = action.split(',');
    let mut body = suffixes.next().expect("an action");
    for suffix in suffixes {
        match suffix {
            "r" => rule.rerun = true,
            "m" => rule.stack = Stack::Merge,
            "rewind" => rule.special = Special::Rewind,
            "back" => rule.special = Special::Back,
            "furl" => rule.special = Special::FullUrl,
            "script" => rule.special = Special::Script,
            _ => unreachable!("an action of the table"),
        }
    }
    if let Some(rest) = body.strip_suffix("~~") {
        (body, rule.stack) = (rest, Stack::DropAll);
    } else if let Some(rest) = body.strip_suffix('~') {
        (body, rule.stack) = (rest, Stack::DropNewest);
    }
    match (&body[..1], &body[1..]) {
        ("^", "") => rule.stack = Stack::GiveUp,
        ("=", ".") => {}
        ("=", name) => rule.next = state(name),
        ("+", name) => (rule.stack, rule.next) = (Stack::Try, state(name)),
        (_, name) => {
            let (alias, next) = name.split_once('@').unwrap_or((name, "BASE"));
            rule.emit = Some(TokenType::from_alias(alias).expect("a token type"));
            rule.next = state(next);
        }
    }
    (test, rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_its_76_states_and_392_rules() {
        let rules = include_str!("parser_table.txt").split_whitespace().count()
            - TABLE.names.len();
        assert_eq!((TABLE.names.len(), rules), (76, 392));
        assert_eq!(TABLE.names[usize::from(BASE)], "BASE");
        assert_eq!(TABLE.names[usize::from(PARTS)], "PARTS");
    }

    #[test]
    fn no_state_in_which_a_token_starts_gives_up() {
        for name in ["BASE", "UI", "PARTS", "UPATH0"] {
            let state = TABLE.names.iter().position(|&known| known == name).unwrap();
            let row = &TABLE.first[state * TABLE.classes..(state + 1) * TABLE.classes];
            for &first in row {
                let rule = TABLE.rules[usize::from(first & !STAYS)];
                assert_ne!(rule.stack, Stack::GiveUp, "{name}");
            }
        }
    }

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
