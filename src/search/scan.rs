//! Evaluates a tree of keys over one index column: which documents can match.
//!
//! Documents are sets of packed TIDs in roaring bitmaps. Everything is evaluated *within*
//! the documents that are still candidates, if these are known: the parts of an AND are
//! taken rarest first, each within what the ones before left over, and a key much more
//! frequent than there are candidates is not read but searched for each of them
//! ([`KeyStream::seek`] skips whole pages of a posting tree). A prefix unites the streams
//! of its keys.
//!
//! A tree may say *maybe*, so it is asked in one of two ways (`Want`): for all
//! documents that may match, or for those that certainly do.

use roaring::RoaringTreemap;

use crate::error::Result;
use crate::gin::{Category, Index, Postings};
use crate::opclass::{KeyExpr, KeyQuery, SearchMode};
use crate::tid::Tid;

/// A set of documents: packed TIDs.
pub type TidSet = RoaringTreemap;

/// From so many TIDs per candidate on, candidates are searched and TIDs not read: a
/// search decodes a segment of some hundred TIDs.
const SEEK_FROM: u64 = 256;

/// The TIDs of one key, ascending.
pub trait KeyStream {
    /// About how many there are.
    fn estimate(&self) -> u64;

    /// Replaces `out` by the next ones; `false`, with `out` empty, at the end.
    fn next_block(&mut self, out: &mut Vec<u64>) -> Result<bool>;

    /// Moves forward to the first one not below `tid` and returns it; `tid` ascends from
    /// call to call.
    fn seek(&mut self, tid: u64) -> Result<Option<u64>>;
}

/// The keys of one index column.
pub trait KeySource {
    /// The TIDs of a key; the key is empty for the other categories.
    fn open(
        &self,
        category: Category,
        key: &[u8],
    ) -> Result<Option<Box<dyn KeyStream + '_>>>;

    /// Calls `each` with the TIDs of every key that starts with `prefix`.
    fn prefix(
        &self,
        prefix: &[u8],
        each: &mut dyn FnMut(&mut dyn KeyStream) -> Result<()>,
    ) -> Result<()>;
}

/// What an evaluation read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanStats {
    /// Keys looked up.
    pub keys: u64,
    /// Entries of the index whose TIDs were read.
    pub entries: u64,
    /// TIDs decoded from posting lists and trees.
    pub tids: u64,
    /// Candidates searched for in a posting tree instead.
    pub seeks: u64,
}

/// What a tree is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Want {
    /// All documents that may match.
    Possible,
    /// Documents that certainly match.
    Certain,
}

impl Want {
    /// What is asked below a NOT.
    fn denied(self) -> Want {
        match self {
            Want::Possible => Want::Certain,
            Want::Certain => Want::Possible,
        }
    }
}

/// One evaluation over one column.
pub struct Scan<'a> {
    source: &'a dyn KeySource,
    /// The documents whose column is not null.
    not_null: &'a dyn Fn() -> Result<TidSet>,
    stats: ScanStats,
    block: Vec<u64>,
}

