//! The epoll backend, which makes completions from readiness: edge-triggered, with one registration for the life of a
//! connection.

use std::io;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use pummel_logic::plan::{Clock, Socket, Wait};
use pummel_logic::time::Nanos;
use pummel_measure::trouble::CloseReason;

use super::dial::reason;
use super::sockets::{BLOCKED, CARD, DATAGRAMS, STAMPED, Shortfall, Slot, SlotState, Sockets, TRANSMITS};
use super::stamps::Stamps;
use super::transmit::{Mark, TransmitStamp, TransmitStamps};
use super::waiting::WaitStrategy;
use super::{Backend, Close, ConnId, Event, Handed, Target};
use crate::clock;
use crate::sys::{self, Alarm, Poller, Ready, WaitLimit};

/// Size of the block into which a worker receives. A read that does not fill the block has emptied the socket. Values
/// of 100 KB cost a third more with a quarter of this size, and untouched pages take no memory (docs/PERFORMANCE.md).
const SCRATCH_BYTES: usize = 256 * 1024;

/// Most reads of one connection in one [`Backend::drain`]. The rest waits for the other connections.
const READS_MAX: u32 = 4;

/// Most reads of one connection over datagrams in one [`Backend::drain`]. Each datagram takes a read.
const DATAGRAMS_MAX: u32 = 64;

/// Most reports of readiness taken with one system call.
const READY_MAX: usize = 256;

/// Most times in a row that the socket of a worker's only connection is read without asking for readiness.
const TRIES: u32 = 16;

/// Token of the alarm. No connection has it, since there are never 2^32 slots.
const ALARM: u64 = u64::MAX;

/// The readiness that every connection is registered for. Writability costs nothing while sends are whole, since the
/// kernel reports it again only after a send was refused or cut.
const INTEREST: u32 = sys::READABLE | sys::WRITABLE | sys::PEER_CLOSED | sys::EDGES;

/// Readiness bits of a stream that has ended or is about to end, which is read until a read returns how.
const ENDING: u32 = sys::PEER_CLOSED | sys::HUNG_UP | sys::FAILED;

/// A backend on epoll.
pub struct Epoll {
    poller: Poller,
    sleeper: Sleeper,
    waiting: WaitStrategy,
    sockets: Sockets,
    ready: Box<[Ready; READY_MAX]>,
    /// Number of entries of `ready` that wait for [`Backend::drain`].
    ready_count: usize,
    /// Connections that the next drain serves without a report of the kernel: they have more to read, or are broken.
    again: Vec<ConnId>,
    /// The list that `again` is exchanged with during a drain.
    again_spare: Vec<ConnId>,
    scratch: Box<[u8]>,
    /// A read of the connection in slot 0, whose bytes are in `scratch`, for the next [`Backend::drain`].
    held: Option<HeldRead>,
    /// Number of times in a row that the only connection was read without asking for readiness.
    tries: u32,
}

/// A read of the only connection that was not handed over yet.
struct HeldRead {
    len: usize,
    stamp: Option<Nanos>,
    read: Nanos,
}

/// The way in which the backend sleeps until a point of time.
enum Sleeper {
    /// The kernel's wait takes nanoseconds.
    Fine,
    /// The kernel's wait takes milliseconds, and an alarm ends the sleep.
    Alarmed(Alarm),
}

/// Flag: the slot is in `again`.
const QUEUED: u8 = 32;
/// Flag: the stream has ended or is about to end; see [`ENDING`].
const ENDS: u8 = 64;

/// The end of a series of reads.
enum ReadEnd {
    /// The socket is empty.
    All,
    /// The socket may have more bytes.
    Some,
    /// The stream is over.
    End(CloseReason),
}

