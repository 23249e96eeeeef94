//! The slots of a client: its limit of outstanding requests, and since when each slot is free.

use crate::time::{NEVER, Nanos};

/// When each slot was freed. Requests take slots in the order in which answers free them, so that a ring of times is
/// enough: answers write at one place of it, and requests read at another.
///
/// Slots of a batch are taken together: from the moment at which the batch is closed none is free until all of them are.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) depth: u32,
    pub(super) outstanding: u32,
    /// Requests that may be outstanding: the depth, and 0 while a batch is closed.
    limit: u32,
    batched: bool,
    /// The time of the only slot at a depth of 1, where the ring is empty.
    single: Nanos,
    ring: Box<[Nanos]>,
    /// Place in the ring from which the next request reads when its slot was freed.
    taking: u32,
    /// Place in the ring at which the next answer writes when its slot was freed.
    freeing: u32,
}

impl Slots {
    pub(super) fn new(depth: u32, begin: Nanos) -> Slots {
        let mut slots = Slots {
            depth,
            outstanding: 0,
            limit: depth,
            batched: false,
            single: begin,
            ring: Box::default(),
            taking: 0,
            freeing: 0,
        };
        slots.renew(depth, false, begin);
        slots
    }

    /// Begins again with `depth` slots, all free since `begin`, in the memory of before if these are as many. `batched` slots are taken
    /// together.
    pub(super) fn renew(&mut self, depth: u32, batched: bool, begin: Nanos) {
        let places = if depth > 1 { depth as usize } else { 0 };
        match self.ring.len() == places {
            true => self.ring.fill(begin),
            false => self.ring = vec![begin; places].into_boxed_slice(),
        }
        (self.depth, self.limit, self.outstanding, self.single) = (depth, depth, 0, begin);
        // A batch of one is a single slot.
        (self.batched, self.taking, self.freeing) = (batched && depth > 1, 0, 0);
    }

    /// Begins again with as many slots, all free since `begin`.
    pub(super) fn free_all(&mut self, begin: Nanos) {
        self.renew(self.depth, self.batched, begin);
    }

    /// Counts the slots that are free since before `until`, each of them once: a phase with parts counts part by part. No
    /// request takes a slot afterwards before the next phase.
    pub(super) fn count_free_since_before(&mut self, until: Nanos) -> u64 {
        let free = self.limit.saturating_sub(self.outstanding) as usize;
        let (behind, from) = self.ring.split_at_mut(self.taking as usize);
        let ring = from.iter_mut().chain(behind);
        let one = if self.depth == 1 { Some(&mut self.single) } else { None };
        let mut count = 0;
        for since in one.into_iter().chain(ring).take(free).filter(|since| **since < until) {
            *since = NEVER;
            count += 1;
        }
        count
    }

    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.outstanding < self.limit
    }

    /// The time at which the slot was freed that the next request takes.
    #[inline]
    pub(super) fn since(&self) -> Nanos {
        match self.depth {
            1 => self.single,
            _ => self.ring[self.taking as usize],
        }
    }

    #[inline]
    pub(super) fn take(&mut self) {
        self.outstanding += 1;
        self.taking += 1;
        if self.taking >= self.depth {
            self.taking = 0;
            self.close_batch();
        }
    }

    #[inline]
    pub(super) fn free(&mut self, at: Nanos) {
        self.outstanding -= 1;
        match self.depth {
            1 => self.single = at,
            depth => {
                self.ring[self.freeing as usize] = at;
                self.freeing += 1;
                if self.freeing >= depth {
                    self.freeing = 0;
                    if self.batched {
                        self.open_batch(at);
                    }
                }
            }
        }
    }

    /// Closes the batch that was begun: the slots become free together when all requests of the batch have ended. Where slots are not
    /// batched, and where nothing is outstanding, it does nothing.
    #[inline]
    pub(super) fn close_batch(&mut self) {
        if self.batched && self.outstanding > 0 {
            self.limit = 0;
            // The last request of the batch frees the last place of the ring.
            self.freeing = self.depth - self.outstanding;
        }
    }

    /// Lets all slots be taken again, which are free since `at`.
    #[inline(never)]
    fn open_batch(&mut self, at: Nanos) {
        if self.outstanding == 0 {
            self.ring.fill(at);
            (self.limit, self.taking) = (self.depth, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_slot_is_counted_once_in_the_part_in_which_it_was_freed() {
        for (depth, expected) in [(1, [0, 1, 0]), (3, [0, 1, 1])] {
            let mut slots = Slots::new(depth, 0);
            for _ in 0..depth {
                slots.take();
            }
            // At a depth of 3, one request is outstanding.
            for at in (0..depth.min(2)).map(|freed| 15 + 10 * u64::from(freed)) {
                slots.free(at);
            }
            let counted = [10, 20, 30].map(|until| slots.count_free_since_before(until));
            assert_eq!(counted, expected, "depth {depth}");
            slots.renew(depth, false, 0);
            assert_eq!(slots.count_free_since_before(1), u64::from(depth), "the next phase begins anew");
        }
    }

    #[test]
    fn slots_of_a_batch_are_free_together_when_the_last_of_them_has_ended() {
        let mut slots = Slots::new(1, 0);
        slots.renew(3, true, 5);
        for round in 1..4u64 {
            for taken in 0..3 {
                assert!(
                    slots.is_free() && slots.since() == if round == 1 { 5 } else { 10 * round - 1 },
                    "{taken}"
                );
                slots.take();
            }
            for at in [1, 4, 9] {
                assert!(!slots.is_free(), "two of three answers free nothing");
                assert_eq!(slots.count_free_since_before(NEVER), 0);
                slots.free(10 * round + at);
            }
        }
        slots.take();
        slots.take();
        assert!(slots.is_free(), "a third request is due in time");
        slots.close_batch();
        slots.free(50);
        assert!(!slots.is_free(), "the batch of two is not over");
        slots.free(60);
        assert_eq!((slots.is_free(), slots.since(), slots.outstanding), (true, 60, 0));
        slots.close_batch();
        assert!(slots.is_free(), "nothing was sent");
    }

    #[test]
    fn a_batch_whose_requests_end_before_it_is_closed_opens_when_all_have_ended() {
        let mut slots = Slots::new(1, 0);
        slots.renew(4, true, 0);
        slots.take();
        slots.take();
        slots.free(1);
        slots.take();
        slots.take();
        assert!(!slots.is_free(), "four were sent");
        for at in 2..5 {
            assert!(!slots.is_free());
            slots.free(at);
        }
        assert_eq!((slots.is_free(), slots.since()), (true, 4));
        for _ in 0..4 {
            slots.take();
        }
        assert!(!slots.is_free());
    }
}
