//! Tests of one connection: a script of bytes and times, and the end of every request.

use std::io::IoSlice;

use pummel_logic::bodies::Bodies;
use pummel_logic::connection::inflight::{AnswerUse, CheckState, Origin, Owed, Ticket};
use pummel_logic::connection::outbox::{Room, Sources};
use pummel_logic::connection::session::{Answer, Chunk, Item, Session, Sink, Stamp};
use pummel_logic::plan::Transport;
use pummel_logic::protocol::binary::Binary;
use pummel_logic::protocol::meta::Meta;
use pummel_logic::protocol::resp::{Resp2, Resp3};
use pummel_logic::protocol::text::Text;
use pummel_logic::protocol::{Codec, Fault, Keys, Malformed, Op, Outcome, Rest, Value, Verb};
use pummel_logic::time::{MICROSECOND, NEVER, Nanos};

/// One microsecond: the unit of all times in the scripts.
const US: Nanos = MICROSECOND;

/// A connection whose requests are numbered from 0, and everything that its sink received.
struct Story {
    session: Session<Text>,
    block: Vec<u8>,
    asked: u64,
    /// Use of the answers to the requests.
    answer_use: AnswerUse,
    /// Bytes that were taken from the session.
    wire: Vec<u8>,
    told: Told,
}

/// An answer that outlives its request.
struct Ended {
    ticket: Ticket,
    outcome: Outcome,
    sent: Nanos,
    arrived: Nanos,
    read: Nanos,
    hits: u32,
    stamp: Stamp,
}

/// Events that the sink of a session received.
#[derive(Default)]
struct Told {
    answers: Vec<(Ended, String)>,
    items: Vec<(u64, String, u64)>,
    body: Vec<u8>,
    /// Whether each item's ticket knew, at the time of the read, what was stored.
    memos: Vec<bool>,
    /// The messages of requests without reply that failed.
    quiet_errors: Vec<String>,
}

impl Sink for Told {
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        self.memos.push(ticket.check_state != CheckState::None);
        self.items.push((ticket.index, String::from_utf8_lossy(item.key).into_owned(), item.size));
        Ok(true)
    }

    fn body(&mut self, _ticket: &Ticket, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn quiet_error(&mut self, message: &[u8]) {
        self.quiet_errors.push(String::from_utf8_lossy(message).into_owned());
    }

    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        let &Answer { ticket, outcome, sent, arrived, read, hits, stamp, mark: _ } = answer;
        let ended = Ended { ticket: *ticket, outcome, sent, arrived, read, hits, stamp };
        self.answers.push((ended, String::from_utf8_lossy(message).into_owned()));
    }
}

impl Story {
    fn new() -> Story {
        Story {
            session: Session::new(4),
            block: (0..100_000u32).map(|i| (i % 251) as u8).collect(),
            asked: 0,
            answer_use: AnswerUse::Items,
            wire: Vec::new(),
            told: Told::default(),
        }
    }

    /// Makes a request that is due and ready at `at`.
    fn ask(&mut self, op: Op<'_>, at: Nanos) -> &mut Story {
        let ticket = Ticket {
            due: at,
            ready: at,
            index: self.asked,
            key: self.asked,
            check_state: CheckState::Length(1),
            answer_use: self.answer_use,
            keys: op.keys.count() as u16,
            ..Ticket::of(op.verb)
        };
        self.asked += 1;
        self.session.request(&op, ticket).unwrap();
        self
    }

    fn get(&mut self, key: &str, at: Nanos) -> &mut Story {
        self.ask(Op::new(Verb::Get, key.as_bytes()), at)
    }

    fn set(&mut self, key: &str, value: &str, at: Nanos) -> &mut Story {
        self.ask(Op { value: Value::plain(value.as_bytes()), ..Op::new(Verb::Set, key.as_bytes()) }, at)
    }

    fn set_quietly(&mut self, key: &str, value: &str, at: Nanos) -> &mut Story {
        let op = Op::new(Verb::Set, key.as_bytes());
        self.ask(Op { value: Value::plain(value.as_bytes()), noreply: true, ..op }, at)
    }

    /// Bytes that would be sent in one call.
    fn offered(&self) -> Vec<u8> {
        let (bodies, mut room) = (Bodies::new(0, 1.0), Room::default());
        let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
        let sources = Sources { text: &self.block, bodies: &bodies };
        let count = self.session.poll_send(sources, &mut room, &mut parts);
        parts[..count].iter().flat_map(|part| part.iter().copied()).collect()
    }

    /// Lets the socket take `count` of the offered bytes.
    fn sent(&mut self, count: usize, at: Nanos) -> &mut Story {
        let offered = self.offered();
        self.wire.extend_from_slice(&offered[..count]);
        self.session.handle_sent(count, at, &mut self.told);
        self
    }

    /// Lets the socket take all offered bytes.
    fn sent_all(&mut self, at: Nanos) -> &mut Story {
        let count = self.offered().len();
        self.sent(count, at)
    }

    fn try_received(&mut self, bytes: &[u8], stamp: Option<Nanos>, read: Nanos) -> Result<u32, Malformed> {
        self.session.handle_received(Chunk { bytes, stamp, read }, &mut self.told)
    }

