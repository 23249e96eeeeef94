//! The start of a run: the choice of the kernel interface and the codec, and the threads of the workers.

use std::sync::{Arc, mpsc};
use std::thread;

use pummel_logic::plan::{self, Clock, CodecOptions, Plan, Wait, WithCodec};
use pummel_logic::protocol::Codec;
use pummel_measure::completion::note_limits;
use pummel_measure::evidence::OurRequests;
use pummel_measure::measurement::{Measurement, Status};

use super::card;
use super::collect::Collector;
use super::context::{HostSetup, Observation, Process, RunContext};
use super::error::RunError;
use super::inputs::Inputs;
use super::login_demand;
use super::phases::{MakeBackend, run_worker};
use super::servers::{resolved, wait_of, with_loading};
use super::watch::Watch;
use crate::backend::Backend;
use crate::backend::choice;
use crate::backend::epoll::Epoll;
use crate::backend::tls::{Setup, Tls};
use crate::backend::transmit::{self, TransmitStamps};
use crate::backend::uring::Uring;
use crate::evidence::{self, Moment, Moments, Seen, provenance};
use crate::resolve::Server;
use crate::worker::barrier::Barrier;
use crate::worker::message_sender::MessageSender;

/// A run that is about to start.
pub(super) struct Start<'a, 'w> {
    pub(super) plan: &'a Plan,
    pub(super) inputs: &'a Inputs,
    /// The share of this process; `None` where it runs the whole plan.
    pub(super) process: Option<Process<'a>>,
    pub(super) watch: &'w mut dyn Watch,
    /// Returns whether the run is to end before its time.
    pub(super) stop: &'w dyn Fn() -> bool,
}

impl Start<'_, '_> {
    /// Runs on the kernel interface that the plan asks for, or on the one that this machine has instead.
    pub(super) fn on_kernel(self) -> Result<Measurement, RunError> {
        let plan = self.plan;
        let goes_on = || !(self.stop)();
        let resolved = |names| resolved(plan, names, self.inputs.permit.as_ref(), &goes_on);
        let servers = with_loading(plan, resolved(&plan.servers)?, &goes_on)?;
        let threads = self.process.map_or(plan.engine.threads, |process| process.share.threads);
        let wait = wait_of(plan.engine.wait, threads, &servers);
        let clock = plan.engine.clock;
        let by_card = plan.engine.stamps.is_some_and(|sampling| sampling.hardware);
        // Only epoll hands over the stamps of a card.
        let choice = choice::choose(if by_card { plan::Backend::Epoll } else { plan.engine.backend });
        if let (plan::Backend::Uring, Some(why)) = (plan.engine.backend, &choice.fallback) {
            self.watch.notice(&format!("io_uring cannot be used, epoll is instead: {why}"));
        }
        if plan.engine.stamps.is_some() {
            transmit::check()
                .map_err(|error| RunError::Kernel("transmit stamps (--stamps) cannot be had", error))?;
        }
        if by_card {
            card::check(&servers).map_err(|error| {
                RunError::Kernel("stamps of the network card (--stamps nic) cannot be had", error)
            })?;
        }
        let transmit = || {
            let sampling = plan.engine.stamps?;
            Some(TransmitStamps::new(sampling.scheduled).with_card(sampling.hardware))
        };
        let asked = match plan.server_stats_at.as_slice() {
            [] => Arc::clone(&servers),
            names => resolved(names)?.into(),
        };
        let host = HostSetup { servers, asked, choice: Some(choice.clone()), wait: Some(wait), tls: None };
        match choice.backend {
            plan::Backend::Uring => self.encrypted(host, &|_| {
                Ok(Uring::new(wait, clock, &plan.socket)?.with_transmit_stamps(transmit()))
            }),
            plan::Backend::Auto | plan::Backend::Epoll => self.encrypted(host, &|_| {
                Ok(Epoll::new(wait, clock, &plan.socket)?.with_transmit_stamps(transmit()))
            }),
        }
    }

