//! The JSON result, for scripts; `docs/RESULTS.md` documents every field.

use std::collections::BTreeMap;

use pummel_logic::measure::agents::{Agents, Member};
use pummel_logic::measure::churn::{Churn, ConnectionFailures};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::measurement::{
    Bytes, Measurement, Samples, Slice, SliceOp, Stamps, Status, WrongKey,
};
use pummel_logic::measure::recorder::{Counts, Ops, Span, Times};
use pummel_logic::measure::summary::{
    Figures, GroupSummary, OpSummary, QUANTILES, Quantile, Totals, Unanswered,
};
use pummel_logic::plan::{Clock, Late, Phase, Plan, Work};
use pummel_logic::protocol::{Fault, Verb, udp};
use pummel_logic::time::{Nanos, seconds};
use pummel_logic::workload::window::WindowCounts;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::report::transmit::TransmitOut;
use crate::report::{Report, VERSION};

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
    verdict: VerdictOut<'a>,
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
            totals: TotalsOut {
                skipped: skipped_of(report),
                skipped_estimated: measurement.skipped_estimated,
                ..TotalsOut::of(&summary.totals)
            },
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
            verdict: VerdictOut { limit: summary.verdict.limit.name(), says: &summary.verdict.says },
            whole_run: WholeRunOut::of(plan, measurement),
            intervals: measurement.intervals.iter().map(|slice| IntervalOut::of(plan, slice)).collect(),
            intervals_merged: measurement.intervals_merged,
        }
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

#[derive(Serialize)]
struct TotalsOut<'a> {
    requests: u64,
    completed: u64,
    errors: u64,
    unfinished: u64,
    unsent: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unsent_estimated: u64,
    /// Where requests that are late are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    skipped_estimated: u64,
    rate: f64,
    #[serde(flatten)]
    times: TimesOut<'a>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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

impl<'a> TotalsOut<'a> {
    fn of(totals: &'a Totals) -> TotalsOut<'a> {
        TotalsOut {
            requests: totals.counts.requests(),
            completed: totals.counts.completed,
            errors: totals.counts.failed(),
            unfinished: totals.counts.unfinished,
            unsent: totals.counts.unsent,
            unsent_estimated: totals.counts.unsent_estimated,
            skipped: None,
            skipped_estimated: 0,
            rate: rounded(totals.rate),
            times: TimesOut::of(&totals.figures),
        }
    }
}

/// One verb's counts, with its times and histograms where it has some.
#[derive(Serialize)]
struct OpOut<'a> {
    requests: u64,
    completed: u64,
    keys: u64,
    hits: u64,
    misses: u64,
    outcomes: Named<11>,
    errors: Named<{ Fault::COUNT }>,
    unfinished: u64,
    unsent: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unsent_estimated: u64,
    #[serde(flatten)]
    times: Option<TimesOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histograms: Option<Histograms>,
}

impl<'a> OpOut<'a> {
    fn of(
        counts: &Counts,
        figures: Option<&'a [Figures; Span::COUNT]>,
        histograms: Option<Histograms>,
    ) -> OpOut<'a> {
        OpOut {
            requests: counts.requests(),
            completed: counts.completed,
            keys: counts.keys,
            hits: counts.hits,
            misses: counts.misses,
            outcomes: Named(counts.outcomes.named()),
            errors: Named(Fault::ALL.map(|fault| (fault.name(), counts.errors(fault)))),
            unfinished: counts.unfinished,
            unsent: counts.unsent,
            unsent_estimated: counts.unsent_estimated,
            times: figures.map(TimesOut::of),
            histograms,
        }
    }
}

/// Verbs, as the plan calls them, with what is known of them, in the order of reports.
struct OpsOut<'a>(Vec<(&'static str, OpOut<'a>)>);

impl<'a> OpsOut<'a> {
    fn of(plan: &Plan, summaries: &'a [OpSummary], ops: &Ops) -> OpsOut<'a> {
        let each = summaries.iter().map(|summary| {
            let histograms = ops.get(summary.verb).map(|op| Histograms::of(&op.times));
            (plan.name_of(summary.verb), OpOut::of(&summary.counts, Some(&summary.figures), histograms))
        });
        OpsOut(each.collect())
    }

    fn of_slice(plan: &Plan, ops: &'a BTreeMap<Verb, Box<SliceOp>>) -> OpsOut<'a> {
        let each = ops.iter().map(|(verb, op)| {
            let histograms = op.histograms.clone().map(Histograms);
            (plan.name_of(*verb), OpOut::of(&op.counts, Some(&op.figures), histograms))
        });
        OpsOut(each.collect())
    }
}

impl Serialize for OpsOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, op)| (name, op)))
    }
}

