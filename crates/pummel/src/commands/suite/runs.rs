//! The runs of a suite, in rounds: which one is next, what came of each, and how long the rest will take.

use std::time::Duration;

use pummel_fronts::job::seed_of;
use pummel_fronts::style::StyleOutput;
use pummel_logic::plan::validate::ValidPlan;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::summary::Summary;
use pummel_report::anonymous;
use pummel_report::anonymous::document_of;
use pummel_report::document::Document;
use pummel_report::run_figures::RunFigures;
use pummel_report::stored::ResultDocument;
use pummel_report::suite::{SuiteDocument, SuiteRun};
use pummel_report::words::suite::{left_words, met_words};
use pummel_report::{Ending, Report};

use super::suite_job::SuiteJob;
use crate::build_info::BUILD;
use crate::job::runner::NotRun;
use crate::job::series::{Finished, RunSeries, SeriesRun, SeriesState, is_whole};
use crate::job::series_result::ResultSeries;
use crate::job::server_program::ServerProgram;

/// The front of the runs in their results.
const FRONT: &str = pummel_fronts::native::FRONT;

/// The runs of a suite with their results so far.
pub struct SuiteSeries<'a> {
    jobs: &'a [SuiteJob],
    document: SuiteDocument,
    /// Number of rounds of each run that were made, or given up.
    tried: Vec<u32>,
    /// The run that was asked for last.
    current: usize,
    /// Number of runs that failed and were made again, of the result that the suite goes on with.
    made_again_before: u32,
    /// The result of the last try that failed.
    failed: Option<Box<Document>>,
    /// The server that was started for all runs.
    program: Option<ServerProgram>,
    /// Runs that were made or given up since the suite began or went on, and the time that they took.
    done: (u32, f64),
}

impl<'a> SuiteSeries<'a> {
    /// The runs of these jobs that `document` lacks, of the server that was started for all of them, which ends with the series.
    pub fn new(
        jobs: &'a [SuiteJob],
        document: SuiteDocument,
        program: Option<ServerProgram>,
    ) -> SuiteSeries<'a> {
        let tried = document.runs.iter().map(|run| run.results.len() as u32).collect();
        let made_again_before = document.made_again;
        SuiteSeries {
            jobs,
            document,
            tried,
            current: 0,
            made_again_before,
            failed: None,
            program,
            done: (0, 0.0),
        }
    }

    /// The run that has been made least often, the first of several.
    fn next(&self) -> Option<usize> {
        let (place, tried) = self.tried.iter().enumerate().min_by_key(|(_, tried)| **tried)?;
        (*tried < self.document.rounds).then_some(place)
    }

    /// Number of runs that are still to be made.
    fn left(&self) -> u32 {
        self.tried.iter().map(|tried| self.document.rounds.saturating_sub(*tried)).sum()
    }

    /// The place of the current run in words, such as `3 of 12, reads`, with its round where there are several.
    fn place_words(&self) -> String {
        let name = &self.jobs[self.current].name;
        let (number, all) = (self.current + 1, self.jobs.len());
        match self.document.rounds {
            1 => format!("{number} of {all}, {name}"),
            rounds => {
                format!("{number} of {all}, round {} of {rounds}, {name}", self.tried[self.current] + 1)
            }
        }
    }

    /// Notes the end of the current run, which took so many seconds. Returns words for the time that the others will take.
    fn ended(&mut self, whole_s: f64) -> String {
        self.tried[self.current] += 1;
        self.document.runs[self.current].whole_s += whole_s;
        self.done = (self.done.0 + 1, self.done.1 + whole_s);
        let each_s = self.done.1 / f64::from(self.done.0);
        left_words(
            self.left(),
            Duration::try_from_secs_f64(each_s * f64::from(self.left())).unwrap_or_default(),
        )
    }

    fn current_run(&mut self) -> &mut SuiteRun {
        &mut self.document.runs[self.current]
    }

    /// Keeps a result of the current run, and judges what the run is expected to show.
    fn keep(&mut self, result: Document) {
        let expectations = &self.jobs[self.current].expectations;
        let run = self.current_run();
        run.results.push(result);
        let whole: Vec<Document> =
            run.results.iter().filter(|result| pummel_report::suite::is_whole(result)).cloned().collect();
        run.expectations = expectations.iter().map(|expected| expected.judged(&whole)).collect();
    }
}

