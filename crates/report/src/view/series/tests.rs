//! Tests of the view of a series: what stands on the screen of each command, at two widths, and the exit status beside it.

use pummel_logic::plan::{Arrivals, Data, Group, Mix, Phase, Plan, Stop, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::limit::{Cause, Clients, InFlight, SharedMachine, Side, ThreadTime};
use pummel_measure::measurement::Status;
use pummel_measure::rate_search::{NoRate, Recovery, Unsound};

use super::{SeriesHeadline, brief, view};
use crate::curve;
use crate::document::trust::ReliableFigures;
use crate::document::{
    CurveDocument, CurveGoal, CurveLevel, CurveOverload, CurveRun, CurveSearch, Named, OtherOutcomes,
};
use crate::screen::{Colours, Paper, draw};
use crate::text::Detail;
use crate::view::run::Wanted;

/// The plan of a first run: 50 connections in closed loop for so many seconds.
fn plan(seconds: u64, records: u64) -> Plan {
    Plan {
        servers: vec!["127.0.0.1:28071".to_owned()],
        data: Data { records, ..Data::default() },
        groups: vec![Group { clients: 50, arrivals: Arrivals::Closed, ..Group::default() }],
        phases: vec![Phase {
            name: "measure".to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)])),
            stop: Stop { time_ns: Some(seconds * SECOND), requests: None },
            recorded: true,
        }],
        ..Plan::default()
    }
}

fn series(command: &str, software: &str, plan: &Plan) -> CurveDocument {
    let mut document = CurveDocument::new(command, plan, Vec::new());
    "0.1.0".clone_into(&mut document.tool.version);
    document.software = vec![software.to_owned()];
    document
}

/// A run that was asked for a rate, with the rate that was done, p50 and p99.
fn run(asked_rate: Option<f64>, rate: f64, [p50, p99]: [f64; 2]) -> CurveRun {
    let names = ["p50", "p90", "p95", "p99", "p99.9", "p99.99"];
    let times = [p50, p50 * 2.0, p99 * 0.8, p99, p99 * 3.0, p99 * 4.0].map(Some);
    CurveRun {
        role: "curve".to_owned(),
        asked_rate,
        rate,
        seconds: 10.0,
        due_s: asked_rate.map(|_| 10.0),
        requests: 1_000,
        response_us: names.into_iter().zip(times).collect(),
        carried: true,
        steady: Some(true),
        limit: "none".to_owned(),
        trust: true,
        reliable: ReliableFigures::All,
        ..CurveRun::default()
    }
}

/// A run of a search that met or missed the goal, with the interval of p99.
fn judged(
    asked: f64,
    rate: f64,
    times: [f64; 2],
    ends: [Option<f64>; 2],
    (met, sure): (bool, bool),
) -> CurveRun {
    let response_ci_us: Named<[Option<f64>; 2]> = [("p99", ends)].into_iter().collect();
    let judged = run(Some(asked), rate, times);
    CurveRun { role: "around".to_owned(), response_ci_us, met: Some(met), sure: Some(sure), ..judged }
}

fn occupied() -> Cause {
    Cause::ServerOccupied { server: None, by: pummel_measure::limit::Occupied::InCommands(0.98), cpu: None }
}

fn shared() -> Cause {
    let machine = SharedMachine {
        cpus: 2,
        is_whole: true,
        busy: 0.95,
        client_cpus: 0.9,
        server_cpus: 0.9,
        software: Some("memcached".to_owned()),
        both_waited: true,
    };
    let waiting = Side::Client;
    Cause::SharedCpu {
        waiting,
        agent: None,
        server: None,
        cpus: vec![0, 1],
        share: 0.2,
        machine: Some(machine),
    }
}

fn limited(run: CurveRun, cause: Cause) -> CurveRun {
    let limit = match &cause {
        Cause::SharedCpu { .. } => "generator",
        Cause::ClosedLoop(_) => "connections",
        _ => "server",
    };
    CurveRun { limit: limit.to_owned(), cause: Some(cause), ..run }
}

