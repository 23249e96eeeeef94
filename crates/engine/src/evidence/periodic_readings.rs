//! Readings of servers at a fixed interval within the measured phases (`--server-stats`).

use pummel_logic::time::Nanos;
use pummel_measure::evidence::ServerReading;
use pummel_measure::evidence::server_stats::{ServerInterval, ServerStats};

use super::inquiry::ServerReport;
use crate::resolve::Server;

/// The readings of all servers, and the time of the next one.
pub struct PeriodicReadings {
    /// Length of an interval, in nanoseconds.
    pub every_ns: Nanos,
    /// Time at which the measured phase began, on the monotonic clock.
    began: Nanos,
    /// Time at which the next reading is due, on the monotonic clock.
    pub next_at: Nanos,
    /// The last report of each server.
    last: Vec<Option<ServerReport>>,
    /// The intervals of all servers.
    pub stats: Vec<ServerStats>,
}

impl PeriodicReadings {
    /// Creates intervals of this length for `servers`. [`PeriodicReadings::begin`] starts them.
    pub fn new(every_ns: Nanos, servers: &[Server]) -> PeriodicReadings {
        let stats = servers.iter().map(|server| ServerStats {
            address: server.name().to_owned(),
            every_ns,
            ..ServerStats::default()
        });
        PeriodicReadings {
            every_ns,
            began: 0,
            next_at: 0,
            last: servers.iter().map(|_| None).collect(),
            stats: stats.collect(),
        }
    }

    /// Starts the intervals at `now`, the beginning of the measured phase. The first reading is due one interval
    /// later.
    pub fn begin(&mut self, now: Nanos) {
        self.began = now;
        self.next_at = now.saturating_add(self.every_ns);
    }

    /// Sets the time of the next reading to the first multiple of the interval after `now`. Readings that became due
    /// during a slow reading are skipped.
    pub fn advance(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.began) / self.every_ns.max(1);
        self.next_at = self.began.saturating_add((passed + 1).saturating_mul(self.every_ns));
    }

    /// Adds a report of a server. An interval is recorded from its last report to this one, with the difference that
    /// `reading` computes. A missing report (`None`) is counted, and makes the interval longer.
    pub fn take_in(
        &mut self,
        server: usize,
        report: Option<&ServerReport>,
        reading: impl FnOnce(&ServerReport, &ServerReport) -> ServerReading,
    ) {
        let stats = &mut self.stats[server];
        let Some(report) = report else {
            stats.missed += 1;
            return;
        };
        if let Some(last) = self.last[server].replace(report.clone()) {
            let since = |at: Nanos| at.saturating_sub(self.began);
            stats.add(since(last.at), since(report.at), reading(&last, report));
        }
    }

    /// The newest interval of each server; `None` for a server without an interval.
    pub fn newest(&self) -> Vec<Option<ServerInterval>> {
        self.stats.iter().map(|stats| stats.intervals.last().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::SECOND;

    use super::*;
    use crate::resolve::Sources;

    fn report(at: Nanos) -> ServerReport {
        ServerReport { at, ..ServerReport::default() }
    }

    #[test]
    fn a_reading_that_is_missing_makes_a_longer_interval_and_is_counted() {
        let server = Server::resolve("127.0.0.1:1", &Sources::default()).unwrap();
        let mut intervals = PeriodicReadings::new(SECOND, &[server]);
        intervals.begin(10 * SECOND);
        assert_eq!(intervals.next_at, 11 * SECOND);
        for report in [Some(report(10 * SECOND)), Some(report(11 * SECOND)), None, Some(report(13 * SECOND))]
        {
            intervals.take_in(0, report.as_ref(), |_, _| ServerReading::default());
        }
        intervals.advance(13 * SECOND + SECOND / 2);
        assert_eq!(intervals.next_at, 14 * SECOND);
        let stats = &intervals.stats[0];
        let seen: Vec<_> = stats.intervals.iter().map(|one| (one.start_ns, one.end_ns)).collect();
        assert_eq!((seen, stats.missed), (vec![(0, SECOND), (SECOND, 3 * SECOND)], 1));
    }
}
