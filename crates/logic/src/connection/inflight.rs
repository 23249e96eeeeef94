//! The requests of one connection that are not answered yet, found by order or by tag.

use std::collections::VecDeque;

use crate::protocol::{Tag, Verb};
use crate::time::{NEVER, Nanos};
pub use crate::workload::request::{AnswerUse, CheckState};

/// The facts of a request that pummel keeps beside its bytes. The ticket is kept while the request is unanswered and
/// handed back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The time in nanoseconds at which the arrival process asked for the request.
    pub due: Nanos,
    /// The time in nanoseconds from which on only the generator delayed the request.
    pub ready: Nanos,
    /// Number of the draw that made the request, counted within its client and phase.
    pub index: u64,
    /// Index of the request's first key.
    pub key: u64,
    /// The facts of the request that a check of the answer needs.
    pub check_state: CheckState,
    /// The verb of the request.
    pub verb: Verb,
    /// Why the request was made.
    pub origin: Origin,
    /// The use of the answer, beside measuring it.
    pub answer_use: AnswerUse,
    /// Number of keys.
    pub keys: u16,
    /// Place of the request, where lanes share it or its lane may change: the lane, or the slot in a cluster.
    pub place: u16,
}

impl Ticket {
    /// A ticket of a request for one key whose answer asks for nothing and is not looked at; times and numbers are 0.
    #[inline(always)]
    pub fn of(verb: Verb) -> Ticket {
        Ticket {
            due: 0,
            ready: 0,
            index: 0,
            key: 0,
            check_state: CheckState::None,
            verb,
            origin: Origin::Arrival,
            answer_use: AnswerUse::None,
            keys: 1,
            place: 0,
        }
    }

    /// Whether the client looks at the items of the answer one by one.
    #[inline]
    pub fn reads_items(&self) -> bool {
        self.answer_use != AnswerUse::None || self.origin == Origin::BeforeCas
    }
}

/// Why a request was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Origin {
    /// The arrival of the request was due.
    Arrival,
    /// The answer to another request made this one necessary.
    FollowUp,
    /// The request stores a key that a read missed.
    Fill,
    /// An event of the plan asks for the request.
    Event,
    /// The request stores a key after a read of it, and both are a pair.
    PairEnd,
    /// The request reads the CAS unique for a cas that follows.
    BeforeCas,
    /// The request reads a key that the client stores afterwards.
    BeforeModify,
    /// The request of a trace was due; the client keeps its key until it is answered.
    Row,
    /// The arrival of a read was due whose answer is counted, also where it finds what it asked for.
    Counted,
    /// The arrival of a request was due that several lanes share; this request is the part of one lane.
    Part,
    /// The part of a request that several places share, which is sent again since a node of a cluster did not answer it.
    ResentPart,
    /// A node of a cluster did not answer the request, which is sent again; the client knows why it was asked.
    Resent,
    /// A command of no request: `ASKING` of a cluster, which goes before a request that is sent again, or the loading of a script.
    Aside,
    /// The request is a part of a sequence of commands that waits for replies before it goes on.
    Sequence,
}

impl Origin {
    /// Whether such a request, if it finds its key, leaves the client nothing to do.
    #[inline]
    pub fn asks_nothing_more(self) -> bool {
        (self as u8) < Origin::BeforeCas as u8
    }

    /// Whether such a request was drawn for its own sake, and not because of another one.
    #[inline]
    pub fn is_drawn(self) -> bool {
        matches!(self, Origin::Arrival | Origin::BeforeCas | Origin::BeforeModify | Origin::Counted)
    }

    /// Whether such a request is the part of one that several places share.
    #[inline]
    pub fn is_part(self) -> bool {
        matches!(self, Origin::Part | Origin::ResentPart)
    }

    /// Whether such a request is no whole request of its client: a part of one, or one that is sent again.
    #[inline]
    pub fn is_partial(self) -> bool {
        self as u8 >= Origin::Part as u8
    }
}

