//! Evidence on everything that can limit a run: its servers, the machines that sent the requests, and the network.
//!
//! One reading is taken before the measured phase and one after it; figures are the differences between the two unless
//! a field says otherwise. The core is given readings; `pummel-engine` takes them.
//!
//! Fields of an agent of another build that are not known here are left out, and fields that it lacks are unknown: no
//! figure of a run depends on them.

pub mod card;
pub mod facts;
pub mod machine;
pub mod memcached;
pub mod ours;
pub mod probe;
pub mod proc;
pub mod provenance;
pub mod redis;
mod redis_lists;
mod redis_saves;
pub mod reply;
pub mod resp_value;
pub mod server;
pub mod server_stats;
pub mod slabs;
pub mod slots;
mod untold;

use serde::{Deserialize, Serialize};

pub use self::machine::{CardUse, ConnectionEvidence, HostNetwork, MachineEvidence, ThreadUse};
pub use self::ours::{CpuCost, OurRequests};
pub use self::probe::{Probe, ProbeHalf};
pub use self::server::{
    CommandTimes, ConnectionLimit, ErrorCount, LatencyEvent, ServerCounts, ServerEvidence, ServerReading,
    SlowCommand,
};
use self::server_stats::ServerStats;
pub use self::slabs::SlabClass;
pub use self::slots::SlotUse;
pub use self::untold::{UntoldLookups, UntoldMisses};

/// The evidence of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The servers, in the order of the Plan. With agents the servers are read by one of the agents, and the threads of
    /// a server by the agent that shares the machine with it.
    pub servers: Vec<ServerEvidence>,
    /// The machines that sent the requests: one for each process.
    pub machines: Vec<MachineEvidence>,
    /// Servers' own statistics, interval by interval; empty where these were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_stats: Vec<ServerStats>,
    /// Requests of this run between the readings of several servers, all together, as those count them; absent where there is
    /// one server, which has them in its reading, and where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub our_requests: Option<u64>,
    /// The requests of this run between the readings, as the client and the servers count them; absent where no process has
    /// counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<OurRequests>,
    /// The operations of the run with one and with ten requests in flight, after it; absent where that was not asked for, and where
    /// it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

impl Evidence {
    /// Enters the requests that this process sent between the readings: as far as servers count them, with one server into
    /// its reading, with several into the evidence, since it is not known which of them had how many.
    pub fn set_our_requests(&mut self, ours: Option<OurRequests>) {
        let asked = ours.and_then(|ours| ours.counted);
        let is_comparable = |server: &ServerEvidence| match (&server.reading, &server.unread) {
            (Some(reading), _) => reading.our_requests.is_some(),
            // Another process asks this server.
            (None, why) => why.is_none(),
        };
        let are_comparable = self.servers.iter().all(is_comparable);
        self.ours = ours.map(|ours| OurRequests { untold: ours.untold.filter(|_| are_comparable), ..ours });
        if let [server] = self.servers.as_mut_slice() {
            return server.set_our_requests(asked);
        }
        self.our_requests = asked.filter(|_| are_comparable);
        self.servers.iter_mut().for_each(ServerEvidence::forget_our_requests);
    }

    /// Notes that requests were sent that no process of the run has counted.
    pub fn forget_our_requests(&mut self) {
        self.our_requests = None;
        if let Some(ours) = &mut self.ours {
            ours.untold = None;
        }
        self.servers.iter_mut().for_each(ServerEvidence::forget_our_requests);
    }

    /// Requests of others that several servers counted, and ours; absent where one of them is not known.
    pub fn others_of_several(&self) -> Option<(u64, u64)> {
        let ours = self.our_requests?;
        if self.names_one_twice() {
            return None;
        }
        let counted = self.servers.iter().map(|server| server.reading.as_ref()?.counts.requests);
        let counted: u64 = counted.sum::<Option<u64>>()?;
        Some((counted.saturating_sub(ours), ours))
    }

    /// Whether one server was read by two names, and so counts every request for both.
    fn names_one_twice(&self) -> bool {
        let readings = || self.servers.iter().filter_map(|server| server.reading.as_ref());
        let is_twice =
            |one: &ServerReading| readings().filter(|other| one.is_of_one_process(other)).count() > 1;
        readings().any(is_twice)
    }

