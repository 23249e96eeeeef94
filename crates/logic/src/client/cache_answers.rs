//! A client's counts of replies: why keys were missed, the bytes of values, and the lives of stored keys.

use super::{Client, Lane};
use crate::connection::answer::Answer;
use crate::connection::inflight::Origin;
use crate::protocol::{Outcome, Verb};
use crate::workload::cache_requests::AskedKey;
use crate::workload::key::Space;
use crate::workload::request::RequestMaker;

impl Client {
    /// Counts what an answer says about the cache, where answers are counted.
    pub(super) fn count_answer(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        if !maker.counts_cache() || matches!(answer.outcome, Outcome::Error(_)) {
            return;
        }
        maker.turn_to(self.source.number(), self.source.moment(answer.ticket.index, answer.ticket.due));
        if answer.ticket.verb.reads() {
            self.count_read(lane, answer, maker);
        } else {
            self.count_write(lane, answer, maker);
        }
    }

    /// Counts the hits and misses of a read.
    fn count_read(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        let ticket = answer.ticket;
        maker.count_hit_bytes(self.lanes.get(lane).value_bytes);
        self.complete_missed(lane, answer, maker);
        let socket = self.lanes.get(lane);
        for &key in &socket.missed {
            maker.count_miss(self.asked_key(lane, key, ticket.index, maker), answer.arrived);
        }
        let is_renewed = ticket.verb.has_expiry() && ticket.keys == 1 && answer.hits == 1;
        if is_renewed {
            let bits = self.source.expiry_bits(ticket.verb, ticket.index, maker);
            let until = maker.lives_until(ticket.verb, answer.sent, bits);
            maker.handle_renewed(socket.server, ticket.key, until);
        }
    }

    /// Counts the stores of a request, and remembers the state of its keys.
    fn count_write(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        let ticket = answer.ticket;
        let (verb, server) = (ticket.verb, self.lanes.get(lane).server);
        if ticket.origin == Origin::Fill {
            maker.count_fill(answer.outcome == Outcome::NotStored);
        }
        let bits = self.source.expiry_bits(verb, ticket.index, maker);
        match answer.outcome {
            Outcome::Stored => {
                let until = maker.lives_until(verb, answer.sent, bits);
                for key in self.written_keys(answer, maker) {
                    maker.handle_stored(self.asked_key(lane, key, ticket.index, maker), until);
                }
            }
            Outcome::NotStored if verb == Verb::Add => maker.handle_found(server, ticket.key),
            Outcome::Deleted => maker.handle_deleted(server, ticket.key),
            Outcome::Touched if ticket.origin == Origin::Event => maker.handle_renewed(server, ticket.key, 0),
            Outcome::Touched => {
                let until = maker.lives_until(verb, answer.sent, bits);
                maker.handle_renewed(server, ticket.key, until);
            }
            _ => {}
        }
    }

    /// The keys that a request, or a part of one, wrote.
    fn written_keys(&self, answer: &Answer<'_>, maker: &mut RequestMaker) -> Vec<u64> {
        let ticket = answer.ticket;
        if ticket.keys == 1 {
            return vec![ticket.key];
        }
        let keys = 0..self.source.places_of(ticket, maker);
        let keys = keys.map(|place| self.source.record(ticket.index, u64::from(place), Space::Plain, maker));
        let keys: Vec<u64> = keys.collect();
        let is_here = |key: &u64| !ticket.origin.is_part() || maker.place_of(0, *key) == ticket.place;
        keys.into_iter().filter(is_here).collect()
    }

    /// A key of request `index` that went over a lane.
    fn asked_key(&self, lane: Lane, key: u64, index: u64, maker: &RequestMaker) -> AskedKey<'_> {
        let draws = maker.values().draws_lengths();
        AskedKey {
            key,
            server: self.lanes.get(lane).server,
            ops: &self.source.draws.op,
            index,
            size_bits: if draws { self.source.draws.size.draw(index) } else { 0 },
        }
    }
}
