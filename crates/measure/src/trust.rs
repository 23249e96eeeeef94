//! Reliability of the times of a run: the part of them that is the generator's own delay.

use super::figures::{Figures, QUANTILES, time_text};
use super::limit::{BODY, Case, KeptBack, Lateness, SLIP_MIN_NS, VISIBLE_SHARE, Verdict, Visible};
use super::ops::Ops;
use super::recorder::OpRecord;
use super::sample::Span;
use super::words::percent;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, Nanos};

/// Longest reaction that waking up explains.
const REACTION_MIN_NS: Nanos = 200 * MICROSECOND;
/// Share of a figure from which on its lag makes it the generator's figure and not the server's.
const MOSTLY_SHARE: f64 = 0.5;
/// The figures whose lag makes the times of a run doubtful. Quantiles beyond are of few requests, and are named one by
/// one.
const DOUBTING: [&str; 5] = ["mean", "p50", "p90", "p95", "p99"];
/// The figures that are doubtful from [`VISIBLE_SHARE`] on.
const DOUBTING_SOON: [&str; 3] = ["mean", "p50", "p99"];

/// Reliability of the times of a run. Trust names no limit: lag is no evidence of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// Whether lag is a small part of the response, of the mean and up to the 99th percentile.
    pub ok: bool,
    /// Part of the response that is lag.
    pub lag_share: LagShare,
    /// Names of the figures of the response at least half of which is lag, of all requests together.
    pub mostly_lag: Vec<&'static str>,
    /// The answer in sentences.
    pub says: String,
    /// Reason why the response times are not reliable, as a sentence without its full stop; absent where they are.
    pub doubt: Option<String>,
    /// Reason why a report that has no response times is not reliable, as a sentence without its full stop: the rate of
    /// a closed loop that the generator limited. Absent where it is reliable.
    pub rate_doubt: Option<String>,
}

/// The part of the response that is lag, near the quantiles of the response. Absent where the quantile is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LagShare {
    /// Share of lag in the mean.
    pub mean: Option<f64>,
    /// Share of lag at the median.
    pub p50: Option<f64>,
    /// Share of lag at the 99th percentile.
    pub p99: Option<f64>,
    /// Whether lag and response are those of the same requests. Where they are not, a share is the quantile of the lag by
    /// that of the response, which is an estimate; above 1 it is 1.
    pub same_requests: bool,
}

impl LagShare {
    /// The shares of requests with these figures, by [`Span`], as an estimate.
    pub fn of(figures: &[Figures; Span::COUNT]) -> LagShare {
        let share = |name| Slip::at(figures, name).share;
        LagShare {
            mean: Slip::of_mean(None, figures).share,
            p50: share("p50"),
            p99: share("p99"),
            same_requests: false,
        }
    }
}

/// Lag, reaction and response in one figure of the response.
struct Slip {
    name: &'static str,
    /// The quantile beyond which the requests lie that make the figure.
    quantile: f64,
    lag_ns: Option<Nanos>,
    reaction_ns: Option<Nanos>,
    response_ns: Option<Nanos>,
    /// Part of the response that is lag.
    share: Option<f64>,
    /// Whether `share` is that of the requests of the figure, and not an estimate.
    same_requests: bool,
}

impl Slip {
    fn at(figures: &[Figures; Span::COUNT], name: &'static str) -> Slip {
        let place = QUANTILES.iter().position(|(known, _)| *known == name);
        let known = |span: Span| figures[span as usize].quantiles[place?].known();
        let (lag_ns, response_ns) = (known(Span::Lag), known(Span::Response));
        let estimate = |lag_ns: Nanos, response_ns: Nanos| (lag_ns as f64 / response_ns as f64).min(1.0);
        let share =
            lag_ns.zip(response_ns.filter(|ns| *ns > 0)).map(|(lag, response)| estimate(lag, response));
        let quantile = place.map_or(1.0, |place| QUANTILES[place].1);
        let reaction_ns = known(Span::Reaction);
        Slip { name, quantile, lag_ns, reaction_ns, response_ns, share, same_requests: false }
    }

