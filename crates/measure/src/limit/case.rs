//! A run as its judges see it: the plan, the times of the requests, and what each resource was used for.

use super::cause::{Clients, TimeAt};
use super::server_use::ServerUse;
use super::shares::{FULL_SHARE, SPARE_SHARE};
use super::worker_loss::WorkerLoss;
use crate::evidence::{ConnectionEvidence, MachineEvidence, OurRequests, Probe, ServerReading};
use crate::figures::Unanswered;
use crate::histogram::Moments;
use crate::measurement::Measurement;
use crate::recorder::{OpRecord, Span};
use pummel_logic::plan::{Clock, Depth, Group, Plan};
use pummel_logic::time::{MICROSECOND, Nanos, seconds};

/// Share of the response time from which on a span is visible.
pub const VISIBLE_SHARE: f64 = 0.1;
/// Longest lag or wait that is negligible, in nanoseconds.
pub const SLIP_MIN_NS: Nanos = 20 * MICROSECOND;
/// Share of the time from which on slots count as always taken.
const SATURATED_SHARE: f64 = 0.95;
/// The quantiles that the limit is judged at.
pub const BODY: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
/// Requests that take longer by this factor than one at a time waited for each other.
const QUEUED_FACTOR: f64 = 2.0;
/// Factor between a wait and what made it from which on there is no doubt.
pub const OUTWEIGHED: f64 = 10.0;

/// A run as its judges see it.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Plan of the run.
    pub plan: &'a Plan,
    /// Measurement of the run.
    pub measurement: &'a Measurement,
    /// The measured requests, all together.
    pub all: &'a OpRecord,
    /// Whether all clients ask again as soon as they are answered.
    pub is_closed: bool,
    /// Length of the measured phase; up to the last answer where that came later.
    pub measured_ns: Nanos,
    /// The servers of which something is known.
    pub servers: Vec<ServerUse>,
    /// CPU time that was taken away from the client threads, by process.
    pub losses: Vec<WorkerLoss>,
}

/// A quantile at which a span is a visible part of the response.
#[derive(Clone, Copy, Debug)]
pub struct Visible {
    /// Name of the quantile.
    pub name: &'static str,
    /// The span at that quantile, in nanoseconds.
    pub value_ns: Nanos,
    /// The response at that quantile, in nanoseconds.
    pub response_ns: Nanos,
}

impl<'a> Case<'a> {
    /// The case of a measurement that was made after `plan`; `all` are its requests, all together.
    pub fn of(measurement: &'a Measurement, plan: &'a Plan, all: &'a OpRecord) -> Case<'a> {
        let evidence = measurement.evidence.as_ref();
        Case {
            plan,
            measurement,
            all,
            is_closed: plan.groups.iter().all(Group::is_closed_loop),
            measured_ns: measurement.measured_ns.max(measurement.answered_ns),
            servers: evidence.map_or_else(Vec::new, |seen| {
                seen.servers.iter().map(|server| ServerUse::of(seen, server)).collect()
            }),
            losses: evidence.map(WorkerLoss::all_of).unwrap_or_default(),
        }
    }

    /// The loss of the process whose client threads lost the greatest share of their time; absent where none is known.
    pub fn worst_loss(&self) -> Option<&WorkerLoss> {
        self.losses.iter().max_by(|one, other| one.share.total_cmp(&other.share))
    }

    /// Completed requests per second; 0 where the measured phase has no length.
    pub fn rate(&self) -> f64 {
        let measured_s = seconds(self.measured_ns);
        if measured_s > 0.0 { self.all.counts.completed as f64 / measured_s } else { 0.0 }
    }

    /// The machines that sent the requests, as far as they were read.
    pub fn machines(&self) -> impl Iterator<Item = &'a MachineEvidence> {
        self.measurement.evidence.iter().flat_map(|seen| &seen.machines)
    }