/// The search of drawing 34: 18 runs of 10 s, of which six have a tail that is partly the generator's.
fn found() -> CurveDocument {
    let mut document = series("search", "memcached 1.6.18-pummel", &plan(10, 1_000));
    document.goals = vec![CurveGoal { quantile: 0.99, limit_us: 5_000.0 }];
    let peak = limited(run(None, 4_990.0, [9_900.0, 14_000.0]), occupied());
    let known = |low: f64, high: f64| [Some(low), Some(high)];
    let halving = |asked: f64, p99: f64, met| {
        judged(asked, asked, [500.0, p99], known(p99 * 0.9, p99 * 1.1), (met, true))
    };
    let mut runs = vec![
        CurveRun { role: "peak".to_owned(), met: Some(false), sure: Some(true), ..peak },
        halving(2_495.0, 2_000.0, true),
        judged(3_743.0, 3_730.0, [629.0, 4_710.0], known(4_020.0, 6_050.0), (true, false)),
        halving(4_367.0, 8_000.0, false),
        halving(4_055.0, 5_900.0, false),
        judged(3_574.0, 3_571.0, [574.0, 4_530.0], [Some(2_280.0), None], (true, false)),
        judged(3_704.0, 3_717.0, [580.0, 4_040.0], known(3_720.0, 4_490.0), (true, true)),
        judged(3_834.0, 3_834.0, [718.0, 5_830.0], known(5_060.0, 6_870.0), (false, true)),
        judged(3_964.0, 3_947.0, [756.0, 5_810.0], known(4_920.0, 7_290.0), (false, false)),
    ];
    runs.remove(4);
    runs.extend(
        [4_094.0, 4_224.0, 4_354.0, 4_484.0, 4_614.0, 4_744.0, 4_874.0]
            .map(|asked| halving(asked, 5_930.0, false)),
    );
    let confirm = judged(3_651.0, 3_648.0, [583.0, 4_090.0], known(3_660.0, 4_790.0), (true, true));
    runs.push(CurveRun { role: "confirm".to_owned(), ..confirm });
    runs.push(CurveRun { role: "overload".to_owned(), carried: false, ..halving(4_637.0, 900_000.0, false) });
    runs.push(CurveRun { role: "after".to_owned(), ..halving(3_651.0, 4_500.0, true) });
    for run in runs.iter_mut().rev().skip(3).take(6) {
        (run.trust, run.reliable) = (false, ReliableFigures::P50);
    }
    document.runs = runs;
    document.found_rate = Some(3_651.0);
    document.search = Some(CurveSearch {
        low: Some(3_651.0),
        high: Some(3_864.0),
        closed_loop_rate: 4_990.0,
        line_runs: 10,
        overload: Some(CurveOverload {
            rate: 4_637.0,
            recovery: Some(Recovery { slower: 0.0, seconds: 0.0, lasted: false }),
        }),
        ..CurveSearch::default()
    });
    document
}

/// The search of drawing 35, whose runs of 3 s are too short for a proof.
fn not_sure() -> CurveDocument {
    let mut document = found();
    document.plan = Some(plan(3, 1_000).told());
    document.found_rate = None;
    document.runs.retain(|run| run.role != "overload" && run.role != "after");
    for run in &mut document.runs {
        run.due_s = run.asked_rate.map(|_| 3.0);
        (run.trust, run.reliable) = (true, ReliableFigures::All);
    }
    let confirm = document.runs.last_mut().expect("a run that was to confirm the rate");
    (confirm.sure, confirm.response_ci_us) =
        (Some(false), [("p99", [Some(3_190.0), None])].into_iter().collect());
    let search = document.search.as_mut().expect("a search");
    search.overload = None;
    search.why = Some(NoRate::TooShort { rate: 3_651.0 });
    document
}

