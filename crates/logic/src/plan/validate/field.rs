//! The fields of a Plan that can be refused, and their paths.

use std::fmt;

/// A field of a Plan, whichever of a list's items it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each stands for the path beside it in PATHS")]
pub enum Field {
    Schema,
    Servers,
    Server,
    Route,
    Transport,
    Seed,
    Interval,
    ServerStats,
    ServerStatsAt,
    ServerStatsAddress,
    Probe,
    Timeout,
    Verify,
    GoalQuantile,
    GoalLimit,
    Threads,
    Stamps,
    Linger,
    SendBuffer,
    RecvBuffer,
    Sources,
    Source,
    TlsCert,
    TlsKey,
    User,
    Database,
    Command,
    Records,
    DataSeed,
    KeyPrefix,
    KeySize,
    ValueSize,
    ValueClasses,
    Expiry,
    FieldBytes,
    ExpiryJitter,
    Groups,
    GroupName,
    TotalClients,
    Clients,
    Depth,
    Arrivals,
    Rate,
    Calls,
    Spawns,
    SpawnsRate,
    SpawnsArrivals,
    Sequence,
    Block,
    Phases,
    Stop,
    StopTime,
    StopRequests,
    Load,
    LoadDepth,
    LoadNoPlain,
    Operations,
    Popularity,
    MultiGet,
    MultiSet,
    Fresh,
    Absent,
    Churn,
    ReadThrough,
    Fill,
    FillDelay,
    ReadModifyWrite,
    Inserts,
    Scans,
    Noreply,
    Vivify,
    Recache,
    Stale,
    MetaDetails,
    Window,
    ReplayFormat,
    ReplayReadThrough,
    Trace,
    TraceSpeed,
    TracePasses,
    TraceEnd,
    TraceSample,
    TraceAmplify,
    TraceFillDelay,
    TraceFillDist,
    TraceMissingSize,
    TraceValueMax,
    DeleteShare,
    DeleteDepth,
    PauseUntil,
    Settle,
    FirstEviction,
    Until,
    UntilLeast,
    Labels,
    RateShape,
    Burst,
    Parts,
    Events,
}

