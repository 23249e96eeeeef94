//! How each client program is called, and how its own words are turned into figures.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::child::{Child, Ended};
use super::rows::{Contender, Program, Row};

/// What a client may take beyond its measured time.
const SLACK: Duration = Duration::from_secs(30);

/// What one run of one client came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Completed requests per second.
    pub requests_per_s: f64,
    /// CPU time in user mode per completed request, in microseconds.
    pub user_us: f64,
    /// CPU time in the kernel per completed request, in microseconds.
    pub system_us: f64,
    /// Peak of resident memory in bytes.
    pub peak_rss_bytes: u64,
}

impl Figures {
    /// CPU time per completed request, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

/// Where the programs are, and where they run.
pub struct Bench {
    /// The floor's example.
    pub floor: PathBuf,
    /// pummel.
    pub pummel: PathBuf,
    /// The CPU of the clients.
    pub cpu: usize,
    /// Directory for what the programs write.
    pub scratch: PathBuf,
}

impl Bench {
    /// Stores every record of the row on the server at `port`.
    pub fn load(&self, row: &Row, port: u16) -> io::Result<()> {
        let mut arguments = words(&["load", "--quiet", "--server"]);
        arguments.push(format!("127.0.0.1:{port}"));
        arguments.extend(data(row));
        let log = self.scratch.join("load");
        let ended = Child::start(&self.pummel, &arguments, self.cpu, &[], &log)?.wait(SLACK)?;
        if ended.success { Ok(()) } else { Err(failure("pummel load", &log)) }
    }

    /// Runs a client for so many seconds against the server at `port`.
    pub fn run(&self, row: &Row, contender: &Contender, port: u16, seconds: u32) -> io::Result<Figures> {
        let log = self.scratch.join(contender.name);
        let json = log.with_extension("json");
        let (program, mut arguments) = self.call(row, contender.program, port, seconds, &json);
        arguments.extend(words(contender.arguments));
        let limit = Duration::from_secs(u64::from(seconds)) + SLACK;
        let ended = Child::start(&program, &arguments, self.cpu, &[], &log)?.wait(limit)?;
        if !ended.success {
            return Err(failure(contender.name, &log));
        }
        let said = fs::read_to_string(log.with_extension("out"))?;
        let figures = match contender.program {
            Program::Floor => of_floor(&said),
            Program::Pummel => of_pummel(&serde_json::from_str(&fs::read_to_string(&json)?)?),
            Program::Memcaslap => of_memcaslap(&said, &ended),
        };
        figures.map_err(|why| io::Error::other(format!("{}: {why}\n{said}", contender.name)))
    }

    fn call(
        &self,
        row: &Row,
        program: Program,
        port: u16,
        seconds: u32,
        json: &Path,
    ) -> (PathBuf, Vec<String>) {
        let Row { connections, depth, .. } = row;
        let rate = row.rate.map(|rate| format!("--rate {rate}")).unwrap_or_default();
        let (binary, line) = match program {
            Program::Floor => (
                self.floor.clone(),
                format!(
                    "--port {port} --connections {connections} --depth {depth} --seconds {seconds} {rate}"
                ),
            ),
            Program::Pummel => (
                self.pummel.clone(),
                format!(
                    "run --quiet --no-load --server 127.0.0.1:{port} --time {seconds}s --threads 1 \
                     --connections {connections} --depth {depth} --mix get:1 {rate}"
                ),
            ),
            Program::Memcaslap => (
                PathBuf::from("memcaslap"),
                format!("-s 127.0.0.1:{port} -T 1 -c {connections} -t {seconds}s"),
            ),
        };
        let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if program != Program::Memcaslap {
            arguments.extend(data(row));
        }
        if program == Program::Pummel {
            arguments.extend(["--json".to_owned(), json.to_string_lossy().into_owned()]);
        }
        (binary, arguments)
    }
}

/// The options that say which records there are.
fn data(row: &Row) -> Vec<String> {
    let Row { key_bytes, value_bytes, records, .. } = row;
    let line = format!("--records {records} --key-size {key_bytes} --value-size {value_bytes}");
    line.split_whitespace().map(str::to_owned).collect()
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&word| word.to_owned()).collect()
}

fn failure(name: &str, log: &Path) -> io::Error {
    let said = |extension| fs::read_to_string(log.with_extension(extension)).unwrap_or_default();
    io::Error::other(format!("{name} failed:\n{}{}", said("out"), said("err")))
}

