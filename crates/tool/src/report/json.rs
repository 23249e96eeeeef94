//! The JSON result, for scripts; `docs/RESULTS.md` documents every field.

mod agents;
mod connections;
mod evidence;
mod figures;
mod judgement;
mod ops;
mod server_stats;
mod steadiness;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pummel_logic::measure::measurement::{Bytes, Measurement, Samples, Slice, Stamps, Status, WrongKey};
use pummel_logic::measure::summary::Quantile;
use pummel_logic::measure::uncertainty::{LEVEL, METHOD};
use pummel_logic::plan::{Clock, Late, Phase, Plan, Work};
use pummel_logic::protocol::udp;
use pummel_logic::time::{Nanos, seconds};
use pummel_logic::workload::window::WindowCounts;
use serde::Serialize;

use self::agents::AgentsOut;
use self::connections::ConnectionsOut;
use self::evidence::EvidenceOut;
use self::figures::rounded;
use self::judgement::{TrustOut, VerdictOut};
use self::ops::{GroupOut, OpOut, OpsOut, TotalsOut, is_zero};
use self::server_stats::ServerStatsOut;
use self::steadiness::SteadinessOut;
use crate::report::transmit::TransmitOut;
use crate::report::{Report, VERSION};

pub(in crate::report) use self::figures::micros;

/// The layout of the result.
pub const SCHEMA: u32 = 1;

/// The result as JSON text.
pub fn render(report: &Report<'_>) -> Vec<u8> {
    let mut text =
        serde_json::to_vec_pretty(&Root::of(report)).expect("the result has nothing that JSON has not");
    text.push(b'\n');
    text
}

#[derive(Serialize)]
struct Root<'a> {
    schema: u32,
    tool: Tool,
    status: Status,
    reason: Option<&'a str>,
    plan: &'a Plan,
    front: &'a str,
    started_unix_s: Option<f64>,
    seconds: f64,
    clock: Clock,
    unix_socket: bool,
    load: Option<LoadOut<'a>>,
    totals: TotalsOut<'a>,
    ops: OpsOut<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupOut<'a>>,
    /// Absent where one process did everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<AgentsOut<'a>>,
    bytes: Bytes,
    connections: ConnectionsOut<'a>,
    /// Absent without UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<udp::DatagramCounts>,
    /// Absent where no file of requests was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples>,
    /// Absent where no request was stamped when it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    transmit: Option<TransmitOut<'a>>,
    /// What clients with windows counted, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowCounts>,
    verify: VerifyOut<'a>,
    /// Absent where every request gets a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    noreply_errors: Option<u64>,
    error_messages: &'a BTreeMap<String, u64>,
    goals: Vec<GoalOut>,
    generator: GeneratorOut<'a>,
    trust: TrustOut<'a>,
    verdict: VerdictOut<'a>,
    /// Absent where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<EvidenceOut<'a>>,
    /// Absent where servers were not asked at intervals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    server_stats: Vec<ServerStatsOut<'a>>,
    /// Absent where it is not known how sure the figures are.
    #[serde(skip_serializing_if = "Option::is_none")]
    certainty: Option<CertaintyOut>,
    #[serde(flatten)]
    steadiness: SteadinessOut,
    whole_run: WholeRunOut<'a>,
    intervals: Vec<IntervalOut<'a>>,
    /// Absent where no interval was merged with another.
    #[serde(skip_serializing_if = "is_zero")]
    intervals_merged: u64,
}

