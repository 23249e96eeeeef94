//! Tests of each row of the table of limits: a run with its evidence and, where there is such a row, one without.

use super::{
    CardBound, Case, Cause, Clients, CpuTaker, DelayTaker, InFlight, LagCause, Limit, LostWhy, MoreInFlight,
    Observation, ROWS, SharedMachine, Side, Spare, StartedAnew, Subject, TakenCpu, ThreadAdvice,
    TurnedAwayBy, Verdict, WaitedFor,
};
use crate::connections::Refusal;
use crate::evidence::{CardUse, HostNetwork, MachineEvidence, ServerReading};
use crate::headroom::Resource;
use crate::measurement::LoadResult;
use crate::misses::NeverThere;
use crate::recorder::Span;
use crate::scenario::{Scenario, closed, quiet};
use crate::trust::{CauseOfLag, TrustKind};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Clock, Event, EventKind, FlashCrowd, HotKey, KeyChurn, Load, Mix, Part, Phase, Plan, RankRange, Stop,
    Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};

/// A server with time to spare.
const IDLE: &[f64] = &[0.2];

/// Asserts which row held. Returns the facts that it rests on.
#[track_caller]
fn named(verdict: &Verdict, limit: Limit, row: &str) -> Cause {
    assert_eq!((verdict.limit, verdict.row), (limit, row), "{verdict:#?}");
    verdict.cause.clone()
}

/// Asserts which row held, and its facts.
#[track_caller]
fn holds(verdict: &Verdict, limit: Limit, row: &str, are: impl Fn(&Cause) -> bool) {
    let cause = named(verdict, limit, row);
    assert!(are(&cause), "{cause:#?}");
}

/// Whether a figure is the use of a network card.
fn is_of_card(seen: &Observation) -> bool {
    matches!(seen.subject, Subject::Card { .. })
}

/// A share in whole percents.
fn percent(share: f64) -> u64 {
    libm::round(share * 100.0) as u64
}

/// The one thread of a server with this share of a CPU, beside a client thread of this one, in percents.
fn is_full_beside(cause: &Cause, server: u64, client: u64) -> bool {
    matches!(cause, Cause::ServerCpu { threads: Some(1), busiest, client_threads: 1, client_busy, .. }
        if (percent(busiest.cpu), percent(*client_busy)) == (server, client))
}

/// The facts of a closed loop that was limited by what was in flight.
fn flight(cause: &Cause) -> &InFlight {
    match cause {
        Cause::InFlight(flight) | Cause::ClosedLoop(flight) => flight,
        other => panic!("{other:#?}"),
    }
}

/// The taker of a client thread's CPU.
fn taker(cause: &Cause) -> Option<CpuTaker> {
    match cause {
        Cause::GeneratorCpuTaken(lost) => lost.taken.map(|taken| taken.by),
        other => panic!("{other:#?}"),
    }
}

/// Fifty connections in closed loop against a memcached whose one thread is full.
fn full_server(depth: u32, service: u64, busy_share: f64) -> Scenario {
    // Replies that come together are read together: one request in ten waits for its turn.
    let late = (10, service / 8);
    Scenario { connections: 50, depth, service, busy_share, late, length: SECOND / 20, ..closed() }
        .seen(&[0.98, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0], 1)
}

#[test]
fn a_full_server_is_the_limit_of_a_closed_loop_whatever_the_lag() {
    let of = |depth, service, busy| full_server(depth, service, busy).verdict();
    let is_full = |busy| move |cause: &Cause| is_full_beside(cause, 98, busy);
    holds(&of(1, 460 * MICROSECOND, 0.6), Limit::Server, "server-cpu", is_full(60));
    holds(&of(16, 800 * MICROSECOND, 0.31), Limit::Server, "server-cpu", is_full(31));
}

#[test]
fn four_requests_in_flight_are_the_limit_where_both_sides_have_time() {
    let four = Scenario { connections: 4, busy_share: 0.28, late: (10, 30 * MICROSECOND), ..closed() };
    let cause = named(&four.seen(&[0.55, 0.01], 1).verdict(), Limit::Connections, "in-flight");
    let InFlight { slots, is_below, clients, server_busy, client_busy, more, .. } = flight(&cause).clone();
    assert_eq!(
        (slots, is_below, clients),
        (Some(4), false, Clients { connections: 4, depth: Some(1), batch: None, are_mean: false })
    );
    assert_eq!((server_busy.map(percent), percent(client_busy)), (Some(55), 28));
    assert_eq!(more, Some(MoreInFlight::UnlessOccupied));
}

#[test]
fn of_a_server_whose_threads_are_not_seen_the_busiest_is_known_by_a_bound() {
    let run = closed().seen(&[0.3, 0.3], 2);
    let used = |run: &Scenario| {
        let cause = named(&run.verdict(), Limit::Connections, "in-flight");
        (flight(&cause).server_busy.map(percent), flight(&cause).server_busy_is_bound)
    };
    assert_eq!(used(&run), (Some(30), false));
    assert_eq!(used(&run.server(|server| server.threads = None)), (Some(60), true));
}

#[test]
fn connections_that_were_lost_are_no_reason_to_ask_for_more() {
    let run = closed().seen(IDLE, 1);
    assert!(flight(&run.verdict().cause).more.is_some());
    let shut = Scenario { shut: (run.length / 2, MICROSECOND), ..run };
    assert_eq!(flight(&named(&shut.verdict(), Limit::Connections, "in-flight")).more, None);
}

#[test]
fn stalls_of_a_machine_limit_nobody_and_are_said_of_the_tail() {
    let stalls =
        |count: u64, length: u64| (1..=count).map(|i| (i * SECOND / 2, length * MILLISECOND)).collect();
    let fast = Scenario {
        connections: 50,
        rate: Some(20_000.0),
        paused: stalls(4, 8),
        late: (40, 60 * MICROSECOND),
        busy_share: 0.19,
        ..quiet()
    };
    let slow = Scenario {
        connections: 50,
        rate: Some(2_000.0),
        paused: stalls(3, 4),
        late: (40, 46 * MICROSECOND),
        service: 110 * MICROSECOND,
        busy_share: 0.05,
        ..quiet()
    };
    for run in [fast.clone().seen(IDLE, 1), fast, slow.clone().seen(IDLE, 1), slow] {
        let summary = run.summary();
        named(&summary.verdict, Limit::None, "none");
        let trust = &summary.trust;
        let is_stalls = |one: &CauseOfLag| matches!(one.cause, LagCause::StoodStill { .. });
        assert!(!trust.ok && trust.kind == TrustKind::P50, "{trust:?}");
        assert!(trust.causes.iter().any(is_stalls), "{trust:?}");
    }
}

#[test]
fn with_everything_idle_nobody_is_accused() {
    for rate in [100.0, 1_000.0, 10_000.0] {
        for connections in [1, 10, 100] {
            let idle = Scenario { rate: Some(rate), connections, ..quiet() };
            // One connection at 10,000/s is no idle run: its slot is taken 40 % of the time.
            if connections == 1 && rate > 1_000.0 {
                continue;
            }
            for run in [idle.clone().seen(IDLE, 4), idle] {
                named(&run.verdict(), Limit::None, "none");
            }
        }
    }
}

#[test]
fn an_innocent_run_says_what_gives_way_next() {
    let cause = named(&quiet().seen(&[0.4], 1).verdict(), Limit::None, "none");
    let Cause::None { next: Some(next) } = cause else { panic!("{cause:#?}") };
    assert_eq!((next.resource, percent(next.share)), (Resource::ServerCpu { server: None }, 40));
    assert!((2_400.0..2_600.0).contains(&next.full_at_rate), "{}", next.full_at_rate);
}

#[test]
fn without_a_completed_request_there_is_no_judgement() {
    let nothing = Scenario { length: 0, ..quiet() };
    let cause = named(&nothing.verdict(), Limit::Unknown, "nothing-completed");
    assert_eq!(cause, Cause::NothingCompleted);
}

