//! The names of all metrics, with their types, labels and meanings. The server, docs/METRICS.md and the dashboard
//! follow this table.

use pummel_measure::counters::Counters;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that goes up and down.
    Gauge,
    /// A number that only grows; its name ends in `_total`.
    Counter,
    /// Times by bucket, with their count and their sum.
    Histogram,
}

impl Kind {
    /// The word of the formats.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// The time from which on a metric is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The metric is present as long as the process runs.
    Start,
    /// From the first interval of a measured phase on.
    Interval,
    /// From the end of the first run on.
    End,
}

impl Since {
    /// The name in docs/METRICS.md.
    pub fn name(self) -> &'static str {
        match self {
            Since::Start => "start",
            Since::Interval => "first interval",
            Since::End => "end of a run",
        }
    }
}

/// One metric.
#[derive(Debug)]
pub struct Row {
    /// Name of the metric.
    pub name: &'static str,
    /// Type of the metric.
    pub kind: Kind,
    /// Labels of the metric, in addition to `run` and `role`, which all metrics of pummel have.
    pub labels: &'static [&'static str],
    /// From when on it is served.
    pub since: Since,
    /// Meaning of the metric: a sentence without its full stop.
    pub help: &'static str,
    /// The value, where it is one of the measured phases' counters.
    pub count: Option<fn(&Counters) -> u64>,
}

impl Row {
    /// Whether the metric is one of every process, which has no labels of pummel.
    pub fn is_of_process(&self) -> bool {
        self.name.starts_with("process_")
    }
}

/// The metric with a name of the table.
///
/// # Panics
/// Panics when the table has no such name.
pub fn row(name: &str) -> &'static Row {
    ROWS.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} is in no row of the table"))
}

