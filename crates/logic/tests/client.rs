//! Tests of virtual users: their requests and the times of these, against answers that the test makes up.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use pummel_logic::arrival::{Pace, Passed, Schedule};
use pummel_logic::client::route::Router;
use pummel_logic::client::{Action, Client, PhaseAssignment};
use pummel_logic::connection::inflight::{Origin, Ticket};
use pummel_logic::connection::session::{Answer, Item, Stamp};
use pummel_logic::dist::Dist;
use pummel_logic::plan::memory::FOLLOW_UPS_MAX;
use pummel_logic::plan::{Arrivals, Data, Late, Load, Mix, Popularity, Route, Style, Work};
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::{Fault, MetaAsk, Outcome, Verb};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{FAR_NS, MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::unsent::{DRAWS_MAX, draws_of_client};
use pummel_logic::workload::key::{KEY_MAX_BYTES, KeyMaker};
use pummel_logic::workload::request::{AnswerUse, RequestInputs, RequestMaker};
use pummel_logic::workload::value::{PIECES_LIMIT_BYTES, ValueMaker};
use pummel_logic::workload::verify::stale::RunMark;

const US: Nanos = MICROSECOND;

/// Time at which phases begin.
const BEGIN: Nanos = 1_000 * US;

fn data() -> Data {
    Data {
        records: 1_000,
        seed: 0,
        key_prefix: String::new(),
        key_size: Dist::Fixed(20.0),
        value_size: Dist::Fixed(100.0),
        expiry_s: Dist::Fixed(0.0),
        value_classes: Vec::new(),
        value_compress: 1.0,
        value_filler: None,
        key_tag: None,
        slots: Vec::new(),
        first_key: 0,
        style: Style::default(),
    }
}

fn mix(verb: Verb) -> Mix {
    Mix::of(&[(verb, 1.0)])
}

/// Request of a client.
#[derive(Clone, Debug)]
struct Asked {
    ticket: Ticket,
    keys: Vec<Vec<u8>>,
    len_bytes: u64,
    cas: u64,
}

/// Action that a client wants, without what it borrows.
#[derive(Debug)]
enum Wanted {
    Ask(Asked),
    Wait(Nanos),
    Done,
}

/// Clients of one group and one worker, with their requests that are not answered.
struct Story {
    clients: Vec<Client>,
    maker: RequestMaker,
    keys: KeyMaker,
    asked: Vec<VecDeque<Asked>>,
}

/// Settings of clients at the beginning.
#[derive(Clone)]
struct Task {
    work: Work,
    requests: u64,
    end: Nanos,
    depth: u32,
    batched: bool,
    arrivals: Arrivals,
    rate: f64,
    seed: u64,
    late: Late,
    same_draws: bool,
}

impl Task {
    /// A task in closed loop, one request at a time, without an end.
    fn new(work: Work) -> Task {
        let arrivals = Arrivals::Closed;
        let late = Late::Kept;
        Task {
            work,
            requests: u64::MAX,
            end: NEVER,
            depth: 1,
            batched: false,
            arrivals,
            rate: 1.0,
            seed: 1,
            late,
            same_draws: false,
        }
    }

    fn of(verb: Verb) -> Task {
        Task::new(Work::Mix(mix(verb)))
    }
}

impl Story {
    /// Begins all of `clients` clients, with lanes that are open since the beginning.
    fn new(clients: u64, task: &Task) -> Story {
        let mut story = Story::closed(0..clients, clients, task);
        story.clients.iter_mut().for_each(|client| client.handle_opened(0, 0));
        story
    }

    /// Begins some of the group's clients, with closed lanes.
    fn closed(numbers: std::ops::Range<u64>, clients: u64, task: &Task) -> Story {
        let data = data();
        let keys = KeyMaker::new(&data).unwrap();
        let values = ValueMaker::new(&data).unwrap();
        let inputs = RequestInputs::new(keys.clone(), values, &data, clients, RunMark::new(1));
        let mut maker = RequestMaker::new(inputs);
        maker.begin(&task.work, 1);
        let begin = |number| {
            let mut client = Client::new(0, number, 0, None);
            let place = StreamOwner { seed: task.seed, group: 0, phase: 1, client: number };
            let assignment = PhaseAssignment {
                place,
                begin: BEGIN,
                end: task.end,
                requests: task.requests,
                depth: task.depth,
                batched: task.batched,
                repeats: 0,
                late: task.late,
                spacing_ns: 0,
                ends_on_time: false,
                same_draws: task.same_draws,
                asked_before: 0,
            };
            let open = task.arrivals != Arrivals::Closed;
            let schedule = open.then(|| Pace::new(&task.arrivals, task.rate, clients).schedule(place));
            client.begin(assignment, schedule);
            client
        };
        let clients: Vec<Client> = numbers.map(begin).collect();
        let asked = vec![VecDeque::new(); clients.len()];
        Story { clients, maker, keys, asked }
    }

    /// Next action that a client wants; a lane is opened as soon as it is wanted.
    fn poll(&mut self, client: usize, now: Nanos) -> Wanted {
        loop {
            match self.clients[client].poll(now, &mut self.maker) {
                Action::Open(lane) => self.clients[client].handle_opened(lane, now),
                Action::Wait(until) => return Wanted::Wait(until),
                Action::Done => return Wanted::Done,
                Action::Leave => panic!("the client is there all the time"),
                Action::DoneUntil(until) => panic!("a trace is replayed until {until}"),
                Action::Unsent { verb, .. } => panic!("{verb:?} was given up"),
                Action::AskAgain { .. } | Action::GivenUp(..) => panic!("there is no cluster"),
                Action::Ask { op, ticket, .. } => {
                    let keys = (0..op.keys.count()).map(|n| op.keys.key(n).to_vec()).collect();
                    let len_bytes = op.value.len() as u64;
                    let asked = Asked { ticket, keys, len_bytes, cas: op.cas };
                    self.asked[client].push_back(asked.clone());
                    return Wanted::Ask(asked);
                }
            }
        }
    }

    fn asks(&mut self, client: usize, now: Nanos) -> Asked {
        match self.poll(client, now) {
            Wanted::Ask(asked) => asked,
            other => panic!("at {now} the client wants {other:?}"),
        }
    }

    fn waits(&mut self, client: usize, now: Nanos) -> Nanos {
        match self.poll(client, now) {
            Wanted::Wait(until) => until,
            other => panic!("at {now} the client wants {other:?}"),
        }
    }

    fn is_done(&mut self, client: usize, now: Nanos) -> bool {
        matches!(self.poll(client, now), Wanted::Done)
    }

    /// Hands an item of the oldest reply to the client.
    fn item(&mut self, client: usize, key: &[u8], cas: u64) -> bool {
        let ticket = self.asked[client].front().expect("something was asked").ticket;
        let item = Item { key, size: 100, cas, flags: 0 };
        self.clients[client].handle_item(0, &ticket, &item, &mut self.maker).is_some()
    }

    /// Answers the oldest request by a reply that arrives at `arrived` and is read at `read`.
    fn answer(&mut self, client: usize, outcome: Outcome, arrived: Nanos, read: Nanos) -> Asked {
        self.answer_full(client, outcome, u32::from(outcome == Outcome::Hit), arrived, read)
    }

    /// Answers a request of `client` with `hits` items; the reply is read when it arrives.
    fn answer_with(&mut self, client: usize, outcome: Outcome, hits: u32, at: Nanos) -> Asked {
        self.answer_full(client, outcome, hits, at, at)
    }

    fn answer_full(
        &mut self,
        client: usize,
        outcome: Outcome,
        hits: u32,
        arrived: Nanos,
        read: Nanos,
    ) -> Asked {
        let asked = self.asked[client].pop_front().expect("something was asked");
        let answer = Answer {
            mark: 0,
            ticket: &asked.ticket,
            outcome,
            sent: asked.ticket.ready,
            arrived,
            read,
            hits,
            stamp: Stamp::Kernel,
        };
        self.clients[client].handle_answer(0, &answer, &mut self.maker);
        asked
    }

    fn unsent(&mut self, client: usize, now: Nanos) -> Vec<Verb> {
        let mut unsent = Vec::new();
        self.clients[client].count_unsent(now, &mut self.maker, DRAWS_MAX, |some| {
            assert_eq!(some.estimated, 0);
            unsent.extend((0..some.requests).map(|_| some.verb));
        });
        unsent
    }

    fn key(&self, index: u64) -> Vec<u8> {
        self.keys.key(index, &mut [0; KEY_MAX_BYTES]).to_vec()
    }
}

// ---- Closed loop ----

#[test]
fn in_closed_loop_the_arrival_of_a_reply_makes_the_next_request_due() {
    let mut story = Story::new(1, &Task::of(Verb::Get));
    let first = story.asks(0, BEGIN).ticket;
    assert_eq!((first.index, first.due, first.ready), (0, BEGIN, BEGIN));
    assert_eq!(story.waits(0, BEGIN), NEVER, "only the answer helps");
    story.answer(0, Outcome::Hit, BEGIN + 30 * US, BEGIN + 50 * US);
    let second = story.asks(0, BEGIN + 55 * US).ticket;
    assert_eq!((second.index, second.due, second.ready), (1, BEGIN + 30 * US, BEGIN + 30 * US));
}

#[test]
fn a_read_that_is_had_quickly_is_the_one_that_would_be_had_slowly() {
    let open = Task { arrivals: Arrivals::Constant, rate: 40_000.0, ..Task::of(Verb::Get) };
    for task in [Task::of(Verb::Gets), Task { depth: 4, ..Task::of(Verb::Get) }, open] {
        let (mut quick, mut slow) = (Story::new(2, &task), Story::new(2, &task));
        let mut had = 0;
        for now in (0..40).map(|n| BEGIN + n * 50 * US) {
            loop {
                let Story { clients, maker, .. } = &mut quick;
                let read =
                    clients[1].poll_read(now, maker).map(|(op, ticket)| (op.keys.key(0).to_vec(), ticket));
                match (slow.poll(1, now), read) {
                    (Wanted::Ask(asked), Some((key, ticket))) => {
                        assert_eq!((&asked.keys[0], asked.ticket), (&key, ticket));
                        let len_bytes = asked.len_bytes;
                        quick.asked[1].push_back(Asked { ticket, keys: vec![key], len_bytes, cas: 0 });
                        had += 1;
                    }
                    (Wanted::Wait(_), None) => break,
                    (other, read) => panic!("{other:?} slowly, {read:?} quickly"),
                }
            }
            while !slow.asked[1].is_empty() {
                quick.answer(1, Outcome::Hit, now + 9 * US, now + 10 * US);
                slow.answer(1, Outcome::Hit, now + 9 * US, now + 10 * US);
            }
        }
        assert!(had >= 20, "{had} reads");
    }
}

#[test]
fn nothing_but_a_read_of_one_key_is_had_quickly() {
    let several = Work::Mix(Mix { multiget: 3, ..mix(Verb::Get) });
    let load = Work::Load(Load::default());
    let tasks =
        [Task::of(Verb::Set), Task::of(Verb::Cas), Task::of(Verb::Hget), Task::new(several), Task::new(load)];
    for task in tasks {
        let Story { mut clients, mut maker, .. } = Story::new(1, &task);
        assert!(clients[0].poll_read(BEGIN, &mut maker).is_none(), "{:?}", task.work);
        assert!(matches!(clients[0].poll(BEGIN, &mut maker), Action::Ask { .. }), "it is asked all the same");
    }
}

#[test]
fn each_request_of_a_deep_client_is_due_when_its_own_slot_is_freed() {
    let mut story = Story::new(1, &Task { depth: 3, ..Task::of(Verb::Get) });
    let first: Vec<Nanos> = (0..3).map(|_| story.asks(0, BEGIN).ticket.due).collect();
    assert_eq!(first, [BEGIN; 3]);
    assert_eq!(story.waits(0, BEGIN), NEVER);
    for after in [10, 20, 25] {
        story.answer(0, Outcome::Hit, BEGIN + after * US, BEGIN + 30 * US);
    }
    let next: Vec<Nanos> = (0..3).map(|_| story.asks(0, BEGIN + 31 * US).ticket.due - BEGIN).collect();
    assert_eq!(next, [10 * US, 20 * US, 25 * US]);
    assert_eq!(story.waits(0, BEGIN + 31 * US), NEVER);
}

#[test]
fn requests_of_a_batch_are_due_when_the_last_answer_of_the_batch_before_has_come() {
    let task = Task { depth: 3, batched: true, requests: 8, ..Task::of(Verb::Get) };
    let mut story = Story::new(1, &task);
    let mut began = BEGIN;
    for size in [3, 3, 2] {
        let due: Vec<Nanos> = (0..size).map(|_| story.asks(0, began + US).ticket.due).collect();
        assert_eq!(due, vec![began; size]);
        for after in [10, 20, 25].into_iter().take(size) {
            assert!(!story.is_done(0, began + after * US), "an answer is missing");
            story.answer(0, Outcome::Hit, began + after * US, began + 30 * US);
        }
        began += if size == 3 { 25 * US } else { 20 * US };
    }
    assert!(story.is_done(0, began));
    assert_eq!((story.clients[0].missing(), story.unsent(0, began + SECOND).len()), (0, 0));
}

#[test]
fn nothing_of_a_batch_under_way_was_due_when_its_phase_ends() {
    let task = Task { depth: 3, batched: true, end: BEGIN + SECOND, ..Task::of(Verb::Get) };
    let mut story = Story::new(1, &task);
    (0..3).for_each(|_| drop(story.asks(0, BEGIN)));
    story.answer(0, Outcome::Hit, BEGIN + US, BEGIN + US);
    assert_eq!(story.unsent(0, BEGIN + SECOND), []);
}

#[test]
fn in_open_loop_requests_that_are_due_together_are_a_batch() {
    let task = Task { depth: 3, batched: true, ..every_100_us(Verb::Get) };
    let mut story = Story::new(1, &task);
    let first = story.asks(0, BEGIN).ticket.due;
    let next = story.waits(0, BEGIN);
    assert_eq!(next, first + 100 * US, "the next one is due later");
    assert_eq!(story.waits(0, BEGIN + 650 * US), NEVER, "the batch of one is under way");
    story.answer(0, Outcome::Hit, BEGIN + 640 * US, BEGIN + 650 * US);
    let due: Vec<Nanos> = (0..3).map(|_| story.asks(0, BEGIN + 650 * US).ticket.due - first).collect();
    assert_eq!(due, [100 * US, 200 * US, 300 * US], "each has its own due time");
    assert_eq!(story.waits(0, BEGIN + 650 * US), NEVER);
    let ready = |story: &mut Story| story.asks(0, BEGIN + 700 * US).ticket.ready;
    (0..2).for_each(|_| drop(story.answer(0, Outcome::Hit, BEGIN + 660 * US, BEGIN + 660 * US)));
    assert_eq!(story.waits(0, BEGIN + 690 * US), NEVER);
    story.answer(0, Outcome::Hit, BEGIN + 690 * US, BEGIN + 695 * US);
    assert_eq!(ready(&mut story), BEGIN + 690 * US, "it waited for the last answer");
}

#[test]
fn a_connection_that_opens_late_makes_requests_ready_later_and_due_all_the_same() {
    let mut story = Story::closed(0..1, 1, &Task::of(Verb::Get));
    let Action::Open(0) = story.clients[0].poll(BEGIN, &mut story.maker) else {
        panic!("a lane comes first")
    };
    let Action::Wait(NEVER) = story.clients[0].poll(BEGIN, &mut story.maker) else { panic!("it is opening") };
    story.clients[0].handle_opened(0, BEGIN + 70 * US);
    let first = story.asks(0, BEGIN + 71 * US).ticket;
    assert_eq!((first.due, first.ready), (BEGIN, BEGIN + 70 * US));
}

#[test]
fn a_number_of_requests_is_made_and_then_the_client_is_done() {
    let mut story = Story::new(1, &Task { requests: 3, ..Task::of(Verb::Get) });
    for index in 0..3 {
        assert_eq!(story.asks(0, BEGIN).ticket.index, index);
        assert!(!story.is_done(0, BEGIN), "an answer is missing");
        story.answer(0, Outcome::Miss, BEGIN, BEGIN);
    }
    assert!(story.is_done(0, BEGIN));
    assert!(story.clients[0].retire() && !story.clients[0].retire(), "it is counted once");
    assert_eq!((story.clients[0].missing(), story.unsent(0, BEGIN + SECOND).len()), (0, 0));
}

// ---- Open loop ----

/// A task of one client that asks every 100 microseconds from the beginning on.
fn every_100_us(verb: Verb) -> Task {
    Task { arrivals: Arrivals::Constant, rate: 10_000.0, ..Task::of(verb) }
}

#[test]
fn in_open_loop_the_schedule_makes_due_and_the_slot_makes_ready() {
    let mut story = Story::new(1, &every_100_us(Verb::Get));
    let first = story.asks(0, BEGIN + US).ticket;
    assert_eq!((first.due, first.ready), (BEGIN, BEGIN));
    assert_eq!(story.waits(0, BEGIN + US), BEGIN + 100 * US);
    assert_eq!(story.waits(0, BEGIN + 100 * US), NEVER, "due, but there is no slot");
    story.answer(0, Outcome::Hit, BEGIN + 250 * US, BEGIN + 260 * US);
    let second = story.asks(0, BEGIN + 261 * US).ticket;
    assert_eq!((second.due, second.ready), (BEGIN + 100 * US, BEGIN + 250 * US));
    story.answer(0, Outcome::Hit, BEGIN + 270 * US, BEGIN + 275 * US);
    let third = story.asks(0, BEGIN + 276 * US).ticket;
    assert_eq!((third.due, third.ready), (BEGIN + 200 * US, BEGIN + 270 * US));
    story.answer(0, Outcome::Hit, BEGIN + 280 * US, BEGIN + 281 * US);
    assert_eq!(story.waits(0, BEGIN + 281 * US), BEGIN + 300 * US, "caught up");
    let fourth = story.asks(0, BEGIN + 300 * US).ticket;
    assert_eq!((fourth.due, fourth.ready), (BEGIN + 300 * US, BEGIN + 300 * US));
}

#[test]
fn a_client_with_slots_enough_never_waits_for_one() {
    let mut story = Story::new(1, &Task { depth: 1_000, ..every_100_us(Verb::Get) });
    for n in 0..1_000 {
        let ticket = story.asks(0, BEGIN + SECOND).ticket;
        assert_eq!((ticket.due, ticket.ready), (BEGIN + n * 100 * US, BEGIN + n * 100 * US));
    }
}

#[test]
fn what_was_due_before_the_end_is_sent_after_it_and_what_has_no_slot_is_unsent() {
    let end = BEGIN + 1_000 * US;
    let mut story = Story::new(1, &Task { end, ..every_100_us(Verb::Get) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Hit, end - US, end + 50 * US);
    let late = story.asks(0, end + 51 * US).ticket;
    assert_eq!(
        (late.due, late.ready),
        (BEGIN + 100 * US, end - US),
        "the generator was late, not the server"
    );
    story.answer(0, Outcome::Hit, end + 80 * US, end + 81 * US);
    let waited = story.asks(0, end + 82 * US).ticket;
    assert_eq!((waited.due, waited.ready), (BEGIN + 200 * US, end + 80 * US));
    story.answer(0, Outcome::Error(Fault::Closed), end + 90 * US, end + 90 * US);
    assert_eq!(story.unsent(0, end + 90 * US).len(), 7, "ten were due, and three were sent");
}

#[test]
fn what_is_left_out_because_it_is_late_was_due_in_this_phase() {
    let end = BEGIN + 10_000 * US;
    let mut story = Story::new(1, &Task { end, late: Late::Skipped, ..every_100_us(Verb::Get) });
    story.asks(0, BEGIN);
    // The machine stood still until long after the end.
    let now = end + 40_000 * US;
    story.answer(0, Outcome::Hit, BEGIN + US, now);
    assert_eq!(story.asks(0, now).ticket.due, BEGIN + 100 * US);
    assert_eq!(story.clients[0].skipped(), Passed::exactly(98), "a hundred were due, and two are sent");
    story.answer(0, Outcome::Hit, now + US, now + US);
    assert!(story.is_done(0, now + US));
    assert!(story.unsent(0, now + US).is_empty());
}

#[test]
fn requests_that_may_be_left_out_were_ready_when_they_were_due() {
    let mut story = Story::new(1, &Task { depth: 2, late: Late::Skipped, ..every_100_us(Verb::Get) });
    let ready: Vec<Nanos> = (0..2).map(|_| story.asks(0, BEGIN + 150 * US).ticket.ready).collect();
    assert_eq!(ready, [BEGIN, BEGIN + 100 * US], "the generator was late, and no slot was missing");
}

#[test]
fn requests_with_a_least_distance_keep_their_rate_where_each_is_asked_a_little_late() {
    let mut story = Story::new(1, &every_100_us(Verb::Get));
    let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
    let nothing = PhaseAssignment::nothing(place);
    let (begin, end, requests) = (BEGIN, NEVER, u64::MAX);
    let assignment = PhaseAssignment { begin, end, requests, depth: 1, spacing_ns: 100 * US, ..nothing };
    let schedule = Pace::new(&Arrivals::Constant, 10_000.0, 1).schedule(place);
    story.clients[0].begin(assignment, Some(schedule));
    for request in 0..1_000 {
        let due = BEGIN + request * 100 * US;
        let asked = story.asks(0, due + 5 * US).ticket;
        assert_eq!((asked.due, asked.ready), (due, due));
        story.answer(0, Outcome::Hit, due + 6 * US, due + 6 * US);
    }
    // After a machine that stood still, what is due at once keeps its distance.
    let mut now = BEGIN + 1_020 * 100 * US;
    for _ in 0..10 {
        story.asks(0, now);
        story.answer(0, Outcome::Hit, now + US, now + US);
        let next = story.waits(0, now + US);
        assert!(next - now >= 90 * US, "{} ns behind the one before", next - now);
        now = next;
    }
}

#[test]
fn a_phase_of_some_time_lasts_to_its_end() {
    let end = BEGIN + 150 * US;
    let mut story = Story::new(1, &Task { end, ..every_100_us(Verb::Get) });
    for due in [0, 100] {
        story.asks(0, BEGIN + due * US);
        story.answer(0, Outcome::Hit, BEGIN + (due + 1) * US, BEGIN + (due + 1) * US);
    }
    assert_eq!(story.waits(0, BEGIN + 102 * US), end, "nothing more is due, and the phase is not over");
    assert!(story.is_done(0, end));
    assert!(story.unsent(0, end).is_empty());
}

#[test]
fn a_lost_connection_leaves_what_is_due_until_now_unsent() {
    let mut story = Story::new(1, &Task { end: BEGIN + SECOND, ..every_100_us(Verb::Get) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Error(Fault::Closed), BEGIN + 10 * US, BEGIN + 10 * US);
    story.clients[0].handle_closed(0, false, &mut story.maker);
    assert!(story.clients[0].lost_lanes() == 1 && story.is_done(0, BEGIN + 11 * US));
    assert_eq!(story.unsent(0, BEGIN + 450 * US), [Verb::Get; 4], "due at 100, 200, 300 and 400");
}

#[test]
fn a_connection_that_may_come_back_is_opened_again_and_makes_ready_what_waited() {
    let mut story = Story::new(1, &every_100_us(Verb::Get));
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Error(Fault::Reset), BEGIN + 10 * US, BEGIN + 10 * US);
    story.clients[0].handle_closed(0, true, &mut story.maker);
    let Action::Open(0) = story.clients[0].poll(BEGIN + 11 * US, &mut story.maker) else {
        panic!("it goes on")
    };
    story.clients[0].handle_opened(0, BEGIN + 350 * US);
    let ticket = story.asks(0, BEGIN + 351 * US).ticket;
    assert_eq!((ticket.index, ticket.due, ticket.ready), (1, BEGIN + 100 * US, BEGIN + 350 * US));
}

#[test]
fn a_stopped_client_asks_nothing_more_and_owns_up_to_what_was_due_before() {
    let mut story = Story::new(1, &every_100_us(Verb::Get));
    story.asks(0, BEGIN);
    story.clients[0].stop(BEGIN + 250 * US);
    assert_eq!(story.waits(0, BEGIN + 250 * US), NEVER, "an answer is missing");
    story.answer(0, Outcome::Hit, BEGIN + 260 * US, BEGIN + 260 * US);
    assert!(story.is_done(0, BEGIN + 261 * US));
    story.clients[0].handle_closed(0, true, &mut story.maker);
    assert!(story.is_done(0, BEGIN + 262 * US), "no connection is opened any more");
    assert!(story.clients[0].retire() && !story.clients[0].retire(), "it counts once");
    story.clients[0].stop(BEGIN + 263 * US);
    story.clients[0].call_back();
    assert!(
        story.is_done(0, BEGIN + 264 * US) && story.clients[0].retire(),
        "and once more when it is called back"
    );
    assert_eq!(story.unsent(0, BEGIN + 262 * US).len(), 2, "due at 100 and 200");
}

/// A request of a schedule: client, number, due, verb and keys.
type Planned = (u64, u64, Nanos, Verb, Vec<Vec<u8>>);

/// Collects all requests of these clients of a group of `clients` within the phase.
fn schedule_of(numbers: std::ops::Range<u64>, clients: u64, task: &Task) -> BTreeSet<Planned> {
    let mut story = Story::closed(numbers, clients, task);
    story.clients.iter_mut().for_each(|client| client.handle_opened(0, 0));
    let mut all = BTreeSet::new();
    for client in 0..story.clients.len() {
        let number = story.clients[client].number();
        while let Wanted::Ask(Asked { ticket, keys, .. }) = story.poll(client, task.end) {
            assert!(all.insert((number, ticket.index, ticket.due, ticket.verb, keys)));
        }
    }
    all
}

#[test]
fn what_is_asked_in_open_loop_does_not_depend_on_how_clients_are_spread_over_workers() {
    let ops = Verb::ALL.into_iter().map(|verb| (verb, 1.0)).collect();
    let mix = Mix { ops, multiget: 3, popularity: Popularity::Zipf { exponent: 0.99 }, ..mix(Verb::Get) };
    for arrivals in
        [Arrivals::Poisson, Arrivals::Constant, Arrivals::Shape(Dist::Uniform { low: 1.0, high: 2.0 })]
    {
        let task = Task {
            arrivals,
            rate: 100_000.0,
            depth: 1_000,
            end: BEGIN + SECOND / 100,
            ..Task::new(Work::Mix(mix.clone()))
        };
        let clients = 13;
        let single = schedule_of(0..clients, clients, &task);
        assert!((850..1_150).contains(&single.len()), "{} requests", single.len());
        for workers in [2, 4, 8] {
            let mut together = BTreeSet::new();
            for worker in 0..workers {
                let numbers = worker * clients / workers..(worker + 1) * clients / workers;
                together.append(&mut schedule_of(numbers, clients, &task));
            }
            assert_eq!(together, single, "{workers} workers");
        }
        let other = schedule_of(0..clients, clients, &Task { seed: 2, ..task });
        assert_ne!(other, single);
    }
}

// ---- What is asked ----

#[test]
fn loading_deals_every_record_of_every_space_to_exactly_one_client() {
    let work = Work::Load(Load { depth: 8, pieces: true, counters: true, ..Load::default() });
    let (clients, records) = (7, 3_000);
    let mut story = Story::new(clients, &Task::new(work.clone()));
    let mut keys = BTreeSet::new();
    for number in 0..clients {
        let requests = records / clients + u64::from(number < records % clients);
        let place = StreamOwner { seed: 1, group: 0, phase: 0, client: number };
        let assignment = PhaseAssignment {
            end: NEVER,
            requests,
            depth: 8,
            begin: BEGIN,
            ..PhaseAssignment::nothing(place)
        };
        let client = number as usize;
        story.clients[client].begin(assignment, None);
        while let Wanted::Ask(asked) = story.poll(client, BEGIN) {
            assert_eq!(asked.ticket.verb, Verb::Set);
            assert!(keys.insert(asked.keys[0].clone()), "a record is stored twice");
            story.answer(client, Outcome::Stored, BEGIN, BEGIN);
        }
    }
    let all: BTreeSet<Vec<u8>> = (0..records).map(|index| story.key(index)).collect();
    assert_eq!(keys, all);
}

#[test]
fn clients_with_the_same_draws_ask_the_same_but_insert_records_of_their_own() {
    let ops = vec![(Verb::Get, 1.0), (Verb::Set, 1.0), (Verb::Add, 1.0)];
    let task = Task::new(Work::Mix(Mix { ops, inserts: true, ..mix(Verb::Get) }));
    let asked = |same_draws| {
        let mut story = Story::new(2, &Task { same_draws, ..task.clone() });
        [0, 1].map(|client| {
            let mut ask = |_| {
                let asked = story.asks(client, BEGIN);
                let verb = asked.ticket.verb;
                let outcome = if verb == Verb::Get { Outcome::Hit } else { Outcome::Stored };
                story.answer(client, outcome, BEGIN, BEGIN);
                (verb, asked.keys)
            };
            (0..200).map(&mut ask).collect::<Vec<_>>()
        })
    };
    let [first, second] = asked(true);
    for ((verb, keys), (other, others)) in first.iter().zip(&second) {
        assert_eq!(verb, other);
        assert_eq!(keys == others, *verb != Verb::Add, "{verb:?}");
    }
    let [first, second] = asked(false);
    assert_ne!(first, second);
}

#[test]
fn a_multi_get_asks_several_keys_in_one_request() {
    let mut story = Story::new(1, &Task::new(Work::Mix(Mix { multiget: 5, ..mix(Verb::Get) })));
    let asked = story.asks(0, BEGIN);
    assert_eq!((asked.keys.len(), asked.ticket.keys), (5, 5));
    assert_eq!(asked.keys[0], story.key(asked.ticket.key));
}

#[test]
fn a_cas_reads_first_and_stores_with_the_unique_that_it_read() {
    let mut story = Story::new(1, &Task { requests: 2, ..Task::of(Verb::Cas) });
    let gets = story.asks(0, BEGIN);
    assert_eq!((gets.ticket.verb, gets.ticket.origin), (Verb::Gets, Origin::BeforeCas));
    story.item(0, &gets.keys[0], 77);
    story.answer(0, Outcome::Hit, BEGIN + 10 * US, BEGIN + 12 * US);
    let cas = story.asks(0, BEGIN + 13 * US);
    assert_eq!((cas.ticket.verb, cas.ticket.origin, cas.cas), (Verb::Cas, Origin::FollowUp, 77));
    assert_eq!(cas.keys, gets.keys);
    assert_eq!(
        (cas.ticket.due, cas.ticket.ready),
        (BEGIN + 12 * US, BEGIN + 12 * US),
        "due when it was read"
    );
    story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);

    assert_eq!(story.asks(0, BEGIN + 21 * US).ticket.verb, Verb::Gets);
    story.answer(0, Outcome::Miss, BEGIN + 30 * US, BEGIN + 30 * US);
    assert!(story.is_done(0, BEGIN + 31 * US), "where nothing is stored there is nothing to compare with");
}

#[test]
fn no_cas_follows_an_item_whose_cas_unique_is_zero() {
    let mut story = Story::new(1, &Task { requests: 2, ..Task::of(Verb::Cas) });
    let first = story.asks(0, BEGIN);
    story.item(0, &first.keys[0], 77);
    // A server that sends an item twice has the last word.
    story.item(0, &first.keys[0], 0);
    story.answer_with(0, Outcome::Hit, 2, BEGIN + 10 * US);
    let second = story.asks(0, BEGIN + 10 * US);
    assert_eq!((second.ticket.verb, second.ticket.index), (Verb::Gets, 1), "the next request, and no cas");
    story.item(0, &second.keys[0], 0);
    story.answer_with(0, Outcome::Win, 1, BEGIN + 20 * US);
    assert!(story.is_done(0, BEGIN + 20 * US), "neither a cas nor a set follows");
}

#[test]
fn what_is_due_in_centuries_is_waited_for() {
    let mut schedule = Schedule::set_by_caller();
    schedule.put_off(NEVER);
    for end in [NEVER, BEGIN + SECOND] {
        for late in [Late::Kept, Late::Skipped] {
            let mut story = Story::new(1, &Task { requests: 3, end, late, ..Task::of(Verb::Get) });
            let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
            let assignment =
                PhaseAssignment { begin: BEGIN, end, requests: 3, late, ..PhaseAssignment::nothing(place) };
            story.clients[0].begin(assignment, Some(schedule.clone()));
            let Story { clients, maker, .. } = &mut story;
            assert!(clients[0].poll_read(BEGIN, maker).is_none());
            match story.poll(0, BEGIN) {
                Wanted::Wait(until) => assert_eq!(until, end.min(BEGIN + FAR_NS)),
                other => panic!("{other:?}"),
            }
            assert_eq!(story.unsent(0, end), [], "nothing was due");
        }
    }
}

#[test]
fn pieces_are_added_to_a_clients_own_key_which_is_stored_anew_before_it_is_full() {
    let mut story = Story::new(2, &Task::of(Verb::Append));
    let mut owners: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new(); 2];
    for (client, own) in owners.iter_mut().enumerate() {
        let mut bytes = 0;
        let mut sets = 0;
        for _ in 0..2_000 {
            let asked = story.asks(client, BEGIN);
            match asked.ticket.verb {
                Verb::Set => (bytes, sets) = (asked.len_bytes, sets + 1),
                Verb::Append => bytes += asked.len_bytes,
                verb => panic!("a {} was asked", verb.name()),
            }
            assert!(bytes <= PIECES_LIMIT_BYTES);
            own.insert(asked.keys[0].clone());
            story.answer(client, Outcome::Stored, BEGIN, BEGIN);
        }
        let anew = 2_000 / (PIECES_LIMIT_BYTES / 100);
        assert!((anew..=anew + 1).contains(&sets), "{sets} sets");
        assert_eq!(own.len() as u64, sets);
    }
    assert!(owners[0].is_disjoint(&owners[1]), "nobody else adds to a client's keys");
}

