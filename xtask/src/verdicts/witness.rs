//! Witnesses of a staging: figures of the kernel and of the servers, read without pummel before and after a run.

use std::fs;
use std::io;
use std::time::Instant;

use super::scenario::{Sees, Server, Side};
use super::stage::Stage;

/// Totals that the witnesses of a stage saw before the run.
pub struct Reading {
    read: Instant,
    totals: Vec<f64>,
}

impl Reading {
    /// The reading before a run.
    pub fn of(stage: &Stage<'_>) -> io::Result<Reading> {
        let witnesses = stage.scenario().witnesses.iter();
        let totals =
            witnesses.map(|witness| total(&witness.sees, stage)).collect::<io::Result<Vec<f64>>>()?;
        Ok(Reading { read: Instant::now(), totals })
    }

    /// Why the run does not count that was made since: the first figure that is not as its witness demands it; `None` where all are.
    pub fn denial(&self, stage: &Stage<'_>) -> io::Result<Option<String>> {
        let elapsed_s = self.read.elapsed().as_secs_f64();
        for (witness, before) in stage.scenario().witnesses.iter().zip(&self.totals) {
            let value = value(&witness.sees, *before, total(&witness.sees, stage)?, elapsed_s);
            if !witness.accepts(value) {
                return Ok(Some(format!("{}, and was {value:.3}", witness.words())));
            }
        }
        Ok(None)
    }
}

/// The figure of a run from what was read before and after it.
fn value(sees: &Sees, before: f64, after: f64, elapsed_s: f64) -> f64 {
    match sees {
        Sees::InCommands | Sees::ServerCpu | Sees::ServerWaited | Sees::Throttled => {
            (after - before) / elapsed_s
        }
        Sees::Sockets(..) => after,
        _ => after - before,
    }
}

/// Total that is read at one time: a counter, or seconds.
fn total(sees: &Sees, stage: &Stage<'_>) -> io::Result<f64> {
    let missing = |what: String| io::Error::other(format!("a witness does not see {what}"));
    match sees {
        Sees::Kernel(side, name) => {
            let text = stage.ask(*side, "nstat -asz")?;
            nstat(&text, name).ok_or_else(|| missing(name.clone()))
        }
        Sees::KernelBeyond(side, name, other) => {
            let text = stage.ask(*side, "nstat -asz")?;
            let both = nstat(&text, name).zip(nstat(&text, other));
            both.map(|(one, other)| one - other).ok_or_else(|| missing(format!("{name} and {other}")))
        }
        Sees::Counter(name) => {
            let is_redis = matches!(stage.scenario().server, Server::Redis(_));
            let text = stage.ask_server(if is_redis { "INFO everything" } else { "stats" })?;
            counter(&text, name).ok_or_else(|| missing(name.clone()))
        }
        Sees::InCommands => Ok(in_commands_s(&stage.ask_server("INFO commandstats")?)),
        Sees::ServerCpu => stage.server_cpu_s(),
        Sees::ServerWaited => waited_s(stage.server_pid()),
        Sees::Throttled => {
            let text = stage.quota_file("cpu.stat")?;
            throttled_s(&text).ok_or_else(|| missing("throttled time".to_owned()))
        }
        Sees::ListenDrops => {
            let script =
                format!("ss --no-header --tcp --listening --numeric --memory 'sport = :{}'", stage.port());
            let text = stage.ask(Side::Server, &script)?;
            listen_drops(&text).ok_or_else(|| missing("drops of the listening socket".to_owned()))
        }
        Sees::Sockets(side, state) => {
            let script =
                format!("ss --no-header --tcp --numeric state {state} 'dport = :{}' | wc -l", stage.port());
            let text = stage.ask(*side, &script)?;
            text.trim().parse().map_err(|_| missing(format!("sockets in {state}")))
        }
    }
}

/// A counter of `nstat`.
fn nstat(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    lines.find(|fields| fields.first() == Some(&name))?.get(1)?.parse().ok()
}

/// A number of memcached's `STAT name 7` or Redis's `name:7`.
fn counter(text: &str, name: &str) -> Option<f64> {
    let value = |line: &str| {
        let rest = line.strip_prefix("STAT ").unwrap_or(line).strip_prefix(name)?;
        rest.strip_prefix([' ', ':'])?.trim().parse().ok()
    };
    text.lines().find_map(value)
}

