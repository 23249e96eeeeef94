//! The stage of the commands of a page, on this machine: servers, agents and files, each made when a command names it first.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::commands::Typed;
use crate::common::agent::Agent;
use crate::common::redis::Redis;
use crate::common::secured::Certificates;
use crate::common::{Memcached, Place, Reserved, shell_status};

/// Options whose value says how long or how much, and the value that takes its place: pages show runs of a size that a
/// reader would choose, and a test has no time for them.
const SHORTER: [(&str, &str); 17] = [
    ("-t", "100ms"),
    ("--time", "100ms"),
    ("--warmup", "50ms"),
    ("--max-time", "2s"),
    ("--until", "p50:50%"),
    ("-n", "200"),
    ("--rate", "1k"),
    ("--rates", "500:1k:500"),
    ("--over", "connections:1:2"),
    ("--conn-rate", "100"),
    ("-c", "20"),
    ("--records", "500"),
    ("--repeat", "2"),
    ("--rounds", "1"),
    ("--pairs", "2"),
    ("--metrics", "127.0.0.1:0"),
    ("--metrics-linger", "10ms"),
];

/// Shorter values for the options of mutilate, memaslap and mcperf.
const SHORTER_COMPATIBLE: [(&str, &str, &str); 11] = [
    ("mutilate", "-t", "1"),
    ("mutilate", "-w", "1"),
    ("mutilate", "-q", "1000"),
    ("mutilate", "-r", "500"),
    ("mutilate", "-T", "1"),
    ("mutilate", "--scan", "500:1000:500"),
    ("memaslap", "-t", "1s"),
    ("memaslap", "-x", "500"),
    ("memaslap", "-P", "1k"),
    ("mcperf", "-n", "20"),
    ("mcperf", "-N", "5"),
];

/// Number of times that a command is tried whose run was partial.
const ATTEMPTS: usize = 3;

/// The password of the server that wants one; pages have it where readers write their own.
const PASSWORD: &str = "secret";

#[derive(Default)]
pub struct Stage {
    memcached: Vec<Memcached>,
    udp: Option<Memcached>,
    redis: Vec<Redis>,
    locked: Option<Redis>,
    secured: Option<(Certificates, Memcached, String)>,
    agents: Vec<Agent>,
}

/// One page: its folder, and the servers that its own commands started.
pub struct Scene<'a> {
    stage: &'a mut Stage,
    folder: TempDir,
    /// The address that the page has, and the server that listens elsewhere for it.
    started: Vec<(String, Agent)>,
    program_port: Reserved,
    agent_port: Reserved,
}

impl Stage {
    fn memcached(&mut self, index: usize) -> String {
        while self.memcached.len() <= index {
            self.memcached.push(Memcached::start());
        }
        self.memcached[index].name.clone()
    }

    fn redis(&mut self, index: usize) -> String {
        while self.redis.len() <= index {
            self.redis.push(Redis::start(&[]));
        }
        self.redis[index].name()
    }

    fn locked(&mut self) -> String {
        self.locked.get_or_insert_with(|| Redis::start(&["--requirepass", PASSWORD])).name()
    }

    fn udp(&mut self) -> String {
        self.udp.get_or_insert_with(|| Memcached::start_on(Place::Udp)).name.clone()
    }

    /// The authority's certificate, the server's plain address and that behind TLS, by the name that its certificate has.
    fn secured(&mut self) -> (String, String, String) {
        let (certificates, server, name) = self.secured.get_or_insert_with(|| {
            let certificates = Certificates::make();
            let (server, name) = Memcached::start_tls(&certificates.cert(), &certificates.key());
            (certificates, server, name.replace("127.0.0.1", "localhost"))
        });
        (certificates.ca(), server.name.clone(), name.clone())
    }

    fn agents(&mut self, count: usize) -> Vec<String> {
        while self.agents.len() < count {
            self.agents.push(Agent::start());
        }
        self.agents[..count].iter().map(|agent| agent.name.clone()).collect()
    }
}

