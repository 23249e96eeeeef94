//! Tests of requests that are sent again after errors, where the servers are no cluster.

use std::collections::VecDeque;
use std::sync::Arc;

use pummel_logic::arrival::Pace;
use pummel_logic::client::route::{Lane, Router};
use pummel_logic::client::{Action, Client, Exchange, PhaseAssignment};
use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::plan::{Arrivals, Data, DatasetOrder, Mix, Retry, RetryKind, Route, Work};
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::retry::{KindCounts, Retries, RetryCounts};
use pummel_logic::rng::{Stream, StreamOwner};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::unsent::Unsent;
use pummel_logic::workload::dataset::{DatasetRows, PackedRows};
use pummel_logic::workload::key::KeyMaker;
use pummel_logic::workload::request::{CheckState, RequestInputs, RequestMaker};
use pummel_logic::workload::value::ValueMaker;
use pummel_logic::workload::verify::ledger::Ledger;
use pummel_logic::workload::verify::stale::{RunMark, Writer};

/// Time at which the phase begins.
const BEGIN: Nanos = SECOND;

/// Time from due in which requests are sent again.
const RETRY_FOR_NS: Nanos = 100 * MILLISECOND;

/// The error of a server that loads its data.
const LOADING: (Fault, &str) = (Fault::Down, "LOADING Redis is loading the dataset in memory");

/// The end of a request without a reply.
const LOST: (Fault, &str) = (Fault::Reset, "");

/// A request on its way to a server.
#[derive(Clone, Debug)]
struct Sent {
    lane: Lane,
    ticket: Ticket,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The content of the first place of a command.
    fill: Vec<u8>,
    at: Nanos,
}

/// The end of a request: its operation, its due time and first sending, and its outcome.
type End = (Verb, Nanos, Nanos, Outcome);

/// The properties of a scene that differ from the usual.
struct Props {
    records: u64,
    requests: u64,
    depth: u32,
    servers: usize,
    /// Requests per second; `None` in closed loop.
    rate: Option<f64>,
    commands: &'static [&'static str],
    /// The rows of a dataset of one column, and their order.
    rows: Option<(&'static [&'static str], DatasetOrder)>,
    end: Nanos,
    audits: bool,
}

impl Default for Props {
    fn default() -> Props {
        Props {
            records: 1_000,
            requests: 2,
            depth: 1,
            servers: 1,
            rate: None,
            commands: &[],
            rows: None,
            end: NEVER,
            audits: false,
        }
    }
}

/// Rows of one column.
fn packed(rows: &[&str]) -> PackedRows {
    let fields: Vec<u8> = rows.iter().flat_map(|row| row.bytes()).collect();
    let mut end = 0;
    let ends = rows.iter().flat_map(|row| {
        end += row.len() as u64;
        end.to_le_bytes()
    });
    PackedRows::new(1, Arc::new(ends.collect::<Vec<u8>>()), Arc::new(fields)).expect("there are rows")
}

/// One client whose requests are sent again after every error.
struct Scene {
    client: Client,
    maker: RequestMaker,
    now: Nanos,
    sent: VecDeque<Sent>,
    ended: Vec<End>,
    unsent: Vec<Nanos>,
    waits_until: Nanos,
    is_done: bool,
}

