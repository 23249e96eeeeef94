//! One connection: what waits to be sent, what is owed, what is late. It never sees a socket.

use std::io::IoSlice;

use super::datagrams::Datagrams;
use crate::connection::inflight::{CheckState, Inflight, Origin, Owed, Ticket};
use crate::connection::outbox::Outbox;
use crate::protocol::{Codec, Expect, Fault, Malformed, Op, Outcome, Refused, Step, Tag};
use crate::time::{NEVER, Nanos};

/// A stamp may lie this far outside of [sent, read], the slack of comparing two clocks.
const STAMP_SLACK_NS: Nanos = 1_000;

/// A connection with more bytes than this to send takes no new request before its socket has taken some: below it, the
/// memory of what waits; beyond it at most one request more.
pub const OUTBOX_MAX_BYTES: usize = 256 * 1024;

/// Where an answer's `arrived` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The kernel's receive stamp.
    Kernel,
    /// There was none: the time of the read.
    Missing,
    /// There was one that cannot be true: the time of the read.
    Rejected,
    /// Nothing arrived: the request ended without an answer, or wants none.
    Nothing,
}

/// The end of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What it was.
    pub ticket: &'a Ticket,
    /// How it ended.
    pub outcome: Outcome,
    /// The clock before the system call that took its first byte; [`NEVER`] if none did.
    pub sent: Nanos,
    /// When the kernel received the segment with the reply's last byte; for a request without an answer, when it was
    /// given up.
    pub arrived: Nanos,
    /// The clock when the worker took that read's result.
    pub read: Nanos,
    /// Items that it brought.
    pub hits: u32,
    /// Where `arrived` comes from.
    pub stamp: Stamp,
}

/// An item of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The key as the server sent it; empty where the protocol does not repeat it.
    pub key: &'a [u8],
    /// Length of the value in bytes.
    pub size: u64,
    /// CAS unique, 0 if none was sent.
    pub cas: u64,
    /// Flags.
    pub flags: u32,
}

/// Who is told what came.
pub trait Sink {
    /// An item of a reply to the request begins. Returns whether its bytes are wanted; the bytes of other items are not
    /// looked at. Items for requests that do not answer_use ([`Ticket::reads_items`]) may pass without a word.
    ///
    /// # Errors
    /// When the request did not ask for the item, or has had it already: the connection cannot be used any more.
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed>;

    /// Some of that item's bytes, if they are wanted.
    fn body(&mut self, ticket: &Ticket, bytes: &[u8]);

    /// The request ended; `message` is what the server said beyond the outcome.
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]);

    /// The item that is passing by, if any, does not end. Said before [`Sink::answer`] where a reply breaks off; otherwise
    /// every item is whole when the next item begins or its request ends, with an error as well as without.
    #[inline]
    fn broken_off(&mut self) {}

    /// A request that asked for no reply, and has ended with its sending, has failed; `message` is what the server said.
    #[inline]
    fn quiet_error(&mut self, _message: &[u8]) {}

    /// Said before [`Sink::answer`]: so many bytes of the chunk lie behind the reply.
    #[inline]
    fn passed(&mut self, _left_bytes: usize) {}

    /// Said before [`Sink::answer`] for a request that ends with its connection: whether all its bytes were taken.
    #[inline]
    fn parted(&mut self, _whole: bool) {}
}

/// A read: its bytes and times.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// When the kernel received the newest of them, where it said.
    pub stamp: Option<Nanos>,
    /// The clock when they were taken.
    pub read: Nanos,
}

/// One connection's whole memory.
#[derive(Debug)]
pub struct Session<C> {
    pub(super) codec: C,
    pub(super) outbox: Outbox,
    pub(super) owed: Inflight,
    /// Bytes that were ever taken from the outbox.
    pub(super) taken: u64,
    /// Tag of the request whose item is passing by.
    pub(super) passing: Option<Tag>,
    /// Whether the item's bytes are wanted.
    pub(super) wanted: bool,
    /// An error may have ended a reply in its middle, so that which request an item answers is not certain any more.
    doubtful: bool,
    /// A request without reply was sent.
    is_quiet: bool,
    /// What speaking in datagrams takes; `None` on a stream.
    pub(super) datagrams: Option<Box<Datagrams>>,
}

