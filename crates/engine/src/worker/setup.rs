//! The clients of a worker, the endpoints of their connections, and the limits of both.

use std::sync::Arc;

use pummel_logic::client::Client;
use pummel_logic::plan::Transport;
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::Nanos;
use pummel_logic::workload::request::RequestMaker;

use crate::resolve::Server;
use crate::worker::reporter::WorkerReporter;

/// The times and counts that bound what a worker does.
#[derive(Clone, Debug)]
pub struct WorkerLimits {
    /// Longest time for a request, and for the opening of a connection, in nanoseconds.
    pub timeout_ns: Nanos,
    /// Whether connections that the server closed are opened again.
    pub reconnect: bool,
    /// Whether servers are asked not to answer any measured request, so that only the connections that a server takes
    /// show that it is there.
    pub no_replies: bool,
    /// Longest wait of a phase for its last replies, in nanoseconds.
    pub drain_ns: Nanos,
    /// Longest silence of a server while records are stored, in nanoseconds.
    pub load_silence_max_ns: Nanos,
    /// Longest silence of a server in any other phase that ends by the number of its requests alone, in nanoseconds.
    pub silence_max_ns: Nanos,
    /// Most random draws to count the requests that a client was to send and did not.
    pub unsent_draws_max: u64,
    /// Whether some clients are on stage for a time only.
    pub has_stage: bool,
}

/// The clients of a worker, with all that they need to make requests and to have them recorded.
#[derive(Debug)]
pub struct WorkerSetup {
    /// The clients of the worker.
    pub clients: Vec<Client>,
    /// Lanes of each client.
    pub lanes: usize,
    /// The servers of the Plan.
    pub servers: Arc<[Server]>,
    /// The endpoints of the connections: for each client its lanes in order.
    pub endpoints: Vec<Endpoint>,
    /// Outstanding requests of a connection for which memory is taken beforehand.
    pub depth: usize,
    /// The handshake of every new connection.
    pub handshake: Arc<Handshake>,
    /// The times and counts that bound the worker.
    pub limits: WorkerLimits,
    /// The maker of the clients' requests.
    pub maker: RequestMaker,
    /// The records of what the worker measures.
    pub reporter: WorkerReporter,
}

/// The destination of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Index of the server in the Plan.
    pub server: u32,
    /// Rank of the connection among those to its server, over all threads, from 0; it selects the source address.
    pub rank: u64,
    /// The transport of the connection's requests.
    pub transport: Transport,
}
