//! The grammar of single values on a command line: counts, rates, times, servers, weights, CPU lists, goals.
//!
//! Every function takes the text of one value and says, where it cannot be read, what would be accepted; the caller
//! adds the flag and the value. pummel's own front and `pummel serve` read values of these kinds by the same functions.
//! No function opens a file: the file of `file:PATH` is read by the reader that [`UnreadDist::read`] is given.

pub mod nearest;
pub mod server_uri;
pub mod written;

mod cachelib;

use std::fmt;
use std::io;

use pummel_logic::dist::{Dist, DistError, NAMES as DIST_NAMES, Spec};
use pummel_logic::plan::address::{self, AddressError};
pub use pummel_logic::plan::address::{PORT, RESP_PORT};
use pummel_logic::plan::{
    Backend, CHURN_ACCEPTED, Clock, Command, Goal, KeyChurn, Popularity, Tracking, TransmitSampling,
};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::reply_shape::ReplyShape;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Highest CPU number that an affinity mask can name (`CPU_SETSIZE` of sched_setaffinity(2)) and one more.
const CPU_COUNT_MAX: usize = 1024;

/// Most digits of a number; enough for every whole number of 64 bits and for nine places after the point.
const DIGITS_MAX: usize = 29;

/// A value that cannot be read; the text says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError(pub String);

impl fmt::Display for ValueError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ValueError {}

impl From<AddressError> for ValueError {
    fn from(error: AddressError) -> ValueError {
        ValueError(error.to_string())
    }
}

/// Reads the keys whose changes a server tells of.
///
/// # Errors
/// Returns [`ValueError`] for any other word.
pub fn tracking(text: &str) -> Result<Tracking, ValueError> {
    Tracking::from_name(text).ok_or_else(|| ValueError("expected keys or bcast".to_owned()))
}

/// What the functions of this file return.
type Read<T> = Result<T, ValueError>;

fn accepted<T>(text: impl Into<String>) -> Read<T> {
    Err(ValueError(text.into()))
}

/// A decimal number as it was written: `mantissa` / 10^`places`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    mantissa: u128,
    places: u32,
}

impl Decimal {
    /// Reads digits with at most one point between or after them.
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        let count = digits().count();
        if whole.is_empty() || count > DIGITS_MAX || !digits().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mantissa = digits().fold(0, |sum: u128, byte| sum * 10 + u128::from(byte - b'0'));
        Some(Decimal { mantissa, places: fraction.len() as u32 })
    }

    /// This number times `factor`, where that is a whole number of 64 bits.
    fn times(self, factor: u64) -> Option<u64> {
        let product = self.mantissa.checked_mul(u128::from(factor))?;
        let divisor = 10u128.pow(self.places);
        if product % divisor == 0 { u64::try_from(product / divisor).ok() } else { None }
    }

    /// This number as a floating-point number, rounded once.
    fn as_f64(self) -> f64 {
        format!("{}e-{}", self.mantissa, self.places).parse().unwrap_or(f64::INFINITY)
    }
}

/// Splits `1.5KiB` into the number and the unit.
fn number_and_unit(text: &str) -> Option<(Decimal, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((Decimal::parse(number)?, unit))
}

/// What a unit of counts and sizes multiplies by: `k m g` are decimal, `KiB MiB GiB` powers of two.
fn multiplier(unit: &str) -> Option<u64> {
    match unit.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" => Some(1_000),
        "m" => Some(1_000_000),
        "g" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    }
}

/// What a unit of time is in nanoseconds; without a unit it is seconds.
fn unit_of_time(unit: &str) -> Option<Nanos> {
    match unit {
        "ns" => Some(1),
        "us" => Some(MICROSECOND),
        "ms" => Some(MILLISECOND),
        "" | "s" => Some(SECOND),
        "m" => Some(60 * SECOND),
        "h" => Some(3_600 * SECOND),
        _ => None,
    }
}

/// A number of things or of bytes: `10000`, `10k`, `1.5m`, `4KiB`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number, or one beyond 64 bits.
pub fn count(text: &str) -> Read<u64> {
    number_and_unit(text)
        .and_then(|(number, unit)| number.times(multiplier(unit)?))
        .map_or_else(|| accepted(too_much(text).unwrap_or_else(|| COUNT.to_owned())), Ok)
}

/// The words for what a [`count`] may be.
const COUNT: &str = "expected a whole number, such as 10000, 10k, 1.5m, 1g or 4KiB";

/// Units that others write behind a rate, and pummel does not take.
const UNITS_OF_RATES: [&str; 8] = [" req/s", "req/s", " rps", "rps", " qps", "qps", "/sec", "/s"];

/// The words for a number that is right without a part of it: `20,000` and `20000/s`.
pub fn too_much(text: &str) -> Option<String> {
    let is_number = |text: &str| number_and_unit(text).is_some_and(|(_, unit)| multiplier(unit).is_some());
    let unit = UNITS_OF_RATES.iter().find(|unit| text.to_ascii_lowercase().ends_with(**unit));
    let number = unit.map_or(text, |unit| &text[..text.len() - unit.len()]);
    let separator = [',', '_', '\''].into_iter().find(|separator| number.contains(*separator));
    let bare = separator.map_or_else(|| number.to_owned(), |separator| number.replace(separator, ""));
    let parts: Vec<String> =
        separator.map(String::from).into_iter().chain(unit.map(|unit| unit.trim().to_owned())).collect();
    let parts: Vec<String> = parts.iter().map(|part| format!("'{part}'")).collect();
    // Groups of three digits, or else it is a list of several numbers.
    let has_groups =
        separator.is_none_or(|separator| number.split(separator).skip(1).all(|group| group.len() == 3));
    (!parts.is_empty() && has_groups && is_number(&bare))
        .then(|| format!("leave out {}: {bare}", parts.join(" and ")))
}

