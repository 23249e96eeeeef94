//! The requests of one client that are under way: the slots that they take, those that wait for a slot, and those that lanes share.

use super::cluster_requests::{ClusterRequests, Redirected};
use super::follow_ups::FollowUps;
use super::slots::Slots;
use super::split::{Splits, WholeAnswer};
use crate::client::route::{Lane, Place};
use crate::connection::answer::Answer;
use crate::time::Nanos;
use crate::workload::cache_counts::CacheCounts;

/// The requests of one client that are under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) slots: Slots,
    /// Requests that answers and events asked for.
    pub(super) waiting: FollowUps,
    /// Requests that lanes share, or that take several exchanges; `None` where there are none.
    pub(super) splits: Option<Box<Splits>>,
}

impl UnderWay {
    /// Nothing, at a depth of 1.
    pub(super) fn new() -> UnderWay {
        UnderWay { slots: Slots::new(1, 0), waiting: FollowUps::default(), splits: None }
    }

    /// Begins a phase with `depth` slots, which are free since `begin`.
    ///
    /// # Panics
    /// Panics when requests of the phase before are outstanding.
    pub(super) fn begin(&mut self, depth: u32, begin: Nanos) {
        assert!(self.slots.outstanding == 0, "a phase ends before the next begins");
        self.slots.renew(depth, begin);
        self.waiting.clear();
        if let Some(splits) = &mut self.splits {
            splits.redirected.clear();
        }
        if let Some(cluster) = self.cluster_mut() {
            cluster.clear();
        }
    }

    /// Requests that have not found their node; `None` where the servers are no cluster.
    pub(super) fn cluster(&self) -> Option<&ClusterRequests> {
        self.splits.as_ref()?.cluster.as_ref()
    }

    /// Requests that have not found their node, to change them.
    pub(super) fn cluster_mut(&mut self) -> Option<&mut ClusterRequests> {
        self.splits.as_mut()?.cluster.as_mut()
    }

    /// Requests that were sent, and whose reply did not end them.
    pub(super) fn redirected(&self) -> &[Redirected] {
        self.splits.as_ref().map_or(&[], |splits| &splits.redirected)
    }

    /// Requests that were sent, and whose reply did not end them, to change them.
    pub(super) fn redirected_mut(&mut self) -> &mut Vec<Redirected> {
        &mut self.splits.get_or_insert_default().redirected
    }

    /// Whether one of them waits to be sent again, or to go on.
    pub(super) fn is_pending(&self) -> bool {
        self.redirected().iter().any(|redirected| redirected.under_way.is_none())
    }

    /// Whether a redirected request keeps others of its slot waiting.
    pub(super) fn is_blocked(&self, place: Place) -> bool {
        self.redirected().iter().any(|redirected| redirected.ticket.place == place)
    }

    /// Whether the redirected request at this place is not to be sent over `lane` yet, since an earlier one of its slot waits,
    /// or is under way elsewhere.
    pub(super) fn is_behind(&self, at: usize, lane: Lane) -> bool {
        let redirected = self.redirected();
        let place = redirected[at].ticket.place;
        let mut before = redirected[..at].iter().filter(|other| other.ticket.place == place);
        before.any(|other| other.under_way != Some(lane))
    }

    /// Whether only some parts of a request were asked.
    #[inline]
    pub(super) fn is_splitting(&self) -> bool {
        self.splits.as_ref().is_some_and(|splits| !splits.parked.is_empty())
    }

    /// Whether a request is being asked in parts, was sent and goes on, or has not found its node.
    #[inline]
    pub(super) fn has_parted(&self) -> bool {
        let of_lanes = |splits: &Splits| {
            !splits.parked.is_empty()
                || !splits.redirected.is_empty()
                || splits.cluster.as_ref().is_some_and(|cluster| !cluster.is_calm())
        };
        self.splits.as_deref().is_some_and(of_lanes)
    }

    /// Takes in the end of a part of a request, and what it counts of the cache. Returns the whole request when the part was its
    /// last; its slot is free then.
    ///
    /// # Panics
    /// Panics when the part belongs to no request.
    pub(super) fn end_part(
        &mut self,
        part: &Answer<'_>,
        message: &[u8],
        cache: CacheCounts,
    ) -> Option<WholeAnswer> {
        let Some(splits) = &mut self.splits else { unreachable!("only clients with several lanes split") };
        let begun = &mut splits.begun;
        let found = begun.binary_search_by_key(&part.ticket.index, |split| split.whole.ticket.index);
        let Ok(place) = found else { unreachable!("a part has a whole") };
        let split = &mut begun[place];
        split.whole.add(part, message);
        split.whole.cache.merge(&cache);
        split.parts -= 1;
        if split.parts > 0 {
            return None;
        }
        let split = begun.remove(place)?;
        self.slots.free(split.whole.arrived);
        Some(split.whole)
    }
}