/// The search of drawing 36, which measured the generator.
fn no_answer() -> CurveDocument {
    let mut document = found();
    document.plan = Some(plan(3, 1_000).told());
    document.found_rate = None;
    let of_generator = |asked| CurveRun {
        met: Some(false),
        sure: Some(true),
        ..limited(run(Some(asked), asked, [90.0, 9_000.0]), shared())
    };
    let peak = limited(run(None, 149_697.0, [300.0, 900.0]), occupied());
    document.runs = vec![
        CurveRun { role: "peak".to_owned(), ..peak },
        of_generator(74_848.0),
        of_generator(74_848.0),
        of_generator(88_804.0),
    ];
    document.search = Some(CurveSearch {
        closed_loop_rate: 149_697.0,
        why: Some(NoRate::Unsound { runs: 3, why: Unsound::Generator(shared()) }),
        ..CurveSearch::default()
    });
    document
}

/// The curve of drawing 41 with fewer of the runs that it does not show.
fn bent() -> CurveDocument {
    let mut document = series("curve", "memcached 1.6.18", &plan(2, 10_000));
    let open = |asked: f64, rate: f64, p50: f64, p99: f64| run(Some(asked), rate, [p50, p99]);
    let flat = [13_761.0, 20_000.0, 30_000.0, 40_000.0].map(|asked| open(asked, asked, 31.0, 470.0));
    let mut runs = vec![limited(run(None, 137_614.0, [335.0, 723.0]), occupied())];
    runs.extend(flat);
    runs.extend([
        open(50_785.0, 50_902.0, 31.1, 485.0),
        limited(open(68_644.0, 68_421.0, 32.1, 994.0), shared()),
        limited(open(82_829.0, 82_299.0, 32.4, 2_830.0), shared()),
        open(86_632.0, 86_311.0, 22.0, 853.0),
        limited(open(104_980.0, 104_677.0, 22.9, 1_680.0), occupied()),
        limited(open(123_852.0, 124_244.0, 147.0, 4_430.0), shared()),
    ]);
    document.runs = runs;
    document
}

fn in_flight() -> Cause {
    Cause::ClosedLoop(InFlight {
        flown: 1.0,
        slots: Some(1),
        is_below: false,
        clients: Clients { connections: 1, depth: Some(1), batch: None, are_mean: false },
        response_p50_ns: 60_000,
        alone_ns: None,
        server_busy: None,
        server_busy_is_bound: false,
        client_threads: 1,
        client_busy: 0.2,
        more: None,
    })
}

fn server_cpu() -> Cause {
    Cause::ServerCpu {
        server: None,
        threads: Some(1),
        busiest: ThreadTime { cpu: 0.97, waited: None },
        others: None,
        client_threads: 1,
        client_busy: 0.7,
    }
}

/// The scan of drawing 42.
fn scanned() -> CurveDocument {
    let mut document = series("scan", "memcached 1.6.18", &plan(1, 10_000));
    let rows = [
        (1, 16_653.0, 60.7, 111.0),
        (2, 31_555.0, 60.8, 143.0),
        (3, 84_983.0, 29.6, 104.0),
        (6, 128_269.0, 40.6, 137.0),
        (11, 135_139.0, 68.9, 182.0),
        (20, 141_667.0, 133.0, 298.0),
        (35, 146_318.0, 227.0, 467.0),
        (64, 148_411.0, 415.0, 798.0),
    ];
    for (n, rate, p50, p99) in rows {
        let cause = if n < 3 { in_flight() } else { server_cpu() };
        let level = Some(CurveLevel { of: "connections".to_owned(), n });
        let own =
            CurveRun { level, trust: false, reliable: ReliableFigures::None, ..run(None, rate, [p50, p99]) };
        curve::push(&mut document, limited(own, cause));
    }
    document
}

/// The screen of a series at some width.
fn screen(document: &CurveDocument, width: usize) -> String {
    draw(&view(document, Wanted::Screen), Paper::of_width(width))
}

