//! Evidence on one server, from the server itself and from the kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::machine::ThreadUse;
use super::slabs::SlabClass;
use super::slots::SlotUse;
use pummel_logic::time::{Nanos, SECOND};

/// The beginning of the words of a disturbance that removed all records.
pub const FLUSHED: &str = "emptied";

/// Name of the fact that says whether a server holds the first record of a load with the usual settings; it is none of its
/// statistics.
pub const USUAL_RECORD: &str = "usual_record";

/// Evidence on one server of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEvidence {
    /// Address of the server, as in the Plan.
    pub address: String,
    /// Server's own reading; absent where it could not be asked.
    pub reading: Option<ServerReading>,
    /// Why the server's own words are missing, as a sentence without its full stop; absent where they are not.
    pub unread: Option<String>,
    /// The threads of the server's process, the busiest first; absent where the process is not on this machine, or cannot
    /// be seen.
    pub threads: Option<Vec<ThreadUse>>,
    /// Why the threads are missing, as a sentence without its full stop; absent where they are not, and on another
    /// machine.
    pub threads_unread: Option<String>,
    /// Time between the two readings of the threads, in nanoseconds.
    pub threads_span_ns: Nanos,
    /// Attempts to connect that the listening sockets of the server turned away between the readings, since their queue was
    /// full; absent where the server is on another machine or in another namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_drops: Option<u64>,
    /// Resident memory of the server's process at the second reading, in bytes, by the kernel; absent where the process is not on
    /// this machine, or cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// Machine of the threads, as [`MachineEvidence::host`](super::MachineEvidence::host); absent where they are not seen.
    #[serde(default)]
    pub host: Option<u64>,
    /// CPUs that the process may run on, as the kernel lists them; absent where that is not known.
    #[serde(default)]
    pub cpus: Option<String>,
    /// Requests of this process between the readings, as `our_requests` of the reading counts them; absent where they are
    /// not known.
    #[serde(default)]
    pub asked: Option<u64>,
}

impl ServerReading {
    /// Whether the counters cover the time between the two readings: they did not begin anew in between.
    pub fn is_whole(&self) -> bool {
        !self.restarted && !self.counters_reset
    }

    /// Whether two readings are most likely of one process: they have the same process id and have counted the same.
    pub fn is_of_one_process(&self, other: &ServerReading) -> bool {
        self.pid.is_some()
            && self.pid == other.pid
            && self.software == other.software
            && self.counts.requests == other.counts.requests
    }
}

/// Differences between a server's own statistics before and after the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReading {
    /// Name of the program: `memcached`, `redis` or `valkey`.
    pub software: String,
    /// Version of the program.
    pub version: String,
    /// Number of threads that answer requests: memcached's `threads`; for Redis 1, or its `io-threads`, which count the
    /// main thread, where those read or wrote.
    pub serving_threads: Option<u32>,
    /// Number of the process on the server's machine.
    pub pid: Option<u32>,
    /// Time between the two readings, in nanoseconds.
    pub span_ns: Nanos,
    /// Whether the server started anew between the two readings.
    pub restarted: bool,
    /// Whether the counters of a server that went on running were set to 0 between the two readings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counters_reset: bool,
    /// Time for which the server had been up at the second reading, in seconds, by its own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<u64>,
    /// CPU time of the process, user and system, by its own account.
    pub cpu_ns: Option<Nanos>,
    /// CPU time of the main thread, by the server's own account.
    pub main_thread_cpu_ns: Option<Nanos>,
    /// Time that the server spent inside commands, all of them together, by its own account; it may be no more than a part of it.
    /// A server that executes one command after the other is occupied for that time, whatever CPU it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_commands_ns: Option<Nanos>,
    /// Differences of the server's counters.
    pub counts: ServerCounts,
    /// Requests that were ours, of the whole run, between the two readings; the readings themselves are left out of both.
    pub our_requests: Option<u64>,
    /// Memory in use at the second reading, in bytes.
    pub memory_bytes: Option<u64>,
    /// Limit of memory, in bytes; absent where there is none.
    pub memory_limit_bytes: Option<u64>,
    /// Open connections at the second reading.
    pub connections: Option<u64>,
    /// Limit of connections.
    pub connections_max: Option<u64>,
    /// Disturbances of the server, each in a few words: `hash table expanding`, `slabs moving`, `snapshot (fork 12
    /// ms)`.
    pub disturbances: Vec<String>,
    /// The server's own times of commands, where it keeps them.
    pub commands: Vec<CommandTimes>,
    /// Settings of the server that decide how it treats records and connections, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Memory that the server has taken from the system at the second reading, in bytes: memcached's pages of slabs, the
    /// resident memory of Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_taken_bytes: Option<u64>,
    /// Resident memory of the process at the second reading, in bytes, by the server's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// Whether the server held the first record of a load with the usual settings before the run; absent where the server was not
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_record: Option<bool>,
    /// Background saves that were under way between the readings, as far as the server reports their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saves: Vec<BackgroundSave>,
    /// Errors with which the server answered, where it counts them by their first word, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
    /// The newest commands that the server calls slow, without their arguments, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_commands: Vec<SlowCommand>,
    /// Events of the server's own latency monitor between the readings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_events: Vec<LatencyEvent>,
    /// The classes of sizes of memcached that have records, or lost some between the readings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<SlabClass>,
    /// The hash slots of a cluster's node that took the most, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotUse>,
}

