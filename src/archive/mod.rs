//! Inputs: which files there are, where their messages begin, what a message says.
//!
//! [`Inputs`] finds the files of the given paths and decides the format of each; it
//! hands items' bytes to readers ([`ItemReader`]). [`BlockRanges`] walks the files in
//! order and hands out runs of consecutive items with their TIDs. A [`Format`] finds
//! item boundaries and turns an item's bytes into a [`Document`]; the mail formats share
//! `message` (a message's fields), `headers`, `mime` and `decode`.
//!
//! To add a format: one file with a type that implements [`Format`], one line in [`ALL`].

use std::fmt;
use std::path::Path;

use crate::document::{Document, Field};
use crate::error::Result;

mod date;
mod decode;
mod headers;
mod html;
mod inputs;
pub mod maildir;
pub mod mbox;
mod message;
mod mime;
mod ranges;
#[cfg(test)]
mod tests;
pub mod text;

pub use inputs::{InputFile, Inputs, Item, ItemReader};
pub use ranges::{BlockRange, BlockRanges};

/// Every input format, in the order in which they are sniffed.
pub static ALL: &[&dyn Format] =
    &[&mbox::Mbox, &maildir::Maildir, &maildir::Eml, &text::Text];

/// The format of that name.
pub fn find(name: &str) -> Option<&'static dyn Format> {
    ALL.iter().copied().find(|format| format.name() == name)
}

/// An input format.
pub trait Format: Send + Sync {
    /// As `--format` names it.
    fn name(&self) -> &'static str;

    /// One line for help texts.
    fn summary(&self) -> &'static str;

    /// The fields of its documents, by position in `Document::values`.
    fn fields(&self) -> Vec<Field>;

    /// Index definitions to build when the user names none.
    fn default_indexes(&self) -> &'static [&'static str];

    /// Whether a file that begins with `head` is of this format.
    fn sniff(&self, path: &Path, head: &[u8]) -> bool;

    /// Whether each file is one item, so that nobody needs to look into it for
    /// boundaries. [`Format::split`] is then never called.
    fn whole_files(&self) -> bool {
        false
    }

    /// The first item of `text`, a whole file, that begins at or after `at`, which is 0
    /// or where the item before ended: where it begins and ends. `None` when there is no
    /// further one. Must run at the speed of memory, and look at no byte more often than
    /// a few times however the calls go: one thread splits for all workers.
    fn split(&self, text: &[u8], at: usize) -> Option<(usize, usize)>;

    /// Fills the document from an item's bytes; only the fields at positions marked in
    /// `wanted` need a value. Must leave nothing of the document before in `document`.
    fn parse<'a>(
        &self,
        raw: &'a [u8],
        wanted: &[bool],
        document: &mut Document<'a>,
    ) -> Result<()>;
}

impl fmt::Debug for dyn Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