#[test]
fn a_rate_that_was_found_stands_first_with_its_neighbours() {
    assert_eq!(
        screen(&found(), 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18-pummel, text)   18 runs of 10 s
50 connections, open loop; get 90 %, set 10 %; 1,000 records

Result   3,651 req/s meet p99 <= 5 ms, with 95 % confidence; the limit is
         between 3,651 and 3,864/s. A closed loop does 4,990/s
Trust    reliable in 12 of 18 runs, p99 partly pummel's own in 6
Limit    the server. After 5 s at 4,637/s it was at once as fast as before

  asked/s    done/s        p50        p99   95 % sure   goal
    3,574     3,571     574 us    4.53 ms      2.28..   met?
    3,651     3,648     583 us    4.09 ms  3.66..4.79   met
    3,704     3,717     580 us    4.04 ms  3.72..4.49   met
    3,743     3,730     629 us    4.71 ms  4.02..6.05   met?
    3,834     3,834     718 us    5.83 ms  5.06..6.87   missed
    3,964     3,947     756 us    5.81 ms  4.92..7.29   missed?
    4,094     4,094     500 us    5.93 ms  5.34..6.52   missed
11 more runs: -v
"
    );
    assert_eq!(
        screen(&found(), 60),
        "\
pummel 0.1.0 127.0.0.1:28071 (memcached 1.6.18-pummel, text)
50 connections, open loop; get 90 %, set 10 %; 1,000
records; 18 runs of 10 s

Result   3,651 req/s meet p99 <= 5 ms, with 95 % confidence;
         the limit is between 3,651 and 3,864/s. A closed
         loop does 4,990/s
Trust    reliable in 12 of 18 runs, p99 partly pummel's own
         in 6
Limit    the server. After 5 s at 4,637/s it was at once as
         fast as before

  asked/s   done/s       p50       p99  95 % sure   goal
    3,574    3,571    574 us   4.53 ms     2.28..   met?
    3,651    3,648    583 us   4.09 ms 3.66..4.79   met
    3,704    3,717    580 us   4.04 ms 3.72..4.49   met
    3,743    3,730    629 us   4.71 ms 4.02..6.05   met?
    3,834    3,834    718 us   5.83 ms 5.06..6.87   missed
    3,964    3,947    756 us   5.81 ms 4.92..7.29   missed?
    4,094    4,094    500 us   5.93 ms 5.34..6.52   missed
11 more runs: -v
"
    );
}

#[test]
fn a_search_that_is_not_sure_says_how_long_its_runs_have_to_be() {
    let document = not_sure();
    assert_eq!(
        screen(&document, 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18-pummel, text)   16 runs of 3 s
50 connections, open loop; get 90 %, set 10 %; 1,000 records

Result   NOT SURE: 3,651 req/s met p99 <= 5 ms (4.09 ms), but 3 s is too short
         to be 95 % sure. The limit is between 3,651 and 3,864/s. Again with
         -t 10s
Trust    reliable in all runs
Limit    the server: it does 4,990/s in a closed loop

  asked/s    done/s        p50        p99   95 % sure   goal
    3,574     3,571     574 us    4.53 ms      2.28..   met?
    3,651     3,648     583 us    4.09 ms      3.19..   met?
    3,704     3,717     580 us    4.04 ms  3.72..4.49   met
    3,743     3,730     629 us    4.71 ms  4.02..6.05   met?
    3,834     3,834     718 us    5.83 ms  5.06..6.87   missed
    3,964     3,947     756 us    5.81 ms  4.92..7.29   missed?
    4,094     4,094     500 us    5.93 ms  5.34..6.52   missed
9 more runs: -v
"
    );
    assert_eq!(SeriesHeadline::of(&document).status, 3);
}

#[test]
fn a_search_that_measured_the_generator_has_no_answer_and_no_table() {
    let document = no_answer();
    assert_eq!(
        screen(&document, 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18-pummel, text)   4 runs of 3 s
50 connections, open loop; get 90 %, set 10 %; 1,000 records

Result   NO ANSWER: three runs in a row were limited by pummel itself (the last
         at 88,804/s), so they say nothing of the server. In a closed loop it
         does 149,697/s
Limit    this machine: server and pummel share its 2 CPUs. Send from another
         machine, or give each its own (taskset, --cpus)

4 runs: -v
"
    );
    assert_eq!(SeriesHeadline::of(&document).status, 3);
    let coloured =
        draw(&view(&document, Wanted::Screen), Paper { colours: Colours::All, ..Paper::default() });
    assert!(coloured.contains("\u{1b}[1;33mNO ANSWER\u{1b}[0m: three"), "{coloured}");
}

