//! The real binary over UDP: against a real memcached, against the built-in server in both framings, and through a relay
//! that loses and holds back datagrams.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::{
    Json, Memcached, PATIENCE, Place, Reserved, Serve, datagrams_alone, in_some_quiet_moment, pummel, quiet,
};

/// Names of all operations.
const EVERY_OP: &str = "get:4,gets:1,gat:1,gats:1,set:2,add:1,replace:1,append:1,prepend:1,cas:1,incr:1,decr:1,\
     delete:2,touch:1,version:1";

#[track_caller]
fn assert_accounted(result: &Json) {
    let of = |name: &str| result.count(&format!("totals/{name}"));
    assert_eq!(of("requests"), of("completed") + of("errors") + of("unfinished") + of("unsent"));
}

#[test]
fn the_whole_run_over_udp_is_what_memcached_counted() {
    let server = Memcached::start_on(Place::Udp);
    let mut second = server.connect();
    let name = &server.name;
    // Values that grow are left out where many are asked for at once: such replies overflow the buffers of sockets.
    let no_pieces = EVERY_OP.replace(",append:1,prepend:1", "");
    for (depth, multiget, mix, records) in
        [(1, 1, EVERY_OP, 30_000), (16, 10, no_pieces.as_str(), 20_000), (8, 1, EVERY_OP, 30_000)]
    {
        let before = second.stats();
        let ended = pummel(&format!(
            "run -s {name} --udp --no-baseline -n 20k -c 4 -d {depth} --multiget {multiget} --mix {mix} --verify"
        ))
        .expect(0);
        let after = second.stats();
        let result = ended.json();
        let of = |op: &str, what: &str| result.count_or_none(&format!("whole_run/ops/{op}/{what}"));
        let sum = |ops: &[&str], what: &str| ops.iter().map(|op| of(op, what)).sum::<u64>();
        let storing = ["set", "add", "replace", "append", "prepend", "cas"];
        for (counter, ours) in [
            ("cmd_get", sum(&["get", "gets"], "keys")),
            ("get_hits", sum(&["get", "gets"], "hits")),
            ("cmd_touch", of("touch", "completed") + sum(&["gat", "gats"], "keys")),
            ("cmd_set", sum(&storing, "completed")),
            ("delete_hits", of("delete", "outcomes/deleted")),
            ("incr_hits", of("incr", "outcomes/number")),
        ] {
            assert_eq!(ours, after.get(counter) - before.get(counter), "{counter}, depth {depth}");
            assert!(ours > 0, "{counter} is compared in vain");
        }
        assert_eq!(result.count("totals/errors"), 0);
        assert_eq!(result.count("verify/failed") + result.count("verify/stale"), 0);
        assert_eq!(result.count("generator/stamps/shared"), 0, "every datagram has a stamp of its own");
        assert_eq!(result.count("udp/udp_timeout") + result.count("udp/packet_disorder"), 0);
        assert_eq!(result.count("load/stored"), records, "loaded over TCP");
    }
}

#[test]
fn a_burst_of_multi_gets_is_answered_whole() {
    let server = Memcached::start_on(Place::Udp);
    let words = format!(
        "run -s {} --udp -n 5k -c 2 -d 16 --multiget 25 --records 1k --mix get:1 --verify --value-size 1000",
        server.name
    );
    let result = pummel(&words).expect(0).json();
    assert_accounted(&result);
    // What memcached cannot hand over to a full socket it drops.
    assert_eq!(result.count("verify/failed"), 0);
    assert_eq!(result.count("totals/errors"), result.count("udp/udp_timeout"));
    assert!(result.count("ops/get/hits") > 100_000);
}

/// Sends datagrams on between clients and a server; some are lost, some wait for the next one.
struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    fate: Arc<Fate>,
    forward: Option<JoinHandle<()>>,
    _reserved: Reserved,
}

