//! Reason why the generator was late, as far as it is known.

use super::case::Case;
use super::cpu_time::{CpuTime, cpus_of};
use super::generator_rows::taken_loss;
use super::shares::{FULL_SHARE, SPARE_SHARE, share_of};
use super::worker_loss::{CpuTaker, WorkerLoss};
use crate::evidence::MachineEvidence;
use crate::recorder::Span;
use pummel_logic::time::{MICROSECOND, Nanos};

/// Longest delay of a sleeping thread's wake-up that the sleep explains.
const WAKING_MAX_NS: Nanos = 200 * MICROSECOND;
/// Most requests of one thread that are rarely answered together in closed loop; more wait for each other.
const SLOTS_APART_MAX: u64 = 2;
/// CPU use, in CPUs, above which servers and generator on one machine keep each other waiting.
const SIDE_USE_MIN: f64 = 0.7;
/// Share of that use for each CPU of a machine that has fewer than two.
const SIDE_USE_OF_CPU: f64 = 0.35;
/// Share of its CPUs' time above which a machine is too full for both sides.
const MACHINE_FULL_SHARE: f64 = 0.85;

/// Reason why the generator was late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LagCause {
    /// Another user had the CPU of a client thread.
    CpuTaken {
        /// User that had the CPU.
        taker: CpuTaker,
        /// Time for which it had the CPU, in nanoseconds.
        taken_ns: Nanos,
        /// Stand-stills of the client threads meanwhile.
        stalls: Stalls,
        /// Machine of the client thread.
        machine: CpuSharers,
    },
    /// A client thread had no time left.
    ThreadBusy {
        /// Share of its time that the thread was busy.
        share: f64,
    },
    /// Client threads stood still for no known reason.
    StoodStill {
        /// Stand-stills of all client threads.
        stalls: Stalls,
    },
    /// Client threads slept until a reply or the next request was there.
    Slept {
        /// Median delay of a request behind the moment for which its thread was to wake up, in nanoseconds.
        late_ns: Nanos,
        /// Machine of the client threads.
        machine: CpuSharers,
    },
    /// The cause is not known.
    Unknown,
}

/// Stand-stills of client threads: turns that took above a millisecond, and waits that ended as late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of stand-stills.
    pub count: u64,
    /// Length of all of them together, in nanoseconds.
    pub total_ns: Nanos,
}

/// A machine of the generator, and who else works there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSharers {
    /// CPUs that the generator may use; 0 where that is not known.
    pub cpus: u32,
    /// Agents of the run on the machine; 0 in a run without agents.
    pub agents: usize,
    /// Servers of the run on the machine; 0 where they are elsewhere, or where that is not known.
    pub servers: usize,
}

impl CpuSharers {
    /// The machine of the process with this name, or of the first process.
    fn of(case: &Case<'_>, agent: Option<&str>) -> CpuSharers {
        let is_of = |machine: &&MachineEvidence| agent.is_some() && machine.agent.as_deref() == agent;
        let Some(own) = case.machines().find(is_of).or_else(|| case.machines().next()) else {
            return CpuSharers::default();
        };
        let is_beside = |other: &&MachineEvidence| {
            other.agent.is_some() && other.host.is_some() && other.host == own.host
        };
        CpuSharers {
            cpus: own.cpus,
            agents: case.machines().filter(is_beside).count(),
            servers: if own.servers_are_local == Some(true) { case.plan.servers.len() } else { 0 },
        }
    }
}

impl LagCause {
    /// Finds why requests at a quantile lag by `lag_ns`. A cause has to have touched as many requests as lie beyond the
    /// quantile.
    pub fn at(case: &Case<'_>, quantile: f64, lag_ns: Nanos) -> LagCause {
        let sent = case.moments(Span::Lag).count as f64;
        let reaches = |touched: f64| touched > 0.0 && touched >= (1.0 - quantile) * sent;
        let touched = touched_by_stalls(case);
        // A thread without a CPU for a share of the time misses that share of what becomes due, and what follows until it has caught
        // up.
        let catching_up = 1.0 - case.busy().min(FULL_SHARE);
        let missed = |share: f64| (share / catching_up).min(1.0) * sent;
        if let Some((loss, cause)) = taken_loss(case).and_then(|loss| Some((loss, loss.cause?))) {
            // In a closed loop a request waits for all that was late before it.
            if case.is_closed || reaches(missed(loss.share)) {
                return cpu_taken(case, loss, cause);
            }
        }
        let reaching = case.worst_loss().filter(|loss| reaches(touched.max(missed(loss.share))));
        if let Some((loss, cause)) = reaching
            .and_then(|loss| Some((loss, loss.of_stalls(case.measurement)?)))
            .filter(|(loss, (taker, _))| *taker != CpuTaker::Servers || is_too_full_for_both(case, loss))
        {
            return cpu_taken(case, loss, cause);
        }
        if case.busy() > FULL_SHARE {
            return LagCause::ThreadBusy { share: case.busy() };
        }
        let stalls = stalls_of(case);
        if stalls.count > 0 && reaches(touched) {
            return LagCause::StoodStill { stalls };
        }
        if has_slept(case) && lag_ns <= WAKING_MAX_NS {
            let late_ns = case.at(Span::Lag, 0.5);
            return LagCause::Slept { late_ns, machine: CpuSharers::of(case, None) };
        }
        LagCause::Unknown
    }

    /// Whether the cause is known.
    pub fn is_known(&self) -> bool {
        *self != LagCause::Unknown
    }
}

fn stalls_of(case: &Case<'_>) -> Stalls {
    let turns = &case.measurement.counters.turns;
    Stalls { count: turns.stalls, total_ns: turns.stalled_ns }
}

/// The CPU time that a taker had as a cause of lag.
fn cpu_taken(case: &Case<'_>, loss: &WorkerLoss, (taker, taken_ns): (CpuTaker, Nanos)) -> LagCause {
    let machine = CpuSharers::of(case, loss.agent.as_deref());
    LagCause::CpuTaken { taker, taken_ns, stalls: stalls_of(case), machine }
}

/// Whether the servers and the generator on the machine of a process both used so much of its CPUs that each kept the other waiting. A
/// delay of a thread behind a server's thread is short and no harm while CPUs are free most of the time.
fn is_too_full_for_both(case: &Case<'_>, loss: &WorkerLoss) -> bool {
    let Some(evidence) = case.measurement.evidence.as_ref() else { return false };
    let machine = case.machines().find(|machine| machine.agent == loss.agent);
    let time = machine.and_then(|machine| {
        let cpus = cpus_of(machine.worker_cpus.as_deref())?;
        Some((machine.span_ns, cpus.len(), CpuTime::of(evidence, machine.host?, &cpus)?))
    });
    let Some((span_ns, cpus, time)) = time else { return false };
    let least = SIDE_USE_MIN.min(SIDE_USE_OF_CPU * cpus as f64);
    let used_ns = time.pummel_ns.saturating_add(time.servers_ns).saturating_add(time.others_ns.unwrap_or(0));
    let is_used = |side_ns: Nanos| share_of(side_ns, span_ns) > least;
    is_used(time.pummel_ns)
        && is_used(time.servers_ns)
        && share_of(used_ns, span_ns) > MACHINE_FULL_SHARE * cpus as f64
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
