//! Checks that requests can be drawn from the mixes, and that the protocol can say each of them.

use super::commands;
use super::field::Field;
use super::invalid::{HOUR, Invalid, refuse, refuse_if, span, within};
use super::records::{EXPIRY_MAX_S, has_keys_beyond_the_load, longest_key};
use crate::dist::Dist;
use crate::plan::{Fill, Mix, POPULARITIES, Plan, Popularity, Protocol, ServerFamily, Work};
use crate::protocol::Verb;
use crate::time::typed_time;
use crate::workload::key::{DIGITS, KEY_MAX_BYTES, tag_bytes};

/// Most keys of one read, and of one mset.
const MULTIGET_MAX: u64 = 1_000;

/// Most requests of one operation in a round of turns.
const TURN_MAX: f64 = 1e6;

/// Most turns of operations in a round.
const TURNS_MAX: usize = 4_096;

/// Operations that work on records that are fields of hashes.
const FIELD_VERBS: [Verb; 5] = [Verb::Get, Verb::Hget, Verb::Set, Verb::Hset, Verb::Delete];

/// Longest line of a gat in the text protocol: memcached may close a connection that sends more without a line end.
const GAT_LINE_MAX: u64 = 2048;

/// Bytes of a gat's line beside its keys and the blanks before them: the word, the longest expiry, the line end.
const GAT_LINE_FRAME: u64 = "gats -2147483648\r\n".len() as u64;

/// Refuses a mix that no request can be drawn from, and options that have no effect on it.
pub fn mix(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let path = Field::Operations.of(index);
    refuse_if(mix.ops.is_empty(), path, "", "expected at least one operation")?;
    if mix.in_turns {
        let (turns, expected) = (mix.ops.len(), format!("expected at most {TURNS_MAX} turns of operations"));
        refuse_if(turns > TURNS_MAX, path, turns, expected)?;
    }
    for (place, &(verb, weight)) in mix.ops.iter().enumerate() {
        let (is_weight, value) = (weight > 0.0 && weight.is_finite(), format!("{}:{weight}", verb.name()));
        refuse_if(!is_weight, path, value, "expected finite weights above 0")?;
        let expected = "each operation is accepted once, unless operations take turns";
        let is_twice = !mix.in_turns && mix.ops[..place].iter().any(|&(other, _)| other == verb);
        refuse_if(is_twice, path, verb.name(), expected)?;
    }
    let is_whole = |weight: f64| weight.fract() == 0.0 && weight <= TURN_MAX;
    let odd = mix.ops.iter().find(|(_, weight)| mix.in_turns && !is_whole(*weight));
    if let Some((verb, weight)) = odd {
        let expected = "expected whole weights up to 1000000 where the operations take turns";
        return refuse(path, format!("{}:{weight}", verb.name()), expected);
    }
    let total: f64 = mix.ops.iter().map(|&(_, weight)| weight).sum();
    refuse_if(!total.is_finite(), path, total, "expected finite weights above 0")?;
    let is_unknown = mix.popularity.to_string().parse::<Popularity>().is_err();
    let expected = format!("expected {POPULARITIES}");
    refuse_if(is_unknown, Field::Popularity.of(index), &mix.popularity, expected)?;
    popularity_of(index, mix)?;
    extras(index, mix)
}

/// Refuses popularities of operations that the mix does not have, or that follow the newest records.
fn popularity_of(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let path = Field::PopularityOf.of(index);
    for (place, (verb, popularity)) in mix.popularity_of.iter().enumerate() {
        let value = || format!("{}:{popularity}", verb.name());
        let expected = "expected an operation of the mix";
        refuse_if(!mix.any_op(|own| own == *verb), path, value(), expected)?;
        let is_twice = mix.popularity_of[..place].iter().any(|(other, _)| other == verb);
        refuse_if(is_twice, path, value(), "each operation is accepted once")?;
        let expected = format!("expected {POPULARITIES}");
        refuse_if(popularity.to_string().parse::<Popularity>().is_err(), path, value(), expected)?;
        let is_latest =
            [popularity, &mix.popularity].into_iter().any(|of| matches!(of, Popularity::Latest { .. }));
        let expected =
            "latest is accepted for all operations together: what one of them stores, the others ask for";
        refuse_if(is_latest, path, value(), expected)?;
    }
    Ok(())
}

