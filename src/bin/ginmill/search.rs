//! `ginmill search DIR QUERY`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use ginmill::Error;
use ginmill::search::{
    Hit, PlanNode, SearchOptions, Searcher, Snippet, Sort, ThreadMember, threads,
};
use serde_json::{Value, json};

use crate::face::{Face, Failure, Status, note};

/// Find messages
///
/// QUERY is PostgreSQL's websearch syntax over body and subject (words, "phrases", or,
/// -not) with from: to: subject: list: after: before: id: for the parts of a message.
/// --where takes PostgreSQL's own notation: body @@ to_tsquery('a & b'), subject ILIKE
/// '%x%', body ~ 're', headers @> '{"list-id": "<x>"}', date >= '2020-01-01', AND, OR,
/// NOT, parentheses. The exit status is 1 when nothing is found.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill search mail.gin 'segfault -windows from:alice' --limit 10
  ginmill search mail.gin --where \"subject ILIKE '%release%' AND date >= '2020-01-01'\"")]
pub(crate) struct Args {
    /// An archive directory
    dir: PathBuf,
    /// What to look for
    query: Option<String>,
    /// A condition, in PostgreSQL's notation
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<String>,
    /// Order of the hits
    #[arg(long, default_value = "archive", allow_hyphen_values = true,
          value_parser = PossibleValuesParser::new(Sort::NAMES.map(|(name, _)| name)))]
    sort: String,
    /// At most so many hits
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Without the first so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Only print how many there are
    #[arg(long)]
    count: bool,
    /// Only print TIDs
    #[arg(long)]
    ids: bool,
    /// Grouped by thread
    #[arg(long)]
    threads: bool,
    /// Form of the hits
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print what was done, with figures, instead of the hits
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Text,
    /// A JSON object a line
    Json,
    /// The messages themselves, for any mail program
    Mbox,
}

const HIGHLIGHT: &str = "\x1b[1;31m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        if self.query.is_none() && self.filter.is_none() {
            return Err(
                Error::invalid("expected a QUERY or --where, found neither").into()
            );
        }
        let searcher = Searcher::open(&self.dir)?;
        let query = searcher.query(self.query.as_deref(), self.filter.as_deref())?;
        for said in query.notes() {
            note(said);
        }
        let output = if face.json { Output::Json } else { self.output };
        let mut names = Sort::NAMES.iter();
        let sort = names.find(|(name, _)| *name == self.sort).map(|(_, sort)| *sort);
        let options = SearchOptions {
            sort: sort.unwrap_or_default(),
            limit: self.limit,
            offset: self.offset,
            count_only: self.count,
            ids_only: self.ids || output == Output::Mbox,
        };
        let answer = searcher.search(&query, &options)?;
        let found = answer.total.map_or(!answer.hits.is_empty(), |total| total > 0);
        if self.explain {
            if output == Output::Json {
                face.line(&serde_json::to_value(&answer.plan)?)?;
            } else {
                explain(face, &answer.plan, 0)?;
            }
        } else if self.count {
            let total = answer.total.unwrap_or(0);
            match output {
                Output::Json => face.line(&json!({ "count": total }))?,
                _ => writeln!(face.out, "{total}")?,
            }
        } else {
            self.hits(face, &searcher, &answer.hits, output)?;
        }
        Ok(if found { Status::Done } else { Status::Nothing })
    }

    fn hits(
        &self,
        face: &mut Face,
        searcher: &Searcher,
        hits: &[Hit],
        output: Output,
    ) -> Result<(), Failure> {
        let colours =
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        if self.threads && output == Output::Text && !self.ids {
            let members: Vec<ThreadMember<'_>> = hits
                .iter()
                .map(|hit| ThreadMember {
                    id: hit.message_id.as_deref(),
                    references: &hit.references,
                })
                .collect();
            for line in threads(&members) {
                if let Some(hit) = line.message.map(|at| &hits[at]) {
                    text(face, hit, &"  ".repeat(line.depth), colours)?;
                }
            }
            return Ok(());
        }
        for hit in hits {
            match output {
                Output::Text if self.ids => writeln!(face.out, "{}", hit.tid)?,
                Output::Text => text(face, hit, "", colours)?,
                Output::Json => face.line(&object(hit, self.ids))?,
                Output::Mbox => mbox(face, &searcher.raw(hit.tid)?, hit)?,
            }
        }
        Ok(())
    }
}

