//! The lanes of one client as the client knows them: which of them are open, and which reply is being received on each.

use crate::client::route::Lane;
use crate::time::Nanos;

/// The state of a lane, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneState {
    /// Not open and not asked for.
    Closed,
    Opening,
    /// Open since this time.
    Open(Nanos),
    /// Not to be opened again.
    Lost,
    /// Not to be opened: its node owns no slot of the cluster, or no request of a client that comes and goes needs it.
    Absent,
}

/// One of a client's sockets, as far as the client knows it.
#[derive(Debug)]
pub(super) struct ClientLane {
    pub(super) state: LaneState,
    /// Number of its server in the Plan.
    pub(super) server: u32,
    /// The last attempt to open it failed, after it had been open.
    pub(super) down: bool,
    /// Place of the key of a multi-get that is expected next in the reply.
    pub(super) cursor: u16,
    /// Keys that the reply passed over so far.
    pub(super) missed: Vec<u64>,
    /// CAS unique of the item that the reply to a read for a cas brought; 0 without one.
    pub(super) cas: u64,
    /// Bytes of the values that the reply brought so far, where they are counted.
    pub(super) value_bytes: u64,
}

/// The lanes of one client, to which others can be added.
#[derive(Debug)]
pub(super) struct LaneSet {
    /// Lane 0, which is all that most clients have.
    first: ClientLane,
    /// The other lanes; `None` where there are none.
    others: Option<Box<OtherLanes>>,
}

/// Lanes from 1 on.
#[derive(Debug)]
struct OtherLanes {
    sockets: Vec<ClientLane>,
    /// Number of lanes in each state, lane 0 among them, in the order of [`LaneState`].
    counts: [usize; 5],
}

/// Next step of a client's lanes, before the client asks its next request.
pub(super) enum Readiness {
    /// This lane is to be opened.
    Open(Lane),
    /// The client waits until its lane is open.
    Later,
    /// The client asks nothing any more.
    Never,
    /// The client asks; its only lane is open since this time. With several lanes, each request looks for its own.
    Since(Nanos),
}

/// State of the lanes that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// All of them are open since this time.
    Open(Nanos),
    /// A lane is not open, and the request waits for it.
    Later,
    /// A lane is not opened in this phase, or not soon enough to wait for it.
    Never,
}

impl Passage {
    /// The passage of a request that needs the lanes of both.
    pub(super) fn and(self, other: Passage) -> Passage {
        match (self, other) {
            (Passage::Open(since), Passage::Open(other)) => Passage::Open(since.max(other)),
            (Passage::Never, _) | (_, Passage::Never) => Passage::Never,
            _ => Passage::Later,
        }
    }
}

impl LaneState {
    /// The place of the state's number in the counts of a set.
    #[inline(always)]
    fn kind(self) -> usize {
        match self {
            LaneState::Closed => 0,
            LaneState::Opening => 1,
            LaneState::Open(_) => 2,
            LaneState::Lost => 3,
            LaneState::Absent => 4,
        }
    }

    pub(super) fn is_open(self) -> bool {
        matches!(self, LaneState::Open(_))
    }
}

impl LaneSet {
    /// A closed lane to this server of the Plan.
    pub(super) fn new(server: u32) -> LaneSet {
        LaneSet { first: ClientLane::new(server), others: None }
    }

    /// Adds a closed lane to this server of the Plan, behind all others.
    pub(super) fn add(&mut self, server: u32) {
        let mut counts = [0; 5];
        counts[self.first.state.kind()] = 1;
        let others = self.others.get_or_insert_with(|| Box::new(OtherLanes { sockets: Vec::new(), counts }));
        others.sockets.push(ClientLane::new(server));
        others.counts[LaneState::Closed.kind()] += 1;
    }

    /// Makes the only lane, which is not open, one to this server that is closed. Several lanes, none of which is open, keep their
    /// servers, and none of them is to be opened.
    pub(super) fn renew(&mut self, server: u32) {
        if self.is_single() {
            (self.first.state, self.first.server, self.first.down) = (LaneState::Closed, server, false);
            return;
        }
        for lane in 0..self.len() as Lane {
            self.set(lane, LaneState::Absent);
            self.get_mut(lane).down = false;
        }
    }

