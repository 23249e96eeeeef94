//! The memory that a plan needs where it is run, computed from the plan alone.

use super::{Depth, Fills, Group, Plan, TRACE_VERBS, Work};
use crate::protocol::Verb;
use crate::time::{Nanos, seconds};

/// Most memory that a plan may need, in bytes. A million connections with one request each fit, and a thousand threads;
/// a plan that needs more has a mistyped depth.
pub const LIMIT_BYTES: u64 = 16 << 30;

/// Most bytes of the packed fields of a dataset, and as many of their places, that are held in memory.
pub const PACKED_MAX_BYTES: usize = 64 << 20;

/// Bytes for the rows of a dataset at most: both kinds, and twice that while they grow.
const DATASET_BYTES: u64 = 4 * PACKED_MAX_BYTES as u64;

/// Requests that all clients of a group with unlimited depth have outstanding together, at most.
const UNLIMITED_REQUESTS: u64 = 1 << 20;

/// Least requests that one client with unlimited depth may have outstanding.
const UNLIMITED_MIN: u64 = 16;

/// A client: its state, its place in its worker's tables.
const CLIENT_BYTES: u64 = 1_024;

/// A connection: its session, its place in the tables of its worker and of the backend.
const CONNECTION_BYTES: u64 = 2_048;

/// Keys and buffers of an encrypted connection: a record each way, and what frames it.
const TLS_BYTES: u64 = 40 * 1_024;

/// A request that is outstanding: its place among those of its connection, when its slot was freed, and its words while
/// they wait to be sent.
const REQUEST_BYTES: u64 = 256;

/// Most requests that wait at one client because answers asked for them: 2.6 MB. Stores that wait for their delay after
/// a miss are the only ones that can become so many.
pub const FOLLOW_UPS_MAX: usize = 65_536;

/// A store that waits for its delay after a miss, with the free places of the queue that it waits in.
const FOLLOW_UP_BYTES: u64 = 80;

/// Most replies that one worker reads in a second. No more misses can come before the first of their stores is due.
const REPLIES_PER_SECOND_MAX: f64 = 20e6;

/// The factor by which a group may exceed its rate for some time: in bursts, and to make up for late requests.
const RATE_PEAK: f64 = 4.0;

/// The longest value that is copied to be sent; longer ones are made for each call that sends a part of one.
const COPIED_VALUE_MAX_BYTES: f64 = 2_048.0;

/// Bytes of a value that is being checked, for each connection.
const CHECK_BYTES: u64 = 256;

/// Bytes of the stored versions that a worker keeps where values are checked.
const WITNESS_BYTES: u64 = 8 << 20;

/// Bytes of the newest acknowledged write of a record, in each worker.
pub const ACKNOWLEDGED_BYTES: u64 = 16;

/// Memory of a worker for the keys that it stored, if misses are distinguished by their causes.
const OWN_STORES_BYTES: u64 = 8 << 20;

/// The number of a key in a table of those that lie in chosen slots, for each record in each of the five kinds; neighbours with the same
/// hash tag share one.
const SLOT_RECORD_BYTES: u64 = 5 * 4;

/// A worker: its thread, its backend with its buffers, its queues, the room of 256 KiB in which long values are made.
const WORKER_BYTES: u64 = 4 << 20;

/// The reader of a trace with what waits between it and the workers.
const TRACE_BYTES: u64 = 64 << 20;

/// The five histograms of one verb of one group.
const VERB_BYTES: u64 = 5 * 64 * 1_024;

/// Intervals that one worker has at most; more than at the start where the watching thread is held up for some slices.
/// Without one to go on with, the worker goes on in the interval that it has, whose slice becomes longer.
pub const INTERVALS_PER_WORKER: usize = 8;

/// Most intervals that a result keeps: an hour of seconds and more. Beyond them, neighbours are merged.
pub const INTERVALS_KEPT_MAX: usize = 4_096;

/// Counts and figures of one verb in an interval that a result keeps.
const KEPT_VERB_BYTES: u64 = 3 * 1_024;

/// An object of a window.
const OBJECT_BYTES: u64 = 48;

/// Bytes that all workers share: the texts that some values are ranges of, the program itself.
const PROCESS_BYTES: u64 = 64 << 20;

