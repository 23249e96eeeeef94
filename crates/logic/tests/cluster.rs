//! Tests of the clients of a cluster: what they do with replies that name another node, or no node.

use std::collections::VecDeque;
use std::sync::Arc;

use pummel_logic::arrival::{Pace, Schedule};
use pummel_logic::client::route::{Lane, Router};
use pummel_logic::client::{Action, Client, Exchange, PhaseAssignment};
use pummel_logic::cluster::hops::HopLimits;
use pummel_logic::cluster::map::SlotMap;
use pummel_logic::cluster::nodes::{NodeName, NodeTable};
use pummel_logic::cluster::reads::ReadRule;
use pummel_logic::cluster::slot_of;
use pummel_logic::cluster::view::{ClusterView, RedirectCounts};
use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Stamp};
use pummel_logic::plan::{Arrivals, Data, Mix, ReadFrom, Route, SlotRange, Work};
use pummel_logic::protocol::resp::sequence::Sending;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::{Fault, Keys, Outcome, Verb};
use pummel_logic::rng::{Stream, StreamOwner};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::workload::key::KeyMaker;
use pummel_logic::workload::request::{AnswerUse, CheckState, RequestInputs, RequestMaker};
use pummel_logic::workload::value::ValueMaker;
use pummel_logic::workload::verify::stale::RunMark;

/// Time at which the phase begins.
const BEGIN: Nanos = SECOND;

/// Nodes of the cluster; node n is lane n.
const NODES: u16 = 4;

/// A request on its way to a node.
#[derive(Clone, Debug)]
struct Sent {
    lane: Lane,
    ticket: Ticket,
    /// The first key, and the slots of all.
    key: Vec<u8>,
    slots: Vec<u16>,
    asking: bool,
    /// The commands of a sequence that it sends, as a number.
    cas: u64,
    at: Nanos,
}

/// One client of a cluster of four nodes, all slots of which belong to node 0 at first.
struct Scene {
    client: Client,
    maker: RequestMaker,
    now: Nanos,
    sent: VecDeque<Sent>,
    /// Requests that ended: verb, first sending, and whether the end was a success.
    ended: Vec<(Verb, Nanos, bool)>,
    outcomes: Vec<Outcome>,
    unsent: u64,
    /// The lanes that the client wanted to open, in their order.
    wanted: Vec<Lane>,
    /// The time that the client wants to wait for.
    waits_until: Nanos,
    is_done: bool,
    /// Whether reads are asked for on their short way first, as workers do.
    is_quick: bool,
    /// Number of reads that were had on the short way.
    quick: u64,
}

fn name(node: u16) -> NodeName {
    NodeName { host: "127.0.0.1".to_owned(), port: 7_001 + node }
}

fn nodes() -> NodeTable {
    let mut nodes = NodeTable::new(NODES.into());
    (0..NODES).for_each(|node| assert_eq!(nodes.number_of(&name(node)), Some(node)));
    nodes
}

fn map_of(owner: u16) -> SlotMap {
    let mut map = SlotMap::unowned();
    (0..16_384).for_each(|slot| map.set_owner(slot, owner));
    map
}

/// The map in which node 0 owns nearly all slots, and node 2 one.
fn nearly_all() -> SlotMap {
    let mut map = map_of(0);
    map.set_owner(16_383, 2);
    map
}

impl Scene {
    fn new(mix: Mix, requests: u64, depth: u32) -> Scene {
        Scene::of(mix, requests, depth, HopLimits { redirects: 5, timeout_ns: SECOND })
    }

    fn of(mix: Mix, requests: u64, depth: u32, limits: HopLimits) -> Scene {
        Scene::at(1_000, mix, (requests, depth), limits, None)
    }

    /// The scene of a client of so many records, whose requests are due by this schedule.
    fn at(
        records: u64,
        mix: Mix,
        (requests, depth): (u64, u32),
        limits: HopLimits,
        schedule: Option<Schedule>,
    ) -> Scene {
        Scene::with(Data { records, ..Data::default() }, mix, (requests, depth), limits, schedule)
    }

    /// The scene of a client of these records, whose requests are due by this schedule.
    fn with(
        data: Data,
        mix: Mix,
        (requests, depth): (u64, u32),
        limits: HopLimits,
        schedule: Option<Schedule>,
    ) -> Scene {
        Scene::asking(data, mix, (requests, depth), (limits, schedule), &[])
    }

    /// The scene of a client that asks one sequence of commands, once.
    fn of_sequence(text: &str) -> Scene {
        let limits = HopLimits { redirects: 5, timeout_ns: SECOND };
        Scene::asking(Data::default(), mix_of(Verb::Command), (1, 1), (limits, None), &[text])
    }

    /// The scene of a client with these commands of the user.
    fn asking(
        data: Data,
        mix: Mix,
        (requests, depth): (u64, u32),
        (limits, schedule): (HopLimits, Option<Schedule>),
        commands: &[&str],
    ) -> Scene {
        let commands = commands.iter().map(|text| Template::parse(text).expect("a template")).collect();
        let keys = KeyMaker::new(&data).expect("the keys are short");
        let values = ValueMaker::new(&data).expect("the values are small");
        let servers: Vec<String> = (0..NODES).map(|node| name(node).to_string()).collect();
        let mut view = ClusterView::new(NODES.into(), limits, Stream::from_seed(1));
        view.renew(&map_of(0), &nodes());
        let inputs = RequestInputs {
            router: Router::new(Route::Cluster, &servers),
            cluster: Some(Box::new(view)),
            verify: 1.0,
            commands: Arc::new(commands),
            ..RequestInputs::new(keys, values, &data, 1, RunMark::new(1))
        };
        let mut maker = RequestMaker::new(inputs);
        maker.begin(&Work::Mix(mix), 1);
        let lanes: Vec<u32> = (0..u32::from(NODES)).collect();
        let mut client = Client::new(0, 0, 0, None).with_lanes(&lanes).of_cluster();
        let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
        let assignment = PhaseAssignment { begin: BEGIN, requests, depth, ..PhaseAssignment::nothing(place) };
        client.begin(assignment, schedule);
        let mut scene = Scene {
            client,
            maker,
            now: BEGIN,
            sent: VecDeque::new(),
            ended: Vec::new(),
            outcomes: Vec::new(),
            unsent: 0,
            wanted: Vec::new(),
            waits_until: 0,
            is_done: false,
            is_quick: true,
            quick: 0,
        };
        (0..NODES).for_each(|lane| scene.open(lane));
        scene
    }

