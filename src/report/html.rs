//! The report as one page: no network, no script; for screens from 360 pixels on, light
//! and dark, and for paper.
//!
//! Every chart has its figures in a table below it. Charts take their pieces from
//! [`BuildStats`], tables from the reports of [`ALL`].

use super::charts::{self, Bar};
use super::text::{count, duration, percent, shown, size};
use super::{ALL, Cell, Report, Table, advice, index_bytes, wall};
use crate::build::stats::BuildStats;

const STYLE: &str = include_str!("style.css");
/// Bytes of an index page.
const PAGE: f64 = 8192.0;
const CHART_WORKERS_MAX: usize = 64;

/// The page.
pub fn render(stats: &BuildStats) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>ginmill build report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Build report</h1>\n<p class=\"under\">ginmill {}, {} of input, {}</p>\n",
        escape(&stats.version),
        size(stats.input.bytes),
        escape(&stats.settings.format)
    );
    out.push_str(&facts(stats));
    let lines = advice::advice(stats);
    if !lines.is_empty() {
        out.push_str(
            "<section>\n<h2>What the figures suggest</h2>\n<ul class=\"advice\">\n",
        );
        for line in lines {
            out.push_str(&format!("<li>{}</li>\n", escape(&line)));
        }
        out.push_str("</ul>\n</section>\n");
    }
    for report in ALL.iter().filter(|report| report.name() != "advice") {
        out.push_str(&section(*report, stats));
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// A chart for the reports that have one.
type Chart = fn(&BuildStats) -> Option<String>;
static CHARTS: &[(&str, Chart)] = &[
    ("phases", phases),
    ("indexes", indexes),
    ("temp", temp),
    ("workers", workers),
    ("memory", memory),
];

fn section(report: &dyn Report, stats: &BuildStats) -> String {
    let table = report.table(stats);
    if table.rows.is_empty() {
        return String::new();
    }
    let chart = CHARTS.iter().find(|(name, _)| *name == report.name());
    let chart = chart.and_then(|(_, chart)| chart(stats)).unwrap_or_default();
    format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n{chart}{}</section>\n",
        report.name(),
        escape(report.summary()),
        html_table(&table)
    )
}

