//! A client's way to a request: the verb and keys that its draws choose, and the facts that are sent and
//! remembered.

use super::next::NextRequest;
use super::source::Source;
use super::{Action, Client};
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::resp::sequence::Sequence;
use crate::protocol::resp::template::Wanted;
use crate::protocol::{MetaAsk, Op, Verb};
use crate::time::{NEVER, Nanos};
use crate::workload::events::EXPIRED_S;
use crate::workload::key::Space;
use crate::workload::mix::space_of;
use crate::workload::request::{CheckState, RequestMaker, Write};
use crate::workload::value::Version;

/// The draws of a request that fill the places of a command; those of other uses are below and above them.
const FILL_DRAWS: u64 = 1 << 35;

/// The draw of a request that decides on its row of the dataset.
const ROW_DRAW: u64 = FILL_DRAWS - 1;

impl Source {
    /// Draws request `index` of the schedule, which is due at `due`.
    #[inline(always)]
    pub(super) fn draw(&mut self, index: u64, due: Nanos, maker: &mut RequestMaker) -> NextRequest {
        if let Some((verb, key)) = maker.in_order(index, self.number(), self.moment(index, due)) {
            return NextRequest::new(verb, index, key);
        }
        let verb = maker.task.verb_of(index, &self.draws.op);
        let (verb, key, origin) = match verb {
            Verb::Append | Verb::Prepend => {
                let (verb, key) = self.add_piece(verb, maker);
                (verb, key, Origin::Arrival)
            }
            Verb::Cas => (Verb::Gets, self.record(index, 0, Space::Plain, maker), Origin::BeforeCas),
            Verb::Get => (verb, self.read_key(index, 0, maker), self.origin_of_get(index, maker)),
            verb if verb.reads() && verb != Verb::Hget => {
                (verb, self.read_key(index, 0, maker), Origin::Arrival)
            }
            Verb::Add if maker.task.inserts() => (verb, self.insert(maker), Origin::Arrival),
            verb => (verb, self.written_key(index, verb, maker), Origin::Arrival),
        };
        NextRequest { origin, ..NextRequest::new(verb, index, key) }
    }

    /// Origin of a get: a request of its own, or the first half of a pair.
    #[inline(always)]
    fn origin_of_get(&self, index: u64, maker: &RequestMaker) -> Origin {
        if maker.task.modifies(&self.draws.op, index) { Origin::BeforeModify } else { Origin::Arrival }
    }

    /// The key of the next record that the client stores itself.
    fn insert(&mut self, maker: &RequestMaker) -> u64 {
        let number = self.own.inserted;
        self.own.inserted += 1;
        maker.task.own_key(self.number(), number)
    }

    /// The key of request `index`, which writes.
    #[inline(always)]
    fn written_key(&self, index: u64, verb: Verb, maker: &RequestMaker) -> u64 {
        match space_of(verb) {
            Space::Plain if maker.task.is_latest() => self.newest_key(index, maker),
            space => self.record(index, 0, space, maker),
        }
    }

    /// The key of request `index`, where the newest records are the most popular.
    fn newest_key(&self, index: u64, maker: &RequestMaker) -> u64 {
        maker.task.newest_key(&self.draws.key, index, self.number(), self.own.inserted)
    }

    /// Due time of request `index` from the beginning of the phase, and its number since keys change.
    #[inline]
    pub(super) fn moment(&self, index: u64, due: Nanos) -> (Nanos, u64) {
        (due.wrapping_sub(self.assignment.begin), index.wrapping_add(self.assignment.asked_before))
    }

    /// Index of key `place` of request `index`, in a space.
    #[inline(always)]
    pub(super) fn record(&self, index: u64, place: u64, space: Space, maker: &RequestMaker) -> u64 {
        maker.record_key(space, (&self.draws.op, &self.draws.key), (index, place), self.number())
    }

    /// Index of key `place` of read `index`.
    #[inline(always)]
    pub(super) fn read_key(&self, index: u64, place: u64, maker: &RequestMaker) -> u64 {
        match maker.task.reads_plainly() {
            true => self.record(index, place, Space::Plain, maker),
            false => self.read_key_of_many_kinds(index, place, maker),
        }
    }

    /// Index of key `place` of read `index`, where keys are of several spaces, or no records.
    #[inline(never)]
    fn read_key_of_many_kinds(&self, index: u64, place: u64, maker: &RequestMaker) -> u64 {
        let (ops, keys) = (&self.draws.op, &self.draws.key);
        if let Some(key) = maker.unstored_key(ops, keys, (index, place), self.number()) {
            return key;
        }
        if maker.task.scans() {
            return maker.scanned(self.record(index, 0, Space::Plain, maker), place);
        }
        let space = match maker.task.has_spaces() {
            true => maker.task.space(ops.draw_sub(index, 1 + place)),
            false => Space::Plain,
        };
        if space == Space::Plain && maker.task.is_latest() {
            return self.newest_key(index, maker);
        }
        self.record(index, place, space, maker)
    }

