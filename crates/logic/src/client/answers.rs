//! A client's treatment of replies: items are found among its keys, and the requests that an answer asks for
//! follow.

use super::next::{FollowUp, NextRequest};
use super::{Client, Lane};
use crate::connection::answer::{Answer, Item};
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::{Fault, Outcome, Verb};
use crate::rng::mix;
use crate::time::{NEVER, Nanos};
use crate::workload::key::Space;
use crate::workload::request::{CheckState, RequestMaker};
use crate::workload::unstored::is_absent;
use crate::workload::value::Version;
use crate::workload::verify::stale::RecordPlace;

impl Client {
    /// Takes in an item of a reply. Returns the index of its key, or `None` where the request did not ask for the key, or
    /// not as often. Servers may send items in any order.
    pub fn handle_item(
        &mut self,
        lane: Lane,
        ticket: &Ticket,
        item: &Item<'_>,
        maker: &mut RequestMaker,
    ) -> Option<u64> {
        let key = self.find_item(lane, ticket, item, maker)?;
        let socket = self.lanes.get_mut(lane);
        if ticket.origin == Origin::BeforeCas {
            socket.cas = item.cas;
        }
        if maker.counts_cache() {
            maker.handle_found(socket.server, key);
            socket.value_bytes = socket.value_bytes.saturating_add(item.size);
        }
        Some(key)
    }

    /// The index of the key of an item.
    fn find_item(
        &mut self,
        lane: Lane,
        ticket: &Ticket,
        item: &Item<'_>,
        maker: &mut RequestMaker,
    ) -> Option<u64> {
        if ticket.keys == 1 {
            return maker.is_key(ticket.key, item.key).then_some(ticket.key);
        }
        let socket = self.lanes.get(lane);
        let (first, passed_over) = (socket.cursor, socket.missed.len());
        let end = self.source.places_of(ticket, maker);
        maker.turn_to(self.source.number(), self.source.moment(ticket.index, ticket.due));
        for place in first..end {
            let key = self.source.read_key(ticket.index, u64::from(place), maker);
            if ticket.origin.is_part() && maker.place_of(0, key) != ticket.place {
                continue;
            }
            if maker.is_key(key, item.key) {
                self.lanes.get_mut(lane).cursor = place + 1;
                return Some(key);
            }
            // A key that is passed over is a miss, unless its item comes later in the reply.
            self.lanes.get_mut(lane).missed.push(key);
        }
        let socket = self.lanes.get_mut(lane);
        socket.cursor = end;
        let late = socket.missed[..passed_over].iter().position(|&key| maker.is_key(key, item.key))?;
        Some(socket.missed.remove(late))
    }

    /// Whether a value of this version was certainly overwritten before the read was sent that returned it. The read asked
    /// for the key with index `key` and remembered `check_state`.
    pub fn is_stale(
        &self,
        lane: Lane,
        check_state: CheckState,
        key: u64,
        version: Version,
        maker: &RequestMaker,
    ) -> bool {
        let CheckState::Read(mark) = check_state else { return false };
        maker.checks.witness.is_stale(
            RecordPlace { server: self.lanes.get(lane).server, index: key },
            version,
            mark,
        )
    }

    /// Takes in the end of a request: its slot is free, and the requests that its answer asks for are remembered.
    /// [`Client::handle_part`] takes in the ends of parts of a request. Returns whether [`RequestMaker::take_cache_counts`] has
    /// counts of the answer.
    #[inline]
    pub fn handle_answer(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) -> bool {
        self.under_way.slots.free(answer.arrived);
        if self.source.window.is_some() {
            self.handle_window_answer(lane, &{ *answer }, maker);
            return false;
        }
        let ticket = answer.ticket;
        let is_plain = match answer.outcome {
            Outcome::Hit => ticket.keys == 1 && ticket.origin.asks_nothing_more(),
            Outcome::Stored => ticket.check_state == CheckState::None,
            _ => false,
        };
        if is_plain {
            return false;
        }
        self.follow_answer(lane, &{ *answer }, maker);
        maker.counts_cache()
    }

