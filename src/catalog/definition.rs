//! Index definitions: their two notations, and what they mean for an input's fields.
//!
//! ```text
//! NAME=OPCLASS(FIELD[, CONFIG])                        one column
//! NAME=gin(FIELD OPCLASS[(CONFIG)], …)                 several, as CREATE INDEX has it
//! ```
//!
//! A name is a file name and a word of queries: a letter or underscore, then letters,
//! digits and underscores, at most 63 bytes. [`IndexDefinition::resolve`] looks the words
//! up; every refusal lists what there is instead.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use crate::document::{Field, ValueKind};
use crate::error::{Error, Result};
use crate::opclass::{self, KeyType, OpClass};

/// Longest name of an index, bytes; PostgreSQL's limit.
pub const NAME_MAX: usize = 63;
/// Most columns of an index; PostgreSQL's limit.
pub const COLUMNS_MAX: usize = 32;

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

/// A definition whose words have been looked up.
#[derive(Clone, Debug)]
pub struct ResolvedIndex {
    /// File name without `.gin`.
    pub name: String,
    /// In definition order.
    pub columns: Vec<ResolvedColumn>,
}

/// A column whose words have been looked up.
#[derive(Clone)]
pub struct ResolvedColumn {
    /// Position among the fields.
    pub field: usize,
    /// The operator class.
    pub class: &'static dyn OpClass,
    /// Its configuration, known to be one that the class takes.
    pub config: Option<String>,
    /// What its keys are on disk.
    pub key_type: KeyType,
}

impl fmt::Debug for ResolvedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedColumn")
            .field("field", &self.field)
            .field("class", &self.class.name())
            .field("config", &self.config)
            .field("key_type", &self.key_type)
            .finish()
    }
}

/// The word for a kind of values in messages, in `catalog.json` and in `--type`.
pub const fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "text",
        ValueKind::Json => "json",
        ValueKind::Lexemes => "lexemes",
        ValueKind::Texts => "text[]",
        ValueKind::Integers => "int[]",
    }
}

/// PostgreSQL's name of a key type.
pub const fn key_type_name(key_type: KeyType) -> &'static str {
    match key_type {
        KeyType::Text => "text",
        KeyType::Int4 => "int4",
        KeyType::Int8 => "int8",
    }
}

impl IndexDefinition {
    /// Looks up fields, classes and configurations.
    pub fn resolve(&self, fields: &[Field]) -> Result<ResolvedIndex> {
        let columns =
            self.columns.iter().map(|column| self.resolve_column(column, fields));
        Ok(ResolvedIndex {
            name: self.name.clone(),
            columns: columns.collect::<Result<_>>()?,
        })
    }

    fn resolve_column(
        &self,
        column: &ColumnDefinition,
        fields: &[Field],
    ) -> Result<ResolvedColumn> {
        let ColumnDefinition { field, opclass, config } = column;
        let refuse =
            |what: String| Error::invalid(format!("index {}: {what}", self.name));
        let class = opclass::find(opclass).ok_or_else(|| {
            let names = list(opclass::ALL.iter().map(|class| class.name()));
            refuse(format!("there is no operator class {opclass}; there are {names}"))
        })?;
        let position =
            fields.iter().position(|f| f.name == *field).ok_or_else(|| {
                let names = list(fields.iter().map(|field| field.name.as_str()));
                refuse(format!("the input has no field {field}; it has {names}"))
            })?;
        let kind = fields[position].kind;
        if !class.accepts(kind) {
            let fitting = fields.iter().filter(|field| class.accepts(field.kind));
            let names = list(fitting.map(|field| field.name.as_str()));
            let instead = if names.is_empty() {
                "the input has no field that it could index".to_owned()
            } else {
                format!("it can index {names}")
            };
            return Err(refuse(format!(
                "{opclass} cannot index {field}, which is {}; {instead}",
                kind_name(kind)
            )));
        }
        class
            .extractor(config.as_deref())
            .map_err(|error| refuse(error.to_string()))?;
        Ok(ResolvedColumn {
            field: position,
            class,
            config: config.clone(),
            key_type: class.key_type(kind, config.as_deref()),
        })
    }

    /// The definition without its name: `tsvector_ops(body, english)`.
    pub fn body(&self) -> String {
        match self.columns.as_slice() {
            [ColumnDefinition { field, opclass, config }] => match config {
                Some(config) => format!("{opclass}({field}, {config})"),
                None => format!("{opclass}({field})"),
            },
            columns => {
                let columns = columns.iter().map(|column| match &column.config {
                    Some(config) => {
                        format!("{} {}({config})", column.field, column.opclass)
                    }
                    None => format!("{} {}", column.field, column.opclass),
                });
                format!("gin({})", columns.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Resolves the definitions of one archive; two of the same name are refused.
pub fn resolve_all(
    definitions: &[IndexDefinition],
    fields: &[Field],
) -> Result<Vec<ResolvedIndex>> {
    let mut names = HashSet::new();
    for definition in definitions {
        if !names.insert(&definition.name) {
            return Err(Error::invalid(format!(
                "two indexes are named {}; every index needs a name of its own",
                definition.name
            )));
        }
    }
    definitions.iter().map(|definition| definition.resolve(fields)).collect()
}

/// "a", "a and b", "a, b and c".
fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [firsts @ .., last] => format!("{} and {last}", firsts.join(", ")),
    }
}

impl fmt::Display for IndexDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.body())
    }
}

impl FromStr for IndexDefinition {
    type Err = Error;