    /// The machines from which servers are reached over a network. Of a machine of which that is not known it is not claimed.
    pub fn remote_machines(&self) -> impl Iterator<Item = &'a MachineEvidence> {
        self.machines().filter(|machine| machine.servers_are_local == Some(false))
    }

    /// Readings of the servers, but for those whose counters began anew.
    pub fn readings(&self) -> impl Iterator<Item = &'a ServerReading> {
        let servers = self.measurement.evidence.iter().flat_map(|seen| &seen.servers);
        servers.filter_map(|server| server.reading.as_ref()).filter(|reading| reading.is_whole())
    }

    /// The requests of this run between the readings; absent where no process has counted them.
    pub fn ours(&self) -> Option<&'a OurRequests> {
        self.measurement.evidence.as_ref()?.ours.as_ref()
    }

    /// The run's operations with one and with ten requests in flight, where they were probed.
    pub fn probe(&self) -> Option<&'a Probe> {
        self.measurement.evidence.as_ref()?.probe.as_ref()
    }

    /// The run's own TCP connections, over all processes; absent where none was read.
    pub fn tcp(&self) -> Option<ConnectionEvidence> {
        self.machines().filter_map(|machine| machine.connections).reduce(|one, other| ConnectionEvidence {
            read: one.read.saturating_add(other.read),
            retransmits: one.retransmits.saturating_add(other.retransmits),
            lost: one.lost.zip(other.lost).map(|(lost, more)| lost.saturating_add(more)),
            segments_out: one.segments_out.saturating_add(other.segments_out),
            busy_ns: one.busy_ns.saturating_add(other.busy_ns),
            rwnd_limited_ns: one.rwnd_limited_ns.saturating_add(other.rwnd_limited_ns),
            sndbuf_limited_ns: one.sndbuf_limited_ns.saturating_add(other.sndbuf_limited_ns),
        })
    }

    /// Requests that may be outstanding at any time; absent where there is no limit, and where batches wait for their last reply.
    pub fn slots(&self) -> Option<u64> {
        let slots = |(index, group): (usize, &Group)| match group.depth {
            // Where the number of clients changes, the mean over time is what Little's law speaks of.
            Depth::Limit(depth) => Some(f64::from(depth) * self.clients_of(index)),
            Depth::Batch(_) | Depth::Unlimited => None,
        };
        let slots: Option<f64> = self.plan.groups.iter().enumerate().map(slots).sum();
        slots.map(|slots| slots.round() as u64)
    }

    /// The mean number of slots that were taken: the time of lag and service, timeouts included, by the measured time.
    pub fn slots_taken(&self) -> f64 {
        if self.measured_ns == 0 { 0.0 } else { self.taken_ns() / self.measured_ns as f64 }
    }

    /// The time for which slots were taken, all together, in nanoseconds: lag and service, timeouts included.
    fn taken_ns(&self) -> f64 {
        self.sum(Span::Lag) + self.sum(Span::Service) + self.timeouts_ns()
    }

    /// Sum of the time that requests took which timed out, in nanoseconds.
    fn timeouts_ns(&self) -> f64 {
        let unanswered = self.unanswered();
        unanswered.timeouts as f64 * unanswered.timeout_ns as f64
    }

    /// Moments of a span: its exact count and sums.
    pub fn moments(&self, span: Span) -> Moments {
        self.all.times.of(span).moments()
    }

    /// The sum of a span over all requests, in nanoseconds.
    pub fn sum(&self, span: Span) -> f64 {
        self.moments(span).sum as f64
    }

    /// The sum of all responses, in nanoseconds, of requests without a reply as far as they came.
    pub fn responses_ns(&self) -> f64 {
        self.sum(Span::Wait) + self.sum(Span::Lag) + self.sum(Span::Service)
    }

    /// A quantile of a span in nanoseconds; 0 where there is none.
    pub fn at(&self, span: Span, quantile: f64) -> Nanos {
        self.all.times.of(span).quantile(quantile).unwrap_or(0)
    }

    /// The requests that the service times miss.
    pub fn unanswered(&self) -> Unanswered {
        let times = self.all.times.of(Span::Service);
        Unanswered::of(&self.all.counts, Span::Service, times, self.measurement.timeout_ns)
    }

    /// A span at a quantile, where it is a visible part of the response there and more than `least_ns`.
    pub fn visible(
        &self,
        span: Span,
        (name, quantile): (&'static str, f64),
        least_ns: Nanos,
    ) -> Option<Visible> {
        let value_ns = self.at(span, quantile);
        let response_ns = match self.all.times.of(Span::Response).quantile(quantile) {
            Some(response_ns) => response_ns,
            // Requests without reply have no response time; what they have is wait and lag.
            None => self.at(Span::Wait, quantile) + self.at(Span::Lag, quantile),
        };
        let is_visible = value_ns > least_ns && value_ns as f64 > VISIBLE_SHARE * response_ns as f64;
        is_visible.then_some(Visible { name, value_ns, response_ns })
    }

    /// The wait, where it is a visible part of the response at p99 or at p50.
    pub fn visible_wait(&self) -> Option<Visible> {
        BODY.iter().rev().find_map(|at| self.visible(Span::Wait, *at, SLIP_MIN_NS))
    }

    /// The wait, where it is visible and more than a small part of the sum of all responses, and lag did not make it. Waits of few requests are a statement about the tail: at a load of 4 % of its slots a
    /// run makes one request in 25 wait.
    pub fn waits(&self) -> Option<Visible> {
        let is_much = self.sum(Span::Wait) > VISIBLE_SHARE * self.responses_ns();
        self.visible_wait().filter(|_| is_much && !self.lag_made_the_wait())
    }

    /// Whether the waits are put down to lag: a slot is taken for lag + service, and the wait behind taken slots grows with
    /// the mean square of that time (Pollaczek and Khinchine), so that of the two the one with the larger sum of squares
    /// made it.
    pub fn lag_made_the_wait(&self) -> bool {
        let (lag, service) = self.squares();
        (lag > service || self.lag_filled_the_slots()) && !self.connections_made_the_wait()
    }

    /// Whether an open loop had too few slots because of lag: they were taken for nearly all of the time, so that waits grew for as
    /// long as the run lasted, and the service of all requests that were due would have filled fewer than [`FULL_SHARE`] of them. A server
    /// that is near its limit, or of which nothing is known, would take longer for each if they came sooner.
    fn lag_filled_the_slots(&self) -> bool {
        let has_time = self.servers_occupied().is_some_and(|share| share < SPARE_SHARE);
        let (true, false, Some(slots)) = (has_time, self.is_closed, self.slots()) else { return false };
        let slots_ns = slots as f64 * self.measured_ns as f64;
        let service_ns = self.sum(Span::Service) + self.timeouts_ns();
        let (due, sent) = (self.all.counts.requests() as f64, self.moments(Span::Lag).count as f64);
        let is_full = self.sum(Span::Lag) + service_ns > SATURATED_SHARE * slots_ns;
        is_full && sent > 0.0 && service_ns * due / sent < FULL_SHARE * slots_ns
    }

    /// Whether lag is a visible part of what a closed loop does: of the time that a request takes from one reply to the next.
    /// Without receive stamps a late generator does not show in lag, so that it always may be.
    pub fn lag_slows_the_loop(&self) -> bool {
        !self.has_stamps() || self.sum(Span::Lag) > VISIBLE_SHARE * self.taken_ns()
    }

    /// The sums of squares of the times for which slots were taken: lag, and service with the timeouts.
    pub fn squares(&self) -> (f64, f64) {
        let squares = |span| self.moments(span).sum_squares as f64;
        let timeout_ns = self.unanswered().timeout_ns as f64;
        (squares(Span::Lag), squares(Span::Service) + self.timeouts_ns() * timeout_ns)
    }

    /// Whether requests waited for connections that were not there: some were lost or could not be opened, and the wait
    /// is much more than slots make that are taken. At a load of rho and r arrivals per second, those make all requests
    /// of a slot wait for r * sum((lag + service)^2) / (2 * (1 - rho)) together.
    pub fn connections_made_the_wait(&self) -> bool {
        let connections = &self.measurement.connections;
        if connections.lost == 0 && connections.failed == 0 {
            return false;
        }
        let Some(slots) = self.slots() else { return false };
        let slots_ns = slots as f64 * self.measurement.measured_ns as f64;
        let load = self.taken_ns() / slots_ns;
        let rate = self.moments(Span::Lag).count as f64 / slots_ns;
        let (lag, service) = self.squares();
        // The square of a sum of two is at most twice the sum of their squares.
        let explained = rate * 2.0 * (lag + service) / (2.0 * (1.0 - load));
        load < 1.0 && self.sum(Span::Wait) > OUTWEIGHED * explained
    }

    /// Whether the kernel said when replies arrived, so that reading late does not show in the service time.
    pub fn has_stamps(&self) -> bool {
        self.measurement.clock == Clock::Kernel && !self.measurement.unix_socket
    }

    /// Share of its time that the busiest client thread was busy.
    pub fn busy(&self) -> f64 {
        self.measurement.generator.busy_share_max()
    }

    /// Whether a serving thread of a server used all of its CPU.
    pub fn server_is_full(&self) -> bool {
        self.servers.iter().any(ServerUse::is_full)
    }

    /// The greatest share that a serving thread of any server used, at most; absent unless all servers are known.
    pub fn servers_at_most(&self) -> Option<f64> {
        if self.servers.is_empty() || self.servers.len() < self.plan.servers.len() {
            return None;
        }
        self.servers.iter().map(ServerUse::hottest_at_most).reduce(|one, other| Some(one?.max(other?)))?
    }

    /// The greatest share for which a serving thread of any server was occupied; absent unless all servers are known.
    pub fn servers_occupied(&self) -> Option<f64> {
        self.servers_at_most()?;
        self.servers.iter().map(ServerUse::occupied_at_most).reduce(|one, other| Some(one?.max(other?)))?
    }

    /// Whether requests took much longer in the run than one at a time: they waited for each other at the server. `false` where
    /// that was not probed.
    pub fn queues_at_the_server(&self) -> bool {
        self.alone_ns().is_some_and(|alone_ns| self.takes_longer_than(alone_ns))
    }

    /// Time of a request alone, in nanoseconds, where that was probed and requests took hardly longer in the run: the
    /// server had time, whatever is known of its CPU.
    pub fn as_fast_as_alone(&self) -> Option<Nanos> {
        self.alone_ns().filter(|alone_ns| !self.takes_longer_than(*alone_ns))
    }

    /// The median service time of one request at a time, in nanoseconds; absent where it was not probed.
    fn alone_ns(&self) -> Option<Nanos> {
        self.probe().map(|probe| probe.one.service_p50_ns).filter(|alone_ns| *alone_ns > 0)
    }

    fn takes_longer_than(&self, alone_ns: Nanos) -> bool {
        self.at(Span::Service, 0.5) as f64 > QUEUED_FACTOR * alone_ns as f64
    }

    /// Whether something other than its CPU may have occupied a server: nothing was probed, and the server does not say how long it
    /// was inside commands.
    pub fn may_be_occupied_unseen(&self) -> bool {
        self.probe().is_none() && self.servers.iter().any(|server| server.in_commands.is_none())
    }

    /// The address of a server as its name; absent where there is only one.
    pub fn server_name(&self, address: &str) -> Option<String> {
        (self.plan.servers.len() > 1).then(|| address.to_owned())
    }

    /// Reason why the CPU of a server is not known; absent where none is known.
    pub fn servers_unread(&self) -> Option<String> {
        self.servers.iter().find_map(|server| server.unread.clone())
    }

    /// Number of client threads.
    pub fn client_threads(&self) -> u64 {
        self.measurement.generator.workers.len() as u64
    }

    /// Whether slots were taken for nearly all of the time.
    pub fn slots_are_full(&self) -> bool {
        self.slots().is_some_and(|slots| self.slots_taken() > SATURATED_SHARE * slots as f64)
    }

    /// Number of clients of a group; their mean over time where it changes.
    fn clients_of(&self, group: usize) -> f64 {
        self.plan.clients_on_stage(group, self.measured_ns)
    }

    /// The connections, and what each may have in flight.
    pub fn clients(&self) -> Clients {
        let connections: f64 = (0..self.plan.groups.len()).map(|index| self.clients_of(index)).sum();
        let (depth, batch) = match self.plan.groups.as_slice() {
            [Group { depth: Depth::Limit(depth), .. }] => (Some(*depth), None),
            [Group { depth: Depth::Batch(size), .. }] => (Some(*size), Some(*size)),
            _ => (None, None),
        };
        let are_mean = self.plan.changes.has_stage();
        Clients { connections: connections.round() as u64, depth, batch, are_mean }
    }
}

impl Visible {
    /// The span with the name of its quantile.
    pub fn time(&self) -> TimeAt {
        TimeAt::new(self.name, self.value_ns)
    }
}
