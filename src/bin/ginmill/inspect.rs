//! `ginmill inspect FILE.gin`: what is on the pages, named as pageinspect names it.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use ginmill::catalog::{Catalog, index_file};
use ginmill::gin::inspect::{self, Items, KeyValue};
use ginmill::gin::{Category, Index};
use ginmill::opclass::{KeyType, int4_key, int8_key};
use ginmill::report::{Cell, Table, text};
use ginmill::{Error, Result};
use serde_json::{Value as Json, json};

use crate::face::{Face, Failure, Status, note};

/// TIDs of a list that a table shows; JSON has them all.
const TIDS_SHOWN: usize = 3;

/// Look into an index file
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill inspect mail.gin/body_tsvector.gin meta
  ginmill inspect mail.gin/body_tsvector.gin posting segfault")]
pub(crate) struct Args {
    /// An index file, of an archive or of PostgreSQL
    #[arg(value_name = "FILE.gin")]
    path: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The metapage, as gin_metapage_info answers
    Meta,
    /// A page: header, special area and items
    Page {
        /// Its number, from 0
        #[arg(value_name = "N")]
        block: u32,
    },
    /// The entries in key order, with the length of their lists
    Entries {
        /// Only the N with the longest lists, longest first
        #[arg(long, value_name = "N")]
        top: Option<usize>,
    },
    /// The TIDs of a key
    Posting {
        /// The key: a text (\x... in hexadecimal) or a number
        #[arg(allow_hyphen_values = true, required_unless_present = "category")]
        key: Option<String>,
        /// Column, from 1
        #[arg(long, default_value_t = 1)]
        column: u8,
        /// The TIDs of a category without keys
        #[arg(long, value_enum, conflicts_with = "key")]
        category: Option<CategoryArg>,
    },
    /// Pages, fill and lengths of lists; reads the whole file
    Stats,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum CategoryArg {
    /// Arrays with a null element
    NullKey,
    /// Values without any key
    EmptyItem,
    /// Null values
    NullItem,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> std::result::Result<Status, Failure> {
        let columns = columns_of(&self.path);
        let index = Index::open(&self.path, columns.as_deref())?;
        match self.what {
            What::Meta => show(face, &[pairs(&json!(index.meta()?))], &index.meta()?)?,
            What::Page { block } => {
                if block >= index.pages() {
                    return Err(Error::invalid(format!(
                        "{} has no page {block}; its last one is {}",
                        self.path.display(),
                        index.pages().saturating_sub(1)
                    ))
                    .into());
                }
                let page = inspect::page(&index, block)?;
                show(face, &page_tables(&json!(page), &page.items), &page)?;
            }
            What::Entries { top: Some(top) } => {
                let longest = inspect::longest(&index, top)?;
                show(face, &[records(&json!(longest))], &longest)?;
            }
            What::Entries { top: None } => entries(face, &index)?,
            What::Posting { key, column, category } => {
                return posting(face, &index, key.as_deref(), column, category);
            }
            What::Stats => {
                let stats = inspect::stats(&index)?;
                let shape = json!(stats);
                let tables = [
                    pairs(&shape),
                    records(&shape["kinds"]),
                    records(&shape["lengths"]),
                ];
                show(face, &tables, &stats)?;
            }
        }
        Ok(Status::Done)
    }
}

/// The key types of an index that lies in an archive; of another file they are guessed.
fn columns_of(path: &Path) -> Option<Vec<KeyType>> {
    let catalog = Catalog::open(path.parent()?).ok()?;
    let file = path.file_name()?.to_str()?;
    let definitions = catalog.definitions().ok()?;
    let at = definitions.iter().position(|d| index_file(&d.name) == file)?;
    catalog.key_types(&catalog.indexes[at]).ok()
}

/// Tables for people or the struct for programs.
fn show(
    face: &mut Face,
    tables: &[Table],
    shape: &impl serde::Serialize,
) -> std::result::Result<(), Failure> {
    if face.json {
        serde_json::to_writer_pretty(&mut face.out, shape)?;
        face.out.write_all(b"\n")?;
        return Ok(());
    }
    let tables = tables.iter().filter(|table| !table.rows.is_empty()).map(text::draw);
    face.out.write_all(tables.collect::<Vec<_>>().join("\n").as_bytes())?;
    Ok(())
}

/// A value as a cell: numbers as numbers, the rest as words.
fn cell(value: &Json) -> Cell {
    match value {
        Json::Null => Cell::None,
        Json::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Cell::Count(count),
            (None, Some(float)) if number.is_f64() => Cell::Number(float),
            _ => Cell::Text(number.to_string()),
        },
        Json::String(text) => Cell::Text(text.clone()),
        Json::Bool(bool) => Cell::Text(bool.to_string()),
        Json::Array(items) => {
            let word = |item: &Json| match item {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            let first: Vec<String> = items.iter().take(TIDS_SHOWN).map(word).collect();
            let first = first.join(" ");
            Cell::Text(match items.len() {
                n if n > TIDS_SHOWN => {
                    format!("{first} … {} in all", text::count(n as u64))
                }
                _ => first,
            })
        }
        Json::Object(_) => Cell::Text(value.to_string()),
    }
}

/// The plain members of an object, one a line.
fn pairs(object: &Json) -> Table {
    let members = object.as_object().into_iter().flatten();
    let plain = members.filter(|(_, value)| !value.is_object() && !is_records(value));
    // Numbers as words: a column of both would align neither.
    let row = |(name, value): (&String, &Json)| {
        let value = match cell(value) {
            Cell::Count(count) => Cell::Text(count.to_string()),
            Cell::Number(number) => Cell::Text(format!("{number:.2}")),
            other => other,
        };
        vec![Cell::Text(name.clone()), value]
    };
    Table {
        columns: vec!["what".to_owned(), "value".to_owned()],
        rows: plain.map(row).collect(),
        ..Table::default()
    }
}

fn is_records(value: &Json) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Json::is_object))
}

