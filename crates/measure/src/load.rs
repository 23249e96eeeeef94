//! The result of a load: records, errors, and the messages of servers with them.

use std::collections::BTreeMap;

use crate::counts::Counts;
use crate::reason::ServerTrouble;
use crate::words::{count_message, merge_messages};
use pummel_logic::merge::{first, greatest};
use pummel_logic::merged;
use pummel_logic::time::Nanos;

merged! {
    /// The result of a load.
    #[serde(deny_unknown_fields)]
    pub struct LoadResult {
        /// Records that were to be stored.
        pub records: u64,
        /// Records that were stored.
        pub stored: u64,
        /// Requests that failed, or that the server answered without storing the record. A request that was never sent, or
        /// whose answer did not come before the run was interrupted, is not among them.
        pub errors: u64,
        /// Length of the load in nanoseconds.
        pub elapsed_ns: Nanos => greatest,
        /// Bytes that were sent.
        pub bytes: u64,
        /// Messages of servers with errors, and how often each came; at most
        /// [`MESSAGES_KEPT`](crate::measurement::MESSAGES_KEPT) different messages.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub messages: BTreeMap<String, u64> => merge_messages,
        /// The first failure of a connection, with its server, where records were not stored; `None` where none failed, and
        /// where all records were stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub trouble: Option<ServerTrouble> => first,
    }
}

impl LoadResult {
    /// Adds what one worker stored, by the outcomes of its requests, of which `repeated` were sent again because the first
    /// attempt was lost.
    pub fn add_worker(&mut self, counts: &Counts, repeated: u64, elapsed_ns: Nanos, sent_bytes: u64) {
        let stored = counts.loaded();
        self.stored += stored;
        self.errors += (counts.ended() - stored).saturating_sub(repeated);
        self.elapsed_ns = self.elapsed_ns.max(elapsed_ns);
        self.bytes += sent_bytes;
    }

    /// Counts a message that a server sent with an error.
    pub fn message(&mut self, message: &[u8], count: u64) {
        count_message(&mut self.messages, message, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Outcomes;

    #[test]
    fn a_request_that_stored_nothing_is_an_error_unless_it_was_sent_again() {
        let counts = |stored: u64, exists: u64| {
            let outcomes = Outcomes { stored, exists, ..Outcomes::default() };
            Counts { completed: stored + exists, outcomes, ..Counts::default() }
        };
        // Stored, refused and repeated requests of a worker, how long it took; stored, errors and length of all so far.
        let mut of_command = LoadResult::default();
        let outcomes = Outcomes { number: 4, ok: 2, not_found: 1, ..Outcomes::default() };
        of_command.add_worker(&Counts { completed: 7, outcomes, ..Counts::default() }, 0, 5, 100);
        assert_eq!((of_command.stored, of_command.errors), (6, 1), "a command of the user");
        let table = [((10, 0, 0), 5, (10, 0, 5)), ((7, 3, 1), 9, (17, 2, 9)), ((1, 2, 4), 8, (18, 2, 9))];
        let mut load = LoadResult::default();
        for ((stored, failed, repeated), elapsed_ns, all) in table {
            load.add_worker(&counts(stored, failed), repeated, elapsed_ns, 100);
            assert_eq!((load.stored, load.errors, load.elapsed_ns), all);
        }
        assert_eq!((load.bytes, load.records), (300, 0));
    }
}
