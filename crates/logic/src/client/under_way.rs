//! The requests of one client that are under way: the slots that they take, those that wait for a slot, and those that lanes share.

use super::follow_ups::FollowUps;
use super::pending_requests::{PendingRequests, Redirected};
use super::slots::Slots;
use super::split::{Splits, WholeAnswer};
use super::stage_state::StageState;
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

    /// Begins a phase with `depth` slots, which are free since `begin`; `batched` slots are taken together.
    ///
    /// # Panics
    /// Panics when requests of the phase before are outstanding.
    pub(super) fn begin(&mut self, depth: u32, batched: bool, begin: Nanos) {
        assert!(self.slots.outstanding == 0, "a phase ends before the next begins");
        self.slots.renew(depth, batched, begin);
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

    /// The requests that were sent, and whose reply did not end them.
    pub(super) fn redirected(&self) -> &[Redirected] {
        self.pending().map_or(&[], |pending| &pending.redirected)
    }

    /// The requests that were sent, and whose reply did not end them, to change them; from now on there may be some.
    pub(super) fn redirected_mut(&mut self) -> &mut Vec<Redirected> {
        &mut self.splits.get_or_insert_default().pending.get_or_insert_default().redirected
    }

    /// Whether requests of a client of no cluster are to be sent again or to go on, or wait for those that are.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        self.splits.is_some()
            && self.pending().is_some_and(|pending| {
                let is_empty = pending.redirected.is_empty() && pending.held.is_empty();
                !(pending.is_cluster || is_empty)
            })
    }

    /// The turns of the client on stage; `None` where it is there all the time.
    #[inline]
    pub(super) fn stage(&self) -> Option<&StageState> {
        self.splits.as_ref()?.stage.as_ref()
    }

    /// Whether the client is on stage for some time only.
    #[inline]
    pub(super) fn has_stage(&self) -> bool {
        self.stage().is_some()
    }

    /// Whether only some parts of a request were asked.
    #[inline]
    pub(super) fn is_splitting(&self) -> bool {
        self.splits.as_ref().is_some_and(|splits| !splits.parked.is_empty())
    }

    /// Whether a request is being asked in parts, goes on or waits, or lanes are opened as requests need them.
    #[inline]
    pub(super) fn has_parted(&self) -> bool {
        let is_parted = |splits: &Splits| {
            !splits.parked.is_empty() || splits.pending.as_ref().is_some_and(|pending| !pending.is_calm())
        };
        self.splits.as_deref().is_some_and(is_parted)
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
