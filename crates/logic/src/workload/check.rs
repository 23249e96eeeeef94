//! Checks values as they pass, in pieces of any size, without keeping them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::workload::key::Space;
use crate::workload::value::{
    COUNTER_MAX_BYTES, HEADER_BYTES, Header, HeaderBuffer, MAGIC, ValueMaker, Version,
};

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Damage {
    /// It does not carry the mark of a frame.
    Magic,
    /// Its tag does not fit: the header was changed, or it is another key's value, or that of other data.
    Tag,
    /// It is longer or shorter than its frames say.
    Length,
    /// A byte behind the header differs from what was written.
    Bytes,
    /// It is too short for a frame, and not what short values of this key begin with.
    Prefix,
    /// It is not a number of 64 bits followed by spaces.
    Counter,
}

impl Damage {
    /// What to tell people.
    pub fn words(self) -> &'static str {
        match self {
            Damage::Magic => "not a value of this program, or its header was changed",
            Damage::Tag => "header changed, or the value of another key or of another data seed",
            Damage::Length => "longer or shorter than it was written",
            Damage::Bytes => "bytes changed",
            Damage::Prefix => "a short value that was changed, or the rest of a longer one",
            Damage::Counter => "not a number followed by spaces",
        }
    }
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A whole write of this key, by whoever holds this data seed.
    Good(Version),
    /// Whole pieces of this key; that one is missing or there twice cannot be seen.
    Pieces,
    /// A number; that it is another number than it should be cannot be seen.
    Counter,
    /// Too short for a frame: its bytes are right as far as they go. That it is older than it should be, or that its
    /// end is missing, cannot be seen.
    Short,
    /// Not what was written.
    Bad(Damage),
}

/// One value that is passing by.
///
/// The tag is computed anew with the key that was *asked for*: any whole write of that key by any process with this
/// data seed is good, in whatever order writes came; a changed bit, a cut value and another key's value are not. Where
/// this data's value for the key would be a frame, an empty value is a cut one.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    index: u64,
    /// Bytes of the value that are still to come.
    left: u64,
    /// How many of them belong to the frame whose header has passed.
    frame_left: u64,
    /// Where in the block the next of them is found.
    block_at: u64,
    version: Version,
    /// Bytes that had to be kept because they mean something only together.
    kept: HeaderBuffer,
    kept_len: u8,
    form: Form,
    damage: Option<Damage>,
}

/// What a value should consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Frame,
    Pieces,
    Counter,
    Short,
}

impl Check {
    /// A value of `size` bytes begins that was asked for with the key of `index`.
    pub fn begin(values: &ValueMaker, index: u64, size: u64) -> Check {
        let short = size < HEADER_BYTES as u64;
        let (form, damage) = match values.spaces().space(index) {
            Space::Plain if !short => (Form::Frame, None),
            Space::Plain if size == 0 && values.len_of(index) >= HEADER_BYTES => {
                (Form::Short, Some(Damage::Length))
            }
            Space::Plain => (Form::Short, None),
            Space::Pieces => (Form::Pieces, short.then_some(Damage::Length)),
            Space::Counters => {
                let fits = (1..=COUNTER_MAX_BYTES as u64).contains(&size);
                (Form::Counter, (!fits).then_some(Damage::Counter))
            }
        };
        Check {
            index,
            left: size,
            frame_left: 0,
            block_at: 0,
            version: Version::LOADED,
            kept: [0; HEADER_BYTES],
            kept_len: 0,
            form,
            damage,
        }
    }

    /// Some of its bytes pass.
    #[inline]
    pub fn body(&mut self, values: &ValueMaker, mut bytes: &[u8]) {
        if bytes.len() as u64 > self.left {
            self.damage.get_or_insert(Damage::Length);
        }
        while !bytes.is_empty() && self.damage.is_none() {
            let taken = if self.frame_left > 0 {
                self.frame_bytes(values, bytes)
            } else {
                self.header_bytes(values, bytes)
            };
            bytes = &bytes[taken..];
            self.left -= taken as u64;
        }
        self.left = self.left.saturating_sub(bytes.len() as u64);
    }

    /// It is over.
    pub fn end(self, values: &ValueMaker) -> Verdict {
        if let Some(damage) = self.damage {
            return Verdict::Bad(damage);
        }
        let kept = &self.kept[..usize::from(self.kept_len)];
        match self.form {
            _ if self.left > 0 || self.frame_left > 0 => Verdict::Bad(Damage::Length),
            Form::Frame => Verdict::Good(self.version),
            Form::Pieces if kept.is_empty() => Verdict::Pieces,
            Form::Pieces => Verdict::Bad(Damage::Length),
            Form::Counter if is_counter(kept) => Verdict::Counter,
            Form::Counter => Verdict::Bad(Damage::Counter),
            Form::Short if values.short(self.index).starts_with(kept) => Verdict::Short,
            Form::Short => Verdict::Bad(Damage::Prefix),
        }
    }

