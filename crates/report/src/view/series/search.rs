//! The answer of a search in a sentence: the rate that meets the goals, the greatest that a run met without proof, or why there is none.

use pummel_measure::rate_search::{NoRate, Unsound};
use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::grouped;

use super::rows::{self, time};
use crate::document::{CurveDocument, CurveGoal, CurveRun, CurveSearch};
use crate::view::cells::{self, rate, set_time};
use crate::view::{Text, Tone};

/// Lengths of runs that are advised, in seconds.
const ADVISED_S: [f64; 9] = [1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0];

/// A longer run is advised to be at least this many times as long.
const LONGER: f64 = 3.0;

/// Runs whose rates differ by less than this share are runs at one rate.
const SAME_RATE: f64 = 0.005;

/// The runs at a rate that met the goals without proving it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unproven {
    /// The rate, in requests per second.
    pub rate: f64,
    /// Number of runs at that rate.
    made: usize,
    /// Number of those that met the goals.
    met: usize,
    /// The quantile of the goal that these runs reached, in microseconds; `None` for several runs or goals.
    reached_us: Option<f64>,
    /// Seconds in which the requests of a run were due.
    seconds: f64,
    /// Whether each of them was at one level from its beginning to its end.
    is_steady: bool,
}

/// The runs that met the goals without proving it: those that were to confirm a rate, else those at the greatest rate up to the lower end
/// of the interval or, without one, below the least rate that surely missed. `None` where there are none, and where the generator
/// ended the search.
pub(super) fn unproven(curve: &CurveDocument) -> Option<Unproven> {
    if matches!(why(curve), Some(NoRate::Unsound { why: Unsound::Generator(_), .. })) {
        return None;
    }
    // A run that the generator limited says nothing of the server, however long it is.
    let has_met = |run: &&CurveRun| run.carried && run.met == Some(true) && !run.is_of_generator();
    let met = || curve.runs.iter().filter(has_met).filter(|run| !run.is_after_overload());
    let rates =
        |runs: &mut dyn Iterator<Item = &CurveRun>| runs.filter_map(|run| run.asked_rate).reduce(f64::max);
    let missed = curve.runs.iter().filter(|run| run.met == Some(false) && run.sure == Some(true));
    let missed = missed.filter_map(|run| run.asked_rate).reduce(f64::min).unwrap_or(f64::INFINITY);
    let low = curve.search.as_ref().and_then(|search| search.low);
    let bound = low.map_or(missed, |low| low * (1.0 + SAME_RATE));
    let confirming = rates(&mut met().filter(|run| run.role == "confirm"));
    let below = rates(&mut met().filter(|run| run.asked_rate.is_some_and(|asked| asked <= bound)));
    let least = met().filter_map(|run| run.asked_rate).reduce(f64::min);
    let rate = confirming.or(below).or(least)?;
    let is_there = |run: &&CurveRun| {
        let is_near = run.asked_rate.is_some_and(|asked| (asked / rate - 1.0).abs() < SAME_RATE);
        is_near && !run.is_after_overload()
    };
    let runs: Vec<&CurveRun> = curve.runs.iter().filter(is_there).collect();
    let only = runs.first().filter(|_| runs.len() == 1 && curve.goals.len() == 1);
    Some(Unproven {
        rate,
        made: runs.len(),
        met: runs.iter().copied().filter(has_met).count(),
        reached_us: only.and_then(|run| time(run, rows::quantile(curve))),
        seconds: runs.first().map_or(0.0, |run| run.due_s.unwrap_or(run.seconds)),
        is_steady: !runs.iter().any(|run| run.is_unsteady()),
    })
}

/// The rate about which the screen has rows: that of the answer, of the runs that met the goal, or of the last run. `None` where the
/// runs say nothing of the server.
pub(super) fn rate_shown(curve: &CurveDocument) -> Option<f64> {
    let last =
        || curve.runs.iter().rev().filter(|run| !run.is_after_overload()).find_map(|run| run.asked_rate);
    let says_nothing = matches!(why(curve), Some(NoRate::Unsound { .. } | NoRate::NothingCompleted));
    let answer = curve.found_rate.or_else(|| unproven(curve).map(|runs| runs.rate));
    answer.or_else(|| last().filter(|_| !says_nothing))
}

/// The facts of why nothing, or no more, is known.
fn why(curve: &CurveDocument) -> Option<&NoRate> {
    curve.search.as_ref()?.why.as_ref()
}

