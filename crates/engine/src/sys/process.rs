//! The process and its threads: CPUs, CPU time, limits, memory, standard output.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicBool, Ordering};

use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::evidence::provenance::cpu_list;

use super::check;

/// CPU time, split into user and system time as by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds in user code.
    pub user_ns: Nanos,
    /// Nanoseconds in the kernel.
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
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) }).map(drop)
}

/// The CPUs that the calling thread may run on, in ascending order.
///
/// # Errors
/// Returns the error of `sched_getaffinity`: EINVAL when the machine has more CPUs than the C library's set holds.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    allowed_cpus_of(0)
}

/// The CPUs that the thread with this number may run on, in ascending order; 0 is the calling thread, and the number of a process
/// that of its first thread.
///
/// # Errors
/// Returns the error of `sched_getaffinity`: EINVAL when the machine has more CPUs than the C library's set holds, ESRCH when
/// there is no such thread.
pub fn allowed_cpus_of(thread: u32) -> io::Result<Vec<usize>> {
    // SAFETY: a CPU set is an array of words, for which all zeroes is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes of its size; a number that no thread has is an error.
    check(unsafe { libc::sched_getaffinity(thread as libc::pid_t, size_of::<libc::cpu_set_t>(), &mut set) })?;
    // SAFETY: every index is below the number of bits in the set.
    Ok((0..CPUS_MAX).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Number of online CPUs of the machine, whether or not this process may run on them; where `/sys` is not there, of those that it may
/// run on. The C libraries do not agree about `_SC_NPROCESSORS_ONLN`: for musl it is the latter everywhere.
pub fn online_cpus() -> usize {
    let listed = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let count = listed.and_then(|text| Some(cpu_list(&text)?.len())).filter(|count| *count > 0);
    count.or_else(|| Some(allowed_cpus().ok()?.len())).unwrap_or(1).max(1)
}

/// Lets timers of the calling thread fire when they are due instead of up to 50 us later.
///
/// # Errors
/// Returns the error of `prctl`, which a seccomp filter may refuse with EPERM.
pub fn sharpen_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a plain number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(drop)
}

/// Raises the soft limit of open descriptors to `needed` if it is lower.
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

/// The type of a resource's name, for which the C libraries have different ones.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = c_int;

/// The soft and the hard limit of a resource.
fn limit(resource: Resource) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let result = unsafe { libc::getrlimit(resource, &mut limit) };
    assert!(result == 0, "getrlimit failed for a limit that always exists");
    (limit.rlim_cur, limit.rlim_max)
}

/// The most memory that the process ever held, in bytes (VmHWM of /proc/self/status); `None` where /proc is not
/// mounted. The figure of getrusage begins with that of the parent process.
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

/// Set if nothing could be written to standard output when the process began: it was closed, or open for reading alone.
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

/// Checks that standard output can be written to.
///
/// # Errors
/// Returns EBADF when standard output was closed, or open for reading alone, when the process began.
pub fn check_stdout() -> io::Result<()> {
    match NO_STDOUT.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}

/// Makes a system call of the calling thread, and of threads that it starts, fail with this error, by a filter as
/// containers have it.
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
    check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::monotonic_ns;

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
    fn a_pinned_thread_is_on_a_machine_of_as_many_cpus_as_before() {
        let cpus = online_cpus();
        assert!(cpus >= allowed_cpus().unwrap().len());
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin_to_cpu(cpu).unwrap();
            online_cpus()
        });
        assert_eq!(seen.join().unwrap(), cpus);
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
}
