//! What a run needs that no Plan holds.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use pummel_logic::measure::completion::Loaded;
use pummel_logic::time::Nanos;
use pummel_logic::workload::trace::Trace;

/// What a Plan needs that no Plan holds.
#[derive(Clone, Default)]
pub struct Inputs {
    /// The password of its login; absent: it is read from where the Plan says.
    pub password: Option<String>,
    /// The requests of a Plan that replays a recording.
    pub trace: Option<Arc<Trace>>,
    /// Which addresses requests may be sent to; absent: any.
    pub permit: Option<Permit>,
}

/// Says of an address whether requests may be sent there; for a unix socket, the address is 127.0.0.1.
pub type Permit = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

impl fmt::Debug for Inputs {
    /// Without the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.trace.as_ref().map(|trace| trace.len());
        to.debug_struct("Inputs").field("trace_rows", &rows).finish_non_exhaustive()
    }
}

/// Where a process waits, at the beginning of every phase, for the other processes of its run.
pub trait Gate: Sync {
    /// Says when the next phase begins, on the monotonic clock, as soon as all processes are ready for it. All workers of
    /// this process are ready since `ready`. `loaded` says what the phase before it stored here, which is nothing of
    /// nothing where that was no load. Returns `None` where the next phase does not begin: one of the processes cannot go
    /// on, the load of all of them has failed, or the run was stopped.
    fn pass(&self, ready: Nanos, loaded: Loaded) -> Option<Nanos>;
}
