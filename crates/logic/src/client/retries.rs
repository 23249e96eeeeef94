//! Requests that are sent again outside of clusters: the lanes that they and the requests behind them take, and the records that keep
//! requests in order.

use super::Client;
use super::lane_set::Passage;
use super::next::NextRequest;
use super::pending_requests::Touched;
use crate::client::route::Place;
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::Verb;
use crate::time::{NEVER, Nanos};
use crate::workload::request::RequestMaker;

impl Client {
    /// The (first) lane of a request, and the state of all its lanes, with regard to requests that it has to follow. Where several lanes
    /// share the request, `parked` has them afterwards.
    pub(super) fn passage_over_lanes(
        &mut self,
        request: &NextRequest,
        due: Nanos,
        now: Nanos,
        maker: &mut RequestMaker,
    ) -> (Place, Passage) {
        let is_rows = maker.task.is_rows();
        let is_drawn = request.origin.is_drawn() && !is_rows;
        if is_drawn {
            // Other requests were drawn since this one was, and which keys there are may depend on the moment.
            maker.turn_to(self.source.number(), self.source.moment(request.index, due));
        }
        let (lane, passage) = match is_drawn && !self.lanes.is_single() {
            true => self.find_lane(request, now, maker),
            false => (request.lane, self.passage(request.lane, now)),
        };
        let keys = match request.origin {
            Origin::Arrival if !is_rows => {
                maker.task.keys_of(request.verb, &self.source.draws.op, request.index)
            }
            _ => 1,
        };
        let touched = touched((request.verb, request.key), keys > 1, maker);
        if self.under_way.pending().is_some_and(|pending| pending.is_blocked(touched)) {
            return (lane, Passage::Later);
        }
        // A client in closed loop waits for its lane, and is not to ask one request after the other that is never sent.
        let waits = self.source.schedule.is_none() && self.source.assignment.end != NEVER;
        match passage {
            Passage::Never if waits => (lane, Passage::Later),
            _ => (lane, passage),
        }
    }

    /// The records that the request of this ticket reads or writes.
    pub(super) fn touched_by(&self, ticket: &Ticket, maker: &mut RequestMaker) -> Touched {
        match self.under_way.cluster() {
            Some(_) => Touched::Slot(ticket.place),
            None => touched((ticket.verb, ticket.key), ticket.keys > 1, maker),
        }
    }

    /// The keys of a request, or of the part of one, that has ended: those of the records, whatever a command adds to them.
    pub fn keys_of(&mut self, ticket: &Ticket, maker: &mut RequestMaker) -> Vec<Vec<u8>> {
        let keys = match ticket.keys > 1 && !ticket.verb.is_command() {
            true => {
                maker.turn_to(self.source.number(), self.source.moment(ticket.index, ticket.due));
                self.source.keys_again(ticket, maker)
            }
            false => vec![ticket.key],
        };
        keys.into_iter().map(|key| maker.text_of_key(key)).collect()
    }
}

/// The records that a request of this verb and (first) key reads or writes; `has_more`: it has other keys.
fn touched((verb, key): (Verb, u64), has_more: bool, maker: &mut RequestMaker) -> Touched {
    let reads = maker.is_read(verb);
    match has_more || !maker.has_one_record(verb) {
        true => Touched::Any { reads },
        false => Touched::Record { record: maker.record_of(key), reads },
    }
}
