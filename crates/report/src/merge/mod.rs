//! Results of runs that shared one load at one time, added up to one result; or kept apart as repetitions.

mod intervals;
mod part;
mod plan;
mod requests;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pummel_logic::merge::Merge as _;
use pummel_logic::plan::{Group, Plan, Work};
use pummel_logic::protocol::udp::DatagramCounts;
use pummel_logic::time::{from_seconds, seconds};
use pummel_measure::limit::Limit;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::stops::STOP_MIN_NS;
use pummel_measure::summary::Summary;

use self::intervals::{anatomy_of, intervals_of};
use self::part::labels_of;
pub use self::part::{NotMerged, Part};
use self::plan::together;
use self::requests::{ops_of, tally_of};
use crate::comparison::SideSource;
use crate::document::{
    ConnectionsResult, Document, GeneratorResult, LagShareResult, MergedLimit, MergedResult, Named,
    NoIntervals, RequestTotals, StopResult, TimeFigures, TrustResult, VerdictResult, VerifyResult,
};
use crate::repetition::Repetition;
use crate::run_figures::RunFigures;
use crate::words::intervals::missing;
use crate::words::{limit, trust};
use crate::{Build, Ending, Report};

/// Most results that are merged.
pub const PARTS_MAX: usize = 1_000;

/// The least share of the longest run for which all runs have to overlap.
const OVERLAP_MIN: f64 = 0.9;

/// Wrong keys that are shown.
const WRONG_KEYS_MAX: usize = 10;

