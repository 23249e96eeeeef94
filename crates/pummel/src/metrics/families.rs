//! A snapshot becomes metrics with their labels and values.

use pummel_logic::plan::RetryKind;
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::recorder::Span;
use pummel_report::document::redirects_by_kind;
use pummel_report::snapshot::buckets::TimeBuckets;
use pummel_report::snapshot::{OpTotals, Role, RunResult, ServerFigures, Snapshot, Stage};

use crate::build_info;
use crate::metrics::table::{ROWS, Row, row};

/// The kernel's figures of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// The time of the monotonic clock, in nanoseconds.
    pub now: Nanos,
    /// CPU time, in nanoseconds.
    pub cpu_ns: Nanos,
    /// Memory, in bytes; `None` where /proc is not mounted.
    pub resident_bytes: Option<u64>,
    /// Open descriptors; `None` where /proc is not mounted.
    pub open_fds: Option<u64>,
    /// Descriptors that may be open.
    pub max_fds: u64,
}

/// One metric with all its values.
#[derive(Debug)]
pub struct Family<'a> {
    /// Name, type and meaning of the metric.
    pub row: &'static Row,
    /// Values of the metric.
    pub samples: Vec<Sample<'a>>,
}

/// One value.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Names and values of labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value<'a>,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number.
    Count(u64),
    /// Any number.
    Number(f64),
    /// Times by bucket.
    Times(&'a TimeBuckets),
}

impl Value<'_> {
    /// The value as a number; 0 for times.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Count(count) => count as f64,
            Value::Number(number) => number,
            Value::Times(_) => 0.0,
        }
    }
}

/// The content of a scrape, in the order of the table; a metric without a value is left out.
pub fn families<'a>(snapshot: &'a Snapshot, process: &ProcessFigures) -> Vec<Family<'a>> {
    let mut to = Collected { common: common_labels(snapshot), families: Vec::new() };
    to.push("pummel_build_info", &[build_info::VERSION, build_info::COMMIT], Value::Count(1));
    run_info(&mut to, snapshot, process.now);
    requests(&mut to, snapshot);
    if !snapshot.ops.is_empty() {
        for row in ROWS {
            to.one(row.name, row.count.map(|count| Value::Count(count(&snapshot.counters))));
        }
    }
    connections(&mut to, snapshot);
    generator(&mut to, snapshot);
    if let Some(result) = &snapshot.result {
        members(&mut to, result);
        result.servers.iter().for_each(|server| server_figures(&mut to, server));
    }
    to.one("process_cpu_seconds_total", Some(seconds(process.cpu_ns)));
    to.one("process_resident_memory_bytes", process.resident_bytes.map(Value::Count));
    to.one("process_open_fds", process.open_fds.map(Value::Count));
    to.one("process_max_fds", Some(Value::Count(process.max_fds)));
    if let Some(result) = &snapshot.result {
        outcome(&mut to, result);
    }
    to.families.sort_by_key(|family| ROWS.iter().position(|row| row.name == family.row.name));
    to.families
}

/// The metrics of the result alone, for a service that keeps them after the process has ended.
pub fn result_families<'a>(snapshot: &'a Snapshot, process: &ProcessFigures) -> Vec<Family<'a>> {
    let mut all = families(snapshot, process);
    all.retain(|family| !family.row.is_of_process() && family.row.name != "pummel_phase");
    all
}

struct Collected<'a> {
    common: Vec<(&'static str, String)>,
    families: Vec<Family<'a>>,
}

impl<'a> Collected<'a> {
    /// Adds a value to the metric `name`, with these values of its labels.
    fn push(&mut self, name: &'static str, labels: &[&str], value: Value<'a>) {
        let row = row(name);
        assert_eq!(row.labels.len(), labels.len(), "{name} has its labels");
        let mut all = if row.is_of_process() { Vec::new() } else { self.common.clone() };
        all.extend(row.labels.iter().copied().zip(labels.iter().map(|label| (*label).to_owned())));
        let sample = Sample { labels: all, value };
        match self.families.iter_mut().find(|family| family.row.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family { row, samples: vec![sample] }),
        }
    }

    fn one(&mut self, name: &'static str, value: Option<Value<'a>>) {
        if let Some(value) = value {
            self.push(name, &[], value);
        }
    }
}

fn common_labels(snapshot: &Snapshot) -> Vec<(&'static str, String)> {
    let identity = &snapshot.identity;
    vec![("run", identity.run.clone()), ("role", identity.role.name().to_owned())]
}

fn seconds<'a>(ns: Nanos) -> Value<'a> {
    Value::Number(ns as f64 / SECOND as f64)
}

