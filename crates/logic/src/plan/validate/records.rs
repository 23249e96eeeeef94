//! Checks that keys and values of the records can be made: their number, their lengths, their expiry.

use super::field::{Field, FieldPath};
use super::invalid::{Invalid, NUMBER_MAX, refuse, refuse_if, size, within};
use crate::bodies::RATIOS;
use crate::dist::Dist;
use crate::plan::{
    Arrivals, Data, EventKind, FlashCrowd, HotKey, KeyChurn, KeyStyle, LIFE_MIN, Mix, Plan, Popularity,
    VALUE_CLASSES_MAX, ValueStyle, Work,
};
use crate::time::typed_time;
use crate::workload::key::{DIGITS, RENEWED_FROM, digits_of, tag_bytes};
use crate::workload::popularity::RECORDS_MAX;
use crate::workload::unstored::ABSENT_FROM;

/// Longest key: memcached's protocol document.
pub const KEY_SIZE_MAX: u64 = 250;

/// Largest value: the limit that memcached's `-I` itself has. A server may take less.
const VALUE_SIZE_MAX: u64 = 1 << 30;

/// Largest expiry in seconds that memcached takes as a span; beyond it is a date (protocol document, "Expiration times").
pub const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;

/// Refuses records that cannot be made.
pub fn data(data: &Data) -> Result<(), Invalid> {
    within(Field::Records, data.records, 1, RECORDS_MAX)?;
    within(Field::DataSeed, data.seed, 0, NUMBER_MAX)?;
    within(Field::ExpiryJitter, data.style.expiry_jitter_percent.into(), 0, 100)?;
    let (jitter, expires) = (data.style.expiry_jitter_percent, data.expiry_s != Dist::Fixed(0.0));
    let expected = "expected 0 where nothing expires (--ttl)";
    refuse_if(jitter > 0 && !expires, Field::ExpiryJitter, jitter, expected)?;
    let (ratio, (least, most)) = (data.value_compress, (RATIOS.start(), RATIOS.end()));
    let expected = format!("expected a ratio from {least} (bytes that do not compress) to {most}");
    refuse_if(!RATIOS.contains(&ratio), Field::ValueCompress, ratio, expected)?;
    value_filler(data)?;
    first_key(data)?;
    keys(data)?;
    value_classes(data)?;
    value_size(Field::ValueSize, &data.value_size)
}

/// Refuses classes of records that do not follow each other, and lengths that no value can have.
fn value_classes(data: &Data) -> Result<(), Invalid> {
    let path = Field::ValueClasses;
    let expected = format!("expected up to {VALUE_CLASSES_MAX} classes of records");
    refuse_if(data.value_classes.len() > VALUE_CLASSES_MAX, path, data.value_classes.len(), expected)?;
    let mut before = 0.0;
    for class in &data.value_classes {
        let expected = "expected shares of the records that rise, above 0 and below 1";
        refuse_if(!(class.until > before && class.until < 1.0), path, class.until, expected)?;
        before = class.until;
        value_size(path, &class.value_size)?;
    }
    let has_any = !data.value_classes.is_empty();
    let expected = "expected no classes of records where every write draws its own length";
    refuse_if(has_any && data.style.values != ValueStyle::Stable, path, data.value_classes.len(), expected)
}

/// Refuses values of a character that is not one printable byte, and such that are to compress in another way.
fn value_filler(data: &Data) -> Result<(), Invalid> {
    let Some(filler) = data.value_filler else { return Ok(()) };
    let (path, value) = (Field::ValueFiller, filler.escape_debug());
    let is_printable = filler == ' ' || filler.is_ascii_graphic();
    refuse_if(!is_printable, path, value.clone(), "expected one printable character of ASCII")?;
    let expected = "expected a ratio of 1 with it: values of one character compress to nearly nothing";
    refuse_if(data.value_compress != *RATIOS.start(), path, value, expected)
}

