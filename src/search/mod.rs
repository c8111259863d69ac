//! Search: finds documents of an archive by index, reads what the indexes cannot decide,
//! and shows what was found.
//!
//! ```text
//! QUERY    ── plain ────┐
//! --where  ── grammar ──┴─▶ bind ──▶ plan ──(scan)──▶ what may match, what certainly does
//!                                      │
//!                       recheck ◀──────┘ originals: the difference is read and tested
//!                          │
//!                          └─▶ order, limit ──▶ hits: snippet, rank
//! ```
//!
//! **Answers are exact**: an index only narrows down. A document is returned if, and only
//! if, the whole expression is true for it as PostgreSQL would evaluate it on the row.
//! A limit stops early: documents are tested in the order asked for, and no more of them
//! than it takes.

mod array_text;
mod bind;
mod dates;
pub mod grammar;
mod hits;
mod originals;
mod plain;
mod plan;
pub mod rank;
mod recheck;
pub mod scan;
mod snippet;
mod threads;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use rayon::prelude::*;

use crate::catalog::{
    Catalog, DocumentEntry, Documents, IndexDefinition, ResolvedIndex, index_file,
};
use crate::error::{Error, Result};
use crate::gin::Index;
use crate::tid::Tid;
use bind::Schema;
use grammar::Source;
use originals::{Buffer, Originals};
use plan::{Archive, Sets};
use recheck::{Candidate, Node};
use scan::{IndexColumn, KeySource, TidSet};
use snippet::Highlighter;

pub use hits::{Hit, Message};
pub use plan::PlanNode;
pub use snippet::Snippet;
pub use threads::{ThreadLine, ThreadMember, threads};

/// Documents tested before the limit is looked at again, at first; then twice as many
/// each time.
const BATCH_FIRST: usize = 64;
/// The most documents of such a batch.
const BATCH_MAX: usize = 16_384;

/// The order of hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// As in the archive.
    #[default]
    Archive,
    /// Oldest first; undated ones last.
    Date,
    /// Newest first; undated ones last.
    DateDescending,
    /// Best match first: `ts_rank_cd` over the words asked for.
    Rank,
}

impl Sort {
    /// As `--sort` names them.
    pub const NAMES: [(&'static str, Sort); 4] = [
        ("archive", Sort::Archive),
        ("date", Sort::Date),
        ("-date", Sort::DateDescending),
        ("rank", Sort::Rank),
    ];
}

/// Which hits are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SearchOptions {
    /// In this order.
    pub sort: Sort,
    /// At most so many; `None`: all.
    pub limit: Option<usize>,
    /// Without the first so many.
    pub offset: usize,
    /// Only how many there are: no hits are made.
    pub count_only: bool,
    /// Only TIDs and places: hits have no texts.
    pub ids_only: bool,
}

/// A query that suits an archive; see [`Searcher::query`].
#[derive(Debug)]
pub struct Query {
    node: Node,
    rankings: Vec<plain::Ranking>,
    /// What the user should know: a query of stop words only.
    notes: Vec<String>,
}

impl Query {
    /// What the user should know about it; empty as a rule.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// In the order asked for, from the offset up to the limit.
    pub hits: Vec<Hit>,
    /// How many documents match in all; `None` when the limit stopped the search before
    /// that was known.
    pub total: Option<u64>,
    /// What was done, with figures.
    pub plan: PlanNode,
}

/// An archive open for searching; shared by threads.
pub struct Searcher {
    dir: PathBuf,
    catalog: Catalog,
    schema: Schema,
    indexes: Vec<Index>,
    documents: Documents,
    originals: Originals,
    all: OnceLock<TidSet>,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Searcher").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Searcher {
    /// Opens an archive directory. Index files are mapped, nothing is read in full.
    ///
    /// ```no_run
    /// use ginmill::search::{SearchOptions, Searcher};
    ///
    /// let archive = Searcher::open("mail.gin".as_ref())?;
    /// let query = archive.query(Some("budget from:ann"), None)?;
    /// for hit in archive.search(&query, &SearchOptions::default())?.hits {
    ///     println!("{} {}", hit.tid, hit.subject.unwrap_or_default().text);
    /// }
    /// # Ok::<(), ginmill::Error>(())
    /// ```
    pub fn open(dir: &Path) -> Result<Searcher> {
        let catalog = Catalog::open(dir)?;
        let fields = catalog.fields()?;
        let definitions = catalog.definitions()?;
        let resolve = |definition: &IndexDefinition| definition.resolve(&fields);
        let resolved: Vec<ResolvedIndex> =
            definitions.iter().map(resolve).collect::<Result<_>>()?;
        let mut indexes = Vec::with_capacity(definitions.len());
        for (definition, entry) in definitions.iter().zip(&catalog.indexes) {
            let key_types = catalog.key_types(entry)?;
            let path = dir.join(index_file(&definition.name));
            indexes.push(Index::open(&path, Some(&key_types))?);
        }
        Ok(Searcher {
            dir: dir.to_path_buf(),
            documents: Documents::open(dir)?,
            originals: Originals::new(&catalog),
            schema: Schema { fields, indexes: resolved },
            catalog,
            indexes,
            all: OnceLock::new(),
        })
    }