    fn received(&mut self, bytes: &str, stamp: Nanos, read: Nanos) -> &mut Story {
        self.try_received(bytes.as_bytes(), Some(stamp), read).unwrap();
        self
    }

    fn closed(&mut self, fault: Fault, at: Nanos) -> &mut Story {
        self.session.handle_closed(fault, at, &mut self.told);
        self
    }

    fn timed_out(&mut self, timeout: Nanos, at: Nanos) -> &mut Story {
        self.session.handle_timeout(timeout, at, &mut self.told);
        self
    }

    /// The answers since the last call: number, outcome, and times in microseconds.
    fn answers(&mut self) -> Vec<String> {
        let at = |time: Nanos| match time {
            NEVER => "never".to_string(),
            time => (time / US).to_string(),
        };
        let line = |(answer, message): (Ended, String)| {
            let Ended { ticket, outcome, sent, arrived, read, stamp, .. } = answer;
            let times = format!("sent {} arrived {} read {}", at(sent), at(arrived), at(read));
            let words = if message.is_empty() { message } else { format!(" \"{message}\"") };
            format!("{} {outcome:?} {times} {stamp:?}{words}", ticket.index)
        };
        std::mem::take(&mut self.told.answers).into_iter().map(line).collect()
    }

    /// The one answer since the last call.
    fn answer(&mut self) -> Ended {
        let mut answers = std::mem::take(&mut self.told.answers);
        assert_eq!(answers.len(), 1);
        answers.remove(0).0
    }
}

const HIT: &str = "VALUE a 0 3\r\none\r\nEND\r\n";

#[test]
fn a_request_is_timed_from_its_sending_to_the_stamp_of_its_reply() {
    let mut story = Story::new();
    story.get("a", 10 * US).sent_all(12 * US).received(HIT, 20 * US, 25 * US);
    assert_eq!(story.wire, b"get a\r\n");
    let answer = story.answer();
    assert_eq!((answer.outcome, answer.hits, answer.stamp), (Outcome::Hit, 1, Stamp::Kernel));
    assert_eq!(answer.ticket.due, 10 * US);
    assert_eq!(answer.sent - answer.ticket.ready, 2 * US, "lag");
    assert_eq!(answer.arrived - answer.sent, 8 * US, "service");
    assert_eq!(answer.read - answer.arrived, 5 * US, "reaction");
    assert_eq!(story.told.items, [(0, "a".to_string(), 3)]);
    assert_eq!(story.told.body, b"one");
    assert!(story.session.is_idle() && !story.session.has_output());
}

#[test]
fn replies_belong_to_requests_in_their_order() {
    let mut story = Story::new();
    story.get("a", 0).set("b", "x", 0).get("c", 0).sent_all(5 * US);
    story.received(HIT, 10 * US, 11 * US).received("STORED\r\n", 20 * US, 21 * US);
    story.received("END\r\n", 30 * US, 31 * US);
    assert_eq!(
        story.answers(),
        [
            "0 Hit sent 5 arrived 10 read 11 Kernel",
            "1 Stored sent 5 arrived 20 read 21 Kernel",
            "2 Miss sent 5 arrived 30 read 31 Kernel",
        ]
    );
}

#[test]
fn bytes_that_were_all_sent_at_once_are_taken_in_as_those_that_were_sent_in_parts() {
    let (mut parts, mut once) = (Story::new(), Story::new());
    for story in [&mut parts, &mut once] {
        // One request was begun before the others were asked for.
        story.get("a", 0).sent(3, 2 * US).get("b", 0).get("c", 0);
    }
    assert_eq!(once.session.handle_all_sent(5 * US), Some(2), "two requests begin");
    parts.sent_all(5 * US);
    assert!(!once.session.has_output() && once.session.poll_send_plain().is_none());
    for story in [&mut parts, &mut once] {
        story.get("d", 6 * US).sent_all(7 * US);
        story.received("END\r\nEND\r\nEND\r\nEND\r\n", 10 * US, 11 * US);
    }
    let answers = once.answers();
    assert_eq!(answers, parts.answers());
    assert_eq!(
        answers[..2],
        ["0 Miss sent 2 arrived 10 read 11 Kernel", "1 Miss sent 5 arrived 10 read 11 Kernel"]
    );
}

#[test]
fn a_request_without_reply_ends_only_where_it_is_told_to_someone() {
    let mut story = Story::new();
    story.get("a", 0).set_quietly("b", "x", 0);
    let waiting = story.offered();
    assert_eq!(story.session.handle_all_sent(5 * US), None);
    assert_eq!(story.offered(), waiting, "nothing was taken in");
    assert_eq!(story.sent_all(6 * US).answers().len(), 1);
    assert_eq!(
        story.get("c", 7 * US).session.handle_all_sent(8 * US),
        Some(1),
        "none is left that ends when it is sent"
    );
}