/// A save of a server's records to a file by a child process, between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundSave {
    /// The file that was written.
    pub kind: SaveKind,
    /// Beginning of the save, in nanoseconds from the first reading; absent where it was under way by then. Servers
    /// report whole seconds.
    pub from_ns: Option<Nanos>,
    /// End of the save, in nanoseconds from the first reading; absent where it was not over at the second one.
    pub to_ns: Option<Nanos>,
}

/// The file that a background save writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaveKind {
    /// The snapshot of all records.
    Snapshot,
    /// The append-only file, which is written anew.
    AppendOnlyFile,
}

impl BackgroundSave {
    /// Whether the save was under way for a part of the time between the readings, and not for all of it.
    pub fn is_partial(&self) -> bool {
        self.from_ns.is_some() || self.to_ns.is_some()
    }

    /// Time of the save, in whole seconds from the first reading, as a part of a sentence such as `saved in the
    /// background from about 8 s to 11 s`.
    pub fn words(&self) -> String {
        let what = match self.kind {
            SaveKind::Snapshot => "saved in the background",
            SaveKind::AppendOnlyFile => "wrote its append-only file anew",
        };
        let text = |ns: Nanos| ns.saturating_add(SECOND / 2) / SECOND;
        match (self.from_ns, self.to_ns) {
            (Some(from), Some(to)) => format!("{what} from about {} s to {} s", text(from), text(to)),
            (Some(from), None) => format!("{what} from about {} s to the end", text(from)),
            (None, Some(to)) => format!("{what} from the beginning to about {} s", text(to)),
            (None, None) => format!("{what} all the time"),
        }
    }
}

/// Number of times that a server answered with an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorCount {
    /// First word of the error, such as `MOVED`.
    pub name: String,
    /// Number of answers with this error.
    pub count: u64,
}

/// A command that a server calls slow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowCommand {
    /// Name of the command, in lower case; `?` if it is not a valid name.
    pub name: String,
    /// Time at which the command was executed, in seconds of Unix time by the server's clock.
    pub at_unix_s: u64,
    /// Time that the command took inside the server, in nanoseconds.
    pub took_ns: Nanos,
}

/// An event that a server's own watch on its latency noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyEvent {
    /// Name of the event, such as `command` or `fork`.
    pub name: String,
    /// Time of the latest event, in seconds of Unix time by the server's clock.
    pub at_unix_s: u64,
    /// Duration of the latest event, in nanoseconds.
    pub latest_ns: Nanos,
    /// Longest duration of the event since the server started or reset its list, in nanoseconds.
    pub greatest_ns: Nanos,
}

/// Counters of a server as differences; absent where the server does not count such a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerCounts {
    /// Requests of all kinds.
    pub requests: Option<u64>,
    /// Keys that reads asked for.
    pub gets: Option<u64>,
    /// Stores that clients asked for.
    pub sets: Option<u64>,
    /// Keys that were found.
    pub hits: Option<u64>,
    /// Keys that were not found.
    pub misses: Option<u64>,
    /// Records that were removed to make room.
    pub evictions: Option<u64>,
    /// Records that expired.
    pub expired: Option<u64>,
    /// Stores that failed for lack of memory.
    pub out_of_memory: Option<u64>,
    /// Connections that came.
    pub connections_opened: Option<u64>,
    /// Connections that were refused because there were too many.
    pub connections_refused: Option<u64>,
    /// Number of times that the server stopped taking connections.
    pub listen_disabled: Option<u64>,
    /// Number of times that a connection had to let others go first.
    pub yields: Option<u64>,
}

