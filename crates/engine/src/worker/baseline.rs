//! Round trips that a worker makes one at a time before the measured phase, on connections of the run between its phases.

use std::io;
use std::io::IoSlice;

use pummel_logic::connection::inflight::Ticket;
use pummel_logic::connection::session::{Answer, Chunk, Item, Sink};
use pummel_logic::plan::Mix;
use pummel_logic::plan::baseline::{KIND_MAX_NS, NoOwnReads, ROUND_TRIPS, ROUND_TRIPS_DROPPED};
use pummel_logic::protocol::{Codec, Fault, Malformed, Op, Verb};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::Nanos;
use pummel_logic::workload::lone_reads::LoneReads;
use pummel_measure::baseline::{Baseline, BaselineFault, RoundTrips};
use pummel_measure::trouble::says_full;

use crate::backend::{Backend, Close, ConnId, Event};
use crate::worker::barrier::Barrier;
use crate::worker::connections::ConnectionState;
use crate::worker::events::{handle, handle_others};
use crate::worker::population::Population;
use crate::worker::reporter::WorkerReporter;
use crate::worker::state::WorkerState;

/// The round trips that a worker makes one at a time.
#[derive(Debug)]
pub struct BaselineTask<'a> {
    /// The reads of the run, which come after the empty requests.
    pub own: &'a Result<Mix, NoOwnReads>,
    /// The owner of the draws of those reads.
    pub owner: StreamOwner,
    /// Time at which no reply is waited for any more, on the monotonic clock.
    pub until: Nanos,
    /// The barrier of the run, which says whether the run was stopped.
    pub barrier: &'a Barrier,
}

/// The parts of a worker that make round trips one at a time.
#[derive(Debug)]
pub(super) struct RoundTripMaker<'w, C, B> {
    pub(super) backend: &'w mut B,
    pub(super) population: &'w mut Population,
    pub(super) state: &'w mut WorkerState<C>,
}

/// The sink of a connection that answers one request which is no request of the run.
struct LoneReply<'a> {
    reporter: &'a mut WorkerReporter,
    reply: &'a mut Option<Reply>,
}

/// The end of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// The server has answered after this time.
    After(Nanos),
    /// The round trip has no end.
    Fault(BaselineFault),
    /// The run was stopped.
    Stopped,
}

impl Sink for LoneReply<'_> {
    fn item(&mut self, _: &Ticket, _: Item<'_>) -> Result<bool, Malformed> {
        Ok(false)
    }

    fn body(&mut self, _: &Ticket, _: &[u8]) {}

    fn answer(&mut self, answer: &Answer<'_>, message: &[u8]) {
        *self.reply = Some(match says_full(message) {
            true => Reply::Fault(BaselineFault::Refused),
            false => Reply::After(answer.arrived.saturating_sub(answer.sent)),
        });
    }

    fn lost(&mut self, _: &Answer<'_>) {}

    fn push(&mut self, name: &[u8]) {
        self.reporter.push(name);
    }
}

