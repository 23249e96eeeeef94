//! One connection without a socket: bytes that wait to be sent, requests that wait for a reply, requests that are late.

use std::io::IoSlice;

use super::answer::{TOO_MANY, UNASKED, UNFIT, arrived, ended, ending, pass_item};
use super::datagrams::{DatagramExchange, Datagrams, next_datagram};
use crate::connection::inflight::{Inflight, Origin, Owed, Ticket};
use crate::connection::outbox::{Outbox, Room, Sources};
use crate::plan::Transport;
use crate::protocol::{Aside, Codec, Expect, Fault, Malformed, Op, Outcome, Refused, Step, Tag, Verb, udp};
use crate::time::{NEVER, Nanos};

pub use super::answer::{Answer, Chunk, Item, Sink, Stamp};

/// The number of waiting bytes above which a connection takes no new request before its socket has taken some. The
/// waiting bytes therefore exceed the limit by at most one request.
pub const OUTBOX_MAX_BYTES: usize = 256 * 1024;

/// The state of one connection.
#[derive(Debug)]
pub struct Session<C> {
    codec: C,
    outbox: Outbox,
    owed: Inflight,
    /// Bytes that were ever taken from the outbox.
    taken: u64,
    /// Tag of the request whose item is being received.
    passing: Option<Tag>,
    /// Whether the item's bytes are wanted.
    wanted: bool,
    /// An error may have ended a reply in its middle, so that an item may answer another request than it seems to.
    doubtful: bool,
    /// A request without reply was sent.
    is_quiet: bool,
    /// The state of a connection over datagrams; `None` on a stream.
    datagrams: Option<Box<Datagrams>>,
}

impl<C: Codec> Session<C> {
    /// A session at the beginning of a connection, with room for `depth` outstanding requests.
    pub fn new(depth: usize) -> Session<C> {
        let (outbox, owed) = (Outbox::with_capacity(64 * depth.min(16)), Inflight::with_capacity(depth));
        Session::made_of(C::new(), outbox, owed, None)
    }

    /// A session over datagrams, with room for `depth` outstanding requests.
    pub fn over_datagrams(depth: usize) -> Session<C> {
        let mut session = Session::new(depth);
        session.begin_connection(C::new(), Transport::Udp);
        session
    }

    /// The session at the beginning of a connection. The arguments are all that one connection can leave to the next: empty
    /// memory, the numbers of datagrams, and what is known of them.
    fn made_of(codec: C, outbox: Outbox, owed: Inflight, datagrams: Option<Box<Datagrams>>) -> Session<C> {
        Session {
            codec,
            outbox,
            owed,
            taken: 0,
            passing: None,
            wanted: false,
            doubtful: false,
            is_quiet: false,
            datagrams,
        }
    }

    /// Whether requests and replies are datagrams, so that a late one harms no other.
    #[inline]
    pub fn is_over_datagrams(&self) -> bool {
        self.datagrams.is_some()
    }

    /// Takes the counters of datagrams, over all connections of this session since they were taken last.
    pub fn take_datagram_counts(&mut self) -> udp::DatagramCounts {
        self.datagrams.as_mut().map_or_else(udp::DatagramCounts::default, |datagrams| datagrams.take_counts())
    }

    /// Gives up every request over datagrams that has taken `timeout` nanoseconds or longer at `at`, and returns their
    /// number. Replies that come later are recognised and dropped.
    pub fn handle_overdue(&mut self, timeout: Nanos, at: Nanos, sink: &mut impl Sink) -> u32 {
        self.datagram_exchange().map_or(0, |mut exchange| exchange.handle_overdue(timeout, at, sink))
    }

    #[inline(never)]
    fn request_datagram(&mut self, op: &Op<'_>, ticket: Ticket) -> Result<usize, Refused> {
        self.datagram_exchange().map_or(Ok(0), |mut exchange| exchange.request(op, ticket))
    }

    #[inline(never)]
    fn handle_datagram_sent(&mut self, count: usize, at: Nanos, sink: &mut impl Sink) -> u32 {
        self.datagram_exchange().map_or(0, |mut exchange| exchange.handle_sent(count, at, sink))
    }