    /// What the archive was made of.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Where documents lie.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Reads a query: a plain one, a `--where` expression, or both, which must then both
    /// be fulfilled; with neither, every document is found.
    pub fn query(&self, plain: Option<&str>, filter: Option<&str>) -> Result<Query> {
        let mut query =
            Query { node: Node::And(vec![]), rankings: vec![], notes: vec![] };
        let mut parts = Vec::new();
        if let Some(text) = plain {
            let plain = plain::parse(&self.schema, text)?;
            if plain.only_stop_words {
                query.notes.push(
                    "the query contains only stop words, which are not indexed"
                        .to_owned(),
                );
            }
            query.rankings = plain.rankings;
            parts.push(plain.node);
        }
        if let Some(text) = filter {
            let expr = grammar::parse(text)?;
            parts.push(bind::bind(&self.schema, Source(text), &expr)?);
        }
        query.node = match parts.len() {
            1 => parts.remove(0),
            _ => Node::And(parts),
        };
        if query.rankings.is_empty() {
            query.rankings = hits::rankings(&query.node);
        }
        Ok(query)
    }

    /// Finds the documents for which a query is true.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<Answer> {
        let start = Instant::now();
        let (sets, plan) = match &query.node {
            // Nothing is asked: all documents, without any test.
            Node::And(parts) if parts.is_empty() => {
                let all = self.all()?.clone();
                let sets = Sets { certain: all.clone(), possible: all };
                (sets, PlanNode::named("All Documents"))
            }
            node => plan::evaluate(self, node)?,
        };
        let mut top = PlanNode::named("Document Scan");
        top.children.push(plan);
        let found = self.test(query, options, &sets, &mut top)?;
        let end = options.limit.map_or(found.tids.len(), |limit| {
            options.offset.saturating_add(limit).min(found.tids.len())
        });
        let page = found.tids.get(options.offset..end).unwrap_or_default();
        let hits = if options.count_only {
            Vec::new()
        } else {
            let highlighter = Highlighter::new(&query.node);
            self.make_hits(page, &highlighter, options.ids_only)?
        };
        top.documents = found.tids.len() as u64;
        top.certain = top.documents;
        top.seconds = start.elapsed().as_secs_f64();
        let total = found.complete.then_some(top.documents);
        Ok(Answer { hits, total, plan: top })
    }

    /// Tests what is not certain, in the order asked for, until the limit is reached.
    fn test(
        &self,
        query: &Query,
        options: &SearchOptions,
        sets: &Sets,
        plan: &mut PlanNode,
    ) -> Result<Found> {
        let enough = match options.limit {
            Some(limit) if !options.count_only && options.sort != Sort::Rank => {
                options.offset.saturating_add(limit)
            }
            _ => usize::MAX,
        };
        let candidates = match options.sort {
            _ if options.count_only => sets.possible.iter().collect(),
            Sort::Archive | Sort::Rank => sets.possible.iter().collect(),
            Sort::Date => self.by_date(&sets.possible, false)?,
            Sort::DateDescending => self.by_date(&sets.possible, true)?,
        };
        let mut wanted = vec![false; self.schema.fields.len()];
        query.node.mark_wanted(&mut wanted);
        let mut tids: Vec<(u64, f32)> = Vec::new();
        let (mut at, mut batch) = (0, BATCH_FIRST);
        if enough == usize::MAX {
            batch = BATCH_MAX;
        }
        while at < candidates.len() && tids.len() < enough {
            let end = (at + batch).min(candidates.len());
            let tested: Vec<Option<bool>> = candidates[at..end]
                .par_iter()
                .map_init(Buffer::default, |buffer, &tid| {
                    if sets.certain.contains(tid) {
                        return Ok(None);
                    }
                    self.is_true(&query.node, tid, &wanted, buffer).map(Some)
                })
                .collect::<Result<_>>()?;
            for (&tid, truth) in candidates[at..end].iter().zip(tested) {
                plan.rechecked += u64::from(truth.is_some());
                plan.removed += u64::from(truth == Some(false));
                if truth != Some(false) {
                    tids.push((tid, 0.0));
                }
            }
            at = end;
            batch = (batch * 2).min(BATCH_MAX);
        }
        if options.sort == Sort::Rank && !options.count_only {
            self.rank(&query.rankings, &mut tids)?;
        }
        Ok(Found { complete: at == candidates.len(), tids })
    }

    /// Whether an expression is true for a document.
    fn is_true(
        &self,
        node: &Node,
        tid: u64,
        wanted: &[bool],
        buffer: &mut Buffer,
    ) -> Result<bool> {
        let entry = self.entry(Tid::unpack(tid))?;
        self.originals.with_document(&entry, wanted, buffer, |document| {
            Candidate::new(document).truth(node) == Some(true)
        })
    }

    /// Where a document lies that an index names.
    fn entry(&self, tid: Tid) -> Result<DocumentEntry> {
        self.documents.get(tid)?.ok_or_else(|| {
            Error::corrupt(
                &self.dir,
                format!("document {tid}"),
                "an entry of the documents file for every TID of an index",
                "none; run ginmill check",
            )
        })
    }

    /// Documents by date; those without one last, equal ones in archive order.
    fn by_date(&self, set: &TidSet, descending: bool) -> Result<Vec<u64>> {
        let mut dated: Vec<(bool, i64, u64)> = Vec::new();
        self.each_entry(Some(set), &mut |tid, entry| {
            let date = entry.date.unwrap_or(0);
            let key = if descending { !date } else { date };
            dated.push((entry.date.is_none(), key, tid.pack()));
        })?;
        dated.par_sort_unstable();
        Ok(dated.into_iter().map(|(_, _, tid)| tid).collect())
    }

    /// Calls `each` with the entries of a set of documents, or of all.
    fn each_entry(
        &self,
        set: Option<&TidSet>,
        each: &mut dyn FnMut(Tid, &DocumentEntry),
    ) -> Result<()> {
        let Some(set) = set else {
            for entry in self.documents.iter() {
                let (tid, entry) = entry?;
                each(tid, &entry);
            }
            return Ok(());
        };
        let mut block: (Option<u32>, Vec<(Tid, DocumentEntry)>) = (None, Vec::new());
        for tid in set {
            let tid = Tid::unpack(tid);
            if block.0 != Some(tid.block) {
                block = (Some(tid.block), self.documents.block(tid.block)?);
            }
            let found = block.1.binary_search_by_key(&tid, |(tid, _)| *tid);
            match found {
                Ok(at) => each(tid, &block.1[at].1),
                // Says what is wrong.
                Err(_) => drop(self.entry(tid)?),
            }
        }
        Ok(())
    }
}

/// Documents that match.
struct Found {
    /// In the order asked for, with their rank if that is it.
    tids: Vec<(u64, f32)>,
    /// These are all.
    complete: bool,
}

impl Archive for Searcher {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn column(&self, index: usize, column: u8) -> Box<dyn KeySource + '_> {
        Box::new(IndexColumn { index: &self.indexes[index], column })
    }

    fn documents(&self) -> u64 {
        self.documents.len()
    }

    fn all(&self) -> Result<&TidSet> {
        if let Some(all) = self.all.get() {
            return Ok(all);
        }
        let mut all = TidSet::new();
        self.each_entry(None, &mut |tid, _| {
            all.insert(tid.pack());
        })?;
        Ok(self.all.get_or_init(|| all))
    }

    fn dated(
        &self,
        within: Option<&TidSet>,
        passes: &dyn Fn(Option<i64>) -> bool,
    ) -> Result<TidSet> {
        let mut found = TidSet::new();
        self.each_entry(within, &mut |tid, entry| {
            if passes(entry.date) {
                found.insert(tid.pack());
            }
        })?;
        Ok(found)
    }
}
