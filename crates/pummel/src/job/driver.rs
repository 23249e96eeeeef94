//! The one driver of all command lines: it checks what a job needs, makes its runs, and writes what comes of them.
//!
//! What holds of every command line is here: result files are checked before anything is sent, notices are shown, the
//! JSON result is kept complete while a run goes on, a signal ends a run with its report, rows that were dropped are
//! counted and said, times that may not be believed are called so, and what cannot be written changes the exit status.
//! A front adds its [`Style`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pummel_engine::backend::tls::{Setup, TlsError};
use pummel_engine::clock;
use pummel_engine::run::inputs_of;
use pummel_engine::run::{Inputs, RunError, Watch, password_of};
use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::fleet::Fleet;
use pummel_fronts::job::{Job, UsageError};
use pummel_fronts::native::FRONT;
use pummel_fronts::outputs::ReportFormat;
use pummel_fronts::outputs::{files_of, taken};
use pummel_fronts::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use pummel_logic::arrival::steered_plan;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Phase, Plan, RatePoint, TlsOptions};
use pummel_logic::secrets::Secret;
use pummel_logic::time::Nanos;
use pummel_logic::workload::window::Finding;
use pummel_measure::calibration::unix_s;
use pummel_measure::counters::Turns;
use pummel_measure::events::{ConnectionEvent, Departure, Row};
use pummel_measure::events::{MemberFacts, Wants};
use pummel_measure::evidence::server_stats::ServerInterval;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::reason::Reason;
use pummel_measure::summary::Summary;
use pummel_report::anonymous::document_of;
use pummel_report::document::TrustResult;
use pummel_report::snapshot::SharedSnapshot;
use pummel_report::stored::ResultDocument;
use pummel_report::words::trust::{doubt, rate_doubt};
use pummel_report::{Ending, Report, anonymous, json, markdown};

use crate::build_info::BUILD;
use crate::front_inputs::PATHS;
use crate::job::calibration_store;
use crate::job::calibration_store::Stored;
use crate::job::detection::Detection;
use crate::job::large_load;
use crate::job::observers::{Observers, run_name};
use crate::job::outlets::{FrontFiles, Outlets};
use crate::job::probe;
use crate::job::provenance::told_command_line;
use crate::job::result_files::ResultFiles;
use crate::job::runner::{Dealing, NotRun, Runner, takes_part};
use crate::job::socket_files::check_sockets;
use crate::output::print;
use crate::stderr::say;
use crate::terminal::terminal;

/// How long a rest between two runs goes on before it looks for a signal.
const REST: Duration = Duration::from_millis(20);

/// What only the machine knows that sends the requests, where that is this one. Warns of what is not checked.
///
/// # Errors
/// Returns [`UsageError`] with the option when this machine cannot do the job.
pub fn check_here(job: &Job) -> Result<(), UsageError> {
    if job.plan.probe && job.fleet.is_some() {
        let accepted = "expected no agents with it: the probe is made from one machine".to_owned();
        return Err(UsageError::Value { flag: "--probe".to_owned(), value: "true".to_owned(), accepted });
    }
    if takes_part(&job.plan, job.fleet.as_ref()) {
        check_cpus(&job.plan)?;
        check_tls(&job.plan)?;
        check_sockets(&job.plan.servers)?;
    }
    if let Some(words) = large_load::words(&job.plan) {
        say(format_args!("WARNING: {words}"));
    }
    if job.plan.tls.as_ref().is_some_and(|options| options.insecure) {
        say(
            "WARNING: --tls-insecure: every certificate is accepted. The connections are encrypted, but the \
             servers' identity is not checked",
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
            accepted: format!("expected CPUs that this process may run on: {allowed:?}"),
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
        TlsError::Name(name) => ("--tls-server-name".to_owned(), name),
        TlsError::NoAuthorities | TlsError::Half | TlsError::Nameless(_) | TlsError::TwoNames { .. } => {
            return UsageError::Missing(format!("--tls: {error}"));
        }
    };
    UsageError::Value { flag, value: value.clone(), accepted: error.to_string() }
}

/// The files and the secret of a front that stand in no [`Job`].
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Files beside the results of all fronts.
    pub files: FrontFiles,
    /// The password of the plan's login, where the front has one of its own. Otherwise it is read as the plan says.
    pub password: Option<Secret>,
    /// What is known of the protocol of the servers.
    pub detection: Detection,
    /// Whether this process reads what its plans need also where agents may do all of the work.
    pub always_reads_inputs: bool,
    /// Other plans than that of the job that are run too, whose files agents may read.
    pub other_plans: Vec<ValidPlan>,
}

