//! Checks that what a run wrote can be read back after it.

use super::field::Field;
use super::invalid::{Invalid, refuse, refuse_if};
use super::records::has_keys_beyond_the_load;
use crate::plan::{EventKind, Load, Mix, Plan, Transport, Work, memory};
use crate::protocol::Verb;
use crate::workload::value::HEADER_BYTES;

/// Most memory of the acknowledged writes that all workers keep, in bytes.
const LEDGER_MAX_BYTES: u64 = 4 << 30;

/// Operations that store whole values, or change none.
const AUDITED_VERBS: [Verb; 11] = [
    Verb::Get,
    Verb::Gets,
    Verb::Gat,
    Verb::Gats,
    Verb::Set,
    Verb::Add,
    Verb::Replace,
    Verb::Cas,
    Verb::Touch,
    Verb::Version,
    Verb::Mset,
];

/// Refuses an audit whose records may be gone or have other values for other reasons than a loss.
pub fn audit_fits(plan: &Plan) -> Result<(), Invalid> {
    let Some(index) = plan.phases.iter().position(|phase| matches!(phase.work, Work::Audit(_))) else {
        return Ok(());
    };
    let path = Field::Audit.of(index);
    let is_last = index + 1 == plan.phases.len() && !plan.phases[index].recorded;
    refuse_if(!is_last, path, "", "expected it as the last phase, and not measured")?;
    refuse_if(plan.phases[index].stop.requests.is_some(), path, "", "expected no number of requests for it")?;
    let expected = "expected checks of values (--verify): they write which write each value is of";
    refuse_if(plan.verify <= 0.0, path, "", expected)?;
    let is_one_store = plan.servers.len() == 1 || plan.route.owns_keys();
    let expected =
        "expected one server, or a route by which each key lives on one server: the others hold copies";
    refuse_if(!is_one_store, path, "", expected)?;
    let expected = "expected TCP or unix sockets: datagrams overtake each other";
    refuse_if(plan.transport == Transport::Udp, path, "", expected)?;
    let stay = plan.groups.iter().all(|group| group.churn.is_none());
    refuse_if(!stay, path, "", "expected clients that stay")?;
    let expected = "expected records that do not expire (--ttl 0)";
    refuse_if(plan.data.expiry_s.support() != (0.0, 0.0), path, "", expected)?;
    let least = plan.data.value_sizes().map(|sizes| sizes.support().0).fold(f64::INFINITY, f64::min);
    let expected = format!(
        "expected values of {HEADER_BYTES} bytes or more: shorter ones do not say which write they are of"
    );
    refuse_if(least < HEADER_BYTES as f64, path, "", expected)?;
    let expected =
        "expected no records that are inserted, churn, or are stored under other keys than those of the load";
    let stores_others = plan.mixes().any(|(_, mix)| mix.fresh > 0.0 && mix.read_through_ns.is_some());
    let changes_keys = (0..plan.phases.len()).any(|number| plan.churns(number));
    let inserts = plan.mixes().any(|(_, mix)| mix.inserts);
    let is_beyond = has_keys_beyond_the_load(plan) && (inserts || changes_keys || stores_others);
    refuse_if(is_beyond, path, "", expected)?;
    let takes_away = |kind: &EventKind| !matches!(kind, EventKind::Hot(_));
    let expected = "expected no events that delete records, let them expire or make new keys hot";
    let has_events = plan.changes.events.iter().any(|event| takes_away(&event.what));
    refuse_if(has_events, path, "", expected)?;
    let bytes = memory::ledger_bytes(plan);
    let expected = format!(
        "expected fewer records or threads: the newest writes of all records would take {:.1} GB in all threads, \
         and at most {:.1} GB are accepted",
        bytes as f64 / 1e9,
        LEDGER_MAX_BYTES as f64 / 1e9
    );
    refuse_if(bytes > LEDGER_MAX_BYTES, path, "", expected)?;
    plan.phases.iter().try_for_each(|phase| match &phase.work {
        Work::Load(load) => load_fits(index, load),
        Work::Mix(mix) => {
            mix_fits(index, mix)?;
            plan.changes.parts.iter().try_for_each(|part| mix_fits(index, &part.mix(mix)))
        }
        Work::Pause(_) | Work::Audit(_) => Ok(()),
        Work::Window(_) | Work::Replay(_) | Work::Trace(_) | Work::Delete(_) => {
            refuse(path, "", "expected requests that are drawn from a mix")
        }
    })
}

