//! The result of a run as a typed document: what the JSON holds, written and read by one set of types.
//!
//! Every report is a function of the [`Document`] alone, so that a stored result is shown as the run showed it.
//! `docs/RESULTS.md` documents every field. A field that an older result lacks has its default, and fields that this version
//! does not know are left out.

mod agents;
mod asked;
mod audit;
mod baseline;
mod cache;
mod cluster;
mod connections;
mod curve;
mod evidence;
mod failures;
mod figures;
pub(crate) mod judgement;
pub(crate) mod known;
mod limit_line;
mod lines;
pub(crate) mod merged;
mod misses;
mod named;
mod outcomes;
mod parts;
mod phases;
mod replayed;
mod requests;
mod run;
mod server_stats;
pub(crate) mod steadiness;
mod transmit;
pub(crate) mod trust;
mod unexpected_misses;

#[cfg(test)]
mod tests;

use std::fmt;

use pummel_logic::plan::{Clock, Labels, Late, Phase, Plan, Work};
use pummel_logic::protocol::udp;
use pummel_logic::retry::RetryCounts;
use pummel_logic::time::seconds;
use pummel_logic::workload::window::WindowCounts;
use pummel_measure::calibration::Calibrated;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::failed_keys::FailedKeys;
use pummel_measure::measurement::{Bytes, Samples, Status};
use pummel_measure::outcome::{Ending, RunOutcome};
use pummel_measure::reason::Reason;
use pummel_measure::uncertainty::steadiness::Steadiness;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::figures::is_zero;
use self::known::known;
use self::requests::ops_of;
use crate::Report;
use crate::checked_json;
use crate::words::reason;

pub use self::agents::{AgentsResult, DeviationResult, LossResult, MemberResult, MemberTrust};
use self::asked::AskedRate;
pub use self::audit::AuditResult;
pub use self::baseline::{BaselineResult, RoundTripsResult};
pub use self::cache::CacheResult;
pub use self::cluster::{
    ClusterResult, ImbalanceResult, NodeRole, OutageResult, ShardResult, redirects_by_kind,
};
pub use self::connections::{ChurnResult, ConnectionsResult, RefusalResult, ServerConnectionsResult};
pub use self::curve::{CurveDocument, CurveFit, CurveGoal, CurveLevel, CurveOverload, CurveRun, CurveSearch};
pub use self::evidence::{
    CommandResult, EvidenceResult, LatencyEventResult, MachineResult, ProbeHalfResult, ReadingResult,
    ServerResult, SlotResult, SlowCommandResult, SocketsResult, ThreadResult,
};
pub use self::failures::{Evidence, FailOnAnswer, Undetermined};
pub use self::figures::{Figure, FiveTimes, TimeFigures};
pub use self::judgement::{ObservationResult, ResourceResult, VerdictResult};
pub use self::merged::{MergedLimit, MergedResult};
pub use self::named::Named;
pub use self::outcomes::OtherOutcomes;
pub use self::parts::{
    EventResult, PartResult, ServerRequestsResult, ServerTimes, SliceConnectionsResult, SliceGeneratorResult,
    SteeredResult, events_beyond_words,
};
pub use self::phases::PhaseResult;
pub use self::replayed::{LeftOut, ReplayedResult};
pub use self::requests::{
    AnatomyResult, GroupResult, IntervalResult, OpResult, OpsResult, RequestTotals, WholeRunResult, reads,
    reads_records, slice_rate,
};
pub use self::run::{
    CertaintyResult, GeneratorResult, GoalOutcome, LoadedResult, NoIntervals, ToolResult, VerifyResult,
    WrongKeyResult,
};
pub use self::server_stats::{ServerIntervalResult, ServerStatsResult};
pub use self::steadiness::{
    ChangePlace, ChangeResult, ChangedFigure, StopResult, UntilOutcome, WarmUpResult,
};
pub use self::transmit::{SampleFigures, TransmitResult};
pub use self::trust::{
    CauseResult, LagCauseResult, LagPartResult, LagShareResult, ReliableFigures, SharedMachineResult,
    StallsResult, Taker, TimeAt, TrustResult,
};

