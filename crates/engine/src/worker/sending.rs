//! The sending of requests: woken clients are polled, and the bytes of their requests are handed to the backend.

use std::io::IoSlice;

use pummel_logic::client::{Action, Client, Lane, WholeAnswer};
use pummel_logic::connection::outbox::{Room, Sources};
use pummel_logic::connection::session::{OUTBOX_MAX_BYTES, Session};
use pummel_logic::protocol::{Aside, Codec};
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::unsent::Unsent;

use crate::backend::{Backend, ConnId, Handed};
use crate::worker::connections::{Connection, ConnectionState};
use crate::worker::load_model::LoadModel;
use crate::worker::replies::{Replies, ReplyAccount};
use crate::worker::reporter::WorkerReporter;
use crate::worker::state::WorkerState;

/// Why a codec refuses no request of a valid plan.
const SAYABLE: &str = "a plan holds only what its protocol can say";

/// Most requests of one client in one turn.
const ASK_MAX: usize = 64;

/// Most requests of one client that are given up in one turn because their lane is lost.
const GIVE_UP_MAX: usize = 1_024;

impl<C: Codec> WorkerState<C> {
    /// Polls every woken client and sends its requests.
    #[inline]
    pub fn serve_woken<M: LoadModel>(
        &mut self,
        model: &mut M,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        // Clients with more requests than one turn allows are woken again meanwhile.
        let woken_again = std::mem::take(&mut self.woken_again);
        let mut woken = std::mem::replace(&mut self.woken, woken_again);
        for client in woken.drain(..) {
            self.entries[client as usize].woken = false;
            self.serve(model, client as usize, backend, now);
        }
        self.woken_again = woken;
    }

    fn serve<M: LoadModel>(
        &mut self,
        model: &mut M,
        number: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        if self.congested > 0 && self.is_congested(number) {
            return self.flush_client::<M::Account>(number, backend);
        }
        let (mut asked, mut given_up, mut is_crowded) = (0, 0, false);
        loop {
            let entry = &mut self.entries[number];
            if let Some((op, ticket)) = entry.client.poll_read(now, &mut self.maker) {
                // Only clients with one lane have quick reads.
                let waiting_bytes = self.connections[number].session.request(&op, ticket).expect(SAYABLE);
                asked += 1;
                is_crowded = waiting_bytes > OUTBOX_MAX_BYTES;
                if entry.client.is_full() {
                    break;
                }
                if asked >= ASK_MAX || is_crowded {
                    self.wake(number);
                    break;
                }
                continue;
            }
            let action = match entry.client.poll_read_over_lanes(now, &mut self.maker) {
                Some((lane, op, ticket)) => Action::Ask { lane, op, ticket },
                None => entry.client.poll(now, &mut self.maker),
            };
            match action {
                Action::Ask { lane, op, ticket } => {
                    let slot = self.lanes.slot_of(number, lane);
                    let waiting_bytes = self.connections[slot].session.request(&op, ticket).expect(SAYABLE);
                    is_crowded |= waiting_bytes > OUTBOX_MAX_BYTES;
                    if !self.lanes.are_single() {
                        self.to_flush.push(slot as u32);
                    }
                    asked += 1;
                    // The reply that frees one of its slots wakes the client.
                    if entry.client.is_full() {
                        break;
                    }
                    if (asked >= ASK_MAX || is_crowded) && !entry.client.is_splitting() {
                        self.wake(number);
                        break;
                    }
                }
                Action::AskAgain { lane, op, ticket, asking } => {
                    let slot = self.lanes.slot_of(number, lane);
                    let session = &mut self.connections[slot].session;
                    if asking {
                        session.request_aside(Aside::Asking);
                    }
                    is_crowded |= session.request(&op, ticket).expect(SAYABLE) > OUTBOX_MAX_BYTES;
                    if !self.lanes.are_single() {
                        self.to_flush.push(slot as u32);
                    }
                    asked += 1 + u32::from(asking) as usize;
                }
                Action::GivenUp(lane, whole) => self.give_up::<M::Account>(number, lane, &whole),
                Action::Open(lane) => {
                    if !model.open_lane(self, number, lane, now) {
                        break;
                    }
                }
                Action::Unsent { verb, due, place } => {
                    self.reporter.unsent_in_shard(place, due);
                    let unsent = Unsent { verb, requests: 1, estimated: 0 };
                    self.reporter.unsent_at(entry.client.group(), due, unsent);
                    given_up += 1;
                    if given_up >= GIVE_UP_MAX {
                        self.wake(number);
                        break;
                    }
                }
                Action::Leave => self.leave_stage(model, number, backend, now),
                Action::Wait(NEVER) => break,
                Action::Wait(at) => {
                    entry.wake_at(at, number, &mut self.due);
                    break;
                }
                Action::Done => {
                    model.handle_done(self, number, backend, now);
                    break;
                }
                Action::DoneUntil(at) => {
                    entry.wake_at(at, number, &mut self.due);
                    model.handle_done(self, number, backend, now);
                    break;
                }
            }
        }
        if asked > 0 {
            self.reporter.asked(asked as u32, self.entries[number].client.outstanding());
        }
        self.flush_client::<M::Account>(number, backend);
        if is_crowded {
            self.note_congestion(number);
        }
    }

