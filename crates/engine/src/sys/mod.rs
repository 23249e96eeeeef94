//! System calls as safe functions; every `unsafe` block of the program is here or in a backend beside it.

use std::ffi::{c_int, c_void};
use std::fs;
use std::io;
use std::io::IoSlice;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pummel_logic::time::{Nanos, SECOND};

/// Turns the -1 of a system call into its error.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Turns the -1 of a system call that returns a length into its error.
fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes over a descriptor that a system call just returned.
fn own(result: c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel just made this descriptor for us; nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The error number of a system call's failure; 0 where the failure is not the kernel's.
pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

// ---- Clocks ----

fn clock_ns(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; the clocks asked for exist on every Linux.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    assert!(result == 0, "clock_gettime failed for a clock that always exists");
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// The monotonic clock (CLOCK_MONOTONIC); a call of the vDSO, not of the kernel.
#[inline]
pub fn monotonic_ns() -> Nanos {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Whether what the kernel itself calls CLOCK_MONOTONIC is what this process is shown, so that io_uring, which knows no
/// time namespaces (time_namespaces(7)), can be given points of time. Not where that cannot be told.
pub fn monotonic_is_the_kernels() -> bool {
    match fs::read_to_string("/proc/self/timens_offsets") {
        Ok(offsets) => !is_shifted(&offsets),
        // The kernel has no time namespaces, or /proc is not mounted.
        Err(_) => fs::exists("/proc/self/status").unwrap_or(false),
    }
}

/// Lines of a clock's name, and its offset in seconds and nanoseconds.
fn is_shifted(offsets: &str) -> bool {
    offsets.lines().any(|line| line.split_whitespace().skip(1).any(|number| number != "0"))
}

/// The wall clock (CLOCK_REALTIME), in nanoseconds since 1970; what receive stamps are taken with.
#[inline]
pub fn wall_ns() -> Nanos {
    clock_ns(libc::CLOCK_REALTIME)
}

/// A moment by the clocks of the place where this machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year.
    pub year: i32,
    /// Month, from 1.
    pub month: i32,
    /// Day of the month, from 1.
    pub day: i32,
    /// Hour.
    pub hour: i32,
    /// Minute.
    pub minute: i32,
    /// Second.
    pub second: i32,
}

/// What local clocks show so many seconds after the beginning of 1970.
pub fn local_time(unix_s: u64) -> LocalTime {
    let time = unix_s as libc::time_t;
    // SAFETY: tm is numbers and a pointer that may be null; all zeroes is a value.
    let mut shown: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid for the call, which writes nothing else. A time that has no year leaves zeroes.
    unsafe { libc::localtime_r(&time, &mut shown) };
    LocalTime {
        year: shown.tm_year + 1900,
        month: shown.tm_mon + 1,
        day: shown.tm_mday,
        hour: shown.tm_hour,
        minute: shown.tm_min,
        second: shown.tm_sec,
    }
}

// ---- Standard output ----

/// Whether nothing could be written to standard output when the process began: it was closed, or open for reading alone.
static NO_STDOUT: AtomicBool = AtomicBool::new(false);

/// Called by the system before `main`, like every function that this section names. Rust's own start comes later and
/// opens /dev/null in the place of a standard output that is closed, so that what is printed is lost without an error.
#[used]
// SAFETY: the section is an array of such functions, and this one needs nothing that is set up later: it makes one system
// call and stores to an atomic.
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = {
    extern "C" fn look_at_stdout() {
        // SAFETY: asking for the flags of a descriptor touches no memory, and an error is an answer too.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
        let lost = flags < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY;
        NO_STDOUT.store(lost, Ordering::Relaxed);
    }
    look_at_stdout
};

/// Whether what is written to standard output arrives somewhere.
///
/// # Errors
/// EBADF when standard output was closed, or open for reading alone, when the process began.
pub fn check_stdout() -> io::Result<()> {
    match NO_STDOUT.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}

// ---- Threads, CPUs and limits ----

/// CPU time, split as the kernel splits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Spent in our own code.
    pub user_ns: Nanos,
    /// Spent in the kernel for us.
    pub system_ns: Nanos,
}

fn cpu_time(who: c_int) -> CpuTime {
    // SAFETY: rusage is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the answer.
    let result = unsafe { libc::getrusage(who, &mut usage) };
    assert!(result == 0, "getrusage failed for the caller itself");
    let ns = |time: libc::timeval| time.tv_sec as Nanos * SECOND + time.tv_usec as Nanos * 1_000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_THREAD)
}

