//! The servers of a Plan as this machine reaches them, and the descriptors and cores that their connections need.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Plan, Transport, Wait, Work};
use pummel_logic::time::{Nanos, SECOND};

use super::error::RunError;
use super::inputs::Permit;
use crate::backend::waiting::Cores;
use crate::resolve::{self, ConnectError, Server, Sources};
use crate::sys;

/// Longest wait, in nanoseconds, for a server that is measured over UDP to take a TCP connection, over which it is then
/// loaded.
const LISTEN_MAX_NS: Nanos = SECOND;

/// Resolves the servers of a plan, each of which is loaded over the transport that `loading` returns.
pub(super) fn servers_of(
    plan: &Plan,
    permit: Option<&Permit>,
    loading: impl Fn(&Server) -> Transport,
) -> Result<Arc<[Server]>, RunError> {
    resolved(plan, &plan.servers, permit, loading)
}

/// Resolves the servers of a plan that are asked for their statistics; `servers` are those that get its load.
pub(super) fn servers_asked(
    plan: &Plan,
    servers: &Arc<[Server]>,
    permit: Option<&Permit>,
) -> Result<Arc<[Server]>, RunError> {
    if plan.server_stats_at.is_empty() {
        return Ok(Arc::clone(servers));
    }
    resolved(plan, &plan.server_stats_at, permit, |_| plan.transport)
}

fn resolved(
    plan: &Plan,
    names: &[String],
    permit: Option<&Permit>,
    loading: impl Fn(&Server) -> Transport,
) -> Result<Arc<[Server]>, RunError> {
    let sources = Sources::parse(&plan.socket.source).map_err(RunError::Connect)?;
    let resolve = |name: &String| {
        let server = Server::resolve(name, &sources).map_err(RunError::Connect)?;
        // The permission is asked for the resolved addresses, since a name may have others the next time.
        if let Some(permit) = permit {
            server
                .permitted(|address| permit(address))
                .map_err(|address| RunError::Forbidden { server: name.clone(), address })?;
        }
        let loading = loading(&server);
        Ok(server.loaded_by(loading))
    };
    names.iter().map(resolve).collect()
}

/// The transport over which a server is loaded: TCP where the server listens there, since TCP loses no requests.
pub(super) fn loading_of(plan: &Plan, server: &Server) -> Transport {
    let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
    let patience = Duration::from_nanos(plan.timeout_ns.min(LISTEN_MAX_NS));
    match plan.transport {
        Transport::Udp if loads && server.takes_streams(patience) => Transport::Stream,
        transport => transport,
    }
}

/// The way in which workers wait. Spinning needs a core for each worker that no server uses.
pub(super) fn wait_of(wait: Wait, threads: u32, servers: &[Server]) -> Wait {
    let cores = Cores {
        machine: sys::online_cpus(),
        // The cores that the affinity and the control group of this process allow.
        allowed: thread::available_parallelism().map_or(1, |cpus| cpus.get()),
        workers: threads as usize,
        servers: servers.iter().filter(|server| server.is_local()).count(),
    };
    cores.settle(wait)
}

/// Checks that requests may be sent to all servers of a plan. A run checks again the addresses that it uses.
///
/// # Errors
/// Returns [`RunError::Forbidden`] for the first server with an address that is not permitted, and
/// [`RunError::Connect`] when a name cannot be resolved.
pub fn permitted(plan: &Plan, permit: &Permit) -> Result<(), RunError> {
    let servers = servers_of(plan, Some(permit), |_| plan.transport)?;
    servers_asked(plan, &servers, Some(permit)).map(drop)
}

/// Makes sure that the connections of a process can be open here, and raises the soft limit of descriptors if
/// necessary.
///
/// # Errors
/// Returns [`ConnectError::Descriptors`] when the hard limit of descriptors is below what the process' connections
/// need. Clients that come and go need no descriptor beforehand, so a plan with them is never refused.
pub fn ensure_descriptors(plan: &Plan, share: &ProcessShare) -> Result<(), ConnectError> {
    let connections = share.clients() * plan.lanes() as u64;
    match plan.churning_group() {
        Some(_) => resolve::allow_descriptors(connections, share.threads),
        None => resolve::ensure_descriptors(connections, share.threads)?,
    }
    if plan.evidence {
        // Without these the side connections to servers fail, and nothing else does.
        resolve::allow_descriptors(connections + plan.servers_asked().len() as u64, share.threads);
    }
    Ok(())
}
