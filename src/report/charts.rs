//! Charts as inline SVG that fit any width without scaling their text.
//!
//! Bars have their places in percent; only the curve of memory over time is stretched,
//! inside of a chart whose labels are not. Colours are classes `a` to `d` of the page's
//! style. Figures may be anything: shares are clamped, what is not finite is nothing.

use std::fmt::Write;

use super::html::escape;

const ROW: u32 = 44;
const BAR_AT: u32 = 18;
const BAR: u32 = 16;
const CURVE: u32 = 200;
/// Longest label in a chart, characters; the table below has the whole name.
const LABEL_MAX: usize = 30;
/// Most points of a curve.
const POINTS_MAX: usize = 600;

/// A row of a bar chart: a label, a value in words, pieces of (amount, colour class).
pub(super) struct Bar {
    pub label: String,
    pub value: String,
    /// Empty space before the first piece, in the amount's unit.
    pub offset: f64,
    pub pieces: Vec<(f64, char)>,
}

/// Percent of `whole`, within 0 and 100.
fn percent_of(part: f64, whole: f64) -> f64 {
    let percent = part / whole * 100.0;
    if percent.is_finite() { percent.clamp(0.0, 100.0) } else { 0.0 }
}

fn begin(out: &mut String, height: u32, about: &str) {
    let about = escape(about);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg class=\"chart\" width=\"100%\" height=\"{height}\" role=\"img\" \
         aria-label=\"{about}\"><title>{about}</title>"
    );
}

/// Horizontal bars, one below the other, all on the same scale.
pub(super) fn bars(about: &str, rows: &[Bar]) -> String {
    let extent = |bar: &Bar| {
        bar.offset + bar.pieces.iter().map(|(amount, _)| amount.max(0.0)).sum::<f64>()
    };
    let whole = rows.iter().map(extent).filter(|e| e.is_finite()).fold(0.0, f64::max);
    let mut out = String::new();
    begin(&mut out, ROW * u32::try_from(rows.len()).unwrap_or(u32::MAX / ROW), about);
    for (number, bar) in rows.iter().enumerate() {
        let y = ROW * u32::try_from(number).unwrap_or(0);
        let label = shorten(&bar.label);
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{}\">{}</text><text x=\"100%\" y=\"{}\" \
             text-anchor=\"end\">{}</text><rect class=\"track\" x=\"0\" y=\"{}\" \
             width=\"100%\" height=\"{BAR}\" rx=\"3\"/>",
            y + 13,
            escape(&label),
            y + 13,
            escape(&bar.value),
            y + BAR_AT
        );
        let mut at = bar.offset;
        for (amount, colour) in &bar.pieces {
            let (x, width) = (percent_of(at, whole), percent_of(*amount, whole));
            if width > 0.0 {
                let _ = write!(
                    out,
                    "<rect class=\"{colour}\" x=\"{x:.3}%\" y=\"{}\" width=\"{width:.3}%\" \
                     height=\"{BAR}\"/>",
                    y + BAR_AT
                );
            }
            at += amount.max(0.0);
        }
    }
    out.push_str("</svg>");
    out
}

/// Names of colours below a chart.
pub(super) fn legend(names: &[(char, &str)]) -> String {
    let items = names.iter().map(|(colour, name)| {
        format!("<span><i class=\"{colour}\"></i>{}</span>", escape(name))
    });
    format!("<p class=\"legend\">{}</p>", items.collect::<String>())
}

/// Curves over time with a horizontal line at `limit`. Points are (seconds, value);
/// `labels` are the words at the top (of the largest value) and at the right end.
pub(super) fn curves(
    about: &str,
    curves: &[(&[(f64, f64)], char)],
    limit: f64,
    labels: (&str, &str),
) -> String {
    let points = || curves.iter().flat_map(|(points, _)| points.iter());
    let finite = |value: f64| value.is_finite().then_some(value);
    let end = points().filter_map(|point| finite(point.0)).fold(0.0, f64::max);
    let top = points()
        .filter_map(|point| finite(point.1))
        .chain(finite(limit))
        .fold(0.0, f64::max);
    // Some air above the highest line.
    let top = top * 1.08;
    let height_of = |value: f64| 100.0 - percent_of(value, top);
    let mut out = String::new();
    begin(&mut out, CURVE + 40, about);
    let _ = write!(
        out,
        "<text x=\"0\" y=\"13\">{}</text><svg y=\"20\" width=\"100%\" height=\"{CURVE}\" \
         viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\">\
         <rect class=\"track\" width=\"100\" height=\"100\"/>",
        escape(labels.0)
    );
    for (points, colour) in curves {
        let step = points.len().div_ceil(POINTS_MAX).max(1);
        // The largest of the points that share a place, so that no peak is lost.
        let path = points.chunks(step).map(|chunk| {
            let highest = chunk.iter().map(|point| point.1).fold(0.0, f64::max);
            let x = percent_of(chunk[0].0, end);
            format!("{x:.2},{:.2}", height_of(highest))
        });
        let path = path.collect::<Vec<_>>().join(" ");
        let _ = write!(out, "<polyline class=\"line {colour}\" points=\"{path}\"/>");
    }
    if limit > 0.0 {
        let y = height_of(limit);
        let _ = write!(
            out,
            "<line class=\"limit\" x1=\"0\" x2=\"100\" y1=\"{y:.2}\" y2=\"{y:.2}\"/>"
        );
    }
    let _ = write!(
        out,
        "</svg><text x=\"0\" y=\"{0}\">0 s</text><text x=\"100%\" y=\"{0}\" \
         text-anchor=\"end\">{1}</text></svg>",
        CURVE + 35,
        escape(labels.1)
    );
    out
}

fn shorten(label: &str) -> String {
    if label.chars().count() <= LABEL_MAX {
        return label.to_owned();
    }
    let mut short: String = label.chars().take(LABEL_MAX - 1).collect();
    short.push('…');
    short
}
