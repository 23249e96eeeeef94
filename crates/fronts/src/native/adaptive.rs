//! What the options say about a warm-up that ends by itself, and about a measurement that ends when enough is known.

use pummel_logic::plan::{Adaptive, Settle, Until};
use pummel_logic::time::{Nanos, SECOND};

use crate::native::connection_steps;
use crate::native::options::PaceArgs;
use crate::native::phase_file::PhaseFile;
use crate::values::{UntilEviction, WarmUpTime};

/// How long a run measures that is told neither a time nor a number of requests.
const TIME_DEFAULT_NS: Nanos = 10 * SECOND;

/// What is decided while the run goes on.
pub(super) fn of(pace: &PaceArgs) -> Adaptive {
    let settles = matches!(pace.warmup, WarmUpTime::Auto(_));
    let until = |(quantile, half_width)| Until { quantile, half_width, least_ns: pace.min_time };
    Adaptive {
        settle: settles.then(|| Settle::before(known_ns(pace))),
        first_eviction: pace.warmup_until.is_some(),
        until: pace.until.map(until),
    }
}

/// The longest time of the warm-up; `None` where there is none.
pub(super) fn warm_up_ns(pace: &PaceArgs) -> Option<Nanos> {
    let longest =
        |longest_ns: Option<Nanos>| longest_ns.unwrap_or_else(|| Settle::longest_ns(known_ns(pace)));
    if let Some(UntilEviction(longest_ns)) = pace.warmup_until {
        return Some(longest(longest_ns));
    }
    match pace.warmup {
        WarmUpTime::Fixed(time_ns) => Some(time_ns).filter(|time_ns| *time_ns > 0),
        WarmUpTime::Auto(longest_ns) => Some(longest(longest_ns)),
    }
}

/// The longest time of the measurement; `None` where only a number of requests ends it.
pub(super) fn measured_ns(pace: &PaceArgs) -> Option<Nanos> {
    match pace.until {
        Some(_) => Some(pace.max_time),
        None if pace.phases.is_some() => pace.phases.as_ref().map(PhaseFile::time_ns),
        None if !pace.stage.is_empty() => Some(staged_ns(pace)),
        None if pace.stage_connections.is_some() => {
            connection_steps::time_of(pace.connection_steps()).or(pace.time)
        }
        None => pace.time.or_else(|| pace.requests.is_none().then_some(TIME_DEFAULT_NS)),
    }
}

/// The time of all stages together.
fn staged_ns(pace: &PaceArgs) -> Nanos {
    let stages = pace.stage.iter().flat_map(|stages| &stages.0);
    stages.map(|stage| stage.time_ns).fold(0, Nanos::saturating_add)
}

/// The length of the measurement, where it is known before.
fn known_ns(pace: &PaceArgs) -> Option<Nanos> {
    measured_ns(pace).filter(|_| pace.until.is_none())
}
