//! The steps of a phase in which the number of connections changes, and the clients that are on stage in each of them.

use super::share::rank_among_mates;
use super::{Changes, Part, Plan, Work};
use crate::time::{MILLISECOND, NEVER, Nanos};

/// Longest time before a step in which its new connections are opened, in nanoseconds.
const AHEAD_MAX_NS: Nanos = 100 * MILLISECOND;

/// A step of a phase: a time in which as many clients of the first group are on stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageStep {
    /// Beginning of the step, in nanoseconds from the beginning of the phase.
    pub begin_ns: Nanos,
    /// End of the step; [`NEVER`] for the last one, which the end of the phase ends.
    pub end_ns: Nanos,
    /// Number of clients on stage.
    pub clients: u64,
}

/// A time in which a client is on stage without a break, in nanoseconds from the beginning of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageTurn {
    /// The moment from which on the client opens its connections: shortly before the turn.
    pub opens_ns: Nanos,
    /// Beginning of the turn.
    pub begin_ns: Nanos,
    /// End of the turn; [`NEVER`] where the end of the phase ends it.
    pub end_ns: Nanos,
}

/// The stage of a phase: its steps, and the order in which clients of the first group come on it.
///
/// In a step with n clients those are on stage whose place in the order is below n. Who is on stage in a small step is so in every
/// greater one, so that connections are kept from step to step. Neighbours in the order are far from each other in the numbers of
/// clients and go to different servers in turn: every step is spread over threads, agents and servers as evenly as the whole group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The steps, in the order of time.
    pub steps: Vec<StageStep>,
    clients: u64,
    servers: u64,
}

impl Stage {
    /// The stage of phase `number` of a plan; `None` where all clients are on it all the time. Before the measured phase, drawn
    /// requests come from the clients of the first step.
    pub fn of(plan: &Plan, number: usize) -> Option<Stage> {
        let phase = plan.phases.get(number)?;
        let measured = plan.phases.iter().position(|phase| phase.recorded)?;
        if !plan.changes.has_stage() || number > measured || !matches!(phase.work, Work::Mix(_)) {
            return None;
        }
        let clients = u64::from(plan.groups.first()?.clients);
        let mut steps = steps_of(&plan.changes, clients);
        if number < measured {
            steps.truncate(1);
            steps.iter_mut().for_each(|step| step.end_ns = NEVER);
        }
        // A client with several connections has one to every server.
        let servers = if plan.lanes() > 1 { 1 } else { plan.servers.len().max(1) as u64 };
        Some(Stage { steps, clients, servers })
    }

    /// The place of client `number` in the order in which clients come on stage, from 0.
    pub fn place_of(&self, number: u64) -> u64 {
        let server = number % self.servers;
        let (rank, mates) = rank_among_mates(number, self.clients, self.servers, 1);
        // The first workers would have the first clients of all servers otherwise.
        let rank = if server.is_multiple_of(2) { rank } else { mates - 1 - rank };
        spread(rank, mates) * self.servers + server
    }

    /// The steps in which client `number` is on stage.
    pub fn steps_of(&self, number: u64) -> Vec<StageStep> {
        let place = self.place_of(number);
        self.steps.iter().copied().filter(|step| place < step.clients).collect()
    }

    /// The turns of client `number` on stage, in the order of time.
    pub fn turns_of(&self, number: u64) -> Vec<StageTurn> {
        let place = self.place_of(number);
        let mut turns: Vec<StageTurn> = Vec::new();
        let mut before: Option<&StageStep> = None;
        for step in &self.steps {
            let was_on = before.is_some_and(|before| place < before.clients);
            match turns.last_mut() {
                _ if place >= step.clients => {}
                Some(turn) if was_on => turn.end_ns = step.end_ns,
                _ => {
                    let ahead_ns =
                        before.map_or(0, |before| (step.begin_ns - before.begin_ns) / 10).min(AHEAD_MAX_NS);
                    turns.push(StageTurn {
                        opens_ns: step.begin_ns - ahead_ns,
                        begin_ns: step.begin_ns,
                        end_ns: step.end_ns,
                    });
                }
            }
            before = Some(step);
        }
        turns
    }
}