    /// The misses of the one command whose replies do not tell them, by the servers' counts; absent where those are not known.
    pub fn untold_misses(&self) -> Option<UntoldMisses> {
        let untold = self.ours?.untold?;
        let are_read = self.servers.iter().all(|server| server.reading.is_some());
        if !are_read || self.names_one_twice() {
            return None;
        }
        untold.missed(self.servers.iter().filter_map(|server| server.reading.as_ref()))
    }

    /// Makes what another process said fit for a report: only the servers that it was asked about, and `clean` words.
    pub fn adopt(&mut self, asked: &[&str], clean: &dyn Fn(&str) -> String) {
        self.servers.retain(|server| asked.contains(&server.address.as_str()));
        self.server_stats.retain(|stats| asked.contains(&stats.address.as_str()));
        for server in &mut self.servers {
            let reading = server.reading.iter_mut().flat_map(|reading| {
                let commands = reading.commands.iter_mut().map(|command| &mut command.name);
                let errors = reading.errors.iter_mut().map(|error| &mut error.name);
                let slow = reading.slow_commands.iter_mut().map(|command| &mut command.name);
                let events = reading.latency_events.iter_mut().map(|event| &mut event.name);
                [&mut reading.software, &mut reading.version]
                    .into_iter()
                    .chain(&mut reading.disturbances)
                    .chain(reading.settings.values_mut())
                    .chain(commands)
                    .chain(errors)
                    .chain(slow)
                    .chain(events)
            });
            let unread = server.unread.iter_mut().chain(&mut server.threads_unread);
            let threads = server.threads.iter_mut().flatten().map(|thread| &mut thread.name);
            reading.chain(unread).chain(threads).for_each(|words| *words = clean(words));
        }
        for machine in &mut self.machines {
            let cards = machine.network.iter_mut().flat_map(|network| &mut network.cards);
            let workers = machine.workers.iter_mut().map(|worker| &mut worker.name);
            let names = cards.map(|card| &mut card.name).chain(workers);
            names.chain(&mut machine.unread).for_each(|words| *words = clean(words));
        }
        let intervals = self.server_stats.iter_mut().flat_map(|stats| &mut stats.intervals);
        intervals.flat_map(|interval| &mut interval.disturbances).for_each(|words| *words = clean(words));
    }