/// CPU time that the whole process has used.
pub fn process_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_SELF)
}

/// Number of CPUs that an affinity mask of the C library can name.
const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

/// Keeps the calling thread on one CPU.
///
/// # Errors
/// Returns an error of kind `InvalidInput` for a number that no set of CPUs holds, and otherwise the error of
/// `sched_setaffinity`: EINVAL when the machine lacks that CPU or the process may not run on it.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= CPUS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}")));
    }
    // SAFETY: a CPU set is an array of words, for which all zeroes is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` is below the number of bits in the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for reads of its size; 0 names the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// The CPUs that the calling thread may run on, in ascending order.
///
/// # Errors
/// Returns the error of `sched_getaffinity`: EINVAL when the machine has more CPUs than the C library's set holds.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: a CPU set is an array of words, for which all zeroes is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes of its size; 0 names the calling thread.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    // SAFETY: every index is below the number of bits in the set.
    Ok((0..CPUS_MAX).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Number of CPUs that the machine has in use, whoever may run on them.
pub fn online_cpus() -> usize {
    // SAFETY: sysconf takes a plain number.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// Lets timers of the calling thread fire when they are due instead of up to 50 us later.
///
/// # Errors
/// Returns the error of `prctl`, which a seccomp filter may refuse with EPERM.
pub fn sharpen_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a plain number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) })?;
    Ok(())
}

/// Raises the soft limit of open descriptors to `needed` where it is below.
///
/// # Errors
/// Returns the number of descriptors that the system allows this process, when that is below `needed`.
pub fn raise_descriptor_limit(needed: u64) -> Result<(), u64> {
    let (allowed, most) = limit(libc::RLIMIT_NOFILE);
    if allowed >= needed {
        return Ok(());
    }
    if most < needed {
        return Err(most);
    }
    let limit = libc::rlimit { rlim_cur: needed, rlim_max: most };
    // SAFETY: `limit` is valid for reads.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).map(|_| ()).map_err(|_| allowed)
}

/// The soft and the hard limit of a resource.
fn limit(resource: libc::__rlimit_resource_t) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let result = unsafe { libc::getrlimit(resource, &mut limit) };
    assert!(result == 0, "getrlimit failed for a limit that always exists");
    (limit.rlim_cur, limit.rlim_max)
}

/// The most memory that the process ever held (VmHWM of /proc/self/status); getrusage is no use here, since it starts
/// with the parent's. `None` where /proc is not mounted.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Soft limit of open descriptors.
pub fn descriptor_limit() -> u64 {
    limit(libc::RLIMIT_NOFILE).0
}

/// Soft limit of memory that the process may lock, in bytes.
pub fn locked_memory_limit() -> u64 {
    limit(libc::RLIMIT_MEMLOCK).0
}

/// The name of the kernel's version; `None` where /proc is not mounted.
pub fn kernel_release() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.trim().to_owned())
}

/// Zeroed memory of its own pages, which take no room until they are touched.
pub struct Pages {
    begin: NonNull<u8>,
    len_bytes: usize,
}

impl Pages {
    /// At least so many bytes, and not none.
    ///
    /// # Errors
    /// Returns the error of `mmap`: ENOMEM when the memory is not to be had, EINVAL for 0 bytes.
    pub fn new(len_bytes: usize) -> io::Result<Pages> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages at a place of the kernel's choice replace nothing.
        let begin = unsafe { libc::mmap(ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).expect("no page is at the address zero");
        Ok(Pages { begin, len_bytes })
    }

