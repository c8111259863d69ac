//! The input files: found, sniffed, put in order, read.
//!
//! The order is fixed by names alone: arguments as given, directories walked
//! recursively with their entries sorted bytewise. So the same inputs give the same
//! items in the same order on every run.
//!
//! A directory with a directory `cur`, or with `new` and `tmp`, is a Maildir: the files in
//! `cur` and `new` are its messages; `tmp` and what servers keep beside them are not. Elsewhere each file's format is
//! decided once, from its first [`HEAD`] bytes. What is not taken (hidden, unreadable,
//! empty, no known format) is listed among the problems; only when nothing is left is
//! that an error.
//!
//! Files of [`MAP_FROM`] bytes and more are mapped while anybody uses them; smaller ones
//! are read into the reader's buffer, so that a Maildir costs neither a map per message
//! nor memory that grows with it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::UNIX_EPOCH;

use super::{ALL, Format, find};

use crate::document::{Document, Field, Problem};
use crate::error::{Error, Result};
use crate::mapped::Mapped;

/// Bytes of a file that sniffing looks at.
const HEAD: usize = 4096;
/// Size from which a file is mapped and not read into a buffer.
pub(super) const MAP_FROM: u64 = 256 << 10;
/// Directories inside directories that are followed.
const DEPTH_MAX: usize = 64;

/// One file that holds items.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// As reached from the argument that led to it.
    pub path: PathBuf,
    /// Bytes, when it was found; what is appended later is not read.
    pub size: u64,
    /// Time of its last change, nanoseconds since 1970.
    pub mtime: i64,
    /// Its format.
    pub format: &'static dyn Format,
}

/// A document's place in the inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// Position in [`Inputs::files`].
    pub file: u32,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
}

/// All inputs of a build.
#[derive(Debug)]
pub struct Inputs {
    files: Vec<InputFile>,
    fields: Vec<Field>,
    format_name: String,
    default_indexes: &'static [&'static str],
    total_bytes: u64,
    problems: Vec<Problem>,
    /// The maps in use, by file; a file is mapped once however many read it.
    maps: Mutex<HashMap<u32, Weak<Mapped>>>,
}

impl Inputs {
    /// Finds the files behind `paths`, all of the format named, or each sniffed (`None`
    /// or `auto`). A path that cannot be read is a problem; fails for an unknown
    /// format, or when no file is left to read.
    pub fn open(paths: &[PathBuf], format: Option<&str>) -> Result<Inputs> {
        let format = match format {
            None | Some("auto") => None,
            Some(name) => Some(find(name).ok_or_else(|| {
                let known: Vec<_> = ALL.iter().map(|format| format.name()).collect();
                Error::invalid(format!(
                    "unknown input format {name:?}; known are auto, {}",
                    known.join(", ")
                ))
            })?),
        };
        if paths.is_empty() {
            return Err(Error::invalid("no input given"));
        }
        let mut finder = Finder { format, ..Finder::default() };
        for path in paths {
            finder.entry(path, 0);
        }
        finder.finish(paths)
    }

    /// The fields of every document, by position in `Document::values`.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The format's name; all of them with commas between when there are several.
    pub fn format_name(&self) -> &str {
        &self.format_name
    }

    /// Index definitions to build when the user names none.
    pub fn default_indexes(&self) -> &'static [&'static str] {
        self.default_indexes
    }

    /// The files, in the order in which their documents are numbered.
    pub fn files(&self) -> &[InputFile] {
        &self.files
    }

    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Files and directories that were left out, with the reason.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// A reader of items; each worker has its own.
    pub fn reader(self: &Arc<Inputs>) -> ItemReader {
        ItemReader {
            inputs: Arc::clone(self),
            map: None,
            buffered: None,
            buffer: Vec::new(),
        }
    }

    /// Turns an item's bytes into a document, by the format of its file.
    pub fn parse<'a>(
        &self,
        item: &Item,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()> {
        self.files[item.file as usize].format.parse(raw, wanted, document)
    }

    /// The map of a file, shared with whoever has it already.
    pub(super) fn map(&self, file: u32) -> Result<Arc<Mapped>> {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = maps.get(&file).and_then(Weak::upgrade) {
            return Ok(map);
        }
        let map = Mapped::open(&self.files[file as usize].path)?;
        map.sequential();
        let map = Arc::new(map);
        maps.retain(|_, map| map.strong_count() > 0);
        maps.insert(file, Arc::downgrade(&map));
        Ok(map)
    }

    /// Reads a small file into `buffer`, as far as it went when it was found.
    pub(super) fn read(&self, file: u32, buffer: &mut Vec<u8>) -> Result<()> {
        let InputFile { path, size, .. } = &self.files[file as usize];
        buffer.clear();
        let open = File::open(path).map_err(Error::io("open", path))?;
        open.take(*size).read_to_end(buffer).map_err(Error::io("read", path))?;
        Ok(())
    }
}