    #[inline(never)]
    fn handle_datagram(&mut self, chunk: Chunk<'_>, sink: &mut impl Sink) -> u32 {
        self.datagram_exchange().map_or(0, |mut exchange| exchange.handle_received(chunk, sink))
    }

    /// The parts of the session that requests and replies over datagrams change; `None` on a stream.
    fn datagram_exchange(&mut self) -> Option<DatagramExchange<'_, C>> {
        let Session { codec, outbox, owed, taken, datagrams, .. } = self;
        let datagrams = datagrams.as_mut()?;
        Some(DatagramExchange { codec, outbox, owed, taken, datagrams })
    }

    /// Replaces the session by one at the beginning of a connection over `transport`, which uses `codec` and the memory of this
    /// one. From one connection over datagrams to the next the numbers of requests go on, and so do the counters. No request
    /// may be outstanding.
    pub fn begin_connection(&mut self, codec: C, transport: Transport) {
        debug_assert!(self.is_idle());
        let (outbox, owed) = (std::mem::take(&mut self.outbox), std::mem::take(&mut self.owed));
        let (datagrams, first) = match (transport, self.datagrams.take()) {
            (Transport::Stream, _) => (None, 0),
            (Transport::Udp, None) => (Some(Box::default()), 0),
            (Transport::Udp, Some(mut datagrams)) => {
                datagrams.begin_connection();
                (Some(datagrams), owed.next_tag())
            }
        };
        *self = Session::made_of(codec, outbox.emptied(), owed.emptied(first), datagrams);
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

    /// Queues a command of no request, whose answer says so ([`Origin::Aside`]). Nothing is queued by protocols without such commands.
    pub fn request_aside(&mut self, aside: Aside<'_>) {
        if self.codec.encode_aside(aside, &mut self.outbox) {
            // The reply to a script is its name, and that to ASKING the word that ends a set.
            let verb = if aside == Aside::Asking { Verb::Set } else { Verb::Command };
            let ticket = Ticket { origin: Origin::Aside, ..Ticket::of(verb) };
            self.owed.push(ticket, self.taken + self.outbox.len() as u64, false);
        }
    }

    /// The number of bytes that wait to be sent.
    pub fn waiting_bytes(&self) -> usize {
        self.outbox.len()
    }

    /// Whether there are bytes to send.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Fills `parts` with the bytes to send next, own bytes and a part of a value from `sources`, and returns the number of
    /// parts as [`Outbox::parts`] does.
    #[inline]
    pub fn poll_send<'a>(
        &'a self,
        sources: Sources<'a>,
        room: &'a mut Room,
        parts: &mut [IoSlice<'a>; 3],
    ) -> usize {
        match self.datagrams {
            None => self.outbox.parts(sources, room, parts),
            Some(_) => next_datagram(&self.owed, &self.outbox).map_or(0, |datagram| {
                parts[0] = IoSlice::new(datagram);
                1
            }),
        }
    }

    /// The number of bytes that [`Session::poll_send`] fills in.
    pub fn offered_bytes(&self) -> usize {
        match self.datagrams {
            None => self.outbox.offered_bytes(),
            Some(_) => next_datagram(&self.owed, &self.outbox).map_or(0, <[u8]>::len),
        }
    }

    /// The bytes to send next where they are one piece of own bytes on a stream, as in nearly all cases; `None`
    /// otherwise.
    #[inline]
    pub fn poll_send_plain(&self) -> Option<&[u8]> {
        if self.datagrams.is_some() { None } else { self.outbox.plain() }
    }

    /// The requests whose first byte was not sent.
    pub fn unsent(&self) -> impl Iterator<Item = &Ticket> {
        self.owed.unsent()
    }

    /// Marks the request that ends with the next send of `bytes` bytes, so that its answer has `mark`. Returns false
    /// where no request does, or no reply comes to it.
    pub fn mark_sent(&mut self, bytes: usize, mark: u16) -> bool {
        match self.datagrams {
            Some(_) => self.owed.mark_next(mark),
            None => bytes == self.outbox.len() && self.owed.mark_last(mark),
        }
    }

    /// Takes in that a system call which began at `at` took `count` bytes of the output. Returns the number of requests
    /// whose first byte was among them.
    #[inline(always)]
    pub fn handle_sent(&mut self, count: usize, at: Nanos, sink: &mut impl Sink) -> u32 {
        if self.datagrams.is_some() {
            return self.handle_datagram_sent(count, at, sink);
        }
        self.outbox.take(count);
        self.taken += count as u64;
        let is_quiet = &mut self.is_quiet;
        self.owed.handle_sent(self.taken, at, |owed| {
            *is_quiet = true;
            sink.answer(&ended(owed, Outcome::Ok, at, Stamp::Nothing), &[]);
        })
    }

    /// Takes in that a system call which began at `at` took all bytes that [`Session::poll_send_plain`] returned, and
    /// returns the number of requests whose first byte was among them. `None` where a request among them asks for no
    /// reply; nothing is taken in then, and [`Session::handle_sent`] is to be called.
    #[inline(always)]
    pub fn handle_all_sent(&mut self, at: Nanos) -> Option<u32> {
        let begun = self.owed.handle_all_sent(at)?;
        self.taken += self.outbox.take_own_bytes() as u64;
        Some(begun)
    }

    /// Takes in that the socket accepts bytes again at `at`, after it was full.
    pub fn handle_writable(&mut self, at: Nanos) {
        self.owed.handle_writable(at);
    }

    /// Decodes bytes that arrived, hands items and answers to `sink`, and returns the number of requests that were
    /// answered.
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
                sink.reply_ended(input.len());
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

    /// Decodes step by step up to the end of a reply. Returns false where more bytes are needed.
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
                Step::Push { name } => sink.push(name),
                // Where no request waits for a reply, an error can only be about a request without reply.
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
                Step::Absent => {
                    let owed = self.owed.find(None).ok_or(UNASKED)?;
                    if !owed.ticket.verb.reads() {
                        return Err(UNFIT);
                    }
                    sink.absent(&owed.ticket);
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
                    sink.reply_ended(input.len());
                    sink.answer(&arrived(owed, outcome, chunk.stamp, chunk.read), message);
                    self.owed.finish(tag);
                    self.inquire();
                    return Ok(true);
                }
            }
        }
    }

    /// Lets the codec write a question of its own, and accounts for the bytes.
    #[inline]
    fn inquire(&mut self) {
        let before = self.outbox.len();
        self.codec.inquire(&mut self.outbox);
        let bytes = (self.outbox.len() - before) as u64;
        if bytes > 0 {
            self.owed.skip_bytes(bytes);
        }
    }

    /// Ends every outstanding request with `fault`, since the connection is closed. The session is used again when another
    /// connection begins.
    pub fn handle_closed(&mut self, fault: Fault, at: Nanos, sink: &mut impl Sink) {
        self.end_all(at, |_| fault, sink);
    }

    /// Ends every outstanding request, since the oldest one took longer than `timeout` nanoseconds: late requests end
    /// with [`Fault::Timeout`], the others with [`Fault::Abandoned`]. Replies are matched by order, so nothing can be read
    /// from the connection any more. The session is used again when another connection begins.
    pub fn handle_timeout(&mut self, timeout: Nanos, at: Nanos, sink: &mut impl Sink) {
        let late = |owed: &Owed| owed.since().saturating_add(timeout) <= at;
        self.end_all(at, |owed| if late(owed) { Fault::Timeout } else { Fault::Abandoned }, sink);
    }

    fn end_all(&mut self, at: Nanos, fault: impl Fn(&Owed) -> Fault, sink: &mut impl Sink) {
        sink.broken_off();
        for owed in self.owed.drain() {
            sink.cut_off(owed.end <= self.taken);
            sink.lost(&ended(&owed, Outcome::Error(fault(&owed)), at, Stamp::Nothing));
        }
    }

    /// The time in nanoseconds at which the oldest unanswered request has taken `timeout`; [`NEVER`] if no request is
    /// unanswered.
    pub fn deadline(&self, timeout: Nanos) -> Nanos {
        match self.owed.oldest() {
            NEVER => NEVER,
            since => since.saturating_add(timeout),
        }
    }
}
