//! A run over agents: all members are kept in step through the phases of the plan, and what they measured is made one
//! measurement.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use pummel_engine::clock;
use pummel_engine::run::Watch;
use pummel_logic::cluster::UNOWNED;
use pummel_logic::plan::{Plan, Route};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::agents::{Agents, LossReason, Lost, Member};
use pummel_measure::completion::{Loaded, load_shortfall, nothing_completed, records_of_share};
use pummel_measure::connections::SERVERS_TIMED_MAX;
use pummel_measure::events::MemberFacts;
use pummel_measure::events::Row;
use pummel_measure::flight::FlightTime;
use pummel_measure::load::LoadResult;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::parcel::Parcel;
use pummel_measure::reason::{MemberReason, MemberWhy, Reason, Unstored};
use pummel_measure::summary::time_text;
use pummel_measure::uncertainty::{ProcessTimes, deviations, tick_ns};
use pummel_report::visible::foreign;
use pummel_report::words::reason;

use crate::agent::member::{CutShort, MemberEvent};
use crate::controller::agreed_ends::AgreedEnds;
use crate::controller::event_queue::HeardEvents;
use crate::controller::member_state::{MemberOutcome, MemberState};
use crate::controller::slices::{MergedSlices, empty_measurement, measurement_of};
use crate::controller::start_error::StartError;
use crate::controller::timeline::Timeline;

/// Pause between two looks whether the run is to be stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Longest time in which agents read and check a plan without a recording.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time in which members come to an end when it is time for it: for their drain, and for the transfer of what they
/// measured over a slow line.
const END_TIMEOUT_NS: Nanos = 20_000 * MILLISECOND;

/// The time between the command that begins a phase and the beginning of the phase: enough for the command to reach every
/// member.
const LEAD_NS: Nanos = 100 * MILLISECOND;

/// The addition to the lead for each member, since a command takes its time on a busy machine, also to the last of many.
const LEAD_PER_MEMBER_NS: Nanos = 5 * MILLISECOND;

/// The addition to the lead in times of the slowest round trip to an agent.
const LEAD_ROUND_TRIPS: Nanos = 4;

/// Most reasons of members that the reason of a run names one by one.
const REASONS_MAX: usize = 8;

/// One run over agents.
pub(super) struct DistributedRun<'a> {
    plan: &'a Plan,
    members: Vec<MemberState>,
    watch: &'a mut dyn Watch,
    stop_on_loss: bool,
    timeline: Timeline<'a>,
    /// Figures that are known slice by slice.
    slices: MergedSlices<'a>,
    /// The ends of phases that are found while they go on.
    ends: AgreedEnds<'a>,
    /// Measurements of the members that have come to their end.
    all: Measurement,
    /// Requests of members that were handed to the watch one by one.
    rows: u64,
    /// Requests that were not handed to it, since it was too slow.
    rows_dropped: u64,
    /// The phase that begins next.
    phase: u32,
    /// When the first measured phase began, in nanoseconds since 1970.
    started_unix_ns: u64,
    /// The user ended the run.
    is_interrupted: bool,
    /// All members were told to come to an end.
    is_stopped: bool,
    /// When all members have to be through with what they do; `None` where that cannot be known.
    due: Option<Nanos>,
    /// Longest time in which members accept a plan without a recording.
    accept_timeout: Duration,
    /// Longest time in which members come to an end, in nanoseconds.
    end_timeout_ns: Nanos,
}

