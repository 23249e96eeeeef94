//! The figures by which runs are compared, and the object that holds those of one run in a result of several.

use std::collections::BTreeMap;
use std::ops::Deref;

use pummel_logic::plan::{Arrivals, Group, Plan};
use pummel_logic::time::{MICROSECOND, Nanos};
use pummel_measure::compare::RunFigure;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::summary::time_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::csv::Cell;
use crate::document::{Document, Figure, OtherOutcomes, TimeFigures, reads};
use crate::numbers::{grouped, number};

/// A figure by which runs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The median of the response time.
    #[default]
    P50,
    /// The 90th percentile of the response time.
    P90,
    /// The 99th percentile of the response time.
    P99,
    /// The 99.9th percentile of the response time.
    #[serde(rename = "p99.9")]
    P999,
    /// Completed requests per second.
    Rate,
    /// CPU time of the generator for each completed request.
    ClientCpu,
    /// CPU time of the servers for each request, as clients count them.
    ServerCpu,
}

impl Metric {
    /// All metrics, in the order of reports.
    pub const ALL: [Metric; 7] = [
        Metric::P50,
        Metric::P90,
        Metric::P99,
        Metric::P999,
        Metric::Rate,
        Metric::ClientCpu,
        Metric::ServerCpu,
    ];

    /// The word of command lines, reports and results.
    pub fn name(self) -> &'static str {
        match self {
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            Metric::Rate => "rate",
            Metric::ClientCpu => "client-cpu",
            Metric::ServerCpu => "server-cpu",
        }
    }

    /// The metric with this name.
    pub fn from_name(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// All names, as a sentence of help or of an error has them.
    pub fn names() -> String {
        Metric::ALL.map(Metric::name).join(", ")
    }

    /// Whether a greater value is better.
    pub fn is_better_when_greater(self) -> bool {
        self == Metric::Rate
    }

    /// Whether the metric is a time or a rate, which describe the generator in part if it was the limit.
    pub fn is_of_the_way(self) -> bool {
        !matches!(self, Metric::ClientCpu | Metric::ServerCpu)
    }

    /// The unit of its values in results.
    pub fn unit(self) -> MetricUnit {
        match self {
            Metric::Rate => MetricUnit::RequestsPerSecond,
            Metric::ClientCpu | Metric::ServerCpu => MetricUnit::MicrosecondsPerRequest,
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => MetricUnit::Microseconds,
        }
    }

    /// A value as reports write it.
    pub fn text(self, value: f64) -> String {
        match self {
            Metric::Rate => format!("{}/s", grouped(value.round() as u64)),
            Metric::ClientCpu | Metric::ServerCpu => format!("{} us", number(value)),
            Metric::P50 | Metric::P90 | Metric::P99 | Metric::P999 => {
                time_text((value * MICROSECOND as f64).round() as Nanos)
            }
        }
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MetricUnit {
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Completed requests per second.
    #[serde(rename = "requests/s")]
    RequestsPerSecond,
    /// Microseconds of CPU time for each request.
    #[serde(rename = "us/request")]
    MicrosecondsPerRequest,
}

/// Figures of several runs in the order of reports; in JSON an object with a member for each metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures<T>(pub Vec<T>);

/// A figure of several runs, which knows the metric that it is of.
pub trait OfMetric {
    /// The metric of the figure.
    fn metric(&self) -> Metric;

    /// The figure as that of a metric.
    #[must_use]
    fn with_metric(self, metric: Metric) -> Self;
}

impl<T> Deref for Figures<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Serialize + OfMetric> Serialize for Figures<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|figure| (figure.metric(), figure)))
    }
}

impl<'de, T: Deserialize<'de> + OfMetric> Deserialize<'de> for Figures<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Figures<T>, D::Error> {
        let named: BTreeMap<Metric, T> = BTreeMap::deserialize(deserializer)?;
        Ok(Figures(named.into_iter().map(|(metric, figure)| figure.with_metric(metric)).collect()))
    }
}

/// Wrong values of all runs.
pub fn wrong_values(runs: &[RunFigures]) -> u64 {
    runs.iter().filter_map(|run| run.wrong_values).fold(0, u64::saturating_add)
}

