//! Numbering of requests on a connection, for codecs whose replies do not say which request they belong to.
//!
//! Servers answer in order. The codec therefore numbers the requests that get a reply, and remembers the numbers of
//! those that get several replies (multi-gets), so that each ends exactly once. Requests without reply between
//! them are counted too, because a server answers those only with errors, and these errors name no request.

use super::{Fault, Outcome, Tag};
use std::collections::VecDeque;

/// Result of a read of one key, the weakest first. A read of many keys has the strongest result of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// The key was not found.
    Nothing,
    /// A value was found.
    Value,
    /// A value was found, or an empty item in its place, that another client was asked to renew.
    Recaching,
    /// A value was found that is marked as stale.
    Stale,
    /// The client won the right to renew the value, or to create it.
    Win,
}

impl Found {
    /// The outcome of a request with this result.
    #[inline]
    pub fn outcome(self) -> Outcome {
        match self {
            Found::Nothing => Outcome::Miss,
            Found::Value => Outcome::Hit,
            Found::Recaching => Outcome::Recaching,
            Found::Stale => Outcome::Stale,
            Found::Win => Outcome::Win,
        }
    }
}

/// A request with several replies, or a question of the codec itself.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The number of the request among those that get a reply.
    number: u32,
    /// Number of replies that are still to come. A codec that recognises the last reply by an end mark does not use
    /// it.
    pub left: u32,
    /// The request's tag.
    pub tag: Tag,
    /// The strongest result of the replies so far.
    pub found: Found,
    /// Whether the request has ended with an error; later replies to it are dropped.
    pub ended: bool,
    /// Whether this is no request of the caller but a question of the codec: its answer shows that everything before
    /// it was answered.
    pub is_inquiry: bool,
}

/// Most bytes of an error message that are kept until the failed request is known.
const WORDS_MAX_BYTES: usize = 200;

/// Requests without reply (noreply) and the errors that may belong to them.
///
/// A server answers in order, so an error that names no request belongs either to the oldest request that waits for a
/// reply, or to a request without reply that was written before it. If both are possible, the codec writes a
/// question that the server always answers. When the answer comes, each request that still waits before it has
/// failed; the other errors belong to requests without reply.
#[derive(Debug, Default)]
struct Quiet {
    /// Pairs of the number of the next request with a reply and the count of requests without reply that were written
    /// directly before it. At most one entry more than there are waiting requests.
    runs: VecDeque<(u32, u32)>,
    /// Number of errors whose request is not known yet.
    unclear: u32,
    /// Class of the first of these errors.
    fault: Option<Fault>,
    words: Vec<u8>,
    /// Whether the connection has ever had a request without reply.
    was_asked: bool,
    /// Whether the codec still has to write its question.
    inquires: bool,
    /// Errors that are assigned but not handed over yet: the count for requests without reply, then the count for
    /// requests with one.
    failed: (u32, u32),
}

/// The kind of request that an error without a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The oldest request that waits for a reply.
    Oldest,
    /// A request without reply.
    Quiet,
    /// The oldest request that waits or a request without reply; the answer to a question decides.
    Unclear,
}

/// The numbers of the requests of one connection. Memory is allocated with the first multi-get or request without
/// reply.
#[derive(Debug, Default)]
pub struct Batches {
    /// Number of requests that get a reply so far, which is also the number of the next one.
    asked: u32,
    /// Number of answered requests so far, which is also the number of the oldest unanswered one.
    answered: u32,
    waiting: Option<Box<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    quiet: Quiet,
}

impl Batches {
    /// Notes that a request with one reply was written.
    #[inline]
    pub fn ask(&mut self) {
        self.asked = self.asked.wrapping_add(1);
    }

    /// Notes that a request with `left` replies was written.
    pub fn ask_batch(&mut self, tag: Tag, left: u32) {
        self.push(tag, left, false);
    }

    fn push(&mut self, tag: Tag, left: u32, is_inquiry: bool) {
        let number = self.asked;
        let batch = Batch { number, left, tag, found: Found::Nothing, ended: false, is_inquiry };
        self.waiting.get_or_insert_default().batches.push_back(batch);
        self.ask();
    }

    /// Notes that a request was written whose only possible reply is an error.
    pub fn ask_quietly(&mut self) {
        let (asked, answered) = (self.asked, self.answered);
        let quiet = &mut self.waiting.get_or_insert_default().quiet;
        quiet.was_asked = true;
        quiet.forget_before(answered);
        match quiet.runs.back_mut() {
            Some((number, count)) if *number == asked => *count = count.saturating_add(1),
            _ => quiet.runs.push_back((asked, 1)),
        }
    }

