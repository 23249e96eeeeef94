//! The fate of one request after a redirect, or after its connection was lost: sent again now, later, or never.

use super::nodes::NodeNumber;
use super::redirect::Redirect;
use crate::retry::wait_ns;
use crate::time::Nanos;

/// Limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopLimits {
    /// Most redirects that a request follows; 0: none is followed and no wait is made.
    pub redirects: u32,
    /// Time from due after which a request is sent no more.
    pub timeout_ns: Nanos,
}

/// The end of one attempt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Time at which the request was due.
    pub due: Nanos,
    /// Time at which the attempt ended.
    pub now: Nanos,
    /// 64 random bits.
    pub jitter: u64,
}

/// Number of times that a request was sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// Redirects that were followed at once, and reads that were repeated after a loss.
    pub hops: u16,
    /// Waits for the cluster.
    pub waits: u16,
}

/// The next thing that is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// The request is sent again at once.
    Resend {
        /// The node to send it to.
        node: NodeNumber,
        /// Whether `ASKING` goes before the request.
        asking: bool,
    },
    /// The request is sent again at this time, to the node that serves its slot then.
    WaitUntil(Nanos),
    /// The request ends with the error that it has.
    GiveUp,
}

impl Hops {
    /// Decides what follows a redirect. `node` is the number of the node that it names; `None` where it names none, or none that is
    /// known. `has_failed_lately`: the lane to that node failed so short a time ago that it is not worth a hop.
    pub fn after_reply(
        &mut self,
        reply: &Redirect,
        node: Option<NodeNumber>,
        has_failed_lately: bool,
        attempt: &Attempt,
        limits: &HopLimits,
    ) -> NextHop {
        if limits.is_over(attempt) {
            return NextHop::GiveUp;
        }
        let asking = match reply {
            Redirect::CrossSlot => return NextHop::GiveUp,
            Redirect::Moved { .. } => false,
            Redirect::Ask { .. } => true,
            Redirect::TryAgain
            | Redirect::ClusterDown
            | Redirect::MasterDown
            | Redirect::Loading
            | Redirect::ReadOnly => return self.wait(attempt, limits),
        };
        match node.filter(|_| !has_failed_lately) {
            None => self.wait(attempt, limits),
            Some(_) if !self.hop(limits) => NextHop::GiveUp,
            Some(node) => NextHop::Resend { node, asking },
        }
    }

    /// Decides what follows the loss of the connection, or of the reply. `may_repeat`: the request is a read, or cannot have reached
    /// the server.
    pub fn after_loss(&mut self, may_repeat: bool, attempt: &Attempt, limits: &HopLimits) -> NextHop {
        if !may_repeat || limits.is_over(attempt) || !self.hop(limits) {
            return NextHop::GiveUp;
        }
        self.wait(attempt, limits)
    }

    /// Number of times that the request was to be sent again.
    pub fn attempts(&self) -> u64 {
        u64::from(self.hops) + u64::from(self.waits)
    }

    /// Counts a hop, and says whether it is within the limit.
    fn hop(&mut self, limits: &HopLimits) -> bool {
        let has_room = u32::from(self.hops) < limits.redirects;
        self.hops = self.hops.saturating_add(u16::from(has_room));
        has_room
    }

    /// Waits, longer each time, so that the last attempt is made at the timeout.
    fn wait(&mut self, attempt: &Attempt, limits: &HopLimits) -> NextHop {
        let wait = wait_ns(self.waits, attempt.jitter);
        self.waits = self.waits.saturating_add(1);
        NextHop::WaitUntil(attempt.now.saturating_add(wait).min(limits.end_of(attempt.due)))
    }
}

impl HopLimits {
    /// Time from which on a request is sent no more.
    fn end_of(&self, due: Nanos) -> Nanos {
        due.saturating_add(self.timeout_ns)
    }

