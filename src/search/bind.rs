//! Binds an expression to an archive: names to fields, operators to tests, indexes that
//! can help.
//!
//! A name is a field (`body`), an index (`body_tsvector`), which stands for its field and
//! is then the only index asked, or `date`. What a text search means depends on the
//! left side, as in PostgreSQL: a field is a text, so `body @@ 'fat cat'` is
//! `plainto_tsquery`; an index or `to_tsvector(…)` is a tsvector, so there `'fat & cat'`
//! is a tsquery. Where no configuration is named it is that of the index, else
//! `english`.

use regex::{Regex, RegexBuilder};

use super::array_text::parse_array;
use super::dates;
use super::grammar::{Condition, Expr, Operand, QueryFunction, Source};
use super::recheck::{ArrayOperator, Comparison, Leaf, Node, Similarity, Test};
use crate::catalog::ResolvedIndex;
use crate::document::{Field, ValueKind};
use crate::error::Result;
use crate::opclass::jsonb::{self, JsonPath};
use crate::opclass::trigram::Like;
use crate::opclass::tsvector::Config;
use crate::opclass::tsvector::tsquery::TsQuery;
use crate::opclass::{Argument, KeyQuery};

/// Configuration of a text search where none is named.
pub(super) const DEFAULT_CONFIG: &str = "english";
/// The document's own date, where no field has this name.
pub(super) const DATE: &str = "date";
/// Characters of an operand that `--explain` shows.
const SHOWN: usize = 200;

/// An index column that can narrow a condition down.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Position among the indexes.
    pub index: usize,
    /// Position among its columns.
    pub column: u8,
    /// What it is asked.
    pub query: KeyQuery,
}

/// What names can mean.
#[derive(Debug)]
pub(super) struct Schema {
    pub fields: Vec<Field>,
    pub indexes: Vec<ResolvedIndex>,
}

/// What a name means.
#[derive(Clone, Copy)]
enum Target {
    /// A field; only through this index, if one is named.
    Field {
        field: usize,
        index: Option<usize>,
    },
    Date,
}

impl Schema {
    /// The index columns over a field.
    pub(super) fn columns_of(
        &self,
        field: usize,
    ) -> impl Iterator<Item = (usize, u8)> + '_ {
        self.indexes.iter().enumerate().flat_map(move |(index, definition)| {
            let columns = (0_u8..).zip(&definition.columns);
            columns
                .filter(move |(_, column)| column.field == field)
                .map(move |(at, _)| (index, at))
        })
    }

    /// The configuration of the first text search index on a field.
    pub(super) fn search_config(&self, field: usize) -> Option<&str> {
        self.columns_of(field).find_map(|(index, column)| {
            let column = &self.indexes[index].columns[usize::from(column)];
            (column.class.name() == "tsvector_ops")
                .then(|| column.config.as_deref().unwrap_or(DEFAULT_CONFIG))
        })
    }

    /// The field of that name.
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    fn target(&self, name: &str, at: usize, source: Source<'_>) -> Result<Target> {
        let exact = |same: &dyn Fn(&str) -> bool| {
            if let Some(field) = self.fields.iter().position(|f| same(&f.name)) {
                return Some(Target::Field { field, index: None });
            }
            if let Some(index) = self.indexes.iter().position(|i| same(&i.name)) {
                let field = self.indexes[index].columns.first()?.field;
                return Some(Target::Field { field, index: Some(index) });
            }
            same(DATE).then_some(Target::Date)
        };
        let found = exact(&|known| known == name)
            .or_else(|| exact(&|known| known.eq_ignore_ascii_case(name)));
        if let Some(Target::Field { index: Some(index), .. }) = found
            && self.indexes[index].columns.len() > 1
        {
            let fields = self.indexes[index].columns.iter();
            let fields: Vec<_> =
                fields.map(|column| self.fields[column.field].name.as_str()).collect();
            let message = format!(
                "index {name} has several columns; name the field instead: {}",
                fields.join(", ")
            );
            return Err(source.error(at, message));
        }
        found.ok_or_else(|| {
            let fields = self.fields.iter().map(|field| field.name.as_str());
            let fields: Vec<_> = fields.chain([DATE]).collect();
            let indexes: Vec<_> =
                self.indexes.iter().map(|index| index.name.as_str()).collect();
            let message = format!(
                "no field or index is named {name}; the fields are {}; the indexes \
                 are {}",
                fields.join(", "),
                if indexes.is_empty() { "none".to_owned() } else { indexes.join(", ") }
            );
            source.error(at, message)
        })
    }
}