/// A [`count`] from `least` to `most`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number from `least` to `most`.
pub fn count_within(text: &str, least: u64, most: u64) -> Read<u64> {
    let value = count(text)?;
    if value < least || value > most {
        return accepted(format!("expected a whole number from {least} to {most}"));
    }
    Ok(value)
}

/// A [`count`] of at least 1.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number above 0.
pub fn count_above_zero(text: &str) -> Read<u64> {
    match count(text)? {
        0 => accepted("expected a whole number above 0, such as 1, 10000, 10k or 1.5m"),
        value => Ok(value),
    }
}

/// A [`count`] of 32 bits.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number from 0 to 4,294,967,295.
pub fn count_u32(text: &str) -> Read<u32> {
    count_within(text, 0, u32::MAX.into()).map(|value| value as u32)
}

/// A [`count`], cut off at 4,294,967,295: for options whose check of the plan has a smaller bound and names it.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number.
pub fn count_cut(text: &str) -> Read<u32> {
    count(text).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}

/// A seed that a plan can have.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no whole number of 63 bits.
pub fn seed(text: &str) -> Read<u64> {
    const SEED_MAX: u64 = i64::MAX as u64;
    let seed = count(text).ok().filter(|seed| *seed <= SEED_MAX);
    seed.map_or_else(|| accepted(format!("expected a whole number from 0 to {SEED_MAX}, such as 42")), Ok)
}

/// Requests per second, above 0: `20000`, `20k`, `0.5`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no number, and for a rate of 0 or above 1e9
/// requests per second.
pub fn rate(text: &str) -> Read<f64> {
    rate_of("requests", text)
}

/// Clients per second that come and go, above 0, in the form of a [`rate`].
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no number, and for a rate of 0 or above 1e9
/// clients per second.
pub fn client_rate(text: &str) -> Read<f64> {
    rate_of("clients", text)
}

/// A number per second of what `counted` names.
fn rate_of(counted: &str, text: &str) -> Read<f64> {
    const RATE_MAX: f64 = 1e9;
    let rate = number_and_unit(text)
        .and_then(|(number, unit)| Some(number.as_f64() * multiplier(unit)? as f64))
        .unwrap_or(0.0);
    if rate > 0.0 && rate <= RATE_MAX {
        return Ok(rate);
    }
    if let Some(told) = too_much(text) {
        return accepted(told);
    }
    accepted(format!("expected {counted} per second above 0 and up to 1g, such as 500, 20k or 1.5m"))
}

/// A span of time: `10s`, `250ms`, `1.5h`; a bare number is seconds.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no span of time.
pub fn time(text: &str) -> Read<Nanos> {
    number_and_unit(text).and_then(|(number, unit)| number.times(unit_of_time(unit)?)).map_or_else(
        || accepted("expected a time, such as 10s, 250ms, 100us, 5m or 1h; a bare number is seconds"),
        Ok,
    )
}

/// A [`time`] above 0.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no span of time above 0.
pub fn time_above_zero(text: &str) -> Read<Nanos> {
    match time(text)? {
        0 => accepted("expected a time above 0, such as 10s, 250ms or 5m; a bare number is seconds"),
        value => Ok(value),
    }
}

/// Whole seconds, as a time of up to 136 years.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no span of whole seconds of 32 bits.
pub fn whole_seconds(text: &str) -> Read<u32> {
    let seconds = time(text)? / SECOND;
    match u32::try_from(seconds) {
        Ok(whole) if time(text)?.is_multiple_of(SECOND) => Ok(whole),
        _ => accepted("expected whole seconds, such as 30, 30s or 5m"),
    }
}

/// A share from 0 to 1: `0`, `0.25`, `1`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no number from 0 to 1.
pub fn fraction(text: &str) -> Read<f64> {
    match Decimal::parse(text).map(Decimal::as_f64) {
        Some(value) if value <= 1.0 => Ok(value),
        _ => accepted("expected a share from 0 to 1, such as 0.1"),
    }
}

/// A ratio to 1, such as `2.5`.
///
/// # Errors
/// Returns [`ValueError`] for anything that is no decimal number.
pub fn ratio(text: &str) -> Read<f64> {
    match Decimal::parse(text) {
        Some(ratio) => Ok(ratio.as_f64()),
        None => accepted("expected a ratio, such as 2 or 1.5"),
    }
}

/// Servers of memcached's, separated by commas, each in the form that the Plan has: see [`address::server_at`].
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for the first part that is no server.
pub fn servers(text: &str) -> Read<Vec<String>> {
    servers_at(text, PORT)
}

/// Servers separated by commas, which listen on this port where none is given; see [`address::server_at`].
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for the first part that is no server.
pub fn servers_at(text: &str, default_port: u16) -> Read<Vec<String>> {
    text.split(',').map(|server| Ok(address::server_at(server, default_port)?)).collect()
}

/// One server of memcached's: see [`address::server_at`].
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no server.
pub fn server(text: &str) -> Read<String> {
    Ok(address::server_at(text, PORT)?)
}

/// What the numbers of a distribution are, and so which units they may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bytes: `k m g KiB MiB GiB`.
    Bytes,
    /// Seconds: `ns us ms s m h`.
    Seconds,
}

impl Measure {
    /// A number with a unit as a bare one, in bytes or in seconds.
    fn bare(self, number: Decimal, unit: &str) -> Option<f64> {
        let (factor, places) = match self {
            Measure::Bytes => (multiplier(unit)?, 0),
            Measure::Seconds => (unit_of_time(unit)?, 9),
        };
        let mantissa = number.mantissa.checked_mul(u128::from(factor))?;
        Some(Decimal { mantissa, places: number.places + places }.as_f64())
    }