    /// Compares bytes behind a header with the block; returns how many.
    #[inline]
    fn frame_bytes(&mut self, values: &ValueMaker, bytes: &[u8]) -> usize {
        let count = self.frame_left.min(bytes.len() as u64) as usize;
        if !values.block_reads(self.block_at, &bytes[..count]) {
            self.damage = Some(Damage::Bytes);
        }
        self.block_at += count as u64;
        self.frame_left -= count as u64;
        count
    }

    /// Keeps bytes until they make a header, which is then judged; returns how many. Short values and counters never
    /// get that far and are judged at the end.
    #[inline]
    fn header_bytes(&mut self, values: &ValueMaker, bytes: &[u8]) -> usize {
        let have = usize::from(self.kept_len);
        let count = bytes.len().min(HEADER_BYTES - have);
        self.kept[have..have + count].copy_from_slice(&bytes[..count]);
        self.kept_len += count as u8;
        if usize::from(self.kept_len) == HEADER_BYTES {
            self.kept_len = 0;
            self.header(values, self.left - count as u64);
        }
        count
    }

    /// Judges a whole header, behind which the value has `left` bytes.
    #[inline]
    fn header(&mut self, values: &ValueMaker, left: u64) {
        let header = Header::from_bytes(&self.kept);
        let body = u64::from(header.len_bytes).checked_sub(HEADER_BYTES as u64);
        let spot = values.spot(self.index, header.version);
        self.damage = match body {
            _ if header.magic != MAGIC => Some(Damage::Magic),
            _ if header.tag != spot.tag(header.len_bytes) => Some(Damage::Tag),
            Some(body) if body == left || self.form == Form::Pieces && body < left => None,
            _ => Some(Damage::Length),
        };
        self.version = header.version;
        self.frame_left = body.unwrap_or(0);
        self.block_at = spot.offset();
    }
}

/// Whether bytes are a number of 64 bits, as memcached writes it, and then only spaces.
fn is_counter(bytes: &[u8]) -> bool {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = bytes.split_at(digits);
    let fits =
        number.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    let plain = digits > 0 && (number[0] != b'0' || digits == 1);
    plain && fits.is_some() && rest.iter().all(|&byte| byte == b' ')
}

/// How many keys with failures are told apart.
const FAILED_KEYS_MAX: usize = 1_000_000;

/// How many failures are described.
const FIRST_MAX: usize = 10;

/// A failure that is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Index of the key.
    pub index: u64,
    /// What was wrong when the key failed first.
    pub damage: Damage,
}

/// What all checks found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Values checked.
    pub checked: u64,
    /// Of these, values that were not what was written.
    pub failed: u64,
    /// Of these, values too short for a frame, see [`Verdict::Short`].
    pub short: u64,
    /// Of these, counters, see [`Verdict::Counter`].
    pub counters: u64,
    /// Of these, whole values that were certainly older than they should have been; they are not in `failed`.
    pub stale: u64,
    /// Keys with failures, up to a million of them.
    failed_keys: BTreeSet<u64>,
    /// Whether there were more.
    more_failed_keys: bool,
    first: Vec<Failure>,
}

impl Tally {
    /// Counts a verdict about the key of `index`.
    pub fn count(&mut self, index: u64, verdict: Verdict) {
        self.checked += 1;
        match verdict {
            Verdict::Good(_) | Verdict::Pieces => {}
            Verdict::Counter => self.counters += 1,
            Verdict::Short => self.short += 1,
            Verdict::Bad(damage) => {
                self.failed += 1;
                if self.add_failed_key(index) {
                    self.describe(Failure { index, damage });
                }
            }
        }
    }

    /// Number of keys with failures, and whether it is exact; if not, there were at least so many.
    pub fn failed_keys(&self) -> (u64, bool) {
        (self.failed_keys.len() as u64, !self.more_failed_keys)
    }

    /// The first keys that failed, at most ten.
    pub fn first(&self) -> &[Failure] {
        &self.first
    }

    /// Adds what another worker found.
    pub fn merge(&mut self, other: &Tally) {
        self.checked += other.checked;
        self.failed += other.failed;
        self.short += other.short;
        self.counters += other.counters;
        self.stale += other.stale;
        for &failure in &other.first {
            if !self.failed_keys.contains(&failure.index) {
                self.describe(failure);
            }
        }
        for &index in &other.failed_keys {
            self.add_failed_key(index);
        }
        self.more_failed_keys |= other.more_failed_keys;
    }

    /// Remembers a key; says whether it is new.
    fn add_failed_key(&mut self, index: u64) -> bool {
        if self.failed_keys.len() < FAILED_KEYS_MAX {
            return self.failed_keys.insert(index);
        }
        self.more_failed_keys |= !self.failed_keys.contains(&index);
        false
    }

    fn describe(&mut self, failure: Failure) {
        if self.first.len() < FIRST_MAX {
            self.first.push(failure);
        }
    }
}
