//! A hash that is the same on every machine and in every version: FNV-1a of 64 bits. It keeps nobody from finding a collision.

use std::hash::Hasher;

use fnv::FnvHasher;

pub fn stable_hash(bytes: &[u8]) -> u64 {
    finished(FnvHasher::default(), bytes)
}

/// The hash that goes on from an earlier one, or from a seed.
pub fn stable_hash_from(hash: u64, bytes: &[u8]) -> u64 {
    finished(FnvHasher::with_key(hash), bytes)
}

fn finished(mut hasher: FnvHasher, bytes: &[u8]) -> u64 {
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of ReplicaSets, annotations of containers and the simulator's seeds are made of it.
    #[test]
    fn it_never_changes() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(stable_hash(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(stable_hash_from(stable_hash(b"foo"), b"bar"), stable_hash(b"foobar"));
    }
}
