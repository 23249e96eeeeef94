//! `pummel serve` in every dialect, over TLS and over UDP: what pummel's own clients count against it, and what other
//! programs make of it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Ended, PATIENCE, Serve, in_some_quiet_moment, pummel};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

const MEMCACHED_OPS: &str = "get:4,gets:1,gat:1,set:2,add:1,replace:1,append:1,prepend:1,cas:1,incr:1,decr:1,delete:1,\
     touch:1,version:1";

const RESP_OPS: &str = "get:4,gat:1,set:2,add:1,replace:1,append:1,incr:1,decr:1,delete:1,touch:1,version:1";

/// A verified run that ended well.
fn verified(server: &str, protocol: &str, more: &str) -> Ended {
    let words =
        format!("run -s {server} --protocol {protocol} --no-baseline -n 10k -c 10 --verify 1 --quiet {more}");
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    assert!(result.count("verify/checked") > 2_000, "{protocol} {more}");
    assert_eq!(result.count("verify/failed") + result.count("verify/stale"), 0, "{protocol} {more}");
    assert_eq!(result.count("totals/errors"), 0, "{protocol} {more}: {}", ended.text);
    ended
}

fn mix_of(protocol: &str) -> &'static str {
    if protocol.starts_with("resp") { RESP_OPS } else { MEMCACHED_OPS }
}

#[test]
fn a_verified_run_of_every_operation_is_counted_alike_by_both_sides() {
    for protocol in ["text", "meta", "binary", "resp2", "resp3"] {
        for depth in [1, 16] {
            let serving = Serve::start("");
            let more = format!("--mix {} --ttl 1000 -d {depth}", mix_of(protocol));
            let result = verified(&serving.name, protocol, &more).json();
            let stats = serving.connect().stats();
            let of = |op: &str, what: &str| result.count_or_none(&format!("whole_run/ops/{op}/{what}"));
            let sets = ["set", "add", "replace", "append", "prepend", "cas"];
            let stored: u64 = sets.iter().map(|op| of(op, "completed")).sum();
            let touches = of("gat", "completed") + of("gats", "completed") + of("touch", "completed");
            let met = |name: &str| stats.get(name);
            // A meta read that misses counts as a read there, also where it would have set an expiry.
            let (reads, touched) = match protocol {
                "meta" => (met("cmd_get") + met("cmd_touch"), met("cmd_touch")),
                _ => (met("cmd_get") + touches, touches),
            };
            assert_eq!(of("get", "keys") + of("gets", "keys") + touches, reads, "{protocol}, depth {depth}");
            assert_eq!(met("cmd_touch"), touched, "{protocol}, depth {depth}");
            assert_eq!(stored, met("cmd_set"), "{protocol}, depth {depth}");
            assert_eq!(of("delete", "completed"), met("delete_hits") + met("delete_misses"), "{protocol}");
            assert_eq!(of("incr", "completed"), met("incr_hits") + met("incr_misses"), "{protocol}");
            assert_eq!(of("decr", "completed"), met("decr_hits") + met("decr_misses"), "{protocol}");
        }
    }
}

#[test]
fn what_one_dialect_stored_the_others_read_byte_for_byte() {
    let serving = Serve::start("");
    let dialects = ["text", "meta", "binary", "resp2", "resp3"];
    let sizes = "--records 500 --value-size uniform:1,3000";
    for writer in dialects {
        let prefix = format!("{writer}:");
        let load = format!("load -s {} --protocol {writer} --key-prefix {prefix} {sizes}", serving.name);
        let loaded = pummel(&load).expect(0).json();
        assert_eq!((loaded.count("load/stored"), loaded.count("load/errors")), (500, 0), "{writer}");
        for reader in dialects {
            let read = format!(
                "run -s {} --protocol {reader} --key-prefix {prefix} {sizes} --no-load --verify 1 --mix get:1 \
                 --multiget 10 --popularity sequential -n 50 --quiet",
                serving.name
            );
            let result = pummel(&read).expect(0).json();
            assert_eq!(result.count("verify/checked"), 500, "written by {writer}, read by {reader}");
        }
    }
}