    /// What is accepted in place of a distribution that was refused.
    fn refusal(self, error: &DistError) -> ValueError {
        ValueError(match error {
            DistError::Refused { given, accepted: form } => {
                let name = given.split(':').next().unwrap_or_default();
                let near = nearest::hint(name, DIST_NAMES);
                format!("expected {form}{near}{}", units_text(self))
            }
            error => error.to_string(),
        })
    }
}

/// The text of a file that a value names.
fn text_of(path: &str, read_text: impl Fn(&str) -> io::Result<String>) -> Read<String> {
    read_text(path).map_err(|error| ValueError(format!("'{path}' cannot be read: {error}")))
}

/// A popularity as it was typed. The file of `cachelib:PATH` is still to be read.
#[derive(Clone, Debug, PartialEq)]
pub enum UnreadPopularity {
    /// A whole popularity.
    Ready(Popularity),
    /// The path of a file of CacheLib's.
    Cachelib(String),
}

impl UnreadPopularity {
    /// The popularity. The text of its file comes from `read_text`, which is given the path.
    ///
    /// # Errors
    /// Returns [`ValueError`], which says what is accepted, for a file that `read_text` cannot read, and for one
    /// without a popularity.
    pub fn read(&self, read_text: impl Fn(&str) -> io::Result<String>) -> Read<Popularity> {
        match self {
            UnreadPopularity::Ready(popularity) => Ok(popularity.clone()),
            UnreadPopularity::Cachelib(path) => {
                let read = cachelib::popularity(&text_of(path, read_text)?);
                read.map(Popularity::Buckets).map_err(|error| ValueError(format!("'{path}': {error}")))
            }
        }
    }
}

/// The text that was typed for a file, and for any other form a text that means the same.
impl fmt::Display for UnreadPopularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadPopularity::Ready(popularity) => popularity.fmt(out),
            UnreadPopularity::Cachelib(path) => write!(out, "cachelib:{path}"),
        }
    }
}

/// A distribution as it was typed. The file of `file:PATH`, which holds one bare number a line, and that of `cachelib:PATH` are still
/// to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadDist {
    spec: Spec,
    measure: Measure,
}

impl UnreadDist {
    /// The distribution. The text of the file that `file:PATH` names comes from `read_text`, which is given the path and
    /// is called for no other form.
    ///
    /// # Errors
    /// Returns [`ValueError`], which says what is accepted, for a file that `read_text` cannot read, and for one that
    /// holds no numbers or numbers out of their bounds.
    pub fn read(&self, read_text: impl Fn(&str) -> io::Result<String>) -> Read<Dist> {
        match &self.spec {
            Spec::Ready(dist) => Ok(dist.clone()),
            Spec::File(path) => {
                let text = text_of(path, read_text)?;
                Dist::from_lines(path, &text).map_err(|error| self.measure.refusal(&error))
            }
            Spec::Cachelib(path) => cachelib::sizes(&text_of(path, read_text)?)
                .map_err(|error| ValueError(format!("'{path}': {error}"))),
        }
    }

    /// A distribution of seconds.
    pub fn of_seconds(dist: Dist) -> UnreadDist {
        UnreadDist { spec: Spec::Ready(dist), measure: Measure::Seconds }
    }

    /// Keeps the distribution that [`UnreadDist::read`] returned, so that the file is not read again.
    pub fn keep(&mut self, dist: Dist) {
        self.spec = Spec::Ready(dist);
    }
}

/// The text that was typed for a file, and for any other form a text that means the same.
impl fmt::Display for UnreadDist {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spec {
            Spec::Ready(dist) => dist.fmt(out),
            Spec::File(path) => write!(out, "file:{path}"),
            Spec::Cachelib(path) => write!(out, "cachelib:{path}"),
        }
    }
}

/// A distribution whose numbers may have units: `200`, `4KiB`, `uniform:1k,2k`, `exponential:5ms`, `etc-value`,
/// `file:PATH`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no distribution, and for parameters that are
/// out of their bounds.
pub fn dist(text: &str, measure: Measure) -> Read<UnreadDist> {
    let spec = without_units(text, measure).parse::<Spec>();
    let spec = spec.map_err(|error| measure.refusal(&error))?;
    if matches!(spec, Spec::Cachelib(_)) && measure != Measure::Bytes {
        return accepted("expected cachelib:PATH where sizes are");
    }
    Ok(UnreadDist { spec, measure })
}

/// A whole number of percents from 0 to 100, with or without its sign.
///
/// # Errors
/// Returns [`ValueError`] for text that is not such a number.
pub fn percent(text: &str) -> Read<u32> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| *percent <= 100);
    number.map_or_else(|| accepted("expected a whole number of percents from 0 to 100, such as 10%"), Ok)
}

/// For how long records keep their keys: a time or a distribution of times that names no file, `default`, `requests:LIFE` with a
/// number of requests or a distribution of such, or `share:SHARE` with the records that are replaced for each request.
///
/// # Errors
/// Returns [`ValueError`] for other text.
pub fn churn(text: &str) -> Read<KeyChurn> {
    let refused = || ValueError(format!("expected {CHURN_ACCEPTED}"));
    let of = |text: &str, measure| {
        let no_file = |_: &str| Err(io::Error::other("a churn stands for itself"));
        dist(text, measure).and_then(|dist| dist.read(no_file)).map_err(|_| refused())
    };
    match text.split_once(':') {
        None if text == "default" => Ok(KeyChurn::usual()),
        Some(("requests", lives)) => match count(lives) {
            Ok(requests) => Ok(KeyChurn::Requests(Dist::Fixed(requests as f64))),
            Err(_) => of(lives, Measure::Bytes).map(KeyChurn::Requests),
        },
        Some(("share", share)) => fraction(share).map(KeyChurn::Share).map_err(|_| refused()),
        _ => of(text, Measure::Seconds).map(KeyChurn::Seconds),
    }
}

