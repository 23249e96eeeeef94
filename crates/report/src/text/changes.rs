//! The words of the report about a load that changes.

use pummel_logic::arrival::RateCurve;
use pummel_logic::plan::{Burst, Event, EventKind, Group, HotKey, Plan, RateShape, Transport};
use pummel_logic::time::NEVER;
use pummel_measure::figures::time_text;
use pummel_measure::words::{counted, grouped};

use super::units::plain;

/// The rate of group number `index` of a plan, as words that follow `open loop`; empty where the group has none.
pub(crate) fn rate_words(plan: &Plan, index: usize, group: &Group) -> String {
    let Some(mean) = group.rate else { return String::new() };
    if index > 0 || plan.changes.is_nothing() {
        return format!(" at {} req/s", plain(mean));
    }
    let shape = plan.changes.rate.as_ref().map_or_else(
        || format!("{} req/s", plain(mean)),
        |shape| format!("{} (mean {})", shape_words(shape), mean_words(plan, mean)),
    );
    let burst = plan.changes.burst.map_or_else(String::new, |burst| format!(", {}", burst_words(burst)));
    format!(" at {shape}{burst}")
}

/// The number of connections of a group, or of sockets over UDP; where it changes, the least and the greatest.
pub(crate) fn connections_words(plan: &Plan, group: &Group) -> String {
    let what = if plan.transport == Transport::Udp { "socket" } else { "connection" };
    let all = counted(u64::from(group.clients), what);
    let is_first = plan.groups.first().is_some_and(|first| first.name == group.name);
    if !is_first || !plan.changes.has_stage() {
        return all;
    }
    let parts = &plan.changes.parts;
    let each = || parts.iter().map(|part| part.connections.unwrap_or(group.clients));
    match (each().min(), each().max()) {
        (Some(least), Some(most)) if least < most => {
            let steps = counted(parts.len() as u64, "step");
            format!("{} to {} in {steps}", grouped(least.into()), counted(most.into(), what))
        }
        (_, most) => counted(most.map_or(0, u64::from), what),
    }
}

/// The mean rate, and the time that it covers: a run that ends by its number of requests may not reach the end of the
/// shape.
fn mean_words(plan: &Plan, mean: f64) -> String {
    let by_number = plan.phases.iter().any(|phase| phase.recorded && phase.stop.requests.is_some());
    format!("{}{}", plain(mean), if by_number { " until its last request" } else { "" })
}

/// The words for a rate over time, without its mean.
pub(crate) fn shape_words(shape: &RateShape) -> String {
    match shape {
        RateShape::Points(points) => match points.as_slice() {
            [from, to] if from.at_ns == 0 => {
                format!("{} to {} req/s within {}", plain(from.rate), plain(to.rate), time_text(to.at_ns))
            }
            points => {
                let rates = points.iter().map(|point| point.rate);
                let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
                format!("{} to {} req/s by {} points", plain(least), plain(most), points.len())
            }
        },
        RateShape::Sine(sine) => format!(
            "{} +- {} req/s, a sine of {}",
            plain(sine.mean),
            plain(sine.amplitude),
            time_text(sine.period_ns)
        ),
        RateShape::Day(day) => {
            let (least, most) = RateCurve::of(shape).range_until(NEVER);
            let range = format!("{} to {} req/s", plain(least.round()), plain(most.round()));
            format!("{range}, the hours of a day of {}", time_text(day.period_ns))
        }
    }
}

/// The words for bursts of a rate.
pub(crate) fn burst_words(burst: Burst) -> String {
    match burst {
        Burst::States(states) => format!(
            "times {} for {} and {} for {} in turn",
            plain(states.factor),
            time_text(states.on_ns),
            plain(states.factor_off().max(0.0)),
            time_text(states.off_ns)
        ),
        Burst::Hurst(sources) => format!(
            "in bursts of {} sources (H {}, on for {})",
            sources.sources,
            plain(sources.hurst),
            time_text(sources.on_ns)
        ),
    }
}

/// Most events that are listed; further ones are counted.
const EVENTS_TOLD_MAX: usize = 6;

/// Events at moments of the measured phase, in words.
pub(crate) fn event_words(events: &[Event]) -> String {
    let told = events.iter().take(EVENTS_TOLD_MAX).map(|event| {
        let what = match &event.what {
            EventKind::Hot(crowd) => {
                let key = match crowd.key {
                    HotKey::New => "a new key".to_owned(),
                    HotKey::Rank(rank) => format!("the record of rank {rank}"),
                };
                let (share, time) = (plain(crowd.share * 100.0), time_text(crowd.length_ns()));
                format!("{key} gets up to {share} % of the requests within {time}")
            }
            EventKind::Delete(ranks) => format!("{ranks} deleted"),
            EventKind::Expire(ranks) => format!("{ranks} expires"),
        };
        format!("at {} {what}", time_text(event.at_ns))
    });
    let mut words = told.collect::<Vec<String>>().join("; ");
    if events.len() > EVENTS_TOLD_MAX {
        words += &format!("; and {} more", events.len() - EVENTS_TOLD_MAX);
    }
    words
}

