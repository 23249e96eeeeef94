//! Service times of the built-in server: a drawn time, which may drift, behind a queue that all connections share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use pummel_logic::dist::Dist;
use pummel_logic::rng::Stream;
use pummel_logic::time::{Nanos, from_seconds, seconds};

/// Most parallel servers of one queue.
pub const QUEUE_SERVERS_MAX: u32 = 1024;

/// A change of service times with time. Time runs from the first request of the server on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceDrift {
    /// `step:FACTOR,AFTER`: service times are multiplied by FACTOR from AFTER on.
    Step {
        /// Factor of the times after the change, above 0.
        factor: f64,
        /// The time of the change, in nanoseconds.
        after_ns: Nanos,
    },
    /// `decay:FACTOR,TAU`: service times are multiplied by `1 + (FACTOR - 1) exp(-t / TAU)`.
    Decay {
        /// Factor of the first time, above 0.
        factor: f64,
        /// The time in which the surplus falls to 37 %, in nanoseconds, above 0.
        tau_ns: Nanos,
    },
}

/// The forms of a drift, as messages name them.
pub const DRIFT_FORMS: &str = "step:FACTOR,AFTER or decay:FACTOR,TAU";

impl ServiceDrift {
    /// Factor of service times at this age, counted from the first request.
    pub fn factor(self, age_ns: Nanos) -> f64 {
        match self {
            ServiceDrift::Step { after_ns, .. } if age_ns < after_ns => 1.0,
            ServiceDrift::Step { factor, .. } => factor,
            ServiceDrift::Decay { factor, tau_ns } => {
                1.0 + (factor - 1.0) * libm::exp(-(age_ns as f64) / tau_ns as f64)
            }
        }
    }
}

impl fmt::Display for ServiceDrift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ServiceDrift::Step { factor, after_ns } => write!(out, "step:{factor},{}", seconds(after_ns)),
            ServiceDrift::Decay { factor, tau_ns } => write!(out, "decay:{factor},{}", seconds(tau_ns)),
        }
    }
}

impl FromStr for ServiceDrift {
    type Err = String;

    /// Reads `step:FACTOR,SECONDS` or `decay:FACTOR,SECONDS`.
    ///
    /// # Errors
    /// Returns a sentence that says which forms and numbers are accepted.
    fn from_str(text: &str) -> Result<ServiceDrift, String> {
        let wrong = || {
            format!(
                "expected {DRIFT_FORMS}, with a FACTOR from 0.001 to 1000 and a time above 0, such as step:1.3,5s"
            )
        };
        let (kind, numbers) = text.split_once(':').ok_or_else(wrong)?;
        let (factor, span) = numbers.split_once(',').ok_or_else(wrong)?;
        let factor: f64 = factor.parse().map_err(|_| wrong())?;
        let span_s: f64 = span.parse().map_err(|_| wrong())?;
        let is_span = span_s > 0.0 && span_s < 1e9;
        if !(0.001..=1000.0).contains(&factor) || !is_span {
            return Err(wrong());
        }
        let span_ns = from_seconds(span_s).max(1);
        match kind {
            "step" => Ok(ServiceDrift::Step { factor, after_ns: span_ns }),
            "decay" => Ok(ServiceDrift::Decay { factor, tau_ns: span_ns }),
            _ => Err(wrong()),
        }
    }
}

/// Parallel servers behind one queue, in the order of arrivals: with Poisson arrivals, M/G/K.
#[derive(Clone, Debug)]
pub(super) struct ServiceQueue {
    /// Times at which the servers are free again, in nanoseconds; as many entries as there are servers.
    free_at: BinaryHeap<Reverse<Nanos>>,
}

impl ServiceQueue {
    pub(super) fn new(servers: u32) -> ServiceQueue {
        assert!((1..=QUEUE_SERVERS_MAX).contains(&servers), "a queue of {servers} servers");
        ServiceQueue { free_at: (0..servers).map(|_| Reverse(0)).collect() }
    }

