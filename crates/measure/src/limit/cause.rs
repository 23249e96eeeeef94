//! Facts of what limited a run: a variant for each row of the table of limits, with the figures that the row rests on.

use serde::{Deserialize, Serialize};

use super::worker_loss::CpuTaker;
use crate::misses::NeverThere;
use crate::resource::Resource;
use pummel_logic::time::Nanos;

/// The cause of a limit. Shares are those of 1, rates are in requests per second. Each variant bears the name of its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// No request was completed. Limit: `unknown`.
    NothingCompleted,
    /// Two counts of the requests in flight, one of them by Little's law from the sum of their times, are more
    /// than 1 % apart, with 10,000 requests or more and none without an answer. Limit: `unknown`.
    Instrument {
        /// The difference, as a share.
        apart: f64,
    },
    /// More than 1 % of the attempts to connect found no free local port. Limit: `generator`.
    Ports {
        /// Attempts that found no free port.
        failed: u64,
        /// All attempts to connect.
        attempts: u64,
    },
    /// The server took fewer connections than it was asked for and refused the others; or, behind `others`,
    /// connections failed or were lost and the server refused some by its counters or error messages, or its
    /// listening sockets turned attempts away. Limit: `server`.
    ServerConnections {
        /// Party that turned them away.
        by: TurnedAwayBy,
        /// Connections or attempts that were turned away.
        turned_away: u64,
        /// Connections of this run that failed, were lost or were turned away.
        ours: u64,
        /// Limit of the server.
        limit: Option<u64>,
        /// Connections that the server took and kept, for each server the fewest.
        taken: Option<u64>,
        /// Software of the server.
        software: Option<String>,
    },
    /// Steal, throttling and run delay took more than 5 % of a client thread's time, no serving thread was
    /// full, and the load had to wait for it: in an open loop lag is visible at p50, or requests were kept back
    /// as in `generator-kept-back`; in a closed loop lag is more than 10 % of the sum of lag and service, and
    /// no serving thread waited for a CPU for a larger share of its time. Limit: `generator`.
    GeneratorCpuTaken(LostCpu),
    /// The row above would hold, but it was the server that had the CPU; or a serving thread waited for a CPU
    /// for more than 5 % of its time and the client threads had it. The latter stands here in a closed loop
    /// unless a serving thread was full, and above `server-run-delay` in an open loop. Limit: `generator`.
    SharedCpu {
        /// The side that waited.
        waiting: Side,
        /// Agent of the client thread.
        agent: Option<String>,
        /// Address of the server, where there are several.
        server: Option<String>,
        /// The CPUs that both may use; empty where they are not known.
        cpus: Vec<u32>,
        /// Share of its time for which the worst thread of that side could have run and had no CPU.
        share: f64,
        /// Use of those CPUs by both; absent where it is not known.
        machine: Option<SharedMachine>,
    },
    /// A client thread was busy for more than 90 % of its time, and no serving thread was full. Limit:
    /// `generator`.
    GeneratorThreadBusy {
        /// Number of the thread, from 1.
        thread: u64,
        /// Number of client threads.
        threads: u64,
        /// Share of its time for which it was busy.
        busy: f64,
        /// Share of a CPU that the busiest thread of the servers used.
        server_busy: Option<f64>,
        /// The way to more time.
        advice: ThreadAdvice,
    },
    /// Open loop: lag is visible at p50; or lag and the waits behind it are more than 10 % of the sum of all
    /// responses, and more than 5 % of the requests were kept back for longer than the median service. Not so
    /// if requests waited ten times as long, over all, for causes other than lag. Limit: `generator`.
    GeneratorKeptBack {
        /// Requests that were kept back for longer than the median service.
        kept: u64,
        /// All requests that were sent.
        sent: u64,
        /// Median of the lag.
        lag_p50_ns: Nanos,
        /// The lag at p99.
        lag_p99_ns: Nanos,
        /// Greatest lag of a request.
        lag_max_ns: Nanos,
        /// Wait of others behind them.
        behind: Option<TimeAt>,
        /// Stalls of the client threads.
        stalls: u64,
        /// Length of the stalls, all together.
        stalled_ns: Nanos,
    },
    /// Closed loop: turns of above 10 ms on average took more than 10 % of the time, lag is more than 10 % of
    /// the sum of lag and service, and no serving thread was full. Limit: `generator`.
    GeneratorStoodStill {
        /// Turns in which they stood still.
        stalls: u64,
        /// Length of those turns, all together.
        stalled_ns: Nanos,
        /// The taker of the CPU meanwhile; absent where it is not known.
        taken: Option<TakenCpu>,
    },
    /// Half of the requests stamped by `--stamps tx` left the machine more than 20 us after they were sent, and
    /// that is more than 10 % of their service time; lag is not visible at p50, and no serving thread was full.
    /// Limit: `generator`.
    GeneratorOut {
        /// The median time from the send to the device.
        out_ns: Nanos,
        /// The median time in the queueing discipline.
        queued_ns: Option<Nanos>,
        /// The way out, as a share of the service time.
        share: f64,
    },
    /// The server started anew between the readings (another process or run id, or an uptime shorter than the
    /// run), or the connections of the run show that it was gone for a time. Limit: `server`.
    ServerRestarted {
        /// Address of the server, where there are several.
        server: Option<String>,
        /// Account of the server itself; absent where only the connections of the run show that it was gone.
        anew: Option<StartedAnew>,
        /// Share of the keys that was not found.
        misses: f64,
        /// Longest wait of a request of an open loop.
        longest_wait_ns: Option<Nanos>,
    },
    /// The server counted more than 1 % more requests than this run sent, or a tenth as many foreign new
    /// connections as this run has. Limit: `others`.
    Others {
        /// Number of servers.
        servers: u64,
        /// Requests of others, and ours.
        requests: Option<(u64, u64)>,
        /// New connections of others.
        connections: u64,
        /// Whether there may be more of those connections.
        at_least: bool,
    },
    /// A network card carried more than 90 % of its speed, or the cloud's allowance was exceeded; not if all
    /// servers are local, nor if the card carried more than it claims. Limit: `network`.
    NetworkBandwidth {
        /// Name of the card.
        card: String,
        /// Agent on the machine of the card.
        agent: Option<String>,
        /// The bound that was reached.
        beyond: CardBound,
    },
    /// More than 0.1 % of the segments of this run were lost (where the peer does not say what arrived twice:
    /// were sent again), or timers of TCP ran out and at least one was lost; and p99.9 is 200 ms or more.
    /// Limit: `network`.
    NetworkLoss {
        /// Segments that did not arrive, or were sent again.
        segments: u64,
        /// Whether it is known that they did not arrive.
        lost: bool,
        /// All segments that were sent.
        sent: u64,
        /// The tail, which is as long as TCP waits.
        tail: TimeAt,
    },
    /// The server's receive window was full for more than 10 % of the time in which there was data to send, and
    /// no serving thread was full. Limit: `server`.
    ServerReceiveWindow {
        /// Share of the time with data to send for which its receive window was full.
        share: f64,
    },
    /// The send buffer was full for more than 10 % of that time. Limit: `generator`.
    GeneratorSendBuffer {
        /// Share of the time with data to send for which they were full.
        share: f64,
    },
    /// A serving thread was full, and the others used less than 60 % of a CPU on average. Limit: `server`.
    ServerOneThread {
        /// Address of the server, where there are several.
        server: Option<String>,
        /// Number of serving threads.
        threads: u32,
        /// Use of the full thread.
        busiest: ThreadTime,
        /// Mean share of a CPU that the others used.
        others: f64,
    },
    /// A serving thread was full. Limit: `server`.
    ServerCpu {
        /// Address of the server, where there are several.
        server: Option<String>,
        /// Number of serving threads.
        threads: Option<u32>,
        /// Use of the busiest thread, or the mean of all where no thread was seen.
        busiest: ThreadTime,
        /// Mean share of a CPU that the others used; absent where they were not seen.
        others: Option<f64>,
        /// Number of client threads.
        client_threads: u64,
        /// Share of its time for which the busiest client thread was busy.
        client_busy: f64,
    },
    /// A server that executes one command after the other was inside commands for more than 90 % of the time by
    /// its own account: sleeps, disks and locks occupy it without using its CPU. Or, with `--probe`, each of
    /// ten requests at a time took at least 5 times as long as one at a time, and requests waited for each
    /// other in the run. Limit: `server`.
    ServerOccupied {
        /// Address of the server, where there are several.
        server: Option<String>,
        /// The proof of it.
        by: Occupied,
        /// Share of a CPU that it used at most.
        cpu: Option<f64>,
    },
    /// Open loop: waits count, no serving thread was occupied (had a CPU, waited for one, or was inside a
    /// command) for 60 % of its time or a probe found that requests took no more than twice the time of one
    /// alone, and the server's service is steady. Limit: `connections`.
    Slots {
        /// Wait at its quantile.
        wait: TimeAt,
        /// Slots that were taken on average.
        taken: f64,
        /// Number of all slots.
        slots: u64,
        /// The connections that they belong to.
        clients: Clients,
        /// Proof that the server had time.
        meanwhile: Spare,
        /// Whether something other than its CPU may have occupied the server.
        may_be_occupied: bool,
    },
    /// Closed loop: no client thread was busy, and no serving thread occupied, for more than 80 % of its time;
    /// where the latter is not known, a probe found that requests took no more than twice the time of one
    /// alone. Limit: `connections`.
    InFlight(InFlight),
    /// Closed loop: the server's CPU is not known, client threads were busy for less than 80 %, and requests
    /// were with the server for more than 80 % of their time. Limit: `server`.
    ServiceByExclusion {
        /// Share of their time that requests were with the server, or under way.
        share: f64,
        /// Number of client threads.
        client_threads: u64,
        /// Share of its time for which the busiest client thread was busy.
        client_busy: f64,
        /// The reason why the server's CPU is not known.
        unread: Option<String>,
    },
    /// A serving thread could have run but had no CPU for more than 5 % of its time. Limit: `server`.
    ServerRunDelay {
        /// Address of the server, where there are several.
        server: Option<String>,
        /// Share of its time for which it waited.
        share: f64,
        /// The user of the CPU meanwhile.
        taker: Option<DelayTaker>,
    },
    /// Open loop at one rate: each tenth of a second (longer in long runs) has replies, the upper bound of the
    /// rate of answers is below 99 % of the rate of requests, the backlog grows to the end, and responses
    /// become longer. Limit: `server`.
    Overload {
        /// Requests per second that were due.
        asked: f64,
        /// Requests per second that were answered.
        answered: f64,
        /// Requests that were due and not answered at the end.
        backlog: u64,
        /// The connections, where their slots were taken all the time.
        full: Option<Clients>,
    },
    /// The server evicted records, or had no memory for a store; or more than 0.1 % of the keys were not found
    /// although this run stored all records and neither removes records nor asks for other keys; or a run that
    /// stored nothing before missed so many, and no server counted an eviction, an expiry or a flush. Limit:
    /// `workload`.
    LostRecords {
        /// Share of the keys that was not found.
        misses: f64,
        /// The way in which they were lost.
        why: LostWhy,
    },
    /// Opening a connection takes more than 80 % of the median service, and no serving thread was occupied for
    /// 60 % of its time; not for local servers, nor with TLS. Limit: `network`.
    Way {
        /// The median time to open a connection.
        connect_ns: Nanos,
        /// The median service time.
        service_ns: Nanos,
    },
    /// Open loop: waits count; the service varies more than that of a server that works without pause (squared
    /// coefficient of variation above 4), or waits are three times as long as predicted. Limit: `server`.
    ServerBursts {
        /// Times without any reply while requests were due; empty where they are not known.
        standstills: Vec<Standstill>,
        /// The longest service time.
        longest_ns: Nanos,
        /// Whether that is a lower bound.
        longest_is_bound: bool,
        /// The median service time.
        median_ns: Nanos,
        /// The wait of requests behind those that it kept.
        wait: TimeAt,
        /// The measured waits as a multiple of those that independent service times make, where that is much.
        ratio: Option<f64>,
        /// Words of the servers on that time.
        server_says: Vec<String>,
    },
    /// More than 1 % of the requests got no answer. Limit: `server`.
    Unanswered {
        /// Share of the requests.
        share: f64,
        /// Times without any reply while requests were due; empty where they are not known.
        standstills: Vec<Standstill>,
        /// The rate before the first of them, where it was clearly less than what was asked.
        overload: Option<Outpaced>,
        /// Time after which a request was given up.
        timeout_ns: Nanos,
        /// The lag at p99.
        lag_p99_ns: Nanos,
    },
    /// Open loop: waits count. Limit: `server`.
    WaitsByExclusion {
        /// Wait at its quantile.
        wait: TimeAt,
        /// The part that connections had in it.
        why: WaitedFor,
    },
    /// Closed loop, and no row above holds. Limit: `connections`.
    ClosedLoop(InFlight),
    /// Open loop, and no row above holds: requests were answered as they came. Limit: `none`.
    None {
        /// The resource that would be used up first as the rate grows.
        next: Option<NextLimit>,
    },
}

