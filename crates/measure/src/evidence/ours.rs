//! The requests of a run between the readings of its servers, as counted by the client and by the servers.

use serde::{Deserialize, Serialize};

use super::server::ServerReading;
use super::untold::UntoldLookups;
use super::{memcached, redis};
use crate::connections::Connections;
use crate::counters::Counters;
use crate::tally::Tally;
use pummel_logic::plan::{Phase, Plan, Work};

/// Largest relative difference between the number of requests sent and the number that a server counted with which
/// the server counts like the client.
const EQUAL_SHARE: f64 = 0.01;

/// The requests of a run between the readings of its servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OurRequests {
    /// Number of requests that were sent, as the client counts them: a request with many keys is one.
    pub sent: u64,
    /// Number of keys of those requests.
    pub keys: u64,
    /// Greatest number of requests that the servers can have counted for those that were sent; absent if it is not
    /// known.
    pub counted: Option<u64>,
    /// Whether a server counts each of the requests once.
    pub one_to_one: bool,
    /// The lookups of the one command whose replies do not tell what it found; absent unless there is one such command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<UntoldLookups>,
}

impl OurRequests {
    /// The requests of a tally. `is_comparable` says whether the servers' count of them is known.
    pub fn of(plan: &Plan, tally: &Tally, is_comparable: bool) -> OurRequests {
        let multiget = multiget(plan);
        let (mut sent, mut keys) = (0, 0);
        for (verb, counts) in tally.iter() {
            let others = counts.failed() + counts.unfinished;
            sent += counts.completed + others;
            keys += counts.keys + others * if verb.reads() { multiget } else { 1 };
        }
        let counted = || match plan.protocol.is_resp() {
            true => redis::counted_at_most(tally),
            false => memcached::counted_at_most(tally, multiget),
        };
        OurRequests {
            sent,
            keys,
            counted: is_comparable.then(counted),
            // A command of the user's own may be a script, whose commands a server counts too.
            one_to_one: keys == sent && plan.commands_count_once(),
            untold: UntoldLookups::of(plan, tally),
        }
    }

    /// The requests of a run that were observed, as a server counts them. Of clients with windows it is not known which requests a
    /// server counts, and of several servers for RESP not into how many commands a request of several keys is split. Redis also
    /// counts the commands of a script and, where `says_hello`, those that begin each connection: neither is known of connections
    /// that came in between. A request that was sent again may have been carried out each time, after a timeout too.
    pub fn of_run(
        plan: &Plan,
        observed: &Tally,
        (connections, counters): (&Connections, &Counters),
        says_hello: bool,
    ) -> OurRequests {
        let sent_again = counters.retry.retries.total() > 0 || !counters.redirects.is_zero();
        let opened_later = connections.churn.is_some()
            || connections.reconnected > 0
            || connections.lost > 0
            || plan.changes.has_stage();
        let is_counted = (plan.servers.len() == 1 || !plan.protocol.is_resp())
            && plan.window().is_none()
            && plan.commands_count_once()
            // A proxy puts its own questions, and cuts requests.
            && plan.server_stats_at.is_empty()
            && !sent_again
            && !(says_hello && opened_later);
        OurRequests::of(plan, observed, is_counted)
    }

    /// Adds the requests of another process.
    pub fn merge(&mut self, other: &OurRequests) {
        self.sent = self.sent.saturating_add(other.sent);
        self.keys = self.keys.saturating_add(other.keys);
        self.counted = self.counted.zip(other.counted).map(|(one, more)| one.saturating_add(more));
        self.one_to_one &= other.one_to_one;
        self.untold = self.untold.zip(other.untold).and_then(|(one, more)| one.with(more));
    }

    /// Number of clients' requests behind `requests` that servers counted, where those of other clients are like ours;
    /// `None` where that is not known.
    pub fn requests_among(&self, requests: u64) -> Option<f64> {
        let (requests, sent) = (requests as f64, self.sent as f64);
        match self.counted.filter(|counted| *counted > 0) {
            Some(counted) => Some(requests * sent / counted as f64),
            None if self.one_to_one => Some(requests),
            None => ((requests - sent).abs() <= EQUAL_SHARE * sent).then_some(sent),
        }
    }

    /// Mean number of keys of a request; `None` if each has at most one.
    pub fn keys_per_request(&self) -> Option<f64> {
        (self.keys > self.sent && self.sent > 0).then(|| self.keys as f64 / self.sent as f64)
    }
}