impl<'a> Scan<'a> {
    /// An evaluation; `not_null` gives all documents whose column is not null, and is
    /// called only where a part cannot do without.
    pub fn new(
        source: &'a dyn KeySource,
        not_null: &'a dyn Fn() -> Result<TidSet>,
    ) -> Scan<'a> {
        Scan { source, not_null, stats: ScanStats::default(), block: Vec::new() }
    }

    /// What has been read so far.
    pub fn stats(&self) -> ScanStats {
        self.stats
    }

    /// About how many documents may match a query; cheap.
    pub fn estimate(&mut self, query: &KeyQuery, documents: u64) -> Result<u64> {
        let estimate = self.estimate_expr(&query.expr, documents)?;
        Ok(match query.mode {
            SearchMode::IncludeEmpty => estimate.saturating_add(
                self.source
                    .open(Category::EmptyItem, &[])?
                    .map_or(0, |stream| stream.estimate()),
            ),
            SearchMode::Default | SearchMode::All => estimate,
        }
        .min(documents))
    }

    fn estimate_expr(&mut self, expr: &KeyExpr, documents: u64) -> Result<u64> {
        Ok(match expr {
            KeyExpr::Key(key) => self.estimate_key(Category::Key, key)?,
            KeyExpr::NullKey => self.estimate_key(Category::NullKey, &[])?,
            KeyExpr::And(parts) => {
                let mut least = documents;
                for part in parts {
                    least = least.min(self.estimate_expr(part, documents)?);
                    if least == 0 {
                        break;
                    }
                }
                least
            }
            KeyExpr::Or(parts) | KeyExpr::AtLeast(_, parts) => {
                let mut sum = 0_u64;
                for part in parts {
                    sum = sum.saturating_add(self.estimate_expr(part, documents)?);
                    if sum >= documents {
                        break;
                    }
                }
                sum.min(documents)
            }
            // Known only when read; to be taken late.
            KeyExpr::Prefix(_) => documents / 2,
            KeyExpr::Not(_) | KeyExpr::Maybe => documents,
        })
    }

    fn estimate_key(&self, category: Category, key: &[u8]) -> Result<u64> {
        let stream = self.source.open(category, key)?;
        Ok(stream.map_or(0, |stream| stream.estimate()))
    }

    /// The documents that may match a query.
    pub fn possible(
        &mut self,
        query: &KeyQuery,
        within: Option<&TidSet>,
    ) -> Result<TidSet> {
        let mut found = self.expr(&query.expr, within, Want::Possible)?;
        if query.mode == SearchMode::IncludeEmpty {
            found |= self.key(Category::EmptyItem, &[], within)?;
        }
        Ok(found)
    }

    /// The documents that certainly match a tree.
    pub fn certain(
        &mut self,
        expr: &KeyExpr,
        within: Option<&TidSet>,
    ) -> Result<TidSet> {
        self.expr(expr, within, Want::Certain)
    }

    /// The documents of a category without key (null and empty items).
    pub fn category(
        &mut self,
        category: Category,
        within: Option<&TidSet>,
    ) -> Result<TidSet> {
        self.key(category, &[], within)
    }

    /// All documents there are to begin with.
    fn all(&self, within: Option<&TidSet>) -> Result<TidSet> {
        match within {
            // What is null in this column has no key, but has no place in a NOT either.
            Some(within) => Ok(within & (self.not_null)()?),
            None => (self.not_null)(),
        }
    }

    fn expr(
        &mut self,
        expr: &KeyExpr,
        within: Option<&TidSet>,
        want: Want,
    ) -> Result<TidSet> {
        if within.is_some_and(TidSet::is_empty) {
            return Ok(TidSet::new());
        }
        match expr {
            KeyExpr::Key(key) => self.key(Category::Key, key, within),
            KeyExpr::NullKey => self.key(Category::NullKey, &[], within),
            KeyExpr::Prefix(prefix) => self.prefix(prefix, within),
            KeyExpr::And(parts) => self.and(parts, within, want),
            KeyExpr::Or(parts) => {
                let mut found = TidSet::new();
                for part in parts {
                    found |= self.expr(part, within, want)?;
                }
                Ok(found)
            }
            KeyExpr::Not(part) => {
                let all = self.all(within)?;
                let part = self.expr(part, Some(&all), want.denied())?;
                Ok(all - part)
            }
            KeyExpr::AtLeast(least, parts) => {
                self.at_least(*least as usize, parts, within, want)
            }
            KeyExpr::Maybe => match want {
                Want::Possible => self.all(within),
                Want::Certain => Ok(TidSet::new()),
            },
        }
    }

    /// The parts' indexes, rarest first.
    fn rarest_first(&mut self, parts: &[KeyExpr]) -> Result<Vec<usize>> {
        let mut order = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            order.push((self.estimate_expr(part, u64::MAX)?, at));
        }
        order.sort_unstable();
        Ok(order.into_iter().map(|(_, at)| at).collect())
    }

    fn and(
        &mut self,
        parts: &[KeyExpr],
        within: Option<&TidSet>,
        want: Want,
    ) -> Result<TidSet> {
        let mut found: Option<TidSet> = None;
        for at in self.rarest_first(parts)? {
            let left = self.expr(&parts[at], found.as_ref().or(within), want)?;
            let done = left.is_empty();
            found = Some(left);
            if done {
                break;
            }
        }
        match found {
            Some(found) => Ok(found),
            None => self.all(within),
        }
    }

    /// Documents in at least `least` of the parts. One that is must be in one of the
    /// `parts - least + 1` rarest parts, so only those are read in full.
    fn at_least(
        &mut self,
        least: usize,
        parts: &[KeyExpr],
        within: Option<&TidSet>,
        want: Want,
    ) -> Result<TidSet> {
        if least == 0 {
            return self.all(within);
        }
        if least > parts.len() {
            return Ok(TidSet::new());
        }
        let order = self.rarest_first(parts)?;
        let (first, rest) = order.split_at(parts.len() - least + 1);
        let mut sets = Vec::with_capacity(parts.len());
        let mut candidates = TidSet::new();
        for &at in first {
            let set = self.expr(&parts[at], within, want)?;
            candidates |= &set;
            sets.push(set);
        }
        for &at in rest {
            sets.push(self.expr(&parts[at], Some(&candidates), want)?);
        }
        let mut counts: Vec<(u64, usize)> =
            candidates.iter().map(|tid| (tid, 0)).collect();
        for set in &sets {
            let mut at = 0;
            for tid in set {
                at += counts[at..].partition_point(|(known, _)| *known < tid);
                counts[at].1 += 1;
            }
        }
        let enough = counts.iter().filter(|(_, count)| *count >= least);
        Ok(enough.map(|(tid, _)| *tid).collect())
    }

    fn key(
        &mut self,
        category: Category,
        key: &[u8],
        within: Option<&TidSet>,
    ) -> Result<TidSet> {
        self.stats.keys += 1;
        let source = self.source;
        match source.open(category, key)? {
            Some(mut stream) => {
                read(&mut *stream, within, &mut self.stats, &mut self.block)
            }
            None => Ok(TidSet::new()),
        }
    }

    fn prefix(&mut self, prefix: &[u8], within: Option<&TidSet>) -> Result<TidSet> {
        self.stats.keys += 1;
        let mut found = TidSet::new();
        let (stats, block) = (&mut self.stats, &mut self.block);
        self.source.prefix(prefix, &mut |stream| {
            found |= read(stream, within, stats, block)?;
            Ok(())
        })?;
        Ok(found)
    }
}

