//! Sequences of commands that are sent in several exchanges: in parts that wait for each other, or again where a node of a cluster did
//! not carry out all of it.

use super::cluster_requests::Redirected;
use super::{Action, Client, Lane};
use crate::cluster::hops::Hops;
use crate::connection::answer::Answer;
use crate::connection::inflight::{Origin, Ticket};
use crate::protocol::resp::sequence::{CommandSet, Sending, Sequence};
use crate::protocol::{Fault, Outcome};
use crate::time::{NEVER, Nanos};
use crate::workload::request::RequestMaker;

/// The state of a sequence between its exchanges.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceRest {
    /// The commands that are not carried out, those under way among them.
    left: CommandSet,
    /// The commands among them that go behind `ASKING`.
    asked: CommandSet,
    /// The commands under way, or those that are sent next.
    pub(super) sending: Sending,
    /// A transaction met a conflict.
    is_conflict: bool,
    /// The first error, with the commands that may be asked again.
    failure: Option<(Fault, CommandSet)>,
    /// The next exchange needs the connection of the one before.
    pub(super) is_bound: bool,
}

/// The meaning of the end of an exchange for its sequence.
pub(super) enum SequenceStep {
    /// The next commands are sent.
    GoesOn,
    /// The sequence ends so, unless it is repeated in part.
    Ends(Outcome),
}

impl SequenceRest {
    /// A sequence whose first part is under way.
    pub(super) fn new(sequence: &Sequence) -> SequenceRest {
        let left = sequence.all();
        let sending = sequence.next(left, 0);
        SequenceRest { left, asked: 0, sending, is_conflict: false, failure: None, is_bound: false }
    }

    /// Takes in the end of an exchange. `commands` are those that may be asked again. A transaction that was begun is ended also after
    /// an error, and what the connection watches is forgotten, as it would count for requests that follow.
    pub(super) fn take_in(
        &mut self,
        sequence: &Sequence,
        outcome: Outcome,
        commands: CommandSet,
    ) -> SequenceStep {
        match outcome {
            Outcome::Error(fault) if fault.unanswered() => {
                let outcome = self.failure.map_or(outcome, |(fault, _)| Outcome::Error(fault));
                return SequenceStep::Ends(outcome);
            }
            _ if self.sending.is_unwatching => {}
            Outcome::Error(fault) if self.failure.is_none() => self.failure = Some((fault, commands)),
            Outcome::Conflict => self.is_conflict = true,
            _ => {}
        }
        self.left &= !self.sending.commands;
        self.is_bound = !self.sending.is_unwatching && self.left != 0 && sequence.goes_on(self.left);
        // Of what failed before its transaction began, only what the connection watches is left.
        let is_begun = self.failure.is_none() || sequence.is_in_transaction(self.left);
        let watches = |commands| sequence.watches_before(self.left, commands);
        let is_watching = self.is_bound && self.failure.is_some_and(|(_, commands)| watches(commands));
        self.is_bound &= is_begun || is_watching;
        match self.failure {
            Some(_) if is_watching => {
                self.sending = Sending { is_unwatching: true, ..Sending::default() };
                SequenceStep::GoesOn
            }
            Some((fault, _)) if !self.is_bound => SequenceStep::Ends(Outcome::Error(fault)),
            None if self.left == 0 && self.is_conflict => SequenceStep::Ends(Outcome::Conflict),
            None if self.left == 0 => SequenceStep::Ends(Outcome::Ok),
            _ => {
                self.sending = sequence.next(self.left, self.asked);
                SequenceStep::GoesOn
            }
        }
    }

    /// Whether an exchange has failed already.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether what failed may be asked again.
    pub(super) fn is_repeatable(&self) -> bool {
        self.failure.is_none_or(|(_, commands)| commands != 0)
    }

    /// Lets what failed be asked again, behind `ASKING` or not; what got no answer is what was sent last.
    pub(super) fn repeat(&mut self, sequence: &Sequence, is_asking: bool) {
        let failed = self.failure.take().map_or(self.sending.commands, |(_, commands)| commands);
        let again = sequence.units_of(failed);
        self.left |= again;
        self.asked = if is_asking { again } else { 0 };
        self.sending = sequence.next(self.left, self.asked);
        self.is_bound = false;
    }
}

impl Client {
    /// Lets a sequence go on behind an exchange that has ended over `lane`. `found` is its place among the requests that go on.
    pub(super) fn go_on(
        &mut self,
        found: Option<usize>,
        rest: SequenceRest,
        (lane, answer, words): (Lane, &Answer<'_>, &[u8]),
    ) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let stays = rest.is_bound || rest.sending.is_asking || !is_of_cluster;
        let list = self.under_way.redirected_mut();
        let at = found.unwrap_or_else(|| {
            list.push(Redirected {
                ticket: first_ticket(answer.ticket),
                first_sent: NEVER,
                lane: None,
                by_owner: false,
                asking: false,
                hops: Hops::default(),
                wake_at: 0,
                under_way: None,
                last_lane: lane,
                fault: Fault::Closed,
                words: Box::default(),
                rest: None,
                is_cut_off: false,
            });
            list.len() - 1
        });
        let redirected = &mut list[at];
        if redirected.rest.is_none_or(|before| before.failure.is_none()) {
            (redirected.fault, redirected.words) = match rest.failure {
                Some((fault, _)) => (fault, words.into()),
                None => (Fault::Closed, Box::default()),
            };
        }
        redirected.first_sent = redirected.first_sent.min(answer.sent);
        redirected.lane = stays.then_some(lane);
        (redirected.wake_at, redirected.under_way, redirected.last_lane) = (0, None, lane);
        redirected.rest = Some(rest);
        self.is_plain = false;
    }

    /// Sends the next commands of a sequence that goes on, of a client without a cluster.
    pub(super) fn ask_on<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        let waits = |redirected: &Redirected| redirected.under_way.is_none();
        let Some(at) = self.under_way.redirected().iter().position(waits) else { return Action::Wait(now) };
        let Redirected { last_lane, is_cut_off, .. } = self.under_way.redirected()[at];
        if is_cut_off || !self.lanes.is_open(last_lane) {
            let (lane, whole) = self.fail(at, now, maker);
            self.note_plain();
            return Action::GivenUp(lane, Box::new(whole));
        }
        self.ask_again(at, last_lane, maker)
    }

    /// Takes in that the connection of this lane is closed: sequences that need it cannot go on.
    pub(super) fn cut_off_sequences(&mut self, lane: Lane) {
        let is_of_cluster = self.under_way.cluster().is_some();
        let Some(splits) = &mut self.under_way.splits else { return };
        for redirected in splits.redirected.iter_mut().filter(|redirected| redirected.last_lane == lane) {
            let needs_it = redirected.is_bound() || !is_of_cluster;
            redirected.is_cut_off |= needs_it && redirected.under_way.is_none();
        }
    }
}

/// The ticket of a request as it was asked, from that of its first exchange.
pub(super) fn first_ticket(ticket: &Ticket) -> Ticket {
    let origin = if ticket.origin == Origin::Sequence { Origin::Arrival } else { ticket.origin };
    Ticket { origin, ..*ticket }
}
