//! Distributions of sizes, times and gaps. Values are drawn by the quantile function (inverse transform).
//!
//! One draw of 64 bits gives one value, which is the same on every machine: logarithms and exponentials come from
//! `libm`, and IEEE 754 defines the result of all other arithmetic exactly.

mod error;
mod text;
mod weighted;

use crate::rng;

pub use self::error::DistError;
pub use self::text::{FORMS, NAMES, Spec};
pub use self::weighted::{Range, Weighted};

/// A distribution of numbers. The unit of the numbers (bytes, seconds or microseconds) is not stored; the caller
/// chooses it.
///
/// Parsing gives only legal parameters. The parameters of a variant that is built by hand are checked by
/// [`Dist::checked`].
#[derive(Clone, Debug, PartialEq)]
pub enum Dist {
    /// A constant: every draw is this number.
    Fixed(f64),
    /// The uniform distribution: all numbers between two bounds are equally likely.
    Uniform {
        /// The lower bound.
        low: f64,
        /// The upper bound, at least `low`.
        high: f64,
    },
    /// The normal distribution. Draws can be negative: [`Dist::draw_size`] and arrivals count negative ones as 0.
    Normal {
        /// The mean of the distribution.
        mean: f64,
        /// The standard deviation, 0 or more.
        sd: f64,
    },
    /// The exponential distribution.
    Exponential {
        /// The mean, 0 or more.
        mean: f64,
    },
    /// The generalised Pareto distribution; with shape 0 the exponential distribution shifted by `loc`.
    Pareto {
        /// The lower end of the distribution.
        loc: f64,
        /// The scale parameter, above 0.
        scale: f64,
        /// The shape parameter, which is the weight of the upper tail: the mean is infinite from 1 on, and values
        /// have an upper bound below 0.
        shape: f64,
    },
    /// The generalised extreme value distribution; with shape 0 Gumbel's distribution.
    Gev {
        /// The location parameter.
        loc: f64,
        /// The scale parameter, above 0.
        scale: f64,
        /// The shape parameter, with the same meaning as for [`Dist::Pareto`].
        shape: f64,
    },
    /// Key sizes in bytes of Facebook's ETC pool ([`ETC_KEY`]).
    EtcKey,
    /// Value sizes in bytes of Facebook's ETC pool ([`ETC_HEAD`] and [`ETC_TAIL`]).
    EtcValue,
    /// Gaps in microseconds of Facebook's ETC pool ([`ETC_ARRIVAL`]).
    EtcArrival,
    /// Whole numbers from weighted ranges, equally likely within a range.
    Weighted(Weighted),
    /// The values in a file, each equally likely. This crate reads no files: the caller supplies the values.
    File {
        /// The path of the file, for messages and reports.
        path: String,
        /// The values in ascending order, at least one.
        values: Vec<f64>,
    },
}

/// ETC key sizes in bytes, a generalised extreme value distribution. The source of this and all other ETC figures is:
/// Atikoglu, Xu, Frachtenberg, Jiang, Paleczny, "Workload analysis of a large-scale key-value store", SIGMETRICS
/// 2012.
pub const ETC_KEY: Dist = Dist::Gev { loc: 30.7984, scale: 8.20449, shape: 0.078688 };

/// ETC value sizes of 15 bytes and more. Shorter sizes are in [`ETC_HEAD`].
pub const ETC_TAIL: Dist = Dist::Pareto { loc: 15.0, scale: 214.476, shape: 0.348238 };

/// ETC gaps between requests in microseconds, over all hours of the day.
pub const ETC_ARRIVAL: Dist = Dist::Pareto { loc: 0.0, scale: 16.0292, shape: 0.154971 };

/// ETC gaps between requests by the hour of the day (UTC): scale in microseconds and shape of generalised Pareto
/// distributions that begin at 0. Source: table 5 of the paper that [`ETC_KEY`] names.
#[rustfmt::skip]
pub const ETC_ARRIVAL_HOURS: [(f64, f64); 24] = [
    (16.2868, 0.155280), (15.8937, 0.141368), (15.6345, 0.137579), (15.7003, 0.142382), (16.3231, 0.160706),
    (17.5157, 0.181278), (18.6748, 0.196885), (19.5114, 0.202396), (20.2050, 0.201637), (20.2915, 0.193764),
    (19.5577, 0.178386), (18.2294, 0.161636), (17.1879, 0.140461), (16.2159, 0.119242), (15.6716, 0.104535),
    (15.2904, 0.094286), (15.2033, 0.096963), (14.9533, 0.098510), (15.1381, 0.096155), (15.3210, 0.094156),
    (15.3848, 0.100365), (15.7502, 0.111921), (16.0205, 0.131946), (16.3238, 0.147258),
];

