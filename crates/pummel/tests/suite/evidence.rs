//! Evidence of runs about their servers and their machine, from real servers and from some that do not tell.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::agent::{Agent, list};
use crate::common::redis::Redis;
use crate::common::secured::Certificates;
use crate::common::{
    Ended, Json, Memcached, Place, Running, Serve, in_some_quiet_moment, in_the_midst, littles_law, pummel,
    until,
};
use tempfile::TempDir;

/// A run that is over soon, and asks for everything that servers count.
const SHORT: &str = "-n 5000 -c 3 -d 2 --records 500 --multiget 3 \
    --mix get:5,set:2,delete:1,touch:1,incr:1 -v";

/// Runs a mix against a server, and returns its result. A busy machine may take so long for a reading that the run does not
/// wait for it, and then does not compare it with its own requests; the run is repeated until it has waited.
#[track_caller]
fn run(server: &str, words: &str) -> Json {
    read_until(&format!("run -s {server} {words}"), "server/reading/our_requests").1
}

/// Runs pummel with these words until its result has something at this path, as it has where no server was waited for in vain.
/// Returns the report in one line, and the result.
#[track_caller]
fn read_until(words: &str, path: &str) -> (String, Json) {
    until("a reading in time", || {
        let ended = pummel(words).expect(0);
        let report = in_one_line(&ended.text);
        let result = seen(ended);
        (!result.at(path).is_null()).then_some((report, result))
    })
}

/// The result of a run, with its first server and its first machine as `server` and `machine`.
#[track_caller]
fn seen(ended: Ended) -> Json {
    let mut result = ended.json().0;
    for (one, all) in [("server", "servers"), ("machine", "machines")] {
        result[one] = result["evidence"][all][0].clone();
    }
    Json(result)
}

/// That a server was read, that it counted our requests and no others, and that its process was found.
#[track_caller]
fn assert_read(result: &Json, software: &str) {
    let of = |path: &str| format!("server/{path}");
    assert!(result.at(&of("unread")).is_null(), "{}", result.at("server"));
    assert_eq!(result.text(&of("reading/software")), software);
    assert!(!result.text(&of("reading/version")).is_empty());
    let (ours, counted) =
        (result.count(&of("reading/our_requests")), result.count(&of("reading/counts/requests")));
    assert_eq!(ours, counted, "{}", result.at("server/reading"));
    assert!(ours >= 5000, "{ours}");
    let opened = result.at(&of("reading/counts/connections_opened")).as_u64();
    assert_eq!(opened, Some(0), "nobody came in between");
    // A memcached with two listening sockets counts one of them.
    let open = result.count(&of("reading/connections"));
    assert!((3..=4).contains(&open), "{open} without that of the reader");
    let threads = result.at(&of("threads")).as_array().expect("the process is on this machine");
    assert!(!threads.is_empty() && threads[0]["cpu_s"].as_f64() > Some(0.0), "{threads:?}");
    assert!(threads.windows(2).all(|pair| pair[0]["cpu_s"].as_f64() >= pair[1]["cpu_s"].as_f64()));
}

/// That a server was not read, with these words, and that the run is whole all the same.
#[track_caller]
fn assert_unread(run: impl Fn() -> Ended, words: &str) {
    in_some_quiet_moment(|| {
        let result = seen(run().expect(0));
        assert!(result.at("server/reading").is_null());
        assert!(!result.at("machine").is_null(), "the machine is read in any case");
        assert_eq!(result.text("status"), "complete");
        // A busy machine may take longer than a server is waited for.
        let why = result.text("server/unread");
        why.contains(words).then_some(()).ok_or_else(|| why.to_owned())
    });
}

#[test]
fn memcached_is_read_in_every_protocol_and_counted_what_we_sent() {
    let server = Memcached::start();
    for protocol in ["text", "meta", "binary"] {
        assert_read(&run(&server.name, &format!("{SHORT} --protocol {protocol}")), "memcached");
    }
    let unix = Memcached::start_on(Place::Unix);
    let result = run(&unix.name, SHORT);
    assert_read(&result, "memcached");
    assert!(result.at("machine/connections").is_null(), "there is no TCP");
    assert_eq!(result.count("server/reading/serving_threads"), 1);
}

#[test]
fn a_run_with_a_warm_up_compares_its_measured_phase_alone() {
    let server = Memcached::start();
    let result =
        run(&server.name, "-t 500ms --warmup 300ms -c 3 --records 500 --mix get:9,set:1 -v --rate 3000");
    let of = |name: &str| result.count(&format!("server/reading/{name}"));
    assert_eq!(of("our_requests"), of("counts/requests"));
    let measured = result.count("totals/completed");
    assert_eq!(of("counts/requests"), measured);
    assert_eq!(of("counts/gets"), result.count("ops/get/keys"));
    assert_eq!(of("counts/sets"), result.count("ops/set/completed"));
}

#[test]
fn a_result_that_disagrees_with_itself_is_found_out() {
    let server = Memcached::start();
    let ended = pummel(&format!("run -s {} -n 12000 -c 2 -d 4 --records 100 -v", server.name)).expect(0);
    let mut result = ended.json().0;
    assert!(littles_law::wrongs(&result).is_empty());
    let mut figures = result["verdict"]["evidence"].as_array().expect("a list").clone();
    let at = figures
        .iter()
        .position(|figure| figure.to_string().contains("Little's law"))
        .expect("12,000 requests");
    figures[at]["value"] = serde_json::json!(0.011);
    result["verdict"]["evidence"] = serde_json::json!(figures);
    assert_eq!(littles_law::wrongs(&result).len(), 1);
    figures.remove(at);
    result["verdict"]["evidence"] = serde_json::json!(figures);
    assert_eq!(
        littles_law::wrongs(&serde_json::json!({"runs": [result]})),
        ["$.runs[0]: no self-check of 12000"]
    );
}

