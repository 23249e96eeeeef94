//! The dealing of a Plan's clients, requests, depths and records to processes, workers and clients.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{
    Arrivals, ChurningClients, Delete, Depth, Group, Load, Phase, Plan, Route, Transport, Work, memory,
};

/// Most clients of a server that load it over UDP, and most requests that they have outstanding together: a burst of
/// more fills the buffer of the server's socket, which then loses them.
const LOADERS_MAX: u64 = 64;

/// The clients and workers of a run that are in one process. Requests are a function of the Plan and of the number of each
/// client, so that the processes of a run send equal requests however many there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProcessShare {
    /// The numbers of the clients in this process, for each group of the Plan.
    pub clients: Vec<Range<u64>>,
    /// Workers in this process, at least 1.
    pub threads: u32,
    /// Workers of the processes before this one.
    pub first_worker: u32,
    /// Workers of all processes.
    pub workers: u32,
    /// 64 bits that all processes of one run have, and no other run.
    pub mark: u64,
}

/// One client of a Plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId {
    /// Index of the client's group in the Plan.
    pub group: usize,
    /// Number of the client in its group, from 0, over all processes.
    pub number: u64,
}

impl ProcessShare {
    /// The only process of a run.
    pub fn whole(plan: &Plan, mark: u64) -> ProcessShare {
        let threads = plan.engine.threads;
        let clients = plan.groups.iter().map(|group| 0..u64::from(group.clients)).collect();
        ProcessShare { clients, threads, first_worker: 0, workers: threads, mark }
    }

    /// Whether this process has all clients of the run.
    pub fn is_whole(&self) -> bool {
        self.threads == self.workers
    }

    /// Number of clients in this process.
    pub fn clients(&self) -> u64 {
        self.clients.iter().map(|clients| clients.end - clients.start).sum()
    }

    /// Number of this process's things of `count` that are dealt in turn to the workers of all processes, such as
    /// clients that come and go and rows of a recording.
    pub fn turns_of(&self, count: u64) -> u64 {
        let workers = u64::from(self.workers.max(1));
        let (first, threads) = (u64::from(self.first_worker), u64::from(self.threads));
        let rest = (count % workers).saturating_sub(first).min(threads);
        count / workers * threads + rest
    }

    /// Whether the process fits this Plan: it has its groups, and only clients and workers that exist.
    pub fn fits(&self, plan: &Plan) -> bool {
        let within = |(range, group): (&Range<u64>, &Group)| {
            let block = block_of(group);
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

    /// The clients of a worker of this process that are there from the beginning: neighbours, so that servers, which are
    /// dealt to clients in turn, are spread over every worker. Clients that come and go are made as they come, unless the
    /// Plan has them load.
    pub fn clients_of_worker(&self, plan: &Plan, worker: usize) -> Vec<ClientId> {
        let (worker, threads) = (worker as u64, u64::from(self.threads));
        let loads = plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_)));
        let mut clients = Vec::new();
        for (at, (group, here)) in plan.groups.iter().zip(&self.clients).enumerate() {
            if group.churn.is_some() && !loads {
                continue;
            }
            let block = block_of(group);
            let blocks = (here.end - here.start).div_ceil(block);
            let start = |worker: u64| (here.start + worker * blocks / threads * block).min(here.end);
            let numbers = start(worker)..start(worker + 1);
            clients.extend(numbers.map(|number| ClientId { group: at, number }));
        }
        clients
    }

    /// Most clients of a group that come and go and that one worker of this process may have at one time.
    pub fn churning_clients_of_worker(&self, group: usize, worker: usize) -> u64 {
        let (worker, threads) = (worker as u64, u64::from(self.threads));
        let clients = self.clients[group].end - self.clients[group].start;
        (worker + 1) * clients / threads - worker * clients / threads
    }
}

