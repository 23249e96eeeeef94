//! The words of mutilate's command line about a run: its lines on standard error, its report, its samples of reads.

use std::fmt::Display;
use std::io::{self, Write};

use pummel_logic::plan::{Group, Phase, Plan, Work};
use pummel_logic::protocol::Outcome;
use pummel_logic::time::{MICROSECOND, Nanos, seconds};
use pummel_measure::connections::TroubleKind;
use pummel_measure::events::{Row, Wants};
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::reason::Reason;
use pummel_measure::recorder::Counts;
use pummel_measure::summary::Summary;
use pummel_report::words::reason;

use crate::agent_variables::OF_CONTROLLERS;
use crate::exit_status::Exit;
use crate::mutilate::report::{Layout, local_rate, render};
use crate::mutilate::{DisplayOptions, Runs, Series};
use crate::style::{Doubted, Ended, Event, Moment, Style, StyleOutput};
use crate::style::{Refused, RefusedCause};

/// The status of everything that is wrong but the words of the command line.
pub const FATAL: Exit = Exit::Other(255);

/// The share of a rate that has to be unsent for a line about it, in per cent.
const UNSENT_MIN_PERCENT: f64 = 1.0;

/// Most notices of a run that are remembered, so that its reason does not repeat them.
const NOTICED_MAX: usize = 1_000;

/// A line in the original's form; its line numbers say nothing to a user.
pub fn line(text: impl Display) -> String {
    format!("mutilate.cc(0): {text}")
}

/// The words of mutilate.
pub struct MutilateStyle<'a> {
    runs: &'a Runs,
    display: &'a DisplayOptions,
    /// When the process started, on the monotonic clock.
    started: Nanos,
    /// What is said before the first run at the highest level.
    introduction: Vec<String>,
    /// No phase of this run has begun.
    is_first_phase: bool,
    /// What is under way, where it is not recorded.
    before: Option<Work>,
    misses: MissWindows,
    /// The requests of the last run that are saved.
    saved: Vec<SavedRequest>,
    /// For each group of the plan, whether its requests are those of this process.
    own_groups: Vec<bool>,
    /// What each group's machine is called.
    machines: Vec<String>,
    /// Nanoseconds to add to the monotonic clock for those since 1970, when the measured phase began.
    wall_ahead_ns: Nanos,
    /// Only reads that found something are saved.
    successes_only: bool,
    /// The rate of the first run of a search.
    peak: Option<f64>,
    /// The status of the first run that was not what was asked for.
    worst: Exit,
    /// What was said while the run went on.
    noticed: Vec<String>,
}

/// A request for `--save`.
#[derive(Clone, Copy, Debug)]
struct SavedRequest {
    sent: Nanos,
    latency_ns: Nanos,
    reads: bool,
    /// The group of the plan that it belongs to.
    group: usize,
}

