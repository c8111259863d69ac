//! Memory of an accumulator in chunks: it grows without moving and is freed at once.
//!
//! Growing by doubling would hold the old and the new copy at a time, which a hard limit
//! cannot afford; chunks cost what they hold.

/// Bytes per chunk of an [`Arena`]; also the longest piece it gives out.
pub const CHUNK: usize = 1 << 16;
const ITEMS: usize = 1 << 10;

/// Bytes under 32-bit addresses.
#[derive(Debug, Default)]
pub struct Arena {
    chunks: Vec<Box<[u8]>>,
    used: usize,
}

impl Arena {
    /// Room for `len` bytes (at most [`CHUNK`]), contiguous; their address.
    pub fn alloc(&mut self, len: usize) -> u32 {
        if self.chunks.is_empty() || self.used + len > CHUNK {
            self.chunks.push(vec![0; CHUNK].into_boxed_slice());
            self.used = 0;
        }
        let address = (self.chunks.len() - 1) * CHUNK + self.used;
        self.used += len;
        u32::try_from(address).expect("accumulators spill before 4 GB")
    }

    /// The byte at an address.
    pub fn byte_mut(&mut self, address: u32) -> &mut u8 {
        &mut self.chunks[address as usize / CHUNK][address as usize % CHUNK]
    }

    /// The bytes from an address on, to their chunk's end.
    pub fn bytes(&self, address: u32) -> &[u8] {
        &self.chunks[address as usize / CHUNK][address as usize % CHUNK..]
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self, address: u32) -> &mut [u8] {
        &mut self.chunks[address as usize / CHUNK][address as usize % CHUNK..]
    }

    /// The four bytes at an address as a number.
    pub fn word(&self, address: u32) -> u32 {
        let bytes = self.bytes(address)[..4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    }

    /// Sets the four bytes at an address.
    pub fn set_word(&mut self, address: u32, word: u32) {
        self.bytes_mut(address)[..4].copy_from_slice(&word.to_le_bytes());
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        *self = Arena::default();
    }
}

/// A growing array that never moves.
#[derive(Debug)]
pub struct Chunked<T> {
    chunks: Vec<Box<[T]>>,
    len: usize,
}

impl<T: Copy + Default> Chunked<T> {
    /// No elements.
    pub fn new() -> Chunked<T> {
        Chunked { chunks: Vec::new(), len: 0 }
    }

    /// Appends an element.
    pub fn push(&mut self, item: T) {
        if self.len == self.chunks.len() * ITEMS {
            self.chunks.push(vec![T::default(); ITEMS].into_boxed_slice());
        }
        self.chunks[self.len / ITEMS][self.len % ITEMS] = item;
        self.len += 1;
    }

    /// The element at `index`.
    pub fn get(&self, index: u32) -> &T {
        &self.chunks[index as usize / ITEMS][index as usize % ITEMS]
    }

    /// The element at `index`, to be changed.
    pub fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / ITEMS][index as usize % ITEMS]
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.chunks.len() * ITEMS * size_of::<T>()
    }

    /// Frees everything.
    pub fn clear(&mut self) {
        *self = Chunked::new();
    }
}