/// A [`dist`] of times.
///
/// # Errors
/// Returns [`ValueError`] as [`dist`] does.
pub fn dist_of_times(text: &str) -> Read<UnreadDist> {
    dist(text, Measure::Seconds)
}

/// A [`dist_of_times`] that waits have. Distributions without a bound are cut off at 0; a bound below 0 is a mistake.
///
/// # Errors
/// Returns [`ValueError`] as [`dist`] does, and for times below 0.
pub fn dist_of_waits(text: &str) -> Read<UnreadDist> {
    let read = dist_of_times(text)?;
    let is_below_zero = match &read.spec {
        Spec::Ready(Dist::Uniform { low, .. }) => *low < 0.0,
        Spec::Ready(dist) => dist.support().1 < 0.0,
        Spec::File(_) | Spec::Cachelib(_) => false,
    };
    if is_below_zero {
        return accepted(format!("expected times of 0 or more{}", units_text(Measure::Seconds)));
    }
    Ok(read)
}

fn units_text(measure: Measure) -> &'static str {
    match measure {
        Measure::Bytes => "; numbers are bytes and may have a unit: k, m, g, KiB, MiB, GiB",
        Measure::Seconds => "; numbers are seconds or have a unit: us, ms, s, m, h",
    }
}

/// The text of a distribution with every number that has a unit written without it; all else stays as it is, for the
/// distribution's own parser to judge.
fn without_units(text: &str, measure: Measure) -> String {
    let bare = |text: &str| {
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        match number_and_unit(digits).and_then(|(number, unit)| measure.bare(number, unit)) {
            Some(number) => format!("{sign}{number}"),
            None => text.to_string(),
        }
    };
    let join = |parts: Vec<String>, by: &str| parts.join(by);
    match text.split_once(':') {
        None => bare(text),
        Some(("file", _)) => text.to_string(),
        Some(("weighted", ranges)) => {
            let range = |range: &str| match range.split_once('@') {
                Some((bounds, weight)) => {
                    format!("{}@{weight}", join(bounds.split('-').map(bare).collect(), "-"))
                }
                None => range.to_string(),
            };
            format!("weighted:{}", join(ranges.split(',').map(range).collect(), ","))
        }
        Some((name, numbers)) => format!("{name}:{}", join(numbers.split(',').map(bare).collect(), ",")),
    }
}

/// An operation that a mix names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An operation that pummel knows.
    Verb(Verb),
    /// A command of the user by its name.
    Named(String),
}

impl Operation {
    /// The name that stands in a mix.
    pub fn name(&self) -> &str {
        match self {
            Operation::Verb(verb) => verb.name(),
            Operation::Named(name) => name,
        }
    }
}

/// Operations and their weights: `get:9,set:1`; without a weight it is 1; what has the weight 0 is not asked.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for an unknown operation, for a weight that is no number, for
/// an operation that is named twice, and where no weight is above 0.
pub fn weights(text: &str) -> Read<Vec<(Verb, f64)>> {
    weights_of(text, |part, name| {
        Verb::from_name(name).ok_or_else(|| ValueError(weights_accepted(&[]) + &operation_hint(part, name)))
    })
}

/// Operations and commands of the user with their weights, as [`weights`] reads them. Whether there is a command of a name is found out
/// by [`verb_of`].
///
/// # Errors
/// Returns [`ValueError`] as [`weights`] does.
pub fn weights_with_commands(text: &str) -> Read<Vec<(Operation, f64)>> {
    weights_of(text, |part, name| match Verb::from_name(name) {
        Some(verb) => Ok(Operation::Verb(verb)),
        None if Command::is_name(name) => Ok(Operation::Named(name.to_owned())),
        None => Err(ValueError(weights_accepted(&[]) + &operation_hint(part, name))),
    })
}

/// The text of a command whose places `__value:DIST__` have numbers without units, as a Plan holds them. What cannot be read stays as it
/// is.
pub fn with_plain_sizes(template: &str) -> String {
    const BEGIN: &str = "__value:";
    let mut parts = template.split(BEGIN);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (sizes, rest) =
            part.split_once("__").map_or(("", part), |(sizes, _)| (sizes, &part[sizes.len()..]));
        let read = dist(sizes, Measure::Bytes).map(|sizes| sizes.to_string());
        plain.push_str(BEGIN);
        plain.push_str(&read.unwrap_or_else(|_| sizes.to_owned()));
        plain.push_str(rest);
    }
    plain
}

/// The shape of the replies of a command, such as `range=nonempty`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for another text.
pub fn expected_shape(text: &str) -> Read<(Operation, ReplyShape)> {
    let read = text.split_once('=').and_then(|(name, shape)| {
        let operation = Verb::from_name(name).map_or(Operation::Named(name.to_owned()), Operation::Verb);
        Some((operation, ReplyShape::from_name(shape)?))
    });
    let shapes = ReplyShape::ALL.map(ReplyShape::name).join(", ");
    read.ok_or_else(|| {
        ValueError(format!("expected the name of a command and one of {shapes}, such as range=nonempty"))
    })
}

/// The verb of an operation in a mix, where these are the commands of the user. `command` stands for the only one.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for a name that no command has.
pub fn verb_of(operation: &Operation, commands: &[Command]) -> Read<Verb> {
    match operation {
        Operation::Verb(verb) if !verb.is_command() => Ok(*verb),
        Operation::Verb(Verb::Command) if commands.len() < 2 => Ok(Verb::Command),
        Operation::Verb(verb) => verb_of(&Operation::Named(verb.name().to_owned()), commands),
        Operation::Named(name) => {
            let place = commands.iter().position(|command| command.name == *name);
            let unknown = || ValueError(weights_accepted(commands) + &operation_hint(name, name));
            place.and_then(Verb::of_command).ok_or_else(unknown)
        }
    }
}

