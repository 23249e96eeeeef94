//! Requests that do not end with their first reply: a node of a cluster sends them on or makes them wait, the plan has them sent again
//! after an error, or they are sequences of commands that go on. With them, the requests that wait for a node, or for one of these.
//!
//! A slot with a redirected request takes no other request of the same client until that one has ended: under the new map a later
//! request would overtake it. Requests of other slots pass. Outside of clusters the same holds for records, where one of two
//! requests writes.

use super::lane_set::{LaneState, Passage};
use super::next::{Next, NextRequest};
use super::pending_requests::{HELD_MAX, Held, PendingRequests, Redirected, Touched};
use super::sequence_rest::{SequenceRest, SequenceStep};
use super::sequences::first_ticket;
use super::source::Source;
use super::split::WholeAnswer;
use super::{Action, Client, DRAWN, Lane, ROWS};
use crate::client::route::Place;
use crate::cluster::hops::{Attempt, HopLimits, Hops, NextHop};
use crate::cluster::nodes::NodeNumber;
use crate::cluster::reads::Reach;
use crate::cluster::redirect::{Redirect, read_redirect};
use crate::cluster::view::ClusterView;
use crate::connection::answer::{Answer, Stamp};
use crate::connection::inflight::{Origin, Ticket};
use crate::plan::RetryKind;
use crate::protocol::{Fault, Op, Outcome, Verb};
use crate::time::{NEVER, Nanos};
use crate::workload::cache_counts::CacheCounts;
use crate::workload::key::Space;
use crate::workload::request::{CheckState, RequestMaker};
use crate::workload::value::Version;

/// Most bytes that are kept of a node's words until the request that they are about has ended.
const WORDS_MAX_BYTES: usize = 256;

/// Next step of a client whose requests have not found their nodes.
enum Step {
    /// The redirected request at this place is sent over this lane.
    Again(usize, Lane),
    /// The redirected request at this place is given up.
    Failed(usize),
    /// The held request at this place may be sent.
    Release(usize),
    /// The held request at this place is never sent.
    Late(usize),
}

/// The meaning of the end of an exchange for the request that it belongs to.
#[derive(Clone, Debug)]
pub enum Exchange {
    /// The request ends with this answer.
    Whole,
    /// The request goes on: it is sent again, or waits.
    GoesOn,
    /// The request, which took several exchanges, ends with this answer.
    Ends {
        /// The ticket of the first exchange.
        ticket: Ticket,
        /// The time of the first sending.
        sent: Nanos,
        /// The outcome, with the server's words, where an earlier exchange decided it.
        earlier: Option<Box<(Outcome, Vec<u8>)>>,
    },
}

impl Client {
    /// Makes the client one of a cluster: it has a lane for each node that the cluster may have, and opens the lanes of those
    /// that own slots. All nodes together are one store.
    #[must_use]
    pub fn of_cluster(mut self) -> Client {
        for lane in 0..self.lanes.len() as Lane {
            self.lanes.set(lane, LaneState::Absent);
            self.lanes.get_mut(lane).server = 0;
        }
        self.splits_mut().pending = Some(PendingRequests { is_cluster: true, ..PendingRequests::default() });
        self
    }

    /// Lets requests of the client be sent again after errors that the plan names.
    #[must_use]
    pub fn with_retries(mut self) -> Client {
        self.under_way.splits.get_or_insert_default().pending.get_or_insert_default();
        self
    }

