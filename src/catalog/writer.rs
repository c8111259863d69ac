//! Making an archive directory: aside, synced, then put in place in one step.
//!
//! A build writes into `.NAME.building-PID-N` beside its output, so that whoever looks at
//! the output sees what was there before or the finished archive, and after a kill at any
//! moment one of the two. A lock on a file inside tells a build that is alive (a second
//! one of the same output is refused) from a dead one, whose remains are removed.
//!
//! An archive that is replaced changes places with the new one in one system call and is
//! removed then. A file system that cannot exchange (NFS) gets two renames; a kill between
//! them leaves the previous archive as `.NAME.replaced-PID-N`, and the next build of this
//! output puts it back. Short steps that look at or change what lies in the parent
//! directory are made under a lock on it, where the file system has one for directories.
//!
//! Only what ginmill made is ever replaced: a directory with a catalog and nothing in it
//! that an archive does not have.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;

use super::{
    CATALOG_FILE, Catalog, DOCUMENTS_FILE, DocumentsWriter, INDEX_EXTENSION,
    REPORT_FILE, index_file,
};
use crate::error::{Error, Result};

const LOCK_FILE: &str = ".lock";
const BUILDING: &str = "building";
const REPLACED: &str = "replaced";

/// An archive directory that is being made; dropped without [`ArchiveWriter::publish`]
/// it leaves nothing.
#[derive(Debug)]
pub struct ArchiveWriter {
    target: PathBuf,
    parent: PathBuf,
    aside: PathBuf,
    force: bool,
    /// Held as long as the build is alive.
    lock: Option<File>,
    published: bool,
}

impl ArchiveWriter {
    /// Begins the archive that will appear at `output`. Fails when something is there
    /// that must not be replaced: anything without `force`, anything but an archive with.
    pub fn create(output: &Path, force: bool) -> Result<ArchiveWriter> {
        let (parent, name) = place(output)?;
        let target = parent.join(&name);
        check_replaceable(&target, force)?;
        let _held = lock_directory(&parent)?;
        clear_remains(&parent, &name, &target)?;
        let aside = parent.join(sibling(&name, BUILDING));
        fs::create_dir(&aside).map_err(Error::io("create the directory", &aside))?;
        let mut writer = ArchiveWriter {
            target,
            parent,
            aside,
            force,
            lock: None,
            published: false,
        };
        let path = writer.aside.join(LOCK_FILE);
        let lock = File::create_new(&path).map_err(Error::io("create", &path))?;
        lock.lock().map_err(Error::io("lock", &path))?;
        writer.lock = Some(lock);
        Ok(writer)
    }

    /// The directory to write into.
    pub fn dir(&self) -> &Path {
        &self.aside
    }

    /// Where the index of that name is to be written.
    pub fn index_path(&self, name: &str) -> PathBuf {
        self.aside.join(index_file(name))
    }

    /// Begins the documents file.
    pub fn documents(&self) -> Result<DocumentsWriter> {
        DocumentsWriter::create(&self.aside)
    }

    /// Writes the catalog and the report, sees to it that everything is on disk, and puts
    /// the directory in place. The documents file and all index files must be there.
    pub fn publish(mut self, catalog: &Catalog, report: &impl Serialize) -> Result<()> {
        self.write(CATALOG_FILE, &catalog.to_json())?;
        let mut text = serde_json::to_vec_pretty(report)
            .map_err(|error| Error::invalid(error.to_string()))?;
        text.push(b'\n');
        self.write(REPORT_FILE, &text)?;
        for file in catalog.files()? {
            let path = self.aside.join(file);
            let file = File::open(&path).map_err(Error::io("open", &path))?;
            file.sync_all().map_err(Error::io("sync", &path))?;
        }
        let _held = lock_directory(&self.parent)?;
        check_replaceable(&self.target, self.force)?;
        let lock = self.aside.join(LOCK_FILE);
        fs::remove_file(&lock).map_err(Error::io("remove", &lock))?;
        sync_directory(&self.aside)?;
        self.put_in_place()?;
        self.published = true;
        sync_directory(&self.parent)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.aside.join(name);
        let mut file = File::create_new(&path).map_err(Error::io("create", &path))?;
        file.write_all(bytes).map_err(Error::io("write", &path))
    }

    fn put_in_place(&self) -> Result<()> {
        let failed = Error::io("put the finished archive at", &self.target);
        if !self.target.exists() {
            return match rename(&self.aside, &self.target, RenameFlags::NOREPLACE) {
                Err(error) if unsupported(&error) => {
                    fs::rename(&self.aside, &self.target).map_err(failed)
                }
                done => done.map_err(failed),
            };
        }
        match rename(&self.aside, &self.target, RenameFlags::EXCHANGE) {
            Err(error) if unsupported(&error) => self.replace_in_two_steps(),
            Err(error) => Err(failed(error)),
            // The old archive has our name aside now. That it cannot be removed is no
            // failure of this build; the next one tries again.
            Ok(()) => {
                let _ = fs::remove_dir_all(&self.aside);
                Ok(())
            }
        }
    }

