//! What the integration tests stand on: directories of their own, the live PostgreSQL 18
//! that `tests/run` starts ([`oracle`]), clusters that a test may stop ([`Cluster`]),
//! amcheck and pageinspect as functions, the program, and a memory sampler.
//!
//! Where something is not there (no server under plain `cargo test`, no real mail), the
//! test that asks for it gets `None`, and what is left out is named on stderr, past the
//! test runner's capturing, and in the file `GINMILL_LEFT_OUT` that `tests/run` prints.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use postgres::{Client, NoTls};
use tempfile::TempDir;

/// Bytes of a page.
pub const PAGE: u64 = 8192;
/// Bytes of a full segment file of a relation.
pub const SEGMENT: u64 = 1 << 30;

/// Names what a test leaves out, for want of what.
pub fn left_out(test: &str, why: &str) {
    let line = format!("left out: {test}: {why}\n");
    // not eprint!: the test runner would swallow it
    drop(std::io::stderr().write_all(line.as_bytes()));
    if let Some(list) = std::env::var_os("GINMILL_LEFT_OUT") {
        let list = fs::OpenOptions::new().append(true).create(true).open(list);
        list.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Name of the running test: the runner names its threads so.
fn this_test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// An environment variable of `tests/run`; without it the running test is left out.
pub fn given(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        left_out(&this_test(), &format!("no {variable}, needs ./tests/run"));
    }
    value
}

/// A directory of the test's own, gone at its end.
pub struct TestDir(TempDir);

impl TestDir {
    /// A new one, on the disk of the build directory.
    pub fn new() -> TestDir {
        TestDir(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    /// The path of a file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the directories it lies in.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The names in it, sorted.
    pub fn names(&self) -> Vec<String> {
        names_in(self.0.path())
    }
}

/// The names in a directory, sorted.
pub fn names_in(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<String> = fs::read_dir(directory).unwrap().map(name).collect();
    names.sort();
    names
}

/// A connection to the server of `tests/run`, in a database that all tests share: make
/// temporary tables, or a database of your own. It has pg_trgm, pageinspect, amcheck,
/// btree_gin and hstore.
pub fn oracle() -> Option<Client> {
    let server = given("GINMILL_PG")?;
    Some(Client::connect(&server, NoTls).unwrap())
}

/// A PostgreSQL cluster of the test's own, which it may stop, change on disk and start.
/// Checksums are on, as PostgreSQL 18 has them unless told otherwise.
pub struct Cluster {
    directory: TempDir,
    running: bool,
}

impl Cluster {
    /// Makes a cluster and starts it; `settings` are lines of `postgresql.conf`.
    pub fn start_new(settings: &[&str]) -> Option<Cluster> {
        given("GINMILL_PG_BIN")?;
        let clusters = std::env::var_os("GINMILL_PG_CLUSTERS")
            .map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = tempfile::Builder::new().tempdir_in(clusters).unwrap();
        let mut cluster = Cluster { directory, running: false };
        let top = cluster.directory.path();
        if let Ok(user) = std::env::var("GINMILL_PG_USER") {
            succeed(Command::new("chown").arg(user + ":").arg(top));
        }
        let data = cluster.data();
        succeed(
            server_program("initdb")
                .arg("--pgdata")
                .arg(&data)
                .args(["--username=postgres", "--auth=trust", "--no-sync"])
                .args(["--encoding=UTF8", "--locale=C.UTF-8"])
                .args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]),
        );
        let mut lines = vec![
            "listen_addresses = ''".to_owned(),
            format!("unix_socket_directories = '{}'", top.display()),
            "port = 5432".to_owned(),
            "fsync = off".to_owned(),
            "autovacuum = off".to_owned(),
        ];
        lines.extend(settings.iter().map(|&line| line.to_owned()));
        lines.push(String::new());
        let configuration = data.join("postgresql.conf");
        let file = fs::OpenOptions::new().append(true).open(configuration);
        file.unwrap().write_all(lines.join("\n").as_bytes()).unwrap();

        cluster.start();
        cluster
            .client()
            .batch_execute(
                "create extension pg_trgm; create extension pageinspect;
                 create extension amcheck",
            )
            .unwrap();
        Some(cluster)
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts the stopped server, returns when it answers.
    pub fn start(&mut self) {
        let log = self.directory.path().join("log");
        let mut start = self.pg_ctl("start");
        let status = start.arg("--log").arg(&log).status().unwrap();
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert!(status.success(), "the server does not start: {said}");
        self.running = true;
    }

    /// Stops the server cleanly: nothing is left in its log to replay.
    pub fn stop(&mut self) {
        succeed(self.pg_ctl("stop").arg("--mode=fast"));
        self.running = false;
    }

    fn pg_ctl(&self, verb: &str) -> Command {
        let mut command = server_program("pg_ctl");
        command.args([verb, "--wait", "--silent", "--pgdata"]).arg(self.data());
        // the server inherits these and outlives pg_ctl: a pipe would never end
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A new connection, as the superuser.
    pub fn client(&self) -> Client {
        let mut config = Client::configure();
        config.host_path(self.directory.path()).user("postgres").dbname("postgres");
        config.connect(NoTls).unwrap()
    }

    /// The first segment of a relation's main fork.
    pub fn relation_path(&self, relation: &str) -> PathBuf {
        let row = self
            .client()
            .query_one("select pg_relation_filepath($1::text::regclass)", &[&relation]);
        self.data().join(row.unwrap().get::<_, String>(0))
    }

    /// Puts files in the place of indexes: stops the server, writes each main fork in
    /// segments, removes surplus segments and the free-space map, starts it again.
    pub fn install(&mut self, files: &[(&str, &Path)]) {
        let mains: Vec<PathBuf> =
            files.iter().map(|(index, _)| self.relation_path(index)).collect();
        self.stop();
        for ((_, file), main) in files.iter().zip(&mains) {
            replace_relation(main, file);
        }
        self.start();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.running {
            // may fail when a test has broken the cluster; then there is no server
            drop(self.pg_ctl("stop").arg("--mode=immediate").status());
        }
    }
}

/// One of PostgreSQL's programs, as the user who may run it.
fn server_program(name: &str) -> Command {
    let program = |variable: &str| PathBuf::from(std::env::var_os(variable).unwrap());
    let path = program("GINMILL_PG_BIN").join(name);
    let mut command = match std::env::var("GINMILL_PG_USER") {
        Ok(user) => {
            let mut command = Command::new("setpriv");
            command
                .args([format!("--reuid={user}"), format!("--regid={user}")])
                .arg("--clear-groups")
                .arg(path);
            command
        }
        Err(_) => Command::new(path),
    };
    command
        .current_dir("/")
        .env("HOME", "/")
        .env("LC_ALL", "C.UTF-8")
        .env("LD_LIBRARY_PATH", program("GINMILL_PG_LIB"));
    command
}

fn succeed(command: &mut Command) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(
        status.success(),
        "{command:?}: {status}\n{}{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
}

/// The path of a relation's segment.
fn segment(main: &Path, number: u64) -> PathBuf {
    match number {
        0 => main.to_path_buf(),
        n => PathBuf::from(format!("{}.{n}", main.display())),
    }
}

fn replace_relation(main: &Path, file: &Path) {
    let mut from = fs::File::open(file).unwrap();
    let bytes = from.metadata().unwrap().len();
    assert_eq!(bytes % PAGE, 0, "{} is not made of pages", file.display());
    let owner = fs::metadata(main).unwrap();
    let segments = bytes.div_ceil(SEGMENT);
    for number in 0..segments {
        let path = segment(main, number);
        let mut to = fs::File::create(&path).unwrap();
        let mut part = std::io::Read::take(&mut from, SEGMENT);
        std::io::copy(&mut part, &mut to).unwrap();
        fs::set_permissions(&path, owner.permissions()).unwrap();
        std::os::unix::fs::chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let surplus = (segments..).map(|number| segment(main, number));
    for path in surplus.take_while(|path| path.exists()) {
        fs::remove_file(path).unwrap();
    }
    let free_space = PathBuf::from(format!("{}_fsm", main.display()));
    if free_space.exists() {
        fs::remove_file(free_space).unwrap();
    }
}

/// amcheck's verdict on a GIN index.
pub fn check_index(client: &mut Client, index: &str) -> Result<(), postgres::Error> {
    client.execute("select gin_index_check($1::text::regclass)", &[&index]).map(|_| ())
}

/// What pageinspect says of an index, page by page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inspected {
    /// `gin_metapage_info`: pending pages and tuples, total, entry, data pages, entries,
    /// version.
    pub meta: [i64; 7],
    /// Pages by their flags, as `leaf` or `data,leaf,compressed`, sorted by name.
    pub pages: Vec<(String, i64)>,
    /// Segments on leaves of posting trees.
    pub segments: i64,
    /// TIDs in them.
    pub tids: i64,
}

/// Reads every page of an index with pageinspect and demands of each: a header that is
/// an 8 kB page's, a right link inside the index, segments whose first TID is the first
/// of their list, and, for pages that come from disk as they are (`from_disk`: the server
/// has started since they were written), the checksum of its contents.
pub fn pageinspect_all(client: &mut Client, index: &str, from_disk: bool) -> Inspected {
    let pages = "with pages as materialized (
             select b, get_raw_page($1::text, 'main', b) as page
             from generate_series(0,
                 pg_relation_size($1::text::regclass) / 8192 - 1) as b)";
    let meta = client.query_one(
        "select array[n_pending_pages, n_pending_tuples, n_total_pages, n_entry_pages,
             n_data_pages, n_entries, version]
         from gin_metapage_info(get_raw_page($1::text, 'main', 0))",
        &[&index],
    );
    let meta: Vec<i64> = meta.unwrap().get(0);

    let wrong = client.query(
        &format!(
            "{pages} select b, h::text, o::text
             from pages, page_header(page) as h, gin_page_opaque_info(page) as o
             where h.pagesize <> 8192 or h.version <> 4 or h.special <> 8184
                 or h.lower < 24 or h.lower > h.upper or h.upper > h.special
                 or o.rightlink <> 4294967295 and
                     o.rightlink * 8192 >= pg_relation_size($1::text::regclass)
                 or $2 and h.checksum <> page_checksum(page, b::int)"
        ),
        &[&index, &from_disk],
    );
    let wrong: Vec<String> = wrong
        .unwrap()
        .iter()
        .map(|row| {
            let (block, header, opaque): (i64, String, String) =
                (row.get(0), row.get(1), row.get(2));
            format!("block {block}: header {header}, opaque {opaque}")
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "{index}: pages that are not sane");

    let kinds = client.query(
        &format!(
            "{pages} select array_to_string(flags, ','), count(*)
             from pages, gin_page_opaque_info(page) group by 1 order by 1"
        ),
        &[&index],
    );
    let leaves = client.query_one(
        &format!(
            "{pages}, leaves as materialized (
                 select page from pages, gin_page_opaque_info(page)
                 where flags = array['data', 'leaf', 'compressed'])
             select count(*), coalesce(sum(cardinality(tids)), 0)::bigint,
                 count(*) filter (where first_tid <> tids[1])
             from leaves, gin_leafpage_items(page)"
        ),
        &[&index],
    );
    let leaves = leaves.unwrap();
    assert_eq!(leaves.get::<_, i64>(2), 0, "{index}: segments with a wrong first TID");
    Inspected {
        meta: meta.try_into().unwrap(),
        pages: kinds.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect(),
        segments: leaves.get(0),
        tids: leaves.get(1),
    }
}

/// The program, with the caller's arguments to come.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ginmill"));
    command.stdin(Stdio::null());
    command
}

