//! Hash slots of a Redis cluster and their assignment to servers (Redis cluster specification, "Key distribution
//! model" and "Hash tags").

use super::lane::Lane;

/// Number of hash slots in a Redis cluster.
pub const SLOTS: usize = 16_384;

/// The hash slot of a key, computed from its hash tag (the bytes between the first `{` and the next `}`), or from the
/// whole key if it has none or an empty one.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    crc16(tag(key).unwrap_or(key)) % SLOTS as u16
}

/// The assignment of slots to servers: one range of neighbouring slots for each server.
#[derive(Clone, Debug)]
pub struct Deal {
    /// The last slot of each range, in ascending order.
    last: Vec<u16>,
    /// The index of the server that owns each range.
    owners: Vec<usize>,
}

impl Deal {
    /// Assigns the slots to `servers` as `redis-cli --cluster create` 7.0 does: the ranges go to one server of each
    /// host in turn, and their ends are rounded from sums of the equal share in single precision.
    pub fn new(servers: &[String]) -> Deal {
        let share = SLOTS as f32 / servers.len() as f32;
        let mut cursor = 0.0f32;
        let mut last = Vec::with_capacity(servers.len());
        for _ in 1..servers.len() {
            last.push((cursor + share - 1.0).round() as u16);
            cursor += share;
        }
        last.push(SLOTS as u16 - 1);
        Deal { last, owners: one_of_each_host_in_turn(servers) }
    }

    /// The lane to the server that owns a key.
    #[inline]
    pub fn lane_of(&self, key: &[u8]) -> Lane {
        self.owner(slot(key)) as Lane
    }

    /// The index of the server that owns a slot.
    #[inline]
    pub fn owner(&self, slot: u16) -> usize {
        self.owners[self.last.partition_point(|&last| last < slot)]
    }
}

/// Indexes of the servers in the order in which they get their ranges: the first server of every host, then the
/// second one of every host, and so on. Hosts are in the order of their first servers.
fn one_of_each_host_in_turn(servers: &[String]) -> Vec<usize> {
    let host = |name: &str| name.rsplit_once(':').map_or(name, |(host, _)| host).to_owned();
    let mut seen: Vec<(String, usize)> = Vec::new();
    let mut order: Vec<(usize, usize, usize)> = Vec::with_capacity(servers.len());
    for (number, name) in servers.iter().enumerate() {
        let host = host(name);
        let place = seen.iter().position(|(known, _)| *known == host).unwrap_or(seen.len());
        if place == seen.len() {
            seen.push((host, 0));
        }
        order.push((seen[place].1, place, number));
        seen[place].1 += 1;
    }
    order.sort_unstable();
    order.into_iter().map(|(_, _, number)| number).collect()
}

/// The hash tag of a key: the bytes between its first `{` and the next `}`; `None` if it has none or an empty one.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'{', key)?;
    let rest = &key[open + 1..];
    let close = memchr::memchr(b'}', rest)?;
    (close > 0).then(|| &rest[..close])
}

/// CRC16 with polynomial 0x1021 and initial value 0 (XMODEM).
#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    crc16_behind(0, bytes)
}

/// The CRC16 of bytes that stand behind others with the CRC16 `crc`. It is linear: that of the bitwise difference of two texts of one
/// length is the bitwise difference of theirs.
#[inline]
pub(crate) fn crc16_behind(crc: u16, bytes: &[u8]) -> u16 {
    let of = |zeros: usize, byte: u8| TABLES[zeros][usize::from(byte)];
    let (fours, rest) = bytes.as_chunks::<4>();
    let crc = fours.iter().fold(crc, |crc, &[first, second, third, fourth]| {
        let [high, low] = crc.to_be_bytes();
        of(3, first ^ high) ^ of(2, second ^ low) ^ of(1, third) ^ of(0, fourth)
    });
    rest.iter().fold(crc, |crc, &byte| (crc << 8) ^ of(0, (crc >> 8) as u8 ^ byte))
}

/// The CRC16 of each single byte with so many zero bytes behind it, for the computation by four bytes at once.
const TABLES: [[u16; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 4 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[zeros - 1][byte];
            tables[zeros][byte] = crc << 8 ^ tables[0][(crc >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_redis_says() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let cuts = (0..9).map(|at| b"123456789".split_at(at));
        assert!(cuts.into_iter().all(|(first, rest)| crc16_behind(crc16(first), rest) == 0x31c3));
        // CLUSTER KEYSLOT of a redis-server 7.0.
        for (key, expected) in [
            ("", 0),
            ("a", 15_495),
            ("key1", 9_189),
            ("{user1000}.following", 3_443),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("foo{bar}{zap}", 5_061),
            ("000000000000000000000000000042", 10_576),
            ("schlüssel", 7_677),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn keys_with_the_same_tag_have_the_same_slot() {
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(tag(b"foo{}{bar}"), None, "an empty tag is none");
        assert_eq!(tag(b"foo{{bar}}zap"), Some(&b"{bar"[..]));
        assert_eq!(tag(b"foo{bar}{zap}"), Some(&b"bar"[..]));
        assert_eq!(tag(b"foo{bar"), None);
    }

    #[test]
    fn slots_are_dealt_out_as_redis_cli_does() {
        // The last slots that `redis-cli --cluster create` of version 7.0 proposed.
        assert_eq!(deal(3).last, [5_460, 10_922, 16_383]);
        assert_eq!(deal(5).last, [3_276, 6_553, 9_829, 13_106, 16_383]);
        assert_eq!(deal(6).last, [2_730, 5_460, 8_191, 10_922, 13_652, 16_383]);
        assert_eq!(deal(7).last, [2_340, 4_680, 7_021, 9_361, 11_702, 14_042, 16_383]);
    }

    /// The assignment of slots to this many servers, each on a host of its own.
    fn deal(servers: usize) -> Deal {
        let names: Vec<String> = (0..servers).map(|number| format!("10.0.0.{number}:6379")).collect();
        Deal::new(&names)
    }

    #[test]
    fn servers_of_one_host_have_slots_that_are_no_neighbours_where_there_are_others() {
        // The ranges that `redis-cli --cluster create` of version 7.0 proposed for these servers.
        let names = ["127.0.0.1:27001", "127.0.0.1:27002", "127.0.0.2:27003", "127.0.0.2:27004"];
        let deal = Deal::new(&names.map(str::to_owned));
        assert_eq!([0, 4_096, 8_192, 12_288].map(|slot| deal.owner(slot)), [0, 2, 1, 3]);
        let names = ["a:1", "b:1", "b:2", "b:3", "[::1]:1"];
        assert_eq!(one_of_each_host_in_turn(&names.map(str::to_owned)), [0, 1, 4, 2, 3]);
    }

    #[test]
    fn every_slot_has_one_owner_and_every_server_its_share() {
        for servers in 1..=1_000 {
            let deal = deal(servers);
            let mut owned = vec![0usize; servers];
            (0..SLOTS as u16).for_each(|slot| owned[deal.owner(slot)] += 1);
            let (least, most) = (owned.iter().min(), owned.iter().max());
            assert!(least.zip(most).is_some_and(|(least, most)| most - least <= 2), "{servers}: {owned:?}");
        }
    }
}
