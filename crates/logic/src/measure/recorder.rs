//! What one worker writes the ends of its requests into; no locks, and nothing allocated while it records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::histogram::{Histogram, NotAHistogram, Sparse};
use crate::protocol::{Fault, Outcome, Verb};
use crate::time::{NEVER, Nanos};

/// How one request ended, and when it passed which point (all on the monotonic clock).
///
/// For a request without reply `arrived` and `read` mean nothing; for an error no time does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What was asked.
    pub verb: Verb,
    /// How it ended.
    pub outcome: Outcome,
    /// Number of keys asked for.
    pub keys: u32,
    /// How many of them were found; only looked at for verbs that read.
    pub hits: u32,
    /// When the arrival process asked for it.
    pub due: Nanos,
    /// When only the generator still stood in the way.
    pub ready: Nanos,
    /// The clock before the system call that took its first byte.
    pub sent: Nanos,
    /// When the last byte of its reply arrived.
    pub arrived: Nanos,
    /// When the worker read that.
    pub read: Nanos,
    /// The server was asked not to answer.
    pub noreply: bool,
}

/// A stretch of a request's life; each has a histogram of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Span {
    /// arrived - due: what a user of the cache waits.
    Response,
    /// ready - due: no free slot, connection not open, socket full.
    Wait,
    /// sent - ready: the generator's own slip.
    Lag,
    /// arrived - sent: the server, and the way there and back.
    Service,
    /// read - arrived: how long the reply lay unread.
    Reaction,
}

/// How requests of one verb ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Answered without an error, or handed over where no answer was asked for.
    pub completed: u64,
    /// Keys of the completed requests.
    pub keys: u64,
    /// Keys that reads found.
    pub hits: u64,
    /// Keys that reads did not find.
    pub misses: u64,
    /// What the completed requests did.
    pub outcomes: Outcomes,
    /// Requests that failed, by [`Fault`].
    pub errors: [u64; Fault::COUNT],
    /// Sent, but without an answer when the phase and its drain had ended.
    pub unfinished: u64,
    /// Due, but never sent.
    pub unsent: u64,
    /// Those of `unsent` that were not counted one by one: their number follows from the mean rate, or their verb from
    /// the weights of the mix.
    #[serde(default)]
    pub unsent_estimated: u64,
}

/// Completed requests by what they did. Reads are counted by key, as hits and misses, and not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Stored.
    pub stored: u64,
    /// Not stored, because the verb's condition did not hold.
    pub not_stored: u64,
    /// Not stored, because somebody else stored in between.
    pub exists: u64,
    /// The key did not exist.
    pub not_found: u64,
    /// Removed.
    pub deleted: u64,
    /// Got a new expiry.
    pub touched: u64,
    /// Answered with a number.
    pub number: u64,
    /// Anything else that is good; also requests without reply.
    pub ok: u64,
    /// Reads that found a value marked as stale.
    #[serde(default)]
    pub stale: u64,
    /// Reads that won the right to renew a value.
    #[serde(default)]
    pub win: u64,
    /// Reads of what another client is going to renew.
    #[serde(default)]
    pub recaching: u64,
}

/// The five histograms of a verb, by [`Span`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times([Histogram; Span::COUNT]);

/// Everything that is known of the requests of one verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// How they ended.
    pub counts: Counts,
    /// Their times. Response, service and reaction are those of completed requests with an answer; wait and lag those of
    /// all that were sent.
    pub times: Times,
}

/// What is known of requests, by verb. Verbs that nothing was asked with may be absent.
#[derive(Clone, Debug, Default)]
pub struct Ops([Option<Box<Op>>; Verb::COUNT]);

/// What one worker records of one group.
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
    /// Requests that are pipelined on one connection often have equal times: how many more had those of the last one.
    repeats: u64,
    spans: [[Nanos; BATCH]; Span::COUNT],
}

/// The counts of a recorder without its times: for requests that are not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally([Counts; Verb::COUNT]);

