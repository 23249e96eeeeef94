//! Agents that are spoken to by peers that want no run.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::agent::Agent;
use crate::common::{Memcached, PATIENCE, Running, pummel, until};
use pummel_tool::job::provenance::PROGRAM;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

/// Bytes that every connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A SETTINGS frame without settings.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The first bytes of a record of TLS, which say that 512 bytes follow.
const TLS_HALF: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];

/// Time for which a peer may say nothing useful, and what a busy machine adds to it.
const SILENCE_MAX: Duration = Duration::from_secs(3);
const SLACK: Duration = Duration::from_secs(2);

fn speak(agent: &Agent, words: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&agent.name).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    // It may have been dropped already for a newer one.
    let _ = stream.write_all(words);
    stream
}

/// Waits until the agent has closed the connection.
fn wait_for_end(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the agent keeps the connection: {error}"),
        }
    }
}

#[test]
fn a_peer_that_says_nothing_useful_is_dropped_in_3_s() {
    let agent = Agent::start();
    for words in
        [&b""[..], b"PRI * ", PREFACE, &[PREFACE, SETTINGS].concat(), &[PREFACE, &[0, 0, 8]].concat()]
    {
        let began = Instant::now();
        wait_for_end(speak(&agent, words));
        let took = began.elapsed();
        assert!(took < SILENCE_MAX + SLACK, "{words:?}: {took:?}");
    }
}

#[test]
fn pings_are_nothing_useful() {
    let agent = Agent::start();
    let mut stream = speak(&agent, &[PREFACE, SETTINGS].concat());
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let began = Instant::now();
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout can be set");
    let mut bytes = [0; 4096];
    while stream.write_all(&ping).is_ok() {
        if matches!(stream.read(&mut bytes), Ok(0)) {
            break;
        }
        assert!(began.elapsed() < SILENCE_MAX + SLACK, "it is kept by pings");
    }
}

/// The certificates of an agent and of its controller.
struct Identities(TempDir);

