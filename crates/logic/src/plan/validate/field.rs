//! The fields of a Plan that can be refused, and their paths.

use std::fmt;

crate::words! {
    /// A field of a Plan, whichever of a list's items it belongs to; `[]` in its path stands for the number of the item.
    #[allow(missing_docs, reason = "each stands for the path beside it")]
    pub enum Field {
        Schema = "schema",
        Servers = "servers",
        Server = "servers[]",
        Route = "route",
        Redirects = "cluster.redirects",
        ByIp = "cluster.by_ip",
        Rewrites = "cluster.rewrite",
        RewriteFrom = "cluster.rewrite[].from",
        RewriteTo = "cluster.rewrite[].to",
        ClusterRefresh = "cluster.refresh_ns",
        ReadFrom = "cluster.read_from",
        Transport = "transport",
        Seed = "seed",
        Interval = "interval_ns",
        ServerStats = "server_stats_ns",
        ServerStatsAt = "server_stats_at",
        ServerStatsAddress = "server_stats_at[]",
        Probe = "probe",
        Timeout = "timeout_ns",
        RetryKinds = "retry.kinds",
        RetryFor = "retry.for_ns",
        Verify = "verify",
        GoalQuantile = "goals[].quantile",
        GoalLimit = "goals[].limit_ns",
        Threads = "engine.threads",
        Stamps = "engine.stamps",
        Linger = "socket.linger_s",
        SendBuffer = "socket.send_buffer",
        RecvBuffer = "socket.recv_buffer",
        Sources = "socket.source",
        Source = "socket.source[]",
        TlsCert = "tls.cert",
        TlsKey = "tls.key",
        User = "login.user",
        Database = "database",
        Tracking = "tracking",
        Commands = "commands",
        CommandName = "commands[].name",
        CommandTemplate = "commands[].template",
        LoadCommand = "load_command.template",
        LoadPerRecord = "load_command.per_record",
        Dataset = "dataset.path",
        Script = "script.text",
        Records = "data.records",
        DataSeed = "data.seed",
        KeyPrefix = "data.key_prefix",
        KeySize = "data.key_size",
        KeyTag = "data.key_tag",
        Slots = "data.slots",
        FirstKey = "data.first_key",
        SlotRange = "data.slots[]",
        ValueSize = "data.value_size",
        ValueClasses = "data.value_classes",
        ValueCompress = "data.value_compress",
        ValueFiller = "data.value_filler",
        Expiry = "data.expiry_s",
        FieldBytes = "data.style.field_bytes",
        ExpiryJitter = "data.style.expiry_jitter_percent",
        Groups = "groups",
        GroupName = "groups[].name",
        TotalClients = "groups.clients",
        Clients = "groups[].clients",
        Depth = "groups[].depth",
        Arrivals = "groups[].arrivals",
        Rate = "groups[].rate",
        Calls = "groups[].connection_churn.calls",
        Spawns = "groups[].connection_churn.clients_started",
        SpawnsRate = "groups[].connection_churn.clients_started.open.rate",
        SpawnsArrivals = "groups[].connection_churn.clients_started.open.arrivals",
        Sequence = "groups[].connection_churn.sequence",
        Block = "groups[].policy.block",
        SameDraws = "groups[].policy.same_draws",
        Phases = "phases",
        Stop = "phases[].stop",
        StopTime = "phases[].stop.time_ns",
        StopRequests = "phases[].stop.requests",
        Load = "phases[].work.load",
        LoadDepth = "phases[].work.load.depth",
        LoadNoPlain = "phases[].work.load.no_plain",
        Operations = "phases[].work.mix.ops",
        Popularity = "phases[].work.mix.popularity",
        PopularityOf = "phases[].work.mix.popularity_of",
        MultiGet = "phases[].work.mix.multiget",
        MultiSet = "phases[].work.mix.multiset",
        Fresh = "phases[].work.mix.fresh",
        Absent = "phases[].work.mix.absent",
        Churn = "phases[].work.mix.churn",
        ReadThrough = "phases[].work.mix.read_through_ns",
        Fill = "phases[].work.mix.fill",
        FillDelay = "phases[].work.mix.fill_delay_s",
        ReadModifyWrite = "phases[].work.mix.read_modify_write",
        Inserts = "phases[].work.mix.inserts",
        Scans = "phases[].work.mix.scans",
        Noreply = "phases[].work.mix.noreply",
        Vivify = "phases[].work.mix.meta.vivify_s",
        Recache = "phases[].work.mix.meta.recache_s",
        Stale = "phases[].work.mix.meta.stale_s",
        MetaDetails = "phases[].work.mix.meta.details",
        Window = "phases[].work.window",
        ReplayFormat = "phases[].work.replay.format",
        ReplayReadThrough = "phases[].work.replay.read_through_ns",
        Trace = "phases[].work.trace",
        TraceSpeed = "phases[].work.trace.pace.trace.speed",
        TracePasses = "phases[].work.trace.passes",
        TraceEnd = "phases[].work.trace.to_ns",
        TraceSample = "phases[].work.trace.sample",
        TraceMap = "phases[].work.trace.map",
        TraceAmplify = "phases[].work.trace.amplify",
        TraceFillDelay = "phases[].work.trace.fill_delay_ns",
        TraceFillDist = "phases[].work.trace.fill_delay_s",
        TraceMissingSize = "phases[].work.trace.missing_size",
        TraceValueMax = "phases[].work.trace.value_max_bytes",
        DeleteShare = "phases[].work.delete.share",
        DeleteDepth = "phases[].work.delete.depth",
        PauseUntil = "phases[].work.pause.until_ns",
        PauseFor = "phases[].work.pause.for_ns",
        Audit = "phases[].work.audit",
        AuditDepth = "phases[].work.audit.depth",
        Settle = "adaptive.settle",
        FirstEviction = "adaptive.first_eviction",
        Until = "adaptive.until",
        UntilLeast = "adaptive.until.least_ns",
        Labels = "labels",
        RateShape = "changes.rate",
        Burst = "changes.burst",
        Parts = "changes.parts",
        PartConnections = "changes.parts[].connections",
        Events = "changes.events",
    }
}

impl From<Field> for FieldPath {
    fn from(field: Field) -> FieldPath {
        field.of(0)
    }
}

impl Field {
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
        self.field.name().replace("[]", "")
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.name().split_once("[]") {
            Some((list, rest)) => write!(to, "{list}[{}]{rest}", self.index),
            None => to.write_str(self.field.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_in_one_list_at_most() {
        for path in Field::ALL.map(Field::name) {
            assert!(path.matches("[]").count() <= 1, "{path}");
        }
    }

    #[test]
    fn a_path_names_the_item_that_it_belongs_to() {
        assert_eq!(Field::Depth.of(2).to_string(), "groups[2].depth");
        assert_eq!(Field::Server.of(1).to_string(), "servers[1]");
        assert_eq!(FieldPath::from(Field::Timeout).to_string(), "timeout_ns");
        assert_eq!(
            (Field::Server.of(1).name(), Field::Depth.of(2).name()),
            ("servers".into(), "groups.depth".into())
        );
    }
}
