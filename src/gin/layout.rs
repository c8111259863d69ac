//! Constants of the file format, the page checksum, and the pieces between workers and
//! leader. The format itself, with pictures, is in this folder's `README.md`.
//!
//! A **piece** is what an [`EntryEncoder`](crate::gin::EntryEncoder) hands to the
//! [`Loader`](crate::gin::Loader): bytes that go to a page as they are.
//!
//! ```text
//! off  size  field
//! 0    1     kind: 1 entry with an inline list, 2 leaf of a posting tree,
//!            3 entry that points to the tree of the leaves before it
//! 1    1     zero
//! 2    2     n: length of the body (u16, little-endian)
//! 4    n     body: kinds 1 and 3 an entry tuple as on a leaf page (its tree's block
//!            still zero); kind 2 the first and the last packed TID (u64 each), then
//!            the page's segments
//! ```
//!
//! An entry is one piece of kind 1, or pieces of kind 2 followed by one of kind 3.
//!
//! Answers to `bufpage.h`, `itemid.h`, `ginblock.h` and `checksum_impl.h`.

use crate::error::{Error, Result};

/// Bytes of a page.
pub const PAGE_SIZE: usize = 8192;
/// "No such page".
pub const INVALID_BLOCK: u32 = u32::MAX;
/// Block of the metapage.
pub const META_BLOCK: u32 = 0;
/// Block of the entry tree's root, whatever its height.
pub const ROOT_BLOCK: u32 = 1;

/// Where a page's checksum lies.
pub const CHECKSUM_AT: usize = 8;
/// `pd_flags`.
pub const PD_FLAGS_AT: usize = 10;
/// `pd_flags` that PostgreSQL knows.
pub const PD_FLAGS_KNOWN: u16 = 7;
/// `pd_lower`: end of the low area.
pub const LOWER_AT: usize = 12;
/// `pd_upper`: start of the tuples.
pub const UPPER_AT: usize = 14;
/// `pd_special`.
pub const SPECIAL_AT: usize = 16;
/// Page size and layout version.
pub const SIZE_VERSION_AT: usize = 18;
/// 8192 bytes, version 4.
pub const SIZE_VERSION: u16 = 0x2004;
/// `pd_prune_xid`; only deleted pages of posting trees use it.
pub const PRUNE_AT: usize = 20;
/// Bytes of the page header.
pub const HEADER: usize = 24;

/// Start of the special area, on every page.
pub const SPECIAL: usize = PAGE_SIZE - 8;
/// Block of the right sibling.
pub const RIGHTLINK_AT: usize = SPECIAL;
/// Items of an internal page of a posting tree.
pub const MAXOFF_AT: usize = SPECIAL + 4;
/// GIN's page flags.
pub const FLAGS_AT: usize = SPECIAL + 6;

/// Page of a posting tree.
pub const DATA: u16 = 0x01;
/// Leaf.
pub const LEAF: u16 = 0x02;
/// Removed from a posting tree by VACUUM.
pub const DELETED: u16 = 0x04;
/// Metapage.
pub const META: u16 = 0x08;
/// Page of the pending list.
pub const LIST: u16 = 0x10;
/// Page of the pending list with whole heap rows only.
pub const LIST_FULLROW: u16 = 0x20;
/// Split whose downlink is still missing.
pub const INCOMPLETE_SPLIT: u16 = 0x40;
/// Leaf of a posting tree in the format since 9.4.
pub const COMPRESSED: u16 = 0x80;
/// Flags and their names, as pageinspect spells them.
pub const FLAG_NAMES: [(u16, &str); 8] = [
    (DATA, "data"),
    (LEAF, "leaf"),
    (DELETED, "deleted"),
    (META, "meta"),
    (LIST, "list"),
    (LIST_FULLROW, "list_fullrow"),
    (INCOMPLETE_SPLIT, "incomplete_split"),
    (COMPRESSED, "compressed"),
];
/// Leaf of a posting tree.
pub const DATA_LEAF: u16 = DATA | LEAF | COMPRESSED;

