//! The Plan: everything that a run needs, as plain data that is saved, printed and sent to agents.
//!
//! A command line is one way to write a Plan. Nothing in it refers to this machine but for names of servers, of CPUs and
//! of files with certificates; two processes with equal Plans send the same requests.

mod absent;
mod adaptive;
pub mod address;
mod arrivals;
mod as_text;
pub mod baseline;
mod bucket_shares;
mod changes;
pub mod cluster;
mod command;
mod data;
mod dataset;
mod defaults;
pub mod detect;
mod event;
mod fail_on;
mod group;
mod key_churn;
mod labels;
mod machine;
pub mod memory;
mod phase;
mod plan_commands;
mod popularity;
pub mod probe;
mod protocol;
mod rank_shares;
mod retry;
mod script;
pub mod share;
mod slot_range;
mod stage;
pub mod timing;
mod trace;
pub mod validate;
mod window;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::absent::{is_default, is_true, yes};

pub use self::adaptive::{Adaptive, Settle, Until};
pub use self::arrivals::{Arrivals, BURST_MAX};
pub use self::as_text::TextError;
pub use self::bucket_shares::{BucketShare, BucketShares};
pub use self::changes::{
    Burst, BurstSources, BurstStates, Changes, Day, PARTS_MAX, POINTS_MAX, Part, RatePoint, RateShape, Sine,
};
pub use self::cluster::{ClusterOptions, ReadFrom, Rewrite};
pub use self::command::{Command, LoadCommand, NAME_MAX_BYTES as COMMAND_NAME_MAX_BYTES};
pub use self::data::{Data, KeyStyle, Style, VALUE_CLASSES_MAX, ValueClass, ValueStyle};
pub use self::dataset::{Dataset, DatasetForm, DatasetOrder};
pub use self::event::{EVENTS_MAX, Event, EventKind, FlashCrowd, HotKey, LOST_MAX, RankRange};
pub use self::fail_on::FailOn;
pub use self::group::{ChurningClients, ClientPolicy, Depth, Gap, Group, Late, Sequence, Spawns};
pub use self::key_churn::{CHURN_ACCEPTED, ChurnError, KeyChurn, LIFE_MIN};
pub use self::labels::{LABEL_ACCEPTED, LABELS_MAX, Labels, is_label, labels_text};
pub use self::machine::{Backend, Clock, Engine, Socket, TlsOptions, TransmitSampling, Wait};
pub use self::phase::{Audit, Delete, Fill, Load, Mix, Pause, Phase, Replay, Stop, Work};
pub use self::plan_commands::CommandWithoutData;
pub use self::popularity::{POPULARITIES, Popularity};
pub use self::protocol::{CodecOptions, Protocol, ProtocolRow, ServerFamily, WithCodec};
pub use self::rank_shares::{RankCount, RankShare, RankShares};
pub use self::retry::{RETRY_FOR_NS, Retry, RetryKind};
pub use self::script::{SCRIPT_MAX_BYTES, Script, script_name};
pub use self::slot_range::SlotRange;
pub use self::stage::{Stage, StageStep, StageTurn};
pub use self::trace::{
    DealBy, Fills, MappedVerb, TRACE_VERBS, TracePace, TraceReplay, TraceTtl, WithinSecond,
};
pub use self::window::{Lengths, Pool, Replication, Window};
use crate::dist::Dist;
use crate::protocol::Verb;
use crate::protocol::text::BOGUS_WORD;
use crate::secrets;
use crate::time::{Nanos, typed_time};