/// How a series ended of which so many of the runs or pairs that were asked for were made.
pub fn status_of_series(
    is_interrupted: bool,
    reason: Option<&str>,
    made: usize,
    asked: Option<u32>,
) -> Status {
    match (is_interrupted, reason) {
        (true, _) => Status::Interrupted,
        (false, Some(_)) => Status::Partial,
        (false, None) if asked.is_some_and(|asked| made < asked as usize) => Status::Partial,
        (false, None) => Status::Complete,
    }
}

/// The figures of one run. Times are microseconds (`_us`) or seconds; what is not known is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// Status of the run: `complete`, `partial` or `interrupted`.
    pub status: Status,
    /// Reason why the run is not complete; else null.
    #[serde(default)]
    pub reason: Option<String>,
    /// Outcome of the run: `ok`, `failed` or `overloaded`.
    #[serde(default)]
    pub outcome: RunOutcome,
    /// Whether the run was steady from its beginning to its end; null where that is not known.
    #[serde(default)]
    pub steady: Option<bool>,
    /// Seed of the run's arrivals and choices.
    #[serde(default)]
    pub seed: u64,
    /// Beginning of the measured phase, in seconds since 1970.
    #[serde(default)]
    pub started_unix_s: Option<f64>,
    /// Length of the measured phase.
    #[serde(default)]
    pub seconds: f64,
    /// Time that the run took with everything around it: a restart of the server, the load, the warm-up.
    #[serde(default)]
    pub whole_s: f64,
    /// Number of requests that were due.
    #[serde(default)]
    pub requests: u64,
    /// Completed requests per second.
    #[serde(default)]
    pub rate: f64,
    /// 95 % interval of the rate within the run; null where it is not known.
    #[serde(default)]
    pub rate_ci: Option<[f64; 2]>,
    /// Quantiles of the response time of all requests, in microseconds, with their intervals.
    #[serde(default)]
    pub response_us: ResponseFigures,
    /// CPU time of the generator for each completed request.
    #[serde(default)]
    pub cpu_us_per_request: Option<f64>,
    /// CPU time of the servers for each request, as clients count them.
    #[serde(default)]
    pub server_cpu_us_per_request: Option<f64>,
    /// Wrong and stale values that were found; null where none were checked.
    #[serde(default)]
    pub wrong_values: Option<u64>,
    /// Keys that were found and keys that were not, by requests that read; null where that is not known.
    #[serde(default)]
    pub lookups: Option<Lookups>,
    /// Requests that may store or find nothing, by operation; absent where there were none, and where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_outcomes: Vec<OtherOutcomes>,
    /// Requests that ended as errors or without a reply; null where that is not known.
    #[serde(default)]
    pub errors: Option<u64>,
    /// Whether the run met its goals; null where it had none.
    #[serde(default)]
    pub met: Option<bool>,
    /// Whether the times are reliable; null where that is not known.
    #[serde(default)]
    pub trust: Option<bool>,
    /// Names of the figures of the response whose lag makes the times doubtful.
    #[serde(default)]
    pub doubtful: Vec<String>,
    /// Names of the figures of the response that are lag for half or more.
    #[serde(default)]
    pub mostly_lag: Vec<String>,
    /// Part of the doubtful figures of the response that is lag, from 0 to 1, by the name of the figure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lag_shares: BTreeMap<String, f64>,
    /// Limit of the run, as its own report names it: one of the limits of `verdict`, and `none` in an open loop whose rate was carried
    /// although requests were late.
    #[serde(default)]
    pub limit: String,
}

/// Keys that reads looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lookups {
    /// Keys that were found.
    pub hits: u64,
    /// Keys that were not.
    pub misses: u64,
}

impl Lookups {
    fn of(result: &Document) -> Lookups {
        let of_reads = result.ops.iter().filter(|(name, op)| reads(name, op));
        of_reads.fold(Lookups::default(), |all, (_, op)| Lookups {
            hits: all.hits.saturating_add(op.hits),
            misses: all.misses.saturating_add(op.misses),
        })
    }
}

/// Quantiles of the response time in microseconds, and their intervals within the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResponseFigures {
    /// The 50th percentile.
    pub p50: Option<f64>,
    /// The 90th percentile.
    pub p90: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// The ends of the intervals, by name; an end that is not known is null.
    pub ci: Option<BTreeMap<String, [Option<f64>; 2]>>,
    /// Lower bounds of the quantiles that are not known, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub above: BTreeMap<String, f64>,
}

