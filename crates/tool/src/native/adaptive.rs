//! What the options say about a warm-up that ends by itself, and about a measurement that ends when enough is known.

use pummel_logic::plan::{Adaptive, Settle, Until};
use pummel_logic::time::{Nanos, SECOND};

#[cfg(feature = "agents")]
use crate::job::UsageError;
use crate::native::options::PaceArgs;
#[cfg(feature = "agents")]
use crate::native::options::RunArgs;
use crate::values::WarmUpTime;

/// How long a run measures that is told neither a time nor a number of requests.
const TIME_DEFAULT_NS: Nanos = 10 * SECOND;

/// What is decided while the run goes on.
pub(super) fn of(pace: &PaceArgs) -> Adaptive {
    let settles = matches!(pace.warmup, WarmUpTime::Auto(_));
    let until = |(quantile, half_width)| Until { quantile, half_width, least_ns: pace.min_time };
    Adaptive { settle: settles.then(|| Settle::before(known_ns(pace))), until: pace.until.map(until) }
}

/// The longest time of the warm-up; `None` where there is none.
pub(super) fn warm_up_ns(pace: &PaceArgs) -> Option<Nanos> {
    match pace.warmup {
        WarmUpTime::Fixed(time_ns) => Some(time_ns).filter(|time_ns| *time_ns > 0),
        WarmUpTime::Auto(longest_ns) => {
            Some(longest_ns.unwrap_or_else(|| Settle::longest_ns(known_ns(pace))))
        }
    }
}

/// The longest time of the measurement; `None` where only a number of requests ends it.
pub(super) fn measured_ns(pace: &PaceArgs) -> Option<Nanos> {
    match pace.until {
        Some(_) => Some(pace.max_time),
        None => pace.time.or_else(|| pace.requests.is_none().then_some(TIME_DEFAULT_NS)),
    }
}

/// The length of the measurement, where it is known before.
fn known_ns(pace: &PaceArgs) -> Option<Nanos> {
    measured_ns(pace).filter(|_| pace.until.is_none())
}

/// Refuses what is not agreed with agents while a run goes on.
#[cfg(feature = "agents")]
pub(super) fn without_agents(args: &RunArgs) -> Result<(), UsageError> {
    let pace = &args.pace;
    let is_auto = matches!(pace.warmup, WarmUpTime::Auto(_));
    let flag = match (is_auto, pace.until) {
        (true, _) => "--warmup auto",
        (false, Some(_)) => "--until",
        (false, None) => return Ok(()),
    };
    match super::fleet(args)? {
        None => Ok(()),
        Some(_) => Err(UsageError::Missing(format!(
            "'{flag}' is accepted in runs of one process, and not beside agents: give them a time"
        ))),
    }
}
