//! Counts of the requests of one verb by the way in which they ended.

use crate::sample::Sample;
use pummel_logic::counters;
use pummel_logic::protocol::{Fault, Outcome};
use pummel_logic::workload::cache_counts::CacheCounts;

counters! {
    /// Counts of the requests of one verb by the way in which they ended.
    pub struct Counts {
        /// Requests that were answered without an error, or handed over where no answer was asked for.
        pub completed: u64,
        /// Keys of the completed requests.
        pub keys: u64,
        /// Keys that reads found.
        pub hits: u64,
        /// Keys that reads did not find.
        pub misses: u64,
        /// The completed requests by their outcome.
        pub outcomes: Outcomes,
        /// Requests that failed, by [`Fault`].
        pub errors: [u64; Fault::COUNT],
        /// Requests that were sent, but without an answer when the phase and its drain had ended.
        pub unfinished: u64,
        /// Requests that were due, but never sent.
        pub unsent: u64,
        /// The part of `unsent` that was not counted one by one: their number follows from the mean rate, or their verb from
        /// the weights of the mix.
        #[serde(default)]
        pub unsent_estimated: u64,
        /// Misses by cause, bytes of values, and stores after misses, where the plan makes a difference between misses.
        #[serde(default, skip_serializing_if = "CacheCounts::is_zero")]
        pub cache: CacheCounts,
    }
}

counters! {
    /// Completed requests by their outcome. Reads are counted by key, as hits and misses, and not here.
    pub struct Outcomes {
        /// Stores that succeeded.
        pub stored: u64,
        /// Stores that failed because the verb's condition did not hold.
        pub not_stored: u64,
        /// Stores that failed because another client stored in between.
        pub exists: u64,
        /// Requests whose key did not exist.
        pub not_found: u64,
        /// Transactions that were not carried out because another client had changed what they watch.
        #[serde(default)]
        pub conflict: u64,
        /// Deletes that removed a record.
        pub deleted: u64,
        /// Touches that set a new expiry.
        pub touched: u64,
        /// Requests that were answered with a number.
        pub number: u64,
        /// Requests with another good outcome; also those without reply.
        pub ok: u64,
        /// Reads that found a value marked as stale.
        #[serde(default)]
        pub stale: u64,
        /// Reads that won the right to renew a value.
        #[serde(default)]
        pub win: u64,
        /// Reads of a value that another client is going to renew.
        #[serde(default)]
        pub recaching: u64,
    }
}

impl Counts {
    /// All requests: completed, failed, unfinished and unsent.
    pub fn requests(&self) -> u64 {
        self.completed + self.failed() + self.unfinished + self.unsent
    }

    /// Requests that ended: completed and failed.
    pub fn ended(&self) -> u64 {
        self.completed + self.failed()
    }

    /// Requests of a load that stored what they were to store: a command of the user that did so ends with a number, or is done.
    pub fn loaded(&self) -> u64 {
        self.outcomes.stored + self.outcomes.number + self.outcomes.ok
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Requests that ended with this fault.
    pub fn errors(&self, fault: Fault) -> u64 {
        self.errors[fault as usize]
    }

    /// Requests that never got an answer: failed without one, unfinished or unsent.
    pub fn unanswered(&self) -> u64 {
        let without = Fault::ALL.into_iter().filter(|fault| fault.unanswered());
        without.map(|fault| self.errors(fault)).sum::<u64>() + self.unfinished + self.unsent
    }

    /// Counts how a request ended.
    #[inline]
    pub fn count(&mut self, sample: &Sample) {
        let slot = match sample.outcome {
            Outcome::Error(fault) | Outcome::Failed { fault, .. } => {
                self.errors[fault as usize] += 1;
                return;
            }
            Outcome::Hit | Outcome::Miss | Outcome::Found { .. } => None,
            Outcome::Stale => Some(&mut self.outcomes.stale),
            Outcome::Win => Some(&mut self.outcomes.win),
            Outcome::Recaching => Some(&mut self.outcomes.recaching),
            Outcome::Stored => Some(&mut self.outcomes.stored),
            Outcome::NotStored => Some(&mut self.outcomes.not_stored),
            Outcome::Exists => Some(&mut self.outcomes.exists),
            Outcome::NotFound => Some(&mut self.outcomes.not_found),
            Outcome::Conflict => Some(&mut self.outcomes.conflict),
            Outcome::Deleted => Some(&mut self.outcomes.deleted),
            Outcome::Touched => Some(&mut self.outcomes.touched),
            Outcome::Number(_) => Some(&mut self.outcomes.number),
            Outcome::Ok => Some(&mut self.outcomes.ok),
        };
        if let Some(slot) = slot {
            *slot += 1;
        }
        self.completed += 1;
        self.keys += u64::from(sample.keys);
        if sample.verb.reads()
            || sample.verb.is_command() && matches!(sample.outcome, Outcome::Hit | Outcome::Miss)
        {
            self.hits += u64::from(sample.hits);
            self.misses += u64::from(sample.keys.saturating_sub(sample.hits));
        }
    }
}

impl Outcomes {
    /// The requests that were answered without an error and stored or found nothing, by outcome.
    pub fn without_effect(&self) -> [(Outcome, u64); 4] {
        let [not_stored, exists, not_found, conflict] = Outcome::WITHOUT_EFFECT;
        [
            (not_stored, self.not_stored),
            (exists, self.exists),
            (not_found, self.not_found),
            (conflict, self.conflict),
        ]
    }

    /// Outcomes with their words in reports.
    pub fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("stored", self.stored),
            ("not_stored", self.not_stored),
            ("exists", self.exists),
            ("not_found", self.not_found),
            ("conflict", self.conflict),
            ("deleted", self.deleted),
            ("touched", self.touched),
            ("number", self.number),
            ("ok", self.ok),
            ("stale", self.stale),
            ("win", self.win),
            ("recaching", self.recaching),
        ]
    }
}
