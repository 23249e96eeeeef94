//! Tests of clients with windows: their requests to a server that the test makes up, and the answers.

use std::collections::HashMap;

use pummel_logic::client::{Action, Client, PhaseAssignment};
use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Item, Stamp};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Data, Lengths, Pool, Replication, Style, Window, Work};
use pummel_logic::protocol::{Fault, Outcome, Rest, Verb};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{NEVER, Nanos, SECOND};
use pummel_logic::workload::key::KeyMaker;
use pummel_logic::workload::request::{AnswerUse, RequestInputs, RequestMaker};
use pummel_logic::workload::value::ValueMaker;
use pummel_logic::workload::verify::stale::RunMark;
use pummel_logic::workload::window::{WindowCounts, WindowMaker};

fn window() -> Window {
    Window {
        seed: 7,
        objects: 1_024,
        keys: vec![Lengths { start: 16, end: 40, share: 1.0 }],
        values: vec![Lengths { start: 1, end: 100, share: 1.0 }],
        set: 0.1,
        get: 0.9,
        multiget: 1,
        overwrite: 0.0,
        verify: 1.0,
        expire: 0.0,
        verbose: false,
        preset: false,
        pool: Pool { sockets: 1, block: 1, datagrams: false, replication: None },
    }
}

/// Request of a client.
struct Asked {
    lane: u16,
    ticket: Ticket,
    keys: Vec<Vec<u8>>,
    value: Vec<u8>,
    expiry_s: i64,
}

/// A client, its servers, and a clock.
struct Story {
    client: Client,
    maker: RequestMaker,
    stores: Vec<HashMap<Vec<u8>, Vec<u8>>>,
    now: Nanos,
    counts: WindowCounts,
}

impl Story {
    fn new(window: &Window, servers: usize, requests: u64) -> Story {
        let data = Data {
            records: 1,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: Style::default(),
        };
        let windows = WindowMaker::new(window);
        let (keys, values) = (KeyMaker::new(&data).unwrap(), ValueMaker::new(&data).unwrap());
        let mut maker = RequestMaker::new(RequestInputs {
            window: Some(windows.clone()),
            ..RequestInputs::new(keys, values, &data, 1, RunMark::new(1))
        });
        let lanes = window.pool.servers_of(0, servers);
        let mut client = Client::new(0, 0, lanes[0], None).with_lanes(&lanes).with_window(&windows, 1);
        while let Action::Open(lane) = client.poll(0, &mut maker) {
            client.handle_opened(lane, 0);
        }
        maker.begin(&Work::Window(window.clone()), 1);
        let place = StreamOwner { seed: 1, group: 0, phase: 0, client: 0 };
        let assignment = PhaseAssignment { place, begin: 0, end: NEVER, requests, depth: 1, ..RESTING };
        client.begin(assignment, None);
        Story {
            client,
            maker,
            stores: vec![HashMap::new(); servers],
            now: SECOND,
            counts: WindowCounts::default(),
        }
    }

    /// The next request, if there is one.
    fn ask(&mut self) -> Option<Asked> {
        self.now += 1_000;
        match self.client.poll(self.now, &mut self.maker) {
            Action::Ask { lane, op, ticket } => {
                let keys = (0..op.keys.count()).map(|n| op.keys.key(n).to_vec()).collect();
                let Rest::Text { bytes, .. } = op.value.rest else { panic!("values are ranges of a table") };
                let value = [op.value.own, bytes].concat();
                Some(Asked { lane, ticket, keys, value, expiry_s: op.expiry_s })
            }
            Action::Done => None,
            other => panic!("a client with an answer asks again or is done: {other:?}"),
        }
    }

    /// Carries a request out as a server does, and answers it.
    fn serve(&mut self, asked: &Asked, server: usize) {
        if asked.ticket.verb == Verb::Set {
            self.stores[server].insert(asked.keys[0].clone(), asked.value.clone());
            return self.answer(asked, Outcome::Stored, 0);
        }
        let mut hits = 0;
        for key in &asked.keys {
            let Some(value) = self.stores[server].get(key) else { continue };
            hits += 1;
            if asked.ticket.answer_use == AnswerUse::Window {
                let item = Item { key, size: value.len() as u64, cas: 0, flags: 0 };
                if self.client.handle_window_item(&item, &mut self.maker) {
                    let (head, tail) = value.split_at(value.len() / 2);
                    self.client.handle_window_body(head, &self.maker);
                    self.client.handle_window_body(tail, &self.maker);
                }
            }
        }
        self.answer(asked, if hits > 0 { Outcome::Hit } else { Outcome::Miss }, hits);
    }