/// Fate of datagrams: of 1,000 so many are lost and so many held back.
struct Fate {
    lost: u64,
    held: u64,
    drawn: AtomicU64,
    dropped: AtomicU64,
}

#[derive(PartialEq)]
enum Turn {
    Lost,
    Held,
    Passed,
}

impl Fate {
    fn turn(&self) -> Turn {
        // splitmix64 of a counter: a seed, and one share for all callers.
        let mut bits = self.drawn.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        match (bits ^ (bits >> 31)) % 1_000 {
            draw if draw < self.lost => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                Turn::Lost
            }
            draw if draw < self.lost + self.held => Turn::Held,
            _ => Turn::Passed,
        }
    }

    /// Passes on what comes from `from`, until told to stop.
    fn pass_on(&self, from: &UdpSocket, stop: &AtomicBool, mut to: impl FnMut(&[u8], SocketAddr)) {
        let mut buffer = [0; 65_536];
        let mut held: Option<(Vec<u8>, SocketAddr)> = None;
        from.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket has timeouts");
        while !stop.load(Ordering::Relaxed) {
            let came = from.recv_from(&mut buffer).ok();
            match came.map(|(len, peer)| (self.turn(), len, peer)) {
                Some((Turn::Lost, ..)) => {}
                Some((Turn::Held, len, peer)) if held.is_none() => {
                    held = Some((buffer[..len].to_vec(), peer))
                }
                came => {
                    if let Some((_, len, peer)) = came {
                        to(&buffer[..len], peer);
                    }
                    if let Some((datagram, peer)) = held.take() {
                        to(&datagram, peer);
                    }
                }
            }
        }
    }
}

impl Relay {
    fn to(server: &str, lost: u64, held: u64) -> Relay {
        let (front, reserved) = datagrams_alone();
        let front = Arc::new(front);
        let address = front.local_addr().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let fate = Arc::new(Fate { lost, held, drawn: AtomicU64::new(1), dropped: AtomicU64::new(0) });
        let (server, stopped, chance) = (server.to_owned(), Arc::clone(&stop), Arc::clone(&fate));
        let forward = thread::spawn(move || {
            let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
            thread::scope(|scope| {
                chance.pass_on(&front, &stopped, |datagram, client| {
                    let back = backs.entry(client).or_insert_with(|| {
                        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a free port"));
                        back.connect(&server).expect("an address of loopback");
                        let (from, front) = (Arc::clone(&back), Arc::clone(&front));
                        let (chance, stopped) = (&chance, &stopped);
                        scope.spawn(move || {
                            chance
                                .pass_on(&from, stopped, |datagram, _| drop(front.send_to(datagram, client)));
                        });
                        back
                    });
                    drop(back.send(datagram));
                });
            });
        });
        Relay { address, stop, fate, forward: Some(forward), _reserved: reserved }
    }

    fn dropped(&self) -> u64 {
        self.fate.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(forward) = self.forward.take() {
            forward.join().expect("the relay does not panic");
        }
    }
}

#[test]
fn with_losses_and_disorder_every_request_is_accounted_for_and_none_waits_longer_than_its_timeout() {
    let _alone = quiet();
    let server = Memcached::start_on(Place::Udp);
    let relay = Relay::to(&server.name, 10, 10);
    // Longer by hand: a minute shows more than a few seconds do.
    let seconds = std::env::var("PUMMEL_RELAY_SECONDS").unwrap_or("3".to_owned());
    for options in ["-d 1 --mix get:9,set:1", "-d 16 --mix get:9,set:1", "-d 4 --mix get:1 --multiget 5"] {
        let words = format!(
            "run -s {} --udp -c 8 -t {seconds} --timeout 200ms --records 1k --verify --samples samples {options}",
            relay.address
        );
        in_some_quiet_moment(|| {
            check_losses(&relay, &words).map_err(|complaint| format!("{options}: {complaint}"))
        });
    }
}

