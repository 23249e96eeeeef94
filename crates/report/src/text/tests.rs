//! The whole report of runs in miniature.

use super::units::plain;
use super::*;
use crate::VERSION;
use crate::example::{Run, evidence, sample};
use pummel_logic::plan::{FailOn, Fill, Goal, TlsOptions, Work};
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::MILLISECOND;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_logic::workload::verify::check::Damage;
use pummel_measure::measurement::Keep;
use pummel_measure::measurement::Status;
use pummel_measure::reason::Reason;
use pummel_measure::recorder::Sample;

/// Everything that the text of a run can have.
fn render(document: &Document) -> String {
    run(document, Detail::Everything, Paper::default())
}

#[track_caller]
fn shows(example: &Run, expected: &str) {
    let text = example.document(|document| run(document, Detail::Screen, Paper::default()));
    let expected = expected.trim_start_matches('\n').replace("VERSION", VERSION);
    assert!(text == expected, "the report is now:\n{text}");
}

/// The text with each field on one line.
fn unwrapped(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        match line.strip_prefix("         ") {
            Some(more) => lines = format!("{} {}", lines.trim_end(), more.trim_start()),
            None => lines += line,
        }
        lines.push('\n');
    }
    lines
}

#[test]
fn a_run_of_gets_and_sets() {
    shows(&Run::new(Keep::Figures), NORMAL);
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
    let text = unwrapped(&run.document(render));
    for line in [
        "Misses   1,000: 60.0 % of keys never stored before, 25.0 % expired, 15.0 % other (evicted, deleted, or stored by the load)",
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
    assert!(text.contains("\nFail on  errors: 20 of 2,020 requests failed or got no answer\n"), "{text}");
    assert!(text.contains("\nFail on      limited: no\n"), "{text}");
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
pummel VERSION   127.0.0.1:11211 (text)   2.00 s
10 connections, open loop at 1,000/s; get 90 %, set 10 %; 1,000 records

Result   1,000 req/s of 1,000 asked; 94.4 % hits, no errors
Trust    reliable: pummel's own delay (lag) is 3 % of p50 and 2 % of p99
Limit    none reached: every request was answered as it came. pummel's thread,
         12 % busy, would be the first, at about 8,000/s at this cost a request

response      req/s        p50        p90        p99      p99.9        max
get             900    62.4 us    86.8 us    92.9 us    93.6 us    93.6 us
set             100    62.4 us    86.8 us    92.9 us    93.8 us    93.8 us
all           1,000    62.4 us    86.8 us    92.9 us    93.6 us    93.8 us
";

#[test]
fn an_encrypted_run_says_whom_it_believed_and_what_agreeing_took() {
    let mut run = Run::new(Keep::Figures);
    assert!(!run.document(render).contains("Handshakes"));
    run.plan.tls = Some(TlsOptions { ca: Some("ca.pem".to_owned()), ..TlsOptions::default() });
    assert!(run.document(render).contains("\nHandshakes   0 in full, 0 resumed\n"));
    (1..=10).for_each(|i| run.measurement.connections.handshake.record(i * MILLISECOND / 10));
    run.measurement.connections.resumed = 4;
    let text = unwrapped(&run.document(render));
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
pummel VERSION   127.0.0.1:11211 (text)   2.00 s
10 connections, open loop at 1,000/s; get 90 %, set 10 %; 1,000 records

Result   GOAL MISSED. 1,000 req/s of 1,000 asked; 94.4 % hits, 50 timeouts
         (2.4 %)
Goal     missed: p99.9 is more than 1.00 s, 2.00 s asked
         met: p50 is 63.1 us, 1.00 ms asked
Unsent   20 of 2,070 requests
Trust    reliable: pummel's own delay (lag) is 3 % of p50
Limit    the server, or the way to it: 3 % of the requests got no answer, and
         pummel was not late (lag p99 2.67 us)
Seed     42

response      req/s        p50        p90        p99      p99.9        max
get             900    63.1 us    88.5 us   > 1.00 s   > 1.00 s   > 1.00 s
set             100    63.3 us    88.3 us   > 1.00 s   > 1.00 s   > 1.00 s
all           1,000    63.1 us    88.4 us   > 1.00 s   > 1.00 s   > 1.00 s
> x: at least x, because it falls among the requests without a reply
";

#[test]
fn a_partial_run_says_why() {
    let mut run = Run::new(Keep::Figures);
    let what = "127.0.0.1:11211 closed the connection after 1.2 s, and it was not replaced".to_owned();
    run.measurement.mark(Status::Partial, Reason::NotBegun { what });
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
pummel VERSION   127.0.0.1:11211 (text)   2.00 s
10 connections, open loop at 1,000/s; get 90 %, set 10 %; 1,000 records

Result   PARTIAL: 127.0.0.1:11211 closed the connection after 1.2 s, and it was
         not replaced. 1,000 req/s of 1,000 asked; 94.4 % hits, 1 error (0.05 %)
Errors   1 x SERVER_ERROR out of memory storing object
Lost     1 connection was lost
No reply 1 without a reply at the end
Trust    reliable: pummel's own delay (lag) is 3 % of p50 and 2 % of p99
Limit    none reached until then
Seed     42

response      req/s        p50        p90        p99      p99.9        max
get             900    62.4 us    86.8 us    92.9 us    93.6 us    93.6 us
set             100    63.1 us    87.5 us    93.8 us  > 93.8 us  > 93.8 us
all           1,000    62.4 us    86.8 us    93.1 us    93.8 us  > 93.8 us
> x: at least x, because it falls among the requests without a reply
The times are those of requests without error
";

#[test]
fn a_run_that_found_wrong_values_names_their_keys() {
    let mut run = Run::new(Keep::Figures);
    run.plan.verify = 1.0;
    run.measurement.verify.checked = 1_710;
    run.measurement.verify.short = 1;
    for key in 0..12 {
        run.measurement.verify.fail(format!("key-{key:04}").as_bytes(), Damage::Bytes);
    }
    shows(&run, WRONG);
}
const WRONG: &str = r"
pummel VERSION   127.0.0.1:11211 (text)   2.00 s
10 connections, open loop at 1,000/s; get 90 %, set 10 %; 1,000 records

Result   WRONG VALUES: 12 of 1,710, of 12 keys. 1,000 req/s of 1,000 asked;
         94.4 % hits, no errors
Verify   bytes changed, first in key-0000; -v lists more
Trust    reliable: pummel's own delay (lag) is 3 % of p50 and 2 % of p99
Limit    none reached: every request was answered as it came. pummel's thread,
         12 % busy, would be the first, at about 8,000/s at this cost a request
Seed     42

response      req/s        p50        p90        p99      p99.9        max
get             900    62.4 us    86.8 us    92.9 us    93.6 us    93.6 us
set             100    62.4 us    86.8 us    92.9 us    93.8 us    93.8 us
all           1,000    62.4 us    86.8 us    92.9 us    93.6 us    93.8 us
";

#[test]
fn a_run_without_any_answer_has_a_report_without_numbers_that_nobody_knows() {
    let mut run = Run::new(Keep::Figures);
    run.measurement =
        pummel_measure::measurement::Measurement::new(["all".to_owned()], Clock::User, MILLISECOND);
    run.measurement.mark(Status::Partial, Reason::NotBegun { what: "connection refused".to_owned() });
    let text = run.document(render);
    assert!(text.contains("\nResult   PARTIAL: connection refused. "), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn values_that_are_only_stale_are_in_the_first_line_too() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.verify.stale = 1;
    let text = run.document(render);
    assert!(text.contains("\nResult   WRONG VALUES: 1 of 0 older than they may be. 1,000 req/s"), "{text}");
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
fn numbers_and_bytes_have_no_digits_that_say_nothing() {
    assert_eq!([90.0, 33.333, 20_000.0, 0.5].map(plain), ["90", "33.3", "20,000", "0.5"]);
    assert_eq!([0, 999, 1_000, 1_999_999].map(byte_text), ["0 B", "999 B", "1.00 kB", "2.00 MB"]);
}

#[test]
fn what_was_seen_of_the_server_stands_above_the_verdict() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.evidence = Some(evidence());
    let text = unwrapped(&run.document(render));
    let end = &text[text.find("\nServer ").expect("it was seen")..];
    let lines = [
        "\nServer       127.0.0.1:11211: memcached 1.6.18, 1 serving thread; 400 us of its CPU for each request; 3 evictions; memory: 16.0 MB of items\n",
        "\nNot read     the kernel does not say what the hypervisor took\n",
        "\nUsed         pummel's thread 12 %, the connections 0.6 %, the server's CPU 40 %, the server's memory 25 %\n",
    ];
    let places: Vec<Option<usize>> = lines.iter().map(|line| end.find(line)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {end}");
    run.measurement.evidence.as_mut().expect("seen").servers[0].reading.as_mut().expect("read").restarted =
        true;
    assert!(unwrapped(&run.document(render)).contains("IT STARTED ANEW"));
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