#[test]
fn an_instrument_that_disagrees_with_itself_judges_nothing() {
    for run in [Scenario { rate: Some(5_000.0), ..quiet() }, Scenario { length: SECOND, ..closed() }] {
        let mut measurement = run.measurement();
        let all = measurement.ops().all();
        measurement.flight.requests = all.counts.requests();
        measurement.flight.area_ns = all.times.of(Span::Service).moments().sum / 2;
        let verdict = Verdict::of(&Case::of(&measurement, &run.plan(), &all));
        holds(
            &verdict,
            Limit::Unknown,
            "instrument",
            |cause| matches!(cause, Cause::Instrument { apart } if *apart > 0.4),
        );
    }
}

#[test]
fn a_cpu_that_was_taken_away_names_the_taker() {
    let lagging = |run: Scenario| Scenario { lag: 30 * MICROSECOND, ..run }.seen(IDLE, 1);
    for run in [lagging(quiet()), lagging(closed())] {
        let part = run.length / 10;
        let names = |run: Scenario, by: CpuTaker| {
            holds(&run.verdict(), Limit::Generator, "generator-cpu-taken", |cause| {
                taker(cause) == Some(by)
                    && matches!(cause, Cause::GeneratorCpuTaken(lost) if percent(lost.share) == 10)
            });
        };
        // Steal is that of all four CPUs.
        names(run.clone().machine(|machine| machine.steal_ns = Some(4 * part)), CpuTaker::Hypervisor);
        names(
            run.clone().machine(|machine| machine.workers[0].run_delay_ns = Some(part)),
            CpuTaker::OtherProcesses,
        );
        let throttled = run.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(part);
            machine.throttled_ns = Some(part);
        });
        names(throttled, CpuTaker::ContainerLimit);
    }
    let unseen = quiet().seen(IDLE, 1).machine(|machine| machine.steal_ns = Some(SECOND * 4));
    named(&unseen.verdict(), Limit::None, "none");
    let full = full_server(1, 460 * MICROSECOND, 0.6);
    let part = full.length / 10;
    let both = full.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    named(&both.verdict(), Limit::Server, "server-cpu");
}

#[test]
fn a_cpu_that_was_missed_in_the_tail_alone_is_no_limit_of_an_open_loop() {
    let paused = (1..=40).map(|stall| (stall * SECOND / 20, 3 * MILLISECOND)).collect();
    let tail = Scenario { paused, connections: 1_000, ..quiet() }.seen(IDLE, 1);
    let part = tail.length / 10;
    let tail = tail.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    let summary = tail.summary();
    assert!(!summary.trust.ok, "the tail has it: {:?}", summary.trust);
    assert_ne!(summary.verdict.row, "generator-cpu-taken");
}

#[test]
fn a_cpu_that_was_missed_while_the_server_had_the_requests_is_no_limit_of_a_closed_loop() {
    let held = Scenario { connections: 50, service: 10 * MILLISECOND, lag: 200 * MICROSECOND, ..closed() };
    let held = held.seen(IDLE, 1);
    let part = held.length / 6;
    let held = held.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    named(&held.verdict(), Limit::Connections, "in-flight");
    // Without receive stamps the generator's lateness is in the service times.
    let unstamped = Scenario { clock: Clock::User, ..held };
    named(&unstamped.verdict(), Limit::Generator, "generator-cpu-taken");
}

#[test]
fn of_two_machines_without_time_the_one_that_lost_more_limits_a_closed_loop() {
    let lagging = Scenario { lag: 30 * MICROSECOND, ..closed() }.seen(&[0.4], 1);
    let lost = |server_percent: u64| {
        let part = lagging.length / 100;
        let run = lagging.clone().machine(|machine| machine.workers[0].run_delay_ns = Some(25 * part));
        run.server(|server| {
            server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(server_percent * part)
        })
        .verdict()
    };
    holds(
        &lost(20),
        Limit::Generator,
        "generator-cpu-taken",
        |cause| matches!(cause, Cause::GeneratorCpuTaken(lost) if percent(lost.share) == 25),
    );
    holds(&lost(51), Limit::Server, "server-run-delay", |cause| waited(cause).0 == 51);
}

/// The share in percents for which a thread of a server waited, and who had the CPU.
fn waited(cause: &Cause) -> (u64, Option<DelayTaker>) {
    match cause {
        Cause::ServerRunDelay { share, taker, .. } => (percent(*share), *taker),
        other => panic!("{other:#?}"),
    }
}

/// The side that waited for a CPU that both sides share, the CPUs, and its share in percents.
fn shared(cause: &Cause) -> (Side, &[u32], u64) {
    match cause {
        Cause::SharedCpu { waiting, cpus, share, .. } => (*waiting, cpus, percent(*share)),
        other => panic!("{other:#?}"),
    }
}

/// A run whose client and server may use CPU 0 alone, which is used for this share of the time by others.
fn on_one_cpu(run: Scenario, client: f64, server: f64, others: f64) -> Scenario {
    let span_ns = run.length;
    let part = move |share: f64| (share * span_ns as f64) as u64;
    let run = Scenario { busy_share: client, ..run }.seen(&[server, 0.0], 1);
    let run = run.server(|server| server.cpus = Some("0".to_owned()));
    run.machine(move |machine| {
        machine.worker_cpus = Some("0".to_owned());
        machine.workers[0].last_cpu = Some(0);
        machine.used_by_cpu = [(0, part(client + server + others))].into();
    })
}

#[test]
fn a_cpu_that_client_and_server_share_is_named_for_the_side_that_waits() {
    for run in [Scenario { connections: 1, ..closed() }, quiet()] {
        let half = run.length / 2;
        let waiting = |others: f64| {
            on_one_cpu(run.clone(), 0.55, 0.35, others)
                .server(|server| server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(half))
        };
        let cause = named(&waiting(0.1).verdict(), Limit::Generator, "shared-cpu");
        assert_eq!(shared(&cause), (Side::Server, &[0][..], 50));
        // The neighbour: another process computes on that CPU.
        let cause = named(&waiting(0.3).verdict(), Limit::Server, "server-run-delay");
        assert_eq!(waited(&cause), (50, Some(DelayTaker::OtherProcesses)));
        // A client on another CPU takes nothing from the server.
        let apart = waiting(0.0).machine(|machine| {
            machine.worker_cpus = Some("1".to_owned());
            machine.workers[0].last_cpu = Some(1);
            let span_ns = machine.span_ns as f64;
            machine.used_by_cpu = [(0, (0.35 * span_ns) as u64), (1, (0.55 * span_ns) as u64)].into();
        });
        let cause = named(&apart.verdict(), Limit::Server, "server-run-delay");
        assert_eq!(waited(&cause), (50, None));
    }
    let lagging = Scenario { lag: 30 * MICROSECOND, ..closed() };
    let third = lagging.length / 3;
    let waiting = |others: f64| {
        on_one_cpu(lagging.clone(), 0.3, 0.6, others)
            .machine(|machine| machine.workers[0].run_delay_ns = Some(third))
    };
    let both = waiting(0.0).summary();
    let cause = named(&both.verdict, Limit::Generator, "shared-cpu");
    assert_eq!(shared(&cause), (Side::Client, &[0][..], 33));
    let Cause::SharedCpu { machine: Some(machine), .. } = &cause else { panic!("{cause:#?}") };
    let SharedMachine { cpus, busy, client_cpus, server_cpus, both_waited, .. } = machine;
    assert_eq!((*cpus, percent(*busy), *both_waited, machine.is_whole), (1, 90, false, true));
    assert_eq!((percent(*client_cpus), percent(*server_cpus)), (30, 60));
    // A machine that counts by ticks saw less than the processes used: it was as busy as they made it.
    let by_ticks = waiting(0.0).machine(|machine| machine.used_by_cpu = [(0, machine.span_ns / 2)].into());
    let cause = by_ticks.verdict().cause;
    let Cause::SharedCpu { machine: Some(machine), .. } = &cause else { panic!("{cause:#?}") };
    assert_eq!(percent(machine.busy), 90);
    let is_server =
        |one: &CauseOfLag| matches!(one.cause, LagCause::CpuTaken { taker: CpuTaker::Servers, .. });
    assert!(both.trust.causes.iter().any(is_server), "{:?}", both.trust);
    let cause = named(&waiting(0.2).verdict(), Limit::Generator, "generator-cpu-taken");
    assert_eq!(taker(&cause), Some(CpuTaker::OtherProcesses));
}

