//! The key of a record at a moment, if records get new keys over time.
//!
//! Nothing is remembered: record r has a life L and a phase u that follow from the seed, and at time t its generation is
//! floor(t / L + u). A key is kept over a time x with probability max(0, 1 - x / L).

use crate::dist::Dist;
use crate::plan::{KeyChurn, LIFE_MIN};
use crate::rng::{mix, unit};
use crate::time::{Nanos, seconds};
use crate::workload::unstored::{RENEWED_END, RENEWED_FROM};

/// Names the draws of lives and of phases among all that a seed decides.
const LIVES: u64 = 0x6c_6976_6573;

/// The moment of a request, in both measures by which lives are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AskedAt {
    /// Nanoseconds from the beginning of the phase.
    pub since_ns: Nanos,
    /// Requests of all clients since keys change, as far as the asking client knows.
    pub requests: u64,
}

/// The keys of the records at all times.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyLives {
    stretches: Vec<Stretch>,
    records: u64,
    /// Seconds for which keys had changed when the phase began.
    before_s: f64,
    /// The number of the first generation after those that were loaded, which is another in every run.
    first: u64,
    /// Number of generations that have room.
    room: u64,
}

/// A stretch of time in which lives come from one distribution.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    /// Beginning of the stretch, in seconds or in requests since keys change.
    from: f64,
    life: Life,
    /// Salt that makes the lives and phases of this stretch differ from those of earlier stretches.
    salt: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Life {
    Endless,
    Seconds(Dist),
    Requests(Dist),
}

impl KeyLives {
    /// The keys of `records` records in a phase that begins when keys have changed for `before_ns`. `churns` are the churns in
    /// their order with the times in the phase from which they hold, the first of which is 0 and holds before the phase too.
    /// `seed` decides about lives, and `run` is a number that no other run has. `None` where no key changes.
    pub fn of<'a>(
        churns: impl Iterator<Item = (Nanos, Option<&'a KeyChurn>)>,
        before_ns: Nanos,
        records: u64,
        seed: u64,
        run: u64,
    ) -> Option<KeyLives> {
        let before_s = seconds(before_ns);
        let mut stretches: Vec<Stretch> = Vec::new();
        for (at_ns, churn) in churns {
            let life = Life::of(churn, records);
            if stretches.last().is_some_and(|last| last.life == life) {
                continue;
            }
            let from = if stretches.is_empty() { 0.0 } else { before_s + seconds(at_ns) };
            stretches.push(Stretch { from, life, salt: mix(&[seed, LIVES, stretches.len() as u64]) });
        }
        let room = (RENEWED_END - RENEWED_FROM) / records;
        stretches.iter().any(|stretch| stretch.life != Life::Endless).then(|| KeyLives {
            stretches,
            records,
            before_s,
            first: mix(&[run, LIVES]) % room,
            room,
        })
    }

    /// The number of the key that a record has at a moment.
    pub fn key(&self, record: u64, at: AskedAt) -> u64 {
        match self.generation(record, at) {
            0 => record,
            generation => {
                let place = (self.first + (generation - 1) % self.room) % self.room;
                RENEWED_FROM + record + self.records * place
            }
        }
    }

    /// Number of new keys that the record has got before a moment.
    fn generation(&self, record: u64, at: AskedAt) -> u64 {
        let now = (self.before_s + seconds(at.since_ns), at.requests as f64);
        let ends = self.stretches.iter().skip(1).map(|stretch| stretch.from).chain([f64::INFINITY]);
        self.stretches.iter().zip(ends).map(|(stretch, end)| stretch.renewals(record, now, end)).sum()
    }
}

impl Life {
    fn of(churn: Option<&KeyChurn>, records: u64) -> Life {
        match churn {
            None => Life::Endless,
            Some(KeyChurn::Seconds(lives)) => Life::Seconds(lives.clone()),
            Some(KeyChurn::Requests(lives)) => Life::Requests(lives.clone()),
            Some(KeyChurn::Share(share)) => Life::Requests(Dist::Fixed(records as f64 / share)),
        }
    }
}

