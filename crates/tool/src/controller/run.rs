//! The controller: gives every agent its part of a plan, lets all begin at one instant, and makes one measurement of
//! what they measured.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pummel_engine::clock;
use pummel_engine::run::{Inputs, Watch};
use pummel_logic::measure::agents::{Agents, Lost, Member};
use pummel_logic::measure::completion::{Loaded, load_shortfall};
use pummel_logic::measure::interval::{Interval, take_whole};
use pummel_logic::measure::measurement::{Keep, Measurement, Status, intervals_merged_notice};
use pummel_logic::measure::parcel::Parcel;
use pummel_logic::measure::recorder::{Counts, OpRecord, Span};
use pummel_logic::measure::summary::{Figures, time_text};
use pummel_logic::plan::share::{ProcessShare, deal};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Group, Plan, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, seconds};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::agent::member;
use crate::agent::member::{Reins, Said, Task};
use crate::agent::proto::v1::command::What as Told;
use crate::agent::proto::{PROTOCOL, VERSION, v1};
use crate::controller::agent_link::{Credentials, Link, greet_all};
use crate::job::fleet::{Fleet, Place};
use crate::launch::{LaunchError, LaunchedAgents};
use crate::stderr::say;

/// How often to look whether the run is to be stopped.
const LOOK: Duration = Duration::from_millis(20);

/// How long agents may take to read and check a plan.
const CONSIDERATION: Duration = Duration::from_secs(30);

/// How long members may take to come to an end when it is time for it: for their drain, and for what they measured to come
/// over a slow line.
const FAREWELL_NS: Nanos = 20_000 * MILLISECOND;

/// From the word that a phase begins to its beginning: enough for the word to get everywhere.
const LEAD_NS: Nanos = 100 * MILLISECOND;

/// More for each member: a word takes its time on a busy machine, also to the last of many.
const LEAD_PER_MEMBER_NS: Nanos = 5 * MILLISECOND;

/// And for networks so many times as long as an answer takes.
const LEAD_ROUNDS: Nanos = 4;

/// What the controller itself is called among the members.
const OWN_NAME: &str = "controller";

/// Why a run with agents did not begin anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command line asks for what cannot be.
    Usage(String),
    /// An agent is not there, or does not want to.
    Agents(String),
    /// The user ended it.
    Interrupted,
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Usage(why) | Refusal::Agents(why) => to.write_str(why),
            Refusal::Interrupted => to.write_str("interrupted"),
        }
    }
}

/// Agents that answered, ready for runs one after the other.
#[derive(Debug)]
pub struct Crew {
    runtime: Runtime,
    links: Vec<Link>,
    stop_on_loss: bool,
    /// Agents that end with this crew; after the links, so that none is cut off in the middle of a word.
    _placements: Vec<LaunchedAgents>,
}

/// Who does what in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The part of each agent, in their order; `None` for one that nothing is left for.
    pub agents: Vec<Option<ProcessShare>>,
    /// That of the controller, if it has one.
    pub own: Option<ProcessShare>,
}

