//! The lines on what ran: the servers, how long, the connections, the load, the requests and the records.

use std::collections::BTreeSet;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Depth, Group, KeyStyle, Mix, Plan, Popularity, Route, Spawns, TracePace, Transport, Work,
};
use pummel_measure::measurement::Status;
use pummel_measure::words::{counted, grouped};

use super::counts::is_load_plan;
use crate::document::{ClusterResult, Document};
use crate::text::{connections_words, rate_words};
use crate::view::cells::{plain, seconds};

/// Most groups of clients that are told one by one.
const GROUPS_SHOWN_MAX: usize = 3;

/// The lines: what was asked, then how.
pub(super) fn ran(document: &Document) -> Vec<Vec<String>> {
    let readings = document.evidence.iter().flat_map(|seen| &seen.servers);
    let readings = readings.filter_map(|server| server.reading.as_ref());
    // A server that died has no second reading, and said before the run what it is.
    let said = document.detected.as_deref().and_then(|said| said.split_once(", ")?.0.split_once(' '));
    let mut programs: Vec<_> =
        readings.map(|reading| (reading.software.as_str(), reading.version.as_str())).collect();
    if programs.is_empty() && document.plan.servers.len() == 1 {
        programs.extend(said);
    }
    let title = format!("pummel {}", document.tool.version);
    let cluster = document.cluster.as_ref().map(ClusterResult::words);
    let servers = servers(&document.plan, cluster, programs.into_iter());
    let mut lines = vec![vec![title, servers, measured(document)]];
    if document.tool.profile == "quick" {
        lines.push(vec![
            "profile quick, for a first look: figures of speed want the release build (make build)"
                .to_owned(),
        ]);
    }
    if !document.merged.is_empty() {
        lines.push(vec![format!("the sum of {} results", document.merged.len())]);
    }
    let agents = document.agents.as_ref().map_or(0, |agents| agents.members.len());
    lines.push(vec![load(&document.plan, agents)]);
    lines
}

/// The servers of a plan and what they speak, by the software and the version of each that said them; `cluster` is the
/// cluster that they are, where it is known.
pub(in crate::view) fn servers<'a>(
    plan: &Plan,
    cluster: Option<String>,
    programs: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let programs: BTreeSet<String> = programs
        .filter(|(software, _)| !software.is_empty())
        .map(|(software, version)| format!("{software} {version}"))
        .collect();
    servers_of(plan, cluster, &programs)
}

/// The servers of a plan and what they speak; `programs` are those of them with their versions.
pub(in crate::view) fn servers_of(
    plan: &Plan,
    cluster: Option<String>,
    programs: &BTreeSet<String>,
) -> String {
    // Servers of several programs or versions are not told by one of them.
    let software = programs.first().filter(|_| programs.len() == 1).cloned();
    let is_one = plan.servers.len() == 1;
    let protocol = Some(plan.protocol.name().to_owned()).filter(|_| is_one || software.is_none());
    let udp = (plan.transport == Transport::Udp).then(|| "UDP".to_owned());
    let tls = plan.tls.as_ref().map(|tls| match tls.insecure {
        true => "TLS, certificate not checked".to_owned(),
        false => "TLS".to_owned(),
    });
    let speaks: Vec<String> = [software, protocol, udp, tls].into_iter().flatten().collect();
    let names = match cluster {
        Some(cluster) => cluster,
        None if plan.route == Route::Cluster => format!("cluster at {}", names(&plan.servers)),
        None => names(&plan.servers),
    };
    format!("{names} ({})", speaks.join(", "))
}

/// The addresses: one, or how many there are with the first and the last.
fn names(servers: &[String]) -> String {
    match servers {
        [] => "no server".to_owned(),
        [one] => one.clone(),
        [first, .., last] => {
            let host = |address: &str| {
                address.rsplit_once(':').map(|(host, port)| (host.to_owned(), port.to_owned()))
            };
            let last = match (host(first), host(last)) {
                (Some((one, _)), Some((other, port))) if one == other => port,
                _ => last.clone(),
            };
            let between = if servers.len() == 2 { "and" } else { "to" };
            format!("{} servers, {first} {between} {last}", servers.len())
        }
    }
}

