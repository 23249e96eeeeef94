//! Sequences of commands that are sent in several exchanges: in parts that wait for each other, or again where a node of a cluster did
//! not carry out all of it.

use super::cluster_requests::Redirected;
use super::sequence_rest::SequenceRest;
use super::{Action, Client, Lane, PlainLanes};
use crate::cluster::hops::Hops;
use crate::connection::answer::Answer;
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::Fault;
use crate::time::{NEVER, Nanos};
use crate::workload::request::RequestMaker;

impl Client {
    /// Lets a sequence go on behind an exchange that has ended over `lane`. `found` is its place among the requests that go on.
    pub(super) fn go_on(
        &mut self,
        found: Option<usize>,
        rest: SequenceRest,
        (lane, answer, words): (Lane, &Answer<'_>, &[u8]),
    ) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let stays = rest.is_bound || rest.sending.is_asking || !is_of_cluster;
        let list = self.under_way.redirected_mut();
        let at = found.unwrap_or_else(|| {
            list.push(Redirected {
                ticket: first_ticket(answer.ticket),
                first_sent: NEVER,
                lane: None,
                by_owner: false,
                asking: false,
                hops: Hops::default(),
                wake_at: 0,
                under_way: None,
                last_lane: lane,
                fault: Fault::Closed,
                words: Box::default(),
                rest: None,
                is_cut_off: false,
            });
            list.len() - 1
        });
        let redirected = &mut list[at];
        if redirected.rest.is_none_or(|before| !before.has_failed()) {
            (redirected.fault, redirected.words) = match rest.fault() {
                Some(fault) => (fault, words.into()),
                None => (Fault::Closed, Box::default()),
            };
        }
        redirected.first_sent = redirected.first_sent.min(answer.sent);
        redirected.lane = stays.then_some(lane);
        (redirected.wake_at, redirected.under_way, redirected.last_lane) = (0, None, lane);
        redirected.rest = Some(rest);
        self.plain_lanes = PlainLanes::None;
    }

    /// Sends the next commands of a sequence that goes on, of a client without a cluster.
    pub(super) fn ask_on<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        let waits = |redirected: &Redirected| redirected.under_way.is_none();
        let Some(at) = self.under_way.redirected().iter().position(waits) else { return Action::Wait(now) };
        let Redirected { last_lane, is_cut_off, .. } = self.under_way.redirected()[at];
        if is_cut_off || !self.lanes.is_open(last_lane) {
            let (lane, whole) = self.fail(at, now, maker);
            self.note_plain();
            return Action::GivenUp(lane, Box::new(whole));
        }
        self.ask_again(at, last_lane, maker)
    }

    /// Takes in that the connection of this lane is closed: sequences that need it cannot go on.
    pub(super) fn cut_off_sequences(&mut self, lane: Lane) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let Some(splits) = &mut self.under_way.splits else { return };
        for redirected in splits.redirected.iter_mut().filter(|redirected| redirected.last_lane == lane) {
            let needs_it = redirected.is_bound() || !is_of_cluster;
            redirected.is_cut_off |= needs_it && redirected.under_way.is_none();
        }
    }
}

/// The ticket of a request as it was asked, from that of its first exchange.
pub(super) fn first_ticket(ticket: &Ticket) -> Ticket {
    let origin = if ticket.origin == Origin::Sequence { Origin::Arrival } else { ticket.origin };
    Ticket { origin, ..*ticket }
}
