//! The faults of a server, and the messages at which they happen: a peer around a peer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use pummel_engine::backend::sim::{Admission, Next, Peer, datagram_to_client};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::time::{NEVER, Nanos};

use crate::features::Draws;
use crate::replies::{self, Kind, Wire};

/// Messages about changed keys: one key, several of which one looks like replies, all keys, and none.
const INVALIDATIONS: [&[u8]; 4] = [
    b">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nkey:1\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*3\r\n$1\r\na\r\n$0\r\n\r\n$13\r\n+OK\r\n:17\r\n$-1\r\n",
    b">2\r\n$10\r\ninvalidate\r\n_\r\n",
    b">2\r\n$10\r\ninvalidate\r\n*0\r\n",
];

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misbehaviour {
    /// Connections, or handshakes, are refused.
    Refused,
    /// Connections end between two replies or in the middle of one.
    Closed,
    /// Bytes are sent that are no reply.
    Garbage,
    /// An error takes the place of a value.
    ErrorForValue,
    /// More replies are sent than requests.
    Extra,
    /// A value is sent several times.
    Repeated,
    /// The server falls silent, or takes no connection.
    Silence,
    /// A reply stops in its middle.
    Half,
    /// Fields of a reply are at their limits: no CAS unique, or the greatest number.
    Fields,
    /// The beginning of an unasked reply follows a whole one, and may be the last of its connection.
    Tail,
    /// The reply is that of a cluster's node that does not serve the slot, or not now.
    Redirect,
}

impl Misbehaviour {
    /// Every kind of fault.
    pub const ALL: [Misbehaviour; 11] = [
        Misbehaviour::Refused,
        Misbehaviour::Closed,
        Misbehaviour::Garbage,
        Misbehaviour::ErrorForValue,
        Misbehaviour::Extra,
        Misbehaviour::Repeated,
        Misbehaviour::Silence,
        Misbehaviour::Half,
        Misbehaviour::Fields,
        Misbehaviour::Tail,
        Misbehaviour::Redirect,
    ];

    /// The name of the fault on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Misbehaviour::Refused => "refused",
            Misbehaviour::Closed => "closed",
            Misbehaviour::Garbage => "garbage",
            Misbehaviour::ErrorForValue => "error",
            Misbehaviour::Extra => "extra",
            Misbehaviour::Repeated => "repeated",
            Misbehaviour::Silence => "silence",
            Misbehaviour::Half => "half",
            Misbehaviour::Fields => "fields",
            Misbehaviour::Tail => "tail",
            Misbehaviour::Redirect => "redirect",
        }
    }
}

/// The counts of a server.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Number of connections that were asked for.
    pub connects: u64,
    /// Number of connections that the server refused, or closed before they could be used.
    pub refused: u64,
    /// Bytes that the server sent.
    pub sent_bytes: u64,
    /// Messages that the server sent, before faults were applied.
    pub messages: u64,
    /// Values that the server sent.
    pub values: u64,
    /// Messages that no request asked for, in whole connections that are not broken otherwise.
    pub pushes: u64,
    /// Number of these messages that a reply followed on their connection.
    pub pushes_followed: u64,
    /// Number of faults that were applied.
    pub strikes: u64,
    /// Number of beginnings of replies that were followed by anything on their connection.
    pub tails_followed: u64,
    /// Whether replies were sent in the place of others, so that a value may be that of another request.
    pub shifted: bool,
    /// Whether bytes of one value may have been sent as those of another.
    pub wrong: bool,
}

/// Faults of a server, and the messages at which they happen.
#[derive(Clone, Debug)]
pub struct Mischief {
    /// The kind of fault.
    pub fault: Misbehaviour,
    /// The variant of the fault, from 0 to 11.
    pub style: u64,
    /// The first message, or the first connection, with a fault, counted from 0.
    from: u64,
    /// The distance to the next message with a fault; 0 for one fault alone.
    every: u64,
    /// Whether messages are counted over all connections, and not for each.
    together: bool,
    /// Number of the server that misbehaves; `None` for all servers.
    server: Option<u8>,
    seed: u64,
    /// The slots of the records' keys.
    pub slots: Vec<u16>,
    /// Number of replies to a handshake that asks for messages about changed keys; `None` where none does.
    pub tracks_behind: Option<u64>,
}

