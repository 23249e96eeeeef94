//! Runs at several rates or levels: their document from what was measured, and the document as text, Markdown and CSV.

use pummel_logic::time::{MICROSECOND, Nanos, seconds};
use pummel_measure::cross_checks::QueueFit;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::rate_search::placing::never_falling;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, Summary};
use pummel_measure::uncertainty::Upper;
use pummel_measure::uncertainty::steadiness::Steadiness;

use crate::csv::{Cell, Csv};
use crate::document::trust::ReliableFigures;
use crate::document::{CurveDocument, CurveFit, CurveLevel, CurveRun, Named, OtherOutcomes};
pub use crate::json::render as json;
use crate::markdown;
use crate::scaling::{law_of, levels};
use crate::screen::{Hints, Paper, draw};
use crate::text::Detail;
use crate::view::run::Wanted;
use crate::view::series;
use crate::visible;
use crate::words::limit::cause_words;

/// A rate that is missed by no more than this share is carried all the same.
const SHORT: f64 = 0.05;

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Purpose of the run: `peak`, `search`, `around`, `confirm`, `overload`, `after`, `scan` or `curve`.
    pub role: &'static str,
    /// Requests per second that were asked for; `None` in closed loop.
    pub asked: Option<f64>,
    /// The resource that a scan in closed loop changes, and how much of it the run had; `None` for other series.
    pub level: Option<(&'static str, u32)>,
    /// The seed of its arrivals and of its choice of keys.
    pub seed: u64,
    /// Time in seconds in which the requests came; without bound in closed loop.
    pub due_s: f64,
    /// Values that were wrong, or older than what the same client had stored; `None` where none are checked.
    pub wrong_values: Option<u64>,
    /// Requests that may store or find nothing, by operation.
    pub other_outcomes: Vec<OtherOutcomes>,
    /// Number of due requests that were not made, since they were late.
    pub skipped: u64,
    /// Figures of the run.
    pub summary: Summary,
}

impl Point {
    /// Whether requests were answered about as fast as they came, so that this could have gone on: 95 % of them were, and
    /// that took hardly longer than their coming. The slowest request, for which the end has to wait, does not count.
    pub fn carried(&self) -> bool {
        let totals = &self.summary.totals;
        let slowest_s = seconds(totals.figures[Span::Service as usize].exact.max);
        let unanswered = totals.counts.unanswered() as f64;
        unanswered <= SHORT * totals.counts.requests() as f64
            && self.summary.seconds - slowest_s <= self.due_s / (1.0 - SHORT)
    }

    /// The run as the document of a series has it.
    pub fn document(&self) -> CurveRun {
        let micros = |ns: u64| ns as f64 / MICROSECOND as f64;
        let (summary, totals) = (&self.summary, &self.summary.totals);
        let response = &totals.figures[Span::Response as usize];
        let quantiles = || QUANTILES.iter().map(|(name, _)| *name).zip(&response.quantiles);
        let above = quantiles().filter_map(|(name, quantile)| match quantile {
            Quantile::Above(ns) => Some((name, micros(*ns))),
            Quantile::Known(_) | Quantile::Absent => None,
        });
        let rate_ci = totals.certainty.as_ref().and_then(|certainty| certainty.rate);
        CurveRun {
            role: self.role.to_owned(),
            asked_rate: self.asked,
            level: self.level.map(|(of, n)| CurveLevel { of: of.to_owned(), n }),
            smooth_p99_us: None,
            seed: self.seed,
            rate: totals.rate,
            rate_ci: rate_ci.map(|range| [range.low, range.high]),
            seconds: summary.seconds,
            due_s: Some(self.due_s).filter(|due_s| due_s.is_finite()),
            requests: totals.counts.requests(),
            unanswered: totals.counts.unanswered(),
            mean_response_us: response.exact.mean_ns().map(|ns| ns / MICROSECOND as f64),
            response_us: quantiles().map(|(name, quantile)| (name, quantile.known().map(micros))).collect(),
            response_above_us: above.collect(),
            response_ci_us: self.intervals_us(),
            server_cpu_us_per_request: summary.server_cpu_ns_per_request.map(|ns| ns / MICROSECOND as f64),
            met: self.met(),
            sure: self.met().map(|met| self.is_sure(met)),
            carried: self.carried(),
            steady: summary.steadiness.as_ref().map(Steadiness::is_steady),
            wrong_values: self.wrong_values,
            other_outcomes: self.other_outcomes.clone(),
            limit: summary.limit(self.asked.is_some(), self.skipped).name().to_owned(),
            says: cause_words(&summary.verdict.cause),
            cause: Some(summary.verdict.cause.clone()),
            trust: summary.trust.ok,
            reliable: ReliableFigures::of(summary.trust.kind),
            mostly_lag: summary.trust.mostly_lag.iter().map(|name| (*name).to_owned()).collect(),
            outcome: RunOutcome::of(summary.ending.as_ref()),
        }
    }

