//! Why a run has nothing to report, and what a user can look at, by the plan, the first failure of a connection and what servers said.

use std::fmt;

use pummel_logic::plan::{Plan, Protocol};
use pummel_logic::protocol::ServerError;
use pummel_measure::completion::has_nothing_to_report;
use pummel_measure::connections::{FirstTrouble, Refusal, TlsTrouble, TroubleKind};
use pummel_measure::measurement::{Measurement, Status};
use pummel_report::words::reason;

/// Why there is nothing to report. Shown as the reason, with the hint on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The reason, as results have it: a sentence without its full stop.
    pub reason: String,
    /// The reason as users read it, where all connections failed for one cause; `None` where results say it.
    pub shown: Option<String>,
    /// What a user can look at or change; `None` where the reason says it.
    pub hint: Option<String>,
}

impl Obstacle {
    /// The obstacle of a partial run of this plan that stored nothing and asked nothing that it measured, or whose server took
    /// fewer connections than it is measured with; `None` for all other runs, which have a report.
    pub fn of(plan: &Plan, measurement: &Measurement) -> Option<Obstacle> {
        let stored = measurement.load.as_ref().map_or(0, |load| load.stored);
        let requests: u64 = measurement.groups.iter().map(|group| group.ops.counts().requests()).sum();
        let reason = reason::reason(measurement.reason.as_ref()?);
        let refusal = measurement.connections.refusals.iter().find(|refusal| refusal.refused > 0);
        let is_short = refusal.is_some() && !plan.reconnect;
        let is_empty = has_nothing_to_report(plan, stored, requests) || is_short;
        (measurement.status == Status::Partial && is_empty).then(|| Obstacle {
            shown: shown_for(plan, measurement),
            hint: match refusal {
                Some(refusal) => Some(room_hint(plan, refusal)),
                None => hint_for(plan, &Seen::of(plan, measurement)),
            },
            reason,
        })
    }

    /// The reason with this hint.
    pub fn with_hint(reason: String, hint: impl Into<String>) -> Obstacle {
        Obstacle { reason, shown: None, hint: Some(hint.into()) }
    }
}

/// An obstacle whose reason says what can be done.
impl From<String> for Obstacle {
    fn from(reason: String) -> Obstacle {
        Obstacle { reason, shown: None, hint: None }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.shown.as_ref().unwrap_or(&self.reason))?;
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

/// The hint for a server that cannot be reached for this kind of reason; `None` where the reason says it.
pub fn absent_hint(kind: TroubleKind) -> Option<&'static str> {
    use TroubleKind::{NoSocket, NotTaken, Refused, Unreachable};
    matches!(kind, Refused | NoSocket | NotTaken | Unreachable).then_some(PORTS)
}

/// The reason of a run none of whose connections could be opened, where that has one cause; `None` for others.
fn shown_for(plan: &Plan, measurement: &Measurement) -> Option<String> {
    let connections = &measurement.connections;
    let has_opened = connections.connect.count() > 0;
    let trouble = connections.trouble.filter(|_| !has_opened && !plan.uses_datagrams())?;
    let server = plan.servers.get(trouble.server as usize)?;
    match trouble.kind {
        TroubleKind::Refused => Some(format!("{server} refused the connection: nothing listens there")),
        TroubleKind::NoSocket => Some(format!("{server} is no socket: nothing has made it")),
        _ => None,
    }
}

/// What the run saw of its servers, which no hint may call into question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Kind of the first failure of a connection.
    trouble: Option<TroubleKind>,
    /// A connection to the server of the first failure was opened, with TLS to the end of its handshake.
    has_opened: bool,
    /// That server answered in the protocol of the plan: it was found to speak it, or told its statistics.
    has_answered: bool,
    /// The servers were found to speak the protocol of the plan before the run.
    is_detected: bool,
    /// A request was sent in a measured phase.
    has_asked: bool,
    /// Kinds of the errors that servers sent.
    errors: Vec<ServerError>,
}

