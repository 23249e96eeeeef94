//! A run before its start: its plan, the process that runs it, and the inputs that no Plan holds.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::secrets::Secret;
use pummel_logic::time::Nanos;
use pummel_logic::workload::dataset::PackedRows;
use pummel_logic::workload::trace::Trace;
use pummel_measure::completion::Loaded;

use super::steering::Steering;
use super::trace::TraceFiles;
use crate::backend::tls::FileReader;

/// A run of a plan that has not started.
///
/// Failures after the beginning of a run are in its measurement: the status, the reason and the counts.
#[derive(Clone)]
pub struct Run<'a> {
    pub(super) plan: &'a ValidPlan,
    pub(super) inputs: Inputs,
    /// The share of this process; `None` where it runs the whole plan.
    pub(super) process: Option<Process<'a>>,
}

/// One process of several that run a Plan together.
#[derive(Clone, Copy)]
pub(super) struct Process<'a> {
    pub(super) share: &'a ProcessShare,
    pub(super) gate: &'a dyn Gate,
}

/// The inputs of a run that no Plan holds.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The password of the login; `None` when it is to be read from where the Plan says.
    pub password: Option<Secret>,
    /// The requests of a Plan that replays a recording.
    pub trace: Option<Arc<Trace>>,
    /// The files of a Plan that replays a trace while it is read.
    pub files: Option<Arc<dyn TraceFiles>>,
    /// The rows of a Plan's dataset.
    pub rows: Option<PackedRows>,
    /// The addresses to which requests may be sent; `None` for all addresses.
    pub permit: Option<Permit>,
    /// The check that a plan is one for this process once the nodes of its cluster are known; `None` where every plan is.
    pub plan_check: Option<PlanCheck>,
    /// The commands that change the rate while the run is measured; `None` where the rate is that of the Plan. The Plan is one of open loop
    /// with one rate, whose clients stay, and with one measured phase that has an end in time.
    pub steering: Option<Arc<Steering>>,
    /// The reader of the TLS files that the Plan names; `None` for the file system.
    pub tls_files: Option<Arc<FileReader>>,
}

/// A function that returns whether requests may be sent to an address. The address of a unix socket is 127.0.0.1.
pub type Permit = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// A function that returns why a plan cannot be run by this process.
pub type PlanCheck = Arc<dyn Fn(&ValidPlan) -> Result<(), String> + Send + Sync>;

impl fmt::Debug for Inputs {
    /// Formats the number of rows, and never the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.trace.as_ref().map(|trace| trace.len());
        to.debug_struct("Inputs").field("trace_rows", &rows).finish_non_exhaustive()
    }
}

/// The gate at which a process waits, at the beginning of every phase, for the other processes of its run.
pub trait Gate: Sync {
    /// Waits until all processes are ready for the next phase. Returns when it begins, on the monotonic clock; `None`
    /// when one of the processes cannot go on, the load of all of them has failed, or the run was stopped. All workers
    /// of this process are ready since `ready`. `loaded` is what the phase before stored in this process, with 0 of 0
    /// records where it was no load.
    fn pass(&self, ready: Nanos, loaded: Loaded) -> Option<Nanos>;

    /// The moment at which the phase with this number ends before its time, on the monotonic clock; `None` as long as
    /// no such end is known. The engine asks repeatedly while the phase runs.
    fn early_end(&self, _phase: usize) -> Option<Nanos> {
        None
    }
}
