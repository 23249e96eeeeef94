//! The replies of one connection: handed to its client and to the reporter in the order in which they were decoded.

use pummel_logic::client::{Client, Exchange, Lane};
use pummel_logic::connection::inflight::{Origin, Ticket};
use pummel_logic::connection::session::{Answer, Item, Sink};
use pummel_logic::protocol::{Fault, Malformed, Outcome, Verb};
use pummel_logic::time::NEVER;
use pummel_logic::workload::request::{AnswerUse, RequestMaker};

use crate::worker::reporter::WorkerReporter;

/// Fault of an item that its request did not ask for, or not as often.
const UNASKED_VALUE: Malformed = Malformed("a value that was not asked for, or not so often");

/// The counts of replies beside those of every load model. The choice is a type, so that a model without windows has no branch for
/// them where a reply is handled.
pub trait ReplyAccount: Copy + Default {
    /// Whether clients have windows, whose counts and findings are reported with each answer.
    const HAS_WINDOWS: bool;

    /// Counts a whole reply, behind which `left_bytes` bytes of its last chunk follow.
    #[inline]
    fn reply_ended(&mut self, _reporter: &mut WorkerReporter, _left_bytes: usize) {}
}

/// The sink of one connection's session: hands its replies to its client and to the reporter.
pub struct Replies<'a, A> {
    slot: usize,
    lane: Lane,
    client: &'a mut Client,
    maker: &'a mut RequestMaker,
    reporter: &'a mut WorkerReporter,
    /// A request ended, so that the client may have a request to send.
    pub woken: bool,
    /// Requests that were sent and ended.
    pub ended: u32,
    /// The counts beside those of every load model.
    pub account: A,
}

impl<'a, A: ReplyAccount> Replies<'a, A> {
    /// The sink of the connection in `slot`, which is lane `lane` of the client.
    #[inline]
    pub fn new(
        slot: usize,
        lane: Lane,
        client: &'a mut Client,
        maker: &'a mut RequestMaker,
        reporter: &'a mut WorkerReporter,
    ) -> Replies<'a, A> {
        Replies { slot, lane, client, maker, reporter, woken: false, ended: 0, account: A::default() }
    }

    /// A copy for a rare path, so that the original can stay in registers.
    #[inline]
    fn copy(&mut self) -> Replies<'_, A> {
        Replies::new(self.slot, self.lane, self.client, self.maker, self.reporter)
    }

    /// Ends the check of the value that passed by, if there is one, with the check state of the read that asked for it.
    fn end_check(&mut self) {
        let (client, maker, lane) = (&*self.client, &*self.maker, self.lane);
        let is_stale = |check_state, key, version| client.is_stale(lane, check_state, key, version, maker);
        self.reporter.end_check(self.slot, maker, is_stale);
    }

    /// Ends the check of the value that passed by with this answer, if there is one.
    fn end_verified(&mut self, answer: &Answer<'_>) {
        match self.maker.audited() {
            Some(ledger) => self.reporter.end_audited(self.slot, answer, self.maker, ledger),
            None => self.end_check(),
        }
    }

    /// Handles the end of a part of a request, and reports the request when the part was its last.
    #[cold]
    fn end_part(&mut self, part: &Answer<'_>, message: &[u8]) {
        self.reporter.refusals.note_words(self.slot, message);
        self.reporter.part_ended(part);
        self.reporter.note_misses(part);
        if let Some(whole) = self.client.handle_part(self.lane, part, message, self.maker) {
            let (group, number) = (self.client.group(), self.client.number());
            // Which of its connections the message came on was noted with its part.
            self.reporter.answer(None, group, number, &whole.answer(), whole.message());
            self.reporter.shared_ended(&whole.answer());
            self.reporter.note_cache(group, whole.answer().ticket, &whole.cache());
        }
    }
}

impl<A: ReplyAccount> Sink for Replies<'_, A> {
    #[inline]
    fn item(&mut self, ticket: &Ticket, item: Item<'_>) -> Result<bool, Malformed> {
        if !ticket.reads_items() {
            return Ok(false);
        }
        if ticket.answer_use == AnswerUse::Window {
            return Ok(self.client.handle_window_item(&item, self.maker));
        }
        let verify = ticket.answer_use == AnswerUse::Verify;
        if verify {
            self.end_check();
        }
        let key = self.client.handle_item(self.lane, ticket, &item, self.maker).ok_or(UNASKED_VALUE)?;
        if verify {
            self.reporter.begin_check(self.slot, key, ticket.check_state, item.size, self.maker);
        }
        Ok(verify)
    }

    #[inline]
    fn body(&mut self, ticket: &Ticket, bytes: &[u8]) {
        if ticket.answer_use == AnswerUse::Window {
            return self.client.handle_window_body(bytes, self.maker);
        }
        self.reporter.check(self.slot, bytes, self.maker);
    }

    fn absent(&mut self, ticket: &Ticket) {
        if ticket.answer_use == AnswerUse::Window {
            self.client.handle_window_absence();
        }
    }

    fn broken_off(&mut self) {
        self.reporter.drop_check(self.slot);
    }

    fn quiet_error(&mut self, message: &[u8]) {
        self.reporter.quiet_error(self.slot, message);
    }

    fn push(&mut self, name: &[u8]) {
        self.reporter.push(name);
    }

    fn cut_off(&mut self, whole: bool) {
        self.reporter.cut_off(whole);
    }

    #[inline]
    fn reply_ended(&mut self, left_bytes: usize) {
        self.account.reply_ended(self.reporter, left_bytes);
    }

    #[inline(always)]
    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        self.ended += u32::from(answer.sent != NEVER);
        let is_error = matches!(answer.outcome, Outcome::Error(_));
        // Where replies are skimmed there are no words, so that this is one comparison.
        if !message.is_empty() && is_error || answer.ticket.origin.is_partial() {
            return self.end_exchange(&{ *answer }, message);
        }
        self.finish(answer, message);
    }

    fn lost(&mut self, answer: &Answer<'_>) {
        self.ended += u32::from(answer.sent != NEVER);
        self.end_exchange(answer, &[]);
    }
}

