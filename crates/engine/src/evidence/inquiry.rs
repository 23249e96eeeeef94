//! The side connections of a run: one to each server, on which the server is asked for its statistics.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use pummel_logic::protocol::Malformed;
use pummel_logic::protocol::handshake::{Handshake, HandshakeProgress, HandshakeReader, HandshakeRefused};
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::evidence::facts::Facts;
use pummel_measure::evidence::redis::{OwnWork, SLOW_COMMANDS};
use pummel_measure::evidence::reply::{self, Dialect, NUMBER, Occasion, Question, REPLY_MAX_BYTES, Reply};
use pummel_measure::evidence::server::USUAL_RECORD;

use crate::backend::{Backend, Close, ConnId, Event, Reason};
use crate::resolve::Server;
use crate::worker::trouble::Trouble;

/// Most openings of a side connection in a run.
const TRIES_MAX: u32 = 10;

/// Most times that a server may close a side connection without a word when it is asked, and is asked again. Proxies do
/// that with questions that they do not know.
const SHUNNED_MAX: u32 = 2;

/// Longest wait before the inquiry looks whether it is to go on, in nanoseconds.
const LOOK_NS: Nanos = 10 * MILLISECOND;

/// Reason for the silence of a server that closes the connection when it is asked.
const SHUNNED: &str = "the server closed the connection without a word when it was asked for its statistics, as a proxy does \
                       that does not know the question";

/// Most bytes that a refusal of a server quotes of what it sent.
const QUOTED_BYTES: usize = 80;

/// The side connections to all servers of a run.
pub struct Inquiry<B> {
    backend: B,
    servers: Arc<[Server]>,
    handshake: Arc<Handshake>,
    dialect: Dialect,
    sides: Vec<Side>,
    /// Events on the connections, to be handled after the drain.
    events: Vec<(ConnId, Happened)>,
}

/// The facts that a server reported in one reading.
#[derive(Clone, Debug)]
pub struct Told {
    /// When the reply was read, on the monotonic clock.
    pub at: Nanos,
    /// The server's counters.
    pub facts: Facts,
    /// The reader's own work at the server until then.
    pub own: OwnWork,
}

/// The side connection to one server.
struct Side {
    state: SideState,
    generation: u32,
    /// Whether the backend has reported the end of the connection; events from before may be handled still.
    is_over: bool,
    /// The address of the server that is tried next, by its number.
    attempt: usize,
    tries: u32,
    /// Number of times that the server closed the connection without a word when it was asked, before it ever answered.
    shunned: u32,
    /// Addresses that were refused in this reading.
    refused: usize,
    /// Bytes that wait to be sent.
    out: Vec<u8>,
    /// Bytes of a reply that is not complete.
    received: Vec<u8>,
    asked: VecDeque<Question>,
    wanted: bool,
    /// The connection was opened anew in this reading, since it was found to be over.
    reopened: bool,
    /// The server's settings, which it is asked for once.
    settings: Option<Facts>,
    told: Option<Told>,
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
    own: OwnWork,
}

enum SideState {
    Closed,
    Opening,
    Handshake(Box<HandshakeReader>),
    Open,
}

enum Happened {
    Opened,
    Received(Vec<u8>, Nanos),
    Writable,
    Closed(Reason),
}

impl Side {
    /// A side connection whose server is never asked the `hidden` questions.
    fn new(hidden: Vec<Question>) -> Side {
        Side {
            state: SideState::Closed,
            generation: 0,
            is_over: false,
            attempt: 0,
            tries: 0,
            shunned: 0,
            refused: 0,
            out: Vec::new(),
            received: Vec::new(),
            asked: VecDeque::new(),
            wanted: false,
            reopened: false,
            settings: None,
            told: None,
            trouble: None,
            refusal: Vec::new(),
            plain_info: false,
            occasion: Occasion::First,
            beside: Facts::default(),
            hidden,
            own: OwnWork::default(),
        }
    }