/// CPU time of servers for each request, as a client counts requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCost {
    /// CPU time for each request, in nanoseconds: a request of many keys is one, and requests of other clients are
    /// assumed to cost the same.
    pub per_request_ns: f64,
    /// CPU time for each key, in nanoseconds; absent where each request has one key at most.
    pub per_key_ns: Option<f64>,
}

impl CpuCost {
    /// The cost of one request where `cpu_ns` was used for `requests` that servers counted; absent where it is not known how
    /// many requests of clients those are.
    pub fn of(cpu_ns: u64, requests: u64, ours: Option<&OurRequests>) -> Option<CpuCost> {
        let ours = ours?;
        let requests = ours.requests_among(requests).filter(|requests| *requests > 0.0)?;
        let per_request_ns = cpu_ns as f64 / requests;
        let per_key_ns = ours.keys_per_request().map(|keys| per_request_ns / keys);
        Some(CpuCost { per_request_ns, per_key_ns })
    }

    /// The cost of one request at the server of a reading; absent where the server started anew, or does not count both.
    pub fn at(reading: &ServerReading, ours: Option<&OurRequests>) -> Option<CpuCost> {
        if !reading.is_whole() || reading.span_ns == 0 {
            return None;
        }
        CpuCost::of(reading.cpu_ns?, reading.counts.requests?, ours)
    }

    /// The cost of one request at several servers together; absent where none of them counts both.
    pub fn at_all<'a>(
        readings: impl Iterator<Item = &'a ServerReading>,
        ours: Option<&OurRequests>,
    ) -> Option<CpuCost> {
        let counted = readings.filter_map(|reading| Some((reading.cpu_ns?, reading.counts.requests?)));
        let (cpu_ns, requests) = counted.fold((0u64, 0u64), |(cpu_ns, requests), (more_ns, more)| {
            (cpu_ns.saturating_add(more_ns), requests.saturating_add(more))
        });
        CpuCost::of(cpu_ns, requests, ours)
    }
}

