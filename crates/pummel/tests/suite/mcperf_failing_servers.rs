//! `pummel mcperf` where the original went wrong: servers that refuse, reset, stall and babble, and systems without
//! ports, descriptors or a way. Every connection is counted once, and every run ends by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::mcperf::{kinds, line, mcperf, number, port_of};
use crate::common::{Ended, Memcached, Nobody, Place, Running, in_some_quiet_moment, quiet};
use rustix::net::sockopt::set_socket_linger;
use tempfile::TempDir;

/// Bytes of the default request, `set mcp:00000001 0 0 1 \r\n0\r\n`.
const SET_BYTES: usize = 28;

/// Takes this many connections, and does this with each, on a thread of its own.
fn server<T: Send + 'static>(
    connections: usize,
    serve: impl Fn(usize, TcpStream) -> T + Send + Sync + 'static,
) -> (String, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port().to_string();
    let accept = move || {
        thread::scope(|scope| {
            let serve = &serve;
            let taken: Vec<_> = (0..connections)
                .map(|number| {
                    let (stream, _) = listener.accept().expect("it comes");
                    stream.set_nodelay(true).expect("it is TCP");
                    scope.spawn(move || serve(number, stream))
                })
                .collect();
            taken.into_iter().map(|one| one.join().expect("it serves to its end")).collect()
        })
    };
    (port, thread::spawn(accept))
}

/// Reads one default request.
fn take_request(stream: &mut TcpStream) {
    stream.read_exact(&mut [0; SET_BYTES]).expect("a request");
}

fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is TCP");
}

/// Number of connections to this port of 127.0.0.1 that the kernel knows, whichever process made them.
fn connections_to(port: &str) -> usize {
    let server = format!(" 0100007F:{:04X} 01 ", port.parse::<u16>().expect("a port"));
    let table = fs::read_to_string("/proc/net/tcp").expect("this is Linux");
    table.lines().filter(|line| line.contains(&server)).count()
}

/// All eight counters of failures that are not 0, with the total.
fn failures(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("Errors: "));
    let words: Vec<&str> = lines.flat_map(|line| line.split(' ')).collect();
    assert_eq!(words.len(), 18, "{text}");
    let pairs = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().expect("a count")));
    pairs.filter(|(_, count)| *count > 0).collect()
}

/// Asserts that so many connections failed, all of them for this reason.
#[track_caller]
fn assert_failed(text: &str, reason: &str, count: u64) {
    let expected: BTreeMap<String, u64> =
        [("total".to_owned(), count), (reason.to_owned(), count)].into_iter().collect();
    assert_eq!(failures(text), expected, "{text}");
    for word in ["nan", "inf "] {
        assert!(!text.contains(word), "{text}");
    }
}

