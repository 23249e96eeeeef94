//! The whole report of runs in miniature.

use super::units::plain;
use super::*;
use crate::VERSION;
use crate::example::{Run, evidence, sample};
use pummel_logic::plan::{FailOn, Fill, Goal, TlsOptions, Work};
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::MILLISECOND;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::measurement::Keep;
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Sample;
use pummel_measure::uncertainty::{BASE_NS, Windows};

#[track_caller]
fn shows(run: &Run, expected: &str) {
    let text = run.document(render);
    let expected = expected.trim_start_matches('\n').replace("VERSION", VERSION);
    assert!(text == expected, "the report is now:\n{text}");
}

#[test]
fn a_run_of_gets_and_sets() {
    shows(&Run::new(Keep::Figures), NORMAL);
}

#[test]
fn below_the_times_stand_the_ends_of_their_intervals() {
    let text = Run::new(Keep::Figures).with_windows().document(render);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        let numbers = line.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        numbers.collect::<Vec<f64>>()
    };
    let (figures, from, to) = (row("get    response"), row("  from "), row("  to  "));
    let (low, mean, high) = (from[0], figures[1], to[0]);
    assert!(low < mean && mean < high, "{low} {mean} {high}: {text}");
    assert!(text.contains("from, to: 95 % intervals within this run. Rate "), "{text}");
}

#[test]
fn a_run_with_too_few_windows_says_so_and_one_without_says_nothing() {
    let words = "too short to say how sure";
    let mut short = Run::new(Keep::Figures);
    assert!(!short.document(render).contains(words), "a result of an older version");
    short.measurement.windows = Some(Windows::new(BASE_NS));
    assert!(short.document(render).contains(words));
}

#[test]
fn misses_are_told_apart_and_bytes_are_said_where_they_were_counted() {
    let mut run = Run::new(Keep::Figures);
    let mut work = run.plan.phases.pop().expect("it has phases");
    if let Work::Mix(mix) = &mut work.work {
        (mix.read_through_ns, mix.fill) = (Some(0), Fill::Add);
    }
    run.plan.phases.push(work);
    assert!(!run.document(render).contains("\nMisses "));
    let reads = CacheCounts {
        first_touch: 600,
        expired: 250,
        other: 150,
        hit_bytes: 3_000_000,
        missed_bytes: 1_000_000,
        ..CacheCounts::default()
    };
    let stores =
        CacheCounts { stored_bytes: 90_000, fills: 950, duplicate_fills: 50, ..CacheCounts::default() };
    run.interval(2, Keep::Figures, |interval| {
        (0..20).for_each(|i| interval.groups[0].record(&sample(i)));
        interval.groups[0].counts(Verb::Get).cache.add(&reads);
        interval.groups[0].counts(Verb::Set).cache.add(&stores);
    });
    let text = run.document(render);
    for line in [
        "Misses       1,000: 60.0 % of keys never stored before, 25.0 % expired, 15.0 % other (evicted,\n             deleted, or stored by the load)",
        "Values       75.0 % of the bytes asked for were found (3.00 MB of 4.00 MB); 90.0 kB stored",
        "Fills        950 after misses, 50 of them of keys that were there by then",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
    }
}

#[test]
fn what_a_run_was_not_to_be_is_said_with_what_it_was() {
    let mut run = Run::new(Keep::Figures);
    run.plan.fail_on = vec![FailOn::Limited, FailOn::Errors];
    let text = run.document(render);
    assert!(text.contains("\nFail on      limited: no, errors: no\n"), "{text}");
    run.interval(2, Keep::Figures, |interval| interval.groups[0].counts(Verb::Get).unsent += 20);
    let text = run.document(render);
    assert!(text.contains("s measured, FAILED ON ERRORS\n"), "{text}");
    assert!(text.contains("\nFail on      limited: no, errors: YES, FAILED\n"), "{text}");
}

#[test]
fn labels_stand_in_the_report_and_beside_the_plan_of_the_result() {
    let mut run = Run::new(Keep::Figures);
    let labels = [("branch", "main"), ("build", "12")];
    run.plan.labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let text = run.document(render);
    assert!(text.contains("\nLabels       branch=main, build=12\nSeed "), "{text}");
    let document = run.document(Clone::clone);
    assert_eq!((document.labels.len(), document.plan.labels.len()), (2, 0));
}

