//! Reports as text: aligned tables of at most [`WIDTH`] columns.
//!
//! Figures are never cut. When a table is too wide, its widest column of words is made
//! narrower and its cells go over several lines.

use super::{ALL, Cell, Report, Table, index_bytes, names, wall};
use crate::build::stats::BuildStats;

/// Most columns of a line.
pub const WIDTH: usize = 100;
/// A column of words is not made narrower than this.
const WORDS_MIN: usize = 8;
const GAP: usize = 2;

/// All reports that have something to say.
pub fn render(stats: &BuildStats) -> String {
    let reports = ALL.iter().map(|report| render_one(*report, stats));
    reports.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One report; empty when its table has no rows.
pub fn render_one(report: &dyn Report, stats: &BuildStats) -> String {
    let table = report.table(stats);
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n\n", report.summary());
    out.push_str(&draw(&table));
    for note in &table.notes {
        for line in wrap(note, WIDTH - 2) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out
}

/// A few lines at the end of a build.
pub fn summary(stats: &BuildStats, output: &str) -> String {
    let seconds = wall(stats);
    let mut out = format!(
        "{output}: {} messages ({}) in {}, {} of indexes\n",
        count(stats.input.documents),
        size(stats.input.bytes),
        duration(seconds),
        size(index_bytes(stats))
    );
    let rows = stats.indexes.iter().map(|index| {
        vec![
            index.name.as_str().into(),
            Cell::Count(index.keys),
            Cell::Count(index.postings),
            Cell::Bytes(index.bytes),
        ]
    });
    let columns = names(&["index", "keys", "postings", "size"]);
    let table = Table { columns, rows: rows.collect(), ..Table::default() };
    if !table.rows.is_empty() {
        out.push_str(&draw(&table));
    }
    let temp = match stats.temp.written {
        0 => "no temporary files".to_owned(),
        written => format!("temporary files {}", size(written)),
    };
    out.push_str(&format!(
        "memory peak {} of {}, {temp}\n",
        size(stats.memory.peak_charged),
        size(stats.memory.limit)
    ));
    out
}

/// A number with thousands marked: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size in the unit that leaves three digits: `731 B`, `1.50 MB`, `24.0 GB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    for unit in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        value /= 1024.0;
        if value < 1023.5 || unit == "EB" {
            return format!("{} {unit}", three_digits(value));
        }
    }
    unreachable!("the last unit takes everything")
}

/// Seconds in words: `3.20 ms`, `1.25 s`, `2 min 05 s`, `1 h 02 min`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "?".to_owned();
    }
    if seconds < 0.9995 {
        return format!("{} ms", three_digits(seconds * 1000.0));
    }
    if seconds < 99.95 {
        return format!("{} s", three_digits(seconds));
    }
    let whole = seconds.round() as u64;
    if whole < 3600 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", count(whole / 3600), whole % 3600 / 60)
    }
}

/// A part of a whole in percent: `42 %`, `0.3 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "?".to_owned();
    }
    let percent = share * 100.0;
    if percent > 0.0 && percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

fn three_digits(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A cell as people read it.
pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        // A table keeps its lines whatever is in a file name.
        Cell::Text(text) => {
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
        }
        Cell::Count(number) => count(*number),
        Cell::Bytes(bytes) => size(*bytes),
        Cell::Seconds(seconds) => duration(*seconds),
        Cell::Share(share) => percent(*share),
        Cell::Number(number) if number.is_finite() => format!("{number:.1}"),
        Cell::Number(_) => "?".to_owned(),
        Cell::None => String::new(),
    }
}

/// Columns of words are aligned left, of figures right.
fn is_words(table: &Table, column: usize) -> bool {
    column == 0
        || table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Text(_))))
}

/// Draws a table: header, line, rows; a line above the total.
pub fn draw(table: &Table) -> String {
    let columns = table.columns.len();
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let width_of = |column: usize| {
        let body =
            cells.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        body.chain([width(&table.columns[column])]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns).map(width_of).collect();
    shrink(&mut widths, |column| is_words(table, column));
    let mut out = String::new();
    push_row(&mut out, table, &widths, &table.columns);
    push_rule(&mut out, &widths);
    for (number, row) in cells.iter().enumerate() {
        if table.total && number + 1 == cells.len() && cells.len() > 1 {
            push_rule(&mut out, &widths);
        }
        push_row(&mut out, table, &widths, row);
    }
    out
}

/// Makes columns of words narrower until the line fits, the widest first.
fn shrink(widths: &mut [usize], is_words: impl Fn(usize) -> bool) {
    let line = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len();
    while line(widths) > WIDTH {
        let widest = (0..widths.len())
            .filter(|column| is_words(*column) && widths[*column] > WORDS_MIN)
            .max_by_key(|column| widths[*column]);
        let Some(widest) = widest else { return };
        let excess = line(widths) - WIDTH;
        let second = (0..widths.len())
            .filter(|column| is_words(*column) && *column != widest)
            .map(|column| widths[column])
            .max()
            .unwrap_or(0);
        let step = (widths[widest].saturating_sub(second)).clamp(1, excess);
        widths[widest] = (widths[widest] - step).max(WORDS_MIN);
    }
}

fn push_rule(out: &mut String, widths: &[usize]) {
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    out.push_str(&rules.join("  "));
    out.push('\n');
}

/// A row, over as many lines as its longest cell needs.
fn push_row(out: &mut String, table: &Table, widths: &[usize], cells: &[String]) {
    let wrapped: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let lines = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..lines {
        let mut text = String::new();
        for (column, cell) in wrapped.iter().enumerate() {
            let part = cell.get(line).map_or("", String::as_str);
            let pad = " ".repeat(widths[column].saturating_sub(width(part)));
            if column > 0 {
                text.push_str("  ");
            }
            if is_words(table, column) {
                text.push_str(part);
                text.push_str(&pad);
            } else {
                text.push_str(&pad);
                text.push_str(part);
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// Breaks at blanks, and inside of words that are longer than a line.
fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        let last = lines.last_mut().expect("there is always a line");
        if width(last) + 1 + width(word) <= limit && !last.is_empty() {
            last.push(' ');
            last.push_str(word);
            continue;
        }
        if !last.is_empty() {
            lines.push(String::new());
        }
        while width(word) > limit {
            let at = word.char_indices().nth(limit).map_or(word.len(), |(at, _)| at);
            let (head, tail) = word.split_at(at);
            lines.last_mut().expect("there is always a line").push_str(head);
            lines.push(String::new());
            word = tail;
        }
        lines.last_mut().expect("there is always a line").push_str(word);
    }
    lines
}

/// Characters; tables hold names and figures, where this is the width.
fn width(text: &str) -> usize {
    text.chars().count()
}