    /// Whether it met every goal; `None` without goals, and where no request was due.
    fn met(&self) -> Option<bool> {
        let is_judged = !self.summary.goals.is_empty() && self.summary.totals.counts.requests() > 0;
        is_judged.then(|| !self.summary.missed_a_goal())
    }

    /// Whether the 95 % intervals of the quantiles say of the goals what the quantiles themselves do, by which the goals were met or
    /// not. Of a quantile that has no interval in any report nothing else is known, and it says what it says.
    fn is_sure(&self, met: bool) -> bool {
        let ends: Vec<[Option<Nanos>; 2]> = self.ends_ns().collect();
        let goals = self.summary.goals.iter().filter(|result| met || result.met != Some(true));
        let mut says = goals.map(|result| {
            let at = QUANTILES.iter().position(|(_, quantile)| *quantile == result.goal.quantile)?;
            let [low, high] = ends.get(at).copied().unwrap_or_default();
            let is_beyond = !matches!(result.reached, Quantile::Known(_));
            Some(match result.met {
                Some(true) => high.is_some_and(|high| high <= result.goal.limit_ns),
                _ => is_beyond || low.is_some_and(|low| low > result.goal.limit_ns),
            })
        });
        // One missed goal is enough.
        if met { says.all(|says| says.unwrap_or(true)) } else { says.any(|says| says.unwrap_or(true)) }
    }

    /// The ends of the intervals of the quantiles, in microseconds; `None` where an end is not known.
    fn intervals_us(&self) -> Named<[Option<f64>; 2]> {
        let micros = |end: Option<Nanos>| end.map(|ns| ns as f64 / MICROSECOND as f64);
        let named = QUANTILES.iter().map(|(name, _)| *name).zip(self.ends_ns());
        named.map(|(name, ends)| (name, ends.map(micros))).collect()
    }

    /// The ends of the intervals of the quantiles, lower and upper, in nanoseconds; `None` where an end is not known.
    fn ends_ns(&self) -> impl Iterator<Item = [Option<Nanos>; 2]> {
        let certainty = self.summary.totals.certainty.as_ref();
        let times = certainty.and_then(|certainty| certainty.of_span(Span::Response)).cloned();
        times.unwrap_or_default().quantiles.into_iter().map(|bounds| {
            let high = bounds.and_then(|bounds| match bounds.high {
                Upper::Known(high) => Some(high),
                Upper::Unanswered | Upper::Open => None,
            });
            let low = bounds.and_then(|bounds| bounds.low);
            [low, high]
        })
    }
}

/// Adds a run to a series, and what the runs show together.
pub fn push(curve: &mut CurveDocument, run: CurveRun) {
    curve.runs.push(run);
    curve.fit = fit_of(&curve.runs);
    curve.scalability = law_of(&levels(curve));
    if curve.command == "curve" {
        smooth(&mut curve.runs);
    }
}

/// Text of a series, with a line end after each line.
pub fn text(curve: &CurveDocument, detail: Detail, paper: Paper) -> String {
    match detail {
        Detail::Line => format!("{}\n", visible::words(&series::brief(curve))),
        Detail::Screen | Detail::Times => draw(&series::view(curve, Wanted::Screen), paper),
        Detail::Everything => {
            draw(&series::view(curve, Wanted::Everything), Paper { hints: Hints::None, ..paper })
        }
    }
}

/// A series for the page of a job or a comment.
pub fn markdown(curve: &CurveDocument) -> Vec<u8> {
    markdown::render(&series::view(curve, Wanted::Everything))
}

/// A line of one queue that is further than this from a run does not fit.
const FIT_ERROR_MAX: f64 = 0.1;

/// The line of one queue through the runs that were carried and in which every request was answered; absent where none
/// fits them.
fn fit_of(runs: &[CurveRun]) -> Option<CurveFit> {
    let points: Vec<(f64, f64)> = runs.iter().filter_map(CurveRun::mean_response).collect();
    QueueFit::of(&points).filter(|fit| fit.error <= FIT_ERROR_MAX).map(|fit| CurveFit::of(&fit))
}