impl ResponseFigures {
    fn of(times: &TimeFigures) -> ResponseFigures {
        let ends = times.ci.as_ref().map(|ends| {
            let kept = ends.iter().filter(|(name, _)| Metric::from_name(name).is_some());
            kept.map(|(name, ends)| (name.to_owned(), *ends)).collect()
        });
        let above = Metric::ALL.into_iter().filter_map(|metric| match times.at(metric.name()) {
            Figure::Above(us) => Some((metric.name().to_owned(), us)),
            Figure::Known(_) | Figure::Absent => None,
        });
        ResponseFigures {
            p50: times.p50,
            p90: times.p90,
            p99: times.p99,
            p99_9: times.p99_9,
            ci: ends,
            above: above.collect(),
        }
    }

    fn within(&self, metric: Metric) -> Option<(f64, f64)> {
        match self.ci.as_ref()?.get(metric.name())? {
            [Some(low), Some(high)] => Some((*low, *high)),
            _ => None,
        }
    }
}

impl RunFigures {
    /// The figures of a run whose result this is and that took `whole_s` seconds with everything around it.
    pub fn of(result: &Document, whole_s: f64) -> RunFigures {
        let verify = &result.verify;
        let response = result.totals.times.response_us.as_ref();
        RunFigures {
            status: result.status,
            reason: result.reason.clone(),
            outcome: result.outcome,
            steady: result.steady,
            seed: result.plan.seed,
            started_unix_s: result.started_unix_s,
            seconds: result.seconds,
            whole_s,
            requests: result.totals.requests,
            rate: result.totals.rate,
            rate_ci: result.totals.rate_ci,
            response_us: response.map(ResponseFigures::of).unwrap_or_default(),
            cpu_us_per_request: result.generator.cpu_us_per_request,
            server_cpu_us_per_request: server_cpu_us(result),
            wrong_values: (result.plan.verify > 0.0).then_some(verify.failed + verify.stale),
            lookups: Some(Lookups::of(result)),
            other_outcomes: result.other_outcomes(),
            errors: Some(result.totals.errors),
            met: (!result.goals.is_empty()).then(|| !result.missed_a_goal()),
            trust: result.trust.as_ref().map(|trust| trust.ok),
            doubtful: result
                .trust
                .iter()
                .flat_map(|trust| trust.doubtful.iter().map(|part| part.figure.clone()))
                .collect(),
            mostly_lag: result.trust.as_ref().map(|trust| trust.mostly_lag.clone()).unwrap_or_default(),
            lag_shares: lag_shares(result),
            limit: result.limit().unwrap_or_default().to_owned(),
        }
    }

    /// A figure of the run with its interval within the run, in the unit of the metric.
    pub fn figure(&self, metric: Metric) -> Option<RunFigure> {
        let response = &self.response_us;
        let value = match metric {
            Metric::P50 => response.p50,
            Metric::P90 => response.p90,
            Metric::P99 => response.p99,
            Metric::P999 => response.p99_9,
            Metric::Rate => Some(self.rate),
            Metric::ClientCpu => self.cpu_us_per_request,
            Metric::ServerCpu => self.server_cpu_us_per_request,
        };
        let within = match metric {
            Metric::Rate => self.rate_ci.map(|[low, high]| (low, high)),
            Metric::ClientCpu | Metric::ServerCpu => None,
            _ => response.within(metric),
        };
        let value = value.filter(|value| value.is_finite() && *value > 0.0)?;
        Some(RunFigure { value, within })
    }

    /// Lower bound of a figure that is not known, in the unit of the metric.
    pub fn bound(&self, metric: Metric) -> Option<f64> {
        match self.figure(metric) {
            Some(_) => None,
            None => self.response_us.above.get(metric.name()).copied().filter(|us| us.is_finite()),
        }
    }

    /// Whether a visible part of a time was added by the generator itself. A quantile whose own lag is not judged is as doubtful as
    /// those beside it, and all times are where the run says no quantile.
    pub fn has_lag(&self, metric: Metric) -> bool {
        let beside: &[&str] = match metric {
            Metric::P50 => &["p50"],
            Metric::P90 => &["p50", "p90", "p99"],
            Metric::P99 => &["p99"],
            Metric::P999 => &["p99", "p99.9"],
            Metric::Rate | Metric::ClientCpu | Metric::ServerCpu => return false,
        };
        let is_one = |names: &[String], of: &[&str]| names.iter().any(|name| of.contains(&name.as_str()));
        let is_doubtful = is_one(&self.doubtful, beside) || !is_one(&self.doubtful, &QUANTILES_OF_TRUST);
        self.trust == Some(false) && is_doubtful || is_one(&self.mostly_lag, &[metric.name()])
    }

