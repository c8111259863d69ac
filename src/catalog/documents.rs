//! The documents file: TID → input file, byte offset, length, date.
//!
//! Documents lie in TID order, in one block per TID block; an index of the blocks at the
//! end is searched in the mapped file, so opening costs nothing and a document costs one
//! block. About eight bytes per document of an mbox.
//!
//! ```text
//! header    magic "GINMILLD", format u32 = 1, zero u32
//! block …   entries, one after the other, see below
//! index     per block: TID block u32, entries u32, offset u64, XXH3 of its bytes u64
//! trailer   offset of the index u64, blocks u64, documents u64,
//!           XXH3 of the index and the three numbers before u64, magic "GINMILLD"
//! ```
//!
//! All numbers are little-endian. The checksum of a block is seeded with its TID block.
//! Entries are described in `entries.rs`.
//!
//! Workers encode the documents of a range they scan ([`RangeDocuments`]); the ranges
//! are appended in order, which copies bytes and keeps the memory small: the writer holds
//! one block, and 24 bytes of index per block.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::DOCUMENTS_FILE;
use super::entries::{Before, RANGE_BLOCK_HEADER};
pub use super::entries::{DocumentEntry, RangeDocuments};
use crate::error::{Error, ErrorKind, Result};
use crate::mapped::Mapped;
use crate::tid::{MAX_OFFSET, Tid};

const MAGIC: &[u8; 8] = b"GINMILLD";
const FORMAT: u32 = 1;
const HEADER: usize = 16;
const INDEX_ENTRY: usize = 24;
const TRAILER: usize = 40;

/// Writes a documents file, in TID order.
#[derive(Debug)]
pub struct DocumentsWriter {
    path: PathBuf,
    file: BufWriter<File>,
    /// Bytes written so far.
    at: u64,
    documents: u64,
    index: Vec<u8>,
    last: Tid,
    /// The block being filled by `add`.
    block: Vec<u8>,
    entries: u32,
    before: Before,
}

