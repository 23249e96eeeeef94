//! `pummel search`: the greatest rate that meets the goals, with 95 % confidence.

use clap::{Arg, Args};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::FrontInputs;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_fronts::values::{self, ValueError};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::limit::Cause;
use pummel_measure::rate_search::{NoRate, PlannedRun, RateSearch, Recovery, Role, RunFindings};
use pummel_measure::uncertainty::Windows;
use pummel_report::curve::Point;
use pummel_report::document::{CurveDocument, CurveOverload, CurveSearch};
use pummel_report::words::limit::cause_words;

use crate::commands::curve::CLOSED_LOOP_FIRST;
use crate::commands::series::{Asked, Choice, PreparedSeries, hidden_where_refused};
use crate::job::runner::NotRun;
use crate::job::series::Finished;
use crate::parser_answer::answer;

/// Options of `pummel search`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES, mut_args(of_search))]
pub struct SearchArgs {
    /// Add runs until the interval of the answer is this narrow, such as 2%. Default: ten runs around the answer
    #[arg(long, value_name = "SHARE", value_parser = precision, allow_hyphen_values = true)]
    pub precision: Option<f64>,
    /// Those of `pummel run`, for every run.
    #[command(flatten)]
    pub run: Typed<RunArgs>,
}

const EXAMPLES: &str = "\
A closed-loop run finds the greatest rate; four halvings locate the rate at which the goal is missed; ten runs around that rate, \
in random order, show how the quantile rises with the rate. The answer is a rate at which the goal is met with 95 % confidence, \
confirmed by one more run there, whose upper bound must meet the goal. --precision asks for more runs. At the end the server is \
overloaded for 5 s; the same run then continues at the rate that was found, to see whether the server recovers. A rate fails even \
the most lenient goal if less than 95 % of its requests are answered in time. --json and --csv write all runs.

Example, which takes about two minutes:
  pummel search -s 127.0.0.1 --goal p99:1ms -t 5s

Exit status:
  0    a rate was found that meets the goal
  1    a run failed; the reports say why, or standard error where nothing was measured
  2    wrong usage; nothing was sent
  3    no rate is known to meet the goal, or a verification failed
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the reports are written";

/// The help of `--goal`, which a search requires.
const GOAL: &str = "The limit that the rate has to meet, such as p99:1ms";

/// The help of `--goal` with all that it takes.
const GOAL_IN_FULL: &str = "The limit that the rate has to meet: this quantile of the response time may not be above it, such as \
                            p99:1ms; may be repeated";

/// The role of the stretch after the overload.
const AFTER: &str = "after";

/// How long the server is overloaded.
const OVERLOAD_NS: Nanos = 5 * SECOND;

/// A share such as `2%`, from 0.1 % to 50 %.
fn precision(text: &str) -> Result<f64, ValueError> {
    let number = text.strip_suffix('%').and_then(|number| values::rate(number).ok());
    let share = number.map(|percent| percent / 100.0).filter(|share| (0.001..=0.5).contains(share));
    share.ok_or_else(|| ValueError("expected a share from 0.1% to 50%, such as 2%".to_owned()))
}

/// An option of a run as a search has it: there is nothing to look for without a goal.
fn of_search(arg: Arg) -> Arg {
    if arg.get_id().as_str() == "goal" {
        return arg.required(true).help(GOAL).long_help(GOAL_IN_FULL);
    }
    hidden_where_refused(arg)
}

/// Looks for the greatest rate that meets the goals.
pub fn search(args: &SearchArgs, inputs: &FrontInputs) -> Exit {
    match PreparedSeries::of(&args.run, inputs, Some(1.0), &CLOSED_LOOP_FIRST) {
        Ok(prepared) => {
            let search = RateSearch::new(prepared.seed(), args.precision);
            let choice = Searching { search, asked: None, before: None, overload: None };
            prepared.follow("search", inputs, choice)
        }
        Err(error) => answer(&error.into()),
    }
}

/// A search under way.
struct Searching {
    search: RateSearch,
    /// The run that was asked for last.
    asked: Option<PlannedRun>,
    /// The windows of the run that confirmed the answer.
    before: Option<Windows>,
    /// The rate of the overload, in requests per second.
    overload: Option<f64>,
}

