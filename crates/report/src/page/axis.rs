//! Axes: from figures to places in a picture, with ticks at round numbers.

use std::f64::consts::LOG10_2;

use super::svg::{Anchor, LEFT, Picture, RIGHT};
use crate::numbers::{grouped, number};

/// Columns of a picture over shares of the requests, each of which says what stands under the pointer.
const QUANTILE_COLUMNS: u32 = 60;

/// Most ticks of a linear axis.
const TICKS_MAX: u32 = 100;

/// The greatest power of ten, and the least below zero, that a tick has.
const POWERS_MAX: i32 = 30;

/// The greatest time of an axis, in microseconds; the least one is its inverse.
const TIME_MAX_US: f64 = 1e25;

/// The unit of all times on a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Name of the unit.
    pub name: &'static str,
    /// Microseconds in one.
    pub us: f64,
}

impl Unit {
    /// The unit for a page whose median response is this many microseconds: milliseconds from 10 ms on.
    pub fn of(median_us: Option<f64>) -> Unit {
        if median_us.is_some_and(|us| us >= 10_000.0) {
            Unit { name: "ms", us: 1e3 }
        } else {
            Unit { name: "us", us: 1.0 }
        }
    }

    /// A time without its unit.
    pub fn plain(&self, us: f64) -> String {
        number(us / self.us)
    }

    /// A time with its unit.
    pub fn text(&self, us: f64) -> String {
        format!("{} {}", self.plain(us), self.name)
    }
}

/// A logarithmic axis of times, upwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAxis {
    low: f64,
    high: f64,
    top: f64,
    bottom: f64,
}

impl TimeAxis {
    /// An axis from `top` to `bottom` that shows all of `times`, which are microseconds; `None` where none is above 0.
    pub fn of(times: impl Iterator<Item = f64>, top: f64, bottom: f64) -> Option<TimeAxis> {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for time in times.filter(|time| time.is_finite() && *time > 0.0) {
            let time = time.clamp(1.0 / TIME_MAX_US, TIME_MAX_US);
            (low, high) = (low.min(time), high.max(time));
        }
        if high <= 0.0 {
            return None;
        }
        // Wide enough for two ticks, and never so wide that what is left is a line at the top.
        let low = below(low.max(high / 1e6));
        Some(TimeAxis { low, high: above(high).max(low * 2.0), top, bottom })
    }

    /// The least and the greatest time of the axis, in microseconds.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The place of a time; times outside stand at the end of the axis.
    pub fn at(&self, us: f64) -> f64 {
        let share = (us.max(self.low).min(self.high) / self.low).ln() / (self.high / self.low).ln();
        self.bottom - share * (self.bottom - self.top)
    }

    /// Draws lines and figures at 1, 2 and 5 of each power of ten, with the name of the unit.
    pub fn draw(&self, picture: &mut Picture, unit: Unit) {
        picture.note_axis((self.low / unit.us, self.high / unit.us), (self.top, self.bottom), unit.name);
        let decades = (self.high / self.low).log10();
        for tick in ticks_of(self.low, self.high) {
            let leading = (tick / 10_f64.powf(tick.log10().floor())).round();
            if decades > 4.0 && leading != 1.0 {
                continue;
            }
            let y = self.at(tick);
            picture.line("grid", (LEFT, y), (RIGHT, y));
            picture.words("tick", (LEFT - 6.0, y + 4.0), Anchor::End, &round_text(tick / unit.us));
        }
        picture.words("tick unit", (LEFT - 6.0, self.top - 8.0), Anchor::End, unit.name);
    }
}

/// A logarithmic axis of times, to the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAcross {
    low: f64,
    high: f64,
}

impl TimeAcross {
    /// An axis that shows all of `times`, which are microseconds; `None` where none is above 0.
    pub fn of(times: impl Iterator<Item = f64>) -> Option<TimeAcross> {
        TimeAxis::of(times, 0.0, 1.0).map(|axis| TimeAcross { low: axis.low, high: axis.high })
    }

    /// The place of a time; times outside stand at the end of the axis.
    pub fn at(&self, us: f64) -> f64 {
        let share = (us.max(self.low).min(self.high) / self.low).ln() / (self.high / self.low).ln();
        LEFT + share * (RIGHT - LEFT)
    }

    /// The time at a share of the axis from 0 to 1, in microseconds.
    pub fn time_at(&self, share: f64) -> f64 {
        self.low * (self.high / self.low).powf(share)
    }