impl<C: Codec> Session<C> {
    /// A connection on which nothing was said yet, made for `depth` outstanding requests.
    pub fn new(depth: usize) -> Session<C> {
        Session::with_codec(C::new(), depth)
    }

    /// The same, with a codec that something was set on.
    pub fn with_codec(codec: C, depth: usize) -> Session<C> {
        Session {
            codec,
            outbox: Outbox::with_capacity(64 * depth.min(16)),
            owed: Inflight::with_capacity(depth),
            taken: 0,
            passing: None,
            wanted: false,
            doubtful: false,
            is_quiet: false,
            datagrams: None,
        }
    }

    /// The same over datagrams.
    pub fn over_datagrams(depth: usize) -> Session<C> {
        Session { datagrams: Some(Box::default()), ..Session::new(depth) }
    }

    /// Speaks over datagrams from now on, or over a stream, and begins anew; to be said where nothing is owed.
    pub fn carry_by_datagrams(&mut self, datagrams: bool) {
        debug_assert!(self.is_idle());
        if datagrams == self.datagrams.is_some() {
            return;
        }
        self.codec = self.codec.renew();
        self.outbox.clear();
        self.forget();
        drop(self.owed.drain());
        self.datagrams = datagrams.then(Box::default);
    }

    /// Forgets what was sent and what was passing by.
    fn forget(&mut self) {
        (self.taken, self.passing) = (0, None);
        (self.wanted, self.doubtful, self.is_quiet) = (false, false, false);
    }

    /// Speaks with this codec from now on; to be said before the first request.
    pub fn speak(&mut self, codec: C) {
        debug_assert!(self.is_idle() && self.outbox.is_empty());
        self.codec = codec;
    }