    /// Takes in, from a new map, that the node of this lane owns slots or does not. Returns whether the lane has a connection that is
    /// not wanted any more; [`Client::leave`] follows when the connection is closed.
    pub fn note_member(&mut self, lane: Lane, is_member: bool) -> bool {
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.end_waits();
        }
        let opens_all =
            self.under_way.cluster().is_some_and(|cluster| !cluster.on_demand) && !self.is_off_stage();
        match (self.lanes.get(lane).state, is_member) {
            (LaneState::Absent, true) if opens_all => self.lanes.set(lane, LaneState::Closed),
            (LaneState::Closed | LaneState::Lost, false) => self.lanes.set(lane, LaneState::Absent),
            (LaneState::Open(_) | LaneState::Opening, false) => return true,
            _ => {}
        }
        false
    }

    /// Takes in that the connection of a lane whose node left is closed.
    pub fn leave(&mut self, lane: Lane) {
        self.lanes.set(lane, LaneState::Absent);
    }

    /// Whether this lane is to have no connection: its node owns no slot, or no request needs it.
    pub fn is_absent(&self, lane: Lane) -> bool {
        self.lanes.get(lane).state == LaneState::Absent
    }

    /// Lets no request be sent again, since the phase is over. What waits is taken by [`Client::take_waiting`].
    pub fn end_redirects(&mut self) {
        if let Some(pending) = self.under_way.pending_mut() {
            pending.is_over = true;
        }
    }

    /// Takes the end of a request, given up at `now`, that was sent and waits to be sent again or to go on, with the lane over which it
    /// was sent last; `None` when there is none left.
    pub fn take_waiting(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<(Lane, WholeAnswer)> {
        let pending = self.under_way.pending()?;
        let at = pending.redirected.iter().position(|redirected| redirected.under_way.is_none())?;
        Some(self.fail(at, now, maker))
    }

    /// Takes a request that was due in the phase, before `now`, and was never sent, since it waits: its verb, its due time and its slot;
    /// `None` when there is none left.
    pub fn take_held_back(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<(Verb, Nanos, Place)> {
        let until = self.source.assignment.end.min(now);
        let held = &self.under_way.pending()?.held;
        let at = held.iter().position(|held| held.due < until)?;
        let Held { request, due, .. } = self.take_held(at)?;
        Some((request.verb, due, self.unsent_place(&request, due, maker)))
    }

    /// Takes in the end of an exchange over this lane, and decides what becomes of its request. Only clients of a cluster, those whose
    /// requests are sent again after errors, and sequences of commands that wait for replies have requests that go on.
    pub fn end_exchange(
        &mut self,
        lane: Lane,
        answer: &Answer<'_>,
        words: &[u8],
        maker: &mut RequestMaker,
    ) -> Exchange {
        let ticket = answer.ticket;
        if ticket.origin == Origin::Aside {
            return Exchange::GoesOn;
        }
        if self.under_way.pending().is_none() && ticket.origin != Origin::Sequence {
            return Exchange::Whole;
        }
        let found = match ticket.origin {
            Origin::Resent | Origin::ResentPart | Origin::Sequence => self
                .under_way
                .redirected()
                .iter()
                .position(|known| known.under_way == Some(lane) && known.is(ticket)),
            _ => None,
        };
        let Some(sequence) = maker.sequence(ticket.verb) else {
            return self.follow_exchange(found, None, (lane, answer, words), maker);
        };
        let before = found.and_then(|at| self.under_way.redirected()[at].rest);
        let mut rest = before.unwrap_or_else(|| SequenceRest::new(sequence));
        match rest.take_in(sequence, answer.outcome, answer.hits) {
            SequenceStep::GoesOn => {
                self.go_on(found, rest, (lane, answer, words), maker);
                Exchange::GoesOn
            }
            SequenceStep::Ends(outcome) => {
                let is_earlier = before.is_some_and(|before| before.has_failed());
                let known =
                    found.filter(|_| is_earlier).map(|at| self.under_way.redirected()[at].words.clone());
                let words = known.as_deref().unwrap_or(words);
                let whole = Answer { outcome, hits: 0, ..*answer };
                match self.follow_exchange(found, Some(rest), (lane, &whole, words), maker) {
                    Exchange::Ends { ticket, sent, .. } if is_earlier || outcome != answer.outcome => {
                        let earlier = Some(Box::new((outcome, words.to_vec())));
                        Exchange::Ends { ticket, sent, earlier }
                    }
                    other => other,
                }
            }
        }
    }

    /// Decides what follows the end of an exchange: its request ends, or is sent again. `rest` is that of a sequence of commands.
    fn follow_exchange(
        &mut self,
        found: Option<usize>,
        rest: Option<SequenceRest>,
        (lane, answer, words): (Lane, &Answer<'_>, &[u8]),
        maker: &mut RequestMaker,
    ) -> Exchange {
        let is_over = self.under_way.pending().is_none_or(|pending| pending.is_over);
        let (Outcome::Error(fault), false) = (answer.outcome, is_over) else {
            return self.end_redirected(found, answer, maker);
        };
        if rest.is_some_and(|rest| !rest.is_repeatable()) {
            return self.end_redirected(found, answer, maker);
        }
        let known = found.map(|at| &self.under_way.redirected()[at]);
        let mut ticket = known.map_or_else(|| first_ticket(answer.ticket), |known| known.ticket);
        let check_state = known.map_or(ticket.check_state, |known| known.check_state);
        let first_sent = known.map_or(NEVER, |known| known.first_sent).min(answer.sent);
        let mut hops = known.map_or_else(Hops::default, |known| known.hops);
        let (mut tries, mut last_kind) = known.map_or((0, None), |known| (known.tries, known.kind));
        let name = maker.cluster().and_then(|view| view.name(lane)).filter(|_| !words.is_empty());
        let reply = match fault {
            // A part of the keys of a transaction are here.
            Fault::Again => name.map(|_| Redirect::TryAgain),
            _ => name.and_then(|asked| read_redirect(words, asked)),
        };
        let node = reply.as_ref().and_then(|reply| maker.cluster_mut()?.take_in(reply, lane, ticket.place));
        let next = match self.retry_kind(&ticket, fault, words, maker) {
            Some(kind) => {
                let may_repeat =
                    !kind.is_unanswered() || answer.sent == NEVER || maker.may_repeat(ticket.verb);
                let times = (ticket.due, answer.read);
                let again =
                    maker.retries_mut().and_then(|retries| retries.after(kind, (may_repeat, tries), times));
                (tries, last_kind) = (tries.saturating_add(1), Some(kind));
                again.map_or(NextHop::GiveUp, NextHop::WaitUntil)
            }
            None => {
                let redirect = reply.as_ref().map(|reply| (reply, node));
                next_hop(&mut hops, (&ticket, tries), answer, (fault, redirect), maker)
            }
        };
        let (named, asking, wake_at) = match next {
            NextHop::GiveUp => return self.end_redirected(found, answer, maker),
            NextHop::Resend { node, asking } => (Some(node), asking, answer.read),
            NextHop::WaitUntil(at) => (None, false, at),
        };
        let rest = rest.zip(maker.sequence(ticket.verb)).map(|(mut rest, sequence)| {
            rest.repeat(sequence, asking);
            rest
        });
        if let (CheckState::Write(version), true) =
            (ticket.check_state, fault.unanswered() && answer.sent != NEVER)
        {
            // The server may carry out what was lost after what is sent again: nothing is said about the version any more.
            self.end_write(lane, version, &Answer { ticket: &ticket, ..*answer }, maker);
            ticket.check_state = CheckState::Counted;
        }
        let redirected = Redirected {
            touched: self.touched_by(&ticket, maker),
            ticket,
            check_state,
            first_sent,
            // What MOVED says is in the map, which may be newer when the request is sent.
            lane: named.filter(|_| asking),
            by_owner: matches!(reply, Some(Redirect::Moved { .. })),
            asking,
            hops,
            tries,
            kind: last_kind,
            wake_at,
            until: ticket.due.saturating_add(maker.patience_ns(tries > 0)),
            under_way: None,
            last_lane: lane,
            fault,
            words: words[..words.len().min(WORDS_MAX_BYTES)].into(),
            rest,
            is_cut_off: false,
        };
        if let Some(pending) = self.under_way.pending_mut() {
            match found {
                Some(at) => pending.redirected[at] = redirected,
                None => pending.redirected.push(redirected),
            }
        }
        self.note_plain();
        // A part of the reply may have come.
        self.end_reply(lane);
        Exchange::GoesOn
    }

    /// The kind of an error, if this request is sent again after it. A cas has a CAS unique that may be old by then, so that neither it
    /// nor the read before it is. Of a sequence of commands a part may have been carried out, but not what called a script that was lost.
    fn retry_kind(
        &self,
        ticket: &Ticket,
        fault: Fault,
        words: &[u8],
        maker: &RequestMaker,
    ) -> Option<RetryKind> {
        let is_cas = ticket.verb == Verb::Cas || ticket.origin == Origin::BeforeCas;
        let kind = maker.retries().filter(|_| !is_cas)?.kind_of(fault, words)?;
        let is_sequence = maker.sequence(ticket.verb).is_some();
        (!is_sequence || kind == RetryKind::NoScript).then_some(kind)
    }

    /// Ends a request that may have taken exchanges before, at the place `found`.
    fn end_redirected(
        &mut self,
        found: Option<usize>,
        answer: &Answer<'_>,
        maker: &mut RequestMaker,
    ) -> Exchange {
        let Some((pending, at)) = self.under_way.pending_mut().zip(found) else {
            return match answer.ticket.origin {
                Origin::Sequence => {
                    Exchange::Ends { ticket: first_ticket(answer.ticket), sent: answer.sent, earlier: None }
                }
                _ => Exchange::Whole,
            };
        };
        let Redirected { ticket, first_sent, hops, tries, .. } = pending.redirected.remove(at);
        pending.freed_at = pending.freed_at.max(answer.read);
        pending.look_again();
        self.note_plain();
        let is_error = matches!(answer.outcome, Outcome::Error(_));
        if let Some(view) = maker.cluster_mut().filter(|_| hops.attempts() > 0) {
            view.counts.followed += u64::from(!is_error);
            view.counts.given_up += u64::from(is_error);
        }
        if let Some(retries) = maker.retries_mut().filter(|_| tries > 0 && !is_error) {
            retries.counts.recovered += 1;
        }
        // A command says with its reply how many keys it has.
        let ticket = Ticket { keys: answer.ticket.keys, ..ticket };
        Exchange::Ends { ticket, sent: first_sent.min(answer.sent), earlier: None }
    }

    /// Gives up the redirected request at this place, which is not under way. Returns the lane over which it was sent last, and its
    /// end.
    fn fail(&mut self, at: usize, now: Nanos, maker: &mut RequestMaker) -> (Lane, WholeAnswer) {
        let Some(pending) = self.under_way.pending_mut() else {
            unreachable!("the request is one that was to be sent again")
        };
        let Redirected { ticket, first_sent, last_lane, fault, words, hops, kind, .. } =
            pending.redirected.remove(at);
        pending.freed_at = pending.freed_at.max(now);
        pending.look_again();
        let is_over = pending.is_over;
        self.note_plain();
        if let Some(view) = maker.cluster_mut().filter(|_| hops.attempts() > 0) {
            view.counts.given_up += 1;
        }
        if let (Some(retries), Some(kind), false) = (maker.retries_mut(), kind, is_over) {
            retries.give_up(kind);
        }
        let whole = WholeAnswer {
            ticket,
            outcome: Outcome::Error(fault),
            sent: first_sent,
            arrived: now,
            read: now,
            hits: 0,
            stamp: Stamp::Nothing,
            message: words.into_vec(),
            cache: CacheCounts::default(),
        };
        (last_lane, whole)
    }

    /// Returns what a client wants that is one of a cluster, or has requests that are to be sent again.
    #[inline(never)]
    pub(super) fn poll_pending<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if self.under_way.is_splitting() {
            return self.ask_next_part(maker);
        }
        loop {
            match self.next_step(now, maker) {
                Some(Step::Again(at, lane)) => return self.ask_again(at, lane, maker),
                Some(Step::Failed(at)) => {
                    let (lane, whole) = self.fail(at, now, maker);
                    return Action::GivenUp(lane, Box::new(whole));
                }
                Some(Step::Late(at)) => {
                    if let Some(Held { request, due, .. }) = self.take_held(at) {
                        self.free_held_slot(now);
                        return self.unsent(&request, due, maker);
                    }
                }
                Some(Step::Release(at)) => {
                    if let Some(Held { request, due, ready }) = self.take_held(at) {
                        if self.holds_without_slots() {
                            self.under_way.slots.take();
                        }
                        return self.ask_held(request, due, ready, now, maker);
                    }
                }
                None => {
                    if let Some(lane) = self.needed_lane(now, maker) {
                        return self.open(lane);
                    }
                }
            }
            let is_rows = maker.task.is_rows();
            let next = if is_rows { self.next::<ROWS>(now, maker) } else { self.next::<DRAWN>(now, maker) };
            let (due, ready, request) = match next {
                Next::Open(lane) => return self.open(lane),
                Next::Wait(until) => return Action::Wait(until.min(self.next_parked_time(now, maker))),
                Next::Done => {
                    return match self.next_parked_time(now, maker) {
                        NEVER if is_rows && self.lanes.lost() > 0 => self.give_up_row(now, maker),
                        NEVER => Action::Done,
                        at => Action::Wait(at),
                    };
                }
                Next::FollowUp { follow, ready } => {
                    self.under_way.waiting.pop_front();
                    (follow.due, ready, follow.request)
                }
                Next::Arrival { due, ready } if is_rows => {
                    let row = maker.task.rows_mut().leave_out(self.source.number());
                    (due, ready, self.request_of(row))
                }
                Next::Arrival { due, ready } => {
                    let index = self.source.issued;
                    let request = self.source.draw(index, due, maker);
                    self.source.step();
                    (due, ready, request)
                }
            };
            let (place, passage) = self.passage_of(&request, due, now, maker);
            match passage {
                Passage::Open(opened) => {
                    self.under_way.slots.take();
                    return self.ask_now(request, place, (due, ready.max(opened), now), maker);
                }
                Passage::Later if self.can_hold() => {
                    self.splits_mut().parked.clear();
                    if !self.holds_without_slots() {
                        self.under_way.slots.take();
                    }
                    if let Some(pending) = self.under_way.pending_mut() {
                        pending.held.push_back(Held { request, due, ready });
                    }
                }
                Passage::Later | Passage::Never => return self.unsent(&request, due, maker),
            }
        }
    }

    /// Whether requests that wait for a node take no slot: in open loop the client goes on with later requests.
    fn holds_without_slots(&self) -> bool {
        self.source.schedule.is_some()
    }

    /// Whether another request may be held. In closed loop the slots bound their number.
    fn can_hold(&self) -> bool {
        let held = self.under_way.pending().map_or(0, |pending| pending.held.len());
        !self.holds_without_slots() || held < HELD_MAX
    }

    fn take_held(&mut self, at: usize) -> Option<Held> {
        let held = self.under_way.pending_mut()?.take_held(at);
        self.note_plain();
        held
    }

    /// Frees the slot of a held request that is never sent, if it has one.
    fn free_held_slot(&mut self, now: Nanos) {
        if !self.holds_without_slots() {
            self.under_way.slots.free(now);
        }
    }

    /// The next step of a request that waits; `None` where all of them go on waiting.
    fn next_step(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<Step> {
        let patience_ns = maker.patience_ns(true);
        let pending = self.under_way.pending()?;
        for (at, redirected) in pending.redirected.iter().enumerate() {
            if redirected.under_way.is_some() || redirected.wake_at > now && !self.stopped {
                continue;
            }
            if redirected.is_cut_off {
                return Some(Step::Failed(at));
            }
            let lane = self.lane_again(redirected, maker);
            let is_late = now >= redirected.until;
            match lane.filter(|&lane| self.lanes.is_open(lane) && !pending.is_behind(at, lane)) {
                // What is under way goes on, also when the client is stopped.
                Some(lane) if redirected.is_bound() || redirected.only_goes_on() => {
                    return Some(Step::Again(at, lane));
                }
                _ if self.stopped => return Some(Step::Failed(at)),
                Some(lane) => return Some(Step::Again(at, lane)),
                None if is_late || lane.is_some_and(|lane| self.is_given_up(lane, maker)) => {
                    return Some(Step::Failed(at));
                }
                None => {}
            }
        }
        let first = pending.held.front()?;
        if self.stopped || now >= first.due.saturating_add(patience_ns) {
            return Some(Step::Late(0));
        }
        if self.holds_without_slots() && !self.under_way.slots.is_free() {
            return None;
        }
        while let Some(held) = self.under_way.pending()?.held.get(self.under_way.pending()?.looked_at) {
            let (request, due, at) = (held.request, held.due, self.under_way.pending()?.looked_at);
            let (_, passage) = self.passage_of(&request, due, now, maker);
            self.splits_mut().parked.clear();
            match passage {
                Passage::Open(_) => return Some(Step::Release(at)),
                Passage::Never => return Some(Step::Late(at)),
                Passage::Later => self.under_way.pending_mut()?.looked_at += 1,
            }
        }
        None
    }

    /// The lane over which a redirected request is sent again; `None` where no node is known that serves it.
    fn lane_again(&self, redirected: &Redirected, maker: &RequestMaker) -> Option<Lane> {
        match maker.cluster() {
            None => Some(redirected.last_lane),
            Some(_) => redirected.lane.or_else(|| self.node_again(redirected, maker)),
        }
    }

    /// Whether nothing waits for this lane.
    fn is_given_up(&self, lane: Lane, maker: &RequestMaker) -> bool {
        match maker.cluster() {
            None => self.lanes.get(lane).state == LaneState::Lost,
            Some(view) => view.is_given_up(lane),
        }
    }

    /// The lane that a request needs and that is not asked for yet, where lanes are opened on demand or the phase is over. It is opened
    /// also then, since the request was due before.
    fn needed_lane(&self, now: Nanos, maker: &RequestMaker) -> Option<Lane> {
        let pending = self.under_way.pending().filter(|_| !self.stopped)?;
        let waits = |redirected: &&Redirected| redirected.under_way.is_none() && redirected.wake_at <= now;
        let waiting = pending.redirected.iter().filter(waits);
        let mut lanes = waiting.filter_map(|redirected| self.lane_again(redirected, maker));
        match pending.is_cluster {
            false => lanes.find(|&lane| self.lanes.get(lane).state == LaneState::Closed),
            true if !pending.on_demand => None,
            true => {
                let closed = self.lanes.closed_lane();
                closed.or_else(|| lanes.find(|&lane| self.may_need(lane, maker.cluster())))
            }
        }
    }

    /// Whether a lane that is opened on demand may be, and is not asked for: its node may be asked something.
    fn may_need(&self, lane: Lane, view: Option<&ClusterView>) -> bool {
        self.lanes.get(lane).state == LaneState::Absent && view.is_some_and(|view| view.is_member(lane))
    }

    /// Time at which a request that waits is looked at, although nothing happens.
    fn next_parked_time(&self, now: Nanos, maker: &RequestMaker) -> Nanos {
        let Some(pending) = self.under_way.pending() else { return NEVER };
        let patience_ns = maker.patience_ns(true);
        let of_redirected = pending.redirected.iter().filter(|redirected| redirected.under_way.is_none());
        let wakes = of_redirected.map(|redirected| match redirected.wake_at > now {
            true => redirected.wake_at,
            false => redirected.until,
        });
        let of_held = pending.held.front().map(|held| held.due.saturating_add(patience_ns));
        wakes.chain(of_held).min().unwrap_or(NEVER)
    }

    /// The slots of a request that was drawn when it was due at `due`, as [`Client::find_places`] returns them. Other requests were drawn
    /// meanwhile, and which keys there are may depend on the moment.
    fn places_at(&mut self, request: &NextRequest, due: Nanos, maker: &mut RequestMaker) -> Place {
        if maker.task.is_rows() {
            return maker.place_of_row(request.key);
        }
        if request.origin == Origin::Arrival {
            maker.turn_to(self.source.number(), self.source.moment(request.index, due));
        }
        self.find_places(request, maker)
    }

    /// The (first) slot of a request, and the state of the lanes to all its nodes. Where several slots share the request, `parked` has
    /// them afterwards.
    fn passage_of(
        &mut self,
        request: &NextRequest,
        due: Nanos,
        now: Nanos,
        maker: &mut RequestMaker,
    ) -> (Place, Passage) {
        if self.under_way.cluster().is_none() {
            return self.passage_over_lanes(request, due, now, maker);
        }
        let first = self.places_at(request, due, maker);
        let places = std::mem::take(&mut self.splits_mut().parked);
        let passage = match places.is_empty() {
            true => self.passage_to(request, first, now, maker),
            false => {
                let passages = places.iter().map(|&(place, _)| self.passage_to(request, place, now, maker));
                passages.fold(Passage::Open(0), Passage::and)
            }
        };
        self.splits_mut().parked = places;
        (first, passage)
    }

    /// The state of the lane to the node that serves a request of this slot.
    fn passage_to(
        &mut self,
        request: &NextRequest,
        place: Place,
        now: Nanos,
        maker: &mut RequestMaker,
    ) -> Passage {
        let (Some(cluster), Some(view)) = (self.under_way.cluster(), maker.cluster_mut()) else {
            return Passage::Never;
        };
        if cluster.is_blocked(Touched::Slot(place)) {
            return Passage::Later;
        }
        let on_demand = cluster.on_demand;
        let Some(node) = self.node_of((request.verb, request.index), place, view) else {
            view.request_refresh(None);
            return Passage::Later;
        };
        if on_demand && self.may_need(node, Some(view)) {
            self.lanes.set(node, LaneState::Closed);
        }
        match self.lanes.get(node).state {
            LaneState::Open(since) => Passage::Open(since),
            LaneState::Lost => Passage::Never,
            _ if view.is_given_up(node) => Passage::Never,
            _ if now >= self.source.assignment.end && self.stopped => Passage::Never,
            _ => Passage::Later,
        }
    }

    /// The node that serves a request of this verb and draw in a slot; `None` where none is known.
    #[inline]
    fn node_of(&self, (verb, index): (Verb, u64), place: Place, view: &ClusterView) -> Option<NodeNumber> {
        match view.reads.may_leave_master(verb) {
            false => view.owner_of(place),
            true => self.reader_of(self.source.draws.node(index, place), place, view),
        }
    }

    /// The node that serves a redirected request; `None` where none is known. A read that was to be sent again takes another one of its
    /// shard than before.
    fn node_again(&self, redirected: &Redirected, maker: &RequestMaker) -> Option<NodeNumber> {
        let (view, Ticket { verb, index, place, .. }) = (maker.cluster()?, redirected.ticket);
        if redirected.by_owner || !view.reads.may_leave_master(verb) {
            return view.owner_of(place);
        }
        let draw = self.source.draws.node(index, place).wrapping_add(redirected.hops.attempts());
        self.reader_of(draw, place, view)
    }

    /// The node that a read of a slot is sent to, as this draw chooses it.
    #[inline(never)]
    fn reader_of(&self, draw: u64, place: Place, view: &ClusterView) -> Option<NodeNumber> {
        let on_demand = self.under_way.cluster().is_some_and(|cluster| cluster.on_demand);
        view.reader_of(place, draw, |node| {
            let socket = self.lanes.get(node);
            match socket.state {
                LaneState::Open(_) => Reach::Now,
                LaneState::Lost => Reach::Never,
                _ if view.is_given_up(node) => Reach::Never,
                // The read opens the lane, unless that has just failed.
                _ if on_demand && !socket.down => Reach::Now,
                _ => Reach::Later,
            }
        })
    }

    /// Asks a request that was held, which has its slot. Only the generator delays it from now on.
    fn ask_held<'a>(
        &'a mut self,
        request: NextRequest,
        due: Nanos,
        ready: Nanos,
        now: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let freed_at = self.under_way.pending().map_or(0, |pending| pending.freed_at);
        let (place, passage) = self.passage_of(&request, due, now, maker);
        match passage {
            Passage::Open(opened) => {
                self.ask_now(request, place, (due, ready.max(opened).max(freed_at), now), maker)
            }
            // The lane was open a moment ago.
            _ => {
                self.splits_mut().parked.clear();
                self.under_way.slots.free(now);
                self.unsent(&request, due, maker)
            }
        }
    }

    /// Asks a request that has its slot and whose lanes are open, as [`Client::passage_of`] found them, with its times due and ready,
    /// at `now`.
    fn ask_now<'a>(
        &'a mut self,
        request: NextRequest,
        place: Place,
        (due, ready, now): (Nanos, Nanos, Nanos),
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        if self.under_way.is_splitting() {
            self.split(&request, due, ready);
            return self.ask_next_part(maker);
        }
        let is_cluster = self.under_way.cluster().is_some();
        let (lane, is_judged) = match is_cluster {
            true => self.way_of((request.verb, request.index), place, maker),
            false => (place, true),
        };
        // Outside of clusters a place is a lane, and tells nothing more.
        let place = if is_cluster { place } else { 0 };
        if maker.task.is_rows() {
            if matches!(request.origin, Origin::Row | Origin::BeforeCas) {
                let late_ns = now.saturating_sub(due);
                maker.task.rows_mut().note_asked(self.source.number(), request.key, late_ns);
            }
            return self.ask_row(request, due, ready, maker).over(lane).at(place);
        }
        let action = self.ask_in_slot(request, due, ready, maker).over(lane).at(place);
        if is_judged { action } else { action.unjudged() }
    }

    /// Asks the next part of the newest split, over the lane of its place.
    fn ask_next_part<'a>(&mut self, maker: &'a mut RequestMaker) -> Action<'a> {
        if self.under_way.cluster().is_none() {
            return self.ask_part(maker);
        }
        let (place, ticket) = self.splits_mut().next_part();
        let (lane, is_judged) = self.way_of((ticket.verb, ticket.index), place, maker);
        let action = self.ask_part(maker).over(lane);
        if is_judged { action } else { action.unjudged() }
    }

    /// The lane of a request in a slot whose node is known, and whether its reply may be called stale. A replica may rightly answer an
    /// older version, and a master becomes a replica before its clients know.
    #[inline]
    fn way_of(&self, request: (Verb, u64), place: Place, maker: &RequestMaker) -> (Lane, bool) {
        let Some(view) = maker.cluster() else { unreachable!("the servers are a cluster") };
        let (node, is_judged) = match view.reads.leaves_masters() {
            false => (view.owner_of(place), true),
            true => (self.node_of(request, place, view), false),
        };
        // The caller knows that the lane is open, so that there is a node.
        (node.unwrap_or(0), is_judged)
    }

    /// A request that is never sent.
    fn unsent(&mut self, request: &NextRequest, due: Nanos, maker: &mut RequestMaker) -> Action<'static> {
        let place = self.unsent_place(request, due, maker);
        if maker.task.is_rows() {
            maker.task.rows_mut().release(request.key);
        }
        Action::Unsent { verb: request.verb, due, place }
    }

    /// The slot of a request that is never sent; 0 where the servers are no cluster.
    fn unsent_place(&mut self, request: &NextRequest, due: Nanos, maker: &mut RequestMaker) -> Place {
        let is_cluster = self.under_way.cluster().is_some();
        let place = if is_cluster { self.places_at(request, due, maker) } else { 0 };
        self.splits_mut().parked.clear();
        place
    }

    /// Sends the redirected request at this place again, or the next commands of a sequence.
    fn ask_again<'a>(&'a mut self, at: usize, lane: Lane, maker: &'a mut RequestMaker) -> Action<'a> {
        let redirected = &mut self.under_way.redirected_mut()[at];
        redirected.under_way = Some(lane);
        let (ticket, rest) = (redirected.ticket, redirected.rest);
        let asking = redirected.asking && rest.is_none();
        let origin = match ticket.origin {
            _ if redirected.only_goes_on() => Origin::Sequence,
            origin if origin.is_part() => Origin::ResentPart,
            _ => Origin::Resent,
        };
        let asked = Ticket { check_state: redirected.check_state, ..ticket };
        let op = self.source.op_again(&asked, maker);
        let cas = rest.map_or(op.cas, |rest| rest.sending.to_bits());
        Action::AskAgain { lane, op: Op { cas, ..op }, ticket: Ticket { origin, ..ticket }, asking }
    }
}

