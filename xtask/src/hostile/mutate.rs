//! Mutants of files: each is a function of the file and a number.

use std::ops::Range;

/// Text that no edit touches: the address of a server that is not there. A mutant sends no load anywhere.
pub const NOWHERE: &str = "/nonexistent/pummel.sock";

/// Texts that stand in the place of a number.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-308",
    "1.9e19",
    "18446744073709551615",
    "-9223372036854775808",
    "4294967296",
    "1e15",
    "0.5",
    "null",
    "\"\"",
    "[]",
    "{}",
    "true",
];

/// Number of those that are numbers, which stand first.
const NUMBERS_PLAIN: usize = 11;

/// Texts that are put between other bytes.
const PIECES: [&[u8]; 14] = [
    b"\"",
    b",",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\\",
    b"\n",
    b"\0",
    b"\xff",
    b"\x1b[2J",
    b"\xc2\x9b",
    b"1",
    b",,,,,,,",
];

/// Most edits of a mutant.
const EDITS_MAX: u64 = 4;

/// The most bytes that a mutant is longer than its file.
const GROWTH_MAX: usize = 256 << 10;

/// Draws numbers from a seed (splitmix64, Steele and others 2014).
#[derive(Debug)]
pub struct Draws(u64);

impl Draws {
    /// The draws of a seed.
    pub fn of(seed: u64) -> Draws {
        Draws(seed)
    }

    /// A number below `end`, or 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % (end.max(1) as u64)) as usize
    }
}

/// A mutant of a file, which differs from it in one to four places.
pub fn mutant(file: &[u8], seed: u64) -> Vec<u8> {
    let mut draws = Draws::of(seed);
    let mut bytes = file.to_vec();
    for _ in 0..=draws.below(EDITS_MAX as usize) {
        let (place, new) = edit(&bytes, &mut draws);
        if !touches_nowhere(&bytes, &place) && bytes.len() + new.len() <= file.len() + GROWTH_MAX {
            bytes.splice(place, new);
        }
    }
    bytes
}

/// A place of a file, and what takes it.
fn edit(bytes: &[u8], draws: &mut Draws) -> (Range<usize>, Vec<u8>) {
    let at = draws.below(bytes.len() + 1);
    // Most mutants have other numbers: a reader goes further with them than with what is no JSON.
    let kind = draws.below(20);
    let word = match kind {
        0..=14 => number_at(bytes, at),
        15 => word_at(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_'),
        _ => at..at,
    };
    let length = draws.below(64).min(bytes.len() - at);
    match kind {
        0..=14 => {
            let others = if draws.below(8) == 0 { NUMBERS.len() } else { NUMBERS_PLAIN };
            (word, NUMBERS[draws.below(others)].as_bytes().to_vec())
        }
        15 => {
            let other = draws.below(bytes.len() + 1);
            let other = word_at(bytes, other, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
            (word, bytes[other].to_vec())
        }
        16 => (at..at + length, Vec::new()),
        17 => (at..at, PIECES[draws.below(PIECES.len())].to_vec()),
        // A list becomes a long one.
        18 => (at..at, bytes[at..at + length].repeat([1, 2, 1_000][draws.below(3)])),
        _ => match bytes.get(at) {
            Some(byte) => (at..at + 1, vec![byte ^ (1 << draws.below(8))]),
            // The file ends early.
            None => (draws.below(bytes.len())..bytes.len(), Vec::new()),
        },
    }
}

/// The next number from a place on; empty where there is none.
fn number_at(bytes: &[u8], at: usize) -> Range<usize> {
    let Some(first) = bytes[at..].iter().position(u8::is_ascii_digit) else { return at..at };
    let digits = word_at(bytes, at + first, |byte| byte.is_ascii_digit() || b".+-eE".contains(&byte));
    let has_sign = digits.start > 0 && bytes[digits.start - 1] == b'-';
    digits.start - usize::from(has_sign)..digits.end
}

/// The next word of such bytes from a place on; empty where there is none.
fn word_at(bytes: &[u8], at: usize, is_part: impl Fn(u8) -> bool) -> Range<usize> {
    let Some(begin) = bytes[at..].iter().position(|byte| is_part(*byte)) else { return at..at };
    let begin = at + begin;
    let length = bytes[begin..].iter().position(|byte| !is_part(*byte)).unwrap_or(bytes.len() - begin);
    begin..begin + length
}

fn touches_nowhere(bytes: &[u8], place: &Range<usize>) -> bool {
    // With the list of servers around it.
    let around = 24;
    let named = bytes.windows(NOWHERE.len()).enumerate().filter(|(_, bytes)| *bytes == NOWHERE.as_bytes());
    let mut kept = named.map(|(at, _)| at.saturating_sub(around)..at + NOWHERE.len() + around);
    kept.any(|kept| place.start < kept.end && kept.start < place.end.max(place.start + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_a_function_of_its_file_and_its_number() {
        let file = b"{\"schema\": 1, \"list\": [1, 2.5, -3e7], \"name\": \"x\"}".repeat(20);
        let mutants: Vec<Vec<u8>> = (0..200).map(|seed| mutant(&file, seed)).collect();
        assert_eq!(mutants, (0..200).map(|seed| mutant(&file, seed)).collect::<Vec<_>>());
        let same = mutants.iter().filter(|mutant| **mutant == file).count();
        assert!(same < 20, "{same} are no mutants");
        assert!(mutants.iter().all(|mutant| mutant.len() <= file.len() + GROWTH_MAX));
        for seed in 0..100 {
            mutant(b"", seed);
            mutant(b"1", seed);
        }
    }

    #[test]
    fn the_server_that_is_not_there_stays() {
        let file = format!("schema = 1\nseed = 5\nservers = [\"{NOWHERE}\"]\ntimeout_ns = 1000\n");
        for seed in 0..2_000 {
            let mutant = String::from_utf8_lossy(&mutant(file.as_bytes(), seed)).into_owned();
            assert!(mutant.contains(&format!("[\"{NOWHERE}\"]")), "{seed}: {mutant}");
        }
    }
}