/// The result of a run, with words in the place of names where its plan says so.
fn document(plan: &ValidPlan, measurement: &Measurement, summary: &Summary) -> Document {
    document_of(&Report { plan, measurement, summary, front: FRONT, build: BUILD, ending: Ending::Open })
}

impl RunSeries for SuiteSeries<'_> {
    fn next_run(&mut self, _: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        let Some(place) = self.next() else { return Ok(None) };
        self.current = place;
        let plan = &self.jobs[place].job.plan;
        let seed = seed_of(plan.seed, self.tried[place]);
        Ok(Some(SeriesRun { side: place, ..SeriesRun::new(plan, seed) }))
    }

    fn counts(&mut self, plan: &ValidPlan, measurement: &mut Measurement) -> bool {
        let is_whole = is_whole(plan, measurement);
        self.failed = match is_whole || measurement.status == Status::Interrupted {
            true => None,
            false => Some(Box::new(document(plan, measurement, &Summary::of(measurement, plan)))),
        };
        is_whole
    }

    fn add(&mut self, finished: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
        let result = document(&finished.plan, &finished.measurement, &finished.summary);
        let figures = RunFigures::of(&result, finished.whole_s).line();
        let place = self.place_words();
        self.keep(result);
        let met = met_words(&self.document.runs[self.current]);
        let left = self.ended(finished.whole_s);
        out.line(format_args!("run {place}: {figures}{met}{left}"));
        Ok(())
    }

    /// The suite goes on with its other runs, unless none of them could be made either.
    fn missed(&mut self, why: NotRun, out: &mut StyleOutput) -> Result<(), NotRun> {
        if matches!(why, NotRun::Interrupted | NotRun::Agents(_)) || why.is_usage() {
            return Err(why);
        }
        let place = self.place_words();
        let why = match self.program.as_mut().and_then(ServerProgram::ended) {
            Some(status) => NotRun::Server(format!("the program of the suite has ended ({status})").into()),
            None => why,
        };
        let obstacle = why.obstacle();
        out.error(format!("run {place}: FAILED: {}\n", obstacle.shown.as_ref().unwrap_or(&obstacle.reason)));
        if let Some(hint) = &obstacle.hint {
            out.error(format!("hint: {hint}\n"));
        }
        let reason = anonymous::sentence(&why.to_string(), &self.jobs[self.current].job.plan, &[], &[]);
        let whole_s = self.failed.as_ref().map_or(0.0, |result| result.seconds);
        match self.failed.take() {
            Some(result) => self.keep(*result),
            None => {
                let expectations = &self.jobs[self.current].expectations;
                let run = &mut self.document.runs[self.current];
                if run.results.is_empty() {
                    run.expectations = expectations.iter().map(|expected| expected.judged(&[])).collect();
                }
            }
        }
        self.current_run().reason = Some(reason);
        let _ = self.ended(whole_s);
        Ok(())
    }
}

impl ResultSeries for SuiteSeries<'_> {
    fn result(&self, state: &SeriesState) -> ResultDocument {
        let mut document = Box::new(self.document.clone());
        document.made_again = self.made_again_before + state.made_again;
        document.end(state.reason(), state.is_interrupted());
        ResultDocument::Suite(document)
    }
}

#[cfg(test)]
mod tests {
    use pummel_report::suite::Expectation;
    use pummel_report::suite::expectation::{Relation, Subject, Wanted};

    use super::*;
    use crate::job::series::tests::{finished, interrupted, plan};
    use pummel_fronts::job::Job;
    use pummel_fronts::outputs::Outputs;

    use crate::job::detection::Detection;
    use crate::job::series::ServerCare;