#[test]
fn replies_that_share_a_read_share_its_stamp() {
    let mut story = Story::new();
    story.get("a", 0).sent_all(5 * US).get("b", 0).sent_all(7 * US).get("c", 0).sent_all(9 * US);
    let both = format!("{HIT}END\r\nVALUE c");
    assert_eq!(story.try_received(both.as_bytes(), Some(20 * US), 22 * US), Ok(2));
    assert_eq!(story.try_received(b" 0 0\r\n\r\nEND\r\n", Some(40 * US), 41 * US), Ok(1));
    assert_eq!(
        story.answers(),
        [
            "0 Hit sent 5 arrived 20 read 22 Kernel",
            "1 Miss sent 7 arrived 20 read 22 Kernel",
            "2 Hit sent 9 arrived 40 read 41 Kernel",
        ],
        "a reply has the stamp of the read that brought its last byte"
    );
}

/// Requests of all kinds with all that is answered to them.
const REPLIES: &str = "VALUE a 0 3\r\none\r\nEND\r\nSTORED\r\nSERVER_ERROR out of memory\r\nEND\r\n\
                       VALUE k 7 5\r\n\r\nEND\r\nVALUE m 0 0\r\n\r\nEND\r\n17\r\nVERSION 1.6.18\r\n";

fn ask_many(story: &mut Story) {
    story.get("a", 0).set("b", "x", 0).set("c", "y", 0).get("d", 0);
    let keys = Keys::Many { bytes: b"klm", ends: &[1, 2, 3] };
    story.ask(Op { keys, ..Op::new(Verb::Get, b"") }, 0);
    story.ask(Op { delta: 1, ..Op::new(Verb::Incr, b"n") }, 0).ask(Op::new(Verb::Version, b""), 0);
    story.sent_all(US);
}

#[test]
fn every_cut_of_a_stream_of_replies_tells_the_same() {
    let mut whole = Story::new();
    ask_many(&mut whole);
    whole.received(REPLIES, 50 * US, 60 * US);
    let expected = whole.answers();
    assert_eq!(
        expected,
        [
            "0 Hit sent 1 arrived 50 read 60 Kernel",
            "1 Stored sent 1 arrived 50 read 60 Kernel",
            "2 Error(Server) sent 1 arrived 50 read 60 Kernel \"SERVER_ERROR out of memory\"",
            "3 Miss sent 1 arrived 50 read 60 Kernel",
            "4 Hit sent 1 arrived 50 read 60 Kernel",
            "5 Number(17) sent 1 arrived 50 read 60 Kernel",
            "6 Ok sent 1 arrived 50 read 60 Kernel \"1.6.18\"",
        ]
    );
    for second in 0..=REPLIES.len() {
        for first in 0..=second {
            let mut story = Story::new();
            ask_many(&mut story);
            for piece in [&REPLIES[..first], &REPLIES[first..second], &REPLIES[second..]] {
                story.received(piece, 50 * US, 60 * US);
            }
            assert_eq!(story.answers(), expected, "cut at {first} and {second}");
            assert_eq!(story.told.items, whole.told.items);
            assert_eq!(story.told.body, whole.told.body);
        }
    }
}

#[test]
fn answers_are_the_same_when_nobody_looks_at_their_items() {
    let mut whole = Story::new();
    ask_many(&mut whole);
    whole.received(REPLIES, 50 * US, 60 * US);
    let hits = |story: &Story| story.told.answers.iter().map(|(end, _)| end.hits).collect::<Vec<u32>>();
    let expected = (hits(&whole), whole.answers());
    for cut in 0..=REPLIES.len() {
        let mut story = Story { answer_use: AnswerUse::None, ..Story::new() };
        ask_many(&mut story);
        story.received(&REPLIES[..cut], 50 * US, 60 * US).received(&REPLIES[cut..], 50 * US, 60 * US);
        assert_eq!((hits(&story), story.answers()), expected, "cut at {cut}");
    }
}

#[test]
fn a_multi_get_is_one_request_with_as_many_hits_as_items() {
    let mut story = Story::new();
    let keys = Keys::Many { bytes: b"abc", ends: &[1, 2, 3] };
    story.ask(Op { keys, ..Op::new(Verb::Get, b"") }, 0).sent_all(0);
    assert_eq!(story.wire, b"get a b c\r\n");
    story.received("VALUE a 0 1\r\nx\r\nVALUE c 0 1\r\ny\r\nEND\r\n", 9 * US, 9 * US);
    let answer = story.answer();
    assert_eq!((answer.outcome, answer.hits, answer.ticket.keys), (Outcome::Hit, 2, 3));
}

#[test]
fn a_reply_that_nobody_asked_for_breaks_the_connection_after_what_came_before_it() {
    let mut story = Story::new();
    assert!(story.try_received(b"END\r\n", None, 0).is_err(), "before the first request");

    let mut story = Story::new();
    story.get("a", 0).sent_all(0);
    assert!(story.try_received(b"END\r\nEND\r\n", None, 5 * US).is_err());
    assert_eq!(story.answers(), ["0 Miss sent 0 arrived 5 read 5 Missing"]);

    let mut story = Story::new();
    story.get("a", 0);
    assert!(story.try_received(HIT.as_bytes(), None, 0).is_err(), "the request was not sent yet");
    assert!(story.answers().is_empty());

    let mut story = Story::new();
    story.set_quietly("a", "x", 0).sent_all(0);
    assert!(story.try_received(b"STORED\r\n", None, 0).is_err(), "it was asked not to answer");
}