/// The layout of results that this version writes, and the greatest that it reads.
pub const SCHEMA: u32 = 1;

/// The result of a run. Times are microseconds (`_us`) or seconds (`_s`, `seconds`); what is not known is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// The layout of the result.
    #[cfg_attr(feature = "schema", schemars(extend("const" = 1)))]
    pub schema: u32,
    /// The program that made the result.
    #[serde(default)]
    pub tool: ToolResult,
    /// Whether the run did what was asked.
    pub status: Status,
    /// Why the run is not complete.
    #[serde(default)]
    pub reason: Option<String>,
    /// Facts of that reason; absent in complete runs, in sums, and where this version does not know their kind.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub why: Option<Reason>,
    /// Exit status of the process that made the run: 130, 143 or 129 where a signal interrupted it. It does not
    /// know of files that could not be written. Absent while a run goes on, in sums, in results of other
    /// programs' command lines, and in those of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
    /// Whether the requests were answered as they were asked.
    #[serde(default)]
    pub outcome: RunOutcome,
    /// Evidence of an outcome that is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_says: Option<String>,
    /// Facts of that evidence; absent where the run is well, in sums, and where this version does not know their kind.
    #[serde(default, deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub outcome_why: Option<Ending>,
    /// The software, version and protocol of the servers, such as `memcached 1.6.18, text`; absent where the
    /// command line names the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<String>,
    /// Plan of the run, with its seeds and without its labels. Saved alone, it can be given to `--plan`, unless
    /// its `commands` have `***` in place of passwords or, with `--anonymous`, of arguments.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::AnyPlan"))]
    pub plan: Plan,
    /// Names and values that the user gave the run; empty where there are none.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The command line that the Plan was written in.
    #[serde(default)]
    pub front: String,
    /// The words of the command line, with `***` instead of passwords; absent with `--anonymous`, until the run
    /// is over, and where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The machines that sent the requests, one for each process; empty where no kernel was below the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine: Vec<Provenance>,
    /// When the measured phase began, in seconds since 1970.
    #[serde(default)]
    pub started_unix_s: Option<f64>,
    /// Length of the measured phase. Where its last answer came later, in the drain, the time up to that
    /// answer: working off a backlog does not look like a higher rate.
    #[serde(default)]
    pub seconds: f64,
    /// What said when replies arrived.
    pub clock: Clock,
    /// Whether a server was reached by a unix socket. Unix sockets have no receive stamps: their replies arrive
    /// when they are read, so reaction is 0 and service includes the generator's own delays.
    #[serde(default)]
    pub unix_socket: bool,
    /// Populating before the run.
    #[serde(default)]
    pub load: Option<LoadedResult>,
    /// Round trips that were made one at a time before the measured phase; absent with `--no-baseline`, until they were
    /// made, and in sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Box<BaselineResult>>,
    /// All operations together.
    #[serde(default)]
    pub totals: RequestTotals,
    /// The requests of the measured phase, by operation.
    #[serde(default)]
    pub ops: OpsResult,
    /// The cache as its clients saw it; absent where misses are not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// Missed keys of records that this run had loaded, and that nothing it did took away; absent where they may be gone for a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected_misses: Option<u64>,
    /// The groups of clients, where there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// The parts of the measured phase, such as the stages of `--stage`, with the requests that were due in
    /// each, whenever they ended. These figures have no intervals; absent where it has no parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseResult>,
    /// The processes of a distributed run; absent where one process did everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentsResult>,
    /// Bytes over the wire in the measured phase with its drain.
    #[serde(default)]
    pub bytes: Bytes,
    /// The connections.
    #[serde(default)]
    pub connections: ConnectionsResult,
    /// The requests of each of the first 64 of several servers; empty with one server, and in older results. A
    /// request over several servers counts for the one whose part came last; requests that were never sent
    /// count for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerRequestsResult>,
    /// The cluster whose nodes were asked (`--cluster`); absent in sums, and where the servers are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterResult>,
    /// The keys that were read back after the run (`--audit`); absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditResult>,
    /// Datagrams of the whole run, with the load where that went over UDP (`--udp`); absent without UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<udp::DatagramCounts>,
    /// Requests of the measured phase in the file of `--samples`; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// Account of the trace that was replayed (`--trace`); absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<ReplayedResult>,
    /// The times of each get together with the set of its key that follows (`--read-modify-write`), from when
    /// the get was due to the arrival of the set's reply. A pair whose get or set failed is left out; absent
    /// where the run has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_us: Option<SampleFigures>,
    /// Times of the requests that were stamped when they left (`--stamps`); absent where none was stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit: Option<TransmitResult>,
    /// Counts of the clients of `pummel memaslap`; absent in other results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowCounts>,
    /// Values that were checked (`--verify`), in the whole run with warm-up and drain.
    #[serde(default)]
    pub verify: VerifyResult,
    /// Errors that servers sent for requests that go without a reply, in the whole run; these requests stay
    /// completed. Absent where every request gets a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noreply_errors: Option<u64>,
    /// Messages that servers sent without being asked, by name, in the whole run (RESP3); absent where none came.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub pushes: Named<u64>,
    /// Errors after which requests were sent again (`--retry`), in the measured phase; absent where none was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryCounts>,
    /// The keys of requests that failed, where they are kept. They have a file of their own.
    #[serde(skip)]
    pub failed_keys: Option<FailedKeys>,
    /// Error messages of the servers, at most 16 different ones, and how often each came. Those that came while
    /// records were loaded are in `load`.
    #[serde(default)]
    pub error_messages: Named<u64>,
    /// What the run was held to.
    #[serde(default)]
    pub goals: Vec<GoalOutcome>,
    /// How the load generator itself fared.
    #[serde(default)]
    pub generator: GeneratorResult,
    /// How far the times may be believed; absent in results of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustResult>,
    /// What set the rate, or the waiting; absent in results of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictResult>,
    /// Evidence of servers and machines; absent if no readings were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceResult>,
    /// Servers' own statistics at intervals (`--server-stats`); empty where they were not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_stats: Vec<ServerStatsResult>,
    /// How the intervals of figures were made; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<CertaintyResult>,
    /// Why there are no intervals of figures, where the run was to have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty_missing: Option<String>,
    /// Kind of that reason; absent where there are intervals, and in results of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty_missing_kind: Option<NoIntervals>,
    /// Parts of the responses of all operations together, by coarse cell of the response, 8 for each doubling;
    /// empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anatomy: Vec<AnatomyResult>,
    /// Whether the run was at one level from its beginning to its end. It is false too where a server saved in
    /// the background for a part of the phase; figures of a run that is not steady have no intervals. Null
    /// where it was not judged: a load that changes by plan, several measured phases, a trace, a recording, or
    /// fewer than 16 batches of windows.
    #[serde(default)]
    pub steady: Option<bool>,
    /// What changed in a run that was not steady; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeResult>,
    /// Times of 300 ms or more in which the servers answered nothing although requests of an open loop were due; empty where there were
    /// none, where pummel, errors or lost connections are the cause, and where the load does not stay at one level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopResult>,
    /// End of a warm-up that was to find its end (`--warmup auto`, `--warmup-until evictions`); absent without
    /// either. A run whose warm-up did not settle in its longest time is not steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<WarmUpResult>,
    /// Certainty of the quantile that the measurement went on for (`--until`); absent where there is none, and
    /// where an agent was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilOutcome>,
    /// What is known of the instrument on the machine; absent where it was not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrated>,
    /// Changes of the rate by hand (`--steer`), at most 1,000. The plan has them too, and repeats the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered: Option<Vec<SteeredResult>>,
    /// Requests and bytes of all phases: loading, warm-up, measuring and drain. A server's own counters must
    /// equal these, with the requests of `baseline` beside them.
    #[serde(default)]
    pub whole_run: WholeRunResult,
    /// The measured phase in slices, at most 4,096 of them.
    #[serde(default)]
    pub intervals: Vec<IntervalResult>,
    /// The results that this one is the sum of; empty where it is the result of one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedResult>,
    /// Number of slices that were merged into their neighbours to keep within that limit, or to make a page
    /// small; absent if none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intervals_merged: u64,
    /// Events of the run, the first 1,000 in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventResult>,
    /// Number of events that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_beyond: u64,
}