/// How long was measured, with the time that was asked for where the run ended before it.
pub(super) fn measured(document: &Document) -> String {
    let measured = seconds(document.seconds);
    let asked = document.plan.phases.iter().find(|phase| phase.recorded).and_then(|phase| phase.stop.time_ns);
    match asked {
        Some(asked_ns) if document.status != Status::Complete => {
            let asked_s = asked_ns as f64 / 1e9;
            if document.seconds < 0.99 * asked_s {
                format!("{measured} of {} s", plain(asked_s))
            } else {
                measured
            }
        }
        _ => measured,
    }
}

/// Connections, load, requests and records of a plan that so many agents carried out.
pub(in crate::view) fn load(plan: &Plan, agents: usize) -> String {
    let more = plan.groups.len().saturating_sub(GROUPS_SHOWN_MAX);
    let groups = plan.groups.iter().take(GROUPS_SHOWN_MAX).enumerate();
    let mut parts = vec![
        groups.map(|(index, group)| clients(plan, agents, (index, group))).collect::<Vec<_>>().join(" and "),
    ];
    if more > 0 {
        parts[0] += &format!(" and {more} more groups");
    }
    parts.extend(work(plan));
    if plan.trace().is_none() && !is_load_plan(plan) {
        parts.push(records(plan));
    }
    if is_load_plan(plan) {
        parts.push(format!("values {}", sizes(&plan.data.value_size)));
    }
    parts.join("; ")
}

/// What the recorded phases of a plan do.
pub(in crate::view) fn work(plan: &Plan) -> Vec<String> {
    let mut parts = Vec::new();
    for phase in plan.phases.iter().filter(|phase| phase.recorded) {
        match &phase.work {
            Work::Mix(mix) => parts.push(requests(plan, mix)),
            Work::Trace(replay) => {
                let pace = match replay.pace {
                    TracePace::Trace { speed: 1.0 } => "at its own pace".to_owned(),
                    TracePace::Trace { speed } => format!("at {} times its own pace", plain(speed)),
                    TracePace::Fast => "as fast as it is answered".to_owned(),
                    TracePace::Rate => "in its order".to_owned(),
                };
                parts.push(format!("the requests of {}, {pace}", replay.paths.join(", ")));
            }
            Work::Load(_) => {}
            Work::Delete(_) => parts.push("records are deleted".to_owned()),
            Work::Replay(_) => parts.push("recorded requests".to_owned()),
            Work::Window(_) => parts.push("windows of objects".to_owned()),
            Work::Pause(_) | Work::Audit(_) => {}
        }
    }
    parts
}

/// The clients of a group and their load.
fn clients(plan: &Plan, agents: usize, (index, group): (usize, &Group)) -> String {
    if let Some(churn) = &group.churn {
        let when = match &churn.spawns {
            Spawns::Closed => "as soon as there is room".to_owned(),
            Spawns::Open { rate, .. } => format!("{} a second", plain(*rate)),
            Spawns::Drawn(_) => "by drawn gaps".to_owned(),
        };
        let many = connections(plan, group);
        return format!("clients that come {when}, at most {many}, {} each", counted(churn.calls, "request"));
    }
    let mut words = from(plan, group, if index == 0 { agents } else { 0 });
    if group.arrivals != Arrivals::Closed || !is_load_plan(plan) {
        words += &format!(", {}", pace(plan, index, group));
    }
    // The threads are those of all groups together.
    if plan.engine.threads > 1 && index + 1 == plan.groups.len().min(GROUPS_SHOWN_MAX) {
        words += &format!(", {}", counted(u64::from(plan.engine.threads), "thread"));
    }
    words
}

/// The connections of a group.
fn connections(plan: &Plan, group: &Group) -> String {
    connections_words(plan, group)
}