    /// Remembers what an answer says about versions, and the requests that it asks for.
    #[inline(never)]
    pub(super) fn follow_answer(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        let ticket = answer.ticket;
        let follow_ups_before = self.under_way.waiting.len();
        if let CheckState::Write(version) = ticket.check_state {
            self.end_write(lane, version, answer, maker);
        }
        self.count_answer(lane, answer, maker);
        let may_repeat = u64::from(self.repeated) < self.source.assignment.repeats;
        if may_repeat && ticket.verb == Verb::Set && answer.outcome == LOST {
            self.repeated += 1;
            let again = NextRequest::after(ticket.index, Verb::Set, ticket.key);
            self.follow(lane, again, answer.read, answer.read);
        }
        if ticket.origin == Origin::BeforeCas {
            self.follow_cas(lane, answer);
        } else if ticket.origin == Origin::BeforeModify {
            self.modify(lane, answer);
        } else if ticket.verb.reads() {
            self.follow_read(lane, answer, maker);
        }
        self.end_reply(lane);
        if ticket.check_state == CheckState::Row {
            self.end_row(answer, follow_ups_before, maker);
        }
    }

    /// Passes the outcome of a write to the writer of its versions. `first` is the version of the first key; each further key has the
    /// next version.
    pub(super) fn end_write(
        &mut self,
        lane: Lane,
        first: Version,
        answer: &Answer<'_>,
        maker: &mut RequestMaker,
    ) {
        let Some(mut writer) = self.source.writer.take() else { return };
        let ticket = answer.ticket;
        let server = self.lanes.get(lane).server;
        let mut version = first;
        if ticket.keys > 1 || ticket.origin.is_part() {
            maker.turn_to(self.source.number(), self.source.moment(ticket.index, ticket.due));
        }
        let places = if ticket.keys == 1 { 1 } else { self.source.places_of(ticket, maker) };
        for place in 0..places {
            let index = match place {
                // The first key of a part may be any of the whole.
                0 if ticket.keys == 1 || !ticket.origin.is_part() => ticket.key,
                _ => self.source.record(ticket.index, u64::from(place), Space::Plain, maker),
            };
            if ticket.origin.is_part() && maker.place_of(0, index) != ticket.place {
                continue;
            }
            if let Some(ledger) = &mut maker.checks.ledger {
                match answer.outcome {
                    Outcome::Stored => ledger.note_stored(index, version, (answer.sent, answer.read)),
                    Outcome::NotStored | Outcome::Exists | Outcome::NotFound => {}
                    _ if answer.sent == NEVER => {}
                    _ => ledger.note_unknown(index, version),
                }
            }
            let place = RecordPlace { server, index };
            match answer.outcome {
                Outcome::Stored => maker.checks.witness.handle_stored(&mut writer, place, version),
                Outcome::NotStored | Outcome::Exists | Outcome::NotFound => writer.handle_not_stored(version),
                _ => writer.handle_lost(version),
            }
            version = Version(version.0 + 1);
        }
        self.source.writer = Some(writer);
    }

    /// Remembers the cas, or the set, that follows the answer to a read for a cas.
    pub(super) fn follow_cas(&mut self, lane: Lane, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        let (verb, cas) = match (answer.outcome, answer.hits, self.lanes.get(lane).cas) {
            (Outcome::Error(_) | Outcome::Miss, ..) => return,
            (Outcome::Win, 0, _) => (Verb::Set, 0),
            (_, 0, _) => return,
            // The server decides on this number: 0 is no CAS unique, and no cas is asked with it.
            (_, _, 0) => return,
            (_, _, cas) => (Verb::Cas, cas),
        };
        let request = NextRequest { cas, ..NextRequest::after(ticket.index, verb, ticket.key) };
        self.follow(lane, request, answer.read, answer.read);
    }

