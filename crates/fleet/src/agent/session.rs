//! One controller's session with an agent: its order, and what follows from it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pummel_engine::clock;
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::completion::Loaded;
use pummel_report::snapshot::SharedSnapshot;
use pummel_report::visible::foreign;
use pummel_report::words::reason::loss;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};

use crate::agent::lease::{Holder, Lease};
use crate::agent::member;
use crate::agent::member::{CutShort, MemberControl, MemberEvent, MemberTask};
use crate::agent::order::{Refusal, task_of};
use crate::agent::overrides::{LocalOverrides, OrderLog};
use crate::agent::peers::{Closing, Peer};
use crate::agent::policy::AccessPolicy;
use crate::agent::proto::v2::command::What as Told;
use crate::agent::proto::v2::event::What as Word;
use crate::agent::proto::{BEAT, PATIENCE, mismatch, pack_rows, v2};
use crate::program::Program;

/// Most characters that are kept of what a controller calls itself.
const CONTROLLER_CHARS_MAX: usize = 200;

/// The longest time in nanoseconds from the word that a phase begins to its beginning.
const AHEAD_MAX_NS: Nanos = 10 * SECOND;

/// One controller's session.
pub(super) struct AgentSession {
    pub(super) program: Program,
    pub(super) policy: Arc<AccessPolicy>,
    pub(super) overrides: LocalOverrides,
    pub(super) on_order: Option<OrderLog>,
    /// State that the metrics of the agent show.
    pub(super) snapshot: Option<SharedSnapshot>,
    pub(super) lease: Arc<Lease>,
    /// No other session of the agent has this number.
    pub(super) number: u64,
    pub(super) peer: Arc<Peer>,
    pub(super) events: mpsc::Sender<Result<v2::Event, Status>>,
}

/// Silence of a controller, as far as the agent was there to hear it.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// Since when nothing was heard, later by the time in which the agent stood still.
    since: Instant,
    /// When it was looked last.
    looked: Instant,
}

/// The agent looks once a beat. One that did not for so long stood still: a process that was stopped, a machine that slept.
const STANDSTILL: Duration = BEAT.saturating_mul(2);

impl Silence {
    fn new(now: Instant) -> Silence {
        Silence { since: now, looked: now }
    }

    /// Length of the silence when it is looked at again.
    fn at(&mut self, now: Instant) -> Duration {
        let unlooked = now.duration_since(self.looked);
        if unlooked > STANDSTILL {
            self.since += unlooked;
        }
        self.looked = now;
        now.saturating_duration_since(self.since)
    }
}

fn event(what: Word) -> Result<v2::Event, Status> {
    Ok(v2::Event { what: Some(what) })
}

impl AgentSession {
    /// Follows the controller's first command, which has to be an order, and those after it.
    pub(super) async fn receive(self, mut commands: Streaming<v2::Command>) {
        let order = match timeout(PATIENCE, commands.next()).await {
            Ok(Some(Ok(v2::Command { what: Some(Told::Order(order)) }))) => order,
            Ok(Some(Err(status))) => return self.turn_away(status.message().to_owned(), false).await,
            _ => return self.turn_away("the first command has to be an order".to_owned(), false).await,
        };
        if let Some(why) = mismatch(
            &self.program.build(),
            order.protocol,
            order.build.as_ref(),
            order.allow_version_mismatch,
        ) {
            return self.turn_away(format!("the controller {why}"), false).await;
        }
        if let Err(held) = self.take(&order) {
            return self.turn_away(format!("it is held by {held}"), false).await;
        }
        self.serve(order, commands).await;
        self.lease.release(self.number);
    }

    /// Makes the agent this controller's; an error names the controller that holds it.
    fn take(&self, order: &v2::Order) -> Result<(), String> {
        let controller = foreign(&order.controller);
        self.lease.take(Holder {
            number: self.number,
            controller: controller.chars().take(CONTROLLER_CHARS_MAX).collect(),
            address: self.peer.address,
            since: Instant::now(),
            control: None,
            connection: self.peer.hold(),
        })
    }

    /// Tells the controller why its order is not followed.
    async fn turn_away(&self, why: String, usage: bool) {
        self.peer.refused(&why);
        self.tell(Word::Refused(v2::Refused { why, usage })).await;
    }

