//! Axes: from figures to places in a picture, with ticks at round numbers.

use std::f64::consts::LOG10_2;

use pummel_logic::time::Nanos;
use pummel_measure::summary::time_text;

use super::svg::{Anchor, Layout, Picture};
use crate::numbers::grouped;

/// Columns of a picture over shares of the requests, each of which says what stands under the pointer.
const QUANTILE_COLUMNS: u32 = 60;

/// Width of a figure on an axis, about.
const TICK_LETTER: f64 = 6.2;

/// Most ticks of a linear axis.
const TICKS_MAX: u32 = 100;

/// The greatest power of ten, and the least below zero, that a tick has.
const POWERS_MAX: i32 = 30;

/// The greatest time of an axis, in microseconds; the least one is its inverse.
const TIME_MAX_US: f64 = 1e25;

/// A time in microseconds with the unit that suits it, and three digits.
pub fn time(us: f64) -> String {
    match us {
        // Times of pictures may lie beyond all that a run can measure.
        us if us >= 1e13 => format!("{:.2e} s", us / 1e6),
        us => time_text((us * 1e3).round() as Nanos),
    }
}

/// A time in microseconds, where it is known.
pub fn known_time(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), time)
}

/// A round time in microseconds, as an axis has it: 500 ns, 20 us, 1 ms.
pub fn round_time(us: f64) -> String {
    let (unit, size) = match us {
        us if us < 0.999 => ("ns", 1e-3),
        us if us < 999.0 => ("us", 1.0),
        us if us < 999e3 => ("ms", 1e3),
        _ => ("s", 1e6),
    };
    format!("{} {unit}", round_text(us / size))
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

    /// The height of the upper end.
    pub fn top(&self) -> f64 {
        self.top
    }

    /// The place of a time; times outside stand at the end of the axis.
    pub fn at(&self, us: f64) -> f64 {
        let share = (us.max(self.low).min(self.high) / self.low).ln() / (self.high / self.low).ln();
        self.bottom - share * (self.bottom - self.top)
    }

    /// Draws lines and figures at 1, 2 and 5 of each power of ten, with the title of the axis.
    pub fn draw(&self, picture: &mut Picture, title: &str) {
        let Layout { left, right, .. } = picture.layout;
        picture.note_times(self.ends(), (self.top, self.bottom));
        let decades = (self.high / self.low).log10();
        for tick in ticks_of(self.low, self.high) {
            let leading = (tick / 10_f64.powf(tick.log10().floor())).round();
            if decades > 4.0 && leading != 1.0 {
                continue;
            }
            let y = self.at(tick);
            picture.line("grid", (left, y), (right, y));
            picture.words("tick", (left - 6.0, y + 4.0), Anchor::End, &round_time(tick));
        }
        title_of(picture, self.top, title);
    }
}

/// A logarithmic axis of times, to the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAcross {
    layout: Layout,
    low: f64,
    high: f64,
}

impl TimeAcross {
    /// An axis that shows all of `times`, which are microseconds; `None` where none is above 0.
    pub fn of(layout: Layout, times: impl Iterator<Item = f64>) -> Option<TimeAcross> {
        TimeAxis::of(times, 0.0, 1.0).map(|axis| TimeAcross { layout, low: axis.low, high: axis.high })
    }

    /// The place of a time; times outside stand at the end of the axis.
    pub fn at(&self, us: f64) -> f64 {
        let share = (us.max(self.low).min(self.high) / self.low).ln() / (self.high / self.low).ln();
        self.layout.left + share * self.layout.across()
    }

    /// The time at a share of the axis from 0 to 1, in microseconds.
    pub fn time_at(&self, share: f64) -> f64 {
        self.low * (self.high / self.low).powf(share)
    }

    /// Draws the axis below `bottom`, with figures at 1, 2 and 5 of each power of ten, or at 1 alone over many of them.
    pub fn draw(&self, picture: &mut Picture, (top, bottom): (f64, f64)) {
        let Layout { left, right, .. } = self.layout;
        let decades = (self.high / self.low).log10();
        for tick in ticks_of(self.low, self.high) {
            let leading = (tick / 10_f64.powf(tick.log10().floor())).round();
            if decades > 2.5 && leading != 1.0 {
                continue;
            }
            let x = self.at(tick);
            picture.line("grid", (x, top), (x, bottom));
            picture.line("axis", (x, bottom), (x, bottom + 4.0));
            picture.words("tick", (x, bottom + 17.0), Anchor::Middle, &round_time(tick));
        }
        picture.line("axis", (left, bottom), (right, bottom));
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
    pub fn draw(&self, picture: &mut Picture, title: &str) {
        let Layout { left, right, .. } = picture.layout;
        for tick in multiples(
            round_step(self.high / ((self.bottom - self.top) / 30.0).clamp(1.5, 4.0)),
            0.0,
            self.high,
        ) {
            let y = self.at(tick);
            picture.line("grid", (left, y), (right, y));
            picture.words("tick", (left - 6.0, y + 4.0), Anchor::End, &round_text(tick));
        }
        title_of(picture, self.top, title);
    }
}

/// A linear axis of seconds, to the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondsAxis {
    layout: Layout,
    length_s: f64,
}

impl SecondsAxis {
    /// An axis from 0 to `length_s`.
    pub fn of(layout: Layout, length_s: f64) -> SecondsAxis {
        let length_s = if length_s.is_finite() && length_s > 0.0 { length_s } else { 1.0 };
        SecondsAxis { layout, length_s }
    }

