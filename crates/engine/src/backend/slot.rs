//! What a backend on the kernel knows of each of its connections.

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

/// What is known of a connection: 12 bytes.
#[derive(Default)]
pub struct Slot {
    /// Its socket, as long as it is open or being opened.
    pub fd: Option<OwnedFd>,
    /// Which use of the slot this is.
    pub generation: u32,
    /// The error that a system call used up before the connection's end was told; 0 for none.
    pub errno: u16,
    /// How far it is.
    pub state: SlotState,
    /// The backend's own notes, a bit each.
    pub flags: u8,
}

impl Slot {
    /// Whether one of the backend's notes stands there.
    #[inline]
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Why the connection ends, when reading has nothing to say about it.
    pub fn reason(&self) -> Reason {
        reason(i32::from(self.errno))
    }

    /// What has to be done to the socket before it is closed in this way.
    pub fn prepare_to_close(&self, how: Close) {
        if let (Close::Reset, Some(fd)) = (how, &self.fd) {
            // Nothing can be done about a failure: the connection is closed then all the same, only politely.
            let _ = sys::set_linger(fd.as_fd(), 0);
        }
    }
}

/// The slot of a connection, unless that is over.
#[inline]
pub fn find(slots: &mut [Slot], conn: ConnId) -> Option<&mut Slot> {
    let slot = slots.get_mut(conn.slot as usize)?;
    (slot.generation == conn.generation && slot.state != SlotState::Free).then_some(slot)
}

/// Takes a slot, which nobody has, for a connection that is about to be opened.
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
