//! The built-in server over UDP: requests in datagrams are carried out, and the replies become framed datagrams.
//!
//! Follows memcached's `protocol.txt`, "UDP protocol", and what memcached 1.6.18 and earlier versions send.

use std::collections::BTreeMap;

use super::context::ServerSession;
use super::contract::{ParserStep, Silence};
use super::dialects::{Dialect, DialectParser};
use super::fault::{CountedFault, FaultVerdict};
use super::owed::{OwedReply, ReplyBuffer};
use super::{Server, ended};
use pummel_logic::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};

/// Delay of a reordered datagram after its due time, in nanoseconds.
const OVERTAKEN_NS: Nanos = 2 * MILLISECOND;

/// Memory of the datagrams that wait in a queue, at most. A sender that is not slowed down by replies may ask for any number
/// of them, and one datagram for a large value thousands of times.
const QUEUE_MAX_BYTES: usize = 64 << 20;

/// Number of the connection in notes on datagrams, which belong to none.
const NO_CONNECTION: u64 = 0;

/// Way in which replies are put into datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// All that one datagram asked for is answered by one message, which is cut, as memcached did before 1.6.0.
    Stream,
    /// Each key that a read found is a message of its own, with the end of the reply in the last or by itself, as
    /// memcached does since 1.6.0.
    #[default]
    PerKey,
}

/// Datagrams that wait to be sent. `P` is the caller's name of a peer.
#[derive(Debug)]
pub struct DatagramQueue<P> {
    framing: Framing,
    /// Datagrams by the time at which they are due and the order in which they were written.
    waiting: BTreeMap<(Nanos, u64), OutgoingDatagram<P>>,
    written: u64,
    /// Memory of the datagrams that wait.
    held_bytes: usize,
}

/// A datagram that waits to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingDatagram<P> {
    /// The peer that the datagram is sent to.
    pub to: P,
    /// The datagram, with its frame.
    pub bytes: Vec<u8>,
    /// The replies that are complete when the datagram was sent.
    owed: Vec<OwedReply>,
}

impl<P> DatagramQueue<P> {
    /// An empty queue.
    pub fn new(framing: Framing) -> DatagramQueue<P> {
        DatagramQueue { framing, waiting: BTreeMap::new(), written: 0, held_bytes: 0 }
    }

    /// Time at which the next datagram may leave, in nanoseconds; [`NEVER`] if none waits.
    pub fn next_due(&self) -> Nanos {
        self.waiting.first_key_value().map_or(NEVER, |((due, _), _)| *due)
    }

    /// Whether the queue has room for replies of `len` bytes.
    fn has_room_for(&self, len: usize) -> bool {
        self.held_bytes.saturating_add(len) <= QUEUE_MAX_BYTES
    }

    fn write(&mut self, due: Nanos, datagram: OutgoingDatagram<P>) {
        self.written += 1;
        self.held_bytes += datagram.held_bytes();
        self.waiting.insert((due, self.written), datagram);
    }

    /// Takes the first datagram out if it is due by `now`.
    fn take_due(&mut self, now: Nanos) -> Option<OutgoingDatagram<P>> {
        let datagram = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?.remove();
        self.held_bytes -= datagram.held_bytes();
        Some(datagram)
    }
}

impl<P> OutgoingDatagram<P> {
    /// The memory of the datagram.
    fn held_bytes(&self) -> usize {
        size_of::<((Nanos, u64), OutgoingDatagram<P>)>() + self.bytes.len() + size_of_val(&*self.owed)
    }
}

impl Server {
    /// Carries out the requests of a datagram that arrived at `now`. A datagram without a frame or with a part of a
    /// request is dropped, as memcached does. So is a reply for which the queue has no room, before it is made.
    pub fn handle_datagram<P: Clone>(
        &mut self,
        queue: &mut DatagramQueue<P>,
        from: &P,
        datagram: &[u8],
        now: Nanos,
    ) {
        self.stores[0].counts.bytes_read += datagram.len() as u64;
        let Some((frame, mut input)) = Frame::decode(datagram) else { return };
        if frame.total != 1 || self.faults.refuse {
            return;
        }
        let (mut parser, mut session) = (DialectParser::new(Dialect::Text), ServerSession::default());
        let item_max_bytes = self.stores[0].limits().item_max_bytes;
        let (mut message, mut all_owed) = (Vec::new(), Vec::new());
        while let ParserStep::Request(request) = parser.next(&mut input, item_max_bytes) {
            let (verdict, owed) = self.execute(&request, &mut session, now);
            if request.silence() == Silence::Always || self.reply.is_empty() {
                self.note(ended(NO_CONNECTION, owed.without_reply(), None));
                continue;
            }
            if !queue.has_room_for(message.len() + self.reply.len()) {
                self.note(ended(NO_CONNECTION, owed, None));
                continue;
            }
            let mut bytes = self.reply.to_bytes();
            if verdict == FaultVerdict::Half {
                bytes.truncate(bytes.len() / 2);
            }
            if queue.framing == Framing::Stream {
                message.append(&mut bytes);
                all_owed.push(owed);
            } else {
                let messages = parts_of(&self.reply, &bytes);
                self.send(queue, frame.request, from, &messages, vec![owed]);
            }
        }
        if !all_owed.is_empty() {
            self.send(queue, frame.request, from, &[&message], all_owed);
        }
    }

