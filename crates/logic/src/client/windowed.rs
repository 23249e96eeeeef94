//! Clients that work on a window of objects (memaslap): what they set, what they get, what they check.
//!
//! Such a client has one request outstanding. It collects gets until one request has all its keys, and sends sets at once.
//! It gets and checks an object only after the server has answered that it stored the object. Where it is not known what
//! became of a set, the object gets another key, so that no late set can make a check fail.

use super::lane_set::LaneState;
use super::window_state::{Asked, Command, LEAST_WEIGHT, ObjectState, Pick, WindowState};
use super::{Action, Client, Lane};
use crate::connection::answer::{Answer, Item};
use crate::connection::inflight::Ticket;
use crate::protocol::{Outcome, Verb};
use crate::time::{NEVER, Nanos};
use crate::workload::request::{AnswerUse, RequestMaker};
use crate::workload::window::{WindowMaker, advance, retreat};

impl Client {
    /// Gives a client that has its lanes a window of objects; the client is one of `clients`.
    pub fn with_window(mut self, maker: &WindowMaker, clients: u64) -> Client {
        self.source.window = Some(Box::new(WindowState::new(maker, self.source.number(), clients)));
        self.note_plain();
        self
    }

    /// The verb of the client's request that is outstanding or was the last; `None` without a window.
    pub fn window_verb(&self) -> Option<Verb> {
        let tasks = self.source.window.as_ref()?;
        Some(match tasks.asked {
            Asked::Set { .. } => Verb::Set,
            Asked::Get => Verb::Get,
        })
    }