impl DocumentsWriter {
    /// A documents file in the directory `dir`.
    pub fn create(dir: &Path) -> Result<DocumentsWriter> {
        let path = dir.join(DOCUMENTS_FILE);
        let file = File::create_new(&path).map_err(Error::io("create", &path))?;
        let mut writer = DocumentsWriter {
            path,
            file: BufWriter::with_capacity(1 << 16, file),
            at: 0,
            documents: 0,
            index: Vec::new(),
            last: Tid::default(),
            block: Vec::new(),
            entries: 0,
            before: Before::default(),
        };
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&FORMAT.to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        writer.write(&header)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(Error::io("write", &self.path))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Adds a document; TIDs ascend.
    pub fn add(&mut self, tid: Tid, entry: &DocumentEntry) -> Result<()> {
        if tid.offset == 0 || tid.offset > MAX_OFFSET {
            return Err(Error::invalid(format!("{tid} does not name a document")));
        }
        if tid <= self.last {
            return Err(self.out_of_order(tid));
        }
        if tid.block != self.last.block {
            self.flush_block()?;
        }
        self.before.encode(tid.offset, entry, &mut self.block);
        self.entries += 1;
        self.documents += 1;
        self.last = tid;
        Ok(())
    }

    /// Adds the documents of a range, as [`RangeDocuments::into_bytes`] gave them.
    pub fn add_range(&mut self, range: &[u8]) -> Result<()> {
        self.add_range_at(0, range)
    }

    /// Adds the documents of a range whose own block numbers count from `first_block`.
    pub fn add_range_at(&mut self, first_block: u32, range: &[u8]) -> Result<()> {
        self.flush_block()?;
        let mut rest = range;
        while !rest.is_empty() {
            let wrong = || {
                let place = format!("byte {} of a range", range.len() - rest.len());
                Error::corrupt(&self.path, place, "a block of documents", "other bytes")
            };
            let header = rest.first_chunk::<RANGE_BLOCK_HEADER>().ok_or_else(wrong)?;
            let [block, entries, len] = [0, 4, 8].map(|at| u32_at(header, at));
            let end = RANGE_BLOCK_HEADER + len as usize;
            let bytes = rest.get(RANGE_BLOCK_HEADER..end).ok_or_else(wrong)?;
            let block = block.checked_add(first_block).ok_or_else(wrong)?;
            let last =
                u16::try_from(entries).ok().filter(|n| (1..=MAX_OFFSET).contains(n));
            let tid = Tid::new(block, last.ok_or_else(wrong)?);
            if self.last.offset != 0 && block <= self.last.block {
                return Err(self.out_of_order(tid));
            }
            self.write_block(block, entries, bytes)?;
            self.documents += u64::from(entries);
            self.last = tid;
            rest = &rest[end..];
        }
        Ok(())
    }

    fn out_of_order(&self, tid: Tid) -> Error {
        let previous = format!("document {}", self.last);
        ErrorKind::OutOfOrder { previous, got: format!("document {tid}") }.into()
    }

    fn flush_block(&mut self) -> Result<()> {
        if self.entries == 0 {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.block);
        self.write_block(self.last.block, self.entries, &bytes)?;
        bytes.clear();
        self.block = bytes;
        self.entries = 0;
        self.before = Before::default();
        Ok(())
    }

    fn write_block(&mut self, block: u32, entries: u32, bytes: &[u8]) -> Result<()> {
        let checksum = xxh3_64_with_seed(bytes, u64::from(block));
        self.index.extend_from_slice(&block.to_le_bytes());
        self.index.extend_from_slice(&entries.to_le_bytes());
        self.index.extend_from_slice(&self.at.to_le_bytes());
        self.index.extend_from_slice(&checksum.to_le_bytes());
        self.write(bytes)
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.index.capacity() + self.block.capacity() + self.file.capacity()
    }

    /// Documents so far.
    pub fn len(&self) -> u64 {
        self.documents
    }

    /// True before the first document.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Writes the index and sees to it that all is on disk.
    pub fn finish(mut self) -> Result<()> {
        self.flush_block()?;
        let blocks = (self.index.len() / INDEX_ENTRY) as u64;
        let mut end = std::mem::take(&mut self.index);
        for number in [self.at, blocks, self.documents] {
            end.extend_from_slice(&number.to_le_bytes());
        }
        let mut hash = Xxh3::new();
        hash.update(&end);
        end.extend_from_slice(&hash.digest().to_le_bytes());
        end.extend_from_slice(MAGIC);
        self.write(&end)?;
        self.file.flush().map_err(Error::io("write", &self.path))?;
        self.file.get_ref().sync_all().map_err(Error::io("sync", &self.path))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// A documents file to read from; cheap to open, shared by threads.
#[derive(Debug)]
pub struct Documents {
    map: Mapped,
    index_at: usize,
    blocks: usize,
    documents: u64,
}

/// A block's line of the index.
#[derive(Clone, Copy)]
struct BlockEntry {
    block: u32,
    entries: u32,
    start: usize,
    end: usize,
    checksum: u64,
}

impl Documents {
    /// The documents file of the archive directory `dir`; its index is verified, its
    /// blocks when they are read.
    pub fn open(dir: &Path) -> Result<Documents> {
        let path = dir.join(DOCUMENTS_FILE);
        let map = Mapped::open(&path)?;
        let wrong = |place: &str, expected: &str, found: String| {
            Error::corrupt(&path, place, expected, found)
        };
        if map.len() < HEADER + TRAILER {
            let found = format!("{} bytes", map.len());
            return Err(wrong("size", "at least a header and a trailer", found));
        }
        if !map.starts_with(MAGIC) {
            return Err(wrong(
                "byte 0",
                "the magic GINMILLD",
                "other bytes".to_owned(),
            ));
        }
        match u32_at(&map, 8) {
            FORMAT => {}
            format => {
                return Err(wrong(
                    "byte 8",
                    &format!("format {FORMAT}"),
                    format.to_string(),
                ));
            }
        }
        if u32_at(&map, 12) != 0 {
            return Err(wrong("byte 12", "zero", u32_at(&map, 12).to_string()));
        }
        let trailer = map.len() - TRAILER;
        if !map.ends_with(MAGIC) {
            let found = "other bytes (a file cut short?)".to_owned();
            return Err(wrong("its end", "the magic GINMILLD", found));
        }
        let [index_at, blocks, documents, checksum] =
            [0, 8, 16, 24].map(|at| u64_at(&map, trailer + at));
        let fits = blocks
            .checked_mul(INDEX_ENTRY as u64)
            .and_then(|bytes| bytes.checked_add(index_at))
            .is_some_and(|end| end == trailer as u64 && index_at >= HEADER as u64);
        if !fits {
            let found = format!("{blocks} blocks from byte {index_at} on");
            return Err(wrong("trailer", "an index that ends at the trailer", found));
        }
        let index_at = usize::try_from(index_at).expect("within the map");
        let computed = {
            let mut hash = Xxh3::new();
            hash.update(&map[index_at..trailer + 24]);
            hash.digest()
        };
        if computed != checksum {
            let found = format!("{checksum:016x}");
            return Err(wrong("index", &format!("checksum {computed:016x}"), found));
        }
        let blocks = usize::try_from(blocks).expect("within the map");
        Ok(Documents { map, index_at, blocks, documents })
    }

    /// Number of documents.
    pub fn len(&self) -> u64 {
        self.documents
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.documents == 0
    }

    fn entry(&self, n: usize) -> BlockEntry {
        let line = &self.map[self.index_at + n * INDEX_ENTRY..];
        let start_of =
            |line: &[u8]| usize::try_from(u64_at(line, 8)).unwrap_or(usize::MAX);
        let end = if n + 1 < self.blocks {
            start_of(&line[INDEX_ENTRY..])
        } else {
            self.index_at
        };
        BlockEntry {
            block: u32_at(line, 0),
            entries: u32_at(line, 4),
            start: start_of(line),
            end,
            checksum: u64_at(line, 16),
        }
    }

    /// The verified bytes of a block.
    fn bytes(&self, at: BlockEntry) -> Result<&[u8]> {
        let wrong = |expected: &str, found: String| {
            let place = format!("documents of TID block {}", at.block);
            Error::corrupt(self.map.path(), place, expected, found)
        };
        let bytes = self.map[..self.index_at]
            .get(at.start..at.end)
            .filter(|_| at.start >= HEADER)
            .ok_or_else(|| {
                wrong(
                    "bytes within the file",
                    format!("bytes {} to {}", at.start, at.end),
                )
            })?;
        let computed = xxh3_64_with_seed(bytes, u64::from(at.block));
        if computed != at.checksum {
            let found = format!("{:016x}", at.checksum);
            return Err(wrong(&format!("checksum {computed:016x}"), found));
        }
        Ok(bytes)
    }

    /// Decodes a block; `out` gets its documents, ascending.
    fn decode(
        &self,
        at: BlockEntry,
        out: &mut Vec<(Tid, DocumentEntry)>,
    ) -> Result<()> {
        let bytes = self.bytes(at)?;
        let wrong = |expected: String, found: String| {
            let place = format!("documents of TID block {}", at.block);
            Error::corrupt(self.map.path(), place, expected, found)
        };
        let mut before = Before::default();
        let mut position = 0;
        let mut count = 0;
        while position < bytes.len() {
            let (offset, entry) =
                before.decode(bytes, &mut position).ok_or_else(|| {
                    wrong(
                        "an entry".to_owned(),
                        format!("other bytes near byte {position}"),
                    )
                })?;
            out.push((Tid::new(at.block, offset), entry));
            count += 1;
        }
        if count != at.entries {
            return Err(wrong(format!("{} entries", at.entries), count.to_string()));
        }
        Ok(())
    }

    /// The documents of a TID block, ascending; empty when there are none.
    pub fn block(&self, block: u32) -> Result<Vec<(Tid, DocumentEntry)>> {
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle).block < block {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut out = Vec::new();
        if low < self.blocks {
            let at = self.entry(low);
            if at.block == block {
                self.decode(at, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Where a document lies; `None` when no document has this TID.
    pub fn get(&self, tid: Tid) -> Result<Option<DocumentEntry>> {
        let block = self.block(tid.block)?;
        let found = block.binary_search_by_key(&tid, |(tid, _)| *tid);
        Ok(found.ok().map(|n| block[n].1))
    }

    /// All documents in TID order; ends after the first error.
    pub fn iter(&self) -> DocumentsIter<'_> {
        DocumentsIter { documents: self, next: 0, block: Vec::new(), at: 0 }
    }

    /// Verifies the whole file; `files` is the number of input files in the catalog.
    pub fn check(&self, files: usize) -> Result<()> {
        let path = self.map.path();
        let mut previous: Option<u32> = None;
        let mut expected_start = HEADER;
        let mut count = 0;
        let mut block = Vec::new();
        for n in 0..self.blocks {
            let at = self.entry(n);
            let place = format!("line {n} of the index");
            if previous.is_some_and(|previous| previous >= at.block) {
                let found = format!("{} after {}", at.block, previous.unwrap_or(0));
                return Err(Error::corrupt(path, place, "ascending TID blocks", found));
            }
            if at.start != expected_start {
                let expected = format!("byte {expected_start}");
                return Err(Error::corrupt(
                    path,
                    place,
                    expected,
                    at.start.to_string(),
                ));
            }
            block.clear();
            self.decode(at, &mut block)?;
            if let Some((tid, entry)) =
                block.iter().find(|(_, e)| e.file as usize >= files)
            {
                let place = format!("document {tid}");
                let expected = format!("one of {files} input files");
                return Err(Error::corrupt(
                    path,
                    place,
                    expected,
                    entry.file.to_string(),
                ));
            }
            count += block.len() as u64;
            expected_start = at.end;
            previous = Some(at.block);
        }
        if expected_start != self.index_at {
            let expected = format!("blocks up to the index at byte {}", self.index_at);
            return Err(Error::corrupt(
                path,
                "blocks",
                expected,
                expected_start.to_string(),
            ));
        }
        if count != self.documents {
            let expected = format!("{} documents", self.documents);
            return Err(Error::corrupt(path, "trailer", expected, count.to_string()));
        }
        Ok(())
    }
}

/// Iterator over a documents file; see [`Documents::iter`].
#[derive(Debug)]
pub struct DocumentsIter<'a> {
    documents: &'a Documents,
    next: usize,
    block: Vec<(Tid, DocumentEntry)>,
    at: usize,
}

impl Iterator for DocumentsIter<'_> {
    type Item = Result<(Tid, DocumentEntry)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at == self.block.len() {
            if self.next == self.documents.blocks {
                return None;
            }
            self.block.clear();
            self.at = 0;
            let at = self.documents.entry(self.next);
            self.next += 1;
            if let Err(error) = self.documents.decode(at, &mut self.block) {
                self.block.clear();
                self.next = self.documents.blocks;
                return Some(Err(error));
            }
        }
        self.at += 1;
        Some(Ok(self.block[self.at - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u64) -> DocumentEntry {
        DocumentEntry {
            file: (n / 700) as u32,
            offset: (n % 700) * 1000,
            len: if n.is_multiple_of(50) { 990 } else { 1000 },
            date: (!n.is_multiple_of(7)).then_some(1_500_000_000 + n as i64 * 61),
        }
    }

    fn write(dir: &Path, documents: u64) -> Vec<(Tid, DocumentEntry)> {
        let all: Vec<_> =
            (0..documents).map(|n| (Tid::numbered(3, n), entry(n))).collect();
        let mut writer = DocumentsWriter::create(dir).unwrap();
        all.iter().for_each(|(tid, entry)| writer.add(*tid, entry).unwrap());
        writer.finish().unwrap();
        all
    }

    #[test]
    fn documents_come_back_by_tid_and_in_order() {
        for count in [0, 1, 255, 256, 257, 3000] {
            let dir = tempfile::tempdir().unwrap();
            let all = write(dir.path(), count);
            let documents = Documents::open(dir.path()).unwrap();
            assert_eq!(documents.len(), count);
            let back: Result<Vec<_>> = documents.iter().collect();
            assert_eq!(back.unwrap(), all);
            for (tid, entry) in &all {
                assert_eq!(documents.get(*tid).unwrap(), Some(*entry));
            }
            for nobody in [Tid::default(), Tid::new(2, 1), Tid::numbered(3, count)] {
                assert_eq!(documents.get(nobody).unwrap(), None, "{nobody}");
            }
            documents.check(5).unwrap();
        }
    }

    #[test]
    fn a_document_of_an_mbox_takes_about_eight_bytes() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 3000);
        let size = std::fs::metadata(dir.path().join(DOCUMENTS_FILE)).unwrap().len();
        assert!(size < 3000 * 8, "{size}");
    }

    #[test]
    fn ranges_of_workers_give_the_file_that_single_documents_give() {
        let (single, ranged, rebased) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let mut writer = DocumentsWriter::create(single.path()).unwrap();
        let mut by_range = DocumentsWriter::create(ranged.path()).unwrap();
        let mut by_local = DocumentsWriter::create(rebased.path()).unwrap();
        let mut block = 0;
        for documents in [1, 256, 600, 0, 257] {
            let mut range = RangeDocuments::new(block);
            let mut local = RangeDocuments::new(0);
            for n in 0..documents {
                let tid = range.push(&entry(n));
                local.push(&entry(n));
                writer.add(tid, &entry(n)).unwrap();
            }
            by_local.add_range_at(block, &local.into_bytes()).unwrap();
            block += range.blocks();
            by_range.add_range(&range.into_bytes()).unwrap();
        }
        for writer in [writer, by_range, by_local] {
            writer.finish().unwrap();
        }
        let read = |dir: &tempfile::TempDir| {
            std::fs::read(dir.path().join(DOCUMENTS_FILE)).unwrap()
        };
        assert!(read(&single) == read(&ranged) && read(&single) == read(&rebased));
        Documents::open(single.path()).unwrap().check(2).unwrap();
    }

    #[test]
    fn extreme_figures_and_sparse_tids_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let extreme = [
            (Tid::new(0, 5), 9, 1 << 60, 1 << 40, Some(i64::MIN)),
            (Tid::new(0, 2047), 0, 0, 0, Some(i64::MAX)),
            (Tid::new(u32::MAX, 1), u32::MAX, u64::MAX - 9, 9, None),
        ]
        .map(|(tid, file, offset, len, date)| {
            (tid, DocumentEntry { file, offset, len, date })
        });
        let mut writer = DocumentsWriter::create(dir.path()).unwrap();
        extreme.iter().for_each(|(tid, entry)| writer.add(*tid, entry).unwrap());
        let error = writer.add(Tid::new(8, 1), &extreme[0].1).unwrap_err();
        assert!(error.to_string().contains("out of order"), "{error}");
        assert!(writer.add(Tid::new(u32::MAX, 2048), &extreme[0].1).is_err());
        writer.finish().unwrap();
        let documents = Documents::open(dir.path()).unwrap();
        let back: Result<Vec<_>> = documents.iter().collect();
        assert_eq!(back.unwrap(), extreme);
        let error = documents.check(10).unwrap_err();
        assert!(error.to_string().contains("one of 10 input files"), "{error}");
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_found() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 300);
        let path = dir.path().join(DOCUMENTS_FILE);
        let good = std::fs::read(&path).unwrap();
        let check = || Documents::open(dir.path()).and_then(|d| d.check(5));
        check().unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            std::fs::write(&path, &bad).unwrap();
            let error = check().expect_err(&format!("byte {at}"));
            assert!(matches!(error.kind(), ErrorKind::Corrupt { .. }), "{error}");
        }
        for len in 0..good.len() {
            std::fs::write(&path, &good[..len]).unwrap();
            assert!(check().is_err(), "cut at {len}");
        }
    }
}
