//! The invariants of every session as a function that tests and the fuzz target run.

// A law that does not hold ends the test.
#![allow(clippy::expect_used)]

use std::io::IoSlice;

use super::session::Session;
use crate::bodies::Bodies;
use crate::connection::answer::{Answer, Chunk, Item, Sink, Stamp};
use crate::connection::inflight::{AnswerUse, Ticket};
use crate::connection::outbox::{Room, Sources};
use crate::plan::Transport;
use crate::protocol::udp::{DATAGRAM_MAX_BYTES, Frame};
use crate::protocol::{Codec, Fault, Keys, Malformed, Op, Rest, Value, Verb};
use crate::time::{NEVER, Nanos};

/// Length of the shared text, so that some values are pointed at and some are copied.
const TEXT_BYTES: usize = 8 << 10;

/// Whole replies of text and meta, so that scripts get further than the first broken line.
const REPLIES: [&[u8]; 12] = [
    b"END\r\n",
    b"STORED\r\n",
    b"VALUE a 0 3\r\none\r\nEND\r\n",
    b"VALUE a 0 1 7\r\nx\r\nVALUE b 0 0 8\r\n\r\nEND\r\n",
    b"SERVER_ERROR busy\r\n",
    b"NOT_STORED\r\n",
    b"17\r\n",
    b"HD\r\n",
    b"EN\r\n",
    b"MN\r\n",
    b"VA 2 ka\r\nab\r\n",
    b"ERROR\r\n",
];

/// Plays a script on a session: asks, sends in parts, replies (true ones and any bytes) in pieces with any stamps, full
/// sockets, timeouts, closes. At its end the connection is closed.
///
/// # Panics
/// When a request ends twice, or never, or at impossible times.
pub fn play<C: Codec>(script: &[u8]) {
    let mut stage = Stage::<C>::new(script, Session::new(2));
    while let Some(act) = stage.byte() {
        stage.now += u64::from(act) * 50;
        stage.act(act);
        stage.check();
    }
    stage.close(Fault::Closed);
}

/// Plays a script on a session over datagrams: asks for one key and for several, sends, answers with datagrams (parts
/// of true replies, and any bytes) under numbers near those outstanding, gives up what is late. At its end everything
/// is late.
///
/// # Panics
/// When a request ends twice, or never, or at impossible times.
pub fn play_datagrams<C: Codec>(script: &[u8]) {
    let mut stage = Stage::<C>::new(script, Session::over_datagrams(2));
    while let Some(act) = stage.byte() {
        stage.now += u64::from(act) * 50;
        match act % 8 {
            0..4 => stage.act(act),
            4 => stage.send_datagrams(),
            7 => {
                let age = u64::from(stage.byte().unwrap_or(0)) * 100;
                stage.session.handle_overdue(age, stage.now, &mut stage.ends);
            }
            _ => stage.receive_datagram(),
        }
        stage.check();
    }
    stage.session.handle_overdue(0, stage.now, &mut stage.ends);
    stage.check_closed();
}

/// A session, what happens to it, and how its requests ended.
struct Stage<'a, C> {
    script: &'a [u8],
    session: Session<C>,
    text: Vec<u8>,
    bodies: Bodies,
    ends: Ends,
    now: Nanos,
}

/// The end of each request, by its number.
struct Ends(Vec<bool>);

