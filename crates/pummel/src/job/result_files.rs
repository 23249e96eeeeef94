//! The files of results that all fronts have, of a run or of a series: checked before the load, kept complete while it goes on.

use std::borrow::Borrow;
use std::io;

use pummel_engine::clock;
use pummel_fronts::outputs::ResultPaths;
use pummel_logic::plan::Plan;
use pummel_logic::time::Nanos;
use pummel_measure::events::Row;
use pummel_measure::measurement::Measurement;
use pummel_report::forms::{Form, Render, Writing};
use pummel_report::stored::ResultDocument;

use crate::job::samples::{Samples, Written};
#[cfg(feature = "parquet")]
use crate::job::table_files::TableFiles;
use crate::output::Output;
use crate::output::open_form;

/// Checkpoints take at most one part in so many of the time. A result holds all intervals so far, so that one at every
/// interval would in the end take all of it: of a run of a day, or of one with many short intervals.
const CHECKPOINTS_SHARE: Nanos = 50;

/// The files of the result of one run, or of one series of runs.
#[derive(Debug, Default)]
pub struct ResultFiles {
    reports: Vec<ReportFile>,
    samples: Option<Samples>,
    #[cfg(feature = "parquet")]
    tables: Option<TableFiles>,
    /// Whether a measured phase began, so that the file of samples holds requests of this run.
    #[cfg(feature = "parquet")]
    has_begun: bool,
    pace: CheckpointPace,
    /// The first thing that could not be written while the run went on.
    trouble: Option<io::Error>,
}

/// A file that is made from the result.
#[derive(Debug)]
struct ReportFile {
    form: &'static Form,
    output: Output,
}

impl ReportFile {
    /// Whether it is rewritten while a run goes on.
    fn is_checkpointed(&self) -> bool {
        self.form.writing == Writing::Checkpointed && self.output.is_kept()
    }

    /// The bytes of the file; none if the result has no such form, which is refused before.
    fn bytes_of(&self, result: &ResultDocument) -> Vec<u8> {
        self.form.bytes_of(result).unwrap_or_default()
    }
}

impl ResultFiles {
    /// Checks that everything of a run of the plan can be written, before anything is sent.
    ///
    /// # Errors
    /// Returns the system's error for the first file that cannot be written; the message names the path.
    pub fn prepare(paths: &ResultPaths, plan: &Plan) -> io::Result<ResultFiles> {
        let (pace, trouble) = (CheckpointPace::default(), None);
        let mut files = ResultFiles { pace, trouble, ..ResultFiles::default() };
        for (form, path) in paths.iter() {
            if let Render::OfRequests = form.render {
                files.samples = Some(Samples::create(path, plan)?);
            } else if let Some(output) = open_form(form, path)? {
                files.reports.push(ReportFile { form, output });
            }
        }
        #[cfg(feature = "parquet")]
        if let Some(folder) = paths.parquet() {
            files.tables = Some(TableFiles::prepare(folder, paths.get("samples"))?);
        }
        Ok(files)
    }

    /// Checks that everything could be written now, and leaves everything as it is. A named pipe is not waited for.
    ///
    /// # Errors
    /// Returns the system's error for the first file that cannot be written; the message names the path.
    pub fn check(paths: &ResultPaths) -> io::Result<()> {
        paths.iter().try_for_each(|(_, path)| Output::prepare(path).map(drop))
    }

    /// Whether the histograms of slices are wanted.
    pub fn want_histograms(&self) -> bool {
        self.reports.iter().any(|file| file.form.wants_histograms)
    }

    /// Whether every request is wanted.
    pub fn want_rows(&self) -> bool {
        self.samples.is_some()
    }

    /// Whether results are to be rewritten now, while the run goes on.
    pub fn want_checkpoint(&mut self) -> bool {
        self.reports.iter().any(ReportFile::is_checkpointed) && self.pace.begin(clock::now())
    }

    /// Whether one of the results goes to standard output.
    pub fn take_standard_output(&self) -> bool {
        self.reports.iter().any(|file| file.output.is_standard())
    }

    /// Notes that the measured phase begins at `at`: from here on samples replace what their file held.
    pub fn begin(&mut self, at: Nanos) {
        #[cfg(feature = "parquet")]
        {
            self.has_begun = true;
        }
        if let Some(samples) = &mut self.samples {
            samples.begin(at);
        }
    }

    /// Writes what is known so far: of a run where [`ResultFiles::want_checkpoint`] says so, of a series after each of its runs.
    pub fn checkpoint(&mut self, result: &ResultDocument) {
        for file in self.reports.iter().filter(|file| file.is_checkpointed()) {
            if let Err(error) = file.output.checkpoint(&file.bytes_of(result)) {
                self.trouble.get_or_insert(error);
            }
        }
        self.pace.end(clock::now());
    }

    /// Adds requests to the file of samples.
    pub fn rows(&mut self, rows: &[Row]) {
        if let Some(samples) = &mut self.samples {
            samples.write(rows);
        }
    }

    /// Ends the file of samples when the run is over, and counts the requests that were dropped. Returns a warning where
    /// there are some.
    #[must_use]
    pub fn settle(&mut self, measurement: &mut Measurement) -> Option<String> {
        let Some(file) = self.samples.take() else {
            // A front may look at requests without a file of samples.
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

    /// Whether any file is made from the result.
    fn want_document(&self) -> bool {
        #[cfg(feature = "parquet")]
        if self.tables.is_some() {
            return true;
        }
        !self.reports.is_empty()
    }

    /// Writes every result; [`ResultFiles::settle`] was called before. Where one fails, the others are written all the same. `result`
    /// is not called where no file is made from it.
    ///
    /// # Errors
    /// Returns the first error.
    pub fn finish<R: Borrow<ResultDocument>>(mut self, result: impl FnOnce() -> R) -> io::Result<()> {
        let mut results: Vec<io::Result<()>> = Vec::new();
        if self.want_document() {
            let result = result();
            let result: &ResultDocument = result.borrow();
            results.extend(self.reports.iter().map(|file| file.output.finish(&file.bytes_of(result))));
            #[cfg(feature = "parquet")]
            if let ResultDocument::Run(run) = result {
                results.extend(self.tables.iter().map(|tables| tables.finish(run, self.has_begun)));
            }
        }
        results.extend(self.trouble.take().map(Err));
        results.into_iter().collect()
    }
}

/// Decides when a checkpoint may be written, so that checkpoints take only their share of the time.
#[derive(Clone, Copy, Debug, Default)]
struct CheckpointPace {
    began: Nanos,
    until: Nanos,
}

impl CheckpointPace {
    /// Whether a checkpoint may be written now, which then begins.
    fn begin(&mut self, now: Nanos) -> bool {
        let may = now >= self.until;
        if may {
            self.began = now;
        }
        may
    }

    /// Notes that the checkpoint is written.
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
        let mut pace = CheckpointPace::default();
        let (mut now, mut spent, mut made) = (7 * SECOND, 0, 0);
        while now < 107 * SECOND {
            if pace.begin(now) {
                // As the result grows it costs more.
                let cost = MILLISECOND * made;
                (now, spent, made) = (now + cost, spent + cost, made + 1);
                pace.end(now);
            }
            now += 10 * MILLISECOND;
        }
        assert!(made > 10, "{made}");
        assert!(spent * CHECKPOINTS_SHARE <= 110 * SECOND, "{spent}");
    }
}
