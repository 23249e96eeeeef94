//! The requests of one whole second, and their times within it.

use crate::trace::row::Row;
use pummel_logic::plan::WithinSecond;
use pummel_logic::rng::Stream;
use pummel_logic::time::{Nanos, SECOND};

/// Most requests of one second that are placed together; further ones are spread over the rest of the second.
pub const TOGETHER_MAX: usize = 1 << 18;

/// A row that waits for its second to be complete.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    key_end: u32,
    row: Row<'static>,
}

/// The rows of the second under way.
#[derive(Debug)]
pub struct Seconds {
    rule: WithinSecond,
    stream: Stream,
    /// Seconds that were placed, which the draws are counted by.
    draws: u64,
    second_ns: Nanos,
    /// Beginning of the rest of the second, in nanoseconds of it: 0 unless the second has very many requests.
    placed_until_ns: Nanos,
    keys: Vec<u8>,
    rows: Vec<Waiting>,
    requests: usize,
    /// The times of all requests in the second and the row of each, while they are placed.
    order: Vec<(u64, u32)>,
    /// Requests that a row counts and that were too many to be placed.
    uncounted: u64,
}

impl Seconds {
    /// Makes an empty second; chance comes from `seed`.
    pub fn new(rule: WithinSecond, seed: u64) -> Seconds {
        Seconds {
            rule,
            stream: Stream::from_seed(seed),
            draws: 0,
            second_ns: 0,
            placed_until_ns: 0,
            keys: Vec::new(),
            rows: Vec::new(),
            requests: 0,
            order: Vec::new(),
            uncounted: 0,
        }
    }

