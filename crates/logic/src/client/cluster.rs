//! Clients of a cluster: requests whose node sends them on or makes them wait, and requests that wait for a node.
//!
//! A slot with a redirected request takes no other request of the same client until that one has ended: under the new map a later
//! request would overtake it. Requests of other slots pass.

use super::cluster_requests::{ClusterRequests, HELD_MAX, Held, Redirected};
use super::lane_set::{LaneState, Passage};
use super::next::{Next, NextRequest};
use super::sequence_rest::{SequenceRest, SequenceStep};
use super::sequences::first_ticket;
use super::source::Source;
use super::split::WholeAnswer;
use super::{Action, Client, DRAWN, Lane, ROWS};
use crate::client::route::Place;
use crate::cluster::hops::{Attempt, Hops, NextHop};
use crate::cluster::nodes::NodeNumber;
use crate::cluster::reads::Reach;
use crate::cluster::redirect::{Redirect, read_redirect};
use crate::cluster::view::ClusterView;
use crate::connection::answer::{Answer, Stamp};
use crate::connection::inflight::{Origin, Ticket};
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
        self.splits_mut().cluster = Some(ClusterRequests::default());
        self
    }

    /// Takes in, from a new map, that the node of this lane owns slots or does not. Returns whether the lane has a connection that is
    /// not wanted any more; [`Client::leave`] follows when the connection is closed.
    pub fn note_member(&mut self, lane: Lane, is_member: bool) -> bool {
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.look_again();
            self.under_way.redirected_mut().iter_mut().for_each(|redirected| redirected.wake_at = 0);
        }
        let opens_all = self.under_way.cluster().is_some_and(|cluster| !cluster.on_demand);
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
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.is_over = true;
        }
    }

    /// Takes the end of a request, given up at `now`, that was sent and waits to be sent again or to go on, with the lane over which it was sent
    /// last; `None` when there is none left.
    pub fn take_waiting(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<(Lane, WholeAnswer)> {
        let at = self.under_way.redirected().iter().position(|redirected| redirected.under_way.is_none())?;
        Some(self.fail(at, now, maker))
    }

    /// Takes a request that was due in the phase, before `now`, and was never sent, since it waits for a node: its verb, its due time and
    /// its slot; `None` when there is none left.
    pub fn take_held_back(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<(Verb, Nanos, Place)> {
        let until = self.source.assignment.end.min(now);
        let held = &self.under_way.cluster()?.held;
        let at = held.iter().position(|held| held.due < until)?;
        let Held { request, due, .. } = self.take_held(at)?;
        let place = self.places_at(&request, due, maker);
        self.splits_mut().parked.clear();
        Some((request.verb, due, place))
    }

    /// Takes in the end of an exchange over this lane, and decides what becomes of its request. Only clients of a cluster, and sequences
    /// of commands that wait for replies, have requests that go on.
    pub fn end_exchange(
        &mut self,
        lane: Lane,
        answer: &Answer<'_>,
        words: &[u8],
        maker: &mut RequestMaker,
    ) -> Exchange {
        let ticket = answer.ticket;
        if ticket.origin == Origin::Asking {
            return Exchange::GoesOn;
        }
        if self.under_way.cluster().is_none() && ticket.origin != Origin::Sequence {
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
                self.go_on(found, rest, (lane, answer, words));
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

    /// Decides what follows the end of an exchange: its request ends, or a cluster is asked again. `rest` is that of a sequence of
    /// commands.
    fn follow_exchange(
        &mut self,
        found: Option<usize>,
        rest: Option<SequenceRest>,
        (lane, answer, words): (Lane, &Answer<'_>, &[u8]),
        maker: &mut RequestMaker,
    ) -> Exchange {
        let is_over = self.under_way.cluster().is_none_or(|cluster| cluster.is_over);
        let (Some(view), false) = (maker.cluster_mut(), is_over) else {
            return self.end_redirected(found, answer, maker);
        };
        let Outcome::Error(fault) = answer.outcome else { return self.end_redirected(found, answer, maker) };
        if rest.is_some_and(|rest| !rest.is_repeatable()) {
            return self.end_redirected(found, answer, maker);
        }
        let known = found.map(|at| &self.under_way.redirected()[at]);
        let ticket = known.map_or_else(|| first_ticket(answer.ticket), |known| known.ticket);
        let mut hops = known.map_or_else(Hops::default, |known| known.hops);
        let first_sent = known.map_or(NEVER, |known| known.first_sent);
        let reply = match words {
            [] => None,
            // A part of the keys of a transaction are here.
            _ if fault == Fault::Again => Some(Redirect::TryAgain),
            words => view.name(lane).and_then(|asked| read_redirect(words, asked)),
        };
        let (now, limits) = (answer.read, *view.limits());
        let attempt = Attempt { due: ticket.due, now, jitter: view.jitter() };
        let next = match &reply {
            Some(reply) => {
                let node = view.take_in(reply, lane, ticket.place);
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
        };
        let (named, asking, wake_at) = match next {
            NextHop::GiveUp => return self.end_redirected(found, answer, maker),
            NextHop::Resend { node, asking } => (Some(node), asking, now),
            NextHop::WaitUntil(at) => (None, false, at),
        };
        let rest = rest.zip(maker.sequence(ticket.verb)).map(|(mut rest, sequence)| {
            rest.repeat(sequence, asking);
            rest
        });
        let words = words[..words.len().min(WORDS_MAX_BYTES)].into();
        let redirected = Redirected {
            ticket,
            first_sent: first_sent.min(answer.sent),
            // What MOVED says is in the map, which may be newer when the request is sent.
            lane: named.filter(|_| asking),
            by_owner: matches!(reply, Some(Redirect::Moved { .. })),
            asking,
            hops,
            wake_at,
            under_way: None,
            last_lane: lane,
            fault,
            words,
            rest,
            is_cut_off: false,
        };
        let list = self.under_way.redirected_mut();
        match found {
            Some(at) => list[at] = redirected,
            None => list.push(redirected),
        }
        // A part of the reply may have come.
        self.end_reply(lane);
        Exchange::GoesOn
    }

    /// Ends a request that may have taken exchanges before, at the place `found`.
    fn end_redirected(
        &mut self,
        found: Option<usize>,
        answer: &Answer<'_>,
        maker: &mut RequestMaker,
    ) -> Exchange {
        let (ticket, sent) = match found {
            Some(at) => {
                let Redirected { ticket, first_sent, hops, .. } = self.under_way.redirected_mut().remove(at);
                if let Some(view) = maker.cluster_mut().filter(|_| hops.attempts() > 0) {
                    let is_error = matches!(answer.outcome, Outcome::Error(_));
                    view.counts.followed += u64::from(!is_error);
                    view.counts.given_up += u64::from(is_error);
                }
                // A command says with its reply how many keys it has.
                (Ticket { keys: answer.ticket.keys, ..ticket }, first_sent.min(answer.sent))
            }
            None if answer.ticket.origin == Origin::Sequence => (first_ticket(answer.ticket), answer.sent),
            None => return Exchange::Whole,
        };
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.freed_at = cluster.freed_at.max(answer.read);
            cluster.look_again();
        }
        Exchange::Ends { ticket, sent, earlier: None }
    }

    /// Gives up the redirected request at this place, which is not under way. Returns the lane over which it was sent last, and its
    /// end.
    pub(super) fn fail(&mut self, at: usize, now: Nanos, maker: &mut RequestMaker) -> (Lane, WholeAnswer) {
        let Redirected { ticket, first_sent, last_lane, fault, words, hops, .. } =
            self.under_way.redirected_mut().remove(at);
        if let Some(view) = maker.cluster_mut().filter(|_| hops.attempts() > 0) {
            view.counts.given_up += 1;
        }
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.freed_at = cluster.freed_at.max(now);
            cluster.look_again();
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

    /// Returns what a client of a cluster wants.
    #[inline(never)]
    pub(super) fn poll_in_cluster<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if self.under_way.is_splitting() {
            return self.ask_part_of_slot(maker);
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
                    if let Some(cluster) = self.under_way.cluster_mut() {
                        cluster.held.push_back(Held { request, due, ready });
                    }
                }
                Passage::Later | Passage::Never => return self.unsent(&request, due, maker),
            }
        }
    }

    /// Whether requests that wait for a node take no slot: in open loop others pass them.
    fn holds_without_slots(&self) -> bool {
        self.source.schedule.is_some()
    }

    /// Whether another request may be held. In closed loop the slots bound their number.
    fn can_hold(&self) -> bool {
        let held = self.under_way.cluster().map_or(0, |cluster| cluster.held.len());
        !self.holds_without_slots() || held < HELD_MAX
    }

    fn take_held(&mut self, at: usize) -> Option<Held> {
        self.under_way.cluster_mut()?.take_held(at)
    }

    /// Frees the slot of a held request that is never sent, if it has one.
    fn free_held_slot(&mut self, now: Nanos) {
        if !self.holds_without_slots() {
            self.under_way.slots.free(now);
        }
    }

    /// The next step of a request that has not found its node; `None` where all of them wait.
    fn next_step(&mut self, now: Nanos, maker: &mut RequestMaker) -> Option<Step> {
        let timeout_ns = maker.cluster()?.limits().timeout_ns;
        let cluster = self.under_way.cluster()?;
        for (at, redirected) in self.under_way.redirected().iter().enumerate() {
            if redirected.under_way.is_some() || redirected.wake_at > now && !self.stopped {
                continue;
            }
            if redirected.is_cut_off {
                return Some(Step::Failed(at));
            }
            let lane = redirected.lane.or_else(|| self.node_again(redirected, maker));
            let is_given_up =
                || lane.is_some_and(|lane| maker.cluster().is_some_and(|view| view.is_given_up(lane)));
            let is_late = now >= redirected.ticket.due.saturating_add(timeout_ns);
            match lane.filter(|&lane| self.lanes.is_open(lane) && !self.under_way.is_behind(at, lane)) {
                // It was not redirected: the rest of what is under way.
                Some(lane) if redirected.is_bound() || redirected.hops.attempts() == 0 => {
                    return Some(Step::Again(at, lane));
                }
                _ if self.stopped => return Some(Step::Failed(at)),
                Some(lane) => return Some(Step::Again(at, lane)),
                None if is_late || is_given_up() => return Some(Step::Failed(at)),
                None => {}
            }
        }
        let first = cluster.held.front()?;
        if self.stopped || now >= first.due.saturating_add(timeout_ns) {
            return Some(Step::Late(0));
        }
        if self.holds_without_slots() && !self.under_way.slots.is_free() {
            return None;
        }
        while let Some(held) = self.under_way.cluster()?.held.get(self.under_way.cluster()?.looked_at) {
            let (request, due, at) = (held.request, held.due, self.under_way.cluster()?.looked_at);
            let (_, passage) = self.passage_of(&request, due, now, maker);
            self.splits_mut().parked.clear();
            match passage {
                Passage::Open(_) => return Some(Step::Release(at)),
                Passage::Never => return Some(Step::Late(at)),
                Passage::Later => self.under_way.cluster_mut()?.looked_at += 1,
            }
        }
        None
    }

    /// The lane that a request needs and that is not asked for yet, where lanes are opened on demand. It is opened also when the phase is
    /// over, since the request was due before.
    fn needed_lane(&self, now: Nanos, maker: &RequestMaker) -> Option<Lane> {
        self.under_way.cluster().filter(|cluster| cluster.on_demand && !self.stopped)?;
        if let Some(lane) = self.lanes.closed_lane() {
            return Some(lane);
        }
        let waits = |redirected: &&Redirected| redirected.under_way.is_none() && redirected.wake_at <= now;
        let mut lanes = self
            .under_way
            .redirected()
            .iter()
            .filter(waits)
            .filter_map(|redirected| redirected.lane.or_else(|| self.node_again(redirected, maker)));
        lanes.find(|&lane| self.may_need(lane, maker.cluster()))
    }

    /// Whether a lane that is opened on demand may be, and is not asked for: its node may be asked something.
    fn may_need(&self, lane: Lane, view: Option<&ClusterView>) -> bool {
        self.lanes.get(lane).state == LaneState::Absent && view.is_some_and(|view| view.is_member(lane))
    }

    /// Time at which a request that has not found its node is looked at, although nothing happens.
    fn next_parked_time(&self, now: Nanos, maker: &RequestMaker) -> Nanos {
        let (Some(cluster), Some(view)) = (self.under_way.cluster(), maker.cluster()) else { return NEVER };
        let timeout_ns = view.limits().timeout_ns;
        let redirected = self.under_way.redirected();
        let of_redirected = redirected.iter().filter(|redirected| redirected.under_way.is_none());
        let wakes = of_redirected.map(|redirected| match redirected.wake_at > now {
            true => redirected.wake_at,
            false => redirected.ticket.due.saturating_add(timeout_ns),
        });
        let of_held = cluster.held.front().map(|held| held.due.saturating_add(timeout_ns));
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
        if self.under_way.is_blocked(place) {
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
        let freed_at = self.under_way.cluster().map_or(0, |cluster| cluster.freed_at);
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
            return self.ask_part_of_slot(maker);
        }
        let (lane, is_judged) = self.way_of((request.verb, request.index), place, maker);
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

    /// Asks the next part of the newest split, over the lane of its slot.
    fn ask_part_of_slot<'a>(&mut self, maker: &'a mut RequestMaker) -> Action<'a> {
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
        let place = self.places_at(request, due, maker);
        self.splits_mut().parked.clear();
        if maker.task.is_rows() {
            maker.task.rows_mut().release(request.key);
        }
        Action::Unsent { verb: request.verb, due, place }
    }

    /// Sends the redirected request at this place again, or the next commands of a sequence.
    pub(super) fn ask_again<'a>(
        &'a mut self,
        at: usize,
        lane: Lane,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let redirected = &mut self.under_way.redirected_mut()[at];
        redirected.under_way = Some(lane);
        let Redirected { ticket, rest, hops, .. } = *redirected;
        let asking = redirected.asking && rest.is_none();
        self.note_plain();
        let op = self.source.op_again(&ticket, maker);
        let cas = rest.map_or(op.cas, |rest| rest.sending.to_bits());
        let origin = match ticket.origin {
            _ if hops.attempts() == 0 => Origin::Sequence,
            origin if origin.is_part() => Origin::ResentPart,
            _ => Origin::Resent,
        };
        Action::AskAgain { lane, op: Op { cas, ..op }, ticket: Ticket { origin, ..ticket }, asking }
    }
}

impl Source {
    /// The request of this ticket once more. Everything in it follows from the draws of its index, but for the versions of what
    /// it stores, which the ticket has.
    fn op_again<'a>(&mut self, ticket: &Ticket, maker: &'a mut RequestMaker) -> Op<'a> {
        let Ticket { verb, key, index, origin, .. } = *ticket;
        if ticket.check_state == CheckState::Row {
            // Protocols of clusters have no CAS uniques.
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
    fn keys_again(&mut self, ticket: &Ticket, maker: &mut RequestMaker) -> Vec<u64> {
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

/// The first version that the request of a ticket writes.
fn version_of(ticket: &Ticket) -> Version {
    match ticket.check_state {
        CheckState::Write(version) => version,
        _ => Version::LOADED,
    }
}
