//! One client's writes: their versions, and which of them are unanswered or lost.

use std::collections::VecDeque;

use crate::rng::mix;
use crate::workload::value::Version;

/// Keeps the versions of one run apart from those of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMark {
    /// Number of client 0's writer.
    pub(super) first_writer: u32,
    /// First count of every writer; at least 1.
    pub(super) first_count: u64,
}

impl RunMark {
    /// The mark of a run, from bits that no other run has: random ones from the operating system, and not the seed of
    /// the Plan, which two processes may share.
    pub fn new(random: u64) -> RunMark {
        RunMark {
            first_writer: mix(&[random, 1]) as u32 & Version::WRITER_MAX,
            first_count: 1 + (mix(&[random, 2]) >> 25),
        }
    }

    /// A number that no other run has.
    pub(crate) fn number(self) -> u64 {
        mix(&[u64::from(self.first_writer), self.first_count])
    }
}

/// One client's writes: gives them their versions, and knows which are unanswered.
///
/// A client has one for the whole run, over all phases and all its sockets: a count that was used twice could be read as
/// an old one. Every version from [`Writer::send`] ends in exactly one of [`Witness::handle_stored`](super::Witness::handle_stored),
/// [`Writer::handle_not_stored`] and [`Writer::handle_lost`]; what comes later is ignored.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(super) number: u32,
    /// Count of the next write; 0 when there are no more.
    pub(super) next: u64,
    /// Writes from the oldest unanswered one to the newest; `None` where the answer is there.
    pub(super) unanswered: VecDeque<Option<Known>>,
    lost: Lost,
}

/// Facts that were known when a write was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// A count; the writes of all counts below it had an end.
    pub(super) until: u64,
    /// Lost writes below `until`: those without an answer.
    pub(super) lost: Lost,
}

/// The counts from the first lost write to the last; none when `last` is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Writer {
    /// The writer of a client, `client` being its number over all groups, workers and agents of the run. Beyond 2^24
    /// clients there is no number left: such a client writes as if it were loading.
    pub fn new(run: RunMark, client: u64) -> Writer {
        let numbered = client <= u64::from(Version::WRITER_MAX);
        Writer {
            number: run.first_writer.wrapping_add(client as u32) & Version::WRITER_MAX,
            next: if numbered { run.first_count } else { 0 },
            unanswered: VecDeque::new(),
            lost: Lost::default(),
        }
    }

    /// The version of a write that is sent now. When all counts are used up, it is [`Version::LOADED`], about which
    /// there are no verdicts.
    pub fn send(&mut self) -> Version {
        if self.next == 0 {
            return Version::LOADED;
        }
        let version = Version::new(self.number, self.next);
        self.unanswered.push_back(Some(Known { until: self.oldest_unanswered(), lost: self.lost }));
        self.next = if self.next == Version::COUNT_MAX { 0 } else { self.next + 1 };
        version
    }

    /// Takes in the answer to a write that stored nothing, because its condition did not hold.
    pub fn handle_not_stored(&mut self, version: Version) {
        self.answer(version);
    }

    /// Takes in that it is not known what became of a write: it timed out, its connection broke, it was sent without reply,
    /// or the server answered with an error.
    pub fn handle_lost(&mut self, version: Version) {
        if self.answer(version).is_some() {
            let count = version.count();
            if self.lost.last == 0 {
                self.lost = Lost { first: count, last: count };
            }
            self.lost = Lost { first: self.lost.first.min(count), last: self.lost.last.max(count) };
        }
    }

    /// Count of the oldest write without an answer, or of the next write.
    fn oldest_unanswered(&self) -> u64 {
        let end = if self.next == 0 { Version::COUNT_MAX + 1 } else { self.next };
        end - self.unanswered.len() as u64
    }

    /// Takes a write off the unanswered ones; `None` when it is not among them.
    pub(super) fn answer(&mut self, version: Version) -> Option<Known> {
        if version.writer() != self.number {
            return None;
        }
        let place = version.count().checked_sub(self.oldest_unanswered())?;
        let known = self.unanswered.get_mut(usize::try_from(place).ok()?)?.take();
        while let Some(None) = self.unanswered.front() {
            self.unanswered.pop_front();
        }
        known
    }
}