impl Scene {
    fn new(verb: Verb, props: Props) -> Scene {
        let data = Data { records: props.records, ..Data::default() };
        let keys = KeyMaker::new(&data).expect("the keys are short");
        let values = ValueMaker::new(&data).expect("the values are small");
        let servers: Vec<String> = (0..props.servers).map(|n| format!("127.0.0.{n}:11211")).collect();
        let retry = Retry { kinds: RetryKind::ALL.to_vec(), for_ns: RETRY_FOR_NS };
        let templates = props.commands.iter().map(|text| Template::parse(text).expect("it is a command"));
        let inputs = RequestInputs {
            router: if props.servers > 1 { Router::new(Route::Modulo, &servers) } else { Router::single() },
            retries: Some(Box::new(Retries::new(&retry, Stream::from_seed(1)))),
            verify: 1.0,
            commands: templates.collect::<Vec<_>>().into(),
            dataset: props.rows.map(|(rows, order)| DatasetRows { packed: packed(rows), order }),
            ledger: props.audits.then(|| Ledger::new(props.records, 0)),
            ..RequestInputs::new(keys, values, &data, 1, RunMark::new(1))
        };
        let mut maker = RequestMaker::new(inputs);
        let mix = Mix { ops: vec![(verb, 1.0)], multiget: 1, multiset: 1, ..Mix::default() };
        maker.begin(&Work::Mix(mix), 1);
        let lanes: Vec<u32> = (0..props.servers as u32).collect();
        let writer = Writer::new(RunMark::new(1), 0);
        let mut client = Client::new(0, 0, 0, Some(writer)).with_lanes(&lanes).with_retries();
        let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
        let (requests, depth, end) = (props.requests, props.depth, props.end);
        let assignment =
            PhaseAssignment { begin: BEGIN, end, requests, depth, ..PhaseAssignment::nothing(place) };
        let schedule = props.rate.map(|rate| Pace::new(&Arrivals::Constant, rate, 1).schedule(place));
        client.begin(assignment, schedule);
        (0..props.servers as Lane).for_each(|lane| client.handle_opened(lane, BEGIN));
        let (sent, ended, unsent) = (VecDeque::new(), Vec::new(), Vec::new());
        Scene { client, maker, now: BEGIN, sent, ended, unsent, waits_until: 0, is_done: false }
    }
}

impl Scene {
    /// Polls the client until it waits.
    fn poll(&mut self) {
        loop {
            let now = self.now;
            let (lane, op, ticket) = match self.client.poll(now, &mut self.maker) {
                Action::Ask { lane, op, ticket } | Action::AskAgain { lane, op, ticket, asking: false } => {
                    (lane, op, ticket)
                }
                Action::GivenUp(_, whole) => {
                    self.end(0, &whole.answer());
                    continue;
                }
                Action::Unsent { due, .. } => {
                    self.unsent.push(due);
                    continue;
                }
                Action::Open(lane) => {
                    self.client.handle_opened(lane, now);
                    continue;
                }
                Action::Wait(until) => return self.waits_until = until,
                Action::Done => return self.is_done = true,
                Action::Leave => unreachable!("the client is there all the time"),
                Action::AskAgain { .. } => unreachable!("there is no cluster"),
                Action::DoneUntil(_) => unreachable!("there is no trace"),
            };
            let (key, value) = (op.keys.key(0).to_vec(), op.value.own.to_vec());
            let fill = if op.keys.count() > 1 { op.keys.key(1).to_vec() } else { Vec::new() };
            self.sent.push_back(Sent { lane, ticket, key, value, fill, at: now });
        }
    }

    /// The next request that was sent.
    fn take(&mut self) -> Sent {
        self.poll();
        self.sent.pop_front().expect("a request is sent")
    }

    /// The next request that was sent with the ticket of this one.
    fn take_of(&mut self, sent: &Sent) -> Sent {
        self.poll();
        let place = self.sent.iter().position(|other| other.ticket.index == sent.ticket.index);
        self.sent.remove(place.expect("it is sent")).expect("it is there")
    }

    /// The next request that was sent, when the client has waited for it.
    fn take_later(&mut self) -> Sent {
        self.poll();
        assert!(self.sent.is_empty(), "it waits: {:?}", self.sent);
        assert!(self.waits_until > self.now && self.waits_until != NEVER, "it wakes by itself");
        self.now = self.waits_until;
        self.take()
    }

    /// Lets the request end at its server with this outcome and these words, a millisecond later.
    fn answer(&mut self, sent: &Sent, outcome: Outcome, words: &str) {
        self.now += MILLISECOND;
        let answer = Answer {
            ticket: &sent.ticket,
            outcome,
            sent: sent.at,
            arrived: self.now,
            read: self.now,
            hits: u32::from(outcome == Outcome::Hit),
            stamp: Stamp::Nothing,
            mark: 0,
        };
        let (ticket, first) =
            match self.client.end_exchange(sent.lane, &answer, words.as_bytes(), &mut self.maker) {
                Exchange::GoesOn => return,
                Exchange::Whole => (sent.ticket, sent.at),
                Exchange::Ends { ticket, sent, .. } => (ticket, sent),
            };
        self.end(sent.lane, &Answer { ticket: &ticket, sent: first, ..answer });
    }

