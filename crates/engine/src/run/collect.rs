//! The collecting thread of a run: it makes the measurement from the workers' messages until all workers have ended.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use pummel_logic::merge::Merge as _;
use pummel_logic::protocol::{Fault, udp};
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::workload::rows::{AskedRows, Lateness};
use pummel_measure::audit::AuditCounts;
use pummel_measure::completion::{Loaded, RunEnd, SilentServer, shortfall};
use pummel_measure::connections::FirstTrouble;
use pummel_measure::evidence::OurRequests;
use pummel_measure::generator::sleeps;
use pummel_measure::interval::Interval;
use pummel_measure::interval_sum::IntervalSum;
use pummel_measure::measurement::{Measurement, Samples, Status, intervals_merged_notice};
use pummel_measure::open_slices::OpenSlices;
use pummel_measure::outages::ShardBuckets;
use pummel_measure::phase_ends::{PhaseEnds, PhaseSilence};
use pummel_measure::reason::{Reason, ServerTrouble};
use pummel_measure::replayed::Replayed;
use pummel_measure::tally::Tally;
use pummel_measure::trouble::Trouble;
use pummel_measure::uncertainty::{Windows, tick_ns};

use super::cluster;
use super::context::RunContext;
use super::early_end::EarlyEnd;
use super::rate_control::RateControl;
use super::setup::empty_interval;
use super::watch::Watch;
use crate::clock;
use crate::resolve::Server;
use crate::sys::{self, CpuTime};
use crate::worker::message_sender::QueuedMessage;
use crate::worker::messages::{LoadEnd, PhaseEnd, WorkerEnd, WorkerMessage};
use pummel_measure::trouble::CloseReason;

/// Interval at which the collecting thread checks whether the run is to be stopped.
const WATCH: Duration = Duration::from_millis(20);

/// Gives an emptied interval back to its worker.
fn give_back(spares: &[Sender<Box<Interval>>], mut interval: Box<Interval>) {
    interval.restart(0, 0);
    // A worker that has ended receives nothing any more.
    let _ = spares[interval.worker].send(interval);
}

/// The measurement and the watch of a recorded phase, and where the phase begins in the whole of what is measured.
struct Recorded<'a> {
    watch: &'a mut dyn Watch,
    measurement: &'a mut Measurement,
    before_ns: Nanos,
    before_slices: u64,
    /// Whether this process runs the whole plan.
    is_whole: bool,
}

impl Recorded<'_> {
    /// Adds a slice of the phase to the windows.
    fn add_window(&mut self, slice: &mut Interval, tick_ns: Nanos) {
        let start_ns = slice.start_ns;
        slice.start_ns += self.before_ns;
        self.measurement.windows.get_or_insert_with(|| Windows::new(tick_ns)).add(slice);
        slice.start_ns = start_ns;
    }

    /// Adds an interval of the phase to the measurement.
    fn add_interval(&mut self, interval: &mut Interval) {
        interval.index += self.before_slices;
        interval.start_ns += self.before_ns;
        interval.end_ns += self.before_ns;
        self.watch.interval(interval);
        let merged_before = self.measurement.intervals_merged;
        self.measurement.add(interval, self.watch.wants().keep);
        // Where several processes run the plan, the controller has the intervals of the result.
        if merged_before == 0 && self.measurement.intervals_merged > 0 && self.is_whole {
            self.watch.notice(&intervals_merged_notice());
        }
        self.measurement.measured_ns = self.measurement.measured_ns.max(interval.end_ns);
        self.watch.slice(self.measurement);
    }
}

