//! Checks of a load that changes: its rate over time, its bursts, and the phase that they are for.

use std::collections::BTreeSet;

use super::field::Field;
use super::invalid::{DAY, Invalid, YEAR, refuse, refuse_if, span, within};
use super::requests;
use crate::arrival::{RATE_MAX, RATE_MIN, RateCurve, check_rate};
use crate::plan::{
    Arrivals, Burst, BurstSources, BurstStates, Changes, ClientPolicy, EVENTS_MAX, Event, EventKind,
    FlashCrowd, HotKey, LOST_MAX, Late, PARTS_MAX, POINTS_MAX, Part, Phase, Plan, RankRange, RateShape, Work,
};
use crate::protocol::Verb;
use crate::time::{MICROSECOND, MILLISECOND, NEVER, Nanos, typed_time};

/// Greatest difference between the rate of a group and the mean of its rate over time, as a share of the rate.
const MEAN_ERROR_MAX: f64 = 1e-6;

/// Refuses a load that changes where it cannot be kept.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let changes = &plan.changes;
    let field = match (&changes.rate, &changes.burst) {
        _ if changes.is_nothing() => return Ok(()),
        (None, None) if changes.parts.is_empty() => Field::Events,
        (Some(_), _) => Field::RateShape,
        (None, Some(_)) => Field::Burst,
        (None, None) => Field::Parts,
    };
    let phase = measured_phase(plan, field)?;
    let group = &plan.groups[0];
    let expected = "expected clients that stay with it, and none that come and go";
    refuse_if(group.churn.is_some(), field, "", expected)?;
    if changes.has_stage() {
        stage(plan, phase)?;
    }
    let Some(rate) = group.rate.filter(|_| group.arrivals != Arrivals::Closed) else {
        if is_only_stage(plan) {
            refuse_until(plan)?;
            return parts(&changes.parts, phase);
        }
        return refuse(
            field,
            "",
            "it is accepted in open loop only: a closed loop asks as fast as it is answered",
        );
    };
    refuse_until(plan)?;
    if let Some(shape) = &changes.rate {
        self::shape(shape)?;
        let curve = RateCurve::of(shape);
        begins(plan, &curve)?;
        ends(phase, &curve, rate)?;
    }
    parts(&changes.parts, phase)?;
    mixes(&changes.parts, phase)?;
    events_fit(plan, phase)?;
    changes.burst.as_ref().map_or(Ok(()), |burst| self::burst(plan, phase, burst, rate))
}

/// Refuses an end of the run that its figures decide.
fn refuse_until(plan: &Plan) -> Result<(), Invalid> {
    let Some(until) = &plan.adaptive.until else { return Ok(()) };
    let expected =
        "expected a load that stays with it: where the load changes, a quantile depends on when the run ends";
    refuse(Field::Until, until.quantile, expected)
}

/// Whether nothing changes but the number of connections, which a closed loop may change too.
fn is_only_stage(plan: &Plan) -> bool {
    let Changes { rate, burst, parts, events } = &plan.changes;
    let is_plain = |part: &Part| !part.has_own_mix();
    plan.changes.has_stage()
        && rate.is_none()
        && burst.is_none()
        && events.is_empty()
        && parts.iter().all(is_plain)
}

/// Refuses numbers of connections that the parts of a phase cannot have.
fn stage(plan: &Plan, phase: &Phase) -> Result<(), Invalid> {
    let group = &plan.groups[0];
    let clients = u64::from(group.clients);
    for (index, part) in plan.changes.parts.iter().enumerate() {
        let Some(connections) = part.connections else { continue };
        within(Field::PartConnections.of(index), connections.into(), 1, clients)?;
    }
    let path = Field::PartConnections;
    let is_timed = phase.stop.time_ns.is_some() && phase.stop.requests.is_none();
    let expected = "expected a measured phase that its time ends, and no number of requests: each client would make a fixed share of \
                    them, on stage for a short time or a long one";
    refuse_if(!is_timed, path, "", expected)?;
    let expected = "expected connections with it: over UDP none is opened or closed";
    refuse_if(plan.uses_datagrams(), path, "", expected)?;
    let expected = "expected no events with it: their requests are dealt to all clients, and those off stage would not send theirs";
    refuse_if(!plan.changes.events.is_empty(), path, "", expected)?;
    let ClientPolicy { block, late, spaced, ends_on_time, .. } = group.policy;
    let expected = "expected clients that are dealt one by one, make late requests and send in the drain";
    refuse_if(block > 1 || late != Late::Kept || spaced || ends_on_time, path, "", expected)
}