#[test]
fn a_thread_that_may_run_on_more_cpus_ran_where_it_was_last() {
    let lagging = Scenario { lag: 30 * MICROSECOND, ..closed() };
    let third = lagging.length / 3;
    let with_server_on = |cpu: u32| {
        on_one_cpu(lagging.clone(), 0.3, 0.6, 0.0)
            .machine(|machine| machine.workers[0].run_delay_ns = Some(third))
            .server(|server| {
                server.cpus = Some("0-1".to_owned());
                server.threads.as_mut().expect("seen")[0].last_cpu = Some(cpu);
            })
            .verdict()
    };
    named(&with_server_on(0), Limit::Generator, "shared-cpu");
    let cause = named(&with_server_on(1), Limit::Generator, "generator-cpu-taken");
    assert_eq!(taker(&cause), Some(CpuTaker::OtherProcesses));
}

#[test]
fn agents_of_one_machine_that_take_the_cpu_from_each_other_are_no_other_processes() {
    let run = Scenario { lag: 30 * MICROSECOND, ..closed() };
    let part = run.length / 10;
    let agents = |others: u64, host: u64| {
        let mut run = on_one_cpu(run.clone(), 0.3, 0.0, 0.0);
        let machines = &mut run.evidence.as_mut().expect("seen").machines;
        machines[0].workers[0].run_delay_ns = Some(5 * part);
        machines[0].used_by_cpu = [(0, (9 + others) * part)].into();
        let mut second = machines[0].clone();
        (second.agent, second.host) = (Some("m2".to_owned()), Some(host));
        second.workers[0].run_delay_ns = Some(0);
        machines.extend([second.clone(), second]);
        run.verdict()
    };
    let taken = |verdict: &Verdict| taker(&named(verdict, Limit::Generator, "generator-cpu-taken"));
    assert_eq!(taken(&agents(0, 1)), Some(CpuTaker::Agents));
    assert_eq!(taken(&agents(3, 1)), Some(CpuTaker::OtherProcesses));
    assert_eq!(taken(&agents(0, 2)), Some(CpuTaker::OtherProcesses), "agents elsewhere take nothing here");
}

#[test]
fn a_cpu_that_nobody_is_known_to_have_taken_accuses_nobody() {
    let run = on_one_cpu(Scenario { lag: 30 * MICROSECOND, ..closed() }, 0.3, 0.02, 0.0);
    let part = run.length / 10;
    let run = run.machine(|machine| machine.workers[0].run_delay_ns = Some(2 * part));
    let summary = run.summary();
    assert_eq!(taker(&named(&summary.verdict, Limit::Generator, "generator-cpu-taken")), None);
    assert!(summary.trust.causes.iter().all(|one| one.cause == LagCause::Unknown), "{:?}", summary.trust);
}

#[test]
fn the_parts_of_a_loss_are_no_more_than_what_was_lost() {
    let lagging = Scenario { lag: 30 * MICROSECOND, ..closed() }.seen(IDLE, 1);
    let hundredth = lagging.length / 100;
    let losses = |waited: u64, throttled: u64, steal: u64| {
        let run = lagging.clone().machine(|machine| {
            machine.workers[0].run_delay_ns = Some(waited * hundredth);
            machine.throttled_ns = Some(throttled * hundredth);
            machine.steal_ns = Some(4 * steal * hundredth);
        });
        let (measurement, plan) = (run.measurement(), run.plan());
        let loss = Case::of(&measurement, &plan, &measurement.ops().all()).losses.remove(0);
        assert!(loss.lost_ns <= run.length, "{loss:?}");
        assert_eq!(loss.parts.iter().map(|(_, part_ns)| part_ns).sum::<u64>(), loss.lost_ns, "{loss:?}");
        (loss.lost_ns / hundredth, loss.cause.map(|(taker, part_ns)| (taker, part_ns / hundredth)))
    };
    assert_eq!(losses(48, 40, 0), (48, Some((CpuTaker::ContainerLimit, 40))));
    assert_eq!(losses(48, 10, 0), (48, Some((CpuTaker::OtherProcesses, 38))));
    // The kernel sums the throttling over CPUs, which can be more than the run.
    assert_eq!(losses(90, 170, 30), (100, Some((CpuTaker::ContainerLimit, 100))));
    assert_eq!(losses(40, 30, 80), (100, Some((CpuTaker::Hypervisor, 60))));
    let run = lagging.clone().machine(|machine| {
        machine.workers[0].run_delay_ns = Some(48 * hundredth);
        machine.throttled_ns = Some(40 * hundredth);
    });
    let cause = named(&run.verdict(), Limit::Generator, "generator-cpu-taken");
    let Cause::GeneratorCpuTaken(lost) = cause else { panic!("{cause:#?}") };
    let by_limit = TakenCpu { by: CpuTaker::ContainerLimit, time_ns: 80 * MILLISECOND };
    assert_eq!((lost.lost_ns, lost.taken), (96 * MILLISECOND, Some(by_limit)));
}

#[test]
fn an_open_loop_whose_slots_lag_fills_waits_for_the_generator() {
    // Two slots for 1,000 requests a second of 1.2 ms, of which each is 1 ms late.
    let late = Scenario { connections: 2, service: 1_200 * MICROSECOND, lag: MILLISECOND, ..quiet() };
    let summary = late.clone().seen(IDLE, 1).summary();
    holds(&summary.verdict, Limit::Generator, "generator-kept-back", |cause| {
        matches!(cause, Cause::GeneratorKeptBack { behind: Some(_), .. })
    });
    assert!(!summary.trust.ok, "{:?}", summary.trust);
    // A server near its limit would take longer for each request if they came sooner.
    for run in [late.clone().seen(&[0.85], 1), late] {
        assert_ne!(run.verdict().row, "generator-kept-back");
    }
    // Requests that the server alone holds for too long are not the generator's, whatever it adds.
    let slow = Scenario { connections: 2, service: 2_500 * MICROSECOND, lag: MILLISECOND, ..quiet() };
    assert_ne!(slow.seen(IDLE, 1).verdict().row, "generator-kept-back");
}

#[test]
fn client_threads_without_a_cpu_for_each_take_it_from_each_other() {
    let judged = |cpus: u32, [own, waited, other]: [u64; 3], used: Option<u64>| {
        let run = Scenario { threads: 2, lag: 30 * MICROSECOND, ..closed() }.seen(IDLE, 1);
        let part = run.length / 100;
        let run = run.machine(|machine| {
            machine.cpus = cpus;
            (machine.workers[0].cpu_ns, machine.workers[0].run_delay_ns) = (own * part, Some(waited * part));
            machine.workers[1].cpu_ns = other * part;
            machine.used_ns = used.map(|used| used * part);
        });
        taker(&run.verdict().cause)
    };
    let (own, others) = (Some(CpuTaker::OwnThreads), Some(CpuTaker::OtherProcesses));
    let full = [50, 50, 50];
    assert_eq!(judged(1, full, None), own);
    assert_eq!(judged(2, full, None), others, "each could have had one");
    let calm = [10, 25, 5];
    assert_eq!(judged(1, calm, None), others, "a thread with 5 % of a CPU takes little from another one");
    assert_eq!(judged(1, calm, Some(18)), own, "no other program ran for so long");
    assert_eq!(judged(1, calm, Some(60)), others);
}

#[test]
fn a_busy_thread_is_the_limit_unless_the_server_is_full_too() {
    let busy = |run: Scenario| Scenario { busy_share: 0.97, ..run };
    let of = |run: &Scenario| match named(&run.verdict(), Limit::Generator, "generator-thread-busy") {
        Cause::GeneratorThreadBusy { thread, threads, busy, advice, .. } => {
            (thread, threads, percent(busy), advice)
        }
        other => panic!("{other:#?}"),
    };
    for run in [busy(closed()), busy(quiet()), busy(quiet()).seen(IDLE, 1)] {
        assert_eq!(of(&run), (1, 1, 97, ThreadAdvice::MoreThreads));
    }
    let several = Scenario { threads: 4, ..busy(closed()) }.seen(IDLE, 1);
    assert_eq!(of(&several), (1, 4, 97, ThreadAdvice::AnotherMachine));
    let alone = Scenario { connections: 1, ..busy(closed()) };
    assert_eq!(of(&alone).3, ThreadAdvice::MoreConnections);
    named(&busy(closed()).seen(&[0.97], 1).verdict(), Limit::Server, "server-cpu");
}

