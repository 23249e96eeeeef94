//! Difference between the clocks of an agent and of the controller, by questions and answers over the network.

use pummel_logic::time::Nanos;

/// Greatest drift between the clocks of two machines, in parts per million.
const DRIFT_PER_MILLION: u64 = 200;

/// The result of one question: the agent's clocks are ahead of the controller's by the offsets, give or take the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Offset of the monotonic clock, which decides when a phase begins.
    pub monotonic_ns: i64,
    /// Offset of the wall clock.
    pub wall_ns: i64,
    /// Greatest error of the offsets: half of the time that the question took.
    pub error_ns: Nanos,
    /// When the answer came, on the controller's monotonic clock.
    pub at: Nanos,
}

/// A question to an agent: the controller's clocks before and after it, and the agent's clocks in between.
#[derive(Clone, Copy, Debug)]
pub struct ClockExchange {
    /// The controller's monotonic clock before.
    pub before: Nanos,
    /// The controller's monotonic clock after.
    pub after: Nanos,
    /// The controller's wall clock in the middle.
    pub wall: Nanos,
    /// The agent's monotonic clock.
    pub their_monotonic: Nanos,
    /// The agent's wall clock.
    pub their_wall: Nanos,
}

impl ClockExchange {
    /// The offset of the agent's clocks, as if the agent had read them in the middle of the exchange.
    pub fn offset(&self) -> ClockOffset {
        let half = self.after.saturating_sub(self.before) / 2;
        ClockOffset {
            monotonic_ns: self.their_monotonic.wrapping_sub(self.before + half) as i64,
            wall_ns: self.their_wall.wrapping_sub(self.wall) as i64,
            error_ns: half,
            at: self.after,
        }
    }
}

impl ClockOffset {
    /// The error at `now`, which grows with the drift of the clocks.
    fn error_at(&self, now: Nanos) -> Nanos {
        let age = now.saturating_sub(self.at);
        self.error_ns.saturating_add(age / 1_000_000 * DRIFT_PER_MILLION)
    }

    /// The one of both offsets that has the smaller error at the time of `newer`.
    pub fn better(self, newer: ClockOffset) -> ClockOffset {
        if newer.error_ns <= self.error_at(newer.at) { newer } else { self }
    }

    /// The agent's time at the controller's time `at`.
    pub fn theirs(&self, at: Nanos) -> Nanos {
        at.wrapping_add(self.monotonic_ns as u64)
    }

    /// The controller's time at the agent's time `at`.
    pub fn ours(&self, at: Nanos) -> Nanos {
        at.wrapping_sub(self.monotonic_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(before: Nanos, took: Nanos, ahead: i64) -> ClockExchange {
        let theirs = (before + took / 2).wrapping_add(ahead as u64);
        ClockExchange {
            before,
            after: before + took,
            wall: 1_000_000 + before + took / 2,
            their_monotonic: theirs,
            their_wall: 1_000_000 + before + took / 2 + 77,
        }
    }

    #[test]
    fn offsets_are_found_in_both_directions() {
        for ahead in [0, 5_000_000_000, -900] {
            let offset = exchange(1_000, 40, ahead).offset();
            assert_eq!((offset.monotonic_ns, offset.wall_ns, offset.error_ns), (ahead, 77, 20));
            assert_eq!(offset.theirs(2_000), 2_000u64.wrapping_add(ahead as u64));
            assert_eq!(offset.ours(offset.theirs(2_000)), 2_000);
        }
    }

    #[test]
    fn a_quick_answer_is_better_than_a_slow_one_until_it_is_old() {
        let (quick, slow) = (exchange(0, 40, 0).offset(), exchange(1_000, 4_000, 0).offset());
        assert_eq!(quick.better(slow), quick);
        assert_eq!(slow.better(exchange(9_000, 40, 0).offset()).error_ns, 20);
        let hour = 3_600_000_000_000;
        assert_eq!(quick.better(exchange(hour, 4_000, 0).offset()).error_ns, 2_000);
    }
}
