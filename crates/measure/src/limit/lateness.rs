//! Reason why the generator was late: one answer for whether the times are reliable and for what was the limit.

use super::case::Case;
use super::generator_rows::taken_loss;
use super::shares::{FULL_SHARE, SPARE_SHARE};
use super::worker_loss::CpuTaker;
use crate::figures::time_text;
use crate::recorder::Span;
use crate::words::{counted, percent};
use pummel_logic::time::{MICROSECOND, Nanos};

/// Longest delay of a sleeping thread's wake-up that the sleep explains.
const WAKING_MAX_NS: Nanos = 200 * MICROSECOND;
/// Most requests of one thread that are rarely answered together in closed loop; more wait for each other.
const SLOTS_APART_MAX: u64 = 2;

/// Reason why the generator was late.
#[derive(Clone, Debug, PartialEq)]
pub enum Lateness {
    /// Another user had its CPU for this time.
    Taken(CpuTaker, Nanos),
    /// A client thread was busy for this share of its time.
    Busy(f64),
    /// Client threads stood still for no known reason.
    StoodStill,
    /// Client threads slept until a reply or the next request was there.
    Slept,
    /// The cause is not known.
    Unknown,
}

impl Lateness {
    /// Finds why requests at a quantile lag by `lag_ns`. A cause has to have touched as many requests as lie beyond the
    /// quantile.
    pub fn at(case: &Case<'_>, quantile: f64, lag_ns: Nanos) -> Lateness {
        if let Some((taker, taken_ns)) = taken_loss(case).and_then(|loss| loss.cause) {
            return Lateness::Taken(taker, taken_ns);
        }
        let sent = case.moments(Span::Lag).count as f64;
        let reaches = |touched: f64| touched > 0.0 && touched >= (1.0 - quantile) * sent;
        let stalls = touched_by_stalls(case);
        // A thread without a CPU for a share of the time misses that share of what becomes due, and what follows until it has caught
        // up.
        let catching_up = 1.0 - case.busy().min(FULL_SHARE);
        let missed = |share: f64| (share / catching_up).min(1.0) * sent;
        let reaching = case.worst_loss().filter(|loss| reaches(stalls.max(missed(loss.share))));
        if let Some((taker, taken_ns)) = reaching.and_then(|loss| loss.of_stalls(case.measurement)) {
            return Lateness::Taken(taker, taken_ns);
        }
        if case.busy() > FULL_SHARE {
            return Lateness::Busy(case.busy());
        }
        if case.measurement.counters.turns.stalls > 0 && reaches(stalls) {
            return Lateness::StoodStill;
        }
        if has_slept(case) && lag_ns <= WAKING_MAX_NS { Lateness::Slept } else { Lateness::Unknown }
    }

    /// The cause as words that follow `The cause: `, without a full stop.
    pub fn words(&self, case: &Case<'_>) -> String {
        let turns = &case.measurement.counters.turns;
        let stalls =
            format!("{} of its threads took {}", counted(turns.stalls, "stall"), time_text(turns.stalled_ns));
        match self {
            Lateness::Taken(taker, taken_ns) => {
                let stalls = if turns.stalls > 0 { format!("{stalls}, and ") } else { String::new() };
                format!("{stalls}{} took a CPU away for {}", taker.words(), time_text(*taken_ns))
            }
            Lateness::Busy(share) => format!("a client thread was busy {} of the time", percent(*share)),
            Lateness::StoodStill => format!("{stalls}; why they stood still is not known"),
            Lateness::Slept => {
                "the client threads sleep until a reply or the next request is due, and wake up late; --wait spin \
                 avoids that"
                    .to_owned()
            }
            Lateness::Unknown => "not known".to_owned(),
        }
    }
}

/// Whether the client threads slept, and so were late, rather than handled one reply after the other.
fn has_slept(case: &Case<'_>) -> bool {
    let threads = case.measurement.generator.workers.len().max(1) as u64;
    let are_apart = !case.is_closed || case.slots().is_some_and(|slots| slots <= SLOTS_APART_MAX * threads);
    case.measurement.generator.slept && are_apart && case.busy() < SPARE_SHARE
}

/// Number of requests that the stalls of the client threads can have touched: in closed loop those that a thread may
/// have outstanding, once for each stall; in open loop those that became due in the stalls and until the thread had
/// caught up.
fn touched_by_stalls(case: &Case<'_>) -> f64 {
    let turns = &case.measurement.counters.turns;
    let threads = case.measurement.generator.workers.len().max(1) as f64;
    let stalls = turns.stalls as f64;
    let sent = case.moments(Span::Lag).count as f64;
    if let (true, Some(slots)) = (case.is_closed, case.slots()) {
        return (stalls * (slots as f64 / threads).max(1.0)).min(sent);
    }
    let due = sent * turns.stalled_ns as f64 / case.measured_ns.max(1) as f64 / threads;
    (stalls + due / (1.0 - case.busy().min(FULL_SHARE))).min(sent)
}