    /// Whether nothing can follow an attempt.
    fn is_over(&self, attempt: &Attempt) -> bool {
        self.redirects == 0 || attempt.now >= self.end_of(attempt.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    const LIMITS: HopLimits = HopLimits { redirects: 5, timeout_ns: 1_000 * MILLISECOND };

    const MOVED: Redirect = Redirect::Moved { slot: 7, node: None };

    const ASK: Redirect = Redirect::Ask { slot: 7, node: None };

    /// An attempt that ended so many milliseconds after the request was due.
    fn after(ms: u64) -> Attempt {
        let due = 70 * MILLISECOND;
        Attempt { due, now: due + ms * MILLISECOND, jitter: 0 }
    }

    fn wait_until(ms: u64) -> NextHop {
        NextHop::WaitUntil(after(ms).now)
    }

    #[test]
    fn a_redirect_to_a_healthy_node_is_followed_up_to_the_limit() {
        for (reply, asking) in [(MOVED, false), (ASK, true)] {
            let mut hops = Hops::default();
            for hop in 1..=5 {
                let next = hops.after_reply(&reply, Some(3), false, &after(0), &LIMITS);
                assert_eq!(next, NextHop::Resend { node: 3, asking });
                assert_eq!(hops, Hops { hops: hop, waits: 0 });
            }
            assert_eq!(hops.after_reply(&reply, Some(3), false, &after(0), &LIMITS), NextHop::GiveUp);
            assert_eq!(hops.hops, 5);
        }
    }

    #[test]
    fn a_redirect_to_a_node_that_is_unknown_or_failed_is_a_wait() {
        for reply in [MOVED, ASK] {
            let mut hops = Hops::default();
            assert_eq!(hops.after_reply(&reply, None, false, &after(0), &LIMITS), wait_until(10));
            assert_eq!(hops.after_reply(&reply, Some(3), true, &after(10), &LIMITS), wait_until(30));
            assert_eq!(hops, Hops { hops: 0, waits: 2 }, "no hop is used up");
        }
    }

    #[test]
    fn waits_double_up_to_half_a_second_and_the_last_attempt_is_at_the_timeout() {
        for reply in [
            Redirect::TryAgain,
            Redirect::ClusterDown,
            Redirect::MasterDown,
            Redirect::Loading,
            Redirect::ReadOnly,
        ] {
            let limits = HopLimits { timeout_ns: 2_000 * MILLISECOND, ..LIMITS };
            let mut hops = Hops::default();
            let mut times = Vec::new();
            let mut attempt = after(0);
            while let NextHop::WaitUntil(at) = hops.after_reply(&reply, None, false, &attempt, &limits) {
                times.push((at - attempt.due) / MILLISECOND);
                attempt.now = at;
            }
            assert_eq!(times, [10, 30, 70, 150, 310, 630, 1_130, 1_630, 2_000]);
            assert_eq!(hops, Hops { hops: 0, waits: 9 });
        }
    }

    #[test]
    fn jitter_is_up_to_half_of_a_wait() {
        let with = |jitter, waits| {
            let attempt = Attempt { jitter, ..after(0) };
            Hops { hops: 0, waits }.after_reply(&Redirect::TryAgain, None, false, &attempt, &LIMITS)
        };
        assert_eq!((with(0, 0), with(u64::MAX, 0)), (wait_until(10), wait_until(5)));
        assert_eq!((with(0, u16::MAX), with(u64::MAX, u16::MAX)), (wait_until(500), wait_until(250)));
        let NextHop::WaitUntil(middle) = with(u64::MAX / 2, 1) else { panic!("it is a wait") };
        assert_eq!((middle - after(0).due) / MILLISECOND, 15);
    }

    #[test]
    fn nothing_follows_the_timeout_a_fault_of_the_request_or_a_limit_of_none() {
        for reply in [MOVED, ASK, Redirect::TryAgain, Redirect::ClusterDown, Redirect::CrossSlot] {
            let next =
                |attempt, limits| Hops::default().after_reply(&reply, Some(3), false, &attempt, &limits);
            let at_last_moment = next(after(999), LIMITS);
            assert_eq!(at_last_moment == NextHop::GiveUp, reply == Redirect::CrossSlot, "{reply:?}");
            assert_eq!(next(after(1_000), LIMITS), NextHop::GiveUp, "{reply:?}");
            assert_eq!(next(after(0), HopLimits { redirects: 0, ..LIMITS }), NextHop::GiveUp, "{reply:?}");
        }
        let far = HopLimits { redirects: 1, timeout_ns: Nanos::MAX };
        assert_eq!(
            Hops::default().after_reply(&Redirect::Loading, None, false, &after(0), &far),
            wait_until(10)
        );
    }

    #[test]
    fn a_read_is_repeated_after_a_loss_and_a_write_is_not() {
        let mut hops = Hops::default();
        assert_eq!(hops.after_loss(false, &after(0), &LIMITS), NextHop::GiveUp);
        assert_eq!(hops, Hops::default());
        let limits = HopLimits { redirects: 2, ..LIMITS };
        assert_eq!(hops.after_loss(true, &after(0), &limits), wait_until(10));
        assert_eq!(hops.after_loss(true, &after(10), &limits), wait_until(30));
        assert_eq!(hops, Hops { hops: 2, waits: 2 });
        assert_eq!(hops.after_loss(true, &after(30), &limits), NextHop::GiveUp);
        assert_eq!(Hops::default().after_loss(true, &after(1_000), &LIMITS), NextHop::GiveUp);
        let none = HopLimits { redirects: 0, ..LIMITS };
        assert_eq!(Hops::default().after_loss(true, &after(0), &none), NextHop::GiveUp);
    }
}
