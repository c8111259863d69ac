//! Integration tests: one program, one module per subject.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod gin_model;
mod gin_support;
mod harness; // the oracle, throw-away clusters and the memory sampler do what they say
mod layering; // who may import whom
mod support; // directories, the oracle, clusters, the program