#[test]
fn an_open_loop_that_sends_late_keeps_requests_back() {
    let lagging = Scenario { lag: 30 * MICROSECOND, ..quiet() };
    holds(&lagging.verdict(), Limit::Generator, "generator-kept-back", |cause| {
        matches!(cause, Cause::GeneratorKeptBack { lag_p50_ns: 29_900..=30_100, stalls: 0, .. })
    });
    let slow = Scenario { lag: 30 * MICROSECOND, service: MILLISECOND, ..quiet() };
    assert_ne!(slow.verdict().limit, Limit::Generator, "30 us of 1 ms are not visible");
    for connections in [1, 10, 100, 1_000] {
        let paused = vec![(SECOND, SECOND / 2)];
        let verdict = Scenario { connections, paused, ..quiet() }.verdict();
        holds(&verdict, Limit::Generator, "generator-kept-back", |cause| {
            let Cause::GeneratorKeptBack { kept, sent, lag_p50_ns, stalls, stalled_ns, .. } = cause else {
                return false;
            };
            let is_stalled = (*stalls, *stalled_ns) == (1, SECOND / 2);
            is_stalled && kept < sent && (2_990..=3_010).contains(lag_p50_ns)
        });
        let shut = (3 * SECOND, MICROSECOND);
        let verdict = Scenario { connections, paused: vec![(SECOND, SECOND / 2)], shut, ..quiet() }.verdict();
        named(&verdict, Limit::Generator, "generator-kept-back");
    }
}

#[test]
fn waking_up_is_no_limit() {
    named(&Scenario { reaction: MILLISECOND, ..quiet() }.verdict(), Limit::None, "none");
}

#[test]
fn a_closed_loop_that_stood_still_accuses_the_generator() {
    let paused = vec![(SECOND / 20, SECOND / 20)];
    let verdict = Scenario { paused, ..closed() }.verdict();
    let cause = named(&verdict, Limit::Generator, "generator-stood-still");
    let stalled_ns = 50 * MILLISECOND;
    assert_eq!(cause, Cause::GeneratorStoodStill { stalls: 1, stalled_ns, taken: None });
}

#[test]
fn stalls_while_the_server_has_the_requests_limit_nothing() {
    // The generator stands still for 100 ms of each 370, and the server takes 500 ms for each request.
    let paused: Vec<_> =
        (0..12).map(|stall| (stall * 370 * MILLISECOND + MILLISECOND, 100 * MILLISECOND)).collect();
    let slow = Scenario {
        paused: paused.clone(),
        connections: 4,
        service: 500 * MILLISECOND,
        length: 4 * SECOND,
        ..closed()
    };
    assert_ne!(slow.verdict().row, "generator-stood-still");
    let cause = named(&slow.seen(IDLE, 1).verdict(), Limit::Connections, "in-flight");
    assert_eq!(flight(&cause).slots, Some(4));
    let quick = Scenario { paused, connections: 4, length: 4 * SECOND, ..closed() };
    holds(&quick.verdict(), Limit::Generator, "generator-stood-still", |cause| {
        matches!(cause, Cause::GeneratorStoodStill { taken: None, .. })
    });
}

#[test]
fn who_took_the_time_of_a_closed_loop_that_stood_still_is_said_where_it_is_known() {
    let paused = vec![(SECOND / 20, SECOND / 20)];
    let run = Scenario { paused, ..closed() }.seen(IDLE, 1);
    // The server lost more, so that the CPU of the generator alone is not the limit.
    let part = run.length / 100;
    let run = run.machine(|machine| machine.workers[0].run_delay_ns = Some(20 * part));
    let run = run.server(|server| server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(21 * part));
    let cause = named(&run.verdict(), Limit::Generator, "generator-stood-still");
    let taken = Some(TakenCpu { by: CpuTaker::OtherProcesses, time_ns: 40 * MILLISECOND });
    assert_eq!(cause, Cause::GeneratorStoodStill { stalls: 1, stalled_ns: 50 * MILLISECOND, taken });
}

#[test]
fn requests_and_connections_of_others_are_counted() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let ours = run.measurement().ops().all().counts.requests();
        let others = |count: u64| run.clone().reading(|reading| reading.counts.requests = Some(ours + count));
        holds(&others(ours / 50).verdict(), Limit::Others, "others", |cause| {
            matches!(cause, Cause::Others { servers: 1, requests, connections: 0, .. }
                if *requests == Some((ours / 50, ours)))
        });
        assert_ne!(others(ours / 200).verdict().limit, Limit::Others);
        let came = run.clone().reading(|reading| reading.counts.connections_opened = Some(5));
        let new = |cause: &Cause| match cause {
            Cause::Others { requests, connections, .. } => (requests.is_some(), *connections),
            other => panic!("{other:#?}"),
        };
        assert_eq!(new(&named(&came.verdict(), Limit::Others, "others")), (true, 5));
        let unknown = run.clone().reading(|reading| {
            reading.counts.connections_opened = Some(5);
            reading.our_requests = None;
        });
        assert_eq!(new(&named(&unknown.verdict(), Limit::Others, "others")), (false, 5));
        let probe = run.reading(|reading| reading.counts.connections_opened = Some(1));
        assert_ne!(probe.verdict().limit, Limit::Others, "one connection of a monitor limits nothing");
    }
    let anew = quiet().seen(IDLE, 1).reading(|reading| {
        reading.restarted = true;
        reading.counts.requests = Some(1 << 40);
    });
    assert_ne!(anew.verdict().limit, Limit::Others, "counters of a server that started anew say nothing");
}

#[test]
fn connections_of_ours_that_a_server_counts_late_are_not_those_of_others() {
    let run = quiet().seen(IDLE, 1).reading(|reading| reading.counts.connections_opened = Some(16));
    let with = |unheard: u64| {
        let (mut measurement, plan) = (run.measurement(), run.plan());
        measurement.connections.unheard = unheard;
        Verdict::of(&Case::of(&measurement, &plan, &measurement.ops().all()))
    };
    for unheard in [16, 50] {
        assert_ne!(with(unheard).limit, Limit::Others, "{unheard}");
    }
    for (unheard, count, is_bound) in [(6, 10, true), (0, 16, false)] {
        holds(&with(unheard), Limit::Others, "others", |cause| {
            matches!(cause, Cause::Others { connections, at_least, .. }
                if (*connections, *at_least) == (count, is_bound))
        });
    }
}

#[test]
fn a_server_that_started_anew_is_named_before_the_records_that_it_lost() {
    let lost = |restarted: bool, reset: bool| {
        let run = Scenario { late: (0, 0), ..quiet() }.seen(IDLE, 1);
        run.reading(|reading| {
            reading.restarted = restarted;
            reading.counters_reset = reset;
            reading.uptime_s = Some(2);
            reading.counts.evictions = Some(1_000);
        })
        .verdict()
    };
    let anew = StartedAnew { uptime_s: Some(2), span_ns: 4 * SECOND };
    holds(
        &lost(true, false),
        Limit::Server,
        "server-restarted",
        |cause| matches!(cause, Cause::ServerRestarted { server: None, anew: Some(seen), .. } if *seen == anew),
    );
    holds(&lost(false, false), Limit::Workload, "lost-records", |cause| {
        matches!(cause, Cause::LostRecords { why: LostWhy::Memory { evictions: 1_000, .. }, .. })
    });
    assert_eq!(lost(false, true).limit, Limit::None, "counters that were set to 0 are no new start");
}

/// The party that turned connections away, how many, how many of ours failed, and the limit.
fn turned_away(cause: &Cause) -> (TurnedAwayBy, u64, u64, Option<u64>) {
    match cause {
        Cause::ServerConnections { by, turned_away, ours, limit, .. } => (*by, *turned_away, *ours, *limit),
        other => panic!("{other:#?}"),
    }
}

#[test]
fn a_server_that_refuses_connections_is_named() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let shut = (run.length / 2, MICROSECOND);
        let run = Scenario { shut, ..run }.reading(|reading| reading.counts.connections_refused = Some(12));
        let cause = named(&run.verdict(), Limit::Server, "server-connections");
        assert_eq!(turned_away(&cause), (TurnedAwayBy::Server, 12, 10, Some(1_024)));
    }
}

