//! The words for the baseline of a run: round trips that were made one at a time before it.

use pummel_logic::plan::baseline::NoOwnReads;
use pummel_measure::baseline::BaselineFault;
use pummel_measure::words::counted;

use crate::document::{BaselineResult, RoundTripsResult};
use crate::view::cells::time;

/// The times of the round trips, and why there are none, as clauses without a full stop.
pub fn baseline_words(baseline: &BaselineResult) -> String {
    let took = |trips: &RoundTripsResult| {
        let times = &trips.times_us;
        Some(format!("{} (p50), {} (p99)", time(times.p50?), time(times.p99?)))
    };
    let empty = took(&baseline.empty).map(|times| format!("an empty round trip takes {times}"));
    let own = baseline.own.as_ref().and_then(took).map(|times| format!("a read of the run alone {times}"));
    let no_own = baseline.no_own.filter(|_| empty.is_some()).map(|why| why_no_own(why).to_owned());
    let is_measured = empty.is_some();
    let faults = baseline.faults.iter().filter_map(|(name, &count)| {
        let why = why_not(BaselineFault::from_name(name)?);
        Some(if is_measured {
            format!("on {}: {why}", counted(count, "connection"))
        } else {
            format!("none: {why}")
        })
    });
    empty.into_iter().chain(own).chain(no_own).chain(faults).collect::<Vec<String>>().join("; ")
}

/// The reason why no reads of the run were made, as a clause.
fn why_no_own(why: NoOwnReads) -> &'static str {
    match why {
        NoOwnReads::NotDrawn => "no reads of the run, whose requests are not drawn from a mix",
        NoOwnReads::NoReads => "no reads of the run, whose mix has no get, gets or hget",
        NoOwnReads::NotPlain => "no reads of the run, which do more than read records",
        NoOwnReads::KeysChange => "no reads of the run, whose keys change",
        NoOwnReads::Tracked => "no reads of the run, as the server would send messages about their keys",
    }
}

/// The reason why round trips were not made, as a clause.
fn why_not(fault: BaselineFault) -> &'static str {
    match fault {
        BaselineFault::NotOpen => "no connection was open before the measured phase",
        BaselineFault::Closed => "the server closed the connection",
        BaselineFault::Refused => "the server takes no more connections",
        BaselineFault::Silent => "the server did not answer in time",
        BaselineFault::Malformed => "the server answered something else than it was asked",
        BaselineFault::Slow => "too few replies came in the time for them",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::document::SampleFigures;

    fn trips(p50: f64, p99: f64) -> RoundTripsResult {
        let times_us = SampleFigures { p50: Some(p50), p99: Some(p99), ..SampleFigures::default() };
        RoundTripsResult { requests: 100, times_us, histogram: String::new() }
    }

    #[test]
    fn the_times_of_each_kind_are_said_and_why_some_are_missing() {
        let whole = BaselineResult {
            empty: trips(9.5, 34.0),
            own: Some(trips(12.0, 40.0)),
            ..BaselineResult::default()
        };
        assert_eq!(
            baseline_words(&whole),
            "an empty round trip takes 9.50 us (p50), 34.0 us (p99); a read of the run alone 12.0 us (p50), 40.0 us (p99)"
        );
        let half = BaselineResult {
            no_own: Some(NoOwnReads::NoReads),
            own: None,
            faults: BTreeMap::from([("silent".to_owned(), 2)]),
            ..whole
        };
        assert_eq!(
            baseline_words(&half),
            "an empty round trip takes 9.50 us (p50), 34.0 us (p99); no reads of the run, whose mix has no get, gets or \
             hget; on 2 connections: the server did not answer in time"
        );
    }

    #[test]
    fn a_baseline_without_a_reply_is_its_reason() {
        let faults = BTreeMap::from([("closed".to_owned(), 1), ("of-a-later-version".to_owned(), 1)]);
        let none = BaselineResult { faults, no_own: Some(NoOwnReads::NoReads), ..BaselineResult::default() };
        assert_eq!(baseline_words(&none), "none: the server closed the connection");
    }
}
