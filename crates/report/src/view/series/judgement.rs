//! The two answers of a series: in how many runs the times may be believed, and what set the rate or the waiting.

use pummel_measure::limit::Cause;
use pummel_measure::rate_search::{NoRate, Recovery, Unsound};
use pummel_measure::words::{grouped, percent};

use super::result::{level, of_all};
use super::rows::{level_of, place, sorted};
use crate::document::trust::ReliableFigures;
use crate::document::{CurveDocument, CurveOverload, CurveRun};
use crate::view::cells::{plain, rate};
use crate::view::{Line, Text, Tone};
use crate::words::limit::{NONE_REACHED, cause_words, common_cause_words, limit_noun};

/// How far the times of the runs may be believed; `None` without a run that has times.
pub(super) fn trust(curve: &CurveDocument) -> Option<Line> {
    let runs: Vec<&CurveRun> = curve.runs.iter().filter(|run| !run.is_idle()).collect();
    if runs.is_empty() {
        return None;
    }
    let all = runs.len();
    let count = |is_such: &dyn Fn(&CurveRun) -> bool| runs.iter().filter(|run| is_such(run)).count();
    let is_search = curve.command == "search";
    // A search leaves out what missed its goal for the generator's sake; a curve is drawn through all runs.
    let is_limited = |run: &CurveRun| run.is_limited_by_generator() && !(is_search && run.met == Some(true));
    let limited = count(&is_limited);
    let doubtful = |run: &CurveRun| !run.trust && !is_limited(run);
    let tail = count(&|run| doubtful(run) && run.reliable == ReliableFigures::P50);
    let whole = count(&doubtful) - tail;
    let unreliable = Text::default().and(Tone::Warning, "NOT RELIABLE");
    if limited > 0 && !is_search {
        let from = reliable_up_to(curve).map_or_else(String::new, |place| format!(" above {place}"));
        let own = doubts(tail, whole).map_or_else(String::new, |words| format!(", {words}"));
        let words = format!("{from}: pummel was the limit in {} (-){own}", of_all(limited, all));
        return Some(Line::new("Trust", unreliable.and(Tone::Plain, words)));
    }
    let reliable = all - limited - tail - whole;
    let text = match (reliable, limited) {
        _ if reliable == all => Text::plain(format!(
            "reliable in {}",
            if all > 2 { "all runs".to_owned() } else { of_all(all, all) }
        )),
        (0, 0) if tail == all => {
            Text::plain(format!("p50 is reliable; p99 is partly pummel's own in {}", of_all(all, all)))
        }
        (0, 0) if whole == all => unreliable
            .and(Tone::Plain, format!(": the times are partly pummel's own in {}", of_all(all, all))),
        (reliable, limited) => {
            let limited = (limited > 0).then(|| format!("pummel was the limit in {limited} (-)"));
            let parts: Vec<String> = limited.into_iter().chain(doubts(tail, whole)).collect();
            let (parts, none) = (parts.join(", "), format!(": {}", parts.join(", ")));
            match reliable {
                0 => unreliable.and(Tone::Plain, format!("{none} of {all} runs")),
                _ => Text::plain(format!("reliable in {}, {parts}", of_all(reliable, all))),
            }
        }
    };
    Some(Line::new("Trust", text))
}

/// The runs whose times hold pummel's own delay, in the tail alone and everywhere; `None` where there are none.
fn doubts(tail: usize, whole: usize) -> Option<String> {
    match (tail, whole) {
        (0, 0) => None,
        (tail, 0) => Some(format!("p99 partly pummel's own in {tail}")),
        (0, whole) => Some(format!("the times partly pummel's own in {whole}")),
        (tail, whole) => Some(format!("p99 partly pummel's own in {tail}, all times in {whole}")),
    }
}

/// The greatest rate or level up to which the generator was the limit of no run; `None` where it was that of the least.
fn reliable_up_to(curve: &CurveDocument) -> Option<String> {
    let runs = sorted(curve);
    let run = runs.iter().take_while(|run| !run.is_limited_by_generator()).last()?;
    match level_of(curve) {
        Some(of) => Some(level(run, of)),
        None => place(run).is_finite().then(|| format!("{}/s", rounded_up(place(run)))),
    }
}

/// A rate with two digits, rounded up, since between two runs nothing is known.
fn rounded_up(per_second: f64) -> String {
    if per_second < 100.0 {
        return rate(per_second);
    }
    let step = 10f64.powf(per_second.log10().floor() - 1.0);
    grouped(((per_second / step).ceil() * step).round() as u64)
}

/// What set the rates of the series; `None` where nothing is known of it.
pub(super) fn limit(curve: &CurveDocument) -> Option<Line> {
    let words = match curve.command.as_str() {
        "search" => of_search(curve),
        _ => of_curve(curve),
    };
    words.map(|words| Line::new("Limit", Text::plain(words)))
}

