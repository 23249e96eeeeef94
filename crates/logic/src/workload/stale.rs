//! Says that a read returned a value that was overwritten before, and only when that is certain.
//!
//! A verdict on a value with version n of a writer, by its acknowledged write m of the same key on the same server,
//! needs this order of events, all seen by one worker:
//!
//! 1. write n was answered;
//! 2. write m was sent, and later answered: stored;
//! 3. the read was sent, and returned n.
//!
//! A server that applies a request between taking it and answering it stored n before m, and m before it looked for the
//! read: n was gone, and since no two writes have the same version, nobody brought it back. What happens to the key
//! besides (other writers' values, removal, expiry, eviction, requests whose condition did not hold) can remove m but
//! not restore n.
//!
//! * That n was answered before m was sent is known without a list of writes: n is below the oldest write of the client
//!   that had no answer when m was sent, over all its sockets, and not among the lost ones. Lost writes are those that
//!   never get an answer (timed out, without reply, on a connection that broke) or one that does not say what became of
//!   them (errors); they may be applied at any later time, so that nothing is said about any count from the first lost
//!   one to the last.
//! * That the read was sent after m was answered is known from a [`Mark`], which the read takes along.
//! * That n is ours is known from the run's mark: all counts of a run begin at the same random place among 2^39, and the
//!   numbers of its writers at a random one among 2^24 ([`RunMark`]). Another process with the same data seed writes
//!   versions that this run could have written only if both places of both runs lie within the number of writes and of
//!   clients of each other: for a million writes by 50 clients, once in 10^11 pairs of runs.

use std::collections::VecDeque;

use crate::rng::mix;
use crate::workload::value::Version;

/// Entries of a worker's [`Witness`], one cache line each.
const SLOTS: usize = 4096;

/// Keeps the versions of one run apart from those of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunMark {
    /// Number of client 0's writer.
    first_writer: u32,
    /// What all writers begin to count at; at least 1.
    first_count: u64,
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
}

/// One client's writes: gives them their versions, and knows which are unanswered.
///
/// A client has one for the whole run, over all phases and all its sockets: a count that was used twice could be read as
/// an old one. Every version from [`Writer::send`] ends in exactly one of [`Witness::handle_stored`],
/// [`Writer::handle_not_stored`] and [`Writer::handle_lost`]; what comes later is ignored.
#[derive(Clone, Debug)]
pub struct Writer {
    number: u32,
    /// Count of the next write; 0 when there are no more.
    next: u64,
    /// Writes from the oldest unanswered one to the newest; `None` where the answer is there.
    unanswered: VecDeque<Option<Known>>,
    lost: Lost,
}

/// What was known when a write was sent.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// All counts below had an end.
    until: u64,
    /// Of those, the ones without an answer.
    lost: Lost,
}

/// The counts from the first lost write to the last; none when `last` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    first: u64,
    last: u64,
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

    /// A write was answered: nothing is stored, because its condition did not hold.
    pub fn handle_not_stored(&mut self, version: Version) {
        self.answer(version);
    }

    /// A write will have no answer, or had one that leaves open what became of it: it timed out, its connection broke,
    /// it was sent without reply, or the server answered with an error.
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
    fn answer(&mut self, version: Version) -> Option<Known> {
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

/// A key on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the server in the run: what one server stored says nothing about another.
    pub server: u32,
    /// Index of the key.
    pub index: u64,
}

/// How many writes a worker knew to be stored when a read was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// One worker's memory of acknowledged writes: small, direct-mapped, and forgetful. To forget loses verdicts and never
/// invents one.
#[derive(Clone, Debug)]
pub struct Witness {
    slots: Box<[Slot]>,
    first_count: u64,
    /// Writes that were stored so far.
    stored: u64,
    /// Nothing that was stored up to here counts any more.
    cleared: u64,
}

/// The newest acknowledged write of a key; empty when `stored` is 0.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot {
    place: Place,
    /// Its version.
    version: Version,
    known: Known,
    /// How many writes had been stored, this one included.
    stored: u64,
}

impl Witness {
    /// One that saw nothing yet.
    pub fn new(run: RunMark) -> Witness {
        Witness::with_slots(run, SLOTS)
    }

    fn with_slots(run: RunMark, slots: usize) -> Witness {
        assert!(slots.is_power_of_two());
        let empty = Slot {
            place: Place { server: 0, index: 0 },
            version: Version::LOADED,
            known: Known { until: 0, lost: Lost::default() },
            stored: 0,
        };
        Witness { slots: vec![empty; slots].into(), first_count: run.first_count, stored: 0, cleared: 0 }
    }

    /// What a read takes along when it is sent.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark(self.stored)
    }

    /// A write was answered: it is stored.
    #[inline]
    pub fn handle_stored(&mut self, writer: &mut Writer, place: Place, version: Version) {
        let Some(known) = writer.answer(version) else { return };
        self.stored += 1;
        let at = self.slot_of(place);
        let old = &self.slots[at];
        // The answers of one client's sockets may come in another order than the writes; the newest says most.
        let older = version.writer() == old.version.writer() && version < old.version;
        if !(older && old.place == place && old.stored > self.cleared) {
            self.slots[at] = Slot { place, version, known, stored: self.stored };
        }
    }

    /// A connection was lost: what its server holds from now on is not known.
    pub fn clear(&mut self) {
        self.cleared = self.stored;
    }

    /// Whether a value that a read returned was certainly overwritten before the read was sent.
    #[inline]
    pub fn is_stale(&self, place: Place, version: Version, mark: Mark) -> bool {
        let slot = &self.slots[self.slot_of(place)];
        let count = version.count();
        slot.place == place
            && slot.version.writer() == version.writer()
            && (self.first_count..slot.known.until).contains(&count)
            && !(slot.known.lost.first..=slot.known.lost.last).contains(&count)
            && slot.stored > self.cleared
            && slot.stored <= mark.0
    }

    #[inline]
    fn slot_of(&self, place: Place) -> usize {
        mix(&[u64::from(place.server), place.index]) as usize & (self.slots.len() - 1)
    }
}
