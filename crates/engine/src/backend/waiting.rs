//! How a worker waits for a point of time: asleep, spinning, asleep up to shortly before it and spinning the rest, or
//! spinning for a moment and asleep the rest.

use pummel_logic::plan::Wait;
use pummel_logic::time::{MICROSECOND, MILLISECOND, NEVER, Nanos};

use crate::sys::WaitLimit;

/// Bounds of the margin: below the first even quick machines wake up late now and then; above the second one pays more
/// for spinning than anybody wins by it.
const MARGIN_NS: (Nanos, Nanos) = (50 * MICROSECOND, 200 * MICROSECOND);

/// How long [`Wait::Brief`] looks before it sleeps. Who sleeps then wakes up so much too late that a twentieth of the time
/// or less is lost; a virtual machine may take 50 us, and gives its core to others meanwhile.
const BRIEF_NS: Nanos = MILLISECOND;

/// The margin before anything is known.
const MARGIN_FIRST_NS: Nanos = 100 * MICROSECOND;

/// By how much a sleep that ended within the margin shortens it. One that did not lengthens it by 99 times as much, so
/// that the margin comes to rest where one sleep in a hundred is longer: at the 99th percentile.
const STEP_NS: Nanos = 100;
const STEPS_LATE: Nanos = 99;

/// What a worker does until a point of time, by its way of waiting and by how late the kernel woke it so far.
#[derive(Clone, Debug)]
pub struct WaitStrategy {
    wait: Wait,
    /// How long before the time [`Wait::Auto`] stops sleeping: the 99th percentile of its own overshoot, bounded.
    margin_ns: Nanos,
    /// When the sleep that was allowed last ends.
    wake_at: Nanos,
    /// Until when [`Wait::Brief`] looks.
    look_until: Nanos,
    /// Nothing happened in what was allowed last, and nothing was to be done then either.
    was_quiet: bool,
    /// It was time already when something was allowed last.
    was_due: bool,
}

impl WaitStrategy {
    /// Nothing is known yet of how late this machine wakes up who sleeps.
    pub fn new(wait: Wait) -> WaitStrategy {
        WaitStrategy {
            wait,
            margin_ns: MARGIN_FIRST_NS,
            wake_at: NEVER,
            look_until: 0,
            was_quiet: false,
            was_due: false,
        }
    }

    /// How long to sleep at most, when it is `now` and nothing is to be missed at `until`.
    #[inline]
    pub fn wait_limit(&mut self, now: Nanos, until: Nanos) -> WaitLimit {
        self.wake_at = NEVER;
        self.was_due = until <= now;
        if self.was_due || self.wait == Wait::Spin {
            return WaitLimit::Look;
        }
        if self.wait == Wait::Brief && self.looks(now) {
            return WaitLimit::Look;
        }
        if until == NEVER {
            return WaitLimit::Endless;
        }
        let sleep_ns = match self.wait {
            Wait::Auto => (until - now).saturating_sub(self.margin_ns),
            Wait::Block | Wait::Brief | Wait::Spin => until - now,
        };
        if sleep_ns == 0 {
            return WaitLimit::Look;
        }
        self.wake_at = now + sleep_ns;
        WaitLimit::For(sleep_ns)
    }

    /// Whether the moment of looking is not over, which begins when something has happened or was to be done.
    fn looks(&mut self, now: Nanos) -> bool {
        if !std::mem::take(&mut self.was_quiet) {
            self.look_until = now + BRIEF_NS;
        }
        now < self.look_until
    }

    /// What [`WaitStrategy::wait_limit`] allowed is over at `now`, and nothing happened meanwhile.
    #[inline]
    pub fn slept(&mut self, now: Nanos) {
        self.was_quiet = !self.was_due;
        if self.wake_at == NEVER || now < self.wake_at {
            return;
        }
        let margin_ns = match now - self.wake_at > self.margin_ns {
            true => self.margin_ns + STEPS_LATE * STEP_NS,
            false => self.margin_ns - STEP_NS,
        };
        self.margin_ns = margin_ns.clamp(MARGIN_NS.0, MARGIN_NS.1);
        self.wake_at = NEVER;
    }
}

/// Cores and who wants them, as far as it is known before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// On this machine.
    pub machine: usize,
    /// That this process may use.
    pub allowed: usize,
    /// Threads that want to spin, those of other generators on this machine included.
    pub workers: usize,
    /// Servers on this machine, each of which needs one at least.
    pub servers: usize,
}