    fn fail(&mut self, sent: &Sent, (fault, words): (Fault, &str)) {
        self.answer(sent, Outcome::Error(fault), words);
    }

    /// Lets the connection of the request be lost with it.
    fn lose(&mut self, sent: &Sent) {
        self.fail(sent, LOST);
        self.client.handle_closed(sent.lane, true, &mut self.maker);
    }

    fn end(&mut self, lane: Lane, answer: &Answer<'_>) {
        let ticket = answer.ticket;
        self.ended.push((ticket.verb, ticket.due, answer.sent, answer.outcome));
        self.client.handle_answer(lane, answer, &mut self.maker);
    }

    fn counts(&self) -> RetryCounts {
        self.maker.retries().expect("requests are sent again").counts
    }
}

#[test]
fn a_request_is_sent_again_with_its_first_times_and_bytes_and_keeps_its_slot() {
    for verb in [Verb::Get, Verb::Set, Verb::Incr, Verb::Delete, Verb::Add] {
        let mut scene = Scene::new(verb, Props::default());
        let first = scene.take();
        scene.fail(&first, LOADING);
        assert!(scene.ended.is_empty() && scene.client.outstanding() == 1, "{verb:?}");
        let again = scene.take_later();
        assert!((5 * MILLISECOND..=10 * MILLISECOND).contains(&(again.at - first.at - MILLISECOND)));
        assert_eq!((&again.key, &again.value), (&first.key, &first.value), "{verb:?}");
        assert_eq!((again.ticket.due, again.ticket.index), (first.ticket.due, first.ticket.index));
        scene.answer(&again, Outcome::Ok, "");
        assert_eq!(scene.ended, [(verb, first.ticket.due, first.at, Outcome::Ok)]);
        assert_eq!(scene.client.outstanding(), 0, "{verb:?}");
        let loading = KindCounts { loading: 1, ..KindCounts::default() };
        assert_eq!(scene.counts(), RetryCounts { retries: loading, recovered: 1, ..RetryCounts::default() });
        let second = scene.take();
        assert_ne!(second.ticket.index, first.ticket.index, "the client goes on");
    }
}

#[test]
fn a_request_keeps_its_row_and_is_sent_again_at_once_where_only_the_script_was_lost() {
    const LOST_SCRIPT: (Fault, &str) = (Fault::Server, "NOSCRIPT No matching script. Please use EVAL.");
    let props = || Props {
        depth: 2,
        requests: 5,
        commands: &["EVALSHA x 1 __key__ __field:a__"],
        ..Props::default()
    };
    let rows: &[&str] = &["r0", "r1", "r2"];
    let mut scene = Scene::new(Verb::Command, Props { rows: Some((rows, DatasetOrder::File)), ..props() });
    let (first, second) = (scene.take(), scene.take());
    assert_eq!((&first.fill[..], &second.fill[..]), (&b"r0"[..], &b"r1"[..]));
    scene.fail(&first, LOST_SCRIPT);
    let again = scene.take();
    assert_eq!(
        (again.at, &again.fill, &again.key),
        (scene.now, &first.fill, &first.key),
        "at once, and the same"
    );
    scene.fail(&again, LOST_SCRIPT);
    let third = scene.take_later();
    assert!(third.at > again.at + MILLISECOND, "it waits where that did not help");
    assert_eq!(third.fill, first.fill);
    scene.answer(&third, Outcome::Ok, "");
    assert_eq!(scene.ended, [(Verb::Command, first.ticket.due, first.at, Outcome::Ok)]);
    let noscript = KindCounts { noscript: 2, ..KindCounts::default() };
    assert_eq!(scene.counts(), RetryCounts { retries: noscript, recovered: 1, ..RetryCounts::default() });
    let mut fills = Vec::new();
    for _ in 0..3 {
        let next = scene.take();
        fills.push(String::from_utf8_lossy(&next.fill).into_owned());
        scene.answer(&next, Outcome::Ok, "");
    }
    assert_eq!(fills, ["r2", "r0", "r1"], "each request takes the next row");
    let drawn = Props { rows: Some((rows, DatasetOrder::Random)), ..props() };
    let mut scene = Scene::new(Verb::Command, drawn);
    let first = scene.take();
    scene.fail(&first, LOST_SCRIPT);
    let again = scene.take_of(&first);
    assert_eq!(again.fill, first.fill);
}

