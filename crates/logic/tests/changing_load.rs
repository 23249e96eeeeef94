//! Due times of requests under a rate that changes: counts against the integral of the rate, bursts against their
//! formulas.

use std::sync::Arc;

use pummel_logic::arrival::{Pace, Passed, RateCurve, Schedule};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, Burst, BurstSources, BurstStates, Day, RatePoint, RateShape, Sine};
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND, seconds};
use pummel_logic::unsent::DRAWS_MAX;

fn points(points: &[(u64, f64)]) -> RateShape {
    RateShape::Points(points.iter().map(|&(at_s, rate)| RatePoint { at_ns: at_s * SECOND, rate }).collect())
}

/// A shape of each kind, with stages that jump and one without any request.
fn shapes() -> [(&'static str, RateShape); 5] {
    [
        ("ramp", points(&[(0, 100.0), (20, 3_000.0)])),
        ("ramp down", points(&[(0, 3_000.0), (20, 0.0)])),
        (
            "stages",
            points(&[(0, 1_000.0), (5, 2_000.0), (5, 0.0), (8, 0.0), (8, 500.0), (10, 500.0), (20, 4_000.0)]),
        ),
        (
            "sine",
            RateShape::Sine(Sine { mean: 1_000.0, amplitude: 900.0, period_ns: 7 * SECOND, start: 0.3 }),
        ),
        ("day", RateShape::Day(Day { mean: 1_500.0, period_ns: 13 * SECOND })),
    ]
}

fn schedule(arrivals: &Arrivals, curve: &Arc<RateCurve>, client: u64, clients: u64) -> Schedule {
    let place = StreamOwner { seed: 5, group: 0, phase: 1, client };
    Pace::along(arrivals, Arc::clone(curve), clients).schedule(place)
}

/// The due times of all clients before `until_ns`, in ascending order.
fn due_times(arrivals: &Arrivals, curve: &Arc<RateCurve>, clients: u64, until_ns: Nanos) -> Vec<Nanos> {
    let mut all = Vec::new();
    for client in 0..clients {
        let mut schedule = schedule(arrivals, curve, client, clients);
        let mut last = 0;
        while schedule.peek() < until_ns {
            assert!(schedule.peek() >= last, "due times ascend");
            last = schedule.next();
            all.push(last);
        }
    }
    all.sort_unstable();
    all
}

/// The number of times in each window.
fn counts(times: &[Nanos], window_ns: Nanos, windows: usize) -> Vec<u64> {
    let mut counts = vec![0; windows];
    for at in times {
        counts[(at / window_ns) as usize] += 1;
    }
    counts
}

#[test]
fn constant_arrivals_are_as_many_as_the_integral_of_the_rate_says() {
    for (name, shape) in shapes() {
        let curve = Arc::new(RateCurve::of(&shape));
        for clients in [1, 7] {
            let times = due_times(&Arrivals::Constant, &curve, clients, 20 * SECOND);
            for (window, count) in counts(&times, SECOND, 20).into_iter().enumerate() {
                let (from, to) = (window as u64 * SECOND, (window as u64 + 1) * SECOND);
                let before = |at_ns| curve.requests_before(at_ns).ceil();
                let expected = before(to) - before(from);
                assert!(
                    (count as f64 - expected).abs() <= 1.0,
                    "{name}, {clients}, {window}: {count} of {expected}"
                );
            }
            let all = curve.requests_before(20 * SECOND).ceil();
            assert!((times.len() as f64 - all).abs() <= 1.0, "{name}: {} of {all}", times.len());
        }
    }
}

#[test]
fn a_request_is_due_where_the_integral_reaches_its_number() {
    for (name, shape) in shapes() {
        let curve = Arc::new(RateCurve::of(&shape));
        let mut schedule = schedule(&Arrivals::Constant, &curve, 0, 1);
        while schedule.peek() < 20 * SECOND {
            let (number, due_ns) = (schedule.number(), schedule.next());
            let (at, behind) = (curve.requests_before(due_ns), curve.requests_before(due_ns + 1));
            let fits = at <= number as f64 + 1e-6 && behind >= number as f64 - 1e-6;
            assert!(
                fits,
                "{name}: request {number} is due at {due_ns}, where the integral is {at} to {behind}"
            );
        }
    }
}

#[test]
fn drawn_arrivals_are_as_many_as_the_integral_of_the_rate_says() {
    let shape = Arrivals::Shape(Dist::Uniform { low: 0.0, high: 2.0 });
    for (name, of) in shapes() {
        let curve = Arc::new(RateCurve::of(&of));
        for arrivals in [Arrivals::Poisson, shape.clone()] {
            let times = due_times(&arrivals, &curve, 5, 20 * SECOND);
            for (window, count) in counts(&times, SECOND, 20).into_iter().enumerate() {
                let (from, to) = (window as u64 * SECOND, (window as u64 + 1) * SECOND);
                let expected = curve.requests_before(to) - curve.requests_before(from);
                let limit = 5.0 * expected.sqrt() + 1e-9;
                assert!((count as f64 - expected).abs() <= limit, "{name}, {window}: {count} of {expected}");
            }
        }
    }
}

#[test]
fn nothing_is_due_while_the_rate_is_0_and_never_again_where_it_stays_0() {
    let curve = Arc::new(RateCurve::of(&points(&[(0, 0.0), (3, 0.0), (3, 10.0), (5, 10.0), (5, 0.0)])));
    let mut all = schedule(&Arrivals::Constant, &curve, 0, 1);
    let times: Vec<Nanos> = (0..20).map(|_| all.next()).collect();
    let expected: Vec<Nanos> = (0..20).map(|i| 3 * SECOND + i * 100 * MILLISECOND).collect();
    assert_eq!(times, expected);
    assert_eq!((all.peek(), all.next(), all.peek()), (NEVER, NEVER, NEVER));
    let mut drawn = schedule(&Arrivals::Poisson, &curve, 0, 1);
    let count = (0..1_000).filter(|_| drawn.next() != NEVER).count();
    assert!((5..50).contains(&count), "{count} of some 20");
}

#[test]
fn a_rate_that_stays_is_the_same_by_a_curve() {
    let curve = Arc::new(RateCurve::constant(999.7));
    for client in 0..3 {
        let place = StreamOwner { seed: 5, group: 0, phase: 1, client };
        let mut plain = Pace::new(&Arrivals::Constant, 999.7, 3).schedule(place);
        let mut curved = schedule(&Arrivals::Constant, &curve, client, 3);
        for _ in 0..10_000 {
            assert!(plain.next().abs_diff(curved.next()) <= 1);
        }
        let mut plain = Pace::new(&Arrivals::Poisson, 999.7, 3).schedule(place);
        let mut curved = schedule(&Arrivals::Poisson, &curve, client, 3);
        for _ in 0..10_000 {
            assert!(plain.next().abs_diff(curved.next()) <= 1);
        }
    }
}

#[test]
fn a_schedule_passes_over_what_it_would_have_asked() {
    let uniform = Arrivals::Shape(Dist::Uniform { low: 1.0, high: 2.0 });
    for (name, shape) in shapes() {
        let curve = Arc::new(RateCurve::of(&shape));
        for arrivals in [Arrivals::Constant, Arrivals::Poisson, uniform.clone()] {
            for (client, clients, asked) in [(0, 1, 0), (2, 3, 0), (12, 13, 5)] {
                for until in [1, SECOND, 6 * SECOND, 15 * SECOND, 19_999_999_999] {
                    let mut one_by_one = schedule(&arrivals, &curve, client, clients);
                    (0..asked).for_each(|_| _ = one_by_one.next());
                    let mut at_once = one_by_one.clone();
                    let mut requests = 0;
                    while one_by_one.peek() < until {
                        one_by_one.next();
                        requests += 1;
                    }
                    let passed = at_once.pass(until, u64::MAX, DRAWS_MAX);
                    assert_eq!(passed, Passed::exactly(requests), "{name}, {arrivals:?}, {until}");
                    let ends = [at_once, one_by_one].map(|end| (end.number(), end.peek()));
                    assert_eq!(ends[0], ends[1], "{name}, {arrivals:?}: it goes on where the other does");
                }
            }
        }
    }
}

#[test]
fn requests_far_out_of_reach_are_estimated_from_the_integral() {
    let curve = Arc::new(RateCurve::of(&points(&[(0, 0.0), (100, 2e9)])));
    let mut constant = schedule(&Arrivals::Constant, &curve, 3, 10);
    assert_eq!(constant.pass(100 * SECOND, u64::MAX, 1), Passed::exactly(10_000_000_000));
    let mut drawn = schedule(&Arrivals::Poisson, &curve, 3, 10);
    let passed = drawn.pass(100 * SECOND, u64::MAX, 1_000);
    assert_eq!(passed.requests - passed.estimated, 1_000);
    assert!(passed.requests.abs_diff(10_000_000_000) < 1_000_000, "{passed:?}");
    assert!(drawn.peek() >= 100 * SECOND && drawn.peek() < 101 * SECOND, "{}", drawn.peek());
    // No more than is to be asked.
    assert_eq!(schedule(&Arrivals::Poisson, &curve, 3, 10).pass(100 * SECOND, 1_200, 1_000).requests, 1_200);
}

#[test]
fn the_day_has_the_swing_of_the_paper_and_the_mean_that_was_asked() {
    let day = RateCurve::of(&RateShape::Day(Day { mean: 1_000.0, period_ns: 24 * SECOND }));
    assert!((day.requests_before(24 * SECOND) - 24_000.0).abs() < 1e-6);
    let (least, most) = day.range_until(NEVER);
    // 39.5k to 60.3k requests per second.
    assert!((most / least - 1.53).abs() < 0.005, "{least} to {most}");
    assert!((most / 1_000.0 - 1.16).abs() < 0.01, "{most}");
    assert_eq!(day.rate_at(5 * SECOND), day.rate_at(29 * SECOND));
}

#[test]
fn the_pieces_of_a_sine_are_within_a_hundredth_of_a_percent_of_it() {
    let sine = Sine { mean: 100.0, amplitude: 60.0, period_ns: 10 * SECOND, start: 0.25 };
    let curve = RateCurve::of(&RateShape::Sine(sine));
    for step in 0..10_000 {
        let at_ns = step * 3 * MILLISECOND;
        let exact = 100.0 + 60.0 * libm::sin(core::f64::consts::TAU * (seconds(at_ns) / 10.0 + 0.25));
        assert!((curve.rate_at(at_ns) - exact).abs() < 60.0 * 0.000_08, "{at_ns}");
    }
    assert_eq!(curve.range_until(NEVER), (40.0, 160.0));
}

fn owner(seed: u64) -> StreamOwner {
    StreamOwner { seed, group: 0, phase: 1, client: 0 }
}

/// The variance and the mean of counts.
fn variance(counts: &[f64]) -> (f64, f64) {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares: f64 = counts.iter().map(|count| (count - mean) * (count - mean)).sum();
    (squares / (counts.len() - 1) as f64, mean)
}

#[test]
fn bursts_of_two_states_spread_as_their_formula_says() {
    let states = BurstStates { factor: 5.0, on_ns: 50 * MILLISECOND, off_ns: 450 * MILLISECOND };
    let rate = 400.0;
    let (share, on_s, off_s) = (states.share(), seconds(states.on_ns), seconds(states.off_ns));
    let (high, low) = (rate * states.factor, rate * states.factor_off());
    let h = 1.0 / on_s + 1.0 / off_s;
    let formula = |t: f64| {
        let swing = 2.0 * (high - low) * (high - low) * share * (1.0 - share) / (h * rate);
        1.0 + swing * (1.0 - (1.0 - libm::exp(-h * t)) / (h * t))
    };
    for window_ns in [50 * MILLISECOND, 500 * MILLISECOND] {
        let mut sum = 0.0;
        let seeds = 4;
        for seed in 0..seeds {
            let until_ns = 2_000 * window_ns;
            let curve = Arc::new(RateCurve::constant(rate).with_bursts(
                &Burst::States(states),
                owner(seed),
                until_ns,
            ));
            let place = StreamOwner { client: 0, ..owner(seed) };
            let mut schedule = Pace::along(&Arrivals::Poisson, curve, 1).schedule(place);
            let mut counts = vec![0.0; 2_000];
            while schedule.peek() < until_ns {
                counts[(schedule.next() / window_ns) as usize] += 1.0;
            }
            let (variance, mean) = variance(&counts);
            sum += variance / mean;
        }
        let (found, expected) = (sum / seeds as f64, formula(seconds(window_ns)));
        assert!((found / expected - 1.0).abs() < 0.1, "{window_ns}: {found}, expected {expected}");
    }
}

#[test]
fn bursts_of_sources_have_their_hurst_parameter_over_three_decades() {
    let until_ns = 600 * SECOND;
    for hurst in [0.7, 0.85] {
        let mut sum = 0.0;
        let seeds = 2;
        for seed in 0..seeds {
            let sources = BurstSources { hurst, on_ns: 125 * MILLISECOND, sources: 200 };
            let curve =
                RateCurve::constant(1_000.0).with_bursts(&Burst::Hurst(sources), owner(seed), until_ns);
            // The logarithm of the variance of means over the logarithm of the length falls by 2 - 2 H.
            let points: Vec<(f64, f64)> = [60, 120, 300, 600, 1_200, 3_000, 6_000, 12_000, 30_000, 60_000]
                .map(|length_ms| {
                    let length_ns = length_ms * MILLISECOND;
                    let before: Vec<f64> =
                        (0..=until_ns / length_ns).map(|n| curve.requests_before(n * length_ns)).collect();
                    let means: Vec<f64> =
                        before.windows(2).map(|pair| (pair[1] - pair[0]) / seconds(length_ns)).collect();
                    (libm::log(length_ms as f64), libm::log(variance(&means).0))
                })
                .to_vec();
            let count = points.len() as f64;
            let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            let (x, y) = (x / count, y / count);
            let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>()
                / points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>();
            sum += 1.0 + slope / 2.0;
        }
        let found = sum / seeds as f64;
        assert!((found - hurst).abs() < 0.08, "{found}, expected {hurst}");
    }
}

#[test]
fn bursts_keep_the_mean_of_what_they_are_on() {
    let states =
        Burst::States(BurstStates { factor: 3.0, on_ns: 10 * MILLISECOND, off_ns: 30 * MILLISECOND });
    let sources = Burst::Hurst(BurstSources { hurst: 0.6, on_ns: 20 * MILLISECOND, sources: 50 });
    let until_ns = 100 * SECOND;
    for (name, shape) in shapes() {
        let curve = RateCurve::of(&shape);
        for burst in [states, sources] {
            let bursting = curve.with_bursts(&burst, owner(3), until_ns);
            let (mean, found) = (curve.requests_before(until_ns), bursting.requests_before(until_ns));
            assert!((found / mean - 1.0).abs() < 0.1, "{name}, {burst:?}: {found}, expected {mean}");
            // Behind their end there are none.
            assert_eq!(bursting.rate_at(until_ns + 1), curve.rate_at(until_ns));
        }
    }
}

#[test]
fn all_clients_burst_together_and_seeds_differ() {
    let burst =
        Burst::States(BurstStates { factor: 9.0, on_ns: 100 * MILLISECOND, off_ns: 900 * MILLISECOND });
    let curve = |seed| RateCurve::constant(100.0).with_bursts(&burst, owner(seed), 10 * SECOND);
    assert_eq!(curve(1), curve(1));
    assert_ne!(curve(1), curve(2));
    let times = due_times(&Arrivals::Constant, &Arc::new(curve(1)), 20, 10 * SECOND);
    let on = |at: &&Nanos| curve(1).rate_at(**at) > 100.0;
    let share = times.iter().filter(on).count() as f64 / times.len() as f64;
    assert!(share > 0.6, "{share} of the requests are in a tenth of the time");
}

/// Checks that the due times of one client are the same on every machine.
#[test]
fn due_times_are_those_of_every_other_machine() {
    let sine = RateShape::Sine(Sine { mean: 1e3, amplitude: 900.0, period_ns: SECOND / 3, start: 0.1 });
    let states =
        Burst::States(BurstStates { factor: 3.0, on_ns: 10 * MILLISECOND, off_ns: 30 * MILLISECOND });
    let sources = Burst::Hurst(BurstSources { hurst: 0.8, on_ns: 20 * MILLISECOND, sources: 50 });
    let base = RateCurve::of(&sine);
    let curves = [
        base.clone(),
        base.with_bursts(&states, owner(3), SECOND),
        base.with_bursts(&sources, owner(3), SECOND),
    ];
    let found = curves.map(|curve| {
        let mut schedule = schedule(&Arrivals::Poisson, &Arc::new(curve), 1, 2);
        (0..400).for_each(|_| _ = schedule.next());
        schedule.peek()
    });
    assert_eq!(found, [733_717_215, 1_040_803_702, 690_488_519]);
}
