//! Limits of what a plan may take of an agent's machine: memory, connections, and the number of its parts.

use std::fs;

use pummel_engine::run::ensure_descriptors;
use pummel_engine::sys;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Depth, Plan, Work, memory};
use pummel_logic::workload::sequence;
use pummel_logic::workload::trace::{RecordedKeys, Trace};

use crate::agent::peers::PEERS_MAX;

/// Most servers, groups and phases of a plan. Each server is a question to the name service, and each group keeps figures
/// in each phase.
const SERVERS_MAX: usize = 4_096;
const GROUPS_MAX: usize = 1_024;
const PHASES_MAX: usize = 1_024;

/// Descriptors of the process beside those of load and of peers.
const DESCRIPTORS_BESIDES: u64 = 64;

/// Limits of what a plan may take of an agent's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that the agent's part of a plan may need.
    pub memory_bytes: u64,
    /// Connections that the agent's part of a plan may have; absent: as many as the limit of open files allows.
    pub connections: Option<u64>,
}

impl Default for Limits {
    /// Half of the machine's memory, or what any plan may need where that is less.
    fn default() -> Limits {
        let half_bytes = machine_memory_bytes().map_or(u64::MAX, |bytes| bytes / 2);
        Limits { memory_bytes: half_bytes.min(memory::LIMIT_BYTES), connections: None }
    }
}

impl Limits {
    /// Refuses a plan with too many servers, groups or phases.
    ///
    /// # Errors
    /// Returns what there is too much of, and how much is accepted.
    pub fn check_size(self, plan: &Plan) -> Result<(), String> {
        let sizes = [
            ("servers", plan.servers.len() + plan.server_stats_at.len(), SERVERS_MAX),
            ("groups", plan.groups.len(), GROUPS_MAX),
            ("phases", plan.phases.len(), PHASES_MAX),
        ];
        match sizes.into_iter().find(|(_, count, most)| count > most) {
            Some((what, count, most)) => {
                Err(format!("the plan has {count} {what}, and an agent takes up to {most}"))
            }
            None => Ok(()),
        }
    }

    /// Refuses an agent's part of a plan that needs more memory or connections than it may have. What a recording that is
    /// replayed needs is left to the [`RecordingLimit`], which is returned.
    ///
    /// # Errors
    /// Returns what is needed, what is allowed, and the option that says so.
    pub fn check(self, plan: &Plan, share: &ProcessShare) -> Result<RecordingLimit, String> {
        let connections = share.clients().saturating_mul(plan.lanes() as u64);
        if let Some(most) = self.connections
            && connections > most
        {
            return Err(format!(
                "{connections} connections are asked for, and it opens up to {most} (--max-connections)"
            ));
        }
        let recording = RecordingLimit {
            others_bytes: need_bytes(plan, share),
            deletes: plan.phases.iter().any(|phase| matches!(phase.work, Work::Delete(_))),
            memory_bytes: self.memory_bytes,
        };
        recording.check(&Trace::new())?;
        ensure_descriptors(plan, share).map_err(|error| error.to_string())?;
        // The peers of the agent have descriptors too. Where the limit is too low for them, new peers wait.
        let besides = PEERS_MAX as u64 + DESCRIPTORS_BESIDES + 2 * u64::from(share.threads);
        let _ = sys::raise_descriptor_limit(connections.saturating_add(besides));
        Ok(recording)
    }
}

/// Memory that a recording may need beside everything else that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimit {
    /// Bytes of everything but the recording.
    others_bytes: u64,
    /// The plan deletes keys of the recording, which are found beforehand.
    deletes: bool,
    /// Bytes that there may be together.
    memory_bytes: u64,
}

impl RecordingLimit {
    /// Refuses a recording whose requests need more memory than is left.
    ///
    /// # Errors
    /// Returns what is needed so far, what is allowed, and the option that says so.
    pub fn check(&self, trace: &Trace) -> Result<(), String> {
        let keys_bytes = if self.deletes { RecordedKeys::need_bytes(trace.len()) } else { 0 };
        let parts = [self.others_bytes, trace.memory_bytes(), keys_bytes];
        let need_bytes = parts.into_iter().fold(0, u64::saturating_add);
        if need_bytes <= self.memory_bytes {
            return Ok(());
        }
        let remedy = if trace.is_empty() {
            "fewer connections, a smaller depth or smaller values need less"
        } else {
            "a shorter recording needs less"
        };
        Err(format!(
            "the plan needs up to {} of memory on it, and it gives up to {} (--max-memory): {remedy}",
            megabytes(need_bytes),
            megabytes(self.memory_bytes)
        ))
    }
}

/// Bytes of memory that an agent's part of a plan needs at most beside a recording.
fn need_bytes(plan: &Plan, share: &ProcessShare) -> u64 {
    let mut part = plan.clone();
    part.engine.threads = share.threads;
    for (group, clients) in part.groups.iter_mut().zip(&share.clients) {
        group.depth = Depth::Limit(memory::depth_of(group));
        group.clients = u32::try_from(clients.end - clients.start).unwrap_or(u32::MAX);
    }
    memory::need_bytes(&part).saturating_add(zeros_bytes(plan))
}