    /// The scene of a client whose reads go to these nodes, where node 0 has nodes 1 and 2 as replicas.
    fn reading_from(from: ReadFrom, mix: Mix, requests: u64, depth: u32) -> Scene {
        let mut scene = Scene::new(mix, requests, depth);
        scene.read_from(from, &[1, 2]);
        scene
    }

    /// Lets reads go to these nodes from now on, where node 0 has these replicas.
    fn read_from(&mut self, from: ReadFrom, replicas: &[u16]) {
        let mut map = map_of(0);
        replicas.iter().for_each(|&replica| map.add_replica(0, replica));
        let view = self.maker.cluster_mut().expect("it is a cluster");
        view.reads = ReadRule { from, ..ReadRule::default() };
        view.renew(&map, &nodes());
        (0..NODES).for_each(|lane| assert!(!self.client.note_member(lane, true)));
    }

    fn close(&mut self, lane: Lane) {
        self.client.handle_closed(lane, true, &mut self.maker);
    }

    fn open(&mut self, lane: Lane) {
        assert!(!self.client.note_member(lane, true), "nothing is to be closed");
        self.client.handle_opened(lane, self.now);
    }

    /// Lets client `number` come in the place of the last one, with so many requests, and an end of its phase.
    fn come(&mut self, number: u64, requests: u64, end: Nanos) {
        self.client.depart();
        self.client.renew(number, 0);
        self.client.open_on_demand(true);
        let place = StreamOwner { seed: 1, group: 0, phase: 1, client: number };
        let nothing = PhaseAssignment::nothing(place);
        self.client.begin(PhaseAssignment { begin: self.now, end, requests, depth: 1, ..nothing }, None);
        self.is_done = false;
        (0..NODES).for_each(|lane| assert!(!self.client.note_member(lane, true)));
    }

    fn counts(&self) -> RedirectCounts {
        self.maker.cluster().expect("it is a cluster").counts
    }

    /// Polls the client until it waits.
    fn poll(&mut self) {
        loop {
            let now = self.now;
            if self.is_quick
                && let Some((lane, op, ticket)) = self.client.poll_read_over_lanes(now, &mut self.maker)
            {
                let (key, slots) = keys_of(&op.keys);
                self.sent.push_back(Sent { lane, ticket, key, slots, asking: false, cas: op.cas, at: now });
                self.quick += 1;
                continue;
            }
            let (lane, ticket, (key, slots), asking, cas) = match self.client.poll(now, &mut self.maker) {
                Action::Ask { lane, op, ticket } => (lane, ticket, keys_of(&op.keys), false, op.cas),
                Action::AskAgain { lane, op, ticket, asking } => {
                    (lane, ticket, keys_of(&op.keys), asking, op.cas)
                }
                Action::GivenUp(lane, whole) => {
                    self.end(lane, &whole.answer());
                    continue;
                }
                Action::Unsent { .. } => {
                    self.unsent += 1;
                    continue;
                }
                Action::Wait(until) => return self.waits_until = until,
                Action::Done => return self.is_done = true,
                Action::Leave => unreachable!("the client is there all the time"),
                Action::Open(lane) => {
                    self.wanted.push(lane);
                    continue;
                }
                Action::DoneUntil(_) => unreachable!("there is no trace"),
            };
            self.sent.push_back(Sent { lane, ticket, key, slots, asking, cas, at: now });
        }
    }

    /// The next request that was sent.
    fn take(&mut self) -> Sent {
        self.poll();
        self.sent.pop_front().expect("a request is sent")
    }

    /// Lets the request end at its node with this outcome and these words, a millisecond later.
    fn answer(&mut self, sent: &Sent, outcome: Outcome, words: &str) {
        self.answer_with(sent, outcome, u32::from(outcome == Outcome::Hit), words);
    }

    /// Lets the request end with so many items, or these commands of a sequence that may be asked again.
    fn answer_with(&mut self, sent: &Sent, outcome: Outcome, hits: u32, words: &str) {
        self.now += MILLISECOND;
        let answer = Answer {
            ticket: &sent.ticket,
            outcome,
            sent: sent.at,
            arrived: self.now,
            read: self.now,
            hits,
            stamp: Stamp::Nothing,
            mark: 0,
        };
        let (ticket, first, outcome) =
            match self.client.end_exchange(sent.lane, &answer, words.as_bytes(), &mut self.maker) {
                Exchange::GoesOn => return,
                Exchange::Whole => (sent.ticket, sent.at, outcome),
                Exchange::Ends { ticket, sent, earlier } => {
                    (ticket, sent, earlier.map_or(outcome, |earlier| earlier.0))
                }
            };
        self.end(sent.lane, &Answer { ticket: &ticket, sent: first, outcome, ..answer });
    }

    /// Takes in the end of a request, or of a part of one.
    fn end(&mut self, lane: Lane, answer: &Answer<'_>) {
        let is_right = |answer: &Answer<'_>| !matches!(answer.outcome, Outcome::Error(_));
        if answer.ticket.origin.is_part() {
            if let Some(whole) = self.client.handle_part(lane, answer, &[], &mut self.maker) {
                let whole = whole.answer();
                self.ended.push((whole.ticket.verb, whole.sent, is_right(&whole)));
            }
            return;
        }
        self.ended.push((answer.ticket.verb, answer.sent, is_right(answer)));
        self.outcomes.push(answer.outcome);
        self.client.handle_answer(lane, answer, &mut self.maker);
    }

    /// Lets the request be sent on, or wait.
    fn refuse(&mut self, sent: &Sent, words: &str) {
        let fault =
            if words.starts_with("MOVED") || words.starts_with("ASK") { Fault::Moved } else { Fault::Server };
        self.answer(sent, Outcome::Error(fault), words);
    }

    fn moved(&mut self, sent: &Sent, to: u16) {
        let words = format!("MOVED {} {}", slot_of(&sent.key), name(to));
        self.refuse(sent, &words);
    }
}

/// The first key, and the slots of all keys.
fn keys_of(keys: &Keys<'_>) -> (Vec<u8>, Vec<u16>) {
    match keys {
        Keys::One(key) => (key.to_vec(), vec![slot_of(key)]),
        many => (many.key(0).to_vec(), (0..many.count()).map(|place| slot_of(many.key(place))).collect()),
    }
}

fn mix_of(verb: Verb) -> Mix {
    Mix { ops: vec![(verb, 1.0)], multiget: 1, multiset: 1, ..Mix::default() }
}

