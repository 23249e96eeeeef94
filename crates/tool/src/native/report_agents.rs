//! The part of the report that is about agents: how well they were in step, and what each of them saw.

use pummel_logic::measure::agents::{Agents, Member};
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{QUANTILES, Quantile, time_text};
use pummel_logic::measure::trust::Trust;
use pummel_logic::time::{Nanos, seconds};

use crate::report::numbers::{grouped, number};

/// With more agents than this, those that were not lost are not shown one by one.
const SHOWN_MAX: usize = 32;

/// What is said of all of them.
pub fn words(agents: &Agents) -> String {
    let members = &agents.members;
    let mut text = format!("{} processes", members.len());
    if let Some(spread) = agents.start_spread_ns {
        text += &format!(", started within {}", time_text(spread));
        let error = members.iter().map(|member| member.clock_error_ns).max().unwrap_or(0);
        if error > 0 {
            text += &format!(" (their clocks are known to {})", time_text(error));
        }
    }
    for member in agents.with_large_offsets() {
        let side = if member.clock_offset_ns < 0 { "behind" } else { "ahead" };
        let offset = time_text(member.clock_offset_ns.unsigned_abs());
        text += &format!("; the clock of {} is {offset} {side}", member.name);
    }
    for (member, lost) in members.iter().filter_map(|member| Some((member, member.lost.as_ref()?))) {
        let when = match lost.at_ns {
            Some(at) => format!("{:.1} s into the measurement", seconds(at)),
            None => "before the measurement".to_owned(),
        };
        text += &format!("; {} WAS LOST {when}: {}", member.name, lost.why);
    }
    let doubtful: Vec<&str> = members
        .iter()
        .filter(|member| !Trust::is_ok(&member.figures))
        .map(|member| member.name.as_str())
        .collect();
    if !doubtful.is_empty() {
        text += &format!("; partly their own are the times of {}", doubtful.join(", "));
    }
    text
}

/// One row for each, with its response times.
pub fn table(agents: &Agents, measured_s: f64) -> Vec<Vec<String>> {
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

fn row(member: &Member, measured_s: f64) -> Vec<String> {
    let counts = &member.counts;
    let rate = if measured_s > 0.0 { counts.completed as f64 / measured_s } else { 0.0 };
    let response = &member.figures[Span::Response as usize];
    let quantile = |name: &str| {
        let place = QUANTILES.iter().position(|(known, _)| *known == name);
        cell(place.map_or(Quantile::Absent, |place| response.quantiles[place]))
    };
    vec![
        member.name.clone(),
        grouped(member.clients),
        grouped(counts.completed),
        number(rate),
        grouped(counts.failed()),
        quantile("p50"),
        quantile("p99"),
        cell(response.max),
    ]
}

fn cell(quantile: Quantile) -> String {
    let micros = |ns: Nanos| number(ns as f64 / 1e3);
    match quantile {
        Quantile::Known(ns) => micros(ns),
        Quantile::Above(ns) => format!("> {}", micros(ns)),
        Quantile::Absent => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::measure::agents::Lost;
    use pummel_logic::measure::recorder::{Counts, OpRecord};
    use pummel_logic::measure::summary::Figures;

    fn member(name: &str, lost: Option<Lost>) -> Member {
        Member {
            name: name.to_owned(),
            clients: 25,
            threads: 1,
            clock_offset_ns: -2_500_000,
            clock_error_ns: 40_000,
            late_ns: Some(3),
            lost,
            counts: Counts { completed: 1_200, ..Counts::default() },
            figures: Figures::of_op(&OpRecord::default(), 0),
        }
    }

    #[test]
    fn a_lost_agent_and_a_clock_that_is_wrong_are_named() {
        let lost = Lost { at_ns: Some(3_200_000_000), why: "it said nothing".to_owned() };
        let agents = Agents {
            start_spread_ns: Some(300_000),
            members: vec![member("a:1", None), member("b:1", Some(lost))],
        };
        assert_eq!(
            words(&agents),
            "2 processes, started within 300 us (their clocks are known to 40.0 us); the clock of a:1 is 2.50 ms behind; \
             the clock of b:1 is 2.50 ms behind; b:1 WAS LOST 3.2 s into the measurement: it said nothing"
        );
        let rows = table(&agents, 2.0);
        assert_eq!(rows[1], ["a:1", "25", "1,200", "600", "0", "-", "-", "-"]);
    }

    #[test]
    fn of_very_many_only_the_lost_are_shown() {
        let lost = Lost { at_ns: None, why: "x".to_owned() };
        let mut members: Vec<Member> = (0..100).map(|n| member(&n.to_string(), None)).collect();
        members[7].lost = Some(lost);
        let rows = table(&Agents { start_spread_ns: None, members }, 1.0);
        assert_eq!((rows.len(), rows[1][0].as_str()), (2, "7"));
    }
}
