//! `pummel demo`: a closed loop and an open loop, each with the command line that a user would type.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use clap::Args;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job};
use pummel_fronts::native;
use pummel_fronts::native::style::NativeStyle;
use pummel_fronts::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use pummel_fronts::values;
use pummel_fronts::values::ValueError;
use pummel_measure::limit::Limit;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;
use pummel_measure::summary::{QUANTILES, Quantile, Summary, time_text};
use pummel_measure::words::{grouped, rate_text};

use crate::job::driver::{Extras, check_here, drive};
use crate::output::print;
use crate::parser_answer::answer;
use crate::stderr;

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

/// The rate of the open loop, in requests per second.
const OPEN_RATE: u64 = 20_000;

/// The figures of a run that the demo's answer needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Completed requests per second.
    rate: f64,
    limit: Limit,
    /// Name of the row of the table of limits.
    row: &'static str,
    /// Response time of half of the requests.
    p50: Quantile,
    /// Response time of 99 % of the requests.
    p99: Quantile,
    outcome: RunOutcome,
    /// Whether the times are hardly pummel's own.
    is_trusted: bool,
}

impl Seen {
    fn of(summary: &Summary) -> Seen {
        let quantile = |name: &str| {
            let at = QUANTILES.iter().position(|(known, _)| *known == name);
            at.map_or(Quantile::Absent, |at| summary.totals.figures[Span::Response as usize].quantiles[at])
        };
        Seen {
            rate: summary.totals.rate,
            limit: summary.verdict.limit,
            row: summary.verdict.row,
            p50: quantile("p50"),
            p99: quantile("p99"),
            outcome: RunOutcome::of(summary.ending.as_ref()),
            is_trusted: summary.trust.ok,
        }
    }
}

/// The report of `pummel run`, and what it was made of.
struct DemoStyle {
    native: NativeStyle,
    seen: Option<Seen>,
}

impl Style for DemoStyle {
    fn event(&mut self, event: Event<'_>, moment: Moment, out: &mut StyleOutput) {
        self.native.event(event, moment, out);
    }

    fn end(&mut self, ended: &Ended<'_>, moment: Moment, out: &mut StyleOutput) -> Exit {
        self.seen = ended.refused.is_none().then(|| Seen::of(ended.report.summary));
        self.native.end(ended, moment, out)
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        self.native.failure(words)
    }

    fn usage_status(&self) -> Exit {
        self.native.usage_status()
    }

    fn doubted(&self) -> Doubted {
        self.native.doubted()
    }

    fn lets_readers_leave(&self) -> bool {
        self.native.lets_readers_leave()
    }
}

/// Makes the run of a job and writes its report; also returns the figures for the demo's answer, where there is a run.
pub fn execute(job: &Job) -> (Exit, Option<Seen>) {
    if let Err(error) = check_here(job) {
        return (answer(&error.into()), None);
    }
    let mut style = DemoStyle { native: NativeStyle::new(&job.outputs), seen: None };
    let exit = drive(job, &Extras::default(), &mut style);
    (exit, style.seen)
}

/// The answers to the two questions of the demo, a line each.
fn answers(closed: &Seen, open: &Seen) -> String {
    let asked = grouped(OPEN_RATE);
    let limit = match (closed.limit, closed.row) {
        (Limit::Server, "server-one-thread") => "The limit was the server: its one thread was full",
        (Limit::Server, "server-cpu") => "The limit was the server's CPU",
        (Limit::Server, _) => "The limit was the server",
        (Limit::Generator, "shared-cpu") => "The limit was this machine, which both share",
        (Limit::Generator, _) => "The limit was pummel itself",
        (Limit::Connections, _) => "The limit was the number of connections",
        (Limit::Network, _) => "The limit was the network",
        (Limit::Others, _) => "The limit was load of others",
        (Limit::Workload, _) => "The limit was the workload",
        (Limit::None | Limit::Unknown, _) => "What limited it is not known",
    };
    let rate = rate_text(closed.rate);
    let rate = rate.trim_end_matches("/s");
    let mut text = format!("Closed loop: {rate} req/s. {limit}.\n");
    text += &match (open.outcome, open.p50, open.p99) {
        (RunOutcome::Ok, Quantile::Known(half), Quantile::Known(most)) => format!(
            "Open loop at {asked}/s: half were answered within {}, 99 % within {}.\n",
            time_text(half),
            time_text(most)
        ),
        (RunOutcome::Overloaded, ..) => format!(
            "Open loop at {asked}/s: the server did not keep up; {} were answered.\n",
            rate_text(open.rate)
        ),
        _ => format!("Open loop at {asked}/s: {} were answered.\n", rate_text(open.rate)),
    };
    if !open.is_trusted {
        text += "Part of these times is pummel's own delay: Trust, above, says how much.\n";
    }
    text
}

