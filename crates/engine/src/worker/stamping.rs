//! The choice of the requests that are stamped when they leave, and the use of their stamps.
//!
//! A stamped request ends with the last byte of a send, since the kernel stamps the last byte of a send. If other
//! requests follow the drawn request in its send, the next request of the connection that ends a send is stamped
//! instead.

use std::collections::VecDeque;

use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::plan::TransmitSampling;
use pummel_logic::protocol::Outcome;
use pummel_logic::rng::mix;
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::transmit::{Departure, TransmitTimes};

use crate::backend::{Backend, ConnId, Mark, TransmitStamp};

/// Longest wait for the card's stamp of an answered request, in nanoseconds.
const LATE_MAX_NS: Nanos = SECOND;

/// Most answered requests of one worker that wait for their card stamps; beyond that the oldest is given up.
const LATE_MAX: usize = 4_096;

/// Most stamped requests of one worker that are under way; requests that are drawn beyond that are not stamped.
const UNDER_WAY_MAX: u16 = u16::MAX;

/// The stamped requests of one worker.
#[derive(Debug)]
pub struct Stamping {
    sampling: TransmitSampling,
    seed: u64,
    /// For each slot, the generation of the connection on which a request was drawn and none stamped since.
    drawn: Vec<Option<u32>>,
    /// The stamped requests under way, by their number less 1.
    under_way: Vec<(ConnId, Mark)>,
    /// Numbers that are free again.
    free: Vec<u16>,
    /// The stamped requests whose good replies were read in this turn.
    answered: Vec<Answered>,
    /// Answered requests whose replies the card has stamped, and whose own card stamps are still to come.
    late: VecDeque<Late>,
    /// Marks that were given.
    given: u64,
}

/// A stamped request whose reply was read.
#[derive(Debug)]
struct Answered {
    number: u16,
    sent: Nanos,
    arrived: Option<Nanos>,
    read: Nanos,
}

/// An answered request that waits for its card stamp.
#[derive(Debug)]
struct Late {
    conn: ConnId,
    mark: Mark,
    /// The card's stamp of the reply.
    received: Nanos,
    /// The time at which the stamp is given up.
    until: Nanos,
}

impl Stamping {
    /// Stamping without a request under way, of a plan with this seed.
    pub fn new(sampling: TransmitSampling, seed: u64) -> Stamping {
        Stamping {
            sampling,
            seed,
            drawn: Vec::new(),
            under_way: Vec::new(),
            free: Vec::new(),
            answered: Vec::new(),
            late: VecDeque::new(),
            given: 0,
        }
    }

