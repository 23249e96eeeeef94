//! Runs at several rates, side by side: as text, JSON and CSV.

use std::fmt::Write as _;

use pummel_logic::plan::{Goal, Labels, Plan};
use pummel_logic::time::{MICROSECOND, Nanos, seconds};
use pummel_measure::cross_checks::QueueFit;
use pummel_measure::limit::Limit;
use pummel_measure::rate_search::placing::never_falling;
use pummel_measure::recorder::Span;
use pummel_measure::scalability::Level;
use pummel_measure::summary::{QUANTILES, Quantile, Summary, time_text};
use pummel_measure::uncertainty::Upper;
use pummel_measure::words::{counted, percent, rate_text};
use serde_json::{Value, json};

use crate::VERSION;
use crate::csv::{Cell, Csv};
use crate::markdown;
use crate::run_figures::{lag_words, made_again_words};
use crate::scalability_words;
use crate::search_words;
use crate::search_words::{SearchResult, SingleRuns};
use crate::words::limit::cause_words;

/// The layout of the JSON that this version writes.
const SCHEMA: u32 = 1;

/// A rate that is missed by no more than this share is carried all the same.
const SHORT: f64 = 0.05;

/// Runs whose rates differ by less than this share are runs at one rate.
const SAME_RATE: f64 = 0.005;

/// Runs at several rates.
#[derive(Clone, Debug)]
pub struct Curve {
    /// `search`, `scan` or `curve`.
    pub command: &'static str,
    /// What runs were held to.
    pub goals: Vec<Goal>,
    /// Names and values that the user gave the runs.
    pub labels: Labels,
    /// Plan of the first run; `None` if names are left out.
    pub plan: Option<Plan>,
    /// The command line; empty where names are left out.
    pub argv: Vec<String>,
    /// In the order in which they were made.
    pub points: Vec<Point>,
    /// What a search found; `None` for other series.
    pub search: Option<SearchResult>,
    /// How many runs failed and were made again, which are none of `points`.
    pub made_again: u32,
    /// Why there are no more runs, where some are missing.
    pub reason: Option<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Why it was made: `peak`, `search`, `around`, `confirm`, `overload`, `after` or `scan`.
    pub role: &'static str,
    /// Requests per second that were asked for; `None` in closed loop.
    pub asked: Option<f64>,
    /// What a scan in closed loop changes, and how much of it the run had; `None` for other series.
    pub level: Option<(&'static str, u32)>,
    /// The seed of its arrivals and of its choice of keys.
    pub seed: u64,
    /// In how many seconds the requests came; without bound in closed loop.
    pub due_s: f64,
    /// Values that were wrong, or older than what the same client had stored; `None` where none are checked.
    pub wrong_values: Option<u64>,
    /// What it showed.
    pub summary: Summary,
}

impl Curve {
    /// The greatest rate at which single runs met the goals; `None` where none did.
    fn met_up_to(&self) -> Option<SingleRuns> {
        // A run that the generator limited says nothing of the server, however long it is.
        let met = |point: &&Point| point.carried() && point.met() == Some(true) && !point.is_of_generator();
        let rate = self.points.iter().filter(met).filter_map(|point| point.asked).reduce(f64::max)?;
        let there = |point: &&Point| {
            let is_near = point.asked.is_some_and(|asked| (asked / rate - 1.0).abs() < SAME_RATE);
            is_near && !["overload", "after"].contains(&point.role)
        };
        let runs: Vec<&Point> = self.points.iter().filter(there).collect();
        Some(SingleRuns {
            rate,
            made: runs.len(),
            met: runs.iter().copied().filter(met).count(),
            seconds: runs.first().map_or(0.0, |point| point.due_s),
            is_steady: !runs.iter().any(|point| point.is_unsteady()),
        })
    }