/// Runs a script in a network, and with a file of hosts, of its own, where the system allows that; `None` where not.
/// `$PUMMEL` is the binary, `mcperf` the front with its log switched off, and `serve` starts a server on 127.0.0.1:11311.
fn apart(script: &str) -> Option<Ends> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--mount", "sh", "-c"]).stdin(Stdio::null());
        command
    };
    let probe = unshare().arg("ip link set lo up").output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("left out: a network of its own cannot be made here: {}", why.trim());
            return None;
        }
        Err(error) => {
            eprintln!("left out: unshare cannot be run here: {error}");
            return None;
        }
    }
    let folder = TempDir::new().expect("a temporary folder");
    let whole = format!(
        "set -e
        ip link set lo up
        mcperf() {{ \"$PUMMEL\" mcperf -s 127.0.0.1 -p 11311 -v 0 \"$@\"; }}
        serve() {{
            \"$PUMMEL\" serve --listen 127.0.0.1:11311 --max-seconds 50 >listens &
            SERVER=$!
            trap 'kill $SERVER' EXIT
            until grep -q listening listens; do sleep 0.01; done
        }}
        {script}"
    );
    let begun = Instant::now();
    let output = unshare()
        .arg(whole)
        .env("PUMMEL", env!("CARGO_BIN_EXE_pummel"))
        .current_dir(folder.path())
        .output()
        .expect("it was run before");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    Some(Ends { errors, took: begun.elapsed() })
}

/// The end of a script.
struct Ends {
    errors: String,
    took: Duration,
}

#[test]
fn resets_are_counted_as_resets_before_and_after_a_request() {
    let (port, serving) = server(5, |_, mut stream| {
        take_request(&mut stream);
        reset(stream);
    });
    let ended = mcperf(&port, "-n 5 -N 3 -t 20");
    assert_failed(&ended.errors, "connreset", 5);
    assert!(line(&ended.errors, "Total:").starts_with("Total: connections 5 requests 5 responses 0 "));
    serving.join().unwrap();
    // Where nothing was asked yet: the second call of each connection is a day ahead.
    let (port, serving) = server(5, |_, mut stream| {
        take_request(&mut stream);
        stream.write_all(b"STORED\r\n").unwrap();
        reset(stream);
    });
    let ended = mcperf(&port, "-n 5 -N 3 -R d86400");
    assert_failed(&ended.errors, "connreset", 5);
    assert!(number(&ended.errors, "Total:", "responses") <= 5.0);
    serving.join().unwrap();
}

#[test]
fn an_orderly_close_is_counted_as_other_while_a_response_is_due_and_between_calls() {
    let (port, serving) = server(4, |_, mut stream| take_request(&mut stream));
    let ended = mcperf(&port, "-n 4 -N 3 -t 20");
    assert_failed(&ended.errors, "other", 4);
    serving.join().unwrap();
    let (port, serving) = server(4, |_, mut stream| {
        take_request(&mut stream);
        stream.write_all(b"STORED\r\n").unwrap();
    });
    let ended = mcperf(&port, "-n 4 -N 3 -R d86400");
    assert_failed(&ended.errors, "other", 4);
    assert_eq!(kinds(&ended.errors), [("stored".to_owned(), 4)]);
    serving.join().unwrap();
}

#[test]
fn a_server_that_is_killed_costs_each_open_connection_once() {
    let server = Memcached::start();
    let port = port_of(&server);
    let running =
        Running::start(&format!("mcperf -s 127.0.0.1 -p {port} -v 0 -n 2 -r 1000 -N 100000000 -t 20"));
    let mut talk = server.connect();
    crate::common::until("calls", || (talk.stats().get("cmd_set") > 1_000).then_some(()));
    drop(talk);
    drop(server);
    let ended = running.end().expect(0);
    let failed = failures(&ended.errors);
    assert_eq!(failed["total"], 2, "{}", ended.errors);
    let kinds = ["connreset", "other"].map(|kind| failed.get(kind).copied().unwrap_or(0));
    assert_eq!(kinds[0] + kinds[1], 2, "by a reset or in order, as the kernel closes: {}", ended.errors);
    assert!(number(&ended.errors, "Total:", "responses") > 1_000.0);
}

#[test]
fn the_calls_of_a_dead_connection_die_with_it() {
    // Every other connection is reset at its first request; the others answer all of theirs.
    let (port, serving) = server(10, |number, mut stream| {
        let mut requests = 0;
        let mut request = [0; SET_BYTES];
        while stream.read_exact(&mut request).is_ok() {
            requests += 1;
            if number % 2 == 0 {
                reset(stream);
                break;
            }
            stream.write_all(b"STORED\r\n").unwrap();
        }
        requests
    });
    let ended = mcperf(&port, "-n 10 -r 50 -N 8 -R 100 -t 20");
    assert_failed(&ended.errors, "connreset", 5);
    let requests = serving.join().unwrap();
    let expected: Vec<u64> = (0..10).map(|number| if number % 2 == 0 { 1 } else { 8 }).collect();
    assert_eq!(requests, expected);
    assert_eq!(number(&ended.errors, "Total:", "responses"), 40.0);
}

#[test]
fn a_socket_that_cannot_even_be_begun_ends_no_run() {
    for rate in ["-r 0", "-r 100"] {
        let words = format!("mcperf -s /nowhere/socket -v 0 -n 5 -N 3 {rate}");
        let ended = Running::start(&words).end().expect(0);
        assert_failed(&ended.errors, "other", 5);
    }
}

#[test]
fn unix_sockets_work_with_the_options_of_tcp_and_count_a_server_that_closes() {
    let memcached = Memcached::start_on(Place::Unix);
    let words = format!("mcperf -s {} -v 0 -n 3 -N 10 -l 0", memcached.name);
    let ended = Running::start(&words).end().expect(0);
    assert_eq!(kinds(&ended.errors), [("stored".to_owned(), 30)]);
    assert_eq!(number(&ended.errors, "Errors:", "total"), 0.0);

    // Nothing is read from these, so that what is sent meets a closed socket: EPIPE, and no signal that kills.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("closing");
    let listener = UnixListener::bind(&path).unwrap();
    let closing = thread::spawn(move || (0..3).for_each(|_| drop(listener.accept().unwrap())));
    let words = format!("mcperf -s {} -v 0 -n 3 -N 100000 -q -t 20", path.display());
    let ended = Running::start(&words).end().expect(0);
    closing.join().unwrap();
    let failed = failures(&ended.errors);
    assert_eq!(failed["total"], 3, "{}", ended.errors);
    let kinds = ["connreset", "other"].map(|kind| failed.get(kind).copied().unwrap_or(0));
    assert_eq!(kinds[0] + kinds[1], 3, "closed or, once something was sent, reset: {}", ended.errors);
}

#[test]
fn what_the_protocol_does_not_allow_ends_the_connection_and_nothing_hangs() {
    let endless: &'static str = Box::leak("S".repeat(20_000).into_boxed_str());
    for (method, reply) in [
        ("set", "STOREDX\r\n"),
        ("set", "stored\r\n"),
        ("set", "TOUCHED\r\n"),
        ("set", "\r\n"),
        ("set", "17\r\n"),
        ("set", "VALUE mcp:00000001 0 1\r\n0\r\nEND\r\n"),
        ("get", "VALUE mcp:00000001 0\r\n"),
        ("get", "VALUE mcp:00000001 0 x\r\n"),
        ("get", "VALUE mcp:00000001 0 1\r\n000\r\nEND\r\n"),
        ("get", "VALUE mcp:00000001 0 1\r\n0\r\nSTORED\r\n"),
        ("get", "STORED\r\n"),
        ("incr", "12x\r\n"),
        ("incr", "STORED\r\n"),
        ("delete", "NOT_STORED\r\n"),
        ("set", endless),
    ] {
        let (port, serving) = server(2, move |_, mut stream| {
            let mut chunk = [0; 100];
            if matches!(stream.read(&mut chunk), Ok(count) if count > 0) {
                let _ = stream.write_all(reply.as_bytes());
            }
            while matches!(stream.read(&mut chunk), Ok(count) if count > 0) {}
        });
        let ended = mcperf(&port, &format!("-m {method} -n 2 -N 2 -t 20"));
        let shown = &reply[..reply.len().min(60)];
        assert_eq!(failures(&ended.errors).get("other"), Some(&2), "{shown:?}: {}", ended.errors);
        assert_eq!(number(&ended.errors, "Errors:", "total"), 2.0, "{shown:?}");
        assert!(number(&ended.errors, "Total:", "test-duration") < 20.0, "{shown:?}");
        serving.join().unwrap();
    }
}

#[test]
fn an_unknown_word_is_answered_by_errors_and_the_second_ends_the_connection() {
    let memcached = Memcached::start();
    let ended = mcperf(port_of(&memcached), "-m xxx -n 10 -N 100");
    assert_failed(&ended.errors, "other", 10);
    assert!(line(&ended.errors, "Total:").starts_with("Total: connections 10 requests 10 responses "));
    assert_eq!(number(&ended.errors, "Request size", "avg"), 28.0);
    let (port, serving) = server(1, |_, mut stream| {
        let mut request = [0; SET_BYTES];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"ERROR\r\n").unwrap();
        request
    });
    let ended = mcperf(&port, "-m xxx");
    assert_eq!(&serving.join().unwrap()[0], b"xxx mcp:00000001 0 0 1 \r\n0\r\n");
    assert_eq!(kinds(&ended.errors), [("error".to_owned(), 1)]);
}