/// Runs a job of one run and writes its reports.
pub fn drive(job: &Job, extras: &Extras, style: &mut dyn Style) -> Exit {
    let mut driver = match Driver::prepare(job, extras, style) {
        Ok(driver) => driver,
        Err(exit) => return exit,
    };
    let result = driver.run(&job.plan, &Dealing::Evenly, style);
    let plan = plan_after(&job.plan, result.as_ref().ok());
    driver.conclude(&plan, result, style)
}

/// The plan that repeats a run: with the changes that were made by hand, if it was steered, and with the nodes of its cluster as
/// its servers.
fn plan_after<'a>(plan: &'a ValidPlan, measurement: Option<&Measurement>) -> Cow<'a, ValidPlan> {
    let changes = measurement.and_then(|measurement| measurement.steered.as_deref()).unwrap_or_default();
    let cluster = measurement.and_then(|measurement| measurement.cluster.as_ref());
    if changes.is_empty() && cluster.is_none() {
        return Cow::Borrowed(plan);
    }
    let mut after = steered_plan(plan, changes);
    if let Some(cluster) = cluster {
        after.servers = cluster.nodes.iter().map(|node| node.name.clone()).collect();
    }
    after.validate().map_or(Cow::Borrowed(plan), Cow::Owned)
}

/// The state that the runs of a job share.
pub struct Driver<'a> {
    job: &'a Job,
    other_plans: Vec<ValidPlan>,
    detection: Detection,
    interrupts: &'static AtomicU32,
    files: ResultFiles,
    outlets: Outlets,
    inputs: Inputs,
    /// Notices to print when the first run begins.
    notices: Vec<String>,
    /// The name of the job in metrics.
    run_name: String,
    /// The observers that show the runs.
    observers: Observers,
    /// What makes the runs: this process or agents. It is found with the first run.
    runner: Option<Runner>,
    /// Notices that were shown. The runs of a series give the same ones.
    shown: BTreeSet<String>,
    /// Whether the times of a run were doubted.
    has_doubted: bool,
}