/// An unanswered request.
#[derive(Clone, Copy, Debug)]
pub struct Owed {
    /// The facts of the request that its answer carries back.
    pub ticket: Ticket,
    /// The clock before the system call that took the request's first byte, in nanoseconds; [`NEVER`] until then.
    pub sent: Nanos,
    /// Position in the connection's stream behind the request's last byte.
    pub end: u64,
    /// Number of items that came for the request.
    pub hits: u32,
    state: State,
    /// The number under which the worker keeps the request's transmit stamp; 0 where it is not stamped.
    pub mark: u16,
}

impl Owed {
    /// The time in nanoseconds since which the request waits for the server: when it was sent, or else when it was
    /// ready.
    #[inline]
    pub fn since(&self) -> Nanos {
        if self.sent == NEVER { self.ticket.ready } else { self.sent }
    }

    /// Whether the request's first byte was sent.
    #[inline]
    pub fn was_sent(&self) -> bool {
        self.sent != NEVER
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Silent,
    Finished,
}

fn mark_one(owed: Option<&mut Owed>, mark: u16) -> bool {
    let fit = owed.filter(|owed| owed.state == State::Waiting && !owed.ticket.origin.is_partial());
    fit.map(|owed| owed.mark = mark).is_some()
}

/// A ring of unanswered requests. One numbering serves both kinds of protocol: replies in order answer the oldest,
/// replies with a tag answer the request whose number has these low bits.
#[derive(Debug, Default)]
pub struct Inflight {
    ring: VecDeque<Owed>,
    /// Number of the request at the front of the ring.
    front: Tag,
    /// Number of requests at the front of the ring whose first byte was sent.
    sent: u32,
    /// Position in the connection's stream of the first byte of the request at the front.
    start: u64,
    /// Number of requests in the ring that ask for no reply and are not sent whole.
    silent: u32,
}

impl Inflight {
    /// An empty ring with room for `depth` requests.
    pub fn with_capacity(depth: usize) -> Inflight {
        Inflight { ring: VecDeque::with_capacity(depth), ..Inflight::default() }
    }

    /// An empty ring at the beginning of a connection, made of the memory of this one, whose next request gets the tag `first`.
    pub fn emptied(mut self, first: Tag) -> Inflight {
        self.ring.clear();
        Inflight { ring: self.ring, front: first, ..Inflight::default() }
    }

    /// Whether nothing is owed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The tag that the next request gets.
    #[inline]
    pub fn next_tag(&self) -> Tag {
        self.front.wrapping_add(self.ring.len() as u32)
    }

    /// The tag of the request at the front of the ring, or of the next one where it is empty.
    #[inline]
    pub fn first_tag(&self) -> Tag {
        self.front
    }

    /// Adds a request whose bytes end at the position `end`; `silent` says that no reply will come.
    #[inline]
    pub fn push(&mut self, ticket: Ticket, end: u64, silent: bool) {
        let state = if silent { State::Silent } else { State::Waiting };
        self.silent += u32::from(silent);
        self.ring.push_back(Owed { ticket, sent: NEVER, end, hits: 0, state, mark: 0 });
    }

    /// The request that a reply belongs to: the one with this tag, or the oldest that waits.
    #[inline]
    pub fn find(&mut self, tag: Option<Tag>) -> Option<&mut Owed> {
        let place = match tag {
            Some(tag) => tag.wrapping_sub(self.front) as usize,
            None => 0,
        };
        self.ring.get_mut(place).filter(|owed| owed.state == State::Waiting && owed.sent != NEVER)
    }

    /// Removes the request that [`Inflight::find`] finds, since it is answered.
    #[inline]
    pub fn finish(&mut self, tag: Option<Tag>) {
        if let Some(owed) = self.find(tag) {
            owed.state = State::Finished;
            self.shed();
        }
    }

    /// The oldest request, if it was sent and waits for a reply.
    #[inline]
    pub fn first(&mut self) -> Option<&mut Owed> {
        self.ring.front_mut().filter(|owed| owed.state == State::Waiting && owed.sent != NEVER)
    }

