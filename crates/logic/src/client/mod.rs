//! One virtual user: when its requests are due, what they ask, and what its answers make it ask next.
//!
//! A client never acts by itself: the worker polls it, and the client returns what it wants. A client has neither socket nor
//! clock: the worker passes it the times and whether its lanes are open.

mod action;
mod answers;
mod cache_answers;
mod churning;
mod cluster;
mod draws;
mod follow_ups;
mod lane_set;
mod lanes;
mod next;
mod pending_requests;
mod requests;
mod retries;
pub mod route;
mod rows;
mod sequence_rest;
mod sequences;
mod slots;
mod source;
mod split;
mod stage_state;
mod staged;
mod under_way;
mod window_lanes;
mod window_state;
mod windowed;

use std::sync::Arc;

pub use self::action::{Action, PhaseAssignment};
pub use self::cluster::Exchange;
use self::lane_set::{LaneSet, LaneState, Passage, Readiness};
use self::next::{FollowUp, Next, NextRequest, Upcoming};
use self::source::Source;
pub use self::split::WholeAnswer;
use self::under_way::UnderWay;
use crate::arrival::{Passed, RateCurve, Schedule};
pub use crate::client::route::Lane;
use crate::connection::inflight::{Origin, Ticket};
use crate::plan::Late;
use crate::protocol::Op;
use crate::time::{NEVER, Nanos};
use crate::unsent::{self, Unsent};
use crate::workload::events::EventRequest;
use crate::workload::request::RequestMaker;
use crate::workload::rows::NextRow;
use crate::workload::verify::stale::Writer;

/// The two kinds of phases for which the poll of a client is compiled: its requests are drawn, or are rows of a trace.
const DRAWN: bool = false;
const ROWS: bool = true;

/// The lanes over which a client asks what is due without further questions: it has no window and no policy, is not stopped, and has no
/// request that is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainLanes {
    /// There are further questions.
    None,
    /// The only lane.
    Single,
    /// One of several lanes.
    Several,
}

/// One virtual user.
#[derive(Debug)]
pub struct Client {
    source: Source,
    under_way: UnderWay,
    lanes: LaneSet,
    /// Stores of this phase that were asked again. Each took a timeout, so that 32 bits are enough.
    repeated: u32,
    /// The client is interrupted, or its phase is over and ends on time: it sends nothing and opens no lane any more.
    stopped: bool,
    /// The client has said that it has nothing more to do in this phase.
    retired: bool,
    /// The lanes over which the client asks what is due without further questions.
    plain_lanes: PlainLanes,
}

impl Client {
    /// Client `number` of group `group`, which talks to server `server` of the Plan, without an open lane and without
    /// anything to do. Where values are checked, its `writer` gives its writes their versions; without one, it writes
    /// what loading writes.
    pub fn new(group: usize, number: u64, server: u32, writer: Option<Writer>) -> Client {
        Client {
            source: Source::new(group, number, writer),
            under_way: UnderWay::new(),
            lanes: LaneSet::new(server),
            repeated: 0,
            stopped: false,
            retired: false,
            plain_lanes: PlainLanes::Single,
        }
    }

    /// Notes whether the client asks what is due without further questions, after a change of what decides that.
    fn note_plain(&mut self) {
        let is_plain = self.source.window.is_none()
            && self.source.policy.is_none()
            && !self.stopped
            && self.plays()
            && !self.under_way.has_pending();
        self.plain_lanes = match self.lanes.is_single() {
            _ if !is_plain => PlainLanes::None,
            true => PlainLanes::Single,
            false => PlainLanes::Several,
        };
    }

    /// Begins a phase. In closed loop there is no schedule.
    ///
    /// # Panics
    /// Panics when requests of the phase before are outstanding.
    pub fn begin(&mut self, assignment: PhaseAssignment, schedule: Option<Schedule>) {
        self.under_way.begin(assignment.depth, assignment.batched, assignment.begin);
        self.source.begin(assignment, schedule);
        (self.repeated, self.retired, self.stopped) = (0, false, false);
        self.forget_turns();
        self.note_plain();
    }

    /// Adds the client's share of the events of the phase that has begun.
    pub fn add_events(&mut self, maker: &mut RequestMaker) {
        for EventRequest { at_ns, verb, key, lane } in maker.event_requests(self.source.number()) {
            let due = self.source.due(Some(at_ns), NEVER);
            let request = NextRequest { lane, origin: Origin::Event, ..NextRequest::new(verb, 0, key) };
            self.under_way.waiting.add(FollowUp { due, request }, self.source.assignment.end);
        }
    }