    /// Wrong values of all runs.
    pub fn wrong_values(&self) -> u64 {
        self.points.iter().filter_map(|point| point.wrong_values).sum()
    }
}

impl Point {
    /// Whether it met every goal; `None` without goals, and where no request was due.
    pub fn met(&self) -> Option<bool> {
        let is_judged = !self.summary.goals.is_empty() && !self.is_idle();
        is_judged.then(|| !self.summary.missed_a_goal())
    }

    /// Whether no request was due in it.
    pub fn is_idle(&self) -> bool {
        self.summary.totals.counts.requests() == 0
    }

    /// Whether requests were answered about as fast as they came, so that this could have gone on: 95 % of them were, and
    /// that took hardly longer than their coming. The slowest request, for which the end has to wait, does not count.
    pub fn carried(&self) -> bool {
        let totals = &self.summary.totals;
        let slowest_s = seconds(totals.figures[Span::Service as usize].exact.max);
        let unanswered = totals.counts.unanswered() as f64;
        unanswered <= SHORT * totals.counts.requests() as f64
            && self.summary.seconds - slowest_s <= self.due_s / (1.0 - SHORT)
    }

    fn limited_by(&self) -> &'static str {
        match self.summary.verdict.limit {
            Limit::None | Limit::Unknown => "-",
            limit => limit.name(),
        }
    }

    /// What became of the rate and of the goals, in a word; nothing where there is nothing to say.
    fn fate(&self) -> &'static str {
        match self.met() {
            _ if !self.carried() => "not carried",
            None if self.is_idle() => "no request due",
            None => "-",
            // What a run shows that was not at one level depends on where it ended.
            Some(true) if self.is_unsteady() => "met, not steady",
            Some(false) if self.is_unsteady() => "missed, not steady",
            Some(true) if self.is_sure() => "met",
            Some(true) => "met?",
            Some(false) if self.is_sure() => "missed",
            Some(false) => "missed?",
        }
    }

    /// Whether the 95 % intervals of the quantiles say of the goals what the quantiles themselves do. Of a quantile that has no
    /// interval in any report nothing else is known, and it says what it says.
    fn is_sure(&self) -> bool {
        let ends: Vec<Option<Nanos>> = self.ends_ns().collect();
        let goals =
            self.summary.goals.iter().filter(|result| self.met() == Some(true) || result.met != Some(true));
        let says = goals.map(|result| {
            let at = QUANTILES.iter().position(|(_, quantile)| *quantile == result.goal.quantile)?;
            let [low, high] = [ends.get(2 * at).copied().flatten(), ends.get(2 * at + 1).copied().flatten()];
            let is_beyond = !matches!(result.reached, Quantile::Known(_));
            Some(match result.met {
                Some(true) => high.is_some_and(|high| high <= result.goal.limit_ns),
                _ => is_beyond || low.is_some_and(|low| low > result.goal.limit_ns),
            })
        });
        let says: Vec<Option<bool>> = says.collect();
        match self.met() {
            // One missed goal is enough.
            Some(false) => says.iter().any(|says| says.unwrap_or(true)),
            _ => says.iter().all(|says| says.unwrap_or(true)),
        }
    }

    /// Whether the run was not at one level from its beginning to its end.
    pub fn is_unsteady(&self) -> bool {
        self.summary.steadiness.as_ref().is_some_and(|steadiness| !steadiness.is_steady())
    }

    /// Whether the generator was the limit of the run, whose figures are then no server's.
    fn is_of_generator(&self) -> bool {
        self.summary.verdict.is_generator()
    }

    /// The rate and the mean response in nanoseconds of a run in open loop that was carried, that the generator did not limit and all
    /// of whose requests were answered. An overload, and what comes after it, is no such run: they have a queue that is not of their rate.
    fn mean_response(&self) -> Option<(f64, f64)> {
        let totals = &self.summary.totals;
        let is_of_its_rate = self.asked.is_some() && !["overload", "after"].contains(&self.role);
        let is_of_its_rate = is_of_its_rate && !self.is_of_generator();
        let is_whole = is_of_its_rate && self.carried() && totals.counts.unanswered() == 0;
        let mean_ns = totals.figures[Span::Response as usize].exact.mean_ns()?;
        is_whole.then_some((totals.rate, mean_ns))
    }

    /// The ends of the intervals of the quantiles, lower and upper in turn, in nanoseconds; `None` where an end is not known.
    fn ends_ns(&self) -> impl Iterator<Item = Option<Nanos>> {
        let certainty = self.summary.totals.certainty.as_ref();
        let times = certainty.and_then(|certainty| certainty.of_span(Span::Response)).cloned();
        let quantiles = times.unwrap_or_default().quantiles;
        quantiles.into_iter().flat_map(|bounds| {
            let high = bounds.and_then(|bounds| match bounds.high {
                Upper::Known(high) => Some(high),
                Upper::Unanswered | Upper::Open => None,
            });
            [bounds.and_then(|bounds| bounds.low), high]
        })
    }

    fn quantiles(&self) -> &[Quantile] {
        &self.summary.totals.figures[Span::Response as usize].quantiles
    }
}

