//! The lanes of clients with windows: which of them a request takes, and when they are opened again.

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
        let tasks = self.source.window.as_ref()?;
        Some(match (failures, tasks.plan.pool.replication) {
            (0, None) => 0,
            (0, Some(_)) => AWAY_NS,
            _ => RETRY_NS,
        })
    }

    /// Whether the client has a window and cannot go on, although lanes may be opened again.
    pub fn is_cut_off(&self) -> bool {
        let Some(tasks) = &self.source.window else { return false };
        let (open, lost) = (self.lanes.open(), self.lanes.lost());
        match tasks.plan.pool.replication {
            None => lost > 0,
            Some(_) => tasks.began && open == 0 || lost == self.lanes.len(),
        }
    }

    /// Whether enough lanes are open to ask any set and any get.
    pub(super) fn can_ask(&self) -> bool {
        let Some(tasks) = &self.source.window else { return false };
        let (count, open) = (self.lanes.len(), self.lanes.open());
        if open == count {
            return true;
        }
        match tasks.plan.pool.datagrams {
            true => {
                let mut streams = 0..count as Lane - 1;
                self.lanes.is_open(count as Lane - 1) && streams.any(|lane| self.lanes.is_open(lane))
            }
            false => open > 0,
        }
    }

    /// The open lane whose turn it is.
    pub(super) fn next_lane(&mut self, verb: Verb) -> Option<Lane> {
        let tasks = self.source.window.as_mut()?;
        let (count, split, turn) = (self.lanes.len(), tasks.plan.pool.datagrams, tasks.turn);
        if split && verb == Verb::Get {
            return Some((count - 1) as Lane);
        }
        let streams = if split { count - 1 } else { count };
        if streams == 1 {
            return self.lanes.is_open(0).then_some(0);
        }
        let lane =
            (0..streams).map(|on| (turn + on) % streams).find(|&lane| self.lanes.is_open(lane as Lane))?;
        tasks.turn = (lane + 1) % streams;
        Some(lane as Lane)
    }

    /// An open lane, drawn from `bits` among those to servers for which `is_good` holds.
    pub(super) fn lane_where(&self, bits: u64, is_good: impl Fn(u32) -> bool) -> Option<Lane> {
        let good = |lane: &Lane| {
            let socket = self.lanes.get(*lane);
            socket.state.is_open() && is_good(socket.server)
        };
        let lanes = || (0..self.lanes.len() as Lane).filter(good);
        let count = lanes().count() as u64;
        if count == 0 { None } else { lanes().nth(below(bits, count) as usize) }
    }
}
