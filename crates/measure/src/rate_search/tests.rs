//! Searches on simulated servers: one exponential queue whose quantile at a rate is known, with noise from run to run.

use super::*;
use pummel_logic::rng::unit;

/// The cause of a run that the generator limited.
fn weak() -> Cause {
    Cause::GeneratorSendBuffer { share: 0.2 }
}

/// A server with a capacity of 1,000 requests per second that meets the goal up to `knee`.
struct Simulated {
    knee: f64,
    /// Standard deviation of the logarithm of a run's quantile.
    noise: f64,
    /// Distance of the upper bound of a run above its quantile, as a logarithm; `None` where it is not known.
    bound: Option<f64>,
    /// Offset of the logarithm of every quantile.
    offset: f64,
    /// The least rate that is not carried.
    gives_way: f64,
    /// The least rate at which no upper bound is known.
    open_from: f64,
    seed: u64,
}

impl Simulated {
    fn new(knee: f64, noise: f64, seed: u64) -> Simulated {
        let bound = Some(2.0 * noise);
        Simulated { knee, noise, bound, offset: 0.0, gives_way: 1_000.0, open_from: f64::INFINITY, seed }
    }

    fn normal(&self, run: u64) -> f64 {
        let draws = Stream::from_seed(mix(&[self.seed, 77, run]));
        (0..12).map(|i| unit(draws.draw(i))).sum::<f64>() - 6.0
    }

    fn run(&self, ask: PlannedRun, run: u64) -> RunFindings {
        let Some(rate) = ask.rate else {
            return RunFindings { rate: 1_000.0, margin: Some(5.0), carried: true, ..RunFindings::default() };
        };
        let z = |rate: f64| -libm::log(1.0 - (rate / 1_000.0).min(0.999));
        let margin = z(rate) - z(self.knee) + self.offset + self.noise * self.normal(run);
        RunFindings {
            rate: rate.min(1_000.0),
            margin: Some(margin),
            margin_high: self.bound.filter(|_| rate < self.open_from).map(|bound| margin + bound),
            carried: rate < self.gives_way,
            ..RunFindings::default()
        }
    }
}

/// The answer, and all runs in their order.
fn searched(server: &Simulated, precision: Option<f64>) -> (Answer, Vec<PlannedRun>) {
    let mut search = RateSearch::new(server.seed, precision);
    let mut runs = Vec::new();
    while let Some(ask) = search.next() {
        runs.push(ask);
        assert!(runs.len() <= 80, "the search does not end: {runs:?}");
        search.handle(&server.run(ask, runs.len() as u64));
    }
    (search.answer().clone(), runs)
}

fn count(runs: &[PlannedRun], role: Role) -> usize {
    runs.iter().filter(|ask| ask.role == role).count()
}

#[test]
fn the_knee_lies_in_the_interval_and_the_rate_is_hardly_ever_too_high() {
    for (knee, noise) in [(750.0, 0.03), (750.0, 0.1), (500.0, 0.1), (900.0, 0.1)] {
        let (mut held, mut too_high, mut found) = (0, 0, 0);
        for seed in 0..200 {
            let (answer, _) = searched(&Simulated::new(knee, noise, seed), None);
            let Some((low, high)) = answer.interval else { continue };
            held += u32::from((low..=high).contains(&knee));
            found += u32::from(answer.rate.is_some());
            too_high += u32::from(answer.rate.is_some_and(|rate| rate > 1.02 * knee));
        }
        assert!(held >= 180, "knee {knee}, noise {noise}: {held} of 200 intervals contain it");
        assert!(too_high <= 4, "knee {knee}, noise {noise}: {too_high} of 200 answers promise too much");
        assert!(found >= 190, "knee {knee}, noise {noise}: {found} of 200 searches have an answer");
    }
}

