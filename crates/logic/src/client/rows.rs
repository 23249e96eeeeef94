//! Clients that replay a trace: each sends its own requests, in their order, when they are due.

use super::next::NextRequest;
use super::{Action, Client};
use crate::client::route::Place;
use crate::connection::answer::Answer;
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::Verb;
use crate::time::{NEVER, Nanos};
use crate::unsent::Unsent;
use crate::workload::request::{CheckState, RequestMaker};
use crate::workload::rows::NextRow;

impl Client {
    /// Asks the client's next row, which is due.
    pub(super) fn ask_next_row<'a>(
        &mut self,
        now: Nanos,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let row = maker.task.rows_mut().take(self.source.number(), now - due);
        let request = self.request_of(row);
        self.under_way.slots.take();
        self.ask_row(request, due, ready, maker)
    }

    /// The request of a row, by its place and verb.
    pub(super) fn request_of(&mut self, (key, verb): (u64, Verb)) -> NextRequest {
        let index = self.source.issued;
        self.source.issued += 1;
        // The CAS unique of the trace means nothing to the server: the client asks for its own.
        let (verb, origin) = match verb {
            Verb::Cas => (Verb::Gets, Origin::BeforeCas),
            verb => (verb, Origin::Row),
        };
        NextRequest { origin, ..NextRequest::new(verb, index, key) }
    }

    /// Asks for the key that is kept in a place of the rows: a row, or what its answer asked for. The request has its slot.
    pub(super) fn ask_row<'a>(
        &mut self,
        request: NextRequest,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let NextRequest { verb, index, key, cas, origin, .. } = request;
        let ticket =
            Ticket { due, ready, index, key, check_state: CheckState::Row, origin, ..Ticket::of(verb) };
        Action::Ask { lane: 0, op: maker.ask_row(verb, key, cas), ticket }
    }

    /// Gives up the next request of a client without a connection, once it is due. Where all rows are part of the phase, the
    /// phase does not wait for those that no connection will send.
    pub(super) fn give_up_row(&mut self, now: Nanos, maker: &mut RequestMaker) -> Action<'static> {
        let NextRow::Due(offset) = maker.task.rows().next(self.source.number()) else { return Action::Done };
        let end = self.source.assignment.end;
        // In closed loop a request is due when its slot is freed, and what is never sent never frees its slot: a phase that
        // a time ends asks no more than that of the client.
        let keeps_slot = offset.is_none() && end != NEVER;
        if keeps_slot && !self.under_way.slots.is_free() {
            while let NextRow::Due(_) = maker.task.rows().next(self.source.number()) {
                self.drop_row(maker);
            }
            return Action::Done;
        }
        let due = self.source.due(offset, self.under_way.slots.since());
        if due >= end {
            return Action::Done;
        }
        if due > now && end != NEVER {
            return Action::DoneUntil(due);
        }
        if keeps_slot {
            self.under_way.slots.take();
        }
        let (verb, place) = self.drop_row(maker);
        Action::Unsent { verb, due, place }
    }

    /// Takes the client's next row, which will not be sent, out of those that wait. Returns its verb, and the server or slot that it
    /// would have gone to.
    fn drop_row(&self, maker: &mut RequestMaker) -> (Verb, Place) {
        let (row, verb) = maker.task.rows_mut().leave_out(self.source.number());
        let place = maker.place_of_row(row);
        maker.task.rows_mut().release(row);
        (verb, place)
    }

    /// Handles the end of a request of a trace; the place of its key becomes free if no request follows from the reply.
    pub(super) fn end_row(
        &mut self,
        answer: &Answer<'_>,
        follow_ups_before: usize,
        maker: &mut RequestMaker,
    ) {
        if self.under_way.waiting.len() <= follow_ups_before {
            maker.task.rows_mut().release(answer.ticket.key);
        }
    }

    /// Hands over the requests of a trace that were due before `until` and were not sent, by verb.
    pub(super) fn count_unsent_rows(
        &mut self,
        until: Nanos,
        maker: &mut RequestMaker,
        unsent: &mut dyn FnMut(Unsent),
    ) {
        let mut free = self.under_way.slots.count_free_since_before(until);
        while let NextRow::Due(offset) = maker.task.rows().next(self.source.number()) {
            // In closed loop a request is due when its slot is freed.
            let is_due = match offset {
                Some(_) => self.source.due(offset, NEVER) < until,
                None => free > 0,
            };
            let (_, verb) = maker.task.rows_mut().leave_out(self.source.number());
            free = free.saturating_sub(1);
            if is_due {
                unsent(Unsent { verb, requests: 1, estimated: 0 });
            }
        }
    }
}