    /// The lag in the mean: of the requests of the mean where `op` has kept it.
    fn of_mean(op: Option<&OpRecord>, figures: &[Figures; Span::COUNT]) -> Slip {
        let exact = |span: Span| figures[span as usize].exact;
        let (response, lag) = (exact(Span::Response), exact(Span::Lag));
        let sum = op.filter(|op| op.keeps_lag()).map(|op| op.lag_by_response.total() as f64);
        let mean_ns = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let lag_ns =
            sum.map_or_else(|| mean_ns(lag.sum as f64, lag.count), |sum| mean_ns(sum, response.count));
        let response_ns = mean_ns(response.sum as f64, response.count).filter(|ns| *ns > 0.0);
        Slip {
            name: "mean",
            // Few requests can make a mean, if they are late enough.
            quantile: BODY[1].1,
            lag_ns: lag_ns.map(|ns| ns as Nanos),
            reaction_ns: None,
            response_ns: response_ns.map(|ns| ns as Nanos),
            share: lag_ns.zip(response_ns).map(|(lag, response)| (lag / response).min(1.0)),
            same_requests: sum.is_some(),
        }
    }

    /// The lag in the slowest or the quickest response, where `op` has kept it.
    fn of_end(op: &OpRecord, figures: &[Figures; Span::COUNT], name: &'static str) -> Slip {
        let response = &figures[Span::Response as usize];
        let is_max = name == "max";
        let value = if is_max { response.max.known() } else { Some(response.exact.min) };
        let value = value.filter(|_| response.exact.count > 0 && op.keeps_lag());
        let share = value.and_then(|value| op.lag_share_near(value));
        let lag_ns = share.zip(value).map(|(share, ns)| (share * ns as f64) as Nanos);
        let quantile = if is_max { 1.0 } else { 0.0 };
        Slip { name, quantile, lag_ns, reaction_ns: None, response_ns: value, share, same_requests: true }
    }