#[test]
fn four_halvings_ten_runs_in_random_order_and_a_confirmation_are_made() {
    let (answer, runs) = searched(&Simulated::new(750.0, 0.02, 3), None);
    assert_eq!((count(&runs, Role::Peak), count(&runs, Role::Halve)), (1, 4));
    let around: Vec<f64> =
        runs.iter().filter(|ask| ask.role == Role::Around).filter_map(|ask| ask.rate).collect();
    assert_eq!(around.len(), 10);
    assert!(!around.is_sorted() && !around.is_sorted_by(|one, other| one >= other), "{around:?}");
    let (least, most) =
        (around.iter().copied().fold(f64::MAX, f64::min), around.iter().copied().fold(0.0, f64::max));
    assert!(least > 600.0 && most < 900.0 && most / least > 1.2, "{around:?}");
    let (_, high) = answer.interval.expect("known");
    let last = runs[runs.len() - 1];
    assert_eq!((last.role, last.rate, count(&runs, Role::Overload)), (Role::Overload, Some(1.2 * high), 1));
}

#[test]
fn an_answer_was_confirmed_by_a_run_whose_upper_bound_meets_the_goal() {
    for seed in 0..50 {
        let server = Simulated::new(750.0, 0.08, seed);
        let (answer, runs) = searched(&server, None);
        let Some(rate) = answer.rate else { continue };
        let at = runs.iter().rposition(|ask| ask.role == Role::Confirm).expect("a confirmation");
        assert_eq!(runs[at].rate, Some(rate));
        assert!(server.run(runs[at], at as u64 + 1).margin_high.is_some_and(|margin| margin <= 0.0));
    }
}

#[test]
fn more_runs_are_made_for_more_precision() {
    let server = Simulated::new(750.0, 0.1, 5);
    let (coarse, few) = searched(&server, None);
    let (fine, many) = searched(&server, Some(0.03));
    let width = |answer: &Answer| answer.interval.map(|(low, high)| high / low - 1.0).expect("an interval");
    assert!(width(&fine) < width(&coarse), "{fine:?} {coarse:?}");
    assert!(count(&many, Role::Around) > count(&few, Role::Around));
    let (unreached, _) = searched(&Simulated::new(750.0, 0.3, 5), Some(0.001));
    assert_ne!(unreached.precise, Some(true), "{unreached:?}");
}

#[test]
fn a_goal_that_is_met_at_the_greatest_rate_is_met_at_least_there() {
    let (answer, runs) = searched(&Simulated::new(999.0, 0.02, 1), None);
    assert!(answer.at_least && answer.rate == Some(980.0), "{answer:?}");
    assert_eq!((answer.interval, answer.is_open_above), (None, false), "the limit lies somewhere above");
    assert_eq!(count(&runs, Role::Around), 0);
}

#[test]
fn a_goal_whose_tail_is_open_at_the_greatest_rate_is_met_at_least_below_and_overloaded_beyond_the_capacity() {
    for seed in 0..20 {
        let server = Simulated { open_from: 900.0, ..Simulated::new(999.0, 0.02, seed) };
        let (answer, runs) = searched(&server, None);
        assert!(answer.at_least && answer.is_open_above, "{answer:?}");
        assert!(answer.rate.is_some_and(|rate| (rate - 0.9 * 980.0).abs() < 1e-6), "{answer:?}");
        assert_eq!((answer.interval, count(&runs, Role::Confirm)), (None, 2), "{answer:?}");
        let last = runs[runs.len() - 1];
        assert_eq!((last.role, last.rate), (Role::Overload, Some(1_200.0)));
    }
    // A confirmation that misses the goal at last takes the words back.
    let open = Simulated { open_from: 0.0, ..Simulated::new(999.0, 0.02, 1) };
    let (answer, _) = searched(&open, None);
    assert_eq!((answer.rate, answer.at_least, answer.is_open_above), (None, false, false));
}

#[test]
fn a_goal_that_is_met_nowhere_has_no_answer() {
    let (answer, runs) = searched(&Simulated { offset: 0.5, ..Simulated::new(0.001, 0.02, 1) }, None);
    assert_eq!((answer.rate, answer.interval), (None, None));
    assert!(matches!(answer.reason, Some(NoRate::MissedAt { rate }) if (1.5..2.5).contains(&rate)));
    assert!(runs.len() <= 10, "{runs:?}");
}

#[test]
fn a_goal_that_is_crossed_at_a_small_share_of_the_capacity_is_found() {
    let (answer, _) = searched(&Simulated::new(200.0, 0.005, 2), None);
    let (low, high) = answer.interval.expect("known");
    assert!(low <= 205.0 && high >= 195.0 && answer.rate.is_some_and(|rate| rate > 150.0), "{answer:?}");
}

