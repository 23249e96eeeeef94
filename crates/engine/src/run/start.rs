//! The start of a run: the choice of the kernel interface and the codec, and the threads of the workers.

use std::sync::{Arc, mpsc};
use std::thread;

use pummel_logic::cluster::slots_reply::SlotsReply;
use pummel_logic::plan::{self, CodecOptions, Plan, Route, WithCodec};
use pummel_logic::protocol::Codec;
use pummel_measure::completion::note_limits;
use pummel_measure::evidence::OurRequests;
use pummel_measure::measurement::{Measurement, Status};

use super::card;
use super::cluster;
use super::collect::Collector;
use super::context::{HostSetup, ObserverLink, RunContext};
use super::error::{RunError, no_thread};
use super::inputs::Run;
use super::login::ensure_login_demanded;
use super::phases::{MakeBackend, run_worker};
use super::servers::{resolved, wait_of, with_loading};
use super::watch::Watch;
use crate::backend::Backend;
use crate::backend::choice::{self, Choice};
use crate::backend::epoll::Epoll;
use crate::backend::tls::{Setup, Tls};
use crate::backend::transmit::{self, TransmitStamps};
use crate::backend::uring::Uring;
use crate::evidence::{self, Findings, Moment, Moments, provenance};
use crate::resolve::Server;
use crate::worker::barrier::Barrier;
use crate::worker::message_sender::MessageSender;

/// A run that is about to start.
pub(super) struct Start<'w> {
    pub(super) run: &'w Run<'w>,
    pub(super) watch: &'w mut dyn Watch,
    /// Returns whether the run is to end before its time.
    pub(super) stop: &'w dyn Fn() -> bool,
}

impl Start<'_> {
    /// Runs on the kernel interface that the plan asks for, or on the one that this machine has instead. Where the servers are
    /// those of a cluster, they are asked for its nodes first.
    pub(super) fn run_on_kernel(self) -> Result<Measurement, RunError> {
        let Start { run, watch, stop } = self;
        if run.plan.route != Route::Cluster {
            return Start { run, watch, stop }.run_on_servers(None);
        }
        let found = cluster::found(run, &|| !stop())?;
        if let Some(check) = &run.inputs.plan_check {
            check(&found.plan).map_err(RunError::Plan)?;
        }
        let run = Run { plan: &found.plan, ..run.clone() };
        Start { run: &run, watch, stop }.run_on_servers(Some(&found.reply))
    }

    /// Runs on the servers of the plan, which are the nodes of the cluster where `slots` says how it looks.
    fn run_on_servers(mut self, slots: Option<&SlotsReply>) -> Result<Measurement, RunError> {
        let Start { run: Run { plan, inputs, process }, watch, stop } = &mut self;
        let goes_on = || !stop();
        let resolved = |names| resolved(plan, names, inputs.permit.as_ref(), &goes_on);
        let servers = with_loading(plan, resolved(&plan.servers)?, &goes_on)?;
        let (asked, reached): (Arc<[Server]>, Arc<[Server]>) = match plan.server_stats_at.as_slice() {
            [] => (Arc::clone(&servers), Arc::clone(&servers)),
            names => {
                let asked = resolved(names)?;
                (asked.as_slice().into(), [&servers[..], &asked].concat().into())
            }
        };
        let choice = choice_of(plan);
        if let (plan::Backend::Uring, Some(why)) = (plan.engine.backend, &choice.fallback) {
            watch.notice(&format!("io_uring cannot be used, epoll is instead: {why}"));
        }
        check_stamps(plan, &servers)?;
        let tls = plan.tls.as_ref().map(|options| match &inputs.tls_files {
            Some(files) => Setup::with_files(options, &reached, files.as_ref()),
            None => Setup::new(options, &reached),
        });
        let tls = tls.transpose().map_err(RunError::Tls)?;
        ensure_login_demanded(plan, &reached, tls.as_ref(), &goes_on)?;
        let threads = process.map_or(plan.engine.threads, |process| process.share.threads);
        let wait = wait_of(plan.engine.wait, threads, &servers);
        let (servers, cluster) = match slots {
            None => (servers, None),
            Some(slots) => cluster::published(plan, &servers, slots)
                .map(|(servers, cluster)| (servers, Some(cluster)))?,
        };
        let host = HostSetup { servers, asked, kernel: Some((choice.clone(), wait)), tls, cluster };
        let (clock, socket) = (plan.engine.clock, &plan.socket);
        let transmit = || {
            let sampling = plan.engine.stamps?;
            Some(TransmitStamps::new(sampling.scheduled).with_card(sampling.hardware))
        };
        match choice.backend {
            plan::Backend::Uring => self.run_with_tls(host, &|_| {
                Ok(Uring::new(wait, clock, socket)?.with_transmit_stamps(transmit()))
            }),
            plan::Backend::Auto | plan::Backend::Epoll => self.run_with_tls(host, &|_| {
                Ok(Epoll::new(wait, clock, socket)?.with_transmit_stamps(transmit()))
            }),
        }
    }

    /// Runs on backends of the caller's making.
    pub(super) fn run_on<B: Backend>(self, backend: &MakeBackend<'_, B>) -> Result<Measurement, RunError> {
        let plan = self.run.plan;
        let servers = resolved(plan, &plan.servers, None, &|| !(self.stop)())?;
        let servers: Arc<[Server]> =
            servers.into_iter().map(|server| server.loaded_by(plan.transport)).collect();
        let asked = Arc::clone(&servers);
        let (servers, cluster) = match plan.route {
            Route::Cluster => {
                let (servers, published) = cluster::dealt(plan, &servers)?;
                (servers, Some(published))
            }
            _ => (servers, None),
        };
        self.run_with_codec(HostSetup { servers, asked, kernel: None, tls: None, cluster }, backend)
    }

    /// Runs on backends with TLS where the plan asks for it.
    fn run_with_tls<B: Backend>(
        self,
        host: HostSetup,
        backend: &MakeBackend<'_, B>,
    ) -> Result<Measurement, RunError> {
        match host.tls.clone() {
            None => self.run_with_codec(host, backend),
            Some(setup) => self.run_with_codec(host, &|worker| Ok(Tls::new(backend(worker)?, &setup))),
        }
    }

    /// Runs with the codec of the plan's protocol.
    fn run_with_codec<B: Backend>(
        self,
        host: HostSetup,
        backend: &MakeBackend<'_, B>,
    ) -> Result<Measurement, RunError> {
        let Start { run, watch, stop } = self;
        let context = &RunContext::new(run, host, watch.wants())?;
        run.plan.protocol.with_codec(codec_options(context), CodecRun { context, watch, stop, backend })
    }
}

