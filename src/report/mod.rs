//! Reports of a build: its figures as tables, and these as text, JSON, CSV or a page.
//!
//! A [`Report`] turns [`BuildStats`] into one [`Table`] of typed cells; a [`Renderer`]
//! writes all of them in one form. Everything here is a pure function of the figures,
//! which may come from a file and are not trusted: no figure makes a renderer fail.
//!
//! To add a report: a type in `tables.rs` that implements [`Report`], one line in [`ALL`].

pub mod advice;
mod charts;
pub mod csv;
pub mod html;
pub mod json;
mod tables;
pub mod text;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::build::stats::BuildStats;
use crate::catalog::REPORT_FILE;
use crate::error::{Error, Result};

/// Version of `report.json` that this version writes and reads.
pub const FORMAT: u32 = 1;
/// Largest `report.json` that is read, bytes.
const REPORT_MAX: u64 = 256 << 20;

/// Every report, in the order in which they are printed.
pub static ALL: &[&dyn Report] = &[
    &tables::Build,
    &tables::Phases,
    &tables::Indexes,
    &tables::Temp,
    &tables::Sort,
    &tables::Workers,
    &tables::Files,
    &tables::Memory,
    &tables::Problems,
    &advice::Advice,
];

/// Every form that reports are written in.
pub static RENDERERS: &[Renderer] = &[
    Renderer {
        name: "text",
        extension: "txt",
        summary: "tables for a terminal",
        render: text::render,
    },
    Renderer {
        name: "json",
        extension: "json",
        summary: "everything, as report.json",
        render: json::render,
    },
    Renderer {
        name: "html",
        extension: "html",
        summary: "one page with charts, without network",
        render: html::render,
    },
    Renderer {
        name: "csv",
        extension: "csv",
        summary: "one line per figure",
        render: csv::render,
    },
];

/// One table about a build.
pub trait Report: Send + Sync {
    /// A word, for `--table` and CSV.
    fn name(&self) -> &'static str;

    /// The heading.
    fn summary(&self) -> &'static str;

    /// The figures.
    fn table(&self, stats: &BuildStats) -> Table;
}

/// A form that reports are written in.
#[derive(Debug)]
pub struct Renderer {
    /// As `--format` names it.
    pub name: &'static str,
    /// Of files in that form.
    pub extension: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// All reports of a build.
    pub render: fn(&BuildStats) -> String,
}

/// A table: named columns, rows of as many cells.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Names of the columns, with the unit where cells do not show it.
    pub columns: Vec<String>,
    /// Rows; each has a cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether the last row sums up the others.
    pub total: bool,
    /// Sentences below the table, such as what the figures do not include.
    pub notes: Vec<String>,
}

/// A cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number of things.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Seconds.
    Seconds(f64),
    /// A part of a whole, 1 being all of it.
    Share(f64),
    /// A plain number.
    Number(f64),
    /// No value.
    None,
}

/// Columns by their names.
pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl Cell {
    /// `part` of `whole`; no value when the whole is nothing.
    pub(crate) fn share(part: f64, whole: f64) -> Cell {
        if whole > 0.0 { Cell::Share(part / whole) } else { Cell::None }
    }
}

/// Reads the report of an archive directory, or a `report.json` itself.
pub fn read(path: &Path) -> Result<BuildStats> {
    let path = if path.is_dir() { path.join(REPORT_FILE) } else { path.to_path_buf() };
    let size = fs::metadata(&path).map_err(Error::io("read the report", &path))?.len();
    if size > REPORT_MAX {
        let expected = format!("at most {REPORT_MAX} bytes");
        return Err(Error::corrupt(&path, "size", expected, size.to_string()));
    }
    let text = fs::read(&path).map_err(Error::io("read the report", &path))?;
    #[derive(Deserialize)]
    struct Header {
        ginmill_report: u32,
    }
    let wrong = |error: serde_json::Error| {
        Error::corrupt(&path, "report", "a ginmill report", error.to_string())
    };
    let header: Header = serde_json::from_slice(&text).map_err(wrong)?;
    if header.ginmill_report != FORMAT {
        return Err(Error::invalid(format!(
            "{} has report format {}; this is ginmill {}, which reads format {FORMAT}",
            path.display(),
            header.ginmill_report,
            env!("CARGO_PKG_VERSION")
        )));
    }
    serde_json::from_slice(&text).map_err(wrong)
}

/// Seconds from beginning to end.
pub(crate) fn wall(stats: &BuildStats) -> f64 {
    stats.phases.iter().map(|phase| phase.wall).sum()
}

/// Bytes of all index files.
pub(crate) fn index_bytes(stats: &BuildStats) -> u64 {
    stats.indexes.iter().fold(0, |sum, index| sum.saturating_add(index.bytes))
}

#[cfg(test)]
mod tests;
