//! What is said on standard error while a run goes on: a bar while loading, a line for each interval.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pummel_logic::measure::measurement::Slice;
use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{QUANTILES, Quantile, time_text};
use pummel_logic::plan::{Phase, Plan, Work};
use pummel_logic::time::seconds;

use crate::report::json::slice_rate;
use crate::stderr::{draw, say};

/// Says how far a run is.
#[derive(Debug)]
pub struct Progress {
    quiet: bool,
    /// While loading.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// One that says nothing when `quiet`.
    pub fn new(quiet: bool) -> Progress {
        Progress { quiet, bar: None }
    }

    /// Says what is about to be done, with the seed that does it again.
    pub fn announce(&mut self, plan: &Plan) {
        if !self.quiet {
            say(format_args!("seed {}", plan.seed));
        }
    }

    /// A phase begins.
    pub fn begin(&mut self, phase: &Phase) {
        self.end();
        if self.quiet {
            return;
        }
        if let Work::Load(_) = phase.work {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) =
                ProgressStyle::with_template("loading {bar:30} {human_pos} of {human_len}, {eta}")
            {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
    }

    /// So many requests of a phase have ended.
    pub fn count(&mut self, _phase: &Phase, ended: u64, of: Option<u64>) {
        if let (Some(bar), Some(of)) = (&self.bar, of) {
            let bar = bar.clone();
            draw(move || {
                bar.set_length(of);
                bar.set_position(ended);
            });
        }
    }

    /// A slice of the measured phase is over.
    pub fn slice(&mut self, slice: &Slice) {
        if self.quiet {
            return;
        }
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
        say(format_args!(
            "{:7.1} s {:11.0} req/s   response p50 {:>9}  p99 {:>9}   misses {}  errors {}",
            seconds(slice.end_ns),
            slice_rate(slice),
            shown("p50"),
            shown("p99"),
            counts.misses,
            counts.failed(),
        ));
    }

    /// Nothing more is said of what is under way.
    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            draw(move || bar.finish_and_clear());
        }
    }
}
