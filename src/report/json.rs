//! The report as JSON: `report.json` itself.

use crate::build::stats::BuildStats;

/// All figures; the shape is that of `report.json`.
pub fn render(stats: &BuildStats) -> String {
    let mut text = serde_json::to_string_pretty(stats)
        .expect("figures, strings and lists can be written as JSON");
    text.push('\n');
    text
}