#[test]
fn a_server_that_gives_way_before_the_goal_is_missed_is_searched_below() {
    let server = Simulated { gives_way: 720.0, ..Simulated::new(750.0, 0.02, 4) };
    let (answer, runs) = searched(&server, None);
    if let Some(rate) = answer.rate {
        assert!(rate < 720.0, "{answer:?}");
    }
    assert!(runs.len() < 80);
}

#[test]
fn what_a_server_carries_bounds_the_answer_where_its_times_would_allow_more() {
    // Up to which rates it carries, and up to which its times meet the goal.
    for (gives_way, knee, noise) in [(970.0, 999.0, 0.02), (720.0, 900.0, 0.05), (400.0, 999.0, 0.1)] {
        for seed in 0..30 {
            let server = Simulated { gives_way, ..Simulated::new(knee, noise, seed) };
            let (answer, runs) = searched(&server, None);
            let rate = answer.rate.expect("rates below are carried and meet the goal");
            assert!(rate < gives_way && rate > 0.9 * gives_way, "{gives_way}: {answer:?}");
            let (low, high) = answer.interval.expect("it is known");
            assert!(rate <= low && low < gives_way && gives_way <= high, "{gives_way}: {answer:?}");
            assert_eq!(answer.not_carried, Some(high), "{gives_way}: {answer:?}");
            assert!(!answer.at_least && count(&runs, Role::Confirm) <= 3, "{gives_way}: {runs:?}");
            let last = runs[runs.len() - 1];
            assert_eq!((last.role, last.rate), (Role::Overload, Some(1.2 * high)), "{gives_way}");
        }
    }
}

#[test]
fn times_that_do_not_rise_are_bounded_by_what_was_carried_and_a_narrow_interval_is_found() {
    // A server whose times are the same at all rates.
    let flat = |ask: PlannedRun, run: u64| {
        let server = Simulated { gives_way: 720.0, ..Simulated::new(750.0, 0.05, 9) };
        let margin = -0.7 + 0.05 * server.normal(run);
        RunFindings { margin: Some(margin), margin_high: Some(margin + 0.1), ..server.run(ask, run) }
    };
    let mut search = RateSearch::new(9, Some(0.02));
    let mut runs = 0;
    while let Some(ask) = search.next() {
        runs += 1;
        assert!(runs <= 80, "the search does not end");
        search.handle(&flat(ask, runs));
    }
    let answer = search.answer();
    let (low, high) = answer.interval.expect("it is known");
    assert!(low < 720.0 && high >= 720.0 && answer.rate.is_some_and(|rate| rate <= low), "{answer:?}");
    assert_eq!((answer.precise, answer.not_carried), (Some(true), Some(high)), "{answer:?}");
}

#[test]
fn a_line_that_crosses_beyond_all_that_is_asked_for_has_no_reversed_interval() {
    // At the greatest rate the goal seems to be missed once, and is met at all others.
    for seed in 0..50 {
        let server = Simulated::new(990.0, 0.3, seed);
        let mut search = RateSearch::new(seed, None);
        let mut runs = 0;
        while let Some(ask) = search.next() {
            runs += 1;
            assert!(runs <= 80, "the search does not end");
            let seen = server.run(ask, runs);
            let is_top = ask.role == Role::Halve && ask.rate.is_some_and(|rate| rate > 970.0);
            search.handle(&if is_top { RunFindings { margin: Some(0.1), ..seen } } else { seen });
        }
        let answer = search.answer();
        assert!(answer.interval.is_none_or(|(low, high)| low <= high), "{answer:?}");
        assert!(answer.interval.is_none_or(|(low, _)| low <= 980.0), "{answer:?}");
    }
}

#[test]
fn runs_that_say_nothing_about_the_server_are_made_again_and_end_the_search_at_three_in_a_row() {
    let server = Simulated::new(750.0, 0.02, 1);
    let mut search = RateSearch::new(1, None);
    search.handle(&server.run(search.next().expect("the peak"), 1));
    let ask = search.next().expect("a halving");
    let unsound = RunFindings { unsound: Some(Unsound::Generator(weak())), ..server.run(ask, 2) };
    search.handle(&unsound);
    assert_eq!(search.next(), Some(ask), "once more");
    search.handle(&server.run(ask, 3));
    search.handle(&unsound);
    search.handle(&unsound);
    assert!(search.next().is_some(), "one that says something lies between");
    search.handle(&unsound);
    assert_eq!(search.next(), None);
    assert_eq!(
        search.answer().reason,
        Some(NoRate::Unsound { runs: UNSOUND_MAX, why: Unsound::Generator(weak()) })
    );
}