impl Choice for Searching {
    fn next(&mut self) -> Result<Option<Asked>, NotRun> {
        if let Some(PlannedRun { role: Role::Overload, .. }) = self.asked.take() {
            self.search.handle(&RunFindings::default());
        }
        self.asked = self.search.next();
        let Some(ask) = self.asked else { return Ok(None) };
        Ok(match (ask.role, ask.rate, self.search.answer().rate) {
            // The server is overloaded, and the run goes on at the answer.
            (Role::Overload, Some(overload), Some(rate)) => {
                Some(Asked::InTurn([(ask.role.name(), overload), (AFTER, rate)], OVERLOAD_NS))
            }
            (Role::Overload, ..) => None,
            _ => Some(Asked::Rate(ask.role.name(), ask.rate)),
        })
    }

    fn add(
        &mut self,
        finished: Finished,
        point: &Point,
        told: &dyn Fn(&str) -> String,
        curve: &mut CurveDocument,
    ) {
        let Some(ask) = self.asked else { return };
        let windows = finished.measurement.windows.as_ref();
        let mut recovery = None;
        if ask.role == Role::Overload {
            self.overload = ask.rate;
            let both = self.before.as_ref().zip(windows);
            recovery = both.and_then(|(before, whole)| Recovery::of(before, whole, OVERLOAD_NS));
        } else {
            self.search.handle(&RunFindings::of(&finished.measurement, &point.summary, point.carried()));
        }
        if ask.role == Role::Confirm {
            self.before = finished.measurement.windows;
        }
        (curve.found_rate, curve.search) = (self.search.answer().rate, Some(self.found(told, recovery)));
    }
}

impl Searching {
    /// The results so far, with the names that the results tell.
    fn found(&self, told: &dyn Fn(&str) -> String, recovery: Option<Recovery>) -> CurveSearch {
        let mut answer = self.search.answer().clone();
        let mut generator = self.search.generator().cloned();
        let reasons = answer.reason.iter_mut().flat_map(NoRate::names_mut);
        for name in reasons.chain(generator.iter_mut().flat_map(Cause::names_mut)) {
            *name = told(name);
        }
        CurveSearch {
            closed_loop_rate: self.search.capacity(),
            closed_loop_generator: generator.as_ref().map(cause_words),
            line_runs: self.search.line_runs(),
            overload: self.overload.map(|rate| CurveOverload { rate, recovery }),
            ..CurveSearch::of(&answer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::series::SeriesRun;
    use crate::job::series::tests::{finished, plan};

    #[test]
    fn a_search_begins_in_closed_loop_and_its_result_names_that_rate() {
        let plan = plan();
        let search = RateSearch::new(1, None);
        let mut searching = Searching { search, asked: None, before: None, overload: None };
        assert_eq!(searching.next().expect("a run"), Some(Asked::Rate("peak", None)));
        let finished = finished(&SeriesRun::new(&plan, 1));
        let (summary, due_s) = (finished.summary.clone(), f64::INFINITY);
        let point = Point {
            role: "peak",
            asked: None,
            level: None,
            seed: 1,
            due_s,
            wrong_values: None,
            other_outcomes: Vec::new(),
            skipped: 0,
            summary,
        };
        let mut curve = CurveDocument::new("search", &plan, Vec::new());
        searching.add(finished, &point, &str::to_owned, &mut curve);
        let found = curve.search.expect("a search");
        assert_eq!((curve.found_rate, found.closed_loop_rate), (None, point.summary.totals.rate));
        assert!(matches!(searching.next(), Ok(Some(Asked::Rate("search", Some(_))))));
    }

    #[test]
    fn a_precision_is_a_share_in_percent() {
        assert_eq!(precision("2%"), Ok(0.02));
        assert_eq!(precision("0.5%"), Ok(0.005));
        for text in ["2", "0%", "51%", "-1%", "%", "x%", ""] {
            assert!(precision(text).is_err_and(|error| error.to_string().contains("such as 2%")), "{text}");
        }
    }
}
