//! Requests that were due and never sent: counted as they would have been asked, at a bounded cost, however many they
//! are.

use pummel_logic::arrival::{Pace, Passed, Schedule};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, Gap};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{NEVER, SECOND};
use pummel_logic::unsent::{DRAWS_MAX, calls_of_waiting, draws_of_client, draws_to_mark, pass_drawn};
use pummel_logic::workload::sequence::Draws;

const HOUR_NS: u64 = 3_600 * SECOND;

fn schedule(arrivals: &Arrivals, rate: f64, client: u64, clients: u64) -> Schedule {
    let place = StreamOwner { seed: 1, group: 0, phase: 0, client };
    Pace::new(arrivals, rate, clients).schedule(place)
}

fn drawn() -> [Arrivals; 3] {
    [
        Arrivals::Poisson,
        Arrivals::Shape(Dist::Uniform { low: 1.0, high: 2.0 }),
        Arrivals::Shape(Dist::Normal { mean: 1.0, sd: 2.0 }),
    ]
}

#[test]
fn a_schedule_passes_over_what_it_would_have_asked() {
    for arrivals in drawn().into_iter().chain([Arrivals::Constant]) {
        for rate in [0.5, 3.0, 999.7, 1e6] {
            for (client, clients, asked) in [(0, 1, 0), (2, 3, 0), (12, 13, 5)] {
                let until = (3_000.0 / rate * SECOND as f64) as u64;
                let mut one_by_one = schedule(&arrivals, rate, client, clients);
                for _ in 0..asked {
                    one_by_one.next();
                }
                let mut at_once = one_by_one.clone();
                let mut requests = 0;
                while one_by_one.peek() < until {
                    one_by_one.next();
                    requests += 1;
                }
                let passed = at_once.pass(until, u64::MAX, DRAWS_MAX);
                assert_eq!(passed, Passed::exactly(requests), "{arrivals:?} at {rate}");
                assert_eq!(
                    (at_once.number(), at_once.peek()),
                    (one_by_one.number(), one_by_one.peek()),
                    "it goes on where the other does"
                );
                assert_eq!(at_once.pass(until, u64::MAX, DRAWS_MAX), Passed::default());
            }
        }
    }
}

#[test]
fn no_more_is_passed_over_than_is_to_be_asked() {
    for arrivals in drawn().into_iter().chain([Arrivals::Constant]) {
        let mut schedule = schedule(&arrivals, 1e9, 0, 1);
        assert_eq!(schedule.pass(HOUR_NS, 10, DRAWS_MAX), Passed::exactly(10));
        assert_eq!(schedule.number(), 10);
        assert_eq!(schedule.pass(HOUR_NS, 100, 40).requests, 100);
        assert_eq!(schedule.number(), 110);
    }
}

#[test]
fn constant_arrivals_far_out_of_reach_are_counted_by_arithmetic() {
    for clients in [1, 7, 50] {
        let of = |client| schedule(&Arrivals::Constant, 1e12, client, clients).pass(HOUR_NS, u64::MAX, 1);
        let all: u64 = (0..clients).map(|client| of(client).requests).sum();
        assert_eq!(all, 3_600 * 1_000_000_000_000);
        assert!((0..clients).all(|client| of(client).estimated == 0));
    }
    let mut seldom = schedule(&Arrivals::Constant, 1e-6, 0, 1);
    assert_eq!(seldom.pass(NEVER, u64::MAX, 1).requests, 18_447, "one in 11 days and a half, in 584 years");
}

#[test]
fn drawn_arrivals_far_out_of_reach_are_estimated_from_their_mean() {
    for arrivals in drawn() {
        let mut schedule = schedule(&arrivals, 1e12, 3, 50);
        let passed = schedule.pass(HOUR_NS, u64::MAX, 10_000);
        let expected = 3_600e12 / 50.0;
        assert_eq!(passed.requests - passed.estimated, 10_000);
        assert!((passed.requests as f64 / expected - 1.0).abs() < 1e-9, "{arrivals:?}: {passed:?}");
        assert!(schedule.peek() >= HOUR_NS, "it goes on behind what was passed over");
        assert_eq!(schedule.number(), passed.requests);
    }
}