/// Binds a parsed expression.
pub(super) fn bind(schema: &Schema, source: Source<'_>, expr: &Expr) -> Result<Node> {
    Binder { schema, source }.node(expr, false)
}

struct Binder<'a> {
    schema: &'a Schema,
    source: Source<'a>,
}

impl Binder<'_> {
    fn node(&self, expr: &Expr, denied: bool) -> Result<Node> {
        let parts = |parts: &[Expr]| {
            parts.iter().map(|part| self.node(part, denied)).collect::<Result<Vec<_>>>()
        };
        Ok(match expr {
            Expr::Not(part) => self.node(part, !denied)?,
            Expr::And(list) if !denied => Node::And(parts(list)?),
            Expr::Or(list) if denied => Node::And(parts(list)?),
            Expr::And(list) | Expr::Or(list) => Node::Or(parts(list)?),
            Expr::Condition(condition) => {
                Node::Leaf(Box::new(self.leaf(condition, denied)?))
            }
        })
    }

    fn leaf(&self, condition: &Condition, denied: bool) -> Result<Leaf> {
        let Condition { column, operator, operand, .. } = condition;
        let target = self.schema.target(&column.name, column.at, self.source)?;
        if *operator == "IS NULL" {
            let field = match target {
                Target::Field { field, .. } => Some(field),
                Target::Date => None,
            };
            let shown = format!("{} IS NULL", column.name);
            return Ok(Leaf {
                test: Test::Null { field },
                denied,
                shown,
                choices: vec![],
            });
        }
        if *operand == Operand::Null {
            let shown = format!("{} {operator} NULL", column.name);
            return Ok(Leaf { test: Test::Unknown, denied, shown, choices: vec![] });
        }
        let Target::Field { field, index } = target else {
            return self.date(condition, denied);
        };
        let kind = self.schema.fields[field].kind;
        if column.to_tsvector && (*operator != "@@" || kind != ValueKind::Text) {
            return Err(self.unsuitable(condition, kind, &["@@"]));
        }
        let (test, argument, shown) = match kind {
            ValueKind::Text => self.text(condition, field, index)?,
            ValueKind::Lexemes => self.search(condition, field, index)?,
            ValueKind::Json => self.json(condition, field)?,
            ValueKind::Texts => self.texts(condition, field)?,
            ValueKind::Integers => self.integers(condition, field)?,
        };
        let choices = match argument {
            Some(argument) => {
                self.choices(condition, field, index, &test, &argument)?
            }
            None => Vec::new(),
        };
        Ok(Leaf { test, denied, shown, choices })
    }

    /// The index columns that take the operator.
    fn choices(
        &self,
        condition: &Condition,
        field: usize,
        only: Option<usize>,
        test: &Test,
        argument: &Argument,
    ) -> Result<Vec<Choice>> {
        let mut choices = Vec::new();
        for (index, at) in self.schema.columns_of(field) {
            if only.is_some_and(|only| only != index) {
                continue;
            }
            let column = &self.schema.indexes[index].columns[usize::from(at)];
            if !column.class.operators().contains(&condition.operator) {
                continue;
            }
            let config = column.config.as_deref();
            if let Test::Search { config: wanted, .. } = test
                && Config::find(config.unwrap_or(DEFAULT_CONFIG))?.name()
                    != wanted.name()
            {
                continue;
            }
            let query = column
                .class
                .query(config, condition.operator, argument)
                .map_err(|error| self.source.error(condition.operand_at, error))?;
            choices.push(Choice { index, column: at, query });
        }
        Ok(choices)
    }

    fn unsuitable(
        &self,
        condition: &Condition,
        kind: ValueKind,
        operators: &[&str],
    ) -> crate::Error {
        let message = format!(
            "operator {} does not suit {}, which is {}; it takes {}",
            condition.operator,
            condition.column.name,
            crate::catalog::definition::kind_name(kind),
            operators.join(" ")
        );
        self.source.error(condition.operator_at, message)
    }

    fn bad_operand(&self, condition: &Condition, expected: &str) -> crate::Error {
        let message =
            format!("operator {} takes {expected} on its right", condition.operator);
        self.source.error(condition.operand_at, message)
    }

    fn shown(&self, condition: &Condition, value: &str) -> String {
        let mut value = value.replace('\'', "''");
        if let Some((at, _)) = value.char_indices().nth(SHOWN) {
            value.truncate(at);
            value.push('…');
        }
        format!("{} {} '{value}'", condition.column.name, condition.operator)
    }

    /// A string operand.
    fn string<'c>(&self, condition: &'c Condition, what: &str) -> Result<&'c str> {
        match &condition.operand {
            Operand::Text(text, _) => Ok(text),
            _ => Err(self.bad_operand(condition, what)),
        }
    }

    fn text(
        &self,
        condition: &Condition,
        field: usize,
        index: Option<usize>,
    ) -> Result<(Test, Option<Argument>, String)> {
        const OPERATORS: [&str; 13] = [
            "@@", "LIKE", "ILIKE", "~", "~*", "=", "<", "<=", ">", ">=", "%", "%>",
            "%>>",
        ];
        let operator = condition.operator;
        if operator == "@@" {
            return self.search(condition, field, index);
        }
        if !OPERATORS.contains(&operator) {
            return Err(self.unsuitable(condition, ValueKind::Text, &OPERATORS));
        }
        let text = self.string(condition, "a 'text'")?;
        let here = |error| self.source.error(condition.operand_at, error);
        let test = match operator {
            "LIKE" | "ILIKE" => {
                let like = Like::new(text, operator == "ILIKE").map_err(here)?;
                let shown = literals(text, operator == "ILIKE");
                Test::Like { field, like: Box::new(like), shown }
            }
            "~" | "~*" => {
                let regex = RegexBuilder::new(text)
                    .case_insensitive(operator == "~*")
                    .dot_matches_new_line(true)
                    .build();
                let regex = regex.map_err(|error| {
                    let message = self.regex_message(text, &error);
                    self.source.error(condition.operand_at, message)
                })?;
                Test::Regex { field, regex }
            }
            "%" => {
                Test::Similar { field, kind: Similarity::Whole, value: text.to_owned() }
            }
            "%>" => {
                Test::Similar { field, kind: Similarity::Word, value: text.to_owned() }
            }
            "%>>" => Test::Similar {
                field,
                kind: Similarity::StrictWord,
                value: text.to_owned(),
            },
            operator => Test::Text {
                field,
                comparison: comparison(operator)
                    .expect("only comparisons are left of the list"),
                value: text.to_owned(),
            },
        };
        let shown = self.shown(condition, text);
        Ok((test, Some(Argument::Text(text.to_owned())), shown))
    }

    /// A regular expression that cannot be had, on one line.
    fn regex_message(&self, pattern: &str, error: &regex::Error) -> String {
        let reason = match regex_syntax::parse(pattern) {
            Err(regex_syntax::Error::Parse(error)) => error.kind().to_string(),
            Err(regex_syntax::Error::Translate(error)) => error.kind().to_string(),
            _ => error.to_string().replace('\n', " "),
        };
        format!("cannot use this regular expression: {reason}")
    }

    fn search(
        &self,
        condition: &Condition,
        field: usize,
        index: Option<usize>,
    ) -> Result<(Test, Option<Argument>, String)> {
        let kind = self.schema.fields[field].kind;
        if condition.operator != "@@" {
            return Err(self.unsuitable(condition, kind, &["@@"]));
        }
        let here = |at: usize| move |error| self.source.error(at, error);
        let column = &condition.column;
        let of_index = index.and_then(|index| {
            let column = self.schema.indexes[index].columns.first()?;
            (column.class.name() == "tsvector_ops")
                .then(|| column.config.as_deref().unwrap_or(DEFAULT_CONFIG))
        });
        let vector = match &column.config {
            Some(name) => name.as_str(),
            None => of_index
                .or_else(|| self.schema.search_config(field))
                .unwrap_or(DEFAULT_CONFIG),
        };
        let config = Config::find(vector).map_err(here(column.at))?;
        let is_vector =
            of_index.is_some() || column.to_tsvector || kind == ValueKind::Lexemes;
        let at = condition.operand_at;
        let query = match &condition.operand {
            Operand::Query { function, config: named, text } => {
                let config = match named {
                    Some(name) => Config::find(name).map_err(here(at))?,
                    None => config,
                };
                make(*function, config, text)
            }
            Operand::Text(text, cast) => match cast.as_deref() {
                Some("tsquery") => TsQuery::parse(text),
                None if is_vector => TsQuery::parse(text),
                None | Some("text") => TsQuery::plainto_tsquery(config, text),
                Some(_) => return Err(self.bad_operand(condition, "a tsquery")),
            },
            _ => return Err(self.bad_operand(condition, "a tsquery")),
        };
        let query = query.map_err(here(at))?;
        let text = query.to_string();
        let shown = self.shown(condition, &text);
        Ok((Test::Search { field, config, query }, Some(Argument::Text(text)), shown))
    }

    fn json(
        &self,
        condition: &Condition,
        field: usize,
    ) -> Result<(Test, Option<Argument>, String)> {
        const OPERATORS: [&str; 6] = ["@>", "?", "?|", "?&", "@?", "@@"];
        let operator = condition.operator;
        let here = |error| self.source.error(condition.operand_at, error);
        if matches!(operator, "?|" | "?&") {
            let keys = self.text_array(condition)?;
            let shown = self.shown(condition, &show_array(&keys));
            let some = keys.iter().flatten().cloned().collect();
            let test = Test::JsonKeys { field, keys: some, all: operator == "?&" };
            return Ok((test, Some(Argument::Texts(keys)), shown));
        }
        let text = match operator {
            "@>" => self.string(condition, "a JSON value as 'text'")?,
            "?" => self.string(condition, "a key as 'text'")?,
            "@?" | "@@" => self.string(condition, "a jsonpath as 'text'")?,
            _ => return Err(self.unsuitable(condition, ValueKind::Json, &OPERATORS)),
        };
        let test = match operator {
            "@>" => {
                Test::JsonContains { field, value: jsonb::parse(text).map_err(here)? }
            }
            "?" => Test::JsonKeys { field, keys: vec![text.to_owned()], all: true },
            _ => {
                let path = JsonPath::parse(text).map_err(here)?;
                if let Some(name) = path.variable() {
                    let message =
                        format!("could not find jsonpath variable \"{name}\"");
                    return Err(self.source.error(condition.operand_at, message));
                }
                Test::JsonPath { field, path, matches: operator == "@@" }
            }
        };
        let shown = self.shown(condition, text);
        Ok((test, Some(Argument::Text(text.to_owned())), shown))
    }

    fn text_array(&self, condition: &Condition) -> Result<Vec<Option<String>>> {
        match &condition.operand {
            Operand::Texts(elements) => Ok(elements.clone()),
            Operand::Text(text, _) => parse_array(text).ok_or_else(|| {
                self.bad_operand(condition, "array['a', 'b'] or '{a,b}'")
            }),
            _ => Err(self.bad_operand(condition, "array['a', 'b'] or '{a,b}'")),
        }
    }

    fn array_operator(
        &self,
        condition: &Condition,
        kind: ValueKind,
    ) -> Result<ArrayOperator> {
        Ok(match condition.operator {
            "@>" => ArrayOperator::Contains,
            "<@" => ArrayOperator::ContainedBy,
            "&&" => ArrayOperator::Overlaps,
            "=" => ArrayOperator::Equal,
            _ => {
                return Err(self.unsuitable(condition, kind, &["@>", "<@", "&&", "="]));
            }
        })
    }

    fn texts(
        &self,
        condition: &Condition,
        field: usize,
    ) -> Result<(Test, Option<Argument>, String)> {
        let operator = self.array_operator(condition, ValueKind::Texts)?;
        let value = self.text_array(condition)?;
        let shown = self.shown(condition, &show_array(&value));
        let argument = Argument::Texts(value.clone());
        Ok((Test::Texts { field, operator, value }, Some(argument), shown))
    }

    fn integers(
        &self,
        condition: &Condition,
        field: usize,
    ) -> Result<(Test, Option<Argument>, String)> {
        let operator = self.array_operator(condition, ValueKind::Integers)?;
        let expected = "array[1, 2] or '{1,2}'";
        let value = match &condition.operand {
            Operand::Integers(elements) => elements.clone(),
            Operand::Texts(elements) if elements.iter().all(Option::is_none) => {
                vec![None; elements.len()]
            }
            Operand::Text(text, _) => {
                let elements = parse_array(text)
                    .ok_or_else(|| self.bad_operand(condition, expected))?;
                let number = |element: Option<String>| match element {
                    None => Some(None),
                    Some(text) => text.trim().parse().ok().map(Some),
                };
                let numbers: Option<Vec<_>> =
                    elements.into_iter().map(number).collect();
                numbers.ok_or_else(|| self.bad_operand(condition, expected))?
            }
            _ => return Err(self.bad_operand(condition, expected)),
        };
        let texts: Vec<_> = value
            .iter()
            .map(|number| number.map(|number| number.to_string()))
            .collect();
        let shown = self.shown(condition, &show_array(&texts));
        let argument = Argument::Integers(value.clone());
        Ok((Test::Integers { field, operator, value }, Some(argument), shown))
    }

    fn date(&self, condition: &Condition, denied: bool) -> Result<Leaf> {
        let Some(comparison) = comparison(condition.operator) else {
            let message = format!(
                "operator {} does not suit {DATE}; it takes = < <= > >= and BETWEEN",
                condition.operator
            );
            return Err(self.source.error(condition.operator_at, message));
        };
        let expected = "a date, such as '2020-01-31' or '2020-01-31 12:30+02'";
        let text = self.string(condition, expected)?;
        let value =
            dates::parse(text).ok_or_else(|| self.bad_operand(condition, expected))?;
        let shown = self.shown(condition, text);
        let test = Test::Date { comparison, value };
        Ok(Leaf { test, denied, shown, choices: vec![] })
    }
}

