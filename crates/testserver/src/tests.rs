//! Tests of clients that talk to the server core: bytes in, bytes out, and their times.

use super::*;
use pummel_logic::protocol::Verb;
use pummel_logic::rng::Stream;
use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};

/// A server with one client, at a time that the test sets.
struct Story {
    server: Server,
    connection: ServerConnection,
    now: Nanos,
}

impl Story {
    fn with(config: ServerConfig) -> Story {
        let mut server = Server::new(ServerConfig { truth: Truth::Kept, ..config }, 0);
        let connection = server.accept();
        Story { server, connection, now: 0 }
    }

    fn faulty(faults: &[ServerFault]) -> Story {
        Story::with(ServerConfig { faults: faults.to_vec(), ..ServerConfig::default() })
    }

    fn plain() -> Story {
        Story::faulty(&[])
    }

    fn held(spec: &str) -> Story {
        Story::with(ServerConfig { service_time: Some(spec.parse().unwrap()), ..ServerConfig::default() })
    }

    /// Sends bytes, and returns those that are due at once.
    fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.server.handle_received(&mut self.connection, bytes, self.now);
        self.receive()
    }

    /// Returns the bytes that are due now.
    fn receive(&mut self) -> Vec<u8> {
        let Story { server, connection, now } = self;
        receive(server, connection, *now, usize::MAX)
    }

    fn text(&mut self, request: &str) -> String {
        String::from_utf8(self.ask(request.as_bytes())).expect("this story's replies are text")
    }

    fn faults_done(&mut self) -> Vec<String> {
        self.server
            .take_notes()
            .map(|note| note.to_string())
            .filter(|line| line.starts_with("fault"))
            .collect()
    }
}

pub(super) fn receive(
    server: &mut Server,
    connection: &mut ServerConnection,
    now: Nanos,
    step: usize,
) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let due = server.poll_send(connection, now);
        let bytes: Vec<u8> = due.parts().iter().flat_map(|part| part.iter().copied()).take(step).collect();
        if bytes.is_empty() {
            return received;
        }
        server.handle_sent(connection, bytes.len(), now);
        received.extend(bytes);
    }
}

