//! Distributions in mutilate's notation, as distributions of sizes and as gaps that fit a rate.

use pummel_logic::dist::Dist;
use pummel_logic::plan::Arrivals;

use crate::c_numbers::strtod;

/// What a text of `--keysize`, `--valuesize` or `--iadist` stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// `fb_key`: key sizes of Facebook's ETC pool.
    FbKey,
    /// `fb_value`: value sizes of Facebook's ETC pool.
    FbValue,
    /// `fb_ia`: gaps of Facebook's ETC pool.
    FbIa,
    /// A shape with its parameters, as far as they were given.
    Shape(Shape, [Option<f64>; 3]),
}

/// A shape that has parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// value
    Fixed,
    /// mean, standard deviation
    Normal,
    /// rate
    Exponential,
    /// loc, scale, shape
    Pareto,
    /// loc, scale, shape
    Gev,
    /// greatest
    Uniform,
}

/// The names of shapes, in the order in which the original tries them.
const SHAPES: [(&str, Shape); 6] = [
    ("fixed", Shape::Fixed),
    ("normal", Shape::Normal),
    ("exponential", Shape::Exponential),
    ("pareto", Shape::Pareto),
    ("gev", Shape::Gev),
    ("uniform", Shape::Uniform),
];

impl Form {
    /// Reads the notation: a number, a name of the ETC pool, or `name[:parameter[,...]]` with the name in full or
    /// shortened, in any case.
    ///
    /// # Errors
    /// The original's words where it is none.
    pub fn parse(text: &str) -> Result<Form, String> {
        match text {
            "" => return Err("strtok(.., \":\") failed to parse ".to_owned()),
            "fb_key" => return Ok(Form::FbKey),
            "fb_value" => return Ok(Form::FbValue),
            "fb_ia" => return Ok(Form::FbIa),
            _ => {}
        }
        let form = match number(text) {
            Some(value) => Form::Shape(Shape::Fixed, [Some(value), None, None]),
            None => shape(text).ok_or_else(|| refused(text))?,
        };
        form.is_legal().then_some(form).ok_or_else(|| refused(text))
    }

    /// Parameters that mean something: no spread, scale or rate below 0.
    fn is_legal(&self) -> bool {
        match self {
            Form::Shape(Shape::Normal | Shape::Pareto | Shape::Gev, [_, spread, _]) => {
                spread.is_none_or(|spread| spread >= 0.0)
            }
            Form::Shape(Shape::Exponential | Shape::Uniform, [least, ..]) => {
                least.is_none_or(|least| least >= 0.0)
            }
            _ => true,
        }
    }

    /// The distribution of sizes. Parameters that are missing are those of the original's constructors, except for the deviation
    /// of a normal distribution with a mean.
    ///
    /// # Errors
    /// The original's words where the parameters are out of all bounds.
    pub fn sizes(&self, text: &str) -> Result<Dist, String> {
        let dist = match *self {
            Form::FbKey => Dist::EtcKey,
            Form::FbValue => Dist::EtcValue,
            Form::FbIa => Dist::EtcArrival,
            Form::Shape(shape, [first, second, third]) => match shape {
                Shape::Fixed => Dist::Fixed(first.unwrap_or(0.0)),
                Shape::Uniform => Dist::Uniform { low: 0.0, high: first.unwrap_or(1.0) },
                Shape::Normal => normal(first.unwrap_or(1.0), deviation(first, second)),
                // Without a rate nothing but 0 is drawn.
                Shape::Exponential if first == Some(0.0) => Dist::Fixed(0.0),
                Shape::Exponential => Dist::Exponential { mean: 1.0 / first.unwrap_or(1.0) },
                Shape::Pareto | Shape::Gev if second == Some(0.0) => Dist::Fixed(first.unwrap_or(0.0)),
                Shape::Pareto => Dist::Pareto {
                    loc: first.unwrap_or(0.0),
                    scale: second.unwrap_or(1.0),
                    shape: third.unwrap_or(1.0),
                },
                Shape::Gev => Dist::Gev {
                    loc: first.unwrap_or(0.0),
                    scale: second.unwrap_or(1.0),
                    shape: third.unwrap_or(1.0),
                },
            },
        };
        dist.checked().map_err(|_| refused(text))
    }

    /// Gaps whose mean is `mean_s` seconds. What was given as a rate, a mean or a scale makes way for it; a normal's
    /// deviation and a Pareto's beginning are kept, in seconds, and so is its shape, which is 0 where it is missing. Shapes that
    /// the original fits to no rate are kept whole, and the schedule multiplies what they give.
    ///
    /// # Errors
    /// The original's words for what cannot be fitted to a rate, because its mean is 0 or infinite.
    pub fn gaps(&self, text: &str, mean_s: f64) -> Result<Arrivals, String> {
        let dist = match *self {
            Form::FbKey | Form::FbValue | Form::Shape(Shape::Gev, _) => self
                .sizes(text)
                .ok()
                .filter(|dist| dist.factor_to_mean(mean_s).is_some())
                .ok_or_else(unfitted)?,
            Form::FbIa => pareto(0.0, 0.154_971, mean_s),
            Form::Shape(shape, [first, second, third]) => match shape {
                Shape::Fixed | Shape::Gev => Dist::Fixed(mean_s),
                Shape::Uniform => Dist::Uniform { low: 0.0, high: 2.0 * mean_s },
                Shape::Normal => normal(mean_s, deviation(first, second)),
                Shape::Exponential => return Ok(Arrivals::Poisson),
                Shape::Pareto => pareto(first.unwrap_or(0.0), third.unwrap_or(0.0), mean_s),
            },
        };
        dist.checked().map(Arrivals::Shape).map_err(|_| refused(text))
    }
}

