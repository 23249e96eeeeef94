//! memcached's UDP: the frame in front of every datagram (`protocol.txt`, section "UDP protocol"), and replies put
//! together from datagrams that come in any order.
//!
//! A reply to a read of several keys has one of two framings. Servers before 1.6 cut it as one stream into datagrams that
//! are numbered together. Since 1.6 each key that was found is a message of its own, numbered for itself, with the
//! `END` behind the last of them or, where the last key was not found, alone; a first key that was not found leaves a
//! datagram without bytes and with a total of 0. What a reply consists of says which of the two it is, so that nothing
//! has to be known of the server.

use std::collections::VecDeque;

use super::{Keys, lines};

/// Longest datagram that servers send and that is sent to them, frame included: what fits in one Ethernet frame.
/// memcached cuts replies so, and takes a request only when it is whole in one datagram.
pub const DATAGRAM_MAX_BYTES: usize = 1400;

/// The frame in front of every datagram: four numbers of 16 bits, the highest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What the client numbered the request with; each datagram of the reply repeats it.
    pub request: u16,
    /// Place of this datagram among those of its message, from 0 on.
    pub sequence: u16,
    /// Datagrams of the message. A server of the 1.6 line also sends 0, for a message without bytes.
    pub total: u16,
}

impl Frame {
    /// Length on the wire. The last two bytes are reserved and mean nothing.
    pub const LEN_BYTES: usize = 8;

    /// The frame of a message that is one datagram, as every request is.
    pub fn single(request: u16) -> Frame {
        Frame { request, sequence: 0, total: 1 }
    }

    /// The bytes of it, with the reserved ones 0.
    #[inline]
    pub fn encode(self) -> [u8; Frame::LEN_BYTES] {
        let [a, b] = self.request.to_be_bytes();
        let [c, d] = self.sequence.to_be_bytes();
        let [e, f] = self.total.to_be_bytes();
        [a, b, c, d, e, f, 0, 0]
    }

    /// The frame of a datagram, and what it carries; `None` for a datagram shorter than a frame.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Option<(Frame, &[u8])> {
        let (&[a, b, c, d, e, f, _, _], payload) = datagram.split_first_chunk::<{ Frame::LEN_BYTES }>()?;
        let number = |high, low| u16::from_be_bytes([high, low]);
        Some((Frame { request: number(a, b), sequence: number(c, d), total: number(e, f) }, payload))
    }
}

/// What became of datagrams, as memaslap counts it, and a little more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Datagrams that were missing when a request was given up: those that are known to be missing, at least one for
    /// each request.
    pub packet_drop: u64,
    /// Datagrams that brought nothing in order when they came: too early, for the second time, or astray.
    pub packet_disorder: u64,
    /// Requests that were given up because their replies were not whole in time.
    pub udp_timeout: u64,
    /// Datagrams that belonged to no request that was waiting, most of them because it had been given up.
    pub stray: u64,
    /// Keys that count as misses although a lost datagram would have looked the same: replies in messages for each key
    /// do not say how many there are.
    pub unclear_misses: u64,
}

impl Counts {
    /// Adds those of another connection.
    pub fn merge(&mut self, other: &Counts) {
        self.packet_drop += other.packet_drop;
        self.packet_disorder += other.packet_disorder;
        self.udp_timeout += other.udp_timeout;
        self.stray += other.stray;
        self.unclear_misses += other.unclear_misses;
    }
}

/// Request numbers that are not used again, because a late reply to a request that was given up may still come. The
/// oldest is let go when there are too many of them.
#[derive(Debug, Default)]
pub struct Abandoned {
    order: VecDeque<u16>,
    /// One bit for each number; made with the first.
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

/// What a read that has everything ends with.
const END: &[u8] = b"END\r\n";

/// How far bytes of a reply go, looked at without a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Whole items, then the end of the reply; also any reply that is no read's, and what only a codec can judge.
    Ended {
        /// How many items.
        items: usize,
    },
    /// Whole items, and nothing behind them.
    Open,
    /// They stop in the middle.
    Cut,
}

/// How far these bytes of a reply go.
pub fn shape(mut bytes: &[u8]) -> Shape {
    let mut items = 0;
    while bytes.starts_with(b"VALUE ") {
        let Some(item) = Item::of(bytes) else { return Shape::Ended { items } };
        let Some(rest) = bytes.get(item.len_bytes..) else { return Shape::Cut };
        bytes = rest;
        items += 1;
    }
    let is_line = items == 0
        || [END, b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR"].iter().any(|word| bytes.starts_with(word));
    match bytes {
        [] if items > 0 => Shape::Open,
        _ if is_line && bytes.ends_with(b"\r\n") => Shape::Ended { items },
        _ => Shape::Cut,
    }
}

/// An item's first line.
struct Item<'a> {
    key: &'a [u8],
    /// Bytes of the item, with its first line and the line end behind the value.
    len_bytes: usize,
}