#[test]
fn a_full_queue_is_the_servers_only_where_it_is_known_to_be() {
    let run = Scenario { shut: (quiet().length / 2, MICROSECOND), ..quiet() }.seen(IDLE, 1);
    let overflows = |network: &mut HostNetwork| network.listen_overflows = 597;
    let run = run.machine(|machine| overflows(machine.network.as_mut().expect("read")));
    // The queue that was full is another program's.
    let others = run.clone().server(|server| server.listen_drops = Some(0));
    assert_ne!(others.verdict().row, "server-connections");
    let own = run.clone().server(|server| server.listen_drops = Some(40));
    let cause = named(&own.verdict(), Limit::Server, "server-connections");
    assert_eq!(turned_away(&cause), (TurnedAwayBy::ItsQueue, 40, 10, Some(1_024)));
    // Where the server's own sockets cannot be seen, an attempt of the run has to have met such a queue.
    assert_ne!(run.verdict().row, "server-connections");
    let mut measurement = run.measurement();
    measurement.connections.turned_away = 1;
    let (plan, all) = (run.plan(), measurement.ops().all());
    let verdict = Verdict::of(&Case::of(&measurement, &plan, &all));
    let cause = named(&verdict, Limit::Server, "server-connections");
    assert_eq!(turned_away(&cause), (TurnedAwayBy::QueueOfMachine, 597, 1, Some(1_024)));
}

#[test]
fn a_machine_without_free_ports_is_the_generator() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let verdict = |no_port| {
            let mut measurement = run.measurement();
            (measurement.connections.failed, measurement.connections.no_port) = (900, no_port);
            let (plan, all) = (run.plan(), measurement.ops().all());
            Verdict::of(&Case::of(&measurement, &plan, &all))
        };
        let cause = named(&verdict(880), Limit::Generator, "ports");
        assert_eq!(cause, Cause::Ports { failed: 880, attempts: 910 });
        assert_ne!(verdict(0).row, "ports", "attempts that failed for other reasons");
    }
}

#[test]
fn a_closed_loop_counts_what_was_in_flight() {
    let mut plan = closed().plan();
    plan.groups[0].clients *= 10;
    let run = closed().seen(IDLE, 1);
    let (measurement, all) = (run.measurement(), run.measurement().ops().all());
    let cause = Verdict::of(&Case::of(&measurement, &plan, &all)).cause;
    assert!(flight(&cause).is_below && flight(&cause).slots == Some(100), "{cause:#?}");
    assert!((8.0..=11.0).contains(&flight(&cause).flown), "{cause:#?}");
}

#[test]
fn a_full_server_that_tells_nothing_of_itself_is_known_by_its_words() {
    for (run, words) in [
        (quiet(), "ERROR Too many open connections"),
        (closed(), "-ERR max number of clients reached"),
        (closed(), "SERVER_ERROR out of memory storing object"),
    ] {
        let run = Scenario { shut: (run.length / 2, MICROSECOND), ..run };
        let mut measurement = run.measurement();
        measurement.messages.insert(words.to_owned(), 40);
        let (plan, all) = (run.plan(), measurement.ops().all());
        let verdict = Verdict::of(&Case::of(&measurement, &plan, &all));
        if words.contains("memory") {
            assert_ne!(verdict.row, "server-connections");
            continue;
        }
        let cause = named(&verdict, Limit::Server, "server-connections");
        assert_eq!(turned_away(&cause), (TurnedAwayBy::Server, 40, 10, None));
    }
}

#[test]
fn a_server_that_refused_connections_names_its_limit_where_no_request_met_its_words() {
    let mut measurement = closed().measurement();
    measurement.connections.failed = 405;
    let refusal =
        Refusal { connections: 100, refused: 81, attempts: 405, limit: Some(40), ..Refusal::default() };
    measurement.connections.refusals = vec![refusal];
    let (plan, all) = (closed().plan(), measurement.ops().all());
    let verdict = Verdict::of(&Case::of(&measurement, &plan, &all));
    let cause = named(&verdict, Limit::Server, "server-connections");
    assert_eq!(turned_away(&cause), (TurnedAwayBy::Server, 405, 405, Some(40)));
    assert!(matches!(cause, Cause::ServerConnections { taken: Some(19), .. }), "{cause:#?}");
}

#[test]
fn a_server_that_nobody_asked_was_gone_where_every_connection_was_lost_and_attempts_were_turned_away() {
    for run in [quiet(), closed()] {
        let verdict = |lost, turned_away, reconnected, refused| {
            let mut measurement = run.measurement();
            measurement.evidence = None;
            let connections = &mut measurement.connections;
            (connections.asked, connections.lost, connections.failed) = (10, lost, turned_away);
            (connections.turned_away, connections.reconnected) = (turned_away, reconnected);
            let refusal = Refusal { attempts: refused, ..Refusal::default() };
            connections.refusals.extend((refused > 0).then_some(refusal));
            let (plan, all) = (run.plan(), measurement.ops().all());
            Verdict::of(&Case::of(&measurement, &plan, &all))
        };
        holds(&verdict(10, 24, 10, 0), Limit::Server, "server-restarted", |cause| {
            matches!(cause, Cause::ServerRestarted { anew: None, .. })
        });
        assert_ne!(
            verdict(10, 0, 10, 0).row,
            "server-restarted",
            "it ended connections and took others at once"
        );
        assert_ne!(verdict(9, 24, 9, 0).row, "server-restarted", "one connection outlived that");
        assert_ne!(verdict(10, 24, 0, 0).row, "server-restarted", "it did not come back");
        assert_ne!(verdict(10, 24, 10, 24).row, "server-restarted", "it was full");
    }
}

/// A run over a network card of 1 Gbit/s that carried this many bytes.
fn carded(run: Scenario, sent_bytes: u64, allowance_exceeded: Option<u64>) -> Scenario {
    let run = Scenario { server: "cache1:11211", ..run }.seen(IDLE, 1);
    run.machine(|machine| {
        let name = "eth0".to_owned();
        let bits_per_second = Some(1_000_000_000);
        let card = CardUse { name, sent_bytes, bits_per_second, allowance_exceeded, ..CardUse::default() };
        machine.network = Some(HostNetwork { cards: vec![card], ..HostNetwork::default() });
    })
}

#[test]
fn a_full_card_and_an_exceeded_allowance_are_the_network() {
    for run in [quiet(), closed()] {
        let full = 118_000_000 * run.length / SECOND;
        let verdict = carded(run.clone(), full, None).verdict();
        let beyond = |verdict: &Verdict| match named(verdict, Limit::Network, "network-bandwidth") {
            Cause::NetworkBandwidth { card, beyond, .. } if card == "eth0" => beyond,
            other => panic!("{other:#?}"),
        };
        let CardBound::Speed(share) = beyond(&verdict) else { panic!("{verdict:#?}") };
        assert_eq!(percent(share), 94);
        let verdict = carded(run.clone(), 1_000, Some(7)).verdict();
        assert_eq!(beyond(&verdict), CardBound::Allowance(7));
        assert_ne!(carded(run.clone(), 1_000, Some(0)).verdict().row, "network-bandwidth");
        // A virtual card says a speed that is not its own.
        let virtual_card = carded(run, 2 * full, None).verdict();
        assert_ne!(virtual_card.row, "network-bandwidth");
        assert!(virtual_card.evidence.iter().all(|seen| !is_of_card(seen)), "{virtual_card:?}");
    }
}

