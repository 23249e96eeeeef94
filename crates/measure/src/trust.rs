//! Reliability of the times of a run: the part of them that is the generator's own delay.

use super::figures::{Figures, QUANTILES};
use super::limit::{BODY, Case, KeptBack, LagCause, SLIP_MIN_NS, VISIBLE_SHARE, Verdict, Visible};
use super::ops::Ops;
use super::recorder::OpRecord;
use super::sample::Span;
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// Whether lag is a small part of the response, of the mean and up to the 99th percentile.
    pub ok: bool,
    /// Figures of the response that are reliable.
    pub kind: TrustKind,
    /// Part of the response that is lag.
    pub lag_share: LagShare,
    /// Figures whose lag makes the times doubtful; empty where it does not.
    pub doubtful: Vec<LagPart>,
    /// Names of the figures of the response at least half of which is lag, of all requests together.
    pub mostly_lag: Vec<&'static str>,
    /// Names of those figures for each verb; verbs without one are left out.
    pub mostly_lag_of: Vec<(Verb, Vec<&'static str>)>,
    /// Wait of an open loop that lag made; absent where it made none that matters.
    pub behind: Option<WaitBehind>,
    /// Causes of the lag of doubtful figures and of those that are mostly lag, each with its figures.
    pub causes: Vec<CauseOfLag>,
    /// Time for which replies lay unread, which is in none of the times; absent where it is short.
    pub unread: Option<UnreadReplies>,
    /// Whether the kernel said when replies arrived. Without that, service times contain the time until a reply was read.
    pub has_stamps: bool,
    /// Mean lag of the requests of a closed loop whose rate the generator limited, in nanoseconds: a report without response times
    /// is not reliable either. Absent where it is.
    pub slowed_by_ns: Option<Nanos>,
}

/// Figures of the response that are reliable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustKind {
    /// No response was measured.
    #[default]
    NothingMeasured,
    /// Neither the median nor the 99th percentile is known, for want of replies.
    NoReplies,
    /// All figures: lag is a small part of the median and of the 99th percentile.
    Reliable,
    /// The figures up to the 99th percentile; half or more of p99.9 is lag.
    UpToP99,
    /// Lag is a larger part of the response of a closed loop at a full server, where a request that was sent earlier would
    /// only have waited instead.
    FullClosedLoop,
    /// The median, and not the tail or the mean.
    P50,
    /// No figure of the response.
    NotReliable,
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
    /// Share of lag at the quantile of 99.9 %.
    pub p99_9: Option<f64>,
    /// Whether lag and response are those of the same requests. Where they are not, a share is the quantile of the lag by
    /// that of the response, which is an estimate; above 1 it is 1.
    pub same_requests: bool,
}

/// The lag in one figure of the response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LagPart {
    /// Name of the figure.
    pub figure: &'static str,
    /// Lag in the figure, in nanoseconds.
    pub lag_ns: Nanos,
    /// The figure, in nanoseconds.
    pub response_ns: Nanos,
    /// Part of the figure that is lag, from 0 to 1.
    pub share: f64,
}

/// A wait behind requests that were sent late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitBehind {
    /// Name of the quantile.
    pub figure: &'static str,
    /// Wait at the quantile, in nanoseconds.
    pub wait_ns: Nanos,
}

/// The cause of the lag in some figures.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseOfLag {
    /// Names of the figures.
    pub figures: Vec<&'static str>,
    /// Reason why requests near them were late.
    pub cause: LagCause,
}

/// The time for which replies lay unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadReplies {
    /// Name of the quantile.
    pub figure: &'static str,
    /// Reaction at the quantile, in nanoseconds.
    pub reaction_ns: Nanos,
}