/// Why bytes are not the result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAResult {
    /// The bytes are no JSON, or a field has another kind; the words say where.
    Malformed(String),
    /// The bytes are JSON, and not the result of a run; the word says of what they are, where that is known.
    Another(Option<String>),
    /// The bytes are the plan of a run.
    Plan,
    /// The bytes are JSON without these fields, which the result of a run has.
    Lacks(Vec<&'static str>),
    /// The layout has this number, which is greater than [`SCHEMA`].
    Newer(u64),
}

impl fmt::Display for NotAResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAResult::Malformed(why) => write!(out, "not the JSON result of a run: {why}"),
            NotAResult::Another(Some(command)) => {
                let words = if command == "repeat" { "run --repeat" } else { command };
                write!(out, "the result of `pummel {words}`, and not that of one run")
            }
            NotAResult::Another(None) => out.write_str(
                "JSON, but not the result of a run: expected the fields `schema`, `status` and `plan`",
            ),
            NotAResult::Plan => out.write_str(
                "a plan, and not the result of a run: `pummel run --plan FILE` runs it, and --json writes the result",
            ),
            NotAResult::Lacks(fields) => {
                let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
                write!(out, "JSON, but not the result of a run: expected also {}", names.join(", "))
            }
            NotAResult::Newer(schema) => write!(
                out,
                "a result of a newer version: its schema is {schema}, and this version of pummel reads up to {SCHEMA}"
            ),
        }
    }
}