/// Refuses keys that are each asked for once where all clients draw the same ones.
pub fn same_draws_fit(plan: &Plan) -> Result<(), Invalid> {
    let Some(group) = plan.groups.iter().position(|group| group.policy.same_draws) else { return Ok(()) };
    let draws_fresh = plan.mixes().any(|(_, mix)| mix.fresh > 0.0);
    let expected = "expected no fresh keys with it: all clients would ask for the same ones";
    refuse_if(draws_fresh, Field::SameDraws.of(group), true, expected)
}

/// Refuses popularities about a record that does not exist.
pub fn popularities_fit(plan: &Plan) -> Result<(), Invalid> {
    let records = plan.data.records as f64;
    let is_outside = |of: &Popularity| matches!(of, Popularity::Normal { median, .. } if *median > records);
    let expected = format!("expected a median within the records, 0 to {records}");
    for (index, mix) in plan.mixes() {
        refuse_if(
            is_outside(&mix.popularity),
            Field::Popularity.of(index),
            &mix.popularity,
            expected.as_str(),
        )?;
        for (verb, popularity) in &mix.popularity_of {
            let value = format!("{}:{popularity}", verb.name());
            refuse_if(is_outside(popularity), Field::PopularityOf.of(index), value, expected.as_str())?;
        }
    }
    let mut of_parts = plan.changes.parts.iter().filter_map(|part| part.popularity.as_ref());
    match of_parts.find(|popularity| is_outside(popularity)) {
        Some(popularity) => refuse(Field::Parts, popularity, expected),
        None => Ok(()),
    }
}

fn extras(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let asks = |which: fn(Verb) -> bool| mix.any_op(which);
    let no_read = "is accepted only with a read (get, gets, gat, gats) in --mix";
    let (multiget, multiset) = (Field::MultiGet.of(index), Field::MultiSet.of(index));
    within(multiget, mix.multiget.into(), 1, MULTIGET_MAX)?;
    let expected = format!("more than 1 {no_read}");
    refuse_if(mix.multiget > 1 && !asks(Verb::reads), multiget, mix.multiget, expected)?;
    within(multiset, mix.multiset.into(), 1, MULTIGET_MAX)?;
    let expected = "more than 1 is accepted only with mset in --mix";
    refuse_if(mix.multiset > 1 && !asks(|verb| verb == Verb::Mset), multiset, mix.multiset, expected)?;
    unstored(index, mix)?;
    dependent(index, mix)?;
    if let Some(delay_ns) = mix.read_through_ns {
        let path = Field::ReadThrough.of(index);
        refuse_if(!asks(Verb::reads), path, typed_time(delay_ns), format!("it {no_read}"))?;
        span(path, delay_ns, (0, "0"), (HOUR, "1h"))?;
    }
    fill(index, mix)?;
    let writes = asks(|verb| !verb.reads() && verb != Verb::Version);
    let expected = "it is accepted only with a write in --mix";
    refuse_if(mix.noreply && !writes, Field::Noreply.of(index), true, expected)
}

/// Refuses dependent requests in a mix without the operations that they need, or with replies that could not be
/// distinguished.
fn dependent(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let asks = |wanted| mix.any_op(|verb| verb == wanted);
    let path = Field::ReadModifyWrite.of(index);
    let share = mix.read_modify_write;
    refuse_if(!(0.0..=1.0).contains(&share), path, share, "expected shares from 0 to 1")?;
    refuse_if(share > 0.0 && !asks(Verb::Get), path, share, "it is accepted only with get in --mix")?;
    let expected =
        "expected 0 with reads of several keys (--multiget), --noreply, --vivify, --recache and --stale";
    refuse_if(share > 0.0 && (mix.multiget > 1 || mix.meta.renews() || mix.noreply), path, share, expected)?;
    let expected = "it is accepted only with add in --mix";
    refuse_if(mix.inserts && !asks(Verb::Add), Field::Inserts.of(index), true, expected)?;
    let expected = "expected scans of up to 2 records or more, as many as reads have keys";
    refuse_if(mix.scans && mix.multiget < 2, Field::Scans.of(index), true, expected)?;
    let latest = matches!(mix.popularity, Popularity::Latest { .. });
    let several = latest && (mix.multiget > 1 || mix.multiset > 1);
    let expected =
        "latest is accepted where each request has one key: the newest records change with every add";
    refuse_if(several, Field::Popularity.of(index), &mix.popularity, expected)
}