/// Deals the clients of a group to processes by their weights: neighbours stay together, and so do blocks.
pub fn deal(group: &Group, weights: &[u64]) -> Vec<Range<u64>> {
    let (clients, block) = (u64::from(group.clients), block_of(group));
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

/// The dealing of one phase of a Plan to its clients: everything that follows from both and from the transport of the
/// load.
#[derive(Clone, Copy, Debug)]
pub struct PhaseShare<'a> {
    /// Index of the phase in the Plan.
    pub number: usize,
    /// The phase of the Plan.
    pub phase: &'a Phase,
    /// Requests that the phase makes over all processes; `None` where only its time ends it.
    pub requests: Option<u64>,
    plan: &'a Plan,
    /// Records of one server that the phase goes through one by one; `None` where requests are drawn.
    records: Option<u64>,
    /// Most clients of a server that go through its records.
    loaders: u64,
}

/// The work of one client in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientShare {
    /// Requests that it makes; the greatest number where only the time of the phase ends it.
    pub requests: u64,
    /// Most requests that the client has outstanding.
    pub depth: u32,
    /// Most repetitions of requests whose first attempt got lost.
    pub repeats: u64,
}

impl<'a> PhaseShare<'a> {
    /// The phase with this index of a Plan some of whose servers may be loaded over `loading`; [`Transport::Udp`] where one
    /// of them is.
    pub fn new(plan: &'a Plan, number: usize, loading: Transport) -> PhaseShare<'a> {
        let phase = &plan.phases[number];
        let records = match &phase.work {
            Work::Load(load) => Some(load_records(plan, load)),
            // How many keys a recording has, only its reader knows.
            Work::Delete(_) if plan.replays() => Some(0),
            Work::Delete(delete) => Some(delete_records(delete, plan.data.records)),
            Work::Audit(_) => Some(plan.data.records),
            Work::Mix(_) | Work::Replay(_) | Work::Trace(_) | Work::Pause(_) | Work::Window(_) => None,
        };
        let requests = requests_of_phase(plan, phase, records);
        PhaseShare { number, phase, requests, plan, records, loaders: loaders(loading) }
    }

    /// The phase in a run whose recording has so many keys.
    pub fn with_recorded_keys(self, keys: u64) -> PhaseShare<'a> {
        match &self.phase.work {
            Work::Delete(delete) if self.plan.replays() => {
                let records = Some(delete_records(delete, keys));
                PhaseShare { records, requests: requests_of_phase(self.plan, self.phase, records), ..self }
            }
            _ => self,
        }
    }

    /// Requests that the phase makes in one process; `None` where only its time ends it.
    pub fn requests_in(&self, part: &ProcessShare) -> Option<u64> {
        if part.is_whole() {
            return self.requests;
        }
        self.requests?;
        let clients = part
            .clients
            .iter()
            .enumerate()
            .flat_map(|(group, numbers)| numbers.clone().map(move |number| ClientId { group, number }));
        Some(clients.map(|client| self.requests_of(client)).fold(0, u64::saturating_add))
    }

    /// Returns the work of a client in the phase. A client that loads over datagrams repeats lost requests, at most
    /// about once for each of its requests: a server may lose every second store for good.
    pub fn of_client(&self, client: ClientId) -> ClientShare {
        let requests = self.requests_of(client);
        if !self.is_loaded_by_datagrams() {
            return ClientShare { requests, depth: self.depth_of(client.group), repeats: 0 };
        }
        let clients = u64::from(self.plan.groups[client.group].clients);
        let mates = match self.plan.route {
            Route::All => {
                let block = self.plan.groups.first().map_or(1, |group| group.policy.block.into());
                rank_among_mates(client.number, clients, self.plan.servers.len() as u64, block).1
            }
            _ => clients,
        };
        let depth = (LOADERS_MAX / mates).max(1) as u32;
        ClientShare { requests, depth, repeats: requests.max(LOADERS_MAX) }
    }