impl Source {
    /// The request of this ticket once more. Everything in it follows from the draws of its index, but for the versions of what
    /// it stores, which the ticket has.
    fn op_again<'a>(&mut self, ticket: &Ticket, maker: &'a mut RequestMaker) -> Op<'a> {
        let Ticket { verb, key, index, origin, .. } = *ticket;
        if ticket.check_state == CheckState::Row {
            // No cas is sent again, which alone has a CAS unique.
            return maker.ask_row(verb, key, 0);
        }
        maker.turn_to(self.number(), self.moment(index, ticket.due));
        let expiry_bits = self.expiry_bits(verb, index, maker);
        if ticket.keys > 1 {
            let keys = self.keys_again(ticket, maker);
            maker.begin_keys();
            if verb.reads() {
                keys.iter().for_each(|&key| maker.add_key(key));
                return maker.read_many(verb, expiry_bits);
            }
            let mut version = version_of(ticket);
            for key in keys {
                maker.add_pair(key, version);
                if matches!(ticket.check_state, CheckState::Write(_)) {
                    version = Version(version.0 + 1);
                }
            }
            return maker.write_many();
        }
        if verb == Verb::Mset {
            maker.begin_keys();
            maker.add_pair(key, version_of(ticket));
            return maker.write_many();
        }
        if verb.reads() {
            return maker.read_one(verb, key, expiry_bits);
        }
        self.write_of(ticket, (version_of(ticket), 0), origin == Origin::Event, maker)
    }

    /// The keys of a request of several.
    pub(super) fn keys_again(&mut self, ticket: &Ticket, maker: &mut RequestMaker) -> Vec<u64> {
        let mut keys = Vec::with_capacity(ticket.keys.into());
        for place in 0..self.places_of(ticket, maker) {
            let key = match ticket.verb.reads() {
                true => self.read_key(ticket.index, place.into(), maker),
                false => self.record(ticket.index, place.into(), Space::Plain, maker),
            };
            if !ticket.origin.is_part() || maker.place_of(0, key) == ticket.place {
                keys.push(key);
            }
        }
        keys
    }
}