/// Refuses a first key where keys are not numbered from one on, and numbers that belong to the keys of later lives.
fn first_key(data: &Data) -> Result<(), Invalid> {
    let (path, first) = (Field::FirstKey, data.first_key);
    let is_numbered = data.style.keys == KeyStyle::Unpadded;
    refuse_if(first != 0 && !is_numbered, path, first, "expected 0 where keys have zeros in front")?;
    let expected = format!("expected a number with which that of the last key is below {RENEWED_FROM}");
    refuse_if(first.saturating_add(data.records) > RENEWED_FROM, path, first, expected)
}

/// Refuses what cannot be told apart, found or placed where records of all kinds have the same keys, without zeros in front.
pub fn unpadded_keys_fit(plan: &Plan) -> Result<(), Invalid> {
    let data = &plan.data;
    if data.style.keys != KeyStyle::Unpadded {
        return Ok(());
    }
    let zeros = "expected keys with zeros in front";
    let only = |why: &str| format!("{zeros}: {why}");
    let shared = "without them, records of all kinds have the same keys";
    refuse_if(plan.verify > 0.0, Field::Verify, plan.verify, only(shared))?;
    if let Some(tag) = data.key_tag {
        return refuse(Field::KeyTag, tag, zeros);
    }
    refuse_if(!data.slots.is_empty(), Field::Slots, data.slots.len(), zeros)?;
    refuse_if(data.style.field_bytes.is_some(), Field::FieldBytes, "", zeros)?;
    for (index, mix) in plan.mixes() {
        if plan.churns(index) {
            return refuse(Field::Churn.of(index), life_text(mix.churn.as_ref()), zeros);
        }
        if let Some(delay_ns) = mix.read_through_ns {
            return refuse(Field::ReadThrough.of(index), typed_time(delay_ns), only(shared));
        }
    }
    let is_beyond = data.first_key + data.records > ABSENT_FROM && has_keys_beyond_the_load(plan);
    let expected = format!(
        "expected a last key below {ABSENT_FROM} where requests ask for keys that no load stores: these are numbered from there on"
    );
    refuse_if(is_beyond, Field::FirstKey, data.first_key, expected)
}

/// Refuses lengths that no key can have. A key is the prefix, its tag if it has one, and the record's number over all key spaces in
/// decimal (see `workload::key`): what varies is cut to what fits, but a length that never fits is refused.
fn keys(data: &Data) -> Result<(), Invalid> {
    let (digits, tag) = (digits_of(data) as u64, tag_bytes(data).0 as u64);
    let prefix = &data.key_prefix;
    let expected = "expected a text without spaces and control characters";
    refuse_if(prefix.bytes().any(|byte| byte <= b' ' || byte == 127), Field::KeyPrefix, prefix, expected)?;
    let prefix_max = KEY_SIZE_MAX - digits - tag;
    let expected = format!("expected up to {prefix_max} bytes: the number of the record follows");
    refuse_if(prefix.len() as u64 > prefix_max, Field::KeyPrefix, prefix, expected)?;
    let least = prefix.len() as u64 + tag + digits;
    let path = Field::KeySize;
    size(path, &data.key_size)?;
    let (low, high) = data.key_size.support();
    let of_tag = if tag == 0 { String::new() } else { format!(", {tag} of the tag (--key-tag)") };
    let of_slots = if data.slots.is_empty() { "" } else { " in their slots" };
    let why = format!(
        "expected sizes of at least {least} bytes: {} of the prefix{of_tag}, {digits} for the numbers of {} records{of_slots}",
        prefix.len(),
        data.records
    );
    refuse_if(data.style.keys == KeyStyle::Drawn && high < least as f64, path, &data.key_size, why)?;
    let expected = format!("expected sizes up to {KEY_SIZE_MAX} bytes");
    refuse_if(low > KEY_SIZE_MAX as f64, path, &data.key_size, expected)
}

/// Refuses sizes that lie beyond `most`, and those of which a bound does.
fn size_up_to(path: impl Into<FieldPath>, dist: &Dist, most: u64, expected: &str) -> Result<(), Invalid> {
    let (path, most) = (path.into(), most as f64);
    size(path, dist)?;
    let (low, high) = dist.support();
    refuse_if(low > most || (high.is_finite() && high > most), path, dist, expected)
}