/// Refuses parts that are not one after the other, or of which one is outside of the phase.
fn parts(parts: &[Part], phase: &Phase) -> Result<(), Invalid> {
    let path = Field::Parts;
    within(path, parts.len() as u64, 0, PARTS_MAX as u64)?;
    let ascend = parts.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns);
    let expected = "expected parts that follow each other, the first of which begins at 0";
    refuse_if(!ascend || parts.first().is_some_and(|first| first.at_ns > 0), path, "", expected)?;
    if let (Some(last), Some(time_ns)) = (parts.last(), phase.stop.time_ns)
        && last.at_ns >= time_ns
    {
        return refuse(path, typed_time(last.at_ns), "expected parts that begin before the phase ends");
    }
    names(parts)
}

/// Refuses names that results cannot distinguish, and names that control terminals.
fn names(parts: &[Part]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for Part { name, .. } in parts {
        if name.is_empty() || name.contains(char::is_control) {
            let expected =
                "expected names of parts with at least one character, and without control characters";
            return refuse(Field::Parts, name.escape_debug(), expected);
        }
        refuse_if(!seen.insert(name), Field::Parts, name, "expected parts with different names")?;
    }
    Ok(())
}

/// The only measured phase, in which requests are drawn.
fn measured_phase(plan: &Plan, field: Field) -> Result<&Phase, Invalid> {
    let mut measured = plan.phases.iter().filter(|phase| phase.recorded);
    match (measured.next(), measured.next()) {
        (Some(phase), None) if matches!(phase.work, Work::Mix(_)) => Ok(phase),
        _ => refuse(field, "", "expected one measured phase of drawn requests with it"),
    }
}

fn shape(shape: &RateShape) -> Result<(), Invalid> {
    let path = Field::RateShape;
    let rate = |rate: f64| match (0.0..=RATE_MAX).contains(&rate) {
        true => Ok(()),
        false => refuse(path, rate, "expected rates from 0 to 1000000000000 requests per second"),
    };
    let period = |period_ns: Nanos| span(path, period_ns, (10 * MILLISECOND, "10ms"), (YEAR, "8760h"));
    match shape {
        RateShape::Points(points) => {
            let most = POINTS_MAX as u64;
            within(path, points.len() as u64, 1, most)?;
            if let Some(pair) = points.windows(2).find(|pair| pair[0].at_ns > pair[1].at_ns) {
                let expected = "expected points in the order of time";
                return refuse(path, pair[1].at_ns, expected);
            }
            let last = points.last().map_or(0, |point| point.at_ns);
            span(path, last, (0, "0"), (YEAR, "8760h"))?;
            points.iter().try_for_each(|point| rate(point.rate))
        }
        RateShape::Sine(sine) => {
            rate(sine.mean)?;
            if !(sine.amplitude >= 0.0 && sine.amplitude < sine.mean) {
                let expected = "expected an amplitude from 0 to below the mean";
                return refuse(path, sine.amplitude, expected);
            }
            let expected = "expected a share of a period from 0 to 1";
            refuse_if(!(0.0..=1.0).contains(&sine.start), path, sine.start, expected)?;
            period(sine.period_ns)
        }
        RateShape::Day(day) => {
            rate(day.mean)?;
            period(day.period_ns)
        }
    }
}