#[test]
fn a_request_is_given_up_when_its_time_is_over_and_its_last_error_counts() {
    let mut scene = Scene::new(Verb::Set, Props::default());
    let mut sent = scene.take();
    let (due, mut times) = (sent.ticket.due, 1);
    let oom = (Fault::Server, "OOM command not allowed when used memory > 'maxmemory'.");
    loop {
        scene.fail(&sent, if times == 1 { LOADING } else { oom });
        if !scene.ended.is_empty() {
            break;
        }
        sent = scene.take_later();
        times += 1;
    }
    assert_eq!(sent.at, due + RETRY_FOR_NS, "the last attempt is made when the time is over");
    assert_eq!(scene.ended, [(Verb::Set, due, due, Outcome::Error(Fault::Server))]);
    let counts = scene.counts();
    assert_eq!((counts.retries.loading, counts.retries.oom), (1, times - 2));
    assert_eq!(counts.given_up, KindCounts { oom: 1, ..KindCounts::default() });
    assert_eq!(counts.recovered, 0);
}

#[test]
fn other_errors_end_a_request_at_once_and_those_of_a_cas_do() {
    let mut scene = Scene::new(Verb::Set, Props::default());
    let sent = scene.take();
    scene.fail(&sent, (Fault::Server, "BUSYKEY Target key name already exists."));
    assert_eq!(scene.ended.len(), 1);
    let mut scene = Scene::new(Verb::Cas, Props::default());
    let read = scene.take();
    assert_eq!(read.ticket.verb, Verb::Gets);
    scene.fail(&read, (Fault::Server, "SERVER_ERROR out of memory"));
    assert_eq!(scene.ended.len(), 1);
    assert_eq!(scene.counts(), RetryCounts::default());
}

#[test]
fn what_may_have_been_carried_out_is_sent_again_only_if_that_does_no_harm() {
    let commands = ["SET __key__ __value__", "SET __key__ __value__ NX", "SET __key__ v GET", "DEL __key__"];
    for (verb, commands, is_repeated) in [
        (Verb::Get, &[][..], true),
        (Verb::Set, &[], true),
        (Verb::Gat, &[], false),
        (Verb::Add, &[], false),
        (Verb::Incr, &[], false),
        (Verb::Delete, &[], false),
        (Verb::Touch, &[], false),
        (Verb::Command, &commands[0..], true),
        (Verb::Command, &commands[1..], false),
        (Verb::Command, &commands[2..], false),
        (Verb::Command, &commands[3..], false),
    ] {
        let mut scene = Scene::new(verb, Props { commands: commands.to_vec().leak(), ..Props::default() });
        let sent = scene.take();
        scene.lose(&sent);
        assert_eq!(scene.ended.is_empty(), is_repeated, "{verb:?} {commands:?}");
        assert_eq!(scene.counts().retries.lost, u64::from(is_repeated), "{verb:?}");
        assert_eq!(scene.counts().not_repeatable, u64::from(!is_repeated), "{verb:?}");
        if is_repeated {
            scene.poll();
            scene.now = scene.waits_until;
            let again = scene.take();
            assert_eq!(again.key, sent.key);
            scene.answer(&again, Outcome::Ok, "");
            assert_eq!(scene.ended.len(), 1);
        }
    }
}

#[test]
fn what_was_never_sent_is_sent_again_whatever_it_is() {
    let mut scene = Scene::new(Verb::Incr, Props::default());
    let sent = Sent { at: NEVER, ..scene.take() };
    scene.lose(&sent);
    assert!(scene.ended.is_empty());
    let again = scene.take_later();
    scene.answer(&again, Outcome::Number(1), "");
    assert_eq!(scene.ended, [(Verb::Incr, sent.ticket.due, again.at, Outcome::Number(1))]);
}

