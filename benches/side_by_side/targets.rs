//! What must be reached, and whether it was.

use serde::Serialize;

use crate::table::{Table, ratio};

/// Which side of a bound is good.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The figure must reach this.
    AtLeast(f64),
    /// The figure must stay within this.
    AtMost(f64),
}

/// One demand.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What is measured.
    pub what: String,
    /// What it must be.
    pub bound: Bound,
    /// What it is; `None` when it was not measured.
    pub measured: Option<f64>,
    /// Whether it is met; `None` when it was not measured.
    pub met: Option<bool>,
}

impl Target {
    /// A demand and its figure; one that is not finite was not measured.
    pub fn new(what: impl Into<String>, bound: Bound, measured: f64) -> Target {
        let measured = Some(measured).filter(|figure| figure.is_finite());
        let met = measured.map(|figure| match bound {
            Bound::AtLeast(least) => figure >= least,
            Bound::AtMost(most) => figure <= most,
        });
        Target { what: what.into(), bound, measured, met }
    }
}

/// All demands as a table.
pub fn table(targets: &[Target]) -> Table {
    let mut table = Table::new("Targets", &["what", "must be", "is", "outcome"]);
    for target in targets {
        let (sign, bound) = match target.bound {
            Bound::AtLeast(bound) => (">=", bound),
            Bound::AtMost(bound) => ("<=", bound),
        };
        table.row([
            target.what.clone(),
            format!("{sign} {}", ratio(bound)),
            target.measured.map_or("-".to_owned(), ratio),
            match target.met {
                Some(true) => "met".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => "not measured".to_owned(),
            },
        ]);
    }
    let count = |met| targets.iter().filter(|target| target.met == met).count();
    table.note(format!(
        "{} met, {} missed, {} not measured.",
        count(Some(true)),
        count(Some(false)),
        count(None)
    ));
    table
}
