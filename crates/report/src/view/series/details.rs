//! The lines that a series has for who wants everything: how the answer was found, one queue, the law of scaling, each limit, the seed.

use pummel_logic::plan::labels_text;
use pummel_measure::scalability::Estimate;
use pummel_measure::words::{counted, grouped, percent, rate_text};

use super::judgement;
use super::rows::level_of;
use crate::document::CurveDocument;
use crate::scaling::{jump, levels};
use crate::view::cells::{self, time};
use crate::view::{Line, Text};

/// CPU time and service time that differ by less than this share are near each other.
const NEAR: f64 = 0.2;

/// The lines behind the limit.
pub(super) fn lines(curve: &CurveDocument) -> Vec<Line> {
    let search = curve.search.as_ref();
    let line_runs = search.map_or(0, |search| search.line_runs);
    let through = (line_runs > 0).then(|| {
        let wide = match search.and_then(|search| search.precise) {
            None => "",
            Some(true) => ", as narrow as --precision asks for",
            Some(false) => ", wider than --precision asks for",
        };
        format!(
            "from a line through {} in random order around the limit{wide}",
            counted(line_runs as u64, "run")
        )
    });
    let why = search.and_then(|search| search.reason.clone());
    let labels = labels_text(&curve.labels);
    let seed = curve.plan.as_ref().map(|plan| format!("{}; those of the runs follow from it", plan.seed));
    let mut lines: Vec<Line> =
        [("Answer", through), ("Why", why), ("Queue", queue(curve)), ("Scaling", scaling(curve))]
            .into_iter()
            .filter_map(|(label, words)| Some(Line::new(label, Text::plain(words?))))
            .collect();
    lines.extend(judgement::limits(curve));
    let last = [("Seed", seed), ("Labels", Some(labels).filter(|labels| !labels.is_empty()))];
    lines.extend(last.into_iter().filter_map(|(label, words)| Some(Line::new(label, Text::plain(words?)))));
    lines
}

/// The line of one queue; `None` where none fits.
fn queue(curve: &CurveDocument) -> Option<String> {
    let fit = curve.fit?;
    let cpu_us = curve.runs.iter().rev().find_map(|run| run.server_cpu_us_per_request);
    let cpu = cpu_us.map_or_else(String::new, |cpu_us| {
        let cpu = time(cpu_us);
        match cpu_us / fit.service_us {
            ratio if ratio > 1.0 + NEAR => {
                format!(". The server's CPU takes {cpu} for each: its threads work side by side")
            }
            ratio if ratio > 1.0 - NEAR => {
                format!(". The server's CPU takes {cpu} for each: that queue is its CPU")
            }
            _ => format!(". The server's CPU takes {cpu} of that"),
        }
    });
    Some(format!(
        "one queue fits the mean response times within {}: {} for a request, at most {}{cpu}",
        percent(fit.error),
        time(fit.service_us),
        rate_text(1e6 / fit.service_us)
    ))
}

/// The law of scaling through the levels of a scan; `None` for other series, and where a note says why none fits.
fn scaling(curve: &CurveDocument) -> Option<String> {
    level_of(curve)?;
    let Some(law) = curve.scalability else {
        if jump(&levels(curve)).is_some() {
            return None;
        }
        let left_out = curve.runs.iter().filter(|run| run.level.is_some() && run.is_of_generator()).count();
        let left_out = match left_out {
            0 => String::new(),
            some => format!("; {} left out, where pummel was the limit", counted(some as u64, "level")),
        };
        return Some(format!("not known: it takes six levels, the last 16 times the first{left_out}"));
    };
    let share = |of: Estimate| {
        let [value, low, high] = [of.value, of.low, of.high].map(|share| share * 100.0);
        format!("{value:.2} % ({low:.2}..{high:.2})")
    };
    let peak = match law.peak {
        Some(peak) => format!("the greatest rate is expected at {}", grouped(peak.round() as u64)),
        None => "no peak is in sight".to_owned(),
    };
    Some(format!(
        "the first alone would do {}/s (universal scalability law); contention {}, coherency {}; {peak}",
        cells::rate(law.gain.value),
        share(law.contention),
        share(law.coherency)
    ))
}
