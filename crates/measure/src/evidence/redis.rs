//! The reading of a RESP server: the difference between two `INFO` replies, and some settings.

use std::collections::BTreeMap;

use super::facts::{Facts, Pair, decimal, field, number_in};
use super::redis_lists;
use super::redis_saves;
use super::server::{CommandTimes, FLUSHED, ServerCounts, ServerReading, USUAL_RECORD};
use super::slots;
use crate::tally::Tally;
use pummel_logic::time::{MICROSECOND, Nanos};

/// Counters that fall only at a new start, or after a client's `CONFIG RESETSTAT`.
const COUNTERS: &[&str] = &["total_commands_processed", "total_connections_received"];

/// Most commands of which the times are kept, those with the most calls.
const COMMANDS_MAX: usize = 32;

/// Commands that the reader sends itself; their times are left out.
#[rustfmt::skip]
const OWN_COMMANDS: &[&str] = &[
    "info", "config|get", "config", "auth", "hello", "select", "slowlog|len", "slowlog|get", "slowlog",
    "latency|latest", "latency|histogram", "latency", "cluster|slot-stats",
];

/// Commands that execute other commands, which are counted too.
const CALLING_COMMANDS: &[&str] = &["exec", "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"];

/// Settings that decide how a server treats records, as `INFO` or `CONFIG GET` names them.
const SETTINGS: &[&str] = &["maxmemory_policy", "appendonly", "save", "io-threads"];

/// Name of the fact that says how many slow commands a server remembers; it is none of `INFO`.
pub const SLOW_COMMANDS: &str = "slow_commands_remembered";

/// Commands that store, as the statistics of commands name them.
const STORES: &[&str] =
    &["set", "setex", "psetex", "setnx", "getset", "mset", "msetnx", "append", "setrange", "hset", "hmset"];

/// The reader's own work at a server between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnWork {
    /// Commands that were carried out, the first `INFO` included and the last one not.
    pub commands: u64,
    /// Connections that were opened.
    pub connections: u64,
}

/// The reading of a RESP server from its `INFO` `before` and `after`, which were read `span_ns` apart.
pub fn reading(
    before: &Facts,
    after: &Facts,
    settings: &Facts,
    span_ns: Nanos,
    own: OwnWork,
) -> ServerReading {
    let mut pair = Pair { before, after, anew: false };
    let fell = pair.fell(COUNTERS);
    let restarted = match (before.text("run_id"), after.text("run_id")) {
        // Uptimes follow the wall clock, which may be set.
        (Some(before), Some(after)) => before != after,
        _ => pair.is_younger("uptime_in_seconds", span_ns) || fell && own.connections > 0,
    };
    let counters_reset = fell && !restarted;
    pair.anew = restarted || counters_reset;
    let process = Pair { anew: restarted, ..pair };
    let number = |name: &str| after.number(name);
    let (software, version) = program_of(after);
    ServerReading {
        software,
        version,
        serving_threads: serving_threads(&pair, settings),
        pid: number("process_id").and_then(|pid| pid.try_into().ok()),
        span_ns,
        restarted,
        counters_reset,
        uptime_s: number("uptime_in_seconds"),
        cpu_ns: process.cpu_ns(["used_cpu_user", "used_cpu_sys"]),
        main_thread_cpu_ns: process.cpu_ns(["used_cpu_user_main_thread", "used_cpu_sys_main_thread"]),
        in_commands_ns: in_commands_ns(&pair),
        counts: counts_of(&pair, own),
        our_requests: None,
        memory_bytes: number("used_memory"),
        memory_limit_bytes: number("maxmemory").filter(|&bytes| bytes > 0),
        connections: number("connected_clients").map(|open| open.saturating_sub(1)),
        connections_max: number("maxclients"),
        disturbances: disturbances_of(&pair),
        commands: commands_of(&pair),
        settings: settings_of(after, settings),
        memory_taken_bytes: number("used_memory_rss"),
        resident_bytes: number("used_memory_rss"),
        usual_record: settings.number(USUAL_RECORD).map(|count| count > 0),
        saves: redis_saves::saves(&pair, span_ns),
        errors: redis_lists::errors(&pair),
        slow_commands: redis_lists::slow_commands(&pair),
        latency_events: redis_lists::events(&pair),
        slots: slots::slots(&pair),
        ..ServerReading::default()
    }
}