// ---- Read-through ----

fn reading_through(delay: Nanos, multiget: u32) -> Work {
    Work::Mix(Mix { read_through_ns: Some(delay), multiget, ..mix(Verb::Get) })
}

#[test]
fn a_miss_is_stored_at_once_and_a_hit_is_not() {
    let mut story = Story::new(1, &Task::new(reading_through(0, 1)));
    let read = story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 15 * US);
    let set = story.asks(0, BEGIN + 16 * US);
    assert_eq!((set.ticket.verb, &set.keys), (Verb::Set, &read.keys));
    assert_eq!((set.ticket.due, set.ticket.ready), (BEGIN + 15 * US, BEGIN + 15 * US));
    assert_eq!(story.waits(0, BEGIN + 16 * US), NEVER, "it took the client's only slot");
    story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);
    assert_eq!(story.asks(0, BEGIN + 21 * US).ticket.verb, Verb::Get);
    story.answer(0, Outcome::Hit, BEGIN + 30 * US, BEGIN + 30 * US);
    assert_eq!(story.asks(0, BEGIN + 31 * US).ticket.verb, Verb::Get);
    story.answer(0, Outcome::Error(Fault::Server), BEGIN + 40 * US, BEGIN + 40 * US);
    assert_eq!(story.asks(0, BEGIN + 41 * US).ticket.verb, Verb::Get, "an error is no miss");
}