/// Refuses ways to store missed keys in a mix that stores none, and invalid delays.
fn fill(index: usize, mix: &Mix) -> Result<(), Invalid> {
    let needs = "it is accepted only where missed keys are stored (--read-through)";
    refuse_if(mix.fill == Fill::Add && mix.read_through_ns.is_none(), Field::Fill.of(index), "add", needs)?;
    let adds_fields = mix.fill == Fill::Add && !mix.any_op(|verb| verb.reads() && verb != Verb::Hget);
    let plain = "expected add with a read of plain values (get, gets, gat, gats) in --mix";
    refuse_if(adds_fields, Field::Fill.of(index), "add", plain)?;
    let Some(delay) = &mix.fill_delay_s else { return Ok(()) };
    let path = Field::FillDelay.of(index);
    refuse_if(mix.read_through_ns.is_none(), path, delay, needs)?;
    refuse_if(!is_delay(delay), path, delay, "expected delays of 0 or more with a mean of at most an hour")
}

/// Whether a distribution of seconds has delays that a missed key can be stored after.
pub(super) fn is_delay(delay: &Dist) -> bool {
    delay.clone().checked().is_ok()
        && delay.support().0 >= 0.0
        && delay.mean().is_finite()
        && delay.mean() <= crate::time::seconds(HOUR)
}

/// Refuses shares of keys that are no records where there can be none.
fn unstored(index: usize, mix: &Mix) -> Result<(), Invalid> {
    for (field, share) in [(Field::Fresh, mix.fresh), (Field::Absent, mix.absent)] {
        let path = field.of(index);
        refuse_if(!(0.0..=1.0).contains(&share), path, share, "expected shares from 0 to 1")?;
        let reads = mix.any_op(|verb| verb.reads() && verb != Verb::Hget);
        let expected = "it is accepted only with a read (get, gets, gat, gats) in --mix";
        refuse_if(share > 0.0 && !reads, path, share, expected)?;
        let expected = "expected shares that sum to at most 1: fresh and absent keys are different keys";
        refuse_if(share > 0.0 && mix.fresh + mix.absent > 1.0, path, share, expected)?;
        let expected = "it is not accepted with --vivify, which makes every key that is asked for";
        refuse_if(share > 0.0 && mix.meta.vivify_s.is_some(), path, share, expected)?;
    }
    Ok(())
}

/// Refuses prefixes that leave no room for keys beyond those that a load stores.
pub fn unstored_keys_fit(plan: &Plan) -> Result<(), Invalid> {
    let (prefix, most) = (&plan.data.key_prefix, KEY_MAX_BYTES - DIGITS - tag_bytes(&plan.data).1);
    if prefix.len() <= most || !has_keys_beyond_the_load(plan) {
        return Ok(());
    }
    let expected = format!(
        "expected at most {most} bytes where requests ask for keys that no load stores (fresh, absent, inserted and new \
         hot ones), and where keys change"
    );
    refuse(Field::KeyPrefix, prefix, expected)
}