/// Bytes of a line pointer.
pub const LINE_POINTER: usize = 4;
/// Room for line pointers and tuples.
pub const ENTRY_CAPACITY: usize = SPECIAL - HEADER;
/// Most tuples that PostgreSQL expects on a page.
pub const ITEMS_MAX: usize = 408;
/// Bytes of an index tuple's header.
pub const TUPLE_HEADER: usize = 8;
/// Bits of `t_info` with the size.
pub const TUPLE_SIZE_MASK: u16 = 0x1fff;
/// `t_info`: reserved, zero in GIN.
pub const TUPLE_RESERVED: u16 = 0x2000;
/// `t_info`: the key is of variable width.
pub const TUPLE_VARWIDTH: u16 = 0x4000;
/// `t_info`: there is a null bitmap.
pub const TUPLE_NULLS: u16 = 0x8000;
/// Where the key area starts when there is a null bitmap.
pub const NULLS_KEY_AT: usize = 16;
/// Largest entry tuple.
pub const TUPLE_MAX: usize = 2712;
/// `t_tid` offset of a leaf tuple that points to a posting tree.
pub const TREE_MARK: u16 = 0xffff;
/// `t_tid` block bit of a leaf tuple with an inline list.
pub const INLINE_BIT: u32 = 0x8000_0000;

/// Right bound (and two zero bytes) of a page of a posting tree.
pub const RIGHT_BOUND_AT: usize = HEADER;
/// Where segments or posting items start.
pub const DATA_AT: usize = HEADER + 8;
/// Room for segments or posting items.
pub const DATA_CAPACITY: usize = SPECIAL - DATA_AT;
/// Bytes of a posting item: child, key.
pub const POSTING_ITEM: usize = 10;
/// Most posting items on a page.
pub const POSTING_ITEMS_MAX: usize = DATA_CAPACITY / POSTING_ITEM;
/// Longest segment in a posting tree.
pub const POSTING_SEGMENT_MAX: usize = 384;
/// Room below which a leaf counts as full. A segment's header is 8 bytes: shorter ones
/// are not worth it.
pub const POSTING_SEGMENT_MIN: usize = 32;
/// PostgreSQL numbers the segments of a page in one byte.
pub const SEGMENTS_MAX: usize = 255;

/// Length of the metadata on the metapage.
pub const META_LEN: usize = 56;
/// `ginVersion`.
pub const VERSION: i32 = 2;

/// Piece: an entry tuple with its inline list.
pub const PIECE_INLINE: u8 = 1;
/// Piece: a leaf of a posting tree.
pub const PIECE_LEAF: u8 = 2;
/// Piece: an entry tuple that points to the tree of the leaves before it.
pub const PIECE_TREE: u8 = 3;
/// Bytes of a piece before its body.
pub const PIECE_HEADER: usize = 4;
/// Bytes before the segments in the body of a leaf piece.
pub const PIECE_BOUNDS: usize = 16;

/// Rounds up to PostgreSQL's maximum alignment.
pub const fn align8(n: usize) -> usize {
    n.next_multiple_of(8)
}

/// The little-endian `u16` at `at`; the caller knows that it is there.
pub fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian `u32` at `at`; the caller knows that it is there.
pub fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A block number as two halves, high one first.
pub const fn split_block(block: u32) -> [u8; 4] {
    let [b0, b1, b2, b3] = block.to_le_bytes();
    [b2, b3, b0, b1]
}

/// Reverses [`split_block`].
pub const fn join_block(b: [u8; 4]) -> u32 {
    u32::from_le_bytes([b[2], b[3], b[0], b[1]])
}

const FNV_PRIME: u32 = 16_777_619;
const LANES: usize = 32;
#[rustfmt::skip]
const LANE_START: [u32; LANES] = [
    0x5B1F_36E9, 0xB852_5960, 0x02AB_50AA, 0x1DE6_6D2A, 0x79FF_467A, 0x9BB9_F8A3,
    0x217E_7CD2, 0x83E1_3D2C, 0xF8D4_474F, 0xE39E_B970, 0x42C6_AE16, 0x9932_16FA,
    0x7B09_3B5D, 0x98DA_FF3C, 0xF718_902A, 0x0B1C_9CDB, 0xE58F_764B, 0x1876_36BC,
    0x5D7B_3BB1, 0xE73D_E7DE, 0x92BE_C979, 0xCCA6_C0B2, 0x304A_0979, 0x85AA_43D4,
    0x7831_25BB, 0x6CA8_EAA2, 0xE407_EAC6, 0x4B5C_FC3E, 0x9FBF_8C76, 0x15CA_20BE,
    0xF2CA_9FD3, 0x959B_D756,
];

fn mix(lanes: &mut [u32; LANES], row: &[u32; LANES]) {
    for (lane, value) in lanes.iter_mut().zip(row) {
        let mixed = *lane ^ value;
        *lane = mixed.wrapping_mul(FNV_PRIME) ^ (mixed >> 17);
    }
}