/// The most requests that a client of a group has outstanding: its depth. If the depth is unlimited, the clients of
/// the group share [`UNLIMITED_REQUESTS`], since every request takes memory until it is answered.
pub fn depth_of(group: &Group) -> u32 {
    match group.depth {
        Depth::Limit(depth) | Depth::Batch(depth) => depth,
        Depth::Unlimited => {
            let share = UNLIMITED_REQUESTS / u64::from(group.clients).max(1);
            share.max(UNLIMITED_MIN) as u32
        }
    }
}

/// Bytes of memory that a process needs at most that runs the whole plan. A recording that is replayed is not in the plan,
/// and is not counted.
pub fn need_bytes(plan: &Plan) -> u64 {
    let clients: u64 = plan.groups.iter().map(|group| client_bytes(plan, group)).fold(0, u64::saturating_add);
    let recorded = plan.phases.iter().filter(|phase| phase.recorded);
    let verbs: u64 = recorded.map(|phase| verbs_of(&phase.work)).sum();
    let interval = VERB_BYTES * verbs * plan.groups.len() as u64;
    let kept = KEPT_VERB_BYTES * verbs * INTERVALS_KEPT_MAX as u64;
    let checks = if plan.verify > 0.0 { WITNESS_BYTES } else { 0 };
    let stores = if plan.tells_misses() { OWN_STORES_BYTES } else { 0 };
    let workers = u64::from(plan.engine.threads)
        .saturating_mul(WORKER_BYTES + checks + stores + interval * INTERVALS_PER_WORKER as u64)
        .saturating_add(ledger_bytes(plan));
    clients
        .saturating_add(follow_up_bytes(plan))
        .saturating_add(workers)
        .saturating_add(interval * INTERVALS_PER_WORKER as u64)
        .saturating_add(kept)
        .saturating_add(if plan.trace().is_some() { TRACE_BYTES } else { 0 })
        .saturating_add(if plan.dataset.is_some() { DATASET_BYTES } else { 0 })
        .saturating_add(slot_record_bytes(plan))
        .saturating_add(PROCESS_BYTES)
}

/// Bytes of the acknowledged writes that all workers keep, where they are read back.
pub fn ledger_bytes(plan: &Plan) -> u64 {
    let workers = u64::from(plan.engine.threads);
    if plan.audits() {
        workers.saturating_mul(plan.data.records).saturating_mul(ACKNOWLEDGED_BYTES)
    } else {
        0
    }
}

/// Bytes of the table of the keys that lie in chosen slots, which all workers share; 0 where keys lie in any slot.
pub fn slot_record_bytes(plan: &Plan) -> u64 {
    match plan.data.slots.is_empty() {
        true => 0,
        false => plan
            .data
            .records
            .div_ceil(plan.data.key_tag.unwrap_or(1).max(1))
            .saturating_mul(SLOT_RECORD_BYTES),
    }
}

/// Bytes that all clients of a group need.
fn client_bytes(plan: &Plan, group: &Group) -> u64 {
    let lanes = plan.lanes() as u64;
    let tls = if plan.tls.is_some() { TLS_BYTES } else { 0 };
    let check = if plan.verify > 0.0 { CHECK_BYTES } else { 0 };
    let objects = plan.window().map_or(0, |window| u64::from(window.objects));
    let requests = requests_at_once(plan, group).saturating_mul(request_bytes(plan));
    let connections = lanes.saturating_mul((CONNECTION_BYTES + tls + check).saturating_add(requests));
    let one = CLIENT_BYTES.saturating_add(objects.saturating_mul(OBJECT_BYTES)).saturating_add(connections);
    u64::from(group.clients).saturating_mul(one)
}

