//! The part of the report that is about agents: how well they were in step, and what each of them saw.

use pummel_logic::time::Nanos;
use pummel_measure::agents::CLOCK_OFFSET_LARGE_NS;
use pummel_measure::recorder::Span;
use pummel_measure::summary::time_text;
use pummel_measure::words::percent;

use crate::document::{AgentsResult, DeviationResult, MemberResult};
use crate::numbers::{grouped, number};

/// With more agents than this, those that were not lost are not shown one by one.
const SHOWN_MAX: usize = 32;

/// What is said of all of them.
pub fn words(agents: &AgentsResult) -> String {
    let members = &agents.members;
    let mut text = format!("{} processes", members.len());
    if let Some(spread) = agents.start_spread_us {
        text += &format!(", started within {}", micros_text(spread));
        let error = members.iter().map(|member| member.clock_error_us).fold(0.0, f64::max);
        if error > 0.0 {
            text += &format!(" (their clocks are known to {})", micros_text(error));
        }
    }
    let large_us = CLOCK_OFFSET_LARGE_NS as f64 / 1e3;
    let is_far = |member: &&MemberResult| member.clock_offset_us.abs() - member.clock_error_us > large_us;
    for member in members.iter().filter(is_far) {
        let side = if member.clock_offset_us < 0.0 { "behind" } else { "ahead" };
        let offset = micros_text(member.clock_offset_us.abs());
        text += &format!("; the clock of {} is {offset} {side}", member.name);
    }
    for (member, lost) in members.iter().filter_map(|member| Some((member, member.lost.as_ref()?))) {
        let when = match lost.at_s {
            Some(at) => format!("{at:.1} s into the measurement"),
            None => "before the measurement".to_owned(),
        };
        let how = if lost.left { "LEFT" } else { "WAS LOST" };
        text += &format!("; {} {how} {when}: {}", member.name, lost.why);
    }
    for (member, deviation) in members.iter().filter_map(|member| Some((member, member.deviation.as_ref()?)))
    {
        text += &format!("; {}", deviating(&member.name, deviation));
    }
    let doubtful: Vec<&str> =
        members.iter().filter(|member| !member.trust.ok).map(|member| member.name.as_str()).collect();
    if !doubtful.is_empty() {
        text += &format!("; part of the times was added by pummel itself at {}", doubtful.join(", "));
    }
    text
}

/// What a process saw that the others did not: both times, and from a factor of 2 on the factor in place of percents, of which
/// 100 % lower would be nothing at all.
fn deviating(name: &str, deviation: &DeviationResult) -> String {
    let DeviationResult { quantile, own_us, others_us } = deviation;
    let (own, others) = (micros_text(*own_us), micros_text(*others_us));
    let (low, high) = (own_us.min(*others_us), own_us.max(*others_us));
    let times = if low > 0.0 { high / low } else { f64::INFINITY };
    let much = match own_us < others_us {
        _ if !times.is_finite() => String::new(),
        true if times < 2.0 => format!(", {} lower", percent(1.0 - 1.0 / times)),
        false if times < 2.0 => format!(", {} higher", percent(times - 1.0)),
        true => format!(", which is {} times as long", factor(times)),
        false => format!(", {} times as long", factor(times)),
    };
    match own_us < others_us && times >= 2.0 {
        true => format!("{name} saw {quantile} of {own}, the rest of {others}{much}"),
        false => format!("{name} saw {quantile} of {own}{much} than the {others} of the rest")
            .replace("as long than the", "as long as the"),
    }
}

/// A factor with two digits or more.
fn factor(times: f64) -> String {
    if times < 10.0 { format!("{times:.1}") } else { grouped(times.round() as u64) }
}

fn micros_text(us: f64) -> String {
    time_text((us * 1e3).round() as Nanos)
}

/// One row for each, with its response times.
pub fn table(agents: &AgentsResult, measured_s: f64) -> Vec<Vec<String>> {
    let names = ["", "connections", "completed", "per second", "errors", "p50 us", "p99 us", "max us"];
    let mut rows = vec![names.map(str::to_owned).to_vec()];
    let all = agents.members.len() <= SHOWN_MAX;
    rows.extend(
        agents
            .members
            .iter()
            .filter(|member| all || member.lost.is_some())
            .map(|member| row(member, measured_s)),
    );
    rows
}

fn row(member: &MemberResult, measured_s: f64) -> Vec<String> {
    let rate = if measured_s > 0.0 { member.completed as f64 / measured_s } else { 0.0 };
    let response = member.times.of_span(Span::Response);
    let quantile = |name: &str| response.at(name).text("-", number);
    vec![
        member.name.clone(),
        grouped(member.clients),
        grouped(member.completed),
        number(rate),
        grouped(member.errors),
        quantile("p50"),
        quantile("p99"),
        quantile("max"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{LossResult, MemberTrust};

    fn member(name: &str, lost: Option<LossResult>) -> MemberResult {
        MemberResult {
            name: name.to_owned(),
            clients: 25,
            threads: 1,
            clock_offset_us: -2_500.0,
            clock_error_us: 40.0,
            late_us: Some(0.003),
            lost,
            completed: 1_200,
            trust: MemberTrust { ok: true, ..MemberTrust::default() },
            ..MemberResult::default()
        }
    }

    #[test]
    fn a_lost_agent_and_a_clock_that_is_wrong_are_named() {
        let lost = LossResult { at_s: Some(3.2), why: "it said nothing".to_owned(), ..LossResult::default() };
        let left =
            LossResult { why: "its process was told to end".to_owned(), left: true, ..LossResult::default() };
        let agents = AgentsResult {
            start_spread_us: Some(300.0),
            lost: 2,
            members: vec![member("a:1", None), member("b:1", Some(lost)), member("c:1", Some(left))],
        };
        assert_eq!(
            words(&agents),
            "3 processes, started within 300 us (their clocks are known to 40.0 us); the clock of a:1 is 2.50 ms behind; \
             the clock of b:1 is 2.50 ms behind; the clock of c:1 is 2.50 ms behind; b:1 WAS LOST 3.2 s into the \
             measurement: it said nothing; c:1 LEFT before the measurement: its process was told to end"
        );
        let rows = table(&agents, 2.0);
        assert_eq!(rows[1], ["a:1", "25", "1,200", "600", "0", "-", "-", "-"]);
    }

    #[test]
    fn of_very_many_only_the_lost_are_shown() {
        let lost = LossResult { why: "x".to_owned(), ..LossResult::default() };
        let mut members: Vec<MemberResult> = (0..100).map(|n| member(&n.to_string(), None)).collect();
        members[7].lost = Some(lost);
        let rows = table(&AgentsResult { members, ..AgentsResult::default() }, 1.0);
        assert_eq!((rows.len(), rows[1][0].as_str()), (2, "7"));
    }
}