/// The connections of a group with the agents that they are from, their depth and their route.
pub(in crate::view) fn from(plan: &Plan, group: &Group, agents: usize) -> String {
    let mut words = connections(plan, group);
    if agents > 1 {
        words += &format!(" from {agents} agents");
    }
    match group.depth {
        Depth::Limit(1) | Depth::Batch(1) => {}
        Depth::Limit(depth) => words += &format!(" of depth {}", grouped(u64::from(depth))),
        Depth::Batch(size) => words += &format!(" in batches of {}", grouped(u64::from(size))),
        Depth::Unlimited => words += " of unlimited depth",
    }
    if plan.route.lanes(plan.servers.len()) > 1 {
        words += match (plan.route, plan.cluster.read_from.asks_replicas()) {
            (Route::Cluster, false) => " to each master",
            (Route::Cluster, true) => " to each node",
            _ => " to each",
        };
    }
    // The servers are called a cluster already.
    if !matches!(plan.route, Route::All | Route::Cluster) {
        words += &format!(", {}", plan.route.name());
    }
    words
}

/// When a group sends, such as `closed loop`.
pub(in crate::view) fn pace(plan: &Plan, index: usize, group: &Group) -> String {
    match &group.arrivals {
        Arrivals::Closed => "closed loop".to_owned(),
        Arrivals::Poisson if plan.changes.is_nothing() && group.rate.is_some() => {
            format!("open loop at {}/s", plain(group.rate.unwrap_or_default()))
        }
        open => {
            let pace = match open {
                Arrivals::Poisson => String::new(),
                other => format!(", {other}"),
            };
            format!("open loop{}{pace}", rate_words(plan, index, group))
        }
    }
}

/// The operations of a mix.
fn requests(plan: &Plan, mix: &Mix) -> String {
    let weights = mix.weights();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let ops = weights.iter().map(|(verb, weight)| {
        let keys = if mix.multiget > 1 && verb.reads() {
            format!(" ({} keys each)", mix.multiget)
        } else {
            String::new()
        };
        format!("{} {} %{keys}", plan.name_of(*verb), plain(weight / total * 100.0))
    });
    let mut words = ops.collect::<Vec<_>>().join(", ");
    if mix.read_through_ns.is_some() {
        words += ", misses stored again";
    }
    if mix.noreply {
        words += ", writes without reply";
    }
    words
}

/// The records, with what differs from the usual ones.
pub(in crate::view) fn records(plan: &Plan) -> String {
    let mut words = counted(plan.data.records, "record");
    let popularity = plan.phases.iter().filter(|phase| phase.recorded).find_map(|phase| match &phase.work {
        Work::Mix(mix) => Some((&mix.popularity, &mix.popularity_of)),
        _ => None,
    });
    if let Some((popularity, of_verbs)) = popularity {
        if *popularity != Popularity::default() {
            words += &format!(", {}", short(&popularity.to_string()));
        }
        for (verb, own) in of_verbs {
            words += &format!(", {} {}", plan.name_of(*verb), short(&own.to_string()));
        }
    }
    let usual = pummel_logic::plan::Data::default();
    if plan.data.style.keys == KeyStyle::Unpadded {
        words += ", keys without zeros in front";
    } else if plan.data.key_size != usual.key_size {
        words += &format!(", keys {}", sizes(&plan.data.key_size));
    }
    if plan.data.value_size != usual.value_size || !plan.data.value_classes.is_empty() {
        words += &format!(", values {}", sizes(&plan.data.value_size));
    }
    words
}

/// The text of a distribution; where it is long, its name alone.
fn short(text: &str) -> &str {
    const LONG: usize = 40;
    match text.split_once(':') {
        Some((name, _)) if text.len() > LONG => name,
        _ => text,
    }
}

fn sizes(dist: &Dist) -> String {
    match dist {
        Dist::Fixed(bytes) if *bytes >= 1_024.0 && bytes % 1_024.0 == 0.0 => {
            format!("{} KiB", plain(bytes / 1_024.0))
        }
        Dist::Fixed(bytes) => format!("{} bytes", plain(*bytes)),
        other => format!("{} bytes", short(&other.to_string())),
    }
}
