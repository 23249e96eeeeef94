//! Runs whose rate is changed by hand: all workers change at one moment, and a plan repeats the run.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pummel_engine::backend::sim::{NetworkConditions, Peer, Sim};
use pummel_engine::backend::{Backend, ConnId, Handed};
use pummel_engine::run::{Inputs, RateCommand, Run, Steering, Watch};
use pummel_logic::arrival::steered_plan;
use pummel_logic::plan::{Arrivals, Depth, Engine, Phase, Plan, RatePoint};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::events::Row;
use pummel_measure::events::Wants;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_testserver::ServerConfig;

use crate::peer::SharedServer;
use crate::setup::{at_rate, measuring, mix, plan, run, time};

/// The time between a command and its effect.
const AHEAD_NS: Nanos = 100 * MILLISECOND;

/// The rate with which the runs begin.
const RATE: f64 = 600.0;

/// The commands with the times of their effects, from the beginning of the measured phase.
const COMMANDS: [(Nanos, RateCommand); 6] = [
    (300 * MILLISECOND, RateCommand::Scale(2.0)),
    (700 * MILLISECOND, RateCommand::Scale(1.05)),
    (1_100 * MILLISECOND, RateCommand::Pause),
    // While nothing is asked, the rate is that with which the load goes on.
    (1_300 * MILLISECOND, RateCommand::Scale(0.5)),
    (1_500 * MILLISECOND, RateCommand::Pause),
    (1_900 * MILLISECOND, RateCommand::Scale(1.0 / 1.05)),
];

/// The hand that steers, which all simulated networks share: their clocks do not pass the time of a command before the run has applied it.
struct Hand {
    steering: Arc<Steering>,
    /// Commands that were sent.
    said: AtomicUsize,
    /// Commands that the run has applied.
    heard: AtomicUsize,
    /// Beginning of the measured phase, in nanoseconds; 0 before it.
    began: AtomicUsize,
}

impl Hand {
    fn new() -> Hand {
        Hand { steering: Arc::default(), said: 0.into(), heard: 0.into(), began: 0.into() }
    }

    /// Number and time of the next command that the run has not applied; `None` where there is none, and before the
    /// phase.
    fn next(&self) -> Option<(usize, Nanos)> {
        let began = self.began.load(Ordering::Acquire) as Nanos;
        let number = self.heard.load(Ordering::Acquire);
        let (at_ns, _) = COMMANDS.get(number).filter(|_| began > 0)?;
        Some((number, began + at_ns - AHEAD_NS))
    }

    /// Sends command `number`, unless another network has, and waits until the run has applied it.
    fn say(&self, number: usize) {
        if self.said.compare_exchange(number, number + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let (at_ns, command) = COMMANDS[number];
            let began = self.began.load(Ordering::Acquire) as Nanos;
            assert!(self.steering.send(began + at_ns, command), "there is room for one");
        }
        while self.heard.load(Ordering::Acquire) <= number {
            thread::yield_now();
        }
    }
}

/// A network whose clock waits for the run to apply each command.
struct Steered<'a> {
    sim: Sim<Box<dyn Peer + 'a>>,
    hand: &'a Hand,
}

impl Backend for Steered<'_> {
    forward!(sim: now, open, close, drain);

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        // The first request is one of the measured phase.
        while self.hand.began.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        self.sim.send(conn, parts)
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        while let Some((number, at)) = self.hand.next() {
            if self.sim.now() < at {
                return self.sim.wait(until.min(at));
            }
            self.hand.say(number);
        }
        self.sim.wait(until)
    }
}

/// A watch that keeps the due times of requests and the changes of the rate, and counts the commands that the run has
/// applied for the hand.
struct Seen<'a> {
    hand: &'a Hand,
    began: Nanos,
    dues: Vec<Nanos>,
    notices: Vec<String>,
    resumes_at: Vec<Option<f64>>,
}

impl Watch for Seen<'_> {
    fn wants(&self) -> Wants {
        Wants { rows: true, departures: false, keep: Keep::Figures, outstanding: false, connections: false }
    }

    fn notice(&mut self, words: &str) {
        self.notices.push(words.to_owned());
        self.hand.heard.fetch_add(1, Ordering::AcqRel);
    }

    fn begin(&mut self, _phase: &Phase, at: Nanos) {
        self.began = at;
        self.hand.began.store(at as usize, Ordering::Release);
    }

    fn steered(&mut self, _changes: &[RatePoint], resumes_at: Option<f64>) {
        self.resumes_at.push(resumes_at);
        self.hand.heard.fetch_add(1, Ordering::AcqRel);
    }

    fn rows(&mut self, rows: &[Row]) {
        self.dues.extend(rows.iter().map(|row| row.due));
    }
}

/// A plan of open loop for two and a half seconds.
fn steerable(arrivals: Arrivals, threads: u32) -> Plan {
    let mut plan = at_rate(plan(), RATE);
    plan.groups[0].arrivals = arrivals;
    plan.groups[0].clients = 6;
    plan.groups[0].depth = Depth::Limit(64);
    plan.phases = vec![measuring(mix(&[(Verb::Get, 3.0), (Verb::Set, 1.0)]), time(2_500 * MILLISECOND))];
    plan.engine = Engine { threads, ..plan.engine };
    plan
}

