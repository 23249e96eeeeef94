//! The spread of requests over the records, and the record that a draw asks for.

mod latest;
mod normal;
mod ranks;
mod zipf;

pub(crate) use self::latest::{Latest, Newest};
use self::normal::Normal;
use self::ranks::Ranks;
use self::zipf::Zipf;
use crate::plan::Popularity;
use crate::rng::{self, Stream};
use crate::workload::drawn_records::DrawnRecords;
use crate::workload::stable_size::fnv;

/// Greatest number of records.
pub const RECORDS_MAX: u64 = 1 << 40;

/// Number of ranks, and exponent, of the law that YCSB's `zipfian` folds onto its records (`ScrambledZipfianGenerator`,
/// `ITEM_COUNT` and `ZIPFIAN_CONSTANT`).
const YCSB_RANKS: u64 = 10_000_000_000;
const YCSB_EXPONENT: f64 = 0.99;

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
    /// Zipf's law from the last record backwards.
    Backwards(Zipf),
    /// YCSB's law: a rank of this one, hashed to a record.
    Folded(Zipf),
    Ranks(Box<Ranks>),
    /// Number of hot records, and the share of requests for them.
    Hot(u64, f64),
    /// Number of the client, and number of clients.
    Sequential(u64, u64),
    /// The first record of the client's share, and its number of records.
    Share(u64, u64),
    Normal(Box<Normal>),
    /// All records of a request from one group of neighbours.
    Together(Box<Together>),
}

/// Choices that take all records of a request from one group of neighbours: the first one of a request as another chooser chooses it,
/// and the others behind it in its group, whose first one follows its last.
#[derive(Clone, Debug, PartialEq)]
struct Together {
    first: Chooser,
    /// Number of records in a group.
    group: u64,
    /// Number of draws of each request.
    stride: u64,
}

impl Chooser {
    /// Choices of client `client` (below `clients`) among `records` records, 1 to [`RECORDS_MAX`]. Only
    /// [`Popularity::Sequential`] and [`Popularity::SequentialShares`] depend on the client; with other popularities, clients differ by
    /// their streams.
    pub fn new(popularity: &Popularity, records: u64, client: u64, clients: u64) -> Chooser {
        assert!((1..=RECORDS_MAX).contains(&records), "{records} records");
        assert!(client < clients, "client {client} of {clients}");
        let choice = match *popularity {
            Popularity::Uniform => Choice::Uniform,
            Popularity::Zipf { exponent: 0.0 } => Choice::Uniform,
            Popularity::Zipf { exponent } => Choice::Zipf(Zipf::new(records, exponent)),
            Popularity::Latest { exponent } => Choice::Backwards(Zipf::new(records, exponent)),
            Popularity::Buckets(ref shares) => Choice::Ranks(Box::new(Ranks::of_buckets(shares, records))),
            Popularity::Ycsb => Choice::Folded(Zipf::new(YCSB_RANKS, YCSB_EXPONENT)),
            Popularity::Ranks(ref shares) => Choice::Ranks(Box::new(Ranks::new(shares, records))),
            Popularity::Hot { keys, requests } => match hot_records(keys, records) {
                all if all == records => Choice::Uniform,
                hot => Choice::Hot(hot, requests),
            },
            Popularity::Sequential => Choice::Sequential(client, clients),
            Popularity::SequentialEach => Choice::Sequential(0, 1),
            Popularity::SequentialShares => {
                let (first, share) = share_of(records, client, clients);
                Choice::Share(first, share)
            }
            Popularity::Normal { median, deviation } => {
                Choice::Normal(Box::new(Normal::new(records, median, deviation)))
            }
        };
        Chooser { records, choice }
    }

    /// The choices of all clients for requests of `stride` keys each. Which client asks matters for some popularities alone, and is put
    /// into the number of the draw there.
    pub(crate) fn of_request(popularity: &Popularity, records: DrawnRecords, stride: u64) -> Chooser {
        let chooser = Chooser::new(popularity, records.count, 0, 1);
        match records.together {
            Some(group) if stride > 1 => chooser.together(group, stride),
            _ => chooser,
        }
    }

