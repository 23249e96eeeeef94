//! When requests are due: the schedule of one client, as arithmetic.
//!
//! Closed loop has no schedule; the three open ones are functions of the place of the client and the number of the
//! request, whoever asks and when.

use std::fmt;
use std::sync::Arc;

use crate::dist::Dist;
use crate::plan::Arrivals;
use crate::rng::{Place, Stream, Use};
use crate::time::{NEVER, Nanos, SECOND};

/// The least rate of a group in requests per second.
pub const RATE_MIN: f64 = 1e-6;

/// The greatest rate of a group in requests per second.
pub const RATE_MAX: f64 = 1e12;

/// Arrivals that cannot be scheduled.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Gaps of this shape cannot be scaled to fit a rate.
    Shape(Dist),
    /// No rate that can be kept.
    Rate(f64),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape(dist) => {
                write!(out, "gaps need a distribution with a mean above 0 that is not infinite, not '{dist}'")
            }
            Error::Rate(rate) => {
                write!(out, "a rate is between 1e-6 and 1e12 requests per second, not {rate}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Whether these arrivals can be scheduled: a shape needs a mean above 0 that is not infinite.
///
/// # Errors
/// Returns [`Error::Shape`] for a shape whose mean is 0 or infinite.
pub fn check(arrivals: &Arrivals) -> Result<(), Error> {
    match arrivals {
        Arrivals::Shape(dist) if dist.factor_to_mean(1.0).is_none() => Err(Error::Shape(dist.clone())),
        _ => Ok(()),
    }
}

/// Whether a group's rate in requests per second is one that can be kept.
///
/// # Errors
/// Returns [`Error::Rate`] for a rate below 1e-6 or above 1e12 requests per second.
pub fn check_rate(rate: f64) -> Result<(), Error> {
    if (RATE_MIN..=RATE_MAX).contains(&rate) { Ok(()) } else { Err(Error::Rate(rate)) }
}

/// What the schedules of a group's clients have in common; made once for a group, cheap to clone.
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
}

impl Pace {
    /// The mean time between two requests of one client.
    pub fn mean_gap_ns(group_rate: f64, clients: u64) -> Nanos {
        (clients as f64 * SECOND as f64 / group_rate) as Nanos
    }

    /// The pace of a group with this many clients that together make `group_rate` requests per second. The arrivals
    /// are open ones, and [`check`] and [`check_rate`] have passed.
    pub fn new(arrivals: &Arrivals, group_rate: f64, clients: u64) -> Pace {
        assert!(check_rate(group_rate).is_ok(), "rate {group_rate}");
        assert!(clients > 0, "a group without clients has no pace");
        let mean_ns = clients as f64 * SECOND as f64 / group_rate;
        let gaps = match arrivals {
            Arrivals::Closed => panic!("closed loop has no schedule"),
            Arrivals::Constant => Gaps::Constant(Ratio::period_ns(group_rate)),
            Arrivals::Poisson => Gaps::Poisson(mean_ns),
            Arrivals::Shape(dist) => {
                let factor = dist.factor_to_mean(mean_ns).expect("the shape was checked");
                Gaps::Shape(Arc::new(dist.clone()), factor)
            }
        };
        Pace { clients, gaps }
    }

    /// The schedule of one client, whose index in the group is `place.client`.
    pub fn schedule(&self, place: Place) -> Schedule {
        assert!(place.client < self.clients, "client {} of {}", place.client, self.clients);
        let stream = Stream::new(place, Use::Gap);
        let process = match &self.gaps {
            Gaps::Constant(period) => {
                Process::Constant { period: *period, clients: self.clients, client: place.client }
            }
            Gaps::Poisson(mean_ns) => Process::Poisson { stream, mean_ns: *mean_ns, fraction: 0 },
            Gaps::Shape(dist, factor) => {
                Process::Shape { stream, dist: Arc::clone(dist), factor: *factor, fraction: 0 }
            }
        };
        let mut schedule = Schedule { process, i: 0, due_ns: 0 };
        schedule.due_ns = schedule.due();
        schedule
    }
}

/// How many requests a schedule passed over without asking them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// All of them.
    pub requests: u64,
    /// Those of them that follow from the mean gap, and were not counted one by one or by exact arithmetic.
    pub estimated: u64,
}

impl Passed {
    /// A number that is exact.
    pub fn exactly(requests: u64) -> Passed {
        Passed { requests, estimated: 0 }
    }
}

/// How many gaps of this mean begin in a time, when the first of them begins with it: 1 and the number of gaps that fit.
/// A mean below [`GAP_MIN_NS`] counts as that.
pub fn estimated_count(time_ns: Nanos, mean_gap_ns: f64) -> u64 {
    // The conversion saturates.
    libm::round(time_ns as f64 / mean_gap_ns.max(GAP_MIN_NS)) as u64 + 1
}

/// The mean gap at [`RATE_MAX`], in nanoseconds.
pub const GAP_MIN_NS: f64 = SECOND as f64 / RATE_MAX;

/// When the requests of one client are due, as offsets from the start of the phase, in ascending order.
///
/// * Constant: request i of client k of C is due at (i + k/C) periods of C/rate seconds, calculated from i in whole
///   numbers and cut off to the nanosecond; nothing is summed.
/// * Poisson: exponential gaps of mean C/rate, the first one before the first request.
/// * Shape: gaps drawn from the distribution, below 0 as 0, times the factor that makes their mean C/rate.
///
/// Drawn gaps are summed in whole nanoseconds and 2^-64ths of one, so that the sum stays as exact as its parts.
#[derive(Clone, Debug)]
pub struct Schedule {
    process: Process,
    /// Number of the next request.
    i: u64,
    /// When it is due.
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
    /// Whoever asks a request says when the next one is due.
    Told,
}