/// A line for each run, in the order of rates, and what they show together; without a run the reason alone.
pub fn text(curve: &Curve) -> String {
    let reason = curve.reason.as_ref().map_or(String::new(), |reason| format!("Not complete: {reason}\n"));
    if curve.points.is_empty() {
        return reason;
    }
    let mut text = table(curve);
    text += &generator_words(curve);
    text += &fit_words(curve);
    let left_out =
        curve.points.iter().filter(|point| point.level.is_some() && point.is_of_generator()).count();
    text += &scalability_words::text(&levels(curve), levels_of(curve), left_out);
    let wrong = curve.wrong_values();
    if wrong > 0 {
        text += &format!("\nWRONG VALUES FOUND: {wrong} in all runs; `pummel run --verify` says which.\n");
    }
    if curve.command == "search" {
        text += &search_words::text(curve.search.as_ref(), &curve.goals, curve.met_up_to());
    }
    text += &made_again_words(curve.made_again).map_or_else(String::new, |words| format!("\n{words}\n"));
    if reason.is_empty() { text } else { text + "\n" + &reason }
}

/// The lines of the runs, below the names of their columns.
fn table(curve: &Curve) -> String {
    let mut text = format!("{:>14} {:>12}", levels_of(curve).unwrap_or("asked/s"), "done/s");
    for (name, _) in QUANTILES {
        write!(text, " {name:>9}").expect("text can always be added to");
    }
    text += "   limited by  goal\n";
    for point in sorted(curve) {
        let asked = match (point.asked, point.level) {
            (Some(asked), _) => format!("{asked:.0}"),
            (None, Some((_, level))) => level.to_string(),
            (None, None) => "closed".to_owned(),
        };
        write!(text, "{asked:>14} {:>12.0}", point.summary.totals.rate).expect("text can always be added to");
        for quantile in point.quantiles() {
            let shown = match quantile {
                Quantile::Known(ns) => time_text(*ns),
                Quantile::Above(ns) => format!("> {}", time_text(*ns)),
                Quantile::Absent => "-".to_owned(),
            };
            write!(text, " {shown:>9}").expect("text can always be added to");
        }
        writeln!(text, "  {:>11}  {}", point.limited_by(), point.fate())
            .expect("text can always be added to");
    }
    text
}

/// The table of the runs for the page of a job or a comment.
pub fn markdown(curve: &Curve) -> Vec<u8> {
    let runs = curve.points.len();
    markdown::of_text(&format!("pummel {}: {}", curve.command, counted(runs as u64, "run")), &text(curve))
}

/// A line of one queue that is further than this from a run does not fit.
const FIT_ERROR_MAX: f64 = 0.1;

/// CPU time and service time that differ by less than this share are near each other.
const FIT_NEAR: f64 = 0.2;

/// The line of one queue through the runs that were carried and in which every request was answered; absent where none
/// fits them.
fn fit_of(curve: &Curve) -> Option<QueueFit> {
    let points: Vec<(f64, f64)> = curve.points.iter().filter_map(Point::mean_response).collect();
    QueueFit::of(&points).filter(|fit| fit.error <= FIT_ERROR_MAX)
}

