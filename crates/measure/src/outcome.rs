//! The outcome of a run: runs of errors, and loads that nothing could carry, are kept apart from others.

use serde::{Deserialize, Serialize};

use super::limit::{Case, Limit, Outpaced, Overload, Verdict};
use super::measurement::{Measurement, Status};
use super::reason::FailedRequests;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Fault;

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// The requests were answered, or the status of the run says why not.
    #[default]
    Ok,
    /// More than half of the requests that ended were errors or timeouts: the times do not show the work of the server.
    Failed,
    /// More requests were due than were answered, and their backlog grew to the end.
    Overloaded,
}

/// Evidence that a run is not well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// More than half of the requests that ended were errors or timeouts.
    Failed(FailedRequests),
    /// More requests were due than were answered, and their backlog grew to the end.
    Overloaded(Outpaced),
}

impl RunOutcome {
    /// The outcome of a run with this evidence.
    pub fn of(ending: Option<&Ending>) -> RunOutcome {
        match ending {
            None => RunOutcome::Ok,
            Some(Ending::Failed(_)) => RunOutcome::Failed,
            Some(Ending::Overloaded(_)) => RunOutcome::Overloaded,
        }
    }

    /// The word of headlines; absent where the run is well.
    pub fn headline(self) -> Option<&'static str> {
        match self {
            RunOutcome::Ok => None,
            RunOutcome::Failed => Some("FAILED"),
            RunOutcome::Overloaded => Some("OVERLOADED"),
        }
    }
}

impl Ending {
    /// Evidence that a run with this verdict is not well; `None` where it is.
    pub fn of(case: &Case<'_>, verdict: &Verdict) -> Option<Ending> {
        // A generator that keeps requests back makes a backlog too, which is its own.
        let is_others = !matches!(verdict.limit, Limit::Generator | Limit::Unknown);
        let overloaded = || {
            let Overload { asked, answered, .. } = Overload::of(case).filter(|_| is_others)?;
            Some(Ending::Overloaded(Outpaced { asked, answered }))
        };
        failure(case).map(Ending::Failed).or_else(overloaded)
    }
}

/// The failed requests of a complete run that has failed all the same; `None` where it has not.
pub fn failure_of(measurement: &Measurement, plan: &Plan) -> Option<FailedRequests> {
    let all = measurement.ops().all();
    failure(&Case::of(measurement, plan, &all)).filter(|_| measurement.status == Status::Complete)
}

/// The errors and timeouts among the requests that ended, where they are more than half.
fn failure(case: &Case<'_>) -> Option<FailedRequests> {
    let counts = &case.all.counts;
    let (failed, ended) = (counts.failed(), counts.ended());
    if failed <= ended / 2 {
        return None;
    }
    let timed_out = counts.errors(Fault::Timeout) > failed / 2;
    let said = case.measurement.messages.iter().max_by_key(|(_, count)| **count);
    let what = said.filter(|_| !timed_out).map(|(words, _)| words.clone());
    Some(FailedRequests { ended, failed, timed_out, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::measurement::Keep;
    use crate::sample::Sample;
    use crate::scenario::{Scenario, quiet};
    use crate::summary::Summary;
    use crate::uncertainty::{BASE_NS, Windows};
    use pummel_logic::plan::{Mix, Phase, Stop, Work};
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_logic::time::{MILLISECOND, Nanos, SECOND};

    /// The ending of a run of a hundred requests of which this many ended with this fault, and the server sent these
    /// words.
    fn with_errors(failed: u64, fault: Fault, words: &str) -> Option<Ending> {
        let run = Scenario { length: 0, ..quiet() };
        let mut measurement = run.measurement();
        let mut interval = Interval::new([[Verb::Get]]);
        for request in 0..100 {
            let outcome = if request < failed { Outcome::Error(fault) } else { Outcome::Hit };
            interval.groups[0].record(&sample(request * MILLISECOND, 0, outcome));
        }
        measurement.add(&mut interval, Keep::Figures);
        measurement.measured_ns = SECOND;
        measurement.messages.insert(words.to_owned(), failed);
        Summary::of(&measurement, &run.plan()).ending
    }

    fn sample(due: Nanos, wait_ns: Nanos, outcome: Outcome) -> Sample {
        let ready = due + wait_ns;
        let (sent, arrived) = (ready, ready + MILLISECOND);
        Sample {
            verb: Verb::Get,
            outcome,
            keys: 1,
            hits: 1,
            due,
            ready,
            sent,
            arrived,
            read: arrived,
            noreply: false,
        }
    }

    /// A run of 4 s that was asked for 1,000 requests a second by two clients, and answered `in_window` requests in
    /// each tenth of a second.
    fn answered(in_window: impl Fn(u64) -> u64) -> Summary {
        let run = Scenario { connections: 2, length: 0, timeout: 60 * SECOND, ..quiet() };
        let mut measurement = run.measurement();
        let mut windows = Windows::new(BASE_NS);
        let mut all = 0;
        for window in 0..40 {
            let mut interval = Interval::new([[Verb::Get]]);
            interval.start_ns = window * BASE_NS;
            for _ in 0..in_window(window) {
                // What is answered now was due when so many had been due.
                let wait_ns = (window * BASE_NS).saturating_sub(all * MILLISECOND);
                interval.groups[0].record(&sample(all * MILLISECOND, wait_ns, Outcome::Hit));
                all += 1;
            }
            if window == 39 {
                interval.groups[0].counts(Verb::Get).unsent += 4_000_u64.saturating_sub(all);
            }
            windows.add(&mut interval);
            measurement.add(&mut interval, Keep::Figures);
        }
        measurement.measured_ns = 40 * BASE_NS;
        measurement.windows = Some(windows);
        let phase = Phase {
            name: "run".to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
            stop: Stop { time_ns: Some(40 * BASE_NS), requests: None },
            recorded: true,
        };
        Summary::of(&measurement, &Plan { phases: vec![phase], ..run.plan() })
    }

    #[test]
    fn a_run_of_errors_has_failed_in_the_words_of_the_server() {
        let words = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let failed = |failed, timed_out, what: Option<&str>| {
            let what = what.map(str::to_owned);
            Some(Ending::Failed(FailedRequests { ended: 100, failed, timed_out, what }))
        };
        assert_eq!(with_errors(99, Fault::Server, words), failed(99, false, Some(words)));
        assert_eq!(with_errors(40, Fault::Server, words), None);
        assert_eq!(with_errors(90, Fault::Timeout, words), failed(90, true, None));
    }

    #[test]
    fn a_load_that_nothing_can_carry_is_an_overload() {
        let summary = answered(|_| 40);
        let overloaded = Some(Ending::Overloaded(Outpaced { asked: 1_000.0, answered: 400.0 }));
        assert_eq!(summary.ending, overloaded, "{:?}", summary.verdict);
        assert_eq!(summary.totals.certainty, None, "a growing queue has no level");
        assert_eq!(answered(|_| 100).ending, None);
    }

    #[test]
    fn a_server_that_stood_still_is_no_overload() {
        let at_the_end = answered(|window| if window < 30 { 100 } else { 0 });
        assert_eq!(at_the_end.ending, None);
        let in_the_midst = answered(|window| if (10..20).contains(&window) { 0 } else { 100 });
        assert_eq!(in_the_midst.ending, None);
        let slow_at_first = answered(|window| if window < 10 { 50 } else { 117 });
        assert_eq!(slow_at_first.ending, None);
    }
}