/// Makes the measurement of a run from the messages of its workers.
pub(super) struct Collector<'a, 'w> {
    context: &'a RunContext<'a>,
    watch: &'w mut dyn Watch,
    measurement: Measurement,
    /// The queues of emptied intervals, by worker.
    spares: Vec<Sender<Box<Interval>>>,
    slices: OpenSlices,
    /// The interval that slices of the phase under way are added up to.
    sum: IntervalSum,
    /// Requests that have ended, for each phase that is not recorded.
    ended: Vec<u64>,
    /// The phases that workers have ended.
    ends: PhaseEnds,
    /// Number of slices before the measured phase under way.
    before_slices: u64,
    /// The first thing that went wrong with a connection, and the index of its server in the Plan.
    trouble: Option<(u32, Trouble)>,
    /// Why workers could not go on.
    failures: Vec<io::Error>,
    /// Messages that workers dropped.
    messages_dropped: u64,
    /// Time at which the run was ended before its planned end, on the monotonic clock; `None` if it was not.
    stopped_at: Option<Nanos>,
    /// Requests of phases in which the observer does not look.
    unobserved: Tally,
    /// CPU time that the process had used when a recorded phase began, or when a worker ended it.
    cpu: CpuTime,
    /// The conditions that end phases before their time.
    early_end: EarlyEnd,
    /// The control that changes the rate by hand; `None` where there is none.
    rate_control: Option<RateControl>,
    /// The phase of the open slices, where that is a warm-up that is looked at.
    warm_up: Option<usize>,
    /// The caller ended the run before its time.
    interrupted: bool,
    /// The reason why no server reports its evictions, if the warm-up waits for one.
    unreported: Option<String>,
    /// Lateness of the requests of a trace.
    lateness: Lateness,
    asked_rows: AskedRows,
    /// The requests of each shard of a cluster.
    shards: Vec<ShardBuckets>,
    /// The records that were read back.
    audit: AuditCounts,
    /// Time at which the first measured phase began, on the monotonic clock; 0 before it.
    measured_at: Nanos,
}

impl<'a, 'w> Collector<'a, 'w> {
    pub(super) fn new(
        context: &'a RunContext<'a>,
        spares: Vec<Sender<Box<Interval>>>,
        watch: &'w mut dyn Watch,
    ) -> Self {
        let plan = context.plan;
        let names = plan.groups.iter().map(|group| group.name.clone());
        let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
        if let Some((choice, wait)) = &context.host.kernel {
            measurement.generator.backends.insert(choice.backend);
            measurement.generator.fallbacks.extend(choice.fallback.clone());
            measurement.generator.slept = sleeps(plan, *wait);
        }
        measurement.unix_socket = context.host.servers.iter().any(Server::is_unix);
        measurement.recording_rows = context.trace.as_ref().map(|trace| trace.len());
        measurement.connections.asked = context.process_share.clients() * context.lanes_at_start() as u64;
        measurement.steered = context.steering.as_ref().map(|_| Vec::new());
        measurement.samples = context.wants.rows.then(Samples::default);
        measurement.udp = plan.uses_datagrams().then(udp::DatagramCounts::default);
        // A result that is written before the end of the run says so, and may be the last one that is written.
        measurement.mark(Status::Partial, Reason::NotOver);
        Collector {
            context,
            watch,
            measurement,
            slices: OpenSlices::new(spares.len()),
            ends: PhaseEnds::new(plan.phases.len(), spares.len()),
            sum: IntervalSum::new(plan.interval_ns, Box::new(empty_interval(context))),
            spares,
            ended: vec![0; plan.phases.len()],
            before_slices: 0,
            trouble: None,
            failures: Vec::new(),
            messages_dropped: 0,
            stopped_at: None,
            unobserved: Tally::default(),
            cpu: CpuTime::default(),
            early_end: EarlyEnd::of(plan, context.process_share.is_whole()),
            rate_control: RateControl::of(context),
            warm_up: None,
            interrupted: false,
            unreported: None,
            lateness: Lateness::default(),
            asked_rows: AskedRows::default(),
            shards: Vec::new(),
            audit: AuditCounts::default(),
            measured_at: 0,
        }
    }

