//! The records of a Plan: which keys there are and what is stored under them.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use crate::dist::Dist;

/// The records: which keys there are and what is stored under them.
///
/// Key spaces: indexes 0 to `records` - 1 are the plain records. Where a mix has append or prepend, a second space of
/// the same size holds their values; where it has incr or decr, a third; where it has hget or hset, a fourth; where it
/// has command, a fifth (see `workload::key`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Number of records, 1 to 2^40.
    pub records: u64,
    /// Seed of key sizes, value sizes and bytes.
    pub seed: u64,
    /// What every key begins with.
    pub key_prefix: String,
    /// Length of a key in bytes, prefix included.
    pub key_size: Dist,
    /// Length of a value in bytes.
    pub value_size: Dist,
    /// Expiry in seconds, 0 for none.
    pub expiry_s: Dist,
    /// How keys and values are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub style: Style,
}

/// How keys and values are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    /// Keys.
    pub keys: KeyStyle,
    /// Values.
    pub values: ValueStyle,
    /// On RESP servers, a key of more than so many bytes and one is a hash, with so many last bytes as the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_bytes: Option<u32>,
}

/// How keys are made from their indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStyle {
    /// The prefix and the padded index; the length is drawn from the data's seed.
    #[default]
    Drawn,
    /// mutilate's: the prefix and the padded index; the length without the prefix is the value of `key_size` at the
    /// FNV-1a hash of the index, as a share of the greatest hash.
    Fnv,
}

/// How long values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueStyle {
    /// Always the same for one key, so that any process can check it.
    #[default]
    Stable,
    /// Drawn for every write, fractions cut off. Such values are not checked.
    Fresh,
}