impl Crew {
    /// Speaks to all agents of a fleet.
    ///
    /// # Errors
    /// Returns [`Refusal::Usage`] when a file of the fleet cannot be used, [`Refusal::Agents`] when an agent does not
    /// answer or refuses, and [`Refusal::Interrupted`] when `stop` says so.
    pub fn gather(fleet: &Fleet, stop: &dyn Fn() -> bool) -> Result<Crew, Refusal> {
        let credentials = Credentials::read(fleet).map_err(Refusal::Usage)?;
        let failed = |error: io::Error| Refusal::Agents(format!("agents cannot be spoken to: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("links")
            .enable_all()
            .build()
            .map_err(failed)?;
        let patience = Duration::from_nanos(fleet.patience_ns);
        let placements = place_all(fleet, patience, stop)?;
        let placed: Vec<_> = placements.iter().flat_map(LaunchedAgents::agents).cloned().collect();
        let deadline = Instant::now() + patience;
        let links = runtime.block_on(async {
            tokio::select! {
                links = greet_all(&fleet.places, &placed, &credentials, deadline) => links.map_err(Refusal::Agents),
                () = told_to_stop(stop) => Err(Refusal::Interrupted),
            }
        })?;
        Ok(Crew { runtime, links, stop_on_loss: fleet.stop_on_loss, _placements: placements })
    }

    /// What every agent said of itself.
    pub fn hellos(&self) -> impl Iterator<Item = &v1::HelloReply> {
        self.links.iter().map(|link| &link.hello)
    }

    /// Deals the clients of a plan: those that stay here to the controller, all others evenly to the agents.
    ///
    /// # Errors
    /// Returns [`Refusal::Usage`] when the plan cannot be shared by so many agents.
    pub fn share(&self, plan: &Plan) -> Result<Parts, Refusal> {
        share(plan, self.links.len()).map_err(Refusal::Usage)
    }

    /// Runs a plan on all agents to its end, or until `stop` says so.
    ///
    /// # Errors
    /// When the run cannot begin; then nothing was sent anywhere. Whatever goes wrong later is in the measurement.
    pub fn run(
        &self,
        plan: &ValidPlan,
        parts: Parts,
        supplies: &Inputs,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, Refusal> {
        let (say, heard) = channel();
        let mut seats = Vec::with_capacity(parts.agents.len() + 1);
        for (link, part) in self.links.iter().zip(parts.agents) {
            let Some(part) = part else { continue };
            let helm = self.order(link, plan, &part, supplies, watch, seats.len(), say.clone())?;
            seats.push(Seat::new(link.name.clone(), part, Some(link.clone()), helm));
        }
        if let Some(part) = parts.own {
            let task = Task {
                plan: plan.clone(),
                part: part.clone(),
                wants: watch.wants(),
                supplies: supplies.clone(),
            };
            let helm =
                Helm::Own { task: Some(Box::new(task)), reins: None, say: say.clone(), number: seats.len() };
            let _ = say.send((seats.len(), Said::Accepted));
            seats.push(Seat::new(OWN_NAME.to_owned(), part, None, helm));
        }
        drop(say);
        Voyage::new(plan, seats, watch, self.stop_on_loss).sail(&heard, stop)
    }

    /// Gives an agent its order.
    #[expect(clippy::too_many_arguments, reason = "each is a part of the order")]
    fn order(
        &self,
        link: &Link,
        plan: &ValidPlan,
        part: &ProcessShare,
        supplies: &Inputs,
        watch: &dyn Watch,
        number: usize,
        say: Sender<(usize, Said)>,
    ) -> Result<Helm, Refusal> {
        let json = |data: serde_json::Result<Vec<u8>>| data.expect("plans have nothing that JSON has not");
        let wants = watch.wants();
        let order = v1::Order {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
            controller: who_we_are(),
            plan: json(serde_json::to_vec(plan)).into(),
            part: json(serde_json::to_vec(part)).into(),
            rows: wants.rows,
            outstanding: wants.outstanding,
            password: supplies.password.clone(),
        };
        let (commands, told) = unbounded_channel();
        self.runtime.spawn(link.clone().follow(order, told, move |said| {
            // Whoever is through with the run does not listen any more.
            let _ = say.send((number, said));
        }));
        Ok(Helm::Agent(commands))
    }
}

/// Starts those agents of a fleet that are not there yet.
fn place_all(
    fleet: &Fleet,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<LaunchedAgents>, Refusal> {
    let wanted = fleet.places.iter().filter_map(|place| match place {
        Place::Started(placing) => Some(placing),
        Place::Host { .. } | Place::Name { .. } => None,
    });
    let placed = wanted.map(|spec| LaunchedAgents::start(spec, patience, stop, &|words: &str| say(words)));
    placed.collect::<Result<_, _>>().map_err(|error| match error {
        LaunchError::Interrupted => Refusal::Interrupted,
        LaunchError::Here(_) | LaunchError::There(_) => Refusal::Agents(error.to_string()),
    })
}

async fn told_to_stop(stop: &dyn Fn() -> bool) {
    while !stop() {
        tokio::time::sleep(LOOK).await;
    }
}

/// The user, machine and process, for those who find an agent taken.
fn who_we_are() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{user}{at}{} (process {})", host.trim(), std::process::id())
}

/// 64 bits that no other run has.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Deals the clients of a plan to so many agents.
fn share(plan: &Plan, agents: usize) -> Result<Parts, String> {
    let own_work = |work: &Work| matches!(work, Work::Window(_));
    let sequence =
        plan.groups.iter().any(|group| group.churn.as_ref().is_some_and(|churn| churn.sequence.is_some()));
    if sequence || plan.phases.iter().any(|phase| own_work(&phase.work)) {
        return Err("plans of mcperf and memaslap are run by one process: --agents is not accepted for them"
            .to_owned());
    }
    let even = vec![1; agents];
    let dealt: Vec<Vec<std::ops::Range<u64>>> = plan
        .groups
        .iter()
        .map(|group| if group.policy.here { vec![0..0; agents] } else { deal(group, &even) })
        .collect();
    let mark = chance();
    let part = |clients: Vec<std::ops::Range<u64>>| {
        let all: u64 = clients.iter().map(|clients| clients.end - clients.start).sum();
        let threads = u64::from(plan.engine.threads).min(all).max(1) as u32;
        ProcessShare { clients, threads, first_worker: 0, workers: 0, mark }
    };
    let mut parts: Vec<ProcessShare> =
        (0..agents).map(|agent| part(dealt.iter().map(|group| group[agent].clone()).collect())).collect();
    if parts.iter().any(|part| part.clients() == 0) {
        let clients: u64 =
            plan.groups.iter().filter(|group| !group.policy.here).map(|group| u64::from(group.clients)).sum();
        return Err(format!(
            "--connections {clients}: at least one connection for each of the {agents} agents is accepted"
        ));
    }
    let here = plan.groups.iter().any(|group| group.policy.here);
    let mut own = here.then(|| {
        part(
            plan.groups
                .iter()
                .map(|group| 0..if group.policy.here { group.clients.into() } else { 0 })
                .collect(),
        )
    });
    number_workers(parts.iter_mut().chain(own.as_mut()));
    Ok(Parts { agents: parts.into_iter().map(Some).collect(), own })
}

impl Parts {
    /// Gives whole groups of a plan, by their places in it, to agents and to the controller, each with so many threads.
    pub fn of_groups(plan: &Plan, agents: &[Option<(usize, u32)>], own: Option<(usize, u32)>) -> Parts {
        let mark = chance();
        let part = |(group, threads): (usize, u32)| {
            let clients =
                |(at, of): (usize, &Group)| if at == group { 0..u64::from(of.clients) } else { 0..0 };
            let clients: Vec<std::ops::Range<u64>> = plan.groups.iter().enumerate().map(clients).collect();
            ProcessShare { clients, threads, first_worker: 0, workers: 0, mark }
        };
        let mut agents: Vec<Option<ProcessShare>> = agents.iter().map(|group| group.map(part)).collect();
        let mut own = own.map(part);
        number_workers(agents.iter_mut().flatten().chain(own.as_mut()));
        Parts { agents, own }
    }
}

/// Numbers the workers of all parts of a run.
fn number_workers<'a>(parts: impl Iterator<Item = &'a mut ProcessShare>) {
    let parts: Vec<&mut ProcessShare> = parts.collect();
    let workers = parts.iter().map(|part| part.threads).sum();
    let mut first = 0;
    for part in parts {
        (part.first_worker, part.workers) = (first, workers);
        first += part.threads;
    }
}

/// How a member is told what to do.
enum Helm {
    /// Over the line.
    Agent(UnboundedSender<Told>),
    /// In this process.
    Own { task: Option<Box<Task>>, reins: Option<Reins>, say: Sender<(usize, Said)>, number: usize },
}

impl Helm {
    /// All are there: connect.
    fn connect(&mut self) {
        match self {
            Helm::Agent(commands) => drop(commands.send(Told::Connect(v1::Connect {}))),
            Helm::Own { task, reins, say, number } => {
                let Some(task) = task.take() else { return };
                let (line, number) = (say.clone(), *number);
                match member::begin(*task, move |said| line.send((number, said)).is_ok()) {
                    Ok(begun) => *reins = Some(begun),
                    Err(error) => drop(say.send((number, Said::Failed(error.to_string())))),
                }
            }
        }
    }

    /// Phase `phase` begins at `at` of our clock, `theirs` of the member's.
    fn go(&self, phase: u32, theirs: Nanos) {
        match self {
            Helm::Agent(commands) => drop(commands.send(Told::Go(v1::Go { phase, at_ns: theirs }))),
            Helm::Own { reins, .. } => {
                if let Some(reins) = reins {
                    reins.go(theirs);
                }
            }
        }
    }

    fn stop(&self) {
        match self {
            Helm::Agent(commands) => drop(commands.send(Told::Stop(v1::Stop {}))),
            Helm::Own { reins: Some(reins), .. } => reins.stop(),
            Helm::Own { reins: None, .. } => {}
        }
    }
}

/// One member of a run.
struct Seat {
    name: String,
    part: ProcessShare,
    /// Absent for the controller itself, whose clocks are ours.
    link: Option<Link>,
    helm: Helm,
    accepted: bool,
    ready: Option<u32>,
    /// What the phase before the one that it is ready for stored there.
    loaded: Loaded,
    /// Slices before this one are there.
    next_slice: u64,
    /// What it has said so far of the measured phase; kept for the case that it is lost, and packed, since there may be very
    /// many members.
    sum: Option<Box<Parcel>>,
    late_ns: Option<Nanos>,
    ended: u64,
    of: Option<u64>,
    heard_at: Nanos,
    lost: Option<Lost>,
    /// What it measured, once it is over for it: counts, and times by span.
    figures: Option<(Counts, [Figures; Span::COUNT])>,
    outcome: Option<Outcome>,
}

/// How a member came to its end.
enum Outcome {
    Ended,
    /// It could not begin.
    Failed(String),
    Lost(Lost),
}

impl Seat {
    fn new(name: String, part: ProcessShare, link: Option<Link>, helm: Helm) -> Seat {
        Seat {
            name,
            part,
            link,
            helm,
            accepted: false,
            ready: None,
            loaded: Loaded::default(),
            next_slice: 0,
            sum: None,
            late_ns: None,
            ended: 0,
            of: None,
            heard_at: clock::now(),
            lost: None,
            figures: None,
            outcome: None,
        }
    }

    /// Its time at our time `at`.
    fn theirs(&self, at: Nanos) -> Nanos {
        self.link.as_ref().map_or(at, |link| link.fit().theirs(at))
    }

    fn error_ns(&self) -> Nanos {
        self.link.as_ref().map_or(0, |link| link.fit().error_ns)
    }

    fn is_here(&self) -> bool {
        self.outcome.is_none()
    }

    /// As sentences call it.
    fn title(&self) -> String {
        match self.link {
            Some(_) => format!("agent {}", self.name),
            None => self.name.clone(),
        }
    }
}

/// One run.
struct Voyage<'a> {
    plan: &'a Plan,
    seats: Vec<Seat>,
    watch: &'a mut dyn Watch,
    stop_on_loss: bool,
    /// What is known so far, slice by slice.
    live: Measurement,
    /// What those measured who are through.
    all: Measurement,
    /// Slices that not all members have given their part of.
    open: BTreeMap<u64, Box<Interval>>,
    /// Boxed as they are in `open`, between which and this they go to and fro.
    #[allow(clippy::vec_box)]
    spares: Vec<Box<Interval>>,
    /// The phase that begins next.
    phase: u32,
    /// When the first measured phase began.
    measured_at: Option<Nanos>,
    started_unix_ns: u64,
    /// The user ended it.
    interrupted: bool,
    /// All were told to come to an end.
    stopped: bool,
    /// When all have to be through with what they do; absent where nobody can know.
    due: Option<Nanos>,
    farewell_ns: Nanos,
    /// Why, where it was not the user.
    because: Option<String>,
}

impl<'a> Voyage<'a> {
    fn new(plan: &'a Plan, seats: Vec<Seat>, watch: &'a mut dyn Watch, stop_on_loss: bool) -> Voyage<'a> {
        let mut live = empty(plan);
        // What a result says that was written before the end, should nobody write another.
        live.mark(Status::Partial, "the run is not over");
        live.connections.asked = seats.iter().map(|seat| seat.part.clients() * plan.lanes() as u64).sum();
        Voyage {
            plan,
            seats,
            watch,
            stop_on_loss,
            live,
            all: empty(plan),
            open: BTreeMap::new(),
            spares: Vec::new(),
            phase: 0,
            measured_at: None,
            started_unix_ns: 0,
            interrupted: false,
            stopped: false,
            due: None,
            farewell_ns: FAREWELL_NS,
            because: None,
        }
    }