#[test]
fn the_call_that_takes_the_first_byte_is_the_sending() {
    let mut story = Story::new();
    story.get("a", 0).get("bb", 0);
    // "get a\r\n" has 7 bytes, "get bb\r\n" has 8.
    story.sent(1, 10 * US).sent(5, 20 * US).sent(1, 30 * US).sent(7, 40 * US).sent(1, 50 * US);
    assert!(story.offered().is_empty());
    story.received("END\r\nEND\r\n", 90 * US, 90 * US);
    assert_eq!(
        story.answers(),
        ["0 Miss sent 10 arrived 90 read 90 Kernel", "1 Miss sent 40 arrived 90 read 90 Kernel"]
    );
}

#[test]
fn a_call_that_takes_bytes_of_several_requests_sends_all_of_them() {
    let mut story = Story::new();
    story.get("a", 0).get("b", 0).get("c", 0).sent(15, 10 * US).sent_all(20 * US);
    story.received("END\r\nEND\r\nEND\r\n", 90 * US, 90 * US);
    assert_eq!(
        story.answers(),
        [
            "0 Miss sent 10 arrived 90 read 90 Kernel",
            "1 Miss sent 10 arrived 90 read 90 Kernel",
            "2 Miss sent 10 arrived 90 read 90 Kernel",
        ]
    );
}

#[test]
fn a_full_socket_makes_ready_later_only_for_what_was_not_begun() {
    let mut story = Story::new();
    story.get("a", US).get("b", US).get("c", US).sent(8, 5 * US).sent(0, 6 * US);
    story.session.handle_writable(50 * US);
    story.get("d", 60 * US).sent_all(61 * US);
    story.received("END\r\nEND\r\nEND\r\nEND\r\n", 90 * US, 90 * US);
    let ready: Vec<_> = story.told.answers.iter().map(|(answer, _)| answer.ticket.ready / US).collect();
    assert_eq!(ready, [1, 1, 50, 60]);
    let sent: Vec<_> = story.told.answers.iter().map(|(answer, _)| answer.sent / US).collect();
    assert_eq!(sent, [5, 5, 61, 61]);
}

#[test]
fn a_request_without_reply_is_done_when_its_last_byte_is_handed_over() {
    let mut story = Story::new();
    story.set_quietly("a", "x", US);
    let len = story.offered().len();
    story.sent(len - 1, 10 * US);
    assert!(story.answers().is_empty(), "one byte is missing");
    story.sent(1, 20 * US);
    assert_eq!(story.answers(), ["0 Ok sent 10 arrived 20 read 20 Nothing"]);
    assert!(story.session.is_idle());
}

#[test]
fn requests_without_reply_are_done_though_others_before_them_are_unanswered() {
    let mut story = Story::new();
    story.get("a", 0).set_quietly("b", "x", 0).get("c", 0).set_quietly("d", "x", 0).sent_all(5 * US);
    assert_eq!(
        story.answers(),
        ["1 Ok sent 5 arrived 5 read 5 Nothing", "3 Ok sent 5 arrived 5 read 5 Nothing"]
    );
    story.received("END\r\nEND\r\n", 9 * US, 9 * US);
    assert_eq!(
        story.answers(),
        ["0 Miss sent 5 arrived 9 read 9 Kernel", "2 Miss sent 5 arrived 9 read 9 Kernel"]
    );
    assert!(story.session.is_idle());
    story.get("e", 0).sent_all(10 * US).received("END\r\n", 12 * US, 12 * US);
    assert_eq!(story.answers(), ["4 Miss sent 10 arrived 12 read 12 Kernel"]);
}

#[test]
fn an_error_reply_ends_its_own_request_and_no_other() {
    let mut story = Story::new();
    story.get("a", 0).set("b", "x", 0).get("c", 0).get("d", 0).sent_all(0);
    story.received("END\r\nSERVER_ERROR busy\r\nERROR\r\nCLIENT_ERROR bad\r\n", 9 * US, 9 * US);
    assert_eq!(
        story.answers(),
        [
            "0 Miss sent 0 arrived 9 read 9 Kernel",
            "1 Error(Server) sent 0 arrived 9 read 9 Kernel \"SERVER_ERROR busy\"",
            "2 Error(Protocol) sent 0 arrived 9 read 9 Kernel \"ERROR\"",
            "3 Error(Client) sent 0 arrived 9 read 9 Kernel \"CLIENT_ERROR bad\"",
        ]
    );
}

#[test]
fn a_large_value_is_pointed_at_and_sent_in_any_portions() {
    let mut story = Story::new();
    let block = story.block.clone();
    let value = Value { own: b"head", rest: Rest::Text { bytes: &block[123..50_123], at: 123 } };
    story.ask(Op { value, ..Op::new(Verb::Set, b"big") }, 0).get("a", 0);
    let mut at = 10 * US;
    while story.session.has_output() {
        let count = story.offered().len().min(4_099);
        story.sent(count, at);
        at += US;
    }
    let mut expected = b"set big 0 0 50004\r\nhead".to_vec();
    expected.extend_from_slice(&block[123..50_123]);
    expected.extend_from_slice(b"\r\nget a\r\n");
    assert_eq!(story.wire, expected);
    story.received("STORED\r\nEND\r\n", 90 * US, 90 * US);
    let answers = story.answers();
    assert_eq!(answers[0], "0 Stored sent 10 arrived 90 read 90 Kernel");
    assert!(
        answers[1].starts_with("1 Miss sent 22 "),
        "{answers:?}: the thirteenth call took its first byte"
    );
}