/// Refuses operations that the protocol does not have. A command that does not fit is refused by the check of its own
/// option.
pub fn verbs_fit(plan: &Plan) -> Result<(), Invalid> {
    let says_itself = |verb: Verb| verb.command().is_some_and(|place| place < plan.commands.len());
    let row = plan.protocol.row();
    let unfit = |verb: Verb| !row.verbs.contains(&verb);
    let mut verbs = plan.mixes().flat_map(|(index, mix)| mix.ops.iter().map(move |&(verb, _)| (index, verb)));
    let Some((index, verb)) = verbs.find(|&(_, verb)| !says_itself(verb) && unfit(verb)) else {
        return fields_fit(plan);
    };
    let name = verb.name();
    let expected = match row.family {
        ServerFamily::Resp => format!("RESP servers have no {name}; {}", names(row.verbs)),
        ServerFamily::Memcached => {
            format!("expected operations of memcached; {name} is one of RESP servers (Redis, Valkey)")
        }
        ServerFamily::Other => {
            format!("--protocol {} has no {name}; {}", plan.protocol.name(), names(row.verbs))
        }
    };
    refuse(Field::Operations.of(index), name, expected)
}

/// Refuses operations, stores of missed keys and traces that do not work on fields of hashes, where records are such fields.
fn fields_fit(plan: &Plan) -> Result<(), Invalid> {
    if !has_fields(plan) {
        return Ok(());
    }
    let mut verbs = plan.mixes().flat_map(|(index, mix)| mix.ops.iter().map(move |&(verb, _)| (index, verb)));
    if let Some((index, verb)) = verbs.find(|(_, verb)| !FIELD_VERBS.contains(verb)) {
        let expected = format!("where records are fields of hashes, {}", names(&FIELD_VERBS));
        return refuse(Field::Operations.of(index), verb.name(), expected);
    }
    if let Some((index, _)) = plan.mixes().find(|(_, mix)| mix.fill == Fill::Add) {
        let expected = "expected set where records are fields of hashes: a field is stored whatever is there";
        return refuse(Field::Fill.of(index), "add", expected);
    }
    let expires = plan.data.expiry_s.support() != (0.0, 0.0);
    let expected = "expected 0 where values are stored in fields of hashes, which do not expire";
    refuse_if(expires && stores_fields(plan), Field::Expiry, &plan.data.expiry_s, expected)?;
    match plan.phases.iter().position(|phase| matches!(phase.work, Work::Trace(_))) {
        Some(index) => {
            let expected = "expected no trace where records are fields of hashes: its rows may ask for operations that \
                            fields do not have";
            refuse(Field::Trace.of(index), "trace", expected)
        }
        None => Ok(()),
    }
}

/// Whether a plan stores values in fields of hashes. A key that is no longer than a field and one byte is no hash.
fn stores_fields(plan: &Plan) -> bool {
    let field_bytes = plan.data.style.field_bytes.map_or(0, u64::from);
    let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
    let stores = |mix: &Mix| mix.any_op(Verb::stores) || mix.has_pairs() || mix.read_through_ns.is_some();
    longest_key(plan) > field_bytes + 1 && (loads || plan.mixes().any(|(_, mix)| stores(mix)))
}

/// Whether records are fields of hashes.
fn has_fields(plan: &Plan) -> bool {
    plan.data.style.field_bytes.is_some_and(|bytes| bytes > 0)
}

fn names(verbs: &[Verb]) -> String {
    let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
    format!("expected {}", names.join(", "))
}

/// Refuses operations in a form that the protocol does not have, which its codec would refuse in the middle of a run.
pub fn forms_fit(plan: &Plan) -> Result<(), Invalid> {
    plan.mixes().try_for_each(|(index, mix)| form_fits(plan, index, mix))
}

