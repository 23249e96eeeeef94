//! Requests that get several replies in protocols whose replies do not say which request they belong to.
//!
//! A multi-get is one request, and ends exactly once. Where its replies carry no tag, the codec has to know when they
//! begin and end: servers answer in order, so it is enough to number the requests that get a reply, and to remember the
//! numbers of those that get several.

use super::{Fault, Outcome, Tag};
use std::collections::VecDeque;

/// Findings of a read, the weakest first. The outcome of a read of many keys is the strongest finding
/// among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// The read found nothing.
    Nothing,
    /// The read found a value.
    Value,
    /// A value, or a place for one, that another client is going to renew.
    Recaching,
    /// A value that was marked as stale.
    Stale,
    /// The right to renew a value, or to make one.
    Win,
}

impl Found {
    /// The outcome of a read with this finding.
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

/// A request with several replies.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The request's number among those that get a reply.
    number: u32,
    /// Replies that are still to come, where their number is known.
    pub left: u32,
    /// The request's tag.
    pub tag: Tag,
    /// The strongest finding of the request so far.
    pub found: Found,
    /// Whether the request has ended with an error; replies that still come for it are dropped.
    pub ended: bool,
    /// Whether this is no request, but the codec's own question whether everything before it is answered.
    pub is_inquiry: bool,
}

/// Most bytes of an error's words that are kept until it is known which request it was for.
const WORDS_MAX_BYTES: usize = 200;

/// Requests that get no reply but errors, which do not name them.
///
/// A server answers in order, so an error is that of a request without reply which was written since the last answered
/// request, or that of the oldest request which waits. Where both are there, the codec asks whether all that came
/// before is answered. So many requests as are not when the server says yes have failed; the other errors were those of
/// requests without reply.
#[derive(Debug, Default)]
struct Quiet {
    /// Requests that were written in a row, by the number of the next request that gets a reply. As many entries at
    /// most as requests wait, and one.
    runs: VecDeque<(u32, u32)>,
    /// Number of errors whose request is not known yet.
    unclear: u32,
    /// The words of the first of these errors.
    fault: Option<Fault>,
    words: Vec<u8>,
    /// Whether there was a request without reply.
    was_asked: bool,
    /// Whether the codec has to ask.
    inquires: bool,
    /// Errors that are known now and not reported: of requests without reply, and of others.
    failed: (u32, u32),
}

/// The request that an error belongs to which names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The oldest request that waits for a reply.
    Oldest,
    /// A request without reply.
    Quiet,
    /// Either the oldest request that waits or a request without reply.
    Unclear,
}

/// The requests of one connection that get several replies. Costs nothing until there is one.
#[derive(Debug, Default)]
pub struct Batches {
    /// Requests that get a reply, so far; the number of the next.
    asked: u32,
    /// Answered requests, so far; the number of the oldest that is not answered.
    answered: u32,
    waiting: Option<Box<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    quiet: Quiet,
}

impl Batches {
    /// A request that gets one reply was written.
    #[inline]
    pub fn ask(&mut self) {
        self.asked = self.asked.wrapping_add(1);
    }

    /// A request that gets `left` replies was written.
    pub fn ask_batch(&mut self, tag: Tag, left: u32) {
        self.push(tag, left, false);
    }

    fn push(&mut self, tag: Tag, left: u32, is_inquiry: bool) {
        let number = self.asked;
        let batch = Batch { number, left, tag, found: Found::Nothing, ended: false, is_inquiry };
        self.waiting.get_or_insert_default().batches.push_back(batch);
        self.ask();
    }

    /// A request that gets no reply but errors was written.
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

    /// Takes in an error that names no request, and returns the request that it belongs to.
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
            // What stands before it was done before.
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
        // A multi-get has an end mark, so that it ends whether the error was its own or not.
        if batch.is_some() {
            return Blame::Quiet;
        }
        (quiet.unclear, quiet.inquires) = (1, true);
        Blame::Unclear
    }

    /// Keeps the words of an error whose request is not known yet.
    pub fn keep(&mut self, fault: Fault, words: &[u8]) {
        let Some(waiting) = &mut self.waiting else { return };
        let quiet = &mut waiting.quiet;
        if quiet.unclear == 1 {
            quiet.fault = Some(fault);
            quiet.words.clear();
            quiet.words.extend_from_slice(&words[..words.len().min(WORDS_MAX_BYTES)]);
        }
    }

    /// Whether the codec has to ask whether everything before is answered. Returns true once for each question.
    pub fn inquires(&mut self) -> bool {
        let Some(waiting) = &mut self.waiting else { return false };
        let inquires = std::mem::take(&mut waiting.quiet.inquires);
        if inquires {
            self.push(0, 1, true);
        }
        inquires
    }

    /// The oldest batch has its end mark, and everything before it is answered: what waits still has failed. Returns
    /// the batch, and whether there are errors of which it is known now whom they are for; `None` where it cannot end.
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

    /// The next error of those of which it is known now whom they are for: of a request without reply, or, with its
    /// fault, of the oldest request that waits.
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

    /// The words of the first error whose request was not known.
    pub fn failed_words(&self) -> &[u8] {
        self.waiting.as_ref().map_or(&[], |waiting| &waiting.quiet.words)
    }

    /// The batch that a value with this tag belongs to: the oldest request, or one behind requests that may have
    /// failed.
    #[inline]
    pub fn batch_of(&mut self, tag: Tag) -> Option<&mut Batch> {
        let answered = self.answered;
        let Waiting { batches, quiet } = self.waiting.as_deref_mut()?;
        let is_next = |batch: &Batch| batch.number == answered || quiet.unclear > 0;
        batches.front_mut().filter(|batch| batch.tag == tag && !batch.is_inquiry && is_next(batch))
    }

    /// The batch that the next reply belongs to, if the oldest request is one.
    #[inline]
    pub fn current(&mut self) -> Option<&mut Batch> {
        let answered = self.answered;
        self.waiting.as_mut()?.batches.front_mut().filter(|batch| batch.number == answered)
    }

    /// The oldest request has all its replies.
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
    /// Forgets requests that a server has passed, because it has answered a request behind them.
    fn forget_before(&mut self, answered: u32) {
        let is_past = |number: u32| answered.wrapping_sub(number).wrapping_sub(1) < 1 << 31;
        while self.runs.front().is_some_and(|&(number, _)| is_past(number)) {
            self.runs.pop_front();
        }
    }
}
