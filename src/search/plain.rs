//! The plain query: what people type, in terms of conditions.
//!
//! Words, `"phrases"`, `or` and `-without` are PostgreSQL's web search. Each word or
//! phrase may stand in any of the searched fields, which are body and subject, whether
//! they have an index or not, and other texts with a text search index; so that `alice budget` finds the message that has one word
//! in its subject and the other in its body. In terms of `--where`, a word `w` is
//! `(body @@ 'w' OR subject @@ 'w')`, and `-w` is
//! `(body IS NULL OR NOT body @@ 'w') AND (subject IS NULL OR NOT subject @@ 'w')`.
//!
//! Shortcuts narrow the search down; a value with blanks is put in double quotes, and a
//! `-` before a shortcut denies it (a message without that header then passes):
//!
//! | shortcut | meaning |
//! |---|---|
//! | `from:v` `to:v` `list:v` | `"from" ILIKE '%v%'`, and so on |
//! | `subject:v` | `subject @@ phraseto_tsquery('v')` |
//! | `after:d` `before:d` | `date >= 'd'`, `date < 'd'`; `d` may be a year or a month |
//! | `id:v` | `headers @> '{"message-id": "<v>"}'` |

use std::collections::BTreeMap;

use super::bind::{DATE, DEFAULT_CONFIG, Schema, bind};
use super::dates;
use super::grammar::{Column, Condition, Expr, Operand, QueryFunction, Source};
use super::recheck::Node;
use crate::document::ValueKind;
use crate::error::Result;
use crate::opclass::tsvector::Config;
use crate::opclass::tsvector::tsquery::{Terms, TsQuery};

/// The fields that are searched whatever indexes there are.
const USUAL_FIELDS: [&str; 2] = ["body", "subject"];
const SHORTCUTS: [&str; 7] = ["from", "to", "list", "subject", "after", "before", "id"];
/// The field whose words count most in the rank.
const TITLE: &str = "subject";

/// A plain query, bound.
pub(super) struct Plain {
    pub node: Node,
    /// What to rank by: fields (with whether they are titles), configuration, query.
    pub rankings: Vec<Ranking>,
    /// Nothing was asked for but stop words.
    pub only_stop_words: bool,
}

/// A query over the words of several fields together.
#[derive(Clone, Debug)]
pub(super) struct Ranking {
    /// In the order in which they count as one text; `true` for weight A.
    pub fields: Vec<(usize, bool)>,
    pub config: &'static Config,
    pub query: TsQuery,
}

/// A shortcut as found in the text.
struct Shortcut<'a> {
    name: &'static str,
    value: &'a str,
    denied: bool,
    at: usize,
}

/// Binds what was typed.
pub(super) fn parse(schema: &Schema, text: &str) -> Result<Plain> {
    let source = Source(text);
    let (words, shortcuts) = cut_shortcuts(text);
    let mut parts = Vec::new();
    for shortcut in &shortcuts {
        parts.push(condition(schema, source, shortcut)?);
    }
    let mut rankings = Vec::new();
    let mut groups = Vec::new();
    for (config, fields) in searched_fields(schema) {
        let config = Config::find(config)?;
        let query = TsQuery::websearch_to_tsquery(config, &words)?;
        if query.is_empty() {
            continue;
        }
        let group = Group { schema, config, fields: &fields };
        groups.push(group.expr(&query.terms(), false));
        // The title first, as in `setweight(to_tsvector(subject), 'A') || …`.
        let mut fields: Vec<_> = fields
            .iter()
            .map(|&field| (field, schema.fields[field].name == TITLE))
            .collect();
        fields.sort_by_key(|(_, title)| !title);
        rankings.push(Ranking { fields, config, query });
    }
    let asked = !words.trim().is_empty();
    let only_stop_words = asked && groups.is_empty();
    let node = match groups.len() {
        // Stop words beside a shortcut ask for nothing more.
        0 if parts.is_empty() => Node::Or(Vec::new()),
        0 => bind(schema, source, &all_of(parts))?,
        _ => {
            parts.push(any_of(groups));
            bind(schema, source, &all_of(parts))?
        }
    };
    Ok(Plain { node, rankings, only_stop_words })
}

/// Fields by configuration: the usual ones, and those with a text search index; all
/// texts if there are neither. A field without an index is read as the others are.
fn searched_fields(schema: &Schema) -> BTreeMap<&str, Vec<usize>> {
    let texts: Vec<usize> = (0..schema.fields.len())
        .filter(|&field| schema.fields[field].kind == ValueKind::Text)
        .collect();
    let indexed = texts.iter().find_map(|&field| schema.search_config(field));
    let otherwise = indexed.unwrap_or(DEFAULT_CONFIG);
    let mut fields: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &field in &texts {
        let usual = USUAL_FIELDS.contains(&schema.fields[field].name.as_str());
        match schema.search_config(field) {
            Some(config) => fields.entry(config).or_default().push(field),
            None if usual => fields.entry(otherwise).or_default().push(field),
            None => {}
        }
    }
    if fields.is_empty() && !texts.is_empty() {
        fields.insert(otherwise, texts);
    }
    fields
}

