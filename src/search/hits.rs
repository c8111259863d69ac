//! Hits: what is shown of a document that was found, its rank, and whole messages.

use std::collections::HashMap;
use std::path::PathBuf;

use rayon::prelude::*;

use super::originals::Buffer;
use super::plain::Ranking;
use super::rank::rank_cd;
use super::recheck::{Node, Test};
use super::snippet::{Highlighter, Snippet};
use super::{SearchOptions, Searcher};
use crate::catalog::DocumentEntry;
use crate::document::{Document, Json, JsonEvent, Value, ValueKind};
use crate::error::{Error, Result};
use crate::opclass::tsvector::tsquery::{Lexemes, position_word};
use crate::opclass::tsvector::{TsVector, position_of};
use crate::tid::Tid;

/// Ids of `References` that are kept.
const REFERENCES_MAX: usize = 1000;

/// A document that was found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hit {
    /// Its name.
    pub tid: Tid,
    /// Its input file.
    pub path: PathBuf,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// Seconds since 1970 UTC.
    pub date: Option<i64>,
    /// `ts_rank_cd`, when hits are sorted by it.
    pub rank: Option<f32>,
    /// The sender.
    pub from: Option<Snippet>,
    /// The whole subject.
    pub subject: Option<Snippet>,
    /// The mailing list.
    pub list: Option<String>,
    /// As written, in angle brackets.
    pub message_id: Option<String>,
    /// The messages that it answers, oldest first: `References`, else `In-Reply-To`.
    pub references: Vec<String>,
    /// The place in the text that shows why it was found.
    pub snippet: Option<Snippet>,
    /// The field that the snippet is from.
    pub snippet_field: Option<String>,
}

/// A whole document; see [`Searcher::show`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Message {
    /// Its name.
    pub tid: Tid,
    /// Its input file.
    pub path: PathBuf,
    /// Where it lies there.
    pub entry: DocumentEntry,
    /// Its bytes as they are in the file.
    pub raw: Vec<u8>,
    /// Its fields by name, decoded.
    pub fields: Vec<(String, Value<'static>)>,
    /// What could not be read as written.
    pub warnings: Vec<String>,
}

/// What a `--where` expression asks for is ranked search by search.
pub(super) fn rankings(node: &Node) -> Vec<Ranking> {
    let mut rankings = Vec::new();
    node.each_positive(&mut |test| {
        if let Test::Search { field, config, query } = test {
            rankings.push(Ranking {
                fields: vec![(*field, false)],
                config,
                query: query.clone(),
            });
        }
    });
    rankings
}

/// The words of several fields as of one text: `setweight(title, 'A') || …`.
struct Joined {
    /// With the weight A or not, and where positions begin.
    parts: Vec<(TsVector, bool, u16)>,
}

impl Joined {
    fn new(vectors: impl Iterator<Item = (TsVector, bool)>) -> Joined {
        let mut shift = 0_u16;
        let mut parts = Vec::new();
        for (vector, title) in vectors {
            let last = vector.iter().flat_map(|(_, words)| words.last());
            let last = last.map(|&word| position_of(word)).max().unwrap_or(0);
            parts.push((vector, title, shift));
            shift = shift.saturating_add(last).min(position_of(u16::MAX));
        }
        Joined { parts }
    }
}

impl Lexemes for Joined {
    fn find(
        &self,
        lexeme: &str,
        prefix: bool,
        see: &mut dyn FnMut(&str, &[u16]) -> bool,
    ) {
        let mut go_on = true;
        for (vector, title, shift) in &self.parts {
            vector.find(lexeme, prefix, &mut |found, words| {
                let moved: Vec<u16> = words
                    .iter()
                    .map(|&word| {
                        let position = position_of(word).saturating_add(*shift);
                        let position = position.min(position_of(u16::MAX));
                        position_word(position, if *title { 3 } else { 0 })
                    })
                    .collect();
                go_on = see(found, &moved);
                go_on
            });
            if !go_on {
                break;
            }
        }
    }
}