/// Reads items; keeps the file of the last one at hand.
#[derive(Debug)]
pub struct ItemReader {
    inputs: Arc<Inputs>,
    map: Option<(u32, Arc<Mapped>)>,
    /// The small file that `buffer` holds.
    buffered: Option<u32>,
    buffer: Vec<u8>,
}

impl ItemReader {
    /// The bytes of an item, valid until the next call.
    pub fn bytes(&mut self, item: &Item) -> Result<&[u8]> {
        let file = &self.inputs.files[item.file as usize];
        let text: &[u8] = if file.size < MAP_FROM {
            if self.buffered != Some(item.file) {
                self.buffered = None;
                self.inputs.read(item.file, &mut self.buffer)?;
                self.buffered = Some(item.file);
            }
            &self.buffer
        } else {
            if self.map.as_ref().is_none_or(|(file, _)| *file != item.file) {
                self.map = None;
                self.map = Some((item.file, self.inputs.map(item.file)?));
            }
            &self.map.as_ref().expect("set above").1
        };
        let end = item.offset.saturating_add(item.len);
        let range = usize::try_from(item.offset).ok().zip(usize::try_from(end).ok());
        range.and_then(|(start, end)| text.get(start..end)).ok_or_else(|| {
            Error::corrupt(
                &file.path,
                format!("byte {}", item.offset),
                format!("a document of {} bytes", item.len),
                format!("a file that has become {} bytes long", text.len()),
            )
        })
    }

    /// Bytes of memory held for small files.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Collects files while directories are walked.
#[derive(Default)]
struct Finder {
    format: Option<&'static dyn Format>,
    files: Vec<InputFile>,
    problems: Vec<Problem>,
    /// The directories that the one being read is in, without links.
    above: Vec<PathBuf>,
}

impl Finder {
    fn problem(&mut self, path: &Path, reason: impl Into<String>) {
        self.problems.push(Problem {
            file: path.display().to_string(),
            offset: 0,
            reason: reason.into(),
            skipped: true,
        });
    }

    /// Takes what a directory holds.
    fn directory(&mut self, dir: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            let reason = format!("directories are nested more than {DEPTH_MAX} deep");
            return self.problem(dir, reason);
        }
        let read = fs::canonicalize(dir).map_err(Error::io("resolve", dir));
        let (place, entries) =
            match read.and_then(|place| Ok((place, sorted_entries(dir)?))) {
                Ok(read) => read,
                Err(error) => return self.problem(dir, error.to_string()),
            };
        if self.above.contains(&place) {
            return self.problem(dir, "a link to a directory that it is in");
        }
        self.above.push(place);
        let has = |name| entries.iter().any(|path| is_directory(path, name));
        if has("cur") || has("new") && has("tmp") {
            self.maildir(&entries, depth);
        } else {
            for path in entries {
                if is_hidden(&path) {
                    self.problem(&path, "hidden files and directories are not read");
                } else {
                    self.entry(&path, depth + 1);
                }
            }
        }
        self.above.pop();
    }