/// Refuses a rate with which a phase before the measured one could not go: it goes at the rate with which this one begins, or at
/// its mean where it begins with 0.
fn begins(plan: &Plan, curve: &RateCurve) -> Result<(), Invalid> {
    let goes_at_it = |phase: &Phase| !phase.recorded && matches!(phase.work, Work::Mix(_) | Work::Replay(_));
    let first = curve.rate_at(0);
    if first == 0.0 || check_rate(first).is_ok() || !plan.phases.iter().any(goes_at_it) {
        return Ok(());
    }
    let expected = "expected a rate that begins with 0 or with 0.000001 to 1000000000000 requests per second, at which the \
                    phases before the measured one go";
    refuse(Field::RateShape, first, expected)
}

/// Refuses a rate under which nothing is due, or fewer requests than the phase needs, and a rate whose mean differs
/// from that of the group.
fn ends(phase: &Phase, curve: &RateCurve, rate: f64) -> Result<(), Invalid> {
    let path = Field::RateShape;
    let length_ns = curve.length_until(phase.stop);
    let expected =
        "expected a rate under which all requests of the phase are due: this one ends with 0 before that";
    refuse_if(length_ns == NEVER, path, "", expected)?;
    let mean = curve.mean_until(length_ns.max(1));
    let expected = "expected a rate above 0 for some of the time of the phase";
    refuse_if(mean.is_nan() || mean < RATE_MIN, path, mean, expected)?;
    let expected = format!("expected {mean}, the mean of the rate over time");
    refuse_if((rate - mean).abs() > MEAN_ERROR_MAX * mean, Field::Rate, rate, expected)
}

/// Refuses parts with operations that the phase does not have, and such that no request can be drawn from.
fn mixes(parts: &[Part], phase: &Phase) -> Result<(), Invalid> {
    let Work::Mix(mix) = &phase.work else { return Ok(()) };
    for part in parts.iter().filter(|part| part.has_own_mix()) {
        let of_part = part.mix(mix);
        let foreign = of_part.ops.iter().find(|(verb, _)| !mix.any_op(|own| own == *verb));
        if let Some((verb, _)) = foreign {
            let expected = format!("in part '{}', operations of the phase's own mix are accepted", part.name);
            return refuse(Field::Parts, verb.name(), expected);
        }
        requests::mix(0, &of_part).map_err(|invalid| {
            let expected = format!("in part '{}': {}", part.name, invalid.expected);
            Invalid { path: Field::Parts.into(), expected, ..invalid }
        })?;
    }
    Ok(())
}

fn burst(plan: &Plan, phase: &Phase, burst: &Burst, rate: f64) -> Result<(), Invalid> {
    let path = Field::Burst;
    let time = |time_ns: Nanos| span(path, time_ns, (100 * MICROSECOND, "100us"), (DAY, "24h"));
    match burst {
        Burst::States(states) => {
            time(states.on_ns)?;
            time(states.off_ns)?;
            factor(states)?;
        }
        Burst::Hurst(sources) => {
            time(sources.on_ns)?;
            self::sources(sources)?;
        }
    }
    let Some(time_ns) = phase.stop.time_ns else {
        return refuse(path, "", "expected a time of the measured phase with it");
    };
    let pieces = burst.changes_in(time_ns) + RateCurve::of_plan(plan, rate).pieces_until(time_ns);
    let expected = format!(
        "expected at most {POINTS_MAX} changes of the rate, and the phase would have about {pieces:.0}: longer \
         bursts, fewer sources or a shorter phase are needed"
    );
    refuse_if(pieces > POINTS_MAX as f64, path, "", expected)
}

fn factor(states: &BurstStates) -> Result<(), Invalid> {
    if states.factor > 1.0 && states.factor * states.share() <= 1.0 {
        return Ok(());
    }
    let most = 1.0 / states.share();
    let expected = format!(
        "expected a factor above 1 and up to {most} with these times: beyond that, no rate between the bursts keeps \
         the mean"
    );
    refuse(Field::Burst, states.factor, expected)
}

fn sources(sources: &BurstSources) -> Result<(), Invalid> {
    let expected = "expected a Hurst parameter above 0.5 and below 1";
    refuse_if(!(sources.hurst > 0.5 && sources.hurst < 1.0), Field::Burst, sources.hurst, expected)?;
    within(Field::Burst, sources.sources.into(), 1, 10_000)
}

