//! The recorder of one worker: it counts requests and their times, without locks or allocations.

use crate::histogram::Histogram;
use pummel_logic::merge::{Clear, Merge};
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::{NEVER, Nanos};

pub use crate::counts::{Counts, Outcomes};
pub use crate::ops::{AnatomyCell, OpRecord, Ops, Times};
pub use crate::sample::{Sample, Span};
pub use crate::tally::Tally;

/// The record that one worker keeps of one group.
#[derive(Debug)]
pub struct Recorder {
    ops: Ops,
    /// Times that wait to be put into the histograms, by verb.
    batches: [Option<Box<Batch>>; Verb::COUNT],
}

/// Requests whose times are put into histograms together.
const BATCH: usize = 32;

/// Times of answered requests of one verb, by [`Span`].
#[derive(Debug)]
struct Batch {
    len: usize,
    /// Number of further requests with the times of the last one: requests that are pipelined on one connection often
    /// have equal times.
    repeats: u64,
    spans: [[Nanos; BATCH]; Span::COUNT],
}

impl Recorder {
    /// A recorder that has memory for `verbs` from the start; for other verbs it allocates with their first request.
    pub fn new(verbs: impl Iterator<Item = Verb>) -> Recorder {
        let mut ops = Ops::default();
        let mut batches = [const { None }; Verb::COUNT];
        for verb in verbs {
            ops.entry(verb).times.reserve();
            batches[verb as usize] = Some(Batch::begin());
        }
        Recorder { ops, batches }
    }

    /// Records how a request ended.
    #[inline(always)]
    pub fn record(&mut self, sample: &Sample) {
        let op = self.ops.entry(sample.verb);
        op.counts.count(sample);
        if sample.noreply || matches!(sample.outcome, Outcome::Error(_)) {
            return self.record_slip(*sample);
        }
        let batch = self.batches[sample.verb as usize].get_or_insert_with(Batch::begin);
        batch.push(sample.spans(), op);
    }

    /// Counts how a request ended, and of its times only how long it waited and how late it was sent.
    pub fn record_slipped(&mut self, sample: &Sample) {
        self.ops.entry(sample.verb).counts.count(sample);
        self.record_slip(*sample);
    }

    /// The counts of the requests of one verb, for those of whose times nothing is known.
    pub fn counts(&mut self, verb: Verb) -> &mut Counts {
        &mut self.ops.entry(verb).counts
    }

    /// Counts a request that was sent and is without an answer now that the phase and its drain have ended.
    pub fn record_unfinished(&mut self, sample: &Sample) {
        self.ops.entry(sample.verb).counts.unfinished += 1;
        self.record_slip(*sample);
    }

    /// Records the wait and the lag of a request without a good answer.
    #[cold]
    fn record_slip(&mut self, sample: Sample) {
        if sample.sent == NEVER {
            return;
        }
        let spans = sample.spans();
        let times = &mut self.ops.entry(sample.verb).times.0;
        for span in [Span::Wait, Span::Lag] {
            times[span as usize].record(spans[span as usize]);
        }
    }

    /// Everything that was recorded so far.
    pub fn ops(&mut self) -> &Ops {
        for (batch, op) in self.batches.iter_mut().zip(&mut self.ops.0) {
            if let (Some(batch), Some(op)) = (batch, op) {
                batch.flush(op);
            }
        }
        &self.ops
    }

    /// Adds what another recorder has, of this process or of another one.
    pub fn merge<H>(&mut self, ops: &Ops<H>)
    where
        Histogram: Merge<H>,
    {
        self.ops.merge(ops);
    }

    /// Makes the recorder empty and keeps its memory.
    pub fn clear(&mut self) {
        self.batches.iter_mut().flatten().for_each(|batch| (batch.len, batch.repeats) = (0, 0));
        self.ops.clear();
    }
}

impl Batch {
    /// Allocates a batch. It is not inlined, so that recording stays small.
    #[cold]
    #[inline(never)]
    fn begin() -> Box<Batch> {
        Box::new(Batch { len: 0, repeats: 0, spans: [[0; BATCH]; Span::COUNT] })
    }

