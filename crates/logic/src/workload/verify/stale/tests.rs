//! Stories of clients, servers and lost answers, in which no server without fault is ever accused.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use proptest::{collection, sample};

use super::*;
use crate::rng::{below, mix};
use crate::workload::value::Version;

const KEY: RecordPlace = RecordPlace { server: 0, index: 7 };

/// A worker with two clients.
struct Story {
    witness: Witness,
    anna: Writer,
    bert: Writer,
}

impl Story {
    fn new() -> Story {
        let run = RunMark::new(1);
        Story { witness: Witness::new(run), anna: Writer::new(run, 0), bert: Writer::new(run, 1) }
    }

    /// Anna writes, and it is stored before anything else happens.
    fn anna_stores(&mut self, place: RecordPlace) -> Version {
        let version = self.anna.send();
        self.witness.handle_stored(&mut self.anna, place, version);
        version
    }

    fn bert_stores(&mut self, place: RecordPlace) -> Version {
        let version = self.bert.send();
        self.witness.handle_stored(&mut self.bert, place, version);
        version
    }

    /// Whether a read that is sent now may not return this version.
    fn stale_now(&self, place: RecordPlace, version: Version) -> bool {
        self.witness.is_stale(place, version, self.witness.mark())
    }
}

#[test]
fn an_overwritten_value_is_stale() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let second = story.anna_stores(KEY);
    assert!(story.stale_now(KEY, first));
    assert!(!story.stale_now(KEY, second));
    let third = story.anna.send();
    assert!(!story.stale_now(KEY, third), "sent, and perhaps stored already");
    assert!(story.stale_now(KEY, first));
    assert!(!story.stale_now(KEY, second));
    story.witness.handle_stored(&mut story.anna, KEY, third);
    assert!(story.stale_now(KEY, second));
}

#[test]
fn a_read_that_was_sent_before_the_answer_to_the_write_may_return_the_older_value() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let before = story.witness.mark();
    let second = story.anna.send();
    let between = story.witness.mark();
    story.witness.handle_stored(&mut story.anna, KEY, second);
    let after = story.witness.mark();
    assert!(!story.witness.is_stale(KEY, first, before));
    assert!(!story.witness.is_stale(KEY, first, between));
    assert!(story.witness.is_stale(KEY, first, after));
}

#[test]
fn writes_that_were_outstanding_together_have_no_order() {
    let mut story = Story::new();
    let (first, second) = (story.anna.send(), story.anna.send());
    story.witness.handle_stored(&mut story.anna, KEY, second);
    assert!(!story.stale_now(KEY, first));
    story.witness.handle_stored(&mut story.anna, KEY, first);
    assert!(!story.stale_now(KEY, first), "the first may have been stored last");
    assert!(!story.stale_now(KEY, second));
    let third = story.anna_stores(KEY);
    assert!(story.stale_now(KEY, first));
    assert!(story.stale_now(KEY, second));
    assert!(!story.stale_now(KEY, third));
}

#[test]
fn answers_in_another_order_do_not_lose_the_newest_write() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let elsewhere = story.anna.send();
    let (second, third) = (story.anna.send(), story.anna.send());
    story.witness.handle_stored(&mut story.anna, KEY, third);
    story.witness.handle_stored(&mut story.anna, KEY, second);
    story.anna.handle_not_stored(elsewhere);
    assert!(story.stale_now(KEY, first));
    let slot = story.witness.slots[story.witness.slot_of(KEY)];
    assert_eq!(slot.version, third);
}

#[test]
fn a_write_that_timed_out_may_be_stored_later() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let late = story.anna.send();
    story.anna.handle_lost(late);
    let second = story.anna_stores(KEY);
    let third = story.anna_stores(KEY);
    assert!(!story.stale_now(KEY, late));
    assert!(story.stale_now(KEY, first), "what was answered before is known still");
    assert!(story.stale_now(KEY, second), "and what was answered afterwards");
    assert!(!story.stale_now(KEY, third));
    story.witness.handle_stored(&mut story.anna, KEY, late);
    assert!(!story.stale_now(KEY, third), "an answer after the timeout comes too late");
}

