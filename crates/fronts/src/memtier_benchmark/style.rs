//! The words of memtier_benchmark's command line about its runs: progress, reports, and what goes wrong.

use std::path::PathBuf;

use pummel_logic::plan::Plan;
use pummel_logic::time::{Nanos, SECOND, seconds};
use pummel_measure::connections::TroubleKind;
use pummel_measure::events::Wants;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::reason::{Reason, Why};
use pummel_report::visible;
use pummel_report::words::reason;

use crate::exit_status::Exit;
use crate::memtier_benchmark::client_stats::ClientStats;
use crate::memtier_benchmark::display::Display;
use crate::memtier_benchmark::figures::{RunFigures, SecondFigures};
use crate::memtier_benchmark::{MemtierRun, NAME, json, report};
use crate::so_far::SoFar;
use crate::style::{Doubted, Ended, Event, Moment, RefusedCause, Style, StyleOutput};

/// Blocks of the longest bar of the steps of clients.
const BAR_BLOCKS: u64 = 20;

/// The words of memtier_benchmark about one run.
#[derive(Debug)]
pub struct MemtierStyle<'a> {
    run: &'a MemtierRun,
    so_far: SoFar,
    /// The last interval.
    last: SoFar,
    seconds: Vec<SecondFigures>,
    /// The requests of each client, where their tables are wanted.
    clients: ClientStats,
    /// Whether a line of progress stands where the next line is written.
    is_over_progress: bool,
}

impl<'a> MemtierStyle<'a> {
    /// The words about this run.
    pub fn new(run: &'a MemtierRun) -> MemtierStyle<'a> {
        MemtierStyle {
            run,
            so_far: SoFar::default(),
            last: SoFar::default(),
            seconds: Vec::new(),
            clients: ClientStats::default(),
            is_over_progress: false,
        }
    }

    fn display(&self) -> &'a Display {
        &self.run.display
    }