    /// A number and a mark for the next send of a connection, if a request was drawn on it; `owner` is its client by
    /// group and number, and `tickets` are the requests that wait to be sent.
    pub fn begin<'t>(
        &mut self,
        conn: ConnId,
        owner: (u64, u64),
        mut tickets: impl Iterator<Item = &'t Ticket>,
    ) -> Option<(u16, Mark)> {
        let slot = conn.slot as usize;
        if self.drawn.len() <= slot {
            self.drawn.resize(slot + 1, None);
        }
        let is_drawn = self.drawn[slot] == Some(conn.generation)
            || tickets.any(|ticket| self.draws(owner, ticket.index));
        self.drawn[slot] = is_drawn.then_some(conn.generation);
        if !is_drawn || self.free.is_empty() && self.under_way.len() >= usize::from(UNDER_WAY_MAX) {
            return None;
        }
        self.given += 1;
        let mark = Mark(self.given);
        let number = match self.free.pop() {
            Some(number) => {
                self.under_way[usize::from(number) - 1] = (conn, mark);
                number
            }
            None => {
                self.under_way.push((conn, mark));
                self.under_way.len() as u16
            }
        };
        Some((number, mark))
    }

    /// Whether a request of a client is drawn: by nothing but the seed, the client and the number of the request, and so
    /// not by threads, load or answers.
    fn draws(&self, (group, client): (u64, u64), request: u64) -> bool {
        mix(&[self.seed, group, client, request]).is_multiple_of(u64::from(self.sampling.every))
    }

    /// Notes that the send of a number was whole, so that its request is under way with it.
    pub fn handle_sent(&mut self, conn: ConnId) {
        self.drawn[conn.slot as usize] = None;
    }

    /// Takes back a number whose request was not sent, or ended without a good reply.
    pub fn release(&mut self, number: u16) {
        self.free.push(number);
    }

    /// Takes in the answer to a stamped request. Returns whether its stamp is to be taken.
    pub fn handle_answer(&mut self, answer: &Answer<'_>) -> bool {
        if answer.stamp == Stamp::Nothing || matches!(answer.outcome, Outcome::Error(_)) {
            self.release(answer.mark);
            return false;
        }
        let arrived = (answer.stamp == Stamp::Kernel).then_some(answer.arrived);
        self.answered.push(Answered { number: answer.mark, sent: answer.sent, arrived, read: answer.read });
        true
    }

    /// Takes the stamps of the requests that were answered in this turn, and records them. Returns whether one could not
    /// be true.
    pub fn record(&mut self, backend: &mut dyn Backend, times: &mut TransmitTimes) -> bool {
        let (mut is_wrong, mut now) = (false, 0);
        for Answered { number, sent, arrived, read } in self.answered.drain(..) {
            now = now.max(read);
            let (conn, mark) = self.under_way[usize::from(number) - 1];
            self.free.push(number);
            match backend.transmit_stamp(conn, mark) {
                TransmitStamp::Left { at, scheduled } => {
                    is_wrong |= !times.record(&Departure { sent, scheduled, left: at, arrived });
                    if self.sampling.hardware {
                        match arrived.and_then(|arrived| backend.received_by_card(conn, arrived)) {
                            Some(received) => {
                                let until = read.saturating_add(LATE_MAX_NS);
                                self.late.push_back(Late { conn, mark, received, until });
                            }
                            None => times.counts.wire_missing += 1,
                        }
                    }
                }
                TransmitStamp::Merged => times.counts.tx_merged += 1,
                TransmitStamp::Missing => times.counts.tx_missing += 1,
            }
        }
        if !self.late.is_empty() {
            self.take_late(backend, times, now);
        }
        is_wrong
    }

    /// Takes the card's stamps that have come, and gives up those that did not come in time.
    fn take_late(&mut self, backend: &mut dyn Backend, times: &mut TransmitTimes, now: Nanos) {
        self.late.retain(|late| match backend.left_by_card(late.conn, late.mark) {
            None if now < late.until => true,
            left => {
                times.record_wire(left, late.received);
                false
            }
        });
        while self.late.len() > LATE_MAX {
            self.late.pop_front();
            times.counts.wire_missing += 1;
        }
    }

    /// Gives up the card's stamps that have not come by the end of a phase.
    pub fn give_up(&mut self, times: &mut TransmitTimes) {
        times.counts.wire_missing += self.late.len() as u64;
        self.late.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, IoSlice};

    use pummel_logic::protocol::{Fault, Verb};

    use super::*;
    use crate::backend::{Close, Event, Handed, Target};

    fn ticket(index: u64) -> Ticket {
        Ticket { index, ..Ticket::of(Verb::Get) }
    }

    fn answer(ticket: &Ticket, outcome: Outcome, mark: u16) -> Answer<'_> {
        Answer { ticket, outcome, sent: 5, arrived: 9, read: 10, hits: 1, stamp: Stamp::Kernel, mark }
    }

    fn stamping(every: u32) -> Stamping {
        Stamping::new(TransmitSampling { every, scheduled: false, hardware: false }, 1)
    }

    const CONN: ConnId = ConnId { slot: 3, generation: 7 };

    #[test]
    fn one_request_in_n_is_drawn_and_the_draw_is_the_clients_own() {
        let drawn = |stamping: &mut Stamping, client| -> Vec<u64> {
            let mut is_drawn = |index: &u64| {
                let sample = stamping.begin(CONN, (0, client), std::iter::once(&ticket(*index)));
                sample.is_some_and(|(number, _)| {
                    stamping.handle_sent(CONN);
                    stamping.release(number);
                    true
                })
            };
            (0..64_000).filter(|index| is_drawn(index)).collect()
        };
        let (mut one, mut other) = (stamping(64), stamping(64));
        let first = drawn(&mut one, 1);
        assert!((900..1_100).contains(&first.len()), "{}", first.len());
        assert_ne!(drawn(&mut one, 2), first);
        assert_eq!(drawn(&mut other, 1), first, "whatever the worker has drawn before");
        assert_eq!(one.under_way.len(), 1, "numbers are used again");
    }

    #[test]
    fn a_request_that_was_drawn_and_not_sent_is_made_up_for_on_its_connection() {
        let mut stamping = stamping(1);
        let (number, first) = stamping.begin(CONN, (0, 0), std::iter::once(&ticket(0))).unwrap();
        stamping.release(number);
        let (_, second) = stamping.begin(CONN, (0, 0), std::iter::empty()).expect("it is still drawn");
        assert_ne!(first, second, "a mark is never used again");
        stamping.handle_sent(CONN);
        assert_eq!(stamping.begin(CONN, (0, 0), std::iter::empty()), None);
        let later = ConnId { generation: 8, ..CONN };
        let _ = stamping.begin(CONN, (0, 0), std::iter::once(&ticket(1)));
        assert_eq!(
            stamping.begin(later, (0, 0), std::iter::empty()),
            None,
            "another connection owes nothing"
        );
    }

    #[test]
    fn requests_under_way_have_a_limit_and_those_without_a_good_reply_make_room() {
        let mut stamping = stamping(1);
        let begin = |stamping: &mut Stamping| stamping.begin(CONN, (0, 0), std::iter::once(&ticket(0)));
        for _ in 0..UNDER_WAY_MAX {
            assert!(begin(&mut stamping).is_some());
        }
        assert_eq!(begin(&mut stamping), None);
        let ticket = ticket(0);
        assert!(!stamping.handle_answer(&answer(&ticket, Outcome::Error(Fault::Server), 17)));
        assert_eq!(begin(&mut stamping).map(|(number, _)| number), Some(17));
        assert!(stamping.handle_answer(&answer(&ticket, Outcome::Hit, 17)));
        assert_eq!(stamping.answered.len(), 1);
    }

    /// A backend with a network card: the card's stamps of every send and of every reply.
    #[derive(Default)]
    struct WithCard {
        left: Option<Nanos>,
        received: Option<Nanos>,
    }

    impl Backend for WithCard {
        fn now(&self) -> Nanos {
            0
        }

        fn open(&mut self, _: ConnId, _: &Target) {}

        fn send(&mut self, _: ConnId, _: &[IoSlice<'_>]) -> Handed {
            Handed { taken: 0, at: 0 }
        }

        fn transmit_stamp(&mut self, _: ConnId, _: Mark) -> TransmitStamp {
            TransmitStamp::Left { at: 6, scheduled: None }
        }

        fn received_by_card(&mut self, _: ConnId, arrived: Nanos) -> Option<Nanos> {
            assert_eq!(arrived, 9, "the stamp of the reply");
            self.received
        }

        fn left_by_card(&mut self, _: ConnId, _: Mark) -> Option<Nanos> {
            self.left
        }

        fn close(&mut self, _: ConnId, _: Close) {}

        fn wait(&mut self, _: Nanos) -> io::Result<Nanos> {
            Ok(0)
        }

        fn drain(&mut self, _: &mut impl FnMut(ConnId, Event<'_>)) {}
    }

    /// Answers one stamped request, whose reply is read at `read`, and records the stamps of the backend.
    fn answered(stamping: &mut Stamping, backend: &mut WithCard, times: &mut TransmitTimes, read: Nanos) {
        let ticket = ticket(0);
        let (number, _) = stamping.begin(CONN, (0, 0), std::iter::once(&ticket)).expect("every one is drawn");
        stamping.handle_sent(CONN);
        assert!(stamping.handle_answer(&Answer { read, ..answer(&ticket, Outcome::Hit, number) }));
        assert!(!stamping.record(backend, times));
    }

    fn by_card() -> Stamping {
        Stamping::new(TransmitSampling { every: 1, scheduled: false, hardware: true }, 1)
    }

    #[test]
    fn a_stamp_of_the_card_that_is_late_is_taken_at_a_later_reply() {
        let (mut stamping, mut times) = (by_card(), TransmitTimes::default());
        let mut backend = WithCard { left: None, received: Some(1_000_500) };
        answered(&mut stamping, &mut backend, &mut times, 10);
        assert_eq!((times.out.count(), times.wire.count(), stamping.late.len()), (1, 0, 1));
        backend.left = Some(1_000_000);
        answered(&mut stamping, &mut backend, &mut times, LATE_MAX_NS);
        assert_eq!((times.wire.count(), times.wire.moments().max), (2, 500));
        assert_eq!((times.counts.wire_missing, stamping.late.len()), (0, 0));
    }

    #[test]
    fn a_stamp_of_the_card_that_does_not_come_is_given_up_after_a_second_and_at_the_end() {
        let (mut stamping, mut times) = (by_card(), TransmitTimes::default());
        let mut backend = WithCard { left: None, received: Some(7) };
        answered(&mut stamping, &mut backend, &mut times, 10);
        answered(&mut stamping, &mut backend, &mut times, 9 + LATE_MAX_NS);
        assert_eq!((times.counts.wire_missing, stamping.late.len()), (0, 2), "the second is not over");
        answered(&mut stamping, &mut backend, &mut times, 10 + LATE_MAX_NS);
        assert_eq!((times.counts.wire_missing, stamping.late.len()), (1, 2));
        stamping.give_up(&mut times);
        assert_eq!((times.counts.wire_missing, stamping.late.len()), (3, 0));
        assert_eq!((times.wire.count(), times.out.count()), (0, 3), "the kernel's stamps are what they are");
    }

    #[test]
    fn without_the_cards_stamp_of_the_reply_nothing_is_waited_for() {
        let (mut stamping, mut times) = (by_card(), TransmitTimes::default());
        answered(&mut stamping, &mut WithCard::default(), &mut times, 10);
        assert_eq!((times.counts.wire_missing, stamping.late.len()), (1, 0));
    }

    #[test]
    fn stamps_that_are_waited_for_have_a_limit() {
        let (mut stamping, mut times) = (by_card(), TransmitTimes::default());
        let mut backend = WithCard { left: None, received: Some(7) };
        for _ in 0..LATE_MAX + 3 {
            answered(&mut stamping, &mut backend, &mut times, 10);
        }
        assert_eq!((stamping.late.len(), times.counts.wire_missing), (LATE_MAX, 3));
    }
}
