//! Agents on hosts of their own: network namespaces that are joined by veth pairs, as far as the machine allows them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::agent::Agent;
use crate::common::{Ended, Json, Process, Running, in_some_quiet_moment, until};
use tempfile::TempDir;

/// A network of hosts: the hub, where server and controller are, and others that are joined to it.
struct Network {
    tag: String,
    hosts: usize,
    folder: TempDir,
}

impl Network {
    /// A network with so many hosts beside the hub; `None`, with a word of why, where the machine gives none.
    fn of(hosts: usize, tag: &str) -> Option<Network> {
        let network = Network {
            // Names of interfaces have 15 characters at most.
            tag: format!("p{}{tag}", std::process::id() % 100_000),
            hosts: 0,
            folder: TempDir::new().expect("a temporary folder"),
        };
        match network.build(hosts) {
            Ok(network) => Some(network),
            Err(why) => {
                eprintln!("network namespaces are not tested: {why}");
                None
            }
        }
    }

    fn build(mut self, hosts: usize) -> Result<Network, String> {
        let hub = self.hub();
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link set lo up"))?;
        ip(&format!("-n {hub} link add br0 type bridge"))?;
        ip(&format!("-n {hub} addr add 10.77.0.1/24 dev br0"))?;
        ip(&format!("-n {hub} link set br0 up"))?;
        for host in 0..hosts {
            let name = self.host(host);
            ip(&format!("netns add {name}"))?;
            self.hosts = host + 1;
            ip(&format!("-n {hub} link add h{host} type veth peer name eth0 netns {name}"))?;
            ip(&format!("-n {hub} link set h{host} master br0 up"))?;
            ip(&format!("-n {name} addr add {}/24 dev eth0", address(host)))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        fs::write(self.token(), "a-word\n").expect("the token is written");
        Ok(self)
    }

    fn hub(&self) -> String {
        format!("{}hub", self.tag)
    }

    fn host(&self, host: usize) -> String {
        format!("{}h{host}", self.tag)
    }

    fn token(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// A command on a host, or on the hub.
    fn on(&self, host: Option<usize>, program: &str) -> Command {
        let name = host.map_or_else(|| self.hub(), |host| self.host(host));
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name, program]);
        command
    }

    fn agent(&self, host: usize) -> Agent {
        let mut command = self.on(Some(host), env!("CARGO_BIN_EXE_pummel"));
        command.args(["agent", "--listen", &format!("{}:5556", address(host)), "--token-file"]);
        command.arg(self.token());
        Agent::of(command)
    }

    fn agents(&self) -> Vec<Agent> {
        (0..self.hosts).map(|host| self.agent(host)).collect()
    }

    /// Addresses as `--agents` takes them.
    fn list(&self) -> String {
        (0..self.hosts).map(address).collect::<Vec<String>>().join(",")
    }

    /// A memcached on the hub; what it counted is asked for over a unix socket, which namespaces do not part.
    fn memcached(&self) -> Server {
        let mut command = self.on(None, "memcached");
        command.args(["-u", "root", "-l", "10.77.0.1", "-p", "11211", "-U", "0", "-t", "1", "-c", "2000"]);
        let child = command.stdin(Stdio::null()).spawn().expect("memcached starts");
        let server = Server { process: Process(child), hub: self.hub() };
        until("memcached answers", || server.stats());
        server
    }

