//! The words of redis-benchmark's command line about a test: its progress, its report, and what ends the tests.

use std::borrow::Cow;

use pummel_logic::plan::{Plan, ReadFrom};
use pummel_measure::cluster::{ClusterNode, ClusterSeen};
use pummel_measure::connections::TroubleKind;
use pummel_measure::evidence::{Evidence, ServerReading};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::reason::{Reason, Why};
use pummel_measure::recorder::Span;
use pummel_report::visible;
use pummel_report::words::reason;

use crate::exit_status::Exit;
use crate::redis_benchmark::report::{self, CSV_HEAD, Figures, ServerSettings, Setting};
use crate::redis_benchmark::suite::Program;
use crate::redis_benchmark::{Display, Form};
use crate::so_far::SoFar;
use crate::style::{Doubted, Ended, Event, Moment, Refused, RefusedCause, Style, StyleOutput};

/// Most rates of intervals that are kept: those of the first three days.
const RATES_MAX: usize = 1 << 20;

/// The words of redis-benchmark about one test.
#[derive(Clone, Debug)]
pub struct BenchmarkStyle<'a> {
    display: &'a Display,
    plan: &'a Plan,
    /// Whether the test is the first one of all that are run.
    is_first: bool,
    title: Cow<'a, str>,
    so_far: SoFar,
    /// The rates of the intervals so far, in requests per second, where a rate is asked for.
    rates: Vec<f64>,
    /// Length of the line of progress that stands on the terminal.
    line_len: usize,
}

impl<'a> BenchmarkStyle<'a> {
    /// The words about the run of this plan. The sequences of a terminal in them are the layout's own: titles, which are words of the
    /// user, have none.
    pub fn new(display: &'a Display, plan: &'a Plan, is_first: bool) -> BenchmarkStyle<'a> {
        let title = visible::words(&display.title);
        BenchmarkStyle {
            display,
            plan,
            is_first,
            title,
            so_far: SoFar::default(),
            rates: Vec::new(),
            line_len: 0,
        }
    }

    /// Shows an interval, where progress is shown.
    fn show(&mut self, interval: &mut Interval, out: &mut StyleOutput) {
        let now = SoFar::of(interval);
        self.so_far.add(now);
        // A part of an interval at the end of the test says little about the rate.
        let is_whole = now.length_ns >= self.plan.interval_ns / 2;
        if self.display.target_rate > 0 && is_whole && self.rates.len() < RATES_MAX {
            self.rates.push(now.rate());
        }
        if self.display.form == Form::Csv {
            return;
        }
        let (rate, mean_ms, all) = (now.rate(), now.mean_ms(), self.so_far);
        let (rate_of_all, mean_of_all_ms, title) = (all.rate(), all.mean_ms(), &self.title);
        let line = format!(
            "{title}: rps={rate:.1} (overall: {rate_of_all:.1}) avg_msec={mean_ms:.3} (overall: {mean_of_all_ms:.3})"
        );
        out.screen(format!("{}{line}\r", self.wiped()));
        self.line_len = line.len();
    }

    /// Blanks over the line of progress, as the original writes them, even where there is no such line yet.
    fn wiped(&self) -> String {
        format!("{:1$}\r", "", self.line_len.max(1))
    }

    /// The report of the test.
    fn report(&self, ended: &Ended<'_>) -> String {
        let Ended { report: pummel_report::Report { measurement, summary, .. }, .. } = ended;
        let all = measurement.ops().all();
        let figures = Figures {
            completed: all.counts.completed,
            seconds: summary.seconds,
            rate: summary.totals.rate,
            times: all.times.of(Span::Service),
        };
        let (display, title) = (self.display, &*self.title);
        let nodes = measurement.cluster.as_ref().map(|cluster| asked_nodes(self.plan, cluster));
        match display.form {
            Form::Csv if self.is_first => [CSV_HEAD, &report::csv(title, &figures)].concat(),
            Form::Csv => report::csv(title, &figures),
            Form::Quiet => self.wiped() + &report::quiet(title, &figures),
            Form::Full => {
                let setting = Setting {
                    title,
                    clients: self.plan.groups[0].clients,
                    payload_bytes: display.payload_bytes,
                    keep_alive: self.plan.groups[0].churn.is_none(),
                    threads: display.threads,
                    servers: settings(measurement.evidence.as_ref()),
                    cluster: nodes.map(|nodes| (kind_of_nodes(display.program, self.plan), nodes.len())),
                    target_rate: display.target_rate,
                    rates: &self.rates,
                };
                self.wiped() + &report::full(&setting, &figures)
            }
        }
    }

    /// The words of the original for what ends the tests; `None` where nothing does.
    fn trouble(&self, measurement: &Measurement) -> Option<String> {
        if let Some(Reason::NotOpened { why: Some(Why::Trouble(trouble)), .. }) = &measurement.reason {
            // A greeting that is refused is an error reply.
            let said = trouble.what.strip_prefix("the server said: ");
            return Some(match (trouble.kind, said) {
                (TroubleKind::HandshakeRefused(_), Some(words)) => format!("Error from server: {words}"),
                _ => self.unconnected(&trouble.what),
            });
        }
        if let Some(message) = measurement.messages.keys().next() {
            return Some(format!("Error from server: {message}"));
        }
        let is_whole = measurement.ops().counts().failed() == 0 && measurement.status != Status::Partial;
        (!is_whole).then(|| {
            let why =
                measurement.reason.as_ref().map_or_else(|| "requests failed".to_owned(), reason::reason);
            format!("Error: {why}")
        })
    }

    fn refusal(&self, error: &Refused) -> String {
        match &error.cause {
            RefusedCause::Interrupted => "interrupted before anything was measured".to_owned(),
            RefusedCause::Unresolved { error, .. } => self.unconnected(error),
            RefusedCause::NotConnected => self.unconnected(&error.to_string()),
            RefusedCause::Other => error.to_string(),
        }
    }

    fn unconnected(&self, why: &str) -> String {
        let kind = match self.display.program {
            Program::Redis => "Redis",
            Program::Valkey => "server",
        };
        format!("Could not connect to {kind} at {}: {why}", self.display.server)
    }
}

