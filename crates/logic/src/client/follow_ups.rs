//! The requests that answers asked for, in the order in which they are due, with their limit.

use std::collections::VecDeque;

use super::next::FollowUp;
use crate::plan::memory::FOLLOW_UPS_MAX;
use crate::protocol::Verb;
use crate::time::Nanos;

/// Requests that answers asked for.
#[derive(Debug, Default)]
pub(super) struct FollowUps {
    queue: VecDeque<FollowUp>,
    /// When the last answer was read that asked for another request.
    pub(super) seen: Nanos,
    /// Follow-ups of a kind that few clients have; `None` where this client has none.
    rare: Option<Box<RareFollowUps>>,
}

/// Follow-ups of a kind that few clients have.
#[derive(Debug, Default)]
struct RareFollowUps {
    /// Number of requests of each verb that had no place in the queue. They are never asked.
    dropped: [u64; Verb::COUNT],
    /// The stores under way that end pairs: the number of the draw of each pair, and when its read was due.
    pairs: VecDeque<(u64, Nanos)>,
}

impl FollowUps {
    /// Whether no request waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Number of requests that wait.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The request that is due first.
    #[inline]
    pub(super) fn front(&self) -> Option<&FollowUp> {
        self.queue.front()
    }

    /// Removes the request that is due first.
    #[inline]
    pub(super) fn pop_front(&mut self) {
        self.queue.pop_front();
    }

    /// Adds a request behind all that are due before it or with it. When [`FOLLOW_UPS_MAX`] wait, the request is dropped,
    /// and counted as unsent if it is due before `end`.
    pub(super) fn add(&mut self, follow: FollowUp, end: Nanos) {
        if self.queue.len() >= FOLLOW_UPS_MAX {
            if follow.due < end {
                self.rare.get_or_insert_default().dropped[follow.request.verb as usize] += 1;
            }
            return;
        }
        // Nearly always the last place: only a store with a delay is due later than what comes after it.
        let place = self.queue.partition_point(|other| other.due <= follow.due);
        self.queue.insert(place, follow);
    }

    /// Removes the requests that were due before `until`, and hands over how many of each verb they are, with those that were
    /// dropped.
    pub(super) fn take_unsent(&mut self, until: Nanos, mut each: impl FnMut(Verb, u64)) {
        let due = self.queue.partition_point(|follow| follow.due < until);
        self.queue.drain(..due).for_each(|follow| each(follow.request.verb, 1));
        let Some(rare) = &mut self.rare else { return };
        for verb in Verb::ALL {
            match std::mem::take(&mut rare.dropped[verb as usize]) {
                0 => {}
                requests => each(verb, requests),
            }
        }
    }

    /// Remembers that the store of the pair with this draw is asked, whose read was due at `due`.
    pub(super) fn begin_store_of_pair(&mut self, draw: u64, due: Nanos) {
        self.rare.get_or_insert_default().pairs.push_back((draw, due));
    }

    /// Forgets the store of the pair with this draw, which has ended, and returns when the pair's read was due; `None` for a
    /// store that is not under way.
    pub(super) fn end_store_of_pair(&mut self, draw: u64) -> Option<Nanos> {
        let pairs = &mut self.rare.as_mut()?.pairs;
        // Nearly always the first: servers answer in the order in which they are asked.
        let place = pairs.iter().position(|(of, _)| *of == draw)?;
        pairs.remove(place).map(|(_, due)| due)
    }

    /// Forgets all requests of the phase before.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.rare = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::next::NextRequest;
    use crate::time::NEVER;

    fn follow_up(due: Nanos) -> FollowUp {
        FollowUp { due, request: NextRequest::after(0, Verb::Set, due) }
    }

    fn unsent(follow_ups: &mut FollowUps, until: Nanos) -> u64 {
        let mut sum = 0;
        follow_ups.take_unsent(until, |verb, requests| {
            assert_eq!(verb, Verb::Set);
            sum += requests;
        });
        sum
    }

    #[test]
    fn requests_come_in_the_order_in_which_they_are_due() {
        let mut follow_ups = FollowUps::default();
        for due in [3, 1, 2, 1] {
            follow_ups.add(follow_up(due), NEVER);
        }
        for due in [1, 1, 2, 3] {
            assert_eq!(follow_ups.front().map(|follow| follow.due), Some(due));
            follow_ups.pop_front();
        }
        assert!(follow_ups.is_empty());
    }

    /// A phase with parts takes them part by part.
    #[test]
    fn requests_that_were_not_asked_are_taken_once_in_several_steps() {
        let mut follow_ups = FollowUps::default();
        (0..100).for_each(|due| follow_ups.add(follow_up(due), NEVER));
        assert_eq!([10, 60, 60, 90].map(|until| unsent(&mut follow_ups, until)), [10, 50, 0, 30]);
        assert_eq!(follow_ups.len(), 10, "what is due behind the end is not lost");
    }

    #[test]
    fn requests_beyond_the_limit_take_no_memory_and_are_unsent() {
        let mut follow_ups = FollowUps::default();
        let limit = FOLLOW_UPS_MAX as u64;
        for due in 0..3 * limit {
            follow_ups.add(follow_up(due), NEVER);
        }
        assert_eq!(follow_ups.queue.len(), FOLLOW_UPS_MAX);
        assert!(follow_ups.queue.capacity() <= 2 * FOLLOW_UPS_MAX);
        assert_eq!(unsent(&mut follow_ups, NEVER), 3 * limit);
        assert_eq!(unsent(&mut follow_ups, NEVER), 0, "they are counted once");
    }

    #[test]
    fn pairs_end_in_any_order_and_once() {
        let mut follow_ups = FollowUps::default();
        assert_eq!(follow_ups.end_store_of_pair(7), None);
        (7..10).for_each(|draw| follow_ups.begin_store_of_pair(draw, 100 * draw));
        let ended = [8, 7, 8, 9].map(|draw| follow_ups.end_store_of_pair(draw));
        assert_eq!(ended, [Some(800), Some(700), None, Some(900)]);
    }

    #[test]
    fn requests_that_are_due_after_the_end_are_none() {
        let mut follow_ups = FollowUps::default();
        for due in 0..FOLLOW_UPS_MAX as u64 {
            follow_ups.add(follow_up(due), 100);
        }
        follow_ups.add(follow_up(99), 100);
        follow_ups.add(follow_up(100), 100);
        assert_eq!(unsent(&mut follow_ups, 100), 101);
    }
}
