//! Tests of a connection over UDP: datagrams in any order, twice or never, in both framings of multi-gets.

use std::io::IoSlice;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use pummel_logic::bodies::Bodies;
use pummel_logic::connection::inflight::{AnswerUse, Ticket};
use pummel_logic::connection::outbox::{Room, Sources};
use pummel_logic::connection::session::{Answer, Chunk, Item, Session, Sink, Stamp};
use pummel_logic::plan::Transport;
use pummel_logic::protocol::text::Text;
use pummel_logic::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use pummel_logic::protocol::{Codec, Fault, Keys, Malformed, Op, Outcome, Value, Verb};
use pummel_logic::time::{MILLISECOND, Nanos};

const MS: Nanos = MILLISECOND;

/// Way in which servers cut the reply to a multi-get.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    /// One stream for all keys, before 1.6.
    Stream,
    /// A message for each key that is found, since 1.6.
    PerKey,
}

const FRAMINGS: [Framing; 2] = [Framing::Stream, Framing::PerKey];

/// Keys that are asked for, each with its value if it is found.
type Found = Vec<(&'static str, Option<Vec<u8>>)>;

/// Cuts one message into datagrams.
fn message(number: u16, bytes: &[u8]) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = bytes.chunks(DATAGRAM_MAX_BYTES - Frame::LEN_BYTES).collect();
    let total = pieces.len() as u16;
    let frame = |sequence| Frame { request: number, sequence, total }.encode();
    pieces.iter().zip(0..).map(|(piece, sequence)| [&frame(sequence)[..], piece].concat()).collect()
}

/// The datagrams of a reply to a read of these keys, each with its value if it is found.
fn reply(number: u16, framing: Framing, found: &[(&str, Option<Vec<u8>>)]) -> Vec<Vec<u8>> {
    let item = |(key, value): &(&str, Option<Vec<u8>>)| {
        value
            .as_ref()
            .map(|value| [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat())
    };
    let mut datagrams = Vec::new();
    match framing {
        Framing::Stream => {
            let items: Vec<u8> = found.iter().filter_map(item).flatten().collect();
            return message(number, &[&items[..], b"END\r\n"].concat());
        }
        Framing::PerKey => {
            for (n, key) in found.iter().enumerate() {
                let is_last = n + 1 == found.len();
                match item(key) {
                    Some(bytes) if is_last => {
                        datagrams.extend(message(number, &[&bytes[..], b"END\r\n"].concat()))
                    }
                    Some(bytes) => datagrams.extend(message(number, &bytes)),
                    None if is_last => datagrams.extend(message(number, b"END\r\n")),
                    None if n == 0 => {
                        datagrams.push(Frame { request: number, sequence: 0, total: 0 }.encode().to_vec())
                    }
                    None => {}
                }
            }
        }
    }
    datagrams
}

/// A connection whose requests are numbered from 0, and everything that its sink received.
struct Story {
    session: Session<Text>,
    asked: u64,
    /// Datagrams that were taken from the session.
    sent: Vec<Vec<u8>>,
    told: Told,
}

#[derive(Default)]
struct Told {
    /// Answers to the requests: number, outcome, hits and the message of the server.
    answers: Vec<(u64, Outcome, u32, String)>,
    stamps: Vec<Stamp>,
    /// Items that were to be checked: key and bytes.
    checked: Vec<(String, Vec<u8>)>,
    /// Keys of all items.
    items: Vec<String>,
}

impl Sink for Told {
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        let key = String::from_utf8_lossy(item.key).into_owned();
        self.items.push(key.clone());
        let wanted = ticket.answer_use == AnswerUse::Verify;
        if wanted {
            self.checked.push((key, Vec::new()));
        }
        Ok(wanted)
    }

    fn body(&mut self, _ticket: &Ticket, bytes: &[u8]) {
        self.checked.last_mut().expect("bytes belong to an item").1.extend_from_slice(bytes);
    }

    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        let message = String::from_utf8_lossy(message).into_owned();
        self.answers.push((answer.ticket.index, answer.outcome, answer.hits, message));
        self.stamps.push(answer.stamp);
    }
}

