//! The block of four lines that a terminal shows while a run goes on.

use std::f64::consts::LN_2;

use pummel_logic::protocol::Fault;
use pummel_logic::time::Nanos;
use pummel_measure::measurement::SliceOp;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile};
use pummel_report::document::slice_rate;
use pummel_report::numbers::grouped;
use pummel_report::snapshot::{Snapshot, Stage};

use crate::live::verdict::{abnormal, asked_at};
use crate::live::words::{
    Glyphs, bar, behind_words, clock_text, elapsed_ns, share_done, stage_word, time_words,
};

/// Columns of the bar.
const BAR_WIDTH: usize = 30;

/// Columns of the picture of the latest 99th percentiles.
const SPARK_WIDTH: usize = 16;

/// Longest line, so that terminals of 80 columns wrap none.
const WIDTH_MAX: usize = 79;

/// The lines of the state at this time of the monotonic clock: how far the run is, its rate, its times, and the generator or what is abnormal. Before the
/// first interval there is one line.
pub fn lines(snapshot: &Snapshot, now: Nanos, glyphs: Glyphs) -> Vec<String> {
    let mut lines = vec![progress_line(snapshot, now)];
    if let Some(slice) = snapshot.recent.back() {
        lines.push(rate_line(snapshot, now, slice_rate(slice)));
        // The operation that most requests asked stands for the interval.
        let op = slice.ops.values().max_by_key(|op| op.counts.requests());
        if let Some(op) = op {
            lines.push(response_line(snapshot, op, glyphs));
            lines.push(last_line(snapshot, op));
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

/// The line of the rate: parts that have no room are left out, the last one first.
fn rate_line(snapshot: &Snapshot, now: Nanos, rate: f64) -> String {
    let asked = snapshot
        .asked_rate(now)
        .map_or_else(String::new, |asked| format!(" of {}", grouped(asked.round() as u64)));
    let counts = snapshot.so_far.as_ref().map(|so_far| so_far.counts).unwrap_or_default();
    let behind = snapshot
        .backlog
        .now()
        .map(|point| format!("behind {}", behind_words(point.behind, asked_at(snapshot, point))));
    let timeouts = counts.errors(Fault::Timeout);
    let errors = format!("errors {}", grouped(counts.failed() - timeouts));
    let timeouts = (timeouts > 0).then(|| format!("timeouts {}", grouped(timeouts)));
    let connections = snapshot.connections;
    let open = connections.open.zip(connections.asked);
    let open = open.map(|(open, asked)| format!("open {}/{}", grouped(open), grouped(asked)));
    let mut line = format!("rate       {}{asked} req/s", grouped(rate.round() as u64));
    for part in [behind, Some(errors), timeouts, open].into_iter().flatten() {
        if line.chars().count() + 3 + part.chars().count() > WIDTH_MAX {
            break;
        }
        line = format!("{line}   {part}");
    }
    line
}

fn response_line(snapshot: &Snapshot, op: &SliceOp, glyphs: Glyphs) -> String {
    let shown = |name: &str| known(op, Span::Response, name).map_or_else(|| "unknown".to_owned(), time_words);
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
    let quantiles = ["p50", "p99"].map(|name| format!("{name} {}", shown(name)));
    format!("response   {}   p99: {}", quantiles.join("  "), glyphs.sparkline(&p99, LN_2))
}

/// The line of the generator, or of what is abnormal.
fn last_line(snapshot: &Snapshot, op: &SliceOp) -> String {
    if let Some(words) = abnormal(snapshot) {
        return words;
    }
    let time = |span| known(op, span, "p99").map_or_else(|| "unknown".to_owned(), time_words);
    let busy = snapshot.busy_share();
    let busy = busy.map_or_else(String::new, |share| format!("busy {:.0} %   ", share * 100.0));
    let (lag, reaction) = (time(Span::Lag), time(Span::Reaction));
    let stalls = grouped(snapshot.run_turns.stalls);
    format!("generator  {busy}lag p99 {lag}   reaction p99 {reaction}   stalls {stalls}")
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

    use pummel_logic::time::SECOND;

    use super::*;
    use crate::live::example;
    use pummel_report::snapshot::doubt::Doubt;

    #[test]
    fn a_run_under_way_has_four_lines_that_fit_into_a_terminal() {
        let (snapshot, now) = example::measuring();
        let lines = lines(&snapshot, now, Glyphs::Ascii);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert_eq!(lines[0], "measuring  [####--------------------------]  14 %  00:42 / 05:00");
        assert!(
            lines[1].starts_with("rate       ")
                && lines[1].contains(" of 400 req/s   behind 0   errors 0   open 50/50"),
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
    fn an_overload_has_its_backlog_and_its_word_in_the_block() {
        let (snapshot, now) = example::overloaded(4);
        let lines = lines(&snapshot, now, Glyphs::Unicode);
        let expected = [
            "measuring  [######------------------------]  20 %  00:04 / 00:20",
            "rate       1,000 of 2,000 req/s   behind 4,000 (2.0 s)   errors 0   open 50/50",
            "response   p50 1.75 s  p99 2.00 s   p99: ▁▅▇█",
            "OVERLOADED the server answers 1,000/s   pummel's thread 1 % busy",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_run_of_errors_is_called_failed_while_it_goes_on() {
        let (mut snapshot, now) = example::measuring();
        let last = |snapshot: &Snapshot| lines(snapshot, now, Glyphs::Ascii)[3].clone();
        assert!(last(&snapshot).starts_with("generator  "), "{}", last(&snapshot));
        let so_far = snapshot.so_far.as_mut().expect("figures so far");
        so_far.counts.errors[Fault::Server as usize] += 2 * so_far.counts.ended();
        assert!(last(&snapshot).starts_with("FAILED so far: 66.7 % of "), "{}", last(&snapshot));
    }

    #[test]
    fn doubt_and_timeouts_are_said_as_a_whole() {
        let (mut snapshot, now) = example::measuring();
        snapshot.doubt = Some(Doubt { figure: "p50", since_ns: 41 * SECOND, until_ns: None, busy: None });
        let so_far = snapshot.so_far.as_mut().expect("figures so far");
        so_far.counts.errors[Fault::Timeout as usize] = 12;
        let lines = lines(&snapshot, now, Glyphs::Ascii);
        assert!(
            lines[1].ends_with(" req/s   behind 0   errors 0   timeouts 12   open 50/50"),
            "{}",
            lines[1]
        );
        assert_eq!(lines[3], "p50 NOT RELIABLE since 00:41   pummel's thread 12 % busy");
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