#[test]
fn a_moved_request_is_one_request_with_its_first_sending() {
    let mut scene = Scene::new(mix_of(Verb::Get), 2, 1);
    let first = scene.take();
    assert_eq!(first.lane, 0);
    scene.moved(&first, 2);
    assert!(scene.ended.is_empty(), "it goes on");
    let again = scene.take();
    assert_eq!((again.lane, &again.key, again.asking), (2, &first.key, false));
    scene.answer(&again, Outcome::Miss, "");
    assert_eq!(scene.ended, [(Verb::Get, first.at, true)]);
    assert_eq!(scene.counts(), RedirectCounts { moved: 1, followed: 1, ..RedirectCounts::default() });
    // The slot belongs to the other node from now on, and a new map may be asked of any node.
    let view = scene.maker.cluster_mut().expect("it is a cluster");
    assert_eq!(view.owner_of(slot_of(&first.key)), Some(2));
    assert_eq!(view.take_refresh_request(), Some(None));
    let second = scene.take();
    scene.answer(&second, Outcome::Hit, "");
    scene.poll();
    assert!(scene.is_done && scene.unsent == 0);
}

#[test]
fn a_read_on_its_short_way_is_the_one_that_the_long_way_has() {
    let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
    let open = Pace::new(&Arrivals::Constant, 20_000.0, 1).schedule(place);
    for schedule in [None, Some(open)] {
        let mix = Mix { ops: vec![(Verb::Get, 3.0), (Verb::Set, 1.0)], ..mix_of(Verb::Get) };
        let limits = HopLimits { redirects: 5, timeout_ns: SECOND };
        let mut scenes = [false, true].map(|is_quick| {
            let mut scene = Scene::at(1_000, mix.clone(), (300, 4), limits, schedule.clone());
            scene.is_quick = is_quick;
            scene
        });
        let mut both: [Vec<_>; 2] = [Vec::new(), Vec::new()];
        for (scene, all) in scenes.iter_mut().zip(&mut both) {
            let mut turn = 0;
            while !scene.is_done {
                scene.now += MILLISECOND / 10;
                scene.poll();
                for sent in std::mem::take(&mut scene.sent) {
                    turn += 1;
                    all.push((sent.lane, sent.ticket, sent.key.clone(), sent.asking));
                    match turn % 29 {
                        3 => scene.moved(&sent, (turn % 4) as u16),
                        19 => scene.refuse(&sent, "CLUSTERDOWN The cluster is down"),
                        _ => scene.answer(&sent, Outcome::Hit, ""),
                    }
                }
                if turn % 23 == 0 {
                    scene.close(1);
                    scene.poll();
                    scene.open(1);
                }
            }
        }
        assert!(scenes[1].quick > 50 && scenes[0].quick == 0, "{} reads", scenes[1].quick);
        assert_eq!(both[0], both[1]);
        assert_eq!(scenes[0].ended, scenes[1].ended);
    }
}

#[test]
fn asked_requests_go_with_asking_and_the_map_stays() {
    let mut scene = Scene::new(mix_of(Verb::Set), 1, 1);
    let first = scene.take();
    let words = format!("ASK {} {}", slot_of(&first.key), name(3));
    scene.refuse(&first, &words);
    let again = scene.take();
    assert_eq!((again.lane, again.asking), (3, true));
    let view = scene.maker.cluster().expect("it is a cluster");
    assert_eq!(view.owner_of(slot_of(&first.key)), Some(0));
    scene.answer(&again, Outcome::Stored, "");
    assert_eq!(scene.ended, [(Verb::Set, first.at, true)]);
}

#[test]
fn replies_that_name_no_node_are_waits_until_the_timeout() {
    for words in [
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "LOADING Redis is loading the dataset in memory",
        "MOVED 1 ?:7101",
        "MOVED 1 10.9.9.9:7999",
    ] {
        let mut scene = Scene::new(mix_of(Verb::Get), 1, 1);
        let mut attempts = 0;
        let first = scene.take();
        let mut sent = first.clone();
        loop {
            attempts += 1;
            let words = words.replace("MOVED 1", &format!("MOVED {}", slot_of(&sent.key)));
            scene.refuse(&sent, &words);
            if !scene.ended.is_empty() {
                break;
            }
            scene.poll();
            assert!(scene.sent.is_empty(), "it waits");
            assert!(scene.waits_until <= BEGIN + SECOND, "{words}");
            scene.now = scene.waits_until.max(scene.now);
            sent = scene.take();
        }
        assert!((4..20).contains(&attempts), "{attempts} with {words}");
        assert_eq!(scene.ended, [(Verb::Get, first.at, false)], "{words}");
        assert!(scene.now >= BEGIN + SECOND && scene.now < BEGIN + SECOND + 10 * MILLISECOND, "{words}");
        let counts = scene.counts();
        assert_eq!((counts.followed, counts.given_up), (0, 1), "{words}");
    }
}

#[test]
fn circles_end_after_the_redirects_that_are_allowed() {
    for redirects in [0, 1, 5] {
        let limits = HopLimits { redirects, timeout_ns: SECOND };
        let mut scene = Scene::of(mix_of(Verb::Get), 1, 1, limits);
        let mut sent = scene.take();
        let mut hops = 0;
        loop {
            scene.moved(&sent, (sent.lane + 1) % NODES);
            if !scene.ended.is_empty() {
                break;
            }
            hops += 1;
            sent = scene.take();
        }
        assert_eq!(hops, redirects);
        assert_eq!(scene.ended.len(), 1);
        assert!(!scene.ended[0].2);
    }
}

#[test]
fn other_errors_end_a_request_at_once() {
    for words in
        ["OOM command not allowed", "WRONGTYPE Operation against a key", "MOVED", "MOVED x 127.0.0.1:7002"]
    {
        let mut scene = Scene::new(mix_of(Verb::Set), 1, 1);
        let sent = scene.take();
        scene.refuse(&sent, words);
        assert_eq!(scene.ended, [(Verb::Set, sent.at, false)], "{words}");
    }
}

#[test]
fn a_read_is_repeated_after_a_loss_and_a_write_is_not() {
    for (verb, again) in [(Verb::Get, true), (Verb::Set, false)] {
        let mut scene = Scene::new(mix_of(verb), 1, 1);
        let sent = scene.take();
        scene.answer(&sent, Outcome::Error(Fault::Closed), "");
        assert_eq!(scene.ended.is_empty(), again, "{verb:?}");
        if again {
            scene.poll();
            scene.now = scene.waits_until;
            let repeated = scene.take();
            assert_eq!(repeated.key, sent.key);
            scene.answer(&repeated, Outcome::Hit, "");
            assert_eq!(scene.counts().repeated, 1);
        }
    }
}