const NORMAL: &str = r"
pummel VERSION: complete, 2.00 s measured
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,800      1,800         900  1,700     100   94.4       0           0       0
set    200        200         100      -       -      -       0           0       0
all  2,000      2,000       1,000  1,700     100   94.4       0           0       0

in us             min  mean  stddev   p50   p90   p95   p99  p99.9  p99.99   max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9   93.6    93.6  93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4   90.9    90.9  90.9
       wait         0     0       0     0     0     0     0      0       0     0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68   2.68    2.68  2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
set    response  31.8  62.8    17.7  62.4  86.8  89.9  92.9   93.8    93.8  93.8
       service   30.0  60.2    17.6  59.9  84.4  87.4  89.8   90.4    90.4  90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00   4.00    4.00  4.00
       lag       1.00  1.76    0.49  1.68  2.36  2.53  2.53   2.53    2.53  2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  92.9   93.6    93.8  93.8

Bytes        120 kB sent (60.0 kB/s), 420 kB received (210 kB/s)
Connections  10 of 10 open at the start; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 6 (0.3 %) shared by replies that came together (an upper
             bound for all but the last)
Used         the client thread 12 %, the client's connections 0.6 %
Trust        Times are reliable: the generator's own delay (lag) is 3 % of p50 and 2 % of p99.
Limit        Nobody: requests were answered as they came (1,000/s). Next to give way: the client
             thread, used for 12 %, at about 8,000/s.
";

#[test]
fn an_encrypted_run_says_whom_it_believed_and_what_agreeing_took() {
    let mut run = Run::new(Keep::Figures);
    assert!(!run.document(render).contains("Handshakes"));
    run.plan.tls = Some(TlsOptions { ca: Some("ca.pem".to_owned()), ..TlsOptions::default() });
    assert!(run.document(render).contains("\nHandshakes   0 in full, 0 resumed\n"));
    (1..=10).for_each(|i| run.measurement.connections.handshake.record(i * MILLISECOND / 10));
    run.measurement.connections.resumed = 4;
    let text = run.document(render);
    for line in [
        "\nTLS          certificates of the servers checked against the authorities in ca.pem\n",
        "\nHandshakes   6 in full, 4 resumed; they took 500 us (p50) to 1.00 ms (max)\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    run.plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
    let text = run.document(render);
    assert!(text.contains("\nTLS          NOT VERIFIED: every certificate was accepted"), "{text}");
}

#[test]
fn a_run_with_timeouts_says_what_is_not_known() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..50 {
            let outcome = Outcome::Error(Fault::Timeout);
            interval.groups[0].record(&Sample { outcome, ..sample(i) });
        }
        interval.groups[0].counts(Verb::Get).unsent += 20;
    });
    run.measurement.connections.lost = 50;
    run.measurement.connections.reconnected = 50;
    run.plan.goals = vec![
        Goal { quantile: 0.5, limit_ns: MILLISECOND },
        Goal { quantile: 0.999, limit_ns: 2_000 * MILLISECOND },
    ];
    shows(&run, TIMEOUTS);
}
const TIMEOUTS: &str = r"
pummel VERSION: complete, 2.00 s measured, GOAL MISSED
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,865      1,800         900  1,700     100   94.4      45           0      20
set    205        200         100      -       -      -       5           0       0
all  2,070      2,000       1,000  1,700     100   94.4      50           0      20

in us             min  mean  stddev   p50   p90   p95          p99        p99.9       p99.99          max
get    response  31.1  62.4    17.7  63.1  88.5  92.5  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       service   30.1  60.5    17.6  61.6  87.0  90.0  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       wait         0     0       0     0     0     0          > 0          > 0          > 0          > 0
       lag       1.02  1.84    0.49  1.83  2.55  2.63       > 2.68       > 2.68       > 2.68       > 2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50         2.50         2.50         2.50         2.50