/// Objects of one shape, one a row; columns without any value are left out.
fn records(list: &Json) -> Table {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    let mut table = Table::default();
    let names = list.first().and_then(Json::as_object).into_iter().flatten();
    let names: Vec<&String> = names
        .map(|(name, _)| name)
        .filter(|name| list.iter().any(|record| !record[name.as_str()].is_null()))
        .collect();
    for record in list {
        table
            .rows
            .push(names.iter().map(|name| cell(&record[name.as_str()])).collect());
    }
    table.columns = names.into_iter().cloned().collect();
    table
}

fn page_tables(page: &Json, items: &Items) -> Vec<Table> {
    let mut head = pairs(page);
    head.rows.extend(pairs(&page["header"]).rows);
    head.rows.extend(pairs(&page["opaque"]).rows);
    let list = match items {
        Items::None => return vec![head],
        Items::Entries(_) => &page["items"]["entries"],
        Items::Postings(_) => &page["items"]["postings"],
        Items::Segments(_) => &page["items"]["segments"],
    };
    vec![head, records(list)]
}

fn category_name(category: Category) -> &'static str {
    match category {
        Category::Key => "key",
        Category::NullKey => "null_key",
        Category::EmptyItem => "empty_item",
        Category::NullItem => "null_item",
    }
}

/// One line per entry; an index may have many millions, so nothing is gathered.
fn entries(face: &mut Face, index: &Index) -> std::result::Result<(), Failure> {
    let several = index.columns().len() > 1;
    let mut entries = index.entries();
    while let Some(mut entry) = entries.next()? {
        let key = index.key_value(entry.column, entry.category, entry.key);
        let tids = entry.postings.count()?;
        if face.json {
            face.line(&json!({
                "column": entry.column + 1,
                "category": entry.category,
                "key": key,
                "tids": tids,
                "posting_tree": entry.postings.tree_root(),
            }))?;
            continue;
        }
        let name = match key {
            KeyValue::Integer(number) => number.to_string(),
            KeyValue::Text(text) => text.escape_debug().to_string(),
            KeyValue::None => category_name(entry.category).to_owned(),
        };
        let column =
            if several { format!("  {:>6}", entry.column + 1) } else { String::new() };
        writeln!(face.out, "{tids:>12}{column}  {name}")?;
    }
    Ok(())
}

/// The key that the user wrote, as the index orders it.
fn key_of(index: &Index, column: u8, written: &str) -> Result<Vec<u8>> {
    let number = |least: i64, most: i64| {
        let number = written.parse::<i64>().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| {
            Error::invalid(format!(
                "the keys of column {} are numbers from {least} to {most}, found {written:?}",
                u16::from(column) + 1
            ))
        })
    };
    match index.columns()[usize::from(column)] {
        KeyType::Int8 => Ok(int8_key(number(i64::MIN, i64::MAX)?).to_vec()),
        KeyType::Int4 => {
            let number = number(i64::from(i32::MIN), i64::from(i32::MAX))?;
            let number = i32::try_from(number).expect("within its range");
            Ok(int4_key(number).to_vec())
        }
        KeyType::Text => match written.strip_prefix("\\x") {
            None => Ok(written.as_bytes().to_vec()),
            Some(digits) => from_hex(digits).ok_or_else(|| {
                Error::invalid(format!(
                    "expected hexadecimal digits after \\x, found {digits:?}"
                ))
            }),
        },
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn posting(
    face: &mut Face,
    index: &Index,
    key: Option<&str>,
    column: u8,
    category: Option<CategoryArg>,
) -> std::result::Result<Status, Failure> {
    let columns = index.columns().len();
    let column = match column.checked_sub(1) {
        Some(column) if usize::from(column) < columns => column,
        _ => {
            return Err(Error::invalid(format!(
                "{} has no column {column}; its columns are 1 to {columns}",
                index.path().display()
            ))
            .into());
        }
    };
    let (category, bytes) = match (category, key) {
        (Some(CategoryArg::NullKey), _) => (Category::NullKey, Vec::new()),
        (Some(CategoryArg::EmptyItem), _) => (Category::EmptyItem, Vec::new()),
        (Some(CategoryArg::NullItem), _) => (Category::NullItem, Vec::new()),
        (None, key) => (Category::Key, key_of(index, column, key.unwrap_or_default())?),
    };
    let Some(mut postings) = index.posting(column, category, &bytes)? else {
        if face.json {
            face.line(&json!({ "tids": [] }))?;
        } else {
            note("the index has no such key");
        }
        return Ok(Status::Nothing);
    };
    let mut first = true;
    if face.json {
        let root = json!(postings.tree_root());
        write!(face.out, "{{\"posting_tree\":{root},\"tids\":[")?;
    }
    while let Some(tid) = postings.next()? {
        if !face.json {
            writeln!(face.out, "{tid}")?;
            continue;
        }
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(face.out, "{comma}\"{tid}\"")?;
    }
    if face.json {
        face.out.write_all(b"]}\n")?;
    }
    Ok(Status::Done)
}
