//! The watch for the first eviction of any server, before the measured phases (`--warmup-until evictions`).

use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::evidence::ServerReading;

use super::inquiry::ServerReport;

/// The time between two rounds in which the servers are asked, in nanoseconds.
const EVERY_NS: Nanos = 250 * MILLISECOND;

/// Number of rounds without any count of evictions after which the watch gives up.
const SILENT_ROUNDS_MAX: u32 = 4;

/// The state of the watch after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// No server has evicted a record, as far as is known.
    Nothing,
    /// A server has evicted a record.
    Evicted,
    /// No server reports its evictions, for this reason.
    Unreported(String),
}

/// The watch for the first eviction.
#[derive(Debug)]
pub struct EvictionWatch {
    /// The first counters of each server since it was started.
    first: Vec<Option<ServerReport>>,
    /// Due time of the next round, on the monotonic clock.
    next_at: Nanos,
    /// Rounds so far in which no server reported its evictions; 0 once one has.
    silent_rounds: u32,
    has_reported: bool,
    /// The reason why a server reported nothing in this round.
    why: Option<String>,
    state: WatchState,
    is_over: bool,
}

impl EvictionWatch {
    /// A watch of this many servers, whose first round is due at once.
    pub fn new(servers: usize) -> EvictionWatch {
        EvictionWatch {
            first: (0..servers).map(|_| None).collect(),
            next_at: 0,
            silent_rounds: 0,
            has_reported: false,
            why: None,
            state: WatchState::Nothing,
            is_over: false,
        }
    }

    /// Due time of the next round, on the monotonic clock; `None` if no further round follows.
    pub fn next_at(&self) -> Option<Nanos> {
        (!self.is_over && self.state == WatchState::Nothing).then_some(self.next_at)
    }

    /// Takes the counters of a server in a round, or the reason why there are none. `reading` interprets two readings.
    pub fn take_in(
        &mut self,
        server: usize,
        report: Result<ServerReport, String>,
        reading: impl Fn(&ServerReport, &ServerReport) -> ServerReading,
    ) {
        let report = match report {
            Ok(report) => report,
            Err(why) => {
                self.why = Some(why);
                return;
            }
        };
        let since = reading(self.first[server].as_ref().unwrap_or(&report), &report);
        match since.counts.evictions {
            _ if !since.is_whole() => self.first[server] = None,
            None => self.why = Some("its statistics have no such count".to_owned()),
            Some(0) => self.has_reported = true,
            Some(_) => (self.has_reported, self.state) = (true, WatchState::Evicted),
        }
        self.first[server].get_or_insert(report);
    }

    /// Ends a round at `now`, and returns the state of the watch.
    pub fn end_round(&mut self, now: Nanos) -> &WatchState {
        self.next_at = now.saturating_add(EVERY_NS);
        self.silent_rounds += 1;
        if !self.has_reported && self.silent_rounds >= SILENT_ROUNDS_MAX && self.state == WatchState::Nothing
        {
            self.state = WatchState::Unreported(self.why.clone().unwrap_or_default());
        }
        &self.state
    }

    /// Ends the watch in the middle of a round: no further round follows.
    pub fn end(&mut self) {
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counters of a server that has evicted this many records.
    fn report(evictions: u64) -> ServerReport {
        ServerReport { at: evictions, ..ServerReport::default() }
    }

    fn reading(before: &ServerReport, after: &ServerReport) -> ServerReading {
        let mut reading = ServerReading { restarted: after.at < before.at, ..ServerReading::default() };
        reading.counts.evictions = Some(after.at.saturating_sub(before.at));
        reading
    }

    fn silent(_: &ServerReport, _: &ServerReport) -> ServerReading {
        ServerReading::default()
    }

    #[test]
    fn the_first_eviction_since_the_first_round_is_seen_on_any_server() {
        let mut watch = EvictionWatch::new(2);
        // What was evicted before the run is no news, and a server that was restarted begins anew.
        for (first, second) in [(5, 7), (5, 7), (1, 7), (1, 7)] {
            watch.take_in(0, Ok(report(first)), reading);
            watch.take_in(1, Ok(report(second)), reading);
            assert_eq!(watch.end_round(10), &WatchState::Nothing);
        }
        assert_eq!(watch.next_at(), Some(10 + EVERY_NS));
        watch.take_in(0, Err("it is silent".to_owned()), reading);
        watch.take_in(1, Ok(report(8)), reading);
        assert_eq!(watch.end_round(20), &WatchState::Evicted);
        assert_eq!(watch.next_at(), None);
    }

    #[test]
    fn a_watch_gives_up_where_no_server_tells_a_count() {
        let mut refused = EvictionWatch::new(1);
        let mut uncounted = EvictionWatch::new(1);
        for round in 1..=SILENT_ROUNDS_MAX {
            refused.take_in(0, Err("no connection".to_owned()), reading);
            uncounted.take_in(0, Ok(report(0)), silent);
            let is_last = round == SILENT_ROUNDS_MAX;
            let expected = |why: &str| {
                if is_last { WatchState::Unreported(why.to_owned()) } else { WatchState::Nothing }
            };
            assert_eq!(refused.end_round(0), &expected("no connection"));
            assert_eq!(uncounted.end_round(0), &expected("its statistics have no such count"));
        }
        // A server that has reported once may be silent for as long as it takes.
        let mut once = EvictionWatch::new(1);
        once.take_in(0, Ok(report(0)), reading);
        for _ in 0..100 {
            assert_eq!(once.end_round(0), &WatchState::Nothing);
            once.take_in(0, Err("it is silent".to_owned()), reading);
        }
    }
}
