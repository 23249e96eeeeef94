//! The values of `serve`'s options that describe faults and changes of service times.

use pummel_fronts::values::{ValueError, count, time};
use pummel_logic::time::seconds;
use pummel_testserver::{ServerFault, ServiceDrift};

/// A fault of the built-in server, `KIND` or `KIND=N`, where N is a [`count`], and a [`time`] for `early-expiry`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for an unknown kind, and for a number that its kind does not
/// take.
pub fn fault(text: &str) -> Result<ServerFault, ValueError> {
    let plain = text.split_once('=').map(|(kind, number)| {
        let number = match kind {
            "early-expiry" => time(number).map(|span_ns| seconds(span_ns).to_string()),
            _ => count(number).map(|count| count.to_string()),
        };
        // The fault's own parser says what its kind takes in place of what cannot be read.
        format!("{kind}={}", number.unwrap_or_default())
    });
    plain.as_deref().unwrap_or(text).parse().map_err(ValueError)
}

/// A change of the built-in server's service times, `step:FACTOR,AFTER` or `decay:FACTOR,TAU`, with a [`time`] each.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for every other text, and for factors and times out of range.
pub fn service_drift(text: &str) -> Result<ServiceDrift, ValueError> {
    let plain = text.rsplit_once(',').map(|(head, span)| {
        format!("{head},{}", time(span).map(|span_ns| seconds(span_ns).to_string()).unwrap_or_default())
    });
    plain.as_deref().unwrap_or(text).parse().map_err(ValueError)
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::{MILLISECOND, SECOND};
    use pummel_testserver::CountedFault;

    use super::*;

    #[test]
    fn drifts_of_service_times_have_times_with_units() {
        let step = ServiceDrift::Step { factor: 1.3, after_ns: 250 * MILLISECOND };
        assert_eq!(service_drift("step:1.3,250ms"), Ok(step));
        assert_eq!(service_drift("decay:2,2s"), Ok(ServiceDrift::Decay { factor: 2.0, tau_ns: 2 * SECOND }));
        for text in ["step:1.3,0s", "step:1.3,5x", "decay:2", "2s", "step:-1,5s"] {
            let words = service_drift(text).expect_err(text).to_string();
            assert!(words.contains("step:FACTOR,AFTER or decay:FACTOR,TAU"), "{text}: {words}");
        }
    }

    #[test]
    fn faults_have_counts_and_times() {
        for (text, plain) in [
            ("close-after=1.5k", CountedFault::CloseAfter.at(1_500)),
            ("flip=1", CountedFault::Flip.at(1)),
            ("early-expiry=250ms", ServerFault::EarlyExpiry(250 * MILLISECOND)),
            ("early-expiry=2", ServerFault::EarlyExpiry(2 * SECOND)),
            ("refuse", ServerFault::Refuse),
        ] {
            assert_eq!(fault(text), Ok(plain), "{text}");
        }
        for (text, part) in [
            ("close-after=0", "at least 1"),
            ("close-after=+5", "at least 1"),
            ("close-after", "at least 1"),
            ("close-after=5s", "at least 1"),
            ("early-expiry=1e3", "above 0"),
            ("early-expiry=0", "above 0"),
            ("refuse=1", "takes no number"),
            ("explode=1", "close-after=N"),
        ] {
            let error = fault(text).expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
