//! When sampled requests left this machine, as a line of the text report.

use pummel_logic::time::Nanos;
use pummel_measure::summary::time_text;
use pummel_measure::transmit::TransmitCounts;

use crate::document::{SampleFigures, TransmitResult};
use crate::numbers::grouped;

/// What the text report says of the stamps: the medians and 99th percentiles of both parts of the service time.
pub fn words(transmit: &TransmitResult) -> String {
    let text = |us: Option<f64>| us.map_or("-".to_owned(), |us| time_text((us * 1e3).round() as Nanos));
    let of = |times: &SampleFigures| format!("{} at p50, {} at p99", text(times.p50), text(times.p99));
    let every = if transmit.every > 0 { format!(", one in {}", transmit.every) } else { String::new() };
    let mut text = format!("{} requests{every}: ", grouped(transmit.out_us.count));
    if transmit.out_us.count > 0 {
        text += &format!(
            "{} from the send to the device (out); {} from there to the reply (served)",
            of(&transmit.out_us),
            of(&transmit.served_us)
        );
    } else {
        text += "none was stamped";
    }
    if let Some(queued) = transmit.queued_us.as_ref().filter(|queued| queued.count > 0) {
        text += &format!("; {} in the queueing discipline (part of out)", of(queued));
    }
    if let Some(wire) = transmit.wire_us.as_ref().filter(|wire| wire.count > 0) {
        text += &format!("; {} between the card's stamps of request and reply (wire)", of(wire));
    }
    let TransmitCounts { tx_missing, tx_merged, tx_rejected, wire_missing } = transmit.counts;
    for (count, what) in [
        (tx_missing, "without a stamp"),
        (tx_merged, "merged with a later send, which has the stamp"),
        (tx_rejected, "with an impossible stamp"),
        (wire_missing, "without stamps of the card"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", grouped(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::TransmitSampling;
    use pummel_measure::transmit::{Departure, TransmitTimes};

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

    const SAMPLING: Option<TransmitSampling> =
        Some(TransmitSampling { every: 64, scheduled: false, hardware: false });

    #[test]
    fn the_text_has_both_parts_and_what_is_missing() {
        assert_eq!(
            words(&TransmitResult::of(SAMPLING, &times())),
            "100 requests, one in 64: 500 ns at p50, 990 ns at p99 from the send to the device (out); 49.5 us at p50, \
             50.0 us at p99 from there to the reply (served); 1,234 merged with a later send, which has the stamp"
        );
        assert_eq!(
            words(&TransmitResult::of(SAMPLING, &TransmitTimes::default())),
            "0 requests, one in 64: none was stamped"
        );
    }

    #[test]
    fn the_result_has_the_figures_with_their_counts() {
        let result = serde_json::to_value(TransmitResult::of(SAMPLING, &times())).unwrap();
        assert_eq!((&result["every"], &result["tx_merged"]), (&64.into(), &1_234.into()));
        assert_eq!((&result["out_us"]["count"], &result["out_us"]["p50"]), (&100.into(), &0.5.into()));
        assert_eq!(result["served_us"]["max"], 49.99);
        assert_eq!(result.get("queued_us"), None);
    }
}
