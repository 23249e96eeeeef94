//! Tests of each row of the table of limits: a run with its evidence and, where there is such a row, one without.

use super::{Case, CpuTaker, LagCause, Limit, ROWS, Verdict};
use crate::connections::Refusal;
use crate::evidence::{CardUse, HostNetwork, MachineEvidence, ServerReading};
use crate::measurement::LoadResult;
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

#[track_caller]
fn says(verdict: &Verdict, limit: Limit, row: &str, words: &[&str]) {
    assert_eq!((verdict.limit, verdict.row), (limit, row), "{verdict:#?}");
    for word in words {
        assert!(verdict.says.contains(word), "{word:?} is missing: {}", verdict.says);
    }
    assert!(verdict.says.ends_with('.'), "{}", verdict.says);
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
    let words =
        ["The CPU of the server: its one serving thread used 98 % of a CPU", "client thread was busy 60 %"];
    says(&full_server(1, 460 * MICROSECOND, 0.6).verdict(), Limit::Server, "server-cpu", &words);
    says(&full_server(16, 800 * MICROSECOND, 0.31).verdict(), Limit::Server, "server-cpu", &["busy 31 %"]);
}

#[test]
fn four_requests_in_flight_are_the_limit_where_both_sides_have_time() {
    let four = Scenario { connections: 4, busy_share: 0.28, late: (10, 30 * MICROSECOND), ..closed() };
    let words =
        ["4 requests (4 connections, depth 1)", "55 % of a CPU", "busy 28 %", "more connections or depth"];
    says(&four.seen(&[0.55, 0.01], 1).verdict(), Limit::Connections, "in-flight", &words);
}

#[test]
fn of_a_server_whose_threads_are_not_seen_the_busiest_is_known_by_a_bound() {
    let run = closed().seen(&[0.3, 0.3], 2);
    let words = "the server's busiest thread used 30 % of a CPU";
    says(&run.verdict(), Limit::Connections, "in-flight", &[words]);
    let remote = run.server(|server| server.threads = None);
    let words = "the server's busiest thread used at most 60 % of a CPU";
    says(&remote.verdict(), Limit::Connections, "in-flight", &[words]);
}

#[test]
fn connections_that_were_lost_are_no_reason_to_ask_for_more() {
    let run = closed().seen(IDLE, 1);
    assert!(run.verdict().says.contains("more connections or depth"), "{}", run.verdict().says);
    let shut = Scenario { shut: (run.length / 2, MICROSECOND), ..run };
    let verdict = shut.verdict();
    says(&verdict, Limit::Connections, "in-flight", &["What is in flight"]);
    assert!(!verdict.says.contains("more connections"), "{}", verdict.says);
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
        says(&summary.verdict, Limit::None, "none", &["Nobody: requests were answered as they came"]);
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
                says(&run.verdict(), Limit::None, "none", &["answered as they came"]);
            }
        }
    }
}

#[test]
fn an_innocent_run_says_what_gives_way_next() {
    let verdict = quiet().seen(&[0.4], 1).verdict();
    says(
        &verdict,
        Limit::None,
        "none",
        &["Next to give way: the CPU of the server, used for 40 %, at about 2,5"],
    );
}

#[test]
fn without_a_completed_request_there_is_no_judgement() {
    let nothing = Scenario { length: 0, ..quiet() };
    says(&nothing.verdict(), Limit::Unknown, "nothing-completed", &["Nothing was completed"]);
}

#[test]
fn an_instrument_that_disagrees_with_itself_judges_nothing() {
    for run in [Scenario { rate: Some(5_000.0), ..quiet() }, Scenario { length: SECOND, ..closed() }] {
        let mut measurement = run.measurement();
        let all = measurement.ops().all();
        measurement.flight.requests = all.counts.requests();
        measurement.flight.area_ns = all.times.of(Span::Service).moments().sum / 2;
        let verdict = Verdict::of(&Case::of(&measurement, &run.plan(), &all));
        says(
            &verdict,
            Limit::Unknown,
            "instrument",
            &["The instrument disagrees with itself", "Little's law"],
        );
    }
}