#[test]
fn a_server_that_mixes_dialects_up_is_named_in_one_sentence() {
    for protocol in ["text", "binary", "resp2", "resp3"] {
        let serving = Serve::start("--fault mix=100");
        let words = format!("run -s {} --protocol {protocol} -n 1000 -c 1 --quiet", serving.name);
        let reason = pummel(&words).expect(1).json().text("reason").to_owned();
        assert!(reason.contains("looks like"), "{protocol}: {reason}");
        assert!(serving.truth().faults.iter().any(|(kind, _)| kind == "mix"), "{protocol}");
    }
}

#[test]
fn errors_and_flips_are_found_in_every_dialect() {
    for protocol in ["text", "meta", "binary", "resp3"] {
        let serving = Serve::start("--fault error-every=50 --fault flip=100");
        let words = format!(
            "run -s {} --protocol {protocol} -n 5k -c 4 --verify 1 --no-load --mix get:1,set:1 --quiet",
            serving.name
        );
        let result = pummel(&words).expect(3).json();
        assert_eq!(result.count("totals/errors"), 100, "{protocol}");
        let flips = serving.truth().faults.iter().filter(|(kind, _)| kind == "flip").count() as u64;
        assert!(flips > 0, "{protocol}");
        assert_eq!(result.count("verify/failed"), flips, "{protocol}");
    }
}

#[test]
fn a_login_is_demanded_in_every_dialect() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = |password: &str| {
        let path = folder.path().join(password);
        fs::write(&path, format!("{password}\n")).expect("the folder can be written to");
        path.display().to_string()
    };
    let (right, wrong) = (file("right"), file("wrong"));
    let serving = Serve::start(&format!("--user me --password-file {right}"));
    for protocol in ["text", "meta", "binary", "resp2", "resp3"] {
        let run = |more: &str| {
            pummel(&format!("run -s {} --protocol {protocol} -n 500 -c 5 --quiet {more}", serving.name))
        };
        let result = run(&format!("--user me --password-file {right}")).expect(0).json();
        assert_eq!(result.count("totals/errors"), 0, "{protocol}");
        let refused = run(&format!("--user me --password-file {wrong}")).expect(1).json();
        assert_eq!(refused.count("totals/requests"), 0, "{protocol}");
        assert!(refused.text("reason").contains("the server said"), "{protocol}: {}", refused.text("reason"));
    }
}

/// An authority, and what it signed for the server and for a client.
struct Papers {
    folder: TempDir,
}

