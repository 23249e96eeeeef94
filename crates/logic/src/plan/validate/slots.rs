//! Checks that keys can have the hash tags of a Plan, and lie in its slots.

use super::field::Field;
use super::invalid::{Invalid, refuse_if, within};
use super::records::has_keys_beyond_the_load;
use crate::client::route::crc16::SLOTS;
use crate::plan::{Data, EventKind, KeyStyle, Mix, Plan, Work};
use crate::workload::key::Space;
use crate::workload::mix::space_of;
use crate::workload::slot_records::numbers_of_space;

/// Most records that share a hash tag.
const KEY_TAG_MAX: u64 = 1_000_000;

/// Refuses tags and slots that are none, and those that no records are found for.
pub fn data(data: &Data) -> Result<(), Invalid> {
    if let Some(together) = data.key_tag {
        within(Field::KeyTag, together, 1, KEY_TAG_MAX)?;
    }
    let mut is_named = vec![false; SLOTS];
    for (index, range) in data.slots.iter().enumerate() {
        let path = Field::SlotRange.of(index);
        let expected = "expected the first and the last of slots from 0 to 16383, such as 0-5460";
        refuse_if(range.first > range.last || usize::from(range.last) >= SLOTS, path, range, expected)?;
        let named = &mut is_named[range.first.into()..=range.last.into()];
        refuse_if(named.contains(&true), path, range, "each slot is accepted once")?;
        named.fill(true);
    }
    let expected =
        "expected fewer records in more slots: to find those whose keys lie in so few slots takes too long";
    let is_found = data.slots.is_empty() || numbers_of_space(data).is_some();
    refuse_if(!is_found, Field::Records, data.records, expected)
}

/// Refuses tags and slots of keys that do not have the usual form, slots where none are asked for, and requests whose keys cannot have
/// them.
pub fn fit(plan: &Plan) -> Result<(), Invalid> {
    let slots: Vec<String> = plan.data.slots.iter().map(ToString::to_string).collect();
    let slots = (!slots.is_empty()).then(|| slots.join(","));
    if let Some(together) = plan.data.key_tag {
        made_here(plan, Field::KeyTag, &together.to_string())?;
    }
    let deals_slots = plan.route.deals_slots();
    if let Some(slots) = &slots {
        let path = Field::Slots;
        refuse_if(!deals_slots, path, slots, "it is accepted only with --cluster and with --route crc16")?;
        made_here(plan, path, slots)?;
        let expected = "expected records alone with it: the slots of keys that no load stores (fresh, absent, inserted and new \
                        hot ones), and of those that records get later, cannot be chosen";
        refuse_if(has_keys_beyond_the_load(plan), path, slots, expected)?;
    }
    match plan.data.key_tag.filter(|_| deals_slots) {
        Some(together) => plan.mixes().try_for_each(|(_, mix)| requests_fit(plan, mix, together)),
        None => Ok(()),
    }
}

/// Refuses an option of keys where keys are not made of records, or where their prefix or their style decides on their slots.
fn made_here(plan: &Plan, path: Field, value: &str) -> Result<(), Invalid> {
    let is_own = |work: &Work| matches!(work, Work::Trace(_) | Work::Replay(_) | Work::Window(_));
    let has_others = plan.phases.iter().any(|phase| is_own(&phase.work)) || plan.sequence().is_some();
    let expected = "expected keys that are made from the numbers of records, and not those of a trace, a recording, a sequence or a \
                    window";
    refuse_if(has_others, path, value, expected)?;
    let style = &plan.data.style;
    let expected = "expected keys in the usual style, which are no fields of hashes";
    refuse_if(style.keys != KeyStyle::Drawn || style.field_bytes.is_some(), path, value, expected)?;
    let expected = format!(
        "expected a prefix without '{{' (--key-prefix) with it, and not '{}': a brace begins the part of a key that decides on its slot",
        plan.data.key_prefix
    );
    refuse_if(plan.data.key_prefix.contains('{'), path, value, expected)
}

/// Refuses requests of several keys whose keys have not one tag in common.
fn requests_fit(plan: &Plan, mix: &Mix, together: u64) -> Result<(), Invalid> {
    let refuse_if = |is_wrong: bool, expected: &str| refuse_if(is_wrong, Field::KeyTag, together, expected);
    let most = u64::from(mix.multiget.max(mix.multiset));
    let expected = format!(
        "expected at least {most}, as many as a request has keys (--multiget, --multiset): all of them have one tag"
    );
    refuse_if(together < most, &expected)?;
    if most == 1 {
        return Ok(());
    }
    refuse_if(
        mix.scans,
        "expected requests that scan nothing with it: the records of a scan have several tags",
    )?;
    let changes = (0..plan.phases.len()).any(|number| plan.churns(number));
    refuse_if(
        changes,
        "expected records that keep their keys (no --churn) where requests have several: new keys have other tags",
    )?;
    let is_hot = |what: &EventKind| matches!(what, EventKind::Hot(_));
    refuse_if(
        plan.changes.events.iter().any(|event| is_hot(&event.what)),
        "expected no hot keys where requests have several keys: each of them may be one, with a tag of its own",
    )?;
    let reads_unstored = mix.multiget > 1 && mix.reads_unstored();
    refuse_if(
        reads_unstored,
        "expected no fresh and no absent keys where reads have several keys: they have other tags than records",
    )?;
    let is_special = |mix: &Mix| mix.any_op(|verb| matches!(space_of(verb), Space::Pieces | Space::Counters));
    let is_any_special = is_special(mix) || plan.changes.parts.iter().any(|part| is_special(&part.mix(mix)));
    refuse_if(
        mix.multiget > 1 && is_any_special,
        "expected no append, prepend, incr and decr where reads have several keys: their records have other tags",
    )
}
