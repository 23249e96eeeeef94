//! Readers of the texts of /proc, /sys and control groups about processes, CPUs and networks.

use std::collections::BTreeMap;

use super::facts::rise;
use super::machine::{CardUse, HostNetwork, ThreadUse};
use pummel_logic::time::{MICROSECOND, Nanos, SECOND};

/// Most threads of a server that are kept, those with the most CPU time.
pub const THREADS_MAX: usize = 256;

/// The times in `/proc/PID/task/TID/schedstat`: CPU time and run delay in nanoseconds. `None` for other text, and for a
/// kernel without these figures, which says zeros.
pub fn schedstat(text: &str) -> Option<(Nanos, Nanos)> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let (cpu_ns, run_delay_ns, slices) = (words.next()??, words.next()??, words.next()??);
    (slices > 0 || cpu_ns > 0).then_some((cpu_ns, run_delay_ns))
}

/// Fields of `/proc/PID/stat`, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// CPU time, user and system.
    pub cpu_ticks: u64,
    /// Start of the process, since the start of the machine.
    pub start_ticks: u64,
}

/// Reads `/proc/PID/stat` or that of a thread. The name in it may hold blanks and brackets.
pub fn process_stat(text: &str) -> Option<ProcessStat> {
    let field = |number| stat_field(text, number);
    Some(ProcessStat { cpu_ticks: field(14)?.checked_add(field(15)?)?, start_ticks: field(22)? })
}

/// The CPU on which a thread ran last, in its `/proc/PID/task/TID/stat`.
pub fn last_cpu(text: &str) -> Option<u32> {
    stat_field(text, 39)?.try_into().ok()
}

/// A field of `/proc/PID/stat` by its number in proc_pid_stat(5); the first one behind the name is number 3.
fn stat_field(text: &str, number: usize) -> Option<u64> {
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

/// Use of some CPUs since the machine started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Time of all processes, and of the kernel on their behalf; without interrupts.
    pub used: u64,
    /// Time that the hypervisor took.
    pub steal: u64,
}

/// The ticks of these CPUs in `/proc/stat`; `None` where a line of them is missing.
pub fn cpu_ticks(text: &str, cpus: &[usize]) -> Option<CpuTicks> {
    let mut sum = CpuTicks::default();
    for cpu in cpus {
        let name = format!("cpu{cpu}");
        let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(&name))?;
        // The columns of proc_stat(5): user, nice and system are the first three, steal is the eighth.
        let column = |number: usize| line.split_ascii_whitespace().nth(number)?.parse::<u64>().ok();
        for number in 1..=3 {
            sum.used = sum.used.checked_add(column(number)?)?;
        }
        sum.steal = sum.steal.checked_add(column(8)?)?;
    }
    Some(sum)
}

/// The ticks that processes used of each CPU in `/proc/stat`, by the numbers of the CPUs, at most 65,536.
pub fn used_ticks_by_cpu(text: &str) -> BTreeMap<u32, u64> {
    let ticks_of = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = words.next()?.parse::<u32>().ok()?;
        let used = words.take(3).map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
        Some((cpu, used.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks))))
    };
    // The line of all CPUs together has a blank behind its name, and no number.
    text.lines().filter(|line| !line.starts_with("cpu ")).filter_map(ticks_of).take(CPUS_MAX).collect()
}

/// Most CPUs that are kept.
const CPUS_MAX: usize = 65_536;

/// The time in `cpu.stat` of a control group for which its limit held it back: microseconds in `throttled_usec` of version 2,
/// nanoseconds in `throttled_time` of version 1. A group that cannot have a limit has neither and was never held back.
pub fn throttled_ns(text: &str) -> Option<Nanos> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    if let Some(us) = value("throttled_usec") {
        return us.checked_mul(MICROSECOND);
    }
    value("throttled_time").or_else(|| value("usage_usec").map(|_| 0))
}

/// The directories of the CPU's control groups of a process in `/proc/PID/cgroup`, from its own to the root, relative
/// to the mount point of version 2 and of version 1.
pub fn cgroup_paths(text: &str) -> CgroupPaths<'_> {
    let mut paths = CgroupPaths::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if id == "0" && controllers.is_empty() {
            paths.unified = Some(path);
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            paths.cpu = Some((controllers, path));
        }
    }
    paths
}

/// The control groups of a process that may limit its CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupPaths<'a> {
    /// Path of the group of version 2.
    pub unified: Option<&'a str>,
    /// Controllers and path of the group of version 1.
    pub cpu: Option<(&'a str, &'a str)>,
}

