//! The io_uring backend: multishot receives into provided buffers, one receive for a connection's life.
//!
//! A worker enters the kernel once per turn and not once per request: one entry receives what has arrived on all
//! sockets. Sends go by send(2), each with its own reading of the clock, since a time taken for a batch of sends is too
//! early for all but the first. Connections are opened as by every other backend, and the ring waits for their
//! writability; connect(2) by the ring would gain nothing. Closing takes effect with the next entry into the kernel,
//! which holds the socket until its operations are cancelled.

mod cause;
mod pool;
mod ring;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{opcode, squeue, types};
use pummel_logic::plan::{Clock, Socket, Wait};
use pummel_logic::time::Nanos;
use pummel_measure::trouble::CloseReason;

use super::dial::reason;
use super::sockets::{BLOCKED, DATAGRAMS, STAMPED, Shortfall, SlotState, Sockets, TRANSMITS};
use super::transmit::{Mark, TransmitStamp, TransmitStamps};
use super::waiting::WaitStrategy;
use super::{Backend, Close, ConnId, Event, Handed, Target};
use crate::clock;
use crate::sys::{self, WaitLimit};
use pool::Pool;
use ring::{Completion, Operation, Ring, SLOTS_MAX};

/// Size of the block for reads from a socket that a send found broken.
const LAST_BYTES: usize = 16 * 1024;

/// A backend on io_uring.
pub struct Uring {
    /// The ring stands before `pool`, so that the kernel ends the ring's operations before their memory is freed.
    ring: Ring,
    pool: Pool,
    /// The kernel ran out of buffers since the last drain.
    starved: bool,
    /// The message header of receives with control messages, of which the kernel reads only the lengths.
    shape: Box<libc::msghdr>,
    waiting: WaitStrategy,
    sockets: Sockets,
    /// Completions that were not handed over yet.
    done: Vec<Completion>,
    /// The list that `done` is exchanged with during a drain.
    done_spare: Vec<Completion>,
    /// Connections that a system call outside of the ring found broken, to be handed over by the next drain.
    broken: Vec<ConnId>,
}

/// Flag: the descriptor is registered under the slot's number.
const REGISTERED: u8 = 32;
/// Flag: a receive is under way.
const RECEIVING: u8 = 64;
/// Flag: the ring waits for the writability that ends the opening of the connection.
const ASKED: u8 = 128;

/// The name of a connection's socket in operations: its registered number, or its descriptor.
enum Handle {
    Fixed(types::Fixed),
    Fd(types::Fd),
}

impl Uring {
    /// A backend for one worker, made on the worker's own thread.
    ///
    /// # Errors
    /// Returns the error of `io_uring_setup` or of registering buffers ([`Uring::why_unusable`] says its cause in words),
    /// or of the socket that makes the kernel stamp what it receives.
    pub fn new(wait: Wait, receive_clock: Clock, options: &Socket) -> io::Result<Uring> {
        Uring::over(Ring::new(sys::descriptor_limit())?, wait, receive_clock, options)
    }

    fn over(ring: Ring, wait: Wait, receive_clock: Clock, options: &Socket) -> io::Result<Uring> {
        let sockets = Sockets::new(receive_clock, options)?;
        let pool = Pool::new(&ring)?;
        // SAFETY: msghdr is pointers and numbers, for which all zeroes (null, empty) is a value.
        let mut shape: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        shape.msg_controllen = pool::CONTROL_BYTES as _;
        Ok(Uring {
            ring,
            pool,
            starved: false,
            shape,
            waiting: WaitStrategy::new(wait),
            sockets,
            done: Vec::new(),
            done_spare: Vec::new(),
            broken: Vec::new(),
        })
    }

    /// The backend with transmit stamps, which need the kernel's clock for receive stamps.
    pub fn with_transmit_stamps(mut self, transmit: Option<TransmitStamps>) -> Uring {
        self.sockets.set_transmit_stamps(transmit);
        if self.sockets.transmit.is_some() {
            self.shape.msg_controllen = pool::CONTROL_MAX_BYTES as _;
        }
        self
    }

    /// Why this process cannot use io_uring on this machine, as a clause; `None` when it can.
    pub fn why_unusable() -> Option<String> {
        let made = Ring::new(1).and_then(|ring| Pool::new(&ring).map(|pool| (ring, pool)));
        made.err().map(|error| cause::of(&error))
    }

