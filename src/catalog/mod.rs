//! The archive directory: what is in it, and how it comes into being.
//!
//! ```text
//! catalog.json   what was read and what was built: this file
//! documents      TID → input file, byte offset, length, date      documents.rs
//! NAME.gin       one per index: pages as PostgreSQL's relation file
//! report.json    the figures of the build
//! ```
//!
//! `catalog.json` is one JSON object, written by [`Catalog::to_json`]:
//!
//! ```text
//! ginmill_catalog   version of this shape: 1
//! version           version of ginmill that built
//! created           RFC 3339, UTC
//! input_format      name of the input format
//! inputs            [{path, size, mtime_ns}]; a path that is not UTF-8 is an array of bytes
//! fields            [{name, kind}] in document order; kind: text json lexemes text[] int[]
//! indexes           [{definition, key_types}]; key types: text int4 int8, one per column
//! documents         number of documents
//! checksum          XXH3 of the file with these sixteen digits as zeros, hexadecimal
//! ```
//!
//! The directory is made aside and renamed when it is complete ([`ArchiveWriter`]), so
//! one that can be opened was finished. Nothing in it is trusted all the same.

pub mod check;
pub mod definition;
pub mod documents;
mod entries;
pub mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::document::{Field, ValueKind};
use crate::error::{Error, Result};
use crate::opclass::KeyType;

pub use definition::{
    ColumnDefinition, IndexDefinition, ResolvedColumn, ResolvedIndex, resolve_all,
};
pub use documents::{DocumentEntry, Documents, DocumentsWriter, RangeDocuments};
pub use writer::ArchiveWriter;

/// Version of the shape of `catalog.json` that this version writes and reads.
pub const FORMAT: u32 = 1;
/// Name of the catalog in the directory.
pub const CATALOG_FILE: &str = "catalog.json";
/// Name of the documents file in the directory.
pub const DOCUMENTS_FILE: &str = "documents";
/// Name of the report in the directory.
pub const REPORT_FILE: &str = "report.json";
/// Extension of index files.
pub const INDEX_EXTENSION: &str = "gin";
/// Largest catalog that is read; one with a million input files is smaller.
const CATALOG_MAX: u64 = 1 << 30;

const CHECKSUM_MARK: &[u8] = b"\"checksum\": \"";
const CHECKSUM_DIGITS: usize = 16;

/// What an archive was made of and what is in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Catalog {
    /// Version of this shape: [`FORMAT`].
    #[serde(rename = "ginmill_catalog")]
    pub format: u32,
    /// Version of ginmill that built.
    pub version: String,
    /// When it was built: RFC 3339, UTC.
    pub created: String,
    /// Name of the input format.
    pub input_format: String,
    /// By the number that the documents file uses.
    pub inputs: Vec<InputFile>,
    /// The fields of the documents.
    pub fields: Vec<FieldEntry>,
    /// In definition order.
    pub indexes: Vec<IndexEntry>,
    /// Number of documents.
    pub documents: u64,
}

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputFile {
    /// Where it was; absolute when the build made it so.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Its size, bytes.
    pub size: u64,
    /// When it was last changed: nanoseconds since 1970 UTC.
    pub mtime_ns: i64,
}

/// A field of the documents, as the catalog names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldEntry {
    /// As named in index definitions and queries.
    pub name: String,
    /// What it holds: `text`, `json`, `lexemes`, `text[]` or `int[]`.
    pub kind: String,
}

/// An index of the archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexEntry {
    /// As [`IndexDefinition`] writes it.
    pub definition: String,
    /// Per column: `text`, `int4` or `int8`.
    pub key_types: Vec<String>,
}