#[test]
fn a_delayed_store_lets_others_pass_until_it_is_due() {
    let mut story = Story::new(1, &Task { requests: 2, ..Task::new(reading_through(100 * US, 1)) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 10 * US);
    assert_eq!(story.asks(0, BEGIN + 11 * US).ticket.verb, Verb::Get);
    story.answer(0, Outcome::Hit, BEGIN + 20 * US, BEGIN + 20 * US);
    assert_eq!(story.waits(0, BEGIN + 21 * US), BEGIN + 110 * US, "not done: a store is to come");
    let set = story.asks(0, BEGIN + 110 * US).ticket;
    assert_eq!((set.verb, set.due), (Verb::Set, BEGIN + 110 * US));
    story.answer(0, Outcome::Stored, BEGIN + 120 * US, BEGIN + 120 * US);
    assert!(story.is_done(0, BEGIN + 121 * US));
}

#[test]
fn of_a_multi_get_exactly_the_missing_keys_are_stored() {
    let mut story = Story::new(1, &Task { requests: 1, depth: 4, ..Task::new(reading_through(0, 5)) });
    let read = story.asks(0, BEGIN);
    assert_eq!(read.ticket.answer_use, AnswerUse::Items);
    story.item(0, &read.keys[1], 0);
    story.item(0, &read.keys[3], 0);
    story.answer(0, Outcome::Hit, BEGIN + 10 * US, BEGIN + 10 * US);
    let stored: Vec<Vec<u8>> = (0..3).map(|_| story.asks(0, BEGIN + 11 * US).keys[0].clone()).collect();
    assert_eq!(stored, [read.keys[0].clone(), read.keys[2].clone(), read.keys[4].clone()]);
    (0..3).for_each(|_| drop(story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US)));
    assert!(story.is_done(0, BEGIN + 21 * US));
}

