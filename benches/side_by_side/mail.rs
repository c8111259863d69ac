//! The input, read with ginmill's own library: rows for PostgreSQL, bodies for tantivy,
//! parts of it for the growth section.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ginmill::archive::{BlockRanges, InputFile, Inputs};
use ginmill::document::{Document, Value};
use ginmill::opclass::jsonb;

use crate::Outcome;

/// All messages of some paths.
pub struct Mail {
    /// As given.
    pub paths: Vec<PathBuf>,
    inputs: Arc<Inputs>,
}

/// How much was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read {
    /// Messages.
    pub messages: u64,
    /// Messages that could not be parsed; ginmill leaves them out as well.
    pub skipped: u64,
}

impl Mail {
    /// Finds the files.
    pub fn open(paths: &[PathBuf]) -> Outcome<Mail> {
        let inputs = Arc::new(Inputs::open(paths, None)?);
        Ok(Mail { paths: paths.to_vec(), inputs })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.inputs.total_bytes()
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.inputs.files().len()
    }

    /// Definitions of the default indexes of its format.
    pub fn indexes(&self) -> &'static [&'static str] {
        self.inputs.default_indexes()
    }

    /// Seconds that one thread needs to cut the input into messages: what workers do
    /// under a lock, and no number of them makes shorter.
    pub fn claiming(&self) -> Outcome<f64> {
        let began = Instant::now();
        let ranges = BlockRanges::new(Arc::clone(&self.inputs));
        while ranges.claim()?.is_some() {}
        Ok(began.elapsed().as_secs_f64())
    }

    /// Hands on the values of every message at the positions of `fields`, in order.
    pub fn each(
        &self,
        fields: &[&str],
        mut take: impl FnMut(&[&Value<'_>]) -> Outcome<()>,
    ) -> Outcome<Read> {
        let position = |name: &&str| {
            let known = self.inputs.fields().iter();
            known.clone().position(|field| field.name == **name).ok_or_else(|| {
                let known: Vec<&str> = known.map(|field| field.name.as_str()).collect();
                format!("no field {name} in the input, only {}", known.join(", "))
            })
        };
        let positions = fields.iter().map(position).collect::<Result<Vec<_>, _>>()?;
        let known = 0..self.inputs.fields().len();
        let wanted: Vec<bool> = known.map(|n| positions.contains(&n)).collect();
        let ranges = BlockRanges::new(Arc::clone(&self.inputs));
        let mut reader = self.inputs.reader();
        let mut read = Read::default();
        while let Some(range) = ranges.claim()? {
            for item in &range.items {
                let raw = reader.bytes(item)?;
                let mut document = Document::default();
                if self.inputs.parse(item, raw, &wanted, &mut document).is_err() {
                    read.skipped += 1;
                    continue;
                }
                let null = Value::Null;
                let values = positions.iter();
                let values: Vec<&Value<'_>> =
                    values.map(|&n| document.values.get(n).unwrap_or(&null)).collect();
                read.messages += 1;
                take(&values)?;
            }
        }
        Ok(read)
    }

    /// Writes the messages as lines of `COPY (headers, subject, body)`.
    pub fn copy(&self, mut out: impl Write) -> Outcome<Read> {
        let mut line = String::new();
        self.each(&["headers", "subject", "body"], |values| {
            line.clear();
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    line.push('\t');
                }
                push_column(value, &mut line)?;
            }
            line.push('\n');
            Ok(out.write_all(line.as_bytes())?)
        })
    }

    /// Writes the bodies, each after its length (u32, little-endian).
    pub fn bodies(&self, path: &Path) -> Outcome<Read> {
        let mut out = BufWriter::new(fs::File::create(path)?);
        let read = self.each(&["body"], |values| {
            let text = match values {
                [Value::Text(text)] => text.as_bytes(),
                _ => b"",
            };
            out.write_all(&u32::try_from(text.len())?.to_le_bytes())?;
            Ok(out.write_all(text)?)
        })?;
        out.flush()?;
        Ok(read)
    }

    /// About `wanted` bytes of the input, evenly from all of it, as links (and one part
    /// of a file, where single files are larger than that) in a new directory.
    pub fn part(&self, wanted: u64, directory: &Path) -> Outcome<Mail> {
        fs::create_dir(directory)?;
        let total = self.bytes().max(1);
        let (mut passed, mut taken) = (0_u64, 0_u64);
        for (number, file) in self.inputs.files().iter().enumerate() {
            passed += file.size;
            let due = u128::from(wanted) * u128::from(passed) / u128::from(total);
            let due = u64::try_from(due)?.saturating_sub(taken);
            // a file is due when at least half of it is
            if due < file.size / 2 && due < wanted / 2 {
                continue;
            }
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            let link = directory.join(format!("{number:06}-{name}"));
            if file.size > due + wanted / 10 {
                taken += head(file, due, &link)?;
            } else {
                std::os::unix::fs::symlink(std::path::absolute(&file.path)?, link)?;
                taken += file.size;
            }
        }
        Mail::open(&[directory.to_path_buf()])
    }
}

/// Copies the whole messages in the first bytes of a file.
fn head(file: &InputFile, bytes: u64, to: &Path) -> Outcome<u64> {
    let text = fs::read(&file.path)?;
    let mut end = 0;
    if file.format.whole_files() {
        end = text.len();
    } else {
        while let Some((_, next)) = file.format.split(&text, end) {
            if end > 0 && next as u64 > bytes {
                break;
            }
            end = next;
        }
    }
    fs::write(to, &text[..end])?;
    Ok(end as u64)
}

/// Appends a value as COPY's text format has it.
fn push_column(value: &Value<'_>, line: &mut String) -> Outcome<()> {
    match value {
        Value::Null => line.push_str("\\N"),
        Value::Text(text) => push_escaped(text, line),
        Value::Json(json) => push_escaped(&jsonb::to_text(json), line),
        other => return Err(format!("expected text or JSON, found {other:?}").into()),
    }
    Ok(())
}

fn push_escaped(text: &str, line: &mut String) {
    for part in text.split_inclusive(['\\', '\t', '\n', '\r']) {
        let plain = part.trim_end_matches(['\\', '\t', '\n', '\r']);
        line.push_str(plain);
        line.push_str(match &part[plain.len()..] {
            "\t" => "\\t",
            "\n" => "\\n",
            "\r" => "\\r",
            "\\" => "\\\\",
            _ => "",
        });
    }
}