    /// Removes the request that [`Inflight::first`] finds, since it is answered.
    #[inline]
    pub fn finish_first(&mut self) {
        let Some(owed) = self.ring.pop_front() else { return };
        self.pass(owed.end);
        if self.ring.front().is_some_and(|owed| owed.state == State::Finished) {
            self.shed();
        }
    }

    /// Marks requests as sent at `at` whose first byte lies before the position `taken`, and hands to `done` those that
    /// ask for no reply and whose last byte lies before it too. Returns how many requests were marked.
    #[inline]
    pub fn handle_sent(&mut self, taken: u64, at: Nanos, done: impl FnMut(&Owed)) -> u32 {
        let is_all = self.ring.back().is_some_and(|owed| owed.end <= taken);
        let all_marked = if is_all { self.handle_all_sent(at) } else { None };
        match all_marked {
            Some(marked) => marked,
            None => self.handle_sent_partly(taken, at, done),
        }
    }

    /// Marks all requests as sent at `at` that are not, since all bytes of the connection were sent, and returns how many
    /// were marked. `None` where a request asks for no reply; nothing is marked then.
    #[inline]
    pub fn handle_all_sent(&mut self, at: Nanos) -> Option<u32> {
        if self.silent > 0 {
            return None;
        }
        let before = self.sent;
        while let Some(owed) = self.ring.get_mut(self.sent as usize) {
            owed.sent = at;
            self.sent += 1;
        }
        Some(self.sent - before)
    }

    /// Does the work of [`Inflight::handle_sent`] where not all bytes were taken, or where a request asks for no reply.
    #[inline(never)]
    fn handle_sent_partly(&mut self, taken: u64, at: Nanos, mut done: impl FnMut(&Owed)) -> u32 {
        // Only the last of those sent before can have bytes that were not taken yet.
        let mut place = (self.sent as usize).saturating_sub(1);
        let mut start = if place == 0 { self.start } else { self.ring[place - 1].end };
        let (mut finished, mut marked) = (false, 0);
        while let Some(owed) = self.ring.get_mut(place) {
            if owed.sent == NEVER {
                if start >= taken {
                    break;
                }
                owed.sent = at;
                self.sent += 1;
                marked += 1;
            }
            start = owed.end;
            if owed.state == State::Silent && owed.end <= taken {
                owed.state = State::Finished;
                self.silent -= 1;
                finished = true;
                done(owed);
            }
            place += 1;
        }
        if finished {
            self.shed();
        }
        marked
    }

    /// The requests whose first byte was not sent.
    pub fn unsent(&self) -> impl Iterator<Item = &Ticket> {
        self.ring.iter().skip(self.sent as usize).map(|owed| &owed.ticket)
    }

    /// Marks the newest request. Returns whether a reply to it will come, and is for it alone; a request is only marked
    /// then.
    pub fn mark_last(&mut self, mark: u16) -> bool {
        mark_one(self.ring.back_mut(), mark)
    }

    /// Marks the next request to be sent, for requests that are sent one by one, as [`Inflight::mark_last`] does.
    pub fn mark_next(&mut self, mark: u16) -> bool {
        mark_one(self.ring.get_mut(self.sent as usize), mark)
    }

    /// Takes in that the socket accepts bytes again at `at`: requests that are not sent yet were not ready before.
    pub fn handle_writable(&mut self, at: Nanos) {
        for owed in self.ring.iter_mut().skip(self.sent as usize) {
            owed.ticket.ready = owed.ticket.ready.max(at);
        }
    }

    /// Takes in that `bytes` bytes that belong to no request follow those of the newest request.
    pub fn skip_bytes(&mut self, bytes: u64) {
        match self.ring.back_mut() {
            Some(last) => last.end += bytes,
            None => self.start += bytes,
        }
    }

