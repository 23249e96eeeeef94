//! Hashes of keys, which decide which keys are kept and which client requests them.

use crate::rng::{mix, scramble};

/// 64 bits that belong to these bytes: eight of them at a time, each mixed in by the finalizer of SplitMix64.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = scramble(bytes.len() as u64 ^ 0x7ace);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = scramble(state.rotate_left(23) ^ word);
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    scramble(state.rotate_left(23) ^ u64::from_le_bytes(last))
}

/// The number of a client that a trace names by these bytes: 63 bits, which formats with numbers of at most 19 digits hold.
pub fn client_of_name(bytes: &[u8]) -> u64 {
    hash_bytes(bytes) >> 1
}

/// Whether a key with this hash is among a share of all keys, which `salt` chooses, by the condition of SHARDS
/// (Waldspurger et al., FAST 2015): the hash, as a share of the greatest one, is below `share`.
#[inline]
pub fn is_sampled(hash: u64, salt: u64, share: f64) -> bool {
    // The greatest share keeps everything, whatever the rounding.
    share >= 1.0 || (mix(&[hash, salt]) as f64) < share * 2f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_the_length_count() {
        let base = hash_bytes(b"0123456789");
        for place in 0..10 {
            let mut other = *b"0123456789";
            other[place] ^= 1;
            assert_ne!(hash_bytes(&other), base);
        }
        assert_ne!(hash_bytes(b"a"), hash_bytes(b"a\0"));
        assert_ne!(hash_bytes(b""), hash_bytes(b"\0"));
    }

    #[test]
    fn the_number_of_a_client_has_at_most_19_digits() {
        let clients: std::collections::BTreeSet<u64> =
            (0u64..10_000).map(|client| client_of_name(&client.to_le_bytes())).collect();
        assert_eq!(clients.len(), 10_000);
        assert!(clients.iter().all(|client| client.to_string().len() <= 19));
    }

    #[test]
    fn a_share_of_the_keys_is_sampled() {
        let kept = |share: f64, salt: u64| {
            (0u64..100_000).filter(|key| is_sampled(hash_bytes(&key.to_le_bytes()), salt, share)).count()
        };
        // 5 standard deviations of 100,000 draws are 475 at 0.1.
        assert!((9_525..10_475).contains(&kept(0.1, 1)), "{}", kept(0.1, 1));
        assert_ne!(kept(0.1, 1), kept(0.1, 2));
        assert_eq!((kept(1.0, 3), kept(0.0, 3)), (100_000, 0));
    }
}
