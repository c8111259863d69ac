//! `ginmill inspect FILE.gin WHAT`.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use ginmill::gin::inspect::{self, KeyValue};
use ginmill::gin::{Category, Index};
use ginmill::opclass::{KeyType, int4_key, int8_key};
use ginmill::{Error, Result};
use serde_json::{Value, json};

use crate::face::{Face, Failure, Status};

/// Look into an index file, PostgreSQL's too, as pageinspect does
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill inspect mail.gin/body_tsvector.gin meta
  ginmill inspect mail.gin/body_tsvector.gin posting segfault")]
pub(crate) struct Args {
    /// An index file
    file: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The metapage, as gin_metapage_info
    Meta,
    /// A page: header, special area, items
    Page {
        /// Its number, from 0
        block: u32,
    },
    /// The entries with their numbers of TIDs
    Entries {
        /// Only so many, those with the longest lists first
        #[arg(long)]
        top: Option<usize>,
    },
    /// The TIDs under a key
    Posting {
        /// The key: text, an integer, or raw bytes as \x0161
        key: String,
        /// The column, from 1
        #[arg(long, default_value_t = 1)]
        column: u8,
    },
    /// Pages by kind with their fill, lengths of posting lists
    Stats,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let index = Index::open(&self.file, None)?;
        match self.what {
            What::Meta => show(face, &serde_json::to_value(index.meta()?)?),
            What::Page { block } => {
                show(face, &serde_json::to_value(inspect::page(&index, block)?)?)
            }
            What::Stats => show(face, &serde_json::to_value(inspect::stats(&index)?)?),
            What::Entries { top: Some(most) } => {
                for entry in inspect::longest(&index, most)? {
                    entry_line(
                        face,
                        entry.column,
                        entry.category,
                        &entry.key,
                        entry.tids,
                    )?;
                }
                Ok(Status::Done)
            }
            What::Entries { top: None } => {
                let mut entries = index.entries();
                while let Some(mut entry) = entries.next()? {
                    let key = index.key_value(entry.column, entry.category, entry.key);
                    let tids = entry.postings.count()?;
                    entry_line(face, entry.column + 1, entry.category, &key, tids)?;
                }
                Ok(Status::Done)
            }
            What::Posting { key, column } => posting(face, &index, &key, column),
        }
    }
}

fn entry_line(
    face: &mut Face,
    column: u8,
    category: Category,
    key: &KeyValue,
    tids: u64,
) -> Result<(), Failure> {
    if face.json {
        return face.line(&json!({
            "column": column, "category": category, "key": key, "tids": tids,
        }));
    }
    let key = match (category, key) {
        (Category::Key, KeyValue::Integer(number)) => number.to_string(),
        (Category::Key, KeyValue::Text(text)) => text.escape_debug().to_string(),
        (Category::NullKey, _) => "(null key)".to_owned(),
        (Category::EmptyItem, _) => "(empty item)".to_owned(),
        _ => "(null item)".to_owned(),
    };
    writeln!(face.out, "{tids:>10}  {column}  {key}")?;
    Ok(())
}

fn posting(
    face: &mut Face,
    index: &Index,
    key: &str,
    column: u8,
) -> Result<Status, Failure> {
    let column =
        column.checked_sub(1).filter(|&n| usize::from(n) < index.columns().len());
    let column = column.ok_or_else(|| {
        Error::invalid(format!("the index has columns 1 to {}", index.columns().len()))
    })?;
    let bytes = key_bytes(key, index.columns()[usize::from(column)])?;
    let Some(mut postings) = index.posting(column, Category::Key, &bytes)? else {
        return Ok(Status::Nothing);
    };
    while let Some(tid) = postings.next()? {
        if face.json {
            face.line(&json!(tid.to_string()))?;
        } else {
            writeln!(face.out, "{tid}")?;
        }
    }
    Ok(Status::Done)
}

/// A key as the user writes it, in the index's order.
fn key_bytes(text: &str, key_type: KeyType) -> Result<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let byte = |at: usize| {
            digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        return bytes.ok_or_else(|| {
            Error::invalid(format!(
                "expected pairs of hexadecimal digits, found {text:?}"
            ))
        });
    }
    let wrong =
        |_| Error::invalid(format!("keys of this column are integers, not {text:?}"));
    Ok(match key_type {
        KeyType::Text => text.as_bytes().to_vec(),
        KeyType::Int4 => int4_key(text.parse().map_err(wrong)?).to_vec(),
        KeyType::Int8 => int8_key(text.parse().map_err(wrong)?).to_vec(),
    })
}

/// Prints a struct: as JSON, or as `name: value` lines, lists item by item.
fn show(face: &mut Face, value: &Value) -> Result<Status, Failure> {
    if face.json {
        face.line(value)?;
    } else {
        lines(face, "", value)?;
    }
    Ok(Status::Done)
}

fn lines(face: &mut Face, indent: &str, value: &Value) -> Result<(), Failure> {
    let Value::Object(fields) = value else {
        writeln!(face.out, "{indent}{}", plain(value))?;
        return Ok(());
    };
    for (name, value) in fields {
        match value {
            Value::Object(_) => {
                writeln!(face.out, "{indent}{name}:")?;
                lines(face, &format!("{indent}  "), value)?;
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                writeln!(face.out, "{indent}{name}:")?;
                for item in items {
                    let Value::Object(item) = item else { continue };
                    let shown = item.iter().filter(|(_, value)| !value.is_null());
                    let shown =
                        shown.map(|(name, value)| format!("{name} {}", plain(value)));
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    writeln!(face.out, "{indent}  {shown}")?;
                }
            }
            value => writeln!(face.out, "{indent}{name}: {}", plain(value))?,
        }
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.escape_debug().to_string(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}
