//! The schedule of one client, and the pace that it shares with the clients of its group.
//!
//! Closed loop has no schedule; the open ones are functions of the client and of the number of the request alone.

use std::sync::Arc;

use super::along::{AlongCurve, CurveGaps};
use super::curve::RateCurve;
use super::rate::{Passed, Ratio, check_rate, estimated_count, later};
use crate::dist::Dist;
use crate::plan::{Arrivals, Stage, StageStep};
use crate::rng::{Stream, StreamOwner, Use, mix};
use crate::time::{FAR_NS, NEVER, Nanos, SECOND};

/// The part of the schedules that a group's clients share; made once for a group, cheap to clone.
#[derive(Clone, Debug)]
pub struct Pace {
    clients: u64,
    gaps: Gaps,
}

#[derive(Clone, Debug)]
enum Gaps {
    Constant(Ratio),
    /// Mean gap of one client, in nanoseconds.
    Poisson(f64),
    /// The shape, and the factor that makes nanoseconds of its draws.
    Shape(Arc<Dist>, f64),
    /// The time between two requests of the group, if none came at once, and the requests of a burst.
    Bursts(Ratio, u32),
    /// A rate that changes.
    Curve(CurveGaps),
}

impl Pace {
    /// The mean time between two requests of one client.
    pub fn mean_gap_ns(group_rate: f64, clients: u64) -> Nanos {
        (clients as f64 * SECOND as f64 / group_rate) as Nanos
    }

    /// The pace of a group with this many clients that together make `group_rate` requests per second. The arrivals
    /// are open ones whose shape has a mean above 0 that is not infinite, and [`check_rate`] has passed.
    pub fn new(arrivals: &Arrivals, group_rate: f64, clients: u64) -> Pace {
        assert!(check_rate(group_rate).is_ok(), "rate {group_rate}");
        assert!(clients > 0, "a group without clients has no pace");
        let mean_ns = clients as f64 * SECOND as f64 / group_rate;
        let gaps = match arrivals {
            Arrivals::Closed => panic!("closed loop has no schedule"),
            Arrivals::Trace => panic!("the rows of a trace say when they are due"),
            Arrivals::Constant => Gaps::Constant(Ratio::period_ns(group_rate)),
            Arrivals::Bursts(size) => Gaps::Bursts(Ratio::period_ns(group_rate), (*size).max(1)),
            Arrivals::Poisson => Gaps::Poisson(mean_ns),
            Arrivals::Shape(dist) => {
                let factor = dist.factor_to_mean(mean_ns).expect("the shape was checked");
                Gaps::Shape(Arc::new(dist.clone()), factor)
            }
        };
        Pace { clients, gaps }
    }

    /// The pace of a group with this many clients that together follow a rate that changes. The arrivals are open ones
    /// whose shape has a mean above 0 that is not infinite.
    pub fn along(arrivals: &Arrivals, curve: Arc<RateCurve>, clients: u64) -> Pace {
        assert!(clients > 0, "a group without clients has no pace");
        Pace { clients, gaps: Gaps::Curve(CurveGaps::new(arrivals, curve, clients)) }
    }

    /// The schedule of the client `owner.client` of the group.
    pub fn schedule(&self, owner: StreamOwner) -> Schedule {
        assert!(owner.client < self.clients, "client {} of {}", owner.client, self.clients);
        let stream = Stream::new(owner, Use::Gap);
        let process = match &self.gaps {
            Gaps::Constant(period) => {
                Process::Constant { period: *period, clients: self.clients, client: owner.client }
            }
            Gaps::Bursts(period, size) => {
                let (clients, client) = (self.clients, owner.client);
                Process::Bursts { period: *period, clients, client, size: *size }
            }
            Gaps::Poisson(mean_ns) => Process::Poisson { stream, mean_ns: *mean_ns, fraction: 0 },
            Gaps::Shape(dist, factor) => {
                Process::Shape { stream, dist: Arc::clone(dist), factor: *factor, fraction: 0 }
            }
            Gaps::Curve(gaps) => Process::Curve(Box::new(AlongCurve::new(gaps, owner))),
        };
        Schedule::beginning_at(0, process)
    }

