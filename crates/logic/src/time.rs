//! Time as plain numbers, given by the caller: this crate reads no clock.

/// A point in time or a span, in nanoseconds of the run's monotonic clock.
pub type Nanos = u64;

/// The time of an event that never happens.
pub const NEVER: Nanos = u64::MAX;

/// One microsecond in nanoseconds.
pub const MICROSECOND: Nanos = 1_000;

/// One millisecond in nanoseconds.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second in nanoseconds.
pub const SECOND: Nanos = 1_000_000_000;

/// Nanoseconds as seconds.
pub fn seconds(ns: Nanos) -> f64 {
    ns as f64 / SECOND as f64
}

/// A time as it is typed: in the largest unit that keeps it a whole number, such as `90s` or `1500ms`.
pub fn typed_time(ns: Nanos) -> String {
    match ns {
        _ if ns.is_multiple_of(SECOND) => format!("{}s", ns / SECOND),
        _ if ns.is_multiple_of(MILLISECOND) => format!("{}ms", ns / MILLISECOND),
        _ if ns.is_multiple_of(MICROSECOND) => format!("{}us", ns / MICROSECOND),
        _ => format!("{ns}ns"),
    }
}

/// A length of time that no run reaches, 146 years, and that can be added to the time of a clock.
pub const FAR_NS: Nanos = NEVER / 4;

/// Seconds as nanoseconds, rounded to the nearest, and cut off at the ends of the range.
pub fn from_seconds(seconds: f64) -> Nanos {
    libm::round(seconds * SECOND as f64) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_typed_in_whole_numbers() {
        let times = [0, 90 * SECOND, 1_500 * MILLISECOND, 2_000, 2_001].map(typed_time);
        assert_eq!(times, ["0s", "90s", "1500ms", "2us", "2001ns"]);
    }
}
