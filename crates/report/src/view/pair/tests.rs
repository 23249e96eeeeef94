//! Tests of the view of sides that are compared: whole screens, and what stands on them.

use std::slice::from_ref;

use super::{Headline, Word, brief, view};
use crate::comparison::tests::{apart, claim, pairs, pairs_of};
use crate::comparison::{
    Claim, ClaimKind, Comparison, PairCommand, Question, SIDE_NAMES, ServerSoftware, Side, SideNames,
    SideSource,
};
use crate::document::OtherOutcomes;
use crate::run_figures::Metric;
use crate::screen::{Colours, Paper, draw};
use crate::view::run::Wanted;
use pummel_logic::plan::{Mix, Phase, Stop, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;

/// The screen of some comparisons at some width.
fn screen(comparisons: &[Comparison], width: usize) -> String {
    draw(&view(comparisons, Wanted::Screen), Paper::of_width(width))
}

/// The words of a screen, whichever lines they are on.
fn words(comparisons: &[Comparison]) -> String {
    screen(comparisons, 120).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sides with these names, whose runs were asked to be of three seconds.
fn named(sides: [Side; 2], names: [&str; 2]) -> [Side; 2] {
    let mut names = names.into_iter();
    sides.map(|mut side| {
        side.label = names.next().unwrap_or_default().to_owned();
        side.plan.phases = vec![Phase {
            name: "measure".to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
            stop: Stop { time_ns: Some(3 * SECOND), requests: None },
            recorded: true,
        }];
        side
    })
}

/// An experiment of pairs with these scales of their times.
fn experiment(scales: &[(f64, f64)], question: &Question) -> Comparison {
    let names =
        ["pummel serve --service-time exponential:200us", "pummel serve --service-time exponential:250us"];
    let mut sides = named(pairs_of(scales), names);
    for (side, cpu_us) in sides.iter_mut().zip([102.0, 108.0]) {
        side.runs.iter_mut().for_each(|run| run.server_cpu_us_per_request = Some(cpu_us));
    }
    Comparison::of_pairs(PairCommand::Ab, sides, question).ended(scales.len() as u32, None, false)
}

/// An experiment whose second side is worse than is allowed.
fn worse() -> Comparison {
    let scales = [(1.0, 1.5), (1.01, 1.45), (0.99, 1.55), (1.02, 1.5), (0.98, 1.2), (1.0, 1.9)];
    let mut pair = experiment(&scales, &claim(ClaimKind::Worse, Metric::P99, 0.05));
    for run in pair.sides.iter_mut().flat_map(|side| side.runs.iter_mut().take(3)) {
        (run.trust, run.doubtful) = (Some(false), vec!["p99".to_owned()]);
    }
    pair
}

/// An experiment of a noisy hour, with or without a gate.
fn noisy(question: &Question) -> Comparison {
    let scales = [(1.0, 0.4), (1.3, 2.0), (0.9, 0.8), (1.2, 2.2), (1.0, 0.5), (1.1, 0.9)];
    let mut sides = named(pairs_of(&scales), ["127.0.0.1:28072", "127.0.0.1:28073, -d 2"]);
    sides.iter_mut().for_each(|side| side.runs.iter_mut().take(3).for_each(|run| run.steady = Some(false)));
    Comparison::of_pairs(PairCommand::Ab, sides, question).ended(6, None, false)
}

/// Two stored runs at different rates.
fn two_runs() -> Comparison {
    let mut sides = named(apart(0.5, 1), ["ca.json", "cb.json"]);
    let [first, second] = &mut sides;
    first.plan.groups[0].rate = Some(10_000.0);
    second.plan.groups[0].rate = Some(15_000.0);
    second.plan.servers = vec!["127.0.0.1:28073".to_owned()];
    (second.runs[0].trust, second.runs[0].doubtful) = (Some(false), vec!["p99".to_owned()]);
    second.runs[0].mostly_lag = vec!["p99.9".to_owned()];
    Comparison::of_results(sides, &Question::default())
}

/// Stored runs of three sides or more, whose times have these scales.
fn several(scales: &[f64]) -> Vec<Comparison> {
    let side = |(place, scale): (usize, &f64)| {
        let [mut side, _] = apart(0.0, 1);
        let [base, other] = [side.runs[0].clone(), crate::run_figures::tests::run_at(0.0, *scale)];
        side.runs[0] = crate::run_figures::RunFigures {
            started_unix_s: base.started_unix_s.map(|at| at + place as f64),
            ..other
        };
        side.label = format!("{}.json", SIDE_NAMES[place].to_lowercase());
        side.plan.groups[0].depth = pummel_logic::plan::Depth::Limit(1 + place as u32 / 2);
        side
    };
    let sides: Vec<Side> = scales.iter().enumerate().map(side).collect();
    let others = sides.iter().enumerate().skip(1).map(|(place, other)| {
        let names = SideNames([SIDE_NAMES[0], SIDE_NAMES[place]]);
        let question = Question { names, ..Question::default() };
        Comparison::of_results([sides[0].clone(), other.clone()], &question)
    });
    others.collect()
}

#[test]
fn a_side_whose_requests_stored_nothing_is_named() {
    let mut pair = two_runs();
    for (side, not_stored) in pair.sides.iter_mut().zip([0, 500]) {
        let others =
            OtherOutcomes { op: "add".to_owned(), answered: 500, not_stored, ..OtherOutcomes::default() };
        side.runs[0].other_outcomes = vec![others];
    }
    let text = screen(&[pair], 120);
    let told =
        "\nOutcomes add of B: 500 of 500 not stored: its times are those of requests that did nothing\n";
    assert!(text.contains(told), "{text}");
}

#[test]
fn a_shown_difference_beyond_what_is_allowed() {
    let wide = "\
A  pummel serve --service-time exponential:200us
B  pummel serve --service-time exponential:250us
6 pairs of 3 s in random order, open loop at 20,000/s

Result   WORSE: p99 of B is 50 % higher (22..90 %), 5 % were allowed; p = 0.031
Trust    p99 is partly pummel's own in 6 of 12 runs

response           A           B   B to A   95 % sure
p99           400 us      600 us    +50 %      22..90    judged
p50           100 us      150 us    +50 %      22..90
p90           200 us      300 us    +50 %      22..90
p99.9         900 us     1.35 ms    +50 %      22..90
rate        20,000/s    13,333/s    -33 %    -47..-18
CPU/req       102 us      108 us   +5.9 %    5.9..5.9
A and B: medians of 6 runs. B to A: the middle of the 6 pairs
";
    assert_eq!(screen(&[worse()], 80), wide);
    let narrow = "\
A  pummel serve --service-time exponential:200us
B  pummel serve --service-time exponential:250us
6 pairs of 3 s in random order, open loop at 20,000/s

Result   WORSE: p99 of B is 50 % higher (22..90 %), 5 % were
         allowed; p = 0.031
Trust    p99 is partly pummel's own in 6 of 12 runs

response          A          B  B to A  95 % sure
p99          400 us     600 us   +50 %     22..90  judged
p50          100 us     150 us   +50 %     22..90
p90          200 us     300 us   +50 %     22..90
p99.9        900 us    1.35 ms   +50 %     22..90
rate       20,000/s   13,333/s   -33 %   -47..-18
CPU/req      102 us     108 us  +5.9 %   5.9..5.9
A and B: medians of 6 runs. B to A: the middle of the 6
pairs
";
    assert_eq!(screen(&[worse()], 60), narrow);
}

#[test]
fn a_noisy_hour_shows_nothing() {
    let wide = "\
A  127.0.0.1:28072
B  127.0.0.1:28073, -d 2
6 pairs of 3 s in random order, open loop at 20,000/s

Result   NOT DECIDED: 6 of 12 runs were not steady. p99 of B is 14 % lower, and
         anything from 60 % lower to 83 % higher is possible. Longer runs (-t
         50s), more pairs
Trust    reliable in all 12 runs

response           A           B   B to A   95 % sure
p99           420 us      340 us    -14 %     -60..83    judged
p50           105 us     85.0 us    -14 %     -60..83
p90           210 us      170 us    -14 %     -60..83
p99.9         945 us      765 us    -14 %     -60..83
rate        19,091/s    23,611/s    +17 %    -45..150
own CPU      4.00 us     4.00 us      0 %        0..0
A and B: medians of 6 runs. B to A: the middle of the 6 pairs
";
    assert_eq!(screen(&[noisy(&Question::default())], 80), wide);
    let narrow = "\
A  127.0.0.1:28072
B  127.0.0.1:28073, -d 2
6 pairs of 3 s in random order, open loop at 20,000/s

Result   NOT DECIDED: 6 of 12 runs were not steady. p99 of B
         is 14 % lower, and anything from 60 % lower to 83 %
         higher is possible. Longer runs (-t 50s), more
         pairs
Trust    reliable in all 12 runs

response          A          B  B to A  95 % sure
p99          420 us     340 us   -14 %    -60..83  judged
p50          105 us    85.0 us   -14 %    -60..83
p90          210 us     170 us   -14 %    -60..83
p99.9        945 us     765 us   -14 %    -60..83
rate       19,091/s   23,611/s   +17 %   -45..150
own CPU     4.00 us    4.00 us     0 %       0..0
A and B: medians of 6 runs. B to A: the middle of the 6
pairs
";
    assert_eq!(screen(&[noisy(&Question::default())], 60), narrow);
}

#[test]
fn one_run_a_side_proves_nothing() {
    let wide = "\
A  ca.json   127.0.0.1:11211, open loop at 10,000/s
B  cb.json   127.0.0.1:28073, open loop at 15,000/s

Result   NOT DECIDED: one run a side cannot show that the systems differ (pummel
         ab can)
Differs  --rate 10k, 15k; --server 127.0.0.1:11211, 127.0.0.1:28073
Trust    p99 is partly pummel's own in one of the two runs
Order    A ran before B: a slower hour would look the same

response           A   95 % sure           B   95 % sure   B to A
p50           100 us   99.0..101      150 us    149..152    x 1.5
p90           200 us                  301 us                x 1.5
p99           400 us    380..424      601 us    571..637    x 1.5
p99.9         900 us                 1.35 ms*               x 1.5
rate        20,000/s                13,307/s               x 0.67
own CPU      4.00 us                 4.00 us               x 1.00
* mostly pummel's own delay
";
    assert_eq!(screen(&[two_runs()], 80), wide);
    let narrow = "\
A  ca.json   127.0.0.1:11211, open loop at 10,000/s
B  cb.json   127.0.0.1:28073, open loop at 15,000/s

Result   NOT DECIDED: one run a side cannot show that the
         systems differ (pummel ab can)
Differs  --rate 10k, 15k; --server 127.0.0.1:11211,
         127.0.0.1:28073
Trust    p99 is partly pummel's own in one of the two runs
Order    A ran before B: a slower hour would look the same

response          A  95 % sure          B  95 % sure  B to A
p50          100 us  99.0..101     150 us   149..152   x 1.5
p90          200 us                301 us              x 1.5
p99          400 us   380..424     601 us   571..637   x 1.5
p99.9        900 us               1.35 ms*             x 1.5
rate       20,000/s              13,307/s             x 0.67
own CPU     4.00 us               4.00 us             x 1.00
* mostly pummel's own delay
";
    assert_eq!(screen(&[two_runs()], 60), narrow);
}

#[test]
fn three_sides_of_which_one_is_a_thousand_times_slower() {
    let wide = "\
A  a.json   127.0.0.1:11211, open loop at 20,000/s
B  b.json   127.0.0.1:11211, open loop at 20,000/s
C  c.json   127.0.0.1:11211, open loop at 20,000/s

Result   NOT DECIDED: one run a side cannot show that the systems differ (pummel
         ab can)
Differs  --depth 1, 1, 2
Trust    reliable in all 3 runs
Order    A ran before B and C: a slower hour would look the same

response           A           B   B to A           C   C to A
p50           100 us      130 us    x 1.3      100 ms  x 1,000
p90           200 us      260 us    x 1.3      200 ms  x 1,000
p99           400 us      520 us    x 1.3      400 ms  x 1,000
p99.9         900 us     1.17 ms    x 1.3      900 ms  x 1,000
rate        20,000/s    15,385/s   x 0.77      20.0/s x 0.0010
own CPU      4.00 us     4.00 us   x 1.00     4.00 us   x 1.00
";
    assert_eq!(screen(&several(&[1.0, 1.3, 1_000.0]), 80), wide);
    let narrow = "\
A  a.json   127.0.0.1:11211, open loop at 20,000/s
B  b.json   127.0.0.1:11211, open loop at 20,000/s
C  c.json   127.0.0.1:11211, open loop at 20,000/s

Result   NOT DECIDED: one run a side cannot show that the
         systems differ (pummel ab can)
Differs  --depth 1, 1, 2
Trust    reliable in all 3 runs
Order    A ran before B and C: a slower hour would look the
         same

response        A        B  B to A        C   C to A
p50        100 us   130 us   x 1.3   100 ms  x 1,000
p90        200 us   260 us   x 1.3   200 ms  x 1,000
p99        400 us   520 us   x 1.3   400 ms  x 1,000
p99.9      900 us  1.17 ms   x 1.3   900 ms  x 1,000
rate     20,000/s 15,385/s  x 0.77   20.0/s x 0.0010
own CPU   4.00 us  4.00 us  x 1.00  4.00 us   x 1.00
";
    assert_eq!(screen(&several(&[1.0, 1.3, 1_000.0]), 60), narrow);
}

#[test]
fn nothing_is_printed_of_which_no_pair_knows_anything() {
    let bare = pairs(0.0).map(|side| Side { runs: Vec::new(), ..side });
    let made = Comparison::of_pairs(PairCommand::Ab, bare, &Question::default());
    let cut = made.ended(9, Some("nothing listens there".to_owned()), false);
    assert_eq!(Headline::of(from_ref(&cut)), Headline { words: vec![Word::Partial], status: 1 });
    let said = screen(&[cut], 80);
    assert!(said.ends_with("Result   PARTIAL: 0 of 9 pairs, nothing listens there\n"), "{said}");
}

#[test]
fn the_first_word_decides_the_exit_status() {
    let of = |comparison: Comparison| {
        let Headline { words, status } = Headline::of(&[comparison]);
        (words, status)
    };
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.05);
    assert_eq!(of(worse()), (vec![Word::Worse], 3));
    // A noisy hour is no failure, unless something is to be decided.
    assert_eq!(of(noisy(&Question::default())), (vec![Word::NotDecided], 0));
    assert_eq!(of(noisy(&gate)), (vec![Word::NotDecided], 1));
    let calm = Question { accept_unsteady: true, ..gate.clone() };
    assert_eq!(of(noisy(&calm)), (vec![], 0), "steady runs that show nothing pass the gate");
    let within = claim(ClaimKind::Within, Metric::P99, 0.5);
    assert_eq!(of(noisy(&Question { accept_unsteady: true, ..within })), (vec![Word::NotSure], 3));
    assert_eq!(of(two_runs()), (vec![Word::NotDecided], 0));
    let cut = worse().ended(9, Some("interrupted".to_owned()), true);
    assert_eq!(of(cut), (vec![Word::Interrupted, Word::Worse], 130));
    let gone = worse().ended(9, Some("gone".to_owned()), false);
    assert_eq!(of(gone), (vec![Word::Partial, Word::Worse], 1));
    let mut wrong = worse();
    wrong.sides[1].runs[0].wrong_values = Some(2);
    assert_eq!(of(wrong), (vec![Word::WrongValues, Word::Worse], 3));
}

#[test]
fn the_interval_decides_of_runs_that_were_not_steady() {
    let gate = |kind, limit| claim(kind, Metric::P99, limit);
    let status = |planted: f64, question: &Question| {
        let mut sides = pairs(planted);
        sides[0].runs[3].steady = Some(false);
        Headline::of(&[Comparison::of_results(sides, question)]).status
    };
    for (planted, kind, limit, expected) in [
        (0.3, ClaimKind::Worse, 0.05, 3),
        (0.0, ClaimKind::Worse, 0.05, 0),
        (0.05, ClaimKind::Worse, 0.05, 1),
        (0.0, ClaimKind::Within, 0.05, 0),
        (0.05, ClaimKind::Within, 0.05, 1),
        (0.3, ClaimKind::Within, 0.05, 3),
    ] {
        assert_eq!(status(planted, &gate(kind, limit)), expected, "{planted} {kind:?} {limit}");
    }
}

#[test]
fn further_judged_figures_have_lines_of_their_own() {
    let claims = [(Metric::P99, 0.05), (Metric::Rate, 0.01), (Metric::ServerCpu, 0.2)];
    let claims = claims.map(|(metric, limit)| Claim { metric, limit, kind: ClaimKind::Worse });
    let mut scales = vec![(1.0, 1.5); 9];
    scales.iter_mut().enumerate().for_each(|(place, pair)| pair.1 += place as f64 / 100.0);
    let pair = experiment(&scales, &Question { claims: claims.to_vec(), ..Question::default() });
    let said = screen(from_ref(&pair), 80);
    assert!(
        said.contains("Result   WORSE: p99 of B is 54 % higher (51..56 %), 5 % were allowed; p = 0.012\n"),
        "{said}"
    );
    assert!(
        said.contains("Judged   WORSE: the rate of B is 35 % lower (34..36 %), 1 % were allowed;"),
        "{said}"
    );
    assert!(
        said.contains("         CPU/req of B is 5.9 % higher (5.9..5.9 %), within the 20 % allowed;"),
        "{said}"
    );
    assert!(brief(&[pair]).starts_with("WORSE p99 A 400 us B 616 us +54 % (51..56), rate A 20,000/s "));
}

#[test]
fn medians_that_differ_in_direction_from_the_pairs_are_said() {
    let (low, high) = ((1.0, 0.9), (9.0, 7.0));
    let scales = [(1.0, 3.0), low, high, low, high, low, high];
    let said = words(&[Comparison::of_results(pairs_of(&scales), &Question::default())]);
    assert!(said.contains("Where they differ in direction, as for p99, the pairs decide"), "{said}");
    for planted in [0.0, 0.044, -0.044] {
        let said = words(&[Comparison::of_results(pairs(planted), &Question::default())]);
        assert!(!said.contains("differ in direction"), "{said}");
    }
}

#[test]
fn what_would_have_been_seen_is_no_change_beyond_a_doubling() {
    let scales: Vec<(f64, f64)> = (0..10)
        .map(|pair| (1.0, [3.0, 0.3, 2.0, 0.5, 1.0][pair % 5] * (1.0 + pair as f64 / 100.0)))
        .collect();
    let said = screen(&[Comparison::of_results(pairs_of(&scales), &Question::default())], 120);
    assert!(said.contains("; only a factor of ") && !said.contains("% would have been seen"), "{said}");
}

#[test]
fn runs_that_are_not_complete_are_said_of_one_run_a_side_too() {
    let mut sides = apart(0.0, 1);
    let said = |sides: &[Side; 2]| words(&[Comparison::of_results(sides.clone(), &Question::default())]);
    assert!(!said(&sides).contains("not complete"));
    sides[1].runs[0].status = Status::Partial;
    assert!(
        said(&sides).contains("; the run of B was not complete (pummel show says why) "),
        "{}",
        said(&sides)
    );
    let mut several = apart(0.0, 6);
    several[0].runs[2].status = Status::Interrupted;
    assert_eq!(said(&several).matches("1 of 6 runs of A was not complete").count(), 1, "{}", said(&several));
}

#[test]
fn what_differs_is_said_of_the_load_first_and_of_servers_whose_words_do_nothing() {
    let mut sides = pairs(0.0);
    let source = |version: &str, host: &str| SideSource {
        servers: vec![ServerSoftware {
            software: "memcached".to_owned(),
            version: version.to_owned(),
            serving_threads: None,
        }],
        machine: vec![Provenance { host: Some(host.to_owned()), ..Provenance::default() }],
        ..SideSource::default()
    };
    sides[0].source = source("1.6.18", "x");
    sides[1].source = source("1.6.31\u{1b}[2J", "x");
    sides[1].plan.servers = vec!["cache2:1".to_owned()];
    sides[1].plan.groups[0].rate = Some(40_000.0);
    let compared = Comparison::of_results(sides.clone(), &Question::default());
    let said = screen(from_ref(&compared), 120);
    let line = "Differs  --rate 20k, 40k; --server 127.0.0.1:11211, cache2:1; server 1: version 1.6.18, 1.6.31?[2J\n";
    assert!(said.contains(line), "{said}");
    let whole = draw(&view(&[compared], Wanted::Everything), Paper::default());
    assert!(whole.contains("\nDiffers  --rate 20k, 40k\n         --server "), "{whole}");
    // The lines of an experiment's sides tell how they differ.
    let pair = Comparison::of_pairs(PairCommand::Ab, sides.clone(), &Question::default());
    let said = screen(&[pair], 120);
    assert!(said.contains("\nDiffers  server 1: version 1.6.18, ") && !said.contains("--rate 20k"), "{said}");
    // A result that says less is no difference.
    sides[1] = Side { source: SideSource::default(), ..sides[0].clone() };
    let said = screen(&[Comparison::of_results(sides, &Question::default())], 120);
    assert!(!said.contains("Differs"), "{said}");
}

#[test]
fn eight_sides_lose_no_column_at_any_width() {
    let compared = several(&[1.0, 1.3, 1_000.0, 2.0, 0.5, 0.1, 3.0, 1.0]);
    for width in [48, 60, 80, 100, 120] {
        let text = screen(&compared, width);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width), "{width}: {longest:?}\n{text}");
        let headings =
            text.lines().filter(|line| line.starts_with("response ")).flat_map(str::split_whitespace);
        let sides: Vec<&str> = headings.filter(|word| SIDE_NAMES.contains(word)).collect();
        assert!(SIDE_NAMES.iter().all(|name| sides.contains(name)), "{width}: {text}");
    }
}

