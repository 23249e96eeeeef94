//! The token of an operation of the ring: what the operation is for, and on which connection.

use crate::backend::ConnId;

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
