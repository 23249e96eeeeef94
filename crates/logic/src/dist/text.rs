//! Distributions as text: parsing, printing, saving, and the messages for text that is no distribution.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::error::{DistError, NUMBER_MAX, WEIGHTED, refused};
use super::{Dist, ETC_ARRIVAL_HOURS, Range, Weighted};

/// The result of parsing the text of a distribution. A distribution in a file is only complete after the file was
/// read.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// A complete distribution.
    Ready(Dist),
    /// The path in `file:PATH`. The caller reads the file and passes its text to [`Dist::from_lines`].
    File(String),
    /// The path in `cachelib:PATH`, a file of sizes in CacheLib's format. The caller reads the file.
    Cachelib(String),
}

impl FromStr for Spec {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Spec, DistError> {
        if let Some(path) = text.strip_prefix("cachelib:") {
            let wrong = || refused(text, "cachelib:PATH with a file of CacheLib's sizes, such as sizes.json");
            return if path.is_empty() { Err(wrong()) } else { Ok(Spec::Cachelib(path.to_owned())) };
        }
        match text.strip_prefix("file:") {
            Some("") => Err(refused(text, "file:PATH with one number a line in the file")),
            Some(path) => Ok(Spec::File(path.to_owned())),
            None => parse(text).map(Spec::Ready),
        }
    }
}

/// `fixed:V` or `V`, `uniform:LO,HI`, `normal:MEAN,SD`, `exponential:MEAN`, `pareto:LOC,SCALE,SHAPE`,
/// `gev:LOC,SCALE,SHAPE`, `etc-key`, `etc-value`, `etc-arrival[:HOUR]`, `weighted:LO-HI@P,...`. Numbers are bare, without
/// units. `file:PATH` and `cachelib:PATH` are [`DistError::Unread`] here and known to [`Spec`].
impl FromStr for Dist {
    type Err = DistError;

    fn from_str(text: &str) -> Result<Dist, DistError> {
        match text.parse()? {
            Spec::Ready(dist) => Ok(dist),
            Spec::File(_) | Spec::Cachelib(_) => Err(DistError::Unread(text.to_owned())),
        }
    }
}

/// The text that parses to the same distribution (for a file: its name, without the values).
impl fmt::Display for Dist {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dist::Fixed(value) => write!(out, "{value}"),
            Dist::Uniform { low, high } => write!(out, "uniform:{low},{high}"),
            Dist::Normal { mean, sd } => write!(out, "normal:{mean},{sd}"),
            Dist::Exponential { mean } => write!(out, "exponential:{mean}"),
            Dist::Pareto { loc, scale, shape } => write!(out, "pareto:{loc},{scale},{shape}"),
            Dist::Gev { loc, scale, shape } => write!(out, "gev:{loc},{scale},{shape}"),
            Dist::EtcKey => out.write_str("etc-key"),
            Dist::EtcValue => out.write_str("etc-value"),
            Dist::EtcArrival => out.write_str("etc-arrival"),
            Dist::Weighted(weighted) => weighted.fmt(out),
            Dist::File { path, .. } => write!(out, "file:{path}"),
        }
    }
}