#[test]
fn values_of_a_multi_get_may_come_in_any_order_and_each_as_often_as_its_key_was_asked_for() {
    let mut story = Story::new(1, &Task { requests: 1, depth: 4, ..Task::new(reading_through(0, 5)) });
    let keys = story.asks(0, BEGIN).keys;
    assert!([3, 0, 4].iter().all(|&place| story.item(0, &keys[place], 0)));
    assert!(!story.item(0, &keys[0], 0), "it came before");
    assert!(!story.item(0, b"another", 0), "it was not asked for");
    assert!(story.item(0, &keys[1], 0));
    story.answer(0, Outcome::Hit, BEGIN + 10 * US, BEGIN + 10 * US);
    assert_eq!(story.asks(0, BEGIN + 11 * US).keys, [keys[2].clone()], "it is missing");
    story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);
    assert!(story.is_done(0, BEGIN + 21 * US));
}

#[test]
fn of_a_multi_get_without_any_hit_all_keys_are_stored() {
    let mut story = Story::new(1, &Task { requests: 1, depth: 8, ..Task::new(reading_through(0, 5)) });
    let read = story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN, BEGIN);
    let stored: Vec<Vec<u8>> = (0..5).map(|_| story.asks(0, BEGIN).keys[0].clone()).collect();
    assert_eq!(stored, read.keys);
}

