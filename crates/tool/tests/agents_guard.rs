//! Who may use an agent: tokens, certificates, targets.

#[allow(dead_code, reason = "each file of tests uses a part of it")]
mod common;

use std::fs;
use std::process::Command;

use common::agent::Agent;
use common::{Ended, Memcached, pummel};
use tempfile::TempDir;

fn run(server: &Memcached, agent: &Agent, options: &str) -> Ended {
    pummel(&format!(
        "run -s {} -c 2 -n 50 --agents {} --agents-timeout 500ms {options}",
        server.name, agent.name
    ))
}

fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("it is written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn only_controllers_with_the_token_are_served_and_others_are_named() {
    let folder = TempDir::new().expect("a folder");
    let (right, wrong) =
        (file(&folder, "right", "open sesame".replace(' ', "-").as_str()), file(&folder, "wrong", "x"));
    let server = Memcached::start();
    let agent = Agent::start_with(&["--token-file", &right]);
    let refused = run(&server, &agent, "").expect(1);
    assert!(refused.errors.contains("it showed no token"), "{}", refused.errors);
    assert!(agent.wait_for("it showed no token").starts_with("refused 127.0.0.1:"));
    let refused = run(&server, &agent, &format!("--agent-token-file {wrong}")).expect(1);
    assert!(refused.errors.contains("it showed a wrong token"), "{}", refused.errors);
    agent.wait_for("it showed a wrong token");
    assert_eq!(server.connect().stats().get("cmd_set"), 0);
    run(&server, &agent, &format!("--agent-token-file {right}")).expect(0);
    assert!(run(&server, &agent, "--agent-token-file /none").expect(2).errors.contains("/none"));
}

#[test]
fn with_tls_both_sides_show_their_certificates() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    for directory in ["ours", "theirs"] {
        let made = Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["agent", "cert", "--directory", &at(directory)])
            .output()
            .expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let again = Command::new(env!("CARGO_BIN_EXE_pummel"))
        .args(["agent", "cert", "--directory", &at("ours")])
        .output()
        .expect("it runs");
    assert_eq!(again.status.code(), Some(1), "what is there is not written over");
    let (cert, key, ca) = (at("ours/agent.pem"), at("ours/agent.key"), at("ours/ca.pem"));
    let agent = Agent::start_with(&["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &ca]);
    let server = Memcached::start();
    let with = |ca: &str, own: &str| {
        let (ca, cert, key) = (
            at(&format!("{ca}/ca.pem")),
            at(&format!("{own}/controller.pem")),
            at(&format!("{own}/controller.key")),
        );
        format!("--agent-tls-ca {ca} --agent-tls-cert {cert} --agent-tls-key {key}")
    };
    run(&server, &agent, &with("ours", "ours")).expect(0);
    let plain = run(&server, &agent, "").expect(1);
    assert!(plain.errors.contains(&format!("no agent at {}", agent.name)), "{}", plain.errors);
    assert!(agent.wait_for("no TLS as it is asked for").starts_with("refused 127.0.0.1:"));
    run(&server, &agent, &with("ours", "theirs")).expect(1);
    agent.wait_for("no TLS as it is asked for");
    run(&server, &agent, &with("theirs", "ours")).expect(1);
    // It serves on.
    run(&server, &agent, &with("ours", "ours")).expect(0);
}

#[test]
fn an_agent_that_is_open_to_all_does_not_start() {
    let agent = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_pummel")).arg("agent").args(words).output();
        let output = output.expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    for listen in ["0.0.0.0:0", "[::]:0", "10.0.0.1:5556"] {
        let (status, errors) = agent(&["--listen", listen]);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains("--listen") && errors.contains("--token-file"), "{errors}");
    }
    for (words, part) in [
        (vec!["--tls-cert", "x"], "only together"),
        (vec!["--tls-cert", "/x", "--tls-key", "/y", "--tls-ca", "/z"], "/x"),
        (vec!["--token-file", "/none"], "/none"),
        (vec!["--allow-target", "10.0.0.0/33"], "10.0.0.0/8"),
        (vec!["--listen", "here"], "--listen"),
    ] {
        let (status, errors) = agent(&words);
        assert_eq!(status, Some(2), "{words:?}: {errors}");
        assert!(errors.contains(part), "{words:?}: {errors}");
    }
}

#[test]
fn an_agent_sends_load_only_where_it_may() {
    let server = Memcached::start();
    let agent = Agent::start_with(&["--allow-target", "127.1.0.0/16"]);
    let refused = run(&server, &agent, "").expect(1);
    assert!(refused.errors.contains("nothing may be sent there"), "{}", refused.errors);
    agent.wait_for("nothing may be sent there");
    assert_eq!(server.connect().stats().get("cmd_set"), 0);
    // Without a token, loopback is all that there is.
    let agent = Agent::start();
    let words = format!("run -s 198.51.100.1:11211 -n 5 --agents {}", agent.name);
    assert!(pummel(&words).expect(1).errors.contains("198.51.100.1"));
    run(&server, &agent, "").expect(0);
}

#[test]
fn without_a_token_no_file_of_the_agents_machine_is_opened() {
    let folder = TempDir::new().expect("a folder");
    let secret = file(&folder, "secret", "a line that is nobody's business");
    let server = Memcached::start();
    let agent = Agent::start();
    let refused =
        run(&server, &agent, &format!("--protocol binary --user me --password-file {secret}")).expect(1);
    assert!(refused.errors.contains("opens none"), "{}", refused.errors);
}
