//! Signals that ask this process to end.

use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::check;

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

/// Exit status of a program that SIGINT ended, as shells have it.
const EXIT_INTERRUPTED: c_int = 130;

extern "C" fn handle_interrupt(_signal: c_int) {
    if INTERRUPTS.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: _exit may be called from a signal handler and does not return.
        unsafe { libc::_exit(EXIT_INTERRUPTED) }
    }
}

/// Counts SIGHUP. A terminal that is gone may send it more than once, which is no second request to end.
extern "C" fn handle_hang_up(_signal: c_int) {
    INTERRUPTS.fetch_max(1, Ordering::Relaxed);
}

/// Makes SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone) raise a counter instead of ending the process. A
/// second SIGINT or SIGTERM ends the process at once with status 130. SIGHUP stays ignored where it is, as under nohup.
/// Waiting system calls are cut short by the signals. Writing beyond the limit of file sizes becomes an error and does
/// not end the process.
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

/// How often the process was asked to end since [`on_interrupt`] was called.
pub fn interrupts() -> u32 {
    INTERRUPTS.load(Ordering::Relaxed)
}

/// Makes a signal call `handler`, or ignores the signal where there is none.
fn set_action(signal: c_int, handler: Option<extern "C" fn(c_int)>) -> io::Result<()> {
    // SAFETY: sigaction is plain data, for which all zeroes is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler.map_or(libc::SIG_IGN, |handler| handler as usize);
    // SAFETY: `action` is valid, and the handlers of this file do only what is allowed in a signal handler: they raise an
    // atomic number and may call _exit.
    check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_counted_instead_of_ending_the_process() {
        let interrupts = on_interrupt().unwrap();
        // SAFETY: raise() takes a plain number; the signal has a handler now.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
        // SIGHUP after it is no second request to end. SAFETY: as above.
        assert_eq!(unsafe { libc::raise(libc::SIGHUP) }, 0);
        assert_eq!(interrupts.load(Ordering::Relaxed), 1);
    }
}
