//! Runs that several processes make together, as agents do: their requests are those of one process with the whole
//! plan.

use std::collections::BTreeSet;

use pummel_engine::backend::sim::{NetworkConditions, Sim};
use pummel_engine::run::{Gate, Run};
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Depth, Event, EventKind, FlashCrowd, HotKey, Mix, Plan, RankRange};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::completion::Loaded;
use pummel_measure::measurement::Status;
use pummel_testserver::ServerConfig;

use crate::key_churn::plan_of;
use crate::peer::SharedServer;
use crate::setup::{ReaderState, mix, requests};

/// First numbers of the keys that no other request asks for, and of those that records get at the end of a life.
const FRESH_FROM: u64 = 2_000_000_000_000_000;
const RENEWED_FROM: u64 = 6_000_000_000_000_000;

/// The gate of a process whose phases begin as soon as it is ready: each has a clock of its own.
struct Open;

impl Gate for Open {
    fn pass(&self, ready: Nanos, _loaded: Loaded) -> Option<Nanos> {
        Some(ready)
    }
}

/// A request: its due time from the beginning of its phase, its verb and its key.
type Asked = (Nanos, &'static str, u64);

/// The requests of the measured phase of the clients `clients` of a plan, in a run with this mark.
fn asked(plan: &ValidPlan, server: &SharedServer, clients: std::ops::Range<u64>, mark: u64) -> Vec<Asked> {
    let first_worker = u32::from(clients.start > 0);
    let share = ProcessShare { clients: vec![clients], threads: 1, first_worker, workers: 2, mark };
    let mut told = ReaderState::default();
    let run = Run::new(plan).with_process_share(&share, &Open);
    let backend = |_| Ok(Sim::new(7, NetworkConditions::calm(), server.peer()));
    let measurement = run.start_on(&mut told, &|| false, backend).expect("the run begins");
    assert_eq!((measurement.status, &measurement.reason), (Status::Complete, &None));
    let fills = |verb: Verb| verb == Verb::Add;
    let rows = told.rows.iter().filter(|row| !fills(row.verb));
    rows.map(|row| (row.due - told.begin, row.verb.name(), row.key)).collect()
}

/// The requests of two processes, in the order of time, and those of one.
fn of_two_and_of_one(plan: &Plan) -> (Vec<Asked>, Vec<Asked>) {
    let plan = plan.clone().validate().expect("the plan can be run");
    let clients = u64::from(plan.groups[0].clients);
    let server = SharedServer::new(ServerConfig::default());
    let mut two = asked(&plan, &server, 0..clients / 3, 5);
    assert!(two.len() > 100);
    two.extend(asked(&plan, &server, clients / 3..clients, 5));
    let server = SharedServer::new(ServerConfig::default());
    let mut one = asked(&plan, &server, 0..clients, 5);
    two.sort_unstable();
    one.sort_unstable();
    (two, one)
}

fn churning(churn: &str) -> Mix {
    let churn = Some(churn.parse().expect("it is a churn"));
    Mix { churn, fresh: 0.2, ..mix(&[(Verb::Get, 4.0), (Verb::Set, 1.0)]) }
}

#[test]
fn processes_of_one_run_give_a_record_the_same_key_and_no_fresh_key_twice() {
    for churn in ["exponential:2", "share:0.02", "requests:900"] {
        let (two, one) = of_two_and_of_one(&plan_of(&churning(churn)));
        assert!(two == one, "{churn}");
        let keys = |from: u64, until: u64| two.iter().filter(move |(.., key)| (from..until).contains(key));
        let renewed: BTreeSet<u64> = keys(RENEWED_FROM, u64::MAX).map(|(.., key)| *key).collect();
        assert!(renewed.len() > 30, "{churn}: {}", renewed.len());
        let fresh: BTreeSet<u64> = keys(FRESH_FROM, RENEWED_FROM).map(|(.., key)| *key).collect();
        assert!(fresh.len() > 200 && fresh.len() == keys(FRESH_FROM, RENEWED_FROM).count(), "{churn}");
    }
}

/// Checks that in closed loop a client counts its own requests for those of all, and its key follows from its number
/// among them.
#[test]
fn processes_in_closed_loop_give_a_record_the_same_key_at_the_same_request() {
    let mut plan = plan_of(&churning("share:0.05"));
    plan.groups[0].arrivals = pummel_logic::plan::Arrivals::Closed;
    plan.groups[0].rate = None;
    plan.groups[0].depth = Depth::Limit(1);
    plan.phases.last_mut().expect("it is measured").stop = requests(6_000);
    plan.phases[1].stop = requests(600);
    let (two, one) = of_two_and_of_one(&plan);
    let keys = |asked: &[Asked]| {
        let mut keys: Vec<(&str, u64)> = asked.iter().map(|&(_, verb, key)| (verb, key)).collect();
        keys.sort_unstable();
        keys
    };
    assert!(keys(&two) == keys(&one));
    assert!(two.iter().filter(|(.., key)| *key >= RENEWED_FROM).count() > 1_000);
}

#[test]
fn processes_of_one_run_share_the_key_of_a_crowd_and_lose_each_record_once() {
    let crowd = FlashCrowd { key: HotKey::New, share: 0.5, rise_ns: 0, hold_ns: SECOND, fall_ns: 0 };
    let event = |at_ns, what| Event { at_ns, what };
    let mut plan = plan_of(&churning("exponential:2"));
    plan.changes.events = vec![
        event(SECOND, EventKind::Hot(crowd)),
        event(2 * SECOND + MILLISECOND, EventKind::Delete(RankRange { first: 10, last: 40 })),
    ];
    let (two, one) = of_two_and_of_one(&plan);
    assert!(two == one);
    let lost: Vec<u64> = two.iter().filter(|(_, verb, _)| *verb == "delete").map(|(.., key)| *key).collect();
    let different: BTreeSet<u64> = lost.iter().copied().collect();
    assert_eq!((lost.len(), different.len()), (31, 31));
}
