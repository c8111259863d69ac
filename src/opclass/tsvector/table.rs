//! The rules of the word parser's machine, compiled from `parser_table.txt`.
//!
//! The text, beside this file, has a line per state, then `test:action` items; the first
//! one whose test holds for the current character applies.
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
//! It is compiled once into dense tables: for each state and class of characters the
//! rules that can apply, with what the machine needs to know to keep few places to return
//! to ([`Rule::tail`], [`Rule::sure`]).

use std::sync::LazyLock;

use super::parser::TokenType;
use crate::opclass::ctype;

/// Classes of characters: ASCII, then all others by [`WIDE`] bits, then the end.
const KINDS: usize = 128 + 8 + 1;
const WIDE: usize = 128;
const END: usize = KINDS - 1;
const WIDE_ALPHA: usize = 1;
const WIDE_SPECIAL: usize = 2;
const WIDE_SPACE: usize = 4;

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
pub(super) enum Guard {
    None,
    Ignore,
    HostStop,
    SubHost,
    SubPath,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Special {
    None,
    Rewind,
    Back,
    FullUrl,
    Script,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stack {
    Keep,
    GiveUp,
    Try,
    DropNewest,
    DropAll,
    Merge,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Place in its state, from 1; a frame remembers it to go on behind it.
    pub(super) order: u8,
    pub(super) guard: Guard,
    pub(super) special: Special,
    pub(super) stack: Stack,
    pub(super) emit: Option<TokenType>,
    pub(super) next: Option<u8>,
    pub(super) rerun: bool,
    /// A try behind which only giving up is left.
    pub(super) tail: bool,
    /// A try in a state that cannot give up at this character.
    pub(super) sure: bool,
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
pub(super) const STAYS: u16 = 1 << 15;

pub(super) struct Table {
    /// By state × class: first rule in `rules`, with [`STAYS`] where that only consumes.
    pub(super) first: Vec<u16>,
    pub(super) rules: Vec<Rule>,
    class_of: [u8; KINDS],
    pub(super) classes: usize,
    #[cfg(test)]
    names: Vec<&'static str>,
}

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::compile(include_str!("parser_table.txt")));

/// The table's first state.
pub(super) const BASE: u8 = 0;
/// The state in which a compound's parts are read.
pub(super) const PARTS: u8 = 70;

impl Table {
    /// Class of a character of this text, or of its end, and the character's length.
    #[inline]
    pub(super) fn look(&self, text: &str, at: usize, ctype: Ctype) -> (usize, usize) {
        let (kind, len) = match text.as_bytes().get(at) {
            None => (END, 0),
            Some(&byte) if byte < 0x80 => (usize::from(byte), 1),
            Some(_) => {
                let c = text[at..].chars().next().expect("a character starts here");
                (WIDE + wide_bits(c, ctype), c.len_utf8())
            }
        };
        (usize::from(self.class_of[kind]), len)
    }

    /// Whether a state takes this ASCII byte and stays.
    #[inline]
    pub(super) fn stays(&self, row: usize, byte: u8) -> bool {
        let class = usize::from(self.class_of[usize::from(byte)]);
        self.first[row + class] & STAYS != 0
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

pub(super) fn is_url(byte: u8) -> bool {
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
        for (kind, class) in class_of.iter_mut().enumerate() {
            let known = samples.iter().position(|&sample| key(sample) == key(kind));
            let number = known.unwrap_or_else(|| {
                samples.push(kind);
                samples.len() - 1
            });
            *class = u8::try_from(number).expect("fewer classes than kinds");
        }
        let mut first = Vec::new();
        let mut rules = Vec::new();
        for state in &lists {
            for &sample in &samples {
                let stays = if state[sample][0].only_consumes() { STAYS } else { 0 };
                let number = u16::try_from(rules.len()).expect("some thousand rules");
                assert!(number < STAYS, "some thousand rules");
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
}
