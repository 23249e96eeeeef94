//! The records of a run: how the key, the value and the expiry of each of them are made.

use crate::dist::Dist;
use crate::plan::Data;
use crate::protocol::{Value, Verb, lines};
use crate::rng::{mix, unit};
use crate::workload::key::{KeyMaker, Space, Spaces};
use crate::workload::value::{COUNTER, HeaderBuffer, PIECES_LIMIT_BYTES, ValueMaker, Version};

/// The longest expiry that memcached takes as a span and not as a date (`protocol.txt`, section "Expiration times").
const EXPIRY_MAX_S: u64 = 30 * 24 * 60 * 60;

/// Names the draws by which expiries differ among all that come from the bits of one request.
const JITTER: u64 = 0x6a_6974;

/// Keys, values and expiries of the records, which are constant for a run.
#[derive(Debug)]
pub(crate) struct Records {
    pub(super) keys: KeyMaker,
    /// Text protocols can carry every key.
    pub(super) keys_are_text: bool,
    pub(super) values: ValueMaker,
    pub(super) spaces: Spaces,
    expiry_s: Dist,
    /// Greatest share of itself by which an expiry is longer or shorter.
    expiry_jitter: f64,
    /// Counters are stored as numbers alone, without the blanks behind them.
    pub(super) bare_counters: bool,
}

/// A request's write, beside its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    /// Index of the key.
    pub(crate) key: u64,
    pub(crate) version: Version,
    /// CAS unique that the server compares; 0 for verbs other than cas.
    pub(crate) cas: u64,
    /// Random bits for the expiry, where the expiry is drawn.
    pub(crate) expiry_bits: u64,
    /// Random bits for the length, where every write draws its own.
    pub(crate) size_bits: u64,
}

impl Records {
    /// The records with these keys and values, which expire as `data` says; counters are loaded as bare numbers or padded.
    pub(super) fn new(keys: KeyMaker, values: ValueMaker, data: &Data, bare_counters: bool) -> Records {
        Records {
            spaces: keys.spaces(),
            keys_are_text: are_text(&keys),
            keys,
            values,
            expiry_s: data.expiry_s.clone(),
            expiry_jitter: f64::from(data.style.expiry_jitter_percent) / 100.0,
            bare_counters,
        }
    }

    /// Number of records in one space.
    pub(super) fn count(&self) -> u64 {
        self.spaces.records()
    }

    /// The index of a space's record.
    #[inline]
    pub(crate) fn index(&self, space: Space, record: u64) -> u64 {
        self.spaces.index(space, record)
    }

    /// The index of the record at this place, when the records of these spaces stand one after the other, and those of the last space
    /// again and again.
    #[inline]
    pub(super) fn index_at(&self, spaces: &[Space], place: u64) -> u64 {
        let records = self.count();
        let turn = usize::try_from(place / records).unwrap_or(usize::MAX);
        self.index(spaces[turn.min(spaces.len() - 1)], place % records)
    }

    /// Bytes of one piece that is appended to or prepended to the value under this key.
    pub(crate) fn piece_bytes(&self, key: u64) -> u64 {
        self.values.len_of(key) as u64
    }

    /// The key that client `number` of `clients` appends its pieces to in its turn, and how many bytes of pieces the
    /// client may store under it. Each client has keys of its own as far as there are enough.
    pub(super) fn piece_key(&self, number: u64, turn: u64, clients: u64) -> (u64, u64) {
        let records = self.count();
        let place = (number + turn * clients) % records;
        (self.index(Space::Pieces, place), PIECES_LIMIT_BYTES / clients.div_ceil(records))
    }

    /// The value of a write; empty where its verb carries none.
    #[inline]
    pub(super) fn value_of<'a>(&'a self, write: &Write, header: &'a mut HeaderBuffer) -> Value<'a> {
        match write.verb {
            Verb::Set if self.bare_counters && self.spaces.space(write.key) == Space::Counters => {
                Value::plain(COUNTER.trim_ascii_end())
            }
            verb if verb.stores() && self.values.draws_lengths() => {
                let len = self.values.drawn_len(write.size_bits).unwrap_or(0);
                self.values.value_of_len(write.key, write.version, len, header)
            }
            verb if verb.stores() || verb.is_command() => self.values.value(write.key, write.version, header),
            _ => Value::default(),
        }
    }

    /// Whether requests of this verb carry an expiry that has to be drawn.
    #[inline]
    pub(crate) fn sets_expiry(&self, verb: Verb) -> bool {
        (!matches!(self.expiry_s, Dist::Fixed(_)) || self.expiry_jitter > 0.0) && verb.has_expiry()
    }