/// Complains where nothing was heard at the end, as on a machine that takes the CPU away for so long.
fn heard_to_the_end(result: &Json) -> Result<(), String> {
    let reason =
        result.text_or_none("reason").filter(|reason| reason.contains("did not answer for the last"));
    reason.map_or(Ok(()), |reason| Err(reason.to_owned()))
}

/// Complains of what a busy machine alone can bring about: a relay that holds a datagram for longer than the timeout, and
/// a client that looks late.
fn check_losses(relay: &Relay, words: &str) -> Result<(), String> {
    let before = relay.dropped();
    let ended = pummel(words);
    let result = ended.json();
    heard_to_the_end(&result)?;
    assert_eq!(ended.status, 0, "{}", ended.text);
    assert_eq!(result.count("load/stored"), 1_000, "what got lost is stored by repeating it");
    assert_eq!(result.count("load/errors"), 0);
    assert_accounted(&result);
    let errors = result.count("totals/errors");
    let verb = |verb: &str| result.count_or_none(&format!("ops/{verb}/errors/timeout"));
    assert_eq!(errors, verb("get") + verb("set"), "losses are timeouts");
    assert!(errors > 0 && errors < result.count("totals/completed"), "{errors} errors");
    assert_eq!(result.count("verify/failed"), 0, "no value got another's bytes");
    assert!(result.count("verify/checked") > 1_000);
    assert_eq!(result.count("connections/lost"), 0, "a late request harms no other");
    let (drop, disorder) = (result.count("udp/packet_drop"), result.count("udp/packet_disorder"));
    let timeouts = result.count("udp/udp_timeout");
    assert!(timeouts >= errors && drop >= timeouts, "at least one is missing of each");
    let longest = ended.samples().iter().filter_map(|sample| sample.response_s()).fold(0.0, f64::max);
    let dropped = relay.dropped() - before;
    eprintln!(
        "{words}: {} completed, {errors} timed out, {drop} missing, {disorder} out of order, longest {longest:.3} s",
        result.count("totals/completed")
    );
    if timeouts <= dropped + disorder && longest < 0.2 + 0.3 {
        return Ok(());
    }
    Err(format!("{timeouts} timeouts of {dropped} lost and {disorder} held back; longest {longest} s"))
}

#[test]
fn both_framings_of_the_built_in_server_read_the_same_with_faults_too() {
    for framing in ["stream", "per-key"] {
        for faults in ["", "--fault udp-drop=101 --fault udp-reorder=53 --fault udp-duplicate=47"] {
            in_some_quiet_moment(|| check_framing(framing, faults));
        }
    }
}

/// Complains of silence at the end, which a busy machine alone can bring about.
fn check_framing(framing: &str, faults: &str) -> Result<(), String> {
    let server = Serve::start(&format!("--udp-framing {framing} {faults}"));
    let data = "--records 500 --value-size uniform:0,1300";
    // Over TCP, and with time: the timeout of a run that loses datagrams is short.
    pummel(&format!("load -s {} {data}", server.name)).expect(0);
    // Where nothing is lost, a machine that stands still for a moment loses nothing either.
    let timeout = if faults.is_empty() { "10s" } else { "100ms" };
    let ended = pummel(&format!(
        "run -s {} --udp --no-load -n 4k -c 2 -d 4 --multiget 5 {data} --mix get:3,set:1 --verify --timeout {timeout}",
        server.name
    ));
    let result = ended.json();
    heard_to_the_end(&result)?;
    assert_eq!(ended.status, 0, "{framing} {faults}: {}", ended.text);
    assert_accounted(&result);
    assert_eq!(result.count("verify/failed"), 0, "{framing} {faults}");
    assert!(result.count("verify/checked") > 1_000, "{framing} {faults}");
    if faults.is_empty() {
        assert_eq!(result.count("ops/get/misses") + result.count("totals/errors"), 0, "{framing}");
    } else {
        assert!(result.count("udp/packet_disorder") > 0, "{framing} {faults}");
    }
    Ok(())
}