impl Dist {
    /// The empirical distribution of the numbers in `text`, one a line; empty lines and what follows a `#` do not
    /// count. `path` says where the text came from.
    ///
    /// # Errors
    /// Returns [`DistError::Line`] for the first line that is no number, and [`DistError::Empty`] for a text without numbers.
    pub fn from_lines(path: &str, text: &str) -> Result<Dist, DistError> {
        let mut values = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let given = line.split('#').next().unwrap_or_default().trim();
            if given.is_empty() {
                continue;
            }
            let wrong =
                || DistError::Line { path: path.to_owned(), line: index + 1, given: given.to_owned() };
            values.push(number(given).ok_or_else(wrong)?);
        }
        Dist::from_values(path, values)
    }

    /// The empirical distribution of these values, in any order.
    ///
    /// # Errors
    /// Returns [`DistError::Empty`] without values, and [`DistError::Refused`] for a value that is not finite or too large.
    pub fn from_values(path: &str, mut values: Vec<f64>) -> Result<Dist, DistError> {
        if values.is_empty() {
            return Err(DistError::Empty(path.to_owned()));
        }
        values.sort_by(f64::total_cmp);
        Dist::File { path: path.to_owned(), values }.checked()
    }

    /// The distribution itself if its parameters are legal, for variants that were built by hand.
    ///
    /// # Errors
    /// Returns [`DistError::Refused`] for a parameter that is out of its bounds, not finite or too large.
    pub fn checked(self) -> Result<Dist, DistError> {
        let (parameters, legal) = match &self {
            Dist::Fixed(value) => (vec![*value], true),
            Dist::Uniform { low, high } => (vec![*low, *high], low <= high),
            Dist::Normal { mean, sd } => (vec![*mean, *sd], *sd >= 0.0),
            Dist::Exponential { mean } => (vec![*mean], *mean >= 0.0),
            Dist::Pareto { loc, scale, shape } | Dist::Gev { loc, scale, shape } => {
                (vec![*loc, *scale, *shape], *scale > 0.0)
            }
            Dist::File { values, .. } => (values.clone(), values.is_sorted() && !values.is_empty()),
            Dist::EtcKey | Dist::EtcValue | Dist::EtcArrival | Dist::Weighted(_) => (vec![], true),
        };
        if legal && parameters.iter().all(|value| value.abs() <= NUMBER_MAX) {
            Ok(self)
        } else {
            Err(refused(&self.to_string(), accepted(&self)))
        }
    }
}

fn parse(text: &str) -> Result<Dist, DistError> {
    if let Some(value) = number(text) {
        return Ok(Dist::Fixed(value));
    }
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let has_colon = name.len() < text.len();
    let numbers: Option<Vec<f64>> = parameters.split(',').map(number).collect();
    // A form of the right name, for its message where the parameters are wrong.
    let (form, dist) = match name {
        "weighted" if has_colon => return parse_ranges(text, parameters),
        "etc-key" => (Dist::EtcKey, (!has_colon).then_some(Dist::EtcKey)),
        "etc-value" => (Dist::EtcValue, (!has_colon).then_some(Dist::EtcValue)),
        "etc-arrival" if has_colon => {
            let gaps = parameters.parse().ok().and_then(|hour: usize| ETC_ARRIVAL_HOURS.get(hour));
            let (scale, shape) =
                *gaps.ok_or_else(|| refused(text, "etc-arrival:HOUR with an hour from 0 to 23"))?;
            return Ok(Dist::Pareto { loc: 0.0, scale, shape });
        }
        "etc-arrival" => (Dist::EtcArrival, Some(Dist::EtcArrival)),
        "fixed" | "uniform" | "normal" | "exponential" | "pareto" | "gev" => (
            of_numbers(name, &[1.0; 3]),
            numbers.filter(|n| n.len() == count(name)).map(|n| of_numbers(name, &n)),
        ),
        _ => return Err(refused(text, ANY)),
    };
    let wrong = || refused(text, accepted(&form));
    dist.ok_or_else(wrong)?.checked().map_err(|_| wrong())
}

/// Number of parameters of a distribution of plain numbers.
fn count(name: &str) -> usize {
    match name {
        "fixed" | "exponential" => 1,
        "uniform" | "normal" => 2,
        _ => 3,
    }
}

/// A distribution of plain numbers from at least as many as [`count`] says.
fn of_numbers(name: &str, numbers: &[f64]) -> Dist {
    match name {
        "fixed" => Dist::Fixed(numbers[0]),
        "uniform" => Dist::Uniform { low: numbers[0], high: numbers[1] },
        "normal" => Dist::Normal { mean: numbers[0], sd: numbers[1] },
        "exponential" => Dist::Exponential { mean: numbers[0] },
        "pareto" => Dist::Pareto { loc: numbers[0], scale: numbers[1], shape: numbers[2] },
        _ => Dist::Gev { loc: numbers[0], scale: numbers[1], shape: numbers[2] },
    }
}

fn parse_ranges(text: &str, ranges: &str) -> Result<Dist, DistError> {
    let ranges: Option<Vec<Range>> = ranges.split(',').map(parse_range).collect();
    let weighted = Weighted::new(ranges.unwrap_or_default()).map_err(|_| refused(text, WEIGHTED))?;
    Ok(Dist::Weighted(weighted))
}

