//! Whether keys and values of the records can be made: their number, their lengths, their expiry.

use super::bounds::{NUMBER_MAX, refuse, size, within};
use super::field::Field;
use super::invalid::Invalid;
use crate::dist::Dist;
use crate::plan::{Data, KeyStyle, Phase, Plan, Work};
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
    keys(data)?;
    value_size(&data.value_size)
}

/// Refuses lengths that no key can have. A key is the prefix and the record's number over all key spaces in decimal (see
/// `workload::key`): what varies is cut to what fits, but a length that never fits is refused.
fn keys(data: &Data) -> Result<(), Invalid> {
    let digits = digits_of(data) as u64;
    let prefix = &data.key_prefix;
    if prefix.bytes().any(|byte| byte <= b' ' || byte == 127) {
        let expected = "a text without spaces and control characters is accepted";
        return refuse(Field::KeyPrefix.path(), prefix, expected);
    }
    let prefix_max = KEY_SIZE_MAX - digits;
    if prefix.len() as u64 > prefix_max {
        let expected = format!("up to {prefix_max} bytes are accepted: the number of the record follows");
        return refuse(Field::KeyPrefix.path(), prefix, expected);
    }
    let least = prefix.len() as u64 + digits;
    let path = Field::KeySize.path();
    size(path, &data.key_size)?;
    let (low, high) = data.key_size.support();
    if data.style.keys == KeyStyle::Drawn && high < least as f64 {
        let why = format!(
            "sizes of at least {least} bytes are accepted: {} of the prefix, {digits} for the numbers of {} records",
            prefix.len(),
            data.records
        );
        return refuse(path, &data.key_size, why);
    }
    if low > KEY_SIZE_MAX as f64 {
        return refuse(path, &data.key_size, format!("sizes up to {KEY_SIZE_MAX} bytes are accepted"));
    }
    Ok(())
}

fn value_size(dist: &Dist) -> Result<(), Invalid> {
    let path = Field::ValueSize.path();
    size(path, dist)?;
    let (low, high) = dist.support();
    if low > VALUE_SIZE_MAX as f64 || (high.is_finite() && high > VALUE_SIZE_MAX as f64) {
        return refuse(path, dist, "sizes up to 1GiB are accepted");
    }
    Ok(())
}

/// Refuses an expiry that memcached would take for a date.
pub fn expiry(dist: &Dist) -> Result<(), Invalid> {
    let path = Field::Expiry.path();
    size(path, dist)?;
    let (low, high) = dist.support();
    if low > EXPIRY_MAX_S as f64 || (high.is_finite() && high > EXPIRY_MAX_S as f64) {
        return refuse(path, dist, "up to 30 days (720h) are accepted: to memcached, more is a date");
    }
    Ok(())
}

/// Bytes of the longest key that may be made.
pub fn longest_key(plan: &Plan) -> u64 {
    let unstored = |phase: &Phase| matches!(&phase.work, Work::Mix(mix) if mix.reads_unstored());
    let digits = if plan.phases.iter().any(unstored) { DIGITS } else { digits_of(&plan.data) } as u64;
    let least = plan.data.key_prefix.len() as u64 + digits;
    let (_, top) = plan.data.key_size.support();
    (top.round().clamp(0.0, KEY_SIZE_MAX as f64) as u64).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn a_prefix_is_refused_exactly_when_no_key_can_be_made() {
        for len in 240..255 {
            let data = data_with(10_000, &"p".repeat(len), 250);
            assert_eq!(keys(&data).is_ok(), KeyMaker::new(&data).is_ok(), "{len}");
        }
    }
}
