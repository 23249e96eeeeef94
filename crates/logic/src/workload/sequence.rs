//! mcperf's requests: keys that are counted, and gaps and sizes drawn from POSIX `erand48`, in the order of asking.

use crate::plan::{Gap, Sequence};
use crate::protocol::Verb;
use crate::time::{Nanos, SECOND};
use crate::workload::key::KEY_MAX_BYTES;

/// Longest value that a plan of this kind may ask for: the limit that memcached's `-I` has.
pub const SIZE_MAX_BYTES: u64 = 1 << 30;

/// Least hexadecimal digits of a key's number, and most: numbers from 2^32 on have more than the original ever wrote.
const DIGITS: (usize, usize) = (8, 16);

/// POSIX `erand48`: a linear congruential generator of 48 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erand48(u64);

impl Erand48 {
    /// The state that mcperf's instance number `instance` begins with.
    pub fn new(instance: u32) -> Erand48 {
        let low = 0x1234 ^ (instance & 0xFFFF);
        let middle = 0x5678 ^ (instance.wrapping_mul(256) & 0xFFFF);
        let high = 0x9ABC ^ (!instance & 0xFFFF);
        Erand48(u64::from(high) << 32 | u64::from(middle) << 16 | u64::from(low))
    }

    /// The next number, at least 0 and below 1.
    pub fn next_unit(&mut self) -> f64 {
        const STATES: u64 = 1 << 48;
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & (STATES - 1);
        self.0 as f64 / STATES as f64
    }
}

/// A stream of gaps or sizes.
#[derive(Clone, Debug)]
pub struct Draws {
    gap: Gap,
    chance: Erand48,
    /// Number of draws so far.
    drawn: u64,
}

impl Draws {
    /// The stream of mcperf's instance number `instance`.
    pub fn new(gap: Gap, instance: u32) -> Draws {
        Draws { gap, chance: Erand48::new(instance), drawn: 0 }
    }

    /// Draws the next number.
    pub fn draw(&mut self) -> f64 {
        let before = self.drawn as f64;
        self.drawn += 1;
        match self.gap {
            Gap::Fixed(value) => value,
            Gap::Uniform(low, high) => low + (high - low) * self.chance.next_unit(),
            Gap::Exponential(mean) => -mean * libm::log(1.0 - self.chance.next_unit()),
            Gap::Rising(first) => first + before,
        }
    }

    /// Draws the next number of seconds, as a time in nanoseconds.
    pub fn draw_ns(&mut self) -> Nanos {
        libm::round(self.draw() * SECOND as f64) as Nanos
    }

    /// The length of every gap in nanoseconds, where all are equal; otherwise `None`.
    pub fn fixed_ns(&self) -> Option<Nanos> {
        match self.gap {
            Gap::Fixed(seconds) => Some(libm::round(seconds * SECOND as f64) as Nanos),
            Gap::Uniform(..) | Gap::Exponential(_) | Gap::Rising(_) => None,
        }
    }

    /// The mean of the gaps to come in nanoseconds; where gaps rise, the next gap.
    pub fn mean_ns(&self) -> f64 {
        let seconds = match self.gap {
            Gap::Fixed(gap) => gap,
            Gap::Uniform(low, high) => (low + high) / 2.0,
            Gap::Exponential(mean) => mean,
            Gap::Rising(first) => first + self.drawn as f64,
        };
        seconds * SECOND as f64
    }

    /// Draws the next number as a length in bytes.
    pub fn draw_bytes(&mut self) -> u64 {
        (self.draw().round_ties_even() as u64).min(SIZE_MAX_BYTES)
    }
}

/// The greatest length that a distribution of sizes gives, in bytes, among so many; not more than [`SIZE_MAX_BYTES`].
pub fn largest(sizes: Gap, draws: u64) -> u64 {
    let most = match sizes {
        Gap::Fixed(bytes) => bytes,
        Gap::Uniform(_, high) => high,
        // The greatest number that the generator gives is 1 - 2^-48.
        Gap::Exponential(mean) => mean * 48.0 * std::f64::consts::LN_2,
        Gap::Rising(first) => first + draws as f64,
    };
    (most.round_ties_even() as u64).min(SIZE_MAX_BYTES)
}

