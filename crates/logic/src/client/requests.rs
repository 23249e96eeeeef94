//! How a client makes a request: which verb and keys its draws choose, and what is sent and remembered.

use super::next::Request;
use super::{Client, Wish};
use crate::connection::inflight::{AnswerUse, CheckState, Origin, Ticket};
use crate::protocol::{MetaAsk, Op, Verb};
use crate::time::Nanos;
use crate::workload::key::Space;
use crate::workload::mix::space_of;
use crate::workload::request::{Shared, Write};
use crate::workload::value::Version;

impl Client {
    /// What request `index` of the schedule asks.
    #[inline(always)]
    pub(super) fn draw(&mut self, index: u64, shared: &mut Shared) -> Request {
        if let Some((verb, key)) = shared.chore(index, self.number) {
            return Request { verb, index, key, cas: 0, origin: Origin::Arrival };
        }
        let verb = shared.verb(self.draws.op.draw(index));
        let (verb, key, origin) = match verb {
            Verb::Append | Verb::Prepend => {
                let (verb, key) = self.add_piece(verb, shared);
                (verb, key, Origin::Arrival)
            }
            Verb::Cas => (Verb::Gets, self.record(index, 0, Space::Plain, shared), Origin::BeforeCas),
            verb if verb.reads() && verb != Verb::Hget => {
                (verb, self.read_key(index, 0, shared), Origin::Arrival)
            }
            verb => (verb, self.record(index, 0, space_of(verb), shared), Origin::Arrival),
        };
        Request { verb, index, key, cas: 0, origin }
    }

    /// Index of key `place` of request `index`, in a space.
    #[inline(always)]
    pub(super) fn record(&self, index: u64, place: u64, space: Space, shared: &Shared) -> u64 {
        shared.index(space, shared.choose(&self.draws.key, index, place, self.number))
    }

    /// Index of key `place` of read `index`.
    #[inline(always)]
    pub(super) fn read_key(&self, index: u64, place: u64, shared: &Shared) -> u64 {
        let space = match shared.has_spaces() {
            true => shared.space(self.draws.op.draw_sub(index, 1 + place)),
            false => Space::Plain,
        };
        self.record(index, place, space, shared)
    }

    /// Where the next piece goes. Nobody knows how long a value is that others add to as well, so a client adds to a
    /// key of its own, and stores the next one anew before it would grow too long.
    pub(super) fn add_piece(&mut self, verb: Verb, shared: &Shared) -> (Verb, u64) {
        let (key, limit) = shared.piece_key(self.number, self.pieces.turn);
        let piece = shared.piece_bytes(key);
        if self.pieces.bytes > 0 && self.pieces.bytes + piece <= limit {
            self.pieces.bytes += piece;
            return (verb, key);
        }
        self.pieces.turn += u64::from(self.pieces.bytes > 0);
        let (key, _) = shared.piece_key(self.number, self.pieces.turn);
        self.pieces.bytes = shared.piece_bytes(key);
        (Verb::Set, key)
    }

    /// Turns a request into what is sent and what is remembered.
    #[inline(always)]
    pub(super) fn ask<'a>(
        &mut self,
        request: Request,
        due: Nanos,
        ready: Nanos,
        shared: &'a mut Shared,
    ) -> Wish<'a> {
        let Request { verb, index, key, cas, origin } = request;
        self.slots.take();
        let mut ticket = Ticket {
            due,
            ready,
            index,
            key,
            check_state: CheckState::None,
            verb,
            origin,
            answer_use: AnswerUse::None,
            keys: 1,
        };
        if !verb.reads() {
            return self.ask_write(ticket, cas, shared);
        }
        if origin == Origin::Arrival {
            ticket.keys = shared.keys_of(verb);
            self.draws.care_for(&mut ticket, shared);
        }
        let expiry_bits = self.expiry_bits(verb, index, shared);
        if ticket.keys > 1 || origin == Origin::BeforeCas {
            return self.ask_specially(ticket, expiry_bits, shared);
        }
        Wish::Ask { lane: 0, op: shared.read_one(verb, key, expiry_bits), ticket }
    }

    /// A read of several keys, or before a cas.
    pub(super) fn ask_specially<'a>(
        &self,
        ticket: Ticket,
        expiry_bits: u64,
        shared: &'a mut Shared,
    ) -> Wish<'a> {
        if ticket.keys == 1 {
            let op = shared.read_one(ticket.verb, ticket.key, expiry_bits);
            // A cas follows whatever is found, and nothing is to be made or renewed besides.
            return Wish::Ask { lane: 0, op: Op { meta: MetaAsk::default(), ..op }, ticket };
        }
        shared.begin_keys();
        shared.add_key(ticket.key);
        for place in 1..ticket.keys {
            let key = self.read_key(ticket.index, u64::from(place), shared);
            shared.add_key(key);
        }
        Wish::Ask { lane: 0, op: shared.read_many(ticket.verb, expiry_bits), ticket }
    }

    /// Anything that is not a read.
    pub(super) fn ask_write<'a>(&mut self, mut ticket: Ticket, cas: u64, shared: &'a mut Shared) -> Wish<'a> {
        let Ticket { verb, key, index, .. } = ticket;
        if verb == Verb::Mset && shared.keys_of(verb) > 1 {
            ticket.keys = shared.keys_of(verb);
            ticket.check_state = self.add_pairs(index, ticket.keys, shared);
            return Wish::Ask { lane: 0, op: shared.write_many(), ticket };
        }
        let mut version = Version::LOADED;
        if let Some(writer) = self.writer.as_mut().filter(|_| verb.stores() && !shared.is_load()) {
            version = writer.send();
            ticket.check_state = CheckState::Write(version);
        }
        let expiry_bits = self.expiry_bits(verb, index, shared);
        let size_bits = if shared.draws_length(verb) { self.draws.size.draw(index) } else { 0 };
        Wish::Ask {
            lane: 0,
            op: shared.write(Write { verb, key, version, cas, expiry_bits, size_bits }),
            ticket,
        }
    }

    /// What the expiry of a request is drawn from, where it is drawn.
    #[inline]
    pub(super) fn expiry_bits(&self, verb: Verb, index: u64, shared: &Shared) -> u64 {
        if shared.sets_expiry(verb) { self.draws.expiry.draw(index) } else { 0 }
    }

    /// Writes down the keys and values of an mset. Their versions follow each other; the first is remembered.
    pub(super) fn add_pairs(&mut self, index: u64, keys: u16, shared: &mut Shared) -> CheckState {
        let mut check_state = CheckState::None;
        shared.begin_keys();
        for place in 0..keys {
            let key = self.record(index, u64::from(place), Space::Plain, shared);
            self.add_pair(key, &mut check_state, shared);
        }
        check_state
    }

    /// Writes down the next key and value of an mset.
    pub(super) fn add_pair(&mut self, key: u64, check_state: &mut CheckState, shared: &mut Shared) {
        let version = self.writer.as_mut().map_or(Version::LOADED, |writer| writer.send());
        if *check_state == CheckState::None && self.writer.is_some() {
            *check_state = CheckState::Write(version);
        }
        shared.add_pair(key, version);
    }
}
