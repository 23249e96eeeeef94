//! Runs whose ends are found while they go on: a warm-up that settles, and a measurement until a quantile is known.

use crate::common::{Nobody, Serve, in_some_quiet_moment, pummel, until};

#[test]
fn a_measurement_ends_when_its_quantile_is_known() {
    // Replies are held so long that the stalls of a busy machine do not make the median unsteady.
    let server = Serve::start("--service-time exponential:5ms");
    let words = format!(
        "run -s {} -c 16 --rate 400 --records 100 --interval 100ms --until p50:100% --min-time 2s --max-time 60s -v",
        server.name
    );
    in_some_quiet_moment(|| {
        let ended = pummel(&words);
        let result = ended.json();
        let seconds = result.number("seconds");
        // What was due before the end was measured, and nothing after it.
        let due = result.count("totals/requests") as f64;
        assert!((due / (400.0 * seconds) - 1.0).abs() < 0.25, "{due} requests in {seconds} s");
        // A machine that is busy with other things may change its pace in the last quarter.
        if result.at("steady").as_bool() != Some(true) {
            return Err(ended.text);
        }
        let ended = ended.expect(0);
        // The first look is after 2 s, and a quarter more is measured.
        assert!((2.4..59.0).contains(&seconds), "{seconds} s");
        assert_eq!(result.at("until/reached").as_bool(), Some(true), "{}", result.at("until"));
        assert!(result.number("until/half_width") <= 1.5, "{}", result.at("until"));
        assert_eq!((result.number("until/quantile"), result.number("until/asked")), (0.5, 1.0));
        assert!(ended.text.contains("Until        p50 +- "), "{}", ended.text);
        Ok(())
    });
}

#[test]
fn a_measurement_that_does_not_reach_its_target_says_so() {
    let server = Serve::start("");
    let words = format!(
        "run -s {} -c 2 --rate 2k --records 100 --until p99.9:0.1% --min-time 1s --max-time 2s -v",
        server.name
    );
    let ended = pummel(&words).expect(3);
    let result = ended.json();
    assert_eq!(result.text("status"), "complete");
    assert_eq!(result.at("until/reached").as_bool(), Some(false));
    assert!(ended.text.contains("0.10 % WAS NOT REACHED"), "{}", ended.text);
}

#[test]
fn a_warm_up_settles_or_says_that_it_has_not() {
    let server = Serve::start("");
    let words =
        format!("run -s {} -c 4 -T 2 --rate 4k --records 100 --warmup auto:11s -t 2s -v", server.name);
    let ended = pummel(&words).expect(0);
    let result = ended.json();
    let seconds = result.number("warmup/seconds");
    match result.at("warmup/settled").as_bool() {
        Some(true) => {
            // Two seconds are not looked at, then come two blocks of two, and the end is known half a second ahead. A busy
            // machine may find the end when the longest time is over, and the last replies come behind that.
            assert!(seconds >= 6.4, "{seconds} s");
            assert!(ended.text.contains("Warm-up      settled after"), "{}", ended.text);
        }
        // Neighbours on this machine may keep it from settling.
        Some(false) => {
            assert!(seconds >= 11.0, "{seconds} s");
            assert_eq!(result.at("steady").as_bool(), Some(false));
            assert!(ended.text.contains("the load had not settled"), "{}", ended.text);
        }
        None => panic!("{}", result.at("warmup")),
    }
    // Its last replies may come in the drain.
    assert!((2.0..4.0).contains(&result.number("seconds")), "{}", result.number("seconds"));
    let measured = result.count("totals/requests") as f64;
    assert!((measured / 8_000.0 - 1.0).abs() < 0.1, "{measured}: the warm-up is not part of the result");
    let whole = result.count("whole_run/ops/get/requests") as f64;
    assert!(whole > 2.0 * measured, "{whole}: it is part of the whole run");
}