impl Seen {
    /// What a run saw of the server whose connection failed first, or of all where none failed.
    fn of(plan: &Plan, measurement: &Measurement) -> Seen {
        let connections = &measurement.connections;
        let server = connections.trouble.map(|FirstTrouble { server, .. }| server as usize);
        let times = server.and_then(|server| connections.connect_by_server.get(server));
        let has_opened = match times {
            Some(times) => times.count() > 0,
            None => connections.connect_by_server.is_empty() && connections.connect.count() > 0,
        };
        let servers = measurement.evidence.iter().flat_map(|evidence| &evidence.servers);
        let is_meant =
            |address: &String| server.is_none_or(|server| plan.servers.get(server) == Some(address));
        let is_detected = measurement.detected.is_some();
        let has_told =
            servers.into_iter().any(|server| server.reading.is_some() && is_meant(&server.address));
        let loaded = measurement.load.iter().flat_map(|load| load.messages.keys());
        let said = measurement.messages.keys().chain(loaded);
        Seen {
            trouble: connections.trouble.map(|trouble| trouble.kind),
            has_opened,
            has_answered: is_detected || has_told,
            is_detected,
            has_asked: measurement.groups.iter().any(|group| group.ops.counts().requests() > 0),
            errors: said.map(|message| plan.protocol.error_of(message.as_bytes())).collect(),
        }
    }
}

