//! How requests spread over the records, and which record a draw asks for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rng::{self, Stream};

/// Greatest number of records.
pub const RECORDS_MAX: u64 = 1 << 40;

/// How requests spread over the records. Where some are asked for more often than others, record 0 is the hottest.
#[derive(Clone, Debug, PartialEq)]
pub enum Popularity {
    /// Every record alike.
    Uniform,
    /// Record r is asked for in proportion to (r + 1)^-`exponent`.
    Zipf {
        /// 0 (every record alike) to 3.
        exponent: f64,
    },
    /// The first records are hot, the others cold; within both, every record alike.
    Hot {
        /// Share of the records that are hot, above 0 and at most 1; rounded up to a whole number of records.
        keys: f64,
        /// Share of the requests for hot records, 0 to 1. All requests are for hot records where no record is cold.
        requests: f64,
    },
    /// One after the other, all clients together: client k of C asks for records k, C + k, 2C + k and so on, and
    /// begins again behind the last one.
    Sequential,
}

/// The error of a text that is no popularity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The text that was given.
    pub given: String,
    /// The forms that are accepted.
    pub accepted: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, not '{}'", self.accepted, self.given)
    }
}

impl std::error::Error for Error {}

/// `uniform`, `zipf:EXPONENT`, `hot:KEYS,REQUESTS` or `sequential`.
impl FromStr for Popularity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Popularity, Error> {
        let (name, parameters) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let numbers: Option<Vec<f64>> =
            parameters.and_then(|rest| rest.split(',').map(|number| number.parse().ok()).collect());
        let (found, accepted) = match name {
            "uniform" => (parameters.is_none().then_some(Popularity::Uniform), "uniform without parameters"),
            "sequential" => {
                (parameters.is_none().then_some(Popularity::Sequential), "sequential without parameters")
            }
            "zipf" => (numbers.and_then(zipf), "zipf:EXPONENT with EXPONENT from 0 to 3"),
            "hot" => {
                (numbers.and_then(hot), "hot:KEYS,REQUESTS with shares 0 < KEYS <= 1 and 0 <= REQUESTS <= 1")
            }
            _ => (None, "uniform, zipf:EXPONENT, hot:KEYS,REQUESTS or sequential"),
        };
        found.ok_or_else(|| Error { given: text.to_owned(), accepted })
    }
}

fn zipf(numbers: Vec<f64>) -> Option<Popularity> {
    match numbers[..] {
        [exponent] if (0.0..=3.0).contains(&exponent) => Some(Popularity::Zipf { exponent }),
        _ => None,
    }
}

fn hot(numbers: Vec<f64>) -> Option<Popularity> {
    match numbers[..] {
        [keys, requests] if keys > 0.0 && keys <= 1.0 && (0.0..=1.0).contains(&requests) => {
            Some(Popularity::Hot { keys, requests })
        }
        _ => None,
    }
}

/// Writes the text that parses to this popularity.
impl fmt::Display for Popularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => out.write_str("uniform"),
            Popularity::Zipf { exponent } => write!(out, "zipf:{exponent}"),
            Popularity::Hot { keys, requests } => write!(out, "hot:{keys},{requests}"),
            Popularity::Sequential => out.write_str("sequential"),
        }
    }
}

impl Serialize for Popularity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Popularity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Popularity, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Chooses records for one client.
#[derive(Clone, Debug, PartialEq)]
pub struct Chooser {
    records: u64,
    choice: Choice,
}

/// A [`Popularity`], ready to draw from.
#[derive(Clone, Debug, PartialEq)]
enum Choice {
    Uniform,
    Zipf(Zipf),
    /// Number of hot records, and the share of requests for them.
    Hot(u64, f64),
    /// Number of the client, and number of clients.
    Sequential(u64, u64),
}

impl Chooser {
    /// Choices of client `client` (below `clients`) among `records` records, 1 to [`RECORDS_MAX`]. Only
    /// [`Popularity::Sequential`] depends on the client; with other popularities, clients differ by their streams.
    pub fn new(popularity: &Popularity, records: u64, client: u64, clients: u64) -> Chooser {
        assert!((1..=RECORDS_MAX).contains(&records), "{records} records");
        assert!(client < clients, "client {client} of {clients}");
        let choice = match *popularity {
            Popularity::Uniform => Choice::Uniform,
            Popularity::Zipf { exponent: 0.0 } => Choice::Uniform,
            Popularity::Zipf { exponent } => Choice::Zipf(Zipf::new(records, exponent)),
            Popularity::Hot { keys, requests } => match hot_records(keys, records) {
                all if all == records => Choice::Uniform,
                hot => Choice::Hot(hot, requests),
            },
            Popularity::Sequential => Choice::Sequential(client, clients),
        };
        Chooser { records, choice }
    }