    /// The slip at a quantile, with the lag of the requests there where that was kept.
    fn of_quantile(
        op: &OpRecord,
        figures: &[Figures; Span::COUNT],
        (name, quantile): (&'static str, f64),
    ) -> Slip {
        let slip = Slip::at(figures, name);
        match op.lag_share(quantile).zip(slip.response_ns) {
            Some((share, response_ns)) => {
                let lag_ns = Some((share * response_ns as f64) as Nanos);
                Slip { lag_ns, share: Some(share), same_requests: true, ..slip }
            }
            None => slip,
        }
    }

    /// The slips in all figures that reports print, in their order.
    fn all_of(op: &OpRecord, figures: &[Figures; Span::COUNT]) -> Vec<Slip> {
        let mut all = vec![Slip::of_end(op, figures, "min"), Slip::of_mean(Some(op), figures)];
        all.extend(QUANTILES.map(|at| Slip::of_quantile(op, figures, at)));
        all.push(Slip::of_end(op, figures, "max"));
        all
    }

    /// Whether half of the figure or more is lag.
    fn is_mostly_lag(&self) -> bool {
        self.share.is_some_and(|share| share >= MOSTLY_SHARE)
    }

    /// Whether enough of the response is lag to be reported.
    fn is_lag_visible(&self) -> bool {
        let is_part = self.lag_ns.is_some_and(|ns| ns > SLIP_MIN_NS)
            && self.share.is_some_and(|share| share > VISIBLE_SHARE);
        is_part || self.is_mostly_lag()
    }

    fn is_reaction_visible(&self) -> bool {
        let (Some(reaction_ns), Some(response_ns)) = (self.reaction_ns, self.response_ns) else {
            return false;
        };
        reaction_ns > REACTION_MIN_NS && reaction_ns as f64 > VISIBLE_SHARE * response_ns as f64
    }

    /// The share and the times, such as `53 % of p99 (25 us of 47 us)`.
    fn words(&self) -> String {
        let text = |ns: Option<Nanos>| time_text(ns.unwrap_or(0));
        let (share, name) = (percent(self.share.unwrap_or(0.0)), figure_name(self.name));
        format!("{share} of {name} ({} of {})", text(self.lag_ns), text(self.response_ns))
    }
}

fn figure_name(name: &str) -> String {
    if name == "mean" { "the mean".to_owned() } else { name.to_owned() }
}

/// Words joined in a sentence: `a`, `a and b`, `a, b and c`.
fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

impl Trust {
    /// Judges the reliability of the times of a run; `figures` are those of all its requests, by [`Span`], and `ops`
    /// are these requests by verb.
    pub fn of(case: &Case<'_>, figures: &[Figures; Span::COUNT], ops: &Ops) -> Trust {
        let slips = Slip::all_of(case.all, figures);
        let doubtful = doubtful(case, &slips);
        let behind = wait_behind_lag(case);
        let ok = doubtful.is_empty() && behind.is_none();
        let at = |name: &str| slips.iter().find(|slip| slip.name == name);
        let share = |name: &str| at(name).and_then(|slip| slip.share);
        let lag_share = LagShare {
            mean: share("mean"),
            p50: share("p50"),
            p99: share("p99"),
            same_requests: BODY.iter().any(|(name, _)| at(name).is_some_and(|slip| slip.same_requests)),
        };
        let mostly: Vec<&Slip> = slips.iter().filter(|slip| slip.is_mostly_lag()).collect();
        let mut says = Vec::new();
        if ok {
            says.push(reliable_sentence(case, &lag_share, !mostly.is_empty()));
        }
        let (mut parts, mut late) = (Vec::new(), Vec::new());
        if !doubtful.is_empty() {
            let about = if lag_share.same_requests { "" } else { "about " };
            parts.push(format!(
                "{about}{}",
                joined(&doubtful.iter().map(|slip| slip.words()).collect::<Vec<_>>())
            ));
            says.push(format!("Part of these times was added by pummel itself: lag is {}.", parts[0]));
            late.extend(doubtful.iter().copied());
        }
        let more: Vec<&Slip> =
            mostly.iter().copied().filter(|slip| !doubtful.iter().any(|one| one.name == slip.name)).collect();
        if !more.is_empty() {
            let names: Vec<String> = more.iter().map(|slip| figure_name(slip.name)).collect();
            let too = if doubtful.is_empty() { "" } else { " too" };
            says.push(format!("Half or more of {} is lag{too}.", joined(&names)));
            late.extend(more.iter().filter(|slip| slip.name != "min"));
        }
        says.extend(verb_sentence(case, ops, &mostly));
        if let Some(wait) = behind {
            let words = format!("{} of wait behind late requests at {}", time_text(wait.value_ns), wait.name);
            says.push(format!(
                "Requests waited behind those that were sent late: {} at {}.",
                time_text(wait.value_ns),
                wait.name
            ));
            parts.push(words);
        }
        says.extend(cause_sentence(case, &late, behind));
        if !ok {
            says.extend(service_sentence(case));
        }
        says.extend(reaction_sentence(case, &slips));
        let doubt = format!("part of these times was added by pummel itself: lag is {}", parts.join(", "));
        let doubt = if doubtful.is_empty() { doubt.replace("lag is ", "") } else { doubt };
        Trust {
            ok,
            lag_share,
            mostly_lag: mostly.iter().map(|slip| slip.name).collect(),
            says: says.join(" "),
            doubt: (!ok).then_some(doubt),
            rate_doubt: rate_doubt(case),
        }
    }

