//! The archive directory: `catalog.json`, the documents file, index files, publishing.

/// One index to build: a name and its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDefinition {
    /// File name without `.gin`.
    pub name: String,
    /// At least one.
    pub columns: Vec<ColumnDefinition>,
}

/// One column of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnDefinition {
    /// Field of the documents.
    pub field: String,
    /// Name of the operator class.
    pub opclass: String,
    /// Text search configuration, for classes that take one.
    pub config: Option<String>,
}