#[test]
fn a_cpu_that_was_taken_away_names_the_taker() {
    let lagging = |run: Scenario| Scenario { lag: 30 * MICROSECOND, ..run }.seen(IDLE, 1);
    for run in [lagging(quiet()), lagging(closed())] {
        let part = run.length / 10;
        let names = |run: Scenario, taker: &str| {
            let words = ["The generator's CPU was taken away by", taker, "for 10 % of its time"];
            says(&run.verdict(), Limit::Generator, "generator-cpu-taken", &words);
        };
        // Steal is that of all four CPUs.
        names(run.clone().machine(|machine| machine.steal_ns = Some(4 * part)), "the hypervisor");
        names(run.clone().machine(|machine| machine.workers[0].run_delay_ns = Some(part)), "other processes");
        let throttled = run.machine(|machine| {
            machine.workers[0].run_delay_ns = Some(part);
            machine.throttled_ns = Some(part);
        });
        names(throttled, "the container's limit");
    }
    let unseen = quiet().seen(IDLE, 1).machine(|machine| machine.steal_ns = Some(SECOND * 4));
    says(&unseen.verdict(), Limit::None, "none", &[]);
    let full = full_server(1, 460 * MICROSECOND, 0.6);
    let part = full.length / 10;
    let both = full.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    says(&both.verdict(), Limit::Server, "server-cpu", &[]);
}

#[test]
fn a_cpu_that_was_missed_in_the_tail_alone_is_no_limit_of_an_open_loop() {
    let paused = (1..=40).map(|stall| (stall * SECOND / 20, 3 * MILLISECOND)).collect();
    let tail = Scenario { paused, connections: 1_000, ..quiet() }.seen(IDLE, 1);
    let part = tail.length / 10;
    let tail = tail.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    let summary = tail.summary();
    assert!(!summary.trust.ok, "the tail has it: {:?}", summary.trust);
    assert_ne!(summary.verdict.row, "generator-cpu-taken", "{}", summary.verdict.says);
}

#[test]
fn a_cpu_that_was_missed_while_the_server_had_the_requests_is_no_limit_of_a_closed_loop() {
    let held = Scenario { connections: 50, service: 10 * MILLISECOND, lag: 200 * MICROSECOND, ..closed() };
    let held = held.seen(IDLE, 1);
    let part = held.length / 6;
    let held = held.machine(|machine| machine.workers[0].run_delay_ns = Some(part));
    says(&held.verdict(), Limit::Connections, "in-flight", &[]);
    // Without receive stamps the generator's lateness is in the service times.
    let unstamped = Scenario { clock: Clock::User, ..held };
    says(&unstamped.verdict(), Limit::Generator, "generator-cpu-taken", &[]);
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
    says(&lost(20), Limit::Generator, "generator-cpu-taken", &["for 25 % of its time"]);
    says(&lost(51), Limit::Server, "server-run-delay", &["for 51 % of its time"]);
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
        let words =
            ["Client and server share CPU 0: a thread of the server could have run for 50 %", "--cpus"];
        says(&waiting(0.1).verdict(), Limit::Generator, "shared-cpu", &words);
        // The neighbour: another process computes on that CPU.
        let words = ["The machine of the server", "which other processes had"];
        says(&waiting(0.3).verdict(), Limit::Server, "server-run-delay", &words);
        // A client on another CPU takes nothing from the server.
        let apart = waiting(0.0).machine(|machine| {
            machine.worker_cpus = Some("1".to_owned());
            machine.workers[0].last_cpu = Some(1);
            let span_ns = machine.span_ns as f64;
            machine.used_by_cpu = [(0, (0.35 * span_ns) as u64), (1, (0.55 * span_ns) as u64)].into();
        });
        says(&apart.verdict(), Limit::Server, "server-run-delay", &["for 50 % of its time and had no CPU."]);
    }
    let lagging = Scenario { lag: 30 * MICROSECOND, ..closed() };
    let third = lagging.length / 3;
    let waiting = |others: f64| {
        on_one_cpu(lagging.clone(), 0.3, 0.6, others)
            .machine(|machine| machine.workers[0].run_delay_ns = Some(third))
    };
    let words = ["Client and server share CPU 0: a client thread could have run for 33 %", "--cpus"];
    let shared = waiting(0.0).summary();
    says(&shared.verdict, Limit::Generator, "shared-cpu", &words);
    let is_server =
        |one: &CauseOfLag| matches!(one.cause, LagCause::CpuTaken { taker: CpuTaker::Servers, .. });
    assert!(shared.trust.causes.iter().any(is_server), "{:?}", shared.trust);
    says(&waiting(0.2).verdict(), Limit::Generator, "generator-cpu-taken", &["by other processes:"]);
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
    says(&with_server_on(0), Limit::Generator, "shared-cpu", &[]);
    says(&with_server_on(1), Limit::Generator, "generator-cpu-taken", &["by other processes:"]);
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
    let words = ["by other agents of this run on the same machine:"];
    says(&agents(0, 1), Limit::Generator, "generator-cpu-taken", &words);
    says(&agents(3, 1), Limit::Generator, "generator-cpu-taken", &["by other processes:"]);
    // Agents elsewhere take nothing here.
    says(&agents(0, 2), Limit::Generator, "generator-cpu-taken", &["by other processes:"]);
}