impl<'a> Item<'a> {
    /// Reads `VALUE <key> <flags> <bytes> [<cas unique>]` and its line end; `None` when it is not of that form.
    fn of(bytes: &'a [u8]) -> Option<Item<'a>> {
        let rest = bytes.strip_prefix(b"VALUE ")?;
        let (key, rest) = rest.split_at(lines::key_len(rest));
        let (_, digits) = lines::decimal(rest.strip_prefix(b" ")?)?;
        let rest = &rest[1 + digits..];
        let (size, digits) = lines::decimal(rest.strip_prefix(b" ")?)?;
        let rest = &rest[1 + digits..];
        let rest = match rest.strip_prefix(b" ") {
            Some(cas) => &cas[lines::decimal(cas)?.1..],
            None => rest,
        };
        let rest = rest.strip_prefix(b"\r\n")?;
        let first_line = bytes.len() - rest.len();
        let len_bytes = usize::try_from(size).ok()?.checked_add(first_line + 2)?;
        Some(Item { key, len_bytes })
    }
}

/// What a datagram brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// What comes next.
    InOrder,
    /// Something that has to wait for what should have come before, or that was overtaken.
    OutOfOrder,
    /// Nothing that was not there already, or nonsense.
    Nothing,
}

/// What the datagrams that came make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered<'a> {
    /// Not all of the reply.
    Parts,
    /// All of it.
    Whole {
        /// The bytes of it, as over TCP.
        bytes: &'a [u8],
        /// Whether each value certainly has its own bytes. Values of several datagrams carry no mark of their key, and
        /// after losses or disorder two of one length cannot be told apart.
        sure: bool,
        /// Whether its values have their own bytes if nothing was overtaken: all keys were found, and the datagrams came
        /// in an order in which they may have been sent.
        in_order: bool,
        /// How many messages it came in: one for each key, or one for all.
        messages: usize,
        /// Items in it.
        items: usize,
    },
    /// Everything that was announced, and it is no whole reply.
    Broken,
}

/// The datagrams of one reply, as they come.
#[derive(Debug, Default)]
pub struct Gathering {
    /// The keys of a multi-get, end to end; empty for other requests.
    keys: Vec<u8>,
    /// Where each ends, and whether its item came.
    asked: Vec<(u32, bool)>,
    /// What the datagrams carry, in the order in which they came.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// How many of them are no copies.
    distinct: usize,
    /// Datagrams that the messages take whose first one is there and no copy.
    announced: usize,
    /// The end came in a datagram of its own.
    ended: bool,
    /// Something did not come where it would if nothing had been lost or overtaken.
    disordered: bool,
    /// The reply, put together.
    joined: Vec<u8>,
}

/// A datagram's part of a message.
#[derive(Clone, Copy, Debug)]
struct Piece {
    sequence: u16,
    total: u16,
    /// Where it lies in the bytes.
    start: usize,
    end: usize,
    /// The same bytes came before in this place: another value that is equal, or the same datagram again.
    copy: bool,
    /// It has a place in the reply that is being put together.
    placed: bool,
    /// For first pieces that begin an item: the place of its key among those asked for, and the length of the item.
    item: Option<(usize, usize)>,
}

impl Gathering {
    /// Forgets everything but the memory, for another reply; of a multi-get, `keys` are what it asks for.
    pub fn begin(&mut self, keys: Option<&Keys<'_>>) {
        self.keys.clear();
        self.asked.clear();
        if let Some(keys) = keys {
            for n in 0..keys.count() {
                self.keys.extend_from_slice(keys.key(n));
                self.asked.push((self.keys.len() as u32, false));
            }
        }
        self.bytes.clear();
        self.pieces.clear();
        self.joined.clear();
        (self.distinct, self.announced) = (0, 0);
        (self.ended, self.disordered) = (false, false);
    }