/// A sentence on the figures that a load that changes does not have; `None` if it does not change. `steered` is how
/// often its rate was changed by hand.
pub(crate) fn note(plan: &Plan, steered: usize) -> Option<String> {
    (!plan.changes.is_nothing()).then(|| {
        let how = match steered {
            0 => "The load changes by plan".to_owned(),
            changes => format!("The load was steered by hand, with {}", counted(changes as u64, "change")),
        };
        let parts = if plan.changes.has_stage() { "steps" } else { "rates" };
        format!(
            "{how}: the figures are those of all its {parts} together, and how sure they are is not known"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{
        Arrivals, BurstSources, BurstStates, Changes, Day, FlashCrowd, Part, RankRange, RatePoint, Sine,
    };
    use pummel_logic::time::{MILLISECOND, SECOND};

    fn words_of(rate: Option<RateShape>, burst: Option<Burst>) -> String {
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(20_000.0), ..Group::default() };
        let plan = Plan { changes: Changes { rate, burst, ..Changes::default() }, ..Plan::default() };
        rate_words(&plan, 0, &group)
    }

    #[test]
    fn events_are_told_and_many_of_them_counted() {
        let crowd = FlashCrowd { key: HotKey::New, share: 0.4, rise_ns: SECOND, hold_ns: SECOND, fall_ns: 0 };
        let ranks = RankRange { first: 0, last: 9 };
        let mut events = vec![
            Event { at_ns: 10 * SECOND, what: EventKind::Hot(crowd) },
            Event { at_ns: 20 * SECOND, what: EventKind::Delete(ranks) },
        ];
        let words =
            "at 10.0 s a new key gets up to 40 % of the requests within 2.00 s; at 20.0 s rank:0-9 deleted";
        assert_eq!(event_words(&events), words);
        events.extend(vec![Event { at_ns: 0, what: EventKind::Expire(ranks) }; 10]);
        assert!(event_words(&events).ends_with("rank:0-9 expires; and 6 more"));
    }

    #[test]
    fn connections_that_change_are_told_with_the_least_and_the_greatest() {
        let part =
            |(at_s, connections)| Part { connections, ..Part::plain(format!("from {at_s}"), at_s * SECOND) };
        let group = |name: &str| Group { name: name.to_owned(), clients: 200, ..Group::default() };
        let mut plan = Plan { groups: vec![group("clients"), group("beside")], ..Plan::default() };
        let words = |plan: &Plan, index: usize| connections_words(plan, &plan.groups[index]);
        assert_eq!(words(&plan, 0), "200 connections");
        plan.changes.parts = [(0, Some(50)), (1, None)].map(part).to_vec();
        assert_eq!(words(&plan, 0), "50 to 200 connections in 2 steps");
        assert_eq!(words(&plan, 1), "200 connections", "others stay");
        plan.changes.parts = [(0, Some(50)), (1, Some(50))].map(part).to_vec();
        assert_eq!(words(&plan, 0), "50 connections");
        assert!(note(&plan, 0).is_some_and(|note| note.contains("all its steps together")));
    }

    #[test]
    fn a_load_that_changes_is_described() {
        let point = |at_s, rate| RatePoint { at_ns: at_s * SECOND, rate };
        assert_eq!(words_of(None, None), " at 20,000 req/s");
        let line = RateShape::Points(vec![point(0, 10e3), point(10, 30e3)]);
        assert_eq!(words_of(Some(line), None), " at 10,000 to 30,000 req/s within 10.0 s (mean 20,000)");
        let stages = RateShape::Points(vec![point(0, 10e3), point(5, 0.0), point(5, 40e3)]);
        assert_eq!(words_of(Some(stages), None), " at 0 to 40,000 req/s by 3 points (mean 20,000)");
        let sine = Sine { mean: 20e3, amplitude: 5e3, period_ns: 2 * SECOND, start: 0.0 };
        let sine = RateShape::Sine(sine);
        assert_eq!(words_of(Some(sine), None), " at 20,000 +- 5,000 req/s, a sine of 2.00 s (mean 20,000)");
        let day = RateShape::Day(Day { mean: 20e3, period_ns: 24 * SECOND });
        let words = words_of(Some(day), None);
        assert!(words.ends_with(" req/s, the hours of a day of 24.0 s (mean 20,000)"), "{words}");
        let states = BurstStates { factor: 5.0, on_ns: 50 * MILLISECOND, off_ns: 450 * MILLISECOND };
        let words = words_of(None, Some(Burst::States(states)));
        assert!(words.starts_with(" at 20,000 req/s, times 5 for 50.0 ms and 0.56 for 450 ms"), "{words}");
        let hurst = BurstSources { hurst: 0.8, on_ns: SECOND, sources: 200 };
        let words = words_of(None, Some(Burst::Hurst(hurst)));
        assert_eq!(words, " at 20,000 req/s, in bursts of 200 sources (H 0.8, on for 1.00 s)");
    }
}
