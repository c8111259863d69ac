//! Index files that PostgreSQL wrote, read; and ours, put in their place.
//!
//! A file can be exchanged only under a stopped server, so this module runs a cluster of
//! its own. `GINMILL_PG_BIN` names the directory with `initdb`, `pg_ctl` and `postgres`
//! (version 18; `GINMILL_PG_LIB` their libraries, unless `LD_LIBRARY_PATH` is set), and
//! `GINMILL_PG_USER` the unprivileged user to run them as when we are root. Without the
//! first, the test says so and is left out.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, reason = "a test that is left out says so")]

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ginmill::gin::inspect::{self, Items};
use ginmill::gin::{CheckStats, Index, check};
use ginmill::opclass::KeyType;
use ginmill::tid::Tid;
use postgres::{Client, NoTls};

use crate::gin_support::{Model, build, read};

/// A cluster in a directory of its own; stopped and removed in the end.
struct Cluster {
    bin: PathBuf,
    user: Option<(u32, u32)>,
    dir: tempfile::TempDir,
}

impl Cluster {
    fn create() -> Option<Cluster> {
        let Some(bin) = std::env::var_os("GINMILL_PG_BIN") else {
            println!("left out: GINMILL_PG_BIN is not set");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("gin-pg-").tempdir().unwrap();
        let user = std::env::var("GINMILL_PG_USER").ok().filter(|_| id(&["-u"]) == 0);
        let user = user.map(|name| (id(&["-u", &name]), id(&["-g", &name])));
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        let cluster = Cluster { bin: bin.into(), user, dir };
        let data = cluster.data();
        cluster.run(
            "initdb",
            &["--no-locale", "-E", "UTF8", "-U", "postgres", "-A", "trust", "-N", "-D"],
            &data,
        );
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\n\
             autovacuum = off\nshared_buffers = 32MB\nmax_connections = 5\n\
             max_parallel_workers = 0\n",
            cluster.dir.path().display()
        );
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .unwrap();
        std::io::Write::write_all(&mut file, settings.as_bytes()).unwrap();
        Some(cluster)
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str], data: &Path) {
        let mut command = Command::new(self.bin.join(program));
        command.args(arguments).arg(data).current_dir("/").stdout(Stdio::null());
        if let Some(lib) = std::env::var_os("GINMILL_PG_LIB") {
            command.env("LD_LIBRARY_PATH", lib);
        }
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        let done = command.status().unwrap();
        assert!(done.success(), "{program} {arguments:?}: {done}");
    }

    fn start(&self) -> Client {
        let log = self.dir.path().join("log").display().to_string();
        self.run("pg_ctl", &["-w", "-s", "-l", &log, "start", "-D"], &self.data());
        let client = postgres::Config::new()
            .host_path(self.dir.path())
            .user("postgres")
            .dbname("postgres")
            .connect(NoTls);
        client.unwrap()
    }

    fn stop(&self, client: Client) {
        client.close().unwrap();
        self.run("pg_ctl", &["-w", "-s", "-m", "fast", "stop", "-D"], &self.data());
    }

    /// Puts a file in the place of an index; the server must be stopped.
    fn exchange(&self, relation: &Path, with: &Path) {
        let fsm = PathBuf::from(format!("{}_fsm", relation.display()));
        if fsm.exists() {
            std::fs::remove_file(fsm).unwrap();
        }
        // Written over, so that owner and mode stay.
        std::fs::write(relation, std::fs::read(with).unwrap()).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.run(
                "pg_ctl",
                &["-w", "-s", "-m", "immediate", "stop", "-D"],
                &self.data(),
            );
        }
    }
}

fn id(arguments: &[&str]) -> u32 {
    let output = Command::new("id").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// A table with one index and the conditions to ask it.
struct Case {
    table: &'static str,
    columns: &'static [KeyType],
    /// Definitions of the columns, made from `n` of a generated series.
    select: &'static str,
    rows: u32,
    index: &'static str,
    conditions: &'static [&'static str],
}

