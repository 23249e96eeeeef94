//! The processes of a distributed run.

use pummel_logic::measure::agents::{Agents, Member};
use pummel_logic::measure::trust::{LagShare, Trust};
use pummel_logic::time::{Nanos, seconds};
use serde::Serialize;

use super::figures::{TimesOut, micros, rounded};
use super::judgement::LagShareOut;

/// The processes that took part.
#[derive(Serialize)]
pub(super) struct AgentsOut<'a> {
    start_spread_us: Option<f64>,
    lost: usize,
    members: Vec<MemberOut<'a>>,
}

#[derive(Serialize)]
pub(super) struct MemberOut<'a> {
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
    trust: MemberTrustOut,
    #[serde(flatten)]
    times: TimesOut<'a>,
}

#[derive(Serialize)]
pub(super) struct LostOut<'a> {
    at_s: Option<f64>,
    why: &'a str,
}

impl<'a> AgentsOut<'a> {
    pub(super) fn of(agents: &'a Agents, measured_s: f64) -> AgentsOut<'a> {
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
            trust: MemberTrustOut::of(member),
            times: TimesOut::of(&member.figures, None),
        };
        AgentsOut {
            start_spread_us: agents.start_spread_ns.map(out),
            lost: agents.members.iter().filter(|member| member.lost.is_some()).count(),
            members: agents.members.iter().map(member).collect(),
        }
    }
}

/// How far the times of one process may be believed.
#[derive(Serialize)]
struct MemberTrustOut {
    ok: bool,
    lag_share: LagShareOut,
}

impl MemberTrustOut {
    fn of(member: &Member) -> MemberTrustOut {
        let lag_share = LagShareOut::of(&LagShare::of(&member.figures));
        MemberTrustOut { ok: Trust::is_ok(&member.figures), lag_share }
    }
}
