//! A profile beside the trace that it was fitted to: as many requests are made from it, and fitted as those of the trace.

use std::time::{Duration, Instant};

use pummel_fronts::native::workloads::{Profile, ReadThrough};
use pummel_logic::plan::{Data, Mix};
use pummel_traffic::fit::{Comparison, Fit, Fitter, Load, RowSink, generate};

/// The comparison of a profile with the trace takes this much of the time that reading the trace took, and at least so long.
const TIMES: u32 = 2;
const LEAST: Duration = Duration::from_secs(10);

/// Rows of a profile that are made between two looks at the time.
const ROWS_PER_LOOK: u64 = 1 << 12;

/// The longest time that the requests of a profile are made for, where reading the trace took so long.
pub(super) fn limit(reading: Duration) -> Duration {
    reading.saturating_mul(TIMES).max(LEAST)
}

/// A trace beside the requests of a profile.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// The figures of both.
    pub(super) comparison: Comparison,
    /// Requests of the profile that were made.
    pub(super) made: u64,
    /// Requests that the trace has, without the fills that the profile makes itself.
    pub(super) wanted: u64,
}

impl Check {
    /// Compares a trace with the profile that was fitted to it.
    ///
    /// # Errors
    /// Returns a sentence if the requests of the profile cannot be made.
    pub(super) fn of_own(fit: &Fit, text: &str, seed: u64, limit: Duration) -> Result<Check, String> {
        let profile = Profile::read(text).map_err(|refusal| refusal.0)?;
        Check::of(fit, &profile, seed, limit)
    }

    /// Makes as many requests of a profile as a trace has, or as many as are made within `limit`, and compares both.
    ///
    /// # Errors
    /// Returns a sentence if the requests of the profile cannot be made.
    pub(super) fn of(fit: &Fit, profile: &Profile, seed: u64, limit: Duration) -> Result<Check, String> {
        let wanted = match profile.read_through {
            Some(_) => fit.requests - fit.fills(),
            None => fit.requests,
        };
        let (end, mut fitter, mut rows) = (Instant::now() + limit, Fitter::default(), 0u64);
        let made = make(fit, profile, wanted, seed, &mut |row| {
            fitter.take(row);
            rows += 1;
            !rows.is_multiple_of(ROWS_PER_LOOK) || Instant::now() < end
        })?;
        let comparison = match made >= wanted {
            true => Comparison::of(fit, &fitter.end()),
            false => Comparison::of_first(fit, &fitter.end()),
        };
        Ok(Check { comparison, made: made.min(wanted), wanted })
    }

    /// Whether as many requests were made as the trace has.
    pub(super) fn is_whole(&self) -> bool {
        self.made >= self.wanted
    }
}

/// Makes requests of a profile at times that are as exact as those of a trace. Returns their number.
fn make(
    fit: &Fit,
    profile: &Profile,
    requests: u64,
    seed: u64,
    sink: &mut RowSink<'_>,
) -> Result<u64, String> {
    let data = Data {
        records: profile.records,
        seed: 0,
        key_prefix: profile.key_prefix.clone(),
        key_size: profile.key_size.clone(),
        value_size: profile.value_size.clone(),
        expiry_s: profile.ttl.clone(),
        value_classes: profile.value_classes.clone(),
        ..Data::default()
    };
    let mix = Mix {
        popularity: profile.popularity.clone(),
        fresh: profile.fresh,
        absent: profile.absent,
        churn: profile.churn.clone(),
        read_through_ns: profile.read_through.map(|ReadThrough(delay_ns)| delay_ns),
        ..Mix::of(&profile.mix)
    };
    let load = Load {
        data: &data,
        mix: &mix,
        rate: profile.rate,
        is_even: profile.arrivals.as_deref() == Some("constant"),
        burst: profile.burst,
        resolution_ns: u32::try_from(fit.resolution_ns).unwrap_or(u32::MAX),
    };
    generate(&load, requests, seed, sink)
}