/// Counts with their names.
struct Named<const N: usize>([(&'static str, u64); N]);

impl<const N: usize> Serialize for Named<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0)
    }
}

/// The five histograms of a verb, encoded.
struct Histograms([String; Span::COUNT]);

impl Histograms {
    fn of(times: &Times) -> Histograms {
        Histograms(Span::ALL.map(|span| Histogram::to_base64(times.of(span))))
    }
}

impl Serialize for Histograms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Span::ALL.into_iter().map(Span::name).zip(&self.0))
    }
}

/// The five objects `response_us` and so on.
#[derive(Serialize)]
struct TimesOut<'a> {
    response_us: FiguresOut<'a>,
    wait_us: FiguresOut<'a>,
    lag_us: FiguresOut<'a>,
    service_us: FiguresOut<'a>,
    reaction_us: FiguresOut<'a>,
}

impl<'a> TimesOut<'a> {
    fn of(figures: &'a [Figures; Span::COUNT]) -> TimesOut<'a> {
        let of = |span: Span| FiguresOut(&figures[span as usize]);
        TimesOut {
            response_us: of(Span::Response),
            wait_us: of(Span::Wait),
            lag_us: of(Span::Lag),
            service_us: of(Span::Service),
            reaction_us: of(Span::Reaction),
        }
    }
}

/// One histogram's figures in microseconds; what is not known is null, and `above` says what it is more than.
struct FiguresOut<'a>(&'a Figures);

impl Serialize for FiguresOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let exact = &self.0.exact;
        let quantiles = QUANTILES.into_iter().map(|(name, _)| name).zip(self.0.quantiles);
        let all = || quantiles.clone().chain([("max", self.0.max)]);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("min", &(exact.count > 0).then(|| micros(exact.min as f64)))?;
        map.serialize_entry("mean", &exact.mean_ns().map(micros))?;
        map.serialize_entry("stddev", &exact.stddev_ns().map(micros))?;
        for (name, quantile) in all() {
            map.serialize_entry(name, &quantile.known().map(|ns| micros(ns as f64)))?;
        }
        let above: Vec<(&str, f64)> = all()
            .filter_map(|(name, quantile)| match quantile {
                Quantile::Above(ns) => Some((name, micros(ns as f64))),
                Quantile::Known(_) | Quantile::Absent => None,
            })
            .collect();
        if !above.is_empty() {
            map.serialize_entry("above", &Bounds(above))?;
        }
        map.end()
    }
}

/// The same of a histogram that lacks nothing.
struct WholeOut(Figures);

impl WholeOut {
    fn of(times: &Histogram) -> WholeOut {
        WholeOut(Figures::of(Span::Service, times, &Unanswered::default()))
    }
}

impl Serialize for WholeOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FiguresOut(&self.0).serialize(serializer)
    }
}

struct Bounds<'a>(Vec<(&'a str, f64)>);

impl Serialize for Bounds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[derive(Serialize)]
struct GroupOut<'a> {
    name: &'a str,
    totals: TotalsOut<'a>,
    ops: OpsOut<'a>,
}

impl<'a> GroupOut<'a> {
    fn of(plan: &Plan, group: &'a GroupSummary, ops: &Ops) -> GroupOut<'a> {
        let ops = OpsOut::of(plan, &group.ops, ops);
        GroupOut { name: &group.name, totals: TotalsOut::of(&group.totals), ops }
    }
}

/// The processes that took part.
#[derive(Serialize)]
struct AgentsOut<'a> {
    start_spread_us: Option<f64>,
    lost: usize,
    members: Vec<MemberOut<'a>>,
}

#[derive(Serialize)]
struct MemberOut<'a> {
    name: &'a str,
    clients: u64,
    threads: u32,
    clock_offset_us: f64,
    clock_error_us: f64,
    late_us: Option<f64>,
    lost: Option<LostOut<'a>>,
    requests: u64,
    completed: u64,
    errors: u64,
    unfinished: u64,
    unsent: u64,
    rate: f64,
    #[serde(flatten)]
    times: TimesOut<'a>,
}

#[derive(Serialize)]
struct LostOut<'a> {
    at_s: Option<f64>,
    why: &'a str,
}

