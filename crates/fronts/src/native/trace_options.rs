//! The options of a replay: its phases, and the due times of its requests.

use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, DealBy, Depth, Fills, Phase, Stop, TracePace, TraceReplay, TraceTtl, WithinSecond, Work,
};
use pummel_traffic::trace::Format;

use super::options::{LoadArgs, RunArgs};
use super::trace_args::{DealByName, FillsName, TraceTtlName, WithinSecondName};
use super::typed_rate::TypedRate;
use super::{Typed, mean_ns};
use crate::job::{FrontInputs, UsageError};
use crate::values::ValueError;

/// The default longest value: the largest that memcached accepts by default, with room for the item's head.
const VALUE_MAX_BYTES: u32 = 1_000_000;

/// Options that describe requests, which a trace describes already.
const NOT_BESIDE: &[&str] = &[
    "--workload",
    "--mix",
    "--mix-order",
    "--command",
    "--command-expect",
    "--popularity",
    "--multiget",
    "--read-modify-write",
    "--insert",
    "--scan-as",
    "--fresh",
    "--absent",
    "--hit-ratio",
    "--churn",
    "--multiset",
    "--vivify",
    "--recache",
    "--stale",
    "--meta-details",
    "--fill",
    "--noreply",
    "--verify",
    "--audit",
    "--load",
    "--load-command",
    "--load-per-record",
    "--dataset",
    "--dataset-order",
    "--script",
    "--records",
    "--key-size",
    "--key-prefix",
    "--value-size",
    "--ttl",
    "--ttl-jitter",
    "--allow-partial-load",
    "--warmup",
    "--warmup-until",
    "--until",
    "--conn-rate",
    "--calls-per-connection",
    "--stage",
    "--stage-connections",
    "--phases",
    "--burst",
    "--measure-connections",
];

/// When the requests of a replay are due.
const DUE_TIMES: &str = "its requests are due at their own times, or at the one rate of '--rate'";

/// The reason why an option has no effect on a replay, or the option that has the effect instead.
fn why_not_beside(flag: &str) -> &'static str {
    match flag {
        "--warmup" | "--warmup-until" => "'--trace-warmup' replays a part of it before the measurement",
        "--fill" => "'--fills own' stores each missed key by a set",
        "--until" => "a replay ends with its trace, or with '--time' or '--requests'",
        "--stage" | "--burst" | "--phases" => DUE_TIMES,
        "--conn-rate" | "--calls-per-connection" | "--measure-connections" | "--stage-connections" => {
            "each client of the trace stays on one connection"
        }
        _ => "the trace says what is asked",
    }
}

impl Typed<RunArgs> {
    /// Whether a trace is replayed.
    ///
    /// # Errors
    /// Returns the first option that a replay leaves without effect.
    pub(super) fn replays_trace(&self) -> Result<bool, UsageError> {
        if self.args.trace.trace.is_empty() {
            return Ok(false);
        }
        let idle = NOT_BESIDE.iter().find(|flag| self.has(flag)).copied();
        // A run in closed loop of a series has none, whatever its other runs have.
        let has_arrivals = self.has("--arrivals") && self.args.pace.arrivals.is_some();
        if has_arrivals && self.args.pace.rate.is_none() {
            return Err(UsageError::Missing(
                "'--arrivals' with '--trace' is accepted only with '--rate', which is missing".to_owned(),
            ));
        }
        if self.args.pace.rate.as_ref().is_some_and(|rate| !matches!(rate, TypedRate::Constant(_))) {
            let accepted = format!("expected one rate with '--trace', such as 20k: {DUE_TIMES}");
            return Err(self.unread("--rate <RATE>", &ValueError(accepted)));
        }
        self.check_within_second()?;
        let is_idle = self.has("--read-through") && self.fills() == Fills::Recorded;
        match idle.or_else(|| is_idle.then_some("--read-through")) {
            None => Ok(true),
            Some("--read-through") => Err(UsageError::Missing(
                "'--read-through' with '--trace' is accepted only with '--fills own', which is missing"
                    .to_owned(),
            )),
            Some(flag) => {
                let why = why_not_beside(flag);
                Err(UsageError::Missing(format!("'{flag}' is not accepted with '--trace': {why}")))
            }
        }
    }

    /// Refuses `--within-second` where the times of the trace do not decide when requests are due.
    fn check_within_second(&self) -> Result<(), UsageError> {
        if !self.has("--within-second") || matches!(self.trace_pace(), TracePace::Trace { .. }) {
            return Ok(());
        }
        let why = "'--within-second' is accepted only where requests are due at the times of the trace (--pace trace), and not \
                   at a rate or as fast as they are answered";
        Err(UsageError::Missing(why.to_owned()))
    }