#[test]
fn a_schedule_that_is_told_passes_over_nothing() {
    assert_eq!(Schedule::set_by_caller().pass(NEVER, u64::MAX, u64::MAX), Passed::default());
    assert_eq!(Schedule::never().pass(HOUR_NS, u64::MAX, u64::MAX), Passed::default());
}

#[test]
fn clients_share_out_the_draws_of_a_plan() {
    assert_eq!([0, 1, 50, 1 << 18, u64::MAX].map(draws_of_client), [DRAWS_MAX, DRAWS_MAX, 5_242, 1, 1]);
}

#[test]
fn gaps_of_clients_that_come_are_passed_over_as_they_would_be_drawn() {
    let gaps = [Gap::Fixed(0.003), Gap::Uniform(0.001, 0.004), Gap::Exponential(0.002), Gap::Rising(0.5)];
    for gap in gaps {
        let (mut one_by_one, mut clients, mut due) = (Draws::new(gap, 3), 0, 2 * SECOND);
        loop {
            due += one_by_one.draw_ns();
            if due >= 9 * SECOND {
                break;
            }
            clients += 1;
        }
        let passed = pass_drawn(&mut Draws::new(gap, 3), 2 * SECOND, 9 * SECOND, u64::MAX, DRAWS_MAX);
        assert_eq!(passed, Passed::exactly(clients), "{gap:?}");
    }
}

#[test]
fn clients_that_come_far_out_of_reach_are_counted_from_their_mean_gap() {
    let pass = |gap| pass_drawn(&mut Draws::new(gap, 0), 0, HOUR_NS, u64::MAX, 1_000);
    assert_eq!(pass(Gap::Fixed(1e-9)), Passed::exactly(HOUR_NS - 1));
    for gap in [Gap::Fixed(1e-12), Gap::Fixed(0.0), Gap::Uniform(0.0, 1e-12), Gap::Exponential(1e-9)] {
        let passed = pass(gap);
        assert!(passed.requests > 3_000_000_000_000 && passed.estimated > 0, "{gap:?}: {passed:?}");
        let few = pass_drawn(&mut Draws::new(gap, 0), 0, HOUR_NS, 5_000, 1_000);
        assert_eq!(few.requests, 5_000, "{gap:?}: no more come than are to come");
    }
}

/// The requests of the clients that come until an hour is over, where a number of workers share them out among them and
/// each worker's first client waits.
fn waiting(rate: f64, turns: u64, calls: u64, requests: u64) -> u64 {
    let last = if requests == u64::MAX { u64::MAX } else { requests.div_ceil(calls) };
    let of = |turn: u64| {
        let mut schedule = schedule(&Arrivals::Poisson, rate, 0, 1);
        for _ in 0..=turn {
            schedule.next();
        }
        let after = schedule.pass(HOUR_NS, last - (turn + 1), draws_to_mark(turn + 1));
        calls_of_waiting(turn, after, turns, calls, requests).requests
    };
    (0..turns).map(of).sum()
}

#[test]
fn waiting_clients_are_as_many_for_any_number_of_workers() {
    for (rate, requests) in [(1.0, u64::MAX), (1e9, u64::MAX), (1.0, 1_003), (1e9, 999_999_999_999)] {
        let single = waiting(rate, 1, 10, requests);
        assert!(single == requests || requests == u64::MAX, "{single} at {rate}");
        for turns in [2, 3, 8] {
            assert_eq!(waiting(rate, turns, 10, requests), single, "{turns} workers at {rate}");
        }
    }
}

#[test]
fn of_waiting_clients_the_last_makes_what_is_left() {
    let of = |number, after, turns| {
        calls_of_waiting(number, Passed { requests: after, estimated: after / 2 }, turns, 10, 95)
    };
    assert_eq!(of(0, 9, 1), Passed { requests: 95, estimated: 35 });
    assert_eq!(of(9, 0, 1), Passed::exactly(5));
    assert_eq!((of(0, 9, 2).requests, of(1, 8, 2).requests), (50, 45));
}
