//! The part of a run in one process: the engine on a thread of its own, which takes commands and tells events.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use pummel_engine::clock;
use pummel_engine::run::{Gate, Inputs, Run, RunError, Watch};
use pummel_logic::plan::Phase;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::time::{NEVER, Nanos, SECOND};
use pummel_measure::agents::LossReason;
use pummel_measure::completion::Loaded;
use pummel_measure::counters::Turns;
use pummel_measure::events::Wants;
use pummel_measure::events::{ConnectionEvent, Row};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::parcel::Parcel;
use pummel_measure::summary::Summary;
use pummel_report::snapshot::{SharedSnapshot, Snapshot};

use crate::program::Program;

/// Pause between two looks of a waiting member whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Time before its beginning at which a phase is handed to the engine, which then waits whatever comes. Until then the member
/// looks whether it is to stop.
const HAND_OVER_NS: Nanos = SECOND;

/// Task of a member: a plan, and its share of it.
#[derive(Debug)]
pub struct MemberTask {
    /// The program that runs the part.
    pub program: Program,
    /// The whole plan.
    pub plan: ValidPlan,
    /// The clients of the plan that are in this process.
    pub part: ProcessShare,
    /// Data that the controller wants beside the figures.
    pub wants: Wants,
    /// The inputs of the run that are not in the plan.
    pub inputs: Inputs,
    /// The name of the run, as its controller knows it; empty where the controller does not say it.
    pub run_name: String,
    /// State that the metrics of this process show; `None` if it serves no metrics.
    pub snapshot: Option<SharedSnapshot>,
}

/// An event of a member.
#[derive(Debug)]
pub enum MemberEvent {
    /// The order can be followed; nothing was begun yet.
    Accepted,
    /// The member cannot follow the order.
    Refused {
        /// Why, as a sentence without its full stop.
        why: String,
        /// No agent can follow it.
        usage: bool,
    },
    /// Everything is ready for a phase.
    Ready {
        /// Index of the phase.
        phase: u32,
        /// Records that the phase before it stored here; nothing of nothing where that was no load.
        loaded: Loaded,
    },
    /// A phase has begun.
    Began(u32),
    /// A phase is over on the member.
    PhaseOver {
        /// Index of the phase.
        phase: u32,
        /// Delay in nanoseconds with which the last worker of the member had begun it.
        late_ns: Nanos,
    },
    /// The member's part of a slice.
    Slice(Box<Parcel>),
    /// The member's part of a tick, in a phase whose end the controller finds.
    Tick {
        /// Index of the phase.
        phase: u32,
        /// Counts and response times.
        part: Box<Parcel>,
    },
    /// Requests; their times are relative to the beginning of the first measured phase.
    Rows(Vec<Row>),
    /// Progress of a phase.
    Progress {
        /// Index of the phase.
        phase: u32,
        /// Requests that have ended.
        ended: u64,
        /// Of so many, where that is known.
        of: Option<u64>,
    },
    /// Something is not as it was asked for.
    Notice(String),
    /// The run is over.
    End {
        /// Measurement of the member.
        measurement: Box<Measurement>,
        /// The end that the member's own process put to the run; `None` where the run went on until it was over, or until
        /// the controller stopped it.
        cut_short: Option<CutShort>,
    },
    /// The run did not begin.
    Failed(String),
    /// The member is lost.
    Lost {
        /// Reason of the loss.
        why: LossReason,
        /// The time since it was last heard of, in nanoseconds.
        silent_ns: Nanos,
    },
}

impl MemberEvent {
    /// Whether the member tells nothing after this event. A lost member tells nothing at all: the controller finds it lost.
    pub fn is_last(&self) -> bool {
        matches!(self, MemberEvent::End { .. } | MemberEvent::Failed(_) | MemberEvent::Refused { .. })
    }
}

/// The end that a process puts to its part of a run before the controller does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutShort {
    /// Why, as a sentence whose subject is the process.
    pub why: String,
    /// When, on the monotonic clock of the process.
    pub at: Nanos,
}

/// Moments at which phases end before their time, on the monotonic clock, by number: at most one for each phase of the
/// plan.
type PhaseEnds = BTreeMap<u32, Nanos>;