/// The steps of the parts of a phase. A part without a number of its own has all clients on stage.
fn steps_of(changes: &Changes, clients: u64) -> Vec<StageStep> {
    let ends = changes.parts.iter().skip(1).map(|part| part.at_ns).chain([NEVER]);
    let step = |(part, end_ns): (&Part, Nanos)| StageStep {
        begin_ns: part.at_ns,
        end_ns,
        clients: part.connections.map_or(clients, u64::from),
    };
    changes.parts.iter().zip(ends).map(step).collect()
}

/// The place of `rank` in an order of `count` ranks in which the first n of any number are spread evenly over all of them: each half
/// of the ranks has every other place, and so has each half of a half.
fn spread(rank: u64, count: u64) -> u64 {
    let (mut rank, mut count) = (rank, count);
    let (mut place, mut step) = (0, 1);
    while count > 1 {
        let (lower, upper) = (count / 2, count - count / 2);
        // The upper half is the greater one where they differ, and has the first place.
        (rank, count) = if rank >= lower {
            (rank - lower, upper)
        } else {
            place += step;
            (rank, lower)
        };
        step *= 2;
    }
    place
}

impl Changes {
    /// Whether the number of connections changes during the measured phase.
    pub fn has_stage(&self) -> bool {
        self.parts.iter().any(|part| part.connections.is_some())
    }
}

impl Plan {
    /// The mean number of clients of group `index` that are on stage in the first `measured_ns` nanoseconds of the measured phase:
    /// all of them where their number does not change.
    pub fn clients_on_stage(&self, index: usize, measured_ns: Nanos) -> f64 {
        let clients = self.groups[index].clients;
        if index > 0 || !self.changes.has_stage() || measured_ns == 0 {
            return f64::from(clients);
        }
        let of = |step: &StageStep| {
            let length_ns = step.end_ns.min(measured_ns).saturating_sub(step.begin_ns);
            step.clients as f64 * length_ns as f64
        };
        steps_of(&self.changes, clients.into()).iter().map(of).sum::<f64>() / measured_ns as f64
    }

    /// Number of connections that are open so long after the measured phase began; `None` where their number does not change.
    pub fn connections_at(&self, since_ns: Nanos) -> Option<u64> {
        let begun = self.changes.parts.iter().rev().find(|part| part.at_ns <= since_ns);
        self.connections_in(begun.or(self.changes.parts.first())?)
    }