    /// Sends an event; returns false where the controller is gone or takes none.
    async fn tell(&self, what: Word) -> bool {
        matches!(timeout(PATIENCE, self.events.send(event(what))).await, Ok(Ok(())))
    }

    /// Checks an order while others may ask for the clock: files and names may take their time. The check ends early when
    /// the controller is gone.
    async fn check(&self, order: v2::Order) -> Result<MemberTask, Refusal> {
        let (policy, overrides, program) = (Arc::clone(&self.policy), self.overrides.clone(), self.program);
        let is_wanted = Arc::new(AtomicBool::new(true));
        let still_wanted = Arc::clone(&is_wanted);
        let mut checking = tokio::task::spawn_blocking(move || {
            task_of(&order, program, &policy, &overrides, &|| still_wanted.load(Ordering::Relaxed))
        });
        let mut beat = interval(BEAT);
        loop {
            tokio::select! {
                checked = &mut checking => {
                    return checked.unwrap_or_else(|error| Err(Refusal::here(error.to_string())));
                }
                _ = beat.tick() => {
                    self.beat();
                    is_wanted.fetch_and(!self.events.is_closed(), Ordering::Relaxed);
                }
            }
        }
    }

    /// Follows an order, until its run is over and the controller has heard of it, or is gone.
    async fn serve(&self, order: v2::Order, mut commands: Streaming<v2::Command>) {
        let task = match self.check(order).await {
            Ok(task) => task,
            Err(Refusal { why, usage }) => return self.turn_away(why, usage).await,
        };
        if let Some(OrderLog(lines)) = self.on_order {
            lines(&task.plan, &task.part, self.overrides.weight)
                .iter()
                .for_each(|line| (self.program.say)(format_args!("{line}")));
        }
        let mut task = Some(task);
        if !self.tell(Word::Accepted(v2::Accepted {})).await {
            return;
        }
        let (over, mut is_over) = watch::channel(false);
        let over = Arc::new(over);
        let mut control: Option<MemberControl> = None;
        let mut beat = interval(BEAT);
        let mut silence = Silence::new(Instant::now());
        loop {
            let patience = PATIENCE.saturating_sub(silence.at(Instant::now()));
            tokio::select! {
                command = timeout(patience, commands.next()) => match command {
                    Ok(Some(Ok(command))) => { silence = Silence::new(Instant::now()); match command.what {
                        Some(Told::Connect(_)) => {
                            let Some(task) = task.take() else { continue };
                            match self.begin(task, Arc::clone(&over)) {
                                Ok(begun) => {
                                    self.lease.has_begun(&begun);
                                    control = Some(begun);
                                }
                                Err(error) => return self.turn_away(error.to_string(), false).await,
                            }
                        }
                        Some(Told::Go(go)) if go.at_ns.saturating_sub(clock::now()) > AHEAD_MAX_NS => {
                            self.peer.refused("it wants a phase to begin more than 10 s ahead");
                            break;
                        }
                        Some(Told::Go(go)) => if let Some(control) = &control
                            && !control.go(go.at_ns)
                        {
                            self.peer.refused("it begins more phases than its plan has");
                            break;
                        },
                        Some(Told::EndPhase(end)) => if let Some(control) = &control
                            && !control.end_phase(end.phase, end.at_ns)
                        {
                            self.peer.refused("it ends a phase that its plan has not");
                            break;
                        },
                        Some(Told::Stop(_)) => match &control {
                            Some(control) => control.stop(),
                            None => return,
                        },
                        Some(Told::Beat(_)) => {}
                        Some(Told::Order(_)) | None => break,
                    }},
                    Ok(Some(Err(_)) | None) => break,
                    // The agent itself may have stood still.
                    Err(_) if silence.at(Instant::now()) < PATIENCE => {}
                    Err(_) => {
                        (self.program.say)(format_args!("the controller at {} has gone silent", self.peer.address));
                        if let Some(control) = &control {
                            let silent = silence.at(Instant::now()).as_secs_f64();
                            control.cut_short(format!("it heard nothing from its controller for {silent:.1} s"));
                        }
                        break;
                    }
                },
                _ = beat.tick() => {
                    self.beat();
                    if self.events.is_closed() {
                        break;
                    }
                }
                _ = is_over.changed() => return,
            }
        }
        if let Some(control) = control {
            control.stop();
            // The agent is free when nothing of the job is left. A job that cannot get rid of its events does not end, so
            // that a controller that takes none is hung up on.
            if timeout(PATIENCE, is_over.wait_for(|over| *over)).await.is_err() {
                self.peer.close(Closing::Unread);
                // An error says that the job's thread is gone, which is an end too.
                let _ = is_over.wait_for(|over| *over).await;
            }
        }
    }