impl<'a> Root<'a> {
    fn of(report: &Report<'a>) -> Root<'a> {
        let Report { plan, measurement, summary, front } = *report;
        let started = measurement.started_unix_ns;
        let groups = if summary.groups.len() > 1 { summary.groups.as_slice() } else { &[] };
        Root {
            schema: SCHEMA,
            tool: Tool { name: "pummel", version: VERSION },
            status: summary.status,
            reason: summary.reason.as_deref(),
            plan,
            front,
            started_unix_s: (started > 0).then(|| seconds(started)),
            seconds: summary.seconds,
            clock: measurement.clock,
            unix_socket: measurement.unix_socket,
            load: LoadOut::of(measurement),
            totals: TotalsOut::of(&summary.totals)
                .with_skipped(skipped_of(report), measurement.skipped_estimated),
            ops: OpsOut::of(plan, &summary.ops, &measurement.ops()),
            groups: groups
                .iter()
                .zip(&measurement.groups)
                .map(|(group, raw)| GroupOut::of(plan, group, &raw.ops))
                .collect(),
            agents: measurement.agents.as_ref().map(|agents| AgentsOut::of(agents, summary.seconds)),
            bytes: measurement.bytes,
            connections: ConnectionsOut::of(report),
            udp: measurement.udp,
            samples: measurement.samples,
            transmit: measurement.transmit.as_ref().map(|times| TransmitOut::of(plan.engine.stamps, times)),
            window: report.plan.window().map(|_| measurement.window),
            verify: VerifyOut::of(measurement),
            noreply_errors: noreply_errors_of(report),
            error_messages: &measurement.messages,
            goals: GoalOut::all_of(report),
            generator: GeneratorOut::of(report),
            trust: TrustOut::of(summary),
            verdict: VerdictOut::of(summary),
            evidence: measurement.evidence.as_ref().map(EvidenceOut::of),
            server_stats: ServerStatsOut::all_of(measurement.evidence.as_ref()),
            certainty: CertaintyOut::of(report),
            steadiness: SteadinessOut::of(report),
            whole_run: WholeRunOut::of(plan, measurement),
            intervals: measurement.intervals.iter().map(|slice| IntervalOut::of(plan, slice)).collect(),
            intervals_merged: measurement.intervals_merged,
        }
    }
}

/// How the intervals of figures were made.
#[derive(Serialize)]
struct CertaintyOut {
    method: &'static str,
    level: f64,
    windows: usize,
    window_s: f64,
}

impl CertaintyOut {
    fn of(report: &Report<'_>) -> Option<CertaintyOut> {
        report.summary.totals.certainty.as_ref()?;
        let windows = report.measurement.windows.as_ref()?;
        let window_s = seconds(windows.length_ns());
        Some(CertaintyOut { method: METHOD, level: LEVEL, windows: windows.iter().len(), window_s })
    }
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct LoadOut<'a> {
    records: u64,
    stored: u64,
    errors: u64,
    seconds: f64,
    bytes: u64,
    /// Absent where servers said nothing with errors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    error_messages: &'a BTreeMap<String, u64>,
}

impl LoadOut<'_> {
    fn of(measurement: &Measurement) -> Option<LoadOut<'_>> {
        measurement.load.as_ref().map(|load| LoadOut {
            records: load.records,
            stored: load.stored,
            errors: load.errors,
            seconds: seconds(load.elapsed_ns),
            bytes: load.bytes,
            error_messages: &load.messages,
        })
    }
}

/// Requests that were left out, where the plan says that late ones are.
fn skipped_of(report: &Report<'_>) -> Option<u64> {
    let skips = report.plan.groups.iter().any(|group| group.policy.late == Late::Skipped);
    skips.then_some(report.measurement.skipped)
}

/// Errors of requests that went without a reply, where the plan has such requests.
fn noreply_errors_of(report: &Report<'_>) -> Option<u64> {
    let asks = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.noreply);
    report.plan.phases.iter().any(asks).then_some(report.measurement.noreply_errors)
}

#[derive(Serialize)]
struct VerifyOut<'a> {
    checked: u64,
    failed: u64,
    failed_keys: u64,
    failed_keys_or_more: bool,
    stale: u64,
    short: u64,
    first: &'a [WrongKey],
}

