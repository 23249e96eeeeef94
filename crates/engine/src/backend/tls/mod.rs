//! TLS as a backend around a backend: it encrypts sent bytes, decrypts received ones, and reports a connection as open
//! after its handshake.

mod backlog;
mod setup;
mod words;

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use pummel_logic::time::{MICROSECOND, NEVER, Nanos};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::backend::{Backend, Close, ConnId, Event, Handed, Mark, Target, TlsHandshake, TransmitStamp};
use backlog::Backlog;
pub use setup::{FileReader, Setup, TlsError, server_config};
use words::Ending;

/// Most plain bytes of a connection that are encrypted and were not taken by the kernel.
const SEALED_MAX: usize = 64 * 1024;

/// Most plain bytes of one record (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 16 * 1024;

/// Nanoseconds by which a receive stamp may be out of its bounds.
const STAMP_SLACK_NS: Nanos = MICROSECOND;

/// A backend that speaks TLS over another backend.
///
/// A send is one system call, as without TLS, and returns the number of plain bytes whose encrypted form the kernel
/// took. The caller offers bytes again that are encrypted but were not taken, and they are not encrypted twice.
pub struct Tls<B> {
    inner: B,
    links: Links,
}

/// The TLS links of a worker, and what they share.
struct Links {
    setup: Setup,
    config: Arc<ClientConfig>,
    slots: Vec<Option<Box<Link>>>,
    /// Buffer of plain bytes, for both directions.
    plain: Box<[u8]>,
    /// Buffer of encrypted bytes on the way to the kernel.
    sealed: Vec<u8>,
    /// Connections with TLS messages to send, or to be closed, after the inner backend's drain.
    pending: Vec<ConnId>,
    /// Connections with events for the next drain that do not come from the inner backend.
    again: Vec<ConnId>,
    handshakes: Vec<TlsHandshake>,
}

/// The TLS link of one connection.
struct Link {
    generation: u32,
    state: LinkState,
    tls: ClientConnection,
    /// Encrypted bytes that were not taken. At most [`SEALED_MAX`] of the plain bytes in them are the caller's.
    backlog: Backlog,
    /// Whether an [`Event::Writable`] of the inner backend is to come.
    blocked: bool,
    /// Whether the caller is owed an [`Event::Writable`].
    owes_writable: bool,
    /// Whether the connection is in `pending`.
    is_pending: bool,
    /// Whether the server has sent bytes.
    has_received: bool,
    /// When the handshake began; [`NEVER`] before that.
    began: Nanos,
    /// The end of TLS, where it was not handed over yet.
    ending: Option<Ending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// The inner connection is being opened.
    Connecting,
    /// The TLS handshake is under way.
    Handshake,
    Open,
    /// The end was handed over, and the inner connection is still to be closed.
    Over,
}

/// The progress of decrypting.
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
            pending: Vec::new(),
            again: Vec::new(),
            handshakes: Vec::new(),
        };
        Tls { inner, links }
    }

    /// The backend below TLS.
    pub fn inner(&self) -> &B {
        &self.inner
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
        self.send_marked(conn, parts, None)
    }

    fn send_marked(&mut self, conn: ConnId, parts: &[IoSlice<'_>], mark: Option<Mark>) -> Handed {
        let Links { slots, plain, sealed, again, .. } = &mut self.links;
        let link = find(slots, conn).expect("bytes are sent on connections that exist");
        assert!(link.state == LinkState::Open, "bytes are sent on connections that are open");
        if link.blocked {
            link.owes_writable = true;
            return Handed { taken: 0, at: self.inner.now() };
        }
        link.seal(parts, plain, sealed);
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        // The last encrypted byte stands for the last byte of the caller where all that was offered is encrypted.
        let mark = mark.filter(|_| link.backlog.plain_bytes() == offered);
        let handed = link.push(conn, sealed, mark, &mut self.inner);
        assert!(handed.taken <= offered, "what was not taken is offered again");
        link.owes_writable = handed.taken < offered;
        // When the kernel took all bytes that may be encrypted at a time, no event of the inner backend follows.
        if link.ending.is_some() || link.owes_writable && !link.blocked {
            again.push(conn);
        }
        handed
    }

    fn transmit_stamp(&mut self, conn: ConnId, mark: Mark) -> TransmitStamp {
        self.inner.transmit_stamp(conn, mark)
    }

    fn received_by_card(&mut self, conn: ConnId, arrived: Nanos) -> Option<Nanos> {
        self.inner.received_by_card(conn, arrived)
    }

    fn left_by_card(&mut self, conn: ConnId, mark: Mark) -> Option<Nanos> {
        self.inner.left_by_card(conn, mark)
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        if let Some(link) = find(&mut self.links.slots, conn) {
            if how == Close::Fin && link.state == LinkState::Open {
                link.send_close(conn, &mut self.links.sealed, &mut self.inner);
            }
            self.links.slots[conn.slot as usize] = None;
        }
        self.inner.close(conn, how);
    }

    #[inline]
    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.inner.wait(self.links.wait_until(until))
    }

    #[inline]
    fn wait_from(&mut self, now: Nanos, until: Nanos) -> io::Result<Nanos> {
        self.inner.wait_from(now, self.links.wait_until(until))
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let Tls { inner, links } = self;
        links.report_own(on);
        inner.drain(&mut |conn, event| links.handle(conn, event, on));
        links.flush_pending(inner);
    }

    fn mend_stamps(&mut self) {
        self.inner.mend_stamps();
    }

    fn why_not_open(&self, conn: ConnId) -> Option<&'static str> {
        let link = self.links.slots.get(conn.slot as usize)?.as_deref()?;
        let in_handshake = link.generation == conn.generation && link.state == LinkState::Handshake;
        in_handshake.then_some(words::SILENCE)
    }

    fn handshakes(&mut self, on: &mut impl FnMut(TlsHandshake)) {
        self.links.handshakes.drain(..).for_each(on);
    }
}