/// Every field with its path; `[]` stands for the number of an item in a list.
const PATHS: [(Field, &str); 99] = [
    (Field::Schema, "schema"),
    (Field::Servers, "servers"),
    (Field::Server, "servers[]"),
    (Field::Route, "route"),
    (Field::Transport, "transport"),
    (Field::Seed, "seed"),
    (Field::Interval, "interval_ns"),
    (Field::ServerStats, "server_stats_ns"),
    (Field::ServerStatsAt, "server_stats_at"),
    (Field::ServerStatsAddress, "server_stats_at[]"),
    (Field::Probe, "probe"),
    (Field::Timeout, "timeout_ns"),
    (Field::Verify, "verify"),
    (Field::GoalQuantile, "goals[].quantile"),
    (Field::GoalLimit, "goals[].limit_ns"),
    (Field::Threads, "engine.threads"),
    (Field::Stamps, "engine.stamps"),
    (Field::Linger, "socket.linger_s"),
    (Field::SendBuffer, "socket.send_buffer"),
    (Field::RecvBuffer, "socket.recv_buffer"),
    (Field::Sources, "socket.source"),
    (Field::Source, "socket.source[]"),
    (Field::TlsCert, "tls.cert"),
    (Field::TlsKey, "tls.key"),
    (Field::User, "login.user"),
    (Field::Database, "database"),
    (Field::Command, "command"),
    (Field::Records, "data.records"),
    (Field::DataSeed, "data.seed"),
    (Field::KeyPrefix, "data.key_prefix"),
    (Field::KeySize, "data.key_size"),
    (Field::ValueSize, "data.value_size"),
    (Field::ValueClasses, "data.value_classes"),
    (Field::Expiry, "data.expiry_s"),
    (Field::FieldBytes, "data.style.field_bytes"),
    (Field::ExpiryJitter, "data.style.expiry_jitter_percent"),
    (Field::Groups, "groups"),
    (Field::GroupName, "groups[].name"),
    (Field::TotalClients, "groups.clients"),
    (Field::Clients, "groups[].clients"),
    (Field::Depth, "groups[].depth"),
    (Field::Arrivals, "groups[].arrivals"),
    (Field::Rate, "groups[].rate"),
    (Field::Calls, "groups[].connection_churn.calls"),
    (Field::Spawns, "groups[].connection_churn.clients_started"),
    (Field::SpawnsRate, "groups[].connection_churn.clients_started.open.rate"),
    (Field::SpawnsArrivals, "groups[].connection_churn.clients_started.open.arrivals"),
    (Field::Sequence, "groups[].connection_churn.sequence"),
    (Field::Block, "groups[].policy.block"),
    (Field::Phases, "phases"),
    (Field::Stop, "phases[].stop"),
    (Field::StopTime, "phases[].stop.time_ns"),
    (Field::StopRequests, "phases[].stop.requests"),
    (Field::Load, "phases[].work.load"),
    (Field::LoadDepth, "phases[].work.load.depth"),
    (Field::LoadNoPlain, "phases[].work.load.no_plain"),
    (Field::Operations, "phases[].work.mix.ops"),
    (Field::Popularity, "phases[].work.mix.popularity"),
    (Field::MultiGet, "phases[].work.mix.multiget"),
    (Field::MultiSet, "phases[].work.mix.multiset"),
    (Field::Fresh, "phases[].work.mix.fresh"),
    (Field::Absent, "phases[].work.mix.absent"),
    (Field::Churn, "phases[].work.mix.churn"),
    (Field::ReadThrough, "phases[].work.mix.read_through_ns"),
    (Field::Fill, "phases[].work.mix.fill"),
    (Field::FillDelay, "phases[].work.mix.fill_delay_s"),
    (Field::ReadModifyWrite, "phases[].work.mix.read_modify_write"),
    (Field::Inserts, "phases[].work.mix.inserts"),
    (Field::Scans, "phases[].work.mix.scans"),
    (Field::Noreply, "phases[].work.mix.noreply"),
    (Field::Vivify, "phases[].work.mix.meta.vivify_s"),
    (Field::Recache, "phases[].work.mix.meta.recache_s"),
    (Field::Stale, "phases[].work.mix.meta.stale_s"),
    (Field::MetaDetails, "phases[].work.mix.meta.details"),
    (Field::Window, "phases[].work.window"),
    (Field::ReplayFormat, "phases[].work.replay.format"),
    (Field::ReplayReadThrough, "phases[].work.replay.read_through_ns"),
    (Field::Trace, "phases[].work.trace"),
    (Field::TraceSpeed, "phases[].work.trace.pace.trace.speed"),
    (Field::TracePasses, "phases[].work.trace.passes"),
    (Field::TraceEnd, "phases[].work.trace.to_ns"),
    (Field::TraceSample, "phases[].work.trace.sample"),
    (Field::TraceAmplify, "phases[].work.trace.amplify"),
    (Field::TraceFillDelay, "phases[].work.trace.fill_delay_ns"),
    (Field::TraceFillDist, "phases[].work.trace.fill_delay_s"),
    (Field::TraceMissingSize, "phases[].work.trace.missing_size"),
    (Field::TraceValueMax, "phases[].work.trace.value_max_bytes"),
    (Field::DeleteShare, "phases[].work.delete.share"),
    (Field::DeleteDepth, "phases[].work.delete.depth"),
    (Field::PauseUntil, "phases[].work.pause.until_ns"),
    (Field::Settle, "adaptive.settle"),
    (Field::FirstEviction, "adaptive.first_eviction"),
    (Field::Until, "adaptive.until"),
    (Field::UntilLeast, "adaptive.until.least_ns"),
    (Field::Labels, "labels"),
    (Field::RateShape, "changes.rate"),
    (Field::Burst, "changes.burst"),
    (Field::Parts, "changes.parts"),
    (Field::Events, "changes.events"),
];

impl Field {
    /// The path of the field, with `[]` in place of the number of an item.
    fn pattern(self) -> &'static str {
        PATHS[self as usize].1
    }

    /// The path of a field that is in no list.
    pub(super) fn path(self) -> FieldPath {
        self.of(0)
    }

    /// The path of the field of item `index` of its list, counted from 0.
    pub(super) fn of(self, index: usize) -> FieldPath {
        FieldPath { field: self, index }
    }
}

/// The place of a value in a Plan, such as `groups[0].depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPath {
    field: Field,
    index: usize,
}

impl FieldPath {
    /// The field, whichever item it belongs to.
    pub fn field(self) -> Field {
        self.field
    }

    /// The number of the item that the field belongs to, counted from 0; 0 where it is in no list.
    pub fn index(self) -> usize {
        self.index
    }

    /// The path without the number of the item, such as `groups.depth`.
    pub fn name(self) -> String {
        self.field.pattern().replace("[]", "")
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.pattern().split_once("[]") {
            Some((list, rest)) => write!(to, "{list}[{}]{rest}", self.index),
            None => to.write_str(self.field.pattern()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_at_its_place_in_the_table() {
        for (place, (field, path)) in PATHS.iter().enumerate() {
            assert_eq!(*field as usize, place, "{path}");
            assert!(path.matches("[]").count() <= 1, "{path} is in one list");
        }
    }

    #[test]
    fn a_path_names_the_item_that_it_belongs_to() {
        assert_eq!(Field::Depth.of(2).to_string(), "groups[2].depth");
        assert_eq!(Field::Server.of(1).to_string(), "servers[1]");
        assert_eq!(Field::Timeout.path().to_string(), "timeout_ns");
        assert_eq!(
            (Field::Server.of(1).name(), Field::Depth.of(2).name()),
            ("servers".into(), "groups.depth".into())
        );
    }
}
