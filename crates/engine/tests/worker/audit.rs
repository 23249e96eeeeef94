//! Runs that read back what they wrote, from servers that lose some of it behind their backs.

use pummel_engine::backend::ConnId;
use pummel_engine::backend::Target;
use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_logic::plan::{Audit, Pause, Phase, Plan, Stop, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::audit::Audit as Audited;
use pummel_testserver::ServerConfig;

use crate::peer::{ServerPeer, SharedServer};
use crate::setup::{loaded, measuring, mix, plan, run, time};

/// Time without requests from which on the run settles.
const SILENCE_NS: Nanos = 40 * MILLISECOND;

/// Deed of a server once the run settles, or shortly before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Nothing,
    /// Deletes the first record that was stored.
    Delete,
    /// Stores the first value of that record again.
    SetBack,
    /// Sends no replies in the last tenth of the measured phase.
    Mute,
    /// Takes no connection any more, and resets those that are open.
    Die,
}

/// The network's end of a server with such a deed.
struct Meddler {
    own: ServerPeer,
    server: SharedServer,
    deed: Deed,
    /// The first command that stored something.
    first: Vec<u8>,
    /// Time of the first and of the last request.
    seen: Option<(Nanos, Nanos)>,
    settled: bool,
}

impl Meddler {
    fn new(server: &SharedServer, deed: Deed) -> Meddler {
        Meddler {
            own: server.peer(),
            server: server.clone(),
            deed,
            first: Vec::new(),
            seen: None,
            settled: false,
        }
    }

    fn is_dead(&self) -> bool {
        self.deed == Deed::Die && self.settled
    }

    fn is_mute(&self, now: Nanos) -> bool {
        let is_late = self.seen.is_some_and(|(first, _)| now >= first + 90 * MILLISECOND);
        self.deed == Deed::Mute && !self.settled && is_late
    }

    /// Makes a request of its own.
    fn ask(&self, command: &[u8], now: Nanos) {
        let mut server = self.server.lock();
        let mut connection = server.accept();
        server.handle_received(&mut connection, command, now);
        server.handle_closed(connection);
    }
}

impl Peer for Meddler {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        if self.is_dead() { Admission::Refuse } else { self.own.handle_connect(conn, target, now) }
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        if self.first.is_empty() {
            let words = String::from_utf8_lossy(bytes);
            let (line, _) = words.split_once("\r\n").expect("a line");
            let length: usize = line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a length");
            self.first = bytes[..line.len() + 2 + length + 2].to_vec();
        }
        let (first, last) = self.seen.unwrap_or((now, now));
        self.seen = Some((first, now));
        if !self.settled && now - last > SILENCE_NS {
            self.settled = true;
            let key = String::from_utf8_lossy(&self.first).split(' ').nth(1).expect("a key").to_owned();
            match self.deed {
                Deed::Delete => self.ask(format!("delete {key}\r\n").as_bytes(), now),
                Deed::SetBack => self.ask(&self.first, now),
                Deed::Nothing | Deed::Mute | Deed::Die => {}
            }
        }
        self.own.handle_received(conn, bytes, now);
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        self.own.handle_closed(conn, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.is_dead() {
            self.own.handle_closed(conn, now);
            return Next::Reset;
        }
        let length = out.len();
        let next = self.own.poll(conn, now, out);
        if self.is_mute(now) {
            out.truncate(length);
        }
        next
    }
}

/// A plan that stores and gets 100 records, and reads them back, in one worker: simulated clocks of several tell nothing of each other.
fn audited() -> Plan {
    let mut plan = plan();
    plan.verify = 1.0;
    plan.timeout_ns = 200 * MILLISECOND;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0), (Verb::Set, 9.0)]), time(100 * MILLISECOND))];
    let mut plan = loaded(plan);
    if let Work::Load(load) = &mut plan.phases[0].work {
        (load.pieces, load.counters) = (false, false);
    }
    let behind = |name: &str, work, time_ns| Phase {
        name: name.to_owned(),
        work,
        stop: Stop { time_ns, requests: None },
        recorded: false,
    };
    let settle = Work::Pause(Pause { until_ns: 0, for_ns: 2 * SILENCE_NS });
    plan.phases.push(behind("settle", settle, None));
    plan.phases.push(behind("audit", Work::Audit(Audit { depth: 4 }), Some(60 * SECOND)));
    plan
}

fn audit_of(plan: &Plan, deed: Deed) -> Audited {
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(plan, 1, NetworkConditions::calm(), || Meddler::new(&server, deed));
    let audit = outcome.measurement.audit.expect("the plan audits");
    let counts = &audit.counts;
    let read = counts.current + counts.contested + counts.newer + counts.lost();
    assert_eq!(read + audit.unread(), audit.written, "{audit:?}");
    audit
}

#[test]
fn nothing_is_lost_by_a_server_that_keeps_what_it_stored() {
    let audit = audit_of(&audited(), Deed::Nothing);
    assert_eq!((audit.begun, audit.written, audit.unread()), (true, 100, 0), "{audit:?}");
    assert_eq!((audit.counts.lost(), audit.counts.newer, audit.counts.lost_at), (0, 0, None), "{audit:?}");
    assert!(audit.counts.current >= 90, "{audit:?}");
}

#[test]
fn keys_that_were_never_written_are_not_read_back() {
    let mut plan = audited();
    plan.data.records = 100_000;
    plan.phases.remove(0);
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let audit = outcome.measurement.audit.clone().expect("the plan audits");
    let gets = |counts: &pummel_measure::recorder::Counts| counts.hits + counts.misses;
    let measured = gets(&outcome.measurement.ops().all().counts);
    let all = gets(&outcome.measurement.whole_run.ops.all());
    assert!(audit.written > 1_000 && audit.written < 100_000, "{audit:?}");
    assert_eq!(audit.counts.current + audit.counts.contested, audit.written, "{audit:?}");
    assert_eq!(all - measured, audit.written);
}

#[test]
fn a_key_that_is_deleted_behind_the_back_of_the_run_is_missing() {
    let audit = audit_of(&audited(), Deed::Delete);
    assert_eq!((audit.counts.missing, audit.counts.older, audit.unread()), (1, 0, 0), "{audit:?}");
    let lost = audit.counts.lost_at.expect("its time is known");
    assert_eq!(lost.first_ns, lost.last_ns);
    assert!((50 * MILLISECOND..=100 * MILLISECOND).contains(&lost.last_ns), "{lost:?}");
}

#[test]
fn a_key_that_is_set_back_behind_the_back_of_the_run_is_older() {
    let audit = audit_of(&audited(), Deed::SetBack);
    assert_eq!((audit.counts.missing, audit.counts.older, audit.unread()), (0, 1, 0), "{audit:?}");
}

#[test]
fn a_write_without_a_reply_that_was_applied_is_newer_and_not_lost() {
    let audit = audit_of(&audited(), Deed::Mute);
    assert!((1..=4).contains(&audit.counts.newer), "{audit:?}");
    assert_eq!((audit.counts.lost(), audit.unread()), (0, 0), "{audit:?}");
}

#[test]
fn a_server_that_is_gone_ends_the_audit_and_its_keys_are_unread() {
    let audit = audit_of(&audited(), Deed::Die);
    assert_eq!((audit.begun, audit.written, audit.counts.lost()), (true, 100, 0), "{audit:?}");
    assert!(audit.unread() >= 90, "{audit:?}");
}