impl Identities {
    fn make() -> Identities {
        let folder = TempDir::new().expect("a folder");
        let made = Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["agent", "cert", "--directory", folder.path().to_str().expect("UTF-8")])
            .output()
            .expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Identities(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    /// The options of an agent.
    fn of_agent(&self) -> Vec<String> {
        [("--tls-cert", "agent.pem"), ("--tls-key", "agent.key"), ("--tls-ca", "ca.pem")]
            .map(|(flag, file)| [flag.to_owned(), self.path(file)])
            .concat()
    }

    /// The options of a controller.
    fn of_controller(&self) -> String {
        format!(
            "--agent-tls-ca {} --agent-tls-cert {} --agent-tls-key {}",
            self.path("ca.pem"),
            self.path("controller.pem"),
            self.path("controller.key")
        )
    }

    /// TLS settings of a peer that speaks as a controller does.
    fn of_peer(&self) -> Arc<ClientConfig> {
        let mut authorities = RootCertStore::empty();
        for authority in CertificateDer::pem_file_iter(self.path("ca.pem")).expect("certificates") {
            authorities.add(authority.expect("a certificate")).expect("an authority");
        }
        let chain = CertificateDer::pem_file_iter(self.path("controller.pem")).expect("certificates");
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(self.path("controller.key")).expect("a key");
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("there are versions")
                .with_root_certificates(authorities)
                .with_client_auth_cert(chain, key)
                .expect("they belong together");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }
}

#[test]
fn silent_peers_hold_no_place() {
    let identities = Identities::make();
    let server = Memcached::start();
    let plain = Agent::start();
    let of_agent = identities.of_agent();
    let secured = Agent::start_with(&of_agent.iter().map(String::as_str).collect::<Vec<&str>>());
    let shown = identities.of_controller();
    let said = [PREFACE, SETTINGS].concat();
    for (agent, words, options) in [
        (&plain, &b""[..], ""),
        (&plain, PREFACE, ""),
        (&plain, &said, ""),
        (&secured, TLS_HALF, &shown),
        (&secured, b"", &shown),
    ] {
        let _silent: Vec<TcpStream> = (0..200).map(|_| speak(agent, words)).collect();
        pummel(&format!("run -s {} -c 2 -n 50 --agents {} {options}", server.name, agent.name)).expect(0);
    }
}

#[test]
fn silent_peers_do_not_end_a_run() {
    let server = Memcached::start();
    let agent = Agent::start();
    let words = format!("run -s {} -c 2 -t 5s --interval 100ms --agents {}", server.name, agent.name);
    let mut run = Running::start(&words);
    run.wait_for_progress();
    let mut silent = Vec::new();
    for words in [&b""[..], PREFACE, &[PREFACE, SETTINGS].concat()] {
        silent.extend((0..200).map(|_| speak(&agent, words)));
    }
    let run = run.end().expect(0);
    assert_eq!(run.json().text("status"), "complete");
}

/// The frames of a question for health. The service is not asked for by name.
fn health() -> Vec<u8> {
    [call(1, "/grpc.health.v1.Health/Check"), last_data(1, &[])].concat()
}

/// Waits until the agent has said these bytes.
fn hear(stream: &mut impl Read, words: &[u8]) {
    let (mut heard, mut bytes) = (Vec::new(), [0; 1024]);
    while !heard.windows(words.len()).any(|window| window == words) {
        let read = stream.read(&mut bytes).expect("the agent answers");
        assert!(read > 0, "it hung up: {}", heard.escape_ascii());
        heard.extend_from_slice(&bytes[..read]);
    }
}

#[test]
fn a_slow_controller_comes_in_beside_peers_that_only_ask_for_health() {
    // A message of gRPC with the status `SERVING`.
    const SERVING: [u8; 7] = [0, 0, 0, 0, 2, 8, 1];
    let said = [PREFACE, SETTINGS].concat();
    let hello = [headers(1, "Hello"), last_data(1, &varint_field(1, protocol()))].concat();
    until("a controller that is slow and in time", || {
        let agent = Agent::start();
        let check = || {
            let mut stream = speak(&agent, &[&said[..], &health()].concat());
            hear(&mut stream, &SERVING);
            stream
        };
        let _first: Vec<TcpStream> = (0..63).map(|_| check()).collect();
        let began = Instant::now();
        let mut slow = speak(&agent, b"PRI * ");
        let _more: Vec<TcpStream> = (0..20).map(|_| check()).collect();
        let written = slow.write_all(&[&said[b"PRI * ".len()..], &hello].concat());
        // On a machine so busy that the agent may have had enough of its silence, once more.
        if began.elapsed() > SILENCE_MAX / 3 * 2 {
            return None;
        }
        written.expect("its place is kept");
        hear(&mut slow, &build());
        Some(())
    });
}

#[test]
fn a_phase_that_is_far_ahead_does_not_keep_the_agent_from_another_controller() {
    let server = Memcached::start();
    let agent = Agent::start();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let order = order(&format!("-s {} -n 20", server.name), false);
    let commands = [field(1, &order), field(3, &[]), go(0, now_ns + 9_500_000_000)];
    let mut words = [PREFACE, SETTINGS, &headers(1, "Run")].concat();
    words.extend(commands.iter().flat_map(|command| data(1, command)));
    let began = Instant::now();
    let stream = speak(&agent, &words);
    until("the agent is held", || {
        let run = pummel(&format!("run -s {} -c 2 -n 20 --agents {}", server.name, agent.name));
        run.errors.contains("held by").then_some(())
    });
    drop(stream);
    wait_until_it_serves(&agent, &server);
    let phase_ns = Duration::from_nanos(9_500_000_000);
    assert!(began.elapsed() < phase_ns, "it was held until the phase began: {:?}", began.elapsed());
}

#[test]
fn more_phases_than_a_plan_has_cannot_be_begun() {
    let server = Memcached::start();
    let agent = Agent::start();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let soon_ns = (now.tv_sec as u64 + 9) * 1_000_000_000;
    let order = order(&format!("-s {} -n 20", server.name), false);
    let mut words = [PREFACE, SETTINGS, &headers(1, "Run")].concat();
    let commands = [field(1, &order), field(3, &[])].into_iter();
    let commands = commands.chain((0..100).map(|phase| go(phase, soon_ns)));
    words.extend(commands.flat_map(|command| data(1, &command)));
    let _open = speak(&agent, &words);
    agent.wait_for("it begins more phases than its plan has");
    wait_until_it_serves(&agent, &server);
}

#[test]
fn a_recording_counts_with_its_requests_before_anything_begins() {
    let server = Memcached::start();
    let folder = TempDir::new().expect("a folder");
    let directory = folder.path().to_str().expect("UTF-8");
    let agent = Agent::start_with(&["--max-memory", "200m", "--allow-file", directory]);
    let path = |name: &str| format!("{directory}/{name}");
    let prefix = format!(" --prefix={}", "p".repeat(200));
    // Each line is short, and each request has the prefix: 4 MB of lines are more than 200 MB of requests.
    fs::write(path("prefixed"), "k,1\n".repeat(1_000_000)).expect("written");
    let packed = ruzstd::encoding::compress_to_vec(
        "a-key-of-a-recording,1\n".repeat(6_000_000).as_bytes(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    fs::write(path("packed.zst"), packed).expect("written");
    fs::write(path("good"), "k,1\n".repeat(1_000)).expect("written");
    let replay = |name: &str, options: &str| {
        let plan = path("plan.json");
        let words = format!("--noload -r 10 --read_file {}{options} --plan {plan}", path(name));
        pummel(&format!("explain mutilate -s {} {words}", server.name)).expect(0);
        pummel(&format!("run --plan {plan} --agents {}", agent.name))
    };
    for (name, options) in [("prefixed", prefix.as_str()), ("packed.zst", "")] {
        let run = replay(name, options).expect(1);
        assert!(run.errors.contains("--max-memory"), "{name}: {}", run.errors);
    }
    assert_eq!(server.connect().stats().get("cmd_get"), 0);
    replay("good", "").expect(0);
}

#[test]
fn a_plan_that_asks_for_too_much_is_refused_with_the_option_before_anything_begins() {
    let server = Memcached::start();
    let agent = Agent::start_with(&["--max-memory", "512m", "--max-connections", "20"]);
    for (options, words) in [
        ("-c 21 -n 50", "21 connections are asked for, and it opens up to 20 (--max-connections)"),
        ("-c 10 --depth 1m -n 50", "--max-memory"),
    ] {
        let run = pummel(&format!("run -s {} {options} --agents {}", server.name, agent.name)).expect(1);
        assert!(run.errors.contains(&format!("agent {}", agent.name)), "{options}: {}", run.errors);
        assert!(run.errors.contains(words), "{options}: {}", run.errors);
        agent.wait_for(words);
    }
    let mut talk = server.connect();
    assert_eq!(talk.stats().get("cmd_set") + talk.stats().get("cmd_get"), 0);
    pummel(&format!("run -s {} -c 20 -n 50 --agents {}", server.name, agent.name)).expect(0);
}

#[test]
fn a_controller_that_takes_no_events_does_not_keep_the_agent() {
    let server = Memcached::start();
    let agent = Agent::start();
    // The peer is to send nothing on its streams: SETTINGS_INITIAL_WINDOW_SIZE is 0.
    let no_window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let mut words = [PREFACE, &no_window, &headers(1, "Run")].concat();
    let order = order(&format!("-s {} -t 60s --interval 10ms", server.name), true);
    let commands = [field(1, &order), field(3, &[]), go(0, now_ns), go(1, now_ns)];
    words.extend(commands.iter().flat_map(|command| data(1, command)));
    let began = Instant::now();
    let stream = speak(&agent, &words);
    until("the run goes on", || (server.connect().stats().get("cmd_get") > 100).then_some(()));
    until("the agent serves a run", || {
        let run = pummel(&format!("run -s {} -c 2 -n 20 --agents {}", server.name, agent.name));
        (run.status == 0).then_some(())
    });
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "it was held for {took:?}");
    wait_for_end(stream);
}

#[test]
fn a_phase_that_begins_in_a_year_does_not_keep_the_agent() {
    let server = Memcached::start();
    let agent = Agent::start();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let in_a_year_ns = (now.tv_sec as u64 + 365 * 24 * 3_600) * 1_000_000_000;
    let order = order(&format!("-s {} -n 20", server.name), false);
    let commands = [field(1, &order), field(3, &[]), go(0, in_a_year_ns)];
    let mut words = [PREFACE, SETTINGS, &headers(1, "Run")].concat();
    words.extend(commands.iter().flat_map(|command| data(1, command)));
    let began = Instant::now();
    let _open = speak(&agent, &words);
    agent.wait_for("10 s ahead");
    wait_until_it_serves(&agent, &server);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "it was held for {took:?}");
}

/// Iterations of the fuzzer, unless `PUMMEL_FUZZ_SECONDS` says for how long it runs.
const ITERATIONS: u64 = 1_000;

/// After so many iterations, the agent has to serve a run.
const ITERATIONS_PER_RUN: u64 = 500;

/// Connections that the fuzzer leaves open.
const LEFT_OPEN: usize = 100;

/// Iterations of the fuzzer over TLS, unless `PUMMEL_FUZZ_SECONDS` says for how long it runs.
const TLS_ITERATIONS: u64 = 200;

/// Time for which the fuzzer waits for an answer.
const SHORT: Duration = Duration::from_millis(1);

/// The most memory that a fuzzed agent may take; plans beyond half of it are refused.
const MEMORY_MAX_BYTES: u64 = 512 << 20;

#[test]
fn an_agent_serves_after_random_and_mutated_bytes() {
    let server = Memcached::start();
    let agent = Agent::start_with(&["--max-memory", "256m", "--allow-target", "127.0.0.1"]);
    Fuzzed { agent, server, options: String::new(), tls: None }.fuzz(ITERATIONS);
}

#[test]
fn an_agent_with_tls_serves_after_random_and_mutated_bytes() {
    let identities = Identities::make();
    let server = Memcached::start();
    let mut args = identities.of_agent();
    args.extend(["--max-memory", "256m", "--allow-target", "127.0.0.1"].map(str::to_owned));
    let agent = Agent::start_with(&args.iter().map(String::as_str).collect::<Vec<&str>>());
    let options = identities.of_controller();
    Fuzzed { agent, server, options, tls: Some(identities.of_peer()) }.fuzz(TLS_ITERATIONS);
}

/// A connection to an agent, encrypted or not.
trait Line: Read + Write {}

impl<T: Read + Write> Line for T {}

/// An agent that is spoken to by the fuzzer.
struct Fuzzed {
    agent: Agent,
    server: Memcached,
    /// Options of a controller that the agent serves.
    options: String,
    /// TLS settings of the fuzzer, where the agent wants TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Fuzzed {
    fn fuzz(&self, iterations_max: u64) {
        let seconds: Option<u64> =
            std::env::var("PUMMEL_FUZZ_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
        let seed = std::env::var("PUMMEL_FUZZ_SEED").map_or(1, |text| text.parse().expect("a number"));
        let conversations = conversations(&self.server.name);
        self.assert_is_accepted(&conversations[ORDER]);
        let mut chance = Chance(seed);
        let mut open = VecDeque::new();
        let (began, mut iterations) = (Instant::now(), 0);
        while seconds
            .map_or(iterations < iterations_max, |seconds| began.elapsed() < Duration::from_secs(seconds))
        {
            open.extend(self.converse(&conversations, &mut chance));
            if open.len() > LEFT_OPEN {
                open.pop_front();
            }
            iterations += 1;
            if iterations % ITERATIONS_PER_RUN == 0 {
                serves(&self.agent, &self.server, &self.options);
            }
        }
        drop(open);
        serves(&self.agent, &self.server, &self.options);
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.agent.process.0.id())).expect("it lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
        let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        eprintln!("{iterations} iterations in {:?}, {peak_kb} kB of memory", began.elapsed());
        assert!(peak_kb * 1_024 < MEMORY_MAX_BYTES, "{peak_kb} kB");
    }

