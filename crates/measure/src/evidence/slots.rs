//! The load of the hash slots of a cluster's node, from `CLUSTER SLOT-STATS` (Valkey 8 and Redis 8.2).

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Pair, number_in};
use super::resp_value::RespValue;
use pummel_logic::time::{MICROSECOND, Nanos};

/// Slots that are asked for by the CPU time that they took.
pub const BY_CPU: usize = 64;

/// Slots that are asked for by their keys, and most slots of a reading.
pub const BY_KEYS: usize = 10;

/// Greatest number of a hash slot.
const SLOT_MAX: i64 = 16_383;

/// Use of one hash slot of a cluster's node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotUse {
    /// Number of the slot.
    pub slot: u16,
    /// Keys in the slot at the second reading.
    pub keys: u64,
    /// CPU time of commands on keys of the slot between the readings, in nanoseconds, at least: a slot that was not among the
    /// busiest at the first reading is taken to have had as much as the least of those. Absent where the node does not
    /// count it (`cluster-slot-stats-enabled no`).
    pub cpu_at_least_ns: Option<Nanos>,
    /// Bytes that came for the slot between the readings; absent where that is not known.
    pub bytes_in: Option<u64>,
    /// Bytes that the node sent for the slot between the readings; absent where that is not known.
    pub bytes_out: Option<u64>,
}