/// The layout of the Plan that this version writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// Everything that a run needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Layout of this data: 1.
    pub schema: u32,
    /// The servers that get the load: `host:port`, `[v6]:port` or `/path/of/a/socket`. At least one.
    pub servers: Vec<String>,
    /// The rule that decides which server holds a record and is asked for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub route: Route,
    /// The treatment of a cluster's redirects and of its nodes' names; with the route `cluster` alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cluster: ClusterOptions,
    /// The protocol that the servers speak.
    pub protocol: Protocol,
    /// The transport that carries requests and replies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
    /// Seed of arrivals and of the choice of operations and keys.
    pub seed: u64,
    /// The least time between two intervals of the result.
    pub interval_ns: Nanos,
    /// The longest time in nanoseconds that a request may take from `ready` on (the latest of due, slot free, connection
    /// open, socket writable), and a connection to open.
    pub timeout_ns: Nanos,
    /// Open connections again that the server closed. A connection that a timed-out request had to close is always
    /// opened again.
    pub reconnect: bool,
    /// The errors after which requests are sent again, beside the redirects of a cluster; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Whether the keys of requests that failed are kept beside the result, up to a limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed_keys: bool,
    /// Share of the answers with values that are checked, 0 to 1.
    pub verify: f64,
    /// Bounds that the response times of the run have to keep.
    pub goals: Vec<Goal>,
    /// Threads, CPUs, kernel interfaces.
    pub engine: Engine,
    /// Options of every socket.
    pub socket: Socket,
    /// The user that logs in on every connection; absent: no login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// Encryption of every connection; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
    /// Number of the database that every connection selects (RESP).
    #[serde(default, skip_serializing_if = "is_default")]
    pub database: u32,
    /// The messages about changed keys that every connection asks the server for (RESP3); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Tracking>,
    /// The commands of the operations `command`, `command-2` and so on (RESP), in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
    /// The command that loads store with under the keys of `commands` (RESP); absent: they store a plain value there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_command: Option<LoadCommand>,
    /// The file whose rows fill the places `__field:NAME__` of commands (RESP); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<Dataset>,
    /// The script whose name stands in place of `__script__` in commands (RESP); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// The records that all phases work on.
    pub data: Data,
    /// A run is complete although its load stored only a part of the records. A run whose load stored nothing at all is
    /// partial and ends with its load, whatever stands here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_partial_load: bool,
    /// Whether servers are asked for their statistics, and the machine is read, before and after the measured phases.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub evidence: bool,
    /// Whether round trips are made one at a time before the measured phase, which show what a request takes alone.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub baseline: bool,
    /// Whether the operations of the run are made once more after it, one at a time and ten at a time, so that a queue at the
    /// server is distinguished from a server that has time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub probe: bool,
    /// Whether results leave out the names, addresses and ids of machines and servers, and the command line.
    #[serde(default, skip_serializing_if = "is_default")]
    pub anonymous: bool,
    /// Interval at which servers are asked for their statistics within the measured phases, in nanoseconds; absent:
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_stats_ns: Option<Nanos>,
    /// Addresses at which servers are asked for their statistics in place of `servers`, which are a proxy then; empty: the
    /// servers themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_stats_at: Vec<String>,
    /// Decisions that are made while the run goes on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub adaptive: Adaptive,
    /// The faults that make the run count as failed, in addition to missed goals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_on: Vec<FailOn>,
    /// Names and values that the user gave the run, for its result and its metrics; they change nothing else.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Changes of the load during the measured phase.
    #[serde(default, skip_serializing_if = "Changes::is_nothing")]
    pub changes: Changes,
    /// The groups of clients.
    pub groups: Vec<Group>,
    /// The phases of the run, one after the other.
    pub phases: Vec<Phase>,
}

/// The lives of the records' keys in a phase; `None` where they keep them.
fn churn_of(phase: &Phase) -> Option<&KeyChurn> {
    match &phase.work {
        Work::Mix(mix) => mix.churn.as_ref(),
        _ => None,
    }
}

/// The role in which a run reads a file of its Plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// A trace that is replayed; `-` is standard input.
    Trace,
    /// A file whose stores load the servers.
    Fill,
    /// A recording of mutilate's.
    Recording,
    /// The rows that fill places of commands.
    Dataset,
    /// The script that commands call, which was read when the plan was made.
    Script,
    /// The password of the login.
    Password,
    /// The authorities of TLS.
    TlsCa,
    /// The client certificate of TLS.
    TlsCert,
    /// The private key of the client certificate.
    TlsKey,
}

