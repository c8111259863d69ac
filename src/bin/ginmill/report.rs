//! `ginmill report DIR`.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use ginmill::report;
use ginmill::report::{csv, text};

use crate::face::{Face, Failure, Status};

/// Print the report of a build again
#[derive(clap::Args)]
pub(crate) struct Args {
    /// An archive directory, or a report.json
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// The form: a value of the list
    #[arg(long, default_value = "text",
          value_parser = PossibleValuesParser::new(report::RENDERERS.iter().map(|r| r.name)))]
    format: String,
    /// Only this table, as text or CSV
    #[arg(long, value_name = "NAME",
          value_parser = PossibleValuesParser::new(report::ALL.iter().map(|r| r.name())))]
    table: Option<String>,
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let stats = report::read(&self.path)?;
        let format = if face.json { "json" } else { self.format.as_str() };
        let table = self.table.as_deref().and_then(|name| {
            report::ALL.iter().copied().find(|report| report.name() == name)
        });
        let written = match (table, format) {
            (None, format) => {
                let mut renderers = report::RENDERERS.iter();
                let renderer = renderers.find(|renderer| renderer.name == format);
                renderer.map(|renderer| (renderer.render)(&stats))
            }
            (Some(table), "text") => Some(text::render_one(table, &stats)),
            (Some(table), "csv") => Some(csv::render_one(table, &stats)),
            (Some(_), _) => None,
        };
        let written = written.ok_or_else(|| {
            ginmill::Error::invalid(format!(
                "--table works with text and csv, not {format}"
            ))
        })?;
        face.out.write_all(written.as_bytes())?;
        Ok(Status::Done)
    }
}