    /// Says that the agent is still there; where events wait to be sent there is no need for it.
    fn beat(&self) {
        let _ = self.events.try_send(event(Word::Beat(v2::Beat {})));
    }

    /// Runs a task on a thread of its own, and sends what it says.
    fn begin(&self, task: MemberTask, over: Arc<watch::Sender<bool>>) -> io::Result<MemberControl> {
        let (events, lease, number) = (self.events.clone(), Arc::clone(&self.lease), self.number);
        let runtime = Handle::current();
        let task = MemberTask { snapshot: self.snapshot.clone(), ..task };
        member::begin(task, move |member_event| {
            let is_last = member_event.is_last();
            let word = event(word_of(member_event));
            if !is_last {
                return events.blocking_send(word).is_ok();
            }
            // The agent is free when the last word has its place among those that are sent, and just before it is sent: a
            // controller that has heard it may come back at once.
            let place = runtime.block_on(events.reserve());
            lease.release(number);
            let heard = place.map(|place| place.send(word)).is_ok();
            over.send_replace(true);
            heard
        })
    }
}

/// The event of the protocol that passes on what a member says.
fn word_of(event: MemberEvent) -> Word {
    let json = |data: serde_json::Result<Vec<u8>>| data.expect("measurements have nothing that JSON has not");
    let failed = |failure| Word::End(v2::End { failure, ..v2::End::default() });
    match event {
        MemberEvent::Accepted => Word::Accepted(v2::Accepted {}),
        MemberEvent::Refused { why, usage } => Word::Refused(v2::Refused { why, usage }),
        MemberEvent::Ready { phase, loaded: Loaded { records, stored } } => {
            Word::Ready(v2::Ready { phase, records, stored })
        }
        MemberEvent::Began(phase) => Word::Began(v2::Began { phase }),
        MemberEvent::PhaseOver { phase, late_ns } => Word::PhaseOver(v2::PhaseOver { phase, late_ns }),
        MemberEvent::Slice(parcel) => {
            Word::Interval(v2::Interval { slice: json(serde_json::to_vec(&parcel)).into() })
        }
        MemberEvent::Tick { phase, part } => {
            Word::Tick(v2::Tick { phase, slice: json(serde_json::to_vec(&part)).into() })
        }
        MemberEvent::Rows(rows) => Word::Rows(pack_rows(&rows)),
        MemberEvent::Progress { phase, ended, of } => Word::Progress(v2::Progress { phase, ended, of }),
        MemberEvent::Notice(words) => Word::Notice(v2::Notice { words }),
        MemberEvent::End { measurement, cut_short } => Word::End(v2::End {
            measurement: json(serde_json::to_vec(&measurement)).into(),
            failure: String::new(),
            cut_short: cut_short.map(|CutShort { why, at }| v2::CutShort { why, at_ns: at }),
        }),
        MemberEvent::Failed(failure) => failed(failure),
        MemberEvent::Lost { why, .. } => failed(loss(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_the_agent_stood_still_is_no_silence_of_its_controller() {
        let began = Instant::now();
        let mut silence = Silence::new(began);
        assert_eq!(silence.at(began + BEAT), BEAT);
        let woke = began + BEAT + Duration::from_secs(60);
        assert_eq!(silence.at(woke), BEAT, "it was stopped for a minute");
        let mut now = woke;
        let mut beats = 1;
        while silence.at(now) < PATIENCE {
            now += BEAT;
            beats += 1;
        }
        assert_eq!(BEAT * beats, PATIENCE, "the time before and after it counts");
    }
}