    /// Returns the next request if it is a read of one key that is due now and nothing else is to be done first. In all
    /// other cases it returns `None`, and [`Client::poll`] says what the client wants. Most requests are such reads, and this
    /// way to them is shorter.
    #[inline(always)]
    pub fn poll_read<'a>(&mut self, now: Nanos, maker: &'a mut RequestMaker) -> Option<(Op<'a>, Ticket)> {
        let (due, ready) = self.plain_arrival(now)?;
        let index = self.source.issued;
        let verb = maker.task.verb_of_one(self.source.draws.op.draw(index))?;
        let key = self.source.read_key(index, 0, maker);
        self.source.step();
        self.under_way.slots.take();
        let mut ticket = Ticket { due, ready, index, key, ..Ticket::of(verb) };
        self.source.draws.set_check_state(&mut ticket, maker);
        let expiry_bits = self.source.expiry_bits(verb, index, maker);
        Some((maker.read_made(verb, key, expiry_bits), ticket))
    }

    /// Returns the next request and its lane, as [`Client::poll_read`] does for a client with one lane, if the lane is one of several
    /// that is open, and no lane is to be opened first.
    #[inline(never)]
    pub fn poll_read_over_lanes<'a>(
        &mut self,
        now: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Option<(Lane, Op<'a>, Ticket)> {
        if self.plain_lanes != PlainLanes::Several || self.lanes.has_closed() || self.under_way.has_parted() {
            return None;
        }
        let (due, ready) = self.next_arrival(now, 0)?;
        let index = self.source.issued;
        let verb = maker.task.verb_of_one(self.source.draws.op.draw(index))?;
        let key = self.source.read_key(index, 0, maker);
        let mut ticket = Ticket { due, ready, index, key, ..Ticket::of(verb) };
        self.source.draws.set_check_state(&mut ticket, maker);
        let expiry_bits = self.source.expiry_bits(verb, index, maker);
        let turn = self.source.number() + index;
        let (lane, slot, op) = maker.read_placed(verb, key, expiry_bits, turn)?;
        let LaneState::Open(opened) = self.lanes.get(lane).state else { return None };
        (ticket.place, ticket.ready) = (slot, ready.max(opened));
        self.source.step();
        self.under_way.slots.take();
        Some((lane, op, ticket))
    }

    /// Returns what the client wants now. The worker calls it again until the client wants to wait or is done.
    pub fn poll<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if maker.task.is_chosen() {
            if maker.task.is_rows() {
                return match self.under_way.cluster().is_some() || self.under_way.has_pending() {
                    true => self.poll_pending(now, maker),
                    false => self.poll_next::<ROWS>(now, maker),
                };
            }
            self.source.pass_unwritten(maker);
            if maker.task.is_exhausted() {
                self.source.assignment.requests = self.source.assignment.requests.min(self.source.issued);
            }
        }
        if let Some((due, ready)) = self.plain_arrival(now) {
            return self.arrive(due, ready, maker);
        }
        if self.under_way.has_stage() {
            return self.poll_staged(now, maker);
        }
        self.poll_playing(now, maker)
    }

    /// Returns what a client wants that has nothing to do with a stage, or is on it, and whose next request does not come by itself.
    #[inline(always)]
    fn poll_playing<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if self.source.window.is_some() {
            return self.poll_window(now, maker);
        }
        if self.under_way.cluster().is_some() || self.under_way.has_pending() {
            return self.poll_pending(now, maker);
        }
        self.poll_next::<DRAWN>(now, maker)
    }

    /// Returns what a client wants whose next request is not due, or does not come by itself over its only lane.
    #[inline(never)]
    fn poll_next<'a, const KIND: bool>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if self.under_way.is_splitting() {
            return self.ask_part(maker);
        }
        match self.next::<KIND>(now, maker) {
            Next::Open(lane) => self.open(lane),
            Next::Wait(until) => {
                self.under_way.slots.close_batch();
                Action::Wait(until)
            }
            Next::Done if self.lanes.is_opening() && now < self.source.assignment.end => {
                Action::Wait(self.source.assignment.end)
            }
            Next::Done if KIND == ROWS && self.lanes.lost() > 0 => self.give_up_row(now, maker),
            Next::Done => Action::Done,
            Next::FollowUp { follow, ready } => match self.passage(follow.request.lane, now) {
                Passage::Later => Action::Wait(self.source.assignment.end),
                Passage::Never => {
                    self.under_way.waiting.pop_front();
                    if KIND == ROWS {
                        maker.task.rows_mut().release(follow.request.key);
                    }
                    Action::Unsent { verb: follow.request.verb, due: follow.due, place: 0 }
                }
                Passage::Open(opened) => {
                    self.under_way.waiting.pop_front();
                    let (request, ready) = (follow.request, ready.max(opened));
                    match KIND {
                        ROWS => {
                            self.under_way.slots.take();
                            self.ask_row(request, follow.due, ready, maker)
                        }
                        DRAWN => self.ask(request, follow.due, ready, maker).over(follow.request.lane),
                    }
                }
            },
            Next::Arrival { due, ready } if KIND == ROWS => self.ask_next_row(now, due, ready, maker),
            Next::Arrival { due, ready } if !self.lanes.is_single() => {
                self.poll_arrival(due, ready, now, maker)
            }
            Next::Arrival { due, ready } if self.source.policy.is_some() => {
                self.arrive_by_policy(now, due, ready, maker)
            }
            Next::Arrival { due, ready } => self.arrive(due, ready, maker),
        }
    }

    /// Asks the worker to open a lane.
    fn open(&mut self, lane: Lane) -> Action<'static> {
        self.lanes.set(lane, LaneState::Opening);
        Action::Open(lane)
    }

    /// Asks the next request of the schedule.
    #[inline(always)]
    fn arrive<'a>(&'a mut self, due: Nanos, ready: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        let index = self.source.issued;
        self.source.step();
        if maker.task.is_sequence() {
            return self.ask_step(index, due, ready, maker);
        }
        let request = self.source.draw(index, due, maker);
        self.ask(request, due, ready, maker)
    }

    /// Takes in that the lane is open since `at`.
    pub fn handle_opened(&mut self, lane: Lane, at: Nanos) {
        self.lanes.set(lane, LaneState::Open(at));
        self.lanes.get_mut(lane).down = false;
        if let Some(pending) = self.under_way.pending_mut() {
            pending.look_again();
        }
        if let Some(tasks) = &mut self.source.window {
            tasks.began |= self.lanes.open() == self.lanes.len();
        }
    }

    /// Takes in that a full socket of one of the lanes takes bytes again since `at`. Requests that were due meanwhile were not
    /// ready before that time.
    pub fn handle_writable(&mut self, at: Nanos) {
        for lane in 0..self.lanes.len() as Lane {
            if let LaneState::Open(since) = &mut self.lanes.get_mut(lane).state {
                *since = at.max(*since);
            }
        }
    }

    /// Takes in that the lane is closed; with `again`, the client may open it again.
    pub fn handle_closed(&mut self, lane: Lane, again: bool, maker: &mut RequestMaker) {
        maker.checks.witness.clear();
        self.cut_off_sequences(lane);
        let socket = self.lanes.get_mut(lane);
        socket.down = socket.state == LaneState::Opening;
        self.note_unopened();
        let mut next = if again { LaneState::Closed } else { LaneState::Lost };
        if let Some(cluster) = self.under_way.cluster_mut().filter(|cluster| cluster.on_demand) {
            // The requests that still need the lane ask for it again.
            cluster.look_again();
            next = LaneState::Absent;
        }
        self.lanes.set(lane, next);
    }

    /// Interrupts the client: it asks nothing any more, and its phase ends at `now`. The worker has to poll the client
    /// afterwards.
    pub fn stop(&mut self, now: Nanos) {
        self.source.assignment.end = self.source.assignment.end.min(now);
        self.end_turns_at(now);
        self.stopped = true;
        self.plain_lanes = PlainLanes::None;
    }

    /// Lets the phase of the client end at `end`, unless it ends before that. The worker has to poll the client afterwards.
    pub fn end_at(&mut self, end: Nanos) {
        self.source.assignment.end = self.source.assignment.end.min(end);
        self.end_turns_at(end);
    }

    /// Changes the rate of the client's schedule to `curve`, which equals the old one up to a future moment.
    pub fn follow_rate(&mut self, curve: &Arc<RateCurve>) {
        if let Some(schedule) = &mut self.source.schedule {
            schedule.follow(curve);
        }
    }

    /// Whether the client sends nothing in the drain. The worker stops it when its phase is over.
    pub fn ends_on_time(&self) -> bool {
        self.source.assignment.ends_on_time
    }

    /// Number of requests of the schedule in this phase and in the phases before it, from the first in which keys change.
    pub fn asked(&self) -> u64 {
        self.source.assignment.asked_before.saturating_add(self.source.issued)
    }

    /// Requests of this phase that were left out because they would have been late; the number of some of them may be
    /// estimated from the mean gap.
    pub fn skipped(&self) -> Passed {
        self.source.policy.as_ref().map_or(Passed::default(), |policy| policy.skipped)
    }

    /// Requests that are outstanding.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.under_way.slots.outstanding
    }

    /// Asks the next request of the schedule, with regard to what is late and to the time between requests.
    fn arrive_by_policy<'a>(
        &'a mut self,
        now: Nanos,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let index = self.source.issued;
        self.source.step();
        self.source.space(ready, now);
        let is_last_slot = self.under_way.slots.outstanding + 1 >= self.under_way.slots.depth;
        if self.source.assignment.late == Late::Skipped && is_last_slot {
            self.source.skip(now);
        }
        let request = self.source.draw(index, due, maker);
        self.ask(request, due, ready, maker)
    }

    /// Marks the client as done with this phase. Returns whether this is the first call since the phase began or the client
    /// was called back.
    pub fn retire(&mut self) -> bool {
        !std::mem::replace(&mut self.retired, true)
    }

    /// Marks the client as not done with this phase, since the worker polls it again to learn whether anything is left to do.
    pub fn call_back(&mut self) {
        self.retired = false;
    }

    /// Whether as many requests are outstanding as the depth allows, so that the client asks nothing before one of them ends.
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.under_way.slots.is_free() && !self.under_way.is_splitting()
    }

    /// Number of the client in its group, over all threads and agents.
    #[inline]
    pub fn number(&self) -> u64 {
        self.source.number()
    }

    /// Index of the client's group in the Plan.
    #[inline]
    pub fn group(&self) -> usize {
        self.source.assignment.place.group as usize
    }

    /// Number of the client's lanes that were lost and are not opened again.
    pub fn lost_lanes(&self) -> u64 {
        let lost = if self.is_cut_off() { self.lanes.len() } else { self.lanes.lost() };
        lost as u64
    }

    /// Stores of this phase that were asked again.
    pub fn repeated(&self) -> u64 {
        self.repeated.into()
    }

    /// Number of the client's lanes that are open.
    pub fn open_lanes(&self) -> u64 {
        self.lanes.open() as u64
    }

    /// Number of requests of this phase that were never due, although the phase goes on until they are made; 0 in a phase
    /// with an end in time.
    pub fn missing(&self) -> u64 {
        match (self.source.assignment.requests, self.source.assignment.end) {
            (requests, NEVER) if requests != u64::MAX => requests - self.source.issued,
            _ => 0,
        }
    }

    /// Hands over the requests of this phase that were due before `now` and were never sent, by verb. Numbers are exact, but
    /// for those that need more than `draws_max` draws. The worker calls it when the phase is over and nothing is outstanding.
    pub fn count_unsent(
        &mut self,
        now: Nanos,
        maker: &mut RequestMaker,
        draws_max: u64,
        mut unsent: impl FnMut(Unsent),
    ) {
        if self.source.window.is_some() {
            return;
        }
        let until = self.unsent_until().min(now);
        match maker.task.is_rows() {
            true => self.count_unsent_rows(until, maker, &mut unsent),
            false => self.count_unsent_drawn(until, maker, draws_max, &mut unsent),
        }
        self.under_way
            .waiting
            .take_unsent(until, |verb, requests| unsent(Unsent { verb, requests, estimated: 0 }));
        self.under_way.slots.outstanding = 0;
    }

    /// Hands over the requests of the schedule that were due before `until` and were never sent, by verb.
    fn count_unsent_drawn(
        &mut self,
        until: Nanos,
        maker: &mut RequestMaker,
        draws_max: u64,
        unsent: &mut dyn FnMut(Unsent),
    ) {
        let left = self.source.assignment.requests.saturating_sub(self.source.issued);
        // Requests of a schedule beyond the last row of a trace are none.
        let left = maker.task.rows_left().map_or(left, |rows| left.min(rows));
        let passed = match &mut self.source.schedule {
            Some(schedule) => {
                schedule.pass(until.saturating_sub(self.source.assignment.begin), left, draws_max)
            }
            // In closed loop a request is due when its slot is freed; it is not sent when the lane is lost.
            None => Passed::exactly(self.under_way.slots.count_free_since_before(until).min(left)),
        };
        let last_due = until.saturating_sub(1).max(self.source.assignment.begin);
        maker.turn_to(self.source.number(), self.source.moment(self.source.issued, last_due));
        let (op, first) = (&self.source.draws.op, self.source.issued);
        unsent::report(passed, draws_max, maker, |place| op.draw(first + place), unsent);
        maker.task.pass_rows(passed.requests);
        self.source.issued += passed.requests;
    }

    /// When the next request of the schedule is due and ready, if it is to be asked now and nothing else is to be done first.
    /// This is the most frequent answer of [`Client::next`], on a shorter way.
    #[inline(always)]
    fn plain_arrival(&self, now: Nanos) -> Option<(Nanos, Nanos)> {
        if self.plain_lanes != PlainLanes::Single {
            return None;
        }
        let LaneState::Open(opened) = self.lanes.first_state() else { return None };
        self.next_arrival(now, opened)
    }

    /// When the next request of the schedule is due and ready, over a lane that was `opened` then, if it is to be asked now and no other
    /// request is to be asked first.
    #[inline(always)]
    fn next_arrival(&self, now: Nanos, opened: Nanos) -> Option<(Nanos, Nanos)> {
        if !self.under_way.waiting.is_empty() || !self.under_way.slots.is_free() {
            return None;
        }
        let since = self.under_way.slots.since();
        let due = self.source.next_due(since);
        let is_due = due <= now
            && due < self.source.assignment.end
            && self.source.issued < self.source.assignment.requests;
        is_due.then(|| (due, due.max(since).max(opened)))
    }

    /// The next request that is due by itself. The arrival of a row that is not known yet wakes its client.
    #[inline(always)]
    fn upcoming<const KIND: bool>(&self, maker: &RequestMaker) -> Upcoming {
        let since = self.under_way.slots.since();
        let due = match KIND {
            ROWS => match maker.task.rows().next(self.source.number()) {
                NextRow::Due(offset) => self.source.due(offset, since),
                NextRow::Later if !self.stopped => return Upcoming::Later,
                NextRow::Later | NextRow::None => return Upcoming::None,
            },
            DRAWN if self.source.issued >= self.source.assignment.requests => return Upcoming::None,
            DRAWN => self.source.next_due(since),
        };
        match due < self.source.assignment.end && !self.stopped {
            true => Upcoming::Due(due),
            // A phase lasts as long as it was asked to, also when nothing more is due in it.
            false if KIND == DRAWN && self.source.assignment.end != NEVER => Upcoming::Later,
            false => Upcoming::None,
        }
    }

    /// The request that an answer asked for and that is asked next, if there is one. A client that was stopped asks none.
    #[inline]
    fn next_follow_up(&self) -> Option<&FollowUp> {
        self.under_way
            .waiting
            .front()
            .filter(|follow| !self.stopped && follow.due < self.source.assignment.end)
    }

    /// Next thing to do, and when.
    #[inline(always)]
    fn next<const KIND: bool>(&self, now: Nanos, maker: &RequestMaker) -> Next {
        let opened = match self.lanes.readiness(now >= self.source.assignment.end, !self.stopped) {
            Readiness::Open(lane) => return Next::Open(lane),
            Readiness::Later => return Next::Wait(self.source.assignment.end),
            Readiness::Never => return Next::Done,
            Readiness::Since(opened) => opened,
        };
        let is_free = self.under_way.slots.is_free();
        let mut wake = NEVER;
        if let Some(follow) = self.next_follow_up() {
            // What an answer asked for at once is due, although the answer was read after this turn's time.
            if follow.due <= now.max(self.under_way.waiting.seen) && is_free {
                let ready = follow.due.max(self.under_way.slots.since()).max(opened);
                return Next::FollowUp { follow: *follow, ready };
            }
            // The answer that frees a slot wakes it.
            wake = if is_free { follow.due } else { NEVER };
        }
        match self.upcoming::<KIND>(maker) {
            Upcoming::Due(due) => {
                let asked = due.max(self.source.policy.as_ref().map_or(0, |policy| policy.spaced_until));
                match (is_free, asked <= now) {
                    (true, true) => {
                        Next::Arrival { due, ready: asked.max(self.under_way.slots.since()).max(opened) }
                    }
                    (_, false) => Next::Wait(asked.min(wake)),
                    (false, true) => Next::Wait(NEVER),
                }
            }
            Upcoming::Later if now < self.source.assignment.end => {
                Next::Wait(wake.min(self.source.assignment.end))
            }
            Upcoming::Later | Upcoming::None => match (wake, self.under_way.slots.outstanding) {
                (NEVER, 0) => Next::Done,
                _ => Next::Wait(wake),
            },
        }
    }
}
