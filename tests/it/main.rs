//! Integration tests: one program, one module per subject.
fn main() {}
