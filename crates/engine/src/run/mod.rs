//! The run of a plan: [`Run`] starts the workers and returns their measurement.

mod audit;
mod card;
mod cluster;
mod collect;
mod context;
mod dataset;
mod detect;
mod early_end;
mod error;
mod inputs;
mod login;
mod phases;
mod plan_files;
mod rate_control;
mod servers;
mod setup;
mod start;
mod steering;
mod trace;
mod trace_files;
mod watch;

use std::io;

use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
use pummel_measure::measurement::Measurement;

pub use self::dataset::dataset_rows;
pub use self::detect::{Inquiry, Undetected, detect};
pub use self::error::{LoginUnsent, RunError};
use self::inputs::Process;
pub use self::inputs::{Gate, Inputs, Permit, Run};
pub use self::login::password_of;
pub use self::plan_files::{inputs_of, replay_of, trace_of};
pub use self::servers::{ensure_descriptors, permitted};
use self::start::Start;
pub use self::steering::{RateCommand, Steering};
pub use self::trace::{TraceFiles, fill_block};
pub use self::trace_files::{FilesByPath, OpenFiles, STDIN, unpacked};
pub use self::watch::Watch;
use crate::backend::Backend;

impl<'a> Run<'a> {
    /// A run of the whole plan in this process, with default inputs.
    pub fn new(plan: &'a ValidPlan) -> Run<'a> {
        Run { plan, inputs: Inputs::default(), process: None }
    }

    /// The run, with these inputs.
    pub fn with_inputs(self, inputs: &Inputs) -> Run<'a> {
        Run { inputs: inputs.clone(), ..self }
    }

    /// The run of one process's clients, which waits at `gate` for the other processes before each phase.
    pub fn with_process_share(self, share: &'a ProcessShare, gate: &'a dyn Gate) -> Run<'a> {
        Run { process: Some(Process { share, gate }), ..self }
    }

    /// Runs the plan to its end, or until `stop` returns true. The result is then what was measured so far.
    ///
    /// # Errors
    /// Returns [`RunError::Plan`] for a part that is not one of the plan, and for a plan whose command, keys, values or
    /// login cannot be sent, or whose password or recorded requests are missing, [`RunError::Connect`] when a server's
    /// name cannot be resolved or the descriptors do not suffice, [`RunError::Forbidden`] when the inputs do not permit
    /// a server's address, [`RunError::Tls`] when the files of TLS cannot be used, [`RunError::Login`] when a server of
    /// memcached's text protocol does not say that it demands the plan's login, [`RunError::Interrupted`] when `stop` returned
    /// true before that and the servers' addresses were known, and [`RunError::Kernel`] when a thread cannot be started.
    pub fn start(&self, watch: &mut dyn Watch, stop: &dyn Fn() -> bool) -> Result<Measurement, RunError> {
        self.ready(watch, stop)?.run_on_kernel()
    }

    /// Runs the plan on backends of the caller's making: each worker makes its own on its own thread, from its number.
    /// Requests that are measured over UDP are loaded over UDP, connections are not encrypted, every address is permitted, and
    /// the slots of a cluster are dealt to the servers of the plan, none of which is asked for them.
    ///
    /// # Errors
    /// Returns [`RunError::Plan`] for a part that is not one of the plan, and for a plan whose command, keys, values or
    /// login cannot be sent, or whose password or recorded requests are missing, [`RunError::Connect`] when a server's
    /// name cannot be resolved or the descriptors do not suffice, [`RunError::Interrupted`] when `stop` returned true before
    /// the servers' addresses were known, and [`RunError::Kernel`] when a thread cannot be started.
    pub fn start_on<B: Backend>(
        &self,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
        backend: impl Fn(usize) -> io::Result<B> + Sync,
    ) -> Result<Measurement, RunError> {
        self.ready(watch, stop)?.run_on(&backend)
    }

    fn ready<'w>(
        &'w self,
        watch: &'w mut dyn Watch,
        stop: &'w dyn Fn() -> bool,
    ) -> Result<Start<'w>, RunError> {
        if self.process.is_some_and(|process| !process.share.fits(self.plan)) {
            return Err(RunError::Plan("the part is not one of this plan".to_owned()));
        }
        Ok(Start { run: self, watch, stop })
    }
}