impl Story {
    fn new() -> Story {
        Story { session: Session::over_datagrams(4), asked: 0, sent: Vec::new(), told: Told::default() }
    }

    fn ticket(&self, op: &Op<'_>, at: Nanos) -> Ticket {
        Ticket {
            due: at,
            ready: at,
            index: self.asked,
            answer_use: AnswerUse::Verify,
            keys: op.keys.count() as u16,
            ..Ticket::of(op.verb)
        }
    }

    fn ask(&mut self, op: &Op<'_>, at: Nanos) {
        let ticket = self.ticket(op, at);
        self.session.request(op, ticket).expect("the story asks what can be asked");
        self.asked += 1;
    }

    fn get(&mut self, keys: &[&str], at: Nanos) {
        let ends: Vec<u32> = keys
            .iter()
            .scan(0, |end, key| {
                *end += key.len() as u32;
                Some(*end)
            })
            .collect();
        let bytes = keys.concat();
        let keys = match keys {
            [key] => Keys::One(key.as_bytes()),
            _ => Keys::Many { bytes: bytes.as_bytes(), ends: &ends },
        };
        self.ask(&Op { keys, ..Op::new(Verb::Get, b"") }, at);
        self.send(at);
    }

    fn send(&mut self, at: Nanos) {
        loop {
            let (bodies, mut room) = (Bodies::new(0, 1.0), Room::default());
            let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
            let sources = Sources { text: &[], bodies: &bodies };
            let count = self.session.poll_send(sources, &mut room, &mut parts);
            if count == 0 {
                return;
            }
            let datagram: Vec<u8> = parts[..count].iter().flat_map(|part| part.iter().copied()).collect();
            self.session.handle_sent(datagram.len(), at, &mut self.told);
            self.sent.push(datagram);
        }
    }

    fn receive(&mut self, datagram: &[u8], at: Nanos) -> u32 {
        let chunk = Chunk { bytes: datagram, stamp: Some(at), read: at + 5 };
        self.session
            .handle_received(chunk, &mut self.told)
            .expect("nothing breaks a connection over datagrams")
    }

    fn number_of(&self, place: usize) -> u16 {
        Frame::decode(&self.sent[place]).expect("what is sent has a frame").0.request
    }
}

/// Every order of this number of things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    (0..count)
        .flat_map(|at| {
            shorter.iter().map(move |order| {
                let mut order = order.clone();
                order.insert(at, count - 1);
                order
            })
        })
        .collect()
}

/// A value of `len` bytes, each of which shows its place in the value.
fn value(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 1392 * 31 + seed * 13) as u8).collect()
}

#[test]
fn each_request_is_one_datagram_with_a_number_of_its_own() {
    let mut story = Story::new();
    story.ask(&Op::new(Verb::Get, b"a"), 0);
    story.ask(&Op::new(Verb::Delete, b"b"), 0);
    story.send(1);
    assert_eq!(
        story.sent,
        [
            [&Frame::single(0).encode()[..], b"get a\r\n"].concat(),
            [&Frame::single(1).encode()[..], b"delete b\r\n"].concat()
        ]
    );
}

#[test]
fn replies_find_their_requests_in_any_order() {
    let mut story = Story::new();
    for key in ["a", "b"] {
        story.get(&[key], 0);
    }
    story.ask(&Op::new(Verb::Incr, b"n"), 0);
    story.send(0);
    assert_eq!(story.receive(&message(2, b"17\r\n")[0], 3), 1);
    assert_eq!(story.receive(&message(1, b"END\r\n")[0], 4), 1);
    assert_eq!(story.receive(&message(0, b"VALUE a 0 1\r\nx\r\nEND\r\n")[0], 5), 1);
    let ends: Vec<_> =
        story.told.answers.iter().map(|(index, outcome, hits, _)| (*index, *outcome, *hits)).collect();
    assert_eq!(ends, [(2, Outcome::Number(17), 0), (1, Outcome::Miss, 0), (0, Outcome::Hit, 1)]);
    assert_eq!(story.told.stamps, [Stamp::Kernel; 3], "each datagram has its own");
    assert!(story.session.is_idle());
    assert_eq!(story.session.take_datagram_counts().packet_disorder, 0);
}

