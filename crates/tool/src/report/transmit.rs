//! When sampled requests left this machine, as objects of the JSON result and as a line of the text report.

use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::summary::{QUANTILES, time_text};
use pummel_logic::measure::transmit::{TransmitCounts, TransmitTimes};
use pummel_logic::plan::TransmitSampling;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::report::numbers::grouped;

/// The object `transmit` of the JSON result.
#[derive(Serialize)]
pub(super) struct TransmitOut<'a> {
    /// One request in so many was stamped.
    every: u32,
    out_us: SampleOut<'a>,
    served_us: SampleOut<'a>,
    /// Absent without stamps of the queueing discipline.
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_us: Option<SampleOut<'a>>,
    #[serde(flatten)]
    counts: TransmitCounts,
}

/// The figures of a sample, with its count.
struct SampleOut<'a>(&'a Histogram);

impl<'a> TransmitOut<'a> {
    pub(super) fn of(sampling: Option<TransmitSampling>, times: &'a TransmitTimes) -> TransmitOut<'a> {
        let scheduled = sampling.is_some_and(|sampling| sampling.scheduled);
        TransmitOut {
            every: sampling.map_or(0, |sampling| sampling.every),
            out_us: SampleOut(&times.out),
            served_us: SampleOut(&times.served),
            queued_us: scheduled.then_some(SampleOut(&times.queued)),
            counts: times.counts,
        }
    }
}

impl Serialize for SampleOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = |ns: f64| ns / 1e3;
        let exact = self.0.moments();
        let is_known = exact.count > 0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &exact.count)?;
        map.serialize_entry("min", &is_known.then(|| micros(exact.min as f64)))?;
        map.serialize_entry("mean", &exact.mean_ns().map(micros))?;
        map.serialize_entry("stddev", &exact.stddev_ns().map(micros))?;
        for (name, quantile) in QUANTILES {
            map.serialize_entry(name, &self.0.quantile(quantile).map(|ns| micros(ns as f64)))?;
        }
        map.serialize_entry("max", &is_known.then(|| micros(exact.max as f64)))?;
        map.end()
    }
}

/// What the text report says of the stamps: the medians and 99th percentiles of both parts of the service time.
pub fn words(sampling: Option<TransmitSampling>, times: &TransmitTimes) -> String {
    let at = |times: &Histogram, quantile| times.quantile(quantile).map_or("-".to_owned(), time_text);
    let of = |times: &Histogram| format!("{} at p50, {} at p99", at(times, 0.5), at(times, 0.99));
    let every = sampling.map_or(String::new(), |sampling| format!(", one in {}", sampling.every));
    let mut text = format!("{} requests{every}: ", grouped(times.out.count()));
    if times.out.count() > 0 {
        text += &format!(
            "{} from the send to the device (out); {} from there to the reply (served)",
            of(&times.out),
            of(&times.served)
        );
    } else {
        text += "none was stamped";
    }
    if times.queued.count() > 0 {
        text += &format!("; {} in the queueing discipline (part of out)", of(&times.queued));
    }
    let TransmitCounts { tx_missing, tx_merged, tx_rejected } = times.counts;
    for (count, what) in [
        (tx_missing, "without a stamp"),
        (tx_merged, "merged with a later send, which has the stamp"),
        (tx_rejected, "with an impossible stamp"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", grouped(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use pummel_logic::measure::transmit::Departure;

    use super::*;

    fn times() -> TransmitTimes {
        let mut times = TransmitTimes::default();
        for at in 1..=100 {
            let (left, arrived) = (10_000 + at * 10, Some(60_000));
            times.record(&Departure { sent: 10_000, scheduled: None, left, arrived });
        }
        times.counts.tx_merged = 1_234;
        times
    }

    const SAMPLING: Option<TransmitSampling> = Some(TransmitSampling { every: 64, scheduled: false });

    #[test]
    fn the_text_has_both_parts_and_what_is_missing() {
        assert_eq!(
            words(SAMPLING, &times()),
            "100 requests, one in 64: 500 ns at p50, 990 ns at p99 from the send to the device (out); 49.5 us at p50, \
             50.0 us at p99 from there to the reply (served); 1,234 merged with a later send, which has the stamp"
        );
        assert_eq!(words(SAMPLING, &TransmitTimes::default()), "0 requests, one in 64: none was stamped");
    }

    #[test]
    fn the_result_has_the_figures_with_their_counts() {
        let result = serde_json::to_value(TransmitOut::of(SAMPLING, &times())).unwrap();
        assert_eq!((&result["every"], &result["tx_merged"]), (&64.into(), &1_234.into()));
        assert_eq!((&result["out_us"]["count"], &result["out_us"]["p50"]), (&100.into(), &0.5.into()));
        assert_eq!(result["served_us"]["max"], 49.99);
        assert_eq!(result.get("queued_us"), None);
    }
}