    /// The first byte.
    pub fn begin(&self) -> *mut u8 {
        self.begin.as_ptr()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages are ours, and who had a pointer to them had it from this object.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.len_bytes) };
    }
}

// ---- Interruption ----

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// Exit status of a program that SIGINT ended, as shells have it.
const EXIT_INTERRUPTED: c_int = 130;

extern "C" fn handle_interrupt(_signal: c_int) {
    if INTERRUPTS.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: _exit may be called from a signal handler and does not return.
        unsafe { libc::_exit(EXIT_INTERRUPTED) }
    }
}

/// A terminal that goes away may say so more than once, which is no second wish.
extern "C" fn handle_hang_up(_signal: c_int) {
    INTERRUPTS.fetch_max(1, Ordering::Relaxed);
}

/// From now on SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone; unless it is ignored, as nohup has it) raise the
/// returned counter instead of ending the process; a second one of the first two ends it at once with status 130. System
/// calls that wait are cut short by the signal. A file that becomes larger than this process may make one is an error of
/// writing from now on, and not the end of the process.
///
/// # Errors
/// Returns the error of `sigaction` when the kernel does not take a handler.
pub fn on_interrupt() -> io::Result<&'static AtomicU32> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        set_action(signal, Some(handle_interrupt))?;
    }
    // SAFETY: sigaction is plain data, for which all zeroes is a value.
    let mut present: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and what is there is written to a place that holds it.
    check(unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), &mut present) })?;
    if present.sa_sigaction != libc::SIG_IGN {
        set_action(libc::SIGHUP, Some(handle_hang_up))?;
    }
    set_action(libc::SIGXFSZ, None)?;
    Ok(&INTERRUPTS)
}

/// How often this process was asked to end, since [`on_interrupt`] was called.
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// From now on a signal calls `handler`, or is ignored where there is none.
fn set_action(signal: c_int, handler: Option<extern "C" fn(c_int)>) -> io::Result<()> {
    // SAFETY: sigaction is plain data, for which all zeroes is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler.map_or(libc::SIG_IGN, |handler| handler as usize);
    // SAFETY: `action` is valid, and the handlers of this file do only what is allowed in a signal handler: they raise an
    // atomic number and may call _exit.
    check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }).map(drop)
}

// ---- Addresses ----

/// A socket address in the kernel's form.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    len_bytes: libc::socklen_t,
}

