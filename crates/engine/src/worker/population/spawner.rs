//! Which client of a churn phase comes next to a worker, and when.

use pummel_logic::arrival::{Passed, Schedule};
use pummel_logic::client::PhaseAssignment;
use pummel_logic::plan::{Late, Transport};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::unsent;
use pummel_logic::workload::sequence::Draws;
use pummel_logic::workload::verify::stale::RunMark;

/// Clients whose arrivals are drawn as mcperf draws them, which keeps time by the millisecond, come together where they
/// are due within so long of each other, none before its time: thousands a second cost a wake-up for each millisecond
/// and not for each client.
const GRAIN_NS: Nanos = MILLISECOND;

/// What holds of churning clients in all phases.
#[derive(Clone, Copy, Debug)]
pub struct ChurnLimits {
    /// Index of the group in the Plan.
    pub group: usize,
    /// How many clients may be there at one time.
    pub limit: usize,
    /// This worker's number, and how many workers there are: the clients are dealt to them in turn.
    pub turn: (u64, u64),
    /// Most requests outstanding on a connection, to make room for.
    pub depth: usize,
    /// Whether values are checked, so that writers have to be told apart.
    pub mark: Option<RunMark>,
    /// What carries the requests.
    pub transport: Transport,
}

/// What churning clients do in a phase.
#[derive(Debug)]
pub struct ChurnPhase {
    /// Seed, group and phase of the draws; the client is filled in.
    pub place: StreamOwner,
    /// When the phase begins.
    pub begin: Nanos,
    /// When the phase ends: clients that are due later do not come, and those that are there go.
    pub end: Nanos,
    /// When clients come.
    pub spawns: SpawnSchedule,
    /// Requests of all clients together, over all workers; `u64::MAX`: as many as the time allows.
    pub requests: u64,
    /// Requests of one client.
    pub calls: u64,
    /// Most requests that a client has outstanding.
    pub depth: u32,
    /// The first request of a client is due when its connection is open, and each other one tells when the next is;
    /// otherwise they are made in closed loop.
    pub told: bool,
    /// Whether a slot is left free for a pause after a connection that failed, and a server that is silent for too long
    /// is given up. Otherwise each client comes when it is due, whatever became of those before it.
    pub paced: bool,
}

/// When clients come.
#[derive(Debug)]
pub enum SpawnSchedule {
    /// As soon as there is a slot.
    Closed,
    /// By a schedule of all clients of the group.
    Scheduled(Schedule),
    /// The first at once, each other one such a gap later.
    Drawn(Draws),
}

/// The clients of a churn phase that have still to come to one worker.
#[derive(Debug)]
pub struct Spawner {
    phase: ChurnPhase,
    /// This worker's number, and how many workers there are.
    turn: (u64, u64),
    /// Number of the client that comes next, over all workers, and when it is due; `None`: no other comes.
    next: Option<(u64, Nanos)>,
    /// Clients that are due before this time wait until then.
    held_until: Nanos,
}

impl Spawner {
    /// The clients of `phase` that are dealt to worker `turn.0` of `turn.1`.
    pub fn new(phase: ChurnPhase, turn: (u64, u64)) -> Spawner {
        let mut spawner = Spawner { phase, turn, next: None, held_until: 0 };
        spawner.advance();
        spawner
    }

    /// The phase.
    pub fn phase(&self) -> &ChurnPhase {
        &self.phase
    }

    /// Number of the client that comes next, and when it is due; `None`: no other comes.
    pub fn next(&self) -> Option<(u64, Nanos)> {
        self.next
    }

    /// Whether a client comes as soon as there is a slot.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.phase.spawns, SpawnSchedule::Closed)
    }

    /// Where the draws of client `number` come from.
    pub fn place_of(&self, number: u64) -> StreamOwner {
        StreamOwner { client: number, ..self.phase.place }
    }

    /// Goes on to the next client that is this worker's.
    pub fn advance(&mut self) {
        let phase = &mut self.phase;
        let (turn, turns) = self.turn;
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
                SpawnSchedule::Drawn(gaps) => due.saturating_add(gaps.draw_ns()),
            };
            is_first = false;
            if number % turns == turn {
                break;
            }
            number += 1;
        }
        let comes = due < phase.end && number.saturating_mul(phase.calls) < phase.requests;
        self.next = comes.then_some((number, due));
    }

    /// No client comes any more.
    pub fn end(&mut self) {
        self.next = None;
        self.phase.requests = 0;
    }

    /// When the next client comes, or the phase ends, given when it will have a slot; [`NEVER`] as long as a client has
    /// to go first, or where no other comes.
    pub fn next_due(&self, slot_free_at: Nanos) -> Nanos {
        let Some((_, due)) = self.next else { return NEVER };
        due.max(self.held_until).max(slot_free_at).min(self.phase.end)
    }

    /// The clients that were due until `now` have come, the last of them due at `last_due`: holds the next ones where
    /// clients come by the millisecond.
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

    /// Requests of this worker's clients that have not come; 0 where their number has no end.
    pub fn left(&self) -> u64 {
        let Some((next, _)) = self.next.filter(|_| self.phase.requests != u64::MAX) else { return 0 };
        let clients = self.phase.requests.div_ceil(self.phase.calls.max(1));
        let (_, turns) = self.turn;
        let mine = clients.saturating_sub(next).div_ceil(turns);
        if mine == 0 {
            return 0;
        }
        (mine - 1).saturating_mul(self.phase.calls).saturating_add(self.calls_of(next + (mine - 1) * turns))
    }

    /// How many requests this worker's clients were to make that are due before `end` and have not come. None in closed
    /// loop, where no client is due before there is a slot.
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
        unsent::calls_of_waiting(number, clients, self.turn.1, calls, requests)
    }

    /// What client `number` does that comes at `begin`.
    pub fn assignment_of(&self, number: u64, begin: Nanos) -> PhaseAssignment {
        PhaseAssignment {
            place: self.place_of(number),
            begin,
            end: self.phase.end,
            requests: self.calls_of(number),
            depth: self.phase.depth,
            repeats: 0,
            late: Late::Kept,
            spacing_ns: 0,
        }
    }
}