#[test]
fn replies_of_two_clients_that_arrive_in_pieces_are_kept_apart() {
    let mut story = Story::new(2, &Task { requests: 1, depth: 8, ..Task::new(reading_through(0, 3)) });
    let first = story.asks(0, BEGIN);
    let second = story.asks(1, BEGIN);
    story.item(0, &first.keys[1], 0);
    story.item(1, &second.keys[2], 0);
    story.answer(1, Outcome::Hit, BEGIN, BEGIN);
    story.item(0, &first.keys[2], 0);
    story.answer(0, Outcome::Hit, BEGIN, BEGIN);
    assert_eq!(story.asks(0, BEGIN).keys[0], first.keys[0]);
    assert_eq!(story.asks(1, BEGIN).keys[0], second.keys[0]);
    assert_eq!(story.asks(1, BEGIN).keys[0], second.keys[1]);
    assert_eq!(story.waits(0, BEGIN), NEVER);
    assert_eq!(story.waits(1, BEGIN), NEVER);
}

#[test]
fn a_cas_does_not_wait_for_a_delayed_store() {
    let ops = vec![(Verb::Get, 1.0), (Verb::Cas, 1.0)];
    let work = Work::Mix(Mix { ops, read_through_ns: Some(SECOND), ..mix(Verb::Get) });
    let mut story = Story::new(1, &Task::new(work));
    let mut now = BEGIN;
    let mut has_missed = false;
    loop {
        now += 10 * US;
        let asked = story.asks(0, now);
        if asked.ticket.origin == Origin::BeforeCas && has_missed {
            story.item(0, &asked.keys[0], 5);
            story.answer(0, Outcome::Hit, now, now);
            break;
        }
        has_missed |= asked.ticket.origin == Origin::Arrival;
        story.answer(0, Outcome::Miss, now, now);
    }
    assert_eq!(story.asks(0, now + US).ticket.verb, Verb::Cas);
}