    /// The verb and key of the next piece. A client adds only to keys of its own, because it cannot know the length of a
    /// value that other clients add to. Before a value would grow too long, the client stores the next key anew.
    pub(super) fn add_piece(&mut self, verb: Verb, maker: &RequestMaker) -> (Verb, u64) {
        let (key, limit) = maker.piece_key(self.number(), self.own.turn.into());
        let piece = maker.records.piece_bytes(key);
        if self.own.bytes > 0 && self.own.bytes + piece <= limit {
            self.own.bytes += piece;
            return (verb, key);
        }
        self.own.turn = self.own.turn.wrapping_add(u32::from(self.own.bytes > 0));
        let (key, _) = maker.piece_key(self.number(), self.own.turn.into());
        self.own.bytes = maker.records.piece_bytes(key);
        (Verb::Set, key)
    }

    /// The version that a store writes, and the state to remember until the store is answered.
    fn mark_store(&mut self) -> (Version, CheckState) {
        match &mut self.writer {
            Some(writer) => {
                let version = writer.send();
                (version, CheckState::Write(version))
            }
            None => (Version::LOADED, CheckState::Counted),
        }
    }

    /// Number of keys of the whole request that the ticket belongs to.
    #[inline]
    pub(super) fn places_of(&self, ticket: &Ticket, maker: &RequestMaker) -> u16 {
        match ticket.origin {
            Origin::Part | Origin::ResentPart => {
                maker.task.keys_of(ticket.verb, &self.draws.op, ticket.index)
            }
            _ => ticket.keys,
        }
    }

    /// The random bits that the expiry of a request is drawn from; 0 where the expiry is not drawn.
    #[inline]
    pub(super) fn expiry_bits(&self, verb: Verb, index: u64, maker: &RequestMaker) -> u64 {
        if maker.records.sets_expiry(verb) { self.draws.expiry.draw(index) } else { 0 }
    }

    /// The request of this ticket, which is for one key and does not read, with the version and the CAS unique that it sends.
    #[inline(always)]
    pub(super) fn write_of<'a>(
        &self,
        ticket: &Ticket,
        (version, cas): (Version, u64),
        is_event: bool,
        maker: &'a mut RequestMaker,
    ) -> Op<'a> {
        let Ticket { verb, index, key, .. } = *ticket;
        if verb.is_command() {
            self.fill_places(ticket, maker);
        }
        let expiry_bits = self.expiry_bits(verb, index, maker);
        let size_bits = if maker.records.draws_length(verb) { self.draws.size.draw(index) } else { 0 };
        let op = maker.write(Write { verb, key, version, cas, expiry_bits, size_bits });
        match verb {
            Verb::Touch if is_event => Op { expiry_s: EXPIRED_S, noreply: false, ..op },
            _ if is_event => Op { noreply: false, ..op },
            _ => op,
        }
    }

    /// Fills the places of a command beside its record's key, number and value.
    #[inline(never)]
    fn fill_places(&self, ticket: &Ticket, maker: &mut RequestMaker) {
        let Ticket { verb, index, .. } = *ticket;
        let mut place = 0;
        while let Some(wanted) = maker.wanted(verb, place) {
            if place == 0 {
                maker.begin_keys();
                maker.add_key(ticket.key);
            }
            let found = match wanted {
                Wanted::Number(0) => ticket.key,
                Wanted::Key(draw) | Wanted::Number(draw) => self.record(index, draw, Space::Commands, maker),
                Wanted::Bits | Wanted::Bytes => self.draws.op.draw_sub(index, FILL_DRAWS + place as u64),
                Wanted::Client => self.number(),
                Wanted::Sequence => index,
                Wanted::NowMs => ticket.ready,
                Wanted::Field(_) => match ticket.check_state {
                    CheckState::DatasetRow(row) => row,
                    _ => 0,
                },
            };
            maker.add_fill(verb, place, found);
            place += 1;
        }
    }

    /// Takes the next row of the dataset for a request of a command with fields of it, which keeps the row when it is sent again.
    fn take_row(&mut self, ticket: &mut Ticket, maker: &RequestMaker) {
        let Ticket { verb, index, .. } = *ticket;
        let bits = || self.draws.op.draw_sub(index, ROW_DRAW);
        if let Some(row) = maker.dataset_row(verb, (index, self.number()), self.own.rows_taken.into(), bits) {
            ticket.check_state = CheckState::DatasetRow(row);
            self.own.rows_taken = self.own.rows_taken.wrapping_add(1);
        }
    }

    /// Adds the keys and values of an mset to the request. Their versions follow each other; the first is returned.
    pub(super) fn add_pairs(&mut self, index: u64, keys: u16, maker: &mut RequestMaker) -> CheckState {
        let mut check_state = CheckState::None;
        maker.begin_keys();
        for place in 0..keys {
            let key = self.record(index, u64::from(place), Space::Plain, maker);
            self.add_pair(key, &mut check_state, maker);
        }
        if check_state == CheckState::None && maker.counts_cache() {
            CheckState::Counted
        } else {
            check_state
        }
    }

    /// Adds the next key and value of an mset to the request.
    pub(super) fn add_pair(&mut self, key: u64, check_state: &mut CheckState, maker: &mut RequestMaker) {
        let version = self.writer.as_mut().map_or(Version::LOADED, |writer| writer.send());
        if *check_state == CheckState::None && self.writer.is_some() {
            *check_state = CheckState::Write(version);
        }
        maker.add_pair(key, version);
    }
}

