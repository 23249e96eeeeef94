//! The slices of a phase that not all workers have given their part of.

use std::collections::BTreeMap;

use pummel_logic::time::Nanos;

use crate::interval::{Interval, add_part, take_whole};

/// The slices of the phase under way, from the first part that a worker gives of one to when all have given theirs.
#[derive(Debug)]
pub struct OpenSlices {
    open: BTreeMap<u64, Box<Interval>>,
    /// The slice that each worker writes to.
    next: Vec<u64>,
}

impl OpenSlices {
    /// No slices of `workers` workers.
    pub fn new(workers: usize) -> OpenSlices {
        OpenSlices { open: BTreeMap::new(), next: vec![0; workers] }
    }

    /// Adds `worker`'s part of a slice; it writes to slice number `next` then. Memory that is free again is handed to `spare`.
    pub fn add(&mut self, part: Box<Interval>, worker: usize, next: u64, spare: impl FnMut(Box<Interval>)) {
        self.next[worker] = next;
        add_part(&mut self.open, part, spare);
    }

    /// Notes that a worker gives no more slices.
    pub fn end_worker(&mut self, worker: usize) {
        self.next[worker] = u64::MAX;
    }

    /// The number before which all workers have given their parts.
    pub fn whole_before(&self) -> u64 {
        self.next.iter().min().copied().unwrap_or(0)
    }

    /// Takes the first slice before number `end` if it is whole, as [`take_whole`] does.
    pub fn take(
        &mut self,
        end: u64,
        length_ns: Nanos,
        spare: impl FnMut(Box<Interval>),
    ) -> Option<Box<Interval>> {
        take_whole(&mut self.open, end, length_ns, spare)
    }

    /// Begins the next phase, whose slices are numbered anew.
    pub fn begin_phase(&mut self) {
        self.next.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_whole_before_the_one_that_the_slowest_worker_writes_to() {
        let mut slices = OpenSlices::new(2);
        let part = |index: u64| {
            let mut part = Interval::new([[]]);
            part.restart(index, index * 10);
            part.end_ns = (index + 1) * 10;
            Box::new(part)
        };
        // Worker and number of its part; the number before which slices are whole, and those that are taken then.
        let table: [(usize, u64, u64, &[u64]); 5] =
            [(0, 0, 0, &[]), (0, 1, 0, &[]), (1, 0, 1, &[0]), (0, 2, 1, &[]), (1, 1, 2, &[1])];
        for (worker, index, before, taken) in table {
            slices.add(part(index), worker, index + 1, drop);
            let end = slices.whole_before();
            assert_eq!(end, before, "worker {worker}, part {index}");
            let whole: Vec<u64> =
                std::iter::from_fn(|| slices.take(end, 10, drop).map(|slice| slice.index)).collect();
            assert_eq!(whole, taken, "worker {worker}, part {index}");
        }
        slices.end_worker(1);
        assert_eq!(slices.whole_before(), 3, "the other worker is at slice 3");
        slices.begin_phase();
        assert_eq!(slices.whole_before(), 0);
    }
}
