//! The two queues that a worker shares with the kernel: what is asked, and what came of it.

use std::io;
use std::os::fd::RawFd;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};
use pummel_logic::time::{NEVER, Nanos, SECOND};

use crate::sys::{self, WaitLimit};

/// Room for what is asked between two entries into the kernel; when it is full, it is handed over early.
const ASKED_MAX: u32 = 512;

/// Room for what came of it. What does not fit is kept by the kernel, and ends the multishot receive it is from.
const DONE_MAX: u32 = 8192;

/// Most descriptors that are registered; connections beyond it go by their descriptor.
const FILES_MAX: u64 = 1 << 15;

/// One operation's result.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The number that the operation was given.
    pub token: u64,
    /// What the system call of its name would return, errors as negative numbers.
    pub result: i32,
    /// IORING_CQE_F_*.
    flags: u32,
}

impl Completion {
    /// The number of the provided buffer that holds what was received, if one was used.
    #[inline]
    pub fn buffer(&self) -> Option<u16> {
        cqueue::buffer_select(self.flags)
    }

    /// Whether the operation goes on, so that more of these come.
    #[inline]
    pub fn goes_on(&self) -> bool {
        cqueue::more(self.flags)
    }
}

/// A ring of one thread, whose work is done in that thread when it enters the kernel for it.
pub struct Ring {
    ring: IoUring,
    /// The kernel takes a point of time to wait for instead of a length.
    absolute: bool,
    /// What is registered for each index, read by the kernel when it is told of a change; empty without registration.
    files: Box<[RawFd]>,
    /// What could not be handed over when the queue was full; the next entry reports it.
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
        // Both came with 6.12.
        let absolute = ring.params().is_feature_min_timeout() && sys::monotonic_is_the_kernels();
        Ok(Ring { ring, absolute, files, trouble: None })
    }

    /// Waits as on kernels that take lengths of time alone.
    #[cfg(test)]
    pub fn count_from_now(&mut self) {
        self.absolute = false;
    }

    /// The kernel's own object, to register memory with.
    pub fn raw(&self) -> &IoUring {
        &self.ring
    }

    /// Whether there is an index for a descriptor to be registered under.
    #[inline]
    pub fn has_index(&self, index: u32) -> bool {
        (index as usize) < self.files.len()
    }

    /// Asks for an operation, with the next entry into the kernel.
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

    /// Registers `fd` under `index`, or takes back what is registered there (-1), in the order of what is asked.
    /// `token` is told of failures alone.
    pub fn register(&mut self, index: u32, fd: RawFd, token: u64) {
        let place = &mut self.files[index as usize];
        *place = fd;
        let operation = io_uring::opcode::FilesUpdate::new(place, 1).offset(index as i32).build();
        let operation = operation.user_data(token).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: `files` never moves and is freed after the ring; the kernel reads it when it takes the operation over.
        // A later change of the same place that comes before that makes this operation do the later one's work, too.
        unsafe { self.ask(&operation) };
    }

    /// Ends the operation that was asked for with the number `victim`, if it goes on.
    pub fn cancel(&mut self, victim: u64, token: u64) {
        let operation = io_uring::opcode::AsyncCancel::new(victim).build();
        let operation = operation.user_data(token).flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the operation points to no memory.
        unsafe { self.ask(&operation) };
    }

    /// Hands over what was asked, lets the kernel do what it has ready to be done, and waits for something to be done.
    /// `now` is the time that `wait_limit` counts from. Spinning does not enter the kernel while there is no reason to.
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

    /// Moves what is done to the end of `into`, as far as it is of interest.
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

    /// Whether the kernel holds back results for which there was no room.
    pub fn is_flooded(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }
}

/// Errors of an entry that only say that the time was up, that a signal came, or that results are to be taken first.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}