/// Runs both parts with `execute`, and says what they came to; ends at the first that is not complete, and with its status.
pub fn demo(
    args: &DemoArgs,
    inputs: &FrontInputs,
    mut execute: impl FnMut(&Job) -> (Exit, Option<Seen>),
) -> Exit {
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

fn parts(server: &str, inputs: &FrontInputs, execute: &mut impl FnMut(&Job) -> (Exit, Option<Seen>)) -> Exit {
    let mut seen = Vec::new();
    for part in &PARTS {
        let words: Vec<&str> = ["run", "-s", server].iter().chain(part.words).copied().collect();
        if let Err(exit) = tell(&format!("\n{}\n\n$ pummel {}\n\n", part.story, words.join(" "))) {
            return exit;
        }
        let (exit, figures) = match native::job(words.iter().map(OsString::from), inputs) {
            Ok(job) => execute(&job),
            Err(error) => (answer(&error), None),
        };
        if exit != Exit::Complete {
            return exit;
        }
        seen.extend(figures);
    }
    let [closed, open] = &seen[..] else { return Exit::Complete };
    let next = "Next: pummel run -s HOST, with your server; pummel run -h";
    tell(&format!("\n{}{next}\n", answers(closed, open))).map_or_else(|exit| exit, |()| Exit::Complete)
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
            // Ctrl-C of the terminal ends the run, whose report needs the server to the end.
            .process_group(0)
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
        let exit = demo(&args, &FrontInputs::without_files(1), |job| {
            jobs.push(job.clone());
            (exits.remove(0), None)
        });
        (exit, jobs)
    }

    const SEEN: Seen = Seen {
        rate: 163_412.0,
        limit: Limit::Server,
        row: "server-one-thread",
        p50: Quantile::Known(27_200),
        p99: Quantile::Known(246_000),
        outcome: RunOutcome::Ok,
        is_trusted: true,
    };

    #[test]
    fn the_end_answers_both_questions_in_a_line_each() {
        assert_eq!(
            answers(&SEEN, &SEEN),
            "Closed loop: 163,000 req/s. The limit was the server: its one thread was full.\n\
             Open loop at 20,000/s: half were answered within 27.2 us, 99 % within 246 us.\n"
        );
        let unknown = Seen { rate: 19_900.0, p99: Quantile::Above(1_000_000), ..SEEN };
        assert!(answers(&SEEN, &unknown).ends_with("Open loop at 20,000/s: 19,900/s were answered.\n"));
        let outcome = RunOutcome::Overloaded;
        let slow = Seen { rate: 9_512.0, p99: unknown.p99, outcome, is_trusted: false, ..SEEN };
        let said = answers(&Seen { limit: Limit::Generator, row: "shared-cpu", ..SEEN }, &slow);
        assert_eq!(
            said,
            "Closed loop: 163,000 req/s. The limit was this machine, which both share.\n\
             Open loop at 20,000/s: the server did not keep up; 9,510/s were answered.\n\
             Part of these times is pummel's own delay: Trust, above, says how much.\n"
        );
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        assert!(answers(&Seen { limit: Limit::Unknown, ..SEEN }, &SEEN).contains("is not known.\n"));
    }

    #[test]
    fn the_rate_of_the_answer_is_that_of_the_open_loop() {
        let (_, jobs) = run_with(vec![Exit::Complete, Exit::Complete]);
        assert_eq!(jobs[1].plan.groups[0].rate, Some(OPEN_RATE as f64));
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