impl Client {
    /// Turns a request into the bytes that are sent and the ticket that is remembered.
    #[inline(always)]
    pub(super) fn ask<'a>(
        &mut self,
        request: NextRequest,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        self.under_way.slots.take();
        self.ask_in_slot(request, due, ready, maker)
    }

    /// Turns a request that has its slot into the bytes that are sent and the ticket that is remembered.
    #[inline(always)]
    pub(super) fn ask_in_slot<'a>(
        &mut self,
        request: NextRequest,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let NextRequest { verb, index, key, cas, origin, pair_due, .. } = request;
        let mut ticket = Ticket { due, ready, index, key, origin, ..Ticket::of(verb) };
        if !verb.reads() {
            return self.ask_write(ticket, (cas, pair_due), maker);
        }
        if matches!(origin, Origin::Arrival | Origin::BeforeModify) {
            ticket.keys = maker.task.keys_of(verb, &self.source.draws.op, index);
            self.source.draws.set_check_state(&mut ticket, maker);
        }
        let expiry_bits = self.source.expiry_bits(verb, index, maker);
        if ticket.keys > 1 || origin == Origin::BeforeCas {
            return self.ask_specially(ticket, expiry_bits, maker);
        }
        Action::Ask { lane: 0, op: maker.read_one(verb, key, expiry_bits), ticket }
    }

    /// A read of several keys, or before a cas.
    pub(super) fn ask_specially<'a>(
        &self,
        ticket: Ticket,
        expiry_bits: u64,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        if ticket.keys == 1 {
            let op = maker.read_one(ticket.verb, ticket.key, expiry_bits);
            // The cas stores whatever is found, so that the read makes and renews nothing.
            return Action::Ask { lane: 0, op: Op { meta: MetaAsk::default(), ..op }, ticket };
        }
        maker.begin_keys();
        maker.add_key(ticket.key);
        for place in 1..ticket.keys {
            let key = self.source.read_key(ticket.index, u64::from(place), maker);
            maker.add_key(key);
        }
        Action::Ask { lane: 0, op: maker.read_many(ticket.verb, expiry_bits), ticket }
    }

    /// A request of any verb that does not read.
    pub(super) fn ask_write<'a>(
        &mut self,
        mut ticket: Ticket,
        (cas, pair_due): (u64, Nanos),
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let Ticket { verb, index, .. } = ticket;
        let keys =
            if verb == Verb::Mset { maker.task.keys_of(verb, &self.source.draws.op, index) } else { 1 };
        if keys > 1 {
            ticket.keys = keys;
            ticket.check_state = self.source.add_pairs(index, ticket.keys, maker);
            return Action::Ask { lane: 0, op: maker.write_many(), ticket };
        }
        let mut version = Version::LOADED;
        if maker.checks.marks_stores() && verb.stores() {
            (version, ticket.check_state) = match maker.is_load() {
                true => (version, CheckState::Write(version)),
                false => self.source.mark_store(),
            };
        }
        if pair_due != NEVER {
            self.under_way.waiting.begin_store_of_pair(index, pair_due);
        }
        if verb.is_command() {
            if maker.sequence(verb).is_some_and(Sequence::is_divided) {
                ticket.origin = Origin::Sequence;
            }
            self.source.take_row(&mut ticket, maker);
        }
        let is_event = ticket.origin == Origin::Event;
        let op = self.source.write_of(&ticket, (version, cas), is_event, maker);
        Action::Ask { lane: 0, op, ticket }
    }
}
