//! Why a run has nothing to report, and what a user can look at, by the plan and the words of the reason.

use std::fmt;

use pummel_logic::measure::completion::has_nothing_to_report;
use pummel_logic::measure::connections::Refusal;
use pummel_logic::measure::measurement::{Measurement, Status};
use pummel_logic::plan::{Plan, Protocol};

/// Why there is nothing to report. Shown as the reason, with the hint on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason, as results have it: a sentence without its full stop.
    pub reason: String,
    /// What a user can look at or change; `None` where the reason says it.
    pub hint: Option<String>,
}

impl Obstacle {
    /// The obstacle of a partial run of this plan that stored nothing and asked nothing that it measured, or whose server took
    /// fewer connections than it is measured with; `None` for all other runs, which have a report.
    pub fn of(plan: &Plan, measurement: &Measurement) -> Option<Obstacle> {
        let stored = measurement.load.as_ref().map_or(0, |load| load.stored);
        let requests: u64 = measurement.groups.iter().map(|group| group.ops.counts().requests()).sum();
        let reason = measurement.reason.as_ref()?;
        let connections = &measurement.connections;
        let refusal = connections.refusals.iter().find(|refusal| refusal.refused > 0);
        let is_short = refusal.is_some() && !plan.reconnect;
        let is_empty = has_nothing_to_report(plan, stored, requests) || is_short;
        let is_cut_off = connections.failed > 0 || connections.lost > 0;
        (measurement.status == Status::Partial && is_empty).then(|| Obstacle {
            reason: reason.clone(),
            hint: match refusal {
                Some(refusal) => Some(room_hint(plan, refusal)),
                None => hint_for(plan, reason, is_cut_off, measurement.detected.is_some()),
            },
        })
    }

    /// The reason with this hint.
    pub fn with_hint(reason: String, hint: impl Into<String>) -> Obstacle {
        Obstacle { reason, hint: Some(hint.into()) }
    }
}

/// An obstacle whose reason says what can be done.
impl From<String> for Obstacle {
    fn from(reason: String) -> Obstacle {
        Obstacle { reason, hint: None }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.reason)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(to, "\nhint: {hint}"))
    }
}

/// The hint for servers that require a login which the command line does not name.
pub fn login_hint(protocol: Protocol) -> String {
    let default = if protocol.is_resp() { "; where only a password is set, the user is default" } else { "" };
    format!("--user NAME, with --password-file FILE or PUMMEL_PASSWORD{default}")
}

/// The hint for servers that take fewer connections than they are asked for.
fn room_hint(plan: &Plan, refusal: &Refusal) -> String {
    let is_one = plan.servers.len() == 1 && plan.groups.len() == 1 && plan.lanes() == 1;
    let there = if plan.protocol.is_resp() { "a greater maxclients there" } else { "a greater -c there" };
    let here = match refusal.taken() {
        0 => return format!("{there}, or fewer connections of others"),
        taken if is_one && plan.churning_group().is_none() => format!("-c {taken} here"),
        _ => "fewer connections (-c) here".to_owned(),
    };
    match plan.reconnect {
        true => format!("{here}, or {there}"),
        false => format!("{here}, {there}, or --reconnect to run with what it takes"),
    }
}