/// The use of a resource, and the rate at which it is used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextLimit {
    /// Name of the resource.
    pub resource: Resource,
    /// Share that was used.
    pub share: f64,
    /// Requests per second at which all of it is used.
    pub full_at_rate: f64,
}

/// A side of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The client threads.
    Client,
    /// Server under test.
    Server,
}

/// Party that turned connections away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnedAwayBy {
    /// The server itself, which had as many as it takes.
    Server,
    /// The full queue of the server's listening socket.
    ItsQueue,
    /// A full queue of some listening socket of the server's machine.
    QueueOfMachine,
}

/// A time at a quantile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TimeAtQuantile"))]
pub struct TimeAt {
    /// Name of the quantile, such as `p99`.
    pub quantile: String,
    /// Time that was taken.
    pub time_ns: Nanos,
}

impl TimeAt {
    /// A time at the quantile of this name.
    pub fn new(quantile: &str, time_ns: Nanos) -> TimeAt {
        TimeAt { quantile: quantile.to_owned(), time_ns }
    }
}

/// CPU time that was taken from a client thread, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TakenCpu {
    /// Taker of the CPU.
    pub by: CpuTaker,
    /// The time that it took.
    pub time_ns: Nanos,
}

/// CPU time that the client threads of a process lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostCpu {
    /// Name of the agent; absent in a run without agents.
    pub agent: Option<String>,
    /// Share of its time that the worst thread lost.
    pub share: f64,
    /// Time that the worst thread lost.
    pub lost_ns: Nanos,
    /// The taker of most of it; absent where it is not known.
    pub taken: Option<TakenCpu>,
}