impl Searcher {
    /// Sorts documents by rank, best first; equal ones stay in archive order.
    pub(super) fn rank(
        &self,
        rankings: &[Ranking],
        tids: &mut [(u64, f32)],
    ) -> Result<()> {
        let mut wanted = vec![false; self.schema.fields.len()];
        for (field, _) in rankings.iter().flat_map(|ranking| &ranking.fields) {
            wanted[*field] = true;
        }
        tids.par_iter_mut().try_for_each_init(Buffer::default, |buffer, found| {
            let entry = self.entry(Tid::unpack(found.0))?;
            found.1 =
                self.originals.with_document(&entry, &wanted, buffer, |document| {
                    rankings.iter().map(|ranking| rank_of(ranking, document)).sum()
                })?;
            Ok::<_, Error>(())
        })?;
        tids.par_sort_by(|(_, one), (_, other)| other.total_cmp(one));
        Ok(())
    }

    /// What is shown of these documents.
    pub(super) fn make_hits(
        &self,
        found: &[(u64, f32)],
        highlighter: &Highlighter,
        ids_only: bool,
    ) -> Result<Vec<Hit>> {
        let wanted = vec![!ids_only; self.schema.fields.len()];
        found
            .par_iter()
            .map_init(Buffer::default, |buffer, &(tid, rank)| {
                let tid = Tid::unpack(tid);
                let entry = self.entry(tid)?;
                let mut hit = Hit {
                    tid,
                    path: self.path_of(&entry),
                    offset: entry.offset,
                    len: entry.len,
                    date: entry.date,
                    rank: (rank > 0.0).then_some(rank),
                    ..Hit::default()
                };
                if !ids_only {
                    self.originals.with_document(
                        &entry,
                        &wanted,
                        buffer,
                        |document| self.fill(&mut hit, document, highlighter),
                    )?;
                }
                Ok(hit)
            })
            .collect()
    }

    fn path_of(&self, entry: &DocumentEntry) -> PathBuf {
        let input = self.catalog.inputs.get(entry.file as usize);
        input.map_or_else(PathBuf::new, |input| input.path.clone())
    }

    fn fill(&self, hit: &mut Hit, document: &Document<'_>, highlighter: &Highlighter) {
        let text = |name: &str| {
            let field = self.schema.field(name)?;
            match document.values.get(field) {
                Some(Value::Text(text)) => Some((field, &**text)),
                _ => None,
            }
        };
        let whole =
            |name| text(name).map(|(field, text)| highlighter.whole(field, text));
        hit.from = whole("from");
        hit.subject = whole("subject");
        hit.list = text("list").map(|(_, text)| text.to_owned());
        hit.message_id = text("message_id").map(|(_, text)| text.to_owned());
        if let Some(field) = self.schema.field("headers")
            && let Some(Value::Json(headers)) = document.values.get(field)
        {
            hit.references = references(headers);
        }
        // The first long text in which something was looked for, else the body, else
        // the first text at all.
        let texts = || {
            let fields = self.schema.fields.iter().enumerate();
            fields.filter(|(_, field)| field.kind == ValueKind::Text)
        };
        let shown = ["from", "subject", "to", "list", "message_id"];
        let field = texts()
            .filter(|(_, field)| !shown.contains(&field.name.as_str()))
            .find(|(at, _)| highlighter.concerns(*at))
            .or_else(|| texts().find(|(_, field)| field.name == "body"))
            .or_else(|| texts().next());
        if let Some((_, field)) = field
            && let Some((at, text)) = text(&field.name)
        {
            hit.snippet = Some(highlighter.snippet(at, text));
            hit.snippet_field = Some(field.name.clone());
        }
    }

    /// A document by its Message-ID (with or without angle brackets) or its TID, written
    /// `(block,offset)`; `None` when there is no such document.
    pub fn show(&self, id: &str) -> Result<Option<Message>> {
        let tid = match parse_tid(id) {
            Some(tid) => Some(tid),
            None => self.tid_of(id)?,
        };
        let Some(tid) = tid else { return Ok(None) };
        let Some(entry) = self.documents.get(tid)? else { return Ok(None) };
        let mut buffer = Buffer::default();
        let (bytes, format) = self.originals.read(&entry, &mut buffer)?;
        let wanted = vec![true; self.schema.fields.len()];
        let mut document = Document::default();
        format.parse(bytes, &wanted, &mut document)?;
        let names = self.schema.fields.iter().map(|field| field.name.clone());
        Ok(Some(Message {
            tid,
            path: self.path_of(&entry),
            entry,
            raw: bytes.to_vec(),
            fields: names.zip(document.values.into_iter().map(owned)).collect(),
            warnings: document.warnings,
        }))
    }