impl<'a> MutilateStyle<'a> {
    /// The words about the runs of a command line, in a process that started at `started`. `introduction` is said before
    /// the first run at the highest level.
    pub fn new(runs: &'a Runs, started: Nanos, introduction: Vec<String>) -> MutilateStyle<'a> {
        let display = &runs.display;
        MutilateStyle {
            runs,
            display,
            started,
            introduction,
            is_first_phase: true,
            before: None,
            misses: MissWindows::new(display.miss_window),
            saved: Vec::new(),
            own_groups: Vec::new(),
            machines: Vec::new(),
            wall_ahead_ns: 0,
            successes_only: false,
            peak: None,
            worst: Exit::Complete,
            noticed: Vec::new(),
        }
    }

    /// The columns and rows of the report.
    pub fn layout(&self) -> Layout {
        let DisplayOptions { response, p50, all_rows, .. } = *self.display;
        Layout { response, p50, all_rows, peak: self.peak }
    }

    /// Notes that a later run of a series could not begin.
    pub fn note_failure(&mut self, error: &Refused) -> String {
        if self.worst == Exit::Complete {
            self.worst = if error.cause == RefusedCause::Interrupted { Exit::Interrupted } else { FATAL };
        }
        self.refusal(error)
    }

    /// Notes the rate of the first run of a search, which the report shows.
    pub fn note_peak(&mut self, peak: f64) {
        self.peak = Some(peak);
    }

    /// Whether lines of this level are said.
    pub fn says(&self, level: u32) -> bool {
        !self.display.quiet && self.display.verbose >= level
    }

    /// Says what the original says at the end of what was under way.
    fn end_phase(&mut self, out: &mut StyleOutput) {
        match self.before.take() {
            Some(Work::Load(_)) if self.says(2) => out.line(line("Finished loading.")),
            Some(Work::Mix(_) | Work::Replay(_)) if self.says(1) => out.line(line("Warmup stop.")),
            _ => {}
        }
    }

    fn announce(&mut self, plan: &Plan, out: &mut StyleOutput) {
        if self.says(2) {
            self.introduction.drain(..).for_each(|text| out.line(line(text)));
        }
        (self.is_first_phase, self.before) = (true, None);
        self.misses = MissWindows::new(self.display.miss_window);
        self.successes_only = plan.groups[0].policy.successes_only;
        let has_agents = !self.runs.agents.is_empty();
        self.own_groups = plan.groups.iter().map(|group| !has_agents || group.policy.here).collect();
        self.machines = plan.groups.iter().map(|group| group.name.clone()).collect();
        self.wall_ahead_ns = 0;
        self.saved.clear();
        self.noticed.clear();
    }

    fn begin_phase(&mut self, phase: &Phase, at: Nanos, moment: Moment, out: &mut StyleOutput) {
        if std::mem::take(&mut self.is_first_phase) {
            self.say_connected(out);
        }
        self.end_phase(out);
        if phase.recorded {
            if self.wall_ahead_ns == 0 {
                self.wall_ahead_ns = moment.wall_ns.saturating_sub(moment.now_ns);
            }
            if self.says(1) && self.runs.series == Series::Single {
                out.line(line(format_args!("started at {:.6}", moment.wall_ns as f64 / 1e9)));
            }
            return;
        }
        self.before = Some(phase.work.clone());
        match &phase.work {
            Work::Load(_) if self.says(1) => out.line(line("Loading database.")),
            Work::Mix(_) | Work::Replay(_) if self.says(1) => out.line(line("Warmup start.")),
            Work::Pause(pause) if self.says(1) && pause.until_ns > 0 => {
                let left_s = seconds(pause.until_ns.saturating_sub(at.saturating_sub(self.started)));
                out.line(line(format_args!("Sleeping {left_s:.1}s for -W.")));
            }
            _ => {}
        }
    }

    fn say_connected(&self, out: &mut StyleOutput) {
        let plan = &self.runs.job.plan;
        if self.says(1) && plan.login.is_some() {
            out.line(line("SASL authentication succeeded"));
        }
        if self.says(2) {
            plan.servers.iter().for_each(|server| out.line(line(format_args!("Connected to {server}."))));
        }
    }

    fn end_run(&mut self, plan: &Plan, measurement: Option<&Measurement>, out: &mut StyleOutput) {
        self.end_phase(out);
        let Some(measurement) = measurement else { return };
        self.machines = machines_of(plan, measurement);
        let exit = self.judge(plan, measurement, out);
        if self.worst == Exit::Complete {
            self.worst = exit;
        }
        if self.says(1) && self.runs.series == Series::Single && measurement.started_unix_ns > 0 {
            let stop_ns = measurement.started_unix_ns + measurement.measured_ns;
            let time_s = plan.phases.last().and_then(|phase| phase.stop.time_ns).map_or(0.0, seconds);
            let stopped = format!("stopped at {:.6}  options.time = {time_s:.0}", stop_ns as f64 / 1e9);
            out.line(line(stopped));
            if measurement.agents.is_some() {
                let summary = Summary::of(measurement, plan);
                let (rate, completed) = local_rate(plan, measurement, &summary);
                out.line(line(format_args!("Local QPS = {rate:.1} ({completed} / {:.1}s)", summary.seconds)));
            }
        }
    }

    fn take_rows(&mut self, rows: &[Row], out: &mut StyleOutput) {
        let DisplayOptions { ref save, save_all, .. } = *self.display;
        for row in rows.iter().filter(|row| save_all || row.verb.reads()) {
            let (reads, group) = (row.verb.reads(), row.group as usize);
            let is_own = self.own_groups.get(group).copied().unwrap_or_default();
            let Some(is_success) = success(row.outcome) else { continue };
            if reads
                && is_own
                && let Some(text) = self.misses.count(is_success)
            {
                out.output(text);
            }
            if save.is_some() && (save_all || is_own) && (is_success || !self.successes_only) {
                let latency_ns = row.arrived.saturating_sub(row.sent);
                self.saved.push(SavedRequest { sent: row.sent, latency_ns, reads, group });
            }
        }
    }

    /// Adds the requests to the file of `--save`, in the order in which they were sent.
    fn save(&mut self, out: &mut StyleOutput) {
        let Some(path) = self.display.save.as_ref().filter(|_| self.runs.saves()) else { return };
        out.report(format!("Saving latency samples to {}.\n", path.display()));
        let mut lines = SavedLines {
            requests: std::mem::take(&mut self.saved),
            started: self.started,
            machines: self.display.save_all.then(|| std::mem::take(&mut self.machines)),
            wall_ahead_ns: self.wall_ahead_ns,
        };
        out.file(path, Box::new(move |file| lines.write(file)));
    }

    /// What became of the run, said where it is not what was asked for.
    fn judge(&self, plan: &Plan, measurement: &Measurement, out: &mut StyleOutput) -> Exit {
        self.say_failures(measurement, out);
        self.say_unsent(measurement, out);
        if measurement.status == Status::Interrupted {
            return Exit::Interrupted;
        }
        let load = measurement.load.as_ref().filter(|load| load.stored < load.records);
        let reason = unsaid(measurement.reason.as_ref(), &self.noticed);
        let reason = reason.as_str();
        // What the run lacks is said with its load, where it is a part of that.
        let cause = match &measurement.reason {
            Some(Reason::Unstored(unstored)) => Some(&unstored.why),
            _ => None,
        };
        let mut exit = Exit::Complete;
        if let Some(load) = load {
            let message = load.messages.keys().next().map(|words| format!(": {words}"));
            let words = message.unwrap_or_else(|| cause.map(reason::behind).unwrap_or_default());
            let missing = load.records - load.stored;
            out.line(line(format_args!("{missing} of {} records were not stored{words}", load.records)));
            exit = FATAL;
        }
        if cause.is_some() && connections_held(measurement) {
            return exit;
        }
        if is_broken(plan, measurement) {
            let words = trouble(measurement.reason.as_ref(), reason, plan);
            let is_said = reason.is_empty();
            if !is_said && !words.ends_with(reason) {
                out.line(line(words));
            }
            if !is_said && cause.is_none() {
                out.line(line(reason));
            }
            exit = FATAL;
        } else if measurement.status == Status::Partial && cause.is_none() && !reason.is_empty() {
            out.line(line(reason));
        }
        exit
    }

    /// Says how many requests failed, with the servers' words.
    fn say_failures(&self, measurement: &Measurement, out: &mut StyleOutput) {
        let failed = measurement.ops().counts().failed();
        if failed == 0 {
            return;
        }
        let words: Vec<String> = measurement
            .messages
            .iter()
            .map(|(words, count)| format!("\"{words}\" ({count} times)"))
            .collect();
        out.line(line(format_args!("{failed} requests failed {}", words.join(", ")).to_string().trim_end()));
    }

    /// Says how much of the rate was not sent, which the original's report does not show.
    fn say_unsent(&self, measurement: &Measurement, out: &mut StyleOutput) {
        let share = unsent_percent(&measurement.ops().counts(), measurement.counters.skipped.requests);
        let rate = self.runs.qps();
        // A few are due and wait for their connections at any moment, and so when the run ends.
        if share >= UNSENT_MIN_PERCENT && rate > 0 && self.runs.series == Series::Single {
            out.line(line(format_args!("asked for {rate}/s, {share:.1} % not sent")));
        }
    }

    /// Why a run did not begin, in the original's words where it has some, and with what the front calls the options of
    /// agents.
    fn refusal(&self, error: &Refused) -> String {
        match &error.cause {
            RefusedCause::Unresolved { server, error } => {
                format!("Error while resolving '{}': {error}", self.runs.typed_server(server))
            }
            _ => of_agents(&error.to_string()),
        }
    }
}

/// The share of the requests due that were not sent, in per cent. Requests that `--skip` left out are in no count.
fn unsent_percent(counts: &Counts, skipped: u64) -> f64 {
    let due = counts.requests() + skipped;
    100.0 * (counts.unsent + skipped) as f64 / due.max(1) as f64
}

/// Words about agents, with the variables of this front in place of the options of others.
fn of_agents(words: &str) -> String {
    if ["showed no token", "showed a wrong token"].iter().any(|why| words.contains(why)) {
        // The variable of the agent has the same name, so that words about both would not tell them apart.
        let shown = words.split_once(": this agent was started with").map_or(words, |(shown, _)| shown);
        return format!(
            "{shown}; PUMMEL_AGENT_TOKEN_FILE names a file here whose first line is the word of the agent"
        );
    }
    let here = words.replace("--allow-version-mismatch of the controller", "--allow-version-mismatch here");
    let words = OF_CONTROLLERS.iter().fold(here, |words, (option, name)| match *option {
        "--allow-version-mismatch" => words.replace(option, &format!("{name}=1")),
        option => words.replace(option, name),
    });
    if words.starts_with("no agent at ") {
        return words + "; an agent without PUMMEL_AGENT_TOKEN_FILE listens on its loopback address alone";
    }
    words
}

impl Style for MutilateStyle<'_> {
    fn wants(&self) -> Wants {
        let saves = self.display.save.is_some() && self.runs.saves();
        let rows = saves || self.misses.every > 0;
        Wants { rows, departures: false, keep: Keep::Figures, outstanding: true, connections: false }
    }