impl InputFile {
    /// The file at `path` as it is now.
    pub fn of(path: &Path) -> Result<InputFile> {
        let metadata = fs::metadata(path).map_err(Error::io("look at", path))?;
        let modified = metadata.modified().map_err(Error::io("look at", path))?;
        let mtime_ns = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns)
            }
        };
        Ok(InputFile { path: path.to_path_buf(), size: metadata.len(), mtime_ns })
    }

    /// Fails unless the file is there with the size and time that it had when indexed.
    pub fn verify(&self) -> Result<()> {
        let now = InputFile::of(&self.path).map_err(|error| {
            Error::invalid(format!(
                "the original of this archive is not there any more: {error}"
            ))
        })?;
        let path = self.path.display();
        if now.size != self.size {
            return Err(Error::invalid(format!(
                "{path} has changed since it was indexed: it had {} bytes and has {}; \
                 index it again",
                self.size, now.size
            )));
        }
        if now.mtime_ns != self.mtime_ns {
            return Err(Error::invalid(format!(
                "{path} was modified after it was indexed; index it again"
            )));
        }
        Ok(())
    }
}

impl FieldEntry {
    /// The catalog's words for a field.
    pub fn of(field: &Field) -> FieldEntry {
        let kind = definition::kind_name(field.kind).to_owned();
        FieldEntry { name: field.name.clone(), kind }
    }
}

impl IndexEntry {
    /// The catalog's words for an index.
    pub fn of(definition: &IndexDefinition, resolved: &ResolvedIndex) -> IndexEntry {
        let key_types = resolved.columns.iter().map(|column| column.key_type);
        IndexEntry {
            definition: definition.to_string(),
            key_types: key_types
                .map(|key_type| definition::key_type_name(key_type).to_owned())
                .collect(),
        }
    }
}

const KINDS: [ValueKind; 5] = [
    ValueKind::Text,
    ValueKind::Json,
    ValueKind::Lexemes,
    ValueKind::Texts,
    ValueKind::Integers,
];
const KEY_TYPES: [KeyType; 3] = [KeyType::Text, KeyType::Int4, KeyType::Int8];

impl Catalog {
    /// The catalog of a build that ends now; `indexes` are definitions with what they
    /// resolved to.
    pub fn new(
        input_format: &str,
        inputs: Vec<InputFile>,
        fields: &[Field],
        indexes: &[(IndexDefinition, ResolvedIndex)],
        documents: u64,
    ) -> Catalog {
        Catalog {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: jiff::Timestamp::now().to_string(),
            input_format: input_format.to_owned(),
            inputs,
            fields: fields.iter().map(FieldEntry::of).collect(),
            indexes: indexes.iter().map(|(d, r)| IndexEntry::of(d, r)).collect(),
            documents,
        }
    }

    /// Reads the catalog of the archive directory `dir`.
    pub fn open(dir: &Path) -> Result<Catalog> {
        let path = dir.join(CATALOG_FILE);
        let not_ours = |what: &str| {
            Error::invalid(format!(
                "{} is not a ginmill archive: {what}",
                dir.display()
            ))
        };
        let metadata = fs::metadata(dir).map_err(Error::io("open", dir))?;
        if !metadata.is_dir() {
            return Err(not_ours("it is not a directory"));
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > CATALOG_MAX => {
                return Err(Error::corrupt(
                    &path,
                    "size",
                    format!("at most {CATALOG_MAX} bytes"),
                    metadata.len().to_string(),
                ));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(not_ours(&format!("it has no {CATALOG_FILE}")));
            }
            Err(error) => return Err(Error::io("look at", &path)(error)),
        }
        let text = fs::read(&path).map_err(Error::io("read", &path))?;
        let catalog = Catalog::from_json(&path, &text)?;
        for file in catalog.files()? {
            let path = dir.join(file);
            if !path.is_file() {
                let expected = "this file of the archive";
                return Err(Error::corrupt(&path, "catalog", expected, "none"));
            }
        }
        Ok(catalog)
    }

