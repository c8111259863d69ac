//! The only memory maps, and so the only unsafe code, of this crate.
//!
//! Input and index files are mapped read-only. A map is page cache, not memory of ours,
//! and is not charged to the budget.

#![expect(unsafe_code, reason = "mapping a file is unsafe; see the SAFETY comment")]

use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap};

use crate::error::{Error, Result};

/// A whole file, mapped read-only.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    map: Option<Mmap>,
}

impl Mapped {
    /// Maps the file at `path`; an empty file gives an empty slice.
    pub fn open(path: &Path) -> Result<Mapped> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let len = file.metadata().map_err(Error::io("read the size of", path))?.len();
        let map = if len == 0 {
            None
        } else {
            // SAFETY: the map is private to this value and read-only; the slice is handed
            // out as plain bytes, of which every value is valid. That nobody shortens the
            // file meanwhile is a condition of use that the documentation states.
            let map = unsafe { Mmap::map(&file) };
            Some(map.map_err(Error::io("map", path))?)
        };
        Ok(Mapped { path: path.to_path_buf(), map })
    }

    /// Tells the kernel that reading goes from front to back. Only a hint: a kernel that
    /// does not take it is no error.
    pub fn sequential(&self) {
        if let Some(map) = &self.map {
            let _ = map.advise(Advice::Sequential);
        }
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_holds_the_file_and_an_empty_file_is_an_empty_slice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, b"abc").unwrap();
        assert_eq!(&*Mapped::open(&path).unwrap(), b"abc");
        std::fs::write(&path, b"").unwrap();
        assert!(Mapped::open(&path).unwrap().is_empty());
        let error = Mapped::open(&dir.path().join("none")).unwrap_err();
        assert!(error.to_string().starts_with("cannot open "), "{error}");
    }
}