    fn event(&mut self, event: Event<'_>, moment: Moment, out: &mut StyleOutput) {
        match event {
            Event::Announced(plan) => self.announce(plan, out),
            Event::Notice(words) => {
                out.line(line(format_args!("WARNING: {words}")));
                if self.noticed.len() < NOTICED_MAX {
                    self.noticed.push(words.to_owned());
                }
            }
            Event::PhaseBegan(phase, at) => self.begin_phase(phase, at, moment, out),
            Event::Rows(rows) => self.take_rows(rows, out),
            Event::RunOver(plan, measurement) => self.end_run(plan, measurement, out),
            _ => {}
        }
    }

    fn doubted(&self) -> Doubted {
        match (self.display.quiet, self.display.response) {
            (true, _) => Doubted::Nothing,
            (false, true) => Doubted::Response,
            (false, false) => Doubted::Service,
        }
    }

    fn end(&mut self, ended: &Ended<'_>, _: Moment, out: &mut StyleOutput) -> Exit {
        match ended.refused {
            Some(Refused { cause: RefusedCause::Interrupted, .. }) => {
                out.line(line("interrupted before anything was measured"));
                return Exit::Interrupted;
            }
            Some(error) => {
                out.line(line(self.refusal(error)));
                return FATAL;
            }
            None => {}
        }
        let measurement = ended.report.measurement;
        let exit = self.worst;
        if measurement.started_unix_ns == 0 {
            if exit == Exit::Interrupted {
                out.line(line("interrupted before anything was measured"));
            }
            return exit;
        }
        let is_shown = !self.display.load_only && !matches!(self.runs.series, Series::Scan { .. });
        if is_shown && !ended.stdout_is_taken {
            out.report(render(&ended.report, &self.layout()));
        }
        self.save(out);
        exit
    }