impl<'a> Scene<'a> {
    pub fn new(stage: &'a mut Stage) -> Scene<'a> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("token"), "word\n").expect("it is written");
        fs::write(folder.path().join("users.csv"), "id,name,city\n1,Ada,Rome\n2,Bob,Oslo\n")
            .expect("it is written");
        let script = "return redis.call('INCRBY', KEYS[1], ARGV[1])\n";
        fs::write(folder.path().join("add.lua"), script).expect("it is written");
        fs::write(folder.path().join("password"), PASSWORD).expect("it is written");
        let as_root = if rustix::process::geteuid().is_root() { "-u root" } else { "" };
        let server = format!(
            "#!/bin/sh\nexec setpriv --pdeathsig KILL memcached {as_root} -l 127.0.0.1 -U 0 -t 1 \"$@\"\n"
        );
        let path = folder.path().join("server");
        fs::write(&path, server).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Scene {
            stage,
            folder,
            started: Vec::new(),
            program_port: Reserved::new(),
            agent_port: Reserved::new(),
        }
    }

    /// Follows a command, and says what is wrong with what came of it.
    pub fn follow(&mut self, typed: &Typed) -> Result<(), String> {
        let words = self.words(typed);
        if words.first().is_some_and(|word| word == "serve") || is_agent(&words) {
            return self.start(typed, &words);
        }
        self.make_results(&words)?;
        self.make_phases(&words, &typed.toml);
        self.make_suite(&words, &typed.toml);
        self.make_traces(&words);
        let mut failure = String::new();
        let is_of_mutilate = words.first().is_some_and(|word| word == "mutilate");
        let of_partial: &[i32] = if is_of_mutilate { &[1, 255] } else { &[1] };
        // On a busy machine a run may be partial, for instance because an agent stood still; not three times.
        for _ in 0..ATTEMPTS {
            let mut command = self.command(&words);
            command.envs(typed.variables.iter().map(|(name, value)| (name, value)));
            let output = command.output().map_err(|error| error.to_string())?;
            let status = shell_status(output.status);
            if allowed(&words).contains(&status) && (status == 0 || !output.stdout.is_empty()) {
                let written = typed
                    .to_file
                    .iter()
                    .try_for_each(|file| fs::write(self.folder.path().join(file), &output.stdout));
                return written.map_err(|error| error.to_string());
            }
            let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            let first = text.lines().next().unwrap_or_default();
            let end: Vec<&str> = errors.lines().rev().take(6).collect();
            failure = format!("'{}' ended with {status}: {first} {}", words.join(" "), end.join(" / "));
            if !of_partial.contains(&status) {
                break;
            }
        }
        Err(failure)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("timeout");
        command.arg("60").arg(env!("CARGO_BIN_EXE_pummel")).args(words);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("MEMCACHED_SERVERS");
        if let Some((certificates, ..)) = &self.stage.secured {
            command.env("SSL_CERT_FILE", certificates.ca());
        }
        command
    }

    /// Starts a server or an agent that waits until the page is at its end.
    fn start(&mut self, typed: &Typed, words: &[String]) -> Result<(), String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        let at =
            typed.words.iter().position(|word| word == "--listen").and_then(|at| typed.words.get(at + 1));
        command.args(words).current_dir(self.folder.path());
        if is_agent(words) && words[0] != "agent" {
            command.env("PUMMEL_AGENT_LISTEN", &self.agent_port.name);
        }
        self.started.push((at.cloned().unwrap_or_default(), Agent::of(command)));
        Ok(())
    }

    /// The words of a command, with what is here in place of what a page names, and shorter.
    fn words(&mut self, typed: &Typed) -> Vec<String> {
        let front = typed.program();
        let mut words = if front == "pummel" { Vec::new() } else { vec![front.to_owned()] };
        let is_native = !["mutilate", "memaslap", "memcaslap", "mcperf"].contains(&front);
        let mut rest = typed.words[1..].iter();
        while let Some(word) = rest.next() {
            let value_of = |name: &str| {
                let compatible =
                    SHORTER_COMPATIBLE.iter().find(|(tool, option, _)| (*tool, *option) == (front, name));
                let native = SHORTER.iter().find(|(option, _)| *option == name).filter(|_| is_native);
                compatible.map(|(.., value)| *value).or(native.map(|(_, value)| *value))
            };
            match word.as_str() {
                "-s" | "--server" | "--versus" => {
                    let servers =
                        self.servers(typed, rest.next().map(String::as_str).unwrap_or_default(), word);
                    words.extend(in_words_of(front, word, servers));
                }
                name if name == "--agents" || (front, name) == ("mutilate", "-a") => {
                    let before = words.iter().filter(|other| *other == word).count();
                    let agents = self.agents(before, rest.next().map(String::as_str).unwrap_or_default());
                    words.extend([word.clone(), agents]);
                }
                "--a-program" | "--b-program" | "--program" => {
                    rest.next();
                    let server = self.folder.path().join("server");
                    let program = format!("{} -p {}", server.display(), self.program_port.port());
                    words.extend([word.clone(), program]);
                }
                // That of a suite has no value.
                "--restart" if words.first().is_some_and(|word| word == "suite") => words.push(word.clone()),
                "--restart" => {
                    rest.next();
                    words.extend([word.clone(), "true".to_owned()]);
                }
                "--listen" => {
                    rest.next();
                    words.extend([word.clone(), "127.0.0.1:0".to_owned()]);
                }
                "--tls-ca" => {
                    rest.next();
                    words.extend([word.clone(), self.stage.secured().0]);
                }
                "--agent-token-file" | "--token-file" => {
                    rest.next();
                    words.extend([word.clone(), "token".to_owned()]);
                }
                "--stage" => {
                    let stages = rest.next().map(String::as_str).unwrap_or_default();
                    words.extend([word.clone(), shorter_stages(stages)]);
                }
                "--stage-connections" => {
                    let steps = rest.next().map(String::as_str).unwrap_or_default();
                    words.extend([word.clone(), shorter_steps(steps)]);
                }
                // A rate that changes is kept as it is written: the time is short.
                "--rate" if rest.clone().next().is_some_and(|rate| rate.contains(['.', ':'])) => {
                    words.push(word.clone());
                    words.extend(rest.next().cloned());
                }
                // Those of a fit are a file that it writes.
                "--rates" if words.first().is_some_and(|word| word == "fit") => words.push(word.clone()),
                name if value_of(name).is_some() => {
                    rest.next();
                    words.extend([word.clone(), value_of(name).unwrap_or_default().to_owned()]);
                }
                _ => words.push(word.replace("ca.pem", &self.ca_of(word))),
            }
        }
        words.extend(ends(front, &words));
        words.extend(patience(front, &words));
        words
    }

    /// The certificate's path where a word, such as the value of `--b`, names it inside of itself.
    fn ca_of(&mut self, word: &str) -> String {
        if word.contains("ca.pem") { self.stage.secured().0 } else { String::new() }
    }

    /// Servers that are here, in place of those that a page names.
    fn servers(&mut self, typed: &Typed, named: &str, option: &str) -> String {
        let all = typed.words.join(" ");
        let has = |word: &str| typed.words.iter().any(|other| other == word);
        let mut names: Vec<String> = Vec::new();
        for (index, name) in named.split(',').enumerate() {
            let index = if option == "--versus" { index + 1 } else { index };
            let started = self.started.iter().find(|(address, _)| address == name);
            names.push(if let Some((_, server)) = started {
                server.name.clone()
            } else if name.ends_with(":11400") {
                format!("127.0.0.1:{}", self.program_port.port())
            } else if has("--user") {
                self.stage.locked()
            } else if has("--tls") {
                self.stage.secured().2
            } else if all.contains("--tls") {
                // One side of `ab` alone.
                let (_, plain, secured) = self.stage.secured();
                if option == "--versus" { secured } else { plain }
            } else if name.contains("redis") || name.ends_with(":6379") {
                self.stage.redis(index)
            } else if has("--udp") || has("-U") {
                self.stage.udp()
            } else {
                self.stage.memcached(index)
            });
        }
        names.join(",")
    }

    /// Agents that are here, in place of machines: as many, but never more than three. So many were named before.
    fn agents(&mut self, before: usize, named: &str) -> String {
        let count = match named.strip_prefix("slurm://") {
            Some(count) => count.parse().unwrap_or(1),
            None => named.split(',').count(),
        };
        self.stage.agents(before + count.min(3)).split_off(before).join(",")
    }

    /// Makes the file of `--phases` from the block of the page that shows it, with short times.
    fn make_phases(&self, words: &[String], toml: &str) {
        let Some(at) = words.iter().position(|word| word == "--phases") else { return };
        let line = |line: &str| match line.split_once(" = ") {
            Some(("time", _)) => "time = \"50ms\"\n".to_owned(),
            Some(("at", _)) => "at = \"10ms\"\n".to_owned(),
            _ => format!("{line}\n"),
        };
        let file = words.get(at + 1).map(String::as_str).unwrap_or_default();
        fs::write(self.folder.path().join(file), toml.lines().map(line).collect::<String>())
            .expect("it is written");
    }

    /// Makes the file of a suite from the block of the page that shows it.
    fn make_suite(&self, words: &[String], toml: &str) {
        if let [command, file, ..] = words
            && command == "suite"
            && file.ends_with(".toml")
        {
            fs::write(self.folder.path().join(file), toml).expect("it is written");
        }
    }

    /// Makes the packed traces that a command reads: a second of requests as the public traces of Twitter have them.
    fn make_traces(&self, words: &[String]) {
        for name in
            words.iter().filter(|name| name.ends_with(".zst") && !self.folder.path().join(name).exists())
        {
            let row = |row: u32| format!("{},key{},6,100,{},get,0\n", row / 50, row % 20, row % 4);
            let rows: String = (0..100).map(row).collect();
            let packed = compress_to_vec(rows.as_bytes(), CompressionLevel::Fastest);
            fs::write(self.folder.path().join(name), packed).expect("it is written");
        }
    }

    /// Makes the stored results that a command reads and no command of the page has written.
    fn make_results(&mut self, words: &[String]) -> Result<(), String> {
        if !matches!(words.first().map(String::as_str), Some("show" | "report" | "compare" | "audit")) {
            return Ok(());
        }
        let is_result = |name: &&str| [".json", ".html", ".json.gz"].iter().any(|end| name.ends_with(end));
        // What is written is no result that is read.
        let read = words[1..].iter().take_while(|word| *word != "-o").flat_map(|word| word.split(','));
        let missing: Vec<&str> =
            read.filter(is_result).filter(|name| !self.folder.path().join(name).exists()).collect();
        for name in missing {
            let server = self.stage.memcached(0);
            let plain = name.trim_end_matches(".gz");
            let option = if name.ends_with(".html") { "--report" } else { "--json" };
            let is_of_suites = self.folder.path().join("tonight.json").exists();
            let line = match name.starts_with("ab") {
                false if is_of_suites => {
                    format!("suite memcached -s {server} -t 50ms --warmup 0 --timeout 10s --json {name}")
                }
                true => {
                    format!("ab -s {server} --versus {server} --pairs 2 -t 100ms --timeout 10s --json {name}")
                }
                false => format!("run -s {server} -n 500 --timeout 10s {option} {plain}"),
            };
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let output = self.command(&line).output().map_err(|error| error.to_string())?;
            let made = fs::read(self.folder.path().join(plain)).map_err(|error| {
                format!("{name} could not be made: {error}: {}", String::from_utf8_lossy(&output.stderr))
            })?;
            if plain != name {
                let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
                let packed = packed.write_all(&made).and_then(|()| packed.finish());
                fs::write(self.folder.path().join(name), packed.expect("memory takes it"))
                    .expect("it is written");
            }
        }
        Ok(())
    }
}