fn weights_of<O: PartialEq>(
    text: &str,
    operation: impl Fn(&str, &str) -> Result<O, ValueError>,
) -> Read<Vec<(O, f64)>> {
    let mut ops: Vec<(O, f64)> = Vec::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
        let op = operation(part, name)?;
        let Some(weight) = Decimal::parse(weight) else {
            return accepted(format!("expected a weight of 0 or more behind '{name}:', such as {name}:9"));
        };
        if ops.iter().any(|(seen, _)| *seen == op) {
            return accepted(format!("each operation is accepted once, and {name} stands there twice"));
        }
        ops.push((op, weight.as_f64()));
    }
    ops.retain(|&(_, weight)| weight > 0.0);
    if ops.is_empty() {
        return accepted("expected at least one operation with a weight above 0, such as get:9,set:1");
    }
    Ok(ops)
}

/// The verbs that a mix names; commands of the user beyond the first are named by their own names.
fn verbs_named() -> impl Iterator<Item = &'static str> {
    Verb::ALL.into_iter().filter(|verb| !verb.is_command() || *verb == Verb::Command).map(Verb::name)
}

/// The hint at what an operation and its weight were meant to be, where no operation has this name.
fn operation_hint(part: &str, name: &str) -> String {
    match part.split_once('=').filter(|(name, _)| Verb::from_name(name).is_some()) {
        Some((name, weight)) => format!(" (did you mean '{name}:{weight}'?)"),
        None => nearest::hint(name, verbs_named()),
    }
}

fn weights_accepted(commands: &[Command]) -> String {
    let own = commands.iter().map(|command| command.name.as_str());
    let mut names: Vec<&str> = verbs_named().collect();
    names.extend(own);
    format!("expected operations and weights, such as get:9,set:1; operations are {}", names.join(", "))
}

/// CPU numbers and ranges of them: `0,2-5`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no list of CPU numbers from 0 to 1023.
pub fn cpus(text: &str) -> Read<Vec<usize>> {
    let number = |text: &str| count(text).ok().map(|n| n as usize).filter(|&n| n < CPU_COUNT_MAX);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => return accepted("expected CPU numbers from 0 to 1023, or ranges, such as 0,2-5"),
        }
    }
    Ok(cpus)
}

/// Requests of which one is stamped when it leaves, where no number is given.
const STAMP_EVERY: u32 = 64;

/// The requests to stamp when they leave, and the points: `tx`, `tx:1000`, `tx+sched`, `nic`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for other text.
pub fn transmit_sampling(text: &str) -> Read<TransmitSampling> {
    let (kind, every) = text.split_once(':').map_or((text, None), |(kind, every)| (kind, Some(every)));
    let every = every.map_or(Some(STAMP_EVERY), |every| count(every).ok().and_then(|n| n.try_into().ok()));
    match (kind, every) {
        ("tx", Some(every)) => Ok(TransmitSampling { every, scheduled: false, hardware: false }),
        ("tx+sched", Some(every)) => Ok(TransmitSampling { every, scheduled: true, hardware: false }),
        ("nic", Some(every)) => Ok(TransmitSampling { every, scheduled: false, hardware: true }),
        _ => accepted("expected tx, tx+sched or nic, with :N for one request in N, such as tx:1000"),
    }
}

/// Addresses to connect from, separated by commas.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no list of IP addresses.
pub fn addresses(text: &str) -> Read<Vec<String>> {
    Ok(address::sources(text)?)
}

/// Bounds on quantiles of the response time, separated by commas: `p99:1ms`, `p50:100us,p99.9:5ms`.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for the first part that is no quantile with a time above 0.
pub fn goals(text: &str) -> Read<Vec<Goal>> {
    text.split(',').map(goal).collect()
}

fn goal(text: &str) -> Read<Goal> {
    let limit = text.split_once(':').map(|(_, limit)| limit);
    if let Some(limit) = limit.filter(|limit| Decimal::parse(limit).is_some_and(|number| number.mantissa > 0))
    {
        // Elsewhere a bare number is seconds. Here nearly everybody means milliseconds, and the goal would be met.
        return accepted(format!("{limit} s or {limit} ms? expected a limit with its unit, such as p99:1ms"));
    }
    let parsed = text.strip_prefix('p').and_then(|rest| {
        let (percent, limit) = rest.split_once(':')?;
        let percent = Decimal::parse(percent)?;
        let quantile = Decimal { places: percent.places + 2, ..percent }.as_f64();
        let limit_ns = time(limit).ok().filter(|&limit_ns| limit_ns > 0)?;
        Some(Goal { quantile, limit_ns }).filter(|goal| goal.quantile > 0.0 && goal.quantile < 1.0)
    });
    parsed.map_or_else(
        || accepted("expected a quantile and a limit above 0, such as p99:1ms or p99.9:500us"),
        Ok,
    )
}

/// A quantile and how far an end of its interval may be from it, as a share of it.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is no quantile with a share in percent.
pub fn quantile_within(text: &str) -> Read<(f64, f64)> {
    let parsed = text.strip_prefix('p').and_then(|rest| {
        let (quantile, share) = rest.split_once(':')?;
        let hundredth = |text: &str| {
            let percent = Decimal::parse(text)?;
            Some(Decimal { places: percent.places + 2, ..percent }.as_f64())
        };
        let (quantile, share) = (hundredth(quantile)?, hundredth(share.strip_suffix('%')?)?);
        let is_accepted = quantile > 0.0 && quantile < 1.0 && (0.001..=1.0).contains(&share);
        is_accepted.then_some((quantile, share))
    });
    parsed.map_or_else(
        || accepted("expected a quantile and a half-width from 0.1% to 100%, such as p99:2%"),
        Ok,
    )
}

