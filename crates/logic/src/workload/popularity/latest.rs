//! A popularity that follows the newest records: those that a client stored itself, and before them those of the load.

use super::RECORDS_MAX;
use super::zipf::Zipf;
use crate::rng::Stream;

/// Factor between the records of a law and those of the next.
const GROWTH: u64 = 2;

/// Zipf's law over the present number of records, which grows: the law over the next larger number of a row that doubles, of which
/// the ranks above the present number are drawn again. What is left is Zipf's law over the present number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Latest {
    /// Records that are there from the beginning.
    records: u64,
    /// Laws over `records`, and always twice as many, up to [`RECORDS_MAX`].
    laws: Vec<Zipf>,
}

/// A record of one client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newest {
    /// A record that was there from the beginning, by its number.
    Loaded(u64),
    /// A record that the client stored itself, by its number from 0.
    Own(u64),
}

impl Latest {
    pub(crate) fn new(records: u64, exponent: f64) -> Latest {
        let sizes = std::iter::successors(Some(records), |size| Some(size * GROWTH));
        let sizes = sizes.take_while(|size| *size <= RECORDS_MAX * GROWTH);
        Latest { records, laws: sizes.map(|size| Zipf::new(size, exponent)).collect() }
    }

    /// The record of draw `i` of a client that has stored `own` records itself.
    pub(crate) fn choose(&self, stream: &Stream, i: u64, own: u64) -> Newest {
        let own = own.min(RECORDS_MAX - self.records);
        let present = self.records + own;
        // A law over as many records or more: the number of doublings, rounded up.
        let doublings = present.div_ceil(self.records).next_power_of_two().trailing_zeros() as usize;
        let law = &self.laws[doublings.min(self.laws.len() - 1)];
        let mut attempt = 0;
        let rank = loop {
            let rank = law.rank_from(stream, i, &mut attempt);
            if rank <= present {
                break rank;
            }
            attempt += 1;
        };
        if rank <= own { Newest::Own(own - rank) } else { Newest::Loaded(self.records - (rank - own)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of times that each rank from the newest record on is drawn, of `draws` draws.
    fn counts(records: u64, own: u64, exponent: f64, draws: u64) -> Vec<f64> {
        let (latest, stream) = (Latest::new(records, exponent), Stream::from_seed(3));
        let mut counts = vec![0.0; (records + own) as usize];
        for i in 0..draws {
            let rank = match latest.choose(&stream, i, own) {
                Newest::Own(number) => own - 1 - number,
                Newest::Loaded(record) => own + records - 1 - record,
            };
            counts[rank as usize] += 1.0;
        }
        counts
    }

    #[test]
    fn ranks_from_the_newest_on_follow_zipf_over_all_records_that_are_there() {
        for (records, own) in [(100, 0), (100, 1), (100, 100), (100, 155), (1, 0), (1, 6), (3, 30)] {
            let draws = 200_000;
            let counts = counts(records, own, 0.99, draws);
            let zeta: f64 = (1..=records + own).map(|rank| (rank as f64).powf(-0.99)).sum();
            for (at, count) in counts.into_iter().enumerate() {
                let expected = draws as f64 * (at as f64 + 1.0).powf(-0.99) / zeta;
                assert!(
                    (count - expected).abs() <= 5.0 * expected.sqrt(),
                    "rank {at} of {records} and {own}: {count}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn the_greatest_number_of_records_has_a_law() {
        let latest = Latest::new(RECORDS_MAX, 0.99);
        let stream = Stream::from_seed(4);
        for i in 0..1_000 {
            assert!(matches!(latest.choose(&stream, i, 7), Newest::Loaded(record) if record < RECORDS_MAX));
        }
    }
}
