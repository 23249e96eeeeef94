//! The assembly of one reply from its datagrams, in any order of arrival.

use super::frame::Frame;
use super::shape::{END, ItemExtent, Shape, shape};
use crate::protocol::Keys;

/// Effect of a datagram on a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The datagram is the next one of its message.
    InOrder,
    /// The datagram came before one that precedes it, or after one that follows it.
    OutOfOrder,
    /// The datagram added nothing: it is a copy, or its numbers are impossible.
    Nothing,
}

/// The state of a reply after the datagrams that have arrived so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathered<'a> {
    /// Parts of the reply are missing.
    Parts,
    /// The reply is complete.
    Whole {
        /// The bytes of the reply, as over TCP.
        bytes: &'a [u8],
        /// Whether each value certainly consists of its own bytes. Later datagrams of a value do not name its key, so
        /// after losses or disorder the datagrams of two values of the same length cannot be distinguished.
        sure: bool,
        /// Whether each value consists of its own bytes if no datagram overtook another: all keys were found, and the
        /// datagrams came in an order in which they may have been sent.
        in_order: bool,
        /// Number of messages of the reply: one for each key that was found, or one for all.
        messages: usize,
        /// Number of items in the reply.
        items: usize,
    },
    /// All announced datagrams have arrived, but they do not make up a reply.
    Broken,
}

/// The datagrams of one reply that have come so far.
#[derive(Debug, Default)]
pub struct Gathering {
    /// The keys of a multi-get, end to end; empty for other requests.
    keys: Vec<u8>,
    /// End of each key in `keys`, and whether the item of the key has arrived.
    asked: Vec<(u32, bool)>,
    /// The payloads of the datagrams, in the order in which they came.
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Number of pieces without copies.
    distinct: usize,
    /// Number of datagrams of all messages whose first datagram has arrived, without copies.
    announced: usize,
    /// Whether the end of the reply came in a datagram of its own.
    ended: bool,
    /// Whether a datagram came out of the order in which datagrams are sent.
    disordered: bool,
    /// The assembled reply.
    joined: Vec<u8>,
}

/// A datagram's part of a message.
#[derive(Clone, Copy, Debug)]
struct Piece {
    sequence: u16,
    total: u16,
    /// Beginning of the piece in the bytes.
    start: usize,
    end: usize,
    /// Whether equal bytes arrived before for the same place: from a datagram that arrived twice, or from another
    /// value that is equal.
    copy: bool,
    /// Whether the piece is used already in the reply that is being assembled.
    placed: bool,
    /// For the first piece of an item: the index of the item's key among those requested, and the length of the item.
    item: Option<(usize, usize)>,
}

impl Gathering {
    /// Clears everything for another reply and keeps the memory. `keys` are the keys of a multi-get.
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

    /// Adds a datagram of the reply.
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

    /// The index of the key of the item that a first piece begins, and the length of the item; `Some(None)` if the
    /// piece begins no item, `None` if the item has arrived before.
    fn place_item(&mut self, total: u16, payload: &[u8], copy: bool) -> Option<Option<(usize, usize)>> {
        let Some(ItemExtent { key, len_bytes }) = ItemExtent::of(payload) else {
            return (!copy).then_some(None);
        };
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
                    let own = ItemExtent::of(&bytes[piece.start..piece.end]);
                    piece.copy && piece.sequence == 0 && own.is_some_and(|item| item.key == key)
                };
                let at = self.pieces.iter().rposition(is_copy)?;
                let (rank, _) = self.pieces.remove(at).item?;
                Some(Some((rank, len_bytes)))
            }
            // A key that was not asked for; the check of the reply rejects it.
            None => Some(Some((self.asked.len(), len_bytes))),
        }
    }

    /// Number of datagrams that are known to be missing. Messages without any datagram are not known.
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

    /// Assembles the reply if all of it has arrived.
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

    /// Joins the pieces of a single message; false if some are missing.
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

    /// Joins messages of one item each in the order of the requested keys, and adds the end. Returns the number of
    /// items, and whether no other assembly was possible.
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

    /// The line that a reply has instead of items: an error, which is the whole reply.
    fn join_line(&mut self, at: usize) -> Option<(usize, bool)> {
        let Piece { total, start, end, .. } = self.pieces[at];
        self.joined.clear();
        self.joined.extend_from_slice(&self.bytes[start..end]);
        (total == 1 && self.joined.ends_with(b"\r\n")).then_some((0, true))
    }

    /// Joins one message from the pieces whose lengths fit, in the order of arrival.
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