    /// Makes sure that the agent accepts an order as it is before it is changed: the fuzzer would change nothing else.
    fn assert_is_accepted(&self, frames: &[Vec<u8>]) {
        // A message of gRPC with the event `accepted`.
        const ACCEPTED: [u8; 7] = [0, 0, 0, 0, 2, 0x12, 0];
        let mut line = self.dial(PATIENCE).expect("the agent takes the connection");
        line.write_all(&frames.concat()).expect("the agent listens");
        hear(&mut line, &ACCEPTED);
    }

    /// A connection over which frames can be sent, and whose reads end after `patience`; `None` where the agent hung up.
    fn dial(&self, patience: Duration) -> Option<Box<dyn Line>> {
        let mut stream = TcpStream::connect(&self.agent.name).expect("the agent listens");
        stream.set_nodelay(true).expect("it is an option of every connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout can be set");
        let same = stream.try_clone().expect("there are descriptors");
        let line: Box<dyn Line> = match &self.tls {
            None => Box::new(stream),
            Some(config) => {
                let name = "127.0.0.1".try_into().expect("an address");
                let mut tls = ClientConnection::new(Arc::clone(config), name).expect("it can be used");
                while tls.is_handshaking() {
                    tls.complete_io(&mut stream).ok()?;
                }
                Box::new(StreamOwned::new(tls, stream))
            }
        };
        same.set_read_timeout(Some(patience)).expect("a timeout can be set");
        Some(line)
    }