    /// The next datagram that is due by `now`, which counts as sent at `now`.
    pub fn poll_datagram<P>(
        &mut self,
        queue: &mut DatagramQueue<P>,
        now: Nanos,
    ) -> Option<OutgoingDatagram<P>> {
        let datagram = queue.take_due(now)?;
        self.stores[0].counts.bytes_written += datagram.bytes.len() as u64;
        for &owed in &datagram.owed {
            self.note(ended(NO_CONNECTION, owed, owed.whole.then_some(now)));
        }
        Some(datagram)
    }

    /// Takes in that the datagrams that wait in a queue are not sent any more.
    pub fn handle_queue_closed<P>(&mut self, queue: DatagramQueue<P>) {
        for owed in queue.waiting.into_values().flat_map(|datagram| datagram.owed) {
            self.note(ended(NO_CONNECTION, owed, None));
        }
    }

    /// Cuts messages into datagrams and applies the faults of datagrams.
    fn send<P: Clone>(
        &mut self,
        queue: &mut DatagramQueue<P>,
        request: u16,
        to: &P,
        messages: &[&[u8]],
        owed: Vec<OwedReply>,
    ) {
        let due = owed.iter().map(OwedReply::due).max().unwrap_or(0);
        let number = owed.last().map_or(0, |owed| owed.request);
        let mut datagrams: Vec<Vec<u8>> = messages.iter().flat_map(|message| cut(request, message)).collect();
        let last = datagrams.len().saturating_sub(1);
        let mut owed = Some(owed);
        for (n, bytes) in datagrams.drain(..).enumerate() {
            let owed = owed.take_if(|_| n == last).unwrap_or_default();
            let datagram = OutgoingDatagram { to: to.clone(), bytes, owed };
            let fault = self.faults.judge_datagram();
            if let Some(fault) = fault {
                self.note_fault(fault.name(), NO_CONNECTION, number, None, String::new());
            }
            match fault {
                Some(CountedFault::UdpReorder) => queue.write(due.saturating_add(OVERTAKEN_NS), datagram),
                Some(CountedFault::UdpDuplicate) => {
                    let again = OutgoingDatagram { owed: Vec::new(), ..datagram.clone() };
                    queue.write(due, datagram);
                    queue.write(due, again);
                }
                Some(CountedFault::UdpDrop) => {
                    for owed in datagram.owed {
                        self.note(ended(NO_CONNECTION, owed, None));
                    }
                }
                None => queue.write(due, datagram),
                Some(other) => unreachable!("{} is no fault of datagrams", other.name()),
            }
        }
    }
}

/// The messages of a reply where each key is one.
fn parts_of<'b>(reply: &ReplyBuffer, bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let ends = reply.parts().iter().copied().chain([bytes.len()]);
    let mut from = 0;
    ends.map(|end| {
        let end = end.min(bytes.len());
        &bytes[std::mem::replace(&mut from, end)..end]
    })
    .collect()
}

/// The datagrams of a message. An empty message is a frame that announces no datagrams.
fn cut(request: u16, message: &[u8]) -> Vec<Vec<u8>> {
    const PAYLOAD_MAX_BYTES: usize = DATAGRAM_MAX_BYTES - Frame::LEN_BYTES;
    if message.is_empty() {
        return vec![Frame { request, sequence: 0, total: 0 }.encode().to_vec()];
    }
    let total = message.len().div_ceil(PAYLOAD_MAX_BYTES);
    let framed = |(sequence, payload): (usize, &[u8])| {
        // A reply of more datagrams than the frame can count is numbered from 0 again.
        let frame = Frame { request, sequence: sequence as u16, total: total as u16 };
        [&frame.encode()[..], payload].concat()
    };
    message.chunks(PAYLOAD_MAX_BYTES).enumerate().map(framed).collect()
}
