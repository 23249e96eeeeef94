//! Laws of queues that every run has to obey: a disagreement shows where the error is.

use super::limit::{Case, Judged};
use super::littles_law::little;
use super::recorder::Span;
use pummel_logic::plan::{Arrivals, Depth};
use pummel_logic::time::Nanos;

/// The waits of the requests beside those that the formula of Pollaczek and Khinchine predicts for one slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// Mean wait, in nanoseconds.
    pub measured_ns: f64,
    /// Mean wait of a queue with Poisson arrivals, one server and these times of lag + service, in nanoseconds.
    pub predicted_ns: f64,
}

impl Waits {
    /// The waits of a run whose clients have depth 1 and Poisson arrivals at one rate; absent for others, and where a slot was asked
    /// for more than it can do, since such a queue has no mean wait.
    ///
    /// W = lambda E\[S^2\] / (2 (1 - lambda E\[S\])), S = lag + service, lambda the rate of one client (Kleinrock,
    /// Queueing Systems I, 5.6). Lag and service are taken to be independent of each other.
    pub fn of(case: &Case<'_>) -> Option<Waits> {
        let [group] = case.plan.groups.as_slice() else { return None };
        let is_such = group.arrivals == Arrivals::Poisson
            && group.depth == Depth::Limit(1)
            && group.churn.is_none()
            && case.plan.changes.is_nothing();
        let wait = case.moments(Span::Wait);
        if !is_such || wait.count == 0 || case.measurement.measured_ns == 0 {
            return None;
        }
        let requests = wait.count as f64;
        let taken_ns = case.slots_taken() * case.measured_ns as f64;
        let lag_ns = case.sum(Span::Lag) / requests;
        let service_ns = taken_ns / requests - lag_ns;
        let (lag_squares, service_squares) = case.squares();
        let mean_square = (lag_squares + service_squares) / requests + 2.0 * lag_ns * service_ns;
        let lambda = requests / (f64::from(group.clients) * case.measurement.measured_ns as f64);
        let load = lambda * (lag_ns + service_ns);
        let predicted_ns = lambda * mean_square / (2.0 * (1.0 - load));
        (load < 1.0).then_some(Waits { measured_ns: wait.sum as f64 / requests, predicted_ns })
    }

    /// The measured wait by the predicted one; 1 where both are nothing.
    pub fn ratio(&self) -> f64 {
        if self.predicted_ns > 0.0 { self.measured_ns / self.predicted_ns } else { 1.0 }
    }
}

/// The line of one queue through the mean response times of runs at several rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueFit {
    /// Time that one request takes the queue's server, in nanoseconds.
    pub service_ns: f64,
    /// Squared coefficient of variation of that time: 0 constant, 1 exponential.
    pub variation: f64,
    /// Greatest distance of a run from the line, as a share of its mean response.
    pub error: f64,
}

/// Fewest runs that a line of two unknowns is drawn through.
const FIT_POINTS_MIN: usize = 4;

/// Steps of the search for the service time of a fit.
const FIT_STEPS: u32 = 2_000;

impl QueueFit {
    /// The line E\[R\] = s + lambda s^2 (1 + c2) / (2 (1 - lambda s)) with the least sum of squared relative errors; `points`
    /// are rates in requests per second with mean responses in nanoseconds. Absent for fewer than four points.
    pub fn of(points: &[(f64, f64)]) -> Option<QueueFit> {
        let greatest = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
        let shortest_ns = points.iter().map(|(_, mean_ns)| *mean_ns).fold(f64::INFINITY, f64::min);
        if points.len() < FIT_POINTS_MIN || greatest <= 0.0 || shortest_ns <= 0.0 {
            return None;
        }
        // A queue is not asked for more than it can do, and no response is shorter than its service.
        let bound_ns = shortest_ns.min(0.999 * 1e9 / greatest);
        let tried = (1..=FIT_STEPS).map(|step| bound_ns * f64::from(step) / f64::from(FIT_STEPS));
        let fits = tried.map(|service_ns| QueueFit::with(points, service_ns));
        let best = fits.min_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map(|(_, fit)| fit)
    }

    /// The best line of this service time, and the sum of its squared relative errors.
    fn with(points: &[(f64, f64)], service_ns: f64) -> (f64, QueueFit) {
        let wait_ns = |rate: f64| {
            let lambda = rate / 1e9;
            lambda * service_ns * service_ns / (2.0 * (1.0 - lambda * service_ns))
        };
        // Least squares of (mean - s) / mean on wait / mean, whose factor is 1 + c2, at least 1.
        let sum =
            |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(rate, mean)| of(*rate, *mean)).sum::<f64>();
        let both = sum(&|rate, mean| (mean - service_ns) / mean * wait_ns(rate) / mean);
        let own = sum(&|rate, mean| (wait_ns(rate) / mean) * (wait_ns(rate) / mean));
        let factor = if own > 0.0 { (both / own).max(1.0) } else { 1.0 };
        let errors = |rate: f64, mean: f64| (service_ns + factor * wait_ns(rate) - mean) / mean;
        let worst = points.iter().map(|(rate, mean)| errors(*rate, *mean).abs()).fold(0.0, f64::max);
        let squares = sum(&|rate, mean| errors(rate, mean) * errors(rate, mean));
        (squares, QueueFit { service_ns, variation: factor - 1.0, error: worst })
    }
}