#[test]
fn a_cpu_that_nobody_is_known_to_have_taken_accuses_nobody() {
    let run = on_one_cpu(Scenario { lag: 30 * MICROSECOND, ..closed() }, 0.3, 0.02, 0.0);
    let part = run.length / 10;
    let run = run.machine(|machine| machine.workers[0].run_delay_ns = Some(2 * part));
    let summary = run.summary();
    let words = ["The generator's CPU was taken away: a client thread", "and who had it is not known"];
    says(&summary.verdict, Limit::Generator, "generator-cpu-taken", &words);
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
    let words =
        ["taken away by the container's limit", "(96.0 ms in all, 80.0 ms of it by the container's limit)"];
    says(&run.verdict(), Limit::Generator, "generator-cpu-taken", &words);
}

#[test]
fn an_open_loop_whose_slots_lag_fills_waits_for_the_generator() {
    // Two slots for 1,000 requests a second of 1.2 ms, of which each is 1 ms late.
    let late = Scenario { connections: 2, service: 1_200 * MICROSECOND, lag: MILLISECOND, ..quiet() };
    let summary = late.clone().seen(IDLE, 1).summary();
    says(&summary.verdict, Limit::Generator, "generator-kept-back", &["others waited behind them"]);
    assert!(!summary.trust.ok, "{:?}", summary.trust);
    // A server near its limit would take longer for each request if they came sooner.
    for run in [late.clone().seen(&[0.85], 1), late] {
        assert_ne!(run.verdict().row, "generator-kept-back", "{}", run.verdict().says);
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
        run.verdict().says
    };
    let says = |cpus: u32, shares: [u64; 3]| judged(cpus, shares, None);
    let full = [50, 50, 50];
    assert!(
        says(1, full).contains("by its own client threads, which are more than its CPUs:"),
        "{}",
        says(1, full)
    );
    assert!(says(2, full).contains("by other processes:"), "each could have had one");
    let calm = says(1, [10, 25, 5]);
    assert!(
        calm.contains("by other processes:"),
        "a thread with 5 % of a CPU takes little from another one: {calm}"
    );
    let alone = judged(1, [10, 25, 5], Some(18));
    assert!(alone.contains("by its own client threads"), "nobody else ran for so long: {alone}");
    let beside = judged(1, [10, 25, 5], Some(60));
    assert!(beside.contains("by other processes:"), "{beside}");
}

#[test]
fn a_busy_thread_is_the_limit_unless_the_server_is_full_too() {
    let busy = |run: Scenario| Scenario { busy_share: 0.97, ..run };
    for run in [busy(closed()), busy(quiet()), busy(quiet()).seen(IDLE, 1)] {
        let words = ["its client thread was busy 97 % of the time", "more threads (-T)"];
        says(&run.verdict(), Limit::Generator, "generator-thread-busy", &words);
    }
    let several = Scenario { threads: 4, ..busy(closed()) }.seen(IDLE, 1);
    let words = ["client thread 1 of 4", "no CPU for another thread"];
    says(&several.verdict(), Limit::Generator, "generator-thread-busy", &words);
    let alone = Scenario { connections: 1, ..busy(closed()) };
    says(&alone.verdict(), Limit::Generator, "generator-thread-busy", &["more connections and threads"]);
    says(&busy(closed()).seen(&[0.97], 1).verdict(), Limit::Server, "server-cpu", &[]);
}