/// The goals, such as `p99 <= 5 ms`.
pub(super) fn goals(goals: &[CurveGoal]) -> String {
    let each =
        goals.iter().map(|goal| format!("{} <= {}", quantile_name(goal.quantile), set_time(goal.limit_us)));
    each.collect::<Vec<_>>().join(" and ")
}

/// Whether the generator was the limit in a closed loop, so that its rate is not the server's.
fn is_peak_of_generator(search: &CurveSearch) -> bool {
    search.closed_loop_generator.is_some()
}

/// The text with what a search found, or found out before it ended.
pub(super) fn result(text: Text, curve: &CurveDocument) -> Text {
    let goals = goals(&curve.goals);
    let search = curve.search.clone().unwrap_or_default();
    match curve.found_rate {
        Some(found) => {
            let least = if search.at_least { " at least" } else { "" };
            let text = text.and(Tone::Figure, format!("{} req/s", rate(found)));
            text.and(Tone::Plain, format!("{least} meet {goals}, with 95 % confidence{}", around(&search)))
        }
        None if curve.reason.is_some() => unfinished(text, curve, &goals),
        None => match unproven(curve) {
            Some(runs) => not_sure(text, curve, &search, &runs, &goals),
            None => text.and(Tone::Plain, no_answer(curve, &search, &goals)),
        },
    }
}

/// What lies around an answer: where the limit is, and what a closed loop does.
fn around(search: &CurveSearch) -> String {
    let closed = search.closed_loop_rate;
    let does = match closed > 0.0 && !is_peak_of_generator(search) {
        true => format!(". A closed loop does {}/s", rate(closed)),
        // The line on the limit says so.
        false => String::new(),
    };
    let limit = match search.low.zip(search.high) {
        Some((low, high)) => {
            let carried = search.not_carried.map_or_else(String::new, |least| {
                format!(
                    ": {}/s were not answered as fast as they were asked, while the times would allow more",
                    rate(least)
                )
            });
            let wide = match search.precise {
                Some(false) => ". That is wider than --precision asks for: longer runs (-t) are surer",
                _ => "",
            };
            format!("; the limit is between {} and {}/s{carried}{wide}", rate(low), rate(high))
        }
        None if search.open_above => {
            "; runs at greater rates met it too, but were too short to be sure".to_owned()
        }
        None if search.at_least => "; more were not asked for".to_owned(),
        None => String::new(),
    };
    format!("{limit}{does}")
}

/// The greatest rate that was met without proof, and what a proof takes.
fn not_sure(text: Text, curve: &CurveDocument, search: &CurveSearch, runs: &Unproven, goals: &str) -> Text {
    let figure = format!("{} req/s", rate(runs.rate));
    let how = match (runs.met, runs.made, runs.reached_us) {
        (1, 1, Some(us)) => format!(" ({})", cells::time(us)),
        (1, 1, None) => " in one run".to_owned(),
        (2, 2, _) => " in both runs".to_owned(),
        (met, made, _) if met == made => format!(" in all {made} runs"),
        (met, made, _) => format!(" in {met} of {made} runs"),
    };
    let (but, is_length) = match why(curve) {
        _ if !runs.is_steady => ("such runs were not steady".to_owned(), true),
        Some(NoRate::NoRise) => ("the times do not rise clearly with the rate there".to_owned(), true),
        Some(NoRate::NotCarried) => (
            "rates around it were not carried: the server gives way before its times show it".to_owned(),
            false,
        ),
        Some(NoRate::Unsound { runs, why: Unsound::Unsteady }) => {
            (format!("{} runs in a row were not steady", spelled(*runs)), true)
        }
        Some(NoRate::Unsound { runs, why: Unsound::Idle }) => {
            (format!("no request was due in {} runs in a row", spelled(*runs)), true)
        }
        _ => (format!("{} s is too short to be 95 % sure", cells::plain(runs.seconds)), true),
    };
    let limit = search.low.zip(search.high).map_or_else(String::new, |(low, high)| {
        format!(". The limit is between {} and {}/s", rate(low), rate(high))
    });
    let again = advised(runs.seconds).filter(|_| is_length);
    let again = again.map_or_else(String::new, |time| format!(". Again with -t {time}"));
    let text = text.and(Tone::Figure, figure);
    text.and(Tone::Plain, format!(" met {goals}{how}, but {but}{limit}{again}"))
}