/// Passes commands to a member.
#[derive(Clone, Debug)]
pub struct MemberControl {
    phases: u32,
    go: SyncSender<Nanos>,
    ends: Arc<Mutex<PhaseEnds>>,
    stop: Arc<AtomicBool>,
    cut_short: Arc<OnceLock<CutShort>>,
}

impl MemberControl {
    /// The next phase that was not begun yet begins at `at`, on the monotonic clock. Returns false, and has no effect, when
    /// more phases are to begin than the plan has.
    pub fn go(&self, at: Nanos) -> bool {
        // A member that has come to an end does not listen any more.
        !matches!(self.go.try_send(at), Err(TrySendError::Full(_)))
    }

    /// The phase with this number ends at `at`, on the monotonic clock, unless it ends before that. Returns false, and has no
    /// effect, for a phase that the plan does not have.
    pub fn end_phase(&self, phase: u32, at: Nanos) -> bool {
        let is_known = phase < self.phases;
        if is_known {
            self.ends.lock().unwrap_or_else(|broken| broken.into_inner()).entry(phase).or_insert(at);
        }
        is_known
    }

    /// The run ends now, because the controller says so.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// The run ends now, although the controller did not say so. The first reason counts, and none that comes after the
    /// controller's word.
    pub fn cut_short(&self, why: impl Into<String>) {
        if !self.stop.load(Ordering::Acquire) {
            self.cut_short.get_or_init(|| CutShort { why: why.into(), at: clock::now() });
        }
        self.stop();
    }
}

/// Begins a task. `say` gets every event of the member, on the member's thread, and returns whether it was taken; the
/// last event is one for which [`MemberEvent::is_last`] holds.
///
/// # Errors
/// Returns the system's error when it gives no thread.
pub fn begin(
    task: MemberTask,
    say: impl Fn(MemberEvent) -> bool + Send + Sync + 'static,
) -> io::Result<MemberControl> {
    let (go, told) = sync_channel(task.plan.phases.len());
    let stop = Arc::new(AtomicBool::new(false));
    let cut_short = Arc::new(OnceLock::new());
    let ends = Arc::new(Mutex::new(PhaseEnds::new()));
    let control = MemberControl {
        phases: task.plan.phases.len() as u32,
        go,
        ends: Arc::clone(&ends),
        stop: Arc::clone(&stop),
        cut_short: Arc::clone(&cut_short),
    };
    thread::Builder::new().name("member".to_owned()).spawn(move || {
        let told = Mutex::new(told);
        let waiting = Waiting { say: &say, told, ends: &ends, stop: &stop, phase: AtomicU32::new(0) };
        let mut watch = Speaker { task: &task, say: &say, stop: &stop, began: None };
        watch.show(|snapshot| {
            snapshot.belong_to(&task.run_name);
            snapshot.announce_share(&task.plan, &task.part);
        });
        let run = Run::new(&task.plan).with_inputs(&task.inputs).with_process_share(&task.part, &waiting);
        let result = run.start(&mut watch, &|| stop.load(Ordering::Acquire));
        let measured = result.as_ref().ok();
        watch.show(|snapshot| {
            let summary = measured.map(|measured| Summary::of(measured, &task.plan));
            snapshot.end(&task.plan, measured.zip(summary.as_ref()));
        });
        say(match result {
            Ok(mut measurement) => {
                (task.program.note_build)(&mut measurement);
                let is_cut = measurement.status == Status::Interrupted;
                let cut_short = cut_short.get().filter(|_| is_cut).cloned();
                MemberEvent::End { measurement: Box::new(measurement), cut_short }
            }
            Err(error @ RunError::Plan(_)) => MemberEvent::Refused { why: error.to_string(), usage: true },
            Err(RunError::Interrupted) => {
                let why = cut_short.get().map_or("it was told to end before it began", |cut| &cut.why);
                MemberEvent::Failed(why.to_owned())
            }
            Err(error) => MemberEvent::Failed(error.to_string()),
        });
    })?;
    Ok(control)
}

/// The gate at which a member waits for the other members.
struct Waiting<'a, S> {
    say: &'a S,
    told: Mutex<Receiver<Nanos>>,
    ends: &'a Mutex<PhaseEnds>,
    stop: &'a AtomicBool,
    phase: AtomicU32,
}

