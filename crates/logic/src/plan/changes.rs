//! Changes of the load during the measured phase: the rate of requests, and bursts on top of it.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::key_churn::KeyChurn;
use super::phase::Mix;
use super::popularity::Popularity;
use crate::protocol::Verb;
use crate::time::Nanos;

/// Most parts of a measured phase.
pub const PARTS_MAX: usize = 64;

/// Most points of a rate over time, and most straight pieces that it has when bursts cut it.
pub const POINTS_MAX: usize = 1 << 20;

/// Changes of the load during a measured phase; none by default. The first group of clients changes, other groups keep
/// their rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// The rate from the beginning of the measured phase on; absent: the rate of the group, from beginning to end. The rate of the
    /// group is the mean of this one. Other phases go at the rate with which this one begins, or at its mean where it begins
    /// with 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateShape>,
    /// Bursts, which multiply the rate and keep its mean; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Parts of the measured phase that have figures of their own, in the order of time; empty: the phase has no parts. They follow
    /// each other without a gap, on the same connections. A request belongs to the part in which it was due.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Events at moments of the measured phase: keys that become hot, and records that are lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

/// A part of a measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the part in results.
    pub name: String,
    /// Beginning of the part, in nanoseconds from the beginning of the phase. The first part begins at 0.
    pub at_ns: Nanos,
    /// Operations and weights that replace those of the phase's mix in the part; absent: those of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<(Verb, f64)>>,
    /// The popularity of the records in the part, for all operations; absent: that of the phase, with what single operations have in its
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub popularity: Option<Popularity>,
    /// The lives of the records' keys in the part; absent: as in the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<KeyChurn>,
    /// Clients of the first group that are on stage in the part; absent: all of them. The others have no connection open, and
    /// nothing of theirs is due. Who leaves finishes what it has under way, and then closes its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
}

impl Part {
    /// A part with the requests of its phase.
    pub fn plain(name: String, at_ns: Nanos) -> Part {
        Part { name, at_ns, ops: None, popularity: None, churn: None, connections: None }
    }

    /// Whether the part has other requests than its phase.
    pub fn has_own_mix(&self) -> bool {
        self.ops.is_some() || self.popularity.is_some() || self.churn.is_some()
    }

    /// The mix of the part in a phase with this mix. A popularity of the part is that of all its operations.
    pub fn mix(&self, phase: &Mix) -> Mix {
        let ops = self.ops.clone().unwrap_or_else(|| phase.ops.clone());
        let mut popularity_of = phase.popularity_of.clone();
        popularity_of.retain(|(verb, _)| self.popularity.is_none() && ops.iter().any(|(own, _)| own == verb));
        Mix {
            ops,
            popularity_of,
            popularity: self.popularity.clone().unwrap_or_else(|| phase.popularity.clone()),
            churn: self.churn.clone().or_else(|| phase.churn.clone()),
            ..phase.clone()
        }
    }
}

impl Changes {
    /// Whether nothing changes.
    pub fn is_nothing(&self) -> bool {
        *self == Changes::default()
    }
}

/// A rate over time, in requests per second of all clients together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RateShape {
    /// Straight lines between points, which are in the order of time. The first rate also holds before the first point, and the
    /// last one behind the last. The rate jumps where two points have one time.
    Points(Vec<RatePoint>),
    /// A sine about a mean.
    Sine(Sine),
    /// The 24 hours of a day, after the arrivals of Facebook's pool ETC (Atikoglu et al., SIGMETRICS 2012).
    Day(Day),
}

/// A rate at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RatePoint {
    /// The moment, in nanoseconds from the beginning of the phase.
    pub at_ns: Nanos,
    /// Requests per second, 0 or more.
    pub rate: f64,
}

/// A rate that goes up and down as a sine: `mean + amplitude * sin(2 pi (time / period + start))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sine {
    /// Mean of the rate, in requests per second.
    pub mean: f64,
    /// Greatest distance from the mean, in requests per second; below the mean.
    pub amplitude: f64,
    /// Length of a period, in nanoseconds.
    pub period_ns: Nanos,
    /// The share of a period that is over at the beginning, 0 to 1.
    #[serde(default)]
    pub start: f64,
}

/// A rate that follows the hours of a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Day {
    /// Mean of the rate, in requests per second.
    pub mean: f64,
    /// Length of the day, in nanoseconds.
    pub period_ns: Nanos,
}

/// Bursts, which all clients of a group have at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Burst {
    /// Two states that follow each other, with exponential lengths.
    States(BurstStates),
    /// Many sources that are on and off for Pareto distributed times; the rate is proportional to the number of those that are
    /// on.
    Hurst(BurstSources),
}

/// Two states of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BurstStates {
    /// Factor of the rate while the burst is on, above 1.
    pub factor: f64,
    /// Mean time that the burst is on, in nanoseconds.
    pub on_ns: Nanos,
    /// Mean time that the burst is off, in nanoseconds.
    pub off_ns: Nanos,
}

/// Sources whose sum is a rate with similar bursts on all scales of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BurstSources {
    /// The Hurst parameter, above 0.5 and below 1. The times are Pareto distributed with exponent 3 - 2 H.
    pub hurst: f64,
    /// Mean time that a source is on, and mean time that it is off, in nanoseconds.
    pub on_ns: Nanos,
    /// Number of sources.
    pub sources: u32,
}

impl Burst {
    /// The expected number of changes of the rate in a time.
    pub fn changes_in(&self, time_ns: Nanos) -> f64 {
        let time_ns = time_ns as f64;
        match self {
            Burst::States(states) => 2.0 * time_ns / (states.on_ns as f64 + states.off_ns as f64) + 1.0,
            Burst::Hurst(sources) => f64::from(sources.sources) * (time_ns / sources.on_ns as f64 + 1.0),
        }
    }
}

impl BurstStates {
    /// The share of the time that the rate is on.
    pub fn share(&self) -> f64 {
        let (on, off) = (self.on_ns as f64, self.off_ns as f64);
        on / (on + off)
    }

    /// Factor of the rate while the burst is off, such that the mean stays the same; below 0 if `factor` is too
    /// great.
    pub fn factor_off(&self) -> f64 {
        (1.0 - self.factor * self.share()) / (1.0 - self.share())
    }
}