impl<'a> Driver<'a> {
    /// Checks that everything can be read and written that a job needs, before anything is sent.
    ///
    /// # Errors
    /// Returns the exit status when something cannot be; the words are on standard error.
    pub fn prepare(job: &'a Job, extras: &Extras, style: &dyn Style) -> Result<Driver<'a>, Exit> {
        let fail = |words: String| fail(style, &words);
        let interrupts =
            sys::on_interrupt().map_err(|error| fail(format!("signals cannot be handled: {error}")))?;
        let conflict = job.outputs.files.conflict(job.outputs.format, &files_of(&job.plan), PATHS);
        if let Some((form, file, accepted)) = conflict {
            fail(format!("invalid value '{}' for '{}': {accepted}", file.display(), form.flag()));
            return Err(style.usage_status());
        }
        let own = &extras.files.own;
        for (index, (flag, path)) in own.iter().enumerate() {
            let results = job.outputs.files.iter().map(|(form, path)| (form.flag(), path));
            let earlier = own[..index].iter().map(|(flag, path)| ((*flag).to_owned(), path.as_path()));
            if let Some(accepted) = taken(path, results.chain(earlier), &files_of(&job.plan), PATHS) {
                fail(format!("invalid value '{}' for '{flag}': {accepted}", path.display()));
                return Err(style.usage_status());
            }
        }
        let unwritten = |error: io::Error| fail(error.to_string());
        let files = ResultFiles::prepare(&job.outputs.files, &job.plan).map_err(unwritten)?;
        let outlets = Outlets::prepare(&extras.files, files.take_standard_output()).map_err(unwritten)?;
        let run_name = run_name(&job.plan, clock::wall());
        let reads_inputs = extras.always_reads_inputs || takes_part(&job.plan, job.fleet.as_ref());
        let ready = ready(job, reads_inputs, &run_name);
        let ((inputs, notice), (observers, unshown)) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                let exit = fail(error.to_string());
                leave_reason(files, job, &job.plan, &NotRun::Unready(error.to_string()), style);
                return Err(exit);
            }
        };
        // Agents have passwords of their own.
        let password = match (&extras.password, &job.fleet) {
            (Some(password), _) => Some(password.clone()),
            (None, Some(_)) => None,
            (None, None) => password_of(&job.plan).map_err(|error| {
                fail(error.to_string());
                style.usage_status()
            })?,
        };
        let inputs = Inputs { password, ..inputs };
        let inputs = Inputs { steering: observers.steering(), ..inputs };
        if let Some(words) = observers.announcement() {
            say(words);
        }
        let mut outlets = outlets;
        if observers.replace_lines() {
            outlets.replace_progress();
        }
        let notices = [unshown.map(str::to_owned), notice].into_iter().flatten().collect();
        let shown = BTreeSet::new();
        Ok(Driver {
            job,
            other_plans: extras.other_plans.clone(),
            detection: extras.detection.clone(),
            interrupts,
            files,
            outlets,
            inputs,
            notices,
            run_name,
            observers,
            runner: None,
            shown,
            has_doubted: false,
        })
    }

    /// What makes the runs, found and ready. The runs of a series have one runner.
    ///
    /// # Errors
    /// Returns [`NotRun`] when an agent is not there or refuses, and when a signal came first.
    pub fn runner(&mut self) -> Result<&Runner, NotRun> {
        if self.runner.is_none() {
            let stop = || self.interrupts.load(Ordering::Relaxed) > 0;
            let others = self.other_plans.iter().map(|plan| &**plan);
            let plans: Vec<&Plan> = std::iter::once(&*self.job.plan).chain(others).collect();
            self.runner = Some(Runner::of(self.job.fleet.as_ref(), &plans, &self.run_name, &stop)?);
        }
        Ok(self.runner.as_ref().expect("it was found just now"))
    }

    /// The plan of the job.
    pub fn plan(&self) -> &Plan {
        &self.job.plan
    }

    /// Rests between two runs for so long, or until a signal comes.
    pub fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        while self.interrupts.load(Ordering::Relaxed) == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(REST));
        }
    }

    /// Exchanges what is known of the servers: the next run may be of other servers than the last one.
    pub fn swap_detection(&mut self, detection: &mut Detection) {
        std::mem::swap(&mut self.detection, detection);
    }

    /// Makes a run, to its end or until a signal comes.
    ///
    /// # Errors
    /// Returns [`NotRun`] when the run cannot begin. What goes wrong later is in the measurement.
    pub fn run(
        &mut self,
        plan: &ValidPlan,
        dealing: &Dealing,
        style: &mut dyn Style,
    ) -> Result<Measurement, NotRun> {
        self.tell(style, Event::Announced(plan));
        if let Some(snapshot) = self.observers.snapshot() {
            snapshot.lock().announce(plan);
        }
        self.notices.extend(self.observers.open_view(self.interrupts));
        for words in std::mem::take(&mut self.notices) {
            self.tell(style, Event::Notice(&words));
        }
        let detected = match self.detected(plan, style).and_then(|detected| self.runner().map(|_| detected)) {
            Ok(detected) => detected,
            Err(error) => {
                if let Some(snapshot) = self.observers.snapshot() {
                    snapshot.lock().end(plan, None);
                }
                return Err(error);
            }
        };
        let Driver { job, interrupts, files, outlets, inputs, observers, runner, shown, .. } = self;
        let stop = || interrupts.load(Ordering::Relaxed) > 0;
        let front = job.front;
        let snapshot = observers.snapshot().cloned();
        let mut watching = Watching {
            plan: Cow::Borrowed(plan),
            asked: plan,
            front,
            files,
            outlets,
            observers,
            shown,
            snapshot,
            style,
        };
        let runner = runner.as_ref().expect("it was found above");
        let mut result = runner.run(plan, dealing, inputs, &mut watching, &stop);
        let unprobed = match &mut result {
            Ok(measurement) if plan.probe => probe::add(plan, runner, inputs, measurement, &stop).err(),
            _ => None,
        };
        if let Some(why) = unprobed {
            self.tell(style, Event::Notice(&format!("the server was not probed: {why}")));
        }
        if let Ok(measurement) = &mut result {
            measurement.detected = detected;
            self.add_calibration(measurement, style);
        }
        let plan: &ValidPlan = &plan_after(plan, result.as_ref().ok());
        self.outlets.clear_block();
        self.tell(style, Event::RunOver(plan, result.as_ref().ok()));
        let summary = result.as_ref().ok().map(|measurement| Summary::of(measurement, plan));
        if let Some(snapshot) = self.observers.snapshot() {
            snapshot.lock().end(plan, result.as_ref().ok().zip(summary.as_ref()));
        }
        let doubt = summary.and_then(|summary| {
            let trust = TrustResult::of(plan, &summary);
            match style.doubted() {
                Doubted::Nothing => None,
                Doubted::Service => rate_doubt(&trust),
                Doubted::Response => doubt(&trust).or_else(|| rate_doubt(&trust)),
            }
        });
        // The runs of a series have doubts of one kind.
        if let Some(doubt) = doubt.filter(|_| !std::mem::replace(&mut self.has_doubted, true)) {
            self.tell(style, Event::Notice(&doubt));
        }
        result
    }

    /// What the servers of a plan were found to speak, where they were asked.
    ///
    /// # Errors
    /// Returns [`NotRun::Server`] where what was found lets no run begin, and [`NotRun::Interrupted`] where the user ended the
    /// question.
    fn detected(&mut self, plan: &Plan, style: &mut dyn Style) -> Result<Option<String>, NotRun> {
        match self.detection.clone() {
            Detection::Refused(why) => return Err(NotRun::Server(why)),
            Detection::Interrupted => return Err(NotRun::Interrupted),
            Detection::Found(words) => return Ok(Some(words)),
            // In this process the run meets the same obstacle, and tells it.
            Detection::Assumed(why) if self.job.fleet.is_some() => {
                let protocol = plan.protocol.name();
                let words = format!(
                    "the servers could not be asked for their protocol from here ({why}): {protocol} is assumed"
                );
                self.tell(style, Event::Notice(&words));
                self.detection = Detection::Unasked;
            }
            Detection::Unasked | Detection::Assumed(_) => {}
        }
        Ok(None)
    }

    /// Passes an event on and writes what the style makes of it.
    pub fn tell(&mut self, style: &mut dyn Style, event: Event<'_>) {
        let mut out = StyleOutput::default();
        style.event(event, moment(), &mut out);
        self.outlets.write(&mut out);
    }

    /// Writes text that belongs to no event.
    pub fn say(&mut self, out: &mut StyleOutput) {
        self.outlets.write(out);
    }

    /// Gives the terminal back, where a screen has it.
    pub fn close_view(&mut self) {
        self.observers.close_view();
    }

    /// Shows the end of the job for as long as `--metrics-linger` says, and pushes its result.
    ///
    /// # Errors
    /// Returns the error of the push.
    pub fn close(&mut self) -> io::Result<()> {
        close(&mut self.observers, self.interrupts)
    }

    /// Writes the reports of the last run, and whatever still waits. Returns the exit status.
    pub fn conclude(
        mut self,
        plan: &ValidPlan,
        result: Result<Measurement, NotRun>,
        style: &mut dyn Style,
    ) -> Exit {
        self.observers.close_view();
        let (mut measurement, refused) = match result {
            Ok(measurement) => (measurement, None),
            // The command line is wrong: nothing was tried, and there is nothing to report.
            Err(error @ (NotRun::Here(RunError::Plan(_)) | NotRun::Usage(_))) => {
                fail(style, &error.to_string());
                if self.job.fleet.is_some() {
                    leave_reason(std::mem::take(&mut self.files), self.job, plan, &error, style);
                }
                self.outlets.finish(true);
                self.observers = Observers::default();
                return style.usage_status();
            }
            Err(error) => (not_run(plan, &error, self.job.fleet.as_ref()), Some(error)),
        };
        measurement.argv = told_command_line(plan);
        if let Some(words) = self.files.settle(&mut measurement) {
            self.tell(style, Event::Notice(&words));
        }
        let summary = Summary::of(&measurement, plan);
        let front = self.job.front;
        let ending = ending(self.job.front, refused.as_ref());
        let report =
            Report { plan, measurement: &measurement, summary: &summary, front, build: BUILD, ending };
        let stdout_is_taken = self.files.take_standard_output();
        let mut out = StyleOutput::default();
        let refused = refused.as_ref().map(NotRun::told);
        let ended = Ended { report, refused: refused.as_ref(), stdout_is_taken, terminal: terminal() };
        let exit = style.end(&ended, moment(), &mut out);
        // Files first: standard output may not be read yet.
        let written = self.files.finish(|| result_of(&report));
        self.outlets.write(&mut out);
        let delivered = self.outlets.finish(style.lets_readers_leave());
        for words in &delivered.notices {
            let mut out = StyleOutput::default();
            style.event(Event::Notice(words), moment(), &mut out);
            out.take().into_iter().for_each(Outlets::write_late);
        }
        let troubles = [written.err(), delivered.trouble, close(&mut self.observers, self.interrupts).err()];
        exit_after(exit, troubles.into_iter().flatten(), style)
    }

    /// Adds what is known of the instrument on this machine, where this process made all requests.
    fn add_calibration(&mut self, measurement: &mut Measurement, style: &mut dyn Style) {
        let Some(backend) = measurement.generator.backends.first().filter(|_| measurement.agents.is_none())
        else {
            return;
        };
        match calibration_store::load(backend.name(), unix_s(clock::wall())) {
            Stored::Valid(calibrated) => measurement.calibration = Some(*calibrated),
            Stored::Stale if self.job.front == FRONT => self.tell(style, Event::Notice(STALE)),
            Stored::Stale | Stored::None => {}
        }
    }
}