#[test]
fn an_open_loop_that_sends_late_keeps_requests_back() {
    let lagging = Scenario { lag: 30 * MICROSECOND, ..quiet() };
    says(&lagging.verdict(), Limit::Generator, "generator-kept-back", &["lag p50 30.0 us"]);
    let slow = Scenario { lag: 30 * MICROSECOND, service: MILLISECOND, ..quiet() };
    assert_ne!(slow.verdict().limit, Limit::Generator, "30 us of 1 ms are not visible");
    for connections in [1, 10, 100, 1_000] {
        let paused = vec![(SECOND, SECOND / 2)];
        let verdict = Scenario { connections, paused, ..quiet() }.verdict();
        let words = [
            "The generator kept requests back: ",
            " for longer than the median service, lag p50 3.00 us",
            "; its threads had 1 stall (500 ms)",
        ];
        says(&verdict, Limit::Generator, "generator-kept-back", &words);
        let shut = (3 * SECOND, MICROSECOND);
        let verdict = Scenario { connections, paused: vec![(SECOND, SECOND / 2)], shut, ..quiet() }.verdict();
        says(&verdict, Limit::Generator, "generator-kept-back", &[]);
    }
}

#[test]
fn waking_up_is_no_limit() {
    says(&Scenario { reaction: MILLISECOND, ..quiet() }.verdict(), Limit::None, "none", &[]);
}

#[test]
fn a_closed_loop_that_stood_still_accuses_the_generator() {
    let paused = vec![(SECOND / 20, SECOND / 20)];
    let verdict = Scenario { paused, ..closed() }.verdict();
    says(&verdict, Limit::Generator, "generator-stood-still", &["stood still for 50.0 ms in 1 turn"]);
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
    says(&slow.seen(IDLE, 1).verdict(), Limit::Connections, "in-flight", &["4 requests"]);
    let quick = Scenario { paused, connections: 4, length: 4 * SECOND, ..closed() };
    says(&quick.verdict(), Limit::Generator, "generator-stood-still", &["what took them away is not known"]);
}

#[test]
fn who_took_the_time_of_a_closed_loop_that_stood_still_is_said_where_it_is_known() {
    let paused = vec![(SECOND / 20, SECOND / 20)];
    let run = Scenario { paused, ..closed() }.seen(IDLE, 1);
    // The server lost more, so that the CPU of the generator alone is not the limit.
    let part = run.length / 100;
    let run = run.machine(|machine| machine.workers[0].run_delay_ns = Some(20 * part));
    let run = run.server(|server| server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(21 * part));
    let words = ["stood still for 50.0 ms in 1 turn, and other processes took a CPU away for 40.0 ms."];
    says(&run.verdict(), Limit::Generator, "generator-stood-still", &words);
}

#[test]
fn requests_and_connections_of_others_are_counted() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let ours = run.measurement().ops().all().counts.requests();
        let others = |count: u64| run.clone().reading(|reading| reading.counts.requests = Some(ours + count));
        let words = ["Other clients used the server too", "besides our"];
        says(&others(ours / 50).verdict(), Limit::Others, "others", &words);
        assert_ne!(others(ours / 200).verdict().limit, Limit::Others);
        let came = run.clone().reading(|reading| reading.counts.connections_opened = Some(5));
        says(&came.verdict(), Limit::Others, "others", &["5 new connections that are not ours"]);
        let unknown = run.clone().reading(|reading| {
            reading.counts.connections_opened = Some(5);
            reading.our_requests = None;
        });
        let verdict = unknown.verdict();
        says(&verdict, Limit::Others, "others", &["too: 5 new connections that are not ours"]);
        assert!(!verdict.says.contains("besides our"), "{}", verdict.says);
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
    says(&with(6), Limit::Others, "others", &["at least 10 new connections that are not ours"]);
    says(&with(0), Limit::Others, "others", &["and 16 new connections that are not ours"]);
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
    let words =
        ["started anew during the run: at the end it had been up for 2 s, 4.0 s after the first look"];
    says(&lost(true, false), Limit::Server, "server-restarted", &words);
    says(&lost(false, false), Limit::Workload, "lost-records", &["1,000 evictions"]);
    assert_eq!(lost(false, true).limit, Limit::None, "counters that were set to 0 are no new start");
}

