//! Questions to the kernel by netlink(7) that have many answers.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use super::{new_socket, receive, send};

/// Length of `struct nlmsghdr`, with which each message begins.
pub const HEADER_BYTES: usize = 16;

/// Flags of a question that has many answers: NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;

/// Most replies that are read for one question.
const REPLIES_MAX: usize = 4096;

/// The question of this type for all entries, with zeroes behind its header.
pub fn question<const LEN_BYTES: usize>(kind: u16) -> [u8; LEN_BYTES] {
    let mut bytes = [0; LEN_BYTES];
    bytes[..4].copy_from_slice(&(LEN_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes
}

/// Puts a question to the kernel, and hands its replies to `on` until `on` returns true. The kernel answers within the call that sends
/// and the ones that receive, so that nothing is waited for.
///
/// # Errors
/// Returns the error of the socket or of `on`, or EAGAIN where the kernel stops before `on` has enough.
pub fn ask(
    protocol: c_int,
    question: &[u8],
    mut on: impl FnMut(&[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let socket = new_socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, protocol)?;
    send(socket.as_fd(), &[IoSlice::new(question)])?;
    let mut reply = vec![0u8; 64 * 1024];
    for _ in 0..REPLIES_MAX {
        let len_bytes = receive(socket.as_fd(), &mut reply)?;
        if on(&reply[..len_bytes])? {
            break;
        }
    }
    Ok(())
}
