//! The levels of a scan in closed loop, and the law of scaling through their rates, where one can fit them.

use pummel_measure::scalability::{Level, Scalability};

use crate::document::{CurveDocument, CurveRun};

/// The levels of a scan in closed loop with their rates, without those of runs that the generator limited.
pub fn levels(curve: &CurveDocument) -> Vec<Level> {
    curve.runs.iter().filter(|run| !run.is_of_generator()).filter_map(level_of).collect()
}

/// The level of a run of a scan in closed loop with its rate; the variance of the rate follows from its interval, and is 0 where that
/// is not known.
fn level_of(run: &CurveRun) -> Option<Level> {
    let level = run.level.as_ref()?;
    let deviation = run.rate_ci.map_or(0.0, |[low, high]| (high - low) / 2.0 / 1.96);
    Some(Level { n: f64::from(level.n), rate: run.rate, variance: deviation * deviation })
}

/// A level does no more than this many times what the one below it does, for each of its connections or threads, or else no law of
/// scaling fits.
const JUMP: f64 = 1.25;

/// The law of scaling through the rates at these levels; `None` for too few of them, and where none fits.
pub fn law_of(levels: &[Level]) -> Option<Scalability> {
    Scalability::of(levels).filter(|_| jump(levels).is_none())
}

/// Two levels of which the greater does more for each of its connections or threads than a law of scaling can have it do, since such rates
/// were not made in one way: the first level that jumps, and the least level or else the one before it. `None` where no level jumps.
pub fn jump(levels: &[Level]) -> Option<(Level, Level)> {
    let mut levels = levels.to_vec();
    levels.sort_by(|one, other| one.n.total_cmp(&other.n));
    let is_jump = |low: &Level, high: &Level| low.rate > 0.0 && high.rate / low.rate > JUMP * high.n / low.n;
    let (low, high) =
        levels.windows(2).map(|pair| (pair[0], pair[1])).find(|(low, high)| is_jump(low, high))?;
    let least = levels.first().filter(|least| is_jump(least, &high));
    Some((least.copied().unwrap_or(low), high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_law_is_fitted_to_rates_that_jump() {
        let level = |at: u32| {
            let n = f64::from(1 << at);
            Level { n, rate: 1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0)), variance: 0.0 }
        };
        let mut levels: Vec<Level> = (0..7).map(level).collect();
        assert!(law_of(&levels).is_some_and(|law| law.peak.is_some_and(|peak| (30.0..32.0).contains(&peak))));
        assert_eq!((law_of(&levels[..3]), jump(&levels)), (None, None));
        levels[0].rate /= 5.0;
        assert_eq!(law_of(&levels), None);
        assert_eq!(jump(&levels).map(|(low, high)| (low.n, high.n)), Some((1.0, 2.0)));
        levels[0].rate *= 5.0;
        levels[3].rate *= 2.0;
        let jumped = jump(&levels).map(|(low, high)| (low.n, high.n));
        assert_eq!(jumped, Some((1.0, 8.0)), "it does more for each than the least level");
    }
}
