//! The result of a series in a sentence: the words in capitals with their reason, then the answer of a search, the bend of a curve, or the
//! greatest rate of a scan.

use pummel_measure::words::{counted, grouped};

use super::headline::{SeriesHeadline, SeriesWord};
use super::rows::{level_of, place, quantile, sorted, time};
use super::search;
use crate::document::{CurveDocument, CurveRun};
use crate::view::cells::{self, rate};
use crate::view::run::Word;
use crate::view::{Text, Tone};

/// A time is on the flat part of a curve up to this many times the first.
const FLAT: f64 = 2.0;

/// A level has nearly the greatest rate from this share of it on.
const NEARLY: f64 = 0.9;

/// The sentence behind `Result`.
pub(super) fn result(curve: &CurveDocument, headline: &SeriesHeadline) -> Text {
    let mut text = Text::default();
    for (place, word) in headline.words.iter().enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" }).and(word.tone(), word.text());
    }
    if curve.runs.is_empty() {
        let reason = curve.reason.as_ref().map_or("no run was made", |reason| reason.trim_end_matches('.'));
        return match headline.words.first() {
            Some(SeriesWord::OfRun(Word::Interrupted)) => {
                text.and(Tone::Plain, " before the first run was over")
            }
            Some(_) => text.and(Tone::Plain, format!(": {reason}")),
            None => text.and(Tone::Plain, reason),
        };
    }
    let text = match headline.words.first() {
        None => text,
        Some(SeriesWord::OfRun(Word::Interrupted)) => {
            text.and(Tone::Plain, format!(" after {}. ", counted(curve.runs.len() as u64, "run")))
        }
        Some(SeriesWord::OfRun(Word::Partial)) => {
            let reason = match &curve.reason {
                Some(reason) => format!(": {}. ", reason.trim_end_matches('.')),
                None => format!(" after {}. ", counted(curve.runs.len() as u64, "run")),
            };
            text.and(Tone::Plain, reason)
        }
        Some(SeriesWord::OfRun(Word::GoalMissed | Word::GoalUndecided)) => {
            text.and(Tone::Plain, format!(": {}. ", goal(curve)))
        }
        Some(SeriesWord::OfRun(Word::WrongValues)) => text.and(Tone::Plain, format!(": {}. ", wrong(curve))),
        Some(_) => text.and(Tone::Plain, ": "),
    };
    match (curve.command.as_str(), level_of(curve)) {
        ("search", _) => search::result(text, curve),
        (_, Some(of)) => greatest(text, curve, of),
        (_, None) => bend(text, curve),
    }
}

/// The wrong values of all runs.
pub(super) fn wrong(curve: &CurveDocument) -> String {
    let wrong = counted(curve.wrong_values(), "value");
    format!("{wrong} in all runs (pummel run --verify says which)")
}

/// The runs that missed the goal, or of which that is not known, and the first of them.
pub(super) fn goal(curve: &CurveDocument) -> String {
    let goals = search::goals(&curve.goals);
    let all = curve.runs.len();
    let with = |met: Option<bool>| curve.runs.iter().filter(move |run| run.met == met);
    let (missed, unknown) = (with(Some(false)).count(), with(None).count());
    let from = with(Some(false)).map(place).reduce(f64::min);
    let from = match (from, level_of(curve)) {
        (Some(from), Some(of)) => format!(", the first at {} {of}", rate(from)),
        (Some(from), None) if from.is_finite() => format!(", the first at {}/s", rate(from)),
        _ => String::new(),
    };
    match (missed, unknown) {
        (0, 0) => format!("{goals} was met in {}", of_all(all, all)),
        (0, unknown) => {
            format!("no request was due in {}, so that {goals} is not decided", of_all(unknown, all))
        }
        (missed, _) => format!("{goals} in {}{from}", of_all(missed, all)),
    }
}

/// Some of all runs.
pub(super) fn of_all(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "the one run".to_owned(),
        (2, 2) => "both runs".to_owned(),
        (some, all) if some == all => format!("all {all} runs"),
        (some, all) => format!("{some} of {all} runs"),
    }
}

/// A rate without the digits in which runs differ: hundreds from 10,000 on.
pub(super) fn rounded(per_second: f64) -> String {
    match per_second {
        great if great >= 10_000.0 => grouped(((great / 100.0).round() * 100.0) as u64),
        small => rate(small),
    }
}

/// The runs in open loop that show the server: carried, with a known time, and below the first rate at which the generator was the limit.
fn usable<'a>(curve: &'a CurveDocument, name: &str) -> Vec<(&'a CurveRun, f64)> {
    let open = sorted(curve).into_iter().filter(|run| run.asked_rate.is_some());
    let usable = open.take_while(|run| !run.is_of_generator()).filter(|run| run.carried);
    usable.filter_map(|run| Some((run, time(run, name)?))).collect()
}

