//! Which documents can fulfil an expression, by the indexes alone.
//!
//! Every node gets two sets ([`Sets`]): documents that *may* fulfil it and, among them,
//! those that *certainly* do; only the difference has to be read. The parts of an AND are
//! taken rarest first, each within what the ones before left over. A condition that no
//! index helps with leaves its candidates as they are: with nothing else to narrow them
//! down, that is a scan of all documents, and the plan says so.
//!
//! A denied condition is fulfilled by documents that have the field and do not fulfil
//! the condition itself, so its sets are the complements among those: what certainly
//! fulfils the condition is certainly out.
//!
//! [`PlanNode`] is what `--explain` prints, with the figures of this evaluation.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use super::bind::{Choice, Schema};
use super::recheck::{Leaf, Node, Test, nanoseconds};
use super::scan::{KeySource, Scan, ScanStats, TidSet};
use crate::error::Result;
use crate::gin::Category;
use crate::opclass::{KeyExpr, SearchMode};

/// What the planner asks of an archive.
pub(super) trait Archive {
    /// What names and numbers mean.
    fn schema(&self) -> &Schema;

    /// A column of an index.
    fn column(&self, index: usize, column: u8) -> Box<dyn KeySource + '_>;

    /// Number of documents.
    fn documents(&self) -> u64;

    /// All documents.
    fn all(&self) -> Result<&TidSet>;

    /// The documents, of `within` if given, whose date passes.
    fn dated(
        &self,
        within: Option<&TidSet>,
        passes: &dyn Fn(Option<i64>) -> bool,
    ) -> Result<TidSet>;
}

/// What may match and what certainly does.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    /// Part of `possible`.
    pub certain: TidSet,
    pub possible: TidSet,
}

impl Sets {
    fn exact(set: TidSet) -> Sets {
        Sets { certain: set.clone(), possible: set }
    }

    fn undecided(possible: TidSet) -> Sets {
        Sets { certain: TidSet::new(), possible }
    }
}

/// A node of the plan, with what really happened.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PlanNode {
    /// Kind of node, as PostgreSQL would name it.
    pub node: String,
    /// The condition, for leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The index asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Keys looked up.
    pub keys: u64,
    /// Entries of the index whose TIDs were read.
    pub entries: u64,
    /// TIDs read from posting lists and trees.
    pub tids: u64,
    /// Candidates searched for in posting trees.
    pub seeks: u64,
    /// Documents that come out.
    pub documents: u64,
    /// Those of them that need no look at the document.
    pub certain: u64,
    /// Documents read and tested.
    pub rechecked: u64,
    /// Documents that the test removed.
    pub removed: u64,
    /// Wall clock of this node with its children.
    pub seconds: f64,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What it is made of, in the order in which it was evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PlanNode>,
}

/// Evaluates an expression by the indexes.
pub(super) fn evaluate(archive: &dyn Archive, node: &Node) -> Result<(Sets, PlanNode)> {
    Planner { archive }.node(node, None)
}

struct Planner<'a> {
    archive: &'a dyn Archive,
}

