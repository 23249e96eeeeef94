//! The requests that were answered and did not do what they are for: nothing was stored, or there was no record.

use pummel_measure::words::grouped;

use super::{Document, OpResult};

/// The outcomes that are not what an operation is for, with their words.
const OTHERS: [(&str, &str); 3] = [
    ("not_stored", "not stored"),
    ("exists", "not stored, since another client had stored in between"),
    ("not_found", "without a record of their key"),
];

/// The requests of one operation that did not do what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOutcomes {
    /// Name of the operation.
    name: String,
    /// Completed requests of the operation.
    completed: u64,
    /// How many of them ended so, by their words.
    counts: Vec<(&'static str, u64)>,
}

impl OtherOutcomes {
    /// The outcomes of an operation; `None` where all of its requests did what it is for.
    fn of(name: &str, op: &OpResult) -> Option<OtherOutcomes> {
        let count = |(outcome, words): (&str, &'static str)| {
            op.outcomes.get(outcome).copied().filter(|count| *count > 0).map(|count| (words, count))
        };
        let counts: Vec<_> = OTHERS.into_iter().filter_map(count).collect();
        (!counts.is_empty()).then(|| OtherOutcomes { name: name.to_owned(), completed: op.completed, counts })
    }

    /// All of these requests.
    pub fn all(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// The operation with its counts, such as `add: 5 of 20 not stored`.
    pub fn words(&self) -> String {
        let completed = grouped(self.completed);
        let each =
            self.counts.iter().map(|(words, count)| format!("{} of {completed} {words}", grouped(*count)));
        format!("{}: {}", self.name, each.collect::<Vec<_>>().join(", "))
    }
}

impl Document {
    /// The answered requests that did not do what they are for, by operation; reads have hits and misses instead.
    pub fn other_outcomes(&self) -> Vec<OtherOutcomes> {
        self.ops.iter().filter_map(|(name, op)| OtherOutcomes::of(name, op)).collect()
    }

    /// The same in words; `None` if all requests did what they are for.
    pub fn outcomes_words(&self) -> Option<String> {
        let words: Vec<String> = self.other_outcomes().iter().map(OtherOutcomes::words).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}