/// Fields that are searched together.
struct Group<'a> {
    schema: &'a Schema,
    config: &'static Config,
    fields: &'a [usize],
}

impl Group<'_> {
    fn expr(&self, terms: &Terms, denied: bool) -> Expr {
        match terms {
            Terms::Not(part) => self.expr(part, !denied),
            Terms::And(parts) | Terms::Or(parts) => {
                let any = matches!(terms, Terms::Or(_)) != denied;
                let parts = parts.iter().map(|part| self.expr(part, denied)).collect();
                if any { any_of(parts) } else { all_of(parts) }
            }
            Terms::Term(query) => {
                let fields = self.fields.iter().map(|&field| {
                    let name = &self.schema.fields[field].name;
                    let column = Column {
                        name: name.clone(),
                        at: 0,
                        to_tsvector: true,
                        config: Some(self.config.name().to_owned()),
                    };
                    let operand =
                        Operand::Text(query.to_string(), Some("tsquery".to_owned()));
                    let found = leaf(column, "@@", operand, 0);
                    if denied { lacking_or_not(name, found) } else { found }
                });
                let fields = fields.collect();
                if denied { all_of(fields) } else { any_of(fields) }
            }
        }
    }
}

fn leaf(column: Column, operator: &'static str, operand: Operand, at: usize) -> Expr {
    Expr::Condition(Condition {
        column,
        operator,
        operator_at: at,
        operand,
        operand_at: at,
    })
}

fn named(name: &str, at: usize) -> Column {
    Column { name: name.to_owned(), at, to_tsvector: false, config: None }
}

/// `name IS NULL OR NOT expr`
fn lacking_or_not(name: &str, expr: Expr) -> Expr {
    let lacking = leaf(named(name, 0), "IS NULL", Operand::Null, 0);
    Expr::Or(vec![lacking, Expr::Not(Box::new(expr))])
}

fn all_of(mut parts: Vec<Expr>) -> Expr {
    if parts.len() == 1 { parts.remove(0) } else { Expr::And(parts) }
}

fn any_of(mut parts: Vec<Expr>) -> Expr {
    if parts.len() == 1 { parts.remove(0) } else { Expr::Or(parts) }
}

/// Takes the shortcuts out of a text; what is left, with a blank in their place.
fn cut_shortcuts(text: &str) -> (String, Vec<Shortcut<'_>>) {
    let mut words = String::new();
    let mut shortcuts = Vec::new();
    let mut at = 0;
    let mut at_start = true;
    while at < text.len() {
        if at_start && let Some((shortcut, end)) = shortcut_at(text, at) {
            shortcuts.push(shortcut);
            words.push(' ');
            at = end;
            at_start = false;
            continue;
        }
        let rest = &text[at..];
        let c = rest.chars().next().expect("not at the end");
        let len = match c {
            // What is quoted is no shortcut.
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            c => c.len_utf8(),
        };
        words.push_str(&rest[..len]);
        at += len;
        at_start = c.is_whitespace();
    }
    (words, shortcuts)
}

/// The shortcut that begins here, and where it ends.
fn shortcut_at(text: &str, start: usize) -> Option<(Shortcut<'_>, usize)> {
    let rest = &text[start..];
    let denied = rest.starts_with('-');
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (name, value) = rest.split_once(':')?;
    let name = SHORTCUTS.into_iter().find(|known| name.eq_ignore_ascii_case(known))?;
    let at = text.len() - value.len();
    let (value, end) = match value.strip_prefix('"') {
        Some(quoted) => {
            let len = quoted.find('"').unwrap_or(quoted.len());
            (&quoted[..len], (at + 1 + len + 1).min(text.len()))
        }
        None => {
            let len = value.find(char::is_whitespace).unwrap_or(value.len());
            (&value[..len], at + len)
        }
    };
    // `from:` with nothing behind it is a word.
    let shortcut = Shortcut { name, value, denied, at };
    (!value.is_empty()).then_some((shortcut, end))
}

