//! Clients that come and go, and requests whose keys are counted.

use super::{Action, Client};
use crate::arrival::{Passed, Schedule};
use crate::connection::inflight::Ticket;
use crate::time::Nanos;
use crate::unsent::{self, Unsent};
use crate::workload::request::{CheckState, RequestMaker};

impl Client {
    /// Makes this client, which has nothing outstanding and no open lane, client `number` at server `server`, or of a cluster as before.
    pub fn renew(&mut self, number: u64, server: u32) {
        self.source.assignment.place.client = number;
        self.lanes.renew(server);
    }

    /// Ends the client, whose lanes are closed in order: no further request of it is due.
    pub fn depart(&mut self) {
        self.lanes.renew(self.lanes.get(0).server);
        self.source.assignment.requests = self.source.issued;
    }

    /// Lets this client, if it is one of a cluster, open the lane to a node when a request needs it, or the lanes to all nodes at once.
    pub fn open_on_demand(&mut self, on_demand: bool) {
        if let Some(cluster) = self.under_way.cluster_mut() {
            cluster.on_demand = on_demand;
        }
    }

    /// Gives the requests of the assignment the numbers from `first` on, as those behind the requests of a client that went.
    pub fn go_on_from(&mut self, first: u64) {
        let source = &mut self.source;
        source.issued = first;
        source.assignment.requests = source.assignment.requests.saturating_add(first);
    }

    /// Number of the request that the client asks next, and number of the one behind its last.
    pub fn calls(&self) -> (u64, u64) {
        (self.source.issued, self.source.assignment.requests)
    }

    /// Hands over the requests of the assignment that the client has not asked, by verb. At most `draws_max` verbs are drawn.
    pub fn report_rest(&self, maker: &RequestMaker, draws_max: u64, unsent: impl FnMut(Unsent)) {
        let rest = Passed::exactly(self.source.assignment.requests.saturating_sub(self.source.issued));
        let (op, first) = (&self.source.draws.op, self.source.issued);
        unsent::report(rest, draws_max, maker, |place| op.draw(first + place), unsent);
    }

    /// Whether the sequencer, and not a process of the client's own, decides when its requests are due.
    pub fn is_sequenced(&self) -> bool {
        self.source.schedule.as_ref().is_some_and(Schedule::is_set_by_caller)
    }

    /// Asks the next request of a sequence.
    #[inline(never)]
    pub(super) fn ask_step<'a>(
        &mut self,
        index: u64,
        due: Nanos,
        ready: Nanos,
        maker: &'a mut RequestMaker,
    ) -> Action<'a> {
        self.under_way.slots.take();
        let (step, gap_ns) = maker.task.step();
        if let Some(schedule) = &mut self.source.schedule {
            schedule.put_off(gap_ns);
        }
        let op = maker.ask_step(step);
        let ticket = Ticket {
            due,
            ready,
            index,
            key: step.number,
            check_state: CheckState::Length(step.size),
            ..Ticket::of(op.verb)
        };
        Action::Ask { lane: 0, op, ticket }
    }
}