impl Planner<'_> {
    fn node(&self, node: &Node, within: Option<&TidSet>) -> Result<(Sets, PlanNode)> {
        let start = Instant::now();
        let (sets, mut plan) = match node {
            Node::And(parts) => self.and(parts, within)?,
            Node::Or(parts) => self.or(parts, within)?,
            Node::Leaf(leaf) => self.leaf(leaf, within)?,
        };
        plan.documents = sets.possible.len();
        plan.certain = sets.certain.len();
        plan.seconds = start.elapsed().as_secs_f64();
        Ok((sets, plan))
    }

    fn and(&self, parts: &[Node], within: Option<&TidSet>) -> Result<(Sets, PlanNode)> {
        let mut order = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            order.push((self.estimate(part)?, at));
        }
        order.sort_unstable();
        let mut plan = PlanNode::named("BitmapAnd");
        let mut found: Option<Sets> = None;
        for (_, at) in order {
            let left = found.as_ref().map(|sets| &sets.possible).or(within);
            if left.is_some_and(TidSet::is_empty) {
                plan.notes.push("the rest is not asked: nothing is left".to_owned());
                break;
            }
            let (sets, child) = self.node(&parts[at], left)?;
            plan.children.push(child);
            found = Some(match found {
                None => sets,
                Some(before) => Sets {
                    certain: before.certain & sets.certain,
                    possible: sets.possible,
                },
            });
        }
        Ok((found.unwrap_or_default(), plan))
    }

    fn or(&self, parts: &[Node], within: Option<&TidSet>) -> Result<(Sets, PlanNode)> {
        let mut plan = PlanNode::named("BitmapOr");
        let mut found = Sets::default();
        for part in parts {
            let (sets, child) = self.node(part, within)?;
            plan.children.push(child);
            found.certain |= sets.certain;
            found.possible |= sets.possible;
        }
        Ok((found, plan))
    }

    fn leaf(&self, leaf: &Leaf, within: Option<&TidSet>) -> Result<(Sets, PlanNode)> {
        match &leaf.test {
            Test::Unknown => {
                let mut plan = PlanNode::of("Result", leaf);
                plan.notes.push("never true: compared with NULL".to_owned());
                Ok((Sets::default(), plan))
            }
            Test::Date { comparison, value } => {
                let passes = |date: Option<i64>| {
                    date.is_some_and(|date| {
                        comparison.holds(nanoseconds(date).cmp(value)) != leaf.denied
                    })
                };
                let found = self.archive.dated(within, &passes)?;
                Ok((Sets::exact(found), PlanNode::of("Documents Scan", leaf)))
            }
            Test::Null { field: None } => {
                let passes = |date: Option<i64>| date.is_none() != leaf.denied;
                let found = self.archive.dated(within, &passes)?;
                Ok((Sets::exact(found), PlanNode::of("Documents Scan", leaf)))
            }
            Test::Null { field: Some(field) } => self.null(*field, leaf, within),
            test => match self.choose(leaf)? {
                Some((_, choice)) => self.by_index(leaf, choice, within),
                None => self.by_scan(leaf, test.field(), within),
            },
        }
    }

    /// The index that promises the fewest documents; none where all promise nothing.
    fn choose<'l>(&self, leaf: &'l Leaf) -> Result<Option<(u64, &'l Choice)>> {
        let mut best: Option<(u64, &Choice)> = None;
        for choice in &leaf.choices {
            if choice.query.expr == KeyExpr::Maybe {
                continue;
            }
            let source = self.archive.column(choice.index, choice.column);
            let all = || self.archive.all().cloned();
            let mut scan = Scan::new(&*source, &all);
            let estimate = scan.estimate(&choice.query, self.archive.documents())?;
            if best.is_none_or(|(least, _)| estimate < least) {
                best = Some((estimate, choice));
            }
        }
        Ok(best)
    }

    /// About how many documents fulfil a node; what needs a scan comes last.
    fn estimate(&self, node: &Node) -> Result<u64> {
        let documents = self.archive.documents();
        Ok(match node {
            Node::And(parts) => {
                let mut least = u64::MAX;
                for part in parts {
                    least = least.min(self.estimate(part)?);
                }
                least
            }
            Node::Or(parts) => {
                let mut sum = 0_u64;
                for part in parts {
                    sum = sum.saturating_add(self.estimate(part)?);
                }
                sum
            }
            Node::Leaf(leaf) => match &leaf.test {
                Test::Unknown => 0,
                Test::Date { .. } | Test::Null { field: None } => documents / 2,
                Test::Null { field: Some(_) } => documents,
                _ if leaf.denied => documents,
                _ => match self.choose(leaf)? {
                    Some((estimate, _)) => estimate,
                    None => u64::MAX / 2,
                },
            },
        })
    }

    /// The documents that have a field, as far as an index knows; without one, all.
    fn having(&self, field: usize, within: Option<&TidSet>) -> Result<TidSet> {
        let all = match within {
            Some(within) => within.clone(),
            None => self.archive.all()?.clone(),
        };
        Ok(match self.nulls(field, Some(&all))? {
            Some((nulls, _)) => all - nulls,
            None => all,
        })
    }

    /// The documents that lack a field, with the index that says so.
    fn nulls(
        &self,
        field: usize,
        within: Option<&TidSet>,
    ) -> Result<Option<(TidSet, usize)>> {
        let Some((index, column)) = self.archive.schema().columns_of(field).next()
        else {
            return Ok(None);
        };
        let source = self.archive.column(index, column);
        let all = || self.archive.all().cloned();
        let mut scan = Scan::new(&*source, &all);
        Ok(Some((scan.category(Category::NullItem, within)?, index)))
    }

    fn null(
        &self,
        field: usize,
        leaf: &Leaf,
        within: Option<&TidSet>,
    ) -> Result<(Sets, PlanNode)> {
        let Some((nulls, index)) = self.nulls(field, within)? else {
            return self.by_scan(leaf, None, within);
        };
        let mut plan = PlanNode::of("Bitmap Index Scan", leaf);
        plan.index = Some(self.archive.schema().indexes[index].name.clone());
        if !leaf.denied {
            return Ok((Sets::exact(nulls), plan));
        }
        let all = match within {
            Some(within) => within.clone(),
            None => self.archive.all()?.clone(),
        };
        Ok((Sets::exact(all - nulls), plan))
    }

    fn by_scan(
        &self,
        leaf: &Leaf,
        field: Option<usize>,
        within: Option<&TidSet>,
    ) -> Result<(Sets, PlanNode)> {
        let mut plan = PlanNode::of("Seq Scan", leaf);
        let reason = if leaf.choices.is_empty() {
            "no index supports this condition"
        } else {
            "the pattern says too little for the index"
        };
        plan.notes.push(format!("scans its candidates: {reason}"));
        let possible = match (field, within) {
            (Some(field), within) => self.having(field, within)?,
            (None, Some(within)) => within.clone(),
            (None, None) => self.archive.all()?.clone(),
        };
        Ok((Sets::undecided(possible), plan))
    }

    fn by_index(
        &self,
        leaf: &Leaf,
        choice: &Choice,
        within: Option<&TidSet>,
    ) -> Result<(Sets, PlanNode)> {
        let index = &self.archive.schema().indexes[choice.index];
        let field = index.columns[usize::from(choice.column)].field;
        let mut plan = PlanNode::of("Bitmap Index Scan", leaf);
        plan.index = Some(index.name.clone());
        if choice.query.mode != SearchMode::Default {
            plan.notes.push(
                "items without any of the keys may match: all are candidates"
                    .to_owned(),
            );
        }
        let source = self.archive.column(choice.index, choice.column);
        let not_null = || self.having(field, None);
        let mut scan = Scan::new(&*source, &not_null);
        // Denied, everything is within the documents that have the field.
        let having = match leaf.denied {
            true => Some(self.having(field, within)?),
            false => None,
        };
        let within = having.as_ref().or(within);
        let possible = scan.possible(&choice.query, within)?;
        let certain = match &leaf.test {
            _ if !choice.query.recheck => possible.clone(),
            Test::Search { query, .. } => {
                scan.certain(&query.certain_keys(), Some(&possible))?
            }
            _ => TidSet::new(),
        };
        plan.add(scan.stats());
        let sets = match having {
            None => Sets { certain, possible },
            Some(having) => Sets {
                // A jsonpath may be unknown where the index says no.
                certain: match leaf.test {
                    Test::JsonPath { .. } => TidSet::new(),
                    _ => &having - &possible,
                },
                possible: having - certain,
            },
        };
        Ok((sets, plan))
    }
}

