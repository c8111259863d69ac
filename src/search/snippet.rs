//! Snippets: the stretch of a text that shows best why it was found.
//!
//! [`Highlighter`] knows the words and patterns that an expression asks for, field by
//! field. Words are found as the index found them: by the word parser and the
//! dictionaries, so that `running` lights up for `run`.

use std::ops::Range;

use regex::Regex;
use serde::Serialize;

use super::recheck::{Node, Test};
use crate::opclass::tsvector::parser::Parser;
use crate::opclass::tsvector::{Config, Lexized};

/// Characters of a snippet.
const LENGTH: usize = 180;
/// Characters before the first highlight.
const LEAD: usize = 40;
/// Bytes of a text that are looked through.
const TEXT_MAX: usize = 4 << 20;
/// Highlights of a text that are looked at.
const SPANS_MAX: usize = 10_000;

/// A piece of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Snippet {
    /// On one line: white space is one blank.
    pub text: String,
    /// Bytes of `text` to highlight, ascending, apart.
    pub highlights: Vec<Range<usize>>,
    /// Text was left out before it.
    pub cut_before: bool,
    /// Text was left out behind it.
    pub cut_after: bool,
}

/// Words and patterns to look for.
#[derive(Debug, Default)]
pub(super) struct Highlighter {
    words: Vec<Words>,
    patterns: Vec<(usize, Regex)>,
}

#[derive(Debug)]
struct Words {
    field: usize,
    config: &'static Config,
    /// Lexeme, and whether it is a prefix.
    lexemes: Vec<(String, bool)>,
}

/// A place to highlight, and what it shows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Span {
    start: usize,
    end: usize,
    what: usize,
}

impl Highlighter {
    pub(super) fn new(node: &Node) -> Highlighter {
        let mut highlighter = Highlighter::default();
        node.each_positive(&mut |test| match test {
            Test::Search { field, config, query } => {
                let operands = query.operands().into_iter();
                let lexemes = operands
                    .filter(|operand| operand.positive)
                    .map(|operand| (operand.lexeme.to_owned(), operand.prefix))
                    .collect();
                highlighter.words.push(Words { field: *field, config, lexemes });
            }
            Test::Regex { field, regex } => {
                highlighter.patterns.push((*field, regex.clone()));
            }
            Test::Like { field, shown: Some(regex), .. } => {
                highlighter.patterns.push((*field, regex.clone()));
            }
            _ => {}
        });
        highlighter
    }

    /// Whether something is looked for in a field.
    pub(super) fn concerns(&self, field: usize) -> bool {
        self.words.iter().any(|words| words.field == field)
            || self.patterns.iter().any(|(at, _)| *at == field)
    }

    /// Where a field's text shows what is looked for; ascending, may overlap.
    fn spans(&self, field: usize, text: &str) -> Vec<Span> {
        let text = match text.len() {
            0..=TEXT_MAX => text,
            _ => {
                let end = (0..=TEXT_MAX).rev().find(|&at| text.is_char_boundary(at));
                &text[..end.unwrap_or(0)]
            }
        };
        let mut spans = Vec::new();
        let mut what = 0;
        for words in self.words.iter().filter(|words| words.field == field) {
            for token in Parser::new(text) {
                let Lexized::Lexeme(lexeme) =
                    words.config.lexize(token.kind, token.text)
                else {
                    continue;
                };
                let found = words.lexemes.iter().position(|(wanted, prefix)| {
                    if *prefix {
                        lexeme.starts_with(wanted.as_str())
                    } else {
                        *wanted == lexeme
                    }
                });
                if let Some(found) = found
                    && spans.len() < SPANS_MAX
                {
                    let start = offset_in(text, token.text);
                    let end = start + token.text.len();
                    spans.push(Span { start, end, what: what + found });
                }
            }
            what += words.lexemes.len();
        }
        for (_, regex) in self.patterns.iter().filter(|(at, _)| *at == field) {
            let found = regex.find_iter(text).filter(|found| !found.is_empty());
            spans.extend(found.take(SPANS_MAX).map(|found| Span {
                start: found.start(),
                end: found.end(),
                what,
            }));
            what += 1;
        }
        spans.sort();
        spans
    }

    /// The piece of a field's text with the most of what is looked for; its beginning if
    /// there is nothing.
    pub(super) fn snippet(&self, field: usize, text: &str) -> Snippet {
        let spans = self.spans(field, text);
        cut(text, &spans, best_start(text, &spans), LENGTH)
    }

    /// A field's whole text on one line, for short fields.
    pub(super) fn whole(&self, field: usize, text: &str) -> Snippet {
        cut(text, &self.spans(field, text), 0, usize::MAX)
    }
}

