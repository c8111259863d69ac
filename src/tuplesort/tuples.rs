//! Single tuples collected in memory and sorted there.
//!
//! Bytes lie in one arena; the sort moves 16-byte references with the first bytes of the
//! key in them, so most comparisons touch nothing else. Input that comes sorted is
//! recognised and not sorted again.

use super::run::head_of;

#[derive(Debug, Clone, Copy)]
struct Reference {
    /// First bytes of the key, as a number that orders as they do.
    head: u64,
    at: u64,
}

/// Tuples in memory.
#[derive(Debug)]
pub struct Tuples {
    /// Per tuple: length of key and payload (u32 each, little-endian), key, payload.
    bytes: Vec<u8>,
    references: Vec<Reference>,
    tie: usize,
    in_order: bool,
}

impl Tuples {
    /// None yet; the first `tie` bytes of payloads decide between equal keys.
    pub fn new(tie: usize) -> Tuples {
        Tuples { bytes: Vec::new(), references: Vec::new(), tie, in_order: true }
    }

    /// Adds a tuple.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) {
        let head = (head_of(key) >> 64) as u64;
        let reference = Reference { head, at: self.bytes.len() as u64 };
        let length = |len: usize| u32::try_from(len).expect("tuples stay below 4 GB");
        self.bytes.extend_from_slice(&length(key.len()).to_le_bytes());
        self.bytes.extend_from_slice(&length(payload.len()).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        if self.in_order
            && let Some(last) = self.references.last()
        {
            self.in_order = self.compare(last, &reference).is_le();
        }
        self.references.push(reference);
    }

    fn tuple(&self, reference: &Reference) -> (&[u8], &[u8]) {
        let at = reference.at as usize;
        let length = |at: usize| {
            let bytes = self.bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_le_bytes(bytes) as usize
        };
        let key_len = length(at);
        let key = at + 8;
        let payload = key + key_len;
        (&self.bytes[key..payload], &self.bytes[payload..payload + length(at + 4)])
    }

    fn compare(&self, a: &Reference, b: &Reference) -> std::cmp::Ordering {
        a.head.cmp(&b.head).then_with(|| {
            let ((a_key, a_payload), (b_key, b_payload)) =
                (self.tuple(a), self.tuple(b));
            let tie = |payload: &[u8]| payload.len().min(self.tie);
            a_key.cmp(b_key).then_with(|| {
                a_payload[..tie(a_payload)].cmp(&b_payload[..tie(b_payload)])
            })
        })
    }

    /// Sorts; equal tuples keep the order in which they came.
    pub fn sort(&mut self) {
        if self.in_order {
            return;
        }
        let mut references = std::mem::take(&mut self.references);
        references.sort_unstable_by(|a, b| self.compare(a, b).then(a.at.cmp(&b.at)));
        self.references = references;
    }

    /// The tuples, in order once sorted.
    pub fn sorted(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.references.iter().map(|reference| self.tuple(reference))
    }

    /// Forgets the tuples, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.references.clear();
        self.in_order = true;
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.references.is_empty()
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.references.capacity() * size_of::<Reference>()
    }
}
