//! `pummel curve`: the 99th percentile over the rate, at points that lie where the curve bends.

use clap::Args;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::FrontInputs;
use pummel_fronts::native::{RunArgs, Typed};
use pummel_measure::rate_search::placing::{CurvePoint, first_rates, next_rate};
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Summary};
use pummel_measure::uncertainty::Upper;
use pummel_report::curve::Point;
use pummel_report::document::CurveDocument;

use crate::commands::series::{Asked, Choice, PreparedSeries, STATUSES, hidden_where_refused};
use crate::job::runner::NotRun;
use crate::job::series::Finished;
use crate::parser_answer::answer;

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
    match PreparedSeries::of(&args.run, inputs, Some(1.0), &CLOSED_LOOP_FIRST) {
        Ok(prepared) => {
            let choice =
                PlacedPoints { seed: prepared.seed(), capacity: None, first: Vec::new(), points: Vec::new() };
            prepared.follow("curve", inputs, choice)
        }
        Err(error) => answer(&error.into()),
    }
}

/// The first run, which is a closed loop, and one like those that follow: what their rate will be is not known yet.
pub const CLOSED_LOOP_FIRST: [Asked; 2] = [Asked::Rate("peak", None), Asked::Rate("curve", Some(1.0))];

/// Points where the curve bends, after a closed loop.
struct PlacedPoints {
    seed: u64,
    /// The rate of the closed loop, in requests per second; `None` before it was measured.
    capacity: Option<f64>,
    /// Rates that are left of those that do not depend on other points; the last one is next.
    first: Vec<f64>,
    points: Vec<CurvePoint>,
}

impl Choice for PlacedPoints {
    fn next(&mut self) -> Result<Option<Asked>, NotRun> {
        let Some(capacity) = self.capacity else { return Ok(Some(CLOSED_LOOP_FIRST[0])) };
        if capacity <= 0.0 {
            return Err(NotRun::Server("the server completed nothing in a closed loop".to_owned().into()));
        }
        let next = self.first.pop().or_else(|| next_rate(&self.points, capacity));
        Ok(next.map(|rate| Asked::Rate("curve", Some(rate))))
    }

    fn add(&mut self, _: Finished, point: &Point, _: &dyn Fn(&str) -> String, _: &mut CurveDocument) {
        let Some(rate) = point.asked else {
            let capacity = point.summary.totals.rate;
            (self.capacity, self.first) = (Some(capacity), first_rates(capacity, self.seed));
            return;
        };
        // What was not carried has no steady quantile; it is the end of the curve.
        let value = if point.carried() { value_of(&point.summary) } else { None };
        self.points.push(CurvePoint { rate, value: value.unwrap_or((f64::MAX, f64::MAX, f64::MAX)) });
    }
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

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;
    use pummel_report::example::Run;

    use super::*;
    use crate::job::series::SeriesRun;
    use crate::job::series::tests::{finished, plan};

    /// A point of a run at a rate that completed so many requests per second.
    fn point(asked: Option<f64>, rate: f64) -> Point {
        let mut summary = Run::new(Keep::Figures).report(|report| report.summary.clone());
        summary.totals.rate = rate;
        Point {
            role: "curve",
            asked,
            level: None,
            seed: 1,
            due_s: 2.0,
            wrong_values: None,
            other_outcomes: Vec::new(),
            skipped: 0,
            summary,
        }
    }

    fn add(points: &mut PlacedPoints, point: &Point) {
        let plan = plan();
        let finished = finished(&SeriesRun::new(&plan, 1));
        let mut curve = CurveDocument::new("curve", &plan, Vec::new());
        points.add(finished, point, &str::to_owned, &mut curve);
    }

    fn new() -> PlacedPoints {
        PlacedPoints { seed: 1, capacity: None, first: Vec::new(), points: Vec::new() }
    }

    #[test]
    fn a_curve_begins_in_closed_loop_and_has_rates_below_its_rate() {
        let mut points = new();
        assert_eq!(points.next().expect("a run"), Some(Asked::Rate("peak", None)));
        add(&mut points, &point(None, 1_000.0));
        let mut rates = Vec::new();
        while let Some(Asked::Rate("curve", Some(rate))) = points.next().expect("a run or none") {
            rates.push(rate);
            add(&mut points, &point(Some(rate), rate));
        }
        assert!((12..=20).contains(&rates.len()), "{rates:?}");
        assert!(rates.iter().all(|rate| (1.0..=900.1).contains(rate)), "{rates:?}");
    }

    #[test]
    fn a_closed_loop_without_a_reply_has_no_curve() {
        let mut points = new();
        add(&mut points, &point(None, 0.0));
        let end = points.next().expect_err("there is no rate");
        assert_eq!(end.to_string(), "the server completed nothing in a closed loop");
    }
}