#[test]
fn a_curve_shows_where_it_bends_and_which_runs_are_not_the_servers() {
    let document = bent();
    assert_eq!(
        screen(&document, 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18, text)   11 runs of 2 s
50 connections, open loop; get 90 %, set 10 %; 10,000 records

Result   p99 is 485 us at 50,800 req/s; a closed loop does 137,600/s
Trust    NOT RELIABLE above 51,000/s: pummel was the limit in 3 of 11 runs (-)
Limit    this machine: server and pummel share its 2 CPUs. Send from another
         machine, or give each its own (taskset, --cpus)

  asked/s    done/s        p50        p99      p99.9   limit
   50,785    50,902    31.1 us     485 us    1.46 ms
   68,644    68,421    32.1 us     994 us    2.98 ms   - pummel
   82,829    82,299    32.4 us    2.83 ms    8.49 ms   - pummel
   86,632    86,311    22.0 us     853 us    2.56 ms
  104,980   104,677    22.9 us    1.68 ms    5.04 ms   server
  123,852   124,244     147 us    4.43 ms    13.3 ms   - pummel
   closed   137,614     335 us     723 us    2.17 ms   server
4 more runs: -v
"
    );
    assert_eq!(SeriesHeadline::of(&document).status, 0);
    let table = screen(&document, 60).lines().skip(12).collect::<Vec<_>>().join("\n");
    assert!(
        table.starts_with("  asked/s   done/s       p50       p99     p99.9   limit\n   50,785 "),
        "{table}"
    );
}

#[test]
fn a_scan_heads_its_column_with_what_it_varies() {
    let document = scanned();
    assert_eq!(
        screen(&document, 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18, text)   8 runs of 1 s
closed loop; get 90 %, set 10 %; 10,000 records

Result   148,400 req/s at 64 connections; 90 % of that from 11 connections on
Trust    NOT RELIABLE: the times are partly pummel's own in all 8 runs
Limit    the server's CPU from 3 connections on; below, what is in flight

connections     req/s        p50        p99   limit
          1    16,653    60.7 us     111 us   in flight
          2    31,555    60.8 us     143 us   in flight
          3    84,983    29.6 us     104 us   server
          6   128,269    40.6 us     137 us   server
         11   135,139    68.9 us     182 us   server
         20   141,667     133 us     298 us   server
         35   146,318     227 us     467 us   server
         64   148,411     415 us     798 us   server
No law of scaling fits: 3 connections do 5 times as much as 1
"
    );
    assert_eq!(brief(&document), "148,411/s at 64 connections");
}

#[test]
fn a_series_that_was_interrupted_tells_what_it_knows() {
    let mut document = found();
    document.runs.truncate(5);
    (document.status, document.reason) = (Status::Interrupted, Some("interrupted".to_owned()));
    (document.found_rate, document.search) = (None, None);
    assert_eq!(
        screen(&document, 80),
        "\
pummel 0.1.0   127.0.0.1:28071 (memcached 1.6.18-pummel, text)   5 runs of 10 s
50 connections, open loop; get 90 %, set 10 %; 1,000 records

Result   INTERRUPTED after 5 runs. No rate is known yet: 3,743 req/s met p99
         <= 5 ms in a run
Trust    reliable in all runs

  asked/s    done/s        p50        p99   95 % sure   goal
    2,495     2,495     500 us    2.00 ms  1.80..2.20   met
    3,574     3,571     574 us    4.53 ms      2.28..   met?
    3,743     3,730     629 us    4.71 ms  4.02..6.05   met?
    4,367     4,367     500 us    8.00 ms  7.20..8.80   missed
   closed     4,990    9.90 ms    14.0 ms               missed
"
    );
    assert_eq!(SeriesHeadline::of(&document).status, 130);
    document.runs.clear();
    assert!(screen(&document, 80).ends_with("Result   INTERRUPTED before the first run was over\n"));
    let mut scan = scanned();
    scan.runs.truncate(3);
    (scan.status, scan.reason) = (Status::Partial, Some("a:1: connection refused".to_owned()));
    let said = screen(&scan, 80);
    assert!(
        said.contains("Result   PARTIAL: a:1: connection refused. 85,000 req/s at 3 connections\n"),
        "{said}"
    );
    assert_eq!(SeriesHeadline::of(&scan).status, 1);
    scan.reason = None;
    let said = screen(&scan, 80);
    assert!(said.contains("Result   PARTIAL after 3 runs. 85,000 req/s at 3 connections\n"), "{said}");
}

