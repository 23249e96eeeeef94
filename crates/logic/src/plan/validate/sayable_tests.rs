//! Plans with requests that a codec would refuse are refused, and every request of any other plan is one that is written.

use super::*;
use crate::client::{Action, Client, PhaseAssignment};
use crate::connection::inflight::{Origin, Ticket};
use crate::connection::outbox::Outbox;
use crate::connection::session::{Answer, Item, Stamp};
use crate::dist::Dist;
use crate::plan::{
    Arrivals, CodecOptions, Command, Data, Event, EventKind, Fill, FlashCrowd, Group, HotKey, KeyChurn,
    KeyStyle, Load, Mix, Part, Phase, Popularity, Protocol, RankRange, Stop, Style, TracePace, TraceReplay,
    ValueStyle, WithCodec, Work, share,
};
use crate::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use crate::protocol::{Codec, MetaAsk, Op, Outcome, Verb};
use crate::rng::{Stream, StreamOwner, below};
use crate::time::NEVER;
use crate::workload::key::{DIGITS, KEY_MAX_BYTES, KeyMaker};
use crate::workload::request::{PhaseChanges, RequestInputs, RequestMaker};
use crate::workload::value::ValueMaker;
use crate::workload::verify::stale::RunMark;

fn phase(name: &str, work: Work, stop: Stop) -> Phase {
    Phase { name: name.to_owned(), work, stop, recorded: name == "measure" }
}

/// A plan that asks this mix for ten seconds.
fn measuring(mix: Mix) -> Plan {
    let stop = Stop { time_ns: Some(10 * SECOND), requests: None };
    Plan {
        servers: vec!["127.0.0.1:11211".to_owned()],
        groups: vec![Group::default()],
        phases: vec![phase("measure", Work::Mix(mix), stop)],
        ..Plan::default()
    }
}

fn get() -> Mix {
    Mix::of(&[(Verb::Get, 1.0)])
}

fn mix_of(plan: &mut Plan) -> &mut Mix {
    let Work::Mix(mix) = &mut plan.phases[0].work else { panic!("the phase asks a mix") };
    mix
}

/// Makes requests due by a rate, as all changes of a load need it.
fn open(plan: &mut Plan) {
    (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Poisson, Some(1_000.0));
}

/// Makes this key the only one that is asked for, for a second.
fn hot(at_ns: Nanos, key: HotKey) -> Event {
    let crowd = FlashCrowd { key, share: 1.0, rise_ns: 0, hold_ns: SECOND, fall_ns: 0 };
    Event { at_ns, what: EventKind::Hot(crowd) }
}

/// Plans of gets that also ask for keys that no load stores, with a word for each.
fn beyond_the_load() -> Vec<(&'static str, Plan)> {
    let changing = Some(KeyChurn::Requests(Dist::Fixed(1_000.0)));
    let inserting = Mix { inserts: true, ..Mix::of(&[(Verb::Get, 1.0), (Verb::Add, 1.0)]) };
    let mut hot_key = measuring(get());
    open(&mut hot_key);
    hot_key.changes.events = vec![hot(0, HotKey::New)];
    let mut part = measuring(get());
    open(&mut part);
    let churn = Some(KeyChurn::usual());
    part.changes.parts = vec![Part { churn, ..Part::plain("one".to_owned(), 0) }];
    vec![
        ("fresh", measuring(Mix { fresh: 0.5, ..get() })),
        ("absent", measuring(Mix { absent: 0.5, ..get() })),
        ("inserted", measuring(inserting)),
        ("changing", measuring(Mix { churn: changing, ..get() })),
        ("changing in a part", part),
        ("hot", hot_key),
    ]
}

#[track_caller]
fn assert_accepted(what: &str, plan: &Plan) {
    if let Err(invalid) = plan.clone().validate() {
        panic!("{what}: {invalid}");
    }
}