impl Mischief {
    /// The faults that follow from a seed.
    pub fn new(fault: Misbehaviour, seed: u64, servers: usize) -> Mischief {
        let mut draws = Draws::new(seed, 2 + fault as u64);
        let server = draws.below(servers as u64) as u8;
        let mischief = Mischief {
            fault,
            style: draws.below(12),
            from: draws.one_of(&[0, 0, 1, 2, 5, 20, 60]),
            every: draws.one_of(&[0, 1, 2, 7, 30]),
            together: draws.once_in(2),
            server: (servers > 1 && draws.once_in(2)).then_some(server),
            seed,
            slots: vec![0],
            tracks_behind: None,
        };
        match mischief.is_total() {
            true => Mischief { style: 1, together: true, server: None, ..mischief },
            false => mischief,
        }
    }

    /// Whether all servers fall silent for ever after a few messages.
    pub fn is_total(&self) -> bool {
        self.fault == Misbehaviour::Silence && self.seed % 5 == 4
    }

    fn befalls(&self, count: u64) -> bool {
        match (count.checked_sub(self.from), self.every) {
            (None, _) => false,
            (Some(since), 0) => since == 0,
            (Some(since), every) => since.is_multiple_of(every),
        }
    }

    /// Mischief without any fault.
    pub fn none(seed: u64) -> Mischief {
        let fault = Misbehaviour::Fields;
        Mischief {
            fault,
            style: 1,
            from: u64::MAX,
            every: 0,
            together: true,
            server: None,
            seed,
            slots: vec![0],
            tracks_behind: None,
        }
    }

    /// Whether connections are taken and the handshake on them is refused.
    pub fn refuses_greetings(&self) -> bool {
        self.fault == Misbehaviour::Refused && self.style % 4 == 3
    }
}

/// A server that misbehaves.
pub struct Hostile<P> {
    inner: P,
    mischief: Mischief,
    wire: Wire,
    links: BTreeMap<(u32, u32), Link>,
    connects: u64,
    messages: u64,
    /// Whether the server has fallen silent on all connections.
    mute: bool,
    draws: Draws,
    facts: Arc<Mutex<Facts>>,
}

/// A connection of a server that misbehaves.
struct Link {
    datagrams: bool,
    /// Whether the connection's server is the one that misbehaves.
    hostile: bool,
    /// Bytes of the server that are no whole message yet.
    raw: Vec<u8>,
    messages: u64,
    mute: bool,
    /// Whether messages are left out up to the end of a read.
    skips: bool,
    /// Whether the beginning of a reply was the last that was sent.
    has_tail: bool,
    /// Whole messages of the server.
    seen: u64,
    /// Number of these messages that no reply has followed.
    pushes: u64,
    ending: Option<Next>,
}