/// Keys of a read, at most.
fn multiget(plan: &Plan) -> u64 {
    let keys = |phase: &Phase| match &phase.work {
        Work::Mix(mix) => u64::from(mix.multiget),
        _ => 1,
    };
    plan.phases.iter().map(keys).max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::evidence::ServerCounts;
    use pummel_logic::plan::{Changes, Mix, Part, Protocol, Stop};
    use pummel_logic::protocol::{Fault, Verb};
    use pummel_logic::time::SECOND;

    fn plan(protocol: Protocol, multiget: u32) -> Plan {
        let mix = Mix { multiget, ..Mix::of(&[(Verb::Get, 1.0)]) };
        let phase = Phase {
            name: "measure".to_owned(),
            work: Work::Mix(mix),
            stop: Stop { time_ns: Some(SECOND), requests: None },
            recorded: true,
        };
        Plan { protocol, phases: vec![phase], ..Plan::default() }
    }

    fn tally(requests: u64, keys: u64, timeouts: u64) -> Tally {
        let mut counts = Counts { completed: requests, keys, hits: keys, ..Counts::default() };
        counts.errors[Fault::Timeout as usize] = timeouts;
        let mut tally = Tally::default();
        tally.counts(Verb::Get).merge(&counts);
        tally
    }

    #[test]
    fn a_request_of_many_keys_is_one_request_however_the_server_counts_it() {
        for (protocol, counted) in [(Protocol::Text, 1_000), (Protocol::Resp2, 10)] {
            let ours = OurRequests::of(&plan(protocol, 100), &tally(9, 900, 1), true);
            assert_eq!((ours.sent, ours.keys, ours.counted), (10, 1_000, Some(counted)), "{protocol:?}");
            assert_eq!(ours.requests_among(counted), Some(10.0));
            assert_eq!(ours.requests_among(2 * counted), Some(20.0), "those of others are like ours");
            assert_eq!(ours.keys_per_request(), Some(100.0));
        }
    }

    #[test]
    fn requests_that_cannot_be_compared_are_known_where_each_counts_once() {
        let single = OurRequests::of(&plan(Protocol::Text, 1), &tally(10, 10, 0), false);
        assert_eq!((single.counted, single.requests_among(25)), (None, Some(25.0)));
        assert_eq!(single.keys_per_request(), None);
        let many = OurRequests::of(&plan(Protocol::Resp2, 5), &tally(1_000, 5_000, 0), false);
        assert_eq!(many.requests_among(3_000), None, "a cluster answers in parts");
        assert_eq!(many.requests_among(1_005), Some(1_000.0));
    }

    #[test]
    fn processes_are_added() {
        let mut all = OurRequests::of(&plan(Protocol::Text, 2), &tally(10, 20, 0), true);
        all.merge(&OurRequests::of(&plan(Protocol::Text, 2), &tally(5, 10, 0), true));
        assert_eq!((all.sent, all.keys, all.counted), (15, 30, Some(30)));
        all.merge(&OurRequests {
            sent: 1,
            keys: 1,
            counted: None,
            one_to_one: true,
            ..OurRequests::default()
        });
        assert_eq!((all.sent, all.counted, all.one_to_one), (16, None, false));
    }

    #[test]
    fn the_cost_of_a_request_is_that_of_all_its_keys() {
        let counts = ServerCounts { requests: Some(100_000), ..ServerCounts::default() };
        let reading = ServerReading {
            counts,
            span_ns: 2 * SECOND,
            cpu_ns: Some(SECOND),
            serving_threads: Some(2),
            ..ServerReading::default()
        };
        let single = OurRequests {
            sent: 100_000,
            keys: 100_000,
            counted: Some(100_000),
            one_to_one: true,
            untold: None,
        };
        let cost = CpuCost::at(&reading, Some(&single)).expect("both are counted");
        assert_eq!((cost.per_request_ns, cost.per_key_ns), (10_000.0, None));
        let many = OurRequests { sent: 1_000, one_to_one: false, ..single };
        let cost = CpuCost::at(&reading, Some(&many)).expect("both are counted");
        assert_eq!((cost.per_request_ns, cost.per_key_ns), (1_000_000.0, Some(10_000.0)));
        let both = [reading.clone(), reading.clone()];
        let cost_at_all = CpuCost::at_all(both.iter(), Some(&many));
        assert_eq!(cost_at_all.map(|cost| cost.per_request_ns), Some(1_000_000.0));
        assert_eq!(CpuCost::at(&reading, None), None);
        assert_eq!(CpuCost::at(&ServerReading { restarted: true, ..reading }, Some(&single)), None);
    }

    #[test]
    fn servers_count_what_was_sent_unless_others_ask_or_requests_are_split() {
        let text = || plan(Protocol::Text, 1);
        let resp = || plan(Protocol::Resp3, 1);
        let servers = |count: usize, plan: Plan| Plan { servers: vec!["a:1".to_owned(); count], ..plan };
        let staged = || {
            let part = Part { connections: Some(1), ..Part::plain("step".to_owned(), 0) };
            let changes = Changes { parts: vec![part], ..Changes::default() };
            Plan { changes, ..servers(1, resp()) }
        };
        let proxied = Plan { server_stats_at: vec!["a:1".to_owned()], ..servers(1, text()) };
        let mut observed = Tally::default();
        observed.counts(Verb::Get).merge(&Counts { completed: 1, keys: 1, ..Counts::default() });
        let lost = Connections { lost: 1, ..Connections::default() };
        let back = Connections { reconnected: 1, ..Connections::default() };
        let steady = Connections::default();
        let table = [
            (servers(1, text()), &steady, false, true),
            (servers(3, text()), &steady, false, true),
            (proxied, &steady, false, false),
            (servers(1, resp()), &steady, true, true),
            (servers(2, resp()), &steady, true, false),
            (servers(1, resp()), &lost, true, false),
            (servers(1, resp()), &back, true, false),
            (servers(1, resp()), &lost, false, true),
            (staged(), &steady, true, false),
            (staged(), &steady, false, true),
        ];
        for (plan, connections, says_hello, is_counted) in table {
            let of_run = |counters: &Counters| {
                OurRequests::of_run(&plan, &observed, (connections, counters), says_hello)
            };
            let mut counters = Counters::default();
            assert_eq!(of_run(&counters).counted.is_some(), is_counted, "{:?} {says_hello}", plan.protocol);
            counters.retry.given_up.timeout = 1;
            assert_eq!(
                of_run(&counters).counted.is_some(),
                is_counted,
                "what was never sent again is sent once"
            );
            counters.retry.retries.timeout = 1;
            assert_eq!(of_run(&counters).counted, None, "the server may have carried it out twice");
            counters = Counters::default();
            counters.redirects.repeated = 1;
            assert_eq!(of_run(&counters).counted, None, "as that of a cluster");
        }
    }
}
