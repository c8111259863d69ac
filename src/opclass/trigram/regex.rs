//! Regular expressions: the trigrams that every matching text must have.
//!
//! The pattern is seen as a set of strings over *symbols*: a lower-cased word character
//! or [`BLANK`], for what is no word character, and for the assertions that imply one
//! (`^`, `$`, `\b` next to a word character …). Runs of blanks are one blank. As far as
//! consecutive symbols of a match are known, so are the windows that end in them.
//!
//! Bottom-up, every part of the expression becomes a [`Part`]: either all strings it
//! can match, as long as these are few and short; or with what they can begin and end
//! (two symbols decide every window across a seam) and what they need in between.
//!
//! **Sound, not complete**: a text that matches satisfies the tree, whatever the limits
//! below cut off; cutting only ever makes the tree weaker. Dialect and case folding are
//! those of the `regex` crate, which does the recheck.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::need::Need;
use super::symbols::{EDGE, head, join, symbols, tail, windows};
use super::window::BLANK;
use crate::error::{Error, Result};
use crate::opclass::{KeyExpr, ctype};

/// Symbols that a class may stand for, to be more than "anything".
const CLASS_MAX: usize = 16;
/// Strings of a set that comes from multiplying sets.
const PRODUCT_MAX: usize = 32;
/// Strings of any set.
const STRINGS_MAX: usize = 256;
/// Symbols of all strings of a set.
const SYMBOLS_MAX: usize = 4_096;
/// Copies of a repeated part that are looked at.
const COPIES_MAX: u32 = 8;
/// Characters of a pattern in an error message.
const PATTERN_SHOWN: usize = 80;
/// Joined strings in the whole analysis; after that, every part is unknown.
const WORK_MAX: usize = 1 << 18;

/// The trigrams that every text matched by the pattern has, as a tree that is true for
/// all of these texts; [`KeyExpr::Maybe`] when the pattern says too little.
///
/// ```
/// use ginmill::opclass::KeyExpr;
/// use ginmill::opclass::trigram::regex_keys;
///
/// let KeyExpr::And(trigrams) = regex_keys("^gin.*build", true)? else { panic!() };
/// assert_eq!(trigrams.len(), 6);
/// # Ok::<(), ginmill::Error>(())
/// ```
pub fn regex_keys(pattern: &str, case_insensitive: bool) -> Result<KeyExpr> {
    let hir = parse(pattern, case_insensitive)?;
    let mut analysis = Analysis { work: 0 };
    Ok(analysis.part(&hir).into_needs().into_expr())
}

/// Reads a pattern in the dialect of the `regex` crate.
fn parse(pattern: &str, case_insensitive: bool) -> Result<Hir> {
    regex_syntax::ParserBuilder::new()
        .case_insensitive(case_insensitive)
        .build()
        .parse(pattern)
        .map_err(|error| {
            let (at, reason) = match &error {
                regex_syntax::Error::Parse(error) => {
                    (error.span().start.offset, error.kind().to_string())
                }
                regex_syntax::Error::Translate(error) => {
                    (error.span().start.offset, error.kind().to_string())
                }
                _ => (0, error.to_string()),
            };
            let shown: String = pattern.chars().take(PATTERN_SHOWN).collect();
            let more = if shown.len() < pattern.len() { "…" } else { "" };
            Error::invalid(format!(
                "cannot use the regular expression \"{shown}{more}\": \
                 at byte {at}: {reason}"
            ))
        })
}

type Strings = BTreeSet<String>;

/// What is known of the strings that a part of the expression can match.
enum Part {
    /// These and no others.
    Exact(Strings),
    Open(Open),
}

struct Open {
    /// Whether nothing at all matches, too.
    empty: bool,
    /// Beginnings: every match but the empty one has one of them.
    heads: Strings,
    /// Ends, likewise.
    tails: Strings,
    /// What every match, the empty one included, needs.
    needs: Need,
}