    fn failure(&self, words: &str) -> (String, Exit) {
        (line(words), FATAL)
    }
}

/// A reason without its parts that notices have said. A notice may go on behind the words of the reason.
fn unsaid(reason: Option<&Reason>, noticed: &[String]) -> String {
    let parts = reason.map(reason::parts).unwrap_or_default();
    let left = parts.into_iter().filter(|part| !noticed.iter().any(|notice| notice.starts_with(part)));
    left.collect::<Vec<_>>().join("; ")
}

/// Whether a run came to nothing or lost connections for good; that servers were silent is none of the original's concern.
pub fn is_broken(plan: &Plan, measurement: &Measurement) -> bool {
    let measures = plan.phases.iter().any(|phase| phase.recorded);
    let members = measurement.agents.iter().flat_map(|agents| &agents.members);
    let threads = match measurement.agents {
        Some(_) => members.map(|member| member.threads).sum(),
        None => plan.engine.threads,
    };
    let whole = connections_held(measurement);
    let has_failed = measurement.reason.as_ref().is_some_and(Reason::has_failed_worker);
    // A worker that has ended a recorded phase is known by its time, and may have failed in a later one.
    let through = measurement.generator.workers.len() == threads as usize && !has_failed;
    measurement.status == Status::Partial && !(measures && whole && through)
}

