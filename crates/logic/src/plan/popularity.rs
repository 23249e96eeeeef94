//! The popularity of records: how the requests of a mix spread over them, and the text for it.

use std::fmt;
use std::str::FromStr;

use super::as_text::{TextError, saved_as_text};
use super::bucket_shares::BucketShares;
use super::rank_shares::RankShares;

/// The forms of a popularity, as messages name them.
pub const POPULARITIES: &str = "uniform, zipf:EXPONENT, latest:EXPONENT, hot:KEYS,REQUESTS, ranks:RANKS=SHARE,..., buckets:RECORDS@WEIGHT,..., \
     normal:MEDIAN,DEVIATION, ycsb, sequential, sequential-each or sequential-shares";

/// The form that is accepted behind `ranks:`.
const RANKS_ACCEPTED: &str = "ranks:RANKS=SHARE,... with up to 64 rising numbers of records (or shares of them, such as \
                              1%) and the rising shares of the requests, 0 to 1, that so many most popular records get";

/// The accepted form of `buckets:`, for error messages.
const BUCKETS_ACCEPTED: &str = "buckets:RECORDS@WEIGHT,... with up to 65536 numbers of records and the finite weights, 0 or more, of \
                                their requests together";

/// The distribution of requests over the records. Record 0 is the most popular, unless all are equally popular.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Popularity {
    /// All records are equally popular.
    #[default]
    Uniform,
    /// Record r is asked for in proportion to (r + 1)^-`exponent`.
    Zipf {
        /// 0 (all records equally popular) to 5.
        exponent: f64,
    },
    /// Zipf's law backwards from the newest record: the client's own records ([`Mix::inserts`](super::Mix::inserts)) from the last
    /// one on, and then the records from the last one on. Record 0 is the coldest.
    Latest {
        /// The exponent, 0 to 3.
        exponent: f64,
    },
    /// The first records are hot, the others cold; within both parts all records are equally popular.
    Hot {
        /// Share of the records that are hot, above 0 and at most 1; rounded up to a whole number of records.
        keys: f64,
        /// Share of the requests for hot records, 0 to 1. All requests are for hot records where no record is cold.
        requests: f64,
    },
    /// YCSB's `zipfian`: a rank of Zipf's law with exponent 0.99 over 10^10 ranks, hashed to a record. The hottest record is
    /// any of them, and most requests spread evenly over all records.
    Ycsb,
    /// Shares of the requests that the most popular records get.
    Ranks(RankShares),
    /// Numbers of equally popular records, and the weights of their requests.
    Buckets(BucketShares),
    /// One after the other, all clients together: client k of C asks for records k, C + k, 2C + k and so on, and
    /// begins again behind the last one.
    Sequential,
    /// Each client goes through all records from the first one on, for each operation by itself: the n-th request of an operation, counted
    /// from 0, asks for record n. Where operations are drawn, n is the number of the request among all of the client.
    SequentialEach,
    /// Each client goes through a share of the records of its own, as with [`Popularity::SequentialEach`]: client k through those from k
    /// W on, where W is the number of records divided by that of clients, rounded up. The last client has what is left, and a client
    /// beyond the records takes the last record.
    SequentialShares,
    /// The normal law over the numbers of records, without what lies outside of them; record r has the numbers from r to r + 1.
    Normal {
        /// The median, 0 to the number of records.
        median: f64,
        /// The standard deviation in records, above 0.
        deviation: f64,
    },
}

/// One of [`POPULARITIES`].
impl FromStr for Popularity {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Popularity, TextError> {
        let (name, parameters) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let numbers: Option<Vec<f64>> =
            parameters.and_then(|rest| rest.split(',').map(|number| number.parse().ok()).collect());
        let (found, accepted) = match name {
            "uniform" => (parameters.is_none().then_some(Popularity::Uniform), "uniform without parameters"),
            "sequential" => {
                (parameters.is_none().then_some(Popularity::Sequential), "sequential without parameters")
            }
            "sequential-each" => (
                parameters.is_none().then_some(Popularity::SequentialEach),
                "sequential-each without parameters",
            ),
            "sequential-shares" => (
                parameters.is_none().then_some(Popularity::SequentialShares),
                "sequential-shares without parameters",
            ),
            "ycsb" => (parameters.is_none().then_some(Popularity::Ycsb), "ycsb without parameters"),
            "ranks" => (parameters.and_then(|text| text.parse().ok()).map(Popularity::Ranks), RANKS_ACCEPTED),
            "buckets" => {
                (parameters.and_then(|text| text.parse().ok()).map(Popularity::Buckets), BUCKETS_ACCEPTED)
            }
            "zipf" => (
                numbers
                    .and_then(|numbers| exponent(&numbers, 5.0))
                    .map(|exponent| Popularity::Zipf { exponent }),
                "zipf:EXPONENT with EXPONENT from 0 to 5",
            ),
            "latest" => (
                numbers
                    .and_then(|numbers| exponent(&numbers, 3.0))
                    .map(|exponent| Popularity::Latest { exponent }),
                "latest:EXPONENT with EXPONENT from 0 to 3",
            ),
            "hot" => {
                (numbers.and_then(hot), "hot:KEYS,REQUESTS with shares 0 < KEYS <= 1 and 0 <= REQUESTS <= 1")
            }
            "normal" => (
                numbers.and_then(normal),
                "normal:MEDIAN,DEVIATION in records, with a MEDIAN of 0 or more and a DEVIATION above 0",
            ),
            _ => (None, POPULARITIES),
        };
        found.ok_or_else(|| TextError { given: text.to_owned(), accepted })
    }
}

fn exponent(numbers: &[f64], most: f64) -> Option<f64> {
    match *numbers {
        [exponent] if (0.0..=most).contains(&exponent) => Some(exponent),
        _ => None,
    }
}

fn normal(numbers: Vec<f64>) -> Option<Popularity> {
    match numbers[..] {
        [median, deviation]
            if median >= 0.0 && median.is_finite() && deviation > 0.0 && deviation.is_finite() =>
        {
            Some(Popularity::Normal { median, deviation })
        }
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

/// The text that parses to the same popularity.
impl fmt::Display for Popularity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Popularity::Uniform => out.write_str("uniform"),
            Popularity::Zipf { exponent } => write!(out, "zipf:{exponent}"),
            Popularity::Latest { exponent } => write!(out, "latest:{exponent}"),
            Popularity::Hot { keys, requests } => write!(out, "hot:{keys},{requests}"),
            Popularity::Sequential => out.write_str("sequential"),
            Popularity::SequentialEach => out.write_str("sequential-each"),
            Popularity::SequentialShares => out.write_str("sequential-shares"),
            Popularity::Normal { median, deviation } => write!(out, "normal:{median},{deviation}"),
            Popularity::Ycsb => out.write_str("ycsb"),
            Popularity::Ranks(shares) => write!(out, "ranks:{shares}"),
            Popularity::Buckets(shares) => write!(out, "buckets:{shares}"),
        }
    }
}

saved_as_text!(Popularity);
