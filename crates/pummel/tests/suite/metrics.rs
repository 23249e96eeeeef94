//! `--metrics`: what a scrape shows of real runs, and clients that mean no good.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::agent::Agent;
use crate::common::{
    Ended, PATIENCE, Process, Reserved, Running, Serve, in_some_quiet_moment, pummel, until,
};
use pummel_tool::metrics::table::{Kind, ROWS};
use serde_json::Value;

/// Sends a request for `path` and reads the answer to its end: its head and its body. `None` where nothing listens.
fn get(address: &str, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").as_bytes())
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// The values of a scrape, by name and labels as they are written.
fn values(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// The sum of all values of a metric whose labels have these words.
fn sum(values: &BTreeMap<String, f64>, name: &str, labels: &str) -> f64 {
    let of = |key: &str| key.split('{').next() == Some(name) && key.contains(labels);
    values.iter().filter(|(key, _)| of(key)).map(|(_, value)| value).sum()
}

/// Scrapes again and again until nothing listens any more. Returns all that was read.
fn scrapes(address: &str) -> Vec<BTreeMap<String, f64>> {
    until("the first answer", || get(address, "/healthz"));
    let end = Instant::now() + PATIENCE;
    let mut all = Vec::new();
    while let Some((head, body)) = get(address, "/metrics") {
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        all.push(values(&body));
        assert!(Instant::now() < end, "it listens for ever");
        thread::sleep(Duration::from_millis(20));
    }
    all
}

/// Number of scrapes that saw a run while it was measured.
fn measuring(all: &[BTreeMap<String, f64>]) -> usize {
    all.iter().filter(|seen| sum(seen, "pummel_phase", "phase=\"measure\"") == 1.0).count()
}

/// A run of 200 requests per second that serves its metrics at this place, and all scrapes of it. The thread that answers
/// them yields to all others: where two did not see the run under way, it is tried again with more time.
fn scraped(place: &Reserved) -> (Ended, Vec<BTreeMap<String, f64>>) {
    const MEASURED_MAX_S: u32 = 16;
    let server = Serve::start("");
    let mut measured_s = 1;
    loop {
        let words = format!(
            "run -s {} -c 4 -T 2 --rate 200 --records 100 -t {measured_s}s --interval 100ms --verify --goal p50:10s \
             --metrics {} --metrics-linger 50s",
            server.name,
            place.port()
        );
        let running = Running::start(&words);
        let all = scrapes(&place.name);
        let ended = running.end().expect(0);
        if measuring(&all) >= 2 || measured_s >= MEASURED_MAX_S {
            return (ended, all);
        }
        measured_s *= 4;
    }
}

#[test]
fn a_scrape_shows_the_run_and_the_last_one_what_the_result_says() {
    let place = Reserved::new();
    let (ended, all) = scraped(&place);
    assert!(ended.errors.contains(&format!("metrics at http://{}/metrics", place.name)), "{}", ended.errors);
    let result = ended.json();
    let last = all.last().expect("the run waits for one more scrape");
    assert_eq!(sum(last, "pummel_phase", "phase=\"over\""), 1.0);
    for op in ["get", "set"] {
        let label = format!("op=\"{op}\"");
        let requests = result.count(&format!("ops/{op}/requests")) as f64;
        let completed = result.count(&format!("ops/{op}/completed")) as f64;
        assert_eq!(sum(last, "pummel_requests_due_total", &label), requests);
        assert_eq!(sum(last, "pummel_requests_completed_total", &label), completed);
        for span in ["response", "wait", "lag", "service", "reaction"] {
            let count = sum(last, &format!("pummel_{span}_seconds_count"), &label);
            // Wait and lag are also known of requests without a good answer, which a busy machine may have.
            let is_whole =
                if ["wait", "lag"].contains(&span) { count >= completed } else { count == completed };
            assert!(is_whole, "{span}: {count} of {completed}");
            let p50_us = result.at(&format!("ops/{op}/{span}_us/p50")).as_f64();
            let exact = format!("op=\"{op}\",span=\"{span}\",q=\"0.5\"");
            let served = sum(last, "pummel_result_quantile_seconds", &exact) * 1e6;
            assert!(
                p50_us.is_some_and(|p50| (p50 - served).abs() < 0.01),
                "{op} {span}: {p50_us:?} {served}"
            );
        }
    }
    let sent = result.count("bytes/sent") as f64;
    assert_eq!(
        (sum(last, "pummel_sent_bytes_total", ""), sum(last, "pummel_connections_asked", "")),
        (sent, 4.0)
    );
    assert_eq!(sum(last, "pummel_goal_met", "goal=\"p50:10s\""), 1.0);
    assert_eq!(sum(last, "pummel_target_requests_per_second", ""), 200.0);
    assert!(sum(last, "pummel_verified_values_total", "result=\"right\"") > 0.0);
    assert!(sum(last, "pummel_worker_busy_seconds_total", "worker=\"1\"") > 0.0);
    // Two scrapes saw the run under way, and no counter went back.
    assert!(measuring(&all) >= 2, "{} of {}", measuring(&all), all.len());
    never_falls(&all);
}

/// Fails where a counter, or the count of a histogram, is less than in the scrape before.
#[track_caller]
fn never_falls(all: &[BTreeMap<String, f64>]) {
    for pair in all.windows(2) {
        for (key, before) in &pair[0] {
            let name = key.split('{').next().unwrap_or_default();
            if name.ends_with("_total") || name.ends_with("_count") || name.ends_with("_bucket") {
                let after = pair[1].get(key).copied().unwrap_or(-1.0);
                assert!(after >= *before, "{key} was {before} and is {after}");
            }
        }
    }
}

#[test]
fn counters_go_on_from_one_run_of_a_search_to_the_next() {
    let (server, place) = (Serve::start(""), Reserved::new());
    let words = format!(
        "scan -s {} -c 2 --records 100 --rates 500:1500:500 -t 500ms --metrics {} --metrics-linger 50s",
        server.name, place.name
    );
    let running = Running::start(&words);
    let all = scrapes(&place.name);
    running.end().expect(0);
    never_falls(&all);
    let last = all.last().expect("it waits for one more scrape");
    // Three runs of half a second.
    let due = sum(last, "pummel_requests_due_total", "");
    assert!((1_100.0..1_900.0).contains(&due), "{due}");
}

#[test]
fn clients_that_mean_no_good_disturb_neither_the_run_nor_the_next_scrape() {
    let (server, place) = (Serve::start(""), Reserved::new());
    let words =
        format!("run -s {} -c 2 --rate 500 --records 100 -t 1h --metrics {}", server.name, place.name);
    let running = Running::start(&words);
    until("it listens", || get(&place.name, "/healthz"));
    let connect = || TcpStream::connect(&place.name).expect("it listens");
    // More than are served at one time, and none of them says anything, or reads what it asked for.
    let asks = |mut stream: TcpStream| {
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it listens");
        stream
    };
    in_some_quiet_moment(|| {
        let silent: Vec<TcpStream> =
            (0..12).map(|_| connect()).chain((0..12).map(|_| asks(connect()))).collect();
        let began = Instant::now();
        let (head, _) = get(&place.name, "/healthz").ok_or("the silent ones keep others out")?;
        let took = began.elapsed();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        drop(silent);
        // Were each of them served for its 2 s, this would take 10 s.
        if took < Duration::from_secs(5) { Ok(()) } else { Err(format!("answered after {took:?}")) }
    });
    // A client has 2 s from its connection to its end, of which a busy machine may take a part.
    let says = |bytes: &[u8]| -> Result<String, String> {
        let mut stream = connect();
        stream.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
        stream.write_all(bytes).map_err(|why| format!("what is said is not heard to its end: {why}"))?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(|why| format!("no answer comes before a reset: {why}"))?;
        let first = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
        if first.is_empty() { Err("it hung up without an answer".to_owned()) } else { Ok(first) }
    };
    let with_body = [b"GET /healthz HTTP/1.1\r\n\r\n".to_vec(), vec![b'b'; 1 << 20]].concat();
    for (bytes, status) in [
        (b"GET /metrics HTTP/1.1\r\n\r\n".to_vec(), "200 OK"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n".to_vec(), "400"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n".to_vec(), "405"),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n".to_vec(), "404"),
        (vec![b'a'; 1 << 20], "431"),
        (with_body, "200 OK"),
    ] {
        let answer = in_some_quiet_moment(|| says(&bytes));
        assert!(answer.contains(status), "{status} is expected, and not {answer}");
    }
    running.process.interrupt();
    running.end().expect(130);
}

#[test]
fn an_address_that_is_taken_is_an_error_before_anything_is_sent() {
    let server = Serve::start("");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let ended = pummel(&format!("run -s {} -t 1s --metrics {address}", server.name)).expect(1);
    assert!(ended.errors.contains("--metrics: cannot listen on"), "{}", ended.errors);
    assert_eq!(ended.text, "");
    assert!(ended.json().text("reason").contains("--metrics: cannot listen on"));
    let ended = pummel(&format!("run -s {} -t 1s --metrics nonsense", server.name)).expect(2);
    assert!(ended.errors.contains("--metrics"), "{}", ended.errors);
    let ended = pummel(&format!("run -s {} -t 1s --metrics-linger 1s", server.name)).expect(2);
    assert!(ended.errors.contains("--metrics <"), "{}", ended.errors);
}

#[test]
fn a_result_is_put_to_a_gateway_once_and_one_that_refuses_is_said() {
    let server = Serve::start("");
    let gateway = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = gateway.local_addr().expect("it is bound");
    let answers = thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in ["HTTP/1.1 202 Accepted\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
            let (mut stream, _) = gateway.accept().expect("pummel connects");
            let (mut request, mut bytes) = (Vec::new(), [0; 4096]);
            loop {
                let count = stream.read(&mut bytes).expect("it sends");
                request.extend_from_slice(&bytes[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                if body.len() >= length.expect("it says how long").parse::<usize>().expect("a number") {
                    break;
                }
            }
            stream.write_all(answer.as_bytes()).expect("it reads");
            requests.push(String::from_utf8(request).expect("UTF-8"));
        }
        requests
    });
    let words = format!("run -s {} --records 100 -n 50 --push-result http://{address}", server.name);
    pummel(&words).expect(0);
    let refused = pummel(&words).expect(1);
    assert!(
        refused.errors.contains("--push-result") && refused.errors.contains("400 Bad Request"),
        "{}",
        refused.errors
    );
    let requests = answers.join().expect("it answers twice");
    assert!(requests[0].starts_with("PUT /metrics/job/pummel HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("pummel_result_quantile_seconds{"), "{}", requests[0]);
}

#[test]
fn an_agent_serves_its_own_part_and_the_controller_the_sum() {
    let server = Serve::start("");
    let places = [Reserved::new(), Reserved::new(), Reserved::new()];
    let agents = [0, 1].map(|at: usize| Agent::start_with(&["--metrics", &places[at].name]));
    let names = format!("{},{}", agents[0].name, agents[1].name);
    let words = format!(
        "run -s {} --agents {names} -c 4 --rate 1k --records 100 -t 1s --label run=nightly-7 --metrics {} \
         --metrics-linger 50s",
        server.name, places[2].name
    );
    let running = Running::start(&words);
    let all = scrapes(&places[2].name);
    let result = running.end().expect(0).json();
    let sums = all.last().expect("it waits for one more scrape");
    let completed = "pummel_requests_completed_total";
    let of_agents = |name: &str| -> f64 {
        let of_agent = |place: &Reserved| {
            let (_, body) = get(&place.name, "/metrics").expect("the agent goes on");
            sum(&values(&body), name, "run=\"nightly-7\",role=\"agent\"")
        };
        places[..2].iter().map(of_agent).sum()
    };
    assert_eq!(sum(sums, completed, "role=\"controller\""), result.count("totals/completed") as f64);
    assert_eq!(of_agents(completed), result.count("totals/completed") as f64);
    let target = "pummel_target_requests_per_second";
    assert_eq!((sum(sums, target, "role=\"controller\""), of_agents(target)), (1_000.0, 1_000.0));
    assert_eq!(sum(sums, "pummel_run_info", "role=\"controller\""), 1.0);
    assert_eq!(sum(sums, "pummel_agents", "state=\"present\""), 2.0);
    assert_eq!(sum(sums, "pummel_build_info", "run=\"nightly-7\",role=\"controller\""), 1.0);
    // What an agent counts belongs to one run: that of the next one begins with nothing.
    let words = words.replace("nightly-7", "nightly-8").replace("-t 1s", "-n 40").replace("50s", "0s");
    let result = pummel(&words).expect(0).json();
    let of_second: f64 = places[..2]
        .iter()
        .map(|place| {
            let (_, body) = get(&place.name, "/metrics").expect("the agent goes on");
            let values = values(&body);
            assert_eq!(sum(&values, completed, "run=\"nightly-7\""), 0.0, "{body}");
            sum(&values, completed, "run=\"nightly-8\",role=\"agent\"")
        })
        .sum();
    assert_eq!(of_second, result.count("totals/completed") as f64);
}

#[test]
fn the_target_follows_a_rate_that_changes() {
    let (server, place) = (Serve::start(""), Reserved::new());
    let words = format!(
        "run -s {} -c 2 --records 100 --no-load --rate 100 --stage 1s,0s:900,600s --metrics {}",
        server.name, place.name
    );
    let running = Running::start(&words);
    let target = || {
        let (_, body) = get(&place.name, "/metrics")?;
        let seen = values(&body);
        (sum(&seen, "pummel_phase", "phase=\"measure\"") == 1.0)
            .then(|| sum(&seen, "pummel_target_requests_per_second", ""))
    };
    let first = until("the measured phase", target);
    // A busy machine may look too late for the first stage.
    assert!(first == 100.0 || first == 900.0, "{first}");
    until("the second stage", || target().filter(|rate| *rate == 900.0));
    running.process.interrupt();
    running.end().expect(130);
}

#[test]
fn the_runs_of_a_search_have_one_name() {
    // One queue with 2 ms for each request: 500 requests per second at most.
    let (server, place) = (Serve::start("--service-time 2ms --queue 1"), Reserved::new());
    let words = format!(
        "search -s {} -c 20 -t 300ms --records 10 --no-load --goal p50:3ms --metrics {} --metrics-linger 50s",
        server.name, place.name
    );
    let running = Running::start(&words);
    let all = scrapes(&place.name);
    running.end().expect(3);
    let last = all.last().expect("it waits for one more scrape");
    assert!(sum(last, "pummel_requests_completed_total", "") > 50.0, "{last:?}");
    let runs: BTreeSet<&str> = all
        .iter()
        .flat_map(BTreeMap::keys)
        .filter_map(|key| key.split_once("run=\"")?.1.split('"').next())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    never_falls(&all);
}

/// Whether a program is there; it is a wish of these tests and no need.
fn is_there(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("{program} is not installed (apt-get install prometheus): what it would check is left out");
    }
    found
}

#[test]
fn promtool_finds_nothing_to_say_against_a_scrape() {
    if !is_there("promtool") {
        return;
    }
    let (server, place) = (Serve::start(""), Reserved::new());
    let words = format!(
        "run -s {} --records 100 -n 500 --verify --goal p99:1s --metrics {} --metrics-linger 50s",
        server.name, place.name
    );
    let running = Running::start(&words);
    let mut text = String::new();
    until("the last scrape", || match get(&place.name, "/metrics") {
        Some((_, body)) => {
            text = body;
            None
        }
        None => (!text.is_empty()).then_some(()),
    });
    assert!(text.contains("pummel_goal_met{"), "{text}");
    running.end().expect(0);
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was there just now");
    promtool.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    let said = promtool.wait_with_output().expect("it ends");
    let words = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && words.is_empty(), "{words}");
}

/// A Prometheus that scrapes an address, and what it answers to a query.
struct Prometheus {
    _process: Process,
    place: Reserved,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(target: &str, features: &[&str]) -> Prometheus {
        let (folder, place) = (tempfile::tempdir().expect("a temporary folder"), Reserved::new());
        let config = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n\
             scrape_configs:\n- job_name: pummel\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, config).expect("it is writable");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={}", place.name))
            .args(features)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it was there just now");
        Prometheus { _process: Process(child), place, _folder: folder }
    }

    /// The value of a query that has one; `None` where it has none yet.
    fn value(&self, query: &str) -> Option<f64> {
        let query: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (_, body) = get(&self.place.name, &format!("/api/v1/query?query={query}"))?;
        let start = body.find('{')?;
        let answer: Value = serde_json::from_str(body.get(start..=body.rfind('}')?)?).ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())
    }
}

#[test]
fn prometheus_takes_classic_and_native_histograms() {
    if !is_there("prometheus") {
        return;
    }
    // A reply is held for 20 ms, so that the median of the service is known.
    let (server, place) = (Serve::start("--service-time 20ms"), Reserved::new());
    let words = format!(
        "run -s {} -c 8 --rate 100 --records 100 -t 120s --interval 200ms --metrics {}",
        server.name, place.name
    );
    let running = Running::start(&words);
    until("it listens", || get(&place.name, "/healthz"));
    let classic = Prometheus::start(&place.name, &[]);
    let native = Prometheus::start(&place.name, &["--enable-feature=native-histograms"]);
    let counts = [
        (&classic, "sum(pummel_service_seconds_count)"),
        (&native, "histogram_count(sum(pummel_service_seconds))"),
    ];
    for (prometheus, query) in counts {
        until(query, || prometheus.value(query).filter(|count| *count > 10.0));
    }
    let by_classic = "histogram_quantile(0.5, sum by (le) (pummel_service_seconds_bucket))";
    let by_native = "histogram_quantile(0.5, sum(pummel_service_seconds))";
    let coarse = until("a classic median", || classic.value(by_classic));
    let fine = until("a native median", || native.value(by_native));
    // The reply comes some time after 20 ms, and a busy machine is slow; the buckets reach from 20 to 50 ms, and 2.2 % wide.
    assert!((0.019..0.06).contains(&coarse) && (0.019..0.06).contains(&fine), "{coarse} {fine}");
    running.process.interrupt();
    running.end().expect(130);
}

#[test]
fn every_name_of_the_dashboard_is_served_and_every_name_is_in_the_dashboard() {
    let dashboard: Value = serde_json::from_str(include_str!("../../../../deploy/grafana/pummel.json"))
        .expect("the dashboard is JSON");
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 40, "{}", queries.len());
    let served: BTreeSet<String> = ROWS
        .iter()
        .flat_map(|row| match row.kind {
            Kind::Histogram => {
                ["", "_bucket", "_sum", "_count"].map(|end| format!("{}{end}", row.name)).to_vec()
            }
            _ => vec![row.name.to_owned()],
        })
        .collect();
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let asked: BTreeSet<String> = queries
        .iter()
        .flat_map(|query| query.split(|c| !is_name(c)))
        .filter(|word| word.starts_with("pummel_") || word.starts_with("process_"))
        .map(str::to_owned)
        .collect();
    let unknown: Vec<&String> = asked.difference(&served).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let unused: Vec<&str> = ROWS
        .iter()
        .map(|row| row.name)
        .filter(|name| !asked.iter().any(|word| word.starts_with(name)))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn panels_of_the_end_of_a_run_show_it_after_the_run() {
    let dashboard: Value = serde_json::from_str(include_str!("../../../../deploy/grafana/pummel.json"))
        .expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    // What these show is over with the run.
    let of_now = ["Phase", "Completed", "Asked for", "Agents"];
    let mut count = 0;
    for panel in panels.iter().filter(|panel| !of_now.iter().any(|title| panel["title"] == *title)) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            if target["instant"] != true {
                continue;
            }
            let asked = target["expr"].as_str().expect("an expression");
            let selectors = asked.matches("pummel_").count();
            assert_eq!(asked.matches("last_over_time(pummel_").count(), selectors, "{asked}");
            assert_eq!(asked.matches("[$__range])").count(), selectors, "{asked}");
            count += 1;
        }
    }
    assert!(count > 12, "{count}");
}

/// The expressions of all panels, and the queries of the variables.
fn collect(value: &Value, to: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(text) if name == "expr" || (name == "query" && text.contains("label_values")) => {
                        to.push(text.to_owned());
                    }
                    _ => collect(field, to),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, to)),
        _ => {}
    }
}
