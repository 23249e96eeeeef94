//! Checks that the events of a load can happen: their moments, the keys that are hot, the records that are lost.

use super::bounds::{DAY, refuse, within};
use super::field::Field;
use super::invalid::Invalid;
use crate::plan::{EVENTS_MAX, Event, EventKind, FlashCrowd, HotKey, LOST_MAX, Phase, Plan, RankRange, Work};
use crate::protocol::Verb;
use crate::time::{Nanos, typed_time};

/// Refuses events that cannot happen in the measured phase.
pub fn fit(plan: &Plan, phase: &Phase) -> Result<(), Invalid> {
    let events = &plan.changes.events;
    let path = || Field::Events.path();
    within(path(), events.len() as u64, 0, EVENTS_MAX as u64)?;
    let Some(time_ns) = phase.stop.time_ns.filter(|_| phase.stop.requests.is_none()) else {
        return match events.first() {
            None => Ok(()),
            Some(_) => {
                refuse(path(), "", "expected a measured phase that its time ends, and no number of requests")
            }
        };
    };
    for event in events {
        if event.at_ns >= time_ns {
            let at = typed_time(event.at_ns);
            return refuse(path(), at, "expected a moment before the measured phase ends");
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
    let path = Field::Events.path();
    if !(crowd.share > 0.0 && crowd.share <= 1.0) {
        return refuse(path, crowd.share, "expected a share of the requests above 0 and at most 1");
    }
    for (word, time_ns) in [("rise", crowd.rise_ns), ("hold", crowd.hold_ns), ("fall", crowd.fall_ns)] {
        if time_ns > DAY {
            return refuse(path, typed_time(time_ns), format!("expected a time of at most 24h for {word}"));
        }
    }
    if crowd.length_ns() == 0 {
        return refuse(path, "", "expected a crowd that lasts for some time: rise, hold and fall are 0");
    }
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
    refuse(Field::Events.path(), ranks, format!("expected ranks from 0 to {last}, in ascending order"))
}

/// Refuses records that requests of this verb cannot make a server lose.
fn lost(plan: &Plan, phase: &Phase, ranks: RankRange, verb: Verb) -> Result<(), Invalid> {
    let path = || Field::Events.path();
    ranks_exist(plan, ranks)?;
    if ranks.records() > LOST_MAX {
        return refuse(path(), ranks, format!("expected at most {LOST_MAX} records of one event"));
    }
    let row = plan.protocol.row();
    if !row.verbs.contains(&verb) || plan.data.style.field_bytes.is_some() {
        let expected = format!("expected a protocol with {}, and {} has none", verb.name(), row.name);
        return refuse(path(), ranks, expected);
    }
    let Work::Mix(mix) = &phase.work else { return Ok(()) };
    if mix.churn.as_ref().is_some_and(crate::plan::KeyChurn::counts_requests) {
        let expected = "expected lives in time with events that lose records: where lives are counted in requests, the key \
                        of a record at a moment is not known";
        return refuse(path(), ranks, expected);
    }
    Ok(())
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
        if share > 1.0 + 1e-9 {
            let expected = format!(
                "expected shares of crowds that sum to at most 1, and {} from the beginning it is more",
                typed_time(moment)
            );
            return refuse(Field::Events.path(), share, expected);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Changes, Group, KeyChurn, Mix, Protocol, Stop};
    use crate::time::SECOND;

    fn plan_with(events: Vec<Event>) -> Plan {
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![Group { arrivals: Arrivals::Poisson, rate: Some(1_000.0), ..Group::default() }],
            changes: Changes { events, ..Changes::default() },
            phases: vec![Phase {
                name: "measure".to_owned(),
                work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
                stop: Stop { time_ns: Some(60 * SECOND), requests: None },
                recorded: true,
            }],
            ..Plan::default()
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
