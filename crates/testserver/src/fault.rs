//! The faults that the built-in server makes on request, to show how a client handles them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::contract::Silence;
use super::store::{ExpiryPolicy, Store};
use super::truth::Word;
use pummel_logic::rng::{Stream, below, mix};
use pummel_logic::time::{Nanos, SECOND, from_seconds, seconds};

pummel_logic::words! {
    /// A fault with a number N, which counts over the whole server, from 1: requests (all whose end it understood, those that
    /// ask for no reply included), values of at least one byte that it sends, or datagrams.
    pub enum CountedFault {
        /// Every Nth request closes its connection in place of an answer; what is owed before it is sent.
        CloseAfter = "close-after",
        /// From the Nth request on, no request is carried out or answered, on any connection.
        StallAfter = "stall-after",
        /// From the Nth request on, requests are carried out and answered with bytes that are no reply.
        GarbageAfter = "garbage-after",
        /// The reply to the Nth request ends in its middle, and nothing is answered any more.
        HalfReplyAfter = "half-reply-after",
        /// Every Nth request is not carried out, and answered by `SERVER_ERROR`.
        ErrorEvery = "error-every",
        /// One bit of every Nth value sent is wrong.
        Flip = "flip",
        /// Every Nth value sent is another key's.
        WrongKey = "wrong-key",
        /// Every Nth reply is in another dialect than its request.
        Mix = "mix",
        /// Every Nth datagram of replies is lost.
        UdpDrop = "udp-drop",
        /// Every Nth datagram of replies leaves so late that what follows it overtakes it.
        UdpReorder = "udp-reorder",
        /// Every Nth datagram of replies is sent twice.
        UdpDuplicate = "udp-duplicate",
    }
}

/// A fault, as `--fault` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// `KIND=N`: a fault that happens by a count.
    Counted(CountedFault, u64),
    /// `ignore-expiry`: items never expire.
    IgnoreExpiry,
    /// `early-expiry=SECONDS`: items that expire do so this much before their time.
    EarlyExpiry(Nanos),
    /// `refuse`: connections are accepted and reset at once.
    Refuse,
    /// `slow-bytes`: replies leave one byte at a time, [`SLOW_BYTE_GAP_NS`] apart.
    SlowBytes,
}

impl CountedFault {
    /// The fault with its number.
    pub fn at(self, n: u64) -> ServerFault {
        ServerFault::Counted(self, n)
    }
}

/// Time between two bytes of [`ServerFault::SlowBytes`].
pub const SLOW_BYTE_GAP_NS: Nanos = 100_000;

/// The kinds, as `--fault` accepts them.
pub const FAULT_KINDS: &str = "close-after=N, stall-after=N, garbage-after=N, half-reply-after=N, error-every=N, flip=N, \
     wrong-key=N, mix=N, ignore-expiry, early-expiry=SECONDS, refuse, slow-bytes, udp-drop=N, udp-reorder=N, udp-duplicate=N";

impl ServerFault {
    /// The word before the `=`.
    pub fn kind(self) -> &'static str {
        match self {
            ServerFault::Counted(fault, _) => fault.name(),
            ServerFault::IgnoreExpiry => "ignore-expiry",
            ServerFault::EarlyExpiry(_) => "early-expiry",
            ServerFault::Refuse => "refuse",
            ServerFault::SlowBytes => "slow-bytes",
        }
    }

    /// Whether the fault concerns datagrams alone.
    pub fn is_of_datagrams(self) -> bool {
        matches!(
            self,
            ServerFault::Counted(
                CountedFault::UdpDrop | CountedFault::UdpReorder | CountedFault::UdpDuplicate,
                _
            )
        )
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match *self {
            ServerFault::Counted(_, n) => write!(out, "{kind}={n}"),
            ServerFault::EarlyExpiry(early_ns) => write!(out, "{kind}={}", seconds(early_ns)),
            ServerFault::IgnoreExpiry | ServerFault::Refuse | ServerFault::SlowBytes => out.write_str(kind),
        }
    }
}

impl FromStr for ServerFault {
    type Err = String;