/// Whether no connection was lost for good.
fn connections_held(measurement: &Measurement) -> bool {
    let connections = &measurement.connections;
    connections.lost <= connections.reconnected && connections.failed == 0
}

/// What the original says of a lost connection, for this reason and its words.
fn trouble(reason: Option<&Reason>, words: &str, plan: &Plan) -> String {
    let known = match reason.and_then(Reason::trouble).map(|trouble| trouble.kind) {
        Some(TroubleKind::HandshakeRefused(_)) if plan.login.is_some() => {
            return "SASL authentication failed".to_owned();
        }
        Some(TroubleKind::Closed) => return "Unexpected EOF from server.".to_owned(),
        Some(TroubleKind::NotTaken | TroubleKind::RequestTimedOut) => "Connection timed out",
        Some(TroubleKind::Refused) => "Connection refused",
        Some(TroubleKind::Reset) => "Connection reset by peer",
        Some(TroubleKind::NoSocket) => "No such file or directory",
        _ => words,
    };
    format!("BEV_EVENT_ERROR: {known}")
}

/// Whether a read found something or a store stored; `None` where it failed.
fn success(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Error(_) => None,
        Outcome::Miss | Outcome::NotStored => Some(false),
        _ => Some(true),
    }
}

/// The share of misses in windows of reads.
#[derive(Clone, Copy, Debug)]
struct MissWindows {
    /// Reads of a window; 0 for none.
    every: u64,
    reads: u64,
    misses: u64,
}

impl MissWindows {
    fn new(every: u64) -> MissWindows {
        MissWindows { every, reads: 0, misses: 0 }
    }

    /// Counts a read; gives the line of a window that it completes.
    fn count(&mut self, hit: bool) -> Option<String> {
        self.reads += 1;
        self.misses += u64::from(!hit);
        if self.every == 0 || !self.reads.is_multiple_of(self.every) {
            return None;
        }
        let share = std::mem::take(&mut self.misses) as f64 / self.every as f64;
        Some(format!("{},{share:.4}\n", self.reads))
    }
}

/// The lines of the file of `--save`.
struct SavedLines {
    requests: Vec<SavedRequest>,
    /// When the process started, on the monotonic clock.
    started: Nanos,
    /// What each group's machine is called, where lines say that.
    machines: Option<Vec<String>>,
    /// Nanoseconds to add to the monotonic clock for those since 1970.
    wall_ahead_ns: Nanos,
}