impl Papers {
    fn new() -> Papers {
        let papers = Papers { folder: TempDir::new().expect("a temporary folder") };
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate().expect("a key");
        papers.write("ca.pem", &params.self_signed(&key).expect("a certificate").pem());
        let authority = Issuer::new(params, key);
        for name in ["localhost", "client"] {
            let key = KeyPair::generate().expect("a key");
            let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            let certificate = params.signed_by(&key, &authority).expect("a certificate");
            papers.write(&format!("{name}.pem"), &certificate.pem());
            papers.write(&format!("{name}.key"), &key.serialize_pem());
        }
        papers
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("the folder can be written to");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn of(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn serve(&self, more: &str) -> Serve {
        Serve::start(&format!(
            "--tls-cert {} --tls-key {} {more}",
            self.of("localhost.pem"),
            self.of("localhost.key")
        ))
    }

    fn client(&self) -> String {
        format!("--tls --tls-ca {} --tls-server-name localhost", self.of("ca.pem"))
    }
}

#[test]
fn every_dialect_goes_through_tls() {
    let papers = Papers::new();
    let serving = papers.serve("");
    for protocol in ["text", "meta", "binary", "resp3"] {
        let more = format!(
            "--mix {} -d 16 --value-size uniform:1,40000 --records 300 {}",
            mix_of(protocol),
            papers.client()
        );
        verified(&serving.name, protocol, &more);
    }
    let plain = pummel(&format!("run -s {} -n 10 -c 1 --quiet", serving.name)).expect(1).json();
    assert!(plain.text("reason").contains("TLS"), "{}", plain.text("reason"));
}

#[test]
fn a_client_certificate_is_demanded_where_that_was_asked_for() {
    let papers = Papers::new();
    let serving = papers.serve(&format!("--tls-ca {}", papers.of("ca.pem")));
    let run = |more: &str| {
        pummel(&format!("run -s {} -n 1000 -c 2 --quiet {} {more}", serving.name, papers.client()))
    };
    let own = format!("--tls-cert {} --tls-key {}", papers.of("client.pem"), papers.of("client.key"));
    assert_eq!(run(&own).expect(0).json().count("totals/errors"), 0);
    assert_eq!(run("").expect(1).json().count("totals/completed"), 0);
}

#[test]
fn openssl_speaks_to_it() {
    let papers = Papers::new();
    let serving = papers.serve("");
    let mut client = Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-servername",
            "localhost",
            "-connect",
            &serving.name,
        ])
        .args(["-verify_hostname", "localhost", "-CAfile"])
        .arg(papers.path("ca.pem"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = client.stdin.take().expect("it is piped");
    stdin.write_all(b"set a 0 0 3\r\none\r\nget a\r\nquit\r\n").expect("it reads");
    let output = client.wait_with_output().expect("it ends when the server closes");
    let heard = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(heard, "STORED\r\nVALUE a 0 3\r\none\r\nEND\r\n", "{said}");
}

/// Output of a program that was given this server's port.
fn printed(program: &str, serving: &Serve, args: &str) -> String {
    let port = serving.name.rsplit(':').next().expect("an address has a port");
    let output = Command::new(program)
        .args(["-h", "127.0.0.1", "-p", port])
        .args(args.split_whitespace())
        .output()
        .expect("redis-tools are installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {args}: {text}");
    text
}

#[test]
fn the_tools_of_redis_speak_to_it() {
    let serving = Serve::start("--protocol resp");
    // What is left is rounded to seconds: half of one must not pass between the two.
    in_some_quiet_moment(|| {
        assert_eq!(printed("redis-cli", &serving, "set a 1 EX 100"), "OK\n");
        let left = printed("redis-cli", &serving, "ttl a");
        if left == "100\n" { Ok(()) } else { Err(left) }
    });
    for (args, words) in [
        ("ping", "PONG\n"),
        ("-3 incrby a 41", "42\n"),
        ("-3 hset h f v", "1\n"),
        ("hgetall h", "f\nv\n"),
        ("-3 hgetall h", "f v\n"),
        ("get none", "\n"),
        ("bogus", "ERR unknown command 'bogus', with args beginning with: \n\n"),
    ] {
        assert_eq!(printed("redis-cli", &serving, args), words, "{args}");
    }
    let table =
        printed("redis-benchmark", &serving, "-t ping,set,get,incr,mset,hset -n 2000 -c 10 -P 4 --csv");
    for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "HSET", "MSET"] {
        assert!(table.contains(&format!("\"{test}")), "{test}: {table}");
    }
    let info = printed("redis-cli", &serving, "info commandstats");
    for counted in ["cmdstat_mset:calls=2000,", "cmdstat_hset:calls=2001,", "cmdstat_incrby:calls=1,"] {
        assert!(info.contains(counted), "{counted}: {info}");
    }
}

/// All datagrams that answer, up to one that ends as the reply to a get does.
fn ask_by_udp(socket: &UdpSocket, id: u16, question: &[u8]) -> Vec<Vec<u8>> {
    let [high, low] = id.to_be_bytes();
    socket.send(&[&[high, low, 0, 0, 0, 1, 0, 0], question].concat()).expect("the server listens");
    let mut heard = Vec::new();
    let mut buffer = [0; 2000];
    loop {
        let count = socket.recv(&mut buffer).expect("an answer comes");
        assert_eq!(buffer[..2], [high, low], "the number of the request");
        heard.push(buffer[2..count].to_vec());
        if buffer[..count].ends_with(b"END\r\n") {
            return heard;
        }
    }
}

#[test]
fn udp_answers_in_both_framings_beside_tcp() {
    let key = |n: u8, total: u8| vec![0, n, 0, total, 0, 0];
    for (framing, expected) in [
        ("per-key", vec![key(0, 1), key(0, 2), key(1, 2), key(0, 1)]),
        ("stream", vec![key(0, 2), key(1, 2)]),
    ] {
        let serving = Serve::start(&format!("--udp-framing {framing}"));
        let mut tcp = TcpStream::connect(&serving.name).expect("it listens for TCP too");
        tcp.write_all(&[&b"set l 0 0 1500\r\n"[..], &[b'x'; 1500], b"\r\n"].concat()).expect("it reads");
        let mut reply = [0; 8];
        tcp.read_exact(&mut reply).expect("it answers");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
        socket.connect(&serving.name).expect("an address");
        let set = b"set a 0 0 1\r\nx\r\n";
        socket.send(&[&[0, 9, 0, 0, 0, 1, 0, 0][..], set].concat()).expect("the server listens");
        let mut buffer = [0; 100];
        let count = socket.recv(&mut buffer).expect("an answer comes");
        assert_eq!(&buffer[8..count], b"STORED\r\n");
        let heard = ask_by_udp(&socket, 700, b"get a l a\r\n");
        let frames: Vec<Vec<u8>> = heard.iter().map(|datagram| datagram[..6].to_vec()).collect();
        assert_eq!(frames, expected, "{framing}");
        assert!(heard.iter().all(|datagram| datagram.len() + 2 <= 1400));
        let truth = serving.truth();
        assert_eq!(truth.requests.len(), 3, "{framing}");
    }
}

#[test]
fn udp_replies_are_held_for_the_service_time() {
    let serving = Serve::start("--udp-framing stream --service-time 20ms");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
    socket.connect(&serving.name).expect("an address");
    let began = std::time::Instant::now();
    ask_by_udp(&socket, 1, b"get a\r\n");
    assert!(began.elapsed() >= Duration::from_millis(20));
    let held = serving.truth().requests[0].held_ns.expect("it was answered");
    assert!(held >= 20_000_000, "{held}");
}

#[test]
fn a_request_over_udp_that_is_not_answered_before_the_end_is_in_the_truth() {
    let serving = Serve::start("--udp-framing per-key --service-time 30s");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.connect(&serving.name).expect("an address");
    socket.send(&[&[0, 1, 0, 0, 0, 1, 0, 0][..], b"get a\r\n"].concat()).expect("the server listens");
    let truth = serving.truth();
    assert_eq!(truth.requests.len(), 1);
    assert_eq!((truth.requests[0].verb.as_str(), truth.requests[0].held_ns), ("get", None));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for args in [
        "--tls-cert /a",
        "--tls-ca /a",
        "--user me",
        "--udp-framing stream --user me --password-file /a",
        "--udp-framing sideways",
        "--protocol http",
        "--fault mix",
        "--fault udp-drop=10",
        "--fault flip=5 --fault udp-reorder=10",
        "--udp-framing stream --listen /tmp/socket",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel"))
            .arg("serve")
            .args(args.split_whitespace())
            .args(["--max-seconds", "1"])
            .output()
            .expect("pummel starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert_eq!(
            said.contains("'udp-"),
            args.contains("udp-drop") || args.contains("udp-reorder"),
            "{said}"
        );
        assert!(output.stdout.is_empty(), "{args}: it listened");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            "/nonexistent/cert",
            "--tls-key",
            "/nonexistent/key",
        ])
        .output()
        .expect("pummel starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/cert"));
}