#[test]
fn lost_packets_show_in_a_tail_of_200_ms() {
    let tail = |run: Scenario| Scenario { frozen: (run.length / 2, 250 * MILLISECOND), ..run }.seen(IDLE, 1);
    for run in [
        tail(quiet()),
        tail(Scenario { length: SECOND, connections: 50, service: 2 * MILLISECOND, ..closed() }),
    ] {
        let segments = run.measurement().ops().all().counts.requests();
        let lossy = run.clone().machine(|machine| {
            let tcp = machine.connections.as_mut().expect("read");
            (tcp.retransmits, tcp.lost) = (segments / 100, Some(segments / 100));
        });
        let is_lost = |cause: &Cause| match cause {
            Cause::NetworkLoss { lost, tail, .. } => *lost && tail.quantile == "p99.9",
            other => panic!("{other:#?}"),
        };
        assert!(is_lost(&named(&lossy.verdict(), Limit::Network, "network-loss")));
        // What had arrived when it was sent again was not lost, whatever timers of other connections ran out.
        let sent_twice = lossy.clone().machine(|machine| {
            machine.connections.as_mut().expect("read").lost = Some(0);
            machine.network.as_mut().expect("read").timeouts = 5;
        });
        assert_ne!(sent_twice.verdict().row, "network-loss");
        // A peer that does not say whether segments had arrived: only a timer that ran out proves a loss.
        let timed_out = |timeouts| {
            lossy.clone().machine(|machine| {
                machine.connections.as_mut().expect("read").lost = None;
                machine.network.as_mut().expect("read").timeouts = timeouts;
            })
        };
        assert_ne!(timed_out(0).verdict().row, "network-loss");
        assert!(!is_lost(&named(&timed_out(1).verdict(), Limit::Network, "network-loss")));
        // A timer of the machine is not ours where none of our segments was sent again.
        let of_others = run.machine(|machine| machine.network.as_mut().expect("read").timeouts = 5);
        assert_ne!(of_others.verdict().row, "network-loss");
    }
    let short =
        quiet().seen(IDLE, 1).machine(|machine| machine.connections.as_mut().expect("read").lost = Some(400));
    assert_ne!(short.verdict().row, "network-loss", "nothing took as long as the timer");
}

#[test]
fn full_windows_and_buffers_are_told_apart() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let limited = |receive: bool| {
            run.clone().machine(|machine| {
                let tcp = machine.connections.as_mut().expect("read");
                let fifth = tcp.busy_ns / 5;
                *(if receive { &mut tcp.rwnd_limited_ns } else { &mut tcp.sndbuf_limited_ns }) = fifth;
            })
        };
        holds(
            &limited(true).verdict(),
            Limit::Server,
            "server-receive-window",
            |cause| matches!(cause, Cause::ServerReceiveWindow { share } if percent(*share) == 20),
        );
        holds(
            &limited(false).verdict(),
            Limit::Generator,
            "generator-send-buffer",
            |cause| matches!(cause, Cause::GeneratorSendBuffer { share } if percent(*share) == 20),
        );
    }
}

/// The number of the server's threads, and in percents how much the busiest was used and waited, and the others.
fn threads(cause: &Cause) -> (Option<u32>, u64, Option<u64>, Option<u64>) {
    let (threads, busiest, others) = match cause {
        Cause::ServerOneThread { threads, busiest, others, .. } => (Some(*threads), busiest, Some(*others)),
        Cause::ServerCpu { threads, busiest, others, .. } => (*threads, busiest, *others),
        other => panic!("{other:#?}"),
    };
    (threads, percent(busiest.cpu), busiest.waited.map(percent), others.map(percent))
}

#[test]
fn one_hot_thread_of_four_is_told_from_four() {
    for run in [quiet(), closed()] {
        let one = run.clone().seen(&[0.97, 0.3, 0.2, 0.1, 0.0, 0.0], 4);
        let cause = named(&one.verdict(), Limit::Server, "server-one-thread");
        assert_eq!(threads(&cause), (Some(4), 97, None, Some(20)));
        let all = run.clone().seen(&[0.97, 0.95, 0.94, 0.93, 0.0, 0.0], 4);
        let cause = named(&all.verdict(), Limit::Server, "server-cpu");
        assert_eq!(threads(&cause), (Some(4), 97, None, Some(94)));
        // Of a server on another machine only the mean is known.
        let remote = run.seen(&[0.95; 4], 4).server(|server| server.threads = None);
        let cause = named(&remote.verdict(), Limit::Server, "server-cpu");
        assert_eq!(threads(&cause), (Some(4), 95, None, None));
    }
}

#[test]
fn a_thread_that_waits_little_for_the_cpu_that_it_fills_is_full() {
    for run in [quiet(), closed()] {
        let part = run.length / 10;
        let delayed = |shares: &[f64], threads: u32| {
            run.clone().seen(shares, threads).server(|server| {
                server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(part);
            })
        };
        let one = delayed(&[0.88, 0.3, 0.2, 0.1], 4);
        let cause = named(&one.verdict(), Limit::Server, "server-one-thread");
        assert_eq!(threads(&cause), (Some(4), 88, Some(10), Some(20)));
        let cause = named(&delayed(&[0.88], 1).verdict(), Limit::Server, "server-cpu");
        assert_eq!(threads(&cause), (Some(1), 88, Some(10), None));
        let cause = named(&delayed(&[0.75], 1).verdict(), Limit::Server, "server-run-delay");
        assert_eq!(waited(&cause).0, 10);
    }
}

#[test]
fn a_thread_that_has_a_tenth_of_its_time_left_is_not_full() {
    let run = closed();
    let part = run.length / 25;
    let near = run.seen(&[0.87], 1).server(|server| {
        server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(part);
    });
    let cause = named(&near.verdict(), Limit::Connections, "closed-loop");
    assert_eq!(flight(&cause).server_busy.map(percent), Some(87));
}

#[test]
fn a_full_server_that_reads_late_is_named_for_its_cpu() {
    for run in [quiet(), closed()] {
        let late = run.seen(&[0.97], 1).machine(|machine| {
            let tcp = machine.connections.as_mut().expect("read");
            tcp.rwnd_limited_ns = tcp.busy_ns / 5;
        });
        assert_eq!(threads(&named(&late.verdict(), Limit::Server, "server-cpu")).1, 97);
    }
}

#[test]
fn too_few_connections_are_the_limit_where_the_server_has_time() {
    let few = Scenario { connections: 2, service: 5 * MILLISECOND, ..quiet() };
    holds(&few.clone().seen(IDLE, 1).verdict(), Limit::Connections, "slots", |cause| {
        let Cause::Slots { slots: 2, clients, meanwhile: Spare::Cpu(cpu), .. } = cause else { return false };
        *clients == Clients { connections: 2, depth: Some(1), batch: None, are_mean: false }
            && percent(*cpu) == 20
    });
    holds(&few.verdict(), Limit::Server, "waits-by-exclusion", |cause| {
        let Cause::WaitsByExclusion { why, .. } = cause else { return false };
        matches!(why, WaitedFor::Answers { connections: 2, server_busy: None, unread: None, .. })
    });
}

#[test]
fn a_server_that_waits_for_its_cpu_has_no_time_for_more_connections() {
    // Two serving threads on one CPU: each has it for 40 % of the time, and waits for it for 45 %.
    let few = Scenario { connections: 2, service: 5 * MILLISECOND, ..quiet() };
    let part = few.length * 45 / 100;
    let waiting = few.seen(&[0.4, 0.4], 2).server(|server| {
        server.threads.iter_mut().flatten().for_each(|thread| thread.run_delay_ns = Some(part));
    });
    assert_eq!(waited(&named(&waiting.verdict(), Limit::Server, "server-run-delay")).0, 45);
}

#[test]
fn waits_of_few_requests_are_a_statement_about_the_tail() {
    // 1.2 requests are in flight over 50 connections: one in 40 has to wait.
    let tail = Scenario {
        connections: 50,
        rate: Some(20_000.0),
        service: 60 * MICROSECOND,
        length: SECOND,
        ..quiet()
    };
    assert!(
        tail.summary().totals.figures[Span::Wait as usize].quantiles[3].known() > Some(20_000),
        "p99 waits"
    );
    for run in [tail.clone().seen(IDLE, 1), tail] {
        named(&run.verdict(), Limit::None, "none");
    }
}

#[test]
fn a_closed_loop_without_evidence_is_judged_by_exclusion() {
    holds(&closed().verdict(), Limit::Server, "service-by-exclusion", |cause| {
        matches!(cause, Cause::ServiceByExclusion { share, client_threads: 1, client_busy, unread: None }
            if (percent(*share), percent(*client_busy)) == (93, 40))
    });
    let refused = closed().seen(IDLE, 1).server(|server| {
        (server.reading, server.threads) = (None, None);
        server.unread = Some("it answered `stats` with ERROR".to_owned());
    });
    holds(
        &refused.verdict(),
        Limit::Server,
        "service-by-exclusion",
        |cause| matches!(cause, Cause::ServiceByExclusion { unread: Some(why), .. } if why.ends_with("with ERROR")),
    );
    let lagging = Scenario { lag: 40 * MICROSECOND, ..closed() };
    let cause = named(&lagging.verdict(), Limit::Connections, "closed-loop");
    assert_eq!((flight(&cause).slots, flight(&cause).is_below), (Some(10), false));
}