/// Asserts that the plan is refused with this path, this value, and this among what is accepted.
#[track_caller]
fn assert_refused(what: &str, plan: &Plan, path: &str, value: &str, accepted: &str) {
    let Err(invalid) = plan.clone().validate() else { panic!("{what}: the plan is accepted") };
    let found = invalid.path.to_string();
    assert_eq!((found.as_str(), invalid.value.as_str()), (path, value), "{what}: {invalid}");
    assert!(invalid.expected.contains(accepted), "{what}: {invalid}");
}

#[test]
fn a_prefix_leaves_room_for_the_digits_of_keys_that_no_load_stores() {
    let prefixed = |mut plan: Plan, digits: usize| {
        plan.data.key_prefix = "x".repeat(KEY_MAX_BYTES - digits);
        plan.data.key_size = Dist::Fixed(KEY_MAX_BYTES as f64);
        plan
    };
    for (what, plan) in beyond_the_load() {
        assert_accepted(what, &prefixed(plan.clone(), DIGITS));
        let longer = prefixed(plan, DIGITS - 1);
        let prefix = &longer.data.key_prefix;
        assert_refused(what, &longer, "data.key_prefix", prefix, "at most 234 bytes");
    }
    // The keys of 10,000 records have five digits.
    let newest = Mix { popularity: Popularity::Latest { exponent: 0.99 }, ..get() };
    for (what, mix) in [("records", get()), ("newest records", newest)] {
        assert_accepted(what, &prefixed(measuring(mix), 5));
    }
}

#[test]
fn keys_that_no_load_stores_fit_with_others_into_a_datagram_and_a_line() {
    const PATH: &str = "phases[0].work.mix.multiget";
    for (what, mut plan) in beyond_the_load() {
        plan.data.key_size = Dist::Fixed(5.0);
        let of_keys = |plan: &Plan, verb: Verb, keys: u32| {
            let mut plan = plan.clone();
            let mix = mix_of(&mut plan);
            (mix.multiget, mix.ops[0].0) = (keys, verb);
            plan
        };
        // A datagram has 1,400 bytes, and a line that is no get has 2,048. A key takes 17 of them with its blank.
        assert_accepted(what, &of_keys(&plan, Verb::Gat, 119));
        assert_refused(what, &of_keys(&plan, Verb::Gat, 120), PATH, "120", "at most 119");
        plan.transport = Transport::Udp;
        assert_accepted(what, &of_keys(&plan, Verb::Get, 81));
        assert_refused(what, &of_keys(&plan, Verb::Get, 82), PATH, "82", "at most 81");
    }
}

#[test]
fn the_prefix_of_mutilates_keys_is_part_of_a_datagram_too() {
    let mut plan = Plan { transport: Transport::Udp, ..measuring(get()) };
    (plan.data.key_prefix, plan.data.style.keys) = ("x".repeat(10), KeyStyle::Fnv);
    mix_of(&mut plan).multiget = 33;
    assert_accepted("keys of 40 bytes", &plan);
    mix_of(&mut plan).multiget = 34;
    assert_refused("keys of 40 bytes", &plan, "phases[0].work.mix.multiget", "34", "at most 33");
}

#[test]
fn every_value_that_a_mix_may_store_fits_into_a_datagram_with_its_key() {
    let of = |mix: &Mix, key_bytes: f64, value_bytes: f64| {
        let mut plan = Plan { transport: Transport::Udp, ..measuring(mix.clone()) };
        (plan.data.key_size, plan.data.value_size) = (Dist::Fixed(key_bytes), Dist::Fixed(value_bytes));
        plan
    };
    let inserting = Mix { inserts: true, ..Mix::of(&[(Verb::Get, 1.0), (Verb::Add, 1.0)]) };
    let modifying = Mix { read_modify_write: 0.5, ..get() };
    let filling = Mix { read_through_ns: Some(0), ..get() };
    let refilling = Mix { fresh: 0.5, ..filling.clone() };
    for (what, mix, key_bytes, most) in [
        ("inserted", inserting, 5.0, 1_359_u32),
        ("modified", modifying, 30.0, 1_345),
        ("missed", filling, 5.0, 1_370),
        ("missed and fresh", refilling, 5.0, 1_359),
    ] {
        assert_accepted(what, &of(&mix, key_bytes, f64::from(most)));
        let expected = format!("up to {most} bytes");
        for value in [most + 1, 5_000] {
            let plan = of(&mix, key_bytes, f64::from(value));
            assert_refused(what, &plan, "data.value_size", &value.to_string(), &expected);
        }
    }
    assert_accepted("what is only read", &of(&get(), 30.0, 5_000.0));
}