    /// Whether no request is unanswered.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.owed.is_empty()
    }

    /// Queues a request. Returns how many bytes wait to be sent now; above [`OUTBOX_MAX_BYTES`], the caller is to send
    /// before it queues another request.
    ///
    /// # Errors
    /// Returns [`Refused`] for a request that the protocol cannot express; nothing is queued then.
    #[inline(always)]
    pub fn request(&mut self, op: &Op<'_>, ticket: Ticket) -> Result<usize, Refused> {
        if self.datagrams.is_some() {
            return self.request_datagram(&{ *op }, ticket);
        }
        let expect = self.codec.encode(op, self.owed.next_tag(), &mut self.outbox)?;
        let waiting_bytes = self.outbox.len();
        self.owed.push(ticket, self.taken + waiting_bytes as u64, expect == Expect::Nothing);
        Ok(waiting_bytes)
    }

    /// How many bytes wait to be sent.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Whether there are bytes to send.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What to send next: own bytes and a range of `block`, as [`Outbox::parts`] gives them.
    #[inline]
    pub fn poll_send<'a>(&'a self, block: &'a [u8], parts: &mut [IoSlice<'a>; 3]) -> usize {
        match self.datagrams {
            None => self.outbox.parts(block, parts),
            Some(_) => self.datagram_parts(parts),
        }
    }

    /// The same where it is one piece of own bytes, which it nearly always is.
    #[inline]
    pub fn poll_send_plain(&self) -> Option<&[u8]> {
        if self.datagrams.is_some() { None } else { self.outbox.plain() }
    }

    /// `count` bytes were taken by a system call that began at `at`.
    #[inline(always)]
    pub fn handle_sent(&mut self, count: usize, at: Nanos, sink: &mut impl Sink) {
        if self.datagrams.is_some() {
            return self.handle_datagram_sent(count, at, sink);
        }
        self.outbox.take(count);
        self.taken += count as u64;
        let is_quiet = &mut self.is_quiet;
        self.owed.handle_sent(self.taken, at, |owed| {
            *is_quiet = true;
            sink.answer(&ended(owed, Outcome::Ok, at, Stamp::Nothing), &[]);
        });
    }

    /// The socket takes bytes again after it was full.
    pub fn handle_writable(&mut self, at: Nanos) {
        self.owed.handle_writable(at);
    }

    /// Bytes came. Returns how many requests they answered.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow, and for a reply that no outstanding request
    /// can have. The connection cannot be used any more.
    #[inline(always)]
    pub fn handle_received(&mut self, chunk: Chunk<'_>, sink: &mut impl Sink) -> Result<u32, Malformed> {
        if self.datagrams.is_some() {
            return Ok(self.handle_datagram(Chunk { ..chunk }, sink));
        }
        let mut input = chunk.bytes;
        let mut answered = 0;
        loop {
            let mut oldest = self.owed.first_tag();
            while let Some(owed) = self.owed.first().filter(|owed| !owed.ticket.reads_items()) {
                let Some(skimmed) = self.codec.skim(oldest, &mut input) else { break };
                if !owed.ticket.verb.can_end(&skimmed.outcome) {
                    return Err(UNFIT);
                }
                // Nearly always there is one item at most, and no request asks for less.
                if skimmed.items > 1 && skimmed.items > u32::from(owed.ticket.keys) {
                    return Err(TOO_MANY);
                }
                owed.hits = skimmed.items;
                answered += 1;
                sink.passed(input.len());
                sink.answer(&arrived(owed, skimmed.outcome, chunk.stamp, chunk.read), &[]);
                self.owed.finish_first();
                oldest = self.owed.first_tag();
                if input.is_empty() {
                    return Ok(answered);
                }
            }
            // A copy, so that what is skimmed needs no place in memory.
            let mut rest = input;
            if !self.read_reply(&mut rest, Chunk { ..chunk }, sink)? {
                return Ok(answered);
            }
            answered += 1;
            input = rest;
        }
    }

    /// Reads step by step up to the end of a reply; false where more bytes are needed.
    #[inline(never)]
    fn read_reply(
        &mut self,
        input: &mut &[u8],
        chunk: Chunk<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Malformed> {
        loop {
            match self.codec.decode(input)? {
                Step::Need => {
                    self.inquire();
                    return Ok(false);
                }
                Step::QuietError { message } => sink.quiet_error(message),
                // A server in front of which nothing waits has nothing else to speak of.
                Step::Reply { tag, outcome: Outcome::Error(_), message }
                    if C::ERRORS_END_ANYWHERE && self.is_quiet && self.owed.find(tag).is_none() =>
                {
                    sink.quiet_error(message);
                }
                Step::Body(_) if !self.wanted => {}
                Step::Item { tag, key, size, cas, flags } => {
                    let owed = self.owed.find(tag).ok_or(UNASKED)?;
                    if !owed.ticket.verb.reads() {
                        return Err(UNFIT);
                    }
                    let item = Item { key, size, cas, flags };
                    self.wanted = pass_item(owed, item, self.doubtful, sink)?;
                    self.passing = tag;
                }
                Step::Body(bytes) => {
                    let owed = self.owed.find(self.passing).ok_or(UNASKED)?;
                    sink.body(&owed.ticket, bytes);
                }
                Step::Reply { tag, outcome, message } => {
                    let owed = self.owed.find(tag).ok_or(UNASKED)?;
                    if !owed.ticket.verb.can_end(&outcome) {
                        return Err(UNFIT);
                    }
                    let (outcome, message) = ending(owed, outcome, message);
                    if C::ERRORS_END_ANYWHERE && matches!(outcome, Outcome::Error(_)) {
                        self.doubtful |= owed.hits > 0 || owed.ticket.keys > 1 || self.is_quiet;
                    }
                    sink.passed(input.len());
                    sink.answer(&arrived(owed, outcome, chunk.stamp, chunk.read), message);
                    self.owed.finish(tag);
                    self.inquire();
                    return Ok(true);
                }
            }
        }
    }

    /// Lets the codec ask what it has to know.
    #[inline]
    fn inquire(&mut self) {
        let before = self.outbox.len();
        self.codec.inquire(&mut self.outbox);
        let bytes = (self.outbox.len() - before) as u64;
        if bytes > 0 {
            self.owed.skip_bytes(bytes);
        }
    }

    /// The connection is gone: everything owed ends with `fault`. The session begins anew.
    pub fn handle_closed(&mut self, fault: Fault, at: Nanos, sink: &mut impl Sink) {
        self.end_all(at, |_| fault, sink);
    }

    /// The connection is given up because its oldest request took longer than `timeout`: what did so ends as a timeout,
    /// what waited behind it as closed. Replies are matched by order, so nothing can be read from it any more. The
    /// session begins anew.
    pub fn handle_timeout(&mut self, timeout: Nanos, at: Nanos, sink: &mut impl Sink) {
        let late = |owed: &Owed| owed.since().saturating_add(timeout) <= at;
        self.end_all(at, |owed| if late(owed) { Fault::Timeout } else { Fault::Closed }, sink);
    }

    fn end_all(&mut self, at: Nanos, fault: impl Fn(&Owed) -> Fault, sink: &mut impl Sink) {
        let next = self.owed.next_tag();
        sink.broken_off();
        for owed in self.owed.drain() {
            sink.parted(owed.end <= self.taken);
            sink.answer(&ended(&owed, Outcome::Error(fault(&owed)), at, Stamp::Nothing), &[]);
        }
        self.codec = self.codec.renew();
        self.outbox.clear();
        self.forget();
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.forget();
            self.owed.restart_at(next);
        }
    }

    /// When the oldest unanswered request has taken `timeout`; [`NEVER`] if none is unanswered.
    pub fn deadline(&self, timeout: Nanos) -> Nanos {
        match self.owed.oldest() {
            NEVER => NEVER,
            since => since.saturating_add(timeout),
        }
    }
}

