//! Where plans are run: in this process, or by agents.

use std::fmt;
use std::io;

use pummel_engine::resolve::ConnectError;
use pummel_engine::run::{Inputs, LoginUnsent, Run, RunError, Watch};
#[cfg(feature = "agents")]
use pummel_fleet::controller::connected_agents::ConnectedAgents;
#[cfg(feature = "agents")]
use pummel_fleet::controller::shares::Shares;
#[cfg(feature = "agents")]
use pummel_fleet::controller::start_error::StartError;
use pummel_fronts::fleet::Fleet;
use pummel_fronts::hints::{self, Obstacle};
use pummel_fronts::job::UsageError;
use pummel_fronts::style::{Refused, RefusedCause};
use pummel_logic::plan::Plan;
use pummel_logic::plan::validate::ValidPlan;
use pummel_measure::measurement::Measurement;

#[cfg(feature = "agents")]
use crate::job::provenance::PROGRAM;
use crate::job::provenance::note_build;

/// Who runs plans.
#[derive(Debug)]
pub enum Runner {
    /// This process.
    Here,
    /// Agents, and this process where the plan wants it.
    #[cfg(feature = "agents")]
    Agents(Box<ConnectedAgents>),
}

/// How the clients of a plan are dealt to processes.
#[derive(Clone, Debug)]
pub enum Dealing {
    /// Clients that stay in this process to this process, all others evenly to the agents.
    Evenly,
    /// Whole groups of the plan, by their places in it, each with so many threads.
    ByGroups {
        /// The group of each agent; `None` for an agent that nothing is left for.
        agents: Vec<Option<(usize, u32)>>,
        /// The group of this process, if it has one.
        own: Option<(usize, u32)>,
    },
}

/// Reason why a run did not begin, or why a series has no further one.
#[derive(Debug)]
pub enum NotRun {
    /// Here.
    Here(RunError),
    /// The command line asks for what cannot be.
    Usage(String),
    /// An agent is not there, or does not want to.
    Agents(String),
    /// A server is not there, does not let a run begin, speaks what no run can, or failed each try of a run.
    Server(Obstacle),
    /// A file that the run reads, or an address at which it is to be seen, cannot be used.
    Unready(String),
    /// The user ended it.
    Interrupted,
}

impl fmt::Display for NotRun {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRun::Here(error) => error.fmt(to),
            NotRun::Usage(why) | NotRun::Agents(why) | NotRun::Unready(why) => to.write_str(why),
            NotRun::Server(why) => to.write_str(&why.reason),
            NotRun::Interrupted => to.write_str("interrupted"),
        }
    }
}

impl NotRun {
    /// Whether the command line asks for what cannot be, so that nothing was tried.
    pub fn is_usage(&self) -> bool {
        matches!(self, NotRun::Usage(_) | NotRun::Here(RunError::Plan(_) | RunError::Tls(_)))
    }

    /// The reason, as command lines tell it.
    pub fn told(&self) -> Refused {
        let cause = match self {
            NotRun::Interrupted => RefusedCause::Interrupted,
            NotRun::Here(RunError::Connect(ConnectError::Unresolved { server, error })) => {
                RefusedCause::Unresolved { server: server.clone(), error: error.to_string() }
            }
            NotRun::Here(RunError::Connect(_)) => RefusedCause::NotConnected,
            _ => RefusedCause::Other,
        };
        Refused { cause, obstacle: self.obstacle() }
    }

    /// The reason, with a hint where there is one.
    pub fn obstacle(&self) -> Obstacle {
        match self {
            NotRun::Server(why) => why.clone(),
            NotRun::Here(error @ RunError::Login { why, .. }) => login_obstacle(error.to_string(), why),
            why => why.to_string().into(),
        }
    }
}

/// The reason why a login was not sent, with what can be changed.
fn login_obstacle(reason: String, why: &LoginUnsent) -> Obstacle {
    let hint = match why {
        LoginUnsent::NotDemanded => {
            "leave out --user; memcached demands a login if it is started with a file of users (-Y)"
                .to_owned()
        }
        LoginUnsent::Unknown(_) => {
            "--protocol auto finds out what the server speaks; memcached with SASL (-S) speaks binary"
                .to_owned()
        }
        LoginUnsent::Unreachable(kind, _) => match hints::absent_hint(*kind) {
            Some(hint) => hint.to_owned(),
            None => return reason.into(),
        },
    };
    Obstacle::with_hint(reason, hint)
}

impl From<UsageError> for NotRun {
    fn from(error: UsageError) -> NotRun {
        NotRun::Usage(error.to_string())
    }
}

impl From<io::Error> for NotRun {
    fn from(error: io::Error) -> NotRun {
        NotRun::Unready(error.to_string())
    }
}

impl From<RunError> for NotRun {
    fn from(error: RunError) -> NotRun {
        match error {
            RunError::Interrupted => NotRun::Interrupted,
            error => NotRun::Here(error),
        }
    }
}

#[cfg(feature = "agents")]
impl From<StartError> for NotRun {
    fn from(error: StartError) -> NotRun {
        match error {
            StartError::Usage(why) => NotRun::Usage(why),
            StartError::Agents(why) => NotRun::Agents(why),
            StartError::Interrupted => NotRun::Interrupted,
        }
    }
}

impl Runner {
    /// The runner of a fleet of agents, or of this process without one, ready to run plans that name the files of `plans`. The
    /// run has this name in metrics.
    ///
    /// # Errors
    /// When an agent does not answer.
    #[cfg(feature = "agents")]
    pub fn of(
        fleet: Option<&Fleet>,
        plans: &[&Plan],
        run_name: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Runner, NotRun> {
        match fleet {
            None => Ok(Runner::Here),
            Some(fleet) => {
                Ok(Runner::Agents(Box::new(ConnectedAgents::connect(fleet, PROGRAM, plans, run_name, stop)?)))
            }
        }
    }

    /// This process: no command line of this build names agents.
    ///
    /// # Errors
    /// None.
    #[cfg(not(feature = "agents"))]
    pub fn of(
        _fleet: Option<&Fleet>,
        _plans: &[&Plan],
        _run_name: &str,
        _stop: &dyn Fn() -> bool,
    ) -> Result<Runner, NotRun> {
        Ok(Runner::Here)
    }

    /// Runs a plan to its end, or until `stop` says so.
    ///
    /// # Errors
    /// When the run cannot begin. Whatever goes wrong later is in the measurement.
    #[cfg_attr(not(feature = "agents"), expect(unused_variables, reason = "there is one process to deal to"))]
    pub fn run(
        &self,
        plan: &ValidPlan,
        dealing: &Dealing,
        inputs: &Inputs,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, NotRun> {
        match self {
            Runner::Here => {
                let mut measured = Run::new(plan).with_inputs(inputs).start(watch, stop)?;
                note_build(&mut measured);
                Ok(measured)
            }
            #[cfg(feature = "agents")]
            Runner::Agents(connected) => {
                let shares = match dealing {
                    Dealing::Evenly => connected.share(plan)?,
                    Dealing::ByGroups { agents, own } => Shares::of_groups(plan, agents, *own),
                };
                Ok(connected.run(plan, shares, inputs, watch, stop)?)
            }
        }
    }
}

/// Whether this process sends requests of a plan.
pub fn takes_part(plan: &Plan, fleet: Option<&Fleet>) -> bool {
    fleet.is_none() || plan.groups.iter().any(|group| group.policy.here)
}