    /// Returns what a client with a window wants.
    pub(super) fn poll_window<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        let over = now >= self.source.assignment.end || self.stopped;
        let cut_off = self.is_cut_off();
        if !over
            && !cut_off
            && let Some(lane) = self.lanes.closed_lane()
        {
            return self.open(lane);
        }
        if self.under_way.slots.outstanding > 0 {
            return Action::Wait(NEVER);
        }
        if over || cut_off {
            return Action::Done;
        }
        if self.source.assignment.requests == 0 {
            let settled = self.lanes.open() + self.lanes.lost() == self.lanes.len();
            return if settled { Action::Done } else { Action::Wait(self.source.assignment.end) };
        }
        if !self.can_ask() {
            return Action::Wait(self.source.assignment.end);
        }
        self.poll_command(now, maker)
    }

    /// Chooses sets and gets until one request is complete, and asks it.
    fn poll_command<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        loop {
            if self.source.issued >= self.source.assignment.requests {
                let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
                return match tasks.collected.is_empty() {
                    false => self.ask_gets(self.under_way.slots.since(), now, maker),
                    true => Action::Done,
                };
            }
            let due = self.source.next_due(self.under_way.slots.since());
            if due > now {
                return Action::Wait(due.min(self.source.assignment.end));
            }
            let index = self.source.issued;
            self.source.step();
            match self.choose(index, maker) {
                Command::Set { slot, overwrites } => {
                    return self.ask_set(slot, overwrites, due, now, maker);
                }
                Command::Get(pick) => {
                    let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
                    tasks.collected.push(pick);
                    if tasks.collected.len() >= tasks.plan.multiget as usize {
                        return self.ask_gets(due, now, maker);
                    }
                }
            }
        }
    }

    /// Chooses between set and get, and the object.
    fn choose(&mut self, index: u64, maker: &RequestMaker) -> Command {
        let stream = self.source.draws.key;
        let is_preset = maker.task.is_preset();
        let Some(tasks) = self.source.window.as_mut() else {
            unreachable!("only clients with a window choose")
        };
        if is_preset {
            return Command::Set { slot: (index % tasks.objects.len() as u64) as u32, overwrites: false };
        }
        let rules = &tasks.plan;
        let (gets, sets) = (tasks.gets as f64, tasks.sets as f64);
        let is_set = rules.set > LEAST_WEIGHT && gets * rules.set >= sets * rules.get;
        tasks.draw += 1;
        let bits = stream.draw(tasks.draw);
        if !is_set && let Some(slot) = tasks.find_present(bits) {
            let due = (tasks.verified as f64) < rules.verify * tasks.gets as f64;
            let verify = due && !maker.window().expires(slot);
            tasks.verified += u64::from(verify);
            tasks.gets += 1;
            return Command::Get(Pick { slot, verify, ..Pick::default() });
        }
        tasks.sets += 1;
        if tasks.overwrites_now()
            && let Some(slot) = tasks.find_present(bits)
        {
            return Command::Set { slot, overwrites: true };
        }
        let slot = (tasks.filled % tasks.objects.len() as u64) as u32;
        Command::Set { slot, overwrites: false }
    }

    fn ask_set<'a>(
        &'a mut self,
        slot: u32,
        overwrites: bool,
        due: Nanos,
        now: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        let (number, bits) = (self.source.number(), self.source.draws.op.draw(self.source.issued));
        let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
        let taker = tasks.objects[slot as usize].server;
        let writers = tasks.plan.pool.replication.map(|replication| replication.writers);
        let lane = match writers {
            None => self.next_lane(Verb::Set),
            // The server that took the object before takes it again, and replicates it to the others.
            Some(_) if overwrites => self.lane_where(bits, |server| server == taker),
            Some(writers) => self.lane_where(bits, |server| server < writers),
        };
        let lane = match lane.or_else(|| self.lane_where(bits, |_| true)) {
            Some(lane) => lane,
            None => return Action::Wait(self.source.assignment.end),
        };
        let stays = writers.is_none() || self.lanes.get(lane).server == taker;
        let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
        let overwrites = overwrites && stays;
        if !overwrites && tasks.objects[slot as usize].state != ObjectState::Fresh {
            tasks.renew(slot, number);
        }
        let object = &mut tasks.objects[slot as usize];
        let value_at = if overwrites { advance(object.value_at) } else { object.value_at };
        object.set_at = now;
        let (number, key_at) = (object.number, object.key_at);
        if !overwrites {
            object.state = ObjectState::Unknown;
        }
        tasks.asked = Asked::Set { slot, value_at, overwrites };
        let ticket = self.window_ticket(Verb::Set, slot, 1, due, now, lane);
        Action::Ask { lane, op: maker.window_mut().set(slot, number, key_at, value_at), ticket }
    }

    fn ask_gets<'a>(&'a mut self, due: Nanos, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        let (stream, issued) = (self.source.draws.op, self.source.issued);
        let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
        let mut picks = std::mem::take(&mut tasks.collected);
        // A chosen object may have lost its value meanwhile.
        for (place, pick) in picks.iter_mut().enumerate() {
            if tasks.objects[pick.slot as usize].state != ObjectState::Present
                && let Some(other) = tasks.find_present(stream.draw_sub(issued, 1 + place as u64))
            {
                pick.slot = other;
                pick.verify &= !maker.window().expires(other);
            }
        }
        tasks.collected = std::mem::replace(&mut tasks.picks, picks);
        tasks.collected.clear();
        (tasks.cursor, tasks.passing, tasks.asked) = (0, None, Asked::Get);
        let lane = match tasks.plan.pool.replication {
            // Any server that is there: each of them is to have every object.
            Some(_) => self.lane_where(stream.draw(issued), |_| true),
            None => self.next_lane(Verb::Get),
        };
        let Some(lane) = lane else { return Action::Wait(self.source.assignment.end) };
        let Some(tasks) = self.source.window.as_mut() else { return Action::Done };
        let keys = tasks.picks.len();
        let verbose = tasks.plan.verbose;
        let looks = tasks
            .picks
            .iter()
            .any(|pick| pick.verify || (keys > 1 || verbose) && maker.window().expires(pick.slot));
        let first = tasks.picks[0].slot;
        maker.window_mut().begin_keys();
        for pick in &tasks.picks {
            let object = &tasks.objects[pick.slot as usize];
            maker.window_mut().add_key(pick.slot, object.number, object.key_at);
        }
        let mut ticket = self.window_ticket(Verb::Get, first, keys as u16, due, now, lane);
        if looks {
            ticket.answer_use = AnswerUse::Window;
        }
        Action::Ask { lane, op: maker.window().get(), ticket }
    }

    fn window_ticket(
        &mut self,
        verb: Verb,
        slot: u32,
        keys: u16,
        due: Nanos,
        now: Nanos,
        lane: Lane,
    ) -> Ticket {
        let since = self.under_way.slots.since();
        self.under_way.slots.take();
        let opened = match self.lanes.get(lane).state {
            LaneState::Open(at) => at,
            _ => 0,
        };
        let ready = due.max(since).max(opened).min(now.max(due));
        Ticket { due, ready, index: self.source.issued, key: u64::from(slot), keys, ..Ticket::of(verb) }
    }

    /// Takes in an item of a reply to a client with a window. Returns whether the client needs the bytes of its value.
    pub fn handle_window_item(&mut self, item: &Item<'_>, maker: &mut RequestMaker) -> bool {
        let Some(tasks) = self.source.window.as_mut() else { return false };
        let count = tasks.picks.len();
        let start = tasks.cursor;
        let is_it = |at: usize| {
            let pick = &tasks.picks[at];
            let object = &tasks.objects[pick.slot as usize];
            maker.window().is_key(pick.slot, object.number, object.key_at, item.key)
        };
        let fresh = |at: &usize| !tasks.picks[*at].found && is_it(*at);
        let in_turn = || (0..count).map(|on| (start + on) % count);
        let Some(at) = in_turn().find(fresh) else {
            tasks.passing = None;
            // A value that comes twice was compared already.
            if (0..count).any(is_it) {
                return false;
            }
            // A value that was not asked for stands in the place of one that was, and is wrong once.
            let Some(at) = in_turn().find(|&at| !tasks.picks[at].found) else {
                maker.window_mut().counts.verify_failed += 1;
                return false;
            };
            let pick = &mut tasks.picks[at];
            (pick.found, pick.foreign, pick.passed) = (true, true, 0);
            tasks.passing = Some(at);
            return tasks.plan.verbose;
        };
        tasks.cursor = at + 1;
        let pick = &mut tasks.picks[at];
        let size_fits = item.size == u64::from(maker.window().value_bytes(pick.slot));
        (pick.found, pick.passed) = (true, 0);
        (pick.right, pick.right_before) = (size_fits, size_fits);
        tasks.passing = Some(at);
        pick.verify || tasks.plan.verbose && maker.window().expires(pick.slot)
    }

    /// Takes in that the server has no item for the next key of the get, where replies name no key.
    pub fn handle_window_absence(&mut self) {
        let Some(tasks) = self.source.window.as_mut() else { return };
        (tasks.cursor, tasks.passing) = (tasks.cursor + 1, None);
    }

    /// Takes in some bytes of the value of the item that came last.
    pub fn handle_window_body(&mut self, bytes: &[u8], maker: &RequestMaker) {
        let Some(tasks) = self.source.window.as_mut() else { return };
        let Some(pick) = tasks.passing.and_then(|at| tasks.picks.get_mut(at)) else { return };
        let object = &tasks.objects[pick.slot as usize];
        let whole = maker.window().value_bytes(pick.slot) as usize;
        let (from, until) = (pick.passed as usize, pick.passed as usize + bytes.len());
        let matches = |at: u32| until <= whole && maker.window().text(at, whole)[from..until] == *bytes;
        pick.right = pick.right && matches(object.value_at);
        if !pick.right {
            pick.right_before = pick.right_before && matches(retreat(object.value_at));
        }
        pick.passed = until.min(u32::MAX as usize) as u32;
        if tasks.plan.verbose {
            pick.received.extend_from_slice(bytes);
        }
    }

    /// Takes in the end of the request of a client with a window.
    pub(super) fn handle_window_answer(&mut self, lane: Lane, answer: &Answer<'_>, maker: &mut RequestMaker) {
        let server = self.lanes.get(lane).server;
        let number = self.source.number();
        let Some(tasks) = self.source.window.as_mut() else { return };
        let is_error = matches!(answer.outcome, Outcome::Error(_));
        match tasks.asked {
            Asked::Set { slot, value_at, overwrites } => {
                if answer.outcome == Outcome::Stored {
                    tasks.store(slot, value_at, server, overwrites);
                    maker.window_mut().count_object(slot);
                } else {
                    // memcached removes a value that it cannot overwrite, and a set without an answer may still be applied.
                    tasks.forget(slot);
                    tasks.renew(slot, number);
                }
            }
            Asked::Get if is_error => {}
            Asked::Get => {
                if let [pick] = tasks.picks.as_mut_slice() {
                    pick.found |= answer.hits > 0 || answer.outcome == Outcome::Hit;
                }
                let mut picks = std::mem::take(&mut tasks.picks);
                picks.iter().for_each(|pick| tasks.judge(pick, answer.read, maker));
                picks.clear();
                tasks.picks = picks;
            }
        }
    }
}
