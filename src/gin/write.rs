//! Block numbers in order, pages in any order, large writes.
//!
//! Blocks are given out one after the other. The pages of the latest of them are kept
//! in a buffer and leave it together; a page that comes later than that, because its
//! right link or its parent was not known before, is written alone over whatever took
//! its place; that every block has got its page is asserted in the end. Checksums are
//! set here, and only here.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::gin::layout::{CHECKSUM_AT, INVALID_BLOCK, PAGE_SIZE, ROOT_BLOCK, checksum};
use crate::gin::page::PageBuf;

/// Pages in the buffer: 512 kB.
pub const BUFFER_PAGES: u32 = 64;

/// Writes the pages of one new file.
#[derive(Debug)]
pub struct PageWriter {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Block of the buffer's first page.
    base: u32,
    /// The next block to give out.
    next: u32,
    /// Pages that came so far.
    written: u32,
}

impl PageWriter {
    /// Creates or empties the file; metapage and root have their blocks already.
    pub fn create(path: &Path) -> Result<PageWriter> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(Error::io("create", path))?;
        Ok(PageWriter {
            file,
            path: path.to_path_buf(),
            buffer: vec![0; BUFFER_PAGES as usize * PAGE_SIZE],
            base: 0,
            next: ROOT_BLOCK + 1,
            written: 0,
        })
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives out the next block.
    pub fn allocate(&mut self) -> Result<u32> {
        if self.next == INVALID_BLOCK {
            return Err(Error::invalid(format!(
                "{} would exceed 2^32 - 1 pages",
                self.path.display()
            )));
        }
        if self.next - self.base == BUFFER_PAGES {
            self.flush()?;
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    fn write_at(&self, bytes: &[u8], block: u32) -> Result<()> {
        let at = u64::from(block) * PAGE_SIZE as u64;
        self.file.write_all_at(bytes, at).map_err(Error::io("write", &self.path))
    }

    fn flush(&mut self) -> Result<()> {
        let length = (self.next - self.base) as usize * PAGE_SIZE;
        self.write_at(&self.buffer[..length], self.base)?;
        self.base = self.next;
        Ok(())
    }

    /// Writes a page to a block that was given out; once for each.
    pub fn write(&mut self, block: u32, page: &mut PageBuf) -> Result<()> {
        debug_assert!(block < self.next);
        page.put(CHECKSUM_AT, &checksum(page.bytes(), block).to_le_bytes());
        self.written += 1;
        if let Some(place) = block.checked_sub(self.base) {
            let at = place as usize * PAGE_SIZE;
            self.buffer[at..at + PAGE_SIZE].copy_from_slice(page.bytes());
            Ok(())
        } else {
            self.write_at(page.bytes(), block)
        }
    }

    /// Pages of the file, written or not yet.
    pub fn pages(&self) -> u32 {
        self.next
    }

    /// Writes what is left in the buffer; every block must have got its page.
    pub fn finish(mut self) -> Result<File> {
        assert_eq!(self.written, self.next, "every block got its page, once");
        self.flush()?;
        Ok(self.file)
    }
}
