//! The resources that a run uses, by name.

use serde::{Deserialize, Serialize};

/// A resource that a run uses. A server is named where there are several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The busiest client thread.
    ClientThread {
        /// Number of client threads.
        threads: u64,
    },
    /// The slots of the connections of an open loop.
    Slots,
    /// A network card.
    Card {
        /// Name of the card.
        name: String,
        /// Agent on its machine.
        agent: Option<String>,
    },
    /// The CPU of the busiest serving thread.
    ServerCpu {
        /// Address of the server.
        server: Option<String>,
    },
    /// The time of a server that executes one command after the other.
    ServerCommands {
        /// Address of the server.
        server: Option<String>,
    },
    /// The memory of a server.
    ServerMemory {
        /// Address of the server.
        server: Option<String>,
    },
    /// The limit of connections of a server.
    ServerConnections {
        /// Address of the server.
        server: Option<String>,
    },
}

impl Resource {
    /// The names of servers, cards and agents, each to be changed.
    pub fn names_mut(&mut self) -> Vec<&mut String> {
        match self {
            Resource::ClientThread { .. } | Resource::Slots => Vec::new(),
            Resource::Card { name, agent } => [name].into_iter().chain(agent).collect(),
            Resource::ServerCpu { server }
            | Resource::ServerCommands { server }
            | Resource::ServerMemory { server }
            | Resource::ServerConnections { server } => server.iter_mut().collect(),
        }
    }
}