fn load_fits(index: usize, load: &Load) -> Result<(), Invalid> {
    let is_plain = !load.no_plain && !load.pieces && !load.counters && !load.hashes && !load.commands;
    let expected = "expected records with plain values: no counters, pieces, hashes and commands";
    refuse_if(!is_plain, Field::Audit.of(index), "", expected)
}

fn mix_fits(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let path = Field::Audit.of(index);
    if let Some((verb, _)) = mix.ops.iter().find(|(verb, _)| !AUDITED_VERBS.contains(verb)) {
        let names: Vec<&str> = AUDITED_VERBS.iter().map(|verb| verb.name()).collect();
        return refuse(path, verb.name(), format!("expected operations of these: {}", names.join(", ")));
    }
    let expected = "expected writes that are answered, and no --noreply: only answers acknowledge them";
    refuse_if(mix.noreply, path, "", expected)?;
    let expected = "expected no --vivify, --recache and --stale, which store and hide values";
    refuse_if(mix.meta.renews() || mix.meta.stale_s.is_some(), path, "", expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;
    use crate::plan::{Audit, Group, KeyChurn, Phase, Route, Stop};
    use crate::time::SECOND;

    /// A plan that loads, sets and gets for a second, and reads back.
    fn plan() -> Plan {
        let phase = |name: &str, work, time_ns, recorded| Phase {
            name: name.to_owned(),
            work,
            stop: Stop { time_ns, requests: None },
            recorded,
        };
        let mix = Mix::of(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![Group::default()],
            verify: 1.0,
            phases: vec![
                phase("load", Work::Load(Load { depth: 64, ..Load::default() }), None, false),
                phase("measure", Work::Mix(mix), Some(SECOND), true),
                phase("audit", Work::Audit(Audit { depth: 8 }), Some(SECOND), false),
            ],
            ..Plan::default()
        }
    }

    fn mix_of(plan: &mut Plan) -> &mut Mix {
        match &mut plan.phases[1].work {
            Work::Mix(mix) => mix,
            _ => unreachable!("it is the mix"),
        }
    }

    #[test]
    fn an_audit_is_accepted_where_nothing_but_a_loss_takes_a_value_away() {
        assert!(plan().validate().is_ok());
        type Change = fn(&mut Plan);
        let rows: [(&str, Change); 14] = [
            ("--verify", |plan| plan.verify = 0.0),
            ("last phase", |plan| plan.phases.swap(1, 2)),
            ("one server", |plan| {
                plan.servers.push("127.0.0.1:11212".to_owned());
                plan.groups[0].clients = 2;
            }),
            ("--ttl", |plan| plan.data.expiry_s = Dist::Fixed(9.0)),
            ("24 bytes", |plan| plan.data.value_size = Dist::Fixed(23.0)),
            ("fewer records", |plan| plan.data.records = 1 << 30),
            ("of these", |plan| mix_of(plan).ops.push((Verb::Delete, 1.0))),
            ("answered", |plan| mix_of(plan).noreply = true),
            ("number of requests", |plan| plan.phases[2].stop.requests = Some(1)),
            ("not measured", |plan| plan.phases[2].recorded = true),
            ("are inserted", |plan| {
                mix_of(plan).ops.push((Verb::Add, 1.0));
                mix_of(plan).inserts = true;
            }),
            ("are inserted", |plan| {
                mix_of(plan).fresh = 0.1;
                mix_of(plan).read_through_ns = Some(0);
            }),
            ("are inserted", |plan| mix_of(plan).churn = "requests:100000".parse::<KeyChurn>().ok()),
            ("plain values", |plan| {
                plan.phases[0].work = Work::Load(Load { depth: 1, counters: true, ..Load::default() });
            }),
        ];
        for (words, change) in rows {
            let mut plan = plan();
            change(&mut plan);
            let refused = plan.validate().map(|_| ()).expect_err(words);
            assert_eq!(refused.path.name(), "phases.work.audit", "{words}: {refused}");
            assert!(refused.expected.contains(words), "{words}: {refused}");
        }
        let mut dealt = plan();
        dealt.servers.push("127.0.0.1:11212".to_owned());
        dealt.route = Route::Ketama;
        dealt.groups[0].clients = 2;
        assert!(dealt.validate().is_ok());
    }
}