    /// Whether the figures of a part of a run, by [`Span`], are reliable.
    pub fn is_ok(figures: &[Figures; Span::COUNT]) -> bool {
        ["p50", "p99"].iter().all(|name| !Slip::at(figures, name).is_lag_visible())
    }
}

/// The figures whose lag makes the times of a run doubtful.
///
/// The replies of a full server come together in closed loop, and the requests that follow them are sent one after the other: a
/// request that is sent earlier would only wait at the server instead. There it takes half of a figure.
fn doubtful<'s>(case: &Case<'_>, slips: &'s [Slip]) -> Vec<&'s Slip> {
    let waits_anyway = case.is_closed && case.server_is_full();
    let is_doubtful = |slip: &&Slip| match DOUBTING_SOON.contains(&slip.name) && !waits_anyway {
        true => slip.is_lag_visible(),
        false => DOUBTING.contains(&slip.name) && slip.is_mostly_lag(),
    };
    slips.iter().filter(is_doubtful).collect()
}

/// The figures of single verbs that are mostly lag where those of all requests together are not.
fn verb_sentence(case: &Case<'_>, ops: &Ops, mostly: &[&Slip]) -> Option<String> {
    let of_verb = |(verb, op): (Verb, &OpRecord)| {
        let figures = Figures::of_op(op, case.measurement.timeout_ns);
        let names: Vec<String> = Slip::all_of(op, &figures)
            .iter()
            .filter(|slip| slip.is_mostly_lag() && !mostly.iter().any(|one| one.name == slip.name))
            .map(|slip| figure_name(slip.name))
            .collect();
        (!names.is_empty()).then(|| format!("{} of {}", joined(&names), verb.name()))
    };
    let parts: Vec<String> = ops.iter().filter_map(of_verb).collect();
    (!parts.is_empty()).then(|| format!("Of single operations, half or more of {} is lag.", joined(&parts)))
}

/// Reason why the rate of a report without response times is not reliable: in closed loop a generator that is the limit
/// sets it.
fn rate_doubt(case: &Case<'_>) -> Option<String> {
    let mean_ns = case.sum(Span::Lag) / case.moments(Span::Lag).count.max(1) as f64;
    let is_slowed =
        case.is_closed && case.has_stamps() && mean_ns > SLIP_MIN_NS as f64 && case.lag_slows_the_loop();
    let is_limit = is_slowed && Verdict::of(case).is_generator();
    let lag = time_text(mean_ns as Nanos);
    is_limit.then(|| {
        format!("the rate was limited by pummel itself, which sent each request {lag} late on average")
    })
}

/// The wait of an open loop that lag made: where too many requests were kept back for a statement about the tail alone,
/// or where it is longer than what one request behind another takes.
fn wait_behind_lag(case: &Case<'_>) -> Option<Visible> {
    if case.is_closed || !case.lag_made_the_wait() {
        return None;
    }
    let is_much = KeptBack::of(case).is_much(case);
    let behind_one_ns = 2 * case.at(Span::Service, 0.99);
    case.visible_wait().filter(|wait| is_much || wait.value_ns > behind_one_ns)
}

/// Sentence that the times are reliable, and how much of them is lag; or that the lag is not known.
fn reliable_sentence(case: &Case<'_>, shares: &LagShare, has_exceptions: bool) -> String {
    let about = if shares.same_requests { "" } else { "about " };
    match (shares.p50, shares.p99) {
        (Some(p50), Some(p99)) if p50.max(p99) > VISIBLE_SHARE && case.is_closed && case.server_is_full() => format!(
            "Times are reliable: the server was full, and a request that was sent without the generator's own delay (lag, \
             {about}{} of p50 and {} of p99) would have waited there instead.",
            percent(p50),
            percent(p99)
        ),
        (Some(p50), Some(p99)) => format!(
            "Times{} are reliable: the generator's own delay (lag) is {about}{} of p50 and {} of p99.",
            if has_exceptions { " up to p99" } else { "" },
            percent(p50),
            percent(p99)
        ),
        (Some(p50), None) => {
            format!("Lag is {about}{} of p50; the response at p99 is not known.", percent(p50))
        }
        _ if case.all.counts.completed > 0 => {
            "So many requests got no answer that the response is known neither at p50 nor at p99; lag is judged at \
             neither."
                .to_owned()
        }
        _ => "No response was measured, so there are no times to believe.".to_owned(),
    }
}

/// Sentence on the causes of the generator's delay in these figures, as far as they are known.
fn cause_sentence(case: &Case<'_>, late: &[&Slip], behind: Option<Visible>) -> Option<String> {
    let at =
        |slip: &&Slip| (figure_name(slip.name), Lateness::at(case, slip.quantile, slip.lag_ns.unwrap_or(0)));
    let mut causes: Vec<(String, Lateness)> = late.iter().map(at).collect();
    if causes.is_empty() {
        let wait = behind?;
        let (_, quantile) = BODY.into_iter().find(|(name, _)| *name == wait.name)?;
        causes.push((wait.name.to_owned(), Lateness::at(case, quantile, wait.value_ns)));
    }
    let mut groups: Vec<(Vec<String>, Lateness)> = Vec::new();
    for (name, cause) in causes {
        match groups.iter_mut().find(|(_, known)| *known == cause) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], cause)),
        }
    }
    if let [(_, cause)] = groups.as_slice() {
        return Some(match cause {
            Lateness::Unknown => "Its cause is not known.".to_owned(),
            cause => format!("Its cause: {}.", cause.words(case)),
        });
    }
    let words =
        |(names, cause): &(Vec<String>, Lateness)| format!("of {}: {}", joined(names), cause.words(case));
    Some(format!("Its causes: {}.", groups.iter().map(words).collect::<Vec<_>>().join("; ")))
}

