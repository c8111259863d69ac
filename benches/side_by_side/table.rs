//! Tables in plain text.

/// Rows of cells under a title; the first column is aligned left, the others right.
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        Table { title: title.into(), rows: vec![head], notes: Vec::new() }
    }

    /// Appends a row; cells beyond the head have no title.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Appends a sentence below the rows.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The table as lines.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!("\n{}\n\n", self.title);
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line.push_str(&match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if number == 0 {
                let total = widths.iter().sum::<usize>() + 2 * (columns.max(1) - 1);
                text.push_str(&"-".repeat(total));
                text.push('\n');
            }
        }
        for note in &self.notes {
            text.push_str(note);
            text.push('\n');
        }
        text
    }
}

/// Seconds, with as many digits as they deserve.
pub fn seconds(value: f64) -> String {
    match value {
        v if v.is_nan() => "-".to_owned(),
        v if v < 10.0 => format!("{v:.2}"),
        v => format!("{v:.1}"),
    }
}

/// Megabytes (of 2^20 bytes).
pub fn megabytes(bytes: u64) -> String {
    let value = bytes as f64 / f64::from(1 << 20);
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A ratio; `-` where there is none.
pub fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "-".to_owned() }
}
