//! Checks that keys and values of the records can be made: their number, their lengths, their expiry.

use super::bounds::{NUMBER_MAX, refuse, size, within};
use super::field::{Field, FieldPath};
use super::invalid::Invalid;
use crate::dist::Dist;
use crate::plan::{Data, EventKind, FlashCrowd, HotKey, KeyStyle, Plan, VALUE_CLASSES_MAX, ValueStyle, Work};
use crate::workload::key::{DIGITS, digits_of};
use crate::workload::popularity::RECORDS_MAX;

/// Longest key: memcached's protocol document.
pub const KEY_SIZE_MAX: u64 = 250;

/// Largest value: the limit that memcached's `-I` itself has. A server may take less.
const VALUE_SIZE_MAX: u64 = 1 << 30;

/// Largest expiry in seconds that memcached takes as a span; beyond it is a date (protocol document, "Expiration times").
pub const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;

/// Refuses records that cannot be made.
pub fn data(data: &Data) -> Result<(), Invalid> {
    within(Field::Records.path(), data.records, 1, RECORDS_MAX)?;
    within(Field::DataSeed.path(), data.seed, 0, NUMBER_MAX)?;
    within(Field::ExpiryJitter.path(), data.style.expiry_jitter_percent.into(), 0, 100)?;
    if data.style.expiry_jitter_percent > 0 && data.expiry_s == Dist::Fixed(0.0) {
        let expected = "expected 0 where nothing expires (--ttl)";
        return refuse(Field::ExpiryJitter.path(), data.style.expiry_jitter_percent, expected);
    }
    keys(data)?;
    value_classes(data)?;
    value_size(Field::ValueSize.path(), &data.value_size)
}

/// Refuses classes of records that do not follow each other, and lengths that no value can have.
fn value_classes(data: &Data) -> Result<(), Invalid> {
    let path = Field::ValueClasses.path();
    if data.value_classes.len() > VALUE_CLASSES_MAX {
        let expected = format!("expected up to {VALUE_CLASSES_MAX} classes of records");
        return refuse(path, data.value_classes.len(), expected);
    }
    let mut before = 0.0;
    for class in &data.value_classes {
        if !(class.until > before && class.until < 1.0) {
            let expected = "expected shares of the records that rise, above 0 and below 1";
            return refuse(path, class.until, expected);
        }
        before = class.until;
        value_size(path, &class.value_size)?;
    }
    if !data.value_classes.is_empty() && data.style.values != ValueStyle::Stable {
        let expected = "expected no classes of records where every write draws its own length";
        return refuse(path, data.value_classes.len(), expected);
    }
    Ok(())
}

/// Refuses lengths that no key can have. A key is the prefix and the record's number over all key spaces in decimal (see
/// `workload::key`): what varies is cut to what fits, but a length that never fits is refused.
fn keys(data: &Data) -> Result<(), Invalid> {
    let digits = digits_of(data) as u64;
    let prefix = &data.key_prefix;
    if prefix.bytes().any(|byte| byte <= b' ' || byte == 127) {
        let expected = "expected a text without spaces and control characters";
        return refuse(Field::KeyPrefix.path(), prefix, expected);
    }
    let prefix_max = KEY_SIZE_MAX - digits;
    if prefix.len() as u64 > prefix_max {
        let expected = format!("expected up to {prefix_max} bytes: the number of the record follows");
        return refuse(Field::KeyPrefix.path(), prefix, expected);
    }
    let least = prefix.len() as u64 + digits;
    let path = Field::KeySize.path();
    size(path, &data.key_size)?;
    let (low, high) = data.key_size.support();
    if data.style.keys == KeyStyle::Drawn && high < least as f64 {
        let why = format!(
            "expected sizes of at least {least} bytes: {} of the prefix, {digits} for the numbers of {} records",
            prefix.len(),
            data.records
        );
        return refuse(path, &data.key_size, why);
    }
    if low > KEY_SIZE_MAX as f64 {
        return refuse(path, &data.key_size, format!("expected sizes up to {KEY_SIZE_MAX} bytes"));
    }
    Ok(())
}

fn value_size(path: FieldPath, dist: &Dist) -> Result<(), Invalid> {
    size(path, dist)?;
    let (low, high) = dist.support();
    if low > VALUE_SIZE_MAX as f64 || (high.is_finite() && high > VALUE_SIZE_MAX as f64) {
        return refuse(path, dist, "expected sizes up to 1GiB");
    }
    Ok(())
}

/// Refuses an expiry that memcached would take for a date.
pub fn expiry(dist: &Dist) -> Result<(), Invalid> {
    let path = Field::Expiry.path();
    size(path, dist)?;
    let (low, high) = dist.support();
    if low > EXPIRY_MAX_S as f64 || (high.is_finite() && high > EXPIRY_MAX_S as f64) {
        return refuse(path, dist, "expected up to 30 days (720h): to memcached, more is a date");
    }
    Ok(())
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
    longest_key_with(data, if has_keys_beyond_the_load(plan) { DIGITS } else { digits_of(data) })
}

/// Bytes of the longest key that a load may store.
pub fn longest_loaded_key(data: &Data) -> u64 {
    longest_key_with(data, digits_of(data))
}

/// Bytes of the longest key of this data that has room for so many digits.
fn longest_key_with(data: &Data, digits: usize) -> u64 {
    let prefix = data.key_prefix.len() as u64;
    let drawn = data.key_size.support().1.round().clamp(0.0, KEY_SIZE_MAX as f64) as u64;
    let drawn = match data.style.keys {
        KeyStyle::Drawn => drawn,
        KeyStyle::Fnv => (prefix + drawn).min(KEY_SIZE_MAX),
    };
    drawn.max(prefix + digits as u64)
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