    /// Whether there is no lane but lane 0.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.others.is_none()
    }

    pub(super) fn len(&self) -> usize {
        1 + self.others.as_ref().map_or(0, |others| others.sockets.len())
    }

    /// All lanes in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ClientLane> {
        let others = self.others.as_ref().map_or(&[][..], |others| &others.sockets);
        std::iter::once(&self.first).chain(others)
    }

    #[inline]
    pub(super) fn get(&self, lane: Lane) -> &ClientLane {
        match &self.others {
            Some(others) if lane > 0 => &others.sockets[usize::from(lane) - 1],
            _ => &self.first,
        }
    }

    /// A lane, to change anything of it but its state.
    #[inline]
    pub(super) fn get_mut(&mut self, lane: Lane) -> &mut ClientLane {
        match &mut self.others {
            Some(others) if lane > 0 => &mut others.sockets[usize::from(lane) - 1],
            _ => &mut self.first,
        }
    }

    /// The state of lane 0.
    #[inline(always)]
    pub(super) fn first_state(&self) -> LaneState {
        self.first.state
    }

    /// Whether this lane is open.
    pub(super) fn is_open(&self, lane: Lane) -> bool {
        self.get(lane).state.is_open()
    }

    /// Moves a lane to another state.
    #[inline]
    pub(super) fn set(&mut self, lane: Lane, state: LaneState) {
        let before = std::mem::replace(&mut self.get_mut(lane).state, state);
        if let Some(others) = &mut self.others {
            others.counts[before.kind()] -= 1;
            others.counts[state.kind()] += 1;
        }
    }

    /// Number of lanes in the same kind of state as `state`.
    #[inline]
    fn count(&self, state: LaneState) -> usize {
        match &self.others {
            Some(others) => others.counts[state.kind()],
            None => usize::from(self.first.state.kind() == state.kind()),
        }
    }

    /// Number of lanes that are open.
    #[inline]
    pub(super) fn open(&self) -> usize {
        self.count(LaneState::Open(0))
    }

    /// Number of lanes that were lost and are not opened again.
    #[inline]
    pub(super) fn lost(&self) -> usize {
        self.count(LaneState::Lost)
    }

    /// Whether a lane is being opened.
    #[inline]
    pub(super) fn is_opening(&self) -> bool {
        self.count(LaneState::Opening) > 0
    }

    /// Whether a lane is closed and may be opened.
    #[inline]
    pub(super) fn has_closed(&self) -> bool {
        self.count(LaneState::Closed) > 0
    }

    /// The first lane that is closed and may be opened.
    #[inline]
    pub(super) fn closed_lane(&self) -> Option<Lane> {
        if !self.has_closed() {
            return None;
        }
        self.iter().position(|socket| socket.state == LaneState::Closed).map(|lane| lane as Lane)
    }

    /// Next step of the lanes, before the client asks its next request, in a phase that `is_over` or not; with
    /// `may_open`, closed lanes are opened.
    #[inline]
    pub(super) fn readiness(&self, is_over: bool, may_open: bool) -> Readiness {
        if !self.is_single() {
            return match self.closed_lane().filter(|_| !is_over && may_open) {
                Some(lane) => Readiness::Open(lane),
                None if self.lost() > 0 && self.lost() == self.len() - self.count(LaneState::Absent) => {
                    Readiness::Never
                }
                None => Readiness::Since(0),
            };
        }
        match self.first.state {
            LaneState::Open(at) => Readiness::Since(at),
            // Nothing is owed on a lane that is not open, and nothing more is asked now.
            LaneState::Closed | LaneState::Opening if is_over => Readiness::Never,
            LaneState::Closed if may_open => Readiness::Open(0),
            LaneState::Opening => Readiness::Later,
            LaneState::Closed | LaneState::Lost | LaneState::Absent => Readiness::Never,
        }
    }
}

impl ClientLane {
    pub(super) fn new(server: u32) -> ClientLane {
        let (state, missed) = (LaneState::Closed, Vec::new());
        ClientLane { state, server, down: false, cursor: 0, missed, cas: 0, value_bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_are_added_at_any_time_are_counted_with_those_before_them() {
        let mut lanes = LaneSet::new(4);
        lanes.set(0, LaneState::Open(70));
        assert!(lanes.is_single() && lanes.closed_lane().is_none());
        lanes.add(9);
        assert_eq!((lanes.len(), lanes.open(), lanes.closed_lane()), (2, 1, Some(1)));
        lanes.set(1, LaneState::Lost);
        lanes.add(2);
        lanes.set(2, LaneState::Opening);
        assert_eq!((lanes.open(), lanes.lost(), lanes.is_opening()), (1, 1, true));
        assert_eq!([0, 1, 2].map(|lane| lanes.get(lane).server), [4, 9, 2]);
        assert_eq!(lanes.first_state(), LaneState::Open(70), "the lane that was there stays open");
    }
}
