use pummel_logic::protocol::Outcome;
use pummel_measure::churn::{ChurnReply, ConnectionFailure, Ended};

use super::*;

/// A run of `calls` stores that each took so many microseconds, on one connection.
fn figures(micros: &[u64]) -> McperfFigures {
    let mut churn = Churn { begun: 1, asked: 1, established: 1, alive_max: 1, ..Churn::default() };
    churn.life.record(10 * MILLISECOND);
    churn.connect.record(MILLISECOND / 10);
    for &us in micros {
        let reply = ChurnReply {
            outcome: Outcome::Stored,
            bytes: 8,
            service_ns: us * 1_000,
            response_ns: (us + 500) * 1_000,
        };
        churn.end(&Ended { request_bytes: Some(28), late_ns: Some(500_000), reply: Some(reply) });
    }
    let (cpu_user_ns, cpu_system_ns) = (140_000_000, 820_000_000);
    McperfFigures { churn, elapsed_ns: SECOND, thread_ns: SECOND, cpu_user_ns, cpu_system_ns }
}

#[test]
fn one_thread_uses_no_more_than_the_whole_of_its_time() {
    let cpu = |elapsed_ns, thread_ns, (cpu_user_ns, cpu_system_ns)| {
        let run =
            McperfFigures { elapsed_ns, thread_ns, cpu_user_ns, cpu_system_ns, ..McperfFigures::default() };
        let text = render(&run, ReportLayout::default());
        let line = text.lines().find(|line| line.starts_with("CPU time")).expect("it is always there");
        line.split_once('(').expect("shares").1.to_owned()
    };
    let half = "user 30.0% system 20.0% total 50.0%)";
    assert_eq!(cpu(MILLISECOND, MILLISECOND, (300_000, 200_000)), half);
    assert_eq!(
        cpu(MILLISECOND / 4, MILLISECOND, (300_000, 200_000)),
        half,
        "it was used while the thread ran"
    );
    let whole = cpu(MILLISECOND, MILLISECOND, (1_500_000, 500_000));
    assert_eq!(whole, "user 75.0% system 25.0% total 100.0%)");
    assert_eq!(cpu(0, 0, (0, 0)), "user 0.0% system 0.0% total 0.0%)");
}

#[test]
fn a_report_has_every_line_of_the_original() {
    let text = render(&figures(&[100, 200, 300, 400]), ReportLayout::default());
    let expected = "
Total: connections 1 requests 4 responses 4 test-duration 1.000 s

Connection rate: 1.0 conn/s (1000.0 ms/conn <= 1 concurrent connections)
Connection time [ms]: avg 10.0 min 10.0 max 10.0 stddev 0.00
Connect time [ms]: avg 0.1 min 0.1 max 0.1 stddev 0.00

Request rate: 4.0 req/s (250.0 ms/req)
Request size [B]: avg 28.0 min 28.0 max 28.0 stddev 0.00

Response rate: 4.0 rsp/s (250.0 ms/rsp)
Response size [B]: avg 8.0 min 8.0 max 8.0 stddev 0.00
Response time [ms]: avg 0.2 min 0.1 max 0.4 stddev 0.13
Response time [ms]: p25 0.1 p50 0.2 p75 0.3
Response time [ms]: p95 0.4 p99 0.4 p999 0.4
Response type: stored 4 not_stored 0 exists 0 not_found 0
Response type: num 0 deleted 0 end 0 value 0
Response type: error 0 client_error 0 server_error 0

Errors: total 0 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 0

CPU time [s]: user 0.14 system 0.82 (user 14.0% system 82.0% total 96.0%)
Net I/O: bytes 144.0 B rate 0.1 KB/s (0.0*10^6 bps)

";
    assert_eq!(text, expected);
}

#[test]
fn a_percentile_among_calls_without_a_response_is_more_than_the_longest_response() {
    let mut run = figures(&[100; 97]);
    for _ in 0..3 {
        run.churn.end(&Ended { request_bytes: Some(28), late_ns: Some(0), reply: None });
    }
    assert_eq!(unknown_percentiles(&run.churn), ["p99", "p999"]);
    let text = render(&run, ReportLayout::default());
    assert!(text.contains("Response time [ms]: p95 0.1 p99 0.1 p999 0.1\n"), "{text}");
    let text = render(&run, ReportLayout { histogram: false, response: true });
    assert!(text.contains("Response time [ms]: p95 0.100 p99 >0.100 p999 >0.100\n"), "{text}");
    assert!(
        text.contains("Response time from due [ms]: p50 0.600 p95 0.600 p99 >0.600 p999 >0.600\n"),
        "{text}"
    );
}

#[test]
fn without_responses_their_section_is_left_out() {
    let mut run = figures(&[]);
    run.churn.end(&Ended { request_bytes: Some(35), late_ns: Some(0), reply: None });
    assert_eq!(unknown_percentiles(&run.churn), [""; 0]);
    let text = render(&run, ReportLayout { histogram: true, response: true });
    assert!(text.contains("\nRequest rate: 1.0 req/s (1000.0 ms/req)\nRequest size [B]: avg 35.0"), "{text}");
    assert!(!text.contains("Response"), "{text}");
    assert!(text.contains("\nNet I/O: bytes 35.0 B"), "{text}");
}