/// PostgreSQL's checksum of a page, never 0; the checksum in the page does not matter.
pub fn checksum(page: &[u8; PAGE_SIZE], block: u32) -> u16 {
    let mut lanes = LANE_START;
    let mut row = [0u32; LANES];
    for (n, bytes) in page.chunks_exact(LANES * 4).enumerate() {
        for (value, word) in row.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        }
        if n == 0 {
            row[CHECKSUM_AT / 4] &= 0xffff_0000;
        }
        mix(&mut lanes, &row);
    }
    for _ in 0..2 {
        mix(&mut lanes, &[0; LANES]);
    }
    let folded = lanes.iter().fold(block, |sum, lane| sum ^ lane);
    u16::try_from(folded % 65535 + 1).expect("at most 65535")
}

/// A piece, taken apart.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// An entry tuple with its inline list.
    Inline(&'a [u8]),
    /// The segments of a leaf of a posting tree.
    Leaf {
        /// First packed TID.
        first: u64,
        /// Last packed TID.
        last: u64,
        /// The segments.
        segments: &'a [u8],
    },
    /// An entry tuple whose list is the leaves before it.
    Tree(&'a [u8]),
}

/// Appends a piece whose body is the concatenation of `parts`.
pub fn put_piece(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u16::try_from(length).expect("a piece fits a page");
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Takes the first piece off `bytes`.
pub fn take_piece<'a>(bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>> {
    let Some((header, rest)) = bytes.split_first_chunk::<PIECE_HEADER>() else {
        return if bytes.is_empty() {
            Ok(None)
        } else {
            Err(Error::invalid("the last piece for an index is cut in its header"))
        };
    };
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let (Some(body), 0) = (rest.get(..length), header[1]) else {
        return Err(Error::invalid("a piece for an index is cut or not one"));
    };
    let fits = |room: usize| !body.is_empty() && body.len() <= room;
    let piece = match header[0] {
        PIECE_INLINE if fits(TUPLE_MAX) => Piece::Inline(body),
        PIECE_TREE if fits(TUPLE_MAX) => Piece::Tree(body),
        PIECE_LEAF if fits(PIECE_BOUNDS + DATA_CAPACITY) => {
            let (bounds, segments) = body
                .split_first_chunk::<PIECE_BOUNDS>()
                .filter(|(_, segments)| !segments.is_empty())
                .ok_or_else(|| Error::invalid("a leaf piece without segments"))?;
            let (first, last) = bounds.split_at(8);
            Piece::Leaf {
                first: u64::from_le_bytes(first.try_into().expect("8 bytes")),
                last: u64::from_le_bytes(last.try_into().expect("8 bytes")),
                segments,
            }
        }
        kind => {
            return Err(Error::invalid(format!(
                "a piece of kind {kind} with {length} bytes is none of an index"
            )));
        }
    };
    *bytes = &rest[length..];
    Ok(Some(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_server() {
        let mut page = [0; PAGE_SIZE];
        for (i, byte) in page.iter_mut().enumerate() {
            *byte = (7 * i % 256) as u8;
        }
        assert_eq!(checksum(&page, 0), 45186);
        assert_eq!(checksum(&page, 131_072), 45184);
        page[CHECKSUM_AT] ^= 0x55;
        assert_eq!(checksum(&page, 0), 45186);
        page[CHECKSUM_AT + 2] ^= 0x55;
        assert_ne!(checksum(&page, 0), 45186);
    }

    #[test]
    fn a_piece_comes_back_and_a_cut_one_is_refused() {
        let mut bytes = Vec::new();
        put_piece(&mut bytes, PIECE_INLINE, &[&[1; 16], &[2; 8]]);
        put_piece(&mut bytes, PIECE_LEAF, &[&[0; 16], &[0, 0, 0, 0, 1, 0, 0, 0]]);
        let mut rest = &bytes[..];
        let piece = take_piece(&mut rest).unwrap();
        assert!(matches!(piece, Some(Piece::Inline(tuple)) if tuple.len() == 24));
        let piece = take_piece(&mut rest).unwrap();
        assert!(
            matches!(piece, Some(Piece::Leaf { segments, .. }) if segments[4] == 1)
        );
        assert!(take_piece(&mut rest).unwrap().is_none());
        for cut in 1..28 {
            assert!(take_piece(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        bytes[0] = 9;
        assert!(take_piece(&mut &bytes[..]).is_err());
    }
}