    /// Draws the axis below `bottom`, with figures at 1, 2 and 5 of each power of ten, or at 1 alone over many of them.
    pub fn draw(&self, picture: &mut Picture, (top, bottom): (f64, f64), unit: Unit) {
        let decades = (self.high / self.low).log10();
        for tick in ticks_of(self.low, self.high) {
            let leading = (tick / 10_f64.powf(tick.log10().floor())).round();
            if decades > 2.5 && leading != 1.0 {
                continue;
            }
            let x = self.at(tick);
            picture.line("grid", (x, top), (x, bottom));
            picture.line("axis", (x, bottom), (x, bottom + 4.0));
            picture.words("tick", (x, bottom + 17.0), Anchor::Middle, &round_text(tick / unit.us));
        }
        picture.line("axis", (LEFT, bottom), (RIGHT, bottom));
        picture.words("tick", (RIGHT + 34.0, bottom + 17.0), Anchor::Start, unit.name);
    }
}

/// A linear axis upwards from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountAxis {
    high: f64,
    top: f64,
    bottom: f64,
}

impl CountAxis {
    /// An axis from `top` to `bottom` that shows 0 to `most`.
    pub fn of(most: f64, top: f64, bottom: f64) -> CountAxis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        CountAxis { high: most * 1.05, top, bottom }
    }

    /// The place of a figure.
    pub fn at(&self, value: f64) -> f64 {
        self.bottom - (value / self.high).clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// Draws lines and figures at some round numbers.
    pub fn draw(&self, picture: &mut Picture, unit: &str) {
        for tick in multiples(round_step(self.high / 4.0), 0.0, self.high) {
            let y = self.at(tick);
            picture.line("grid", (LEFT, y), (RIGHT, y));
            picture.words("tick", (LEFT - 6.0, y + 4.0), Anchor::End, &round_text(tick));
        }
        picture.words("tick unit", (LEFT - 6.0, self.top - 8.0), Anchor::End, unit);
    }
}

/// A linear axis of seconds, to the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondsAxis {
    length_s: f64,
}

impl SecondsAxis {
    /// An axis from 0 to `length_s`.
    pub fn of(length_s: f64) -> SecondsAxis {
        SecondsAxis { length_s: if length_s.is_finite() && length_s > 0.0 { length_s } else { 1.0 } }
    }

    /// The place of a moment.
    pub fn at(&self, at_s: f64) -> f64 {
        LEFT + (at_s / self.length_s).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// Draws the axis below `bottom`.
    pub fn draw(&self, picture: &mut Picture, bottom: f64) {
        for tick in multiples(round_step(self.length_s / 6.0), 0.0, self.length_s * 1.000_1) {
            let x = self.at(tick);
            picture.line("axis", (x, bottom), (x, bottom + 4.0));
            picture.words("tick", (x, bottom + 17.0), Anchor::Middle, &round_text(tick));
        }
        picture.line("axis", (LEFT, bottom), (RIGHT, bottom));
        picture.words("tick", (RIGHT + 22.0, bottom + 17.0), Anchor::Start, "s");
    }
}

/// An axis of shares, to the right, on which each nine takes as much room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileAxis {
    nines: f64,
}

impl QuantileAxis {
    /// An axis from 0 to the share at which one of `count` is left.
    pub fn of(count: f64) -> QuantileAxis {
        QuantileAxis { nines: count.max(10.0).log10().clamp(1.0, 9.0) }
    }

    /// How many nines the axis shows.
    pub fn nines(&self) -> f64 {
        self.nines
    }

