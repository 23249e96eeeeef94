//! The conditions of a simulated network, and the chance that decides on faults.

use pummel_logic::rng::{Stream, below, unit};
use pummel_logic::time::{MICROSECOND, Nanos};

/// The delays and faults of a simulated network. Chances are between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkConditions {
    /// Shortest and longest delay of bytes, in nanoseconds.
    pub delay_ns: (Nanos, Nanos),
    /// The chance that bytes are cut, each time they are sent and each time they are read.
    pub cut: f64,
    /// The chance that a send is short although the socket has room.
    pub short_send: f64,
    /// Most bytes on the way that a socket holds.
    pub send_buffer_bytes: usize,
    /// The chance that a connection is refused.
    pub refuse: f64,
    /// The chance that a piece to the client is lost and the connection is reset.
    pub reset: f64,
    /// The chance that a piece to the client is lost and the connection is closed in order.
    pub close: f64,
    /// The chance that a read has no stamp.
    pub unstamped: f64,
    /// The chance that a datagram is lost, in either direction.
    pub lose: f64,
    /// The chance that a datagram is delayed, so that others overtake it.
    pub hold: f64,
    /// The chance that a datagram arrives twice.
    pub twice: f64,
}

impl NetworkConditions {
    /// Conditions without faults, with a delay of 15 us, as on loopback.
    pub fn calm() -> NetworkConditions {
        NetworkConditions {
            delay_ns: (15 * MICROSECOND, 15 * MICROSECOND),
            cut: 0.0,
            short_send: 0.0,
            send_buffer_bytes: 64 * 1024,
            refuse: 0.0,
            reset: 0.0,
            close: 0.0,
            unstamped: 0.0,
            lose: 0.0,
            hold: 0.0,
            twice: 0.0,
        }
    }

    /// Conditions in which datagrams are lost, overtaken and doubled, and streams have no faults.
    pub fn lossy() -> NetworkConditions {
        NetworkConditions {
            delay_ns: (5 * MICROSECOND, 300 * MICROSECOND),
            lose: 0.02,
            hold: 0.05,
            twice: 0.02,
            ..NetworkConditions::calm()
        }
    }

    /// Conditions in which bytes come late, in pieces and by short sends, and none is lost.
    pub fn rough() -> NetworkConditions {
        NetworkConditions {
            delay_ns: (5 * MICROSECOND, 300 * MICROSECOND),
            cut: 0.4,
            short_send: 0.3,
            ..NetworkConditions::calm()
        }
    }

    /// The conditions of [`NetworkConditions::rough`], in which connections also break.
    pub fn harsh() -> NetworkConditions {
        NetworkConditions {
            refuse: 0.05,
            reset: 0.01,
            close: 0.01,
            unstamped: 0.01,
            ..NetworkConditions::rough()
        }
    }
}

/// The chance of a simulation: its draws in the order of their use.
pub(super) struct Chance {
    stream: Stream,
    drawn: u64,
}

impl Chance {
    /// The chance of a simulation with this seed.
    pub(super) fn new(seed: u64) -> Chance {
        Chance { stream: Stream::from_seed(seed), drawn: 0 }
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.drawn += 1;
        self.stream.draw(self.drawn)
    }

    pub(super) fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && unit(self.bits()) < chance
    }

    pub(super) fn between(&mut self, (low, high): (Nanos, Nanos)) -> Nanos {
        if low == high { low } else { low + below(self.bits(), high - low + 1) }
    }

    /// Returns the number of `len_bytes` that go at once: all, or, with the chance `cut`, at least 1 and not all.
    pub(super) fn piece(&mut self, len_bytes: usize, cut: f64) -> usize {
        if len_bytes > 1 && self.happens(cut) {
            1 + below(self.bits(), len_bytes as u64 - 1) as usize
        } else {
            len_bytes
        }
    }
}