impl Span {
    /// Every span, in the order of reports. `ALL[s as usize] == s`.
    pub const ALL: [Span; 5] = [Span::Response, Span::Wait, Span::Lag, Span::Service, Span::Reaction];

    /// Number of spans.
    pub const COUNT: usize = Span::ALL.len();

    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Span::Response => "response",
            Span::Wait => "wait",
            Span::Lag => "lag",
            Span::Service => "service",
            Span::Reaction => "reaction",
        }
    }
}

impl Sample {
    /// How long each span was. A point that lies before the one that it follows (two clocks are involved) is taken to be
    /// at the same time, so that response = wait + lag + service always holds.
    #[inline]
    fn spans(&self) -> [Nanos; Span::COUNT] {
        let ready = self.ready.max(self.due);
        let sent = self.sent.max(ready);
        if self.noreply {
            return [0, ready - self.due, sent - ready, 0, 0];
        }
        let arrived = self.arrived.max(sent);
        [
            arrived - self.due,
            ready - self.due,
            sent - ready,
            arrived - sent,
            self.read.saturating_sub(arrived),
        ]
    }
}

impl Recorder {
    /// A recorder whose memory for `verbs` is there from the start; for others it is taken when they are first seen.
    pub fn new(verbs: impl Iterator<Item = Verb>) -> Recorder {
        let mut ops = Ops::default();
        let mut batches = [const { None }; Verb::COUNT];
        for verb in verbs {
            ops.entry(verb);
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
        batch.push(sample.spans(), &mut op.times);
    }

    /// Counts how a request ended, and of its times only how long it waited and how late it was sent.
    pub fn record_slipped(&mut self, sample: &Sample) {
        self.ops.entry(sample.verb).counts.count(sample);
        self.record_slip(*sample);
    }

    /// Counts requests that were sent and are without an answer now that the phase and its drain have ended, and of whose
    /// times nothing is known.
    pub fn unfinished(&mut self, verb: Verb, requests: u64) {
        self.ops.entry(verb).counts.unfinished += requests;
    }

    /// Counts a request that was sent and is without an answer now that the phase and its drain have ended.
    pub fn record_unfinished(&mut self, sample: &Sample) {
        self.ops.entry(sample.verb).counts.unfinished += 1;
        self.record_slip(*sample);
    }

    /// What is known of the times of a request without a good answer: how long it waited, and how late it was sent.
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

    /// Counts requests that were due and never sent.
    pub fn unsent(&mut self, verb: Verb, requests: u64) {
        self.ops.entry(verb).counts.unsent += requests;
    }

    /// Says of requests that were counted by [`Recorder::unsent`] that they were estimated.
    pub fn estimated(&mut self, verb: Verb, requests: u64) {
        self.ops.entry(verb).counts.unsent_estimated += requests;
    }

    /// What was recorded so far.
    pub fn ops(&mut self) -> &Ops {
        for (batch, op) in self.batches.iter_mut().zip(&mut self.ops.0) {
            if let (Some(batch), Some(op)) = (batch, op) {
                batch.flush(&mut op.times);
            }
        }
        &self.ops
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &mut Recorder) {
        self.ops.merge(other.ops());
    }

    /// Adds what a recorder of another process has of one verb.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] when the times are no histograms.
    pub fn merge_sparse(
        &mut self,
        verb: Verb,
        counts: &Counts,
        times: &[Sparse; Span::COUNT],
    ) -> Result<(), NotAHistogram> {
        let op = self.ops.entry(verb);
        op.counts.merge(counts);
        op.times.0.iter_mut().zip(times).try_for_each(|(histogram, more)| histogram.merge_sparse(more))
    }

    /// Forgets everything; the memory stays.
    pub fn clear(&mut self) {
        self.batches.iter_mut().flatten().for_each(|batch| (batch.len, batch.repeats) = (0, 0));
        self.ops.clear();
    }
}

impl Batch {
    /// Takes the memory; apart, so that it is not in the way of recording.
    #[cold]
    #[inline(never)]
    fn begin() -> Box<Batch> {
        Box::new(Batch { len: 0, repeats: 0, spans: [[0; BATCH]; Span::COUNT] })
    }

