//! Whether the times of a run may be believed: how much of them is the generator's own.

use super::figures::{Figures, QUANTILES, time_text};
use super::limit::{BODY, Case, FULL_SHARE, KeptBack, SLIP_MIN_NS, VISIBLE_SHARE, Visible};
use super::sample::Span;
use super::words::{capitalised, counted, percent};
use crate::time::{MICROSECOND, Nanos};

/// Reaction of this many nanoseconds or less is what waking up takes.
const REACTION_MIN_NS: Nanos = 200 * MICROSECOND;
/// What takes less than this share of the time that was lost in stalls did not cause them.
const CAUSE_SHARE: f64 = 0.5;

/// How far the times of a run may be believed. Trust names no limit: lag is no evidence of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// Whether lag is a small part of the response, at the median and at the 99th percentile.
    pub ok: bool,
    /// Part of the response that is lag.
    pub lag_share: LagShare,
    /// The answer in sentences.
    pub says: String,
    /// Why the times may not be believed, as a sentence without its full stop; absent where they may.
    pub doubt: Option<String>,
}

/// The part of the response that is lag, near the quantiles of the response. Absent where the quantile is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LagShare {
    /// At the median.
    pub p50: Option<f64>,
    /// At the 99th percentile.
    pub p99: Option<f64>,
    /// Whether lag and response are those of the same requests. Where they are not, a share is the quantile of the lag by
    /// that of the response, which is an estimate; above 1 it is 1.
    pub same_requests: bool,
}

impl LagShare {
    /// The shares of requests with these figures, by [`Span`], as an estimate.
    pub fn of(figures: &[Figures; Span::COUNT]) -> LagShare {
        let share = |name| Slip::at(figures, name).share;
        LagShare { p50: share("p50"), p99: share("p99"), same_requests: false }
    }
}

/// Lag, reaction and response at one quantile.
struct Slip {
    name: &'static str,
    lag_ns: Option<Nanos>,
    reaction_ns: Option<Nanos>,
    response_ns: Option<Nanos>,
    /// Part of the response that is lag.
    share: Option<f64>,
    /// Whether that is the part of the same requests.
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
        Slip { name, lag_ns, reaction_ns: known(Span::Reaction), response_ns, share, same_requests: false }
    }

    /// The slip at a quantile, with the lag of the same requests where that was kept.
    fn of_case(
        case: &Case<'_>,
        figures: &[Figures; Span::COUNT],
        (name, quantile): (&'static str, f64),
    ) -> Slip {
        let slip = Slip::at(figures, name);
        match case.all.lag_share(quantile).zip(slip.response_ns) {
            Some((share, response_ns)) => {
                let lag_ns = Some((share * response_ns as f64) as Nanos);
                Slip { lag_ns, share: Some(share), same_requests: true, ..slip }
            }
            None => slip,
        }
    }

    /// Whether so much of the response is lag that it has to be said.
    fn is_lag_visible(&self) -> bool {
        self.lag_ns.is_some_and(|ns| ns > SLIP_MIN_NS)
            && self.share.is_some_and(|share| share > VISIBLE_SHARE)
    }

    fn is_reaction_visible(&self) -> bool {
        let (Some(reaction_ns), Some(response_ns)) = (self.reaction_ns, self.response_ns) else {
            return false;
        };
        reaction_ns > REACTION_MIN_NS && reaction_ns as f64 > VISIBLE_SHARE * response_ns as f64
    }

    fn lag_words(&self) -> String {
        let text = |ns: Option<Nanos>| time_text(ns.unwrap_or(0));
        format!("{} of lag beside {} of response at {}", text(self.lag_ns), text(self.response_ns), self.name)
    }
}

impl Trust {
    /// How far the times of a run may be believed; `figures` are those of all its requests, by [`Span`].
    pub fn of(case: &Case<'_>, figures: &[Figures; Span::COUNT]) -> Trust {
        let slips = BODY.map(|at| Slip::of_case(case, figures, at));
        let visible: Vec<&Slip> = slips.iter().filter(|slip| slip.is_lag_visible()).collect();
        let behind = wait_behind_lag(case);
        let ok = visible.is_empty() && behind.is_none();
        let lag_share = LagShare {
            p50: slips[0].share,
            p99: slips[1].share,
            same_requests: slips.iter().any(|slip| slip.same_requests),
        };
        let mut parts: Vec<String> = visible.iter().map(|slip| slip.lag_words()).collect();
        parts.extend(behind.map(|wait| {
            format!("{} of wait behind late requests at {}", time_text(wait.value_ns), wait.name)
        }));
        let mut says = Vec::new();
        if ok || !visible.is_empty() {
            says.push(lag_sentence(&visible, &lag_share, case.all.counts.completed));
        }
        says.extend(behind.map(|wait| {
            format!(
                "Requests waited behind those that were sent late: {} at {}.",
                time_text(wait.value_ns),
                wait.name
            )
        }));
        if !ok {
            let is_named = |name: &str| {
                visible.iter().any(|slip| slip.name == name)
                    || visible.is_empty() && behind.is_some_and(|wait| wait.name == name)
            };
            let named: Vec<_> = BODY.into_iter().filter(|(name, _)| is_named(name)).collect();
            says.push(cause_sentence(case, &named));
            says.extend(service_sentence(case));
        }
        says.extend(reaction_sentence(case, &slips));
        let doubt = format!("the times are partly the generator's own: {}", parts.join(", "));
        Trust { ok, lag_share, says: says.join(" "), doubt: (!ok).then_some(doubt) }
    }