#[test]
fn a_stamp_is_believed_between_sending_and_reading_and_not_beyond_the_slack_of_two_clocks() {
    let (sent, read) = (100 * US, 200 * US);
    for (stamp, arrived, verdict) in [
        (None, read, Stamp::Missing),
        (Some(sent), sent, Stamp::Kernel),
        (Some(150 * US), 150 * US, Stamp::Kernel),
        (Some(read), read, Stamp::Kernel),
        (Some(sent - US), sent, Stamp::Kernel),
        (Some(read + US), read, Stamp::Kernel),
        (Some(sent - US - 1), read, Stamp::Rejected),
        (Some(read + US + 1), read, Stamp::Rejected),
        (Some(0), read, Stamp::Rejected),
        (Some(NEVER), read, Stamp::Rejected),
    ] {
        let mut story = Story::new();
        story.get("a", 50 * US).sent_all(sent);
        story.try_received(b"END\r\n", stamp, read).unwrap();
        let answer = story.answer();
        assert_eq!((answer.arrived, answer.stamp), (arrived, verdict), "stamp {stamp:?}");
        assert_eq!(answer.read, read);
    }
}

#[test]
fn a_closed_connection_ends_everything_that_it_owes_and_begins_anew() {
    let mut story = Story::new();
    story.get("a", 0).get("b", 0).sent(8, 5 * US).set_quietly("c", "x", 0);
    story.received("VALUE a 0 10\r\nhalf", 8 * US, 8 * US).closed(Fault::Reset, 9 * US);
    assert_eq!(
        story.answers(),
        [
            "0 Error(Reset) sent 5 arrived 9 read 9 Nothing",
            "1 Error(Reset) sent 5 arrived 9 read 9 Nothing",
            "2 Error(Reset) sent never arrived 9 read 9 Nothing",
        ]
    );
    story.session.begin_connection(Text::new(), Transport::Stream);
    assert!(story.session.is_idle() && !story.session.has_output());
    story.wire.clear();
    story.get("d", 20 * US).sent_all(21 * US).received("END\r\n", 22 * US, 22 * US);
    assert_eq!(story.wire, b"get d\r\n", "nothing of the old connection is sent on the new one");
    assert_eq!(story.answers(), ["3 Miss sent 21 arrived 22 read 22 Kernel"]);
}

#[test]
fn what_was_answered_or_handed_over_does_not_end_again_when_the_connection_closes() {
    let mut story = Story::new();
    story.get("a", 0).set_quietly("b", "x", 0).get("c", 0).sent_all(US);
    assert_eq!(story.answers().len(), 1);
    story.received("END\r\n", 2 * US, 2 * US).closed(Fault::Closed, 9 * US);
    assert_eq!(
        story.answers(),
        ["0 Miss sent 1 arrived 2 read 2 Kernel", "2 Error(Closed) sent 1 arrived 9 read 9 Nothing"]
    );
}

#[test]
fn late_requests_time_out_and_those_behind_them_are_abandoned() {
    let mut story = Story::new();
    // The third is sent later than the others, and the fourth not at all.
    story.get("a", 0).get("b", 0).sent_all(10 * US).get("c", 60 * US).sent_all(61 * US).get("d", 70 * US);
    story.timed_out(100 * US, 110 * US);
    assert_eq!(
        story.answers(),
        [
            "0 Error(Timeout) sent 10 arrived 110 read 110 Nothing",
            "1 Error(Timeout) sent 10 arrived 110 read 110 Nothing",
            "2 Error(Abandoned) sent 61 arrived 110 read 110 Nothing",
            "3 Error(Abandoned) sent never arrived 110 read 110 Nothing",
        ]
    );
}

#[test]
fn a_request_that_never_got_into_the_socket_times_out_from_when_it_was_ready() {
    let mut story = Story::new();
    story.get("a", 10 * US);
    assert_eq!(story.session.deadline(100 * US), 110 * US);
    story.timed_out(100 * US, 110 * US);
    assert_eq!(story.answers(), ["0 Error(Timeout) sent never arrived 110 read 110 Nothing"]);
}

#[test]
fn the_deadline_is_that_of_the_oldest_unanswered_request() {
    let mut story = Story::new();
    let timeout = 100 * US;
    assert_eq!(story.session.deadline(timeout), NEVER);
    story.get("a", 10 * US).sent_all(12 * US).get("b", 20 * US).sent_all(25 * US);
    assert_eq!(story.session.deadline(timeout), 112 * US);
    assert_eq!(story.session.deadline(NEVER), NEVER);
    story.received("END\r\n", 40 * US, 40 * US);
    assert_eq!(story.session.deadline(timeout), 125 * US);
    story.received("END\r\n", 50 * US, 50 * US);
    assert_eq!(story.session.deadline(timeout), NEVER);
}

