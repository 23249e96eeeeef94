//! Misses that can have one cause alone: their keys were not in the servers when the run began.

use serde::{Deserialize, Serialize};

use super::evidence::server::{FLUSHED, ServerCounts};
use crate::counts::Counts;
use crate::measurement::{LoadResult, Measurement};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Data, Event, EventKind, HotKey, Mix, Phase, Plan, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::workload::key::{KEY_MAX_BYTES, KeyMaker, Space};

/// The keys that reads of records found, and those that they missed, of these counts of all requests. Commands of the user are left
/// out, since their replies may tell of elements.
pub fn looked_up(measurement: &Measurement, all: &Counts) -> (u64, u64) {
    let ops = measurement.groups.iter().flat_map(|group| group.ops.iter());
    let commands = ops.filter(|(verb, _)| verb.is_command()).map(|(_, op)| &op.counts);
    commands.fold((all.hits, all.misses), |(hits, misses), counts| {
        (hits.saturating_sub(counts.hits), misses.saturating_sub(counts.misses))
    })
}

/// Whether a plan stores no records before it measures, takes none away, and lets none expire. Of commands of the user it is not known.
pub fn begins_without_load(plan: &Plan) -> bool {
    let keeps =
        |mix: &Mix| mix.meta.is_nothing() && !mix.any_op(|verb| verb == Verb::Delete || verb.is_command());
    let is_plain = |phase: &Phase| match &phase.work {
        Work::Mix(mix) => keeps(mix) && plan.changes.parts.iter().all(|part| keeps(&part.mix(mix))),
        Work::Pause(_) | Work::Audit(_) => true,
        Work::Load(_) | Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => false,
    };
    plan.phases.iter().all(is_plain)
        && plan.changes.events.is_empty()
        && plan.sequence().is_none()
        && plan.data.expiry_s.support() == (0.0, 0.0)
}

/// Whether a server that counted this, of which `ours` were requests of the run where that is known, was disturbed like this and did
/// not start anew has lost no record; false where it does not count them, and where others asked it, who may have deleted some.
pub fn lost_nothing(counts: &ServerCounts, ours: Option<u64>, disturbances: &[String]) -> bool {
    if counts.requests.zip(ours).is_some_and(|(all, ours)| all > ours) {
        return false;
    }
    let lost = counts.evictions.zip(counts.expired).map(|(evicted, expired)| evicted.saturating_add(expired));
    lost == Some(0) && !disturbances.iter().any(|words| words.starts_with(FLUSHED))
}

/// Whether a plan stores all plain records and then only reads them, and stores them again.
pub fn keeps_records(plan: &Plan) -> bool {
    let keeps = |phase: &Phase| match &phase.work {
        Work::Load(load) => !load.no_plain,
        Work::Mix(mix) => {
            only_rewrites(mix) && plan.changes.parts.iter().all(|part| only_rewrites(&part.mix(mix)))
        }
        Work::Pause(_) | Work::Audit(_) => true,
        Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => false,
    };
    let is_kept = plan.data.expiry_s.support() == (0.0, 0.0)
        && plan.sequence().is_none()
        && !plan.changes.events.iter().any(makes_misses)
        && plan.phases.iter().all(keeps);
    is_kept && matches!(plan.phases.first().map(|phase| &phase.work), Some(Work::Load(_)))
}

/// Whether a mix asks only for the records of the load, and only reads and stores them.
fn only_rewrites(mix: &Mix) -> bool {
    let verbs = [Verb::Get, Verb::Gets, Verb::Set, Verb::Replace, Verb::Version];
    // A record that gets another key is asked for under a key that was never stored.
    mix.churn.is_none()
        && mix.meta.is_nothing()
        && !mix.reads_unstored()
        && mix.ops.iter().all(|(verb, _)| verbs.contains(verb))
}