#[test]
fn a_write_of_which_nothing_was_sent_is_repeated_and_counts_from_its_sending() {
    let mut scene = Scene::new(mix_of(Verb::Set), 1, 1);
    let queued = Sent { at: NEVER, ..scene.take() };
    scene.answer(&queued, Outcome::Error(Fault::Closed), "");
    assert!(scene.ended.is_empty());
    scene.poll();
    scene.now = scene.waits_until;
    let sent = scene.take();
    scene.answer(&sent, Outcome::Stored, "");
    assert_eq!(scene.ended, [(Verb::Set, sent.at, true)]);
}

#[test]
fn later_requests_of_a_redirected_slot_wait_and_others_pass() {
    // Two keys, each in a slot of its own.
    let limits = HopLimits { redirects: 5, timeout_ns: SECOND };
    let mut scene = Scene::at(2, mix_of(Verb::Set), (64, 4), limits, None);
    scene.poll();
    let first = scene.sent.pop_front().expect("four are sent");
    let slot = slot_of(&first.key);
    scene.refuse(&first, "CLUSTERDOWN The cluster is down");
    // What was on its way before it is answered; what comes later waits as long as the first one.
    while let Some(sent) = scene.sent.pop_front() {
        scene.answer(&sent, Outcome::Stored, "");
    }
    let (mut passed, mut held, mut is_over) = (0, 0, false);
    while scene.now < BEGIN + 60 * MILLISECOND {
        scene.poll();
        match scene.sent.pop_front() {
            Some(sent) if sent.key == first.key && sent.ticket.index != first.ticket.index => {
                assert!(is_over, "it overtakes the first one");
                held += 1;
                scene.answer(&sent, Outcome::Stored, "");
            }
            Some(sent) => {
                passed += u64::from(slot_of(&sent.key) != slot && !is_over);
                is_over |= sent.ticket.index == first.ticket.index;
                scene.answer(&sent, Outcome::Stored, "");
            }
            None => scene.now = scene.waits_until.max(scene.now),
        }
    }
    assert!(passed > 0 && held > 0, "{passed} passed and {held} waited");
}

#[test]
fn requests_for_a_node_without_a_connection_are_held_and_never_sent_after_their_timeout() {
    let mut scene = Scene::new(mix_of(Verb::Get), 3, 1);
    scene.client.handle_closed(0, true, &mut scene.maker);
    scene.poll();
    assert!(scene.sent.is_empty() && scene.unsent == 0);
    assert_eq!(scene.waits_until, BEGIN + SECOND);
    // Half a second later the connection is open again, and the request is sent.
    scene.now = BEGIN + SECOND / 2;
    scene.client.handle_opened(0, scene.now);
    let sent = scene.take();
    assert_eq!(sent.ticket.ready, scene.now, "the generator did not delay it");
    scene.answer(&sent, Outcome::Hit, "");
    // The next one waits for its whole timeout in vain.
    scene.client.handle_closed(0, true, &mut scene.maker);
    scene.poll();
    assert!(scene.sent.is_empty());
    scene.now = scene.waits_until;
    scene.poll();
    assert_eq!(scene.unsent, 1);
    assert!(!scene.is_done, "the third one is due");
    // The phase is over: it is known of which slot the third one was.
    let over = scene.now + 1;
    let third = scene.client.take_held_back(over, &mut scene.maker).expect("it waits");
    assert_eq!((third.0, third.1), (Verb::Get, scene.now));
    assert!(scene.client.take_held_back(over, &mut scene.maker).is_none());
}

#[test]
fn in_open_loop_requests_of_other_nodes_pass_those_of_a_node_that_is_down() {
    let place = StreamOwner { seed: 1, group: 0, phase: 1, client: 0 };
    let schedule = Pace::new(&Arrivals::Constant, 1_000.0, 1).schedule(place);
    let limits = HopLimits { redirects: 5, timeout_ns: 50 * MILLISECOND };
    let mut scene = Scene::at(1_000, mix_of(Verb::Get), (200, 1), limits, Some(schedule));
    let mut map = map_of(0);
    (0..8_192).for_each(|slot| map.set_owner(slot, 1));
    scene.maker.cluster_mut().expect("it is a cluster").renew(&map, &nodes());
    scene.client.handle_closed(1, true, &mut scene.maker);
    while !scene.is_done {
        scene.poll();
        match scene.sent.pop_front() {
            Some(sent) => {
                assert_eq!(sent.lane, 0, "the other node is down");
                let late = sent.at - sent.ticket.due;
                assert!(late <= 2 * MILLISECOND, "{late} ns behind requests of another node");
                scene.answer(&sent, Outcome::Hit, "");
            }
            None => scene.now = scene.waits_until.max(scene.now),
        }
    }
    let answered = scene.ended.len() as u64;
    assert_eq!(answered + scene.unsent, 200);
    assert!((60..140).contains(&answered), "{answered}");
}

#[test]
fn a_phase_that_is_over_ends_what_waits() {
    let mut scene = Scene::new(mix_of(Verb::Get), 8, 2);
    scene.poll();
    let sent: Vec<Sent> = scene.sent.drain(..).collect();
    scene.refuse(&sent[0], "CLUSTERDOWN The cluster is down");
    scene.client.end_redirects();
    scene.answer(&sent[1], Outcome::Error(Fault::Closed), "");
    assert_eq!(scene.ended.len(), 1, "nothing is repeated any more");
    let (lane, whole) = scene.client.take_waiting(scene.now, &mut scene.maker).expect("one waits");
    assert_eq!(scene.maker.cluster_mut().expect("a cluster").counts.given_up, 1);
    assert_eq!(lane, sent[0].lane);
    assert_eq!((whole.answer().sent, whole.message()), (sent[0].at, &b"CLUSTERDOWN The cluster is down"[..]));
    scene.client.handle_answer(0, &whole.answer(), &mut scene.maker);
    assert!(scene.client.take_waiting(scene.now, &mut scene.maker).is_none());
    assert_eq!(scene.client.outstanding(), 0);
}

#[test]
fn a_stopped_client_ends_what_waits_and_sends_nothing() {
    let mut scene = Scene::new(mix_of(Verb::Get), 8, 2);
    scene.poll();
    let sent: Vec<Sent> = scene.sent.drain(..).collect();
    scene.refuse(&sent[0], "CLUSTERDOWN The cluster is down");
    scene.answer(&sent[1], Outcome::Hit, "");
    scene.client.stop(scene.now);
    scene.poll();
    assert!(scene.sent.is_empty());
    assert!(scene.is_done && scene.client.outstanding() == 0);
}