    /// Collects messages until every worker has ended. Returns the measurement, and how many requests this process sent at
    /// most between the looks of the observer, and how servers count them, where that is known.
    pub(super) fn collect(
        mut self,
        messages: Receiver<QueuedMessage>,
        stop: &dyn Fn() -> bool,
    ) -> (Measurement, OurRequests) {
        loop {
            match messages.recv_timeout(WATCH) {
                Ok(queued) => self.handle_message(queued),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.early_end.receive(self.context);
            self.receive_server_intervals();
            if let Some(rate_control) = &mut self.rate_control {
                rate_control.apply(self.context, &mut self.measurement, self.watch);
            }
            self.interrupt_if(stop);
            if self.stopped_at.is_none()
                && let Some(why) = self.context.unreported_evictions()
            {
                self.unreported = Some(why);
                self.stop();
            }
        }
        // Another process may have ended the run while all workers here waited for it.
        if self.context.gate.is_some() && self.ends.is_one_outstanding() {
            self.interrupt_if(stop);
        }
        let unobserved = std::mem::take(&mut self.unobserved);
        let context = self.context;
        let plan = context.plan;
        let measurement = self.finish();
        let says_hello = plan.protocol.is_resp() && context.handshake.replies() > 0;
        let observed = measurement.whole_run.ops.without(&unobserved);
        let our_requests = OurRequests::of_run(
            plan,
            &observed,
            (&measurement.connections, &measurement.counters),
            says_hello,
        );
        (measurement, our_requests)
    }

    /// Hands over new statistics of the servers within the measured phases.
    fn receive_server_intervals(&mut self) {
        let observer = self.context.observer.as_ref().filter(|_| self.context.plan.server_stats_ns.is_some());
        if let Some(newest) = observer.and_then(|observer| observer.newest.take()) {
            self.watch.server_intervals(&newest);
        }
    }

    fn handle_message(&mut self, queued: QueuedMessage) {
        let plan = self.context.plan;
        match queued.message {
            WorkerMessage::Began { phase, at, cpu, round } => {
                self.early_end.begin(phase, at, round);
                self.began(phase, at, cpu);
            }
            WorkerMessage::Spent { phase, cpu } => {
                if plan.phases[phase].recorded {
                    self.spent(cpu);
                }
            }
            WorkerMessage::Progress { phase, ended } => {
                self.ended[phase] += ended;
                let of = self.context.requests_here[phase];
                self.watch.progress(&plan.phases[phase], self.ended[phase], of);
            }
            WorkerMessage::Slice { phase, interval, worker, next } => {
                self.slice(phase, interval, worker, next);
            }
            WorkerMessage::Rows(rows) => {
                if let Some(samples) = &mut self.measurement.samples {
                    samples.written += rows.len() as u64;
                }
                self.watch.rows(&rows);
            }
            WorkerMessage::Departures(gone) => self.watch.departures(&gone),
            WorkerMessage::Finding { connection, finding } => self.watch.finding(connection, &finding),
            WorkerMessage::Complaint { connection, words } => self.watch.complaint(connection, &words),
            WorkerMessage::Connection { server, event } => self.watch.connection(server as usize, event),
            WorkerMessage::Gone => self.gone(),
            WorkerMessage::Baseline(baseline) => {
                self.measurement.baseline.get_or_insert_default().merge(&baseline);
            }
            WorkerMessage::Phase(end) => self.phase(&end),
            WorkerMessage::Done(end) => self.done(*end),
        }
    }

    /// Notes that a phase begins at `at`, when the process had used this CPU time.
    fn began(&mut self, phase: usize, at: Nanos, cpu: CpuTime) {
        let phase = &self.context.plan.phases[phase];
        self.cpu = cpu;
        if phase.recorded && self.measurement.started_unix_ns == 0 {
            self.measured_at = at;
            self.measurement.started_unix_ns = clock::wall().saturating_sub(clock::now().saturating_sub(at));
        }
        if let Some(rate_control) = &mut self.rate_control {
            rate_control.begin_phase(at, phase.stop.time_ns.filter(|_| phase.recorded), self.watch);
        }
        self.watch.begin(phase, at);
    }

    /// Notes that a worker ended a recorded phase when the process had used this CPU time. The message of the last
    /// worker counts, so that the drains of all workers are included.
    fn spent(&mut self, cpu: CpuTime) {
        let generator = &mut self.measurement.generator;
        generator.cpu_user_ns += cpu.user_ns.saturating_sub(self.cpu.user_ns);
        generator.cpu_system_ns += cpu.system_ns.saturating_sub(self.cpu.system_ns);
        self.cpu.user_ns = self.cpu.user_ns.max(cpu.user_ns);
        self.cpu.system_ns = self.cpu.system_ns.max(cpu.system_ns);
    }

    /// Counts a connection that is lost and is not opened again, and stops the run where it cannot go on without it.
    fn gone(&mut self) {
        if self.stopped_at.is_none() && self.context.plan.groups.iter().any(|group| group.policy.whole) {
            self.stop();
        }
    }

    /// Stops the run where the caller wants it to end before its time.
    fn interrupt_if(&mut self, stop: &dyn Fn() -> bool) {
        if self.stopped_at.is_none() && stop() {
            self.interrupted = true;
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.stopped_at = Some(clock::now());
        self.context.barrier.stop();
    }

    /// Adds a worker's part of a slice of a phase; slices that are whole go into the measurement, or are those of the warm-up.
    fn slice(&mut self, phase: usize, interval: Box<Interval>, worker: usize, next: u64) {
        self.warm_up = self.context.finds_end_of_warm_up(phase).then_some(phase);
        if self.warm_up.is_none() {
            self.watch.worker_turns(worker, &interval.counters.turns);
        }
        self.slices.add(interval, worker, next, |part| give_back(&self.spares, part));
        self.add_slices(self.slices.whole_before());
    }

    /// Looks at the slices of the warm-up before number `end`. Their requests belong to the whole run alone.
    fn add_warm_up_slices(&mut self, phase: usize, end: u64) {
        let tick_ns = tick_ns(self.context.plan.interval_ns);
        let Collector { context, watch, measurement, spares, slices, early_end, unobserved, ended, .. } =
            self;
        while let Some(mut slice) = slices.take(end, tick_ns, |part| give_back(spares, part)) {
            slice.evicted |= context.has_seen_eviction();
            early_end.warm_up_slice(context, &mut slice);
            if !context.process_share.is_whole() {
                watch.tick(&context.plan.phases[phase], &mut slice);
            }
            for recorder in &mut slice.groups {
                measurement.whole_run.ops.add(recorder.ops());
                unobserved.add(recorder.ops());
            }
            measurement.whole_run.bytes.merge(&slice.counters.bytes);
            ended[phase] += slice.counts().ended();
            watch.progress(&context.plan.phases[phase], ended[phase], None);
            give_back(spares, slice);
        }
    }

    /// Adds the slices before number `end` to the windows of the measurement, and to its intervals; those of a warm-up to neither.
    fn add_slices(&mut self, end: u64) {
        if let Some(phase) = self.warm_up {
            return self.add_warm_up_slices(phase, end);
        }
        let tick_ns = tick_ns(self.context.plan.interval_ns);
        let end_found_elsewhere = self.context.end_found_elsewhere();
        let Collector {
            context,
            watch,
            measurement,
            spares,
            slices,
            sum,
            ends,
            before_slices,
            early_end,
            ..
        } = self;
        let mut recorded = Recorded {
            watch: &mut **watch,
            measurement,
            before_ns: ends.before_ns(),
            before_slices: *before_slices,
            is_whole: context.process_share.is_whole(),
        };
        while let Some(mut slice) = slices.take(end, tick_ns, |part| give_back(spares, part)) {
            recorded.add_window(&mut slice, tick_ns);
            early_end.measured_slice(context, &mut slice);
            if let Some(phase) = end_found_elsewhere {
                recorded.watch.tick(&context.plan.phases[phase], &mut slice);
            }
            sum.add(&mut slice, |interval| recorded.add_interval(interval));
            give_back(spares, slice);
        }
        if end == u64::MAX {
            sum.finish(|interval| recorded.add_interval(interval));
        }
    }

    /// Takes in the end of a phase on one worker.
    fn phase(&mut self, end: &PhaseEnd) {
        let phase = &self.context.plan.phases[end.phase];
        self.measurement.whole_run.ops.merge(&end.tally);
        let observer = self.context.observer.as_ref();
        let is_observed = |(first, last): (usize, usize)| (first..=last).contains(&end.phase);
        if observer.is_some_and(|observer| !is_observed(observer.phases)) {
            self.unobserved.merge(&end.tally);
        }
        self.measurement.whole_run.bytes.merge(&end.bytes);
        if let Some(load) = &end.load {
            self.load(end, load);
        }
        if phase.recorded {
            self.measurement.connections.unheard += end.unanswered;
            self.recorded_phase(end);
        }
        if let Some(late_ns) = self.ends.add(end.phase, end.late_ns, &end.outcome) {
            self.watch.phase_over(phase, late_ns);
            if phase.recorded {
                self.end_recorded_phase();
            } else if self.context.finds_end_of_warm_up(end.phase) {
                self.add_slices(u64::MAX);
                self.warm_up = None;
                self.slices.begin_phase();
                let is_stopped = self.stopped_at.is_some();
                self.early_end.warm_up_over(
                    self.context,
                    &mut self.measurement,
                    end.span.elapsed_ns,
                    is_stopped,
                );
            }
        }
    }

    /// Takes in the end of a phase that stores records on one worker.
    fn load(&mut self, end: &PhaseEnd, stored_here: &LoadEnd) {
        let load = self.measurement.load.get_or_insert_default();
        if !self.ends.has_begun_to_end(end.phase) {
            load.records += self.context.requests_here[end.phase].unwrap_or(0);
        }
        load.add_worker(
            &stored_here.counts,
            end.outcome.repeated,
            end.span.elapsed_ns,
            stored_here.sent_bytes,
        );
        stored_here.messages.iter().for_each(|(message, count)| load.message(message, *count));
    }

    /// Takes in the end of a recorded phase on one worker.
    fn recorded_phase(&mut self, end: &PhaseEnd) {
        let measurement = &mut self.measurement;
        let phases_before = &self.context.plan.phases[..end.phase];
        if !phases_before.iter().any(|phase| phase.recorded) {
            measurement.connections.open += end.open;
        }
        let stopped_at = self.stopped_at.unwrap_or(NEVER);
        self.ends.add_recorded((end.phase, end.worker), &end.span, stopped_at, &end.outcome.silent);
        measurement.generator.workers = self.ends.worker_times();
        measurement.flight.merge(&end.flight);
        measurement.answered_ns = measurement.answered_ns.max(self.ends.before_ns() + end.answered_ns);
    }

    /// Ends a recorded phase that all workers have ended. The slices of the next recorded phase follow its own.
    fn end_recorded_phase(&mut self) {
        self.add_slices(u64::MAX);
        self.slices.begin_phase();
        self.before_slices = self.measurement.intervals.last().map_or(0, |slice| slice.index + 1);
        self.ends.end_recorded();
    }

    fn done(&mut self, end: WorkerEnd) {
        // A worker that could not go on sends no more slices.
        self.slices.end_worker(end.worker);
        self.add_slices(self.slices.whole_before());
        self.measurement.connections.merge(&end.connections);
        if let Some(lateness) = end.lateness {
            self.lateness.merge(lateness);
        }
        if let Some(asked) = &end.asked_rows {
            self.asked_rows.merge(asked);
        }
        self.audit.merge(&end.audit);
        self.measurement.verify.merge(&end.verify);
        self.shards.resize_with(self.shards.len().max(end.shards.len()), ShardBuckets::default);
        for (own, other) in self.shards.iter_mut().zip(&end.shards) {
            own.merge(other);
        }
        if let Some(samples) = &mut self.measurement.samples {
            samples.dropped += end.rows_dropped;
        }
        self.messages_dropped += end.messages_dropped;
        if let Some(udp) = &mut self.measurement.udp {
            udp.merge(&end.udp);
        }
        self.measurement.noreply_errors += end.noreply_errors;
        if let Some(failed) = end.failed_keys.as_deref() {
            self.measurement.failed_keys.get_or_insert_default().merge(failed);
        }
        for (name, count) in &end.pushes {
            self.measurement.push(name, *count);
        }
        for (message, count) in &end.messages {
            self.measurement.message(message, *count);
        }
        self.trouble = self.trouble.take().or(end.trouble);
        self.failures.extend(end.failure);
    }

    /// Completes the measurement after the last message: its figures, its status and its reason.
    fn finish(mut self) -> Measurement {
        self.add_slices(u64::MAX);
        self.measurement.measured_ns = self.ends.measured_ns();
        if let Some(published) = &self.context.cluster {
            self.measurement.cluster = Some(cluster::seen(self.context, published, &self.shards));
        }
        let counts = std::mem::take(&mut self.audit);
        self.measurement.audit =
            self.context.audit.as_ref().map(|shared| shared.audit(counts, self.measured_at));
        if self.messages_dropped > 0 {
            self.watch.notice(&format!(
                "{} messages about single connections or clients were dropped, because they came faster than they could be \
                 told",
                self.messages_dropped
            ));
        }
        self.measurement.generator.peak_rss_bytes = sys::peak_rss_bytes().unwrap_or(0);
        (self.measurement.status, self.measurement.reason) = (Status::Complete, None);
        if let Some(what) = self.unreported.take() {
            self.measurement.mark(Status::Partial, Reason::EvictionsUnreported { what });
        }
        let trouble = self.trouble.as_ref();
        self.measurement.connections.trouble =
            trouble.map(|(server, trouble)| FirstTrouble { server: *server, kind: trouble.kind() });
        let end = self.run_end();
        if let Some(reason) = shortfall(self.context.plan, &self.measurement, &end) {
            self.measurement.mark(Status::Partial, reason);
        }
        if let Some(load) = self.measurement.load.as_mut().filter(|load| load.stored < load.records) {
            load.trouble.clone_from(&end.trouble);
        }
        self.finish_trace();
        if self.interrupted {
            self.measurement.status = Status::Interrupted;
            self.measurement.reason = Some(Reason::Interrupted);
        }
        self.measurement
    }

    /// Adds the account of a replayed trace; a run whose trace could not be read is partial.
    fn finish_trace(&mut self) {
        let Some(run) = &self.context.trace_run else { return };
        let lateness = std::mem::take(&mut self.lateness);
        let mut replayed = Replayed {
            late_rows: lateness.late_rows,
            latest_ns: lateness.latest_ns,
            starved_ns: lateness.starved_ns,
            ..run.finish()
        };
        replayed.set_asked(&self.asked_rows);
        for sentence in replayed.notices.iter().cloned().chain(replayed.warnings()) {
            self.watch.notice(&sentence);
        }
        let is_empty = self.measurement.groups.iter().all(|group| group.ops.all().counts.requests() == 0);
        let taken = replayed.taken_by_warm_up(self.context.plan, is_empty);
        // Nothing is asked of a trace that cannot be read: that is why, and no reason of its own.
        let unread = replayed.error.clone().map(|what| Reason::TraceUnread { what });
        for reason in unread.into_iter().chain(taken) {
            self.measurement.mark(Status::Partial, reason.clone());
            if self.measurement.status == Status::Partial {
                self.measurement.reason = Some(reason);
            }
        }
        self.measurement.replayed = Some(replayed);
    }

    /// The end of the run, for its status and its reason.
    fn run_end(&self) -> RunEnd {
        let context = self.context;
        let loads_ended = (0..context.plan.phases.len()).filter(|&phase| self.ends.is_over(phase));
        let name = |server: u32| context.host.servers[server as usize].name().to_string();
        let refused = |errno| Trouble::NotOpened(CloseReason::new(Fault::Closed, errno)).to_string();
        let silent = |silence: &PhaseSilence| SilentServer {
            server: name(silence.server),
            silent_ns: silence.silent_ns,
            turned_away: silence.turned_away,
        };
        RunEnd {
            is_whole: context.process_share.is_whole(),
            worker_failure: self.failures.first().map(io::Error::to_string),
            load_failed: loads_ended.map(|phase| context.loaded_by(phase)).any(Loaded::has_failed),
            ended_all_phases: self.ends.are_all_over(),
            dead: self.ends.dead(),
            missing: self.ends.missing(),
            trouble: self.trouble.as_ref().map(|(server, trouble)| ServerTrouble {
                server: name(*server),
                kind: trouble.kind(),
                what: trouble.to_string(),
            }),
            silent: self.ends.silent().map(silent).collect(),
            no_descriptor: refused(libc::EMFILE),
            no_file: refused(libc::ENFILE),
        }
    }
}