#[test]
fn what_a_load_stores_has_the_keys_of_records_alone() {
    let mut plan = Plan { transport: Transport::Udp, ..measuring(Mix { fresh: 0.5, ..get() }) };
    let load = Work::Load(Load { depth: 8, ..Load::default() });
    plan.phases.insert(0, phase("load", load, Stop::default()));
    plan.data.key_size = Dist::Fixed(5.0);
    plan.data.value_size = Dist::Fixed(1_370.0);
    assert_accepted("a key of 5 bytes", &plan);
    plan.data.value_size = Dist::Fixed(1_371.0);
    assert_refused("a key of 5 bytes", &plan, "data.value_size", "1371", "up to 1370 bytes");
}

#[test]
fn an_expiry_that_is_rounded_and_then_made_longer_has_all_its_digits() {
    let mut plan = Plan { transport: Transport::Udp, ..measuring(Mix::of(&[(Verb::Set, 1.0)])) };
    // 8.5 seconds are 9, and 9.9 with a tenth more: 10.
    plan.data.expiry_s = Dist::Uniform { low: 1.0, high: 8.5 };
    plan.data.style.expiry_jitter_percent = 10;
    plan.data.value_size = Dist::Fixed(1_344.0);
    assert_accepted("two digits", &plan);
    plan.data.value_size = Dist::Fixed(1_345.0);
    assert_refused("two digits", &plan, "data.value_size", "1345", "up to 1344 bytes");
}

#[test]
fn what_fields_of_hashes_do_not_have_is_refused() {
    let in_fields = |plan: Plan| {
        let style = Style { field_bytes: Some(4), ..Style::default() };
        Plan { protocol: Protocol::Resp2, data: Data { style, ..Data::default() }, ..plan }
    };
    let filling = |fill| in_fields(measuring(Mix { read_through_ns: Some(0), fill, ..get() }));
    assert_accepted("set", &filling(Fill::Set));
    assert_refused("add", &filling(Fill::Add), "phases[0].work.mix.fill", "add", "expected set where");
    let asking = in_fields(measuring(Mix::of(&[(Verb::Get, 1.0), (Verb::Version, 1.0)])));
    assert_refused("version", &asking, "phases[0].work.mix.ops", "version", "expected get, hget");
    let trace = TraceReplay::of(vec!["trace".to_owned()], TracePace::Fast, 1_000);
    let mut replaying = measuring(get());
    replaying.phases = vec![phase("measure", Work::Trace(Box::new(trace)), Stop::default())];
    assert_accepted("a trace of plain keys", &Plan { protocol: Protocol::Resp2, ..replaying.clone() });
    let path = "phases[0].work.trace";
    assert_refused("a trace", &in_fields(replaying), path, "trace", "expected no trace where");
}

