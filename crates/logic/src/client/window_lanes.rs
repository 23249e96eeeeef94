//! The lanes of clients with windows: which of them a request takes, and when they are opened again.

use super::lane_socket::LaneState;
use super::window_state::Lanes;
use super::{Client, Lane};
use crate::protocol::Verb;
use crate::rng::below;
use crate::time::{Nanos, SECOND};

/// Pause of a client before it opens a lane to a replicated server again, in nanoseconds. Without replication
/// it opens the lane again at once.
const AWAY_NS: Nanos = 5 * SECOND;
/// Pause of a client between two attempts to open a lane again, in nanoseconds.
const RETRY_NS: Nanos = SECOND;

impl Client {
    /// Pause of the worker, in nanoseconds, before it opens a lost lane again after so many failed attempts;
    /// `None` where the client has no window and leaves the pause to the worker.
    pub fn reopening_pause(&self, failures: u32) -> Option<Nanos> {
        let tasks = self.many.as_ref()?.window.as_ref()?;
        Some(match (failures, tasks.rules.replication) {
            (0, None) => 0,
            (0, Some(_)) => AWAY_NS,
            _ => RETRY_NS,
        })
    }

    /// Whether the client has a window and cannot go on, although lanes may be opened again.
    pub fn is_cut_off(&self) -> bool {
        let Some(tasks) = self.many.as_ref().and_then(|many| many.window.as_ref()) else { return false };
        let Lanes { count, open, lost, began, .. } = tasks.lanes;
        match tasks.rules.replication {
            None => lost > 0,
            Some(_) => began && open == 0 || lost == count,
        }
    }

    /// Takes in that a lane of the window was opened.
    pub(super) fn note_opened(&mut self) {
        let Some(tasks) = self.window_state() else { return };
        tasks.lanes.open += 1;
        tasks.lanes.began |= tasks.lanes.open == tasks.lanes.count;
    }

    /// Takes in that a lane of the window was closed; with `again`, the client may open it again.
    pub(super) fn note_closed(&mut self, was_open: bool, again: bool) {
        let Some(tasks) = self.window_state() else { return };
        tasks.lanes.open -= usize::from(was_open);
        if again {
            tasks.lanes.closed += 1;
        } else {
            tasks.lanes.lost += 1;
        }
    }

    /// The first lane that is closed and may be opened.
    pub(super) fn closed_lane(&self) -> Option<Lane> {
        self.sockets().position(|socket| socket.state == LaneState::Closed).map(|lane| lane as Lane)
    }

    /// Whether enough lanes are open to ask any set and any get.
    pub(super) fn has_way(&mut self) -> bool {
        let Some(tasks) = self.window_state() else { return false };
        let (lanes, split) = (tasks.lanes, tasks.rules.split);
        if lanes.open == lanes.count {
            return true;
        }
        let is_open = |at: usize| matches!(self.socket(at as Lane).state, LaneState::Open(_));
        match split {
            true => is_open(lanes.count - 1) && (0..lanes.count - 1).any(is_open),
            false => lanes.open > 0,
        }
    }

    /// The open lane whose turn it is.
    pub(super) fn next_lane(&mut self, verb: Verb) -> Option<Lane> {
        let tasks = self.window_state()?;
        let (count, split, turn) = (tasks.lanes.count, tasks.rules.split, tasks.turn);
        if split && verb == Verb::Get {
            return Some((count - 1) as Lane);
        }
        let streams = if split { count - 1 } else { count };
        if streams == 1 {
            return matches!(self.socket(0).state, LaneState::Open(_)).then_some(0);
        }
        let lane = (0..streams)
            .map(|on| (turn + on) % streams)
            .find(|&lane| matches!(self.socket(lane as Lane).state, LaneState::Open(_)))?;
        if let Some(tasks) = self.window_state() {
            tasks.turn = (lane + 1) % streams;
        }
        Some(lane as Lane)
    }

    /// An open lane, drawn from `bits` among those to servers for which `is_good` holds.
    pub(super) fn lane_where(&self, bits: u64, is_good: impl Fn(u32) -> bool) -> Option<Lane> {
        let good = |lane: &Lane| {
            let socket = self.socket(*lane);
            matches!(socket.state, LaneState::Open(_)) && is_good(socket.server)
        };
        let lanes = || (0..self.sockets().count() as Lane).filter(good);
        let count = lanes().count() as u64;
        if count == 0 { None } else { lanes().nth(below(bits, count) as usize) }
    }
}
