//! Checks that the run as a whole can be made: ends that are decided during it, goals that judge it, its probe, its memory.

use super::field::Field;
use super::invalid::{DAY, Invalid, refuse, refuse_if, span};
use crate::plan::{Depth, Phase, Plan, Settle, Until, Work, memory};
use crate::protocol::Verb;
use crate::time::{MILLISECOND, typed_time};

/// Refuses a warm-up that cannot settle or whose end could not be observed, and a measurement whose end cannot be
/// found.
pub fn adaptive_fits(plan: &Plan) -> Result<(), Invalid> {
    if let Some(settle) = &plan.adaptive.settle {
        self::settle(plan, settle)?;
    }
    if plan.adaptive.first_eviction {
        first_eviction(plan)?;
    }
    plan.adaptive.until.as_ref().map_or(Ok(()), |until| self::until(plan, until))
}

fn first_eviction(plan: &Plan) -> Result<(), Invalid> {
    let path = Field::FirstEviction;
    warm_up_of(plan, Field::FirstEviction)?;
    let expected = "expected it in place of a warm-up until the load has settled";
    refuse_if(plan.adaptive.settle.is_some(), path, true, expected)?;
    let expected = "expected servers that are asked for their statistics, and no --no-evidence";
    refuse_if(!plan.evidence, path, true, expected)
}

/// The phase before the only measured one; its requests are drawn, and a time ends it.
fn warm_up_of(plan: &Plan, field: Field) -> Result<&Phase, Invalid> {
    let measured = measured_phase(plan, field)?;
    let warm_up = measured.checked_sub(1).map(|number| &plan.phases[number]);
    let warm_up = warm_up.filter(|phase| is_mix(phase) && phase.stop.time_ns.is_some());
    let expected = "expected a phase of drawn requests with a time before the measured one";
    warm_up.map_or_else(|| refuse(field, "", expected), Ok)
}

fn settle(plan: &Plan, settle: &Settle) -> Result<(), Invalid> {
    let path = Field::Settle;
    let warm_up = warm_up_of(plan, Field::Settle)?;
    span(path, settle.block_ns, (10 * MILLISECOND, "10ms"), (DAY, "24h"))?;
    let least_ns = settle.discard_ns.saturating_add(settle.block_ns.saturating_mul(2));
    match warm_up.stop.time_ns.filter(|time_ns| *time_ns >= least_ns) {
        Some(_) => Ok(()),
        None => {
            let least = typed_time(least_ns);
            refuse(path, "", format!("expected a longest time of at least {least}: two blocks have to fit"))
        }
    }
}

fn until(plan: &Plan, until: &Until) -> Result<(), Invalid> {
    let path = Field::Until;
    let phase = &plan.phases[measured_phase(plan, Field::Until)?];
    let expected = "expected a quantile above 0 and below 1";
    refuse_if(!(until.quantile > 0.0 && until.quantile < 1.0), path, until.quantile, expected)?;
    let expected = "expected a distance from 0.1% to 100%";
    refuse_if(!(until.half_width >= 0.001 && until.half_width <= 1.0), path, until.half_width, expected)?;
    let Some(most_ns) = phase.stop.time_ns else {
        return refuse(path, "", "expected a longest time of the measured phase with it");
    };
    if until.least_ns > most_ns {
        let (least, most) = (typed_time(until.least_ns), typed_time(most_ns));
        let expected = format!(
            "expected a least time (--min-time, {least}) that is not above the longest (--max-time, {most})"
        );
        return refuse(Field::UntilLeast, least, expected);
    }
    Ok(())
}

/// The number of the only measured phase, which a time ends.
fn measured_phase(plan: &Plan, field: Field) -> Result<usize, Invalid> {
    let mut measured = plan.phases.iter().enumerate().filter(|(_, phase)| phase.recorded);
    let (Some((number, phase)), None) = (measured.next(), measured.next()) else {
        return refuse(field, "", "expected one measured phase with it");
    };
    refuse_if(!is_mix(phase), field, "", "expected drawn requests with it, and no recording")?;
    let expected = "expected no number of requests (-n) with it: a time ends the run";
    refuse_if(phase.stop.requests.is_some(), field, "", expected)?;
    let expected = "expected clients that stay with it, and none that come and go";
    refuse_if(plan.groups.iter().any(|group| group.churn.is_some()), field, "", expected)?;
    Ok(number)
}