    fn plan(&self) -> &'a Plan {
        &self.run.job.plan
    }

    /// What stands before the run.
    fn announce(&self, out: &mut StyleOutput) {
        let (display, number) = (self.display(), self.run.number);
        let options = &display.options;
        if number == 1 {
            if let Some(path) = &options.json_out_file {
                out.line(format_args!("Json file {path} created..."));
            }
            match &options.out_file {
                Some(path) => out.line(format_args!("Writing results to {path}...")),
                None => {
                    out.line("Writing results to stdout");
                    out.report(report::head(display));
                }
            }
        }
        out.line(format_args!("[RUN #{number}] Preparing benchmark client..."));
        if options.clients_start > 0 {
            out.error(self.staircase());
        }
        out.line(format_args!("[RUN #{number}] Launching threads now..."));
    }

    /// The lines about the steps of the number of clients.
    fn staircase(&self) -> String {
        let options = &self.display().options;
        let (threads, most) = (options.threads, options.clients);
        let mut text = format!(
            "[RUN #{}] Client staircase pattern (per thread x {threads} threads):\n",
            self.run.number
        );
        let parts = &self.plan().changes.parts;
        let end_s = u64::from(options.test_time_s);
        for (at, part) in parts.iter().enumerate() {
            let begin_s = part.at_ns / SECOND;
            let next_s = parts.get(at + 1).map_or(end_s, |next| next.at_ns / SECOND);
            let clients = u64::from(part.connections.unwrap_or(0) / threads.max(1));
            let blocks = "█".repeat((clients * BAR_BLOCKS / u64::from(most.max(1))) as usize);
            let mark = if clients == u64::from(most) { "  (max)" } else { "" };
            text +=
                &format!("  Step {at}: {begin_s:3}s - {next_s:3}s : {clients:3} clients  {blocks}{mark}\n");
        }
        let all = u64::from(most) * u64::from(threads);
        text += &format!("  Total max connections: {most} x {threads} = {all}\n");
        let steps = (most - options.clients_start).div_ceil(options.clients_step.max(1));
        let needed_s = u64::from(steps) * u64::from(options.step_duration_s);
        text += &match needed_s <= end_s {
            true => format!("  Minimum time to reach max: {needed_s}s (test_time: {end_s}s OK)\n"),
            false => format!(
                "  WARNING: test_time ({end_s}s) < time to reach max clients ({needed_s}s), max will not be reached\n"
            ),
        };
        text + "\n"
    }

    /// Shows an interval, and keeps its second.
    fn show(&mut self, interval: &mut Interval, out: &mut StyleOutput) {
        self.display().add_second(interval, &mut self.seconds);
        let now = SoFar::of(interval);
        self.so_far.add(now);
        (self.last, self.is_over_progress) = (now, true);
        out.overwritten(self.progress(self.display().options.threads, interval.end_ns));
    }

    /// A line of progress. `threads` is the number of those that run.
    fn progress(&self, threads: u32, since_ns: Nanos) -> String {
        let (now, all, options) = (self.last, self.so_far, &self.display().options);
        let percent = match self.display().requests {
            Some(each) => {
                100.0 * all.completed as f64 / (each as f64 * f64::from(self.plan().groups[0].clients))
            }
            None => 100.0 * seconds(since_ns) / f64::from(options.test_time_s),
        };
        let on_stage = match self.plan().connections_at(since_ns.saturating_sub(1)) {
            Some(connections) => connections as u32 / options.threads.max(1),
            None => options.clients,
        };
        format!(
            "[RUN #{} {:.0}%, {:3} secs] {threads:2} threads {on_stage:2} conns: {:11} ops, {:7.0} (avg: {:7.0}) ops/sec, \
             {} (avg: {}), {:5.2} (avg: {:5.2}) msec latency",
            self.run.number,
            percent.min(100.0),
            since_ns / SECOND,
            all.completed,
            now.rate(),
            all.rate(),
            report::bytes_rate(now.per_second(now.bytes)),
            report::bytes_rate(all.per_second(all.bytes)),
            now.mean_ms(),
            all.mean_ms(),
        )
    }

    /// The words about servers' errors and lost connections.
    fn complaints(&self, measurement: &Measurement, out: &mut StyleOutput) {
        for (message, count) in &measurement.messages {
            let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
            let address = &self.display().address;
            out.line(format_args!(
                "server {address} handle error response: {}{times}",
                visible::words(message)
            ));
        }
        if measurement.status == Status::Partial {
            let why =
                measurement.reason.as_ref().map_or_else(|| "the run is not whole".to_owned(), reason::reason);
            out.line(format_args!("error: {why}"));
        }
        let failed = measurement.ops().counts().failed();
        if failed > 0 {
            out.line(format_args!("warning: {failed} requests failed; they are in no row and no time"));
        }
    }

    /// The words of the original for connections that could not be opened; `None` where they were.
    fn unopened(&self, measurement: &Measurement) -> Option<String> {
        let Some(Reason::NotOpened { why, .. }) = &measurement.reason else { return None };
        let Some(Why::Trouble(trouble)) = why else {
            return Some("error: no connection was opened".to_owned());
        };
        let said = trouble.what.strip_prefix("the server said: ");
        Some(match (trouble.kind, said) {
            (TroubleKind::HandshakeRefused(_), Some(words)) => {
                format!("error: authentication failed [{}]", visible::words(words))
            }
            _ => format!("Connection error: {}", trouble.what),
        })
    }

    /// Writes the reports of all runs so far, and their files.
    fn write_all(&self, stdout_is_taken: bool, out: &mut StyleOutput) {
        let display = self.display();
        let options = &display.options;
        let runs = self.run.figures.borrow();
        let titled = RunFigures::titled(&runs, options.run_count, options.print_all_runs);
        let text: String = titled.iter().map(|(title, run)| report::run(display, title, run)).collect();
        match &options.out_file {
            Some(path) => write_file(path, report::head(display) + &text, out),
            None if stdout_is_taken => {}
            None => out.report(text),
        }
        if let Some(path) = &options.json_out_file {
            write_file(path, json::document(display, &runs), out);
            out.line(format_args!("Saving JSON output file: {path}"));
            out.line("Json file closed.");
        }
    }

    /// Writes the tables of clients, where they are wanted.
    fn write_clients(&self, out: &mut StyleOutput) {
        let Some(prefix) = &self.display().options.client_stats else { return };
        let number = self.run.number;
        out.line(format_args!("[RUN {number}] Writing client stats files..."));
        for (path, text) in self.clients.files(self.display(), prefix, number) {
            write_file(&path, text, out);
        }
        let left_out = self.clients.left_out();
        if left_out > 0 {
            out.line(format_args!(
                "warning: --client-stats: {left_out} requests are in no second of the tables"
            ));
        }
    }

    /// Writes the files of the run's histograms.
    fn write_histograms(&self, run: &RunFigures, out: &mut StyleOutput) {
        let Some(prefix) = &self.display().options.hdr_prefix else { return };
        for file in report::histogram_files(self.display(), self.run.number, run) {
            let path = format!("{prefix}{}", file.name);
            out.line(format_args!("Writing {} to {path}...", file.what));
            write_file(&path, file.text, out);
        }
    }
}

