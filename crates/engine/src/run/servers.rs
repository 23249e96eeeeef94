//! The servers of a Plan as seen from this machine, and the file descriptors and cores that their connections need.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Plan, Route, Transport, Wait, Work};
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::{NEVER, Nanos, SECOND};

use super::error::{RunError, no_thread};
use super::inputs::Permit;
use crate::backend::waiting::Cores;
use crate::resolve::{self, ConnectError, Server, Sources};
use crate::side_connections::{SideConnections, SideEvent, SideOptions};
use crate::sys;

/// Longest wait, in nanoseconds, for servers that are measured over UDP to accept a TCP connection, which is then
/// used to load them. Each address gets an equal part of it, by the server with the most addresses.
const LISTEN_MAX_NS: Nanos = SECOND;

/// Interval at which a wait for the name service checks whether the run goes on.
const LOOK: Duration = Duration::from_millis(20);

/// Most threads of a process that wait for the name service at one time. An agent leaves one behind for each order that is
/// given up while its names are resolved.
const RESOLVING_MAX: u32 = 64;

/// Number of threads that wait for the name service.
static RESOLVING: AtomicU32 = AtomicU32::new(0);

/// A place among the threads that wait for the name service; it becomes free when dropped.
struct ResolvingPlace;

impl ResolvingPlace {
    fn take() -> Option<ResolvingPlace> {
        let add = |threads| (threads < RESOLVING_MAX).then_some(threads + 1);
        RESOLVING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| ResolvingPlace)
    }
}

