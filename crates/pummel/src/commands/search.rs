//! `pummel search`: the greatest rate that meets the goals, with 95 % confidence.

use clap::{Arg, Args};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::limit::Cause;
use pummel_measure::rate_search::{NoRate, PlannedRun, RateSearch, Recovery, Role, RunFindings};
use pummel_measure::uncertainty::Windows;

use crate::commands::run_maker::SeriesEnd;
use crate::commands::series::{CurveRunner, first_job, hidden_where_refused, prepared, series};
use crate::exit_status::{Exit, answer};
use crate::job::FrontInputs;
use crate::job::hints::Obstacle;
use crate::native::{RunArgs, Typed};
use crate::values::{self, ValueError};
use pummel_report::document::{CurveOverload, CurveSearch};
use pummel_report::words::limit::cause_words;

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
const GOAL: &str = "The limit that the rate has to meet: this quantile of the response time may not be above it, such as p99:1ms; \
                    may be repeated";

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
        return arg.required(true).help(GOAL);
    }
    hidden_where_refused(arg)
}

/// Looks for the greatest rate that meets the goals.
pub fn search(args: &SearchArgs, inputs: &FrontInputs) -> Exit {
    let (run, detection) = match prepared(&args.run, inputs, Some(1.0)) {
        Ok(found) => found,
        Err(error) => return answer(&error.into()),
    };
    // The first run is a closed loop; what its rate will be is not known yet.
    let job = first_job(&run, inputs, &[None, Some(1.0)]);
    series("search", (&run, detection), inputs, job, |runner, job| {
        let search = RateSearch::new(job.plan.seed, args.precision);
        Searching { search, before: None, overload: None }.run(runner)?;
        Ok(())
    })
}

/// A search under way.
struct Searching {
    search: RateSearch,
    /// The windows of the run that confirmed the answer.
    before: Option<Windows>,
    /// The rate of the overload, in requests per second.
    overload: Option<f64>,
}

impl Searching {
    /// Makes all runs. The result so far is in the curve of `runner` also where it ends early.
    fn run(&mut self, runner: &mut CurveRunner<'_>) -> Result<(), SeriesEnd> {
        while let Some(ask) = self.search.next() {
            let name = ask.role.name();
            match ask.role {
                Role::Overload => {
                    self.overload(runner, ask)?;
                    self.search.handle(&RunFindings::default());
                }
                Role::Peak | Role::Halve | Role::Around | Role::Confirm => {
                    let measurement = runner.measure(name, ask.rate)?;
                    let point = runner.last().expect("a run was just made");
                    self.search.handle(&RunFindings::of(&measurement, &point.summary, point.carried()));
                    if ask.role == Role::Confirm {
                        self.before = measurement.windows;
                    }
                    let found = self.found(runner, None);
                    runner.set_found(self.search.answer().rate, found);
                }
            }
        }
        Ok(())
    }

    /// Overloads the server and goes on at the answer, in one run.
    fn overload(&mut self, runner: &mut CurveRunner<'_>, ask: PlannedRun) -> Result<(), SeriesEnd> {
        let (Some(overload), Some(rate)) = (ask.rate, self.search.answer().rate) else { return Ok(()) };
        let stretches = [(ask.role.name(), overload), (AFTER, rate)];
        let whole = runner.measure_in_turn(stretches, OVERLOAD_NS).map_err(|why| beyond_answer(why, ask))?;
        let Some(whole) = whole else { return Ok(()) };
        self.overload = Some(overload);
        let recovery = self.before.as_ref().zip(whole.windows.as_ref());
        let recovery = recovery.and_then(|(before, whole)| Recovery::of(before, whole, OVERLOAD_NS));
        let found = self.found(runner, recovery);
        runner.set_found(self.search.answer().rate, found);
        Ok(())
    }

    /// The results so far, with the names that the results tell.
    fn found(&self, runner: &CurveRunner<'_>, recovery: Option<Recovery>) -> CurveSearch {
        let mut answer = self.search.answer().clone();
        let mut generator = self.search.generator().cloned();
        let names = answer.reason.iter_mut().flat_map(NoRate::names_mut);
        for name in names.chain(generator.iter_mut().flat_map(Cause::names_mut)) {
            *name = runner.told(name);
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

/// The end of a search whose answer is known and stays, although the run with the overload failed.
fn beyond_answer(why: SeriesEnd, ask: PlannedRun) -> SeriesEnd {
    let rate = ask.rate.unwrap_or_default();
    match why {
        SeriesEnd::Failed(Obstacle { reason, hint, .. })
        | SeriesEnd::Partial(Obstacle { reason, hint, .. }) => {
            let reason = format!(
                "the answer was known when the server was overloaded, with {rate:.0} requests per second, and the run with \
                 that overload failed: {reason}"
            );
            SeriesEnd::Failed(Obstacle { reason, shown: None, hint })
        }
        why => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_in_the_overload_is_named_and_fails_the_search() {
        let ask = PlannedRun { role: Role::Overload, rate: Some(900.0) };
        let why = beyond_answer(SeriesEnd::Failed("a:1: connection refused".to_owned().into()), ask);
        let SeriesEnd::Failed(Obstacle { reason: said, .. }) = why else { panic!("it failed") };
        assert!(said.contains("overloaded, with 900 requests"), "{said}");
        assert!(said.ends_with("a:1: connection refused"), "{said}");
        assert!(matches!(beyond_answer(SeriesEnd::Interrupted, ask), SeriesEnd::Interrupted));
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