#[test]
fn requests_of_others_are_more_than_ours() {
    let server = Memcached::start();
    let name = server.name.clone();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let other = thread::spawn(move || {
        let mut stream = BufReader::new(TcpStream::connect(name).expect("it listens"));
        let mut line = String::new();
        while counted.load(Ordering::Relaxed) != u64::MAX {
            stream.get_mut().write_all(b"get nothing\r\n").expect("it reads");
            line.clear();
            stream.read_line(&mut line).expect("it answers");
            if counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1)).is_err() {
                break;
            }
        }
    });
    until("the other's first request", || (asked.load(Ordering::Relaxed) > 0).then_some(()));
    let result = run(&server.name, "-t 500ms -c 2 --records 500 -v --rate 1000");
    asked.store(u64::MAX, Ordering::Relaxed);
    other.join().expect("it is let go");
    let of = |name: &str| result.count(&format!("server/reading/{name}"));
    assert!(of("counts/requests") > of("our_requests"), "{} {}", of("counts/requests"), of("our_requests"));
}

#[test]
fn what_a_login_or_tls_protects_is_read_with_it() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "secret\n").expect("it is writable");
    let login = format!("--user joe --password-file {}", file.display());
    let sasl = Memcached::start_sasl("joe", "secret");
    assert_read(&run(&sasl.name, &format!("{SHORT} --protocol binary {login}")), "memcached");
    let users = Memcached::start_with_users("joe", "secret");
    assert_read(&run(&users.name, &format!("{SHORT} {login}")), "memcached");
    let redis = Redis::start(&["--requirepass", "secret"]);
    let login = format!("--user default --password-file {}", file.display());
    let resp = SHORT.replace(" --multiget 3", "");
    assert_read(&run(&redis.name(), &format!("{resp} --protocol resp3 {login}")), "redis");

    let certificates = Certificates::make();
    let (_server, secured) = Memcached::start_tls(&certificates.cert(), &certificates.key());
    let secured = secured.replace("127.0.0.1", "localhost");
    assert_read(&run(&secured, &format!("{SHORT} --tls --tls-ca {}", certificates.ca())), "memcached");
}

#[test]
fn redis_is_read_with_its_own_times_of_commands() {
    let redis = Redis::start(&[]);
    let resp = SHORT.replace(" --multiget 3", "");
    for protocol in ["resp2", "resp3"] {
        let result = run(&redis.name(), &format!("{resp} --protocol {protocol}"));
        assert_read(&result, "redis");
        assert_eq!(result.count("server/reading/serving_threads"), 1);
        let commands = result.at("server/reading/commands").as_array().expect("a list").clone();
        let get = commands.iter().find(|command| command["name"] == "get").expect("it was called");
        assert_eq!(get["calls"].as_u64(), Some(result.count("ops/get/completed")));
        assert!(get["p99_us"].as_f64() > Some(0.0));
        assert!(commands.iter().all(|command| command["name"] != "info"), "the reader's own: {commands:?}");
    }
}

#[test]
fn the_words_that_begin_our_own_connections_are_no_requests_of_others() {
    let redis = Redis::start(&[]);
    let words = "-t 500ms --conn-rate 200 --calls-per-connection 1 --records 10 --protocol resp3 -v";
    let result = seen(pummel(&format!("run -s {} {words}", redis.name())).expect(0));
    assert!(result.count("server/reading/counts/requests") > 0);
    assert!(result.at("server/reading/our_requests").is_null(), "each connection has its HELLO too");
    assert_ne!(result.text("verdict/limit"), "others");
}

#[test]
fn a_redis_that_does_not_tell_costs_one_line() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "secret\n").expect("it is writable");
    let words = "-n 2000 -c 3 --records 100 -v --protocol resp2";
    let redis = Redis::start(&["--user", "joe", "on", ">secret", "~*", "+get", "+set", "+select"]);
    let login = format!("--user joe --password-file {}", file.display());
    assert_unread(|| pummel(&format!("run -s {} {words} {login}", redis.name())), "NOPERM");
    let renamed = Redis::start(&["--rename-command", "INFO", "x1", "--rename-command", "CONFIG", "x2"]);
    assert_unread(|| pummel(&format!("run -s {} {words}", renamed.name())), "unknown command");
}

#[test]
fn nothing_is_asked_where_nothing_is_wanted() {
    let server = Memcached::start();
    // The result of a run, and how many connections the server got.
    let ask = |more: &str| {
        let connections = || server.connect().stats().get("total_connections");
        let before = connections();
        let result = seen(pummel(&format!("run -s {} {SHORT} {more}", server.name)).expect(0));
        (connections() - before, result)
    };
    let (connections, result) = ask("--no-evidence");
    assert!(result.at("evidence/servers").is_null() && result.at("machine").is_null());
    assert_eq!(connections, 3 + 1, "three connections, and the one that asks now");
    // A server whose first answer a busy machine does not wait for is asked on another connection.
    let (connections, result) =
        until("a reading", || Some(ask("")).filter(|(_, result)| !result.at("server/reading").is_null()));
    assert!(result.at("plan").get("evidence").is_none(), "the default is not written");
    assert_eq!(connections, 3 + 1 + 1, "one more for the evidence");
}

#[test]
fn a_server_over_udp_is_asked_over_tcp_or_not_at_all() {
    in_some_quiet_moment(|| {
        let server = Memcached::start_on(Place::Udp);
        let ended = pummel(&format!("run -s {} --udp -n 2000 -c 2 --records 100 -v", server.name));
        let result = seen(ended);
        let software = result.text_or_none("server/reading/software").map(str::to_owned);
        (software.as_deref() == Some("memcached")).then_some(()).ok_or_else(|| format!("{software:?}"))
    });
}

#[test]
fn the_own_connections_and_workers_are_read() {
    let server = Memcached::start();
    let result = run(&server.name, "-t 500ms -c 40 -T 2 --records 500 -v");
    let machine = |path: &str| format!("machine/{path}");
    assert_eq!(result.count(&machine("connections/read")), 40);
    assert!(result.count(&machine("connections/segments_out")) >= result.count("totals/completed"));
    let workers = result.at(&machine("workers")).as_array().expect("a list");
    assert_eq!(workers.iter().map(|worker| &worker["name"]).collect::<Vec<_>>(), ["worker-0", "worker-1"]);
    assert!(workers.iter().all(|worker| worker["cpu_s"].as_f64() > Some(0.0)), "{workers:?}");
    assert!(result.number(&machine("seconds")) >= 0.5);
    assert!(result.count(&machine("cpus")) >= 1);
    assert!(result.count(&machine("network/segments_out")) >= result.count("totals/completed"));
}

