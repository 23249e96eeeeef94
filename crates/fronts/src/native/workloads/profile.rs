//! The profile of a workload: TOML that is written by hand, or by a fit.

use std::collections::BTreeMap;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Burst, KeyChurn, Popularity, RateShape, TextError, ValueClass};
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;
use serde::{Deserialize, Serialize};

use crate::native::typed_rate::{self, TypedRate};
use crate::values::{self, Measure};

/// The layout of profiles that this version reads.
const SCHEMA: u32 = 1;

/// A workload as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// What it is.
    pub what: String,
}

/// Why there is no profile: a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

/// What a workload asks of a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Where the figures come from.
    pub source: String,
    /// What the source does not say, and was chosen: the field, then how.
    pub assumed: Vec<String>,
    /// Number of records.
    pub records: u64,
    /// Operations and their weights.
    pub mix: Vec<(Verb, f64)>,
    /// What every key begins with.
    pub key_prefix: String,
    /// Length of a key in bytes.
    pub key_size: Dist,
    /// Length of a value in bytes.
    pub value_size: Dist,
    /// The most popular records with lengths of their own.
    pub value_classes: Vec<ValueClass>,
    /// Expiry in seconds, 0 for none.
    pub ttl: Dist,
    /// The spread of requests over the records.
    pub popularity: Popularity,
    /// Share of the keys read that are fresh: each is read once.
    pub fresh: f64,
    /// Share of the keys read that do not exist.
    pub absent: f64,
    /// How long the records keep their keys; absent: forever.
    pub churn: Option<KeyChurn>,
    /// Share of the gets after which the key is set.
    pub read_modify_write: f64,
    /// Each add stores a record of its own.
    pub insert: bool,
    /// Reads are scans of 1 to this many records; `None` if they are not scans.
    pub scan: Option<u32>,
    /// Whether and when a key that was missed is stored.
    pub read_through: Option<ReadThrough>,
    /// The gaps between requests in open loop, where the source has them.
    pub arrivals: Option<String>,
    /// Requests per second of the source, the mean where its rate changes; absent where it has none.
    pub rate: Option<f64>,
    /// How the rate of the source changes; absent where it stays, or is not known.
    pub rate_shape: Option<RateShape>,
    /// The bursts of the rate in open loop, where the source has some.
    pub burst: Option<Burst>,
    /// The text that the profile was read from.
    pub text: String,
}

/// How long after a miss the key is stored, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadThrough(pub Nanos);

/// The fields of a profile as they are written.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) schema: u32,
    pub(super) source: String,
    #[serde(default)]
    pub(super) assumed: Vec<String>,
    pub(super) records: u64,
    pub(super) mix: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) key_prefix: String,
    pub(super) key_size: String,
    pub(super) value_size: String,
    #[serde(default = "none", skip_serializing_if = "is_none")]
    pub(super) ttl: String,
    pub(super) popularity: String,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(super) fresh: f64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(super) absent: f64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(super) read_modify_write: f64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) insert: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scan: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) churn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read_through: Option<ReadThroughWritten>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) arrivals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<RateWritten>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) value_class: Vec<WrittenClass>,
}

/// The most popular records up to this share, and the lengths of their values.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenClass {
    pub(super) records: String,
    pub(super) value_size: String,
}

/// `true`, `false` or a delay.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum ReadThroughWritten {
    AtOnce(bool),
    After(String),
}

/// Requests per second, or a rate that changes, such as `sine:4500,1000,24h`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum RateWritten {
    Constant(f64),
    Changing(String),
}

impl RateWritten {
    /// The mean of the rate, and how it changes.
    fn read(&self) -> Result<(f64, Option<RateShape>), Refusal> {
        let text = match self {
            RateWritten::Constant(rate) => return Ok((*rate, None)),
            RateWritten::Changing(text) => text,
        };
        match typed_rate::rate(text) {
            Ok(TypedRate::Shape(RateShape::Sine(sine))) => Ok((sine.mean, Some(RateShape::Sine(sine)))),
            Ok(TypedRate::Shape(RateShape::Day(day))) => Ok((day.mean, Some(RateShape::Day(day)))),
            _ => Err(Refusal(format!(
                "rate: requests per second, or sine:MEAN,AMPLITUDE,PERIOD[,START] or day:MEAN[,PERIOD], are accepted, not '{text}'"
            ))),
        }
    }
}

fn none() -> String {
    "0".to_owned()
}

fn is_none(ttl: &str) -> bool {
    ttl == "0"
}