    /// Takes in a request that needs `service_ns`. Requests come in the order of `arrived`. Returns the time for which
    /// the request waits before a server begins with it, in nanoseconds.
    pub(super) fn admit(&mut self, arrived: Nanos, service_ns: Nanos) -> Nanos {
        let mut next = self.free_at.peek_mut().expect("there is at least one server");
        let begin = next.0.max(arrived);
        *next = Reverse(begin.saturating_add(service_ns));
        begin - arrived
    }
}

/// The time that a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceTime {
    /// Time for which the request waits for a server, in nanoseconds; `None` where there is no queue.
    pub(super) queued_ns: Option<Nanos>,
    /// Time for which a server works on the request, in nanoseconds.
    pub(super) asked_ns: Nanos,
}

impl ServiceTime {
    /// Sum of both times, in nanoseconds.
    pub(super) fn whole_ns(self) -> Nanos {
        self.queued_ns.unwrap_or(0).saturating_add(self.asked_ns)
    }
}

/// Draws the times of requests.
#[derive(Debug)]
pub(super) struct Service {
    time: Option<Dist>,
    chance: Stream,
    drift: Option<ServiceDrift>,
    queue: Option<ServiceQueue>,
    /// Time at which the first request came, in nanoseconds.
    began: Option<Nanos>,
}

impl Service {
    /// Draws service times from `time`, in seconds, changed by `drift`, behind a queue with this number of servers.
    /// Replies are not held where `time` is `None`.
    pub(super) fn new(
        time: Option<Dist>,
        seed: u64,
        drift: Option<ServiceDrift>,
        servers: Option<u32>,
    ) -> Service {
        let queue = servers.map(ServiceQueue::new);
        Service { time, chance: Stream::from_seed(seed), drift, queue, began: None }
    }

    /// The times of request `number`, which came at `now` and is carried out.
    pub(super) fn take(&mut self, number: u64, now: Nanos) -> ServiceTime {
        let Some(time) = &self.time else { return ServiceTime::default() };
        let began = *self.began.get_or_insert(now);
        let drawn_s = time.draw(self.chance.draw(number));
        let factor = self.drift.map_or(1.0, |drift| drift.factor(now.saturating_sub(began)));
        let asked_ns = from_seconds(drawn_s * factor);
        let queued_ns = self.queue.as_mut().map(|queue| queue.admit(now, asked_ns));
        ServiceTime { queued_ns, asked_ns }
    }

