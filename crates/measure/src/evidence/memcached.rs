//! Difference between two readings of memcached's `stats`, with one of its `stats settings`.

use super::facts::{Facts, Pair};
use super::server::{FLUSHED, ServerCounts, ServerReading, USUAL_RECORD};
use super::slabs;
use crate::tally::Tally;
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// Counters that fall only at a new start, or after a client's `stats reset`.
const COUNTERS: &[&str] = &["cmd_get", "cmd_set", "total_connections", "evictions"];

/// The reading of a memcached from its counters `before` and `after`, which were read `span_ns` apart. `own_connections` of
/// the connections that came are the reader's, and one of the open ones is.
pub fn reading(
    before: &Facts,
    after: &Facts,
    settings: &Facts,
    span_ns: Nanos,
    own_connections: u64,
) -> ServerReading {
    let mut pair = Pair { before, after, anew: false };
    let fell = pair.fell(COUNTERS);
    // In a container every process may have the same number. A connection outlives no process.
    let restarted = before.text("pid") != after.text("pid")
        || after.number("uptime") < before.number("uptime")
        || pair.is_younger("uptime", span_ns)
        || fell && own_connections > 0;
    let counters_reset = fell && !restarted;
    pair.anew = restarted || counters_reset;
    let number = |name: &str| after.number(name);
    let small = |name: &str| settings.number(name).or(number(name)).and_then(|count| count.try_into().ok());
    ServerReading {
        software: "memcached".to_owned(),
        version: after.text("version").unwrap_or_default().to_owned(),
        serving_threads: small("num_threads").or_else(|| small("threads")),
        pid: number("pid").and_then(|pid| pid.try_into().ok()),
        span_ns,
        restarted,
        counters_reset,
        uptime_s: number("uptime"),
        cpu_ns: Pair { anew: restarted, ..pair }.cpu_ns(["rusage_user", "rusage_system"]),
        main_thread_cpu_ns: None,
        counts: counts_of(&pair, own_connections),
        our_requests: None,
        memory_bytes: number("bytes"),
        memory_limit_bytes: number("limit_maxbytes")
            .or(settings.number("maxbytes"))
            .filter(|&bytes| bytes > 0),
        connections: number("curr_connections").map(|open| open.saturating_sub(1)),
        connections_max: number("max_connections").or(settings.number("maxconns")),
        disturbances: disturbances_of(&pair),
        settings: settings.chosen(SETTINGS),
        memory_taken_bytes: number("total_malloced"),
        usual_record: settings.number(USUAL_RECORD).map(|count| count > 0),
        classes: slabs::classes(&pair),
        ..ServerReading::default()
    }
}

/// Settings that decide what memcached does with records and connections, as `stats settings` names them.
const SETTINGS: &[&str] =
    &["evictions", "reqs_per_event", "item_size_max", "maxconns_fast", "hashpower_init"];

fn counts_of(pair: &Pair<'_>, own_connections: u64) -> ServerCounts {
    ServerCounts {
        requests: requests(pair),
        gets: pair.rise("cmd_get"),
        sets: pair.rise("cmd_set"),
        hits: pair.rise("get_hits"),
        misses: pair.rise("get_misses"),
        evictions: pair.rise("evictions"),
        expired: pair.sum(&["get_expired", "reclaimed", "crawler_reclaimed"]),
        out_of_memory: pair.rise("store_no_memory"),
        connections_opened: pair
            .rise("total_connections")
            .map(|opened| opened.saturating_sub(own_connections)),
        connections_refused: pair.rise("rejected_connections"),
        listen_disabled: pair.rise("listen_disabled_num"),
        yields: pair.rise("conn_yields"),
    }
}

/// Keys that were read, stored, touched, counted up or down, and removed. memcached has no counter of requests. A read
/// that touches (`gat`, `mg` with a new expiry) counts as a touch alone, so reads are hits and misses: some versions count
/// it in `cmd_get` as well.
fn requests(pair: &Pair<'_>) -> Option<u64> {
    let reads = pair.sum(&["get_hits", "get_misses"])?;
    let stores = pair.rise("cmd_set")?;
    let others = pair.sum(&[
        "cmd_touch",
        "delete_hits",
        "delete_misses",
        "incr_hits",
        "incr_misses",
        "decr_hits",
        "decr_misses",
    ]);
    Some(reads.saturating_add(stores).saturating_add(others.unwrap_or(0)))
}

