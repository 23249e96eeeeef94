//! The clients' requests for the events of a plan: requests for a key that is hot for a time, and requests that remove
//! records.

use crate::client::route::Lane;
use crate::plan::{Event, EventKind, FlashCrowd, HotKey, RankRange};
use crate::protocol::Verb;
use crate::rng::{Stream, mix, unit};
use crate::time::Nanos;
use crate::workload::unstored::key_from_bits;

/// Names the draws that decide between hot keys and others among all of one request; those of keys that are no records are below.
const DRAWS_FROM: u64 = 6_144;

/// Names the new keys of events.
const NEW_KEYS: u64 = 0x6e_6577;

/// The expiry of a record that has expired, in seconds: memcached takes every negative one for the past.
pub(crate) const EXPIRED_S: i64 = -1;

/// The keys that are hot for a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Crowds(Vec<Crowd>);

#[derive(Clone, Debug, PartialEq)]
struct Crowd {
    at_ns: Nanos,
    crowd: FlashCrowd,
    key: CrowdKey,
}

/// The key of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrowdKey {
    /// The key with this number, which is no record.
    New(u64),
    /// The key of a record.
    Record(u64),
}

/// Records that are lost at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    /// Nanoseconds from the beginning of the phase.
    pub(super) at_ns: Nanos,
    /// Delete, or touch where records expire.
    pub(super) verb: Verb,
    pub(super) ranks: RankRange,
}

/// A request of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventRequest {
    /// Due time, in nanoseconds from the beginning of the phase.
    pub(crate) at_ns: Nanos,
    pub(crate) verb: Verb,
    /// Index of the request's key.
    pub(crate) key: u64,
    pub(crate) lane: Lane,
}

impl Crowds {
    /// The crowds among these events; `salt` is a number that no other phase of any run has.
    pub(super) fn of(events: &[Event], salt: u64) -> Crowds {
        let crowd = |(number, event): (usize, &Event)| {
            let EventKind::Hot(crowd) = &event.what else { return None };
            let key = match crowd.key {
                HotKey::New => CrowdKey::New(key_from_bits(mix(&[salt, NEW_KEYS, number as u64]))),
                HotKey::Rank(rank) => CrowdKey::Record(rank),
            };
            Some(Crowd { at_ns: event.at_ns, crowd: crowd.clone(), key })
        };
        Crowds(events.iter().enumerate().filter_map(crowd).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hot key that key `place` of request `index` is, which is due so long after the beginning of the phase; `None` where
    /// it is another one. `ops` is the client's stream of operations.
    pub(super) fn key(&self, ops: &Stream, (index, place): (u64, u64), since_ns: Nanos) -> Option<CrowdKey> {
        let share = unit(ops.draw_sub(index, DRAWS_FROM + place));
        let mut until = 0.0;
        self.0.iter().find_map(|crowd| {
            until += since_ns.checked_sub(crowd.at_ns).map_or(0.0, |since_ns| crowd.crowd.share_at(since_ns));
            (share < until).then_some(crowd.key)
        })
    }
}

/// The losses among these events.
pub(super) fn losses(events: &[Event]) -> Vec<Loss> {
    let loss = |event: &Event| {
        let (verb, ranks) = match event.what {
            EventKind::Hot(_) => return None,
            EventKind::Delete(ranks) => (Verb::Delete, ranks),
            EventKind::Expire(ranks) => (Verb::Touch, ranks),
        };
        Some(Loss { at_ns: event.at_ns, verb, ranks })
    };
    events.iter().filter_map(loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    fn hot(at_s: u64, key: HotKey, share: f64) -> Event {
        let crowd =
            FlashCrowd { key, share, rise_ns: 2 * SECOND, hold_ns: 20 * SECOND, fall_ns: 10 * SECOND };
        Event { at_ns: at_s * SECOND, what: EventKind::Hot(crowd) }
    }

    #[test]
    fn a_hot_key_has_its_share_of_the_requests_at_every_moment() {
        let crowds = Crowds::of(&[hot(10, HotKey::New, 0.4), hot(15, HotKey::Rank(7), 0.2)], 5);
        let draws = 40_000_u64;
        for (client, second, expected) in [
            (0, 5.0, [0.0, 0.0]),
            (1, 11.0, [0.2, 0.0]),
            (2, 14.0, [0.4, 0.0]),
            (3, 16.0, [0.4, 0.1]),
            (4, 25.0, [0.4, 0.2]),
            (5, 37.0, [0.2, 0.2]),
            (6, 60.0, [0.0, 0.0]),
        ] {
            let ops = Stream::from_seed(client);
            let mut counts = [0_u64; 2];
            for index in 0..draws {
                match crowds.key(&ops, (index, index % 3), (second * 1e9) as Nanos) {
                    Some(CrowdKey::New(_)) => counts[0] += 1,
                    Some(CrowdKey::Record(record)) => {
                        assert_eq!(record, 7);
                        counts[1] += 1;
                    }
                    None => {}
                }
            }
            for (count, share) in counts.into_iter().zip(expected) {
                let sd = (draws as f64 * share * (1.0 - share)).sqrt();
                assert!((count as f64 - share * draws as f64).abs() <= 5.0 * sd, "{second} s: {counts:?}");
            }
        }
    }

    #[test]
    fn a_new_key_is_one_for_all_clients_and_another_one_in_every_phase_and_event() {
        let of = |salt| Crowds::of(&[hot(0, HotKey::New, 0.4), hot(0, HotKey::New, 0.4)], salt);
        let keys: Vec<CrowdKey> = of(1).0.iter().chain(&of(2).0).map(|crowd| crowd.key).collect();
        assert!((1..keys.len()).all(|at| !keys[..at].contains(&keys[at])), "{keys:?}");
        assert_eq!(of(1), of(1));
    }
}