/// The use of the CPUs that client and server share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedMachine {
    /// Number of those CPUs.
    pub cpus: u64,
    /// Whether they are all CPUs of the machine.
    pub is_whole: bool,
    /// Share of their time for which they were busy.
    pub busy: f64,
    /// CPUs that the client threads and their process used.
    pub client_cpus: f64,
    /// CPUs that the servers used.
    pub server_cpus: f64,
    /// Software of the servers.
    pub software: Option<String>,
    /// Whether each side waited for the other.
    pub both_waited: bool,
}

/// Advice for client threads without time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThreadAdvice {
    /// More threads are the advice.
    MoreThreads,
    /// More connections and threads, as each connection has a thread already.
    MoreConnections,
    /// Another machine, as this one has no CPU for another thread.
    AnotherMachine,
}

/// The account of a server that started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedAnew {
    /// Time for which it had been up at the end.
    pub uptime_s: Option<u64>,
    /// Time between the two readings.
    pub span_ns: Nanos,
}

/// The bound of a network card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CardBound {
    /// The share of its speed that it carried.
    Speed(f64),
    /// Packets beyond what the cloud allows the machine.
    Allowance(u64),
}

/// The time of one thread, in shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadTime {
    /// Share of a CPU that it used.
    pub cpu: f64,
    /// Share of the time for which it waited for that CPU, where that filled it.
    pub waited: Option<f64>,
}

