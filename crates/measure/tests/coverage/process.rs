//! Streams of requests whose times have a known distribution: queues, slow drifts and freezes.

use pummel_logic::rng::{Stream, mix, unit};
use pummel_logic::time::{Nanos, SECOND};

/// Way in which requests get their times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// Queue of one server with exponential service times and Poisson arrivals, which is busy for this share of the
    /// time.
    Queue(f64),
    /// Queue of one server with this constant service time in seconds and Poisson arrivals.
    Steady(f64),
    /// The logarithm of times wanders, with this memory in seconds: an autoregressive process of first order.
    Wandering(f64),
    /// Freezes: everything stands still for the first time in seconds, and goes on for the second one in the mean
    /// before the next freeze.
    Frozen(f64, f64),
}

/// A stream of requests: a process and its rate.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub process: Process,
    /// Requests per second in the mean.
    pub rate: f64,
    /// Length of the measured phase, in nanoseconds.
    pub length_ns: Nanos,
}

/// A request: the time at which it came, and the time that it took, in nanoseconds.
pub type Arrival = (Nanos, Nanos);

/// Spread of the logarithm of wandering times.
const WANDERING_SD: f64 = 0.5;

/// The middle of wandering times, in seconds.
const WANDERING_MIDDLE_S: f64 = 200e-6;

/// The mean of the exponential times that requests take where nothing is frozen, in seconds.
const AWAKE_S: f64 = 100e-6;

/// The eight processes with which the method was chosen, with their names.
pub const PROCESSES: [(&str, Process); 8] = [
    ("M/M/1 0.5", Process::Queue(0.5)),
    ("M/M/1 0.8", Process::Queue(0.8)),
    ("M/M/1 0.9", Process::Queue(0.9)),
    ("M/M/1 0.95", Process::Queue(0.95)),
    ("AR(1) 50 ms", Process::Wandering(0.05)),
    ("AR(1) 0.5 s", Process::Wandering(0.5)),
    ("freezes 20 ms, 1/s", Process::Frozen(0.02, 0.98)),
    ("freezes 50 ms, 1/3.3 s", Process::Frozen(0.05, 3.28)),
];

/// Draws one after the other.
struct Draws {
    stream: Stream,
    next: u64,
}

impl Draws {
    fn new(seed: u64, purpose: u64) -> Draws {
        Draws { stream: Stream::from_seed(mix(&[seed, purpose])), next: 0 }
    }

    fn unit(&mut self) -> f64 {
        self.next += 1;
        unit(self.stream.draw(self.next))
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// A normal draw, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (length, angle) = (self.exponential(1.0), self.unit() * std::f64::consts::TAU);
        libm::sqrt(2.0 * length) * libm::cos(angle)
    }
}

impl Traffic {
    /// Gives each request of the run with this seed to `take`, in the order of their arrivals. The process is in its
    /// steady state when the measured phase begins.
    pub fn run(&self, seed: u64, mut take: impl FnMut(Arrival)) {
        let mut gaps = Draws::new(seed, 1);
        let mut times = Draws::new(seed, 2);
        let length_s = self.length_ns as f64 / SECOND as f64;
        let gap_s = 1.0 / self.rate;
        let mut state = State::begin(self.process, self.rate, &mut times);
        let mut now_s = -state.settling_s;
        loop {
            let gap = gaps.exponential(gap_s);
            now_s += gap;
            if now_s >= length_s {
                return;
            }
            let time_s = state.next(now_s, gap, &mut times);
            if now_s >= 0.0 {
                take(((now_s * 1e9) as Nanos, (time_s * 1e9) as Nanos));
            }
        }
    }

    /// The true quantile of the times, in nanoseconds.
    pub fn quantile(&self, quantile: f64) -> f64 {
        1e9 * match self.process {
            Process::Queue(load) => -libm::log(1.0 - quantile) * load / self.rate / (1.0 - load),
            Process::Steady(service_s) => {
                let load = self.rate * service_s;
                service_s * falling_root(|units| steady_above(units, load) - (1.0 - quantile))
            }
            Process::Wandering(_) => WANDERING_MIDDLE_S * libm::exp(WANDERING_SD * normal_quantile(quantile)),
            Process::Frozen(frozen_s, between_s) => {
                let share = frozen_s / (frozen_s + between_s);
                let above = |time_s: f64| {
                    share * frozen_above(time_s, frozen_s) + (1.0 - share) * libm::exp(-time_s / AWAKE_S)
                };
                falling_root(|time_s| above(time_s) - (1.0 - quantile))
            }
        }
    }
}

