//! Sequences of commands that are sent in several exchanges: in parts that wait for each other, or again where a node of a cluster did
//! not carry out all of it.

use super::pending_requests::{Redirected, Touched};
use super::sequence_rest::SequenceRest;
use super::{Client, Lane};
use crate::cluster::hops::Hops;
use crate::connection::answer::Answer;
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::Fault;
use crate::time::NEVER;
use crate::workload::request::RequestMaker;

impl Client {
    /// Lets a sequence go on behind an exchange that has ended over `lane`. `found` is its place among the requests that go on.
    pub(super) fn go_on(
        &mut self,
        found: Option<usize>,
        rest: SequenceRest,
        (lane, answer, words): (Lane, &Answer<'_>, &[u8]),
        maker: &RequestMaker,
    ) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let stays = rest.is_bound || rest.sending.is_asking || !is_of_cluster;
        let list = self.under_way.redirected_mut();
        let at = found.unwrap_or_else(|| {
            let ticket = first_ticket(answer.ticket);
            list.push(Redirected {
                ticket,
                check_state: ticket.check_state,
                touched: if is_of_cluster { Touched::Slot(ticket.place) } else { Touched::Nothing },
                first_sent: NEVER,
                lane: None,
                by_owner: false,
                asking: false,
                hops: Hops::default(),
                tries: 0,
                kind: None,
                wake_at: 0,
                until: ticket.due.saturating_add(maker.patience_ns(false)),
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
        self.note_plain();
    }

    /// Takes in that the connection of this lane is closed: sequences that need it cannot go on.
    pub(super) fn cut_off_sequences(&mut self, lane: Lane) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let Some(pending) = self.under_way.pending_mut() else { return };
        let is_on = |redirected: &&mut Redirected| redirected.rest.is_some() && redirected.last_lane == lane;
        for redirected in pending.redirected.iter_mut().filter(is_on) {
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