/// Decides by the rules of a cluster what follows an error of a request that was sent again `tries` times by the plan's rules. `redirect`
/// is what a node said, with the number of the node that it named.
fn next_hop(
    hops: &mut Hops,
    (ticket, tries): (&Ticket, u16),
    answer: &Answer<'_>,
    (fault, redirect): (Fault, Option<(&Redirect, Option<NodeNumber>)>),
    maker: &mut RequestMaker,
) -> NextHop {
    let timeout_ns = maker.patience_ns(tries > 0);
    let Some(view) = maker.cluster_mut() else { return NextHop::GiveUp };
    let limits = HopLimits { timeout_ns, ..*view.limits() };
    let now = answer.read;
    let attempt = Attempt { due: ticket.due, now, jitter: view.jitter() };
    match redirect {
        Some((reply, node)) => {
            let has_failed = node.is_some_and(|node| view.has_failed_lately(node, now));
            hops.after_reply(reply, node, has_failed, &attempt, &limits)
        }
        None if fault.unanswered() => {
            // A request of which nothing was sent cannot have reached the node.
            let is_read = ticket.verb.reads() || view.reads.is_read(ticket.verb);
            let may_repeat = is_read || answer.sent == NEVER;
            let next = hops.after_loss(may_repeat, &attempt, &limits);
            view.counts.repeated += u64::from(matches!(next, NextHop::WaitUntil(_)));
            next
        }
        None => NextHop::GiveUp,
    }
}

/// The first version that the request of a ticket writes.
fn version_of(ticket: &Ticket) -> Version {
    match ticket.check_state {
        CheckState::Write(version) => version,
        _ => Version::LOADED,
    }
}