/// The query that a function makes.
pub(super) fn make(
    function: QueryFunction,
    config: &Config,
    text: &str,
) -> Result<TsQuery> {
    match function {
        QueryFunction::Operators => TsQuery::to_tsquery(config, text),
        QueryFunction::Plain => TsQuery::plainto_tsquery(config, text),
        QueryFunction::Phrase => TsQuery::phraseto_tsquery(config, text),
        QueryFunction::Web => TsQuery::websearch_to_tsquery(config, text),
    }
}

/// Finds the literal parts of a LIKE pattern, for highlighting.
fn literals(pattern: &str, case_insensitive: bool) -> Option<Regex> {
    let mut parts = vec![String::new()];
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '%' | '_' => parts.push(String::new()),
            '\\' => parts.last_mut()?.extend(characters.next()),
            c => parts.last_mut()?.push(c),
        }
    }
    let parts: Vec<_> = parts
        .iter()
        .filter(|part| !part.trim().is_empty())
        .map(|part| regex::escape(part))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let any =
        RegexBuilder::new(&parts.join("|")).case_insensitive(case_insensitive).build();
    any.ok()
}

fn comparison(operator: &str) -> Option<Comparison> {
    Some(match operator {
        "=" => Comparison::Equal,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn show_array(elements: &[Option<String>]) -> String {
    let shown: Vec<_> =
        elements.iter().map(|element| element.as_deref().unwrap_or("NULL")).collect();
    format!("{{{}}}", shown.join(","))
}