impl Epoll {
    /// A backend for one worker, made on the worker's own thread.
    ///
    /// # Errors
    /// Returns the error of `epoll_create1`, `timerfd_create` or `socket` (EMFILE or ENFILE when no descriptor is
    /// left), or of `setsockopt` (ENOPROTOOPT when the kernel has no receive stamps).
    pub fn new(wait: Wait, receive_clock: Clock, options: &Socket) -> io::Result<Epoll> {
        let sockets = Sockets::new(receive_clock, options)?;
        let poller = Poller::new()?;
        let mut ready = Box::new([Ready::NONE; READY_MAX]);
        let sleeper = match poller.wait_fine(&mut ready[..], WaitLimit::Look) {
            Ok(_) => Sleeper::Fine,
            Err(_) => Sleeper::alarmed(&poller)?,
        };
        Ok(Epoll {
            poller,
            sleeper,
            waiting: WaitStrategy::new(wait),
            sockets,
            ready,
            ready_count: 0,
            again: Vec::new(),
            again_spare: Vec::new(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            held: None,
            tries: 0,
        })
    }

    /// The socket of a connection; `None` when the connection is over.
    pub fn socket(&self, conn: ConnId) -> Option<BorrowedFd<'_>> {
        let slots = &self.sockets.slots;
        let slot = slots.get(conn.slot as usize).filter(|slot| slot.generation == conn.generation)?;
        slot.fd.as_ref().map(|fd| fd.as_fd())
    }

    /// The backend with transmit stamps, which need the kernel's clock for receive stamps.
    pub fn with_transmit_stamps(mut self, transmit: Option<TransmitStamps>) -> Epoll {
        self.sockets.set_transmit_stamps(transmit);
        self
    }

    fn look_again(&mut self, conn: ConnId) {
        if let Some(slot) = self.sockets.find(conn)
            && !slot.is(QUEUED)
        {
            slot.flags |= QUEUED;
            self.again.push(conn);
        }
    }

    /// Makes the socket of a connection, begins to connect it, and registers it. A failure is handed over by the next drain.
    fn dial(&mut self, conn: ConnId, target: &Target) {
        let begun = self.sockets.dial(conn, target).and_then(|socket| match socket {
            // The socket is registered after connect(), since it reports before that it is hung up.
            Some(socket) => self.poller.add(socket, INTEREST, token(conn)),
            None => Ok(()),
        });
        if let Err(error) = begun {
            self.fail(conn, &error);
        }
    }

    /// Notes where a send found its connection broken. The kernel reports by itself when a full socket takes bytes again.
    #[inline(always)]
    fn handle_sent(&mut self, conn: ConnId, (handed, shortfall): (Handed, Shortfall)) -> Handed {
        if let Shortfall::Broken(Some(error)) = shortfall {
            self.fail(conn, &error);
        }
        handed
    }

    /// Notes that a connection is broken. The next drain hands that over, after the bytes that can still be read.
    #[cold]
    fn fail(&mut self, conn: ConnId, error: &io::Error) {
        if let Some(slot) = self.sockets.keep_error(conn, error) {
            slot.flags |= ENDS;
            self.look_again(conn);
        }
    }

    /// Tries the full unix listeners again.
    fn retry_unix(&mut self) {
        for (conn, target) in self.sockets.take_retries() {
            self.dial(conn, &target);
        }
    }