impl Plan {
    /// Nanoseconds for which keys have changed before phase `number`, by the times of the phases before it; `None` where that is
    /// known only when they are over.
    pub fn churned_before(&self, number: usize) -> Option<Nanos> {
        let before = self.phases[..number].iter().filter(|phase| churn_of(phase).is_some());
        let mut sum: Nanos = 0;
        for phase in before {
            let time_ns = phase.stop.time_ns.filter(|_| phase.stop.requests.is_none());
            sum = sum.saturating_add(time_ns.filter(|_| !self.adaptive.ends_warm_up())?);
        }
        Some(sum)
    }

    /// Whether records get other keys in phase `number`, at least in a part of it.
    pub fn churns(&self, number: usize) -> bool {
        let phase = &self.phases[number];
        let in_parts = phase.recorded && self.changes.parts.iter().any(|part| part.churn.is_some());
        churn_of(phase).is_some() || in_parts
    }

    /// The mixes of the Plan, with the numbers of their phases.
    pub fn mixes(&self) -> impl Iterator<Item = (usize, &Mix)> {
        self.phases.iter().enumerate().filter_map(|(number, phase)| match &phase.work {
            Work::Mix(mix) => Some((number, mix)),
            _ => None,
        })
    }

    /// The last phase before an audit, where it is measured and its requests are drawn from a mix: the requests of a probe.
    pub fn probed_phase(&self) -> Option<&Phase> {
        let is_behind = |work: &Work| matches!(work, Work::Audit(_) | Work::Pause(Pause { for_ns: 1.., .. }));
        self.phases
            .iter()
            .rfind(|phase| !is_behind(&phase.work))
            .filter(|phase| phase.recorded && matches!(phase.work, Work::Mix(_)))
    }

    /// The files that the Plan was made of, or that its run reads, each with what it is read as.
    pub fn files(&self) -> Vec<(FileRole, &str)> {
        let mut files: Vec<(FileRole, &str)> = Vec::new();
        for phase in &self.phases {
            match &phase.work {
                Work::Trace(replay) => {
                    let role = if replay.stores_only { FileRole::Fill } else { FileRole::Trace };
                    files.extend(replay.paths.iter().map(|path| (role, path.as_str())));
                }
                Work::Replay(replay) => files.push((FileRole::Recording, &replay.path)),
                _ => {}
            }
        }
        files.extend(self.dataset.iter().map(|dataset| (FileRole::Dataset, dataset.path.as_str())));
        files.extend(self.script.iter().map(|script| (FileRole::Script, script.path.as_str())));
        let password = self.login.as_ref().and_then(|login| login.password_file.as_deref());
        files.extend(password.map(|path| (FileRole::Password, path)));
        if let Some(tls) = &self.tls {
            let named =
                [(FileRole::TlsCa, &tls.ca), (FileRole::TlsCert, &tls.cert), (FileRole::TlsKey, &tls.key)];
            files.extend(named.into_iter().filter_map(|(role, path)| Some((role, path.as_deref()?))));
        }
        files
    }

    /// Whether every measured request is a write that servers are asked not to answer.
    pub fn measures_no_reply(&self) -> bool {
        let mut measured = self.phases.iter().filter(|phase| phase.recorded).peekable();
        let is_unanswered = |work: &Work| matches!(work, Work::Mix(mix) if !mix.is_answered());
        measured.peek().is_some() && measured.all(|phase| is_unanswered(&phase.work))
    }

    /// The Plan as results hold it: without its labels, which stand beside it there, and without the passwords in its commands; of
    /// an anonymous one, without all arguments of the commands, and without its script.
    #[must_use]
    pub fn told(&self) -> Plan {
        let hide = if self.anonymous { secrets::without_arguments } else { secrets::masked_command };
        let told = |command: &Command| Command { template: hide(&command.template), ..command.clone() };
        let commands = self.commands.iter().map(told).collect();
        let of_load = |load: &LoadCommand| LoadCommand { template: hide(&load.template), ..load.clone() };
        let load_command = self.load_command.as_ref().map(of_load);
        let hidden = |script: &Script| Script { text: secrets::HIDDEN.to_owned(), ..script.clone() };
        let script =
            self.script.as_ref().filter(|_| self.anonymous).map(hidden).or_else(|| self.script.clone());
        Plan { commands, load_command, script, ..self.clone() }.with_labels(Labels::new())
    }

