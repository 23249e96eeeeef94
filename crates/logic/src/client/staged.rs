//! Clients that are on stage for some time of a phase only: they open their connections shortly before a turn, and leave after it.
//!
//! Each turn is a small phase of the client's: what was due in it is sent, also late, and what could not be sent is counted as unsent
//! when the client leaves. In closed loop the first requests of a turn are due when its connections are open, so that opening them is no
//! part of a request's time.

use super::lane_set::LaneState;
use super::split::Splits;
use super::stage_state::{Position, StageState};
use super::{Action, Client, Lane};
use crate::plan::StageTurn;
use crate::time::{NEVER, Nanos};
use crate::workload::request::RequestMaker;

impl Client {
    /// Sets the turns of the client on stage, in the phase that has begun for it; `None` where it is there all the time. A client that
    /// has no turn when the phase begins is off stage, and its connections are to be closed. Behind a turn the client sends for
    /// `grace_ns` nanoseconds at most what was due in it.
    pub fn set_turns(&mut self, turns: Option<Vec<StageTurn>>, grace_ns: Nanos, maker: &RequestMaker) {
        let was_off = self.is_off_stage();
        let begin = self.source.assignment.begin;
        let stage = turns.map(|turns| {
            let at = |offset: Nanos| begin.saturating_add(offset);
            let turn = |turn: StageTurn| StageTurn {
                opens_ns: at(turn.opens_ns),
                begin_ns: at(turn.begin_ns),
                end_ns: at(turn.end_ns),
            };
            let turns: Vec<StageTurn> = turns.into_iter().map(turn).collect();
            let is_on = turns.first().is_some_and(|first| first.begin_ns <= begin);
            let position = if is_on { Position::On } else { Position::Off };
            StageState { turns, phase_end: self.source.assignment.end, grace_ns, position }
        });
        if stage.is_some() || self.under_way.has_stage() {
            self.under_way.splits.get_or_insert_default().stage = stage;
        }
        match (was_off, self.is_off_stage()) {
            (false, true) => self.close_lanes(),
            (true, false) => self.reopen_lanes(maker),
            _ => {}
        }
        if self.is_off_stage() {
            self.free_no_slot();
        }
        if let Some(stage) = self.under_way.stage() {
            let end = stage.turns.first().filter(|_| stage.position == Position::On).map(|turn| turn.end_ns);
            self.source.assignment.end = self.source.assignment.end.min(end.unwrap_or(NEVER));
        }
        self.note_plain();
    }

    /// Forgets the turns of the phase before. The client stays on stage, or off it.
    pub(super) fn forget_turns(&mut self) {
        let end = self.source.assignment.end;
        if let Some(stage) = stage_of(&mut self.under_way.splits) {
            stage.turns.clear();
            stage.phase_end = end;
            if stage.position != Position::Off {
                stage.position = Position::On;
            }
        }
    }

    /// Whether the client is off stage, so that it has no connection.
    pub fn is_off_stage(&self) -> bool {
        self.under_way.stage().is_some_and(|stage| stage.position == Position::Off)
    }

    /// Whether the client asks what is due without further questions, as far as its turns decide that.
    pub(super) fn plays(&self) -> bool {
        self.under_way.stage().is_none_or(|stage| stage.position == Position::On)
    }

    /// Whether the client sends what is late for too long, in which case it sends nothing more before its next turn. The worker has to
    /// poll it then.
    pub fn cut_turn(&mut self, now: Nanos) -> bool {
        let end = self.source.assignment.end;
        let Some(stage) = stage_of(&mut self.under_way.splits) else { return false };
        let is_late = end < stage.phase_end && now >= end.saturating_add(stage.grace_ns);
        if !is_late || matches!(stage.position, Position::Off | Position::Overdue) {
            return false;
        }
        stage.position = Position::Overdue;
        self.stopped = true;
        self.note_plain();
        true
    }

    /// Lets the phase of the client, and with it its last turn, end at `end` at the latest.
    pub(super) fn end_turns_at(&mut self, end: Nanos) {
        if let Some(stage) = stage_of(&mut self.under_way.splits) {
            stage.phase_end = stage.phase_end.min(end);
        }
    }

    /// Returns what a client with turns wants.
    #[inline(never)]
    pub(super) fn poll_staged<'a>(&'a mut self, now: Nanos, maker: &'a mut RequestMaker) -> Action<'a> {
        if let Some(until) = self.wait_off_stage(now) {
            return until;
        }
        if self.is_off_stage() {
            self.enter(maker);
        }
        if let Some(action) = self.await_lanes(now) {
            return action;
        }
        let leaves = self.leaves(now);
        match self.poll_playing(now, maker) {
            Action::Done if leaves => Action::Leave,
            action => action,
        }
    }