#[test]
fn a_server_that_refuses_connections_is_named() {
    for run in [quiet().seen(IDLE, 1), closed().seen(IDLE, 1)] {
        let shut = (run.length / 2, MICROSECOND);
        let run = Scenario { shut, ..run }.reading(|reading| reading.counts.connections_refused = Some(12));
        let words = ["The server's limit of connections (it takes 1,024): the server refused 12 connections"];
        says(&run.verdict(), Limit::Server, "server-connections", &words);
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
    let words = ["the full queue of its listening socket turned away 40 attempts, and 10 of ours failed"];
    says(&own.verdict(), Limit::Server, "server-connections", &words);
    // Where the server's own sockets cannot be seen, an attempt of the run has to have met such a queue.
    assert_ne!(run.verdict().row, "server-connections");
    let mut measurement = run.measurement();
    measurement.connections.turned_away = 1;
    let (plan, all) = (run.plan(), measurement.ops().all());
    let verdict = Verdict::of(&Case::of(&measurement, &plan, &all));
    let words =
        ["The machine of the server: full queues", "597 attempts, and 1 of ours was refused or reset"];
    says(&verdict, Limit::Server, "server-connections", &words);
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
        let words =
            ["The local ports of the generator: 880 of", "attempts to connect found none free. --linger 0"];
        says(&verdict(880), Limit::Generator, "ports", &words);
        assert_ne!(verdict(0).row, "ports", "attempts that failed for other reasons");
    }
}

#[test]
fn a_closed_loop_counts_what_was_in_flight() {
    let mut plan = closed().plan();
    plan.groups[0].clients *= 10;
    let run = closed().seen(IDLE, 1);
    let (measurement, all) = (run.measurement(), run.measurement().ops().all());
    let says = Verdict::of(&Case::of(&measurement, &plan, &all)).says;
    assert!(says.contains(" requests on average, of 1") && says.contains("that may be"), "{says}");
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
        let sentence = "The server's limit of connections: the server refused 40 connections, and 10 of ours";
        says(&verdict, Limit::Server, "server-connections", &[sentence]);
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
    let sentence = "The server's limit of connections (it takes 40): the server refused 405 connections, and 405 of ours";
    says(&verdict, Limit::Server, "server-connections", &[sentence]);
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
        let words = ["was gone for a time: every connection was lost, attempts to connect were turned away"];
        says(&verdict(10, 24, 10, 0), Limit::Server, "server-restarted", &words);
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
        says(
            &verdict,
            Limit::Network,
            "network-bandwidth",
            &["The network: eth0 carried 94 % of what it can"],
        );
        let verdict = carded(run.clone(), 1_000, Some(7)).verdict();
        says(&verdict, Limit::Network, "network-bandwidth", &["7 packets of eth0 went beyond"]);
        assert_ne!(carded(run.clone(), 1_000, Some(0)).verdict().row, "network-bandwidth");
        // A virtual card says a speed that is not its own.
        let virtual_card = carded(run, 2 * full, None).verdict();
        assert_ne!(virtual_card.row, "network-bandwidth");
        assert!(virtual_card.evidence.iter().all(|seen| !seen.says.contains("eth0")), "{virtual_card:?}");
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
        says(
            &lossy.verdict(),
            Limit::Network,
            "network-loss",
            &["The network lost packets", "did not arrive, and p99.9"],
        );
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
        says(&timed_out(1).verdict(), Limit::Network, "network-loss", &["were sent again, and p99.9"]);
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
        let words = ["did not read as fast as was sent", "20 %"];
        says(&limited(true).verdict(), Limit::Server, "server-receive-window", &words);
        says(
            &limited(false).verdict(),
            Limit::Generator,
            "generator-send-buffer",
            &["--send-buffer", "20 %"],
        );
    }
}

#[test]
fn one_hot_thread_of_four_is_told_from_four() {
    for run in [quiet(), closed()] {
        let one = run.clone().seen(&[0.97, 0.3, 0.2, 0.1, 0.0, 0.0], 4);
        let words = [
            "One of the 4 threads of the server: it used 97 % of a CPU, the others 20 %",
            "more connections",
        ];
        says(&one.verdict(), Limit::Server, "server-one-thread", &words);
        let all = run.clone().seen(&[0.97, 0.95, 0.94, 0.93, 0.0, 0.0], 4);
        let words = ["the busiest of its 4 serving threads used 97 % of a CPU, the others 94 %"];
        says(&all.verdict(), Limit::Server, "server-cpu", &words);
        // Of a server on another machine only the mean is known.
        let remote = run.seen(&[0.95; 4], 4).server(|server| server.threads = None);
        says(&remote.verdict(), Limit::Server, "server-cpu", &["4 serving threads used 95 % of a CPU each"]);
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
        let words = ["it used 88 % of a CPU and waited for it 10 %, the others 20 %"];
        let one = delayed(&[0.88, 0.3, 0.2, 0.1], 4);
        says(&one.verdict(), Limit::Server, "server-one-thread", &words);
        let words = ["its one serving thread used 88 % of a CPU and waited for it 10 %"];
        says(&delayed(&[0.88], 1).verdict(), Limit::Server, "server-cpu", &words);
        says(&delayed(&[0.75], 1).verdict(), Limit::Server, "server-run-delay", &["for 10 % of its time"]);
    }
}

