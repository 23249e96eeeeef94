//! The programs of the parts with sockets: `pummel serve`, and the result of what measures it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bench::Site;

/// The program that measures: the given one, or a release build.
pub fn program_of(root: &Path, given: Option<&Path>) -> io::Result<PathBuf> {
    match given {
        Some(own) => Ok(own.to_owned()),
        None => Ok(Site::prepare(root)?.pummel().to_owned()),
    }
}

/// The JSON of a command line, which may end with one of these statuses.
pub fn json_of(program: &Path, line: &str, accepted: &[i32]) -> io::Result<Value> {
    let json = std::env::temp_dir().join(format!("pummel-coverage-{}.json", std::process::id()));
    let words = line.split_whitespace();
    let ended = Command::new(program).args(words).arg("--json").arg(&json).stdout(Stdio::null()).status()?;
    if !ended.code().is_some_and(|code| accepted.contains(&code)) {
        return Err(io::Error::other(format!("pummel {line} failed ({ended})")));
    }
    let result = fs::read_to_string(&json).and_then(|text| Ok(serde_json::from_str(&text)?));
    fs::remove_file(PathBuf::from(&json))?;
    result
}

/// `pummel serve`, which ends with this value.
pub struct Serve {
    process: Child,
    /// Address where it listens.
    pub address: String,
}

impl Serve {
    /// Starts it with these options, on a free port of loopback.
    pub fn start(program: &Path, words: &str) -> io::Result<Serve> {
        let line = format!("serve --listen 127.0.0.1:0 {words}");
        let process = Command::new(program).args(line.split_whitespace()).stdout(Stdio::piped()).spawn()?;
        let mut server = Serve { process, address: String::new() };
        let out = server.process.stdout.take().expect("it is piped");
        let mut first = String::new();
        BufReader::new(out).read_line(&mut first)?;
        let address = first.trim_end().strip_prefix("listening on ");
        server.address = address.ok_or_else(|| io::Error::other("pummel serve does not listen"))?.to_owned();
        Ok(server)
    }

    /// The result of gets of this server, by a run with these words.
    pub fn result(&self, program: &Path, words: &str) -> io::Result<Value> {
        let gets = "--no-load --records 1000 --mix get:1 --quiet --no-evidence --no-baseline";
        json_of(program, &format!("run -s {} {gets} {words}", self.address), &[0])
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Both fail only where the process is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
