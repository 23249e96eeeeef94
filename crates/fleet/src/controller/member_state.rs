//! One member of a run over agents, as its controller knows it: an agent, or the controller's own process.

use pummel_engine::clock;
use pummel_logic::merge::Merge as _;
use pummel_logic::plan::Plan;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::time::Nanos;
use pummel_measure::agents::{Lost, Member};
use pummel_measure::completion::{Loaded, share_shortfall};
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::parcel::Parcel;
use pummel_measure::reason::{MemberReason, MemberWhy};
use pummel_measure::recorder::{Counts, OpRecord, Span};
use pummel_measure::summary::Figures;
use pummel_measure::uncertainty::ProcessTimes;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::agent::member;
use crate::agent::member::{MemberControl, MemberEvent, MemberTask};
use crate::agent::proto::v2;
use crate::agent::proto::v2::command::What as Told;
use crate::controller::agent_link::AgentLink;
use crate::controller::event_queue::EventSender;

/// Passes commands to a member.
pub(super) enum AgentHandle {
    /// An agent, by its link.
    Agent(UnboundedSender<Told>),
    /// The controller's own process.
    Own {
        /// Task of the member; `None` once it has begun.
        task: Option<Box<MemberTask>>,
        /// Control of the member; `None` until it has begun.
        control: Option<MemberControl>,
        /// Queue of its events, with its number among the members.
        say: EventSender,
        /// Its number among the members.
        number: usize,
    },
}

impl AgentHandle {
    /// The controller's own process as member `number`.
    pub(super) fn own(task: MemberTask, say: EventSender, number: usize) -> AgentHandle {
        AgentHandle::Own { task: Some(Box::new(task)), control: None, say, number }
    }

    /// Tells the member to connect to the servers, since all members have accepted.
    pub(super) fn connect(&mut self) {
        match self {
            AgentHandle::Agent(commands) => drop(commands.send(Told::Connect(v2::Connect {}))),
            AgentHandle::Own { task, control, say, number } => {
                let Some(task) = task.take() else { return };
                let (line, number) = (say.clone(), *number);
                match member::begin(*task, move |event| line.send_while_heard((number, event))) {
                    Ok(begun) => *control = Some(begun),
                    Err(error) => say.send((number, MemberEvent::Failed(error.to_string()))),
                }
            }
        }
    }

    /// Tells the member that phase `phase` begins at `at` of the member's monotonic clock.
    fn begin_phase(&self, phase: u32, at: Nanos) {
        match self {
            AgentHandle::Agent(commands) => drop(commands.send(Told::Go(v2::Go { phase, at_ns: at }))),
            AgentHandle::Own { control, .. } => {
                if let Some(control) = control {
                    // No phase is begun twice, so that there is room for each.
                    let _ = control.go(at);
                }
            }
        }
    }

    /// Sends the member the end of phase `phase`, at `at` of the member's monotonic clock.
    fn end_phase(&self, phase: u32, at: Nanos) {
        match self {
            AgentHandle::Agent(commands) => {
                drop(commands.send(Told::EndPhase(v2::EndPhase { phase, at_ns: at })));
            }
            AgentHandle::Own { control, .. } => {
                if let Some(control) = control {
                    // The phase is one of the plan.
                    let _ = control.end_phase(phase, at);
                }
            }
        }
    }

    /// Tells the member to come to an end.
    pub(super) fn stop(&self) {
        match self {
            AgentHandle::Agent(commands) => drop(commands.send(Told::Stop(v2::Stop {}))),
            AgentHandle::Own { control: Some(control), .. } => control.stop(),
            AgentHandle::Own { control: None, .. } => {}
        }
    }
}

/// End of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberOutcome {
    /// The member said what it measured.
    Ended,
    /// The member could not begin.
    Failed,
    /// The member was lost.
    Lost,
}

/// One member of a run.
pub(super) struct MemberState {
    /// Its name in reports.
    pub(super) name: String,
    pub(super) share: ProcessShare,
    /// `None` for the controller itself, whose clocks are the controller's.
    link: Option<AgentLink>,
    pub(super) handle: AgentHandle,
    /// The member can follow its order.
    pub(super) has_accepted: bool,
    /// The phase that it is ready for.
    pub(super) ready: Option<u32>,
    /// Records that the phase before the one that it is ready for stored on it.
    pub(super) loaded: Loaded,
    /// Times that it measured, as far as they are compared with those of the others; `None` before its end.
    pub(super) times: Option<ProcessTimes>,
    /// All its slices before this one have come.
    pub(super) next_slice: u64,
    /// The user was told that its part of slices comes late.
    pub(super) is_behind: bool,
    /// All of the member's ticks of the phase under way before this one have come.
    pub(super) next_tick: u64,
    /// The slices that have come, added up for the case that the member is lost. They are packed, since there may be very
    /// many members.
    pub(super) sum: Option<Box<Parcel>>,
    /// Delay in nanoseconds with which it began the measured phase.
    pub(super) late_ns: Option<Nanos>,
    /// Requests of the phase under way that have ended, where that phase is not recorded.
    pub(super) ended: u64,
    /// Requests that the phase under way makes on it, where that is known.
    pub(super) of: Option<u64>,
    /// When it was last heard of, on the controller's monotonic clock.
    pub(super) heard_at: Nanos,
    /// Its loss; `None` while it is there, and where it stayed to the end.
    pub(super) lost: Option<Lost>,
    /// Figures that it measured, once that is over: counts, and times by span.
    figures: Option<(Counts, [Figures; Span::COUNT])>,
    /// Reasons why its share of the run is not complete.
    pub(super) shortfalls: Vec<MemberReason>,
    /// Its end; `None` while it is there.
    pub(super) outcome: Option<MemberOutcome>,
}

