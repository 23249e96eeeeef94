//! The rows of the table of limits about the generator.

use super::case::{BODY, Case, OUTWEIGHED, SLIP_MIN_NS, VISIBLE_SHARE};
use super::cause::{Cause, LostCpu, TakenCpu, ThreadAdvice};
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, Judged, share_of};
use super::worker_loss::{CpuTaker, WorkerLoss};
use crate::evidence::ConnectionEvidence;
use crate::recorder::Span;
use pummel_logic::time::{MILLISECOND, Nanos};

/// Share of the requests up to which lag is a statement about the tail, and no limit.
const KEPT_BACK_SHARE: f64 = 0.05;
/// Share of the time for which a closed loop may stand still without being slowed down.
pub const STOOD_STILL_SHARE: f64 = 0.1;
/// Mean length of stalled turns above which no work explains them, however many replies came together.
const STOOD_STILL_MIN_NS: Nanos = 10 * MILLISECOND;
/// Share of its busy time behind one limit from which on a connection is held up by it.
const TCP_LIMITED_SHARE: f64 = 0.1;

/// Least number of sampled requests that show when requests left the machine.
pub const OUT_SAMPLES_MIN: u64 = 20;

/// Share of attempts to connect without a local port from which on they hold a load back.
pub const PORTS_SHARE: f64 = 0.01;

/// Reports connections that could not be opened for want of a local port: each closed one keeps its port for a minute.
pub fn ports(case: &Case<'_>) -> Option<Cause> {
    let connections = &case.measurement.connections;
    let attempts = connections.connect.count().saturating_add(connections.failed);
    (connections.no_port as f64 > PORTS_SHARE * attempts as f64)
        .then_some(Cause::Ports { failed: connections.no_port, attempts })
}

/// The loss of CPU time that the load had to wait for: what is taken from a thread that waits for replies anyway
/// limits nothing. Lag in the tail of an open loop alone is a statement about the tail, which `trust` makes.
pub fn taken_loss<'c>(case: &'c Case<'_>) -> Option<&'c WorkerLoss> {
    let worst = case.worst_loss()?;
    let has_lag = || match case.is_closed {
        true => case.lag_slows_the_loop(),
        false => case.visible(Span::Lag, BODY[0], SLIP_MIN_NS).is_some() || KeptBack::of(case).is_much(case),
    };
    // Of a closed loop that waits for both sides, the side that lost more of its time is the limit.
    let server_lost_more =
        case.is_closed && case.servers.iter().any(|server| server.run_delay() > worst.share);
    (worst.taken().is_beyond() && !case.server_is_full() && !server_lost_more && has_lag()).then_some(worst)
}

/// Reports CPU time that was taken from the generator where the load had to wait for it.
pub fn cpu_taken(case: &Case<'_>) -> Option<Cause> {
    let loss = taken_loss(case)?;
    let taken = loss.cause.map(|(by, time_ns)| TakenCpu { by, time_ns });
    // The row of CPUs that client and server share is another one.
    let is_servers = taken.is_some_and(|taken| taken.by == CpuTaker::Servers);
    let (agent, share, lost_ns) = (loss.agent.clone(), loss.share, loss.lost_ns);
    (!is_servers).then_some(Cause::GeneratorCpuTaken(LostCpu { agent, share, lost_ns, taken }))
}

/// Reports a client thread that had no time left.
pub fn thread_busy(case: &Case<'_>) -> Option<Cause> {
    if case.busy() <= FULL_SHARE || case.server_is_full() {
        return None;
    }
    let workers = &case.measurement.generator.workers;
    let place = workers.iter().position(|worker| worker.busy_share() >= case.busy())?;
    Some(Cause::GeneratorThreadBusy {
        thread: place as u64 + 1,
        threads: case.client_threads(),
        busy: case.busy(),
        server_busy: case.servers.iter().filter_map(ServerUse::hottest_at_least).reduce(f64::max),
        advice: thread_advice(case),
    })
}

/// Advice for a generator without time, as far as the machine has CPUs for it.
fn thread_advice(case: &Case<'_>) -> ThreadAdvice {
    let connections: u64 = case.plan.groups.iter().map(|group| u64::from(group.clients)).sum();
    if connections <= u64::from(case.plan.engine.threads) {
        return ThreadAdvice::MoreConnections;
    }
    let mut machines = case.machines().peekable();
    let is_known = machines.peek().is_some();
    if is_known && machines.all(|machine| u64::from(machine.cpus) <= machine.workers.len() as u64) {
        return ThreadAdvice::AnotherMachine;
    }
    ThreadAdvice::MoreThreads
}

/// The requests of an open loop that the generator kept back, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptBack {
    /// Requests that lagged, or waited behind others that did, for longer than the median service.
    pub requests: u64,
    /// Part of the sum of all responses that was lag, or wait behind it.
    pub share: f64,
}

impl KeptBack {
    /// The requests that the generator kept back.
    pub fn of(case: &Case<'_>) -> KeptBack {
        let bound_ns = case.at(Span::Service, 0.5).max(SLIP_MIN_NS);
        let longer = |span| {
            let cells = case.all.times.of(span).cells();
            cells.filter(|(least, ..)| *least > bound_ns).map(|(.., count)| count).sum::<u64>()
        };
        let whole_ns = case.responses_ns();
        let (mut requests, mut kept_ns) = (longer(Span::Lag), case.sum(Span::Lag));
        if case.lag_made_the_wait() {
            requests += longer(Span::Wait);
            kept_ns += case.sum(Span::Wait);
        }
        let requests = requests.min(case.moments(Span::Lag).count);
        KeptBack { requests, share: if whole_ns > 0.0 { kept_ns / whole_ns } else { 0.0 } }
    }