    /// The wait of a client that is off stage and is to stay there for a time; `None` for others.
    fn wait_off_stage(&self, now: Nanos) -> Option<Action<'static>> {
        let stage = self.under_way.stage().filter(|stage| stage.position == Position::Off)?;
        let next = stage.turns.first().filter(|turn| !self.stopped && turn.begin_ns < stage.phase_end);
        match next {
            Some(turn) if turn.opens_ns <= now => None,
            Some(turn) => Some(Action::Wait(turn.opens_ns)),
            None if now < stage.phase_end && stage.phase_end != NEVER => Some(Action::Wait(stage.phase_end)),
            None => Some(Action::Done),
        }
    }

    /// Begins the next turn, whose connections are closed still.
    fn enter(&mut self, maker: &RequestMaker) {
        let Some(stage) = stage_of(&mut self.under_way.splits) else { return };
        let Some(turn) = stage.turns.first().copied() else { return };
        stage.position = Position::Entering;
        self.source.assignment.end = turn.end_ns.min(stage.phase_end);
        self.under_way.slots.free_all(turn.begin_ns);
        self.reopen_lanes(maker);
        self.note_plain();
    }

    /// The action of a client whose connections are being opened for the first time in a turn; `None` where they are, or where one
    /// could not be opened.
    fn await_lanes(&mut self, now: Nanos) -> Option<Action<'static>> {
        let stage =
            stage_of(&mut self.under_way.splits).filter(|stage| stage.position == Position::Entering)?;
        let end = self.source.assignment.end;
        if let Some(lane) = self.lanes.closed_lane().filter(|_| now < end && !self.stopped) {
            return Some(self.open(lane));
        }
        if self.lanes.is_opening() && now < end && !self.stopped {
            return Some(Action::Wait(end));
        }
        stage.position = Position::On;
        let opened = self.lanes.iter().filter_map(|lane| match lane.state {
            LaneState::Open(since) => Some(since),
            _ => None,
        });
        if let (Some(opened), Some(turn)) = (opened.max(), stage.turns.first()) {
            let since = opened.max(turn.begin_ns);
            self.under_way.slots.free_all(since);
        }
        self.note_plain();
        None
    }

    /// Takes in that a connection which was to be opened for the first time in a turn could not be: the client does not wait for the
    /// others with it.
    pub(super) fn note_unopened(&mut self) {
        if let Some(stage) =
            stage_of(&mut self.under_way.splits).filter(|stage| stage.position == Position::Entering)
        {
            stage.position = Position::On;
            self.note_plain();
        }
    }

    /// Whether the turn under way is over, and the phase goes on behind it.
    fn leaves(&self, now: Nanos) -> bool {
        let end = self.source.assignment.end;
        self.under_way.stage().is_some_and(|stage| end < stage.phase_end && now >= end)
    }

    /// The end of the turn under way.
    pub fn turn_end(&self) -> Nanos {
        self.source.assignment.end
    }

    /// Takes the client off stage, whose connections the worker closes and whose requests that were not sent it has counted.
    pub fn leave_stage(&mut self) {
        let Some(stage) = stage_of(&mut self.under_way.splits) else { return };
        if !stage.turns.is_empty() {
            stage.turns.remove(0);
        }
        let was_overdue = stage.position == Position::Overdue;
        stage.position = Position::Off;
        self.stopped &= !was_overdue;
        self.free_no_slot();
        self.close_lanes();
        self.note_plain();
    }

    /// Lets no request of a closed loop be due, since the client is off stage.
    fn free_no_slot(&mut self) {
        self.under_way.slots.free_all(NEVER);
    }

    /// Marks the lanes as ones that are not to be opened, but for those that are lost.
    fn close_lanes(&mut self) {
        self.set_lanes(|_| LaneState::Absent);
    }

    /// Lets the lanes be opened, in a cluster those to its members, but for those that are lost.
    fn reopen_lanes(&mut self, maker: &RequestMaker) {
        let view = maker.cluster().filter(|_| self.under_way.cluster().is_some());
        self.set_lanes(|lane| match view {
            Some(view) if !view.is_member(lane) => LaneState::Absent,
            _ => LaneState::Closed,
        });
        if let Some(pending) = self.under_way.pending_mut() {
            pending.look_again();
        }
    }

    fn set_lanes(&mut self, state: impl Fn(Lane) -> LaneState) {
        for lane in 0..self.lanes.len() as Lane {
            if self.lanes.get(lane).state != LaneState::Lost {
                self.lanes.set(lane, state(lane));
                self.lanes.get_mut(lane).down = false;
            }
        }
    }

    /// The moment before which requests of the phase that were not sent were due. In open loop nothing is due off stage.
    pub(super) fn unsent_until(&self) -> Nanos {
        match self.under_way.stage() {
            Some(stage) if self.source.schedule.is_some() => stage.phase_end,
            _ => self.source.assignment.end,
        }
    }
}

/// The turns of a client, to change them beside its slots.
fn stage_of(splits: &mut Option<Box<Splits>>) -> Option<&mut StageState> {
    splits.as_mut()?.stage.as_mut()
}