impl Schedule {
    /// The schedule of client `client` of `clients`, for one that has no [`Pace`] to share. Draws come from `place`,
    /// the assignment of constant arrivals from `client`.
    pub fn new(arrivals: &Arrivals, group_rate: f64, client: u64, clients: u64, place: Place) -> Schedule {
        assert_eq!(client, place.client, "a client's place bears its index");
        Pace::new(arrivals, group_rate, clients).schedule(place)
    }

    /// A schedule whose first request is due at once, and each other one when [`Schedule::put_off`] says.
    pub fn told() -> Schedule {
        Schedule { process: Process::Told, i: 0, due_ns: 0 }
    }

    /// Whether [`Schedule::put_off`] says when its requests are due.
    pub fn is_told(&self) -> bool {
        matches!(self.process, Process::Told)
    }

    /// The next request is due so much later.
    pub fn put_off(&mut self, gap_ns: Nanos) {
        self.due_ns = self.due_ns.saturating_add(gap_ns);
    }

    /// A schedule on which nothing is due for the next 146 years.
    pub fn never() -> Schedule {
        let period = Ratio { whole: NEVER / 4, rest: 0, divisor: 1 };
        let process = Process::Constant { period, clients: 1, client: 1 };
        Schedule { process, i: 0, due_ns: NEVER / 4 }
    }

    /// When the next request is due, in nanoseconds from the start of the phase; [`NEVER`] after 584 years.
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

    /// Passes over every request that is due before `until_ns` (from the start of the phase), but over at most
    /// `requests_max`. Constant arrivals are counted by arithmetic, whatever their number. Of drawn gaps at most
    /// `draws_max` are drawn; where those do not reach, the rest is estimated from the mean gap, and the schedule goes on
    /// behind `until_ns`. A schedule that is told when its requests are due passes over nothing.
    pub fn pass(&mut self, until_ns: Nanos, requests_max: u64, draws_max: u64) -> Passed {
        let mean_ns = match &self.process {
            Process::Told => return Passed::default(),
            Process::Constant { period, clients, client } => {
                let before = period.count_before(until_ns).saturating_sub(u128::from(*client));
                let first = u64::try_from(before.div_ceil(u128::from(*clients))).unwrap_or(u64::MAX);
                let requests = first.saturating_sub(self.i).min(requests_max);
                self.i += requests;
                self.due_ns = self.due();
                return Passed::exactly(requests);
            }
            Process::Poisson { mean_ns, .. } => *mean_ns,
            Process::Shape { dist, factor, .. } => dist.mean_from_zero() * *factor,
        };
        let mut passed = Passed::default();
        while passed.requests < requests_max && self.due_ns < until_ns {
            if passed.requests == draws_max {
                let all = estimated_count(until_ns - self.due_ns, mean_ns);
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
            Process::Told => self.due_ns,
        }
    }
}

/// `time` and `fraction` 2^-64ths of a nanosecond, moved on by `gap_ns`, which is not negative.
fn later(time: Nanos, fraction: &mut u64, gap_ns: f64) -> Nanos {
    let whole = gap_ns as u64;
    let part = ((gap_ns - whole as f64) * (1u128 << 64) as f64) as u64;
    let (sum, carry) = fraction.overflowing_add(part);
    *fraction = sum;
    time.saturating_add(whole).saturating_add(u64::from(carry))
}

/// A number of nanoseconds as `whole` + `rest` / `divisor`, without any rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    whole: u64,
    rest: u64,
    divisor: u64,
}

impl Ratio {
    /// One second divided by the exact value of `rate`, which lies between [`RATE_MIN`] and [`RATE_MAX`].
    fn period_ns(rate: f64) -> Ratio {
        // rate = mantissa * 2^exponent, with an odd mantissa; IEEE 754's layout of a normal number.
        let bits = rate.to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let assignment = mantissa.trailing_zeros();
        let mantissa = mantissa >> assignment;
        let exponent = ((bits >> 52) & 0x7FF) as i64 - 1075 + i64::from(assignment);
        // At RATE_MIN the exponent is -72, at RATE_MAX below 40: both products fit.
        let (dividend, divisor) = if exponent < 0 {
            (u128::from(SECOND) << -exponent, mantissa)
        } else {
            (u128::from(SECOND), mantissa << exponent)
        };
        let whole = (dividend / u128::from(divisor)) as u64;
        let rest = (dividend % u128::from(divisor)) as u64;
        Ratio { whole, rest, divisor }
    }

    /// How many of its multiples, from 0 times on, are below `time_ns` when they are cut off to whole nanoseconds.
    fn count_before(&self, time_ns: Nanos) -> u128 {
        // Cut off, a multiple is below a whole number exactly when it is so uncut. The dividend is 10^9 * 2^72 at most.
        let dividend = u128::from(self.whole) * u128::from(self.divisor) + u128::from(self.rest);
        (u128::from(time_ns) * u128::from(self.divisor)).div_ceil(dividend)
    }

    /// The product with `count` (below 2^75), cut off to whole nanoseconds; [`NEVER`] where it does not fit.
    fn times(&self, count: u128) -> Nanos {
        let mut product = count * u128::from(self.whole);
        if self.rest > 0 {
            product += count * u128::from(self.rest) / u128::from(self.divisor);
        }
        Nanos::try_from(product).unwrap_or(NEVER)
    }
}