/// Replies of up to six datagrams in either framing.
fn replies() -> Vec<Found> {
    let some = |seed, len| Some(value(seed, len));
    vec![
        vec![("a", some(1, 3000))],
        vec![("a", some(1, 10)), ("b", some(2, 20))],
        vec![("a", None), ("b", some(2, 20)), ("c", None)],
        vec![("a", some(1, 10)), ("b", some(2, 2000)), ("c", some(3, 30))],
        vec![("a", some(1, 1500)), ("b", some(2, 2000)), ("c", some(3, 30))],
        vec![("a", some(1, 2000)), ("b", some(2, 2000)), ("a", some(1, 2000))],
        vec![("a", some(1, 3000)), ("b", some(2, 1376)), ("c", None)],
        vec![("a", None), ("b", None)],
        vec![("a", some(1, 0)), ("a", some(1, 0)), ("b", some(2, 1))],
    ]
}

#[test]
fn a_reply_is_the_same_for_every_order_of_its_datagrams_in_both_framings() {
    for found in replies() {
        let keys: Vec<&str> = found.iter().map(|(key, _)| *key).collect();
        let hits: Vec<&str> =
            found.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| *key).collect();
        for framing in FRAMINGS {
            let datagrams = reply(0, framing, &found);
            for order in orders(datagrams.len()) {
                let mut story = Story::new();
                story.get(&keys, 0);
                let answered: Vec<u32> = order.iter().map(|&at| story.receive(&datagrams[at], 1)).collect();
                let what = format!("{keys:?} {framing:?} {order:?}");
                let [(_, outcome, count, _)] = &story.told.answers[..] else {
                    panic!("{what}: not one answer")
                };
                assert_eq!(*outcome, if *count > 0 { Outcome::Hit } else { Outcome::Miss }, "{what}");
                // The message with the end may overtake another, which then is dropped as stray.
                let overtook = framing == Framing::PerKey && answered.last() == Some(&0);
                if !overtook {
                    assert_eq!(story.told.items, hits, "{what}: in the order in which they were asked for");
                }
                // Two moves that make up for each other cannot be seen.
                let shape = |at: &usize| Frame::decode(&datagrams[*at]).map(|(frame, _)| frame);
                if order.iter().map(shape).eq((0..datagrams.len()).map(|at| shape(&at))) {
                    continue;
                }
                for (key, bytes) in &story.told.checked {
                    let right =
                        found.iter().any(|(name, value)| name == key && value.as_ref() == Some(bytes));
                    assert!(right, "{what}: {key} has another value's bytes");
                }
            }
        }
    }
}

#[test]
fn in_order_every_value_is_checked() {
    for found in replies() {
        let keys: Vec<&str> = found.iter().map(|(key, _)| *key).collect();
        let hits = found.iter().filter(|(_, value)| value.is_some()).count();
        for framing in FRAMINGS {
            let mut story = Story::new();
            story.get(&keys, 0);
            for datagram in reply(0, framing, &found) {
                story.receive(&datagram, 1);
            }
            assert_eq!(story.session.take_datagram_counts().packet_disorder, 0, "{keys:?} {framing:?}");
            // A single large value beside misses may be of two, of which the second half of one and the first of the
            // other got lost.
            let large = found.iter().flat_map(|(_, value)| value).any(|value| value.len() > 1300);
            if hits == keys.len() || !large {
                assert_eq!(story.told.checked.len(), hits, "{keys:?} {framing:?}");
            }
        }
    }
}