    /// Requests that rows counted and that were left out, because one row stood for more than are placed together.
    pub fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// Takes in a row, and hands over every request whose time is known: rows that stand for several requests are single ones
    /// then. Rows come in the order of their times; an earlier one counts to the second under way.
    pub fn take(&mut self, row: &Row<'_>, sink: &mut dyn FnMut(&Row<'_>)) {
        let count = (row.count as usize).min(TOGETHER_MAX);
        self.uncounted += u64::from(row.count) - count as u64;
        if u64::from(row.resolution_ns) != SECOND || self.rule == WithinSecond::Burst {
            self.flush(sink);
            return repeat(&Row { count: count as u32, ..*row }, sink);
        }
        let second_ns = row.at_ns / SECOND * SECOND;
        if second_ns > self.second_ns || self.rows.is_empty() {
            self.flush(sink);
            (self.second_ns, self.placed_until_ns) = (second_ns.max(self.second_ns), 0);
        }
        if self.requests + count > TOGETHER_MAX {
            // The end of the second is not known yet: these take half of what is left of it.
            let until_ns = self.placed_until_ns.midpoint(SECOND);
            self.place(until_ns, sink);
        }
        self.keys.extend_from_slice(row.key);
        let kept = Row { key: &[], count: count as u32, ..*row };
        self.rows.push(Waiting { key_end: self.keys.len() as u32, row: kept });
        self.requests += count;
    }

    /// Hands over all waiting rows: the second is complete.
    pub fn flush(&mut self, sink: &mut dyn FnMut(&Row<'_>)) {
        if !self.rows.is_empty() {
            self.place(SECOND, sink);
        }
        self.placed_until_ns = 0;
    }

    /// Accepts any second next, after the end of a pass.
    pub fn restart(&mut self) {
        self.second_ns = 0;
    }

    /// Places the rows that wait between the end of those before and `until_ns` of the second, and hands them over.
    fn place(&mut self, until_ns: Nanos, sink: &mut dyn FnMut(&Row<'_>)) {
        let (start_ns, span_ns) = (self.placed_until_ns, until_ns - self.placed_until_ns);
        let rows = self.rows.len() as u64;
        self.order.clear();
        for (number, waiting) in self.rows.iter().enumerate() {
            let count = u64::from(waiting.row.count);
            for turn in 0..count {
                // Row j of m is made at j/m; so many of it are spread over the whole second.
                let place = u128::from(turn * rows + number as u64) * u128::from(span_ns);
                let at_ns = (place / u128::from(count * rows)) as u64;
                self.order.push((at_ns, number as u32));
            }
        }
        self.order.sort_unstable();
        if self.rule == WithinSecond::Poisson {
            let mut times: Vec<u64> = (0..self.order.len() as u64)
                .map(|draw| {
                    ((u128::from(self.stream.draw(self.draws + draw)) * u128::from(span_ns)) >> 64) as u64
                })
                .collect();
            times.sort_unstable();
            self.draws += times.len() as u64;
            self.order.iter_mut().zip(times).for_each(|(request, at_ns)| request.0 = at_ns);
        }
        for &(at_ns, number) in &self.order {
            let number = number as usize;
            let start = number.checked_sub(1).map_or(0, |before| self.rows[before].key_end) as usize;
            let Waiting { key_end, row } = self.rows[number];
            let key = &self.keys[start..key_end as usize];
            sink(&Row { at_ns: self.second_ns + start_ns + at_ns, resolution_ns: 1, count: 1, key, ..row });
        }
        self.keys.clear();
        self.rows.clear();
        (self.requests, self.placed_until_ns) = (0, until_ns);
    }
}

/// Hands over a row `count` times.
fn repeat(row: &Row<'_>, sink: &mut dyn FnMut(&Row<'_>)) {
    for _ in 0..row.count {
        sink(&Row { count: 1, ..*row });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rule: WithinSecond, rows: &[(u64, &str, u32)]) -> Vec<(Nanos, String)> {
        let mut seconds = Seconds::new(rule, 1);
        let mut placed = Vec::new();
        let mut note = |row: &Row<'_>| {
            assert_eq!(row.count, 1);
            placed.push((row.at_ns, String::from_utf8_lossy(row.key).into_owned()));
        };
        for (second, key, count) in rows {
            let row = Row { at_ns: second * SECOND, count: *count, ..Row::read(key.as_bytes()) };
            seconds.take(&row.within_second(), &mut note);
        }
        seconds.flush(&mut note);
        placed
    }

    #[test]
    fn rows_of_a_second_are_spread_evenly_over_it_in_their_order() {
        let rows = [(5, "a", 1), (5, "b", 1), (5, "c", 1), (5, "d", 1), (7, "e", 1)];
        let times: Vec<Nanos> = placed(WithinSecond::Spread, &rows).iter().map(|(at, _)| *at).collect();
        let quarter = SECOND / 4;
        assert_eq!(times, [20, 21, 22, 23, 28].map(|quarters| quarters * quarter));
        let burst = placed(WithinSecond::Burst, &rows);
        assert!(burst[..4].iter().all(|(at, _)| *at == 5 * SECOND) && burst[4].0 == 7 * SECOND);
    }

    #[test]
    fn drawn_times_ascend_within_the_second_and_keep_the_order() {
        let keys: Vec<String> = (0..1_000).map(|key| format!("{key:04}")).collect();
        let rows: Vec<(u64, &str, u32)> = keys.iter().map(|key| (3, key.as_str(), 1)).collect();
        let placed = placed(WithinSecond::Poisson, &rows);
        assert!(placed.is_sorted(), "times and keys ascend together");
        assert!(placed[0].0 >= 3 * SECOND && placed[999].0 < 4 * SECOND);
        let first_half = placed.iter().filter(|(at, _)| *at < 3 * SECOND + SECOND / 2).count();
        assert!((420..580).contains(&first_half), "{first_half}: 5 standard deviations are 79");
    }

    #[test]
    fn a_row_that_stands_for_several_requests_is_spread_over_the_second() {
        let placed = placed(WithinSecond::Spread, &[(0, "a", 4), (0, "b", 1)]);
        let of_a: Vec<Nanos> = placed.iter().filter(|(_, key)| key == "a").map(|(at, _)| *at).collect();
        assert_eq!(of_a, [0, 1, 2, 3].map(|quarters| quarters * SECOND / 4));
        assert_eq!(placed.len(), 5);
    }

    #[test]
    fn a_second_with_very_many_requests_takes_bounded_memory_and_keeps_its_order() {
        let mut seconds = Seconds::new(WithinSecond::Spread, 1);
        let (mut requests, mut last) = (0usize, 0);
        let mut note = |row: &Row<'_>| {
            assert!(row.at_ns >= last && row.at_ns < 10 * SECOND);
            (requests, last) = (requests + 1, row.at_ns);
        };
        let many = 5 * TOGETHER_MAX;
        for number in 0..many as u64 {
            let key = number.to_le_bytes();
            seconds.take(&Row { at_ns: 9 * SECOND, ..Row::read(&key) }.within_second(), &mut note);
            assert!(seconds.rows.len() <= TOGETHER_MAX && seconds.keys.len() <= 8 * TOGETHER_MAX);
        }
        seconds.flush(&mut note);
        assert_eq!(requests, many);
    }
}