impl LagShare {
    /// The shares of requests with these figures, by [`Span`], as an estimate.
    pub fn of(figures: &[Figures; Span::COUNT]) -> LagShare {
        let share = |name| Slip::at(figures, name).share;
        LagShare {
            mean: Slip::of_mean(None, figures).share,
            p50: share("p50"),
            p99: share("p99"),
            p99_9: share("p99.9"),
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

    fn part(&self) -> LagPart {
        LagPart {
            figure: self.name,
            lag_ns: self.lag_ns.unwrap_or(0),
            response_ns: self.response_ns.unwrap_or(0),
            share: self.share.unwrap_or(0.0),
        }
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
            p99_9: share("p99.9"),
            same_requests: BODY.iter().any(|(name, _)| at(name).is_some_and(|slip| slip.same_requests)),
        };
        let mostly: Vec<&Slip> = slips.iter().filter(|slip| slip.is_mostly_lag()).collect();
        let is_doubtful = |name: &str| doubtful.iter().any(|slip| slip.name == name);
        let more = mostly.iter().copied().filter(|slip| slip.name != "min" && !is_doubtful(slip.name));
        let late: Vec<&Slip> = doubtful.iter().copied().chain(more).collect();
        let kind = match ok {
            true => kind_of_reliable(case, &lag_share, mostly.iter().any(|slip| slip.name == "p99.9")),
            false => {
                let spares_p50 = !is_doubtful("p50") && behind.is_none_or(|wait| wait.name != "p50");
                if spares_p50 && lag_share.p50.is_some() { TrustKind::P50 } else { TrustKind::NotReliable }
            }
        };
        Trust {
            ok,
            kind,
            lag_share,
            doubtful: doubtful.iter().map(|slip| slip.part()).collect(),
            mostly_lag: mostly.iter().map(|slip| slip.name).collect(),
            mostly_lag_of: mostly_lag_of(case, ops),
            behind: behind.map(|wait| WaitBehind { figure: wait.name, wait_ns: wait.value_ns }),
            causes: causes_of(case, &late, behind),
            unread: unread_replies(case, &slips),
            has_stamps: case.has_stamps(),
            slowed_by_ns: slowed_by_ns(case),
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

/// The kind of times that are reliable, or are not known.
fn kind_of_reliable(case: &Case<'_>, shares: &LagShare, is_tail_lag: bool) -> TrustKind {
    match (shares.p50, shares.p99) {
        (Some(p50), Some(p99)) if p50.max(p99) > VISIBLE_SHARE && case.is_closed && case.server_is_full() => {
            TrustKind::FullClosedLoop
        }
        (Some(_), _) if is_tail_lag => TrustKind::UpToP99,
        (Some(_), _) => TrustKind::Reliable,
        _ if case.all.counts.completed > 0 => TrustKind::NoReplies,
        _ => TrustKind::NothingMeasured,
    }
}

/// The figures of each verb that are mostly lag.
fn mostly_lag_of(case: &Case<'_>, ops: &Ops) -> Vec<(Verb, Vec<&'static str>)> {
    let of_verb = |(verb, op): (Verb, &OpRecord)| {
        let figures = Figures::of_op(op, case.measurement.timeout_ns);
        let slips = Slip::all_of(op, &figures);
        let names: Vec<&'static str> =
            slips.iter().filter(|slip| slip.is_mostly_lag()).map(|slip| slip.name).collect();
        (!names.is_empty()).then_some((verb, names))
    };
    ops.iter().filter_map(of_verb).collect()
}

/// Mean lag of the requests of a closed loop where a generator that is the limit sets the rate.
fn slowed_by_ns(case: &Case<'_>) -> Option<Nanos> {
    let mean_ns = case.sum(Span::Lag) / case.moments(Span::Lag).count.max(1) as f64;
    let is_slowed =
        case.is_closed && case.has_stamps() && mean_ns > SLIP_MIN_NS as f64 && case.lag_slows_the_loop();
    (is_slowed && Verdict::of(case).is_generator()).then_some(mean_ns as Nanos)
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

/// The causes of the generator's delay in these figures, each with its figures.
fn causes_of(case: &Case<'_>, late: &[&Slip], behind: Option<Visible>) -> Vec<CauseOfLag> {
    let mut found: Vec<(&'static str, LagCause)> = late
        .iter()
        .map(|slip| (slip.name, LagCause::at(case, slip.quantile, slip.lag_ns.unwrap_or(0))))
        .collect();
    if found.is_empty() {
        let at = behind.and_then(|wait| Some((wait, BODY.into_iter().find(|(name, _)| *name == wait.name)?)));
        found.extend(at.map(|(wait, (name, quantile))| (name, LagCause::at(case, quantile, wait.value_ns))));
    }
    let mut causes: Vec<CauseOfLag> = Vec::new();
    for (figure, cause) in found {
        match causes.iter_mut().find(|known| known.cause == cause) {
            Some(known) => known.figures.push(figure),
            None => causes.push(CauseOfLag { figures: vec![figure], cause }),
        }
    }
    causes
}

/// The time for which replies lay unread, where it is long enough to be said.
fn unread_replies(case: &Case<'_>, slips: &[Slip]) -> Option<UnreadReplies> {
    let of_body = |slip: &&Slip| BODY.iter().any(|(name, _)| *name == slip.name);
    let slip = slips.iter().filter(of_body).find(|slip| slip.is_reaction_visible())?;
    case.has_stamps().then(|| UnreadReplies { figure: slip.name, reaction_ns: slip.reaction_ns.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::CellSums;
    use crate::limit::{Cause, CpuTaker, Limit, Stalls};
    use crate::scenario::{Scenario, closed, quiet};
    use crate::summary::Summary;
    use pummel_logic::plan::Clock;
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MILLISECOND, SECOND};

    impl Trust {
        /// The names of the figures that are doubtful.
        fn doubted(&self) -> Vec<&'static str> {
            self.doubtful.iter().map(|part| part.figure).collect()
        }

        /// The cause of the lag in a figure.
        fn cause_of(&self, figure: &str) -> Option<LagCause> {
            self.causes.iter().find(|cause| cause.figures.contains(&figure)).map(|cause| cause.cause)
        }
    }

    #[test]
    fn where_most_requests_got_no_answer_those_that_did_are_not_denied() {
        // The server stands still for all but the first tenth, and what it is asked then times out.
        let length = quiet().length;
        let frozen = (length / 10, 2 * length);
        let trust = Scenario { frozen, timeout: 20 * MILLISECOND, ..quiet() }.summary().trust;
        assert_eq!(trust.kind, TrustKind::NoReplies, "{trust:?}");
        let nothing = Scenario { length: 0, ..quiet() }.summary().trust;
        assert_eq!(nothing.kind, TrustKind::NothingMeasured, "{nothing:?}");
    }

    #[test]
    fn lag_is_doubtful_where_it_is_a_tenth_of_the_response() {
        let trust = quiet().summary().trust;
        assert!(trust.ok && trust.doubtful.is_empty() && trust.causes.is_empty(), "{trust:?}");
        let share = 3.0 / 43.0;
        assert_eq!(trust.kind, TrustKind::Reliable);
        assert!((trust.lag_share.p50.expect("known") - share).abs() < 0.01, "{trust:?}");
        let short = Scenario { lag: 15 * MICROSECOND, ..quiet() }.summary().trust;
        assert!(short.ok, "too short to be worth a word: {short:?}");
        let tail = Scenario { late: (20, 100 * MICROSECOND), ..quiet() }.summary().trust;
        assert_eq!((tail.kind, tail.doubted()), (TrustKind::P50, vec!["p95", "p99"]));
        assert!((tail.lag_share.p99.expect("known") - 100.0 / 140.0).abs() < 0.03, "{tail:?}");
        let part = tail.doubtful[1];
        assert!((part.lag_ns as f64 / part.response_ns as f64 - part.share).abs() < 0.01, "{part:?}");
        let most = Scenario { lag: 100 * MICROSECOND, ..quiet() }.summary().trust;
        assert_eq!(most.kind, TrustKind::NotReliable);
        assert!(["p50", "p99"].iter().all(|name| most.doubted().contains(name)), "{most:?}");
        assert!((most.lag_share.p50.expect("known") - 100.0 / 140.0).abs() < 0.03, "{most:?}");
    }

    #[test]
    fn the_share_of_lag_is_that_of_the_same_requests_where_it_was_kept() {
        let late = Scenario { late: (20, 100 * MICROSECOND), ..quiet() };
        let (mut measurement, plan) = (late.measurement(), late.plan());
        let kept = Summary::of(&measurement, &plan).trust;
        assert!(kept.lag_share.same_requests, "{kept:?}");
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let estimated = Summary::of(&measurement, &plan).trust;
        let share = estimated.lag_share.p99.expect("known");
        assert!(!estimated.lag_share.same_requests && (share - 0.71).abs() < 0.02, "{estimated:?}");
        assert_eq!(estimated.kind, TrustKind::P50);
        let (mut measurement, plan) = (quiet().measurement(), quiet().plan());
        measurement.groups[0].ops.entry(Verb::Get).lag_by_response = CellSums::default();
        let trust = Summary::of(&measurement, &plan).trust;
        assert!(trust.ok && !trust.lag_share.same_requests, "{trust:?}");
    }

    #[test]
    fn waits_behind_late_requests_are_the_generators_too() {
        let paused =
            Scenario { connections: 1, paused: vec![(SECOND, SECOND / 2)], ..quiet() }.summary().trust;
        assert!(!paused.ok, "{paused:?}");
        assert_eq!(paused.behind.map(|wait| wait.figure), Some("p99"), "{paused:?}");
    }

    #[test]
    fn the_cause_of_lag_is_named_where_it_is_known_and_never_made_up() {
        let late =
            Scenario { late: (20, 100 * MICROSECOND), paused: vec![(SECOND, 80 * MILLISECOND)], ..quiet() };
        let cause = |run: &Scenario| {
            let trust = run.summary().trust;
            trust.causes.iter().map(|one| one.cause).find(LagCause::is_known).or(trust.cause_of("p99"))
        };
        let stalls = Stalls { count: 1, total_ns: 80 * MILLISECOND };
        assert_eq!(cause(&late), Some(LagCause::StoodStill { stalls }));
        let stolen =
            late.clone().seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(280 * MILLISECOND));
        let Some(LagCause::CpuTaken { taker, taken_ns, stalls: seen, .. }) = cause(&stolen) else {
            panic!("{:?}", cause(&stolen))
        };
        assert_eq!((taker, taken_ns, seen), (CpuTaker::Hypervisor, 70 * MILLISECOND, stalls));
        let little = late.seen(&[0.2], 1).machine(|machine| machine.steal_ns = Some(40 * MILLISECOND));
        assert_eq!(cause(&little), Some(LagCause::StoodStill { stalls }), "10 ms do not make 80");
        let calm = Scenario { late: (20, 100 * MICROSECOND), ..quiet() };
        assert_eq!(cause(&calm), Some(LagCause::Unknown));
        let busy = Scenario { busy_share: 0.95, ..calm };
        let is_busy =
            |cause| matches!(cause, Some(LagCause::ThreadBusy { share }) if (share - 0.95f64).abs() < 0.01);
        assert!(is_busy(cause(&busy)), "{:?}", cause(&busy));
    }

    #[test]
    fn stalls_are_the_cause_only_at_quantiles_that_they_can_reach() {
        let trust = |paused: Vec<(u64, u64)>, lag, rate| {
            Scenario { late: (20, 100 * MICROSECOND), paused, lag, rate, connections: 50, ..quiet() }
                .summary()
                .trust
        };
        let is_stall = |cause| matches!(cause, Some(LagCause::StoodStill { .. }));
        // 3 ms of 20,000/s are some 60 of 80,000 requests; the 99th percentile has 800 beyond it.
        let one = trust(vec![(SECOND, 3 * MILLISECOND)], 3 * MICROSECOND, Some(20_000.0));
        assert_eq!(one.cause_of("p99"), Some(LagCause::Unknown), "{one:?}");
        // With lag at the median too, a stall that reaches p99 is named for that alone.
        let many = trust(vec![(SECOND, 80 * MILLISECOND)], 60 * MICROSECOND, Some(1_000.0));
        assert!(is_stall(many.cause_of("p99")), "{many:?}");
        assert_eq!(many.cause_of("p50"), Some(LagCause::Unknown), "{many:?}");
        // In closed loop a stall touches each slot once.
        let closed = Scenario {
            late: (20, 100 * MICROSECOND),
            paused: vec![(SECOND / 10, 3 * MILLISECOND)],
            ..closed()
        };
        let trust = closed.summary().trust;
        assert_eq!(trust.cause_of("p99"), Some(LagCause::Unknown), "{trust:?}");
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
        assert_eq!((trust.kind, trust.doubted()), (TrustKind::P50, vec!["mean"]));
        for name in ["p99.9", "p99.99", "max"] {
            assert!(trust.mostly_lag.contains(&name), "{name}: {trust:?}");
        }
        assert!(!trust.mostly_lag.contains(&"p50"), "{trust:?}");
        assert!(trust.lag_share.p99_9.is_some_and(|share| share > 0.9), "{trust:?}");
        assert_eq!(trust.mostly_lag_of, [(Verb::Get, trust.mostly_lag.clone())]);
        // One request of 4,000 that is late is the maximum, and nothing else.
        let once = Scenario { late: (4_100, 200 * MICROSECOND), ..quiet() };
        let trust = once.summary().trust;
        assert!(trust.ok && trust.mostly_lag.contains(&"max"), "{trust:?}");
        let kind = if trust.mostly_lag.contains(&"p99.9") { TrustKind::UpToP99 } else { TrustKind::Reliable };
        assert_eq!(trust.kind, kind);
        assert!(quiet().summary().trust.mostly_lag.is_empty());
    }

    #[test]
    fn the_tail_that_is_lag_is_excepted_from_what_is_reliable() {
        // Five of a thousand requests are late, which are beyond p99 and not beyond p99.9.
        let trust = Scenario { late: (200, 200 * MICROSECOND), ..quiet() }.summary().trust;
        assert_eq!((trust.ok, trust.kind), (true, TrustKind::UpToP99), "{trust:?}");
        assert!(trust.mostly_lag.contains(&"p99.9") && trust.doubtful.is_empty(), "{trust:?}");
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
        assert_eq!((full.ok, full.kind), (true, TrustKind::FullClosedLoop), "{full:?}");
        let idle = run.clone().seen(&[0.3], 1).summary().trust;
        assert!(!idle.ok, "{idle:?}");
        let late = Scenario { lag: 900 * MICROSECOND, ..run }.seen(&[0.98], 1).summary().trust;
        assert!(!late.ok, "more than half: {late:?}");
    }

    #[test]
    fn where_the_client_threads_slept_that_is_the_cause() {
        let run = Scenario { connections: 1, lag: 25 * MICROSECOND, service: 20 * MICROSECOND, ..closed() };
        let trust = |run: &Scenario, slept: bool| {
            let mut measurement = run.measurement();
            measurement.generator.slept = slept;
            Summary::of(&measurement, &run.plan()).trust
        };
        let Some(LagCause::Slept { late_ns, machine }) = trust(&run, true).cause_of("p50") else {
            panic!("{:?}", trust(&run, true))
        };
        assert!(late_ns.abs_diff(25 * MICROSECOND) < MICROSECOND, "{late_ns}");
        assert_eq!((machine.agents, machine.servers), (0, 0), "nothing is known of the machine");
        let beside = run.clone().seen(&[0.2], 1).machine(|machine| {
            (machine.cpus, machine.servers_are_local) = (2, Some(true));
        });
        let Some(LagCause::Slept { machine, .. }) = trust(&beside, true).cause_of("p50") else {
            panic!("{:?}", trust(&beside, true))
        };
        assert_eq!((machine.cpus, machine.servers), (2, 1));
        assert_eq!(trust(&run, false).cause_of("p50"), Some(LagCause::Unknown));
        // Many replies of one thread come together, and wait for each other.
        let many = trust(&Scenario { connections: 50, ..run }, true);
        assert_eq!(many.cause_of("p50"), Some(LagCause::Unknown), "{many:?}");
    }

    #[test]
    fn time_taken_from_an_open_loop_is_the_cause_only_at_quantiles_that_it_can_reach() {
        let trust = |share: f64| {
            let run = Scenario { lag: 60 * MICROSECOND, late: (10, MILLISECOND), ..quiet() }.seen(&[0.2], 1);
            let part = |machine: &crate::evidence::MachineEvidence| (share * machine.span_ns as f64) as Nanos;
            run.machine(|machine| {
                machine.used_ns = Some(part(machine));
                machine.used_by_cpu.clear();
                machine.steal_ns = Some(part(machine) * u64::from(machine.cpus));
                machine.workers[0].run_delay_ns = Some(part(machine));
            })
            .summary()
            .trust
        };
        let is_stolen = |cause| matches!(cause, Some(LagCause::CpuTaken { taker: CpuTaker::Hypervisor, .. }));
        let fifth = trust(0.2);
        assert!(is_stolen(fifth.cause_of("p99")), "{fifth:?}");
        assert_eq!(
            fifth.cause_of("p50"),
            Some(LagCause::Unknown),
            "a fifth of the requests is not half of them"
        );
        let most = trust(0.6);
        assert!(is_stolen(most.cause_of("p50")), "{most:?}");
    }

    #[test]
    fn trust_and_limit_name_one_cause() {
        let is_others = |trust: &Trust| {
            let taker = CpuTaker::OtherProcesses;
            trust
                .causes
                .iter()
                .all(|one| matches!(one.cause, LagCause::CpuTaken { taker: own, .. } if own == taker))
                && !trust.causes.is_empty()
        };
        let run = Scenario { connections: 4, lag: 60 * MICROSECOND, ..closed() }.seen(&[0.2], 1);
        let run = run.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(machine.span_ns / 4);
            machine.used_by_cpu.insert(1, machine.span_ns);
        });
        let summary = run.summary();
        let Cause::GeneratorCpuTaken(lost) = &summary.verdict.cause else { panic!("{:#?}", summary.verdict) };
        assert_eq!(lost.taken.map(|taken| taken.by), Some(CpuTaker::OtherProcesses));
        assert!(is_others(&summary.trust), "{:?}", summary.trust);
        // The server is full, so that it is the limit; what the thread missed, and what waited until it had caught up, are most requests.
        let full =
            Scenario { connections: 4, lag: 2 * MILLISECOND, busy_share: 0.35, ..closed() }.seen(&[0.95], 1);
        let full = full.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(machine.span_ns * 4 / 10);
            machine.used_by_cpu.insert(1, machine.span_ns);
        });
        let summary = full.summary();
        assert_eq!(summary.verdict.row, "server-cpu", "{:?}", summary.verdict);
        assert!(is_others(&summary.trust), "{:?}", summary.trust);
    }

    #[test]
    fn a_server_is_accused_of_the_lag_in_the_tail_only_where_both_sides_fill_the_machine() {
        // One request in 20 is late, and the thread waited for a CPU while the server had it.
        let run = |client: f64, server: f64| {
            let run = Scenario { late: (20, 100 * MICROSECOND), ..quiet() }.seen(&[server], 1);
            run.machine(|machine| {
                let part = |share: f64| (share * machine.span_ns as f64) as Nanos;
                (machine.worker_cpus, machine.workers[0].last_cpu) = (Some("0".to_owned()), Some(0));
                (machine.workers[0].cpu_ns, machine.workers[0].run_delay_ns) =
                    (part(client), Some(part(0.04)));
                machine.used_by_cpu = [(0, part(client + server))].into();
            })
        };
        let cause = |client, server| run(client, server).summary().trust.cause_of("p99");
        let full = cause(0.45, 0.5);
        assert!(matches!(full, Some(LagCause::CpuTaken { taker: CpuTaker::Servers, .. })), "{full:?}");
        assert_eq!(
            cause(0.1, 0.3),
            Some(LagCause::Unknown),
            "a CPU that is mostly free keeps no thread waiting"
        );
    }

    #[test]
    fn a_report_without_response_times_doubts_only_the_rate_of_a_generator_at_its_limit() {
        let sleepy = Scenario { lag: 60 * MICROSECOND, ..quiet() }.seen(&[0.2], 1).summary().trust;
        assert!(!sleepy.ok && sleepy.slowed_by_ns.is_none(), "{sleepy:?}");
        let busy = Scenario { lag: 60 * MICROSECOND, busy_share: 0.97, ..closed() }.seen(&[0.2], 1);
        let slowed_by_ns = busy.summary().trust.slowed_by_ns.expect("the thread had no time");
        assert!(slowed_by_ns.abs_diff(60 * MICROSECOND) < MICROSECOND, "{slowed_by_ns}");
        let spare = Scenario { lag: 60 * MICROSECOND, ..closed() }.seen(&[0.2], 1).summary().trust;
        assert_eq!(spare.slowed_by_ns, None);
    }

    #[test]
    fn trust_names_no_limit_and_the_limit_follows_no_lag_of_a_closed_loop() {
        let lagging = Scenario { lag: 60 * MICROSECOND, ..closed() }.seen(&[0.3], 1).summary();
        assert!(!lagging.trust.ok);
        assert_eq!(lagging.verdict.limit, Limit::Connections, "{:#?}", lagging.verdict.cause);
    }

    #[test]
    fn replies_that_lay_unread_are_said_and_doubt_no_time_but_where_there_are_no_stamps() {
        let unread = Scenario { reaction: MILLISECOND, ..quiet() }.summary().trust;
        let reaction = unread.unread.expect("it is long");
        assert!(unread.ok && reaction.figure == "p50", "{unread:?}");
        assert!(reaction.reaction_ns.abs_diff(MILLISECOND) < 20 * MICROSECOND, "{reaction:?}");
        let waking = Scenario { reaction: 150 * MICROSECOND, ..quiet() }.summary().trust;
        assert_eq!((waking.unread, waking.has_stamps), (None, true));
        let user = Scenario { clock: Clock::User, ..quiet() }.summary().trust;
        assert!(!user.has_stamps, "{user:?}");
    }

    #[test]
    fn what_is_not_known_is_no_share() {
        let nothing = Scenario { length: 0, ..quiet() }.summary().trust;
        assert_eq!((nothing.lag_share.p50, nothing.lag_share.p99), (None, None));
        let timeout = 20 * MILLISECOND;
        let lost =
            Scenario { connections: 1_000, frozen: (SECOND, SECOND), timeout, ..quiet() }.summary().trust;
        assert!(lost.lag_share.p50.is_some() && lost.lag_share.p99.is_none(), "{lost:?}");
        assert_eq!(lost.kind, TrustKind::Reliable);
    }
}