impl std::error::Error for NotAResult {}

impl NotAResult {
    /// What bytes are that cannot be read as the JSON of a result, with this error.
    pub fn of_error(bytes: &[u8], error: &serde_json::Error) -> NotAResult {
        if !bytes.trim_ascii_start().starts_with(b"{") {
            if is_plan_in_toml(bytes) {
                return NotAResult::Plan;
            }
            if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
                return NotAResult::Malformed("expected a JSON object in braces".to_owned());
            }
        }
        NotAResult::Malformed(error.to_string())
    }
}

/// The most bytes of a file that are read as a plan in TOML, to tell what the file is.
const PLAN_MAX_BYTES: usize = 1 << 20;

/// Whether bytes are a plan in TOML, as `pummel explain --plan` saves it.
fn is_plan_in_toml(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= PLAN_MAX_BYTES);
    text.and_then(|text| toml::from_str::<Label>(text).ok()).is_some_and(|label| label.is_plan())
}

/// The fields that tell what a file is.
#[derive(Deserialize)]
pub(crate) struct Label {
    schema: Option<Value>,
    status: Option<Value>,
    plan: Option<IgnoredAny>,
    command: Option<String>,
    comparisons: Option<IgnoredAny>,
    pairs: Option<IgnoredAny>,
    servers: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
}

impl Label {
    /// The fields of a result in a layout that this version reads.
    ///
    /// # Errors
    /// Returns [`NotAResult`] for what is no JSON, for a newer layout, for a plan, and where there is no layout.
    pub(crate) fn of(bytes: &[u8]) -> Result<Label, NotAResult> {
        let label: Label =
            serde_json::from_slice(bytes).map_err(|error| NotAResult::of_error(bytes, &error))?;
        match label.schema.as_ref().and_then(Value::as_u64) {
            Some(schema) if schema > u64::from(SCHEMA) => Err(NotAResult::Newer(schema)),
            Some(_) if !label.is_plan() => Ok(label),
            _ => Err(label.refusal()),
        }
    }