/// A reply that belongs to no request.
pub(super) const UNASKED: Malformed = Malformed("a reply that nobody asked for");

/// A reply to another request than the one that it is for, by its place or its tag.
pub(super) const UNFIT: Malformed = Malformed("the server answers something else than it was asked");

/// What is kept as the server's words where a read for a cas brought no CAS unique.
const NO_UNIQUE: &[u8] = b"an item without a CAS unique, so that no cas can follow (memcached -C gives none)";

/// How many hits an item with this CAS unique is. A read for a cas finds nothing of use without one: 0 is none in every
/// protocol, and in the binary protocol a store with 0 would be carried out unchecked.
#[inline]
fn hits_of(ticket: &Ticket, cas: u64) -> u32 {
    u32::from(cas != 0 || ticket.origin != Origin::BeforeCas)
}

/// How a request ends whose reply says this: a read for a cas that brought an item, but no CAS unique, is the server's
/// error.
#[inline]
pub(super) fn ending<'a>(owed: &Owed, outcome: Outcome, message: &'a [u8]) -> (Outcome, &'a [u8]) {
    let has_item = matches!(outcome, Outcome::Hit | Outcome::Stale);
    if has_item && owed.hits == 0 && owed.ticket.origin == Origin::BeforeCas {
        return (Outcome::Error(Fault::Server), NO_UNIQUE);
    }
    (outcome, message)
}

/// More items than the request that they are for has keys.
const TOO_MANY: Malformed = Malformed("more values than keys were asked for");

/// Hands on an item, which counts as a hit of its request. Where it is `doubtful` which request it answers, the time from
/// which on the server had to know newer values is not known, and none is called stale.
#[inline]
pub(super) fn pass_item(
    owed: &mut Owed,
    item: Item<'_>,
    doubtful: bool,
    sink: &mut impl Sink,
) -> Result<bool, Malformed> {
    if owed.hits >= u32::from(owed.ticket.keys) {
        return Err(TOO_MANY);
    }
    owed.hits += hits_of(&owed.ticket, item.cas);
    if doubtful {
        return sink.item(&Ticket { check_state: CheckState::None, ..owed.ticket }, item);
    }
    sink.item(&owed.ticket, item)
}

/// A request that ended without an arrival.
pub(super) fn ended(owed: &Owed, outcome: Outcome, at: Nanos, stamp: Stamp) -> Answer<'_> {
    Answer { ticket: &owed.ticket, outcome, sent: owed.sent, arrived: at, read: at, hits: owed.hits, stamp }
}

/// A request whose reply arrived. The stamp is believed when it lies between sending and reading.
#[inline]
pub(super) fn arrived(owed: &Owed, outcome: Outcome, stamp: Option<Nanos>, read: Nanos) -> Answer<'_> {
    let (arrived, stamp) = match stamp {
        None => (read, Stamp::Missing),
        Some(at) if !is_possible(at, owed.sent, read) => (read, Stamp::Rejected),
        Some(at) => (at.clamp(owed.sent, read.max(owed.sent)), Stamp::Kernel),
    };
    Answer { ticket: &owed.ticket, outcome, sent: owed.sent, arrived, read, hits: owed.hits, stamp }
}

/// Whether a reply can have arrived at `at`.
#[inline]
fn is_possible(at: Nanos, sent: Nanos, read: Nanos) -> bool {
    at.saturating_add(STAMP_SLACK_NS) >= sent && at <= read.saturating_add(STAMP_SLACK_NS)
}