#[test]
fn what_comes_late_twice_or_astray_is_counted_and_answers_nothing() {
    let mut story = Story::new();
    story.get(&["a"], 0);
    let hit = &message(0, b"VALUE a 0 1\r\nx\r\nEND\r\n")[0];
    assert_eq!(story.receive(hit, 1), 1);
    assert_eq!(story.receive(hit, 2), 0, "the same again");
    assert_eq!(story.receive(&message(77, b"END\r\n")[0], 3), 0, "nobody's");
    assert_eq!(story.receive(b"\0\0\0", 4), 0, "no frame");
    let counts = story.session.take_datagram_counts();
    assert_eq!((counts.stray, counts.packet_disorder), (3, 3));
    assert_eq!(story.told.answers.len(), 1);
}

#[test]
fn a_timeout_gives_up_one_request_and_counts_what_is_missing_of_its_reply() {
    let mut story = Story::new();
    story.get(&["a"], 0);
    story.get(&["b"], 2 * MS);
    story.get(&["c"], 9 * MS);
    let large = message(1, &[b"VALUE b 0 4000\r\n", &value(1, 4000)[..], b"\r\nEND\r\n"].concat());
    story.receive(&large[2], 3 * MS);
    story.receive(&large[0], 3 * MS);
    assert_eq!(story.session.deadline(10 * MS), 10 * MS);
    assert_eq!(story.session.handle_overdue(10 * MS, 12 * MS, &mut story.told), 2);
    let ends: Vec<_> = story.told.answers.iter().map(|(index, outcome, ..)| (*index, *outcome)).collect();
    assert_eq!(ends, [(0, Outcome::Error(Fault::Timeout)), (1, Outcome::Error(Fault::Timeout))]);
    let counts = story.session.take_datagram_counts();
    assert_eq!(counts.udp_timeout, 2);
    assert_eq!(counts.packet_drop, 1 + large.len() as u64 - 2, "at least one of the first");
    assert_eq!(counts.packet_disorder, 1);
    assert_eq!(story.session.deadline(10 * MS), 19 * MS, "the third goes on");
    assert_eq!(story.receive(&large[1], 13 * MS), 0);
    assert_eq!(story.receive(&message(2, b"END\r\n")[0], 14 * MS), 1);
    assert_eq!(story.session.take_datagram_counts().stray, 1);
    assert!(story.session.is_idle());
}

#[test]
fn the_number_of_a_request_that_was_given_up_is_not_used_again() {
    let mut story = Story::new();
    story.get(&["lost"], 0);
    story.session.handle_overdue(MS, 2 * MS, &mut story.told);
    let mut numbers = Vec::new();
    for n in 0..(1 << 16) {
        story.get(&["a"], 3 * MS + n);
        let number = story.number_of(story.sent.len() - 1);
        numbers.push(number);
        assert_eq!(story.receive(&message(number, b"END\r\n")[0], 3 * MS + n), 1);
    }
    assert!(!numbers.contains(&0), "a late reply to it would be taken for another's");
    assert_eq!(story.receive(&message(0, b"END\r\n")[0], 9 * MS), 0);
    assert_eq!(story.session.take_datagram_counts().stray, 1);
}

#[test]
fn numbers_are_left_out_with_others_outstanding_too() {
    let mut story = Story::new();
    story.get(&["lost"], 0);
    story.session.handle_overdue(MS, 2 * MS, &mut story.told);
    for _ in 0..(1 << 16) - 2 {
        story.get(&["a"], 3 * MS);
        let number = story.number_of(story.sent.len() - 1);
        story.receive(&message(number, b"END\r\n")[0], 3 * MS);
    }
    story.sent.clear();
    for key in ["b", "c", "d"] {
        story.ask(&Op::new(Verb::Get, key.as_bytes()), 4 * MS);
    }
    story.send(4 * MS);
    let numbers: Vec<u16> = (0..3).map(|place| story.number_of(place)).collect();
    assert_eq!(numbers, [65_535, 1, 2]);
    for number in [2, 1, 65_535] {
        assert_eq!(story.receive(&message(number, b"END\r\n")[0], 5 * MS), 1, "number {number}");
    }
    assert!(story.session.is_idle());
}