/// Numbers from a seed, one after the other.
struct Draws {
    stream: Stream,
    drawn: u64,
}

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        below(self.stream.draw(self.drawn), bound)
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A mix in which any option may stand that has an effect on requests.
fn drawn_mix(protocol: Protocol, draws: &mut Draws) -> Mix {
    let mut ops: Vec<(Verb, f64)> = Vec::new();
    for _ in 0..=draws.below(3) {
        let verb = draws.one_of(protocol.row().verbs);
        if ops.iter().all(|(other, _)| *other != verb) {
            ops.push((verb, 1.0));
        }
    }
    let mut mix = Mix::of(&ops);
    let has = |wanted: Verb| ops.iter().any(|(verb, _)| *verb == wanted);
    if ops.iter().any(|(verb, _)| verb.reads() && *verb != Verb::Hget) {
        if draws.once_in(3) {
            mix.multiget = 1 + draws.below(130) as u32;
        }
        if draws.once_in(3) {
            (mix.fresh, mix.absent) = draws.one_of(&[(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)]);
        }
        if draws.once_in(2) {
            mix.read_through_ns = Some(0);
            mix.fill = draws.one_of(&[Fill::Set, Fill::Add]);
        }
        mix.scans = mix.multiget > 1 && draws.once_in(4);
    }
    if has(Verb::Get) && draws.once_in(3) {
        mix.read_modify_write = 1.0;
    }
    if has(Verb::Mset) && draws.once_in(2) {
        mix.multiset = 5;
    }
    mix.inserts = has(Verb::Add) && draws.once_in(2);
    if draws.once_in(4) {
        mix.churn = Some(KeyChurn::Requests(Dist::Fixed(2.0)));
    }
    if draws.once_in(6) {
        mix.popularity = Popularity::Latest { exponent: 0.99 };
    }
    mix.noreply = !protocol.is_resp() && draws.once_in(5);
    if protocol == Protocol::Meta && draws.once_in(2) {
        mix.meta = draws.one_of(&[
            MetaAsk { vivify_s: Some(5), ..MetaAsk::default() },
            MetaAsk { recache_s: Some(5), ..MetaAsk::default() },
            MetaAsk { stale_s: Some(0), ..MetaAsk::default() },
            MetaAsk { details: true, ..MetaAsk::default() },
        ]);
    }
    mix
}

/// Records with keys and values of many lengths; over UDP, about as many bytes as a datagram takes.
fn drawn_data(protocol: Protocol, is_udp: bool, draws: &mut Draws) -> Data {
    let prefix_bytes: u64 = draws.one_of(&[0, 0, 1, 20, 234, 235, 244]);
    let beyond: u64 = draws.one_of(&[2, 3, 6, 16, 30]);
    let key_bytes = (prefix_bytes + beyond).min(KEY_MAX_BYTES as u64);
    let value_bytes = match is_udp {
        true => DATAGRAM_MAX_BYTES as u64 - (key_bytes + 20) - draws.below(60),
        false => draws.one_of(&[0, 10, 200, 5_000]),
    };
    let expiry_s: f64 = draws.one_of(&[0.0, 0.0, 9.0, 2_592_000.0]);
    let jitters: &[u32] = if expiry_s > 0.0 { &[0, 50] } else { &[0] };
    let style = Style {
        keys: draws.one_of(&[KeyStyle::Drawn, KeyStyle::Drawn, KeyStyle::Fnv]),
        values: draws.one_of(&[ValueStyle::Stable, ValueStyle::Stable, ValueStyle::Fresh]),
        field_bytes: (protocol.is_resp() && expiry_s == 0.0 && draws.once_in(4)).then_some(2),
        expiry_jitter_percent: draws.one_of(jitters),
    };
    Data {
        records: 20,
        key_prefix: "x".repeat(prefix_bytes as usize),
        key_size: Dist::Fixed(key_bytes as f64),
        value_size: Dist::Fixed(value_bytes as f64),
        value_compress: draws.one_of(&[1.0, 1.0, 2.0, 10.0]),
        expiry_s: Dist::Fixed(expiry_s),
        style,
        ..Data::default()
    }
}

/// Makes keys hot and lost in the measured phase, and gives it a part with one operation alone.
fn change(plan: &mut Plan, op: (Verb, f64), draws: &mut Draws) {
    open(plan);
    let ranks = RankRange { first: 0, last: 4 };
    let lost = match draws.below(3) {
        0 => Some(EventKind::Delete(ranks)),
        1 => Some(EventKind::Expire(ranks)),
        _ => None,
    };
    let key = draws.one_of(&[HotKey::New, HotKey::Rank(3)]);
    let lost = lost.map(|what| Event { at_ns: MILLISECOND, what });
    plan.changes.events = [hot(5 * MILLISECOND, key)].into_iter().chain(lost).collect();
    if draws.once_in(2) {
        let second = Part { ops: Some(vec![op]), ..Part::plain("two".to_owned(), 10 * MILLISECOND) };
        plan.changes.parts = vec![Part::plain("one".to_owned(), 0), second];
    }
}