/// How long a warm-up lasts, as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUpTime {
    /// Length in nanoseconds.
    Fixed(Nanos),
    /// Until the load has settled, and at most so many nanoseconds where that is said.
    Auto(Option<Nanos>),
}

/// A warm-up until a server evicts its first record, but no longer than the given time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntilEviction(pub Option<Nanos>);

/// A time, or `auto` with the longest time behind it.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for text that is neither.
pub fn warm_up(text: &str) -> Read<WarmUpTime> {
    let read = match text.strip_prefix("auto") {
        Some("") => Ok(WarmUpTime::Auto(None)),
        Some(longest) => {
            let longest = longest.strip_prefix(':').map(time_above_zero);
            longest.unwrap_or_else(|| accepted("")).map(|longest_ns| WarmUpTime::Auto(Some(longest_ns)))
        }
        None => time(text).map(WarmUpTime::Fixed),
    };
    read.or_else(|_| {
        let near = nearest::hint(text.split(':').next().unwrap_or_default(), ["auto"]);
        accepted(format!(
            "expected a time, auto or auto:MAX, such as 10s, auto or auto:2m; a bare number is seconds{near}"
        ))
    })
}

/// `evictions`, followed by the longest time if one is given.
///
/// # Errors
/// Returns [`ValueError`], which says what is accepted, for other text.
pub fn warm_up_until(text: &str) -> Read<UntilEviction> {
    let longest = text.strip_prefix("evictions").map(|rest| match rest.strip_prefix(':') {
        Some(longest) => time_above_zero(longest).ok().map(|longest_ns| UntilEviction(Some(longest_ns))),
        None => rest.is_empty().then_some(UntilEviction(None)),
    });
    match longest.flatten() {
        Some(until) => Ok(until),
        None => {
            let near = nearest::hint(text.split(':').next().unwrap_or_default(), ["evictions"]);
            accepted(format!(
                "evictions or evictions:MAX is accepted, such as evictions:5m; a bare number is seconds{near}"
            ))
        }
    }
}

/// The clock of `--clock`, for a command line that reads its words itself; the default one where the option is not given.
///
/// # Errors
/// Returns what is accepted in place of another word, with the option and the word.
pub fn named_clock(typed: Option<&str>) -> Result<Clock, String> {
    named("--clock", typed, Clock::from_name, "kernel or user").map(Option::unwrap_or_default)
}

/// The kernel interface of `--backend`, for a command line that reads its words itself; the best one where the option is not given.
///
/// # Errors
/// Returns what is accepted in place of another word, with the option and the word.
pub fn named_backend(typed: Option<&str>) -> Result<Backend, String> {
    let backend = named("--backend", typed, Backend::from_name, "auto, epoll or uring");
    backend.map(|backend| backend.unwrap_or(Backend::Auto))
}