/// Gives each run p99 on a line that never falls with the rate; `None` where p99 is not known, and in closed loop.
fn smooth(runs: &mut [CurveRun]) {
    let known = |(number, run): (usize, &CurveRun)| {
        let us = run.response_us.get("p99").copied().flatten().filter(|_| run.carried)?;
        Some((number, run.asked_rate?, us.max(1e-3).ln()))
    };
    let mut points: Vec<(usize, f64, f64)> = runs.iter().enumerate().filter_map(known).collect();
    points.sort_by(|one, other| one.1.total_cmp(&other.1));
    let values: Vec<f64> = points.iter().map(|(_, _, value)| *value).collect();
    runs.iter_mut().for_each(|run| run.smooth_p99_us = None);
    for ((number, ..), value) in points.iter().zip(never_falling(&values)) {
        runs[*number].smooth_p99_us = Some(value.exp());
    }
}

/// The whole curve as CSV; times are microseconds, and empty where they are not known.
pub fn csv(curve: &CurveDocument) -> Vec<u8> {
    let mut names: Vec<String> = ["role", "asked_rate", "rate", "met"].map(str::to_owned).to_vec();
    names.extend(QUANTILES.map(|(name, _)| format!("response_{name}_us")));
    names.extend(["carried", "limit", "trust"].map(str::to_owned));
    names.extend(
        QUANTILES.iter().flat_map(|(name, _)| ["low", "high"].map(|end| format!("response_{name}_us_{end}"))),
    );
    names.extend(["level_of", "level"].map(str::to_owned));
    let mut table = Csv::with_header(names.iter().map(String::as_str));
    for run in &curve.runs {
        let mut cells: Vec<Cell<'_>> = vec![run.role.as_str().into(), run.asked_rate.into()];
        cells.extend([run.rate.into(), run.met.into()]);
        cells.extend(run.times().into_iter().map(|(_, us)| Cell::from(us)));
        cells.extend([run.carried.into(), run.limit.as_str().into(), run.trust.into()]);
        let ends =
            QUANTILES.iter().map(|(name, _)| run.response_ci_us.get(name).copied().unwrap_or_default());
        cells.extend(ends.flatten().map(Cell::from));
        let (of, n) = run.level.as_ref().map(|level| (level.of.as_str(), u64::from(level.n))).unzip();
        cells.extend([of.into(), n.into()]);
        table.row(cells);
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Goal;
    use pummel_measure::certainty::{Certainty, TimesCertainty};
    use pummel_measure::limit::{Cause, Limit, LostCpu};
    use pummel_measure::measurement::Keep;
    use pummel_measure::summary::GoalResult;
    use pummel_measure::uncertainty::Bounds;
    use serde_json::Value;

    use super::*;
    use crate::document::CurveSearch;
    use crate::example::Run;
    use crate::stored::{self, ResultDocument};

    /// A run of two seconds that asked for this rate and whose requests were due in so many seconds.
    fn point(asked: f64, due_s: f64) -> Point {
        let mut summary = Run::new(Keep::Figures).report(|report| report.summary.clone());
        summary.verdict.limit = Limit::None;
        Point {
            role: "scan",
            asked: Some(asked),
            level: None,
            seed: 7,
            due_s,
            wrong_values: None,
            other_outcomes: Vec::new(),
            skipped: 0,
            summary,
        }
    }

    fn series(command: &str, points: &[Point]) -> CurveDocument {
        let mut curve = CurveDocument::new(command, &Run::new(Keep::Figures).plan, Vec::new());
        points.iter().for_each(|point| push(&mut curve, point.document()));
        curve
    }

    /// A scan of two runs of two seconds each, in which as many requests were due in two seconds and in one.
    fn scan() -> CurveDocument {
        series("scan", &[point(1_000.0, 2.0), point(2_000.0, 1.0)])
    }

    fn screen(curve: &CurveDocument) -> String {
        text(curve, Detail::Screen, Paper::default())
    }

    fn everything(curve: &CurveDocument) -> String {
        text(curve, Detail::Everything, Paper::of_width(120))
    }

    #[test]
    fn a_rate_whose_requests_needed_twice_the_time_was_not_carried() {
        let curve = scan();
        assert_eq!(curve.runs.iter().map(|run| run.carried).collect::<Vec<_>>(), [true, false]);
        let said = screen(&curve);
        assert!(said.lines().last().is_some_and(|line| line.ends_with("   not carried")), "{said}");
        assert!(said.contains("Result   p99 is 92.9 us at 1,000 req/s; from 2,000/s on less was"), "{said}");
    }

    #[test]
    fn every_form_says_what_was_carried_and_who_was_the_limit() {
        let mut curve = scan();
        curve.runs[0].limit = "generator".to_owned();
        curve.runs[1].trust = false;
        let said = screen(&curve);
        assert!(
            said.lines().any(|line| line.starts_with("    1,000") && line.ends_with("   - pummel")),
            "{said}"
        );
        assert!(
            said.contains("Trust    NOT RELIABLE: pummel was the limit in 1 of 2 runs (-), the times"),
            "{said}"
        );
        let result: Value = serde_json::from_slice(&json(&curve)).expect("JSON");
        let fields = |name: &str| [&result["runs"][0][name], &result["runs"][1][name]];
        assert_eq!(fields("carried"), [true, false]);
        assert_eq!(fields("limit")[0], "generator");
        assert_eq!(fields("trust"), [true, false]);
        assert_eq!(fields("outcome"), ["ok", "ok"]);
        let rows = String::from_utf8(csv(&curve)).expect("UTF-8");
        let rows: Vec<&str> = rows.lines().collect();
        assert!(
            rows[0].contains(",carried,limit,trust,response_p50_us_low,response_p50_us_high,"),
            "{rows:?}"
        );
        assert!(rows[1].contains(",true,generator,true,") && rows[2].contains(",false,"), "{rows:?}");
        assert!(rows.iter().all(|row| row.split(',').count() == rows[0].split(',').count()));
    }

    #[test]
    fn a_rate_that_was_carried_in_spite_of_late_requests_has_no_limit_and_no_figures_of_the_server() {
        let mut late = point(1_000.0, 2.0);
        let busy = Cause::GeneratorCpuTaken(LostCpu {
            agent: None,
            share: 0.1,
            lost_ns: 4 * MICROSECOND,
            taken: None,
        });
        (late.summary.verdict.limit, late.summary.verdict.cause) = (Limit::Generator, busy);
        late.summary.trust.ok = false;
        let run = late.document();
        assert_eq!(
            (&*run.limit, run.is_limited_by_generator(), run.is_of_generator()),
            ("none", false, true)
        );
        let said = screen(&series("curve", &[late.clone(), point(2_000.0, 2.0)]));
        assert!(
            said.contains("partly pummel's own in 1") && !said.contains("pummel was the limit"),
            "{said}"
        );
        late.skipped = 1_000;
        assert_eq!(late.document().limit, "generator", "a third was not carried");
    }

    #[test]
    fn a_goal_is_met_or_missed_for_sure_where_the_interval_of_its_quantile_says_the_same() {
        let mut point = point(1_000.0, 2.0);
        let bounds = Bounds { low: Some(1_000), high: Upper::Known(2_000), effective: 1e3, spells: 1e3 };
        let times = TimesCertainty { quantiles: [Some(bounds); QUANTILES.len()], mean: None };
        let times = std::array::from_fn(|_| times.clone());
        point.summary.totals.certainty = Some(Certainty { times, rate: None, hit_share: None });
        let reached = Quantile::Known(1_500);
        let mut judged = |limit_ns: Nanos, met: bool| {
            let goal = Goal { quantile: 0.99, limit_ns };
            point.summary.goals = vec![GoalResult { goal, reached, met: Some(met) }];
            point.document().sure
        };
        assert_eq!([judged(2_000, true), judged(1_999, true)], [Some(true), Some(false)]);
        assert_eq!([judged(999, false), judged(1_000, false)], [Some(true), Some(false)]);
    }

    #[test]
    fn a_scan_over_connections_has_a_column_of_that_name_and_fits_no_run_of_the_generator() {
        let mut points = [1, 2, 4, 8, 16, 32].map(|level| Point {
            asked: None,
            level: Some(("connections", level)),
            due_s: f64::INFINITY,
            ..point(1_000.0, 2.0)
        });
        let curve = series("scan", &points);
        let said = screen(&curve);
        let rows: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("connections")).collect();
        assert!(rows[1].starts_with("          1 ") && rows[6].starts_with("         32 "), "{said}");
        assert!(
            curve.scalability.is_some() && everything(&curve).contains("universal scalability law"),
            "{said}"
        );
        points[2].summary.verdict.limit = Limit::Generator;
        let curve = series("scan", &points);
        let said = everything(&curve);
        assert_eq!(curve.scalability, None);
        assert!(
            said.contains("not known: it takes six levels, ") && said.contains("1 level left out"),
            "{said}"
        );
    }

    #[test]
    fn the_levels_of_a_scan_in_closed_loop_are_in_its_rows() {
        let mut curve = scan();
        for (run, n) in curve.runs.iter_mut().zip([1, 64]) {
            (run.asked_rate, run.level) = (None, Some(CurveLevel { of: "connections".to_owned(), n }));
        }
        let rows = String::from_utf8(csv(&curve)).expect("UTF-8");
        let rows: Vec<&str> = rows.lines().collect();
        assert!(rows[0].ends_with(",level_of,level"), "{rows:?}");
        assert!(rows[1].ends_with(",connections,1") && rows[2].ends_with(",connections,64"), "{rows:?}");
        let plain = String::from_utf8(csv(&scan())).expect("UTF-8");
        assert!(plain.lines().skip(1).all(|row| row.ends_with(",,")), "{plain}");
    }

    /// A scan of five runs whose mean responses are those of one queue with a constant service of 20 us.
    fn scan_of_a_queue(cpu_ns: Option<f64>) -> CurveDocument {
        let of_load = |load: f64| {
            let mut point = point(1_000.0, 2.0);
            point.summary.totals.rate = load / 20e-6;
            point.summary.server_cpu_ns_per_request = cpu_ns;
            let exact = &mut point.summary.totals.figures[Span::Response as usize].exact;
            exact.sum = (exact.count as f64 * (20_000.0 + 20_000.0 * load / (2.0 * (1.0 - load)))) as u128;
            point
        };
        series("scan", &[0.1, 0.3, 0.5, 0.7, 0.9].map(of_load))
    }

    #[test]
    fn a_stored_series_is_shown_as_it_was_printed() {
        let mut lost = point(3_000.0, 2.0);
        lost.summary.totals.figures[Span::Response as usize].quantiles[5] = Quantile::Above(2_000_000_000);
        let mut levels = scan();
        for (number, run) in levels.runs.iter_mut().enumerate() {
            (run.asked_rate, run.level) =
                (None, Some(CurveLevel { of: "threads".to_owned(), n: 1 << number }));
        }
        let mut search = series("search", &[point(1_000.0, 2.0), lost.clone()]);
        search.found_rate = Some(1_000.0);
        search.search = Some(CurveSearch { line_runs: 2, ..CurveSearch::default() });
        search.reason = Some("interrupted".to_owned());
        let mut anonymous = Run::new(Keep::Figures).plan;
        anonymous.anonymous = true;
        let bare = CurveDocument::new("scan", &anonymous, Vec::new());
        assert!(bare.plan.is_none() && everything(&search).contains("> 2.00 s"), "{}", everything(&search));
        let curve = series("curve", &[point(1_000.0, 2.0), lost]);
        assert!(curve.runs[0].smooth_p99_us.is_some());
        for made in [scan(), scan_of_a_queue(Some(19_000.0)), levels, search, bare, curve] {
            let bytes = json(&made);
            let Ok(ResultDocument::Series(read)) = stored::read(&bytes) else { panic!("a series") };
            assert_eq!(*read, made);
            assert_eq!((json(&read), screen(&read), csv(&read)), (bytes, screen(&made), csv(&made)));
        }
    }

    #[test]
    fn a_scan_of_one_queue_says_what_the_queue_is() {
        let said = everything(&scan_of_a_queue(Some(19_000.0)));
        let words = "us for a request, at most 50,";
        assert!(said.contains(words) && said.contains("that queue is its CPU"), "{said}");
        assert!(everything(&scan_of_a_queue(Some(80_000.0))).contains("its threads work side by side"));
        assert!(everything(&scan_of_a_queue(Some(2_000.0))).contains("takes 2.00 us of that"));
        let result: Value = serde_json::from_slice(&json(&scan_of_a_queue(None))).expect("JSON");
        let service_us = result["fit"]["service_us"].as_f64().expect("it fits");
        assert!((service_us - 20.0).abs() < 0.2, "{service_us}");
        let two = scan();
        assert!(!everything(&two).contains("queue"), "two runs are no line");
    }
}