/// The line of one queue as words; nothing where none fits.
fn fit_words(curve: &Curve) -> String {
    let Some(fit) = fit_of(curve) else { return String::new() };
    let text = |ns: f64| time_text(ns.round() as Nanos);
    let mut words = format!(
        "\nOne queue fits the mean response times within {}: {} for a request, at most {}.",
        percent(fit.error),
        text(fit.service_ns),
        rate_text(1e9 / fit.service_ns),
    );
    let cpu_ns = curve.points.iter().rev().find_map(|point| point.summary.server_cpu_ns_per_request);
    if let Some(cpu_ns) = cpu_ns {
        words += &match cpu_ns / fit.service_ns {
            ratio if ratio > 1.0 + FIT_NEAR => {
                format!(" The server's CPU takes {} for each: its threads work side by side.", text(cpu_ns))
            }
            ratio if ratio > 1.0 - FIT_NEAR => {
                format!(" The server's CPU takes {} for each: that queue is its CPU.", text(cpu_ns))
            }
            _ => format!(" The server's CPU takes {} of that.", text(cpu_ns)),
        };
    }
    words + "\n"
}

/// In how many runs the generator was the limit, and in how many the times hold lag of pummel.
fn generator_words(curve: &Curve) -> String {
    let all = curve.points.len();
    let count = |is_such: &dyn Fn(&Summary) -> bool| {
        curve.points.iter().filter(|point| is_such(&point.summary)).count()
    };
    let limited = count(&|summary| summary.verdict.is_generator());
    let doubtful = count(&|summary| !summary.trust.ok);
    let mut text = String::new();
    if limited > 0 {
        text += &format!("\nIn {limited} of {all} runs the generator was the limit.\n");
    }
    let mostly = |name: &str| count(&|summary| summary.trust.mostly_lag.contains(&name));
    let words = lag_words(all, doubtful, QUANTILES.iter().map(|(name, _)| *name), mostly);
    words.iter().for_each(|sentence| text += &format!("\n{sentence}\n"));
    text
}

/// The things that the levels of a scan in closed loop are of; `None` for other series.
fn levels_of(curve: &Curve) -> Option<&'static str> {
    curve.points.iter().find_map(|point| point.level.map(|(what, _)| what))
}

/// The levels of a scan in closed loop with their rates, without those of the generator; the variance of a rate follows from its
/// interval, and is 0 where that is not known.
fn levels(curve: &Curve) -> Vec<Level> {
    let level = |point: &Point| {
        let (_, n) = point.level.filter(|_| !point.is_of_generator())?;
        let totals = &point.summary.totals;
        let range = totals.certainty.as_ref().and_then(|certainty| certainty.rate);
        let deviation = range.map_or(0.0, |range| (range.high - range.low) / 2.0 / 1.96);
        Some(Level { n: f64::from(n), rate: totals.rate, variance: deviation * deviation })
    };
    curve.points.iter().filter_map(level).collect()
}

/// For each run of a curve, in their order, p99 in microseconds on a line that never falls with the rate; `None` where p99 is
/// not known, and in closed loop.
fn never_falling_us(curve: &Curve) -> Vec<Option<f64>> {
    let at = QUANTILES.iter().position(|(name, _)| *name == "p99").expect("p99 is one of the quantiles");
    let known = |(number, point): (usize, &Point)| {
        let value = point.quantiles()[at].known().filter(|_| point.carried())?;
        Some((number, point.asked?, (value.max(1) as f64).ln()))
    };
    let mut points: Vec<(usize, f64, f64)> = curve.points.iter().enumerate().filter_map(known).collect();
    points.sort_by(|one, other| one.1.total_cmp(&other.1));
    let values: Vec<f64> = points.iter().map(|(_, _, value)| *value).collect();
    let mut all = vec![None; curve.points.len()];
    for ((number, ..), value) in points.iter().zip(never_falling(&values)) {
        all[*number] = Some(value.exp() / MICROSECOND as f64);
    }
    all
}