/// Refuses sizes of values that no server takes.
pub fn value_size(path: impl Into<FieldPath>, dist: &Dist) -> Result<(), Invalid> {
    size_up_to(path, dist, VALUE_SIZE_MAX, "expected sizes up to 1GiB")
}

/// Refuses an expiry that memcached would take for a date.
pub fn expiry(dist: &Dist) -> Result<(), Invalid> {
    let expected = "expected up to 30 days (720h): to memcached, more is a date";
    size_up_to(Field::Expiry, dist, EXPIRY_MAX_S, expected)
}

/// Whether requests ask for keys beyond those that a load stores: fresh and absent ones, those of inserted records, those that
/// records get later, and new hot ones. Their numbers have more digits. The newest records of a popularity are loaded or inserted
/// ones.
pub fn has_keys_beyond_the_load(plan: &Plan) -> bool {
    let mut works = plan.phases.iter().map(|phase| &phase.work);
    let is_new = |what: &EventKind| matches!(what, EventKind::Hot(FlashCrowd { key: HotKey::New, .. }));
    works.any(|work| matches!(work, Work::Mix(mix) if mix.reads_unstored() || mix.inserts))
        || (0..plan.phases.len()).any(|number| plan.churns(number))
        || plan.changes.events.iter().any(|event| is_new(&event.what))
}

/// Bytes of the longest key that a request may ask for.
pub fn longest_key(plan: &Plan) -> u64 {
    let data = &plan.data;
    match has_keys_beyond_the_load(plan) {
        true => longest_key_with(data, DIGITS + tag_bytes(data).1),
        false => longest_loaded_key(data),
    }
}

/// Bytes of the longest key that a load may store.
pub fn longest_loaded_key(data: &Data) -> u64 {
    longest_key_with(data, digits_of(data) + tag_bytes(data).0)
}

/// Bytes of the longest key of this data that has room for so many bytes behind its prefix.
fn longest_key_with(data: &Data, suffix: usize) -> u64 {
    let prefix = data.key_prefix.len() as u64;
    let drawn = data.key_size.support().1.round().clamp(0.0, KEY_SIZE_MAX as f64) as u64;
    let drawn = match data.style.keys {
        KeyStyle::Drawn => drawn,
        KeyStyle::Fnv => (prefix + drawn).min(KEY_SIZE_MAX),
        KeyStyle::Unpadded => 0,
    };
    drawn.max(prefix + suffix as u64)
}

/// Refuses a churn with invalid lives, and one that clients could not follow together.
pub fn key_churn_fits(plan: &Plan) -> Result<(), Invalid> {
    let mixes: Vec<(usize, &Mix)> = plan.mixes().collect();
    for &(index, mix) in &mixes {
        if let Some(churn) = &mix.churn {
            life(Field::Churn.of(index), churn)?;
        }
        let (changes, value) = (mix.churn != mixes[0].1.churn, life_text(mix.churn.as_ref()));
        let expected = "expected one churn in all phases: keys change on from one phase to the next";
        refuse_if(changes, Field::Churn.of(index), value, expected)?;
    }
    for part in &plan.changes.parts {
        part.churn.as_ref().map_or(Ok(()), |churn| life(Field::Parts, churn))?;
    }
    let Some(&(first, mix)) = mixes.iter().find(|(index, _)| plan.churns(*index)) else { return Ok(()) };
    if mixes.iter().any(|(_, mix)| mix.inserts || matches!(mix.popularity, Popularity::Latest { .. })) {
        let expected = "expected no adds of new records and no popularity of the newest with it: they have new keys already";
        return refuse(Field::Churn.of(first), life_text(mix.churn.as_ref()), expected);
    }
    let churns = mix.churn.iter().chain(plan.changes.parts.iter().filter_map(|part| part.churn.as_ref()));
    asking_clients(plan, Field::Churn.of(first), &churns.collect::<Vec<_>>())
}

