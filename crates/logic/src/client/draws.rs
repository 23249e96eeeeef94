//! The random draws of one client in one phase, one stream for each purpose.

use crate::client::route::Place;
use crate::connection::inflight::{Origin, Ticket};
use crate::rng::{Stream, StreamOwner, Use};
use crate::workload::request::{AnswerUse, CheckState, RequestMaker};

/// The random streams of one client in one phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawStreams {
    pub(super) op: Stream,
    pub(super) key: Stream,
    pub(super) verify: Stream,
    pub(super) expiry: Stream,
    pub(super) size: Stream,
}

impl DrawStreams {
    pub(super) fn new(place: StreamOwner) -> DrawStreams {
        let purposes = [Use::Op, Use::Key, Use::Verify, Use::Expiry, Use::Size];
        let [op, key, verify, expiry, size] = Stream::for_uses(place, purposes);
        DrawStreams { op, key, verify, expiry, size }
    }

    /// 64 bits that choose the node of a cluster to which the part of read `index` in this slot is sent.
    pub(super) fn node(&self, index: u64, slot: Place) -> u64 {
        self.verify.draw_sub(index, 1 + u64::from(slot))
    }

    /// Decides what is to be done with the answer to a read, and writes it into the ticket.
    #[inline(always)]
    pub(super) fn set_check_state(&self, ticket: &mut Ticket, maker: &RequestMaker) {
        if maker.checks.reads_items(ticket.keys) {
            ticket.answer_use = maker.answer_use(ticket.keys, self.verify.draw(ticket.index));
            if maker.counts_cache() && ticket.origin == Origin::Arrival {
                ticket.origin = Origin::Counted;
            }
        }
        if ticket.answer_use == AnswerUse::Verify {
            ticket.check_state = CheckState::Read(maker.checks.witness.mark());
        }
    }
}