impl Cores {
    /// What [`Wait::Auto`] and [`Wait::Brief`] come to: only sleeping, where the workers and the servers leave no core to spin on. Who spins
    /// on the server's core slows down what is to be measured.
    pub fn settle(self, wait: Wait) -> Wait {
        let has_room = self.workers <= self.allowed && self.workers + self.servers <= self.machine;
        match wait {
            Wait::Auto | Wait::Brief if !has_room => Wait::Block,
            wait => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The margin after many sleeps that were so much too long.
    fn margin_after(overshoots: impl IntoIterator<Item = Nanos>) -> Nanos {
        let mut waiting = WaitStrategy::new(Wait::Auto);
        let mut now = 0;
        for overshoot in overshoots {
            let WaitLimit::For(sleep_ns) = waiting.wait_limit(now, now + 10_000_000) else {
                panic!("there is time to sleep")
            };
            now += sleep_ns + overshoot;
            waiting.slept(now);
        }
        waiting.margin_ns
    }

    #[test]
    fn auto_sleeps_to_a_margin_before_the_time_and_spins_the_rest() {
        let mut waiting = WaitStrategy::new(Wait::Auto);
        assert_eq!(waiting.wait_limit(1_000, 1_001_000), WaitLimit::For(900_000));
        assert_eq!(waiting.wait_limit(901_000, 1_001_000), WaitLimit::Look);
        assert_eq!(waiting.wait_limit(1_001_000, 1_001_000), WaitLimit::Look);
        assert_eq!(waiting.wait_limit(0, NEVER), WaitLimit::Endless);
    }

    #[test]
    fn spinning_never_sleeps_and_blocking_only_sleeps() {
        for until in [0, 5, 1_000_000, NEVER] {
            assert_eq!(WaitStrategy::new(Wait::Spin).wait_limit(5, until), WaitLimit::Look);
        }
        assert_eq!(WaitStrategy::new(Wait::Block).wait_limit(5, 6), WaitLimit::For(1));
        assert_eq!(WaitStrategy::new(Wait::Block).wait_limit(5, 5), WaitLimit::Look);
        assert_eq!(WaitStrategy::new(Wait::Block).wait_limit(5, NEVER), WaitLimit::Endless);
    }

    #[test]
    fn brief_looks_for_a_moment_after_something_happened_and_sleeps_then() {
        let mut waiting = WaitStrategy::new(Wait::Brief);
        for begin in [0, 1_000_000_000] {
            for now in [begin, begin + BRIEF_NS / 2, begin + BRIEF_NS - 1] {
                assert_eq!(waiting.wait_limit(now, NEVER), WaitLimit::Look);
                waiting.slept(now);
            }
            assert_eq!(waiting.wait_limit(begin + BRIEF_NS, NEVER), WaitLimit::Endless);
            let slept_to = begin + 2 * BRIEF_NS;
            waiting.slept(slept_to);
            assert_eq!(waiting.wait_limit(slept_to, slept_to + 700_000), WaitLimit::For(700_000));
            // It is cut short: something happened.
        }
        assert_eq!(waiting.wait_limit(2_000_000_000, 2_000_000_000), WaitLimit::Look);
    }

    #[test]
    fn brief_looks_for_a_moment_after_something_was_due() {
        let mut waiting = WaitStrategy::new(Wait::Brief);
        assert_eq!(waiting.wait_limit(0, NEVER), WaitLimit::Look);
        waiting.slept(BRIEF_NS);
        // Nothing has happened for as long as it looks when something is due, and a request goes out.
        assert_eq!(waiting.wait_limit(BRIEF_NS, BRIEF_NS), WaitLimit::Look);
        waiting.slept(BRIEF_NS + 1);
        assert_eq!(waiting.wait_limit(BRIEF_NS + 1, NEVER), WaitLimit::Look);
        waiting.slept(BRIEF_NS + 2);
        assert_eq!(waiting.wait_limit(2 * BRIEF_NS + 1, NEVER), WaitLimit::Endless);
    }

    #[test]
    fn the_margin_is_the_99th_percentile_of_the_overshoot() {
        // One sleep in 50 is 150 us too long, and the others are spread evenly up to 120 us.
        let overshoot = |n: u64| if n.is_multiple_of(50) { 150_000 } else { n * 7_919 % 120_000 };
        let margin = margin_after((0..200_000).map(overshoot));
        assert!((135_000..165_000).contains(&margin), "{margin}");
        let margin = margin_after((0..200_000).map(|n| n * 7_919 % 100_000));
        assert!((90_000..110_000).contains(&margin), "{margin}");
    }

    #[test]
    fn the_margin_stays_within_its_bounds() {
        assert_eq!(margin_after([0; 2_000]), MARGIN_NS.0);
        assert_eq!(margin_after([5_000_000; 2_000]), MARGIN_NS.1);
    }

    #[test]
    fn a_sleep_that_was_cut_short_says_nothing_about_overshoot() {
        let mut waiting = WaitStrategy::new(Wait::Auto);
        waiting.wait_limit(0, 10_000_000);
        waiting.slept(5_000_000);
        waiting.wait_limit(5_000_000, 5_000_001);
        waiting.slept(90_000_000);
        assert_eq!(waiting.margin_ns, MARGIN_FIRST_NS);
    }

    #[test]
    fn auto_only_sleeps_where_workers_and_servers_leave_no_core() {
        let settled = |machine, allowed, workers, servers| {
            Cores { machine, allowed, workers, servers }.settle(Wait::Auto)
        };
        assert_eq!(settled(2, 2, 1, 1), Wait::Auto);
        assert_eq!(settled(2, 2, 2, 1), Wait::Block, "the server has no core");
        assert_eq!(settled(2, 2, 2, 0), Wait::Auto, "the server is elsewhere");
        assert_eq!(settled(2, 1, 1, 1), Wait::Auto, "the server has the core that is not ours");
        assert_eq!(settled(1, 1, 1, 1), Wait::Block);
        assert_eq!(settled(8, 2, 3, 0), Wait::Block);
        let crowded = Cores { machine: 1, allowed: 1, workers: 4, servers: 1 };
        assert_eq!(crowded.settle(Wait::Spin), Wait::Spin, "who asks to spin spins");
        assert_eq!(crowded.settle(Wait::Brief), Wait::Block);
    }
}