    /// A controller on the hub.
    fn run(&self, words: &str) -> Running {
        let hub = self.hub();
        let token = self.token();
        let all = format!(
            "netns exec {hub} {} run -s 10.77.0.1:11211 --agents {} --agent-token-file {} --timeout 10s {words}",
            env!("CARGO_BIN_EXE_pummel"),
            self.list(),
            token.display()
        );
        let words: Vec<&str> = all.split(' ').collect();
        Running::start_program("ip", &words)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in (0..self.hosts).map(|host| self.host(host)).chain([self.hub()]) {
            // It was made, or the machine gives none.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

struct Server {
    #[expect(dead_code, reason = "ends with its guard")]
    process: Process,
    hub: String,
}

impl Server {
    /// Counters of the network, as name and number.
    fn stats(&self) -> Option<Vec<(String, u64)>> {
        // The shell speaks for us in the namespace.
        let script = "exec 3<>/dev/tcp/10.77.0.1/11211 && printf 'stats\\r\\nquit\\r\\n' >&3 && cat <&3";
        let output = Command::new("ip")
            .args(["netns", "exec", &self.hub, "bash", "-c", script])
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        });
        let stats: Vec<(String, u64)> = lines.collect();
        (!stats.is_empty()).then_some(stats)
    }

    fn get(&self, name: &str) -> u64 {
        let stats = self.stats().expect("memcached answers");
        stats.into_iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
    }
}

fn address(host: usize) -> String {
    format!("10.77.0.{}", host + 10)
}

fn ip(words: &str) -> Result<(), String> {
    let output =
        Command::new("ip").args(words.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[test]
fn eight_hosts_count_what_the_server_counts_and_begin_together() {
    let Some(network) = Network::of(8, "a") else { return };
    let server = network.memcached();
    let _agents = network.agents();
    let run: Ended = network.run("-c 16 -t 2s --mix get:8,set:1 --records 1k").end().expect(0);
    let json: Json = run.json();
    let of = |path: &str| json.count_or_none(&format!("whole_run/ops/{path}"));
    // Each member has made reads one at a time before the run, of records that are there.
    let alone = json.count("baseline/own/requests");
    assert_eq!(of("get/hits") + alone, server.get("get_hits"));
    assert_eq!(of("get/misses"), server.get("get_misses"));
    assert_eq!(of("set/completed"), server.get("cmd_set"));
    assert_eq!(json.at("agents/members").as_array().map(Vec::len), Some(8));
    // All clocks are those of one machine: what was measured of them is the error of measuring.
    for member in json.at("agents/members").as_array().expect("members") {
        let (offset, error) = (&member["clock_offset_us"], &member["clock_error_us"]);
        let (offset, error) = (offset.as_f64().expect("a number"), error.as_f64().expect("a number"));
        assert!(offset.abs() <= error + 100.0, "{offset} us, known to {error} us");
    }
    eprintln!("started within {} us", json.number("agents/start_spread_us"));
}

#[test]
fn a_host_that_is_cut_off_is_lost_within_3_s_and_the_others_go_on() {
    let Some(network) = Network::of(3, "b") else { return };
    let _server = network.memcached();
    let agents = network.agents();
    let link = |state: &str| ip(&format!("-n {} link set h1 {state}", network.hub())).expect("it is ours");
    let mut ended = None;
    // It is known after 2.5 s: on a machine that stands still for the half that is left, it is tried again.
    in_some_quiet_moment(|| {
        link("up");
        let mut run = network.run("-c 6 -t 8s --interval 100ms --agents-timeout 20s");
        (0..5).for_each(|_| run.wait_for_progress());
        link("down");
        let cut = Instant::now();
        run.wait_for("was lost");
        let took = cut.elapsed();
        ended = Some(run.end().expect(1));
        if took < Duration::from_secs(3) { Ok(()) } else { Err(format!("it was known after {took:?}")) }
    });
    let run = ended.expect("a run has ended");
    let json = run.json();
    assert_eq!(json.text("status"), "partial");
    assert!(json.text("reason").contains("agent 10.77.0.11:5556 was lost "), "{}", json.text("reason"));
    let members = json.at("agents/members").as_array().expect("members");
    let sum: u64 = members.iter().map(|member| member["completed"].as_u64().expect("a number")).sum();
    assert_eq!(json.count("totals/completed"), sum);
    assert!(members.iter().all(|member| member["completed"].as_u64() > Some(0)), "{members:?}");
    // The one that was cut off has noticed too, and is free when the cable is back.
    agents[1].wait_for("has gone silent");
    link("up");
    until("all agents are free", || {
        let run = network.run("-c 3 -n 30 --agents-timeout 20s").end();
        (run.status == 0).then_some(())
    });
}