/// Whether a plan means its reads to find their keys: it reads records, and nothing in it takes records away, lets them expire or asks for
/// keys that are no records. Of commands of the user, traces, recordings and windows it is not known.
pub fn means_hits(plan: &Plan) -> bool {
    let keeps = |mix: &Mix| {
        let is_plain = mix.churn.is_none() && mix.read_through_ns.is_none() && !mix.inserts;
        let takes_away = |verb: Verb| verb == Verb::Delete || verb.is_command();
        is_plain && !mix.reads_unstored() && mix.meta.is_nothing() && !mix.any_op(takes_away)
    };
    let is_kept = |phase: &Phase| match &phase.work {
        Work::Mix(mix) => keeps(mix) && plan.changes.parts.iter().all(|part| keeps(&part.mix(mix))),
        Work::Load(_) | Work::Pause(_) | Work::Audit(_) => true,
        Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => false,
    };
    let reads = |(number, mix): (usize, &Mix)| plan.phases[number].recorded && mix.any_op(Verb::reads);
    plan.mixes().any(reads)
        && plan.phases.iter().all(is_kept)
        && plan.data.expiry_s.support() == (0.0, 0.0)
        && plan.sequence().is_none()
        && !plan.changes.events.iter().any(makes_misses)
        && !plan.adaptive.first_eviction
}

/// Whether an event takes records away, or makes a key popular under which nothing is stored.
fn makes_misses(event: &Event) -> bool {
    match &event.what {
        EventKind::Hot(crowd) => crowd.key == HotKey::New,
        EventKind::Delete(_) | EventKind::Expire(_) => true,
    }
}

/// Whether every miss of a run is one of a record that the run had loaded, and that nothing it did took away. What servers evicted or
/// let expire is another matter.
pub fn are_unexpected(plan: &Plan, measurement: &Measurement) -> bool {
    let is_whole = |load: &LoadResult| load.stored == load.records && load.records > 0;
    measurement.load.as_ref().is_some_and(is_whole) && keeps_records(plan)
}

/// The key of the first record that a load with the usual settings stores.
pub fn usual_key() -> String {
    first_key(&Data::default()).unwrap_or_default()
}

fn first_key(data: &Data) -> Option<String> {
    let mut buffer = [0; KEY_MAX_BYTES];
    let key = KeyMaker::of_spaces(data, &[Space::Plain]).ok()?.key(0, &mut buffer).to_vec();
    String::from_utf8(key).ok()
}

/// Whether a run of this plan may miss because its servers hold records with the keys of the usual settings, and not with those of
/// the plan: it reads, stores nothing before, and has other keys.
pub fn may_have_other_keys(plan: &Plan) -> bool {
    let reads = |phase: &Phase| match &phase.work {
        Work::Mix(mix) => mix.ops.iter().any(|(verb, _)| verb.reads()),
        _ => false,
    };
    begins_without_load(plan)
        && plan.phases.iter().any(reads)
        && first_key(&plan.data).is_some_and(|key| key != usual_key())
}

/// Keys that were not in the servers when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeverThere {
    /// Size of the keys in bytes.
    pub key_size: Dist,
    /// Prefix of the keys; empty where they have none.
    pub key_prefix: String,
    /// Whether a server had the first record of the usual settings.
    pub holds_usual: bool,
}