struct Analysis {
    /// Strings joined so far.
    work: usize,
}

impl Analysis {
    /// Recursion is as deep as the parser's limit on nesting allows.
    fn part(&mut self, hir: &Hir) -> Part {
        if self.work > WORK_MAX {
            return Part::unknown();
        }
        match hir.kind() {
            HirKind::Empty => Part::one(String::new()),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => Part::one(symbols(text)).bounded(),
                Err(_) => Part::unknown(),
            },
            HirKind::Class(class) => class_part(class),
            HirKind::Look(look) => look_part(*look),
            HirKind::Repetition(repetition) => self.repetition(repetition),
            HirKind::Capture(capture) => self.part(&capture.sub),
            HirKind::Concat(parts) => {
                let mut all = Part::one(String::new());
                for part in parts {
                    let part = self.part(part);
                    all = self.concat(&all, &part);
                }
                all
            }
            HirKind::Alternation(parts) => {
                let parts = parts.iter().map(|part| self.part(part)).collect();
                alternate(parts)
            }
        }
    }

    fn repetition(&mut self, repetition: &Repetition) -> Part {
        let once = self.part(&repetition.sub);
        let least = repetition.min.min(COPIES_MAX);
        let more = match repetition.max {
            Some(most) => most.saturating_sub(repetition.min),
            None => u32::MAX,
        };
        if let Part::Exact(strings) = &once
            && strings.len() <= 2
            && self.product(strings, strings).is_subset(strings)
        {
            // Blanks: one or many are the same.
            return match (repetition.min, repetition.max) {
                (_, Some(0)) => Part::one(String::new()),
                (0, _) => alternate(vec![once, Part::one(String::new())]),
                _ => once,
            };
        }
        let mut all = Part::one(String::new());
        for _ in 0..least {
            all = self.concat(&all, &once);
        }
        if least < repetition.min || more > COPIES_MAX {
            let any = Part::Open(Open {
                empty: true,
                heads: once.heads(),
                tails: once.tails(),
                needs: Need::nothing(),
            });
            return self.concat(&all, &any);
        }
        let maybe = once.or_empty();
        for _ in 0..more {
            all = self.concat(&all, &maybe);
        }
        all
    }

    fn concat(&mut self, x: &Part, y: &Part) -> Part {
        if let (Part::Exact(a), Part::Exact(b)) = (x, y)
            && (a.len() * b.len() <= PRODUCT_MAX || a.len() == 1 || b.len() == 1)
        {
            return Part::Exact(self.product(a, b)).bounded();
        }
        let (x_heads, y_heads) = (x.heads(), y.heads());
        let (x_tails, y_tails) = (x.tails(), y.tails());
        let mut heads = Strings::new();
        match x {
            Part::Exact(strings) => {
                for whole in strings {
                    let whole = std::slice::from_ref(whole);
                    heads.extend(self.product(whole, &y_heads));
                    if y.can_be_empty() {
                        heads.extend(whole.iter().filter(|s| !s.is_empty()).cloned());
                    }
                }
            }
            Part::Open(_) => {
                heads.extend(x_heads);
                if x.can_be_empty() {
                    heads.extend(y_heads.iter().cloned());
                }
            }
        }
        let mut tails = Strings::new();
        match y {
            Part::Exact(strings) => {
                for whole in strings {
                    let whole = std::slice::from_ref(whole);
                    tails.extend(self.product(&x_tails, whole));
                    if x.can_be_empty() {
                        tails.extend(whole.iter().filter(|s| !s.is_empty()).cloned());
                    }
                }
            }
            Part::Open(_) => {
                tails.extend(y_tails);
                if y.can_be_empty() {
                    tails.extend(x_tails.iter().cloned());
                }
            }
        }
        // Where one of the two is empty, nothing is known of the seam.
        let seam = if x.can_be_empty() || y.can_be_empty() {
            Need::nothing()
        } else {
            needs_of(&self.product(&x_tails, &y_heads))
        };
        Part::Open(Open {
            empty: x.can_be_empty() && y.can_be_empty(),
            heads: shortened(&heads, head),
            tails: shortened(&tails, tail),
            needs: Need::all(vec![x.needs(), y.needs(), seam]),
        })
    }

    /// Every string of `a` joined with every one of `b`.
    fn product<'s, B: ?Sized>(
        &mut self,
        a: impl IntoIterator<Item = &'s String>,
        b: &'s B,
    ) -> Strings
    where
        &'s B: IntoIterator<Item = &'s String>,
    {
        let mut product = Strings::new();
        for a in a {
            for b in b {
                product.insert(join(a, b));
                self.work += 1;
            }
        }
        product
    }
}