/// The limit of a search: that of the closed loop, and what was left of the overload at its end.
fn of_search(curve: &CurveDocument) -> Option<String> {
    let search = curve.search.as_ref()?;
    if let Some(NoRate::Unsound { why: Unsound::Generator(cause), .. }) = &search.why {
        return Some(common_cause_words(cause));
    }
    let peak = curve.runs.iter().find(|run| run.role == "peak")?;
    let closed = rate(search.closed_loop_rate);
    if let Some(generator) = &search.closed_loop_generator {
        let cause = peak.cause.as_ref().map_or_else(|| generator.clone(), common_cause_words);
        return Some(format!(
            "pummel, at {closed}/s in a closed loop, so what the server can do is not known: {cause}"
        ));
    }
    let noun = noun(peak)?;
    match &search.overload {
        Some(overload) => Some(format!("{noun}{}", recovery(overload))),
        None if curve.found_rate.is_none() => Some(format!("{noun}: it does {closed}/s in a closed loop")),
        None => Some(noun),
    }
}

/// What was left of an overload; nothing where that is not known.
fn recovery(overload: &CurveOverload) -> String {
    let Some(Recovery { slower, seconds, lasted }) = overload.recovery else { return String::new() };
    let at = rate(overload.rate);
    if seconds <= 0.0 {
        return format!(". After 5 s at {at}/s it was at once as fast as before");
    }
    let how_long =
        if lasted { "to the end of the run".to_owned() } else { format!("for {} s", plain(seconds)) };
    match slower {
        slower if slower < 1.0 => {
            format!(". After 5 s at {at}/s it was {} slower {how_long}", percent(slower))
        }
        slower => format!(". After 5 s at {at}/s requests took {:.1} times as long {how_long}", 1.0 + slower),
    }
}

/// The limit of a curve or a scan: the generator where it was the limit of a run, else what the greatest rates had in common, with where
/// that begins.
fn of_curve(curve: &CurveDocument) -> Option<String> {
    let runs = sorted(curve);
    if runs.iter().any(|run| run.is_limited_by_generator()) {
        return commonest(&runs);
    }
    let last = runs.last()?;
    if runs.iter().all(|run| run.limit == "none") {
        return Some(NONE_REACHED.to_owned());
    }
    let is_last = |run: &&&CurveRun| run.limit == last.limit;
    let first = runs.iter().rev().take_while(is_last).last()?;
    let below: Vec<&&CurveRun> = runs.iter().take_while(|run| place(run) < place(first)).collect();
    let Some(lowest) = below.first() else { return noun(last) };
    let from = match level_of(curve) {
        Some(of) => format!("from {} on", level(first, of)),
        None if place(first).is_finite() => format!("from {}/s on", rate(place(first))),
        None => "in a closed loop".to_owned(),
    };
    let below = match below.iter().all(|run| run.limit == lowest.limit) {
        true if lowest.limit == "none" => "; below, none was reached".to_owned(),
        true => noun(lowest).map_or_else(String::new, |noun| format!("; below, {noun}")),
        false => String::new(),
    };
    match last.limit.as_str() {
        "none" => Some(format!("none reached {from}{below}")),
        _ => Some(format!("{} {from}{below}", noun(last)?)),
    }
}

/// The cause for which the generator was most often the limit.
fn commonest(runs: &[&CurveRun]) -> Option<String> {
    let limited: Vec<&CurveRun> = runs.iter().copied().filter(|run| run.is_limited_by_generator()).collect();
    let kind = |run: &CurveRun| run.cause.as_ref().map(std::mem::discriminant::<Cause>);
    let count = |run: &&CurveRun| limited.iter().filter(|other| kind(other) == kind(run)).count();
    let run = limited.iter().copied().max_by_key(count)?;
    Some(run.cause.as_ref().map_or_else(|| run.says.clone(), common_cause_words))
        .filter(|words| !words.is_empty())
}

/// The limit of a run as a noun; `None` where it is not known.
fn noun(run: &CurveRun) -> Option<String> {
    match (&run.cause, run.limit.as_str()) {
        (_, "unknown" | "none" | "") => None,
        (Some(cause), _) => Some(limit_noun(cause).to_owned()),
        (None, "connections") => Some("what is in flight".to_owned()),
        (None, "others") => Some("other clients".to_owned()),
        (None, limit) => Some(format!("the {limit}")),
    }
}

/// The limits of the runs with the words for each, the commonest first, for who wants everything.
pub(super) fn limits(curve: &CurveDocument) -> Vec<Line> {
    let mut found: Vec<(&CurveRun, usize)> = Vec::new();
    let runs = sorted(curve);
    for run in runs.iter().copied().filter(|run| run.limit != "none") {
        let kind = |run: &CurveRun| run.cause.as_ref().map(std::mem::discriminant::<Cause>);
        match found.iter_mut().find(|(other, _)| other.limit == run.limit && kind(other) == kind(run)) {
            Some((_, count)) => *count += 1,
            None => found.push((run, 1)),
        }
    }
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = |run: &CurveRun| run.cause.as_ref().map_or_else(|| run.says.clone(), cause_words);
    let lines = found.into_iter().map(|(run, count)| {
        let place = match (&run.level, run.asked_rate) {
            (Some(own), _) => format!("at {}", level(run, &own.of)),
            (None, Some(asked)) => format!("at {}/s", rate(asked)),
            (None, None) => "in a closed loop".to_owned(),
        };
        match count {
            1 => format!("{place}: {}", words(run)),
            count => format!("in {}, such as {place}: {}", of_all(count, runs.len()), words(run)),
        }
    });
    lines
        .enumerate()
        .map(|(at, words)| Line::new(if at == 0 { "Limits" } else { "" }, Text::plain(words)))
        .collect()
}
