//! The original input files: reads a document where the build found it.
//!
//! A file is compared with what the catalog says of it (size and time of change) when
//! the first of its documents is read; one that is gone or has changed is an error that
//! names it, never a wrong answer. Large files stay mapped, small ones (a Maildir has
//! one per message) are read for each document.

use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

use crate::archive::{self, Format};
use crate::catalog::{Catalog, DocumentEntry, InputFile};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::mapped::Mapped;

/// Size from which a file is mapped.
const MAP_FROM: u64 = 256 << 10;
/// Bytes of a file that tell its format, where the catalog names several.
const HEAD: u64 = 4096;

/// The input files of an archive; shared by threads.
pub(super) struct Originals {
    files: Vec<Original>,
}

struct Original {
    input: InputFile,
    /// Known from the catalog, or found out when the file is first read.
    format: Option<&'static dyn Format>,
    state: OnceLock<std::result::Result<State, String>>,
}

struct State {
    format: &'static dyn Format,
    map: Option<Mapped>,
}

/// What one reader needs at hand; each thread has its own.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
}

impl Originals {
    pub(super) fn new(catalog: &Catalog) -> Originals {
        let format = archive::find(&catalog.input_format);
        let original = |input: &InputFile| Original {
            input: input.clone(),
            format,
            state: OnceLock::new(),
        };
        Originals { files: catalog.inputs.iter().map(original).collect() }
    }

    /// The bytes of a document and the format that reads them.
    pub(super) fn read<'b>(
        &'b self,
        entry: &DocumentEntry,
        buffer: &'b mut Buffer,
    ) -> Result<(&'b [u8], &'static dyn Format)> {
        let number = entry.file as usize;
        let Some(original) = self.files.get(number) else {
            return Err(Error::invalid(format!(
                "the documents file names input file {number}, but the catalog has {}",
                self.files.len()
            )));
        };
        let state = match original
            .state
            .get_or_init(|| original.open().map_err(|error| error.to_string()))
        {
            Ok(state) => state,
            Err(message) => return Err(Error::invalid(message.clone())),
        };
        let path = &original.input.path;
        let end = entry.offset.saturating_add(entry.len);
        if end > original.input.size {
            return Err(Error::corrupt(
                path,
                format!("byte {}", entry.offset),
                format!("a document of {} bytes", entry.len),
                format!("the end of the file at byte {}", original.input.size),
            ));
        }
        let range = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let text: &[u8] = match &state.map {
            Some(map) => map,
            None => {
                buffer.bytes.clear();
                let file = File::open(path).map_err(Error::io("open", path))?;
                let mut file = file.take(original.input.size);
                file.read_to_end(&mut buffer.bytes).map_err(Error::io("read", path))?;
                &buffer.bytes
            }
        };
        match text.get(range(entry.offset)..range(end)) {
            Some(bytes) => Ok((bytes, state.format)),
            None => Err(Error::invalid(format!(
                "{} became shorter while it was read; index it again",
                path.display()
            ))),
        }
    }

    /// Reads a document and hands it on; only the fields `wanted` are filled.
    pub(super) fn with_document<T>(
        &self,
        entry: &DocumentEntry,
        wanted: &[bool],
        buffer: &mut Buffer,
        use_it: impl FnOnce(&Document<'_>) -> T,
    ) -> Result<T> {
        let (bytes, format) = self.read(entry, buffer)?;
        let mut document = Document::default();
        format.parse(bytes, wanted, &mut document)?;
        Ok(use_it(&document))
    }
}

impl Original {
    fn open(&self) -> Result<State> {
        self.input.verify()?;
        let path = &self.input.path;
        let map = match self.input.size {
            MAP_FROM.. => Some(Mapped::open(path)?),
            _ => None,
        };
        let format = match self.format {
            Some(format) => format,
            None => {
                let mut head = Vec::new();
                let file = File::open(path).map_err(Error::io("open", path))?;
                file.take(HEAD)
                    .read_to_end(&mut head)
                    .map_err(Error::io("read", path))?;
                let mut formats = archive::ALL.iter().copied();
                formats.find(|format| format.sniff(path, &head)).ok_or_else(|| {
                    Error::invalid(format!(
                        "{} is of no format that this version knows",
                        path.display()
                    ))
                })?
            }
        };
        Ok(State { format, map })
    }
}
