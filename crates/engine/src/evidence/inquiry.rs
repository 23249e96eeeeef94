//! The side connections of a run: one to each server, on which the server is asked for its statistics.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pummel_logic::plan::Plan;
use pummel_logic::protocol::Malformed;
use pummel_logic::protocol::handshake::{Handshake, HandshakeRefused};
use pummel_logic::time::{NEVER, Nanos};
use pummel_measure::evidence::facts::Facts;
use pummel_measure::evidence::redis::{OwnWork, SLOW_COMMANDS};
use pummel_measure::evidence::reply::{self, Dialect, NUMBER, Occasion, Question, REPLY_MAX_BYTES, Reply};
use pummel_measure::evidence::server::USUAL_RECORD;

use crate::backend::tls::Setup;
use crate::resolve::Server;
use crate::side_connections::{Failure, SideConnections, SideEvent, SideOptions};
use pummel_measure::trouble::Trouble;

/// Most attempts to open a side connection in a run.
const TRIES_MAX: u32 = 10;

/// Most times that a server is asked again after it closed a side connection without a reply. Proxies do that if they
/// do not know a question.
const UNANSWERED_CLOSES_MAX: u32 = 2;

/// The reason for missing statistics of a server that closes the connection when it is asked.
const CLOSED_UNANSWERED: &str = "the server closed the connection without a word when it was asked for its statistics, as a proxy does \
                       that does not know the question";

/// Most bytes of a refusal of a server that are quoted.
const QUOTED_BYTES: usize = 80;

/// The questions to all servers of a run, on a side connection to each.
pub struct StatisticsInquiry {
    connections: SideConnections,
    handshake_replies: u32,
    dialect: Dialect,
    sides: Vec<Side>,
}

/// The facts that a server reported in one reading.
#[derive(Clone, Debug, Default)]
pub struct ServerReport {
    /// Time at which the reply was read, on the monotonic clock.
    pub at: Nanos,
    /// The server's counters.
    pub facts: Facts,
    /// The work that the inquiry itself has caused at the server so far.
    pub own: OwnWork,
    /// The server's settings; empty where it does not report them.
    pub settings: Facts,
}

/// Questions to one server, and its answers.
#[derive(Default)]
struct Side {
    tries: u32,
    /// Number of times that the server closed the connection without a word when it was asked, before it ever answered.
    unanswered_closes: u32,
    asked: VecDeque<Question>,
    wanted: bool,
    /// The connection was opened anew in this reading, since it was found to be over.
    reopened: bool,
    /// The server's settings, which it is asked for once.
    settings: Option<Facts>,
    report: Option<ServerReport>,
    /// Reason why the server reports nothing, as a sentence without its full stop.
    trouble: Option<String>,
    /// The last refusal of a server that is not closed yet; one that is full refuses before it closes.
    refusal: Vec<u8>,
    /// The server does not know the question for all sections.
    plain_info: bool,
    /// The occasion of the reading under way.
    occasion: Occasion,
    /// The facts of this reading other than counters.
    beside: Facts,
    /// Questions other than the counters' that the server does not answer; they are not asked again.
    hidden: Vec<Question>,
    /// Commands that the server has carried out for the inquiry.
    commands: u64,
}

impl StatisticsInquiry {
    /// Creates a closed side connection to each server, with the socket options and the protocol of `plan`. The questions in `hidden`
    /// are not asked.
    ///
    /// # Errors
    /// Returns the error of the kernel when it gives no backend.
    pub fn new(
        plan: &Plan,
        servers: Vec<Server>,
        tls: Option<&Setup>,
        handshake: Arc<Handshake>,
        hidden: &[Question],
    ) -> io::Result<StatisticsInquiry> {
        let sides = servers.iter().map(|_| Side { hidden: hidden.to_vec(), ..Side::default() }).collect();
        let (dialect, handshake_replies) = (Dialect::of(plan.protocol), handshake.replies());
        let (socket, received_bytes) = (&plan.socket, REPLY_MAX_BYTES);
        let options = SideOptions { socket, tls, handshake, open_ns: NEVER, received_bytes };
        let connections = SideConnections::new(servers.into(), options)?;
        Ok(StatisticsInquiry { connections, handshake_replies, dialect, sides })
    }

