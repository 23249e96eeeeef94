//! Logins of every protocol, with the servers that ask for them.

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::common::redis::Redis;
use crate::common::{Ended, Memcached, Running, pummel};
use tempfile::TempDir;

/// Files with passwords.
struct Passwords(TempDir);

impl Passwords {
    fn new() -> Passwords {
        Passwords(TempDir::new().expect("a temporary folder"))
    }

    fn file(&self, password: &str) -> String {
        let path = self.0.path().join(password);
        std::fs::write(&path, format!("{password}\n")).expect("it is writable");
        path.display().to_string()
    }

    /// A run as a user with a password.
    fn run(&self, server: &str, protocol: &str, user: &str, password: &str) -> Ended {
        let file = self.file(password);
        pummel(&format!(
            "run -s {server} --protocol {protocol} --no-baseline -n 5000 -c 5 -d 4 --records 500 --verify --quiet --mix get:3,set:1 \
             --user {user} --password-file {file}"
        ))
    }
}

/// A run that was not let in: the server's words are the reason, nothing was asked, and no password is written.
#[track_caller]
fn assert_refused(ended: Ended, words: &str, password: &str) {
    let ended = ended.expect(1);
    let result = ended.json();
    let reason = result.text("reason");
    assert!(reason.contains(words), "{reason}");
    assert_eq!(result.count("totals/requests"), 0);
    let loaded = result.at("load/stored").as_u64().unwrap_or(0);
    assert_eq!(loaded, 0, "nothing is stored");
    let written = format!("{}{}", ended.text, ended.errors);
    assert!(!written.contains(password), "no password stands in a report: {written}");
}

/// Asserts that memcached counted what a run says.
#[track_caller]
fn assert_counted(ended: Ended, stats: &crate::common::Stats) {
    let result = ended.expect(0).json();
    let of = |path: &str| result.count(&format!("whole_run/ops/{path}"));
    assert_eq!(of("get/keys"), stats.get("cmd_get"));
    assert_eq!(of("get/hits"), stats.get("get_hits"));
    assert_eq!(of("set/completed"), stats.get("cmd_set"));
    assert_eq!(result.count("totals/errors") + result.count("verify/failed"), 0);
}

#[test]
fn sasl_lets_the_user_in_with_the_password_and_not_without() {
    let passwords = Passwords::new();
    let server = Memcached::start_sasl("joe", "joespassword");
    let refused = |user: &str, password: &str| {
        assert_refused(passwords.run(&server.name, "binary", user, password), "Auth failure", password);
    };
    refused("joe", "wrongone");
    refused("ann", "joespassword");
    let stats = || server.connect().sasl_stats("joe", "joespassword");
    assert_eq!(stats().get("cmd_set"), 0, "nothing was stored");
    let ended = passwords.run(&server.name, "binary", "joe", "joespassword");
    assert_counted(ended, &stats());
}

#[test]
fn a_file_of_users_lets_the_user_in_with_the_password_and_not_without() {
    let passwords = Passwords::new();
    for protocol in ["text", "meta"] {
        let server = Memcached::start_with_users("joe", "joespassword");
        let refused = |user: &str, password: &str| {
            let ended = passwords.run(&server.name, protocol, user, password);
            assert_refused(ended, "CLIENT_ERROR authentication failure", password);
        };
        refused("joe", "wrongone");
        refused("ann", "joespassword");
        let mut second = server.connect();
        second.log_in("joe", "joespassword");
        assert_eq!(second.stats().get("cmd_set"), 0, "nothing was stored");
        let ended = passwords.run(&server.name, protocol, "joe", "joespassword");
        assert_counted(ended, &second.stats());
    }
}

#[test]
fn redis_lets_its_users_in_with_their_passwords_and_not_without() {
    let passwords = Passwords::new();
    let server = Redis::start(&["--requirepass", "defaultword"]);
    server.say("AUTH defaultword\r\nACL SETUSER joe on >joespassword ~* +@all");
    server.say("AUTH defaultword\r\nACL SETUSER reader on >readersword ~* +@read +@connection");
    for protocol in ["resp2", "resp3"] {
        let run = |user: &str, password: &str| passwords.run(&server.name(), protocol, user, password);
        for (user, password) in [("default", "defaultword"), ("joe", "joespassword")] {
            let result = run(user, password).expect(0).json();
            assert_eq!(result.count("load/stored"), 500, "{user} by {protocol}");
            assert_eq!(result.count("totals/completed"), 5_000);
        }
        for (user, password) in [("default", "wrongone"), ("joe", "wrongone"), ("ann", "joespassword")] {
            assert_refused(run(user, password), "WRONGPASS", password);
        }
        // Who may only read comes in, and is told what else is not allowed.
        let ended = run("reader", "readersword");
        assert_eq!(ended.json().count("load/stored"), 0);
        assert!(ended.errors.contains("NOPERM") && ended.errors.contains("'set'"), "{}", ended.errors);
    }
}

#[test]
fn who_does_not_log_in_is_told_to() {
    let server = Redis::start(&["--requirepass", "defaultword"]);
    for protocol in ["resp2", "resp3"] {
        let words = format!("run -s {} --protocol {protocol} -n 100 --records 50 --quiet", server.name());
        let ended = pummel(&words).expect(1);
        let said = &ended.errors;
        assert!(
            said.contains("NOAUTH") && said.contains("hint: --user NAME, with --password-file"),
            "{said}"
        );
        assert_eq!(ended.text, "", "{protocol}");
    }
}