/// Requests from which on Little's law is judged.
pub const LITTLE_REQUESTS_MIN: u64 = 10_000;

/// The greatest disagreement with Little's law where the instrument works.
const LITTLE_ERROR_MAX: f64 = 0.01;

/// The share by which the two accounts of Little's law disagree, where they have to agree: with 10,000 requests or more,
/// of which none is without an answer. Absent elsewhere.
pub fn little_error(case: &Case<'_>) -> Option<Judged> {
    let accounts = little(case.measurement)?;
    let is_judged = accounts.requests >= LITTLE_REQUESTS_MIN && case.all.counts.unanswered() == 0;
    let value = || accounts.disagreement_percent() / 100.0;
    is_judged.then(|| Judged { value: value(), bound: LITTLE_ERROR_MAX })
}

/// A time as words for a formula's result, which is no whole number of nanoseconds.
pub(super) fn rounded_ns(ns: f64) -> Nanos {
    if ns.is_finite() && ns > 0.0 { libm::round(ns) as Nanos } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, closed, quiet};
    use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};

    fn waits_of(run: &Scenario) -> Option<Waits> {
        let (measurement, plan) = (run.measurement(), run.plan());
        Waits::of(&Case::of(&measurement, &plan, &measurement.ops().all()))
    }

    #[test]
    fn waits_behind_a_steady_service_are_those_of_the_formula() {
        // M/D/1 at loads of 0.3, 0.5 and 0.7 on each of ten slots: waits of 0.214, 0.5 and 1.167 services.
        for (load, wait) in [(0.3, 0.2143), (0.5, 0.5), (0.7, 1.1667)] {
            let service = MILLISECOND - 3 * MICROSECOND;
            let rate = Some(10.0 * load * 1_000.0);
            let run = Scenario { service, rate, length: 20 * SECOND, ..quiet() };
            let waits = waits_of(&run).expect("Poisson, depth 1");
            assert!((waits.predicted_ns / 1e6 / wait - 1.0).abs() < 0.05, "load {load}: {waits:?}");
            assert!((waits.ratio() - 1.0).abs() < 0.1, "load {load}: {waits:?}");
        }
    }

    #[test]
    fn the_formula_is_not_asked_where_it_does_not_hold() {
        assert_eq!(waits_of(&closed()), None);
        assert_eq!(waits_of(&Scenario { depth: 2, ..quiet() }), None);
        let too_much = Scenario { connections: 2, service: 5 * MILLISECOND, ..quiet() };
        assert_eq!(waits_of(&too_much), None, "a queue that is asked for too much has no mean wait");
    }

    #[test]
    fn a_fit_finds_the_queue_that_the_points_are_from() {
        for (service_ns, variation) in [(20_000.0, 0.0), (20_000.0, 1.0), (5_000.0, 4.0)] {
            let point = |load: f64| {
                let wait = load * service_ns * (1.0 + variation) / (2.0 * (1.0 - load));
                (load / service_ns * 1e9, service_ns + wait)
            };
            let points = [0.1, 0.3, 0.5, 0.7, 0.9].map(point);
            let fit = QueueFit::of(&points).expect("five points");
            assert!((fit.service_ns / service_ns - 1.0).abs() < 0.01, "{fit:?}");
            assert!((fit.variation - variation).abs() < 0.1 && fit.error < 0.02, "{fit:?}");
            assert_eq!(QueueFit::of(&points[..3]), None);
        }
        // A response that does not grow is no queue: all of it is service, of a server that is never busy.
        assert_eq!(QueueFit::of(&[(0.0, 1.0); 5]), None);
    }

    #[test]
    fn littles_law_is_judged_where_it_has_to_hold() {
        let error = |run: &Scenario, share: f64| {
            let mut measurement = run.measurement();
            let all = measurement.ops().all();
            let sum = |span| all.times.of(span).moments().sum as f64;
            let area_ns = (sum(Span::Service) + sum(Span::Reaction)) * share;
            measurement.flight.requests = all.counts.requests();
            measurement.flight.area_ns = area_ns as u128;
            little_error(&Case::of(&measurement, &run.plan(), &all)).map(|error| error.value)
        };
        let many = Scenario { rate: Some(5_000.0), ..quiet() };
        assert!(error(&many, 1.0).expect("20,000 requests") < 1e-6);
        assert!((error(&many, 0.97).expect("20,000 requests") - 0.03).abs() < 1e-6);
        assert_eq!(error(&quiet(), 0.5), None, "4,000 requests are too few");
        let lost = Scenario { frozen: (SECOND, SECOND), timeout: 20 * MILLISECOND, ..many };
        assert_eq!(error(&lost, 0.5), None, "requests without an answer are not timed");
    }
}