    /// Whether the figures of a part of a run, by [`Span`], may be believed.
    pub fn is_ok(figures: &[Figures; Span::COUNT]) -> bool {
        ["p50", "p99"].iter().all(|name| !Slip::at(figures, name).is_lag_visible())
    }
}

/// The wait of an open loop that lag made: where so many requests were kept back that it is no statement about the tail,
/// or where it is longer than what one request behind another takes.
fn wait_behind_lag(case: &Case<'_>) -> Option<Visible> {
    if case.is_closed || !case.lag_made_the_wait() {
        return None;
    }
    let is_much = KeptBack::of(case).is_much(case);
    let behind_one_ns = 2 * case.at(Span::Service, 0.99);
    case.visible_wait().filter(|wait| is_much || wait.value_ns > behind_one_ns)
}

fn lag_sentence(visible: &[&Slip], shares: &LagShare, completed: u64) -> String {
    if visible.is_empty() {
        // Without the same requests the share is a ratio of two quantiles.
        let (at_p50, at_p99) = match shares.same_requests {
            true => ("of responses near p50", "near p99"),
            false => ("of the response at p50", "at p99"),
        };
        return match (shares.p50, shares.p99) {
            (Some(p50), Some(p99)) => {
                let (p50, p99) = (percent(p50), percent(p99));
                format!("The times may be believed: lag is {p50} {at_p50}, {p99} {at_p99}.")
            }
            (Some(p50), None) => {
                format!("Lag is {} {at_p50}; the response at p99 is not known.", percent(p50))
            }
            _ if completed > 0 => {
                "So many requests got no answer that the response is known neither at p50 nor at p99; lag is judged at \
                 neither."
                    .to_owned()
            }
            _ => "No response was measured, so there are no times to believe.".to_owned(),
        };
    }
    let parts: Vec<String> = visible
        .iter()
        .map(|slip| {
            let (lag_ns, response_ns) = (slip.lag_ns.unwrap_or(0), slip.response_ns.unwrap_or(0));
            let share = percent(slip.share.unwrap_or(0.0));
            format!("{share} of {} ({} of {})", slip.name, time_text(lag_ns), time_text(response_ns))
        })
        .collect();
    let about = if shares.same_requests { "" } else { "about " };
    capitalised(&format!("{about}{} is the generator's own lag.", parts.join(" and ")))
}

/// What made the generator late at the quantiles with these names, as far as that is known. Stalls, or a CPU that was taken away, are
/// the cause only where they can have touched as many requests as lie beyond the quantile.
fn cause_sentence(case: &Case<'_>, named: &[(&'static str, f64)]) -> String {
    let turns = &case.measurement.generator.turns;
    let stalls =
        format!("{} of its threads took {}", counted(turns.stalls, "stall"), time_text(turns.stalled_ns));
    let worst = case
        .losses
        .iter()
        .max_by_key(|loss| loss.lost_ns)
        .filter(|loss| loss.lost_ns > 0 && loss.lost_ns as f64 >= CAUSE_SHARE * turns.stalled_ns as f64);
    let sent = case.moments(Span::Lag).count as f64;
    // A thread without a CPU for a share of the time misses at least that share of what becomes due.
    let touched = touched_by_stalls(case).max(worst.map_or(0.0, |loss| loss.share.min(1.0) * sent));
    let (reached, beyond): (Vec<_>, Vec<_>) =
        named.iter().partition(|(_, quantile)| touched > 0.0 && touched >= (1.0 - quantile) * sent);
    let is_full = case.busy() > FULL_SHARE;
    let busy = || format!("Its cause: a client thread was busy {} of the time.", percent(case.busy()));
    let Some(&(at, _)) = reached.first() else {
        return match beyond.last() {
            _ if is_full => busy(),
            Some((name, _)) if turns.stalls > 0 => format!(
                "Its cause is not known: {stalls}, and touched {} of the requests at most, fewer than lie beyond {name}.",
                percent((touched / sent).min(1.0))
            ),
            _ => "Its cause is not known.".to_owned(),
        };
    };
    let place = if beyond.is_empty() { String::new() } else { format!(" at {at}") };
    let rest =
        beyond.first().map_or_else(String::new, |(name, _)| format!(" The cause at {name} is not known."));
    match worst {
        Some(loss) => {
            let (lost, cause) = (time_text(loss.lost_ns), loss.cause.words());
            let stalls = if turns.stalls > 0 { format!("{stalls}, and ") } else { String::new() };
            format!("Its cause{place}: {stalls}{cause} took a CPU away for {lost}.{rest}")
        }
        _ if is_full => busy(),
        _ if beyond.is_empty() => format!("{stalls}; their cause is not known."),
        _ => format!("What can lie{place}: {stalls}; their cause is not known.{rest}"),
    }
}

