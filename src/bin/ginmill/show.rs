//! `ginmill show DIR ID`.

use std::io::Write;
use std::path::PathBuf;

use ginmill::document::Value;
use ginmill::opclass::jsonb;
use ginmill::search::Searcher;
use serde_json::json;

use crate::face::{Face, Failure, Status};

/// Print one message, decoded
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ginmill show mail.gin '<20040501.1234@example.org>'
  ginmill show mail.gin '(12,7)' --raw")]
pub(crate) struct Args {
    /// An archive directory
    dir: PathBuf,
    /// A Message-ID, or a TID as (block,offset)
    id: String,
    /// As it is in its file
    #[arg(long)]
    raw: bool,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let Some(message) = Searcher::open(&self.dir)?.show(&self.id)? else {
            return Ok(Status::Nothing);
        };
        if self.raw {
            face.out.write_all(&message.raw)?;
            return Ok(Status::Done);
        }
        let field = |name: &str| {
            message
                .fields
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value)
        };
        let text = |name: &str| match field(name) {
            Some(Value::Text(text)) => Some(text.as_ref()),
            _ => None,
        };
        if face.json {
            let headers: Option<serde_json::Value> = match field("headers") {
                Some(Value::Json(headers)) => {
                    serde_json::from_str(&jsonb::to_text(headers)).ok()
                }
                _ => None,
            };
            face.line(&json!({
                "tid": message.tid.to_string(),
                "file": message.path.display().to_string(),
                "offset": message.entry.offset,
                "length": message.entry.len,
                "date": message.entry.date,
                "headers": headers,
                "subject": text("subject"),
                "body": text("body"),
                "warnings": message.warnings,
            }))?;
            return Ok(Status::Done);
        }
        for name in ["from", "to", "list", "subject", "message_id"] {
            if let Some(value) = text(name) {
                writeln!(face.out, "{name}: {value}")?;
            }
        }
        let date =
            message.entry.date.and_then(|date| jiff::Timestamp::from_second(date).ok());
        if let Some(date) = date {
            writeln!(face.out, "date: {date}")?;
        }
        writeln!(
            face.out,
            "at: {} {}:{}",
            message.tid,
            message.path.display(),
            message.entry.offset
        )?;
        for warning in &message.warnings {
            writeln!(face.out, "note: {warning}")?;
        }
        writeln!(face.out)?;
        let body = text("body").unwrap_or("");
        face.out.write_all(body.as_bytes())?;
        if !body.ends_with('\n') {
            writeln!(face.out)?;
        }
        Ok(Status::Done)
    }
}
