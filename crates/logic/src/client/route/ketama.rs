//! libmemcached's hash rings: each server has many points on a ring of hashes, and a key belongs to the server of the
//! next point.
//!
//! libmemcached has two kinds of ring that are both called ketama. MEMCACHED_BEHAVIOR_KETAMA hashes keys and points
//! with one-at-a-time and gives a server 100 points. MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED hashes with MD5, takes four
//! points from each digest and gives a server 160 points; other clients mean this ring by the name ketama.

use md5::{Digest, Md5};

use super::lane::Lane;
use super::modulo::one_at_a_time;

/// The default port, which is left out of the names of points.
const PORT_DEFAULT: &str = "11211";

/// Points of a server on the plain ring.
const POINTS: u32 = 100;

/// Points of a server on the weighted ring, where all have the same weight, and how many come from one digest.
const POINTS_WEIGHTED: f32 = 160.0;
const POINTS_PER_DIGEST: f32 = 4.0;

/// The points of a ring in ascending order, with their servers.
#[derive(Clone, Debug)]
pub struct Ring {
    points: Vec<(u32, Lane)>,
    hash: fn(&[u8]) -> u32,
}

impl Ring {
    /// The ring of MEMCACHED_BEHAVIOR_KETAMA, for servers as a Plan names them.
    pub fn plain(servers: &[String]) -> Ring {
        let points = (0..).zip(servers).flat_map(|(lane, server)| {
            let name = name_of(server);
            (0..POINTS).map(move |point| (one_at_a_time(format!("{name}-{point}").as_bytes()), lane))
        });
        Ring::new(points.collect(), one_at_a_time)
    }

    /// The ring of MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, for servers of the same weight as a Plan names them.
    pub fn weighted(servers: &[String]) -> Ring {
        let digests = digests_of_each(servers.len());
        let points = (0..).zip(servers).flat_map(|(lane, server)| {
            let name = name_of(server);
            let digests = (0..digests).map(move |point| Md5::digest(format!("{name}-{point}")));
            digests.flat_map(move |digest| {
                let words: Vec<u32> = digest.chunks_exact(4).map(word).collect();
                words.into_iter().map(move |point| (point, lane))
            })
        });
        Ring::new(points.collect(), |key| word(&Md5::digest(key)))
    }

    fn new(mut points: Vec<(u32, Lane)>, hash: fn(&[u8]) -> u32) -> Ring {
        points.sort_unstable();
        Ring { points, hash }
    }

    /// The lane to the server that owns a key: the server of the first point at or behind the key's hash, round the ring.
    #[inline]
    pub fn lane_of(&self, key: &[u8]) -> Lane {
        let hash = (self.hash)(key);
        let next = self.points.partition_point(|&(point, _)| point < hash);
        self.points[if next == self.points.len() { 0 } else { next }].1
    }
}

/// The name from which a server's points are computed: its host alone if it listens on the default port, without the
/// brackets of IPv6. A unix socket has port 0.
fn name_of(server: &str) -> String {
    if server.starts_with('/') {
        return format!("{server}:0");
    }
    let (host, port) = server.rsplit_once(':').unwrap_or((server, PORT_DEFAULT));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if port == PORT_DEFAULT { host.to_owned() } else { format!("{host}:{port}") }
}

/// Number of digests of each server. libmemcached computes it from shares in single precision, which makes one digest less
/// for some numbers of servers, of which 25 is the first.
fn digests_of_each(servers: usize) -> u32 {
    let share = 1.0 / servers as f32;
    let digests = share * POINTS_WEIGHTED / POINTS_PER_DIGEST * servers as f32;
    (f64::from(digests) + 1e-10) as f32 as u32
}

/// The first four bytes of a digest as a number, lowest byte first.
fn word(bytes: &[u8]) -> u32 {
    bytes[..4].iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_named_as_libmemcached_names_them() {
        for (server, name) in [
            ("cache1:11211", "cache1"),
            ("cache1:11212", "cache1:11212"),
            ("[::1]:11211", "::1"),
            ("[::1]:11212", "::1:11212"),
            ("/run/memcached.sock", "/run/memcached.sock:0"),
        ] {
            assert_eq!(name_of(server), name);
        }
    }

    #[test]
    fn servers_have_160_points_but_for_some_numbers_of_servers() {
        let fewer: Vec<usize> = (1..64).filter(|&servers| digests_of_each(servers) != 40).collect();
        // Found by counting how libmemcached 1.1.4 places keys.
        assert_eq!(fewer, [25, 47, 50, 55, 61]);
    }
}