impl<P: Peer> Hostile<P> {
    pub fn new(inner: P, mischief: Mischief, wire: Wire, facts: Arc<Mutex<Facts>>) -> Hostile<P> {
        let draws = Draws::new(mischief.seed, 99);
        Hostile {
            inner,
            mischief,
            wire,
            links: BTreeMap::new(),
            connects: 0,
            messages: 0,
            mute: false,
            draws,
            facts,
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().expect("nothing panics while it holds the facts")
    }

    /// Splits the server's bytes into messages, and passes each on.
    fn pass_all(&mut self, link: &mut Link, out: &mut Vec<u8>) {
        let mut at = 0;
        while link.ending.is_none() {
            let Some((len, kind)) = replies::first(self.wire, &link.raw[at..]) else { break };
            let message = link.raw[at..at + len].to_vec();
            at += len;
            self.pass(link, &message, kind, out);
            link.seen += 1;
            self.push(link, out);
        }
        link.raw.drain(..at);
    }

    /// Sends messages about changed keys, where they are asked for.
    fn push(&mut self, link: &mut Link, out: &mut Vec<u8>) {
        // Bytes in the middle of a value look like anything.
        let is_broken = self.mute || link.mute || link.has_tail || link.skips || self.facts().wrong;
        let is_sent = self.wire == Wire::Resp && link.ending.is_none() && !is_broken;
        let tracks = self.mischief.tracks_behind.is_some_and(|replies| link.seen >= replies);
        if !tracks || !is_sent {
            return;
        }
        for _ in 0..self.draws.below(6).saturating_sub(3) {
            out.extend_from_slice(self.draws.one_of(&INVALIDATIONS));
            self.facts().pushes += 1;
            link.pushes += 1;
        }
    }

    /// Splits the server's datagrams into messages, each of which keeps its frame, and passes each on. Parts of
    /// messages are passed on unchanged.
    fn pass_datagrams(&mut self, link: &mut Link, out: &mut Vec<u8>) {
        let raw = std::mem::take(&mut link.raw);
        let mut rest = &raw[..];
        while let Some((len, tail)) = rest.split_first_chunk::<4>() {
            let (datagram, tail) = tail.split_at(u32::from_le_bytes(*len) as usize);
            rest = tail;
            let (frame, mut payload) = datagram.split_at(8);
            let mut changed = Vec::new();
            while !payload.is_empty() && link.ending.is_none() {
                // Bytes in the middle of a value look like anything.
                let whole =
                    if frame[2..6] == [0, 0, 0, 1] { replies::first(self.wire, payload) } else { None };
                let (len, kind) = whole.unwrap_or((payload.len(), Kind::Other));
                self.pass(link, &payload[..len], kind, &mut changed);
                payload = &payload[len..];
            }
            if !changed.is_empty() || datagram.len() == frame.len() {
                changed.truncate(1_392);
                datagram_to_client(&[frame, &changed].concat(), out);
            }
        }
    }

    /// Passes one message on, with a fault where one is due.
    fn pass(&mut self, link: &mut Link, message: &[u8], kind: Kind, out: &mut Vec<u8>) {
        if std::mem::take(&mut link.skips) && kind != Kind::Other {
            link.skips = kind != Kind::End;
            return;
        }
        let count = if self.mischief.together { self.messages } else { link.messages };
        let is_meant = match self.mischief.fault {
            Misbehaviour::Refused => false,
            Misbehaviour::Repeated | Misbehaviour::Fields => kind == Kind::Value || self.mischief.style == 0,
            Misbehaviour::ErrorForValue => kind == Kind::Value || self.mischief.style % 4 == 3,
            // The server has carried the request out. What is sent again then has to be one that changes nothing the second time.
            Misbehaviour::Redirect => self.wire == Wire::Resp && message[0] != b':',
            _ => true,
        };
        if is_meant {
            self.messages += u64::from(link.hostile);
            link.messages += 1;
        }
        {
            let mut facts = self.facts();
            facts.messages += 1;
            facts.values += u64::from(kind == Kind::Value);
        }
        if self.mute || link.mute {
            return;
        }
        self.facts().pushes_followed += std::mem::take(&mut link.pushes);
        if std::mem::take(&mut link.has_tail) {
            let mut facts = self.facts();
            (facts.tails_followed, facts.shifted) = (facts.tails_followed + 1, true);
        }
        if !link.hostile || !is_meant || !self.mischief.befalls(count) {
            return out.extend_from_slice(message);
        }
        self.facts().strikes += 1;
        self.misbehave(link, message, kind, out);
    }

    fn misbehave(&mut self, link: &mut Link, message: &[u8], kind: Kind, out: &mut Vec<u8>) {
        let (style, half) = (self.mischief.style, &message[..message.len() / 2]);
        match self.mischief.fault {
            Misbehaviour::Refused => unreachable!("connections are refused, and not messages"),
            Misbehaviour::Closed => {
                match style % 4 {
                    0 => {}
                    1 => out.extend_from_slice(message),
                    _ => out.extend_from_slice(half),
                }
                link.ending = Some(if style % 2 == 0 { Next::Close } else { Next::Reset });
            }
            Misbehaviour::Garbage => {
                // A datagram that is a part of a long value has other bytes of it then.
                self.facts().wrong |= link.datagrams && kind == Kind::Other;
                if style % 2 == 0 {
                    out.extend_from_slice(message);
                }
                let len = [1, 16, 100, 5_000][style as usize / 2 % 4];
                // No protocol's message begins so.
                out.push(0xfe);
                out.extend((1..len).map(|_| self.draws.below(256) as u8));
                if style >= 6 {
                    out.extend_from_slice(b"\r\n");
                }
            }
            Misbehaviour::ErrorForValue => {
                out.extend(replies::error_for(self.wire, message));
                let is_one_of_several = message.starts_with(b"VALUE ") || kind == Kind::End;
                if is_one_of_several && style % 4 != 2 {
                    // It ends the reply, as in memcached.
                    link.skips = kind == Kind::Value;
                } else if is_one_of_several {
                    self.facts().shifted = true;
                }
            }
            Misbehaviour::Extra => {
                self.facts().shifted = true;
                let extra = match style % 3 {
                    0 => message.to_vec(),
                    _ => replies::unasked(self.wire, self.mischief.seed),
                };
                let parts = if style >= 6 { [&extra[..], message] } else { [message, &extra[..]] };
                out.extend(parts.concat());
            }
            Misbehaviour::Repeated => {
                if self.wire == Wire::Resp && message[0] != b'*' {
                    self.facts().shifted = true;
                }
                out.extend(replies::repeated(self.wire, message, 2 + style as usize % 3));
            }
            Misbehaviour::Silence => match style % 2 {
                0 => link.mute = true,
                _ => self.mute = true,
            },
            Misbehaviour::Half => {
                out.extend_from_slice(half);
                match style % 4 {
                    0 | 1 => link.mute = true,
                    2 => link.ending = Some(Next::Close),
                    // Others follow.
                    _ => {
                        let mut facts = self.facts();
                        (facts.wrong, facts.shifted) = (true, true);
                    }
                }
            }
            Misbehaviour::Fields => {
                let which = self.draws.below(6);
                out.extend(replies::with_odd_fields(self.wire, message, which));
            }
            Misbehaviour::Redirect => out.extend(replies::redirect(&mut self.draws, &self.mischief.slots)),
            Misbehaviour::Tail => {
                out.extend_from_slice(message);
                out.extend_from_slice(&message[..1 + style as usize % 2]);
                // A datagram ends with what is in it, and harms its own request alone.
                (link.has_tail, self.facts().shifted) = (!link.datagrams, link.datagrams);
            }
        }
    }
}

impl<P: Peer> Peer for Hostile<P> {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        let address = match target {
            Target::Tcp { address, .. } | Target::Udp { address, .. } => address,
            Target::Unix(_) => panic!("no server here has a path"),
        };
        let number = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.octets()[3],
            std::net::IpAddr::V6(_) => panic!("no server here has such an address"),
        };
        let hostile = self.mischief.server.is_none_or(|server| server == number);
        let count = self.connects;
        self.connects += u64::from(hostile);
        self.facts().connects += 1;
        let befallen = hostile && self.mischief.befalls(count);
        let style = self.mischief.style % 4;
        let mut ending = None;
        match self.mischief.fault {
            Misbehaviour::Refused if befallen && style < 3 => {
                {
                    let mut facts = self.facts();
                    (facts.refused, facts.strikes) = (facts.refused + 1, facts.strikes + 1);
                }
                if style < 2 || matches!(target, Target::Udp { .. }) {
                    return Admission::Refuse;
                }
                // It is one too many.
                ending = Some(Next::Close);
            }
            Misbehaviour::Silence if hostile && self.mute => return Admission::Ignore,
            Misbehaviour::Silence if befallen && style == 2 => {
                self.facts().strikes += 1;
                return Admission::Ignore;
            }
            _ => {}
        }
        let admission = self.inner.handle_connect(conn, target, now);
        let link = Link {
            datagrams: matches!(target, Target::Udp { .. }),
            hostile,
            raw: Vec::new(),
            messages: 0,
            mute: false,
            skips: false,
            has_tail: false,
            seen: 0,
            pushes: 0,
            ending,
        };
        self.links.insert((conn.slot, conn.generation), link);
        admission
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.inner.handle_received(conn, bytes, now);
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        if self.links.remove(&(conn.slot, conn.generation)).is_some() {
            self.inner.handle_closed(conn, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let key = (conn.slot, conn.generation);
        let mut link = self.links.remove(&key).expect("peers are polled on connections that they took");
        if let Some(ending) = link.ending {
            // What a server says on a connection that is one too many: memcached, and Redis.
            let words: &[u8] = match self.wire {
                Wire::Text => b"ERROR Too many open connections\r\n",
                Wire::Resp => b"-ERR max number of clients reached\r\n",
                Wire::Binary | Wire::Records => b"",
            };
            out.extend_from_slice(words);
            self.facts().sent_bytes += words.len() as u64;
            self.inner.handle_closed(conn, now);
            return ending;
        }
        let before = out.len();
        let mut fresh = Vec::new();
        let next = self.inner.poll(conn, now, &mut fresh);
        link.raw.append(&mut fresh);
        match link.datagrams {
            true => self.pass_datagrams(&mut link, out),
            false => self.pass_all(&mut link, out),
        }
        self.facts().sent_bytes += (out.len() - before) as u64;
        match (link.ending, next) {
            (Some(ending), Next::At(_)) => {
                self.inner.handle_closed(conn, now);
                ending
            }
            (Some(ending), _) => ending,
            (None, Next::At(at)) => {
                let muted = self.mute && link.hostile;
                self.links.insert(key, link);
                if muted { Next::At(NEVER) } else { Next::At(at) }
            }
            (None, ending) => ending,
        }
    }
}
