//! Checks that keys can change as a Plan says: the lives of records' keys, and the clients that ask for them.

use super::bounds::refuse;
use super::field::{Field, FieldPath};
use super::invalid::Invalid;
use crate::dist::Dist;
use crate::plan::{Arrivals, KeyChurn, LIFE_MIN, Mix, Plan, Popularity, Work};

/// Refuses a churn with invalid lives, and one that clients could not follow together.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let mixes: Vec<(usize, &Mix)> = plan
        .phases
        .iter()
        .enumerate()
        .filter_map(|(index, phase)| if let Work::Mix(mix) = &phase.work { Some((index, mix)) } else { None })
        .collect();
    for &(index, mix) in &mixes {
        if let Some(churn) = &mix.churn {
            life(Field::Churn.of(index), churn)?;
        }
        if mix.churn != mixes[0].1.churn {
            let expected = "expected one churn in all phases: keys change on from one phase to the next";
            return refuse(Field::Churn.of(index), text(mix.churn.as_ref()), expected);
        }
    }
    for part in &plan.changes.parts {
        part.churn.as_ref().map_or(Ok(()), |churn| life(Field::Parts.path(), churn))?;
    }
    let Some(&(first, mix)) = mixes.iter().find(|(index, _)| plan.churns(*index)) else { return Ok(()) };
    if mixes.iter().any(|(_, mix)| mix.inserts || matches!(mix.popularity, Popularity::Latest { .. })) {
        let expected = "expected no adds of new records and no popularity of the newest with it: they have new keys already";
        return refuse(Field::Churn.of(first), text(mix.churn.as_ref()), expected);
    }
    let churns = mix.churn.iter().chain(plan.changes.parts.iter().filter_map(|part| part.churn.as_ref()));
    clients(plan, Field::Churn.of(first), &churns.collect::<Vec<_>>())
}

/// Refuses clients without a common measure of time for the lives of keys.
fn clients(plan: &Plan, path: FieldPath, churns: &[&KeyChurn]) -> Result<(), Invalid> {
    let churn = churns[0];
    if plan.groups.iter().any(|group| group.churn.is_some()) || plan.sequence().is_some() {
        let expected = "expected clients that stay with it, and none that come and go";
        return refuse(path, churn, expected);
    }
    if plan.window().is_some() {
        return refuse(path, churn, "expected clients without windows with it");
    }
    let by_requests = churns.iter().find(|churn| churn.counts_requests());
    if let Some(churn) = by_requests {
        if plan.groups.len() > 1 {
            let expected = "expected lives in time where several groups of clients ask at paces of their own";
            return refuse(path, churn, expected);
        }
        if plan.changes.parts.iter().any(|part| part.churn.is_some()) {
            let expected = "expected lives in time where phases have lives of their own";
            return refuse(Field::Parts.path(), churn, expected);
        }
        return Ok(());
    }
    if plan.groups[0].arrivals == Arrivals::Closed {
        let expected = "expected lives in requests in closed loop, such as requests:100000 or share:0.01: the time of a \
                        request is not known before it is asked; lives in time need open loop (--rate)";
        return refuse(path, churn, expected);
    }
    Ok(())
}

fn life(path: FieldPath, churn: &KeyChurn) -> Result<(), Invalid> {
    let is_life = |lives: &Dist, least: f64| {
        !matches!(lives, Dist::File { .. })
            && lives.clone().checked().is_ok()
            && lives.support().0 >= 0.0
            && lives.mean() >= least
    };
    match churn {
        KeyChurn::Seconds(lives) if !is_life(lives, LIFE_MIN.0) => {
            refuse(path, churn, "expected lives of 0 or more with a mean of at least 1ms")
        }
        KeyChurn::Requests(lives) if !is_life(lives, LIFE_MIN.1) => {
            refuse(path, churn, "expected lives of 0 or more requests with a mean of at least 1")
        }
        KeyChurn::Share(share) if !(*share > 0.0 && *share <= 1.0) => {
            refuse(path, churn, "expected a share of records above 0 and at most 1 for each request")
        }
        _ => Ok(()),
    }
}

fn text(churn: Option<&KeyChurn>) -> String {
    churn.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Group, Part, Phase, Stop};
    use crate::protocol::Verb;
    use crate::time::SECOND;

    fn churning(text: &str) -> Plan {
        let churn = Some(text.parse().expect("it is a churn"));
        let phase = |name: &str, recorded| Phase {
            name: name.to_owned(),
            work: Work::Mix(Mix { churn: churn.clone(), ..Mix::of(&[(Verb::Get, 1.0)]) }),
            stop: Stop { time_ns: Some(10 * SECOND), requests: None },
            recorded,
        };
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![Group { arrivals: Arrivals::Poisson, rate: Some(1_000.0), ..Group::default() }],
            phases: vec![phase("warmup", false), phase("measure", true)],
            ..Plan::default()
        }
    }

    fn close(plan: &mut Plan) {
        (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Closed, None);
    }

    fn long_prefix(plan: &mut Plan) {
        (plan.data.key_prefix, plan.data.key_size) = ("p".repeat(235), Dist::Fixed(250.0));
    }

    #[test]
    fn churns_are_accepted_in_the_loops_that_tell_their_time() {
        for text in ["60", "default", "exponential:30", "requests:1000", "share:0.01"] {
            let plan = churning(text);
            assert_eq!(plan.clone().validate().map(|_| ()), Ok(()), "{text}");
            let mut closed = plan;
            close(&mut closed);
            assert_eq!(
                closed.validate().is_ok(),
                text.contains("requests") || text.contains("share"),
                "{text}"
            );
        }
    }

    #[test]
    fn churns_that_clients_cannot_keep_are_refused() {
        type Change = fn(&mut Plan);
        let rows: [(&str, Change, &str); 8] = [
            ("0", |_| {}, "phases[0].work.mix.churn"),
            ("uniform:-5,1000", |_| {}, "phases[0].work.mix.churn"),
            ("share:0", |_| {}, "phases[0].work.mix.churn"),
            ("share:1.5", |_| {}, "phases[0].work.mix.churn"),
            ("requests:0", |_| {}, "phases[0].work.mix.churn"),
            (
                "60",
                |plan| plan.phases[0].work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
                "phases[1].work.mix.churn",
            ),
            ("60", long_prefix, "data.key_prefix"),
            ("60", close, "phases[0].work.mix.churn"),
        ];
        for (text, change, path) in rows {
            let mut plan = churning(text);
            change(&mut plan);
            let invalid = plan.validate().expect_err(text);
            assert_eq!(invalid.path.to_string(), path, "{text}: {invalid:?}");
        }
        let mut plan = churning("requests:1000");
        let part = Part { churn: Some(KeyChurn::usual()), ..Part::plain("one".to_owned(), 0) };
        plan.changes.parts = vec![part];
        assert_eq!(plan.validate().expect_err("units differ").path.to_string(), "changes.parts");
    }
}