    /// The line of progress of the run.
    pub fn line(&self) -> String {
        let p99 = self.figure(Metric::P99).map_or("not known".to_owned(), |p99| Metric::P99.text(p99.value));
        let steady = if self.steady == Some(false) { ", not steady" } else { "" };
        let outcome = self.outcome.headline().map_or_else(String::new, |word| format!(", {word}"));
        format!("{}, p99 {p99}{steady}{outcome}", Metric::Rate.text(self.rate))
    }
}

/// The quantiles whose lag makes the times of a run doubtful.
const QUANTILES_OF_TRUST: [&str; 4] = ["p50", "p90", "p95", "p99"];

/// The part of the doubtful figures of a run that is lag.
fn lag_shares(result: &Document) -> BTreeMap<String, f64> {
    let doubtful = result.trust.iter().flat_map(|trust| &trust.doubtful);
    doubtful.map(|part| (part.figure.clone(), part.share)).collect()
}

/// The figure by which runs of a plan are judged where none is named: the 99th percentile in open loop, the rate in closed
/// loop.
pub fn judged_by_default(plan: &Plan) -> Metric {
    let is_closed = |group: &Group| group.rate.is_none() && group.arrivals == Arrivals::Closed;
    match plan.groups.iter().all(is_closed) {
        true => Metric::Rate,
        false => Metric::P99,
    }
}

/// CPU time of all servers for each request, as clients count them, in microseconds.
fn server_cpu_us(result: &Document) -> Option<f64> {
    let servers = result.evidence.iter().flat_map(|evidence| &evidence.servers);
    let readings = servers.filter_map(|server| server.reading.as_ref());
    let counted = readings.filter_map(|reading| {
        let cpu_us = reading.cpu_s? * 1e6;
        let each_us = reading.cpu_us_per_request.filter(|us| *us > 0.0)?;
        Some((cpu_us, cpu_us / each_us))
    });
    let (cpu_us, requests) =
        counted.fold((0.0, 0.0), |(cpu_us, requests), (more_us, more)| (cpu_us + more_us, requests + more));
    (requests > 0.0).then(|| cpu_us / requests)
}

/// The names of the columns of [`csv_cells`].
pub const CSV_HEADER: [&str; 16] = [
    "seed",
    "started_unix_s",
    "seconds",
    "status",
    "requests",
    "rate",
    "response_p50_us",
    "response_p90_us",
    "response_p99_us",
    "response_p99.9_us",
    "cpu_us_per_request",
    "server_cpu_us_per_request",
    "steady",
    "limit",
    "trust",
    "outcome",
];