    /// Adds the times of a request.
    #[inline]
    fn push(&mut self, spans: [Nanos; Span::COUNT], times: &mut Times) {
        if self.len > 0 && self.is_last(&spans) {
            self.repeats += 1;
            return;
        }
        if self.repeats > 0 || self.len == BATCH {
            self.flush(times);
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
    fn flush(&mut self, times: &mut Times) {
        let (len, repeats) = (std::mem::take(&mut self.len), std::mem::take(&mut self.repeats));
        for (histogram, batch) in times.0.iter_mut().zip(&self.spans) {
            if let [others @ .., last] = &batch[..len] {
                histogram.record_all(others);
                histogram.record_many(*last, 1 + repeats);
            }
        }
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
            Outcome::Error(fault) => {
                self.errors[fault as usize] += 1;
                return;
            }
            Outcome::Hit | Outcome::Miss => None,
            Outcome::Stale => Some(&mut self.outcomes.stale),
            Outcome::Win => Some(&mut self.outcomes.win),
            Outcome::Recaching => Some(&mut self.outcomes.recaching),
            Outcome::Stored => Some(&mut self.outcomes.stored),
            Outcome::NotStored => Some(&mut self.outcomes.not_stored),
            Outcome::Exists => Some(&mut self.outcomes.exists),
            Outcome::NotFound => Some(&mut self.outcomes.not_found),
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
        if sample.verb.reads() {
            self.hits += u64::from(sample.hits);
            self.misses += u64::from(sample.keys.saturating_sub(sample.hits));
        }
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Counts) {
        self.completed += other.completed;
        self.keys += other.keys;
        self.hits += other.hits;
        self.misses += other.misses;
        self.outcomes.merge(&other.outcomes);
        for (errors, more) in self.errors.iter_mut().zip(other.errors) {
            *errors += more;
        }
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
        self.unsent_estimated += other.unsent_estimated;
    }
}

impl Outcomes {
    /// Each with its word in reports.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("stored", self.stored),
            ("not_stored", self.not_stored),
            ("exists", self.exists),
            ("not_found", self.not_found),
            ("deleted", self.deleted),
            ("touched", self.touched),
            ("number", self.number),
            ("ok", self.ok),
            ("stale", self.stale),
            ("win", self.win),
            ("recaching", self.recaching),
        ]
    }

    fn merge(&mut self, other: &Outcomes) {
        self.stored += other.stored;
        self.not_stored += other.not_stored;
        self.exists += other.exists;
        self.not_found += other.not_found;
        self.deleted += other.deleted;
        self.touched += other.touched;
        self.number += other.number;
        self.ok += other.ok;
        self.stale += other.stale;
        self.win += other.win;
        self.recaching += other.recaching;
    }
}

impl Times {
    /// The histogram of one span.
    pub fn of(&self, span: Span) -> &Histogram {
        &self.0[span as usize]
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Times) {
        for (histogram, more) in self.0.iter_mut().zip(&other.0) {
            histogram.merge(more);
        }
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(Histogram::clear);
    }
}

impl Op {
    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Op) {
        self.counts.merge(&other.counts);
        self.times.merge(&other.times);
    }
}