    /// The command that wrote a result of several runs; `None` for that of one run.
    pub(crate) fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// Whether the result is that of three sides or more.
    pub(crate) fn compares_several(&self) -> bool {
        self.comparisons.is_some()
    }

    /// Whether the result is a comparison of two suites.
    pub(crate) fn compares_suites(&self) -> bool {
        self.pairs.is_some()
    }

    /// Whether the fields are those of a plan. A result has a plan too, beside its status.
    fn is_plan(&self) -> bool {
        let is_whole = self.schema.is_some() && self.servers.is_some() && self.data.is_some();
        is_whole && self.plan.is_none() && self.status.is_none()
    }

    /// What a file with these fields is, which is not the result of a run.
    fn refusal(self) -> NotAResult {
        // A plan may have a command too: that of its requests.
        if self.is_plan() {
            return NotAResult::Plan;
        }
        if self.command.is_some() {
            return NotAResult::Another(self.command);
        }
        let fields = [
            ("schema", self.schema.is_some()),
            ("status", self.status.is_some()),
            ("plan", self.plan.is_some()),
        ];
        let missing: Vec<&'static str> =
            fields.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect();
        match missing.is_empty() {
            true => NotAResult::Malformed("expected a whole number as `schema`".to_owned()),
            false => NotAResult::Lacks(missing),
        }
    }
}

impl Document {
    /// The document of a report.
    pub fn of(report: &Report<'_>) -> Document {
        let Report { plan, measurement, summary, front, build, .. } = *report;
        let started = measurement.started_unix_ns;
        let change = ChangeResult::of(summary);
        let (events, events_beyond) = EventResult::all_of(plan, measurement, change.as_ref());
        let asked = AskedRate::of(plan);
        let groups = if summary.groups.len() > 1 { summary.groups.as_slice() } else { &[] };
        let ops = ops_of(plan, &summary.ops, &measurement.ops());
        let evidence = measurement.evidence.as_ref().map(|seen| EvidenceResult::of(seen, plan));
        let are_unexpected = unexpected_misses::are_unexpected(plan, measurement, evidence.as_ref());
        let cluster = ClusterResult::of(report, are_unexpected);
        let document = Document {
            schema: SCHEMA,
            tool: ToolResult::own(build),
            status: summary.status,
            reason: measurement.reason.as_ref().map(reason::reason),
            why: measurement.reason.clone(),
            exit: None,
            outcome: RunOutcome::of(summary.ending.as_ref()),
            outcome_says: summary.ending.as_ref().map(reason::ending),
            outcome_why: summary.ending.clone(),
            detected: measurement.detected.clone(),
            plan: plan.told(),
            labels: plan.labels.clone(),
            front: front.to_owned(),
            argv: measurement.argv.clone(),
            machine: measurement.machines.clone(),
            started_unix_s: (started > 0).then(|| seconds(started)),
            seconds: summary.seconds,
            clock: measurement.clock,
            unix_socket: measurement.unix_socket,
            load: LoadedResult::of(measurement),
            baseline: measurement.baseline.as_ref().map(|baseline| Box::new(BaselineResult::of(baseline))),
            totals: RequestTotals::of(&summary.totals)
                .with_skipped(skipped_of(report), measurement.counters.skipped.estimated),
            cache: CacheResult::of(ops.iter().filter_map(|(_, op)| op.cache)),
            unexpected_misses: are_unexpected.then(|| unexpected_misses::missed(&ops)),
            ops,
            groups: groups
                .iter()
                .zip(&measurement.groups)
                .map(|(group, raw)| GroupResult::of(plan, group, &raw.ops))
                .collect(),
            phases: PhaseResult::all_of(report),
            agents: measurement.agents.as_ref().map(|agents| AgentsResult::of(agents, summary.seconds)),
            bytes: measurement.counters.bytes,
            connections: ConnectionsResult::of(report),
            servers: ServerRequestsResult::all_of(plan, measurement, summary.seconds, are_unexpected),
            audit: AuditResult::of(report, cluster.as_ref(), evidence.as_ref()),
            cluster,
            udp: measurement.udp,
            samples: measurement.samples,
            trace: measurement.replayed.as_ref().map(ReplayedResult::of),
            pairs_us: measurement.side_times.pairs.as_deref().map(SampleFigures::of),
            transmit: measurement
                .side_times
                .transmit
                .as_ref()
                .map(|times| TransmitResult::of(plan.engine.stamps, times)),
            window: plan.window().map(|_| measurement.counters.window),
            verify: VerifyResult::of(measurement),
            noreply_errors: noreply_errors_of(report),
            retry: retry_of(report),
            failed_keys: measurement.failed_keys.clone(),
            pushes: measurement.pushes.iter().map(|(name, count)| (name.clone(), *count)).collect(),
            error_messages: measurement
                .messages
                .iter()
                .map(|(words, count)| (words.clone(), *count))
                .collect(),
            goals: GoalOutcome::all_of(report),
            generator: GeneratorResult::of(report),
            trust: Some(TrustResult::of(plan, summary)),
            verdict: Some(VerdictResult::of(summary)),
            evidence,
            server_stats: ServerStatsResult::all_of(measurement.evidence.as_ref()),
            certainty: CertaintyResult::of(report),
            certainty_missing: None,
            certainty_missing_kind: CertaintyResult::missing(report),
            anatomy: measurement.ops().all().anatomy().iter().map(AnatomyResult::of).collect(),
            steady: summary.steadiness.as_ref().map(Steadiness::is_steady),
            change,
            stops: StopResult::all_of(measurement, plan),
            steered: SteeredResult::all_of(measurement),
            warmup: WarmUpResult::of(measurement),
            until: UntilOutcome::of(summary),
            calibration: measurement.calibration.clone(),
            whole_run: WholeRunResult::of(plan, measurement),
            intervals: IntervalResult::all_of(plan, asked.as_ref(), measurement),
            merged: Vec::new(),
            intervals_merged: measurement.intervals_merged,
            events,
            events_beyond,
        };
        document.with_words()
    }

