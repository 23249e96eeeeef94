//! A worker's report of the parts of a measured phase.

use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::Answer;
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::unsent::Unsent;
use pummel_logic::workload::cache_counts::CacheCounts;

use super::requests::{sample_of, succeeded};
use crate::worker::reporter::{ReportMode, WorkerReporter};

impl WorkerReporter {
    /// Records a request that has ended in the part in which it was due, as the whole phase records it.
    pub(super) fn record_in_part(&mut self, group: usize, answer: &Answer<'_>) {
        let Some(number) = self.part_at(answer.ticket.due) else { return };
        let verb = answer.ticket.verb;
        let recorder = self.interval.part(number);
        match (self.abandoning, answer.sent) {
            (true, NEVER) => recorder.counts(verb).unsent += 1,
            (true, _) => recorder.record_unfinished(&sample_of(answer)),
            (false, _) if self.successes_only[group] && !succeeded(answer.outcome) => {
                recorder.record_slipped(&sample_of(answer));
            }
            (false, _) => recorder.record(&sample_of(answer)),
        }
    }

    /// Adds the cache counts of a reply to the part in which its request was due.
    pub(super) fn note_cache_in_part(&mut self, ticket: &Ticket, counts: &CacheCounts) {
        if let Some(number) = self.part_at(ticket.due) {
            self.interval.part(number).counts(ticket.verb).cache.add(counts);
        }
    }

    /// Counts requests that were due at `due` and were never sent, in the whole phase and in its part.
    pub fn unsent_at(&mut self, group: usize, due: Nanos, unsent: Unsent) {
        let Unsent { verb, requests, estimated } = unsent;
        self.unsent(group, unsent);
        if let Some(number) = self.part_at(due) {
            let counts = self.interval.part(number).counts(verb);
            counts.unsent += requests;
            counts.unsent_estimated += estimated;
        }
    }

    /// Counts a request of a cluster's slot that was due at `due` and was never sent, for the shard of the slot.
    pub fn unsent_in_shard(&mut self, place: u16, due: Nanos) {
        if let (ReportMode::Record(_), Some(shards)) = (&self.mode, &mut self.shards) {
            shards.note_unsent(place, due, self.begin);
        }
    }

    /// Ends of the parts of the phase, each of which begins before `over`; `over` alone if it has no parts.
    pub fn part_ends(&self, over: Nanos) -> Vec<Nanos> {
        let parts = match self.mode {
            ReportMode::Record(_) => &self.parts[..],
            ReportMode::Count => &[],
        };
        let begins = parts.iter().skip(1).map(|at| self.begin.saturating_add(*at)).filter(|at| *at < over);
        begins.chain(std::iter::once(over)).collect()
    }

    /// The number of the part at a moment; `None` where the phase has no parts.
    fn part_at(&self, at: Nanos) -> Option<usize> {
        if self.parts.is_empty() || self.mode == ReportMode::Count {
            return None;
        }
        let since = at.saturating_sub(self.begin);
        Some(self.parts.partition_point(|begin| *begin <= since).saturating_sub(1))
    }
}