    /// Requests that a client makes in the phase. If there are several groups, the first goes through the records.
    fn requests_of(&self, client: ClientId) -> u64 {
        if let Work::Window(window) = &self.phase.work
            && window.preset
        {
            return window.objects.into();
        }
        match self.records {
            Some(_) if client.group > 0 => 0,
            Some(records) => self.records_of(client, records),
            None => self.draws_of(client),
        }
    }

    /// Records that a client goes through, where each server has `records` of them.
    fn records_of(&self, client: ClientId, records: u64) -> u64 {
        let group = &self.plan.groups[client.group];
        let (clients, servers) = (u64::from(group.clients), self.plan.servers.len() as u64);
        let (requests, rank, mates) = match self.plan.route {
            Route::All => {
                let block = u64::from(group.policy.block);
                let (rank, mates) = rank_among_mates(client.number, clients, servers, block);
                (records, rank, mates)
            }
            _ => (self.requests.unwrap_or(0), client.number, clients),
        };
        let loaders = mates.min(self.loaders);
        if rank < loaders { equal_share(requests, rank, loaders) } else { 0 }
    }

    /// Requests that a client draws. If clients are in blocks, a server with more clients than others gets no more
    /// requests than they do.
    fn draws_of(&self, client: ClientId) -> u64 {
        // The reader of a trace ends the phase.
        if matches!(self.phase.work, Work::Trace(_)) {
            return u64::MAX;
        }
        let Some(requests) = self.phase.stop.requests else { return u64::MAX };
        let requests = requests_of_group(self.plan, client.group, requests);
        let group = &self.plan.groups[client.group];
        let (clients, block) = (u64::from(group.clients), u64::from(group.policy.block));
        if block <= 1 {
            return equal_share(requests, client.number, clients);
        }
        let servers = self.plan.servers.len() as u64;
        let (rank, mates) = rank_among_mates(client.number, clients, servers, block);
        equal_share(equal_share(requests, client.number / block % servers, servers), rank, mates)
    }

    /// Most requests that a client of a group has outstanding in the phase, where nothing is loaded over datagrams.
    pub fn depth_of(&self, group: usize) -> u32 {
        match &self.phase.work {
            Work::Load(load) => load.depth,
            Work::Delete(delete) => delete.depth,
            Work::Audit(audit) => audit.depth,
            Work::Window(_) => 1,
            Work::Mix(_) | Work::Replay(_) | Work::Trace(_) | Work::Pause(_) => {
                memory::depth_of(&self.plan.groups[group])
            }
        }
    }

    /// Whether the clients of a group send their requests in batches in the phase.
    pub fn is_batched(&self, group: usize) -> bool {
        let is_measured = matches!(self.phase.work, Work::Mix(_) | Work::Replay(_) | Work::Trace(_));
        is_measured && self.plan.groups[group].depth.is_batch()
    }

    /// Most requests that a client has outstanding that comes, makes `calls` requests and goes.
    pub fn churning_depth(&self, group: usize, calls: u64) -> u32 {
        let calls = u32::try_from(calls).map_or(u32::MAX, |calls| calls.max(1));
        calls.min(self.depth_of(group))
    }

    /// The process by which requests of a group are due in the phase, and their rate in requests per second over the whole
    /// group; `None` in closed loop. Loading and deleting go as fast as they can.
    pub fn arrivals_of(&self, group: usize) -> Option<(&'a Arrivals, f64)> {
        let group = &self.plan.groups[group];
        match (&self.phase.work, &group.arrivals, group.rate) {
            (Work::Window(window), _, _) if window.preset => None,
            (_, Arrivals::Closed, _) => None,
            (Work::Mix(_) | Work::Replay(_) | Work::Window(_), arrivals, Some(rate)) => {
                Some((arrivals, rate))
            }
            _ => None,
        }
    }

    /// Whether all connections are open when the phase begins. Clients with windows and clients that come and go open their
    /// own when they want them, and the time of a phase that runs on is not spent on opening any.
    pub fn begins_with_all_open(&self) -> bool {
        let churns = self.plan.churning_group().is_some() && matches!(self.phase.work, Work::Mix(_));
        self.plan.window().is_none() && !churns && !self.plan.runs_on(self.number)
    }