#[test]
fn a_multi_get_has_a_part_for_each_slot_and_each_part_follows_its_own_redirect() {
    let mix = Mix { multiget: 5, ..mix_of(Verb::Get) };
    let mut scene = Scene::new(mix, 1, 1);
    scene.poll();
    let parts: Vec<Sent> = scene.sent.drain(..).collect();
    assert_eq!(parts.len(), 5, "five keys of five slots");
    scene.moved(&parts[2], 1);
    for (number, part) in parts.iter().enumerate().filter(|(number, _)| *number != 2) {
        scene.answer(part, Outcome::Miss, "");
        assert!(scene.ended.is_empty(), "part {number} is not the whole");
    }
    let again = scene.take();
    assert_eq!((again.lane, &again.key), (1, &parts[2].key));
    scene.answer(&again, Outcome::Miss, "");
    assert_eq!(scene.ended, [(Verb::Get, parts[0].at, true)]);
    assert_eq!(scene.client.outstanding(), 0);
}

/// Requests of each verb that were sent over each lane, of a mix of reads and writes.
fn lanes_of(from: ReadFrom) -> [[u64; NODES as usize]; 2] {
    let mix = Mix { ops: vec![(Verb::Get, 0.5), (Verb::Set, 0.5)], ..mix_of(Verb::Get) };
    let mut scene = Scene::reading_from(from, mix, 400, 1);
    let mut lanes = [[0; NODES as usize]; 2];
    for _ in 0..400 {
        let sent = scene.take();
        let is_write = sent.ticket.verb == Verb::Set;
        lanes[usize::from(is_write)][usize::from(sent.lane)] += 1;
        scene.answer(&sent, if is_write { Outcome::Stored } else { Outcome::Hit }, "");
    }
    lanes
}

#[test]
fn reads_go_where_they_are_sent_to_and_writes_to_the_master() {
    for (from, readers) in [
        (ReadFrom::Primary, [true, false, false, false]),
        (ReadFrom::Replica, [false, true, true, false]),
        (ReadFrom::PreferReplica, [false, true, true, false]),
        (ReadFrom::Any, [true, true, true, false]),
    ] {
        let [reads, writes] = lanes_of(from);
        assert_eq!(reads.map(|count| count > 0), readers, "{from:?}: {reads:?}");
        assert_eq!(writes.map(|count| count > 0), [true, false, false, false], "{from:?}: {writes:?}");
        let readers = readers.iter().filter(|reads| **reads).count() as u64;
        let share = reads.iter().sum::<u64>() / readers;
        let is_even = |count: &u64| *count == 0 || count.abs_diff(share) < share / 3;
        assert!(reads.iter().all(is_even), "{from:?}: {reads:?}");
        assert_eq!(lanes_of(from), [reads, writes], "each run chooses alike");
    }
}

#[test]
fn a_moved_read_follows_to_the_master_and_later_ones_go_to_replicas_again() {
    let mut scene = Scene::reading_from(ReadFrom::Replica, mix_of(Verb::Get), 2, 1);
    let first = scene.take();
    assert_ne!(first.lane, 0);
    scene.moved(&first, 0);
    let again = scene.take();
    assert_eq!((again.lane, &again.key), (0, &first.key));
    scene.answer(&again, Outcome::Hit, "");
    assert_eq!(scene.ended, [(Verb::Get, first.at, true)]);
    let view = scene.maker.cluster_mut().expect("it is a cluster");
    assert_eq!(view.take_refresh_request(), Some(None), "the replica may follow another master");
    assert_ne!(scene.take().lane, 0);
}

