//! PostgreSQL's compression of long values, for keys that do not fit a tuple plain.
//!
//! A stream is groups of a control byte and eight items; bit i of the control byte
//! (lowest first) says what item i is:
//!
//! ```text
//! 0   one byte as it is
//! 1   a copy from what came out before: 2 or 3 bytes
//!     high 4 bits of byte 0 and all of byte 1: how far back, 1 to 4095
//!     low 4 bits of byte 0: length - 3; 15 means that byte 2 is length - 18
//! ```
//!
//! The finder of copies is a plain hash chain with a bounded walk; which copies it
//! chooses is its own business, every reader takes them. Answers to `pg_lzcompress.c`.

const FARTHEST: usize = 4095;
const SHORTEST: usize = 3;
const LONGEST: usize = 273;
const HASH_BITS: u32 = 12;
/// Earlier places tried for one copy.
const WALK: usize = 128;

fn hash(bytes: &[u8]) -> usize {
    let word =
        u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16;
    (word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// Compresses `raw` into fewer than `limit` bytes; `None` when that is not possible.
pub fn compress(raw: &[u8], limit: usize) -> Option<Vec<u8>> {
    const NONE: u32 = u32::MAX;
    if u32::try_from(raw.len()).is_err() {
        return None;
    }
    let mut latest = vec![NONE; 1 << HASH_BITS];
    let mut before = vec![NONE; FARTHEST + 1];
    let mut out = Vec::with_capacity(limit.min(raw.len()));
    let (mut control_at, mut items) = (0, 8);
    let mut at = 0;
    while at < raw.len() {
        if items == 8 {
            (control_at, items) = (out.len(), 0);
            out.push(0);
        }
        let (mut length, mut back) = (0, 0);
        if raw.len() - at >= SHORTEST {
            let longest = LONGEST.min(raw.len() - at);
            let mut place = latest[hash(&raw[at..])];
            for _ in 0..WALK {
                let start = place as usize;
                if place == NONE || at - start > FARTHEST || length == longest {
                    break;
                }
                let same = raw[start..].iter().zip(&raw[at..at + longest]);
                let same = same.take_while(|(a, b)| a == b).count();
                if same > length {
                    (length, back) = (same, at - start);
                }
                let earlier = before[start % before.len()];
                if earlier != NONE && earlier >= place {
                    break;
                }
                place = earlier;
            }
        }
        let taken = if length >= SHORTEST {
            out[control_at] |= 1 << items;
            let code = (length - SHORTEST).min(15);
            out.extend_from_slice(&[(back >> 4 & 0xf0 | code) as u8, back as u8]);
            if code == 15 {
                out.push((length - 18) as u8);
            }
            length
        } else {
            out.push(raw[at]);
            1
        };
        items += 1;
        for place in at..at + taken {
            if raw.len() - place >= SHORTEST {
                let slot = hash(&raw[place..]);
                let ring = before.len();
                before[place % ring] = latest[slot];
                latest[slot] = place as u32;
            }
        }
        at += taken;
        if out.len() >= limit {
            return None;
        }
    }
    Some(out)
}

/// Decompresses `bytes` to exactly `length` bytes; `None` where they are not a stream
/// of that length.
pub fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    // Three bytes make 273 at most: a length beyond that need not even be tried.
    if length > bytes.len().saturating_mul(LONGEST) {
        return None;
    }
    let mut out = Vec::with_capacity(length);
    let mut rest = bytes.iter().copied();
    while out.len() < length {
        let control = rest.next()?;
        for item in 0..8 {
            if out.len() == length {
                break;
            }
            let first = rest.next()?;
            if control >> item & 1 == 0 {
                out.push(first);
                continue;
            }
            let back = usize::from(first & 0xf0) << 4 | usize::from(rest.next()?);
            let mut copied = usize::from(first & 0x0f) + SHORTEST;
            if copied == 18 {
                copied += usize::from(rest.next()?);
            }
            if back == 0 || back > out.len() || copied > length - out.len() {
                return None;
            }
            for _ in 0..copied {
                out.push(out[out.len() - back]);
            }
        }
    }
    rest.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_gets_small_and_comes_back() {
        let mut text = b"the same words again ".repeat(5000);
        text.extend_from_slice(b"and an end");
        let packed = compress(&text, 2700).unwrap();
        assert!(packed.len() < 1400, "{}", packed.len());
        assert_eq!(decompress(&packed, text.len()).unwrap(), text);
        assert_eq!(decompress(&packed, text.len() - 1), None);
        assert_eq!(decompress(&packed, text.len() + 1), None);
        assert_eq!(decompress(&packed[..packed.len() - 1], text.len()), None);
    }

    #[test]
    fn what_does_not_repeat_is_given_up() {
        let mut state = 1u32;
        let noise: Vec<u8> = (0..4000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        assert_eq!(compress(&noise, 2700), None);
    }

    #[test]
    fn every_length_of_copy_and_a_copy_over_itself_come_back() {
        for length in 1..700 {
            let mut text = vec![b'x'; length];
            text.extend_from_slice(b"abcdefgh");
            text.extend(std::iter::repeat_n(b'y', length));
            let packed = compress(&text, 9999).unwrap();
            assert_eq!(decompress(&packed, text.len()).unwrap(), text);
        }
    }

    #[test]
    fn a_copy_from_before_the_start_is_refused() {
        assert_eq!(decompress(&[0b10, b'a', 0x00, 2], 4), None);
        assert_eq!(decompress(&[0b10, b'a', 0x00, 0], 4), None);
        assert_eq!(decompress(&[0b10, b'a', 0x00, 1], 4).unwrap(), b"aaaa");
    }
}
