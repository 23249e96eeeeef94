//! Copies of stored items that are sent to a peer as binary sets and counted by their replies.
//!
//! A copy carries a mark as its opaque, by which the built-in server knows that it need not be copied again, so that
//! two servers can be peers of each other. Any memcached takes copies too. A new peer gets all stored items by adds,
//! since its own items may be newer.

use super::store::{Form, KEY_MAX_BYTES, StoredItem};
use pummel_logic::time::{NEVER, Nanos, SECOND};

/// The opaque of a copy.
pub(super) const MARK: [u8; 4] = *b"copy";

/// Code of the copy of an item that was stored just now (`protocol-binary.txt`, "Command opcodes").
pub(super) const SET: u8 = 0x01;
/// Code of the copy of an item that was stored before the peer was connected.
pub(super) const ADD: u8 = 0x02;

/// First bytes of requests and of replies.
const REQUEST: u8 = 0x80;
const REPLY: u8 = 0x81;

const HEADER_BYTES: usize = 24;
const EXTRAS_BYTES: usize = 8;

/// The status values of replies to copies that succeeded: the item is stored, or the peer has a newer one.
const DONE: u16 = 0x00;
const EXISTS: u16 = 0x02;

/// The memory of sent bytes is released when there are more than this.
const COMPACT_BYTES: usize = 64 * 1024;

/// Copies that wait to be sent, at most. A new peer gets all that is stored at once, which by the default of
/// [`Limits`](super::store::Limits) is half of this: the other half is for what is stored while the peer takes that.
const BACKLOG_MAX_BYTES: usize = 128 << 20;

/// The error of a peer that sent bytes which are no reply to a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPeer;

/// Copies that are sent to the peer, and the state of their replies.
#[derive(Debug, Default)]
pub struct Copies {
    /// Whether the peer is connected.
    open: bool,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    sent: usize,
    /// Copies that were made so far.
    made: u64,
    /// Copies that were answered, or given up.
    taken: u64,
    /// Copies that the peer refused.
    refused: u64,
    /// The status of the reply to the first copy that the peer refused.
    why: Option<u16>,
    /// The incomplete header of a reply.
    head: Vec<u8>,
    /// Bytes of a reply's body that are still to come.
    body: usize,
}

impl Copies {
    /// Whether copies are made: the peer is connected, and takes them as quickly as they are made.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The bytes to send to the peer.
    pub fn poll_send(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Takes in that the first `count` bytes of [`Copies::poll_send`] were sent.
    pub fn handle_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.out.len() {
            self.out.clear();
            self.out.shrink_to(COMPACT_BYTES);
            self.sent = 0;
        } else if self.sent > COMPACT_BYTES && self.sent > self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Takes in bytes from the peer. Returns whether they answer copies.
    ///
    /// # Errors
    /// Returns [`NoPeer`] for bytes that are no reply of the binary protocol; the connection is of no use then.
    pub fn handle_received(&mut self, mut bytes: &[u8]) -> Result<bool, NoPeer> {
        let before = self.taken;
        while !bytes.is_empty() {
            let skipped = self.body.min(bytes.len());
            bytes = &bytes[skipped..];
            self.body -= skipped;
            if bytes.is_empty() {
                break;
            }
            let kept = (HEADER_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..kept]);
            bytes = &bytes[kept..];
            if self.head.first().is_some_and(|&first| first != REPLY) || self.taken == self.made {
                return Err(NoPeer);
            }
            if let [_, _, _, _, _, _, s0, s1, b0, b1, b2, b3, ..] = self.head[..]
                && self.head.len() == HEADER_BYTES
            {
                self.head.clear();
                self.body = u32::from_be_bytes([b0, b1, b2, b3]) as usize;
                self.answered(u16::from_be_bytes([s0, s1]));
            }
        }
        Ok(self.taken > before)
    }

    /// Copies that the peer has not answered.
    pub fn owed(&self) -> u64 {
        self.made - self.taken
    }

    /// Number of copies that the peer refused, and the status of its first refusal.
    pub fn refused(&self) -> (u64, Option<u16>) {
        (self.refused, self.why)
    }

    /// Begins to make copies, since the peer is connected.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// Takes in that the peer's connection is closed, and gives up the copies that the peer has not answered.
    pub fn close(&mut self) {
        self.open = false;
        self.taken = self.made;
        (self.sent, self.body) = (0, 0);
        self.out = Vec::new();
        self.head.clear();
    }

    /// The number of the newest copy; 0 where no peer is connected.
    pub(super) fn newest(&self) -> u64 {
        if self.open { self.made } else { 0 }
    }