    /// Asks the kernel which sockets are ready. Returns whether any is, or whether a signal interrupted the wait.
    #[inline]
    fn ask(&mut self, wait_limit: WaitLimit) -> io::Result<bool> {
        let ready = &mut self.ready[..];
        let found = match (&self.sleeper, wait_limit) {
            (_, WaitLimit::Look) => self.poller.wait_coarse(ready, false),
            (_, WaitLimit::Endless) => self.poller.wait_coarse(ready, true),
            (Sleeper::Fine, _) => self.poller.wait_fine(ready, wait_limit),
            (Sleeper::Alarmed(alarm), WaitLimit::For(ns)) => {
                alarm.set(Some(clock::now() + ns))?;
                self.poller.wait_coarse(ready, true)
            }
        };
        match found {
            Ok(found) => {
                self.ready_count = if found == 1 && self.needs_no_drain(self.ready[0]) { 0 } else { found };
                Ok(self.ready_count > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.ready_count = 0;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a report that came alone needs no drain: the alarm, or the writability of the only connection, which is
    /// left of a report whose bytes were read without asking.
    #[inline]
    fn needs_no_drain(&self, ready: Ready) -> bool {
        let [slot] = &self.sockets.slots[..] else { return ready.token() == ALARM };
        ready.token() == ALARM
            || ready.bits() == sys::WRITABLE && slot.state == SlotState::Open && !slot.is(BLOCKED)
    }

    /// Whether to read the socket without asking for readiness, which saves a system call where a worker has only ever
    /// had one connection and spins for its bytes. Now and then readiness is asked for all the same, since it also
    /// reports other events.
    #[inline]
    fn reads_unasked(&mut self, wait_limit: WaitLimit) -> bool {
        let [slot] = &self.sockets.slots[..] else { return false };
        let plain =
            slot.state == SlotState::Open && slot.flags & !(STAMPED | TRANSMITS) == 0 && slot.errno == 0;
        let looks = plain && wait_limit == WaitLimit::Look;
        self.tries = if looks { (self.tries + 1) % (TRIES + 1) } else { 0 };
        self.tries > 0
    }

    /// Reads the socket of the only connection. Returns whether the next drain has something to hand over.
    #[inline]
    fn read_unasked(&mut self) -> bool {
        let slot = &self.sockets.slots[0];
        let conn = ConnId { slot: 0, generation: slot.generation };
        match receive(slot, self.sockets.stamps.as_ref(), &mut self.scratch) {
            // The next read finds the end again and hands it over.
            Ok((0, _)) => self.look_again(conn),
            Ok((len, stamp)) => {
                self.held = Some(HeldRead { len, stamp, read: clock::now() });
                if len == self.scratch.len() {
                    self.look_again(conn);
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => return false,
                _ => self.fail(conn, &error),
            },
        }
        true
    }

    /// Hands over the events of one connection, by the bits of a report and the flags of its slot.
    #[inline(always)]
    fn serve(&mut self, conn: ConnId, mut bits: u32, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let Some(slot) = self.sockets.find(conn) else { return };
        let (state, is_blocked) = (slot.state, slot.is(BLOCKED));
        if state == SlotState::Connecting {
            match self.sockets.finish_connect(conn, bits) {
                Ok(false) => return,
                Ok(true) => on(conn, Event::Opened { at: clock::now() }),
                Err(reason) => return self.end(conn, reason, on),
            }
        }
        if is_blocked && bits & sys::WRITABLE != 0 {
            bits = self.sockets.without_stamps(conn, bits);
            let slot = &mut self.sockets.slots[conn.slot as usize];
            slot.flags &= !BLOCKED;
            if slot.errno == 0 && bits & ENDING == 0 {
                on(conn, Event::Writable);
            }
        }
        if bits & ENDING != 0 {
            bits = self.sockets.without_stamps(conn, bits);
            if bits & ENDING != 0 {
                self.sockets.slots[conn.slot as usize].flags |= ENDS;
                bits |= sys::READABLE;
            }
        }
        if bits & sys::READABLE == 0 {
            return;
        }
        match self.read(conn, on) {
            ReadEnd::All => {}
            ReadEnd::Some => self.look_again(conn),
            ReadEnd::End(reason) => self.end(conn, reason, on),
        }
    }

    /// Frees the slot of a connection and hands over its end.
    fn end(&mut self, conn: ConnId, reason: CloseReason, on: &mut impl FnMut(ConnId, Event<'_>)) {
        self.sockets.slots[conn.slot as usize].free();
        on(conn, Event::Closed(reason));
    }

    /// Hands over the events of a connection in `again`. The function is not inlined, since such connections are few.
    #[inline(never)]
    fn serve_again(&mut self, conn: ConnId, on: &mut impl FnMut(ConnId, Event<'_>)) {
        if let Some(slot) = self.sockets.find(conn) {
            slot.flags &= !QUEUED;
            self.serve(conn, sys::READABLE, on);
        }
    }

    /// Reads the available bytes, within the limit of reads of one connection.
    #[inline(always)]
    fn read(&mut self, conn: ConnId, on: &mut impl FnMut(ConnId, Event<'_>)) -> ReadEnd {
        if self.sockets.slots[conn.slot as usize].is(CARD) {
            return self.read_by_card(conn, on);
        }
        self.read_from::<false>(conn, on)
    }

    /// Reads the available bytes of a socket that has the stamps of the network card. The function is not inlined, since such
    /// sockets are asked for by an option.
    #[inline(never)]
    fn read_by_card(&mut self, conn: ConnId, on: &mut impl FnMut(ConnId, Event<'_>)) -> ReadEnd {
        self.read_from::<true>(conn, on)
    }

    /// Reads the available bytes, of a socket with the stamps of the network card or of one without.
    #[inline(always)]
    fn read_from<const BY_CARD: bool>(
        &mut self,
        conn: ConnId,
        on: &mut impl FnMut(ConnId, Event<'_>),
    ) -> ReadEnd {
        let Sockets { slots, stamps, transmit, .. } = &mut self.sockets;
        let slot = &slots[conn.slot as usize];
        if slot.fd.is_none() {
            return ReadEnd::End(slot.reason());
        }
        let datagrams = slot.is(DATAGRAMS);
        for _ in 0..if datagrams { DATAGRAMS_MAX } else { READS_MAX } {
            let received = if BY_CARD {
                receive_by_card(conn.slot, slot, (stamps.as_ref(), transmit), &mut self.scratch)
            } else {
                receive(slot, stamps.as_ref(), &mut self.scratch)
            };
            match received {
                Ok((0, _)) if datagrams => {}
                Ok((0, _)) => return ReadEnd::End(slot.reason()),
                Ok((len, stamp)) => {
                    let read = clock::now();
                    on(conn, Event::Received { bytes: &mut self.scratch[..len], stamp, read });
                    // A read shorter than the block has emptied the socket. Bytes that come later make a new edge.
                    if len < self.scratch.len() && !slot.is(ENDS) && !datagrams {
                        return ReadEnd::All;
                    }
                }
                // A socket that a send found broken has no more bytes and ends here too.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && slot.errno == 0 => {
                    return ReadEnd::All;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if slot.errno != 0 => return ReadEnd::End(slot.reason()),
                Err(error) => return ReadEnd::End(reason(sys::errno(&error))),
            }
        }
        ReadEnd::Some
    }
}

/// Reads once. Returns the number of bytes and their receive stamp on the monotonic clock, where the socket has stamps.
#[inline(always)]
fn receive(slot: &Slot, stamps: Option<&Stamps>, into: &mut [u8]) -> io::Result<(usize, Option<Nanos>)> {
    match stamps.filter(|_| slot.is(STAMPED)) {
        Some(stamps) => sys::receive_stamped(slot.socket(), into)
            .map(|(len, stamp)| (len, stamp.map(|wall| stamps.to_monotonic(wall)))),
        None => sys::receive(slot.socket(), into).map(|len| (len, None)),
    }
}

/// Reads once on a socket that has the stamps of the network card, which are remembered.
fn receive_by_card(
    number: u32,
    slot: &Slot,
    (stamps, transmit): (Option<&Stamps>, &mut Option<Box<TransmitStamps>>),
    into: &mut [u8],
) -> io::Result<(usize, Option<Nanos>)> {
    let (len, received) = sys::receive_stamped_by_card(slot.socket(), into)?;
    let arrived = received.kernel.zip(stamps).map(|(wall, stamps)| stamps.to_monotonic(wall));
    if let (Some(arrived), Some(card), Some(transmit)) = (arrived, received.card, transmit) {
        transmit.note_received(number, arrived, card);
    }
    Ok((len, arrived))
}

impl Slot {
    /// The socket that is read.
    #[inline(always)]
    fn socket(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("who reads has looked whether there is a socket").as_fd()
    }
}

fn token(conn: ConnId) -> u64 {
    u64::from(conn.generation) << 32 | u64::from(conn.slot)
}

fn conn_of(token: u64) -> ConnId {
    ConnId { slot: token as u32, generation: (token >> 32) as u32 }
}

impl Sleeper {
    fn alarmed(poller: &Poller) -> io::Result<Sleeper> {
        let alarm = Alarm::new()?;
        poller.add(alarm.as_fd(), sys::READABLE | sys::EDGES, ALARM)?;
        Ok(Sleeper::Alarmed(alarm))
    }
}

impl Backend for Epoll {
    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        assert!(conn.slot != u32::MAX, "slots are small numbers");
        self.sockets.take_slot(conn);
        self.dial(conn, target);
    }

    #[inline(always)]
    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        let sent = self.sockets.send(conn, parts);
        self.handle_sent(conn, sent)
    }

    fn send_marked(&mut self, conn: ConnId, parts: &[IoSlice<'_>], mark: Option<Mark>) -> Handed {
        match self.sockets.send_marked(conn, parts, mark) {
            Some(sent) => self.handle_sent(conn, sent),
            None => self.send(conn, parts),
        }
    }

    fn transmit_stamp(&mut self, conn: ConnId, mark: Mark) -> TransmitStamp {
        self.sockets.transmit_stamp(conn, mark)
    }

    fn received_by_card(&mut self, conn: ConnId, arrived: Nanos) -> Option<Nanos> {
        self.sockets.find(conn)?;
        self.sockets.transmit.as_ref()?.received_by_card(conn.slot, arrived)
    }

    fn left_by_card(&mut self, conn: ConnId, mark: Mark) -> Option<Nanos> {
        self.sockets.left_by_card(conn, mark)
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        if let Some(slot) = self.sockets.find(conn) {
            slot.prepare_to_close(how);
            slot.free();
            if conn.slot == 0 {
                self.held = None;
            }
        }
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.wait_from(clock::now(), until)
    }

    fn wait_from(&mut self, mut now: Nanos, until: Nanos) -> io::Result<Nanos> {
        if self.ready_count > 0 || self.held.is_some() {
            return Ok(now);
        }
        loop {
            if now >= self.sockets.retry_at() {
                self.retry_unix();
            }
            if !self.again.is_empty() {
                self.ask(WaitLimit::Look)?;
                return Ok(clock::now());
            }
            let wait_limit = self.waiting.wait_limit(now, until.min(self.sockets.retry_at()));
            let something = match self.reads_unasked(wait_limit) {
                true => self.read_unasked(),
                false => self.ask(wait_limit)?,
            };
            now = clock::now();
            if !something {
                self.waiting.slept(now);
            }
            self.sockets.renew_stamps_when_due(now);
            if something || now >= until {
                return Ok(now);
            }
        }
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        if let Some(HeldRead { len, stamp, read }) = self.held.take() {
            let conn = ConnId { slot: 0, generation: self.sockets.slots[0].generation };
            on(conn, Event::Received { bytes: &mut self.scratch[..len], stamp, read });
        }
        let again = std::mem::replace(&mut self.again, std::mem::take(&mut self.again_spare));
        for index in 0..std::mem::take(&mut self.ready_count) {
            let ready = self.ready[index];
            if ready.token() != ALARM {
                self.serve(conn_of(ready.token()), ready.bits(), on);
            }
        }
        for &conn in &again {
            self.serve_again(conn, on);
        }
        self.again_spare = again;
        self.again_spare.clear();
    }

    fn mend_stamps(&mut self) {
        self.sockets.mend_stamps();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::backend::testing::{
        check_that_nothing_is_stamped, check_that_peers_see_how_we_close, listener, opened,
    };
    use pummel_logic::protocol::Fault;
    use pummel_logic::time::{MILLISECOND, NEVER, SECOND};

    fn epoll(options: &Socket) -> Epoll {
        Epoll::new(Wait::Block, Clock::Kernel, options).unwrap()
    }

    #[test]
    fn one_connection_takes_no_more_than_its_share_of_a_drain() {
        let mut epoll = epoll(&Socket::default());
        epoll.scratch = vec![0; 1024].into_boxed_slice();
        let (listener, target) = listener();
        let (_, mut stream) = opened(&mut epoll, &listener, &target);
        let message: Vec<u8> = (0..20_000u32).map(|i| i as u8).collect();
        stream.write_all(&message).unwrap();
        let (mut received, mut turns) = (Vec::new(), 0);
        while received.len() < message.len() {
            epoll.wait(clock::now() + 10 * SECOND).unwrap();
            let mut reads = 0;
            epoll.drain(&mut |_, event| {
                let Event::Received { bytes, .. } = event else { panic!("{event:?}") };
                received.extend_from_slice(bytes);
                reads += 1;
            });
            // An edge and the place in the queue can fall into one turn.
            assert!(reads <= 2 * READS_MAX, "{reads} reads in one turn");
            turns += 1;
        }
        assert!(turns > 1);
        assert!(received == message);
    }

    #[test]
    fn without_a_fine_wait_an_alarm_keeps_the_time() {
        for wait in [Wait::Auto, Wait::Block] {
            let mut epoll = Epoll::new(wait, Clock::Kernel, &Socket::default()).unwrap();
            epoll.sleeper = Sleeper::alarmed(&epoll.poller).unwrap();
            for ns in [0, 20_000, 1_500_000, 7 * MILLISECOND] {
                let until = clock::now() + ns;
                assert!(epoll.wait(until).unwrap() >= until);
                epoll.drain(&mut |conn, event| panic!("{conn:?} {event:?}"));
            }
            // An event ends the wait, and the alarm that is still set has no effect on it.
            let (listener, target) = listener();
            let (_, mut stream) = opened(&mut epoll, &listener, &target);
            stream.write_all(b"x").unwrap();
            let until = clock::now() + 20 * SECOND;
            assert!(epoll.wait(until).unwrap() < until);
        }
    }

    #[test]
    fn a_full_unix_listener_is_tried_again_until_there_is_room() {
        let path = std::env::temp_dir().join(format!("pummel-retry_unix-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        // SAFETY: listen() takes plain numbers; on a socket that listens already it changes the length of its queue.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
        let mut epoll = epoll(&Socket::default());
        let target = Target::Unix(path.clone());
        for slot in 0..10 {
            epoll.open(ConnId { slot, generation: 1 }, &target);
        }
        assert!(epoll.sockets.retry_at() != NEVER);
        let (mut streams, mut opened) = (Vec::new(), 0);
        while opened < 10 {
            streams.push(listener.accept().unwrap());
            epoll.wait(clock::now() + 20 * MILLISECOND).unwrap();
            epoll.drain(&mut |_, event| {
                assert!(matches!(event, Event::Opened { .. }), "{event:?}");
                opened += 1;
            });
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_peer_sees_how_we_closed() {
        check_that_peers_see_how_we_close(epoll);
    }

    #[test]
    fn connections_come_from_the_source_address() {
        let mut epoll = epoll(&Socket::default());
        let (listener, _) = listener();
        let address = listener.local_addr().unwrap();
        let target = Target::Tcp { address, source: Some(([127, 0, 0, 5], 0).into()) };
        let (_, stream) = opened(&mut epoll, &listener, &target);
        assert_eq!(stream.peer_addr().unwrap().ip(), Ipv4Addr::new(127, 0, 0, 5));
    }

    #[test]
    fn a_source_that_is_not_ours_ends_in_closed_with_the_reason() {
        let mut epoll = epoll(&Socket::default());
        let (listener, _) = listener();
        // An address for documentation (RFC 5737), which no machine has.
        let source = Some(([192, 0, 2, 1], 0).into());
        let target = Target::Tcp { address: listener.local_addr().unwrap(), source };
        epoll.open(ConnId { slot: 0, generation: 0 }, &target);
        epoll.wait(NEVER).unwrap();
        let mut closed = None;
        epoll.drain(&mut |_, event| match event {
            Event::Closed(reason) => closed = Some(reason),
            other => panic!("{other:?}"),
        });
        assert_eq!(closed, Some(CloseReason::new(Fault::Closed, libc::EADDRNOTAVAIL)));
    }

    #[test]
    fn with_the_users_clock_nothing_is_stamped() {
        let mut epoll = Epoll::new(Wait::Block, Clock::User, &Socket::default()).unwrap();
        check_that_nothing_is_stamped(&mut epoll);
    }

    #[test]
    fn socket_buffers_are_as_asked() {
        let options = Socket { send_buffer: Some(8192), recv_buffer: Some(16384), ..Socket::default() };
        let mut epoll = epoll(&options);
        let (listener, target) = listener();
        let (conn, _stream) = opened(&mut epoll, &listener, &target);
        // 8 KiB, doubled by the kernel for its own use, take no 64 KiB at once; the default takes them all.
        let message = vec![0; 64 * 1024];
        assert!(epoll.send(conn, &[IoSlice::new(&message)]).taken < message.len());
    }
}