    /// Makes the socket of a connection, begins to connect it, and waits for its writability. A failure is handed over by the
    /// next drain.
    fn dial(&mut self, conn: ConnId, target: &Target) {
        let fd = match self.sockets.dial(conn, target) {
            Ok(Some(socket)) => socket.as_raw_fd(),
            Ok(None) => return,
            Err(error) => return self.fail(conn, &error),
        };
        let slot = &mut self.sockets.slots[conn.slot as usize];
        slot.flags |= ASKED;
        if self.ring.has_index(conn.slot) {
            slot.flags |= REGISTERED;
            self.ring.register(conn.slot, fd, Operation::Quiet.token(conn));
        }
        self.await_writable(conn, Operation::Connect);
    }

    /// The handle of a connection's socket.
    fn handle(&self, conn: ConnId) -> Option<Handle> {
        let slot = &self.sockets.slots[conn.slot as usize];
        let fd = slot.fd.as_ref()?;
        Some(match slot.is(REGISTERED) {
            true => Handle::Fixed(types::Fixed(conn.slot)),
            false => Handle::Fd(types::Fd(fd.as_raw_fd())),
        })
    }

    fn await_writable(&mut self, conn: ConnId, kind: Operation) {
        let operation = match self.handle(conn) {
            Some(Handle::Fixed(index)) => opcode::PollAdd::new(index, sys::WRITABLE).build(),
            Some(Handle::Fd(fd)) => opcode::PollAdd::new(fd, sys::WRITABLE).build(),
            None => return,
        };
        // SAFETY: the operation points to no memory.
        unsafe { self.ring.ask(&operation.user_data(kind.token(conn))) };
    }

    /// Begins the multishot receive of a connection.
    fn receive(&mut self, conn: ConnId) {
        let stamped = self.sockets.slots[conn.slot as usize].is(STAMPED);
        let shape: *const libc::msghdr = &*self.shape;
        let operation: squeue::Entry = match (self.handle(conn), stamped) {
            (Some(Handle::Fixed(index)), true) => {
                opcode::RecvMsgMulti::new(index, shape, pool::GROUP).build()
            }
            (Some(Handle::Fd(fd)), true) => opcode::RecvMsgMulti::new(fd, shape, pool::GROUP).build(),
            (Some(Handle::Fixed(index)), false) => opcode::RecvMulti::new(index, pool::GROUP).build(),
            (Some(Handle::Fd(fd)), false) => opcode::RecvMulti::new(fd, pool::GROUP).build(),
            (None, _) => return,
        };
        self.sockets.slots[conn.slot as usize].flags |= RECEIVING;
        // SAFETY: the message header never moves while the backend lives; the buffers are the pool's, which outlives
        // the ring.
        unsafe { self.ring.ask(&operation.user_data(Operation::Receive.token(conn))) };
    }

    /// Notes that a connection is broken. The next drain hands that over, after the bytes that can still be read.
    fn fail(&mut self, conn: ConnId, error: &io::Error) {
        if self.sockets.keep_error(conn, error).is_some() {
            self.broken.push(conn);
        }
    }

    /// Ends a connection's operations and frees its slot; the kernel closes the socket when the operations are over.
    fn release(&mut self, conn: ConnId) {
        let slot = self.sockets.slots[conn.slot as usize].free();
        let quiet = Operation::Quiet.token(conn);
        for (flag, kind) in
            [(RECEIVING, Operation::Receive), (ASKED, Operation::Connect), (BLOCKED, Operation::Writable)]
        {
            if slot.is(flag) {
                self.ring.cancel(kind.token(conn), quiet);
            }
        }
        if slot.is(REGISTERED) {
            self.ring.register(conn.slot, -1, quiet);
        }
    }

    /// Tries the full unix listeners again.
    fn retry_unix(&mut self) {
        for (conn, target) in self.sockets.take_retries() {
            self.dial(conn, &target);
        }
    }

    /// Enters the kernel, and takes the completions of connections that still exist. Returns whether there are any.
    #[inline]
    fn ask(&mut self, wait_limit: WaitLimit, now: Nanos) -> io::Result<bool> {
        self.pool.lend();
        self.ring.enter(wait_limit, now)?;
        self.take();
        Ok(!self.done.is_empty())
    }

    /// Moves the completions of connections that still exist from the ring to `done`; the buffers of the others go back.
    #[inline]
    fn take(&mut self) {
        let Uring { ring, pool, sockets, done, .. } = self;
        ring.take(done, |completion| {
            let (kind, conn) = Operation::of(completion.token);
            let matters = kind != Operation::Quiet && sockets.find(conn).is_some();
            if !matters {
                discard(pool, completion);
            }
            matters
        });
    }