#[test]
fn a_read_whose_node_is_lost_or_loads_is_repeated_on_another_one_of_its_shard() {
    for (from, words) in [
        (ReadFrom::Replica, ""),
        (ReadFrom::PreferReplica, ""),
        (ReadFrom::Any, ""),
        (ReadFrom::Replica, "LOADING Redis is loading the dataset in memory"),
        (ReadFrom::Any, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    ] {
        let mut scene = Scene::reading_from(from, mix_of(Verb::Get), 1, 1);
        let sent = scene.take();
        let fault = if words.is_empty() { Fault::Closed } else { Fault::Server };
        if words.is_empty() {
            scene.close(sent.lane);
        }
        scene.answer(&sent, Outcome::Error(fault), words);
        scene.poll();
        assert!(scene.sent.is_empty() && scene.ended.is_empty(), "it waits");
        scene.now = scene.waits_until;
        let again = scene.take();
        assert!(again.lane != sent.lane && again.lane < 3, "{from:?}: {} after {}", again.lane, sent.lane);
        assert_eq!(again.key, sent.key);
        scene.answer(&again, Outcome::Hit, "");
        assert_eq!(scene.ended, [(Verb::Get, sent.at, true)]);
    }
}

#[test]
fn reads_wait_for_a_replica_or_go_to_the_master_as_they_are_told() {
    for (from, replicas, waits) in [
        (ReadFrom::Replica, &[][..], true),
        (ReadFrom::Replica, &[1][..], true),
        (ReadFrom::PreferReplica, &[], false),
        (ReadFrom::PreferReplica, &[1], false),
        (ReadFrom::Any, &[], false),
        (ReadFrom::Any, &[1], false),
    ] {
        let mut scene = Scene::new(mix_of(Verb::Get), 2, 1);
        scene.read_from(from, replicas);
        scene.close(1);
        if !waits {
            assert_eq!(scene.take().lane, 0, "{from:?} of {replicas:?}");
            continue;
        }
        scene.poll();
        assert!(scene.sent.is_empty(), "{from:?} of {replicas:?}");
        assert_eq!(scene.waits_until, BEGIN + SECOND);
        // A new map has a replica whose connection is open.
        scene.now += MILLISECOND;
        scene.read_from(from, &[1, 3]);
        let sent = scene.take();
        assert_eq!(sent.lane, 3);
        scene.answer(&sent, Outcome::Hit, "");
        // The next one waits in vain.
        scene.close(3);
        scene.poll();
        scene.now = scene.waits_until;
        scene.poll();
        assert_eq!((scene.unsent, scene.sent.len()), (1, 0));
    }
}

#[test]
fn later_requests_of_a_slot_wait_behind_its_redirected_read_wherever_they_go() {
    let mix = Mix { ops: vec![(Verb::Get, 0.8), (Verb::Set, 0.2)], ..mix_of(Verb::Get) };
    let limits = HopLimits { redirects: 5, timeout_ns: SECOND };
    // One key.
    let mut scene = Scene::at(1, mix, (64, 4), limits, None);
    scene.read_from(ReadFrom::Replica, &[1, 2]);
    scene.poll();
    let first = scene.sent.iter().find(|sent| sent.ticket.verb == Verb::Get).expect("a read").clone();
    scene.refuse(&first, "LOADING Redis is loading the dataset in memory");
    while let Some(sent) = scene.sent.pop_front() {
        if sent.ticket.index != first.ticket.index {
            let stores = sent.ticket.verb == Verb::Set;
            scene.answer(&sent, if stores { Outcome::Stored } else { Outcome::Hit }, "");
        }
    }
    scene.poll();
    assert!(scene.sent.is_empty(), "later requests of the slot wait, whichever nodes they go to");
    scene.now = scene.waits_until;
    let again = scene.take();
    assert_eq!(again.ticket.index, first.ticket.index);
}

#[test]
fn parts_of_a_multi_get_go_to_replicas_too() {
    let mix = Mix { multiget: 20, ..mix_of(Verb::Get) };
    let mut scene = Scene::reading_from(ReadFrom::Replica, mix, 1, 1);
    scene.poll();
    let lanes: Vec<Lane> = scene.sent.iter().map(|part| part.lane).collect();
    assert!(lanes.len() > 10 && lanes.contains(&1) && lanes.contains(&2), "{lanes:?}");
    assert!(!lanes.contains(&0), "{lanes:?}");
    assert!(scene.sent.iter().all(|part| part.ticket.check_state == CheckState::None));
}

#[test]
fn values_are_checked_wherever_they_are_from_and_no_version_is_called_stale_where_replicas_answer() {
    for from in ReadFrom::ALL {
        let mut scene = Scene::reading_from(from, mix_of(Verb::Get), 1, 1);
        let Sent { ticket, .. } = scene.take();
        assert_eq!(ticket.answer_use, AnswerUse::Verify);
        let is_judged = matches!(ticket.check_state, CheckState::Read(_));
        assert_eq!(is_judged, from == ReadFrom::Primary, "{from:?}");
    }
}

#[test]
fn requests_of_several_keys_with_a_tag_are_one_command_with_one_slot_also_when_they_are_sent_again() {
    let slots: Vec<SlotRange> = ["77-3000", "9000"].map(|range| range.parse().expect("a range")).to_vec();
    let limits = HopLimits { redirects: 5, timeout_ns: SECOND };
    for (slots, popularity) in
        [(vec![], "uniform"), (slots.clone(), "zipf:0.99"), (slots, "sequential"), (vec![], "ycsb")]
    {
        let chosen = slots.clone();
        let is_chosen = |slot: u16| {
            chosen.is_empty() || chosen.iter().any(|range| (range.first..=range.last).contains(&slot))
        };
        let data = Data { records: 1_003, key_tag: Some(6), slots, ..Data::default() };
        let mix = Mix {
            ops: vec![(Verb::Get, 1.0), (Verb::Mset, 1.0), (Verb::Set, 1.0)],
            multiget: 5,
            multiset: 3,
            popularity: popularity.parse().expect("a popularity"),
            ..mix_of(Verb::Get)
        };
        let mut scene = Scene::with(data, mix, (600, 1), limits, None);
        for number in 0..600 {
            let sent = scene.take();
            let keys = match sent.ticket.verb {
                Verb::Get => 5,
                Verb::Mset => 3,
                _ => 1,
            };
            assert_eq!((sent.slots.len(), sent.ticket.origin.is_part()), (keys, false), "{popularity}");
            assert!(sent.slots.iter().all(|slot| *slot == sent.slots[0]), "{popularity}: {:?}", sent.slots);
            assert!(is_chosen(sent.slots[0]), "{popularity}: {:?}", sent.slots);
            let ended = match number % 3 {
                0 => {
                    scene.moved(&sent, 1);
                    let again = scene.take();
                    assert_eq!((again.lane, &again.key, &again.slots), (1, &sent.key, &sent.slots));
                    again
                }
                _ => sent,
            };
            let outcome = if ended.ticket.verb == Verb::Get { Outcome::Hit } else { Outcome::Stored };
            scene.answer(&ended, outcome, "");
            assert_eq!(scene.ended.len(), number + 1);
        }
    }
}

#[test]
fn a_phase_ends_when_all_requests_have_whatever_the_nodes_say() {
    let words = [
        "TRYAGAIN x",
        "CLUSTERDOWN x",
        "READONLY x",
        "MASTERDOWN x",
        "CROSSSLOT x",
        "MOVED 99999 127.0.0.1:7001",
        "MOVED 0 :7002",
        "MOVED 0 127.0.0.1:7001",
        "ASK 0 127.0.0.1:7003",
        "ERR unknown",
    ];
    for seed in 0..200 {
        let chance = Stream::from_seed(seed);
        let mut draws = 0;
        let mut draw = |below: u64| {
            draws += 1;
            chance.draw(draws) % below
        };
        let (requests, depth) = (1 + draw(40), 1 + draw(8) as u32);
        let multiget = 1 + draw(4) as u32;
        let verb = if draw(2) == 0 { Verb::Get } else { Verb::Set };
        let from = ReadFrom::ALL[draw(4) as usize];
        let mix = Mix { multiget, ..mix_of(verb) };
        let mut scene = Scene::reading_from(from, mix, requests, depth);
        for _ in 0..20_000 {
            scene.poll();
            if scene.is_done {
                break;
            }
            let Some(sent) = scene.sent.pop_front() else {
                assert_ne!(scene.waits_until, NEVER, "seed {seed}: nothing wakes the client");
                scene.now = scene.waits_until.max(scene.now);
                continue;
            };
            match draw(12) as usize {
                kind if kind < words.len() => {
                    let words = words[kind].replace(" 0 ", &format!(" {} ", slot_of(&sent.key)));
                    scene.refuse(&sent, &words);
                }
                10 => scene.answer(&sent, Outcome::Error(Fault::Closed), ""),
                _ if verb == Verb::Get => scene.answer(&sent, Outcome::Miss, ""),
                _ => scene.answer(&sent, Outcome::Stored, ""),
            }
        }
        assert!(scene.is_done, "seed {seed} does not end");
        assert_eq!(scene.ended.len() as u64 + scene.unsent, requests, "seed {seed}");
        assert_eq!(scene.client.outstanding(), 0, "seed {seed}");
    }
}

#[test]
fn a_client_that_comes_opens_the_lanes_that_its_requests_need_and_each_life_begins_without_any() {
    let mut scene = Scene::new(mix_of(Verb::Get), 0, 1);
    for number in 1..4 {
        // What redirects have taught one client is forgotten before the next one comes.
        scene.maker.cluster_mut().expect("it is a cluster").renew(&nearly_all(), &nodes());
        scene.wanted.clear();
        scene.come(number, 2, NEVER);
        scene.poll();
        assert_eq!((&scene.wanted[..], scene.sent.len(), scene.is_done), (&[0][..], 0, false));
        scene.client.handle_opened(0, scene.now);
        let first = scene.take();
        scene.moved(&first, 2);
        scene.poll();
        assert_eq!((&scene.wanted[..], scene.sent.len()), (&[0, 2][..], 0), "the lane that is named");
        scene.client.handle_opened(2, scene.now);
        let again = scene.take();
        scene.answer(&again, Outcome::Hit, "");
        let second = scene.take();
        scene.answer(&second, Outcome::Hit, "");
        scene.poll();
        assert!(scene.is_done && scene.client.open_lanes() == 2);
    }
    assert_eq!((scene.ended.len(), scene.unsent), (6, 0));
    scene.come(5, 0, NEVER);
    assert_eq!(scene.client.open_lanes(), 0, "the lanes of the client before are closed");
}

#[test]
fn a_lane_that_is_lost_is_opened_again_where_a_request_needs_it() {
    let mut scene = Scene::new(mix_of(Verb::Get), 0, 1);
    scene.come(1, 1, NEVER);
    scene.poll();
    // No connection is made: the request that was never sent asks again.
    scene.close(0);
    scene.poll();
    assert_eq!((&scene.wanted[..], scene.unsent), (&[0, 0][..], 0));
    scene.client.handle_opened(0, scene.now);
    let first = scene.take();
    scene.close(0);
    scene.answer(&first, Outcome::Error(Fault::Closed), "");
    scene.poll();
    assert_eq!(scene.wanted.len(), 2, "the read waits first");
    scene.now = scene.waits_until;
    scene.poll();
    assert_eq!(scene.wanted, [0, 0, 0]);
    scene.client.handle_opened(0, scene.now);
    let again = scene.take();
    // Its last request is answered, and nothing needs the lane any more.
    scene.answer(&again, Outcome::Hit, "");
    scene.close(0);
    scene.poll();
    assert!(scene.is_done && scene.wanted.len() == 3);
}

#[test]
fn a_node_that_takes_no_connection_holds_a_request_until_its_timeout() {
    let mut scene = Scene::new(mix_of(Verb::Get), 0, 1);
    scene.come(1, 2, NEVER);
    let come = scene.now;
    while scene.now < come + SECOND {
        scene.poll();
        assert_eq!((scene.sent.len(), scene.unsent, scene.is_done), (0, 0, false));
        scene.now += 100 * MILLISECOND;
        scene.close(0);
    }
    scene.poll();
    assert_eq!((scene.unsent, scene.is_done), (1, false), "the second request is due then");
    scene.client.handle_opened(0, scene.now);
    let second = scene.take();
    assert_eq!((second.ticket.due, second.ticket.index), (come + SECOND, 1));
    scene.answer(&second, Outcome::Hit, "");
    scene.poll();
    assert!(scene.is_done);
}

#[test]
fn beyond_the_end_lanes_are_opened_for_what_was_due_before_it() {
    let mut scene = Scene::new(mix_of(Verb::Get), 0, 1);
    scene.maker.cluster_mut().expect("it is a cluster").renew(&nearly_all(), &nodes());
    let end = scene.now + 10 * MILLISECOND;
    scene.come(1, 5, end);
    scene.poll();
    scene.now = end;
    // The attempt to open the lane fails a moment after the end, and there is another one.
    scene.close(0);
    scene.poll();
    assert_eq!((&scene.wanted[..], scene.is_done), (&[0, 0][..], false));
    scene.client.handle_opened(0, scene.now);
    let sent = scene.take();
    assert!(sent.ticket.due < end);
    scene.moved(&sent, 2);
    scene.poll();
    assert_eq!((&scene.wanted[..], scene.is_done), (&[0, 0, 2][..], false));
    scene.client.handle_opened(2, scene.now);
    let again = scene.take();
    scene.answer(&again, Outcome::Hit, "");
    scene.poll();
    assert_eq!((scene.unsent, scene.ended.len(), scene.is_done), (0, 1, true), "nothing else was due");
}

#[test]
fn a_read_opens_the_lane_to_one_replica_and_another_one_where_that_fails() {
    let mut scene = Scene::reading_from(ReadFrom::PreferReplica, mix_of(Verb::Get), 0, 1);
    for number in 1..20 {
        scene.come(number, 1, NEVER);
        scene.wanted.clear();
        scene.poll();
        let &[chosen] = &scene.wanted[..] else { panic!("it opens one lane, and not {:?}", scene.wanted) };
        assert!(chosen == 1 || chosen == 2, "a replica, and not {chosen}");
        scene.poll();
        scene.close(chosen);
        scene.poll();
        assert_eq!(scene.wanted, [chosen, 3 - chosen], "the other replica");
        scene.close(3 - chosen);
        scene.poll();
        assert_eq!(scene.wanted[2..], [0], "the master, where no replica is reached");
        scene.client.handle_opened(0, scene.now);
        let sent = scene.take();
        assert_eq!(sent.lane, 0);
        scene.answer(&sent, Outcome::Hit, "");
        scene.poll();
        assert!(scene.is_done && scene.client.open_lanes() == 1);
    }
}

#[test]
fn a_node_that_leaves_and_one_that_joins_change_what_a_client_may_open() {
    let mut scene = Scene::new(mix_of(Verb::Get), 0, 1);
    scene.come(1, 2, NEVER);
    scene.poll();
    scene.client.handle_opened(0, scene.now);
    let first = scene.take();
    scene.answer(&first, Outcome::Hit, "");
    // All slots move to node 3.
    scene.maker.cluster_mut().expect("it is a cluster").renew(&map_of(3), &nodes());
    assert!(scene.client.note_member(0, false), "its connection is not wanted");
    assert!(!scene.client.note_member(3, true));
    scene.client.leave(0);
    scene.wanted.clear();
    scene.poll();
    assert_eq!(scene.wanted, [3]);
    scene.client.handle_opened(3, scene.now);
    assert_eq!(scene.take().lane, 3);
    assert_eq!(scene.client.open_lanes(), 1);
}

/// The commands of a sequence, bit n for command n, as a request carries them.
fn sending(commands: u32, is_asking: bool) -> u64 {
    Sending { commands, is_asking, is_unwatching: false }.to_bits()
}

const UNWATCH: Sending = Sending { commands: 0, is_asking: false, is_unwatching: true };

const MOVED: Outcome = Outcome::Error(Fault::Moved);

const TRANSACTION: &str = "WATCH __key__ ; GET __key__ ;; MULTI ; INCR __key__ ; EXEC";

impl Scene {
    /// Lets these commands of a sequence be sent on.
    fn redirect(&mut self, sent: &Sent, commands: u32, word: &str, to: u16) {
        let words = format!("{word} {} {}", slot_of(&sent.key), name(to));
        self.answer_with(sent, MOVED, commands, &words);
    }

    /// The lane and the commands of the next request.
    fn next(&mut self) -> (Sent, Lane, u64) {
        let sent = self.take();
        (sent.clone(), sent.lane, sent.cas)
    }
}

#[test]
fn a_transaction_is_repeated_from_what_it_watches_on_where_its_key_is() {
    let mut scene = Scene::of_sequence(TRANSACTION);
    let first = scene.take();
    assert_eq!((first.lane, first.cas), (0, 0));
    scene.answer(&first, Outcome::Ok, "");
    let (second, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b1_1100, false)));
    // Its queueing fails, and EXEC with it.
    scene.redirect(&second, 0b1000, "MOVED", 2);
    let (again, lane, commands) = scene.next();
    assert_eq!((lane, commands), (2, sending(0b11, false)));
    scene.answer(&again, Outcome::Ok, "");
    let (last, lane, commands) = scene.next();
    assert_eq!((lane, commands), (2, sending(0b1_1100, false)));
    scene.answer(&last, Outcome::Ok, "");
    assert_eq!((scene.ended, scene.outcomes), (vec![(Verb::Command, first.at, true)], vec![Outcome::Ok]));
}

