//! The arrivals of churning clients: which client of a phase comes next to a worker, and when.

use pummel_logic::arrival::{Passed, Schedule};
use pummel_logic::client::PhaseAssignment;
use pummel_logic::plan::{Late, Transport};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{FAR_NS, MILLISECOND, NEVER, Nanos};
use pummel_logic::unsent;
use pummel_logic::workload::sequence::Draws;
use pummel_logic::workload::verify::stale::RunMark;

/// Length of the steps, in nanoseconds, in which clients come together if their arrivals are drawn as mcperf draws
/// them. No client comes before it is due. With thousands of clients a second, this costs one wake-up for each
/// millisecond and not one for each client.
const GRAIN_NS: Nanos = MILLISECOND;

/// The limits of churning clients in all phases.
#[derive(Clone, Copy, Debug)]
pub struct ChurnLimits {
    /// Index of the group in the Plan.
    pub group: usize,
    /// Most clients at one time.
    pub limit: usize,
    /// This worker's number, and the number of workers: the clients are dealt to them in turn.
    pub share: (u64, u64),
    /// Outstanding requests of a connection for which memory is taken beforehand.
    pub depth: usize,
    /// The mark of the run, where values are checked and writers have to be distinguished.
    pub mark: Option<RunMark>,
    /// The transport of the requests.
    pub transport: Transport,
}

/// The work of churning clients in a phase.
#[derive(Debug)]
pub struct ChurnPhase {
    /// Seed, group and phase of the random draws. The number of each client is filled in.
    pub place: StreamOwner,
    /// The draws of the requests of all clients are those of client 0.
    pub same_draws: bool,
    /// Time at which the phase begins.
    pub begin: Nanos,
    /// Time at which the phase ends: clients that are due later do not come, and all others depart.
    pub end: Nanos,
    /// The times at which clients come.
    pub spawns: SpawnSchedule,
    /// Requests of all clients together, over all workers; `u64::MAX` for as many as the time allows.
    pub requests: u64,
    /// Requests of one client.
    pub calls: u64,
    /// Number of clients at one time, where the requests of each go on behind those of the client that many before it; `None` where
    /// each begins anew.
    pub goes_on: Option<u64>,
    /// Most requests that a client has outstanding.
    pub depth: u32,
    /// Whether a client sends that many together, each time when those before are answered.
    pub batched: bool,
    /// Whether a gap is drawn with each request of a client, after which the next one is due; the first is due when the
    /// connection is open. Without gaps, requests are made in closed loop.
    pub has_call_gaps: bool,
    /// Whether a slot stays free for a pause after a connection that failed. Otherwise each client comes when it is due,
    /// whether or not earlier connections failed.
    pub paced: bool,
}

/// The rule for the times at which clients come.
#[derive(Debug)]
pub enum SpawnSchedule {
    /// Each client comes as soon as a slot is free.
    Closed,
    /// Clients come by a schedule of all clients of the group.
    Scheduled(Schedule),
    /// The first client comes at once, and each other one a drawn gap after the one before.
    Drawn(Draws),
}

/// The clients of a churn phase that have not come to their worker yet.
#[derive(Debug)]
pub struct Spawner {
    phase: ChurnPhase,
    /// This worker's number, and the number of workers.
    share: (u64, u64),
    /// Number of the client that comes next, over all workers, and when it is due; `None` where no other client comes.
    next: Option<(u64, Nanos)>,
    /// Clients that are due before this time wait until then.
    held_until: Nanos,
}

impl Spawner {
    /// The clients of `phase` that are dealt to worker `share.0` of `share.1`.
    pub fn new(phase: ChurnPhase, share: (u64, u64)) -> Spawner {
        let mut spawner = Spawner { phase, share, next: None, held_until: 0 };
        spawner.advance();
        spawner
    }

    /// The phase of these clients.
    pub fn phase(&self) -> &ChurnPhase {
        &self.phase
    }

    /// Number of the client that comes next, and when it is due; `None` where no other client comes.
    pub fn next(&self) -> Option<(u64, Nanos)> {
        self.next
    }