impl Part {
    fn one(string: String) -> Part {
        Part::Exact(Strings::from([string]))
    }

    /// Any string but the empty one.
    fn unknown() -> Part {
        let any = Strings::from([String::new()]);
        let (heads, tails) = (any.clone(), any);
        Part::Open(Open { empty: false, heads, tails, needs: Need::nothing() })
    }

    fn or_empty(self) -> Part {
        alternate(vec![self, Part::one(String::new())])
    }

    /// Keeps a set of strings only as long as it is small.
    fn bounded(self) -> Part {
        match &self {
            Part::Exact(strings)
                if strings.len() > STRINGS_MAX
                    || strings.iter().map(String::len).sum::<usize>() > SYMBOLS_MAX =>
            {
                Part::Open(self.opened())
            }
            _ => self,
        }
    }

    fn opened(self) -> Open {
        let (empty, heads, tails) = (self.can_be_empty(), self.heads(), self.tails());
        match self {
            Part::Open(open) => open,
            Part::Exact(strings) => {
                Open { empty, heads, tails, needs: needs_of(&strings) }
            }
        }
    }

    fn can_be_empty(&self) -> bool {
        match self {
            Part::Exact(strings) => strings.contains(""),
            Part::Open(open) => open.empty,
        }
    }

    /// Beginnings of the matches that are not empty.
    fn heads(&self) -> Strings {
        match self {
            Part::Open(open) => open.heads.clone(),
            Part::Exact(strings) => shortened(&without_empty(strings), head),
        }
    }

    fn tails(&self) -> Strings {
        match self {
            Part::Open(open) => open.tails.clone(),
            Part::Exact(strings) => shortened(&without_empty(strings), tail),
        }
    }

    fn needs(&self) -> Need {
        match self {
            Part::Open(open) => open.needs.clone(),
            Part::Exact(strings) => needs_of(strings),
        }
    }

    fn into_needs(self) -> Need {
        self.opened().needs
    }
}

fn alternate(parts: Vec<Part>) -> Part {
    if parts.iter().all(|part| matches!(part, Part::Exact(_))) {
        let strings = parts.into_iter().flat_map(|part| match part {
            Part::Exact(strings) => strings,
            Part::Open(_) => unreachable!("all parts are exact"),
        });
        return Part::Exact(strings.collect()).bounded();
    }
    let (mut heads, mut tails) = (Strings::new(), Strings::new());
    let (mut needs, mut empty) = (Vec::new(), false);
    for part in parts {
        let part = part.opened();
        empty |= part.empty;
        heads.extend(part.heads);
        tails.extend(part.tails);
        needs.push(part.needs);
    }
    let (heads, tails) = (shortened(&heads, head), shortened(&tails, tail));
    Part::Open(Open { empty, heads, tails, needs: Need::any(needs) })
}

/// Ranges of all word characters.
static WORD_RANGES: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut inside = false;
    for c in '\0'..=char::MAX {
        let word = ctype::is_alnum(c);
        match ranges.last_mut() {
            Some(range) if word && inside => range.1 = c,
            _ if word => ranges.push((c, c)),
            _ => {}
        }
        inside = word;
    }
    ranges
});