    /// The schedule of the client `owner.client` of the group, of which only the clients on stage have something to do: together they
    /// keep the rate of the group in each step.
    pub fn schedule_on_stage(&self, owner: StreamOwner, stage: &Stage) -> Schedule {
        let staged = StagedSchedule::new(self, owner, stage);
        let due_ns = staged.peek();
        Schedule { process: Process::Staged(Box::new(staged)), i: 0, due_ns }
    }

    /// The schedule of one of `clients` on stage, whose place among them is `place`, from `begin_ns` on. Equal gaps go on where the
    /// clients before have ended, so that the requests of all are due when they would be without a stage; gaps that are drawn begin
    /// anew.
    fn step(&self, owner: StreamOwner, (place, clients): (u64, u64), begin_ns: Nanos) -> Schedule {
        let stream = Stream::new(owner, Use::Gap);
        // The gaps of one client are as many times longer as there are clients to share the rate.
        let share = clients as f64 / self.clients as f64;
        let process = match &self.gaps {
            Gaps::Constant(period) => {
                let before = u64::try_from(period.count_before(begin_ns)).unwrap_or(u64::MAX);
                Process::Constant { period: *period, clients, client: before.saturating_add(place) }
            }
            Gaps::Bursts(period, size) => {
                let before = u64::try_from(period.count_before(begin_ns)).unwrap_or(u64::MAX);
                let client = before.saturating_add(place);
                Process::Bursts { period: *period, clients, client, size: *size }
            }
            Gaps::Poisson(mean_ns) => Process::Poisson { stream, mean_ns: mean_ns * share, fraction: 0 },
            Gaps::Shape(dist, factor) => {
                Process::Shape { stream, dist: Arc::clone(dist), factor: factor * share, fraction: 0 }
            }
            Gaps::Curve(gaps) => {
                Process::Curve(Box::new(AlongCurve::from(&gaps.shared_by(clients), owner, place, begin_ns)))
            }
        };
        Schedule::beginning_at(begin_ns, process)
    }
}

/// When the requests of one client are due, as offsets from the start of the phase, in ascending order.
///
/// * Constant: request i of client k of C is due at (i + k/C) periods of C/rate seconds, calculated from i in whole
///   numbers and cut off to the nanosecond; nothing is summed.
/// * Bursts of n: request i of client k of C is due when request i - i mod n of constant arrivals is.
/// * Poisson: exponential gaps of mean C/rate, the first one before the first request.
/// * Shape: gaps drawn from the distribution, below 0 as 0, times the factor that makes their mean C/rate.
/// * On stage in some steps only: each step has a schedule of its own, in which the clients on stage share the rate.
/// * A rate that changes: the due time is where the integral of the rate reaches what the process asks for at a rate of 1: i C + k
///   requests for constant arrivals, as many as the first request of its burst for bursts, C times the sum of gaps of mean 1 otherwise.
///
/// Drawn gaps are summed in whole nanoseconds and 2^-64ths of one, so that the sum stays as exact as its parts.
#[derive(Clone, Debug)]
pub struct Schedule {
    process: Process,
    /// Number of the next request.
    i: u64,
    /// Due time of the next request.
    due_ns: Nanos,
}

#[derive(Clone, Debug)]
enum Process {
    Constant {
        period: Ratio,
        clients: u64,
        client: u64,
    },
    Bursts {
        period: Ratio,
        clients: u64,
        client: u64,
        size: u32,
    },
    Poisson {
        stream: Stream,
        mean_ns: f64,
        fraction: u64,
    },
    Shape {
        stream: Stream,
        dist: Arc<Dist>,
        factor: f64,
        fraction: u64,
    },
    /// The rate changes.
    Curve(Box<AlongCurve>),
    /// The client is on stage in some steps only.
    Staged(Box<StagedSchedule>),
    /// The caller sets when the next request is due.
    SetByCaller,
}

impl Schedule {
    /// A schedule that begins at `begin_ns`, with its first request.
    fn beginning_at(begin_ns: Nanos, process: Process) -> Schedule {
        let mut schedule = Schedule { process, i: 0, due_ns: begin_ns };
        schedule.due_ns = schedule.due();
        schedule
    }