/// Bytes of the stores that wait for their delay after a miss, at all clients. The number of misses that can come before the
/// first of their stores is due has three limits: the places at the clients, and what the workers can read and what the groups
/// ask for in the delay.
fn follow_up_bytes(plan: &Plan) -> u64 {
    let read_through = plan.phases.iter().filter_map(|phase| match &phase.work {
        Work::Mix(mix) => Some((mix.read_through_ns?, u64::from(mix.multiget))),
        Work::Replay(replay) => Some((replay.read_through_ns?, 1)),
        Work::Trace(replay) => (replay.fills == Fills::Own).then_some((replay.fill_delay_ns, 1)),
        _ => None,
    });
    let waiting = read_through.map(|(delay_ns, keys)| {
        let clients: u64 = plan.groups.iter().map(|group| u64::from(group.clients)).sum();
        let at_once = plan.groups.iter().map(|group| {
            let requests = u64::from(group.clients).saturating_mul(requests_at_once(plan, group));
            requests.saturating_mul(plan.lanes() as u64).saturating_mul(keys)
        });
        let in_delay = replies_in(delay_ns, plan).saturating_mul(keys);
        let waiting = at_once.fold(in_delay, u64::saturating_add);
        waiting.min(clients.saturating_mul(FOLLOW_UPS_MAX as u64))
    });
    waiting.max().unwrap_or(0).saturating_mul(FOLLOW_UP_BYTES)
}

/// Most replies that the workers of a plan read in a time.
fn replies_in(time_ns: Nanos, plan: &Plan) -> u64 {
    let read = REPLIES_PER_SECOND_MAX * f64::from(plan.engine.threads);
    let asked: Option<f64> = plan.groups.iter().map(|group| group.rate).sum();
    let rate = asked.map_or(read, |rate| read.min(RATE_PEAK * rate));
    (rate * seconds(time_ns)) as u64
}

/// Most requests that a connection has outstanding in any phase. A client that comes and goes makes no more than its calls.
fn requests_at_once(plan: &Plan, group: &Group) -> u64 {
    let depth_in = |work: &Work| match work {
        Work::Load(load) => u64::from(load.depth),
        Work::Delete(delete) => u64::from(delete.depth),
        Work::Audit(audit) => u64::from(audit.depth),
        Work::Window(_) | Work::Pause(_) => 1,
        Work::Mix(_) | Work::Replay(_) | Work::Trace(_) => {
            let calls = group.churn.as_ref().map_or(u64::MAX, |churn| churn.calls);
            u64::from(depth_of(group)).min(calls)
        }
    };
    plan.phases.iter().map(|phase| depth_in(&phase.work)).max().unwrap_or(1)
}

/// Bytes of a request with its value, where the value is copied.
fn request_bytes(plan: &Plan) -> u64 {
    let stores = plan.phases.iter().any(|phase| match &phase.work {
        Work::Mix(mix) => mix.read_through_ns.is_some() || mix.any_op(Verb::stores),
        Work::Load(_) | Work::Replay(_) | Work::Trace(_) | Work::Window(_) => true,
        Work::Delete(_) | Work::Pause(_) | Work::Audit(_) => false,
    });
    let value = plan.data.value_sizes().map(crate::dist::Dist::mean_from_zero).fold(0.0, f64::max);
    let copied = if stores && value <= COPIED_VALUE_MAX_BYTES { value as u64 } else { 0 };
    REQUEST_BYTES + copied
}