use KeyType::{Int4, Int8, Text};

const CASES: &[Case] = &[
    Case {
        table: "ints",
        columns: &[Int4],
        select: "CASE n % 50 WHEN 0 THEN '{}' WHEN 1 THEN NULL WHEN 2 THEN ARRAY[NULL, n]
                 ELSE ARRAY[n / 3, -n, n % 7, 5000000] END AS v",
        rows: 60_000,
        index: "gin (v)",
        conditions: &[
            "v @> '{5000000}'",
            "v @> '{3,4}'",
            "v @> '{-77}'",
            "v && '{1,2,900}'",
            "v @> '{5000000,6}'",
            "v = '{}'",
            "v <@ '{1,2,3,4,5,6,5000000,-3}'",
            "v = '{1,-4,4,5000000}'",
        ],
    },
    Case {
        table: "texts",
        columns: &[Text],
        select: "CASE n % 40 WHEN 0 THEN '{}' WHEN 1 THEN NULL WHEN 2 THEN ARRAY[NULL::text]
                 WHEN 3 THEN ARRAY[repeat('long', 40 + n % 100), '']
                 WHEN 4 THEN ARRAY[repeat('z', 3000 + n % 1000)]
                 ELSE ARRAY['w' || n % 4000, md5((n / 2)::text), 'all'] END AS v",
        rows: 20_000,
        index: "gin (v)",
        conditions: &[
            "v @> '{all}'",
            "v @> '{w17,all}'",
            "v @> ARRAY[repeat('z', 3004)]",
            "v && ARRAY['', md5('5')]",
            "v = '{}'",
            "v @> ARRAY[repeat('long', 43)]",
        ],
    },
    Case {
        table: "words",
        columns: &[Text],
        select: "CASE WHEN n % 30 = 0 THEN NULL WHEN n % 31 = 0 THEN ''::tsvector ELSE
                 to_tsvector('simple', concat_ws(' ', 'common', 'w' || n % 1000,
                 md5(n::text), 'x' || sqrt(n)::int)) END AS v",
        rows: 20_000,
        index: "gin (v)",
        conditions: &[
            "v @@ 'common'",
            "v @@ 'common & w7'",
            "v @@ 'w12:* | x77'",
            "v @@ '!common'",
            "v @@ 'a:* & !w5:*'",
            "v @@ 'common <-> w7'",
        ],
    },
    Case {
        table: "paths",
        columns: &[Int4],
        select: "CASE WHEN n % 25 = 0 THEN '{}'::jsonb WHEN n % 26 = 0 THEN NULL ELSE
                 jsonb_build_object('n', n % 500, 's', md5((n / 4)::text), 'a',
                 jsonb_build_array(n % 3, 'x', true)) END AS v",
        rows: 20_000,
        index: "gin (v jsonb_path_ops)",
        conditions: &[
            r#"v @> '{"n": 17}'"#,
            r#"v @> '{"a": ["x"]}'"#,
            r#"v @> '{"a": [1, true], "n": 4}'"#,
            "v @> '{}'",
            "v @? '$.a[*] ? (@ == 2)'",
        ],
    },
    Case {
        table: "objects",
        columns: &[Text],
        select: "jsonb_build_object('n', n % 500, 'key' || n % 300, md5((n / 4)::text),
                 'a', jsonb_build_array(n % 3, 'x', null)) AS v",
        rows: 20_000,
        index: "gin (v)",
        conditions: &[r#"v @> '{"n": 17}'"#, "v ? 'key20'", "v ?& '{a,key8}'"],
    },
    Case {
        table: "trigrams",
        columns: &[Int4],
        select: "CASE WHEN n % 33 = 0 THEN '..' WHEN n % 34 = 0 THEN NULL
                 ELSE 'Some text ' || md5(n::text) || ' ünd' END AS v",
        rows: 20_000,
        index: "gin (v gin_trgm_ops)",
        conditions: &["v LIKE '%Some%'", "v LIKE '%ab1%'", "v ILIKE '%F00%'", "v ~ 'a[bc]e1'"],
    },
    Case {
        table: "several",
        columns: &[Int4, Text, Text, Int8],
        select: "ARRAY[n % 100, -n] AS a, CASE WHEN n % 9 = 0 THEN NULL ELSE
                 ARRAY['w' || n % 2000, 'all'] END AS b, to_tsvector('simple', md5(n::text)
                 || ' common') AS c, CASE WHEN n % 8 = 0 THEN '{}' ELSE
                 ARRAY[n * 10000000000, NULL, 7::int8] END AS d",
        rows: 20_000,
        index: "gin (a, b, c, d)",
        conditions: &[
            "a @> '{5}'",
            "b @> '{all,w5}'",
            "a @> '{5}' AND b @> '{all}' AND c @@ 'common'",
            "d @> '{70000000000}'",
            "d @> '{7}' AND a @> '{50}'",
            "d = '{}' AND a @> '{8}'",
            "c @@ 'f0:*'",
        ],
    },
];