/// A server's own times of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTimes {
    /// Name of the command, in lower case.
    pub name: String,
    /// Calls between the two readings.
    pub calls: u64,
    /// Mean time of a call, in nanoseconds.
    pub mean_ns: Nanos,
    /// Median, in nanoseconds, since the start of the server; absent where the server does not say.
    pub p50_ns: Option<Nanos>,
    /// 99th percentile, in nanoseconds, since the start of the server; absent where the server does not say.
    pub p99_ns: Option<Nanos>,
    /// 99.9th percentile, in nanoseconds, since the start of the server; absent where the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_ns: Option<Nanos>,
    /// A time that half of the calls between the readings did not exceed, in nanoseconds: the end of a cell of the
    /// server's histogram, whose cells double; absent if the server keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_at_most_ns: Option<Nanos>,
    /// A time that 99 % of the calls between the readings did not exceed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_at_most_ns: Option<Nanos>,
    /// A time that 99.9 % of the calls between the readings did not exceed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9_at_most_ns: Option<Nanos>,
}

impl ServerEvidence {
    /// Enters the requests that this process sent between the readings, where they are known. They are not comparable, and
    /// left out, where the server was read at another time than the run (the reading has no `our_requests`).
    pub fn set_our_requests(&mut self, asked: Option<u64>) {
        let is_comparable = self.reading.as_ref().is_none_or(|reading| reading.our_requests.is_some());
        self.asked = asked.filter(|_| is_comparable);
        if let Some(reading) = &mut self.reading {
            reading.our_requests = self.asked;
        }
    }

    /// Notes that requests were sent that no process of the run has counted.
    pub fn forget_our_requests(&mut self) {
        self.set_our_requests(None);
    }

    /// Adds the evidence of another process on the same server: what is known replaces what is not.
    pub fn merge(&mut self, other: &ServerEvidence) {
        let asked = self.asked.zip(other.asked).map(|(one, another)| one.saturating_add(another));
        if self.reading.is_none() && other.reading.is_some() {
            self.reading.clone_from(&other.reading);
            self.unread = None;
        }
        if self.threads.is_none() && other.threads.is_some() {
            self.threads.clone_from(&other.threads);
            self.threads_span_ns = other.threads_span_ns;
            self.threads_unread = None;
            (self.host, self.cpus) = (other.host, other.cpus.clone());
        }
        self.listen_drops = self.listen_drops.or(other.listen_drops);
        self.resident_bytes = self.resident_bytes.or(other.resident_bytes);
        if self.reading.is_none() && self.unread.is_none() {
            self.unread.clone_from(&other.unread);
        }
        if self.threads.is_none() && self.threads_unread.is_none() {
            self.threads_unread.clone_from(&other.threads_unread);
        }
        self.asked = asked;
        if let Some(reading) = &mut self.reading {
            reading.our_requests = asked;
        }
    }
}

/// A server's limit of connections, by its own statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// Most connections at one time: `maxconns` of memcached, `maxclients` of Redis; absent where the server does not
    /// report it.
    pub connections_max: Option<u64>,
    /// Connections that the server has refused since its start; absent where the server does not count them.
    pub refused: Option<u64>,
}

impl ConnectionLimit {
    /// Reads the limit from the counters and the settings of a server.
    pub fn of(counters: &Facts, settings: &Facts) -> ConnectionLimit {
        let limit = counters.number("max_connections").or(settings.number("maxconns"));
        ConnectionLimit {
            connections_max: limit.or(counters.number("maxclients")),
            refused: counters.number("rejected_connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memcached_and_redis_name_their_limit_each_in_its_own_way() {
        let facts = |list: &[(&str, &str)]| {
            let mut facts = Facts::default();
            for (name, value) in list {
                facts.add(name.as_bytes(), value.as_bytes());
            }
            facts
        };
        let of = |counters, settings| ConnectionLimit::of(&facts(counters), &facts(settings));
        let limit = |connections_max, refused| ConnectionLimit { connections_max, refused };
        let counters = [("max_connections", "40"), ("rejected_connections", "49")];
        assert_eq!(of(&counters, &[("maxconns", "40")]), limit(Some(40), Some(49)));
        assert_eq!(
            of(&counters[1..], &[("maxconns", "41")]),
            limit(Some(41), Some(49)),
            "an older memcached"
        );
        let redis = [("maxclients", "10000"), ("rejected_connections", "0")];
        assert_eq!(of(&redis, &[]), limit(Some(10_000), Some(0)));
        assert_eq!(of(&[], &[]), ConnectionLimit::default(), "another server");
    }
}