    /// Queues the script of the plan on the connection in `slot`, whose server has lost it, before what is sent again there.
    #[cold]
    pub fn load_script_again(&mut self, slot: usize) {
        let Some(script) = self.maker.take_lost_script() else { return };
        let connection = &mut self.connections[slot];
        if connection.state() == ConnectionState::Open {
            connection.session.request_aside(Aside::LoadScript(script));
            let client = connection.client as usize;
            if !self.lanes.are_single() {
                self.to_flush.push(slot as u32);
            }
            self.wake(client);
        }
    }

    /// Counts what a client did not send in its turn on stage, which is over, and closes its connections.
    #[cold]
    fn leave_stage<M: LoadModel>(
        &mut self,
        model: &mut M,
        number: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        let end = self.entries[number].client.turn_end();
        let ends = self.reporter.part_ends(end);
        let draws_max = (self.limits.unsent_draws_max / ends.len() as u64).max(1);
        self.count_unsent(number, &ends, draws_max);
        self.entries[number].client.leave_stage();
        self.close_lanes(model, number, backend, now);
    }

    /// Closes all connections of a client that is off stage.
    #[cold]
    pub fn close_lanes<M: LoadModel>(
        &mut self,
        model: &mut M,
        number: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    ) {
        for slot in self.lanes.slots_of(number) {
            match self.connections[slot].state() {
                ConnectionState::Closed => continue,
                ConnectionState::Open | ConnectionState::Full => self.reporter.closed(),
                ConnectionState::Queued | ConnectionState::Opening | ConnectionState::Handshake => {}
            }
            model.close(self, slot, backend, now);
        }
    }

    /// Counts the requests of a client that were due and never sent, in the parts of the phase that end then.
    pub fn count_unsent(&mut self, number: usize, ends: &[Nanos], draws_max: u64) {
        let WorkerState { entries, maker, reporter, .. } = self;
        let client = &mut entries[number].client;
        let group = client.group();
        for &end in ends {
            client.count_unsent(end, maker, draws_max, |unsent| {
                reporter.unsent_at(group, end.saturating_sub(1), unsent);
            });
        }
    }

    /// Ends a request that was to be sent again, and was sent over this lane last, with an error.
    #[cold]
    pub fn give_up<A: ReplyAccount>(&mut self, number: usize, lane: Lane, whole: &WholeAnswer) {
        let slot = self.lanes.slot_of(number, lane);
        self.reporter.note_server(self.endpoints[slot].server);
        let client = &mut self.entries[number].client;
        let mut replies = Replies::<A>::new(slot, lane, client, &mut self.maker, &mut self.reporter);
        replies.finish_resent(&whole.answer(), whole.message());
        self.reporter.note_redirects(&mut self.maker);
    }