/// Shares of the ETC values that are 0, 1, ... 14 bytes long; the remaining share, 0.55845, follows [`ETC_TAIL`].
pub const ETC_HEAD: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837,
    0.08989, 0.00092, 0.00326, 0.01980,
];

/// Cumulative sums of [`ETC_HEAD`].
const ETC_HEAD_UNTIL: [f64; 15] = running_sums(ETC_HEAD);

impl Dist {
    /// The value below which the share `u` of the distribution lies, for 0 < `u` < 1. The result is never NaN, and
    /// infinite only for shapes far outside -10 to 10, which overflow.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Dist::Fixed(value) => *value,
            Dist::Uniform { low, high } => low + (high - low) * u,
            Dist::Normal { mean, sd } => mean + sd * normal_quantile(u),
            Dist::Exponential { mean } => mean * exponential_quantile(u),
            Dist::Pareto { loc, scale, shape } => loc + scale * stretch(*shape, exponential_quantile(u)),
            Dist::Gev { loc, scale, shape } => loc + scale * stretch(*shape, -libm::log(-libm::log(u))),
            Dist::EtcKey => ETC_KEY.quantile(u),
            Dist::EtcValue => etc_value_quantile(u),
            Dist::EtcArrival => ETC_ARRIVAL.quantile(u),
            Dist::Weighted(weighted) => weighted.quantile(u),
            Dist::File { values, .. } => {
                let index = (u * values.len() as f64) as usize;
                values[index.min(values.len() - 1)]
            }
        }
    }

    /// The value above which the share `u` of the distribution lies. Small `u` keep all their digits for
    /// [`Dist::Exponential`], [`Dist::Pareto`] and [`Dist::EtcArrival`]; for the others the result is `quantile(1 -
    /// u)`, in which digits of a small `u` are lost.
    pub fn upper_quantile(&self, u: f64) -> f64 {
        match self {
            Dist::Exponential { mean } => mean * -libm::log(u),
            Dist::Pareto { loc, scale, shape } => loc + scale * stretch(*shape, -libm::log(u)),
            Dist::EtcArrival => ETC_ARRIVAL.upper_quantile(u),
            _ => self.quantile(1.0 - u),
        }
    }

    /// Draws a value from 64 random bits.
    #[inline]
    pub fn draw(&self, bits: u64) -> f64 {
        match self {
            Dist::Fixed(value) => *value,
            _ => self.quantile(rng::unit(bits)),
        }
    }

    /// Draws a size from 64 random bits: a value rounded to a whole number (halves up), then limited to `min` and
    /// `max`. Panics if `min` exceeds `max`.
    #[inline]
    pub fn draw_size(&self, bits: u64, min: u64, max: u64) -> u64 {
        // The cast cuts off fractions and saturates: negative values become 0, values that are too large the greatest
        // number.
        ((self.draw(bits) + 0.5) as u64).clamp(min, max)
    }

    /// The mean of the distribution, negative values included; infinite for shapes of 1 or more.
    pub fn mean(&self) -> f64 {
        match self {
            Dist::Fixed(value) => *value,
            Dist::Uniform { low, high } => low + (high - low) / 2.0,
            Dist::Normal { mean, .. } | Dist::Exponential { mean } => *mean,
            Dist::Pareto { shape, .. } | Dist::Gev { shape, .. } if *shape >= 1.0 => f64::INFINITY,
            Dist::Pareto { loc, scale, shape } => loc + scale / (1.0 - shape),
            Dist::Gev { loc, scale, shape } => loc + scale * gev_mean(*shape),
            Dist::EtcKey => ETC_KEY.mean(),
            Dist::EtcValue => {
                let head: f64 = ETC_HEAD.iter().enumerate().map(|(size, share)| size as f64 * share).sum();
                head + (1.0 - ETC_HEAD_UNTIL[14]) * ETC_TAIL.mean()
            }
            Dist::EtcArrival => ETC_ARRIVAL.mean(),
            Dist::Weighted(weighted) => weighted.mean(),
            Dist::File { values, .. } => values.iter().map(|value| value / values.len() as f64).sum(),
        }
    }

    /// The mean of draws of which negative ones count as 0, as sizes and gaps do. At least 9 digits are exact; the
    /// mean is 0 if no draw is above 0.
    pub fn mean_from_zero(&self) -> f64 {
        match self {
            _ if self.support().0 >= 0.0 => self.mean(),
            _ if self.draw(u64::MAX) <= 0.0 => 0.0,
            Dist::File { values, .. } => {
                values.iter().map(|value| value.max(0.0) / values.len() as f64).sum()
            }
            Dist::Uniform { low, high } => high * high / (2.0 * (high - low)),
            Dist::Normal { mean, sd } => normal_from_zero(*mean, *sd),
            Dist::Pareto { shape, .. } | Dist::Gev { shape, .. } if *shape >= 1.0 => f64::INFINITY,
            Dist::Pareto { loc, scale, shape } => {
                // The part above 0 is again a generalised Pareto distribution, which begins at 0.
                libm::exp(-unstretch(*shape, -loc / scale)) * (scale - shape * loc) / (1.0 - shape)
            }
            Dist::Gev { loc, scale, shape } => scale * gev_from_zero(loc / scale, *shape),
            _ => self.mean(),
        }
    }

    /// The factor that scales draws, of which negative ones count as 0, to the given mean; `None` if the mean of
    /// these draws is 0 or infinite, or the factor is.
    pub fn factor_to_mean(&self, mean: f64) -> Option<f64> {
        let own = self.mean_from_zero();
        let factor = mean / own;
        (own > 0.0 && own.is_finite() && factor.is_finite()).then_some(factor)
    }

    /// The lowest and the highest possible value; infinite where there is no bound.
    pub fn support(&self) -> (f64, f64) {
        match self {
            Dist::Fixed(value) => (*value, *value),
            Dist::Uniform { low, high } => (*low, *high),
            Dist::Normal { mean, sd } if *sd == 0.0 => (*mean, *mean),
            Dist::Normal { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Dist::Exponential { mean } if *mean == 0.0 => (0.0, 0.0),
            Dist::Exponential { .. } => (0.0, f64::INFINITY),
            Dist::Pareto { loc, scale, shape } if *shape < 0.0 => (*loc, loc - scale / shape),
            Dist::Pareto { loc, .. } => (*loc, f64::INFINITY),
            Dist::Gev { loc, scale, shape } if *shape < 0.0 => (f64::NEG_INFINITY, loc - scale / shape),
            Dist::Gev { loc, scale, shape } if *shape > 0.0 => (loc - scale / shape, f64::INFINITY),
            Dist::Gev { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Dist::EtcKey => ETC_KEY.support(),
            Dist::EtcValue => (0.0, f64::INFINITY),
            Dist::EtcArrival => ETC_ARRIVAL.support(),
            Dist::Weighted(weighted) => weighted.support(),
            Dist::File { values, .. } => (values[0], values[values.len() - 1]),
        }
    }
}

/// Quantile of the exponential distribution with mean 1.
fn exponential_quantile(u: f64) -> f64 {
    -libm::log1p(-u)
}

/// Computes (exp(shape y) - 1) / shape, or its limit y for shape 0. The result turns an exponential draw y into a
/// generalised Pareto draw, and a Gumbel draw into a draw of the generalised extreme value distribution.
fn stretch(shape: f64, y: f64) -> f64 {
    // Below this shape the two differ by less than the last bit of y.
    if shape.abs() < 1e-18 { y } else { libm::expm1(shape * y) / shape }
}

/// Inverse of [`stretch`]: the y for which `stretch(shape, y)` is `stretched`.
fn unstretch(shape: f64, stretched: f64) -> f64 {
    if shape.abs() < 1e-18 { stretched } else { libm::log1p(shape * stretched) / shape }
}

/// Mean of the generalised extreme value distribution with loc 0, scale 1 and a shape below 1:
/// (gamma(1 - shape) - 1) / shape.
fn gev_mean(shape: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if shape.abs() < 1e-5 {
        // The first terms of the series are used, because the formula loses its digits near 0.
        let square = std::f64::consts::PI * std::f64::consts::PI;
        EULER + shape * (EULER * EULER / 2.0 + square / 12.0)
    } else {
        (libm::tgamma(1.0 - shape) - 1.0) / shape
    }
}

/// Mean of draws of the normal distribution of which negative ones count as 0.
fn normal_from_zero(mean: f64, sd: f64) -> f64 {
    let distance = mean / sd;
    let density = libm::exp(-distance * distance / 2.0) / libm::sqrt(std::f64::consts::TAU);
    sd * density + mean * libm::erfc(-distance * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Mean of draws of the generalised extreme value distribution with scale 1 and a shape below 1, of which negative
/// ones count as 0.
///
/// In terms of t = -ln u, a value is above 0 if t is below some `end`. Integration by parts turns the mean into the
/// integral of t^(-shape - 1) (1 - e^-t) from 0 to `end`, whose integrand is never negative.
fn gev_from_zero(loc: f64, shape: f64) -> f64 {
    /// The t from which on e^-t is below the last bit of 1.
    const FAR: f64 = 40.0;
    const STEPS: u32 = 1_024;
    let end = libm::exp(-unstretch(shape, -loc));
    // The integral up to 1 is computed by the series of e^-t.
    let near = end.min(1.0);
    let (mut sum, mut term) = (0.0, libm::pow(near, 1.0 - shape));
    for power in 1..20 {
        sum += term / (f64::from(power) - shape);
        term *= -near / f64::from(power + 1);
    }
    // The integral from 1 on is computed over the logarithm of t by Simpson's rule.
    let step = libm::log(end.clamp(1.0, FAR)) / f64::from(STEPS);
    let part = |at: u32| {
        let log = f64::from(at) * step;
        let weight = if at == 0 || at == STEPS { 1.0 } else { f64::from(2 + at % 2 * 2) };
        weight * libm::exp(-shape * log) * -libm::expm1(-libm::exp(log))
    };
    let middle = (0..=STEPS).map(part).sum::<f64>() * step / 3.0;
    let far = if end > FAR { loc + stretch(shape, -libm::log(FAR)) } else { 0.0 };
    sum + middle + far
}

fn etc_value_quantile(u: f64) -> f64 {
    let head = ETC_HEAD_UNTIL[14];
    if u < head {
        ETC_HEAD_UNTIL.partition_point(|&until| until <= u) as f64
    } else {
        ETC_TAIL.quantile((u - head) / (1.0 - head))
    }
}

const fn running_sums(shares: [f64; 15]) -> [f64; 15] {
    let mut sums = shares;
    let mut index = 1;
    while index < 15 {
        sums[index] += sums[index - 1];
        index += 1;
    }
    sums
}

/// Quantile of the normal distribution with mean 0 and standard deviation 1. The formula is the rational
/// approximation PPND16 of Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied
/// Statistics 37, 1988; relative error about 1e-16.
fn normal_quantile(u: f64) -> f64 {
    let centred = u - 0.5;
    if centred.abs() <= 0.425 {
        let r = 0.180625 - centred * centred;
        return centred * polynomial(&CENTRE_OVER, r) / polynomial(&CENTRE_UNDER, r);
    }
    let tail = if centred < 0.0 { u } else { 1.0 - u };
    let r = (-libm::log(tail)).sqrt();
    let distance = if r <= 5.0 {
        polynomial(&MIDDLE_OVER, r - 1.6) / polynomial(&MIDDLE_UNDER, r - 1.6)
    } else {
        polynomial(&FAR_OVER, r - 5.0) / polynomial(&FAR_UNDER, r - 5.0)
    };
    if centred < 0.0 { -distance } else { distance }
}

/// Evaluates a polynomial by Horner's rule; the coefficient of the highest power comes last.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[rustfmt::skip]
const CENTRE_OVER: [f64; 8] = [
    3.387_132_872_796_366_5, 1.331_416_678_917_843_8e2, 1.971_590_950_306_551_3e3, 1.373_169_376_550_946e4,
    4.592_195_393_154_987e4, 6.726_577_092_700_87e4, 3.343_057_558_358_813e4, 2.509_080_928_730_122_7e3,
];
#[rustfmt::skip]
const CENTRE_UNDER: [f64; 8] = [
    1.0, 4.231_333_070_160_091e1, 6.871_870_074_920_579e2, 5.394_196_021_424_751e3,
    2.121_379_430_158_659_7e4, 3.930_789_580_009_271e4, 2.872_908_573_572_194_3e4, 5.226_495_278_852_854e3,
];
#[rustfmt::skip]
const MIDDLE_OVER: [f64; 8] = [
    1.423_437_110_749_683_5, 4.630_337_846_156_546, 5.769_497_221_460_691, 3.647_848_324_763_204_5,
    1.270_458_252_452_368_4, 2.417_807_251_774_506e-1, 2.272_384_498_926_918_4e-2, 7.745_450_142_783_414e-4,
];
#[rustfmt::skip]
const MIDDLE_UNDER: [f64; 8] = [
    1.0, 2.053_191_626_637_759, 1.676_384_830_183_803_8, 6.897_673_349_851e-1, 1.481_039_764_274_800_8e-1,
    1.519_866_656_361_645_7e-2, 5.475_938_084_995_345e-4, 1.050_750_071_644_416_9e-9,
];
#[rustfmt::skip]
const FAR_OVER: [f64; 8] = [
    6.657_904_643_501_103, 5.463_784_911_164_114, 1.784_826_539_917_291_3, 2.965_605_718_285_048_7e-1,
    2.653_218_952_657_612_4e-2, 1.242_660_947_388_078_4e-3, 2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
#[rustfmt::skip]
const FAR_UNDER: [f64; 8] = [
    1.0, 5.998_322_065_558_879e-1, 1.369_298_809_227_358e-1, 1.487_536_129_085_061_5e-2,
    7.868_691_311_456_133e-4, 1.846_318_317_510_054_8e-5, 1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];
