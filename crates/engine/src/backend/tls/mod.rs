//! TLS as a backend around a backend: encrypts what goes in, decrypts what comes out, and opens only what is agreed on.

mod backlog;
mod setup;
mod words;

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use pummel_logic::time::{MICROSECOND, NEVER, Nanos};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

pub use setup::{Setup, TlsError, server_config};

use backlog::Backlog;
use words::Ending;

use crate::backend::{Backend, Close, ConnId, Event, Handed, Target, TlsHandshake};

/// Most plain bytes of a connection that are encrypted and not yet taken by the kernel.
const SEALED_MAX: usize = 64 * 1024;

/// Plain bytes of one record at most (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;

/// By how much a receive stamp may be out of its bounds.
const STAMP_SLACK_NS: Nanos = MICROSECOND;

/// Speaks TLS over what another backend moves.
///
/// A send is one system call, as without TLS, and what it says was taken are the plain bytes whose encrypted form the
/// kernel took: bytes that are encrypted already but were not taken are offered again by the caller, and recognised.
pub struct Tls<B> {
    inner: B,
    links: Links,
}

/// All connections of a worker, and what they share.
struct Links {
    setup: Setup,
    config: Arc<ClientConfig>,
    slots: Vec<Option<Box<Link>>>,
    /// Where plain bytes pass, in either direction.
    plain: Box<[u8]>,
    /// Where encrypted bytes pass on their way to the kernel.
    sealed: Vec<u8>,
    /// Connections with something to send, or to be closed, when the inner backend has told everything.
    unsettled: Vec<ConnId>,
    /// Connections that have something to tell in the next drain, whatever the inner backend says.
    again: Vec<ConnId>,
    handshakes: Vec<TlsHandshake>,
}

/// One connection.
struct Link {
    generation: u32,
    state: LinkState,
    tls: ClientConnection,
    /// What is encrypted and was not taken; at most [`SEALED_MAX`] of it are bytes of the caller.
    backlog: Backlog,
    /// The inner backend owes a Writable.
    blocked: bool,
    /// The caller is owed a Writable.
    owes_writable: bool,
    /// It is in `unsettled`.
    is_unsettled: bool,
    /// The server has said something.
    heard: bool,
    /// When the handshake began; [`NEVER`] before.
    began: Nanos,
    /// TLS is over, but that was not told yet.
    ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// The inner connection is being opened.
    Connecting,
    /// The handshake goes on.
    Handshake,
    Open,
    /// Its end was told; the inner connection is still there.
    Over,
}

/// What decrypting came to.
enum Progress {
    /// All input was taken.
    Done,
    /// There is no room for more plain bytes.
    Full,
    /// The handshake is over.
    Opened,
    /// TLS is over.
    End(Ending),
}

impl<B: Backend> Tls<B> {
    /// TLS over `inner`, for one worker.
    pub fn new(inner: B, setup: &Setup) -> Tls<B> {
        let links = Links {
            setup: setup.clone(),
            config: setup.config(),
            slots: Vec::new(),
            plain: vec![0; SEALED_MAX].into_boxed_slice(),
            sealed: Vec::new(),
            unsettled: Vec::new(),
            again: Vec::new(),
            handshakes: Vec::new(),
        };
        Tls { inner, links }
    }
}

impl<B: Backend> Backend for Tls<B> {
    #[inline]
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        self.inner.open(conn, target);
        self.links.open(conn, target);
    }

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        let Links { slots, plain, sealed, again, .. } = &mut self.links;
        let link = find(slots, conn).expect("bytes are sent on connections that exist");
        assert!(link.state == LinkState::Open, "bytes are sent on connections that are open");
        if link.blocked {
            link.owes_writable = true;
            return Handed { taken: 0, at: self.inner.now() };
        }
        link.seal(parts, plain, sealed);
        let handed = link.push(conn, sealed, &mut self.inner);
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        assert!(handed.taken <= offered, "what was not taken is offered again");
        link.owes_writable = handed.taken < offered;
        // When the kernel took everything that may be encrypted at a time, it does not say when it takes more.
        if link.ending.is_some() || link.owes_writable && !link.blocked {
            again.push(conn);
        }
        handed
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        if let Some(link) = find(&mut self.links.slots, conn) {
            if how == Close::Fin && link.state == LinkState::Open {
                link.say_goodbye(conn, &mut self.links.sealed, &mut self.inner);
            }
            self.links.slots[conn.slot as usize] = None;
        }
        self.inner.close(conn, how);
    }

    #[inline]
    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        let until = if self.links.again.is_empty() { until } else { 0 };
        self.inner.wait(until)
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let Tls { inner, links } = self;
        links.tell_again(on);
        inner.drain(&mut |conn, event| links.handle(conn, event, on));
        links.settle(inner);
    }

    fn mend_stamps(&mut self) {
        self.inner.mend_stamps();
    }

    fn obstacle(&self, conn: ConnId) -> Option<&'static str> {
        let link = self.links.slots.get(conn.slot as usize)?.as_deref()?;
        let in_handshake = link.generation == conn.generation && link.state == LinkState::Handshake;
        in_handshake.then_some(words::SILENCE)
    }

    fn handshakes(&mut self, on: &mut impl FnMut(TlsHandshake)) {
        self.links.handshakes.drain(..).for_each(on);
    }
}