fn is_mix(phase: &Phase) -> bool {
    matches!(phase.work, Work::Mix(_))
}

/// Refuses goals and `until` where no measured request is answered, and checks where no value comes back.
pub fn judged_fits(plan: &Plan) -> Result<(), Invalid> {
    if plan.measures_no_reply() {
        let expected = "expected an operation that is answered: none in --mix is, with --noreply, and only answers have \
                        response times";
        if let Some(goal) = plan.goals.first() {
            return refuse(Field::GoalLimit.of(0), goal, expected);
        }
        if let Some(until) = &plan.adaptive.until {
            return refuse(Field::Until, until.quantile, expected);
        }
    }
    let expected = "expected an operation that reads (get, gets, gat, gats, hget) in --mix: no other brings a value \
                        back that could be checked";
    refuse_if(plan.verify > 0.0 && has_only_writes(plan), Field::Verify, plan.verify, expected)
}

/// Whether requests are drawn, and none of them reads. The read before a cas is not checked.
fn has_only_writes(plan: &Plan) -> bool {
    let mut mixes = plan.mixes().map(|(_, mix)| mix).peekable();
    mixes.peek().is_some() && mixes.all(|mix| !mix.any_op(Verb::reads))
}

/// Refuses a probe where no judge reads it, of more servers than one, and of requests that are not drawn from a mix.
pub fn probe_fits(plan: &Plan) -> Result<(), Invalid> {
    if !plan.probe {
        return Ok(());
    }
    let accepted = if !plan.evidence {
        "expected a run that asks its server for its statistics, and no --no-evidence"
    } else if plan.servers.len() != 1 {
        "expected one server with it"
    } else if plan.sequence().is_some() || plan.probed_phase().is_none() {
        "expected drawn requests in the last phase, and no recording"
    } else {
        return Ok(());
    };
    refuse(Field::Probe, true, accepted)
}

/// Refuses a plan that needs more memory than any may: its depth, or its connections where they would need too much with a depth
/// of 1 too.
pub fn memory_fits(plan: &Plan) -> Result<(), Invalid> {
    let need_bytes = memory::need_bytes(plan);
    if need_bytes <= memory::LIMIT_BYTES {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let expected = |accepted: &str| {
        let (need, limit) = (gigabytes(need_bytes), gigabytes(memory::LIMIT_BYTES));
        format!(
            "this plan needs {need} of memory in this process, more than the limit of {limit}: {accepted} accepted"
        )
    };
    if memory::slot_record_bytes(plan) > need_bytes / 2 {
        return refuse(
            Field::Records,
            plan.data.records,
            expected("fewer records in chosen slots (--slots) are"),
        );
    }
    if has_too_many_clients(plan) {
        let most = plan.groups.iter().enumerate().max_by_key(|(_, group)| group.clients);
        let (index, clients) = most.map_or((0, 0), |(index, group)| (index, group.clients));
        return refuse(Field::Clients.of(index), clients, expected("fewer connections are"));
    }
    let deepest = plan.groups.iter().enumerate().max_by_key(|(_, group)| memory::depth_of(group));
    let (index, depth) = match deepest {
        Some((index, group)) => {
            (index, group.depth.limit().map_or("unlimited".to_owned(), |depth| depth.to_string()))
        }
        None => (0, "unlimited".to_owned()),
    };
    refuse(Field::Depth.of(index), depth, expected("fewer connections or a smaller depth are"))
}

/// Whether a plan needs too much memory whatever its depth. Windows have no depth: their front names what takes the memory.
fn has_too_many_clients(plan: &Plan) -> bool {
    let mut shallow = plan.clone();
    shallow.groups.iter_mut().for_each(|group| group.depth = Depth::Limit(1));
    plan.window().is_none() && memory::need_bytes(&shallow) > memory::LIMIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Goal, Group, Load, Mix, Phase, Stop, Until, Work};
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
