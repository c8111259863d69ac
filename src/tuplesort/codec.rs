//! Codecs for spilled blocks.
//!
//! To add one: a type that implements [`Codec`], one line in [`CODECS`]. A block that a
//! codec does not make smaller is stored plain, whatever the codec.

/// Every codec, by the name that `--codec` takes.
pub static CODECS: &[&dyn Codec] = &[&Lz4, &Plain];

/// The codec of that name.
pub fn find(name: &str) -> Option<&'static dyn Codec> {
    CODECS.iter().copied().find(|codec| codec.name() == name)
}

/// The codec with that id, as blocks carry it.
pub fn with_id(id: u8) -> Option<&'static dyn Codec> {
    CODECS.iter().copied().find(|codec| codec.id() == id)
}

/// A way to store a block in fewer bytes.
pub trait Codec: Send + Sync {
    /// Name for options and reports.
    fn name(&self) -> &'static str;
    /// One line for help texts.
    fn summary(&self) -> &'static str;
    /// Number in the block header; never used twice.
    fn id(&self) -> u8;
    /// Appends the encoded form of `raw`.
    fn encode(&self, raw: &[u8], out: &mut Vec<u8>);
    /// Replaces `out` by the `raw_len` bytes that `stored` encodes; `false` when it does
    /// not encode so many.
    fn decode(&self, stored: &[u8], raw_len: usize, out: &mut Vec<u8>) -> bool;
}

/// Makes `out` exactly `len` bytes long without the spare room that growing a vector
/// takes: a merge holds one such buffer per tape.
fn make_room(out: &mut Vec<u8>, len: usize) {
    out.clear();
    if out.capacity() < len {
        out.reserve_exact(len.next_multiple_of(4 << 10));
    }
    out.resize(len, 0);
}

/// Bytes as they are.
#[derive(Debug)]
pub struct Plain;

impl Codec for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn summary(&self) -> &'static str {
        "blocks as they are: more temporary space, less work"
    }

    fn id(&self) -> u8 {
        0
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(raw);
    }

    fn decode(&self, stored: &[u8], raw_len: usize, out: &mut Vec<u8>) -> bool {
        make_room(out, stored.len());
        out.copy_from_slice(stored);
        stored.len() == raw_len
    }
}

/// LZ4 block format.
#[derive(Debug)]
pub struct Lz4;

impl Codec for Lz4 {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn summary(&self) -> &'static str {
        "LZ4 blocks, where that makes them smaller"
    }

    fn id(&self) -> u8 {
        1
    }

    fn encode(&self, raw: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        let len = lz4_flex::block::compress_into(raw, &mut out[start..])
            .expect("the output has the codec's maximum size");
        out.truncate(start + len);
    }

    fn decode(&self, stored: &[u8], raw_len: usize, out: &mut Vec<u8>) -> bool {
        make_room(out, raw_len);
        lz4_flex::block::decompress_into(stored, out).is_ok_and(|len| len == raw_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_gives_back_what_it_was_given() {
        let raw: Vec<u8> = (0..10_000u32).map(|n| (n / 7 % 251) as u8).collect();
        for codec in CODECS {
            let (mut stored, mut back) = (vec![9], Vec::new());
            codec.encode(&raw, &mut stored);
            assert!(
                codec.decode(&stored[1..], raw.len(), &mut back),
                "{}",
                codec.name()
            );
            assert_eq!(back, raw, "{}", codec.name());
            assert!(!codec.decode(&stored[1..stored.len() - 1], raw.len(), &mut back));
            assert_eq!(find(codec.name()).unwrap().id(), codec.id());
            assert_eq!(with_id(codec.id()).unwrap().name(), codec.name());
        }
    }
}