/// The floor prints one object with the figures of its measured time.
fn of_floor(said: &str) -> Result<Figures, String> {
    let result: Value = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let number = |name: &str| result[name].as_f64().ok_or(format!("it does not say {name}"));
    at_least_one(number("requests")?)?;
    Ok(Figures {
        requests_per_s: number("rate")?,
        user_us: number("cpu_user_us")?,
        system_us: number("cpu_system_us")?,
        peak_rss_bytes: number("peak_rss_bytes")? as u64,
    })
}

/// pummel's result; a run that was not what the row asks for is an error and no figure.
fn of_pummel(result: &Value) -> Result<Figures, String> {
    let number =
        |path: &str| result.pointer(path).and_then(Value::as_f64).ok_or(format!("its result has no {path}"));
    let status = result.pointer("/status").and_then(Value::as_str).unwrap_or_default();
    if status != "complete" {
        return Err(format!("its run is {status}: {}", result.pointer("/reason").unwrap_or(&Value::Null)));
    }
    for path in ["/totals/errors", "/ops/get/misses"] {
        if result.pointer(path).is_some() && number(path)? > 0.0 {
            return Err(format!("{} {path}: the row is about hits", number(path)?));
        }
    }
    let completed = at_least_one(number("/totals/completed")?)?;
    Ok(Figures {
        requests_per_s: number("/totals/rate")?,
        user_us: number("/generator/cpu_user_s")? * 1e6 / completed,
        system_us: number("/generator/cpu_system_s")? * 1e6 / completed,
        peak_rss_bytes: number("/generator/peak_rss_bytes")? as u64,
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
    let completed = at_least_one(completed)?;
    Ok(Figures {
        requests_per_s: completed / seconds,
        user_us: ended.cpu_user_s * 1e6 / completed,
        system_us: ended.cpu_system_s * 1e6 / completed,
        peak_rss_bytes: ended.peak_rss_bytes,
    })
}

fn at_least_one(completed: f64) -> Result<f64, String> {
    if completed >= 1.0 { Ok(completed) } else { Err("it completed nothing".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_floor_is_read() {
        let said = json!({
            "requests": 1000, "rate": 500.0, "cpu_user_us": 1.0, "cpu_system_us": 3.0, "peak_rss_bytes": 4096,
        })
        .to_string();
        let figures = of_floor(&said).unwrap();
        assert_eq!((figures.requests_per_s, figures.cpu_us(), figures.peak_rss_bytes), (500.0, 4.0, 4096));
        assert!(of_floor("{\"requests\": 1000}").unwrap_err().contains("rate"));
        assert!(of_floor(&said.replace("1000", "0")).is_err());
        assert!(of_floor("").is_err());
    }

    #[test]
    fn memcaslap_is_read() {
        let ended = Ended { cpu_user_s: 1.0, cpu_system_s: 3.0, peak_rss_bytes: 4096, success: true };
        let said = "servers : x\n\nRun time: 2.0s Ops: 1000000 TPS: 500000 Net_rate: 153.0M/s\n";
        let figures = of_memcaslap(said, &ended).unwrap();
        assert_eq!(
            (figures.requests_per_s, figures.cpu_us(), figures.peak_rss_bytes),
            (500_000.0, 4.0, 4096)
        );
        assert!(of_memcaslap("", &ended).is_err());
    }

    fn result() -> Value {
        json!({
            "status": "complete", "reason": null,
            "totals": {"completed": 1000, "errors": 0, "rate": 500.0},
            "ops": {"get": {"misses": 0}},
            "generator": {"cpu_user_s": 0.001, "cpu_system_s": 0.003, "peak_rss_bytes": 8192},
        })
    }

    #[test]
    fn a_result_of_pummel_is_read() {
        let figures = of_pummel(&result()).unwrap();
        assert_eq!((figures.user_us, figures.system_us, figures.peak_rss_bytes), (1.0, 3.0, 8192));
    }

    #[test]
    fn a_run_that_was_not_what_the_row_asks_for_is_no_figure() {
        for (path, value) in [
            ("/status", json!("partial")),
            ("/totals/errors", json!(1)),
            ("/ops/get/misses", json!(1)),
            ("/totals/completed", json!(0)),
        ] {
            let mut result = result();
            *result.pointer_mut(path).unwrap() = value;
            assert!(of_pummel(&result).is_err(), "{path}");
        }
    }
}
