//! The block of four lines that a terminal shows while a run goes on.

use std::f64::consts::LN_2;

use pummel_logic::time::Nanos;
use pummel_measure::measurement::SliceOp;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, time_text};

use crate::live::words::{Glyphs, bar, busy_share, clock_text, elapsed_ns, share_done, stage_word};
use crate::snapshot::{Snapshot, SoFar, Stage};
use pummel_report::document::slice_rate;
use pummel_report::numbers::grouped;

/// Columns of the bar.
const BAR_WIDTH: usize = 30;

/// Columns of the picture of the latest 99th percentiles.
const SPARK_WIDTH: usize = 16;

/// Longest line, so that terminals of 80 columns wrap none.
const WIDTH_MAX: usize = 79;

/// The lines of the state at this time of the monotonic clock: how far the run is, its rate, its times and the generator. Before the
/// first interval there is one line.
pub fn lines(snapshot: &Snapshot, now: Nanos, glyphs: Glyphs) -> Vec<String> {
    let mut lines = vec![progress_line(snapshot, now)];
    if let Some(slice) = snapshot.recent.back() {
        lines.push(rate_line(snapshot, now, slice_rate(slice)));
        // The operation that most requests asked stands for the interval.
        let op = slice.ops.values().max_by_key(|op| op.counts.requests());
        if let Some(op) = op {
            lines.push(response_line(snapshot, op, glyphs));
            lines.push(generator_line(snapshot, op));
        }
    }
    lines.into_iter().map(|line| line.chars().take(WIDTH_MAX).collect()).collect()
}

fn progress_line(snapshot: &Snapshot, now: Nanos) -> String {
    let word = stage_word(snapshot.stage);
    let share = share_done(snapshot, now);
    let bar = share
        .map_or_else(String::new, |share| format!("{} {:3.0} %  ", bar(share, BAR_WIDTH), share * 100.0));
    let rest = match (snapshot.stage, snapshot.progress) {
        (Stage::Measure, _) => {
            let length_ns = snapshot.plan.as_ref().and_then(|plan| plan.measured_ns);
            let of = length_ns.map_or_else(String::new, |ns| format!(" / {}", clock_text(ns)));
            format!("{}{of}", clock_text(elapsed_ns(snapshot, now)))
        }
        (_, Some((ended, Some(of)))) => format!("{} of {}", grouped(ended), grouped(of)),
        (_, Some((ended, None))) => format!("{} requests", grouped(ended)),
        _ => String::new(),
    };
    format!("{word:<10} {bar}{rest}").trim_end().to_owned()
}

fn rate_line(snapshot: &Snapshot, now: Nanos, rate: f64) -> String {
    let asked = snapshot
        .asked_rate(now)
        .map_or_else(String::new, |asked| format!(" of {}", grouped(asked.round() as u64)));
    let counts = snapshot.so_far.as_ref().map(|so_far| so_far.counts).unwrap_or_default();
    let is_failing = snapshot.so_far.as_ref().is_some_and(SoFar::is_failing);
    let connections = snapshot.connections;
    // Where the run is failing, the word of it takes the place of a figure.
    let rest = match (connections.open, connections.asked) {
        _ if is_failing => " (FAILED so far)".to_owned(),
        (Some(open), Some(asked)) => format!("   open {} of {}", grouped(open), grouped(asked)),
        _ => String::new(),
    };
    format!(
        "rate       {}{asked} req/s   misses {}   errors {}{rest}",
        grouped(rate.round() as u64),
        grouped(counts.misses),
        grouped(counts.failed()),
    )
}

fn response_line(snapshot: &Snapshot, op: &SliceOp, glyphs: Glyphs) -> String {
    let shown = |name: &str| known(op, Span::Response, name).map_or_else(|| "unknown".to_owned(), time_text);
    let skipped = snapshot.recent.len().saturating_sub(SPARK_WIDTH);
    let p99: Vec<Option<f64>> = snapshot
        .recent
        .iter()
        .skip(skipped)
        .map(|slice| {
            let op = slice.ops.values().max_by_key(|op| op.counts.requests())?;
            known(op, Span::Response, "p99").map(|ns| (ns.max(1) as f64).ln())
        })
        .collect();
    let quantiles = ["p50", "p99", "p99.9"].map(|name| format!("{name} {}", shown(name)));
    format!("response   {}   p99: {}", quantiles.join("  "), glyphs.sparkline(&p99, LN_2))
}

