//! From a job to its end: the places for reports are checked, the plan is run, the reports are written.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use pummel_engine::backend::tls::{Setup, TlsError};
use pummel_engine::run::{Inputs, RunError, Wants, Watch, password_of};
use pummel_engine::sys;
use pummel_engine::worker::messages::Row;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::{Phase, Plan, TlsOptions};
use pummel_logic::time::Nanos;

use crate::exit_status::{Exit, answer};
use crate::job::inputs::supplies_of;
use crate::job::progress::Progress;
use crate::job::result_files::Places;
use crate::job::runner::{NotRun, Runner, takes_part};
use crate::job::{Format, Job, UsageError};
use crate::native::report;
use crate::report::output::print;
use crate::report::{Report, json};
use crate::stderr::{say, settle};

/// Runs a job and writes its reports.
pub fn execute(job: Job) -> Exit {
    let interrupts = match sys::on_interrupt() {
        Ok(interrupts) => interrupts,
        Err(error) => return failed(&format!("signals cannot be handled: {error}")),
    };
    if let Err(error) = check_here(&job) {
        return answer(&error.into());
    }
    match Desk::prepare(&job) {
        Ok(desk) => desk.run(interrupts),
        Err(error) => failed(&error.to_string()),
    }
}

/// What only the machine knows that sends the requests, where that is this one. Warns of what is not checked.
///
/// # Errors
/// Returns [`UsageError`] with the option when this machine cannot do the job.
pub fn check_here(job: &Job) -> Result<(), UsageError> {
    if takes_part(&job.plan, job.fleet.as_ref()) {
        check_cpus(&job.plan)?;
        check_tls(&job.plan)?;
    }
    if job.plan.tls.as_ref().is_some_and(|options| options.insecure) {
        say(
            "WARNING: --tls-insecure: every certificate is accepted. The connections are encrypted, but to whom is not \
             known",
        );
    }
    Ok(())
}

/// Whether this process may run on the CPUs of the plan; what the machine has, no plan can know.
///
/// # Errors
/// Returns [`UsageError::Value`] with the first CPU of the plan that this process may not run on.
pub fn check_cpus(plan: &Plan) -> Result<(), UsageError> {
    let Ok(allowed) = sys::allowed_cpus() else { return Ok(()) };
    match plan.engine.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(UsageError::Value {
            flag: "--cpus".to_owned(),
            value: cpu.to_string(),
            accepted: format!("CPUs that this process may run on are accepted: {allowed:?}"),
        }),
        None => Ok(()),
    }
}

/// Whether the files of TLS can be used.
fn check_tls(plan: &Plan) -> Result<(), UsageError> {
    let Some(options) = &plan.tls else { return Ok(()) };
    Setup::new(options, &[]).map_err(|error| tls_usage(options, &error))?;
    Ok(())
}

fn tls_usage(options: &TlsOptions, error: &TlsError) -> UsageError {
    let flags_of = |path: &str| {
        let files = [("--tls-ca", &options.ca), ("--tls-cert", &options.cert), ("--tls-key", &options.key)];
        let named = files.iter().filter(|(_, file)| file.as_deref() == Some(path)).map(|(flag, _)| *flag);
        named.collect::<Vec<_>>().join(", ")
    };
    let (flag, value) = match error {
        TlsError::Unreadable { path, .. } | TlsError::Content { path, .. } => (flags_of(path), path),
        TlsError::Identity { key, .. } => (flags_of(key), key),
        TlsError::Name { name } => ("--tls-server-name".to_owned(), name),
        TlsError::NoAuthorities | TlsError::Half | TlsError::Nameless { .. } | TlsError::TwoNames { .. } => {
            return UsageError::Missing(format!("--tls: {error}"));
        }
    };
    UsageError::Value { flag, value: value.clone(), accepted: error.to_string() }
}

fn failed(what: &str) -> Exit {
    say(format_args!("error: {what}"));
    Exit::Failed
}

/// A job with its reports' places.
struct Desk<'a> {
    job: &'a Job,
    places: Places,
    progress: Progress,
}

