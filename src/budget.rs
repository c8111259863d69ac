//! The one account of memory that a build may hold.
//!
//! Everything whose size depends on the input is charged here before it is taken and
//! credited when it is freed. The account does not refuse: who is about to cross its
//! share spills first, and a test holds the account against the operating system's
//! figure. [`Charge`] is a charge that credits itself when it is dropped.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result, size};

/// A size in bytes, read and written as PostgreSQL does: `64kB`, `256MB`, `1GB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Bytes> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = (&text[..digits], text[digits..].trim());
        let factor = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        match (number.parse::<u64>(), factor) {
            (Ok(number), Some((_, factor))) => number
                .checked_mul(*factor)
                .map(Bytes)
                .ok_or_else(|| Error::invalid(format!("size {text} is too large"))),
            _ => Err(Error::invalid(format!(
                "expected a size such as 64kB, 256MB or 1GB, found {text:?}"
            ))),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&size(self.0))
    }
}

/// The account; shared by all participants of a build.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: u64,
    charged: AtomicU64,
    peak: AtomicU64,
}

impl MemoryBudget {
    /// An empty account with a limit in bytes.
    pub fn new(limit: Bytes) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            limit: limit.0,
            charged: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        })
    }

    /// The limit, bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Charged now, bytes.
    pub fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// The most that was ever charged, bytes.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Charges `bytes`; credited when the charge is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        let mut charge = Charge { budget: Arc::clone(self), bytes: 0 };
        charge.set(bytes);
        charge
    }
}

/// Bytes charged to a [`MemoryBudget`] by one holder.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl Charge {
    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Makes the charge `bytes`, whatever it was.
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let now = self.budget.charged.fetch_add(more, Ordering::Relaxed) + more;
            self.budget.peak.fetch_max(now, Ordering::Relaxed);
        } else {
            self.budget.charged.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_as_postgresql_does() {
        for (text, bytes) in [("64kB", 65_536), ("16MB", 16 << 20), ("1GB", 1 << 30)] {
            assert_eq!(text.parse::<Bytes>().unwrap().0, bytes);
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Bytes(1000).to_string(), "1000B");
        for wrong in ["", "MB", "12", "1.5GB", "-1MB", "99999999999TB"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_dropped_charge_is_credited_and_the_peak_stays() {
        let budget = MemoryBudget::new(Bytes(100));
        let mut first = budget.charge(60);
        let second = budget.charge(30);
        first.set(10);
        drop(second);
        assert_eq!((budget.charged(), budget.peak()), (10, 90));
    }
}