impl SavedLines {
    /// Writes a line for each request: when it was sent, in seconds from the start of the process, and how long it took, in
    /// microseconds. Where machines are named, a line has the seconds since 1970 in front, and the kind of the request
    /// and its machine.
    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.requests.sort_unstable_by_key(|request| request.sent);
        for request in &self.requests {
            let latency_us = request.latency_ns as f64 / MICROSECOND as f64;
            let since_start_s = seconds(request.sent.saturating_sub(self.started));
            let Some(machines) = &self.machines else {
                writeln!(out, "{since_start_s:.6} {latency_us:.6}")?;
                continue;
            };
            let wall_us = request.sent.saturating_add(self.wall_ahead_ns) / MICROSECOND;
            let (whole, fraction) = (wall_us / 1_000_000, wall_us % 1_000_000);
            let kind = if request.reads { "read" } else { "update" };
            let machine = machines.get(request.group).map_or("", String::as_str);
            writeln!(out, "{whole}.{fraction:06} {since_start_s:.6} {kind} {latency_us:.6} {machine}")?;
        }
        out.flush()
    }
}

/// What the machine of each group is called: this one `master`, and agents by their addresses.
fn machines_of(plan: &Plan, measurement: &Measurement) -> Vec<String> {
    let members = measurement.agents.iter().flat_map(|agents| &agents.members);
    let mut agents = members.map(|member| member.name.clone());
    let machine = |group: &Group| match measurement.agents.is_none() || group.policy.here {
        true => "master".to_owned(),
        false => agents.next().unwrap_or_else(|| group.name.clone()),
    };
    plan.groups.iter().map(machine).collect()
}

#[cfg(test)]
mod tests {
    use pummel_measure::agents::LossReason;
    use pummel_measure::measurement::WorkerTime;

    use crate::job::FrontInputs;
    use crate::mutilate::{MutilateCommand, read};

    use pummel_logic::protocol::ServerError;
    use pummel_logic::time::SECOND;
    use pummel_measure::reason::{
        MemberReason, MemberWhy, Moment as RunMoment, ServerTrouble, Unstored, Why,
    };

    use super::*;

    #[test]
    fn windows_of_misses_are_told_apart() {
        let mut windows = MissWindows::new(4);
        let lines: Vec<String> = (0..9).filter_map(|n| windows.count(n % 3 != 0)).collect();
        assert_eq!(lines, ["4,0.5000\n", "8,0.2500\n"]);
        assert_eq!(MissWindows::new(0).count(false), None);
    }

    #[test]
    fn requests_that_were_skipped_were_not_sent_either() {
        let counts = |completed, unsent| Counts { completed, unsent, ..Counts::default() };
        assert_eq!(unsent_percent(&counts(20, 20), 160), 90.0);
        assert_eq!(unsent_percent(&counts(60, 20), 0), 25.0, "without --skip as ever");
        assert_eq!(unsent_percent(&counts(0, 0), 0), 0.0);
    }

    #[test]
    fn a_wrong_token_is_told_with_one_variable_named_once() {
        for why in ["it showed no token", "it showed a wrong token"] {
            for option in ["--token-file", "PUMMEL_AGENT_TOKEN_FILE"] {
                let words = format!(
                    "agent a:1: {why}: this agent was started with {option}, and wants --agent-token-file"
                );
                let said = of_agents(&words);
                assert!(said.starts_with(&format!("agent a:1: {why}; ")), "{said}");
                assert_eq!(said.matches("PUMMEL_AGENT_TOKEN_FILE").count(), 1, "{said}");
                assert!(!said.contains("--"), "{said}");
            }
        }
        let unread = of_agents("--agent-token-file: '/none' cannot be read");
        assert_eq!(unread, "PUMMEL_AGENT_TOKEN_FILE: '/none' cannot be read");
    }

    #[test]
    fn a_reason_is_said_without_what_was_noticed_before() {
        let at = RunMoment::Measurement(SECOND / 2);
        let why = LossReason::Connection { what: "it is gone; really".to_owned() };
        let why = MemberWhy::Gone { at, left: false, why };
        let lost = MemberReason { member: "a:1".to_owned(), is_agent: true, why };
        let unstored = Some(Unstored { records: 10, stored: 7, per_record: 1, why: None });
        let reason = Reason::Members {
            members: vec![lost.clone()],
            more: 0,
            is_stopped: false,
            standstill: None,
            unstored,
        };
        let noticed = [format!("{}; the run goes on without it", reason::member(&lost)), "x".to_owned()];
        let unread = Reason::TraceUnread { what: "x".to_owned() };
        for (reason, left) in [
            (Some(&reason), "3 of 10 records were not stored"),
            (Some(&unread), ""),
            (Some(&Reason::NothingDue), "nothing completed: no request was due"),
            (None, ""),
        ] {
            assert_eq!(unsaid(reason, &noticed), left, "{reason:?}");
            assert_eq!(unsaid(reason, &[]), reason.map(reason::reason).unwrap_or_default());
        }
    }

