//! Readiness of descriptors, and an alarm that becomes ready at a point of time.

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use pummel_logic::time::{Nanos, SECOND};

use super::{check, own};

/// The socket has bytes or the end of its stream to read.
pub const READABLE: u32 = libc::EPOLLIN as u32;
/// The socket takes bytes.
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// The peer will send no more.
pub const PEER_CLOSED: u32 = libc::EPOLLRDHUP as u32;
/// Both directions are shut.
pub const HUNG_UP: u32 = libc::EPOLLHUP as u32;
/// The socket has an error.
pub const FAILED: u32 = libc::EPOLLERR as u32;
/// Each change is reported once.
pub const EDGES: u32 = libc::EPOLLET as u32;

/// One report of readiness.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ready(libc::epoll_event);

impl Ready {
    /// A report without bits.
    pub const NONE: Ready = Ready(libc::epoll_event { events: 0, u64: 0 });

    /// The readiness bits of the report.
    pub fn bits(&self) -> u32 {
        self.0.events
    }

    /// The number that the descriptor was added with.
    pub fn token(&self) -> u64 {
        self.0.u64
    }
}

/// Longest wait for readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// The wait only checks for readiness.
    Look,
    /// The wait lasts this many nanoseconds at most.
    For(Nanos),
    /// The wait lasts until a descriptor is ready.
    Endless,
}

/// A set of descriptors whose readiness is watched.
pub struct Poller {
    fd: OwnedFd,
}

impl Poller {
    /// A set without descriptors.
    ///
    /// # Errors
    /// Returns the error of `epoll_create1`: EMFILE or ENFILE when no descriptor is left.
    pub fn new() -> io::Result<Poller> {
        // SAFETY: epoll_create1 takes a plain number.
        Ok(Poller { fd: own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })? })
    }

    /// Watches `fd` for `bits` until it is closed; its reports carry `token`.
    ///
    /// # Errors
    /// Returns the error of `epoll_ctl`: EEXIST when the descriptor is watched already, ENOSPC when the user's limit
    /// of watches is reached.
    pub fn add(&self, fd: BorrowedFd<'_>, bits: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: bits, u64: token };
        // SAFETY: `event` is valid for reads; both descriptors are open.
        check(unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event)
        })
        .map(drop)
    }

    /// Checks for readiness, or waits without a limit if `endless` is set. Returns the number of reports.
    ///
    /// # Errors
    /// Returns the error of `epoll_wait`: EINTR when a signal came.
    #[inline]
    pub fn wait_coarse(&self, into: &mut [Ready], endless: bool) -> io::Result<usize> {
        let (place, room) = (into.as_mut_ptr().cast(), into.len() as c_int);
        // SAFETY: the pointer and the number describe `into`, whose elements have the layout of epoll_event.
        let found =
            unsafe { libc::epoll_wait(self.fd.as_raw_fd(), place, room, if endless { -1 } else { 0 }) };
        check(found).map(|found| found as usize)
    }

    /// Waits with a limit in nanoseconds (epoll_pwait2, from kernel 5.11 on; ENOSYS or EPERM where it is missing).
    ///
    /// # Errors
    /// Returns the error of `epoll_pwait2`: EINTR when a signal came, ENOSYS or EPERM when the kernel lacks or
    /// forbids the call.
    #[inline]
    pub fn wait_fine(&self, into: &mut [Ready], wait_limit: WaitLimit) -> io::Result<usize> {
        let limit = match wait_limit {
            WaitLimit::Look => Some(0),
            WaitLimit::For(ns) => Some(ns),
            WaitLimit::Endless => None,
        };
        let limit = limit.map(timespec);
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        // The call is made by its number, since C libraries before 2.35 have no function for it. SAFETY: the pointers
        // are to `into` and to a timespec that lives until the call returns; no signal mask.
        let found = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                into.as_mut_ptr().cast::<libc::epoll_event>(),
                into.len() as c_int,
                limit,
                ptr::null::<libc::sigset_t>(),
                size_of::<u64>(),
            )
        };
        check(found as c_int).map(|found| found as usize)
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn timespec(ns: Nanos) -> libc::timespec {
    libc::timespec { tv_sec: (ns / SECOND) as _, tv_nsec: (ns % SECOND) as libc::c_long }
}

/// An alarm that becomes readable at a point of time; for kernels without [`Poller::wait_fine`].
pub struct Alarm {
    fd: OwnedFd,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// Returns the error of `timerfd_create`: EMFILE or ENFILE when no descriptor is left.
    pub fn new() -> io::Result<Alarm> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: timerfd_create takes plain numbers.
        Ok(Alarm { fd: own(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })? })
    }

    /// Sets the alarm to a time of the monotonic clock, or switches it off. The alarm goes off at once for a time in
    /// the past.
    ///
    /// # Errors
    /// Returns the error of `timerfd_settime`, which no time of the monotonic clock gives.
    pub fn set(&self, at: Option<Nanos>) -> io::Result<()> {
        // A time of 0 means "off" to the kernel; the clock is past 1 ns whenever this runs.
        let value = timespec(at.map_or(0, |at| at.max(1)));
        let timer = libc::itimerspec { it_interval: timespec(0), it_value: value };
        // SAFETY: `timer` is valid for reads; the old setting is not asked for.
        check(unsafe {
            libc::timerfd_settime(self.fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &timer, ptr::null_mut())
        })
        .map(drop)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_that_is_set_to_the_past_is_ready_at_once() {
        let poller = Poller::new().unwrap();
        let alarm = Alarm::new().unwrap();
        poller.add(alarm.as_fd(), READABLE | EDGES, 7).unwrap();
        let mut ready = [Ready::NONE; 2];
        assert_eq!(poller.wait_coarse(&mut ready, false).unwrap(), 0);
        alarm.set(Some(0)).unwrap();
        assert_eq!(poller.wait_coarse(&mut ready, true).unwrap(), 1);
        assert_eq!(ready[0].token(), 7);
    }
}