/// A server that answers every request with a miss, and does something else when it is asked for its statistics.
fn server(on_stats: fn(&mut TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let name = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                    if line.starts_with("stats") {
                        return on_stats(lines.get_mut());
                    }
                    if lines.get_mut().write_all(b"END\r\n").is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    name
}

#[test]
fn servers_that_do_not_understand_cost_one_line_and_no_time() {
    let words = "-n 300 -c 2 --no-load -v --records 10 --mix get:1";
    let ask = |on_stats: fn(&mut TcpStream)| move || pummel(&format!("run -s {} {words}", server(on_stats)));
    assert_unread(ask(|_| {}), "closed the connection");
    assert_unread(
        ask(|stream| drop(stream.write_all(b"\x80\0garbage\r\n\r\n").map(|()| drain(stream)))),
        "does not allow",
    );
    assert_unread(
        ask(|stream| drop(stream.write_all(&b"ERROR\r\n".repeat(4)).map(|()| drain(stream)))),
        "ERROR",
    );
    assert_unread(
        ask(|stream| while stream.write_all(&b"STAT endless 1\r\n".repeat(1000)).is_ok() {}),
        "longer than 256 KiB",
    );
    assert_unread(ask(drain), "did not answer in time");
}

/// Reads until the other end closes, and says nothing.
fn drain(stream: &mut TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_full_server_costs_one_line() {
    // Of 40 connections memcached keeps some for itself: as many are asked for as it lets in.
    let server = Memcached::start_for(40);
    let mut watcher = server.connect();
    let mut talks: Vec<TcpStream> = Vec::new();
    loop {
        let mut stream = TcpStream::connect(&server.name).expect("it listens");
        // A server that is full may have closed already.
        let _ = stream.write_all(b"version\r\n");
        let mut first = [0; 1];
        match stream.read(&mut first) {
            Ok(1) if first == *b"V" => talks.push(stream),
            _ => break,
        }
    }
    let room = talks.len();
    drop(talks);
    // A closed connection is free a moment later, so that a run with one connection less may be the first that is let in.
    in_some_quiet_moment(|| {
        let unread = (room - 4..=room).rev().find_map(|connections| {
            until("an empty server", || (watcher.stats().get("curr_connections") <= 1).then_some(()));
            let words = format!("-n 500 -c {connections} --records 10 -v");
            let result = seen(pummel(&format!("run -s {} {words}", server.name)));
            let is_complete = result.text("status") == "complete";
            is_complete.then(|| result.text_or_none("server/unread").unwrap_or_default().to_owned())
        });
        let unread = unread.unwrap_or_default();
        unread.contains("no more connections").then_some(()).ok_or(unread)
    });
}

#[test]
fn agents_take_their_own_machines_and_one_reads_the_server() {
    let server = Memcached::start();
    let agents = Agent::many(3);
    let words = "-t 500ms -c 6 --records 500 --rate 3000 --mix get:9,set:1 -v";
    let result = run(&server.name, &format!("{words} --agents {}", list(&agents)));
    let machines = result.at("evidence/machines").as_array().expect("a list");
    let mut names: Vec<&str> = machines.iter().filter_map(|machine| machine["agent"].as_str()).collect();
    let mut wanted: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    names.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(names, wanted);
    assert_eq!(result.at("evidence/servers").as_array().map(Vec::len), Some(1));
    let of = |name: &str| result.count(&format!("server/reading/{name}"));
    assert_eq!(of("our_requests"), result.count("totals/completed"), "those of all agents");
    assert!(of("counts/requests") > 0 && of("counts/requests") <= of("our_requests"));
    let threads = result.at("server/threads").as_array().expect("the server is here");
    assert!(!threads.is_empty());
}

#[test]
fn the_built_in_server_tells_what_it_has() {
    let server = Serve::start("");
    let result = run(&server.name, "-n 2000 -c 2 --records 100 -v");
    let of = |path: &str| format!("server/{path}");
    assert_eq!(result.count(&of("reading/counts/requests")), result.count(&of("reading/our_requests")));
    assert!(result.text(&of("threads_unread")).contains("does not say which process"));
}

#[test]
fn the_cpu_of_a_request_is_that_of_all_its_keys() {
    let memcached = Memcached::start();
    let redis = Redis::start(&[]);
    for (server, protocol) in [(&memcached.name, "text"), (&redis.name(), "resp2")] {
        for (multiget, keys) in [(1, 1.0), (50, 50.0)] {
            let words = "-n 4000 -c 3 --records 500 --mix get:1 -v";
            let words = format!("run -s {server} --protocol {protocol} --multiget {multiget} {words}");
            let (report, result) = read_until(&words, "server/reading/our_requests");
            let of = |path: &str| result.at(path).as_f64();
            let (cpu_us, completed) =
                (of("server/reading/cpu_s").map(|s| s * 1e6), of("totals/completed").expect("some"));
            let each = of("server/reading/cpu_us_per_request").zip(cpu_us).expect("it is known");
            assert!((each.0 * completed / each.1 - 1.0).abs() < 0.01, "{protocol} {multiget}: {each:?}");
            let per_key =
                of("server/reading/cpu_us_per_key").map(|us| (us * keys / each.0 - 1.0).abs() < 0.1);
            assert_eq!(per_key, (multiget > 1).then_some(true), "{}", result.at("server/reading"));
            let keys_rate = of("totals/keys_rate").zip(of("totals/rate")).map(|(all, rate)| all / rate);
            assert!(keys_rate.is_none_or(|each| (each - keys).abs() < 0.1), "{keys_rate:?}");
            assert_eq!(keys_rate.is_some(), multiget > 1);
            for words in ["us for each key", "Keys "] {
                assert_eq!(report.contains(words), multiget > 1, "{words}: {report}");
            }
        }
    }
}

#[test]
fn connections_of_our_own_are_not_those_of_others_however_late_the_server_counts_them() {
    let server = Memcached::start();
    for _ in 0..3 {
        let words = "-n 200 -c 200 --records 10 --no-load -v";
        let result = seen(pummel(&format!("run -s {} {words}", server.name)).expect(0));
        assert_ne!(result.text("verdict/limit"), "others", "{}", result.at("verdict"));
    }
}

#[test]
fn a_server_that_started_anew_in_the_midst_is_read_and_named() {
    let words = "-c 2 --rate 300 --records 2k --reconnect";
    let (ended, _anew) = in_the_midst(Duration::from_secs(2), |time| {
        let server = Serve::start("");
        let name = server.name.clone();
        let mut running = Running::start(&format!("run -s {name} {time} {words}"));
        running.wait_for_progress();
        drop(server);
        (running, Serve::start_at(&name, ""))
    });
    let (report, result) = (in_one_line(&ended.text), seen(ended));
    assert_eq!(result.at("server/reading/restarted"), true, "{}", result.at("server"));
    assert!(report.contains("started anew during the run"), "{report}");
    assert!(result.at("server/reading/cpu_us_per_request").is_null());
}

#[test]
fn a_server_that_closes_the_connection_of_the_questions_and_goes_on_has_not_started_anew() {
    let redis = Redis::start(&[]);
    let words = "--protocol resp2 -c 2 --rate 300 --records 100 --no-load --reconnect";
    let (ended, ()) = in_the_midst(Duration::from_secs(2), |time| {
        let mut running = Running::start(&format!("run -s {} {time} {words}", redis.name()));
        running.wait_for_progress();
        redis.say("CLIENT KILL TYPE normal SKIPME yes");
        (running, ())
    });
    let result = seen(ended);
    assert_eq!(result.at("server/reading/restarted"), false, "{}", result.at("server"));
    assert_ne!(result.text("verdict/row"), "server-restarted");
}

#[test]
fn server_stats_are_what_the_server_said_interval_by_interval() {
    let memcached = Memcached::start();
    let redis = Redis::start(&[]);
    for (server, protocol) in [(&memcached.name, "text"), (&redis.name(), "resp3")] {
        let words = "-t 1200ms -c 3 --records 500 --rate 2000 --mix get:9,set:1 --server-stats=200ms -v";
        let words = format!("run -s {server} --protocol {protocol} {words}");
        let result = until("a reading in time", || {
            let ended = pummel(&words).expect(0);
            assert!(ended.text.contains("Server stats"), "{}", ended.text);
            let result = seen(ended);
            (!result.at("server/reading/our_requests").is_null()).then_some(result)
        });
        let stats = &result.at("server_stats")[0];
        assert_eq!(
            (stats["address"].as_str(), stats["interval_s"].as_f64()),
            (Some(server.as_str()), Some(0.2))
        );
        let intervals = stats["intervals"].as_array().expect("a list");
        // How many there are depends on how long the machine let the run and its drain wait; their times do not.
        assert!(intervals.len() >= 2, "{stats}");
        let ends = intervals.iter().map(|one| Some(one["at_s"].as_f64()? + one["seconds"].as_f64()?));
        for (end_s, next) in ends.zip(&intervals[1..]) {
            let gap_s = next["at_s"].as_f64().zip(end_s).map(|(begins, ends)| begins - ends);
            assert!(
                gap_s.is_some_and(|gap_s| gap_s.abs() < 1e-6),
                "each begins where the last one ended: {stats}"
            );
        }
        let requests: u64 = intervals.iter().filter_map(|one| one["counts"]["requests"].as_u64()).sum();
        assert_eq!(requests, result.count("server/reading/counts/requests"), "{stats}");
        assert_eq!(requests, result.count("server/reading/our_requests"), "no question is counted");
        // The last interval may have stores alone, and so no share of hits.
        let ratios: Vec<f64> = intervals.iter().filter_map(|one| one["hit_ratio"].as_f64()).collect();
        assert!(!ratios.is_empty() && ratios.iter().all(|ratio| *ratio == 1.0), "{stats}");
        assert!(intervals.iter().any(|one| one["cpu_us_per_request"].as_f64() > Some(0.0)), "{stats}");
    }
}

#[test]
fn server_stats_without_evidence_or_too_often_are_refused() {
    let refused = |words: &str| pummel(&format!("run -s 127.0.0.1:1 -t 1s {words}")).expect(2).errors;
    assert!(refused("--server-stats=99ms").contains("100ms"));
    assert!(refused("--server-stats --no-evidence").contains("--no-evidence"));
}

#[test]
fn servers_behind_a_proxy_are_asked_where_the_command_line_says() {
    let (front, behind) = (Memcached::start(), Memcached::start());
    let connections = |server: &Memcached| server.connect().stats().get("total_connections");
    let before = connections(&front);
    in_some_quiet_moment(|| {
        let words = format!(
            "run -s {} --protocol text -t 600ms -c 2 --records 50 --rate 500 -v --server-stats=200ms \
             --server-stats-at {}",
            front.name, behind.name
        );
        let result = seen(pummel(&words).expect(0));
        let stats = result.at("server_stats")[0].clone();
        let is_read = result.text_or_none("server/reading/software") == Some("memcached")
            && result.text("server/address") == behind.name
            && stats["address"].as_str() == Some(behind.name.as_str())
            && stats["intervals"].as_array().is_some_and(|all| !all.is_empty());
        assert!(result.at("server/reading/our_requests").is_null(), "a proxy makes of requests what it will");
        assert_ne!(result.text("verdict/limit"), "others");
        // TCP's figures are those of the connections that have the load.
        assert_eq!(result.count("machine/connections/read"), 2);
        is_read.then_some(()).ok_or_else(|| result.at("evidence").to_string())
    });
    let runs = (connections(&front) - before - 1) / 2;
    assert!(runs >= 1 && (connections(&front) - before - 2).is_multiple_of(2), "no question at the proxy");
    let refused = |words: &str| pummel(&format!("run -s 127.0.0.1:1 -t 1s {words}")).expect(2).errors;
    assert!(refused("--server-stats-at a --no-evidence").contains("--no-evidence"));
    assert!(refused("--server-stats-at a:1,a:1").contains("--server-stats-at"));
    assert!(refused("--server-stats-at a:x").contains("--server-stats-at"));
}

#[test]
fn redis_tells_its_slow_commands_its_latency_events_its_errors_and_its_settings() {
    let redis = Redis::start(&[
        "--slowlog-log-slower-than",
        "0",
        "--latency-monitor-threshold",
        "1",
        "--enable-debug-command",
        "local",
        "--maxmemory-policy",
        "allkeys-lru",
    ]);
    in_some_quiet_moment(|| {
        let words = "-t 1500ms -c 2 --records 50 --rate 300 -v --mix get:9,set:1 --protocol resp2";
        // What an attempt before this one left.
        redis.say("FLUSHALL");
        let mut run = Running::start(&format!("run -s {} {words}", redis.name()));
        until("the load", || redis.say("DBSIZE").contains(":50").then_some(()));
        thread::sleep(Duration::from_millis(400));
        // A slow command with an argument, an event of at least 5 ms, and an error.
        redis.say("DEBUG SLEEP 0.005");
        redis.say("LPUSH a-list secret-argument");
        redis.say("INCR a-list");
        if run.has_ended() {
            return Err("the run was over before the server had something to tell".to_owned());
        }
        let result = seen(run.end().expect(0));
        let reading = result.at("server/reading").clone();
        let text = reading.to_string();
        assert!(!text.contains("secret-argument"), "{text}");
        let slow = reading["slow_commands"].as_array().map_or(0, Vec::len);
        let events = reading["latency_events"].as_array().into_iter().flatten();
        let event = events.filter_map(|event| event["greatest_us"].as_f64()).reduce(f64::max);
        let errors = reading["errors"].to_string();
        let get = reading["commands"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "get"));
        let at_most = get.and_then(|get| get["p99_at_most_us"].as_f64());
        let is_told = (1..=10).contains(&slow)
            && event >= Some(5_000.0)
            && errors.contains("WRONGTYPE")
            && at_most > Some(0.0)
            && reading["settings"]["maxmemory_policy"] == "allkeys-lru"
            && reading["settings"]["appendonly"] == "no"
            && reading["memory_taken_bytes"].as_u64() > Some(0);
        is_told.then_some(()).ok_or(text)
    });
}

/// A server that speaks RESP as far as a run needs it, and answers `INFO` by these bytes from its second one on.
fn unkind_resp(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let name = listener.local_addr().expect("it is bound").to_string();
    let asked = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let asked = Arc::clone(&asked);
            thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                while let Some(words) = resp_command(&mut lines) {
                    let reply: &[u8] = match words[0].as_str() {
                        "GET" => b"$-1\r\n",
                        "SLOWLOG" | "LATENCY" | "CONFIG" | "CLUSTER" => b"*0\r\n",
                        "INFO" if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
                            b"$39\r\nredis_version:7\r\nused_cpu_user:1.000000\r\n"
                        }
                        "INFO" => answer,
                        _ => b"",
                    };
                    if lines.get_mut().write_all(reply).is_err() {
                        return;
                    }
                }
            });
        }
    });
    name
}