#[test]
fn a_server_without_sasl_is_told_from_one_that_refuses_a_login() {
    let (server, passwords) = (Memcached::start(), Passwords::new());
    let ended = passwords.run(&server.name, "binary", "joe", "joespassword").expect(1);
    assert!(ended.errors.contains("hint: this server has no SASL"), "{}", ended.errors);
}

#[test]
fn a_login_that_the_server_would_store_as_an_item_is_not_sent() {
    let (server, passwords) = (Memcached::start(), Passwords::new());
    let file = passwords.file("joespassword");
    let items = || server.connect().stats().get("total_items");
    for protocol in ["text", "meta", "auto"] {
        let login =
            format!("-s {} --protocol {protocol} --user joe --password-file {file} --quiet", server.name);
        for words in [
            format!("run {login} -n 100 --records 50"),
            format!("run {login} -n 100 -c 4 --no-load --calls-per-connection 5"),
            format!("run {login} -n 100 -c 4 --records 50 --reconnect"),
            format!("load {login} --records 50"),
        ] {
            let ended = pummel(&words).expect(1);
            let said = &ended.errors;
            assert!(said.contains("demands no login and would store the user and the password"), "{said}");
            assert!(
                said.contains("hint: leave out --user; memcached demands a login if") && said.contains("-Y"),
                "{said}"
            );
            assert!(!said.contains("joespassword") && !ended.text.contains("joespassword"), "{said}");
            assert_eq!(items(), 0, "{words}");
        }
    }
}

#[test]
fn a_login_is_not_sent_to_what_does_not_say_that_it_demands_one() {
    let passwords = Passwords::new();
    let redis = Redis::start(&[]);
    let ended = passwords.run(&redis.name(), "text", "joe", "joespassword").expect(1);
    let said = &ended.errors;
    assert!(
        said.contains("did not say that it demands a login") && said.contains("--protocol auto"),
        "{said}"
    );
    let ended = passwords.run("127.0.0.1:1", "text", "joe", "joespassword").expect(1);
    let said = &ended.errors;
    assert!(said.contains("nothing listens there") && said.contains("hint: is the server running"), "{said}");
}

#[test]
fn an_interrupt_ends_the_question_whether_a_login_is_demanded_and_no_login_is_sent() {
    let passwords = Passwords::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let run = Running::start(&format!(
        "run -s {address} --protocol text -n 100 --timeout 60s --quiet --user joe --password-file {}",
        passwords.file("joespassword")
    ));
    let (mut asked, _) = silent.accept().expect("the question's connection");
    let mut question = [0; 9];
    asked.read_exact(&mut question).expect("a question");
    assert_eq!(&question, b"version\r\n");
    let interrupted = Instant::now();
    run.process.interrupt();
    let ended = run.end().expect(130);
    assert!(interrupted.elapsed() < Duration::from_secs(20), "{:?}", interrupted.elapsed());
    assert_eq!(ended.json().text("status"), "interrupted");
    let mut rest = Vec::new();
    asked.read_to_end(&mut rest).expect("the end of the connection");
    assert_eq!(rest, b"");
}

/// Clients that come and go and are not let in: each is counted once, and the run ends with the server's words.
#[track_caller]
fn assert_turned_away(words: &str, reason: &str) {
    for births in ["--calls-per-connection 5", "--conn-rate 1k --calls-per-connection 5"] {
        let result = pummel(&format!("run {words} {births} -n 100 -c 4 --no-load --quiet")).expect(1).json();
        assert!(result.text("reason").contains(reason), "{}", result.text("reason"));
        let of = |path: &str| result.count(&format!("connections/churn/{path}"));
        assert_eq!((of("clients"), of("established"), of("failures/other")), (20, 0, 20), "{words} {births}");
        assert_eq!(result.count("totals/unsent"), 100);
    }
}

#[test]
fn clients_that_come_and_go_are_turned_away_one_by_one() {
    let passwords = Passwords::new();
    let file = passwords.file("wrongone");
    let memcached = Memcached::start_with_users("joe", "joespassword");
    for protocol in ["text", "meta"] {
        let login = format!("-s {} --protocol {protocol} --user joe --password-file {file}", memcached.name);
        assert_turned_away(&login, "authentication failure");
    }
    let redis = Redis::start(&["--requirepass", "defaultword"]);
    for protocol in ["resp2", "resp3"] {
        let login =
            format!("-s {} --protocol {protocol} --user default --password-file {file}", redis.name());
        assert_turned_away(&login, "WRONGPASS");
    }
    let redis = Redis::start(&[]);
    for protocol in ["resp2", "resp3"] {
        let words = format!("-s {} --protocol {protocol} --database 99", redis.name());
        assert_turned_away(&words, "DB index is out of range");
    }
}

#[test]
fn a_redis_that_is_full_lets_some_clients_in_and_turns_the_others_away() {
    let redis = Redis::start(&["--maxclients", "2"]);
    for protocol in ["resp2", "resp3"] {
        let words = "-n 2000 -c 8 --calls-per-connection 5 --no-load --quiet --mix get:1";
        let ended = pummel(&format!("run -s {} --protocol {protocol} {words}", redis.name())).expect(1);
        let result = ended.json();
        assert!(result.text("reason").contains("connections failed"), "{}", result.text("reason"));
        let of = |path: &str| result.count(&format!("connections/churn/{path}"));
        assert_eq!((of("clients"), of("ended")), (400, 400), "{protocol}");
        let totals = |path: &str| result.count(&format!("totals/{path}"));
        assert!(totals("completed") > 0, "{protocol}");
        assert_eq!(totals("completed") + totals("errors") + totals("unsent"), 2_000, "{protocol}");
    }
}
