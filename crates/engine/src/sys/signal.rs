//! Signals that ask this process to end.

use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use pummel_logic::time::MILLISECOND;

use super::check;

/// Number of times that the process was asked to end.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// The signal that asked first; 0 where none has.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// When the first signal came, on the monotonic clock.
static FIRST_AT_NS: AtomicU64 = AtomicU64::new(0);

/// A repeated signal within this time, in nanoseconds, counts once: GNU `timeout` and terminals send a signal to a
/// process and again to its group.
const SAME_WISH_NS: u64 = 100 * MILLISECOND;

extern "C" fn handle_interrupt(signal: c_int) {
    let now = super::clock::monotonic_ns();
    if FIRST_SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        FIRST_AT_NS.store(now, Ordering::Relaxed);
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let is_same = FIRST_SIGNAL.load(Ordering::Relaxed) == signal;
    if !is_same || now.saturating_sub(FIRST_AT_NS.load(Ordering::Relaxed)) >= SAME_WISH_NS {
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
        end_by(signal);
    }
}

/// Counts SIGHUP. A terminal that is gone may send it more than once, which is no second request to end.
extern "C" fn handle_hang_up(signal: c_int) {
    let _ = FIRST_SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    INTERRUPTS.fetch_max(1, Ordering::Relaxed);
}

/// Makes SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone) raise a counter instead of ending the process. A
/// second SIGINT or SIGTERM ends the process at once, by that signal; the first signal again within 100 ms is no second
/// one. SIGHUP stays ignored where it is, as under nohup. Waiting system calls are cut short by the signals.
///
/// # Errors
/// Returns the error of `sigaction` when the kernel does not take a handler.
pub fn on_interrupt() -> io::Result<&'static AtomicU32> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        set_action(signal, handle_interrupt)?;
    }
    // SAFETY: sigaction is plain data, for which all zeroes is a value.
    let mut present: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and what is there is written to a place that holds it.
    check(unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), &mut present) })?;
    if present.sa_sigaction != libc::SIG_IGN {
        set_action(libc::SIGHUP, handle_hang_up)?;
    }
    Ok(&INTERRUPTS)
}

/// Takes no notice of a signal. A handler, unlike an ignored signal, is not inherited by the programs that the process starts.
extern "C" fn take_no_notice(_: c_int) {}

/// Makes writing beyond the limit of file sizes (`ulimit -f`) an error of the kind `FileTooLarge`, which ends the process otherwise
/// by SIGXFSZ. Programs that the process starts have the default action again.
///
/// # Errors
/// Returns the error of `sigaction` when the kernel does not take a handler.
pub fn report_file_size_limit() -> io::Result<()> {
    set_action(libc::SIGXFSZ, take_no_notice)
}

/// Number of times that the process was asked to end since [`on_interrupt`] was called.
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// The name of the signal that asked the process to end first; `None` where no signal came.
pub fn first_signal() -> Option<&'static str> {
    match FIRST_SIGNAL.load(Ordering::Relaxed) {
        libc::SIGINT => Some("SIGINT"),
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        _ => None,
    }
}

/// Number of the signal that asked the process to end first; `None` where no signal came.
pub fn first_signal_number() -> Option<u8> {
    u8::try_from(FIRST_SIGNAL.load(Ordering::Relaxed)).ok().filter(|number| *number > 0)
}

/// Ends the process by the signal that asked it to end first, so that a shell sees that signal and ends its script as
/// well. Returns where no signal came.
pub fn end_by_first_signal() {
    let signal = FIRST_SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        end_by(signal);
    }
}

/// Ends the process by the default action of a signal. In the handler of this signal, the end comes when the handler
/// returns.
fn end_by(signal: c_int) {
    // SAFETY: signal() and raise() take plain numbers, and both may be called from a signal handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Makes a signal call `handler`.
fn set_action(signal: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY: sigaction is plain data, for which all zeroes is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // SAFETY: `action` is valid, and the handlers of this file do only what is allowed in a signal handler: they change
    // atomic numbers, read the clock, and may call signal() and raise().
    check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_file_sizes_is_an_error_here_and_ends_programs_that_are_started() {
        report_file_size_limit().unwrap();
        // SAFETY: raise() takes a plain number; the signal has a handler now.
        assert_eq!(unsafe { libc::raise(libc::SIGXFSZ) }, 0);
        let mut program = std::process::Command::new("sh");
        let ended = program.args(["-c", "kill -s XFSZ $$; exit 7"]).status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGXFSZ));
    }

    #[test]
    fn an_interrupt_is_counted_instead_of_ending_the_process() {
        let interrupts = on_interrupt().unwrap();
        // SAFETY: raise() takes a plain number; the signal has a handler now.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
        // SIGTERM again at once and SIGHUP after it are no second request to end.
        for signal in [libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::raise(signal) }, 0);
        }
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
    }
}