/// Where a curve bends, and how far it goes.
fn bend(text: Text, curve: &CurveDocument) -> Text {
    let name = quantile(curve);
    let points = usable(curve, name);
    let closed = curve.runs.iter().find(|run| run.asked_rate.is_none());
    let closed = closed.map(|run| match run.is_of_generator() {
        true => format!("a closed loop, limited by pummel itself, does {}/s", rounded(run.rate)),
        false => format!("a closed loop does {}/s", rounded(run.rate)),
    });
    let uncarried = sorted(curve).into_iter().find(|run| !run.carried && !run.is_of_generator());
    let uncarried = uncarried.and_then(|run| run.asked_rate);
    let uncarried =
        uncarried.map(|least| format!("from {}/s on less was answered than asked", rounded(least)));
    let rest: Vec<String> = uncarried.into_iter().chain(closed).collect();
    let Some(first) = points.first() else {
        let text = text.and(Tone::Plain, format!("{name} of the server is not known"));
        return rest.into_iter().fold(text, |text, part| text.and(Tone::Plain, format!("; {part}")));
    };
    // The line that never falls shows the bend; single runs go up and down.
    let smooth = |(run, us): &(&CurveRun, f64)| run.smooth_p99_us.filter(|_| name == "p99").unwrap_or(*us);
    let flat = points.iter().take_while(|point| smooth(point) <= FLAT * smooth(first)).last();
    let (flat, last) = (flat.unwrap_or(first), points.last().unwrap_or(first));
    let text = text.and(Tone::Plain, format!("{name} is "));
    let text = text.and(Tone::Figure, cells::time(flat.1));
    let text = text.and(Tone::Plain, format!(" at {} req/s", rounded(place(flat.0))));
    let beyond = (place(flat.0) < place(last.0))
        .then(|| format!(" and {} at {}/s", cells::time(last.1), rounded(place(last.0))));
    let text = text.and(Tone::Plain, beyond.unwrap_or_default());
    rest.into_iter().fold(text, |text, part| text.and(Tone::Plain, format!("; {part}")))
}

/// The greatest rate of a scan in closed loop, and the least level that nearly has it.
fn greatest(text: Text, curve: &CurveDocument, of: &str) -> Text {
    let Some(best) = best(curve) else { return text };
    let text = text.and(Tone::Figure, format!("{} req/s", rounded(best.rate)));
    let text = text.and(Tone::Plain, format!(" at {}", level(best, of)));
    let of_generator = if best.is_of_generator() { ", limited by pummel itself" } else { "" };
    let runs = sorted(curve);
    let below = runs.iter().rev().skip_while(|run| place(run) >= place(best));
    let enough = below.take_while(|run| run.rate >= NEARLY * best.rate).last();
    let enough = enough.map_or_else(String::new, |run| {
        format!("; {:.0} % of that from {} on", NEARLY * 100.0, level(run, of))
    });
    text.and(Tone::Plain, format!("{of_generator}{enough}"))
}

/// The run of a scan with the greatest rate, of those that the generator did not limit where there are some.
fn best(curve: &CurveDocument) -> Option<&CurveRun> {
    let greater = |one: &&CurveRun, other: &&CurveRun| one.rate.total_cmp(&other.rate);
    let runs = || curve.runs.iter().filter(|run| run.level.is_some());
    runs().filter(|run| !run.is_of_generator()).max_by(greater).or_else(|| runs().max_by(greater))
}

/// The level of a run, such as `64 connections`.
pub(super) fn level(run: &CurveRun, of: &str) -> String {
    match run.level.as_ref().map_or(0, |level| level.n) {
        1 => format!("1 {}", of.trim_end_matches('s')),
        many => format!("{} {of}", grouped(u64::from(many))),
    }
}

/// The result in one line for scripts: the words in capitals first, then figures.
pub(super) fn brief(curve: &CurveDocument, headline: &SeriesHeadline) -> String {
    let words: Vec<&str> = headline.words.iter().map(|word| word.text()).collect();
    let mut parts = vec![words.join(", ")];
    if curve.runs.is_empty() {
        parts.extend(curve.reason.clone());
    } else {
        parts.push(match (curve.command.as_str(), level_of(curve)) {
            ("search", _) => search::brief(curve),
            (_, Some(of)) => best(curve)
                .map_or_else(String::new, |run| format!("{}/s at {}", rate(run.rate), level(run, of))),
            (_, None) => brief_bend(curve),
        });
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The greatest rate of a curve that shows the server with its time, and the rate of the closed loop.
fn brief_bend(curve: &CurveDocument) -> String {
    let name = quantile(curve);
    let last = usable(curve, name)
        .last()
        .map(|(run, us)| format!("{name} {} at {}/s", cells::time(*us), rate(place(run))));
    let closed = curve.runs.iter().find(|run| run.asked_rate.is_none());
    let closed = closed.map(|run| format!("closed loop {}/s", rate(run.rate)));
    last.into_iter().chain(closed).collect::<Vec<_>>().join(", ")
}
