//! Clients with several lanes: which lane a request takes, whether that lane is open, and requests that lanes share.
//!
//! A request waits until its lane is open, and the requests behind it wait with it. In open loop a request is counted as
//! unsent when its lane is lost for good. It is also counted as unsent when the phase has an end in time, another lane is
//! open, and the first attempt to open its lane again failed. In closed loop the client waits, as its user would, and is
//! done when the lane is lost for good.

use super::lane_set::{LaneSet, LaneState, Passage};
use super::next::NextRequest;
use super::split::{Split, Splits, WholeAnswer};
use super::{Action, Client, Lane};
use crate::client::route::Place;
use crate::connection::answer::{Answer, Stamp};
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::{Outcome, Verb};
use crate::time::{NEVER, Nanos};
use crate::workload::cache_counts::CacheCounts;
use crate::workload::key::Space;
use crate::workload::request::{CheckState, RequestMaker};

impl Client {
    /// Gives the client a lane to each of these servers of the Plan.
    ///
    /// # Panics
    /// Panics when there is no server.
    pub fn with_lanes(mut self, servers: &[u32]) -> Client {
        self.lanes = LaneSet::new(servers[0]);
        servers[1..].iter().for_each(|&server| self.add_lane(server));
        self
    }

    /// Adds a closed lane to this server of the Plan, behind the client's others. Requests that are under way stay where they
    /// are; requests that are asked later may take the lane.
    pub fn add_lane(&mut self, server: u32) {
        self.lanes.add(server);
        self.under_way.splits.get_or_insert_default();
        self.note_plain();
    }

    /// Takes in the end of a part of a request, and remembers the requests that its answer asks for. Returns the whole
    /// request when the part was its last; its slot is free then.
    ///
    /// # Panics
    /// Panics when the ticket does not belong to a part.
    pub fn handle_part(
        &mut self,
        lane: Lane,
        part: &Answer<'_>,
        message: &[u8],
        maker: &mut RequestMaker,
    ) -> Option<WholeAnswer> {
        if let CheckState::Write(version) = part.ticket.check_state {
            self.end_write(lane, version, part, maker);
        }
        self.count_answer(lane, part, maker);
        if part.ticket.verb.reads() {
            self.follow_read(lane, part, maker);
        }
        self.end_reply(lane);
        self.under_way.end_part(part, message, maker.take_cache_counts())
    }

    /// Whether only some parts of a request were asked. The worker then polls the client again at once, since the lanes of the
    /// other parts may be closed later.
    pub fn is_splitting(&self) -> bool {
        self.under_way.is_splitting()
    }