#[test]
fn a_peak_that_was_not_steady_is_no_capacity() {
    let server = Simulated::new(750.0, 0.02, 1);
    let mut search = RateSearch::new(1, None);
    let ask = search.next().expect("the peak");
    let unsteady = RunFindings { unsound: Some(Unsound::Unsteady), ..server.run(ask, 1) };
    search.handle(&unsteady);
    assert_eq!((search.next(), search.capacity()), (Some(ask), 0.0), "once more");
    // Where the generator was the limit its own rate is what can be asked for, and the answer says so.
    let unsound = Some(Unsound::Generator(weak()));
    search.handle(&RunFindings { generator: Some(weak()), unsound, ..server.run(ask, 2) });
    assert!(search.next().is_some_and(|next| next.role == Role::Halve) && search.capacity() > 0.0);
    let mut search = RateSearch::new(1, None);
    (0..UNSOUND_MAX).for_each(|_| search.handle(&unsteady));
    assert_eq!(search.next(), None);
    assert_eq!(search.answer().reason, Some(NoRate::Unsound { runs: UNSOUND_MAX, why: Unsound::Unsteady }));
}

#[test]
fn runs_too_short_to_know_the_quantile_from_above_have_no_confirmed_answer() {
    let server = Simulated { bound: None, ..Simulated::new(750.0, 0.02, 1) };
    let (answer, runs) = searched(&server, None);
    assert_eq!(answer.rate, None);
    assert!(answer.interval.is_some(), "the line is known all the same");
    assert!(matches!(answer.reason, Some(NoRate::TooShort { .. })), "{:?}", answer.reason);
    assert_eq!(count(&runs, Role::Confirm), 1, "another run as short would show no more");
}

#[test]
fn a_server_that_completes_nothing_ends_the_search_at_once() {
    let mut search = RateSearch::new(1, None);
    search.handle(&RunFindings::default());
    assert_eq!(search.next(), None);
    assert!(search.answer().reason.is_some());
}

/// The answer, all runs and the search at its end, where the generator can ask for 600 requests per second and the server carries
/// 1,000.
fn searched_by_a_weak_generator(server: &Simulated) -> (Answer, Vec<PlannedRun>) {
    let mut search = RateSearch::new(server.seed, None);
    let mut runs = Vec::new();
    while let Some(ask) = search.next() {
        runs.push(ask);
        assert!(runs.len() <= 80, "the search does not end: {runs:?}");
        let seen = match ask.rate {
            None => RunFindings { rate: 600.0, generator: Some(weak()), ..RunFindings::default() },
            Some(_) => server.run(ask, runs.len() as u64),
        };
        search.handle(&seen);
    }
    assert_eq!(search.generator(), Some(&weak()));
    (search.answer().clone(), runs)
}

#[test]
fn a_peak_that_was_the_generators_bounds_what_is_asked_for_and_is_not_the_servers() {
    let (mut held, mut too_high) = (0, 0);
    for seed in 0..100 {
        let (answer, runs) = searched_by_a_weak_generator(&Simulated::new(450.0, 0.05, seed));
        let greatest = runs
            .iter()
            .filter(|ask| ask.role != Role::Overload)
            .filter_map(|ask| ask.rate)
            .fold(0.0, f64::max);
        assert!(greatest <= 588.0, "{greatest}");
        held += u32::from(answer.interval.is_some_and(|(low, high)| (low..=high).contains(&450.0)));
        too_high += u32::from(answer.rate.is_some_and(|rate| rate > 1.02 * 450.0));
    }
    assert!(held >= 88, "{held} of 100 intervals of a straight line in the rate contain the knee");
    assert!(too_high <= 4, "{too_high} of 100 answers promise too much");

    let (answer, runs) = searched_by_a_weak_generator(&Simulated::new(900.0, 0.03, 3));
    assert_eq!((answer.at_least, count(&runs, Role::Overload)), (true, 0), "{answer:?}");
    assert!(answer.rate.is_some_and(|rate| rate <= 588.0), "{answer:?}");
}
