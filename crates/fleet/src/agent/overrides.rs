//! What an agent decides in place of a plan, and what it says of an order.

use pummel_logic::plan::Plan;
use pummel_logic::plan::share::ProcessShare;

/// What an agent decides in place of a plan, where its command line is mutilate's; 0 and empty where the plan decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalOverrides {
    /// Threads.
    pub threads: u32,
    /// How many times the rate of others it takes.
    pub weight: u32,
    /// Its connections, in place of those of the controller's command line.
    pub measure_connections: u32,
    /// It never spins.
    pub blocking: bool,
    /// CPUs for its threads, in place of those of the plan.
    pub cpus: Vec<usize>,
}

/// The lines on standard error about an order that is followed: of its plan, of the agent's share, and of the weight of the
/// agent's connections.
#[derive(Clone, Copy, Debug)]
pub struct OrderLog(pub fn(&Plan, &ProcessShare, u32) -> Vec<String>);
