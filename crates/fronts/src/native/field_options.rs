//! Which option of `run` and `load` decides a field of the Plan.

use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, FieldPath};
use pummel_logic::plan::{Phase, Plan, Work};
use pummel_logic::protocol::Verb;

/// The option that decides the field at a path; `--plan` for what only a saved plan can say. Of a field of a phase, `is_recorded`
/// says whether that phase is measured. The first group of clients loads, and another one measures beside it.
pub fn flag_of(path: FieldPath, is_recorded: bool) -> &'static str {
    match path.field() {
        Field::Clients if path.index() > 0 => "--measure-connections",
        Field::Depth if path.index() > 0 => "--measure-depth",
        Field::Rate if path.index() > 0 => "--measure-rate",
        Field::Servers | Field::Server => "--server",
        Field::Route => "--route",
        Field::Redirects => "--redirects",
        Field::ByIp => "--cluster-ip",
        Field::Rewrites | Field::RewriteFrom | Field::RewriteTo => "--rewrite",
        Field::ClusterRefresh => "--cluster-refresh",
        Field::Transport => "--udp",
        Field::Seed => "--seed",
        Field::Interval => "--interval",
        Field::ServerStats => "--server-stats",
        Field::ServerStatsAt | Field::ServerStatsAddress => "--server-stats-at",
        Field::Probe => "--probe",
        Field::Timeout => "--timeout",
        Field::Verify => "--verify",
        Field::GoalQuantile | Field::GoalLimit => "--goal",
        Field::Threads => "--threads",
        Field::Stamps => "--stamps",
        Field::Linger => "--linger",
        Field::SendBuffer => "--send-buffer",
        Field::RecvBuffer => "--recv-buffer",
        Field::Sources | Field::Source => "--source",
        Field::TlsCert => "--tls-cert",
        Field::TlsKey => "--tls-key",
        Field::User => "--user",
        Field::Database => "--database",
        Field::Command => "--command",
        Field::Records => "--records",
        Field::DataSeed => "--data-seed",
        Field::KeyPrefix => "--key-prefix",
        Field::KeySize => "--key-size",
        Field::ValueSize => "--value-size",
        Field::ValueClasses => "--workload",
        Field::Expiry => "--ttl",
        Field::ExpiryJitter => "--ttl-jitter",
        Field::FieldBytes => "--protocol",
        Field::TotalClients | Field::Clients => "--connections",
        Field::Depth | Field::LoadDepth | Field::DeleteDepth => "--depth",
        Field::Arrivals | Field::SpawnsArrivals => "--arrivals",
        Field::Rate => "--rate",
        Field::Calls => "--calls-per-connection",
        Field::SpawnsRate => "--conn-rate",
        Field::Stop | Field::StopTime if is_recorded => "--time",
        Field::Stop | Field::StopTime => "--warmup",
        Field::StopRequests => "--requests",
        Field::Load | Field::Operations => "--mix",
        Field::Popularity => "--popularity",
        Field::Churn => "--churn",
        Field::Events => "--phases",
        Field::MultiGet => "--multiget",
        Field::MultiSet => "--multiset",
        Field::Fresh => "--fresh",
        Field::Absent => "--absent",
        Field::ReadThrough | Field::FillDelay | Field::TraceFillDelay | Field::TraceFillDist => {
            "--read-through"
        }
        Field::Fill => "--fill",
        Field::Noreply => "--noreply",
        Field::Vivify => "--vivify",
        Field::Recache => "--recache",
        Field::Stale => "--stale",
        Field::MetaDetails => "--meta-details",
        Field::Settle => "--warmup",
        Field::FirstEviction => "--warmup-until",
        Field::Until => "--until",
        Field::UntilLeast => "--min-time",
        Field::Labels => "--label",
        Field::RateShape => "--rate",
        Field::Burst => "--burst",
        Field::Parts => "--stage",
        Field::Trace => "--trace",
        Field::TraceSpeed => "--pace",
        Field::TracePasses => "--loop",
        Field::TraceEnd => "--trace-to",
        Field::TraceSample => "--trace-sample",
        Field::TraceAmplify => "--trace-amplify",
        Field::TraceMissingSize => "--missing-size",
        Field::TraceValueMax => "--max-value",
        Field::ReadModifyWrite => "--read-modify-write",
        Field::Inserts => "--insert",
        Field::Scans => "--scan-as",
        Field::Schema
        | Field::Groups
        | Field::GroupName
        | Field::Spawns
        | Field::Sequence
        | Field::Block
        | Field::Phases
        | Field::LoadNoPlain
        | Field::Window
        | Field::ReplayFormat
        | Field::ReplayReadThrough
        | Field::DeleteShare
        | Field::PauseUntil => "--plan",
    }
}

/// The options that decide a field in the place of this one, where one of them is given instead.
pub fn in_place_of(flag: &str) -> &'static [&'static str] {
    match flag {
        "--time" => &["--max-time", "--stage", "--phases"],
        "--min-time" => &["--max-time"],
        "--warmup" => &["--warmup-until", "--trace-warmup"],
        "--trace" => &["--fill"],
        "--stage" | "--rate" => &["--phases"],
        "--fresh" | "--absent" => &["--hit-ratio"],
        _ => &[],
    }
}

/// Whether an expiry that was asked for is part of any request. A saved plan may describe its records all the same.
pub fn sends_expiry(plan: &Plan) -> bool {
    let sends = |phase: &Phase| match &phase.work {
        // Hashes have none.
        Work::Load(load) => !load.no_plain || load.pieces || load.counters || load.commands,
        Work::Mix(mix) => {
            let verbs = || mix.ops.iter().map(|(verb, _)| *verb);
            let renews = mix.read_through_ns.is_some() || mix.meta.renews();
            verbs().any(Verb::has_expiry)
                || renews && verbs().any(|verb| verb.reads() && !verb.is_resp_only())
        }
        _ => false,
    };
    plan.data.expiry_s == Dist::Fixed(0.0) || plan.phases.iter().any(sends)
}