set    response  31.8  62.8    17.7  63.3  88.3  92.2  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       service   30.0  60.2    17.6  61.1  86.1  89.2  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000
       wait         0  0.80    1.60     0  4.00  4.00         4.00         4.00         4.00         4.00
       lag       1.00  1.75    0.49  1.68  2.36  2.53         2.53         2.53         2.53         2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50         2.50         2.50         2.50         2.50
all    response  31.1  62.4    17.7  63.1  88.4  92.5  > 1,000,000  > 1,000,000  > 1,000,000  > 1,000,000

Unanswered   70 of 2,070 requests (3.38 %) got no answer. They count as slower than all others:
             where a quantile falls among them, only a lower bound of it is known (> x). min, mean
             and stddev of response and service leave them out.
Errors       timeout 50
Bytes        180 kB sent (90.0 kB/s), 630 kB received (315 kB/s)
Connections  10 of 10 open at the start, 50 lost, 50 opened again; connecting took 35.0 us (p50) to
             70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.37 us of CPU for each request (0.59 user, 4.78 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 9 (0.5 %) shared by replies that came together (an upper
             bound for all but the last)
Goal         response time p50 within 1.00 ms: met (63.1 us)
Goal         response time p99.9 within 2.00 s: MISSED (> 1.00 s)
Used         the client thread 12 %, the client's connections 100 %
Trust        Lag is 3 % of p50; the response at p99 is not known.
Limit        The server or the path to it, by exclusion: 3 % of the requests got no answer, and the
             generator's own lag was p99 2.67 us.
";

#[test]
fn a_partial_run_says_why() {
    let mut run = Run::new(Keep::Figures);
    run.measurement
        .mark(Status::Partial, "127.0.0.1:11211 closed the connection after 1.2 s, and it was not replaced");
    run.measurement.connections.lost = 1;
    run.interval(2, Keep::Figures, |interval| {
        let outcome = Outcome::Error(Fault::Server);
        interval.groups[0].record(&Sample { outcome, ..sample(3) });
        interval.groups[0].counts(Verb::Set).unfinished += 1;
    });
    run.measurement.message(b"SERVER_ERROR out of memory storing object", 1);
    shows(&run, PARTIAL);
}
const PARTIAL: &str = r"
pummel VERSION: PARTIAL, 2.00 s measured
Reason       127.0.0.1:11211 closed the connection after 1.2 s, and it was not replaced
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,801      1,800         900  1,700     100   94.4       1           0       0
set    201        200         100      -       -      -       0           1       0
all  2,002      2,000       1,000  1,700     100   94.4       1           1       0

in us             min  mean  stddev   p50   p90   p95   p99   p99.9  p99.99     max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9    93.6    93.6    93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4    90.9    90.9    90.9
       wait         0     0       0     0     0     0     0       0       0       0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68    2.68    2.68    2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50    2.50    2.50    2.50
set    response  31.8  62.8    17.7  63.1  87.5  90.6  93.8  > 93.8  > 93.8  > 93.8
       service   30.0  60.2    17.6  60.5  84.9  88.0  90.4  > 90.4  > 90.4  > 90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00  > 4.00  > 4.00  > 4.00
       lag       1.00  1.76    0.49  1.85  2.53  2.53  2.53  > 2.53  > 2.53  > 2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50    2.50    2.50    2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  93.1    93.8  > 93.8  > 93.8

Unanswered   1 of 2,002 requests (0.05 %) got no answer. They count as slower than all others: where
             a quantile falls among them, only a lower bound of it is known (> x). min, mean and
             stddev of response and service leave them out.
Errors       server 1
             1 x SERVER_ERROR out of memory storing object
Bytes        180 kB sent (90.0 kB/s), 630 kB received (315 kB/s)
Connections  10 of 10 open at the start, 1 lost; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 9 (0.4 %) shared by replies that came together (an upper
             bound for all but the last)
Used         the client thread 12 %, the client's connections 0.6 %
Trust        Times are reliable: the generator's own delay (lag) is 3 % of p50 and 2 % of p99.
Limit        Nobody: requests were answered as they came (1,000/s). Next to give way: the client
             thread, used for 12 %, at about 8,000/s.
";

#[test]
fn a_run_that_found_wrong_values_names_their_keys() {
    let mut run = Run::new(Keep::Figures);
    run.plan.verify = 1.0;
    run.measurement.verify.checked = 1_710;
    run.measurement.verify.short = 1;
    for key in 0..12 {
        run.measurement.verify.fail(format!("key-{key:04}").as_bytes(), "bytes changed");
    }
    shows(&run, WRONG);
}
const WRONG: &str = r"
pummel VERSION: complete, 2.00 s measured, WRONG VALUES FOUND
Servers      127.0.0.1:11211
Clients      10 connections, depth 1, open loop at 1,000 req/s, poisson, 1 thread
Requests     get 90 %, set 10 %; 1,000 records, uniform, keys 30 bytes, values 200 bytes
Seed         42 (data seed 0)

       due  completed  per second   hits  misses  hit %  errors  unfinished  unsent
get  1,800      1,800         900  1,700     100   94.4       0           0       0
set    200        200         100      -       -      -       0           0       0
all  2,000      2,000       1,000  1,700     100   94.4       0           0       0

in us             min  mean  stddev   p50   p90   p95   p99  p99.9  p99.99   max
get    response  31.1  62.4    17.7  62.4  86.8  89.7  92.9   93.6    93.6  93.6
       service   30.1  60.5    17.6  60.4  84.9  87.9  90.4   90.9    90.9  90.9
       wait         0     0       0     0     0     0     0      0       0     0
       lag       1.02  1.85    0.49  1.83  2.51  2.62  2.68   2.68    2.68  2.68
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
set    response  31.8  62.8    17.7  62.4  86.8  89.9  92.9   93.8    93.8  93.8
       service   30.0  60.2    17.6  59.9  84.4  87.4  89.8   90.4    90.4  90.4
       wait         0  0.80    1.60     0  4.00  4.00  4.00   4.00    4.00  4.00
       lag       1.00  1.76    0.49  1.68  2.36  2.53  2.53   2.53    2.53  2.53
       reaction  2.50  2.50       0  2.50  2.50  2.50  2.50   2.50    2.50  2.50
all    response  31.1  62.4    17.7  62.4  86.8  89.9  92.9   93.6    93.8  93.8

Bytes        120 kB sent (60.0 kB/s), 420 kB received (210 kB/s)
Connections  10 of 10 open at the start; connecting took 35.0 us (p50) to 70.0 us (max)
Loading      1,000 of 1,000 records stored in 12.0 ms, 265 kB
Verified     1,710 values checked: 12 WRONG, of 12 keys; 0 stale
             key-0000: bytes changed
             key-0001: bytes changed
             key-0002: bytes changed
             key-0003: bytes changed
             key-0004: bytes changed
             key-0005: bytes changed
             key-0006: bytes changed
             key-0007: bytes changed
             key-0008: bytes changed
             key-0009: bytes changed
             and 2 more
             Too short to carry a frame: 1 value. The bytes of such values were compared, but
             neither a lost end nor an older value can be seen in them.
Generator    5.50 us of CPU for each request (0.60 user, 4.90 system); busiest thread busy 12 % of
             the time, 0 stalls; 11.5 MB of memory
Clock        the kernel's receive stamps; 6 (0.3 %) shared by replies that came together (an upper
             bound for all but the last)