/// Refuses events that cannot happen in the measured phase.
fn events_fit(plan: &Plan, phase: &Phase) -> Result<(), Invalid> {
    let events = &plan.changes.events;
    let path = Field::Events;
    within(path, events.len() as u64, 0, EVENTS_MAX as u64)?;
    let Some(time_ns) = phase.stop.time_ns.filter(|_| phase.stop.requests.is_none()) else {
        return match events.first() {
            None => Ok(()),
            Some(_) => {
                refuse(path, "", "expected a measured phase that its time ends, and no number of requests")
            }
        };
    };
    for event in events {
        if event.at_ns >= time_ns {
            let at = typed_time(event.at_ns);
            return refuse(path, at, "expected a moment before the measured phase ends");
        }
        match &event.what {
            EventKind::Hot(crowd) => self::crowd(plan, crowd)?,
            EventKind::Delete(ranks) => lost(plan, phase, *ranks, Verb::Delete)?,
            EventKind::Expire(ranks) => lost(plan, phase, *ranks, Verb::Touch)?,
        }
    }
    shares(events)
}

fn crowd(plan: &Plan, crowd: &FlashCrowd) -> Result<(), Invalid> {
    let path = Field::Events;
    let expected = "expected a share of the requests above 0 and at most 1";
    refuse_if(!(crowd.share > 0.0 && crowd.share <= 1.0), path, crowd.share, expected)?;
    for (word, time_ns) in [("rise", crowd.rise_ns), ("hold", crowd.hold_ns), ("fall", crowd.fall_ns)] {
        let expected = format!("expected a time of at most 24h for {word}");
        refuse_if(time_ns > DAY, path, typed_time(time_ns), expected)?;
    }
    let expected = "expected a crowd that lasts for some time: rise, hold and fall are 0";
    refuse_if(crowd.length_ns() == 0, path, "", expected)?;
    match crowd.key {
        HotKey::Rank(rank) => ranks_exist(plan, RankRange { first: rank, last: rank }),
        HotKey::New => Ok(()),
    }
}

fn ranks_exist(plan: &Plan, ranks: RankRange) -> Result<(), Invalid> {
    let last = plan.data.records.saturating_sub(1);
    if ranks.first <= ranks.last && ranks.last <= last {
        return Ok(());
    }
    refuse(Field::Events, ranks, format!("expected ranks from 0 to {last}, in ascending order"))
}

/// Refuses records that requests of this verb cannot make a server lose.
fn lost(plan: &Plan, phase: &Phase, ranks: RankRange, verb: Verb) -> Result<(), Invalid> {
    let path = Field::Events;
    ranks_exist(plan, ranks)?;
    let expected = format!("expected at most {LOST_MAX} records of one event");
    refuse_if(ranks.records() > LOST_MAX, path, ranks, expected)?;
    let row = plan.protocol.row();
    let expected = format!("expected a protocol with {}, and {} has none", verb.name(), plan.protocol.name());
    refuse_if(!row.verbs.contains(&verb) || plan.data.style.field_bytes.is_some(), path, ranks, expected)?;
    let Work::Mix(mix) = &phase.work else { return Ok(()) };
    let expected = "expected lives in time with events that lose records: where lives are counted in requests, the key \
                    of a record at a moment is not known";
    refuse_if(mix.churn.as_ref().is_some_and(crate::plan::KeyChurn::counts_requests), path, ranks, expected)
}

