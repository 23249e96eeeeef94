//! The error of a Plan that cannot be run, and the bounds that several checks of a Plan share.

use std::fmt;
use std::fmt::Display;

use super::field::FieldPath;
use crate::dist::Dist;
use crate::time::{Nanos, SECOND, typed_time};

/// A value in a Plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field that holds the value.
    pub path: FieldPath,
    /// The value, in the words of the Plan.
    pub value: String,
    /// The values that are accepted, or why this one is not.
    pub expected: String,
}

impl Display for Invalid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} is '{}', but {}", self.path, self.value, self.expected)
    }
}

impl std::error::Error for Invalid {}

/// Largest number that every format of saved plans can hold.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

/// Most clients of a group.
pub const CLIENTS_MAX: u64 = 1_000_000;

/// Most requests outstanding on one connection.
pub const DEPTH_MAX: u64 = 1_000_000;

/// The longest interval of a result, and the longest delay of a store after a miss.
pub const HOUR: Nanos = 3_600 * SECOND;

/// The longest timeout, but for the one that stands for none.
pub const DAY: Nanos = 24 * HOUR;

/// Longest time that is accepted anywhere but in the timeout: a year.
pub const YEAR: Nanos = 365 * 24 * 3_600 * SECOND;

/// Refuses a value.
pub fn refuse<T>(
    path: impl Into<FieldPath>,
    value: impl Display,
    expected: impl Into<String>,
) -> Result<T, Invalid> {
    Err(Invalid { path: path.into(), value: value.to_string(), expected: expected.into() })
}

/// Refuses a value that is wrong.
pub fn refuse_if(
    is_wrong: bool,
    path: impl Into<FieldPath>,
    value: impl Display,
    expected: impl Into<String>,
) -> Result<(), Invalid> {
    if is_wrong { refuse(path, value, expected) } else { Ok(()) }
}

/// Refuses a number that is not from `least` to `most`.
pub fn within(path: impl Into<FieldPath>, value: u64, least: u64, most: u64) -> Result<(), Invalid> {
    if value < least || value > most {
        return refuse(path, value, format!("expected a whole number from {least} to {most}"));
    }
    Ok(())
}

/// Refuses a time that is not from `least` to `most`, which are given with their texts.
pub fn span(
    path: impl Into<FieldPath>,
    value: Nanos,
    least: (Nanos, &str),
    most: (Nanos, &str),
) -> Result<(), Invalid> {
    if value < least.0 || value > most.0 {
        return refuse(path, typed_time(value), format!("expected a time from {} to {}", least.1, most.1));
    }
    Ok(())
}

/// Refuses a number that is not from 0 to 1.
pub fn share(path: impl Into<FieldPath>, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { refuse(path, value, "expected a share from 0 to 1") }
}

/// Refuses a share of nothing or of more than all.
pub fn part(path: impl Into<FieldPath>, value: f64) -> Result<(), Invalid> {
    refuse_if(!(value > 0.0 && value <= 1.0), path, value, "expected a share above 0 and at most 1")
}

/// Refuses distributions that numbers of bytes or whole seconds cannot be drawn from. Unbounded distributions are cut off
/// at 0; a bound below 0 is a mistake.
pub fn size(path: impl Into<FieldPath>, dist: &Dist) -> Result<(), Invalid> {
    match dist.clone().checked() {
        Err(error) => refuse(path, dist, error.to_string()),
        Ok(Dist::Fixed(value)) if value < 0.0 || value.fract() != 0.0 => {
            refuse(path, dist, "expected a whole number, 0 or more, where it is always the same")
        }
        Ok(Dist::Uniform { low, .. }) if low < 0.0 => refuse(path, dist, "expected bounds of 0 or more"),
        Ok(_) if dist.support().1 < 0.0 => refuse(path, dist, "expected numbers of 0 or more"),
        Ok(_) => Ok(()),
    }
}

/// Refuses a distribution of gaps that no factor scales to a mean of `mean_ns`.
pub fn shape(path: impl Into<FieldPath>, dist: &Dist, mean_ns: f64) -> Result<(), Invalid> {
    let scales = |dist: &Dist| dist.factor_to_mean(mean_ns).is_some_and(f64::is_finite);
    if dist.clone().checked().is_ok_and(|dist| scales(&dist)) {
        return Ok(());
    }
    let why = "expected a distribution with a finite mean above 0: gaps are scaled until it fits the rate";
    refuse(path, dist, why)
}