/// The standard deviation of a normal distribution of these parameters. The original takes 0 for the one that is missing behind
/// the mean, so that all keys of `normal:30` have 30 bytes; a name alone ends it.
fn deviation(mean: Option<f64>, sd: Option<f64>) -> f64 {
    sd.unwrap_or(if mean.is_some() { 0.0 } else { 1.0 })
}

/// The normal distribution, which is one value where it has no deviation.
fn normal(mean: f64, sd: f64) -> Dist {
    if sd == 0.0 { Dist::Fixed(mean) } else { Dist::Normal { mean, sd } }
}

/// The generalised Pareto distribution of this beginning, shape and mean.
fn pareto(loc: f64, shape: f64, mean: f64) -> Dist {
    Dist::Pareto { loc, scale: (1.0 - shape) * (mean - loc), shape }
}

fn unfitted() -> String {
    "set_lambda() not implemented".to_owned()
}

fn refused(text: &str) -> String {
    format!("Unable to create Generator '{text}'")
}

/// A finite number and nothing else.
fn number(text: &str) -> Option<f64> {
    let (number, rest) = strtod(text);
    (rest.is_empty() && number.is_finite()).then_some(number)
}

fn shape(text: &str) -> Option<Form> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let name = name.to_ascii_lowercase();
    let (_, shape) = SHAPES.into_iter().find(|(full, _)| !name.is_empty() && full.starts_with(&name))?;
    let mut given = [None; 3];
    // Commas that follow each other count as one, as in the original.
    for (place, parameter) in parameters.split(',').filter(|parameter| !parameter.is_empty()).enumerate() {
        let value = number(parameter)?;
        if let Some(slot) = given.get_mut(place) {
            *slot = Some(value);
        }
    }
    Some(Form::Shape(shape, given))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<Dist, String> {
        Form::parse(text)?.sizes(text)
    }

    #[test]
    fn sizes_are_read_in_every_spelling() {
        let gev = |loc, scale, shape| Dist::Gev { loc, scale, shape };
        let pareto = |loc, scale, shape| Dist::Pareto { loc, scale, shape };
        for (text, dist) in [
            ("200", Dist::Fixed(200.0)),
            ("1e3", Dist::Fixed(1000.0)),
            ("0", Dist::Fixed(0.0)),
            ("00", Dist::Fixed(0.0)),
            ("0.5", Dist::Fixed(0.5)),
            ("-5", Dist::Fixed(-5.0)),
            ("fixed:20", Dist::Fixed(20.0)),
            ("F:20", Dist::Fixed(20.0)),
            ("uniform:400", Dist::Uniform { low: 0.0, high: 400.0 }),
            ("u", Dist::Uniform { low: 0.0, high: 1.0 }),
            ("normal:200,50", Dist::Normal { mean: 200.0, sd: 50.0 }),
            ("NORM:200", Dist::Fixed(200.0)),
            ("normal:30,", Dist::Fixed(30.0)),
            ("normal:,30", Dist::Fixed(30.0)),
            ("normal:30,0", Dist::Fixed(30.0)),
            ("n", Dist::Normal { mean: 1.0, sd: 1.0 }),
            ("exponential:0.005", Dist::Exponential { mean: 200.0 }),
            ("e", Dist::Exponential { mean: 1.0 }),
            ("e:0", Dist::Fixed(0.0)),
            ("pareto:15,214.476,0.348238", pareto(15.0, 214.476, 0.348238)),
            ("p:5", pareto(5.0, 1.0, 1.0)),
            ("p:5,0", Dist::Fixed(5.0)),
            ("p:1,2,0", pareto(1.0, 2.0, 0.0)),
            ("gev:30.7984,8.20449,0.078688", gev(30.7984, 8.20449, 0.078688)),
            ("g", gev(0.0, 1.0, 1.0)),
            ("gev:,2", gev(2.0, 1.0, 1.0)),
            ("fb_key", Dist::EtcKey),
            ("fb_value", Dist::EtcValue),
            ("fb_ia", Dist::EtcArrival),
            ("gev:30.798400000000000000000000001,8.2044900000,0.0786880000", gev(30.7984, 8.20449, 0.078688)),
        ] {
            assert_eq!(sizes(text), Ok(dist), "{text}");
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused_in_the_originals_words() {
        for text in [
            "zipf",
            "200abc",
            "fb_keys",
            "normal:a,b",
            "normal:1,-1",
            "e:-1",
            "p:0,-1",
            "g:0,-1,0",
            "inf",
            "nan",
            ":",
        ] {
            assert_eq!(sizes(text), Err(format!("Unable to create Generator '{text}'")));
        }
        assert_eq!(sizes(""), Err("strtok(.., \":\") failed to parse ".to_owned()));
        assert_eq!(sizes("1e300"), Err("Unable to create Generator '1e300'".to_owned()));
    }

    #[test]
    fn what_is_drawn_has_the_moments_of_the_closed_forms() {
        // Mean, median and 99th percentile; fb_value's and fb_key's from the formulas of their parts.
        let euler = 0.577_215_664_901_532_9f64;
        for (text, mean, p50, p99) in [
            ("uniform:400", 200.0, 200.0, 396.0),
            ("exponential:0.005", 200.0, 200.0 * 2f64.ln(), 200.0 * 100f64.ln()),
            ("pareto:0,100,0.2", 125.0, 500.0 * (2f64.powf(0.2) - 1.0), 500.0 * (100f64.powf(0.2) - 1.0)),
            ("pareto:0,100,0", 100.0, 100.0 * 2f64.ln(), 100.0 * 100f64.ln()),
            ("normal:200,50", 200.0, 200.0, 200.0 + 50.0 * 2.326_347_874),
            (
                "gev:10,5,0",
                10.0 + 5.0 * euler,
                10.0 - 5.0 * 2f64.ln().ln(),
                10.0 - 5.0 * (-0.99f64.ln()).ln(),
            ),
            ("fb_key", 36.19, 33.92, 76.26),
            ("fb_value", 194.44, 39.3, 1_888.0),
            ("fb_ia", 16.0292 / (1.0 - 0.154971), 11.74, 107.7),
        ] {
            let dist = sizes(text).unwrap();
            let draws = 2_000_000u32;
            let drawn: f64 = (0..draws).map(|i| dist.quantile((f64::from(i) + 0.5) / f64::from(draws))).sum();
            let near = |seen: f64, wanted: f64| (seen / wanted - 1.0).abs() < 0.01;
            assert!(near(drawn / f64::from(draws), mean), "{text}: mean {}", drawn / f64::from(draws));
            assert!(near(dist.quantile(0.5), p50), "{text}: p50 {}", dist.quantile(0.5));
            assert!(near(dist.quantile(0.99), p99), "{text}: p99 {}", dist.quantile(0.99));
        }
    }

    #[test]
    fn gaps_have_the_mean_that_the_rate_asks_for() {
        for text in [
            "fixed",
            "5",
            "uniform",
            "u:9",
            "normal:7,0.0001",
            "n:1,0.0002",
            "pareto",
            "pareto:0,9,0.2",
            "p:0.0001,1,0.3",
            "fb_ia",
        ] {
            let Ok(Arrivals::Shape(dist)) = Form::parse(text).unwrap().gaps(text, 0.002) else {
                panic!("{text}")
            };
            assert!((dist.mean() - 0.002).abs() < 1e-12, "{text}: {dist}");
        }
        for text in ["exponential", "e", "exponential:1", "EXP:5"] {
            assert_eq!(Form::parse(text).unwrap().gaps(text, 0.002), Ok(Arrivals::Poisson));
        }
        for text in ["n:5", "normal:5,0"] {
            let gaps = Form::parse(text).unwrap().gaps(text, 0.002);
            assert_eq!(gaps, Ok(Arrivals::Shape(Dist::Fixed(0.002))), "{text}");
        }
        let normal = Form::parse("n:5,0.0002").unwrap().gaps("n:5,0.0002", 0.002);
        assert_eq!(normal, Ok(Arrivals::Shape(Dist::Normal { mean: 0.002, sd: 0.0002 })));
    }

    #[test]
    fn shapes_that_the_original_fits_to_no_rate_are_kept_for_the_schedule_to_fit() {
        let etc_key = Dist::Gev { loc: 30.7984, scale: 8.20449, shape: 0.078_688 };
        for (text, dist) in [
            ("fb_key", Dist::EtcKey),
            ("fb_value", Dist::EtcValue),
            ("gev:30.7984,8.20449,0.078688", etc_key),
            ("gev:-3,2,0.1", Dist::Gev { loc: -3.0, scale: 2.0, shape: 0.1 }),
        ] {
            let gaps = Form::parse(text).unwrap().gaps(text, 0.001);
            assert_eq!(gaps, Ok(Arrivals::Shape(dist)), "{text}");
        }
    }

    #[test]
    fn shapes_that_fit_no_rate_are_refused() {
        for text in ["gev", "gev:1,2,3", "gev:0,0"] {
            let said = Form::parse(text).unwrap().gaps(text, 0.001);
            assert_eq!(said, Err("set_lambda() not implemented".to_owned()));
        }
        for text in ["p:0,1,1", "p:1,1,0.5"] {
            let said = Form::parse(text).unwrap().gaps(text, 0.001);
            assert_eq!(said, Err(format!("Unable to create Generator '{text}'")));
        }
    }
}
