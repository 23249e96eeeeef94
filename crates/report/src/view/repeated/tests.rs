//! Tests of the view of several runs of one configuration: whole screens, and what stands on them.

use super::{brief, headline, view};
use crate::comparison::{ServerSoftware, SideSource};
use crate::document::OtherOutcomes;
use crate::repetition::Repetition;
use crate::run_figures::tests::run_at;
use crate::screen::{Paper, draw};
use crate::view::Tone;
use crate::view::run::{Wanted, Word};
use pummel_logic::plan::{Arrivals, Group, Mix, Phase, Plan, Stop, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::outcome::RunOutcome;

/// Runs of two seconds at 20,000 requests a second, whose times have these scales.
fn repetition(scales: &[f64]) -> Repetition {
    let group = Group { arrivals: Arrivals::Poisson, rate: Some(20_000.0), clients: 50, ..Group::default() };
    let phase = Phase {
        name: "measure".to_owned(),
        work: Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)])),
        stop: Stop { time_ns: Some(2 * SECOND), requests: None },
        recorded: true,
    };
    let servers = vec!["127.0.0.1:11211".to_owned()];
    let plan = Plan { servers, groups: vec![group], phases: vec![phase], ..Plan::default() };
    let mut made = Repetition::new(&plan, Vec::new(), scales.len() as u32, Some(false));
    let runs = scales.iter().enumerate().map(|(number, scale)| {
        let mut run = run_at(number as f64 * 11.0, *scale);
        (run.rate, run.rate_ci) = (20_000.0 + number as f64, None);
        run
    });
    let software = ServerSoftware {
        software: "memcached".to_owned(),
        version: "1.6.18".to_owned(),
        serving_threads: None,
    };
    made.extend(runs, SideSource { servers: vec![software], ..SideSource::default() });
    made
}

/// The screen of some runs at some width.
fn screen(repetition: &Repetition, width: usize) -> String {
    draw(&view(repetition, Wanted::Screen), Paper::of_width(width))
}

/// Six runs in two groups, of which some are not steady, and one is not reliable.
fn two_groups() -> Repetition {
    let mut made = repetition(&[1.0, 1.3, 1.01, 1.31, 0.99, 1.29]);
    made.runs.iter_mut().take(4).for_each(|run| run.steady = Some(false));
    (made.runs[0].trust, made.runs[0].doubtful) = (Some(false), vec!["p99".to_owned()]);
    made
}

/// Three of six runs, with two that failed and were made again, and one that was overloaded and had errors.
fn cut() -> Repetition {
    let mut made = repetition(&[1.0, 1.02, 0.99]);
    (made.asked, made.made_again) = (6, 2);
    (made.runs[1].errors, made.runs[1].outcome) = (Some(17), RunOutcome::Overloaded);
    made.end(Some("the server is gone".to_owned()), false);
    made
}

#[test]
fn runs_in_two_groups() {
    let wide = "\
pummel 0.1.0   127.0.0.1:11211 (memcached 1.6.18, text)   6 runs of 2 s
50 connections, open loop at 20,000/s; get 90 %, set 10 %; 10,000 records

Result   20,003 req/s of 20,000 asked; 100 % hits, no errors, in all 6 runs
Trust    reliable in 5 of 6 runs, p99 partly pummel's own in 1
Runs     p50 has two groups: 3 runs near 100 us, 3 near 130 us; p99: 3 near
         400 us, 3 near 520 us, which chance does not explain. The server was
         not restarted between them (--restart)
Unsteady 4 of 6 runs

response      req/s        p50        p90        p99       p99.9
median       20,003     115 us     230 us     460 us     1.03 ms
  95 % sure          99.0..131   198..262   396..524 0.891..1.18
  differ by     0 %       14 %       14 %       14 %        14 %
";
    assert_eq!(screen(&two_groups(), 80), wide);
    let narrow = "\
pummel 0.1.0   127.0.0.1:11211 (memcached 1.6.18, text)
50 connections, open loop at 20,000/s; get 90 %, set 10 %;
10,000 records; 6 runs of 2 s

Result   20,003 req/s of 20,000 asked; 100 % hits, no
         errors, in all 6 runs
Trust    reliable in 5 of 6 runs, p99 partly pummel's own in
         1
Runs     p50 has two groups: 3 runs near 100 us, 3 near
         130 us; p99: 3 near 400 us, 3 near 520 us, which
         chance does not explain. The server was not
         restarted between them (--restart)
Unsteady 4 of 6 runs

response  req/s        p50        p90        p99       p99.9
median   20,003     115 us     230 us     460 us     1.03 ms
95% sure         99.0..131   198..262   396..524 0.891..1.18
differ by   0 %       14 %       14 %       14 %        14 %
";
    assert_eq!(screen(&two_groups(), 60), narrow);
}

