//! memtier_benchmark's tables of each client, made from the requests of a run one by one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pummel_logic::protocol::Outcome;
use pummel_logic::time::{MICROSECOND, NEVER, Nanos, SECOND, seconds};
use pummel_measure::events::Row as Request;
use pummel_measure::histogram::Histogram;

use super::display::{Display, Row, RowKind};
use super::figures::{distribution, milliseconds};

/// Most seconds of all clients together that are kept.
const SECONDS_MAX: usize = 1 << 20;

/// The kinds of requests, in the order of the columns.
const KINDS: [RowKind; 3] = [RowKind::Set, RowKind::Get, RowKind::Wait];

/// The requests of each client of a run.
#[derive(Debug, Default)]
pub struct ClientStats {
    /// Beginning of the measured phase on the monotonic clock.
    begin: Nanos,
    clients: BTreeMap<u64, Client>,
    /// Number of the seconds of all clients.
    seconds: usize,
    /// Requests that are in no second, since there are too many of these.
    left_out: u64,
}

/// The requests of a client.
#[derive(Debug, Default)]
struct Client {
    seconds: BTreeMap<u64, [Counts; KINDS.len()]>,
    /// Numbers of requests by their service time in microseconds with four digits, by kind: few thousand different ones at most.
    times: [BTreeMap<u64, u64>; KINDS.len()],
}

/// The requests of one kind in a second.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    time_ns: Nanos,
    hits: u64,
}

impl ClientStats {
    /// The requests of a run whose measured phase begins at this time of the monotonic clock.
    pub fn new(begin: Nanos) -> ClientStats {
        ClientStats { begin, ..ClientStats::default() }
    }

    /// Adds requests that ended. What failed is in no table.
    pub fn add(&mut self, rows: &[Row], requests: &[Request]) {
        for request in requests {
            let is_answered = !matches!(request.outcome, Outcome::Error(_) | Outcome::Failed { .. });
            let row = rows.iter().find(|row| row.verbs.contains(&request.verb));
            let kind = row.and_then(|row| KINDS.iter().position(|kind| *kind == row.kind));
            let Some(kind) = kind.filter(|_| is_answered && request.arrived != NEVER) else { continue };
            let time_ns = request.arrived.saturating_sub(request.sent);
            let client = self.clients.entry(request.client).or_default();
            *client.times[kind].entry(four_digits(time_ns.div_ceil(MICROSECOND))).or_default() += 1;
            let second = request.arrived.saturating_sub(self.begin) / SECOND;
            if !client.seconds.contains_key(&second) {
                if self.seconds == SECONDS_MAX {
                    self.left_out += 1;
                    continue;
                }
                self.seconds += 1;
            }
            let counts = &mut client.seconds.entry(second).or_default()[kind];
            counts.requests += 1;
            counts.time_ns += time_ns;
            counts.hits += u64::from(request.outcome == Outcome::Hit);
        }
    }

    /// Number of requests that are in no second of a table.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The files of run `number`, with the name behind `prefix`: one for each client that asked something.
    pub fn files(&self, display: &Display, prefix: &str, number: u32) -> Vec<(String, String)> {
        let of_thread = u64::from(display.options.clients.max(1));
        let file = |(client, stats): (&u64, &Client)| {
            let (thread, place) = (client / of_thread, client % of_thread);
            (format!("{prefix}-{number}-{thread}-{place}.csv"), stats.text())
        };
        self.clients.iter().map(file).collect()
    }
}

impl Client {
    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("text can always be added to");
        text
    }

    /// Writes the tables. The cells of bytes are empty: nothing counts the bytes of a client.
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let columns = ["SET", "GET"].map(|name| {
            format!(
                "{name} Requests,{name} Average Latency,{name} Total Bytes,{name} Total Bytes TX,{name} Total Bytes RX"
            )
        });
        writeln!(text, "Per-Second Benchmark Data")?;
        writeln!(
            text,
            "Second,{},GET Misses,GET Hits,WAIT Requests,WAIT Average Latency",
            columns.join(",")
        )?;
        for (second, [set, get, wait]) in &self.seconds {
            let both = |counts: &Counts| format!("{},{:.6}", counts.requests, counts.mean_s());
            let misses = get.requests - get.hits;
            writeln!(
                text,
                "{second},{},,,,{},,,,{misses},{},{}",
                both(set),
                both(get),
                get.hits,
                both(wait)
            )?;
        }
        for (name, kind) in [("GET", 1), ("SET", 0), ("WAIT", 2)] {
            let mut times = Histogram::new();
            self.times[kind].iter().for_each(|(us, count)| times.record_many(us * MICROSECOND, *count));
            writeln!(text, "\nFull-Test {name} Latency\nLatency (<= msec),Percent")?;
            for (ns, percent) in distribution(&times) {
                writeln!(text, "{:8.3},{percent:.3}", milliseconds(ns as f64))?;
            }
        }
        Ok(())
    }
}

/// A number with its first four digits, rounded up behind them.
fn four_digits(number: u64) -> u64 {
    let step = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(3));
    number.div_ceil(step).saturating_mul(step)
}

impl Counts {
    /// The mean service time in seconds; 0 without requests.
    fn mean_s(&self) -> f64 {
        if self.requests > 0 { seconds(self.time_ns) / self.requests as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::protocol::{Fault, Verb};

    use super::*;

    #[test]
    fn times_keep_four_digits() {
        let kept = [0, 7, 9_999, 10_000, 10_001, 123_456, u64::MAX].map(four_digits);
        assert_eq!(kept, [0, 7, 9_999, 10_000, 10_010, 123_500, u64::MAX]);
    }

    #[test]
    fn a_client_has_a_line_for_each_second_and_its_distributions() {
        let row = |kind, verb| Row { name: String::new(), title: String::new(), verbs: vec![verb], kind };
        let rows = [row(RowKind::Set, Verb::Set), row(RowKind::Get, Verb::Get)];
        let request = |verb, outcome, arrived_ms: u64, time_us: u64| {
            let arrived = SECOND + arrived_ms * 1_000 * MICROSECOND;
            let sent = arrived - time_us * MICROSECOND;
            Request {
                due: sent,
                ready: sent,
                sent,
                arrived,
                read: arrived,
                verb,
                outcome,
                key: 0,
                client: 7,
                group: 0,
            }
        };
        let mut stats = ClientStats::new(SECOND);
        stats.add(
            &rows,
            &[
                request(Verb::Set, Outcome::Stored, 10, 200),
                request(Verb::Get, Outcome::Hit, 20, 100),
                request(Verb::Get, Outcome::Miss, 30, 300),
                request(Verb::Get, Outcome::Error(Fault::Closed), 40, 300),
                request(Verb::Get, Outcome::Miss, 1_500, 50),
            ],
        );
        let text = stats.clients[&7].text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Per-Second Benchmark Data");
        assert_eq!(lines[2], "0,1,0.000200,,,,2,0.000200,,,,1,1,0,0.000000");
        assert_eq!(lines[3], "1,0,0.000000,,,,1,0.000050,,,,1,0,0,0.000000");
        assert_eq!(lines[1].split(',').count(), lines[2].split(',').count());
        assert_eq!(lines[5..7], ["Full-Test GET Latency", "Latency (<= msec),Percent"]);
        assert!(text.contains("\n   0.300,100.000\n"), "{text}");
        assert!(
            text.ends_with("Full-Test WAIT Latency\nLatency (<= msec),Percent\n   0.000,100.000\n"),
            "{text}"
        );
    }
}