    /// Asks the next request of the schedule, which is due and has a free slot, if its lanes are open.
    pub(super) fn poll_arrival<'a>(
        &'a mut self,
        due: Nanos,
        ready: Nanos,
        now: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let (index, own) = (self.source.issued, self.source.own);
        let request = self.source.draw(index, due, maker);
        let (lane, passage) = self.find_lane(&request, now, maker);
        let Passage::Open(opened) = passage else {
            // The request is drawn again later, or is never sent.
            self.source.own = own;
            self.splits_mut().parked.clear();
            return match (passage, &self.source.schedule) {
                (Passage::Never, Some(_)) => {
                    self.source.step();
                    let verb = maker.task.verb_of(index, &self.source.draws.op);
                    Action::Unsent { verb, due, place: 0 }
                }
                (Passage::Never, None) if self.under_way.slots.outstanding == 0 => Action::Done,
                (Passage::Never, None) => Action::Wait(NEVER),
                _ => Action::Wait(self.source.assignment.end),
            };
        };
        self.source.step();
        let ready = ready.max(opened);
        if self.under_way.is_splitting() {
            self.under_way.slots.take();
            self.split(&request, due, ready);
            return self.ask_part(maker);
        }
        self.ask(request, due, ready, maker).over(lane)
    }

    /// Returns which lane a request takes, and whether it is open. Where the request takes several lanes, `parked` has them
    /// afterwards.
    pub(super) fn find_lane(
        &mut self,
        request: &NextRequest,
        now: Nanos,
        maker: &mut RequestMaker,
    ) -> (Lane, Passage) {
        let first = self.find_places(request, maker);
        let passage = match self.splits_mut().parked.is_empty() {
            true => self.passage(first, now),
            false => {
                let lanes = std::mem::take(&mut self.splits_mut().parked);
                let parts = lanes.chunk_by(|(lane, _), (other, _)| lane == other);
                let passage =
                    parts.map(|part| self.passage(part[0].0, now)).fold(Passage::Open(0), Passage::and);
                self.splits_mut().parked = lanes;
                passage
            }
        };
        (first, passage)
    }

    /// Returns the place of a request, or the first of them. Where the request has several places, `parked` has them and their
    /// keys afterwards, sorted by place.
    pub(super) fn find_places(&mut self, request: &NextRequest, maker: &mut RequestMaker) -> Place {
        let keys = match request.origin {
            Origin::Arrival => maker.task.keys_of(request.verb, &self.source.draws.op, request.index),
            _ => 1,
        };
        if keys == 1 || !maker.routing.owns_keys() {
            let turn = self.turn_of(request.index, maker);
            return maker.place_of(turn, request.key);
        }
        let mut places = std::mem::take(&mut self.splits_mut().parked);
        places.clear();
        for number in 0..keys {
            let key = match request.verb.reads() {
                true => self.source.read_key(request.index, u64::from(number), maker),
                false => self.source.record(request.index, u64::from(number), Space::Plain, maker),
            };
            places.push((maker.place_of(0, key), key));
        }
        places.sort_by_key(|&(place, _)| place);
        let first = places[0].0;
        if places.iter().all(|&(place, _)| place == first) {
            places.clear();
        }
        self.splits_mut().parked = places;
        first
    }

    /// The turn of request `index`, where lanes take turns.
    fn turn_of(&self, index: u64, maker: &RequestMaker) -> u64 {
        if maker.is_load() {
            return maker.routing.load_number(index, self.source.number());
        }
        match maker.task.verb_of(index, &self.source.draws.op) {
            // All pieces of one key have to be stored on one server.
            Verb::Append | Verb::Prepend => self.source.number() + u64::from(self.source.own.turn),
            _ => self.source.number() + index,
        }
    }

    /// Begins a request that the places in `parked` share, and that has its slot.
    pub(super) fn split(&mut self, request: &NextRequest, due: Nanos, ready: Nanos) {
        let splits = self.splits_mut();
        let parts = splits.parked.chunk_by(|(place, _), (other, _)| place == other).count() as u16;
        let ticket = Ticket {
            due,
            ready,
            index: request.index,
            key: request.key,
            keys: splits.parked.len() as u16,
            place: splits.parked[0].0,
            ..Ticket::of(request.verb)
        };
        let whole = WholeAnswer {
            ticket,
            outcome: Outcome::Miss,
            sent: NEVER,
            arrived: 0,
            read: 0,
            hits: 0,
            stamp: Stamp::Nothing,
            message: Vec::new(),
            cache: CacheCounts::default(),
        };
        // Requests that had to wait for a node come after later ones.
        let place = splits.begun.partition_point(|other| other.whole.ticket.index < request.index);
        splits.begun.insert(place, Split { parts, whole });
        splits.newest = place;
    }

    /// Asks the next part of the newest split, over the lane that is its place.
    pub(super) fn ask_part<'a>(&mut self, maker: &'a mut RequestMaker) -> Action<'a> {
        let splits = self.splits_mut();
        let (place, whole) = splits.next_part();
        let (lane, key) = (place, splits.parked[0].1);
        let len = splits.parked.iter().take_while(|part| part.0 == place).count();
        let keys: Vec<u64> = splits.parked.drain(..len).map(|(_, key)| key).collect();
        let mut ticket = Ticket { key, origin: Origin::Part, keys: len as u16, place, ..whole };
        if !ticket.verb.reads() {
            maker.begin_keys();
            keys.iter().for_each(|&key| self.source.add_pair(key, &mut ticket.check_state, maker));
            return Action::Ask { lane, op: maker.write_many(), ticket };
        }
        self.source.draws.set_check_state(&mut ticket, maker);
        let expiry_bits = self.source.expiry_bits(ticket.verb, ticket.index, maker);
        if len == 1 {
            return Action::Ask { lane, op: maker.read_one(ticket.verb, key, expiry_bits), ticket };
        }
        maker.begin_keys();
        keys.iter().for_each(|&key| maker.add_key(key));
        Action::Ask { lane, op: maker.read_many(ticket.verb, expiry_bits), ticket }
    }

    /// Returns the state of this lane as a request meets it.
    pub(super) fn passage(&self, lane: Lane, now: Nanos) -> Passage {
        let socket = self.lanes.get(lane);
        match socket.state {
            LaneState::Open(since) => Passage::Open(since),
            LaneState::Lost => Passage::Never,
            _ if now >= self.source.assignment.end => Passage::Never,
            _ if socket.down && self.may_skip() => Passage::Never,
            _ => Passage::Later,
        }
    }

    /// Whether the client goes on without a lane that may be opened again, since its schedule does not wait for the lane.
    fn may_skip(&self) -> bool {
        self.source.schedule.is_some() && self.source.assignment.end != NEVER && self.lanes.open() > 0
    }

    pub(super) fn splits_mut(&mut self) -> &mut Splits {
        let Some(splits) = &mut self.under_way.splits else {
            unreachable!("only clients with several lanes come here")
        };
        splits
    }
}