fn sorted(curve: &Curve) -> Vec<&Point> {
    let mut points: Vec<&Point> = curve.points.iter().collect();
    let place = |point: &Point| point.asked.unwrap_or(f64::INFINITY);
    points.sort_by(|one, other| place(one).total_cmp(&place(other)));
    points
}

/// The whole curve as JSON, runs in the order in which they were made.
pub fn json(curve: &Curve) -> Vec<u8> {
    let micros = |ns: u64| ns as f64 / MICROSECOND as f64;
    let known = |quantile: &Quantile| quantile.known().map(micros);
    let smooth = if curve.command == "curve" { never_falling_us(curve) } else { Vec::new() };
    let points: Vec<Value> = curve
        .points
        .iter()
        .enumerate()
        .map(|(number, point)| {
            let response: serde_json::Map<String, Value> = QUANTILES
                .iter()
                .zip(point.quantiles())
                .map(|((name, _), quantile)| ((*name).to_owned(), json!(known(quantile))))
                .collect();
            let ends: Vec<Option<f64>> = point.ends_ns().map(|end| end.map(micros)).collect();
            let pairs = QUANTILES.iter().zip(ends.chunks(2));
            let intervals: serde_json::Map<String, Value> =
                pairs.map(|((name, _), ends)| ((*name).to_owned(), json!(ends))).collect();
            let rate_ci = point.summary.totals.certainty.as_ref().and_then(|certainty| certainty.rate);
            json!({
                "role": point.role,
                "asked_rate": point.asked,
                "level": point.level.map(|(what, level)| json!({ "of": what, "n": level })),
                "smooth_p99_us": smooth.get(number).copied().flatten(),
                "seed": point.seed,
                "rate": point.summary.totals.rate,
                "rate_ci": rate_ci.map(|range| [range.low, range.high]),
                "seconds": point.summary.seconds,
                "requests": point.summary.totals.counts.requests(),
                "response_us": response,
                "response_ci_us": intervals,
                "met": point.met(),
                "carried": point.carried(),
                "wrong_values": point.wrong_values,
                "limit": point.summary.verdict.limit.name(),
                "says": cause_words(&point.summary.verdict.cause),
                "trust": point.summary.trust.ok,
                "mostly_lag": point.summary.trust.mostly_lag,
                "outcome": point.summary.ending.outcome,
            })
        })
        .collect();
    let goals: Vec<Value> = curve
        .goals
        .iter()
        .map(|goal| json!({ "quantile": goal.quantile, "limit_us": micros(goal.limit_ns) }))
        .collect();
    let whole = json!({
        "schema": SCHEMA,
        "tool": { "name": "pummel", "version": VERSION },
        "command": curve.command,
        "goals": goals,
        "labels": curve.labels,
        "argv": curve.argv,
        "plan": curve.plan.as_ref().map(Plan::told),
        "found_rate": curve.search.as_ref().and_then(|search| search.answer.rate),
        "search": curve.search.as_ref().map(search_words::json),
        "fit": fit_of(curve).map(|fit| json!({
            "service_us": fit.service_ns / 1e3,
            "variation": fit.variation,
            "error": fit.error,
        })),
        "scalability": scalability_words::json(&levels(curve)),
        "made_again": curve.made_again,
        "reason": curve.reason,
        "runs": points,
    });
    let mut bytes = serde_json::to_vec_pretty(&whole).expect("it has only text keys");
    bytes.push(b'\n');
    bytes
}

