//! The build.
pub mod stats;