impl MemberState {
    pub(super) fn new(
        name: String,
        share: ProcessShare,
        link: Option<AgentLink>,
        handle: AgentHandle,
    ) -> MemberState {
        MemberState {
            name,
            share,
            link,
            handle,
            has_accepted: false,
            ready: None,
            loaded: Loaded::default(),
            next_slice: 0,
            is_behind: false,
            next_tick: 0,
            sum: None,
            late_ns: None,
            times: None,
            ended: 0,
            of: None,
            heard_at: clock::now(),
            lost: None,
            figures: None,
            shortfalls: Vec::new(),
            outcome: None,
        }
    }

    /// The controller's time at the member's time `at`.
    pub(super) fn to_controller_time(&self, at: Nanos) -> Nanos {
        self.link.as_ref().map_or(at, |link| link.offset().ours(at))
    }

    /// Greatest error of the member's clocks, in nanoseconds.
    pub(super) fn clock_error_ns(&self) -> Nanos {
        self.link.as_ref().map_or(0, |link| link.offset().error_ns)
    }

    /// Whether the member has not come to its end.
    pub(super) fn is_here(&self) -> bool {
        self.outcome.is_none()
    }

    /// The name of an agent; `None` for the controller itself.
    pub(super) fn agent_name(&self) -> Option<&str> {
        self.link.as_ref().map(|_| self.name.as_str())
    }

    /// Its name in a sentence.
    pub(super) fn title(&self) -> String {
        match self.link {
            Some(_) => format!("agent {}", self.name),
            None => self.name.clone(),
        }
    }

    /// Tells the member that a phase begins at `at` of the controller's monotonic clock.
    pub(super) fn begin_phase(&mut self, phase: u32, at: Nanos) {
        let at_member = self.link.as_ref().map_or(at, |link| link.offset().theirs(at));
        self.handle.begin_phase(phase, at_member);
        (self.ended, self.of, self.next_tick) = (0, None, 0);
    }

    /// Sends the member the end of a phase, at `at` of the controller's monotonic clock.
    pub(super) fn end_phase(&self, phase: u32, at: Nanos) {
        let at_member = self.link.as_ref().map_or(at, |link| link.offset().theirs(at));
        self.handle.end_phase(phase, at_member);
    }

    /// Cuts the link to a lost member, so that an agent that only slept finds itself given up.
    pub(super) fn cut_link(&mut self) {
        self.handle = AgentHandle::Agent(unbounded_channel().0);
    }

    /// Notes what is missing from the member's share, of which it measured this; `is_told` says that the member was told to
    /// stop, and `agreed_ns` is the time that it was to measure where that was found while the run went on.
    pub(super) fn note_shortfall(
        &mut self,
        plan: &Plan,
        measurement: &Measurement,
        is_told: bool,
        agreed_ns: Option<Nanos>,
    ) {
        let shortfall = match (measurement.status, &measurement.reason) {
            (Status::Partial, Some(reason)) => Some(MemberWhy::Run(Box::new(reason.clone()))),
            (Status::Interrupted, _) if is_told => None,
            (status, _) => {
                // A member that has the whole load finds the end of the measurement by itself.
                let own_ns =
                    plan.adaptive.until.filter(|_| self.share.is_whole()).map(|until| until.least_ns);
                let undone = share_shortfall(plan, &self.share, measurement, agreed_ns.or(own_ns));
                let early = || (status != Status::Complete).then_some(MemberWhy::EndedEarly);
                undone.map(MemberWhy::Share).or_else(early)
            }
        };
        shortfall.into_iter().for_each(|why| self.note_why(why));
    }

    /// Notes a reason why the member's share is not complete.
    pub(super) fn note_why(&mut self, why: MemberWhy) {
        let (member, is_agent) = (self.name.clone(), self.link.is_some());
        self.shortfalls.push(MemberReason { member, is_agent, why });
    }

    /// Notes the counts and figures of what the member measured. Histograms are not kept: those of very many members would
    /// take much memory.
    pub(super) fn note_figures(&mut self, plan: &Plan, measurement: &Measurement) {
        let mut op = OpRecord::default();
        measurement.groups.iter().for_each(|group| op.merge(&group.ops.all()));
        self.figures = Some((op.counts, Figures::of_op(&op, plan.timeout_ns)));
        self.times = ProcessTimes::of(measurement);
        self.sum = None;
    }

    /// The member in a result.
    pub(super) fn report(&self, plan: &Plan) -> Member {
        let offset = self.link.as_ref().map(AgentLink::offset);
        let idle = || (Counts::default(), Figures::of_op(&OpRecord::default(), plan.timeout_ns));
        let (counts, figures) = self.figures.unwrap_or_else(idle);
        Member {
            name: self.name.clone(),
            clients: self.share.clients(),
            threads: self.share.threads,
            clock_offset_ns: offset.map_or(0, |offset| offset.wall_ns),
            clock_error_ns: offset.map_or(0, |offset| offset.error_ns),
            late_ns: self.late_ns,
            lost: self.lost.clone(),
            counts,
            figures,
            deviation: None,
        }
    }
}