    /// Adds the times of a request.
    #[inline]
    fn push(&mut self, spans: [Nanos; Span::COUNT], op: &mut OpRecord) {
        if self.len > 0 && self.is_last(&spans) {
            self.repeats += 1;
            return;
        }
        if self.repeats > 0 || self.len == BATCH {
            self.flush(op);
        }
        let place = self.len % BATCH;
        for (batch, span) in self.spans.iter_mut().zip(spans) {
            batch[place] = span;
        }
        self.len = place + 1;
    }

    /// Whether the last request had these times.
    #[inline]
    fn is_last(&self, spans: &[Nanos; Span::COUNT]) -> bool {
        let place = (self.len - 1) % BATCH;
        self.spans.iter().zip(spans).all(|(batch, span)| batch[place] == *span)
    }

    /// Puts everything into the histograms.
    #[inline(never)]
    fn flush(&mut self, op: &mut OpRecord) {
        let (len, repeats) = (std::mem::take(&mut self.len), std::mem::take(&mut self.repeats));
        let Some(last) = len.checked_sub(1) else { return };
        let [response, others @ ..] = &mut op.times.0;
        let [responses, other_spans @ ..] = &self.spans;
        let lags = &self.spans[Span::Lag as usize];
        response.record_all_beside(&responses[..last], lags, &mut op.lag_by_response);
        response.record_many(responses[last], 1 + repeats);
        op.lag_by_response.add(responses[last], lags[last], 1 + repeats);
        // Few requests wait, and none in most batches.
        let waits = &self.spans[Span::Wait as usize][..len];
        if waits.iter().fold(0, |all, wait| all | wait) != 0 {
            for (at, wait) in waits.iter().enumerate().filter(|(_, wait)| **wait != 0) {
                let count = if at == last { 1 + repeats } else { 1 };
                op.wait_by_response.add(responses[at], *wait, count);
            }
        }
        for (histogram, batch) in others.iter_mut().zip(other_spans) {
            histogram.record_all(&batch[..last]);
            histogram.record_many(batch[last], 1 + repeats);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Fault;

    /// A get that was due at 1,000, waited 10, slipped 20, was served in 300 and read 4 later.
    fn get() -> Sample {
        Sample {
            verb: Verb::Get,
            outcome: Outcome::Hit,
            keys: 1,
            hits: 1,
            due: 1_000,
            ready: 1_010,
            sent: 1_030,
            arrived: 1_330,
            read: 1_334,
            noreply: false,
        }
    }

    fn recorded(samples: &[Sample]) -> Recorder {
        let mut recorder = Recorder::new([Verb::Get].into_iter());
        samples.iter().for_each(|sample| recorder.record(sample));
        recorder
    }

    /// The greatest value and the number of values of every span.
    fn spans(op: &OpRecord) -> [(Nanos, u64); Span::COUNT] {
        Span::ALL.map(|span| (op.times.of(span).moments().max, op.times.of(span).count()))
    }

    #[test]
    fn an_answered_request_goes_into_all_five_histograms() {
        let mut recorder = recorded(&[get()]);
        let op = recorder.ops().get(Verb::Get).unwrap();
        assert_eq!(spans(op), [(330, 1), (10, 1), (20, 1), (300, 1), (4, 1)]);
        assert_eq!((op.counts.requests(), op.counts.completed, op.counts.hits), (1, 1, 1));
    }

    #[test]
    fn the_share_of_lag_is_that_of_the_requests_near_the_quantile() {
        // Ninety requests with a tenth of lag in 200 us, and ten that took 4 ms, nine tenths of it before they were sent.
        let slow = |at: u64| at.is_multiple_of(10);
        let samples: Vec<Sample> = (0..1_000)
            .map(|at| {
                let (response, lag) = if slow(at) { (4_000_000, 3_600_000) } else { (200_000, 20_000) };
                let (ready, sent, arrived) = (1_000, 1_000 + lag, 1_000 + response);
                Sample { due: 1_000, ready, sent, arrived, read: arrived + at, ..get() }
            })
            .collect();
        let mut recorder = recorded(&samples);
        let op = recorder.ops().get(Verb::Get).unwrap();
        let at = |quantile| op.lag_share(quantile).unwrap();
        assert!((at(0.5) - 0.1).abs() < 0.001 && (at(0.99) - 0.9).abs() < 0.001, "{} {}", at(0.5), at(0.99));
        assert_eq!(op.lag_by_response.total(), op.times.of(Span::Lag).moments().sum, "no lag is left out");
    }

    #[test]
    fn the_parts_of_responses_are_those_of_the_very_requests() {
        // Ninety requests that did not wait, and ten whose 4 ms were nine tenths wait.
        let mut recorder = Recorder::new([Verb::Get].into_iter());
        let slow = |at: u64| at % 10 == 3;
        for at in 0..100 {
            let (wait, service) = if slow(at) { (3_600_000, 380_000) } else { (0, 180_000) };
            let (ready, sent) = (1_000 + wait, 1_000 + wait + 20_000);
            let arrived = sent + service;
            recorder.record(&Sample { due: 1_000, ready, sent, arrived, read: arrived, ..get() });
        }
        let op = recorder.ops().all();
        let cells = op.anatomy();
        let sum = |of: fn(&AnatomyCell) -> f64| cells.iter().map(of).sum::<f64>();
        assert_eq!(
            (sum(|cell| cell.wait_ns), sum(|cell| cell.lag_ns)),
            (10.0 * 3_600_000.0, 100.0 * 20_000.0)
        );
        let service = sum(|cell| cell.service_ns);
        assert!((service / (90.0 * 180_000.0 + 10.0 * 380_000.0) - 1.0).abs() < 0.01, "{service}");
        let (first, last) = (cells[0], cells[cells.len() - 1]);
        assert_eq!((first.count, first.wait_ns, last.count), (90, 0.0, 10));
        assert!((last.wait_ns / (last.wait_ns + last.lag_ns + last.service_ns) - 0.9).abs() < 0.01);
    }

    #[test]
    fn the_share_of_lag_is_not_known_of_old_results_and_beyond_what_was_answered() {
        let mut recorder = recorded(&[get(), get()]);
        let mut op = recorder.ops().get(Verb::Get).unwrap().clone();
        assert!(op.lag_share(0.5).is_some());
        op.counts.unfinished = 10;
        assert_eq!(op.lag_share(0.99), None);
        op.counts.unfinished = 0;
        op.lag_by_response.clear();
        assert_eq!(op.lag_share(0.5), None, "there was lag, and nothing says whose");
        assert_eq!(OpRecord::default().lag_share(0.5), None);
    }

    #[test]
    fn a_request_without_reply_has_only_wait_and_lag() {
        let set = Sample {
            verb: Verb::Set,
            outcome: Outcome::Ok,
            noreply: true,
            arrived: 0,
            read: 0,
            hits: 0,
            ..get()
        };
        let mut recorder = recorded(&[set]);
        let op = recorder.ops().get(Verb::Set).unwrap();
        assert_eq!(spans(op), [(0, 0), (10, 1), (20, 1), (0, 0), (0, 0)]);
        assert_eq!((op.counts.completed, op.counts.outcomes.ok), (1, 1));
    }

    #[test]
    fn errors_are_counted_by_kind_and_only_what_came_before_sending_is_timed() {
        let failed = Fault::ALL.map(|fault| Sample { outcome: Outcome::Error(fault), ..get() });
        let mut recorder = recorded(&failed);
        let op = recorder.ops().get(Verb::Get).unwrap();
        let faults = Fault::COUNT as u64;
        assert_eq!(op.counts.errors, [1; Fault::COUNT]);
        assert_eq!((op.counts.requests(), op.counts.completed, op.counts.keys), (faults, 0, 0));
        assert_eq!(op.counts.unanswered(), 5, "timeout, refused, reset, closed and abandoned");
        assert_eq!(spans(op), [(0, 0), (10, faults), (20, faults), (0, 0), (0, 0)]);
        let never_sent = Sample { sent: NEVER, outcome: Outcome::Error(Fault::Closed), ..get() };
        let mut recorder = recorded(&[never_sent]);
        assert_eq!(recorder.ops().get(Verb::Get).unwrap().times, Times::default());
    }

    #[test]
    fn a_multi_get_is_one_request_and_its_keys_are_hits_and_misses() {
        let mut recorder = recorded(&[
            Sample { keys: 10, hits: 7, ..get() },
            Sample { outcome: Outcome::Miss, keys: 2, hits: 0, ..get() },
        ]);
        let counts = recorder.ops().get(Verb::Get).unwrap().counts;
        assert_eq!((counts.completed, counts.keys, counts.hits, counts.misses), (2, 12, 7, 5));
    }

    #[test]
    fn keys_of_writes_are_neither_hits_nor_misses() {
        let mut recorder =
            recorded(&[Sample { verb: Verb::Set, outcome: Outcome::Stored, hits: 0, ..get() }]);
        let counts = recorder.ops().get(Verb::Set).unwrap().counts;
        assert_eq!((counts.keys, counts.hits, counts.misses, counts.outcomes.stored), (1, 0, 0, 1));
    }

    #[test]
    fn response_is_the_sum_of_its_parts_even_when_clocks_disagree() {
        let samples = [
            Sample { arrived: 1_029, read: 1_020, ..get() },
            Sample { ready: 900, ..get() },
            Sample { sent: 1_001, ..get() },
        ];
        for sample in samples {
            let [response, wait, lag, service, _] = sample.spans();
            assert_eq!(response, wait + lag + service, "{sample:?}");
        }
    }

    #[test]
    fn equal_samples_in_a_row_count_as_often_as_they_came() {
        let set = Sample { verb: Verb::Set, outcome: Outcome::Stored, ..get() };
        let other = Sample { read: 2_000, ..get() };
        let failed = Sample { outcome: Outcome::Error(Fault::Server), ..get() };
        let silent = Sample { noreply: true, outcome: Outcome::Ok, ..set };
        let samples = [get(), get(), failed, get(), set, set, silent, silent, get(), other, other];
        let mut recorder = recorded(&samples);
        let mut one_by_one = Ops::default();
        for sample in samples {
            one_by_one.merge(recorded(&[sample]).ops());
        }
        assert_eq!(recorder.ops(), &one_by_one);
        assert_eq!(recorder.ops().get(Verb::Get).unwrap().times.of(Span::Response).count(), 6);
    }

    #[test]
    fn merged_recorders_equal_one_that_saw_everything() {
        let samples: Vec<Sample> = (0..100)
            .map(|i| Sample {
                verb: Verb::ALL[i % Verb::COUNT],
                read: 2_000 + 37 * i as u64,
                arrived: 1_400 + i as u64,
                ..get()
            })
            .collect();
        let mut merged = recorded(&samples[..40]);
        merged.merge(recorded(&samples[40..]).ops());
        assert_eq!(merged.ops(), recorded(&samples).ops());
    }

    #[test]
    fn a_cleared_recorder_holds_nothing_back() {
        let mut recorder = recorded(&[get(), get()]);
        recorder.clear();
        assert_eq!(recorder.ops(), &Ops::default());
        recorder.record(&get());
        assert_eq!(recorder.ops().get(Verb::Get).unwrap().times.of(Span::Lag).count(), 1);
    }

    #[test]
    fn requests_are_completed_failed_unfinished_or_unsent() {
        let mut recorder = recorded(&[get(), Sample { outcome: Outcome::Error(Fault::Client), ..get() }]);
        recorder.counts(Verb::Get).unfinished += 3;
        recorder.counts(Verb::Get).unsent += 4;
        let counts = recorder.ops().get(Verb::Get).unwrap().counts;
        assert_eq!(counts.requests(), 1 + 1 + 3 + 4);
        assert_eq!(counts.unanswered(), 3 + 4);
    }

    #[test]
    fn a_tally_counts_what_a_recorder_counts() {
        let samples = [get(), Sample { verb: Verb::Touch, outcome: Outcome::NotFound, hits: 0, ..get() }];
        let mut tally = Tally::default();
        samples.iter().for_each(|sample| tally.record(sample));
        tally.counts(Verb::Get).unsent += 2;
        let mut recorder = recorded(&samples);
        recorder.counts(Verb::Get).unsent += 2;
        let mut added = Tally::default();
        added.add(recorder.ops());
        assert_eq!(tally, added);
        assert_eq!(tally.all().requests(), 4);
    }
}