#[test]
fn a_thread_that_has_a_tenth_of_its_time_left_is_not_full() {
    let run = closed();
    let part = run.length / 25;
    let near = run.seen(&[0.87], 1).server(|server| {
        server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(part);
    });
    says(&near.verdict(), Limit::Connections, "closed-loop", &["busiest thread used 87 % of a CPU"]);
}

#[test]
fn a_full_server_that_reads_late_is_named_for_its_cpu() {
    for run in [quiet(), closed()] {
        let late = run.seen(&[0.97], 1).machine(|machine| {
            let tcp = machine.connections.as_mut().expect("read");
            tcp.rwnd_limited_ns = tcp.busy_ns / 5;
        });
        says(&late.verdict(), Limit::Server, "server-cpu", &["used 97 % of a CPU"]);
    }
}

#[test]
fn too_few_connections_are_the_limit_where_the_server_has_time() {
    let few = Scenario { connections: 2, service: 5 * MILLISECOND, ..quiet() };
    let words =
        ["waited", "for a free slot", "of 2 were taken (2 connections, depth 1)", "20 %", "more connections"];
    says(&few.clone().seen(IDLE, 1).verdict(), Limit::Connections, "slots", &words);
    let words =
        ["The server or the number of connections (2), by exclusion", "The server's CPU is not known"];
    says(&few.verdict(), Limit::Server, "waits-by-exclusion", &words);
}

#[test]
fn a_server_that_waits_for_its_cpu_has_no_time_for_more_connections() {
    // Two serving threads on one CPU: each has it for 40 % of the time, and waits for it for 45 %.
    let few = Scenario { connections: 2, service: 5 * MILLISECOND, ..quiet() };
    let part = few.length * 45 / 100;
    let waiting = few.seen(&[0.4, 0.4], 2).server(|server| {
        server.threads.iter_mut().flatten().for_each(|thread| thread.run_delay_ns = Some(part));
    });
    says(&waiting.verdict(), Limit::Server, "server-run-delay", &["for 45 % of its time and had no CPU"]);
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
        says(&run.verdict(), Limit::None, "none", &[]);
    }
}

#[test]
fn a_closed_loop_without_evidence_is_judged_by_exclusion() {
    let words =
        ["The server or the path to it, by exclusion", "93 % of their time", "busy 40 %", "CPU is not known"];
    says(&closed().verdict(), Limit::Server, "service-by-exclusion", &words);
    let refused = closed().seen(IDLE, 1).server(|server| {
        (server.reading, server.threads) = (None, None);
        server.unread = Some("it answered `stats` with ERROR".to_owned());
    });
    let words = ["The server's CPU is not known: it answered `stats` with ERROR."];
    says(&refused.verdict(), Limit::Server, "service-by-exclusion", &words);
    let lagging = Scenario { lag: 40 * MICROSECOND, ..closed() };
    says(&lagging.verdict(), Limit::Connections, "closed-loop", &["What is in flight: 10 requests"]);
}

#[test]
fn a_server_that_waits_for_a_cpu_is_named() {
    for run in [quiet(), closed()] {
        let part = run.length / 4;
        let waiting = run.seen(&[0.7], 1).server(|server| {
            server.threads.as_mut().expect("seen")[0].run_delay_ns = Some(part);
        });
        let words = ["The machine of the server", "for 25 % of its time and had no CPU"];
        says(&waiting.verdict(), Limit::Server, "server-run-delay", &words);
    }
}