    /// The place of so many nines: -log10(1 - quantile).
    pub fn at(&self, nines: f64) -> f64 {
        LEFT + (nines / self.nines).clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// Draws the axis below `bottom`.
    pub fn draw(&self, picture: &mut Picture, top: f64, bottom: f64) {
        let named: [(f64, &str); 11] = [
            (0.0, "0"),
            (LOG10_2, "50"),
            (1.0, "90"),
            (2.0, "99"),
            (3.0, "99.9"),
            (4.0, "99.99"),
            (5.0, "99.999"),
            (6.0, "99.9999"),
            (7.0, "99.99999"),
            (8.0, "99.999999"),
            (9.0, "99.9999999"),
        ];
        for (nines, name) in named.into_iter().filter(|(nines, _)| *nines <= self.nines) {
            let x = self.at(nines);
            picture.line("grid", (x, top), (x, bottom));
            picture.line("axis", (x, bottom), (x, bottom + 4.0));
            picture.words("tick", (x, bottom + 17.0), Anchor::Middle, name);
        }
        picture.line("axis", (LEFT, bottom), (RIGHT, bottom));
        picture.words("tick", (RIGHT + 28.0, bottom + 17.0), Anchor::Start, "% within");
    }

    /// Columns of equal width over the axis, for [`Picture::columns`]: left end, width and words of each. `words` gets the nines at
    /// the middle of a column, and their share of the requests in percent, with as many digits as it needs.
    pub fn columns(&self, words: impl Fn(f64, &str) -> String) -> Vec<(f64, f64, String)> {
        let width = (RIGHT - LEFT) / f64::from(QUANTILE_COLUMNS);
        let column = |number: u32| {
            let nines = (f64::from(number) + 0.5) / f64::from(QUANTILE_COLUMNS) * self.nines;
            let share = 100.0 * (1.0 - 10_f64.powf(-nines));
            let digits = (nines.ceil() as usize).max(1);
            (LEFT + f64::from(number) * width, width, words(nines, &format!("{share:.digits$}")))
        };
        (0..QUANTILE_COLUMNS).map(column).collect()
    }
}

/// A round number as people write it: 0.5, 20, 5,000, 2M.
pub fn round_text(value: f64) -> String {
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    match value.abs() {
        size if size >= 1e9 => format!("{}G", rounded(value / 1e9)),
        size if size >= 1e6 => format!("{}M", rounded(value / 1e6)),
        size if size >= 1e3 && rounded(value).fract() == 0.0 && value > 0.0 => grouped(value.round() as u64),
        _ => rounded(value).to_string(),
    }
}

/// The multiples of `step` from `from` to `to`, at most [`TICKS_MAX`] of them.
pub fn multiples(step: f64, from: f64, to: f64) -> impl Iterator<Item = f64> {
    let first = (from / step).ceil();
    (0..TICKS_MAX).map(move |number| (first + f64::from(number)) * step).take_while(move |tick| *tick <= to)
}

/// The numbers 1, 2 and 5 times a power of ten from `low` to `high`.
fn ticks_of(low: f64, high: f64) -> Vec<f64> {
    // A conversion of what is not finite gives an end of the range of numbers.
    let first = (low.log10().floor() as i32).clamp(-POWERS_MAX, POWERS_MAX);
    let last = (high.log10().ceil() as i32).clamp(-POWERS_MAX, POWERS_MAX);
    let all = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|leading| leading * 10_f64.powi(power)));
    all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect()
}

/// The greatest of 1, 2 and 5 times a power of ten that is not above `value`.
fn below(value: f64) -> f64 {
    ticks_of(value / 10.0, value).last().copied().unwrap_or(value)
}

/// The least of 1, 2 and 5 times a power of ten that is not below `value`.
fn above(value: f64) -> f64 {
    ticks_of(value, value * 10.0).first().copied().unwrap_or(value)
}

/// The least of 1, 2 and 5 times a power of ten that is not below `value`, for a distance between ticks.
pub fn round_step(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { above(value) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks_of(3.0, 60.0), [5.0, 10.0, 20.0, 50.0]);
        assert_eq!((below(31.0), above(31.0), above(50.0)), (20.0, 50.0, 50.0));
        assert_eq!(
            [0.5, 20.0, 5_000.0, 20_000.0, 2e6].map(round_text),
            ["0.5", "20", "5,000", "20,000", "2M"]
        );
    }

    #[test]
    fn no_figure_makes_ticks_without_end() {
        let figures = [0.0, -1.0, 5e-324, 1e-310, 1.0, 2e19, 1e308, f64::MAX, f64::INFINITY, f64::NAN];
        for figure in figures {
            assert!(ticks_of(figure / 10.0, figure * 10.0).len() <= 6 * POWERS_MAX as usize + 3);
            let mut picture = Picture::new(100.0);
            CountAxis::of(figure, 0.0, 100.0).draw(&mut picture, "");
            SecondsAxis::of(figure).draw(&mut picture, 100.0);
            for other in figures {
                assert!(multiples(round_step(figure), -other, other).count() <= TICKS_MAX as usize);
                if let Some(axis) = TimeAxis::of([figure, other].into_iter(), 0.0, 100.0) {
                    axis.draw(&mut picture, Unit::of(None));
                    assert!(axis.at(figure).is_finite() && axis.at(other).is_finite(), "{figure} {other}");
                }
            }
        }
    }

    #[test]
    fn an_axis_of_times_needs_a_time() {
        assert_eq!(TimeAxis::of([0.0, f64::NAN].into_iter(), 0.0, 100.0), None);
        let axis = TimeAxis::of([10.0, 900.0].into_iter(), 0.0, 100.0).expect("times");
        assert_eq!((axis.at(10.0), axis.at(1_000.0), axis.at(1e9)), (100.0, 0.0, 0.0));
        assert!((axis.at(100.0) - 50.0).abs() < 1e-9);
        assert!(TimeAxis::of([7.0].into_iter(), 0.0, 100.0).is_some());
    }
}