impl Address {
    fn from_raw<T>(raw: &T, len_bytes: usize) -> Address {
        assert!(len_bytes <= size_of::<T>() && size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        // SAFETY: sockaddr_storage is plain numbers, for which all zeroes is a value.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: source and destination are separate, and both hold at least `len_bytes` bytes as asserted above.
        unsafe {
            ptr::copy_nonoverlapping(
                ptr::from_ref(raw).cast(),
                ptr::from_mut(&mut storage).cast::<u8>(),
                len_bytes,
            )
        };
        Address { storage, len_bytes: len_bytes as libc::socklen_t }
    }

    /// An internet address, version 4 or 6.
    pub fn internet(address: &SocketAddr) -> Address {
        match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                Address::from_raw(&raw, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                Address::from_raw(&raw, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    /// A unix socket by its path.
    ///
    /// # Errors
    /// Returns ENAMETOOLONG when the path does not fit (108 bytes with its final zero), EINVAL when it contains a zero byte.
    pub fn unix(path: &Path) -> io::Result<Address> {
        let bytes = path.as_os_str().as_bytes();
        // SAFETY: sockaddr_un is plain numbers, for which all zeroes is a value.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if bytes.len() >= raw.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        if bytes.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        for (place, &byte) in raw.sun_path.iter_mut().zip(bytes) {
            *place = byte as libc::c_char;
        }
        Ok(Address::from_raw(&raw, size_of::<libc::sockaddr_un>()))
    }

    fn family(&self) -> c_int {
        c_int::from(self.storage.ss_family)
    }

    fn raw(&self) -> *const libc::sockaddr {
        ptr::from_ref(&self.storage).cast()
    }
}

// ---- Sockets ----

/// A new non-blocking stream socket of the family that `address` has.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks the
/// family.
pub fn stream_socket(address: &Address) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket() takes plain numbers.
    own(unsafe { libc::socket(address.family(), kind, 0) })
}

/// A new non-blocking datagram socket of the family that `address` has.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks the
/// family.
pub fn datagram_socket_to(address: &Address) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket() takes plain numbers.
    own(unsafe { libc::socket(address.family(), kind, 0) })
}

/// A new datagram socket, which is never connected.
///
/// # Errors
/// Returns the error of `socket`: EMFILE or ENFILE when no descriptor is left, EAFNOSUPPORT when the kernel lacks
/// IPv4.
pub fn datagram_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket() takes plain numbers.
    own(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
}

/// Binds a socket to the address that it shall connect from.
///
/// # Errors
/// Returns the error of `bind`: EADDRNOTAVAIL when this machine lacks the address, EADDRINUSE when its port is taken.
pub fn bind(socket: BorrowedFd<'_>, address: &Address) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the address inside `address`.
    check(unsafe { libc::bind(socket.as_raw_fd(), address.raw(), address.len_bytes) })?;
    Ok(())
}

/// Connects, or begins to (EINPROGRESS).
///
/// # Errors
/// Returns the error of `connect`: EINPROGRESS when the connection is being opened, ECONNREFUSED, ENETUNREACH and the
/// like when it cannot be, EADDRNOTAVAIL when no local port is left, EAGAIN when the queue of a unix listener is
/// full.
pub fn connect(socket: BorrowedFd<'_>, address: &Address) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the address inside `address`.
    check(unsafe { libc::connect(socket.as_raw_fd(), address.raw(), address.len_bytes) })?;
    Ok(())
}

fn set_option<T>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let len_bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len_bytes)
    })?;
    Ok(())
}

/// TCP_NODELAY: small segments leave at once.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_nodelay(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, &(1 as c_int))
}

/// SO_LINGER: how long closing waits for bytes to leave; 0 throws them away and sends a reset.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_linger(socket: BorrowedFd<'_>, seconds: u32) -> io::Result<()> {
    let seconds = c_int::try_from(seconds).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: seconds })
}

/// SO_SNDBUF; the kernel doubles it and keeps it within its own bounds.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_send_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes)
}

/// SO_RCVBUF; the kernel doubles it and keeps it within its own bounds.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes)
}

/// IP_BIND_ADDRESS_NO_PORT: binding to port 0 takes no port yet, so that each destination has all ports to itself.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_bind_address_no_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &(1 as c_int))
}

/// SO_TIMESTAMPNS: the kernel says of received bytes when they came.
///
/// # Errors
/// Returns the error of `setsockopt`: ENOPROTOOPT or EOPNOTSUPP when this kind of socket lacks the option.
pub fn set_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &(1 as c_int))
}

/// Takes the socket's pending error (SO_ERROR) as an error number; 0 for none.
///
/// # Errors
/// Returns the error of `getsockopt`, which no open socket gives.
pub fn take_socket_error(socket: BorrowedFd<'_>) -> io::Result<i32> {
    let mut error: c_int = 0;
    let mut len_bytes = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the pointers are to places of the right sizes for the option.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            ptr::from_mut(&mut error).cast(),
            &mut len_bytes,
        )
    })?;
    Ok(error)
}