/// What a child process took and said.
#[derive(Debug)]
pub struct Measured {
    /// Exit status and output.
    pub output: Output,
    /// Most anonymous resident bytes that sampling saw.
    pub anonymous: u64,
    /// Most resident bytes, mapped files included, by the kernel's own account.
    pub resident: u64,
    /// Samples taken.
    pub samples: usize,
}

/// Runs a command to its end and samples its memory every two milliseconds.
pub fn peak_anonymous(command: &mut Command) -> Measured {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let status_file = PathBuf::from(format!("/proc/{}/status", child.id()));
    let waiter = std::thread::spawn(move || Child::wait_with_output(child).unwrap());
    let (mut anonymous, mut resident, mut samples) = (0, 0, 0);
    while !waiter.is_finished() {
        // gone between the two looks, or a zombie without memory: no sample
        let status = fs::read_to_string(&status_file).unwrap_or_default();
        if let Some(bytes) = kilobytes(&status, "RssAnon:") {
            anonymous = anonymous.max(bytes);
            resident = resident.max(kilobytes(&status, "VmHWM:").unwrap());
            samples += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Measured { output: waiter.join().unwrap(), anonymous, resident, samples }
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number = line.trim().strip_suffix("kB")?.trim();
    Some(number.parse::<u64>().unwrap() << 10)
}