    fn sail(
        mut self,
        heard: &Receiver<(usize, Said)>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, Refusal> {
        self.muster(heard, stop)?;
        self.say_offsets();
        for seat in &mut self.seats {
            seat.helm.connect();
        }
        while self.seats.iter().any(Seat::is_here) {
            match heard.recv_timeout(LOOK) {
                Ok((number, said)) => self.hear(number, said),
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody is left to speak: each said its last word before.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !self.interrupted && stop() {
                self.interrupted = true;
                self.stop();
            }
            if self.due.is_some_and(|due| clock::now() > due) {
                self.give_up_on_laggards();
            }
        }
        Ok(self.finish())
    }

    /// Waits until all have accepted their orders.
    fn muster(&mut self, heard: &Receiver<(usize, Said)>, stop: &dyn Fn() -> bool) -> Result<(), Refusal> {
        let deadline = Instant::now() + CONSIDERATION;
        while let Some(missing) = self.seats.iter().find(|seat| !seat.accepted) {
            if stop() {
                return Err(Refusal::Interrupted);
            }
            if Instant::now() >= deadline {
                let waited = CONSIDERATION.as_secs();
                return Err(Refusal::Agents(format!(
                    "agent {} did not accept its order; waited {waited} s",
                    missing.name
                )));
            }
            let Ok((number, said)) = heard.recv_timeout(LOOK) else { continue };
            let seat = &mut self.seats[number];
            seat.heard_at = clock::now();
            let agent = |why: String| format!("agent {}: {why}", seat.name);
            match said {
                Said::Accepted => seat.accepted = true,
                Said::Refused { why, usage: true } => return Err(Refusal::Usage(agent(why))),
                Said::Refused { why, .. } | Said::Failed(why) | Said::Lost { why, .. } => {
                    return Err(Refusal::Agents(agent(why)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Says which agents have clocks that are far from ours.
    fn say_offsets(&mut self) {
        let agents = Agents { start_spread_ns: None, members: self.members() };
        for member in agents.with_large_offsets() {
            self.watch.notice(&format!(
                "the clock of agent {} is {} {} this machine's",
                member.name,
                time_text(member.clock_offset_ns.unsigned_abs()),
                if member.clock_offset_ns < 0 { "behind" } else { "ahead of" },
            ));
        }
    }

    fn hear(&mut self, number: usize, said: Said) {
        let seat = &mut self.seats[number];
        if !seat.is_here() {
            return;
        }
        seat.heard_at = clock::now();
        match said {
            Said::Accepted | Said::Began(_) => {}
            Said::Ready { phase, loaded } => {
                (seat.ready, seat.loaded) = (Some(phase), loaded);
                self.begin_when_ready();
            }
            Said::PhaseOver { phase, late_ns } => {
                let recorded = self.plan.phases.get(phase as usize).is_some_and(|phase| phase.recorded);
                if recorded && seat.late_ns.is_none() {
                    seat.late_ns = Some(late_ns);
                }
            }
            Said::Slice(parcel) => {
                let index = parcel.index;
                let slice = self
                    .open
                    .entry(index)
                    .or_insert_with(|| self.spares.pop().unwrap_or_else(|| blank(self.plan)));
                let is_first = slice.end_ns == 0;
                let fits = parcel.add_to(slice, is_first).and_then(|()| match &mut seat.sum {
                    Some(sum) => sum.append(&parcel),
                    none => {
                        *none = Some(parcel);
                        Ok(())
                    }
                });
                if fits.is_err() {
                    return self.lose(number, "what it measured cannot be read".to_owned());
                }
                seat.next_slice = index + 1;
                self.add_slices();
            }
            Said::Rows(mut rows) => {
                let began = self.measured_at.unwrap_or(0);
                for row in &mut rows {
                    let times =
                        [&mut row.due, &mut row.ready, &mut row.sent, &mut row.arrived, &mut row.read];
                    for time in times.into_iter().filter(|time| **time != NEVER) {
                        *time = time.saturating_add(began);
                    }
                }
                self.watch.rows(&rows);
            }
            Said::Progress { phase, ended, of } => {
                (seat.ended, seat.of) = (ended, of);
                let Some(phase) = self.plan.phases.get(phase as usize) else { return };
                let ended = self.seats.iter().map(|seat| seat.ended).sum();
                let of = self.seats.iter().filter_map(|seat| seat.of).reduce(u64::saturating_add);
                self.watch.progress(phase, ended, of);
            }
            Said::Notice(words) => {
                let words = format!("{}: {words}", seat.title());
                self.watch.notice(&words);
            }
            Said::End(measurement) if is_of(&measurement, self.plan) => {
                let broken = is_broken(&measurement, self.plan);
                self.fold(number, *measurement);
                self.end(number, Outcome::Ended);
                if broken && !self.stopped {
                    self.stop();
                }
            }
            Said::End(_) => self.lose(number, "what it measured cannot be read".to_owned()),
            Said::Failed(why) | Said::Refused { why, .. } => self.end(number, Outcome::Failed(why)),
            Said::Lost { why, silent_ns } => {
                seat.heard_at = seat.heard_at.saturating_sub(silent_ns);
                self.lose(number, why);
            }
        }
    }

    /// Begins the next phase when all who are still here are ready for it.
    fn begin_when_ready(&mut self) {
        let phase = self.phase;
        let is_ready = |seat: &Seat| seat.ready == Some(phase);
        let mut here = self.seats.iter().filter(|seat| seat.is_here()).peekable();
        if self.stopped || here.peek().is_none() || !here.all(is_ready) {
            return;
        }
        let mut loaded = Loaded::default();
        self.seats.iter().filter(|seat| seat.is_here()).for_each(|seat| loaded.merge(seat.loaded));
        if loaded.has_failed() {
            // What is missing is said when all have told what servers answered.
            return self.stop();
        }
        let Some(what) = self.plan.phases.get(phase as usize) else { return };
        let error_ns = self.seats.iter().map(Seat::error_ns).max().unwrap_or(0);
        let members = self.seats.len() as Nanos;
        let at = clock::now() + LEAD_NS + LEAD_PER_MEMBER_NS * members + LEAD_ROUNDS * 2 * error_ns;
        for seat in self.seats.iter_mut().filter(|seat| seat.is_here()) {
            seat.helm.go(phase, seat.theirs(at));
            (seat.ended, seat.of) = (0, None);
        }
        if what.recorded && self.measured_at.is_none() {
            self.measured_at = Some(at);
            self.started_unix_ns = clock::wall() + at.saturating_sub(clock::now());
            self.live.started_unix_ns = self.started_unix_ns;
        }
        self.due = what.stop.time_ns.map(|time| at.saturating_add(time).saturating_add(self.farewell_ns));
        self.watch.begin(what, at);
        self.phase += 1;
    }

    /// Adds the slices that all have given their part of.
    fn add_slices(&mut self) {
        let here = self.seats.iter().filter(|seat| seat.is_here());
        let whole = here.map(|seat| seat.next_slice).min().unwrap_or(u64::MAX);
        let (length_ns, spares) = (self.plan.interval_ns, &mut self.spares);
        let mut empty = |mut slice: Box<Interval>| {
            slice.restart(0, 0);
            slice.outstanding = None;
            spares.push(slice);
        };
        while let Some(mut slice) = take_whole(&mut self.open, whole, length_ns, &mut empty) {
            self.watch.interval(&mut slice);
            let merged_before = self.live.intervals_merged;
            self.live.add(&mut slice, self.watch.wants().keep);
            if merged_before == 0 && self.live.intervals_merged > 0 {
                self.watch.notice(&intervals_merged_notice());
            }
            self.live.measured_ns = self.live.measured_ns.max(slice.end_ns);
            empty(slice);
            self.watch.slice(&self.live);
        }
    }

    /// Adds what a member measured to the whole. Of the member itself counts and figures are kept: histograms of very many
    /// would take much memory.
    fn fold(&mut self, number: usize, mut measurement: Measurement) {
        let seat = &mut self.seats[number];
        measurement.intervals.clear();
        measurement.intervals_merged = 0;
        let reason = measurement.reason.take();
        if let (Status::Partial, Some(reason), None) = (measurement.status, reason, &self.because) {
            self.because = Some(format!("{}: {reason}", seat.title()));
        }
        measurement.status = Status::Complete;
        let mut op = OpRecord::default();
        measurement.groups.iter().for_each(|group| op.merge(&group.ops.all()));
        seat.figures = Some((op.counts, Figures::of_op(&op, self.plan.timeout_ns)));
        seat.sum = None;
        self.all.merge(&measurement);
    }

    fn end(&mut self, number: usize, outcome: Outcome) {
        let seat = &mut self.seats[number];
        if let (Outcome::Failed(why), None) = (&outcome, &self.because) {
            self.because = Some(format!("{}: {why}", seat.title()));
        }
        seat.outcome = Some(outcome);
        // Before the last phase was over for all, it came to an end that was not wanted.
        let is_over = self.phase as usize >= self.plan.phases.len();
        if !self.stopped && !is_over {
            self.stop();
        }
        self.add_slices();
        self.begin_when_ready();
    }

    fn lose(&mut self, number: usize, why: String) {
        let seat = &mut self.seats[number];
        let at_ns = self.measured_at.and_then(|began| seat.heard_at.checked_sub(began));
        let words = format!("{} was lost {}: {why}", seat.title(), moment(at_ns));
        let goes_on = !self.stop_on_loss && !self.stopped;
        self.watch.notice(&format!("{words}{}", if goes_on { "; the run goes on without it" } else { "" }));
        self.end_lost(number, Lost { at_ns, why });
        if self.stop_on_loss && !self.stopped {
            self.stop();
        }
        self.add_slices();
        self.begin_when_ready();
    }

    fn end_lost(&mut self, number: usize, lost: Lost) {
        // Its line ends with its helm, so that an agent that only slept finds itself given up.
        let seat = &mut self.seats[number];
        seat.helm = Helm::Agent(unbounded_channel().0);
        seat.outcome = Some(Outcome::Lost(lost));
    }

    /// Loses those who say that they are there and do not come to an end: nobody waits for them for ever.
    fn give_up_on_laggards(&mut self) {
        self.due = None;
        for number in 0..self.seats.len() {
            let seat = &self.seats[number];
            if seat.is_here() && (self.stopped || seat.ready != Some(self.phase)) {
                self.lose(number, "it did not come to an end in time".to_owned());
            }
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.due = Some(clock::now().saturating_add(self.farewell_ns));
        for seat in self.seats.iter().filter(|seat| seat.is_here()) {
            seat.helm.stop();
        }
    }

    /// One measurement of all.
    fn finish(mut self) -> Measurement {
        self.add_slices();
        let mut reasons = Vec::new();
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            let mut rest = match seat.outcome.take() {
                Some(Outcome::Ended) => continue,
                Some(Outcome::Failed(_)) | None => empty(self.plan),
                Some(Outcome::Lost(lost)) => {
                    reasons.push(format!("{} was lost {}: {}", seat.title(), moment(lost.at_ns), lost.why));
                    seat.lost = Some(lost);
                    kept_of(seat, self.plan)
                }
            };
            rest.connections.asked = seat.part.clients() * self.plan.lanes() as u64;
            self.fold(number, rest);
        }
        let members = self.members();
        let starts: Vec<Nanos> = self.seats.iter().filter_map(|seat| seat.late_ns).collect();
        let mut all = self.all;
        all.intervals = self.live.intervals;
        all.intervals_merged = self.live.intervals_merged;
        all.started_unix_ns = self.started_unix_ns;
        all.agents = Some(Agents { start_spread_ns: Agents::spread(starts), members });
        let nothing = all.groups.iter().all(|group| group.ops.all().counts.completed == 0);
        let recorded = self.plan.phases.iter().any(|phase| phase.recorded);
        if self.stop_on_loss && !reasons.is_empty() {
            reasons.push("the run was stopped (--on-agent-loss stop)".to_owned());
        }
        let unstored =
            all.load.as_ref().and_then(|load| load_shortfall(load, self.plan.allow_partial_load, None));
        reasons.extend(self.because.or(unstored));
        if self.interrupted {
            all.mark(Status::Interrupted, "interrupted");
        } else if !reasons.is_empty() {
            all.mark(Status::Partial, reasons.join("; "));
        } else if recorded && nothing {
            all.mark(Status::Partial, "nothing completed");
        }
        all
    }

    /// The members, with what is known of them.
    fn members(&self) -> Vec<Member> {
        let idle = (Counts::default(), Figures::of_op(&OpRecord::default(), self.plan.timeout_ns));
        let member = |seat: &Seat| {
            let fit = seat.link.as_ref().map(Link::fit);
            Member {
                name: seat.name.clone(),
                clients: seat.part.clients(),
                threads: seat.part.threads,
                clock_offset_ns: fit.map_or(0, |fit| fit.wall_ns),
                clock_error_ns: fit.map_or(0, |fit| fit.error_ns),
                late_ns: seat.late_ns,
                lost: seat.lost.clone(),
                counts: seat.figures.map_or(idle.0, |figures| figures.0),
                figures: seat.figures.map_or(idle.1, |figures| figures.1),
            }
        };
        self.seats.iter().map(member).collect()
    }
}

/// What a lost agent had said of the measured phase.
fn kept_of(seat: &mut Seat, plan: &Plan) -> Measurement {
    let mut kept = empty(plan);
    if let Some(sum) = seat.sum.take() {
        let mut slice = blank(plan);
        // Each of its parcels fitted; only who makes up more requests than can be counted does not.
        if sum.add_to(&mut slice, true).is_ok() {
            kept.measured_ns = slice.end_ns;
            kept.add(&mut slice, Keep::Figures);
        }
    }
    kept
}

fn moment(at_ns: Option<Nanos>) -> String {
    match at_ns {
        Some(at_ns) => format!("{:.1} s into the measurement", seconds(at_ns)),
        None => "before the measurement".to_owned(),
    }
}

fn empty(plan: &Plan) -> Measurement {
    let names = plan.groups.iter().map(|group| group.name.clone());
    Measurement::new(names, plan.engine.clock, plan.timeout_ns)
}

fn blank(plan: &Plan) -> Box<Interval> {
    Box::new(Interval::new(plan.groups.iter().map(|_| std::iter::empty::<Verb>())))
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
    measurement.groups.len() == plan.groups.len()
        && measurement.groups.iter().zip(&plan.groups).all(|(one, other)| one.name == other.name)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use pummel_logic::plan::Phase;

    use super::*;
    use crate::report::example::Run;

    /// Knows whether they were let go.
    struct Lookout<'a>(&'a Cell<bool>);

    impl Watch for Lookout<'_> {
        fn begin(&mut self, _phase: &Phase, _at: Nanos) {
            self.0.set(true);
        }
    }

    /// A run of two members who are through with their orders and say nothing more, with the words that they get. `stops`:
    /// it is to stop as soon as they were let go.
    fn becalmed(stops: bool, time_ns: Nanos) -> (Measurement, Vec<Vec<Told>>) {
        let mut plan = Run::new(Keep::Figures).plan;
        let phase = plan.phases.pop().expect("it has phases");
        plan.phases = vec![phase];
        plan.phases[0].stop.time_ns = Some(time_ns);
        let (say, heard) = channel();
        let (seats, mut told): (Vec<Seat>, Vec<_>) = (0..2)
            .map(|number| {
                let clients = std::iter::once(0..5).collect();
                let part = ProcessShare { clients, threads: 1, first_worker: number, workers: 2, mark: 1 };
                let (commands, told) = unbounded_channel();
                (Seat::new(format!("m{number}"), part, None, Helm::Agent(commands)), told)
            })
            .unzip();
        (0..2).for_each(|number| say.send((number, Said::Accepted)).unwrap());
        let ready = || Said::Ready { phase: 0, loaded: Loaded::default() };
        (0..2).for_each(|number| say.send((number, ready())).unwrap());
        let gone = Cell::new(false);
        let mut watch = Lookout(&gone);
        let mut voyage = Voyage::new(&plan, seats, &mut watch, false);
        voyage.farewell_ns = 50 * MILLISECOND;
        let measurement = voyage.sail(&heard, &|| stops && gone.get()).expect("it begins");
        let words = told.iter_mut().map(|told| std::iter::from_fn(|| told.try_recv().ok()).collect());
        (measurement, words.collect())
    }

    #[test]
    fn members_that_do_not_end_in_time_are_lost() {
        let (measurement, told) = becalmed(false, MILLISECOND);
        assert_eq!(measurement.status, Status::Partial);
        let reason = measurement.reason.expect("it is said");
        assert!(reason.contains("m0 was lost") && reason.contains("m1 was lost"), "{reason}");
        assert!(reason.contains("it did not come to an end in time"), "{reason}");
        assert!(matches!(told[0][..], [Told::Connect(_), Told::Go(_)]), "{told:?}");
    }

    #[test]
    fn members_that_do_not_stop_when_they_are_told_are_lost() {
        let (measurement, told) = becalmed(true, NEVER);
        assert_eq!(measurement.status, Status::Interrupted);
        let members = measurement.agents.expect("there are members").members;
        assert!(members.iter().all(|member| member.lost.is_some()), "{members:?}");
        assert!(matches!(told[1][..], [.., Told::Stop(_)]), "{told:?}");
    }
}