    /// A chooser for requests of `stride` keys each. It chooses the first record of a request as this chooser does, and the others
    /// from the next records of that record's group: records are grouped by `group` neighbours.
    pub(crate) fn together(self, group: u64, stride: u64) -> Chooser {
        let records = self.records;
        Chooser { records, choice: Choice::Together(Box::new(Together { first: self, group, stride })) }
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
            Choice::Backwards(zipf) => self.records - zipf.rank(stream, i),
            Choice::Folded(zipf) => folded(zipf.rank(stream, i) - 1, self.records),
            Choice::Ranks(ranks) => ranks.record(stream.draw(i), stream.draw_sub(i, 1)),
            &Choice::Hot(hot, requests) => {
                let place = stream.draw_sub(i, 1);
                if rng::unit(stream.draw(i)) < requests {
                    rng::below(place, hot)
                } else {
                    hot + rng::below(place, self.records - hot)
                }
            }
            Choice::Together(together) => together.choose(stream, i),
            Choice::Normal(normal) => normal.record(stream.draw(i)),
            &Choice::Share(first, share) => first + i % share,
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

impl Together {
    fn choose(&self, stream: &Stream, i: u64) -> u64 {
        let place = i % self.stride;
        let first = self.first.choose(stream, i - place);
        neighbour(first, place, self.group, self.first.records)
    }
}

/// The record `place` behind the first one of a request in its group of `group` neighbours, whose first one follows its last.
pub(crate) fn neighbour(first: u64, place: u64, group: u64, records: u64) -> u64 {
    let begin = first - first % group;
    begin + (first - begin + place) % group.min(records - begin)
}

/// The first of the records that client `client` of `clients` goes through where each has a share, and their number.
pub(crate) fn share_of(records: u64, client: u64, clients: u64) -> (u64, u64) {
    let width = (records - 1) / clients + 1;
    let first = client.saturating_mul(width).min(records - 1);
    (first, width.min(records - first))
}

/// The record that YCSB asks for at a rank counted from 0: the absolute value of the rank's FNV-1a hash, modulo the number
/// of records.
fn folded(rank: u64, records: u64) -> u64 {
    ycsb_hash(rank) % records
}

/// YCSB's hash of a number: the FNV-1a hash of its octets, least first, as the absolute value of a signed number
/// (`Utils.fnvhash64`).
pub fn ycsb_hash(number: u64) -> u64 {
    (fnv(number) as i64).unsigned_abs()
}

/// The share `keys` of `records`, rounded up, where a product that is whole but for its last bits counts as whole.
fn hot_records(keys: f64, records: u64) -> u64 {
    let product = keys * records as f64;
    let whole = libm::round(product);
    let hot = if (product - whole).abs() <= product * 1e-15 { whole } else { libm::ceil(product) };
    (hot as u64).clamp(1, records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_ycsb_are_its_own() {
        let hashes = [0, 1, 2].map(ycsb_hash);
        assert_eq!(hashes, [6_284_781_860_667_377_211, 8_517_097_267_634_966_620, 1_820_151_046_732_198_393]);
    }

    #[test]
    fn records_of_one_request_are_neighbours_and_different_and_its_first_is_as_popular_as_without() {
        let stream = Stream::from_seed(9);
        for text in ["uniform", "zipf:0.99", "sequential", "hot:0.1,0.9", "ycsb"] {
            let popularity: Popularity = text.parse().expect("a popularity");
            let plain = Chooser::new(&popularity, 1_003, 0, 1);
            let together = plain.clone().together(10, 4);
            for request in 0..5_000 {
                let chosen: Vec<u64> =
                    (0..4).map(|place| together.choose(&stream, 4 * request + place)).collect();
                let first = plain.choose(&stream, 4 * request);
                assert_eq!(chosen[0], first, "{text}");
                let group = first / 10;
                let records = if group == 100 { 3 } else { 10 };
                let expected = (0..4).map(|place| 10 * group + (first % 10 + place) % records);
                assert!(chosen.iter().copied().eq(expected), "{text}: {chosen:?}");
            }
        }
    }

    /// The hottest of 1,000 records gets 3.78 % of the requests of YCSB, where zipf:0.99 over the records would give it
    /// 12.9 %.
    #[test]
    fn the_hottest_record_of_ycsb_gets_the_share_of_the_folded_law() {
        let draws = 200_000;
        let stream = Stream::from_seed(3);
        let chooser = Chooser::new(&Popularity::Ycsb, 1_000, 0, 1);
        let mut counts = vec![0u32; 1_000];
        (0..draws).for_each(|i| counts[chooser.choose(&stream, i) as usize] += 1);
        // The hottest rank, and its part of the requests that spread over all records evenly.
        let zeta = 26.469_028_201_783_02;
        let hottest = counts[(ycsb_hash(0) % 1_000) as usize];
        let expected = (1.0 / zeta + 0.71 / 1_000.0) * draws as f64;
        let sd = expected.sqrt();
        assert!((f64::from(hottest) - expected).abs() < 5.0 * sd, "{hottest}, expected {expected}");
        assert_eq!(counts.iter().copied().max(), Some(hottest));
    }
}
