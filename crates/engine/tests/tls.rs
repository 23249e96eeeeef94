//! TLS against servers of the test, and against openssl's where it is installed: connections that are agreed on,
//! refusals and their words, and the figures of a run.

use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use pummel_engine::backend::epoll::Epoll;
use pummel_engine::backend::tls::{Setup, Tls, TlsError};
use pummel_engine::backend::{Backend, Close, ConnId, Event, Target, TlsHandshake};
use pummel_engine::resolve::{Server, Sources};
use pummel_engine::run::{Run, Watch};
use pummel_logic::plan::{self, Clock, Plan, Socket, TlsOptions, Wait};
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::trouble::CloseReason;
use rustls::ServerConfig;
use rustls::version::{TLS12, TLS13};

use authority::{Authority, Secured, Validity, server};

mod authority;

/// The longest wait before a test fails.
const PATIENCE_NS: Nanos = 30 * SECOND;

// ---- Servers ----

/// A server in a thread of this process, one connection after the other; dropping it ends it.
struct Listening {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Listening {
    fn new(mut behaviour: impl FnMut(TcpStream) + Send + 'static) -> Listening {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let accepting = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                behaviour(stream);
            }
        });
        Listening { address, stop, accepting: Some(accepting) }
    }

    /// A server that sends back what it gets, behind TLS.
    fn echo(config: Arc<ServerConfig>) -> Listening {
        Listening::new(move |stream| {
            // A client that refuses the handshake is what some tests are about.
            let Ok(mut stream) = Secured::agree(stream, &config) else { return };
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..len]).is_err() {
                    return;
                }
            }
        })
    }

    /// A server that knows no key, behind TLS, for several clients at once.
    fn empty_cache(config: Arc<ServerConfig>) -> Listening {
        Listening::new(move |stream| {
            let config = Arc::clone(&config);
            thread::spawn(move || {
                let Ok(stream) = Secured::agree(stream, &config) else { return };
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while let Ok(1..) = stream.read_line(&mut line) {
                    assert!(line.starts_with("get "), "{line}");
                    if stream.get_mut().write_all(b"END\r\n").is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        })
    }

    fn target(&self) -> Target {
        Target::Tcp { address: self.address, source: None }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // One more connection ends the wait for connections.
        drop(TcpStream::connect(self.address));
        self.accepting.take().unwrap().join().unwrap();
    }
}

// ---- The client of the tests ----

struct Client {
    tls: Tls<Epoll>,
    handshakes: Vec<TlsHandshake>,
    generation: u32,
}

impl Client {
    fn new(options: &TlsOptions) -> Client {
        let epoll = Epoll::new(Wait::Block, Clock::Kernel, &Socket::default()).unwrap();
        let tls = Tls::new(epoll, &Setup::new(options, &[]).unwrap());
        Client { tls, handshakes: Vec::new(), generation: 0 }
    }

    /// Opens, sends, waits until `len` bytes have come, and closes; or returns the reason why not.
    fn talk(&mut self, target: &Target, message: &[u8], len: usize) -> Result<Vec<u8>, CloseReason> {
        self.generation += 1;
        let conn = ConnId { slot: 0, generation: self.generation };
        self.tls.open(conn, target);
        let (mut received, mut end) = (Vec::new(), None);
        let give_up = self.tls.now() + PATIENCE_NS;
        let mut rest: &[u8] = message;
        while received.len() < len && end.is_none() {
            assert!(self.tls.wait(give_up).unwrap() < give_up, "what was waited for did not happen");
            let mut writable = false;
            self.tls.drain(&mut |_, event| match event {
                Event::Opened { .. } | Event::Writable => writable = true,
                Event::Received { bytes, .. } => received.extend_from_slice(bytes),
                Event::Closed(reason) => end = Some(reason),
            });
            self.tls.handshakes(&mut |handshake| self.handshakes.push(handshake));
            if writable && end.is_none() {
                let handed = self.tls.send(conn, &[IoSlice::new(rest)]);
                rest = &rest[handed.taken..];
            }
        }
        self.tls.close(conn, Close::Fin);
        end.map_or(Ok(received), Err)
    }

    fn echo(&mut self, server: &Listening) -> Result<Vec<u8>, CloseReason> {
        self.talk(&server.target(), b"hello", 5)
    }
}

/// The words in which a client with these options is refused.
fn refusal(options: &TlsOptions, server: &Listening) -> String {
    let reason = Client::new(options).echo(server).expect_err("the server is not to be trusted");
    assert_eq!(reason.fault, Fault::Protocol);
    reason.words.expect("the reason has words").to_string()
}

fn echo_with(authority: &Authority, names: &[&str], validity: Validity) -> Listening {
    Listening::echo(server(&authority.issue(names, validity), None, rustls::ALL_VERSIONS))
}

// ---- What is agreed on ----

#[test]
fn the_first_handshake_is_full_and_later_ones_resume_its_session() {
    for versions in [&[&TLS12][..], &[&TLS13][..]] {
        let authority = Authority::new();
        let identity = authority.issue(&["localhost"], Validity::Now);
        let server = Listening::echo(server(&identity, None, versions));
        let mut client = Client::new(&authority.options());
        for _ in 0..3 {
            let before = client.tls.now();
            assert_eq!(client.echo(&server).unwrap(), b"hello");
            let handshake = client.handshakes.last().unwrap();
            assert!(handshake.took > 0 && handshake.took < client.tls.now() - before);
        }
        let resumed: Vec<bool> = client.handshakes.iter().map(|handshake| handshake.resumed).collect();
        assert_eq!(resumed, [false, true, true], "{versions:?}");
    }
}

#[test]
fn an_ip_address_is_a_name_too() {
    let authority = Authority::new();
    let server = echo_with(&authority, &["127.0.0.1"], Validity::Now);
    let options = TlsOptions { server_name: None, ..authority.options() };
    let named = Server::resolve(&server.address.to_string(), &Sources::default()).unwrap();
    let mut client = Client::new(&authority.options());
    let epoll = Epoll::new(Wait::Block, Clock::Kernel, &plan(&server).socket).unwrap();
    client.tls = Tls::new(epoll, &Setup::new(&options, &[named]).unwrap());
    assert_eq!(client.echo(&server).unwrap(), b"hello");
}

#[test]
fn whoever_trusts_everybody_talks_to_everybody() {
    let options =
        TlsOptions { insecure: true, server_name: Some("localhost".to_owned()), ..TlsOptions::default() };
    for (names, validity) in [(["elsewhere"], Validity::Now), (["localhost"], Validity::Past)] {
        for versions in [&[&TLS12][..], &[&TLS13][..]] {
            let identity = Authority::new().issue(&names, validity);
            let server = Listening::echo(server(&identity, None, versions));
            assert_eq!(Client::new(&options).echo(&server).unwrap(), b"hello");
        }
    }
}

// ---- What is refused ----

#[test]
fn a_certificate_for_another_name_is_refused_with_both_names() {
    let authority = Authority::new();
    let server = echo_with(&authority, &["cache.example", "127.0.0.1"], Validity::Now);
    assert_eq!(
        refusal(&authority.options(), &server),
        "the server's certificate is not valid for the name 'localhost': it is for cache.example, 127.0.0.1"
    );
}

#[test]
fn a_certificate_without_names_is_refused() {
    let authority = Authority::new();
    let server = echo_with(&authority, &[], Validity::Now);
    assert_eq!(
        refusal(&authority.options(), &server),
        "the server's certificate is not valid for the name 'localhost': it holds no name at all (no \
         subjectAltName)"
    );
}

#[test]
fn certificates_of_other_times_are_refused() {
    let authority = Authority::new();
    let past = echo_with(&authority, &["localhost"], Validity::Past);
    let words = refusal(&authority.options(), &past);
    assert!(
        words.starts_with("the server's certificate has expired ") && words.ends_with(" days ago"),
        "{words}"
    );
    let future = echo_with(&authority, &["localhost"], Validity::Future);
    assert_eq!(refusal(&authority.options(), &future), "the server's certificate is not valid yet");
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let server = echo_with(&Authority::new(), &["localhost"], Validity::Now);
    assert_eq!(
        refusal(&Authority::new().options(), &server),
        "the server's certificate was signed by an authority that is not trusted here"
    );
}

#[test]
fn a_servers_own_certificate_in_the_file_of_authorities_is_trusted_for_its_names() {
    let own = Authority::with(&["localhost", "127.0.0.1"], Validity::Now);
    for versions in [&[&TLS12][..], &[&TLS13][..]] {
        let server = Listening::echo(server(&own.issue_itself(), None, versions));
        assert_eq!(Client::new(&own.options()).echo(&server).unwrap(), b"hello");
        let elsewhere = TlsOptions { server_name: Some("elsewhere".to_owned()), ..own.options() };
        assert_eq!(
            refusal(&elsewhere, &server),
            "the server's certificate is not valid for the name 'elsewhere': it is for localhost, 127.0.0.1"
        );
        // One that differs in any byte is another certificate.
        let words = refusal(&Authority::with(&["localhost"], Validity::Now).options(), &server);
        assert!(words.contains("itself that of an authority (CA:TRUE)"), "{words}");
    }
}

#[test]
fn a_servers_own_certificate_of_another_time_is_refused_though_it_is_in_the_file() {
    for (validity, reason) in [(Validity::Past, "has expired"), (Validity::Future, "is not valid yet")] {
        let own = Authority::with(&["localhost"], validity);
        let server = Listening::echo(server(&own.issue_itself(), None, rustls::ALL_VERSIONS));
        let words = refusal(&own.options(), &server);
        assert!(words.contains(reason), "{words}");
    }
}

#[test]
fn the_certificate_of_an_authority_proves_no_name_that_it_does_not_have() {
    let authority = Authority::new();
    let server = Listening::echo(server(&authority.issue_itself(), None, rustls::ALL_VERSIONS));
    let words = refusal(&authority.options(), &server);
    assert!(words.contains("it holds no name at all"), "{words}");
}

#[test]
fn a_certificate_in_the_file_needs_no_authority_there() {
    let authority = Authority::new();
    for (validity, refused) in [(Validity::Now, None), (Validity::Past, Some("has expired"))] {
        let identity = authority.issue(&["localhost"], validity);
        let server = Listening::echo(server(&identity, None, rustls::ALL_VERSIONS));
        let options = TlsOptions { ca: Some(identity.cert_path), ..authority.options() };
        match refused {
            None => assert_eq!(Client::new(&options).echo(&server).unwrap(), b"hello"),
            Some(reason) => {
                let words = refusal(&options, &server);
                assert!(words.contains(reason), "{words}");
            }
        }
    }
}

#[test]
fn a_server_that_answers_in_plain_text_is_quoted() {
    let server = Listening::new(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"ERROR\r\n");
    });
    let words = refusal(&Authority::new().options(), &server);
    assert_eq!(words, "the server does not speak TLS: it answered \"ERROR\\r\\n\"");
}

