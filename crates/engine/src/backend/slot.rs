//! The slots of a backend on the kernel, one for each connection.

use std::os::fd::{AsFd, OwnedFd};

use super::dial::reason;
use super::{Close, ConnId, Reason};
use crate::sys;

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotState {
    /// The slot has no connection.
    #[default]
    Free,
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Open,
}

/// A slot and its connection, in 12 bytes.
#[derive(Default)]
pub struct Slot {
    /// The socket, while the connection is open or being opened.
    pub fd: Option<OwnedFd>,
    /// Number of the slot's use.
    pub generation: u32,
    /// The error number that a system call returned before the connection's end was handed over; 0 for none.
    pub errno: u16,
    /// The state of the slot.
    pub state: SlotState,
    /// Flags of the backend, one bit each.
    pub flags: u8,
}

impl Slot {
    /// Whether a flag is set.
    #[inline]
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The reason of the connection's end by the error that is kept in the slot.
    pub fn reason(&self) -> Reason {
        reason(i32::from(self.errno))
    }

    /// Prepares the socket to be closed in this way.
    pub fn prepare_to_close(&self, how: Close) {
        if let (Close::Reset, Some(fd)) = (how, &self.fd) {
            // On a failure the connection is closed in order instead of by reset.
            let _ = sys::set_linger(fd.as_fd(), 0);
        }
    }
}

/// The slot of a connection; `None` when the connection is over.
#[inline]
pub fn find(slots: &mut [Slot], conn: ConnId) -> Option<&mut Slot> {
    let slot = slots.get_mut(conn.slot as usize)?;
    (slot.generation == conn.generation && slot.state != SlotState::Free).then_some(slot)
}

/// Takes a free slot for a connection that is about to be opened.
pub fn take(slots: &mut Vec<Slot>, conn: ConnId) {
    let index = conn.slot as usize;
    if slots.len() <= index {
        slots.resize_with(index + 1, Slot::default);
    }
    let slot = &mut slots[index];
    assert!(slot.state == SlotState::Free, "slot {index} is in use");
    *slot = Slot { generation: conn.generation, state: SlotState::Connecting, ..Slot::default() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_small() {
        assert!(size_of::<Slot>() <= 16);
    }
}