impl Drop for ResolvingPlace {
    fn drop(&mut self) {
        RESOLVING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Resolves the servers of a plan that have these names, until `goes_on` returns false.
pub(super) fn resolved(
    plan: &Plan,
    names: &[String],
    permit: Option<&Permit>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Server>, RunError> {
    let sources = Sources::parse(&plan.socket.source).map_err(RunError::Connect)?;
    let permit = permit.cloned();
    let resolve = move |name: &str| {
        let server = Server::resolve(name, &sources).map_err(RunError::Connect)?;
        // The permission is asked for the resolved addresses, since a name may have others the next time.
        if let Some(permit) = &permit {
            server
                .permitted(|address| permit(address))
                .map_err(|address| RunError::Forbidden { server: name.to_owned(), address })?;
        }
        Ok(server)
    };
    resolve_each(names, resolve, goes_on)?.into_iter().collect()
}

/// Resolves names in order with `resolve`, up to the first error, until `goes_on` returns false. The name service cannot be interrupted, so
/// it is called on another thread, which is left behind if it does not answer.
///
/// # Errors
/// Returns [`RunError::Interrupted`] when `goes_on` returned false before all names were resolved, and [`RunError::Kernel`] when the
/// thread cannot be started, or [`RESOLVING_MAX`] threads wait for the name service already.
pub(super) fn resolve_each<E: Send + 'static>(
    names: &[String],
    resolve: impl Fn(&str) -> Result<Server, E> + Send + 'static,
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Result<Server, E>>, RunError> {
    let Some(place) = ResolvingPlace::take() else {
        let why = io::Error::other(format!(
            "{RESOLVING_MAX} earlier questions to the name service wait for answers"
        ));
        return Err(RunError::Kernel("the names of servers cannot be resolved", why));
    };
    let (found, answers) = mpsc::channel();
    let asked = names.to_vec();
    let ask = move || {
        let _place = place;
        for name in &asked {
            let server = resolve(name);
            let is_last = server.is_err();
            if found.send(server).is_err() || is_last {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("names".to_owned()).spawn(ask);
    thread.map_err(no_thread)?;
    let mut servers = Vec::with_capacity(names.len());
    loop {
        match answers.recv_timeout(LOOK) {
            Ok(server) => servers.push(server),
            Err(RecvTimeoutError::Timeout) if goes_on() => {}
            Err(RecvTimeoutError::Timeout) => return Err(RunError::Interrupted),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let ended_early = servers.last().is_some_and(Result::is_err);
    assert!(servers.len() == names.len() || ended_early, "the thread has asked for every name");
    Ok(servers)
}

/// Returns the servers with the transport over which each is loaded: TCP if the server accepts TCP connections, since
/// TCP loses no requests. All servers are asked at once, until `goes_on` returns false.
///
/// # Errors
/// Returns [`RunError::Interrupted`] when `goes_on` returned false before the servers had taken a connection or not, and
/// [`RunError::Kernel`] when none can be asked.
pub(super) fn with_loading(
    plan: &Plan,
    servers: Vec<Server>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Arc<[Server]>, RunError> {
    let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
    if !loads || plan.transport != Transport::Udp {
        return Ok(servers.into_iter().map(|server| server.loaded_by(plan.transport)).collect());
    }
    let servers: Arc<[Server]> = servers.into();
    let listening = listening_of(plan, &servers, goes_on)
        .map_err(|error| RunError::Kernel("the servers cannot be asked whether they listen on TCP", error))?
        .ok_or(RunError::Interrupted)?;
    let loading = |listens: bool| if listens { Transport::Stream } else { Transport::Udp };
    Ok(servers
        .iter()
        .zip(listening)
        .map(|(server, listens)| server.clone().loaded_by(loading(listens)))
        .collect())
}

/// Whether each of the servers accepts a TCP connection; `None` if `goes_on` returned false before that was known.
fn listening_of(
    plan: &Plan,
    servers: &Arc<[Server]>,
    goes_on: &dyn Fn() -> bool,
) -> io::Result<Option<Vec<bool>>> {
    resolve::allow_descriptors(servers.len() as u64, 1);
    let addresses = servers.iter().map(Server::addresses).max().unwrap_or(1) as Nanos;
    let options = SideOptions {
        socket: &plan.socket,
        tls: None,
        handshake: Arc::new(Handshake::none()),
        open_ns: plan.timeout_ns.min(LISTEN_MAX_NS) / addresses,
        received_bytes: 0,
    };
    let mut connections = SideConnections::new(Arc::clone(servers), options)?;
    let mut listening = vec![false; servers.len()];
    (0..servers.len()).for_each(|number| connections.dial(number));
    while (0..servers.len()).any(|number| !connections.is_closed(number)) {
        if !goes_on() {
            return Ok(None);
        }
        connections.wait(NEVER)?;
        while let Some((number, event)) = connections.poll() {
            if let SideEvent::Open = event {
                listening[number] = true;
                connections.close(number);
            }
        }
    }
    Ok(Some(listening))
}

/// The way in which workers wait. Spinning needs for each worker a core that no server uses.
pub(super) fn wait_of(wait: Wait, threads: u32, servers: &[Server]) -> Wait {
    let cores = Cores {
        machine: sys::online_cpus(),
        // The cores that the affinity and the control group of this process allow.
        allowed: thread::available_parallelism().map_or(1, |cpus| cpus.get()),
        workers: threads as usize,
        servers: servers.iter().filter(|server| server.is_local()).count(),
    };
    cores.resolve(wait)
}

/// Checks that requests may be sent to all servers of a plan, until `goes_on` returns false. The run itself checks
/// the addresses that it uses again.
///
/// # Errors
/// Returns [`RunError::Forbidden`] for the first server with an address that is not permitted, [`RunError::Connect`] when a
/// name cannot be resolved, and [`RunError::Interrupted`] when `goes_on` returned false before all names were resolved.
pub fn permitted(plan: &Plan, permit: &Permit, goes_on: &dyn Fn() -> bool) -> Result<(), RunError> {
    let names = [&plan.servers[..], &plan.server_stats_at].concat();
    resolved(plan, &names, Some(permit), goes_on).map(drop)
}

/// Makes sure that all connections of a process can be open, and raises the soft limit of file descriptors if
/// necessary.
///
/// # Errors
/// Returns [`ConnectError::Descriptors`] when the hard limit of descriptors is below what the process' connections
/// need. Clients that come and go need no descriptor beforehand, so a plan with them is never refused.
pub fn ensure_descriptors(plan: &Plan, share: &ProcessShare) -> Result<(), ConnectError> {
    let connections = share.clients() * plan.lanes() as u64;
    // Nodes that join a cluster may never come.
    let needed = match plan.route {
        Route::Cluster => share.clients() * plan.servers.len() as u64,
        _ => connections,
    };
    match plan.churning_group() {
        Some(_) => resolve::allow_descriptors(connections, share.threads),
        None => resolve::ensure_descriptors(needed, share.threads)?,
    }
    if needed < connections {
        resolve::allow_descriptors(connections, share.threads);
    }
    if plan.evidence {
        // Without these the side connections to servers fail, and nothing else does.
        resolve::allow_descriptors(connections + plan.servers_asked().len() as u64, share.threads);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use pummel_logic::plan::{Load, Phase, Stop};

    use super::*;

    #[test]
    fn no_name_is_asked_for_behind_one_that_is_refused() {
        let (asked, order) = mpsc::channel();
        let refuse = move |name: &str| {
            asked.send(name.to_owned()).unwrap();
            Err("refused")
        };
        let names = ["a:1", "b:1"].map(str::to_owned);
        let found = resolve_each(&names, refuse, &|| true).unwrap();
        assert!(matches!(found.as_slice(), [Err("refused")]));
        assert_eq!(order.iter().collect::<Vec<String>>(), ["a:1"]);
    }

    #[test]
    fn a_wish_to_end_ends_the_wait_for_a_name_service_that_does_not_answer() {
        let (end, over) = mpsc::channel::<()>();
        let silent = move |name: &str| {
            let _ = over.recv();
            Server::resolve(name, &Sources::default())
        };
        let names = ["127.0.0.1:1".to_owned()];
        assert!(matches!(resolve_each(&names, silent, &|| false), Err(RunError::Interrupted)));
        drop(end);
    }

    /// A listener whose queue of new connections is full, so that it leaves others without an answer, and the connections in the queue.
    fn silent_listener() -> (TcpListener, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
        let queue = std::iter::from_fn(connect).collect();
        (listener, queue)
    }

    #[test]
    fn servers_are_loaded_over_tcp_where_they_listen_and_all_are_asked_at_once() {
        let (silent, _queue) = silent_listener();
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
        let mut names = vec![name(&silent); 10];
        names.push(name(&open));
        let mut plan = Plan { transport: Transport::Udp, timeout_ns: SECOND, ..Plan::default() };
        plan.phases = vec![Phase {
            name: "load".to_owned(),
            work: Work::Load(Load::default()),
            stop: Stop::default(),
            recorded: false,
        }];
        let servers = resolved(&plan, &names, None, &|| true).unwrap();
        let began = Instant::now();
        let servers_by = |goes_on: &dyn Fn() -> bool| with_loading(&plan, servers.clone(), goes_on);
        let loading: Vec<Transport> = servers_by(&|| true).unwrap().iter().map(Server::loading).collect();
        // One after the other they take 10 s.
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
        assert_eq!(loading[..10], [Transport::Udp; 10]);
        assert_eq!(loading[10], Transport::Stream);
        assert!(matches!(servers_by(&|| false), Err(RunError::Interrupted)));
    }
}
