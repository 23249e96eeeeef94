//! The records of a Plan: which keys there are and what is stored under them.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use super::slot_range::SlotRange;
use crate::bodies::RATIOS;
use crate::dist::Dist;

/// The records: their keys, and the values that are stored under them.
///
/// Key spaces: indexes 0 to `records` - 1 are the plain records. A second space of the same size holds the values of
/// append and prepend, if a mix has these; a third those of incr and decr; a fourth those of hget and hset; a fifth
/// those of command (see `workload::key`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Number of records, 1 to 2^40.
    pub records: u64,
    /// Seed of key sizes, value sizes and bytes.
    pub seed: u64,
    /// The beginning of every key.
    pub key_prefix: String,
    /// Length of a key in bytes, prefix included.
    pub key_size: Dist,
    /// Length of a value in bytes.
    pub value_size: Dist,
    /// Expiry in seconds, 0 for none.
    pub expiry_s: Dist,
    /// Lengths of the values of the most popular records, in the order of popularity; all records behind the last class have
    /// `value_size`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_classes: Vec<ValueClass>,
    /// Ratio to which lz4 and gzip bring a stream of values of 4 KiB and more, about: 1 to 10. Absent: 1, values that do not compress.
    #[serde(default = "uncompressed", skip_serializing_if = "is_uncompressed")]
    pub value_compress: f64,
    /// The ASCII character that all bytes of values are, and all bytes that fill places of commands; those of counters are digits all the
    /// same. Absent: random bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_filler: Option<char>,
    /// Number of neighbouring records whose keys have a hash tag in common, and so a slot of a cluster: `{number of the record /
    /// key_tag}` between the prefix and the number. Absent: keys have no tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_tag: Option<u64>,
    /// Slots of a cluster in which the keys of all records lie, such as `0-5460`: other numbers make no key. Empty: any slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotRange>,
    /// The number in the key of record 0, where keys have no zeros in front; each other record has the next one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_key: u64,
    /// The rules by which keys and values are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub style: Style,
}

/// The most popular records up to a share of all, behind those of the class before, and the lengths of their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ValueClass {
    /// Share of the records with which the class ends, above 0 and below 1; record 0 is the most popular one.
    pub until: f64,
    /// Length of a value in bytes.
    pub value_size: Dist,
}

fn uncompressed() -> f64 {
    *RATIOS.start()
}

fn is_uncompressed(ratio: &f64) -> bool {
    *ratio == uncompressed()
}

/// Most classes of records with lengths of their own.
pub const VALUE_CLASSES_MAX: usize = 16;

impl Data {
    /// The byte that all bytes of values are; `None` where they are random.
    pub fn filler(&self) -> Option<u8> {
        u8::try_from(self.value_filler?).ok()
    }

    /// The distributions of the lengths of values.
    pub fn value_sizes(&self) -> impl Iterator<Item = &Dist> {
        self.value_classes.iter().map(|class| &class.value_size).chain([&self.value_size])
    }
}

/// The rules by which keys and values are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// The rule for keys.
    pub keys: KeyStyle,
    /// The rule for values.
    pub values: ValueStyle,
    /// Length of a field's name in bytes, on RESP servers: a key that is longer by at least 2 bytes is a hash, and its
    /// last bytes name the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_bytes: Option<u32>,
    /// Most percent of itself by which an expiry is longer or shorter, 0 to 100; every length in between is as likely.
    #[serde(skip_serializing_if = "is_default")]
    pub expiry_jitter_percent: u32,
}

/// The rule by which a key is made from its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyStyle {
    /// The prefix and the padded index; the length is drawn from the data's seed.
    #[default]
    Drawn,
    /// mutilate's: the prefix and the padded index; the length without the prefix is the value of `key_size` at the
    /// FNV-1a hash of the index, as a share of the greatest hash.
    Fnv,
    /// memtier_benchmark's: the prefix and a number without zeros in front, that of the record behind the first key. Records of all
    /// kinds have the same keys, and `key_size` has no effect.
    Unpadded,
}

/// The rule for the lengths of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ValueStyle {
    /// One length for each key, so that any process can check the value.
    #[default]
    Stable,
    /// Drawn for every write, fractions cut off. Such values are not checked.
    Fresh,
}