/// Sends what fits without waiting, and without a SIGPIPE. `parts` may be any number up to IOV_MAX (1024).
///
/// # Errors
/// Returns the error of the send: EAGAIN when the socket is full, EMSGSIZE for a datagram that is too long,
/// ECONNRESET, EPIPE and the like when the connection is over.
#[inline]
pub fn send(socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if let [part] = parts {
        let nobody = ptr::null::<libc::sockaddr>();
        // By number: in a program with threads, the C library's function also looks twice whether somebody wants to cancel
        // this one.
        // SAFETY: the pointer and the length describe `part`; no address is given, of length 0.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendto,
                socket.as_raw_fd(),
                part.as_ptr(),
                part.len(),
                flags,
                nobody,
                0 as libc::socklen_t,
            )
        };
        return check_len(sent as isize);
    }
    // SAFETY: msghdr is pointers and numbers, for which all zeroes (null, empty) is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is promised to have the layout of iovec; sendmsg does not write to it.
    message.msg_iov = parts.as_ptr().cast::<libc::iovec>().cast_mut();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: `message` describes `parts`, which live until the call returns.
    check_len(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })
}

/// Receives what is there without waiting; 0 is the end of the stream.
///
/// # Errors
/// Returns the error of the receive: EAGAIN when nothing is there, ECONNRESET and the like when the connection is
/// broken.
#[inline]
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let (place, len_bytes) = (into.as_mut_ptr().cast::<c_void>(), into.len());
    // SAFETY: the pointer and the length describe `into`.
    check_len(unsafe { libc::recv(socket.as_raw_fd(), place, len_bytes, libc::MSG_DONTWAIT) })
}

/// Room for control messages: one time stamp takes 32 bytes; the rest is for options that nobody should have set.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

/// Receives what is there without waiting, with the wall time at which the kernel received the newest segment of it,
/// where the socket has [`set_receive_stamps`]. 0 bytes is the end of the stream.
///
/// # Errors
/// Returns the error of the receive: EAGAIN when nothing is there, ECONNRESET and the like when the connection is
/// broken.
#[inline]
pub fn receive_stamped(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Option<Nanos>)> {
    let mut control = Control([MaybeUninit::uninit(); 64]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: msghdr is pointers and numbers, for which all zeroes (null, empty) is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(&mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // By number, as in `send`.
    // SAFETY: `message` describes `into` and `control`, which live until the call returns.
    let received = unsafe {
        libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), ptr::from_mut(&mut message), libc::MSG_DONTWAIT)
    };
    let received = check_len(received as isize)?;
    Ok((received, stamp_of(&message)))
}

/// The receive stamp among control messages that the kernel wrote somewhere; they begin at a multiple of 8 bytes.
#[inline]
pub fn stamp_in(control: &mut [u8]) -> Option<Nanos> {
    // SAFETY: msghdr is pointers and numbers, for which all zeroes (null, empty) is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len() as _;
    stamp_of(&message)
}

/// The receive stamp among the control messages that the kernel wrote.
fn stamp_of(message: &libc::msghdr) -> Option<Nanos> {
    // SAFETY: the kernel filled in `message`; its control buffer is still alive in the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: `header` is not null and points to a whole control message inside the buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        // SCM_TIMESTAMPNS has the number of SO_TIMESTAMPNS.
        if level == libc::SOL_SOCKET && kind == libc::SO_TIMESTAMPNS {
            // SAFETY: the data of this kind of message is a timespec, perhaps not aligned for one.
            let time = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            return Some(time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos);
        }
        // SAFETY: as for CMSG_FIRSTHDR; `header` came from this message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

// ---- Readiness ----

/// The socket has bytes, or its end.
pub const READABLE: u32 = libc::EPOLLIN as u32;
/// The socket takes bytes.
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// The peer will send no more.
pub const PEER_CLOSED: u32 = libc::EPOLLRDHUP as u32;
/// Both directions are shut.
pub const HUNG_UP: u32 = libc::EPOLLHUP as u32;
/// The socket has an error.
pub const FAILED: u32 = libc::EPOLLERR as u32;
/// Say each change once.
pub const EDGES: u32 = libc::EPOLLET as u32;

/// One report of readiness.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Ready(libc::epoll_event);

impl Ready {
    /// Nothing.
    pub const NONE: Ready = Ready(libc::epoll_event { events: 0, u64: 0 });

    /// Which bits are set.
    pub fn bits(&self) -> u32 {
        self.0.events
    }

    /// The number that the descriptor was added with.
    pub fn token(&self) -> u64 {
        self.0.u64
    }
}

/// How long a wait for readiness may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitLimit {
    /// Not at all.
    Look,
    /// So many nanoseconds.
    For(Nanos),
    /// Until something is ready.
    Endless,
}