/// The whole curve as CSV; times are microseconds, and empty where they are not known.
pub fn csv(curve: &Curve) -> Vec<u8> {
    let mut names: Vec<String> = ["role", "asked_rate", "rate", "met"].map(str::to_owned).to_vec();
    names.extend(QUANTILES.map(|(name, _)| format!("response_{name}_us")));
    names.extend(["carried", "limit", "trust"].map(str::to_owned));
    names.extend(
        QUANTILES.iter().flat_map(|(name, _)| ["low", "high"].map(|end| format!("response_{name}_us_{end}"))),
    );
    names.extend(["level_of", "level"].map(str::to_owned));
    let mut table = Csv::with_header(names.iter().map(String::as_str));
    let us = |ns: u64| ns as f64 / MICROSECOND as f64;
    for point in &curve.points {
        let mut cells: Vec<Cell<'_>> = vec![point.role.into(), point.asked.into()];
        cells.extend([point.summary.totals.rate.into(), point.met().into()]);
        cells.extend(point.quantiles().iter().map(|quantile| Cell::from(quantile.known().map(us))));
        let (limit, trust) = (point.summary.verdict.limit.name(), point.summary.trust.ok);
        cells.extend([point.carried().into(), limit.into(), trust.into()]);
        cells.extend(point.ends_ns().map(|end| Cell::from(end.map(us))));
        let (of, level) = point.level.unzip();
        cells.extend([of.into(), level.map(u64::from).into()]);
        table.row(cells);
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use pummel_measure::certainty::{Certainty, TimesCertainty};
    use pummel_measure::measurement::Keep;
    use pummel_measure::summary::GoalResult;
    use pummel_measure::uncertainty::Bounds;

    use super::*;
    use crate::example::Run;

    /// A scan of two runs of two seconds each, in which as many requests were due in two seconds and in one.
    fn scan() -> Curve {
        let mut summary = Run::new(Keep::Figures).report(|report| report.summary.clone());
        summary.verdict.limit = Limit::None;
        let point = |asked, due_s| Point {
            role: "scan",
            asked: Some(asked),
            level: None,
            seed: 7,
            due_s,
            wrong_values: None,
            summary: summary.clone(),
        };
        Curve {
            command: "scan",
            goals: Vec::new(),
            labels: Labels::new(),
            plan: Some(Run::new(Keep::Figures).plan),
            argv: Vec::new(),
            points: vec![point(1_000.0, 2.0), point(2_000.0, 1.0)],
            search: None,
            made_again: 0,
            reason: None,
        }
    }

    #[test]
    fn a_series_without_a_run_has_its_reason_and_neither_a_table_nor_an_answer() {
        let mut curve = scan();
        curve.command = "search";
        assert!(text(&curve).contains("No rate is known to meet the goal"), "one run is no answer");
        curve.points.clear();
        curve.reason = Some("interrupted".to_owned());
        assert_eq!(text(&curve), "Not complete: interrupted\n");
    }

    #[test]
    fn a_rate_whose_requests_needed_twice_the_time_was_not_carried() {
        let curve = scan();
        assert_eq!(curve.points.iter().map(Point::carried).collect::<Vec<_>>(), [true, false]);
        let fates: Vec<String> = text(&curve)
            .lines()
            .map(|line| line.split_whitespace().last().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(fates, ["goal", "-", "carried"]);
        assert!(text(&curve).lines().nth(2).is_some_and(|line| line.ends_with("  not carried")));
    }

    #[test]
    fn every_form_says_what_was_carried_and_who_was_the_limit() {
        let mut curve = scan();
        curve.points[0].summary.verdict.limit = Limit::Generator;
        curve.points[1].summary.trust.ok = false;
        let said = text(&curve);
        assert!(said.lines().nth(1).is_some_and(|line| line.ends_with("   generator  -")), "{said}");
        assert!(
            said.ends_with(
                "In 1 of 2 runs the generator was the limit.\n\nIn 1 of 2 runs part of the times was added by pummel itself (lag).\n"
            ),
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
    fn a_goal_is_met_or_missed_for_sure_where_the_interval_of_its_quantile_says_the_same() {
        let mut point = scan().points.remove(0);
        let bounds = Bounds { low: Some(1_000), high: Upper::Known(2_000), effective: 1e3, spells: 1e3 };
        let times = TimesCertainty { quantiles: [Some(bounds); QUANTILES.len()], mean: None };
        let times = std::array::from_fn(|_| times.clone());
        point.summary.totals.certainty = Some(Certainty { times, rate: None, hit_share: None });
        let reached = Quantile::Known(1_500);
        let mut fate = |limit_ns: Nanos, met: bool| {
            let goal = Goal { quantile: 0.99, limit_ns };
            point.summary.goals = vec![GoalResult { goal, reached, met: Some(met) }];
            point.fate()
        };
        assert_eq!([fate(2_000, true), fate(1_999, true)], ["met", "met?"]);
        assert_eq!([fate(999, false), fate(1_000, false)], ["missed", "missed?"]);
    }

    #[test]
    fn a_scan_over_connections_has_a_column_of_that_name_and_fits_no_run_of_the_generator() {
        let mut curve = scan();
        let point = curve.points.remove(0);
        curve.points = [1, 2, 4, 8, 16, 32]
            .map(|level| Point { asked: None, level: Some(("connections", level)), ..point.clone() })
            .to_vec();
        let said = text(&curve);
        let first = |at: usize| said.lines().nth(at).and_then(|line| line.split_whitespace().next());
        assert_eq!((first(0), first(1), first(6)), (Some("connections"), Some("1"), Some("32")), "{said}");
        assert!(said.contains("universal scalability law"), "{said}");
        curve.points[2].summary.verdict.limit = Limit::Generator;
        let said = text(&curve);
        assert!(said.contains("not known: it takes six levels") && said.contains("1 was left out"), "{said}");
    }

    #[test]
    fn the_levels_of_a_scan_in_closed_loop_are_in_its_rows() {
        let mut curve = scan();
        for (point, level) in curve.points.iter_mut().zip([1, 64]) {
            (point.asked, point.level) = (None, Some(("connections", level)));
        }
        let rows = String::from_utf8(csv(&curve)).expect("UTF-8");
        let rows: Vec<&str> = rows.lines().collect();
        assert!(rows[0].ends_with(",level_of,level"), "{rows:?}");
        assert!(rows[1].ends_with(",connections,1") && rows[2].ends_with(",connections,64"), "{rows:?}");
        let plain = String::from_utf8(csv(&scan())).expect("UTF-8");
        assert!(plain.lines().skip(1).all(|row| row.ends_with(",,")), "{plain}");
    }

    /// A scan of five runs whose mean responses are those of one queue with a constant service of 20 us.
    fn scan_of_a_queue(cpu_ns: Option<f64>) -> Curve {
        let mut curve = scan();
        let point = |load: f64| {
            let mut point = curve.points[0].clone();
            point.summary.totals.rate = load / 20e-6;
            point.summary.server_cpu_ns_per_request = cpu_ns;
            let exact = &mut point.summary.totals.figures[Span::Response as usize].exact;
            exact.sum = (exact.count as f64 * (20_000.0 + 20_000.0 * load / (2.0 * (1.0 - load)))) as u128;
            point
        };
        curve.points = [0.1, 0.3, 0.5, 0.7, 0.9].map(point).to_vec();
        curve
    }

    #[test]
    fn a_scan_of_one_queue_says_what_the_queue_is() {
        let said = text(&scan_of_a_queue(Some(19_000.0)));
        let words = "us for a request, at most 50,";
        assert!(said.contains(words) && said.contains("that queue is its CPU"), "{said}");
        assert!(text(&scan_of_a_queue(Some(80_000.0))).contains("its threads work side by side"));
        assert!(text(&scan_of_a_queue(Some(2_000.0))).contains("takes 2.00 us of that"));
        let result: Value = serde_json::from_slice(&json(&scan_of_a_queue(None))).expect("JSON");
        let service_us = result["fit"]["service_us"].as_f64().expect("it fits");
        assert!((service_us - 20.0).abs() < 0.2, "{service_us}");
        let two = scan();
        assert!(!text(&two).contains("queue"), "two runs are no line");
    }
}
