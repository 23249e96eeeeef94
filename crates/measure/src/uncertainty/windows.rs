//! The measured phase in windows of time, whose differences show the effect of chance within a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::CoarseHistogram;
use crate::interval::Interval;
use crate::recorder::{OpRecord, Span};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, seconds};

/// The length of windows at the beginning, in nanoseconds, where intervals are not shorter.
pub const BASE_NS: Nanos = 100 * MILLISECOND;

/// Number of windows at which neighbours are added together.
pub const WINDOWS_MAX: usize = 128;

/// The times that windows keep.
pub const KEPT: [Span; 2] = [Span::Response, Span::Service];

/// Windows of one length from the beginning of the measured phase on, at most [`WINDOWS_MAX`] of them. Windows of parts
/// of a run add up to those of the whole, whatever their lengths, since each length is the base times a power of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// Length of the first windows, in nanoseconds.
    base_ns: Nanos,
    /// Number of times that the length was doubled.
    doublings: u32,
    /// The windows; those without requests are empty.
    windows: Vec<Window>,
}

/// Requests that ended in one window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The requests that ended in the window, by group of the Plan and verb.
    pub groups: Vec<BTreeMap<Verb, WindowOp>>,
}

/// The requests of one verb that ended in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowOp {
    /// Requests that were completed.
    pub completed: u64,
    /// Requests that were given up, lost or never sent.
    pub unanswered: u64,
    /// Keys that reads asked for.
    pub keys: u64,
    /// Keys that reads found.
    pub hits: u64,
    /// The times of the [`KEPT`] spans.
    pub times: [WindowTimes; KEPT.len()],
}

/// Times of requests in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowTimes {
    /// Sum of the times, in nanoseconds.
    pub sum_ns: u64,
    /// The times by size.
    pub cells: CoarseHistogram,
}

/// Time between two slices that workers hand over, for intervals of a length in nanoseconds: the longest time of at
/// most [`BASE_NS`] that divides the interval, but not below half of that; the interval itself where there is none.
pub fn tick_ns(interval_ns: Nanos) -> Nanos {
    let least = interval_ns.div_ceil(BASE_NS).max(1);
    let divisor = (least..=2 * least).find(|parts| interval_ns.is_multiple_of(*parts));
    divisor.map_or(interval_ns, |parts| interval_ns / parts)
}

/// Least time before a moment that concerns each worker, such as the end of a phase, at which it is sent to all of
/// them, in nanoseconds: several times the time between two slices, at which they look for it.
pub fn lead_ns(interval_ns: Nanos) -> Nanos {
    (5 * BASE_NS).max(tick_ns(interval_ns).saturating_mul(3))
}

impl Windows {
    /// Makes empty windows for slices of `tick_ns` nanoseconds.
    pub fn new(tick_ns: Nanos) -> Windows {
        let tick_ns = tick_ns.max(1);
        Windows { base_ns: tick_ns * (BASE_NS / tick_ns).max(1), doublings: 0, windows: Vec::new() }
    }

    /// Length of the windows, in nanoseconds.
    pub fn length_ns(&self) -> Nanos {
        self.base_ns.saturating_mul(1 << self.doublings)
    }