    /// Length of the axis.
    pub fn length_s(&self) -> f64 {
        self.length_s
    }

    /// The place of a moment.
    pub fn at(&self, at_s: f64) -> f64 {
        self.layout.left + (at_s / self.length_s).clamp(0.0, 1.0) * self.layout.across()
    }

    /// Draws the axis below `bottom`.
    pub fn draw(&self, picture: &mut Picture, bottom: f64) {
        let Layout { left, right, .. } = self.layout;
        let ticks = self.layout.fitting(6) as f64;
        for tick in multiples(round_step(self.length_s / ticks), 0.0, self.length_s * 1.000_1) {
            let x = self.at(tick);
            picture.line("axis when", (x, bottom), (x, bottom + 4.0));
            picture.words("tick when", (x, bottom + 17.0), Anchor::Middle, &round_text(tick));
        }
        picture.line("axis", (left, bottom), (right, bottom));
        picture.words("tick", (right + 22.0, bottom + 17.0), Anchor::Start, "s");
    }
}

/// An axis of shares, to the right, on which each nine takes as much room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileAxis {
    ends: (f64, f64),
    nines: f64,
}

impl QuantileAxis {
    /// An axis between both ends of a layout, or of a panel, from 0 to the share at which one of `count` is left.
    pub fn of(ends: (f64, f64), count: f64) -> QuantileAxis {
        QuantileAxis { ends, nines: count.max(10.0).log10().clamp(1.0, 9.0) }
    }

    /// How many nines the axis shows.
    pub fn nines(&self) -> f64 {
        self.nines
    }

    /// The place of so many nines: -log10(1 - quantile).
    pub fn at(&self, nines: f64) -> f64 {
        self.ends.0 + (nines / self.nines).clamp(0.0, 1.0) * (self.ends.1 - self.ends.0)
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
        let mut free = f64::NEG_INFINITY;
        for (nines, name) in named.into_iter().filter(|(nines, _)| *nines <= self.nines) {
            let x = self.at(nines);
            picture.line("grid", (x, top), (x, bottom));
            picture.line("axis", (x, bottom), (x, bottom + 4.0));
            let half = name.len() as f64 * TICK_LETTER / 2.0;
            // A name is left out that would lie on the one before it.
            if x - half >= free {
                picture.words("tick", (x, bottom + 17.0), Anchor::Middle, name);
                free = x + half + 4.0;
            }
        }
        picture.line("axis", (self.ends.0, bottom), (self.ends.1, bottom));
    }

    /// Columns of equal width over the axis, for [`Picture::columns`]: left end, width and words of each. `words` gets the nines at
    /// the middle of a column, and their share of the requests in percent, with as many digits as it needs.
    pub fn columns(&self, words: impl Fn(f64, &str) -> String) -> Vec<(f64, f64, String)> {
        let (left, right) = self.ends;
        let width = (right - left) / f64::from(QUANTILE_COLUMNS);
        let column = |number: u32| {
            let nines = (f64::from(number) + 0.5) / f64::from(QUANTILE_COLUMNS) * self.nines;
            let share = 100.0 * (1.0 - 10_f64.powf(-nines));
            let digits = (nines.ceil() as usize).max(1);
            (left + f64::from(number) * width, width, words(nines, &format!("{share:.digits$}")))
        };
        (0..QUANTILE_COLUMNS).map(column).collect()
    }
}

/// Puts neighbours together until there are at most `most` columns; `add` adds a column to those before it.
pub fn together<T: Clone>(columns: &[T], most: usize, add: impl Fn(&mut T, &T)) -> Vec<T> {
    let each = columns.len().div_ceil(most.max(1)).max(1);
    let sum = |chunk: &[T]| {
        let mut all = chunk[0].clone();
        chunk[1..].iter().for_each(|more| add(&mut all, more));
        all
    };
    columns.chunks(each).map(sum).collect()
}

/// Draws the title of a vertical axis above it.
pub fn title_of(picture: &mut Picture, top: f64, title: &str) {
    picture.words("tick unit", (2.0, top - 9.0), Anchor::Start, title);
}

/// Draws the title of a horizontal axis below its figures.
pub fn title_below(picture: &mut Picture, bottom: f64, title: &str) {
    picture.words("tick unit", (picture.layout.right, bottom + 31.0), Anchor::End, title);
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
pub fn ticks_of(low: f64, high: f64) -> Vec<f64> {
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
    use super::super::svg::WIDE;
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!([0.5, 27.1, 63_472.0, 2e6].map(time), ["500 ns", "27.1 us", "63.5 ms", "2.00 s"]);
        assert_eq!([0.5, 20.0, 1_000.0, 2e6].map(round_time), ["500 ns", "20 us", "1 ms", "2 s"]);
    }

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
            let mut picture = Picture::new(WIDE, 100.0);
            CountAxis::of(figure, 0.0, 100.0).draw(&mut picture, "");
            SecondsAxis::of(WIDE, figure).draw(&mut picture, 100.0);
            for other in figures {
                assert!(multiples(round_step(figure), -other, other).count() <= TICKS_MAX as usize);
                if let Some(axis) = TimeAxis::of([figure, other].into_iter(), 0.0, 100.0) {
                    axis.draw(&mut picture, "");
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