/// Refuses crowds that together ask for more than there is. The sum of their shares is greatest where one of its lines ends.
fn shares(events: &[Event]) -> Result<(), Invalid> {
    let crowds: Vec<(Nanos, &FlashCrowd)> = events
        .iter()
        .filter_map(
            |event| if let EventKind::Hot(crowd) = &event.what { Some((event.at_ns, crowd)) } else { None },
        )
        .collect();
    let share_at = |moment: Nanos| -> f64 {
        let of = |(at_ns, crowd): &(Nanos, &FlashCrowd)| {
            moment.checked_sub(*at_ns).map_or(0.0, |since_ns| crowd.share_at(since_ns))
        };
        crowds.iter().map(of).sum()
    };
    let ends = crowds.iter().flat_map(|(at_ns, crowd)| {
        let risen = at_ns.saturating_add(crowd.rise_ns);
        [*at_ns, risen, risen.saturating_add(crowd.hold_ns)]
    });
    for moment in ends {
        let share = share_at(moment);
        let expected = format!(
            "expected shares of crowds that sum to at most 1, and {} from the beginning it is more",
            typed_time(moment)
        );
        refuse_if(share > 1.0 + 1e-9, Field::Events, share, expected)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Day, Group, Mix, Pause, Popularity, RatePoint, Sine, Stop, Until};
    use crate::protocol::Verb;
    use crate::time::SECOND;

    fn points(points: &[(u64, f64)]) -> RateShape {
        RateShape::Points(points.iter().map(|&(at_ns, rate)| RatePoint { at_ns, rate }).collect())
    }

    fn part(at_ns: Nanos) -> Part {
        Part::plain(format!("from {at_ns}"), at_ns)
    }

    /// A plan of ten seconds whose rate goes from 0 to 2,000 and bursts.
    fn changing() -> Plan {
        let states = BurstStates { factor: 5.0, on_ns: 50 * MILLISECOND, off_ns: 450 * MILLISECOND };
        let stop = Stop { time_ns: Some(10 * SECOND), requests: None };
        Plan {
            changes: Changes {
                rate: Some(points(&[(0, 0.0), (10 * SECOND, 2_000.0)])),
                burst: Some(Burst::States(states)),
                parts: vec![part(0), part(SECOND)],
                events: Vec::new(),
            },
            groups: vec![Group { arrivals: Arrivals::Poisson, rate: Some(1_000.0), ..Group::default() }],
            ..Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), stop)
        }
    }

    fn states_of(plan: &mut Plan) -> &mut BurstStates {
        match &mut plan.changes.burst {
            Some(Burst::States(states)) => states,
            _ => panic!("the plan bursts in two states"),
        }
    }

    #[test]
    fn a_load_that_changes_is_accepted_and_read_again() {
        let mut plans = vec![changing()];
        for shape in [
            RateShape::Sine(Sine { mean: 1_000.0, amplitude: 999.0, period_ns: SECOND, start: 0.0 }),
            RateShape::Day(Day { mean: 1_000.0, period_ns: 10 * SECOND }),
            points(&[(5 * SECOND, 1_000.0)]),
        ] {
            let hurst = BurstSources { hurst: 0.8, on_ns: SECOND, sources: 200 };
            let mut plan = changing();
            plan.changes =
                Changes { rate: Some(shape), burst: Some(Burst::Hurst(hurst)), ..Changes::default() };
            plans.push(plan);
        }
        for plan in plans {
            let text = serde_json::to_string(&plan).expect("a plan is data");
            assert_eq!(serde_json::from_str::<Plan>(&text).expect("it is read again"), plan);
            plan.validate().unwrap_or_else(|invalid| panic!("{invalid}: {text}"));
        }
        assert!(!serde_json::to_string(&Plan::default()).expect("a plan is data").contains("changes"));
    }

    #[test]
    fn a_rate_begins_with_one_at_which_the_phases_before_it_can_go() {
        let beginning_with = |rate: f64, has_warm_up: bool| {
            let mut plan = changing();
            plan.changes.rate = Some(points(&[(0, rate), (10 * SECOND, 2_000.0 - rate)]));
            if has_warm_up {
                let warm_up = Phase { recorded: false, ..plan.phases[0].clone() };
                plan.phases.insert(0, warm_up);
            }
            plan.validate()
        };
        for (rate, has_warm_up) in [(1e-9, false), (0.0, true), (0.001, true), (5.0, true)] {
            assert_eq!(beginning_with(rate, has_warm_up).err(), None, "{rate} {has_warm_up}");
        }
        let invalid = beginning_with(1e-9, true).expect_err("no pace is so slow");
        assert_eq!(invalid.path.to_string(), "changes.rate");
        assert!(invalid.expected.contains("begins with 0 or with 0.000001"), "{invalid}");
    }

    #[test]
    fn a_load_that_cannot_change_so_is_refused_by_its_path() {
        type Change = fn(&mut Plan);
        let rows: [(&str, &str, Change); 32] = [
            ("changes.parts", "at least one character", |plan| plan.changes.parts[1].name.clear()),
            ("changes.parts", "without control", |plan| plan.changes.parts[1].name = "\x1b[2J".to_owned()),
            ("changes.parts", "different names", |plan| {
                plan.changes.parts[1].name = plan.changes.parts[0].name.clone();
            }),
            ("changes.rate", "drawn requests", |plan| {
                plan.phases[0].work = Work::Pause(Pause { until_ns: 1, for_ns: 0 });
                plan.phases[0].stop = Stop::default();
            }),
            ("changes.rate", "one measured phase", |plan| plan.phases.push(plan.phases[0].clone())),
            ("changes.rate", "open loop", |plan| {
                (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Closed, None);
            }),
            ("changes.burst", "open loop", |plan| {
                plan.changes.rate = None;
                (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Closed, None);
            }),
            ("adaptive.until", "when the run ends", |plan| {
                plan.adaptive.until = Some(Until { quantile: 0.99, half_width: 0.02, least_ns: 0 });
            }),
            ("groups[0].rate", "999.99", |plan| {
                plan.changes.rate = Some(points(&[(0, 0.0), (10 * SECOND, 1_999.99)]));
            }),
            ("groups[0].rate", "mean", |plan| plan.groups[0].rate = Some(1_001.0)),
            ("changes.rate", "from 1 to", |plan| plan.changes.rate = Some(points(&[]))),
            ("changes.rate", "order of time", |plan| plan.changes.rate = Some(points(&[(2, 1.0), (1, 1.0)]))),
            ("changes.rate", "rates from 0", |plan| plan.changes.rate = Some(points(&[(0, -1.0)]))),
            ("changes.rate", "rates from 0", |plan| plan.changes.rate = Some(points(&[(0, f64::NAN)]))),
            ("changes.rate", "8760h", |plan| plan.changes.rate = Some(points(&[(YEAR + 1, 1.0)]))),
            ("changes.rate", "above 0 for some", |plan| {
                plan.changes.rate = Some(points(&[(0, 0.0), (20 * SECOND, 0.0), (30 * SECOND, 9.0)]));
            }),
            ("changes.rate", "ends with 0", |plan| {
                plan.changes.rate = Some(points(&[(0, 100.0), (SECOND, 0.0)]));
                plan.phases[0].stop = Stop { time_ns: None, requests: Some(51) };
            }),
            ("changes.rate", "below the mean", |plan| {
                let sine = Sine { mean: 1_000.0, amplitude: 1_000.0, period_ns: SECOND, start: 0.0 };
                plan.changes.rate = Some(RateShape::Sine(sine));
            }),
            ("changes.rate", "10ms to 8760h", |plan| {
                plan.changes.rate = Some(RateShape::Day(Day { mean: 1_000.0, period_ns: 0 }));
            }),
            ("changes.parts", "begins at 0", |plan| plan.changes.parts = vec![part(1)]),
            ("changes.parts", "follow each other", |plan| plan.changes.parts.push(part(SECOND))),
            ("changes.parts", "before the phase ends", |plan| plan.changes.parts.push(part(10 * SECOND))),
            ("changes.parts", "from 0 to 64", |plan| plan.changes.parts = (0..65).map(part).collect()),
            ("changes.parts", "phase's own mix", |plan| {
                plan.changes.parts[1].ops = Some(vec![(Verb::Get, 1.0), (Verb::Set, 1.0)]);
            }),
            ("changes.parts", "weights above 0", |plan| {
                plan.changes.parts[1].ops = Some(vec![(Verb::Get, 0.0)]);
            }),
            ("changes.parts", "zipf", |plan| {
                plan.changes.parts[1].popularity = Some(Popularity::Zipf { exponent: f64::NAN });
            }),
            ("changes.burst", "up to 10", |plan| states_of(plan).factor = 10.001),
            ("changes.burst", "above 1", |plan| states_of(plan).factor = 1.0),
            ("changes.burst", "100us to 24h", |plan| states_of(plan).off_ns = 0),
            ("changes.burst", "a time of the measured phase", |plan| {
                plan.changes.rate = None;
                plan.phases[0].stop = Stop { time_ns: None, requests: Some(51) };
            }),
            ("changes.burst", "at most 1048576 changes", |plan| {
                (states_of(plan).on_ns, states_of(plan).off_ns) = (100_000, 900_000);
                plan.phases[0].stop.time_ns = Some(3_600 * SECOND);
                plan.changes.rate = None;
            }),
            ("changes.burst", "above 0.5", |plan| {
                let sources = BurstSources { hurst: 0.5, on_ns: SECOND, sources: 2 };
                plan.changes.burst = Some(Burst::Hurst(sources));
            }),
        ];
        for (path, words, change) in rows {
            let mut plan = changing();
            change(&mut plan);
            let invalid = plan.validate().err().unwrap_or_else(|| panic!("{path} ({words}) is refused"));
            assert_eq!(invalid.path.to_string(), path, "{words}: {invalid}");
            assert!(invalid.expected.contains(words), "{words}: {invalid}");
        }
        // What is due before the rate ends is made.
        let mut plan = changing();
        plan.changes = Changes { rate: Some(points(&[(0, 100.0), (SECOND, 0.0)])), ..Changes::default() };
        plan.phases[0].stop = Stop { time_ns: None, requests: Some(32) };
        let curve = RateCurve::of(plan.changes.rate.as_ref().expect("it changes"));
        plan.groups[0].rate = Some(curve.mean_until(curve.length_until(plan.phases[0].stop)));
        plan.validate().expect("32 of 50 requests");
    }
}