#[test]
fn a_server_that_does_not_hold_the_records_is_the_workload() {
    let full = quiet().seen(IDLE, 1).reading(|reading| {
        reading.counts.evictions = Some(812);
        reading.counts.out_of_memory = Some(3);
    });
    let words = ["The records: the server does not hold them all (812 evictions, 3 stores without memory)"];
    says(&full.verdict(), Limit::Workload, "lost-records", &words);
    for (software, option) in [("memcached", "(memcached -m)"), ("redis", "(maxmemory of redis)")] {
        let run = full.clone().reading(|reading| reading.software = software.to_owned());
        says(&run.verdict(), Limit::Workload, "lost-records", &[option]);
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
    let words = ["The records: 5 % of the keys were not found, though all 10,000 records were stored before"];
    says(&judged(10_000, 200, &|_| {}), Limit::Workload, "lost-records", &words);
    says(&judged(10_000, 3, &|_| {}), Limit::None, "none", &[]);
    says(&judged(9_999, 200, &|_| {}), Limit::None, "none", &[]);
    let deletes = |plan: &mut Plan| with_mix(plan, |mix| mix.ops.push((Verb::Delete, 1.0)));
    says(&judged(10_000, 200, &deletes), Limit::None, "none", &[]);
    let expires = |plan: &mut Plan| plan.data.expiry_s = Dist::Fixed(60.0);
    says(&judged(10_000, 200, &expires), Limit::None, "none", &[]);
    let unstored = |plan: &mut Plan| drop(plan.phases.remove(0));
    says(&judged(10_000, 200, &unstored), Limit::None, "none", &[]);
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
    let words = "The records: 5 % of the keys were not in the server when the run began (keys 21 bytes, prefix 'z:').";
    says(&judged_unloaded(&|_| {}, &|_| {}), Limit::Workload, "lost-records", &[words]);
    let others = judged_unloaded(&|reading| reading.usual_record = Some(true), &|_| {});
    let words = "'z:'); it holds a record with the key of the usual settings (keys 30 bytes, no prefix).";
    says(&others, Limit::Workload, "lost-records", &[words]);
    // Where something else may have taken them away, that is not claimed.
    let evicted = judged_unloaded(&|reading| reading.counts.evictions = Some(7), &|_| {});
    says(&evicted, Limit::Workload, "lost-records", &["does not hold them all (7 evictions"]);
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
        says(&verdict, Limit::None, "none", &[]);
    }
}

#[test]
fn keys_that_the_load_itself_took_away_or_never_stored_are_no_lost_records() {
    let churns = |plan: &mut Plan| with_mix(plan, |mix| mix.churn = Some(KeyChurn::usual()));
    says(&judged(10_000, 200, &churns), Limit::None, "none", &[]);
    let with_event = |what: EventKind| {
        judged(10_000, 200, &|plan| plan.changes.events = vec![Event { at_ns: SECOND, what: what.clone() }])
    };
    let range = RankRange { first: 0, last: 99 };
    let hot = |key| EventKind::Hot(FlashCrowd { key, share: 0.3, rise_ns: 0, hold_ns: SECOND, fall_ns: 0 });
    for what in [EventKind::Delete(range), EventKind::Expire(range), hot(HotKey::New)] {
        says(&with_event(what), Limit::None, "none", &[]);
    }
    // A hot key that is one of the records was stored as they were.
    says(&with_event(hot(HotKey::Rank(7))), Limit::Workload, "lost-records", &[]);
    let with_part = |change: &dyn Fn(&mut Part)| {
        judged(10_000, 200, &|plan| {
            let mut part = Part::plain("second".to_owned(), SECOND);
            change(&mut part);
            plan.changes.parts = vec![Part::plain("first".to_owned(), 0), part];
        })
    };
    says(&with_part(&|_| {}), Limit::Workload, "lost-records", &[]);
    let deletes = |part: &mut Part| part.ops = Some(vec![(Verb::Get, 9.0), (Verb::Delete, 1.0)]);
    says(&with_part(&deletes), Limit::None, "none", &[]);
    let churns = |part: &mut Part| part.churn = Some(KeyChurn::usual());
    says(&with_part(&churns), Limit::None, "none", &[]);
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
    let has_card = |verdict: &Verdict| verdict.evidence.iter().any(|seen| seen.says.contains("eth0"));
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
    let words = ["The network path: opening a connection takes 1.90 ms (p50), a request 2.00 ms"];
    says(&far.clone().seen(IDLE, 1).verdict(), Limit::Network, "way", &words);
    says(&Scenario { connect: MILLISECOND, ..far }.seen(IDLE, 1).verdict(), Limit::None, "none", &[]);
    let here =
        Scenario { connections: 100, service: 2 * MILLISECOND, connect: 1_900 * MICROSECOND, ..quiet() };
    says(&here.seen(IDLE, 1).verdict(), Limit::None, "none", &[]);
}