#[test]
fn a_request_that_the_protocol_cannot_say_leaves_no_trace() {
    let mut story = Story::new();
    let ticket = Ticket::of(Verb::Get);
    assert!(story.session.request(&Op::new(Verb::Get, b"two words"), ticket).is_err());
    assert!(story.session.is_idle() && !story.session.has_output());
}

#[test]
fn ten_thousand_sessions_stay_in_cache() {
    const LINE_BYTES: usize = 64;
    assert!(size_of::<Session<Text>>() <= 3 * LINE_BYTES, "{}", size_of::<Session<Text>>());
    assert!(size_of::<Owed>() <= 2 * LINE_BYTES, "{}", size_of::<Owed>());
}

/// Sends a store without reply and a read together; then the server sends `replies`, one after the other, and the
/// waiting bytes are sent before the next. Returns what the sink received, and the bytes that were sent behind the
/// requests.
fn after_a_quiet_store<C: Codec>(replies: &[&str]) -> (Told, Vec<u8>) {
    let (mut session, mut told, mut wire) = (Session::<C>::new(1), Told::default(), Vec::new());
    let quiet = Op { value: Value::plain(b"v"), noreply: true, ..Op::new(Verb::Set, b"q") };
    for (index, op) in [quiet, Op::new(Verb::Get, b"a")].into_iter().enumerate() {
        let ticket = Ticket { index: index as u64, answer_use: AnswerUse::Items, ..Ticket::of(op.verb) };
        session.request(&op, ticket).expect("it can be said");
    }
    let mut send = |session: &mut Session<C>, told: &mut Told, at| {
        let bytes = session.poll_send_plain().unwrap_or_default().to_vec();
        session.handle_sent(bytes.len(), at, told);
        wire.extend(bytes);
    };
    send(&mut session, &mut told, US);
    for (reply, at) in replies.iter().zip(2..) {
        let chunk = Chunk { bytes: reply.as_bytes(), stamp: None, read: at * US };
        session.handle_received(chunk, &mut told).expect("the connection stays");
        send(&mut session, &mut told, at * US);
    }
    assert!(session.is_idle() && !session.has_output());
    (told, wire)
}

#[test]
fn an_error_of_a_request_without_reply_is_not_that_of_the_read_behind_it() {
    let value = "VA 1 f0 Or1\r\nx\r\n";
    for replies in
        [&["SERVER_ERROR large\r\n", value, "MN\r\n"][..], &["SERVER_ERROR large\r\nEN\r\n", "MN\r\n"]]
    {
        let (told, wire) = after_a_quiet_store::<Meta>(replies);
        let ends: Vec<(u64, bool)> = told
            .answers
            .iter()
            .map(|(end, _)| (end.ticket.index, matches!(end.outcome, Outcome::Error(_))))
            .collect();
        assert_eq!(ends, [(0, false), (1, false)]);
        assert_eq!(told.quiet_errors, ["SERVER_ERROR large"]);
        assert!(wire.ends_with(b"\r\nmn\r\n"), "{}", wire.escape_ascii());
    }
    let (told, _) = after_a_quiet_store::<Meta>(&["SERVER_ERROR busy\r\n", "MN\r\n"]);
    let (end, words) = &told.answers[1];
    assert_eq!((end.outcome, &words[..]), (Outcome::Error(Fault::Server), "SERVER_ERROR busy"));
    assert!(told.quiet_errors.is_empty());
}

#[test]
fn an_error_where_nothing_waits_is_that_of_a_request_without_reply() {
    let value = "VALUE a 0 1\r\nx\r\nEND\r\n";
    let (told, wire) = after_a_quiet_store::<Text>(&[value, "ERROR\r\n"]);
    assert_eq!((told.answers.len(), &told.quiet_errors[..]), (2, &["ERROR".to_owned()][..]));
    assert!(wire.ends_with(b"get a\r\n"));
}

#[test]
fn what_asks_for_the_end_of_replies_delays_no_sending_time() {
    let (told, _) = after_a_quiet_store::<Meta>(&["SERVER_ERROR large\r\n", "EN\r\n", "MN\r\n"]);
    assert!(told.answers.iter().all(|(end, _)| end.sent == US));
}

#[test]
fn no_reply_brings_more_items_than_its_request_has_keys() {
    let get = Op::new(Verb::Get, b"a");
    let text = b"VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n";
    assert!(heard::<Text>(get, text).is_err());
    assert!(heard::<Text>(get, &text[..32]).is_err(), "also while it is not whole");
    assert!(heard::<Meta>(get, b"VA 1 Or0\r\nx\r\nVA 1 Or0\r\nx\r\n").is_err());
    let value = packet(0x00, &[0; 4], b"x");
    assert!(heard::<Binary>(get, &[&value[..], &value].concat()).is_err());
    assert!(heard::<Resp2>(get, b"$1\r\nx\r\n$1\r\nx\r\n").is_err());
}

#[test]
fn an_error_within_a_reply_leaves_no_proof_for_what_follows_in_its_connection() {
    let mut story = Story::new();
    story.answer_use = AnswerUse::Verify;
    story.get("a", 0).sent_all(US);
    let bytes = b"VALUE a 0 1\r\nx\r\nSERVER_ERROR busy\r\n";
    story.session.handle_received(Chunk { bytes, stamp: None, read: 2 * US }, &mut story.told).unwrap();
    story.get("a", 3 * US).sent_all(3 * US);
    let bytes = b"VALUE a 0 1\r\nx\r\nEND\r\n";
    story.session.handle_received(Chunk { bytes, stamp: None, read: 4 * US }, &mut story.told).unwrap();
    assert_eq!(story.told.memos, [true, false], "which values can be stale");
}