/// Sentence on the service times, which are without lag where replies have receive stamps.
fn service_sentence(case: &Case<'_>) -> Option<String> {
    case.has_stamps().then(|| "The service times beside it are without it.".to_owned())
}

/// Sentence on the time for which replies lay unread, where it is long enough for one.
fn reaction_sentence(case: &Case<'_>, slips: &[Slip]) -> Option<String> {
    if !case.has_stamps() {
        return Some(
            "There are no receive stamps, so service times contain the time until a reply was read."
                .to_owned(),
        );
    }
    let of_body = |slip: &&Slip| BODY.iter().any(|(name, _)| *name == slip.name);
    let slip = slips.iter().filter(of_body).find(|slip| slip.is_reaction_visible())?;
    let reaction = time_text(slip.reaction_ns.unwrap_or(0));
    Some(format!("Replies lay unread for {reaction} at {}, which is in none of the times.", slip.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::CellSums;
    use crate::limit::Limit;
    use crate::scenario::{Scenario, closed, quiet};
    use crate::summary::Summary;
    use pummel_logic::plan::Clock;
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MILLISECOND, SECOND};

    #[test]
    fn where_most_requests_got_no_answer_those_that_did_are_not_denied() {
        // The server stands still for all but the first tenth, and what it is asked then times out.
        let length = quiet().length;
        let frozen = (length / 10, 2 * length);
        let trust = Scenario { frozen, timeout: 20 * MILLISECOND, ..quiet() }.summary().trust;
        assert!(trust.says.starts_with("So many requests got no answer that "), "{}", trust.says);
        let nothing = Scenario { length: 0, ..quiet() }.summary().trust;
        assert!(nothing.says.starts_with("No response was measured"), "{}", nothing.says);
    }

    #[test]
    fn lag_is_named_beside_the_response_where_it_is_a_tenth_of_it() {
        let trust = quiet().summary().trust;
        assert!(trust.ok && trust.doubt.is_none());
        assert_eq!(
            trust.says,
            "Times are reliable: the generator's own delay (lag) is 7 % of p50 and 7 % of p99."
        );
        let short = Scenario { lag: 15 * MICROSECOND, ..quiet() }.summary().trust;
        assert!(short.ok, "too short to be worth a sentence: {}", short.says);
        let tail = Scenario { late: (20, 100 * MICROSECOND), ..quiet() }.summary().trust;
        let doubt = tail.doubt.clone().expect("a word");
        assert!(doubt.starts_with("part of these times was added by pummel itself: lag is "), "{doubt}");
        assert!(doubt.contains("of p99 (") && !doubt.contains("p50"), "{doubt}");
        assert!(tail.says.contains(" % of p99 (") && !tail.says.contains("p50"), "{}", tail.says);
        assert!((tail.lag_share.p99.expect("known") - 100.0 / 140.0).abs() < 0.03, "{tail:?}");
        let most = Scenario { lag: 100 * MICROSECOND, ..quiet() }.summary().trust;
        assert!(most.says.contains(" % of p50 (") && most.says.contains(" and "), "{}", most.says);
        assert!((most.lag_share.p50.expect("known") - 100.0 / 140.0).abs() < 0.03, "{most:?}");
    }

    #[test]
    fn the_share_of_lag_is_that_of_the_same_requests_where_it_was_kept() {
        let late = Scenario { late: (20, 100 * MICROSECOND), ..quiet() };
        let (mut measurement, plan) = (late.measurement(), late.plan());
        let kept = Summary::of(&measurement, &plan).trust;
        assert!(kept.lag_share.same_requests && !kept.says.contains("lag is about"), "{kept:?}");
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let estimated = Summary::of(&measurement, &plan).trust;
        assert!(
            !estimated.lag_share.same_requests
                && estimated.says.contains("lag is about ")
                && estimated.says.contains("71 % of p99"),
            "{estimated:?}"
        );
        let (mut measurement, plan) = (quiet().measurement(), quiet().plan());
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let says = Summary::of(&measurement, &plan).trust.says;
        assert_eq!(
            says,
            "Times are reliable: the generator's own delay (lag) is about 7 % of p50 and 7 % of p99."
        );
    }

    #[test]
    fn waits_behind_late_requests_are_the_generators_too() {
        let paused =
            Scenario { connections: 1, paused: vec![(SECOND, SECOND / 2)], ..quiet() }.summary().trust;
        assert!(
            !paused.ok && paused.says.contains("Requests waited behind those that were sent late: "),
            "{paused:?}"
        );
        assert!(paused.doubt.is_some_and(|doubt| doubt.contains("of wait behind late requests at p99")));
    }

    #[test]
    fn the_cause_of_lag_is_named_where_it_is_known_and_never_made_up() {
        let late =
            Scenario { late: (20, 100 * MICROSECOND), paused: vec![(SECOND, 80 * MILLISECOND)], ..quiet() };
        let says = |run: &Scenario| run.summary().trust.says;
        assert!(
            says(&late).contains("1 stall of its threads took 80.0 ms; why they stood still is not known"),
            "{}",
            says(&late)
        );
        let stolen =
            late.clone().seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(280 * MILLISECOND));
        let words = "1 stall of its threads took 80.0 ms, and the hypervisor took a CPU away for 70.0 ms";
        assert!(says(&stolen).contains(words), "{}", says(&stolen));
        let little = late.seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(40 * MILLISECOND));
        assert!(
            says(&little).contains("why they stood still is not known"),
            "10 ms do not make 80: {}",
            says(&little)
        );
        let calm = Scenario { late: (20, 100 * MICROSECOND), ..quiet() };
        assert!(says(&calm).contains("Its cause is not known."), "{}", says(&calm));
        let busy = Scenario { busy_share: 0.95, ..calm };
        assert!(says(&busy).contains("a client thread was busy 95 % of the time"), "{}", says(&busy));
    }

    #[test]
    fn stalls_are_the_cause_only_at_quantiles_that_they_can_reach() {
        let says = |paused: Vec<(u64, u64)>, lag, rate| {
            Scenario { late: (20, 100 * MICROSECOND), paused, lag, rate, connections: 50, ..quiet() }
                .summary()
                .trust
                .says
        };
        // 3 ms of 20,000/s are some 60 of 80,000 requests; the 99th percentile has 800 beyond it.
        let one = says(vec![(SECOND, 3 * MILLISECOND)], 3 * MICROSECOND, Some(20_000.0));
        assert!(one.contains("not known") && !one.contains("of p99: 1 stall"), "{one}");
        // With lag at the median too, a stall that reaches p99 is named for that alone.
        let many = says(vec![(SECOND, 80 * MILLISECOND)], 60 * MICROSECOND, Some(1_000.0));
        assert!(
            many.contains("p99.9 and p99.99") || many.contains("1 stall of its threads took 80.0 ms"),
            "{many}"
        );
        assert!(many.contains("of p50, p90 and p95: not known"), "{many}");
        // In closed loop a stall touches each slot once.
        let closed = Scenario {
            late: (20, 100 * MICROSECOND),
            paused: vec![(SECOND / 10, 3 * MILLISECOND)],
            ..closed()
        };
        let says = closed.summary().trust.says;
        assert!(says.contains("not known"), "{says}");
    }

    #[test]
    fn every_figure_that_is_mostly_lag_is_named_and_few_requests_alone_cast_no_doubt() {
        // One stop of 3 s in 8 s touches one request of each slot in closed loop, and makes half of the mean.
        let stopped = Scenario {
            connections: 50,
            length: 8 * SECOND,
            service: 20 * MILLISECOND,
            paused: vec![(3 * SECOND, 3 * SECOND)],
            ..closed()
        };
        let trust = stopped.summary().trust;
        assert!(!trust.ok && trust.lag_share.mean.is_some_and(|share| share > 0.3), "{trust:?}");
        assert!(trust.says.contains(" of the mean (") && !trust.says.contains("reliable"), "{}", trust.says);
        for name in ["p99.9", "p99.99", "max"] {
            assert!(trust.mostly_lag.contains(&name) && trust.says.contains(name), "{name}: {trust:?}");
        }
        assert!(!trust.mostly_lag.contains(&"p50"), "{trust:?}");
        // One request of 4,000 that is late is the maximum, and nothing else.
        let once = Scenario { late: (4_100, 200 * MICROSECOND), ..quiet() };
        let trust = once.summary().trust;
        assert!(trust.ok && trust.mostly_lag.contains(&"max"), "{trust:?}");
        assert!(trust.says.starts_with("Times up to p99 are reliable: "), "{}", trust.says);
        assert!(trust.says.contains("max is lag."), "{}", trust.says);
        assert!(quiet().summary().trust.mostly_lag.is_empty());
    }

    #[test]
    fn half_of_a_figure_is_never_reliable_however_short_it_is() {
        let short = Scenario { lag: 18 * MICROSECOND, service: 17 * MICROSECOND, ..quiet() };
        let trust = short.summary().trust;
        assert!(!trust.ok && trust.mostly_lag.contains(&"p50"), "{trust:?}");
        let less = Scenario { lag: 15 * MICROSECOND, service: 17 * MICROSECOND, ..quiet() };
        assert!(less.summary().trust.ok, "less than half, and less than 20 us");
    }

    #[test]
    fn a_closed_loop_at_a_full_server_is_reliable_although_replies_come_together() {
        let run = Scenario {
            connections: 50,
            depth: 16,
            service: 800 * MICROSECOND,
            lag: 150 * MICROSECOND,
            length: SECOND / 20,
            ..closed()
        };
        let full = run.clone().seen(&[0.98, 0.01], 1).summary().trust;
        assert!(full.ok && full.doubt.is_none(), "{full:?}");
        assert!(
            full.says.starts_with("Times are reliable: the server was full, and a request"),
            "{}",
            full.says
        );
        let idle = run.clone().seen(&[0.3], 1).summary().trust;
        assert!(!idle.ok, "{idle:?}");
        let late = Scenario { lag: 900 * MICROSECOND, ..run }.seen(&[0.98], 1).summary().trust;
        assert!(!late.ok, "more than half: {late:?}");
    }

    #[test]
    fn where_the_client_threads_slept_that_is_the_cause() {
        let run = Scenario { connections: 1, lag: 25 * MICROSECOND, service: 20 * MICROSECOND, ..closed() };
        let says = |slept: bool| {
            let mut measurement = run.measurement();
            measurement.generator.slept = slept;
            Summary::of(&measurement, &run.plan()).trust.says
        };
        assert!(
            says(true).contains("Its cause: the client threads sleep") && says(true).contains("--wait spin")
        );
        assert!(says(false).contains("Its cause is not known."), "{}", says(false));
        // Many replies of one thread come together, and wait for each other.
        let many = Scenario { connections: 50, ..run.clone() };
        let mut measurement = many.measurement();
        measurement.generator.slept = true;
        let trust = Summary::of(&measurement, &many.plan()).trust;
        assert!(!trust.says.contains("sleep"), "{}", trust.says);
    }

    #[test]
    fn trust_and_limit_name_one_cause() {
        let run = Scenario { connections: 4, lag: 60 * MICROSECOND, ..closed() }.seen(&[0.2], 1);
        let run = run.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(machine.span_ns / 4);
            machine.used_by_cpu.insert(1, machine.span_ns);
        });
        let summary = run.summary();
        assert_eq!(summary.verdict.row, "generator-cpu-taken", "{}", summary.verdict.says);
        assert!(summary.verdict.says.contains("other processes"), "{}", summary.verdict.says);
        let trust = &summary.trust.says;
        assert!(trust.contains("other processes took a CPU away") && !trust.contains("not known"), "{trust}");
        // The server is full, so that it is the limit; what the thread missed, and what waited until it had caught up, are most requests.
        let full =
            Scenario { connections: 4, lag: 2 * MILLISECOND, busy_share: 0.35, ..closed() }.seen(&[0.95], 1);
        let full = full.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(machine.span_ns * 4 / 10);
            machine.used_by_cpu.insert(1, machine.span_ns);
        });
        let summary = full.summary();
        let trust = &summary.trust.says;
        assert_eq!(summary.verdict.row, "server-cpu", "{}", summary.verdict.says);
        assert!(trust.contains("other processes took a CPU away") && !trust.contains("not known"), "{trust}");
    }

    #[test]
    fn a_report_without_response_times_doubts_only_the_rate_of_a_generator_at_its_limit() {
        let sleepy = Scenario { lag: 60 * MICROSECOND, ..quiet() }.seen(&[0.2], 1).summary().trust;
        assert!(sleepy.doubt.is_some() && sleepy.rate_doubt.is_none(), "{sleepy:?}");
        let busy = Scenario { lag: 60 * MICROSECOND, busy_share: 0.97, ..closed() }.seen(&[0.2], 1);
        let doubt = busy.summary().trust.rate_doubt.expect("the thread had no time");
        assert!(doubt.starts_with("the rate was limited by pummel itself"), "{doubt}");
        let spare = Scenario { lag: 60 * MICROSECOND, ..closed() }.seen(&[0.2], 1).summary().trust;
        assert_eq!(spare.rate_doubt, None);
    }

    #[test]
    fn trust_names_no_limit_and_the_limit_follows_no_lag_of_a_closed_loop() {
        let lagging = Scenario { lag: 60 * MICROSECOND, ..closed() }.seen(&[0.3], 1).summary();
        assert!(!lagging.trust.ok);
        assert_eq!(lagging.verdict.limit, Limit::Connections, "{}", lagging.verdict.says);
        assert!(
            lagging.trust.says.contains("The service times beside it are without it."),
            "{}",
            lagging.trust.says
        );
    }

    #[test]
    fn replies_that_lay_unread_are_said_and_doubt_no_time_but_where_there_are_no_stamps() {
        let unread = Scenario { reaction: MILLISECOND, ..quiet() }.summary().trust;
        assert!(
            unread.ok && unread.says.contains("Replies lay unread for 1.00 ms at p50"),
            "{}",
            unread.says
        );
        let waking = Scenario { reaction: 150 * MICROSECOND, ..quiet() }.summary().trust;
        assert!(!waking.says.contains("unread"), "{}", waking.says);
        let user = Scenario { clock: Clock::User, ..quiet() }.summary().trust;
        assert!(user.says.contains("service times contain the time until a reply was read"), "{}", user.says);
    }

    #[test]
    fn what_is_not_known_is_no_share() {
        let nothing = Scenario { length: 0, ..quiet() }.summary().trust;
        assert_eq!((nothing.lag_share.p50, nothing.lag_share.p99), (None, None));
        let timeout = 20 * MILLISECOND;
        let lost =
            Scenario { connections: 1_000, frozen: (SECOND, SECOND), timeout, ..quiet() }.summary().trust;
        assert!(lost.lag_share.p50.is_some() && lost.lag_share.p99.is_none(), "{lost:?}");
        assert!(lost.says.contains("the response at p99 is not known"), "{}", lost.says);
    }
}