impl<'a, C: Codec> Stage<'a, C> {
    fn new(script: &'a [u8], session: Session<C>) -> Stage<'a, C> {
        Stage {
            script,
            session,
            text: vec![b'v'; TEXT_BYTES],
            bodies: Bodies::new(0, 1.0),
            ends: Ends(Vec::new()),
            now: 1_000_000,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.script.split_first()?;
        self.script = rest;
        Some(first)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.script.split_at(count.min(self.script.len()));
        self.script = rest;
        bytes
    }

    fn act(&mut self, act: u8) {
        match act % 8 {
            0 => self.ask(Op::new(Verb::Get, b"a")),
            1 => self
                .ask(Op { keys: Keys::Many { bytes: b"abc", ends: &[1, 2, 3] }, ..Op::new(Verb::Gets, b"") }),
            2 => self.store(false),
            3 => self.store(true),
            4 => self.send(),
            5 => {
                let reply = usize::from(self.byte().unwrap_or(0)) % REPLIES.len();
                self.receive(REPLIES[reply]);
            }
            6 => {
                let count = usize::from(self.byte().unwrap_or(0) % 16);
                let bytes = self.bytes(count);
                self.receive(bytes);
            }
            _ => self.disturb(),
        }
    }

    fn ask(&mut self, op: Op<'_>) {
        let index = self.ends.0.len() as u64;
        let ticket = Ticket {
            due: self.now,
            ready: self.now,
            index,
            answer_use: if index.is_multiple_of(2) { AnswerUse::None } else { AnswerUse::Items },
            keys: op.keys.count() as u16,
            ..Ticket::of(op.verb)
        };
        if self.session.request(&op, ticket).is_ok() {
            self.ends.0.push(false);
        }
    }

    fn store(&mut self, noreply: bool) {
        let byte = self.byte().unwrap_or(0);
        let len_bytes = usize::from(byte) * 32;
        let (text, bodies) = (std::mem::take(&mut self.text), self.bodies.clone());
        let rest = match byte % 2 {
            0 => Rest::Text { bytes: &text[..len_bytes], at: 0 },
            _ => Rest::Body { bodies: &bodies, seed: byte.into(), len_bytes },
        };
        let value = Value { own: b"own", rest };
        self.ask(Op { value, noreply, ..Op::new(Verb::Set, b"b") });
        self.text = text;
    }

    /// A call that takes some of what is offered.
    fn send(&mut self) {
        let (sources, mut room) = (Sources { text: &self.text, bodies: &self.bodies }, Room::default());
        let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
        let count = self.session.poll_send(sources, &mut room, &mut parts);
        let offered: usize = parts[..count].iter().map(|part| part.len()).sum();
        assert_eq!(offered > 0, self.session.has_output());
        let taken = offered * usize::from(self.byte().unwrap_or(255)) / 255;
        self.session.handle_sent(taken, self.now, &mut self.ends);
    }

    /// Sends every datagram that waits, or some of them.
    fn send_datagrams(&mut self) {
        for _ in 0..self.byte().unwrap_or(255) {
            let (sources, mut room) = (Sources { text: &self.text, bodies: &self.bodies }, Room::default());
            let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
            let count = self.session.poll_send(sources, &mut room, &mut parts);
            let offered: usize = parts[..count].iter().map(|part| part.len()).sum();
            if offered == 0 {
                return;
            }
            assert!(count == 1 && offered <= DATAGRAM_MAX_BYTES);
            self.session.handle_sent(offered, self.now, &mut self.ends);
        }
    }

    fn receive_datagram(&mut self) {
        let [request, sequence, total, kind] = [(); 4].map(|()| self.byte().unwrap_or(0));
        let request = self.ends.0.len().saturating_sub(usize::from(request % 8)) as u16;
        let frame = Frame { request, sequence: u16::from(sequence % 4), total: u16::from(total % 4) };
        let payload = match REPLIES.get(usize::from(kind)) {
            Some(reply) => {
                let from = usize::from(self.byte().unwrap_or(0)).min(reply.len());
                &reply[from..]
            }
            None => self.bytes(usize::from(kind % 32)),
        };
        let datagram = [&frame.encode()[..], payload].concat();
        let chunk = Chunk { bytes: &datagram, stamp: Some(self.now), read: self.now };
        let answered =
            self.session.handle_received(chunk, &mut self.ends).expect("a datagram breaks nothing");
        assert!(answered <= 1);
    }

    /// A read, at most as long as the script says, with a stamp around now or none.
    fn receive(&mut self, mut bytes: &[u8]) {
        let cut = usize::from(self.byte().unwrap_or(255));
        let stamp = match self.byte().unwrap_or(0) {
            0 => None,
            1 => Some(NEVER),
            2 => Some(0),
            near => Some((self.now + 2_000).saturating_sub(u64::from(near) * 20)),
        };
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(cut.clamp(1, bytes.len()));
            let chunk = Chunk { bytes: piece, stamp, read: self.now };
            if let Err(Malformed(_)) = self.session.handle_received(chunk, &mut self.ends) {
                return self.close(Fault::Protocol);
            }
            bytes = rest;
        }
    }

    fn disturb(&mut self) {
        match self.byte().unwrap_or(0) {
            0..64 => self.session.handle_writable(self.now),
            64..128 => self.close(Fault::Reset),
            age => {
                let timeout = u64::from(age) * 100;
                if self.session.deadline(timeout) <= self.now {
                    self.session.handle_timeout(timeout, self.now, &mut self.ends);
                    self.begin_connection();
                }
            }
        }
    }

    fn close(&mut self, fault: Fault) {
        self.session.handle_closed(fault, self.now, &mut self.ends);
        self.begin_connection();
    }

    fn begin_connection(&mut self) {
        let transport = if self.session.is_over_datagrams() { Transport::Udp } else { Transport::Stream };
        self.session.begin_connection(C::new(), transport);
        self.check_closed();
    }

    fn check_closed(&self) {
        assert!(self.ends.0.iter().all(|&ended| ended), "a request never ended");
        assert!(self.session.is_idle() && !self.session.has_output());
    }

    fn check(&self) {
        let all_ended = self.ends.0.iter().all(|&ended| ended);
        assert_eq!(self.session.is_idle(), all_ended);
        assert_eq!(self.session.deadline(1) == NEVER, all_ended);
    }
}

/// The bytes of every second request's items are wanted.
fn is_wanted(ticket: &Ticket) -> bool {
    ticket.index.is_multiple_of(2)
}

impl Sink for Ends {
    fn item(&mut self, ticket: &Ticket, _item: Item<'_>) -> Result<bool, Malformed> {
        assert!(!self.0[ticket.index as usize], "an item after the end");
        Ok(is_wanted(ticket))
    }

