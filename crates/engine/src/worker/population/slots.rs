//! The slots that churning clients take one after the other, and how many may be taken at one time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pummel_logic::time::{NEVER, Nanos, SECOND};

/// Time after a shortage of descriptors until one client more than there were may come, in nanoseconds, and from there
/// until the next one. A run that asks for too many descriptors then fails about once a second in each worker.
const SHORTAGE_NS: Nanos = SECOND;

/// The slots of a worker's churning clients.
#[derive(Debug)]
pub struct Slots {
    /// Most slots that there may be.
    limit: usize,
    /// Number of slots.
    count: usize,
    /// Slots without a client, with the time since which each is free.
    free: Vec<(u32, Nanos)>,
    /// Slots whose last connection failed: the time before which no client takes the slot, its number, and the time
    /// since which it is free.
    paused: BinaryHeap<Reverse<(Nanos, u32, Nanos)>>,
    /// Number of clients that have a slot.
    alive: usize,
    /// Most clients at one time: the limit, or fewer where the machine had no descriptor for more.
    alive_max: usize,
    /// Time at which `alive_max` grows by one; [`NEVER`] if it has reached the limit.
    grows_at: Nanos,
}

impl Slots {
    /// `count` slots, all free since `since`; more are made when all are taken, up to `limit`.
    pub fn new(limit: usize, count: usize, since: Nanos) -> Slots {
        Slots {
            limit,
            count,
            free: (0..count).rev().map(|slot| (slot as u32, since)).collect(),
            paused: BinaryHeap::new(),
            alive: 0,
            alive_max: limit,
            grows_at: NEVER,
        }
    }

    /// Number of clients that have a slot.
    pub fn alive(&self) -> usize {
        self.alive
    }

    /// From when on a client may take a slot; [`NEVER`] where another client has to depart first.
    pub fn free_at(&self) -> Nanos {
        if self.alive >= self.alive_max {
            return self.grows_at;
        }
        if !self.free.is_empty() || self.count < self.limit {
            return 0;
        }
        self.paused.peek().map_or(NEVER, |Reverse((until, ..))| *until)
    }

    /// Frees the slots whose pause is over at `now`, and allows one client more after a shortage of descriptors.
    pub fn recover(&mut self, now: Nanos) {
        while let Some(&Reverse((_, slot, since))) = self.paused.peek().filter(|pause| pause.0.0 <= now) {
            self.paused.pop();
            self.free.push((slot, since));
        }
        if self.alive >= self.alive_max && self.grows_at <= now {
            self.alive_max += 1;
            self.grows_at =
                if self.alive_max >= self.limit { NEVER } else { now.saturating_add(SHORTAGE_NS) };
        }
    }

    /// Takes a free slot for a client. Returns the slot and since when it was free; `None` where no slot is free, so
    /// that the client takes a new one.
    pub fn take(&mut self) -> Option<(usize, Nanos)> {
        self.alive += 1;
        let free = self.free.pop();
        self.count += usize::from(free.is_none());
        free.map(|(slot, since)| (slot as usize, since))
    }

    /// Frees `slot`, whose client departed at `now`.
    pub fn release(&mut self, slot: usize, now: Nanos) {
        self.alive -= 1;
        self.free.push((slot as u32, now));
    }

    /// Frees `slot`, whose client departed at `now`, for clients that come from `until` on.
    pub fn release_paused(&mut self, slot: usize, now: Nanos, until: Nanos) {
        self.alive -= 1;
        self.paused.push(Reverse((until, slot as u32, now)));
    }

    /// Notes that the machine had no descriptor for a client, which has departed. For a while there are no more clients
    /// than at this time.
    pub fn note_shortage(&mut self, now: Nanos) {
        self.alive_max = self.alive_max.min(self.alive);
        self.grows_at = now.saturating_add(SHORTAGE_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_before_new_ones_are_made_up_to_the_limit() {
        let mut slots = Slots::new(3, 1, 5);
        assert_eq!(slots.take(), Some((0, 5)));
        assert_eq!((slots.free_at(), slots.take()), (0, None), "a second slot is made");
        assert_eq!((slots.free_at(), slots.take()), (0, None), "a third slot is made");
        assert_eq!((slots.free_at(), slots.alive()), (NEVER, 3));
        slots.release(1, 70);
        assert_eq!((slots.free_at(), slots.take()), (0, Some((1, 70))));
    }

    #[test]
    fn a_slot_whose_connection_failed_is_taken_after_its_pause() {
        let mut slots = Slots::new(1, 1, 0);
        slots.take();
        slots.release_paused(0, 100, 150);
        slots.recover(149);
        assert_eq!(slots.free_at(), 150);
        slots.recover(150);
        assert_eq!((slots.free_at(), slots.take()), (0, Some((0, 100))));
    }

    #[test]
    fn after_a_shortage_one_client_more_may_come_each_second() {
        let mut slots = Slots::new(3, 3, 0);
        let taken: Vec<_> = (0..3).filter_map(|_| slots.take()).collect();
        assert_eq!(taken, [(0, 0), (1, 0), (2, 0)]);
        slots.release(2, 10);
        slots.note_shortage(10);
        assert_eq!(slots.free_at(), 10 + SHORTAGE_NS);
        slots.recover(10 + SHORTAGE_NS);
        assert_eq!(slots.free_at(), 0, "the limit is reached again");
        slots.take();
        assert_eq!(slots.free_at(), NEVER);
    }
}
