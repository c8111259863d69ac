//! Search.

pub mod grammar;
pub mod scan;
