//! What a result says around its requests: the load, checked values, goals, the generator, how sure its figures are.

use pummel_logic::time::{Nanos, seconds};
use pummel_logic::workload::verify::check::Damage;
use pummel_measure::certainty::{Band, bands};
use pummel_measure::measurement::{MESSAGES_KEPT, Measurement, Stamps, WrongKey};
use pummel_measure::outcome::Ending;
use pummel_measure::summary::Quantile;
use pummel_measure::uncertainty::steadiness::{Steadiness, has_constant_load};
use pummel_measure::uncertainty::{LEVEL, METHOD};
use serde::{Deserialize, Serialize};

use super::figures::{Figure, micros, rounded};
use super::known::known;
use super::named::Named;
use crate::words::limit::cause_words;
use crate::words::verify::damage_words;
use crate::{Build, Report, VERSION};

/// The program that made a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolResult {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Commit that it was built from; `unknown` in builds for development and of sources without git. Empty in results of
    /// versions that did not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Profile that it was built with: `release`, `quick` or `dev`; empty as `commit`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Platform that it was built for; empty as `commit`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Optional parts that were built in: `agents` or `none`; empty as `commit`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub features: String,
}

impl ToolResult {
    /// This program, whatever its build.
    pub(crate) fn named() -> ToolResult {
        ToolResult { name: "pummel".to_owned(), version: VERSION.to_owned(), ..ToolResult::default() }
    }

    /// Name and version of the program.
    pub(crate) fn words(&self) -> String {
        format!("{} {}", self.name, self.version).trim().to_owned()
    }

    /// This program, of a build.
    pub(super) fn own(build: Build) -> ToolResult {
        ToolResult {
            commit: build.commit.to_owned(),
            profile: build.profile.to_owned(),
            target: build.target.to_owned(),
            features: build.features.to_owned(),
            ..ToolResult::named()
        }
    }
}

/// How the intervals of figures were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CertaintyResult {
    /// Name of the method: `batches-1`.
    pub method: String,
    /// Share of intervals that contain what they are for: 0.95.
    pub level: f64,
    /// Number of windows of time that the intervals come from; a run with fewer than ten has none.
    pub windows: usize,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// The intervals of up to 40 quantiles of the response time of all requests, for pictures: the quantile and
    /// the ends in microseconds, null where an end is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<(f64, Option<f64>, Option<f64>)>,
}

impl CertaintyResult {
    pub(super) fn of(report: &Report<'_>) -> Option<CertaintyResult> {
        report.summary.totals.certainty.as_ref()?;
        let windows = report.measurement.windows.as_ref()?;
        let window_s = seconds(windows.length_ns());
        let band = |band: &Band| {
            let end = |end: Option<Nanos>| end.map(|ns| micros(ns as f64));
            ((band.quantile * 1e6).round() / 1e6, end(band.ends[0]), end(band.ends[1]))
        };
        Some(CertaintyResult {
            method: METHOD.to_owned(),
            level: LEVEL,
            windows: windows.iter().len(),
            window_s,
            bands: bands(report.measurement).iter().map(band).collect(),
        })
    }

    /// Why a run that kept windows has no intervals; `None` where it has some, and where it kept no windows.
    pub(super) fn missing(report: &Report<'_>) -> Option<NoIntervals> {
        let is_missing = report.summary.totals.certainty.is_none() && report.measurement.windows.is_some();
        let is_steady = report.summary.steadiness.as_ref().is_none_or(Steadiness::is_steady);
        let why = match () {
            () if !report.plan.changes.is_nothing() => NoIntervals::LoadChanges,
            () if report.plan.trace().is_some() => NoIntervals::Trace,
            () if report.plan.replays() => NoIntervals::Recording,
            () if report.plan.phases.iter().filter(|phase| phase.recorded).count() > 1 => NoIntervals::Phases,
            // Records are stored or deleted.
            () if !has_constant_load(report.plan) => NoIntervals::NotJudged,
            () if matches!(report.summary.ending, Some(Ending::Overloaded(_))) => NoIntervals::Overloaded,
            () if !is_steady => NoIntervals::Unsteady,
            () => NoIntervals::Short,
        };
        is_missing.then_some(why)
    }
}

/// Reason why the figures of a run have no intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoIntervals {
    /// The load changes by plan.
    LoadChanges,
    /// The load is that of a trace.
    Trace,
    /// The load is that of a recording.
    Recording,
    /// Several phases were measured.
    Phases,
    /// The load stores or deletes records, of which steadiness is not judged.
    NotJudged,
    /// The queue grew to the end.
    Overloaded,
    /// The run was not at one level.
    Unsteady,
    /// The run was too short.
    Short,
    /// The result is a sum, which has no windows of time.
    Merged,
    /// The reason is one that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// Populating before the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoadedResult {
    /// Records that were to be stored; a record counts once for each server that holds it, and as often as `--load-per-record` says.
    pub records: u64,
    /// Records that were stored.
    pub stored: u64,
    /// Stores that failed or were refused; those that an interruption kept from being sent or answered do not
    /// count.
    pub errors: u64,
    /// How long it took.
    pub seconds: f64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// What servers said with errors, and how often.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub error_messages: Named<u64>,
}

impl LoadedResult {
    /// Adds another load at the same time.
    pub fn add(&mut self, other: &LoadedResult) {
        self.records += other.records;
        self.stored += other.stored;
        self.errors += other.errors;
        self.seconds = self.seconds.max(other.seconds);
        self.bytes += other.bytes;
        let messages = &mut self.error_messages.0;
        for (message, count) in other.error_messages.iter() {
            match messages.iter().position(|(known, _)| known == message) {
                Some(at) => messages[at].1 += count,
                None if messages.len() < MESSAGES_KEPT => messages.push((message.to_owned(), *count)),
                None => {}
            }
        }
    }