    /// Runs on backends of the caller's making.
    pub(super) fn on<B: Backend>(self, backend: &MakeBackend<'_, B>) -> Result<Measurement, RunError> {
        let plan = self.plan;
        let servers = resolved(plan, &plan.servers, None, &|| !(self.stop)())?;
        let servers: Arc<[Server]> =
            servers.into_iter().map(|server| server.loaded_by(plan.transport)).collect();
        let asked = Arc::clone(&servers);
        self.speaking(HostSetup { servers, asked, choice: None, wait: None, tls: None }, backend)
    }

    /// Runs on backends with TLS where the plan asks for it.
    fn encrypted<B: Backend>(
        self,
        host: HostSetup,
        backend: &MakeBackend<'_, B>,
    ) -> Result<Measurement, RunError> {
        let plan = self.plan;
        let reached: Arc<[Server]> = match plan.server_stats_at.is_empty() {
            true => Arc::clone(&host.servers),
            false => [&host.servers[..], &host.asked[..]].concat().into(),
        };
        let epoll = || Epoll::new(Wait::Block, Clock::User, &plan.socket);
        let goes_on = || !(self.stop)();
        match &plan.tls {
            None => {
                login_demand::ensure_demanded(plan, &reached, epoll, &goes_on)?;
                self.speaking(host, backend)
            }
            Some(options) => {
                let setup = match &self.inputs.tls_files {
                    Some(files) => Setup::with_files(options, &reached, files.as_ref()),
                    None => Setup::new(options, &reached),
                };
                let setup = setup.map_err(RunError::Tls)?;
                let asking = || Ok(Tls::new(epoll()?, &setup));
                login_demand::ensure_demanded(plan, &reached, asking, &goes_on)?;
                let host = HostSetup { tls: Some(setup.clone()), ..host };
                self.speaking(host, &|worker| Ok(Tls::new(backend(worker)?, &setup)))
            }
        }
    }

    /// Runs with the codec of the plan's protocol.
    fn speaking<B: Backend>(
        self,
        host: HostSetup,
        backend: &MakeBackend<'_, B>,
    ) -> Result<Measurement, RunError> {
        let Start { plan, inputs, process, watch, stop } = self;
        let context = RunContext::new(plan, inputs, process, host, watch.wants())?;
        let threads = Threads { context: &context, watch, stop };
        plan.protocol.with_codec(codec_options(&context), Speak { threads, backend })
    }
}

/// The options of a run's codec, from its plan.
fn codec_options(context: &RunContext<'_>) -> CodecOptions {
    let plan = context.plan;
    let sequence = plan.sequence();
    CodecOptions {
        blanks: sequence.is_some(),
        bogus_sets: sequence.is_some_and(|sequence| sequence.bogus),
        // memaslap numbers no requests, and a get of several keys is so many gets.
        plain_packets: plan.window().is_some(),
        template: context.template.clone(),
        field_bytes: plan.data.style.field_bytes.unwrap_or(0),
    }
}

/// The threads of a run, before they have a codec.
struct Speak<'a, 'w, 'b, B> {
    threads: Threads<'a, 'w>,
    backend: &'b MakeBackend<'b, B>,
}

impl<B: Backend> WithCodec for Speak<'_, '_, '_, B> {
    type Output = Result<Measurement, RunError>;

    fn with_codec<C: Codec + Sync>(self, codec: C) -> Result<Measurement, RunError> {
        let (context, backend) = (self.threads.context, self.backend);
        self.threads.run(&|sender| run_worker::<C, B>(context, sender, backend, &codec))
    }
}

/// The threads of a run: one for each worker, and the calling one, which collects their messages.
struct Threads<'a, 'w> {
    context: &'a RunContext<'a>,
    watch: &'w mut dyn Watch,
    stop: &'w dyn Fn() -> bool,
}