impl<'a> AgentsOut<'a> {
    fn of(agents: &'a Agents, measured_s: f64) -> AgentsOut<'a> {
        let out = |ns: Nanos| micros(ns as f64);
        let member = |member: &'a Member| MemberOut {
            name: &member.name,
            clients: member.clients,
            threads: member.threads,
            clock_offset_us: micros(member.clock_offset_ns as f64),
            clock_error_us: out(member.clock_error_ns),
            late_us: member.late_ns.map(out),
            lost: member.lost.as_ref().map(|lost| LostOut { at_s: lost.at_ns.map(seconds), why: &lost.why }),
            requests: member.counts.requests(),
            completed: member.counts.completed,
            errors: member.counts.failed(),
            unfinished: member.counts.unfinished,
            unsent: member.counts.unsent,
            rate: if measured_s > 0.0 { rounded(member.counts.completed as f64 / measured_s) } else { 0.0 },
            times: TimesOut::of(&member.figures),
        };
        AgentsOut {
            start_spread_us: agents.start_spread_ns.map(out),
            lost: agents.members.iter().filter(|member| member.lost.is_some()).count(),
            members: agents.members.iter().map(member).collect(),
        }
    }
}

#[derive(Serialize)]
struct ConnectionsOut<'a> {
    asked: u64,
    open: u64,
    failed: u64,
    lost: u64,
    reconnected: u64,
    connect_us: FiguresOut<'a>,
    /// Absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    handshake_us: Option<FiguresOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<u64>,
    /// Absent where all clients stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    churn: Option<ChurnOut>,
}

/// What came of clients that come and go.
#[derive(Serialize)]
struct ChurnOut {
    clients: u64,
    ended: u64,
    asked: u64,
    established: u64,
    alive_max: u64,
    failures: ConnectionFailures,
    life_us: WholeOut,
    connect_us: WholeOut,
}

impl ChurnOut {
    fn of(churn: &Churn) -> ChurnOut {
        ChurnOut {
            clients: churn.begun,
            ended: churn.ended,
            asked: churn.asked,
            established: churn.established,
            alive_max: churn.alive_max,
            failures: churn.failures,
            life_us: WholeOut::of(&churn.life),
            connect_us: WholeOut::of(&churn.connect),
        }
    }
}