/// Seconds inside commands, by all `usec=` of `INFO commandstats`.
fn in_commands_s(text: &str) -> f64 {
    let usec = text.lines().filter(|line| line.starts_with("cmdstat_")).filter_map(|line| {
        let rest = line.split_once(",usec=")?.1;
        rest.split(',').next()?.parse::<f64>().ok()
    });
    usec.sum::<f64>() / 1e6
}

/// Seconds for which the thread of a process that waited longest for a CPU did so: the second figure of its schedstat.
fn waited_s(pid: u32) -> io::Result<f64> {
    let mut most_ns = 0.0_f64;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let delay = text.split_whitespace().nth(1).and_then(|delay_ns| delay_ns.parse().ok());
        most_ns = most_ns.max(delay.unwrap_or(0.0));
    }
    Ok(most_ns / 1e9)
}

/// Throttled seconds of `cpu.stat`, of version 1 or 2.
fn throttled_s(text: &str) -> Option<f64> {
    let value =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let version_2 = value("throttled_usec ").map(|usec| usec / 1e6);
    version_2.or_else(|| Some(value("throttled_time ")? / 1e9))
}

/// Drops of listening sockets, of the `d` at the end of `skmem:(...)`.
fn listen_drops(text: &str) -> Option<f64> {
    let drops = text.split("skmem:(").skip(1).filter_map(|rest| {
        let last = rest.split(')').next()?.rsplit(',').next()?;
        last.strip_prefix('d')?.parse::<f64>().ok()
    });
    let drops: Vec<f64> = drops.collect();
    (!drops.is_empty()).then(|| drops.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdicts::scenario::Witness;

    #[test]
    fn counters_of_the_kernel_and_of_servers_are_found_by_their_whole_name() {
        let kernel =
            "#kernel\nTcpRetransSegs                  12                 0.0\nTcpExtTCPDSACKRecv 5 0.0\n";
        assert_eq!((nstat(kernel, "TcpRetransSegs"), nstat(kernel, "TcpRetrans")), (Some(12.0), None));
        let memcached = "STAT evictions_all 9\r\nSTAT evictions 3\r\nEND\r\n";
        assert_eq!(counter(memcached, "evictions"), Some(3.0));
        let redis = "$99\r\n# Stats\r\nevicted_keys:7\r\nrejected_connections:2\r\n";
        assert_eq!((counter(redis, "evicted_keys"), counter(redis, "evicted")), (Some(7.0), None));
    }

    #[test]
    fn the_time_inside_commands_is_the_sum_over_all_of_them() {
        let text = "# Commandstats\r\ncmdstat_debug:calls=3,usec=3000000,usec_per_call=1.0,rejected_calls=0\r\n\
                    cmdstat_client|setname:calls=1,usec=500000,usec_per_call=5.00\r\nother:calls=1,usec=9\r\n";
        assert_eq!(in_commands_s(text), 3.5);
    }

    #[test]
    fn times_of_a_process_and_of_its_control_group_are_seconds() {
        assert!(waited_s(std::process::id()).unwrap() >= 0.0);
        assert_eq!(throttled_s("usage_usec 7\nnr_throttled 2\nthrottled_usec 1500000\n"), Some(1.5));
        assert_eq!(throttled_s("nr_throttled 2\nthrottled_time 2500000000\n"), Some(2.5));
        assert_eq!(throttled_s("usage_usec 7\n"), None);
    }

    #[test]
    fn drops_of_listening_sockets_are_added_up() {
        let text = "LISTEN 0 1024 127.0.0.1:1 0.0.0.0:*\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d597)\n\
                    LISTEN 0 1024 [::1]:1 [::]:*\n\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d3)\n";
        assert_eq!((listen_drops(text), listen_drops("LISTEN 0 1024\n")), (Some(600.0), None));
    }

    #[test]
    fn a_witness_compares_the_difference_or_its_share_of_the_time() {
        let witness = |text: &str| toml::from_str::<Witness>(text).unwrap();
        let accepts =
            |witness: &Witness, before, after| witness.accepts(value(&witness.sees, before, after, 4.0));
        let rises = witness("sees = { counter = \"evictions\" }\nat_least = 2.0");
        assert!(accepts(&rises, 5.0, 7.0) && !accepts(&rises, 5.0, 6.0));
        let idle = witness("sees = \"server-cpu\"\nat_most = 0.5");
        assert!(accepts(&idle, 1.0, 3.0) && !accepts(&idle, 1.0, 3.5));
        assert_eq!(value(&Sees::Sockets(Side::Client, "time-wait".to_owned()), 5.0, 7.0, 4.0), 7.0);
        assert_eq!(idle.words(), "ServerCpu is 0.5 or less");
    }
}