/// The link of a connection; `None` when the connection is over.
#[inline]
fn find(slots: &mut [Option<Box<Link>>], conn: ConnId) -> Option<&mut Link> {
    let link = slots.get_mut(conn.slot as usize)?.as_deref_mut()?;
    (link.generation == conn.generation).then_some(link)
}

impl Links {
    /// Until when the inner backend may wait where the caller waits until `until`.
    #[inline]
    fn wait_until(&self, until: Nanos) -> Nanos {
        if self.again.is_empty() { until } else { 0 }
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        let index = conn.slot as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let name = self.setup.name(target);
        self.slots[index] = Some(Box::new(Link::new(conn, Arc::clone(&self.config), name)));
    }

    /// Hands over the events that do not come from the inner backend.
    fn report_own(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        for conn in std::mem::take(&mut self.again) {
            let Some(link) = find(&mut self.slots, conn).filter(|link| link.state == LinkState::Open) else {
                continue;
            };
            if let Some(ending) = link.ending.take() {
                link.state = LinkState::Over;
                self.mark_pending(conn);
                on(conn, Event::Closed(ending.reason(false, &[])));
            } else if link.owes_writable && !link.blocked {
                link.owes_writable = false;
                on(conn, Event::Writable);
            }
        }
    }

    /// Handles an event of the inner backend.
    #[inline]
    fn handle(&mut self, conn: ConnId, event: Event<'_>, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let Some(link) = find(&mut self.slots, conn) else { return };
        match event {
            Event::Received { bytes, stamp, read } => self.receive(conn, bytes, stamp, read, on),
            Event::Opened { .. } => {
                link.state = LinkState::Handshake;
                self.mark_pending(conn);
            }
            Event::Writable => {
                link.blocked = false;
                if link.owes_writable && link.state == LinkState::Open {
                    link.owes_writable = false;
                    on(conn, Event::Writable);
                } else {
                    self.mark_pending(conn);
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

    /// Decrypts received bytes, and hands them over with the times of their read.
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
        let first = if link.has_received { &[] } else { bytes };
        link.has_received = true;
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
            self.mark_pending(conn);
        }
    }

    /// Marks the connection, so that `flush_pending` writes for it after the inner backend's drain.
    fn mark_pending(&mut self, conn: ConnId) {
        if let Some(link) = find(&mut self.slots, conn)
            && !link.is_pending
        {
            link.is_pending = true;
            self.pending.push(conn);
        }
    }

    /// Sends the messages of TLS itself, and closes the connections that are over.
    fn flush_pending(&mut self, inner: &mut impl Backend) {
        for conn in self.pending.drain(..) {
            let Some(link) = find(&mut self.slots, conn) else { continue };
            link.is_pending = false;
            if link.state == LinkState::Over {
                link.send_close(conn, &mut self.sealed, inner);
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
            is_pending: false,
            has_received: false,
            began: NEVER,
            ending: None,
        }
    }

    /// Encrypts the offered bytes into `sealed`, without those that were encrypted when they were offered before.
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
                    // The connection ends here, and the encrypted part of the record is not sent.
                    self.ending = Some(Ending::Spent);
                    return;
                }
            }
        }
    }

    /// Moves the encrypted bytes into `sealed`, as one record with `plain` bytes of the caller.
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
    fn push(&mut self, conn: ConnId, sealed: &[u8], mark: Option<Mark>, inner: &mut impl Backend) -> Handed {
        let offered = self.backlog.len() + sealed.len();
        if offered == 0 {
            return Handed { taken: 0, at: inner.now() };
        }
        let parts = self.backlog.parts(sealed);
        let parts = if parts[0].is_empty() { &parts[1..] } else { &parts[..] };
        let handed = inner.send_marked(conn, parts, mark);
        self.blocked = handed.taken < offered;
        Handed { taken: self.backlog.take(handed.taken, sealed), at: handed.at }
    }

    /// Sends the messages of TLS itself. Bytes that the caller has to offer again go with the caller's next send.
    fn speak(&mut self, conn: ConnId, sealed: &mut Vec<u8>, inner: &mut impl Backend) {
        if self.blocked || self.backlog.plain_bytes() > 0 {
            return;
        }
        sealed.clear();
        self.collect(0, sealed);
        let handed = self.push(conn, sealed, None, inner);
        if self.state == LinkState::Handshake && self.began == NEVER {
            self.began = handed.at;
        }
    }

    /// Sends the alert that ends TLS: an orderly close, or the error of the server's messages. Nothing is sent where
    /// the socket is full.
    fn send_close(&mut self, conn: ConnId, sealed: &mut Vec<u8>, inner: &mut impl Backend) {
        if self.blocked {
            return;
        }
        self.tls.send_close_notify();
        sealed.clear();
        self.collect(0, sealed);
        self.push(conn, sealed, None, inner);
    }

    /// Decrypts `input` until all of it is taken, `plain` is full, or an event has to be handed over. Returns the
    /// number of plain bytes before that event.
    #[inline]
    fn decrypt(&mut self, input: &mut &[u8], plain: &mut [u8]) -> (usize, Progress) {
        let mut len = 0;
        loop {
            // An error of the reader says that no plain bytes are available.
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

    /// The handshake, whose last message arrived and was read at these times.
    fn handshake(&self, stamp: Option<Nanos>, read: Nanos) -> TlsHandshake {
        let possible = self.began.saturating_sub(STAMP_SLACK_NS)..=read + STAMP_SLACK_NS;
        let arrived = stamp.filter(|stamp| possible.contains(stamp)).unwrap_or(read);
        TlsHandshake {
            took: arrived.saturating_sub(self.began),
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pummel_logic::plan::TlsOptions;

    use super::*;

    /// A backend without connections, which counts how often its clock is read.
    struct Clock(Cell<u64>);

    impl Backend for Clock {
        fn now(&self) -> Nanos {
            self.0.set(self.0.get() + 1);
            7
        }

        fn open(&mut self, _: ConnId, _: &Target) {}

        fn send(&mut self, _: ConnId, _: &[IoSlice<'_>]) -> Handed {
            Handed { taken: 0, at: 7 }
        }

        fn close(&mut self, _: ConnId, _: Close) {}

        fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
            let now = self.now();
            self.wait_from(now, until)
        }

        fn wait_from(&mut self, now: Nanos, until: Nanos) -> io::Result<Nanos> {
            Ok(now.max(until))
        }

        fn drain(&mut self, _: &mut impl FnMut(ConnId, Event<'_>)) {}
    }

    #[test]
    fn the_time_that_the_caller_knows_reaches_the_backend_below() {
        let options = TlsOptions { insecure: true, ..TlsOptions::default() };
        let setup = Setup::new(&options, &[]).expect("it needs no file");
        let mut tls = Tls::new(Clock(Cell::new(0)), &setup);
        assert_eq!((tls.wait_from(20, 30).unwrap(), tls.inner().0.get()), (30, 0));
        assert_eq!((tls.wait(30).unwrap(), tls.inner().0.get()), (30, 1));
        tls.links.again.push(ConnId { slot: 0, generation: 1 });
        assert_eq!(tls.wait_from(20, 30).unwrap(), 20, "what waits to be told is not slept over");
        assert_eq!(tls.wait(30).unwrap(), 7);
    }
}
