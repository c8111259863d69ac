//! TIDs: how a document is named, as a heap row is: a block and an offset in it.
//!
//! A TID packs into one integer, `block << 11 | offset`, in which TIDs order as they
//! do in PostgreSQL (block first). Posting lists store differences of packed TIDs.
//! Answers to PostgreSQL's `itemptr.h` and to the integers of `ginpostinglist.c`.

use std::fmt;

/// Bits of a packed TID that hold the offset.
pub const OFFSET_BITS: u32 = 11;
/// Largest offset that a packed TID can hold.
pub const MAX_OFFSET: u16 = (1 << OFFSET_BITS) - 1;
/// Documents per block when ginmill numbers them itself; offsets run from 1 to this.
pub const DOCUMENTS_PER_BLOCK: u64 = 256;

/// A document's name: block and offset (from 1), ordered by block, then offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid {
    /// Heap block.
    pub block: u32,
    /// Line pointer in the block, from 1; 0 only in `Tid::default()`, "minus infinity".
    pub offset: u16,
}

impl Tid {
    /// A TID of its two parts.
    pub const fn new(block: u32, offset: u16) -> Tid {
        Tid { block, offset }
    }

    /// The `n`-th document (from 0) of a range whose first block is `first_block`.
    pub fn numbered(first_block: u32, n: u64) -> Tid {
        let block = u64::from(first_block) + n / DOCUMENTS_PER_BLOCK;
        let block = u32::try_from(block).expect("fewer than 2^32 blocks");
        let offset = u16::try_from(n % DOCUMENTS_PER_BLOCK + 1).expect("at most 256");
        Tid { block, offset }
    }

    /// The integer whose differences posting lists store.
    pub const fn pack(self) -> u64 {
        (self.block as u64) << OFFSET_BITS | self.offset as u64
    }

    /// The TID of a packed integer; bits above 43 must be zero.
    pub const fn unpack(packed: u64) -> Tid {
        Tid {
            block: (packed >> OFFSET_BITS) as u32,
            offset: (packed & MAX_OFFSET as u64) as u16,
        }
    }

    /// PostgreSQL's six bytes: block high, block low, offset, each little-endian.
    pub const fn to_bytes(self) -> [u8; 6] {
        let [b0, b1, b2, b3] = self.block.to_le_bytes();
        let [o0, o1] = self.offset.to_le_bytes();
        [b2, b3, b0, b1, o0, o1]
    }

    /// Reverses [`Tid::to_bytes`].
    pub const fn from_bytes(b: [u8; 6]) -> Tid {
        Tid {
            block: u32::from_le_bytes([b[2], b[3], b[0], b[1]]),
            offset: u16::from_le_bytes([b[4], b[5]]),
        }
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_tids_order_and_come_back() {
        let tids =
            [Tid::new(0, 1), Tid::new(0, 291), Tid::new(1, 1), Tid::new(70000, 5)];
        for pair in tids.windows(2) {
            assert!(pair[0].pack() < pair[1].pack());
        }
        for tid in tids {
            assert_eq!(Tid::unpack(tid.pack()), tid);
            assert_eq!(Tid::from_bytes(tid.to_bytes()), tid);
        }
        assert_eq!(Tid::new(70000, 5).to_bytes(), [1, 0, 0x70, 0x11, 5, 0]);
    }

    #[test]
    fn the_257th_document_of_a_range_opens_its_second_block() {
        assert_eq!(Tid::numbered(7, 255), Tid::new(7, 256));
        assert_eq!(Tid::numbered(7, 256), Tid::new(8, 1));
    }
}