    /// Reads `KIND` or `KIND=N`.
    ///
    /// # Errors
    /// Returns a sentence that says which faults and numbers are accepted.
    fn from_str(text: &str) -> Result<ServerFault, String> {
        let (kind, number) = match text.split_once('=') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let counted = || match number.and_then(|number| number.parse().ok()) {
            Some(n) if n > 0 => Ok(n),
            _ => Err(format!("{kind} needs a whole number of at least 1, as in {kind}=100")),
        };
        let fault = match kind {
            "early-expiry" => ServerFault::EarlyExpiry(seconds_of(kind, number)?),
            "ignore-expiry" => ServerFault::IgnoreExpiry,
            "refuse" => ServerFault::Refuse,
            "slow-bytes" => ServerFault::SlowBytes,
            _ => {
                let known = CountedFault::from_name(kind);
                let fault = known.ok_or_else(|| format!("unknown fault; expected {FAULT_KINDS}"))?;
                fault.at(counted()?)
            }
        };
        match (fault, number) {
            (ServerFault::IgnoreExpiry | ServerFault::Refuse | ServerFault::SlowBytes, Some(_)) => {
                Err(format!("{kind} takes no number"))
            }
            _ => Ok(fault),
        }
    }
}

fn seconds_of(kind: &str, number: Option<&str>) -> Result<Nanos, String> {
    match number.and_then(|number| number.parse::<f64>().ok()) {
        Some(span) if span > 0.0 && span < (u64::MAX / SECOND) as f64 => Ok(from_seconds(span)),
        _ => Err(format!("{kind} needs a number of seconds above 0, as in {kind}=2")),
    }
}

/// Treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultVerdict {
    /// The request is carried out and answered.
    Serve,
    /// The request is not carried out; the answer is an error.
    Fail,
    /// The request is carried out and answered with garbage.
    Garbage,
    /// The request is carried out and answered in another dialect.
    Foreign,
    /// The request is carried out, and its reply ends in the middle.
    Half,
    /// The request is neither carried out nor answered.
    Silence,
    /// The connection of the request is closed.
    Close,
}

/// The fault that a value was sent with, as the truth file records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tampering {
    pub(super) fault: CountedFault,
    pub(super) key: Vec<u8>,
    pub(super) detail: String,
}

/// All faults of a server, and the state of their counts.
#[derive(Debug)]
pub(super) struct Faults {
    /// The numbers of counted faults, by their places in [`CountedFault::ALL`].
    counted: [Option<u64>; CountedFault::COUNT],
    datagrams: u64,
    pub(super) expiry: ExpiryPolicy,
    pub(super) refuse: bool,
    pub(super) slow_bytes: bool,
    half_done: bool,
    values: u64,
    chance: Stream,
    pub(super) tamperings: Vec<Tampering>,
}

impl Faults {
    /// The faults that were asked for; of two of one kind the later counts.
    pub(super) fn new(asked: &[ServerFault], seed: u64) -> Faults {
        let mut faults = Faults {
            counted: [None; CountedFault::COUNT],
            datagrams: 0,
            expiry: ExpiryPolicy::Kept,
            refuse: false,
            slow_bytes: false,
            half_done: false,
            values: 0,
            chance: Stream::from_seed(mix(&[seed, 2])),
            tamperings: Vec::new(),
        };
        for &fault in asked {
            match fault {
                ServerFault::Counted(fault, n) => faults.counted[fault as usize] = Some(n),
                ServerFault::IgnoreExpiry => faults.expiry = ExpiryPolicy::Ignored,
                ServerFault::EarlyExpiry(early_ns) => faults.expiry = ExpiryPolicy::Early(early_ns),
                ServerFault::Refuse => faults.refuse = true,
                ServerFault::SlowBytes => faults.slow_bytes = true,
            }
        }
        faults
    }

    /// Decides the treatment of request `number`, counted from 1.
    pub(super) fn judge(&mut self, number: u64, silence: Silence) -> FaultVerdict {
        if self.is_reached(CountedFault::StallAfter, number) || self.half_done {
            return FaultVerdict::Silence;
        }
        if self.is_reached(CountedFault::HalfReplyAfter, number) && silence == Silence::Never {
            self.half_done = true;
            return FaultVerdict::Half;
        }
        if self.is_due(CountedFault::CloseAfter, number) {
            FaultVerdict::Close
        } else if self.is_reached(CountedFault::GarbageAfter, number) && silence != Silence::Always {
            FaultVerdict::Garbage
        } else if self.is_due(CountedFault::Mix, number) && silence != Silence::Always {
            FaultVerdict::Foreign
        } else if self.is_due(CountedFault::ErrorEvery, number) {
            FaultVerdict::Fail
        } else {
            FaultVerdict::Serve
        }
    }