#[test]
fn a_server_that_waits_for_a_cpu_is_named() {
    for run in [quiet(), closed()] {
        let part = run.length / 4;
        let waiting = run.seen(&[0.7], 1).server(|server| {
            server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(part);
        });
        assert_eq!(waited(&named(&waiting.verdict(), Limit::Server, "server-run-delay")).0, 25);
    }
}

#[test]
fn a_server_that_does_not_hold_the_records_is_the_workload() {
    let full = quiet().seen(IDLE, 1).reading(|reading| {
        reading.counts.evictions = Some(812);
        reading.counts.out_of_memory = Some(3);
    });
    for of in ["memcached", "redis"] {
        let run = full.clone().reading(|reading| reading.software = of.to_owned());
        holds(&run.verdict(), Limit::Workload, "lost-records", |cause| {
            let Cause::LostRecords {
                why: LostWhy::Memory { evictions, refused_stores, full, software }, ..
            } = cause
            else {
                return false;
            };
            let counts = (*evictions, *refused_stores, full.map(percent));
            counts == (812, 3, Some(9)) && *software == [of.to_owned()]
        });
    }
}

/// The verdict on a run that stored so many of 10,000 records before and did not find this number of keys, after a plan with a load
/// and a mix that was changed.
fn judged(stored: u64, misses: u64, change: &dyn Fn(&mut Plan)) -> Verdict {
    let run = quiet().seen(IDLE, 1);
    let mut measurement = run.measurement();
    let mut all = measurement.ops().all();
    (all.counts.misses, all.counts.hits) = (misses, all.counts.hits - misses);
    measurement.load = Some(LoadResult { records: 10_000, stored, ..LoadResult::default() });
    let phase = |work| Phase { name: String::new(), work, stop: Stop::default(), recorded: true };
    let mut plan = run.plan();
    let mix = Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]);
    plan.phases = vec![phase(Work::Load(Load::default())), phase(Work::Mix(mix))];
    change(&mut plan);
    Verdict::of(&Case::of(&measurement, &plan, &all))
}

/// Changes the mix in the second phase of a plan.
fn with_mix(plan: &mut Plan, change: impl Fn(&mut Mix)) {
    let Work::Mix(mix) = &mut plan.phases[1].work else { panic!("it is the second") };
    change(mix);
}

#[test]
fn keys_that_were_stored_and_not_found_are_the_workload() {
    holds(&judged(10_000, 200, &|_| {}), Limit::Workload, "lost-records", |cause| {
        let why = LostWhy::Removed { stored: 10_000 };
        matches!(cause, Cause::LostRecords { misses, why: seen } if percent(*misses) == 5 && *seen == why)
    });
    named(&judged(10_000, 3, &|_| {}), Limit::None, "none");
    named(&judged(9_999, 200, &|_| {}), Limit::None, "none");
    let deletes = |plan: &mut Plan| with_mix(plan, |mix| mix.ops.push((Verb::Delete, 1.0)));
    named(&judged(10_000, 200, &deletes), Limit::None, "none");
    let expires = |plan: &mut Plan| plan.data.expiry_s = Dist::Fixed(60.0);
    named(&judged(10_000, 200, &expires), Limit::None, "none");
    let unstored = |plan: &mut Plan| drop(plan.phases.remove(0));
    named(&judged(10_000, 200, &unstored), Limit::None, "none");
}

/// The verdict on a run without a load that did not find 200 keys, after changes of its server's reading and its plan.
fn judged_unloaded(reading: &dyn Fn(&mut ServerReading), change: &dyn Fn(&mut Plan)) -> Verdict {
    let kept = |reading: &mut ServerReading| {
        (reading.counts.evictions, reading.counts.expired) = (Some(0), Some(0));
    };
    let run = quiet().seen(IDLE, 1).reading(kept).reading(reading);
    let measurement = run.measurement();
    let mut all = measurement.ops().all();
    (all.counts.misses, all.counts.hits) = (200, all.counts.hits - 200);
    let work = Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]));
    let mut plan = run.plan();
    plan.phases = vec![Phase { name: String::new(), work, stop: Stop::default(), recorded: true }];
    (plan.data.key_prefix, plan.data.key_size) = ("z:".to_owned(), Dist::Fixed(21.0));
    change(&mut plan);
    Verdict::of(&Case::of(&measurement, &plan, &all))
}

#[test]
fn keys_that_were_never_stored_are_no_records_that_the_server_lost() {
    let never = |holds_usual| {
        let (key_size, key_prefix) = (Dist::Fixed(21.0), "z:".to_owned());
        LostWhy::NeverThere(NeverThere { key_size, key_prefix, holds_usual })
    };
    let lost = |verdict: &Verdict| match named(verdict, Limit::Workload, "lost-records") {
        Cause::LostRecords { misses, why } => (percent(misses), why),
        other => panic!("{other:#?}"),
    };
    assert_eq!(lost(&judged_unloaded(&|_| {}, &|_| {})), (5, never(false)));
    let others = judged_unloaded(&|reading| reading.usual_record = Some(true), &|_| {});
    assert_eq!(lost(&others), (5, never(true)));
    // Where something else may have taken them away, that is not claimed.
    let evicted = judged_unloaded(&|reading| reading.counts.evictions = Some(7), &|_| {});
    assert!(matches!(lost(&evicted), (5, LostWhy::Memory { evictions: 7, .. })));
    let expired = judged_unloaded(&|reading| reading.counts.expired = Some(7), &|_| {});
    let flushed = judged_unloaded(
        &|reading| reading.disturbances.push("emptied 1 times (flush_all)".to_owned()),
        &|_| {},
    );
    let of_mix = |change: &dyn Fn(&mut Mix)| {
        judged_unloaded(&|_| {}, &|plan| {
            let Work::Mix(mix) = &mut plan.phases[0].work else { panic!("it is the first") };
            change(mix);
        })
    };
    let deletes = of_mix(&|mix| mix.ops.push((Verb::Delete, 1.0)));
    let fills = of_mix(&|mix| mix.read_through_ns = Some(0));
    for verdict in [expired, flushed, deletes, fills] {
        named(&verdict, Limit::None, "none");
    }
}

#[test]
fn keys_that_the_load_itself_took_away_or_never_stored_are_no_lost_records() {
    let churns = |plan: &mut Plan| with_mix(plan, |mix| mix.churn = Some(KeyChurn::usual()));
    named(&judged(10_000, 200, &churns), Limit::None, "none");
    let with_event = |what: EventKind| {
        judged(10_000, 200, &|plan| plan.changes.events = vec![Event { at_ns: SECOND, what: what.clone() }])
    };
    let range = RankRange { first: 0, last: 99 };
    let hot = |key| EventKind::Hot(FlashCrowd { key, share: 0.3, rise_ns: 0, hold_ns: SECOND, fall_ns: 0 });
    for what in [EventKind::Delete(range), EventKind::Expire(range), hot(HotKey::New)] {
        named(&with_event(what), Limit::None, "none");
    }
    // A hot key that is one of the records was stored as they were.
    named(&with_event(hot(HotKey::Rank(7))), Limit::Workload, "lost-records");
    let with_part = |change: &dyn Fn(&mut Part)| {
        judged(10_000, 200, &|plan| {
            let mut part = Part::plain("second".to_owned(), SECOND);
            change(&mut part);
            plan.changes.parts = vec![Part::plain("first".to_owned(), 0), part];
        })
    };
    named(&with_part(&|_| {}), Limit::Workload, "lost-records");
    let deletes = |part: &mut Part| part.ops = Some(vec![(Verb::Get, 9.0), (Verb::Delete, 1.0)]);
    named(&with_part(&deletes), Limit::None, "none");
    let churns = |part: &mut Part| part.churn = Some(KeyChurn::usual());
    named(&with_part(&churns), Limit::None, "none");
}

