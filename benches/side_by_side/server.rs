//! PostgreSQL 18 building the same indexes over the same messages.
//!
//! The table has the fields of the messages and their tsvectors, made beforehand:
//! neither parsing mail nor `to_tsvector` is part of what is measured. PostgreSQL allows
//! no worker less than 32 MB of `maintenance_work_mem` unless the table says how many
//! workers it takes, so it does; what started is counted.

use std::io::BufWriter;
use std::time::{Duration, Instant};

use ginmill::catalog::IndexDefinition;
use postgres::{Client, NoTls};

use crate::mail::{Mail, Read};
use crate::process::Backend;
use crate::series::Run;
use crate::{Outcome, note};

/// Settings that may matter to the figures, for the record.
const SETTINGS: [&str; 13] = [
    "server_version",
    "shared_buffers",
    "maintenance_work_mem",
    "max_parallel_workers",
    "max_worker_processes",
    "wal_level",
    "max_wal_size",
    "fsync",
    "full_page_writes",
    "autovacuum",
    "jit",
    "gin_pending_list_limit",
    "data_checksums",
];
/// A text from this size on may have a tsvector that PostgreSQL refuses (1 MB): it can
/// be some times as long as the text, since every word brings positions and padding.
const SUSPECT: u64 = 200_000;

/// The server that `benches/compare` has started.
pub struct Server {
    client: Client,
    backend: u32,
    /// Settings by name.
    pub settings: Vec<(String, String)>,
    /// What was loaded.
    pub loaded: Loaded,
}

/// The table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    /// From the mail.
    pub read: Read,
    /// Texts of which only the beginning has a tsvector.
    pub cut: i64,
    /// Bytes of the table, TOAST included.
    pub bytes: i64,
}

impl Server {
    /// Connects, and fills the table.
    pub fn load(mail: &Mail, memory: u64) -> Outcome<Server> {
        let server = std::env::var("GINMILL_PG").map_err(
            |_| "no PostgreSQL server to compare with: call benches/compare",
        )?;
        let mut client = Client::connect(&server, NoTls)?;
        let backend: i32 = client.query_one("select pg_backend_pid()", &[])?.get(0);
        client.batch_execute(&format!(
            "set maintenance_work_mem = '{}kB'",
            memory >> 10
        ))?;
        note(&format!(
            "PostgreSQL: loading {} MB of mail, making tsvectors",
            mail.bytes() >> 20
        ));
        let loaded = fill(&mut client, mail)?;
        let mut settings = Vec::new();
        for name in SETTINGS {
            let row = client.query_one("select current_setting($1)", &[&name])?;
            settings.push((name.to_owned(), row.get(0)));
        }
        Ok(Server { client, backend: u32::try_from(backend)?, settings, loaded })
    }

    /// Builds an index with that many workers besides the leader, and drops it.
    pub fn build(&mut self, index: &IndexDefinition, workers: usize) -> Outcome<Run> {
        self.client.batch_execute(&format!(
            "set max_parallel_maintenance_workers = {workers};
             alter table messages set (parallel_workers = {workers});
             checkpoint"
        ))?;
        let create = create(index)?;
        let temp = self.temp_bytes()?;
        let watch = Backend::watch(self.backend)?;
        let began = Instant::now();
        let built = self.client.batch_execute(&create);
        let seconds = began.elapsed().as_secs_f64();
        let seen = watch.seen()?;
        built.map_err(|error| format!("{create}: {error}"))?;
        let temp = self.temp_bytes()? - temp;
        let name = &index.name;
        let size = format!("select pg_relation_size('{name}'::regclass)");
        let size: i64 = self.client.query_one(&size, &[])?.get(0);
        self.client.batch_execute(&format!("drop index {name}"))?;
        Ok(Run {
            seconds,
            cpu: None,
            peak: seen.anonymous,
            temp: u64::try_from(temp)?,
            index: u64::try_from(size)?,
            launched: Some(seen.launched),
        })
    }

    /// Bytes of temporary files of the database so far. Workers account for theirs when
    /// they exit, which the leader need not have waited for.
    fn temp_bytes(&mut self) -> Outcome<i64> {
        let mut before = None;
        loop {
            self.client.batch_execute("select pg_stat_force_next_flush()")?;
            let row = self.client.query_one(
                "select temp_bytes from pg_stat_database
                 where datname = current_database()",
                &[],
            )?;
            let bytes: i64 = row.get(0);
            if before == Some(bytes) {
                return Ok(bytes);
            }
            before = Some(bytes);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// CREATE INDEX for a definition over the table of messages.
fn create(index: &IndexDefinition) -> Outcome<String> {
    let mut columns = Vec::new();
    for column in &index.columns {
        let (field, opclass) = (&column.field, &column.opclass);
        columns.push(match (opclass.as_str(), column.config.as_deref()) {
            ("tsvector_ops", Some("english")) => format!("{field}_tsvector {opclass}"),
            (_, None) => format!("{field} {opclass}"),
            (_, Some(config)) => {
                return Err(format!("no tsvectors were made with {config}").into());
            }
        });
    }
    let (name, columns) = (&index.name, columns.join(", "));
    Ok(format!("create index {name} on messages using gin ({columns})"))
}

fn fill(client: &mut Client, mail: &Mail) -> Outcome<Loaded> {
    client.batch_execute(
        "create table incoming (headers jsonb, subject text, body text);
         create table cut (bytes int);
         create function words(t text) returns tsvector language plpgsql as $$
         declare
             whole constant int := octet_length(t);
             v tsvector;
         begin
             loop
                 begin
                     v := to_tsvector('english', t);
                     exit;
                 exception when program_limit_exceeded then
                     t := left(t, length(t) * 9 / 10);
                 end;
             end loop;
             if octet_length(t) < whole then
                 insert into cut values (whole);
             end if;
             return v;
         end $$",
    )?;
    let copy = client.copy_in("copy incoming from stdin")?;
    let mut copy = BufWriter::with_capacity(1 << 20, copy);
    let read = mail.copy(&mut copy)?;
    let copy = copy.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    let rows = copy.finish()?;
    if rows != read.messages {
        return Err(format!("copied {} messages, {rows} arrived", read.messages).into());
    }
    let tsvector = |field: &str| {
        format!(
            "case when octet_length({field}) < {SUSPECT}
             then to_tsvector('english', {field}) else words({field}) end
             as {field}_tsvector"
        )
    };
    client.batch_execute(&format!(
        "create table messages as
             select headers, subject, body, {}, {} from incoming",
        tsvector("subject"),
        tsvector("body")
    ))?;
    client.batch_execute("drop table incoming")?;
    client.batch_execute("vacuum (freeze, analyze) messages")?;
    let counts = client.query_one(
        "select pg_table_size('messages'), (select count(*) from cut)",
        &[],
    )?;
    Ok(Loaded { read, bytes: counts.get(0), cut: counts.get(1) })
}
