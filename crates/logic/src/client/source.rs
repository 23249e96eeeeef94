//! The source of one client's requests: its part of the phase, its schedule, its draws, and what it knows of keys of its own.

use super::PhaseAssignment;
use super::draws::DrawStreams;
use super::window_state::WindowState;
use crate::arrival::{Passed, Schedule};
use crate::plan::Late;
use crate::rng::StreamOwner;
use crate::time::{MILLISECOND, Nanos};
use crate::workload::request::RequestMaker;
use crate::workload::verify::stale::Writer;

/// A client that leaves out late requests does so when its next request is later than the first time, in nanoseconds. It
/// leaves out what was due longer ago than the second time.
const SKIP_NS: (Nanos, Nanos) = (5 * MILLISECOND, 4 * MILLISECOND);

/// Gaps that a client draws at one time to leave out late requests. The number of requests beyond them follows from the mean
/// gap: to draw every gap of a schedule that is far out of reach would hold up the worker and make the client later still.
const SKIP_DRAWS_MAX: u64 = 1_024;

/// The source of one client's requests, as far as it is the client's own. Rows, sequences and recordings belong to the worker,
/// whose clients share them in the order of asking.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) assignment: PhaseAssignment,
    pub(super) draws: DrawStreams,
    /// When the requests are due; `None` in closed loop.
    pub(super) schedule: Option<Schedule>,
    /// Requests of the schedule that were asked, or left out.
    pub(super) issued: u64,
    /// State of the policy by which late requests are left out, or a least time between requests; `None` without one.
    pub(super) policy: Option<Box<Policy>>,
    /// Gives the client's writes their versions, where values are checked.
    pub(super) writer: Option<Box<Writer>>,
    /// The client's own stores, as far as they decide its next keys.
    pub(super) own: OwnKeys,
    /// The window of objects that the client works on; `None` without one.
    pub(super) window: Option<Box<WindowState>>,
}

/// State of a client's policy in this phase.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Requests of the schedule that were left out because they were late; others are made in their place.
    pub(super) skipped: Passed,
    /// The time before which the next request of the schedule is not asked.
    pub(super) spaced_until: Nanos,
}

/// The keys that only one client writes, and the rows of the dataset that it took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnKeys {
    /// Number of keys that were filled with pieces before, which begins again behind the greatest.
    pub(super) turn: u32,
    /// Bytes of the pieces under the current key; 0 while it is not stored.
    pub(super) bytes: u64,
    /// Number of stored records that no other request stores.
    pub(super) inserted: u64,
    /// Number of rows of the dataset that requests of this phase took, which begins again behind the greatest.
    pub(super) rows_taken: u32,
}

impl Source {
    /// The source of client `number` of group `group`, without a phase.
    pub(super) fn new(group: usize, number: u64, writer: Option<Writer>) -> Source {
        let place = StreamOwner { seed: 0, group: group as u64, phase: 0, client: number };
        Source {
            assignment: PhaseAssignment::nothing(place),
            draws: DrawStreams::new(place),
            schedule: None,
            issued: 0,
            policy: None,
            writer: writer.map(Box::new),
            own: OwnKeys::default(),
            window: None,
        }
    }

    /// Number of the client in its group, over all threads and agents.
    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.assignment.place.client
    }

    /// Begins a phase. In closed loop there is no schedule.
    pub(super) fn begin(&mut self, assignment: PhaseAssignment, schedule: Option<Schedule>) {
        self.schedule = schedule;
        self.draws = DrawStreams::new(assignment.place.of_requests(assignment.same_draws));
        self.issued = 0;
        self.own.rows_taken = 0;
        let has_policy = assignment.late != Late::Kept || assignment.spacing_ns > 0;
        self.policy = has_policy.then(Box::default);
        self.assignment = assignment;
        if let Some(window) = &mut self.window {
            window.begin();
        }
    }

    /// Due time of a request: `offset` from the beginning of the phase, or `since`, when its slot was freed, where only that makes
    /// it due.
    #[inline(always)]
    pub(super) fn due(&self, offset: Option<Nanos>, since: Nanos) -> Nanos {
        match offset {
            Some(offset) => self.assignment.begin.saturating_add(offset),
            None => since,
        }
    }

    /// Due time of the next request of the schedule, which takes a slot that is free since `since`.
    #[inline(always)]
    pub(super) fn next_due(&self, since: Nanos) -> Nanos {
        self.due(self.schedule.as_ref().map(Schedule::peek), since)
    }

    /// Goes on to the next request of the schedule.
    #[inline(always)]
    pub(super) fn step(&mut self) {
        self.issued += 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.next();
        }
    }

    /// Passes over records that were never written, in a phase that reads records back.
    pub(super) fn pass_unwritten(&mut self, maker: &RequestMaker) {
        if maker.audited().is_none() {
            return;
        }
        while self.issued < self.assignment.requests && !maker.is_written(self.issued, self.number()) {
            self.issued += 1;
        }
    }

    /// Keeps the least time between requests behind one that was free at `ready` and is asked at `now`. The worker is a little late
    /// each time, and what that adds to every distance would be missing from the rate: only more than a tenth of the distance does.
    pub(super) fn space(&mut self, ready: Nanos, now: Nanos) {
        let spacing_ns = self.assignment.spacing_ns;
        if let Some(policy) = self.policy.as_mut().filter(|_| spacing_ns > 0) {
            policy.spaced_until =
                ready.saturating_add(spacing_ns).max(now.saturating_add(spacing_ns - spacing_ns / 10));
        }
    }

    /// Leaves out the requests of this phase that are late, by mutilate's rule.
    pub(super) fn skip(&mut self, now: Nanos) {
        let due = self.next_due(now);
        let (Some(schedule), Some(policy)) = (&mut self.schedule, &mut self.policy) else { return };
        if due.saturating_add(SKIP_NS.0) >= now {
            return;
        }
        let PhaseAssignment { begin, end, .. } = self.assignment;
        let until = end.min(now - SKIP_NS.1);
        let passed = schedule.pass(until.saturating_sub(begin), u64::MAX - self.issued, SKIP_DRAWS_MAX);
        self.issued += passed.requests;
        policy.skipped.requests += passed.requests;
        policy.skipped.estimated += passed.estimated;
        self.assignment.requests = self.assignment.requests.saturating_add(passed.requests);
    }
}