/// A snippet with its highlights, on a terminal in colour.
fn snippet(snippet: &Snippet, colours: bool) -> String {
    let mut out = String::new();
    out.push_str(if snippet.cut_before { "… " } else { "" });
    let mut at = 0;
    for range in snippet.highlights.iter().filter(|_| colours) {
        out.push_str(&snippet.text[at..range.start]);
        out.push_str(HIGHLIGHT);
        out.push_str(&snippet.text[range.clone()]);
        out.push_str(PLAIN);
        at = range.end;
    }
    out.push_str(&snippet.text[at..]);
    out.push_str(if snippet.cut_after { " …" } else { "" });
    out
}

fn date(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(
        || "no date".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

fn text(
    face: &mut Face,
    hit: &Hit,
    indent: &str,
    colours: bool,
) -> Result<(), Failure> {
    let shown = |part: &Option<Snippet>, none: &str| {
        part.as_ref().map_or_else(|| none.to_owned(), |part| snippet(part, colours))
    };
    writeln!(
        face.out,
        "{indent}{}  {}  {}",
        date(hit.date),
        shown(&hit.from, "(no sender)"),
        shown(&hit.subject, "(no subject)")
    )?;
    let (dim, plain) = if colours { (DIM, PLAIN) } else { ("", "") };
    let list = hit.list.as_ref().map_or(String::new(), |list| format!("  {list}"));
    writeln!(
        face.out,
        "{indent}  {dim}{} {}:{}{list}{plain}",
        hit.tid,
        hit.path.display(),
        hit.offset
    )?;
    if let Some(part) = &hit.snippet {
        writeln!(face.out, "{indent}  {}", snippet(part, colours))?;
    }
    Ok(())
}

fn object(hit: &Hit, ids: bool) -> Value {
    let mut value = json!({
        "tid": hit.tid.to_string(), "file": hit.path.display().to_string(),
        "offset": hit.offset, "length": hit.len, "date": hit.date,
    });
    if !ids {
        let text = |part: &Option<Snippet>| part.as_ref().map(|part| part.text.clone());
        value["from"] = json!(text(&hit.from));
        value["subject"] = json!(text(&hit.subject));
        value["list"] = json!(hit.list);
        value["message_id"] = json!(hit.message_id);
        value["references"] = json!(hit.references);
        value["snippet"] = json!(hit.snippet);
        value["rank"] = json!(hit.rank);
    }
    value
}

/// A message as it is in its file, behind a separator if it brings none, and with the
/// blank line that the next separator wants.
fn mbox(face: &mut Face, raw: &[u8], hit: &Hit) -> Result<(), Failure> {
    if !raw.starts_with(b"From ") {
        let time =
            jiff::Timestamp::from_second(hit.date.unwrap_or(0)).unwrap_or_default();
        writeln!(face.out, "From ginmill {}", time.strftime("%a %b %e %H:%M:%S %Y"))?;
        for line in raw.split_inclusive(|&byte| byte == b'\n') {
            let quoted = line.iter().position(|&byte| byte != b'>').unwrap_or(0);
            if line[quoted..].starts_with(b"From ") {
                face.out.write_all(b">")?;
            }
            face.out.write_all(line)?;
        }
    } else {
        face.out.write_all(raw)?;
    }
    let end: &[u8] = match raw {
        [.., b'\n', b'\n'] | [.., b'\n', b'\r', b'\n'] => b"",
        [.., b'\n'] => b"\n",
        _ => b"\n\n",
    };
    face.out.write_all(end)?;
    Ok(())
}

/// The plan in the shape of EXPLAIN ANALYZE.
fn explain(face: &mut Face, node: &PlanNode, depth: usize) -> Result<(), Failure> {
    let indent =
        if depth == 0 { String::new() } else { format!("{}->  ", "  ".repeat(depth)) };
    let on = node.index.as_ref().map_or(String::new(), |index| format!(" on {index}"));
    writeln!(
        face.out,
        "{indent}{}{on}  (documents={} certain={} time={:.3} ms)",
        node.node,
        node.documents,
        node.certain,
        node.seconds * 1e3
    )?;
    let under = "  ".repeat(depth + 2);
    if let Some(condition) = &node.condition {
        writeln!(face.out, "{under}Cond: {condition}")?;
    }
    if node.keys + node.entries + node.tids > 0 {
        writeln!(
            face.out,
            "{under}Keys: {}  Entries: {}  TIDs read: {}  Seeks: {}",
            node.keys, node.entries, node.tids, node.seeks
        )?;
    }
    if node.rechecked > 0 {
        writeln!(
            face.out,
            "{under}Rechecked: {}  Removed by recheck: {}",
            node.rechecked, node.removed
        )?;
    }
    for said in &node.notes {
        writeln!(face.out, "{under}{said}")?;
    }
    node.children.iter().try_for_each(|child| explain(face, child, depth + 1))
}