    /// Reads a catalog's bytes; `path` is for messages.
    fn from_json(path: &Path, text: &[u8]) -> Result<Catalog> {
        let wrong = |expected: &str, found: String| {
            Error::corrupt(path, "catalog", expected, found)
        };
        #[derive(Deserialize)]
        struct Header {
            ginmill_catalog: u32,
            version: String,
        }
        // A newer shape may differ in everything but these two.
        let header: Header = serde_json::from_slice(text)
            .map_err(|error| wrong("a ginmill catalog", error.to_string()))?;
        if header.ginmill_catalog > FORMAT {
            return Err(Error::invalid(format!(
                "{} has format {}, written by ginmill {}; this is ginmill {}, which reads \
                 formats up to {FORMAT}",
                path.display(),
                header.ginmill_catalog,
                header.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        let at = checksum_at(text)
            .ok_or_else(|| wrong("a checksum at the end", "none".to_owned()))?;
        let mut zeroed = text.to_vec();
        let stored = text[at..at + CHECKSUM_DIGITS].escape_ascii().to_string();
        zeroed[at..at + CHECKSUM_DIGITS].fill(b'0');
        let computed = format!("{:016x}", xxh3_64(&zeroed));
        if stored != computed {
            return Err(wrong(&format!("checksum {computed}"), stored));
        }
        let catalog: Catalog = serde_json::from_slice(text)
            .map_err(|error| wrong("the members of a catalog", error.to_string()))?;
        if catalog.format != FORMAT {
            return Err(wrong(&format!("format {FORMAT}"), catalog.format.to_string()));
        }
        catalog.fields()?;
        for index in &catalog.indexes {
            let definition: IndexDefinition = index.definition.parse()?;
            if definition.columns.len() != index.key_types.len() {
                return Err(wrong(
                    &format!(
                        "{} key types of {}",
                        definition.columns.len(),
                        definition
                    ),
                    index.key_types.len().to_string(),
                ));
            }
            catalog.key_types(index)?;
        }
        Ok(catalog)
    }

    /// The bytes of `catalog.json`.
    pub fn to_json(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct WithChecksum<'a> {
            #[serde(flatten)]
            catalog: &'a Catalog,
            checksum: String,
        }
        let checksum = "0".repeat(CHECKSUM_DIGITS);
        let mut text =
            serde_json::to_vec_pretty(&WithChecksum { catalog: self, checksum })
                .expect("a catalog's members are strings, numbers and lists");
        text.push(b'\n');
        let at = checksum_at(&text).expect("it has just been written");
        let computed = format!("{:016x}", xxh3_64(&text));
        text[at..at + CHECKSUM_DIGITS].copy_from_slice(computed.as_bytes());
        text
    }

    /// The documents' fields.
    pub fn fields(&self) -> Result<Vec<Field>> {
        let field = |entry: &FieldEntry| {
            let kind = KINDS
                .into_iter()
                .find(|kind| definition::kind_name(*kind) == entry.kind);
            let kind = kind.ok_or_else(|| {
                Error::invalid(format!(
                    "{CATALOG_FILE}: field {} is of an unknown kind {}",
                    entry.name, entry.kind
                ))
            })?;
            Ok(Field { name: entry.name.clone(), kind })
        };
        self.fields.iter().map(field).collect()
    }

    /// The definitions of the indexes.
    pub fn definitions(&self) -> Result<Vec<IndexDefinition>> {
        self.indexes.iter().map(|index| index.definition.parse()).collect()
    }

    /// The key types of an index's columns.
    pub fn key_types(&self, index: &IndexEntry) -> Result<Vec<KeyType>> {
        let key_type = |name: &String| {
            KEY_TYPES
                .into_iter()
                .find(|key_type| definition::key_type_name(*key_type) == name)
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "{CATALOG_FILE}: index {} has an unknown key type {name}",
                        index.definition
                    ))
                })
        };
        index.key_types.iter().map(key_type).collect()
    }

    /// The other files that belong to the archive.
    pub fn files(&self) -> Result<Vec<String>> {
        let mut files = vec![DOCUMENTS_FILE.to_owned(), REPORT_FILE.to_owned()];
        for definition in self.definitions()? {
            files.push(index_file(&definition.name));
        }
        Ok(files)
    }
}

/// File name of an index in the directory.
pub fn index_file(name: &str) -> String {
    format!("{name}.{INDEX_EXTENSION}")
}

/// Where the digits of the checksum begin.
fn checksum_at(text: &[u8]) -> Option<usize> {
    let at = memchr::memmem::rfind(text, CHECKSUM_MARK)? + CHECKSUM_MARK.len();
    (at + CHECKSUM_DIGITS <= text.len()).then_some(at)
}

/// A path as a JSON string, or as an array of bytes where it is not UTF-8.
mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(
        path: &Path,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Either::deserialize(deserializer)? {
            Either::Text(text) => text.into(),
            Either::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

#[cfg(test)]
mod tests;