#[cfg(test)]
mod stage_tests {
    use super::*;
    use crate::plan::{Group, Mix, Popularity, Stop, Transport, Until};
    use crate::time::SECOND;

    /// A plan in closed loop of 10 clients, of which 4 are on stage for a second and all for another.
    fn staged() -> Plan {
        let part =
            |(at_s, connections)| Part { connections, ..Part::plain(format!("from {at_s}"), at_s * SECOND) };
        let stop = Stop { time_ns: Some(2 * SECOND), requests: None };
        Plan {
            groups: vec![Group { clients: 10, ..Group::default() }],
            changes: Changes { parts: [(0, Some(4)), (1, None)].map(part).to_vec(), ..Changes::default() },
            ..Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), stop)
        }
    }

    #[test]
    fn connections_change_in_both_loops() {
        assert_eq!(staged().validate().map(|_| ()), Ok(()));
        let mut open = staged();
        (open.groups[0].arrivals, open.groups[0].rate) = (Arrivals::Poisson, Some(1_000.0));
        open.changes.parts[0].ops = Some(vec![(Verb::Get, 2.0)]);
        let states = BurstStates { factor: 5.0, on_ns: 50 * MILLISECOND, off_ns: 450 * MILLISECOND };
        open.changes.burst = Some(Burst::States(states));
        open.groups.push(Group { clients: 1, name: "beside".to_owned(), ..Group::default() });
        assert_eq!(open.validate().map(|_| ()), Ok(()));
    }

    #[test]
    fn connections_that_cannot_change_so_are_refused_with_the_reason() {
        type Change = fn(&mut Plan);
        let rows: [(&str, &str, Change); 11] = [
            ("changes.parts[0].connections", "from 1 to 10", |plan| {
                plan.changes.parts[0].connections = Some(0)
            }),
            ("changes.parts[1].connections", "from 1 to 10", |plan| {
                plan.changes.parts[1].connections = Some(11)
            }),
            ("changes.parts[0].connections", "no number of requests", |plan| {
                plan.phases[0].stop.requests = Some(100);
            }),
            ("changes.parts[0].connections", "over UDP", |plan| plan.transport = Transport::Udp),
            ("changes.parts[0].connections", "dealt to all clients", |plan| {
                let ranks = RankRange { first: 0, last: 0 };
                plan.changes.events = vec![Event { at_ns: 1, what: EventKind::Delete(ranks) }];
            }),
            ("changes.parts[0].connections", "one by one", |plan| plan.groups[0].policy.block = 2),
            ("changes.parts[0].connections", "in the drain", |plan| {
                plan.groups[0].policy.ends_on_time = true
            }),
            ("changes.parts", "open loop", |plan| {
                plan.changes.parts[1].popularity = Some(Popularity::Uniform);
            }),
            ("changes.parts", "before the phase ends", |plan| plan.changes.parts[1].at_ns = 2 * SECOND),
            ("changes.parts", "one measured phase", |plan| plan.phases.push(plan.phases[0].clone())),
            ("adaptive.until", "when the run ends", |plan| {
                plan.adaptive.until = Some(Until { quantile: 0.99, half_width: 0.02, least_ns: 0 });
            }),
        ];
        for (path, words, change) in rows {
            let mut plan = staged();
            change(&mut plan);
            let invalid = plan.validate().err().unwrap_or_else(|| panic!("{path} ({words}) is refused"));
            assert_eq!(invalid.path.to_string(), path, "{words}: {invalid}");
            assert!(invalid.expected.contains(words), "{words}: {invalid}");
        }
    }
}

