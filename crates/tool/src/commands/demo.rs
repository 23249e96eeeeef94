//! `pummel demo`: a closed loop and an open loop, each with the command line that a user would type.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use clap::Args;

use crate::exit_status::{Exit, answer};
use crate::job::{FrontInputs, Job};
use crate::native;
use crate::output::print;
use crate::stderr;
use crate::values;
use crate::values::ValueError;

/// Seconds after which the built-in server ends by itself.
const SERVER_SECONDS: &str = "60";

/// Options of `pummel demo`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = STATUSES)]
pub struct DemoArgs {
    /// The memcached to use: HOST, HOST:PORT, [IPV6]:PORT or /unix/path. Default: the built-in server, which the demo starts and
    /// stops
    #[arg(short, long, value_name = "SERVER", value_parser = server, allow_hyphen_values = true)]
    pub server: Option<String>,
}

const STATUSES: &str = "\
Exit status:
  0    both runs are complete
  1    a run failed or is partial, or the built-in server cannot be started
  2    wrong usage
  130  interrupted (143: by SIGTERM, 129: by SIGHUP)";

fn server(text: &str) -> Result<String, ValueError> {
    values::server(text)
}

/// A part of the demo: what it shows, and its command line without the server.
struct Part {
    story: &'static str,
    words: &'static [&'static str],
}

const PARTS: [Part; 2] = [
    Part {
        story: "A closed loop: each of 50 connections asks again as soon as it is answered.\n\
                How much can the server do?",
        words: &["-t", "3s"],
    },
    Part {
        story: "An open loop: 20,000 requests a second at random moments, as independent users\n\
                send them, whether the server keeps up or not. How long do they wait?",
        words: &["-t", "3s", "--rate", "20k", "--arrivals", "poisson", "--no-load"],
    },
];

/// Runs both parts with `execute`; ends at the first that is not complete, and with its status.
pub fn demo(args: &DemoArgs, inputs: &FrontInputs, mut execute: impl FnMut(Job) -> Exit) -> Exit {
    match &args.server {
        Some(server) => parts(server, inputs, &mut execute),
        None => match BuiltIn::start() {
            Ok(built_in) => {
                let address = &built_in.address;
                let words = format!(
                    "No server was named: this is the built-in one of pummel, at {address}, not memcached.\n"
                );
                tell(&words).map_or_else(|exit| exit, |()| parts(address, inputs, &mut execute))
            }
            Err(error) => {
                stderr::say(format_args!("error: the built-in server cannot be started: {error}"));
                Exit::Failed
            }
        },
    }
}

fn parts(server: &str, inputs: &FrontInputs, execute: &mut impl FnMut(Job) -> Exit) -> Exit {
    for part in &PARTS {
        let words: Vec<&str> = ["run", "-s", server].iter().chain(part.words).copied().collect();
        if let Err(exit) = tell(&format!("\n{}\n\n$ pummel {}\n\n", part.story, words.join(" "))) {
            return exit;
        }
        let exit = match native::job(words.iter().map(OsString::from), inputs) {
            Ok(job) => execute(job),
            Err(error) => answer(&error),
        };
        if exit != Exit::Complete {
            return exit;
        }
    }
    Exit::Complete
}

/// Writes to standard output, at once, since the run that follows writes there too. A demo that cannot be shown ends.
fn tell(text: &str) -> Result<(), Exit> {
    print(text.as_bytes()).map_err(|error| {
        stderr::say(format_args!("error: {error}"));
        Exit::Failed
    })
}

/// `pummel serve` as a process of its own, which ends with this value.
struct BuiltIn {
    process: Child,
    address: String,
}

impl BuiltIn {
    /// Starts it on a free loopback port and waits until it says which.
    fn start() -> io::Result<BuiltIn> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", "--listen", "127.0.0.1:0", "--max-seconds", SERVER_SECONDS])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut first_line = String::new();
        let read = match process.stdout.take() {
            Some(out) => BufReader::new(out).read_line(&mut first_line).map(|_| ()),
            None => Ok(()),
        };
        let mut built_in = BuiltIn { process, address: String::new() };
        read?;
        let words = first_line.trim_end().split_once("listening on ");
        match words {
            Some((_, address)) => built_in.address = address.to_string(),
            None => return Err(io::Error::other(format!("it said '{}'", first_line.trim_end()))),
        }
        Ok(built_in)
    }
}

impl Drop for BuiltIn {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::Arrivals;

    use super::*;

    fn run_with(mut exits: Vec<Exit>) -> (Exit, Vec<Job>) {
        let args = DemoArgs { server: Some("127.0.0.1:4000".to_string()) };
        let mut jobs = Vec::new();
        let exit = demo(
            &args,
            &FrontInputs { servers: None, seed: 1, read_text: |_| Err(io::ErrorKind::NotFound.into()) },
            |job| {
                jobs.push(job);
                exits.remove(0)
            },
        );
        (exit, jobs)
    }

    #[test]
    fn a_closed_loop_and_then_an_open_one_go_to_the_named_server() {
        let (exit, jobs) = run_with(vec![Exit::Complete, Exit::Complete]);
        assert_eq!(exit, Exit::Complete);
        let arrivals: Vec<(&Arrivals, Option<f64>)> =
            jobs.iter().map(|job| (&job.plan.groups[0].arrivals, job.plan.groups[0].rate)).collect();
        assert_eq!(arrivals, [(&Arrivals::Closed, None), (&Arrivals::Poisson, Some(20_000.0))]);
        assert!(jobs.iter().all(|job| job.plan.servers == ["127.0.0.1:4000"]));
    }

    #[test]
    fn the_demo_ends_at_the_first_run_that_is_not_complete() {
        let (exit, jobs) = run_with(vec![Exit::Interrupted]);
        assert_eq!((exit, jobs.len()), (Exit::Interrupted, 1));
    }
}
