//! How a build that runs is shown: a bar on a terminal, else a line now and then, or
//! JSON for another program; always on stderr.

use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use ginmill::build::{Progress, ProgressFn};
use ginmill::report::text::{count, size};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::face::{note, stderr_line};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// What `--progress` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Style {
    /// A bar on a terminal, else lines
    Auto,
    /// A bar
    Bar,
    /// A line every 30 seconds
    Lines,
    /// A JSON object a line
    Json,
    /// Nothing
    None,
}

/// Shows progress until dropped.
pub(crate) struct Shown {
    pub report: Option<ProgressFn>,
    bar: Option<ProgressBar>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Begins to show progress.
pub(crate) fn show(style: Style) -> Shown {
    let terminal = stderr().is_terminal();
    match style {
        Style::None => Shown { report: None, bar: None },
        Style::Json => Shown { report: Some(Arc::new(json_line)), bar: None },
        Style::Bar => bar(),
        Style::Auto if terminal => bar(),
        Style::Auto | Style::Lines => Shown { report: Some(lines()), bar: None },
    }
}

/// Work that is done; totals of some phases are estimates, which nobody shall see passed.
fn done(progress: &Progress) -> u64 {
    match progress.total {
        0 => progress.done,
        total => progress.done.min(total),
    }
}

fn json_line(progress: &Progress) {
    let object = json!({
        "phase": progress.phase,
        "done": done(progress),
        "total": progress.total,
        "documents": progress.documents,
        "temp": progress.temp,
        "temp_peak": progress.temp_peak,
        "memory": progress.memory,
        "memory_limit": progress.memory_limit,
    });
    stderr_line(&object.to_string());
}

/// What is said about a build besides phase and bytes.
fn details(progress: &Progress, since: Duration) -> String {
    let seconds = since.as_secs_f64();
    let mut text = format!("{} messages", count(progress.documents));
    if seconds > 0.5 && progress.done < progress.total {
        let rate = progress.documents as f64 / seconds;
        text.push_str(&format!(", {}/s", count(rate as u64)));
    }
    text.push_str(&format!(
        ", memory {} of {}",
        size(progress.memory),
        size(progress.memory_limit)
    ));
    if progress.temp_peak > 0 {
        text.push_str(&format!(
            ", temporary files {} (peak {})",
            size(progress.temp),
            size(progress.temp_peak)
        ));
    }
    text
}

fn lines() -> ProgressFn {
    let begun = Instant::now();
    let last = Mutex::new(begun);
    Arc::new(move |progress| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < LINE_EVERY {
            return;
        }
        *last = Instant::now();
        let of = match progress.total {
            0 => String::new(),
            total => format!(
                " {} % of {}",
                (done(progress) as f64 / total as f64 * 100.0) as u64,
                size(total)
            ),
        };
        note(&format!(
            "{}{of}: {}",
            progress.phase,
            details(progress, begun.elapsed())
        ));
    })
}

const BAR: &str =
    "{prefix:>11} [{bar:20}] {percent:>3} % {bytes_per_sec:>12} {msg} ETA {eta}";
const SPINNER: &str = "{prefix:>11} {spinner} {msg}";

fn bar() -> Shown {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let shown = bar.clone();
    let begun = Instant::now();
    let phase = Mutex::new(("", false));
    let report = move |progress: &Progress| {
        let mut phase = phase.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = progress.total > 0;
        if *phase != (progress.phase, measured) {
            *phase = (progress.phase, measured);
            let template = if measured { BAR } else { SPINNER };
            let style = ProgressStyle::with_template(template)
                .expect("the templates are constants that a test draws");
            shown.set_style(style.progress_chars("=> "));
            shown.set_prefix(progress.phase);
            shown.set_position(0);
            shown.reset_eta();
        }
        if measured {
            shown.set_length(progress.total);
        }
        shown.set_message(details(progress, begun.elapsed()));
        shown.set_position(done(progress));
    };
    Shown { report: Some(Arc::new(report)), bar: Some(bar) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_can_be_drawn() {
        let shown = show(Style::Bar);
        let report = shown.report.as_ref().unwrap();
        for total in [0, 100] {
            report(&Progress {
                phase: "scanning",
                done: 50,
                total,
                ..Progress::default()
            });
        }
        assert_eq!(shown.bar.as_ref().unwrap().position(), 50);
    }

    #[test]
    fn details_name_temporary_files_only_when_there_were_some() {
        let mut progress = Progress { documents: 12_345, ..Progress::default() };
        progress.memory_limit = 256 << 20;
        let text = details(&progress, Duration::ZERO);
        assert_eq!(text, "12,345 messages, memory 0 B of 256 MB");
        progress.temp_peak = 1 << 20;
        assert!(details(&progress, Duration::ZERO).ends_with("(peak 1.00 MB)"));
    }
}