impl<'a> ConnectionsOut<'a> {
    fn of(report: &Report<'a>) -> ConnectionsOut<'a> {
        let connections = &report.measurement.connections;
        let tls = report.plan.tls.is_some();
        ConnectionsOut {
            asked: connections.asked,
            open: connections.open,
            failed: connections.failed,
            lost: connections.lost,
            reconnected: connections.reconnected,
            connect_us: FiguresOut(&report.summary.connect),
            handshake_us: tls.then_some(FiguresOut(&report.summary.handshake)),
            resumed: tls.then_some(connections.resumed),
            churn: connections.churn.as_deref().map(ChurnOut::of),
        }
    }
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
    met: bool,
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
            limited: report.summary.verdict.limited(),
            why: report.summary.verdict.why.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct VerdictOut<'a> {
    limit: &'static str,
    says: &'a str,
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

/// Nanoseconds as microseconds, to the nanosecond.
pub(super) fn micros(ns: f64) -> f64 {
    ns.round() / 1000.0
}

/// A number to the third digit after the point.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::{Run, sample};
    use pummel_logic::measure::measurement::Keep;
    use pummel_logic::measure::recorder::Sample;
    use pummel_logic::plan::{Goal, TlsOptions};
    use pummel_logic::protocol::Outcome;
    use pummel_logic::time::MILLISECOND;
    use serde_json::{Value, json};

    fn value(run: &Run) -> Value {
        serde_json::from_slice(&run.report(render)).unwrap()
    }

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// Adds an interval in which requests remained without an answer.
    fn lose(run: &mut Run, timeouts: u64, unsent: u64) {
        run.interval(2, Keep::Figures, |interval| {
            for i in 0..timeouts {
                let outcome = Outcome::Error(Fault::Timeout);
                interval.groups[0].record(&Sample { verb: Verb::Get, outcome, ..sample(i) });
            }
            interval.groups[0].unsent(Verb::Get, unsent);
        });
    }

    #[test]
    fn the_fixed_names_are_there_and_their_figures_are_those_of_the_run() {
        let result = value(&Run::new(Keep::Figures));
        assert_eq!(result["schema"], 1);
        assert_eq!(result["tool"], json!({"name": "pummel", "version": VERSION}));
        assert_eq!((&result["status"], &result["reason"]), (&json!("complete"), &Value::Null));
        assert_eq!(
            (&result["front"], &result["seconds"], &result["clock"]),
            (&json!("native"), &json!(2.0), &json!("kernel"))
        );
        assert_eq!(
            result["load"],
            json!({"records": 1000, "stored": 1000, "errors": 0, "seconds": 0.012, "bytes": 265000})
        );
        let totals = &result["totals"];
        assert_eq!(
            (&totals["requests"], &totals["completed"], &totals["errors"]),
            (&json!(2000), &json!(2000), &json!(0))
        );
        assert_eq!(
            (&totals["unfinished"], &totals["unsent"], &totals["rate"]),
            (&json!(0), &json!(0), &json!(1000.0))
        );
        let get = &result["ops"]["get"];
        assert_eq!(
            (&get["requests"], &get["completed"], &get["keys"]),
            (&json!(1800), &json!(1800), &json!(1800))
        );
        assert_eq!(
            (&get["hits"], &get["misses"], &get["errors"]["timeout"]),
            (&json!(1700), &json!(100), &json!(0))
        );
        assert_eq!(result["ops"]["set"]["outcomes"]["stored"], 200);
        assert_eq!(result["bytes"], json!({"sent": 120000, "received": 420000}));
        let connections = &result["connections"];
        assert_eq!((&connections["asked"], &connections["open"]), (&json!(10), &json!(10)));
        assert_eq!(
            (&connections["failed"], &connections["lost"], &connections["reconnected"]),
            (&json!(0), &json!(0), &json!(0))
        );
        assert_eq!(connections["connect_us"]["max"], 70.0);
        assert_eq!((&result["verify"]["checked"], &result["verify"]["failed_keys"]), (&json!(0), &json!(0)));
        let generator = &result["generator"];
        assert_eq!((&generator["cpu_user_s"], &generator["cpu_system_s"]), (&json!(0.0012), &json!(0.0098)));
        assert_eq!(
            (&generator["cpu_us_per_request"], &generator["busy_share_max"]),
            (&json!(5.5), &json!(0.125))
        );
        assert_eq!(generator["stamps"], json!({"missing": 0, "shared": 6, "rejected": 0}));
        assert_eq!((&generator["stalls"], &generator["peak_rss_bytes"]), (&json!(0), &json!(11534336)));
        assert_eq!(generator["backend"], "epoll");
        assert_eq!(generator["backend_why"], "the kernel is too old");
        assert_eq!((&generator["limited"], &generator["why"]), (&json!(false), &Value::Null));
    }

    #[test]
    fn handshakes_are_in_the_result_of_encrypted_runs_alone() {
        let mut run = Run::new(Keep::Figures);
        assert_eq!(value(&run)["connections"].get("handshake_us"), None);
        run.plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
        run.measurement.connections.handshake.record(1_500_000);
        run.measurement.connections.resumed = 1;
        let result = value(&run);
        assert_eq!(result["connections"]["handshake_us"]["max"], 1500.0);
        assert_eq!(result["connections"]["resumed"], 1);
        assert_eq!(result["plan"]["tls"], json!({"insecure": true}));
    }

    #[test]
    fn the_plan_in_the_result_is_the_plan_of_the_run() {
        let run = Run::new(Keep::Figures);
        let plan: Plan = serde_json::from_value(value(&run)["plan"].clone()).unwrap();
        assert_eq!(plan, run.plan);
    }

    #[test]
    fn every_span_has_its_figures_and_its_histogram() {
        let run = Run::new(Keep::Figures);
        let result = value(&run);
        let get = &result["ops"]["get"];
        for span in Span::ALL {
            let figures = &get[format!("{}_us", span.name())];
            let mut names = keys(figures);
            names.sort_unstable();
            let mut expected =
                ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
            expected.sort_unstable();
            assert_eq!(names, expected);
            let encoded = get["histograms"][span.name()].as_str().unwrap();
            let histogram = Histogram::from_base64(encoded).unwrap();
            let measured = run.measurement.ops();
            assert!(histogram.cells().eq(measured.get(Verb::Get).unwrap().times.of(span).cells()));
        }
        assert_eq!(
            get["response_us"]["max"].as_f64().unwrap(),
            93.622,
            "sample 999: 1,000 + 1,683 + 30,000 + 60,939 ns"
        );
    }

    #[test]
    fn what_is_not_known_is_null_and_has_a_lower_bound() {
        let mut run = Run::new(Keep::Figures);
        lose(&mut run, 50, 20);
        let result = value(&run);
        let response = &result["ops"]["get"]["response_us"];
        assert!(response["p95"].is_number());
        for name in ["p99", "p99.9", "p99.99", "max"] {
            assert_eq!(response[name], Value::Null, "{name}");
            assert_eq!(response["above"][name], 1_000_000.0, "{name}");
        }
        assert_eq!(keys(&response["above"]).len(), 4);
        assert_eq!(result["ops"]["set"]["response_us"].get("above"), None);
        let totals = &result["totals"];
        assert_eq!((&totals["requests"], &totals["completed"]), (&json!(2070), &json!(2000)));
        assert_eq!((&totals["errors"], &totals["unsent"]), (&json!(50), &json!(20)));
    }

    #[test]
    fn intervals_have_their_place_rate_and_ops() {
        let mut run = Run::new(Keep::Figures);
        lose(&mut run, 3, 0);
        let intervals = &value(&run)["intervals"];
        assert_eq!(intervals.as_array().unwrap().len(), 3);
        assert_eq!(
            (&intervals[1]["at_s"], &intervals[1]["seconds"], &intervals[1]["rate"]),
            (&json!(1.0), &json!(1.0), &json!(1000.0))
        );
        assert_eq!(intervals[1]["ops"]["get"]["completed"], 900);
        assert_eq!(intervals[1]["ops"]["get"].get("histograms"), None);
        assert_eq!(
            (&intervals[2]["rate"], &intervals[2]["ops"]["get"]["errors"]["timeout"]),
            (&json!(0.0), &json!(3))
        );
    }

    #[test]
    fn the_whole_run_has_counts_and_bytes_of_all_phases() {
        let mut run = Run::new(Keep::Figures);
        run.measurement.whole_run.ops.record(&sample(10));
        run.measurement.whole_run.bytes.sent += 300;
        let whole = &value(&run)["whole_run"];
        assert_eq!(
            (&whole["ops"]["set"]["completed"], &whole["ops"]["get"]["hits"]),
            (&json!(201), &json!(1700))
        );
        assert_eq!(whole["ops"]["set"].get("response_us"), None);
        assert_eq!(whole["bytes"]["sent"], 120_300);
    }

    #[test]
    fn groups_are_kept_apart_where_there_are_more_than_one() {
        let mut run = Run::new(Keep::Figures);
        assert_eq!(value(&run).get("groups"), None);
        let mut second = run.plan.groups[0].clone();
        second.name = "second".to_owned();
        run.plan.groups.push(second);
        let names = run.plan.groups.iter().map(|group| group.name.clone());
        run.measurement = Measurement::new(names, Clock::Kernel, MILLISECOND);
        run.interval(0, Keep::Figures, |interval| {
            (0..30).for_each(|i| interval.groups[usize::from(i >= 20)].record(&sample(i)));
        });
        let result = value(&run);
        let completed: Vec<&Value> = (0..2).map(|at| &result["groups"][at]["totals"]["completed"]).collect();
        assert_eq!(completed, [20, 10]);
        assert_eq!(result["groups"][1]["name"], "second");
        assert_eq!(result["ops"]["set"]["completed"], 3, "ops are those of all groups");
    }

    #[test]
    fn a_run_without_anything_is_valid_json_without_numbers_that_nobody_knows() {
        let mut run = Run::new(Keep::Figures);
        run.measurement = Measurement::new(["all".to_owned()], Clock::User, MILLISECOND);
        run.measurement.mark(Status::Partial, "connection refused");
        run.plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
        let result = value(&run);
        assert_eq!((&result["status"], &result["reason"]), (&json!("partial"), &json!("connection refused")));
        assert_eq!(
            (&result["load"], &result["generator"]["cpu_us_per_request"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            (&result["totals"]["rate"], &result["totals"]["response_us"]["p50"]),
            (&json!(0.0), &Value::Null)
        );
        assert_eq!(result["verdict"]["limit"], "unknown");
        let goal =
            json!({"quantile": 0.99, "limit_us": 1000.0, "reached_us": null, "above_us": null, "met": false});
        assert_eq!(result["goals"], json!([goal]));
    }
}
