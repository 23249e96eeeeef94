//! Guards of an agent: tokens, certificates, targets.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::agent::Agent;
use crate::common::{Ended, Memcached, Place, pummel, until};
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
    let unread = run(&server, &agent, "--agent-token-file /none").expect(2);
    assert!(unread.errors.contains("--agent-token-file: '/none' cannot be read"), "{}", unread.errors);
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
    assert!(plain.errors.contains(&agent.name), "{}", plain.errors);
    assert!(plain.errors.contains("this agent was started with --tls-cert"), "{}", plain.errors);
    assert!(agent.wait_for("no TLS as it is asked for").starts_with("refused 127.0.0.1:"));
    let foreign = run(&server, &agent, &with("ours", "theirs")).expect(1);
    assert!(foreign.errors.contains("received fatal alert"), "{}", foreign.errors);
    let open = Agent::start();
    let encrypted = run(&server, &open, &with("ours", "ours")).expect(1);
    assert!(encrypted.errors.contains("received fatal alert: HandshakeFailure"), "{}", encrypted.errors);
    open.wait_for("this agent was started without --tls-cert");
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

/// A server that answers nothing and keeps what it was sent.
struct Listening {
    name: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Listening {
    fn start() -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let name = listener.local_addr().expect("it is bound").to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || keep_all(stream, &kept));
            }
        });
        Listening { name, heard }
    }

    fn heard(&self, words: &str) -> bool {
        let heard = self.heard.lock().expect("no thread panics");
        String::from_utf8_lossy(&heard).contains(words)
    }

    /// Waits until its threads have read these words, which may be after the end of the run that said them.
    #[track_caller]
    fn wait_for(&self, words: &str) {
        until(words, || self.heard(words).then_some(()));
    }
}

fn keep_all(mut stream: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        kept.lock().expect("no thread panics").extend_from_slice(&bytes[..read]);
    }
}

fn agent_with_password(args: &[&str]) -> Agent {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.args(["agent", "--listen", "127.0.0.1:0"]).args(args).env("PUMMEL_PASSWORD", "agents-own-word");
    Agent::of(command)
}

#[test]
fn without_a_token_an_agents_own_password_goes_nowhere() {
    let folder = TempDir::new().expect("a folder");
    let token = file(&folder, "token", "sesame");
    let words = "-c 1 -n 1 --protocol resp2 --user default --timeout 300ms --agents-timeout 500ms";
    let target = Listening::start();
    let agent = agent_with_password(&[]);
    let refused = pummel(&format!("run -s {} {words} --agents {}", target.name, agent.name)).expect(1);
    assert!(!target.heard("agents-own-word"));
    assert!(refused.errors.contains("PUMMEL_PASSWORD"), "{}", refused.errors);
    assert!(refused.errors.contains("--token-file"), "{}", refused.errors);
    agent.wait_for("PUMMEL_PASSWORD");
    // An agent that knows its controllers logs in with the password that it was given for that.
    let agent = agent_with_password(&["--token-file", &token]);
    let words = format!("run -s {} {words} --agents {} --agent-token-file {token}", target.name, agent.name);
    pummel(&words);
    target.wait_for("agents-own-word");
}

#[test]
fn without_a_token_an_agent_connects_to_no_unix_socket() {
    let folder = TempDir::new().expect("a folder");
    let token = file(&folder, "token", "sesame");
    let server = Memcached::start_on(Place::Unix);
    let agent = Agent::start();
    let mut talk = server.connect();
    let before = talk.stats().get("total_connections");
    let refused = run(&server, &agent, "").expect(1);
    assert!(refused.errors.contains("unix socket"), "{}", refused.errors);
    assert!(refused.errors.contains("--token-file"), "{}", refused.errors);
    agent.wait_for("unix socket");
    assert_eq!(talk.stats().get("total_connections"), before);
    let agent = Agent::start_with(&["--token-file", &token]);
    run(&server, &agent, &format!("--agent-token-file {token}")).expect(0);
}

#[test]
fn files_that_a_plan_names_are_read_only_below_a_directory_that_is_allowed() {
    let folder = TempDir::new().expect("a folder");
    let token = file(&folder, "token", "sesame");
    let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
    fs::create_dir(&inside).expect("a folder");
    fs::create_dir(&outside).expect("a folder");
    let path = |path: PathBuf| path.to_str().expect("UTF-8").to_owned();
    let write = |path: &PathBuf| fs::write(path, "a-line-of-the-file\n").expect("it is written");
    write(&inside.join("open"));
    write(&outside.join("secret"));
    symlink(outside.join("secret"), inside.join("link")).expect("a link");
    symlink(&outside, inside.join("folder")).expect("a link");
    let fifo = inside.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
    let allowed = path(inside.clone());
    let target = Listening::start();
    let ask = |agent: &Agent, options: &str| {
        pummel(&format!(
            "run -s {} -c 1 -n 1 --protocol resp2 --user default --timeout 300ms --agents-timeout 500ms --agents {} \
             --agent-token-file {token} {options}",
            target.name, agent.name
        ))
    };
    let none = Agent::start_with(&["--token-file", &token]);
    let some = Agent::start_with(&["--token-file", &token, "--allow-file", &allowed]);
    let refused = [
        (&none, inside.join("open")),
        (&some, outside.join("secret")),
        (&some, outside.join("none")),
        (&some, inside.join("link")),
        (&some, inside.join("folder/secret")),
        (&some, inside.join("../outside/secret")),
        (&some, PathBuf::from("/etc/passwd")),
    ];
    for (agent, named) in refused {
        let named = path(named);
        let run = ask(agent, &format!("--password-file {named}")).expect(1);
        assert!(
            run.errors.contains("--allow-file") && run.errors.contains(&named),
            "{named}: {}",
            run.errors
        );
    }
    let run = ask(&some, &format!("--password-file {}", path(fifo))).expect(1);
    assert!(run.errors.contains("no regular file"), "{}", run.errors);
    assert!(!target.heard("AUTH") && !target.heard("a-line"));
    let secret = path(outside.join("secret"));
    for options in
        [format!("--tls --tls-ca {secret}"), format!("--tls --tls-cert {secret} --tls-key {secret}")]
    {
        let words = format!(
            "run -s {} -c 1 -n 1 --agents {} --agent-token-file {token} {options}",
            target.name, some.name
        );
        let run = pummel(&words).expect(1);
        assert!(run.errors.contains("--allow-file"), "{options}: {}", run.errors);
    }
    ask(&some, &format!("--password-file {}", path(inside.join("open"))));
    target.wait_for("a-line-of-the-file");
}