/// `LO-HI@P`, or `V@P` for a range of one number.
fn parse_range(text: &str) -> Option<Range> {
    let (bounds, weight) = text.split_once('@')?;
    let (low, high) = bounds.split_once('-').unwrap_or((bounds, bounds));
    Some(Range { low: low.parse().ok()?, high: high.parse().ok()?, weight: number(weight)? })
}

/// A number that can be a parameter: neither infinite nor NaN, nor beyond [`NUMBER_MAX`].
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.abs() <= NUMBER_MAX)
}

/// The forms of a distribution in the columns of `--help`, where numbers may have units.
pub const FORMS: &str = "  V or fixed:V             uniform:LO,HI            normal:MEAN,SD
  exponential:MEAN         pareto:LOC,SCALE,SHAPE   gev:LOC,SCALE,SHAPE
  weighted:LO-HI@P,...     file:PATH (one number a line)
  etc-key, etc-value, etc-arrival[:HOUR] (Facebook's ETC pool; HOUR of its day, 0 to 23)
";

/// The words with which the text of a distribution may begin.
#[rustfmt::skip]
pub const NAMES: [&str; 12] = [
    "fixed", "uniform", "normal", "exponential", "pareto", "gev", "etc-key", "etc-value", "etc-arrival",
    "weighted", "file", "cachelib",
];

/// The forms of a distribution, for text that is none of them.
const ANY: &str = "a number, fixed:V, uniform:LO,HI, normal:MEAN,SD, exponential:MEAN, pareto:LOC,SCALE,SHAPE, \
                   gev:LOC,SCALE,SHAPE, etc-key, etc-value, etc-arrival[:HOUR], weighted:LO-HI@P,..., file:PATH or, of sizes, cachelib:PATH";

/// The form that each distribution accepts.
fn accepted(dist: &Dist) -> &'static str {
    match dist {
        Dist::Fixed(_) => "fixed:V with V between -1e18 and 1e18",
        Dist::Uniform { .. } => "uniform:LO,HI with LO <= HI",
        Dist::Normal { .. } => "normal:MEAN,SD with SD >= 0",
        Dist::Exponential { .. } => "exponential:MEAN with MEAN >= 0",
        Dist::Pareto { .. } => "pareto:LOC,SCALE,SHAPE with SCALE > 0",
        Dist::Gev { .. } => "gev:LOC,SCALE,SHAPE with SCALE > 0",
        Dist::EtcKey => "etc-key without parameters",
        Dist::EtcValue => "etc-value without parameters",
        Dist::EtcArrival => "etc-arrival without parameters",
        Dist::Weighted(_) => WEIGHTED,
        Dist::File { .. } => "file:PATH with numbers between -1e18 and 1e18",
    }
}

/// A distribution is serialized as its text; one from a file as a table of `path` and `values`, so that a saved plan is
/// complete.
impl Serialize for Dist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Dist::File { path, values } = self else { return serializer.collect_str(self) };
        let mut table = serializer.serialize_struct("File", 2)?;
        table.serialize_field("path", path)?;
        table.serialize_field("values", values)?;
        table.end()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Dist {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dist".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A distribution in the language of the command line, or one from a file with its values.",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "required": ["path", "values"],
                    "properties": {
                        "path": { "type": "string", "description": "File that the values are from." },
                        "values": { "type": "array", "description": "The values, from the least to the greatest." }
                    }
                }
            ]
        })
    }
}

/// A distribution is read from its text, a bare number, or the table of `path` and `values`.
impl<'de> Deserialize<'de> for Dist {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dist, D::Error> {
        deserializer.deserialize_any(DistVisitor)
    }
}

struct DistVisitor;

impl<'de> Visitor<'de> for DistVisitor {
    type Value = Dist;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a distribution such as \"uniform:1,9\", or a table of path and values")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Dist, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Dist, E> {
        Dist::Fixed(value).checked().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Dist, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Dist, E> {
        self.visit_f64(value as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dist, A::Error> {
        let (mut path, mut values) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "path" => path = Some(map.next_value::<String>()?),
                "values" => values = Some(map.next_value::<Vec<f64>>()?),
                _ => return Err(de::Error::unknown_field(&key, &["path", "values"])),
            }
        }
        let path = path.ok_or_else(|| de::Error::missing_field("path"))?;
        let values = values.ok_or_else(|| de::Error::missing_field("values"))?;
        Dist::from_values(&path, values).map_err(de::Error::custom)
    }
}