/// The probability that the rest of a freeze and an exponential time together are longer than `time_s`.
fn frozen_above(time_s: f64, frozen_s: f64) -> f64 {
    let tail = |from_s: f64| libm::exp(-from_s.max(0.0) / AWAKE_S);
    if time_s <= frozen_s {
        (frozen_s - time_s) / frozen_s + AWAKE_S / frozen_s * (1.0 - tail(time_s))
    } else {
        AWAKE_S / frozen_s * (tail(time_s - frozen_s) - tail(time_s))
    }
}

/// The probability that a response at a queue with constant service takes longer than `units` services, by Erlang's
/// series, which is exact enough in this arithmetic below twenty services.
fn steady_above(units: f64, load: f64) -> f64 {
    let wait = units - 1.0;
    if wait < 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 0..=wait as u32 {
        let x = load * (f64::from(k) - wait);
        let factorial: f64 = (1..=k).map(f64::from).product();
        sum += x.powi(k as i32) / factorial * libm::exp(-x);
    }
    1.0 - (1.0 - load) * sum
}

/// Root of a falling function of seconds.
fn falling_root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

/// The quantile of the normal distribution.
fn normal_quantile(quantile: f64) -> f64 {
    let above = |z: f64| 0.5 * libm::erfc(z / std::f64::consts::SQRT_2) - (1.0 - quantile);
    falling_root(|shifted| above(shifted - 5.0)) - 5.0
}

/// State of a process.
struct State {
    process: Process,
    /// Time that the process runs before its steady state is reached, in seconds.
    settling_s: f64,
    /// The mean service time, in seconds.
    service_s: f64,
    /// Time at which the server is free, in seconds.
    free_s: f64,
    /// The wandering value, normally distributed.
    value: f64,
    /// The last freeze, or the next one: its beginning and its end, in seconds.
    freeze_s: (f64, f64),
}

impl State {
    fn begin(process: Process, rate: f64, times: &mut Draws) -> State {
        let mut state = State {
            process,
            settling_s: 0.0,
            service_s: 0.0,
            free_s: f64::MIN,
            value: 0.0,
            freeze_s: (0.0, 0.0),
        };
        match process {
            Process::Queue(load) => {
                state.service_s = load / rate;
                state.settling_s = 200.0 * state.service_s / (1.0 - load) / (1.0 - load);
            }
            Process::Steady(service_s) => {
                state.service_s = service_s;
                let idle = (1.0 - rate * service_s).max(0.02);
                state.settling_s = 200.0 * service_s / idle / idle;
            }
            Process::Wandering(_) => state.value = times.normal(),
            Process::Frozen(frozen_s, between_s) => {
                // The phase begins at a random moment: in a freeze, or so long before the next one.
                let from_s = if times.unit() < frozen_s / (frozen_s + between_s) {
                    -times.unit() * frozen_s
                } else {
                    times.exponential(between_s)
                };
                state.freeze_s = (from_s, from_s + frozen_s);
            }
        }
        state
    }

    /// The time of a request that comes at `now_s`, `gap_s` after the one before it.
    fn next(&mut self, now_s: f64, gap_s: f64, times: &mut Draws) -> f64 {
        match self.process {
            Process::Queue(_) => {
                self.free_s = self.free_s.max(now_s) + times.exponential(self.service_s);
                self.free_s - now_s
            }
            Process::Steady(_) => {
                self.free_s = self.free_s.max(now_s) + self.service_s;
                self.free_s - now_s
            }
            Process::Wandering(memory_s) => {
                let kept = libm::exp(-gap_s / memory_s);
                self.value = kept * self.value + libm::sqrt(1.0 - kept * kept) * times.normal();
                WANDERING_MIDDLE_S * libm::exp(WANDERING_SD * self.value)
            }
            Process::Frozen(frozen_s, between_s) => {
                while now_s >= self.freeze_s.1 {
                    let from_s = self.freeze_s.1 + times.exponential(between_s);
                    self.freeze_s = (from_s, from_s + frozen_s);
                }
                let rest_s = if now_s >= self.freeze_s.0 { self.freeze_s.1 - now_s } else { 0.0 };
                rest_s + times.exponential(AWAKE_S)
            }
        }
    }
}