/// The sum of results that had shares of one plan at one time. Counts, bytes and histograms are added exactly; the
/// quantiles are those of all requests together. `build` is the program that adds.
///
/// # Errors
/// Returns [`NotMerged`] where the results are no shares of one load, and where one of them lacks what the sum needs.
pub fn merged(parts: &[Part<'_>], build: Build) -> Result<Document, NotMerged> {
    check_count(parts)?;
    check_work(parts)?;
    let plan = together(parts)?;
    check_time(parts)?;
    let measurement = measurement_of(parts, &plan)?;
    let names = names_of(parts);
    let parts = &named(parts, &names);
    let summary = Summary::of(&measurement, &plan);
    let front = &parts[0].document.front;
    let (plan, measurement, summary, ending) = (&plan, &measurement, &summary, Ending::Open);
    let sum = Document::of(&Report { plan, measurement, summary, front, build, ending });
    let mut sum = with_what_is_not_measured(sum, parts);
    sum.totals = RequestTotals { skipped: skipped_of(parts), ..sum.totals };
    Ok(sum)
}

/// The results as repetitions of one run, in the order in which they were made.
///
/// # Errors
/// Returns [`NotMerged`] where the runs were made after different plans.
pub fn as_runs(parts: &[Part<'_>]) -> Result<Repetition, NotMerged> {
    check_count(parts)?;
    let mut parts = parts.to_vec();
    let began = |part: &Part<'_>| part.document.started_unix_s.unwrap_or(f64::INFINITY);
    parts.sort_by(|one, other| began(one).total_cmp(&began(other)));
    plan::check_same(&parts)?;
    let names = names_of(&parts);
    let parts = named(&parts, &names);
    let first = parts[0].document;
    let is_interrupted = parts.iter().any(|part| part.document.status == Status::Interrupted);
    let plan = first.plan.clone().with_labels(labels_of(&parts));
    let mut repetition = Repetition::new(&plan, Vec::new(), parts.len() as u32, None);
    let runs = parts.iter().map(|part| RunFigures::of(part.document, part.document.seconds));
    repetition.extend(runs, SideSource::of(first));
    repetition.end(reason_of(&parts), is_interrupted);
    Ok(repetition)
}

/// Names of the parts in the sum: their files, or numbered words if one of them is anonymous.
fn names_of(parts: &[Part<'_>]) -> Vec<String> {
    let is_anonymous = parts.iter().any(|part| part.document.plan.anonymous);
    let name = |(at, part): (usize, &Part<'_>)| match is_anonymous {
        true => format!("result-{}", at + 1),
        false => part.name.to_owned(),
    };
    parts.iter().enumerate().map(name).collect()
}

/// The parts under other names.
fn named<'a>(parts: &[Part<'a>], names: &'a [String]) -> Vec<Part<'a>> {
    parts.iter().zip(names).map(|(part, name)| Part { name, document: part.document }).collect()
}

/// Refuses too few, too many, and one result twice.
fn check_count(parts: &[Part<'_>]) -> Result<(), NotMerged> {
    if parts.len() < 2 || parts.len() > PARTS_MAX {
        return Err(NotMerged(format!("2 to {PARTS_MAX} results are merged, not {}", parts.len())));
    }
    for (number, part) in parts.iter().enumerate() {
        let is_twin = |other: &&Part<'_>| other.document == part.document;
        if let Some(twin) = parts[..number].iter().find(is_twin) {
            return Err(NotMerged(format!(
                "{} and {} are one result: it would count twice",
                twin.name, part.name
            )));
        }
    }
    Ok(())
}

/// Refuses works whose results cannot be added up.
fn check_work(parts: &[Part<'_>]) -> Result<(), NotMerged> {
    let refused = |part: &Part<'_>, why: &str| Err(NotMerged(format!("{}: {why}", part.name)));
    for part in parts {
        let document = part.document;
        if document.window.is_some() {
            return refused(part, "the windows of memaslap's clients are not merged");
        }
        if document.connections.churn.is_some() {
            return refused(part, "results of clients that come and go are not merged");
        }
        if !document.plan.changes.is_nothing() {
            return refused(
                part,
                "a load that changes while it is measured (--stage, --burst, --phases; plan.changes) is not merged",
            );
        }
        if document.trace.is_some()
            || document.plan.phases.iter().any(|phase| matches!(phase.work, Work::Trace(_)))
        {
            return refused(part, "the figures of a replayed trace are not merged");
        }
        if document.agents.is_some() {
            return refused(part, "it is a sum of agents already, and its processes would be lost");
        }
        if document.plan.anonymous != parts[0].document.plan.anonymous {
            return refused(part, "only some of the results are anonymous");
        }
    }
    Ok(())
}

/// Refuses runs that were not at one time: their rates do not add up.
fn check_time(parts: &[Part<'_>]) -> Result<(), NotMerged> {
    let mut spans = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(began) = part.document.started_unix_s.filter(|_| part.document.seconds > 0.0) else {
            let why = "nothing was measured, or it is not known when: rates add up only of runs at one time";
            return Err(NotMerged(format!("{}: {why}", part.name)));
        };
        spans.push((began, began + part.document.seconds));
    }
    let longest = parts.iter().map(|part| part.document.seconds).fold(0.0, f64::max);
    let from = spans.iter().map(|span| span.0).fold(f64::MIN, f64::max);
    let to = spans.iter().map(|span| span.1).fold(f64::MAX, f64::min);
    let common = (to - from).max(0.0);
    if common < OVERLAP_MIN * longest {
        return Err(NotMerged(format!(
            "the runs were not at one time: of {longest:.1} s only {common:.1} s are common to all, and their rates do not add \
             up; --as-runs keeps them as repetitions"
        )));
    }
    Ok(())
}

/// The measurements of the parts, added up.
fn measurement_of(parts: &[Part<'_>], plan: &Plan) -> Result<Measurement, NotMerged> {
    let names = plan.groups.iter().map(|group| group.name.clone());
    let first = parts[0].document;
    let mut sum = Measurement::new(names, first.clock, plan.timeout_ns);
    let longest = parts.iter().map(|part| part.document.seconds).fold(0.0, f64::max);
    sum.measured_ns = from_seconds(longest);
    let began = parts.iter().filter_map(|part| part.document.started_unix_s).fold(f64::MAX, f64::min);
    sum.started_unix_ns = from_seconds(began);
    sum.status = parts.iter().map(|part| part.document.status).max().unwrap_or(Status::Complete);
    for part in parts {
        let document = part.document;
        for (group, ops) in sum.groups.iter_mut().zip(ops_of(part, plan)?) {
            group.ops.merge(&ops);
        }
        sum.whole_run.ops.merge(&tally_of(&document.whole_run.ops, plan));
        sum.whole_run.bytes.merge(&document.whole_run.bytes);
        sum.counters.bytes.merge(&document.bytes);
        sum.unix_socket |= document.unix_socket;
        sum.noreply_errors += document.noreply_errors.unwrap_or(0);
        if let Some(retry) = &document.retry {
            sum.counters.retry.merge(retry);
        }
        sum.counters.skipped.requests += document.totals.skipped.unwrap_or(0);
        for (message, count) in document.error_messages.iter() {
            sum.message(message.as_bytes(), *count);
        }
        if let Some(counts) = &document.udp {
            sum.udp.get_or_insert_with(DatagramCounts::default).merge(counts);
        }
        if let Some(samples) = &document.samples {
            sum.samples.get_or_insert_default().merge(samples);
        }
        sum.machines.extend(document.machine.iter().cloned());
    }
    let detected = &first.detected;
    sum.detected = detected.clone().filter(|_| parts.iter().all(|part| part.document.detected == *detected));
    Ok(sum)
}

/// The reasons why parts are not complete, each with the part's name; `None` if all are complete.
fn reason_of(parts: &[Part<'_>]) -> Option<String> {
    let reasons = parts.iter().filter(|part| part.document.status != Status::Complete).map(|part| {
        let reason = part.document.reason.as_deref().unwrap_or("the run was not complete");
        format!("{}: {reason}", part.name)
    });
    Some(reasons.collect::<Vec<_>>().join("; ")).filter(|reasons| !reasons.is_empty())
}

fn skipped_of(parts: &[Part<'_>]) -> Option<u64> {
    parts.iter().filter_map(|part| part.document.totals.skipped).reduce(|sum, more| sum + more)
}

/// The sum with the parts of a result that are not measured: the answers, the machines and the connections.
fn with_what_is_not_measured(sum: Document, parts: &[Part<'_>]) -> Document {
    let is_each = |what: bool| parts.iter().all(|part| part.document.steady == Some(what));
    let is_changed = parts.iter().any(|part| part.document.steady == Some(false));
    let (outcome, outcome_says) = outcome_of(&sum, parts);
    let of_parts: Vec<MergedResult> = parts.iter().map(merged_of).collect();
    let names = names_of(parts);
    Document {
        reason: reason_of(&named(parts, &names)),
        outcome,
        outcome_says,
        labels: labels_of(parts),
        load: parts.iter().filter_map(|part| part.document.load.clone()).reduce(|mut all, more| {
            all.add(&more);
            all
        }),
        connections: connections_of(parts),
        verify: verify_of(parts),
        generator: generator_of(parts),
        trust: trust_of(parts, &of_parts),
        verdict: verdict_of(&of_parts),
        certainty: None,
        certainty_missing: Some(missing(NoIntervals::Merged).to_owned()),
        certainty_missing_kind: Some(NoIntervals::Merged),
        anatomy: anatomy_of(parts),
        steady: if is_changed { Some(false) } else { is_each(true).then_some(true) },
        // A change is that of a part; its figures are not those of the sum.
        change: None,
        // How sure a quantile is follows from the windows too, and those of the parts are about their own figures.
        until: None,
        intervals: intervals_of(parts),
        stops: stops_of(parts, &sum),
        merged: of_parts,
        ..sum
    }
}

/// The outcome of the sum: its own where its requests failed, and overloaded where a part was, which the windows of the part showed.
fn outcome_of(sum: &Document, parts: &[Part<'_>]) -> (RunOutcome, Option<String>) {
    let names = names_of(parts);
    let says: Vec<String> = named(parts, &names)
        .iter()
        .filter(|part| part.document.outcome == RunOutcome::Overloaded)
        .filter_map(|part| Some(format!("{}: {}", part.name, part.document.outcome_says.as_ref()?)))
        .collect();
    match sum.outcome {
        RunOutcome::Ok if !says.is_empty() => (RunOutcome::Overloaded, Some(says.join("; "))),
        outcome => (outcome, sum.outcome_says.clone()),
    }
}

fn merged_of(part: &Part<'_>) -> MergedResult {
    let document = part.document;
    MergedResult {
        file: part.name.to_owned(),
        seed: document.plan.seed,
        clients: document.plan.groups.iter().map(|group| u64::from(group.clients)).sum(),
        started_unix_s: document.started_unix_s,
        seconds: document.seconds,
        requests: document.totals.requests,
        completed: document.totals.completed,
        rate: document.totals.rate,
        steady: document.steady,
        change: document.change.clone(),
        why: document.why.clone(),
        trust: document.trust.clone(),
        limit: limit_of(document),
        stops: document.stops.clone(),
    }
}

/// The connections. The time that opening took is known only for each part, except the least and the greatest.
fn connections_of(parts: &[Part<'_>]) -> ConnectionsResult {
    let mut sum = ConnectionsResult::default();
    for part in parts {
        let ConnectionsResult {
            asked,
            open,
            failed,
            turned_away,
            no_port,
            lost,
            reconnected,
            handshakes,
            resumed,
            ..
        } = &part.document.connections;
        sum.asked += asked;
        sum.open += open;
        sum.failed += failed;
        sum.turned_away += turned_away;
        sum.no_port += no_port;
        sum.lost += lost;
        sum.reconnected += reconnected;
        sum.handshakes = handshakes.map_or(sum.handshakes, |more| Some(sum.handshakes.unwrap_or(0) + more));
        sum.resumed = resumed.map_or(sum.resumed, |more| Some(sum.resumed.unwrap_or(0) + more));
    }
    let ends = |of: fn(&ConnectionsResult) -> Option<&TimeFigures>| {
        let all: Vec<&TimeFigures> = parts.iter().filter_map(|part| of(&part.document.connections)).collect();
        let min = all.iter().filter_map(|times| times.min).reduce(f64::min);
        let max = all.iter().filter_map(|times| times.max).reduce(f64::max);
        TimeFigures { min, max, ..TimeFigures::default() }
    };
    sum.connect_us = ends(|connections| Some(&connections.connect_us));
    sum.handshake_us = sum.handshakes.map(|_| ends(|connections| connections.handshake_us.as_ref()));
    sum
}

/// The checked values. The failed keys are known only for each part, so their number is a lower bound.
fn verify_of(parts: &[Part<'_>]) -> VerifyResult {
    let mut sum = VerifyResult::default();
    for verify in parts.iter().map(|part| &part.document.verify) {
        sum.failed_keys_or_more |=
            verify.failed_keys_or_more || (sum.failed_keys > 0 && verify.failed_keys > 0);
        sum.checked += verify.checked;
        sum.failed += verify.failed;
        sum.stale += verify.stale;
        sum.short += verify.short;
        sum.failed_keys = sum.failed_keys.max(verify.failed_keys);
        for wrong in &verify.first {
            if sum.first.len() < WRONG_KEYS_MAX && sum.first.iter().all(|known| known.key != wrong.key) {
                sum.first.push(wrong.clone());
            }
        }
    }
    sum
}

fn generator_of(parts: &[Part<'_>]) -> GeneratorResult {
    let mut sum = GeneratorResult::default();
    let completed: u64 = parts.iter().map(|part| part.document.totals.completed).sum();
    let ended = completed + parts.iter().map(|part| part.document.totals.errors).sum::<u64>();
    for part in parts {
        let own = &part.document.generator;
        sum.cpu_user_s += own.cpu_user_s;
        sum.cpu_system_s += own.cpu_system_s;
        sum.busy_share_max = sum.busy_share_max.max(own.busy_share_max);
        sum.busy_shares.extend(&own.busy_shares);
        sum.stalls += own.stalls;
        sum.stalled_s += own.stalled_s;
        sum.stamps.merge(&own.stamps);
        sum.peak_rss_bytes = sum.peak_rss_bytes.max(own.peak_rss_bytes);
        sum.limited |= own.limited;
        sum.why = sum.why.or_else(|| own.why.as_ref().map(|why| format!("{}: {why}", part.name)));
    }
    let cpu_us = (sum.cpu_user_s + sum.cpu_system_s) * 1e6;
    // A part in which an agent was lost does not know it.
    let is_known = parts.iter().all(|part| {
        let document = part.document;
        document.totals.completed == 0 || document.generator.cpu_us_per_request.is_some()
    });
    sum.cpu_us_per_request = (completed > 0 && is_known).then(|| (cpu_us / ended as f64 * 1e3).round() / 1e3);
    let lists = parts.iter().filter_map(|part| part.document.generator.backend.as_deref());
    let used: BTreeSet<&str> = lists.flat_map(|list| list.split(", ")).collect();
    sum.backend = Some(used.into_iter().collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty());
    sum
}

/// The times of the sum may be believed where those of every part may.
fn trust_of(parts: &[Part<'_>], of_parts: &[MergedResult]) -> Option<TrustResult> {
    let all: Option<Vec<&TrustResult>> = parts.iter().map(|part| part.document.trust.as_ref()).collect();
    let all = all?;
    let greatest = |of: fn(&LagShareResult) -> Option<f64>| {
        all.iter().filter_map(|trust| of(&trust.lag_share)).reduce(f64::max)
    };
    let lag_share = LagShareResult {
        mean: greatest(|share| share.mean),
        p50: greatest(|share| share.p50),
        p99: greatest(|share| share.p99),
        p99_9: greatest(|share| share.p99_9),
        same_requests: all.iter().all(|trust| trust.lag_share.same_requests),
    };
    let add = |all: &mut Vec<String>, names: &[String]| {
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
    };
    let (mut mostly_lag, mut mostly_lag_of) = (Vec::new(), Named::<Vec<String>>::default());
    for trust in &all {
        add(&mut mostly_lag, &trust.mostly_lag);
        for (operation, names) in trust.mostly_lag_of.iter() {
            match mostly_lag_of.0.iter_mut().find(|(known, _)| known == operation) {
                Some((_, all)) => add(all, names),
                None => mostly_lag_of.0.push((operation.to_owned(), names.clone())),
            }
        }
    }
    let ok = all.iter().all(|trust| trust.ok);
    let mut sum = TrustResult { ok, lag_share, mostly_lag, mostly_lag_of, ..TrustResult::default() };
    let is_closed = parts[0].document.plan.groups.iter().all(Group::is_closed_loop);
    sum.says = trust::merged(&sum, of_parts, is_closed).map(|line| line.to_string()).unwrap_or_default();
    Some(sum)
}

/// The limit is known where every part names the same.
fn verdict_of(of_parts: &[MergedResult]) -> Option<VerdictResult> {
    let all: Option<Vec<&MergedLimit>> = of_parts.iter().map(|part| part.limit.as_ref()).collect();
    let all = all?;
    let is_one = all.iter().all(|part| part.limit == all[0].limit);
    let limit = if is_one { all[0].limit.as_str() } else { Limit::Unknown.name() };
    Some(VerdictResult {
        limit: limit.to_owned(),
        row: "merged".to_owned(),
        says: limit::merged(of_parts),
        ..VerdictResult::default()
    })
}

/// The limit of a part, in the words of its report.
fn limit_of(document: &Document) -> Option<MergedLimit> {
    let verdict = document.verdict.as_ref()?;
    Some(MergedLimit {
        limit: document.limit()?.to_owned(),
        says: document.limit_line().unwrap_or_else(|| verdict.says.clone()),
        cause: verdict.cause.clone(),
    })
}

/// The times in which no part got a reply, in order, in seconds from the beginning of the sum.
fn stops_of(parts: &[Part<'_>], sum: &Document) -> Vec<StopResult> {
    let began = sum.started_unix_s.unwrap_or_default();
    let of_part = |part: &Part<'_>| {
        let offset = part.document.started_unix_s.unwrap_or(began) - began;
        let moved = |stop: &StopResult| StopResult {
            from_s: stop.from_s + offset,
            to_s: stop.to_s + offset,
            lasted: stop.lasted,
        };
        part.document.stops.iter().map(moved).collect::<Vec<_>>()
    };
    let common = parts.iter().map(of_part).reduce(|all, more| {
        let both = |one: &StopResult, other: &StopResult| StopResult {
            from_s: one.from_s.max(other.from_s),
            to_s: one.to_s.min(other.to_s),
            lasted: one.lasted && other.lasted,
        };
        all.iter().flat_map(|one| more.iter().map(move |other| both(one, other))).collect::<Vec<_>>()
    });
    let mut common = common.unwrap_or_default();
    common.retain(|stop| stop.to_s - stop.from_s >= seconds(STOP_MIN_NS));
    let rounded = |time_s: f64| (time_s * 1e3).round() / 1e3;
    for stop in &mut common {
        (stop.from_s, stop.to_s) = (rounded(stop.from_s), rounded(stop.to_s));
    }
    common
}