fn text(client: &mut Client, sql: &str) -> String {
    client
        .query_one(sql, &[])
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .get::<_, Option<String>>(0)
        .unwrap_or_default()
}

/// Runs statements one by one, as VACUUM wants it.
fn execute(client: &mut Client, statements: &str) {
    for sql in statements.split(';') {
        let done = client.batch_execute(sql);
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// Asks every condition with and without the index.
fn compare_answers(client: &mut Client, case: &Case) {
    let index = format!("{}_index", case.table);
    for condition in case.conditions {
        let query = format!(
            "SELECT count(*)::text || ' ' || coalesce(sum(hashtext(ctid::text)), 0)::text \
             FROM {} WHERE {condition}",
            case.table
        );
        client
            .batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = on")
            .unwrap();
        let plan: Vec<String> = client
            .query(&format!("EXPLAIN {query}"), &[])
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect();
        assert!(
            plan.iter().any(|line| line.contains(&index)),
            "{condition}: {plan:#?}"
        );
        let by_index = text(client, &query);
        client
            .batch_execute("SET enable_seqscan = on; SET enable_bitmapscan = off")
            .unwrap();
        let by_scan = text(client, &query);
        assert_eq!(by_index, by_scan, "{}: {condition}", case.table);
        assert!(!by_index.starts_with("0 "), "{}: {condition}: no rows", case.table);
    }
}

fn gin_index_check(client: &mut Client, case: &Case) {
    let sql = format!("SELECT gin_index_check('{}_index')", case.table);
    client
        .batch_execute(&sql)
        .unwrap_or_else(|error| panic!("{}: {error:?}", case.table));
}

/// Compares what pageinspect says about every page with what our own inspection says.
fn compare_pages(client: &mut Client, case: &Case, file: &Path) {
    let index = Index::open(file, Some(case.columns)).unwrap();
    let relation = format!("{}_index", case.table);
    for block in 0..index.pages() {
        let page = inspect::page(&index, block).unwrap();
        let raw = format!("get_raw_page('{relation}', {block})");
        let header = &page.header;
        let ours = format!(
            "{},{},{},{},{},{},{},{},{}",
            header.lsn,
            header.checksum,
            header.flags,
            header.lower,
            header.upper,
            header.special,
            header.pagesize,
            header.version,
            header.prune_xid
        );
        let theirs = text(client, &format!("SELECT page_header({raw})::text"));
        assert_eq!(format!("({ours})"), theirs, "{relation}, block {block}");
        let sum = text(client, &format!("SELECT page_checksum({raw}, {block})::text"));
        assert_eq!(sum, header.checksum.to_string(), "{relation}, block {block}");
        let theirs = text(
            client,
            &format!(
                "SELECT rightlink || ' ' || maxoff || ' ' || array_to_string(flags, '+') \
                 FROM gin_page_opaque_info({raw})"
            ),
        );
        let opaque = &page.opaque;
        let ours = (opaque.rightlink, opaque.maxoff, opaque.flags.join("+"));
        assert_eq!(format!("{} {} {}", ours.0, ours.1, ours.2), theirs);
        if let Items::Segments(segments) = &page.items {
            let ours: Vec<String> = segments
                .iter()
                .map(|s| format!("{} {} {}", s.first_tid, s.nbytes, s.tids.join(" ")))
                .collect();
            let theirs = text(
                client,
                &format!(
                    "SELECT string_agg(first_tid || ' ' || nbytes || ' ' || \
                     array_to_string(tids, ' '), '\n') FROM gin_leafpage_items({raw})"
                ),
            );
            assert_eq!(ours.join("\n"), theirs, "{relation}, block {block}");
        }
    }
    let meta = index.meta().unwrap();
    let theirs = text(
        client,
        &format!("SELECT gin_metapage_info(get_raw_page('{relation}', 0))::text"),
    );
    let ours = format!(
        "({},{},{},{},{},{},{},{},{},{})",
        meta.pending_head,
        meta.pending_tail,
        meta.tail_free_size,
        meta.n_pending_pages,
        meta.n_pending_tuples,
        meta.n_total_pages,
        meta.n_entry_pages,
        meta.n_data_pages,
        meta.n_entries,
        meta.version
    );
    assert_eq!(ours, theirs, "{relation}");
}

/// Our check finds nothing in the file.
fn assert_sound(case: &Case, file: &Path) -> CheckStats {
    let mut damages = Vec::new();
    let stats =
        check(file, Some(case.columns), &mut |damage| damages.push(damage)).unwrap();
    assert_eq!(damages, [], "{}", case.table);
    assert!(stats.checksums);
    stats
}

/// Reads a server's file, without the entries that VACUUM has emptied.
fn read_file(case: &Case, file: &Path) -> Model {
    let index = Index::open(file, Some(case.columns)).unwrap();
    let mut model = read(&index).unwrap();
    for ((column, category, key), tids) in &model {
        let mut postings = index.posting(*column, *category, key).unwrap().unwrap();
        assert_eq!(postings.count().unwrap(), tids.len() as u64);
    }
    model.retain(|_, tids| !tids.is_empty());
    model
}

#[test]
fn postgresql_reads_our_files_and_we_read_its() {
    let Some(cluster) = Cluster::create() else { return };
    let mut client = cluster.start();
    client
        .batch_execute(
            "CREATE EXTENSION pageinspect; CREATE EXTENSION amcheck; CREATE EXTENSION pg_trgm",
        )
        .unwrap();
    let mut files = Vec::new();
    for case in CASES {
        let (table, select, rows) = (case.table, case.select, case.rows);
        execute(
            &mut client,
            &format!(
                "CREATE TABLE {table} AS SELECT n, {select} FROM \
                 generate_series(1, {rows}) AS n;
                 CREATE INDEX {table}_index ON {table} USING {};
                 VACUUM ANALYZE {table}",
                case.index
            ),
        );
        compare_answers(&mut client, case);
        let path = format!("SELECT pg_relation_filepath('{table}_index')");
        files.push(cluster.data().join(text(&mut client, &path)));
    }
    let ints = int_keys(&mut client);
    cluster.stop(client);

    // Read what the server built, build it again, and put that in its place.
    let mut models = Vec::new();
    for (case, file) in CASES.iter().zip(&files) {
        assert!(!assert_sound(case, file).built, "{}", case.table);
        let guessed = Index::open(file, None).unwrap();
        assert_eq!(guessed.columns(), case.columns, "{}", case.table);
        let model = read_file(case, file);
        let name = format!("{}.file", case.table);
        let (ours, stats) = build(cluster.dir.path(), &name, case.columns, 100, &model);
        assert!(assert_sound(case, &ours).built, "{}", case.table);
        let before = std::fs::metadata(file).unwrap().len();
        assert!(stats.bytes < before, "{}: {} of {before}", case.table, stats.bytes);
        cluster.exchange(file, &ours);
        models.push(model);
    }
    let counted: Vec<(i64, i64)> = models[0]
        .iter()
        .filter(|(key, _)| key.1 == ginmill::gin::Category::Key)
        .map(|(key, tids)| {
            let value = ginmill::opclass::int4_of(key.2.as_slice().try_into().unwrap());
            (i64::from(value), tids.len() as i64)
        })
        .collect();
    assert!(counted == ints, "the keys of the first table and their counts");

    let mut client = cluster.start();
    for (case, file) in CASES.iter().zip(&files) {
        gin_index_check(&mut client, case);
        compare_pages(&mut client, case, file);
        compare_answers(&mut client, case);
    }

    // Go on with our files: inserts with and without a pending list, deletes that empty
    // whole pages of posting trees, VACUUM.
    for case in CASES {
        let (table, select, rows) = (case.table, case.select, case.rows);
        let insert = format!(
            "INSERT INTO {table} SELECT n, {select} FROM \
             generate_series({rows} + 1, {rows} + 5000) AS n"
        );
        execute(
            &mut client,
            &format!(
                "{insert}; ALTER INDEX {table}_index SET (fastupdate = off); {insert};
                 ALTER INDEX {table}_index SET (fastupdate = on)"
            ),
        );
        gin_index_check(&mut client, case);
        compare_answers(&mut client, case);
        execute(
            &mut client,
            &format!(
                "DELETE FROM {table} WHERE n % 3 = 0 OR n BETWEEN 100 AND {rows} - 9000;
                 VACUUM {table}"
            ),
        );
        gin_index_check(&mut client, case);
        execute(
            &mut client,
            &format!("{insert}; VACUUM {table}; {insert}; CHECKPOINT"),
        );
        gin_index_check(&mut client, case);
        compare_answers(&mut client, case);
    }
    let rows: Vec<BTreeSet<Tid>> =
        CASES.iter().map(|c| row_tids(&mut client, c)).collect();
    cluster.stop(client);

    let (mut pending_rows, mut unused) = (0, 0);
    for ((case, file), rows) in CASES.iter().zip(&files).zip(&rows) {
        let stats = assert_sound(case, file);
        assert!(!stats.built, "{}", case.table);
        unused += stats.unused_pages;
        // Every row is under some key, in the trees or pending, and no other row is.
        let index = Index::open(file, Some(case.columns)).unwrap();
        let pending = index.pending().unwrap();
        let waiting: BTreeSet<Tid> = pending.iter().map(|item| item.tid).collect();
        pending_rows += waiting.len();
        let mut found: BTreeSet<Tid> =
            read_file(case, file).into_values().flatten().collect();
        found.extend(waiting);
        assert!(found == *rows, "{}", case.table);
        inspect::stats(&index).unwrap();
    }
    assert!(pending_rows > 0, "some rows wait in a pending list");
    assert!(unused > 0, "VACUUM has removed some pages");
}

/// What the server says the keys of the first table are, each with its rows.
fn int_keys(client: &mut Client) -> Vec<(i64, i64)> {
    client
        .query(
            "SELECT key::int8, count(DISTINCT ctid) FROM ints, unnest(v) AS key \
             WHERE key IS NOT NULL GROUP BY 1 ORDER BY 1",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect()
}

fn row_tids(client: &mut Client, case: &Case) -> BTreeSet<Tid> {
    let sql = format!("SELECT ctid::text FROM {}", case.table);
    client
        .query(&sql, &[])
        .unwrap()
        .iter()
        .map(|row| {
            let tid: String = row.get(0);
            let (block, offset) = tid.trim_matches(['(', ')']).split_once(',').unwrap();
            Tid::new(block.parse().unwrap(), offset.parse().unwrap())
        })
        .collect()
}
