//! The LRU stack: the order of objects by their last requests, and for each object the number and bytes of those
//! requested after it (Mattson et al., 1970).
//!
//! The stack is a binary indexed tree over moments (Bennett and Kruskal, 1975; Fenwick, 1994). Each object is at the
//! moment of its last request.

/// Size of the smallest tree, in moments.
const MOMENTS_LEAST: usize = 1 << 10;

/// A number of objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) objects: u32,
}

/// The LRU stack as a binary indexed tree.
#[derive(Debug)]
pub(super) struct Stack {
    /// Sums of the tree; number 0 is unused.
    sums: Vec<Sum>,
    all: Sum,
    /// The moment of the next request, from 1 on.
    next: u32,
}

impl Default for Stack {
    fn default() -> Stack {
        Stack { sums: vec![Sum::default(); MOMENTS_LEAST + 1], all: Sum::default(), next: 1 }
    }
}

impl Stack {
    /// Whether [`Stack::renumber`] has to be called before the next object.
    pub(super) fn is_full(&self) -> bool {
        self.next as usize >= self.sums.len()
    }

    /// Makes an object of `bytes` bytes the youngest, and returns its moment, which is above 0.
    pub(super) fn push(&mut self, bytes: u64) -> u32 {
        let moment = self.next;
        self.next += 1;
        self.change(moment, |sum| {
            sum.objects += 1;
            sum.bytes += bytes;
        });
        self.all.objects += 1;
        self.all.bytes += bytes;
        moment
    }

    /// Removes the object of `bytes` bytes at a moment.
    pub(super) fn remove(&mut self, moment: u32, bytes: u64) {
        self.change(moment, |sum| {
            sum.objects -= 1;
            sum.bytes -= bytes;
        });
        self.all.objects -= 1;
        self.all.bytes -= bytes;
    }

    /// The number and the bytes of the objects that were requested after the one at a moment.
    pub(super) fn younger(&self, moment: u32) -> Sum {
        if moment + 1 == self.next {
            return Sum::default();
        }
        let mut sum = self.all;
        let mut at = moment as usize;
        while at > 0 {
            sum.objects -= self.sums[at].objects;
            sum.bytes -= self.sums[at].bytes;
            at &= at - 1;
        }
        sum
    }

    /// Gives objects the moments from 1 on and makes room for as many requests again. The iterator has the bytes of
    /// the objects, the oldest first.
    pub(super) fn renumber(&mut self, bytes: impl ExactSizeIterator<Item = u64>) {
        let moments = (2 * bytes.len()).max(MOMENTS_LEAST);
        self.sums.clear();
        self.sums.resize(moments + 1, Sum::default());
        (self.all, self.next) = (Sum::default(), 1);
        for bytes in bytes {
            let sum = &mut self.sums[self.next as usize];
            (sum.objects, sum.bytes) = (1, bytes);
            self.all.objects += 1;
            self.all.bytes += bytes;
            self.next += 1;
        }
        for at in 1..=moments {
            let (sum, above) = (self.sums[at], at + (at & at.wrapping_neg()));
            if let Some(parent) = self.sums.get_mut(above) {
                parent.objects += sum.objects;
                parent.bytes += sum.bytes;
            }
        }
    }

    fn change(&mut self, moment: u32, by: impl Fn(&mut Sum)) {
        let mut at = moment as usize;
        while let Some(sum) = self.sums.get_mut(at) {
            by(sum);
            at += at & at.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{Stream, below};

    #[test]
    fn sums_are_those_of_a_plain_list() {
        let stream = Stream::from_seed(4);
        let mut stack = Stack::default();
        // Objects from the oldest to the youngest: name, bytes, moment.
        let mut list: Vec<(u64, u64, u32)> = Vec::new();
        for i in 0..20_000 {
            let name = below(stream.draw(i), 700);
            if let Some(at) = list.iter().position(|object| object.0 == name) {
                let (_, bytes, moment) = list.remove(at);
                let younger: u64 = list[at..].iter().map(|object| object.1).sum();
                assert_eq!(stack.younger(moment), Sum { objects: (list.len() - at) as u32, bytes: younger });
                stack.remove(moment, bytes);
                if i % 7 == 0 {
                    continue;
                }
            }
            if stack.is_full() {
                stack.renumber(list.iter().map(|object| object.1));
                (1..).zip(&mut list).for_each(|(moment, object)| object.2 = moment);
            }
            let bytes = below(stream.draw_sub(i, 1), 1 << 30);
            list.push((name, bytes, stack.push(bytes)));
        }
    }
}