    /// Carries a get out as a server of the binary protocol does, whose replies name no key.
    fn serve_in_order(&mut self, asked: &Asked, server: usize) {
        let mut hits = 0;
        for (place, key) in asked.keys.iter().enumerate() {
            let Some(value) = self.stores[server].get(key).cloned() else {
                if place + 1 < asked.keys.len() {
                    self.client.handle_window_absence();
                }
                continue;
            };
            hits += 1;
            self.item(b"", &value);
        }
        self.answer(asked, if hits > 0 { Outcome::Hit } else { Outcome::Miss }, hits);
    }

    /// Hands an item to the client, and its bytes where they are wanted. Returns whether they are.
    fn item(&mut self, key: &[u8], value: &[u8]) -> bool {
        let item = Item { key, size: value.len() as u64, cas: 0, flags: 0 };
        let wanted = self.client.handle_window_item(&item, &mut self.maker);
        if wanted {
            self.client.handle_window_body(value, &self.maker);
        }
        wanted
    }

    fn answer(&mut self, asked: &Asked, outcome: Outcome, hits: u32) {
        let at = self.now;
        let answer = Answer {
            mark: 0,
            ticket: &asked.ticket,
            outcome,
            sent: at,
            arrived: at,
            read: at,
            hits,
            stamp: Stamp::Missing,
        };
        self.client.handle_answer(asked.lane, &answer, &mut self.maker);
        let counts = self.maker.window_mut().take_counts();
        self.counts.merge(&counts);
    }

    /// Serves all requests; returns the verbs.
    fn serve_all(&mut self) -> Vec<Verb> {
        let mut verbs = Vec::new();
        while let Some(asked) = self.ask() {
            verbs.push(asked.ticket.verb);
            self.serve(&asked, 0);
        }
        verbs
    }
}

const RESTING: PhaseAssignment = PhaseAssignment {
    place: StreamOwner { seed: 1, group: 0, phase: 0, client: 0 },
    begin: 0,
    end: NEVER,
    requests: 0,
    depth: 1,
    batched: false,
    repeats: 0,
    late: pummel_logic::plan::Late::Kept,
    spacing_ns: 0,
    ends_on_time: false,
    same_draws: false,
    asked_before: 0,
};

#[test]
fn a_set_and_nine_gets_follow_each_other() {
    let mut story = Story::new(&window(), 1, 50);
    let verbs = story.serve_all();
    let sets: Vec<usize> = (0..50).filter(|&at| verbs[at] == Verb::Set).collect();
    assert_eq!(sets, [0, 10, 20, 30, 40]);
    assert_eq!(story.counts.verified, 44, "all gets but the first are checked");
    assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, 0));
}

#[test]
fn a_window_that_is_full_lets_go_of_its_oldest_and_keeps_the_sizes() {
    let mut story = Story::new(&Window { set: 1.0, get: 0.0, ..window() }, 1, 3 * 1_024);
    let mut sizes = Vec::new();
    while let Some(asked) = story.ask() {
        sizes.push((asked.keys[0].len(), asked.value.len()));
        story.serve(&asked, 0);
    }
    assert_eq!(story.stores[0].len(), 3 * 1_024, "every key is another one");
    assert_eq!(sizes[..1_024], sizes[1_024..2_048]);
    assert_eq!(sizes[..1_024], sizes[2_048..]);
}

#[test]
fn overwriting_stores_other_values_under_keys_that_are_there_and_checks_them() {
    for overwrite in [0.5, 1.0] {
        let half = Window { overwrite, set: 0.5, get: 0.5, multiget: 3, ..window() };
        let mut story = Story::new(&half, 1, 8_000);
        story.serve_all();
        let sets = 4_000;
        let keys = story.stores[0].len();
        // Where every set is to overwrite, one in a thousand fills the window meanwhile.
        let expected = if overwrite < 1.0 { sets / 2 } else { sets / 1_000 + 1 };
        assert!(keys.abs_diff(expected) <= 1, "{keys} keys after {sets} sets with {overwrite}");
        assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, 0));
        assert!(story.counts.verified > 3_900);
    }
}

#[test]
fn gets_are_collected_and_the_last_are_sent_although_they_are_few() {
    let mut story = Story::new(&Window { multiget: 20, ..window() }, 1, 105);
    let mut keys = Vec::new();
    while let Some(asked) = story.ask() {
        if asked.ticket.verb == Verb::Get {
            keys.push(asked.keys.len());
        }
        story.serve(&asked, 0);
    }
    assert_eq!(keys, [20, 20, 20, 20, 14]);
}

