//! What a simulated network does to connections, and the chance that decides on it.

use pummel_logic::rng::{Stream, below, unit};
use pummel_logic::time::{MICROSECOND, Nanos};

/// What the network does to connections. Chances are between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkConditions {
    /// Shortest and longest time that bytes are on their way.
    pub delay_ns: (Nanos, Nanos),
    /// That bytes are cut: each time they are put on the way, and each time they are read.
    pub cut: f64,
    /// That a send is short although the socket has room.
    pub short_send: f64,
    /// What a socket holds of bytes that are on their way.
    pub send_buffer_bytes: usize,
    /// That a connection is refused.
    pub refuse: f64,
    /// That a piece on its way to the client is lost and the connection is reset instead.
    pub reset: f64,
    /// That a piece on its way to the client is lost and the connection is closed in order instead.
    pub close: f64,
    /// That a read has no stamp.
    pub unstamped: f64,
    /// That a datagram is lost, on its way there or back.
    pub lose: f64,
    /// That a datagram takes longer, so that others overtake it.
    pub hold: f64,
    /// That a datagram comes twice.
    pub twice: f64,
}

impl NetworkConditions {
    /// Nothing but a delay of 15 us: a loopback on a good day.
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

    /// Datagrams are lost, overtaken and doubled; streams do not notice.
    pub fn lossy() -> NetworkConditions {
        NetworkConditions {
            delay_ns: (5 * MICROSECOND, 300 * MICROSECOND),
            lose: 0.02,
            hold: 0.05,
            twice: 0.02,
            ..NetworkConditions::calm()
        }
    }

    /// Bytes come late, in pieces, and by small sends; nothing is lost.
    pub fn rough() -> NetworkConditions {
        NetworkConditions {
            delay_ns: (5 * MICROSECOND, 300 * MICROSECOND),
            cut: 0.4,
            short_send: 0.3,
            ..NetworkConditions::calm()
        }
    }

    /// As [`NetworkConditions::rough`], and connections break.
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

/// All chance in a simulation, in the order of its use.
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

    /// How much of `len_bytes` goes at once: all, or with the chance `cut` at least 1 byte.
    pub(super) fn piece(&mut self, len_bytes: usize, cut: f64) -> usize {
        if len_bytes > 1 && self.happens(cut) {
            1 + below(self.bits(), len_bytes as u64 - 1) as usize
        } else {
            len_bytes
        }
    }
}