/// A run as cells of CSV; what is not known is empty.
pub fn csv_cells(run: &RunFigures) -> [Cell<'_>; 16] {
    let response = &run.response_us;
    let status = match run.status {
        Status::Complete => "complete",
        Status::Partial => "partial",
        Status::Interrupted => "interrupted",
    };
    [
        run.seed.into(),
        run.started_unix_s.into(),
        run.seconds.into(),
        status.into(),
        run.requests.into(),
        run.rate.into(),
        response.p50.into(),
        response.p90.into(),
        response.p99.into(),
        response.p99_9.into(),
        run.cpu_us_per_request.into(),
        run.server_cpu_us_per_request.into(),
        run.steady.into(),
        run.limit.as_str().into(),
        run.trust.into(),
        run.outcome.headline().unwrap_or("ok").to_ascii_lowercase().into(),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::example::Run;

    /// A run of ten seconds that began at `started_s` and whose times are `scale` times those of another.
    pub fn run_at(started_s: f64, scale: f64) -> RunFigures {
        let ci = [("p50", 0.99, 1.01), ("p99", 0.95, 1.06)];
        let base = |name: &str| if name == "p50" { 100.0 } else { 400.0 };
        let ends = ci.map(|(name, low, high)| {
            (name.to_owned(), [Some(base(name) * scale * low), Some(base(name) * scale * high)])
        });
        RunFigures {
            status: Status::Complete,
            reason: None,
            outcome: RunOutcome::Ok,
            steady: Some(true),
            seed: 7,
            started_unix_s: Some(started_s),
            seconds: 10.0,
            whole_s: 11.0,
            requests: 200_000,
            rate: 20_000.0 / scale,
            rate_ci: Some([19_900.0 / scale, 20_100.0 / scale]),
            response_us: ResponseFigures {
                p50: Some(100.0 * scale),
                p90: Some(200.0 * scale),
                p99: Some(400.0 * scale),
                p99_9: Some(900.0 * scale),
                ci: Some(ends.into_iter().collect()),
                ..ResponseFigures::default()
            },
            cpu_us_per_request: Some(4.0),
            server_cpu_us_per_request: None,
            wrong_values: None,
            lookups: Some(Lookups { hits: 180_000, misses: 0 }),
            other_outcomes: Vec::new(),
            errors: Some(0),
            met: None,
            trust: Some(true),
            doubtful: Vec::new(),
            mostly_lag: Vec::new(),
            lag_shares: BTreeMap::new(),
            limit: "none".to_owned(),
        }
    }

    #[test]
    fn the_figures_of_a_run_are_those_of_its_summary_and_come_back_from_json() {
        let run = Run::new(Keep::Figures)
            .with_windows()
            .report(|report| RunFigures::of(&Document::of(report), 3.5));
        assert_eq!((run.requests, run.seed, run.whole_s), (2_000, 42, 3.5));
        assert!(run.figure(Metric::P50).is_some() && run.response_us.ci.is_some(), "{run:?}");
        assert_eq!(run.figure(Metric::Rate).and_then(|rate| rate.within), Some((1_000.0, 1_000.0)));
        assert_eq!(run.figure(Metric::ServerCpu), None);
        let text = serde_json::to_string(&run).expect("JSON");
        assert_eq!(serde_json::from_str::<RunFigures>(&text).expect("its own JSON"), run);
    }

    #[test]
    fn a_run_in_a_series_names_the_limit_that_its_own_report_does() {
        let limits = |arrivals: Arrivals| {
            let mut run = Run::new(Keep::Figures);
            let is_open = arrivals != Arrivals::Closed;
            run.plan.groups[0].arrivals = arrivals;
            let worker = &mut run.measurement.generator.workers[0];
            worker.busy_ns = worker.wall_ns;
            run.report(|report| {
                let document = Document::of(report);
                let verdict = document.verdict.as_ref().map(|verdict| verdict.limit.clone());
                let of_summary = report.summary.limit(is_open, 0).name();
                assert_eq!(document.limit(), Some(of_summary));
                (verdict.unwrap_or_default(), RunFigures::of(&document, 3.0).limit)
            })
        };
        let [generator, none] = ["generator", "none"].map(str::to_owned);
        assert_eq!(limits(Arrivals::Poisson), (generator.clone(), none), "its rate was carried");
        assert_eq!(limits(Arrivals::Closed), (generator.clone(), generator));
    }

    #[test]
    fn a_time_has_lag_where_it_or_a_quantile_beside_it_is_doubtful() {
        let late = |doubtful: &[&str], mostly_lag: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let trust = Some(doubtful.is_empty() && mostly_lag.is_empty());
            let (doubtful, mostly_lag) = (owned(doubtful), owned(mostly_lag));
            let run = RunFigures { trust, doubtful, mostly_lag, ..run_at(0.0, 1.0) };
            Metric::ALL.into_iter().filter(|metric| run.has_lag(*metric)).collect::<Vec<_>>()
        };
        let times = vec![Metric::P50, Metric::P90, Metric::P99, Metric::P999];
        assert_eq!(late(&[], &[]), []);
        assert_eq!(late(&["p99"], &[]), times[1..]);
        assert_eq!(late(&["p50"], &[]), times[..2]);
        assert_eq!(late(&["p95"], &[]), []);
        assert_eq!(late(&["mean"], &[]), times, "no quantile is named");
        let reliable = RunFigures { mostly_lag: vec!["p99.9".to_owned()], ..run_at(0.0, 1.0) };
        assert!(reliable.has_lag(Metric::P999) && !reliable.has_lag(Metric::P99));
    }

    #[test]
    fn every_metric_is_found_by_its_name() {
        for metric in Metric::ALL {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
        }
        assert_eq!(Metric::from_name("p98"), None);
        assert_eq!([Metric::P99.text(412.3), Metric::Rate.text(81_748.4)], ["412 us", "81,748/s"]);
    }
}