    /// Whether each client comes as soon as a slot is free.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.phase.spawns, SpawnSchedule::Closed)
    }

    /// Whether a server that is silent for too long is given up: not where clients come when they are due, whatever became
    /// of earlier connections.
    pub fn gives_up(&self) -> bool {
        self.phase.paced || self.is_closed_loop()
    }

    /// The place of client `number`.
    fn place_of(&self, number: u64) -> StreamOwner {
        StreamOwner { client: number, ..self.phase.place }
    }

    /// The owner of the random draws of the requests of client `number`.
    pub fn draws_of(&self, number: u64) -> StreamOwner {
        self.place_of(number).of_requests(self.phase.same_draws)
    }

    /// Goes on to the next client of this worker.
    pub fn advance(&mut self) {
        let phase = &mut self.phase;
        let (worker, workers) = self.share;
        let (mut number, mut due) = match self.next {
            Some((number, due)) => (number + 1, due),
            None => (0, phase.begin),
        };
        let mut is_first = self.next.is_none();
        loop {
            due = match &mut phase.spawns {
                SpawnSchedule::Closed => due,
                SpawnSchedule::Scheduled(schedule) => phase.begin.saturating_add(schedule.next()),
                SpawnSchedule::Drawn(_) if is_first => due,
                // A client that is due in centuries is waited for as well.
                SpawnSchedule::Drawn(gaps) => {
                    due.saturating_add(gaps.draw_ns()).min(phase.begin.saturating_add(FAR_NS))
                }
            };
            is_first = false;
            if number % workers == worker {
                break;
            }
            number += 1;
        }
        let comes = due < phase.end && number.saturating_mul(phase.calls) < phase.requests;
        self.next = comes.then_some((number, due));
    }

    /// Ends the arrivals: no other client comes.
    pub fn end(&mut self) {
        self.next = None;
        self.phase.requests = 0;
    }

    /// Time at which the next client comes or the phase ends, if a slot is free from `slot_free_at` on; [`NEVER`] if
    /// a client has to depart first, or no other client comes.
    pub fn next_due(&self, slot_free_at: Nanos) -> Nanos {
        let Some((_, due)) = self.next else { return NEVER };
        due.max(self.held_until).max(slot_free_at).min(self.phase.end)
    }

    /// Holds the next clients for a millisecond after `last_due`, where arrivals are drawn and all clients that were
    /// due until `now` have come.
    pub fn hold_after(&mut self, last_due: Nanos, now: Nanos) {
        let all_came = self.next.is_none_or(|(_, due)| due > now);
        if matches!(self.phase.spawns, SpawnSchedule::Drawn(_)) && all_came {
            self.held_until = last_due.saturating_add(GRAIN_NS);
        }
    }

    /// Requests of client `number`.
    pub fn calls_of(&self, number: u64) -> u64 {
        let ChurnPhase { calls, requests, .. } = self.phase;
        calls.min(requests.saturating_sub(number.saturating_mul(calls)))
    }

    /// Requests of this worker's clients that have not come; 0 where their number is unlimited.
    pub fn left(&self) -> u64 {
        let Some((next, _)) = self.next.filter(|_| self.phase.requests != u64::MAX) else { return 0 };
        let clients = self.phase.requests.div_ceil(self.phase.calls.max(1));
        let (_, workers) = self.share;
        let mine = clients.saturating_sub(next).div_ceil(workers);
        if mine == 0 {
            return 0;
        }
        (mine - 1).saturating_mul(self.phase.calls).saturating_add(self.calls_of(next + (mine - 1) * workers))
    }

    /// Requests of this worker's clients that were due before `end` and have not come. There are none in closed loop,
    /// where no client is due before a slot is free.
    pub fn calls_before(&mut self, end: Nanos) -> Passed {
        let Some((number, due)) = self.next.filter(|(_, due)| *due < end) else { return Passed::default() };
        let phase = &mut self.phase;
        let (calls, requests, after) = (phase.calls, phase.requests, number + 1);
        let last = if requests == u64::MAX { u64::MAX } else { requests.div_ceil(calls) };
        let (most, draws_max) = (last.saturating_sub(after), unsent::draws_to_mark(after));
        let clients = match &mut phase.spawns {
            SpawnSchedule::Closed => return Passed::default(),
            SpawnSchedule::Scheduled(schedule) => {
                schedule.pass(end.saturating_sub(phase.begin), most, draws_max)
            }
            SpawnSchedule::Drawn(gaps) => unsent::pass_drawn(gaps, due, end, most, draws_max),
        };
        unsent::calls_of_waiting(number, clients, self.share.1, calls, requests)
    }

    /// Number of the first request of client `number`.
    pub fn first_of(&self, number: u64) -> u64 {
        let lives = self.phase.goes_on.map_or(0, |clients| number / clients.max(1));
        lives.saturating_mul(self.phase.calls)
    }

    /// The assignment of client `number`, which comes at `begin`.
    pub fn assignment_of(&self, number: u64, begin: Nanos) -> PhaseAssignment {
        PhaseAssignment {
            place: self.place_of(number),
            same_draws: self.phase.same_draws,
            begin,
            end: self.phase.end,
            requests: self.calls_of(number),
            depth: self.phase.depth,
            batched: self.phase.batched,
            repeats: 0,
            late: Late::Kept,
            spacing_ns: 0,
            ends_on_time: false,
            asked_before: 0,
        }
    }
}