impl Threads<'_, '_> {
    /// Runs the workers, each by `work` on a thread of its own, and collects what they measured.
    fn run(self, work: &(dyn Fn(MessageSender) + Sync)) -> Result<Measurement, RunError> {
        let context = self.context;
        let workers = context.process_share.threads as usize;
        let (messages, inbox) = mpsc::channel();
        let mut spares = Vec::with_capacity(workers);
        thread::scope(|scope| {
            let observer = match &context.observation {
                Some(observation) => Some(spawn_observer(scope, context, observation)?),
                None => None,
            };
            if let Some(run) = &context.trace_run {
                run.start().map_err(|error| RunError::Kernel("a thread could not be started", error))?;
            }
            for worker in 0..workers {
                let (spare, returned) = mpsc::channel();
                spares.push(spare);
                let sender = MessageSender::new(worker, messages.clone(), returned);
                let spawned = thread::Builder::new()
                    .name(format!("worker-{worker}"))
                    .spawn_scoped(scope, move || work(sender));
                if let Err(error) = spawned {
                    (worker..workers).for_each(|_| context.barrier.leave());
                    return Err(RunError::Kernel("a thread could not be started", error));
                }
            }
            drop(messages);
            let _end = EndOnPanic(&context.barrier);
            // The workers open their connections meanwhile. A simulated run has no machine.
            let mut machine = context.choice.as_ref().map(|_| provenance::read());
            if let Some(machine) = machine.as_mut().filter(|_| context.plan.anonymous) {
                machine.anonymise();
            }
            let (mut measurement, our_requests) =
                Collector::new(context, spares, self.watch).collect(inbox, self.stop);
            let is_refused = !measurement.connections.refusals.is_empty();
            let asks_limits = is_refused && measurement.status != Status::Interrupted;
            if let Some(observer) = observer {
                let seen = observer.seen(our_requests, asks_limits);
                measurement.evidence = seen.evidence;
                // Other servers than those of the load may be asked.
                if context.plan.server_stats_at.is_empty() {
                    note_limits(context.plan, &mut measurement, &seen.limits);
                }
            }
            measurement.machines.extend(machine);
            Ok(measurement)
        })
    }
}

/// The thread of a run's observer.
struct ObserverThread<'scope, 'a> {
    thread: thread::ScopedJoinHandle<'scope, Seen>,
    end: EndOfObservation<'a>,
}

/// Signals the end of the run to the observer, also when the run does not get as far as its workers.
struct EndOfObservation<'a>(&'a Moments);

impl Drop for EndOfObservation<'_> {
    fn drop(&mut self) {
        self.0.announce(Moment::End);
    }
}

/// Starts the observer of a run.
fn spawn_observer<'scope, 'a: 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    context: &'a RunContext<'a>,
    observation: &'a Observation,
) -> Result<ObserverThread<'scope, 'a>, RunError> {
    let moments = &observation.moments;
    let observe = || {
        let stopped = || context.barrier.is_stopped();
        let Observation { observed, newest, .. } = observation;
        evidence::observe(context.plan, observed.clone(), moments, newest, &stopped)
    };
    let thread = thread::Builder::new().name("observer".to_owned()).spawn_scoped(scope, observe);
    let thread = thread.map_err(|error| RunError::Kernel("a thread could not be started", error))?;
    Ok(ObserverThread { thread, end: EndOfObservation(moments) })
}

impl ObserverThread<'_, '_> {
    /// The findings of the observer, with the requests that this process sent meanwhile. `asks_limits`: servers are
    /// asked for their limits of connections.
    fn seen(self, our_requests: OurRequests, asks_limits: bool) -> Seen {
        if asks_limits {
            self.end.0.note_refusals();
        }
        drop(self.end);
        // An observer that panicked has said so on standard error; the measurement is what it is without it.
        let mut seen = self.thread.join().unwrap_or_default();
        if let Some(evidence) = &mut seen.evidence {
            evidence.set_our_requests(Some(our_requests));
        }
        seen
    }
}

/// Ends the phase under way when the collecting thread panics, since that thread waits for the workers before it
/// unwinds further.
struct EndOnPanic<'a>(&'a Barrier);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}