impl<'a> Desk<'a> {
    /// Checks that everything can be written, before anything is sent.
    fn prepare(job: &'a Job) -> io::Result<Desk<'a>> {
        let places = Places::prepare(&job.outputs, &job.plan)?;
        Ok(Desk { job, places, progress: Progress::new(job.outputs.quiet) })
    }

    fn run(mut self, interrupts: &AtomicU32) -> Exit {
        let plan = &self.job.plan;
        let fleet = self.job.fleet.as_ref();
        let supplies = match takes_part(plan, fleet).then(|| supplies_of(plan)).transpose() {
            Ok(supplies) => supplies.unwrap_or_default(),
            Err(error) => return failed(&error.to_string()),
        };
        // Agents have passwords of their own.
        let password = match if fleet.is_none() { password_of(plan) } else { Ok(None) } {
            Ok(password) => password,
            Err(error) => {
                say(format_args!("error: {error}"));
                return Exit::Usage;
            }
        };
        let supplies = Inputs { password, ..supplies };
        self.progress.announce(plan);
        let stop = || interrupts.load(Ordering::Relaxed) > 0;
        let result =
            Runner::of(fleet, &stop).and_then(|runner| runner.run(plan, &supplies, &mut self, &stop));
        self.progress.end();
        let (mut measurement, refused) = match result {
            Ok(measurement) => (measurement, None),
            // The command line is wrong: nothing was tried, and there is nothing to report.
            Err(NotRun::Here(RunError::Plan(what)) | NotRun::Usage(what)) => {
                say(format_args!("error: {what}"));
                return Exit::Usage;
            }
            Err(error) => (not_run(plan, &error), Some(error)),
        };
        self.places.settle(&mut measurement).iter().for_each(say);
        let exit = exit_of(&measurement, plan, refused.as_ref());
        if let Some(error) = refused {
            say(format_args!("error: {error}"));
        }
        match self.write(&measurement) {
            Ok(()) => exit,
            Err(error) => failed(&error.to_string()),
        }
    }

    /// Writes every report. Where several places fail, all others are written all the same.
    fn write(self, measurement: &Measurement) -> io::Result<()> {
        let plan = &self.job.plan;
        let summary = Summary::of(measurement, plan);
        let report = Report { plan, measurement, summary: &summary, front: self.job.front.name() };
        let is_taken = self.places.take_standard_output();
        // Files first: standard output may not be read yet.
        let written = self.places.finish(&report);
        // In the order in which it was said, where both go to one terminal.
        settle();
        let printed = if is_taken { Ok(()) } else { print_report(self.job, &report) };
        written.and(printed)
    }
}

/// What goes to standard output.
fn print_report(job: &Job, report: &Report<'_>) -> io::Result<()> {
    let bytes = match (job.outputs.format, job.front) {
        (Format::Json, _) => json::render(report),
        (Format::Text, _) => report::render(report).into_bytes(),
    };
    print(&bytes)
}

impl Watch for Desk<'_> {
    fn wants(&self) -> Wants {
        let keep = if self.places.want_histograms() { Keep::Histograms } else { Keep::Figures };
        Wants { rows: self.places.want_rows(), departures: false, keep, outstanding: false }
    }

    fn notice(&mut self, words: &str) {
        // Whoever wants quiet: it changes what the result is of.
        say(format_args!("WARNING: {words}"));
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        self.progress.begin(phase);
        if phase.recorded {
            self.places.begin(at);
        }
    }

    fn progress(&mut self, phase: &Phase, ended: u64, of: Option<u64>) {
        self.progress.count(phase, ended, of);
    }

    fn slice(&mut self, so_far: &Measurement) {
        if let Some(slice) = so_far.intervals.last() {
            self.progress.slice(slice);
        }
        if !self.places.want_checkpoint() {
            return;
        }
        let plan = &self.job.plan;
        let summary = Summary::of(so_far, plan);
        let front = self.job.front.name();
        self.places.checkpoint(&Report { plan, measurement: so_far, summary: &summary, front });
    }

    fn rows(&mut self, rows: &[Row]) {
        self.places.rows(rows);
    }
}

/// The result of a run that could not begin.
pub fn not_run(plan: &Plan, error: &NotRun) -> Measurement {
    let names = plan.groups.iter().map(|group| group.name.clone());
    let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
    measurement.connections.asked = pummel_engine::resolve::connections(plan);
    let status = if let NotRun::Interrupted = error { Status::Interrupted } else { Status::Partial };
    measurement.mark(status, error.to_string());
    measurement
}

fn exit_of(measurement: &Measurement, plan: &Plan, refused: Option<&NotRun>) -> Exit {
    if let Some(NotRun::Here(RunError::Plan(_) | RunError::Tls(_))) = refused {
        return Exit::Usage;
    }
    match measurement.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Partial => Exit::Failed,
        Status::Complete => {
            let summary = Summary::of(measurement, plan);
            let failed = measurement.verify.failed > 0 || measurement.verify.stale > 0;
            if failed || summary.missed_a_goal() { Exit::Missed } else { Exit::Complete }
        }
    }
}
