//! `pummel curve`: the 99th percentile over the rate, at points that lie where the curve bends.

use clap::Args;
use pummel_measure::rate_search::placing::{CurvePoint, first_rates, next_rate};
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Summary};
use pummel_measure::uncertainty::Upper;

use crate::commands::run_maker::SeriesEnd;
use crate::commands::series::{CurveRunner, STATUSES, first_job, hidden_where_refused, prepared, series};
use crate::parser_answer::answer;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::FrontInputs;
use pummel_fronts::native::{RunArgs, Typed};

/// Options of `pummel curve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES}"), mut_args(hidden_where_refused))]
pub struct CurveArgs {
    /// Those of `pummel run`, for every run.
    #[command(flatten)]
    pub run: Typed<RunArgs>,
}

const EXAMPLES: &str = "\
A closed-loop run finds the greatest rate, C. Five runs at rates up to 0.9 C follow, in random order; each further run goes where the \
p99 of two neighbours differs most beyond their 95 % intervals. In all, 12 to 20 runs are made at fixed rates. With --goal the \
exit status is 3 if a run misses the goal.

Example, which takes about two minutes:
  pummel curve -s 127.0.0.1 -t 5s --csv curve.csv";

/// Measures at rates that are chosen one after the other.
pub fn curve(args: &CurveArgs, inputs: &FrontInputs) -> Exit {
    let (run, detection) = match prepared(&args.run, inputs, Some(1.0)) {
        Ok(found) => found,
        Err(error) => return answer(&error.into()),
    };
    // The first run is a closed loop; what its rate will be is not known yet.
    let job = first_job(&run, inputs, &[None, Some(1.0)]);
    series("curve", (&run, detection), inputs, job, |runner, job| place_points(runner, job.plan.seed))
}

fn place_points(runner: &mut CurveRunner<'_>, seed: u64) -> Result<(), SeriesEnd> {
    runner.measure("peak", None)?;
    let capacity = runner.last().map_or(0.0, |point| point.summary.totals.rate);
    if capacity <= 0.0 {
        return Err(SeriesEnd::Failed("the server completed nothing in a closed loop".to_owned().into()));
    }
    let mut points = Vec::new();
    let mut first = first_rates(capacity, seed);
    while let Some(rate) = first.pop().or_else(|| next_rate(&points, capacity)) {
        runner.measure("curve", Some(rate))?;
        let point = runner.last().expect("a run was just made");
        // What was not carried has no steady quantile; it is the end of the curve.
        let value = if point.carried() { value_of(&point.summary) } else { None };
        points.push(CurvePoint { rate, value: value.unwrap_or((f64::MAX, f64::MAX, f64::MAX)) });
    }
    Ok(())
}

/// The logarithm of p99 in nanoseconds, and those of the ends of its interval; `None` where p99 is not known.
fn value_of(summary: &Summary) -> Option<(f64, f64, f64)> {
    let at = QUANTILES.iter().position(|(name, _)| *name == "p99")?;
    let value = summary.totals.figures[Span::Response as usize].quantiles[at].known()?;
    let times = summary.totals.certainty.as_ref().and_then(|certainty| certainty.of_span(Span::Response));
    let bounds = times.and_then(|times| times.quantiles[at]);
    let log = |ns: u64| (ns.max(1) as f64).ln();
    let low = bounds.and_then(|bounds| bounds.low).unwrap_or(value);
    let high = match bounds.map(|bounds| bounds.high) {
        Some(Upper::Known(high)) => high,
        Some(Upper::Unanswered | Upper::Open) | None => value,
    };
    Some((log(value), log(low), log(high)))
}
