//! The ring of a worker: the queues of operations and of completions that it shares with the kernel, and the tokens by which it
//! knows what an operation is for.

use std::io;
use std::os::fd::RawFd;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};
use pummel_logic::time::{NEVER, Nanos, SECOND};

use crate::backend::ConnId;
use crate::sys::{self, WaitLimit};

/// Room for operations between two entries into the kernel. A full queue is handed over early.
const ASKED_MAX: u32 = 512;

/// Room for completions. The kernel keeps those that do not fit, and ends their multishot receives.
const DONE_MAX: u32 = 8192;

/// Most registered descriptors. Operations on other connections name their descriptor.
const FILES_MAX: u64 = 1 << 15;

/// Number of slots that a token has room for.
pub const SLOTS_MAX: u32 = 1 << 26;

/// The kind of an operation of the ring, which is in the upper bits of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The result of the operation is ignored.
    Quiet = 0,
    Receive = 1,
    Connect = 2,
    Writable = 3,
}

impl Operation {
    /// The token of an operation of this kind on a connection.
    pub fn token(self, conn: ConnId) -> u64 {
        (self as u64) << 58 | u64::from(conn.slot) << 32 | u64::from(conn.generation)
    }

    /// The kind of the operation with this token, and its connection.
    pub fn of(token: u64) -> (Operation, ConnId) {
        let kind = match token >> 58 {
            1 => Operation::Receive,
            2 => Operation::Connect,
            3 => Operation::Writable,
            _ => Operation::Quiet,
        };
        let slot = (token >> 32) as u32 & (SLOTS_MAX - 1);
        (kind, ConnId { slot, generation: token as u32 })
    }
}

/// The completion of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The token of the operation.
    pub token: u64,
    /// The result that the system call of the operation's name would return, with errors as negative numbers.
    pub result: i32,
    /// The flags IORING_CQE_F_*.
    flags: u32,
}

impl Completion {
    /// The number of the provided buffer that holds the received bytes, if one was used.
    #[inline]
    pub fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// Whether the operation goes on, so that more completions of it follow.
    #[inline]
    pub fn goes_on(&self) -> bool {
        cqueue::more(self.flags)
    }
}

/// The ring of one thread, whose operations are done when that thread enters the kernel.
pub struct Ring {
    ring: IoUring,
    /// Whether the kernel's wait takes a point of time instead of a duration.
    absolute: bool,
    /// The descriptor that is registered under each index, which the kernel reads when a change is announced to it.
    /// Empty without registration.
    files: Box<[RawFd]>,
    /// The error of handing over a full queue, which the next entry returns.
    trouble: Option<io::Error>,
}