    fn job(name: &str, bound: f64) -> SuiteJob {
        let rate = Expectation {
            subject: Subject::Rate,
            wanted: Wanted::Figure(Relation::AtLeast, bound),
            text: format!(">={bound}"),
        };
        SuiteJob {
            name: name.to_owned(),
            options: String::new(),
            expectations: vec![rate],
            job: Job { front: FRONT, plan: plan(), outputs: Outputs::default(), fleet: None },
            detection: Detection::Unasked,
            care: ServerCare::None,
        }
    }

    fn suite(jobs: &[SuiteJob], rounds: u32) -> SuiteDocument {
        let mut document = SuiteDocument::new("nightly".to_owned(), rounds, Vec::new());
        document.runs =
            jobs.iter().map(|job| SuiteRun { name: job.name.clone(), ..SuiteRun::default() }).collect();
        document
    }

    fn result(series: &SuiteSeries<'_>, state: &SeriesState) -> SuiteDocument {
        let ResultDocument::Suite(result) = series.result(state) else { panic!("a suite") };
        *result
    }

    fn over() -> SeriesState {
        SeriesState { is_over: true, ..SeriesState::default() }
    }

    #[test]
    fn every_run_is_made_before_the_next_round_begins() {
        let jobs = [job("reads", 1.0), job("writes", 1e9)];
        let mut series = SuiteSeries::new(&jobs, suite(&jobs, 2), None);
        let mut order = Vec::new();
        while let Some(run) = series.next_run(&mut StyleOutput::default()).expect("a run or none") {
            order.push((run.side, run.plan.seed == seed_of(jobs[0].job.plan.seed, order.len() as u32 / 2)));
            series.add(finished(&run), &mut StyleOutput::default()).expect("it is taken");
        }
        assert_eq!(order, [(0, true), (1, true), (0, true), (1, true)]);
        let result = result(&series, &over());
        assert_eq!((result.status, result.met(), result.exit_status()), (Status::Complete, (1, 2), 3));
        assert!(result.runs.iter().all(|run| run.results.len() == 2 && run.whole_s > 4.9));
    }

    #[test]
    fn a_run_that_cannot_be_made_does_not_keep_the_others_from_being_made() {
        let jobs = [job("reads", 1.0), job("writes", 1.0)];
        let mut series = SuiteSeries::new(&jobs, suite(&jobs, 1), None);
        let mut out = StyleOutput::default();
        series.next_run(&mut out).expect("a run").expect("the first");
        series
            .missed(NotRun::Server("nothing listens there".to_owned().into()), &mut out)
            .expect("it goes on");
        let second = series.next_run(&mut out).expect("a run").expect("the second");
        series.add(finished(&second), &mut out).expect("it is taken");
        assert!(series.next_run(&mut out).expect("none").is_none());
        let result = result(&series, &over());
        assert_eq!((result.status, result.exit_status()), (Status::Partial, 1));
        assert_eq!(result.runs[0].reason.as_deref(), Some("nothing listens there"));
        assert_eq!((result.runs[0].met(), result.runs[1].met()), ((0, 1), (1, 1)));
        assert!(series.missed(NotRun::Interrupted, &mut out).is_err(), "a signal ends the suite");
    }

    #[test]
    fn an_interrupted_suite_keeps_what_it_has_and_goes_on_with_the_rest() {
        let jobs = [job("reads", 1.0), job("writes", 1.0)];
        let mut series = SuiteSeries::new(&jobs, suite(&jobs, 1), None);
        let mut out = StyleOutput::default();
        let first = series.next_run(&mut out).expect("a run").expect("the first");
        series.add(finished(&first), &mut out).expect("it is taken");
        let cut = result(&series, &interrupted());
        assert_eq!((cut.status, cut.exit_status(), cut.runs[0].results.len()), (Status::Interrupted, 130, 1));
        let mut series = SuiteSeries::new(&jobs, cut, None);
        let second = series.next_run(&mut out).expect("a run").expect("the second");
        assert_eq!(second.side, 1);
        series.add(finished(&second), &mut out).expect("it is taken");
        assert_eq!(result(&series, &over()).exit_status(), 0);
    }
}
