//! GIN index files.