fn class_part(class: &Class) -> Part {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|r| (r.start(), r.end())).collect(),
        Class::Bytes(class) => {
            if class.iter().any(|range| !range.end().is_ascii()) {
                return Part::unknown();
            }
            class.iter().map(|r| (r.start().into(), r.end().into())).collect()
        }
    };
    let mut strings = Strings::new();
    for (start, end) in ranges {
        // Surrogates lie in no range of word characters.
        let mut behind = u32::from(start);
        let first = WORD_RANGES.partition_point(|word| word.1 < start);
        for word in WORD_RANGES[first..].iter().take_while(|word| word.0 <= end) {
            let (from, to) = (word.0.max(start), word.1.min(end));
            if u32::from(from) > behind {
                strings.insert(BLANK.into());
            }
            behind = u32::from(to) + 1;
            for c in from..=to {
                strings.insert(ctype::lower(c).into());
                if strings.len() > CLASS_MAX {
                    return Part::unknown();
                }
            }
        }
        if behind <= u32::from(end) {
            strings.insert(BLANK.into());
        }
    }
    Part::Exact(strings)
}

fn look_part(look: Look) -> Part {
    Part::one(match look {
        // Start or end of the text or of a line, or no word character by Unicode's
        // wider definition: a blank is on one side at least.
        Look::Start
        | Look::End
        | Look::StartLF
        | Look::EndLF
        | Look::StartCRLF
        | Look::EndCRLF
        | Look::WordStartUnicode
        | Look::WordEndUnicode
        | Look::WordStartHalfUnicode
        | Look::WordEndHalfUnicode => BLANK.into(),
        Look::WordUnicode => EDGE.into(),
        // What is no word character in ASCII may be one outside.
        Look::WordUnicodeNegate
        | Look::WordAscii
        | Look::WordAsciiNegate
        | Look::WordStartAscii
        | Look::WordEndAscii
        | Look::WordStartHalfAscii
        | Look::WordEndHalfAscii => String::new(),
    })
}

/// Beginnings or ends of two symbols, or of fewer if they would be too many.
fn shortened(strings: &Strings, cut: fn(&str, usize) -> &str) -> Strings {
    for symbols in [2, 1] {
        let cuts: BTreeSet<&str> = strings.iter().map(|s| cut(s, symbols)).collect();
        if cuts.len() <= PRODUCT_MAX && !cuts.contains("") {
            return cuts.into_iter().map(str::to_owned).collect();
        }
    }
    Strings::from([String::new()])
}

fn without_empty(strings: &Strings) -> Strings {
    strings.iter().filter(|string| !string.is_empty()).cloned().collect()
}