impl<C: Codec, B: Backend> RoundTripMaker<'_, C, B> {
    /// Makes round trips one at a time on one connection to each server, first empty ones and then reads of the run. A connection
    /// on which one of them found no end is closed, and belongs to those that the next phase waits for.
    pub(super) fn make(&mut self, task: &BaselineTask<'_>) -> io::Result<Baseline> {
        let mut baseline = Baseline { no_own: task.own.as_ref().err().copied(), ..Baseline::default() };
        let servers = self.state.reached_servers();
        if servers.is_empty() {
            *baseline.faults.entry(BaselineFault::NotOpen).or_default() += 1;
        }
        let reads = task.own.as_ref().ok().map(|mix| self.state.maker.lone_reads(mix, task.owner));
        let own = reads.as_ref().map(|reads| (Some(reads), &mut baseline.own));
        let mut failed: Vec<u32> = Vec::new();
        for (reads, trips) in std::iter::once((None, &mut baseline.empty)).chain(own) {
            let mut left_ns = KIND_MAX_NS;
            for (place, &server) in servers.iter().enumerate() {
                if failed.contains(&server) {
                    continue;
                }
                let share_ns = left_ns / (servers.len() - place) as Nanos;
                let begun = self.backend.now();
                let fault = self.ask_server(server, reads, begun.saturating_add(share_ns), task, trips)?;
                left_ns = left_ns.saturating_sub(self.backend.now().saturating_sub(begun));
                if let Some(fault) = fault {
                    failed.push(server);
                    *baseline.faults.entry(fault).or_default() += 1;
                }
            }
        }
        Ok(baseline)
    }

    /// Makes round trips of one kind to a server, none of which begins after `end`. Returns why they were not made as they were to
    /// be.
    fn ask_server(
        &mut self,
        server: u32,
        reads: Option<&LoneReads>,
        end: Nanos,
        task: &BaselineTask<'_>,
        trips: &mut RoundTrips,
    ) -> io::Result<Option<BaselineFault>> {
        let Some(slot) = self.state.usable_slot(server) else { return Ok(Some(BaselineFault::NotOpen)) };
        let WorkerState { connections, reporter, .. } = &mut *self.state;
        reporter.add_datagrams(&connections[slot].session.take_datagram_counts());
        let fault = self.ask_over(slot, reads, end, task, trips);
        // Its datagrams are none of the run either.
        self.state.connections[slot].session.take_datagram_counts();
        fault
    }

    /// Makes round trips of one kind over the connection in `slot`, none of which begins after `end`. Returns why they were not made
    /// as they were to be.
    fn ask_over(
        &mut self,
        slot: usize,
        reads: Option<&LoneReads>,
        end: Nanos,
        task: &BaselineTask<'_>,
        trips: &mut RoundTrips,
    ) -> io::Result<Option<BaselineFault>> {
        let lane = self.state.connections[slot].lane;
        let give_up = task.until.min(end.saturating_add(self.state.limits.drain_ns));
        for index in 0..ROUND_TRIPS {
            if task.barrier.is_stopped() {
                return Ok(None);
            }
            if self.backend.now() >= end.min(task.until) {
                return Ok((index <= ROUND_TRIPS_DROPPED).then_some(BaselineFault::Slow));
            }
            let WorkerState { maker, connections, .. } = &mut *self.state;
            let op = match reads {
                None => Some(Op::new(Verb::Version, &[])),
                Some(reads) => maker.lone_read(reads, index, lane),
            };
            // A server that has none of the records is asked for none.
            let Some(op) = op else { return Ok(None) };
            let ticket = Ticket { keys: op.keys.count() as u16, ..Ticket::of(op.verb) };
            if connections[slot].session.request(&op, ticket).is_err() {
                return Ok(None);
            }
            trips.requests += 1;
            match self.await_reply(slot, give_up, task.barrier)? {
                Reply::After(took_ns) => trips.record(index, took_ns),
                Reply::Fault(fault) => {
                    self.give_up_connection(slot);
                    return Ok(Some(fault));
                }
                Reply::Stopped => {
                    self.give_up_connection(slot);
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Sends the request that waits on the connection in `slot`, and waits for its reply until `give_up`. Events of other
    /// connections are handled meanwhile.
    fn await_reply(&mut self, slot: usize, give_up: Nanos, barrier: &Barrier) -> io::Result<Reply> {
        let RoundTripMaker { backend, population, state } = self;
        let id = state.id(slot);
        let mut now = backend.now();
        loop {
            send_waiting(state, slot, &mut **backend);
            let mut reply = None;
            backend.drain(&mut |conn, event| match conn == id {
                true => receive(state, id, event, now, &mut reply),
                false => handle(state, population, conn, event, now),
            });
            handle_others(state, population, *backend);
            if let Some(reply) = reply {
                return Ok(reply);
            }
            if barrier.is_stopped() {
                return Ok(Reply::Stopped);
            }
            if now >= give_up {
                return Ok(Reply::Fault(BaselineFault::Silent));
            }
            now = backend.wait_from(now, give_up.min(now.saturating_add(LOOK_NS)))?;
        }
    }

    /// Closes a connection whose reply would come in the next phase. It counts neither as lost nor as reconnected.
    fn give_up_connection(&mut self, slot: usize) {
        let RoundTripMaker { backend, population, state } = self;
        let now = backend.now();
        backend.close(state.id(slot), Close::Fin);
        let WorkerState { connections, reporter, .. } = &mut **state;
        let connection = &mut connections[slot];
        connection.session.handle_closed(Fault::Closed, now, &mut LoneReply { reporter, reply: &mut None });
        connection.history.closed_between_phases = true;
        population.end_session(state, slot, now);
        state.await_closed();
    }
}

/// Longest wait after which a worker looks whether the run was stopped, in nanoseconds.
const LOOK_NS: Nanos = KIND_MAX_NS;

/// Sends what waits on the connection in `slot`, as much as its socket takes.
fn send_waiting<C: Codec>(state: &mut WorkerState<C>, slot: usize, backend: &mut dyn Backend) {
    let id = state.id(slot);
    let WorkerState { connections, reporter, maker, room, .. } = state;
    let connection = &mut connections[slot];
    while connection.state() == ConnectionState::Open && connection.session.has_output() {
        let mut parts = [IoSlice::new(&[]), IoSlice::new(&[]), IoSlice::new(&[])];
        let count = connection.session.poll_send(maker.sources(), room, &mut parts);
        let offered: usize = parts[..count].iter().map(|part| part.len()).sum();
        // Where requests are stamped, all sends of a connection go the same way.
        let handed = match reporter.is_stamping() {
            true => backend.send_marked(id, &parts[..count], None),
            false => backend.send(id, &parts[..count]),
        };
        if handed.taken < offered {
            connection.fill();
        }
        let mut sink = LoneReply { reporter, reply: &mut None };
        connection.session.handle_sent(handed.taken, handed.at, &mut sink);
    }
}

/// Takes in an event of the connection that answers a request which is no request of the run.
fn receive<C: Codec>(
    state: &mut WorkerState<C>,
    id: ConnId,
    event: Event<'_>,
    now: Nanos,
    reply: &mut Option<Reply>,
) {
    let slot = id.slot as usize;
    let WorkerState { connections, reporter, .. } = &mut *state;
    let connection = &mut connections[slot];
    match event {
        Event::Received { bytes, stamp, read } => {
            let chunk = Chunk { bytes, stamp, read };
            let answered = connection.session.handle_received(chunk, &mut LoneReply { reporter, reply });
            if answered.is_err() {
                *reply = Some(Reply::Fault(BaselineFault::Malformed));
            }
            if let Some(Reply::After(_)) = reply {
                connection.answered = true;
                state.silence.answered(state.endpoints[slot].server, slot, read);
            }
        }
        Event::Writable => {
            connection.drain();
            connection.session.handle_writable(now);
        }
        Event::Closed(_) => *reply = Some(Reply::Fault(BaselineFault::Closed)),
        Event::Opened { .. } => {}
    }
}

impl<C: Codec> WorkerState<C> {
    /// The servers to which a connection of this worker was open, in their order.
    fn reached_servers(&self) -> Vec<u32> {
        let opened =
            self.connections.iter().zip(&self.endpoints).filter(|(connection, _)| connection.history.opened);
        let mut servers: Vec<u32> = opened.map(|(_, endpoint)| endpoint.server).collect();
        servers.sort_unstable();
        servers.dedup();
        servers
    }

    /// The slot of an open connection to this server on which nothing is under way, one that the server has answered on where there
    /// is any.
    fn usable_slot(&self, server: u32) -> Option<usize> {
        let is_usable = |slot: &usize| {
            let connection = &self.connections[*slot];
            self.endpoints[*slot].server == server
                && connection.state() == ConnectionState::Open
                && connection.session.is_idle()
                && !connection.session.has_output()
        };
        let usable = || (0..self.connections.len()).filter(is_usable);
        usable().find(|&slot| self.connections[slot].answered).or_else(|| usable().next())
    }
}