    /// Takes in an error that names no request, and returns the kind of request that it belongs to.
    pub fn blame(&mut self) -> Blame {
        let (asked, answered) = (self.asked, self.answered);
        let Some(waiting) = &mut self.waiting else { return Blame::Oldest };
        let (batches, quiet) = (&waiting.batches, &mut waiting.quiet);
        if asked == answered && quiet.was_asked {
            return Blame::Quiet;
        }
        let batch = batches.front().filter(|batch| batch.number == answered);
        if batch.is_none() && quiet.unclear > 0 {
            quiet.unclear = quiet.unclear.saturating_add(1);
            return Blame::Unclear;
        }
        match batch {
            // The server has begun to answer this batch, so all requests before it are done.
            Some(batch) if batch.found != Found::Nothing || batch.ended => return Blame::Oldest,
            Some(batch) if batch.is_inquiry => return Blame::Quiet,
            _ => {}
        }
        quiet.forget_before(answered);
        let Some((_, count)) =
            quiet.runs.front_mut().filter(|(number, count)| *number == answered && *count > 0)
        else {
            return Blame::Oldest;
        };
        *count -= 1;
        // The end mark of a multi-get comes in any case, and ends it also if this error was its own.
        if batch.is_some() {
            return Blame::Quiet;
        }
        (quiet.unclear, quiet.inquires) = (1, true);
        Blame::Unclear
    }

    /// Keeps the class and the message of an error whose request is not known yet. Only the first such error is kept.
    pub fn keep(&mut self, fault: Fault, words: &[u8]) {
        let Some(waiting) = &mut self.waiting else { return };
        let quiet = &mut waiting.quiet;
        if quiet.unclear == 1 {
            quiet.fault = Some(fault);
            quiet.words.clear();
            quiet.words.extend_from_slice(&words[..words.len().min(WORDS_MAX_BYTES)]);
        }
    }

    /// Whether the codec has to write the question that is answered when everything before it is. Returns true once
    /// for each question.
    pub fn inquires(&mut self) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let inquires = std::mem::take(&mut waiting.quiet.inquires);
        if inquires {
            self.push(0, 1, true);
        }
        inquires
    }

    /// Ends the oldest batch, whose end mark has come: requests that still wait before it have failed. Returns the
    /// batch, and whether errors were assigned that [`Batches::next_failed`] hands over; `None` if more requests wait
    /// than errors came, or if there is no batch.
    pub fn end_batch(&mut self) -> Option<(Batch, bool)> {
        let waiting = self.waiting.as_mut()?;
        let batch = *waiting.batches.front()?;
        let missing = batch.number.wrapping_sub(self.answered);
        let unclear = waiting.quiet.unclear;
        if missing > unclear {
            return None;
        }
        waiting.batches.pop_front();
        waiting.quiet.unclear = 0;
        waiting.quiet.failed = (unclear - missing, missing);
        self.answered = batch.number.wrapping_add(1);
        Some((batch, unclear > 0))
    }

    /// Takes the next assigned error: `Some(Some(fault))` for the oldest request that waits, `Some(None)` for a
    /// request without reply, and `None` if there is no more.
    pub fn next_failed(&mut self) -> Option<Option<Fault>> {
        let quiet = &mut self.waiting.as_mut()?.quiet;
        let (without_reply, others) = &mut quiet.failed;
        if *others > 0 {
            *others -= 1;
            return Some(Some(quiet.fault.unwrap_or(Fault::Server)));
        }
        *without_reply = without_reply.checked_sub(1)?;
        Some(None)
    }

    /// The message of the first error whose request was not known.
    pub fn failed_words(&self) -> &[u8] {
        self.waiting.as_ref().map_or(&[], |waiting| &waiting.quiet.words)
    }

    /// The batch that a value with this tag belongs to: the oldest batch, if no request waits before it or if those
    /// that wait may have failed.
    #[inline]
    pub fn batch_of(&mut self, tag: Tag) -> Option<&mut Batch> {
        let answered = self.answered;
        let Waiting { batches, quiet } = self.waiting.as_deref_mut()?;
        let is_next = |batch: &Batch| batch.number == answered || quiet.unclear > 0;
        batches.front_mut().filter(|batch| batch.tag == tag && !batch.is_inquiry && is_next(batch))
    }

    /// The batch that the next reply belongs to; `None` if the oldest request is not a batch.
    #[inline]
    pub fn current(&mut self) -> Option<&mut Batch> {
        let answered = self.answered;
        self.waiting.as_mut()?.batches.front_mut().filter(|batch| batch.number == answered)
    }

    /// Notes that the oldest request has all its replies.
    #[inline]
    pub fn answer(&mut self) {
        if self.current().is_some()
            && let Some(waiting) = &mut self.waiting
        {
            waiting.batches.pop_front();
        }
        self.answered = self.answered.wrapping_add(1);
    }
}

impl Quiet {
    /// Drops the entries of requests that the server has passed, since it has answered a later request.
    fn forget_before(&mut self, answered: u32) {
        let is_past = |number: u32| answered.wrapping_sub(number).wrapping_sub(1) < 1 << 31;
        while self.runs.front().is_some_and(|&(number, _)| is_past(number)) {
            self.runs.pop_front();
        }
    }
}