/// Plan `number` of all that are drawn. Some of them are refused.
fn drawn_plan(number: u64) -> Plan {
    let mut draws = Draws { stream: Stream::from_seed(number), drawn: 0 };
    let protocol = draws.one_of(&Protocol::ALL);
    let is_udp = protocol == Protocol::Text && draws.once_in(2);
    let mix = drawn_mix(protocol, &mut draws);
    let asks = |verbs: &[Verb]| mix.ops.iter().any(|(verb, _)| verbs.contains(verb));
    let load = Load {
        depth: 8,
        pieces: asks(&[Verb::Append, Verb::Prepend]),
        counters: asks(&[Verb::Incr, Verb::Decr]),
        hashes: asks(&[Verb::Hget, Verb::Hset]),
        commands: asks(&[Verb::Command]),
        ..Load::default()
    };
    let zadd = || Command::unnamed("ZADD __key__ __number:9__ __value__:__key2__");
    let commands = asks(&[Verb::Command]).then(zadd).into_iter().collect();
    let op = mix.ops[0];
    let data = drawn_data(protocol, is_udp, &mut draws);
    let mut plan = Plan { protocol, commands, data, seed: number, ..measuring(mix) };
    if is_udp {
        plan.transport = Transport::Udp;
    }
    if draws.once_in(2) {
        plan.phases.insert(0, phase("load", Work::Load(load), Stop::default()));
    }
    if draws.once_in(3) {
        change(&mut plan, op, &mut draws);
    }
    plan
}

/// Requests of the schedule of a phase that is no load.
const REQUESTS: u64 = 30;

/// The requests of a plan.
struct Written {
    requests: u64,
    /// Bytes of the longest of them, with the frame that it has over UDP.
    longest_bytes: usize,
}

/// Asks the requests of a plan, phase by phase, and answers them so that as many others as possible follow from them.
struct Asking<'a>(&'a Plan);

impl WithCodec for Asking<'_> {
    type Output = Written;

    fn with_codec<C: Codec + Sync>(self, mut codec: C) -> Written {
        let plan = self.0;
        let keys = KeyMaker::new(&plan.data).expect("keys were checked");
        let values = ValueMaker::new(&plan.data).expect("values were checked");
        let mut maker = RequestMaker::new(RequestInputs {
            bare_counters: plan.protocol.is_resp(),
            commands: plan.templates().expect("they were read").unwrap_or_default(),
            ..RequestInputs::new(keys, values, &plan.data, 1, RunMark::new(7))
        });
        let mut client = Client::new(0, 0, 0, None);
        client.handle_opened(0, 0);
        let mut written = Written { requests: 0, longest_bytes: 0 };
        for (number, phase) in plan.phases.iter().enumerate() {
            begin(plan, number, &mut client, &mut maker);
            let renews = matches!(&phase.work, Work::Mix(mix) if mix.meta.renews());
            let mut now = 1;
            loop {
                let asked = match client.poll(now, &mut maker) {
                    Action::Ask { op, ticket, .. } => {
                        let bytes = write(plan, &op, &mut codec);
                        written.longest_bytes = written.longest_bytes.max(bytes);
                        Some(ticket)
                    }
                    Action::Wait(NEVER) | Action::Done => break,
                    Action::Wait(until) => {
                        now = until.max(now + 1);
                        None
                    }
                    other => panic!("{other:?} with an open lane"),
                };
                let Some(ticket) = asked else { continue };
                written.requests += 1;
                now += MILLISECOND;
                // Every second read that may be asked to renew what it read is asked to.
                answer(&mut client, &mut maker, &ticket, renews && written.requests & 1 == 1, now);
            }
        }
        written
    }
}

