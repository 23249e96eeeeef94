//! The processes of a distributed run.

use pummel_logic::time::{Nanos, seconds};
use pummel_measure::agents::{Agents, LossReason, Lost, Member};
use pummel_measure::trust::{LagShare, Trust};
use serde::{Deserialize, Serialize};

use super::figures::{FiveTimes, micros, rounded};
use super::known::known;
use super::trust::LagShareResult;
use crate::words::reason::loss;

/// The processes that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentsResult {
    /// Time from the first process that began the measured phase to the last; null where fewer than two are known to have.
    pub start_spread_us: Option<f64>,
    /// Number of agents that were lost or left before the end.
    pub lost: usize,
    /// The processes; the controller is the last where it measures too.
    pub members: Vec<MemberResult>,
}

/// One process of a distributed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemberResult {
    /// Address of the agent.
    pub name: String,
    /// Clients of the process.
    pub clients: u64,
    /// Threads of the process.
    pub threads: u32,
    /// Difference by which the wall clock of the process is ahead of the controller's.
    pub clock_offset_us: f64,
    /// Greatest error of that difference.
    pub clock_error_us: f64,
    /// When the process began the measured phase, after the moment that was agreed on.
    pub late_us: Option<f64>,
    /// The loss of the process; null where it stayed to the end.
    pub lost: Option<LossResult>,
    /// Requests that were due.
    pub requests: u64,
    /// Requests that were answered without an error.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were sent, and not answered at the end.
    pub unfinished: u64,
    /// Requests that were due, and never sent.
    pub unsent: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// How far the times of the process may be believed.
    pub trust: MemberTrust,
    /// How the response times differ from those of all others together; absent where they differ by chance only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<DeviationResult>,
    /// The times of the requests of the process.
    #[serde(flatten)]
    pub times: FiveTimes,
}

/// Response times of a process that are not those of the others, beyond chance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DeviationResult {
    /// The name of the quantile: `p50` or `p99`.
    pub quantile: String,
    /// The quantile of the process, which differs from that of the others by 99 % intervals.
    pub own_us: f64,
    /// The quantile of all others together.
    pub others_us: f64,
}

/// An agent that was not there to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LossResult {
    /// When its last message came, from the beginning of the measured phase; null before that.
    pub at_s: Option<f64>,
    /// The reason of the loss.
    pub why: String,
    /// Facts of the reason; absent where this version does not know their kind.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<LossReason>,
    /// Whether the process itself said that it ends.
    pub left: bool,
}

/// How far the times of one process may be believed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MemberTrust {
    /// Whether they may be believed.
    pub ok: bool,
    /// The part of the response that is the lag of the process.
    pub lag_share: LagShareResult,
}

impl AgentsResult {
    pub(super) fn of(agents: &Agents, measured_s: f64) -> AgentsResult {
        let out = |ns: Nanos| micros(ns as f64);
        let member = |member: &Member| MemberResult {
            name: member.name.clone(),
            clients: member.clients,
            threads: member.threads,
            clock_offset_us: micros(member.clock_offset_ns as f64),
            clock_error_us: out(member.clock_error_ns),
            late_us: member.late_ns.map(out),
            lost: member.lost.as_ref().map(LossResult::of),
            requests: member.counts.requests(),
            completed: member.counts.completed,
            errors: member.counts.failed(),
            unfinished: member.counts.unfinished,
            unsent: member.counts.unsent,
            rate: if measured_s > 0.0 { rounded(member.counts.completed as f64 / measured_s) } else { 0.0 },
            trust: MemberTrust::of(member),
            deviation: member.deviation.as_ref().map(|deviation| DeviationResult {
                quantile: deviation.quantile.clone(),
                own_us: out(deviation.own_ns),
                others_us: out(deviation.others_ns),
            }),
            times: FiveTimes::of(&member.figures, None),
        };
        AgentsResult {
            start_spread_us: agents.start_spread_ns.map(out),
            lost: agents.members.iter().filter(|member| member.lost.is_some()).count(),
            members: agents.members.iter().map(member).collect(),
        }
    }
}

impl MemberTrust {
    fn of(member: &Member) -> MemberTrust {
        let lag_share = LagShareResult::of(&LagShare::of(&member.figures));
        MemberTrust { ok: Trust::is_ok(&member.figures), lag_share }
    }
}

impl LossResult {
    fn of(lost: &Lost) -> LossResult {
        let Lost { at_ns, why, left } = lost;
        LossResult { at_s: at_ns.map(seconds), why: loss(why), cause: Some(why.clone()), left: *left }
    }
}
