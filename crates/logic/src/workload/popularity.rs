//! How requests spread over the records, and which record a draw asks for.

use crate::plan::Popularity;
use crate::rng::{self, Stream};

/// Greatest number of records.
pub const RECORDS_MAX: u64 = 1 << 40;

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