#[test]
fn agents_that_load_over_datagrams_have_done_their_shares() {
    let server = Memcached::start_on(Place::Udp);
    // Nothing listens on TCP there.
    let relay = Relay::to(&server.name, 0, 0);
    let agents = crate::common::agent::Agent::many(2);
    let words = format!("run --udp -s {} --records 300 -c 100 -n 400", relay.address);
    let run =
        pummel(&format!("{words} --timeout 10s --agents {}", crate::common::agent::list(&agents))).expect(0);
    let json = run.json();
    assert_eq!((json.text("status"), json.count("load/stored")), ("complete", 300));
    assert_eq!(server.connect().stats().get("curr_items"), 300);
}

#[test]
fn a_port_where_nobody_listens_ends_the_run_at_once_and_says_so() {
    // A socket that hears itself alone: its port is closed to others, and no other process can open it meanwhile.
    let (deaf, _reserved) = datagrams_alone();
    let nobody = deaf.local_addr().expect("it is bound");
    deaf.connect(nobody).expect("an address of this machine");
    for options in ["--no-load -t 20", "-t 20"] {
        let begin = Instant::now();
        let ended = pummel(&format!("run -s {nobody} --udp {options} -c 3")).expect(1);
        assert!(begin.elapsed() < PATIENCE, "{options}");
        let reason = ended.json().text("reason").to_owned();
        assert!(reason.contains("nothing listens there"), "{options}: {reason}");
    }
}

#[test]
fn a_server_that_stays_silent_ends_loading_and_never_hangs() {
    let (silent, _reserved) = datagrams_alone();
    let address = silent.local_addr().expect("it is bound");
    let begin = Instant::now();
    let ended = pummel(&format!("run -s {address} --udp -t 1 -c 2 --timeout 100ms")).expect(1);
    assert!(begin.elapsed() < PATIENCE);
    assert!(
        ended.json().text("reason").contains("longer than the timeout"),
        "{}",
        ended.json().text("reason")
    );
    let ended = pummel(&format!("run -s {address} --udp -t 1 -c 2 --timeout 100ms --no-load")).expect(1);
    assert!(ended.json().text("reason").contains("-U"), "{}", ended.json().text("reason"));
}

#[test]
fn what_udp_cannot_do_is_refused_before_anything_is_sent() {
    for (options, parts) in [
        ("--protocol binary", &["--udp", "--protocol text"][..]),
        ("--protocol resp3", &["--udp", "--protocol text"]),
        ("-s /run/socket", &["--server", "unix sockets"]),
        ("--tls", &["--udp", "--tls"]),
        ("--user someone --password-file f", &["--udp", "--user"]),
        ("--linger 0", &["--udp", "--linger"]),
        ("--key-size 64 --value-size 1312", &["--value-size", "up to 1311 bytes", "1400"]),
        ("--value-size etc-value", &["--value-size", "datagram"]),
        ("--multiget 54 --key-size 24", &["--multiget", "at most 55"]),
        ("--multiget 60 --key-size 24", &["--multiget", "at most 55"]),
        (
            "--mix get:1 --multiget 120 --key-size 5 --no-load --churn requests:1000",
            &["'120' for '--multiget'", "at most 81"],
        ),
        (
            "--mix get:1,add:1 --insert --key-size 5 --value-size 1370",
            &["'1370' for '--value-size'", "up to 1359 bytes"],
        ),
        (
            "--mix get:1 --read-modify-write 0.5 --no-load --value-size 5000",
            &["'5000' for '--value-size'", "up to 1345 bytes"],
        ),
    ] {
        let fits = options.starts_with("--multiget 54");
        let words = format!("run -s 127.0.0.1:1 --udp {options}");
        let ended = pummel(&words);
        if fits {
            assert_eq!(ended.status, 1, "{options} fits, and nobody listens");
            continue;
        }
        let ended = ended.expect(2);
        for part in parts {
            assert!(ended.errors.contains(part), "{options}: {part:?} in {}", ended.errors);
        }
    }
}