/// What a user can look at in a run that saw this; `None` where its reason says it, and where no question is left.
fn hint_for(plan: &Plan, seen: &Seen) -> Option<String> {
    use TroubleKind::{
        Closed, HandshakeRefused, NoSocket, NotTaken, ProtectedMode, Refused, RequestTimedOut, Reset,
        SpeaksHttp, SpeaksOther, SpeaksTls, Tls, Unreachable,
    };
    let protocol = plan.protocol;
    let has_heard = |kind| seen.errors.contains(&kind) || seen.trouble == Some(HandshakeRefused(kind));
    let wants_login = matches!(seen.trouble, Some(HandshakeRefused(_)))
        || [ServerError::LoginRequired, ServerError::LoginWrong, ServerError::NotPermitted]
            .into_iter()
            .any(has_heard);
    let hint = match seen.trouble {
        // Its words say what to do, and name passwords among other ways.
        Some(ProtectedMode) => return None,
        // Its words are what the server says of the script.
        Some(HandshakeRefused(ServerError::Other)) if plan.script.is_some() => return None,
        _ if wants_login && plan.login.is_none() => return Some(login_hint(protocol)),
        _ if has_heard(ServerError::NotPermitted) => {
            "the server's ACL has to let this user run the commands of the load"
        }
        Some(HandshakeRefused(ServerError::UnknownCommand)) if protocol == Protocol::Binary => {
            "this server has no SASL, and takes requests without --user"
        }
        _ if wants_login => {
            "are --user and the password right? PUMMEL_PASSWORD or --password-file gives the password"
        }
        _ if has_heard(ServerError::TooLarge) => {
            "memcached takes no larger values than its -I allows: a smaller --value-size, or a greater -I"
        }
        Some(Tls(tls)) => tls_hint(tls, seen)?,
        Some(SpeaksTls) => "this port speaks TLS: --tls is for ports that do",
        Some(SpeaksHttp) => PORTS,
        Some(SpeaksOther) if !seen.is_detected => {
            "--protocol auto finds out what the server speaks; --protocol text, meta, binary, resp2 or resp3 names it"
        }
        // The reason of a run that asked and heard nothing says so itself.
        Some(Refused | RequestTimedOut) if plan.uses_datagrams() && !seen.has_asked => {
            "memcached listens on UDP only with -U"
        }
        Some(RequestTimedOut) if plan.uses_datagrams() => return None,
        Some(RequestTimedOut) if seen.has_answered => "--timeout sets how long a request may take",
        Some(RequestTimedOut) => {
            let name = protocol.name();
            return Some(format!(
                "does the server speak {name}? --protocol auto finds out what it speaks; --timeout sets how long a request may take"
            ));
        }
        Some(Refused | NoSocket) if seen.has_opened => {
            "the server took connections earlier in this run: did it end, or start anew?"
        }
        Some(NotTaken) if seen.has_opened => FULL,
        Some(Refused | NoSocket | NotTaken | Unreachable) if !seen.has_opened => PORTS,
        Some(Closed | Reset) if !seen.has_answered && plan.tls.is_none() => {
            "does the server expect TLS (--tls), or another protocol? --protocol auto finds out what it speaks"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What a user can look at where TLS failed; `None` where the reason says it.
fn tls_hint(tls: TlsTrouble, seen: &Seen) -> Option<&'static str> {
    match (tls, seen.has_opened) {
        (TlsTrouble::WrongName, _) => {
            Some("--tls-server-name sets the name that the certificate has to hold")
        }
        (TlsTrouble::ClientCertificate, _) => {
            Some("--tls-cert and --tls-key give the certificate of the client and its key")
        }
        (TlsTrouble::Untrusted, _) => Some(
            "--tls-ca FILE with the certificate of its authority, or its own if it is self-signed; or --tls-insecure to accept any",
        ),
        (TlsTrouble::NotSpoken, _) => Some("--tls is for ports that speak TLS"),
        (TlsTrouble::Slow, true) => {
            Some("the server completed other TLS handshakes; --timeout sets how long one may take")
        }
        (TlsTrouble::Slow, false) => Some(
            "does this port speak TLS? --tls is for ports that do; --timeout sets how long a handshake may take",
        ),
        (TlsTrouble::CutOff, true) => Some(FULL),
        (TlsTrouble::CutOff, false) => Some("does this port speak TLS? --tls is for ports that do"),
        (TlsTrouble::Other, _) => None,
    }
}

/// The hint for servers that are not there, and for ports of other servers.
const PORTS: &str = "is the server running, and is this its port? (memcached 11211, Redis 6379)";

/// The hint for servers that took some of the connections of a run and not all.
const FULL: &str = "the server took other connections of this run: is it at its limit (memcached -c, maxclients of Redis)? \
                    --timeout sets how long a connection may take to open";

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Clock, Group, Load, Login, Mix, Phase, Script, Stop, Work};
    use pummel_logic::protocol::Verb;
    use pummel_measure::histogram::CoarseHistogram;
    use pummel_measure::measurement::LoadResult;
    use pummel_measure::reason::{Reason, Unstored};

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

    /// The reason of a run that stored so many of its records.
    fn unstored(stored: u64) -> Reason {
        Reason::Unstored(Unstored { records: 10, stored, per_record: 1, why: None })
    }

    /// A partial run that stored so many of its records.
    fn partial(reason: Reason, stored: u64) -> Measurement {
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, 1);
        measurement.load = Some(LoadResult { records: 10, stored, ..LoadResult::default() });
        measurement.mark(Status::Partial, reason);
        measurement
    }

    /// The hint of a run that could not store anything since a connection failed like this.
    fn hint(plan: &Plan, kind: TroubleKind) -> String {
        hint_for(plan, &Seen { trouble: Some(kind), ..Seen::default() }).unwrap_or_default()
    }

    /// The hint of a run that could not store anything since a server said this.
    fn heard(plan: &Plan, said: &str) -> String {
        let mut measurement = partial(unstored(0), 0);
        measurement.message(said.as_bytes(), 2);
        Obstacle::of(plan, &measurement).expect("nothing was measured").hint.unwrap_or_default()
    }

    #[test]
    fn a_run_that_stored_something_or_was_interrupted_has_a_report() {
        let plan = plan(Protocol::Text);
        let obstacle = Obstacle::of(&plan, &partial(unstored(0), 0)).expect("an obstacle");
        assert_eq!((obstacle.to_string().as_str(), obstacle.hint), ("none of 10 records was stored", None));
        assert_eq!(Obstacle::of(&plan, &partial(unstored(1), 1)), None);
        let mut interrupted = partial(unstored(0), 0);
        interrupted.mark(Status::Interrupted, Reason::Interrupted);
        assert_eq!(Obstacle::of(&plan, &interrupted), None);
    }

    #[test]
    fn a_run_that_its_server_gave_fewer_connections_has_no_report_unless_it_asked_to_go_on() {
        let mut plan = plan(Protocol::Text);
        plan.servers = vec!["a:1".to_owned()];
        plan.groups = vec![Group { clients: 64, ..Group::default() }];
        let refusal = |refused| Refusal { connections: 64, refused, attempts: refused, ..Refusal::default() };
        let mut measurement = partial(unstored(1), 1);
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
    fn each_hint_follows_from_the_kind_of_failure() {
        let text = plan(Protocol::Text);
        for (kind, words) in [
            (TroubleKind::SpeaksOther, "--protocol auto"),
            (TroubleKind::SpeaksHttp, "is this its port"),
            (TroubleKind::SpeaksTls, "this port speaks TLS"),
            (TroubleKind::Tls(TlsTrouble::WrongName), "--tls-server-name"),
            (TroubleKind::Tls(TlsTrouble::Untrusted), "--tls-ca FILE"),
            (TroubleKind::Tls(TlsTrouble::Other), ""),
            (TroubleKind::Tls(TlsTrouble::ClientCertificate), "--tls-cert"),
            (TroubleKind::Tls(TlsTrouble::NotSpoken), "--tls is for ports that"),
            (TroubleKind::Tls(TlsTrouble::CutOff), "does this port speak TLS?"),
            (TroubleKind::Tls(TlsTrouble::Slow), "does this port speak TLS?"),
            (TroubleKind::Closed, "--tls"),
            (TroubleKind::Reset, "--tls"),
            (TroubleKind::RequestTimedOut, "does the server speak text?"),
            (
                TroubleKind::Refused,
                "is the server running, and is this its port? (memcached 11211, Redis 6379)",
            ),
            (TroubleKind::Unreachable, "is the server running"),
            (TroubleKind::HandshakeRefused(ServerError::Other), "--user NAME"),
            (TroubleKind::ProtectedMode, ""),
            (TroubleKind::Full, ""),
            (TroubleKind::Other, ""),
        ] {
            let hint = hint(&text, kind);
            assert!(hint.contains(words) && hint.is_empty() == words.is_empty(), "{kind:?}: {hint}");
        }
        assert!(heard(&text, "SERVER_ERROR object too large for cache").contains("--value-size"));
        assert_eq!(heard(&text, "SERVER_ERROR out of memory"), "");
        let what = "cannot read 'x': No such file or directory".to_owned();
        let unread = partial(Reason::NotBegun { what }, 0);
        assert_eq!(Obstacle::of(&text, &unread).expect("an obstacle").hint, None, "no server is absent");
    }

    #[test]
    fn a_server_that_is_not_there_is_said_in_one_sentence() {
        let text = Plan { servers: vec!["a:1".to_owned(), "b:1".to_owned()], ..plan(Protocol::Text) };
        let not_opened = Reason::NotOpened { asked: 50, failed: 8, lost: 0, untried: 42, why: None };
        let mut measurement = partial(not_opened, 0);
        measurement.connections.trouble = Some(FirstTrouble { server: 1, kind: TroubleKind::Refused });
        let obstacle = Obstacle::of(&text, &measurement).expect("an obstacle");
        assert_eq!(
            obstacle.to_string(),
            "b:1 refused the connection: nothing listens there\n\
             hint: is the server running, and is this its port? (memcached 11211, Redis 6379)"
        );
        assert!(obstacle.reason.starts_with("8 of 50 connections"), "results keep the whole account");
        measurement.connections.connect.record(1_000);
        let later = Obstacle::of(&text, &measurement).expect("an obstacle");
        assert!(later.shown.is_none() && later.hint.expect("a hint").contains("did it end"));
    }

    #[test]
    fn no_hint_calls_into_question_what_the_run_has_seen() {
        let text = plan(Protocol::Text);
        let hint = |kind: TroubleKind, seen: &Seen| {
            hint_for(&text, &Seen { trouble: Some(kind), ..seen.clone() }).unwrap_or_default()
        };
        let none = Seen::default();
        let opened = Seen { has_opened: true, ..none.clone() };
        let answered = Seen { has_answered: true, ..opened.clone() };
        for (kind, without, with) in [
            (
                TroubleKind::Tls(TlsTrouble::Slow),
                "does this port speak TLS?",
                "other TLS handshakes; --timeout",
            ),
            (TroubleKind::Tls(TlsTrouble::CutOff), "speak TLS?", "at its limit"),
            (TroubleKind::NotTaken, "is the server running", "at its limit"),
            (TroubleKind::Refused, "is the server running", "did it end"),
        ] {
            for (seen, words, other) in [(&none, without, with), (&opened, with, without)] {
                let said = hint(kind, seen);
                assert!(said.contains(words) && !said.contains(other), "{kind:?}: {said}");
            }
        }
        for (kind, with) in [
            (TroubleKind::RequestTimedOut, "--timeout sets how long a request may take"),
            (TroubleKind::Closed, ""),
        ] {
            assert!(hint(kind, &opened).contains("--protocol auto"), "{kind:?}");
            assert_eq!(hint(kind, &answered), with, "{kind:?}");
        }
    }

    #[test]
    fn what_was_seen_is_that_of_the_server_whose_connection_failed_first() {
        let plan = Plan { servers: vec!["a:1".to_owned(), "b:1".to_owned()], ..plan(Protocol::Text) };
        let mut measurement = partial(unstored(0), 0);
        measurement.connections.connect.record(1_000);
        let mut times = CoarseHistogram::default();
        times.record(1_000);
        measurement.connections.connect_by_server = vec![CoarseHistogram::default(), times];
        let mut has_opened = |server| {
            measurement.connections.trouble = Some(FirstTrouble { server, kind: TroubleKind::NotTaken });
            Seen::of(&plan, &measurement).has_opened
        };
        assert!(!has_opened(0) && has_opened(1));
    }

    #[test]
    fn a_server_that_was_to_be_asked_for_its_login_and_is_not_there_has_the_hint_of_ports() {
        assert_eq!(absent_hint(TroubleKind::Refused), Some(PORTS));
        assert_eq!(absent_hint(TroubleKind::Other), None, "its name is not known, which the reason says");
        assert_eq!(absent_hint(TroubleKind::Tls(TlsTrouble::CutOff)), None);
    }

    #[test]
    fn a_login_that_is_missing_is_told_apart_from_one_that_is_wrong() {
        let mut plan = plan(Protocol::Resp2);
        assert_eq!(heard(&plan, "NOAUTH Authentication required."), login_hint(Protocol::Resp2));
        plan.login = Some(Login { user: "joe".to_owned(), password_file: None });
        assert!(
            hint(&plan, TroubleKind::HandshakeRefused(ServerError::LoginWrong)).contains("password right")
        );
        plan.script = Some(Script { path: "a.lua".to_owned(), text: "return".to_owned() });
        assert_eq!(hint(&plan, TroubleKind::HandshakeRefused(ServerError::Other)), "");
        assert!(heard(&plan, "NOPERM this user has no permissions").contains("ACL"));
        assert_eq!(heard(&plan, "Unknown command"), "");
        plan.protocol = Protocol::Binary;
        let unknown = hint(&plan, TroubleKind::HandshakeRefused(ServerError::UnknownCommand));
        assert!(unknown.contains("without --user"), "{unknown}");
        assert!(!login_hint(Protocol::Text).contains("default"));
    }
}