/// A set of descriptors whose readiness is watched.
pub struct Poller {
    fd: OwnedFd,
}

impl Poller {
    /// An empty set.
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
        })?;
        Ok(())
    }

    /// Looks, or waits in steps of the millisecond-coarse old call: without end, or not at all.
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
        // By number, since C libraries before 2.35 have no function for it.
        // SAFETY: the pointers are to `into` and to a timespec that lives until the call returns; no signal mask.
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
    libc::timespec { tv_sec: (ns / SECOND) as libc::time_t, tv_nsec: (ns % SECOND) as libc::c_long }
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

    /// Sets it to a time of the monotonic clock (at once when that has passed), or switches it off.
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
        })?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Lets a system call of the calling thread, and of threads that it starts, fail with this error from now on: a filter
/// as containers have it.
///
/// # Errors
/// Returns the error of `prctl`: EINVAL when the kernel has no filters of system calls.
#[cfg(test)]
pub fn refuse_call(number: libc::c_long, errno: i32) -> io::Result<()> {
    let step = |code: u32, jump_if_not: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_if_not,
        k: value,
    };
    // The first word of what a filter looks at is the number of the call.
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, number as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: this option takes plain numbers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: `program` describes `steps`, and both live until the call returns.
    check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_runs_backwards() {
        let mut last = monotonic_ns();
        for _ in 0..10_000 {
            let now = monotonic_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_clocks_of_a_time_namespace_are_told_apart() {
        assert!(!is_shifted("monotonic           0         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic      100000         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic          -1 999999999\nboottime            0         0\n"));
    }

    #[test]
    fn a_pinned_thread_may_run_on_its_cpu_alone() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_to_cpu(cpu).unwrap();
            allowed_cpus().unwrap()
        });
        assert_eq!(seen.join().unwrap(), [cpu]);
    }

    #[test]
    fn a_cpu_that_cannot_exist_is_an_error() {
        assert!(pin_to_cpu(CPUS_MAX).is_err());
    }

    #[test]
    fn work_costs_cpu_time_of_the_thread_and_of_the_process() {
        let (thread, process) = (thread_cpu_time(), process_cpu_time());
        let end = monotonic_ns() + 200 * 1_000_000;
        while monotonic_ns() < end || thread_cpu_time() == thread {}
        assert!(thread_cpu_time() != thread);
        assert!(process_cpu_time() != process);
    }

    #[test]
    fn peak_memory_holds_what_was_touched() {
        let before = peak_rss_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_rss_bytes().unwrap() >= block.len() as u64);
        assert!(before < 1 << 40);
    }

    #[test]
    fn more_descriptors_than_the_hard_limit_are_refused_with_the_number_allowed() {
        let allowed = raise_descriptor_limit(u64::MAX - 1).unwrap_err();
        assert!(allowed > 0);
        assert_eq!(raise_descriptor_limit(1), Ok(()));
    }

    #[test]
    fn an_interrupt_is_counted_instead_of_ending_the_process() {
        let interrupts = on_interrupt().unwrap();
        // SAFETY: raise() takes a plain number; the signal has a handler now.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
        // A terminal that goes away then is no second wish to end at once.
        // SAFETY: as above.
        assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn unix_paths_that_the_kernel_cannot_take_are_errors() {
        let long = "x".repeat(108);
        assert_eq!(errno(&Address::unix(Path::new(&long)).err().unwrap()), libc::ENAMETOOLONG);
        assert_eq!(errno(&Address::unix(Path::new("/a\0b")).err().unwrap()), libc::EINVAL);
        assert!(Address::unix(Path::new(&long[1..])).is_ok());
    }

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
