//! When sampled requests left the machine of the generator.

use pummel_logic::plan::TransmitSampling;
use pummel_measure::histogram::Histogram;
use pummel_measure::summary::QUANTILES;
use pummel_measure::transmit::{TransmitCounts, TransmitTimes};
use serde::{Deserialize, Serialize};

/// The sample of requests that were stamped when they left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TransmitResult {
    /// One request in so many was stamped.
    pub every: u32,
    /// From the send to the device: the part on this machine.
    pub out_us: SampleFigures,
    /// From the device to the reply: the server and both directions of the network.
    pub served_us: SampleFigures,
    /// In the queueing discipline; absent without stamps of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_us: Option<SampleFigures>,
    /// Between the card's stamps of the request and of its reply; absent without stamps of the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire_us: Option<SampleFigures>,
    /// Sampled requests that have none of these times, by reason.
    #[serde(flatten)]
    pub counts: TransmitCounts,
}

/// The figures of a sample in microseconds, with its count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SampleFigures {
    /// Number of requests.
    pub count: u64,
    /// The least time.
    pub min: Option<f64>,
    /// The mean time.
    pub mean: Option<f64>,
    /// The standard deviation.
    pub stddev: Option<f64>,
    /// The quantile of 50 %.
    pub p50: Option<f64>,
    /// The quantile of 90 %.
    pub p90: Option<f64>,
    /// The quantile of 95 %.
    pub p95: Option<f64>,
    /// The quantile of 99 %.
    pub p99: Option<f64>,
    /// The quantile of 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// The quantile of 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<f64>,
    /// The greatest time.
    pub max: Option<f64>,
}

impl TransmitResult {
    pub(crate) fn of(sampling: Option<TransmitSampling>, times: &TransmitTimes) -> TransmitResult {
        let scheduled = sampling.is_some_and(|sampling| sampling.scheduled);
        let hardware = sampling.is_some_and(|sampling| sampling.hardware);
        TransmitResult {
            every: sampling.map_or(0, |sampling| sampling.every),
            out_us: SampleFigures::of(&times.out),
            served_us: SampleFigures::of(&times.served),
            queued_us: scheduled.then(|| SampleFigures::of(&times.queued)),
            wire_us: hardware.then(|| SampleFigures::of(&times.wire)),
            counts: times.counts,
        }
    }
}

impl SampleFigures {
    pub(super) fn of(times: &Histogram) -> SampleFigures {
        let micros = |ns: f64| ns / 1e3;
        let exact = times.moments();
        let is_known = exact.count > 0;
        let [p50, p90, p95, p99, p99_9, p99_99] =
            QUANTILES.map(|(_, quantile)| times.quantile(quantile).map(|ns| micros(ns as f64)));
        SampleFigures {
            count: exact.count,
            min: is_known.then(|| micros(exact.min as f64)),
            mean: exact.mean_ns().map(micros),
            stddev: exact.stddev_ns().map(micros),
            p50,
            p90,
            p95,
            p99,
            p99_9,
            p99_99,
            max: is_known.then(|| micros(exact.max as f64)),
        }
    }
}
