//! Integration tests: one program, one module per subject.
fn main() {}
mod gin_check;
mod gin_inspect;
mod gin_model;
mod gin_support;
mod page_bytes;
mod postgres_files;