    /// Skips the tag that the next request would get.
    pub fn skip(&mut self) {
        let Some(last) = self.ring.back() else {
            self.front = self.front.wrapping_add(1);
            return;
        };
        // The placeholder has no bytes, has ended already and was sent with the request before it. It is never at the
        // front.
        let placeholder = Owed { state: State::Finished, hits: 0, mark: 0, ..*last };
        self.sent += u32::from(placeholder.sent != NEVER);
        self.ring.push_back(placeholder);
    }

    /// The tag whose low 16 bits are `low`. The tag is unique where fewer than 2^16 requests are in the ring, as is the
    /// case over datagrams.
    #[inline]
    pub fn tag_of(&self, low: u16) -> Tag {
        self.front.wrapping_add(u32::from(low.wrapping_sub(self.front as u16)))
    }

    /// The length in bytes of the next request to be sent, and the number of requests in the ring before it; for
    /// requests that are sent one by one.
    #[inline]
    pub fn next_unsent(&self) -> Option<(usize, usize)> {
        let place = self.sent as usize;
        let owed = self.ring.get(place)?;
        Some(((owed.end - self.start_of(place)) as usize, place))
    }

    fn start_of(&self, place: usize) -> u64 {
        if place == 0 { self.start } else { self.ring[place - 1].end }
    }

    /// Takes in that the next request was sent whole at `at`. Hands it to `done` if no reply will come, and returns the
    /// number of bytes of requests behind it that are not to be sent any more.
    pub fn handle_one_sent(&mut self, at: Nanos, done: impl FnOnce(&Owed)) -> u64 {
        let owed = &mut self.ring[self.sent as usize];
        owed.sent = at;
        self.sent += 1;
        if owed.state == State::Silent {
            owed.state = State::Finished;
            done(owed);
        }
        self.pass_over(at)
    }

    /// Ends every request that has waited since `since` or longer, and hands each to `done` with its tag. Returns the
    /// number of bytes of requests that are not to be sent any more.
    pub fn abandon(&mut self, since: Nanos, at: Nanos, mut done: impl FnMut(Tag, &Owed)) -> u64 {
        for (place, owed) in self.ring.iter_mut().enumerate() {
            // Requests are sent in the order of the ring.
            if owed.sent != NEVER && owed.sent > since {
                break;
            }
            if owed.state != State::Finished && owed.since() <= since {
                owed.state = State::Finished;
                done(self.front.wrapping_add(place as u32), owed);
            }
        }
        self.pass_over(at)
    }

    /// Counts requests as sent that come next and ended before they were sent. Returns their length in bytes.
    fn pass_over(&mut self, at: Nanos) -> u64 {
        let from = self.sent as usize;
        let mut place = from;
        while let Some(owed) = self.ring.get_mut(place).filter(|owed| owed.state == State::Finished) {
            owed.sent = at;
            place += 1;
        }
        let bytes = self.start_of(place) - self.start_of(from);
        self.sent = place as u32;
        self.shed();
        bytes
    }

    /// The time in nanoseconds since which the oldest request waits; [`NEVER`] if none does.
    #[inline]
    pub fn oldest(&self) -> Nanos {
        self.ring.front().map_or(NEVER, Owed::since)
    }

    /// Removes all requests at the end of a connection, and returns those that have not ended.
    pub fn drain(&mut self) -> impl Iterator<Item = Owed> + '_ {
        (self.front, self.sent, self.start, self.silent) = (self.next_tag(), 0, 0, 0);
        self.ring.drain(..).filter(|owed| owed.state != State::Finished)
    }

    #[inline(never)]
    fn shed(&mut self) {
        while let Some(owed) = self.ring.front().filter(|owed| owed.state == State::Finished) {
            let end = owed.end;
            self.ring.pop_front();
            self.pass(end);
        }
    }

    /// Takes in that the request at the front, which ended at the position `end`, was removed.
    #[inline]
    fn pass(&mut self, end: u64) {
        self.start = end;
        self.front = self.front.wrapping_add(1);
        self.sent -= 1;
    }
}