Used         the client thread 12 %, the client's connections 0.6 %
Trust        Times are reliable: the generator's own delay (lag) is 3 % of p50 and 2 % of p99.
Limit        Nobody: requests were answered as they came (1,000/s). Next to give way: the client
             thread, used for 12 %, at about 8,000/s.
";

#[test]
fn a_run_without_any_answer_has_a_report_without_numbers_that_nobody_knows() {
    let mut run = Run::new(Keep::Figures);
    run.measurement =
        pummel_measure::measurement::Measurement::new(["all".to_owned()], Clock::User, MILLISECOND);
    run.measurement.mark(Status::Partial, "connection refused");
    let text = run.document(render);
    assert!(text.contains("PARTIAL, 0.00 s measured\nReason       connection refused"), "{text}");
    assert!(text.contains("Nothing was completed"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn values_that_are_only_stale_are_in_the_first_line_too() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.verify.stale = 1;
    let text = run.document(render);
    assert!(text.contains("complete, 2.00 s measured, STALE VALUES FOUND\n"), "{text}");
}

#[test]
fn stamps_are_a_share_of_all_replies_also_where_most_are_errors() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        let outcome = Outcome::Error(Fault::Server);
        (0..7_000).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
    });
    // 3 of each of three intervals, and 9,000 replies, of which 2,000 completed their requests.
    let text = run.document(render);
    assert!(text.contains(" 9 (0.1 %) shared"), "{text}");
}

