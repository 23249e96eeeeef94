//! Why a machine gives no io_uring, in words that say what to change.

use std::io;

use crate::sys;

/// The first kernel whose io_uring does what is needed: work that is deferred to the thread's own entries.
const KERNEL_NEEDED: &str = "6.1";

/// The facts about this machine that decide whether io_uring can be used.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Release of the kernel.
    release: Option<String>,
    /// kernel.io_uring_disabled: 1 for users outside of a group, 2 for all users.
    disabled: Option<String>,
    /// Bytes of memory that may be locked.
    locked_max: u64,
}

/// Why a ring could not be made, as a clause.
pub fn of(error: &io::Error) -> String {
    let facts = Facts {
        release: sys::kernel_release(),
        disabled: std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
            .ok()
            .map(|text| text.trim().to_owned()),
        locked_max: sys::locked_memory_limit(),
    };
    name(error, &facts)
}

fn name(error: &io::Error, facts: &Facts) -> String {
    let release = facts.release.as_deref().unwrap_or("of unknown release");
    match sys::errno(error) {
        libc::ENOSYS => format!(
            "the kernel ({release}) has no io_uring, or a seccomp filter such as a container's hides it"
        ),
        libc::EPERM | libc::EACCES => match facts.disabled.as_deref() {
            Some("2") => "kernel.io_uring_disabled is 2: no process may use io_uring".to_owned(),
            Some("1") => {
                "kernel.io_uring_disabled is 1: this user is not of the group in kernel.io_uring_group"
                    .to_owned()
            }
            _ => "a seccomp filter such as a container's forbids it".to_owned(),
        },
        libc::EINVAL => format!("the kernel ({release}) is too old: {KERNEL_NEEDED} or later is needed"),
        libc::ENOMEM => format!(
            "the limit of locked memory (ulimit -l) of {} KiB is too low, or memory is short",
            facts.locked_max / 1024
        ),
        libc::EMFILE | libc::ENFILE => "there are no descriptors left (ulimit -n)".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_named() {
        let facts = |disabled: Option<&str>| Facts {
            release: Some("5.15.0-91".to_owned()),
            disabled: disabled.map(str::to_owned),
            locked_max: 64 * 1024,
        };
        for (errno, disabled, words) in [
            (libc::ENOSYS, None, "5.15.0-91"),
            (libc::EPERM, Some("2"), "kernel.io_uring_disabled is 2"),
            (libc::EPERM, Some("1"), "kernel.io_uring_group"),
            (libc::EPERM, Some("0"), "seccomp"),
            (libc::EPERM, None, "seccomp"),
            (libc::EINVAL, Some("0"), "(5.15.0-91) is too old: 6.1"),
            (libc::ENOMEM, Some("0"), "(ulimit -l) of 64 KiB"),
            (libc::EMFILE, Some("0"), "ulimit -n"),
            (libc::EFAULT, Some("0"), "Bad address"),
        ] {
            let cause = name(&io::Error::from_raw_os_error(errno), &facts(disabled));
            assert!(cause.contains(words), "{cause}");
        }
    }
}
