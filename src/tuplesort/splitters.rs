//! Splitter keys: where to cut the key space so that each part holds about as many bytes.

use std::sync::Arc;

use super::run::Run;

/// Up to `parts - 1` ascending keys that cut the runs' tuples into parts of about equal
/// size. Fewer come when the samples do not tell more parts apart.
pub fn splitters(runs: &[Arc<Run>], parts: usize) -> Vec<Box<[u8]>> {
    let mut samples: Vec<(&[u8], u64)> = runs
        .iter()
        .flat_map(|run| {
            let weight = run.raw_bytes / run.samples.len().max(1) as u64;
            run.samples.iter().map(move |(key, _)| (&**key, weight))
        })
        .collect();
    samples.sort_unstable();
    let total: u64 = samples.iter().map(|(_, weight)| weight).sum();
    let mut keys: Vec<Box<[u8]>> = Vec::new();
    let mut seen = 0;
    for (key, weight) in samples {
        let due = total * (keys.len() as u64 + 1) / parts.max(1) as u64;
        let new = keys.last().is_none_or(|last| &**last < key);
        if seen > 0 && seen >= due && new && keys.len() + 1 < parts {
            keys.push(key.into());
        }
        seen += weight;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(keys: &[u8]) -> Arc<Run> {
        Arc::new(Run {
            extent: 0..1,
            samples: keys.iter().map(|&key| ([key].into(), 0)).collect(),
            stride: 1,
            raw_bytes: 100 * keys.len() as u64,
            stored_bytes: 0,
            tuples: 0,
        })
    }

    #[test]
    fn parts_get_equal_shares_of_the_samples() {
        let runs = [run(&[1, 3, 5, 7]), run(&[2, 4, 6, 8])];
        let keys = splitters(&runs, 4);
        assert_eq!(keys, [[3].into(), [5].into(), [7].into()] as [Box<[u8]>; 3]);
    }

    #[test]
    fn one_part_or_equal_samples_give_no_splitters() {
        assert!(splitters(&[run(&[1, 2, 3])], 1).is_empty());
        assert!(splitters(&[run(&[4, 4, 4])], 3).len() <= 1);
        assert!(splitters(&[], 3).is_empty());
    }
}