#[test]
fn refused_connections_are_counted_by_kind_and_nothing_is_infinite() {
    let mut churn = Churn { begun: 5, asked: 5, ..Churn::default() };
    (0..5).for_each(|_| churn.fail(ConnectionFailure::Refused));
    let text = render(&McperfFigures { churn, ..McperfFigures::default() }, ReportLayout::default());
    let expected = "
Total: connections 5 requests 0 responses 0 test-duration 0.000 s

Connection rate: 0.0 conn/s (0.0 ms/conn <= 0 concurrent connections)
Connection time [ms]: avg 0.0 min 0.0 max 0.0 stddev 0.00
Connect time [ms]: avg 0.0 min 0.0 max 0.0 stddev 0.00

Errors: total 5 client-timo 0 socket-timo 0 connrefused 5 connreset 0
Errors: fd-unavail 0 ftab-full 0 addrunavail 0 other 0

CPU time [s]: user 0.00 system 0.00 (user 0.0% system 0.0% total 0.0%)

";
    assert_eq!(text, expected);
}

#[test]
fn without_any_attempt_there_is_no_connection_section() {
    let mut churn = Churn { begun: 3, ..Churn::default() };
    for failure in [ConnectionFailure::Descriptors, ConnectionFailure::Files, ConnectionFailure::Addresses] {
        churn.fail(failure);
    }
    let text = render(&McperfFigures { churn, ..McperfFigures::default() }, ReportLayout::default());
    assert!(!text.contains("Connection rate"), "{text}");
    assert!(text.contains("Errors: total 3 "), "{text}");
    assert!(text.contains("Errors: fd-unavail 1 ftab-full 1 addrunavail 1 other 0\n"), "{text}");
}

#[test]
fn each_kind_of_failure_has_its_word() {
    let mut churn = Churn { begun: 5, asked: 5, ..Churn::default() };
    let kinds = [
        ConnectionFailure::Timeout,
        ConnectionFailure::Unreachable,
        ConnectionFailure::Refused,
        ConnectionFailure::Reset,
        ConnectionFailure::Other,
    ];
    for (times, failure) in (1..).zip(kinds) {
        (0..times).for_each(|_| churn.fail(failure));
    }
    let text = render(&McperfFigures { churn, ..McperfFigures::default() }, ReportLayout::default());
    assert!(
        text.contains("Errors: total 15 client-timo 1 socket-timo 2 connrefused 3 connreset 4\n"),
        "{text}"
    );
    assert!(text.contains("addrunavail 0 other 5\n"), "{text}");
}

#[test]
fn percentiles_are_those_that_they_are_called() {
    let times: Vec<u64> = (1..=100).map(|n| n * 1_000).collect();
    let text = render(&figures(&times), ReportLayout::default());
    assert!(text.contains("p25 25.0 p50 50.0 p75 75.0\n"), "{text}");
    assert!(text.contains("p95 95.0 p99 99.0 p999 100.0\n"), "{text}");
    assert!(text.contains("avg 50.5 min 1.0 max 100.0 stddev 29.01\n"), "{text}");
}

#[test]
fn the_histogram_shows_where_bins_were_left_out() {
    let times = [3_000, 3_100, 4_000, 7_000, 8_400];
    let text = render(&figures(&times), ReportLayout { histogram: true, ..ReportLayout::default() });
    let expected = "Response time histogram [ms]:
             :
             3.0 2
             4.0 1
             :
             7.0 1
             8.0 1
             :
Response time [ms]: p25";
    assert!(text.contains(expected), "{text}");
    let text =
        render(&figures(&[100, 99_999_000]), ReportLayout { histogram: true, ..ReportLayout::default() });
    assert!(
        text.contains("[ms]:\n             0.0 1\n             :\n         99999.0 1\nResponse"),
        "{text}"
    );
}

#[test]
fn times_from_due_have_a_pair_of_lines_with_three_decimals() {
    let text = render(&figures(&[100, 200]), ReportLayout { response: true, ..ReportLayout::default() });
    let pair = "Response time from due [ms]: avg 0.650 min 0.600 max 0.700 stddev 0.071\n\
                Response time from due [ms]: p50 0.600 p95 0.700 p99 0.700 p999 0.700\n\
                Response type: stored 2";
    assert!(text.contains(pair), "{text}");
}

#[test]
fn amounts_have_the_units_of_the_original() {
    let named = [24.0, 1024.0, 1025.0, 1_048_576.0, 1_048_577.0, 1e9, 2e9].map(|bytes| amount(bytes).1);
    assert_eq!(named, ["B", "B", "KB", "KB", "MB", "MB", "GB"]);
    assert_eq!(amount(438_980.0), (438_980.0 / 1024.0, "KB"));
}