    /// Takes in a datagram of the reply.
    pub fn take(&mut self, frame: Frame, payload: &[u8]) -> Taken {
        let Frame { sequence, total, .. } = frame;
        if total == 0 && payload.is_empty() {
            // A first key that was not found.
            return Taken::InOrder;
        }
        if sequence >= total {
            return Taken::Nothing;
        }
        if total == 1 && payload == END && (self.is_multiget() || !self.pieces.is_empty()) {
            let known = std::mem::replace(&mut self.ended, true);
            return if known { Taken::Nothing } else { Taken::InOrder };
        }
        let copy =
            self.same_place(sequence, total).any(|piece| self.bytes[piece.start..piece.end] == *payload);
        let in_order;
        let mut item = None;
        if sequence == 0 {
            match self.place_item(total, payload, copy) {
                Some(placed) => item = placed,
                None => return Taken::Nothing,
            }
            let rank = |piece: &Piece| piece.item.map(|(rank, _)| rank);
            let later =
                self.pieces.iter().filter_map(rank).any(|rank| item.is_some_and(|(own, _)| rank > own));
            in_order = !later && !self.ended;
            self.announced += if copy { 0 } else { usize::from(total) };
        } else {
            if copy && self.asked.len() < 2 {
                return Taken::Nothing;
            }
            let before = self.same_place(sequence - 1, total).count();
            in_order = before > self.same_place(sequence, total).count();
        }
        let last = self.pieces.last().map_or((0, 1), |piece| (piece.sequence, piece.total));
        let follows = match sequence {
            0 => last.0 + 1 == last.1,
            _ => last == (sequence - 1, total),
        };
        self.disordered |= !in_order || !follows;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        let end = self.bytes.len();
        self.pieces.push(Piece { sequence, total, start, end, copy, placed: false, item });
        self.distinct += usize::from(!copy);
        if in_order { Taken::InOrder } else { Taken::OutOfOrder }
    }

    fn is_multiget(&self) -> bool {
        !self.asked.is_empty()
    }

