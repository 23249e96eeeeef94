//! The shares of a run: which clients of a plan each agent has, and which the controller has.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use pummel_logic::plan::share::{ProcessShare, deal};
use pummel_logic::plan::{Group, Plan, Work};

/// The share of each process in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The share of each agent, in the order of the agents; `None` for an agent without clients.
    pub agents: Vec<Option<ProcessShare>>,
    /// The share of the controller; `None` where it only leads.
    pub own: Option<ProcessShare>,
}

impl Shares {
    /// Deals the clients of a plan to this many agents: clients that stay with the controller to the controller, all others
    /// evenly to the agents.
    ///
    /// # Errors
    /// Returns what is accepted, where the plan cannot be shared by so many agents.
    pub fn dealt(plan: &Plan, agents: usize) -> Result<Shares, String> {
        let has_sequence = |group: &Group| group.churn.as_ref().is_some_and(|churn| churn.sequence.is_some());
        let has_window = plan.phases.iter().any(|phase| matches!(phase.work, Work::Window(_)));
        if has_window || plan.groups.iter().any(has_sequence) {
            return Err(
                "plans of mcperf and memaslap are run by one process: --agents is not accepted for them"
                    .to_owned(),
            );
        }
        let even = vec![1; agents];
        let deal_group = |group: &Group| match group.policy.here {
            true => vec![0..0; agents],
            false => deal(group, &even),
        };
        let dealt: Vec<Vec<Range<u64>>> = plan.groups.iter().map(deal_group).collect();
        let mark = random_mark();
        let share = |clients: Vec<Range<u64>>| {
            let all: u64 = clients.iter().map(|clients| clients.end - clients.start).sum();
            let threads = u64::from(plan.engine.threads).min(all).max(1) as u32;
            ProcessShare { clients, threads, first_worker: 0, workers: 0, mark }
        };
        let of_agent = |agent: usize| share(dealt.iter().map(|group| group[agent].clone()).collect());
        let mut of_agents: Vec<ProcessShare> = (0..agents).map(of_agent).collect();
        if of_agents.iter().any(|share| share.clients() == 0) {
            let dealt = plan.groups.iter().filter(|group| !group.policy.here);
            let clients: u64 = dealt.map(|group| u64::from(group.clients)).sum();
            return Err(format!(
                "--connections {clients}: expected at least one connection for each of the {agents} agents"
            ));
        }
        let clients_here = |group: &Group| 0..if group.policy.here { group.clients.into() } else { 0 };
        let is_here = plan.groups.iter().any(|group| group.policy.here);
        let mut own = is_here.then(|| share(plan.groups.iter().map(clients_here).collect()));
        number_workers(of_agents.iter_mut().chain(own.as_mut()));
        Ok(Shares { agents: of_agents.into_iter().map(Some).collect(), own })
    }

    /// Gives whole groups of a plan, by their indexes in it, to agents and to the controller, each with a number of threads.
    pub fn of_groups(plan: &Plan, agents: &[Option<(usize, u32)>], own: Option<(usize, u32)>) -> Shares {
        let mark = random_mark();
        let share = |(group, threads): (usize, u32)| {
            let clients =
                |(at, of): (usize, &Group)| if at == group { 0..u64::from(of.clients) } else { 0..0 };
            let clients: Vec<Range<u64>> = plan.groups.iter().enumerate().map(clients).collect();
            ProcessShare { clients, threads, first_worker: 0, workers: 0, mark }
        };
        let mut agents: Vec<Option<ProcessShare>> = agents.iter().map(|group| group.map(share)).collect();
        let mut own = own.map(share);
        number_workers(agents.iter_mut().flatten().chain(own.as_mut()));
        Shares { agents, own }
    }
}

/// Numbers the workers of all processes of a run.
fn number_workers<'a>(shares: impl Iterator<Item = &'a mut ProcessShare>) {
    let shares: Vec<&mut ProcessShare> = shares.collect();
    let workers = shares.iter().map(|share| share.threads).sum();
    let mut first = 0;
    for share in shares {
        (share.first_worker, share.workers) = (first, workers);
        first += share.threads;
    }
}

/// 64 bits that no other run has.
fn random_mark() -> u64 {
    RandomState::new().build_hasher().finish()
}