#[test]
fn no_more_are_sent_than_numbers_can_tell_apart() {
    let mut story = Story::new();
    for _ in 0..40_000 {
        story.ask(&Op::new(Verb::Get, b"a"), 0);
    }
    story.send(1);
    assert_eq!(story.sent.len(), 1 << 15);
    assert_eq!(story.receive(&message(0, b"END\r\n")[0], 2), 1);
    story.send(3);
    assert_eq!(story.sent.len(), (1 << 15) + 1, "as the oldest is answered");
    story.session.handle_overdue(MS, 2 * MS, &mut story.told);
    assert_eq!(story.told.answers.len(), 40_000, "what was not sent in time ends too");
    assert!(story.session.is_idle());
    story.send(3 * MS);
    assert_eq!(story.sent.len(), (1 << 15) + 1, "and is not sent afterwards");
}

#[test]
fn a_request_without_reply_ends_when_it_is_sent() {
    let mut story = Story::new();
    story.ask(&Op { noreply: true, value: Value::plain(b"v"), ..Op::new(Verb::Set, b"a") }, 0);
    story.ask(&Op::new(Verb::Get, b"a"), 0);
    story.send(1);
    assert_eq!(story.told.answers.len(), 1);
    assert_eq!(story.receive(&message(1, b"END\r\n")[0], 2), 1);
    assert!(story.session.is_idle());
}

#[test]
fn what_does_not_fit_in_a_datagram_is_refused_and_leaves_no_trace() {
    let mut story = Story::new();
    let key = [b'k'; 64];
    for (len, fits) in [(1311, true), (1312, false), (100_000, false)] {
        let bytes = vec![b'v'; len];
        let op = Op { value: Value::plain(&bytes), ..Op::new(Verb::Set, &key) };
        let ticket = story.ticket(&op, 0);
        assert_eq!(story.session.request(&op, ticket).is_ok(), fits, "{len} bytes");
    }
    story.send(1);
    assert_eq!(story.sent.len(), 1);
    assert_eq!(story.sent[0].len(), DATAGRAM_MAX_BYTES);
}

#[test]
fn a_reply_that_is_none_fails_its_request_alone() {
    let mut story = Story::new();
    for key in ["a", "b", "c", "d"] {
        story.get(&[key], 0);
    }
    assert_eq!(story.receive(&message(3, b"STORED\r\n")[0], 1), 1, "no read is stored");
    assert_eq!(story.receive(&message(1, b"+OK\r\n")[0], 1), 1);
    assert_eq!(story.receive(&message(2, b"VALUE c 0 9\r\nx\r\nEND\r\n")[0], 1), 1, "shorter than it says");
    assert_eq!(story.receive(&message(0, b"SERVER_ERROR out of memory\r\n")[0], 1), 1);
    let ends: Vec<_> = story.told.answers.iter().map(|(index, outcome, ..)| (*index, *outcome)).collect();
    let [protocol, server] = [Fault::Protocol, Fault::Server].map(Outcome::Error);
    assert_eq!(ends, [(3, protocol), (1, protocol), (2, protocol), (0, server)]);
}

#[test]
fn misses_that_lost_datagrams_could_be_are_counted_where_the_framing_leaves_it_open() {
    let found = [("a", Some(value(1, 5))), ("b", None), ("c", Some(value(3, 5)))];
    for (framing, unclear) in [(Framing::PerKey, 1), (Framing::Stream, 0)] {
        let mut story = Story::new();
        story.get(&["a", "b", "c"], 0);
        for datagram in reply(0, framing, &found) {
            story.receive(&datagram, 1);
        }
        assert_eq!(story.session.take_datagram_counts().unclear_misses, unclear, "{framing:?}");
    }
}