#[test]
fn a_server_that_closes_in_the_handshake_is_said_to_do_so() {
    let server = Listening::new(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
    });
    let reason = Client::new(&Authority::new().options()).echo(&server).unwrap_err();
    assert_eq!(reason.fault, Fault::Closed);
    assert!(reason.words.unwrap().starts_with("the server closed the connection in the TLS handshake"));
}

#[test]
fn a_server_that_says_nothing_is_known_to_have_taken_the_connection() {
    let server = Listening::new(|mut stream| while let Ok(1..) = stream.read(&mut [0; 4096]) {});
    let mut client = Client::new(&Authority::new().options());
    let conn = ConnId { slot: 0, generation: 1 };
    client.tls.open(conn, &server.target());
    assert_eq!(client.tls.why_not_open(conn), None, "it is not known yet");
    while client.tls.why_not_open(conn).is_none() {
        let give_up = client.tls.now() + PATIENCE_NS;
        assert!(client.tls.wait(give_up).unwrap() < give_up);
        client.tls.drain(&mut |_, event| panic!("{event:?} from a silent server"));
    }
    assert!(client.tls.why_not_open(conn).unwrap().contains("did not complete the TLS handshake in time"));
    client.tls.close(conn, Close::Fin);
    assert_eq!(client.tls.why_not_open(conn), None);
}