/// The result of a session that receives these bytes while it waits for the answer to one request.
fn heard<C: Codec>(op: Op<'_>, reply: &[u8]) -> Result<u32, Malformed> {
    exchange(&mut Session::<C>::new(1), op, Origin::Arrival, reply, &mut Told::default())
}

/// Asks one request for the reason `origin`, and reads this reply to it.
fn exchange<C: Codec>(
    session: &mut Session<C>,
    op: Op<'_>,
    origin: Origin,
    reply: &[u8],
    told: &mut Told,
) -> Result<u32, Malformed> {
    let ticket = Ticket { origin, ..Ticket::of(op.verb) };
    session.request(&op, ticket).expect("it can be said");
    session.handle_sent(session.offered_bytes(), US, told);
    session.handle_received(Chunk { bytes: reply, stamp: None, read: 2 * US }, told)
}

#[test]
fn a_read_for_a_cas_fails_where_the_item_has_no_cas_unique_and_other_reads_do_not() {
    fn read<C: Codec>(session: fn(usize) -> Session<C>, reply: &[u8], unique: bool) {
        for origin in [Origin::BeforeCas, Origin::Arrival] {
            let mut told = Told::default();
            let gets = Op::new(Verb::Gets, b"a");
            assert_eq!(exchange(&mut session(1), gets, origin, reply, &mut told), Ok(1));
            let (ended, words) = &told.answers[0];
            if unique || origin == Origin::Arrival {
                assert_eq!((ended.outcome, ended.hits), (Outcome::Hit, 1), "{origin:?}");
            } else {
                assert_eq!(ended.outcome, Outcome::Error(Fault::Server), "{}", reply.escape_ascii());
                assert!(words.contains("CAS unique"), "{words}");
            }
        }
    }
    read(Session::<Text>::new, b"VALUE a 0 1 7\r\nx\r\nEND\r\n", true);
    read(Session::<Text>::new, b"VALUE a 0 1 0\r\nx\r\nEND\r\n", false);
    read(Session::<Text>::new, b"VALUE a 0 1\r\nx\r\nEND\r\n", false);
    let whole = |reply: &[u8]| [b"\0\0\0\0\0\x01\0\0", reply].concat();
    read(Session::<Text>::over_datagrams, &whole(b"VALUE a 0 1 7\r\nx\r\nEND\r\n"), true);
    read(Session::<Text>::over_datagrams, &whole(b"VALUE a 0 1 0\r\nx\r\nEND\r\n"), false);
    let mut binary = packet(0x00, &[0; 4], b"x");
    read(Session::<Binary>::new, &binary, false);
    binary[23] = 9;
    read(Session::<Binary>::new, &binary, true);
    read(Session::<Meta>::new, b"VA 1 f0 c0 Or0\r\nx\r\n", false);
    read(Session::<Meta>::new, b"VA 1 f0 c5 Or0\r\nx\r\n", true);
}

/// A reply of the binary protocol to the first request.
fn packet(opcode: u8, extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    (bytes[0], bytes[1], bytes[4]) = (0x81, opcode, extras.len() as u8);
    bytes[8..12].copy_from_slice(&((extras.len() + value.len()) as u32).to_be_bytes());
    [&bytes, extras, value].concat()
}