    fn from_str(text: &str) -> Result<IndexDefinition> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "index definition {text:?}: {what}; expected NAME=OPCLASS(FIELD[, CONFIG]) \
                 or NAME=gin(FIELD OPCLASS[(CONFIG)], ...)"
            ))
        };
        let (name, rest) = text.split_once('=').ok_or_else(|| wrong("no \"=\""))?;
        let name = name.trim();
        check_name(name).map_err(|what| wrong(&what))?;
        let (opclass, rest) = rest.split_once('(').ok_or_else(|| wrong("no \"(\""))?;
        let inner = rest
            .trim_end()
            .strip_suffix(')')
            .ok_or_else(|| wrong("no \")\" at the end"))?;
        let opclass = opclass.trim();
        let columns = if opclass == "gin" {
            inner.split(',').map(parse_column).collect::<Option<Vec<_>>>()
        } else {
            let (field, config) = match inner.split_once(',') {
                Some((field, config)) => (field, Some(config)),
                None => (inner, None),
            };
            column(field, opclass, config).map(|column| vec![column])
        };
        let columns = columns.ok_or_else(|| wrong("a column that cannot be read"))?;
        if columns.len() > COLUMNS_MAX {
            return Err(wrong(&format!("more than {COLUMNS_MAX} columns")));
        }
        Ok(IndexDefinition { name: name.to_owned(), columns })
    }
}

/// `FIELD OPCLASS` or `FIELD OPCLASS(CONFIG)`.
fn parse_column(text: &str) -> Option<ColumnDefinition> {
    let (field, class) = text.trim().split_once(char::is_whitespace)?;
    match class.split_once('(') {
        None => column(field, class, None),
        Some((class, config)) => {
            column(field, class, Some(config.trim_end().strip_suffix(')')?))
        }
    }
}

fn column(
    field: &str,
    opclass: &str,
    config: Option<&str>,
) -> Option<ColumnDefinition> {
    Some(ColumnDefinition {
        field: word(field)?,
        opclass: word(opclass)?,
        config: match config {
            Some(config) => Some(word(config)?),
            None => None,
        },
    })
}

/// A trimmed word without blanks, parentheses, commas and equals signs.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let forbidden = |c: char| c.is_whitespace() || c.is_control() || "(),=".contains(c);
    (!text.is_empty() && !text.contains(forbidden)).then(|| text.to_owned())
}

/// Checks an index name; the error is half a sentence.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let mut chars = name.chars();
    let first = chars.next().ok_or("the name is empty")?;
    let fine = (first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !fine {
        return Err(format!(
            "{name:?} is no index name (a letter or underscore, then letters, digits and \
             underscores)"
        ));
    }
    if name.len() > NAME_MAX {
        return Err(format!("the name is longer than {NAME_MAX} bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> IndexDefinition {
        text.parse().unwrap()
    }

    #[test]
    fn both_notations_come_back_as_they_were_written() {
        for text in [
            "body_tsvector=tsvector_ops(body, english)",
            "s=gin_trgm_ops(subject)",
            "both=gin(subject tsvector_ops(simple), body gin_trgm_ops)",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        let loose = parse(" x = gin( body   tsvector_ops( simple ) ) ");
        assert_eq!(loose.to_string(), "x=tsvector_ops(body, simple)");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_reason() {
        for (text, reason) in [
            ("tsvector_ops(body)", "no \"=\""),
            ("=tsvector_ops(body)", "the name is empty"),
            ("../x=tsvector_ops(body)", "is no index name"),
            ("1x=tsvector_ops(body)", "is no index name"),
            ("x=tsvector_ops", "no \"(\""),
            ("x=tsvector_ops(body", "no \")\""),
            ("x=tsvector_ops()", "a column"),
            ("x=tsvector_ops(body,)", "a column"),
            ("x=tsvector_ops(body, a, b)", "a column"),
            ("x=gin(body)", "a column"),
            ("x=gin(body tsvector_ops(a b))", "a column"),
            ("x=gin(body tsvector_ops(a)", "a column"),
        ] {
            let error = text.parse::<IndexDefinition>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let long = format!("{}=tsvector_ops(body)", "x".repeat(NAME_MAX + 1));
        assert!(long.parse::<IndexDefinition>().is_err());
        let columns = vec!["body gin_trgm_ops"; COLUMNS_MAX + 1].join(",");
        assert!(format!("x=gin({columns})").parse::<IndexDefinition>().is_err());
    }

    #[test]
    fn unknown_words_are_refused_with_a_list_of_what_there_is() {
        let fields = [
            Field::new("headers", ValueKind::Json),
            Field::new("body", ValueKind::Text),
        ];
        for (text, sentence) in [
            (
                "x=tsvector(body)",
                "index x: there is no operator class tsvector; there are tsvector_ops, \
                 gin_trgm_ops, jsonb_ops, jsonb_path_ops and array_ops",
            ),
            (
                "x=tsvector_ops(text)",
                "index x: the input has no field text; it has headers and body",
            ),
            (
                "x=jsonb_ops(body)",
                "index x: jsonb_ops cannot index body, which is text; it can index headers",
            ),
            (
                "x=array_ops(body)",
                "index x: array_ops cannot index body, which is text; the input has no \
                 field that it could index",
            ),
        ] {
            let error = parse(text).resolve(&fields).unwrap_err();
            assert_eq!(error.to_string(), sentence);
        }
        let twice = [parse("x=jsonb_ops(headers)"), parse("x=gin_trgm_ops(body)")];
        let error = resolve_all(&twice, &fields).unwrap_err();
        assert!(error.to_string().starts_with("two indexes are named x"), "{error}");
    }
}
