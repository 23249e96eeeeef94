//! The deadlines of connections, in a coarse timing wheel in which each connection is at most once.
//!
//! A connection enters the wheel with its first outstanding request and is checked when its slot of the wheel comes up.
//! By then its oldest request is usually answered and the next deadline lies further ahead, so that a connection is
//! visited once per timeout and not once per request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pummel_logic::time::{NEVER, Nanos};

/// Slots of the wheel. A deadline beyond them is checked early and entered again.
const SLOTS: usize = 128;

/// Ticks of a timeout, which ends at most one tick late.
const TICKS_PER_TIMEOUT: Nanos = 64;

/// A timing wheel of connections, by their slots.
#[derive(Debug)]
pub struct TimingWheel {
    tick_ns: Nanos,
    /// Number of the next tick.
    cursor: u64,
    advance_at: Nanos,
    slots: Vec<Vec<u32>>,
    count: usize,
    /// The first tick from `cursor` on with a connection in it; [`NONE`] if there is none.
    first: u64,
    /// All deadlines in order, where each is checked to the nanosecond.
    exact: Option<BinaryHeap<Reverse<(Nanos, u32)>>>,
}

/// A tick number that means that there is no tick.
const NONE: u64 = u64::MAX;

impl TimingWheel {
    /// A wheel for deadlines of about `timeout` nanoseconds ahead of the clock, which reads `now`.
    pub fn new(timeout: Nanos, now: Nanos) -> TimingWheel {
        let tick_ns = (timeout / TICKS_PER_TIMEOUT).max(1);
        let slots = vec![Vec::new(); SLOTS];
        TimingWheel {
            tick_ns,
            cursor: now / tick_ns,
            advance_at: now,
            slots,
            count: 0,
            first: NONE,
            exact: None,
        }
    }

    /// A wheel whose deadlines are kept to the nanosecond, at the cost of a heap: for clients that come and go, whose
    /// timeouts are counted one by one.
    pub fn exact() -> TimingWheel {
        TimingWheel { advance_at: NEVER, exact: Some(BinaryHeap::new()), ..TimingWheel::new(1, 0) }
    }

    /// Enters a connection that is not in the wheel, to be checked at `at` or up to a tick later.
    pub fn insert(&mut self, connection: u32, at: Nanos) {
        if let Some(deadlines) = &mut self.exact {
            deadlines.push(Reverse((at, connection)));
            self.advance_at = self.advance_at.min(at);
            self.first = self.advance_at;
            return;
        }
        let tick = (at / self.tick_ns + 1).clamp(self.cursor, self.cursor + SLOTS as u64 - 1);
        self.slots[tick as usize % SLOTS].push(connection);
        self.count += 1;
        self.first = self.first.min(tick);
    }

    /// Time at which [`TimingWheel::expire`] next takes out a connection; [`NEVER`] if the wheel is empty.
    #[inline]
    pub fn next(&self) -> Nanos {
        if self.first == NONE { NEVER } else { self.first.saturating_mul(self.tick_ns) }
    }

    /// Moves every connection whose deadline has come to the end of `expired`.
    #[inline]
    pub fn expire(&mut self, now: Nanos, expired: &mut Vec<u32>) {
        if now >= self.advance_at {
            self.advance(now, expired);
        }
    }

    /// Advances the wheel to `now`.
    #[inline(never)]
    fn advance(&mut self, now: Nanos, expired: &mut Vec<u32>) {
        if let Some(deadlines) = &mut self.exact {
            while let Some(Reverse((_, connection))) = deadlines.peek().filter(|Reverse((at, _))| *at <= now)
            {
                expired.push(*connection);
                deadlines.pop();
            }
            self.advance_at = deadlines.peek().map_or(NEVER, |Reverse((at, _))| *at);
            self.first = self.advance_at;
            return;
        }
        let reached = now / self.tick_ns;
        for _ in 0..SLOTS {
            if self.cursor > reached {
                break;
            }
            let slot = &mut self.slots[self.cursor as usize % SLOTS];
            self.count -= slot.len();
            expired.append(slot);
            self.cursor += 1;
        }
        self.cursor = self.cursor.max(reached);
        self.advance_at = self.cursor.saturating_mul(self.tick_ns);
        self.first = match self.count {
            0 => NONE,
            _ => (self.cursor..self.cursor + SLOTS as u64)
                .find(|&tick| !self.slots[tick as usize % SLOTS].is_empty())
                .unwrap_or(NONE),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_one_hands_over_each_deadline_when_it_comes() {
        let mut wheel = TimingWheel::exact();
        assert_eq!(wheel.next(), NEVER);
        for (connection, at) in [(1, 7_000), (2, 5_000), (3, 5_001)] {
            wheel.insert(connection, at);
        }
        assert_eq!((wheel.next(), expired(&mut wheel, 4_999)), (5_000, vec![]));
        assert_eq!((expired(&mut wheel, 5_001), wheel.next()), (vec![2, 3], 7_000));
        assert_eq!((expired(&mut wheel, 9_000), wheel.next()), (vec![1], NEVER));
    }

    fn expired(wheel: &mut TimingWheel, now: Nanos) -> Vec<u32> {
        let mut list = Vec::new();
        wheel.expire(now, &mut list);
        list.sort_unstable();
        list
    }

    #[test]
    fn nothing_expires_early_and_nothing_later_than_a_tick() {
        let mut wheel = TimingWheel::new(6400, 1_000_000);
        wheel.insert(1, 1_006_400);
        wheel.insert(2, 1_003_250);
        assert!(expired(&mut wheel, 1_003_249).is_empty());
        assert_eq!(expired(&mut wheel, 1_003_350), [2]);
        assert!(expired(&mut wheel, 1_006_399).is_empty());
        assert_eq!(expired(&mut wheel, 1_006_500), [1]);
        assert_eq!(wheel.next(), NEVER);
    }

    #[test]
    fn the_next_look_is_never_later_than_a_tick_after_the_earliest_deadline() {
        let mut wheel = TimingWheel::new(64_000, 0);
        wheel.insert(7, 64_000);
        wheel.insert(8, 32_500);
        assert!((32_500..=33_500).contains(&wheel.next()));
        assert_eq!(expired(&mut wheel, 33_500), [8]);
        assert!((64_000..=65_000).contains(&wheel.next()));
    }

    #[test]
    fn deadlines_beyond_the_horizon_are_looked_at_early_and_a_long_pause_loses_none() {
        let mut wheel = TimingWheel::new(64, 0);
        wheel.insert(1, 1_000_000);
        assert_eq!(expired(&mut wheel, 200), [1], "looked at early, to be entered again");
        wheel.insert(1, 1_000_000);
        wheel.insert(2, 210);
        assert_eq!(expired(&mut wheel, 5_000_000), [1, 2]);
        wheel.insert(3, 10);
        assert_eq!(expired(&mut wheel, 5_000_002), [3], "a deadline in the past is due within a tick");
    }
}