#[test]
fn a_client_without_a_free_slot_is_not_woken_for_what_it_cannot_send() {
    let task = every_100_us(Verb::Get);
    let mut story = Story::new(1, &Task { work: reading_through(0, 1), depth: 2, ..task });
    story.asks(0, BEGIN + 100 * US);
    story.asks(0, BEGIN + 100 * US);
    story.answer(0, Outcome::Miss, BEGIN + 110 * US, BEGIN + 110 * US);
    story.asks(0, BEGIN + 110 * US);
    story.answer(0, Outcome::Miss, BEGIN + 120 * US, BEGIN + 120 * US);
    assert_eq!(story.asks(0, BEGIN + 120 * US).ticket.verb, Verb::Set);
    // Both slots hold stores; the next get is due at 200.
    assert_eq!(story.waits(0, BEGIN + 121 * US), BEGIN + 200 * US);
    story.asked[0].pop_back();
    let mut full = Story::new(1, &Task { work: reading_through(0, 2), ..every_100_us(Verb::Get) });
    full.asks(0, BEGIN);
    full.answer(0, Outcome::Miss, BEGIN + US, BEGIN + US);
    assert_eq!(full.asks(0, BEGIN + US).ticket.verb, Verb::Set);
    let until = full.waits(0, BEGIN + 2 * US);
    assert!(until >= BEGIN + 100 * US, "a store waits for the slot, and so do we: not until {until}");
}