    fn replace_in_two_steps(&self) -> Result<()> {
        let name = self.target.file_name().expect("checked when the build began");
        let old = self.parent.join(sibling(name, REPLACED));
        fs::rename(&self.target, &old)
            .map_err(Error::io("move aside", &self.target))?;
        if let Err(error) = fs::rename(&self.aside, &self.target) {
            fs::rename(&old, &self.target).map_err(Error::io("move back", &old))?;
            return Err(Error::io("put the finished archive at", &self.target)(error));
        }
        let _ = fs::remove_dir_all(&old);
        Ok(())
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        if !self.published {
            // Nothing better can be done here; the next build removes what stays.
            let _ = fs::remove_dir_all(&self.aside);
        }
    }
}

/// The directory that will hold the output, and the output's name in it.
fn place(output: &Path) -> Result<(PathBuf, OsString)> {
    // A link to an archive stands for the archive.
    let followed = match fs::canonicalize(output) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => output.to_path_buf(),
        Err(error) => return Err(Error::io("look at", output)(error)),
    };
    let name = followed.file_name().ok_or_else(|| {
        Error::invalid(format!("{} cannot be the name of an archive", output.display()))
    })?;
    let parent = match followed.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent)
        .map_err(Error::io("find the directory of the output,", parent))?;
    Ok((parent, name.to_owned()))
}

/// `.NAME.WHAT-PID-N`, never used before by this process.
fn sibling(name: &OsStr, what: &str) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut sibling = prefix(name, what);
    sibling.push(format!("{}-{n}", std::process::id()));
    sibling
}

fn prefix(name: &OsStr, what: &str) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(format!(".{what}-"));
    prefix
}

/// Fails unless an archive may appear at `target`.
fn check_replaceable(target: &Path, force: bool) -> Result<()> {
    let shown = target.display();
    let metadata = match fs::symlink_metadata(target) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("look at", target)(error)),
    };
    let refuse = |what: String| {
        Err(Error::invalid(format!(
            "{shown} exists and is not a ginmill archive ({what}); it is not replaced"
        )))
    };
    if !metadata.is_dir() {
        return refuse("it is not a directory".to_owned());
    }
    if !target.join(CATALOG_FILE).is_file() {
        return refuse(format!("it has no {CATALOG_FILE}"));
    }
    for entry in fs::read_dir(target).map_err(Error::io("list", target))? {
        let path = entry.map_err(Error::io("list", target))?.path();
        let ours = path.file_name().is_some_and(|name| {
            [CATALOG_FILE, DOCUMENTS_FILE, REPORT_FILE].iter().any(|ours| name == *ours)
        }) || path
            .extension()
            .is_some_and(|extension| extension == INDEX_EXTENSION);
        if !ours || path.is_dir() {
            return refuse(format!("it holds {}", path.display()));
        }
    }
    if !force {
        return Err(Error::invalid(format!(
            "the archive {shown} exists already; --force replaces it"
        )));
    }
    Ok(())
}

/// Removes what dead builds of this output left; refuses while one is alive.
fn clear_remains(parent: &Path, name: &OsStr, target: &Path) -> Result<()> {
    for path in siblings(parent, name, BUILDING)? {
        match File::options().write(true).open(path.join(LOCK_FILE)) {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::invalid(format!(
                        "another ginmill is building {} right now (in {})",
                        target.display(),
                        path.display()
                    )));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(Error::io("lock a file in", &path)(error));
                }
            },
            // Killed before it had its lock, or after it had let go of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("open the lock in", &path)(error)),
        }
        fs::remove_dir_all(&path)
            .map_err(Error::io("remove what a dead build left,", &path))?;
    }
    for path in siblings(parent, name, REPLACED)? {
        if target.exists() {
            fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        } else {
            fs::rename(&path, target).map_err(Error::io("move back", &path))?;
        }
    }
    Ok(())
}

/// Directories `.NAME.WHAT-…` whose end is one that [`sibling`] makes.
fn siblings(parent: &Path, name: &OsStr, what: &str) -> Result<Vec<PathBuf>> {
    let prefix = prefix(name, what);
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).map_err(Error::io("list", parent))? {
        let entry = entry.map_err(Error::io("list", parent))?;
        let name = entry.file_name();
        let end = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let made = end.is_some_and(|end| {
            !end.is_empty() && end.iter().all(|b| b.is_ascii_digit() || *b == b'-')
        });
        if made && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Holds the directory until dropped. Some file systems lock no directories; there, two
/// builds of one output that begin in the same moment may both go on, and the one that
/// ends first wins.
fn lock_directory(path: &Path) -> Result<Option<File>> {
    let directory = File::open(path).map_err(Error::io("open", path))?;
    Ok(directory.lock().is_ok().then_some(directory))
}

fn sync_directory(path: &Path) -> Result<()> {
    let directory = File::open(path).map_err(Error::io("open", path))?;
    directory.sync_all().map_err(Error::io("sync", path))
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, flags)?)
}