    /// Whether a command of the Plan is one that [`Plan::told`] has changed, so that it is not the command of the run.
    pub fn has_masked_command(&self) -> bool {
        let of_load = self.load_command.iter().map(|load| load.template.as_str());
        let commands = self.commands.iter().map(|command| command.template.as_str()).chain(of_load);
        commands.into_iter().any(|command| match self.anonymous {
            true => command.ends_with(secrets::HIDDEN) && secrets::without_arguments(command) == command,
            false => secrets::is_masked(command),
        })
    }

    /// The Plan with these labels in place of its own.
    #[must_use]
    pub fn with_labels(self, labels: Labels) -> Plan {
        Plan { labels, ..self }
    }

    /// Name of a verb's requests in results: the word that is sent, or the name of the command, where the plan has one of its own.
    pub fn name_of(&self, verb: Verb) -> &str {
        let bogus = self.sequence().is_some_and(|sequence| sequence.bogus);
        match verb.command().and_then(|place| self.commands.get(place)) {
            Some(command) => &command.name,
            None if self.load_verb() == Some(verb) => LoadCommand::NAME,
            None if bogus && verb == Verb::Set => BOGUS_WORD,
            None => verb.name(),
        }
    }

    /// Number of connections that this many clients open; `None` on a cluster, whose nodes are found by the run.
    pub fn connections_of(&self, clients: u64) -> Option<u64> {
        (self.route != Route::Cluster).then(|| clients.saturating_mul(self.lanes() as u64))
    }

    /// The addresses at which servers are asked for their statistics.
    pub fn servers_asked(&self) -> &[String] {
        if self.server_stats_at.is_empty() { &self.servers } else { &self.server_stats_at }
    }

    /// Whether misses are distinguished by their causes: reads draw from a mix, and keys expire, change, are no
    /// records or are stored after a miss, in all phases whose reads are measured.
    pub fn tells_misses(&self) -> bool {
        let draws_none = |work: &Work| matches!(work, Work::Replay(_) | Work::Trace(_) | Work::Window(_));
        if self.phases.iter().any(|phase| phase.recorded && draws_none(&phase.work)) {
            return false;
        }
        let keys_end = self.data.expiry_s != Dist::Fixed(0.0) || !self.changes.events.is_empty();
        let has_parts = self.changes.parts.iter().any(Part::has_own_mix);
        let tells = |mix: &Mix| mix.tells_misses() || keys_end && mix.any_op(Verb::asks_for_values);
        let of_phase = |phase: &Phase| match &phase.work {
            Work::Mix(mix) if phase.recorded => {
                tells(mix) || has_parts && self.changes.parts.iter().any(|part| tells(&part.mix(mix)))
            }
            _ => false,
        };
        self.sequence().is_none() && self.phases.iter().any(of_phase)
    }

    /// The sequence that all requests belong to; `None` where the plan has none.
    pub fn sequence(&self) -> Option<&Sequence> {
        self.groups.iter().find_map(|group| group.churn.as_ref()?.sequence.as_ref())
    }

    /// The work of clients with windows; `None` where the plan has none.
    pub fn window(&self) -> Option<&Window> {
        self.phases.iter().find_map(|phase| match &phase.work {
            Work::Window(window) => Some(window),
            _ => None,
        })
    }

    /// The number of lanes of each client.
    pub fn lanes(&self) -> usize {
        match self.window() {
            Some(window) => window.pool.lanes(self.servers.len()),
            None => self.route.lanes(self.servers.len()),
        }
    }

    /// Whether the run reads back what it wrote.
    pub fn audits(&self) -> bool {
        self.phases.last().is_some_and(|phase| matches!(phase.work, Work::Audit(_)))
    }

    /// Whether a phase replays a recording.
    pub fn replays(&self) -> bool {
        self.phases.iter().any(|phase| matches!(phase.work, Work::Replay(_)))
    }