#[test]
fn an_unknown_word_has_its_name_in_every_result() {
    let memcached = Memcached::start();
    let ended = mcperf(port_of(&memcached), "-m xxx -v 7 -o log --csv c --samples s");
    for (name, part) in [("log", "] call 1 on connection 1: xxx "), ("c", ",xxx,"), ("s", ",xxx,")] {
        let file = ended.file(name);
        assert!(file.contains(part) && !file.contains(&part.replace("xxx", "set")), "{file}");
    }
    let result = ended.json();
    assert_eq!(result.count("ops/xxx/requests") + result.count("whole_run/ops/xxx/requests"), 2);
}

#[test]
fn response_times_are_those_of_responses_in_milliseconds_with_true_percentiles() {
    let _alone = quiet();
    in_some_quiet_moment(|| {
        // 70 of 100 replies are held for 20 ms, the others for 60 ms: the 75th is one of the others.
        let (port, serving) = server(10, |_, mut stream| {
            for call in 0..10 {
                take_request(&mut stream);
                let held_ms = if call < 7 { 20 } else { 60 };
                thread::sleep(Duration::from_millis(held_ms));
                stream.write_all(b"STORED\r\n").unwrap();
            }
        });
        let ended = mcperf(&port, "-n 10 -N 10 -r 1000 -H");
        serving.join().unwrap();
        let text = &ended.errors;
        let at = |start: &str, word: &str| number(text, start, word);
        assert!(at("Response time [ms]: avg", "min") >= 20.0, "{text}");
        assert!(at("Response time [ms]: p25", "p75") >= 60.0, "{text}");
        // Of these delays 18.4; in seconds it would be 0.02.
        assert!(at("Response time [ms]: avg", "stddev") >= 5.0, "{text}");
        let histogram = text.lines().skip_while(|line| *line != "Response time histogram [ms]:").skip(1);
        let bins = histogram.take_while(|line| line.starts_with(' ')).filter_map(|line| {
            let (bin, count) = line.trim().split_once(' ')?;
            Some((bin.parse::<f64>().unwrap(), count.parse::<u64>().unwrap()))
        });
        let bins: Vec<(f64, u64)> = bins.collect();
        assert_eq!(bins.iter().map(|(_, count)| count).sum::<u64>(), 100, "{text}");
        assert!(bins.iter().all(|(bin, _)| *bin >= 20.0), "{text}");
        // A busy machine may add 40 ms to half of the replies.
        let p50_ms = at("Response time [ms]: p25", "p50");
        if (20.0..60.0).contains(&p50_ms) { Ok(()) } else { Err(format!("p50 is {p50_ms} ms: {text}")) }
    });
}