/// The file system or the kernel does not know these kinds of rename.
fn unsupported(error: &io::Error) -> bool {
    let codes =
        [rustix::io::Errno::INVAL, rustix::io::Errno::NOSYS, rustix::io::Errno::NOTSUP];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::a_catalog;

    /// Publishes an archive whose index file holds `content`.
    fn publish(output: &Path, force: bool, content: &str) -> Result<()> {
        let writer = ArchiveWriter::create(output, force)?;
        writer.documents()?.finish()?;
        fs::write(writer.index_path("x"), content).unwrap();
        writer.publish(&a_catalog(), &serde_json::json!({"ginmill_report": 1}))
    }

    fn content(output: &Path) -> String {
        Catalog::open(output).unwrap();
        fs::read_to_string(output.join("x.gin")).unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_published_archive_is_complete_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.gin");
        publish(&output, false, "1").unwrap();
        assert_eq!(content(&output), "1");
        assert_eq!(names(dir.path()), ["a.gin"]);
        assert_eq!(
            names(&output),
            ["catalog.json", "documents", "report.json", "x.gin"]
        );
    }

    #[test]
    fn an_archive_is_replaced_by_force_only_and_other_things_never() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.gin");
        publish(&output, false, "1").unwrap();
        let error = publish(&output, false, "2").unwrap_err();
        assert!(error.to_string().contains("--force replaces it"), "{error}");
        assert_eq!(content(&output), "1");
        publish(&output, true, "2").unwrap();
        assert_eq!(content(&output), "2");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&output, &link).unwrap();
        publish(&link, true, "3").unwrap();
        assert_eq!(content(&output), "3");
        assert_eq!(names(dir.path()), ["a.gin", "link"]);

        fs::write(output.join("letter.txt"), "mine").unwrap();
        let (file, empty) = (dir.path().join("file"), dir.path().join("empty"));
        fs::write(&file, "mine").unwrap();
        fs::create_dir(&empty).unwrap();
        for (path, reason) in [
            (&output, "letter.txt"),
            (&file, "not a directory"),
            (&empty, "catalog.json"),
        ] {
            for force in [false, true] {
                let error = publish(path, force, "4").unwrap_err().to_string();
                assert!(error.contains(reason), "{error}");
            }
        }
        assert_eq!(names(dir.path()), ["a.gin", "empty", "file", "link"]);
        assert!(publish(&dir.path().join("none/a.gin"), false, "1").is_err());
        assert!(publish(Path::new("/"), false, "1").is_err());
    }

    #[test]
    fn two_steps_replace_an_archive_where_directories_cannot_change_places() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.gin");
        publish(&output, false, "1").unwrap();
        let mut writer = ArchiveWriter::create(&output, true).unwrap();
        fs::write(writer.index_path("x"), "2").unwrap();
        writer.replace_in_two_steps().unwrap();
        writer.published = true;
        assert_eq!(fs::read_to_string(output.join("x.gin")).unwrap(), "2");
        assert_eq!(names(dir.path()), ["a.gin"]);
    }

    #[test]
    fn remains_of_dead_builds_are_removed_and_a_living_build_is_respected() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.gin");
        for (remains, lock) in
            [(".a.gin.building-1-0", true), (".a.gin.building-2-0", false)]
        {
            let remains = dir.path().join(remains);
            fs::create_dir(&remains).unwrap();
            fs::write(remains.join("x.gin"), "half").unwrap();
            if lock {
                fs::write(remains.join(LOCK_FILE), "").unwrap();
            }
        }
        for others in [".b.gin.building-1-0", ".a.gin.building-mine"] {
            fs::create_dir(dir.path().join(others)).unwrap();
        }
        let alive = ArchiveWriter::create(&output, false).unwrap();
        assert_eq!(names(dir.path()).len(), 3, "{:?}", names(dir.path()));
        let error = ArchiveWriter::create(&output, false).unwrap_err();
        assert!(
            error.to_string().starts_with("another ginmill is building"),
            "{error}"
        );
        assert!(alive.dir().is_dir());
        drop(alive);
        assert_eq!(names(dir.path()), [".a.gin.building-mine", ".b.gin.building-1-0"]);
    }

    #[test]
    fn a_kill_between_the_two_steps_is_repaired_by_the_next_build() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.gin");
        publish(&output, false, "1").unwrap();
        fs::rename(&output, dir.path().join(".a.gin.replaced-1-0")).unwrap();
        drop(ArchiveWriter::create(&output, true).unwrap());
        assert_eq!(content(&output), "1");
        assert_eq!(names(dir.path()), ["a.gin"]);
    }

    #[test]
    fn an_archive_without_one_of_its_files_is_not_published() {
        let dir = tempfile::tempdir().unwrap();
        let writer = ArchiveWriter::create(&dir.path().join("a.gin"), false).unwrap();
        writer.documents().unwrap().finish().unwrap();
        let error = writer.publish(&a_catalog(), &0).unwrap_err();
        assert!(error.to_string().contains("x.gin"), "{error}");
        assert!(names(dir.path()).is_empty());
    }
}