    pub(super) fn of(measurement: &Measurement) -> Option<LoadedResult> {
        measurement.load.as_ref().map(|load| LoadedResult {
            records: load.records,
            stored: load.stored,
            errors: load.errors,
            seconds: seconds(load.elapsed_ns),
            bytes: load.bytes,
            error_messages: load.messages.iter().map(|(words, count)| (words.clone(), *count)).collect(),
        })
    }
}

/// Values that were checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerifyResult {
    /// Values that were checked.
    pub checked: u64,
    /// Values that were wrong. A miss is not checked and never a failure.
    pub failed: u64,
    /// Different keys of those; a lower bound above a million.
    pub failed_keys: u64,
    /// Whether `failed_keys` is a lower bound.
    pub failed_keys_or_more: bool,
    /// Values that were whole, and certainly older than one that the same client had stored before.
    pub stale: u64,
    /// Values that were too short to carry a frame: their bytes are compared, but neither a lost end nor an
    /// older value can be seen.
    pub short: u64,
    /// The first ten failed keys.
    pub first: Vec<WrongKeyResult>,
}

/// A key whose value was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WrongKeyResult {
    /// The key, with bytes that are no text replaced.
    pub key: String,
    /// Damage of the value; absent where this version does not know it, and in results of versions that did not say.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// The damage in a few words.
    pub why: String,
}

impl WrongKeyResult {
    fn of(wrong: &WrongKey) -> WrongKeyResult {
        let why = damage_words(wrong.damage).to_owned();
        WrongKeyResult { key: wrong.key.clone(), damage: Some(wrong.damage), why }
    }
}

impl VerifyResult {
    pub(super) fn of(measurement: &Measurement) -> VerifyResult {
        let verify = &measurement.verify;
        VerifyResult {
            checked: verify.checked,
            failed: verify.failed,
            failed_keys: verify.failed_keys(),
            failed_keys_or_more: verify.more_keys(),
            stale: verify.stale,
            short: verify.short,
            first: verify.first.iter().map(WrongKeyResult::of).collect(),
        }
    }
}

/// What a run was held to, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GoalOutcome {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The greatest response time that meets the goal.
    pub limit_us: f64,
    /// The response time at the quantile; null when it is not known.
    pub reached_us: Option<f64>,
    /// A lower bound of the response time at the quantile where it is not known.
    pub above_us: Option<f64>,
    /// Whether the goal was met; null where the run was not steady, and the goal holds on one side of the change only.
    pub met: Option<bool>,
    /// Whether the times of the run may be believed; false where they are partly the generator's own.
    pub trust: bool,
}

impl GoalOutcome {
    /// The response time at the quantile.
    pub fn reached(&self) -> Figure {
        match (self.reached_us, self.above_us) {
            (Some(us), _) => Figure::Known(us),
            (None, Some(us)) => Figure::Above(us),
            (None, None) => Figure::Absent,
        }
    }

    pub(super) fn all_of(report: &Report<'_>) -> Vec<GoalOutcome> {
        let of = |ns: Nanos| micros(ns as f64);
        let goals = report.summary.goals.iter().map(|result| GoalOutcome {
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

/// How the load generator itself fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GeneratorResult {
    /// CPU time of the process outside of the kernel.
    pub cpu_user_s: f64,
    /// CPU time of the process in the kernel.
    pub cpu_system_s: f64,
    /// Both together for each request that was completed or failed; null if none was completed, or an agent was
    /// lost.
    pub cpu_us_per_request: Option<f64>,
    /// Share of the time that the busiest worker had something to do.
    pub busy_share_max: f64,
    /// Share of the time that each worker had something to do. Idle turns of a spinning loop are not busy.
    pub busy_shares: Vec<f64>,
    /// Turns of a loop that took more than 1 ms, and waits that ended more than 1 ms late because another
    /// program had the CPU.
    pub stalls: u64,
    /// The time lost in stalls.
    pub stalled_s: f64,
    /// Receive stamps that were missing, shared or impossible.
    pub stamps: Stamps,
    /// Most memory that the process had.
    pub peak_rss_bytes: u64,
    /// The kernel interface that was used: `epoll` or `uring`; both, with a comma, where processes differed.
    pub backend: Option<String>,
    /// Why it is epoll although io_uring was wanted.
    pub backend_why: Option<String>,
    /// Whether the generator was the limit.
    pub limited: bool,
    /// The sentence of the verdict where `limited` is true.
    pub why: Option<String>,
}

impl GeneratorResult {
    pub(super) fn of(report: &Report<'_>) -> GeneratorResult {
        let generator = &report.measurement.generator;
        let turns = &report.measurement.counters.turns;
        let verdict = &report.summary.verdict;
        GeneratorResult {
            cpu_user_s: seconds(generator.cpu_user_ns),
            cpu_system_s: seconds(generator.cpu_system_ns),
            cpu_us_per_request: report.summary.cpu_us_per_request.map(rounded),
            busy_share_max: rounded(generator.busy_share_max()),
            busy_shares: generator.workers.iter().map(|worker| rounded(worker.busy_share())).collect(),
            stalls: turns.stalls,
            stalled_s: seconds(turns.stalled_ns),
            stamps: turns.stamps,
            peak_rss_bytes: generator.peak_rss_bytes,
            backend: listed(generator.backends.iter().map(|backend| backend.name())),
            backend_why: listed(generator.fallbacks.iter().map(String::as_str)),
            limited: verdict.is_generator(),
            why: verdict.is_generator().then(|| cause_words(&verdict.cause)),
        }
    }
}

/// Words as a list; `None` when there are none.
fn listed<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    Some(words.collect::<Vec<_>>().join(", ")).filter(|list| !list.is_empty())
}