    /// The sockets of the side connections.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.connections.sockets()
    }

    /// Opens the side connections, until `until` or until `goes_on` returns false.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn open(&mut self, until: Nanos, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.begin_opening();
        self.work(until, goes_on, |inquiry, number| {
            inquiry.sides[number].trouble.is_some() || inquiry.connections.is_open(number)
        })
    }

    /// Begins the tries anew, so that servers that did not let a connection in are asked once more.
    pub fn begin_tries(&mut self) {
        self.sides.iter_mut().for_each(|side| side.tries = 0);
    }

    /// Receives the replies that arrive until `until`.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn receive_until(&mut self, until: Nanos) -> io::Result<()> {
        self.work(until, &|| true, |_, _| false)
    }

    /// Begins a reading: every server is asked for its counters, and for its settings where it did not report them yet.
    /// Connections that are closed are opened again, within the limit of tries.
    pub fn ask(&mut self) {
        // What an earlier reading left unanswered would answer this one.
        for number in 0..self.sides.len() {
            if !self.sides[number].asked.is_empty() {
                self.close(number);
            }
        }
        self.begin_reading(Occasion::Ends);
    }

    /// Begins a reading like [`StatisticsInquiry::ask`]. A server whose answers to an earlier reading are outstanding is not asked
    /// again: those answers count for this reading when they arrive.
    pub fn ask_those_that_answered(&mut self) {
        self.begin_reading(Occasion::Within);
    }

    fn begin_reading(&mut self, occasion: Occasion) {
        // A server that was started anew since has closed its connection, which is opened again with the others. An error is met
        // again by the wait for the replies.
        if self.connections.wait(self.connections.now()).is_ok() {
            self.handle_events();
        }
        for side in &mut self.sides {
            side.report = None;
            side.wanted = true;
            side.reopened = false;
            side.occasion = if side.settings.is_none() { Occasion::First } else { occasion };
        }
        self.begin_opening();
        for number in 0..self.sides.len() {
            if self.connections.is_open(number) {
                self.put_questions(number);
            }
        }
    }

    /// Receives the replies of a reading, until `until` or until `goes_on` returns false.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn listen(&mut self, until: Nanos, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.work(until, goes_on, StatisticsInquiry::has)
    }

    /// Whether server number `server` has reported its counters, or cannot.
    pub fn has(&self, server: usize) -> bool {
        let side = &self.sides[server];
        !side.wanted || side.trouble.is_some()
    }

    /// Ends a reading: the facts that server number `server` reported, or why there are none.
    ///
    /// # Errors
    /// Returns the reason as a sentence without its full stop.
    pub fn take(&mut self, server: usize) -> Result<ServerReport, String> {
        let side = &mut self.sides[server];
        side.wanted = false;
        let settings = || side.settings.clone().unwrap_or_default();
        let report = side.report.take().map(|report| ServerReport { settings: settings(), ..report });
        report.ok_or_else(|| match &side.trouble {
            Some(why) => why.clone(),
            None if side.tries >= TRIES_MAX => {
                format!("the server was given up after {TRIES_MAX} connections for its statistics")
            }
            None if self.connections.is_open(server) => {
                "the server did not answer in time when it was asked for its statistics".to_owned()
            }
            None => "the server did not let a connection for its statistics in in time".to_owned(),
        })
    }

    /// Opens the connections that are closed, within the limit of tries.
    fn begin_opening(&mut self) {
        for number in 0..self.sides.len() {
            let side = &mut self.sides[number];
            let is_let_in = side.tries < TRIES_MAX && side.unanswered_closes < UNANSWERED_CLOSES_MAX;
            if self.connections.is_closed(number) && is_let_in {
                side.trouble = None;
                self.dial(number);
            }
        }
    }

    fn dial(&mut self, number: usize) {
        self.sides[number].tries += 1;
        self.connections.dial(number);
    }

    /// Works until `done` for all servers, `until` has come, or `goes_on` returns false.
    fn work(
        &mut self,
        until: Nanos,
        goes_on: &dyn Fn() -> bool,
        done: fn(&StatisticsInquiry, usize) -> bool,
    ) -> io::Result<()> {
        let mut now = self.connections.now();
        while now < until && goes_on() && !(0..self.sides.len()).all(|number| done(self, number)) {
            now = self.connections.wait(until)?;
            self.handle_events();
        }
        Ok(())
    }

    fn handle_events(&mut self) {
        while let Some((number, event)) = self.connections.poll() {
            match event {
                SideEvent::Open => {
                    self.sides[number].commands += u64::from(self.handshake_replies);
                    self.put_questions(number);
                }
                SideEvent::Received(read) => self.read_replies(number, read),
                SideEvent::Late => {}
                SideEvent::Closed(failure, received) => self.closed(number, failure, received),
            }
        }
    }

    fn closed(&mut self, number: usize, failure: Failure, received: Vec<u8>) {
        let side = &mut self.sides[number];
        let was_asked = !std::mem::take(&mut side.asked).is_empty();
        let trouble = match failure {
            Failure::NotOpened(reason) => Trouble::NotOpened(reason),
            Failure::Lost(reason) => Trouble::Lost(reason),
            Failure::Refused(HandshakeRefused::Malformed(Malformed(what))) => {
                side.trouble = Some(malformed(what, received));
                return;
            }
            Failure::Refused(refused) => {
                side.trouble = Some(format!("no login for its statistics: {refused}"));
                return;
            }
            Failure::TooLong => {
                let most = REPLY_MAX_BYTES / 1024;
                side.trouble = Some(format!("the server's statistics are longer than {most} KiB"));
                return;
            }
        };
        // What a server says before it closes is its reason, such as that it is full.
        let said = if received.is_empty() { std::mem::take(&mut side.refusal) } else { received };
        let is_silent = was_asked && said.is_empty();
        // A connection that was over before the question: the server closed it for a reason of its own, or started anew.
        if is_silent && side.wanted && side.settings.is_some() && !side.reopened && side.tries < TRIES_MAX {
            side.reopened = true;
            // Another process may have other settings.
            side.occasion = Occasion::First;
            return self.dial(number);
        }
        if is_silent && side.settings.is_none() {
            side.unanswered_closes += 1;
            side.trouble = Some(CLOSED_UNANSWERED.to_owned());
            return;
        }
        let trouble = trouble.after(std::iter::once(said.as_slice()));
        side.trouble = Some(format!("no connection for its statistics: {trouble}"));
    }

    fn close(&mut self, number: usize) {
        self.connections.close(number);
        self.sides[number].asked.clear();
    }

    fn put_questions(&mut self, number: usize) {
        let side = &mut self.sides[number];
        if !side.wanted || !side.asked.is_empty() {
            return;
        }
        side.beside = Facts::default();
        let mut out = Vec::new();
        for question in self.dialect.questions(side.occasion) {
            if side.hidden.contains(&question) {
                continue;
            }
            let question =
                if question == Question::Info && side.plain_info { Question::InfoDefault } else { question };
            question.write(self.dialect, &mut out);
            side.asked.push_back(question);
        }
        self.connections.send(number, &out);
    }

    fn read_replies(&mut self, number: usize, read: Nanos) {
        while let Some(&question) = self.sides[number].asked.front() {
            let received = self.connections.received(number);
            let (result, taken) = match reply::read(question, self.dialect, received) {
                Reply::More => return,
                Reply::Malformed(what) => {
                    self.sides[number].trouble = Some(malformed(what, received.to_vec()));
                    return self.close(number);
                }
                Reply::Facts(facts, taken) => (Ok(facts), taken),
                Reply::Refused(words, taken) => (Err(words), taken),
            };
            self.connections.take(number, taken);
            self.sides[number].asked.pop_front();
            self.take_in(number, question, result, read);
        }
        // Without a question, a server that sends something all the same says why it is about to close.
    }

    fn take_in(&mut self, number: usize, question: Question, result: Result<Facts, String>, read: Nanos) {
        let side = &mut self.sides[number];
        // A server's counters do not include the command that reads them.
        let own = OwnWork { commands: side.commands, connections: self.connections.opened(number) };
        side.commands += u64::from(result.is_ok());
        if let Err(words) = &result {
            let mark = if self.dialect == Dialect::Resp { "-" } else { "" };
            side.refusal = format!("{mark}{words}").into_bytes();
        }
        match (question, result) {
            (
                Question::Settings | Question::IoThreads | Question::Snapshots | Question::AppendOnly,
                result,
            ) => side.settings.get_or_insert_default().add_all(&result.unwrap_or_default()),
            (Question::UsualRecord, result) => match result.ok().and_then(|facts| facts.number(NUMBER)) {
                Some(count) => {
                    let settings = side.settings.get_or_insert_default();
                    settings.add(USUAL_RECORD.as_bytes(), count.to_string().as_bytes());
                }
                None => side.hidden.push(question),
            },
            (question @ Question::SlowCommands, result) => {
                match result.ok().and_then(|facts| facts.number(NUMBER)) {
                    Some(slow) => {
                        side.beside.add(SLOW_COMMANDS.as_bytes(), slow.to_string().as_bytes());
                    }
                    None => side.hidden.push(question),
                }
            }
            (
                question @ (Question::SlowLog
                | Question::LatencyEvents
                | Question::LatencyHistograms
                | Question::Slabs
                | Question::Items
                | Question::SlotsByCpu
                | Question::SlotsByKeys),
                result,
            ) => match result {
                Ok(facts) => side.beside.add_all(&facts),
                Err(_) => side.hidden.push(question),
            },
            // A server that does not know the word for all sections answers with an error, or with nothing.
            (Question::Info, Err(words)) if words.starts_with("ERR syntax") => self.ask_plainly(number),
            (Question::Info, Ok(facts)) if facts.is_empty() => self.ask_plainly(number),
            (_, Ok(mut facts)) => {
                facts.add_all(&std::mem::take(&mut side.beside));
                side.report = Some(ServerReport { at: read, facts, own, settings: Facts::default() });
                side.tries = 0;
                side.wanted = false;
            }
            (_, Err(words)) => {
                side.trouble = Some(format!("the server does not tell its statistics: {words}"));
            }
        }
    }

    fn ask_plainly(&mut self, number: usize) {
        let side = &mut self.sides[number];
        side.plain_info = true;
        side.asked.push_back(Question::InfoDefault);
        let mut out = Vec::new();
        Question::InfoDefault.write(self.dialect, &mut out);
        self.connections.send(number, &out);
    }
}

/// The reason why a server that sent these bytes reports nothing, as a sentence without its full stop.
fn malformed(what: &'static str, mut received: Vec<u8>) -> String {
    received.truncate(QUOTED_BYTES);
    format!("asked for its statistics, {}", Trouble::Malformed(what, received, false))
}