fn html_table(table: &Table) -> String {
    let figure = |column: usize| {
        let cell = |row: &Vec<Cell>| matches!(row.get(column), Some(Cell::Text(_)));
        column > 0 && !table.rows.iter().any(cell)
    };
    let class = |column: usize| if figure(column) { "figure" } else { "words" };
    let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    for (column, name) in table.columns.iter().enumerate() {
        out.push_str(&format!("<th class=\"{}\">{}</th>", class(column), escape(name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (number, row) in table.rows.iter().enumerate() {
        let total = table.total && number + 1 == table.rows.len();
        out.push_str(if total { "<tr class=\"total\">" } else { "<tr>" });
        for (column, cell) in row.iter().enumerate() {
            let text = escape(&shown(cell));
            out.push_str(&format!("<td class=\"{}\">{text}</td>", class(column)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    for note in &table.notes {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", escape(note)));
    }
    out
}

fn facts(stats: &BuildStats) -> String {
    let seconds = wall(stats);
    let bytes = index_bytes(stats);
    let mut facts = vec![
        ("messages", count(stats.input.documents)),
        ("time", duration(seconds)),
        ("indexes", size(bytes)),
        ("memory peak", size(stats.memory.peak_charged)),
        ("memory limit", size(stats.memory.limit)),
        ("temporary files", size(stats.temp.written)),
    ];
    if seconds > 0.0 {
        let rate = stats.input.bytes as f64 / seconds;
        facts.insert(2, ("speed", format!("{}/s", size(rate as u64))));
    }
    if stats.problems.skipped > 0 {
        facts.push(("left out", count(stats.problems.skipped)));
    }
    let items = facts.iter().map(|(name, value)| {
        format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escape(value))
    });
    format!("<dl class=\"facts\">\n{}</dl>\n", items.collect::<String>())
}

/// A figure of a file that need not be a sound one.
fn sound(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }
}

fn phases(stats: &BuildStats) -> Option<String> {
    let mut begun = 0.0;
    let mut rows = Vec::new();
    for phase in &stats.phases {
        let share = Cell::share(phase.wall, wall(stats));
        rows.push(Bar {
            label: phase.name.clone(),
            value: format!("{} ({})", duration(phase.wall), shown(&share)),
            offset: begun,
            pieces: vec![(sound(phase.wall), 'a')],
        });
        begun += sound(phase.wall);
    }
    (!rows.is_empty()).then(|| charts::bars("Phases of the build over its time", &rows))
}

fn indexes(stats: &BuildStats) -> Option<String> {
    let rows = stats.indexes.iter().map(|index| Bar {
        label: index.name.clone(),
        value: size(index.bytes),
        offset: 0.0,
        pieces: vec![
            (index.entry_pages as f64 * PAGE, 'a'),
            (index.data_pages as f64 * PAGE, 'b'),
        ],
    });
    let rows: Vec<Bar> = rows.collect();
    (!rows.is_empty()).then(|| {
        charts::bars("Bytes of each index", &rows)
            + &charts::legend(&[('a', "entry tree"), ('b', "posting trees")])
    })
}

fn temp(stats: &BuildStats) -> Option<String> {
    let mut rows = Vec::new();
    for index in stats.indexes.iter().filter(|index| index.spill.plain > 0) {
        let spill = &index.spill;
        let share = percent(spill.written as f64 / spill.plain as f64);
        for (name, bytes, colour, value) in [
            ("plain TIDs", spill.plain, 'a', size(spill.plain)),
            ("varbyte", spill.varbyte, 'b', size(spill.varbyte)),
            (
                "written",
                spill.written,
                'c',
                format!("{} ({share})", size(spill.written)),
            ),
        ] {
            rows.push(Bar {
                label: format!("{}: {name}", index.name),
                value,
                offset: 0.0,
                pieces: vec![(bytes as f64, colour)],
            });
        }
    }
    (!rows.is_empty()).then(|| {
        charts::bars("Temporary bytes of each index: plain, varbyte, written", &rows)
            + &charts::legend(&[
                ('a', "TIDs at six bytes each"),
                ('b', "TIDs as varbyte"),
                ('c', "TIDs and keys as written"),
            ])
    })
}

fn workers(stats: &BuildStats) -> Option<String> {
    let alone = stats.settings.workers == 0;
    let workers = stats.workers.iter().take(CHART_WORKERS_MAX).enumerate();
    let rows = workers.map(|(number, worker)| {
        let name =
            if alone { "leader".to_owned() } else { format!("worker {}", number + 1) };
        let stalled = sound(worker.stalled);
        let idle = if stalled > 0.0 {
            format!(", {} stalled", duration(stalled))
        } else {
            String::new()
        };
        Bar {
            label: name,
            value: format!("{}{idle}", duration(worker.scan + worker.merge)),
            offset: 0.0,
            pieces: vec![
                (sound(worker.scan - worker.spill), 'a'),
                (sound(worker.spill), 'b'),
                (sound(worker.merge - worker.stalled), 'c'),
                (stalled, 'd'),
            ],
        }
    });
    let rows: Vec<Bar> = rows.collect();
    (!rows.is_empty()).then(|| {
        charts::bars("Time of each worker by what it did", &rows)
            + &charts::legend(&[
                ('a', "scan"),
                ('b', "sort and write runs"),
                ('c', "merge"),
                ('d', "stalled"),
            ])
    })
}

fn memory(stats: &BuildStats) -> Option<String> {
    let memory = &stats.memory;
    if memory.samples.len() < 2 {
        return None;
    }
    let curve = |of: fn(&(f64, u64, u64)) -> u64| -> Vec<(f64, f64)> {
        let samples = memory.samples.iter();
        samples.map(|sample| (sound(sample.0), of(sample) as f64)).collect()
    };
    let (charged, resident) = (curve(|sample| sample.1), curve(|sample| sample.2));
    let end = memory.samples.last().map_or(0.0, |sample| sample.0);
    let highest = memory.samples.iter().map(|sample| sample.1.max(sample.2)).max();
    let top = format!(
        "limit {}, highest sample {}",
        size(memory.limit),
        size(highest.unwrap_or(0))
    );
    Some(
        charts::curves(
            "Memory over time with its limit",
            &[(&charged, 'a'), (&resident, 'b')],
            memory.limit as f64,
            (&top, &duration(end)),
        ) + &charts::legend(&[
            ('a', "charged to the account"),
            ('b', "resident, as the system saw it"),
            ('d', "limit"),
        ]),
    )
}

/// Text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