/// The key and the size of one request of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStep {
    /// Number of the request, which its key is made of.
    pub number: u64,
    /// Length of its value in bytes, or the number that incr and decr take.
    pub size: u64,
}

/// Counts keys and draws sizes.
#[derive(Clone, Debug)]
pub struct Sequencer {
    sizes: Draws,
    gaps: Option<Draws>,
    number: u64,
    stride: u64,
    key: Vec<u8>,
    prefix_bytes: usize,
}

impl Sequencer {
    /// A sequencer that begins at the first key.
    pub fn new(sequence: &Sequence, prefix: &str) -> Sequencer {
        assert!(prefix.len() + DIGITS.1 <= KEY_MAX_BYTES, "the prefix was checked");
        let stride = u64::from(sequence.stride);
        Sequencer {
            sizes: Draws::new(sequence.sizes, sequence.instance),
            gaps: sequence.calls.map(|gap| Draws::new(gap, sequence.instance)),
            // The first step adds the stride: without a partition the first number is 1.
            number: (u64::from(sequence.offset) + 1).wrapping_sub(stride),
            stride,
            key: prefix.as_bytes().to_vec(),
            prefix_bytes: prefix.len(),
        }
    }

    /// Goes on to the next request, and returns its key and size.
    pub fn step(&mut self) -> SequenceStep {
        self.number = self.number.wrapping_add(self.stride);
        SequenceStep { number: self.number, size: self.sizes.draw_bytes() }
    }

    /// The nanoseconds from one call to the next of its client.
    pub fn gap_ns(&mut self) -> Nanos {
        self.gaps.as_mut().map_or(0, Draws::draw_ns)
    }

    /// Writes the key of this number.
    pub fn key(&mut self, number: u64) -> &[u8] {
        self.key.resize(self.prefix_bytes + digits_of_key(number), b'0');
        for (place, digit) in self.key[self.prefix_bytes..].iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (4 * place) & 0xF) as usize];
        }
        &self.key
    }
}

/// Number of hexadecimal digits of the number in a key.
fn digits_of_key(number: u64) -> usize {
    (16 - number.leading_zeros() as usize / 4).max(DIGITS.0)
}

/// Bytes of a request of a sequence in the text protocol with its blank, as `protocol::text` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLength {
    /// Length of the prefix of keys, in bytes.
    pub prefix_bytes: u64,
    /// The expiry of stores, in seconds.
    pub expiry_s: i64,
    /// Requests ask for no reply.
    pub noreply: bool,
}

impl RequestLength {
    /// Bytes of the request with this number of its key, and with a value of this length or this number to add.
    pub fn of(&self, verb: Verb, key: u64, size: u64) -> u64 {
        let word = verb.name().len() as u64 + 1 + self.prefix_bytes + digits_of_key(key) as u64;
        let end = if self.noreply { " noreply\r\n".len() } else { " \r\n".len() } as u64;
        match verb {
            Verb::Get | Verb::Gets => word + 2,
            Verb::Delete => word + end,
            Verb::Incr | Verb::Decr => word + 1 + digits(size) + end,
            _ => {
                let sign = u64::from(self.expiry_s < 0);
                let line = word + " 0 ".len() as u64 + sign + digits(self.expiry_s.unsigned_abs());
                let unique = if verb == Verb::Cas { " 1".len() as u64 } else { 0 };
                line + 1 + digits(size) + unique + end + size + 2
            }
        }
    }
}