#[test]
fn asking_goes_before_every_part_of_a_transaction() {
    let mut scene = Scene::of_sequence(&format!("{TRANSACTION} ; GET __key__"));
    let first = scene.take();
    scene.redirect(&first, 0b11, "ASK", 3);
    let (again, lane, commands) = scene.next();
    assert_eq!((lane, commands, again.asking), (3, sending(0b11, true), false));
    scene.answer(&again, Outcome::Ok, "");
    let (transaction, lane, commands) = scene.next();
    assert_eq!((lane, commands), (3, sending(0b1_1100, true)));
    scene.answer(&transaction, Outcome::Conflict, "");
    // What follows is asked of the owner of the slot.
    let (rest, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b10_0000, false)));
    scene.answer(&rest, Outcome::Ok, "");
    assert_eq!(scene.outcomes, [Outcome::Conflict]);
    assert_eq!(scene.counts(), RedirectCounts { ask: 1, followed: 1, ..RedirectCounts::default() });
}

#[test]
fn keys_on_both_sides_are_waited_for_and_what_was_watched_is_forgotten() {
    let mut scene = Scene::of_sequence(TRANSACTION);
    let first = scene.take();
    let words = format!("ASK {} {}", slot_of(&first.key), name(3));
    scene.answer_with(&first, Outcome::Error(Fault::Again), 0b10, &words);
    let (unwatch, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, UNWATCH.to_bits()));
    scene.answer(&unwatch, Outcome::Ok, "");
    scene.poll();
    assert!(scene.sent.is_empty() && scene.waits_until > scene.now, "it waits");
    scene.now = scene.waits_until;
    let (again, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b11, false)));
    scene.answer(&again, Outcome::Ok, "");
    assert_eq!(scene.counts().tryagain, 1);
}

