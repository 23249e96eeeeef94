//! The replies to the commands of a sequence, of which one answer is made.

use super::asked::UncommonReplies;
use super::reply::ValueHead;
use super::sequence::{CommandSet, Role, Sending, Sequence};
use crate::protocol::{Fault, Outcome};

/// A command whose reply is expected, with what its sequence knows of it.
#[derive(Clone, Copy, Debug)]
struct ExpectedCommand {
    number: u8,
    role: Role,
    unit: CommandSet,
    has_keys: bool,
    /// The reply to `ASKING` comes before the command's own.
    is_asking: bool,
}

/// The replies to one sequence, or to those of its commands that were sent at once.
#[derive(Debug, Default)]
pub(super) struct SequenceReplies {
    /// The commands, the next one last.
    expected: Vec<ExpectedCommand>,
    /// The fault that the sequence ends with; `None` without an error.
    fault: Option<Fault>,
    /// The server's words for it.
    words: Vec<u8>,
    /// The commands that a node of a cluster did not carry out.
    redirected: CommandSet,
    /// An error says that the sequence is not to be repeated.
    is_final: bool,
    /// A transaction was not carried out, since what it watches was changed.
    is_conflict: bool,
    /// The transaction, or what it watches, that the last replies were of.
    unit: CommandSet,
    /// A command of this unit has failed, so that what follows in it says nothing more.
    has_failed: bool,
    /// A command of this unit found its keys where it was sent.
    is_served: bool,
}

impl SequenceReplies {
    /// Expects the replies to these commands, in the memory of replies that have come.
    pub(super) fn expect(&mut self, sequence: &Sequence, sending: Sending) {
        let (mut expected, mut words) = (std::mem::take(&mut self.expected), std::mem::take(&mut self.words));
        expected.clear();
        words.clear();
        expected.extend(super::sequence::numbers(sending.commands).filter_map(|number| {
            let &super::sequence::SequenceCommand { role, unit, has_keys, .. } =
                sequence.commands.get(number)?;
            let is_asking = sending.is_asking && sequence.takes_asking(number);
            Some(ExpectedCommand { number: number as u8, role, unit, has_keys, is_asking })
        }));
        expected.reverse();
        let first = expected.last();
        *self = SequenceReplies {
            // What was sent before of the same unit was served.
            unit: first.map_or(0, |first| first.unit),
            is_served: first.is_some_and(|first| sequence.goes_on(1 << first.number)),
            expected,
            words,
            ..SequenceReplies::default()
        };
    }

    /// Whether the next reply is that to `EXEC`.
    pub(super) fn is_of_exec(&self) -> bool {
        self.expected.last().is_some_and(|next| next.role == Role::Exec && !next.is_asking)
    }

    /// Takes in an error, or that of a value in the list of `EXEC` (`is_in_list`).
    pub(super) fn fail(&mut self, fault: Fault, words: &[u8], is_in_list: bool) {
        let Some(&next) = self.expected.last() else { return };
        self.turn_to(next);
        let is_block = next.unit.count_ones() > 1;
        if is_block && self.has_failed {
            return;
        }
        self.has_failed = true;
        let is_redirect =
            matches!(fault, Fault::Moved | Fault::Down | Fault::Again) || words.starts_with(b"READONLY ");
        let is_final = is_in_list || next.is_asking || !is_redirect;
        self.redirected |= 1 << next.number;
        if self.fault.is_some() && (self.is_final || !is_final) {
            return;
        }
        let is_ask = words.starts_with(b"ASK ");
        let is_half = is_ask && is_block && self.is_served && next.role != Role::Exec;
        (self.fault, self.is_final) = (Some(if is_half { Fault::Again } else { fault }), is_final);
        self.words.clear();
        self.words.extend_from_slice(words);
    }

    /// Takes in the first line of a reply that is no error.
    pub(super) fn pass(&mut self, head: ValueHead) {
        let Some(&next) = self.expected.last() else { return };
        self.turn_to(next);
        if next.is_asking {
            return;
        }
        self.is_conflict |= next.role == Role::Exec && head == ValueHead::Null;
        self.is_served |= next.has_keys;
        // Some keys of the transaction are here, and others are asked for elsewhere.
        let is_half = self.has_failed && next.has_keys && self.words.starts_with(b"ASK ");
        if is_half && next.unit.count_ones() > 1 && self.redirected & next.unit != 0 && !self.is_final {
            self.fault = Some(Fault::Again);
        }
    }

    /// Takes in that the reply to a command is whole. Returns the outcome of the sequence when it was the last one.
    pub(super) fn end_command(&mut self) -> Option<Outcome> {
        match self.expected.last_mut() {
            Some(next) if next.is_asking => next.is_asking = false,
            _ => {
                self.expected.pop();
            }
        }
        if !self.expected.is_empty() {
            return None;
        }
        Some(match self.fault {
            Some(fault) => {
                let commands = if self.is_final { 0 } else { self.redirected };
                Outcome::Failed { fault, commands }
            }
            None if self.is_conflict => Outcome::Conflict,
            None => Outcome::Ok,
        })
    }

    /// Begins the unit of the command whose reply has come.
    fn turn_to(&mut self, next: ExpectedCommand) {
        if self.unit != next.unit {
            (self.unit, self.has_failed, self.is_served) = (next.unit, false, false);
        }
    }
}

impl UncommonReplies {
    /// Expects the replies to these commands of a sequence.
    pub(super) fn ask_sequence(&mut self, sequence: &Sequence, sending: Sending) {
        let mut replies = self.spare_sequence.take().unwrap_or_default();
        replies.expect(sequence, sending);
        self.sequences.push_back(replies);
    }

    /// Takes in that the oldest sequence was answered. The words of its error are those of the reply.
    pub(super) fn answer_sequence(&mut self) {
        if let Some(mut replies) = self.sequences.pop_front() {
            std::mem::swap(&mut self.words, &mut replies.words);
            self.spare_sequence = Some(replies);
        }
    }
}