/// What a user can look at in a run that ended for this reason; `None` where the reason says it. `is_cut_off`: a connection
/// could not be opened, or was lost. `is_detected`: the servers were found to speak the protocol of the plan.
fn hint_for(plan: &Plan, reason: &str, is_cut_off: bool, is_detected: bool) -> Option<String> {
    // The name of a server may hold any word.
    let reason = plan.servers.iter().fold(reason.to_owned(), |reason, server| reason.replace(server, ""));
    let has = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    let protocol = plan.protocol;
    if has(&["DENIED Redis is running in protected mode"]) {
        // Its words say what to do, and name passwords among other ways.
        return None;
    }
    if has(LOGIN_WORDS) && !has(&["certificate", "TLS"]) && plan.login.is_none() {
        return Some(login_hint(protocol));
    }
    if has(&["NOPERM"]) && plan.login.is_some() {
        return Some("the server's ACL has to let this user run the commands of the load".to_owned());
    }
    if has(&["longer than the timeout"]) && !plan.uses_datagrams() {
        if is_detected {
            return Some("--timeout sets how long a request may take".to_owned());
        }
        let name = protocol.name();
        return Some(format!(
            "does the server speak {name}? --protocol auto finds out what it speaks; --timeout sets how long a request may take"
        ));
    }
    let hint = if has(&["not valid for the name"]) {
        "--tls-server-name sets the name that the certificate has to hold"
    } else if has(&["certificate"]) {
        "is --tls-ca the authority that signed the server's certificate?"
    } else if has(&["the reply looks like TLS"]) {
        "this port speaks TLS: --tls is for ports that do"
    } else if has(&["the reply looks like HTTP"]) {
        PORTS
    } else if !is_detected && has(FOREIGN_WORDS) {
        "--protocol auto finds out what the server speaks; --protocol text, meta, binary, resp2 or resp3 names it"
    } else if has(&["TLS"]) {
        "does this port speak TLS? --tls is for ports that do"
    } else if has(LOGIN_WORDS) {
        "are --user and the password right? PUMMEL_PASSWORD or --password-file gives the password"
    } else if protocol == Protocol::Binary && plan.login.is_some() && has(&["Unknown command"]) {
        "this server has no SASL, and takes requests without --user"
    } else if has(&["object too large", "Too large"]) {
        "memcached takes no larger values than its -I allows: a smaller --value-size, or a greater -I"
    } else if plan.uses_datagrams() && !has(&["-U"]) && has(&["refused", "longer than the timeout"]) {
        "memcached listens on UDP only with -U"
    } else if is_cut_off && has(ABSENT_WORDS) {
        PORTS
    } else if !is_detected && plan.tls.is_none() && has(CLOSED_WORDS) {
        "does the server expect TLS (--tls), or another protocol? --protocol auto finds out what it speaks"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

/// The hint for servers that are not there, and for ports of other servers.
const PORTS: &str =
    "is the server running, and is this its port? memcached listens on 11211 by default, Redis on 6379";

/// Words of servers that want a login, or another one.
const LOGIN_WORDS: &[&str] =
    &["WRONGPASS", "NOAUTH", "NOPERM", "password", "authenticat", "Auth failure", "login"];

/// Words for replies of another protocol than the plan's.
const FOREIGN_WORDS: &[&str] = &[
    "the reply looks like ",
    "a reply begins with a byte that",
    "a reply line begins with a",
    "a number is followed by words",
    "a binary reply does not begin with its magic byte",
];

/// Words for servers that cannot be reached.
const ABSENT_WORDS: &[&str] = &["refused", "timed out", "in time", "unreachable", "No route", "No such file"];

/// Words for connections that a server closed: the system's, where requests were on their way.
const CLOSED_WORDS: &[&str] = &["the server closed the connection", "reset by peer", "Broken pipe"];

#[cfg(test)]
mod tests {
    use pummel_logic::measure::measurement::LoadResult;
    use pummel_logic::plan::{Clock, Load, Login, Mix, Phase, Stop, Work};
    use pummel_logic::protocol::Verb;

    use super::*;

    fn phase(work: Work, recorded: bool) -> Phase {
        Phase { name: String::new(), work, stop: Stop::default(), recorded }
    }

    /// A run in this protocol that was to store ten records before it measured.
    fn plan(protocol: Protocol) -> Plan {
        let load = phase(Work::Load(Load::default()), false);
        let mix = phase(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), true);
        Plan { protocol, phases: vec![load, mix], ..Plan::default() }
    }

    /// A partial run that stored so many of its records.
    fn partial(reason: &str, stored: u64) -> Measurement {
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, 1);
        measurement.load = Some(LoadResult { records: 10, stored, ..LoadResult::default() });
        measurement.mark(Status::Partial, reason);
        measurement
    }

    /// The hint of a run that could not store anything for this reason, and whose connections were lost.
    fn hint(plan: &Plan, reason: &str) -> String {
        let mut measurement = partial(reason, 0);
        measurement.connections.lost = 1;
        Obstacle::of(plan, &measurement).expect("nothing was measured").hint.unwrap_or_default()
    }

    #[test]
    fn a_run_that_stored_something_or_was_interrupted_has_a_report() {
        let plan = plan(Protocol::Text);
        let obstacle =
            Obstacle::of(&plan, &partial("none of 10 records was stored", 0)).expect("an obstacle");
        assert_eq!((obstacle.to_string().as_str(), obstacle.hint), ("none of 10 records was stored", None));
        assert_eq!(Obstacle::of(&plan, &partial("9 of 10 records were not stored", 1)), None);
        let mut interrupted = partial("a server went away", 0);
        interrupted.mark(Status::Interrupted, "interrupted");
        assert_eq!(Obstacle::of(&plan, &interrupted), None);
    }

    #[test]
    fn a_run_that_its_server_gave_fewer_connections_has_no_report_unless_it_asked_to_go_on() {
        let mut plan = plan(Protocol::Text);
        plan.servers = vec!["a:1".to_owned()];
        let refusal = |refused| Refusal { connections: 64, refused, attempts: refused, ..Refusal::default() };
        let mut measurement = partial("a:1 took 15 of 64 connections and refused 49", 1);
        measurement.connections.refusals = vec![refusal(49)];
        let hint = |plan: &Plan, measurement: &Measurement| Obstacle::of(plan, measurement)?.hint;
        let expected = "-c 15 here, a greater -c there, or --reconnect to run with what it takes";
        assert_eq!(hint(&plan, &measurement).as_deref(), Some(expected));
        plan.protocol = Protocol::Resp2;
        plan.servers.push("b:1".to_owned());
        let expected = "fewer connections (-c) here, a greater maxclients there, or --reconnect to run with what it takes";
        assert_eq!(hint(&plan, &measurement).as_deref(), Some(expected));
        plan.reconnect = true;
        assert_eq!(Obstacle::of(&plan, &measurement), None, "it ran with what the server takes");
        plan.reconnect = false;
        measurement.connections.refusals = vec![refusal(0)];
        assert_eq!(Obstacle::of(&plan, &measurement), None, "all were taken at last");
        measurement.connections.refusals = vec![refusal(64)];
        let none = "a greater maxclients there, or fewer connections of others";
        assert_eq!(hint(&plan, &measurement).as_deref(), Some(none));
    }

    #[test]
    fn each_hint_follows_from_what_the_reason_says() {
        let text = plan(Protocol::Text);
        for (reason, words) in [
            (
                "the reply looks like RESP (Redis, Valkey), not like memcached's text protocol",
                "--protocol auto",
            ),
            ("a reply line begins with a word that the protocol does not know", "--protocol auto"),
            ("the reply looks like HTTP, not like memcached's text protocol", "is this its port"),
            ("the reply looks like TLS, and this connection has none", "this port speaks TLS"),
            ("the server's certificate is not valid for the name 'a': it is for b", "--tls-server-name"),
            ("the server's certificate is signed by nobody known", "--tls-ca"),
            ("the server said \"SERVER_ERROR object too large for cache\" (20 times)", "--value-size"),
            ("a:1: the server closed the connection", "--tls"),
            ("a:1: Connection reset by peer (os error 104)", "--tls"),
            ("a:1: a request took longer than the timeout", "does the server speak text?"),
            ("a:1: Connection refused (os error 111); nothing listens there", "is the server running"),
            ("the server said \"SERVER_ERROR out of memory\" (2 times)", ""),
            ("nothing completed: no request was due", ""),
            (
                "a:1: the server refuses this client: it said \"-DENIED Redis is running in protected mode because no password\"",
                "",
            ),
            (
                "the server sent what the protocol does not allow (a number is followed by words): \"220 mail\"",
                "--protocol auto",
            ),
        ] {
            let hint = hint(&text, reason);
            assert!(hint.contains(words) && hint.is_empty() == words.is_empty(), "{reason}: {hint}");
        }
        let absent = partial("cannot read 'x': No such file or directory", 0);
        assert_eq!(Obstacle::of(&text, &absent).expect("an obstacle").hint, None, "no server is absent");
    }

    #[test]
    fn a_login_that_is_missing_is_told_apart_from_one_that_is_wrong() {
        let said = "the server said \"NOAUTH Authentication required.\" (100 times)";
        let mut plan = plan(Protocol::Resp2);
        assert_eq!(hint(&plan, said), login_hint(Protocol::Resp2));
        plan.login = Some(Login { user: "joe".to_owned(), password_file: None });
        assert!(hint(&plan, "the server said: WRONGPASS invalid username").contains("password right"));
        assert_eq!(hint(&plan, "the server said: Unknown command"), "");
        plan.protocol = Protocol::Binary;
        assert!(hint(&plan, "the server said: Unknown command").contains("without --user"));
        assert!(!login_hint(Protocol::Text).contains("default"));
    }
}
