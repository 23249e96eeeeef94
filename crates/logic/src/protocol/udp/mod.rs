//! memcached over UDP: the frame in front of every datagram (`protocol.txt`, section "UDP protocol"), and the
//! assembly of replies from datagrams that come in any order.
//!
//! A reply to a read of several keys has one of two framings. Servers before 1.6 divide the whole reply into
//! datagrams with consecutive numbers. Since 1.6 each key that was found is a message with numbers of its own; the
//! `END` follows the item of the last key, or is a message of its own if the last key was not found; a first key that
//! was not found leaves a datagram without bytes and with a total of 0. The datagrams of a reply show which framing
//! it has, so the version of the server need not be known.

mod frame;
mod gathering;
mod shape;

use std::collections::VecDeque;

pub use self::frame::Frame;
pub use self::gathering::{Gathered, Gathering, Taken};
pub use self::shape::{Shape, shape};

/// Longest datagram that servers send and that is sent to them, frame included: what fits in one Ethernet frame.
/// memcached cuts replies so, and takes a request only when it is whole in one datagram.
pub const DATAGRAM_MAX_BYTES: usize = 1400;

crate::counters! {
    /// Counters of datagrams: those of memaslap, stray datagrams and unclear misses.
    #[serde(deny_unknown_fields)]
    pub struct DatagramCounts {
        /// Datagrams that were missing when a request was given up: those that are known to be missing, at least one for
        /// each request.
        pub packet_drop: u64,
        /// Datagrams that did not arrive in order: overtaken by others, received twice, or stray.
        pub packet_disorder: u64,
        /// Requests that were given up because their replies were not whole at `--timeout`; in the measured
        /// phase they are `timeout` errors. The connection stays.
        pub udp_timeout: u64,
        /// Datagrams that belong to no waiting request, a part of `packet_disorder`: replies to requests that
        /// had been given up, copies, and datagrams without a frame.
        pub stray: u64,
        /// Keys that count as misses although lost datagrams would look the same: memcached 1.6 answers a
        /// multi-get with a message for each key that it finds, and does not say how many there are.
        pub unclear_misses: u64,
    }
}

/// Request numbers that are not used again, because a late reply to a request that was given up may still come. The
/// oldest number is released when there are more than [`Abandoned::MAX`].
#[derive(Debug, Default)]
pub struct Abandoned {
    order: VecDeque<u16>,
    /// One bit for each number; allocated when the first number is kept back.
    bits: Option<Box<[u64; 1024]>>,
}

impl Abandoned {
    /// Most numbers that are kept back.
    pub const MAX: usize = 1 << 15;

    /// Keeps a number back.
    pub fn insert(&mut self, number: u16) {
        if self.contains(number) {
            return;
        }
        if self.order.len() == Abandoned::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.flip(oldest);
        }
        self.order.push_back(number);
        self.flip(number);
    }

    /// Whether a number is kept back.
    #[inline]
    pub fn contains(&self, number: u16) -> bool {
        let bit = 1 << (number % 64);
        self.bits.as_ref().is_some_and(|bits| bits[usize::from(number / 64)] & bit != 0)
    }

    fn flip(&mut self, number: u16) {
        self.bits.get_or_insert_with(|| Box::new([0; 1024]))[usize::from(number / 64)] ^= 1 << (number % 64);
    }
}