/// Stages `TIME:RATE,TIME,...` whose times are short; those of no length at all stay.
fn shorter_stages(stages: &str) -> String {
    let stage = |stage: &str| {
        let (time, rate) =
            stage.split_once(':').map_or((stage, String::new()), |(time, rate)| (time, format!(":{rate}")));
        format!("{}{rate}", if time.starts_with('0') { time } else { "20ms" })
    };
    stages.split(',').map(stage).collect::<Vec<String>>().join(",")
}

/// Steps of few connections, the last of which has a time where the typed one has one.
fn shorter_steps(steps: &str) -> String {
    let has_time = steps.rsplit(',').next().is_some_and(|last| last.contains(':'));
    format!("2:20ms,5:20ms,3{}", if has_time { ":20ms" } else { "" })
}

/// A server in the words of a front: mcperf's has its port apart, and takes one.
fn in_words_of(front: &str, option: &str, servers: String) -> Vec<String> {
    match (front, servers.rsplit_once(':')) {
        ("mcperf", Some((host, port))) => {
            vec![option.to_owned(), host.to_owned(), "-p".to_owned(), port.to_owned()]
        }
        _ => vec![option.to_owned(), servers],
    }
}

/// Words that end a run which would take its default time.
fn ends(front: &str, words: &[String]) -> Vec<String> {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    let command = words.first().map(String::as_str).unwrap_or_default();
    let added: &[&str] = match (front, command) {
        ("mutilate", _) if has(&["--loadonly", "-A"]) => &[],
        ("mutilate", _) if has(&["-t"]) => &["-N", "200"],
        ("mutilate", _) => &["-t", "1", "-N", "200"],
        ("memaslap", _) if !has(&["-t", "-x"]) => &["-x", "500"],
        ("pummel", "run")
            if has(&["-t", "-n", "--until", "--plan", "--phases", "--trace", "-h", "--help"])
                || has(&["--stage", "--stage-connections"]) =>
        {
            &[]
        }
        // Measuring clients run for a time.
        ("pummel", "run") if has(&["--measure-connections"]) => &["-t", "100ms"],
        ("pummel", "run") => &["-n", "200"],
        ("pummel", "suite") if !has(&["-t", "--print", "--list"]) => &["-t", "50ms", "--warmup", "0"],
        ("pummel", "search" | "scan" | "curve") if !has(&["-t"]) => &["-t", "100ms"],
        ("pummel", "ab") if !has(&["--pairs"]) => &["--pairs", "2"],
        _ => &[],
    };
    added.iter().map(|&word| word.to_owned()).collect()
}

