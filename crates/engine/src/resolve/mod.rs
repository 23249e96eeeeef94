//! Resolution of the names of a Plan's servers and source addresses, and the file descriptors that connections need.

mod error;
mod server;

use pummel_logic::plan::Plan;

pub use self::error::ConnectError;
pub use self::server::{Server, Sources};
use crate::sys;

/// File descriptors of a process besides connections: the standard streams, result files, and sockets of the name
/// service and of libraries.
const DESCRIPTORS_BESIDES: u64 = 32;

/// File descriptors of a worker besides connections: its poller and its alarm.
const DESCRIPTORS_PER_WORKER: u64 = 2;

/// Number of connections that a Plan asks for, over all processes: one for each lane of each client.
pub fn connections(plan: &Plan) -> u64 {
    plan.clients() * plan.lanes() as u64
}

/// Number of file descriptors that a process with this many connections and workers needs, other open files included.
pub fn descriptors_needed(connections: u64, workers: u32) -> u64 {
    connections + u64::from(workers) * DESCRIPTORS_PER_WORKER + DESCRIPTORS_BESIDES
}

/// Makes sure that `connections` connections can be open at the same time. The soft limit of file descriptors is
/// raised if necessary.
///
/// # Errors
/// Returns [`ConnectError::Descriptors`] if the hard limit of file descriptors is below the number needed.
pub fn ensure_descriptors(connections: u64, workers: u32) -> Result<(), ConnectError> {
    let needed = descriptors_needed(connections, workers);
    sys::raise_descriptor_limit(needed).map_err(|allowed| ConnectError::Descriptors {
        connections,
        needed,
        allowed,
    })
}

/// Raises the soft limit of file descriptors for `connections` connections as far as the system allows. Connections
/// beyond the limit fail and are counted as failed.
pub fn allow_descriptors(connections: u64, workers: u32) {
    if let Err(allowed) = sys::raise_descriptor_limit(descriptors_needed(connections, workers)) {
        // The limit is raised to what is allowed. If this fails too, the limit is unchanged.
        let _ = sys::raise_descriptor_limit(allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_connections_are_refused_with_the_number_needed() {
        assert_eq!(descriptors_needed(10_000, 2), 10_036);
        ensure_descriptors(1, 1).unwrap();
        let error = ensure_descriptors(1 << 40, 1).unwrap_err().to_string();
        assert!(error.contains("1099511627810"), "{error}");
    }
}
