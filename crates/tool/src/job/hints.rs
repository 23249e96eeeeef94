//! Why a run has nothing to report, and what a user can look at, by the plan and the words of the reason.

use std::fmt;

use pummel_logic::plan::{Plan, Protocol};
use pummel_measure::completion::has_nothing_to_report;
use pummel_measure::connections::Refusal;
use pummel_measure::measurement::{Measurement, Status};

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
        let refusal = measurement.connections.refusals.iter().find(|refusal| refusal.refused > 0);
        let is_short = refusal.is_some() && !plan.reconnect;
        let is_empty = has_nothing_to_report(plan, stored, requests) || is_short;
        (measurement.status == Status::Partial && is_empty).then(|| Obstacle {
            reason: reason.to_string(),
            hint: match refusal {
                Some(refusal) => Some(room_hint(plan, refusal)),
                None => hint_for(plan, reason, Seen::of(plan, measurement, reason)),
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

/// The hint for a server that cannot be reached for this reason; `None` where the reason says it.
pub fn absent_hint(reason: &str) -> Option<&'static str> {
    ABSENT_WORDS.iter().any(|word| reason.contains(word)).then_some(PORTS)
}

/// What the run saw of the servers that its reason is about, which no hint may call into question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// A connection could not be opened, or was lost.
    is_cut_off: bool,
    /// A connection was opened, with TLS to the end of its handshake.
    has_opened: bool,
    /// A server answered in the protocol of the plan: it was found to speak it, or told its statistics.
    has_answered: bool,
    /// The servers were found to speak the protocol of the plan before the run.
    is_detected: bool,
}

impl Seen {
    /// What a run saw of the servers that the reason of its end names, or of all where it names none.
    fn of(plan: &Plan, measurement: &Measurement, reason: &str) -> Seen {
        let connections = &measurement.connections;
        let named: Vec<usize> = (0..plan.servers.len())
            .filter(|&number| reason.contains(&format!("{}: ", plan.servers[number])))
            .collect();
        let opened_at = |number: &usize| {
            connections.connect_by_server.get(*number).is_some_and(|times| times.count() > 0)
        };
        let has_opened = match named.is_empty() || connections.connect_by_server.is_empty() {
            true => connections.connect.count() > 0,
            false => named.iter().any(opened_at),
        };
        let servers = measurement.evidence.iter().flat_map(|evidence| &evidence.servers);
        let is_meant = |address: &String| {
            named.is_empty() || named.iter().any(|&number| plan.servers[number] == *address)
        };
        let is_detected = measurement.detected.is_some();
        let has_told =
            servers.into_iter().any(|server| server.reading.is_some() && is_meant(&server.address));
        Seen {
            is_cut_off: connections.failed > 0 || connections.lost > 0,
            has_opened,
            has_answered: is_detected || has_told,
            is_detected,
        }
    }
}

/// What a user can look at in a run that ended for this reason; `None` where the reason says it, and where what the run saw
/// leaves no question.
fn hint_for(plan: &Plan, reason: &str, seen: Seen) -> Option<String> {
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
        if seen.has_answered {
            return Some("--timeout sets how long a request may take".to_owned());
        }
        let name = protocol.name();
        return Some(format!(
            "does the server speak {name}? --protocol auto finds out what it speaks; --timeout sets how long a request may take"
        ));
    }
    let hint = if has(&["certificate", "TLS"]) && !has(&["the reply looks like"]) {
        return tls_hint(has, seen).map(str::to_owned);
    } else if has(&["the reply looks like TLS"]) {
        "this port speaks TLS: --tls is for ports that do"
    } else if has(&["the reply looks like HTTP"]) {
        PORTS
    } else if !seen.is_detected && has(FOREIGN_WORDS) {
        "--protocol auto finds out what the server speaks; --protocol text, meta, binary, resp2 or resp3 names it"
    } else if has(LOGIN_WORDS) {
        "are --user and the password right? PUMMEL_PASSWORD or --password-file gives the password"
    } else if protocol == Protocol::Binary && plan.login.is_some() && has(&["Unknown command"]) {
        "this server has no SASL, and takes requests without --user"
    } else if has(&["object too large", "Too large"]) {
        "memcached takes no larger values than its -I allows: a smaller --value-size, or a greater -I"
    } else if plan.uses_datagrams() && !has(&["-U"]) && has(&["refused", "longer than the timeout"]) {
        "memcached listens on UDP only with -U"
    } else if seen.has_opened && has(GONE_WORDS) {
        "the server took connections earlier in this run: did it end, or start anew?"
    } else if seen.has_opened && has(LATE_WORDS) {
        FULL
    } else if seen.is_cut_off && !seen.has_opened && has(ABSENT_WORDS) {
        PORTS
    } else if !seen.has_answered && plan.tls.is_none() && has(CLOSED_WORDS) {
        "does the server expect TLS (--tls), or another protocol? --protocol auto finds out what it speaks"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

/// What a user can look at where TLS failed; `has` says whether the reason has one of these words.
fn tls_hint(has: impl Fn(&[&str]) -> bool, seen: Seen) -> Option<&'static str> {
    let hint = if has(&["not valid for the name"]) {
        "--tls-server-name sets the name that the certificate has to hold"
    } else if has(&["certificate of the client", "client's certificate", "certificate of it"]) {
        "--tls-cert and --tls-key give the certificate of the client and its key"
    } else if has(UNTRUSTED_WORDS) {
        "is --tls-ca the authority that signed the server's certificate?"
    } else if has(&["does not speak TLS"]) {
        "--tls is for ports that speak TLS"
    } else if has(&["TLS handshake in time"]) {
        match seen.has_opened {
            true => "the server completed other TLS handshakes; --timeout sets how long one may take",
            false => {
                "does this port speak TLS? --tls is for ports that do; --timeout sets how long a handshake may take"
            }
        }
    } else if has(&["the connection in the TLS handshake"]) {
        match seen.has_opened {
            true => FULL,
            false => "does this port speak TLS? --tls is for ports that do",
        }
    } else {
        return None;
    };
    Some(hint)
}

/// The hint for servers that are not there, and for ports of other servers.
const PORTS: &str =
    "is the server running, and is this its port? memcached listens on 11211 by default, Redis on 6379";

/// The hint for servers that took some of the connections of a run and not all.
const FULL: &str = "the server took other connections of this run: is it at its limit (memcached -c, maxclients of Redis)? \
                    --timeout sets how long a connection may take to open";

/// Words for certificates that no authority of this run has signed.
const UNTRUSTED_WORDS: &[&str] =
    &["authority that is not trusted", "authority that it names", "itself that of an authority"];

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

/// Those of the words for servers at whose address nothing listens.
const GONE_WORDS: &[&str] = &["refused", "No such file"];

/// Those of the words for servers that may be there, and let a connection wait.
const LATE_WORDS: &[&str] = &["timed out", "in time"];

/// Words for connections that a server closed: the system's, where requests were on their way.
const CLOSED_WORDS: &[&str] = &["the server closed the connection", "reset by peer", "Broken pipe"];

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Clock, Group, Load, Login, Mix, Phase, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_measure::histogram::CoarseHistogram;
    use pummel_measure::measurement::LoadResult;

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
        plan.groups = vec![Group { clients: 64, ..Group::default() }];
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
            ("the server's certificate was signed by an authority that is not trusted here", "--tls-ca"),
            ("the server's certificate has expired 3 days ago", ""),
            ("the server refused the TLS handshake: it wants a certificate of the client", "--tls-cert"),
            ("the server and this client have no version or cipher of TLS in common (x)", ""),
            ("the server does not speak TLS: it answered \"ERROR\"", "--tls is for ports that"),
            ("the server closed the connection in the TLS handshake", "does this port speak TLS?"),
            (
                "the server took the connection and did not complete the TLS handshake in time",
                "does this port speak TLS?",
            ),
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
    fn no_hint_calls_into_question_what_the_run_has_seen() {
        let text = plan(Protocol::Text);
        let hint = |reason: &str, seen: Seen| hint_for(&text, reason, seen).unwrap_or_default();
        let none = Seen { is_cut_off: true, ..Seen::default() };
        let opened = Seen { has_opened: true, ..none };
        let answered = Seen { has_answered: true, ..opened };
        let late = "44 of 500 connections failed: a:1: the server took the connection and did not complete the TLS handshake \
                    in time";
        for (reason, without, with) in [
            (late, "does this port speak TLS?", "other TLS handshakes; --timeout"),
            ("a:1: the server closed the connection in the TLS handshake", "speak TLS?", "at its limit"),
            ("a:1: the server did not answer in time", "is the server running", "at its limit"),
            ("a:1: Connection timed out (os error 110)", "is the server running", "at its limit"),
            (
                "a:1: Connection refused (os error 111); nothing listens there",
                "is the server running",
                "did it end",
            ),
        ] {
            for (seen, words, other) in [(none, without, with), (opened, with, without)] {
                let said = hint(reason, seen);
                assert!(said.contains(words) && !said.contains(other), "{reason}: {said}");
            }
        }
        for (reason, with) in [
            ("a:1: a request took longer than the timeout", "--timeout sets how long a request may take"),
            ("a:1: the server closed the connection", ""),
        ] {
            assert!(hint(reason, opened).contains("--protocol auto"), "{reason}");
            assert_eq!(hint(reason, answered), with, "{reason}");
        }
    }

    #[test]
    fn what_was_seen_is_that_of_the_servers_that_the_reason_names() {
        let plan = Plan { servers: vec!["a:1".to_owned(), "b:1".to_owned()], ..plan(Protocol::Text) };
        let mut measurement = partial("", 0);
        measurement.connections.connect.record(1_000);
        let mut times = CoarseHistogram::default();
        times.record(1_000);
        measurement.connections.connect_by_server = vec![CoarseHistogram::default(), times];
        let has_opened = |reason: &str| Seen::of(&plan, &measurement, reason).has_opened;
        assert!(!has_opened("1 of 2 connections failed: a:1: the server did not answer in time"));
        assert!(has_opened("1 of 2 connections failed: b:1: the server did not answer in time"));
        assert!(has_opened("1 of 2 connections failed"));
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