fn form_fits(plan: &Plan, index: usize, mix: &Mix) -> Result<(), Invalid> {
    let (noreply, multiget) = (Field::Noreply.of(index), Field::MultiGet.of(index));
    let has = |wanted| mix.any_op(|verb| verb == wanted);
    let gats = mix.multiget > 1 && (has(Verb::Gat) || has(Verb::Gats));
    match plan.protocol {
        Protocol::Resp2 | Protocol::Resp3 if mix.noreply => {
            refuse(noreply, true, "RESP answers every request")
        }
        Protocol::Resp2 | Protocol::Resp3 if gats => {
            let expected = "expected 1 where the mix has gat: RESP's GETEX takes one key";
            refuse(multiget, mix.multiget, expected)
        }
        Protocol::Resp2 | Protocol::Resp3 if mix.multiget > 1 && has_fields(plan) => {
            let expected = "expected 1 where records are fields of hashes: MGET finds no fields";
            refuse(multiget, mix.multiget, expected)
        }
        Protocol::Resp2 | Protocol::Resp3 if mix.multiget > 1 && !has(Verb::Get) => {
            let expected = "expected 1 where the mix has no get: HGET takes one key";
            refuse(multiget, mix.multiget, expected)
        }
        Protocol::Binary if mix.noreply && has(Verb::Touch) => {
            let expected = "expected a mix without touch, which has no quiet form in the binary protocol";
            refuse(noreply, true, expected)
        }
        Protocol::Text if gats => {
            let most = (GAT_LINE_MAX - GAT_LINE_FRAME) / (1 + longest_key(plan));
            if u64::from(mix.multiget) <= most {
                return Ok(());
            }
            let expected = format!(
                "expected at most {most} where the mix has gat or gats and keys are this long: memcached takes \
                 such a line only up to {GAT_LINE_MAX} bytes"
            );
            refuse(multiget, mix.multiget, expected)
        }
        _ => Ok(()),
    }
}

/// Refuses options of memcached's meta protocol beside other protocols, and where they have no effect.
pub fn meta(plan: &Plan) -> Result<(), Invalid> {
    for (index, mix) in plan.mixes().filter(|(_, mix)| !mix.meta.is_nothing()) {
        let ask = &mix.meta;
        let (reads, deletes) = (mix.any_op(Verb::reads), mix.any_op(|verb| verb == Verb::Delete));
        let asked = [
            (Field::Vivify, ask.vivify_s, EXPIRY_MAX_S),
            (Field::Recache, ask.recache_s, u32::MAX.into()),
            (Field::Stale, ask.stale_s, EXPIRY_MAX_S),
            (Field::MetaDetails, ask.details.then_some(1), 1),
        ];
        for (field, value, most) in asked.into_iter().filter_map(|(at, value, most)| Some((at, value?, most)))
        {
            let path = field.of(index);
            let expected = "it is accepted only with --protocol meta";
            refuse_if(plan.protocol != Protocol::Meta, path, value, expected)?;
            within(path, value.into(), 0, most)?;
            let (is_asked, expected) = match field {
                Field::Stale => (deletes, "it is accepted only with delete in --mix"),
                _ => (reads, "it is accepted only with a read (get, gets, gat, gats) in --mix"),
            };
            refuse_if(!is_asked, path, value, expected)?;
            let expected = "expected 1 with --vivify, --recache and --stale: the answer to several keys does not \
                                say which of them the client is to renew";
            refuse_if(mix.multiget > 1 && ask.renews(), Field::MultiGet.of(index), mix.multiget, expected)?;
        }
    }
    Ok(())
}

/// Largest number of a database: a server may have fewer.
const DATABASE_MAX: u64 = i32::MAX as u64;

/// Refuses databases, hashes and commands where no RESP server is asked, and commands that cannot be read.
pub fn resp_fits(plan: &Plan) -> Result<(), Invalid> {
    let database = Field::Database;
    within(database, plan.database.into(), 0, DATABASE_MAX)?;
    let expected = "only RESP servers (Redis, Valkey) have databases: 0 is accepted beside other protocols";
    refuse_if(plan.database != 0 && !plan.protocol.is_resp(), database, plan.database, expected)?;
    let tracking = plan.tracking.filter(|_| plan.protocol != Protocol::Resp3);
    if let Some(tracking) = tracking {
        let expected = "accepted only with --protocol resp3, which has messages that no request asked for";
        return refuse(Field::Tracking, tracking.name(), expected);
    }
    commands::fit(plan)?;
    let loads = |work: &Work| matches!(work, Work::Load(load) if load.hashes || load.commands);
    let loading = plan.phases.iter().position(|phase| loads(&phase.work));
    if let Some(index) = loading.filter(|_| !plan.protocol.is_resp()) {
        let expected = "hget, hset and commands are accepted only with --protocol resp2 or resp3";
        return refuse(Field::Load.of(index), "hashes or commands", expected);
    }
    Ok(())
}