impl Stretch {
    /// Number of new keys that a record gets in the stretch until `now` (in seconds, and in requests) or until its end.
    fn renewals(&self, record: u64, now: (f64, f64), end: f64) -> u64 {
        let (lives, now, least) = match &self.life {
            Life::Endless => return 0,
            Life::Seconds(lives) => (lives, now.0.min(end), LIFE_MIN.0),
            Life::Requests(lives) => (lives, now.1.min(end), LIFE_MIN.1),
        };
        let bits = mix(&[self.salt, record]);
        let life = lives.draw(mix(&[bits, 1])).max(least);
        ((now - self.from).max(0.0) / life + unit(bits)) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::time::SECOND;

    const RECORDS: u64 = 200_000;

    fn lives(churn: &KeyChurn) -> KeyLives {
        KeyLives::of([(0, Some(churn))].into_iter(), 0, RECORDS, 7, 3).expect("keys change")
    }

    /// The share of the records whose keys are the same at both moments.
    fn survivors(lives: &KeyLives, from: AskedAt, until: AskedAt) -> f64 {
        let same = (0..RECORDS).filter(|&record| lives.key(record, from) == lives.key(record, until)).count();
        same as f64 / RECORDS as f64
    }

    fn at_s(since_s: f64) -> AskedAt {
        AskedAt { since_ns: (since_s * 1e9) as Nanos, requests: 0 }
    }

    /// The mean of max(0, 1 - x / L) over the quantiles of the lives.
    fn expected(lives: &Dist, x: f64) -> f64 {
        let steps = 20_000;
        let left = |step| (1.0 - x / lives.quantile((f64::from(step) + 0.5) / f64::from(steps))).max(0.0);
        (0..steps).map(left).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn as_many_keys_are_left_after_a_time_as_their_lives_say() {
        for text in ["default", "60", "exponential:300", "uniform:10,1000", "pareto:5,60,0.5"] {
            let churn: KeyChurn = text.parse().expect("it is a churn");
            let KeyChurn::Seconds(dist) = &churn else { panic!("{text} is in seconds") };
            let lives = lives(&churn);
            for lag_s in [1.0, 30.0, 300.0, 600.0, 3_600.0] {
                // Also long after the beginning, where every record has had its phase.
                for from_s in [0.0, 5_000.0] {
                    let got = survivors(&lives, at_s(from_s), at_s(from_s + lag_s));
                    let expected = expected(dist, lag_s);
                    assert!((got - expected).abs() < 0.01, "{text}, {lag_s} s: {got} {expected}");
                }
            }
        }
        // What Meta saw: half are left after ten minutes, less than a third after an hour.
        let usual = lives(&KeyChurn::usual());
        assert!((survivors(&usual, at_s(0.0), at_s(600.0)) - 0.53).abs() < 0.01);
        assert!((survivors(&usual, at_s(0.0), at_s(3_600.0)) - 0.29).abs() < 0.01);
    }

    #[test]
    fn so_many_records_are_replaced_for_each_request_as_a_share_says() {
        let by_share = lives(&KeyChurn::Share(0.04));
        let at = |requests| AskedAt { since_ns: 0, requests };
        let renewed: u64 = (0..RECORDS).map(|record| by_share.generation(record, at(10_000_000))).sum();
        assert!((renewed as f64 / 10_000_000.0 - 0.04).abs() < 1e-4, "{renewed}");
        let by_requests = lives(&KeyChurn::Requests(Dist::Fixed(1_000.0)));
        assert!((survivors(&by_requests, at(500), at(1_000)) - 0.5).abs() < 0.01);
    }

    #[test]
    fn a_new_key_is_one_that_was_never_there() {
        let (short, long) = (KeyChurn::Seconds(Dist::Fixed(2.0)), KeyChurn::Seconds(Dist::Fixed(50.0)));
        let churns =
            [(0, Some(&short)), (10 * SECOND, Some(&long)), (20 * SECOND, None), (30 * SECOND, Some(&short))];
        let (records, before_ns) = (1_000, 5 * SECOND);
        let lives = |run| KeyLives::of(churns.into_iter(), before_ns, records, 7, run).expect("keys change");
        let lives_of_run = lives(3);
        let mut seen = HashSet::new();
        for record in 0..records {
            let mut last = lives_of_run.key(record, at_s(0.0));
            assert!(seen.insert(last), "{last} is another record's");
            for tenth in 1..400_u32 {
                let key = lives_of_run.key(record, at_s(f64::from(tenth) / 10.0));
                assert!(key == last || seen.insert(key), "record {record} goes back to {key}");
                assert!(key == record || key >= RENEWED_FROM && (key - RENEWED_FROM) % records == record);
                assert!(key == last || !(201..300).contains(&tenth), "keys of an endless life stay");
                last = key;
            }
        }
        assert!(seen.len() > 10_000, "{}", seen.len());
        // Keys of another run are others, so that none of them is on the server.
        let other = lives(4);
        let mut keys = (0..records).map(|record| other.key(record, at_s(39.0)));
        assert!(keys.all(|key| key < records || !seen.contains(&key)));
    }

    #[test]
    fn a_phase_goes_on_where_the_one_before_it_ended() {
        let churn = KeyChurn::Seconds(Dist::Exponential { mean: 20.0 });
        let of = |before_ns| {
            KeyLives::of([(0, Some(&churn))].into_iter(), before_ns, 1_000, 7, 3).expect("keys change")
        };
        let (whole, second) = (of(0), of(15 * SECOND));
        for record in 0..1_000 {
            assert_eq!(whole.key(record, at_s(40.0)), second.key(record, at_s(25.0)));
        }
        assert_eq!(KeyLives::of([(0, None), (SECOND, None)].into_iter(), 0, 1_000, 7, 3), None);
    }

    #[test]
    fn generations_beyond_all_numbers_go_round() {
        let churn = KeyChurn::Seconds(Dist::Fixed(0.0));
        let records = 1 << 40;
        let lives = KeyLives::of([(0, Some(&churn))].into_iter(), 0, records, 7, 3).expect("keys change");
        for since_s in [1.0, 100.0, 1e6] {
            let key = lives.key(records - 1, at_s(since_s));
            assert!((RENEWED_FROM..RENEWED_END).contains(&key), "{key}");
        }
    }
}
