//! The command line of each client program, and the figures in its output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child::{Child, Ended};
use super::rows::{Backend, Contender, Op, Program, Row};
use super::tap::{Tap, template};

/// Time that a client may take beyond its measured time.
const SLACK: Duration = Duration::from_secs(30);

/// Figures of one run of one client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Number of completed requests.
    pub requests: f64,
    /// Completed requests per second.
    pub requests_per_s: f64,
    /// CPU time in user mode per completed request, in microseconds.
    #[serde(rename = "cpu_user_us")]
    pub user_us: f64,
    /// CPU time in the kernel per completed request, in microseconds.
    #[serde(rename = "cpu_system_us")]
    pub system_us: f64,
    /// Peak of resident memory in bytes.
    pub peak_rss_bytes: u64,
    /// Connections that were really open, where the program knows.
    pub connections: Option<u64>,
    /// 99th percentile of the generator's own lag in microseconds, where the program measures it.
    pub lag_p99_us: Option<f64>,
    /// CPU time of the server per completed request, in microseconds; filled in by who sees the server.
    pub server_us: f64,
}

impl Figures {
    /// CPU time per completed request, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    /// Share of the time for which the server worked: 1 where it was the bottleneck.
    pub fn server_busy(&self) -> f64 {
        self.server_us * self.requests_per_s / 1e6
    }
}

/// The programs, and the place where they run.
pub struct Bench {
    /// The floor's example.
    pub floor: PathBuf,
    /// The program pummel.
    pub pummel: PathBuf,
    /// Another build of pummel that is measured beside it.
    pub beside: Option<PathBuf>,
    /// The CPU of the clients.
    pub cpu: usize,
    /// Directory for what the programs write.
    pub scratch: PathBuf,
}

/// Task of a client in one round.
pub struct Task<'a> {
    /// Workload of the round.
    pub row: &'a Row,
    /// The server's port.
    pub port: u16,
    /// Length of the run.
    pub seconds: u32,
    /// The file with the request that pummel sends.
    pub request: &'a Path,
    /// Requests per second of the floor when it ran last, for clients that have to be told how many requests to send.
    pub floor_rate: f64,
}

impl Bench {
    /// Stores every record of the row on the server at `port`.
    pub fn load(&self, row: &Row, port: u16) -> io::Result<()> {
        let protocol = row.dialect.name();
        let line = format!("load --quiet --server 127.0.0.1:{port} --protocol {protocol} {}", data(row));
        let log = self.scratch.join("load");
        let ended = Child::start(&self.pummel, line.split_whitespace(), self.cpu, &[], &log)?.wait(SLACK)?;
        if ended.success { Ok(()) } else { Err(failure("pummel load", &log)) }
    }

    /// Writes the request that pummel sends in this row, with a mark in place of the key, for the floor to send the
    /// same.
    pub fn request(&self, row: &Row) -> io::Result<PathBuf> {
        let mut tap = Tap::new()?;
        let one = Row { connections: 1, depth: 1, rate: None, ..*row };
        let line =
            format!("{} --no-evidence --no-baseline --backend epoll --time 10s", pummel_line(&one, tap.port));
        let log = self.scratch.join("request");
        let mut client = Child::start(&self.pummel, line.split_whitespace(), self.cpu, &[], &log)?;
        let request = tap.first_request(&mut client).map_err(|error| {
            io::Error::new(error.kind(), format!("{error}; {}", failure("pummel run", &log)))
        })?;
        let file = log.with_extension("bytes");
        fs::write(&file, template(&request, row.key_bytes as usize)?)?;
        Ok(file)
    }