    /// Has one conversation with the agent that is not as it should be. Returns its connection where that stays open.
    fn converse(&self, conversations: &[Vec<Vec<u8>>], chance: &mut Chance) -> Option<Box<dyn Line>> {
        let mut frames = conversations[chance.below(conversations.len())].clone();
        for _ in 0..chance.below(4) {
            mutate(&mut frames, chance);
        }
        // Some bytes come without TLS where it is wanted.
        let mut line: Box<dyn Line> = if self.tls.is_some() && chance.below(4) == 0 {
            let plain = speak(&self.agent, if chance.below(2) == 0 { TLS_HALF } else { b"" });
            plain.set_read_timeout(Some(SHORT)).expect("a timeout can be set");
            Box::new(plain)
        } else {
            self.dial(SHORT)?
        };
        let mut answer = [0; 1024];
        for frame in frames {
            // The agent may have hung up already.
            if line.write_all(&frame).is_err() {
                return None;
            }
            if chance.below(4) == 0 {
                let _ = line.read(&mut answer);
            }
        }
        (chance.below(4) == 0).then_some(line)
    }
}

/// Waits until the agent serves a run; says why it did not yet.
fn wait_until_it_serves(agent: &Agent, server: &Memcached) {
    serves(agent, server, "");
}

/// Waits until the agent serves the run of a controller with these options; says why it did not yet.
fn serves(agent: &Agent, server: &Memcached, options: &str) {
    until("the agent serves a run", || {
        let run = pummel(&format!("run -s {} -c 2 -n 20 --agents {} {options}", server.name, agent.name));
        if run.status != 0 {
            eprintln!("status {}: {}", run.status, run.errors);
        }
        (run.status == 0).then_some(())
    });
}

/// Index of the conversation that is an order which the agent can follow.
const ORDER: usize = 3;

/// Changes something in frames or in their order.
fn mutate(frames: &mut Vec<Vec<u8>>, chance: &mut Chance) {
    let at = chance.below(frames.len());
    let frame = &mut frames[at];
    match chance.below(8) {
        0..=2 if !frame.is_empty() => {
            let byte = chance.below(frame.len());
            frame[byte] = chance.next() as u8;
        }
        3 if !frame.is_empty() => {
            // One of the first bytes: length, type, flags and stream of a frame.
            let byte = chance.below(frame.len().min(14));
            frame[byte] ^= 1 << chance.below(8);
        }
        4 => frame.truncate(chance.below(frame.len() + 1)),
        5 => {
            let copy = frame.clone();
            frames.insert(at, copy);
        }
        6 if frames.len() > 1 => drop(frames.remove(at)),
        _ => {
            let len = chance.below(200);
            let noise = (0..len).map(|_| chance.next() as u8).collect();
            frames.insert(at, noise);
        }
    }
}

/// Conversations as they should be, frame by frame, and one that is noise.
fn conversations(server: &str) -> Vec<Vec<Vec<u8>>> {
    let hello = vec![headers(1, "Hello"), data(1, &varint_field(1, protocol()))];
    let clock = vec![headers(1, "Clock"), data(1, &[])];
    let order = field(1, &order(&format!("-s {server} -n 20"), false));
    let run = [&order, &field(3, &[]), &go(0, 0), &field(5, &[])].map(|command| data(1, command));
    let begin = |frames: Vec<Vec<u8>>| {
        let mut all = vec![PREFACE.to_vec(), SETTINGS.to_vec()];
        all.extend(frames);
        all
    };
    vec![
        begin(hello),
        begin(clock),
        begin([vec![headers(1, "Run")], run.to_vec()].concat()),
        begin(vec![headers(1, "Run"), data(1, &order), data(1, &field(2, &[]))]),
        begin((0..40).map(|stream| headers(2 * stream + 1, "Run")).collect()),
        begin((0..40).flat_map(|stream| [headers(2 * stream + 1, "Run"), reset(2 * stream + 1)]).collect()),
        vec![vec![0x55; 300]],
    ]
}

/// The version of the protocol, which both ends say first.
fn protocol() -> u64 {
    let source = include_str!("../../../fleet/src/agent/proto.rs");
    let number =
        source.lines().find_map(|line| line.strip_prefix("pub const PROTOCOL: u32 = ")?.strip_suffix(';'));
    number.and_then(|number| number.parse().ok()).expect("the number of the protocol")
}

fn package() -> &'static str {
    let proto = include_str!("../../../fleet/proto/agent.proto");
    let line = proto.lines().find_map(|line| line.strip_prefix("package ")).expect("a package");
    line.trim_end_matches(';')
}