/// What a text needs that has one of the strings.
fn needs_of(strings: &Strings) -> Need {
    Need::any(strings.iter().map(|string| Need::keys(windows(string))).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::opclass::int4_of;
    use crate::opclass::trigram::{text_of, trigrams};

    fn show(expr: &KeyExpr) -> String {
        let list = |parts: &[KeyExpr], with: &str| {
            let parts: Vec<_> = parts.iter().map(show).collect();
            format!("({})", parts.join(with))
        };
        match expr {
            KeyExpr::Key(key) => {
                let key = int4_of(key[..].try_into().unwrap());
                text_of(key).replace(' ', "_")
            }
            KeyExpr::And(parts) => list(parts, " & "),
            KeyExpr::Or(parts) => list(parts, " | "),
            KeyExpr::Maybe => "?".into(),
            other => panic!("no part of a pattern: {other:?}"),
        }
    }

    fn holds(expr: &KeyExpr, keys: &[i32]) -> bool {
        match expr {
            KeyExpr::Key(key) => keys.contains(&int4_of(key[..].try_into().unwrap())),
            KeyExpr::And(parts) => parts.iter().all(|part| holds(part, keys)),
            KeyExpr::Or(parts) => parts.iter().any(|part| holds(part, keys)),
            KeyExpr::Maybe => true,
            other => panic!("no part of a pattern: {other:?}"),
        }
    }

    #[test]
    fn patterns_need_the_trigrams_one_expects() {
        for (pattern, expected) in [
            ("wor", "wor"),
            ("Wörter", "(rte & ter & 0xc04ec8 & 0xd751cb)"),
            ("^abc", "(__a & _ab & abc)"),
            ("words$", "(ds_ & ord & rds & wor)"),
            ("two words", "(__w & _wo & ord & rds & two & wo_ & wor)"),
            (r"\bfoo\b", "(__f & _fo & foo & oo_)"),
            (r"\b-foo-\b", "(__f & _fo & foo & oo_)"),
            (r"foo\s+bar", "(__b & _ba & bar & foo & oo_)"),
            (r"foo\s*bar", "(bar & foo & ((__b & _ba & oo_) | (oba & oob)))"),
            ("foo_bar", "(__b & _ba & bar & foo & oo_)"),
            ("foo.*bar", "(bar & foo)"),
            ("foo(bar)*baz", "(baz & foo & ((arb & rba) | (oba & oob)))"),
            ("(abc|abd)e", "((abc & bce) | (abd & bde))"),
            ("foo|bar", "(bar | foo)"),
            ("x[ab]yz", "((ayz & xay) | (byz & xby))"),
            ("(foo)?bar", "bar"),
            ("(foo)+", "foo"),
            ("(foo){2}", "(foo & ofo & oof)"),
            (r"[^a]foo", "foo"),
            (r"\Wfoo", "(__f & _fo & foo)"),
            (r"\d\d\d", "?"),
            ("w.r", "?"),
            (".*", "?"),
            ("", "?"),
            ("ab", "?"),
            ("a|foo", "?"),
            (r"[a&&b]", "()"),
            (r"foo[a&&b]|bar", "bar"),
        ] {
            let shown = show(&regex_keys(pattern, false).unwrap());
            assert_eq!(shown, expected, "{pattern}");
        }
        assert_eq!(show(&regex_keys("FOo", false).unwrap()), "foo");
        assert_eq!(show(&regex_keys("FOo", true).unwrap()), "foo");
    }

    #[test]
    fn what_the_regex_crate_refuses_is_refused_with_the_reason() {
        for (pattern, reason) in [
            (r"(a)\1", "at byte 3: backreferences are not supported"),
            ("a(?=b)", "at byte 1: look-around"),
            ("a{2,1}", "at byte 1: invalid repetition count range"),
            ("(", "at byte 0: unclosed group"),
            (
                &format!("{}a{}", "(".repeat(999), ")".repeat(999)),
                "exceed the maximum number",
            ),
        ] {
            let error = regex_keys(pattern, false).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn every_word_character_is_one_for_the_regex_crate() {
        let odd: Vec<char> = ('\0'..=char::MAX)
            .filter(|&c| ctype::is_alnum(c) && !regex_syntax::is_word_character(c))
            .collect();
        assert_eq!(odd, []);
    }

    #[test]
    fn huge_patterns_end_soon_in_a_small_tree() {
        let letters = "[a-p]".repeat(3_000);
        let words: Vec<_> = (0..20_000).map(|n| format!("w{n:x}")).collect();
        let nested = "(".repeat(60) + "abcdef" + &"){9}".repeat(60);
        for pattern in [
            letters,
            words.join("|"),
            format!("({})x", words.join("|")),
            "session".repeat(10_000),
            nested,
            format!("({}){{8}}", "(a|b|c|d)".repeat(400)),
        ] {
            let expr = regex_keys(&pattern, true).unwrap();
            let size = show(&expr).len();
            assert!(size < 20_000, "{size} for {}…", &pattern[..20]);
        }
    }

    /// A pattern, with a string that it matches more often than not.
    #[derive(Clone, Debug)]
    struct Sample {
        pattern: String,
        text: String,
    }

    fn sample(pattern: &str, text: &str) -> Sample {
        Sample { pattern: pattern.into(), text: text.into() }
    }

    fn leaf() -> impl Strategy<Value = Sample> {
        let class = |pattern: &str, texts: &str| {
            let pattern = pattern.to_owned();
            let texts: Vec<char> = texts.chars().collect();
            prop::sample::select(texts)
                .prop_map(move |c| sample(&pattern, c.encode_utf8(&mut [0; 4])))
        };
        prop_oneof![
            6 => "[a-cA-CéÉß0Kſk ]{1,5}".prop_map(|s| sample(&s, &s)),
            1 => "[_\u{301}٠²İ日\n]{1,2}".prop_map(|s| sample(&s, &s)),
            1 => class("[abc]", "abc"),
            1 => class("[a-zé-]", "azé-"),
            1 => class("[^a-z]", "A_ é0"),
            1 => class("[_-b]", "_`ab"),
            1 => class("[8-C]", "8@AC"),
            1 => class(".", "aé _0"),
            1 => class(r"\w", "aé_0\u{301}"),
            1 => class(r"\W", " -²\n"),
            1 => class(r"\s", " \n"),
            1 => class(r"\d", "0٠"),
            1 => class("(?i:kS)", "k"),
            2 => prop::sample::select(vec![
                "^", "$", r"\b", r"\B", "(?m:^)", "(?m:$)", r"(?-u:\b)", r"\b{start}",
                r"\b{end}", r"\b{start-half}", r"\b{end-half}", r"\A", r"\z", "",
                r"(?-u:\B)", r"(?R:(?m:$))", r"(?-u:\b{start})",
            ]).prop_map(|pattern| sample(pattern, "")),
        ]
    }

    fn samples() -> impl Strategy<Value = Sample> {
        leaf().prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                4 => prop::collection::vec(inner.clone(), 1..6).prop_map(|parts| Sample {
                    pattern: parts.iter().map(|part| &part.pattern[..]).collect(),
                    text: parts.iter().map(|part| &part.text[..]).collect(),
                }),
                2 => (prop::collection::vec(inner.clone(), 1..4), any::<prop::sample::Index>())
                    .prop_map(|(parts, which)| {
                        let patterns: Vec<_> =
                            parts.iter().map(|part| &part.pattern[..]).collect();
                        Sample {
                            pattern: format!("(?:{})", patterns.join("|")),
                            text: which.get(&parts).text.clone(),
                        }
                    }),
                2 => (inner.clone(), prop::sample::select(vec![
                    ("*", 0), ("*", 3), ("+", 1), ("+", 2), ("?", 0), ("?", 1),
                    ("{2}", 2), ("{1,3}", 2), ("{2,}", 4), ("{0,2}", 1), ("{10}", 10),
                    ("{9,}", 12), ("{1,12}", 3), ("{0}", 0), ("*?", 1),
                ])).prop_map(|(part, (times, n))| Sample {
                    pattern: format!("(?:{}){times}", part.pattern),
                    text: part.text.repeat(n),
                }),
                1 => inner.prop_map(|part| Sample {
                    pattern: format!("(?i:{})", part.pattern),
                    text: part.text.to_uppercase(),
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn no_match_is_ever_missed(
            sample in samples(),
            before in "[a-c _é\n]{0,4}",
            behind in "[a-c _é\n]{0,4}",
            fold in any::<bool>(),
        ) {
            let Sample { pattern, text } = sample;
            let regex = regex::RegexBuilder::new(&pattern).case_insensitive(fold).build();
            let regex = regex.expect("the samples are well formed");
            let expr = regex_keys(&pattern, fold).unwrap();
            for text in [format!("{before}{text}{behind}"), text, behind] {
                prop_assert!(
                    !regex.is_match(&text) || holds(&expr, &trigrams(&text)),
                    "{pattern:?} matches {text:?}, not {}", show(&expr)
                );
            }
        }
    }
}
