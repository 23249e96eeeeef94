//! The options of a run on a Redis or Valkey cluster.

use clap::{Args, ValueEnum};
use pummel_logic::plan::cluster::REDIRECTS;
use pummel_logic::plan::{ClusterOptions, ReadFrom, Rewrite, Route};
use pummel_logic::time::Nanos;
use pummel_report::plan_options::default_of;

use crate::values;
use crate::values::ValueError;

/// How the nodes of a cluster are found and followed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Ask the nodes of a Redis or Valkey cluster, each for the slots that it owns, and follow its redirects. --server names one
    /// node or several, which are asked for the others. Replaces --route
    #[arg(long, conflicts_with_all = ["no_cluster", "route"])]
    pub cluster: bool,
    /// Ask the named servers alone, although they are nodes of a cluster: redirects count as errors
    #[arg(long)]
    pub no_cluster: bool,
    /// How often a request may be sent on because a node names another one; 0: redirects are errors
    #[arg(long, value_name = "N", default_value_t = REDIRECTS, value_parser = values::count_cut, allow_hyphen_values = true)]
    pub redirects: u32,
    /// Connect to the IP address of each node and not to the host name that it prefers
    #[arg(long)]
    pub cluster_ip: bool,
    /// Connect to TO where the cluster names FROM, for clusters behind address translation: hosts, or hosts with ports. May be
    /// repeated
    #[arg(long, value_name = "FROM=TO", value_parser = rewrite)]
    pub rewrite: Vec<Rewrite>,
    /// Ask for the owners of the slots this often although nothing shows that they changed. Default: only when a redirect or a
    /// lost connection shows it
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub cluster_refresh: Option<Nanos>,
    /// Which nodes of a shard reads are sent to: the master, its replicas, or both. All other requests are sent to the master. A
    /// replica may answer an older value, so that with replicas no value counts as stale
    #[arg(long, value_enum, value_name = "NODES", default_value = default_of("--read-from"))]
    pub read_from: ReadFromName,
}

/// The nodes that reads are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadFromName {
    /// The master
    Primary,
    /// The replicas; a read waits where there is none
    Replica,
    /// The replicas, or the master where none of them is connected
    PreferReplica,
    /// The master and the replicas alike
    Any,
}

impl ReadFromName {
    /// The nodes in a plan.
    fn nodes(self) -> ReadFrom {
        match self {
            ReadFromName::Primary => ReadFrom::Primary,
            ReadFromName::Replica => ReadFrom::Replica,
            ReadFromName::PreferReplica => ReadFrom::PreferReplica,
            ReadFromName::Any => ReadFrom::Any,
        }
    }
}

/// Reads a rewritten name.
fn rewrite(text: &str) -> Result<Rewrite, ValueError> {
    let expected = || ValueError("expected FROM=TO, such as 10.0.0.1:7001=localhost:8001".to_owned());
    let (from, to) = text.split_once('=').ok_or_else(expected)?;
    Ok(Rewrite { from: from.to_owned(), to: to.to_owned() })
}

impl ClusterArgs {
    /// The options in a plan.
    pub fn options(&self) -> ClusterOptions {
        ClusterOptions {
            redirects: self.redirects,
            by_ip: self.cluster_ip,
            rewrite: self.rewrite.clone(),
            refresh_ns: self.cluster_refresh,
            read_from: self.read_from.nodes(),
        }
    }

    /// The route of a plan whose command line names this one otherwise.
    pub fn route(&self, otherwise: Route) -> Route {
        if self.cluster { Route::Cluster } else { otherwise }
    }
}