#[test]
fn the_first_word_decides_the_exit_status_of_a_curve_with_goals() {
    let mut document = bent();
    document.goals = vec![CurveGoal { quantile: 0.99, limit_us: 1_000.0 }];
    document.runs.iter_mut().for_each(|run| (run.met, run.sure) = (Some(true), Some(true)));
    assert_eq!(SeriesHeadline::of(&document).status, 0);
    assert!(screen(&document, 80).contains("Goal     p99 <= 1 ms was met in all 11 runs\n"));
    document.runs[3].met = None;
    assert_eq!(SeriesHeadline::of(&document).status, 3);
    assert!(screen(&document, 80).contains("Result   GOAL UNDECIDED: no request was due in 1 of 11 runs"));
    document.runs[4].met = Some(false);
    let said = screen(&document, 80);
    assert!(
        said.contains("Result   GOAL MISSED: p99 <= 1 ms in 1 of 11 runs, the first at 40,000/s. p99"),
        "{said}"
    );
    assert_eq!(brief(&document), "GOAL MISSED p99 485 us at 50,785/s, closed loop 137,614/s");
    let of_generator = document.runs.iter_mut().find(|run| run.is_of_generator());
    of_generator.expect("a run that the generator limited").met = Some(false);
    assert!(screen(&document, 80).contains("   - pummel   missed\n"), "a gate counts it");
    document.runs[0].wrong_values = Some(2);
    let said = screen(&document, 80);
    assert!(
        said.contains("Result   GOAL MISSED, WRONG VALUES: p99") && said.contains("Verify   wrong: 2 values"),
        "{said}"
    );
}

#[test]
fn requests_of_all_runs_that_stored_or_found_nothing_are_told_once() {
    let mut document = not_sure();
    let count = document.runs.len() as u64;
    for run in &mut document.runs {
        let others =
            OtherOutcomes { op: "incr".to_owned(), answered: 2, not_found: 1, ..OtherOutcomes::default() };
        run.other_outcomes = vec![others];
    }
    let told = format!("\nOutcomes incr: {count} of {} without a record of their key\n", 2 * count);
    assert!(screen(&document, 80).contains(&told), "{}", screen(&document, 80));
}

#[test]
fn a_search_without_an_answer_says_what_is_missing() {
    let said = |why: NoRate, has_met: bool| {
        let mut document = not_sure();
        if !has_met {
            document.runs.iter_mut().for_each(|run| (run.met, run.sure) = (Some(false), Some(true)));
        }
        document.search.as_mut().expect("a search").why = Some(why);
        let text = view(&document, Wanted::Screen).lines[0].text.words();
        assert_eq!(SeriesHeadline::of(&document).status, 3);
        text
    };
    assert_eq!(
        said(NoRate::MissedAt { rate: 312.0 }, false),
        "NO ANSWER: p99 <= 5 ms was missed at 312/s too, the least rate that was tried. A closed loop does 4,990/s"
    );
    let words = said(NoRate::NoRise, true);
    assert!(
        words.contains("(4.09 ms), but the times do not rise clearly with the rate there. The limit"),
        "{words}"
    );
    let words = said(NoRate::NotCarried, true);
    assert!(words.contains("but rates around it were not carried: ") && !words.contains("Again"), "{words}");
    let unsteady = NoRate::Unsound { runs: 3, why: Unsound::Unsteady };
    assert!(said(unsteady.clone(), true).contains("but three runs in a row were not steady. "));
    assert!(said(unsteady, false).starts_with("NO ANSWER: three runs in a row were not steady (the last at"));
    let idle = NoRate::Unsound { runs: 3, why: Unsound::Idle };
    assert!(said(idle, false).starts_with("NO ANSWER: no request was due in three runs in a row"));
    assert_eq!(said(NoRate::NothingCompleted, false), "NO ANSWER: nothing was answered in a closed loop");
}

