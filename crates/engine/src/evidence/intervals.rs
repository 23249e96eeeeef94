//! Readings of servers at fixed intervals within the measured phases (`--server-stats`).

use pummel_logic::time::Nanos;
use pummel_measure::evidence::ServerReading;
use pummel_measure::evidence::server_stats::{ServerInterval, ServerStats};

use super::inquiry::ServerReport;
use crate::resolve::Server;

/// The intervals of all servers.
pub struct Intervals {
    every_ns: Nanos,
    /// When the measured phase began, on the monotonic clock.
    began: Nanos,
    /// When the next reading is due.
    next_at: Nanos,
    /// The last reading of each server.
    last: Vec<Option<ServerReport>>,
    stats: Vec<ServerStats>,
}

impl Intervals {
    /// Intervals of this length that have not begun.
    pub fn new(every_ns: Nanos, servers: &[Server]) -> Intervals {
        let stats = servers.iter().map(|server| ServerStats {
            address: server.name().to_owned(),
            every_ns,
            ..ServerStats::default()
        });
        Intervals {
            every_ns,
            began: 0,
            next_at: 0,
            last: servers.iter().map(|_| None).collect(),
            stats: stats.collect(),
        }
    }

    /// Begins at `now`.
    pub fn begin(&mut self, now: Nanos) {
        self.began = now;
        self.next_at = now.saturating_add(self.every_ns);
    }

    /// When the next reading is due.
    pub fn next_at(&self) -> Nanos {
        self.next_at
    }

    /// Length of an interval, in nanoseconds.
    pub fn every_ns(&self) -> Nanos {
        self.every_ns
    }

    /// Sets when the next reading is due: the first time after `now`, so that a reading that took long delays no other.
    pub fn advance(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.began) / self.every_ns.max(1);
        self.next_at = self.began.saturating_add((passed + 1).saturating_mul(self.every_ns));
    }

    /// Takes in the facts that a server reported, if there are some. `reading` makes the difference of two reports.
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

    /// The newest interval of each server; `None` for a server that has reported none.
    pub fn newest(&self) -> Vec<Option<ServerInterval>> {
        self.stats.iter().map(|stats| stats.intervals.last().cloned()).collect()
    }

    /// Returns the intervals of all servers.
    pub fn into_stats(self) -> Vec<ServerStats> {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::SECOND;
    use pummel_measure::evidence::facts::Facts;
    use pummel_measure::evidence::redis::OwnWork;

    use super::*;
    use crate::resolve::Sources;

    fn report(at: Nanos) -> ServerReport {
        ServerReport { at, facts: Facts::default(), own: OwnWork::default() }
    }

    #[test]
    fn a_reading_that_is_missing_makes_a_longer_interval_and_is_counted() {
        let server = Server::resolve("127.0.0.1:1", &Sources::default()).unwrap();
        let mut intervals = Intervals::new(SECOND, &[server]);
        intervals.begin(10 * SECOND);
        assert_eq!(intervals.next_at(), 11 * SECOND);
        for report in [Some(report(10 * SECOND)), Some(report(11 * SECOND)), None, Some(report(13 * SECOND))]
        {
            intervals.take_in(0, report.as_ref(), |_, _| ServerReading::default());
        }
        intervals.advance(13 * SECOND + SECOND / 2);
        assert_eq!(intervals.next_at(), 14 * SECOND);
        let stats = intervals.into_stats().remove(0);
        let seen: Vec<_> = stats.intervals.iter().map(|one| (one.start_ns, one.end_ns)).collect();
        assert_eq!((seen, stats.missed), (vec![(0, SECOND), (SECOND, 3 * SECOND)], 1));
    }
}