/// Shows the end of a job, and pushes its result.
fn close(observers: &mut Observers, interrupts: &AtomicU32) -> io::Result<()> {
    std::mem::take(observers).finish(&|| interrupts.load(Ordering::Relaxed) > 0)
}

/// The word about calibrations that do not hold any more.
const STALE: &str = "what is stored of the instrument is of another machine, kernel or version, or more than 30 days old: \
                     `pummel calibrate` makes it anew";

/// What a job reads, with a notice about it.
type InputsRead = (Inputs, Option<String>);

/// The observers of a job, with a notice about them.
type ObserversShown = (Observers, Option<&'static str>);

/// What a job needs before its first run: what its plan reads, where `reads_inputs` says so, and its observers.
///
/// # Errors
/// Returns the system's error for a file that cannot be read, and for an address where nothing can listen.
fn ready(job: &Job, reads_inputs: bool, run_name: &str) -> io::Result<(InputsRead, ObserversShown)> {
    let read = if reads_inputs { inputs_of(&job.plan)? } else { (Inputs::default(), None) };
    Ok((read, Observers::start(job, run_name)?))
}

/// Makes a result of the reason for which a run did not begin: the results in its files would be those of another run. A report for
/// programs goes to standard output; people read the reason on standard error.
fn leave_reason(files: ResultFiles, job: &Job, plan: &ValidPlan, error: &NotRun, style: &dyn Style) {
    let mut measurement = not_run(plan, error, job.fleet.as_ref());
    measurement.argv = told_command_line(plan);
    let summary = Summary::of(&measurement, plan);
    let (front, ending) = (job.front, ending(job.front, Some(error)));
    let report = Report { plan, measurement: &measurement, summary: &summary, front, build: BUILD, ending };
    let printed = match job.outputs.format {
        _ if files.take_standard_output() => Ok(()),
        ReportFormat::Json => print(&json::render(&document_of(&report))),
        ReportFormat::Markdown => print(&markdown::of_run(&document_of(&report))),
        ReportFormat::Text => Ok(()),
    };
    for error in [files.finish(|| result_of(&report)), printed].into_iter().filter_map(io::Result::err) {
        fail(style, &error.to_string());
    }
}

/// The result of a run as it is written.
fn result_of(report: &Report<'_>) -> ResultDocument {
    ResultDocument::Run(Box::new(document_of(report)))
}

/// What the exit status of a run rests on beside its result. The statuses of other command lines are theirs.
fn ending(front: &str, refused: Option<&NotRun>) -> Ending {
    match (front, refused) {
        (FRONT, Some(why)) if why.is_usage() => Ending::Usage,
        (FRONT, _) => sys::first_signal_number().map_or(Ending::OfResult, Ending::Signal),
        _ => Ending::Open,
    }
}

/// Says in a front's form what cannot be done. Returns its exit status.
fn fail(style: &dyn Style, words: &str) -> Exit {
    let (line, exit) = style.failure(words);
    say(line);
    exit
}

/// The exit status of a command of which this could not be done too, told in a front's form.
pub fn exit_after(exit: Exit, troubles: impl IntoIterator<Item = io::Error>, style: &dyn Style) -> Exit {
    troubles.into_iter().fold(exit, |exit, error| match fail(style, &error.to_string()) {
        // A script ends with the run that is interrupted, whatever else could not be done.
        _ if exit == Exit::Interrupted => exit,
        failed => failed,
    })
}

fn moment() -> Moment {
    Moment { now_ns: clock::now(), wall_ns: clock::wall(), local_time: sys::local_time }
}

/// Watches one run: its results are kept, and its events become text.
struct Watching<'a> {
    /// The plan of the run, with the changes that were made by hand so far, if it is steered.
    plan: Cow<'a, Plan>,
    /// The plan that the run was started with.
    asked: &'a Plan,
    front: &'a str,
    files: &'a mut ResultFiles,
    outlets: &'a mut Outlets,
    observers: &'a mut Observers,
    shown: &'a mut BTreeSet<String>,
    /// State that metrics and the live view show; `None` without both.
    snapshot: Option<SharedSnapshot>,
    style: &'a mut dyn Style,
}