impl Ring {
    /// A ring for the calling thread, with room to register the descriptors that the process may have.
    ///
    /// # Errors
    /// Returns the error of `io_uring_setup`: ENOSYS when the kernel has no io_uring, EINVAL when it is older than
    /// 6.1, EPERM when it is forbidden, ENOMEM or EMFILE when locked memory or descriptors are short.
    pub fn new(descriptors: u64) -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(DONE_MAX)
            .build(ASKED_MAX)?;
        let count = descriptors.min(FILES_MAX) as u32;
        let files = match ring.submitter().register_files_sparse(count) {
            Ok(()) => vec![-1; count as usize].into_boxed_slice(),
            Err(_) => Box::default(),
        };
        // Both features came with Linux 6.12.
        let absolute = ring.params().is_feature_min_timeout() && sys::monotonic_is_the_kernels();
        Ok(Ring { ring, absolute, files, trouble: None })
    }

    /// The ring, which waits as on kernels whose waits take only durations.
    #[cfg(test)]
    pub fn count_from_now(&mut self) {
        self.absolute = false;
    }

    /// The ring of the library, to register memory with.
    pub fn raw(&self) -> &IoUring {
        &self.ring
    }

    /// Whether a descriptor can be registered under this index.
    #[inline]
    pub fn has_index(&self, index: u32) -> bool {
        (index as usize) < self.files.len()
    }

    /// Queues an operation for the next entry into the kernel.
    ///
    /// # Safety
    /// The memory that `operation` points to must be valid until the operation is over.
    #[inline]
    pub unsafe fn ask(&mut self, operation: &squeue::Entry) {
        // SAFETY: promised by the caller.
        while unsafe { self.ring.submission().push(operation) }.is_err() {
            if let Err(error) = self.ring.submit()
                && !is_passing(&error)
            {
                self.trouble.get_or_insert(error);
                return;
            }
        }
    }

    /// Queues the registration of `fd` under `index`, or its removal with -1. Only a failure has a completion with
    /// `token`.
    pub fn register(&mut self, index: u32, fd: RawFd, token: u64) {
        let place = &mut self.files[index as usize];
        *place = fd;
        let operation = io_uring::opcode::FilesUpdate::new(place, 1).offset(index as i32).build();
        let operation = operation.user_data(token).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: `files` never moves and is freed after the ring; the kernel reads it when it takes the operation over.
        // A later change of the same place that comes before that makes this operation do the later one's work, too.
        unsafe { self.ask(&operation) };
    }

    /// Queues the cancellation of the operation with the token `victim`.
    pub fn cancel(&mut self, victim: u64, token: u64) {
        let operation = io_uring::opcode::AsyncCancel::new(victim).build();
        let operation = operation.user_data(token).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the operation points to no memory.
        unsafe { self.ask(&operation) };
    }

    /// Hands over the queued operations, lets the kernel do those that are ready, and waits for a completion.
    /// `wait_limit` counts from `now`. A spinning worker does not enter the kernel while there is no reason to.
    ///
    /// # Errors
    /// Returns the error of `io_uring_enter`, also of an earlier attempt to hand operations over. ETIME, EINTR, EBUSY
    /// and EAGAIN are no errors here.
    #[inline]
    pub fn enter(&mut self, wait_limit: WaitLimit, now: Nanos) -> io::Result<()> {
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let asked = {
            let queue = self.ring.submission();
            let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
            if idle && wait_limit == WaitLimit::Look {
                return Ok(());
            }
            queue.len() as u32
        };
        let result = match wait_limit {
            WaitLimit::Look => self.wait(asked, 0, EnterFlags::GETEVENTS, None),
            WaitLimit::Endless => self.wait(asked, 1, EnterFlags::GETEVENTS, None),
            WaitLimit::For(ns) if self.absolute => {
                let flags = EnterFlags::GETEVENTS | EnterFlags::ABS_TIMER;
                self.wait(asked, 1, flags, Some(now.saturating_add(ns).min(NEVER - 1)))
            }
            WaitLimit::For(ns) => self.wait(asked, 1, EnterFlags::GETEVENTS, Some(ns)),
        };
        match result {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    #[inline]
    fn wait(&self, asked: u32, least: u32, flags: EnterFlags, time: Option<Nanos>) -> io::Result<usize> {
        let submitter = self.ring.submitter();
        let Some(ns) = time else {
            // SAFETY: without EXT_ARG the argument is a signal mask, and there is none.
            return unsafe { submitter.enter::<libc::sigset_t>(asked, least, flags.bits(), None) };
        };
        let time = Timespec::new().sec(ns / SECOND).nsec((ns % SECOND) as u32);
        let arguments = SubmitArgs::new().timespec(&time);
        let flags = flags | EnterFlags::EXT_ARG;
        // SAFETY: with EXT_ARG the argument is what `arguments` is; the time that it points to lives until the call ends.
        unsafe { submitter.enter(asked, least, flags.bits(), Some(&arguments)) }
    }

    /// Moves the completions that are of interest to the end of `into`.
    #[inline]
    pub fn take(&mut self, into: &mut Vec<Completion>, mut of_interest: impl FnMut(&Completion) -> bool) {
        for entry in self.ring.completion() {
            let completion =
                Completion { token: entry.user_data(), result: entry.result(), flags: entry.flags() };
            if of_interest(&completion) {
                into.push(completion);
            }
        }
    }

    /// Whether the kernel holds back completions for which there was no room.
    pub fn is_flooded(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }
}

/// Whether an error of an entry only says that the time was up, that a signal came, or that completions are to be taken
/// first.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_and_whose() {
        for kind in [Operation::Quiet, Operation::Receive, Operation::Connect, Operation::Writable] {
            for conn in [
                ConnId { slot: 0, generation: 0 },
                ConnId { slot: SLOTS_MAX - 1, generation: u32::MAX },
                ConnId { slot: 77, generation: 3 },
            ] {
                assert_eq!(Operation::of(kind.token(conn)), (kind, conn));
            }
        }
    }
}