    /// The trace that phases replay while it is read; `None` where none does.
    pub fn trace(&self) -> Option<&TraceReplay> {
        self.phases.iter().find_map(|phase| match &phase.work {
            Work::Trace(replay) => Some(&**replay),
            _ => None,
        })
    }

    /// Whether the time of a recorded phase before this one is not over when this one begins, since a deletion divides
    /// it: so it is for the deletion, and for a recorded phase behind that. [`Stop::time_ns`] of such a phase counts from
    /// the beginning of the first part.
    pub fn runs_on(&self, phase: usize) -> bool {
        let deletes = |at: usize| matches!(self.phases[at].work, Work::Delete(_));
        let is_divided = |at: usize| deletes(at) && at > 0 && self.phases[at - 1].recorded;
        is_divided(phase) || (self.phases[phase].recorded && phase > 0 && is_divided(phase - 1))
    }
}

/// The transport of requests and replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP, or a unix stream socket.
    #[default]
    Stream,
    /// UDP: one datagram for each request.
    Udp,
}

crate::words! {
    /// The rule that decides which server holds a record, and which one a request goes to.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Route {
        /// All servers hold every record. A client has one connection and stays at one server; clients are dealt to the
        /// servers in turn.
        #[default]
        All = "all",
        /// All servers hold every record. A client has a connection to each, and its requests go to one after the other.
        RoundRobin = "roundrobin",
        /// A key lives on one server: the remainder of its hash, as libmemcached does by default.
        Modulo = "modulo",
        /// A key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
        Ketama = "ketama",
        /// A key lives on one server: libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, all servers having the same weight.
        KetamaWeighted = "ketama-weighted",
        /// A key lives on one server: the slots of a Redis cluster, spread evenly.
        Crc16 = "crc16",
        /// A key lives on one node of a Redis or Valkey cluster, which says itself which nodes it has and which slots each
        /// of them owns. The servers are those that are asked for it.
        Cluster = "cluster",
    }
}

crate::words! {
    /// The messages about changed keys that a RESP3 server sends to a connection without being asked for each.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Tracking {
        /// Changes of the keys that the connection has read.
        Keys = "keys",
        /// Changes of all keys.
        Broadcast = "bcast",
    }
}

impl Route {
    /// Whether each key lives on one server only.
    pub fn owns_keys(self) -> bool {
        !matches!(self, Route::All | Route::RoundRobin)
    }

    /// Whether hash slots decide where a key lives, so that the servers are nodes of a cluster.
    pub fn deals_slots(self) -> bool {
        matches!(self, Route::Crc16 | Route::Cluster)
    }

    /// The number of lanes of each client: one socket for each server that its requests may go to, and one for each node that
    /// may join a cluster.
    pub fn lanes(self, servers: usize) -> usize {
        match self {
            Route::All => 1,
            Route::Cluster => servers + servers.max(cluster::JOINING_MIN),
            _ => servers,
        }
    }
}

/// The login on every connection. The password is not part of a Plan: it is read where the run takes place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Name of the user.
    pub user: String,
    /// File whose first line is the password; absent: the environment variable PUMMEL_PASSWORD holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
}

/// A bound on a quantile of the response time of all recorded requests together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The quantile to keep low, above 0 and below 1.
    pub quantile: f64,
    /// The greatest value that meets the goal, in nanoseconds.
    pub limit_ns: Nanos,
}

/// Writes the goal as `--goal` takes it, such as `p99:1ms`.
impl fmt::Display for Goal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.4}", self.quantile * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        write!(to, "p{percent}:{}", typed_time(self.limit_ns))
    }
}

#[cfg(test)]
impl Plan {
    /// A plan of one server, one client and one measured phase.
    pub(crate) fn measuring(work: Work, stop: Stop) -> Plan {
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![Group::default()],
            phases: vec![Phase { name: "measure".to_owned(), work, stop, recorded: true }],
            ..Plan::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_written_as_they_are_typed() {
        let words = |quantile, limit_ns| Goal { quantile, limit_ns }.to_string();
        assert_eq!(words(0.999, 1_500_000), "p99.9:1500us");
        assert_eq!(words(0.5, 2_000_000_000), "p50:2s");
    }
}