    /// Reads the JSON result of a run of this version or an older one. Fields that are not known are left out.
    ///
    /// # Errors
    /// Returns [`NotAResult`], which says what the bytes are instead, or where they are wrong.
    pub fn read(bytes: &[u8]) -> Result<Document, NotAResult> {
        let label = Label::of(bytes)?;
        if label.status.is_none() || label.plan.is_none() || label.command.is_some() {
            return Err(label.refusal());
        }
        checked_json::read(bytes).map_err(|error| NotAResult::of_error(bytes, &error))
    }

    /// Whether a goal of the run was missed, or may have been missed.
    pub fn missed_a_goal(&self) -> bool {
        self.goals.iter().any(|goal| goal.met != Some(true))
    }

    /// Whether the times may be believed, as far as the result says.
    pub fn is_trusted(&self) -> bool {
        self.trust.as_ref().is_none_or(|trust| trust.ok)
    }
}

/// What became of requests after errors, where the plan has them sent again.
fn retry_of(report: &Report<'_>) -> Option<RetryCounts> {
    report.plan.sent_again_after().map(|_| report.measurement.counters.retry)
}

/// Requests that were left out, where the plan says that late ones are.
fn skipped_of(report: &Report<'_>) -> Option<u64> {
    let skips = report.plan.groups.iter().any(|group| group.policy.late == Late::Skipped);
    skips.then_some(report.measurement.counters.skipped.requests)
}

/// Errors of requests that went without a reply, where the plan has such requests.
fn noreply_errors_of(report: &Report<'_>) -> Option<u64> {
    let asks = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.noreply);
    report.plan.phases.iter().any(asks).then_some(report.measurement.noreply_errors)
}