/// Requests of every kind, well-formed and not, with what memcached answers.
const CONVERSATION: &[(&str, &str)] = &[
    ("get nothing\r\n", "END\r\n"),
    ("set a 5 0 3\r\none\r\n", "STORED\r\n"),
    ("get a\r\n", "VALUE a 5 3\r\none\r\nEND\r\n"),
    ("gets a\n", "VALUE a 5 3 1\r\none\r\nEND\r\n"),
    ("  get   a   nothing a \r\n", "VALUE a 5 3\r\none\r\nVALUE a 5 3\r\none\r\nEND\r\n"),
    ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("replace a 0 0 3\r\ntwo\r\n", "STORED\r\n"),
    ("append a 9 0 1\r\n!\r\n", "STORED\r\n"),
    ("prepend a 9 0 1 noreply\r\n>\r\n", ""),
    ("gets a\r\n", "VALUE a 0 5 4\r\n>two!\r\nEND\r\n"),
    ("cas a 0 0 1 3\r\nx\r\n", "EXISTS\r\n"),
    ("cas a 0 0 1 4\r\nx\r\n", "STORED\r\n"),
    ("cas nothing 0 0 1 4\r\nx\r\n", "NOT_FOUND\r\n"),
    ("set n 0 0 2\r\n10\r\n", "STORED\r\n"),
    ("decr n 1\r\n", "9\r\n"),
    ("get n\r\n", "VALUE n 0 2\r\n9 \r\nEND\r\n"),
    ("incr n 91\r\n", "100\r\n"),
    ("decr n 1000\r\n", "0\r\n"),
    ("incr a 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    ("incr n -1\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
    ("incr nothing 1\r\n", "NOT_FOUND\r\n"),
    ("touch a 100\r\n", "TOUCHED\r\n"),
    ("gat 0 a nothing\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
    ("gat soon a\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    ("delete a\r\n", "DELETED\r\n"),
    ("delete a\r\n", "NOT_FOUND\r\n"),
    ("delete a 5\r\n", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"),
    ("set a 0 0 3\r\nlonger\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
    ("set empty 0 0 0\r\n\r\n", "STORED\r\n"),
    ("get empty\r\n", "VALUE empty 0 0\r\n\r\nEND\r\n"),
    ("set binary 0 0 7\r\n\r\nEND\r\n\r\n", "STORED\r\n"),
    ("get binary\r\n", "VALUE binary 0 7\r\n\r\nEND\r\n\r\nEND\r\n"),
    ("set a 0 0 -1\r\n", "CLIENT_ERROR bad command line format\r\n"),
    ("bogus\r\n", "ERROR\r\n"),
    ("\r\n", "ERROR\r\n"),
    ("verbosity 1\r\n", "OK\r\n"),
    ("version\r\n", "VERSION 1.6.18-pummel\r\n"),
    ("flush_all noreply\r\n", ""),
    ("get n\r\n", "END\r\n"),
    ("stats reset\r\n", "RESET\r\n"),
];

#[test]
fn every_request_gets_the_answer_of_memcached() {
    let mut story = Story::plain();
    for (request, reply) in CONVERSATION {
        assert_eq!(story.text(request), *reply, "to {request:?}");
    }
}

#[test]
fn no_cut_of_the_requests_and_no_size_of_sends_changes_the_answers() {
    let requests: String = CONVERSATION.iter().map(|(request, _)| *request).collect();
    let replies: String = CONVERSATION.iter().map(|(_, reply)| *reply).collect();
    let cuts = (1..requests.len()).map(|at| vec![at]).chain([(1..requests.len()).collect()]);
    for cuts in cuts {
        let mut story = Story::plain();
        let mut received = Vec::new();
        let mut from = 0;
        for at in cuts.iter().copied().chain([requests.len()]) {
            story.server.handle_received(&mut story.connection, &requests.as_bytes()[from..at], 0);
            received.extend(receive(&mut story.server, &mut story.connection, 0, cuts[0] % 7 + 1));
            from = at;
        }
        assert_eq!(String::from_utf8(received).unwrap(), replies, "cut at {cuts:?}");
    }
}

#[test]
fn bytes_of_any_kind_do_not_bring_the_server_down() {
    let chance = Stream::from_seed(3);
    let words: Vec<&[u8]> = vec![
        b"get ",
        b"set ",
        b"a ",
        b"0 ",
        b"5 ",
        b"\r\n",
        b"noreply",
        b"cas ",
        b"incr ",
        b"-1 ",
        b"\n",
        b"\0",
        b"\xff",
        b"99999999999999999999 ",
        b"stats ",
        b"gat ",
        b"touch ",
        b"delete ",
        b"flush_all ",
        b"2147483645 ",
    ];
    for round in 0..2000 {
        let mut story = Story::plain();
        for draw in 0..40 {
            let word = words[(chance.draw_sub(round, draw) % words.len() as u64) as usize];
            story.ask(word);
        }
    }
}

#[test]
fn values_of_every_size_up_to_the_limit_come_back_as_they_were() {
    let mut story = Story::plain();
    for len in [1, 1023, 1024, 1025, 65_536, 1_048_576 - 60] {
        let value: Vec<u8> = (0..len).map(|at| (at % 253) as u8).collect();
        let set = [format!("set k 0 0 {len}\r\n").as_bytes(), &value, b"\r\n"].concat();
        for piece in set.chunks(10_007) {
            story.server.handle_received(&mut story.connection, piece, 0);
        }
        assert_eq!(story.receive(), b"STORED\r\n", "{len} bytes");
        let expected = [format!("VALUE k 0 {len}\r\n").as_bytes(), &value, b"\r\nEND\r\n"].concat();
        assert!(story.ask(b"get k\r\n") == expected, "{len} bytes");
    }
}

#[test]
fn a_number_in_a_value_of_any_width_is_counted_and_keeps_the_width() {
    let mut story = Story::plain();
    let padded = |digit: char| format!("{digit}{}", " ".repeat(65_535));
    assert_eq!(story.text(&format!("set k 0 0 65536\r\n{}\r\n", padded('1'))), "STORED\r\n");
    assert_eq!(story.text("incr k 1\r\n"), "2\r\n");
    assert_eq!(story.text("get k\r\n"), format!("VALUE k 0 65536\r\n{}\r\nEND\r\n", padded('2')));
}

#[test]
fn what_is_too_large_is_refused_and_what_it_was_to_replace_is_gone() {
    let mut story = Story::plain();
    story.ask(b"set k 0 0 1\r\nx\r\n");
    let set = [b"set k 0 0 1048517\r\n", &vec![b'x'; 1_048_517][..], b"\r\nversion\r\n"].concat();
    let reply = "SERVER_ERROR object too large for cache\r\nVERSION 1.6.18-pummel\r\n";
    assert_eq!(String::from_utf8(story.ask(&set)).unwrap(), reply);
    assert_eq!(story.text("get k\r\n"), "END\r\n");
    assert_eq!(story.server.counts().store_too_large, 1);
}

#[test]
fn a_key_that_is_too_long_spoils_the_whole_request() {
    let mut story = Story::plain();
    let long = "k".repeat(251);
    let fits = "k".repeat(250);
    story.text(&format!("set {fits} 0 0 1\r\nx\r\n"));
    assert_eq!(
        story.text(&format!("get {fits} {long}\r\n")),
        "CLIENT_ERROR bad command line format\r\n",
        "the value before the long key is not sent either"
    );
    assert_eq!(story.text(&format!("get {fits}\r\n")), format!("VALUE {fits} 0 1\r\nx\r\nEND\r\n"));
    for request in [format!("touch {long} 0\r\n"), format!("delete {long}\r\n"), format!("incr {long} 1\r\n")]
    {
        assert_eq!(story.text(&request), "CLIENT_ERROR bad command line format\r\n");
    }
}

#[test]
fn quit_and_http_and_endless_lines_end_the_connection() {
    for last in [&b"quit\r\n"[..], b"GET / HTTP/1.1\r\n", &[b'z'; 20_000]] {
        let mut story = Story::plain();
        let reply = story.ask(&[b"version\r\n", last, b"version\r\n"].concat());
        assert_eq!(reply, b"VERSION 1.6.18-pummel\r\n", "nothing after it is answered");
        assert_eq!(story.connection.poll_close(), Some(Ending::Fin));
    }
}

#[test]
fn what_is_no_request_ends_its_connection_whatever_the_fault() {
    let key_beyond_the_body = [&[0x80u8, 0, 0, 200][..], &[0; 20]].concat();
    let (endless, no_word, no_count) = (&[b'*'; 70_000][..], &b"*1\r\n!x\r\n"[..], &b"*99999999\r\n"[..]);
    for fault in [
        CountedFault::CloseAfter.at(1),
        CountedFault::StallAfter.at(1),
        CountedFault::HalfReplyAfter.at(1),
        CountedFault::GarbageAfter.at(1),
        CountedFault::ErrorEvery.at(1),
        CountedFault::Mix.at(1),
    ] {
        for (kind, broken) in [
            ("an endless line", endless),
            ("no word", no_word),
            ("no count", no_count),
            ("a key beyond the body", &key_beyond_the_body[..]),
        ] {
            let mut story = Story::faulty(&[fault]);
            story.ask(&[broken, broken].concat());
            assert_eq!(story.connection.poll_close(), Some(Ending::Fin), "{kind} with {fault}");
            story.ask(broken);
            assert_eq!(story.server.requests(), 1, "{kind} with {fault}: nothing after it is read");
        }
    }
}

#[test]
fn a_request_for_a_thousand_keys_is_answered() {
    let mut story = Story::plain();
    story.ask(b"set a 0 0 1\r\nx\r\n");
    let keys = "a ".repeat(10_000);
    assert_eq!(story.text(&format!("get {keys}\r\n")).matches("VALUE").count(), 10_000);
    assert_eq!(story.server.counts().get_hits, 10_000);
    assert_eq!(story.server.counts().cmd_get, 10_000, "memcached counts keys");
}

#[test]
fn a_reply_that_would_fill_the_memory_is_an_error() {
    let mut story = Story::plain();
    story.ask(&[&b"set a 0 0 1000\r\n"[..], &[b'x'; 1000], b"\r\n"].concat());
    let keys = "a ".repeat(40_000);
    assert_eq!(story.text(&format!("get {keys}\r\n")), "SERVER_ERROR out of memory writing get response\r\n");
    assert_eq!(story.text(&format!("get {}\r\n", "a ".repeat(1000))).matches("VALUE").count(), 1000);
}

#[test]
fn stats_say_what_was_counted() {
    let mut story = Story::plain();
    story.ask(b"set a 0 0 1\r\nx\r\nget a b\r\n");
    let stats = story.text("stats\r\n");
    for line in ["cmd_get 2", "get_hits 1", "get_misses 1", "cmd_set 1", "curr_items 1", "curr_connections 1"]
    {
        assert!(stats.contains(&format!("STAT {line}\r\n")), "{line} in {stats}");
    }
    assert!(stats.ends_with("END\r\n"));
    assert!(
        stats.contains("STAT bytes_written 29\r\n"),
        "what is sent before counts, the reply itself not yet"
    );
}

#[test]
fn replies_are_held_for_the_service_time_and_keep_their_order() {
    let mut story = Story::held("0.005");
    assert_eq!(story.text("version\r\n"), "");
    assert_eq!(story.connection.next_due(), 5 * MILLISECOND);
    story.now = 2 * MILLISECOND;
    assert_eq!(story.text("get a\r\n"), "");
    story.now = 5 * MILLISECOND;
    assert_eq!(story.receive(), b"VERSION 1.6.18-pummel\r\n");
    story.now = 7 * MILLISECOND;
    assert_eq!(story.receive(), b"END\r\n");
    assert_eq!(story.connection.next_due(), NEVER);
    let truth: Vec<String> = story.server.take_notes().map(|note| note.to_string()).collect();
    assert_eq!(
        truth,
        ["request 1 1 version 0 5000000 5000000 5000000", "request 1 2 get 2000000 7000000 5000000 5000000"]
    );
}

#[test]
fn a_reply_is_due_so_long_after_its_request_arrived_however_late_that_was_read() {
    let mut story = Story::held("0.001");
    let late = 10 * MILLISECOND;
    assert!(receive(&mut story.server, &mut story.connection, late, usize::MAX).is_empty());
    for (arrived, due) in
        [(late - 5 * MILLISECOND, late), (late - MILLISECOND / 4, late + MILLISECOND * 3 / 4)]
    {
        story.server.handle_received(&mut story.connection, b"get a\r\n", arrived);
        story.now = due - 1;
        assert_eq!(story.receive().is_empty(), due > late, "it arrived at {arrived}");
        story.now = due;
        assert_eq!(story.receive().is_empty(), due == late, "it arrived at {arrived}");
    }
    let sent: Vec<String> = story.server.take_notes().map(|note| note.to_string()).collect();
    assert!(sent[0].starts_with("request 1 1 get 5000000 "), "{sent:?}");
}

#[test]
fn requests_of_all_connections_wait_for_one_server_in_the_order_of_their_arrival() {
    let config = ServerConfig {
        service_time: Some("0.005".parse().unwrap()),
        queue_servers: Some(1),
        ..ServerConfig::default()
    };
    let mut story = Story::with(config);
    let mut other = story.server.accept();
    assert_eq!(story.text("get a\r\n"), "");
    story.now = 2 * MILLISECOND;
    story.server.handle_received(&mut other, b"set a 0 0 1 noreply\r\nx\r\nget b\r\n", story.now);
    assert_eq!(other.next_due(), 15 * MILLISECOND, "behind the first request and the one without a reply");
    assert_eq!(story.text("version\r\n"), "");
    story.now = 20 * MILLISECOND;
    assert_eq!(receive(&mut story.server, &mut other, story.now, usize::MAX), b"END\r\n");
    assert_eq!(story.receive(), b"END\r\nVERSION 1.6.18-pummel\r\n");
    let truth: Vec<String> = story.server.take_notes().map(|note| note.to_string()).collect();
    assert_eq!(
        truth,
        [
            "request 2 2 set 2000000 - - 5000000 3000000",
            "request 2 3 get 2000000 20000000 18000000 5000000 8000000",
            "request 1 1 get 0 20000000 20000000 5000000 0",
            "request 1 4 version 2000000 20000000 18000000 5000000 13000000",
        ]
    );
}

#[test]
fn several_servers_of_one_queue_work_at_once() {
    let config = ServerConfig {
        service_time: Some("0.005".parse().unwrap()),
        queue_servers: Some(2),
        ..ServerConfig::default()
    };
    let mut story = Story::with(config);
    story.server.handle_received(&mut story.connection, &b"version\r\n".repeat(5), 0);
    for (now_ms, replies) in [(4, 0), (5, 2), (10, 2), (15, 1)] {
        story.now = now_ms * MILLISECOND;
        assert_eq!(story.receive(), b"VERSION 1.6.18-pummel\r\n".repeat(replies), "at {now_ms} ms");
    }
}

#[test]
fn service_times_drift_as_they_are_told_from_the_first_request_on() {
    let config = ServerConfig {
        service_time: Some("0.001".parse().unwrap()),
        service_drift: Some("step:3,1".parse().unwrap()),
        ..ServerConfig::default()
    };
    let mut story = Story::with(config);
    for (now, hold) in [(SECOND, MILLISECOND), (2 * SECOND, 3 * MILLISECOND)] {
        story.now = now;
        story.ask(b"version\r\n");
        assert_eq!(story.connection.next_due(), now + hold);
        story.now = now + hold;
        story.receive();
    }
}

#[test]
fn service_times_follow_the_distribution_and_the_seed() {
    let holds = |seed| {
        let service_time = Some("exponential:0.001".parse().unwrap());
        let mut story = Story::with(ServerConfig { service_time, seed, ..ServerConfig::default() });
        story.ask(&b"version\r\n".repeat(10_000));
        story.now = SECOND;
        story.receive();
        let asked = |note| match note {
            Note::Request { asked_ns, .. } => asked_ns,
            Note::Fault { .. } => unreachable!("no fault was asked for"),
        };
        story.server.take_notes().map(asked).collect::<Vec<_>>()
    };
    let first = holds(1);
    assert_eq!(first, holds(1));
    assert_ne!(first, holds(2));
    let mean = first.iter().sum::<Nanos>() as f64 / first.len() as f64;
    assert!((mean - 1e6).abs() < 5e4, "the mean of 10,000 draws is within 5 standard errors: {mean}");
}

#[test]
fn close_after_closes_in_place_of_the_answer() {
    let mut story = Story::faulty(&[CountedFault::CloseAfter.at(3)]);
    assert_eq!(story.text("get a\r\nget a\r\nget a\r\nget a\r\n"), "END\r\nEND\r\n");
    assert_eq!(story.connection.poll_close(), Some(Ending::Fin));
    assert_eq!(story.server.requests(), 3, "what comes after it is not read");
    let mut second = story.server.accept();
    story.server.handle_received(&mut second, b"get a\r\nget a\r\nget a\r\n", 0);
    assert_eq!(receive(&mut story.server, &mut second, 0, usize::MAX), b"END\r\nEND\r\n");
    assert_eq!(second.poll_close(), Some(Ending::Fin), "every third request");
    assert_eq!(
        story.faults_done(),
        ["fault close-after connection=1 request=3", "fault close-after connection=2 request=6"]
    );
}

#[test]
fn stall_after_silences_the_whole_server() {
    let mut story = Story::faulty(&[CountedFault::StallAfter.at(2)]);
    assert_eq!(story.text("set a 0 0 1\r\nx\r\nset a 0 0 1\r\ny\r\n"), "STORED\r\n");
    let mut second = story.server.accept();
    story.server.handle_received(&mut second, b"get a\r\n", 0);
    assert!(receive(&mut story.server, &mut second, SECOND, usize::MAX).is_empty());
    assert_eq!(second.next_due(), NEVER);
    assert_eq!(second.poll_close(), None);
    assert_eq!(story.server.counts().cmd_set, 1, "what is not answered is not done");
}

#[test]
fn garbage_after_answers_what_is_no_reply() {
    let mut story = Story::faulty(&[CountedFault::GarbageAfter.at(2)]);
    assert_eq!(story.ask(b"get a\r\n"), b"END\r\n");
    for _ in 0..10 {
        let reply = story.ask(b"get a\r\n");
        assert!(reply[0] >= 0x80 && reply.ends_with(b"\r\n"), "{reply:?}");
    }
}

#[test]
fn a_half_reply_is_the_last_word() {
    let mut story = Story::faulty(&[CountedFault::HalfReplyAfter.at(2)]);
    assert_eq!(story.text("version\r\nversion\r\nversion\r\n"), "VERSION 1.6.18-pummel\r\nVERSION 1.6");
    assert_eq!(story.text("version\r\n"), "");
    let truth: Vec<String> = story.server.take_notes().map(|note| note.to_string()).collect();
    assert!(truth.contains(&"request 1 2 version 0 - - 0".to_owned()), "{truth:?}");
}

#[test]
fn error_every_does_not_carry_out_the_request() {
    let mut story = Story::faulty(&[CountedFault::ErrorEvery.at(2)]);
    let replies = story.text("set a 0 0 1\r\nx\r\nset a 0 0 1\r\ny\r\nget a\r\n");
    assert_eq!(
        replies,
        "STORED\r\nSERVER_ERROR this request was chosen to fail\r\nVALUE a 0 1\r\nx\r\nEND\r\n"
    );
}

#[test]
fn flip_changes_one_bit_of_every_nth_value() {
    let mut story = Story::faulty(&[CountedFault::Flip.at(3)]);
    let value = vec![0u8; 2000];
    story.ask(&[&b"set a 0 0 2000\r\n"[..], &value, b"\r\n"].concat());
    let ones: Vec<u32> = (0..9)
        .map(|_| {
            let reply = story.ask(b"get a\r\n");
            reply[b"VALUE a 0 2000\r\n".len()..][..2000].iter().map(|byte| byte.count_ones()).sum()
        })
        .collect();
    assert_eq!(ones, [0, 0, 1, 0, 0, 1, 0, 0, 1]);
    let faults = story.faults_done();
    assert_eq!(faults.len(), 3);
    assert!(faults[0].starts_with("fault flip connection=1 request=4 key=a bit="), "{faults:?}");
}

#[test]
fn wrong_key_sends_what_another_key_holds() {
    let mut story = Story::faulty(&[CountedFault::WrongKey.at(2)]);
    assert_eq!(
        story.text("set a 0 0 1\r\nx\r\nget a a\r\n").matches('x').count(),
        2,
        "there is no other key"
    );
    story.text("set bee 0 0 3\r\nyyy\r\n");
    let reply = story.text("get a a\r\n");
    assert_eq!(reply, "VALUE a 0 1\r\nx\r\nVALUE a 0 3\r\nyyy\r\nEND\r\n");
    assert_eq!(story.faults_done(), ["fault wrong-key connection=1 request=4 key=a from=bee"]);
}

#[test]
fn expiry_faults_are_told() {
    let mut story = Story::faulty(&[ServerFault::IgnoreExpiry]);
    story.text("set a 0 1 1\r\nx\r\n");
    story.now = 2 * SECOND;
    assert!(story.text("get a\r\n").starts_with("VALUE"));
    assert_eq!(story.faults_done(), ["fault ignore-expiry connection=1 request=2 key=a left_s=-1.000000"]);

    let mut story = Story::faulty(&[ServerFault::EarlyExpiry(4 * SECOND)]);
    story.text("set a 0 10 1\r\nx\r\n");
    story.now = 6 * SECOND;
    assert_eq!(story.text("get a\r\n"), "END\r\n");
    assert_eq!(story.faults_done(), ["fault early-expiry connection=1 request=2 key=a left_s=4.000000"]);
}

#[test]
fn a_command_that_looks_for_its_item_several_times_makes_one_fault_of_expiry() {
    for (fault, kind, now) in [
        (ServerFault::IgnoreExpiry, "ignore-expiry", 3 * SECOND),
        (ServerFault::EarlyExpiry(SECOND), "early-expiry", SECOND * 3 / 2),
    ] {
        for request in [
            "get a a a\r\n",
            "ma a N0 T50 v t\r\n",
            "*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
            "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nx\r\n",
        ] {
            let mut story = Story::faulty(&[fault]);
            story.text("set a 0 2 1\r\n5\r\n");
            let mut other = story.server.accept();
            story.server.handle_received(&mut other, request.as_bytes(), now);
            let faults = story.faults_done();
            let begin = format!("fault {kind} connection=2 request=2 key=a left_s=");
            assert!(faults.len() == 1 && faults[0].starts_with(&begin), "{request:?}: {faults:?}");
        }
    }
}

#[test]
fn every_command_that_meets_the_same_item_makes_a_fault_of_its_own() {
    let mut story = Story::faulty(&[ServerFault::IgnoreExpiry]);
    story.text("set a 0 1 1\r\nx\r\nset b 0 1 1\r\nx\r\n");
    story.now = 2 * SECOND;
    story.text("get a b\r\nget a\r\n");
    let fault = |request: u64, key: &str| {
        format!("fault ignore-expiry connection=1 request={request} key={key} left_s=-1.000000")
    };
    assert_eq!(story.faults_done(), [fault(3, "a"), fault(3, "b"), fault(4, "a")]);
}

#[test]
fn refuse_resets_at_once() {
    let mut story = Story::faulty(&[ServerFault::Refuse]);
    assert_eq!(story.connection.poll_close(), Some(Ending::Reset));
    assert_eq!(story.text("version\r\n"), "");
    assert_eq!(story.faults_done(), ["fault refuse connection=1 request=0"]);
}

#[test]
fn slow_bytes_leave_one_at_a_time() {
    let mut story = Story::faulty(&[ServerFault::SlowBytes]);
    let mut received = story.ask(b"get a\r\n");
    assert_eq!(received, b"E");
    while story.connection.next_due() != NEVER {
        assert_eq!(story.receive(), b"", "nothing before the gap is over");
        assert_eq!(story.connection.next_due(), story.now + 100 * MICROSECOND);
        story.now = story.connection.next_due();
        let more = story.receive();
        assert_eq!(more.len(), 1);
        received.extend(more);
    }
    assert_eq!(received, b"END\r\n");
}

#[test]
fn a_client_that_does_not_listen_is_noticed() {
    let mut story = Story::plain();
    let value = vec![b'x'; 500_000];
    story.ask(&[&b"set a 0 0 500000\r\n"[..], &value, b"\r\n"].concat());
    story.server.handle_received(&mut story.connection, b"get a\r\nget a\r\n", 0);
    assert!(!story.connection.is_full());
    story.server.handle_received(&mut story.connection, b"get a\r\n", 0);
    assert!(story.connection.is_full());
    story.receive();
    assert!(!story.connection.is_full());
}

#[test]
fn what_was_owed_when_a_connection_ended_is_told() {
    let mut story = Story::held("1");
    story.ask(b"version\r\nversion\r\n");
    story.server.handle_closed(story.connection);
    let truth: Vec<String> = story.server.take_notes().map(|note| note.to_string()).collect();
    assert_eq!(truth, ["request 1 1 version 0 - - 1000000000", "request 1 2 version 0 - - 1000000000"]);
    assert!(
        story.server.store().put(Verb::Set, &incoming(b"k"), 0) == pummel_logic::protocol::Outcome::Stored
    );
}

fn incoming(key: &[u8]) -> store::Incoming<'_> {
    store::Incoming { key, flags: 0, expiry_s: 0, cas: 0, value: b"v" }
}