    /// The times of a request that is not carried out, which takes no server's time.
    pub(super) fn spare(&self) -> ServiceTime {
        ServiceTime { queued_ns: self.queue.as_ref().map(|_| 0), asked_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::unit;
    use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};

    /// The waits in units of the mean service time, and the mean of waits and service, of `count` Poisson arrivals at
    /// `load` of `servers`.
    fn waits(servers: u32, load: f64, service: &str, count: u64) -> Vec<f64> {
        let mean_s = 0.001;
        let dist: Dist = service.parse().expect("a distribution");
        let mut service = Service::new(Some(dist), 11, None, Some(servers));
        let gaps = Stream::from_seed(12);
        let mut arrived_s = 0.0;
        let mut waits = Vec::new();
        for number in 0..count {
            arrived_s -= libm::log(1.0 - unit(gaps.draw(number))) * mean_s / (load * f64::from(servers));
            let time = service.take(number, from_seconds(arrived_s));
            waits.push(seconds(time.queued_ns.expect("there is a queue")) / mean_s);
        }
        waits
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// Erlang's C formula: the share of requests that wait at `servers` servers with exponential service.
    fn erlang_c(servers: u32, load: f64) -> f64 {
        let offered = load * f64::from(servers);
        let blocked = (1..=servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
        blocked / (1.0 - load * (1.0 - blocked))
    }

    #[test]
    fn the_formula_of_erlang_is_that_of_the_tables() {
        assert!((erlang_c(1, 0.8) - 0.8).abs() < 1e-12);
        assert!((erlang_c(2, 0.75) - 0.642_857).abs() < 1e-6);
        assert!((erlang_c(4, 0.5) - 0.173_913).abs() < 1e-6);
    }

    #[test]
    fn exponential_service_behind_a_queue_waits_as_erlang_says() {
        for (servers, load) in [(1, 0.5), (1, 0.8), (2, 0.7), (4, 0.8), (16, 0.9)] {
            let waits = waits(servers, load, "exponential:0.001", 400_000);
            let waiting =
                |above: f64| waits.iter().filter(|wait| **wait > above).count() as f64 / waits.len() as f64;
            let c = erlang_c(servers, load);
            for above in [0.0, 0.5, 1.0, 2.0] {
                let expected = c * libm::exp(-f64::from(servers) * (1.0 - load) * above);
                let seen = waiting(above);
                assert!(
                    (seen - expected).abs() < 0.02,
                    "{servers} servers at {load}: {seen} wait longer than {above}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn fixed_service_behind_one_server_is_an_m_d_1_queue() {
        // Mean response times less the service time, from Pollaczek and Khinchine.
        for (load, expected) in [(0.3, 0.2143), (0.5, 0.5), (0.8, 2.0)] {
            let seen = mean(&waits(1, load, "0.001", 400_000));
            assert!((seen / expected - 1.0).abs() < 0.06, "load {load}: {seen}, expected {expected}");
        }
    }

    #[test]
    fn a_request_waits_for_the_first_server_that_is_free() {
        let mut queue = ServiceQueue::new(2);
        assert_eq!(queue.admit(0, 10), 0);
        assert_eq!(queue.admit(1, 100), 0);
        assert_eq!(queue.admit(2, 10), 8);
        assert_eq!(queue.admit(3, 10), 17);
        assert_eq!(queue.admit(500, 10), 0);
    }

    #[test]
    fn a_request_that_is_not_carried_out_keeps_no_server_busy() {
        let mut service = Service::new(Some(Dist::Fixed(0.001)), 0, None, Some(1));
        assert_eq!(service.take(1, 0).whole_ns(), MILLISECOND);
        assert_eq!(service.spare(), ServiceTime { queued_ns: Some(0), asked_ns: 0 });
        let second = service.take(2, 200 * MICROSECOND);
        assert_eq!(second, ServiceTime { queued_ns: Some(800 * MICROSECOND), asked_ns: MILLISECOND });
    }

    #[test]
    fn a_step_changes_times_from_its_moment_on_after_the_first_request() {
        let drift: ServiceDrift = "step:1.3,2".parse().unwrap();
        let mut service = Service::new(Some(Dist::Fixed(0.001)), 0, Some(drift), None);
        let begin = 7 * SECOND;
        let mut at = |after_ns: Nanos| service.take(0, begin + after_ns).asked_ns;
        assert_eq!(at(0), MILLISECOND);
        assert_eq!(at(2 * SECOND - 1), MILLISECOND);
        assert_eq!(at(2 * SECOND), 1_300 * MICROSECOND);
        assert_eq!(at(9 * SECOND), 1_300 * MICROSECOND);
    }

    #[test]
    fn a_decay_falls_to_the_drawn_times() {
        let drift: ServiceDrift = "decay:2,2".parse().unwrap();
        assert!((drift.factor(0) - 2.0).abs() < 1e-12);
        assert!((drift.factor(2 * SECOND) - 1.367_879).abs() < 1e-6);
        assert!((drift.factor(60 * SECOND) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn drifts_are_read_and_written_alike_and_others_are_refused() {
        for text in ["step:1.3,5", "step:0.5,0.25", "decay:2,2"] {
            assert_eq!(text.parse::<ServiceDrift>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "step",
            "step:1.3",
            "step:0,5",
            "step:1.3,0",
            "decay:nan,1",
            "ramp:2,1",
            "step:1,x",
            "decay:2,inf",
        ] {
            let words = text.parse::<ServiceDrift>().unwrap_err();
            assert!(words.contains("step:FACTOR,AFTER"), "{text}: {words}");
        }
    }
}
