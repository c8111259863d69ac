//! Verifies a whole archive directory: every file by itself, and that they fit together.
//!
//! The catalog's checksum, the documents file, the structure of every index, and that
//! every index names exactly the documents of the documents file, no more and no fewer:
//! GIN has an entry for every item, if only a placeholder.

use std::path::Path;

use roaring::RoaringTreemap;
use serde::Serialize;

use super::{
    CATALOG_FILE, Catalog, DOCUMENTS_FILE, Documents, IndexEntry, REPORT_FILE,
    index_file,
};
use crate::error::{Error, ErrorKind, Result};
use crate::gin::{self, CheckStats, Index};
use crate::opclass::KeyType;

/// Damages of a file that are listed; further ones are counted.
pub const DAMAGES_MAX: usize = 100;

/// What became of one file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct FileCheck {
    /// Its name in the archive.
    pub file: String,
    /// What is wrong with it, one sentence each, the first [`DAMAGES_MAX`].
    pub damages: Vec<String>,
    /// How much is wrong with it.
    pub damage_count: u64,
    /// What was seen, of an index file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<CheckStats>,
}

impl FileCheck {
    fn of(file: &str) -> FileCheck {
        FileCheck { file: file.to_owned(), ..FileCheck::default() }
    }

    fn damage(&mut self, what: String) {
        self.damage_count += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(what);
        }
    }

    /// Takes an error for a damage where it is one.
    fn take(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                ErrorKind::Corrupt { .. } | ErrorKind::Invalid(_) => {
                    self.damage(error.to_string());
                    Ok(())
                }
                _ => Err(error),
            },
        }
    }
}

/// Verifies an index file that lies anywhere; its columns are guessed.
pub fn check_index(path: &Path) -> Result<FileCheck> {
    let mut file = FileCheck::of(&path.display().to_string());
    structure(path, None, &mut file)?;
    Ok(file)
}

/// Verifies an archive; `each` is called with every file's result as it is known. An
/// error is returned only when something cannot be read or is no archive.
pub fn check(dir: &Path, each: &mut dyn FnMut(FileCheck) -> Result<()>) -> Result<()> {
    let mut file = FileCheck::of(CATALOG_FILE);
    let catalog = match Catalog::open(dir) {
        Ok(catalog) => catalog,
        Err(error) => {
            if !matches!(error.kind(), ErrorKind::Corrupt { .. }) {
                return Err(error);
            }
            file.damage(error.to_string());
            // Without its catalog, nothing says what the other files should be.
            return each(file);
        }
    };
    each(file)?;

    let mut file = FileCheck::of(DOCUMENTS_FILE);
    let mut all = None;
    let result = Documents::open(dir).and_then(|documents| {
        documents.check(catalog.inputs.len())?;
        all = Some(tids_of(&documents)?);
        if documents.len() == catalog.documents {
            return Ok(());
        }
        let expected = format!("{} documents, as the catalog says", catalog.documents);
        let found = documents.len().to_string();
        Err(Error::corrupt(&dir.join(DOCUMENTS_FILE), "trailer", expected, found))
    });
    file.take(result)?;
    each(file)?;

    let mut file = FileCheck::of(REPORT_FILE);
    let path = dir.join(REPORT_FILE);
    let text = std::fs::read(&path).map_err(Error::io("read", &path))?;
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&text) {
        file.damage(format!("{}: {error}", path.display()));
    }
    each(file)?;

    for (definition, entry) in catalog.definitions()?.iter().zip(&catalog.indexes) {
        let name = index_file(&definition.name);
        let mut file = FileCheck::of(&name);
        index(&dir.join(&name), &catalog, entry, all.as_ref(), &mut file)?;
        each(file)?;
    }
    Ok(())
}

fn tids_of(documents: &Documents) -> Result<RoaringTreemap> {
    documents.iter().map(|entry| Ok(entry?.0.pack())).collect()
}

fn structure(
    path: &Path,
    columns: Option<&[KeyType]>,
    file: &mut FileCheck,
) -> Result<()> {
    let result = gin::check(path, columns, &mut |damage| {
        let item = damage.item.map_or(String::new(), |item| format!(", item {item}"));
        file.damage(format!("block {}{item}: {}", damage.block, damage.what));
    });
    match result {
        Ok(stats) => {
            file.index = Some(stats);
            Ok(())
        }
        Err(error) => file.take(Err(error)),
    }
}

fn index(
    path: &Path,
    catalog: &Catalog,
    entry: &IndexEntry,
    all: Option<&RoaringTreemap>,
    file: &mut FileCheck,
) -> Result<()> {
    let columns = catalog.key_types(entry)?;
    structure(path, Some(&columns), file)?;
    // Lists of a broken index or those to compare with are not worth comparing.
    let Some(all) = all.filter(|_| file.damage_count == 0) else { return Ok(()) };
    let covered = covered(path, &columns);
    let result = covered.and_then(|covered| {
        for (column, found) in covered.iter().enumerate() {
            let (missing, extra) = ((all - found).len(), (found - all).len());
            if missing + extra > 0 {
                return Err(Error::corrupt(
                    path,
                    format!("column {}", column + 1),
                    format!("an entry for each of {} documents", all.len()),
                    format!("{missing} without one, {extra} unknown TIDs"),
                ));
            }
        }
        Ok(())
    });
    file.take(result)
}

/// Per column, the TIDs of all its entries.
fn covered(path: &Path, columns: &[KeyType]) -> Result<Vec<RoaringTreemap>> {
    let index = Index::open(path, Some(columns))?;
    let mut covered = vec![RoaringTreemap::new(); columns.len()];
    let mut entries = index.entries();
    let mut block = Vec::new();
    while let Some(mut entry) = entries.next()? {
        let set = &mut covered[usize::from(entry.column)];
        while entry.postings.next_block(&mut block)? {
            set.extend(block.iter().copied());
        }
    }
    Ok(covered)
}
