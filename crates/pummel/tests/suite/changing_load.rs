//! Loads that change, from the command line to the result.

use std::fs;

use crate::common::agent::{Agent, list};
use crate::common::redis::Redis;
use crate::common::{Memcached, Running, in_some_quiet_moment, pummel, until};
use serde_json::Value;

/// A field of each item of a list.
fn numbers(list: &Value, field: &str) -> Vec<f64> {
    let list = list.as_array().expect("a list");
    list.iter().map(|item| item.pointer(field).and_then(Value::as_f64).expect(field)).collect()
}

#[test]
fn each_stage_has_the_requests_that_were_due_in_it() {
    let server = Memcached::start();
    let words = format!(
        "run -s {} --records 100 -c 4 -d 8 -T 2 --arrivals constant --interval 100ms --rate 500 \
         --stage 200ms:1500,100ms --stage 0s:0,100ms,100ms:400",
        server.name
    );
    // Intervals that a busy machine hands over late are one.
    let ended = in_some_quiet_moment(|| {
        let ended = pummel(&words).expect(0);
        let asked = numbers(ended.json().at("intervals"), "/asked");
        let rounded: Vec<f64> = asked.iter().take(4).map(|rate| rate.round()).collect();
        if rounded == [750.0, 1_250.0, 1_500.0, 0.0] { Ok(ended) } else { Err(format!("{rounded:?}")) }
    });
    let json = ended.json();
    let phases = json.at("phases");
    let names: Vec<&str> =
        phases.as_array().expect("phases").iter().filter_map(|phase| phase["name"].as_str()).collect();
    let expected =
        ["stage 1: ramp 500..1500", "stage 2: hold 1500", "stage 4: hold 0", "stage 5: ramp 0..400"];
    assert_eq!(names, expected);
    assert_eq!(numbers(phases, "/at_s"), [0.0, 0.2, 0.3, 0.4]);
    assert_eq!(numbers(phases, "/seconds"), [0.2, 0.1, 0.1, 0.1]);
    assert_eq!(numbers(phases, "/totals/requests"), [200.0, 150.0, 0.0, 20.0]);
    assert_eq!((json.count("totals/requests"), json.at("steady")), (370, &Value::Null));
    assert!(ended.text.contains("stage 5: ramp 0..400"), "{}", ended.text);
    assert!(ended.text.contains("The load changes by plan"), "{}", ended.text);
}

/// Waits until a server has as many connections of a run as its steps say, one step after the other, and for the end of the run.
fn assert_steps_are_seen(run: Running, steps: &[u64], mut connections: impl FnMut() -> u64) {
    for step in steps {
        until(&format!("{step} connections"), || (connections() == *step).then_some(()));
    }
    let ended = run.end().expect(0);
    until("no connection", || (connections() == 0).then_some(()));
    let json = ended.json();
    let counts: Vec<u64> = json
        .at("phases")
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| part["connections"].as_u64().expect("a number"))
        .collect();
    assert_eq!(counts, steps);
    assert!(ended.text.contains(&format!("step 2: {} connections", steps[1])), "{}", ended.text);
    for part in json.at("phases").as_array().expect("parts") {
        assert!(part["totals"]["completed"].as_u64() > Some(0), "{part}");
        assert_eq!(part["totals"]["errors"].as_u64(), Some(0), "{part}");
    }
    let all: f64 = numbers(json.at("phases"), "/totals/requests").iter().sum();
    assert_eq!(json.count("totals/requests") as f64, all, "all parts together");
    assert_eq!((json.count("connections/lost"), json.count("connections/reconnected")), (0, 0));
}

#[test]
fn memcached_has_the_connections_of_each_step() {
    for rate in ["", "--rate 2k"] {
        let server = Memcached::start();
        let mut watcher = server.connect();
        let before = watcher.stats().get("curr_connections");
        let run = Running::start(&format!(
            "run -s {} --records 100 -T 2 {rate} --no-evidence --stage-connections 3:700ms,9:700ms,5 -t 2100ms",
            server.name
        ));
        assert_steps_are_seen(run, &[3, 9, 5], || {
            watcher.stats().get("curr_connections").saturating_sub(before)
        });
    }
}

#[test]
fn redis_has_the_connections_of_each_step() {
    let server = Redis::start(&[]);
    let run = Running::start(&format!(
        "run -s {} --protocol resp3 --records 100 -d 4 --mix get:1 --stage-connections 2:600ms,7:600ms,4:600ms",
        server.name()
    ));
    // Others than those that read are the run's own questions about the server, and ours.
    assert_steps_are_seen(run, &[2, 7, 4], || {
        server.say("CLIENT LIST").lines().filter(|line| line.contains(" cmd=get ")).count() as u64
    });
}

/// Steps are dealt to agents as connections are, also where one of them has none in a step.
#[test]
fn agents_share_the_connections_of_each_step() {
    let server = Memcached::start();
    let agents = Agent::many(2);
    let mut watcher = server.connect();
    let before = watcher.stats().get("curr_connections");
    let run = Running::start(&format!(
        "run -s {} --records 100 --rate 1k --no-evidence --stage-connections 1:700ms,6:700ms,3:700ms --agents {}",
        server.name,
        list(&agents)
    ));
    assert_steps_are_seen(run, &[1, 6, 3], || watcher.stats().get("curr_connections").saturating_sub(before));
}