/// Refuses clients without a common measure of time for the lives of keys.
fn asking_clients(plan: &Plan, path: FieldPath, churns: &[&KeyChurn]) -> Result<(), Invalid> {
    let churn = churns[0];
    let come_and_go = plan.groups.iter().any(|group| group.churn.is_some()) || plan.sequence().is_some();
    let expected = "expected clients that stay with it, and none that come and go";
    refuse_if(come_and_go, path, churn, expected)?;
    refuse_if(plan.window().is_some(), path, churn, "expected clients without windows with it")?;
    let by_requests = churns.iter().find(|churn| churn.counts_requests());
    if let Some(churn) = by_requests {
        let expected = "expected lives in time where several groups of clients ask at paces of their own";
        refuse_if(plan.groups.len() > 1, path, churn, expected)?;
        let expected = "expected lives in time where phases have lives of their own";
        refuse_if(plan.changes.parts.iter().any(|part| part.churn.is_some()), Field::Parts, churn, expected)?;
        return Ok(());
    }
    let expected = "expected lives in requests in closed loop, such as requests:100000 or share:0.01: the time of a \
                        request is not known before it is asked; lives in time need open loop (--rate)";
    refuse_if(plan.groups[0].arrivals == Arrivals::Closed, path, churn, expected)?;
    Ok(())
}

fn life(path: impl Into<FieldPath>, churn: &KeyChurn) -> Result<(), Invalid> {
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

fn life_text(churn: Option<&KeyChurn>) -> String {
    churn.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Style, ValueClass};
    use crate::workload::key::KeyMaker;

    fn data_with(records: u64, key_prefix: &str, key_size: u64) -> Data {
        Data {
            records,
            key_prefix: key_prefix.to_string(),
            key_size: Dist::Fixed(key_size as f64),
            value_size: Dist::Fixed(1.0),
            ..Data::default()
        }
    }

    #[test]
    fn the_least_key_size_is_the_one_that_keys_really_have() {
        for (records, prefix) in [(1, ""), (3, "p"), (4, ""), (10_000, "user:"), (1 << 40, "")] {
            let least = KeyMaker::new(&data_with(records, prefix, 0)).expect("short prefix").len_of(0) as u64;
            assert_eq!(keys(&data_with(records, prefix, least)), Ok(()), "{records} {prefix}");
            let error = keys(&data_with(records, prefix, least - 1)).expect_err("one byte too few");
            assert!(error.expected.contains(&format!("at least {least} bytes")), "{error:?}");
        }
    }

    #[test]
    fn classes_of_records_follow_each_other_and_have_lengths_that_values_can_have() {
        let of = |classes: &[(f64, f64)]| {
            let class = |&(until, bytes): &(f64, f64)| ValueClass { until, value_size: Dist::Fixed(bytes) };
            let data = data_with(1_000, "", 20);
            value_classes(&Data { value_classes: classes.iter().map(class).collect(), ..data })
        };
        assert_eq!(of(&[(0.01, 10.0), (0.5, 0.0)]), Ok(()));
        for refused in
            [&[(0.5, 1.0), (0.5, 1.0)][..], &[(0.0, 1.0)], &[(1.0, 1.0)], &[(f64::NAN, 1.0)], &[(0.1, -1.0)]]
        {
            assert!(of(refused).is_err(), "{refused:?}");
        }
        assert!(of(&[(0.1, 2e9)]).is_err());
        let style = Style { values: ValueStyle::Fresh, ..Style::default() };
        let classes = vec![ValueClass { until: 0.1, value_size: Dist::Fixed(1.0) }];
        let drawn = Data { style, value_classes: classes, ..data_with(1_000, "", 20) };
        assert!(value_classes(&drawn).is_err());
    }

    #[test]
    fn a_prefix_is_refused_exactly_when_no_key_can_be_made() {
        for len in 240..255 {
            let data = data_with(10_000, &"p".repeat(len), 250);
            assert_eq!(keys(&data).is_ok(), KeyMaker::new(&data).is_ok(), "{len}");
        }
    }
}

#[cfg(test)]
mod key_churn_tests {
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