    /// Whether a fault that lasts has begun by this number.
    fn is_reached(&self, fault: CountedFault, number: u64) -> bool {
        self.counted[fault as usize].is_some_and(|first| number >= first)
    }

    /// Whether a fault that repeats happens at this number.
    fn is_due(&self, fault: CountedFault, number: u64) -> bool {
        self.counted[fault as usize].is_some_and(|period| number.is_multiple_of(period))
    }

    /// Decides the fault of the next datagram.
    pub(super) fn judge_datagram(&mut self) -> Option<CountedFault> {
        self.datagrams += 1;
        let faults = [CountedFault::UdpDrop, CountedFault::UdpReorder, CountedFault::UdpDuplicate];
        faults.into_iter().find(|fault| self.is_due(*fault, self.datagrams))
    }

    /// Number of requests up to request `number` that were answered in another dialect than their own.
    pub(super) fn foreign_before(&self, number: u64) -> u64 {
        self.counted[CountedFault::Mix as usize].map_or(0, |period| number / period)
    }

    /// Whether the reply that ends in its middle was sent.
    pub(super) fn is_half_done(&self) -> bool {
        self.half_done
    }

    /// The value that is sent for `key` where `value` is stored.
    pub(super) fn tamper(&mut self, store: &Store, key: &[u8], value: Arc<[u8]>) -> Arc<[u8]> {
        if value.is_empty() {
            return value;
        }
        self.values += 1;
        let mut value = value;
        if self.is_due(CountedFault::WrongKey, self.values)
            && let Some(other) = store.other_than(key, self.chance.draw_sub(self.values, 1))
        {
            let detail = format!("from={}", Word(other.key()));
            self.tamperings.push(Tampering { fault: CountedFault::WrongKey, key: key.to_vec(), detail });
            value = other.value.clone();
        }
        if self.is_due(CountedFault::Flip, self.values) && !value.is_empty() {
            let bit = below(self.chance.draw(self.values), value.len() as u64 * 8) as usize;
            let mut bytes = value.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            self.tamperings.push(Tampering {
                fault: CountedFault::Flip,
                key: key.to_vec(),
                detail: format!("bit={bit}"),
            });
            value = Arc::from(bytes);
        }
        value
    }

    /// Bytes that no client can take for a reply: the first is not ASCII, the last two are a line end so that a client
    /// that waits for one gets it.
    pub(super) fn garbage(&self, number: u64, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..len.max(16)).map(|place| self.chance.draw_sub(number, place as u64 + 2) as u8).collect();
        bytes[0] |= 0x80;
        let end = bytes.len();
        bytes[end - 2..].copy_from_slice(b"\r\n");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for text in [
            "close-after=5",
            "stall-after=1",
            "garbage-after=7",
            "half-reply-after=3",
            "error-every=2",
            "flip=10",
            "wrong-key=4",
            "mix=6",
            "udp-drop=100",
            "udp-reorder=7",
            "udp-duplicate=9",
            "ignore-expiry",
            "early-expiry=1.5",
            "refuse",
            "slow-bytes",
        ] {
            assert_eq!(text.parse::<ServerFault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_faults_are_refused_with_what_is_accepted() {
        for (text, word) in [
            ("flip", "flip=100"),
            ("flip=0", "at least 1"),
            ("flip=-1", "at least 1"),
            ("refuse=3", "no number"),
            ("early-expiry=x", "seconds"),
            ("early-expiry=0", "above 0"),
            ("early-expiry=NaN", "above 0"),
            ("explode", "close-after=N"),
        ] {
            let error = text.parse::<ServerFault>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_half_reply_waits_for_a_request_that_has_a_reply() {
        let mut faults = Faults::new(&[CountedFault::HalfReplyAfter.at(2)], 0);
        assert_eq!(faults.judge(1, Silence::Never), FaultVerdict::Serve);
        assert_eq!(faults.judge(2, Silence::Always), FaultVerdict::Serve);
        assert_eq!(faults.judge(3, Silence::Never), FaultVerdict::Half);
        assert_eq!(faults.judge(4, Silence::Always), FaultVerdict::Silence);
    }

    #[test]
    fn garbage_begins_outside_ascii_and_ends_a_line() {
        let faults = Faults::new(&[], 9);
        for number in 0..100 {
            let bytes = faults.garbage(number, 5);
            assert!(bytes[0] >= 0x80 && bytes.ends_with(b"\r\n") && bytes.len() == 16);
        }
    }
}
