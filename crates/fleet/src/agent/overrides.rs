//! Settings that an agent decides in place of a plan, and its lines about an order.

use pummel_logic::plan::Plan;
use pummel_logic::plan::share::ProcessShare;

/// Settings that an agent decides in place of a plan, where its command line is mutilate's; 0 and empty where the plan decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalOverrides {
    /// Number of threads.
    pub threads: u32,
    /// Factor by which the agent's rate exceeds that of others.
    pub weight: u32,
    /// Its connections, in place of those of the controller's command line.
    pub measure_connections: u32,
    /// The agent sleeps where others spin.
    pub blocking: bool,
    /// CPUs for its threads, in place of those of the plan.
    pub cpus: Vec<usize>,
}

/// The lines on standard error about an order that is followed: of its plan, of the agent's share, and of the weight of the
/// agent's connections.
#[derive(Clone, Copy, Debug)]
pub struct OrderLog(pub fn(&Plan, &ProcessShare, u32) -> Vec<String>);