/// Proof that a server was occupied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Occupied {
    /// Share of the time that it spent inside commands, which it executes one after the other.
    InCommands(f64),
    /// Median service times of one request at a time, and of each of ten.
    Probed {
        /// One request at a time.
        one_ns: Nanos,
        /// Each of ten at a time.
        ten_ns: Nanos,
    },
}

/// Proof that a server had time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spare {
    /// The service time of one request at a time, which hardly rose.
    AsFastAsAlone(Nanos),
    /// Share of a CPU that its busiest thread used at most.
    Cpu(f64),
}

/// The connections of a run, and what they may have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clients {
    /// Number of connections.
    pub connections: u64,
    /// Requests that each may have in flight; absent where groups differ, or there is no limit.
    pub depth: Option<u32>,
    /// Requests that each sends together, when those before are all answered; absent where they are not sent in batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Whether the number of connections changes, and this is its mean over time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_mean: bool,
}

/// Requests in flight of a closed loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InFlight {
    /// Requests that were in flight on average.
    pub flown: f64,
    /// Requests that may be in flight; absent where there is no limit.
    pub slots: Option<u64>,
    /// Whether clearly fewer were in flight than may be.
    pub is_below: bool,
    /// Connections of the clients.
    pub clients: Clients,
    /// The median response time.
    pub response_p50_ns: Nanos,
    /// The service time of one request at a time, where that was probed and hardly rose.
    pub alone_ns: Option<Nanos>,
    /// Share of a CPU that the busiest thread of the servers used at most.
    pub server_busy: Option<f64>,
    /// Whether that share is only a bound.
    pub server_busy_is_bound: bool,
    /// Number of client threads.
    pub client_threads: u64,
    /// Share of its time for which the busiest client thread was busy.
    pub client_busy: f64,
    /// Advice to have more in flight; absent where something else has no time for it.
    pub more: Option<MoreInFlight>,
}