/// How many requests the stalls of the client threads can have touched: in closed loop those that a thread may have
/// outstanding, once for each stall; in open loop those that became due in the stalls and until the thread had caught up.
fn touched_by_stalls(case: &Case<'_>) -> f64 {
    let turns = &case.measurement.generator.turns;
    let threads = case.measurement.generator.workers.len().max(1) as f64;
    let stalls = turns.stalls as f64;
    let sent = case.moments(Span::Lag).count as f64;
    if let (true, Some(slots)) = (case.is_closed, case.slots()) {
        return (stalls * (slots as f64 / threads).max(1.0)).min(sent);
    }
    let due = sent * turns.stalled_ns as f64 / case.measured_ns.max(1) as f64 / threads;
    (stalls + due / (1.0 - case.busy().min(FULL_SHARE))).min(sent)
}

/// Whose the service times are.
fn service_sentence(case: &Case<'_>) -> Option<String> {
    case.has_stamps().then(|| "The service times beside it are without it.".to_owned())
}

/// How long replies lay unread, where that is worth a sentence.
fn reaction_sentence(case: &Case<'_>, slips: &[Slip; 2]) -> Option<String> {
    if !case.has_stamps() {
        return Some(
            "There are no receive stamps, so service times contain the time until a reply was read."
                .to_owned(),
        );
    }
    let slip = slips.iter().find(|slip| slip.is_reaction_visible())?;
    let reaction = time_text(slip.reaction_ns.unwrap_or(0));
    Some(format!("Replies lay unread for {reaction} at {}, which is in none of the times.", slip.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::histogram::CellSums;
    use crate::measure::limit::Limit;
    use crate::measure::scenario::{Scenario, closed, quiet};
    use crate::measure::summary::Summary;
    use crate::plan::Clock;
    use crate::protocol::Verb;
    use crate::time::{MILLISECOND, SECOND};

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
        assert_eq!(trust.says, "The times may be believed: lag is 7 % of responses near p50, 7 % near p99.");
        let short = Scenario { lag: 15 * MICROSECOND, ..quiet() }.summary().trust;
        assert!(short.ok, "too short to be worth a sentence: {}", short.says);
        let tail = Scenario { late: (20, 100 * MICROSECOND), ..quiet() }.summary().trust;
        let doubt = tail.doubt.clone().expect("a word");
        assert!(doubt.starts_with("the times are partly the generator's own: "), "{doubt}");
        assert!(doubt.ends_with(" of response at p99") && !doubt.contains("p50"), "{doubt}");
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
        assert!(kept.lag_share.same_requests && !kept.says.starts_with("About"), "{kept:?}");
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let estimated = Summary::of(&measurement, &plan).trust;
        assert!(
            !estimated.lag_share.same_requests && estimated.says.starts_with("About 71 % of p99"),
            "{estimated:?}"
        );
        let (mut measurement, plan) = (quiet().measurement(), quiet().plan());
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let says = Summary::of(&measurement, &plan).trust.says;
        assert_eq!(says, "The times may be believed: lag is 7 % of the response at p50, 7 % at p99.");
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
            says(&late).contains("1 stall of its threads took 80.0 ms; their cause is not known."),
            "{}",
            says(&late)
        );
        let stolen =
            late.clone().seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(280 * MILLISECOND));
        let words =
            "Its cause: 1 stall of its threads took 80.0 ms, and the hypervisor took a CPU away for 70.0 ms.";
        assert!(says(&stolen).contains(words), "{}", says(&stolen));
        let little = late.seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(40 * MILLISECOND));
        assert!(
            says(&little).contains("their cause is not known"),
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
        let words = "Its cause is not known: 1 stall of its threads took 3.00 ms, and touched 0.1 % of the requests at most, \
                     fewer than lie beyond p99.";
        assert!(one.contains(words), "{one}");
        // With lag at the median too, a stall that reaches p99 is named for that alone.
        let many = says(vec![(SECOND, 80 * MILLISECOND)], 60 * MICROSECOND, Some(1_000.0));
        assert!(many.contains("What can lie at p99: 1 stall of its threads took 80.0 ms"), "{many}");
        assert!(many.contains("The cause at p50 is not known."), "{many}");
        // In closed loop a stall touches each slot once.
        let closed = Scenario {
            late: (20, 100 * MICROSECOND),
            paused: vec![(SECOND / 10, 3 * MILLISECOND)],
            ..closed()
        };
        let told = closed.summary().trust.says;
        assert!(told.contains("Its cause is not known: 1 stall of its threads"), "{told}");
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
