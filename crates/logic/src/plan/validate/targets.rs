//! Checks that the servers can be named and reached as the Plan says: names, lanes, sockets, source addresses, TLS;
//! goals and labels.

use super::field::Field;
use super::invalid::{HOUR, Invalid, YEAR, refuse, refuse_if, span, within};
use crate::client::route::LANES_MAX;
use crate::cluster::nodes::NodeName;
use crate::plan::address::{self, PORT};
use crate::plan::{
    Backend, Clock, ClusterOptions, LABEL_ACCEPTED, LABELS_MAX, Labels, Plan, Route, Socket, Transport,
    is_label,
};
use crate::protocol::Refused;
use crate::protocol::handshake::Credentials;
use crate::time::MILLISECOND;

/// Refuses servers that are not in the form that Plans have.
pub fn servers(servers: &[String]) -> Result<(), Invalid> {
    refuse_if(servers.is_empty(), Field::Servers, "", "expected at least one server")?;
    addresses(servers, Field::Server)
}

/// Refuses addresses that are not in the form that Plans have; `field` is that of one of them.
fn addresses(servers: &[String], field: Field) -> Result<(), Invalid> {
    for (index, server) in servers.iter().enumerate() {
        let path = field.of(index);
        match address::server_at(server, PORT) {
            Ok(normal) if normal == *server => {}
            Ok(normal) => return refuse(path, server, format!("expected {normal}")),
            Err(error) => return refuse(path, server, error.to_string()),
        }
    }
    Ok(())
}

/// Most addresses at which servers are asked for their statistics.
const STATS_AT_MAX: usize = 1_024;

/// Refuses addresses for statistics where no statistics are asked for, more of them than a run may have, and one named twice.
pub fn server_stats_at(plan: &Plan) -> Result<(), Invalid> {
    let at = &plan.server_stats_at;
    addresses(at, Field::ServerStatsAddress)?;
    let path = Field::ServerStatsAt;
    let expected = "expected addresses where servers are asked for their statistics";
    refuse_if(!at.is_empty() && !plan.evidence, path, at.join(","), expected)?;
    if at.len() > STATS_AT_MAX {
        let given = format!("{} addresses", at.len());
        return refuse(path, given, format!("expected at most {STATS_AT_MAX} addresses"));
    }
    match at.iter().enumerate().find(|(index, address)| at[..*index].contains(address)) {
        Some((index, address)) => {
            refuse(Field::ServerStatsAddress.of(index), address, "each address is accepted once")
        }
        None => Ok(()),
    }
}

/// Refuses more servers than a client can have connections to.
pub fn lanes(plan: &Plan) -> Result<(), Invalid> {
    let (route, servers) = (plan.route, plan.servers.len());
    let expected = format!("expected at most {LANES_MAX} servers with --route {}", route.name());
    refuse_if(route.lanes(servers) > LANES_MAX, Field::Servers, format!("{servers} servers"), expected)
}

/// Most rewritten names of a cluster's nodes.
const REWRITES_MAX: usize = 16_384;

/// Refuses options of a cluster where the servers are none, and plans that a cluster cannot serve.
pub fn cluster(plan: &Plan) -> Result<(), Invalid> {
    let options = &plan.cluster;
    if plan.route != Route::Cluster {
        let own = ClusterOptions::default();
        let expected = "accepted only with --cluster";
        refuse_if(options.redirects != own.redirects, Field::Redirects, options.redirects, expected)?;
        refuse_if(options.by_ip, Field::ByIp, "", expected)?;
        refuse_if(!options.rewrite.is_empty(), Field::Rewrites, "", expected)?;
        refuse_if(options.refresh_ns.is_some(), Field::ClusterRefresh, "", expected)?;
        let read_from = options.read_from;
        return refuse_if(read_from != own.read_from, Field::ReadFrom, read_from.name(), expected);
    }
    within(Field::Redirects, options.redirects.into(), 0, REDIRECTS_MAX)?;
    if let Some(refresh_ns) = options.refresh_ns {
        span(Field::ClusterRefresh, refresh_ns, (100 * MILLISECOND, "100ms"), (HOUR, "1h"))?;
    }
    within(Field::Rewrites, options.rewrite.len() as u64, 0, REWRITES_MAX as u64)?;
    for (index, rewrite) in options.rewrite.iter().enumerate() {
        let is_name =
            |text: &str| NodeName::parse(text).is_some() || NodeName::parse(&format!("{text}:1")).is_some();
        let expected = "expected HOST or HOST:PORT";
        refuse_if(!is_name(&rewrite.from), Field::RewriteFrom.of(index), &rewrite.from, expected)?;
        refuse_if(!is_name(&rewrite.to), Field::RewriteTo.of(index), &rewrite.to, expected)?;
    }
    let refuse_route =
        |is_wrong: bool, expected: &str| refuse_if(is_wrong, Field::Route, "cluster", expected);
    refuse_route(!plan.protocol.is_resp(), "a cluster speaks RESP: resp2 or resp3")?;
    refuse_route(plan.transport == Transport::Udp, "a cluster is reached over TCP")?;
    refuse_route(!plan.reconnect, "a cluster's connections are opened again when they are lost")?;
    refuse_route(
        plan.servers.iter().any(|server| server.starts_with('/')),
        "the nodes of a cluster have addresses",
    )?;
    refuse_if(plan.database != 0, Field::Database, plan.database, "a cluster has database 0 alone")
}