    /// Runs a client.
    pub fn run(&self, contender: &Contender, task: &Task<'_>) -> io::Result<Figures> {
        let log = self.scratch.join("client");
        let json = log.with_extension("json");
        let (program, mut arguments) = self.call(contender.program, task, &json);
        arguments.extend(contender.backend.map(|backend| format!("--backend={}", backend.name())));
        arguments.extend(contender.arguments.iter().map(|&word| word.to_owned()));
        if contender.program == Program::RedisBenchmark {
            // A command of its own comes last; 18 digits and the twelve that it puts in are the keys of the row.
            arguments.extend(words(&format!("GET {:018}__rand_int__", 0)));
        }
        let limit = Duration::from_secs(u64::from(task.seconds)) * 3 + SLACK;
        let ended = Child::start(&program, &arguments, self.cpu, &[], &log)?.wait(limit)?;
        if !ended.success {
            return Err(failure(contender.name, &log));
        }
        let said = fs::read_to_string(log.with_extension("out"))?;
        let figures = match contender.program {
            Program::Floor => of_floor(&said, task.row),
            Program::Pummel | Program::OtherPummel => {
                of_pummel(&serde_json::from_str(&fs::read_to_string(&json)?)?, contender.backend, task.row)
            }
            Program::Memcaslap => of_memcaslap(&said, &ended),
            Program::RedisBenchmark => of_redis_benchmark(&said, asked(task), &ended),
        };
        figures.map_err(|why| io::Error::other(format!("{}: {why}\n{said}", contender.name)))
    }

    fn call(&self, program: Program, task: &Task<'_>, json: &Path) -> (PathBuf, Vec<String>) {
        let Task { row, port, seconds, .. } = *task;
        let Row { connections, depth, records, key_bytes, popularity, .. } = row;
        match program {
            Program::Floor => {
                let rate = row.rate.map(|rate| format!("--rate {rate}")).unwrap_or_default();
                let line = format!(
                    "--port {port} --connections {connections} --depth {depth} --seconds {seconds} {rate} \
                     --records {records} --key-size {key_bytes} --popularity {popularity} --request"
                );
                let mut arguments = words(&line);
                arguments.push(task.request.to_string_lossy().into_owned());
                (self.floor.clone(), arguments)
            }
            Program::Pummel | Program::OtherPummel => {
                let mut arguments = words(&format!("{} --time {seconds}s --json", pummel_line(row, port)));
                arguments.push(json.to_string_lossy().into_owned());
                (self.build(program).to_owned(), arguments)
            }
            Program::Memcaslap => {
                let line = format!("-s 127.0.0.1:{port} -T 1 -c {connections} -t {seconds}s");
                (PathBuf::from("memcaslap"), words(&line))
            }
            Program::RedisBenchmark => {
                let line = format!(
                    "-h 127.0.0.1 -p {port} -c {connections} -P {depth} -n {:.0} -r {records} --csv",
                    asked(task)
                );
                (PathBuf::from("redis-benchmark"), words(&line))
            }
        }
    }

    fn build(&self, program: Program) -> &Path {
        let other = (program == Program::OtherPummel).then_some(self.beside.as_deref()).flatten();
        other.unwrap_or(&self.pummel)
    }