    /// Hands over the events of one completion.
    #[inline]
    fn serve(&mut self, completion: &Completion, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let (kind, conn) = Operation::of(completion.token);
        if self.sockets.find(conn).is_none() {
            return discard(&mut self.pool, completion);
        }
        match kind {
            Operation::Receive => self.received(conn, completion, on),
            Operation::Connect => self.handle_connect(conn, completion.result, on),
            Operation::Writable => self.writable(conn, completion.result, on),
            Operation::Quiet => {}
        }
    }

    /// Handles that a connection that is being opened is writable or has failed.
    fn handle_connect(&mut self, conn: ConnId, result: i32, on: &mut impl FnMut(ConnId, Event<'_>)) {
        self.sockets.slots[conn.slot as usize].flags &= !ASKED;
        let is_open = match u32::try_from(result) {
            Ok(bits) => self.sockets.finish_connect(conn, bits),
            Err(_) => Err(reason(-result)),
        };
        let slot = &mut self.sockets.slots[conn.slot as usize];
        match is_open {
            Ok(false) => {
                slot.flags |= ASKED;
                return self.await_writable(conn, Operation::Connect);
            }
            Ok(true) if slot.errno != 0 => self.broken.push(conn),
            Ok(true) => {}
            Err(reason) => return self.end(conn, reason, on),
        }
        on(conn, Event::Opened { at: clock::now() });
        self.receive(conn);
    }

    /// Handles that a full socket takes bytes again. A broken socket is reported by its receive.
    fn writable(&mut self, conn: ConnId, result: i32, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let bits = u32::try_from(result).ok().map(|bits| self.sockets.without_stamps(conn, bits));
        if bits == Some(0) {
            // Only the error queue was ready, and the socket is still full.
            return self.await_writable(conn, Operation::Writable);
        }
        let slot = &mut self.sockets.slots[conn.slot as usize];
        slot.flags &= !BLOCKED;
        let has_failed = bits.is_some_and(|bits| bits & sys::FAILED != 0);
        if slot.is(TRANSMITS) && has_failed {
            self.broken.push(conn);
        }
        let ends = has_failed || bits.is_some_and(|bits| bits & sys::HUNG_UP != 0);
        if slot.errno == 0 && !ends {
            on(conn, Event::Writable);
        }
    }

    /// Handles a completion of a receive, which has bytes or has ended.
    #[inline]
    fn received(&mut self, conn: ConnId, completion: &Completion, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let slot = &mut self.sockets.slots[conn.slot as usize];
        if !completion.goes_on() {
            slot.flags &= !RECEIVING;
        }
        let datagrams = slot.is(DATAGRAMS);
        match (completion.buffer(), usize::try_from(completion.result)) {
            (Some(number), Ok(len_bytes)) => {
                #[allow(clippy::unnecessary_cast, reason = "the field is as wide as the C library makes it")]
                let (bytes, wall) = match slot.is(STAMPED) {
                    true => self.pool.stamped(number, len_bytes, self.shape.msg_controllen as usize),
                    false => (self.pool.plain(number, len_bytes), None),
                };
                let ended = bytes.is_empty();
                if !ended {
                    let stamp = wall.zip(self.sockets.stamps).map(|(wall, stamps)| stamps.to_monotonic(wall));
                    on(conn, Event::Received { bytes, stamp, read: clock::now() });
                }
                self.pool.give_back(number);
                if ended && !datagrams {
                    return self.end(conn, reason(0), on);
                }
            }
            (Some(number), Err(_)) => self.pool.give_back(number),
            (None, Ok(_)) if datagrams => {}
            (None, Ok(_)) => return self.end(conn, reason(0), on),
            (None, Err(_)) => match -completion.result {
                libc::ENOBUFS => self.starved = true,
                libc::EAGAIN | libc::EINTR | libc::ECANCELED => {}
                errno => return self.end(conn, reason(errno), on),
            },
        }
        if !completion.goes_on() {
            self.receive(conn);
        }
    }

    /// Does what a send calls for that the socket did not take whole: the ring waits for its writability, or the next drain hands
    /// over the end of the connection.
    #[inline]
    fn handle_sent(&mut self, conn: ConnId, (handed, shortfall): (Handed, Shortfall)) -> Handed {
        match shortfall {
            Shortfall::None | Shortfall::Broken(None) => {}
            Shortfall::Full => self.await_writable(conn, Operation::Writable),
            Shortfall::Broken(Some(error)) => self.fail(conn, &error),
        }
        handed
    }

    /// Hands over the end of a connection. The error of a send says more than what followed it.
    fn end(&mut self, conn: ConnId, last: CloseReason, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let errno = self.sockets.slots[conn.slot as usize].errno;
        self.release(conn);
        on(conn, Event::Closed(if errno == 0 { last } else { reason(i32::from(errno)) }));
    }

    /// Hands over the ends of connections that a system call outside of the ring found broken, after the bytes that can
    /// still be read. Receives are done only inside entries into the kernel, and their bytes were handed over before.
    fn report_broken(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        let mut block = vec![0; LAST_BYTES];
        let stamps = self.sockets.stamps;
        for conn in std::mem::take(&mut self.broken) {
            let Some(slot) = self.sockets.find(conn) else { continue };
            if slot.state == SlotState::Open
                && let Some(fd) = &slot.fd
            {
                loop {
                    match sys::receive_stamped(fd.as_fd(), &mut block) {
                        Ok((len_bytes @ 1.., wall)) => {
                            let stamp = wall.zip(stamps).map(|(wall, stamps)| stamps.to_monotonic(wall));
                            let (bytes, read) = (&mut block[..len_bytes], clock::now());
                            on(conn, Event::Received { bytes, stamp, read });
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok((0, _)) if slot.is(DATAGRAMS) => {}
                        Ok((0, _)) | Err(_) => break,
                    }
                }
            }
            self.end(conn, reason(0), on);
        }
    }
}

/// Drops the bytes of a connection that is over, and lends their buffer again.
fn discard(pool: &mut Pool, completion: &Completion) {
    if let Some(number) = completion.buffer() {
        pool.give_back(number);
    }
}

impl Backend for Uring {
    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn open(&mut self, conn: ConnId, target: &Target) {
        assert!(conn.slot < SLOTS_MAX, "slots are small numbers");
        self.sockets.take_slot(conn);
        self.dial(conn, target);
    }

    #[inline]
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

    fn close(&mut self, conn: ConnId, how: Close) {
        if let Some(slot) = self.sockets.find(conn) {
            slot.prepare_to_close(how);
            self.release(conn);
        }
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.wait_from(clock::now(), until)
    }

    fn wait_from(&mut self, mut now: Nanos, until: Nanos) -> io::Result<Nanos> {
        if !self.done.is_empty() {
            return Ok(now);
        }
        loop {
            if now >= self.sockets.retry_at() {
                self.retry_unix();
            }
            let wait_limit = match self.broken.is_empty() {
                true => self.waiting.wait_limit(now, until.min(self.sockets.retry_at())),
                false => WaitLimit::Look,
            };
            let something = self.ask(wait_limit, now)? || !self.broken.is_empty();
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
        let done = std::mem::replace(&mut self.done, std::mem::take(&mut self.done_spare));
        for completion in &done {
            self.serve(completion, on);
        }
        self.done_spare = done;
        self.done_spare.clear();
        // Completions that the kernel holds back may be those of broken connections.
        if !self.broken.is_empty() && !self.ring.is_flooded() {
            self.report_broken(on);
        }
        if std::mem::take(&mut self.starved) {
            self.pool.grow();
        }
    }

    fn mend_stamps(&mut self) {
        self.sockets.mend_stamps();
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for index in 0..self.sockets.slots.len() {
            let conn = ConnId { slot: index as u32, generation: self.sockets.slots[index].generation };
            if self.sockets.find(conn).is_some() {
                self.release(conn);
            }
        }
        // Sockets are closed at once, and not when the kernel takes the ring apart. A failure does not matter, since
        // the end of the ring closes all sockets.
        let _ = self.ring.enter(WaitLimit::Look, clock::now());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::thread;

    use pummel_logic::time::{MILLISECOND, SECOND};

    use super::*;
    use crate::backend::testing::{
        check_that_nothing_is_stamped, check_that_peers_see_how_we_close, listener, opened, opened_in,
        untested,
    };

    /// A backend that blocks; `None`, with a word of why, where the machine gives none.
    fn uring(options: &Socket) -> Option<Uring> {
        if let Some(why) = Uring::why_unusable() {
            untested(&why);
            return None;
        }
        Some(Uring::new(Wait::Block, Clock::Kernel, options).unwrap())
    }

    /// Drains until so many bytes came.
    fn receive(uring: &mut Uring, count: usize) -> Vec<(ConnId, u8)> {
        let mut received = Vec::new();
        while received.len() < count {
            let give_up = clock::now() + 10 * SECOND;
            assert!(uring.wait(give_up).unwrap() < give_up, "{} of {count} came", received.len());
            uring.drain(&mut |conn, event| match event {
                Event::Received { bytes, .. } => received.extend(bytes.iter().map(|byte| (conn, *byte))),
                other => panic!("{other:?}"),
            });
        }
        received
    }

    #[test]
    fn a_receive_that_found_no_buffer_is_asked_for_again_and_there_are_more_then() {
        let Some(mut uring) = uring(&Socket::default()) else { return };
        let (listener, target) = listener();
        let mut ends: Vec<_> = (0..40).map(|slot| opened_in(slot, &mut uring, &listener, &target)).collect();
        let message: Vec<u8> = (0..120_000u32).map(|i| (i % 251) as u8).collect();
        // What fits into 40 sockets fills more buffers than there are at first, in one entry into the kernel.
        let mut written = 0;
        for (_, stream) in &mut ends {
            stream.set_nonblocking(true).unwrap();
            written += stream.write(&message).unwrap();
        }
        let received = receive(&mut uring, written);
        for (conn, _) in &ends {
            let bytes: Vec<u8> =
                received.iter().filter(|(of, _)| of == conn).map(|(_, byte)| *byte).collect();
            assert!(!bytes.is_empty() && message.starts_with(&bytes));
        }
        assert_eq!(received.len(), written);
        assert!(uring.pool.known() > pool::BUFFERS_FIRST, "there was no want of buffers");
    }

    #[test]
    fn descriptors_beyond_those_that_can_be_registered_do_as_well() {
        if uring(&Socket::default()).is_none() {
            return;
        }
        let ring = Ring::new(1).unwrap();
        let mut uring = Uring::over(ring, Wait::Block, Clock::Kernel, &Socket::default()).unwrap();
        let (listener, target) = listener();
        for slot in [0, 1, 2] {
            let (conn, mut stream) = opened_in(slot, &mut uring, &listener, &target);
            assert_eq!(uring.sockets.slots[slot as usize].is(REGISTERED), slot == 0);
            stream.write_all(b"x").unwrap();
            assert_eq!(receive(&mut uring, 1), [(conn, b'x')]);
            uring.close(conn, Close::Fin);
            uring.wait(0).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "slot {slot}");
        }
    }

    #[test]
    fn before_points_of_time_could_be_waited_for_lengths_keep_the_time() {
        let Some(mut uring) = uring(&Socket::default()) else { return };
        uring.ring.count_from_now();
        for ns in [0, 20_000, 1_500_000, 7 * MILLISECOND] {
            let until = clock::now() + ns;
            assert!(uring.wait(until).unwrap() >= until);
            uring.drain(&mut |conn, event| panic!("{conn:?} {event:?}"));
        }
    }

    #[test]
    fn the_peer_sees_how_we_closed() {
        if uring(&Socket::default()).is_some() {
            check_that_peers_see_how_we_close(|options| uring(options).expect("there was one before"));
        }
    }

    #[test]
    fn the_end_of_the_backend_closes_what_is_open() {
        let Some(mut uring) = uring(&Socket::default()) else { return };
        let (listener, target) = listener();
        let (_, mut stream) = opened(&mut uring, &listener, &target);
        drop(uring);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn with_the_users_clock_nothing_is_stamped() {
        if uring(&Socket::default()).is_none() {
            return;
        }
        let mut uring = Uring::new(Wait::Block, Clock::User, &Socket::default()).unwrap();
        check_that_nothing_is_stamped(&mut uring);
    }

    #[test]
    fn what_forbids_io_uring_is_named() {
        for (errno, words) in [(libc::EPERM, "forbid"), (libc::ENOSYS, "no io_uring")] {
            // A filter holds for its thread, for good.
            let why = thread::spawn(move || {
                sys::refuse_call(libc::SYS_io_uring_setup, errno).unwrap();
                Uring::why_unusable()
            });
            let why = why.join().unwrap().expect("it is forbidden");
            let disabled = why.contains("io_uring_disabled");
            assert!(disabled || why.contains(words), "{why}");
        }
    }
}
