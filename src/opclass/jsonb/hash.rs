//! The 32-bit hash behind both jsonb classes.
//!
//! Bob Jenkins' lookup3 with a fixed start, as PostgreSQL hashes byte strings: twelve
//! bytes a round, read as little-endian words on every machine (PostgreSQL on a
//! big-endian one has other hashes, and other index files). The answer is part of the
//! index format; the check values below were taken from a server.

/// What the three words start from, beside the length.
const START: u32 = 0x9E37_79B9_u32.wrapping_add(3_923_095);

/// Hash of a byte string.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u32 {
    // PostgreSQL's length is 32 bits wide, too; no string here reaches that.
    let start = START.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let (rounds, tail) = bytes.as_chunks::<12>();
    for round in rounds {
        let (words, _) = round.as_chunks::<4>();
        a = a.wrapping_add(u32::from_le_bytes(words[0]));
        b = b.wrapping_add(u32::from_le_bytes(words[1]));
        c = c.wrapping_add(u32::from_le_bytes(words[2]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    let mut rest = [0; 12];
    rest[..tail.len()].copy_from_slice(tail);
    let (words, _) = rest.as_chunks::<4>();
    a = a.wrapping_add(u32::from_le_bytes(words[0]));
    b = b.wrapping_add(u32::from_le_bytes(words[1]));
    // The lowest byte of the third word is left free.
    c = c.wrapping_add(u32::from_le_bytes(words[2]) << 8);

    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_hash_as_on_the_server() {
        for (text, hash) in [
            ("", 0xA7EA_466D),
            ("a", 0x4013_70B1),
            ("abc", 0xD12F_EB97),
            ("hello world!", 0x5374_AEDF),
            ("abcdefghijkl", 0xA176_3AD4),
            ("abcdefghijklm", 0x1830_C6D0),
            ("hello world, this is long", 0xBC30_CBD7),
        ] {
            assert_eq!(hash_bytes(text.as_bytes()), hash, "{text:?}");
        }
    }
}