    fn same_place(&self, sequence: u16, total: u16) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(move |piece| piece.sequence == sequence && piece.total == total)
    }

    /// Which of the keys asked for the item of a first piece has, and its length; `Some(None)` for what is no item,
    /// `None` when that has come before.
    fn place_item(&mut self, total: u16, payload: &[u8], copy: bool) -> Option<Option<(usize, usize)>> {
        let Some(Item { key, len_bytes }) = Item::of(payload) else { return (!copy).then_some(None) };
        if !self.is_multiget() {
            return (!copy).then_some(Some((0, len_bytes)));
        }
        let (keys, mut start, mut was_asked) = (&self.keys, 0, false);
        let mut free = None;
        // Where a key was asked for several times, the item with the end behind it is the last of them. All datagrams
        // of a message but the last are of one length, so that an item that would fit in fewer has the end behind it.
        let is_last = match total {
            0 | 1 => payload.len() > len_bytes,
            total => usize::from(total - 1) * payload.len() >= len_bytes,
        };
        for (rank, (end, came)) in self.asked.iter().enumerate() {
            if keys[start..*end as usize] == *key {
                was_asked = true;
                if !came && (free.is_none() || is_last) {
                    free = Some(rank);
                }
            }
            start = *end as usize;
        }
        match free {
            Some(rank) => {
                self.asked[rank].1 = true;
                Some(Some((rank, len_bytes)))
            }
            None if copy => None,
            None if was_asked => {
                // A datagram that came twice may have taken the place of this one.
                let bytes = &self.bytes;
                let is_copy = |piece: &Piece| {
                    let own = Item::of(&bytes[piece.start..piece.end]);
                    piece.copy && piece.sequence == 0 && own.is_some_and(|item| item.key == key)
                };
                let at = self.pieces.iter().rposition(is_copy)?;
                let (rank, _) = self.pieces.remove(at).item?;
                Some(Some((rank, len_bytes)))
            }
            // A key that nobody asked for: whoever checks replies will say so.
            None => Some(Some((self.asked.len(), len_bytes))),
        }
    }

    /// How many datagrams are known to be missing. Of messages without a single datagram nothing is known.
    pub fn missing(&self) -> u64 {
        let mut places: Vec<(u16, u16, bool)> =
            self.pieces.iter().map(|piece| (piece.total, piece.sequence, piece.copy)).collect();
        places.sort_unstable();
        let mut missing = 0;
        for message in places.chunk_by(|one, other| one.0 == other.0) {
            let there = message.chunk_by(|one, other| one.1 == other.1);
            let distinct = |place: &[(u16, u16, bool)]| place.iter().filter(|(_, _, copy)| !copy).count();
            let messages = there.clone().map(distinct).max().unwrap_or(0);
            let have: usize = there.map(|place| place.len().min(messages)).sum();
            missing += (messages * usize::from(message[0].0)).saturating_sub(have) as u64;
        }
        missing
    }

    /// Puts the reply together, if it is all there.
    pub fn gathered(&mut self) -> Gathered<'_> {
        if self.pieces.len() < self.announced {
            return Gathered::Parts;
        }
        self.joined.clear();
        let Some(first) = self.pieces.first().copied() else {
            if !self.ended {
                return Gathered::Parts;
            }
            self.joined.extend_from_slice(END);
            return Gathered::Whole {
                bytes: &self.joined,
                sure: true,
                in_order: true,
                messages: 1,
                items: 0,
            };
        };
        let is_one = self.announced == usize::from(first.total) && self.distinct == self.announced;
        if is_one && self.join_one(first.total) {
            match shape(&self.joined) {
                Shape::Ended { items } => {
                    let sure = items != 1 || first.total == 1 || self.asked.len() <= 1;
                    return Gathered::Whole { bytes: &self.joined, sure, in_order: sure, messages: 1, items };
                }
                Shape::Cut if !self.is_multiget() => return Gathered::Broken,
                Shape::Open | Shape::Cut => {}
            }
        }
        match self.join_items() {
            Some((items, sure)) => {
                let in_order = !self.disordered && items >= self.asked.len();
                Gathered::Whole { bytes: &self.joined, sure, in_order, messages: items, items }
            }
            None => Gathered::Parts,
        }
    }

    /// Joins what should be one message; false when its pieces are not all there.
    fn join_one(&mut self, total: u16) -> bool {
        for sequence in 0..total {
            let mut there = self.pieces.iter().skip(usize::from(sequence)).chain(&self.pieces);
            let Some(piece) = there.find(|piece| piece.sequence == sequence && piece.total == total) else {
                return false;
            };
            self.joined.extend_from_slice(&self.bytes[piece.start..piece.end]);
        }
        true
    }

    /// Joins messages of one item each in the order in which their keys were asked for, with the end behind them. Says
    /// how many there are, and whether none of them could have been put together in another way.
    fn join_items(&mut self) -> Option<(usize, bool)> {
        self.joined.clear();
        self.pieces.iter_mut().for_each(|piece| piece.placed = false);
        let mut heads: Vec<(usize, usize)> = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate().filter(|(_, piece)| piece.sequence == 0) {
            let Some((rank, _)) = piece.item else { return self.join_line(at) };
            heads.push((rank, at));
        }
        heads.sort_unstable();
        let mut certain = true;
        for (n, (_, head)) in heads.iter().enumerate() {
            let ends = !self.ended && n + 1 == heads.len();
            certain &= self.pieces[*head].total == 1;
            self.join_item(*head, ends)?;
        }
        // What has no place in it, and did not come twice, has lost its beginning.
        if self.pieces.iter().any(|piece| !piece.placed && !piece.copy) {
            return None;
        }
        if self.ended {
            self.joined.extend_from_slice(END);
        }
        (!heads.is_empty()).then_some((heads.len(), certain))
    }

    /// A line in place of items: an error, which is the whole reply.
    fn join_line(&mut self, at: usize) -> Option<(usize, bool)> {
        let Piece { total, start, end, .. } = self.pieces[at];
        self.joined.clear();
        self.joined.extend_from_slice(&self.bytes[start..end]);
        (total == 1 && self.joined.ends_with(b"\r\n")).then_some((0, true))
    }

    /// Joins one message, choosing its pieces by their lengths, in the order in which they came.
    fn join_item(&mut self, head: usize, ends: bool) -> Option<()> {
        let Piece { total, item, .. } = self.pieces[head];
        let (_, len_bytes) = item?;
        let whole_bytes = len_bytes + if ends { END.len() } else { 0 };
        let begin = self.joined.len();
        self.place(head);
        for sequence in 1..total {
            let left = whole_bytes.checked_sub(self.joined.len() - begin)?;
            let is_last = sequence + 1 == total;
            let at = self.pieces.iter().position(|piece| {
                let fits =
                    if is_last { piece.end - piece.start == left } else { piece.end - piece.start < left };
                piece.sequence == sequence && piece.total == total && !piece.placed && fits
            })?;
            self.place(at);
        }
        (self.joined.len() - begin == whole_bytes).then_some(())
    }

    fn place(&mut self, at: usize) {
        let piece = &mut self.pieces[at];
        piece.placed = true;
        self.joined.extend_from_slice(&self.bytes[piece.start..piece.end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn a_frame_is_four_numbers_with_the_highest_byte_first() {
        let frame = Frame { request: 0x0102, sequence: 0x0304, total: 0x0506 };
        assert_eq!(frame.encode(), [1, 2, 3, 4, 5, 6, 0, 0]);
        assert_eq!(Frame::single(258).encode(), [1, 2, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_reserved_bytes_say_nothing() {
        let datagram = b"\x00\x07\x00\x00\x00\x01\x01\x00get a\r\n";
        assert_eq!(Frame::decode(datagram), Some((Frame::single(7), &b"get a\r\n"[..])));
    }

    #[test]
    fn what_is_shorter_than_a_frame_is_none() {
        let bytes = Frame::single(1).encode();
        for len in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..len]), None);
        }
        assert_eq!(Frame::decode(&bytes), Some((Frame::single(1), &[][..])), "an empty message");
    }

    proptest! {
        #[test]
        fn frames_read_as_they_are_written(request: u16, sequence: u16, total: u16, payload: Vec<u8>) {
            let frame = Frame { request, sequence, total };
            let datagram = [&frame.encode()[..], &payload].concat();
            prop_assert_eq!(Frame::decode(&datagram), Some((frame, &payload[..])));
        }
    }
}