/// Runs a plan under the hand. Returns the measurement, the due times of requests in ascending order, and after each
/// change the rate at which a paused load will resume.
fn steered_run(plan: &Plan) -> (Measurement, Vec<Nanos>, Vec<Option<f64>>) {
    let (hand, server) = (Hand::new(), SharedServer::new(ServerConfig::default()));
    let mut seen =
        Seen { hand: &hand, began: 0, dues: Vec::new(), notices: Vec::new(), resumes_at: Vec::new() };
    let inputs = Inputs { steering: Some(Arc::clone(&hand.steering)), ..Inputs::default() };
    let plan = plan.clone().validate().expect("the plan can be run");
    let network = |worker: usize| {
        let peer: Box<dyn Peer + '_> = Box::new(server.peer());
        let sim = Sim::new(1 + worker as u64, NetworkConditions::calm(), peer);
        Ok(Steered { sim, hand: &hand })
    };
    let measurement =
        Run::new(&plan).with_inputs(&inputs).start_on(&mut seen, &|| false, network).expect("the run begins");
    assert!(seen.notices.is_empty(), "{:?}", seen.notices);
    let mut dues: Vec<Nanos> = seen.dues.iter().map(|due| due - seen.began).collect();
    dues.sort_unstable();
    (measurement, dues, seen.resumes_at)
}

#[test]
fn all_workers_change_the_rate_at_one_moment_and_a_plan_repeats_the_run() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        for threads in [1, 3] {
            let plan = steerable(arrivals.clone(), threads);
            let (measurement, dues, resumes_at) = steered_run(&plan);
            assert_eq!((measurement.status, &measurement.reason), (Status::Complete, &None));
            let changes = measurement.steered.clone().expect("the run was steered");
            let expected = [(300, 1_200.0), (700, 1_260.0), (1_100, 0.0), (1_500, 630.0), (1_900, 600.0)];
            assert_eq!(
                changes.iter().map(|change| (change.at_ns / MILLISECOND, change.rate)).collect::<Vec<_>>(),
                expected
            );
            assert_eq!(resumes_at, [None, None, Some(1_260.0), Some(630.0), None, None]);
            assert!(
                dues.iter().all(|due| !(1_100 * MILLISECOND..1_500 * MILLISECOND).contains(due)),
                "a rest"
            );
            let again = steered_plan(&plan, &changes);
            let server = SharedServer::new(ServerConfig::default());
            let outcome = run(&again, 1, NetworkConditions::calm(), || server.peer());
            let mut repeated: Vec<Nanos> = outcome.rows.iter().map(|row| row.due - outcome.begin).collect();
            repeated.sort_unstable();
            assert_eq!(dues.len(), repeated.len(), "{arrivals:?}, {threads} threads");
            let differ = dues.iter().zip(&repeated).find(|(due, again)| due.abs_diff(**again) > 1);
            assert_eq!(differ, None, "{arrivals:?}, {threads} threads");
            // The integral: 0.3 s of 600, 0.4 of 1,200, 0.4 of 1,260, a rest of 0.4, 0.4 of 630, 0.6 of 600.
            let integral: f64 = 180.0 + 480.0 + 504.0 + 252.0 + 360.0;
            let slack = if arrivals == Arrivals::Constant { 7.0 } else { 5.0 * integral.sqrt() };
            assert!((dues.len() as f64 - integral).abs() <= slack, "{} of {integral}", dues.len());
        }
    }
}

/// Checks that a command without a measured phase changes nothing, and gets a notice.
#[test]
fn a_wish_beyond_the_end_is_refused_in_words() {
    struct Late<'a>(&'a Steering, Vec<String>);
    impl Watch for Late<'_> {
        fn begin(&mut self, _phase: &Phase, at: Nanos) {
            self.0.send(at + 3 * SECOND, RateCommand::Scale(2.0));
            self.0.send(at + SECOND, RateCommand::Scale(1e300));
        }

        fn notice(&mut self, words: &str) {
            self.1.push(words.to_owned());
        }
    }
    let steering = Arc::new(Steering::default());
    assert!(steering.send(1, RateCommand::Pause));
    let server = SharedServer::new(ServerConfig::default());
    let inputs = Inputs { steering: Some(Arc::clone(&steering)), ..Inputs::default() };
    let plan = steerable(Arrivals::Constant, 1).validate().expect("the plan can be run");
    let mut watch = Late(&steering, Vec::new());
    let measurement = Run::new(&plan)
        .with_inputs(&inputs)
        .start_on(&mut watch, &|| false, |_| Ok(Sim::new(1, NetworkConditions::calm(), server.peer())))
        .expect("the run begins");
    assert_eq!((measurement.status, measurement.steered), (Status::Complete, Some(Vec::new())));
    let notices = watch.1.join("; ");
    assert!(notices.contains("only while the run is measured"), "{notices}");
    assert!(notices.contains("the run is over before its rate could change"), "{notices}");
    assert!(notices.contains("the rate stays: a rate is between"), "{notices}");
}