#[test]
fn writes_between_two_lost_ones_are_not_judged() {
    let mut story = Story::new();
    let before = story.anna_stores(KEY);
    let late = story.anna.send();
    story.anna.handle_lost(late);
    let between = story.anna_stores(KEY);
    let later = story.anna.send();
    story.anna.handle_lost(later);
    let after = story.anna_stores(KEY);
    story.anna_stores(KEY);
    let verdicts = [before, late, between, later, after].map(|version| story.stale_now(KEY, version));
    assert_eq!(verdicts, [true, false, false, false, true]);
}

#[test]
fn a_write_whose_condition_did_not_hold_changes_nothing() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let refused = story.anna.send();
    story.anna.handle_not_stored(refused);
    assert!(!story.stale_now(KEY, first));
    story.anna_stores(KEY);
    assert!(story.stale_now(KEY, first));
}

#[test]
fn other_writers_keys_and_servers_prove_nothing() {
    let mut story = Story::new();
    let annas = story.anna_stores(KEY);
    let berts = story.bert_stores(KEY);
    assert!(!story.stale_now(KEY, annas), "only a client's own writes have an order in its eyes");
    story.anna_stores(RecordPlace { index: 8, ..KEY });
    story.anna_stores(RecordPlace { server: 1, ..KEY });
    assert!(!story.stale_now(KEY, annas));
    story.bert_stores(KEY);
    assert!(story.stale_now(KEY, berts));
    assert!(!story.stale_now(RecordPlace { server: 1, ..KEY }, berts));
}

#[test]
fn loaded_values_are_never_stale() {
    let mut story = Story::new();
    story.anna_stores(KEY);
    story.anna_stores(KEY);
    assert!(!story.stale_now(KEY, Version::LOADED));
    assert!(!story.stale_now(KEY, Version(u64::from(story.anna.number) << 40)));
}

#[test]
fn a_lost_connection_clears() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let second = story.anna_stores(KEY);
    story.witness.clear();
    assert!(!story.stale_now(KEY, first));
    story.anna_stores(KEY);
    assert!(story.stale_now(KEY, second), "and a new write is evidence again");
}

#[test]
fn a_collision_forgets() {
    let mut story = Story::new();
    story.witness = Witness::with_slots(RunMark::new(1), 1);
    let first = story.anna_stores(KEY);
    story.anna_stores(KEY);
    assert!(story.stale_now(KEY, first));
    story.bert_stores(RecordPlace { index: 8, ..KEY });
    assert!(!story.stale_now(KEY, first));
}

#[test]
fn another_run_with_the_same_clients_writes_other_versions() {
    let mut story = Story::new();
    for _ in 0..10_000 {
        story.anna_stores(KEY);
    }
    for random in 2..100 {
        let mut twin = Writer::new(RunMark::new(random), 0);
        for _ in 0..100 {
            assert!(!story.stale_now(KEY, twin.send()));
        }
        // Even if the writers' numbers are the same, the counts are not.
        twin.number = story.anna.number;
        for _ in 0..100 {
            assert!(!story.stale_now(KEY, twin.send()));
        }
    }
}

#[test]
fn runs_spread_over_numbers_and_counts() {
    let marks: Vec<RunMark> = (0..10_000).map(RunMark::new).collect();
    for quarter in 0..4 {
        let share = |low: u64, value: u64, bits: u32| value >> (bits - 2) == low;
        let writers = marks.iter().filter(|mark| share(quarter, mark.first_writer.into(), 24)).count();
        let counts = marks.iter().filter(|mark| share(quarter, mark.first_count - 1, 39)).count();
        assert!((2_300..2_700).contains(&writers), "{writers}");
        assert!((2_300..2_700).contains(&counts), "{counts}");
    }
}