#[test]
fn in_open_loop_other_records_pass_and_the_same_one_waits_behind() {
    for (records, passes) in [(1_000_000, true), (1, false)] {
        let props = Props { records, requests: 3, depth: 8, rate: Some(1_000.0), ..Props::default() };
        let mut scene = Scene::new(Verb::Set, props);
        scene.now = BEGIN + 10 * MILLISECOND;
        let first = loop {
            scene.poll();
            if let Some(first) = scene.sent.pop_front() {
                break first;
            }
            scene.now = scene.waits_until;
        };
        // Those that were sent with the first one cannot be held back.
        while let Some(sent) = scene.sent.pop_front() {
            scene.answer(&sent, Outcome::Stored, "");
        }
        let before = scene.ended.len();
        let mut rest = 2 - before;
        scene.fail(&first, LOADING);
        let wakes_at = scene.now + 5 * MILLISECOND;
        while scene.now < wakes_at {
            scene.poll();
            while let Some(sent) = scene.sent.pop_front() {
                assert!(passes, "it overtakes a request of its record");
                scene.answer(&sent, Outcome::Stored, "");
                rest -= 1;
            }
            scene.now += MILLISECOND / 2;
        }
        assert_eq!(rest == 0, passes || before == 2, "{records}");
        scene.now = BEGIN + 50 * MILLISECOND;
        let again = scene.take();
        assert_eq!(again.ticket.index, first.ticket.index);
        scene.answer(&again, Outcome::Stored, "");
        scene.poll();
        while let Some(sent) = scene.sent.pop_front() {
            scene.answer(&sent, Outcome::Stored, "");
        }
        assert_eq!((scene.ended.len(), scene.unsent.len()), (3, 0), "{records}");
    }
}

#[test]
fn reads_of_one_record_pass_each_other() {
    let mut scene = Scene::new(Verb::Get, Props { records: 1, depth: 2, ..Props::default() });
    let first = scene.take();
    let second = scene.take();
    scene.fail(&first, LOADING);
    scene.answer(&second, Outcome::Hit, "");
    assert_eq!(scene.ended.len(), 1);
    let again = scene.take_later();
    scene.answer(&again, Outcome::Hit, "");
    scene.poll();
    assert!(scene.is_done && scene.ended.len() == 2);
}

#[test]
fn requests_of_one_record_are_sent_again_in_their_order() {
    let mut scene = Scene::new(Verb::Set, Props { records: 1, depth: 2, ..Props::default() });
    let (first, second) = (scene.take(), scene.take());
    scene.fail(&second, LOADING);
    scene.fail(&first, LOADING);
    scene.now += 50 * MILLISECOND;
    let (one, two) = (scene.take(), scene.take());
    assert_eq!([one.ticket.index, two.ticket.index], [second.ticket.index, first.ticket.index]);
    // The one that failed first goes first; the other follows it on the same connection.
    scene.answer(&one, Outcome::Stored, "");
    scene.answer(&two, Outcome::Stored, "");
    assert_eq!(scene.ended.len(), 2);
}

#[test]
fn a_store_that_was_lost_once_gives_no_verdict_and_no_acknowledgement() {
    let mut scene = Scene::new(Verb::Set, Props { records: 1, audits: true, ..Props::default() });
    let lost = scene.take();
    let CheckState::Write(version) = lost.ticket.check_state else { panic!("it writes a version") };
    scene.lose(&lost);
    let again = scene.take_later();
    assert_eq!(again.value, lost.value, "the same version is stored");
    scene.answer(&again, Outcome::Stored, "");
    let next = scene.take();
    scene.answer(&next, Outcome::Stored, "");
    let CheckState::Write(newer) = next.ticket.check_state else { panic!("it writes a version") };
    assert!(newer > version);
    let mut ledger = scene.maker.take_ledger().expect("writes are noted");
    ledger.close();
    // The server may carry out the first sending at last.
    let state = ledger.judge(0, Some(version)).expect("it is written");
    assert_eq!(format!("{state:?}"), "Newer", "it may be there rightly");
}

