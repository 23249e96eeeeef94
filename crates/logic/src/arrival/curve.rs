//! A rate over time as straight pieces: its integral, and the moment at which so many requests are due.
//!
//! The integral of a straight piece is quadratic, and its inverse a square root. Both are made of operations that IEEE 754 rounds
//! in one way, and of `libm`, so that every machine computes the same times.

use crate::dist::ETC_ARRIVAL_HOURS;
use crate::plan::{RatePoint, RateShape};
use crate::time::{NEVER, Nanos, SECOND};

/// Straight pieces of one period of a sine. A chord of so short an arc is nowhere further from it than 0.0075 % of the amplitude.
const SINE_PIECES: u64 = 256;

/// The rate of Facebook's pool ETC at the beginning of each hour of a day, in requests per microsecond: one divided by the mean gap.
const HOURS: [f64; 24] = rates();

const fn rates() -> [f64; 24] {
    let mut rates = [0.0; 24];
    let mut hour = 0;
    while hour < rates.len() {
        let (scale, shape) = ETC_ARRIVAL_HOURS[hour];
        rates[hour] = (1.0 - shape) / scale;
        hour += 1;
    }
    rates
}

/// A rate over time, prepared for computing due times.
#[derive(Clone, Debug, PartialEq)]
pub struct RateCurve {
    /// Pieces in the order of time; the first begins at 0. The last goes on for ever, or until the end of the period, and is level
    /// where it goes on for ever.
    pieces: Vec<Piece>,
    /// The period after which the rate repeats; `None` if it does not.
    period: Option<Period>,
}

/// A straight piece of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Beginning of the piece.
    at_ns: Nanos,
    /// Requests before the piece.
    before: f64,
    /// Requests per nanosecond at the piece's beginning.
    rate: f64,
    /// Growth of the requests per nanosecond in a nanosecond.
    slope: f64,
}

/// A period that repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    length_ns: Nanos,
    /// Requests of one period.
    requests: f64,
}

impl Piece {
    /// Requests of the piece in its first nanoseconds.
    fn requests_in(&self, time_ns: f64) -> f64 {
        time_ns * (self.rate + self.slope * time_ns / 2.0)
    }

    /// Requests per nanosecond at a moment of the piece.
    fn rate_at(&self, at_ns: Nanos) -> f64 {
        (self.rate + self.slope * (at_ns - self.at_ns) as f64).max(0.0)
    }

    /// The time from the beginning of the piece at which this many of its requests are reached, in nanoseconds;
    /// infinite if they never are.
    fn time_of(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        let root = libm::sqrt((self.rate * self.rate + 2.0 * self.slope * requests).max(0.0));
        2.0 * requests / (self.rate + root)
    }
}

impl RateCurve {
    /// The curve of a shape.
    ///
    /// # Panics
    /// Panics when the shape has no points.
    pub fn of(shape: &RateShape) -> RateCurve {
        match shape {
            RateShape::Points(points) => RateCurve { pieces: through(points), period: None },
            RateShape::Sine(sine) => periodic(sine.period_ns, SINE_PIECES, |piece| {
                let share = piece as f64 / SINE_PIECES as f64 + sine.start;
                let height = libm::sin(core::f64::consts::TAU * share);
                (sine.mean + sine.amplitude * height).max(0.0)
            }),
            RateShape::Day(day) => {
                let mean = HOURS.iter().sum::<f64>() / HOURS.len() as f64;
                let hour = |hour: u64| HOURS[hour as usize % HOURS.len()] / mean * day.mean;
                periodic(day.period_ns, HOURS.len() as u64, hour)
            }
        }
    }

    /// The curve of a rate in requests per second that never changes.
    pub fn constant(rate: f64) -> RateCurve {
        RateCurve { pieces: through(&[RatePoint { at_ns: 0, rate }]), period: None }
    }

    /// The number of pieces that the curve has until `until_ns`.
    pub fn pieces_until(&self, until_ns: Nanos) -> f64 {
        let turns = self.period.map_or(1.0, |period| until_ns as f64 / period.length_ns as f64 + 1.0);
        turns * self.pieces.len() as f64
    }

    /// Requests per second at a moment; at a jump, the rate after it.
    pub fn rate_at(&self, at_ns: Nanos) -> f64 {
        let within_ns = self.period.map_or(at_ns, |period| at_ns % period.length_ns);
        self.pieces[self.piece_at(within_ns)].rate_at(within_ns) * SECOND as f64
    }

    /// The least and the greatest rate until a moment, in requests per second.
    pub fn range_until(&self, until_ns: Nanos) -> (f64, f64) {
        let length_ns = self.period.map_or(NEVER, |period| period.length_ns);
        let ends = (0..self.pieces.len()).take_while(|&at| self.pieces[at].at_ns < until_ns).flat_map(|at| {
            let piece = &self.pieces[at];
            let end_ns = self.end_of(at).min(length_ns).min(until_ns);
            [piece.rate, piece.rate_at(end_ns)]
        });
        let (least, most) =
            ends.fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
        (least * SECOND as f64, most * SECOND as f64)
    }

    /// Requests that are due before a moment, as a number with a fraction: the integral of the rate.
    pub fn requests_before(&self, at_ns: Nanos) -> f64 {
        let (turns, within_ns) = match self.period {
            Some(period) => {
                let turns = (at_ns / period.length_ns) as f64;
                (turns * period.requests, at_ns % period.length_ns)
            }
            None => (0.0, at_ns),
        };
        let piece = &self.pieces[self.piece_at(within_ns)];
        turns + piece.before + piece.requests_in((within_ns - piece.at_ns) as f64)
    }