#[test]
fn an_answer_says_what_bounds_it() {
    let said = |change: &dyn Fn(&mut CurveSearch)| {
        let mut document = found();
        change(document.search.as_mut().expect("a search"));
        let lines = view(&document, Wanted::Screen).lines;
        let of = |label: &str| lines.iter().find(|line| line.label == label).map(|line| line.text.words());
        (of("Result").unwrap_or_default(), of("Limit").unwrap_or_default())
    };
    let at_least = |search: &mut CurveSearch| (search.low, search.high, search.at_least) = (None, None, true);
    let most = "3,651 req/s at least meet p99 <= 5 ms, with 95 % confidence; more were not asked for. A closed loop does 4,990/s";
    assert_eq!(said(&at_least).0, most);
    let open = |search: &mut CurveSearch| {
        at_least(search);
        search.open_above = true;
    };
    assert!(
        said(&open).0.contains("; runs at greater rates met it too, but were too short to be sure. A closed")
    );
    let carried = |search: &mut CurveSearch| search.not_carried = Some(3_864.0);
    assert!(
        said(&carried).0.contains("and 3,864/s: 3,864/s were not answered as fast as they were asked, while")
    );
    let wide = |search: &mut CurveSearch| search.precise = Some(false);
    assert!(
        said(&wide)
            .0
            .contains("3,864/s. That is wider than --precision asks for: longer runs (-t) are surer. A")
    );
    let generator =
        |search: &mut CurveSearch| search.closed_loop_generator = Some("its thread was busy".to_owned());
    let (result, limit) = said(&generator);
    assert!(
        !result.contains("closed loop") && limit.starts_with("pummel, at 4,990/s in a closed loop, so"),
        "{limit}"
    );
    let left = |slower: f64, lasted: bool| {
        said(&|search: &mut CurveSearch| {
            let recovery = Some(Recovery { slower, seconds: 0.3, lasted });
            search.overload = Some(CurveOverload { rate: 4_637.0, recovery });
        })
        .1
    };
    assert_eq!(left(0.12, false), "the server. After 5 s at 4,637/s it was 12 % slower for 0.3 s");
    assert!(left(52.58, true).ends_with("requests took 53.6 times as long to the end of the run"));
}

#[test]
fn no_line_is_wider_than_the_paper_and_everything_has_all_runs() {
    for document in [found(), not_sure(), no_answer(), bent(), scanned()] {
        for width in [48, 60, 80, 120] {
            for detail in [Detail::Screen, Detail::Everything] {
                let text = curve::text(&document, detail, Paper::of_width(width));
                let longest = text.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(width), "{width}: {longest:?}\n{text}");
            }
        }
        let everything = view(&document, Wanted::Everything);
        assert_eq!(everything.tables[0].rows.len(), document.runs.len());
        assert!(curve::text(&document, Detail::Line, Paper::default()).lines().count() == 1);
    }
}

#[test]
fn the_load_is_that_of_the_runs_at_a_rate_where_the_first_is_a_closed_loop() {
    let mut document = bent();
    let line = |document: &CurveDocument| screen(document, 80).lines().nth(1).unwrap_or_default().to_owned();
    "poisson".clone_into(&mut document.arrivals);
    assert_eq!(line(&document), "50 connections, open loop; get 90 %, set 10 %; 10,000 records");
    "constant gaps".clone_into(&mut document.arrivals);
    document.agents = 3;
    let words = "50 connections from 3 agents, open loop, constant gaps; get 90 %, set 10 %;";
    assert_eq!(line(&document), words);
    let mut scan = scanned();
    for run in &mut scan.runs {
        run.level = run.level.take().map(|level| CurveLevel { of: "threads".to_owned(), ..level });
    }
    assert_eq!(line(&scan), "50 connections, closed loop; get 90 %, set 10 %; 10,000 records");
    document.plan = None;
    assert!(
        screen(&document, 80).starts_with("pummel 0.1.0   11 runs\n\nResult "),
        "{}",
        screen(&document, 80)
    );
}