/// The connection of that name, unless it is over and gone.
#[inline]
fn find(slots: &mut [Option<Box<Link>>], conn: ConnId) -> Option<&mut Link> {
    let link = slots.get_mut(conn.slot as usize)?.as_deref_mut()?;
    (link.generation == conn.generation).then_some(link)
}

impl Links {
    fn open(&mut self, conn: ConnId, target: &Target) {
        let index = conn.slot as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let name = self.setup.name(target);
        self.slots[index] = Some(Box::new(Link::new(conn, Arc::clone(&self.config), name)));
    }

    /// Tells what does not come from the inner backend.
    fn tell_again(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        for conn in std::mem::take(&mut self.again) {
            let Some(link) = find(&mut self.slots, conn).filter(|link| link.state == LinkState::Open) else {
                continue;
            };
            if let Some(ending) = link.ending.take() {
                link.state = LinkState::Over;
                self.unsettle(conn);
                on(conn, Event::Closed(ending.reason(false, &[])));
            } else if link.owes_writable && !link.blocked {
                link.owes_writable = false;
                on(conn, Event::Writable);
            }
        }
    }

    /// Takes in what the inner backend tells.
    #[inline]
    fn handle(&mut self, conn: ConnId, event: Event<'_>, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let Some(link) = find(&mut self.slots, conn) else { return };
        match event {
            Event::Received { bytes, stamp, read } => self.receive(conn, bytes, stamp, read, on),
            Event::Opened { .. } => {
                link.state = LinkState::Handshake;
                self.unsettle(conn);
            }
            Event::Writable => {
                link.blocked = false;
                if link.owes_writable && link.state == LinkState::Open {
                    link.owes_writable = false;
                    on(conn, Event::Writable);
                } else {
                    self.unsettle(conn);
                }
            }
            Event::Closed(reason) => {
                let state = link.state;
                self.slots[conn.slot as usize] = None;
                match state {
                    LinkState::Over => {}
                    LinkState::Handshake => on(conn, Event::Closed(words::interrupted(reason))),
                    LinkState::Connecting | LinkState::Open => on(conn, Event::Closed(reason)),
                }
            }
        }
    }

    /// Decrypts what came, and hands it on with the times of the read that it came with.
    #[inline]
    fn receive(
        &mut self,
        conn: ConnId,
        bytes: &[u8],
        stamp: Option<Nanos>,
        read: Nanos,
        on: &mut impl FnMut(ConnId, Event<'_>),
    ) {
        let Links { slots, plain, handshakes, .. } = self;
        let Some(link) = find(slots, conn).filter(|link| link.state != LinkState::Over) else { return };
        let first = if link.heard { &[] } else { bytes };
        link.heard = true;
        let mut input = bytes;
        loop {
            let (len, progress) = link.decrypt(&mut input, plain);
            if len > 0 {
                on(conn, Event::Received { bytes: &mut plain[..len], stamp, read });
            }
            match progress {
                Progress::Done => break,
                Progress::Full => {}
                Progress::Opened => {
                    handshakes.push(link.handshake(stamp, read));
                    link.state = LinkState::Open;
                    on(conn, Event::Opened { at: read });
                }
                Progress::End(ending) => {
                    let in_handshake = link.state == LinkState::Handshake;
                    link.state = LinkState::Over;
                    on(conn, Event::Closed(ending.reason(in_handshake, first)));
                    break;
                }
            }
        }
        if link.state == LinkState::Over || link.tls.wants_write() {
            self.unsettle(conn);
        }
    }

    /// The inner backend is asked to send, or to close, when it has told everything.
    fn unsettle(&mut self, conn: ConnId) {
        if let Some(link) = find(&mut self.slots, conn)
            && !link.is_unsettled
        {
            link.is_unsettled = true;
            self.unsettled.push(conn);
        }
    }

    /// Sends what TLS has to say itself, and closes what is over.
    fn settle(&mut self, inner: &mut impl Backend) {
        for conn in self.unsettled.drain(..) {
            let Some(link) = find(&mut self.slots, conn) else { continue };
            link.is_unsettled = false;
            if link.state == LinkState::Over {
                link.say_goodbye(conn, &mut self.sealed, inner);
                self.slots[conn.slot as usize] = None;
                inner.close(conn, Close::Fin);
            } else {
                link.speak(conn, &mut self.sealed, inner);
            }
        }
    }
}

impl Link {
    fn new(conn: ConnId, config: Arc<ClientConfig>, name: ServerName<'static>) -> Link {
        let tls = ClientConnection::new(config, name).expect("the system gives random numbers");
        Link {
            generation: conn.generation,
            state: LinkState::Connecting,
            tls,
            backlog: Backlog::default(),
            blocked: false,
            owes_writable: false,
            is_unsettled: false,
            heard: false,
            began: NEVER,
            ending: None,
        }
    }

