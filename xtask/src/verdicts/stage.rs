//! A scenario on its stage: its networks, its server, what disturbs it, and the runs against it.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::scenario::{Cpus, Disturbance, Load, Scenario, Server, Side};
use crate::bench::child::Child;
use crate::network::Network;
use crate::programs::said_by;

/// Time that a process may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Time that a run may take beyond its measured time.
const SLACK: Duration = Duration::from_secs(40);

/// Seconds that a question to a server or to a shell may take.
const ASK_LIMIT_S: &str = "5";

/// A program that never accepts a connection, with more clients than its queue has room for, again and again.
const FULL_LISTEN_QUEUE: &str = "
import socket, time
listening = socket.socket()
listening.bind(('127.0.0.1', 0))
listening.listen(1)
while True:
    clients = [socket.socket() for _ in range(50)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(listening.getsockname())
    time.sleep(0.1)
    for client in clients:
        client.close()
";

/// The programs and the CPUs of all scenarios.
pub struct Theatre {
    /// The program pummel.
    pub pummel: PathBuf,
    /// The CPU of the server, and that of the generator.
    pub cpus: [usize; 2],
    /// A directory for what is written.
    pub scratch: PathBuf,
    /// Moment from which no more runs are begun.
    pub ends: Instant,
}

/// A scenario that is set up; dropping it takes it down.
pub struct Stage<'a> {
    theatre: &'a Theatre,
    scenario: &'a Scenario,
    server: Child,
    /// Servers that were started in the place of the first.
    successors: RefCell<Vec<Child>>,
    port: u16,
    // Taken down after the processes in them.
    quota: Option<Quota>,
    network: Network,
}

impl Theatre {
    /// Whether the time is over in which runs are begun.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// Moves this process, and the threads that it starts, to the CPU of the server: relays on the generator's CPU
    /// would take CPU time from the generator, and a verdict would say so.
    pub fn stay_beside_server(&self) -> io::Result<()> {
        let words =
            ["--all-tasks", "--cpu-list", "--pid", &self.cpu(Side::Server).to_string()].map(str::to_owned);
        let own = std::process::id().to_string();
        said_by(Command::new("taskset").args(words).arg(own)).map(drop)
    }

    /// The CPUs on which a side runs, as `taskset` reads them.
    fn cpu_list(&self, side: Side, cpus: Cpus) -> String {
        match cpus {
            Cpus::Apart => self.cpu(side).to_string(),
            Cpus::One => self.cpu(Side::Server).to_string(),
            Cpus::Both => self.cpus.map(|cpu| cpu.to_string()).join(","),
        }
    }

    fn cpu(&self, side: Side) -> usize {
        match side {
            Side::Server => self.cpus[0],
            Side::Client => self.cpus[1],
        }
    }

    /// Starts a program in its place.
    fn start(&self, line: &[String], place: &Place<'_>, log: &str) -> io::Result<Child> {
        let mut words = place.words(self);
        words.extend_from_slice(line);
        let program = words.remove(0);
        Child::start(Path::new(&program), &words, self.cpu(place.side), &[], &self.scratch.join(log))
    }
}

/// Place where a program runs.
#[derive(Clone, Copy)]
struct Place<'a> {
    side: Side,
    cpus: Cpus,
    namespace: Option<&'a str>,
    quota: Option<&'a Quota>,
}

impl Place<'_> {
    /// The words before a command line that move it there; the CPU of its side is not among them.
    fn words(&self, theatre: &Theatre) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if let Some(quota) = self.quota.filter(|quota| quota.side == self.side) {
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", quota.directory.display());
            words.extend(["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]);
        }
        if let Some(name) = self.namespace {
            words.extend(["ip", "netns", "exec", name].map(str::to_owned));
        }
        if self.cpus != Cpus::Apart {
            let list = theatre.cpu_list(self.side, self.cpus);
            words.extend(["taskset".to_owned(), "--cpu-list".to_owned(), list]);
        }
        words
    }
}

