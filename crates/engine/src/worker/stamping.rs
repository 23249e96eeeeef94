//! The requests that are stamped when they leave: which they are, and what became of them.
//!
//! A sampled request is one whose last byte is the last byte of a send, since the kernel stamps the last byte of a send.
//! Where the drawn request is followed by others in its send, the next request of its connection that ends a send is
//! taken in its place.

use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::measure::transmit::{Departure, TransmitTimes};
use pummel_logic::plan::TransmitSampling;
use pummel_logic::protocol::Outcome;
use pummel_logic::rng::mix;
use pummel_logic::time::Nanos;

use crate::backend::{Backend, ConnId, Mark, TransmitStamp};

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
    /// Marks that were given.
    given: u64,
}

/// A stamped request whose reply was read.
#[derive(Debug)]
struct Answered {
    number: u16,
    sent: Nanos,
    arrived: Option<Nanos>,
}

impl Stamping {
    /// No request under way, of a plan with this seed.
    pub fn new(sampling: TransmitSampling, seed: u64) -> Stamping {
        Stamping {
            sampling,
            seed,
            drawn: Vec::new(),
            under_way: Vec::new(),
            free: Vec::new(),
            answered: Vec::new(),
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
        self.answered.push(Answered { number: answer.mark, sent: answer.sent, arrived });
        true
    }

    /// Takes the stamps of the requests that were answered in this turn, and records them. Returns whether one could not
    /// be true.
    pub fn record(&mut self, backend: &mut impl Backend, times: &mut TransmitTimes) -> bool {
        let mut is_wrong = false;
        for Answered { number, sent, arrived } in self.answered.drain(..) {
            let (conn, mark) = self.under_way[usize::from(number) - 1];
            self.free.push(number);
            match backend.transmit_stamp(conn, mark) {
                TransmitStamp::Left { at, scheduled } => {
                    is_wrong |= !times.record(&Departure { sent, scheduled, left: at, arrived });
                }
                TransmitStamp::Merged => times.counts.tx_merged += 1,
                TransmitStamp::Missing => times.counts.tx_missing += 1,
            }
        }
        is_wrong
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::connection::inflight::{AnswerUse, CheckState, Origin};
    use pummel_logic::protocol::{Fault, Verb};

    use super::*;

    fn ticket(index: u64) -> Ticket {
        Ticket {
            due: 0,
            ready: 0,
            index,
            key: 0,
            check_state: CheckState::None,
            verb: Verb::Get,
            origin: Origin::Arrival,
            answer_use: AnswerUse::None,
            keys: 1,
        }
    }

    fn answer(ticket: &Ticket, outcome: Outcome, mark: u16) -> Answer<'_> {
        Answer { ticket, outcome, sent: 5, arrived: 9, read: 10, hits: 1, stamp: Stamp::Kernel, mark }
    }

    fn stamping(every: u32) -> Stamping {
        Stamping::new(TransmitSampling { every, scheduled: false }, 1)
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
}
