//! Inputs: which files there are, where their messages begin, what a message says.
//!
//! [`Inputs`] finds the files of the given paths and sniffs their format; `ranges`
//! hands out runs of consecutive items; a [`Format`] finds item boundaries and turns an
//! item's bytes into a [`Document`].
//!
//! To add a format: one file with a type that implements [`Format`], one line in [`ALL`].

use std::path::Path;

use crate::document::{Document, Field};
use crate::error::Result;

/// Every input format, in the order in which they are sniffed.
pub static ALL: &[&dyn Format] = &[];

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

    /// The first item of `text` that begins at or after `at`: where it begins and ends.
    /// `None` when there is no further one.
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