    /// The plan of a command line.
    fn plan_of(words: &[&str]) -> Plan {
        let command = read(words.iter().map(|word| (*word).to_owned()), &FrontInputs::without_files(1), &[]);
        let Ok(MutilateCommand::Runs(runs)) = command else { panic!("a plain command line") };
        runs.job.plan.into_plan()
    }

    #[test]
    fn a_run_of_two_measured_phases_is_broken_only_where_a_worker_did_not_come_through() {
        let words = "-s a -T 2 --getset --delete90 -N 1001";
        let plan = plan_of(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(plan.phases.iter().filter(|phase| phase.recorded).count(), 2);
        let ended = |workers: usize, reason: &Reason| {
            let groups = plan.groups.iter().map(|group| group.name.clone());
            let mut measurement = Measurement::new(groups, plan.engine.clock, plan.timeout_ns);
            measurement.generator.workers = vec![WorkerTime::default(); workers];
            measurement.mark(Status::Partial, reason.clone());
            measurement
        };
        let server = "a:11211".to_owned();
        let silent = Reason::ServerGone { server, silent_ns: SECOND, turned_away: false, trouble: None };
        assert!(!is_broken(&plan, &ended(2, &silent)), "that is none of the original's concern");
        assert!(is_broken(&plan, &ended(1, &silent)), "a worker did not end the first phase");
        let failed = Reason::WorkerFailed { what: "no memory".to_owned() };
        assert!(is_broken(&plan, &ended(2, &failed)));
        let why = MemberWhy::Run(Box::new(failed));
        let members = vec![MemberReason { member: "b".to_owned(), is_agent: true, why }];
        let of_agent =
            Reason::Members { members, more: 0, is_stopped: false, standstill: None, unstored: None };
        assert!(is_broken(&plan, &ended(2, &of_agent)));
    }

    #[test]
    fn the_originals_words_for_lost_servers_are_found() {
        let plan = &plan_of(&["-s", "a"]);
        let lost = |kind| {
            let trouble = ServerTrouble { server: "a:1".to_owned(), kind, what: "why".to_owned() };
            Reason::ConnectionsLost { asked: 1, lost: 1, why: Some(Why::Trouble(trouble)) }
        };
        let said = |reason: &Reason, plan| trouble(Some(reason), "something else", plan);
        for (kind, words) in [
            (TroubleKind::Refused, "BEV_EVENT_ERROR: Connection refused"),
            (TroubleKind::Closed, "Unexpected EOF from server."),
            (TroubleKind::Reset, "BEV_EVENT_ERROR: Connection reset by peer"),
            (TroubleKind::NotTaken, "BEV_EVENT_ERROR: Connection timed out"),
            (TroubleKind::Other, "BEV_EVENT_ERROR: something else"),
        ] {
            assert_eq!(said(&lost(kind), plan), words);
        }
        let with_login = &plan_of(&["-s", "a", "--binary", "-U", "joe", "-P", "x"]);
        assert_eq!(
            said(&lost(TroubleKind::HandshakeRefused(ServerError::LoginRequired)), with_login),
            "SASL authentication failed"
        );
        let full = Some(Why::Said { what: "SERVER_ERROR out of memory".to_owned(), count: 6 });
        let full = Reason::Unstored(Unstored { records: 10, stored: 0, per_record: 1, why: full });
        assert_eq!(said(&full, with_login), "BEV_EVENT_ERROR: something else", "it was let in");
    }
}
