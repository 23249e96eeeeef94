//! The state of a sequence of commands between its exchanges.

use crate::protocol::resp::sequence::{CommandSet, Sending, Sequence};
use crate::protocol::{Fault, Outcome};

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

    /// The first error.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.failure.map(|(fault, _)| fault)
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
