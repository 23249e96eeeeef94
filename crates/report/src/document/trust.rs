//! How far the times of a run can be believed, as facts: the parts of figures that are the generator's lag, and its causes.

use pummel_logic::plan::Plan;
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::limit::{CpuSharers, CpuTaker, LagCause, Stalls};
use pummel_measure::summary::Summary;
use pummel_measure::trust::{CauseOfLag, LagPart, LagShare, Trust, TrustKind, UnreadReplies, WaitBehind};
use serde::{Deserialize, Serialize};

use super::figures::{micros, rounded};
use super::named::Named;

/// How far the times of a run may be believed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TrustResult {
    /// Whether they may be believed.
    pub ok: bool,
    /// Figures of the response that are reliable.
    pub kind: ReliableFigures,
    /// The part of the response that is the generator's lag.
    pub lag_share: LagShareResult,
    /// Figures whose lag makes the times doubtful, with that lag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<LagPartResult>,
    /// Names of the figures of the response (`min`, `mean`, the quantiles and `max`) that are lag for half or
    /// more. Those of the minimum, beyond p99 and of the maximum leave `ok` as it is.
    pub mostly_lag: Vec<String>,
    /// Names of those figures for each operation that has one.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub mostly_lag_of: Named<Vec<String>>,
    /// Wait of an open loop that lag made; absent where it made none that matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_behind_late: Option<TimeAt>,
    /// Causes of the lag in doubtful figures and in those that are mostly lag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseResult>,
    /// Time for which replies lay unread, which is in none of the times; absent where it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<TimeAt>,
    /// Whether the service times contain the time until a reply was read, for want of receive stamps.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reading_is_service: bool,
    /// Mean lag of the requests of a closed loop whose rate the generator limited; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowed_by_us: Option<f64>,
    /// The answer in words.
    pub says: String,
}

/// Figures of the response that are reliable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReliableFigures {
    /// All of them.
    All,
    /// Those up to the 99th percentile; half or more of p99.9 is lag.
    UpToP99,
    /// All, although lag is more than a small part: in a closed loop at a full server a request that is sent earlier only waits
    /// instead.
    FullClosedLoop,
    /// The median, and not the tail or the mean.
    P50,
    /// None of them.
    None,
    /// None is known: too few requests were answered.
    NoReplies,
    /// None is known: no response was measured.
    NothingMeasured,
    /// What the text says: a sum of results, a result of another version.
    #[default]
    #[serde(other)]
    Other,
}

/// The part of the response that is lag, from 0 to 1, at its quantiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LagShareResult {
    /// In the mean.
    pub mean: Option<f64>,
    /// At the quantile of 50 %.
    pub p50: Option<f64>,
    /// At the quantile of 99 %.
    pub p99: Option<f64>,
    /// At the quantile of 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// Whether lag and response are those of the same requests; not so for single agents, whose quantiles are
    /// divided.
    pub same_requests: bool,
}

/// The lag in one figure of the response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LagPartResult {
    /// Name of the figure.
    pub figure: String,
    /// Part of the figure that is lag, from 0 to 1.
    pub share: f64,
    /// Lag in the figure.
    pub lag_us: f64,
    /// The figure.
    pub response_us: f64,
}

/// A time at a quantile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimeAt {
    /// Name of the quantile.
    pub figure: String,
    /// The time.
    pub us: f64,
}

/// The cause of the lag in some figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CauseResult {
    /// Names of the figures.
    pub figures: Vec<String>,
    /// Reason why requests near them were late.
    pub cause: LagCauseResult,
}