#[test]
fn a_follow_up_that_was_due_and_could_not_be_sent_is_unsent() {
    let mut story = Story::new(1, &Task { requests: 1, ..Task::new(reading_through(0, 1)) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 10 * US);
    story.clients[0].handle_closed(0, false, &mut story.maker);
    assert!(story.is_done(0, BEGIN + 11 * US));
    assert_eq!(story.unsent(0, BEGIN + 20 * US), [Verb::Set]);

    let mut story = Story::new(1, &Task { requests: 1, ..Task::new(reading_through(SECOND, 1)) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 10 * US);
    assert!(story.unsent(0, BEGIN + 20 * US).is_empty(), "it is not due yet");
}

#[test]
fn a_client_that_is_stopped_does_not_ask_what_answers_asked_for() {
    let mut story = Story::new(1, &Task { requests: 1, ..Task::new(reading_through(0, 1)) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 10 * US);
    let now = BEGIN + 20 * US;
    story.clients[0].stop(now);
    assert!(story.is_done(0, now));
    assert_eq!(story.unsent(0, now), [Verb::Set], "the store of the missed key was due");
}

#[test]
fn stores_that_wait_for_a_long_delay_take_bounded_memory_and_the_rest_is_unsent() {
    let misses = FOLLOW_UPS_MAX as u64 + 100;
    let end = BEGIN + SECOND;
    let task = Task { requests: misses, end, ..Task::new(reading_through(SECOND / 2, 1)) };
    let mut story = Story::new(1, &task);
    for _ in 0..misses {
        assert_eq!(story.asks(0, BEGIN).ticket.verb, Verb::Get);
        story.answer(0, Outcome::Miss, BEGIN, BEGIN);
    }
    let (mut now, mut stored) = (BEGIN + SECOND / 2, 0);
    assert_eq!(story.waits(0, BEGIN + US), now);
    while let Wanted::Ask(asked) = story.poll(0, now) {
        assert_eq!(asked.ticket.verb, Verb::Set);
        now += US;
        story.answer(0, Outcome::Stored, now, now);
        stored += 1;
    }
    assert_eq!(stored, FOLLOW_UPS_MAX);
    assert_eq!(story.unsent(0, end), [Verb::Set; 100]);
}

// ---- RESP and meta ----

#[test]
fn hashes_are_read_and_written_among_themselves_one_at_a_time() {
    let ops = vec![(Verb::Hget, 1.0), (Verb::Hset, 1.0), (Verb::Get, 1.0)];
    let work = Work::Mix(Mix { ops, multiget: 3, read_through_ns: Some(0), ..mix(Verb::Get) });
    let mut story = Story::new(1, &Task { requests: 200, ..Task::new(work) });
    let hashes: BTreeSet<Vec<u8>> = (3_000..4_000).map(|index| story.key(index)).collect();
    let mut stored_after_a_miss = 0;
    for n in 0.. {
        let Wanted::Ask(asked) = story.poll(0, BEGIN + n * US) else { break };
        let on_hash = matches!(asked.ticket.verb, Verb::Hget | Verb::Hset);
        assert_eq!(hashes.contains(&asked.keys[0]), on_hash, "{:?}", asked.ticket.verb);
        assert_eq!(asked.keys.len(), if asked.ticket.verb == Verb::Get { 3 } else { 1 });
        stored_after_a_miss +=
            u32::from((asked.ticket.verb, asked.ticket.origin) == (Verb::Hset, Origin::Fill));
        let outcome = match asked.ticket.verb {
            Verb::Hget => Outcome::Miss,
            Verb::Get => {
                asked.keys.iter().for_each(|key| assert!(story.item(0, key, 0)));
                Outcome::Hit
            }
            _ => Outcome::Stored,
        };
        story.answer(0, outcome, BEGIN + n * US, BEGIN + n * US);
    }
    assert!(stored_after_a_miss > 30, "a hash that was missed is stored as one: {stored_after_a_miss}");
}

#[test]
fn an_mset_stores_several_keys_in_one_request() {
    let work = Work::Mix(Mix { multiset: 5, ..mix(Verb::Mset) });
    let mut story = Story::new(1, &Task::new(work));
    let mut seen = BTreeSet::new();
    for n in 0..20 {
        let asked = story.asks(0, BEGIN + n * US);
        assert_eq!((asked.keys.len(), asked.ticket.keys), (5, 5));
        assert_eq!(asked.keys[0], story.key(asked.ticket.key));
        seen.extend(asked.keys);
        story.answer(0, Outcome::Stored, BEGIN + n * US, BEGIN + n * US);
    }
    assert!(seen.len() > 80, "each key is a draw of its own: {}", seen.len());
}

#[test]
fn who_wins_stores_and_who_does_not_waits() {
    let meta = MetaAsk { vivify_s: Some(30), ..MetaAsk::default() };
    let mut story = Story::new(1, &Task::new(Work::Mix(Mix { meta, ..mix(Verb::Get) })));
    let read = story.asks(0, BEGIN);
    story.answer(0, Outcome::Win, BEGIN + 10 * US, BEGIN + 15 * US);
    let set = story.asks(0, BEGIN + 16 * US);
    assert_eq!((set.ticket.verb, &set.keys), (Verb::Set, &read.keys));
    story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);
    for outcome in [Outcome::Recaching, Outcome::Stale, Outcome::Hit] {
        assert_eq!(story.asks(0, BEGIN + 31 * US).ticket.verb, Verb::Get, "before {outcome:?}");
        story.answer(0, outcome, BEGIN + 30 * US, BEGIN + 30 * US);
    }
    assert_eq!(story.asks(0, BEGIN + 31 * US).ticket.verb, Verb::Get);
}

#[test]
fn a_cas_follows_a_stale_value_too_and_a_set_where_there_is_none() {
    let mut story = Story::new(1, &Task::of(Verb::Cas));
    for outcome in [Outcome::Win, Outcome::Stale, Outcome::Recaching] {
        let gets = story.asks(0, BEGIN + 21 * US);
        story.item(0, &gets.keys[0], 77);
        story.answer_with(0, outcome, 1, BEGIN + 10 * US);
        let cas = story.asks(0, BEGIN + 21 * US);
        assert_eq!((cas.ticket.verb, cas.cas, &cas.keys), (Verb::Cas, 77, &gets.keys), "{outcome:?}");
        story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);
    }
    let gets = story.asks(0, BEGIN + 30 * US);
    story.answer_with(0, Outcome::Win, 0, BEGIN + 40 * US);
    let set = story.asks(0, BEGIN + 41 * US);
    assert_eq!((set.ticket.verb, &set.keys), (Verb::Set, &gets.keys));
}

#[test]
fn a_store_that_a_miss_asks_for_at_once_comes_before_the_next_read() {
    let mut story = Story::new(1, &Task::new(reading_through(0, 1)));
    let read = story.asks(0, BEGIN);
    story.answer(0, Outcome::Miss, BEGIN + 10 * US, BEGIN + 15 * US);
    // The time of the worker's turn is earlier than that of the reading.
    let set = story.asks(0, BEGIN + 12 * US);
    assert_eq!((set.ticket.verb, set.keys), (Verb::Set, read.keys));
}

// ---- What is far out of reach ----

fn half_and_half() -> Work {
    Work::Mix(Mix { ops: vec![(Verb::Get, 3.0), (Verb::Set, 1.0)], ..mix(Verb::Get) })
}

/// Requests that clients did not send in an hour: all, those that are estimated, gets.
fn left_in_an_hour(arrivals: &Arrivals, clients: u64, work: &Work) -> (u64, u64, u64) {
    let end = BEGIN + 3_600 * SECOND;
    let task = Task { arrivals: arrivals.clone(), rate: 1e12, end, ..Task::new(work.clone()) };
    let mut story = Story::new(clients, &task);
    let (mut all, mut estimated, mut gets) = (0, 0, 0);
    let draws_max = draws_of_client(clients);
    for client in &mut story.clients {
        client.count_unsent(end + SECOND, &mut story.maker, draws_max, |unsent| {
            all += unsent.requests;
            estimated += unsent.estimated;
            gets += if unsent.verb == Verb::Get { unsent.requests } else { 0 };
        });
    }
    (all, estimated, gets)
}

#[test]
fn what_cannot_be_counted_one_by_one_follows_from_the_rate_and_the_mix() {
    let due = 3_600 * 1_000_000_000_000;
    for clients in [1, 50, 1_000] {
        let exact = left_in_an_hour(&Arrivals::Constant, clients, &Work::Mix(mix(Verb::Get)));
        assert_eq!(exact, (due, 0, due), "constant arrivals of one operation are exact");
        let (all, estimated, gets) = left_in_an_hour(&Arrivals::Constant, clients, &half_and_half());
        assert_eq!(all, due, "and so is their number where there are several");
        assert!(estimated < all && estimated > all - 2 * DRAWS_MAX);
        assert!((gets as f64 / all as f64 - 0.75).abs() < 1e-6, "{gets} of {all}");
        let (all, estimated, gets) = left_in_an_hour(&Arrivals::Poisson, clients, &half_and_half());
        assert!((all as f64 / due as f64 - 1.0).abs() < 1e-6, "{all} of {due}");
        assert!(estimated < all && (gets as f64 / all as f64 - 0.75).abs() < 1e-6);
    }
}

#[test]
fn few_requests_of_many_clients_are_dealt_by_the_weights_too() {
    let rate = 4_000.0;
    let end = BEGIN + SECOND;
    let task = Task { arrivals: Arrivals::Constant, rate, end, ..Task::new(half_and_half()) };
    let mut story = Story::new(1_000, &task);
    let (mut all, mut gets) = (0, 0);
    for client in &mut story.clients {
        client.count_unsent(end, &mut story.maker, 0, |unsent| {
            assert_eq!(unsent.requests, unsent.estimated);
            all += unsent.requests;
            gets += if unsent.verb == Verb::Get { unsent.requests } else { 0 };
        });
    }
    assert_eq!(all, 4_000);
    assert!((2_900..=3_100).contains(&gets), "{gets}");
}

#[test]
fn in_closed_loop_each_slot_that_was_free_before_the_end_is_a_request_that_was_due() {
    for (depth, free) in [(1, 0), (3, 1), (3, 3)] {
        let mut story = Story::new(1, &Task { depth, ..Task::of(Verb::Get) });
        (0..depth).for_each(|_| drop(story.asks(0, BEGIN)));
        for after in 0..free {
            story.answer(0, Outcome::Hit, BEGIN + (10 + after) * US, BEGIN + 20 * US);
        }
        story.clients[0].handle_closed(0, false, &mut story.maker);
        assert_eq!(story.unsent(0, BEGIN + 12 * US).len() as u64, free.min(2), "{free} of {depth} were free");
    }
}

#[test]
fn a_lane_that_is_added_in_a_phase_is_opened_and_takes_requests_beside_those_under_way() {
    for is_quick in [false, true] {
        let task = Task { depth: 4, ..Task::of(Verb::Get) };
        let mut story = Story::new(1, &task);
        let (data, servers) = (data(), ["a:1", "b:2"].map(str::to_owned));
        let values = ValueMaker::new(&data).unwrap();
        story.maker = RequestMaker::new(RequestInputs {
            router: Router::new(Route::RoundRobin, &servers),
            ..RequestInputs::new(story.keys.clone(), values, &data, 1, RunMark::new(1))
        });
        story.maker.begin(&task.work, 1);
        let first = story.asks(0, BEGIN).ticket;
        let (client, maker) = (&mut story.clients[0], &mut story.maker);
        client.add_lane(1);
        assert!(client.poll_read_over_lanes(BEGIN + US, maker).is_none(), "the lane is opened first");
        let wanted = client.poll(BEGIN + US, maker);
        assert!(matches!(wanted, Action::Open(1)), "{wanted:?}");
        client.handle_opened(1, BEGIN + 20 * US);
        let mut next = |now| match is_quick {
            true => client.poll_read_over_lanes(now, maker).map(|(lane, _, ticket)| (lane, ticket)),
            false => match client.poll(now, maker) {
                Action::Ask { lane, ticket, .. } => Some((lane, ticket)),
                _ => None,
            },
        };
        let asked: Vec<_> = std::iter::from_fn(|| next(BEGIN + 21 * US))
            .map(|(lane, ticket)| (lane, ticket.index, ticket.place, ticket.ready - BEGIN))
            .collect();
        assert_eq!(asked, [(1, 1, 0, 20 * US), (0, 2, 0, 0), (1, 3, 0, 20 * US)]);
        assert_eq!(story.answer(0, Outcome::Hit, BEGIN + 30 * US, BEGIN + 30 * US).ticket, first);
        assert_eq!(story.clients[0].outstanding(), 3);
    }
}

#[test]
fn late_requests_far_out_of_reach_are_left_out_at_once() {
    for arrivals in [Arrivals::Poisson, Arrivals::Constant] {
        let end = BEGIN + 3_600 * SECOND;
        let late = Late::Skipped;
        let gaps_are_drawn = arrivals == Arrivals::Poisson;
        let mut story = Story::new(1, &Task { end, late, arrivals, rate: 1e12, ..Task::of(Verb::Get) });
        story.asks(0, BEGIN + SECOND);
        let Passed { requests, estimated } = story.clients[0].skipped();
        let drawn = if gaps_are_drawn { 1_024 } else { requests };
        assert_eq!(requests - estimated, drawn, "equal gaps are counted by arithmetic");
        let skipped = requests as f64;
        assert!((skipped / 0.996e12 - 1.0).abs() < 1e-6, "{skipped} of a second but 4 ms");
        story.answer(0, Outcome::Hit, BEGIN + SECOND, BEGIN + SECOND);
        let due = story.asks(0, BEGIN + SECOND).ticket.due;
        assert!(due >= BEGIN + 996 * SECOND / 1_000, "{due}");
    }
}

// ---- Requests that depend on each other ----

#[test]
fn a_get_that_is_read_modify_write_is_followed_by_a_set_of_its_key_and_both_are_a_pair() {
    let work = Work::Mix(Mix { read_modify_write: 1.0, ..mix(Verb::Get) });
    for outcome in [Outcome::Hit, Outcome::Miss] {
        let mut story = Story::new(1, &Task { requests: 1, ..Task::new(work.clone()) });
        let get = story.asks(0, BEGIN);
        assert_eq!((get.ticket.verb, get.ticket.origin), (Verb::Get, Origin::BeforeModify));
        story.answer(0, outcome, BEGIN + 10 * US, BEGIN + 12 * US);
        let set = story.asks(0, BEGIN + 13 * US);
        assert_eq!((set.ticket.verb, set.ticket.origin), (Verb::Set, Origin::PairEnd));
        assert_eq!((&set.keys, set.len_bytes), (&get.keys, 100));
        assert_eq!(set.ticket.due, BEGIN + 12 * US, "due when it was read");
        assert_eq!(set.ticket.index, get.ticket.index, "both are of one draw");
        let began = |story: &mut Story| story.clients[0].end_pair(&set.ticket);
        assert_eq!(began(&mut story), Some(BEGIN), "the pair began when the get was due");
        assert_eq!(began(&mut story), None, "a pair ends once");
        story.answer(0, Outcome::Stored, BEGIN + 20 * US, BEGIN + 20 * US);
        assert!(story.is_done(0, BEGIN + 21 * US));
    }
    let mut story = Story::new(1, &Task { requests: 1, ..Task::new(work) });
    story.asks(0, BEGIN);
    story.answer(0, Outcome::Error(Fault::Server), BEGIN + 10 * US, BEGIN + 12 * US);
    assert!(story.is_done(0, BEGIN + 13 * US), "a get that failed is followed by nothing");
}

#[test]
fn as_many_gets_are_followed_by_a_set_as_their_share_says() {
    let work = Work::Mix(Mix { read_modify_write: 0.5, ..mix(Verb::Get) });
    let mut story = Story::new(1, &Task::new(work));
    let (mut gets, mut sets) = (0, 0);
    for turn in 0..4_000 {
        let now = BEGIN + turn * 10 * US;
        let asked = story.asks(0, now);
        let outcome = if asked.ticket.verb == Verb::Get { Outcome::Hit } else { Outcome::Stored };
        *(if asked.ticket.verb == Verb::Get { &mut gets } else { &mut sets }) += 1;
        story.answer(0, outcome, now + US, now + US);
    }
    let expected = f64::from(gets) / 2.0;
    assert!((f64::from(sets) - expected).abs() < 5.0 * (expected / 2.0).sqrt(), "{sets} of {gets}");
}

/// The keys of the gets and of the adds of a client, in the order in which they were asked.
fn keys_asked(story: &mut Story, client: usize, turns: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut gets, mut adds) = (Vec::new(), Vec::new());
    for turn in 0..turns {
        let now = BEGIN + turn * 10 * US;
        let mut asked = story.asks(client, now);
        let (verb, key) = (asked.ticket.verb, asked.keys.remove(0));
        let (keys, outcome) = match verb {
            Verb::Get => (&mut gets, Outcome::Hit),
            _ => (&mut adds, Outcome::Stored),
        };
        keys.push(key);
        story.answer(client, outcome, now + US, now + US);
    }
    (gets, adds)
}

