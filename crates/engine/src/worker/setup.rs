//! What a worker is made of: its limits, its clients and where their connections go.

use std::sync::Arc;

use pummel_logic::client::Client;
use pummel_logic::plan::Transport;
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::Nanos;

use crate::resolve::Server;

/// What a worker needs to know beside its clients.
#[derive(Clone, Debug)]
pub struct WorkerLimits {
    /// How long a request may take, and a connection to open.
    pub timeout_ns: Nanos,
    /// Whether connections that the server closed are opened again.
    pub reconnect: bool,
    /// How long a phase waits for its last answers.
    pub drain_ns: Nanos,
    /// How long a server may answer nothing while records are stored.
    pub load_patience_ns: Nanos,
    /// How long a server may answer nothing in any other phase that ends by the number of its requests alone.
    pub patience_ns: Nanos,
    /// Draws that are made at most to count what a client was to send and did not.
    pub unsent_draws_max: u64,
}

/// The clients of a worker and where their connections go.
#[derive(Debug)]
pub struct WorkerSetup {
    /// The clients.
    pub clients: Vec<Client>,
    /// Lanes of each.
    pub lanes: usize,
    /// The servers of the Plan.
    pub servers: Arc<[Server]>,
    /// Where connections go: for each client its lanes in order.
    pub endpoints: Vec<Endpoint>,
    /// Most requests outstanding on a connection, to make room for.
    pub depth: usize,
    /// What is said on every new connection.
    pub handshake: Arc<Handshake>,
}

/// Where a connection goes.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Index of its server in the Plan.
    pub server: u32,
    /// Its number over all threads, which decides on the address that it comes from.
    pub connection: u64,
    /// What it is made of.
    pub transport: Transport,
}
