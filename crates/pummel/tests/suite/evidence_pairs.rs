//! Evidence, readings at intervals, transmit stamps and windows of time, each with every other feature of a run, over real
//! sockets: the simulation of hostile networks has no kernel that could be read.

use crate::common::agent::{Agent, list};
use crate::common::redis::Redis;
use crate::common::secured::Certificates;
use crate::common::{Json, Memcached, Place, Serve, in_some_quiet_moment, pummel};

/// Options of every run: readings at intervals.
const TAKEN: &str = "--server-stats=100ms --quiet --records 200";

/// Options for a stamp for every fourth request.
const STAMPED: &str = "--stamps tx:4";

/// A feature of a run.
struct Case {
    name: &'static str,
    words: String,
    /// Processes that send requests.
    processes: usize,
    /// Whether requests are stamped, which they cannot be where a server has a unix socket.
    is_stamped: bool,
}

impl Case {
    fn new(name: &'static str, words: String) -> Case {
        Case { name, words, processes: 1, is_stamped: true }
    }

    /// Fault in the result of this case, if there is one.
    fn fault_of(&self, result: &Json) -> Option<String> {
        let count = |path: &str| result.count(&format!("totals/{path}"));
        let parts = ["completed", "errors", "unfinished", "unsent"].map(count);
        if count("requests") == 0 || count("requests") != parts.iter().sum::<u64>() {
            return Some(format!("{} requests are not {parts:?}", count("requests")));
        }
        let length = |path: &str| result.0.pointer(path).and_then(|list| list.as_array()).map_or(0, Vec::len);
        if length("/evidence/machines") != self.processes || length("/machine") != self.processes {
            return Some(format!("{} machines were read", length("/evidence/machines")));
        }
        let unread = &result.0["evidence"]["servers"][0]["unread"];
        let intervals = length("/server_stats/0/intervals");
        if !unread.is_null() || intervals == 0 {
            return Some(format!("{intervals} intervals of the server, unread: {unread}"));
        }
        let stamped = result.0["transmit"]["out_us"]["count"].as_u64().unwrap_or(0);
        if self.is_stamped != (stamped > 0) {
            return Some(format!("{stamped} stamps: {}", result.0["transmit"]));
        }
        let windows = result.0["certainty"]["windows"].as_u64().unwrap_or(0);
        if windows < 5 {
            return Some(format!("{windows} windows of time: {}", result.0["certainty"]));
        }
        (result.text("status") != "complete").then(|| result.text("reason").to_owned())
    }
}

/// Checks these cases one after the other. A busy machine may take longer than a reading, or the first windows, are waited
/// for.
fn check(cases: &[Case]) {
    for case in cases {
        in_some_quiet_moment(|| {
            let stamps = if case.is_stamped { STAMPED } else { "" };
            let ended = pummel(&format!("run {} {TAKEN} {stamps}", case.words));
            let fault = case.fault_of(&ended.json());
            fault.map_or(Ok(()), |fault| Err(format!("{}: {fault}; {}", case.name, ended.errors)))
        });
    }
}

const PACED: &str = "-t 1200ms --rate 3000 -c 4";

#[test]
fn all_is_taken_where_connections_come_and_go() {
    let memcached = Memcached::start();
    let closing = Serve::start("--fault close-after=400");
    check(&[
        Case::new(
            "churn",
            format!("-s {} -t 1200ms --conn-rate 200 --calls-per-connection 10", memcached.name),
        ),
        Case::new("reconnect", format!("-s {} {PACED} --reconnect --no-load", closing.name)),
    ]);
}

#[test]
fn all_is_taken_by_agents_and_of_several_servers() {
    let servers = [Memcached::start(), Memcached::start()];
    let agents = Agent::many(2);
    let by_agents = format!("-s {} {PACED} --agents {}", servers[0].name, list(&agents));
    check(&[
        Case { processes: 2, ..Case::new("agents", by_agents) },
        Case::new("servers", format!("-s {},{} {PACED}", servers[0].name, servers[1].name)),
    ]);
}

#[test]
fn all_is_taken_over_every_transport_and_protocol() {
    let udp = Memcached::start_on(Place::Udp);
    let redis = Redis::start(&[]);
    let unix = Memcached::start_on(Place::Unix);
    let certificates = Certificates::make();
    let (_server, secured) = Memcached::start_tls(&certificates.cert(), &certificates.key());
    let secured = secured.replace("127.0.0.1", "localhost");
    let resp = format!("-s {} {PACED} --protocol resp3 --depth unlimited", redis.name());
    check(&[
        Case::new("udp", format!("-s {} --udp {PACED}", udp.name)),
        Case { is_stamped: false, ..Case::new("resp", resp) },
        Case::new("tls", format!("-s {secured} {PACED} --tls --tls-ca {}", certificates.ca())),
    ]);
    let refused = pummel(&format!("run -s {} {PACED} {TAKEN} {STAMPED}", unix.name)).expect(2);
    assert!(refused.errors.contains("unix sockets have no stamps"), "{}", refused.errors);
}

#[test]
fn all_is_taken_in_every_loop_and_phase() {
    let server = Memcached::start();
    let name = &server.name;
    check(&[
        Case::new("closed loop", format!("-s {name} -t 1200ms -c 4 -d 4 --mix get:1,set:1")),
        Case::new("warm-up", format!("-s {name} {PACED} --warmup 200ms --verify 1")),
    ]);
}