#[test]
fn a_client_reads_the_latest_of_what_is_stored_and_inserts_what_nobody_else_does() {
    let ops = vec![(Verb::Get, 0.8), (Verb::Add, 0.2)];
    let latest = Popularity::Latest { exponent: 0.99 };
    let work = Work::Mix(Mix { ops, popularity: latest, inserts: true, ..mix(Verb::Get) });
    let mut story = Story::new(2, &Task::new(work.clone()));
    let loaded: Vec<Vec<u8>> = (0..data().records).map(|record| story.key(record)).collect();
    let (gets, adds) = keys_asked(&mut story, 0, 5_000);
    let (_, others) = keys_asked(&mut story, 1, 5_000);
    let mut distinct: Vec<&Vec<u8>> = adds.iter().chain(&others).chain(&loaded).collect();
    let count = distinct.len();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), count, "no record is inserted twice");
    assert!(gets.iter().all(|key| adds.contains(key) || loaded.contains(key)), "all that is read was stored");
    let own = gets.iter().filter(|key| adds.contains(key)).count();
    assert!(own > gets.len() / 2, "{own} of {}: the newest are the most popular", gets.len());
    let mut again = Story::new(2, &Task::new(work));
    assert_eq!(keys_asked(&mut again, 0, 5_000), (gets, adds), "the schedule is that of the plan");
}

#[test]
fn what_is_inserted_in_one_phase_stays_inserted_in_the_next() {
    let ops = vec![(Verb::Add, 1.0)];
    let work = Work::Mix(Mix { ops, inserts: true, ..mix(Verb::Get) });
    let mut story = Story::new(1, &Task { requests: 50, ..Task::new(work.clone()) });
    let (_, first) = keys_asked(&mut story, 0, 50);
    assert!(story.is_done(0, BEGIN + SECOND));
    story.maker.begin(&work, 2);
    let assignment = PhaseAssignment {
        place: StreamOwner { seed: 1, group: 0, phase: 2, client: 0 },
        begin: BEGIN,
        end: NEVER,
        requests: u64::MAX,
        depth: 1,
        batched: false,
        repeats: 0,
        late: Late::Kept,
        spacing_ns: 0,
        ends_on_time: false,
        same_draws: false,
        asked_before: 0,
    };
    story.clients[0].begin(assignment, None);
    let (_, second) = keys_asked(&mut story, 0, 50);
    assert!(second.iter().all(|key| !first.contains(key)));
}

#[test]
fn a_scan_asks_for_records_that_follow_each_other_as_many_as_are_likely() {
    let work = Work::Mix(Mix { scans: true, multiget: 10, ..mix(Verb::Get) });
    let mut story = Story::new(1, &Task::new(work));
    let records = data().records;
    let mut lengths = [0u32; 11];
    for turn in 0..5_000 {
        let now = BEGIN + turn * 10 * US;
        let asked = story.asks(0, now);
        assert_eq!(asked.keys.len(), usize::from(asked.ticket.keys));
        for (place, key) in asked.keys.iter().enumerate() {
            assert_eq!(*key, story.key((asked.ticket.key + place as u64) % records));
        }
        // A reply that leaves out the first key: the items are those of the keys behind it.
        for key in asked.keys.iter().skip(1) {
            assert!(story.item(0, key, 0), "an item of a scan is one of its keys");
        }
        lengths[asked.keys.len()] += 1;
        story.answer_with(0, Outcome::Hit, u32::from(asked.ticket.keys) - 1, now + US);
    }
    assert_eq!(lengths[0], 0);
    for count in &lengths[1..] {
        assert!((f64::from(*count) - 500.0).abs() < 5.0 * 450f64.sqrt(), "{lengths:?}");
    }
}

#[test]
fn the_places_of_a_command_are_filled_from_the_draws_of_its_request() {
    let template = Template::parse(
        "NEW __key__ __key2__ __number:1__ __number:3__ __int:5-9__ __client__ __seq__ __now_ms__",
    );
    let task = Task { depth: 1, requests: 50, ..Task::of(Verb::Command) };
    let fills = || {
        let mut story = Story::new(1, &task);
        let (data, commands) = (data(), vec![template.clone().expect("a command")]);
        let values = ValueMaker::new(&data).unwrap();
        story.maker = RequestMaker::new(RequestInputs {
            commands: Arc::new(commands),
            epoch_ns: 1_000 * SECOND,
            ..RequestInputs::new(story.keys.clone(), values, &data, 1, RunMark::new(1))
        });
        story.maker.begin(&task.work, 1);
        let mut all = Vec::new();
        for _ in 0..50 {
            let now = BEGIN + all.len() as u64 * MILLISECOND;
            let keys = story.asks(0, now).keys;
            all.push(keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>());
            story.answer(0, Outcome::Ok, now, now);
        }
        all
    };
    let all = fills();
    assert_eq!(all, fills(), "they follow from the seed");
    for (number, words) in all.iter().enumerate() {
        let [key, other, record, padded, integer, client, sequence, now_ms] = &words[..] else {
            panic!("{words:?}")
        };
        assert!(key.len() == other.len() && *padded == format!("{record:0>3}"), "{words:?}");
        assert!(matches!(integer.as_str(), "5" | "6" | "7" | "8" | "9"), "{integer}");
        assert_eq!((client.as_str(), sequence.as_str()), ("0", number.to_string().as_str()));
        let ms = (1_000 * SECOND + BEGIN) / MILLISECOND;
        let now_ms: u64 = now_ms.parse().expect("a number");
        assert!((ms..=ms + number as u64).contains(&now_ms), "{now_ms}");
    }
    let distinct = |place: usize| all.iter().map(|words| &words[place]).collect::<BTreeSet<_>>().len();
    assert!(distinct(0) > 5 && distinct(1) > 5 && distinct(4) == 5);
    assert!(
        all.iter().filter(|words| words[0] == words[1]).count() < 25,
        "the second key is a draw of its own"
    );
}

#[test]
fn operations_take_turns_where_they_are_asked_to() {
    let mix = Mix { in_turns: true, ..Mix::of(&[(Verb::Get, 2.0), (Verb::Set, 1.0)]) };
    let task = Task { depth: 1, requests: 6, work: Work::Mix(mix), ..Task::of(Verb::Get) };
    let mut story = Story::new(1, &task);
    let mut verbs = Vec::new();
    for _ in 0..6 {
        verbs.push(story.asks(0, BEGIN).ticket.verb);
        let outcome = if verbs.last() == Some(&Verb::Set) { Outcome::Stored } else { Outcome::Hit };
        story.answer(0, outcome, BEGIN, BEGIN);
    }
    assert_eq!(verbs, [Verb::Get, Verb::Get, Verb::Set, Verb::Get, Verb::Get, Verb::Set]);
}