#[test]
fn a_changed_value_and_one_that_is_gone_are_found_in_every_request() {
    for multiget in [1, 7] {
        let mut story = Story::new(&Window { multiget, ..window() }, 1, 5_000);
        let (mut changed, mut gone) = (0, 0);
        while let Some(asked) = story.ask() {
            let checked = asked.ticket.verb == Verb::Get && story.counts.verified > 0;
            let victim = asked.keys[0].clone();
            let kept = story.stores[0].get(&victim).cloned();
            let alone = asked.keys.iter().filter(|key| **key == victim).count() == 1;
            if checked && alone && changed < 40 {
                story.stores[0].get_mut(&victim).unwrap()[0] ^= 1;
                changed += 1;
            } else if checked && alone && gone < 40 {
                story.stores[0].remove(&victim);
                gone += 1;
            }
            story.serve(&asked, 0);
            if let Some(kept) = kept.filter(|_| asked.ticket.verb == Verb::Get) {
                story.stores[0].insert(victim, kept);
            }
        }
        assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (changed, gone), "{multiget}");
        assert_eq!((changed, gone), (40, 40));
    }
}

#[test]
fn a_set_that_nobody_knows_of_may_come_late_and_harms_no_check() {
    let often = Window { set: 0.5, get: 0.5, overwrite: 0.5, ..window() };
    let mut story = Story::new(&often, 1, 6_000);
    let mut late: Vec<Asked> = Vec::new();
    let mut sets = 0;
    while let Some(asked) = story.ask() {
        sets += u64::from(asked.ticket.verb == Verb::Set);
        if asked.ticket.verb == Verb::Set && sets.is_multiple_of(7) {
            story.answer(&asked, Outcome::Error(Fault::Timeout), 0);
            late.push(asked);
        } else {
            story.serve(&asked, 0);
        }
        if late.len() == 5 {
            for asked in late.drain(..) {
                story.stores[0].insert(asked.keys[0].clone(), asked.value);
            }
        }
    }
    assert!(sets > 2_500);
    assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, 0));
}

#[test]
fn objects_that_expire_are_judged_by_their_age() {
    let all = Window { expire: 0.5, verify: 0.0, set: 0.01, get: 0.99, ..window() };
    let mut story = Story::new(&all, 1, 2_000);
    let mut asked_to_expire = 0;
    while let Some(asked) = story.ask() {
        asked_to_expire += u64::from(asked.expiry_s == 60);
        assert!(asked.expiry_s == 60 || asked.expiry_s == 0);
        story.serve(&asked, 0);
        story.now += SECOND / 2;
    }
    assert!(asked_to_expire > 5);
    assert!(story.counts.expired_get > 100, "the server of this story lets nothing expire");
    assert_eq!(story.counts.unexpired_unget, 0);
}

#[test]
fn what_expired_as_it_was_asked_to_is_told_from_what_was_lost() {
    let all = Window { expire: 0.5, verify: 1.0, ..window() };
    // Half a minute, in which nothing may expire, and more than a minute, after which everything that is to expire has.
    for (waits_s, expired) in [(30, false), (70, true)] {
        let mut story = Story::new(&all, 1, 4_000);
        let (mut misses, mut lost) = (0, false);
        while let Some(asked) = story.ask() {
            if !lost && asked.ticket.index > 2_000 && asked.ticket.verb == Verb::Get {
                lost = true;
                story.now += waits_s * SECOND;
                story.stores[0].clear();
            }
            let is_get = asked.ticket.verb == Verb::Get;
            misses += u64::from(is_get && !story.stores[0].contains_key(&asked.keys[0]));
            story.serve(&asked, 0);
        }
        let counts = story.counts;
        assert!(counts.verify_misses > 100, "{counts:?}");
        let of_those_that_expire = if expired { counts.expired_misses } else { counts.unexpired_unget };
        assert!(of_those_that_expire > 100, "{counts:?}");
        assert_eq!(counts.verify_misses + of_those_that_expire, misses, "{counts:?}");
    }
}

#[test]
fn presets_set_every_object_once() {
    let mut story = Story::new(&Window { preset: true, set: 0.0, get: 1.0, ..window() }, 1, 1_024);
    let verbs = story.serve_all();
    assert_eq!(verbs, vec![Verb::Set; 1_024]);
    assert_eq!(story.stores[0].len(), 1_024);
}