/// The facts of an answer to `CLUSTER SLOT-STATS`: pairs of a slot and of names with numbers.
pub fn reported_slots(answer: &RespValue<'_>) -> Facts {
    let mut facts = Facts::default();
    for entry in answer.list().iter().take(BY_CPU) {
        let [slot, figures] = entry.list() else { continue };
        let Some(slot) = slot.number().filter(|slot| (0..=SLOT_MAX).contains(slot)) else { continue };
        let number = |name: &str| {
            let is_it = |pair: &&[RespValue<'_>]| pair[0].text() == Some(name.as_bytes());
            figures.list().chunks_exact(2).find(is_it)?[1].number()
        };
        let figure = |(short, name)| Some(format!("{short}={}", number(name)?));
        let names = [
            ("keys", "key-count"),
            ("cpu_us", "cpu-usec"),
            ("in", "network-bytes-in"),
            ("out", "network-bytes-out"),
        ];
        let text: Vec<String> = names.into_iter().filter_map(figure).collect();
        facts.add(format!("hash_slot_{slot}").as_bytes(), text.join(",").as_bytes());
    }
    facts
}

/// The slots of a node that took the most CPU time between two readings, or have the most keys where the node does not count
/// the time; at most ten, those with the most first.
pub fn slots(pair: &Pair<'_>) -> Vec<SlotUse> {
    let before = |slot: &str| pair.before.text(&format!("hash_slot_{slot}"));
    let reported_before =
        || pair.before.beginning_with("hash_slot_").filter_map(|(_, text)| number_in(text, "cpu_us"));
    // Slots that are not in a list that is not full took nothing.
    let least_us = if reported_before().count() < BY_CPU { 0 } else { reported_before().min().unwrap_or(0) };
    let slot = |(slot, text): (&str, &str)| {
        let rise = |name: &str| {
            pair.difference(before(slot).and_then(|text| number_in(text, name)), number_in(text, name))
        };
        let cpu_us = match before(slot) {
            None => pair.difference(Some(least_us), number_in(text, "cpu_us")),
            Some(_) => rise("cpu_us"),
        };
        Some(SlotUse {
            slot: slot.parse().ok()?,
            keys: number_in(text, "keys")?,
            cpu_at_least_ns: cpu_us.map(|us| us.saturating_mul(MICROSECOND)),
            bytes_in: rise("in"),
            bytes_out: rise("out"),
        })
    };
    let mut slots: Vec<SlotUse> = pair.after.beginning_with("hash_slot_").filter_map(slot).collect();
    slots.sort_by_key(|slot| (std::cmp::Reverse((slot.cpu_at_least_ns, slot.keys)), slot.slot));
    slots.truncate(BY_KEYS);
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::resp_value::RespRead;

    /// The facts of an answer in RESP2 about these slots: number, keys, CPU time in microseconds and bytes that came.
    fn reported(slots: &[(u16, u64, u64, u64)]) -> Facts {
        let names = ["key-count", "cpu-usec", "network-bytes-in", "network-bytes-out"];
        let slot = |(slot, keys, cpu_us, came): &(u16, u64, u64, u64)| {
            let figures: String = names
                .iter()
                .zip([keys, cpu_us, came, came])
                .map(|(name, figure)| format!("${}\r\n{name}\r\n:{figure}\r\n", name.len()))
                .collect();
            format!("*2\r\n:{slot}\r\n*8\r\n{figures}")
        };
        let text: String = slots.iter().map(slot).collect();
        facts_of(format!("*{}\r\n{text}", slots.len()).as_bytes())
    }

    fn facts_of(bytes: &[u8]) -> Facts {
        let RespRead::Whole(value, len) = RespValue::read(bytes, 16_384) else { panic!("a whole answer") };
        assert_eq!(len, bytes.len());
        reported_slots(&value)
    }

    fn seen(before: &Facts, after: &Facts) -> Vec<SlotUse> {
        slots(&Pair { before, after, anew: false })
    }

    #[test]
    fn the_busiest_slots_are_those_that_took_most_between_the_readings() {
        let before = reported(&[(7, 10, 9_000, 500), (3, 5, 100, 50)]);
        let after = reported(&[(7, 10, 9_100, 600), (3, 6, 2_100, 90), (16_383, 1, 40, 4)]);
        let [first, second, third] = seen(&before, &after)[..] else { panic!("three slots") };
        assert_eq!((first.slot, first.keys, first.cpu_at_least_ns), (3, 6, Some(2_000 * MICROSECOND)));
        assert_eq!((first.bytes_in, first.bytes_out), (Some(40), Some(40)));
        assert_eq!((second.slot, second.cpu_at_least_ns), (7, Some(100 * MICROSECOND)));
        assert_eq!(
            (third.slot, third.cpu_at_least_ns, third.bytes_in),
            (16_383, Some(40 * MICROSECOND), None)
        );
    }

    #[test]
    fn a_slot_that_was_not_among_the_busiest_had_at_most_as_much_as_the_least_of_them() {
        let full: Vec<(u16, u64, u64, u64)> = (0..BY_CPU as u16).map(|slot| (slot, 1, 1_000, 1)).collect();
        let mut later = full.clone();
        later[0] = (9_999, 1, 5_000, 1);
        let found = seen(&reported(&full), &reported(&later));
        assert_eq!((found[0].slot, found[0].cpu_at_least_ns), (9_999, Some(4_000 * MICROSECOND)));
        assert_eq!(found.len(), BY_KEYS);
    }

    #[test]
    fn a_node_that_counts_keys_alone_has_its_fullest_slots_told() {
        let map = facts_of(
            b"*2\r\n*2\r\n:5\r\n%1\r\n$9\r\nkey-count\r\n:3\r\n*2\r\n:8\r\n%1\r\n$9\r\nkey-count\r\n:9\r\n",
        );
        let found = seen(&map, &map);
        assert_eq!(found.iter().map(|slot| (slot.slot, slot.keys)).collect::<Vec<_>>(), [(8, 9), (5, 3)]);
        assert!(found.iter().all(|slot| slot.cpu_at_least_ns.is_none() && slot.bytes_in.is_none()));
    }

    #[test]
    fn answers_of_another_form_tell_nothing() {
        for bytes in [
            &b"*1\r\n:1\r\n"[..],
            b":1\r\n",
            b"*1\r\n*2\r\n:16384\r\n*0\r\n",
            b"*1\r\n*2\r\n:-1\r\n*0\r\n",
            b"*1\r\n*3\r\n:1\r\n:2\r\n:3\r\n",
        ] {
            assert!(facts_of(bytes).is_empty());
        }
        let empty = facts_of(b"*1\r\n*2\r\n:1\r\n*1\r\n$9\r\nkey-count\r\n");
        assert!(seen(&empty, &empty).is_empty(), "no figure is no slot");
    }
}