/// Where a token lies in the text that it was cut from.
fn offset_in(text: &str, token: &str) -> usize {
    (token.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// The start of the window with the most different things to see.
fn best_start(text: &str, spans: &[Span]) -> usize {
    let mut best = (0, 0);
    for (at, span) in spans.iter().enumerate() {
        // In bytes: close enough for choosing.
        let inside = spans[at..]
            .iter()
            .take_while(|other| other.end <= span.start + (LENGTH - LEAD))
            .take(64);
        let mut different: Vec<usize> = inside.map(|span| span.what).collect();
        let many = different.len();
        different.sort_unstable();
        different.dedup();
        let score = different.len() * 100 + many.min(50);
        if score > best.0 {
            best = (score, span.start);
        }
    }
    if best.0 == 0 {
        return 0;
    }
    // Back by some characters, to the beginning of a word.
    let before = &text[..best.1];
    let back = before.char_indices().rev().take(LEAD).last().map_or(0, |(at, _)| at);
    if back == 0 {
        return 0;
    }
    let word = text[back..best.1].find(char::is_whitespace);
    word.map_or(best.1, |at| back + at)
}

/// `length` characters from byte `start` on, with white space made single.
fn cut(text: &str, spans: &[Span], start: usize, length: usize) -> Snippet {
    let cut_before = !text[..start].trim().is_empty();
    let mut snippet = Snippet { cut_before, ..Snippet::default() };
    let mut spans = spans.iter().filter(|span| span.end > start).peekable();
    let mut open: Option<(usize, usize)> = None;
    let mut count = 0;
    for (at, c) in text[start..].char_indices() {
        let at = start + at;
        if count == length {
            snippet.cut_after = !text[at..].trim().is_empty();
            break;
        }
        if let Some((from, end)) = open
            && at >= end
        {
            close(&mut snippet, from);
            open = None;
        }
        while let Some(span) = spans.next_if(|span| span.start <= at) {
            if span.end > at {
                let from = open.map_or(snippet.text.len(), |(from, _)| from);
                let end = open.map_or(span.end, |(_, end)| end.max(span.end));
                open = Some((from, end));
            }
        }
        if c.is_whitespace() || c.is_control() {
            if !snippet.text.is_empty() && !snippet.text.ends_with(' ') {
                snippet.text.push(' ');
                count += 1;
            }
        } else {
            snippet.text.push(c);
            count += 1;
        }
    }
    if let Some((from, _)) = open {
        close(&mut snippet, from);
    }
    let end = snippet.text.trim_end().len();
    snippet.text.truncate(end);
    snippet.highlights.retain_mut(|range| {
        range.end = range.end.min(end);
        range.start < range.end
    });
    snippet
}

/// Ends the highlight that began at `from`, without a blank at its end.
fn close(snippet: &mut Snippet, from: usize) {
    let end = snippet.text.trim_end().len();
    if from < end {
        snippet.highlights.push(from..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highlighter(lexemes: &[(&str, bool)], pattern: Option<&str>) -> Highlighter {
        let lexemes =
            lexemes.iter().map(|(lexeme, prefix)| ((*lexeme).to_owned(), *prefix));
        let config = Config::find("english").unwrap();
        let words = Words { field: 0, config, lexemes: lexemes.collect() };
        let patterns = pattern.map(|pattern| (0, Regex::new(pattern).unwrap()));
        Highlighter { words: vec![words], patterns: patterns.into_iter().collect() }
    }

    /// Highlights in brackets, cuts as dots.
    fn show(snippet: &Snippet) -> String {
        let mut shown = String::new();
        let mut at = 0;
        for range in &snippet.highlights {
            shown += &snippet.text[at..range.start];
            shown += "[";
            shown += &snippet.text[range.clone()];
            shown += "]";
            at = range.end;
        }
        shown += &snippet.text[at..];
        let dots = |cut: bool| if cut { "…" } else { "" };
        format!("{}{shown}{}", dots(snippet.cut_before), dots(snippet.cut_after))
    }

    #[test]
    fn words_light_up_as_the_index_found_them() {
        let words = highlighter(&[("run", false), ("cat", true)], None);
        let text = "He was\n\n  running: 12 cats, a catalogue and foo-cat.\n";
        assert_eq!(
            show(&words.snippet(0, text)),
            "He was [running]: 12 [cats], a [catalogue] and foo-[cat]."
        );
        assert_eq!(show(&words.snippet(1, text)), show(&words.snippet(1, text.trim())));
        assert!(words.snippet(1, text).highlights.is_empty());
    }

    #[test]
    fn a_snippet_shows_the_place_with_most_to_see() {
        let words = highlighter(&[("cat", false), ("dog", false)], None);
        let filler = "lorem ipsum dolor sit amet ".repeat(20);
        let text = format!("One cat. {filler} the dog and the cat met {filler}");
        let snippet = words.snippet(0, &text);
        let shown = show(&snippet);
        assert!(shown.contains("the [dog] and the [cat] met"), "{shown}");
        assert!(snippet.cut_before && snippet.cut_after);
        assert!(snippet.text.chars().count() <= LENGTH);
    }

    #[test]
    fn overlapping_highlights_are_one_and_blanks_are_not_part_of_it() {
        let words = highlighter(&[("fat", false), ("cat", false)], Some("fat\\s+ca"));
        assert_eq!(show(&words.snippet(0, "a fat \n cat x")), "a [fat cat] x");
        let blanks = highlighter(&[], Some("\\s+x?"));
        assert_eq!(show(&blanks.snippet(0, "  a  x b ")), "a[ x] b");
    }

    #[test]
    fn a_text_without_anything_to_see_begins_at_its_beginning() {
        let words = highlighter(&[("zebra", false)], None);
        let text = "é".repeat(500);
        let snippet = words.snippet(0, &text);
        assert_eq!(snippet.text.chars().count(), LENGTH);
        assert!(snippet.cut_after && !snippet.cut_before);
        assert_eq!(words.whole(0, &text).text, text);
    }
}