    /// The requests that were kept back, of all that were sent.
    pub fn of_sent(&self, case: &Case<'_>) -> Judged {
        Judged::share(self.requests, case.moments(Span::Lag).count, KEPT_BACK_SHARE)
    }

    /// The delay, of all responses.
    pub fn of_responses(&self) -> Judged {
        Judged { value: self.share, bound: VISIBLE_SHARE }
    }

    /// Whether the delay is more than a statement about the tail.
    pub fn is_much(&self, case: &Case<'_>) -> bool {
        self.of_sent(case).is_beyond() && self.of_responses().is_beyond()
    }
}

/// Reports requests of an open loop that were sent late.
pub fn kept_back(case: &Case<'_>) -> Option<Cause> {
    if case.is_closed || wait_outweighs_lag(case) {
        return None;
    }
    let kept = KeptBack::of(case);
    let sent = case.moments(Span::Lag).count;
    if case.visible(Span::Lag, BODY[0], SLIP_MIN_NS).is_none() && !kept.is_much(case) {
        return None;
    }
    let turns = &case.measurement.counters.turns;
    Some(Cause::GeneratorKeptBack {
        kept: kept.requests,
        sent,
        lag_p50_ns: case.at(Span::Lag, BODY[0].1),
        lag_p99_ns: case.at(Span::Lag, BODY[1].1),
        lag_max_ns: case.moments(Span::Lag).max,
        behind: case.visible_wait().filter(|_| case.lag_made_the_wait()).map(|wait| wait.time()),
        stalls: turns.stalls,
        stalled_ns: turns.stalled_ns,
    })
}

/// Whether requests spent so much more time in a wait that lag did not make than in lag that the lag, visible as it may
/// be at some quantile, did not make the waiting.
fn wait_outweighs_lag(case: &Case<'_>) -> bool {
    case.visible_wait().is_some()
        && !case.lag_made_the_wait()
        && case.sum(Span::Wait) > OUTWEIGHED * case.sum(Span::Lag)
}

/// Reports threads of a closed loop that stood still, in turns that no work explains, where requests were sent late
/// because of it: stalls while the server has the requests delay nothing.
pub fn stood_still(case: &Case<'_>) -> Option<Cause> {
    let turns = &case.measurement.counters.turns;
    let wall_ns: Nanos = case.measurement.generator.workers.iter().map(|worker| worker.wall_ns).sum();
    let is_long = turns.stalled_ns / turns.stalls.max(1) > STOOD_STILL_MIN_NS;
    let is_much = turns.stalled_ns as f64 > STOOD_STILL_SHARE * wall_ns as f64;
    if !case.is_closed || case.server_is_full() || !is_long || !is_much || !case.lag_slows_the_loop() {
        return None;
    }
    let taken = case.worst_loss().and_then(|loss| loss.of_stalls(case.measurement));
    Some(Cause::GeneratorStoodStill {
        stalls: turns.stalls,
        stalled_ns: turns.stalled_ns,
        taken: taken.map(|(by, time_ns)| TakenCpu { by, time_ns }),
    })
}

/// The way of sampled requests from the send to the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WayOut {
    /// The median time from the send to the device, in nanoseconds.
    pub out_ns: Nanos,
    /// The median time from the send to the device, as a share of it and the median time from the device to the reply.
    pub share: Judged,
}

impl WayOut {
    /// The way out of a run; absent where too few requests were stamped when they left.
    pub fn of(case: &Case<'_>) -> Option<WayOut> {
        let times = case.measurement.side_times.transmit.as_ref()?;
        if times.out.count() < OUT_SAMPLES_MIN || times.served.count() < OUT_SAMPLES_MIN {
            return None;
        }
        let (out_ns, served_ns) = (times.out.quantile(0.5)?, times.served.quantile(0.5)?);
        let service_ns = out_ns as f64 + served_ns as f64;
        let share = if service_ns > 0.0 { out_ns as f64 / service_ns } else { 0.0 };
        Some(WayOut { out_ns, share: Judged { value: share, bound: VISIBLE_SHARE } })
    }
}

/// Reports requests that were sent in time, and left the machine late.
pub fn left_late(case: &Case<'_>) -> Option<Cause> {
    let way = WayOut::of(case)?;
    let is_late = way.out_ns > SLIP_MIN_NS && way.share.is_beyond();
    if !is_late || case.server_is_full() || case.visible(Span::Lag, BODY[0], SLIP_MIN_NS).is_some() {
        return None;
    }
    let queued =
        case.measurement.side_times.transmit.as_ref().filter(|times| times.queued.count() >= OUT_SAMPLES_MIN);
    Some(Cause::GeneratorOut {
        out_ns: way.out_ns,
        queued_ns: queued.and_then(|times| times.queued.quantile(0.5)),
        share: way.share.value,
    })
}

/// The part of their busy time in which connections were held up behind a limit, `limited_ns` in all; absent where they had nothing
/// to send.
pub fn held_up(case: &Case<'_>, limited_ns: fn(&ConnectionEvidence) -> Nanos) -> Option<Judged> {
    let tcp = case.tcp().filter(|tcp| tcp.busy_ns > 0)?;
    Some(Judged { value: share_of(limited_ns(&tcp), tcp.busy_ns), bound: TCP_LIMITED_SHARE })
}

/// The busy time with a full send buffer.
pub fn send_buffer_full(case: &Case<'_>) -> Option<Judged> {
    held_up(case, |tcp| tcp.sndbuf_limited_ns)
}

/// Reports data that waited for room in the send buffer.
pub fn send_buffer(case: &Case<'_>) -> Option<Cause> {
    let full = send_buffer_full(case)?;
    full.is_beyond().then_some(Cause::GeneratorSendBuffer { share: full.value })
}