/// Reads of records that are not there, of which each is stored: a thousand in a second.
const FILLING: &str =
    "-c 4 --rate 1k --records 1000000 --mix get:1 --no-load --popularity uniform --read-through -t 1s -v";

#[test]
fn a_warm_up_ends_with_the_first_eviction_of_a_server() {
    // A busy machine may not wait for the server's last answer.
    let (ended, result) = until("a reading in time", || {
        let server = Serve::start("--items 2000");
        let words = format!("run -s {} {FILLING} --warmup-until evictions:60s", server.name);
        let ended = pummel(&words).expect(0);
        let result = ended.json();
        (!result.at("evidence/servers/0/reading").is_null()).then_some((ended, result))
    });
    let seconds = result.number("warmup/seconds");
    // No sooner than so many are stored.
    assert!((1.7..60.0).contains(&seconds), "{seconds} s");
    assert_eq!(result.at("warmup/settled").as_bool(), Some(true), "{}", ended.text);
    assert_eq!(result.text("warmup/until"), "eviction");
    assert!(ended.text.contains("s, when a server had evicted a record\n"), "{}", ended.text);
    assert!(result.count("evidence/servers/0/reading/counts/evictions") > 0, "it is full");
}

#[test]
fn a_warm_up_until_the_first_eviction_ends_at_its_longest_time_and_says_so() {
    let server = Serve::start("");
    let ended = pummel(&format!("run -s {} {FILLING} --warmup-until evictions:1s", server.name)).expect(0);
    let result = ended.json();
    assert_eq!(result.at("warmup/settled").as_bool(), Some(false));
    assert_ne!(result.at("steady").as_bool(), Some(false), "nothing was to settle");
    assert!(result.number("warmup/seconds") >= 1.0, "{}", ended.text);
    assert!(ended.text.contains("s, and no server was seen to have evicted a record\n"), "{}", ended.text);
}

#[test]
fn a_run_that_waits_for_an_eviction_of_servers_that_tell_of_none_ends_and_says_why() {
    let server = Serve::start("");
    let nobody = Nobody::new();
    let words = format!(
        "run -s {} {FILLING} --warmup-until evictions:10m --server-stats-at {}",
        server.name, nobody.address
    );
    let ended = pummel(&words).expect(1);
    let result = ended.json();
    assert_eq!(result.text("status"), "partial");
    let reason = result.text("reason");
    assert!(reason.contains("no server tells how many records it evicted: "), "{reason}");
}

#[test]
fn what_cannot_be_decided_while_a_run_goes_on_is_refused() {
    for (words, flags) in [
        ("--until p99:2% -t 5s", ["--until", "--time"]),
        ("--until p99:2% -n 5", ["--until", "--requests"]),
        ("--until p99", ["--until", "p99:2%"]),
        ("--min-time 2s", ["--min-time", "--until"]),
        ("--until p99:2% --min-time 20s --max-time 10s", ["--min-time", "20s"]),
        ("--warmup auto -n 500", ["--warmup", "-n"]),
        ("--warmup auto:3s -t 2s", ["--warmup", "6s"]),
        ("--warmup soon", ["--warmup", "auto:MAX"]),
        ("--warmup auto --conn-rate 50", ["--warmup", "come and go"]),
        ("--warmup-until full", ["--warmup-until", "evictions:MAX"]),
        ("--warmup-until evictions --warmup 2s", ["--warmup-until", "--warmup "]),
        ("--warmup-until evictions --no-evidence", ["--warmup-until", "--no-evidence"]),
        ("--warmup-until evictions --conn-rate 50", ["--warmup-until", "come and go"]),
    ] {
        let ended = pummel(&format!("run -s 127.0.0.1:1 {words}")).expect(2);
        assert!(flags.iter().all(|flag| ended.errors.contains(flag)), "{words}: {}", ended.errors);
    }
    let ended = pummel("search -s 127.0.0.1:1 --goal p99:1ms --until p99:2%").expect(2);
    assert!(ended.errors.contains("--until"), "{}", ended.errors);
}