/// A longer time for runs of so many seconds, as an option has it.
fn advised(seconds: f64) -> Option<String> {
    let advised = ADVISED_S.iter().find(|advised| **advised >= LONGER * seconds)?;
    Some(cells::given_time(*advised))
}

/// Why there is no rate.
fn no_answer(curve: &CurveDocument, search: &CurveSearch, goals: &str) -> String {
    let last = curve.runs.iter().rev().find_map(|run| run.asked_rate);
    let last = last.map_or_else(String::new, |last| format!(" (the last at {}/s)", rate(last)));
    let closed = search.closed_loop_rate;
    let closed = match (closed > 0.0, is_peak_of_generator(search)) {
        (false, _) => String::new(),
        (true, false) => format!(". In a closed loop it does {}/s", rate(closed)),
        (true, true) => format!(". So was the closed loop, at {}/s", rate(closed)),
    };
    let server = if is_peak_of_generator(search) { "" } else { &*closed };
    match why(curve) {
        Some(NoRate::Unsound { runs, why: Unsound::Generator(_) }) => format!(
            "{} runs in a row were limited by pummel itself{last}, so they say nothing of the server{closed}",
            spelled(*runs)
        ),
        Some(NoRate::Unsound { runs, why: Unsound::Unsteady }) => format!(
            "{} runs in a row were not steady{last}, so they say nothing of the server{server}",
            spelled(*runs)
        ),
        Some(NoRate::Unsound { runs, why: Unsound::Idle }) => {
            format!(
                "no request was due in {} runs in a row{last}. Longer runs (-t) have some",
                spelled(*runs)
            )
        }
        Some(NoRate::NothingCompleted) => "nothing was answered in a closed loop".to_owned(),
        Some(NoRate::MissedAt { rate: least }) => {
            let does = if server.is_empty() {
                String::new()
            } else {
                format!(". A closed loop does {}/s", rate(search.closed_loop_rate))
            };
            format!("{goals} was missed at {}/s too, the least rate that was tried{does}", rate(*least))
        }
        Some(NoRate::NotCarried) => {
            "the rates around the goal were not carried: the server gives way before its times show it"
                .to_owned()
        }
        _ => {
            let reason = search.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!("no rate is known to meet {goals}{reason}")
        }
    }
}

/// What is known of a search that ended before its answer.
fn unfinished(text: Text, curve: &CurveDocument, goals: &str) -> Text {
    let judged = |met: bool| {
        let runs = curve.runs.iter().filter(move |run| run.met == Some(met) && !run.is_after_overload());
        runs.filter(|run| !run.is_of_generator()).filter_map(|run| run.asked_rate)
    };
    let (met, missed) = (judged(true).reduce(f64::max), judged(false).reduce(f64::min));
    let text = text.and(Tone::Plain, "No rate is known yet");
    match (met, missed) {
        (Some(met), _) => {
            let text = text.and(Tone::Plain, ": ").and(Tone::Figure, format!("{} req/s", rate(met)));
            text.and(Tone::Plain, format!(" met {goals} in a run"))
        }
        (None, Some(missed)) => text.and(Tone::Plain, format!(": {}/s missed {goals}", rate(missed))),
        (None, None) => text,
    }
}

/// A small number as a word.
fn spelled(count: u32) -> String {
    match count {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        5 => "five".to_owned(),
        count => grouped(u64::from(count)),
    }
}

/// The answer in figures, for scripts.
pub(super) fn brief(curve: &CurveDocument) -> String {
    let goals = goals(&curve.goals);
    let search = curve.search.clone().unwrap_or_default();
    let limit = search.low.zip(search.high);
    let limit =
        limit.map_or_else(String::new, |(low, high)| format!(", limit {}..{}/s", rate(low), rate(high)));
    let closed = match search.closed_loop_rate {
        closed if closed > 0.0 => format!(", closed loop {}/s", rate(closed)),
        _ => String::new(),
    };
    let known = match (curve.found_rate, unproven(curve)) {
        (Some(found), _) => format!("{}/s {goals}", rate(found)),
        (None, Some(runs)) => {
            let reached = runs
                .reached_us
                .map_or_else(String::new, |us| format!(" {} {}", rows::quantile(curve), cells::time(us)));
            format!("{}/s{reached}, goal {goals}", rate(runs.rate))
        }
        (None, None) => format!("goal {goals}"),
    };
    format!("{known}{limit}{closed}")
}
