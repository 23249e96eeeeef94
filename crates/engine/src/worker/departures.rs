//! The departures of clients that come and go: one entry for each client, with the cause of its failure.

use std::collections::HashMap;

use pummel_measure::events::Departure;
use pummel_measure::trouble::Trouble;

/// Number of departures that are handed over together.
const DEPARTURES: usize = 1024;

/// The departures in one worker that are not handed over yet.
#[derive(Debug, Default)]
pub struct Departures {
    list: Vec<Departure>,
    /// The last trouble, as long as the slot of its connection is not known.
    last: Option<Trouble>,
    /// The troubles of clients whose departures are not added yet, by slot.
    troubles: HashMap<usize, Trouble>,
}

impl Departures {
    /// Keeps the trouble of a connection whose slot is not known yet.
    pub fn note(&mut self, trouble: &Trouble) {
        self.last = Some(trouble.clone());
    }

    /// Assigns the last trouble to the connection in `slot`.
    pub fn failed(&mut self, slot: usize) {
        if let Some(trouble) = self.last.take() {
            self.troubles.insert(slot, trouble);
        }
    }

    /// Adds the departure of the client in `slot`, with the trouble of its connection if it failed. Returns all
    /// departures that are not handed over yet if there are enough of them, and `None` otherwise.
    pub fn add(&mut self, slot: usize, mut departure: Departure) -> Option<Vec<Departure>> {
        let trouble = self.troubles.remove(&slot);
        if let Some((_, known)) = &mut departure.failure {
            *known = trouble;
        }
        self.list.push(departure);
        (self.list.len() >= DEPARTURES).then(|| self.take())
    }

    /// Takes all departures that are not handed over yet.
    pub fn take(&mut self) -> Vec<Departure> {
        std::mem::take(&mut self.list)
    }
}

#[cfg(test)]
mod tests {
    use pummel_measure::churn::ConnectionFailure;

    use super::*;

    fn departure(client: u64, failure: Option<ConnectionFailure>) -> Departure {
        let failure = failure.map(|failure| (failure, None));
        Departure { client, asked_at: 1, ended_at: 2, was_open: true, calls: (3, 4), failure }
    }

    #[test]
    fn a_trouble_belongs_to_the_connection_that_fell_of_it_and_to_no_later_one() {
        let mut departures = Departures::default();
        departures.note(&Trouble::TimedOut);
        departures.failed(7);
        assert_eq!(departures.add(6, departure(0, Some(ConnectionFailure::Reset))), None);
        assert_eq!(departures.add(7, departure(1, Some(ConnectionFailure::Timeout))), None);
        assert_eq!(departures.add(7, departure(2, Some(ConnectionFailure::Timeout))), None);
        let troubles: Vec<Option<Trouble>> =
            departures.take().into_iter().map(|one| one.failure.unwrap().1).collect();
        assert_eq!(troubles, [None, Some(Trouble::TimedOut), None]);
        assert!(departures.take().is_empty());
    }

    #[test]
    fn many_are_handed_over_without_being_asked_for() {
        let mut departures = Departures::default();
        let handed = (0..2 * DEPARTURES as u64).filter_map(|n| departures.add(0, departure(n, None)));
        assert_eq!(handed.map(|part| part.len()).sum::<usize>(), 2 * DEPARTURES);
    }
}