/// The words of the next command of RESP, in upper case; `None` at the end.
fn resp_command(lines: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut line = || {
        let mut line = String::new();
        let len = lines.read_line(&mut line).ok()?;
        (len > 0).then(|| line.trim_end().to_owned())
    };
    let count: usize = line()?.strip_prefix('*')?.parse().ok()?;
    (0..count).map(|_| line().and_then(|_| line()).map(|word| word.to_uppercase())).collect()
}

/// A report without the ends of its lines.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Answer of a node of a cluster to `CLUSTER SLOT-STATS` about slots with so many keys and, where it counts it, so many
/// microseconds of CPU time.
fn slot_stats(slots: &[(u16, u64, Option<u64>)]) -> String {
    let text: String = slots
        .iter()
        .map(|(slot, keys, cpu_us)| {
            let cpu = cpu_us.map_or_else(String::new, |us| format!("$8\r\ncpu-usec\r\n:{us}\r\n"));
            let strings = if cpu.is_empty() { 2 } else { 4 };
            format!("*2\r\n:{slot}\r\n*{strings}\r\n$9\r\nkey-count\r\n:{keys}\r\n{cpu}")
        })
        .collect();
    format!("*{}\r\n{text}", slots.len())
}

/// Answer to `INFO` of a node whose main thread has had so much CPU time.
fn info_of_a_node(cpu_ms: u32) -> String {
    let cpu_s = f64::from(cpu_ms) / 1e3;
    let text = format!(
        "redis_version:8.2.0\r\nused_cpu_user_main_thread:{cpu_s:.6}\r\nused_cpu_sys_main_thread:0.000000\r\n"
    );
    format!("${}\r\n{text}\r\n", text.len())
}