impl Test {
    /// The field that must not be null.
    fn field(&self) -> Option<usize> {
        match self {
            Test::Search { field, .. }
            | Test::Like { field, .. }
            | Test::Regex { field, .. }
            | Test::Text { field, .. }
            | Test::Similar { field, .. }
            | Test::JsonContains { field, .. }
            | Test::JsonKeys { field, .. }
            | Test::JsonPath { field, .. }
            | Test::Texts { field, .. }
            | Test::Integers { field, .. } => Some(*field),
            Test::Null { .. } | Test::Date { .. } | Test::Unknown => None,
        }
    }
}

impl Node {
    /// Marks the fields that a test of the node reads.
    pub(super) fn mark_wanted(&self, wanted: &mut [bool]) {
        match self {
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().for_each(|part| part.mark_wanted(wanted));
            }
            Node::Leaf(leaf) => {
                let field = match leaf.test {
                    Test::Null { field } => field,
                    ref test => test.field(),
                };
                if let Some(mark) = field.and_then(|field| wanted.get_mut(field)) {
                    *mark = true;
                }
            }
        }
    }

    /// Calls `each` with every condition that is not denied.
    pub(super) fn each_positive<'n>(&'n self, each: &mut dyn FnMut(&'n Test)) {
        match self {
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().for_each(|part| part.each_positive(each));
            }
            Node::Leaf(leaf) if !leaf.denied => each(&leaf.test),
            Node::Leaf(_) => {}
        }
    }
}

impl PlanNode {
    pub(super) fn named(node: &str) -> PlanNode {
        PlanNode { node: node.to_owned(), ..PlanNode::default() }
    }

    fn of(node: &str, leaf: &Leaf) -> PlanNode {
        let condition = match leaf.denied {
            true => format!("NOT ({})", leaf.shown),
            false => leaf.shown.clone(),
        };
        PlanNode { condition: Some(condition), ..PlanNode::named(node) }
    }

    fn add(&mut self, stats: ScanStats) {
        self.keys += stats.keys;
        self.entries += stats.entries;
        self.tids += stats.tids;
        self.seeks += stats.seeks;
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = match depth {
            0 => String::new(),
            depth => {
                write!(f, "{:width$}->  ", "", width = depth * 6 - 4)?;
                " ".repeat(depth * 6)
            }
        };
        write!(f, "{}", self.node)?;
        if let Some(index) = &self.index {
            write!(f, " on {index}")?;
        }
        writeln!(
            f,
            "  (documents={} certain={} time={:.3} ms)",
            self.documents,
            self.certain,
            self.seconds * 1000.0
        )?;
        if let Some(condition) = &self.condition {
            let label = if self.index.is_some() { "Index Cond" } else { "Filter" };
            writeln!(f, "{indent}  {label}: {}", condition.replace('\n', " "))?;
        }
        if self.keys > 0 {
            writeln!(
                f,
                "{indent}  Keys: {}, entries read: {}, TIDs read: {}, searched for: {}",
                self.keys, self.entries, self.tids, self.seeks
            )?;
        }
        if self.rechecked > 0 {
            writeln!(
                f,
                "{indent}  Documents read and tested: {}, removed by recheck: {}",
                self.rechecked, self.removed
            )?;
        }
        for note in &self.notes {
            writeln!(f, "{indent}  Note: {note}")?;
        }
        self.children.iter().try_for_each(|child| child.write(f, depth + 1))
    }
}

/// As EXPLAIN prints it, a line per node and its figures below.
impl fmt::Display for PlanNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}