#[test]
fn an_answer_of_another_kind_ends_the_connection_in_every_dialect() {
    const STORED: &[u8] = b"STORED\r\n";
    const NUMBER: &[u8] = b"17\r\n";
    const VALUE: &[u8] = b"VALUE a 0 1\r\nx\r\nEND\r\n";
    let op = |verb| Op { value: Value::plain(b"v"), delta: 1, cas: 1, ..Op::new(verb, b"a") };
    for (verb, reply) in [
        (Verb::Get, STORED),
        (Verb::Get, NUMBER),
        (Verb::Gat, b"TOUCHED\r\n"),
        (Verb::Set, b"END\r\n"),
        (Verb::Set, VALUE),
        (Verb::Cas, b"DELETED\r\n"),
        (Verb::Incr, STORED),
        (Verb::Delete, STORED),
        (Verb::Touch, b"DELETED\r\n"),
        (Verb::Touch, VALUE),
        (Verb::Version, NUMBER),
        (Verb::Set, b"VERSION 1.6.18\r\n"),
    ] {
        assert!(heard::<Text>(op(verb), reply).is_err(), "{verb:?} {}", reply.escape_ascii());
    }
    for (verb, reply) in [
        (Verb::Get, STORED),
        (Verb::Get, b"OK\r\n"),
        (Verb::Get, b"HD Or0\r\n"),
        (Verb::Get, b"HD Os0\r\n"),
        (Verb::Get, b"NF Od0\r\n"),
        (Verb::Set, b"VA 1 Or0\r\nx\r\n"),
        (Verb::Set, b"HD Od0\r\n"),
        (Verb::Delete, b"HD Ot0\r\n"),
        (Verb::Touch, b"EN Or0\r\n"),
        (Verb::Incr, b"HD Os0\r\n"),
        (Verb::Version, STORED),
    ] {
        assert!(heard::<Meta>(op(verb), reply).is_err(), "{verb:?} {}", reply.escape_ascii());
    }
    let (get, set, delete, incr, touch, version) = (0x00, 0x01, 0x04, 0x05, 0x1c, 0x0b);
    let flags = &[0; 4][..];
    for (verb, reply) in [
        (Verb::Get, packet(set, &[], &[])),
        (Verb::Get, packet(incr, &[], &[0; 8])),
        (Verb::Get, packet(touch, flags, &[])),
        (Verb::Set, packet(get, flags, b"x")),
        (Verb::Set, packet(delete, &[], &[])),
        (Verb::Delete, packet(set, &[], &[])),
        (Verb::Touch, packet(delete, &[], &[])),
        (Verb::Incr, packet(set, &[], &[])),
        (Verb::Set, packet(version, &[], b"1.6")),
        (Verb::Version, packet(set, &[], &[])),
    ] {
        assert!(heard::<Binary>(op(verb), &reply).is_err(), "{verb:?} {}", reply.escape_ascii());
    }
    for (verb, reply) in [
        (Verb::Get, b":1\r\n"),
        (Verb::Get, b"+OK\r\n"),
        (Verb::Hget, b":1\r\n"),
        (Verb::Set, b":1\r\n"),
        (Verb::Set, b"$1\r\nx\r\n"),
        (Verb::Append, b"+OK\r\n"),
        (Verb::Hset, b"+OK\r\n"),
        (Verb::Mset, b":1\r\n"),
        (Verb::Incr, b"+OK\r\n"),
        (Verb::Delete, b"+OK\r\n"),
        (Verb::Touch, b"$-1\r\n"),
        (Verb::Version, b"+OK\r\n"),
        (Verb::Version, b":1\r\n"),
    ] as [(Verb, &[u8]); 13]
    {
        let why = (verb, reply.escape_ascii().to_string());
        assert!(heard::<Resp2>(op(verb), reply).is_err(), "{why:?}");
        assert!(heard::<Resp3>(op(verb), reply).is_err(), "{why:?}");
    }
}

#[test]
fn every_answer_of_its_own_kind_ends_its_request() {
    let op = |verb| Op { value: Value::plain(b"v"), delta: 1, cas: 1, ..Op::new(verb, b"a") };
    for (verb, reply) in [
        (Verb::Gats, &b"END\r\n"[..]),
        (Verb::Gets, b"VALUE a 0 1 7\r\nx\r\nEND\r\n"),
        (Verb::Set, b"NOT_STORED\r\n"),
        (Verb::Cas, b"EXISTS\r\n"),
        (Verb::Cas, b"NOT_FOUND\r\n"),
        (Verb::Decr, b"NOT_FOUND\r\n"),
        (Verb::Incr, b"17\r\n"),
        (Verb::Delete, b"NOT_FOUND\r\n"),
        (Verb::Touch, b"TOUCHED\r\n"),
        (Verb::Version, b"VERSION 1\r\n"),
    ] {
        assert_eq!(heard::<Text>(op(verb), reply), Ok(1), "{verb:?} {}", reply.escape_ascii());
    }
    for verb in Verb::ALL.into_iter().filter(|verb| !verb.is_resp_only()) {
        assert_eq!(heard::<Text>(op(verb), b"SERVER_ERROR busy\r\n"), Ok(1), "{verb:?}");
    }
}

#[test]
fn a_session_that_begins_anew_knows_nothing_of_the_connection_before() {
    let two = Op { keys: Keys::Many { bytes: b"ab", ends: &[1, 2] }, ..Op::new(Verb::Get, b"") };
    let mut story = Story::new();
    // The error leaves it open which request the next item answers, and half a line follows it.
    story.ask(two, 0).sent_all(US);
    story.received("VALUE a 0 3\r\none\r\nSERVER_ERROR busy\r\nEN", 2 * US, 3 * US);
    let before = story.session.is_idle();
    story.session.begin_connection(Text::new(), Transport::Stream);
    story.get("c", 4 * US).sent_all(5 * US).received(HIT.replace('a', "c").as_str(), 6 * US, 7 * US);
    assert!(before && story.session.is_idle());
    assert_eq!(story.told.memos, [true, true], "which values can be stale");
    assert_eq!(story.answers().len(), 2);
}

#[test]
fn the_doubts_of_a_connection_last_as_long_as_it_does() {
    let two = Op { keys: Keys::Many { bytes: b"ab", ends: &[1, 2] }, ..Op::new(Verb::Get, b"") };
    let mut story = Story::new();
    story.ask(two, 0).sent_all(US);
    story.received("VALUE a 0 3\r\none\r\nSERVER_ERROR busy\r\n", 2 * US, 3 * US);
    story.get("c", 4 * US).sent_all(5 * US).received(HIT.replace('a', "c").as_str(), 6 * US, 7 * US);
    assert_eq!(story.told.memos, [true, false], "which values can be stale");
}