fn run_info<'a>(to: &mut Collected<'a>, snapshot: &'a Snapshot, now: Nanos) {
    if let (Some(plan), false) = (&snapshot.plan, snapshot.backends.is_empty()) {
        let (backend, seed) = (snapshot.backends.join("+"), plan.seed.to_string());
        let labels = [snapshot.identity.front, plan.protocol, plan.mode, &backend, plan.clock, &seed];
        to.push("pummel_run_info", &labels, Value::Count(1));
    }
    for stage in Stage::ALL {
        to.push("pummel_phase", &[stage.name()], Value::Count(u64::from(stage == snapshot.stage)));
    }
    let started = (snapshot.started_unix_ns > 0).then(|| seconds(snapshot.started_unix_ns));
    to.one("pummel_start_timestamp_seconds", started);
    let rate = snapshot.asked_rate(now);
    to.one("pummel_target_requests_per_second", rate.map(Value::Number));
}

/// The name of a counter of requests, and its figure.
type RequestCounter = (&'static str, fn(&OpTotals) -> u64);

fn requests<'a>(to: &mut Collected<'a>, snapshot: &'a Snapshot) {
    let counts: [RequestCounter; 4] = [
        ("pummel_requests_due_total", |op| op.counts.requests()),
        ("pummel_requests_completed_total", |op| op.counts.completed),
        ("pummel_requests_unfinished_total", |op| op.counts.unfinished),
        ("pummel_requests_unsent_total", |op| op.counts.unsent),
    ];
    for (name, count) in counts {
        snapshot.ops.iter().for_each(|(op, totals)| to.push(name, &[op], Value::Count(count(totals))));
    }
    for (op, totals) in &snapshot.ops {
        for fault in Fault::ALL {
            let count = Value::Count(totals.counts.errors(fault));
            to.push("pummel_request_errors_total", &[op, fault.name()], count);
        }
    }
    for (op, totals) in &snapshot.ops {
        let has_condition = Verb::ALL.iter().any(|verb| verb.name() == *op && verb.has_condition());
        for (outcome, count) in totals.counts.outcomes.without_effect() {
            if has_condition || count > 0 {
                to.push("pummel_requests_without_effect_total", &[op, outcome.name()], Value::Count(count));
            }
        }
    }
    if snapshot.plan.as_ref().is_some_and(|plan| plan.are_a_cluster) && !snapshot.ops.is_empty() {
        let counts = &snapshot.counters.redirects;
        for (kind, count) in redirects_by_kind(counts) {
            to.push("pummel_redirects_total", &[kind], Value::Count(count));
        }
        for (result, count) in [("followed", counts.followed), ("given_up", counts.given_up)] {
            to.push("pummel_redirected_requests_total", &[result], Value::Count(count));
        }
    }
    if snapshot.plan.as_ref().is_some_and(|plan| plan.sends_again) && !snapshot.ops.is_empty() {
        let counts = &snapshot.counters.retry;
        for kind in RetryKind::ALL {
            let count = counts.retries.iter().find(|(other, _)| *other == kind).map_or(0, |(_, count)| count);
            to.push("pummel_retries_total", &[kind.name()], Value::Count(count));
        }
        let (given_up, not_repeatable) = (counts.given_up.total(), counts.not_repeatable);
        let results = ["recovered", "given_up", "not_repeatable"];
        for (result, count) in results.into_iter().zip([counts.recovered, given_up, not_repeatable]) {
            to.push("pummel_retried_requests_total", &[result], Value::Count(count));
        }
    }
    let reads = snapshot.ops.iter().filter(|(_, totals)| totals.counts.hits + totals.counts.misses > 0);
    for (op, totals) in reads {
        to.push("pummel_keys_total", &[op, "hit"], Value::Count(totals.counts.hits));
        to.push("pummel_keys_total", &[op, "miss"], Value::Count(totals.counts.misses));
    }
    let told = snapshot.ops.iter().filter(|(_, totals)| {
        let counts = &totals.counts;
        counts.hits + counts.misses > 0 && !counts.cache.is_zero()
    });
    for (op, totals) in told {
        for (cause, count) in totals.counts.cache.by_cause() {
            to.push("pummel_misses_total", &[op, cause], Value::Count(count));
        }
    }
    for span in Span::ALL {
        let name = match span {
            Span::Response => "pummel_response_seconds",
            Span::Wait => "pummel_wait_seconds",
            Span::Lag => "pummel_lag_seconds",
            Span::Service => "pummel_service_seconds",
            Span::Reaction => "pummel_reaction_seconds",
        };
        for (op, totals) in &snapshot.ops {
            to.push(name, &[op], Value::Times(&totals.times[span as usize]));
        }
    }
}