    fn entry(&mut self, path: &Path, depth: usize) {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.directory(path, depth),
            Ok(meta) => self.file(path, &meta),
            Err(error) => {
                self.problem(path, format!("cannot be read: {error}"));
            }
        }
    }

    /// Takes the messages of a Maildir, then its folders, which are Maildirs whose
    /// names begin with a dot.
    fn maildir(&mut self, entries: &[PathBuf], depth: usize) {
        let format = self.format.or_else(|| find("maildir"));
        for part in entries.iter().filter(|path| is_maildir_part(path)) {
            let messages = match sorted_entries(part) {
                Ok(messages) => messages,
                Err(error) => {
                    self.problem(part, error.to_string());
                    continue;
                }
            };
            for path in messages.iter().filter(|path| !is_hidden(path)) {
                match fs::metadata(path) {
                    Ok(meta) if meta.is_dir() => {
                        self.problem(path, "a directory where a Maildir has messages");
                    }
                    Ok(meta) => self.take(path, &meta, format),
                    Err(error) => {
                        self.problem(path, format!("cannot be read: {error}"));
                    }
                }
            }
        }
        for path in entries {
            if is_maildir_part(path) || is_directory(path, "tmp") {
                continue;
            }
            if path.is_dir() {
                self.directory(path, depth + 1);
            } else if !is_hidden(path) && !is_of_server(path) {
                self.problem(path, "a file beside the messages of a Maildir");
            }
        }
    }

    /// Takes a file whose format is not known by its place.
    fn file(&mut self, path: &Path, meta: &fs::Metadata) {
        self.take(path, meta, self.format);
    }

    fn take(
        &mut self,
        path: &Path,
        meta: &fs::Metadata,
        format: Option<&'static dyn Format>,
    ) {
        if !meta.is_file() {
            return self.problem(path, "neither a file nor a directory");
        }
        if meta.len() == 0 {
            return self.problem(path, "the file is empty");
        }
        let format = match format {
            Some(format) => format,
            None => match sniff(path) {
                Ok(format) => format,
                Err(reason) => return self.problem(path, reason),
            },
        };
        let mtime = meta.modified().ok().map_or(0, |time| {
            let nanos = |d: std::time::Duration| i64::try_from(d.as_nanos());
            match time.duration_since(UNIX_EPOCH) {
                Ok(after) => nanos(after).unwrap_or(i64::MAX),
                Err(before) => nanos(before.duration()).map_or(i64::MIN, |n| -n),
            }
        });
        let path = path.to_path_buf();
        self.files.push(InputFile { path, size: meta.len(), mtime, format });
    }

    /// Leaves out files whose documents have other fields than the first file's.
    fn finish(mut self, paths: &[PathBuf]) -> Result<Inputs> {
        let Some(first) = self.files.first().map(|file| file.format) else {
            return Err(Error::invalid(match &self.problems[..] {
                [only] => format!("nothing to index in {}: {}", only.file, only.reason),
                [] => format!("nothing to index in {}", paths[0].display()),
                [first, more @ ..] => format!(
                    "nothing to index: {}: {} ({} more such problems)",
                    first.file,
                    first.reason,
                    more.len()
                ),
            }));
        };
        let fields = first.fields();
        let mut names: Vec<&str> = Vec::new();
        let mut files = Vec::with_capacity(self.files.len());
        for file in std::mem::take(&mut self.files) {
            let name = file.format.name();
            if !names.contains(&name) {
                if file.format.fields() != fields {
                    let other = first.name();
                    let reason =
                        format!("its format is {name}, that of the inputs {other}");
                    self.problem(&file.path, reason);
                    continue;
                }
                names.push(name);
            }
            files.push(file);
        }
        if u32::try_from(files.len()).is_err() {
            return Err(Error::invalid("more than 4294967295 input files"));
        }
        let total_bytes = files.iter().map(|file| file.size).sum();
        Ok(Inputs {
            files,
            fields,
            format_name: names.join(", "),
            default_indexes: first.default_indexes(),
            total_bytes,
            problems: self.problems,
            maps: Mutex::default(),
        })
    }
}

/// The format of a file by its first bytes, or why it has none.
fn sniff(path: &Path) -> Result<&'static dyn Format, String> {
    let mut head = Vec::with_capacity(HEAD);
    File::open(path)
        .and_then(|file| file.take(HEAD as u64).read_to_end(&mut head))
        .map_err(|error| format!("cannot be read: {error}"))?;
    let found = ALL.iter().copied().find(|format| format.sniff(path, &head));
    found.ok_or_else(|| {
        if memchr::memchr(0, &head).is_some() {
            "a binary file, not mail or any other known format".to_owned()
        } else {
            "not recognised as mail or any other known format; name the format if it is one"
                .to_owned()
        }
    })
}

fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(dir).map_err(Error::io("read directory", dir))?;
    let entries: std::io::Result<Vec<PathBuf>> =
        read.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(Error::io("read directory", dir))?;
    entries.sort_unstable_by(|a, b| {
        a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes())
    });
    Ok(entries)
}

fn is_directory(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|last| last == name) && path.is_dir()
}

fn is_maildir_part(path: &Path) -> bool {
    is_directory(path, "cur") || is_directory(path, "new")
}

/// What mail servers keep in a Maildir beside its messages.
fn is_of_server(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    ["dovecot", "courier", "maildir", "subscriptions"]
        .iter()
        .any(|start| name.starts_with(start.as_bytes()))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