/// Reason why the generator was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LagCauseResult {
    /// Another user had the CPU of a client thread.
    CpuTaken {
        /// User that had the CPU.
        taker: Taker,
        /// Time for which it had the CPU.
        taken_s: f64,
        /// Stand-stills of the client threads meanwhile.
        #[serde(default)]
        stalls: StallsResult,
        /// Machine of the client thread.
        #[serde(default)]
        machine: SharedMachineResult,
    },
    /// A client thread had no time left.
    ThreadBusy {
        /// Share of its time that the thread was busy.
        share: f64,
    },
    /// Client threads stood still for no known reason.
    StoodStill {
        /// Stand-stills of all client threads.
        stalls: StallsResult,
    },
    /// Client threads slept until a reply or the next request was there.
    Slept {
        /// Median delay of a request behind the moment for which its thread was to wake up.
        late_us: f64,
        /// Machine of the client threads.
        #[serde(default)]
        machine: SharedMachineResult,
    },
    /// The cause is not known, or is one that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// User of a CPU that a client thread could have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Taker {
    /// The hypervisor, which gave the CPU to another machine.
    Hypervisor,
    /// The limit of CPU time of the control group.
    ContainerLimit,
    /// Threads that are not of this run.
    OtherProcesses,
    /// Other client threads of the process.
    OwnThreads,
    /// Other agents of the run.
    Agents,
    /// The servers of the run.
    Servers,
    /// A user that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// Stand-stills of client threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StallsResult {
    /// Number of stand-stills.
    pub count: u64,
    /// Length of all of them together.
    pub total_s: f64,
}

/// A machine of the generator, and who else works there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharedMachineResult {
    /// CPUs that the generator may use; 0 where that is not known.
    pub cpus: u32,
    /// Agents of the run on the machine.
    pub agents: usize,
    /// Servers of the run on the machine.
    pub servers: usize,
}

fn us(ns: Nanos) -> f64 {
    micros(ns as f64)
}

