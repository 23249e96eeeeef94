//! The words of pummel's own command line about a run: progress on standard error, and the report.

use pummel_logic::plan::Work;
use pummel_logic::time::{Nanos, seconds, typed_time};
use pummel_measure::measurement::Slice;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, time_text};
use pummel_report::anonymous::document_of;
use pummel_report::document::slice_rate;
use pummel_report::screen::Hints;
use pummel_report::{json, markdown, text};

use crate::exit_status::Exit;
use crate::hints::Obstacle;
use crate::outputs::{Outputs, ReportFormat};
use crate::screen_options::ScreenArgs;
use crate::style::{Bar, Doubted, Ended, Event, Moment, Style, StyleOutput};

/// The words of `pummel run` and `pummel load`.
#[derive(Clone, Copy, Debug)]
pub struct NativeStyle {
    /// No progress is shown, and one line at the end.
    quiet: bool,
    /// The text for people.
    screen: ScreenArgs,
    /// The form of standard output.
    format: ReportFormat,
}

impl NativeStyle {
    /// The words that go with these outputs.
    pub fn new(outputs: &Outputs) -> NativeStyle {
        NativeStyle { quiet: outputs.quiet, screen: outputs.screen, format: outputs.format }
    }
}

impl Style for NativeStyle {
    fn event(&mut self, event: Event<'_>, _: Moment, out: &mut StyleOutput) {
        match event {
            // Also where quiet is asked for: a notice changes what the result is of.
            Event::Notice(words) => out.line(format_args!("WARNING: {words}")),
            Event::RunOver(..) => out.bar(Bar::End),
            _ if self.quiet => {}
            Event::PhaseBegan(phase, _) => {
                out.bar(Bar::End);
                match &phase.work {
                    Work::Load(_) => out.bar(Bar::Begin),
                    Work::Pause(pause) if pause.for_ns > 0 => {
                        out.line(format_args!("settling for {}", typed_time(pause.for_ns)));
                    }
                    Work::Audit(_) => out.line("reading back what was stored"),
                    _ => {}
                }
            }
            Event::Progress(_, ended, Some(of)) => out.bar(Bar::At(ended, of)),
            Event::Slice(so_far) => {
                let mut latest = so_far.intervals.iter().rev();
                if let Some(slice) = latest.next() {
                    out.progress(line(slice, latest.next()));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, ended: &Ended<'_>, _: Moment, out: &mut StyleOutput) -> Exit {
        let obstacle = obstacle(ended);
        if let Some(obstacle) = &obstacle {
            out.line(format_args!("error: {obstacle}"));
        }
        if !ended.stdout_is_taken {
            match self.format {
                ReportFormat::Json => out.report(json::render(&document_of(&ended.report))),
                // A table of zeros says nothing.
                ReportFormat::Text if obstacle.is_some() => {}
                ReportFormat::Markdown => out.report(markdown::of_run(&document_of(&ended.report))),
                ReportFormat::Text => {
                    out.screen(text::run(
                        &document_of(&ended.report),
                        self.screen.detail(self.quiet),
                        self.screen.paper(Hints::OfRun, &ended.terminal),
                    ));
                }
            }
        }
        exit_of(ended)
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("error: {words}"), Exit::Failed)
    }

    fn usage_status(&self) -> Exit {
        Exit::Usage
    }

    fn doubted(&self) -> Doubted {
        Doubted::Nothing
    }

    fn lets_readers_leave(&self) -> bool {
        false
    }
}

/// Why there is nothing to report; `None` where there is something.
fn obstacle(ended: &Ended<'_>) -> Option<Obstacle> {
    match ended.refused {
        Some(error) => Some(error.obstacle.clone()),
        None => Obstacle::of(ended.report.plan, ended.report.measurement),
    }
}

/// A piece of an interval below this share of it tells no rate.
const PIECE_LEAST: f64 = 0.1;

/// The rate of a slice of this length behind one of another length, in whole requests per second.
fn rate_words(rate: f64, length_ns: Nanos, before_ns: Option<Nanos>) -> String {
    let is_piece = before_ns.is_some_and(|before_ns| (length_ns as f64) < PIECE_LEAST * before_ns as f64);
    if is_piece { "-".to_owned() } else { format!("{rate:.0}") }
}

/// The line of progress of a slice of the measured phase, behind another one.
fn line(slice: &Slice, before: Option<&Slice>) -> String {
    let counts = slice.counts();
    // The op that most requests asked stands for the slice.
    let op = slice.ops.values().max_by_key(|op| op.counts.requests());
    let time = |name: &str| {
        let place = QUANTILES.iter().position(|(known, _)| *known == name)?;
        match op?.figures[Span::Response as usize].quantiles[place] {
            Quantile::Known(ns) => Some(time_text(ns)),
            _ => None,
        }
    };
    let shown = |name: &str| time(name).unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{:7.1} s {:>11} req/s   response p50 {:>9}  p99 {:>9}   misses {}  errors {}",
        seconds(slice.end_ns),
        rate_words(slice_rate(slice), slice.length_ns(), before.map(Slice::length_ns)),
        shown("p50"),
        shown("p99"),
        counts.misses,
        counts.failed(),
    )
}

fn exit_of(ended: &Ended<'_>) -> Exit {
    document_of(&ended.report).exit.map_or(Exit::Failed, Exit::of_status)
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::{MILLISECOND, SECOND};

    use super::*;

    #[test]
    fn a_short_piece_of_an_interval_has_no_rate() {
        assert_eq!(rate_words(3_591.0, MILLISECOND, Some(SECOND)), "-");
        assert_eq!(rate_words(3_591.4, SECOND / 2, Some(SECOND)), "3591");
        assert_eq!(rate_words(3_591.4, MILLISECOND, None), "3591");
    }
}