#[test]
fn clients_of_a_run_have_different_numbers_until_there_are_none_left() {
    let run = RunMark { first_writer: Version::WRITER_MAX - 1, first_count: 10 };
    let versions: Vec<Version> =
        [0, 1, 2, (1 << 24) - 1].map(|client| Writer::new(run, client).send()).into();
    let writers: Vec<u32> = versions.iter().map(|version| version.writer()).collect();
    assert_eq!(writers, [Version::WRITER_MAX - 1, Version::WRITER_MAX, 0, Version::WRITER_MAX - 2]);
    assert!(versions.iter().all(|version| version.count() == 10));
    assert_eq!(Writer::new(run, 1 << 24).send(), Version::LOADED);
}

#[test]
fn used_up_counts_end_the_verdicts_and_not_the_run() {
    let mut story = Story::new();
    story.anna.next = Version::COUNT_MAX - 1;
    let first = story.anna_stores(KEY);
    let last = story.anna_stores(KEY);
    assert_eq!(last.count(), Version::COUNT_MAX);
    assert!(story.stale_now(KEY, first));
    for _ in 0..3 {
        let version = story.anna_stores(KEY);
        assert_eq!(version, Version::LOADED);
        story.anna.handle_lost(version);
        story.anna.handle_not_stored(version);
    }
    assert!(!story.stale_now(KEY, last));
}

#[test]
fn answered_writes_are_not_kept() {
    let mut story = Story::new();
    for _ in 0..1_000 {
        let (first, second, third) = (story.anna.send(), story.anna.send(), story.anna.send());
        story.witness.handle_stored(&mut story.anna, KEY, second);
        story.anna.handle_lost(third);
        story.anna.handle_not_stored(first);
    }
    assert!(story.anna.unanswered.is_empty());
    assert!(story.anna.unanswered.capacity() < 10);
}

#[test]
fn versions_that_nobody_waits_for_are_ignored() {
    let mut story = Story::new();
    let first = story.anna_stores(KEY);
    let second = story.anna_stores(KEY);
    for stranger in
        [first, second, story.bert.send(), Version(second.0 + 1), Version::LOADED, Version(u64::MAX)]
    {
        story.witness.handle_stored(&mut story.anna, RecordPlace { index: 9, ..KEY }, stranger);
        story.anna.handle_lost(stranger);
    }
    assert_eq!(story.witness.mark(), Mark(2));
    assert!(story.stale_now(KEY, first));
}

const CLIENTS: usize = 2;
const LANES: usize = 2;
const PLACES: usize = 2;

/// A request on its way to the server, at it, or on its way back.
#[derive(Clone, Copy)]
struct Request {
    place: usize,
    what: What,
    state: State,
}

#[derive(Clone, Copy)]
enum What {
    Write { version: Version, only_if_absent: bool },
    Read { mark: Mark, sent_at: usize },
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Sent,
    Stored,
    NotStored,
    Found(Version),
    Missed,
    Failed,
}

/// A server that may be asked to return what it should have forgotten, clients with sockets that keep order and can
/// break, and the truth about when every value was gone.
struct World {
    witness: Witness,
    writers: Vec<Writer>,
    /// Writers of other workers and of another process. No client of the test waits for their writes.
    strangers: Vec<Writer>,
    lanes: Vec<VecDeque<Request>>,
    /// Requests that the client gave up, in their order on the socket; they may still be applied.
    ghosts: Vec<VecDeque<Request>>,
    stored: [Option<Version>; PLACES],
    /// Every value that was ever there, oldest first.
    history: [Vec<Version>; PLACES],
    /// When each was overwritten or removed.
    gone_at: HashMap<(usize, Version), usize>,
    now: usize,
    verdicts: usize,
}