    /// Whether the stores of the trace, or the misses of the replay, store what reads miss.
    fn fills(&self) -> Fills {
        let args = &self.args.trace;
        let has_no_operations = args
            .trace_format
            .as_ref()
            .is_some_and(|name| Format::named(name).is_ok_and(|format| !format.has_operations()));
        match args.fills {
            Some(FillsName::Recorded) => Fills::Recorded,
            Some(FillsName::Own) => Fills::Own,
            None if has_no_operations => Fills::Own,
            None => Fills::Recorded,
        }
    }

    /// The pace of the replay.
    pub(super) fn trace_pace(&self) -> TracePace {
        match (self.args.trace.pace, self.args.pace.rate.as_ref()) {
            (Some(pace), _) => pace,
            (None, Some(_)) => TracePace::Rate,
            (None, None) => TracePace::Trace { speed: 1.0 },
        }
    }

    /// The arrivals of a replay's requests, and the most requests that each client has outstanding.
    pub(super) fn trace_arrivals(&self) -> (Option<Arrivals>, Depth) {
        let depth = self.args.pace.depth();
        match self.trace_pace() {
            TracePace::Trace { .. } if !self.has("--depth") && !self.has("--batch") => {
                (Some(Arrivals::Trace), Depth::Unlimited)
            }
            TracePace::Trace { .. } => (Some(Arrivals::Trace), depth),
            TracePace::Fast | TracePace::Rate => (None, depth),
        }
    }

    /// The phases of a replay: the part before the measurement, where there is one, and the measurement.
    ///
    /// # Errors
    /// Returns [`UsageError`] for lengths of missed values that cannot be read, or that no value has.
    pub(super) fn trace_phases(
        &self,
        fill_delay: Option<Dist>,
        inputs: &FrontInputs,
    ) -> Result<Vec<Phase>, UsageError> {
        let args = &self.args.trace;
        let missing_size = args.missing_size.as_ref();
        let missing_size =
            missing_size.map(|size| self.dist("--missing-size <DIST>", size, inputs)).transpose()?;
        if missing_size.is_some() && self.fills() == Fills::Recorded {
            return Err(UsageError::Missing(
                "'--missing-size' is accepted only with '--fills own', which is missing".to_owned(),
            ));
        }
        let replay = TraceReplay {
            paths: args.trace.clone(),
            format: args.trace_format.clone(),
            pace: self.trace_pace(),
            within_second: match args.within_second {
                None | Some(WithinSecondName::Spread) => WithinSecond::Spread,
                Some(WithinSecondName::Poisson) => WithinSecond::Poisson,
                Some(WithinSecondName::Burst) => WithinSecond::Burst,
            },
            by: args.trace_by.map(|by| match by {
                DealByName::Client => DealBy::Client,
                DealByName::Key => DealBy::Key,
                DealByName::Row => DealBy::Row,
            }),
            map: args.trace_map.clone(),
            ttl: match args.trace_ttl {
                None | Some(TraceTtlName::Scale) => TraceTtl::Scale,
                Some(TraceTtlName::Keep) => TraceTtl::Keep,
                Some(TraceTtlName::None) => TraceTtl::None,
            },
            passes: args.passes.map_or(1, |passes| u32::try_from(passes).unwrap_or(u32::MAX)),
            fresh_passes: args.loop_fresh,
            from_ns: args.trace_from.unwrap_or(0),
            to_ns: args.trace_to,
            sample: args.trace_sample.unwrap_or(1.0),
            amplify: args.trace_amplify.unwrap_or(1),
            fills: self.fills(),
            fill_delay_ns: fill_delay.as_ref().map_or(0, mean_ns),
            fill_delay_s: fill_delay.filter(|delay| !matches!(delay, Dist::Fixed(_))),
            missing_size,
            stores_only: false,
            value_max_bytes: args.max_value.unwrap_or(VALUE_MAX_BYTES),
        };
        let phase = |name: &str, stop, recorded| Phase {
            name: name.to_owned(),
            work: Work::Trace(Box::new(replay.clone())),
            stop,
            recorded,
        };
        let measured = Stop { time_ns: self.args.pace.time, requests: self.args.pace.requests };
        // It is told in rows, and each makes several requests.
        let of_rows = |rows: u64| rows.saturating_mul(replay.amplify.into());
        let warm_up = args.trace_warmup.map(|stop| {
            let stop = Stop { time_ns: stop.time_ns, requests: stop.requests.map(of_rows) };
            phase("warmup", stop, false)
        });
        Ok(warm_up.into_iter().chain([phase("measure", measured, true)]).collect())
    }
}

impl Typed<LoadArgs> {
    /// The phase that stores the items of the files of `--fill` on the servers.
    pub(super) fn fill_phase(&self) -> Phase {
        let replay = TraceReplay {
            within_second: WithinSecond::Burst,
            by: Some(DealBy::Key),
            ttl: TraceTtl::Keep,
            stores_only: true,
            ..TraceReplay::of(self.args.pace.fill.clone(), TracePace::Fast, VALUE_MAX_BYTES)
        };
        Phase {
            name: "load".to_owned(),
            work: Work::Trace(Box::new(replay)),
            stop: Stop::default(),
            recorded: true,
        }
    }
}