#[test]
fn a_connection_that_ends_without_a_response_adds_no_response_time() {
    in_some_quiet_moment(|| {
        let (port, serving) = server(1, |_, mut stream| {
            take_request(&mut stream);
            stream.write_all(b"STORED\r\n").unwrap();
            take_request(&mut stream);
            thread::sleep(Duration::from_millis(600));
        });
        let ended = mcperf(&port, "-N 2");
        serving.join().unwrap();
        let text = &ended.errors;
        assert!(line(text, "Total:").starts_with("Total: connections 1 requests 2 responses 1 "), "{text}");
        let time = |word: &str| number(text, "Response time [ms]: avg", word);
        assert!(time("avg") == time("max"), "{text}");
        assert!(number(text, "Connection time", "avg") >= 600.0, "{text}");
        // The sample of the end would be above 600 ms, as that of the reply may be on a busy machine.
        let max_ms = time("max");
        if max_ms < 600.0 { Ok(()) } else { Err(format!("the longest is {max_ms} ms: {text}")) }
    });
}

#[test]
fn closing_blocks_nobody_and_waiting_costs_no_cpu() {
    let _alone = quiet();
    let memcached = Memcached::start();
    let ended = mcperf(port_of(&memcached), "-N 20 -R 10");
    let busy =
        ended.errors.lines().find_map(|line| line.strip_suffix("%)")?.rsplit(' ').next()?.parse().ok());
    let busy: f64 = busy.unwrap_or_else(|| panic!("{}", ended.errors));
    assert!(busy < 50.0, "{busy} % for ten calls a second");
    memcached.process.stop();
    // What cannot be sent keeps each close waiting for its linger time, where it blocks: five times 20 s.
    let begun = Instant::now();
    let ended = mcperf(port_of(&memcached), "-l 20 -n 5 -z 8000000 -t 0.2");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_failed(&ended.errors, "client-timo", 5);
    memcached.process.go_on();
}