impl<S: Fn(MemberEvent) -> bool + Sync> Gate for Waiting<'_, S> {
    fn pass(&self, _ready: Nanos, loaded: Loaded) -> Option<Nanos> {
        let told = self.told.lock().unwrap_or_else(|broken| broken.into_inner());
        let phase = self.phase.fetch_add(1, Ordering::Relaxed);
        if !(self.say)(MemberEvent::Ready { phase, loaded }) {
            return None;
        }
        let at = loop {
            match told.recv_timeout(LOOK) {
                Ok(at) => break at,
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => return None,
            }
        };
        self.await_hand_over(at).then_some(at)
    }

    fn early_end(&self, phase: usize) -> Option<Nanos> {
        let ends = self.ends.lock().unwrap_or_else(|broken| broken.into_inner());
        ends.get(&(phase as u32)).copied()
    }
}

impl<S> Waiting<'_, S> {
    /// Waits until a phase that begins at `at` is handed to the engine; returns false when the member is to stop before.
    fn await_hand_over(&self, at: Nanos) -> bool {
        loop {
            let left_ns = at.saturating_sub(clock::now()).saturating_sub(HAND_OVER_NS);
            if left_ns == 0 {
                return true;
            }
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            thread::sleep(LOOK.min(Duration::from_nanos(left_ns)));
        }
    }
}

/// Turns what the engine tells into events of the member.
struct Speaker<'a, S> {
    task: &'a MemberTask,
    say: &'a S,
    stop: &'a AtomicBool,
    /// When the first measured phase began.
    began: Option<Nanos>,
}

impl<S: Fn(MemberEvent) -> bool> Speaker<'_, S> {
    fn say(&self, event: MemberEvent) {
        if !(self.say)(event) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Changes the state that the metrics of this process show.
    fn show(&self, change: impl FnOnce(&mut Snapshot)) {
        if let Some(snapshot) = &self.task.snapshot {
            change(&mut snapshot.lock());
        }
    }

    fn number(&self, phase: &Phase) -> u32 {
        let place = self.task.plan.phases.iter().position(|other| std::ptr::eq(other, phase));
        place.unwrap_or(0) as u32
    }
}

impl<S: Fn(MemberEvent) -> bool> Watch for Speaker<'_, S> {
    fn wants(&self) -> Wants {
        Wants { connections: self.task.snapshot.is_some(), ..self.task.wants }
    }

    fn notice(&mut self, words: &str) {
        self.say(MemberEvent::Notice(words.to_owned()));
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        if phase.recorded {
            self.began.get_or_insert(at);
        }
        self.show(|snapshot| snapshot.begin(phase, at, (clock::wall() + at).saturating_sub(clock::now())));
        self.say(MemberEvent::Began(self.number(phase)));
    }

    fn phase_over(&mut self, phase: &Phase, late_ns: Nanos) {
        self.say(MemberEvent::PhaseOver { phase: self.number(phase), late_ns });
    }

    fn progress(&mut self, phase: &Phase, ended: u64, of: Option<u64>) {
        self.show(|snapshot| snapshot.progress(ended, of));
        self.say(MemberEvent::Progress { phase: self.number(phase), ended, of });
    }

    fn interval(&mut self, interval: &mut Interval) {
        self.show(|snapshot| snapshot.add(&self.task.plan, interval));
        self.say(MemberEvent::Slice(Box::new(Parcel::of(interval))));
    }

    fn slice(&mut self, so_far: &Measurement) {
        self.show(|snapshot| snapshot.slice(&self.task.plan, so_far));
    }

    fn worker_turns(&mut self, worker: usize, turns: &Turns) {
        self.show(|snapshot| snapshot.worker(worker, turns));
    }

    fn connection(&mut self, _server: usize, event: ConnectionEvent) {
        self.show(|snapshot| snapshot.connection(event));
    }

    fn tick(&mut self, phase: &Phase, slice: &mut Interval) {
        let part = Box::new(Parcel::of_responses(slice));
        self.say(MemberEvent::Tick { phase: self.number(phase), part });
    }

    fn rows(&mut self, rows: &[Row]) {
        let began = self.began.unwrap_or(0);
        let relative = |time: Nanos| if time == NEVER { NEVER } else { time.saturating_sub(began) };
        let rows = rows.iter().map(|row| Row {
            due: relative(row.due),
            ready: relative(row.ready),
            sent: relative(row.sent),
            arrived: relative(row.arrived),
            read: relative(row.read),
            ..*row
        });
        self.say(MemberEvent::Rows(rows.collect()));
    }
}
