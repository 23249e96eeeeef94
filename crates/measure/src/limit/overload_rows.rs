//! The row of the table of limits about a load that is more than what was answered, from the beginning to the end.

use super::case::Case;
use super::cause::Cause;
use crate::compare::{mean, variance};
use crate::recorder::Span;
use crate::uncertainty::steadiness::has_constant_load;
use crate::uncertainty::{KEPT, Window};
use pummel_logic::plan::{Arrivals, Late};
use pummel_logic::protocol::Fault;
use pummel_logic::time::seconds;

/// The parts of a run whose rates are compared.
const PARTS: usize = 8;
/// The two-sided 95 % quantile of Student's distribution for the mean of so many parts.
const STUDENT: f64 = 2.365;
/// Share of the asked rate that the upper bound of a rate must reach to count as carried.
const CARRIED_SHARE: f64 = 0.99;
/// Least growth of the backlog after 6 and 8 parts where a queue grows: an even one is larger by a third after 8 parts
/// than after 6, and by a half after 6 than after 4.
const GROWTH: f64 = 1.15;
/// Least factor between the mean responses of the last and the first part where requests queue.
const SLOWER: f64 = 1.5;
/// Greatest share of error replies among the requests of a queue.
const ERRORS_SHARE: f64 = 0.01;

/// A load that was not answered as fast as it was asked, so that its backlog grew to the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// Requests per second that were due.
    pub asked: f64,
    /// Requests per second that were answered once the queue stood.
    pub answered: f64,
    /// Requests that were due within the run and not answered in it.
    pub backlog: u64,
}

/// One part of a run: its answered requests, and the sum of their response times.
#[derive(Clone, Copy, Debug, Default)]
struct PartOfRun {
    answered: u64,
    response_ns: u64,
}

impl PartOfRun {
    fn of(windows: &[&Window]) -> Option<PartOfRun> {
        let response = KEPT.iter().position(|span| *span == Span::Response)?;
        let mut part = PartOfRun::default();
        for window in windows {
            let answered: u64 = window.ops().map(|op| op.completed).sum();
            // A time without replies is that of a server that stands still.
            if answered == 0 {
                return None;
            }
            part.answered += answered;
            part.response_ns =
                window.ops().map(|op| op.times[response].sum_ns).fold(part.response_ns, u64::saturating_add);
        }
        Some(part)
    }

    fn mean_response_ns(&self) -> f64 {
        self.response_ns as f64 / self.answered.max(1) as f64
    }
}

impl Overload {
    /// The overload of a run; absent where there is none, where it is not known, and where the load changes by plan.
    pub fn of(case: &Case<'_>) -> Option<Overload> {
        let measured_ns = case.measurement.measured_ns;
        let is_open = |arrivals: &Arrivals| *arrivals != Arrivals::Closed;
        let is_asked = case.plan.groups.iter().all(|group| {
            is_open(&group.arrivals) && group.churn.is_none() && group.policy.late == Late::Kept
        });
        let replied = case.all.counts.failed() - case.all.counts.errors(Fault::Timeout);
        let requests = case.all.counts.requests();
        let has_errors = replied as f64 > ERRORS_SHARE * requests as f64;
        if !is_asked || !has_constant_load(case.plan) || has_errors || measured_ns == 0 {
            return None;
        }
        let windows = case.measurement.windows.as_ref()?;
        // The last window holds what ended in the drain, and may be a short one.
        let whole = (measured_ns / windows.length_ns()) as usize;
        let length = whole.checked_sub(1)? / PARTS;
        if length == 0 {
            return None;
        }
        let all: Vec<&Window> = windows.iter().take(length * PARTS).collect();
        let parts = all.chunks(length).map(PartOfRun::of).collect::<Option<Vec<PartOfRun>>>()?;
        if parts.len() < PARTS {
            return None;
        }
        let part_s = seconds(windows.length_ns()) * length as f64;
        let asked = requests as f64 / seconds(measured_ns);
        let answered = Overload::judge(&parts, part_s, asked)?;
        let backlog = ((asked - answered) * seconds(measured_ns)) as u64;
        Some(Overload { asked, answered, backlog })
    }

    /// The rate of the answers once the queue stood, where the parts are those of a queue that grew to the end.
    fn judge(parts: &[PartOfRun], part_s: f64, asked: f64) -> Option<f64> {
        let rates: Vec<f64> = parts.iter().map(|part| part.answered as f64 / part_s).collect();
        let error = libm::sqrt(variance(&rates)? / rates.len() as f64);
        let backlog_after = |count: usize| {
            let answered: u64 = parts[..count].iter().map(|part| part.answered).sum();
            asked * part_s * count as f64 - answered as f64
        };
        let [early, later, end] = [PARTS / 2, PARTS * 3 / 4, PARTS].map(backlog_after);
        let grows = early > 0.0 && later > GROWTH * early && end > GROWTH * later;
        let is_slower = parts[PARTS - 1].mean_response_ns() > SLOWER * parts[0].mean_response_ns();
        let is_below = mean(&rates) + STUDENT * error < CARRIED_SHARE * asked;
        let stood = &rates[1..];
        (grows && is_slower && is_below).then(|| mean(stood))
    }
}

/// Reports a load that is more than what was answered, where no known resource explains it.
pub fn overload(case: &Case<'_>) -> Option<Cause> {
    let Overload { asked, answered, backlog } = Overload::of(case)?;
    let full = case.slots_are_full().then(|| case.clients());
    Some(Cause::Overload { asked, answered, backlog, full })
}
