//! Integration tests: one program, one module per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod cli_index; // `ginmill index` with bad input, broken messages, kill -9, Ctrl-C
mod cli_keys; // `ginmill keys` and `ginmill query` on the vectors
mod cli_look; // `check` and `inspect`
mod cli_report; // `report`, its schema
mod cli_search; // `search` and `show`
mod cli_support; // archives for the tests of the program
mod corpus; // mail in any amount, seeded
mod gin_check; // damaged index files: what the checker says
mod gin_inspect; // pages in the shape of pageinspect
mod gin_model; // entries written and read back
mod gin_support; // index files for the tests of `gin`
mod harness; // the oracle, throw-away clusters and the memory sampler do what they say
mod jsonb_model; // JSON keys beside a naive model, hostile JSON
mod jsonb_random; // random JSON values and paths
mod keys_jsonb; // JSON keys and paths beside a live PostgreSQL
mod keys_trigram; // trigrams, LIKE, regular expressions, arrays beside a live PostgreSQL
mod keys_tsvector; // words beside a live PostgreSQL
mod layering; // who may import whom
mod matrix; // workers × memory × codec: the same bytes
mod memory; // the memory limit by the operating system's figures
mod page_bytes; // tiny indexes spelled out byte by byte
mod postgres_archive; // an archive's index files in a live PostgreSQL 18
mod postgres_files; // our index files in a cluster, and PostgreSQL's in our reader
mod queries_archive; // searches: by index, by scan, by a live PostgreSQL 18
mod queries_jsonb; // jsonb and jsonpath conditions beside a live PostgreSQL
mod queries_tsquery; // text search queries beside a live PostgreSQL 18
mod real_mail; // thousands of real mails, counted and compared
mod support; // directories, the oracle, clusters, the program
