//! Integration tests: one program, one module per subject.

/// Trigrams, LIKE, regular expressions and arrays against a live PostgreSQL.
mod keys_trigram;

fn main() {}