impl World {
    fn new() -> World {
        let run = RunMark::new(5);
        World {
            witness: Witness::with_slots(run, 4),
            writers: (0..CLIENTS as u64).map(|client| Writer::new(run, client)).collect(),
            strangers: vec![
                Writer::new(run, CLIENTS as u64),
                Writer::new(RunMark::new(6), 0),
                // The worst of twins: the same writer's number, and counts right below ours.
                Writer::new(RunMark { first_count: run.first_count - 500, ..run }, 0),
            ],
            lanes: vec![VecDeque::new(); CLIENTS * LANES],
            ghosts: vec![VecDeque::new(); CLIENTS * LANES],
            stored: [None; PLACES],
            history: Default::default(),
            gone_at: HashMap::new(),
            now: 0,
            verdicts: 0,
        }
    }

    fn place(place: usize) -> RecordPlace {
        RecordPlace { server: 0, index: place as u64 }
    }

    fn replace(&mut self, place: usize, value: Option<Version>) {
        if let Some(old) = std::mem::replace(&mut self.stored[place], value) {
            self.gone_at.insert((place, old), self.now);
        }
        self.history[place].extend(value);
    }

    /// The server works on a request.
    fn apply(&mut self, request: &mut Request, broken: Option<u64>) {
        let place = request.place;
        request.state = match request.what {
            What::Write { only_if_absent: true, .. } if self.stored[place].is_some() => State::NotStored,
            What::Write { version, .. } => {
                self.replace(place, Some(version));
                State::Stored
            }
            What::Read { .. } => {
                let history = &self.history[place];
                match broken {
                    Some(bits) if !history.is_empty() => {
                        State::Found(history[below(mix(&[bits]), history.len() as u64) as usize])
                    }
                    _ => self.stored[place].map_or(State::Missed, State::Found),
                }
            }
        };
    }

    /// The client reads an answer.
    fn deliver(&mut self, client: usize, request: Request) {
        let writer = &mut self.writers[client];
        match (request.what, request.state) {
            (What::Write { version, .. }, State::Stored) => {
                self.witness.handle_stored(writer, World::place(request.place), version);
            }
            (What::Write { version, .. }, State::NotStored) => writer.handle_not_stored(version),
            (What::Write { version, .. }, State::Failed) => writer.handle_lost(version),
            (What::Read { mark, sent_at }, State::Found(version))
                if self.witness.is_stale(World::place(request.place), version, mark) =>
            {
                self.verdicts += 1;
                let gone_at = self.gone_at.get(&(request.place, version));
                assert!(gone_at.is_some_and(|&at| at < sent_at), "{version:?} was there when it was read");
            }
            _ => {}
        }
    }

    fn turn(&mut self, action: Action, bits: u64, faulty: bool) {
        self.now += 1;
        let lane = below(bits, self.lanes.len() as u64) as usize;
        let client = lane / LANES;
        let place = (bits % PLACES as u64) as usize;
        match action {
            Action::Write | Action::Add => {
                let version = self.writers[client].send();
                let what = What::Write { version, only_if_absent: matches!(action, Action::Add) };
                self.lanes[lane].push_back(Request { place, what, state: State::Sent });
            }
            Action::Read => {
                let what = What::Read { mark: self.witness.mark(), sent_at: self.now };
                self.lanes[lane].push_back(Request { place, what, state: State::Sent });
            }
            Action::Apply | Action::ApplyWithError => self.apply_next(lane, action, faulty.then_some(bits)),
            Action::Deliver => {
                if self.lanes[lane].front().is_some_and(|request| request.state != State::Sent) {
                    let request = self.lanes[lane].pop_front().unwrap();
                    self.deliver(client, request);
                }
            }
            Action::GiveUpConnection | Action::LoseConnection => {
                let given_up = std::mem::take(&mut self.lanes[lane]);
                for request in &given_up {
                    if let What::Write { version, .. } = request.what {
                        self.writers[client].handle_lost(version);
                    }
                }
                self.ghosts[lane].extend(given_up.into_iter().filter(|request| request.state == State::Sent));
                if matches!(action, Action::LoseConnection) {
                    self.witness.clear();
                }
            }
            Action::TimeOutButWait => {
                if let Some(Request { what: What::Write { version, .. }, .. }) = self.lanes[lane].front() {
                    self.writers[client].handle_lost(*version);
                }
            }
            Action::ApplyGhost => {
                if let Some(mut ghost) = self.ghosts[lane].pop_front() {
                    self.apply(&mut ghost, None);
                }
            }
            Action::Remove => self.replace(place, None),
            Action::StrangerWrites => {
                let stranger = below(bits, self.strangers.len() as u64) as usize;
                let version = self.strangers[stranger].send();
                self.replace(place, Some(version));
            }
        }
    }

