//! The requests of one client that are under way: the slots that they take, those that wait for a slot, and those that lanes share.

use super::follow_ups::FollowUps;
use super::pending_requests::PendingRequests;
use super::slots::Slots;
use super::split::{Splits, WholeAnswer};
use crate::connection::answer::Answer;
use crate::time::Nanos;
use crate::workload::cache_counts::CacheCounts;

/// The requests of one client that are under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) slots: Slots,
    /// Requests that answers and events asked for.
    pub(super) waiting: FollowUps,
    /// Requests that lanes share; `None` where there is one lane.
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
        if let Some(pending) = self.pending_mut() {
            pending.clear();
        }
    }

    /// Requests that did not end with their first reply, and those that wait; `None` where there are never any.
    pub(super) fn pending(&self) -> Option<&PendingRequests> {
        self.splits.as_ref()?.pending.as_ref()
    }

    /// Requests that did not end with their first reply, to change them.
    pub(super) fn pending_mut(&mut self) -> Option<&mut PendingRequests> {
        self.splits.as_mut()?.pending.as_mut()
    }

    /// The pending requests of a client of a cluster; `None` where the servers are none.
    pub(super) fn cluster(&self) -> Option<&PendingRequests> {
        self.pending().filter(|pending| pending.is_cluster)
    }

    /// The pending requests of a client of a cluster, to change them.
    pub(super) fn cluster_mut(&mut self) -> Option<&mut PendingRequests> {
        self.pending_mut().filter(|pending| pending.is_cluster)
    }

    /// Whether requests of a client of no cluster are to be sent again, or wait for those that are.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        self.splits.is_some()
            && self.pending().is_some_and(|pending| {
                let is_empty = pending.redirected.is_empty() && pending.held.is_empty();
                !(pending.is_cluster || is_empty)
            })
    }

    /// Whether only some parts of a request were asked.
    #[inline]
    pub(super) fn is_splitting(&self) -> bool {
        self.splits.as_ref().is_some_and(|splits| !splits.parked.is_empty())
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