impl<'a> Stage<'a> {
    /// Sets a scenario up.
    pub fn set(theatre: &'a Theatre, scenario: &'a Scenario) -> io::Result<Stage<'a>> {
        let network = Network::make(scenario.way)?;
        let quota = scenario.disturbances.iter().find_map(|disturbance| match disturbance {
            Disturbance::Quota(side, percent) => Some(Quota::make(*side, *percent)),
            _ => None,
        });
        let quota = quota.transpose()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        drop(listener);
        let line = server_line(theatre, &scenario.server, network.address(), port);
        let place = Place {
            side: Side::Server,
            cpus: scenario.cpus,
            namespace: network.server(),
            quota: quota.as_ref(),
        };
        let server = theatre.start(&line, &place, "server")?;
        let mut stage =
            Stage { theatre, scenario, quota, server, successors: RefCell::default(), port, network };
        stage.wait_for_server()?;
        Ok(stage)
    }

    /// Waits until a client of this program reaches the server: it may be in another namespace.
    fn wait_for_server(&mut self) -> io::Result<()> {
        let table = format!("/proc/{}/net/tcp", self.server.pid());
        let port = format!(":{:04X} ", self.port);
        // State 0A is that of a socket that listens.
        let listens = |line: &str| line.contains(&port) && line.contains(" 0A ");
        let look = || Ok(fs::read_to_string(&table).unwrap_or_default().lines().any(listens).then_some(()));
        if self.server.until(START_LIMIT, look)?.is_some() {
            return Ok(());
        }
        let said = fs::read_to_string(self.theatre.scratch.join("server.err")).unwrap_or_default();
        Err(io::Error::other(format!("the server does not listen: {}", said.trim())))
    }

    /// The place of a program that belongs to a side.
    fn place(&self, side: Side) -> Place<'_> {
        let namespace = match side {
            Side::Server => self.network.server(),
            Side::Client => self.network.client(),
        };
        Place { side, cpus: self.scenario.cpus, namespace, quota: self.quota.as_ref() }
    }

    /// Runs a script of a shell in the namespace of a side and returns its output, within some seconds.
    pub fn ask(&self, side: Side, script: &str) -> io::Result<String> {
        let place = Place { quota: None, ..self.place(side) };
        let mut words = place.words(self.theatre);
        words.extend(["timeout", ASK_LIMIT_S, "bash", "-c", script].map(str::to_owned));
        said_by(Command::new(&words[0]).args(&words[1..]))
    }

    /// Sends a line to the server on a connection of its own and returns the answer.
    pub fn ask_server(&self, line: &str) -> io::Result<String> {
        self.ask(Side::Client, &self.line_script(line))
    }

    /// A script that sends a line to the server and prints the answer, which ends with the connection.
    fn line_script(&self, line: &str) -> String {
        let (address, port) = (self.network.address(), self.port);
        format!("exec 3<>/dev/tcp/{address}/{port}; printf '{line}\\r\\nquit\\r\\n' >&3; cat <&3")
    }

    /// Scenario of the stage.
    pub fn scenario(&self) -> &Scenario {
        self.scenario
    }

    /// The number of the server's process.
    pub fn server_pid(&self) -> u32 {
        self.server.pid()
    }

    /// CPU time that the server has taken so far, in seconds.
    pub fn server_cpu_s(&self) -> io::Result<f64> {
        self.server.cpu_s()
    }

    /// Number of the port on which the server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file of a control group with a limit of CPU time.
    pub fn quota_file(&self, name: &str) -> io::Result<String> {
        let quota = self.quota.as_ref().ok_or_else(|| io::Error::other("there is no control group"))?;
        fs::read_to_string(quota.directory.join(name))
    }

    /// Runs a load of one process for `seconds`, and returns its result.
    pub fn run_words(&self, words: &str, seconds: f64) -> io::Result<Value> {
        self.run_by(words, &[], seconds)
    }

    /// Runs a load for `seconds`, and returns its result.
    pub fn run(&self, load: &Load, seconds: f64) -> io::Result<Value> {
        let agents = self.agents(load.agents)?;
        // Agents are read before they agree on an instant to begin at: that time has to be a small part of the run.
        let seconds = if agents.is_empty() { seconds } else { 3.0 * seconds };
        self.run_by(&load.words, &agents, seconds)
    }

    /// Runs a load for `seconds` by the command line that `line` makes of the program and of its words, and returns its result.
    /// `watch` is called with the number of the process that was started.
    pub fn run_as(
        &self,
        load: &str,
        seconds: f64,
        line: impl Fn(&str, &str) -> Vec<String>,
        watch: impl FnOnce(u32),
    ) -> io::Result<Value> {
        let words = self.words(load, seconds);
        let pummel = self.theatre.pummel.display().to_string();
        let place = Place { quota: None, ..self.place(Side::Client) };
        let run = self.theatre.start(&line(&pummel, &words), &place, "run")?;
        watch(run.pid());
        run.wait(SLACK + Duration::from_secs_f64(seconds))?;
        self.result(&words)
    }

    fn run_by(&self, load: &str, agents: &[(Child, String)], seconds: f64) -> io::Result<Value> {
        let mut words = self.words(&format!("--quiet {load}"), seconds);
        if !agents.is_empty() {
            let places: Vec<&str> = agents.iter().map(|(_, place)| place.as_str()).collect();
            words += &format!(" --agents {}", places.join(","));
        }
        let seldom = self.second_client(seconds)?;
        let run = self.pummel(Side::Client, &words, "run")?;
        let disturbers = self.disturb(run.pid(), agents)?;
        let ended = run.wait(SLACK + Duration::from_secs_f64(seconds));
        drop(disturbers);
        drop(seldom);
        // A process that was stopped may be so still.
        self.server.signal("CONT")?;
        ended?;
        self.result(&words)
    }

    /// The words of pummel for a load. The result of an earlier run is removed.
    fn words(&self, load: &str, seconds: f64) -> String {
        let _ = fs::remove_file(self.json());
        let (json, scenario) = (self.json(), &self.scenario.words);
        let server = format!("{}:{}", self.network.address(), self.port);
        format!(
            "run --time {:.0}ms --json {} {scenario} {load} --server {server}",
            seconds * 1e3,
            json.display()
        )
    }

    /// The result of the run with these words, which is over.
    fn result(&self, words: &str) -> io::Result<Value> {
        let text = fs::read_to_string(self.json()).map_err(|_| {
            let said = ["run.err", "run.out"].map(|file| self.theatre.scratch.join(file));
            let said = said.map(|file| fs::read_to_string(file).unwrap_or_default()).concat();
            io::Error::other(format!("pummel {words} left no result: {}", said.trim()))
        })?;
        Ok(serde_json::from_str(&text)?)
    }

    fn json(&self) -> PathBuf {
        self.theatre.scratch.join("run.json")
    }

    /// Starts pummel with these words.
    fn pummel(&self, side: Side, words: &str, log: &str) -> io::Result<Child> {
        let mut line = vec![self.theatre.pummel.display().to_string()];
        line.extend(words_of(words));
        // A second client runs beside the server, and reaches it as the first one does.
        let place = Place { namespace: self.network.client(), ..self.place(side) };
        self.theatre.start(&line, &place, log)
    }

    /// Agents on the CPU of the generator, with their places.
    fn agents(&self, count: usize) -> io::Result<Vec<(Child, String)>> {
        (0..count).map(|number| self.agent(&format!("agent-{number}"))).collect()
    }

    fn agent(&self, log: &str) -> io::Result<(Child, String)> {
        let pummel = self.theatre.pummel.display().to_string();
        let target = format!("{}/32", self.network.address());
        let line =
            [&pummel, "agent", "--listen", "127.0.0.1:0", "--allow-target", &target].map(str::to_owned);
        let mut child = self.theatre.start(&line, &self.place(Side::Client), log)?;
        let said = self.theatre.scratch.join(log).with_extension("out");
        let place = child.until(START_LIMIT, || {
            let text = fs::read_to_string(&said)?;
            let place = text.lines().find_map(|line| line.strip_prefix("listening on "));
            Ok(place.filter(|_| text.ends_with('\n')).map(str::to_owned))
        })?;
        Ok((child, place.ok_or_else(|| io::Error::other("an agent does not listen"))?))
    }

    /// The second client, which is there before the run and after it.
    fn second_client(&self, seconds: f64) -> io::Result<Option<Child>> {
        let words = self.scenario.disturbances.iter().find_map(|disturbance| match disturbance {
            Disturbance::SecondClient(words) => Some(words),
            _ => None,
        });
        let Some(words) = words else { return Ok(None) };
        let words = format!(
            "run --quiet --no-evidence --records 1k --time {:.0}ms {words} --server {}:{}",
            (seconds + 20.0) * 1e3,
            self.network.address(),
            self.port
        );
        self.pummel(Side::Server, &words, "second").map(Some)
    }

    /// Everything else that disturbs a run.
    fn disturb(&self, run: u32, agents: &[(Child, String)]) -> io::Result<Vec<Child>> {
        let clients: Vec<u32> = match agents {
            [] => vec![run],
            agents => agents.iter().map(|(child, _)| child.pid()).collect(),
        };
        let start = |side, script: String, log: &str| {
            let line = ["bash", "-c", &script].map(str::to_owned);
            self.theatre.start(&line, &Place { quota: None, ..self.place(side) }, log)
        };
        let pids_of = |side| match side {
            Side::Server => self.server.pid().to_string(),
            Side::Client => clients.iter().map(u32::to_string).collect::<Vec<String>>().join(" "),
        };
        let mut children = Vec::new();
        for disturbance in &self.scenario.disturbances {
            match disturbance {
                Disturbance::Busy(side) => {
                    children.push(start(*side, "while :; do :; done".to_owned(), "busy")?);
                }
                Disturbance::Bursts(side, stopped_ms, between_ms) => {
                    let pids = pids_of(*side);
                    let (stopped, between) = (seconds(*stopped_ms), seconds(*between_ms));
                    // The first pause is a long one: a run that cannot begin has no verdict.
                    let script = format!(
                        "sleep 0.4; while kill -STOP {pids}; do sleep {stopped}; kill -CONT {pids}; sleep {between}; done"
                    );
                    children.push(start(*side, script, "bursts")?);
                }
                Disturbance::Pause(side, at_ms, for_ms) => {
                    let pids = pids_of(*side);
                    let script = format!(
                        "sleep {}; kill -STOP {pids}; sleep {}; kill -CONT {pids}",
                        seconds(*at_ms),
                        seconds(*for_ms)
                    );
                    children.push(start(*side, script, "pause")?);
                }
                Disturbance::Line(at_ms, line) => {
                    let script = format!("sleep {}; {}", seconds(*at_ms), self.line_script(line));
                    children.push(start(Side::Client, script, "line")?);
                }
                Disturbance::Restart(at_ms, down_ms) => {
                    let (address, port) = (self.network.address(), self.port);
                    let line = server_line(self.theatre, &self.scenario.server, address, port);
                    let quoted: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
                    let script = format!(
                        "sleep {}; kill -KILL {}; sleep {}; exec {}",
                        seconds(*at_ms),
                        self.server.pid(),
                        seconds(*down_ms),
                        quoted.join(" ")
                    );
                    self.successors.borrow_mut().push(start(Side::Server, script, "server-anew")?);
                }
                Disturbance::FullListenQueue => {
                    let line = ["python3", "-c", FULL_LISTEN_QUEUE].map(str::to_owned);
                    let place = Place { quota: None, ..self.place(Side::Server) };
                    children.push(self.theatre.start(&line, &place, "queue")?);
                }
                Disturbance::Quota(..) | Disturbance::SecondClient(_) => {}
            }
        }
        Ok(children)
    }
}