#[test]
fn servers_that_want_a_certificate_get_it_or_say_so() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let identity = authority.issue(&["localhost"], Validity::Now);
    let with = |identity: authority::Identity| TlsOptions {
        cert: Some(identity.cert_path),
        key: Some(identity.key_path),
        ..authority.options()
    };
    let known = authority.issue(&["client"], Validity::Now);
    let unknown = stranger.issue(&["client"], Validity::Now);
    let (known, unknown) = (with(known), with(unknown));
    for version in [&TLS12, &TLS13] {
        let server = Listening::echo(server(&identity, Some(&authority), &[version]));
        assert_eq!(Client::new(&known).echo(&server).unwrap(), b"hello");
        let words = refusal(&authority.options(), &server);
        assert!(words.contains("certificate of"), "{words}");
        let words = refusal(&unknown, &server);
        assert!(words.contains("client's certificate") || words.contains("DecryptError"), "{words}");
    }
}

#[test]
fn a_key_that_is_not_the_certificates_is_refused_before_anything_is_sent() {
    let authority = Authority::new();
    let (one, other) = (authority.issue(&["a"], Validity::Now), authority.issue(&["b"], Validity::Now));
    let options =
        TlsOptions { cert: Some(one.cert_path), key: Some(other.key_path.clone()), ..authority.options() };
    let error = Setup::new(&options, &[]).unwrap_err();
    assert!(matches!(&error, TlsError::Identity { key, .. } if *key == other.key_path), "{error}");
    let swapped = TlsOptions { cert: Some(other.key_path), key: Some(other.cert_path), ..options };
    assert!(matches!(Setup::new(&swapped, &[]), Err(TlsError::Content { .. })));
}