#[test]
fn a_server_that_froze_is_accused_and_the_generator_is_not() {
    let frozen = Scenario { frozen: (SECOND, SECOND), ..quiet() };
    for run in [frozen.clone().seen(IDLE, 1), frozen.clone()] {
        let words = ["The server stood still at times: a request took it up to 99", "Requests waited"];
        says(&run.verdict(), Limit::Server, "server-bursts", &words);
    }
    let forked = frozen.clone().seen(IDLE, 1).reading(|reading| {
        reading.disturbances = vec!["snapshot (fork 12.3 ms)".to_owned(), "memory defragmented".to_owned()];
    });
    let words = ["The server says of that time: memory defragmented; snapshot (fork 12.3 ms)."];
    says(&forked.verdict(), Limit::Server, "server-bursts", &words);
    let timed_out = Scenario { timeout: 200 * MILLISECOND, ..frozen.clone() };
    says(&timed_out.verdict(), Limit::Server, "server-bursts", &["took it up to more than 200 ms"]);
    // Trust says what lag is part of the median; the waiting is the server's all the same.
    let late = Scenario { lag: 60 * MICROSECOND, ..frozen };
    says(&late.verdict(), Limit::Server, "server-bursts", &[]);
    assert!(!late.summary().trust.ok);
}

#[test]
fn connections_that_were_not_there_are_not_the_generators_fault() {
    // The lag is larger than the service, so that of the two it would have made the wait.
    let shut = Scenario { shut: (SECOND, SECOND), lag: 60 * MICROSECOND, ..quiet() };
    let words = ["by exclusion", "(10 connections were lost, 0 attempts to open one failed)"];
    says(&shut.verdict(), Limit::Server, "waits-by-exclusion", &words);
}

#[test]
fn requests_without_an_answer_are_not_the_generators_fault() {
    // Enough connections that nothing waits.
    let frozen =
        Scenario { connections: 1_000, frozen: (SECOND, SECOND), timeout: 20 * MILLISECOND, ..quiet() };
    let words = ["The server or the path to it, by exclusion", "% of the requests got no answer"];
    says(&frozen.verdict(), Limit::Server, "unanswered", &words);
    // Requests wait for connections whose requests time out: what made them wait got no answer.
    let crowded =
        Scenario { connections: 10, timeout: 100 * MILLISECOND, frozen: (SECOND, 100 * SECOND), ..frozen };
    says(&crowded.verdict(), Limit::Server, "unanswered", &words);
}

#[test]
fn requests_that_leave_late_are_held_up_by_the_generators_kernel() {
    let shaped = Scenario { service: 400 * MICROSECOND, out: Some(90 * MICROSECOND), ..quiet() };
    let words = ["the machine 90.", "22 % of their service time"];
    for run in [shaped.clone(), shaped.clone().seen(IDLE, 1)] {
        says(&run.verdict(), Limit::Generator, "generator-out", &words);
    }
    let seen = |run: &Scenario| run.verdict().evidence.iter().any(|one| one.says.starts_with("way out of"));
    assert!(seen(&shaped) && !seen(&quiet()));
    // A way out that is short, or a small part, is no limit; a full server is the limit of a closed loop.
    let short = Scenario { out: Some(15 * MICROSECOND), ..quiet() };
    let small = Scenario { service: 900 * MICROSECOND, ..shaped.clone() };
    for run in [short, small] {
        says(&run.seen(IDLE, 1).verdict(), Limit::None, "none", &[]);
    }
    let full = Scenario { out: Some(90 * MICROSECOND), ..full_server(1, 460 * MICROSECOND, 0.6) };
    says(&full.verdict(), Limit::Server, "server-cpu", &[]);
    let lagging = Scenario { lag: 300 * MICROSECOND, ..shaped };
    says(&lagging.verdict(), Limit::Generator, "generator-kept-back", &[]);
}

#[test]
fn evidence_is_listed_with_the_bound_of_each_figure() {
    let verdict = closed().seen(&[0.97], 1).verdict();
    let server =
        verdict.evidence.iter().find(|seen| seen.says.starts_with("busiest serving thread")).expect("seen");
    assert_eq!((server.source, server.limit), ("server", Some(0.9)));
    assert!(
        (server.value - 0.97).abs() < 1e-6 && server.says.ends_with("of 127.0.0.1:11211 97 %"),
        "{server:?}"
    );
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