fn begin(plan: &Plan, number: usize, client: &mut Client, maker: &mut RequestMaker) {
    let Phase { work, recorded, .. } = &plan.phases[number];
    let changes = match recorded {
        true => PhaseChanges { parts: &plan.changes.parts, churned_ns: 0, events: &plan.changes.events },
        false => PhaseChanges::default(),
    };
    maker.begin(work, plan.seed);
    maker.begin_changes(work, &changes, plan.seed);
    let requests = match work {
        Work::Load(load) => share::load_records(plan, load),
        _ => REQUESTS,
    };
    let place = StreamOwner { seed: plan.seed, group: 0, phase: number as u64, client: 0 };
    client.begin(PhaseAssignment { requests, ..PhaseAssignment::nothing(place) }, None);
    client.add_events(maker);
}

/// Writes a request, and returns its length with the frame that it has over UDP.
fn write<C: Codec>(plan: &Plan, op: &Op<'_>, codec: &mut C) -> usize {
    let text = || serde_json::to_string(plan).expect("a plan is data");
    let mut out = Outbox::default();
    if let Err(refused) = codec.encode(op, 1, &mut out) {
        panic!("{refused:?} at {} of {} keys: {}", op.verb.name(), op.keys.count(), text());
    }
    if plan.transport == Transport::Stream {
        return out.len();
    }
    let bytes = Frame::LEN_BYTES + out.len();
    assert!(bytes <= DATAGRAM_MAX_BYTES, "{} of {bytes} bytes: {}", op.verb.name(), text());
    bytes
}

/// Answers a request: with the longest CAS unique where a cas follows, otherwise with a miss, or as stored.
fn answer(client: &mut Client, maker: &mut RequestMaker, ticket: &Ticket, wins: bool, now: Nanos) {
    let outcome = match ticket.origin {
        Origin::BeforeCas => {
            let item = Item { key: &[], size: 1, cas: u64::MAX, flags: 0 };
            assert_eq!(client.handle_item(0, ticket, &item, maker), Some(ticket.key));
            Outcome::Hit
        }
        _ if !ticket.verb.reads() => Outcome::Stored,
        _ if wins => Outcome::Win,
        _ => Outcome::Miss,
    };
    let hits = u32::from(outcome == Outcome::Hit);
    let (sent, arrived, read) = (now, now, now);
    let answer = Answer { ticket, outcome, sent, arrived, read, hits, stamp: Stamp::Missing, mark: 0 };
    client.handle_answer(0, &answer, maker);
}

#[test]
fn every_request_of_a_plan_that_is_not_refused_is_one_that_its_protocol_can_say() {
    let (mut accepted, mut over_udp, mut refused) = ([0; Protocol::ALL.len()], 0, 0);
    let mut longest_datagram = 0;
    for number in 0..2_000 {
        let Ok(plan) = drawn_plan(number).validate() else {
            refused += 1;
            continue;
        };
        let options = CodecOptions {
            commands: plan.templates().expect("the command was read"),
            field_bytes: plan.data.style.field_bytes.unwrap_or(0),
            ..CodecOptions::default()
        };
        let written = plan.protocol.with_codec(options, Asking(&plan));
        assert!(written.requests >= REQUESTS, "{} requests of plan {number}", written.requests);
        accepted[plan.protocol as usize] += 1;
        if plan.transport == Transport::Udp {
            over_udp += 1;
            longest_datagram = longest_datagram.max(written.longest_bytes);
        }
    }
    assert!(accepted.iter().all(|count| *count >= 20) && over_udp >= 20, "{accepted:?}, {over_udp} over UDP");
    assert!(refused >= 200, "{refused} of 2,000 plans are refused");
    assert!(longest_datagram > DATAGRAM_MAX_BYTES - 20, "{longest_datagram} bytes are near the limit");
}
