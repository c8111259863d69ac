//! The report as CSV (RFC 4180): one line per figure, `report,row,what,value,unit`, so
//! that tables of different shapes fit into one file.

use super::{ALL, Cell, Report};
use crate::build::stats::BuildStats;

/// All reports.
pub fn render(stats: &BuildStats) -> String {
    let mut out = line(["report", "row", "what", "value", "unit"]);
    for report in ALL {
        figures(*report, stats, &mut out);
    }
    out
}

/// One report, with the heading line.
pub fn render_one(report: &dyn Report, stats: &BuildStats) -> String {
    let mut out = line(["report", "row", "what", "value", "unit"]);
    figures(report, stats, &mut out);
    out
}

fn figures(report: &dyn Report, stats: &BuildStats, out: &mut String) {
    let table = report.table(stats);
    for (number, row) in table.rows.iter().enumerate() {
        // Tables of pairs have the name of the figure in their first cell.
        let pairs = table.columns == ["what", "value"];
        let total = table.total && number + 1 == table.rows.len();
        let row_name =
            if total { "total".to_owned() } else { (number + 1).to_string() };
        for (column, cell) in table.columns.iter().zip(row) {
            let what = match row.first() {
                Some(Cell::Text(name)) if pairs => name.as_str(),
                _ => column,
            };
            if pairs && *column == "what" {
                continue;
            }
            let (value, unit) = match cell {
                Cell::Text(text) => (text.clone(), ""),
                Cell::Count(count) => (count.to_string(), ""),
                Cell::Bytes(bytes) => (bytes.to_string(), "bytes"),
                Cell::Seconds(seconds) => (seconds.to_string(), "seconds"),
                Cell::Share(share) => (share.to_string(), "share"),
                Cell::Number(number) => (number.to_string(), ""),
                Cell::None => (String::new(), ""),
            };
            out.push_str(&line([report.name(), &row_name, what, &value, unit]));
        }
    }
}

fn line(fields: [&str; 5]) -> String {
    let mut line = fields.map(quoted).join(",");
    line.push_str("\r\n");
    line
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