#[test]
fn requests_of_all_runs_that_stored_or_found_nothing_stand_beside_each_other() {
    let mut made = two_groups();
    let others = |op: &str, not_found| OtherOutcomes {
        op: op.to_owned(),
        answered: 1_000,
        not_found,
        ..OtherOutcomes::default()
    };
    for (run, count) in made.runs.iter_mut().zip([0, 1, 2, 0, 0, 7]) {
        run.other_outcomes = vec![others("touch", count), others("incr", 0), others("delete", 1_000)];
    }
    let lines = view(&made, Wanted::Screen).lines;
    let told: Vec<_> = lines.iter().map(|line| (line.label, line.tone, line.text.words())).collect();
    let delete = "delete: 6,000 of 6,000 without a record of their key: its times are those of requests that did nothing";
    let touch = "touch: 10 of 6,000 without a record of their key";
    let of = |label, words: &str| (label, Tone::Warning, words.to_owned());
    assert_eq!(told[1..3], [of("Outcomes", delete), of("", touch)]);
}

#[test]
fn a_series_with_failed_runs() {
    let wide = "\
pummel 0.1.0   127.0.0.1:11211 (memcached 1.6.18, text)   3 of 6 runs of 2 s
50 connections, open loop at 20,000/s; get 90 %, set 10 %; 10,000 records

Result   PARTIAL: 3 of 6 runs, the server is gone. 20,001 req/s of 20,000 asked;
         100 % hits, 17 errors in 1 of 3 runs
Overload 1 of 3 runs: more requests were due than were answered, and the queue
         grew to the end
Again    2 runs failed and were made again; no figure has anything of them
Trust    reliable in all 3 runs
Runs     p50 differs more than chance within a run explains. The server was not
         restarted between them (--restart)

response      req/s        p50        p90        p99      p99.9
median       20,001     100 us     200 us     400 us     900 us
  range              99.0..102   198..204   396..408   891..918
  differ by     0 %        2 %        2 %        2 %        2 %
3 runs have no interval: it takes 6
";
    assert_eq!(screen(&cut(), 80), wide);
    let narrow = "\
pummel 0.1.0   127.0.0.1:11211 (memcached 1.6.18, text)
50 connections, open loop at 20,000/s; get 90 %, set 10 %;
10,000 records; 3 of 6 runs of 2 s

Result   PARTIAL: 3 of 6 runs, the server is gone.
         20,001 req/s of 20,000 asked; 100 % hits, 17 errors
         in 1 of 3 runs
Overload 1 of 3 runs: more requests were due than were
         answered, and the queue grew to the end
Again    2 runs failed and were made again; no figure has
         anything of them
Trust    reliable in all 3 runs
Runs     p50 differs more than chance within a run explains.
         The server was not restarted between them
         (--restart)

response  req/s        p50        p90        p99      p99.9
median   20,001     100 us     200 us     400 us     900 us
range            99.0..102   198..204   396..408   891..918
differ by   0 %        2 %        2 %        2 %        2 %
3 runs have no interval: it takes 6
";
    assert_eq!(screen(&cut(), 60), narrow);
}

