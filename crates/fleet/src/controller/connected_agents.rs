//! The agents of a command line: found or started, connected, and ready for runs one after the other.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use pummel_engine::run::{Inputs, Watch};
use pummel_fronts::agent_variables::AgentVariables;
use pummel_fronts::fleet::{AgentAddress, Fleet};
use pummel_logic::plan::Plan;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
use pummel_measure::events::Wants;
use pummel_measure::measurement::Measurement;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;

use crate::agent::files::named_by;
use crate::agent::member::{MemberEvent, MemberTask};
use crate::agent::proto::{PROTOCOL, v2};
use crate::controller::agent_link::{AgentLink, Credentials, connect_all};
use crate::controller::event_queue::{EventSender, event_queue};
use crate::controller::member_state::{AgentHandle, MemberState};
use crate::controller::run::DistributedRun;
use crate::controller::shares::Shares;
use crate::controller::start_error::StartError;
use crate::launch::{LaunchError, LaunchRequest, LaunchedAgents};
use crate::program::Program;

/// Pause between two looks whether the user ends the run while agents are connected.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The name of the controller among the members of a run.
const OWN_NAME: &str = "controller";

/// Agents that answered, ready for runs one after the other.
#[derive(Debug)]
pub struct ConnectedAgents {
    runtime: Runtime,
    program: Program,
    links: Vec<AgentLink>,
    stop_on_loss: bool,
    allow_version_mismatch: bool,
    /// The name of the run, for the metrics of agents.
    run_name: String,
    /// Agents that were started for this command line and end with it. They are dropped after the links, so that no link is
    /// cut in the middle of a message.
    _launched: Vec<LaunchedAgents>,
}