    fn id(&self, number: usize) -> ConnId {
        ConnId { slot: number as u32, generation: self.generation }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, SideState::Open)
    }

    /// Whether nothing of the side is under way: it is open, or in trouble.
    fn is_settled(&self) -> bool {
        self.trouble.is_some() || self.is_open()
    }

    fn forget_connection(&mut self) {
        self.state = SideState::Closed;
        self.out.clear();
        self.received.clear();
        self.asked.clear();
    }
}

impl<B: Backend> Inquiry<B> {
    /// Side connections to these servers, none of which is open. The questions `hidden` are not put to them.
    pub fn new(
        backend: B,
        servers: Arc<[Server]>,
        handshake: Arc<Handshake>,
        dialect: Dialect,
        hidden: &[Question],
    ) -> Inquiry<B> {
        let sides = servers.iter().map(|_| Side::new(hidden.to_vec())).collect();
        Inquiry { backend, servers, handshake, dialect, sides, events: Vec::new() }
    }

    /// The backend of the connections.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The side connections that are open, or being opened.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> {
        let has_socket = |side: &Side| !matches!(side.state, SideState::Closed);
        self.sides
            .iter()
            .enumerate()
            .filter(move |(_, side)| has_socket(side))
            .map(|(number, side)| side.id(number))
    }

    /// Opens the side connections, until `until` or until `goes_on` returns false.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn open(&mut self, until: Nanos, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.begin_opening();
        self.work(until, goes_on, Side::is_settled)
    }

    /// Begins the tries anew, so that servers that did not let a connection in are asked once more.
    pub fn begin_tries(&mut self) {
        self.sides.iter_mut().for_each(|side| side.tries = 0);
    }

    /// Takes what comes until `until`.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn rest(&mut self, until: Nanos) -> io::Result<()> {
        self.work(until, &|| true, |_| false)
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

    /// Begins a reading like [`Inquiry::ask`], but for servers whose answers to an earlier reading are outstanding:
    /// those answers, when they come, are taken for this one.
    pub fn ask_those_that_answered(&mut self) {
        self.begin_reading(Occasion::Within);
    }

    fn begin_reading(&mut self, occasion: Occasion) {
        // A server that was started anew since has closed its connection, which is opened again with the others. An error is met
        // again by the wait for the replies.
        if self.backend.wait(self.backend.now()).is_ok() {
            self.drain();
        }
        for side in &mut self.sides {
            side.told = None;
            side.wanted = true;
            side.reopened = false;
            side.occasion = if side.settings.is_none() { Occasion::First } else { occasion };
        }
        self.begin_opening();
        for number in 0..self.sides.len() {
            if self.sides[number].is_open() {
                self.put_questions(number);
            }
        }
    }

    /// Receives the replies of a reading, until `until` or until `goes_on` returns false.
    ///
    /// # Errors
    /// Returns the error of the kernel when it refuses to wait.
    pub fn listen(&mut self, until: Nanos, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        self.work(until, goes_on, |side| !side.wanted || side.trouble.is_some())
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
    pub fn take(&mut self, server: usize) -> Result<Told, String> {
        let side = &mut self.sides[server];
        side.wanted = false;
        side.told.take().ok_or_else(|| match &side.trouble {
            Some(why) => why.clone(),
            None if side.tries >= TRIES_MAX => {
                format!("the server was given up after {TRIES_MAX} connections for its statistics")
            }
            None if side.is_open() => {
                "the server did not answer in time when it was asked for its statistics".to_owned()
            }
            None => "the server did not let a connection for its statistics in in time".to_owned(),
        })
    }

    /// The settings of server number `server`; empty where it does not report them.
    pub fn settings(&self, server: usize) -> Facts {
        self.sides[server].settings.clone().unwrap_or_default()
    }

    /// Opens the connections that are closed. Whatever kept one from being open is tried once more.
    fn begin_opening(&mut self) {
        for number in 0..self.sides.len() {
            let side = &mut self.sides[number];
            let is_let_in = side.tries < TRIES_MAX && side.shunned < SHUNNED_MAX;
            if matches!(side.state, SideState::Closed) && is_let_in {
                side.trouble = None;
                side.refused = 0;
                self.dial(number);
            }
        }
    }

    fn dial(&mut self, number: usize) {
        let side = &mut self.sides[number];
        side.tries += 1;
        side.generation = side.generation.wrapping_add(1);
        side.state = SideState::Opening;
        side.is_over = false;
        let target = self.servers[number].target(0, side.attempt);
        self.backend.open(side.id(number), &target);
    }

    /// Works until all sides are done, `until` has come, or `goes_on` returns false.
    fn work(&mut self, until: Nanos, goes_on: &dyn Fn() -> bool, done: fn(&Side) -> bool) -> io::Result<()> {
        let mut now = self.backend.now();
        while now < until && goes_on() && !self.sides.iter().all(done) {
            now = self.backend.wait(until.min(now.saturating_add(LOOK_NS)))?;
            self.drain();
        }
        Ok(())
    }

    fn drain(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.backend.drain(&mut |conn, event| {
            let happened = match event {
                Event::Opened { .. } => Happened::Opened,
                Event::Received { bytes, read, .. } => Happened::Received(bytes.to_vec(), read),
                Event::Writable => Happened::Writable,
                Event::Closed(reason) => Happened::Closed(reason),
            };
            events.push((conn, happened));
        });
        // To a connection that is over nothing is sent, also where it was opened in the same turn.
        for (conn, happened) in &events {
            let number = conn.slot as usize;
            let side = self.sides.get_mut(number).filter(|side| side.id(number) == *conn);
            if let (Some(side), Happened::Closed(_)) = (side, happened) {
                side.is_over = true;
            }
        }
        for (conn, happened) in events.drain(..) {
            let number = conn.slot as usize;
            if self.sides.get(number).is_some_and(|side| side.id(number) == conn) {
                self.handle(number, happened);
            }
        }
        self.events = events;
    }

    fn handle(&mut self, number: usize, happened: Happened) {
        match happened {
            Happened::Opened => {
                let side = &mut self.sides[number];
                side.own.connections += 1;
                if self.handshake.is_none() {
                    side.state = SideState::Open;
                    self.put_questions(number);
                } else {
                    side.state = SideState::Handshake(Box::new(self.handshake.reader()));
                    side.out.extend_from_slice(self.handshake.bytes());
                    self.send(number);
                }
            }
            Happened::Writable => self.send(number),
            Happened::Received(bytes, read) => self.receive(number, &bytes, read),
            Happened::Closed(reason) => self.closed(number, reason),
        }
    }

    fn closed(&mut self, number: usize, reason: Reason) {
        let side = &mut self.sides[number];
        let was_opening = matches!(side.state, SideState::Opening);
        let trouble = if was_opening { Trouble::NotOpened(reason) } else { Trouble::Lost(reason) };
        // What a server says before it closes is its reason, such as that it is full.
        let mut said = std::mem::take(&mut side.received);
        if said.is_empty() {
            said = std::mem::take(&mut side.refusal);
        }
        let is_shunned =
            side.is_open() && !side.asked.is_empty() && said.is_empty() && side.settings.is_none();
        // A connection that was over before the question: the server closed it for a reason of its own, or started anew.
        let is_stale = side.wanted
            && side.is_open()
            && said.is_empty()
            && side.settings.is_some()
            && !side.reopened
            && side.tries < TRIES_MAX;
        let trouble = trouble.after(std::iter::once(said.as_slice()));
        side.forget_connection();
        if is_stale {
            side.reopened = true;
            // Another process may have other settings.
            side.occasion = Occasion::First;
            return self.dial(number);
        }
        if is_shunned {
            side.shunned += 1;
            side.trouble = Some(SHUNNED.to_owned());
            return;
        }
        side.refused += 1;
        if was_opening {
            side.attempt += 1;
            if side.refused < self.servers[number].addresses() && side.tries < TRIES_MAX {
                return self.dial(number);
            }
        }
        side.trouble = Some(format!("no connection for its statistics: {trouble}"));
    }

    /// Closes a connection and lets the server's side of it be in trouble for this reason.
    fn give_up(&mut self, number: usize, why: String) {
        self.close(number);
        self.sides[number].trouble = Some(why);
    }

    fn close(&mut self, number: usize) {
        if !self.sides[number].is_over {
            self.backend.close(self.sides[number].id(number), Close::Fin);
        }
        self.sides[number].forget_connection();
    }

    fn put_questions(&mut self, number: usize) {
        let side = &mut self.sides[number];
        if !side.wanted || !side.asked.is_empty() {
            return;
        }
        side.beside = Facts::default();
        for &question in self.dialect.questions(side.occasion) {
            if side.hidden.contains(&question) {
                continue;
            }
            let question =
                if question == Question::Info && side.plain_info { Question::InfoDefault } else { question };
            question.write(self.dialect, &mut side.out);
            side.asked.push_back(question);
        }
        self.send(number);
    }

    fn send(&mut self, number: usize) {
        let side = &mut self.sides[number];
        if side.out.is_empty() || side.is_over {
            return;
        }
        let conn = side.id(number);
        let handed = self.backend.send(conn, &[IoSlice::new(&side.out)]);
        side.out.drain(..handed.taken);
    }

    fn receive(&mut self, number: usize, bytes: &[u8], read: Nanos) {
        let side = &mut self.sides[number];
        if side.received.len() + bytes.len() > REPLY_MAX_BYTES {
            let most = REPLY_MAX_BYTES / 1024;
            return self.give_up(number, format!("the server's statistics are longer than {most} KiB"));
        }
        side.received.extend_from_slice(bytes);
        if let SideState::Handshake(reader) = &mut side.state {
            let mut rest = side.received.as_slice();
            let progress = reader.handle_received(&mut rest);
            let taken = side.received.len() - rest.len();
            match progress {
                Ok(HandshakeProgress::NeedMore) => drop(side.received.drain(..taken)),
                Ok(HandshakeProgress::Done) => {
                    side.received.drain(..taken);
                    side.own.commands += u64::from(self.handshake.replies());
                    side.state = SideState::Open;
                    self.put_questions(number);
                }
                Err(HandshakeRefused::Malformed(Malformed(what))) => self.malformed(number, what),
                Err(refused) => self.give_up(number, format!("no login for its statistics: {refused}")),
            }
        }
        if self.sides[number].is_open() {
            self.read_replies(number, read);
        }
    }

    fn malformed(&mut self, number: usize, what: &'static str) {
        let side = &mut self.sides[number];
        let mut said = std::mem::take(&mut side.received);
        said.truncate(QUOTED_BYTES);
        let trouble = Trouble::Malformed(what, said);
        self.give_up(number, format!("asked for its statistics, {trouble}"));
    }

    fn read_replies(&mut self, number: usize, read: Nanos) {
        while let Some(&question) = self.sides[number].asked.front() {
            let side = &mut self.sides[number];
            let (result, taken) = match reply::read(question, self.dialect, &side.received) {
                Reply::More => return,
                Reply::Malformed(what) => return self.malformed(number, what),
                Reply::Facts(facts, taken) => (Ok(facts), taken),
                Reply::Refused(words, taken) => (Err(words), taken),
            };
            side.received.drain(..taken);
            side.asked.pop_front();
            self.take_in(number, question, result, read);
        }
        // Without a question, a server that sends something all the same says why it is about to close.
    }

    fn take_in(&mut self, number: usize, question: Question, result: Result<Facts, String>, read: Nanos) {
        let side = &mut self.sides[number];
        let own_before = side.own;
        side.own.commands += u64::from(result.is_ok());
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
                // The counters do not include the command that reports them.
                side.told = Some(Told { at: read, facts, own: own_before });
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
        Question::InfoDefault.write(self.dialect, &mut side.out);
        side.asked.push_back(Question::InfoDefault);
        self.send(number);
    }
}