    /// Whether a write of this verb draws its own length.
    #[inline]
    pub(crate) fn draws_length(&self, verb: Verb) -> bool {
        verb.stores() && self.values.draws_lengths()
    }

    /// The expiry of a request of this verb in seconds, drawn from `bits`; 0 where the verb carries none.
    #[inline]
    pub(super) fn expiry_of(&self, verb: Verb, bits: u64) -> i64 {
        match (&self.expiry_s, verb.has_expiry()) {
            (_, false) => 0,
            (dist, true) if self.expiry_jitter > 0.0 => {
                jittered(dist.draw_size(bits, 0, EXPIRY_MAX_S), self.expiry_jitter, bits)
            }
            (Dist::Fixed(seconds), true) => *seconds as i64,
            (drawn, true) => drawn.draw_size(bits, 0, EXPIRY_MAX_S) as i64,
        }
    }
}

/// An expiry in seconds that is longer or shorter by up to a share of itself, which follows from `bits`; none stays none, and no
/// other becomes none.
fn jittered(expiry_s: u64, jitter: f64, bits: u64) -> i64 {
    if expiry_s == 0 {
        return 0;
    }
    let factor = 1.0 + jitter * (2.0 * unit(mix(&[bits, JITTER])) - 1.0);
    libm::round(expiry_s as f64 * factor).clamp(1.0, EXPIRY_MAX_S as f64) as i64
}

/// Whether text protocols can carry every key: none has a blank or a control character, which only the prefix could bring.
fn are_text(keys: &KeyMaker) -> bool {
    keys.prefix().is_empty() || lines::is_key(keys.prefix())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::key::{KEY_MAX_BYTES, KeyBuffer};

    #[test]
    fn jitter_spreads_expiries_evenly_about_what_they_would_be() {
        let mut data = Data { expiry_s: Dist::Fixed(1_000.0), ..Data::default() };
        let draws = 20_000_u64;
        let drawn = |data: &Data| {
            let records =
                Records::new(KeyMaker::new(data).unwrap(), ValueMaker::new(data).unwrap(), data, false);
            assert_eq!(records.sets_expiry(Verb::Set), data.style.expiry_jitter_percent > 0);
            let of = |draw| records.expiry_of(Verb::Set, mix(&[draw]));
            (0..draws).map(of).collect::<Vec<i64>>()
        };
        assert!(drawn(&data).iter().all(|expiry_s| *expiry_s == 1_000));
        data.style.expiry_jitter_percent = 10;
        let expiries = drawn(&data);
        assert!(expiries.iter().all(|expiry_s| (900..=1_100).contains(expiry_s)));
        let mean = expiries.iter().sum::<i64>() as f64 / draws as f64;
        assert!((mean - 1_000.0).abs() < 2.5, "{mean}");
        for (low, high) in [(900, 950), (975, 1_025), (1_050, 1_100)] {
            let share = expiries.iter().filter(|expiry_s| (low..high).contains(*expiry_s)).count() as f64;
            assert!((share / draws as f64 - 0.25).abs() < 0.02, "{low}: {share}");
        }
        // An expiry of a second stays one, and none stays none.
        for (expiry_s, least, most) in [(1.0, 1, 2), (0.0, 0, 0)] {
            (data.expiry_s, data.style.expiry_jitter_percent) = (Dist::Fixed(expiry_s), 100);
            assert!(drawn(&data).iter().all(|expiry_s| (least..=most).contains(expiry_s)), "{expiry_s}");
        }
    }

    #[test]
    fn keys_are_text_where_their_prefix_is() {
        let prefixes =
            [("", true), ("user:", true), ("ü", true), ("a b", false), ("a\n", false), ("\u{7f}", false)];
        for (prefix, is_text) in prefixes {
            let data = Data {
                records: 1_000,
                seed: 0,
                key_prefix: prefix.to_owned(),
                key_size: Dist::Fixed(20.0),
                value_size: Dist::Fixed(200.0),
                expiry_s: Dist::Fixed(0.0),
                value_classes: Vec::new(),
                value_compress: 1.0,
                value_filler: None,
                key_tag: None,
                slots: Vec::new(),
                first_key: 0,
                style: crate::plan::Style::default(),
            };
            let keys = KeyMaker::new(&data).unwrap();
            assert_eq!(are_text(&keys), is_text, "{prefix:?}");
            let mut key: KeyBuffer = [0; KEY_MAX_BYTES];
            assert_eq!(lines::is_key(keys.key(999, &mut key)), is_text, "{prefix:?}");
        }
    }
}