fn named<T>(
    option: &str,
    typed: Option<&str>,
    of: fn(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>, String> {
    let refused = |typed: &str| format!("{option}: expected {known}, not '{}'", typed.escape_debug());
    typed.map(|typed| of(typed).ok_or_else(|| refused(typed))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_commands_lose_their_units() {
        for (typed, plain) in [
            ("RPUSH __key__ __value:4KiB__", "RPUSH __key__ __value:4096__"),
            ("SET a <__value:uniform:1k,2k__>__value:5__", "SET a <__value:uniform:1000,2000__>__value:5__"),
            ("SET a __value:", "SET a __value:"),
            ("SET a __value:x__ __value__", "SET a __value:x__ __value__"),
            ("PING", "PING"),
        ] {
            assert_eq!(with_plain_sizes(typed), plain);
        }
    }

    #[test]
    fn a_warm_up_has_a_time_or_ends_by_itself() {
        for (text, expected) in [
            ("10s", Some(WarmUpTime::Fixed(10 * SECOND))),
            ("0", Some(WarmUpTime::Fixed(0))),
            ("auto", Some(WarmUpTime::Auto(None))),
            ("auto:2m", Some(WarmUpTime::Auto(Some(120 * SECOND)))),
            ("auto:", None),
            ("auto:0", None),
            ("auto2m", None),
            ("automatic", None),
        ] {
            assert_eq!(warm_up(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_warm_up_lasts_until_evictions_or_for_a_longest_time() {
        assert_eq!(warm_up_until("evictions"), Ok(UntilEviction(None)));
        assert_eq!(warm_up_until("evictions:90s"), Ok(UntilEviction(Some(90 * SECOND))));
        for text in ["", "eviction", "evictions:", "evictions:0", "evictions5m", "settled", "30s"] {
            assert!(warm_up_until(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quantile_is_to_be_known_to_a_share_of_itself() {
        assert_eq!(quantile_within("p99:2%"), Ok((0.99, 0.02)));
        assert_eq!(quantile_within("p99.9:0.5%"), Ok((0.999, 0.005)));
        for text in ["p99", "99:2%", "p99:2", "p99:0%", "p99:101%", "p100:2%", "p0:2%", "p99:x%", ""] {
            assert!(quantile_within(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_exact() {
        for (text, value) in [
            ("0", 0),
            ("10000", 10_000),
            ("10k", 10_000),
            ("10K", 10_000),
            ("1M", 1_000_000),
            ("1m", 1_000_000),
            ("1g", 1_000_000_000),
            ("1.5k", 1_500),
            ("0.003k", 3),
            ("4KiB", 4_096),
            ("1mib", 1 << 20),
            ("0.5GiB", 1 << 29),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn counts_that_are_not_whole_numbers_are_refused() {
        for text in [
            "", "k", "-1", "+1", "1.5", "0.0005k", "10kb", "10kB", "1e6", "1_000", " 1", "1 k", "1..5",
            ".5k", "x",
        ] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(count("18446744073709551616").is_err());
        assert!(count("99999999999999999999999999999999999999999").is_err());
        assert!(count("18446744073709551615g").is_err());
    }

    #[test]
    fn a_count_out_of_bounds_names_the_bounds() {
        assert_eq!(count_within("5", 1, 10), Ok(5));
        let error = count_within("11", 1, 10).expect_err("11 is above 10");
        assert!(error.to_string().contains("from 1 to 10"), "{error}");
    }

    #[test]
    fn rates_are_above_zero_and_finite() {
        assert_eq!(rate("20k"), Ok(20_000.0));
        assert_eq!(rate("0.5"), Ok(0.5));
        assert_eq!(rate("1.5m"), Ok(1_500_000.0));
        for text in ["0", "0.0", "-5", "inf", "nan", "2g", "20k/s", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_exact_and_a_bare_number_is_seconds() {
        for (text, ns) in [
            ("10", 10 * SECOND),
            ("1.5", 1_500 * MILLISECOND),
            ("0.1s", 100 * MILLISECOND),
            ("250ms", 250 * MILLISECOND),
            ("2.5us", 2_500),
            ("7ns", 7),
            ("2m", 120 * SECOND),
            ("1h", 3_600 * SECOND),
            ("0", 0),
        ] {
            assert_eq!(time(text), Ok(ns), "{text}");
        }
        for text in ["", "s", "-1s", "1.5ns", "10 s", "1d", "5sec", "1m30s", "99999999999h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zero_is_refused_where_it_means_nothing() {
        assert_eq!((count_above_zero("1k"), time_above_zero("1ns")), (Ok(1_000), Ok(1)));
        assert!(count_above_zero("0").expect_err("0 is none").to_string().contains("above 0"));
        assert!(time_above_zero("0ms").expect_err("0 is none").to_string().contains("above 0"));
    }

    #[test]
    fn expiries_are_whole_seconds() {
        for (text, seconds) in [("0", 0), ("30", 30), ("30s", 30), ("5m", 300), ("2000ms", 2)] {
            assert_eq!(whole_seconds(text), Ok(seconds), "{text}");
        }
        for text in ["", "1.5", "500ms", "-1", "1d", "9999999h"] {
            assert!(whole_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_lie_between_0_and_1() {
        assert_eq!(fraction("0"), Ok(0.0));
        assert_eq!(fraction("0.25"), Ok(0.25));
        assert_eq!(fraction("1"), Ok(1.0));
        for text in ["1.01", "-0.5", "50%", "", "nan", "one"] {
            assert!(fraction(text).is_err(), "{text}");
        }
    }

    #[test]
    fn servers_are_lists_in_the_form_of_plans() {
        let both = vec!["a:11211".to_string(), "/b".to_string()];
        assert_eq!(servers("a,/b"), Ok(both));
        let resp = ["a:6379", "b:1", "[::1]:6379", "/c"].map(str::to_string).to_vec();
        assert_eq!(servers_at("a,b:1,[::1],/c", RESP_PORT), Ok(resp));
        for text in ["", "a,", ",a", "a,b:0"] {
            assert!(servers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn weights_name_operations_once() {
        assert_eq!(weights("get:9,set:1"), Ok(vec![(Verb::Get, 9.0), (Verb::Set, 1.0)]));
        assert_eq!(weights("get"), Ok(vec![(Verb::Get, 1.0)]));
        assert_eq!(weights("get:0.5,delete:0,touch:2"), Ok(vec![(Verb::Get, 0.5), (Verb::Touch, 2.0)]));
        for text in
            ["", "get:", "get:x", "get:-1", "fetch:1", "get:1,get:2", "get:0", "get:1,", "GET:1", "get:1:2"]
        {
            assert!(weights(text).is_err(), "{text}");
        }
        let error = weights("fetch:1").expect_err("no such operation");
        assert!(error.to_string().contains("touch"), "{error}");
    }

    #[test]
    fn a_wrong_weight_is_told_from_a_wrong_operation() {
        for text in ["get:-1", "get:NaN", "get:1:2", "get:"] {
            let error = weights(text).expect_err(text).to_string();
            assert_eq!(error, "expected a weight of 0 or more behind 'get:', such as get:9", "{text}");
        }
        for (text, near) in [("gte:1", "'get'"), ("get=1", "'get:1'")] {
            let error = weights(text).expect_err(text).to_string();
            assert!(error.ends_with(&format!("(did you mean {near}?)")), "{text}: {error}");
        }
    }

    #[test]
    fn the_nearest_words_of_values_are_named() {
        let dist_of = |text: &str| dist(text, Measure::Bytes).expect_err(text).to_string();
        for (error, near) in [
            (dist_of("unform:1,2"), "uniform"),
            (dist_of("etc-valu"), "etc-value"),
            (warm_up("atuo").expect_err("no time").to_string(), "auto"),
            (warm_up_until("eviction").expect_err("no such word").to_string(), "evictions"),
        ] {
            assert!(error.contains(&format!("(did you mean '{near}'?)")), "{error}");
        }
        assert!(!dist_of("uniform:5,1").contains("did you mean"));
        for name in DIST_NAMES {
            let refused = dist(&format!("{name}:?"), Measure::Bytes).err();
            assert!(refused.is_none_or(|error| !error.0.starts_with("expected a number")), "{name}");
        }
    }

    #[test]
    fn seeds_and_rates_say_their_own_bounds() {
        for text in ["-1", "18446744073709551616", "x"] {
            let error = seed(text).expect_err(text).to_string();
            assert!(error.contains("from 0 to 9223372036854775807"), "{text}: {error}");
        }
        assert_eq!((seed("7"), count_cut("99999999999")), (Ok(7), Ok(u32::MAX)));
        assert!(client_rate("-1").expect_err("below 0").to_string().contains("clients per second above 0"));
    }

    #[test]
    fn a_wait_is_never_below_zero() {
        for text in ["-1", "uniform:-1,1", "uniform:-2,-1", "normal:-1,0"] {
            let error = dist_of_waits(text).expect_err(text).to_string();
            assert!(error.starts_with("expected times of 0 or more; numbers are seconds"), "{text}: {error}");
        }
        for text in ["0", "5ms", "normal:1ms,1ms", "exponential:1ms", "file:/waits"] {
            assert!(dist_of_waits(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn every_operation_can_be_weighted() {
        for verb in Verb::ALL {
            assert_eq!(weights(&format!("{}:2", verb.name())), Ok(vec![(verb, 2.0)]));
        }
    }

    #[test]
    fn the_numbers_of_distributions_may_have_units() {
        for (text, measure, bare) in [
            ("200", Measure::Bytes, "200"),
            ("4KiB", Measure::Bytes, "4096"),
            ("fixed:1.5k", Measure::Bytes, "1500"),
            ("uniform:1k,2KiB", Measure::Bytes, "uniform:1000,2048"),
            ("normal:1k,100", Measure::Bytes, "normal:1000,100"),
            ("gev:-1k,2,0.1", Measure::Bytes, "gev:-1000,2,0.1"),
            ("pareto:15,214.476,0.348238", Measure::Bytes, "pareto:15,214.476,0.348238"),
            ("weighted:1-1k@0.5,2KiB-4KiB@0.5", Measure::Bytes, "weighted:1-1000@0.5,2048-4096@0.5"),
            ("etc-value", Measure::Bytes, "etc-value"),
            ("5ms", Measure::Seconds, "0.005"),
            ("exponential:100us", Measure::Seconds, "exponential:0.0001"),
            ("uniform:0,1m", Measure::Seconds, "uniform:0,60"),
            ("exponential:1e-3", Measure::Seconds, "exponential:0.001"),
        ] {
            let read = dist(text, measure).and_then(|dist| dist.read(no_file));
            assert_eq!(read, Ok(bare.parse().expect("the bare form")), "{text}");
        }
    }

    #[test]
    fn a_distribution_that_cannot_be_read_says_what_is_accepted() {
        for (text, part) in [
            ("uniform:5,1", "expected uniform:LO,HI with LO <= HI"),
            ("fancy:1", "exponential:MEAN"),
            ("5ms", "KiB"),
            ("", "etc-value"),
            ("weighted:1k", "weighted:LO-HI@P"),
        ] {
            let error = dist(text, Measure::Bytes).expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    /// Reads nothing: every file is refused to it.
    fn no_file(_: &str) -> io::Result<String> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn a_distribution_can_come_from_a_file() {
        let mut typed = dist("file:/sizes", Measure::Bytes).expect("a path");
        let read_from = |lines: &str| {
            typed.read(|path| {
                assert_eq!(path, "/sizes");
                Ok(lines.to_owned())
            })
        };
        let read = read_from("3\n1\n\n2\n").expect("three numbers");
        assert_eq!(read.support(), (1.0, 3.0));
        let error = read_from("3\nx\n").expect_err("x is no number");
        assert!(error.to_string().contains("line 2"), "{error}");
        typed.keep(read.clone());
        assert_eq!(typed.read(no_file), Ok(read), "the file is not read again");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_with_its_name_and_the_reason() {
        let typed = dist("file:/sizes", Measure::Bytes).expect("the path alone is read");
        let error = typed.read(no_file).expect_err("the file cannot be read").to_string();
        assert!(error.contains("'/sizes' cannot be read: permission denied"), "{error}");
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!(cpus("0,2-5"), Ok(vec![0, 2, 3, 4, 5]));
        assert_eq!(cpus("3"), Ok(vec![3]));
        for text in ["", "5-2", "a", "1,", "-1", "1-", "1024", "0-2000"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_with_too_much_is_told_without_it() {
        for (text, told) in [
            ("20,000", Some("leave out ',': 20000")),
            ("1_000_000", Some("leave out '_': 1000000")),
            ("20000/s", Some("leave out '/s': 20000")),
            ("20k/s", Some("leave out '/s': 20k")),
            ("20,000 req/s", Some("leave out ',' and 'req/s': 20000")),
            ("500RPS", Some("leave out 'rps': 500")),
            ("1,2", None),
            ("20000", None),
            ("/s", None),
            ("x/s", None),
            ("", None),
        ] {
            assert_eq!(too_much(text).as_deref(), told, "{text}");
        }
        assert_eq!(rate("20000/s"), Err(ValueError("leave out '/s': 20000".to_owned())));
        assert_eq!(count("20,000"), Err(ValueError("leave out ',': 20000".to_owned())));
    }

    #[test]
    fn a_goal_without_a_unit_is_a_question() {
        for text in ["p99:1", "p50:1ms,p99:1"] {
            let error = goals(text).expect_err(text).to_string();
            assert!(error.starts_with("1 s or 1 ms? "), "{error}");
        }
        assert!(goals("p99:0").is_err_and(|error| error.to_string().starts_with("expected")));
    }

    #[test]
    fn goals_are_quantiles_with_limits() {
        assert_eq!(
            goals("p99:1ms,p99.9:5ms"),
            Ok(vec![
                Goal { quantile: 0.99, limit_ns: MILLISECOND },
                Goal { quantile: 0.999, limit_ns: 5 * MILLISECOND }
            ])
        );
        for text in
            ["", "99:1ms", "p99", "p0:1ms", "p100:1ms", "p99:0", "p99:-1ms", "p99:x", "p-1:1ms", "pnan:1ms"]
        {
            assert!(goals(text).is_err(), "{text}");
        }
    }
}
