//! Relative changes in words and cells, in percent or as factors.
//!
//! One rule: changes of pairs are in percent, and factors from tenfold on; changes between runs that are no pairs are factors.

use pummel_measure::compare::Design;
use pummel_measure::words::grouped;

/// The factor from which on a change is no longer told in percent.
const FACTOR_OF_PERCENT_MAX: f64 = 10.0;

/// The change in percent from which on its digits after the point say nothing.
const WHOLE_FROM_PERCENT: f64 = 9.95;

/// How a change and the ends of its interval are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeUnit {
    /// In percent, with one digit after the point.
    Tenths,
    /// In whole percent.
    Percent,
    /// As factors.
    Factor,
}

impl ChangeUnit {
    /// The unit of a change, such as 0.02 for 2 % more, and of its interval.
    pub fn of(design: Design, change: f64, interval: Option<(f64, f64)>) -> ChangeUnit {
        let factor = 1.0 + change;
        let is_large = factor >= FACTOR_OF_PERCENT_MAX || factor <= 1.0 / FACTOR_OF_PERCENT_MAX;
        if design == Design::Apart || is_large {
            return ChangeUnit::Factor;
        }
        let ends = interval.map_or([change; 2], |(low, high)| [low, high]);
        let is_small = |change: &f64| 100.0 * change.abs() < WHOLE_FROM_PERCENT;
        if ends.iter().chain([&change]).all(is_small) { ChangeUnit::Tenths } else { ChangeUnit::Percent }
    }

    /// The change as a cell, such as `+49 %` or `x 1.1`.
    pub fn cell(self, change: f64) -> String {
        match self {
            ChangeUnit::Factor => format!("x {}", factor(1.0 + change)),
            percent => match percent.signed(change) {
                number if number.starts_with('-') || number == "0" => format!("{number} %"),
                number => format!("+{number} %"),
            },
        }
    }

    /// The ends of an interval as a cell, such as `-7..39`.
    pub fn ends(self, (low, high): (f64, f64)) -> String {
        match self {
            ChangeUnit::Factor => format!("{}..{}", factor(1.0 + low), factor(1.0 + high)),
            percent => format!("{}..{}", percent.signed(low), percent.signed(high)),
        }
    }

    /// What a figure is by a change, such as `49 % higher`.
    pub fn figure(self, change: f64) -> String {
        if self == ChangeUnit::Factor {
            return format!("{} times as high", factor(1.0 + change));
        }
        match self.signed(change.abs()).as_str() {
            "0" => "the same".to_owned(),
            size => format!("{size} % {}", if change > 0.0 { "higher" } else { "lower" }),
        }
    }

    /// The interval behind such words, in the direction of the change, such as ` (14..90 %)`.
    pub fn behind(self, change: f64, (low, high): (f64, f64)) -> String {
        let is_lower = change < 0.0 && self.signed(change) != "0";
        match self {
            ChangeUnit::Factor => format!(" ({})", self.ends((low, high))),
            percent if is_lower => format!(" ({} %)", percent.ends((-high, -low))),
            percent => format!(" ({} %)", percent.ends((low, high))),
        }
    }

    /// A change in percent without its unit, with a sign where it is for the less; a change of nothing has no sign.
    fn signed(self, change: f64) -> String {
        let digits = match self {
            ChangeUnit::Tenths => format!("{:.1}", 100.0 * change.abs()),
            _ => grouped((100.0 * change.abs()).round() as u64),
        };
        match (digits.as_str(), change < 0.0) {
            ("0.0" | "0", _) => "0".to_owned(),
            (_, true) => format!("-{digits}"),
            (_, false) => digits,
        }
    }
}

/// One end of what is possible, such as `60 % lower` or `twice as high`.
pub fn possible(change: f64) -> String {
    let (size, factor_of) = (change.abs(), 1.0 + change);
    match change {
        _ if size < 0.000_5 => "the same".to_owned(),
        change if change < 0.0 && factor_of < 1.0 / FACTOR_OF_PERCENT_MAX => {
            format!("{} times as high", factor(factor_of))
        }
        change if change < 0.0 => format!("{} lower", size_words(size)),
        _ if (1.95..2.05).contains(&factor_of) => "twice as high".to_owned(),
        change if change < 0.95 => format!("{} higher", size_words(size)),
        _ => format!("{} times as high", factor(factor_of)),
    }
}