impl<'a> DistributedRun<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        members: Vec<MemberState>,
        watch: &'a mut dyn Watch,
        stop_on_loss: bool,
    ) -> DistributedRun<'a> {
        let clients: u64 = members.iter().map(|member| member.share.clients()).sum();
        let slices = MergedSlices::new(plan, plan.connections_of(clients).unwrap_or(0), members.len());
        DistributedRun {
            plan,
            members,
            watch,
            stop_on_loss,
            timeline: Timeline::new(plan),
            slices,
            ends: AgreedEnds::new(plan),
            all: empty_measurement(plan),
            rows: 0,
            rows_dropped: 0,
            phase: 0,
            started_unix_ns: 0,
            is_interrupted: false,
            is_stopped: false,
            due: None,
            accept_timeout: ACCEPT_TIMEOUT,
            end_timeout_ns: END_TIMEOUT_NS,
        }
    }

    /// Runs to the end, or until `stop` returns true. `heard` has the events of members with their numbers.
    ///
    /// # Errors
    /// Returns [`StartError`] when a member does not accept its order.
    pub(super) fn run(
        mut self,
        heard: &HeardEvents,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, StartError> {
        self.await_accept(heard, stop)?;
        self.say_offsets();
        self.say_members();
        self.members.iter_mut().for_each(|member| member.handle.connect());
        while self.members.iter().any(MemberState::is_here) {
            if let Some(standstill) = self.timeline.look(clock::now()) {
                self.watch.notice(&reason::standstill(&standstill));
            }
            match heard.recv_timeout(POLL_INTERVAL) {
                Ok((number, event)) => self.hear(number, event),
                Err(RecvTimeoutError::Timeout) => {}
                // Each member sent its last event before.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !self.is_interrupted && stop() {
                self.is_interrupted = true;
                self.stop();
            }
            if self.is_overdue() {
                self.hear_what_waits(heard);
            }
            if self.is_overdue() {
                self.give_up_on_laggards();
            }
        }
        self.rows_dropped = heard.rows_dropped();
        Ok(self.finish())
    }

    /// Waits until all members have accepted their orders. A recording is read for as long as its size takes: a member that reads
    /// one is waited for while it is heard of.
    fn await_accept(&mut self, heard: &HeardEvents, stop: &dyn Fn() -> bool) -> Result<(), StartError> {
        let deadline = (!self.plan.replays()).then(|| Instant::now() + self.accept_timeout);
        while let Some(missing) = self.members.iter().find(|member| !member.has_accepted) {
            if stop() {
                return Err(StartError::Interrupted);
            }
            let Ok((number, event)) = heard.recv_timeout(POLL_INTERVAL) else {
                // Judged only where nothing waits to be read: this process may have had no CPU.
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    let waited = self.accept_timeout.as_secs();
                    let name = &missing.name;
                    return Err(StartError::Agents(format!(
                        "agent {name} did not accept its order; waited {waited} s"
                    )));
                }
                continue;
            };
            let member = &mut self.members[number];
            member.heard_at = clock::now();
            let of_agent = |why: String| format!("agent {}: {why}", member.name);
            match event {
                MemberEvent::Accepted => member.has_accepted = true,
                MemberEvent::Refused { why, usage: true } => return Err(StartError::Usage(of_agent(why))),
                MemberEvent::Lost { why, .. } => {
                    return Err(StartError::Agents(of_agent(reason::loss(&why))));
                }
                MemberEvent::Refused { why, .. } | MemberEvent::Failed(why) => {
                    return Err(StartError::Agents(of_agent(why)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reports which processes make the run, and which of them are lost.
    fn say_members(&mut self) {
        let of = |(number, member): (usize, &MemberState)| MemberFacts {
            name: match self.plan.anonymous {
                true => format!("agent-{}", number + 1),
                false => member.name.clone(),
            },
            clock_error_ns: member.clock_error_ns(),
            threads: member.share.threads,
            is_lost: member.lost.is_some(),
        };
        let members: Vec<MemberFacts> = self.members.iter().enumerate().map(of).collect();
        self.watch.members(&members);
    }

    /// Gives a notice of each agent whose clock is far from the controller's.
    fn say_offsets(&mut self) {
        let agents = Agents { start_spread_ns: None, members: self.reported_members() };
        for member in agents.with_large_offsets() {
            self.watch.notice(&format!(
                "the clock of agent {} is {} {} this machine's",
                member.name,
                time_text(member.clock_offset_ns.unsigned_abs()),
                if member.clock_offset_ns < 0 { "behind" } else { "ahead of" },
            ));
        }
    }

    /// Takes in an event of a member.
    fn hear(&mut self, number: usize, event: MemberEvent) {
        let member = &mut self.members[number];
        if !member.is_here() {
            return;
        }
        member.heard_at = clock::now();
        match event {
            MemberEvent::Accepted | MemberEvent::Began(_) => {}
            MemberEvent::Ready { phase, loaded } => {
                (member.ready, member.loaded) = (Some(phase), loaded);
                self.begin_when_ready();
            }
            MemberEvent::PhaseOver { phase, late_ns } => {
                let is_recorded = self.plan.phases.get(phase as usize).is_some_and(|phase| phase.recorded);
                if is_recorded && member.late_ns.is_none() {
                    member.late_ns = Some(late_ns);
                }
            }
            MemberEvent::Slice(part) => self.take_slice(number, part),
            MemberEvent::Tick { phase, part } => self.take_tick(number, phase, &part),
            MemberEvent::Rows(rows) => self.hand_over_rows(rows),
            MemberEvent::Progress { phase, ended, of } => {
                (member.ended, member.of) = (ended, of);
                let Some(phase) = self.plan.phases.get(phase as usize) else { return };
                let ended = self.members.iter().map(|member| member.ended).sum();
                let of = self.members.iter().filter_map(|member| member.of).reduce(u64::saturating_add);
                self.watch.progress(phase, ended, of);
            }
            MemberEvent::Notice(words) => {
                let words = format!("{}: {words}", member.title());
                self.watch.notice(&words);
            }
            MemberEvent::End { measurement, cut_short } if is_of(&measurement, self.plan) => {
                self.take_end(number, *measurement, cut_short);
            }
            MemberEvent::End { .. } => self.lose(number, LossReason::MeasurementUnread),
            MemberEvent::Failed(why) | MemberEvent::Refused { why, .. } => {
                member.note_why(MemberWhy::Failed { what: why });
                self.end(number, MemberOutcome::Failed);
            }
            MemberEvent::Lost { why, silent_ns } => {
                member.heard_at = member.heard_at.saturating_sub(silent_ns);
                self.lose(number, why);
            }
        }
    }

    /// Takes in a member's part of a slice.
    fn take_slice(&mut self, number: usize, part: Box<Parcel>) {
        let member = &mut self.members[number];
        let index = part.index;
        let fits = self.slices.add_part(&part, number).and_then(|()| match &mut member.sum {
            Some(sum) => sum.append(&part),
            none => {
                *none = Some(part);
                Ok(())
            }
        });
        if fits.is_err() {
            return self.lose(number, LossReason::MeasurementUnread);
        }
        member.next_slice = index.saturating_add(1);
        self.add_slices();
    }

    /// Adds a member's part of a tick of a phase whose end is found while it runs.
    fn take_tick(&mut self, number: usize, phase: u32, part: &Parcel) {
        if self.ends.add_part(phase, part).is_err() {
            return self.lose(number, LossReason::MeasurementUnread);
        }
        if phase.checked_add(1) == Some(self.phase) {
            self.members[number].next_tick = part.index.saturating_add(1);
        }
        self.look_for_end();
    }

    fn is_overdue(&self) -> bool {
        self.due.is_some_and(|due| clock::now() > due)
    }

    /// Takes in what members have sent already: no member is late whose word waits because this process had no CPU. A member that
    /// sends all the time delays this for a second at most.
    fn hear_what_waits(&mut self, heard: &HeardEvents) {
        let until = clock::now().saturating_add(SECOND);
        while let Ok((number, event)) = heard.recv_timeout(Duration::ZERO) {
            self.hear(number, event);
            if clock::now() > until {
                break;
            }
        }
    }

    /// Tests whether the phase under way has come to its end, and sends the end to all members.
    fn look_for_end(&mut self) {
        let here = self.members.iter().filter(|member| member.is_here());
        let end = here.map(|member| member.next_tick).min().unwrap_or(0);
        let Some(end_ns) = self.ends.look(end).filter(|_| !self.is_stopped) else { return };
        let lead_ns = self.lead_ns();
        let (phase, at) = self.ends.agree(end_ns, clock::now(), lead_ns);
        for member in self.members.iter().filter(|member| member.is_here()) {
            member.end_phase(phase, at);
        }
        let over = at.saturating_add(self.end_timeout_ns);
        self.due = Some(self.due.map_or(over, |due| due.min(over)));
    }

    /// Hands over requests whose times count from the beginning of the first measured phase.
    fn hand_over_rows(&mut self, mut rows: Vec<Row>) {
        let began = self.timeline.measured_at().unwrap_or(0);
        for row in &mut rows {
            let times = [&mut row.due, &mut row.ready, &mut row.sent, &mut row.arrived, &mut row.read];
            for time in times.into_iter().filter(|time| **time != NEVER) {
                *time = time.saturating_add(began);
            }
        }
        self.rows = self.rows.saturating_add(rows.len() as u64);
        self.watch.rows(&rows);
    }

    /// Begins the next phase when all members that are still here are ready for it.
    fn begin_when_ready(&mut self) {
        let number = self.phase;
        let mut loaded = Loaded::default();
        let mut here = self.members.iter().filter(|member| member.is_here()).peekable();
        if self.is_stopped || here.peek().is_none() {
            return;
        }
        for member in here {
            if member.ready != Some(number) {
                return;
            }
            loaded.merge(member.loaded);
        }
        if loaded.has_failed() {
            // The reason of the run follows from what servers answered, which the members tell at their end.
            return self.stop();
        }
        let Some(phase) = self.plan.phases.get(number as usize) else { return };
        let at = clock::now() + self.lead_ns() + self.plan.baseline_ns(number as usize);
        for member in self.members.iter_mut().filter(|member| member.is_here()) {
            member.begin_phase(number, at);
        }
        if phase.recorded && self.timeline.measured_at().is_none() {
            self.started_unix_ns = clock::wall() + at.saturating_sub(clock::now());
            self.slices.so_far.started_unix_ns = self.started_unix_ns;
        }
        self.due = phase.stop.time_ns.map(|time| at.saturating_add(time).saturating_add(self.end_timeout_ns));
        self.timeline.begin(number as usize, at);
        self.ends.begin(number, at);
        self.watch.begin(phase, at);
        self.phase += 1;
    }

    /// The time from the command that begins a phase to its beginning, in nanoseconds.
    fn lead_ns(&self) -> Nanos {
        let error_ns = self.members.iter().map(MemberState::clock_error_ns).max().unwrap_or(0);
        LEAD_NS + LEAD_PER_MEMBER_NS * self.members.len() as Nanos + LEAD_ROUND_TRIPS * 2 * error_ns
    }

    /// Adds the slices that all members have given their part of, and those that have waited for a member for too long.
    fn add_slices(&mut self) {
        let here = self.members.iter().filter(|member| member.is_here());
        let end = here.map(|member| member.next_slice).min().unwrap_or(u64::MAX);
        let overdue = self.slices.overdue();
        let behind = |member: &&mut MemberState| member.is_here() && member.next_slice < overdue;
        for member in self.members.iter_mut().filter(behind) {
            if !std::mem::replace(&mut member.is_behind, true) {
                let who = member.title();
                self.watch.notice(&format!("{who} is far behind: its part is missing in intervals"));
            }
        }
        self.slices.hand_over(end.max(overdue), self.watch);
    }

    /// Adds what a member measured to the whole, without its status and its slices, which are known.
    fn merge(&mut self, number: usize, mut measurement: Measurement) {
        measurement.intervals.clear();
        measurement.intervals_merged = 0;
        (measurement.status, measurement.reason) = (Status::Complete, None);
        self.members[number].note_figures(self.plan, &measurement);
        let agent = self.members[number].agent_name();
        for node in measurement.cluster.iter_mut().flat_map(|cluster| &mut cluster.nodes) {
            node.name = foreign(&node.name);
        }
        let nodes =
            measurement.cluster.iter().flat_map(|cluster| &cluster.nodes).map(|node| node.name.as_str());
        let asked: Vec<&str> = self.plan.servers_asked().iter().map(String::as_str).chain(nodes).collect();
        if let Some(evidence) = &mut measurement.evidence {
            evidence.adopt(&asked, &foreign);
        }
        measurement.machines.truncate(1);
        for machine in &mut measurement.machines {
            machine.clean(&foreign);
            machine.agent = agent.filter(|_| !self.plan.anonymous).map(str::to_owned);
        }
        for machine in measurement.evidence.iter_mut().flat_map(|evidence| &mut evidence.machines) {
            machine.agent = agent.map(str::to_owned);
        }
        self.all.merge(&measurement);
    }

    /// Takes in the end of a member: what it measured, and what is missing from its share.
    fn take_end(&mut self, number: usize, measurement: Measurement, cut_short: Option<CutShort>) {
        let member = &mut self.members[number];
        if let Some(CutShort { why, at }) = cut_short {
            let at = member.to_controller_time(at);
            self.merge(number, measurement);
            return self.leave(number, at, LossReason::Said { what: why }, true);
        }
        member.note_shortfall(self.plan, &measurement, self.is_stopped, self.ends.least_measured_ns());
        self.note_other_recording(number, measurement.recording_rows);
        let is_broken = is_broken(&measurement, self.plan);
        self.merge(number, measurement);
        self.end(number, MemberOutcome::Ended);
        if is_broken && !self.is_stopped {
            self.stop();
        }
    }

    /// Notes that a member replayed another recording than the members whose ends came before: each reads the file of its own
    /// machine.
    fn note_other_recording(&mut self, number: usize, rows: Option<u64>) {
        let (Some(theirs), Some(known)) = (rows, self.all.recording_rows) else { return };
        if theirs != known {
            let why = MemberWhy::OtherRecording { rows: theirs, others: known };
            self.members[number].note_why(why);
        }
    }

    fn end(&mut self, number: usize, outcome: MemberOutcome) {
        self.members[number].outcome = Some(outcome);
        // A member that ends before the last phase has begun cannot do its share of it.
        let is_over = self.phase as usize >= self.plan.phases.len();
        if !self.is_stopped && !is_over {
            self.stop();
        }
        self.add_slices();
        self.look_for_end();
        self.begin_when_ready();
    }

    /// Gives up a member that was last heard of at its `heard_at`.
    fn lose(&mut self, number: usize, why: LossReason) {
        let member = &mut self.members[number];
        member.cut_link();
        member.outcome = Some(MemberOutcome::Lost);
        let at = member.heard_at;
        self.leave(number, at, why, false);
    }

    /// Notes that a member is gone since `at` of the controller's clock: it `left` with a word, or was lost. The run goes on
    /// without it, or stops.
    fn leave(&mut self, number: usize, at: Nanos, why: LossReason, left: bool) {
        let gone = MemberWhy::Gone { at: self.timeline.moment(at), left, why: why.clone() };
        let at_ns = self.timeline.measured_at().and_then(|began| at.checked_sub(began));
        let goes_on = !self.stop_on_loss && !self.is_stopped;
        let member = &mut self.members[number];
        member.note_why(gone);
        let words = member.shortfalls.last().map(reason::member).unwrap_or_default();
        self.watch.notice(&format!("{words}{}", if goes_on { "; the run goes on without it" } else { "" }));
        member.lost = Some(Lost { at_ns, why, left });
        member.outcome.get_or_insert(MemberOutcome::Ended);
        self.say_members();
        if self.stop_on_loss && !self.is_stopped {
            self.stop();
        }
        self.add_slices();
        self.look_for_end();
        self.begin_when_ready();
    }

    /// Gives up the members that are there and did not come to an end in time.
    fn give_up_on_laggards(&mut self) {
        self.due = None;
        // A loss may begin the next phase, for which no member is late: who is late is decided before the first loss.
        let is_late =
            |member: &MemberState| member.is_here() && (self.is_stopped || member.ready != Some(self.phase));
        let numbers = 0..self.members.len();
        let late: Vec<usize> = numbers.filter(|&number| is_late(&self.members[number])).collect();
        for number in late {
            self.lose(number, LossReason::Late);
        }
    }

    /// Tells all members to come to an end.
    fn stop(&mut self) {
        self.is_stopped = true;
        self.due = Some(clock::now().saturating_add(self.end_timeout_ns));
        for member in self.members.iter().filter(|member| member.is_here()) {
            member.handle.stop();
        }
    }

    /// Makes one measurement of all members.
    fn finish(mut self) -> Measurement {
        self.add_slices();
        // It is not known what lost members stored, so they are added afterwards.
        let load = self.all.load.as_ref();
        let unstored = load.and_then(|load| {
            let each = self.plan.stores_per_record();
            load_shortfall(load, each, self.plan.allow_partial_load, load.trouble.as_ref())
        });
        self.merge_unreported();
        let reason = self.reason(unstored);
        let members = self.compared_members();
        let starts: Vec<Nanos> = self.members.iter().filter_map(|member| member.late_ns).collect();
        let mut all = self.all;
        all.intervals = self.slices.so_far.intervals;
        all.intervals_merged = self.slices.so_far.intervals_merged;
        if !self.members.iter().all(|member| member.outcome == Some(MemberOutcome::Ended)) {
            forget_figures_of_all(&mut all);
        }
        if self.watch.wants().rows {
            // What was handed over may also be of members that were lost.
            let samples = all.samples.get_or_insert_default();
            (samples.written, samples.dropped) =
                (self.rows, samples.dropped.saturating_add(self.rows_dropped));
        }
        self.ends.finish(clock::now());
        // A member that has the whole load finds the end of the warm-up by itself, and sends no ticks.
        if !self.members.iter().any(|member| member.share.is_whole()) {
            all.warm_up = self.ends.warm_up;
        }
        all.started_unix_ns = self.started_unix_ns;
        all.agents = Some(Agents { start_spread_ns: Agents::spread(starts), members });
        let completed: u64 = all.groups.iter().map(|group| group.ops.all().counts.completed).sum();
        if self.is_interrupted {
            all.mark(Status::Interrupted, Reason::Interrupted);
        } else if let Some(reason) = reason {
            all.mark(Status::Partial, reason);
        } else if completed == 0 && self.plan.phases.iter().any(|phase| phase.recorded) {
            let reason = nothing_completed(self.plan, &all, None);
            all.mark(Status::Partial, reason);
        }
        all
    }

    /// Adds what is known of members that did not say at their end what they measured.
    fn merge_unreported(&mut self) {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            if member.outcome == Some(MemberOutcome::Ended) {
                continue;
            }
            let mut known = measurement_of(member.sum.take(), self.plan);
            known.connections.asked = self.plan.connections_of(member.share.clients()).unwrap_or(0);
            let records = records_of_share(self.plan, &member.share);
            known.load = (records > 0).then(|| LoadResult { records, ..LoadResult::default() });
            self.merge(number, known);
        }
    }

    /// Reason why the run is not complete, as far as its members and these records decide that; `None` where it may be.
    fn reason(&self, unstored: Option<Unstored>) -> Option<Reason> {
        let all: Vec<&MemberReason> = self.members.iter().flat_map(|member| &member.shortfalls).collect();
        let is_stopped = self.stop_on_loss && self.members.iter().any(|member| member.lost.is_some());
        if all.is_empty() {
            return unstored.map(Reason::Unstored);
        }
        Some(Reason::Members {
            members: all.iter().take(REASONS_MAX).map(|&reason| reason.clone()).collect(),
            more: all.len().saturating_sub(REASONS_MAX) as u64,
            is_stopped,
            standstill: self.timeline.longest_standstill(),
            unstored,
        })
    }

    /// The members in a result, with how the response times of each differ from those of all others together.
    fn compared_members(&mut self) -> Vec<Member> {
        let times = self.members.iter_mut().enumerate();
        let (numbers, times): (Vec<usize>, Vec<ProcessTimes>) =
            times.filter_map(|(number, member)| Some((number, member.times.take()?))).unzip();
        let mut members = self.reported_members();
        for (number, deviation) in numbers.into_iter().zip(deviations(&times)) {
            members[number].deviation = deviation;
        }
        members
    }

    /// The members as the result has them.
    fn reported_members(&self) -> Vec<Member> {
        self.members.iter().map(|member| member.report(self.plan)).collect()
    }
}

/// Leaves out what follows only from the whole measurement of every member, where of some of them only slices are known.
fn forget_figures_of_all(all: &mut Measurement) {
    if let Some(evidence) = &mut all.evidence {
        evidence.forget_our_requests();
    }
    all.windows = None;
    all.flight = FlightTime::default();
}

/// Whether a member's run ended because it lost a connection for good, in a plan that goes on only with all of them.
fn is_broken(measurement: &Measurement, plan: &Plan) -> bool {
    let connections = &measurement.connections;
    plan.groups.iter().any(|group| group.policy.whole)
        && measurement.status == Status::Partial
        && (connections.lost > connections.reconnected || connections.failed > 0)
}

/// Whether a measurement is one of this plan.
fn is_of(measurement: &Measurement, plan: &Plan) -> bool {
    let nodes = measurement.cluster.as_ref().map_or(0, |cluster| cluster.nodes.len());
    let servers = plan.servers.len().max(nodes);
    nodes < usize::from(UNOWNED)
        && (measurement.cluster.is_none() || plan.route == Route::Cluster)
        && measurement.groups.len() == plan.groups.len()
        && measurement.groups.iter().zip(&plan.groups).all(|(one, other)| one.name == other.name)
        && measurement
            .windows
            .as_ref()
            .is_none_or(|windows| windows.fits(tick_ns(plan.interval_ns), plan.groups.len()))
        && measurement.connections.connect_by_server.len() <= SERVERS_TIMED_MAX
        && measurement.connections.refusals.iter().all(|refusal| (refusal.server as usize) < servers)
        && measurement.connections.refusals.is_sorted_by(|one, other| one.server < other.server)
        && measurement.side_times.servers.len() <= SERVERS_TIMED_MAX
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pummel_logic::plan::share::ProcessShare;
    use pummel_logic::plan::{Phase, Replay, Stop, Until, Work};
    use pummel_logic::protocol::{Outcome, Verb};
    use pummel_logic::time::SECOND;
    use pummel_measure::connections::TroubleKind;
    use pummel_measure::events::Wants;
    use pummel_measure::measurement::{Keep, Samples, WarmUp, WarmUpEnd};
    use pummel_measure::reason::{ServerTrouble, ShareShortfall, Why};
    use pummel_measure::summary::Summary;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::agent::proto::v2::command::What as Told;
    use crate::controller::event_queue::{EventSender, ROWS_WAITING_MAX, event_queue};
    use crate::controller::member_state::AgentHandle;
    use crate::controller::slices::{OPEN_MAX, empty_slice};
    use pummel_report::example::Run;

    /// Knows whether the phase has begun, and takes requests one by one.
    struct BeginWatch<'a>(&'a Cell<bool>);

    impl Watch for BeginWatch<'_> {
        fn wants(&self) -> Wants {
            Wants {
                rows: true,
                departures: false,
                keep: Keep::Figures,
                outstanding: false,
                connections: false,
            }
        }

        fn begin(&mut self, _phase: &Phase, _at: Nanos) {
            self.0.set(true);
        }
    }

    /// A plan of one phase, which is measured for `time_ns`.
    fn plan(time_ns: Nanos) -> Plan {
        let mut plan = Run::new(Keep::Figures).plan;
        let phase = plan.phases.pop().expect("it has phases");
        plan.phases = vec![phase];
        plan.phases[0].stop = Stop { time_ns: Some(time_ns), requests: None };
        plan
    }

    /// Members with a thread each, and the commands that they get.
    fn members(plan: &Plan, count: u32) -> (Vec<MemberState>, Vec<UnboundedReceiver<Told>>) {
        let member = |number: u32| {
            let clients = plan.groups.iter().map(|_| 0..5).collect();
            let share = ProcessShare { clients, threads: 1, first_worker: number, workers: count, mark: 1 };
            let (commands, told) = unbounded_channel();
            (MemberState::new(format!("m{number}"), share, None, AgentHandle::Agent(commands)), told)
        };
        (0..count).map(member).unzip()
    }

    fn ready(phase: u32) -> MemberEvent {
        MemberEvent::Ready { phase, loaded: Loaded::default() }
    }

    /// A run of two members that are ready and then say these words, with the commands that they get. `stops`: it is to
    /// stop as soon as the phase has begun.
    fn run_of_two(
        plan: &Plan,
        stops: bool,
        words: impl IntoIterator<Item = (usize, MemberEvent)>,
    ) -> (Measurement, Vec<Vec<Told>>) {
        run_of(plan, 2, stops, words)
    }

    /// A run of so many members, as [`run_of_two`] makes it of two.
    fn run_of(
        plan: &Plan,
        count: u32,
        stops: bool,
        words: impl IntoIterator<Item = (usize, MemberEvent)>,
    ) -> (Measurement, Vec<Vec<Told>>) {
        let (say, heard) = event_queue();
        let (members, mut told) = members(plan, count);
        (0..members.len()).for_each(|number| say.send((number, MemberEvent::Accepted)));
        (0..members.len()).for_each(|number| say.send((number, ready(0))));
        words.into_iter().for_each(|word| say.send(word));
        let has_begun = Cell::new(false);
        let mut watch = BeginWatch(&has_begun);
        let mut run = DistributedRun::new(plan, members, &mut watch, false);
        // What members say lies there already, and counts however late it is read.
        run.end_timeout_ns = 0;
        let measurement = run.run(&heard, &|| stops && has_begun.get()).expect("it begins");
        let words = told.iter_mut().map(|told| std::iter::from_fn(|| told.try_recv().ok()).collect());
        (measurement, words.collect())
    }

    /// The end of a member that measured for `measured_ns` and takes its part to have ended with this status.
    fn end(plan: &Plan, measured_ns: Nanos, status: Status, cut_short: Option<CutShort>) -> MemberEvent {
        let mut measurement = Box::new(empty_measurement(plan));
        (measurement.measured_ns, measurement.status) = (measured_ns, status);
        MemberEvent::End { measurement, cut_short }
    }

    /// The reason of a run whose members end like this.
    fn reason_of(plan: &Plan, ends: [MemberEvent; 2]) -> Reason {
        let (measurement, _) = run_of_two(plan, false, ends.into_iter().enumerate());
        assert_eq!(measurement.status, Status::Partial);
        measurement.reason.expect("it is said")
    }

    /// The reason of a run of which one member did not do its share.
    fn short(member: &str, why: MemberWhy) -> Reason {
        let members = vec![MemberReason { member: member.to_owned(), is_agent: false, why }];
        Reason::Members { members, more: 0, is_stopped: false, standstill: None, unstored: None }
    }

    #[test]
    fn a_share_that_was_not_done_is_named_whatever_its_member_makes_of_it() {
        let plan = plan(SECOND);
        let whole = || end(&plan, SECOND, Status::Complete, None);
        let reason = reason_of(&plan, [whole(), end(&plan, SECOND / 2, Status::Complete, None)]);
        let half = || MemberWhy::Share(ShareShortfall::Time(SECOND / 2, SECOND));
        assert_eq!(reason, short("m1", half()));
        let reason = reason_of(&plan, [end(&plan, SECOND / 2, Status::Interrupted, None), whole()]);
        assert_eq!(reason, short("m0", half()));
        let reason = reason_of(&plan, [whole(), end(&plan, SECOND, Status::Interrupted, None)]);
        assert_eq!(reason, short("m1", MemberWhy::EndedEarly));
        let reason = reason_of(&plan, [whole(), whole()]);
        assert_eq!(reason, Reason::NothingDue, "both have done their shares");
    }

    #[test]
    fn a_load_that_failed_on_members_is_said_with_its_trouble() {
        let plan = plan(SECOND);
        let trouble = || ServerTrouble {
            server: "a:1".to_owned(),
            kind: TroubleKind::Closed,
            what: "the server closed the connection".to_owned(),
        };
        let loaded = |stored: u64, trouble: Option<ServerTrouble>| {
            let mut measurement = Box::new(empty_measurement(&plan));
            measurement.measured_ns = SECOND;
            measurement.load =
                Some(LoadResult { records: 5, stored, errors: 5 - stored, trouble, ..LoadResult::default() });
            MemberEvent::End { measurement, cut_short: None }
        };
        let reason = reason_of(&plan, [loaded(5, None), loaded(2, Some(trouble()))]);
        let why = Some(Why::Trouble(trouble()));
        assert_eq!(reason, Reason::Unstored(Unstored { records: 10, stored: 7, per_record: 1, why }));
    }

    #[test]
    fn members_that_replay_different_recordings_are_named() {
        let plan = plan(SECOND);
        let replayed = |rows: u64| {
            let mut measurement = Box::new(empty_measurement(&plan));
            (measurement.measured_ns, measurement.recording_rows) = (SECOND, Some(rows));
            MemberEvent::End { measurement, cut_short: None }
        };
        let reason = reason_of(&plan, [replayed(7), replayed(8)]);
        assert_eq!(reason, short("m1", MemberWhy::OtherRecording { rows: 8, others: 7 }));
        assert_eq!(reason_of(&plan, [replayed(7), replayed(7)]), Reason::NothingDue);
    }

    #[test]
    fn a_member_that_left_is_named_with_the_moment_and_is_among_the_lost() {
        let plan = plan(3_600 * SECOND);
        let left = || {
            let at = clock::now() + 2 * SECOND;
            let cut_short = CutShort { why: "its process was told to end".to_owned(), at };
            end(&plan, SECOND, Status::Interrupted, Some(cut_short))
        };
        let (measurement, _) = run_of_two(&plan, false, [(0, left()), (1, left())]);
        assert_eq!(measurement.status, Status::Partial);
        let reason = reason::of_run(&measurement);
        // The phase begins a moment after the words were made.
        for name in ["m0 left 1.", "m1 left 1."] {
            assert!(reason.contains(name), "{reason}");
        }
        assert_eq!(
            reason.matches(" s into the measurement: its process was told to end").count(),
            2,
            "{reason}"
        );
        let members = measurement.agents.expect("there are members").members;
        assert!(members.iter().all(|member| member.lost.is_some()), "{members:?}");
    }

    #[test]
    fn members_that_do_not_end_in_time_are_lost() {
        let (measurement, told) = run_of_two(&plan(MILLISECOND), false, []);
        assert_eq!(measurement.status, Status::Partial);
        let reason = reason::of_run(&measurement);
        assert!(reason.contains("m0 was lost") && reason.contains("m1 was lost"), "{reason}");
        assert!(reason.contains("it did not come to an end in time"), "{reason}");
        assert!(matches!(told[0][..], [Told::Connect(_), Told::Go(_)]), "{told:?}");
    }

    /// Says a word of member 1 as soon as the second phase has begun.
    struct SecondWatch {
        say: EventSender,
        begun: usize,
        word: Option<MemberEvent>,
    }

    impl Watch for SecondWatch {
        fn begin(&mut self, _phase: &Phase, _at: Nanos) {
            self.begun += 1;
            if self.begun == 2
                && let Some(word) = self.word.take()
            {
                self.say.send((1, word));
            }
        }
    }

    #[test]
    fn a_member_that_is_late_for_a_phase_takes_no_other_with_it() {
        let mut plan = plan(SECOND);
        let mut warm_up = plan.phases[0].clone();
        (warm_up.recorded, warm_up.stop.time_ns) = (false, Some(MILLISECOND));
        plan.phases.insert(0, warm_up);
        let (members, _told) = members(&plan, 2);
        let (say, heard) = event_queue();
        (0..2).for_each(|number| say.send((number, MemberEvent::Accepted)));
        // The first one never comes to the end of the warm-up.
        for word in [(0, ready(0)), (1, ready(0)), (1, ready(1))] {
            say.send(word);
        }
        let word = Some(end(&plan, SECOND, Status::Complete, None));
        let mut watch = SecondWatch { say, begun: 0, word };
        let mut run = DistributedRun::new(&plan, members, &mut watch, false);
        run.end_timeout_ns = 50 * MILLISECOND;
        let measurement = run.run(&heard, &|| false).expect("it begins");
        let members = measurement.agents.expect("there are members").members;
        let lost: Vec<bool> = members.iter().map(|member| member.lost.is_some()).collect();
        assert_eq!(lost, [true, false], "{:?}", measurement.reason);
    }

    #[test]
    fn what_only_the_whole_measurements_of_all_say_is_left_out_where_one_is_lost() {
        let plan = plan(MILLISECOND);
        let told = |cut_short: Option<CutShort>| {
            let mut measurement = Box::new(Run::new(Keep::Figures).with_windows().measurement);
            measurement.flight.requests = 2_000;
            MemberEvent::End { measurement, cut_short }
        };
        let mut asked = plan.clone();
        asked.adaptive.until = Some(Until { quantile: 0.5, half_width: 0.5, least_ns: SECOND });
        let known = |ends: Vec<(usize, MemberEvent)>| {
            let (measurement, _) = run_of_two(&plan, false, ends);
            let summary = Summary::of(&measurement, &asked);
            (
                measurement.windows.is_some(),
                measurement.flight.requests,
                summary.cpu_us_per_request.is_some(),
                summary.until.is_some(),
            )
        };
        assert_eq!(known(vec![(0, told(None)), (1, told(None))]), (true, 4_000, true, true));
        assert_eq!(known(vec![(0, told(None))]), (false, 0, false, false));
        let left = CutShort { why: "its process was told to end".to_owned(), at: clock::now() };
        let ends = vec![(0, told(None)), (1, told(Some(left)))];
        assert_eq!(known(ends), (true, 4_000, true, true), "who leaves with a word has told all");
    }

    /// Keeps the notices of a run.
    struct NoticeWatch(Vec<String>);

    impl Watch for NoticeWatch {
        fn notice(&mut self, words: &str) {
            self.0.push(words.to_owned());
        }
    }

    #[test]
    fn a_member_whose_part_of_intervals_is_missing_in_them_is_named_once() {
        let plan = plan(MILLISECOND);
        let (members, _told) = members(&plan, 2);
        let (say, heard) = event_queue();
        (0..2).for_each(|number| say.send((number, MemberEvent::Accepted)));
        (0..2).for_each(|number| say.send((number, ready(0))));
        for index in 0..OPEN_MAX as u64 + 9 {
            let mut slice = empty_slice(&plan);
            slice.restart(index, index * plan.interval_ns);
            slice.end_ns = slice.start_ns + plan.interval_ns;
            say.send((0, MemberEvent::Slice(Box::new(Parcel::of(&mut slice)))));
        }
        let mut watch = NoticeWatch(Vec::new());
        let mut run = DistributedRun::new(&plan, members, &mut watch, false);
        // Both are there until all parts have been taken in, also on a busy machine.
        run.end_timeout_ns = SECOND;
        let measurement = run.run(&heard, &|| false).expect("it begins");
        let behind: Vec<&String> = watch.0.iter().filter(|words| words.contains("far behind")).collect();
        assert_eq!(behind, ["m1 is far behind: its part is missing in intervals"]);
        assert_eq!(measurement.intervals.len(), OPEN_MAX + 9);
    }

    #[test]
    fn requests_that_a_lost_member_told_are_among_those_that_are_written() {
        let plan = plan(MILLISECOND);
        let row = Row {
            due: 1,
            ready: 1,
            sent: 2,
            arrived: 3,
            read: 4,
            verb: Verb::Get,
            outcome: Outcome::Hit,
            key: 5,
            client: 0,
            group: 0,
        };
        let mut measurement = Box::new(empty_measurement(&plan));
        measurement.measured_ns = MILLISECOND;
        measurement.samples = Some(Samples { written: 2, dropped: 1 });
        let words = [
            (0, MemberEvent::Rows(vec![row; 2])),
            (1, MemberEvent::Rows(vec![row; 3])),
            (0, MemberEvent::End { measurement, cut_short: None }),
        ];
        let (measurement, _) = run_of_two(&plan, false, words);
        assert_eq!(measurement.samples, Some(Samples { written: 5, dropped: 1 }));
        let (measurement, _) = run_of_two(&plan, false, [(1, MemberEvent::Rows(vec![row; 3]))]);
        assert_eq!(measurement.samples, Some(Samples { written: 3, dropped: 0 }), "all are lost");
        // They are all said before the first is heard.
        let many =
            [(0, MemberEvent::Rows(vec![row; ROWS_WAITING_MAX])), (1, MemberEvent::Rows(vec![row; 7]))];
        let (measurement, _) = run_of_two(&plan, false, many);
        assert_eq!(
            measurement.samples,
            Some(Samples { written: ROWS_WAITING_MAX as u64, dropped: 7 }),
            "those that came while too many waited"
        );
    }

    #[test]
    fn a_member_with_the_whole_load_says_how_its_warm_up_ended() {
        let mut plan = plan(MILLISECOND);
        let mut warm_up = plan.phases[0].clone();
        warm_up.recorded = false;
        plan.phases.insert(0, warm_up);
        plan.adaptive.first_eviction = true;
        let found = WarmUp { until: WarmUpEnd::Eviction, elapsed_ns: 7, settled: true, cut_short: false };
        let warm_up_of = |count: u32| {
            let words = (0..count as usize).map(|number| (number, ready(1)));
            let ends = (0..count as usize).map(|number| {
                let mut measurement = Box::new(empty_measurement(&plan));
                (measurement.measured_ns, measurement.warm_up) = (MILLISECOND, Some(found));
                (number, MemberEvent::End { measurement, cut_short: None })
            });
            let (measurement, _) = run_of(&plan, count, false, words.chain(ends));
            measurement.warm_up.expect("it had one")
        };
        assert_eq!(warm_up_of(1), found);
        assert!(!warm_up_of(2).settled, "what several find is decided by their ticks");
    }

    #[test]
    fn members_that_read_a_recording_are_waited_for_while_they_are_heard_of() {
        let of = |plan: &Plan| {
            let (members, _told) = members(plan, 2);
            let (say, heard) = event_queue();
            let looks = Cell::new(0);
            let mut watch = SecondWatch { say: say.clone(), begun: 0, word: None };
            let mut run = DistributedRun::new(plan, members, &mut watch, false);
            run.accept_timeout = Duration::ZERO;
            run.end_timeout_ns = 50 * MILLISECOND;
            // They come to the end of their recordings between two looks.
            let stop = || {
                looks.set(looks.get() + 1);
                if looks.get() == 3 {
                    (0..2).for_each(|number| say.send((number, MemberEvent::Accepted)));
                    (0..2).for_each(|number| say.send((number, ready(0))));
                }
                false
            };
            run.run(&heard, &stop).map(drop)
        };
        let mut plan = plan(MILLISECOND);
        let late = "agent m0 did not accept its order; waited 0 s".to_owned();
        assert_eq!(of(&plan), Err(StartError::Agents(late)));
        let path = "recording".to_owned();
        let replay = Replay { path, format: 0, read_through_ns: None, reads_only: false };
        plan.phases[0].work = Work::Replay(replay);
        assert_eq!(of(&plan), Ok(()));
    }

    #[test]
    fn members_that_do_not_stop_when_they_are_told_are_lost() {
        let (measurement, told) = run_of_two(&plan(NEVER), true, []);
        assert_eq!(measurement.status, Status::Interrupted);
        let members = measurement.agents.expect("there are members").members;
        assert!(members.iter().all(|member| member.lost.is_some()), "{members:?}");
        assert!(matches!(told[1][..], [.., Told::Stop(_)]), "{told:?}");
    }
}