impl<A: ReplyAccount> Replies<'_, A> {
    /// Ends an exchange that may not be the end of its request: it is part of one, is sent on by a node of a cluster or sent again, or is
    /// a part of a sequence that goes on.
    #[inline(never)]
    fn end_exchange(&mut self, answer: &Answer<'_>, message: &[u8]) {
        self.woken = true;
        self.maker.note_script(message);
        let exchange = self.client.end_exchange(self.lane, answer, message, self.maker);
        self.reporter.note_redirects(self.maker);
        match exchange {
            Exchange::GoesOn => {
                self.reporter.part_ended(answer);
                if answer.mark != 0 {
                    self.reporter.release_stamp(answer.mark);
                }
            }
            Exchange::Whole => self.finish_any(answer, message),
            Exchange::Ends { ticket, sent, earlier } => {
                self.reporter.part_ended(answer);
                if answer.ticket.origin != Origin::Sequence {
                    self.reporter.hops_ended(sent, answer);
                }
                let (outcome, message) = match &earlier {
                    Some(earlier) => (earlier.0, &earlier.1[..]),
                    None => (answer.outcome, message),
                };
                self.finish_resent(&Answer { ticket: &ticket, sent, outcome, ..*answer }, message);
            }
        }
    }

    /// Ends a request, or a part of one, that was sent more than once. Each of its exchanges was reported by itself.
    pub fn finish_resent(&mut self, answer: &Answer<'_>, message: &[u8]) {
        self.finish_any(answer, message);
        self.reporter.shared_ended(answer);
    }

    /// Ends a request, or a part of one.
    #[inline(never)]
    fn finish_any(&mut self, answer: &Answer<'_>, message: &[u8]) {
        if let Outcome::Error(fault) = answer.outcome
            && self.reporter.keeps_failed_keys()
        {
            let keys = self.client.keys_of(answer.ticket, self.maker);
            self.reporter.note_failed_keys(keys, answer.ticket.verb, fault, message);
        }
        match answer.ticket.origin.is_part() {
            true => {
                if answer.ticket.answer_use == AnswerUse::Verify {
                    self.end_check();
                }
                self.end_part(answer, message);
                self.woken = true;
            }
            false => self.finish(answer, message),
        }
    }

    /// Ends a whole request.
    #[inline(always)]
    fn finish(&mut self, answer: &Answer<'_>, message: &[u8]) {
        let refused;
        let (answer, message) = match unstored(answer.ticket.verb, answer.outcome).filter(|_| A::HAS_WINDOWS)
        {
            Some(words) => {
                refused = Answer { outcome: Outcome::Error(Fault::Server), ..*answer };
                (&refused, words)
            }
            None => (answer, message),
        };
        // The rare paths get copies, so that the values of the frequent path can stay in registers.
        if answer.ticket.answer_use == AnswerUse::Verify {
            self.copy().end_verified(&{ *answer });
        }
        self.reporter.answer(Some(self.slot), self.client.group(), self.client.number(), answer, message);
        if answer.ticket.origin == Origin::PairEnd
            && let Some(due) = self.client.end_pair(answer.ticket)
        {
            self.reporter.pair_ended(due, &{ *answer });
        }
        if self.client.handle_answer(self.lane, answer, self.maker) {
            let counts = self.maker.take_cache_counts();
            self.reporter.note_cache(self.client.group(), answer.ticket, &counts);
        }
        if A::HAS_WINDOWS {
            self.reporter.window(self.slot, self.maker, message);
        }
        self.woken = true;
    }
}

/// The server's word where a set was answered and not stored; `None` where it was stored, or has failed anyway. A set has
/// no condition that could fail, so that such a word is an error, as memaslap has it.
#[inline]
fn unstored(verb: Verb, outcome: Outcome) -> Option<&'static [u8]> {
    match (verb, outcome) {
        (Verb::Set, Outcome::NotStored) => Some(b"NOT_STORED"),
        (Verb::Set, Outcome::Exists) => Some(b"EXISTS"),
        (Verb::Set, Outcome::NotFound) => Some(b"NOT_FOUND"),
        _ => None,
    }
}

/// The count of the bytes of each reply, for the account of clients that come and go.
#[derive(Clone, Copy, Default)]
pub struct ReplyBytes {
    /// Bytes of the chunk that belong to no whole reply so far.
    left_bytes: usize,
    /// Bytes of the reply that came before this chunk.
    before_bytes: u64,
}

impl ReplyBytes {
    /// The count for a chunk of `chunk_bytes` bytes. `before_bytes` bytes of the chunk's first reply came before the chunk.
    pub fn new(chunk_bytes: usize, before_bytes: u64) -> ReplyBytes {
        ReplyBytes { left_bytes: chunk_bytes, before_bytes }
    }

    /// Bytes received so far of the reply that is not whole yet.
    pub fn pending_bytes(&self) -> u64 {
        self.before_bytes + self.left_bytes as u64
    }
}

impl ReplyAccount for ReplyBytes {
    const HAS_WINDOWS: bool = false;

    fn reply_ended(&mut self, reporter: &mut WorkerReporter, left_bytes: usize) {
        reporter.note_reply_bytes(self.before_bytes + (self.left_bytes - left_bytes) as u64);
        (self.left_bytes, self.before_bytes) = (left_bytes, 0);
    }
}