impl TrustResult {
    /// The facts of a run, without their words.
    pub fn of(plan: &Plan, summary: &Summary) -> TrustResult {
        let trust: &Trust = &summary.trust;
        let names = |names: &[&'static str]| names.iter().map(|name| (*name).to_owned()).collect();
        TrustResult {
            ok: trust.ok,
            kind: ReliableFigures::of(trust.kind),
            lag_share: LagShareResult::of(&trust.lag_share),
            doubtful: trust.doubtful.iter().map(LagPartResult::of).collect(),
            mostly_lag: names(&trust.mostly_lag),
            mostly_lag_of: trust
                .mostly_lag_of
                .iter()
                .map(|(verb, figures)| (plan.name_of(*verb).to_owned(), names(figures)))
                .collect(),
            wait_behind_late: trust
                .behind
                .map(|WaitBehind { figure, wait_ns }| TimeAt { figure: figure.to_owned(), us: us(wait_ns) }),
            causes: trust.causes.iter().map(CauseResult::of).collect(),
            unread: trust.unread.map(|UnreadReplies { figure, reaction_ns }| TimeAt {
                figure: figure.to_owned(),
                us: us(reaction_ns),
            }),
            reading_is_service: !trust.has_stamps,
            slowed_by_us: trust.slowed_by_ns.map(us),
            says: String::new(),
        }
    }
}

impl ReliableFigures {
    pub(crate) fn of(kind: TrustKind) -> ReliableFigures {
        match kind {
            TrustKind::NothingMeasured => ReliableFigures::NothingMeasured,
            TrustKind::NoReplies => ReliableFigures::NoReplies,
            TrustKind::Reliable => ReliableFigures::All,
            TrustKind::UpToP99 => ReliableFigures::UpToP99,
            TrustKind::FullClosedLoop => ReliableFigures::FullClosedLoop,
            TrustKind::P50 => ReliableFigures::P50,
            TrustKind::NotReliable => ReliableFigures::None,
        }
    }
}

impl LagShareResult {
    pub(super) fn of(shares: &LagShare) -> LagShareResult {
        let [mean, p50, p99, p99_9] =
            [shares.mean, shares.p50, shares.p99, shares.p99_9].map(|share| share.map(rounded));
        LagShareResult { mean, p50, p99, p99_9, same_requests: shares.same_requests }
    }
}

impl LagPartResult {
    fn of(part: &LagPart) -> LagPartResult {
        LagPartResult {
            figure: part.figure.to_owned(),
            share: rounded(part.share),
            lag_us: us(part.lag_ns),
            response_us: us(part.response_ns),
        }
    }
}

impl CauseResult {
    fn of(cause: &CauseOfLag) -> CauseResult {
        CauseResult {
            figures: cause.figures.iter().map(|name| (*name).to_owned()).collect(),
            cause: LagCauseResult::of(&cause.cause),
        }
    }
}

impl LagCauseResult {
    fn of(cause: &LagCause) -> LagCauseResult {
        match *cause {
            LagCause::CpuTaken { taker, taken_ns, stalls, machine } => LagCauseResult::CpuTaken {
                taker: Taker::of(taker),
                taken_s: seconds(taken_ns),
                stalls: StallsResult::of(stalls),
                machine: SharedMachineResult::of(machine),
            },
            LagCause::ThreadBusy { share } => LagCauseResult::ThreadBusy { share: rounded(share) },
            LagCause::StoodStill { stalls } => {
                LagCauseResult::StoodStill { stalls: StallsResult::of(stalls) }
            }
            LagCause::Slept { late_ns, machine } => {
                LagCauseResult::Slept { late_us: us(late_ns), machine: SharedMachineResult::of(machine) }
            }
            LagCause::Unknown => LagCauseResult::Unknown,
        }
    }
}

impl Taker {
    fn of(taker: CpuTaker) -> Taker {
        match taker {
            CpuTaker::Hypervisor => Taker::Hypervisor,
            CpuTaker::ContainerLimit => Taker::ContainerLimit,
            CpuTaker::OtherProcesses => Taker::OtherProcesses,
            CpuTaker::OwnThreads => Taker::OwnThreads,
            CpuTaker::Agents => Taker::Agents,
            CpuTaker::Servers => Taker::Servers,
        }
    }
}

impl StallsResult {
    fn of(stalls: Stalls) -> StallsResult {
        StallsResult { count: stalls.count, total_s: seconds(stalls.total_ns) }
    }
}

impl SharedMachineResult {
    fn of(machine: CpuSharers) -> SharedMachineResult {
        SharedMachineResult { cpus: machine.cpus, agents: machine.agents, servers: machine.servers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written() {
        let cause = LagCauseResult::CpuTaken {
            taker: Taker::OtherProcesses,
            taken_s: 0.354,
            stalls: StallsResult { count: 3, total_s: 0.01 },
            machine: SharedMachineResult { cpus: 2, agents: 0, servers: 1 },
        };
        let trust = TrustResult {
            kind: ReliableFigures::P50,
            mostly_lag_of: [("get", vec!["p99.9".to_owned()])].into_iter().collect(),
            causes: vec![CauseResult { figures: vec!["p99".to_owned()], cause }],
            says: "p50 is reliable".to_owned(),
            ..TrustResult::default()
        };
        let text = serde_json::to_string(&trust).expect("data");
        assert!(text.contains(r#""kind":"p50""#) && text.contains(r#""kind":"cpu_taken""#), "{text}");
        assert_eq!(serde_json::from_str::<TrustResult>(&text).expect("its own text"), trust);
    }

    #[test]
    fn a_kind_of_another_version_is_read_as_its_text() {
        let text = r#"{"ok": true, "kind": "twice", "says": "fine", "causes": [
            {"figures": ["p99"], "cause": {"kind": "moon", "phase": 3}},
            {"figures": ["p50"], "cause": {"kind": "cpu_taken", "taker": "moon", "taken_s": 2.0}}]}"#;
        let trust: TrustResult = serde_json::from_str(text).expect("a trust of a later version");
        assert_eq!((trust.kind, trust.says.as_str()), (ReliableFigures::Other, "fine"));
        assert_eq!(trust.causes[0].cause, LagCauseResult::Unknown);
        let is_other =
            |cause: &LagCauseResult| matches!(cause, LagCauseResult::CpuTaken { taker: Taker::Other, .. });
        assert!(is_other(&trust.causes[1].cause), "{trust:?}");
    }
}