    /// Number of the newest copy that was answered or given up; so were all before it.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Copies an item by a request with this code.
    pub(super) fn push(&mut self, code: u8, item: &StoredItem, unix_ns_at_zero: u64) {
        let (key, value) = (item.key(), &item.value);
        // A hash, which only RESP knows, has no form in memcached's protocol.
        if !self.open || item.form != Form::Plain || key.is_empty() || key.len() > KEY_MAX_BYTES {
            return;
        }
        let body = EXTRAS_BYTES + key.len() + value.len();
        if self.out.len() - self.sent + HEADER_BYTES + body > BACKLOG_MAX_BYTES {
            // Without this copy the peer would not have every item; it gets them all when it is connected again.
            return self.close();
        }
        let [k0, k1] = (key.len() as u16).to_be_bytes();
        self.out.extend_from_slice(&[REQUEST, code, k0, k1, EXTRAS_BYTES as u8, 0, 0, 0]);
        self.out.extend_from_slice(&(body as u32).to_be_bytes());
        self.out.extend_from_slice(&MARK);
        self.out.extend_from_slice(&[0; 8]);
        self.out.extend_from_slice(&item.flags.to_be_bytes());
        self.out.extend_from_slice(&unix_expiry_s(item.expires, unix_ns_at_zero).to_be_bytes());
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(value);
        self.made += 1;
    }

    fn answered(&mut self, status: u16) {
        self.taken += 1;
        if status != DONE && status != EXISTS {
            self.refused += 1;
            self.why.get_or_insert(status);
        }
    }
}