/// The size of a change in percent, such as `4.4 %` or `49 %`; from tenfold on as a factor.
pub fn size_words(size: f64) -> String {
    let percent = 100.0 * size;
    match percent {
        percent if percent < WHOLE_FROM_PERCENT => {
            let digits = format!("{percent:.1}");
            format!("{} %", digits.strip_suffix(".0").unwrap_or(&digits))
        }
        percent if 1.0 + size < FACTOR_OF_PERCENT_MAX => format!("{percent:.0} %"),
        _ => format!("a factor of {}", factor(1.0 + size)),
    }
}

/// A factor with as many digits as tell it from no change.
fn factor(factor: f64) -> String {
    match factor {
        factor if (factor - 1.0).abs() < 0.0995 => format!("{factor:.2}"),
        factor if factor >= 9.95 => grouped(factor.round() as u64),
        factor if factor >= 0.995 => format!("{factor:.1}"),
        factor if factor >= 0.0995 => format!("{factor:.2}"),
        factor if factor >= 0.000_095 => {
            let digits = (1.0 - factor.log10().floor()) as usize;
            format!("{factor:.digits$}")
        }
        _ => "below 0.0001".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(design: Design, change: f64, interval: Option<(f64, f64)>) -> [String; 2] {
        let unit = ChangeUnit::of(design, change, interval);
        [unit.cell(change), interval.map_or_else(String::new, |ends| unit.ends(ends))]
    }

    #[test]
    fn pairs_are_told_in_percent_and_from_tenfold_on_as_factors() {
        let of = |change, low, high| cells(Design::Paired, change, Some((low, high)));
        assert_eq!(of(0.49, 0.14, 0.90), ["+49 %", "14..90"]);
        assert_eq!(of(-0.03, -0.14, 0.08), ["-3 %", "-14..8"]);
        assert_eq!(of(0.044, 0.019, 0.07), ["+4.4 %", "1.9..7.0"]);
        assert_eq!(of(0.0, 0.0001, -0.0001), ["0 %", "0..0"]);
        assert_eq!(of(8.0, 7.0, 9.2), ["+800 %", "700..920"]);
        assert_eq!(of(999.0, 899.0, 1_099.0), ["x 1,000", "900..1,100"]);
        assert_eq!(of(-0.999, -0.9992, -0.9988), ["x 0.0010", "0.00080..0.0012"]);
    }

    #[test]
    fn runs_that_are_no_pairs_are_told_in_factors() {
        let of = |factor: f64| cells(Design::Apart, factor - 1.0, None)[0].clone();
        assert_eq!(
            [1.104, 0.765, 0.4226, 1.262, 144.2, 1.042, 0.95].map(of),
            ["x 1.1", "x 0.77", "x 0.42", "x 1.3", "x 144", "x 1.04", "x 0.95"]
        );
    }

    #[test]
    fn sentences_have_the_interval_in_the_direction_of_the_change() {
        let of = |change, low, high| {
            let unit = ChangeUnit::of(Design::Paired, change, Some((low, high)));
            unit.figure(change) + &unit.behind(change, (low, high))
        };
        assert_eq!(of(0.49, 0.14, 0.90), "49 % higher (14..90 %)");
        assert_eq!(of(-0.091, -0.095, -0.08), "9.1 % lower (8.0..9.5 %)");
        assert_eq!(of(999.0, 899.0, 1_099.0), "1,000 times as high (900..1,100)");
        assert_eq!(of(0.0, -0.0001, 0.0), "the same (0..0 %)");
        assert_eq!(
            [-0.6, 1.02, 0.019, 2.4].map(possible),
            ["60 % lower", "twice as high", "1.9 % higher", "3.4 times as high"]
        );
        assert_eq!([0.05, 0.025, 0.2, 20.0].map(size_words), ["5 %", "2.5 %", "20 %", "a factor of 21"]);
    }
}