const fn gauge(name: &'static str, labels: &'static [&'static str], since: Since, help: &'static str) -> Row {
    Row { name, kind: Kind::Gauge, labels, since, help, count: None }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    since: Since,
    help: &'static str,
) -> Row {
    Row { name, kind: Kind::Counter, labels, since, help, count: None }
}

const fn times(name: &'static str, labels: &'static [&'static str], since: Since, help: &'static str) -> Row {
    Row { name, kind: Kind::Histogram, labels, since, help, count: None }
}

/// A counter of the measured phases, which needs nothing but its row.
const fn measured(name: &'static str, help: &'static str, count: fn(&Counters) -> u64) -> Row {
    Row { count: Some(count), ..counter(name, &[], Since::Interval, help) }
}

/// All metrics, in the order in which they are served.
pub static ROWS: &[Row] = &[
    gauge(
        "pummel_build_info",
        &["version", "commit"],
        Since::Start,
        "1, with the build of pummel in the labels",
    ),
    gauge(
        "pummel_run_info",
        &["front", "protocol", "mode", "backend", "clock", "seed"],
        Since::Interval,
        "1, with the main settings of the run in the labels; `front` is the kind of command line (`native`, `mutilate`, `memaslap`, \
         `mcperf`, `redis-benchmark` or `memtier_benchmark`); in a controller from the end of a run on",
    ),
    gauge("pummel_phase", &["phase"], Since::Start, "1 for the phase that the run is in, 0 for the others"),
    gauge(
        "pummel_start_timestamp_seconds",
        &[],
        Since::Interval,
        "When the measured phase of the latest run began, in seconds since 1970",
    ),
    gauge(
        "pummel_target_requests_per_second",
        &[],
        Since::Start,
        "Requests per second that are asked for now; absent in a closed loop",
    ),
    counter(
        "pummel_requests_due_total",
        &["op"],
        Since::Interval,
        "Requests of the measured phases whose fate is known: completed, failed, unfinished or unsent",
    ),
    counter(
        "pummel_requests_completed_total",
        &["op"],
        Since::Interval,
        "Requests that were answered without an error",
    ),
    counter(
        "pummel_requests_unfinished_total",
        &["op"],
        Since::Interval,
        "Requests that were sent and had no answer when the measured phase and its drain were over",
    ),
    counter(
        "pummel_requests_unsent_total",
        &["op"],
        Since::Interval,
        "Requests that were due and never sent",
    ),
    counter(
        "pummel_request_errors_total",
        &["op", "kind"],
        Since::Interval,
        "Requests that failed, by the kind of error",
    ),
    counter(
        "pummel_requests_without_effect_total",
        &["op", "outcome"],
        Since::Interval,
        "Requests that were answered without an error and stored or found nothing: not_stored, exists (stored by another client in \
         between), not_found or conflict (a transaction whose watched keys another client changed); absent for operations that always \
         have an effect",
    ),
    counter(
        "pummel_redirects_total",
        &["kind"],
        Since::Interval,
        "Replies of a cluster's nodes that redirected requests or made them wait, by kind: moved, ask, tryagain, clusterdown, loading \
         or readonly; absent without --cluster",
    ),
    counter(
        "pummel_redirected_requests_total",
        &["result"],
        Since::Interval,
        "Requests that were redirected or had to wait, and were then answered (followed) or failed in the end (given_up); absent \
         without --cluster",
    ),
    counter(
        "pummel_retries_total",
        &["kind"],
        Since::Interval,
        "Times that a request was to be sent again, by the kind of the error before: loading, busy, tryagain, clusterdown, masterdown, \
         oom, readonly, noscript, lost or timeout; absent without --retry and --script",
    ),
    counter(
        "pummel_retried_requests_total",
        &["result"],
        Since::Interval,
        "Requests that were sent again and then answered (recovered), that failed when the time for it was over (given_up), and that were \
         not sent again since they may have been carried out (not_repeatable); absent without --retry and --script",
    ),
    counter(
        "pummel_keys_total",
        &["op", "result"],
        Since::Interval,
        "Keys that reads found (hit) or did not find (miss)",
    ),
    counter(
        "pummel_misses_total",
        &["op", "cause"],
        Since::Interval,
        "Keys that reads did not find, by cause: first_touch (never stored before), absent (no such key), expired or other; absent \
         where a run does not tell them apart",
    ),
    times(
        "pummel_response_seconds",
        &["op"],
        Since::Interval,
        "Time from when a request was due to its reply",
    ),
    times(
        "pummel_wait_seconds",
        &["op"],
        Since::Interval,
        "Time for which a request waited for a free slot or its connection",
    ),
    times(
        "pummel_lag_seconds",
        &["op"],
        Since::Interval,
        "Time by which the generator was late to send a request",
    ),
    times("pummel_service_seconds", &["op"], Since::Interval, "Time from sending a request to its reply"),
    times(
        "pummel_reaction_seconds",
        &["op"],
        Since::Interval,
        "Time for which a reply lay unread, which is in no other time",
    ),
    measured("pummel_sent_bytes_total", "Bytes that were sent to the servers", |all| all.bytes.sent),
    measured("pummel_received_bytes_total", "Bytes that came from the servers", |all| all.bytes.received),
    gauge(
        "pummel_connections_open",
        &[],
        Since::Interval,
        "Connections that are open; absent where agents have them, and where clients come and go",
    ),
    gauge("pummel_connections_asked", &[], Since::Interval, "Connections that the run asks for"),
    counter(
        "pummel_connections_lost_total",
        &[],
        Since::Start,
        "Open connections that broke, or had to be closed",
    ),
    counter("pummel_connections_failed_total", &[], Since::End, "Attempts to open a connection that failed"),
    counter(
        "pummel_connections_reopened_total",
        &[],
        Since::Start,
        "Lost connections that were opened again",
    ),
    times(
        "pummel_connect_seconds",
        &[],
        Since::End,
        "Time that opening a connection took, with TLS until its handshake was over",
    ),
    counter(
        "pummel_verified_values_total",
        &["result"],
        Since::End,
        "Values that were checked: right, wrong, or stale; absent without --verify",
    ),
    counter(
        "pummel_audited_keys_total",
        &["result"],
        Since::End,
        "Keys that were read back (--audit): current, contested, newer, unread, or lost: older and missing",
    ),
    counter(
        "pummel_worker_busy_seconds_total",
        &["worker"],
        Since::Interval,
        "Time for which a worker had something to do; the worker `all` is the sum of all agents",
    ),
    measured("pummel_stalls_total", "Turns of the workers' loops that took more than 1 ms", |all| {
        all.turns.stalls
    }),
    counter("pummel_stalled_seconds_total", &[], Since::Interval, "Time in turns that took more than 1 ms"),
    counter(
        "pummel_stamps_total",
        &["kind"],
        Since::Interval,
        "Receive stamps of the kernel that were not what they should be: missing, shared with a later reply, or rejected",
    ),
    gauge(
        "pummel_generator_limited",
        &[],
        Since::End,
        "1 where the generator set the rate of the latest run, 0 where it did not",
    ),
    gauge(
        "pummel_agents",
        &["state"],
        Since::End,
        "Processes of the latest run that stayed to the end (present) or did not (lost)",
    ),
    counter("pummel_agents_lost_total", &[], Since::End, "Processes of all runs that were lost"),
    gauge(
        "pummel_agent_clock_error_seconds",
        &["agent"],
        Since::End,
        "Greatest error of the measured difference between the clocks of an agent and of its controller",
    ),
    counter(
        "pummel_server_cpu_seconds_total",
        &["server"],
        Since::End,
        "CPU time of a server in all runs, by its own account",
    ),
    counter(
        "pummel_server_requests_total",
        &["server"],
        Since::End,
        "Requests that a server counted in all runs",
    ),
    counter(
        "pummel_server_keys_total",
        &["server", "result"],
        Since::End,
        "Keys that a server found (hit) or did not find (miss) in all runs, by its own account",
    ),
    counter(
        "pummel_server_evictions_total",
        &["server"],
        Since::End,
        "Records that a server removed to make room in all runs",
    ),
    gauge(
        "pummel_server_connections",
        &["server"],
        Since::End,
        "Open connections of a server at the end of the latest run",
    ),
    gauge(
        "pummel_server_memory_bytes",
        &["server"],
        Since::End,
        "Memory in use by a server at the end of the latest run",
    ),
    counter("process_cpu_seconds_total", &[], Since::Start, "CPU time of this process"),
    gauge("process_resident_memory_bytes", &[], Since::Start, "Memory that this process has"),
    gauge("process_open_fds", &[], Since::Start, "File descriptors that this process has open"),
    gauge("process_max_fds", &[], Since::Start, "File descriptors that this process may have open"),
    gauge(
        "pummel_result_quantile_seconds",
        &["op", "span", "q"],
        Since::End,
        "A quantile of the latest run by its number q from 0 to 1, exact to 0.1 %; absent where it is not known",
    ),
    gauge(
        "pummel_goal_met",
        &["goal"],
        Since::End,
        "1 where the latest run met a goal, 0 where it missed it; absent where that is undecided",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus_and_are_there_once() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for row in ROWS {
            assert_eq!(row.name.ends_with("_total"), row.kind == Kind::Counter, "{}", row.name);
            assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", row.name);
            assert!(row.kind != Kind::Histogram || row.name.ends_with("_seconds"), "{}", row.name);
            assert!(!row.help.ends_with('.') && !row.help.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn the_page_of_the_documents_has_the_table() {
        let page = include_str!("../../../../docs/METRICS.md");
        let in_page: Vec<&str> = page.lines().filter(|line| line.starts_with("| `p")).collect();
        let expected: Vec<String> = ROWS
            .iter()
            .map(|row| {
                let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
                let (kind, since) = (row.kind.name(), row.since.name());
                format!("| `{}` | {kind} | {} | {since} | {} |", row.name, labels.join(", "), row.help)
            })
            .collect();
        assert_eq!(in_page, expected);
    }
}