    /// The windows, the first one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Window> + Clone {
        self.windows.iter()
    }

    /// The part of window `number` that lies in a measured phase of this length, in nanoseconds. A drain is no part of it,
    /// though the requests that end in it are the last window's.
    pub fn measured_ns_of(&self, number: usize, measured_ns: Nanos) -> Nanos {
        measured_ns.saturating_sub(number as u64 * self.length_ns()).min(self.length_ns())
    }

    /// Adds a slice of the measured phase. A slice that is longer than a window goes to its first one.
    pub fn add(&mut self, slice: &mut Interval) {
        let window = self.at(slice.start_ns);
        if window.groups.len() < slice.groups.len() {
            window.groups.resize_with(slice.groups.len(), BTreeMap::new);
        }
        for (ops, recorder) in window.groups.iter_mut().zip(&mut slice.groups) {
            for (verb, op) in recorder.ops().iter() {
                ops.entry(verb).or_default().add(op);
            }
        }
    }

    /// Adds the windows of another part of the same run.
    pub fn merge(&mut self, other: &Windows) {
        if self.windows.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut other = other.clone();
        while self.doublings < other.doublings {
            self.double();
        }
        while other.doublings < self.doublings {
            other.double();
        }
        if self.windows.len() < other.windows.len() {
            self.windows.resize_with(other.windows.len(), Window::default);
        }
        for (window, more) in self.windows.iter_mut().zip(&other.windows) {
            window.merge(more);
        }
    }

    /// Completed requests per second in the windows that lie before `end_ns`, a time from the beginning of the measured phase;
    /// `None` where no window does.
    pub fn rate_until(&self, end_ns: Nanos) -> Option<f64> {
        let count = (end_ns / self.length_ns()) as usize;
        let ops = self.windows.iter().take(count).flat_map(Window::ops);
        let completed: u64 = ops.map(|op| op.completed).sum();
        (count > 0).then(|| completed as f64 / (count as f64 * seconds(self.length_ns())))
    }

    /// The same requests in windows of this length, in nanoseconds; `None` if doubling the length never reaches exactly
    /// this one.
    pub fn of_length(&self, length_ns: Nanos) -> Option<Windows> {
        let mut windows = self.clone();
        while windows.length_ns() < length_ns {
            windows.double();
        }
        (windows.length_ns() == length_ns).then_some(windows)
    }

    /// The windows with the counts and the responses of all requests together, and nothing else.
    pub fn responses(&self) -> Windows {
        let together = |window: &Window| {
            let mut all = WindowOp::default();
            window.ops().for_each(|op| {
                let [response, _] = &op.times;
                all.merge(&WindowOp { times: [response.clone(), WindowTimes::default()], ..op.clone() });
            });
            Window { groups: vec![BTreeMap::from([(Verb::Get, all)])] }
        };
        Windows { windows: self.windows.iter().map(together).collect(), ..*self }
    }

    /// Makes a measured phase of these windows, the first one first.
    #[cfg(test)]
    pub fn of_each(windows: Vec<Window>) -> Windows {
        Windows { base_ns: BASE_NS, doublings: 0, windows }
    }

    /// Memory of the cells.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.windows
            .iter()
            .flat_map(Window::ops)
            .flat_map(|op| &op.times)
            .map(|times| times.cells.bytes())
            .sum()
    }

    /// Whether windows of another process may be added to windows for slices of `tick_ns`.
    pub fn fits(&self, tick_ns: Nanos, groups: usize) -> bool {
        self.base_ns == Windows::new(tick_ns).base_ns
            && self.doublings < 40
            && self.windows.len() <= WINDOWS_MAX
            && self.windows.iter().all(|window| window.groups.len() <= groups)
    }

    /// The window of a moment, in nanoseconds from the beginning of the measured phase.
    fn at(&mut self, moment_ns: Nanos) -> &mut Window {
        while moment_ns / self.length_ns() >= WINDOWS_MAX as u64 {
            self.double();
        }
        let number = (moment_ns / self.length_ns()) as usize;
        if self.windows.len() <= number {
            self.windows.resize_with(number + 1, Window::default);
        }
        &mut self.windows[number]
    }

    /// Adds neighbours together.
    fn double(&mut self) {
        self.doublings += 1;
        let halves = std::mem::take(&mut self.windows);
        for (number, half) in halves.into_iter().enumerate() {
            match self.windows.get_mut(number / 2) {
                Some(window) => window.merge(&half),
                None => self.windows.push(half),
            }
        }
    }
}

impl Window {
    /// The requests of each group and verb.
    pub fn ops(&self) -> impl Iterator<Item = &WindowOp> + Clone {
        self.groups.iter().flat_map(BTreeMap::values)
    }

    fn merge(&mut self, other: &Window) {
        if self.groups.len() < other.groups.len() {
            self.groups.resize_with(other.groups.len(), BTreeMap::new);
        }
        for (ops, more) in self.groups.iter_mut().zip(&other.groups) {
            for (verb, op) in more {
                ops.entry(*verb).or_default().merge(op);
            }
        }
    }
}

impl WindowOp {
    /// The requests of one verb.
    pub fn of(op: &OpRecord) -> WindowOp {
        let mut requests = WindowOp::default();
        requests.add(op);
        requests
    }

    fn add(&mut self, op: &OpRecord) {
        self.completed += op.counts.completed;
        self.unanswered += op.counts.unanswered();
        self.keys += op.counts.hits + op.counts.misses;
        self.hits += op.counts.hits;
        for (times, span) in self.times.iter_mut().zip(KEPT) {
            let fine = op.times.of(span);
            times.sum_ns = times.sum_ns.saturating_add(u64::try_from(fine.moments().sum).unwrap_or(u64::MAX));
            times.cells.add(fine);
        }
    }

