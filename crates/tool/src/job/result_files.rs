//! Where the results of a run are written that all fronts have: checked before the load, kept complete while it goes on.

use std::io;

use pummel_engine::clock;
use pummel_engine::worker::messages::Row;
use pummel_logic::measure::measurement::Measurement;
use pummel_logic::plan::Plan;
use pummel_logic::time::Nanos;

use crate::job::Outputs;
use crate::job::samples::{Samples, Written};
use crate::report::output::Output;
use crate::report::{Report, csv, hdr, json};

/// Checkpoints take at most one part in so many of the time. A result holds all intervals so far, so that one at every
/// interval would in the end take all of it: of a run of a day, or of one with many short intervals.
const CHECKPOINTS_SHARE: Nanos = 50;

/// The places of one run's results.
#[derive(Debug)]
pub struct Places {
    json: Option<Output>,
    csv: Option<Output>,
    hdr: Option<Output>,
    samples: Option<Samples>,
    rests: Rests,
    /// The first thing that could not be written while the run went on.
    trouble: Option<io::Error>,
}

impl Places {
    /// Checks that everything of a run of the plan can be written, before anything is sent.
    ///
    /// # Errors
    /// When something cannot be; the message names the path.
    pub fn prepare(outputs: &Outputs, plan: &Plan) -> io::Result<Places> {
        let place = |path: &Option<_>| path.as_deref().map(Output::prepare).transpose();
        Ok(Places {
            json: place(&outputs.json)?,
            csv: place(&outputs.csv)?,
            hdr: place(&outputs.hdr)?,
            samples: outputs.samples.as_deref().map(|path| Samples::create(path, plan)).transpose()?,
            rests: Rests::default(),
            trouble: None,
        })
    }

    /// Whether the histograms of slices are wanted.
    pub fn want_histograms(&self) -> bool {
        self.hdr.is_some()
    }

    /// Whether every request is wanted.
    pub fn want_rows(&self) -> bool {
        self.samples.is_some()
    }

    /// Whether results are to be rewritten now, while the run goes on.
    pub fn want_checkpoint(&mut self) -> bool {
        self.json.as_ref().is_some_and(Output::is_kept) && self.rests.begin(clock::now())
    }

    /// Whether one of the results goes to standard output.
    pub fn take_standard_output(&self) -> bool {
        [&self.json, &self.csv, &self.hdr].into_iter().flatten().any(Output::is_standard)
    }

    /// The measured phase begins at `at`.
    pub fn begin(&mut self, at: Nanos) {
        if let Some(samples) = &mut self.samples {
            samples.begin(at);
        }
    }

    /// Writes what is known so far; [`Places::want_checkpoint`] was asked before.
    pub fn checkpoint(&mut self, report: &Report<'_>) {
        let Some(place) = self.json.as_ref().filter(|place| place.is_kept()) else { return };
        if let Err(error) = place.checkpoint(&json::render(report)) {
            self.trouble.get_or_insert(error);
        }
        self.rests.end(clock::now());
    }

    /// Writes requests.
    pub fn rows(&mut self, rows: &[Row]) {
        if let Some(samples) = &mut self.samples {
            samples.write(rows);
        }
    }

    /// The run is over: ends the file of requests, and counts those that were dropped. Returns a warning where there are
    /// some.
    #[must_use]
    pub fn settle(&mut self, measurement: &mut Measurement) -> Option<String> {
        let Some(file) = self.samples.take() else {
            // Rows were looked at for other reasons, and no file of them was asked for.
            let dropped = measurement.samples.take().map_or(0, |samples| samples.dropped);
            let words = || format!("{dropped} requests are missing in what is said of single requests");
            return (dropped > 0).then(words);
        };
        let Written { dropped, result } = file.finish();
        if let Err(error) = result {
            self.trouble.get_or_insert(error);
        }
        let samples = measurement.samples.as_mut()?;
        samples.drop_written(dropped);
        let (dropped, all) = (samples.dropped, samples.dropped + samples.written);
        let words = || {
            format!(
                "{dropped} of {all} requests are missing in the samples, because they could not be written in time"
            )
        };
        (dropped > 0).then(words)
    }

    /// Writes every result; [`Places::settle`] was called before. Where several places fail, all others are written all the same.
    ///
    /// # Errors
    /// The first of them.
    pub fn finish(mut self, report: &Report<'_>) -> io::Result<()> {
        let mut results = Vec::new();
        if let Some(place) = &self.json {
            results.push(place.finish(&json::render(report)));
        }
        if let Some(place) = &self.csv {
            results.push(place.finish(&csv::render(report)));
        }
        if let Some(place) = &self.hdr {
            results.push(place.finish(&hdr::render(report)));
        }
        results.extend(self.trouble.take().map(Err));
        results.into_iter().collect()
    }
}

/// When work that is done again and again rests, so that it takes only its share of the time.
#[derive(Clone, Copy, Debug, Default)]
struct Rests {
    began: Nanos,
    until: Nanos,
}

impl Rests {
    /// Whether it may be done now; then it begins.
    fn begin(&mut self, now: Nanos) -> bool {
        let may = now >= self.until;
        if may {
            self.began = now;
        }
        may
    }

    /// It is done.
    fn end(&mut self, now: Nanos) {
        self.until = now + (now - self.began) * CHECKPOINTS_SHARE;
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::{MILLISECOND, SECOND};

    use super::*;

    #[test]
    fn the_first_checkpoint_is_made_at_once_and_dear_ones_seldom() {
        let mut rests = Rests::default();
        let (mut now, mut spent, mut made) = (7 * SECOND, 0, 0);
        while now < 107 * SECOND {
            if rests.begin(now) {
                // As the result grows it costs more.
                let cost = MILLISECOND * made;
                (now, spent, made) = (now + cost, spent + cost, made + 1);
                rests.end(now);
            }
            now += 10 * MILLISECOND;
        }
        assert!(made > 10, "{made}");
        assert!(spent * CHECKPOINTS_SHARE <= 110 * SECOND, "{spent}");
    }
}
