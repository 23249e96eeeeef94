//! Which of a Plan's clients one process has, where several share a run.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Group, Plan};

/// One process' part of a run. Requests are a function of the Plan and of the number of each client, so that the parts
/// of a Plan send the same requests however many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The numbers of the clients that are here, for each group of the Plan.
    pub clients: Vec<Range<u64>>,
    /// Workers here, at least 1.
    pub threads: u32,
    /// Workers of the parts before this one.
    pub first_worker: u32,
    /// Workers of all parts.
    pub workers: u32,
    /// 64 bits that all parts of one run have, and no other run.
    pub mark: u64,
}

impl Part {
    /// The only part of a run.
    pub fn whole(plan: &Plan, mark: u64) -> Part {
        let threads = plan.engine.threads;
        let clients = plan.groups.iter().map(|group| 0..u64::from(group.clients)).collect();
        Part { clients, threads, first_worker: 0, workers: threads, mark }
    }

    /// Whether there are others.
    pub fn is_whole(&self) -> bool {
        self.threads == self.workers
    }

    /// How many clients are here.
    pub fn clients(&self) -> u64 {
        self.clients.iter().map(|clients| clients.end - clients.start).sum()
    }

    /// Whether it is a part of this Plan: with its groups, and with clients and workers that it has.
    pub fn fits(&self, plan: &Plan) -> bool {
        let within = |(range, group): (&Range<u64>, &Group)| {
            let block = u64::from(group.policy.block).max(1);
            let edge = |number: u64| number.is_multiple_of(block) || number == u64::from(group.clients);
            range.start <= range.end
                && range.end <= u64::from(group.clients)
                && edge(range.start)
                && edge(range.end)
        };
        self.clients.len() == plan.groups.len()
            && self.clients.iter().zip(&plan.groups).all(within)
            && self.threads > 0
            && self.first_worker.checked_add(self.threads).is_some_and(|end| end <= self.workers)
    }
}

/// Deals the clients of a group to parts by their weights: neighbours stay together, and so do blocks.
pub fn deal(group: &Group, weights: &[u64]) -> Vec<Range<u64>> {
    let (clients, block) = (u64::from(group.clients), u64::from(group.policy.block).max(1));
    let blocks = u128::from(clients.div_ceil(block));
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let edge = |before: u128| match all {
        0 => 0,
        all => ((before * blocks / all) as u64).saturating_mul(block).min(clients),
    };
    let mut before = 0;
    let mut start = 0;
    let mut ranges = Vec::with_capacity(weights.len());
    for weight in weights {
        before += u128::from(*weight);
        let end = edge(before);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, ClientPolicy, Depth};

    fn group(clients: u32, block: u32) -> Group {
        Group {
            name: "clients".to_owned(),
            clients,
            depth: Depth::Limit(1),
            arrivals: Arrivals::Closed,
            rate: None,
            crowd: None,
            policy: ClientPolicy { block, ..ClientPolicy::default() },
        }
    }

    #[test]
    fn every_client_is_dealt_once_and_evenly() {
        assert_eq!(deal(&group(10, 1), &[1, 1, 1]), [0..3, 3..6, 6..10]);
        assert_eq!(deal(&group(8, 1), &[1; 8]).len(), 8);
        assert_eq!(deal(&group(2, 1), &[1, 1, 1]), [0..0, 0..1, 1..2]);
        assert_eq!(deal(&group(9, 1), &[1, 2]), [0..3, 3..9]);
        assert_eq!(deal(&group(9, 1), &[0, 3]), [0..0, 0..9]);
    }

    #[test]
    fn blocks_are_not_cut() {
        assert_eq!(deal(&group(10, 4), &[1, 1]), [0..4, 4..10]);
    }
}
