//! What was seen of everything that can limit a run: its servers, the machines that sent the requests, and the network.
//!
//! One reading is taken before the measured phase and one after it; figures are the differences between the two unless
//! a field says otherwise. The core is given readings; `pummel-engine` takes them.

pub mod machine;
pub mod server;

use serde::{Deserialize, Serialize};

pub use self::machine::{CardUse, ConnectionEvidence, HostNetwork, MachineEvidence, ThreadUse};
pub use self::server::{CommandTimes, ServerCounts, ServerEvidence, ServerReading};

/// The evidence of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The servers, in the order of the Plan. With agents the servers are read by one of the agents, and the threads of
    /// a server by the agent that shares the machine with it.
    pub servers: Vec<ServerEvidence>,
    /// The machines that sent the requests: one for each process.
    pub machines: Vec<MachineEvidence>,
}

impl Evidence {
    /// Adds what another process of the same run saw.
    pub fn merge(&mut self, other: &Evidence) {
        for more in &other.servers {
            match self.servers.iter_mut().find(|server| server.address == more.address) {
                Some(server) => server.merge(more),
                None => self.servers.push(more.clone()),
            }
        }
        self.machines.extend(other.machines.iter().cloned());
    }
}
