//! The waits of a worker for a point of time: it sleeps, spins, sleeps until shortly before it and spins for the rest,
//! or spins for a moment and sleeps for the rest.

use pummel_logic::plan::Wait;
use pummel_logic::time::{MICROSECOND, MILLISECOND, NEVER, Nanos};

use crate::sys::WaitLimit;

/// Bounds of the margin, in nanoseconds. Below the first, even quick machines wake up late now and then; above the
/// second, spinning costs more than it gains.
const MARGIN_NS: (Nanos, Nanos) = (50 * MICROSECOND, 200 * MICROSECOND);

/// Time for which [`Wait::Brief`] spins before it sleeps, in nanoseconds. The late wake-up after that time, which may
/// take 50 us on a virtual machine, costs a twentieth of the time at most, and the core is free for others meanwhile.
const BRIEF_NS: Nanos = MILLISECOND;

/// The margin before the first sleep, in nanoseconds.
const MARGIN_FIRST_NS: Nanos = 100 * MICROSECOND;

/// Nanoseconds by which a sleep that ended within the margin shortens the margin. A longer sleep lengthens the
/// margin by 99 times as much, so that it settles where one sleep in a hundred is longer: at the 99th percentile.
const STEP_NS: Nanos = 100;
const STEPS_LATE: Nanos = 99;

/// Decides how long a worker sleeps before a point of time, by its way of waiting and by how late the kernel woke it so
/// far.
#[derive(Clone, Debug)]
pub struct WaitStrategy {
    wait: Wait,
    /// Time before the end of a wait at which [`Wait::Auto`] stops sleeping: the 99th percentile of its own overshoot,
    /// bounded.
    margin_ns: Nanos,
    /// When the last allowed sleep ends.
    wake_at: Nanos,
    /// Until when [`Wait::Brief`] spins.
    look_until: Nanos,
    /// No event came in the last wait, and no request was due then.
    was_quiet: bool,
    /// The point of time had come when the last wait was allowed.
    was_due: bool,
}

impl WaitStrategy {
    /// A strategy that does not know yet how late this machine wakes a sleeping thread.
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

    /// Returns the longest sleep at `now` after which the worker is awake at `until`.
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

    /// Whether [`Wait::Brief`] still spins. The spinning begins with each event and each due request.
    fn looks(&mut self, now: Nanos) -> bool {
        if !std::mem::take(&mut self.was_quiet) {
            self.look_until = now + BRIEF_NS;
        }
        now < self.look_until
    }

    /// Notes that the wait which [`WaitStrategy::wait_limit`] allowed is over at `now` without an event.
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

/// The cores of the machine, and the threads and servers that need them, as known before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Cores of this machine.
    pub machine: usize,
    /// Cores that this process may use.
    pub allowed: usize,
    /// Threads that are to spin, those of other generators on this machine included.
    pub workers: usize,
    /// Servers on this machine, each of which needs one core at least.
    pub servers: usize,
}

impl Cores {
    /// The way of waiting that `wait` stands for on these cores. [`Wait::Auto`] and [`Wait::Brief`] become
    /// [`Wait::Block`] where the workers and the servers leave no core to spin on, since a thread that spins on a
    /// server's core slows down what is measured.
    pub fn resolve(self, wait: Wait) -> Wait {
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

    /// The margin after sleeps that each were longer than allowed by one of `overshoots` nanoseconds.
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
            // The sleep is cut short by an event.
        }
        assert_eq!(waiting.wait_limit(2_000_000_000, 2_000_000_000), WaitLimit::Look);
    }

    #[test]
    fn brief_looks_for_a_moment_after_something_was_due() {
        let mut waiting = WaitStrategy::new(Wait::Brief);
        assert_eq!(waiting.wait_limit(0, NEVER), WaitLimit::Look);
        waiting.slept(BRIEF_NS);
        // No event has come for as long as the strategy spins when a request is due.
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
        let resolved = |machine, allowed, workers, servers| {
            Cores { machine, allowed, workers, servers }.resolve(Wait::Auto)
        };
        assert_eq!(resolved(2, 2, 1, 1), Wait::Auto);
        assert_eq!(resolved(2, 2, 2, 1), Wait::Block, "the server has no core");
        assert_eq!(resolved(2, 2, 2, 0), Wait::Auto, "the server is elsewhere");
        assert_eq!(resolved(2, 1, 1, 1), Wait::Auto, "the server has the core that is not ours");
        assert_eq!(resolved(1, 1, 1, 1), Wait::Block);
        assert_eq!(resolved(8, 2, 3, 0), Wait::Block);
        let crowded = Cores { machine: 1, allowed: 1, workers: 4, servers: 1 };
        assert_eq!(crowded.resolve(Wait::Spin), Wait::Spin, "who asks to spin spins");
        assert_eq!(crowded.resolve(Wait::Brief), Wait::Block);
    }
}