#[test]
fn what_waits_when_the_phase_is_over_is_no_failure_and_no_request_is_left_out() {
    let end = BEGIN + 20 * MILLISECOND;
    let props =
        Props { records: 1, requests: u64::MAX, depth: 4, rate: Some(1_000.0), end, ..Props::default() };
    let mut scene = Scene::new(Verb::Set, props);
    scene.now = BEGIN + MILLISECOND;
    scene.poll();
    let sent: Vec<Sent> = scene.sent.drain(..).collect();
    assert!(!sent.is_empty());
    sent.iter().for_each(|sent| scene.fail(sent, LOADING));
    for ms in 3..6 {
        scene.now = BEGIN + ms * MILLISECOND;
        scene.poll();
    }
    assert!(scene.sent.is_empty(), "all are of one record");
    scene.client.end_redirects();
    let mut waiting = 0;
    while let Some((lane, whole)) = scene.client.take_waiting(scene.now, &mut scene.maker) {
        scene.end(lane, &whole.answer());
        waiting += 1;
    }
    assert_eq!(waiting, sent.len());
    let mut unsent = 0;
    while scene.client.take_held_back(end, &mut scene.maker).is_some() {
        unsent += 1;
    }
    let Scene { client, maker, .. } = &mut scene;
    client.count_unsent(end, maker, u64::MAX, |rest: Unsent| unsent += rest.requests);
    assert_eq!(waiting as u64 + unsent, 20, "a request is due every millisecond");
    assert!(scene.counts().given_up.total() == 0);
}

#[test]
fn a_lane_that_is_lost_for_good_ends_what_waits_for_it() {
    let mut scene = Scene::new(Verb::Get, Props { servers: 2, records: 1, ..Props::default() });
    let sent = scene.take();
    scene.fail(&sent, LOST);
    scene.client.handle_closed(sent.lane, false, &mut scene.maker);
    scene.now += 20 * MILLISECOND;
    scene.poll();
    assert_eq!(scene.ended, [(Verb::Get, sent.ticket.due, sent.at, Outcome::Error(Fault::Reset))]);
    assert_eq!(scene.counts().given_up.lost, 1);
}

#[test]
fn a_request_is_sent_again_over_the_lane_of_its_server() {
    let mut scene = Scene::new(Verb::Get, Props { servers: 3, requests: 9, depth: 3, ..Props::default() });
    for _ in 0..9 {
        let sent = scene.take();
        scene.fail(&sent, LOADING);
        scene.now += 20 * MILLISECOND;
        scene.poll();
        let at =
            scene.sent.iter().position(|other| other.ticket.index == sent.ticket.index).expect("it is sent");
        let again = scene.sent.remove(at).expect("it is there");
        assert_eq!((again.lane, &again.key), (sent.lane, &sent.key));
        scene.answer(&again, Outcome::Miss, "");
    }
    assert_eq!((scene.ended.len(), scene.counts().recovered), (9, 9));
}

#[test]
fn the_table_of_commands_says_which_may_be_repeated_and_which_have_one_record() {
    for (text, may_repeat, has_one_record) in [
        ("GET __key__", true, true),
        ("MGET __key__ __key__", true, true),
        ("MGET __key__ __key2__", true, false),
        ("HGETALL user:__number__", true, true),
        ("LRANGE list 0 -1", true, false),
        ("XREAD COUNT 2 STREAMS __key__ 0", true, true),
        ("SET __key__ __value__ EX 60", true, true),
        ("set __key__ __value__ nx", false, true),
        ("SET __key__ __value__ XX GET", false, true),
        ("SETEX __key__ 60 __value__", true, true),
        ("MSET __key__ v", true, true),
        ("MSETNX __key__ v", false, true),
        ("SETNX __key__ v", false, true),
        ("HMSET __key__ f v", true, true),
        ("HSET __key__ f v", false, true),
        ("LSET __key__ 0 v", true, true),
        ("SETRANGE __key__ 0 v", true, true),
        ("LPUSH __key__ v", false, true),
        ("DEL __key__", false, true),
        ("EXPIRE __key__ 60", false, true),
        ("GETEX __key__", false, true),
        ("EVAL 'return 1' 1 __key__", false, true),
        ("EVAL_RO 'return 1' 1 __key__", true, true),
        ("NEW.COMMAND __key__", false, true),
        ("PING", false, false),
    ] {
        let template = Template::parse(text).expect(text);
        assert_eq!(
            (template.may_repeat(), template.has_one_record()),
            (may_repeat, has_one_record),
            "{text}"
        );
    }
}