impl Ops {
    /// The verbs that something was asked with, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &Op)> {
        let present = Verb::ALL.into_iter().zip(&self.0);
        present.filter_map(|(verb, op)| Some((verb, op.as_deref().filter(|op| op.counts.requests() > 0)?)))
    }

    /// What is known of one verb.
    pub fn get(&self, verb: Verb) -> Option<&Op> {
        self.0[verb as usize].as_deref()
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Ops) {
        for (verb, op) in other.iter() {
            self.entry(verb).merge(op);
        }
    }

    /// All verbs together.
    pub fn all(&self) -> Op {
        let mut all = Op::default();
        self.iter().for_each(|(_, op)| all.merge(op));
        all
    }

    #[inline]
    fn entry(&mut self, verb: Verb) -> &mut Op {
        self.0[verb as usize].get_or_insert_with(Ops::begin)
    }

    /// Takes the memory for a verb; apart, so that it is not in the way of recording.
    #[cold]
    #[inline(never)]
    fn begin() -> Box<Op> {
        Box::default()
    }

    fn clear(&mut self) {
        for op in self.0.iter_mut().flatten() {
            op.counts = Counts::default();
            op.times.clear();
        }
    }
}

impl Tally {
    /// Counts how a request ended.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        self.0[sample.verb as usize].count(sample);
    }

    /// Counts requests that were sent and never answered.
    pub fn unfinished(&mut self, verb: Verb, requests: u64) {
        self.0[verb as usize].unfinished += requests;
    }

    /// Counts requests that were due and never sent.
    pub fn unsent(&mut self, verb: Verb, requests: u64) {
        self.0[verb as usize].unsent += requests;
    }

    /// Says of requests that were counted by [`Tally::unsent`] that they were estimated.
    pub fn estimated(&mut self, verb: Verb, requests: u64) {
        self.0[verb as usize].unsent_estimated += requests;
    }

    /// Adds the counts of measured requests.
    pub fn add(&mut self, ops: &Ops) {
        for (verb, op) in ops.iter() {
            self.0[verb as usize].merge(&op.counts);
        }
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Tally) {
        for (counts, more) in self.0.iter_mut().zip(&other.0) {
            counts.merge(more);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Tally::default();
    }

    /// The verbs that something was asked with, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &Counts)> {
        Verb::ALL.into_iter().zip(&self.0).filter(|(_, counts)| counts.requests() > 0)
    }

    /// All verbs together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        self.0.iter().for_each(|counts| all.merge(counts));
        all
    }
}

impl PartialEq for Ops {
    fn eq(&self, other: &Ops) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Ops {}

impl Serialize for Ops {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ops {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Ops, D::Error> {
        let saved = BTreeMap::<Verb, Box<Op>>::deserialize(deserializer)?;
        let mut ops = Ops::default();
        for (verb, op) in saved {
            ops.0[verb as usize] = Some(op);
        }
        Ok(ops)
    }
}

impl Serialize for Tally {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tally, D::Error> {
        let saved = BTreeMap::<Verb, Counts>::deserialize(deserializer)?;
        let mut tally = Tally::default();
        for (verb, counts) in saved {
            tally.0[verb as usize] = counts;
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn spans(op: &Op) -> [(Nanos, u64); Span::COUNT] {
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
        assert_eq!(op.counts.unanswered(), 4, "timeout, refused, reset and closed");
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
        merged.merge(&mut recorded(&samples[40..]));
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
        recorder.unfinished(Verb::Get, 3);
        recorder.unsent(Verb::Get, 4);
        let counts = recorder.ops().get(Verb::Get).unwrap().counts;
        assert_eq!(counts.requests(), 1 + 1 + 3 + 4);
        assert_eq!(counts.unanswered(), 3 + 4);
    }

    #[test]
    fn a_tally_counts_what_a_recorder_counts() {
        let samples = [get(), Sample { verb: Verb::Touch, outcome: Outcome::NotFound, hits: 0, ..get() }];
        let mut tally = Tally::default();
        samples.iter().for_each(|sample| tally.record(sample));
        tally.unsent(Verb::Get, 2);
        let mut recorder = recorded(&samples);
        recorder.unsent(Verb::Get, 2);
        let mut added = Tally::default();
        added.add(recorder.ops());
        assert_eq!(tally, added);
        assert_eq!(tally.all().requests(), 4);
    }
}