    /// Remembers the store that follows the read of a pair, after a hit and after a miss. No store follows a read that failed or a read
    /// of a key that is never stored.
    fn modify(&mut self, lane: Lane, answer: &Answer<'_>) {
        let Ticket { key, index, due: pair_due, .. } = *answer.ticket;
        if matches!(answer.outcome, Outcome::Error(_)) || is_absent(key) {
            return;
        }
        let origin = Origin::PairEnd;
        let request = NextRequest { origin, pair_due, ..NextRequest::new(Verb::Set, index, key) };
        self.follow(lane, request, answer.read, answer.read);
    }

    /// Takes in that the store of this ticket, which is the second half of a pair ([`Origin::PairEnd`]), has ended. Returns when
    /// the read of the pair was due; `None` for a store that has ended before.
    pub fn end_pair(&mut self, ticket: &Ticket) -> Option<Nanos> {
        self.under_way.waiting.end_store_of_pair(ticket.index)
    }

    /// Remembers the stores that follow the answer to a read that is not for a cas.
    pub(super) fn follow_read(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        if answer.outcome == Outcome::Win {
            let (key, index) = (answer.ticket.key, answer.ticket.index);
            let due = answer.read.saturating_add(maker.task.read_through().unwrap_or(0));
            let fill = NextRequest::new(maker.store_verb(key), index, key);
            return self.follow(lane, NextRequest { origin: Origin::Fill, ..fill }, due, answer.read);
        }
        self.read_through(lane, answer, maker);
    }

    /// Forgets the items of a reply that has ended.
    #[inline]
    pub(super) fn end_reply(&mut self, lane: Lane) {
        let socket = self.lanes.get_mut(lane);
        socket.cursor = 0;
        socket.missed.clear();
        (socket.cas, socket.value_bytes) = (0, 0);
    }

    /// Adds a request over this lane that is due at `due`, since an answer asked for it that was read at `read`.
    fn follow(&mut self, lane: Lane, request: NextRequest, due: Nanos, read: Nanos) {
        let waiting = &mut self.under_way.waiting;
        waiting.seen = waiting.seen.max(read);
        waiting.add(FollowUp { due, request: NextRequest { lane, ..request } }, self.source.assignment.end);
    }

    /// Remembers to store the keys that a read missed, where the phase reads through.
    pub(super) fn read_through(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        if maker.task.read_through().is_none() {
            return;
        }
        let ticket = answer.ticket;
        if !matches!(answer.outcome, Outcome::Hit | Outcome::Miss) {
            return;
        }
        self.complete_missed(lane, answer, maker);
        let missed = std::mem::take(&mut self.lanes.get_mut(lane).missed);
        let index = ticket.index;
        for &key in missed.iter().filter(|&&key| !is_absent(key)) {
            let bits = mix(&[self.source.draws.op.draw_sub(index, FILL_DRAW), key]);
            let Some(delay) = maker.task.fill_delay(bits) else { break };
            let fill = NextRequest::new(maker.fill_verb(key), index, key);
            let due = answer.read.saturating_add(delay);
            self.follow(lane, NextRequest { origin: Origin::Fill, ..fill }, due, answer.read);
        }
        self.lanes.get_mut(lane).missed = missed;
    }

    /// Adds the keys that a reply did not pass over to those that it missed, now that it has ended.
    pub(super) fn complete_missed(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        let ticket = answer.ticket;
        if ticket.keys == 1 {
            let missed = &mut self.lanes.get_mut(lane).missed;
            if answer.hits == 0 && missed.is_empty() {
                missed.push(ticket.key);
            }
            return;
        }
        let (cursor, end) = (self.lanes.get(lane).cursor, self.source.places_of(ticket, maker));
        maker.turn_to(self.source.number(), self.source.moment(ticket.index, ticket.due));
        for place in cursor..end {
            let key = self.source.read_key(ticket.index, u64::from(place), maker);
            if !ticket.origin.is_part() || maker.place_of(0, key) == ticket.place {
                self.lanes.get_mut(lane).missed.push(key);
            }
        }
        self.lanes.get_mut(lane).cursor = end;
    }
}

/// The draw of a request from which the delays of its fills come: no key of a request has this number.
const FILL_DRAW: u64 = 1 << 32;

/// The outcome of a request that got no answer in time.
const LOST: Outcome = Outcome::Error(Fault::Timeout);