/// The time in which some process waited for a CPU, in `/proc/pressure/cpu`.
pub fn pressure_ns(text: &str) -> Option<Nanos> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let us = some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    us.parse::<u64>().ok()?.checked_mul(MICROSECOND)
}

/// The value of a counter in `/proc/net/snmp` or `/proc/net/netstat`, where a line of names stands before one of values.
pub fn net_counter(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|word| word == name)?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// Most cards that are kept; a machine that runs containers has one for each of them.
const CARDS_MAX: usize = 64;

impl HostNetwork {
    /// Reads `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/dev`; `None` where a counter is missing. The speeds of the
    /// cards are not in them.
    pub fn read(snmp: &str, netstat: &str, dev: &str) -> Option<HostNetwork> {
        let cards = dev.lines().filter_map(card_of).filter(|card| card.name != "lo");
        let mut cards: Vec<CardUse> = cards.take(CARDS_MAX).collect();
        cards.sort_by(|one, other| one.name.cmp(&other.name));
        Some(HostNetwork {
            segments_out: net_counter(snmp, "Tcp", "OutSegs")?,
            retransmits: net_counter(snmp, "Tcp", "RetransSegs")?,
            timeouts: net_counter(netstat, "TcpExt", "TCPTimeouts")?,
            listen_overflows: net_counter(netstat, "TcpExt", "ListenOverflows")?,
            cards,
        })
    }

    /// Use of the network from `self` until `after`. A counter that fell belongs to another card of the same name and
    /// counts from 0.
    pub fn until(&self, after: HostNetwork) -> HostNetwork {
        let used = |before: u64, after: u64| rise(before, after).unwrap_or(after);
        let nothing = CardUse::default();
        let card = |card: CardUse| {
            let before = self.cards.iter().find(|before| before.name == card.name).unwrap_or(&nothing);
            CardUse {
                sent_bytes: used(before.sent_bytes, card.sent_bytes),
                received_bytes: used(before.received_bytes, card.received_bytes),
                dropped: used(before.dropped, card.dropped),
                allowance_exceeded: card
                    .allowance_exceeded
                    .map(|exceeded| used(before.allowance_exceeded.unwrap_or(0), exceeded)),
                ..card
            }
        };
        let cards = after.cards.into_iter().map(card);
        HostNetwork {
            segments_out: used(self.segments_out, after.segments_out),
            retransmits: used(self.retransmits, after.retransmits),
            timeouts: used(self.timeouts, after.timeouts),
            listen_overflows: used(self.listen_overflows, after.listen_overflows),
            cards: cards.filter(|card| card.sent_bytes + card.received_bytes > 0).collect(),
        }
    }
}

/// A line of `/proc/net/dev`: a card, what it received, and what it sent.
fn card_of(line: &str) -> Option<CardUse> {
    let (name, counters) = line.split_once(':')?;
    let numbers: Vec<u64> = counters.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(CardUse {
        name: name.trim().to_owned(),
        received_bytes: *numbers.first()?,
        sent_bytes: *numbers.get(8)?,
        dropped: numbers.get(3)?.checked_add(*numbers.get(11)?)?,
        ..CardUse::default()
    })
}

/// The speed of a card in bits per second, from the megabits of `/sys/class/net/CARD/speed`; cards without a link say -1.
pub fn card_speed(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|&megabits| megabits > 0)?.checked_mul(1_000_000)
}

/// The port and the inode of a socket that listens, from its line of `/proc/PID/net/tcp` or `tcp6`; `None` for any other line.
///
/// The kernel lists the sockets that listen before all others (Documentation/networking/proc_net_tcp.rst).
pub fn tcp_listener(line: &str) -> Option<(u16, u64)> {
    const LISTEN: &str = "0A";
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, hex) = words.get(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(hex, 16).ok().filter(|_| words.get(3) == Some(&LISTEN))?;
    Some((port, words.get(9)?.parse().ok()?))
}

/// The inodes of the unix sockets with this path that listen, in `/proc/PID/net/unix`.
pub fn unix_listeners(text: &str, path: &str) -> Vec<u64> {
    const ACCEPTS: u32 = 0x1_0000;
    let listener = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
        let is_it = words.get(7..)?.join(" ") == path && flags & ACCEPTS != 0;
        is_it.then_some(words.get(6)?.parse().ok()?)
    };
    text.lines().skip(1).filter_map(listener).collect()
}

/// The inode in the target of a link in `/proc/PID/fd`, such as `socket:[4711]`; `None` for other files.
pub fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Seconds by which the uptime that a server reports may differ from that of its process: servers count whole seconds,
/// memcached adds two, and a process may have begun before its server.
const UPTIME_SLACK_S: u64 = 5;