impl Watching<'_> {
    /// Draws the block of lines, where a terminal shows one.
    fn draw(&mut self) {
        if let Some(lines) = self.observers.block() {
            self.outlets.show_block(&lines);
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut out = StyleOutput::default();
        self.style.event(event, moment(), &mut out);
        self.outlets.write(&mut out);
    }
}

impl Watch for Watching<'_> {
    fn wants(&self) -> Wants {
        let own = self.style.wants();
        let keep = if self.files.want_histograms() { Keep::Histograms } else { own.keep };
        Wants {
            rows: own.rows || self.files.want_rows(),
            keep,
            connections: own.connections || self.snapshot.is_some(),
            ..own
        }
    }

    fn notice(&mut self, words: &str) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().message(clock::now(), words);
        }
        if self.shown.insert(words.to_owned()) {
            self.tell(Event::Notice(words));
        }
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        if phase.recorded {
            self.files.begin(at);
        }
        if let Some(snapshot) = &self.snapshot {
            let moment = moment();
            let wall_ns = (moment.wall_ns + at).saturating_sub(moment.now_ns);
            snapshot.lock().begin(phase, at, wall_ns);
        }
        self.tell(Event::PhaseBegan(phase, at));
    }

    fn progress(&mut self, phase: &Phase, ended: u64, of: Option<u64>) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().progress(ended, of);
        }
        self.draw();
        self.tell(Event::Progress(phase, ended, of));
    }

    fn slice(&mut self, so_far: &Measurement) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().slice(&self.plan, so_far);
        }
        self.draw();
        self.tell(Event::Slice(so_far));
        if self.files.want_checkpoint() {
            let summary = Summary::of(so_far, &self.plan);
            let report = Report {
                plan: &self.plan,
                measurement: so_far,
                summary: &summary,
                front: self.front,
                build: BUILD,
                ending: Ending::Open,
            };
            self.files.checkpoint(&result_of(&report));
        }
    }

    fn interval(&mut self, interval: &mut Interval) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().add(&self.plan, interval);
        }
        self.tell(Event::Interval(interval));
    }

    fn worker_turns(&mut self, worker: usize, turns: &Turns) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().worker(worker, turns);
        }
    }

    fn steered(&mut self, changes: &[RatePoint], resumes_at: Option<f64>) {
        self.plan = Cow::Owned(steered_plan(self.asked, changes));
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().steered(&self.plan, resumes_at);
        }
    }

    fn members(&mut self, members: &[MemberFacts]) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().members = members.to_vec();
        }
    }

    fn server_intervals(&mut self, newest: &[Option<ServerInterval>]) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().server_intervals = newest.to_vec();
        }
    }

    fn finding(&mut self, connection: u64, finding: &Finding) {
        self.tell(Event::Finding(connection, finding));
    }

    fn complaint(&mut self, connection: u64, words: &[u8]) {
        self.tell(Event::Complaint(connection, words));
    }

    fn connection(&mut self, server: usize, event: ConnectionEvent) {
        if let Some(snapshot) = &self.snapshot {
            snapshot.lock().connection(event);
        }
        self.tell(Event::Connection(server, event));
    }

    fn rows(&mut self, rows: &[Row]) {
        self.files.rows(rows);
        self.tell(Event::Rows(rows));
    }

    fn departures(&mut self, gone: &[Departure]) {
        self.tell(Event::Departures(gone));
    }
}

/// The result of a run that could not begin, by these agents or in this process.
pub fn not_run(plan: &Plan, error: &NotRun, fleet: Option<&Fleet>) -> Measurement {
    let names = plan.groups.iter().map(|group| group.name.clone());
    let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
    measurement.connections.asked = pummel_engine::resolve::connections(plan);
    let status = if let NotRun::Interrupted = error { Status::Interrupted } else { Status::Partial };
    let agents = fleet.map(Fleet::agent_names).unwrap_or_default();
    let what = anonymous::sentence(&error.to_string(), plan, &agents, &[]);
    measurement.mark(status, Reason::NotBegun { what });
    measurement
}