    /// A schedule whose first request is due at once, and each other one when [`Schedule::put_off`] sets it.
    pub fn set_by_caller() -> Schedule {
        Schedule { process: Process::SetByCaller, i: 0, due_ns: 0 }
    }

    /// Whether [`Schedule::put_off`] sets when the requests of the schedule are due.
    pub fn is_set_by_caller(&self) -> bool {
        matches!(self.process, Process::SetByCaller)
    }

    /// Makes the next request due `gap_ns` nanoseconds later, or in 146 years where that is sooner.
    pub fn put_off(&mut self, gap_ns: Nanos) {
        self.due_ns = self.due_ns.saturating_add(gap_ns).min(FAR_NS);
    }

    /// A schedule on which nothing is due for the next 146 years.
    pub fn never() -> Schedule {
        let period = Ratio { whole: FAR_NS, rest: 0, divisor: 1 };
        let process = Process::Constant { period, clients: 1, client: 1 };
        Schedule { process, i: 0, due_ns: FAR_NS }
    }

    /// When the next request is due, in nanoseconds from the start of the phase; [`NEVER`] after
    /// 584 years.
    #[inline]
    pub fn peek(&self) -> Nanos {
        self.due_ns
    }

    /// The number of the next request, from 0 on.
    #[inline]
    pub fn number(&self) -> u64 {
        self.i
    }

    /// Takes the next request: returns when it is due, and goes on to the one after it.
    #[inline]
    #[allow(clippy::should_implement_trait)] // A schedule never ends, so there is no Option to return.
    pub fn next(&mut self) -> Nanos {
        let due_ns = self.due_ns;
        self.i += 1;
        self.due_ns = self.due();
        due_ns
    }

    /// Follows a rate that was changed: `curve` is the old one up to a moment that lies ahead. A schedule without a rate that changes
    /// stays as it is.
    pub fn follow(&mut self, curve: &Arc<RateCurve>) {
        if let Process::Curve(along) = &mut self.process {
            self.due_ns = along.follow(curve, self.i);
        }
    }

    /// Passes over every request that is due before `until_ns` (from the start of the phase), but over at most
    /// `requests_max`. Constant arrivals and bursts are counted by arithmetic, whatever their number. Of drawn gaps at most
    /// `draws_max` are drawn; where those do not reach, the rest is estimated from the mean gap, and the schedule goes on
    /// behind `until_ns`. A schedule whose due times come from outside passes over nothing.
    pub fn pass(&mut self, until_ns: Nanos, requests_max: u64, draws_max: u64) -> Passed {
        let mean_ns = match &mut self.process {
            Process::SetByCaller => return Passed::default(),
            Process::Staged(staged) => {
                let passed = staged.pass(until_ns, requests_max, draws_max);
                self.i = self.i.saturating_add(passed.requests);
                self.due_ns = staged.peek();
                return passed;
            }
            Process::Constant { period, clients, client } => {
                let before = period.count_before(until_ns).saturating_sub(u128::from(*client));
                let first = u64::try_from(before.div_ceil(u128::from(*clients))).unwrap_or(u64::MAX);
                let requests = first.saturating_sub(self.i).min(requests_max);
                self.i += requests;
                self.due_ns = self.due();
                return Passed::exactly(requests);
            }
            Process::Bursts { period, clients, client, size } => {
                let before = period.count_before(until_ns).saturating_sub(u128::from(*client));
                let bursts = before.div_ceil(u128::from(*clients) * u128::from(*size));
                let first = u64::try_from(bursts.saturating_mul(u128::from(*size))).unwrap_or(u64::MAX);
                let requests = first.saturating_sub(self.i).min(requests_max);
                self.i += requests;
                self.due_ns = self.due();
                return Passed::exactly(requests);
            }
            Process::Curve(along) => {
                if let Some(first) = along.first_at(until_ns, self.i) {
                    let requests = (first - self.i).min(requests_max);
                    self.i += requests;
                    self.due_ns = self.due();
                    return Passed::exactly(requests);
                }
                None
            }
            Process::Poisson { mean_ns, .. } => Some(*mean_ns),
            Process::Shape { dist, factor, .. } => Some(dist.mean_from_zero() * *factor),
        };
        let mut passed = Passed::default();
        while passed.requests < requests_max && self.due_ns < until_ns {
            if passed.requests == draws_max {
                let all = match (&mut self.process, mean_ns) {
                    (Process::Curve(along), _) => along.pass_estimated(self.due_ns, until_ns),
                    (_, Some(mean_ns)) => estimated_count(until_ns - self.due_ns, mean_ns),
                    (_, None) => unreachable!("gaps of a rate that stays have a mean"),
                };
                passed.estimated = all.min(requests_max - passed.requests);
                passed.requests += passed.estimated;
                self.i = self.i.saturating_add(passed.estimated);
                self.due_ns = until_ns;
                self.due_ns = self.due();
                break;
            }
            self.next();
            passed.requests += 1;
        }
        passed
    }