    /// Adds the evidence of another process of the same run.
    pub fn merge(&mut self, other: &Evidence) {
        self.our_requests = match self.machines.is_empty() {
            true => other.our_requests,
            false => self.our_requests.zip(other.our_requests).map(|(one, more)| one.saturating_add(more)),
        };
        match (&mut self.ours, &other.ours) {
            (Some(ours), Some(more)) => ours.merge(more),
            (ours, more) => *ours = ours.or(*more),
        }
        for more in &other.servers {
            match self.servers.iter_mut().find(|server| server.address == more.address) {
                Some(server) => server.merge(more),
                None => self.servers.push(more.clone()),
            }
        }
        self.machines.extend(other.machines.iter().cloned());
        for more in &other.server_stats {
            if self.server_stats.iter().all(|stats| stats.address != more.address) {
                self.server_stats.push(more.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evidence of one process on a server: its own requests, and a reading where it asked the server.
    fn seen(reads: bool, in_time: bool, asked: Option<u64>) -> Evidence {
        let reading = ServerReading { our_requests: in_time.then_some(0), ..ServerReading::default() };
        let mut server = ServerEvidence {
            address: "a:1".to_owned(),
            reading: reads.then_some(reading),
            ..ServerEvidence::default()
        };
        server.set_our_requests(asked);
        Evidence { servers: vec![server], machines: vec![MachineEvidence::default()], ..Evidence::default() }
    }

    fn our_requests_of(parts: &[Evidence]) -> Option<u64> {
        let mut whole = Evidence::default();
        parts.iter().for_each(|part| whole.merge(part));
        assert_eq!((whole.servers.len(), whole.machines.len()), (1, parts.len()));
        whole.servers[0].reading.as_ref().expect("one of them read it").our_requests
    }

    #[test]
    fn the_requests_of_all_processes_stand_beside_what_the_server_counted() {
        let (reader, other) = (seen(true, true, Some(10)), seen(false, true, Some(5)));
        assert_eq!(our_requests_of(&[reader.clone(), other.clone(), other.clone()]), Some(20));
        assert_eq!(our_requests_of(&[other.clone(), reader.clone()]), Some(15));
        assert_eq!(our_requests_of(&[reader.clone(), seen(false, true, None)]), None, "one does not know");
        assert_eq!(our_requests_of(&[seen(true, false, Some(10)), other]), None, "read at another time");
        let mut whole = reader;
        whole.servers[0].forget_our_requests();
        assert_eq!(our_requests_of(&[whole]), None);
    }

    #[test]
    fn what_another_process_says_is_of_the_servers_of_the_plan_and_has_clean_words() {
        let mut evidence = seen(true, true, None);
        evidence.servers[0].reading.as_mut().expect("it was read").version = "1\u{1b}[2J".to_owned();
        evidence.servers.push(ServerEvidence { address: "b:1".to_owned(), ..ServerEvidence::default() });
        evidence.machines[0].unread.push("a\nb".to_owned());
        evidence.adopt(&["a:1"], &|words| words.replace(|c: char| c.is_control(), "?"));
        assert_eq!(evidence.servers.len(), 1);
        assert_eq!(evidence.servers[0].reading.as_ref().expect("it was read").version, "1?[2J");
        assert_eq!(evidence.machines[0].unread, ["a?b"]);
    }

    /// Requests that a server counts as the client does.
    fn ours(counted: u64) -> OurRequests {
        OurRequests { sent: counted, keys: counted, counted: Some(counted), one_to_one: true, untold: None }
    }

    /// Evidence of one process on two servers, each of which counted 60 requests.
    fn seen_of_two(reads: bool, in_time: bool, asked: Option<u64>) -> Evidence {
        let mut evidence = seen(reads, in_time, None);
        if let Some(reading) = &mut evidence.servers[0].reading {
            reading.our_requests = in_time.then_some(0);
            reading.counts.requests = Some(60);
        }
        let other = ServerEvidence { address: "b:1".to_owned(), ..evidence.servers[0].clone() };
        evidence.servers.push(other);
        evidence.set_our_requests(asked.map(ours));
        evidence
    }

    #[test]
    fn of_several_servers_the_requests_of_all_are_compared() {
        let others_of = |parts: &[Evidence]| {
            let mut whole = Evidence::default();
            parts.iter().for_each(|part| whole.merge(part));
            assert!(whole.servers.iter().all(|server| server.asked.is_none()));
            whole.others_of_several()
        };
        let reader = seen_of_two(true, true, Some(80));
        assert_eq!(others_of(std::slice::from_ref(&reader)), Some((40, 80)));
        let other = seen_of_two(false, true, Some(30));
        assert_eq!(others_of(&[reader.clone(), other.clone()]), Some((10, 110)));
        assert_eq!(others_of(&[other, reader.clone()]), Some((10, 110)));
        assert_eq!(others_of(&[seen_of_two(true, false, Some(80))]), None, "read at another time");
        assert_eq!(others_of(&[reader.clone(), seen_of_two(false, true, None)]), None, "one does not know");
        let mut lost = reader;
        lost.forget_our_requests();
        assert_eq!(others_of(&[lost]), None);
    }

    #[test]
    fn evidence_without_the_newer_fields_is_read() {
        let mut saved = serde_json::to_value(seen(true, true, Some(3))).expect("evidence is data");
        saved["servers"][0].as_object_mut().expect("an object").remove("asked");
        let read: Evidence = serde_json::from_value(saved).expect("the field may be absent");
        assert_eq!(read.servers[0].asked, None);
    }

    #[test]
    fn evidence_with_fields_of_a_later_build_is_read_without_them() {
        let known = seen(true, true, Some(3));
        let mut said = serde_json::to_value(&known).expect("evidence is data");
        for path in ["", "/servers/0", "/servers/0/reading", "/servers/0/reading/counts", "/machines/0"] {
            let place = said.pointer_mut(path).and_then(|place| place.as_object_mut()).expect("an object");
            place.insert("weather".to_owned(), serde_json::json!({"sun": [1, 2]}));
        }
        assert_eq!(serde_json::from_value::<Evidence>(said).expect("it is evidence"), known);
    }
}