/// A timeout that a busy machine keeps, for commands that send requests and name none.
fn patience(front: &str, words: &[String]) -> Vec<String> {
    let sends = ["run", "load", "search", "scan", "curve", "ab", "suite"];
    let is_one = front == "pummel" && words.first().is_some_and(|word| sends.contains(&word.as_str()));
    let has_one = words.iter().any(|word| word == "--timeout" || word == "--plan");
    if is_one && !has_one { vec!["--timeout".to_owned(), "10s".to_owned()] } else { Vec::new() }
}

fn is_agent(words: &[String]) -> bool {
    let first = words.first().map(String::as_str);
    let is_started = first == Some("agent") && words.iter().any(|word| word == "--listen");
    is_started || (first == Some("mutilate") && words.iter().any(|word| word == "-A"))
}

/// The exit statuses of a command that did what it says: in so short a time a goal may be missed or undecided, and two
/// pairs of runs show nothing. A wrong command line (2) is never among them.
fn allowed(words: &[String]) -> &'static [i32] {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    match words.first().map(String::as_str) {
        Some("ab" | "compare") if has(&["--worse", "--within"]) => &[0, 1, 3],
        Some("search") => &[0, 1, 3],
        // Runs of a busy machine are not as they are expected to be.
        Some("suite") => &[0, 3],
        // Something is found of so short runs.
        Some("audit") => &[0, 3],
        // A hundred rows are too few for a profile to come near.
        Some("fit") if has(&["--check"]) => &[0, 3],
        _ if has(&["--goal", "--until"]) => &[0, 3],
        _ => &[0],
    }
}