    /// Whether the phase stores records by datagrams, which get lost where too many come at once.
    fn is_loaded_by_datagrams(&self) -> bool {
        matches!(self.phase.work, Work::Load(_)) && self.loaders == LOADERS_MAX
    }
}

/// Requests that a phase makes over all processes, where each server, or all of them together where keys decide on the
/// server, has `records` to go through.
fn requests_of_phase(plan: &Plan, phase: &Phase, records: Option<u64>) -> Option<u64> {
    match (&phase.work, records) {
        (Work::Trace(_), _) => None,
        (Work::Window(window), _) if window.preset => Some(plan.clients() * u64::from(window.objects)),
        (_, Some(records)) if plan.route.owns_keys() => Some(records),
        (_, Some(records)) => Some(records * plan.servers.len() as u64),
        (_, None) => phase.stop.requests,
    }
}

/// Most clients of a server that load it where it is loaded over this transport.
pub fn loaders(loading: Transport) -> u64 {
    match loading {
        Transport::Udp => LOADERS_MAX,
        Transport::Stream => u64::MAX,
    }
}

/// Number of requests with which a load stores its records on each server, or over all servers where keys decide on the server.
pub fn load_records(plan: &Plan, load: &Load) -> u64 {
    let spaces = [!load.no_plain, load.pieces, load.counters, load.hashes];
    let of_commands = plan.stores_per_record();
    let times = spaces.into_iter().filter(|wanted| *wanted).count() as u64;
    (times + if load.commands { of_commands } else { 0 }).saturating_mul(plan.data.records)
}

/// Number of records that a deletion removes on each server, or over all servers where keys decide on the server.
pub fn delete_records(delete: &Delete, records: u64) -> u64 {
    ((delete.share * records as f64).round() as u64).min(records)
}

/// The rank of client `number` among those at its server, from 0, and how many those are, where `servers` are dealt in
/// turn to blocks of `clients`, the last of which may be shorter.
#[inline]
pub fn rank_among_mates(number: u64, clients: u64, servers: u64, block: u64) -> (u64, u64) {
    let (turn, place) = (number / block, number % block);
    let rank = turn / servers * block + place;
    let round = servers * block;
    let start = turn % servers * block;
    let rest = (clients % round).saturating_sub(start).min(block);
    (rank, clients / round * block + rest)
}

/// The share of a group in the requests of a phase: by the rates of the groups where each has one, so that all are through
/// at one time, and otherwise by their clients. Each server gets as many as any other where the requests divide so.
fn requests_of_group(plan: &Plan, group: usize, requests: u64) -> u64 {
    let groups = &plan.groups;
    if groups.len() == 1 {
        return requests;
    }
    let have_rates = groups.iter().all(|group| group.rate.is_some());
    let weight =
        |group: &Group| group.rate.filter(|_| have_rates).unwrap_or_else(|| f64::from(group.clients));
    let all: f64 = groups.iter().map(weight).sum();
    let servers = plan.servers.len() as u64;
    let unit = if requests.is_multiple_of(servers) { servers } else { 1 };
    let edge = |groups_before: usize| match groups_before {
        0 => 0,
        before if before == groups.len() => requests,
        before => {
            let share = groups[..before].iter().map(weight).sum::<f64>() / all;
            ((requests / unit) as f64 * share) as u64 * unit
        }
    };
    edge(group + 1) - edge(group)
}

/// One client's share of requests: all clients make as many, and the first ones one more where it does not divide.
fn equal_share(requests: u64, number: u64, clients: u64) -> u64 {
    requests / clients + u64::from(number < requests % clients)
}

/// Number of a group's clients, one after the other, that are dealt to one server and one worker.
fn block_of(group: &Group) -> u64 {
    u64::from(group.policy.block).max(1)
}