impl<'a> VerifyOut<'a> {
    fn of(measurement: &'a Measurement) -> VerifyOut<'a> {
        let verify = &measurement.verify;
        VerifyOut {
            checked: verify.checked,
            failed: verify.failed,
            failed_keys: verify.failed_keys(),
            failed_keys_or_more: verify.more_keys(),
            stale: verify.stale,
            short: verify.short,
            first: &verify.first,
        }
    }
}

#[derive(Serialize)]
struct GoalOut {
    quantile: f64,
    limit_us: f64,
    reached_us: Option<f64>,
    above_us: Option<f64>,
    /// Null where the run was not steady, and the goal was met on one side of the change only.
    met: Option<bool>,
    trust: bool,
}

impl GoalOut {
    fn all_of(report: &Report<'_>) -> Vec<GoalOut> {
        let of = |ns: Nanos| micros(ns as f64);
        let goals = report.summary.goals.iter().map(|result| GoalOut {
            quantile: result.goal.quantile,
            limit_us: of(result.goal.limit_ns),
            reached_us: result.reached.known().map(of),
            above_us: if let Quantile::Above(ns) = result.reached { Some(of(ns)) } else { None },
            met: result.met,
            trust: report.summary.trust.ok,
        });
        goals.collect()
    }
}

/// Words as a list; `None` when there are none.
fn listed<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    Some(words.collect::<Vec<_>>().join(", ")).filter(|list| !list.is_empty())
}

#[derive(Serialize)]
struct GeneratorOut<'a> {
    cpu_user_s: f64,
    cpu_system_s: f64,
    cpu_us_per_request: Option<f64>,
    busy_share_max: f64,
    busy_shares: Vec<f64>,
    stalls: u64,
    stalled_s: f64,
    stamps: Stamps,
    peak_rss_bytes: u64,
    backend: Option<String>,
    backend_why: Option<String>,
    limited: bool,
    why: Option<&'a str>,
}

impl<'a> GeneratorOut<'a> {
    fn of(report: &Report<'a>) -> GeneratorOut<'a> {
        let generator = &report.measurement.generator;
        let verdict = &report.summary.verdict;
        GeneratorOut {
            cpu_user_s: seconds(generator.cpu_user_ns),
            cpu_system_s: seconds(generator.cpu_system_ns),
            cpu_us_per_request: report.summary.cpu_us_per_request.map(rounded),
            busy_share_max: rounded(generator.busy_share_max()),
            busy_shares: generator.workers.iter().map(|worker| rounded(worker.busy_share())).collect(),
            stalls: generator.turns.stalls,
            stalled_s: seconds(generator.turns.stalled_ns),
            stamps: generator.turns.stamps,
            peak_rss_bytes: generator.peak_rss_bytes,
            backend: listed(generator.backends.iter().map(|backend| backend.name())),
            backend_why: listed(generator.fallbacks.iter().map(String::as_str)),
            limited: verdict.is_generator(),
            why: verdict.is_generator().then_some(verdict.says.as_str()),
        }
    }
}

#[derive(Serialize)]
struct WholeRunOut<'a> {
    ops: OpsOut<'a>,
    bytes: Bytes,
}

impl WholeRunOut<'_> {
    fn of<'a>(plan: &Plan, measurement: &'a Measurement) -> WholeRunOut<'a> {
        let ops = measurement.whole_run.ops.iter();
        let ops =
            OpsOut(ops.map(|(verb, counts)| (plan.name_of(verb), OpOut::of(counts, None, None))).collect());
        WholeRunOut { ops, bytes: measurement.whole_run.bytes }
    }
}

#[derive(Serialize)]
struct IntervalOut<'a> {
    at_s: f64,
    seconds: f64,
    rate: f64,
    ops: OpsOut<'a>,
    bytes: Bytes,
    stalls: u64,
}

impl<'a> IntervalOut<'a> {
    fn of(plan: &Plan, slice: &'a Slice) -> IntervalOut<'a> {
        IntervalOut {
            at_s: seconds(slice.start_ns),
            seconds: seconds(slice.length_ns()),
            rate: rounded(slice_rate(slice)),
            ops: OpsOut::of_slice(plan, &slice.ops),
            bytes: slice.bytes,
            stalls: slice.turns.stalls,
        }
    }
}

/// Completed requests per second of a slice; 0 when it has no length.
pub fn slice_rate(slice: &Slice) -> f64 {
    let length_s = seconds(slice.length_ns());
    if length_s > 0.0 { slice.counts().completed as f64 / length_s } else { 0.0 }
}
