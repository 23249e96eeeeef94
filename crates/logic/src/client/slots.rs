//! How many requests of a client may be outstanding, and since when each slot is free.

use crate::time::Nanos;

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

    /// Number of slots that are free since before `until`.
    pub(super) fn count_free_since_before(&self, until: Nanos) -> u64 {
        let free = self.depth.saturating_sub(self.outstanding) as usize;
        if self.ring.is_empty() {
            return u64::from(free > 0 && self.single < until);
        }
        let (behind, from) = self.ring.split_at(self.taking as usize);
        from.iter().chain(behind).take(free).take_while(|since| **since < until).count() as u64
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
