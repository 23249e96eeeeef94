//! The replies to the commands of a sequence, of which one answer is made.

use super::reply::ValueHead;
use super::sequence::{CommandSet, Role, Sending, Sequence, SequenceCommand, numbers};
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
    pub(super) words: Vec<u8>,
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
        expected.extend(numbers(sending.commands).filter_map(|number| {
            let &SequenceCommand { role, unit, has_keys, .. } = sequence.commands.get(number)?;
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
            matches!(fault, Fault::Moved | Fault::Down | Fault::Again) || was_not_carried_out(words);
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

/// Whether these words say that nothing was carried out, so that the command can be sent again.
fn was_not_carried_out(words: &[u8]) -> bool {
    words.starts_with(b"READONLY ") || words.starts_with(b"NOSCRIPT ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection::outbox::Outbox;
    use crate::protocol::contract::{Seen, cut_in_turn, every_cut, fuzz_decode, reply, sent};
    use crate::protocol::resp::Resp;
    use crate::protocol::resp::template::Template;
    use crate::protocol::{Codec, Op, Verb};
    use proptest::collection::vec;
    use proptest::prelude::{Just, any, prop_oneof, proptest};

    const TRANSACTION: &str = "WATCH k ; GET k ; MULTI ; INCR k ; PING ; SET k 1 ; EXEC";

    /// A codec that has sent these commands of the sequence, and a PING behind them.
    fn codec<const VERSION: u8>(text: &str, sending: Sending) -> Resp<VERSION> {
        let templates = [text, "PING"].map(|text| Template::parse(text).expect("a template"));
        let mut codec = Resp::<VERSION>::with_commands(Arc::new(templates.to_vec()));
        let mut out = Outbox::default();
        let sequence = Op { cas: sending.to_bits(), ..Op::new(Verb::Command, b"k") };
        for op in [sequence, Op::new(Verb::Command2, b"k")] {
            codec.encode(&op, 0, &mut out).expect("it can be said");
        }
        codec
    }

    /// The outcome of a sequence whose replies are these, and the words of its error, in every cut.
    fn ends<const VERSION: u8>(text: &str, sending: Sending, stream: &str) -> (Outcome, String) {
        let seen = every_cut(|| codec::<VERSION>(text, sending), format!("{stream}+PONG\r\n").as_bytes());
        let [Seen::Reply { outcome, message, .. }, pong] = &seen[..] else { panic!("{stream:?}: {seen:?}") };
        let pong_of_its_own = Seen::Reply { tag: None, outcome: Outcome::Ok, message: b"PONG".to_vec() };
        assert_eq!(*pong, pong_of_its_own, "{stream:?}");
        (*outcome, String::from_utf8(message.clone()).expect("these tests read ASCII"))
    }

    const ALL: Sending = Sending { commands: 0, is_asking: false, is_unwatching: false };

    const QUEUED: &str = "+OK\r\n$1\r\n1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";

    fn failed(fault: Fault, commands: u32, words: &str) -> (Outcome, String) {
        (Outcome::Failed { fault, commands }, words.to_owned())
    }

    #[test]
    fn a_sequence_is_answered_once_by_the_first_error_or_a_conflict_or_nothing() {
        let ok = || (Outcome::Ok, String::new());
        for (stream, expected) in [
            (format!("{QUEUED}*3\r\n:2\r\n+PONG\r\n+OK\r\n"), ok()),
            (format!("{QUEUED}*3\r\n*1\r\n-ERR within\r\n+PONG\r\n*-1\r\n"), ok()),
            (format!("{QUEUED}*0\r\n"), ok()),
            (format!("{QUEUED}*-1\r\n"), (Outcome::Conflict, String::new())),
            (
                format!("{QUEUED}*3\r\n-WRONGTYPE x\r\n+PONG\r\n-ERR y\r\n"),
                failed(Fault::Client, 0, "WRONGTYPE x"),
            ),
            (format!("{QUEUED}*3\r\n:2\r\n+PONG\r\n-ERR y\r\n"), failed(Fault::Client, 0, "ERR y")),
            (format!("{QUEUED}*1\r\n-LOADING x\r\n"), failed(Fault::Down, 0, "LOADING x")),
            (format!("{QUEUED}-TRYAGAIN x\r\n"), failed(Fault::Again, 1 << 6, "TRYAGAIN x")),
            (format!("{QUEUED}-ASK 1 a:1\r\n"), failed(Fault::Moved, 1 << 6, "ASK 1 a:1")),
            (
                "+OK\r\n$-1\r\n+OK\r\n-OOM x\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT y\r\n".to_owned(),
                failed(Fault::Server, 0, "OOM x"),
            ),
            (
                "-MOVED 1 a:1\r\n-MOVED 1 a:1\r\n+OK\r\n-MOVED 1 a:1\r\n+QUEUED\r\n-MOVED 1 a:1\r\n-EXECABORT y\r\n"
                    .to_owned(),
                failed(Fault::Moved, 1, "MOVED 1 a:1"),
            ),
            (
                "-READONLY x\r\n$-1\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n-EXECABORT y\r\n".to_owned(),
                failed(Fault::Server, 1, "READONLY x"),
            ),
            (
                "+OK\r\n-WRONGTYPE x\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:1\r\n+PONG\r\n+OK\r\n".to_owned(),
                failed(Fault::Client, 0, "WRONGTYPE x"),
            ),
        ] {
            assert_eq!(ends::<2>(TRANSACTION, ALL, &stream), expected, "{stream:?}");
            assert_eq!(ends::<3>(TRANSACTION, ALL, &stream), expected, "{stream:?}");
        }
        for (stream, expected) in [
            (format!("{QUEUED}_\r\n"), (Outcome::Conflict, String::new())),
            (
                format!("{QUEUED}*3\r\n:2\r\n!11\r\nWRONGTYPE x\r\n!5\r\nERR y\r\n"),
                failed(Fault::Client, 0, "WRONGTYPE x"),
            ),
            (format!("{QUEUED}*3\r\n%1\r\n+a\r\n!5\r\nERR y\r\n~0\r\n|1\r\n+a\r\n-b\r\n#t\r\n"), ok()),
            (
                "+OK\r\n!5\r\nERR y\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n_\r\n".to_owned(),
                failed(Fault::Client, 0, "ERR y"),
            ),
        ] {
            assert_eq!(ends::<3>(TRANSACTION, ALL, &stream), expected, "{stream:?}");
        }
    }

    #[test]
    fn keys_on_both_sides_of_a_migration_are_waited_for() {
        let half = failed(Fault::Again, 1 << 3, "ASK 1 a:1");
        for stream in [
            "$-1\r\n+OK\r\n+QUEUED\r\n-ASK 1 a:1\r\n+QUEUED\r\n-EXECABORT y\r\n",
            "$-1\r\n+OK\r\n+QUEUED\r\n-ASK 1 a:1\r\n-ASK 1 a:1\r\n-EXECABORT y\r\n",
        ] {
            let text = "GET k ; MULTI ; INCR k ; INCR l ; INCR m ; EXEC";
            assert_eq!(ends::<2>(text, ALL, stream), half, "{stream:?}");
        }
        let text = "MULTI ; PING ; INCR k ; INCR l ; EXEC";
        let all = "+OK\r\n+QUEUED\r\n-ASK 1 a:1\r\n-ASK 1 a:1\r\n-EXECABORT y\r\n";
        assert_eq!(ends::<2>(text, ALL, all), failed(Fault::Moved, 1 << 2, "ASK 1 a:1"));
        let first = "+OK\r\n+QUEUED\r\n-ASK 1 a:1\r\n+QUEUED\r\n-EXECABORT y\r\n";
        assert_eq!(ends::<2>(text, ALL, first), failed(Fault::Again, 1 << 2, "ASK 1 a:1"));
        // The part before was served here.
        let rest = Sending { commands: 0b1_1000, ..ALL };
        assert_eq!(
            ends::<2>(text, rest, "-ASK 1 a:1\r\n-EXECABORT y\r\n"),
            failed(Fault::Again, 1 << 3, "ASK 1 a:1")
        );
    }

    #[test]
    fn of_plain_commands_those_that_were_redirected_are_told_unless_another_has_failed() {
        let text = "SET k 1 ; GET k ; KEYS * ; GET l";
        for (stream, expected) in [
            (
                "-MOVED 1 a:1\r\n-MOVED 1 a:1\r\n*1\r\n$1\r\nx\r\n$0\r\n\r\n",
                failed(Fault::Moved, 0b11, "MOVED 1 a:1"),
            ),
            ("+OK\r\n-ASK 1 a:1\r\n*0\r\n-TRYAGAIN x\r\n", failed(Fault::Moved, 0b1010, "ASK 1 a:1")),
            (
                "-MOVED 1 a:1\r\n-WRONGTYPE x\r\n*0\r\n-MOVED 1 a:1\r\n",
                failed(Fault::Client, 0, "WRONGTYPE x"),
            ),
            ("+OK\r\n$-1\r\n*1\r\n-ERR within\r\n$-1\r\n", (Outcome::Ok, String::new())),
        ] {
            assert_eq!(ends::<2>(text, ALL, stream), expected, "{stream:?}");
        }
    }

    #[test]
    fn asking_goes_before_commands_up_to_multi_and_has_replies_of_its_own() {
        let text = "WATCH k ; GET k ;; MULTI ; INCR k ; EXEC ; GET k";
        let template = Template::parse(text).expect("a template");
        let wire = |sending: Sending| {
            let mut codec = Resp::<2>::with_commands(Arc::new(vec![template.clone()]));
            let mut out = Outbox::default();
            let op = Op { cas: sending.to_bits(), ..Op::new(Verb::Command, b"k") };
            codec.encode(&op, 0, &mut out).expect("it can be said");
            let wire = String::from_utf8(sent(&out)).expect("ASCII");
            wire.split("\r\n")
                .filter(|line| line.starts_with(char::is_alphabetic))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(wire(ALL), "WATCH k GET k");
        assert_eq!(wire(Sending { commands: 0b11_1100, ..ALL }), "MULTI INCR k EXEC GET k");
        assert_eq!(wire(Sending { is_asking: true, ..ALL }), "ASKING WATCH k ASKING GET k");
        let asking = Sending { commands: 0b1_1100, is_asking: true, is_unwatching: false };
        assert_eq!(wire(asking), "ASKING MULTI INCR k EXEC");
        assert_eq!(wire(Sending { is_unwatching: true, ..ALL }), "UNWATCH");
        let answered = "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n";
        assert_eq!(ends::<2>(text, asking, answered), (Outcome::Ok, String::new()));
        let refused = "-ERR no cluster\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n";
        assert_eq!(ends::<2>(text, asking, refused), failed(Fault::Client, 0, "ERR no cluster"));
        assert_eq!(
            every_cut(|| codec::<2>(text, Sending { is_unwatching: true, ..ALL }), b"+OK\r\n+OK\r\n"),
            [reply(Outcome::Ok), reply(Outcome::Ok)]
        );
    }

    proptest! {
        #[test]
        fn no_replies_in_any_order_make_it_panic(
            words in vec(prop_oneof![
                Just("$0\r\n\r\n"), Just("$1\r\nx\r\n"), Just("$-1\r\n"), Just("*-1\r\n"), Just("*3\r\n"), Just("*0\r\n"),
                Just("*1\r\n"), Just("+OK\r\n"), Just("+QUEUED\r\n"), Just("-ERR x\r\n"), Just("-ASK 1 a:1\r\n"),
                Just("-MOVED 1 a:1\r\n"), Just(":1\r\n"), Just("_\r\n"), Just("!1\r\nx\r\n"), Just("%1\r\n"), Just("|1\r\n"),
                Just(">2\r\n"), Just("~2\r\n"),
            ], 0..40),
            lengths in vec(any::<u8>(), 1..7),
        ) {
            let stream = words.concat().into_bytes();
            cut_in_turn(|| codec::<3>(TRANSACTION, ALL), &stream, &lengths);
            let mut data = vec![lengths.len() as u8];
            data.extend(lengths);
            data.extend(stream);
            fuzz_decode(|| codec::<2>(TRANSACTION, ALL), &data);
        }
    }
}
