//! Facts that a server or the kernel reports as pairs of name and value, and the differences of its counters.

use std::collections::BTreeMap;

use crate::words::printable;
use pummel_logic::time::{Nanos, SECOND};

/// Most facts of one reading. A memcached with 63 slab classes has about 3,000.
pub const FACTS_MAX: usize = 4096;

/// Longest value that is kept, in bytes; a histogram with all of its cells is shorter.
const VALUE_MAX_BYTES: usize = 1024;

/// Pairs of name and value, at most [`FACTS_MAX`]. If a name comes twice, the last value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, String>);

impl Facts {
    /// Adds a fact. Returns false where there is no room for it. Bytes that are no UTF-8 and control characters of a
    /// value are replaced, and a value is cut at 1,024 bytes.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.0.len() >= FACTS_MAX || name.len() > VALUE_MAX_BYTES {
            return false;
        }
        self.0.insert(printable(name), printable(&value[..value.len().min(VALUE_MAX_BYTES)]));
        true
    }

    /// The value of a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a name as a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The value of a name in seconds, such as `12.034567`, in nanoseconds.
    pub fn seconds_ns(&self, name: &str) -> Option<Nanos> {
        decimal(self.text(name)?, SECOND)
    }

    /// The values of those of these names that are known.
    pub fn chosen(&self, names: &[&str]) -> BTreeMap<String, String> {
        names.iter().filter_map(|name| Some(((*name).to_owned(), self.text(name)?.to_owned()))).collect()
    }

    /// The names that begin with `prefix`, without it, and their values.
    pub fn beginning_with<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let tail = self.0.range(prefix.to_owned()..);
        tail.map_while(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// Adds the facts of another reply, as far as there is room for them.
    pub fn add_all(&mut self, other: &Facts) {
        for (name, value) in &other.0 {
            self.add(name.as_bytes(), value.as_bytes());
        }
    }

    /// Whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The value of a decimal number with up to nine digits behind the point, in units of 1/`unit`; `None` for other text and
/// for what 64 bits do not hold. `unit` is a power of ten up to 10^9.
pub fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(rest) {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut place = unit / 10;
    for digit in rest.bytes() {
        value = value.checked_add(u64::from(digit - b'0') * place)?;
        place /= 10;
    }
    Some(value)
}

/// The value of a field in a text such as `calls=1,usec=2`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// A whole number in a text such as `calls=1,usec=2`, by its name.
pub fn number_in(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.parse().ok()
}

/// Rise of a counter between two readings; `None` where it fell. A counter that was in the upper half of 32 bits and is
/// in the lower half has wrapped, as the counters of servers and kernels of 32 bits do.
pub fn rise(before: u64, after: u64) -> Option<u64> {
    const HALF: u64 = 1 << 31;
    match after.checked_sub(before) {
        Some(rise) => Some(rise),
        None if (HALF..2 * HALF).contains(&before) && after < HALF => Some(after + 2 * HALF - before),
        None => None,
    }
}

/// Seconds by which a reported uptime may be shorter than expected, since servers count whole seconds.
const UPTIME_SLACK_S: u64 = 2;

/// The counters of a server at two readings.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The first reading.
    pub before: &'a Facts,
    /// The second reading.
    pub after: &'a Facts,
    /// Whether the server's counters began anew between the two, so that they count from 0.
    pub anew: bool,
}