#[test]
fn phases_of_a_file_are_joined_and_ask_what_each_says() {
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("phases.toml").display().to_string();
    let text = "[[phase]]\nname = 'calm'\ntime = '200ms'\n\n\
                [[phase]]\nname = 'flash'\ntime = '200ms'\nrate = '500..2500'\nmix = { get = 1 }\npopularity = 'hot:0.1,1'\n\n\
                [[phase]]\nname = 'write'\ntime = '100ms'\nrate = 1000\nmix = { set = 1 }\n";
    fs::write(&path, text).expect("it is written");
    let words = format!(
        "run -s {} --records 100 -c 4 -d 8 -T 2 --arrivals constant --interval 100ms --rate 500 --phases {path} --mix get:1,set:1",
        server.name
    );
    let ended = pummel(&words).expect(0);
    let json = ended.json();
    let phases = json.at("phases");
    assert_eq!(numbers(phases, "/totals/requests"), [100.0, 300.0, 100.0], "{}", ended.text);
    assert_eq!(numbers(phases, "/at_s"), [0.0, 0.2, 0.4]);
    let of = |phase: usize, verb: &str| phases[phase]["ops"][verb]["requests"].as_u64().unwrap_or(0);
    assert!((20..80).contains(&of(0, "get")), "{}", ended.text);
    assert_eq!([of(1, "get"), of(1, "set"), of(2, "get"), of(2, "set")], [300, 0, 0, 100]);
    // No connection is opened anew for a phase.
    assert_eq!((json.count("connections/open"), json.count("connections/reconnected")), (4, 0));
}

#[test]
fn a_saved_plan_runs_the_same_load_without_its_file() {
    let server = Memcached::start();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("rates"), "# seconds,rate\n0,1000\n0.2,2k\n0.2,0\n0.3,500\n").expect("it is written");
    let load = format!(
        "run -s {} --records 100 -c 4 --arrivals constant --rate file:{} -t 400ms",
        server.name,
        path("rates")
    );
    let plan = pummel(&format!("explain {load}")).expect(0).text;
    fs::write(path("plan.toml"), plan).expect("it is written");
    fs::remove_file(path("rates")).expect("it is removed");
    let ended = pummel(&format!("run --plan {}", path("plan.toml"))).expect(0);
    // 300 until the jump, 25 while the rate rises, 50 behind the last line.
    assert!(ended.json().count("totals/requests").abs_diff(375) <= 1, "{}", ended.text);
}

#[test]
fn loads_that_cannot_be_kept_are_refused_by_the_option() {
    for (words, parts) in [
        ("--rate 10k..", &["--rate", "10k..100k"][..]),
        ("--rate 1k..2k -n 100", &["--rate", "--time"]),
        ("--rate sine:5k,6k,1s", &["--rate", "sine:MEAN"]),
        ("--rate file:/nonexistent/rates", &["--rate", "/nonexistent/rates"]),
        ("--rate 1k..2k --stage 1s:5k", &["--rate", "--stage"]),
        ("--stage 1s:5k", &["--rate"]),
        ("--rate 1k --stage 1s:x", &["--stage", "30s:50k"]),
        ("--rate 1k --stage 1s:2k -t 5s", &["--stage", "--time"]),
        ("--burst 5,50ms,450ms", &["--rate"]),
        ("--rate 1k --burst 11,50ms,450ms", &["--burst", "up to 10"]),
        ("--rate 1k --burst 5,50ms,450ms -n 100", &["--burst", "a time"]),
        ("--rate 1k --burst hurst:0.4,1s", &["--burst", "above 0.5"]),
        ("--rate 1k..2k --until p99:2%", &["--until", "the load changes"]),
        ("--rate 1k..2k --conn-rate 5", &["--rate"]),
        ("--stage-connections 5:1s,10", &["--stage-connections", "--time"]),
        ("--stage-connections 5:1s,10:1s -t 5s", &["--stage-connections", "2s"]),
        ("--stage-connections 5:1s,10 -t 1s", &["--stage-connections", "before the phase ends"]),
        ("--stage-connections 0:1s", &["--stage-connections", "1 connection or more"]),
        ("--stage-connections 5:1s,10:1s -c 5", &["--stage-connections", "--connections"]),
        ("--stage-connections 5:1s,10:1s -n 100", &["--stage-connections", "no number of requests"]),
        ("--stage-connections 5:1s,10:1s --udp", &["--stage-connections", "over UDP"]),
        ("--stage-connections 5:1s,10:1s --conn-rate 5", &["--stage-connections", "none that come and go"]),
        ("--stage-connections 5:1s,10:1s --until p99:2%", &["--until", "when the run ends"]),
        ("--phases /nonexistent/phases", &["--phases", "/nonexistent/phases"]),
        ("--phases phases.toml -t 5s", &["--phases", "--time"]),
    ] {
        let ended = pummel(&format!("run -s 127.0.0.1:1 {words}"));
        assert_eq!(ended.status, 2, "{words}: {}", ended.errors);
        for part in parts {
            assert!(ended.errors.contains(part), "{words}: '{part}' is not in {}", ended.errors);
        }
    }
}

#[test]
fn phases_that_cannot_be_are_refused_by_their_option_and_their_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("phases.toml");
    let phase = |name: &str| format!("[[phase]]\nname = \"{name}\"\ntime = 1\nrate = 10\n");
    for (written, part) in [
        (phase("calm").repeat(2), "for '--phases': expected parts with different names"),
        (phase("\\u001b[2J"), "without control characters"),
        (phase("calm") + "churn = \"none\"\n", "phase 'calm', churn: a phase cannot end the churn"),
        (phase("calm") + "mix = { add = 1 }\n", "for '--phases': in phase 'calm'"),
    ] {
        fs::write(&path, written).expect("written");
        let error = pummel(&format!("run -s 127.0.0.1:1 --phases {}", path.display())).expect(2).errors;
        assert!(error.contains(part) && !error.contains('\u{1b}'), "{part}: {error}");
    }
}