impl ConnectedAgents {
    /// Connects to all agents of a fleet, by what its command line and the environment say. Agents that are started read the
    /// files that `plans` name, and no others. The metrics of all agents have the run's name.
    ///
    /// # Errors
    /// Returns [`StartError::Usage`] when a file or a variable of the fleet cannot be used, [`StartError::Agents`] when an
    /// agent does not answer or refuses, and [`StartError::Interrupted`] when `stop` returns true first.
    pub fn connect(
        fleet: &Fleet,
        program: Program,
        plans: &[&Plan],
        run_name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<ConnectedAgents, StartError> {
        let variables = AgentVariables::read(|name| std::env::var_os(name)).map_err(StartError::Usage)?;
        let fleet = &fleet.clone().completed_by(variables);
        let credentials = Credentials::read(fleet, program).map_err(StartError::Usage)?;
        let failed = |error: io::Error| StartError::Agents(format!("agents cannot be spoken to: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("links")
            .enable_all()
            .build()
            .map_err(failed)?;
        let patience = Duration::from_nanos(fleet.patience_ns);
        let launched = launch_all(fleet, program, &named_by_all(plans), patience, stop)?;
        let placed: Vec<_> = launched.iter().flat_map(LaunchedAgents::agents).cloned().collect();
        let deadline = Instant::now() + patience;
        let links = runtime.block_on(async {
            tokio::select! {
                links = connect_all(&fleet.addresses, &placed, &credentials, deadline) => links.map_err(StartError::Agents),
                () = until_stopped(stop) => Err(StartError::Interrupted),
            }
        })?;
        Ok(ConnectedAgents {
            program,
            runtime,
            links,
            stop_on_loss: fleet.stop_on_loss,
            allow_version_mismatch: fleet.allow_version_mismatch,
            run_name: run_name.to_owned(),
            _launched: launched,
        })
    }

    /// The first answer of each agent, in the order of the agents.
    pub fn hellos(&self) -> impl Iterator<Item = &v2::HelloReply> {
        self.links.iter().map(|link| &link.hello)
    }

    /// Deals the clients of a plan: those that stay with the controller to it, all others evenly to the agents.
    ///
    /// # Errors
    /// Returns [`StartError::Usage`] when the plan cannot be shared by so many agents.
    pub fn share(&self, plan: &Plan) -> Result<Shares, StartError> {
        Shares::dealt(plan, self.links.len()).map_err(StartError::Usage)
    }

    /// Runs a plan on all agents to its end, or until `stop` returns true. What goes wrong after the beginning is in the
    /// measurement.
    ///
    /// # Errors
    /// Returns [`StartError`] when the run cannot begin; then nothing was sent to any server.
    pub fn run(
        &self,
        plan: &ValidPlan,
        shares: Shares,
        inputs: &Inputs,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, StartError> {
        // The number outstanding is told beside the rows of this process: it is that of the process, where it takes part.
        let own = watch.wants();
        let wants = Wants { outstanding: own.outstanding && shares.own.is_none(), ..own };
        let (say, heard) = event_queue();
        let mut members = Vec::with_capacity(shares.agents.len() + 1);
        for (link, share) in self.links.iter().zip(shares.agents) {
            let Some(share) = share else { continue };
            let order = self.order(plan, &share, inputs, wants);
            let handle = self.send(link, order, members.len(), say.clone());
            members.push(MemberState::new(link.name.clone(), share, Some(link.clone()), handle));
        }
        if let Some(share) = shares.own {
            let task = MemberTask {
                program: self.program,
                plan: plan.clone(),
                part: share.clone(),
                wants: watch.wants(),
                inputs: inputs.clone(),
                run_name: self.run_name.clone(),
                snapshot: None,
            };
            let handle = AgentHandle::own(task, say.clone(), members.len());
            say.send((members.len(), MemberEvent::Accepted));
            members.push(MemberState::new(OWN_NAME.to_owned(), share, None, handle));
        }
        drop(say);
        DistributedRun::new(plan, members, watch, self.stop_on_loss).run(&heard, stop)
    }

    /// The order for the agent with this share.
    fn order(&self, plan: &ValidPlan, share: &ProcessShare, inputs: &Inputs, wants: Wants) -> v2::Order {
        let json = |data: serde_json::Result<Vec<u8>>| data.expect("plans have nothing that JSON has not");
        v2::Order {
            protocol: PROTOCOL,
            build: Some(self.program.build()),
            controller: name_of_process(),
            plan: json(serde_json::to_vec(plan)).into(),
            part: json(serde_json::to_vec(share)).into(),
            rows: wants.rows,
            outstanding: wants.outstanding,
            password: inputs.password.as_ref().map(|word| word.reveal().to_owned()),
            allow_version_mismatch: self.allow_version_mismatch,
            run: self.run_name.clone(),
        }
    }

    /// Gives an order to an agent, whose events are said with its number among the members.
    fn send(&self, link: &AgentLink, order: v2::Order, number: usize, say: EventSender) -> AgentHandle {
        let (commands, told) = unbounded_channel();
        self.runtime.spawn(link.clone().follow(order, told, move |event| {
            say.send((number, event));
        }));
        AgentHandle::Agent(commands)
    }
}

/// The paths of the files that plans name.
fn named_by_all(plans: &[&Plan]) -> BTreeSet<String> {
    plans.iter().flat_map(|plan| named_by(plan)).collect()
}

/// Starts the agents of a fleet that are to be started for this command line. They read these files, and no others.
fn launch_all(
    fleet: &Fleet,
    program: Program,
    files: &BTreeSet<String>,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<LaunchedAgents>, StartError> {
    let wanted = fleet.addresses.iter().filter_map(|address| match address {
        AgentAddress::Started(spec) => Some(spec),
        AgentAddress::Host { .. } | AgentAddress::Name { .. } => None,
    });
    let request = |spec| LaunchRequest { spec, files, patience };
    let placed = wanted.map(|spec| LaunchedAgents::start(request(spec), stop, program.say));
    placed.collect::<Result<_, _>>().map_err(|error| match error {
        LaunchError::Interrupted => StartError::Interrupted,
        LaunchError::Here(_) | LaunchError::There(_) => StartError::Agents(error.to_string()),
    })
}

async fn until_stopped(stop: &dyn Fn() -> bool) {
    while !stop() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The user, the machine and the process, which another controller is told that finds an agent taken.
fn name_of_process() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{user}{at}{} (process {})", host.trim(), std::process::id())
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::TlsOptions;

    use super::*;

    #[test]
    fn agents_of_several_plans_read_the_files_of_each() {
        let plan = |ca: &str| {
            let tls = TlsOptions { ca: Some(ca.to_owned()), ..TlsOptions::default() };
            Plan { tls: Some(tls), ..Plan::default() }
        };
        let named = named_by_all(&[&plan("a.pem"), &plan("b.pem"), &Plan::default()]);
        assert_eq!(named.into_iter().collect::<Vec<_>>(), ["a.pem", "b.pem"]);
    }
}