/// The condition that a shortcut stands for.
fn condition(
    schema: &Schema,
    source: Source<'_>,
    shortcut: &Shortcut<'_>,
) -> Result<Expr> {
    let Shortcut { name, value, denied, at } = *shortcut;
    let (column, operator, operand) = match name {
        "after" | "before" => {
            let Some(moment) = dates::parse_period(value) else {
                let message = format!(
                    "{name}: takes a date, such as 2020, 2020-01 or 2020-01-31"
                );
                return Err(source.error(at, message));
            };
            let operator = if name == "after" { ">=" } else { "<" };
            (DATE, operator, Operand::Text(date_text(moment), None))
        }
        "id" if schema.field("headers").is_some() => {
            let id = value.trim_start_matches('<').trim_end_matches('>');
            let json = serde_json::json!({ "message-id": format!("<{id}>") });
            ("headers", "@>", Operand::Text(json.to_string(), None))
        }
        "id" => ("message_id", "=", Operand::Text(value.to_owned(), None)),
        "subject" => {
            let function = QueryFunction::Phrase;
            let text = value.to_owned();
            (name, "@@", Operand::Query { function, config: None, text })
        }
        name => {
            let mut pattern = String::from("%");
            for c in value.chars() {
                if matches!(c, '%' | '_' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(c);
            }
            pattern.push('%');
            (name, "ILIKE", Operand::Text(pattern, None))
        }
    };
    let expr = leaf(named(column, at), operator, operand, at);
    Ok(if denied { lacking_or_not(column, expr) } else { expr })
}

/// A moment as a condition on dates reads it.
fn date_text(nanoseconds: i128) -> String {
    jiff::Timestamp::from_nanosecond(nanoseconds)
        .map(|moment| moment.to_string())
        .expect("it was read from a date")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::IndexDefinition;
    use crate::document::Field;
    use crate::search::recheck::Leaf;

    fn mail() -> Schema {
        let fields = vec![
            Field::new("headers", ValueKind::Json),
            Field::new("subject", ValueKind::Text),
            Field::new("body", ValueKind::Text),
            Field::new("from", ValueKind::Text),
            Field::new("to", ValueKind::Text),
            Field::new("list", ValueKind::Text),
        ];
        let indexes = [
            "body_tsvector=tsvector_ops(body, english)",
            "subject_tsvector=tsvector_ops(subject, english)",
        ];
        let indexes = indexes.map(|text| {
            let definition: IndexDefinition = text.parse().unwrap();
            definition.resolve(&fields).unwrap()
        });
        Schema { fields, indexes: indexes.into() }
    }

    fn show(node: &Node) -> String {
        let list = |parts: &[Node], word: &str| {
            let parts: Vec<_> = parts.iter().map(show).collect();
            format!("({})", parts.join(word))
        };
        match node {
            Node::And(parts) => list(parts, " AND "),
            Node::Or(parts) => list(parts, " OR "),
            Node::Leaf(leaf) => {
                let Leaf { denied, shown, .. } = &**leaf;
                format!("{}{shown}", if *denied { "NOT " } else { "" })
            }
        }
    }

    fn meaning(text: &str) -> String {
        show(&parse(&mail(), text).unwrap().node)
    }

    #[test]
    fn every_word_may_stand_in_any_searched_field() {
        assert_eq!(
            meaning("cats \"fat rat\""),
            "((subject @@ '''cat''' OR body @@ '''cat''') AND \
             (subject @@ '''fat'' <-> ''rat''' OR body @@ '''fat'' <-> ''rat'''))"
        );
        assert_eq!(
            meaning("-dog"),
            "((subject IS NULL OR NOT subject @@ '''dog''') AND \
             (body IS NULL OR NOT body @@ '''dog'''))"
        );
        assert_eq!(
            meaning("cat or dog"),
            "((subject @@ '''cat''' OR body @@ '''cat''') OR \
             (subject @@ '''dog''' OR body @@ '''dog'''))"
        );
    }

    #[test]
    fn shortcuts_have_the_documented_meaning() {
        for (text, expected) in [
            ("from:Ann_", "from ILIKE '%Ann\\_%'"),
            ("to:\"a b\"", "to ILIKE '%a b%'"),
            ("-list:x", "(list IS NULL OR NOT list ILIKE '%x%')"),
            ("subject:\"the cats\"", "subject @@ '''cat'''"),
            ("after:2020", "date >= '2020-01-01T00:00:00Z'"),
            ("BEFORE:2020-03", "date < '2020-03-01T00:00:00Z'"),
            ("id:<a@b>", "headers @> '{\"message-id\":\"<a@b>\"}'"),
            ("id:a@b", "headers @> '{\"message-id\":\"<a@b>\"}'"),
            (
                "cat from:ann",
                "(from ILIKE '%ann%' AND (subject @@ '''cat''' OR body @@ '''cat'''))",
            ),
            ("the from:ann", "from ILIKE '%ann%'"),
            ("\"from:ann\"", "(subject @@ '''ann''' OR body @@ '''ann''')"),
        ] {
            assert_eq!(meaning(text), expected, "{text}");
        }
        let error = parse(&mail(), "cat after:soon").err().unwrap().to_string();
        assert_eq!(
            error,
            "column 11: after: takes a date, such as 2020, 2020-01 or 2020-01-31\n  \
             cat after:soon\n            ^"
        );
    }

    #[test]
    fn stop_words_alone_match_nothing_and_are_told_of() {
        let plain = parse(&mail(), "the of").unwrap();
        assert!(plain.only_stop_words);
        assert_eq!(show(&plain.node), "()");
        assert!(!parse(&mail(), "  ").unwrap().only_stop_words);
    }
}