/// The expiry of an item as a second of unix time, rounded up; 0 where the item never expires.
fn unix_expiry_s(expires: Nanos, unix_ns_at_zero: u64) -> u32 {
    match expires {
        NEVER => 0,
        _ => u32::try_from(expires.saturating_add(unix_ns_at_zero).div_ceil(SECOND)).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Server, ServerConfig, ServerConnection};
    use super::*;

    /// Unix time in 2026, so that points in unix time are as large as they should be.
    const UNIX_NS: u64 = 1_800_000_000 * SECOND;

    fn server() -> Server {
        Server::new(ServerConfig { unix_ns_at_zero: UNIX_NS, ..ServerConfig::default() }, 0)
    }

    /// Sends words to a server, and returns its reply.
    fn say(server: &mut Server, connection: &mut ServerConnection, words: &str, now: Nanos) -> String {
        server.handle_received(connection, words.as_bytes(), now);
        received(server, connection, now)
    }

    fn received(server: &mut Server, connection: &mut ServerConnection, now: Nanos) -> String {
        let due = server.poll_send(connection, now);
        let bytes: Vec<u8> = due.parts().iter().flat_map(|part| part.iter().copied()).collect();
        server.handle_sent(connection, bytes.len(), now);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Carries all bytes from one server to the other and back, in pieces of `step` bytes.
    fn carry(from: &mut Server, to: &mut Server, link: &mut ServerConnection, step: usize, now: Nanos) {
        let out = from.copies().poll_send().to_vec();
        from.copies().handle_sent(out.len());
        for piece in out.chunks(step) {
            to.handle_received(link, piece, now);
        }
        loop {
            let due = to.poll_send(link, now);
            let bytes: Vec<u8> = due.parts().iter().flat_map(|part| part.iter().copied()).collect();
            to.handle_sent(link, bytes.len(), now);
            if bytes.is_empty() {
                return;
            }
            for piece in bytes.chunks(step) {
                from.copies().handle_received(piece).expect("they are replies");
            }
        }
    }

    #[test]
    fn a_set_is_answered_when_the_peer_has_it() {
        for step in [1, 7, 24, 1000] {
            let (mut one, mut other) = (server(), server());
            let (mut connection, mut link, mut reader) = (one.accept(), other.accept(), other.accept());
            one.open_peer(0);
            assert_eq!(say(&mut one, &mut connection, "set k 5 0 3\r\nabc\r\nget k\r\n", 10), "");
            assert!(connection.waits_for_copy() && connection.next_due() == NEVER);
            carry(&mut one, &mut other, &mut link, step, 20);
            assert_eq!(one.copies().owed(), 0);
            assert_eq!(received(&mut one, &mut connection, 30), "STORED\r\nVALUE k 5 3\r\nabc\r\nEND\r\n");
            assert_eq!(say(&mut other, &mut reader, "get k\r\n", 30), "VALUE k 5 3\r\nabc\r\nEND\r\n");
            assert_eq!(one.copies().refused(), (0, None));
        }
    }

    #[test]
    fn copies_are_not_copied_again() {
        let (mut one, mut other) = (server(), server());
        let (mut connection, mut link) = (one.accept(), other.accept());
        one.open_peer(0);
        other.open_peer(0);
        say(&mut one, &mut connection, "set k 0 0 3\r\nabc\r\nincr k 1\r\n", 0);
        carry(&mut one, &mut other, &mut link, 1000, 0);
        assert_eq!((other.copies().owed(), other.counts().cmd_set), (0, 1));
    }

    #[test]
    fn replies_do_not_wait_for_a_closed_peer_and_a_new_peer_gets_all_items() {
        let (mut one, mut other) = (server(), server());
        let (mut connection, mut link, mut reader) = (one.accept(), other.accept(), other.accept());
        assert_eq!(say(&mut one, &mut connection, "set a 0 0 1\r\n1\r\n", 0), "STORED\r\n");
        one.open_peer(0);
        one.copies().close();
        assert_eq!(say(&mut one, &mut connection, "set b 0 60 1\r\n2\r\n", 0), "STORED\r\n");
        one.open_peer(0);
        assert_eq!(say(&mut one, &mut connection, "set c 0 0 1\r\n3\r\n", 0), "");
        one.copies().close();
        assert_eq!(received(&mut one, &mut connection, 0), "STORED\r\n", "it was waited for, and is no more");
        assert_eq!(say(&mut other, &mut reader, "set a 0 0 1\r\nn\r\n", 0), "STORED\r\n");
        one.open_peer(SECOND);
        assert_eq!(one.copies().owed(), 3);
        carry(&mut one, &mut other, &mut link, 50, SECOND);
        let all = say(&mut other, &mut reader, "get a b c\r\n", SECOND);
        assert_eq!(all, "VALUE a 0 1\r\nn\r\nVALUE b 0 1\r\n2\r\nVALUE c 0 1\r\n3\r\nEND\r\n", "newer stays");
        assert_eq!(one.copies().refused(), (0, None));
        let later = say(&mut other, &mut reader, "get a b c\r\n", 62 * SECOND);
        assert_eq!(later, "VALUE a 0 1\r\nn\r\nVALUE c 0 1\r\n3\r\nEND\r\n", "the expiry goes with it");
    }

    #[test]
    fn a_peer_that_takes_copies_too_slowly_is_given_up_and_gets_all_items_later() {
        let mut one = server();
        let mut connection = one.accept();
        one.open_peer(0);
        let value = vec![b'x'; 1_000_000];
        let set = [&b"set k 0 0 1000000\r\n"[..], &value, b"\r\n"].concat();
        let fitting = BACKLOG_MAX_BYTES / (value.len() + HEADER_BYTES + EXTRAS_BYTES + 1);
        for _ in 0..fitting {
            one.handle_received(&mut connection, &set, 0);
        }
        assert!(one.copies().is_open() && one.copies().owed() == fitting as u64);
        assert_eq!(received(&mut one, &mut connection, 0), "");
        one.handle_received(&mut connection, &set, 0);
        assert!(!one.copies().is_open() && one.copies().poll_send().is_empty());
        assert_eq!(
            received(&mut one, &mut connection, 0),
            "STORED\r\n".repeat(fitting + 1),
            "no reply waits any more"
        );
        assert_eq!(say(&mut one, &mut connection, "set other 0 0 1\r\n1\r\n", 0), "STORED\r\n");
        one.open_peer(0);
        assert_eq!((one.copies().is_open(), one.copies().owed()), (true, 2));
    }

    #[test]
    fn what_is_refused_is_counted_and_what_is_no_reply_ends_the_link() {
        let mut one = server();
        let mut connection = one.accept();
        one.open_peer(0);
        say(&mut one, &mut connection, "set a 0 0 1\r\n1\r\n", 0);
        let mut reply = [0u8; 24];
        (reply[0], reply[7], reply[11]) = (REPLY, 3, 2);
        assert_eq!(one.copies().handle_received(&reply), Ok(true));
        assert_eq!(one.copies().refused(), (1, Some(3)));
        assert_eq!(one.copies().handle_received(b"no"), Ok(false), "the body of it");
        assert_eq!(one.copies().handle_received(&reply), Err(NoPeer), "nothing is owed");
        one.copies().close();
        one.open_peer(0);
        assert_eq!(one.copies().handle_received(b"ERROR\r\n"), Err(NoPeer));
    }
}