/// The most verbs that the requests of a phase have, with those of requests that follow from answers.
fn verbs_of(work: &Work) -> u64 {
    match work {
        Work::Mix(mix) => 2 * mix.weights().len() as u64,
        Work::Load(_) | Work::Delete(_) | Work::Audit(_) => 1,
        Work::Replay(_) | Work::Window(_) => 2,
        Work::Trace(_) => TRACE_VERBS.len() as u64,
        Work::Pause(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Dataset, DatasetOrder, Mix, Stop};
    use crate::time::SECOND;

    fn plan(clients: u32, depth: Depth) -> Plan {
        let work = Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]));
        let group = Group { clients, depth, ..Group::default() };
        Plan { groups: vec![group], ..Plan::measuring(work, Stop::default()) }
    }

    #[test]
    fn plans_of_many_connections_fit_and_those_of_a_mistyped_depth_do_not() {
        for (clients, depth, fits) in [
            (50, Depth::Limit(1), true),
            (10_000, Depth::Limit(16), true),
            (10_000, Depth::Unlimited, true),
            (1_000_000, Depth::Limit(1), true),
            (1, Depth::Limit(1_000_000), true),
            (1, Depth::Unlimited, true),
            (1_000, Depth::Limit(1_000_000), false),
            (1_000_000, Depth::Limit(1_000), false),
        ] {
            let need = need_bytes(&plan(clients, depth));
            assert_eq!(need <= LIMIT_BYTES, fits, "{clients} clients at {depth:?} need {need} bytes");
        }
    }

    #[test]
    fn what_is_asked_for_is_paid_for() {
        let base = plan(1_000, Depth::Limit(16));
        let of = |change: fn(&mut Plan)| {
            let mut plan = base.clone();
            change(&mut plan);
            need_bytes(&plan)
        };
        let least = need_bytes(&base);
        assert!(of(|plan| plan.groups[0].clients *= 2) > least);
        assert!(of(|plan| plan.groups[0].depth = Depth::Limit(32)) > least);
        assert!(of(|plan| plan.verify = 1.0) > least);
        assert!(of(|plan| plan.engine.threads = 2) > least);
        let dataset = Dataset { path: "a.csv".to_owned(), order: DatasetOrder::File };
        let base = Plan { dataset: Some(dataset), ..base.clone() };
        assert_eq!(need_bytes(&base), least + DATASET_BYTES);
        assert!(of(|plan| plan.tls = Some(crate::plan::TlsOptions::default())) > least);
        assert!(of(|plan| plan.groups.push(plan.groups[0].clone())) > least);
        assert!(of(|plan| plan.data.value_size = crate::dist::Dist::Fixed(2_000.0)) > least);
        assert_eq!(
            of(|plan| plan.groups[0].clients = u32::MAX),
            need_bytes(&plan(u32::MAX, Depth::Limit(16)))
        );
    }

    #[test]
    fn records_in_chosen_slots_need_a_number_each_which_those_of_a_tag_share() {
        let need = |key_tag, slots: &[&str]| {
            let mut plan = plan(1, Depth::Limit(1));
            plan.data.records = 1_000_001;
            plan.data.key_tag = key_tag;
            plan.data.slots = slots.iter().map(|range| range.parse().expect("a range")).collect();
            need_bytes(&plan)
        };
        let least = need(None, &[]);
        assert_eq!(need(Some(10), &[]), least, "tags need no table");
        assert_eq!(need(None, &["0-99"]), least + 20_000_020);
        assert_eq!(need(Some(10), &["0-99", "7000"]), least + 20 * 100_001);
    }

    #[test]
    fn stores_that_wait_after_a_miss_need_memory_for_as_long_as_they_wait() {
        let need = |clients, read_through_ns| {
            let mut plan = plan(clients, Depth::Limit(1));
            let Work::Mix(mix) = &mut plan.phases[0].work else { panic!("the phase has a mix") };
            mix.read_through_ns = read_through_ns;
            need_bytes(&plan)
        };
        // Misses are distinguished where keys are stored after them, which needs a table besides.
        let waiting =
            |clients, delay_ns| need(clients, Some(delay_ns)) - need(clients, None) - OWN_STORES_BYTES;
        assert_eq!(waiting(1, 0), FOLLOW_UP_BYTES, "one store, at once");
        assert_eq!(waiting(1, 3_600 * SECOND), FOLLOW_UP_BYTES * FOLLOW_UPS_MAX as u64, "its queue");
        assert_eq!(waiting(1_000, SECOND / 1_000), FOLLOW_UP_BYTES * 21_000, "misses of 1 ms");
        assert!(need(10_000, Some(SECOND)) <= LIMIT_BYTES);
        let mut slow = plan(1_000, Depth::Limit(1));
        let Work::Mix(mix) = &mut slow.phases[0].work else { panic!("the phase has a mix") };
        mix.read_through_ns = Some(60 * SECOND);
        slow.groups[0].rate = Some(1_000.0);
        assert_eq!(
            follow_up_bytes(&slow),
            FOLLOW_UP_BYTES * (4 * 60_000 + 1_000),
            "no more than are asked for"
        );
        assert!(need(1_000_000, Some(3_600 * SECOND)) > LIMIT_BYTES);
    }

    #[test]
    fn unlimited_depth_is_a_share_of_what_all_may_have() {
        let depth = |clients| depth_of(&Group { clients, depth: Depth::Unlimited, ..Group::default() });
        assert_eq!([1, 50, 10_000, 1_000_000].map(depth), [1 << 20, 20_971, 104, 16]);
    }
}
