//! The process of a server that runs on this machine: whether it is the server's, and the CPU time of its threads.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;

use pummel_measure::evidence::ThreadUse;
use pummel_measure::evidence::facts::Facts;
use pummel_measure::evidence::proc::{process_stat, socket_inode, tcp_listener, unix_listeners, uptime_fits};
use pummel_measure::evidence::provenance::memory_bytes;

use super::machine::thread_times;
use crate::resolve::Server;
use crate::sys::{self, Listener};

/// Most threads of a process that are read.
const THREADS_READ_MAX: usize = 4096;

/// Most descriptors of a process that are looked through for its listening socket.
const DESCRIPTORS_MAX: usize = 200_000;

/// The number of a server's process. The server reports the number in `facts`, and the process is checked: it holds the listening
/// socket, or, where its descriptors cannot be read, it has the age that the server reports and the name of a server program.
///
/// # Errors
/// Returns why the process cannot be believed to be the server's, as a sentence without its full stop.
pub fn process_of(server: &Server, facts: &Facts) -> Result<u32, String> {
    let pid = facts.number("pid").or_else(|| facts.number("process_id"));
    let pid = pid.and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 0);
    let Some(pid) = pid else { return Err("the server does not say which process it is".to_owned()) };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let stat =
        stat.map_err(|_| format!("the server says that it is process {pid}, which cannot be seen here"))?;
    let stat = process_stat(&stat).ok_or_else(|| format!("/proc/{pid}/stat has another form"))?;
    let uptime = facts.number("uptime").or_else(|| facts.number("uptime_in_seconds"));
    let fits = uptime.is_some_and(|uptime_s| {
        uptime_fits(stat.start_ticks, sys::ticks_per_second(), sys::since_boot_ns(), uptime_s)
    });
    match has_listener(server, pid) {
        Some(false) => {
            Err(format!("process {pid} on this machine does not hold the server's listening socket"))
        }
        Some(true) => Ok(pid),
        None if !fits => Err(format!(
            "the descriptors of process {pid} cannot be read, and its age is not the server's uptime"
        )),
        None if has_name_of_a_server(pid) => Ok(pid),
        None => Err(format!(
            "the descriptors of process {pid} cannot be read, and its name is not that of a known server program"
        )),
    }
}

/// Whether a process holds the socket on which a server listens; `None` where its descriptors may not be read.
fn has_listener(server: &Server, pid: u32) -> Option<bool> {
    let listeners = listeners_of(server, pid);
    if listeners.is_empty() && server.is_unix() {
        // The process may know its socket by another path.
        return None;
    }
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut inodes = descriptors.take(DESCRIPTORS_MAX).filter_map(|entry| {
        let target = fs::read_link(entry.ok()?.path()).ok()?;
        socket_inode(target.to_str()?)
    });
    Some(inodes.any(|inode| listeners.contains(&inode)))
}

/// The inodes of the sockets that listen on a server's addresses, in the process' network namespace.
fn listeners_of(server: &Server, pid: u32) -> Vec<u64> {
    if let Some(path) = server.unix_path() {
        let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).unwrap_or_default();
        return unix_listeners(&table, &path.to_string_lossy());
    }
    let listeners: Vec<_> = ["tcp", "tcp6"].into_iter().flat_map(|name| tcp_listeners(pid, name)).collect();
    let is_of_server = |port: u16| server.socket_addresses().iter().any(|address| address.port() == port);
    listeners.into_iter().filter(|(port, _)| is_of_server(*port)).map(|(_, inode)| inode).collect()
}

/// The ports and inodes of the listening sockets in a process' network namespace. The rest of the table is not read: it has a line
/// for each connection, closing ones included, and the kernel takes long to write 100,000 of them.
fn tcp_listeners(pid: u32, table: &str) -> Vec<(u16, u64)> {
    let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { return Vec::new() };
    let lines = BufReader::new(file).lines().skip(1).map_while(Result::ok);
    lines.map_while(|line| tcp_listener(&line)).collect()
}

/// The attempts to connect that the listening sockets of a server on this machine turned away until now; `None` where it has none
/// in this network namespace, or where the kernel does not report them.
pub fn listen_drops(server: &Server) -> Option<u64> {
    let mut found: Vec<Listener> = Vec::new();
    for place in addresses_of(server) {
        let is_of_server = |listener: &Listener| {
            listener.address.is_unspecified() || listener.address.to_canonical() == place.ip()
        };
        found.extend(sys::listening(place.port()).ok()?.into_iter().filter(is_of_server));
    }
    (!found.is_empty()).then(|| found.iter().map(|listener| u64::from(listener.dropped)).sum())
}

/// Whether a process has the name of a server program that reports its process number.
fn has_name_of_a_server(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["memcached", "redis-server", "valkey-server"].contains(&name.trim_end())
}

/// The times of a process' threads by their numbers; `None` where they cannot be listed.
pub fn threads_of(pid: u32) -> Option<BTreeMap<u32, ThreadUse>> {
    let process = pid.to_string();
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let threads = tasks.take(THREADS_READ_MAX).filter_map(|entry| {
        let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Some((number, thread_times(&process, number)?))
    });
    let threads: BTreeMap<u32, ThreadUse> = threads.collect();
    (!threads.is_empty()).then_some(threads)
}

/// The resident memory of a process in bytes; `None` where the kernel does not report it.
pub fn resident_bytes_of(pid: u32) -> Option<u64> {
    memory_bytes(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS")
}

/// The addresses of a server to which connections of the run go.
pub fn addresses_of(server: &Server) -> impl Iterator<Item = SocketAddr> {
    server
        .socket_addresses()
        .iter()
        .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
}
