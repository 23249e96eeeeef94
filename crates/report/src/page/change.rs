//! Scales of changes: percent while no figure is twice another, beyond that factors on a logarithmic axis.

use super::axis::{multiples, round_step, round_text, ticks_of};
use super::svg::{Anchor, Picture};
use crate::numbers::number;

/// Least half length of a scale, as a share.
const LEAST: f64 = 0.05;

/// Figures on an axis of factors from which on only powers of ten have one.
const TICKS_MAX: usize = 7;

/// A scale of changes with no change on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeScale {
    /// Both ends: shares, or logarithms of factors.
    pub ends: (f64, f64),
    is_of_factors: bool,
}

impl ChangeScale {
    /// A scale that shows all of these changes, which are shares of the first figure: 0.1 for 10 % more.
    pub fn of(shares: impl Iterator<Item = f64>) -> ChangeScale {
        let (mut low, mut high) = (-LEAST, LEAST);
        for share in shares.filter(|share| share.is_finite() && *share > -1.0) {
            (low, high) = (low.min(share), high.max(share));
        }
        let is_of_factors = high > 1.0 || low < -0.5;
        if is_of_factors {
            (low, high) = (low.ln_1p(), high.ln_1p());
        }
        let room = (high - low) * 0.06;
        ChangeScale { ends: (low - room, high + room), is_of_factors }
    }

    /// A change in the unit of the ends.
    pub fn value(&self, share: f64) -> f64 {
        if self.is_of_factors { share.max(-0.999_999_9).ln_1p() } else { share }
    }

    /// The place of a change from 0 at the lower end to 1 at the upper one.
    pub fn at(&self, share: f64) -> f64 {
        let (low, high) = self.ends;
        ((self.value(share) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Round changes with their words, for an axis with room for about this many.
    pub fn ticks(&self, room: f64) -> Vec<(f64, String)> {
        let (low, high) = self.ends;
        if !self.is_of_factors {
            return multiples(round_step((high - low) / room), low, high)
                .map(|at| (at, bare_percent(at)))
                .collect();
        }
        let mut factors = ticks_of(low.exp(), high.exp());
        if factors.len() > TICKS_MAX {
            factors.retain(|factor| (factor.log10() - factor.log10().round()).abs() < 1e-6);
        }
        let words = |factor: f64| match factor {
            factor if factor < 0.999 => format!("x 1/{}", round_text(1.0 / factor)),
            factor => format!("x {}", round_text(factor)),
        };
        factors.into_iter().map(|factor| (factor - 1.0, words(factor))).collect()
    }

    /// Draws the lines and the figures of the scale between two heights, the line of no change among them. `ends` are its left and its
    /// right end.
    pub fn draw(&self, picture: &mut Picture, (left, right): (f64, f64), (top, bottom): (f64, f64)) {
        let x = |share: f64| left + self.at(share) * (right - left);
        let mut free = f64::NEG_INFINITY;
        for (share, words) in self.ticks(if picture.layout.is_narrow() { 4.0 } else { 8.0 }) {
            let class = if share == 0.0 { "axis" } else { "grid" };
            picture.line(class, (x(share), top), (x(share), bottom));
            let half = words.len() as f64 * 3.1;
            if x(share) - half >= free {
                picture.words("tick", (x(share), bottom + 14.0), Anchor::Middle, &words);
                free = x(share) + half + 4.0;
            }
        }
        picture.words("tick unit", (right, bottom + 30.0), Anchor::End, self.title());
    }

    /// The title of an axis of this scale.
    pub fn title(&self) -> &'static str {
        if self.is_of_factors { "factor, logarithmic" } else { "change in %" }
    }
}

/// A share in percent with its sign, without its unit.
fn bare_percent(share: f64) -> String {
    let rounded = (share * 1e3).round() / 10.0;
    match rounded {
        0.0 => "0".to_owned(),
        more if more > 0.0 => format!("+{more}"),
        less => less.to_string(),
    }
}

/// The interval of a change in words, for those who point at it.
pub fn interval_text(interval: Option<(f64, f64)>) -> String {
    interval.map_or("no interval is known".to_owned(), |(low, high)| {
        format!("95 % sure: {} to {}", change_text(low), change_text(high))
    })
}

/// A change in words: percent with a sign, or a factor where one figure is more than twice the other.
pub fn change_text(share: f64) -> String {
    let factor = share + 1.0;
    match factor {
        _ if (0.5..=2.0).contains(&factor) => format!("{} %", bare_percent(share)),
        factor if factor >= 9.95 => format!("x {}", number(factor)),
        factor if factor > 1.0 => format!("x {factor:.1}"),
        factor if factor >= 0.0995 => format!("x {factor:.2}"),
        factor if factor > 0.0 => format!("x 1/{}", number(1.0 / factor)),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_percent_up_to_twice_and_factors_beyond() {
        let words = [0.103, -0.3, -0.0001, 1.44, 1_439.7, -0.58, -0.999].map(change_text);
        assert_eq!(words, ["+10.3 %", "-30 %", "0 %", "x 2.4", "x 1,441", "x 0.42", "x 1/1,000"]);
    }

    #[test]
    fn a_scale_is_logarithmic_beyond_twice() {
        let percent = ChangeScale::of([0.1, -0.2].into_iter());
        assert_eq!(percent.title(), "change in %");
        assert!(percent.ticks(6.0).iter().any(|(_, words)| words == "+10"), "{:?}", percent.ticks(6.0));
        let factors = ChangeScale::of([0.1, 1_439.0].into_iter());
        let ticks: Vec<String> = factors.ticks(6.0).into_iter().map(|(_, words)| words).collect();
        assert_eq!(ticks, ["x 1", "x 10", "x 100", "x 1,000"]);
        let middle = factors.at(37.0);
        assert!((0.4..0.6).contains(&middle), "{middle}");
    }
}
