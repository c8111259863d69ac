//! Posting lists: ascending packed TIDs as varbyte differences.
//!
//! Two shapes share the coding. A **segment** is PostgreSQL's on-disk piece of a list:
//!
//! ```text
//! off  size    field
//! 0    6       first TID, as `Tid::to_bytes`
//! 6    2       nbytes: length of the varbytes (u16, little-endian)
//! 8    nbytes  difference to the TID before, one varbyte each
//! …    0 or 1  a zero byte where nbytes is odd
//! ```
//!
//! A varbyte holds 7 bits per byte, least significant group first, the top bit set on
//! all but the last: 298 is `aa 02`. A **spilled list** is the differences alone; its
//! first TID travels in the run's entry. Nothing read here is trusted: every decoder
//! answers `None` where the bytes break the rules above. Answers to
//! `ginpostinglist.c`.

use crate::tid::Tid;

/// Bytes of a segment before its varbytes.
pub const SEGMENT_HEADER: usize = 8;
/// Longest varbyte: 43 bits in groups of 7.
pub const VARBYTE_MAX: usize = 7;

/// Appends a difference.
pub fn push_varbyte(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Length of a difference as a varbyte.
pub const fn varbyte_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Reads a difference at `*at` and moves on; `None` at a cut or over-long one.
pub fn read_varbyte(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..VARBYTE_MAX as u32 * 7).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Appends `first` and all TIDs that the differences lead to; `None` when the bytes are
/// cut or a difference is zero (what was appended by then stays).
pub fn decode_into(first: u64, deltas: &[u8], out: &mut Vec<u64>) -> Option<()> {
    let mut tid = first;
    out.reserve(deltas.len() + 1);
    out.push(tid);
    let mut at = 0;
    while at < deltas.len() {
        let byte = deltas[at];
        let delta = if byte < 0x80 {
            at += 1;
            u64::from(byte)
        } else {
            read_varbyte(deltas, &mut at)?
        };
        if delta == 0 {
            return None;
        }
        tid += delta;
        out.push(tid);
    }
    (tid < 1 << 43).then_some(())
}

/// Appends one segment with as many of `tids` (ascending, not empty) as fit into
/// `limit` bytes, pad byte included; returns how many that were, at least one.
pub fn encode_segment(tids: &[u64], limit: usize, out: &mut Vec<u8>) -> usize {
    let budget = (limit & !1).saturating_sub(SEGMENT_HEADER);
    out.extend_from_slice(&Tid::unpack(tids[0]).to_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0, 0]);
    let start = out.len();
    let mut taken = 1;
    for pair in tids.windows(2) {
        let delta = pair[1] - pair[0];
        if out.len() - start + varbyte_len(delta) > budget {
            break;
        }
        push_varbyte(out, delta);
        taken += 1;
    }
    let nbytes = u16::try_from(out.len() - start).expect("limits stay below 64 kB");
    out[length_at..start].copy_from_slice(&nbytes.to_le_bytes());
    if nbytes % 2 == 1 {
        out.push(0);
    }
    taken
}

/// A segment as it lies on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// First TID, packed.
    pub first: u64,
    /// The varbytes.
    pub deltas: &'a [u8],
    /// Bytes on the page, header and pad included.
    pub stored: usize,
}

/// The segment at the start of `bytes`; `None` when it is cut.
pub fn read_segment(bytes: &[u8]) -> Option<Segment<'_>> {
    let tid = Tid::from_bytes(bytes.get(..6)?.try_into().ok()?);
    let nbytes = usize::from(u16::from_le_bytes(bytes.get(6..8)?.try_into().ok()?));
    let deltas = bytes.get(SEGMENT_HEADER..SEGMENT_HEADER + nbytes)?;
    let stored = SEGMENT_HEADER + nbytes.next_multiple_of(2);
    (stored <= bytes.len()).then_some(Segment { first: tid.pack(), deltas, stored })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varbytes_are_the_published_ones() {
        let cases: [(u64, &[u8]); 8] = [
            (1, &[1]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (2047, &[0xff, 0x0f]),
            (16383, &[0xff, 0x7f]),
            (16384, &[0x80, 0x80, 1]),
            (2_097_151, &[0xff, 0xff, 0x7f]),
            (2_097_152, &[0x80, 0x80, 0x80, 1]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            push_varbyte(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(varbyte_len(value), bytes.len());
            let mut at = 0;
            assert_eq!(read_varbyte(bytes, &mut at), Some(value));
            assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn a_segment_is_postgresqls_byte_for_byte() {
        let tids = [
            (0, 1),
            (0, 2),
            (0, 300),
            (1, 1),
            (1, 129),
            (70_000, 5),
            (4_294_967_294, 291),
        ]
        .map(|(block, offset)| Tid::new(block, offset).pack());
        let mut out = Vec::new();
        assert_eq!(encode_segment(&tids, 384, &mut out), tids.len());
        let expected = [
            0, 0, 0, 0, 1, 0, 0x12, 0, 1, 0xaa, 2, 0xd5, 0x0d, 0x80, 1, 0x84, 0xef,
            0xad, 0x44, 0x9e, 0xe2, 0xd1, 0xbb, 0xff, 0xff, 1,
        ];
        assert_eq!(out, expected);
        let segment = read_segment(&out).unwrap();
        let mut back = Vec::new();
        decode_into(segment.first, segment.deltas, &mut back).unwrap();
        assert_eq!((back.as_slice(), segment.stored), (&tids[..], out.len()));
    }

    #[test]
    fn a_full_segment_stops_before_the_tid_that_would_cross_the_limit() {
        let tids: Vec<u64> = (0..100).map(|n| 2049 + n * 200).collect();
        let mut out = Vec::new();
        assert_eq!(encode_segment(&tids, 29, &mut out), 11);
        assert_eq!(out.len(), 28);
    }

    #[test]
    fn broken_bytes_are_refused() {
        assert_eq!(read_segment(&[0, 0, 0, 0, 1, 0, 4, 0, 1, 1]), None);
        assert_eq!(decode_into(1, &[1, 0], &mut Vec::new()), None);
        assert_eq!(decode_into(1, &[0x80], &mut Vec::new()), None);
        assert_eq!(read_varbyte(&[0x80; 8], &mut 0), None);
    }
}
