//! `jsonb_path_ops`: one key per scalar, a hash of the path that leads to it.
//!
//! The running hash starts at 0; a step to a member, and at last the scalar, each turn
//! it left by one bit and xor their own hash in ([`step`]). Arrays leave no trace, nor
//! do the numbers of their elements. Containers without a scalar add nothing.

use super::hash::hash_bytes;
use super::numeric;
use crate::document::{Json, JsonEvent};
use crate::error::Result;

/// The running hash after one more component.
pub(crate) const fn step(path: u32, component: u32) -> u32 {
    path.rotate_left(1) ^ component
}

/// Hash of an object key, and of a string.
pub(crate) fn hash_string(string: &str) -> u32 {
    hash_bytes(string.as_bytes())
}

pub(crate) const HASH_NULL: u32 = 1;

/// Hash of a boolean.
pub(crate) const fn hash_bool(value: bool) -> u32 {
    if value { 2 } else { 4 }
}

/// Walks tapes with a stack that it keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathHasher {
    /// Running hashes of the open containers.
    bases: Vec<u32>,
    /// Groups of the digits of a number.
    digits: Vec<u8>,
}

impl PathHasher {
    /// Calls `found` with the key of every scalar, in document order, equal ones as
    /// often as they occur.
    pub(crate) fn keys_of(
        &mut self,
        json: &Json,
        mut found: impl FnMut(u32) -> Result<()>,
    ) -> Result<()> {
        self.bases.clear();
        // The innermost container's running hash, and that of the value to come.
        let (mut base, mut path) = (0, 0);
        for event in json.events() {
            let component = match event {
                JsonEvent::Key(name) => {
                    path = step(base, hash_string(name));
                    continue;
                }
                JsonEvent::BeginArray | JsonEvent::BeginObject => {
                    self.bases.push(base);
                    base = path;
                    continue;
                }
                JsonEvent::EndArray | JsonEvent::EndObject => {
                    base = self.bases.pop().unwrap_or_default();
                    path = base;
                    continue;
                }
                JsonEvent::Null => HASH_NULL,
                JsonEvent::Bool(value) => hash_bool(value),
                JsonEvent::Number(number) => numeric::hash(number, &mut self.digits),
                JsonEvent::String(string) => hash_string(string),
            };
            found(step(path, component))?;
            path = base;
        }
        Ok(())
    }

    /// Bytes of memory held on the heap.
    pub(crate) fn memory(&self) -> usize {
        self.bases.capacity() * size_of::<u32>() + self.digits.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opclass::jsonb::parse;

    fn keys(text: &str) -> Vec<i32> {
        let mut keys = Vec::new();
        let json = parse(text).unwrap();
        PathHasher::default()
            .keys_of(&json, |key| {
                keys.push(key.cast_signed());
                Ok(())
            })
            .unwrap();
        keys
    }

    #[test]
    fn paths_hash_as_on_the_server() {
        assert_eq!(keys(r#"{"a": 1}"#), [-825_163_222]);
        assert_eq!(keys(r#"{"a": {"b": 1}}"#), [-1_183_736_116]);
        assert_eq!(
            keys(r#"{"a": ["x", true, null]}"#),
            [-1_070_286_357, -2_144_935_584, -2_144_935_581]
        );
        assert_eq!(keys(r#"[1, "a"]"#), [1_324_868_424, 1_075_015_857]);
        assert_eq!(keys(r#""a""#), [1_075_015_857]);
        assert_eq!(keys(r#"{"a": {}}"#), [0_i32; 0]);
    }

    #[test]
    fn arrays_leave_no_trace_and_siblings_do_not_mix() {
        assert_eq!(keys("[[1],[[2]],3]"), keys("[1,2,3]"));
        assert_eq!(
            keys(r#"{"a":[{"b":1},2],"c":3}"#),
            [keys(r#"{"a":{"b":1}}"#), keys(r#"{"a":2}"#), keys(r#"{"c":3}"#)].concat()
        );
    }
}