    /// Why pummel does not use this kernel interface here; `None` where it does. Asks the memcached at `port` once.
    pub fn refusal(&self, backend: Backend, port: u16) -> io::Result<Option<String>> {
        let line = format!(
            "run --no-load --server 127.0.0.1:{port} --requests 1 --backend {} --json -",
            backend.name()
        );
        let output = Command::new(&self.pummel).args(line.split_whitespace()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or_default().to_owned();
        if !output.status.success() {
            return Ok(Some(said));
        }
        let result: Value = serde_json::from_slice(&output.stdout)?;
        let used = used_backend(&result).unwrap_or(backend.name());
        Ok((used != backend.name()).then(|| format!("it used {used}: {said}")))
    }
}

/// The kernel interface that a run was really on, where its result says so.
fn used_backend(result: &Value) -> Option<&str> {
    result.pointer("/generator/backend").and_then(Value::as_str)
}

/// Number of requests, for programs that have no option for a time.
fn asked(task: &Task<'_>) -> f64 {
    (task.floor_rate * f64::from(task.seconds)).max(1.0).round()
}

/// The words of pummel for a row, without those for how long and how.
fn pummel_line(row: &Row, port: u16) -> String {
    let Row { connections, depth, popularity, .. } = row;
    let rate = row.rate.map(|rate| format!("--rate {rate}")).unwrap_or_default();
    format!(
        "run --quiet --no-load --server 127.0.0.1:{port} --threads 1 --connections {connections} --depth {depth} \
         --protocol {} --mix {}:1 --popularity {popularity} {rate} {}",
        row.dialect.name(),
        row.op.name(),
        data(row)
    )
}

/// The options that say which records there are.
fn data(row: &Row) -> String {
    let Row { key_bytes, value_bytes, records, .. } = row;
    format!("--records {records} --key-size {key_bytes} --value-size {value_bytes}")
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn failure(name: &str, log: &Path) -> io::Error {
    let said = |extension| fs::read_to_string(log.with_extension(extension)).unwrap_or_default();
    io::Error::other(format!("{name} failed:\n{}{}", said("out"), said("err")))
}

/// The floor prints one object with the figures of its measured time.
fn of_floor(said: &str, row: &Row) -> Result<Figures, String> {
    let result: Value = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let number = |name: &str| result[name].as_f64().ok_or(format!("it does not say {name}"));
    let requests = at_least_one(number("requests")?)?;
    let connections = number("connections")? as u64;
    if connections != u64::from(row.connections) {
        return Err(format!("only {connections} connections were answered"));
    }
    if row.op == Op::Get && number("reply_bytes")? < f64::from(row.value_bytes) {
        return Err("what came back is no record".to_owned());
    }
    Ok(Figures {
        requests_per_s: number("rate")?,
        user_us: number("cpu_user_us")?,
        system_us: number("cpu_system_us")?,
        peak_rss_bytes: number("peak_rss_bytes")? as u64,
        connections: Some(connections),
        lag_p99_us: None,
        requests,
        server_us: 0.0,
    })
}

/// pummel's result; a run that was not what the row asks for is an error and no figure.
fn of_pummel(result: &Value, backend: Option<Backend>, row: &Row) -> Result<Figures, String> {
    let number =
        |path: &str| result.pointer(path).and_then(Value::as_f64).ok_or(format!("its result has no {path}"));
    let status = result.pointer("/status").and_then(Value::as_str).unwrap_or_default();
    if status != "complete" {
        return Err(format!("its run is {status}: {}", result.pointer("/reason").unwrap_or(&Value::Null)));
    }
    if let (Some(asked), Some(used)) = (backend, used_backend(result))
        && asked.name() != used
    {
        return Err(format!("it ran on {used}, not on {}", asked.name()));
    }
    for path in ["/totals/errors", "/ops/get/misses"] {
        if result.pointer(path).is_some() && number(path)? > 0.0 {
            return Err(format!("{} {path}: the row is about hits", number(path)?));
        }
    }
    let completed = at_least_one(number("/totals/completed")?)?;
    if row.op == Op::Set && number("/ops/set/outcomes/stored")? < completed {
        return Err("not all was stored".to_owned());
    }
    Ok(Figures {
        requests_per_s: number("/totals/rate")?,
        user_us: number("/generator/cpu_user_s")? * 1e6 / completed,
        system_us: number("/generator/cpu_system_s")? * 1e6 / completed,
        peak_rss_bytes: number("/generator/peak_rss_bytes")? as u64,
        connections: Some(number("/connections/open")? as u64),
        lag_p99_us: number("/totals/lag_us/p99").ok(),
        requests: completed,
        server_us: 0.0,
    })
}

/// memcaslap's last line: `Run time: 5.0s Ops: 273626 TPS: 136801 Net_rate: 153.0M/s`.
fn of_memcaslap(said: &str, ended: &Ended) -> Result<Figures, String> {
    let value = |name: &str| {
        let (_, behind) = said.rsplit_once(name)?;
        behind.split_whitespace().next()?.trim_end_matches('s').parse::<f64>().ok()
    };
    let (Some(completed), Some(seconds)) = (value("Ops:"), value("Run time:")) else {
        return Err("it does not say how many operations it did".to_owned());
    };
    of_whole_life(completed, completed / seconds, ended)
}

/// redis-benchmark's last line: the command, then the requests per second, both in quotes.
fn of_redis_benchmark(said: &str, asked: f64, ended: &Ended) -> Result<Figures, String> {
    let rate = said.lines().last().and_then(|line| line.split("\",\"").nth(1)?.parse::<f64>().ok());
    of_whole_life(asked, rate.ok_or("it does not say how many requests it did in a second")?, ended)
}

/// Figures of a program that says nothing about itself: its CPU time is that of its whole life.
fn of_whole_life(completed: f64, requests_per_s: f64, ended: &Ended) -> Result<Figures, String> {
    let completed = at_least_one(completed)?;
    Ok(Figures {
        requests_per_s,
        user_us: ended.cpu_user_s * 1e6 / completed,
        system_us: ended.cpu_system_s * 1e6 / completed,
        peak_rss_bytes: ended.peak_rss_bytes,
        connections: None,
        lag_p99_us: None,
        requests: completed,
        server_us: 0.0,
    })
}

fn at_least_one(completed: f64) -> Result<f64, String> {
    if completed >= 1.0 { Ok(completed) } else { Err("it completed nothing".to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::rows::ROWS;

    /// 50 connections, gets of 200 bytes.
    const ROW: &Row = &ROWS[0];

    fn set_row() -> Row {
        Row { op: Op::Set, ..*ROW }
    }

    #[test]
    fn the_floor_is_read() {
        let said = json!({
            "requests": 1000, "rate": 500.0, "cpu_user_us": 1.0, "cpu_system_us": 3.0, "peak_rss_bytes": 4096,
            "connections": 50, "request_bytes": 36, "reply_bytes": 251,
        })
        .to_string();
        let figures = of_floor(&said, ROW).unwrap();
        assert_eq!((figures.requests_per_s, figures.cpu_us(), figures.peak_rss_bytes), (500.0, 4.0, 4096));
        assert!(of_floor("{\"requests\": 1000}", ROW).unwrap_err().contains("connections"));
        assert!(of_floor(&said.replace("1000", "0"), ROW).is_err());
        assert!(of_floor("", ROW).is_err());
        assert!(of_floor(&said.replace(":50,", ":49,"), ROW).unwrap_err().contains("only 49"));
        let short = said.replace("251", "8");
        assert!(of_floor(&short, ROW).is_err());
        assert!(of_floor(&short, &set_row()).is_ok());
    }

    #[test]
    fn programs_that_do_not_measure_themselves_are_read() {
        let ended = Ended { cpu_user_s: 1.0, cpu_system_s: 3.0, peak_rss_bytes: 4096, success: true };
        let said = "servers : x\n\nRun time: 2.0s Ops: 1000000 TPS: 500000 Net_rate: 153.0M/s\n";
        let figures = of_memcaslap(said, &ended).unwrap();
        assert_eq!(
            (figures.requests_per_s, figures.cpu_us(), figures.peak_rss_bytes),
            (500_000.0, 4.0, 4096)
        );
        assert!(of_memcaslap("", &ended).is_err());
        let said = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET 00__rand_int__\",\"500000.00\",\"0.3\"\n";
        assert_eq!(of_redis_benchmark(said, 1e6, &ended).unwrap(), figures);
        assert!(of_redis_benchmark("\"test\",\"rps\"\n", 1e6, &ended).is_err());
    }

    fn result() -> Value {
        json!({
            "status": "complete", "reason": null,
            "totals": {"completed": 1000, "errors": 0, "rate": 500.0, "lag_us": {"p99": 1.5}},
            "ops": {"get": {"misses": 0}, "set": {"outcomes": {"stored": 1000}}},
            "connections": {"open": 50},
            "generator": {
                "backend": "epoll", "cpu_user_s": 0.001, "cpu_system_s": 0.003, "peak_rss_bytes": 8192,
            },
        })
    }

    #[test]
    fn a_result_of_pummel_is_read() {
        let figures = of_pummel(&result(), Some(Backend::Epoll), ROW).unwrap();
        assert_eq!((figures.user_us, figures.system_us, figures.peak_rss_bytes), (1.0, 3.0, 8192));
        assert_eq!((figures.connections, figures.lag_p99_us), (Some(50), Some(1.5)));
        let kept = serde_json::to_value(figures).unwrap();
        assert_eq!(serde_json::from_value::<Figures>(kept).unwrap(), figures);
    }

    #[test]
    fn a_run_that_was_not_what_the_row_asks_for_is_no_figure() {
        for (path, value) in [
            ("/status", json!("partial")),
            ("/totals/errors", json!(1)),
            ("/ops/get/misses", json!(1)),
            ("/ops/set/outcomes/stored", json!(999)),
            ("/totals/completed", json!(0)),
            ("/generator/backend", json!("uring")),
        ] {
            let mut result = result();
            *result.pointer_mut(path).unwrap() = value;
            assert!(of_pummel(&result, Some(Backend::Epoll), &set_row()).is_err(), "{path}");
        }
    }
}