fn generator_line(snapshot: &Snapshot, op: &SliceOp) -> String {
    let time = |span| known(op, span, "p99").map_or_else(|| "unknown".to_owned(), time_text);
    let busy =
        busy_share(snapshot).map_or_else(String::new, |share| format!("busy {:.0} %   ", share * 100.0));
    let is_trusted = snapshot.so_far.as_ref().is_none_or(|so_far| so_far.is_trusted);
    // Where the times are in doubt, the words of it take the place of a figure.
    let (doubt, reaction) = match is_trusted {
        true => ("", format!("   reaction p99 {}", time(Span::Reaction))),
        false => ("TIMES PARTLY ITS OWN   ", String::new()),
    };
    let (lag, stalls) = (time(Span::Lag), grouped(snapshot.run_turns.stalls));
    format!("generator  {doubt}{busy}lag p99 {lag}{reaction}   stalls {stalls}")
}

/// The quantile with a name of one span of an operation, where it is known.
pub fn known(op: &SliceOp, span: Span, name: &str) -> Option<Nanos> {
    let place = QUANTILES.iter().position(|(known, _)| *known == name)?;
    match op.figures[span as usize].quantiles[place] {
        Quantile::Known(ns) => Some(ns),
        Quantile::Above(_) | Quantile::Absent => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use pummel_logic::protocol::Fault;

    use super::*;
    use crate::live::example;
    use crate::snapshot::Stage;

    #[test]
    fn a_run_under_way_has_four_lines_that_fit_into_a_terminal() {
        let (snapshot, now) = example::measuring();
        let lines = lines(&snapshot, now, Glyphs::Ascii);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert_eq!(lines[0], "measuring  [####--------------------------]  14 %  00:42 / 05:00");
        assert!(
            lines[1].starts_with("rate       ") && lines[1].contains(" of 400 req/s   misses "),
            "{}",
            lines[1]
        );
        assert!(lines[2].starts_with("response   p50 ") && lines[2].contains("p99: "), "{}", lines[2]);
        assert!(lines[3].starts_with("generator  busy "), "{}", lines[3]);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH_MAX), "{lines:#?}");
    }

    #[test]
    fn the_page_about_the_view_shows_the_block() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LIVE.md");
        let page = fs::read_to_string(page).expect("the page is there");
        let (snapshot, now) = example::measuring();
        let block = lines(&snapshot, now, Glyphs::Ascii).join("\n");
        assert!(page.contains(&format!("```\n{block}\n```\n")), "docs/LIVE.md does not show:\n{block}");
    }

    #[test]
    fn a_run_of_errors_is_called_failed_while_it_goes_on() {
        let (mut snapshot, now) = example::measuring();
        let rate_line = |snapshot: &Snapshot| lines(snapshot, now, Glyphs::Ascii)[1].clone();
        assert!(!rate_line(&snapshot).contains("FAILED"), "{}", rate_line(&snapshot));
        let so_far = snapshot.so_far.as_mut().expect("figures so far");
        so_far.counts.errors[Fault::Server as usize] += 2 * so_far.counts.ended();
        assert!(rate_line(&snapshot).ends_with(" (FAILED so far)"), "{}", rate_line(&snapshot));
    }

    #[test]
    fn doubt_is_said_as_a_whole() {
        let (mut snapshot, now) = example::measuring();
        snapshot.run_turns.stalls = 12_345;
        snapshot.so_far.iter_mut().for_each(|so_far| so_far.is_trusted = false);
        let lines = lines(&snapshot, now, Glyphs::Ascii);
        assert!(lines[3].starts_with("generator  TIMES PARTLY ITS OWN   busy "), "{}", lines[3]);
        assert!(lines[3].ends_with("stalls 12,345"), "{}", lines[3]);
    }

    #[test]
    fn a_load_has_one_line() {
        let (mut snapshot, now) = example::measuring();
        (snapshot.stage, snapshot.progress) = (Stage::Load, Some((2_500, Some(10_000))));
        snapshot.recent.clear();
        let expected = "loading    [########----------------------]  25 %  2,500 of 10,000";
        assert_eq!(lines(&snapshot, now, Glyphs::Ascii), [expected]);
    }
}