#[cfg(test)]
mod events_tests {
    use super::*;
    use crate::plan::{Group, KeyChurn, Mix, Protocol, Stop};
    use crate::time::SECOND;

    fn plan_with(events: Vec<Event>) -> Plan {
        let stop = Stop { time_ns: Some(60 * SECOND), requests: None };
        Plan {
            groups: vec![Group { arrivals: Arrivals::Poisson, rate: Some(1_000.0), ..Group::default() }],
            changes: Changes { events, ..Changes::default() },
            ..Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), stop)
        }
    }

    fn hot(at_s: u64, share: f64) -> Event {
        let crowd =
            FlashCrowd { key: HotKey::New, share, rise_ns: SECOND, hold_ns: 5 * SECOND, fall_ns: SECOND };
        Event { at_ns: at_s * SECOND, what: EventKind::Hot(crowd) }
    }

    fn delete(ranks: &str) -> Event {
        Event { at_ns: SECOND, what: EventKind::Delete(ranks.parse().expect("it is a range")) }
    }

    #[test]
    fn events_that_can_happen_are_accepted() {
        let expire = Event { at_ns: 2, what: EventKind::Expire(RankRange { first: 0, last: 9 }) };
        let mut plan = plan_with(vec![hot(0, 0.6), hot(3, 0.4), hot(10, 1.0), delete("rank:0-9"), expire]);
        assert_eq!(plan.clone().validate().map(|_| ()), Ok(()));
        for protocol in [Protocol::Meta, Protocol::Binary, Protocol::Resp2, Protocol::Resp3] {
            plan.protocol = protocol;
            assert_eq!(plan.clone().validate().map(|_| ()), Ok(()), "{protocol:?}");
        }
    }

    #[test]
    fn events_that_cannot_happen_are_refused() {
        let mut rows = vec![
            plan_with(vec![hot(60, 0.5)]),
            plan_with(vec![hot(0, 0.0)]),
            plan_with(vec![hot(0, 1.5)]),
            plan_with(vec![hot(0, 0.6), hot(3, 0.6)]),
            plan_with(vec![delete("rank:10000")]),
            plan_with(vec![delete("rank:0-10000")]),
            plan_with(vec![hot(0, 0.001); EVENTS_MAX + 1]),
        ];
        let mut by_number = plan_with(vec![hot(0, 0.5)]);
        by_number.phases[0].stop.requests = Some(1_000);
        let mut closed = plan_with(vec![hot(0, 0.5)]);
        closed.groups[0] = Group::default();
        let mut by_requests = plan_with(vec![delete("rank:0-9")]);
        if let Work::Mix(mix) = &mut by_requests.phases[0].work {
            mix.churn = Some(KeyChurn::Share(0.1));
        }
        rows.extend([by_number, closed, by_requests]);
        for plan in rows {
            let events = plan.changes.events.clone();
            let invalid = plan.validate().expect_err("it cannot happen");
            assert_eq!(invalid.path.to_string(), "changes.events", "{events:?}: {invalid:?}");
        }
    }
}