/// The kernel interface for a plan on this machine. Only epoll hands over the stamps of a card.
fn choice_of(plan: &Plan) -> Choice {
    let by_card = plan.engine.stamps.is_some_and(|sampling| sampling.hardware);
    choice::choose(if by_card { plan::Backend::Epoll } else { plan.engine.backend })
}

/// Checks that this machine has the stamps that a plan asks for.
fn check_stamps(plan: &Plan, servers: &[Server]) -> Result<(), RunError> {
    let Some(sampling) = plan.engine.stamps else { return Ok(()) };
    transmit::check().map_err(|error| RunError::Kernel("transmit stamps (--stamps) cannot be had", error))?;
    if sampling.hardware {
        card::check(servers).map_err(|error| {
            RunError::Kernel("stamps of the network card (--stamps nic) cannot be had", error)
        })?;
    }
    Ok(())
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
        commands: context.commands.clone(),
        field_bytes: plan.data.style.field_bytes.unwrap_or(0),
    }
}

/// A run whose codec is not known yet.
struct CodecRun<'w, B> {
    context: &'w RunContext<'w>,
    watch: &'w mut dyn Watch,
    stop: &'w dyn Fn() -> bool,
    backend: &'w MakeBackend<'w, B>,
}

impl<B: Backend> WithCodec for CodecRun<'_, B> {
    type Output = Result<Measurement, RunError>;

    fn with_codec<C: Codec + Sync>(self, codec: C) -> Result<Measurement, RunError> {
        let CodecRun { context, watch, stop, backend } = self;
        run_threads(context, watch, stop, &|sender| run_worker::<C, B>(context, sender, backend, &codec))
    }
}

/// Runs the workers, each by `work` on a thread of its own, and collects what they measured on the calling thread.
fn run_threads(
    context: &RunContext<'_>,
    watch: &mut dyn Watch,
    stop: &dyn Fn() -> bool,
    work: &(dyn Fn(MessageSender) + Sync),
) -> Result<Measurement, RunError> {
    let workers = context.process_share.threads as usize;
    let (messages, inbox) = mpsc::channel();
    let mut spares = Vec::with_capacity(workers);
    thread::scope(|scope| {
        let observer = match &context.observer {
            Some(link) => Some(spawn_observer(scope, context, link)?),
            None => None,
        };
        let refresher = match context.cluster.as_ref().filter(|_| !context.is_simulated()) {
            Some(published) => Some(cluster::spawn_refresher(scope, context, published)?),
            None => None,
        };
        if let Some(run) = &context.trace_run {
            run.start().map_err(no_thread)?;
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
                return Err(no_thread(error));
            }
        }
        drop(messages);
        let _end = EndOnPanic(&context.barrier);
        // The workers open their connections meanwhile. A simulated run has no machine.
        let mut machine = (!context.is_simulated()).then(provenance::read);
        if let Some(machine) = machine.as_mut().filter(|_| context.plan.anonymous) {
            machine.anonymise();
        }
        let (mut measurement, our_requests) = Collector::new(context, spares, watch).collect(inbox, stop);
        if let (Some(seen), Some(refresher)) = (&mut measurement.cluster, refresher) {
            cluster::add_refreshes(seen, refresher.join());
        }
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

/// The thread of a run's observer.
struct ObserverThread<'scope, 'a> {
    thread: thread::ScopedJoinHandle<'scope, Findings>,
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
    link: &'a ObserverLink,
) -> Result<ObserverThread<'scope, 'a>, RunError> {
    let moments = &link.moments;
    let observe = || {
        let stopped = || context.barrier.is_stopped();
        evidence::observe(context.plan, context.observed(), moments, &link.newest, &stopped)
    };
    let thread = thread::Builder::new().name("observer".to_owned()).spawn_scoped(scope, observe);
    Ok(ObserverThread { thread: thread.map_err(no_thread)?, end: EndOfObservation(moments) })
}

impl ObserverThread<'_, '_> {
    /// The findings of the observer, with the requests that this process sent meanwhile. `asks_limits`: servers are
    /// asked for their limits of connections.
    fn seen(self, our_requests: OurRequests, asks_limits: bool) -> Findings {
        if asks_limits {
            self.end.0.state().refused = true;
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