    /// The server works on the oldest request of a socket that it has not seen.
    fn apply_next(&mut self, lane: usize, action: Action, broken: Option<u64>) {
        let Some(at) = self.lanes[lane].iter().position(|request| request.state == State::Sent) else {
            return;
        };
        let mut request = self.lanes[lane][at];
        if matches!(action, Action::ApplyWithError) {
            // An error says nothing about what happened, or what will.
            self.ghosts[lane].push_back(request);
            request.state = State::Failed;
        } else {
            self.apply(&mut request, broken);
        }
        self.lanes[lane][at] = request;
    }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Write,
    Add,
    Read,
    Apply,
    ApplyWithError,
    Deliver,
    GiveUpConnection,
    LoseConnection,
    TimeOutButWait,
    ApplyGhost,
    Remove,
    StrangerWrites,
}

/// Actions and their frequencies: common things prevail, so that most stories get somewhere.
const ACTIONS: [(Action, u32); 11] = [
    (Action::Write, 4),
    (Action::Add, 1),
    (Action::Read, 4),
    (Action::Apply, 10),
    (Action::Deliver, 10),
    (Action::ApplyWithError, 1),
    (Action::GiveUpConnection, 1),
    (Action::TimeOutButWait, 1),
    (Action::ApplyGhost, 2),
    (Action::Remove, 1),
    (Action::StrangerWrites, 1),
];

/// The actions, each as often as its weight says.
fn weighted_actions() -> Vec<Action> {
    ACTIONS.iter().flat_map(|&(action, weight)| (0..weight).map(move |_| action)).collect()
}

fn stories() -> impl Strategy<Value = Vec<(Action, u64)>> {
    collection::vec((sample::select(weighted_actions()), any::<u64>()), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_without_fault_is_never_accused(story in stories(), loss in any::<u64>()) {
        let mut world = World::new();
        for (turn, (action, bits)) in story.into_iter().enumerate() {
            world.turn(action, bits, false);
            if (bits ^ loss) % 97 == turn as u64 % 97 {
                world.turn(Action::LoseConnection, bits.rotate_left(32), false);
            }
        }
        assert_eq!(world.verdicts, 0);
    }

    #[test]
    fn a_server_that_returns_old_values_is_accused_only_of_what_it_did(story in stories()) {
        let mut world = World::new();
        for (action, bits) in story {
            world.turn(action, bits, true);
        }
    }
}

#[test]
fn a_server_that_returns_old_values_is_found_out() {
    let actions = [(Action::Write, 3), (Action::Read, 3), (Action::Apply, 10), (Action::Deliver, 10)];
    let actions: Vec<Action> =
        actions.iter().flat_map(|&(action, weight)| (0..weight).map(move |_| action)).collect();
    let mut world = World::new();
    for turn in 0..20_000 {
        let action = actions[below(mix(&[turn, 1]), actions.len() as u64) as usize];
        world.turn(action, mix(&[turn]), true);
    }
    assert!(world.verdicts > 100, "{} verdicts", world.verdicts);
}