// ---- Runs ----

struct Unwatched;

impl Watch for Unwatched {}

/// 200 reads over four connections on two threads.
fn plan(server: &Listening) -> Plan {
    let phase = plan::Phase {
        name: "measure".to_owned(),
        work: plan::Work::Mix(plan::Mix::of(&[(Verb::Get, 1.0)])),
        stop: plan::Stop { time_ns: None, requests: Some(200) },
        recorded: true,
    };
    Plan {
        servers: vec![server.address.to_string()],
        seed: 1,
        timeout_ns: 10 * SECOND,
        engine: plan::Engine {
            threads: 2,
            backend: plan::Backend::Epoll,
            wait: Wait::Block,
            ..plan::Engine::default()
        },
        data: plan::Data { records: 100, ..plan::Data::default() },
        groups: vec![plan::Group { clients: 4, depth: plan::Depth::Limit(2), ..plan::Group::default() }],
        phases: vec![phase],
        ..Plan::default()
    }
}

fn run_to_end(plan: &Plan) -> Measurement {
    let plan = plan.clone().validate().expect("the plan can be run");
    Run::new(&plan).start(&mut Unwatched, &|| false).unwrap()
}

#[test]
fn handshakes_of_a_run_are_a_figure_of_their_own() {
    let authority = Authority::new();
    let server = Listening::empty_cache(authority.server());
    let plan = Plan { tls: Some(authority.options()), ..plan(&server) };
    let measurement = run_to_end(&plan);
    assert_eq!((measurement.status, &measurement.reason), (Status::Complete, &None));
    assert_eq!(measurement.ops().all().counts.completed, 200);
    let connections = &measurement.connections;
    assert_eq!((connections.open, connections.handshake.count()), (4, 4));
    assert!(connections.handshake.count() >= connections.resumed);
    // The bytes that count are those of the requests, not of their encryption.
    let request = "get \r\n".len() as u64 + 30;
    assert_eq!(measurement.whole_run.bytes.sent, 200 * request);
}

#[test]
fn a_run_that_is_refused_says_why() {
    let authority = Authority::new();
    let server = Listening::empty_cache(authority.server());
    let elsewhere = TlsOptions { server_name: Some("elsewhere".to_owned()), ..authority.options() };
    let measurement = run_to_end(&Plan { tls: Some(elsewhere), ..plan(&server) });
    let reason = format!("{:?}", measurement.reason);
    assert_eq!(measurement.status, Status::Partial);
    assert!(reason.contains("the server's certificate is not valid for the name 'elsewhere'"), "{reason}");
    assert_eq!(measurement.connections.handshake.count(), 0);
}

#[test]
fn a_silent_server_ends_the_run_with_a_hint() {
    let server = Listening::new(|stream| {
        thread::spawn(move || {
            let mut stream = stream;
            while let Ok(1..) = stream.read(&mut [0; 4096]) {}
        });
    });
    let authority = Authority::new();
    let tls = Some(authority.options());
    let measurement = run_to_end(&Plan { tls, timeout_ns: 100 * MILLISECOND, ..plan(&server) });
    let reason = format!("{:?}", measurement.reason);
    assert!(reason.contains("did not complete the TLS handshake in time"), "{reason}");
}

// ---- Another program's TLS ----

/// `openssl s_server`, which sends every line back in reverse.
struct Openssl {
    child: Child,
    target: Target,
}

impl Openssl {
    /// Starts the server; `None` where openssl is not installed.
    fn new(identity: &authority::Identity, version: &str) -> Option<Openssl> {
        let mut child = Command::new("openssl")
            .args(["s_server", "-rev", version, "-accept", "127.0.0.1:0"])
            .args(["-cert", &identity.cert_path, "-key", &identity.key_path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let accept =
            said.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("ACCEPT ")?.to_owned()));
        let address = accept.expect("openssl says where it listens").parse().unwrap();
        Some(Openssl { child, target: Target::Tcp { address, source: None } })
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn openssl_agrees_and_resumes() {
    let authority = Authority::new();
    let identity = authority.issue(&["localhost"], Validity::Now);
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(openssl) = Openssl::new(&identity, version) else {
            println!("skipped: the program openssl is not installed");
            return;
        };
        let mut client = Client::new(&authority.options());
        for round in 0..3 {
            assert_eq!(
                client.talk(&openssl.target, b"pummel\n", 7).unwrap(),
                b"lemmup\n",
                "{version} {round}"
            );
        }
        let resumed: Vec<bool> = client.handshakes.iter().map(|handshake| handshake.resumed).collect();
        assert_eq!(resumed, [false, true, true], "{version}");
    }
}