/// An order for a run with these options, by one agent; with every request, where `rows` says so.
fn order(options: &str, rows: bool) -> Vec<u8> {
    let words = format!("explain run -c 2 -T 1 --format json {options}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    let output = command.args(words.split(' ')).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let part = r#"{"clients":[{"start":0,"end":2}],"threads":1,"first_worker":0,"workers":1,"mark":1}"#;
    [
        varint_field(1, protocol()),
        field(2, &build()),
        field(3, b"a fuzzer"),
        field(4, &output.stdout),
        field(5, part.as_bytes()),
        varint_field(6, rows.into()),
    ]
    .concat()
}

/// This build of pummel, which the agents of these tests are as well.
fn build() -> Vec<u8> {
    let build = PROGRAM.build();
    let words = [build.version, build.commit, build.sources];
    (1..).zip(words).flat_map(|(number, word)| field(number, word.as_bytes())).collect()
}

/// The command that begins phase `phase` at `at_ns` of the monotonic clock.
fn go(phase: u64, at_ns: u64) -> Vec<u8> {
    field(4, &[varint_field(1, phase), vec![0x11], at_ns.to_le_bytes().to_vec()].concat())
}

/// A field of protobuf with a number.
fn varint_field(number: u8, value: u64) -> Vec<u8> {
    [&[number << 3][..], &varint(value)].concat()
}

/// A field of protobuf with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frame that begins a call, with its headers as literals.
fn headers(stream: u32, method: &str) -> Vec<u8> {
    call(stream, &format!("/{}.Agent/{method}", package()))
}

/// The frame that begins a call of the method at a path.
fn call(stream: u32, path: &str) -> Vec<u8> {
    // `:method: POST` and `:scheme: http` of the static table.
    let mut block = vec![0x83, 0x86];
    for (name, value) in
        [(":path", path), (":authority", "agent"), ("content-type", "application/grpc"), ("te", "trailers")]
    {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short"));
            block.extend(text.as_bytes());
        }
    }
    frame(1, 4, stream, &block)
}

/// The frame of a message of a call.
fn data(stream: u32, message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).expect("short").to_be_bytes();
    frame(0, 0, stream, &[&[0][..], &len, message].concat())
}

/// The frame of the last message of a call's caller.
fn last_data(stream: u32, message: &[u8]) -> Vec<u8> {
    let mut frame = data(stream, message);
    // Its flags: END_STREAM.
    frame[4] = 1;
    frame
}

/// The frame that takes a call back.
fn reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &8u32.to_be_bytes())
}

/// Numbers that a seed decides: xorshift64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

#[test]
fn a_series_with_fewer_connections_than_agents_leaves_the_old_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("scan.json");
    fs::write(&json, "the old result").expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(["scan", "-s", "127.0.0.1:1", "--over", "connections:1:8", "-t", "100ms"])
        .args(["--agents", "127.0.0.1:2,127.0.0.1:3", "--json"])
        .arg(&json)
        .output()
        .expect("the program can be started");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("expected at least one connection for each of the 2 agents in every run"),
        "{errors}"
    );
    assert_eq!(fs::read_to_string(&json).expect("readable"), "the old result");
}