    fn body(&mut self, ticket: &Ticket, bytes: &[u8]) {
        assert!(!self.0[ticket.index as usize] && is_wanted(ticket) && !bytes.is_empty());
    }

    fn answer(&mut self, answer: &Answer<'_>, _message: &[u8]) {
        let ended = &mut self.0[answer.ticket.index as usize];
        assert!(!std::mem::replace(ended, true), "a request ended twice");
        assert!(answer.arrived <= answer.read);
        assert!(answer.hits <= u32::from(answer.ticket.keys), "more hits than keys");
        let was_sent = answer.sent != NEVER;
        assert!(was_sent || answer.stamp == Stamp::Nothing, "an answer to what was not sent");
        assert!(!was_sent || (answer.ticket.due <= answer.sent && answer.sent <= answer.arrived));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::binary::Binary;
    use crate::protocol::meta::Meta;
    use crate::protocol::text::Text;
    use crate::rng::{Stream, below};

    #[test]
    fn whatever_happens_every_request_ends_exactly_once() {
        let chance = Stream::from_seed(1);
        for n in 0..4_000 {
            let len = below(chance.draw_sub(n, 1), 400);
            let script: Vec<u8> = (0..len).map(|i| chance.draw_sub(n, 2 + i) as u8).collect();
            play::<Text>(&script);
            play::<Meta>(&script);
            play::<Binary>(&script);
            play_datagrams::<Text>(&script);
        }
    }

    #[test]
    fn a_script_gets_as_far_as_answers() {
        // Three requests, sent whole, answered one by one.
        let script = [0, 0, 2, 1, 4, 255, 5, 0, 255, 100, 5, 2, 3, 100, 5, 1, 255, 0];
        play::<Text>(&script);
        let mut stage = Stage::<Text>::new(&script, Session::new(2));
        while let Some(act) = stage.byte() {
            stage.act(act);
        }
        assert_eq!(stage.ends.0, [true; 3]);
        assert!(stage.session.is_idle());
    }
}