impl NeverThere {
    /// The keys of a plan. `holds_usual`: a server had the first record of the usual settings.
    pub fn of(plan: &Plan, holds_usual: bool) -> NeverThere {
        let Data { key_size, key_prefix, .. } = &plan.data;
        NeverThere { key_size: key_size.clone(), key_prefix: key_prefix.clone(), holds_usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Load, Stop};

    /// A run that measures these operations, and stores nothing before.
    fn unloaded(ops: &[(Verb, f64)]) -> Plan {
        let work = Work::Mix(Mix::of(ops));
        let phase = Phase { name: String::new(), work, stop: Stop::default(), recorded: true };
        Plan { phases: vec![phase], ..Plan::default() }
    }

    #[test]
    fn a_plan_that_stores_before_or_takes_away_has_other_causes_of_misses() {
        let reading = unloaded(&[(Verb::Get, 0.9), (Verb::Set, 0.1)]);
        assert!(begins_without_load(&reading));
        for verb in [Verb::Delete, Verb::Command, Verb::Command2] {
            assert!(!begins_without_load(&unloaded(&[(Verb::Get, 0.9), (verb, 0.1)])));
        }
        let mut expiring = reading.clone();
        expiring.data.expiry_s = Dist::Fixed(10.0);
        assert!(!begins_without_load(&expiring));
        let mut loaded = reading;
        let work = Work::Load(Load::default());
        loaded.phases.insert(0, Phase { work, recorded: false, ..loaded.phases[0].clone() });
        assert!(!begins_without_load(&loaded));
    }

    #[test]
    fn a_plan_means_hits_where_nothing_in_it_makes_misses() {
        let mix = |change: fn(&mut Mix)| {
            let mut mix = Mix::of(&[(Verb::Get, 0.9), (Verb::Set, 0.1)]);
            change(&mut mix);
            let plan = unloaded(&[]);
            let phases = vec![Phase { work: Work::Mix(mix), ..plan.phases[0].clone() }];
            Plan { phases, ..plan }
        };
        let plain = mix(|_| {});
        assert!(means_hits(&plain), "whether it loads or not");
        for change in [
            (|mix| mix.absent = 0.1) as fn(&mut Mix),
            |mix| mix.fresh = 0.1,
            |mix| mix.read_through_ns = Some(0),
            |mix| mix.inserts = true,
            |mix| mix.ops.push((Verb::Delete, 0.1)),
            |mix| mix.ops.push((Verb::Command3, 0.1)),
            |mix| mix.ops.retain(|(verb, _)| *verb == Verb::Set),
        ] {
            assert!(!means_hits(&mix(change)));
        }
        let mut expiring = plain.clone();
        expiring.data.expiry_s = Dist::Fixed(10.0);
        let mut evicting = plain;
        evicting.adaptive.first_eviction = true;
        assert!(!means_hits(&expiring) && !means_hits(&evicting));
    }

    #[test]
    fn the_usual_key_is_looked_for_where_the_plan_reads_others() {
        let mut plan = unloaded(&[(Verb::Get, 1.0)]);
        assert!(!may_have_other_keys(&plan), "its own keys are the usual ones");
        plan.data.value_size = Dist::Fixed(7.0);
        assert!(!may_have_other_keys(&plan), "values of another size have the same keys");
        plan.data.key_prefix = "z:".to_owned();
        assert!(may_have_other_keys(&plan));
        plan.data = Data { key_size: Dist::Fixed(21.0), ..Data::default() };
        assert!(may_have_other_keys(&plan));
        assert!(!may_have_other_keys(&Plan { data: plan.data, ..unloaded(&[(Verb::Set, 1.0)]) }));
        assert_eq!(usual_key(), "0".repeat(30));
    }

    #[test]
    fn a_server_that_lost_records_or_does_not_tell_is_none_that_kept_them() {
        let kept = ServerCounts { evictions: Some(0), expired: Some(0), ..ServerCounts::default() };
        assert!(lost_nothing(&kept, None, &[]));
        assert!(lost_nothing(&kept, None, &["snapshot".to_owned()]));
        assert!(!lost_nothing(&kept, None, &[format!("{FLUSHED} 1 times (flush_all)")]));
        let asked = ServerCounts { requests: Some(100), ..kept };
        assert!(lost_nothing(&asked, Some(100), &[]) && !lost_nothing(&asked, Some(90), &[]));
        assert!(!lost_nothing(&ServerCounts { evictions: Some(1), ..kept }, None, &[]));
        assert!(!lost_nothing(&ServerCounts { expired: Some(1), ..kept }, None, &[]));
        assert!(!lost_nothing(&ServerCounts { evictions: None, ..kept }, None, &[]));
    }
}
