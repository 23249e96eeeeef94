//! The real binary against a real memcached behind TLS: what is believed, what is refused, and what is counted.

use std::process::{Command, Stdio};

use crate::common::secured::Certificates;
use crate::common::{Ended, Memcached, Serve, pummel};

/// An authority, a certificate of it for `localhost`, and a memcached that shows it.
struct Secured {
    memcached: Memcached,
    /// Address as `--server` takes it.
    name: String,
    files: Certificates,
}

impl Secured {
    fn start() -> Secured {
        let files = Certificates::make();
        let (memcached, name) = Memcached::start_tls(&files.cert(), &files.key());
        Secured { memcached, name, files }
    }

    /// Runs with these options of TLS, and looks at what the server has seen of it.
    fn run(&self, options: &str) -> (Ended, u64) {
        let seen = || self.memcached.connect().stats().get("cmd_set");
        let before = seen();
        let words =
            format!("run -s {} -n 20000 -c 8 -d 4 --no-baseline --records 1000 --verify -v --tls", self.name);
        (pummel(&format!("{words} {options}")), seen() - before)
    }
}

#[test]
fn a_verified_run_is_counted_as_the_server_counts_it() {
    let server = Secured::start();
    let (ended, sets) = server.run(&format!("--tls-ca {} --tls-server-name localhost", server.files.ca()));
    let ended = ended.expect(0);
    let result = ended.json();
    assert_eq!(result.count("totals/completed"), 20_000);
    assert_eq!(result.count("verify/failed"), 0);
    assert!(result.count("verify/checked") > 10_000, "{}", result.at("verify"));
    let stats = server.memcached.connect().stats();
    assert_eq!(stats.get("cmd_get"), result.count("whole_run/ops/get/keys"));
    assert_eq!(stats.get("get_hits"), result.count("whole_run/ops/get/hits"));
    assert_eq!(sets, result.count("whole_run/ops/set/completed"));
    assert!(result.number("connections/handshake_us/min") > 0.0);
    let (handshake, connect) = ("connections/handshake_us/max", "connections/connect_us/max");
    assert!(result.number(handshake) <= result.number(connect));
    assert!(result.count("connections/resumed") < 8, "the first handshake has nothing to resume");
    assert!(ended.text.contains("checked against the authorities in"), "{}", ended.text);
    assert!(ended.text.contains("\nHandshakes   "), "{}", ended.text);
    assert!(!ended.errors.contains("WARNING"), "{}", ended.errors);
}

#[test]
fn a_server_that_is_not_trusted_is_sent_nothing() {
    let (server, other) = (Secured::start(), Secured::start());
    let wrong_authority = format!("--tls-ca {} --tls-server-name localhost", other.files.ca());
    let wrong_name = format!("--tls-ca {} --tls-server-name cache.example", server.files.ca());
    for (options, reason) in [(wrong_authority, "certificate"), (wrong_name, "'cache.example'")] {
        let (ended, sets) = server.run(&options);
        let ended = ended.expect(1);
        let said = ended.json().text("reason").to_owned();
        assert!(said.contains("the server's certificate") && said.contains(reason), "{said}");
        assert_eq!(sets, 0, "{options}");
    }
}

#[test]
fn whoever_believes_everybody_is_warned_even_when_quiet() {
    let server = Secured::start();
    let (ended, sets) = server.run("--tls-insecure");
    let ended = ended.expect(0);
    assert!(ended.errors.starts_with("WARNING: --tls-insecure: "), "{}", ended.errors);
    assert!(ended.text.contains("NOT VERIFIED"), "{}", ended.text);
    assert!(sets > 1_000, "{sets}");
}

#[test]
fn files_that_cannot_be_used_are_named_before_anything_is_sent() {
    let server = Secured::start();
    let (cert, key, ca) = (server.files.cert(), server.files.key(), server.files.ca());
    let rows = [
        ("--tls-ca /nonexistent/ca.pem".to_owned(), "'/nonexistent/ca.pem' for '--tls-ca'"),
        (format!("--tls-ca {key}"), "for '--tls-ca'"),
        (format!("--tls-insecure --tls-cert {key} --tls-key {key}"), "for '--tls-cert, --tls-key'"),
        (format!("--tls-insecure --tls-cert {cert} --tls-key {ca}"), "for '--tls-key'"),
        (format!("--tls-ca {ca} --tls-server-name a..b"), "'a..b' for '--tls-server-name'"),
    ];
    for (options, named) in rows {
        let (ended, sets) = server.run(&options);
        let ended = ended.expect(2);
        assert!(ended.errors.contains(named), "{options}: {}", ended.errors);
        assert_eq!((ended.text.as_str(), sets), ("", 0), "{options}");
        assert!(!ended.path("result.json").exists(), "{options}");
    }
}

#[test]
fn a_certificate_that_openssl_makes_for_itself_is_trusted_when_it_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (cert, key, other) = (file("cert.pem"), file("key.pem"), file("other.pem"));
    for (cert, key) in [(&cert, &key), (&other, &file("other-key.pem"))] {
        let words = "req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost \
                     -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
        let made = Command::new("openssl")
            .args(words.split_whitespace())
            .args(["-keyout", key, "-out", cert])
            .stderr(Stdio::null())
            .status();
        if made.is_err() {
            println!("skipped: the program openssl is not installed");
            return;
        }
        assert!(made.expect("it was started").success());
    }
    let server = Serve::start(&format!("--tls-cert {cert} --tls-key {key}"));
    let run = |options: &str, status| {
        pummel(&format!("run -s {} -n 1000 --records 10 --quiet --tls {options}", server.name)).expect(status)
    };
    let trusted = run(&format!("--tls-ca {cert}"), 0);
    assert_eq!(trusted.json().count("totals/completed"), 1_000);
    run(&format!("--tls-ca {cert} --tls-server-name localhost"), 0);
    for (options, reason) in [
        (format!("--tls-ca {cert} --tls-server-name cache.example"), "'cache.example'"),
        (format!("--tls-ca {other}"), "itself that of an authority (CA:TRUE)"),
    ] {
        let ended = run(&options, 1);
        let said = ended.json().text("reason").to_owned();
        assert!(said.contains(reason), "{options}: {said}");
    }
}