    /// Number of connections that are open in a part of the measured phase; `None` where their number does not change.
    pub fn connections_in(&self, part: &Part) -> Option<u64> {
        if !self.changes.has_stage() {
            return None;
        }
        let first = self.groups.first().map_or(0, |group| u64::from(group.clients));
        let on_stage = part.connections.map_or(first, u64::from);
        self.connections_of(self.clients() - first + on_stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Group, Mix, Route, Stop};
    use crate::protocol::Verb;
    use crate::time::SECOND;

    /// A plan of so many clients and servers whose steps of a second have these numbers of clients on stage.
    fn staged(clients: u32, servers: usize, steps: &[u32]) -> Plan {
        let stop = Stop { time_ns: Some(steps.len() as u64 * SECOND), requests: None };
        let part = |(at, connections): (usize, &u32)| Part {
            connections: Some(*connections),
            ..Part::plain(format!("step {at}"), at as u64 * SECOND)
        };
        Plan {
            servers: (0..servers).map(|server| format!("127.0.0.1:{}", 1_000 + server)).collect(),
            groups: vec![Group { clients, ..Group::default() }],
            changes: Changes { parts: steps.iter().enumerate().map(part).collect(), ..Changes::default() },
            ..Plan::measuring(Work::Mix(Mix::of(&[(Verb::Get, 1.0)])), stop)
        }
    }

    #[test]
    fn every_client_has_a_place_of_its_own_and_steps_are_even_over_servers_and_ranges() {
        for clients in [1, 2, 3, 7, 50, 97, 200] {
            for servers in [1, 2, 3, 5] {
                let stage = Stage::of(&staged(clients, servers, &[1]), 0).expect("it has steps");
                let places: Vec<u64> = (0..u64::from(clients)).map(|number| stage.place_of(number)).collect();
                let mut sorted = places.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..u64::from(clients)).collect::<Vec<_>>(), "{clients} at {servers}");
                for on_stage in 1..=u64::from(clients) {
                    let is_on = |number: &usize| places[*number] < on_stage;
                    let mut of_servers = vec![0; servers];
                    (0..places.len()).filter(is_on).for_each(|number| of_servers[number % servers] += 1);
                    let range = of_servers.iter().max().unwrap() - of_servers.iter().min().unwrap();
                    assert!(range <= 1, "{on_stage} of {clients}: {of_servers:?}");
                    for threads in [2, 3, 4] {
                        let edge = |worker: usize| worker * places.len() / threads;
                        for worker in 0..threads {
                            let all = edge(worker)..edge(worker + 1);
                            let fair = on_stage as f64 * all.len() as f64 / places.len() as f64;
                            let own = all.filter(is_on).count() as f64;
                            let what = format!("{on_stage} of {clients} at {servers}, {worker} of {threads}");
                            assert!((own - fair).abs() <= 2.0 + servers as f64, "{what}: {own}, not {fair}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn halves_of_one_server_differ_by_one_client_at_most() {
        let stage = Stage::of(&staged(200, 1, &[1]), 0).expect("it has steps");
        for on_stage in 0..=200 {
            let lower = (0..100).filter(|number| stage.place_of(*number) < on_stage).count() as i64;
            assert!((2 * lower - on_stage as i64).abs() <= 1, "{on_stage}: {lower}");
        }
    }

    #[test]
    fn turns_join_steps_and_open_shortly_before() {
        let stage = Stage::of(&staged(4, 1, &[1, 3, 2, 4]), 0).expect("it has steps");
        let number_at =
            |place: u64| (0..4).find(|number| stage.place_of(*number) == place).expect("all have");
        let ahead = 100 * MILLISECOND;
        let turn = |begin_s: u64, end_ns| StageTurn {
            opens_ns: (begin_s * SECOND).saturating_sub(ahead),
            begin_ns: begin_s * SECOND,
            end_ns,
        };
        let expected = [
            vec![turn(0, NEVER)],
            vec![turn(1, NEVER)],
            vec![turn(1, 2 * SECOND), turn(3, NEVER)],
            vec![turn(3, NEVER)],
        ];
        for (place, turns) in expected.into_iter().enumerate() {
            assert_eq!(stage.turns_of(number_at(place as u64)), turns, "place {place}");
        }
        assert_eq!(stage.steps_of(number_at(2)).iter().map(|step| step.clients).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn phases_before_the_measured_one_have_the_clients_of_the_first_step() {
        let mut plan = staged(4, 2, &[2, 4]);
        let warm_up = crate::plan::Phase { recorded: false, ..plan.phases[0].clone() };
        let load = crate::plan::Phase { work: Work::Load(crate::plan::Load::default()), ..warm_up.clone() };
        plan.phases.splice(0..0, [load, warm_up.clone()]);
        plan.phases.push(warm_up);
        let steps = |number| Stage::of(&plan, number).map(|stage| stage.steps);
        assert_eq!(steps(1), Some(vec![StageStep { begin_ns: 0, end_ns: NEVER, clients: 2 }]));
        assert_eq!(steps(2).map(|steps| steps.len()), Some(2));
        assert_eq!((steps(0), steps(3), steps(4)), (None, None, None));
        plan.changes = Changes::default();
        assert_eq!(Stage::of(&plan, 2), None);
    }

    #[test]
    fn the_mean_number_of_clients_is_weighted_by_time() {
        let mut plan = staged(10, 1, &[2, 6, 10]);
        assert_eq!(plan.clients_on_stage(0, 3 * SECOND), 6.0);
        assert_eq!(plan.clients_on_stage(0, 2 * SECOND), 4.0, "an interrupted run");
        assert_eq!(plan.connections_in(&plan.changes.parts[1]), Some(6));
        let at = [0, SECOND - 1, SECOND, 9 * SECOND].map(|since_ns| plan.connections_at(since_ns));
        assert_eq!(at, [Some(2), Some(2), Some(6), Some(10)]);
        (plan.route, plan.servers) = (Route::Ketama, vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(plan.connections_in(&plan.changes.parts[1]), Some(12), "one to each server");
        plan.changes.parts.iter_mut().for_each(|part| part.connections = None);
        assert_eq!(plan.clients_on_stage(0, 3 * SECOND), 10.0);
        assert_eq!(plan.connections_in(&plan.changes.parts[1]), None);
    }
}
