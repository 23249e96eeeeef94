//! The baseline of a run: round trips that were made one at a time before its measured phase.

use std::collections::BTreeMap;

use pummel_logic::plan::baseline::NoOwnReads;
use pummel_measure::baseline::{Baseline, RoundTrips};
use serde::{Deserialize, Serialize};

use super::{SampleFigures, known};

/// Round trips that were made one at a time before the measured phase, by each thread on one connection to each
/// server. They are in no other figure of the result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BaselineResult {
    /// Requests that ask for nothing: the version of memcached, PING of RESP servers. Error replies count too.
    pub empty: RoundTripsResult,
    /// Reads of the run (get, gets, hget) by its weights and popularity; absent where none were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<RoundTripsResult>,
    /// Why no reads of the run were to be made; absent where they were.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub no_own: Option<NoOwnReads>,
    /// Connections on which the round trips were not made as they were to be, by the reason: `not-open` (none was open),
    /// `closed`, `refused` (the server takes no more connections), `silent` (no reply in time), `malformed` (a reply
    /// that the protocol does not allow), `slow` (too few replies in the time).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<String, u64>,
}

/// Round trips of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RoundTripsResult {
    /// Requests that were sent. A server counts them too.
    pub requests: u64,
    /// Times from sending a request to the arrival of its reply, without the first 5 of each connection.
    pub times_us: SampleFigures,
    /// Histogram of these times in nanoseconds, in HdrHistogram's V2 encoding in base64.
    pub histogram: String,
}

impl BaselineResult {
    pub(super) fn of(baseline: &Baseline) -> BaselineResult {
        let faults = baseline.faults.iter();
        BaselineResult {
            empty: RoundTripsResult::of(&baseline.empty),
            own: (baseline.own.requests > 0).then(|| RoundTripsResult::of(&baseline.own)),
            no_own: baseline.no_own,
            faults: faults.map(|(fault, count)| (fault.name().to_owned(), *count)).collect(),
        }
    }
}

impl RoundTripsResult {
    fn of(trips: &RoundTrips) -> RoundTripsResult {
        RoundTripsResult {
            requests: trips.requests,
            times_us: SampleFigures::of(&trips.times),
            histogram: trips.times.to_base64(),
        }
    }
}