#[test]
fn times_of_a_slow_run_are_in_milliseconds() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..5_000 {
            let late = sample(i);
            let arrived = late.arrived + 20 * MILLISECOND;
            interval.groups[0].record(&Sample { arrived, read: arrived, ..late });
        }
    });
    let text = run.document(render);
    assert!(text.contains("\nin ms "), "{text}");
}

#[test]
fn many_verbs_have_their_response_times_only() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for verb in Verb::ALL {
            interval.groups[0].record(&Sample { verb, outcome: Outcome::Ok, ..sample(5) });
        }
    });
    let text = run.document(render);
    let rows = |span: &str| text.lines().filter(|line| line.contains(&format!(" {span}  "))).count();
    assert_eq!(rows("response"), Verb::COUNT + 1, "{text}");
    assert_eq!(rows("service"), 1, "{text}");
}

#[test]
fn numbers_and_bytes_have_no_digits_that_say_nothing() {
    assert_eq!([90.0, 33.333, 20_000.0, 0.5].map(plain), ["90", "33.3", "20,000", "0.5"]);
    assert_eq!([0, 999, 1_000, 1_999_999].map(byte_text), ["0 B", "999 B", "1.00 kB", "2.00 MB"]);
    assert_eq!([0.99 * 100.0, 0.9995 * 100.0].map(number_plain), ["99", "99.95"]);
}

#[test]
fn what_was_seen_of_the_server_stands_above_the_verdict() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.evidence = Some(evidence());
    let text = run.document(render);
    let end = text[text.find("\nServer ").expect("it was seen")..].replace("\n             ", " ");
    let lines = [
        "\nServer       127.0.0.1:11211: memcached 1.6.18, 1 serving thread; 400 us of its CPU for each request; 3 evictions; memory: 16.0 MB of items\n",
        "\nNot read     the kernel does not say what the hypervisor took\n",
        "\nUsed         the client thread 12 %, the client's connections 0.6 %, the CPU of the server 40 %, the memory of the server 25 %\n",
        "\nTrust        Times are reliable: the generator's own delay (lag) is ",
        "\nLimit        The records: the server does not hold them all (3 evictions",
    ];
    let places: Vec<Option<usize>> = lines.iter().map(|line| end.find(line)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {end}");
    run.measurement.evidence.as_mut().expect("seen").servers[0].reading.as_mut().expect("read").restarted =
        true;
    assert!(run.document(render).contains("IT STARTED ANEW"));
}

#[test]
fn a_server_that_would_not_be_read_costs_a_line() {
    let mut run = Run::new(Keep::Figures);
    let mut seen = evidence();
    (seen.servers[0].reading, seen.servers[0].threads) = (None, None);
    seen.servers[0].unread = Some("it answered `stats` with ERROR".to_owned());
    run.measurement.evidence = Some(seen);
    let text = run.document(render);
    assert!(
        text.contains("\nServer       127.0.0.1:11211: not read; it answered `stats` with ERROR\n"),
        "{text}"
    );
}

#[test]
fn times_that_are_partly_the_generators_own_are_called_so_at_the_table_and_at_the_goal() {
    let mut run = Run::new(Keep::Figures);
    run.plan.goals = vec![Goal { quantile: 0.5, limit_ns: MILLISECOND }];
    assert!(!run.document(render).contains("added by pummel"));
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..2_000 {
            let late = sample(i);
            let lag = 90_000;
            interval.groups[0].record(&Sample {
                sent: late.sent + lag,
                arrived: late.arrived + lag,
                read: late.read + lag,
                ..late
            });
        }
    });
    let text = run.document(render);
    assert!(text.contains("\nPart of these times was added by pummel itself: see Trust below.\n"), "{text}");
    assert!(text.contains(", partly added by pummel)\n"), "{text}");
}
