//! The slots of a client: its limit of outstanding requests, and since when each slot is free.

use crate::time::{NEVER, Nanos};

/// When each slot was freed. Requests take slots in the order in which answers free them, so that a ring of times is
/// enough: answers write at one place of it, and requests read at another.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) depth: u32,
    pub(super) outstanding: u32,
    /// The time of the only slot at a depth of 1, where the ring is empty.
    single: Nanos,
    ring: Vec<Nanos>,
    /// Place in the ring from which the next request reads when its slot was freed.
    taking: u32,
    /// Place in the ring at which the next answer writes when its slot was freed.
    freeing: u32,
}

impl Slots {
    pub(super) fn new(depth: u32, begin: Nanos) -> Slots {
        let mut slots =
            Slots { depth, outstanding: 0, single: begin, ring: Vec::new(), taking: 0, freeing: 0 };
        slots.renew(depth, begin);
        slots
    }

    /// Begins again with `depth` slots, all free since `begin`, in the memory of before.
    pub(super) fn renew(&mut self, depth: u32, begin: Nanos) {
        self.ring.clear();
        if depth > 1 {
            self.ring.resize(depth as usize, begin);
        }
        (self.depth, self.outstanding, self.single, self.taking, self.freeing) = (depth, 0, begin, 0, 0);
    }

    /// Counts the slots that are free since before `until`, each of them once: a phase with parts counts part by part. No
    /// request takes a slot afterwards before the next phase.
    pub(super) fn count_free_since_before(&mut self, until: Nanos) -> u64 {
        let free = self.depth.saturating_sub(self.outstanding) as usize;
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
        self.outstanding < self.depth
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
                }
            }
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
            slots.renew(depth, 0);
            assert_eq!(slots.count_free_since_before(1), u64::from(depth), "the next phase begins anew");
        }
    }
}