/// Room for outstanding requests that a connection has from the beginning. With unlimited depth few are outstanding at one
/// time nearly always; more take their memory when they come, within the Plan's bound.
pub fn depth_at_start(depth: Depth) -> usize {
    match depth {
        Depth::Limit(depth) | Depth::Batch(depth) => depth as usize,
        Depth::Unlimited => 16,
    }
}

impl Plan {
    /// Number of clients in all groups.
    pub fn clients(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.clients)).sum()
    }

    /// Number of clients in the groups before a client's and before it in its group.
    pub fn clients_before(&self, client: ClientId) -> u64 {
        self.groups[..client.group].iter().map(|group| u64::from(group.clients)).sum::<u64>() + client.number
    }

    /// The group whose clients come and go, with its index; `None` where all clients stay.
    pub fn churning_group(&self) -> Option<(usize, &ChurningClients)> {
        self.groups.iter().enumerate().find_map(|(at, group)| Some((at, group.churn.as_ref()?)))
    }

    /// Whether some requests go by datagrams, or all.
    pub fn uses_datagrams(&self) -> bool {
        self.transport == Transport::Udp || self.window().is_some_and(|window| window.pool.datagrams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ClientPolicy, Data, LoadCommand, Mix, Stop};
    use crate::protocol::Verb;

    fn group(clients: u32, block: u32) -> Group {
        Group { clients, policy: ClientPolicy { block, ..ClientPolicy::default() }, ..Group::default() }
    }

    /// A plan of one phase for these servers and this group.
    fn plan(servers: usize, route: Route, group: Group, work: Work, requests: Option<u64>) -> Plan {
        let stop = Stop { time_ns: None, requests };
        let mut plan = Plan {
            servers: (0..servers).map(|server| format!("127.0.0.1:{}", 1_000 + server)).collect(),
            route,
            groups: vec![group],
            phases: vec![Phase { name: "phase".to_owned(), work, stop, recorded: true }],
            ..Plan::default()
        };
        plan.data.records = 103;
        plan
    }

    fn mix() -> Work {
        Work::Mix(Mix::of(&[(Verb::Get, 1.0)]))
    }

    fn load() -> Work {
        Work::Load(Load { depth: 8, ..Load::default() })
    }

    fn clients(plan: &Plan) -> impl Iterator<Item = ClientId> {
        let groups = plan.groups.iter().enumerate();
        groups.flat_map(|(group, all)| {
            (0..u64::from(all.clients)).map(move |number| ClientId { group, number })
        })
    }

    /// The clients of a plan as so many processes have them, with two workers each.
    fn parts(plan: &Plan, processes: u32) -> Vec<ProcessShare> {
        let ranges: Vec<_> =
            plan.groups.iter().map(|group| deal(group, &vec![1; processes as usize])).collect();
        let part = |process: u32| ProcessShare {
            clients: ranges.iter().map(|ranges| ranges[process as usize].clone()).collect(),
            threads: 2,
            first_worker: 2 * process,
            workers: 2 * processes,
            mark: 1,
        };
        (0..processes).map(part).collect()
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

    #[test]
    fn clients_make_all_requests_of_a_phase_together_and_so_do_processes() {
        let routes = [Route::All, Route::RoundRobin, Route::Ketama];
        for route in routes {
            for (servers, count, block) in
                [(1, 1, 1), (1, 7, 1), (3, 7, 1), (3, 3, 1), (2, 9, 4), (3, 200, 1)]
            {
                for work in [load(), Work::Delete(Delete { share: 0.5, depth: 4 }), mix()] {
                    for requests in [0, 1, 5, 1_000, u64::from(u32::MAX)] {
                        let plan = plan(servers, route, group(count, block), work.clone(), Some(requests));
                        for loading in [Transport::Stream, Transport::Udp] {
                            assert_all_is_dealt(&PhaseShare::new(&plan, 0, loading));
                        }
                    }
                }
            }
        }
    }

    /// Asserts that the requests of all clients, and those of all processes, are the requests of the phase.
    fn assert_all_is_dealt(share: &PhaseShare<'_>) {
        let plan = share.plan;
        let sum: u64 = clients(plan).map(|client| share.of_client(client).requests).sum();
        assert_eq!(Some(sum), share.requests, "{plan:?}");
        for processes in 1..4 {
            let parts = parts(plan, processes);
            let sum: u64 = parts.iter().map(|part| share.requests_in(part).unwrap()).sum();
            assert_eq!(Some(sum), share.requests, "{processes} processes of {plan:?}");
        }
    }

    #[test]
    fn a_phase_that_ends_by_time_alone_has_no_number_of_requests() {
        let plan = plan(2, Route::All, group(4, 1), mix(), None);
        let share = PhaseShare::new(&plan, 0, Transport::Stream);
        assert_eq!(share.requests, None);
        assert!(parts(&plan, 2).iter().all(|part| share.requests_in(part).is_none()));
        assert!(clients(&plan).all(|client| share.of_client(client).requests == u64::MAX));
    }

    #[test]
    fn shares_differ_by_one_request_at_most() {
        for (requests, expected) in [(0, [0, 0, 0]), (1, [1, 0, 0]), (3, [1, 1, 1]), (5, [2, 2, 1])] {
            let plan = plan(1, Route::All, group(3, 1), mix(), Some(requests));
            let share = PhaseShare::new(&plan, 0, Transport::Stream);
            let shares: Vec<u64> = clients(&plan).map(|client| share.of_client(client).requests).collect();
            assert_eq!(shares, expected, "{requests} requests");
        }
        assert_eq!((0..3).map(|number| equal_share(u64::MAX, number, 3)).sum::<u64>(), u64::MAX);
    }

    #[test]
    fn servers_of_blocks_get_as_many_requests_each() {
        let plan = plan(2, Route::All, group(6, 4), mix(), Some(100));
        let share = PhaseShare::new(&plan, 0, Transport::Stream);
        let shares: Vec<u64> = clients(&plan).map(|client| share.of_client(client).requests).collect();
        assert_eq!(shares, [13, 13, 12, 12, 25, 25], "four clients of one server, two of the other");
    }

    #[test]
    fn the_first_group_goes_through_the_records_and_all_groups_together_draw_the_requests() {
        for (work, requests, expected) in [(load(), None, [103, 0]), (mix(), Some(9), [4, 5])] {
            let mut plan = plan(1, Route::All, group(1, 1), work, requests);
            plan.groups.push(group(1, 1));
            let share = PhaseShare::new(&plan, 0, Transport::Stream);
            let shares: Vec<u64> = clients(&plan).map(|client| share.of_client(client).requests).collect();
            assert_eq!(shares, expected, "{plan:?}");
        }
    }

    #[test]
    fn groups_share_requests_by_their_rates_or_their_clients_and_servers_get_as_many_each() {
        let of = |clients, rate| Group { rate, ..group(clients, 1) };
        for (groups, requests, expected) in [
            ([of(4, None), of(12, Some(5.0)), of(4, None)], 200, [40, 120, 40]),
            ([of(4, Some(100.0)), of(12, Some(300.0)), of(2, Some(600.0))], 1_000, [100, 300, 600]),
            ([of(2, Some(1.0)), of(2, Some(1.0)), of(2, Some(1.0))], 100, [32, 34, 34]),
            ([of(2, None), of(2, None), of(2, None)], 7, [2, 2, 3]),
        ] {
            let mut plan = plan(2, Route::All, group(1, 1), mix(), Some(requests));
            plan.groups = groups.to_vec();
            let share = PhaseShare::new(&plan, 0, Transport::Stream);
            let (mut sums, mut servers) = (vec![0; 3], [0; 2]);
            for client in clients(&plan) {
                let made = share.of_client(client).requests;
                sums[client.group] += made;
                servers[client.number as usize % 2] += made;
            }
            assert_eq!(sums, expected, "{requests} requests");
            assert!(requests % 2 == 1 || servers[0] == servers[1], "{servers:?}");
        }
    }

    #[test]
    fn loads_go_through_every_space_on_every_server_that_holds_a_record() {
        let one = Load::default();
        let spaces = [
            (one.clone(), 1),
            (Load { pieces: true, counters: true, ..one.clone() }, 3),
            (Load { hashes: true, commands: true, no_plain: true, ..one }, 2),
        ];
        for (load, expected) in spaces {
            let of_ten = Plan { data: Data { records: 10, ..Data::default() }, ..Plan::default() };
            assert_eq!(load_records(&of_ten, &load), 10 * expected, "{load:?}");
            let load_command = Some(LoadCommand { template: "RPUSH __key__ x".to_owned(), per_record: 3 });
            let more = if load.commands { 2 } else { 0 };
            assert_eq!(load_records(&Plan { load_command, ..of_ten }, &load), 10 * (expected + more));
            for (route, servers) in [(Route::All, 3), (Route::RoundRobin, 3), (Route::Modulo, 1)] {
                let plan = plan(3, route, group(3, 1), Work::Load(load.clone()), None);
                let share = PhaseShare::new(&plan, 0, Transport::Stream);
                assert_eq!(share.requests, Some(103 * expected * servers), "{route:?}");
            }
        }
    }

    #[test]
    fn a_deletion_removes_its_share_of_the_records_and_never_more_than_there_are() {
        let removed = |share, records| delete_records(&Delete { share, depth: 1 }, records);
        let rows = [(0.5, 0, 0), (0.5, 1, 1), (0.001, 100, 0), (0.25, 100, 25), (1.0, 7, 7), (2.0, 7, 7)];
        for (share, records, expected) in rows {
            assert_eq!(removed(share, records), expected, "{share} of {records}");
        }
    }

    #[test]
    fn few_clients_load_over_datagrams_and_have_few_requests_outstanding_together() {
        for (servers, count) in [(1, 1), (1, 50), (1, 64), (1, 1_000), (2, 500), (3, 3)] {
            let plan = plan(servers, Route::All, group(count, 1), load(), None);
            let share = PhaseShare::new(&plan, 0, Transport::Udp);
            let mut outstanding = vec![0; servers];
            for client in clients(&plan) {
                let ClientShare { requests, depth, repeats } = share.of_client(client);
                assert!(repeats >= LOADERS_MAX && repeats >= requests);
                if requests > 0 {
                    outstanding[client.number as usize % servers] += u64::from(depth);
                }
            }
            assert!(
                outstanding.iter().all(|&requests| (1..=LOADERS_MAX).contains(&requests)),
                "{outstanding:?}"
            );
        }
    }

    #[test]
    fn depth_is_that_of_the_work_or_of_the_group() {
        let limit = |depth| Group { depth: Depth::Limit(depth), ..group(1, 1) };
        let delete = Work::Delete(Delete { share: 1.0, depth: 4 });
        for (work, expected) in [(load(), 8), (delete, 4), (mix(), 100)] {
            let plan = plan(1, Route::All, limit(100), work, None);
            let share = PhaseShare::new(&plan, 0, Transport::Stream);
            let client = ClientId { group: 0, number: 0 };
            let expected = ClientShare { depth: expected, repeats: 0, ..share.of_client(client) };
            assert_eq!(share.of_client(client), expected);
        }
        let plan = plan(1, Route::All, limit(100), mix(), None);
        let share = PhaseShare::new(&plan, 0, Transport::Stream);
        let depths = [0, 1, 99, 101, u64::MAX].map(|calls| share.churning_depth(0, calls));
        assert_eq!(depths, [1, 1, 99, 100, 100]);
        assert_eq!([Depth::Limit(3), Depth::Unlimited].map(depth_at_start), [3, 16]);
    }

    #[test]
    fn only_drawn_requests_of_open_loop_have_a_rate() {
        let pace = |arrivals, rate, work| {
            let group = Group { arrivals, rate, ..group(2, 1) };
            let plan = plan(1, Route::All, group, work, None);
            PhaseShare::new(&plan, 0, Transport::Stream).arrivals_of(0).map(|(_, rate)| rate)
        };
        assert_eq!(pace(Arrivals::Poisson, Some(100.0), mix()), Some(100.0));
        assert_eq!(pace(Arrivals::Poisson, Some(100.0), load()), None);
        assert_eq!(pace(Arrivals::Closed, None, mix()), None);
    }

    #[test]
    fn workers_of_all_processes_have_every_client_once() {
        for (count, block, processes) in [(1, 1, 1), (10, 1, 3), (10, 4, 2), (97, 1, 4), (3, 1, 3)] {
            let mut plan = plan(1, Route::All, group(count, block), mix(), None);
            plan.groups.push(group(5, 1));
            let mut all = Vec::new();
            for part in parts(&plan, processes) {
                assert!(part.fits(&plan));
                all.extend(
                    (0..part.threads as usize).flat_map(|worker| part.clients_of_worker(&plan, worker)),
                );
            }
            all.sort();
            assert_eq!(all, clients(&plan).collect::<Vec<_>>(), "{count} in blocks of {block}");
            assert_eq!(all.iter().map(|&client| plan.clients_before(client)).max(), Some(plan.clients() - 1));
        }
    }

    #[test]
    fn clients_that_come_and_go_are_dealt_to_the_workers_of_a_process() {
        let mut plan = plan(1, Route::All, group(10, 1), mix(), None);
        let spawns = crate::plan::Spawns::Closed;
        plan.groups[0].churn = Some(ChurningClients { spawns, calls: 1, sequence: None });
        assert_eq!(plan.churning_group().map(|(group, _)| group), Some(0));
        for threads in 1..=12 {
            plan.engine.threads = threads;
            let part = ProcessShare::whole(&plan, 1);
            let dealt: Vec<u64> =
                (0..threads as usize).map(|worker| part.churning_clients_of_worker(0, worker)).collect();
            assert_eq!(dealt.iter().sum::<u64>(), 10, "{dealt:?}");
            assert!(dealt.iter().max().unwrap() - dealt.iter().min().unwrap() <= 1, "{dealt:?}");
            assert!(part.clients_of_worker(&plan, 0).is_empty(), "they are made as they come");
        }
    }

    #[test]
    fn what_is_dealt_in_turn_is_all_dealt() {
        let share = |first_worker, threads| ProcessShare {
            clients: Vec::new(),
            threads,
            first_worker,
            workers: 6,
            mark: 0,
        };
        let processes = [share(0, 1), share(1, 3), share(4, 2)];
        for count in 0..40 {
            let dealt = processes.each_ref().map(|process| process.turns_of(count));
            let expected = [0..1, 1..4, 4..6].map(|own: Range<u64>| {
                (0..count).filter(|number| own.contains(&(number % 6))).count() as u64
            });
            assert_eq!(dealt, expected, "{count}");
        }
    }

    #[test]
    fn clients_of_a_server_have_ranks_from_0_without_a_gap() {
        for (clients, servers, block) in [(1, 1, 1), (10, 3, 1), (10, 3, 2), (7, 2, 4), (100, 7, 5)] {
            let mut ranks = vec![Vec::new(); servers as usize];
            for number in 0..clients {
                let server = number / block % servers;
                let (rank, mates) = rank_among_mates(number, clients, servers, block);
                ranks[server as usize].push((rank, mates));
            }
            for mut ranks in ranks {
                ranks.sort();
                let count = ranks.len() as u64;
                assert_eq!(ranks, (0..count).map(|rank| (rank, count)).collect::<Vec<_>>());
            }
        }
    }
}