#[test]
fn sockets_take_turns() {
    let pool = Pool { sockets: 3, ..window().pool };
    let mut story = Story::new(&Window { pool, ..window() }, 1, 7);
    let mut lanes = Vec::new();
    while let Some(asked) = story.ask() {
        lanes.push(asked.lane);
        story.serve(&asked, 0);
    }
    assert_eq!(lanes, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn replicas_are_written_to_a_few_servers_and_read_from_all() {
    let pool = Pool { replication: Some(Replication { writers: 2 }), ..window().pool };
    let mut story = Story::new(&Window { pool, overwrite: 0.3, multiget: 4, ..window() }, 3, 4_000);
    let mut taken: HashMap<Vec<u8>, u16> = HashMap::new();
    let mut gets = [0; 3];
    while let Some(asked) = story.ask() {
        if asked.ticket.verb == Verb::Set {
            assert!(asked.lane < 2, "only the first two are written to");
            let before = taken.insert(asked.keys[0].clone(), asked.lane);
            assert!(before.is_none_or(|before| before == asked.lane), "an object stays where it is");
            // Every server gets a copy at once.
            for server in 0..3 {
                story.stores[server].insert(asked.keys[0].clone(), asked.value.clone());
            }
            story.answer(&asked, Outcome::Stored, 0);
            continue;
        }
        gets[usize::from(asked.lane)] += 1;
        story.serve(&asked, usize::from(asked.lane));
    }
    let (least, most) = (gets.iter().min(), gets.iter().max());
    assert!(least > Some(&200) && most < Some(&400), "chance decides: {gets:?}");
    assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, 0));
}

#[test]
fn a_value_that_comes_twice_is_not_called_wrong() {
    let window = Window { multiget: 2, ..window() };
    let mut story = Story::new(&window, 1, 3_000);
    let mut repeated = 0;
    while let Some(asked) = story.ask() {
        if asked.ticket.answer_use == AnswerUse::Window
            && let Some(value) = story.stores[0].get(&asked.keys[0]).cloned()
        {
            repeated += u64::from(story.item(&asked.keys[0], &value));
        }
        story.serve(&asked, 0);
    }
    assert!(repeated > 100, "{repeated} values came twice");
    assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, 0));
}

#[test]
fn misses_between_values_that_name_no_key_make_no_value_wrong() {
    for multiget in [2, 5] {
        let mut story = Story::new(&Window { multiget, ..window() }, 1, 5_000);
        let mut gone = 0;
        while let Some(asked) = story.ask() {
            if asked.ticket.verb == Verb::Set {
                story.serve(&asked, 0);
                continue;
            }
            let victim = &asked.keys[story.now as usize / 1_000 % asked.keys.len()];
            let alone = asked.keys.iter().filter(|key| *key == victim).count() == 1;
            let lost = if alone && story.counts.verified > 0 { story.stores[0].remove(victim) } else { None };
            gone += u64::from(lost.is_some());
            story.serve_in_order(&asked, 0);
            lost.and_then(|value| story.stores[0].insert(victim.clone(), value));
        }
        assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (0, gone), "{multiget}");
        assert!(gone > 500, "{gone} were gone with {multiget}");
    }
}

#[test]
fn a_value_of_another_key_is_wrong_once_and_no_miss() {
    for multiget in [1, 3] {
        let mut story = Story::new(&Window { multiget, ..window() }, 1, 3_000);
        let mut wrong = 0;
        while let Some(asked) = story.ask() {
            let is_checked = asked.ticket.verb == Verb::Get && story.counts.verified > 0;
            if !is_checked || wrong == 40 {
                story.serve(&asked, 0);
                continue;
            }
            wrong += 1;
            let hits = asked.keys.len() as u32;
            for (place, key) in asked.keys.iter().enumerate() {
                let value = story.stores[0][key].clone();
                story.item(if place == 0 { b"another key, of nothing" } else { key }, &value);
            }
            story.answer(&asked, Outcome::Hit, hits);
        }
        assert_eq!(wrong, 40);
        assert_eq!((story.counts.verify_failed, story.counts.verify_misses), (40, 0), "{multiget}");
    }
}

#[test]
fn bytes_of_objects_are_those_of_sets_that_were_stored() {
    for outcome in [Outcome::NotStored, Outcome::Exists, Outcome::Error(Fault::Server)] {
        let mut story = Story::new(&Window { set: 1.0, get: 0.0, ..window() }, 1, 40);
        while let Some(asked) = story.ask() {
            story.answer(&asked, outcome, 0);
        }
        assert_eq!(story.counts.object_bytes, 0, "{outcome:?}");
    }
    let mut story = Story::new(&Window { set: 1.0, get: 0.0, ..window() }, 1, 40);
    story.serve_all();
    let bytes = story.stores[0].iter().map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>();
    assert_eq!(story.counts.object_bytes, bytes);
}