#[test]
fn limits_of_local_and_of_remote_servers_follow_their_addresses_and_are_not_claimed_where_these_are_not_known()
 {
    let run = carded(quiet(), 118_000_000 * quiet().length / SECOND, None);
    // No name says where a server is.
    let of = |server, servers_are_local| {
        let run = Scenario { server, ..run.clone() };
        run.machine(|machine| machine.servers_are_local = servers_are_local).verdict()
    };
    let has_card = |verdict: &Verdict| verdict.evidence.iter().any(is_of_card);
    for server in ["127.x.example:11211", "localhost:11211"] {
        let remote = of(server, Some(false));
        assert!(remote.row == "network-bandwidth" && has_card(&remote), "{remote:?}");
        for unclaimed in [of(server, Some(true)), of(server, None)] {
            assert!(unclaimed.row != "network-bandwidth" && !has_card(&unclaimed), "{unclaimed:?}");
        }
    }
    // An older result does not have the fact.
    let mut older = serde_json::to_value(&run.evidence.as_ref().expect("it was seen").machines[0]).unwrap();
    older.as_object_mut().expect("fields").remove("servers_are_local");
    assert_eq!(serde_json::from_value::<MachineEvidence>(older).unwrap().servers_are_local, None);
}

#[test]
fn a_long_way_is_what_a_response_consists_of() {
    let far = Scenario {
        connections: 100,
        server: "cache1:11211",
        service: 2 * MILLISECOND,
        connect: 1_900 * MICROSECOND,
        ..quiet()
    };
    holds(&far.clone().seen(IDLE, 1).verdict(), Limit::Network, "way", |cause| {
        let Cause::Way { connect_ns, service_ns } = cause else { return false };
        [connect_ns, service_ns].map(|ns| (ns + 5_000) / 10_000) == [190, 200]
    });
    named(&Scenario { connect: MILLISECOND, ..far }.seen(IDLE, 1).verdict(), Limit::None, "none");
    let here =
        Scenario { connections: 100, service: 2 * MILLISECOND, connect: 1_900 * MICROSECOND, ..quiet() };
    named(&here.seen(IDLE, 1).verdict(), Limit::None, "none");
}

#[test]
fn a_server_that_froze_is_accused_and_the_generator_is_not() {
    let frozen = Scenario { frozen: (SECOND, SECOND), ..quiet() };
    for run in [frozen.clone().seen(IDLE, 1), frozen.clone()] {
        holds(&run.verdict(), Limit::Server, "server-bursts", |cause| {
            let Cause::ServerBursts { longest_ns, longest_is_bound, server_says, .. } = cause else {
                return false;
            };
            let is_long = (990 * MILLISECOND..SECOND).contains(longest_ns);
            is_long && !longest_is_bound && server_says.is_empty()
        });
    }
    let forked = frozen.clone().seen(IDLE, 1).reading(|reading| {
        reading.disturbances = vec!["snapshot (fork 12.3 ms)".to_owned(), "memory defragmented".to_owned()];
    });
    holds(&forked.verdict(), Limit::Server, "server-bursts", |cause| {
        matches!(cause, Cause::ServerBursts { server_says, .. }
            if *server_says == ["memory defragmented", "snapshot (fork 12.3 ms)"])
    });
    let timed_out = Scenario { timeout: 200 * MILLISECOND, ..frozen.clone() };
    holds(&timed_out.verdict(), Limit::Server, "server-bursts", |cause| {
        matches!(cause, Cause::ServerBursts { longest_ns, longest_is_bound: true, .. }
            if *longest_ns == 200 * MILLISECOND)
    });
    // Trust says what lag is part of the median; the waiting is the server's all the same.
    let late = Scenario { lag: 60 * MICROSECOND, ..frozen };
    named(&late.verdict(), Limit::Server, "server-bursts");
    assert!(!late.summary().trust.ok);
}

#[test]
fn connections_that_were_not_there_are_not_the_generators_fault() {
    // The lag is larger than the service, so that of the two it would have made the wait.
    let shut = Scenario { shut: (SECOND, SECOND), lag: 60 * MICROSECOND, ..quiet() };
    holds(&shut.verdict(), Limit::Server, "waits-by-exclusion", |cause| {
        let Cause::WaitsByExclusion { why, .. } = cause else { return false };
        *why == WaitedFor::Connections { lost: 10, failed: 0 }
    });
}

#[test]
fn requests_without_an_answer_are_not_the_generators_fault() {
    // Enough connections that nothing waits.
    let frozen =
        Scenario { connections: 1_000, frozen: (SECOND, SECOND), timeout: 20 * MILLISECOND, ..quiet() };
    let is_much = |cause: &Cause| matches!(cause, Cause::Unanswered { share, .. } if *share > 0.01);
    holds(&frozen.verdict(), Limit::Server, "unanswered", is_much);
    // Requests wait for connections whose requests time out: what made them wait got no answer.
    let crowded =
        Scenario { connections: 10, timeout: 100 * MILLISECOND, frozen: (SECOND, 100 * SECOND), ..frozen };
    holds(&crowded.verdict(), Limit::Server, "unanswered", is_much);
}

#[test]
fn requests_that_leave_late_are_held_up_by_the_generators_kernel() {
    let shaped = Scenario { service: 400 * MICROSECOND, out: Some(90 * MICROSECOND), ..quiet() };
    for run in [shaped.clone(), shaped.clone().seen(IDLE, 1)] {
        holds(&run.verdict(), Limit::Generator, "generator-out", |cause| {
            matches!(cause, Cause::GeneratorOut { out_ns: 89_500..90_500, queued_ns: None, share }
                if (0.22..0.23).contains(share))
        });
    }
    let seen = |run: &Scenario| {
        run.verdict().evidence.iter().any(|one| matches!(one.subject, Subject::WayOut { .. }))
    };
    assert!(seen(&shaped) && !seen(&quiet()));
    // A way out that is short, or a small part, is no limit; a full server is the limit of a closed loop.
    let short = Scenario { out: Some(15 * MICROSECOND), ..quiet() };
    let small = Scenario { service: 900 * MICROSECOND, ..shaped.clone() };
    for run in [short, small] {
        named(&run.seen(IDLE, 1).verdict(), Limit::None, "none");
    }
    let full = Scenario { out: Some(90 * MICROSECOND), ..full_server(1, 460 * MICROSECOND, 0.6) };
    named(&full.verdict(), Limit::Server, "server-cpu");
    let lagging = Scenario { lag: 300 * MICROSECOND, ..shaped };
    named(&lagging.verdict(), Limit::Generator, "generator-kept-back");
}

#[test]
fn evidence_is_listed_with_the_bound_of_each_figure() {
    let verdict = closed().seen(&[0.97], 1).verdict();
    let busiest = Subject::ServerThread { server: "127.0.0.1:11211".to_owned(), is_serving: true };
    let server = verdict.evidence.iter().find(|seen| seen.subject == busiest).expect("seen");
    assert_eq!((server.source, server.limit), ("server", Some(0.9)));
    assert!((server.value - 0.97).abs() < 1e-6, "{server:?}");
    assert!(quiet().verdict().evidence.iter().all(|seen| seen.source != "server"), "nothing was seen of it");
}

#[test]
fn rows_and_limits_have_names_of_their_own() {
    // Client and server share CPUs, and servers refuse connections, in more than one way.
    let mut rows: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    rows.retain(|name| !["shared-cpu", "server-connections"].contains(name));
    let mut limits: Vec<&str> = Limit::ALL.iter().map(|limit| limit.name()).collect();
    for names in [&mut rows, &mut limits] {
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

#[test]
fn without_receive_stamps_service_times_are_not_called_the_servers() {
    let stampless = Scenario { clock: Clock::User, ..quiet() }.summary().trust;
    assert!(!stampless.has_stamps, "{stampless:?}");
    assert!(quiet().summary().trust.has_stamps);
}

#[test]
fn facts_bear_the_name_of_their_row() {
    let full = full_server(1, 460 * MICROSECOND, 0.6);
    for run in [quiet(), closed(), quiet().seen(IDLE, 1), full, Scenario { length: 0, ..quiet() }] {
        let verdict = run.verdict();
        let written = serde_json::to_value(&verdict.cause).expect("plain values");
        assert_eq!(written["kind"], verdict.row);
        assert_eq!(serde_json::from_value::<Cause>(written).expect("as it was written"), verdict.cause);
    }
}