#[test]
fn a_key_asked_for_twice_whose_end_needs_a_datagram_more_may_come_in_any_order() {
    // As long as fits in one datagram without the end of the reply behind it.
    let found = vec![("b", Some(value(1, 1_373))); 2];
    let datagrams = reply(0, Framing::PerKey, &found);
    assert_eq!(datagrams.len(), 3);
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1]] {
        let mut story = Story::new();
        story.get(&["b", "b"], 0);
        let answered: u32 = order.iter().map(|&at| story.receive(&datagrams[at], 1)).sum();
        assert_eq!((answered, story.told.answers[0].1), (1, Outcome::Hit), "{order:?}");
    }
}

#[test]
fn a_closed_session_goes_on_with_other_numbers() {
    let mut story = Story::new();
    story.get(&["a", "b"], 0);
    story.session.handle_closed(Fault::Refused, MS, &mut story.told);
    assert_eq!(story.told.answers[0].1, Outcome::Error(Fault::Refused));
    story.session.begin_connection(Text::new(), Transport::Udp);
    story.get(&["a"], 2 * MS);
    assert_eq!(story.number_of(1), 1);
}

/// Keys of a reply with their values; keys come from a few, so that some are asked for twice.
fn any_reply() -> impl Strategy<Value = Found> {
    let key = prop_oneof![Just("a"), Just("b"), Just("c"), Just("dd")];
    let len = prop_oneof![0usize..40, 1300usize..1450, 2700usize..4300];
    vec((key, proptest::option::weighted(0.8, (0usize..4, len))), 1..8).prop_map(|found| {
        let mut known: Vec<(&str, Option<Vec<u8>>)> = Vec::new();
        for (key, what) in found {
            let earlier = known.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
            known.push((key, earlier.unwrap_or_else(|| what.map(|(seed, len)| value(seed, len)))));
        }
        known
    })
}

proptest! {
    #[test]
    fn no_loss_order_or_copy_gives_a_value_other_bytes_or_an_answer_too_many(
        found in any_reply(),
        stream: bool,
        fates in vec((0u8..8, any::<u8>()), 30),
    ) {
        let framing = if stream { Framing::Stream } else { Framing::PerKey };
        let keys: Vec<&str> = found.iter().map(|(key, _)| *key).collect();
        let datagrams = reply(0, framing, &found);
        let mut way: Vec<(u8, &Vec<u8>)> = Vec::new();
        let mut lost = 0;
        for (datagram, &(fate, place)) in datagrams.iter().zip(fates.iter().cycle()) {
            match fate {
                0 => lost += 1,
                1 => way.extend([(place, datagram), (place.wrapping_add(100), datagram)]),
                2 => way.push((place, datagram)),
                _ => way.push((100, datagram)),
            }
        }
        way.sort_by_key(|(place, _)| *place);
        let mut story = Story::new();
        story.get(&keys, 0);
        for (_, datagram) in &way {
            story.receive(datagram, 1);
        }
        let answered = story.told.answers.len();
        prop_assert!(answered <= 1);
        if stream && lost > 0 {
            prop_assert_eq!(answered, 0, "a stream with a hole is not whole");
        }
        // A copy can pass for the reply to a key that was asked for twice, and the true one for the copy.
        let doubled = way.len() + lost > datagrams.len();
        let repeated = keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
        if lost == 0 && !(doubled && repeated) {
            prop_assert_eq!(answered, 1, "everything came");
        }
        for (key, bytes) in &story.told.checked {
            let right = found.iter().any(|(name, value)| name == key && value.as_ref() == Some(bytes));
            prop_assert!(right, "{} has another value's bytes", key);
        }
        story.session.handle_overdue(MS, 2 * MS, &mut story.told);
        prop_assert_eq!(story.told.answers.len(), 1);
        prop_assert!(story.session.is_idle());
    }
}
