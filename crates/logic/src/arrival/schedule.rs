//! The schedule of one client, and the pace that it shares with the clients of its group.
//!
//! Closed loop has no schedule; the three open ones are functions of the client and of the number of the request alone.

use std::sync::Arc;

use super::along::{AlongCurve, CurveGaps};
use super::curve::RateCurve;
use super::rate::{Passed, Ratio, check_rate, estimated_count, later};
use crate::dist::Dist;
use crate::plan::Arrivals;
use crate::rng::{Stream, StreamOwner, Use};
use crate::time::{FAR_NS, Nanos, SECOND};

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
            Gaps::Poisson(mean_ns) => Process::Poisson { stream, mean_ns: *mean_ns, fraction: 0 },
            Gaps::Shape(dist, factor) => {
                Process::Shape { stream, dist: Arc::clone(dist), factor: *factor, fraction: 0 }
            }
            Gaps::Curve(gaps) => Process::Curve(Box::new(AlongCurve::new(gaps, owner))),
        };
        let mut schedule = Schedule { process, i: 0, due_ns: 0 };
        schedule.due_ns = schedule.due();
        schedule
    }
}

/// When the requests of one client are due, as offsets from the start of the phase, in ascending order.
///
/// * Constant: request i of client k of C is due at (i + k/C) periods of C/rate seconds, calculated from i in whole
///   numbers and cut off to the nanosecond; nothing is summed.
/// * Poisson: exponential gaps of mean C/rate, the first one before the first request.
/// * Shape: gaps drawn from the distribution, below 0 as 0, times the factor that makes their mean C/rate.
/// * A rate that changes: the due time is where the integral of the rate reaches what the process asks for at a rate of 1: i C + k
///   requests for constant arrivals, C times the sum of gaps of mean 1 otherwise.
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
    /// The caller sets when the next request is due.
    SetByCaller,
}

impl Schedule {
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

    /// When the next request is due, in nanoseconds from the start of the phase; [`NEVER`](crate::time::NEVER) after
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
    /// `requests_max`. Constant arrivals are counted by arithmetic, whatever their number. Of drawn gaps at most
    /// `draws_max` are drawn; where those do not reach, the rest is estimated from the mean gap, and the schedule goes on
    /// behind `until_ns`. A schedule whose due times come from outside passes over nothing.
    pub fn pass(&mut self, until_ns: Nanos, requests_max: u64, draws_max: u64) -> Passed {
        let mean_ns = match &mut self.process {
            Process::SetByCaller => return Passed::default(),
            Process::Constant { period, clients, client } => {
                let before = period.count_before(until_ns).saturating_sub(u128::from(*client));
                let first = u64::try_from(before.div_ceil(u128::from(*clients))).unwrap_or(u64::MAX);
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
            Process::Poisson { stream, mean_ns, fraction } => {
                let gap_ns = Dist::Exponential { mean: *mean_ns }.draw(stream.draw(self.i));
                later(self.due_ns, fraction, gap_ns)
            }
            Process::Shape { stream, dist, factor, fraction } => {
                let gap_ns = dist.draw(stream.draw(self.i)).max(0.0) * *factor;
                later(self.due_ns, fraction, gap_ns)
            }
            Process::Curve(along) => along.due(self.i).max(self.due_ns),
            Process::SetByCaller => self.due_ns,
        }
    }
}