/// The most requests of a tally that memcached can have counted as its `requests`: reads by key, `multiget` of them in each
/// read without a good answer, and every other request once, but for those that only ask for the version.
pub fn counted_at_most(tally: &Tally, multiget: u64) -> u64 {
    let of_verb = |(verb, counts): (Verb, &crate::counts::Counts)| {
        let others = counts.failed() + counts.unfinished;
        match verb {
            Verb::Version => 0,
            verb if verb.reads() => counts.keys + others * multiget.max(1),
            _ => counts.completed + others,
        }
    };
    tally.iter().map(of_verb).sum()
}

fn disturbances_of(pair: &Pair<'_>) -> Vec<String> {
    let mut said = Vec::new();
    if pair.is_on("hash_is_expanding") || pair.rise("hash_power_level").unwrap_or(0) > 0 && !pair.anew {
        said.push("hash table expanding".to_owned());
    }
    if let Some(moved) = pair.rise("slabs_moved").filter(|&moved| moved > 0) {
        said.push(format!("slabs moving ({moved} pages)"));
    } else if pair.is_on("slab_reassign_running") {
        said.push("slabs moving".to_owned());
    }
    if let Some(flushes) = pair.rise("cmd_flush").filter(|flushes| *flushes > 0) {
        said.push(format!("{FLUSHED} {flushes} times (flush_all)"));
    }
    if pair.rise("malloc_fails").unwrap_or(0) > 0 {
        said.push("no memory from the system".to_owned());
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use pummel_logic::protocol::{Fault, Outcome};
    use pummel_logic::time::{MILLISECOND, SECOND};

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in text.lines().filter_map(|line| line.trim().split_once(' ')) {
            assert!(facts.add(name.as_bytes(), value.as_bytes()));
        }
        facts
    }

    const BEFORE: &str = "pid 7\nuptime 100\nversion 1.6.18\nrusage_user 1.500000\nrusage_system 2.250000\n\
        max_connections 1024\ncurr_connections 51\ntotal_connections 60\nrejected_connections 0\ncmd_get 100\n\
        cmd_set 4294967290\ncmd_touch 5\nget_hits 90\nget_misses 10\ndelete_misses 0\nlimit_maxbytes 67108864\n\
        listen_disabled_num 0\nthreads 4\nconn_yields 1\nhash_power_level 16\nhash_is_expanding 0\nslabs_moved 0\n\
        bytes 1000\nevictions 3\nreclaimed 1\nstore_no_memory 0";

    fn after() -> Facts {
        let mut after = facts(BEFORE);
        for (name, value) in [
            ("uptime", "110"),
            ("rusage_user", "2.500000"),
            ("rusage_system", "2.750000"),
            ("total_connections", "63"),
            ("rejected_connections", "2"),
            ("cmd_get", "1100"),
            ("cmd_set", "94"),
            ("cmd_touch", "6"),
            ("get_hits", "1000"),
            ("get_misses", "100"),
            ("delete_misses", "3"),
            ("conn_yields", "21"),
            ("hash_power_level", "17"),
            ("slabs_moved", "2"),
            ("bytes", "5000"),
            ("evictions", "13"),
            ("reclaimed", "2"),
        ] {
            assert!(after.add(name.as_bytes(), value.as_bytes()));
        }
        after
    }

    #[test]
    fn figures_are_the_differences_of_two_readings() {
        let settings = facts("maxbytes 67108864\nmaxconns 1024\nnum_threads 4");
        let seen = reading(&facts(BEFORE), &after(), &settings, 10 * SECOND, 1);
        assert_eq!((seen.software.as_str(), seen.version.as_str()), ("memcached", "1.6.18"));
        assert_eq!((seen.serving_threads, seen.pid, seen.restarted), (Some(4), Some(7), false));
        assert_eq!((seen.cpu_ns, seen.span_ns), (Some(1_500 * MILLISECOND), 10 * SECOND));
        assert_eq!(seen.counts.gets, Some(1000));
        assert_eq!(seen.counts.sets, Some(100), "the counter of 32 bits wrapped");
        assert_eq!(seen.counts.requests, Some(1000 + 100 + 1 + 3));
        assert_eq!((seen.counts.hits, seen.counts.misses), (Some(910), Some(90)));
        assert_eq!((seen.counts.evictions, seen.counts.expired), (Some(10), Some(1)));
        assert_eq!((seen.counts.connections_opened, seen.counts.connections_refused), (Some(2), Some(2)));
        assert_eq!((seen.connections, seen.connections_max), (Some(50), Some(1024)));
        assert_eq!((seen.memory_bytes, seen.memory_limit_bytes), (Some(5000), Some(64 << 20)));
        assert_eq!(seen.disturbances, ["hash table expanding", "slabs moving (2 pages)"]);
    }

    #[test]
    fn a_server_that_started_anew_is_counted_from_its_start() {
        let mut started = after();
        for (name, value) in [("pid", "8"), ("uptime", "2"), ("cmd_get", "40"), ("rusage_user", "0.5")] {
            started.add(name.as_bytes(), value.as_bytes());
        }
        let seen = reading(&facts(BEFORE), &started, &Facts::default(), SECOND, 0);
        assert!(seen.restarted && !seen.counters_reset);
        assert_eq!((seen.counts.gets, seen.cpu_ns), (Some(40), Some(3_250 * MILLISECOND)));
        assert_eq!(seen.uptime_s, Some(2));
        let same_pid = |uptime: &str, span_ns| {
            let mut started = after();
            started.add(b"uptime", uptime.as_bytes());
            reading(&facts(BEFORE), &started, &Facts::default(), span_ns, 0).restarted
        };
        assert!(same_pid("102", 20 * SECOND), "in a container it may have the same number");
        assert!(!same_pid("110", 10 * SECOND));
    }

    #[test]
    fn a_server_whose_counters_were_set_to_0_did_not_start_anew() {
        let mut reset = after();
        reset.add(b"cmd_get", b"40");
        let seen = reading(&facts(BEFORE), &reset, &Facts::default(), 10 * SECOND, 0);
        assert_eq!((seen.restarted, seen.counters_reset, seen.counts.gets), (false, true, Some(40)));
        let seen = reading(&facts(BEFORE), &reset, &Facts::default(), 10 * SECOND, 1);
        assert_eq!((seen.restarted, seen.counters_reset), (true, false), "its connections were closed too");
        let seen = reading(&facts(BEFORE), &after(), &Facts::default(), 10 * SECOND, 1);
        assert!(!seen.restarted, "it closed a connection and went on");
    }

    #[test]
    fn a_server_that_tells_little_has_little_told_of_it() {
        let little = facts("version 1.2\ncmd_get 3");
        let seen = reading(&little, &little, &Facts::default(), SECOND, 0);
        assert_eq!(
            (seen.counts.gets, seen.counts.requests, seen.cpu_ns, seen.pid),
            (Some(0), None, None, None)
        );
    }

    #[test]
    fn our_requests_are_counted_as_memcached_counts_them() {
        let mut tally = Tally::default();
        let mut count = |verb, outcome, keys| {
            tally.record(&Sample { verb, outcome, keys, hits: keys, ..Sample::hit(0, 0) });
        };
        count(Verb::Get, Outcome::Hit, 5);
        count(Verb::Get, Outcome::Error(Fault::Timeout), 5);
        count(Verb::Set, Outcome::Stored, 1);
        count(Verb::Set, Outcome::Error(Fault::Server), 1);
        count(Verb::Delete, Outcome::NotFound, 1);
        count(Verb::Version, Outcome::Ok, 1);
        assert_eq!(counted_at_most(&tally, 5), 5 + 5 + 1 + 1 + 1);
    }
}
