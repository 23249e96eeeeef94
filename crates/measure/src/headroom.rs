//! Use of each resource in a run, and the resource that would be used up first.

use super::limit::{Case, NextLimit, card_share};
pub use super::resource::Resource;

/// The use of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceUse {
    /// Name of the resource.
    pub resource: Resource,
    /// Share of the resource that was used.
    pub share: f64,
    /// Requests per second at which the resource is used up, if its use grows with the rate as it did up to here;
    /// absent for what does not grow with the rate, such as memory.
    pub full_at_rate: Option<f64>,
}

impl ResourceUse {
    /// The first of these resources that is used up as the rate grows; `None` where none is known.
    pub fn next_limit(uses: &[ResourceUse]) -> Option<NextLimit> {
        let (next, full_at_rate) = ResourceUse::next_of(uses)?;
        Some(NextLimit { resource: next.resource.clone(), share: next.share, full_at_rate })
    }

    fn growing(case: &Case<'_>, resource: Resource, share: f64) -> ResourceUse {
        let full_at_rate = (share > 0.0 && case.rate() > 0.0).then(|| case.rate() / share);
        ResourceUse { resource, share, full_at_rate }
    }

    fn standing(resource: Resource, used: Option<u64>, limit: Option<u64>) -> Option<ResourceUse> {
        let limit = limit.filter(|limit| *limit > 0)?;
        Some(ResourceUse { resource, share: used? as f64 / limit as f64, full_at_rate: None })
    }

    /// The use of every resource that is known, in the order of the way of a request; empty where nothing was measured.
    pub fn all_of(case: &Case<'_>) -> Vec<ResourceUse> {
        let mut uses = Vec::new();
        if case.measurement.measured_ns == 0 {
            return uses;
        }
        if !case.measurement.generator.workers.is_empty() {
            let resource = Resource::ClientThread { threads: case.client_threads() };
            uses.push(ResourceUse::growing(case, resource, case.busy()));
        }
        // In closed loop the slots are what is asked for, and always taken.
        if let Some(slots) = case.slots().filter(|slots| *slots > 0 && !case.is_closed) {
            // Requests that end in the drain take their slots for longer than the phase lasts.
            let share = (case.slots_taken() / slots as f64).min(1.0);
            uses.push(ResourceUse::growing(case, Resource::Slots, share));
        }
        uses.extend(ResourceUse::cards_of(case));
        for server in &case.servers {
            if let Some(share) = server.hottest_at_least() {
                let resource = Resource::ServerCpu { server: case.server_name(&server.address) };
                uses.push(ResourceUse::growing(case, resource, share));
            }
            if let Some(share) = server.in_commands {
                let resource = Resource::ServerCommands { server: case.server_name(&server.address) };
                uses.push(ResourceUse::growing(case, resource, share));
            }
        }
        let seen = case.measurement.evidence.iter().flat_map(|evidence| &evidence.servers);
        for server in seen {
            let Some(reading) = server.reading.as_ref().filter(|reading| reading.is_whole()) else {
                continue;
            };
            uses.extend(ResourceUse::standing(
                Resource::ServerMemory { server: case.server_name(&server.address) },
                reading.memory_bytes,
                reading.memory_limit_bytes,
            ));
            uses.extend(ResourceUse::standing(
                Resource::ServerConnections { server: case.server_name(&server.address) },
                reading.connections,
                reading.connections_max,
            ));
        }
        uses
    }

    /// The network cards, where a server is behind one.
    fn cards_of(case: &Case<'_>) -> Vec<ResourceUse> {
        let of_machine = case.remote_machines().flat_map(|machine| {
            let cards = machine.network.iter().flat_map(|network| &network.cards);
            cards.filter_map(|card| {
                let share = card_share(card, machine.span_ns)?;
                let resource = Resource::Card { name: card.name.clone(), agent: machine.agent.clone() };
                Some(ResourceUse::growing(case, resource, share))
            })
        });
        of_machine.collect()
    }

    /// The resource that is used up first as the rate grows, with that rate; absent where none is known.
    pub fn next_of(uses: &[ResourceUse]) -> Option<(&ResourceUse, f64)> {
        let growing = uses.iter().filter_map(|used| Some((used, used.full_at_rate?)));
        growing.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{CardUse, HostNetwork};
    use crate::scenario::{Scenario, closed, quiet};
    use crate::summary::Summary;
    use pummel_logic::time::{MILLISECOND, SECOND};

    const THREAD: Resource = Resource::ClientThread { threads: 1 };

    fn uses(run: &Scenario) -> Vec<(Resource, u64)> {
        let percent = |used: &ResourceUse| (used.resource.clone(), libm::round(used.share * 100.0) as u64);
        run.summary().headroom.iter().map(percent).collect()
    }

    #[test]
    fn every_resource_that_is_known_is_listed() {
        let run = Scenario { service: 3 * MILLISECOND, ..quiet() };
        assert_eq!(uses(&run), [(THREAD, 10), (Resource::Slots, 30)]);
        let all = [
            (THREAD, 10),
            (Resource::Slots, 30),
            (Resource::ServerCpu { server: None }, 45),
            (Resource::ServerMemory { server: None }, 9),
            (Resource::ServerConnections { server: None }, 1),
        ];
        assert_eq!(uses(&run.seen(&[0.45, 0.1], 1)), all);
        let slots = uses(&closed()).into_iter().filter(|(used, _)| *used == Resource::Slots).count();
        assert_eq!(slots, 0, "in closed loop all slots are taken, which is what was asked for");
    }

    #[test]
    fn of_a_run_that_never_began_nothing_was_used() {
        let run = quiet().seen(&[0.45], 1);
        let mut measurement = run.measurement();
        measurement.measured_ns = 0;
        assert_eq!(Summary::of(&measurement, &run.plan()).headroom, []);
    }

    #[test]
    fn the_next_to_give_way_is_the_one_that_is_used_most_of_those_that_grow_with_the_rate() {
        let run = quiet().seen(&[0.45], 1).reading(|reading| reading.memory_bytes = Some(63_000_000));
        let summary = run.summary();
        let (next, full_at) = ResourceUse::next_of(&summary.headroom).expect("known");
        assert_eq!(next.resource, Resource::ServerCpu { server: None });
        assert!((full_at - summary.totals.rate / 0.45).abs() < 1.0, "{full_at}");
        assert_eq!(ResourceUse::next_of(&[]), None);
    }

    #[test]
    fn a_card_counts_where_a_server_is_behind_it() {
        let carried = |server| {
            let run = Scenario { server, ..quiet() }.seen(&[0.1], 1);
            run.machine(|machine| {
                let card = CardUse {
                    name: "eth0".to_owned(),
                    received_bytes: 125_000_000 * machine.span_ns / SECOND / 2,
                    bits_per_second: Some(1_000_000_000),
                    ..CardUse::default()
                };
                machine.network = Some(HostNetwork { cards: vec![card], ..HostNetwork::default() });
            })
        };
        let card = (Resource::Card { name: "eth0".to_owned(), agent: None }, 50);
        assert!(uses(&carried("cache1:11211")).contains(&card));
        assert!(!uses(&carried("127.0.0.1:11211")).contains(&card));
    }
}