fn digits(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |log| u64::from(log) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::outbox::Outbox;
    use crate::protocol::text::Text;
    use crate::protocol::{Codec, Op, Value};

    fn sizes(gap: Gap, instance: u32) -> Vec<u64> {
        let mut draws = Draws::new(gap, instance);
        (0..12).map(|_| draws.draw_bytes()).collect()
    }

    #[test]
    fn streams_are_those_of_the_original() {
        assert_eq!(sizes(Gap::Uniform(1.0, 16.0), 0), [13, 5, 2, 7, 11, 5, 3, 6, 12, 3, 11, 5]);
        assert_eq!(sizes(Gap::Uniform(1.0, 16.0), 3), [4, 16, 4, 12, 12, 13, 5, 11, 16, 11, 10, 15]);
        assert_eq!(sizes(Gap::Exponential(10.0), 0), [17, 3, 1, 6, 10, 3, 2, 4, 12, 1, 11, 3]);
    }

    #[test]
    fn starts_are_those_of_the_original() {
        let mut gaps = Draws::new(Gap::Uniform(0.05, 0.15), 0);
        let mut at = 0;
        let starts: Vec<Nanos> = (0..5)
            .map(|_| {
                at += gaps.draw_ns();
                (at + 500_000) / 1_000_000
            })
            .collect();
        assert_eq!(starts, [131, 208, 267, 360, 474]);
    }

    #[test]
    fn fixed_and_rising_values_need_no_chance() {
        assert_eq!(sizes(Gap::Fixed(100.4), 0)[..2], [100, 100]);
        assert_eq!(sizes(Gap::Rising(2.5), 0)[..4], [2, 4, 4, 6]);
        assert_eq!(largest(Gap::Uniform(1.0, 16.0), 9), 16);
        assert_eq!(largest(Gap::Rising(1.0), 9), 10);
    }

    fn sequence(stride: u32, offset: u32) -> Sequence {
        Sequence { instance: 0, calls: None, sizes: Gap::Fixed(1.0), stride, offset, bogus: false }
    }

    #[test]
    fn keys_are_counted_from_1_on_and_have_more_digits_from_2_to_the_32nd_on() {
        let mut sequencer = Sequencer::new(&sequence(1, 0), "mcp:");
        let first = sequencer.step().number;
        assert_eq!(sequencer.key(first), b"mcp:00000001");
        assert_eq!(sequencer.key(0xAB_CDEF), b"mcp:00abcdef");
        sequencer.number = u32::MAX.into();
        let next = sequencer.step().number;
        assert_eq!(sequencer.key(next), b"mcp:100000000");
        assert_eq!(sequencer.key(u64::MAX), b"mcp:ffffffffffffffff");
        assert_eq!(sequencer.key(u32::MAX.into()), b"mcp:ffffffff");
        assert_eq!(sequencer.key(0), b"mcp:00000000");
    }

    #[test]
    fn instances_with_a_stride_have_no_key_in_common() {
        let numbers = |offset| {
            let mut sequencer = Sequencer::new(&sequence(3, offset), "");
            [(); 3].map(|()| sequencer.step().number)
        };
        assert_eq!([numbers(0), numbers(1), numbers(2)], [[1, 4, 7], [2, 5, 8], [3, 6, 9]]);
    }

    #[test]
    fn lengths_are_the_bytes_that_the_codec_writes() {
        let verbs = [
            Verb::Get,
            Verb::Gets,
            Verb::Delete,
            Verb::Cas,
            Verb::Set,
            Verb::Add,
            Verb::Replace,
            Verb::Append,
            Verb::Prepend,
            Verb::Incr,
            Verb::Decr,
        ];
        let mut sequencer = Sequencer::new(&sequence(1, 0), "mcp:");
        for verb in verbs {
            for (noreply, expiry_s, size, number) in [
                (false, 0, 1, 1),
                (true, 0, 0, 0),
                (false, 2_147_483_647, 10, u32::MAX.into()),
                (true, 60, 999, 1 << 32),
                (false, -1, 8192, u64::MAX),
            ] {
                let noreply = noreply && !verb.reads();
                let value = vec![b'0'; if verb.stores() { size as usize } else { 0 }];
                let op = Op {
                    value: Value::plain(&value),
                    expiry_s,
                    noreply,
                    cas: 1,
                    delta: size,
                    ..Op::new(verb, sequencer.key(number))
                };
                let mut out = Outbox::default();
                Text::with_blanks().encode(&op, 0, &mut out).unwrap();
                let length = RequestLength { prefix_bytes: 4, expiry_s, noreply };
                assert_eq!(length.of(verb, number, size), out.len() as u64, "{verb:?} {op:?}");
            }
        }
    }
}