    /// Sends the waiting bytes of a client's connection, or of all connections with waiting bytes where clients have
    /// several lanes.
    #[inline]
    fn flush_client<A: ReplyAccount>(&mut self, number: usize, backend: &mut (impl Backend + ?Sized)) {
        if self.lanes.are_single() {
            return self.flush::<A>(number, backend);
        }
        let mut to_flush = std::mem::take(&mut self.to_flush);
        to_flush.drain(..).for_each(|slot| self.flush::<A>(slot as usize, backend));
        self.to_flush = to_flush;
    }

    /// Sends the waiting bytes of a connection, as many as the socket takes.
    #[inline]
    fn flush<A: ReplyAccount>(&mut self, slot: usize, backend: &mut (impl Backend + ?Sized)) {
        let id = self.id(slot);
        let connection = &mut self.connections[slot];
        let is_plain = connection.state() == ConnectionState::Open && !self.reporter.is_stamping();
        match connection.session.poll_send_plain().filter(|_| is_plain) {
            Some(bytes) => {
                let offered = bytes.len();
                let handed = backend.send(id, &[IoSlice::new(bytes)]);
                let all_begun = match handed.taken == offered {
                    true => connection.session.handle_all_sent(handed.at),
                    false => None,
                };
                // Nearly always the socket takes everything, and every request has a reply.
                match all_begun {
                    Some(begun) => {
                        self.reporter.sent(offered);
                        self.reporter.begun(begun, handed.at);
                        self.count_window_bytes::<A>(slot, offered);
                    }
                    None => {
                        self.handle_handed::<A>(slot, handed, offered);
                        self.flush_parts::<A>(slot, backend);
                    }
                }
            }
            None if connection.session.has_output() => self.flush_parts::<A>(slot, backend),
            None => {}
        }
        let connection = &mut self.connections[slot];
        if !connection.in_wheel && !connection.session.is_idle() {
            connection.in_wheel = true;
            let deadline = connection.session.deadline(self.limits.timeout_ns);
            self.wheel.insert(slot as u32, deadline);
        }
    }

    /// Sends the waiting bytes of a connection part by part, as many as the socket takes: those with long parts of values
    /// among them, datagrams, and those of requests that are stamped.
    #[inline(never)]
    fn flush_parts<A: ReplyAccount>(&mut self, slot: usize, backend: &mut (impl Backend + ?Sized)) {
        let id = self.id(slot);
        loop {
            let connection = &mut self.connections[slot];
            if connection.state() != ConnectionState::Open || !connection.session.has_output() {
                return;
            }
            let client = &self.entries[connection.client as usize].client;
            let (session, reporter) = (&mut connection.session, &mut self.reporter);
            let values = (self.maker.sources(), &mut self.room);
            let sent = send_parts((id, client), session, values, reporter, backend);
            let Some((handed, offered)) = sent else { return };
            self.handle_handed::<A>(slot, handed, offered);
        }
    }

    /// Handles that the backend took some of the `offered` bytes of a connection.
    fn handle_handed<A: ReplyAccount>(&mut self, slot: usize, handed: Handed, offered: usize) {
        // Requests that ask for no reply end here.
        self.reporter.note_server(self.endpoints[slot].server);
        let connection = &mut self.connections[slot];
        if handed.taken < offered {
            connection.fill();
        }
        self.reporter.sent(handed.taken);
        self.count_window_bytes::<A>(slot, handed.taken);
        let connection = &mut self.connections[slot];
        let (client, lane) = (connection.client as usize, connection.lane);
        let entry = &mut self.entries[client];
        let mut replies =
            Replies::<A>::new(slot, lane, &mut entry.client, &mut self.maker, &mut self.reporter);
        let begun = connection.session.handle_sent(handed.taken, handed.at, &mut replies);
        let (woken, ended) = (replies.woken, replies.ended);
        self.reporter.begun(begun, handed.at);
        if woken {
            self.reporter.ended(ended, handed.at);
            self.wake(client);
        }
    }