#[test]
fn connections_come_from_the_source_addresses_in_turn() {
    let (port, serving) = server(6, |_, mut stream| {
        take_request(&mut stream);
        stream.write_all(b"STORED\r\n").unwrap();
        stream.peer_addr().unwrap().ip()
    });
    let ended = mcperf(&port, "-n 6 --source=127.0.0.2,127.0.0.3,127.0.0.4");
    assert_eq!(number(&ended.errors, "Total:", "responses"), 6.0, "{}", ended.errors);
    let ips = serving.join().unwrap();
    let expected: Vec<IpAddr> = [2, 3, 4, 2, 3, 4].into_iter().map(|last| [127, 0, 0, last].into()).collect();
    assert_eq!(ips, expected);
    // An address for documentation (RFC 5737), which no machine has.
    let ended = mcperf(&port, "-n 3 --source=192.0.2.1");
    assert_failed(&ended.errors, "addrunavail", 3);
}

#[test]
fn ports_that_run_out_are_counted_and_those_who_have_one_go_on() {
    let ports = "echo 40000 40004 >/proc/sys/net/ipv4/ip_local_port_range; serve;";
    // All at one time; and one after the other, where those who close in order keep their ports for a minute. How many
    // of five ports the kernel gives away is its affair.
    for (rates, calls) in [("-r 100 -R 10", 5), ("-r 0", 2)] {
        let words = format!("-n 10 -N {calls} {rates}");
        let Some(ended) = apart(&format!("{ports} mcperf {words}")) else { return };
        let without = failures(&ended.errors)["addrunavail"];
        assert_failed(&ended.errors, "addrunavail", without);
        assert!((1..10).contains(&without), "{}", ended.errors);
        let made = (10 - without) * calls;
        let total = format!("Total: connections 10 requests {made} responses {made} ");
        assert!(line(&ended.errors, "Total:").starts_with(&total), "{}", ended.errors);
    }
    let ended = apart(&format!("{ports} \"$PUMMEL\" mcperf -s 127.0.0.1 -p 11311 -n 10 -N 2")).unwrap();
    assert!(ended.errors.contains("--linger=0 gives them back at once"), "{}", ended.errors);
    for remedy in ["-l 0", "--source=127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5"] {
        let ended = apart(&format!("{ports} mcperf -n 10 -N 2 {remedy}")).unwrap();
        assert_eq!(failures(&ended.errors), BTreeMap::new(), "{remedy}: {}", ended.errors);
        assert!(line(&ended.errors, "Total:").contains(" responses 20 "), "{remedy}");
    }
}

#[test]
fn hosts_that_answer_nothing_are_given_up_by_the_kernel_or_by_the_timeout() {
    let _alone = quiet();
    // Packets to this address come in again on loopback, and no socket receives them there.
    let silence = "ip addr add 10.9.9.1/32 dev lo; ip route add 10.9.9.2/32 dev lo
        echo 1 >/proc/sys/net/ipv4/tcp_syn_retries;";
    let words = "\"$PUMMEL\" mcperf -s 10.9.9.2 -v 0 -n 3 -r 100 -N 5";
    let Some(ended) = apart(&format!("{silence} {words}")) else { return };
    assert_failed(&ended.errors, "socket-timo", 3);
    let total = line(&ended.errors, "Total:");
    assert!(total.starts_with("Total: connections 3 requests 0 responses 0 "), "{total}");
    assert!(ended.took < Duration::from_secs(30));
    let ended = apart(&format!("{silence} {words} -t 0.2")).unwrap();
    assert_failed(&ended.errors, "client-timo", 3);
    let took = number(&ended.errors, "Total:", "test-duration");
    assert!((0.22..3.0).contains(&took), "{took}");
    assert!(ended.errors.contains("<= 0 concurrent connections"), "{}", ended.errors);
}