/// A stream's TIDs, or those of them that are candidates.
fn read(
    stream: &mut dyn KeyStream,
    within: Option<&TidSet>,
    stats: &mut ScanStats,
    block: &mut Vec<u64>,
) -> Result<TidSet> {
    stats.entries += 1;
    let mut found = TidSet::new();
    if let Some(within) = within
        && stream.estimate() / SEEK_FROM > within.len()
    {
        // Where the stream stands; candidates below it are not in it.
        let mut at = 0;
        for tid in within {
            if tid < at {
                continue;
            }
            stats.seeks += 1;
            match stream.seek(tid)? {
                Some(next) => {
                    at = next;
                    if next == tid {
                        found.insert(tid);
                    }
                }
                None => break,
            }
        }
        return Ok(found);
    }
    while stream.next_block(block)? {
        stats.tids += block.len() as u64;
        // Ascending, which `append` demands; a damaged list need not be.
        for &tid in &*block {
            found.insert(tid);
        }
    }
    if let Some(within) = within {
        found &= within;
    }
    Ok(found)
}

/// A column of an index file.
#[derive(Clone, Copy, Debug)]
pub struct IndexColumn<'a> {
    /// The file.
    pub index: &'a Index,
    /// Its column, from 0.
    pub column: u8,
}

impl KeySource for IndexColumn<'_> {
    fn open(
        &self,
        category: Category,
        key: &[u8],
    ) -> Result<Option<Box<dyn KeyStream + '_>>> {
        let postings = self.index.posting(self.column, category, key)?;
        Ok(postings.map(|postings| Box::new(postings) as Box<dyn KeyStream>))
    }

    fn prefix(
        &self,
        prefix: &[u8],
        each: &mut dyn FnMut(&mut dyn KeyStream) -> Result<()>,
    ) -> Result<()> {
        let mut entries = self.index.prefix(self.column, prefix)?;
        while let Some(mut entry) = entries.next()? {
            each(&mut entry.postings)?;
        }
        Ok(())
    }
}

impl KeyStream for Postings<'_> {
    fn estimate(&self) -> u64 {
        Postings::estimate(self)
    }

    fn next_block(&mut self, out: &mut Vec<u64>) -> Result<bool> {
        Postings::next_block(self, out)
    }

    fn seek(&mut self, tid: u64) -> Result<Option<u64>> {
        Postings::seek(self, Tid::unpack(tid))?;
        Ok(Postings::next(self)?.map(Tid::pack))
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