    /// Counts bytes of a client with a window that its connection in `slot` sent.
    #[inline]
    fn count_window_bytes<A: ReplyAccount>(&mut self, slot: usize, bytes: usize) {
        if A::HAS_WINDOWS {
            let client = &self.entries[self.connections[slot].client as usize].client;
            self.maker.window_mut().count_bytes(client.window_verb(), bytes);
        }
    }

    /// Whether one of this client's connections takes no request until its socket takes bytes.
    #[cold]
    fn is_congested(&self, client: usize) -> bool {
        self.connections[self.lanes.slots_of(client)].iter().any(Connection::is_congested)
    }

    /// Marks the connections of a client that stay congested after they were flushed.
    #[cold]
    fn note_congestion(&mut self, client: usize) {
        for slot in self.lanes.slots_of(client) {
            let connection = &mut self.connections[slot];
            if connection.is_congested() && !std::mem::replace(&mut connection.congested, true) {
                self.congested += 1;
            }
        }
    }

    /// Sends the waiting bytes of congested connections whose sockets take bytes again, before their clients send more
    /// requests. Wakes each client that may send again; its requests were held up by the socket until `now`.
    #[cold]
    pub fn relieve<A: ReplyAccount>(&mut self, backend: &mut dyn Backend, now: Nanos) {
        for id in std::mem::take(&mut self.relieved) {
            let slot = id.slot as usize;
            if !self.connections[slot].is(id) {
                continue;
            }
            self.flush::<A>(slot, backend);
            let connection = &mut self.connections[slot];
            if connection.is_congested() || !std::mem::take(&mut connection.congested) {
                continue;
            }
            self.congested -= 1;
            let client = connection.client as usize;
            self.entries[client].client.handle_writable(now);
            self.wake(client);
        }
    }
}

/// Sends the next parts of the waiting bytes of a connection; `values` are where long parts of values come from. Returns what the
/// backend took and how many bytes were offered; `None` where no bytes wait.
#[inline(never)]
fn send_parts<C: Codec>(
    (id, client): (ConnId, &Client),
    session: &mut Session<C>,
    values: (Sources<'_>, &mut Room),
    reporter: &mut WorkerReporter,
    backend: &mut (impl Backend + ?Sized),
) -> Option<(Handed, usize)> {
    if reporter.is_stamping() {
        let owner = (client.group() as u64, client.number());
        return send_stamped((id, owner), session, values, reporter, backend);
    }
    let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
    let count = session.poll_send(values.0, values.1, &mut parts);
    let offered = parts[..count].iter().map(|part| part.len()).sum();
    (count > 0).then(|| (backend.send(id, &parts[..count]), offered))
}

/// Sends the next parts of the waiting bytes of a connection, and has the last byte stamped where a request ends with it
/// that is to be. `owner` is the client by group and number. Returns what the backend took and how many bytes were
/// offered; `None` where no bytes wait.
#[inline(never)]
fn send_stamped<C: Codec>(
    (id, owner): (ConnId, (u64, u64)),
    session: &mut Session<C>,
    (sources, room): (Sources<'_>, &mut Room),
    reporter: &mut WorkerReporter,
    backend: &mut (impl Backend + ?Sized),
) -> Option<(Handed, usize)> {
    let offered = session.offered_bytes();
    if offered == 0 {
        return None;
    }
    let mut sample = reporter.stamping().and_then(|stamping| stamping.begin(id, owner, session.unsent()));
    if let Some((number, _)) = sample
        && !session.mark_sent(offered, number)
    {
        sample = None;
        reporter.release_stamp(number);
    }
    let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
    let count = session.poll_send(sources, room, &mut parts);
    let handed = backend.send_marked(id, &parts[..count], sample.map(|(_, mark)| mark));
    if let Some((number, _)) = sample {
        if handed.taken == offered {
            reporter.stamp_sent(id);
        } else {
            session.mark_sent(offered, 0);
            reporter.release_stamp(number);
        }
    }
    Some((handed, offered))
}
