//! libmemcached's default distribution: the hash of the key modulo the number of servers.

/// Bob Jenkins' one-at-a-time hash, as libmemcached computes it: bytes from 128 on count as negative numbers.
#[inline]
pub fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for &byte in key {
        hash = hash.wrapping_add(i32::from(byte as i8) as u32);
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}