#[test]
fn of_plain_commands_only_those_that_were_redirected_are_sent_again() {
    let mut scene = Scene::of_sequence("SET __key__ 1 ; INCR __key__ ; INCR {__key__}:a ;; GET __key__");
    let first = scene.take();
    scene.redirect(&first, 0b101, "ASK", 1);
    let (again, lane, commands) = scene.next();
    assert_eq!((lane, commands), (1, sending(0b101, true)));
    scene.answer(&again, Outcome::Ok, "");
    let (last, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b1000, false)));
    scene.redirect(&last, 0b1000, "MOVED", 1);
    let (last, lane, commands) = scene.next();
    assert_eq!((lane, commands), (1, sending(0b1000, false)));
    scene.answer(&last, Outcome::Ok, "");
    assert_eq!(scene.outcomes, [Outcome::Ok]);
}

#[test]
fn an_error_ends_a_sequence_behind_exec_and_unwatch_and_is_not_repeated() {
    let error = Outcome::Error(Fault::Client);
    for (text, then) in [
        // In the midst of what is watched.
        (TRANSACTION, UNWATCH.to_bits()),
        // At a queueing: EXEC is sent all the same.
        ("MULTI ; INCR __key__ ;; INCR __key__ ; EXEC", sending(0b1100, false)),
    ] {
        let mut scene = Scene::of_sequence(text);
        let first = scene.take();
        scene.answer(&first, error, "WRONGTYPE x");
        let (second, lane, commands) = scene.next();
        assert_eq!((lane, commands), (0, then), "{text}");
        scene.answer(&second, Outcome::Error(Fault::Server), "EXECABORT y");
        assert_eq!(scene.outcomes, [error], "{text}");
    }
    let mut scene = Scene::of_sequence("GET __key__ ;; SET __key__ 1");
    let first = scene.take();
    scene.answer(&first, error, "WRONGTYPE x");
    scene.poll();
    assert!(scene.is_done, "what follows an error is not sent");
    assert_eq!(scene.outcomes, [error]);
}

#[test]
fn a_sequence_that_lost_its_connection_is_repeated_only_where_nothing_was_written() {
    let lost = Outcome::Error(Fault::Reset);
    let mut scene = Scene::of_sequence(TRANSACTION);
    let first = scene.take();
    scene.answer(&first, Outcome::Ok, "");
    let second = scene.take();
    scene.answer(&second, lost, "");
    assert_eq!(scene.outcomes, [lost], "the server may have carried it out");
    let mut scene = Scene::of_sequence(TRANSACTION);
    let first = scene.take();
    scene.answer(&first, Outcome::Ok, "");
    let second = scene.take();
    let unsent = Sent { at: NEVER, ..second };
    scene.answer(&unsent, lost, "");
    scene.poll();
    scene.now = scene.waits_until;
    let (_, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b11, false)), "it begins anew");
    // Between two parts there is nothing on its way.
    let mut scene = Scene::of_sequence(TRANSACTION);
    let first = scene.take();
    scene.answer(&first, Outcome::Ok, "");
    scene.close(0);
    scene.open(0);
    scene.poll();
    assert_eq!(scene.outcomes, [Outcome::Error(Fault::Closed)]);
    let mut scene = Scene::of_sequence("GET __key__ ;; GET __key__");
    let first = scene.take();
    scene.answer(&first, Outcome::Ok, "");
    scene.close(0);
    scene.open(0);
    let (_, lane, commands) = scene.next();
    assert_eq!((lane, commands), (0, sending(0b10, false)), "any connection will do");
}