impl Pair<'_> {
    /// Rise of the counter of this name; `None` where the server does not have it.
    pub fn rise(&self, name: &str) -> Option<u64> {
        self.difference(self.before.number(name), self.after.number(name))
    }

    /// Rise of a number in the fact of this name, which has several, such as `calls=1,usec=2`. A fact that the first reading
    /// lacks counts from 0.
    pub fn rise_in(&self, name: &str, number: &str) -> Option<u64> {
        let of = |facts: &Facts| number_in(facts.text(name)?, number);
        self.difference(Some(of(self.before).unwrap_or(0)), of(self.after))
    }

    /// CPU time in nanoseconds, of two counters that the server keeps in seconds: user and system. `None` where it lacks one.
    pub fn cpu_ns(&self, names: [&str; 2]) -> Option<Nanos> {
        let rise_ns = |name| self.difference(self.before.seconds_ns(name), self.after.seconds_ns(name));
        Some(rise_ns(names[0])?.saturating_add(rise_ns(names[1])?))
    }

    /// Whether the number of this name was above 0 at one of the readings.
    pub fn is_on(&self, name: &str) -> bool {
        [self.before, self.after].iter().any(|facts| facts.number(name).unwrap_or(0) > 0)
    }

    /// The sum of the counters of these names, of those that the server has; `None` where it has none of them.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.rise(name)).reduce(u64::saturating_add)
    }

    /// Whether the server was up for a shorter time at the second reading than since the first one, which was `span_ns`
    /// before. The fact `name` is its uptime in seconds.
    pub fn is_younger(&self, name: &str, span_ns: Nanos) -> bool {
        match (self.before.number(name), self.after.number(name)) {
            (Some(before), Some(after)) => {
                after.saturating_add(UPTIME_SLACK_S) < before.saturating_add(span_ns / SECOND)
            }
            _ => false,
        }
    }

    /// Whether one of these counters fell, which happens only if the server was restarted or reset them.
    pub fn fell(&self, names: &[&str]) -> bool {
        names.iter().any(|name| match (self.before.number(name), self.after.number(name)) {
            (Some(before), Some(after)) => rise(before, after).is_none(),
            _ => false,
        })
    }

    /// Rise of a counter with these two values.
    pub fn difference(&self, before: Option<u64>, after: Option<u64>) -> Option<u64> {
        let after = after?;
        if self.anew {
            return Some(after);
        }
        rise(before?, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_to_the_nanosecond() {
        for (text, ns) in [
            ("0.004160", Some(4_160_000)),
            ("12", Some(12 * SECOND)),
            ("1.0000000019", Some(SECOND + 1)),
            ("", None),
            (".5", None),
            ("1.", None),
            ("-1.0", None),
            ("1e9", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(decimal(text, SECOND), ns, "{text}");
        }
    }

    #[test]
    fn a_counter_that_wraps_rose_and_one_that_fell_did_not() {
        assert_eq!(rise(5, 5), Some(0));
        assert_eq!(rise(5, 9), Some(4));
        assert_eq!(rise(u64::from(u32::MAX), 9), Some(10));
        assert_eq!(rise(1 << 31, 0), Some(1 << 31));
        assert_eq!(rise(1_000, 9), None, "a small counter does not wrap");
        assert_eq!(rise(1 << 40, 9), None, "a counter of 64 bits does not wrap");
    }

    #[test]
    fn a_server_that_is_younger_than_the_run_was_started_in_it() {
        let up = |seconds: &str| {
            let mut facts = Facts::default();
            facts.add(b"uptime", seconds.as_bytes());
            facts
        };
        let is_younger = |before: &str, after: &str, span_s: u64| {
            let (before, after) = (up(before), up(after));
            let pair = Pair { before: &before, after: &after, anew: false };
            pair.is_younger("uptime", span_s * SECOND)
        };
        assert!(is_younger("100", "3", 5));
        assert!(is_younger("1", "4", 10), "it was up for less at the first reading");
        assert!(!is_younger("100", "104", 5), "whole seconds");
        assert!(!is_younger("100", "110", 10) && !is_younger("", "3", 10));
    }

    #[test]
    fn a_server_cannot_fill_the_memory_or_reach_the_terminal() {
        let mut facts = Facts::default();
        for number in 0..2 * FACTS_MAX {
            facts.add(number.to_string().as_bytes(), b"1");
        }
        assert_eq!(facts.0.len(), FACTS_MAX);
        let mut facts = Facts::default();
        assert!(facts.add(b"a", &[0x1b; 10_000]));
        assert!(!facts.add(&[b'n'; 10_000], b"1"));
        let kept = facts.text("a").expect("it is there");
        assert_eq!((kept.chars().count(), kept.contains('\x1b')), (VALUE_MAX_BYTES, false));
    }
}