fn connections<'a>(to: &mut Collected<'a>, snapshot: &'a Snapshot) {
    let (seen, result) = (&snapshot.connections, snapshot.result.as_ref());
    to.one("pummel_connections_open", seen.open.map(Value::Count));
    to.one("pummel_connections_asked", seen.asked.map(Value::Count));
    to.one("pummel_connections_lost_total", Some(Value::Count(seen.lost)));
    to.one("pummel_connections_failed_total", result.map(|result| Value::Count(result.connections_failed)));
    to.one("pummel_connections_reopened_total", Some(Value::Count(seen.reopened)));
    to.one("pummel_connect_seconds", result.map(|result| Value::Times(&result.connect)));
    let verified = result.and_then(|result| result.verified).into_iter().flatten();
    for (word, count) in ["right", "wrong", "stale"].into_iter().zip(verified) {
        to.push("pummel_verified_values_total", &[word], Value::Count(count));
    }
    let audited = result.and_then(|result| result.audited).into_iter().flatten();
    let states = ["current", "contested", "newer", "older", "missing", "unread"];
    for (word, count) in states.into_iter().zip(audited) {
        to.push("pummel_audited_keys_total", &[word], Value::Count(count));
    }
}

fn generator<'a>(to: &mut Collected<'a>, snapshot: &'a Snapshot) {
    if snapshot.identity.role == Role::Controller {
        to.push("pummel_worker_busy_seconds_total", &["all"], seconds(snapshot.counters.turns.busy_ns));
    } else {
        for (worker, busy_ns) in snapshot.workers_busy_ns.iter().enumerate() {
            to.push("pummel_worker_busy_seconds_total", &[&worker.to_string()], seconds(*busy_ns));
        }
    }
    if !snapshot.ops.is_empty() {
        let turns = &snapshot.counters.turns;
        to.one("pummel_stalled_seconds_total", Some(seconds(turns.stalled_ns)));
        let stamps = [
            ("missing", turns.stamps.missing),
            ("shared", turns.stamps.shared),
            ("rejected", turns.stamps.rejected),
        ];
        stamps
            .into_iter()
            .for_each(|(kind, count)| to.push("pummel_stamps_total", &[kind], Value::Count(count)));
    }
    let limited = snapshot.result.as_ref().map(|result| u64::from(result.generator_limited));
    to.one("pummel_generator_limited", limited.map(Value::Count));
}

fn members<'a>(to: &mut Collected<'a>, result: &'a RunResult) {
    if result.members.is_empty() {
        return;
    }
    let lost = result.members.iter().filter(|(.., is_lost)| *is_lost).count() as u64;
    to.push("pummel_agents", &["present"], Value::Count(result.members.len() as u64 - lost));
    to.push("pummel_agents", &["lost"], Value::Count(lost));
    to.one("pummel_agents_lost_total", Some(Value::Count(result.members_lost)));
    for (name, error_ns, _) in &result.members {
        to.push("pummel_agent_clock_error_seconds", &[name], seconds(*error_ns));
    }
}

fn server_figures<'a>(to: &mut Collected<'a>, seen: &'a ServerFigures) {
    let server = seen.server.as_str();
    let mut add = |name, labels: &[&str], value: Option<Value<'a>>| {
        if let Some(value) = value {
            to.push(name, labels, value);
        }
    };
    add("pummel_server_cpu_seconds_total", &[server], seen.cpu_ns.map(seconds));
    add("pummel_server_requests_total", &[server], seen.requests.map(Value::Count));
    add("pummel_server_keys_total", &[server, "hit"], seen.hits.map(Value::Count));
    add("pummel_server_keys_total", &[server, "miss"], seen.misses.map(Value::Count));
    add("pummel_server_evictions_total", &[server], seen.evictions.map(Value::Count));
    add("pummel_server_connections", &[server], seen.connections.map(Value::Count));
    add("pummel_server_memory_bytes", &[server], seen.memory_bytes.map(Value::Count));
}

fn outcome<'a>(to: &mut Collected<'a>, result: &'a RunResult) {
    for (op, span, quantile, ns) in &result.quantiles {
        to.push("pummel_result_quantile_seconds", &[op, span.name(), &quantile.to_string()], seconds(*ns));
    }
    for (number, (goal, is_met)) in result.goals.iter().enumerate() {
        // A goal that is asked for twice is one series.
        if result.goals[..number].iter().all(|(earlier, _)| earlier != goal) {
            to.push("pummel_goal_met", &[goal], Value::Count(u64::from(*is_met)));
        }
    }
}