    /// Encrypts what the caller offers, beyond what was encrypted when it was offered before, into `sealed`.
    #[inline]
    fn seal(&mut self, parts: &[IoSlice<'_>], plain: &mut [u8], sealed: &mut Vec<u8>) {
        sealed.clear();
        self.collect(0, sealed);
        let mut known = self.backlog.plain_bytes();
        let room = plain.len().saturating_sub(known);
        let mut len = 0;
        for part in parts {
            let fresh = &part[known.min(part.len())..];
            known -= part.len() - fresh.len();
            let count = fresh.len().min(room - len);
            plain[len..len + count].copy_from_slice(&fresh[..count]);
            len += count;
        }
        for record in plain[..len].chunks(RECORD_BYTES) {
            match self.tls.writer().write(record) {
                Ok(count) if count == record.len() => self.collect(count, sealed),
                _ => {
                    // What was encrypted of it is not sent: the connection ends here.
                    self.ending = Some(Ending::Spent);
                    return;
                }
            }
        }
    }

    /// Moves what is encrypted into `sealed`, as one record that holds `plain` bytes of the caller.
    #[inline]
    fn collect(&mut self, plain: usize, sealed: &mut Vec<u8>) {
        let before = sealed.len();
        while self.tls.wants_write() {
            self.tls.write_tls(sealed).expect("memory takes everything");
        }
        if sealed.len() > before {
            self.backlog.add(sealed.len() - before, plain);
        }
    }

    /// Offers the backlog and the new records in `sealed` to the kernel, with one system call; `taken` counts plain
    /// bytes of the caller.
    #[inline]
    fn push(&mut self, conn: ConnId, sealed: &[u8], inner: &mut impl Backend) -> Handed {
        let offered = self.backlog.len() + sealed.len();
        if offered == 0 {
            return Handed { taken: 0, at: inner.now() };
        }
        let parts = self.backlog.parts(sealed);
        let handed = inner.send(conn, if parts[0].is_empty() { &parts[1..] } else { &parts });
        self.blocked = handed.taken < offered;
        Handed { taken: self.backlog.take(handed.taken, sealed), at: handed.at }
    }

    /// Sends what TLS has to say itself. What the caller has to offer again goes with the caller's next send.
    fn speak(&mut self, conn: ConnId, sealed: &mut Vec<u8>, inner: &mut impl Backend) {
        if self.blocked || self.backlog.plain_bytes() > 0 {
            return;
        }
        sealed.clear();
        self.collect(0, sealed);
        let handed = self.push(conn, sealed, inner);
        if self.state == LinkState::Handshake && self.began == NEVER {
            self.began = handed.at;
        }
    }

    /// Says that nothing more is sent, or what was wrong with what the server sent, if the socket takes it.
    fn say_goodbye(&mut self, conn: ConnId, sealed: &mut Vec<u8>, inner: &mut impl Backend) {
        if self.blocked {
            return;
        }
        self.tls.send_close_notify();
        sealed.clear();
        self.collect(0, sealed);
        self.push(conn, sealed, inner);
    }

    /// Decrypts input until all is taken, `plain` is full, or there is something to tell; the number of plain bytes
    /// goes before that.
    #[inline]
    fn decrypt(&mut self, input: &mut &[u8], plain: &mut [u8]) -> (usize, Progress) {
        let mut len = 0;
        loop {
            // An error here says that there is nothing at the moment, or nothing any more.
            len += self.tls.reader().read(&mut plain[len..]).unwrap_or(0);
            if len == plain.len() {
                return (len, Progress::Full);
            }
            if let Some(ending) = self.ending.take() {
                return (len, Progress::End(ending));
            }
            if input.is_empty() {
                return (len, Progress::Done);
            }
            if let Err(error) = self.tls.read_tls(input) {
                let error = rustls::Error::General(error.to_string());
                return (len, Progress::End(Ending::Failed(error)));
            }
            match self.tls.process_new_packets() {
                Ok(state) if state.peer_has_closed() => self.ending = Some(Ending::Orderly),
                Ok(_) => {}
                Err(error) => self.ending = Some(Ending::Failed(error)),
            }
            let in_handshake = self.state == LinkState::Handshake && self.ending.is_none();
            if in_handshake && !self.tls.is_handshaking() {
                return (len, Progress::Opened);
            }
        }
    }

    /// The handshake that ended with what arrived with these times.
    fn handshake(&self, stamp: Option<Nanos>, read: Nanos) -> TlsHandshake {
        let possible = self.began.saturating_sub(STAMP_SLACK_NS)..=read + STAMP_SLACK_NS;
        let arrived = stamp.filter(|stamp| possible.contains(stamp)).unwrap_or(read);
        TlsHandshake {
            took: arrived.saturating_sub(self.began),
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}