    /// When request `i` is due, given that `due_ns` and the fraction are those of the one before it.
    fn due(&mut self) -> Nanos {
        match &mut self.process {
            Process::Constant { period, clients, client } => {
                period.times(u128::from(self.i) * u128::from(*clients) + u128::from(*client))
            }
            Process::Bursts { period, clients, client, size } => {
                let first = self.i - self.i % u64::from(*size);
                period.times(u128::from(first) * u128::from(*clients) + u128::from(*client))
            }
            Process::Poisson { stream, mean_ns, fraction } => {
                let gap_ns = Dist::Exponential { mean: *mean_ns }.draw(stream.draw(self.i));
                later(self.due_ns, fraction, gap_ns)
            }
            Process::Shape { stream, dist, factor, fraction } => {
                let gap_ns = dist.draw(stream.draw(self.i)).max(0.0) * *factor;
                later(self.due_ns, fraction, gap_ns)
            }
            Process::Curve(along) => along.due(self.i).max(self.due_ns),
            Process::Staged(staged) => {
                staged.step();
                staged.peek()
            }
            Process::SetByCaller => self.due_ns,
        }
    }
}

/// The schedules of one client in the steps in which it is on stage, one after the other.
#[derive(Clone, Debug)]
struct StagedSchedule {
    pace: Pace,
    owner: StreamOwner,
    /// The place of the client among those on stage.
    place: u64,
    /// The steps in which the client is on stage, in the order of time.
    steps: Vec<StageStep>,
    /// Number of the step under way.
    at: usize,
    /// The schedule of the step under way; `None` behind the last.
    step: Option<Schedule>,
}

impl StagedSchedule {
    /// The schedule of the client `owner.client` of a group with this pace.
    fn new(pace: &Pace, owner: StreamOwner, stage: &Stage) -> StagedSchedule {
        let (place, steps) = (stage.place_of(owner.client), stage.steps_of(owner.client));
        let mut staged = StagedSchedule { pace: pace.clone(), owner, place, steps, at: 0, step: None };
        staged.enter(0);
        staged.skip_ended();
        staged
    }

    /// When the next request is due; [`NEVER`] where none is.
    fn peek(&self) -> Nanos {
        self.step.as_ref().map_or(NEVER, Schedule::peek)
    }

    /// Goes on to the next request.
    fn step(&mut self) {
        if let Some(step) = &mut self.step {
            step.next();
        }
        self.skip_ended();
    }

    /// Passes over requests as [`Schedule::pass`] does.
    fn pass(&mut self, until_ns: Nanos, requests_max: u64, draws_max: u64) -> Passed {
        let mut all = Passed::default();
        while let (Some(step), Some(StageStep { end_ns, .. })) = (&mut self.step, self.steps.get(self.at)) {
            let draws_left = draws_max.saturating_sub(all.requests - all.estimated);
            let passed = step.pass(until_ns.min(*end_ns), requests_max - all.requests, draws_left);
            all.requests += passed.requests;
            all.estimated += passed.estimated;
            let step_before = self.at;
            self.skip_ended();
            if self.at == step_before || all.requests >= requests_max {
                break;
            }
        }
        all
    }