impl Style for BenchmarkStyle<'_> {
    fn event(&mut self, event: Event<'_>, _: Moment, out: &mut StyleOutput) {
        match event {
            Event::Announced(_) if self.display.is_idle => {
                let clients = self.plan.groups[0].clients;
                out.output(format!(
                    "Creating {clients} idle connections and waiting forever (Ctrl+C when done)\n"
                ));
            }
            Event::PhaseBegan(_, _) if self.display.is_idle => {
                out.screen(format!("clients: {}\r", self.plan.groups[0].clients));
            }
            Event::Notice(words) => out.line(format_args!("WARNING: {}: {words}", self.title)),
            Event::Interval(interval) => self.show(interval, out),
            _ => {}
        }
    }

    fn end(&mut self, ended: &Ended<'_>, _: Moment, out: &mut StyleOutput) -> Exit {
        if let Some(error) = ended.refused {
            out.line(self.refusal(error));
            let is_interrupted = error.cause == RefusedCause::Interrupted;
            return if is_interrupted { Exit::Interrupted } else { Exit::Failed };
        }
        let measurement = ended.report.measurement;
        let is_told = measurement.started_unix_ns > 0 && !self.display.is_idle && !ended.stdout_is_taken;
        if is_told {
            if let Some(cluster) = measurement.cluster.as_ref().filter(|_| self.is_first) {
                out.screen(nodes_text(self.display.program, cluster));
            }
            out.screen(self.report(ended));
        }
        let is_without = self.plan.evidence && settings(measurement.evidence.as_ref()).is_empty();
        if is_told && self.display.form == Form::Full && is_without {
            out.line("WARNING: Could not fetch server CONFIG");
        }
        if let Some(words) = self.trouble(measurement).filter(|_| measurement.status != Status::Interrupted) {
            out.line(words);
            return Exit::Failed;
        }
        match measurement.status {
            Status::Interrupted => Exit::Interrupted,
            Status::Partial => Exit::Failed,
            Status::Complete => Exit::Complete,
        }
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (words.to_owned(), Exit::Failed)
    }

    fn doubted(&self) -> Doubted {
        Doubted::Service
    }
}

/// The settings of the servers that told them.
fn settings<'a>(evidence: Option<&'a Evidence>) -> Vec<ServerSettings<'a>> {
    let readings = evidence.into_iter().flat_map(|evidence| &evidence.servers);
    let readings = readings.filter_map(|server| server.reading.as_ref());
    let of = |reading: &'a ServerReading| {
        let setting = |name| Some(visible::words(reading.settings.get(name)?));
        Some(ServerSettings { save: setting("save")?, append_only: setting("appendonly")? })
    };
    readings.filter_map(of).collect()
}

/// The nodes of a cluster that the requests of a plan are sent to.
fn asked_nodes<'a>(plan: &Plan, cluster: &'a ClusterSeen) -> Vec<&'a ClusterNode> {
    let is_asked = |node: &&ClusterNode| match plan.cluster.read_from {
        ReadFrom::Primary => !node.is_replica,
        ReadFrom::Replica => node.is_replica,
        ReadFrom::PreferReplica | ReadFrom::Any => true,
    };
    cluster.nodes.iter().filter(is_asked).collect()
}

/// The program's word for the nodes that are asked.
fn kind_of_nodes(program: Program, plan: &Plan) -> &'static str {
    match (program, plan.cluster.read_from) {
        (Program::Redis, _) => "masters",
        (Program::Valkey, ReadFrom::Primary) => "primary",
        (Program::Valkey, ReadFrom::Replica) => "replica",
        (Program::Valkey, ReadFrom::PreferReplica | ReadFrom::Any) => "cluster",
    }
}

/// What stands before all reports on a cluster.
fn nodes_text(program: Program, cluster: &ClusterSeen) -> String {
    let masters = cluster.nodes.iter().filter(|node| !node.is_replica);
    let (head, label): (_, fn(usize) -> String) = match program {
        Program::Redis => ("master", |number| format!("Master {number}")),
        Program::Valkey => ("primary", |number| format!("Node {number}(Primary)")),
    };
    let lines = masters
        .enumerate()
        .map(|(number, node)| format!("{}: {}\n", label(number), visible::words(&node.name)));
    let lines: Vec<String> = lines.collect();
    format!("Cluster has {} {head} nodes:\n\n{}\n", lines.len(), lines.concat())
}
