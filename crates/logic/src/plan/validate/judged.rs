//! Checks that a run has what it is judged by: response times for goals and for `until`, values for checks.

use super::bounds::refuse;
use super::field::Field;
use super::invalid::Invalid;
use super::requests::mixes;
use crate::plan::Plan;

/// Refuses goals and `until` where no measured request is answered, and checks where no value comes back.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    if plan.measures_no_reply() {
        let expected = "expected an operation that is answered: none in --mix is, with --noreply, and only answers have \
                        response times";
        if let Some(goal) = plan.goals.first() {
            return refuse(Field::GoalLimit.of(0), goal, expected);
        }
        if let Some(until) = &plan.adaptive.until {
            return refuse(Field::Until.path(), until.quantile, expected);
        }
    }
    if plan.verify > 0.0 && has_only_writes(plan) {
        let expected = "expected an operation that reads (get, gets, gat, gats, hget) in --mix: no other brings a value \
                        back that could be checked";
        return refuse(Field::Verify.path(), plan.verify, expected);
    }
    Ok(())
}

/// Whether requests are drawn, and none of them reads. The read before a cas is not checked.
fn has_only_writes(plan: &Plan) -> bool {
    let mut mixes = mixes(plan).map(|(_, mix)| mix).peekable();
    mixes.peek().is_some() && mixes.all(|mix| !mix.ops.iter().any(|&(verb, _)| verb.reads()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Goal, Group, Load, Mix, Phase, Stop, Until, Work};
    use crate::protocol::Verb;
    use crate::time::{MILLISECOND, SECOND};

    /// Operations with their weights.
    type Ops<'a> = &'a [(Verb, f64)];

    /// Adds what judges the times of a plan.
    type Judge = fn(&mut Plan);

    /// A plan that loads, and measures these operations for ten seconds.
    fn plan(ops: &[(Verb, f64)], noreply: bool) -> Plan {
        let phase = |name: &str, work, stop, recorded| Phase { name: name.to_owned(), work, stop, recorded };
        let load = Work::Load(Load { depth: 64, ..Load::default() });
        let stop = Stop { time_ns: Some(10 * SECOND), requests: None };
        let mix = Work::Mix(Mix { noreply, ..Mix::of(ops) });
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![Group::default()],
            phases: vec![phase("load", load, Stop::default(), false), phase("measure", mix, stop, true)],
            ..Plan::default()
        }
    }

    fn refused(plan: Plan) -> Option<(String, String)> {
        plan.validate().err().map(|invalid| (invalid.path.to_string(), invalid.expected))
    }

    #[test]
    fn goals_and_until_need_a_request_that_is_answered() {
        let goal = |plan: &mut Plan| plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND }];
        let until = |plan: &mut Plan| {
            plan.adaptive.until = Some(Until { quantile: 0.99, half_width: 0.02, least_ns: SECOND });
        };
        let (set, get, cas) = ((Verb::Set, 1.0), (Verb::Get, 1.0), (Verb::Cas, 1.0));
        let rows: [(Ops<'_>, bool, bool); 6] = [
            (&[set], false, true),
            (&[set], true, false),
            (&[set, (Verb::Delete, 1.0)], true, false),
            (&[set, get], true, true),
            (&[set, (Verb::Version, 1.0)], true, true),
            (&[cas], true, true),
        ];
        for (ops, noreply, is_answered) in rows {
            for (path, judge) in [("goals[0].limit_ns", goal as Judge), ("adaptive.until", until)] {
                let mut plan = plan(ops, noreply);
                assert_eq!(refused(plan.clone()), None, "{ops:?}");
                judge(&mut plan);
                let refused = refused(plan).map(|(path, _)| path);
                assert_eq!(refused.as_deref(), (!is_answered).then_some(path), "{ops:?} {noreply}");
            }
        }
    }

    #[test]
    fn checks_need_a_request_that_brings_a_value_back() {
        let rows: [(Ops<'_>, bool); 3] = [
            (&[(Verb::Set, 1.0)], false),
            (&[(Verb::Set, 1.0), (Verb::Cas, 1.0)], false),
            (&[(Verb::Set, 9.0), (Verb::Gats, 1.0)], true),
        ];
        for (ops, is_checked) in rows {
            let refused = refused(Plan { verify: 0.5, ..plan(ops, false) });
            assert_eq!(refused.is_none(), is_checked, "{ops:?}");
            if let Some((path, expected)) = refused {
                assert!(
                    path == "verify" && expected.contains("an operation that reads"),
                    "{path}: {expected}"
                );
            }
        }
        // What a load stores is not read by it.
        let mut load = Plan { verify: 1.0, ..plan(&[(Verb::Get, 1.0)], false) };
        load.phases.truncate(1);
        assert_eq!(refused(load), None);
    }
}