#[test]
fn further_addresses_of_a_name_are_tried_and_names_may_be_long() {
    // Leading zeros make a number of base 8: 127.0.0.1, in more than the original's 44 characters.
    let long = format!("{}177.0.0.1", "0".repeat(60));
    let memcached = Memcached::start();
    let words = format!("mcperf -s {long} -p {} -v 0", port_of(&memcached));
    let ended = Running::start(&words).end().expect(0);
    assert_eq!(kinds(&ended.errors), [("stored".to_owned(), 1)], "{}", ended.errors);
    let script = "
        printf '127.0.0.2 cache1\\n127.0.0.3 cache1\\n127.0.0.1 cache1\\n' >hosts
        mount --bind hosts /etc/hosts
        serve
        \"$PUMMEL\" mcperf -s cache1 -p 11311 -v 0 -n 5 -N 2
        \"$PUMMEL\" mcperf -s cache1 -p 11312 -v 0 -n 5 -N 2";
    let Some(ended) = apart(script) else { return };
    let (there, nowhere) = ended.errors.split_once("\n\n\n").expect("two reports");
    assert_eq!(failures(there), BTreeMap::new(), "{there}");
    assert!(line(there, "Total:").starts_with("Total: connections 5 requests 10 responses 10 "), "{there}");
    assert_failed(nowhere, "connrefused", 5);
    assert!(line(nowhere, "Total:").starts_with("Total: connections 5 requests 0 "), "{nowhere}");
}

