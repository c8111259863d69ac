//! Search.

pub mod grammar;