/// A node of a cluster that answers `CLUSTER SLOT-STATS` by these words: those of the first reading by keys and by CPU time,
/// then those of every later one.
fn node(answers: [[String; 2]; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (name, port) = (address.to_string(), address.port());
    let answers = Arc::new(answers);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answers = Arc::clone(&answers);
            thread::spawn(move || {
                let (mut lines, mut readings) = (BufReader::new(stream), 0);
                while let Some(words) = resp_command(&mut lines) {
                    let reply = match words[0].as_str() {
                        "GET" => "$-1\r\n".to_owned(),
                        "CLUSTER" if words[1] == "SLOTS" => {
                            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
                        }
                        "CLUSTER" => answers[readings.min(1)][usize::from(words[3] == "CPU-USEC")].clone(),
                        "INFO" => {
                            readings += 1;
                            info_of_a_node(if readings == 1 { 1_000 } else { 1_010 })
                        }
                        _ => "*0\r\n".to_owned(),
                    };
                    if lines.get_mut().write_all(reply.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    name
}

#[test]
fn a_node_of_a_cluster_tells_which_hash_slots_took_its_time() {
    let words = "-t 300ms -c 2 --no-load --records 10 --mix get:1 --rate 200 -v --protocol resp2";
    let run = |route: &str, answers| {
        read_until(&format!("run -s {} {words} {route}", node(answers)), "server/reading")
    };
    let by_keys = slot_stats(&[(5, 90, Some(10)), (7, 4, Some(9_000))]);
    let first = [by_keys, slot_stats(&[(7, 4, Some(9_000)), (5, 90, Some(10))])];
    let later = [first[0].clone(), slot_stats(&[(7, 4, Some(14_000)), (5, 90, Some(10)), (9, 1, Some(3))])];
    for route in ["--route crc16", "--cluster"] {
        let (report, result) = run(route, [first.clone(), later.clone()]);
        let told = "hash slot 7 (4 keys) took 50 % of its main thread's CPU time or more";
        assert!(report.contains(told), "{report}");
        let slots = result.at("server/reading/slots").clone();
        let of = |at: usize| (slots[at]["slot"].as_u64(), slots[at]["cpu_at_least_us"].as_f64());
        assert_eq!((of(0), of(1)), ((Some(7), Some(5_000.0)), (Some(9), Some(3.0))), "{slots}");
        assert_eq!((slots[2]["keys"].as_u64(), slots[2]["bytes_in"].as_u64()), (Some(90), None), "{slots}");
    }
    let run = |answers| run("--route crc16", answers);
    // One that counts no CPU time, and one that is no node of a cluster.
    let no_metric = "-ERR Unrecognized sort metric for ORDERBY.\r\n".to_owned();
    let keys = [slot_stats(&[(5, 90, None)]), no_metric];
    let (_, result) = run([keys.clone(), keys]);
    let slot = &result.at("server/reading/slots")[0];
    assert_eq!((slot["keys"].as_u64(), slot["cpu_at_least_us"].as_f64()), (Some(90), None), "{slot}");
    let refusal = || ["", ""].map(|_| "-ERR This instance has cluster support disabled\r\n".to_owned());
    let (_, result) = run([refusal(), refusal()]);
    assert!(result.at("server/reading/slots").is_null() && result.at("server/unread").is_null());
    assert_eq!(result.text("server/reading/version"), "8.2.0");
}

#[test]
fn memcached_tells_which_class_of_sizes_lost_records() {
    let server = Memcached::start_of_megabytes(2);
    for protocol in ["text", "binary"] {
        let words = "-n 12000 -c 2 -d 4 --records 12000 --popularity sequential --mix set:1 --value-size 1000 --no-load -v";
        let words = format!("run -s {} --protocol {protocol} {words}", server.name);
        let (report, result) = read_until(&words, "server/reading/our_requests");
        let told = "of its sizes (up to 1.18 kB) lost most: ";
        assert!(report.contains(told), "{report}");
        let reading = result.at("server/reading");
        let classes = reading["classes"].as_array().expect("memcached tells its classes");
        let sum = |name: &str| classes.iter().filter_map(|class| class[name].as_u64()).sum::<u64>();
        assert_eq!(Some(sum("evictions")), reading["counts"]["evictions"].as_u64(), "{reading}");
        assert!(sum("evictions") > 5_000 && sum("records") > 500 && sum("pages") >= 1, "{reading}");
        assert_eq!(classes[0]["chunk_bytes"].as_u64(), Some(1184), "{reading}");
    }
}

#[test]
fn readings_that_turn_to_garbage_are_cut_or_never_come_leave_the_run_as_it_is() {
    let endless: &'static [u8] = Box::leak(vec![b'x'; 400_000].into_boxed_slice());
    let answers: [&'static [u8]; 6] =
        [b"", b"$100\r\nredis_ver", b"\xfe\xff\xfe\xff\r\n", b"*-7\r\n", b"-ERR no\r\n", endless];
    thread::scope(|scope| {
        for answer in answers {
            scope.spawn(move || {
                let head = String::from_utf8_lossy(&answer[..answer.len().min(20)]).into_owned();
                let words = "-t 700ms -c 2 --no-load --records 10 --mix get:1 --rate 200 -v --protocol resp2";
                let name = unkind_resp(answer);
                let ended = pummel(&format!("run -s {name} {words} --server-stats=100ms")).expect(0);
                assert!(!ended.errors.contains("panicked"), "{head:?}: {}", ended.errors);
                let result = seen(ended);
                assert_eq!(result.text("status"), "complete", "{head:?}");
                let reading = result.at("server/reading");
                assert!(reading.is_null() && !result.text("server/unread").is_empty(), "{head:?}: {reading}");
                assert!(result.at("server_stats")[0]["missed"].as_u64() > Some(0), "{head:?}");
            });
        }
    });
}

#[test]
fn a_server_that_stands_still_misses_its_readings_and_the_next_one_covers_their_time() {
    let server = Memcached::start();
    in_some_quiet_moment(|| {
        let words =
            "-t 2500ms -c 2 --records 500 --rate 500 --mix get:1 --timeout 3s --server-stats=100ms -v";
        let mut run = Running::start(&format!("run -s {} {words}", server.name));
        let mut watcher = server.connect();
        let gets = |watcher: &mut crate::common::Talk| watcher.stats().get("cmd_get");
        let begun = gets(&mut watcher);
        until("the measured phase", || (gets(&mut watcher) > begun + 100).then_some(()));
        let (stood_still_s, _) = server.process.pause(Duration::from_millis(700));
        if run.has_ended() {
            return Err("the run was over before its server went on".to_owned());
        }
        let result = run.end().expect(0).json();
        let stats = result.at("server_stats")[0].clone();
        let figure = |one: &serde_json::Value, name: &str| one[name].as_f64().unwrap_or(f64::NAN);
        let intervals = stats["intervals"].as_array().expect("a list");
        let longest = intervals.iter().map(|one| figure(one, "seconds")).fold(0.0, f64::max);
        let end = |one: &serde_json::Value| figure(one, "at_s") + figure(one, "seconds");
        let is_gapless =
            intervals.windows(2).all(|pair| (figure(&pair[1], "at_s") - end(&pair[0])).abs() < 1e-3);
        let missed = stats["missed"].as_u64().unwrap_or(0);
        let is_seen = missed >= 3 && longest >= stood_still_s - 0.1 && is_gapless && intervals.len() >= 3;
        is_seen.then_some(()).ok_or_else(|| format!("{missed} missed, {longest} s the longest: {stats}"))
    });
}

#[test]
fn requests_at_several_servers_are_compared_all_together() {
    let servers = [Memcached::start(), Memcached::start()];
    let names = format!("{},{}", servers[0].name, servers[1].name);
    let result = until("readings in time", || {
        let result = seen(pummel(&format!("run -s {names} {SHORT} --route ketama")).expect(0));
        (!result.at("evidence/our_requests").is_null()).then_some(result)
    });
    let of = |number: usize, path: &str| result.at("evidence/servers")[number]["reading"][path].clone();
    let counted: u64 = (0..2).filter_map(|number| of(number, "counts")["requests"].as_u64()).sum();
    assert_eq!(result.count("evidence/our_requests"), counted);
    assert!((0..2).all(|number| of(number, "our_requests").is_null()), "of each it is not known");
    assert_ne!(result.text("verdict/limit"), "others");
    let opened = result.at("connections/servers").as_array().expect("a list");
    assert_eq!(
        opened.iter().filter_map(|server| server["opened"].as_u64()).sum::<u64>(),
        6,
        "3 clients at 2 servers"
    );
    assert!(opened.iter().all(|server| server["connect_p50_us"].as_f64() > Some(0.0)), "{opened:?}");
}

#[test]
fn a_proxy_that_closes_when_it_is_asked_is_asked_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let name = listener.local_addr().expect("it is bound").to_string();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                    if line.starts_with("stats") {
                        counted.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    if lines.get_mut().write_all(b"END\r\n").is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    let words = "-t 1500ms -c 2 --no-load -v --records 10 --mix get:1 --rate 100 --server-stats=100ms";
    let result = seen(pummel(&format!("run -s {name} {words}")).expect(0));
    assert!(result.text("server/unread").contains("as a proxy does"), "{}", result.text("server/unread"));
    assert_eq!(asked.load(Ordering::Relaxed), 2, "twice, however often it was to be asked");
    assert_eq!(result.text("status"), "complete");
}

#[test]
fn every_result_tells_its_machine_and_its_command_line() {
    let server = Memcached::start();
    let ended =
        pummel(&format!("run -s {} -n 200 -c 2 --records 10 --no-evidence -v", server.name)).expect(0);
    assert!(ended.text.contains("Machine"), "{}", ended.text);
    let result = ended.json();
    let machine = result.at("machine")[0].clone();
    assert!(machine["kernel"].as_str().is_some_and(|kernel| kernel.starts_with("Linux ")), "{machine}");
    assert!(machine["memory_bytes"].as_u64() > Some(0) && machine["cpu"]["allowed"].is_string(), "{machine}");
    assert_eq!(machine["build"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    let words: Vec<&str> =
        result.at("argv").as_array().expect("a list").iter().filter_map(|word| word.as_str()).collect();
    assert!(words.windows(2).any(|pair| pair == ["-s", server.name.as_str()]), "{words:?}");
}

#[test]
fn anonymous_results_of_the_other_fronts_name_no_server_either() {
    let server = Memcached::start();
    let (host, port) = server.name.rsplit_once(':').expect("a port");
    for words in [
        format!("mutilate -s {} -t 1 -c 2 -r 20 --anonymous", server.name),
        format!("memaslap -s {} -x 500 -c 2 -T 1 --anonymous", server.name),
        format!("mcperf -s {host} -p {port} -n 2 -N 5 --anonymous"),
    ] {
        let ended = pummel(&words).expect(0);
        let text = ended.file("result.json");
        assert!(!text.contains("127.0.0.1") && text.contains("server-1"), "{words}: {text}");
        let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(result.get("argv").is_none() && result["machine"][0]["host"].is_null(), "{words}");
    }
}

#[test]
fn anonymous_series_name_no_server_in_what_they_say_either() {
    let server = Memcached::start();
    // The second server refuses connections, and the reason of the end has its address.
    let servers = format!("{},127.0.0.1:1", server.name);
    for sweep in ["scan --rates 100:100:100", "search --goal p99:1s"] {
        let ended = pummel(&format!("{sweep} -s {servers} -n 10 -c 2 --records 10 --anonymous")).expect(1);
        let result = ended.json();
        let (reason, text) = (result.text("reason"), result.0.to_string());
        assert!(reason.contains("server-2") || reason.contains("address"), "{sweep}: {reason}");
        assert!(!text.contains("127.0.0.1") && !ended.text.contains("127.0.0.1"), "{sweep}: {text}");
    }
}

#[test]
fn an_anonymous_result_names_no_machine_and_no_server() {
    let server = Memcached::start();
    let agents = Agent::many(2);
    for more in [String::new(), format!("--agents {}", list(&agents))] {
        let words = format!("run -s {} -n 500 -c 4 --records 10 --anonymous -v {more}", server.name);
        let result = pummel(&words).expect(0).json().0;
        let text = result.to_string();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("it is there");
        for name in [server.name.as_str(), "127.0.0.1", &format!("\"{}\"", host.trim())] {
            assert!(!text.contains(name), "{name} in {text}");
        }
        assert_eq!(result["plan"]["servers"][0], "server-1");
        assert!(result.get("argv").is_none() && result["machine"][0]["host"].is_null(), "{text}");
        assert!(result["machine"][0]["kernel"].is_string(), "{text}");
        let machines = result["machine"].as_array().map_or(0, Vec::len);
        assert_eq!(machines, if more.is_empty() { 1 } else { 2 });
    }
}

#[test]
fn a_probe_tells_a_server_with_one_queue_from_one_that_has_time() {
    for (words, row) in [("--queue 1", "server-occupied"), ("", "in-flight")] {
        let server = Serve::start(&format!("--service-time 5ms --wait auto {words}"));
        in_some_quiet_moment(|| {
            let words = format!("run -s {} --no-load --records 100 -c 10 -t 1s --probe -v", server.name);
            let ended = pummel(&words).expect(0);
            let report = in_one_line(&ended.text);
            assert!(report.contains("Probe one request at a time "), "{report}");
            let result = seen(ended);
            let half = |name: &str| {
                (
                    result.count(&format!("evidence/probe/{name}/in_flight")),
                    result.number(&format!("evidence/probe/{name}/service_p50_us")),
                )
            };
            let ((one, alone_us), (ten, _)) = (half("one"), half("ten"));
            assert_eq!((one, ten), (1, 10));
            assert!(alone_us >= 5_000.0, "the server holds each request for so long");
            (result.text("verdict/row") == row).then_some(()).ok_or_else(|| result.at("verdict").to_string())
        });
    }
    let refused = |words: &str| pummel(&format!("run -s 127.0.0.1:1 -t 1s --probe {words}")).expect(2).errors;
    assert!(refused("--no-evidence").contains("--no-evidence"));
    assert!(refused("-s 127.0.0.1:2").contains("expected one server"));
    assert!(refused("--agents 127.0.0.1:3").contains("expected no agents"));
}

#[test]
fn round_trips_are_made_one_at_a_time_before_a_run_and_are_in_none_of_its_counts() {
    let held = Serve::start("--service-time 2ms --wait auto");
    let (cached, redis) = (Memcached::start(), Redis::start(&[]));
    let reading = |name: &str, protocol: &str, records: u64| {
        let words = format!(
            "run -s {name} --protocol {protocol} --records {records} --mix get:9,set:1 -c 4 -T 2 -n 400 -v"
        );
        let ended = pummel(&words).expect(0);
        let text = in_one_line(&ended.text);
        assert!(text.contains("Baseline an empty round trip takes "), "{text}");
        assert!(text.contains("; a read of the run alone "), "{text}");
        let result = ended.json();
        let of_run = result.count("whole_run/ops/get/requests") + result.count("whole_run/ops/set/requests");
        assert_eq!(of_run, 400 + records, "the load and the run, and nothing else");
        result
    };
    for protocol in ["text", "meta", "binary"] {
        let before = cached.connect().stats().get("cmd_get");
        let result = reading(&cached.name, protocol, 100);
        let gets = cached.connect().stats().get("cmd_get") - before;
        let alone = result.count("baseline/own/requests");
        assert_eq!(gets, result.count("whole_run/ops/get/requests") + alone, "{protocol}");
        assert!((1..=200).contains(&alone), "two threads made them: {alone}");
    }
    for protocol in ["resp2", "resp3"] {
        assert!(reading(&redis.name(), protocol, 100).count("baseline/empty/requests") > 10, "{protocol}");
    }
    let slow = reading(&held.name, "text", 10);
    for kind in ["empty", "own"] {
        let p50_us = slow.number(&format!("baseline/{kind}/times_us/p50"));
        assert!(p50_us >= 2_000.0, "the server holds each reply for so long: {p50_us} us");
    }
    let without = format!("run -s {} -n 100 --records 10 --no-baseline -v", cached.name);
    assert!(pummel(&without).expect(0).json().0.get("baseline").is_none());
}

/// The report in one line and the result of a run that loads nothing and reads keys of 21 bytes with the prefix `z:`.
#[track_caller]
fn unloaded(server: &str, words: &str) -> (String, Json) {
    let words = format!("run -s {server} --no-load -n 2000 -c 2 --records 100 {words} -v");
    read_until(&words, "server/reading/our_requests")
}

#[test]
fn keys_that_were_never_stored_are_said_to_be_that_with_those_that_are_there() {
    const OTHER_KEYS: &str = "--mix get:1 --key-prefix z: --key-size 21";
    let (one, other, redis) = (Memcached::start(), Memcached::start(), Redis::start(&[]));
    for (server, protocol) in
        [(one.name.clone(), "text"), (other.name.clone(), "meta"), (redis.name(), "resp2")]
    {
        let words = format!("--protocol {protocol} {OTHER_KEYS}");
        let never = "keys were not in the server when the run began (keys 21 bytes, prefix 'z:')";
        let (report, result) = unloaded(&server, &words);
        assert!(report.contains(&format!("2,000 of 2,000 {never}")), "{report}");
        assert!(!report.contains("usual settings") && !report.contains("evicted"), "{report}");
        assert_eq!(result.at("server/reading/usual_record").as_bool(), Some(false), "{protocol}");
        let loads = format!("load -s {server} --protocol {protocol} --records 100 -v");
        pummel(&loads).expect(0);
        let (report, result) = unloaded(&server, &words);
        let held = "it holds a record with the key of the usual settings (keys 30 bytes, no prefix)";
        assert!(report.contains(&format!("2,000 of 2,000 {never}; {held}")), "{report}");
        assert_eq!(result.at("server/reading/usual_record").as_bool(), Some(true), "{protocol}");
        // The look is no request of the measured phase.
        assert_eq!(result.count("server/reading/counts/requests"), 2_000, "{protocol}");
        // A run of the usual keys does not ask for them.
        let (report, result) = unloaded(&server, &format!("--protocol {protocol} --mix get:1"));
        assert!(!report.contains("Misses"), "{report}");
        assert!(result.at("server/reading/usual_record").is_null(), "{protocol}");
        // What the run itself deletes may have been there.
        let (report, _) = unloaded(&server, &format!("--protocol {protocol} --mix get:1,delete:1"));
        assert!(!report.contains("when the run began"), "{report}");
    }
}

#[test]
fn memory_of_a_server_is_told_by_what_takes_it() {
    let (memcached, redis) = (Memcached::start(), Redis::start(&[]));
    for (server, protocol, used) in
        [(memcached.name.clone(), "text", "of items"), (redis.name(), "resp2", "allocated")]
    {
        let words = format!(
            "run -s {server} --protocol {protocol} -t 600ms -c 2 --records 500 --rate 500 -v --server-stats=200ms"
        );
        let (report, result) = read_until(&words, "server/resident_bytes");
        assert!(
            report.contains("resident in its process") && report.contains(&format!("B {used}, ")),
            "{report}"
        );
        assert!(!report.contains("of memory at most"), "{report}");
        let (used, resident) =
            (result.count("server/reading/memory_bytes"), result.count("server/resident_bytes"));
        assert!(resident > used && resident < 1 << 30, "{used} of {resident}");
        let by_itself = result.at("server/reading/resident_bytes").as_u64();
        assert_eq!(by_itself.is_some(), protocol == "resp2", "{by_itself:?}");
    }
}

#[test]
fn a_background_save_is_placed_in_time_and_makes_the_run_unsteady() {
    // 100 records, each of which delays the save by 20 ms.
    let folder = TempDir::new().expect("a temporary folder");
    let dir = folder.path().to_str().expect("UTF-8");
    let redis = Redis::start(&["--rdb-key-save-delay", "20000", "--dir", dir]);
    let words =
        format!("run -s {} --protocol resp2 -t 5s -c 2 --rate 500 --records 100 --mix get:1", redis.name());
    in_some_quiet_moment(|| {
        let calm = seen(pummel(&words).expect(0));
        if calm.at("server/reading").is_null() || !calm.at("server/reading/saves").is_null() {
            return Err(calm.at("server").to_string());
        }
        let mut run = Running::start(&words);
        run.wait_for_progress();
        let answer = redis.say("BGSAVE");
        assert!(answer.contains("started"), "{answer}");
        let ended = run.end().expect(0);
        let report = in_one_line(&ended.text);
        let result = seen(ended);
        let save = result.at("server/reading/saves")[0].clone();
        let place = |name: &str| save[name].as_f64().unwrap_or(-1.0);
        let (from, to) = (place("from_s"), place("to_s"));
        // Servers tell whole seconds.
        let is_placed = (0.0..=2.6).contains(&from) && (2.0..=4.6).contains(&to);
        let is_said = report.contains("saved in the background from about");
        let is_unsteady = result.at("steady").as_bool() == Some(false) && report.contains(" Unsteady ");
        (is_placed && is_said && is_unsteady).then_some(()).ok_or(format!("{save} {report}"))
    });
}