#[test]
fn everything_has_each_run_and_the_rule() {
    let text = draw(&view(&[worse()], Wanted::Everything), Paper::default());
    assert!(
        text.contains("\nruns of A      req/s        p50") && text.contains("\nrun 6         10,526 "),
        "{text}"
    );
    assert!(text.contains("Of 100 experiments with equal sides at most 5 call it different\n"), "{text}");
    assert!(text.contains("\nown CPU ") && !screen(&[worse()], 80).contains("own CPU"), "{text}");
}

#[test]
fn the_word_and_the_figure_have_their_colours_and_nothing_else_has() {
    let paper = Paper { colours: Colours::All, ..Paper::default() };
    let text = draw(&view(&[worse()], Wanted::Screen), paper);
    let result = "Result   \u{1b}[1;31mWORSE\u{1b}[0m: p99 of B is \u{1b}[1m50 % higher\u{1b}[0m (22..90 %)";
    assert!(text.contains(result), "{text:?}");
    // The load and the notes are dim, and the sides are not.
    assert_eq!(text.matches("\u{1b}[2m").count(), 2, "{text:?}");
    let said = draw(&view(&[two_runs()], Wanted::Screen), paper);
    assert!(
        said.starts_with("A  ca.json   127.0.0.1:11211, ") && said.contains("\u{1b}[1;33mNOT DECIDED"),
        "{said:?}"
    );
}