/// Advice to have more requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MoreInFlight {
    /// More give more load.
    Sure,
    /// More give more load, unless something other than its CPU occupies the server.
    UnlessOccupied,
}

/// The user of the CPU while a thread of a server waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelayTaker {
    /// Processes that are not of this run.
    OtherProcesses,
    /// Other threads of the servers.
    Servers,
}

/// The way in which records were lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LostWhy {
    /// The servers do not hold them all.
    Memory {
        /// Records that were evicted.
        evictions: u64,
        /// Stores that found no memory.
        refused_stores: u64,
        /// Share of the memory that the fullest server used.
        full: Option<f64>,
        /// Software of the servers.
        software: Vec<String>,
    },
    /// Something else than this run removed them.
    Removed {
        /// Records that were stored before.
        stored: u64,
    },
    /// The keys were in no server when the run began.
    NeverThere(NeverThere),
}

/// A time in which a server answered nothing while requests were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standstill {
    /// Its beginning, from the beginning of the measured phase.
    pub from_ns: Nanos,
    /// End of the standstill.
    pub to_ns: Nanos,
    /// Whether it lasted to the end of the run.
    pub lasted: bool,
}

/// The rates of a server that answered less than was asked of it, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outpaced {
    /// Rate of the requests that were due.
    pub asked: f64,
    /// Rate of the answers.
    pub answered: f64,
}

/// Reason for which requests waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitedFor {
    /// Connections that were not there.
    Connections {
        /// Connections that were lost.
        lost: u64,
        /// Attempts to open one that failed.
        failed: u64,
    },
    /// Others to be answered.
    Answers {
        /// Number of connections.
        connections: u64,
        /// The lag at p99.
        lag_p99_ns: Nanos,
        /// Share of a CPU that the busiest thread of the servers used at most.
        server_busy: Option<f64>,
        /// The reason why that is not known.
        unread: Option<String>,
    },
}

impl Cause {
    /// Whether the cause is a matter of trust alone in an open loop whose rate was carried: it makes requests late, which their lag
    /// shows, or both sides share CPUs, which limits nothing there.
    pub fn is_of_trust(&self) -> bool {
        matches!(
            self,
            Cause::SharedCpu { .. }
                | Cause::GeneratorCpuTaken(_)
                | Cause::GeneratorThreadBusy { .. }
                | Cause::GeneratorKeptBack { .. }
                | Cause::GeneratorStoodStill { .. }
        )
    }

    /// The names of servers, agents, cards and keys, and the words of servers, each to be changed.
    pub fn names_mut(&mut self) -> Vec<&mut String> {
        match self {
            Cause::GeneratorCpuTaken(lost) => lost.agent.iter_mut().collect(),
            Cause::SharedCpu { agent, server, .. } => agent.iter_mut().chain(server).collect(),
            Cause::NetworkBandwidth { card, agent, .. } => [card].into_iter().chain(agent).collect(),
            Cause::ServerRestarted { server, .. }
            | Cause::ServerOneThread { server, .. }
            | Cause::ServerCpu { server, .. }
            | Cause::ServerOccupied { server, .. }
            | Cause::ServerRunDelay { server, .. } => server.iter_mut().collect(),
            Cause::ServiceByExclusion { unread, .. }
            | Cause::WaitsByExclusion { why: WaitedFor::Answers { unread, .. }, .. } => {
                unread.iter_mut().collect()
            }
            Cause::LostRecords { why: LostWhy::NeverThere(never), .. } => vec![&mut never.key_prefix],
            Cause::ServerBursts { server_says, .. } => server_says.iter_mut().collect(),
            Cause::None { next: Some(next) } => next.resource.names_mut(),
            _ => Vec::new(),
        }
    }
}