/// Whether a process with these start ticks may be the server that says to have been up for `uptime_s` seconds, `since_boot_ns`
/// after the machine started, with this many ticks in a second.
pub fn uptime_fits(start_ticks: u64, ticks_per_second: u64, since_boot_ns: Nanos, uptime_s: u64) -> bool {
    let began_s = start_ticks / ticks_per_second.max(1);
    let up_s = (since_boot_ns / SECOND).saturating_sub(began_s);
    up_s.abs_diff(uptime_s) <= UPTIME_SLACK_S
}

/// The use of CPU time by threads between two readings, by their numbers: the busiest first, at most [`THREADS_MAX`]. A thread
/// that the first reading lacks began in between; one that the second lacks is left out.
pub fn threads_between(
    before: &BTreeMap<u32, ThreadUse>,
    after: &BTreeMap<u32, ThreadUse>,
) -> Vec<ThreadUse> {
    let none = ThreadUse { run_delay_ns: Some(0), ..ThreadUse::default() };
    let used = |(number, after): (&u32, &ThreadUse)| use_between(before.get(number).unwrap_or(&none), after);
    let mut threads: Vec<ThreadUse> = after.iter().map(used).collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.cpu_ns));
    threads.truncate(THREADS_MAX);
    threads
}

/// The use of CPU time by one thread between two readings.
pub fn use_between(before: &ThreadUse, after: &ThreadUse) -> ThreadUse {
    let run_delay_ns = before.run_delay_ns.zip(after.run_delay_ns);
    ThreadUse {
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        run_delay_ns: run_delay_ns.map(|(before_ns, after_ns)| after_ns.saturating_sub(before_ns)),
        ..after.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;
    use pummel_logic::time::MILLISECOND;

    const STAT: &str = "cpu  54574 0 36020 69871 3854 0 19580 39 0 0\ncpu0 22064 0 17669 42451 94 0 10505 14 0 0\n\
        cpu1 32510 0 18350 27420 3759 0 9074 25 0 0\ncpu10 1 1 1 1 1 1 1 100 0 0\n";
    const SNMP: &str = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 1000 15\n";
    const NETSTAT: &str = "TcpExt: ListenOverflows TCPTimeouts\nTcpExt: 7 9\nIpExt: A\nIpExt: 1\n";
    const DEV: &str = "Inter-|   Receive       |  Transmit\n face |bytes packets|bytes\n    \
        lo: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n  eth0: 100 1 0 2 0 0 0 0 200 1 0 3 0 0 0 0\n  \
        ifb0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0  0  0\n";
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:61B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534        0 510416 1 0 100 0 0 10 0\n   \
        1: 0100007F:61B3 0100007F:9999 01 00000000:00000000 00:00000000 00000000 65534        0 510417 1 0 100 0 0 10 0\n";
    const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0000: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock\n\
        0000: 00000002 00000000 00000000 0001 03 4712 /run/a b.sock\n0000: 00000003 00000000 00000000 0001 03 9\n";
    const PID: &str = "42 (mc) (x y) S 1 2 3 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 777 1 2";

    #[test]
    fn times_of_threads_are_read() {
        assert_eq!(schedstat("957048 873335 24\n"), Some((957_048, 873_335)));
        assert_eq!(schedstat("0 0 0\n"), None, "a kernel that does not count");
        assert_eq!(process_stat(PID), Some(ProcessStat { cpu_ticks: 200, start_ticks: 777 }));
        assert_eq!(cpu_ticks(STAT, &[0, 1]), Some(CpuTicks { used: 90_593, steal: 39 }));
        assert_eq!(cpu_ticks(STAT, &[1]), Some(CpuTicks { used: 50_860, steal: 25 }));
        assert_eq!(cpu_ticks(STAT, &[2]), None);
        assert_eq!(used_ticks_by_cpu(STAT), BTreeMap::from([(0, 39_733), (1, 50_860), (10, 3)]));
        let thread = format!("{PID} {}", (25..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
        assert_eq!((last_cpu(&thread), last_cpu(PID)), (Some(39), None));
    }

    #[test]
    fn both_versions_of_control_groups_are_read() {
        assert_eq!(
            throttled_ns("usage_usec 9\nnr_throttled 3\nthrottled_usec 5000\n"),
            Some(5 * MILLISECOND)
        );
        assert_eq!(throttled_ns("nr_periods 1\nnr_throttled 3\nthrottled_time 5000\n"), Some(5000));
        assert_eq!(throttled_ns("usage_usec 9\nuser_usec 4\n"), Some(0), "the root has no limit");
        assert_eq!(throttled_ns("nothing of this\n"), None);
        let mixed =
            cgroup_paths("9:name=systemd:/\n2:cpu,cpuacct:/docker/a:b\n3:cpuset:/x\n0::/user.slice\n");
        assert_eq!(
            mixed,
            CgroupPaths { unified: Some("/user.slice"), cpu: Some(("cpu,cpuacct", "/docker/a:b")) }
        );
        let pressure = "some avg10=9.03 avg60=8.98 avg300=6.49 total=48613281\nfull avg10=0.00 total=3\n";
        assert_eq!(pressure_ns(pressure), Some(48_613_281 * MICROSECOND));
    }

    #[test]
    fn the_network_of_the_host_is_what_came_between_two_readings() {
        let before = HostNetwork::read(SNMP, NETSTAT, DEV).expect("all counters are there");
        assert_eq!(before.cards.iter().map(|card| card.name.as_str()).collect::<Vec<_>>(), ["eth0", "ifb0"]);
        let snmp = SNMP.replace(" 1000 15", " 1600 18");
        let dev = DEV.replace("eth0: 100 1 0 2", "eth0: 150 1 0 4").replace(" 200 1 0 3", " 900 1 0 3");
        let mut after = HostNetwork::read(&snmp, NETSTAT, &dev).expect("all counters are there");
        after.cards[0].bits_per_second = card_speed("10000\n");
        let used = before.until(after);
        assert_eq!(
            (used.segments_out, used.retransmits, used.timeouts, used.listen_overflows),
            (600, 3, 0, 0)
        );
        let [card] = &used.cards[..] else { panic!("one card was used: {:?}", used.cards) };
        assert_eq!((card.sent_bytes, card.received_bytes, card.dropped), (700, 50, 2));
        assert_eq!(card.bits_per_second, Some(10_000_000_000));
        assert_eq!((card_speed("-1\n"), card_speed("")), (None, None));
        assert_eq!(HostNetwork::read("", NETSTAT, DEV), None);
    }

    #[test]
    fn listeners_are_found_by_port_and_by_path() {
        let listeners: Vec<_> = TCP.lines().skip(1).map_while(tcp_listener).collect();
        assert_eq!(listeners, [(0x61b3, 510_416)]);
        assert_eq!(unix_listeners(UNIX, "/run/a b.sock"), [4711]);
        assert_eq!((socket_inode("socket:[4711]"), socket_inode("/dev/null")), (Some(4711), None));
    }

    #[test]
    fn a_process_of_another_age_is_not_the_server() {
        let fits = |uptime_s| uptime_fits(10_000, 100, 200 * SECOND, uptime_s);
        assert!(fits(100) && fits(102) && fits(95));
        assert!(!fits(106) && !fits(0) && !fits(100_000));
    }

    #[test]
    fn threads_are_told_by_what_they_used_the_busiest_first() {
        let times = |name: &str, cpu_ns, run_delay_ns| ThreadUse {
            name: name.to_owned(),
            cpu_ns,
            run_delay_ns,
            last_cpu: None,
        };
        let before = BTreeMap::from([(1, times("main", 100, Some(5))), (2, times("gone", 1, None))]);
        let after = BTreeMap::from([
            (1, times("main", 150, Some(9))),
            (3, times("new", 900, Some(1))),
            (4, times("uncounted", 1, None)),
        ]);
        let named = |thread: &ThreadUse| (thread.name.clone(), thread.cpu_ns, thread.run_delay_ns);
        let used: Vec<_> = threads_between(&before, &after).iter().map(named).collect();
        assert_eq!(
            used,
            [
                ("new".to_owned(), 900, Some(1)),
                ("main".to_owned(), 50, Some(4)),
                ("uncounted".to_owned(), 1, None)
            ]
        );
    }

    fn read_all(text: &str) {
        let _ = (last_cpu(text), used_ticks_by_cpu(text));
        let _ = (schedstat(text), process_stat(text), cpu_ticks(text, &[0, 1]), throttled_ns(text));
        let _ = (pressure_ns(text), cgroup_paths(text), HostNetwork::read(text, text, text));
        let _ = (tcp_listener(text), unix_listeners(text, "/a"), socket_inode(text), card_speed(text));
    }

    #[test]
    fn texts_that_end_anywhere_are_read_without_a_panic() {
        for text in [STAT, SNMP, NETSTAT, DEV, TCP, UNIX, PID] {
            (0..=text.len()).for_each(|end| read_all(&text[..end]));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[ a-z0-9:()\\[\\]/\n%-]{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            read_all(&text);
            read_all(&String::from_utf8_lossy(&bytes));
        }
    }
}
