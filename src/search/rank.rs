//! How well a document matches: the formula of PostgreSQL's `ts_rank_cd`.
//!
//! A *cover* is a stretch of the document in which the query is true and that contains no
//! smaller one. Each adds `size / sum(1 / weight) / (1 + noise)`, where the sum goes over
//! the matching words in it and the noise is the number of other words.
//!
//! Answers to `tsrank.c`; no normalization.

use std::collections::HashMap;

use crate::opclass::tsvector::tsquery::{Lexemes, TsQuery};
use crate::opclass::tsvector::{position_of, weight_of};

/// Weights of D, C, B, A, PostgreSQL's defaults.
pub const WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];

/// A place in the document where a word of the query stands; two words at one position
/// are two places.
struct Place {
    /// Position and weight.
    word: u16,
    /// Which lexemes, by number.
    lexemes: Vec<usize>,
}

/// `ts_rank_cd(vector, query)`.
pub fn rank_cd(vector: &dyn Lexemes, query: &TsQuery) -> f32 {
    let places = places(vector, query);
    let inverse = WEIGHTS.map(|weight| 1.0 / f64::from(weight));
    let mut covers = Covers::new(query, &places);
    let mut rank = 0.0;
    while let Some((begin, end)) = covers.next() {
        let cover = &places[begin..=end];
        let sum: f64 =
            cover.iter().map(|place| inverse[usize::from(weight_of(place.word))]).sum();
        let others = cover.len() - 1;
        let first = usize::from(position_of(places[begin].word));
        let last = usize::from(position_of(places[end].word));
        let noise = match (last - first).checked_sub(others) {
            Some(noise) => noise,
            None => others / 2,
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (size, noise) = (cover.len() as f64, noise as f64);
        rank += size / sum / (1.0 + noise);
    }
    #[expect(clippy::cast_possible_truncation, reason = "PostgreSQL returns float4")]
    let rank = rank as f32;
    rank
}

/// Where the query's lexemes stand, in order.
fn places(vector: &dyn Lexemes, query: &TsQuery) -> Vec<Place> {
    // The words found, numbered, then their places.
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<(u16, usize, usize)> = Vec::new();
    for (number, operand) in query.operands().iter().enumerate() {
        vector.find(operand.lexeme, operand.prefix, &mut |lexeme, words| {
            let passes = |word: u16| {
                operand.weights == 0 || operand.weights & (1 << weight_of(word)) != 0
            };
            let next = names.len();
            let name = *names.entry(lexeme.to_owned()).or_insert(next);
            let words = words.iter().filter(|&&word| passes(word));
            found.extend(words.map(|&word| (word, name, number)));
            true
        });
    }
    let mut by_number = vec![""; names.len()];
    for (name, &number) in &names {
        by_number[number] = name;
    }
    found.sort_unstable_by_key(|&(word, name, number)| {
        (position_of(word), weight_of(word), by_number[name], number)
    });
    found.dedup();
    let mut places: Vec<Place> = Vec::new();
    let mut last = None;
    for (word, name, number) in found {
        match places.last_mut() {
            Some(place) if last == Some((word, name)) => place.lexemes.push(number),
            _ => places.push(Place { word, lexemes: vec![number] }),
        }
        last = Some((word, name));
    }
    places
}

/// Finds the covers from left to right.
struct Covers<'a> {
    query: &'a TsQuery,
    places: &'a [Place],
    /// Where the next cover may begin.
    from: usize,
    lexemes: usize,
}

impl<'a> Covers<'a> {
    fn new(query: &'a TsQuery, places: &'a [Place]) -> Covers<'a> {
        Covers { query, places, from: 0, lexemes: query.operands().len() }
    }

    /// First and last place of the next cover.
    fn next(&mut self) -> Option<(usize, usize)> {
        loop {
            let upwards = self.from..self.places.len();
            let end = self.first_true(upwards, |positions, position| {
                positions.push(position);
            })?;
            let downwards = (self.from..=end).rev();
            let begin = self.first_true(downwards, |positions, position| {
                positions.insert(0, position);
            });
            match begin {
                Some(begin) => {
                    self.from = begin + 1;
                    return Some((begin, end));
                }
                // Not true backwards, with fewer words on its left.
                None => self.from += 1,
            }
        }
    }

    /// The first of the places, taken together with those before, where the query is
    /// true.
    fn first_true(
        &self,
        places: impl Iterator<Item = usize>,
        add: fn(&mut Vec<u16>, u16),
    ) -> Option<usize> {
        let mut positions: Vec<Vec<u16>> = vec![Vec::new(); self.lexemes];
        for at in places {
            let position = position_of(self.places[at].word);
            for &number in &self.places[at].lexemes {
                let known = &mut positions[number];
                if known.first() != Some(&position) && known.last() != Some(&position) {
                    add(known, position);
                }
            }
            if self.query.matches_at(&positions) {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::tsvector::TsVector;

    #[test]
    fn ranks_are_those_of_the_server() {
        // Asked of PostgreSQL 18.4.
        for (vector, query, rank) in [
            ("a:1 b:2", "a & b", 0.1),
            ("a:1 b:4", "a & b", 0.033_333_335),
            ("a:1,3 b:2A", "a & b", 0.363_636_37),
            ("a:1,3 b:2A", "a | b", 1.2),
            ("a:1,9 b:2,10 c:5", "a <-> b", 0.2),
            ("a:1,9 b:2,10 c:5", "a <-> b & c", 0.058_333_334),
            ("a:1", "a & b", 0.0),
            ("a", "a", 0.0),
        ] {
            let vector = TsVector::parse(vector).unwrap();
            let query = TsQuery::parse(query).unwrap();
            let got = rank_cd(&vector, &query);
            assert!((got - rank).abs() < 1e-7, "{query}: {got} instead of {rank}");
        }
    }
}