/// Most times that a request may be sent again because a node named another one.
const REDIRECTS_MAX: u64 = 1_000;

/// Refuses goals that no result can meet.
pub fn goals(plan: &Plan) -> Result<(), Invalid> {
    for (index, goal) in plan.goals.iter().enumerate() {
        let (path, quantile) = (Field::GoalQuantile.of(index), goal.quantile);
        let expected = "expected a number above 0 and below 1";
        refuse_if(!(quantile > 0.0 && quantile < 1.0), path, quantile, expected)?;
        span(Field::GoalLimit.of(index), goal.limit_ns, (1, "1ns"), (YEAR, "8760h"))?;
    }
    Ok(())
}

/// Refuses labels that pages and metrics cannot have.
pub fn labels(labels: &Labels) -> Result<(), Invalid> {
    let expected = format!("expected up to {LABELS_MAX} labels");
    refuse_if(labels.len() > LABELS_MAX, Field::Labels, labels.len(), expected)?;
    match labels.iter().find(|(name, value)| !is_label(name, value)) {
        Some((name, value)) => refuse(Field::Labels, format!("{name}={value}"), LABEL_ACCEPTED),
        None => Ok(()),
    }
}

/// Refuses options that no kernel takes.
pub fn socket(socket: &Socket) -> Result<(), Invalid> {
    const LINGER_MAX_S: u64 = 65_535;
    const BUFFER_MAX: u64 = i32::MAX as u64;
    // Each server of the plan holds all of them.
    const SOURCES_MAX: u64 = 1_024;
    if let Some(linger_s) = socket.linger_s {
        within(Field::Linger, linger_s.into(), 0, LINGER_MAX_S)?;
    }
    if let Some(bytes) = socket.send_buffer {
        within(Field::SendBuffer, bytes.into(), 1, BUFFER_MAX)?;
    }
    if let Some(bytes) = socket.recv_buffer {
        within(Field::RecvBuffer, bytes.into(), 1, BUFFER_MAX)?;
    }
    within(Field::Sources, socket.source.len() as u64, 0, SOURCES_MAX)?;
    for (index, address) in socket.source.iter().enumerate() {
        if let Err(error) = address::sources(address) {
            return refuse(Field::Source.of(index), address, error.to_string());
        }
    }
    Ok(())
}

/// Refuses addresses to connect from where no server has an address.
pub fn source(plan: &Plan) -> Result<(), Invalid> {
    let source = &plan.socket.source;
    if source.is_empty() || plan.servers.iter().any(|server| !server.starts_with('/')) {
        return Ok(());
    }
    let expected = "expected addresses where a server is reached by one: unix sockets have none";
    refuse(Field::Sources, source.join(","), expected)
}

/// Most requests of which one is stamped when it leaves.
const STAMP_EVERY_MAX: u32 = 1_000_000;

/// Refuses transmit stamps that no socket of the plan has: those of unix sockets, those of runs without the kernel's
/// clock, and those of no request.
pub fn stamps(plan: &Plan) -> Result<(), Invalid> {
    let Some(sampling) = &plan.engine.stamps else { return Ok(()) };
    let why = if !(1..=STAMP_EVERY_MAX).contains(&sampling.every) {
        "expected one request in 1 to 1000000, such as tx:64"
    } else if plan.engine.clock == Clock::User {
        "expected the kernel's receive stamps with it (--clock kernel)"
    } else if sampling.hardware && plan.engine.backend == Backend::Uring {
        "expected epoll with stamps of the card (--backend epoll)"
    } else if plan.servers.iter().any(|server| server.starts_with('/')) {
        "expected servers with an address: unix sockets have no stamps"
    } else {
        return Ok(());
    };
    refuse(Field::Stamps, sampling, why)
}

/// Refuses a certificate without its key or a key without its certificate, and servers whose certificates have no name
/// to be for. The files of TLS are not read here, but where the Plan is run.
pub fn tls(plan: &Plan) -> Result<(), Invalid> {
    let Some(options) = &plan.tls else { return Ok(()) };
    match (&options.cert, &options.key) {
        (Some(cert), None) => {
            return refuse(Field::TlsCert, cert, "a certificate is accepted only with --tls-key");
        }
        (None, Some(key)) => {
            return refuse(Field::TlsKey, key, "a key is accepted only with --tls-cert");
        }
        _ => {}
    }
    let socket = plan.servers.iter().enumerate().find(|(_, server)| server.starts_with('/'));
    match socket.filter(|_| options.server_name.is_none()) {
        Some((index, socket)) => {
            let why = format!(
                "with --tls the unix socket {socket} is accepted only with --tls-server-name: a socket has no name \
                 that a certificate could be for"
            );
            refuse(Field::Server.of(index), socket, why)
        }
        None => Ok(()),
    }
}

/// Refuses a user that the protocol cannot name. The password is not part of the Plan; the check takes any.
pub fn login(plan: &Plan) -> Result<(), Invalid> {
    let Some(login) = &plan.login else { return Ok(()) };
    let asked = Credentials { user: login.user.as_bytes(), password: b"password" };
    match plan.protocol.handshake(Some(asked), plan.database) {
        Ok(_) => Ok(()),
        Err(Refused(why)) => refuse(Field::User, &login.user, why),
    }
}
