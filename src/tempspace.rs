//! Temporary files: made, counted, limited and removed in one place.
//!
//! A file of a [`TempSpace`] has no name on disk from the moment it is opened, so it is
//! gone after success, error, panic and kill alike. Every byte written and read passes
//! through [`TempFile`], which counts it; a write that would cross the limit fails
//! before it is made.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// What temporary files cost, in files and bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub struct TempUsage {
    /// Files made.
    pub files: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes read back.
    pub read: u64,
    /// Most bytes on disk at a time.
    pub peak: u64,
    /// The limit on bytes on disk, if there is one.
    pub limit: Option<u64>,
}

/// A directory for temporary files, with counters and a limit.
#[derive(Debug)]
pub struct TempSpace {
    directory: PathBuf,
    limit: Option<u64>,
    files: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
    on_disk: AtomicU64,
    peak: AtomicU64,
}

impl TempSpace {
    /// Space in `directory`, tried out with a file at once, so that an unwritable one
    /// fails before the work and not after it.
    pub fn create(directory: &Path, limit: Option<u64>) -> Result<Arc<TempSpace>> {
        let space = Arc::new(TempSpace {
            directory: directory.to_path_buf(),
            limit,
            files: AtomicU64::new(0),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            on_disk: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        });
        drop(space.file()?);
        space.files.store(0, Ordering::Relaxed);
        Ok(space)
    }

    /// A new, empty, nameless file.
    pub fn file(self: &Arc<Self>) -> Result<TempFile> {
        let file = tempfile::tempfile_in(&self.directory)
            .map_err(Error::io("create a temporary file in", &self.directory))?;
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(TempFile { space: Arc::clone(self), file, len: AtomicU64::new(0) })
    }

    /// The counters so far.
    pub fn usage(&self) -> TempUsage {
        TempUsage {
            files: self.files.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            read: self.read.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
            limit: self.limit,
        }
    }

    /// Bytes on disk now.
    pub fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }
}

/// One nameless temporary file, appended to by one writer, read at any offset by many.
#[derive(Debug)]
pub struct TempFile {
    space: Arc<TempSpace>,
    file: File,
    len: AtomicU64,
}

impl TempFile {
    /// Appends bytes; returns the offset they begin at.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let space = &self.space;
        let wanted = bytes.len() as u64;
        let used = space.on_disk.fetch_add(wanted, Ordering::Relaxed);
        if let Some(limit) = space.limit.filter(|limit| used + wanted > *limit) {
            space.on_disk.fetch_sub(wanted, Ordering::Relaxed);
            return Err(ErrorKind::TempLimit { limit, used, wanted }.into());
        }
        space.peak.fetch_max(used + wanted, Ordering::Relaxed);
        let at = self.len.fetch_add(wanted, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, at)
            .map_err(Error::io("write a temporary file in", &space.directory))?;
        space.written.fetch_add(wanted, Ordering::Relaxed);
        Ok(at)
    }

    /// Fills `buffer` from the bytes at `offset`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(Error::io("read a temporary file in", &self.space.directory))?;
        self.space.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes in the file.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// True before the first append.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The directory, for error messages.
    pub fn directory(&self) -> &Path {
        &self.space.directory
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.space.on_disk.fetch_sub(self.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_before_the_write_and_space_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let space = TempSpace::create(dir.path(), Some(10)).unwrap();
        let mut file = space.file().unwrap();
        assert_eq!(file.append(b"12345678").unwrap(), 0);
        let error = file.append(b"901").unwrap_err();
        assert!(matches!(
            error.kind(),
            ErrorKind::TempLimit { limit: 10, used: 8, wanted: 3 }
        ));
        let mut back = [0; 3];
        file.read_at(&mut back, 5).unwrap();
        assert_eq!(&back, b"678");
        drop(file);
        space.file().unwrap().append(b"1234567890").unwrap();
        let usage = space.usage();
        assert_eq!((usage.written, usage.read, usage.peak), (18, 3, 10));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