#[test]
fn runs_that_differ_by_chance_alone_have_no_line() {
    let said = screen(&repetition(&[1.0, 1.002, 1.001, 0.999, 1.0, 1.001]), 80);
    assert!(!said.contains("Runs ") && !said.contains("restarted"), "{said}");
    let mut restarted = two_groups();
    restarted.restarted = Some(true);
    assert!(screen(&restarted, 120).contains("The server was restarted before each of them\n"));
    restarted.restarted = None;
    assert!(!screen(&restarted, 120).contains("restarted"));
}

#[test]
fn the_first_word_decides_the_exit_status() {
    let of = |change: &dyn Fn(&mut Repetition)| {
        let mut made = two_groups();
        change(&mut made);
        let headline = headline(&made);
        (headline.words, headline.status)
    };
    let missed = |made: &mut Repetition| made.runs[0].met = Some(false);
    let outcome = |outcome: RunOutcome| {
        move |made: &mut Repetition| made.runs.iter_mut().take(4).for_each(|run| run.outcome = outcome)
    };
    assert_eq!(of(&|_| ()), (vec![], 0));
    assert_eq!(of(&missed), (vec![Word::GoalMissed], 3));
    assert_eq!(of(&|made| made.runs[2].wrong_values = Some(3)), (vec![Word::WrongValues], 3));
    assert_eq!(of(&outcome(RunOutcome::Overloaded)), (vec![Word::Overloaded], 0));
    assert_eq!(of(&outcome(RunOutcome::Failed)), (vec![Word::Failed], 1));
    assert_eq!(of(&|made| made.end(Some("gone".to_owned()), false)), (vec![Word::Partial], 1));
    assert_eq!(of(&|made| made.end(Some("interrupted".to_owned()), true)), (vec![Word::Interrupted], 130));
}

#[test]
fn what_went_wrong_in_a_run_is_said() {
    let mut made = repetition(&[1.0, 1.0]);
    (made.runs[0].wrong_values, made.runs[0].met) = (Some(3), Some(false));
    (made.runs[1].met, made.runs[1].steady) = (Some(true), Some(false));
    made.asked = 5;
    made.end(Some("interrupted".to_owned()), true);
    let said = screen(&made, 120);
    for words in [
        "Result   INTERRUPTED, GOAL MISSED after 2 of 5 runs. 20,001 req/s of 20,000 asked; ",
        "Goal     missed in one of the two runs\n",
        "Unsteady one of the two runs\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    made.asked = 2;
    made.end(None, false);
    made.runs[0].met = None;
    assert!(
        screen(&made, 120).contains("WRONG VALUES: 3 in all runs (pummel run --verify says which)."),
        "{}",
        screen(&made, 120)
    );
}

#[test]
fn everything_has_each_run_the_range_and_advice() {
    let text = draw(&view(&two_groups(), Wanted::Everything), Paper::default());
    for words in [
        "\nruns         req/s       p50       p90       p99     p99.9   outcome    limit\n",
        "\nrun 6       20,005 ",
        "known best from more and shorter runs",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("\n  range "), "the interval of six runs is their range: {text}");
    let nine = repetition(&[1.0, 1.3, 1.01, 1.31, 0.99, 1.29, 1.02, 1.03, 1.04]);
    let text = draw(&view(&nine, Wanted::Everything), Paper::default());
    assert!(text.contains("\n  range "), "{text}");
    assert_eq!(brief(&two_groups()), "6 runs, 20,003/s p50 115 us p99 460 us");
    assert_eq!(brief(&cut()), "PARTIAL 3 of 6 runs, 20,001/s p50 100 us p99 400 us");
}

#[test]
fn no_line_is_wider_than_the_paper() {
    for width in [48, 60, 80, 100, 120] {
        for (made, wanted) in
            [(two_groups(), Wanted::Screen), (cut(), Wanted::Screen), (two_groups(), Wanted::Everything)]
        {
            let text = draw(&view(&made, wanted), Paper::of_width(width));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {longest:?}\n{text}");
        }
    }
}
