//! `ginmill check DIR|FILE.gin`.

use std::io::Write;
use std::path::{Path, PathBuf};

use ginmill::catalog::{Catalog, Documents, index_file};
use ginmill::gin::{self, CheckStats, Damage};
use ginmill::opclass::KeyType;
use serde_json::json;

use crate::face::{Face, Failure, Status};

/// Check an archive or an index file: structure, order, links, all checksums
///
/// Every damage is a line on stdout; the exit status is 1 when there is any.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill check mail.gin
  ginmill check mail.gin/body_tsvector.gin --json")]
pub(crate) struct Args {
    /// An archive directory, or an index file (PostgreSQL's too)
    #[arg(value_name = "DIR|FILE.gin")]
    path: PathBuf,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let mut damages = 0;
        if !self.path.is_dir() {
            damages += check_index(face, &self.path, None)?;
        } else {
            let catalog = Catalog::open(&self.path)?;
            let documents = Documents::open(&self.path)
                .and_then(|documents| documents.check(catalog.inputs.len()));
            if let Err(error) = documents {
                damages += 1;
                if face.json {
                    face.line(
                        &json!({ "file": "documents", "what": error.to_string() }),
                    )?;
                } else {
                    writeln!(face.out, "{error}")?;
                }
            }
            for (definition, entry) in
                catalog.definitions()?.iter().zip(&catalog.indexes)
            {
                let key_types = catalog.key_types(entry)?;
                let path = self.path.join(index_file(&definition.name));
                damages += check_index(face, &path, Some(&key_types))?;
            }
        }
        Ok(if damages == 0 { Status::Done } else { Status::Nothing })
    }
}

/// Checks one file and prints what is wrong, then a summary; the number of damages.
fn check_index(
    face: &mut Face,
    path: &Path,
    columns: Option<&[KeyType]>,
) -> Result<u64, Failure> {
    let mut written = Ok(());
    let shown = path.display().to_string();
    let stats = gin::check(path, columns, &mut |damage| {
        if written.is_ok() {
            written = line(face, &shown, &damage);
        }
    })?;
    written?;
    summary(face, &shown, &stats)?;
    Ok(stats.damages)
}

fn line(face: &mut Face, file: &str, damage: &Damage) -> Result<(), Failure> {
    if face.json {
        return face.line(&json!({
            "file": file, "block": damage.block, "item": damage.item, "what": damage.what,
        }));
    }
    let item = damage.item.map_or(String::new(), |item| format!(", item {item}"));
    writeln!(face.out, "{file}: block {}{item}: {}", damage.block, damage.what)?;
    Ok(())
}

fn summary(face: &mut Face, file: &str, stats: &CheckStats) -> Result<(), Failure> {
    if face.json {
        let mut value = serde_json::to_value(stats)?;
        value["file"] = file.into();
        return face.line(&value);
    }
    let verdict = match stats.damages {
        0 => "sound".to_owned(),
        1 => "1 damage".to_owned(),
        many => format!("{many} damages"),
    };
    let CheckStats { pages, entries, postings, .. } = stats;
    writeln!(
        face.out,
        "{file}: {verdict}; {pages} pages, {entries} entries, {postings} postings"
    )?;
    Ok(())
}
