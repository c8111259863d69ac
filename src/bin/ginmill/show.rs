//! `ginmill show DIR ID`: one message.

use std::io::Write;
use std::path::PathBuf;

use ginmill::document::Value;
use ginmill::opclass::jsonb;
use ginmill::search::{Message, Searcher};
use serde_json::{Map, Value as Json, json};

use crate::dates;
use crate::face::{Face, Failure, Status, note};
use crate::search::path_json;

/// Fields of a mail message in the order in which they are shown above its text.
const HEAD: [&str; 5] = ["date", "from", "to", "subject", "list"];
const TEXT: &str = "body";

/// Show one message, decoded
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill show mail.gin '<20040501.1234@example.org>'
  ginmill show mail.gin '(12,7)' --raw")]
pub(crate) struct Args {
    /// The archive directory
    dir: PathBuf,
    /// Its Message-ID, or its TID: "(block,offset)"
    id: String,
    /// Its bytes as they are in the original
    #[arg(long)]
    raw: bool,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let archive = Searcher::open(&self.dir)?;
        let Some(message) = archive.show(&self.id)? else {
            note(&format!("there is no message {} in {}", self.id, self.dir.display()));
            return Ok(Status::Nothing);
        };
        if self.raw {
            face.out.write_all(&message.raw)?;
        } else if face.json {
            face.line(&message_json(&message))?;
        } else {
            face.out.write_all(message_text(&message).as_bytes())?;
        }
        for warning in &message.warnings {
            note(warning);
        }
        Ok(Status::Done)
    }
}

/// A decoded field as JSON.
fn value_json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Text(text) => text.as_ref().into(),
        // Numbers keep their digits only as text; mail has none.
        Value::Json(json) => {
            let text = jsonb::to_text(json);
            serde_json::from_str(&text).unwrap_or(Json::String(text))
        }
        Value::Lexemes(lexemes) => json!(lexemes),
        Value::Texts(texts) => json!(texts),
        Value::Integers(integers) => json!(integers),
    }
}

fn message_json(message: &Message) -> Json {
    let fields = message.fields.iter();
    let fields: Map<String, Json> =
        fields.map(|(name, value)| (name.clone(), value_json(value))).collect();
    json!({
        "tid": message.tid.to_string(),
        "file": path_json(&message.path),
        "offset": message.entry.offset,
        "length": message.entry.len,
        "date": message.entry.date.map(dates::rfc3339),
        "fields": fields,
        "warnings": message.warnings,
    })
}

/// The text of a message may hold anything; what commands a terminal is left out.
fn harmless(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn message_text(message: &Message) -> String {
    let value = |name: &str| {
        let field = message.fields.iter().find(|(known, _)| known == name);
        match &field?.1 {
            Value::Text(text) => Some(harmless(text)),
            _ => None,
        }
    };
    let mut out = String::new();
    for name in HEAD {
        let shown = match name {
            "date" => {
                message.entry.date.map(|date| format!("{} UTC", dates::minute(date)))
            }
            name => value(name).filter(|text| !text.is_empty()),
        };
        if let Some(shown) = shown {
            let line = shown.replace('\n', " ");
            out.push_str(&format!("{:<9}{line}\n", format!("{name}:")));
        }
    }
    let place = format!("{}:{}", message.path.display(), message.entry.offset);
    out.push_str(&format!("{:<9}{} {place}\n\n", "place:", message.tid));
    match value(TEXT) {
        Some(text) => out.push_str(&text),
        // Documents of other formats: every field.
        None => {
            for (name, field) in &message.fields {
                out.push_str(&format!(
                    "{name}: {}\n",
                    harmless(&value_json(field).to_string())
                ));
            }
        }
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}