/// A program of perl that lets no stream socket come to be (ENFILE) in itself and in what it becomes: a filter of
/// system calls on x86-64, whose instructions load the call's number and its second argument, the kind of socket.
const TABLE_FULL: &str = r#"
    my @filter = ([0x20, 0, 0, 0], [0x15, 0, 4, 41], [0x20, 0, 0, 24], [0x54, 0, 0, 15], [0x15, 0, 1, 1],
        [0x06, 0, 0, 0x00050017], [0x06, 0, 0, 0x7fff0000]);
    my $code = join '', map { pack 'SCCL', @$_ } @filter;
    my $program = pack 'Sx6P', scalar @filter, $code;
    syscall(157, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall(157, 22, 2, $program) == 0 or die "seccomp: $!";
    exec @ARGV;
"#;

#[test]
fn a_host_that_is_unknown_is_said_at_every_level_and_beside_a_log() {
    for words in ["-v 0", "", "-v 11", "-v 0 -o log", "-o log"] {
        let ended = Running::start(&format!("mcperf -s no-such-host.invalid -n 1 {words}")).end().expect(1);
        assert_eq!(ended.errors.matches("no-such-host.invalid").count(), 1, "{words}: {}", ended.errors);
    }
}

#[test]
fn a_full_table_of_files_is_counted_and_no_connection_was_asked_for() {
    let _alone = quiet();
    if !cfg!(target_arch = "x86_64") {
        eprintln!("left out: the filter of system calls is written for x86-64");
        return;
    }
    for rate in ["-r 0", "-r 200"] {
        let words = format!("mcperf -s 127.0.0.1 -p 1 -v 5 -n 7 -N 3 {rate}");
        let run = Command::new("perl")
            .args(["-e", TABLE_FULL, "--", env!("CARGO_BIN_EXE_pummel")])
            .args(words.split(' '))
            .stdin(Stdio::null())
            .output();
        let Ok(output) = run else {
            eprintln!("left out: there is no perl here");
            return;
        };
        let errors = String::from_utf8(output.stderr).unwrap();
        if errors.starts_with("seccomp: ") {
            eprintln!("left out: system calls cannot be filtered here: {errors}");
            return;
        }
        assert_eq!(output.status.code(), Some(0), "{errors}");
        assert_failed(&errors, "ftab-full", 7);
        assert!(line(&errors, "Total:").starts_with("Total: connections 0 requests 0 "), "{errors}");
        assert!(!errors.contains("Connection rate"), "{errors}");
        assert!(errors.contains("created 0 of 7 connections, 7 failed\n"), "{errors}");
    }
}

#[test]
fn the_log_has_the_end_of_each_connection_with_its_reason() {
    let _alone = quiet();
    let memcached = Memcached::start();
    let port = port_of(&memcached).to_owned();
    let ends = |log: &str| -> Vec<String> {
        let ends = log.lines().filter_map(|line| Some(line.split_once("] connection ")?.1.to_owned()));
        let mut ends: Vec<String> = ends.collect();
        ends.sort();
        ends
    };
    let log = |words: &str| -> String { Running::start(words).end().expect(0).file("log") };
    let done = log(&format!("mcperf -s 127.0.0.1 -p {port} -n 3 -N 4 -r 100 -v 6 -o log"));
    assert_eq!(ends(&done).len(), 3, "{done}");
    for (number, end) in (1..).zip(ends(&done)) {
        assert!(end.starts_with(&format!("{number} from ")), "{end}");
        assert!(end.ends_with(" us, open, 4 of 4 calls: done"), "{end}");
    }
    assert!(!done.contains("] call "), "{done}");
    memcached.process.stop();
    let late = log(&format!("mcperf -s 127.0.0.1 -p {port} -n 2 -N 4 -t 0.2 -v 6 -o log"));
    assert_eq!(ends(&late).len(), 2, "{late}");
    for end in ends(&late) {
        let reason = "open, 1 of 4 calls: timed out: a request took longer than the timeout";
        assert!(end.ends_with(reason), "{end}");
    }
    memcached.process.go_on();
    let calls = log(&format!("mcperf -s 127.0.0.1 -p {port} -n 2 -N 4 -v 7 -o log"));
    assert_eq!((ends(&calls).len(), calls.matches("] call ").count()), (2, 8), "{calls}");
    // Another process may be given the port of a server that has ended.
    let nobody = Nobody::new();
    let port = nobody.address.port();
    let refused = log(&format!("mcperf -s 127.0.0.1 -p {port} -n 2 -N 4 -r 100 -v 6 -o log"));
    assert_eq!(ends(&refused).len(), 2, "{refused}");
    for end in ends(&refused) {
        assert!(end.contains(" us, never open, 0 of 4 calls: refused: Connection refused"), "{end}");
    }
}

#[test]
fn a_flood_without_replies_at_a_stopped_server_ends_by_the_timeout() {
    let _alone = quiet();
    let memcached = Memcached::start();
    memcached.process.stop();
    let ended = mcperf(port_of(&memcached), "-q -n 2 -N 100000000 -z d1000 -t 0.3");
    assert_failed(&ended.errors, "client-timo", 2);
    assert!(number(&ended.errors, "Total:", "requests") > 10.0, "{}", ended.errors);
    memcached.process.go_on();
}

#[test]
fn connections_that_come_one_after_the_other_give_a_silent_server_up() {
    let memcached = Memcached::start();
    memcached.process.stop();
    let begun = Instant::now();
    let ended = mcperf(port_of(&memcached), "-n 10000 -r 0 -t 0.2");
    memcached.process.go_on();
    assert!(begun.elapsed() > Duration::from_secs(9), "{:?}", begun.elapsed());
    let made = number(&ended.errors, "Total:", "connections");
    assert!((10.0..=60.0).contains(&made), "{}", ended.errors);
    assert_failed(&ended.errors, "client-timo", made as u64);
}

#[test]
fn an_interrupted_flood_ends_at_once_with_its_report() {
    let _alone = quiet();
    let memcached = Memcached::start();
    memcached.process.stop();
    for words in ["-q -n 2 -N 100000000", "-n 5 -r 100 -N 10", "-n 100 -N 10 -R 1000 -r 1000"] {
        let running = Running::start(&format!("mcperf -s 127.0.0.1 -p {} -v 0 {words}", port_of(&memcached)));
        crate::common::until("a connection", || (connections_to(port_of(&memcached)) > 0).then_some(()));
        let begun = Instant::now();
        running.process.interrupt();
        let ended: Ended = running.end().expect(130);
        assert!(begun.elapsed() < Duration::from_secs(10), "{words}");
        assert!(line(&ended.errors, "Total:").starts_with("Total: connections "), "{words}");
        assert_eq!(number(&ended.errors, "Errors:", "client-timo"), 0.0, "{words}: {}", ended.errors);
    }
    memcached.process.go_on();
}