    /// The moment at which the integral of the rate has reached `requests`, cut off to the nanosecond: the last such moment where the
    /// rate is 0 for a time, and [`NEVER`] where the integral stays below. `hint` is where the search for the piece
    /// begins, and becomes the piece that was found; it does not change the result.
    pub fn time_of(&self, requests: f64, hint: &mut usize) -> Nanos {
        let (begin_ns, rest) = match self.period {
            Some(period) => {
                let turns = libm::floor(requests / period.requests);
                let rest = requests - turns * period.requests;
                // Where the division was rounded up or down, the rest is outside of the period by as much.
                match (rest < 0.0, rest >= period.requests) {
                    (true, _) => ((turns as u64).saturating_mul(period.length_ns), 0.0),
                    (_, true) => ((turns as u64 + 1).saturating_mul(period.length_ns), 0.0),
                    _ => ((turns as u64).saturating_mul(period.length_ns), rest),
                }
            }
            None => (0, requests),
        };
        *hint = self.piece_of(rest, *hint);
        let piece = &self.pieces[*hint];
        let is_last = *hint + 1 == self.pieces.len();
        if is_last && self.period.is_none() && piece.rate <= 0.0 {
            return NEVER;
        }
        // The conversion saturates.
        let offset_ns = (piece.time_of(rest - piece.before) as u64).min(self.end_of(*hint) - piece.at_ns);
        begin_ns.saturating_add(piece.at_ns).saturating_add(offset_ns)
    }

    /// The curve with its rate multiplied by factors until `until_ns`; each factor holds from its time on, the first one from 0.
    /// Behind `until_ns` the rate stays as it is there without a factor.
    pub(super) fn times(&self, factors: &[(Nanos, f64)], until_ns: Nanos) -> RateCurve {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut at_ns, mut before, mut turn_ns, mut number, mut factor) = (0, 0.0, 0, 0, 0);
        while at_ns < until_ns {
            while factors.get(factor + 1).is_some_and(|(from_ns, _)| *from_ns <= at_ns) {
                factor += 1;
            }
            let base = &self.pieces[number];
            let base_end = self.end_of(number).saturating_add(turn_ns);
            let factor_end = factors.get(factor + 1).map_or(NEVER, |(from_ns, _)| *from_ns);
            let end_ns = base_end.min(factor_end).min(until_ns);
            let by = factors[factor].1;
            let rate = base.rate_at(at_ns - turn_ns) * by;
            let piece = Piece { at_ns, before, rate, slope: base.slope * by };
            before += piece.requests_in((end_ns - at_ns) as f64).max(0.0);
            pieces.push(piece);
            at_ns = end_ns;
            if at_ns == base_end {
                number += 1;
                if let (Some(period), true) = (self.period, number == self.pieces.len()) {
                    (number, turn_ns) = (0, turn_ns.saturating_add(period.length_ns));
                }
            }
        }
        let rate = self.rate_at(until_ns) / SECOND as f64;
        pieces.push(Piece { at_ns: until_ns, before, rate, slope: 0.0 });
        RateCurve { pieces, period: None }
    }

    /// End of piece `number`, from the beginning of the period.
    fn end_of(&self, number: usize) -> Nanos {
        let last = self.period.map_or(NEVER, |period| period.length_ns);
        self.pieces.get(number + 1).map_or(last, |next| next.at_ns)
    }

    /// The number of the piece at a moment of the period.
    fn piece_at(&self, within_ns: Nanos) -> usize {
        self.pieces.partition_point(|piece| piece.at_ns <= within_ns).saturating_sub(1)
    }

    /// The number of the last piece before which there are at most this many requests.
    #[inline]
    fn piece_of(&self, requests: f64, hint: usize) -> usize {
        let begins = |number: usize| self.pieces.get(number).is_some_and(|piece| piece.before <= requests);
        // Requests come in the order of time, mostly in the piece of the one before or in the next.
        for number in [hint, hint + 1] {
            if begins(number) && !begins(number + 1) {
                return number;
            }
        }
        self.pieces.partition_point(|piece| piece.before <= requests).saturating_sub(1)
    }
}

/// The straight pieces between points, and the level one behind the last of them.
fn through(points: &[RatePoint]) -> Vec<Piece> {
    let per_ns = |point: &RatePoint| point.rate / SECOND as f64;
    let mut pieces = Vec::with_capacity(points.len() + 1);
    let mut before = 0.0;
    if let Some(first) = points.first().filter(|first| first.at_ns > 0) {
        pieces.push(Piece { at_ns: 0, before, rate: per_ns(first), slope: 0.0 });
        before += per_ns(first) * first.at_ns as f64;
    }
    for pair in points.windows(2) {
        let length_ns = (pair[1].at_ns - pair[0].at_ns) as f64;
        if length_ns > 0.0 {
            let (rate, end) = (per_ns(&pair[0]), per_ns(&pair[1]));
            pieces.push(Piece { at_ns: pair[0].at_ns, before, rate, slope: (end - rate) / length_ns });
            before += (rate + end) / 2.0 * length_ns;
        }
    }
    let last = points.last().expect("a rate over time has at least one point");
    pieces.push(Piece { at_ns: last.at_ns, before, rate: per_ns(last), slope: 0.0 });
    pieces
}

/// The curve of a period that is divided into equal parts, with the rate at the beginning of each.
fn periodic(length_ns: Nanos, parts: u64, rate: impl Fn(u64) -> f64) -> RateCurve {
    let at = |part: u64| (u128::from(length_ns) * u128::from(part) / u128::from(parts)) as Nanos;
    let points: Vec<RatePoint> =
        (0..=parts).map(|part| RatePoint { at_ns: at(part), rate: rate(part) }).collect();
    let mut pieces = through(&points);
    let end = pieces.pop().expect("there is a piece behind the last point");
    RateCurve { pieces, period: Some(Period { length_ns, requests: end.before }) }
}
