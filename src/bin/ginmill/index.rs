//! `ginmill index INPUT… -o DIR`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use ginmill::budget::Bytes;
use ginmill::build::stats::BuildStats;
use ginmill::build::{Builder, MEMORY_DEFAULT, MEMORY_MIN, OnError};
use ginmill::catalog::IndexDefinition;
use ginmill::{Error, archive, opclass, report};

use crate::face::{Face, Failure, Status, note};
use crate::progress;

/// Index mail and other documents: the main job
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files and directories to index
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The archive directory to make
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// An index to build: NAME=OPCLASS(FIELD[, CONFIG]); repeat for more
    ///
    /// Several columns: NAME=gin(FIELD OPCLASS[(CONFIG)], ...). Without this option, the
    /// default indexes of the input format are built.
    #[arg(short, long = "index", value_name = "DEFINITION")]
    indexes: Vec<IndexDefinition>,
    /// Input format; sniffed unless given
    #[arg(long, default_value = "auto")]
    format: String,
    /// Workers; 0 is the leader alone [default: one per processor]
    #[arg(short = 'j', long, value_name = "N")]
    workers: Option<usize>,
    /// Memory limit of the whole build
    #[arg(short, long, value_name = "SIZE", default_value_t = MEMORY_DEFAULT,
          value_parser = memory_limit)]
    memory: Bytes,
    /// Directory for temporary files [default: that of the output]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Limit on the bytes of temporary files on disk
    #[arg(long, value_name = "SIZE")]
    temp_limit: Option<Bytes>,
    /// Codec of spilled blocks
    #[arg(long, value_name = "NAME", default_value = "lz4")]
    codec: String,
    /// Percent of an entry page that is filled
    #[arg(long, value_name = "PERCENT", default_value_t = 100,
          value_parser = clap::value_parser!(u8).range(50..=100))]
    fillfactor: u8,
    /// What happens with a message that cannot be indexed
    #[arg(long, value_enum, default_value_t = OnErrorArg::Skip)]
    on_error: OnErrorArg,
    /// Also write the report to a file, by extension: .json .html .csv .txt
    #[arg(long = "report", value_name = "FILE")]
    reports: Vec<PathBuf>,
    /// Replace the archive if it exists
    #[arg(short, long)]
    force: bool,
    /// Only make keys and drop them, for measuring; no archive appears
    #[arg(long, hide = true)]
    extract_only: bool,
    /// How progress is shown on stderr
    #[arg(long, value_enum, default_value_t = progress::Style::Auto)]
    progress: progress::Style,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum OnErrorArg {
    /// It is listed in the report and left out
    Skip,
    /// The build fails
    Fail,
}

/// A memory limit that a build can keep.
fn memory_limit(text: &str) -> Result<Bytes, Error> {
    let limit: Bytes = text.parse()?;
    if limit < MEMORY_MIN {
        return Err(Error::invalid(format!(
            "a build needs at least {MEMORY_MIN} of memory"
        )));
    }
    Ok(limit)
}

/// Adds the input formats and operator classes that there are.
pub(crate) fn with_lists(command: clap::Command) -> clap::Command {
    let names = archive::ALL.iter().map(|format| format.name());
    let names: Vec<&str> = std::iter::once("auto").chain(names).collect();
    let mut help = String::from("Operator classes:\n");
    for class in opclass::ALL {
        help.push_str(&format!("  {:<16}{}\n", class.name(), class.summary()));
    }
    help.push_str("\nInput formats, their fields and default indexes:\n");
    for format in archive::ALL {
        let fields = format.fields();
        let fields: Vec<&str> =
            fields.iter().map(|field| field.name.as_str()).collect();
        help.push_str(&format!("  {:<16}{}\n", format.name(), format.summary()));
        help.push_str(&format!("  {:<16}fields: {}\n", "", fields.join(", ")));
        for index in format.default_indexes() {
            help.push_str(&format!("  {:<16}{index}\n", ""));
        }
    }
    command
        .mut_arg("format", |arg| arg.value_parser(PossibleValuesParser::new(names)))
        .mut_arg("memory", |arg| {
            arg.help(format!("Memory limit of the whole build, at least {MEMORY_MIN}"))
        })
        .after_long_help(help)
}

impl Args {
    pub(crate) fn run(self, face: &mut Face) -> Result<Status, Failure> {
        let reports = self.reports.iter().map(|path| report_writer(path));
        let reports = reports.collect::<Result<Vec<_>, _>>()?;
        face.interruptible()?;
        let shown = progress::show(self.progress);
        let stats = self.builder(face, &shown).build(&self.output);
        drop(shown);
        let stats = stats?;
        for (path, renderer) in reports {
            let text = (renderer.render)(&stats);
            std::fs::write(path, text).map_err(Error::io("write the report", path))?;
        }
        if face.json {
            face.out.write_all(report::json::render(&stats).as_bytes())?;
        } else {
            let summary =
                report::text::summary(&stats, &self.output.display().to_string());
            face.out.write_all(summary.as_bytes())?;
        }
        if let Some(problems) = problems(&stats) {
            let output = self.output.display();
            note(&format!("{problems}; `ginmill report {output}` lists them"));
        }
        Ok(Status::Done)
    }

    fn builder(&self, face: &Face, shown: &progress::Shown) -> Builder {
        let mut builder = Builder::new(self.inputs.iter().cloned())
            .memory(self.memory)
            .codec(self.codec.clone())
            .fillfactor(self.fillfactor)
            .force(self.force)
            .extract_only(self.extract_only)
            .cancel(Arc::clone(&face.cancel))
            .on_error(match self.on_error {
                OnErrorArg::Skip => OnError::Skip,
                OnErrorArg::Fail => OnError::Fail,
            });
        for index in &self.indexes {
            builder = builder.index(index.clone());
        }
        if self.format != "auto" {
            builder = builder.format(self.format.clone());
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(directory) = &self.temp_dir {
            builder = builder.temp_dir(directory.clone());
        }
        if let Some(limit) = self.temp_limit {
            builder = builder.temp_limit(limit);
        }
        if let Some(report) = &shown.report {
            builder = builder.progress(Arc::clone(report));
        }
        builder
    }
}

/// What there is to say about single messages.
fn problems(stats: &BuildStats) -> Option<String> {
    let problems = &stats.problems;
    let all = stats.input.documents + problems.skipped;
    let left_out =
        || format!("{} of {all} messages could not be indexed", problems.skipped);
    let damaged = || {
        format!("{} of {all} messages could not be read as written", problems.damaged)
    };
    match (problems.skipped, problems.damaged) {
        (0, 0) => None,
        (0, _) => Some(damaged()),
        (_, 0) => Some(left_out()),
        (_, _) => Some(format!("{} and {}", left_out(), damaged())),
    }
}

/// The renderer for a report file; found before the build, so that a mistake in the name
/// does not cost the build.
fn report_writer(path: &Path) -> Result<(&Path, &'static report::Renderer), Error> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let renderer = report::RENDERERS
        .iter()
        .find(|renderer| extension == Some(renderer.extension))
        .ok_or_else(|| {
            let known = report::RENDERERS.iter().map(|r| format!(".{}", r.extension));
            Error::invalid(format!(
                "report file {}: expected a name that ends with one of {}",
                path.display(),
                known.collect::<Vec<_>>().join(", ")
            ))
        })?;
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        return Err(Error::invalid(format!(
            "report file {}: there is no directory {}",
            path.display(),
            parent.display()
        )));
    }
    Ok((path, renderer))
}