    /// The record of draw `i`, below the number of records.
    #[inline(always)]
    pub fn choose(&self, stream: &Stream, i: u64) -> u64 {
        match &self.choice {
            Choice::Uniform => rng::below(stream.draw(i), self.records),
            _ => self.choose_unevenly(stream, i),
        }
    }

    /// The record of draw `i`, where some records are more popular than others.
    fn choose_unevenly(&self, stream: &Stream, i: u64) -> u64 {
        match &self.choice {
            Choice::Uniform => rng::below(stream.draw(i), self.records),
            Choice::Zipf(zipf) => zipf.rank(stream, i) - 1,
            &Choice::Hot(hot, requests) => {
                let place = stream.draw_sub(i, 1);
                if rng::unit(stream.draw(i)) < requests {
                    rng::below(place, hot)
                } else {
                    hot + rng::below(place, self.records - hot)
                }
            }
            &Choice::Sequential(client, clients) => match i.checked_mul(clients) {
                Some(passed) if passed <= u64::MAX - client => (passed + client) % self.records,
                _ => {
                    ((u128::from(i) * u128::from(clients) + u128::from(client)) % u128::from(self.records))
                        as u64
                }
            },
        }
    }
}

/// The share `keys` of `records`, rounded up, where a product that is whole but for its last bits counts as whole.
fn hot_records(keys: f64, records: u64) -> u64 {
    let product = keys * records as f64;
    let whole = libm::round(product);
    let hot = if (product - whole).abs() <= product * 1e-15 { whole } else { libm::ceil(product) };
    (hot as u64).clamp(1, records)
}

/// Zipf's law over ranks 1 to n, by rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate
/// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996.
///
/// x^-s is integrated from rank n downwards and in units of its end e = n + 1/2: with t = x / e, the area from x to the
/// end is (1 - t^q) / q, q = 1 - s, or -ln t where q is 0. A uniform area gives a real x and its nearest rank k; k
/// stands if the area lies in the k-th bar of the histogram, which is right-aligned under the curve. Seen from the end,
/// no difference cancels, neither near s = 1 nor at ranks whose share is tiny.
#[derive(Clone, Debug, PartialEq)]
struct Zipf {
    ranks: u64,
    end: f64,
    exponent: f64,
    /// 1 - `exponent`, and its inverse (0 where there is none).
    q: f64,
    q_inverse: f64,
    /// Area under all bars, of which the first is the full one of rank 1.
    area: f64,
    /// A real number this little below its rank, or less, is in the rank's bar, whatever the rank.
    surely_below: f64,
}

impl Zipf {
    fn new(ranks: u64, exponent: f64) -> Zipf {
        let q = 1.0 - exponent;
        let q_inverse = if q == 0.0 { 0.0 } else { 1.0 / q };
        let end = ranks as f64 + 0.5;
        let mut zipf = Zipf { ranks, end, exponent, q, q_inverse, area: 0.0, surely_below: 0.0 };
        zipf.area = zipf.area_with_bar(1.0);
        // Bars grow narrower, compared with their strip of the curve, towards low ranks; that of rank 1 has its own
        // left edge, so rank 2 sets the bound.
        zipf.surely_below = 2.0 - zipf.position(zipf.area_with_bar(2.0));
        zipf
    }

    /// The rank of draw `i`; every rejected try takes the next sub-counter.
    #[inline]
    fn rank(&self, stream: &Stream, i: u64) -> u64 {
        let mut attempt = 0;
        loop {
            let area = self.area * rng::unit(stream.draw_sub(i, attempt));
            let x = self.position(area);
            let rank = ((x + 0.5) as u64).clamp(1, self.ranks);
            let nearest = rank as f64;
            if nearest - x <= self.surely_below || rank == 1 || area <= self.area_with_bar(nearest) {
                return rank;
            }
            attempt += 1;
        }
    }

    /// The x with this area between it and the end.
    #[inline]
    fn position(&self, area: f64) -> f64 {
        let logarithm = if self.q == 0.0 { -area } else { libm::log1p(-self.q * area) * self.q_inverse };
        self.end * libm::exp(logarithm)
    }

    /// The area from the right edge of a rank's strip to the end, plus the rank's bar.
    fn area_with_bar(&self, rank: f64) -> f64 {
        let edge = libm::log((rank + 0.5) / self.end);
        let beyond = if self.q == 0.0 { -edge } else { -libm::expm1(self.q * edge) * self.q_inverse };
        beyond + libm::pow(rank / self.end, -self.exponent) / self.end
    }
}