fn is_nothing(share: &f64) -> bool {
    *share == 0.0
}

impl Profile {
    /// The profile that a text is. Whether a run can have its values is checked with the plan that they go into.
    ///
    /// # Errors
    /// Returns [`Refusal`] for text that is no TOML, has other fields, or has values that cannot be read.
    pub fn read(text: &str) -> Result<Profile, Refusal> {
        let written: Written = values::written::from_toml(text).map_err(Refusal)?;
        Profile::of(written, text.to_owned())
    }

    /// The profile with these fields.
    pub(super) fn of(written: Written, text: String) -> Result<Profile, Refusal> {
        if written.schema != SCHEMA {
            return Err(Refusal(format!("expected schema {SCHEMA}, not {}", written.schema)));
        }
        let verb = |(name, weight): (&String, &f64)| {
            let verb = Verb::ALL.into_iter().find(|verb| verb.name() == name);
            verb.map(|verb| (verb, *weight))
                .ok_or_else(|| Refusal(format!("mix: no operation is called '{name}'")))
        };
        let read_through = match &written.read_through {
            None | Some(ReadThroughWritten::AtOnce(false)) => None,
            Some(ReadThroughWritten::AtOnce(true)) => Some(ReadThrough(0)),
            Some(ReadThroughWritten::After(text)) => {
                let time = values::time(text).map_err(|error| Refusal(format!("read_through: {error}")))?;
                Some(ReadThrough(time))
            }
        };
        let churn = written
            .churn
            .as_ref()
            .map(|text| values::churn(text).map_err(|error| Refusal(format!("churn: '{text}': {error}"))));
        let (rate, rate_shape) = match &written.rate {
            Some(rate) => rate.read().map(|(rate, shape)| (Some(rate), shape))?,
            None => (None, None),
        };
        let in_field =
            |field: &'static str| move |refusal: Refusal| Refusal(format!("{field}: {}", refusal.0));
        Ok(Profile {
            mix: written.mix.iter().map(verb).collect::<Result<_, _>>()?,
            key_size: dist(&written.key_size, Measure::Bytes).map_err(in_field("key_size"))?,
            value_size: dist(&written.value_size, Measure::Bytes).map_err(in_field("value_size"))?,
            ttl: dist(&written.ttl, Measure::Seconds).map_err(in_field("ttl"))?,
            popularity: popularity(&written.popularity).map_err(in_field("popularity"))?,
            value_classes: written.value_class.iter().map(value_class).collect::<Result<_, _>>()?,
            burst: written.burst.as_deref().map(burst).transpose()?,
            source: written.source,
            assumed: written.assumed,
            records: written.records,
            key_prefix: written.key_prefix,
            fresh: written.fresh,
            absent: written.absent,
            churn: churn.transpose()?,
            read_modify_write: written.read_modify_write,
            insert: written.insert,
            scan: written.scan,
            read_through,
            arrivals: written.arrivals,
            rate,
            rate_shape,
            text,
        })
    }
}

/// A class of records as a profile writes it.
fn value_class(written: &WrittenClass) -> Result<ValueClass, Refusal> {
    let percent = written.records.strip_suffix('%').and_then(|percent| percent.parse().ok());
    let Some(percent) = percent.filter(|percent: &f64| *percent > 0.0 && *percent < 100.0) else {
        let accepted = "expected a share of the records above 0% and below 100%, such as 1%";
        return Err(Refusal(format!("value_class.records: {accepted}, not '{}'", written.records)));
    };
    let in_field = |refusal: Refusal| Refusal(format!("value_class.value_size: {}", refusal.0));
    let value_size = dist(&written.value_size, Measure::Bytes).map_err(in_field)?;
    Ok(ValueClass { until: percent / 100.0, value_size })
}

/// Bursts as a profile writes them.
fn burst(text: &str) -> Result<Burst, Refusal> {
    typed_rate::burst(text).map_err(|error| Refusal(format!("burst: {error}")))
}

/// A popularity as a profile writes it.
fn popularity(text: &str) -> Result<Popularity, Refusal> {
    text.parse().map_err(|error: TextError| Refusal(error.to_string()))
}

/// A distribution as a profile writes it, which names no file.
fn dist(text: &str, measure: Measure) -> Result<Dist, Refusal> {
    let no_file = |_: &str| Err(std::io::Error::other("a profile stands for itself"));
    let unread = values::dist(text, measure).and_then(|dist| dist.read(no_file));
    unread.map_err(|error| Refusal(format!("'{text}': {error}")))
}