    /// Adds the requests of another part.
    pub fn merge(&mut self, other: &WindowOp) {
        self.completed += other.completed;
        self.unanswered += other.unanswered;
        self.keys += other.keys;
        self.hits += other.hits;
        for (times, more) in self.times.iter_mut().zip(&other.times) {
            times.sum_ns = times.sum_ns.saturating_add(more.sum_ns);
            times.cells.merge(&more.cells);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Sample;
    use pummel_logic::time::SECOND;

    /// A slice with this many gets, each answered after 50 us.
    fn slice(start_ns: Nanos, end_ns: Nanos, requests: u64) -> Interval {
        let mut slice = Interval::new([[Verb::Get]]);
        slice.restart(0, start_ns);
        slice.end_ns = end_ns;
        for due in 0..requests {
            slice.groups[0].record(&Sample::hit(due, 50_000));
        }
        slice
    }

    fn requests(windows: &Windows) -> Vec<u64> {
        windows.iter().map(|window| window.ops().map(|op| op.completed).sum()).collect()
    }

    #[test]
    fn workers_hand_over_in_parts_that_divide_the_interval() {
        let known = [(10, 10), (100, 100), (1_000, 100), (250, 83), (150, 75), (3_600_000, 100)];
        for (interval_ms, tick_ms) in known {
            let tick_ns = tick_ns(interval_ms * MILLISECOND);
            assert_eq!(
                tick_ns / MILLISECOND,
                if interval_ms == 250 { 62 } else { tick_ms },
                "{interval_ms} ms"
            );
            assert_eq!(interval_ms * MILLISECOND % tick_ns, 0);
        }
        assert_eq!(tick_ns(999_999_937), 999_999_937, "a prime number has no parts");
        assert_eq!((lead_ns(SECOND), lead_ns(60 * SECOND)), (500 * MILLISECOND, 500 * MILLISECOND));
        assert_eq!(lead_ns(999_999_937), 3 * 999_999_937, "slices that are long are waited for too");
    }

    #[test]
    fn windows_begin_with_a_tenth_of_a_second_and_double_when_there_are_128() {
        let mut windows = Windows::new(10 * MILLISECOND);
        assert_eq!(windows.length_ns(), 100 * MILLISECOND);
        for number in 0..1_280 {
            let start_ns = number * 10 * MILLISECOND;
            windows.add(&mut slice(start_ns, start_ns + 10 * MILLISECOND, 3));
        }
        assert_eq!((windows.iter().len(), windows.length_ns()), (128, 100 * MILLISECOND));
        assert!(requests(&windows).iter().all(|requests| *requests == 30));
        windows.add(&mut slice(12_800 * MILLISECOND, 12_810 * MILLISECOND, 1));
        assert_eq!((windows.iter().len(), windows.length_ns()), (65, 200 * MILLISECOND));
        assert_eq!(requests(&windows).iter().sum::<u64>(), 3_841);
    }

    #[test]
    fn a_drain_is_no_part_of_a_windows_length() {
        let mut windows = Windows::new(BASE_NS);
        windows.add(&mut slice(0, BASE_NS, 5));
        windows.add(&mut slice(BASE_NS, 9 * BASE_NS, 5));
        let measured_ns = BASE_NS * 3 / 2;
        let lengths: Vec<Nanos> = (0..3).map(|number| windows.measured_ns_of(number, measured_ns)).collect();
        assert_eq!(lengths, [BASE_NS, BASE_NS / 2, 0]);
    }

    #[test]
    fn parts_of_a_run_add_up_to_the_whole_whatever_the_length_of_their_windows() {
        let (mut whole, mut one, mut other) =
            (Windows::new(BASE_NS), Windows::new(BASE_NS), Windows::new(BASE_NS));
        for number in 0..300 {
            let (start_ns, end_ns) = (number * BASE_NS, (number + 1) * BASE_NS);
            whole.add(&mut slice(start_ns, end_ns, 2));
            if number < 300 {
                one.add(&mut slice(start_ns, end_ns, 1));
            }
            // The other part ended early, so that its windows are shorter.
            if number < 100 {
                other.add(&mut slice(start_ns, end_ns, 1));
            } else {
                one.add(&mut slice(start_ns, start_ns, 1));
            }
        }
        assert!(other.length_ns() < one.length_ns());
        let mut together = other.clone();
        together.merge(&one);
        one.merge(&other);
        assert_eq!(requests(&one), requests(&whole));
        assert_eq!(one, together);
        assert_eq!(one, whole);
        assert_eq!(whole.length_ns(), 4 * BASE_NS);
        let nothing = Windows::new(BASE_NS);
        one.merge(&nothing);
        assert_eq!(one, whole);
    }

    #[test]
    fn the_rate_until_a_time_is_that_of_the_requests_that_ended_before_it() {
        let mut windows = Windows::new(BASE_NS);
        for number in 0..10 {
            let ended = if number < 4 { 3 } else { 1 };
            windows.add(&mut slice(number * BASE_NS, (number + 1) * BASE_NS, ended));
        }
        assert_eq!(windows.rate_until(4 * BASE_NS), Some(30.0));
        assert_eq!(windows.rate_until(10 * BASE_NS), Some(18.0));
        assert_eq!(windows.rate_until(BASE_NS - 1), None);
        let doubled = windows.of_length(2 * BASE_NS).expect("twice the length");
        assert_eq!((doubled.iter().len(), doubled.rate_until(4 * BASE_NS)), (5, Some(30.0)));
        assert_eq!(windows.of_length(3 * BASE_NS), None, "lengths are doubled");
    }

    #[test]
    fn windows_of_another_process_that_do_not_fit_are_known() {
        let mut windows = Windows::new(BASE_NS);
        windows.add(&mut slice(7 * SECOND, 8 * SECOND, 4));
        assert!(windows.fits(BASE_NS, 1));
        assert!(!windows.fits(BASE_NS / 2 + 1, 1), "another length");
        assert!(!windows.fits(BASE_NS, 0), "more groups than the plan has");
        assert!(!Windows { doublings: 64, ..windows.clone() }.fits(BASE_NS, 1));
        let many = vec![Window::default(); WINDOWS_MAX + 1];
        assert!(!Windows { windows: many, ..windows }.fits(BASE_NS, 1));
    }
}