/// Milliseconds as words of `sleep`.
fn seconds(milliseconds: u32) -> f64 {
    f64::from(milliseconds) / 1e3
}

/// The words of a command line: what stands in single quotes is one word with all that is next to it.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted, mut is_begun) = (vec![String::new()], false, false);
    for letter in line.chars() {
        match letter {
            '\'' => (is_quoted, is_begun) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if is_begun {
                    words.push(String::new());
                }
                is_begun = false;
            }
            letter => {
                words.last_mut().expect("there is a word from the beginning").push(letter);
                is_begun = true;
            }
        }
    }
    if !is_begun {
        words.pop();
    }
    words
}

/// The command line of a server that listens on this address.
fn server_line(theatre: &Theatre, server: &Server, address: &str, port: u16) -> Vec<String> {
    let words = match server {
        Server::Memcached(options) => format!("memcached -u root -l {address} -p {port} -U 0 {options}"),
        Server::Redis(options) => format!(
            "redis-server --bind {address} --port {port} --appendonly no --daemonize no --io-threads 1 \
             --protected-mode no --dir {} {options} --save",
            theatre.scratch.display()
        ),
        Server::BuiltIn(options) => {
            format!("{} serve --listen {address}:{port} {options}", theatre.pummel.display())
        }
    };
    let mut line: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    if matches!(server, Server::Redis(_)) {
        line.push(String::new());
    }
    line
}

