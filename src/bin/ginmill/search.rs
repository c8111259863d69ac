//! `ginmill search DIR QUERY`: hits as mail tools show them, as JSON, or as an mbox.

use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use ginmill::Error;
use ginmill::search::{
    Answer, Hit, SearchOptions, Searcher, Snippet, Sort, ThreadMember, threads,
};
use serde_json::{Value as Json, json};

use crate::dates;
use crate::face::{Face, Failure, Status, note};
use crate::mbox;

/// Hits that are shown to people unless a limit is given.
const SHOWN: usize = 20;
/// Deepest level of a thread that is indented further.
const INDENT_MAX: usize = 20;

/// Search an archive
///
/// QUERY is what people type into search boxes: words, "phrases", or, -without, and
/// from:, to:, list:, subject:, after:, before:, id: with a value. A message is found
/// when its body and subject together have the words. Exit status 1 when nothing is.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill search mail.gin segfault -windows from:alice --limit 10
  ginmill search mail.gin --where \"subject ILIKE '%release%' AND date >= '2020-01-01'\"")]
pub(crate) struct Args {
    /// The archive directory
    dir: PathBuf,
    /// What to look for
    query: Vec<String>,
    /// A condition in PostgreSQL's notation, which must be fulfilled too
    ///
    /// Over fields: body @@ websearch_to_tsquery('...'), subject ILIKE '%...%', ~ 're',
    /// headers @> '{...}', date >= '2020-01-01', with AND, OR, NOT and parentheses.
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<String>,
    /// Order of the hits
    #[arg(long, value_name = "ORDER", default_value = "archive",
          allow_hyphen_values = true,
          value_parser = PossibleValuesParser::new(Sort::NAMES.iter().map(|sort| sort.0)))]
    sort: String,
    /// At most N hits [default: 20 as text, else all]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// Without the first N
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Only say how many there are
    #[arg(long, conflicts_with_all = ["ids", "output", "explain"])]
    count: bool,
    /// Only the TIDs
    #[arg(long, conflicts_with_all = ["output", "explain"])]
    ids: bool,
    /// Grouped by thread, answers below what they answer
    #[arg(long, conflicts_with_all = ["ids", "count", "explain"])]
    threads: bool,
    /// How hits are written [default: text]
    #[arg(long, value_enum)]
    output: Option<Output>,
    /// Print what was done instead of the hits, as EXPLAIN ANALYZE does
    #[arg(long, conflicts_with = "output")]
    explain: bool,
    /// Highlight matches with colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Output {
    /// A few lines per message
    Text,
    /// A JSON object a line
    Json,
    /// The messages themselves
    Mbox,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let output = match self.output {
            Some(output) => output,
            None if face.json => Output::Json,
            None => Output::Text,
        };
        let text = self.query.join(" ");
        let plain = Some(text.as_str()).filter(|text| !text.trim().is_empty());
        if plain.is_none() && self.filter.is_none() {
            return Err(Error::invalid(
                "nothing is asked for; give a query, or a condition with --where",
            )
            .into());
        }
        let archive = Searcher::open(&self.dir)?;
        let query = archive.query(plain, self.filter.as_deref())?;
        for said in query.notes() {
            note(said);
        }
        let lines = output == Output::Text && !self.ids && !self.count && !self.explain;
        let limit = self.limit.or(lines.then_some(SHOWN));
        let sort = Sort::NAMES.iter().find(|(name, _)| *name == self.sort);
        let options = SearchOptions {
            sort: sort.expect("the parser takes names of the list only").1,
            limit,
            offset: self.offset,
            count_only: self.count || (self.explain && self.limit.is_none()),
            ids_only: self.ids || (output == Output::Mbox && !self.threads),
        };
        let answer = archive.search(&query, &options)?;
        if self.explain {
            if face.json {
                face.line(&json!({ "plan": answer.plan }))?;
            } else {
                writeln!(face.out, "{}", answer.plan.to_string().trim_end())?;
            }
            return Ok(found(answer.plan.documents > 0));
        }
        if self.count {
            let total = answer.total.unwrap_or(answer.plan.documents);
            if face.json {
                face.line(&json!({ "count": total }))?;
            } else {
                writeln!(face.out, "{total}")?;
            }
            return Ok(found(total > 0));
        }
        self.write(face, &archive, &answer, output)?;
        if lines && answer.hits.is_empty() {
            note("nothing was found");
        } else if lines {
            self.say_what_was_left_out(&answer);
        }
        Ok(found(!answer.hits.is_empty()))
    }

    fn write(
        &self,
        face: &mut Face,
        archive: &Searcher,
        answer: &Answer,
        output: Output,
    ) -> Result<(), Failure> {
        let style = Style::new(self.color);
        for (number, (depth, hit)) in self.ordered(&answer.hits).into_iter().enumerate()
        {
            match output {
                _ if self.ids && face.json => {
                    face.line(&json!({ "tid": hit.tid.to_string() }))?;
                }
                _ if self.ids => writeln!(face.out, "{}", hit.tid)?,
                Output::Json => {
                    let mut object = hit_json(hit);
                    if self.threads {
                        object["depth"] = depth.into();
                    }
                    face.line(&object)?;
                }
                Output::Mbox => {
                    mbox::write(&mut face.out, &archive.raw(hit.tid)?, hit.date)?;
                }
                Output::Text => {
                    if number > 0 {
                        writeln!(face.out)?;
                    }
                    let indent = "  ".repeat(depth.min(INDENT_MAX));
                    for line in hit_text(hit, &style).lines() {
                        writeln!(face.out, "{indent}{line}")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Hits in the order in which they are written, with their depth in the thread.
    fn ordered<'h>(&self, hits: &'h [Hit]) -> Vec<(usize, &'h Hit)> {
        if !self.threads {
            return hits.iter().map(|hit| (0, hit)).collect();
        }
        let member = |hit: &'h Hit| ThreadMember {
            id: hit.message_id.as_deref(),
            references: &hit.references,
        };
        let lines = threads(&hits.iter().map(member).collect::<Vec<_>>());
        lines
            .iter()
            .filter_map(|line| Some((line.depth, &hits[line.message?])))
            .collect()
    }

    /// On stderr, when there are more hits than were shown.
    fn say_what_was_left_out(&self, answer: &Answer) {
        let shown = answer.hits.len();
        let all = answer.total.and_then(|total| usize::try_from(total).ok());
        match all {
            Some(total) if total > self.offset + shown => {
                note(&format!("{shown} of {total} messages; --limit shows more"));
            }
            None if shown > 0 => {
                note(&format!("the first {shown} messages; --limit shows more"));
            }
            _ => {}
        }
    }
}

fn found(any: bool) -> Status {
    if any { Status::Done } else { Status::Nothing }
}

/// Escape sequences, empty without colours.
struct Style {
    highlight: &'static str,
    strong: &'static str,
    faint: &'static str,
    end: &'static str,
}

impl Style {
    fn new(color: Color) -> Style {
        let on = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        };
        if on {
            let (highlight, strong) = ("\x1b[1;31m", "\x1b[1m");
            Style { highlight, strong, faint: "\x1b[2m", end: "\x1b[0m" }
        } else {
            Style { highlight: "", strong: "", faint: "", end: "" }
        }
    }

    fn faint(&self, text: &str) -> String {
        format!("{}{}{}", self.faint, printable(text), self.end)
    }

    /// A snippet with its matches marked, in `base` else.
    fn marked(&self, snippet: &Snippet, base: &str) -> String {
        let mut out = String::from(base);
        let mut at = 0;
        for range in &snippet.highlights {
            let (Some(before), Some(inside)) =
                (snippet.text.get(at..range.start), snippet.text.get(range.clone()))
            else {
                continue;
            };
            out.push_str(&printable(before));
            out.push_str(self.highlight);
            out.push_str(&printable(inside));
            out.push_str(self.end);
            out.push_str(base);
            at = range.end;
        }
        out.push_str(&printable(snippet.text.get(at..).unwrap_or_default()));
        if !base.is_empty() {
            out.push_str(self.end);
        }
        out
    }
}

/// Text of a message that may not command the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Date, sender and TID; subject; the place that was found; where the message lies.
fn hit_text(hit: &Hit, style: &Style) -> String {
    let date = hit.date.map_or_else(|| "no date         ".to_owned(), dates::minute);
    let mut out = style.faint(&date);
    out.push_str("  ");
    match &hit.from {
        Some(from) => out.push_str(&style.marked(from, "")),
        None => out.push_str(&style.faint("no sender")),
    }
    out.push_str(&format!("  {}\n", style.faint(&hit.tid.to_string())));
    if let Some(subject) = &hit.subject {
        out.push_str(&format!("  {}\n", style.marked(subject, style.strong)));
    }
    if let Some(snippet) = hit.snippet.as_ref().filter(|s| !s.text.trim().is_empty()) {
        let before = if snippet.cut_before { "… " } else { "" };
        let after = if snippet.cut_after { " …" } else { "" };
        out.push_str(&format!("  {before}{}{after}\n", style.marked(snippet, "")));
    }
    let place = format!("{}:{}", hit.path.display(), hit.offset);
    out.push_str(&format!("  {}\n", style.faint(&place)));
    out
}

/// A hit for programs.
fn hit_json(hit: &Hit) -> Json {
    json!({
        "tid": hit.tid.to_string(),
        "file": path_json(&hit.path),
        "offset": hit.offset,
        "length": hit.len,
        "date": hit.date.map(dates::rfc3339),
        "rank": hit.rank,
        "from": hit.from.as_ref().map(|from| &from.text),
        "subject": hit.subject.as_ref().map(|subject| &subject.text),
        "list": hit.list,
        "message_id": hit.message_id,
        "references": hit.references,
        "snippet": hit.snippet,
        "snippet_field": hit.snippet_field,
    })
}

/// A path as text; bytes that are no UTF-8 are replaced.
pub(crate) fn path_json(path: &Path) -> Json {
    path.to_string_lossy().into()
}