/// Bytes of the text that the values of a sequence are ranges of; other values are made when they are sent.
fn zeros_bytes(plan: &Plan) -> u64 {
    plan.sequence().map_or(0, |sequence| sequence::largest(sequence.sizes, u64::MAX))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The memory of this machine, or of this process's control group where that is less; `None` where neither is known.
fn machine_memory_bytes() -> Option<u64> {
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group_bytes = group.and_then(|text| text.trim().parse::<u64>().ok());
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine_bytes = machine.and_then(|text| total_of(&text));
    group_bytes.into_iter().chain(machine_bytes).min()
}

/// The total memory in bytes in a text of `/proc/meminfo`.
fn total_of(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::dist::Dist;
    use pummel_logic::plan::{Delete, Group, Mix, Phase, Stop};
    use pummel_logic::protocol::Verb;

    fn plan(clients: u32, depth: Depth) -> Plan {
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: "measure".to_owned(), work, stop: Stop::default(), recorded: true };
        let group = Group { clients, depth, ..Group::default() };
        Plan {
            servers: vec!["127.0.0.1:11211".to_owned()],
            groups: vec![group],
            phases: vec![phase],
            ..Plan::default()
        }
    }

    fn share(clients: u64) -> ProcessShare {
        #[expect(clippy::single_range_in_vec_init, reason = "there is one group")]
        let clients = vec![0..clients];
        ProcessShare { clients, threads: 1, first_worker: 0, workers: 1, mark: 0 }
    }

    const ROOMY: Limits = Limits { memory_bytes: 1 << 30, connections: Some(100) };

    #[test]
    fn a_part_is_held_against_the_limits_and_the_refusal_names_the_option() {
        let plan = plan(1_000, Depth::Limit(1));
        let left = ROOMY.check(&plan, &share(100)).expect("it is within the limits");
        let why = ROOMY.check(&plan, &share(101)).expect_err("too many");
        assert!(why.contains("101 connections") && why.contains("--max-connections"), "{why}");
        let mut trace = Trace::new();
        assert!(trace.push(b"key", 1_000, true));
        assert_eq!(left.check(&trace), Ok(()));
        assert!(trace.push(b"key", 1 << 30, true));
        assert_eq!(left.check(&trace), Ok(()), "long values are made when they are sent");
        let tight = Limits { memory_bytes: 1 << 20, ..ROOMY };
        assert!(tight.check(&plan, &share(1)).expect_err("the process itself").contains("--max-memory"));
    }

    #[test]
    fn deep_clients_need_memory_and_long_values_do_not() {
        let mut large = plan(1, Depth::Limit(1));
        large.data.value_size = Dist::Fixed((1u64 << 30) as f64);
        assert!(ROOMY.check(&large, &share(1)).is_ok());
        let deep = plan(100, Depth::Limit(100_000));
        assert!(ROOMY.check(&deep, &share(100)).expect_err("deep").contains("--max-memory"));
        assert!(ROOMY.check(&deep, &share(1)).is_ok(), "only the part counts");
    }

    #[test]
    fn the_requests_of_a_recording_are_counted_with_their_whole_keys() {
        let plan = plan(1, Depth::Limit(1));
        let need_bytes = need_bytes(&plan, &share(1));
        let limits = Limits { memory_bytes: need_bytes + 1_000, connections: None };
        let left = limits.check(&plan, &share(1)).expect("there is room");
        let mut trace = Trace::new();
        while trace.memory_bytes() <= 1_000 {
            assert_eq!(left.check(&trace), Ok(()));
            assert!(trace.push(&[b'k'; 250], 1, false));
        }
        assert!(left.check(&trace).is_err());
        assert_eq!(trace.len(), 4);
    }

    #[test]
    fn the_keys_of_a_recording_are_counted_where_they_are_deleted() {
        let rows = 1_000;
        let mut trace = Trace::new();
        (0..rows).for_each(|row| assert!(trace.push(format!("{row}").as_bytes(), 1, false)));
        let check = |plan: &Plan, keys_bytes: u64| {
            let others_bytes = need_bytes(plan, &share(1));
            let memory_bytes = others_bytes + trace.memory_bytes() + keys_bytes;
            let limits = Limits { memory_bytes, connections: None };
            limits.check(plan, &share(1)).expect("there is room for the plan").check(&trace)
        };
        let mut plan = plan(1, Depth::Limit(1));
        assert_eq!(check(&plan, 0), Ok(()));
        plan.phases[0].work = Work::Delete(Delete { share: 0.9, depth: 1 });
        let why = check(&plan, 16 * rows - 1).expect_err("too much");
        assert!(why.contains("--max-memory") && why.contains("recording"), "{why}");
        assert_eq!(check(&plan, 16 * rows), Ok(()));
    }

    #[test]
    fn a_plan_is_made_of_so_many_things_at_most() {
        let mut long = plan(1, Depth::Limit(1));
        assert_eq!(ROOMY.check_size(&long), Ok(()));
        long.groups = vec![Group::default(); GROUPS_MAX + 1];
        assert!(ROOMY.check_size(&long).expect_err("too many").contains("1025 groups"));
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       16 kB\n"), Some(16 << 10));
        assert_eq!(total_of("MemTotal: many"), None);
        assert!(Limits::default().memory_bytes > 0);
    }
}