/// A control group with a limit of CPU time; dropping it removes it.
struct Quota {
    side: Side,
    directory: PathBuf,
}

impl Quota {
    /// A control group of version 1 or 2, whichever has the CPU here, that leaves so many percent of one CPU.
    fn make(side: Side, percent: u32) -> io::Result<Quota> {
        const PERIOD_US: u32 = 20_000;
        let name = format!("pummel-verdicts-{}", std::process::id());
        let allowed_us = PERIOD_US * percent / 100;
        let refused = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("no control group with a limit of CPU can be made here: {error}"),
            )
        };
        let first = Path::new("/sys/fs/cgroup/cpu");
        if first.join("cpu.cfs_quota_us").exists() || first.join("cpu.shares").exists() {
            let directory = first.join(name);
            fs::create_dir(&directory).map_err(refused)?;
            let quota = Quota { side, directory };
            quota.write("cpu.cfs_period_us", &PERIOD_US.to_string()).map_err(refused)?;
            quota.write("cpu.cfs_quota_us", &allowed_us.to_string()).map_err(refused)?;
            return Ok(quota);
        }
        let directory = Path::new("/sys/fs/cgroup").join(name);
        fs::create_dir(&directory).map_err(refused)?;
        let quota = Quota { side, directory };
        quota.write("cpu.max", &format!("{allowed_us} {PERIOD_US}")).map_err(refused)?;
        Ok(quota)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.directory.join(file), text)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The processes of a stage that ended have left it; a group that is not empty cannot be removed.
        let _ = fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_quotes_are_one() {
        assert_eq!(
            words_of("run  -c 1 --command 'DEBUG SLEEP 0.1' ''"),
            ["run", "-c", "1", "--command", "DEBUG SLEEP 0.1", ""]
        );
        assert_eq!((words_of(""), words_of(" a ")), (Vec::<String>::new(), vec!["a".to_owned()]));
    }
}