fn settings_of(info: &Facts, settings: &Facts) -> BTreeMap<String, String> {
    let mut known = info.chosen(SETTINGS);
    known.extend(settings.chosen(SETTINGS));
    known
}

/// The program and its version. Valkey and others say a `redis_version` too, for the sake of old clients.
fn program_of(info: &Facts) -> (String, String) {
    for program in ["valkey", "dragonfly", "keydb", "redis"] {
        if let Some(version) = info.text(&format!("{program}_version")) {
            return (program.to_owned(), version.to_owned());
        }
    }
    (info.text("server_name").unwrap_or("server").to_owned(), String::new())
}

/// The setting `io-threads` counts the main thread. The setting has an effect only if the threads read or wrote
/// between the readings, which they do under load alone.
fn serving_threads(pair: &Pair<'_>, settings: &Facts) -> Option<u32> {
    let threaded = pair.sum(&["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    let is_active = threaded.unwrap_or(0) > 0 || pair.is_on("io_threads_active");
    match settings.number("io-threads") {
        Some(threads) if is_active => threads.try_into().ok(),
        // Versions before 6 have one thread that answers, and do not know the setting.
        Some(_) => Some(1),
        None if is_active => None,
        None => threaded.map(|_| 1),
    }
}

fn counts_of(pair: &Pair<'_>, own: OwnWork) -> ServerCounts {
    let calls = |command: &str| calls_of(pair, command);
    ServerCounts {
        requests: pair.rise("total_commands_processed").map(|all| all.saturating_sub(own.commands)),
        gets: pair.sum(&["keyspace_hits", "keyspace_misses"]),
        sets: STORES.iter().filter_map(|command| calls(command)).reduce(u64::saturating_add),
        hits: pair.rise("keyspace_hits"),
        misses: pair.rise("keyspace_misses"),
        evictions: pair.rise("evicted_keys"),
        expired: pair.rise("expired_keys"),
        out_of_memory: pair
            .difference(Some(error_count(pair.before, "OOM")), Some(error_count(pair.after, "OOM"))),
        connections_opened: pair
            .rise("total_connections_received")
            .map(|opened| opened.saturating_sub(own.connections)),
        connections_refused: pair.rise("rejected_connections"),
        listen_disabled: None,
        yields: None,
    }
}

/// Number of errors with which the server answered that begin with this word (`errorstat_OOM:count=3`).
fn error_count(info: &Facts, word: &str) -> u64 {
    let text = info.text(&format!("errorstat_{word}"));
    text.and_then(|text| number_in(text, "count")).unwrap_or(0)
}

/// Calls of a command between the readings; `None` where it was never called.
fn calls_of(pair: &Pair<'_>, command: &str) -> Option<u64> {
    pair.rise_in(&format!("cmdstat_{command}"), "calls")
}

/// Time inside a command between the readings, in microseconds; `None` where it was never called.
fn spent_us_in(pair: &Pair<'_>, command: &str) -> Option<u64> {
    pair.rise_in(&format!("cmdstat_{command}"), "usec")
}

/// Time inside commands: the sum of the event loop (Redis 7.2), or of the times of all commands but for those that call
/// others, whose times contain those of the others. Absent where the server reports neither.
fn in_commands_ns(pair: &Pair<'_>) -> Option<Nanos> {
    let is_counted = |name: &str| {
        !OWN_COMMANDS.contains(&name) && !CALLING_COMMANDS.contains(&name.to_lowercase().as_str())
    };
    let all = pair.after.beginning_with("cmdstat_").filter(|(name, _)| is_counted(name));
    let of_commands = all.filter_map(|(name, _)| spent_us_in(pair, name));
    let us = pair.rise("eventloop_duration_cmd_sum").or_else(|| of_commands.reduce(u64::saturating_add));
    us.map(|us| us.saturating_mul(MICROSECOND))
}

fn commands_of(pair: &Pair<'_>) -> Vec<CommandTimes> {
    let quantile = |name: &str, which: &str| {
        let text = pair.after.text(&format!("latency_percentiles_usec_{name}"))?;
        decimal(field(text, which)?, MICROSECOND)
    };
    let times = |(name, _): (&str, &str)| {
        let calls = calls_of(pair, name).filter(|&calls| calls > 0)?;
        let at_most = |share| redis_lists::at_most(pair, &name.to_lowercase(), share);
        Some(CommandTimes {
            name: name.to_lowercase(),
            calls,
            mean_ns: spent_us_in(pair, name)?.saturating_mul(MICROSECOND) / calls,
            p50_ns: quantile(name, "p50"),
            p99_ns: quantile(name, "p99"),
            p99_9_ns: quantile(name, "p99.9"),
            p50_at_most_ns: at_most(0.5),
            p99_at_most_ns: at_most(0.99),
            p99_9_at_most_ns: at_most(0.999),
        })
    };
    let all = pair.after.beginning_with("cmdstat_").filter(|(name, _)| !OWN_COMMANDS.contains(name));
    let mut commands: Vec<CommandTimes> = all.filter_map(times).collect();
    commands.sort_by_key(|command| std::cmp::Reverse(command.calls));
    commands.truncate(COMMANDS_MAX);
    commands
}

fn disturbances_of(pair: &Pair<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if pair.is_on("loading") {
        said.push("loading".to_owned());
    }
    let forks = pair.rise("total_forks").unwrap_or(0);
    let fork = match pair.after.number("latest_fork_usec").filter(|_| forks > 0) {
        Some(us) => format!(" (fork {}.{} ms)", us / 1000, us % 1000 / 100),
        None => String::new(),
    };
    if pair.is_on("rdb_bgsave_in_progress") || pair.rise("rdb_saves").unwrap_or(0) > 0 {
        said.push(format!("snapshot{fork}"));
    }
    if pair.is_on("aof_rewrite_in_progress") || pair.rise("aof_rewrites").unwrap_or(0) > 0 {
        said.push(format!("append-only file written anew{fork}"));
    }
    if forks > 0 && said.iter().all(|words| !words.contains("fork")) {
        said.push(format!("a child process{fork}"));
    }
    let flushes = ["flushall", "flushdb"].iter().filter_map(|command| calls_of(pair, command)).sum::<u64>();
    if flushes > 0 {
        said.push(format!("{FLUSHED} {flushes} times (FLUSHALL, FLUSHDB)"));
    }
    if let Some(slow) = pair.rise(SLOW_COMMANDS).filter(|slow| *slow > 0) {
        said.push(format!("{slow} or more slow commands (see SLOWLOG)"));
    }
    if pair.is_on("active_defrag_running") {
        said.push("memory defragmented".to_owned());
    }
    said
}

/// The most requests of a tally that a RESP server can have counted as commands: each request once, and each that renews a
/// key on reading too.
pub fn counted_at_most(tally: &Tally) -> u64 {
    tally.iter().map(|(_, counts)| counts.ended() + counts.unfinished).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::time::{MILLISECOND, SECOND};

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in text.lines().filter_map(|line| line.trim().split_once(':')) {
            assert!(facts.add(name.as_bytes(), value.as_bytes()));
        }
        facts
    }

    const BEFORE: &str = "redis_version:7.0.15\nprocess_id:5\nrun_id:abc\nuptime_in_seconds:9\nio_threads_active:0
        connected_clients:3\nmaxclients:10000\nused_memory:2000\nmaxmemory:0\nloading:0\nrdb_bgsave_in_progress:0
        rdb_saves:0\ntotal_forks:0\nlatest_fork_usec:0\ntotal_connections_received:3\ntotal_commands_processed:10
        rejected_connections:0\nexpired_keys:0\nevicted_keys:0\nkeyspace_hits:1\nkeyspace_misses:0
        io_threaded_reads_processed:0\nio_threaded_writes_processed:0
        used_cpu_sys:1.000000\nused_cpu_user:2.000000\nused_cpu_sys_main_thread:0.500000
        used_cpu_user_main_thread:1.000000\ncmdstat_get:calls=1,usec=2,usec_per_call=2.00";

    fn after() -> Facts {
        let mut after = facts(BEFORE);
        for (name, value) in [
            ("total_commands_processed", "1012"),
            ("keyspace_hits", "901"),
            ("keyspace_misses", "100"),
            ("used_cpu_user", "3.500000"),
            ("used_cpu_user_main_thread", "2.000000"),
            ("cmdstat_get", "calls=801,usec=1602,usec_per_call=2.00"),
            ("cmdstat_set", "calls=200,usec=2000,usec_per_call=10.00"),
            ("cmdstat_info", "calls=2,usec=100,usec_per_call=50.00"),
            ("latency_percentiles_usec_get", "p50=2.007,p99=61.001,p99.9=80.0"),
            ("errorstat_OOM", "count=4"),
            ("maxmemory_policy", "noeviction"),
            ("used_memory_rss", "9000"),
            ("latency_histogram_get", "2=600,4=799,66=800"),
            ("slow_command_0", "id=3,at=50,us=12000,name=get"),
            ("latency_event_command", "at=50,latest=12,most=12"),
            ("rdb_saves", "1"),
            ("total_forks", "1"),
            ("latest_fork_usec", "12345"),
        ] {
            assert!(after.add(name.as_bytes(), value.as_bytes()));
        }
        after
    }

    #[test]
    fn the_time_inside_commands_is_that_of_all_commands_but_those_that_call_others() {
        let inside = |before: &Facts, after: &Facts| {
            reading(before, after, &Facts::default(), SECOND, OwnWork::default()).in_commands_ns
        };
        assert_eq!(inside(&facts(BEFORE), &after()), Some(3_600 * MICROSECOND));
        let mut scripts = after();
        scripts.add(b"cmdstat_eval", b"calls=5,usec=900000,usec_per_call=180000.00");
        assert_eq!(inside(&facts(BEFORE), &scripts), Some(3_600 * MICROSECOND));
        let (mut before, mut loops) = (facts(BEFORE), after());
        before.add(b"eventloop_duration_cmd_sum", b"1000");
        loops.add(b"eventloop_duration_cmd_sum", b"6000");
        assert_eq!(inside(&before, &loops), Some(5 * MILLISECOND));
        let unreported = facts("run_id:abc\nuptime_in_seconds:9");
        assert_eq!(inside(&unreported, &unreported), None);
    }

    #[test]
    fn figures_are_the_differences_of_two_readings_without_the_readers_own() {
        let own = OwnWork { commands: 2, connections: 0 };
        let settings = facts("io-threads:1\nsave:3600 1\nappendonly:no");
        let seen = reading(&facts(BEFORE), &after(), &settings, SECOND, own);
        assert_eq!((seen.software.as_str(), seen.version.as_str()), ("redis", "7.0.15"));
        assert_eq!((seen.pid, seen.serving_threads, seen.restarted), (Some(5), Some(1), false));
        assert_eq!(seen.cpu_ns, Some(1_500 * MILLISECOND));
        assert_eq!(seen.main_thread_cpu_ns, Some(SECOND));
        assert_eq!((seen.counts.requests, seen.counts.gets), (Some(1000), Some(1000)));
        assert_eq!((seen.counts.sets, seen.counts.out_of_memory), (Some(200), Some(4)));
        assert_eq!((seen.connections, seen.connections_max), (Some(2), Some(10_000)));
        assert_eq!((seen.memory_bytes, seen.memory_limit_bytes), (Some(2000), None));
        assert_eq!(seen.disturbances, ["snapshot (fork 12.3 ms)"]);
        let [get, set] = &seen.commands[..] else { panic!("two commands: {:?}", seen.commands) };
        assert_eq!((get.name.as_str(), get.calls, get.mean_ns), ("get", 800, 2 * MICROSECOND));
        assert_eq!((get.p50_ns, get.p99_ns, get.p99_9_ns), (Some(2_007), Some(61_001), Some(80_000)));
        let at_most = (get.p50_at_most_ns, get.p99_at_most_ns, get.p99_9_at_most_ns);
        assert_eq!(at_most, (Some(2 * MICROSECOND), Some(4 * MICROSECOND), Some(66 * MICROSECOND)));
        assert_eq!(seen.settings["maxmemory_policy"], "noeviction");
        assert_eq!((seen.settings["save"].as_str(), seen.settings.len()), ("3600 1", 4));
        assert_eq!((seen.memory_taken_bytes, seen.errors[0].count), (Some(9000), 4));
        assert_eq!((seen.slow_commands.len(), seen.latency_events.len()), (1, 1));
        assert_eq!(
            (set.name.as_str(), set.calls, set.mean_ns, set.p99_ns),
            ("set", 200, 10 * MICROSECOND, None)
        );
    }

    #[test]
    fn threads_count_where_they_did_something() {
        let mut busy = after();
        busy.add(b"io_threaded_reads_processed", b"7");
        let threads = |after: &Facts, settings: &str| {
            let settings = facts(settings);
            reading(&facts(BEFORE), after, &settings, SECOND, OwnWork::default()).serving_threads
        };
        assert_eq!(threads(&busy, "io-threads:4"), Some(4));
        assert_eq!(threads(&after(), "io-threads:4"), Some(1), "they slept");
        assert_eq!(threads(&busy, ""), None, "nobody may ask how many there are");
        assert_eq!(threads(&after(), ""), Some(1));
    }

    #[test]
    fn slow_commands_that_came_in_between_are_said() {
        let with = |facts: Facts, slow: &str| {
            let mut facts = facts;
            facts.add(SLOW_COMMANDS.as_bytes(), slow.as_bytes());
            facts
        };
        let said = |first: &str, last: &str| {
            let (before, after) = (with(facts(BEFORE), first), with(after(), last));
            reading(&before, &after, &Facts::default(), SECOND, OwnWork::default()).disturbances.join("; ")
        };
        assert!(said("3", "5").contains("2 or more slow commands (see SLOWLOG)"), "{}", said("3", "5"));
        assert!(
            !said("3", "3").contains("slow") && !said("5", "3").contains("slow"),
            "the user may empty the list"
        );
    }

    #[test]
    fn another_run_id_is_another_start() {
        let mut started = after();
        started.add(b"run_id", b"def");
        started.add(b"total_commands_processed", b"7");
        let seen = reading(&facts(BEFORE), &started, &Facts::default(), SECOND, OwnWork::default());
        assert!(seen.restarted);
        assert_eq!(seen.counts.requests, Some(7));
        let mut reset = after();
        reset.add(b"total_commands_processed", b"7");
        let seen = reading(&facts(BEFORE), &reset, &Facts::default(), SECOND, OwnWork::default());
        assert_eq!((seen.restarted, seen.counters_reset, seen.counts.requests), (false, true, Some(7)));
    }

    #[test]
    fn valkey_is_not_redis() {
        let both = facts("redis_version:7.2.4\nvalkey_version:8.1.0\nserver_name:valkey");
        let seen = reading(&both, &both, &Facts::default(), SECOND, OwnWork::default());
        assert_eq!((seen.software.as_str(), seen.version.as_str()), ("valkey", "8.1.0"));
    }
}
