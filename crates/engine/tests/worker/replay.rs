//! Runs that replay a recording: the rows at which they begin, and the effect of a deletion in the middle of one.

use std::sync::Arc;

use pummel_engine::backend::sim::{NetworkConditions, Sim};
use pummel_engine::run::Inputs;
use pummel_logic::plan::{Delete, Phase, Plan, Replay, Stop, Work};
use pummel_logic::time::SECOND;
use pummel_logic::workload::trace::Trace;
use pummel_testserver::ServerConfig;

use crate::peer::SharedServer;
use crate::setup::{Outcome, plan, requests, run_with_inputs};

/// A recording that stores `keys` keys and then reads each of them.
fn recording(keys: u64) -> Inputs {
    let mut trace = Trace::new();
    for stores in [true, false] {
        for key in 0..keys {
            assert!(trace.push(format!("recorded-{key}").as_bytes(), 10, stores));
        }
    }
    Inputs { trace: Some(Arc::new(trace)), ..Inputs::default() }
}

fn replaying(stop: Stop, recorded: bool) -> Phase {
    let replay = Replay { path: "recorded".to_owned(), format: 0, read_through_ns: None, reads_only: false };
    Phase { name: "replay".to_owned(), work: Work::Replay(replay), stop, recorded }
}

fn run(plan: &Plan, inputs: &Inputs, server: &SharedServer) -> Outcome {
    run_with_inputs(plan, inputs, |worker| {
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), server.peer()))
    })
}

#[test]
fn a_replay_behind_a_warm_up_begins_with_the_first_line() {
    for threads in [1, 3] {
        // The warm-up asks all, or a part.
        for warmup in [Stop::default(), requests(30)] {
            let mut plan =
                Plan { phases: vec![replaying(warmup, false), replaying(Stop::default(), true)], ..plan() };
            plan.engine.threads = threads;
            let server = SharedServer::new(ServerConfig::default());
            let outcome = run(&plan, &recording(50), &server);
            assert_eq!(outcome.counts().completed, 100, "{threads} threads behind {warmup:?}");
        }
    }
}

#[test]
fn a_deletion_removes_keys_of_the_recording_and_the_replay_goes_on_behind_it() {
    for threads in [1, 3] {
        let delete = Work::Delete(Delete { share: 0.9, depth: 4 });
        let delete =
            Phase { name: "delete".to_owned(), work: delete, stop: Stop::default(), recorded: false };
        // The workers have as many lines each, and as many clients: all keys are stored when the deletion begins.
        let phases = vec![replaying(requests(96), true), delete, replaying(requests(96), true)];
        let mut plan = Plan { phases, ..plan() };
        plan.engine.threads = threads;
        (plan.groups[0].clients, plan.timeout_ns) = (12, SECOND);
        let server = SharedServer::new(ServerConfig::default());
        let outcome = run(&plan, &recording(96), &server);
        let counts = outcome.counts();
        assert_eq!((counts.completed, counts.failed()), (192, 0), "{threads} threads");
        assert_eq!((counts.hits, counts.misses), (10, 86), "{threads} threads");
        assert_eq!(server.lock().store().len(), 10, "{threads} threads");
    }
}