fn write_file(path: &str, text: String, out: &mut StyleOutput) {
    out.file(PathBuf::from(path), Box::new(move |file| file.write_all(text.as_bytes())));
}

impl Style for MemtierStyle<'_> {
    fn wants(&self) -> Wants {
        Wants {
            rows: self.display().options.client_stats.is_some(),
            departures: false,
            keep: Keep::Figures,
            outstanding: false,
            connections: false,
        }
    }

    fn event(&mut self, event: Event<'_>, _: Moment, out: &mut StyleOutput) {
        match event {
            Event::Announced(_) => self.announce(out),
            Event::Notice(words) => {
                // A line of progress would show behind a shorter one.
                if std::mem::take(&mut self.is_over_progress) {
                    out.error("\n".to_owned());
                }
                out.line(format_args!("warning: {words}"));
            }
            Event::PhaseBegan(phase, at) if phase.recorded => self.clients = ClientStats::new(at),
            Event::Rows(rows) if self.display().options.client_stats.is_some() => {
                self.clients.add(&self.display().rows, rows);
            }
            Event::Interval(interval) => self.show(interval, out),
            _ => {}
        }
    }

    fn end(&mut self, ended: &Ended<'_>, _: Moment, out: &mut StyleOutput) -> Exit {
        if let Some(error) = ended.refused {
            out.line(match &error.cause {
                RefusedCause::Interrupted => "interrupted before anything was measured".to_owned(),
                RefusedCause::Unresolved { error, .. } => {
                    format!("{}: error: {error}", self.display().address)
                }
                RefusedCause::NotConnected => format!("Connection error: {error}"),
                RefusedCause::Other => format!("error: {error}"),
            });
            self.write_all(ended.stdout_is_taken, out);
            let is_interrupted = error.cause == RefusedCause::Interrupted;
            return if is_interrupted { Exit::Interrupted } else { Exit::Failed };
        }
        let measurement = ended.report.measurement;
        let is_begun = measurement.started_unix_ns > 0;
        if is_begun {
            out.overwritten(self.progress(0, measurement.measured_ns.max(measurement.answered_ns)));
            out.error("\n\n".to_owned());
        }
        let is_interrupted = measurement.status == Status::Interrupted;
        if is_interrupted {
            out.line(format_args!(
                "[RUN #{}] Interrupted by user (Ctrl+C) after {:.1} secs, stopping threads...",
                self.run.number,
                seconds(measurement.measured_ns)
            ));
        }
        let unopened = self.unopened(measurement).filter(|_| !is_interrupted);
        match &unopened {
            Some(words) => out.line(words),
            None => self.complaints(measurement, out),
        }
        if is_begun {
            let figures = self.display().figures(measurement, std::mem::take(&mut self.seconds));
            self.write_clients(out);
            self.write_histograms(&figures, out);
            self.run.figures.borrow_mut().push(figures);
        }
        let options = &self.display().options;
        let is_whole = measurement.status == Status::Complete && measurement.ops().counts().failed() == 0;
        let is_failed = unopened.is_some() || options.strict && !is_whole && !is_interrupted;
        if self.run.number == options.run_count || is_interrupted || is_failed {
            self.write_all(ended.stdout_is_taken, out);
        }
        match (is_failed, is_interrupted) {
            (true, _) => Exit::Failed,
            (false, true) => Exit::Interrupted,
            (false, false) => Exit::Complete,
        }
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (format!("{NAME}: error: {words}"), Exit::Failed)
    }

    fn doubted(&self) -> Doubted {
        Doubted::Service
    }
}