    /// The bytes of a document as they are in its file.
    pub fn raw(&self, tid: Tid) -> Result<Vec<u8>> {
        let entry = self.entry(tid)?;
        let mut buffer = Buffer::default();
        Ok(self.originals.read(&entry, &mut buffer)?.0.to_vec())
    }

    /// The first document with this Message-ID.
    fn tid_of(&self, id: &str) -> Result<Option<Tid>> {
        if self.schema.field("headers").is_none()
            && self.schema.field("message_id").is_none()
        {
            return Err(Error::invalid(format!(
                "{id} is no TID such as (0,1), and these documents have no Message-ID"
            )));
        }
        let query = self.query(Some(&format!("id:\"{id}\"")), None)?;
        let options =
            SearchOptions { limit: Some(1), ids_only: true, ..Default::default() };
        let answer = self.search(&query, &options)?;
        Ok(answer.hits.first().map(|hit| hit.tid))
    }
}

/// `(block,offset)`, with or without parentheses.
fn parse_tid(text: &str) -> Option<Tid> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let (block, offset) = inner.unwrap_or(text).split_once(',')?;
    Some(Tid::new(block.trim().parse().ok()?, offset.trim().parse().ok()?))
}

/// The rank of a document for one search.
fn rank_of(ranking: &Ranking, document: &Document<'_>) -> f32 {
    let vectors = ranking.fields.iter().filter_map(|&(field, title)| {
        match document.values.get(field) {
            Some(Value::Text(text)) => {
                Some((TsVector::of(ranking.config, text), title))
            }
            _ => None,
        }
    });
    rank_cd(&Joined::new(vectors), &ranking.query)
}

/// `references`, else `in-reply-to`, of a message's headers.
fn references(headers: &Json) -> Vec<String> {
    let mut found: HashMap<&str, Vec<String>> = HashMap::new();
    let (mut depth, mut key) = (0, "");
    for event in headers.events() {
        match event {
            JsonEvent::BeginObject | JsonEvent::BeginArray => depth += 1,
            JsonEvent::EndObject | JsonEvent::EndArray => depth -= 1,
            JsonEvent::Key(name) if depth == 1 => key = name,
            JsonEvent::String(id) if matches!(key, "references" | "in-reply-to") => {
                let ids = found.entry(key).or_default();
                if ids.len() < REFERENCES_MAX {
                    ids.push(id.to_owned());
                }
            }
            _ => {}
        }
    }
    let list = found.remove("references").filter(|ids| !ids.is_empty());
    list.or_else(|| found.remove("in-reply-to")).unwrap_or_default()
}

fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Null => Value::Null,
        Value::Json(json) => Value::Json(json),
        Value::Lexemes(lexemes) => Value::Lexemes(lexemes),
        Value::Texts(texts) => Value::Texts(texts),
        Value::Integers(integers) => Value::Integers(integers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tids_are_read_with_and_without_parentheses() {
        assert_eq!(parse_tid("(3,7)"), Some(Tid::new(3, 7)));
        assert_eq!(parse_tid("3, 7"), Some(Tid::new(3, 7)));
        for id in ["<a,b@c>", "3", "(3,7", "3,99999", ""] {
            assert_eq!(parse_tid(id), None, "{id}");
        }
    }

    #[test]
    fn references_come_before_in_reply_to() {
        let read =
            |text: &str| references(&crate::opclass::jsonb::parse(text).unwrap());
        let both = r#"{"in-reply-to":["<c>"],"references":["<a>","<b>"],"x":"<d>"}"#;
        assert_eq!(read(both), ["<a>", "<b>"]);
        assert_eq!(read(r#"{"in-reply-to":["<c>"]}"#), ["<c>"]);
        assert!(read(r#"{"x":{"references":"<e>"}}"#).is_empty());
    }

    #[test]
    fn fields_join_into_one_text() {
        let vector = |text| TsVector::parse(text).unwrap();
        let joined = Joined::new(
            [(vector("cat:1 x:3"), true), (vector("cat:2"), false)].into_iter(),
        );
        let mut seen = Vec::new();
        joined.find("cat", false, &mut |_, words| {
            seen.extend_from_slice(words);
            true
        });
        assert_eq!(seen, [position_word(1, 3), position_word(5, 0)]);
    }
}
