//! Requests that get several replies in protocols whose replies do not say which request they belong to.
//!
//! A multi-get is one request, and ends exactly once. Where its replies carry no tag, the codec has to know when they
//! begin and end: servers answer in order, so it is enough to number the requests that get a reply, and to remember the
//! numbers of those that get several.

use super::{Outcome, Tag};
use std::collections::VecDeque;

/// What a read has found so far, the weakest first: one answer for many keys is the strongest of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A value.
    Value,
    /// A value, or a place for one, that another client is going to renew.
    Recaching,
    /// A value that was marked as stale.
    Stale,
    /// The right to renew it.
    Win,
}

impl Found {
    /// How a read ends that found this.
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
    /// Its number among the requests that get a reply.
    number: u32,
    /// Replies that are still to come, where their number is known.
    pub left: u32,
    /// Its tag.
    pub tag: Tag,
    /// What was found for it so far.
    pub found: Found,
    /// Whether it has ended already, with an error: what still comes for it is nobody's.
    pub ended: bool,
}

/// The requests of one connection that get several replies. Costs nothing until there is one.
#[derive(Debug, Default)]
pub struct Batches {
    /// Requests that get a reply, so far; the number of the next.
    asked: u32,
    /// How many of them are answered; the number of the oldest that is not.
    answered: u32,
    waiting: Option<Box<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<Batch>,
}

impl Batches {
    /// A request that gets one reply was written.
    #[inline]
    pub fn ask(&mut self) {
        self.asked = self.asked.wrapping_add(1);
    }

    /// A request that gets `left` replies was written.
    pub fn ask_batch(&mut self, tag: Tag, left: u32) {
        let batch = Batch { number: self.asked, left, tag, found: Found::Nothing, ended: false };
        self.waiting.get_or_insert_default().batches.push_back(batch);
        self.ask();
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