    /// Begins the step with this number, if there is one.
    fn enter(&mut self, at: usize) {
        self.at = at;
        self.step = self.steps.get(at).map(|step| {
            // Every step has draws of its own.
            let seed = if at == 0 { self.owner.seed } else { mix(&[self.owner.seed, step.begin_ns]) };
            let owner = StreamOwner { seed, ..self.owner };
            self.pace.step(owner, (self.place, step.clients), step.begin_ns)
        });
    }

    /// Leaves the steps whose end comes before the next request.
    fn skip_ended(&mut self) {
        while let (Some(schedule), Some(step)) = (&self.step, self.steps.get(self.at))
            && schedule.peek() >= step.end_ns
            && step.end_ns != NEVER
        {
            self.enter(self.at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::arrival::RateCurve;
    use crate::dist::Dist;
    use crate::plan::{Arrivals, Changes, Group, Mix, Part, Plan, RatePoint, RateShape, Stop, Work};
    use crate::protocol::Verb;
    use crate::time::{MILLISECOND, SECOND};

    const RATE: f64 = 1_000.0;

    /// The stage of 8 clients of which 2, 8 and 3 are there for a second each.
    fn stage() -> Stage {
        let stop = Stop { time_ns: Some(3 * SECOND), requests: None };
        let part = |(at, connections): (u64, u32)| Part {
            connections: Some(connections),
            ..Part::plain(format!("{at}"), at * SECOND)
        };
        let plan = Plan {
            groups: vec![Group { clients: 8, ..Group::default() }],
            changes: Changes { parts: [(0, 2), (1, 8), (2, 3)].map(part).to_vec(), ..Changes::default() },
            ..Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), stop)
        };
        Stage::of(&plan, 0).expect("it has steps")
    }

    fn owner(client: u64) -> StreamOwner {
        StreamOwner { seed: 7, group: 0, phase: 0, client }
    }

    /// The due times of each client in three seconds.
    fn dues(pace: &Pace) -> Vec<Vec<Nanos>> {
        let of = |client: u64| {
            let mut schedule = pace.schedule_on_stage(owner(client), &stage());
            std::iter::repeat_with(|| schedule.next()).take_while(|due| *due < 3 * SECOND).collect()
        };
        (0..8).map(of).collect()
    }

    fn ramp() -> Arc<RateCurve> {
        let point = |at_ms: u64, rate| RatePoint { at_ns: at_ms * MILLISECOND, rate };
        Arc::new(RateCurve::of(&RateShape::Points(vec![point(0, 300.0), point(2_500, 1_700.0)])))
    }

    #[test]
    fn constant_arrivals_are_due_when_they_would_be_without_a_stage() {
        for pace in [
            Pace::new(&Arrivals::Constant, RATE, 8),
            Pace::new(&Arrivals::Constant, 999.7, 8),
            Pace::along(&Arrivals::Constant, ramp(), 8),
            Pace::along(&Arrivals::Constant, Arc::new(RateCurve::constant(RATE)), 8),
        ] {
            let mut all: Vec<Nanos> = dues(&pace).concat();
            all.sort_unstable();
            let plain = (0..8).flat_map(|client| {
                let mut schedule = pace.schedule(owner(client));
                std::iter::repeat_with(move || schedule.next()).take_while(|due| *due < 3 * SECOND)
            });
            let mut plain: Vec<Nanos> = plain.collect();
            plain.sort_unstable();
            assert!(all == plain, "{} and {}", all.len(), plain.len());
        }
    }

    #[test]
    fn bursts_are_due_when_their_first_requests_would_be_at_equal_distances() {
        let paces = |arrivals: Arrivals| {
            let steady = Pace::along(&arrivals, Arc::new(RateCurve::constant(RATE)), 8);
            [Pace::new(&arrivals, 999.7, 8), Pace::along(&arrivals, ramp(), 8), steady]
        };
        for (bursts, constant) in paces(Arrivals::Bursts(7)).iter().zip(&paces(Arrivals::Constant)) {
            for client in 0..8 {
                let (mut in_bursts, mut constant) =
                    (bursts.schedule(owner(client)), constant.schedule(owner(client)));
                let equal: Vec<Nanos> = (0..700).map(|_| constant.next()).collect();
                for i in 0..700 {
                    assert_eq!(in_bursts.next(), equal[i - i % 7], "request {i} of client {client}");
                }
            }
        }
    }

    #[test]
    fn only_clients_on_stage_have_something_due_and_they_share_the_rate() {
        let shape = Arrivals::Shape(Dist::Uniform { low: 0.5, high: 1.5 });
        for arrivals in [Arrivals::Constant, Arrivals::Poisson, Arrivals::Bursts(5), shape] {
            for pace in [
                Pace::new(&arrivals, RATE, 8),
                Pace::along(&arrivals, Arc::new(RateCurve::constant(RATE)), 8),
            ] {
                let all = dues(&pace);
                for (second, on_stage) in [2, 8, 3].into_iter().enumerate() {
                    let time = second as u64 * SECOND..(second as u64 + 1) * SECOND;
                    let mut requests = 0;
                    for (client, dues) in all.iter().enumerate() {
                        let own = dues.iter().filter(|due| time.contains(due)).count();
                        requests += own;
                        let is_on = stage().place_of(client as u64) < on_stage;
                        assert_eq!(own > 0, is_on, "{arrivals:?}, client {client} in second {second}");
                    }
                    assert!((900..=1_100).contains(&requests), "{arrivals:?}: {requests} in {second}");
                }
                assert!(all.iter().all(|dues| dues.is_sorted()));
            }
        }
    }

    #[test]
    fn passing_ends_where_nothing_more_is_ever_due() {
        let points = [(0, 100.0), (SECOND, 100.0), (2 * SECOND, 0.0), (3 * SECOND, 0.0)];
        let points = points.map(|(at_ns, rate)| RatePoint { at_ns, rate }).to_vec();
        let curve = Arc::new(RateCurve::of(&RateShape::Points(points)));
        for arrivals in [Arrivals::Constant, Arrivals::Poisson, Arrivals::Bursts(3)] {
            let pace = Pace::along(&arrivals, Arc::clone(&curve), 8);
            let passed = (0..8).map(|client| {
                let mut schedule = pace.schedule_on_stage(owner(client), &stage());
                let passed = schedule.pass(NEVER, u64::MAX, u64::MAX).requests;
                assert!(schedule.peek() >= 3 * SECOND, "client {client}");
                assert_eq!(schedule.pass(NEVER, u64::MAX, u64::MAX), Passed::default());
                passed
            });
            let passed = passed.sum::<u64>() as f64;
            assert!((passed - 150.0).abs() < 60.0, "{arrivals:?}: {passed}");
        }
    }

    #[test]
    fn requests_that_are_passed_are_those_that_were_due() {
        let curved = |arrivals: &Arrivals| Pace::along(arrivals, ramp(), 8);
        let paces = [
            Pace::new(&Arrivals::Constant, RATE, 8),
            Pace::new(&Arrivals::Poisson, RATE, 8),
            Pace::new(&Arrivals::Bursts(4), RATE, 8),
            curved(&Arrivals::Constant),
            curved(&Arrivals::Bursts(4)),
        ];
        for pace in paces {
            for (client, dues) in dues(&pace).iter().enumerate() {
                for until in [0, SECOND / 2, SECOND, SECOND + 1, 2 * SECOND, 3 * SECOND] {
                    let mut schedule = pace.schedule_on_stage(owner(client as u64), &stage());
                    let passed = schedule.pass(until, u64::MAX, u64::MAX);
                    let before = dues.iter().filter(|due| **due < until).count();
                    assert_eq!(passed, Passed::exactly(before as u64), "client {client} until {until}");
                    let next = dues.get(before).copied().unwrap_or(schedule.peek());
                    assert_eq!(schedule.peek(), next, "{pace:?}");
                }
                let mut schedule = pace.schedule_on_stage(owner(client as u64), &stage());
                let few = schedule.pass(3 * SECOND, 5, u64::MAX);
                assert_eq!(few.requests, dues.len().min(5) as u64);
                let mut schedule = pace.schedule_on_stage(owner(client as u64), &stage());
                let estimated = schedule.pass(3 * SECOND, u64::MAX, 10).requests as f64;
                let many = dues.len() as f64;
                assert!((estimated - many).abs() <= 0.4 * many + 8.0, "{estimated}, not {many}");
            }
        }
    }
}
